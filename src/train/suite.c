/* SPDX-License-Identifier: MIT */
/*
 * suite.c: from a list of tasks to cells, from their runs to rates and ranks
 *
 * Rates     All test sequences of a length are asked for the same number of answers, so accuracy is the mean over
 *           sequences of the share of right ones. Answers of one sequence depend on each other: intervals are Wilson's
 *           with n = sequences, of the mean over seeds. They are about other sequences, not about other seeds.
 * Ranks     by accuracy beyond L, the mean over the tested lengths; paired bootstrap over (seeds and) sequences, and a
 *           rank is shared where the interval of the difference contains 0.
 * Best      the mean over the tasks of 1 / rank, as in Kazemnejad et al. 2023 (arXiv:2305.19466, section 4), among the
 *           tasks in which an encoding takes part.
 */
#include "train/suite.h"

#include "train/fail.h"
#include "train/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 2000, PROBE_STEPS = 4, NAME = 64 };
#define BOOTSTRAP_SEED 1

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the tasks");
}

/* ---------------------------------------------------------------- which tasks --------------- */

static posenc_status unknown(const char *name, posenc_error *err)
{
    char known[256] = "";
    for (int i = 0; pe_task_at(i); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 pe_task_at(i)->name);
    return pe_train_fail(err, POSENC_ARGUMENT, "tasks: there is no task \"%.40s\"; there are: %s; or none",
                         name, known);
}

static posenc_status add_task(const pe_task **tasks, int *count, const char *name, posenc_error *err)
{
    const pe_task *task = pe_task_find(name);
    if (!task)
        return unknown(name, err);
    for (int i = 0; i < *count; i++)
        if (tasks[i] == task)
            return pe_train_fail(err, POSENC_ARGUMENT, "tasks: %s is named twice; give it once", name);
    tasks[(*count)++] = task;
    return POSENC_OK;
}

/* tasks [PE_MOST_TASKS] of a list; each at most once, so there is room for all. */
static posenc_status read_list(const pe_task **tasks, int *count, const char *list, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    *count               = 0;
    if (!strcmp(list, "none"))
        return POSENC_OK;
    for (;;) {
        const size_t n = strcspn(list, ",");
        char         name[NAME];
        snprintf(name, sizeof name, "%.*s", (int)(n < NAME ? n : NAME - 1), list);
        status = add_task(tasks, count, name, err);
        if (status || !list[n])
            return status;
        list += n + 1;
    }
}

posenc_status pe_suite_check(const char *tasks, posenc_error *err)
{
    const pe_task *found[PE_MOST_TASKS];
    int            count;
    return read_list(found, &count, tasks, err);
}

static posenc_status choose_tasks(const pe_task **tasks, int *count, const pe_suite_config *c,
                                  posenc_error *err)
{
    posenc_status status = POSENC_OK;
    *count               = 0;
    if (c->tasks)
        return read_list(tasks, count, c->tasks, err);
    for (int i = 0; i < PE_MOST_TASKS && c->preset->tasks[i].name && !status; i++)
        status = add_task(tasks, count, c->preset->tasks[i].name, err);
    return status;
}

/* ---------------------------------------------------------------- cells --------------------- */

/* What the preset says about a task; zeros where it says nothing. */
static pe_preset_task row_of(const pe_preset *preset, const pe_task *task)
{
    for (int i = 0; i < PE_MOST_TASKS && preset->tasks[i].name; i++)
        if (!strcmp(preset->tasks[i].name, task->name))
            return preset->tasks[i];
    return (pe_preset_task){0};
}

static int64_t first_given(int64_t a, int64_t b, int64_t c)
{
    return a ? a : b ? b : c;
}

static pe_task_config config_of(const pe_suite_config *c, const pe_task *task)
{
    const pe_preset *p = c->preset;
    return (pe_task_config){.task      = task,
                            .d_model   = p->d_model,
                            .layers    = p->task_layers,
                            .heads     = p->heads,
                            .batch     = p->task_batch,
                            .sequences = p->sequences,
                            .longest   = p->longest,
                            .descent   = {.steps  = first_given(c->steps, row_of(p, task).steps, task->steps),
                                          .warmup = p->warmup,
                                          .learning_rate = p->learning_rate,
                                          .weight_decay  = p->weight_decay,
                                          .clip          = p->clip}};
}

/* One step of one sequence, and one sequence of every length: finds what has no meaning, in hundredths of a second. */
static posenc_status try_out(const pe_cell *cell, posenc_error *err)
{
    pe_task_result result;
    pe_task_config config = cell->config;
    config.descent.steps = config.batch = config.sequences = 1;
    config.seed                                            = 1;
    const posenc_status status                             = pe_task_run(&config, NULL, &result, err);
    pe_task_result_free(&result);
    return status;
}

