/* SPDX-License-Identifier: MIT */
/*
 * suite.c: from a list of tasks to cells and their runs
 *
 * A cell is tried out before any work: one step of one sequence, and one sequence of every length. What that
 * refuses is no error here, unlike on the text: encodings are asked for because of the text as a rule, and
 * that one of them cannot do a task (a causal one without a mask, one on a line for a grid) is worth a line
 * in the table, not the whole run. Rates and ranks: suite_rates.c.
 */
#include "train/jobs/suite.h"

#include "train/fail.h"
#include "train/jobs/outcome.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

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

posenc_status pe_compare_tasks_check(const char *tasks, posenc_error *err)
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

static pe_run_config config_of(const pe_suite_config *c, const pe_task *task)
{
    const pe_preset *p = c->preset;
    return (pe_run_config){.task          = task,
                           .d_model       = p->d_model,
                           .layers        = p->task_layers,
                           .heads         = p->heads,
                           .batch         = p->task_batch,
                           .sequences     = p->sequences,
                           .longest       = p->longest,
                           .steps         = first_given(c->steps, row_of(p, task).steps, task->steps),
                           .warmup        = p->warmup,
                           .learning_rate = p->learning_rate,
                           .weight_decay  = p->weight_decay,
                           .clip          = p->clip};
}

/* Whatever a task refuses about an encoding the text has not refused, or has with a reason of its own: a line
   in the table is enough. */
static int is_reason(posenc_status status)
{
    return status == POSENC_UNSUPPORTED || status == POSENC_SHAPE || status == POSENC_SETTING ||
           status == POSENC_RANGE || status == POSENC_ARGUMENT;
}

static posenc_status cell_create(pe_cell *cell, const pe_suite_config *c, posenc_error *err)
{
    posenc_error why = {0};
    if (cell->is_unasked) {
        snprintf(cell->reason, sizeof cell->reason, "it is here for tasks on a grid");
        return POSENC_OK;
    }
    posenc_status status =
        pe_task_spec(cell->spec, sizeof cell->spec, &cell->config.entry, cell->label, &cell->config, &why);
    cell->config.spec = cell->spec;
    cell->is_plain    = posenc_encoding_find(cell->label) != NULL;
    cell->seeds       = first_given(c->seeds, row_of(c->preset, cell->task).seeds, c->preset->seeds);
    if (!status)
        status = pe_run_try(&cell->config, &why);
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

/* The preset's encodings of grids, if there is a task for them; else NULL. */
static const char *grids_of(const pe_suite *s, const pe_suite_config *c)
{
    for (int t = 0; t < s->task_count; t++)
        if (s->tasks[t]->grid)
            return c->preset->grid_encodings;
    return NULL;
}

/* For as many labels as those lists have places. */
static int allocate(pe_suite *s, const pe_suite_config *c)
{
    size_t labels = (size_t)c->label_count + 1;
    for (const char *at = grids_of(s, c); at && *at; at++)
        labels += *at == ',';
    labels++;
    s->labels     = calloc(labels, sizeof *s->labels);
    s->cells      = calloc((size_t)s->task_count * labels + 1, sizeof *s->cells);
    s->reciprocal = calloc(labels, sizeof *s->reciprocal);
    s->order      = calloc(labels, sizeof *s->order);
    s->columns    = calloc((size_t)s->task_count + 2, sizeof *s->columns);
    return s->labels && s->cells && s->reciprocal && s->order && s->columns;
}

static posenc_status fill(pe_suite *s, const pe_suite_config *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int l = 0; l < c->label_count; l++)
        snprintf(s->labels[l], sizeof s->labels[l], "%s", c->labels[l]);
    s->label_count = c->label_count;
    for (const char *list = grids_of(s, c); list && !status; s->label_count++)
        list = pe_spec_next(s->labels[s->label_count], sizeof *s->labels, list, &status, err);
    for (int l = 0; l < s->label_count; l++)
        s->order[l] = l;
    for (int t = 0; t < s->task_count; t++)
        for (int l = 0; l < s->label_count && !status; l++) {
            pe_cell *cell    = pe_suite_cell(s, t, l);
            cell->task       = s->tasks[t];
            cell->label      = s->labels[l];
            cell->config     = config_of(c, s->tasks[t]);
            cell->is_unasked = l >= c->label_count && !s->tasks[t]->grid; /* an encoding of grids */
            status           = cell_create(cell, c, err);
        }
    return status;
}

posenc_status pe_suite_create(pe_suite **suite, const pe_suite_config *config, posenc_error *err)
{
    pe_suite *s = calloc(1, sizeof *s);
    *suite      = NULL;
    if (!s)
        return no_memory(err);
    s->tasks             = calloc(PE_MOST_TASKS, sizeof *s->tasks);
    posenc_status status = s->tasks ? choose_tasks(s->tasks, &s->task_count, config, err) : no_memory(err);
    if (!status)
        status = allocate(s, config) ? fill(s, config, err) : no_memory(err);
    if (status)
        pe_suite_free(s);
    else
        *suite = s;
    return status;
}

static void cell_free(pe_cell *cell)
{
    for (int64_t s = 0; cell->runs && s < cell->seeds; s++)
        pe_run_result_free(&cell->runs[s]);
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
