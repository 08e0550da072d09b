/* SPDX-License-Identifier: MIT */
/*
 * compare.c: what is to be compared, checked before anything is done
 *
 * Whatever can be wrong is found before the work begins: each encoding is tried out on one window of the
 * length that evaluation needs (outcome.c), the directory is tried, gnuplot is asked.
 * compare_train.c does the work; compare_estimate.c says how long it will take.
 */
#include "train/compare.h"

#include "base/parallel.h"
#include "plot/plot.h"
#include "train/jobs/pool.h"
#include "train/jobs/directory.h"
#include "train/jobs/extension.h"
#include "base/status.h"
#include "train/jobs/job.h"
#include "train/jobs/level.h"
#include "train/jobs/store.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_OUT_PART = 10 };

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_numbers(const pe_compare_config *config, posenc_error *err)
{
    if (config->workers < 0 || config->workers > PE_MOST_WORKERS)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "compare: --threads is %lld; it must be 1 to %d",
                       (long long)config->workers, PE_MOST_WORKERS);
    return pe_preset_check(&config->preset, err);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The text as ids, whatever it was given as. */
static posenc_status make_ids(pe_compare *c, posenc_error *err)
{
    const pe_compare_config *config     = &c->config;
    int64_t                  vocabulary = 0;
    if (!config->tokens) {
        c->ids = malloc(((size_t)config->text_size + 1) * sizeof *c->ids);
        if (!c->ids)
            return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for a text of %lld bytes",
                           (long long)config->text_size);
    }
    for (int64_t i = 0; i < config->text_size; i++)
        if (config->tokens)
            vocabulary = config->tokens[i] < vocabulary ? vocabulary : config->tokens[i] + 1;
        else
            c->ids[i] = config->text[i];
    c->text        = (pe_text){.ids        = config->tokens ? config->tokens : c->ids,
                               .size       = config->text_size,
                               .train_size = config->text_size - config->text_size / HELD_OUT_PART,
                               .vocabulary = vocabulary};
    c->fingerprint = pe_run_text_fingerprint(&c->text);
    if (config->token_bytes && config->token_kinds < vocabulary)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "--token-bytes: it has %lld numbers and the highest id of --tokens is %lld; it must have "
            "one for each id",
            (long long)config->token_kinds, (long long)vocabulary - 1);
    return POSENC_OK;
}

/* Adds a sentence to c->warning. */
PE_PRINTF(2, 3) static void warn(pe_compare *c, const char *format, ...)
{
    va_list values;
    if (c->warning[0])
        strncat(c->warning, "; ", sizeof c->warning - 1 - strlen(c->warning));
    const size_t used = strlen(c->warning);
    va_start(values, format);
    vsnprintf(c->warning + used, sizeof c->warning - used, format, values);
    va_end(values);
}

/* How many bytes the tokens of each bucket have that are predicted, in the mean. */
static void measure_token_bytes(pe_compare *c)
{
    const int64_t       L = c->config.preset.L, length = c->config.preset.reach * L;
    const pe_run_config run = {.text = &c->text, .L = L, .windows = c->windows};
    for (int b = 0; b < PE_MOST_BUCKETS; b++) {
        const int     whole  = c->config.bidirectional; /* every length reads all of a window */
        const int     scored = !whole && b <= PE_AT_L;
        const int64_t count  = scored ? pe_run_scored_windows(&run) : c->windows;
        const int64_t first  = whole ? 0 : pe_stats_bucket_edge(L, b),
                      end    = whole ? length : pe_stats_bucket_edge(L, b + 1);
        double sum           = 0;
        c->token_bytes[b]    = NAN;
        if (!c->config.token_bytes || !c->text.vocabulary || b > pe_stats_furthest(c->config.preset.reach))
            continue;
        for (int64_t w = 0; w < count; w++) {
            const uint16_t *ids =
                scored ? pe_run_scored_window(&run, w) : pe_text_window(&c->text, length, count, w);
            for (int64_t p = first; p < end; p++)
                sum += c->config.token_bytes[ids[p + 1]];
        }
        c->token_bytes[b] = sum / (double)(count * (end - first));
    }
    c->unit = isfinite(c->token_bytes[PE_AT_L]) ? c->token_bytes[PE_AT_L] : 1;
}

