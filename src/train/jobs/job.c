/* SPDX-License-Identifier: MIT */
/* job.c: the runs of a comparison by number. Contract: job.h. */
#include "train/jobs/job.h"

#include "train/jobs/extension.h"
#include "train/jobs/level.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Where each kind of run begins, and what it is: in this order. */
enum { TRIALS, TEXT, EXTENDED, TASKS, LEVELS, KINDS };

static void lay_out(int64_t begin[KINDS + 1], const pe_compare *c)
{
    const int64_t counts[KINDS] = {pe_trial_runs(c->trials), c->count * c->config.preset.seeds,
                                   pe_extension_runs(c->extension), pe_suite_runs(c->suite),
                                   pe_level_runs(c->levels)};
    begin[0]                    = 0;
    for (int kind = 0; kind < KINDS; kind++)
        begin[kind + 1] = begin[kind] + counts[kind];
}

int64_t pe_job_count(const pe_compare *c)
{
    int64_t begin[KINDS + 1];
    lay_out(begin, c);
    return begin[KINDS];
}

/* The encoding that an extended family is, if it is compared; or -1. */
static int encoding_of(const pe_compare *c, const char *family)
{
    int i = c->count;
    while (--i >= 0 && strcmp(c->outcomes[i].label, family) != 0)
        continue;
    return i;
}

/* What number `at` of a kind trains. */
static void find_run(pe_job *j, const pe_compare *c, int kind, int64_t at)
{
    const int64_t seeds = c->config.preset.seeds;
    j->encoding         = -1;
    if (kind == TRIALS) {
        j->encoding = (int)(at / c->trials->rate_count);
        j->outcome  = &c->trials->outcomes[at];
    }
    if (kind == TASKS)
        j->cell = pe_suite_cell_of_run(c->suite, at, &j->seed);
    if (kind == TEXT || kind == EXTENDED)
        j->seed = at % seeds;
    if (kind == TEXT) {
        j->encoding = (int)(at / seeds);
        j->outcome  = &c->outcomes[j->encoding];
    } else if (kind == EXTENDED) {
        j->outcome  = &c->extension->outcomes[at / seeds];
        j->encoding = encoding_of(c, c->extension->plans[at / seeds].family);
    } else if (kind == LEVELS) {
        pe_level_run *run = pe_level_run_at(c->levels, at);
        j->outcome        = &run->outcome;
        j->encoding       = run->encoding;
    }
}

pe_job pe_job_at(const pe_compare *c, int64_t job)
{
    int64_t begin[KINDS + 1];
    pe_job  j    = {0};
    int     kind = 0;
    lay_out(begin, c);
    while (job >= begin[kind + 1])
        kind++;
    find_run(&j, c, kind, job - begin[kind]);
    const int    rate = kind != TRIALS && j.encoding >= 0 ? c->trials->chosen[j.encoding] : 0;
    pe_run_slot *run  = (j.cell ? j.cell->runs : j.outcome->runs) + j.seed;
    j.rate            = rate > 0 ? rate : 0;
    j.waits           = rate < 0;
    j.label           = j.cell ? j.cell->label : j.outcome->label;
    j.config          = j.cell ? j.cell->config : j.outcome->config;
    j.result          = &run->result;
    j.progress        = &run->progress;
    j.ended           = &run->ended;
    j.config.seed     = (uint64_t)j.seed + 1;
    return j;
}

/* ---------------------------------------------------------------- rates --------------------- */

void pe_job_set_rates(pe_compare *c, int tried)
{
    for (int i = 0; i < c->count; i++) {
        const int number                    = c->trials->chosen[i];
        c->outcomes[i].config.learning_rate = c->trials->rates[number < 0 ? tried : number];
    }
    for (int64_t k = 0; k < pe_level_runs(c->levels); k++) {
        pe_level_run        *run   = pe_level_run_at(c->levels, k);
        const pe_run_config *whole = &c->outcomes[run->encoding].config;
        run->outcome.config.learning_rate =
            pe_trial_rate(whole->learning_rate, run->outcome.config.steps, whole->steps);
    }
    for (int f = 0; f < c->extension->count; f++) {
        const int i = encoding_of(c, c->extension->plans[f].family);
        if (i >= 0)
            pe_extension_set_rate(c->extension, f, c->outcomes[i].config.learning_rate);
    }
}

