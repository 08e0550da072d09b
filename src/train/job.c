/* SPDX-License-Identifier: MIT */
/* job.c: the runs of a comparison by number. Contract: job.h. */
#include "train/job.h"

#include "train/extension.h"
#include "train/fail.h"
#include "train/identity.h"

#include <stdlib.h>
#include <string.h>

static int64_t text_jobs(const pe_compare *c)
{
    return c->count * c->config.preset.seeds;
}

/* The outcome that run number `job` is one of: of the comparison, then of the families that are extended.
   NULL: a task's. */
static pe_outcome *outcome_of(const pe_compare *c, int64_t job)
{
    const int64_t seeds = c->config.preset.seeds, own = text_jobs(c);
    if (job < own)
        return &c->outcomes[job / seeds];
    return job < own + pe_extension_runs(c->extension) ? &c->extension->outcomes[(job - own) / seeds] : NULL;
}

int64_t pe_job_count(const pe_compare *c)
{
    return text_jobs(c) + pe_extension_runs(c->extension) + pe_suite_runs(c->suite);
}

pe_job pe_job_at(const pe_compare *c, int64_t job)
{
    pe_job        j     = {.outcome = outcome_of(c, job)};
    const int64_t seeds = c->config.preset.seeds, on_text = text_jobs(c) + pe_extension_runs(c->extension);
    if (j.outcome) {
        j.seed     = job % seeds;
        j.progress = &j.outcome->progress[j.seed];
        j.ended    = &j.outcome->ended[j.seed];
    } else {
        j.cell     = pe_suite_run(c->suite, job - on_text, &j.seed);
        j.progress = &j.cell->progress[j.seed];
        j.ended    = &j.cell->ended[j.seed];
    }
    return j;
}

int pe_job_has_ended(const pe_compare *c, int64_t job)
{
    return atomic_load(pe_job_at(c, job).ended) != 0;
}

static pe_run_config text_config(const pe_job *job)
{
    pe_run_config config = job->outcome->config;
    config.seed          = (uint64_t)job->seed + 1;
    return config;
}

static pe_task_config task_config(const pe_job *job)
{
    pe_task_config config = job->cell->config;
    config.seed           = (uint64_t)job->seed + 1;
    return config;
}

char *pe_job_identity(const pe_job *job)
{
    if (job->cell) {
        const pe_task_config config = task_config(job);
        return pe_task_identity(&config);
    }
    const pe_run_config config = text_config(job);
    return pe_run_identity(&config);
}

void pe_job_do(const pe_job *job, const char *checkpoint, double checkpoint_seconds, posenc_error *err)
{
    posenc_status status;
    if (job->cell) {
        const pe_task_config config = task_config(job);
        status                      = pe_task_run(&config, job->progress, &job->cell->runs[job->seed], err);
    } else {
        pe_run_config config      = text_config(job);
        config.checkpoint         = checkpoint;
        config.checkpoint_seconds = checkpoint_seconds;
        status                    = pe_run(&config, job->progress, &job->outcome->runs[job->seed], err);
    }
    atomic_store(job->ended, 1 + (int)status);
}

/* ---------------------------------------------------------------- kept and sent ------------- */

posenc_status pe_job_list(pe_run_file *k, const pe_job *job, posenc_error *err)
{
    *k = (pe_run_file){.identity = pe_job_identity(job), .is_finished = 1};
    if (!k->identity)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory to keep a run");
    if (job->cell) {
        const pe_task_config config = task_config(job);
        pe_task_list(k, &config, &job->cell->runs[job->seed]);
    } else {
        const pe_run_config config = text_config(job);
        pe_run_list(k, &config, &job->outcome->runs[job->seed]);
    }
    return POSENC_OK;
}

/* Arrays for a result that is not there yet. */
static posenc_status make_room(pe_run_file *k, const pe_job *job, posenc_error *err)
{
    posenc_status status;
    *k = (pe_run_file){0};
    if (job->cell) {
        const pe_task_config config = task_config(job);
        status                      = pe_task_result_create(&job->cell->runs[job->seed], &config, err);
    } else {
        const pe_run_config config = text_config(job);
        status                     = pe_run_result_create(&job->outcome->runs[job->seed], &config, err);
    }
    return status ? status : pe_job_list(k, job, err);
}

/* More answers that are right than were asked for? */
static posenc_status check_right(const pe_job *job, posenc_error *err)
{
    const pe_cell *cell = job->cell;
    for (int64_t i = 0; cell && i < PE_TASK_LENGTHS * cell->config.sequences; i++) {
        const int     length = (int)(i / cell->config.sequences);
        const int64_t count  = cell->runs[job->seed].right[i];
        if (count < 0 || count > (pe_task_size(cell->task, length) ? pe_task_asked(cell->task, length) : 0))
            return pe_train_fail(err, POSENC_FORMAT, "its right answers are not there");
    }
    return POSENC_OK;
}

/* A result that was filled in has ended; half of one goes. */
static posenc_status finish(pe_run_file *k, const pe_job *job, posenc_status status, posenc_error *err)
{
    free(k->identity);
    if (!status)
        status = check_right(job, err);
    if (!status)
        atomic_store(job->ended, 1 + POSENC_OK);
    else if (job->cell)
        pe_task_result_free(&job->cell->runs[job->seed]);
    else
        pe_run_result_free(&job->outcome->runs[job->seed]);
    return status;
}

posenc_status pe_job_take(const pe_job *job, const posenc_arrays *set, const char *prefix, const char *path,
                          posenc_error *err)
{
    pe_run_file   k;
    posenc_status status = make_room(&k, job, err);
    if (!status)
        status = pe_run_file_take(&k, set, prefix, path, err);
    return finish(&k, job, status, err);
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
    posenc_status status = make_room(&k, job, err);
    const char   *at     = bytes;
    if (!status && (n != packed_size(&k) || memcmp(bytes, k.identity, strlen(k.identity) + 1)))
        status = pe_train_fail(
            err, POSENC_FORMAT,
            "compare: another process sent a run that it was not asked for; do all processes run "
            "the same program?");
    if (!status)
        at += strlen(k.identity) + 1;
    for (int i = 0; i < k.count && !status; at += pe_run_file_bytes(&k.arrays[i++]))
        memcpy(k.arrays[i].tensor.data, at, pe_run_file_bytes(&k.arrays[i]));
    return finish(&k, job, status, err);
}