static posenc_status set_text(pe_compare *c, posenc_error *err)
{
    const pe_preset    *p      = &c->config.preset;
    const int64_t       window = p->reach * p->L, enough = HELD_OUT_PART * (PE_FEWEST_WINDOWS * window + 1);
    const char         *units  = c->config.tokens ? "tokens" : "bytes";
    const posenc_status status = make_ids(c, err);
    if (status)
        return status;
    c->windows = smaller(pe_text_windows(&c->text, window), p->windows);
    if (c->windows < 1)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "the text has %lld %s; its last tenth must hold one window of %lld %s, so at least "
            "%lld %s are needed (%lld for all checks): give a longer text, or several, or a smaller "
            "--length or --reach",
            (long long)c->text.size, units, (long long)window + 1, units,
            (long long)(HELD_OUT_PART * (window + 1)), units, (long long)enough);
    measure_token_bytes(c);
    if (c->windows < PE_FEWEST_WINDOWS)
        warn(c,
             "the last tenth of the text holds %lld windows of %lld %s and %d are needed for reliable "
             "numbers (a text of %lld %s); checks 10-13 do not apply",
             (long long)c->windows, (long long)window, units, PE_FEWEST_WINDOWS, (long long)enough, units);
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

/* Entries of a SPEC per layer that no layer reaches. */
static void warn_of_layers(pe_compare *c)
{
    const int64_t layers = c->config.preset.layers;
    for (int i = 0; i < c->count; i++) {
        posenc_layer read;
        if (!posenc_layer_read(&read, c->outcomes[i].label, 0, NULL) && read.period > layers)
            warn(c,
                 "%.80s is for %lld layers and the model has %lld: what stands behind them is not used "
                 "(--layers %lld)",
                 c->outcomes[i].label, (long long)read.period, (long long)layers, (long long)read.period);
    }
}

/* Trials that end before the rate has come to its peak. */
static void warn_of_trials(pe_compare *c)
{
    const pe_preset *p     = &c->config.preset;
    const int64_t    steps = pe_trial_steps(p->steps, c->trials->share);
    if (pe_trial_runs(c->trials) && steps < 2 * p->warmup)
        warn(c,
             "trials of learning rates are hardly longer than their warm-up (%lld of %lld steps) and say "
             "little; take more steps, or one rate (--learning-rate)",
             (long long)smaller(p->warmup, steps), (long long)steps);
}

/* Spreads between seeds were measured on bytes. */
static void warn_of_tokens(pe_compare *c)
{
    if (c->text.vocabulary && !c->config.token_bytes)
        warn(c, "intervals are those of losses per byte, so too narrow for tokens, whose bytes are not known "
                "(--token-bytes)");
}

static posenc_status check_and_set(pe_compare *c, posenc_error *err)
{
    const pe_preset *p      = &c->config.preset;
    posenc_status    status = check_numbers(&c->config, err);
    if (!status && p->positions)
        status = pe_run_positions_read(&c->places, p->positions, p->L, err);
    if (!status)
        status = set_text(c, err);
    if (!status)
        status = pe_outcome_list_create(c, err);
    if (!status)
        warn_of_layers(c);
    if (!status)
        warn_of_tokens(c);
    if (!status)
        status = pe_trial_list_create(c, err);
    if (!status)
        warn_of_trials(c);
    if (!status)
        status = pe_suite_create(&c->suite, c, err);
    if (!status)
        status = pe_extension_create(&c->extension, c, err);
    if (!status)
        status = pe_level_list_create(c, err);
    if (!status)
        pe_job_set_rates(c, 0);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_directory_check(c->config.directory, err);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_gnuplot_ready(err);
    if (!status && c->config.directory)
        status = pe_store_look(c, err);
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
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory");
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
    free(compare->ids);
    free(compare->absent);
    free(compare->order[0]);
    pe_suite_free(compare->suite);
    pe_extension_free(compare->extension);
    pe_level_list_free(compare->levels);
    pe_trial_list_free(compare->trials);
    for (int i = 0; i < PE_ORDERS; i++)
        pe_order_free(compare->orders[i]);
    free(compare->properties);
    pe_store_free(compare->store);
    free(compare->notes);
    free(compare);
}

pe_compare_words pe_compare_says(const pe_compare *compare)
{
    pe_compare_words words = {.warning = compare->warning[0] ? compare->warning : NULL,
                              .advice  = pe_spread_advice(compare->config.preset.seeds),
                              .notes   = compare->notes,
                              .runs    = compare->runs,
                              .missing = compare->missing,
                              .rates   = compare->rates_note[0] ? compare->rates_note : NULL,
                              .orders  = compare->orders_note[0] ? compare->orders_note : NULL};
    for (int i = 0; i < compare->count; i++)
        words.finished += compare->outcomes[i].is_complete;
    return words;
}
