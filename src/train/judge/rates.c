/* SPDX-License-Identifier: MIT */
/*
 * rates.c: from the runs of a suite to rates and ranks
 *
 * Rates     Accuracy is the share of right answers among all that are asked for at a length; in most tasks
 *           every sequence is asked for the same number. Intervals are Wilson's, of the mean over seeds,
 *           about other sequences and other seeds. n is not the number of answers: those of one sequence
 *           depend on each other, and seeds differ by more than sequences do. It is the number of
 *           independent answers that would have the same variance,
 *           p (1 - p) / n = p (1 - p) / sequences + spread / seeds (Kish 1965, Survey Sampling, 8.2:
 *           effective sample size), with the spread of spread.h.
 * Ranks     by accuracy beyond L, the mean over the tested lengths; differences are paired by sequence, and
 *           a rank is shared where the interval of the difference contains 0.
 * Best      the mean over the tasks of 1 / rank, as in Kazemnejad et al. 2023 (arXiv:2305.19466, section 4),
 *           among the tasks in which an encoding takes part.
 */
#include "train/judge/judge.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

static posenc_status no_memory(posenc_error *err)
{
    return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the rates of the tasks");
}

/* ---------------------------------------------------------------- rates --------------------- */

static const int64_t *right_of(const pe_cell *cell, int64_t seed, int length)
{
    return cell->runs[seed].result.right + length * cell->config.sequences;
}

static int64_t *asked_create(const pe_cell *cell, int length)
{
    const int64_t n     = cell->config.sequences;
    int64_t      *asked = malloc((size_t)n * sizeof *asked);
    if (asked)
        pe_task_asked_each(cell->task, length, n, asked);
    return asked;
}

double pe_rates_accuracy(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t  n     = cell->config.sequences;
    const int64_t *right = right_of(cell, seed, length);
    int64_t        sum = 0, all = 0;
    if (cell->runs[seed].result.diverged || !pe_task_size(cell->task, length))
        return NAN;
    int64_t *asked = asked_create(cell, length);
    for (int64_t i = 0; i < n && asked; i++) {
        sum += right[i];
        all += asked[i];
    }
    free(asked);
    return all ? (double)sum / (double)all : NAN;
}

double pe_rates_exact(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t  n     = cell->config.sequences;
    const int64_t *right = right_of(cell, seed, length);
    int64_t        all   = 0;
    if (cell->runs[seed].result.diverged)
        return NAN;
    int64_t *asked = asked_create(cell, length);
    for (int64_t i = 0; i < n && asked; i++)
        all += right[i] == asked[i];
    const double share = asked ? (double)all / (double)n : NAN;
    free(asked);
    return share;
}

static int is_tested(const pe_cell *cell, int length)
{
    return length <= cell->config.longest && pe_task_size(cell->task, length) > 0;
}

static pe_spread spread_of(const pe_cell *cell, const double *by_seed, double chance)
{
    return pe_spread_of_rate(by_seed, cell->seeds, cell->config.sequences, chance);
}

static pe_interval rate_of(const pe_cell *cell, const double *by_seed, double chance)
{
    const double n = (double)cell->config.sequences, rate = pe_stats_mean(by_seed, cell->seeds),
                 middle = (rate * n + 2) / (n + 4), one = middle * (1 - middle),
                 seeds = spread_of(cell, by_seed, chance).variance / (double)cell->seeds;
    return pe_stats_wilson(rate, one / (one / n + seeds));
}

/* by_seed [seeds] is memory. */
static void measure_length(pe_cell *cell, int length, double *by_seed)
{
    const pe_interval unmeasured = {NAN, NAN, NAN};
    cell->accuracy[length] = cell->exact[length] = unmeasured;
    cell->loss[length]                           = NAN;
    if (!is_tested(cell, length) || cell->diverged)
        return;
    for (int64_t s = 0; s < cell->seeds; s++)
        by_seed[s] = pe_rates_accuracy(cell, s, length);
    cell->accuracy[length] = rate_of(cell, by_seed, cell->task->chance);
    for (int64_t s = 0; s < cell->seeds; s++)
        by_seed[s] = pe_rates_exact(cell, s, length);
    cell->exact[length] = rate_of(cell, by_seed, 0);
    for (int64_t s = 0; s < cell->seeds; s++)
        by_seed[s] = cell->runs[s].result.loss[length];
    cell->loss[length] = pe_stats_mean(by_seed, cell->seeds);
}

/* Adds to errors [seeds, sequences] the share of wrong answers at one length. A sequence that is asked for
   nothing has none. */
static int add_errors(pe_cell *cell, int length)
{
    const int64_t n     = cell->config.sequences;
    int64_t      *asked = asked_create(cell, length);
    for (int64_t r = 0; r < cell->seeds * n && asked; r++) {
        const double all = (double)asked[r % n];
        cell->errors[r] += all > 0 ? 1 - (double)right_of(cell, r / n, length)[r % n] / all : 0;
    }
    free(asked);
    return asked != NULL;
}