/* Whatever a task refuses about an encoding the text has not refused, or has with a reason of its own: a line in the
   table is enough. */
static int is_reason(posenc_status status)
{
    return status == POSENC_UNSUPPORTED || status == POSENC_SHAPE || status == POSENC_SETTING ||
           status == POSENC_RANGE || status == POSENC_ARGUMENT;
}

/* An encoding of grids, beside a task on a line. */
static posenc_status cell_leave_out(pe_cell *cell)
{
    snprintf(cell->reason, sizeof cell->reason, "it is here for tasks on a grid");
    cell->is_unasked = 1;
    return POSENC_OK;
}

static posenc_status cell_create(pe_cell *cell, const pe_suite_config *c, posenc_error *err)
{
    posenc_error  why = {0};
    posenc_status status =
        pe_task_spec(cell->spec, sizeof cell->spec, &cell->config.entry, cell->label, &cell->config, &why);
    cell->config.spec = cell->spec;
    cell->is_plain    = posenc_encoding_find(cell->label) != NULL;
    cell->seeds       = first_given(c->seeds, row_of(c->preset, cell->task).seeds, c->preset->seeds);
    if (!status)
        status = try_out(cell, &why);
    if (status && is_reason(status)) {
        pe_reason_copy(cell->reason, sizeof cell->reason, &why);
        return POSENC_OK;
    }
    if (status) {
        if (err)
            *err = why;
        return status;
    }
    cell->runs     = calloc((size_t)cell->seeds, sizeof *cell->runs);
    cell->progress = calloc((size_t)cell->seeds, sizeof *cell->progress);
    cell->ended    = calloc((size_t)cell->seeds, sizeof *cell->ended);
    return cell->runs && cell->progress && cell->ended ? POSENC_OK : no_memory(err);
}

/* The preset's encodings of grids, if there is a task for them: their count, and where label is given, into labels. */
static posenc_status list_grids(int *count, char (*labels)[PE_CELL_TEXT], const pe_suite *s,
                                const pe_suite_config *c, posenc_error *err)
{
    char          spec[PE_CELL_TEXT];
    posenc_status status = POSENC_OK;
    const char   *list   = NULL;
    for (int t = 0; t < s->task_count; t++)
        list = s->tasks[t]->grid ? c->preset->grid_encodings : list;
    for (*count = 0; list && !status; ++*count) {
        list = pe_spec_next(spec, sizeof spec, list, &status, err);
        if (labels)
            memcpy(labels[*count], spec, sizeof spec);
    }
    return status;
}

static int allocate(pe_suite *s, const pe_suite_config *c, int grids)
{
    const size_t labels = (size_t)(c->label_count + grids);
    s->label_count      = c->label_count + grids;
    s->labels           = calloc(labels + 1, sizeof *s->labels);
    s->cells            = calloc((size_t)s->task_count * labels + 1, sizeof *s->cells);
    s->reciprocal       = calloc(labels + 1, sizeof *s->reciprocal);
    s->order            = calloc(labels + 1, sizeof *s->order);
    s->columns          = calloc((size_t)s->task_count + 2, sizeof *s->columns);
    return s->labels && s->cells && s->reciprocal && s->order && s->columns;
}

static posenc_status fill(pe_suite *s, const pe_suite_config *c, posenc_error *err)
{
    int           grids;
    posenc_status status = list_grids(&grids, s->labels + c->label_count, s, c, err);
    for (int l = 0; l < c->label_count; l++)
        snprintf(s->labels[l], sizeof s->labels[l], "%s", c->labels[l]);
    for (int l = 0; l < s->label_count; l++)
        s->order[l] = l;
    for (int t = 0; t < s->task_count; t++)
        for (int l = 0; l < s->label_count && !status; l++) {
            pe_cell *cell = pe_suite_cell(s, t, l);
            cell->task    = s->tasks[t];
            cell->label   = s->labels[l];
            cell->config  = config_of(c, s->tasks[t]);
            status =
                l >= c->label_count && !s->tasks[t]->grid ? cell_leave_out(cell) : cell_create(cell, c, err);
        }
    return status;
}

posenc_status pe_suite_create(pe_suite **suite, const pe_suite_config *config, posenc_error *err)
{
    pe_suite *s     = calloc(1, sizeof *s);
    int       grids = 0;
    *suite          = NULL;
    if (!s)
        return no_memory(err);
    s->tasks             = calloc(PE_MOST_TASKS, sizeof *s->tasks);
    posenc_status status = s->tasks ? choose_tasks(s->tasks, &s->task_count, config, err) : no_memory(err);
    if (!status)
        status = list_grids(&grids, NULL, s, config, err);
    if (!status)
        status = allocate(s, config, grids) ? fill(s, config, err) : no_memory(err);
    if (status)
        pe_suite_free(s);
    else
        *suite = s;
    return status;
}

