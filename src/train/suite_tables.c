/* SPDX-License-Identifier: MIT */
/*
 * suite_tables.c: the tasks as tables: what will be trained, and how right it was
 *
 * One row per encoding and one column per task keeps the whole on a terminal: a cell has the accuracy at L,
 * x2, x4 (x8) behind each other. A page has room for all lengths, and for intervals: report_tasks.c.
 */
#include "train/suite.h"

#include "train/fail.h"
#include "train/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE = 512 };

/* The lengths of a cell in the small table. */
static const int shown[] = {PE_TASK_L, PE_TASK_2, PE_TASK_4, PE_TASK_8};

/* "1.00 0.98 0.90" */
static void put_cell(pe_table *t, int row, int column, const pe_cell *cell)
{
    char   text[64] = "";
    size_t used     = 0;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (cell->is_complete && !isnan(cell->accuracy[shown[i]].value) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.2f", used ? " " : "",
                                     cell->accuracy[shown[i]].value);
    pe_table_set(t, row, column, "%s", cell->diverged ? "diverged" : used ? text : "-");
}

/* Reasons are said once per task and reason, with all encodings that have it. */
static void add_reasons(const pe_suite *s, int task, pe_table *t)
{
    for (int l = 0; l < s->label_count; l++) {
        const pe_cell *cell      = pe_suite_cell(s, task, l);
        char           all[NOTE] = "";
        int            is_first  = cell->reason[0] && !cell->is_unasked;
        for (int k = 0; k < s->label_count && is_first; k++) {
            const pe_cell *other = pe_suite_cell(s, task, k);
            if (strcmp(other->reason, cell->reason) != 0)
                continue;
            is_first = k >= l;
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.60s", all[0] ? ", " : "",
                     other->label);
        }
        if (is_first)
            pe_table_note(t, "%.200s cannot do %s: %.200s.", all, cell->task->name, cell->reason);
    }
}

static int count_unfinished(const pe_suite *s)
{
    int count = 0;
    for (int i = 0; i < s->task_count * s->label_count; i++)
        count += s->cells[i].runs && !s->cells[i].is_complete;
    return count;
}

static void add_notes(const pe_suite *s, pe_table *t)
{
    pe_table_note(t, "Tasks: share of right answers at the trained length L, at x2 and x4 (as far as "
                     "tested); 1 is all. --dry-run says what each is, and what chance would bring.");
    pe_table_note(
        t,
        "1/rank: mean over the tasks tested beyond L, ranked there; ranks are shared where the paired 95 %% "
        "interval contains 0.");
    if (count_unfinished(s))
        pe_table_note(t, "%d cells did not finish and are left out.", count_unfinished(s));
    for (int task = 0; task < s->task_count; task++)
        add_reasons(s, task, t);
}

/* encoding, one column per task, 1/rank */
static void set_columns(pe_suite *s)
{
    s->columns[0] = (pe_column){"encoding", "as it was asked for", 1, 0};
    for (int i = 0; i < s->task_count; i++)
        s->columns[1 + i] = (pe_column){s->tasks[i]->name, s->tasks[i]->title, 1, 0};
    s->columns[1 + s->task_count] =
        (pe_column){"1/rank", "mean over tasks of 1 / rank beyond the trained length", 0, 0};
}

posenc_status pe_suite_table(const pe_suite *suite, pe_table *table, posenc_error *err)
{
    pe_suite           *s    = (pe_suite *)suite; /* whose columns the table points to */
    const int           rows = s->task_count ? s->label_count : 0;
    const posenc_status status =
        (set_columns(s), pe_table_open(table, s->columns, s->task_count + 2, rows, err));
    for (int row = 0; row < rows && !status; row++) {
        const int label = s->order[row];
        pe_table_set(table, row, 0, "%s", s->labels[label]);
        for (int t = 0; t < s->task_count; t++)
            put_cell(table, row, 1 + t, pe_suite_cell(s, t, label));
        if (isnan(s->reciprocal[label]))
            pe_table_set(table, row, 1 + s->task_count, "-");
        else
            pe_table_set(table, row, 1 + s->task_count, "%.2f", s->reciprocal[label]);
    }
    if (!status && rows)
        add_notes(s, table);
    return status;
}

/* ---------------------------------------------------------------- plan ---------------------- */

/* "8 16 24 32 64" */
static void list_sizes(char *text, size_t n, const pe_run_config *c)
{
    size_t used = 0;
    text[0]     = 0;
    for (int i = 0; i <= c->longest && used < n; i++)
        if (pe_task_size(c->task, i))
            used += (size_t)snprintf(text + used, n - used, "%s%lld", used ? " " : "",
                                     (long long)pe_task_size(c->task, i));
}

posenc_status pe_suite_plan(const pe_suite *suite, pe_table *table, posenc_error *err)
{
    static const pe_column heads[] = {{"task", "posenc compare --tasks NAME,...", 1, 0},
                                      {"what is asked", "of the model", 1, 0},
                                      {"mask", "causal, or none", 1, 0},
                                      {"n", "sizes in training", 1, 0},
                                      {"tested at", "sizes", 1, 0},
                                      {"steps", "of training", 0, 0},
                                      {"seeds", "runs per encoding", 0, 0},
                                      {"chance", "accuracy without knowing anything", 0, 0}};
    const int              rows    = suite->label_count ? suite->task_count : 0;
    const posenc_status    status  = pe_table_open(table, heads, sizeof heads / sizeof *heads, rows, err);
    for (int t = 0; t < rows && !status; t++) {
        const pe_task *task = suite->tasks[t];
        const pe_cell *cell = pe_suite_cell(suite, t, 0);
        char           sizes[64];
        list_sizes(sizes, sizeof sizes, &cell->config);
        pe_table_set(table, t, 0, "%s", task->name);
        pe_table_set(table, t, 1, "%s", task->title);
        pe_table_set(table, t, 2, "%s", task->full ? "none" : "causal");
        if (task->least == task->L)
            pe_table_set(table, t, 3, "%lld", (long long)task->L);
        else
            pe_table_set(table, t, 3, "%lld..%lld", (long long)task->least, (long long)task->L);
        pe_table_set(table, t, 4, "%s", sizes);
        pe_table_set(table, t, 5, "%lld", (long long)cell->config.steps);
        pe_table_set(table, t, 6, "%lld", (long long)cell->seeds);
        pe_table_set(table, t, 7, "%.3f", task->chance);
    }
    for (int t = 0; t < rows && !status; t++)
        add_reasons(suite, t, table);
    return status;
}

/* ---------------------------------------------------------------- the door ------------------ */

posenc_status pe_compare_tasks(const pe_compare *compare, pe_table *table, posenc_error *err)
{
    return pe_suite_table(compare->suite, table, err);
}

posenc_status pe_compare_task_plan(const pe_compare *compare, pe_table *table, posenc_error *err)
{
    return pe_suite_plan(compare->suite, table, err);
}

posenc_status pe_compare_tasks_check(const char *list, posenc_error *err)
{
    return pe_suite_check(list, err);
}
