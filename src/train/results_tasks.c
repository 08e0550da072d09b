/* SPDX-License-Identifier: MIT */
/* results_tasks.c: tasks.csv */
#include "train/results.h"

#include <math.h>

void pe_csv_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

void pe_csv_value(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, ",%.9g", x);
    else
        fputc(',', to);
}

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
