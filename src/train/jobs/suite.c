/* SPDX-License-Identifier: MIT */
/*
 * suite.c: from a list of tasks to cells and their runs
 *
 * A cell is tried out before any work: one step of one sequence, and one sequence of every length. What that
 * refuses is no error here, unlike on the text: encodings are asked for because of the text as a rule, and
 * that one of them cannot do a task (a causal one without a mask, one on a line for a grid) is worth a line
 * in the table, not the whole run. Rates and ranks: judge/rates.c.
 */
#include "train/jobs/outcome.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static posenc_status no_memory(posenc_error *err)
{
    return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the tasks");
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

/* As many times the length of the task's longest sequence as they are on the text, up to what is tested. */
static pe_run_places places_of(const pe_compare *compare, const pe_task *task)
{
    const pe_preset *p      = &compare->config.preset;
    pe_run_places    places = compare->places;
    const int64_t    tested = pe_task_tested_tokens(task, p->longest);
    if (places.kind == PE_IN_ORDER || task->grid)
        return (pe_run_places){.kind = PE_IN_ORDER};
    places.count = places.count * pe_task_tokens(task, task->L) / p->L;
    places.count = places.count < tested ? places.count : tested;
    return places;
}

static pe_run_config config_of(const pe_compare *compare, const pe_task *task)
{
    const pe_compare_config *c = &compare->config;
    const pe_preset         *p = &c->preset;
    return (pe_run_config){.task          = task,
                           .d_model       = p->d_model,
                           .layers        = p->task_layers,
                           .heads         = p->heads,
                           .batch         = p->task_batch,
                           .places        = places_of(compare, task),
                           .sequences     = p->sequences,
                           .longest       = p->longest,
                           .steps         = first_given(c->task_steps, row_of(p, task).steps, task->steps),
                           .warmup        = p->warmup,
                           .learning_rate = p->learning_rate,
                           .weight_decay  = p->weight_decay,
                           .clip          = p->clip};
}

static posenc_status cell_create(pe_cell *cell, const pe_compare_config *c, posenc_error *err)
{
    posenc_error why = {0};
    if (cell->is_unasked) {
        snprintf(cell->reason, sizeof cell->reason, "it is here for tasks on a grid");
        return POSENC_OK;
    }
    posenc_status status = pe_run_task_spec(cell->spec, sizeof cell->spec, &cell->config.entry, cell->label,
                                            &cell->config, &why);
    cell->config.spec    = cell->spec;
    cell->is_plain       = posenc_encoding_find(cell->label) != NULL;
    cell->seeds          = first_given(c->task_seeds, row_of(&c->preset, cell->task).seeds, c->preset.seeds);
    if (!status)
        status = pe_run_try(&cell->config, &why);
    /* the task refuses the encoding: a line in the table; other errors, as of memory, end the comparison */
    if (status == POSENC_ERROR_UNSUPPORTED || status == POSENC_ERROR_SHAPE ||
        status == POSENC_ERROR_SETTING || status == POSENC_ERROR_RANGE || status == POSENC_ERROR_ARGUMENT) {
        pe_outcome_reason(cell->reason, sizeof cell->reason, &why);
        return POSENC_OK;
    }
    if (status && err)
        *err = why;
    if (status)
        return status;
    cell->runs = calloc((size_t)cell->seeds, sizeof *cell->runs);
    return cell->runs ? POSENC_OK : no_memory(err);
}

/* The preset's encodings of grids, if there is a task for them; else NULL. */
static const char *grids_of(const pe_suite *s, const pe_compare_config *c)
{
    for (int t = 0; t < s->task_count; t++)
        if (s->tasks[t]->grid)
            return c->preset.grid_encodings;
    return NULL;
}

/* Space for the encodings asked for and those of grids. */
static int allocate(pe_suite *s, const pe_compare_config *c, int asked)
{
    size_t labels = (size_t)asked + 2;
    for (const char *at = grids_of(s, c); at && *at; at++)
        labels += *at == ',';
    s->labels     = calloc(labels, sizeof *s->labels);
    s->cells      = calloc((size_t)s->task_count * labels + 1, sizeof *s->cells);
    s->reciprocal = calloc(labels, sizeof *s->reciprocal);
    s->order      = calloc(labels, sizeof *s->order);
    return s->labels && s->cells && s->reciprocal && s->order;
}

/* The encodings of the comparison, also those that have no meaning on text, then those of grids. */
static posenc_status make_cells(pe_suite *s, const pe_compare *compare, int asked, posenc_error *err)
{
    const pe_compare_config *c      = &compare->config;
    posenc_status            status = POSENC_OK;
    for (int l = 0; l < asked; l++)
        strcpy(s->labels[l],
               l < compare->count ? compare->outcomes[l].label : compare->absent[l - compare->count].label);
    s->label_count = asked;
    for (const char *list = grids_of(s, c); list && !status; s->label_count++)
        list = pe_spec_next(s->labels[s->label_count], sizeof *s->labels, list, &status, err);
    for (int l = 0; l < s->label_count; l++)
        s->order[l] = l;
    for (int t = 0; t < s->task_count; t++)
        for (int l = 0; l < s->label_count && !status; l++) {
            pe_cell *cell    = pe_suite_cell(s, t, l);
            cell->task       = s->tasks[t];
            cell->label      = s->labels[l];
            cell->config     = config_of(compare, s->tasks[t]);
            cell->is_unasked = l >= asked && !s->tasks[t]->grid; /* an encoding of grids */
            status           = cell_create(cell, c, err);
        }
    return status;
}

posenc_status pe_suite_create(pe_suite **suite, const pe_compare *c, posenc_error *err)
{
    const int asked = c->count + c->absent_count;
    pe_suite *s     = calloc(1, sizeof *s);
    *suite          = NULL;
    if (!s)
        return no_memory(err);
    posenc_status status = pe_preset_choose_tasks(s->tasks, &s->task_count, &c->config, err);
    if (!status)
        status = allocate(s, &c->config, asked) ? make_cells(s, c, asked, err) : no_memory(err);
    if (status)
        pe_suite_free(s);
    else
        *suite = s;
    return status;
}

void pe_suite_free(pe_suite *suite)
{
    if (!suite)
        return;
    for (int i = 0; suite->cells && i < suite->task_count * suite->label_count; i++) {
        pe_run_slots_free(suite->cells[i].runs, suite->cells[i].seeds);
        free(suite->cells[i].errors);
    }
    free(suite->labels);
    free(suite->cells);
    free(suite->reciprocal);
    free(suite->order);
    free(suite);
}

pe_cell *pe_suite_cell(const pe_suite *suite, int task, int label)
{
    return &suite->cells[task * suite->label_count + label];
}

/* ---------------------------------------------------------------- runs ---------------------- */

int64_t pe_suite_runs(const pe_suite *suite)
{
    int64_t runs = 0;
    for (int i = 0; suite && i < suite->task_count * suite->label_count; i++)
        runs += suite->cells[i].runs ? suite->cells[i].seeds : 0;
    return runs;
}

pe_cell *pe_suite_cell_of_run(const pe_suite *suite, int64_t run, int64_t *seed)
{
    pe_cell *cell = suite->cells;
    for (; !cell->runs || run >= cell->seeds; cell++)
        run -= cell->runs ? cell->seeds : 0;
    *seed = run;
    return cell;
}