static void cell_free(pe_cell *cell)
{
    for (int64_t s = 0; cell->runs && s < cell->seeds; s++)
        pe_task_result_free(&cell->runs[s]);
    free(cell->runs);
    free(cell->progress);
    free(cell->ended);
    free(cell->errors);
}

void pe_suite_free(pe_suite *suite)
{
    if (!suite)
        return;
    for (int i = 0; suite->cells && i < suite->task_count * suite->label_count; i++)
        cell_free(&suite->cells[i]);
    free(suite->tasks);
    free(suite->labels);
    free(suite->cells);
    free(suite->reciprocal);
    free(suite->order);
    free(suite->columns);
    free(suite);
}

pe_cell *pe_suite_cell(const pe_suite *suite, int task, int label)
{
    return &suite->cells[task * suite->label_count + label];
}

const pe_cell *pe_suite_find(const pe_suite *suite, const char *task, const char *encoding)
{
    for (int i = 0; suite && i < suite->task_count * suite->label_count; i++) {
        const pe_cell *cell = &suite->cells[i];
        if (cell->is_plain && !strcmp(cell->task->name, task) && !strcmp(cell->label, encoding))
            return cell;
    }
    return NULL;
}

/* ---------------------------------------------------------------- runs ---------------------- */

int64_t pe_suite_runs(const pe_suite *suite)
{
    int64_t runs = 0;
    for (int i = 0; suite && i < suite->task_count * suite->label_count; i++)
        runs += suite->cells[i].runs ? suite->cells[i].seeds : 0;
    return runs;
}

pe_cell *pe_suite_run(const pe_suite *suite, int64_t run, int64_t *seed)
{
    pe_cell *cell = suite->cells;
    for (; !cell->runs || run >= cell->seeds; cell++)
        run -= cell->runs ? cell->seeds : 0;
    *seed = run;
    return cell;
}

void pe_cell_train(pe_cell *cell, int64_t seed, posenc_error *err)
{
    pe_task_config config      = cell->config;
    config.seed                = (uint64_t)seed + 1;
    const posenc_status status = pe_task_run(&config, &cell->progress[seed], &cell->runs[seed], err);
    atomic_store(&cell->ended[seed], 1 + (int)status);
}

double pe_cell_unit(const pe_cell *cell)
{
    const pe_task_config *c = &cell->config;
    return pe_model_cost(c->d_model, c->layers, cell->task->classes,
                         c->batch * pe_task_trained_tokens(cell->task));
}

posenc_status pe_cell_estimate(const pe_cell *cell, double *seconds, posenc_error *err)
{
    pe_task_result result;
    pe_task_config config      = cell->config;
    config.descent.steps       = PROBE_STEPS < config.descent.steps ? PROBE_STEPS : config.descent.steps;
    config.sequences           = config.batch;
    config.seed                = 1;
    const posenc_status status = pe_task_run(&config, NULL, &result, err);
    *seconds = result.train_seconds / (double)config.descent.steps * (double)cell->config.descent.steps +
               result.eval_seconds / (double)config.sequences * (double)cell->config.sequences;
    pe_task_result_free(&result);
    return status;
}

/* ---------------------------------------------------------------- rates --------------------- */

static const uint16_t *right_of(const pe_cell *cell, int64_t seed, int length)
{
    return cell->runs[seed].right + length * cell->config.sequences;
}

double pe_cell_accuracy(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t   n     = cell->config.sequences;
    const uint16_t *right = right_of(cell, seed, length);
    int64_t         sum   = 0;
    if (cell->runs[seed].diverged || !pe_task_size(cell->task, length))
        return NAN;
    for (int64_t i = 0; i < n; i++)
        sum += right[i];
    return (double)sum / (double)(n * pe_task_asked(cell->task, length));
}

double pe_cell_exact(const pe_cell *cell, int64_t seed, int length)
{
    const int64_t   n = cell->config.sequences, asked = pe_task_asked(cell->task, length);
    const uint16_t *right = right_of(cell, seed, length);
    int64_t         all   = 0;
    if (cell->runs[seed].diverged)
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
        accuracy = (s ? accuracy : 0) + pe_cell_accuracy(cell, s, length) / (double)cell->seeds;
        exact    = (s ? exact : 0) + pe_cell_exact(cell, s, length) / (double)cell->seeds;
        loss     = (s ? loss : 0) + cell->runs[s].loss[length] / (double)cell->seeds;
    }
    cell->loss[length]     = loss;
    cell->accuracy[length] = pe_wilson(accuracy, cell->config.sequences);
    cell->exact[length]    = pe_wilson(exact, cell->config.sequences);
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
                share += right_of(cell, r / n, i)[r % n] / (double)pe_task_asked(cell->task, i);
        cell->errors[r] = 1 - share / lengths;
        sum += cell->errors[r];
    }
    cell->beyond = 1 - sum / (double)(cell->seeds * n);
}