/* errors and `beyond` from the lengths beyond L. */
static void measure_beyond(pe_cell *cell, double *by_seed)
{
    const int64_t n       = cell->config.sequences;
    int           lengths = 0;
    double        sum     = 0;
    cell->beyond          = NAN;
    for (int64_t r = 0; r < cell->seeds * n; r++)
        cell->errors[r] = 0;
    for (int i = PE_TASK_L + 1; i < PE_TASK_LENGTHS && !cell->diverged; i++)
        lengths += is_tested(cell, i) && add_errors(cell, i);
    if (!lengths)
        return;
    for (int64_t r = 0; r < cell->seeds * n; r++)
        sum += cell->errors[r] /= lengths;
    cell->beyond = 1 - sum / (double)(cell->seeds * n);
    for (int64_t s = 0; s < cell->seeds; s++)
        by_seed[s] = 1 - pe_stats_mean(cell->errors + s * n, n);
    cell->spread = spread_of(cell, by_seed, cell->task->chance);
}

static posenc_status measure_cell(pe_cell *cell, posenc_error *err)
{
    const size_t n    = (size_t)(cell->seeds * cell->config.sequences);
    cell->lowest_loss = INFINITY;
    cell->rank        = 0;
    cell->is_complete = cell->diverged = 0;
    if (!cell->runs || !pe_run_all_ended(cell->runs, cell->seeds))
        return POSENC_OK;
    free(cell->errors);
    cell->errors  = malloc((n + (size_t)cell->seeds) * sizeof *cell->errors); /* and memory by seed */
    cell->seconds = 0;
    if (!cell->errors)
        return no_memory(err);
    for (int64_t s = 0; s < cell->seeds; s++) {
        cell->diverged |= cell->runs[s].result.diverged;
        cell->lowest_loss = fmin(cell->lowest_loss, cell->runs[s].result.lowest_loss);
        cell->seconds +=
            (cell->runs[s].result.train_seconds + cell->runs[s].result.eval_seconds) / (double)cell->seeds;
    }
    for (int i = 0; i < PE_TASK_LENGTHS; i++)
        measure_length(cell, i, cell->errors + n);
    measure_beyond(cell, cell->errors + n);
    cell->is_complete = 1;
    return POSENC_OK;
}

/* ---------------------------------------------------------------- ranks --------------------- */

/* Is one told from the other by its answers beyond L? */
static int differs(void *self, int better, int worse)
{
    const pe_cell        *cells = self, *a = &cells[worse], *b = &cells[better];
    const pe_stats_sample one   = {a->errors, a->seeds, a->config.sequences, a->spread},
                          other = {b->errors, b->seeds, b->config.sequences, b->spread};
    return pe_stats_difference(&one, &other).low > 0;
}

/* The encodings of one task. */
static void rank_task(pe_suite *s, int task, double *means, int *ranks)
{
    pe_cell *cells = pe_suite_cell(s, task, 0);
    for (int l = 0; l < s->label_count; l++)
        means[l] = cells[l].is_complete ? 1 - cells[l].beyond : NAN; /* NaN stays one */
    pe_stats_rank(ranks, means, s->label_count, differs, cells);
    for (int l = 0; l < s->label_count; l++)
        cells[l].rank = ranks[l];
}

double pe_rates_reciprocal(const pe_suite *s, int label, int except)
{
    double sum   = 0;
    int    tasks = 0;
    for (int t = 0; t < s->task_count; t++) {
        const int rank = t == except ? 0 : pe_suite_cell(s, t, label)->rank;
        sum += rank ? 1.0 / rank : 0;
        tasks += rank > 0;
    }
    return tasks ? sum / tasks : NAN;
}

/* Best mean first, those without one last. */
static void sort_labels(pe_suite *s, double *keys)
{
    for (int i = 0; i < s->label_count; i++) {
        s->reciprocal[i] = pe_rates_reciprocal(s, i, -1);
        s->order[i]      = i;
        keys[i]          = -s->reciprocal[i];
    }
    pe_stats_sort(s->order, keys, s->label_count);
}

posenc_status pe_rates_measure(pe_suite *s, posenc_error *err)
{
    double       *means  = calloc((size_t)s->label_count + 1, sizeof *means);
    int          *ranks  = calloc((size_t)s->label_count + 1, sizeof *ranks);
    posenc_status status = means && ranks ? POSENC_OK : no_memory(err);
    for (int i = 0; i < s->task_count * s->label_count && !status; i++)
        status = measure_cell(&s->cells[i], err);
    for (int t = 0; t < s->task_count && !status; t++)
        rank_task(s, t, means, ranks);
    if (means)
        sort_labels(s, means);
    free(means);
    free(ranks);
    return status;
}
