/* SPDX-License-Identifier: MIT */
/*
 * compare.c: what is to be compared, checked before anything is done; and how long it will take
 *
 * Whatever can be wrong is found before the work begins: each encoding is tried out on one window of the
 * length that evaluation needs (outcome.c), the directory is tried, gnuplot is asked.
 * compare_train.c does the work.
 */
#include "train/compare.h"

#include "base/parallel.h"
#include "plot/plot.h"
#include "train/jobs/pool.h"
#include "train/jobs/directory.h"
#include "train/jobs/extension.h"
#include "base/status.h"
#include "train/jobs/job.h"
#include "train/jobs/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_OUT_PART = 10, PROBE_STEPS = 4, PROBE_WINDOWS = 8 };

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_numbers(const pe_compare_config *config, posenc_error *err)
{
    const pe_preset *p = &config->preset;
    const struct {
        const char *name;
        int64_t     value, low, high;
    } rows[] = {{"the number of steps", p->steps, 1, 100000000},
                {"the number of seeds", p->seeds, 1, 1000},
                {"the number of threads", config->workers, 0, PE_MOST_WORKERS},
                {"L", p->L, PE_SHORTEST_L, 65536},
                {"the width", p->d_model, 1, 65536},
                {"the number of heads", p->heads, 1, p->d_model},
                {"the number of windows", p->windows, 1, 1000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].low || rows[i].value > rows[i].high)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "compare: %s is %lld; it must be %lld to %lld",
                           rows[i].name, (long long)rows[i].value, (long long)rows[i].low,
                           (long long)rows[i].high);
    if (p->L % 2 || p->d_model % p->heads)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "compare: L must be even and the heads must divide the width");
    return POSENC_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static posenc_status set_text(pe_compare *c, posenc_error *err)
{
    const pe_compare_config *config = &c->config;
    const int64_t            window = PE_REACH * config->preset.L;
    c->text =
        (pe_text){config->text, config->text_size, config->text_size - config->text_size / HELD_OUT_PART};
    c->fingerprint       = pe_run_fingerprint(config->text, (size_t)config->text_size);
    c->windows           = smaller(pe_text_windows(&c->text, config->preset.L), config->preset.windows);
    const int64_t enough = HELD_OUT_PART * (PE_FEWEST_WINDOWS * window + 1);
    if (c->windows < 1)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "the text has %lld bytes; its last tenth must hold one window of %lld bytes, so at "
                       "least %lld bytes are needed (%lld for all checks): give a longer text, or several",
                       (long long)config->text_size, (long long)window + 1,
                       (long long)(HELD_OUT_PART * (window + 1)), (long long)enough);
    if (c->windows < PE_FEWEST_WINDOWS)
        snprintf(c->warning, sizeof c->warning,
                 "the last tenth of the text holds %lld windows of %lld bytes and %d are needed for reliable "
                 "numbers (a text of %lld bytes); checks 10-13 do not apply",
                 (long long)c->windows, (long long)window, PE_FEWEST_WINDOWS, (long long)enough);
    return POSENC_OK;
}

/* "model name : ..." of the first processor, where the system tells. */
static void name_processor(char *name, size_t n)
{
    char  line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(name, n, "unknown processor");
    while (info && fgets(line, sizeof line, info)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, n, "%.100s", value + 2);
        break;
    }
    if (info)
        fclose(info);
}

static posenc_status check_and_set(pe_compare *c, posenc_error *err)
{
    posenc_status status = check_numbers(&c->config, err);
    if (!status)
        status = set_text(c, err);
    if (!status)
        status = pe_outcome_list_create(c, err);
    if (!status)
        status = pe_suite_create(&c->suite, c, err);
    if (!status)
        status = pe_extension_create(&c->extension, c, err);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_directory_check(c->config.directory, err);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_gnuplot_ready(err);
    if (!status && c->config.directory)
        status = pe_store_look(c, err);
    if (!status)
        status = pe_stats_bootstrap_create(&c->bootstrap, c->config.preset.seeds, c->windows, PE_RESAMPLES,
                                           PE_BOOTSTRAP_SEED, err);
    const int64_t usual = pe_ranks_count() == 1 ? pe_parallel_processors() : 1;
    if (!status)
        c->workers = smaller(c->config.workers ? c->config.workers : usual, pe_job_count(c));
    return status;
}

posenc_status pe_compare_create(pe_compare **compare, const pe_compare_config *config, posenc_error *err)
{
    pe_compare *c = calloc(1, sizeof *c);
    *compare      = NULL;
    if (!c)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: no memory");
    c->config    = *config;
    c->reference = -1;
    name_processor(c->machine, sizeof c->machine);
    const posenc_status status = pe_ranks_agree(check_and_set(c, err), err);
    if (status) {
        pe_compare_free(c);
        return status;
    }
    *compare = c;
    return POSENC_OK;
}

void pe_compare_free(pe_compare *compare)
{
    if (!compare)
        return;
    for (int i = 0; i < compare->count; i++)
        pe_outcome_free(&compare->outcomes[i], compare->config.preset.seeds);
    free(compare->outcomes);
    free(compare->absent);
    free(compare->order[0]);
    pe_suite_free(compare->suite);
    pe_extension_free(compare->extension);
    free(compare->properties);
    pe_store_free(compare->store);
    free(compare->notes);
    pe_stats_bootstrap_free(compare->bootstrap);
    free(compare);
}

pe_compare_words pe_compare_says(const pe_compare *compare)
{
    pe_compare_words words = {compare->warning[0] ? compare->warning : NULL, compare->notes, 0};
    for (int i = 0; i < compare->count; i++)
        words.finished += compare->outcomes[i].is_complete;
    return words;
}

/* ---------------------------------------------------------------- estimate ------------------ */

/* A few steps and a batch of windows or sequences, scaled up; a unit of a follow-up takes about as long as a
 * step. */
static posenc_status probe(const pe_job *j, double *seconds, posenc_error *err)
{
    pe_run_result result;
    pe_run_config config  = j->config;
    config.followup       = NULL;
    const int64_t further = pe_run_work(&j->config) - pe_run_work(&config);
    config.steps          = smaller(PROBE_STEPS, config.steps);
    config.windows        = smaller(PROBE_WINDOWS, config.windows);
    config.sequences      = config.batch;
    config.measures       = 0;
    config.seed           = 1;

    const posenc_status status = pe_run(&config, NULL, &result, err);
    const double        read   = j->cell ? (double)j->config.sequences / (double)config.sequences
                                         : (double)j->config.windows / (double)config.windows;
    *seconds = result.train_seconds / (double)config.steps * (double)(j->config.steps + further) +
               result.eval_seconds * read;
    pe_run_result_free(&result);
    return status;
}

posenc_status pe_compare_estimate(pe_compare *compare, double *seconds, posenc_error *err)
{
    double      total = 0, longest = 0, one = 0;
    const void *probed = NULL;
    for (int64_t job = 0; job < pe_job_count(compare); job++) {
        const pe_job  j      = pe_job_at(compare, job);
        const void   *what   = j.cell ? (const void *)j.cell : j.outcome;
        posenc_status status = POSENC_OK;
        if (atomic_load(j.ended))
            continue;
        if (what != probed) /* the other seeds take as long */
            status = probe(&j, &one, err);
        if (status)
            return status;
        probed = what;
        total += one;
        longest = fmax(longest, one);
    }
    *seconds = fmax(longest, total / (double)(compare->workers * pe_ranks_count()));
    return POSENC_OK;
}
