/* SPDX-License-Identifier: MIT */
/*
 * rates.c: from the runs of a suite to rates and ranks
 *
 * Rates     All test sequences of a length are asked for the same number of answers, so accuracy is the mean
 *           over sequences of the share of right ones. Answers of one sequence depend on each other:
 *           intervals are Wilson's with n = sequences, of the mean over seeds. They are about other
 *           sequences, not about other seeds.
 * Ranks     by accuracy beyond L, the mean over the tested lengths; paired bootstrap over (seeds and)
 *           sequences, and a rank is shared where the interval of the difference contains 0.
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

double pe_rates_accuracy(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t  n     = cell->config.sequences;
    const int64_t *right = right_of(cell, seed, length);
    int64_t        sum   = 0;
    if (cell->runs[seed].result.diverged || !pe_task_size(cell->task, length))
        return NAN;
    for (int64_t i = 0; i < n; i++)
        sum += right[i];
    return (double)sum / (double)(n * pe_task_asked(cell->task, length));
}

double pe_rates_exact(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t  n = cell->config.sequences, asked = pe_task_asked(cell->task, length);
    const int64_t *right = right_of(cell, seed, length);
    int64_t        all   = 0;
    if (cell->runs[seed].result.diverged)
        return NAN;
    for (int64_t i = 0; i < n; i++)
        all += right[i] == asked;
    return (double)all / (double)n;
}

static int is_tested(const pe_cell *cell, int length)
{
    return length <= cell->config.longest && pe_task_size(cell->task, length) > 0;
}

static void measure_length(pe_cell *cell, int length)
{
    double accuracy = NAN, exact = NAN, loss = NAN;
    for (int64_t s = 0; s < cell->seeds && is_tested(cell, length) && !cell->diverged; s++) {
        accuracy = (s ? accuracy : 0) + pe_rates_accuracy(cell, s, length) / (double)cell->seeds;
        exact    = (s ? exact : 0) + pe_rates_exact(cell, s, length) / (double)cell->seeds;
        loss     = (s ? loss : 0) + cell->runs[s].result.loss[length] / (double)cell->seeds;
    }
    cell->loss[length]     = loss;
    cell->accuracy[length] = pe_stats_wilson(accuracy, cell->config.sequences);
    cell->exact[length]    = pe_stats_wilson(exact, cell->config.sequences);
}

/* errors and `beyond` from the lengths beyond L. */
static void measure_beyond(pe_cell *cell)
{
    const int64_t n       = cell->config.sequences;
    int           lengths = 0;
    for (int i = PE_TASK_L + 1; i < PE_TASK_LENGTHS; i++)
        lengths += is_tested(cell, i);
    cell->beyond = NAN;
    if (!lengths || cell->diverged)
        return;
    double sum = 0;
    for (int64_t r = 0; r < cell->seeds * n; r++) {
        double share = 0;
        for (int i = PE_TASK_L + 1; i < PE_TASK_LENGTHS; i++)
            if (is_tested(cell, i))
                share += (double)right_of(cell, r / n, i)[r % n] / (double)pe_task_asked(cell->task, i);
        cell->errors[r] = 1 - share / lengths;
        sum += cell->errors[r];
    }
    cell->beyond = 1 - sum / (double)(cell->seeds * n);
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
    cell->errors  = malloc(n * sizeof *cell->errors);
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
        measure_length(cell, i);
    measure_beyond(cell);
    cell->is_complete = 1;
    return POSENC_OK;
}

/* ---------------------------------------------------------------- ranks --------------------- */

static posenc_status bootstrap_for(pe_bootstrap **b, const pe_cell *cell, posenc_error *err)
{
    return pe_stats_bootstrap_create(b, cell->seeds, cell->config.sequences, PE_RESAMPLES, PE_BOOTSTRAP_SEED,
                                     err);
}

/* 1 for each sequence with an exact match. */
static double *exact_matches(const pe_cell *cell, int length)
{
    const int64_t n = cell->config.sequences, asked = pe_task_asked(cell->task, length);
    double       *x = malloc((size_t)(cell->seeds * n) * sizeof *x);
    for (int64_t r = 0; x && r < cell->seeds * n; r++)
        x[r] = right_of(cell, r / n, length)[r % n] == asked;
    return x;
}

posenc_status pe_rates_exact_difference(const pe_cell *a, const pe_cell *b, int length,
                                        pe_interval *difference, posenc_error *err)
{
    pe_bootstrap *bootstrap = NULL;
    double       *x = exact_matches(a, length), *y = exact_matches(b, length);
    posenc_status status = x && y ? bootstrap_for(&bootstrap, a, err) : no_memory(err);
    if (!status)
        *difference = pe_stats_bootstrap_difference(bootstrap, x, y);
    pe_stats_bootstrap_free(bootstrap);
    free(x);
    free(y);
    return status;
}

typedef struct task_ranking {
    const pe_cell *cells;
    pe_bootstrap  *bootstrap;
} task_ranking;

static int differs(void *self, int better, int worse)
{
    const task_ranking *j = self;
    return pe_stats_bootstrap_difference(j->bootstrap, j->cells[worse].errors, j->cells[better].errors).low >
           0;
}

/* The encodings of one task. */
static posenc_status rank_task(pe_suite *s, int task, double *means, int *ranks, posenc_error *err)
{
    task_ranking j   = {.cells = pe_suite_cell(s, task, 0)};
    int          any = -1;
    for (int l = 0; l < s->label_count; l++) {
        const pe_cell *cell = &j.cells[l];
        means[l]            = cell->is_complete ? 1 - cell->beyond : NAN; /* NaN stays one */
        any                 = isnan(means[l]) ? any : l;
    }
    if (any < 0)
        return POSENC_OK;
    const posenc_status status = bootstrap_for(&j.bootstrap, &j.cells[any], err);
    if (status)
        return status;
    pe_stats_rank(ranks, means, s->label_count, differs, &j);
    for (int l = 0; l < s->label_count; l++)
        pe_suite_cell(s, task, l)->rank = ranks[l];
    pe_stats_bootstrap_free(j.bootstrap);
    return POSENC_OK;
}

static double reciprocal_of(const pe_suite *s, int label)
{
    double sum   = 0;
    int    tasks = 0;
    for (int t = 0; t < s->task_count; t++) {
        const int rank = pe_suite_cell(s, t, label)->rank;
        sum += rank ? 1.0 / rank : 0;
        tasks += rank > 0;
    }
    return tasks ? sum / tasks : NAN;
}

/* Best mean first, those without one last. */
static void sort_labels(pe_suite *s, double *keys)
{
    for (int i = 0; i < s->label_count; i++) {
        s->reciprocal[i] = reciprocal_of(s, i);
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
        status = rank_task(s, t, means, ranks, err);
    if (means)
        sort_labels(s, means);
    free(means);
    free(ranks);
    return status;
}