void pe_job_choose_rates(pe_compare *c)
{
    if (!pe_trial_all_ended(c->trials))
        return;
    pe_trial_choose(c->trials);
    pe_job_set_rates(c, 0);
}

/* ---------------------------------------------------------------- saved and sent ------------ */

posenc_status pe_job_list(pe_run_file *k, const pe_job *job, posenc_error *err)
{
    *k = (pe_run_file){.identity = pe_run_identity(&job->config), .is_finished = 1};
    if (!k->identity)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory to save a run");
    pe_run_list(k, &job->config, job->result);
    return POSENC_OK;
}

/* Arrays for a result that is not there yet. */
static posenc_status prepare_result(pe_run_file *k, const pe_job *job, posenc_error *err)
{
    *k                         = (pe_run_file){0};
    const posenc_status status = pe_run_result_create(job->result, &job->config, err);
    return status ? status : pe_job_list(k, job, err);
}

/* More answers that are right than were asked for? */
static posenc_status check_right(const pe_job *job, posenc_error *err)
{
    const pe_run_config *c = &job->config;
    for (int64_t i = 0; c->task && i < PE_TASK_LENGTHS * c->sequences; i++) {
        const int     length = (int)(i / c->sequences);
        const int64_t count  = job->result->right[i];
        const int64_t n      = pe_task_size(c->task, length);
        if (count < 0 || count > (n == 0            ? 0
                                  : c->task->varies ? pe_task_tokens(c->task, n)
                                                    : pe_task_asked(c->task, length)))
            return pe_fail(err, POSENC_ERROR_FORMAT, "its right answers are not there");
    }
    return POSENC_OK;
}

/* A result that was filled in has ended; half of one goes. */
static posenc_status finish_result(pe_run_file *k, const pe_job *job, posenc_status status, posenc_error *err)
{
    free(k->identity);
    if (!status)
        status = check_right(job, err);
    if (!status && !memchr(job->result->instructions, '\0', PE_ISA))
        status = pe_fail(err, POSENC_ERROR_FORMAT, "the name of its instruction set has no end");
    if (status)
        pe_run_result_free(job->result);
    else
        atomic_store(job->ended, 1 + POSENC_OK);
    return status;
}

posenc_status pe_job_take(const pe_job *job, const posenc_arrays *set, const char *prefix, const char *path,
                          posenc_error *err)
{
    pe_run_file   k;
    posenc_status status = prepare_result(&k, job, err);
    if (!status)
        status = pe_run_file_take(&k, set, prefix, path, err);
    return finish_result(&k, job, status, err);
}

static size_t packed_size(const pe_run_file *k)
{
    size_t n = strlen(k->identity) + 1;
    for (int i = 0; i < k->count; i++)
        n += pe_run_file_bytes(&k->arrays[i]);
    return n;
}

char *pe_job_pack(const pe_job *job, size_t *n)
{
    pe_run_file k;
    if (pe_job_list(&k, job, NULL))
        return NULL;
    char *bytes = malloc(*n = packed_size(&k)), *at = bytes;
    if (bytes)
        at = stpcpy(bytes, k.identity) + 1;
    for (int i = 0; i < k.count && bytes; at += pe_run_file_bytes(&k.arrays[i++]))
        memcpy(at, k.arrays[i].tensor.data, pe_run_file_bytes(&k.arrays[i]));
    free(k.identity);
    return bytes;
}

posenc_status pe_job_unpack(const pe_job *job, const char *bytes, size_t n, posenc_error *err)
{
    pe_run_file   k;
    posenc_status status = prepare_result(&k, job, err);
    const char   *at     = bytes;
    if (!status && (n != packed_size(&k) || memcmp(bytes, k.identity, strlen(k.identity) + 1)))
        status = pe_fail(err, POSENC_ERROR_FORMAT,
                         "compare: another process sent a run that it was not asked for; do all processes "
                         "run the same program?");
    if (!status)
        at += strlen(k.identity) + 1;
    for (int i = 0; i < k.count && !status; at += pe_run_file_bytes(&k.arrays[i++]))
        memcpy(k.arrays[i].tensor.data, at, pe_run_file_bytes(&k.arrays[i]));
    return finish_result(&k, job, status, err);
}
