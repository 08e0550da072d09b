/* SPDX-License-Identifier: MIT */
/*
 * results_tasks.c: the tasks in results.json, and tasks.csv
 *
 * A task says what was asked and at which sizes; below it stands every encoding, with rates, their intervals
 * and the loss at each length, or with the reason why it does not take part. Seeds stand apart, so that their
 * spread is seen.
 */
#include "train/results.h"

#include <math.h>

static json_t *length_json(const pe_cell *cell, int length)
{
    json_t *seeds = json_array();
    for (int64_t s = 0; s < cell->seeds; s++)
        json_array_append_new(seeds, pe_json_number(pe_cell_accuracy(cell, s, length)));
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "length", pe_task_length_name(length), "n",
                     (json_int_t)pe_task_size(cell->task, length), "accuracy",
                     pe_json_interval(cell->accuracy[length]), "exact_match",
                     pe_json_interval(cell->exact[length]), "loss", pe_json_number(cell->loss[length]),
                     "accuracy_by_seed", seeds);
}

static json_t *lengths_json(const pe_cell *cell)
{
    json_t *array = json_array();
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            json_array_append_new(array, length_json(cell, i));
    return array;
}

/* Why it does not take part; or what came out; or nothing, where it did not finish. */
static json_t *cell_json(const pe_cell *cell)
{
    if (cell->reason[0])
        return json_pack("{s:s, s:s}", "encoding", cell->label, "does_not_apply", cell->reason);
    if (!cell->is_complete)
        return NULL;
    return json_pack("{s:s, s:s, s:b, s:I, s:I, s:o, s:o, s:i, s:o, s:{s:f}}", "encoding", cell->label,
                     "spec", cell->spec, "diverged", cell->diverged, "parameters",
                     (json_int_t)cell->runs[0].parameters, "encoding_parameters",
                     (json_int_t)cell->runs[0].encoding_parameters, "lowest_training_loss",
                     pe_json_number(cell->lowest_loss), "beyond_L", pe_json_number(cell->beyond), "rank",
                     cell->rank, "lengths", lengths_json(cell), "time", "seconds", cell->seconds);
}

static json_t *task_json(const pe_suite *suite, int index)
{
    const pe_task       *task  = suite->tasks[index];
    const pe_run_config *c     = &pe_suite_cell(suite, index, 0)->config;
    json_t              *cells = json_array();
    for (int l = 0; l < suite->label_count; l++) {
        json_t *cell = cell_json(pe_suite_cell(suite, index, suite->order[l]));
        if (cell)
            json_array_append_new(cells, cell);
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "task", task->name,
                     "title", task->title, "attention", task->full ? "full" : "causal", "L",
                     (json_int_t)task->L, "least_n", (json_int_t)task->least, "tokens_at_L",
                     (json_int_t)pe_task_trained_tokens(task), "steps", (json_int_t)c->steps, "batch",
                     (json_int_t)c->batch, "layers", (json_int_t)c->layers, "sequences",
                     (json_int_t)c->sequences, "chance", task->chance, "encodings", cells);
}

json_t *pe_json_tasks(const pe_suite *suite)
{
    json_t *array = json_array();
    for (int t = 0; suite->label_count && t < suite->task_count; t++)
        json_array_append_new(array, task_json(suite, t));
    return array;
}

/* ---------------------------------------------------------------- CSV ----------------------- */

static void write_run(FILE *to, const pe_cell *cell, int64_t s)
{
    for (int i = 0; i <= cell->config.longest; i++) {
        if (!pe_task_size(cell->task, i))
            continue;
        pe_csv_field(to, cell->task->name);
        fputc(',', to);
        pe_csv_field(to, cell->label);
        fprintf(to, ",%lld,%s,%lld", (long long)s + 1, pe_task_length_name(i),
                (long long)pe_task_size(cell->task, i));
        pe_csv_value(to, pe_cell_accuracy(cell, s, i));
        pe_csv_value(to, pe_cell_exact(cell, s, i));
        pe_csv_value(to, cell->runs[s].loss[i]);
        fputc('\n', to);
    }
}

void pe_csv_tasks(FILE *to, const pe_suite *suite)
{
    fputs("task,encoding,seed,length,n,accuracy,exact_match,loss\n", to);
    for (int i = 0; i < suite->task_count * suite->label_count; i++)
        for (int64_t s = 0; suite->cells[i].is_complete && s < suite->cells[i].seeds; s++)
            write_run(to, &suite->cells[i], s);
}