static int has_ended_well(const pe_cell *cell)
{
    for (int64_t s = 0; cell->runs && s < cell->seeds; s++)
        if (atomic_load(&cell->ended[s]) != 1 + POSENC_OK)
            return 0;
    return cell->runs != NULL;
}

static posenc_status measure_cell(pe_cell *cell, posenc_error *err)
{
    const size_t n    = (size_t)(cell->seeds * cell->config.sequences);
    cell->lowest_loss = INFINITY;
    cell->rank        = 0;
    cell->is_complete = cell->diverged = 0;
    if (!has_ended_well(cell))
        return POSENC_OK;
    free(cell->errors);
    cell->errors  = malloc(n * sizeof *cell->errors);
    cell->seconds = 0;
    if (!cell->errors)
        return no_memory(err);
    for (int64_t s = 0; s < cell->seeds; s++) {
        cell->diverged |= cell->runs[s].diverged;
        cell->lowest_loss = fmin(cell->lowest_loss, cell->runs[s].lowest_loss);
        cell->seconds += (cell->runs[s].train_seconds + cell->runs[s].eval_seconds) / (double)cell->seeds;
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
    return pe_bootstrap_create(b, cell->seeds, cell->config.sequences, RESAMPLES, BOOTSTRAP_SEED, err);
}

posenc_status pe_suite_difference(const pe_cell *a, const pe_cell *b, pe_interval *difference,
                                  posenc_error *err)
{
    pe_bootstrap       *bootstrap;
    const posenc_status status = bootstrap_for(&bootstrap, a, err);
    if (status)
        return status;
    *difference = pe_bootstrap_difference(bootstrap, a->errors, b->errors);
    pe_bootstrap_free(bootstrap);
    return POSENC_OK;
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

posenc_status pe_suite_exact_difference(const pe_cell *a, const pe_cell *b, int length,
                                        pe_interval *difference, posenc_error *err)
{
    pe_bootstrap *bootstrap = NULL;
    double       *x = exact_matches(a, length), *y = exact_matches(b, length);
    posenc_status status = x && y ? bootstrap_for(&bootstrap, a, err) : no_memory(err);
    if (!status)
        *difference = pe_bootstrap_difference(bootstrap, x, y);
    pe_bootstrap_free(bootstrap);
    free(x);
    free(y);
    return status;
}

typedef struct judge {
    const pe_cell *cells;
    pe_bootstrap  *bootstrap;
} judge;

static int tells(void *self, int better, int worse)
{
    const judge *j = self;
    return pe_bootstrap_difference(j->bootstrap, j->cells[worse].errors, j->cells[better].errors).low > 0;
}

/* The encodings of one task. */
static posenc_status rank_task(pe_suite *s, int task, double *means, int *ranks, posenc_error *err)
{
    judge j   = {.cells = pe_suite_cell(s, task, 0)};
    int   any = -1;
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
    pe_rank(ranks, means, s->label_count, tells, &j);
    for (int l = 0; l < s->label_count; l++)
        pe_suite_cell(s, task, l)->rank = ranks[l];
    pe_bootstrap_free(j.bootstrap);
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

/* Best mean first, those without one last; equals stay in order. */
static void sort_labels(pe_suite *s)
{
    for (int i = 0; i < s->label_count; i++) {
        s->reciprocal[i] = reciprocal_of(s, i);
        s->order[i]      = i;
    }
    for (int i = 1; i < s->label_count; i++)
        for (int k = i; k > 0; k--) {
            const double above = s->reciprocal[s->order[k - 1]], here = s->reciprocal[s->order[k]];
            if (!(here > above || (isnan(above) && !isnan(here))))
                break;
            const int swap  = s->order[k];
            s->order[k]     = s->order[k - 1];
            s->order[k - 1] = swap;
        }
}

posenc_status pe_suite_measure(pe_suite *s, posenc_error *err)
{
    double       *means  = calloc((size_t)s->label_count + 1, sizeof *means);
    int          *ranks  = calloc((size_t)s->label_count + 1, sizeof *ranks);
    posenc_status status = means && ranks ? POSENC_OK : no_memory(err);
    for (int i = 0; i < s->task_count * s->label_count && !status; i++)
        status = measure_cell(&s->cells[i], err);
    for (int t = 0; t < s->task_count && !status; t++)
        status = rank_task(s, t, means, ranks, err);
    sort_labels(s);
    free(means);
    free(ranks);
    return status;
}
