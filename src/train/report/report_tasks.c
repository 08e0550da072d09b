/* SPDX-License-Identifier: MIT */
/*
 * report_tasks.c: the tasks as tables: on a terminal what will be trained, and how right it was; in the
 * report who can do what, and up to which length
 *
 * One row per encoding and one column per task fits a terminal: a cell has the accuracy at L,
 * x2, x4 (x8) one after the other. A page has room for all lengths, and for intervals: first all tasks at a
 * glance, accuracy beyond the trained length; then each by itself, encoding against length. A cell there is a
 * number on a colour: the scale goes from white (chance, or nothing right) to a dark blue (all right) in one
 * hue, so that it reads the same to every eye and in print, and whoever sees no colour has lost nothing. The
 * numbers turn white where the ground is dark.
 */
#include "train/report/report.h"

#include <math.h>
#include <string.h>

enum { LINE = 256, NAMES = 4096 };

/* ---------------------------------------------------------------- terminal ------------------ */

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

/* "alibi, rope"; whom there is no room for is counted below as others. */
static void add_name(char names[NAMES], const char *name)
{
    const char *others = ", and others";
    size_t      used   = strlen(names);
    if (used + strlen(name) + sizeof ", " + strlen(others) <= NAMES)
        snprintf(names + used, NAMES - used, "%s%s", used ? ", " : "", name);
    else if (used < strlen(others) || strcmp(names + used - strlen(others), others) != 0)
        snprintf(names + used, NAMES - used, "%s", others);
}

/* Reasons are said once per task and reason, with all encodings that have it. */
static void add_reasons(const pe_suite *s, int task, pe_table *t)
{
    for (int l = 0; l < s->label_count; l++) {
        const pe_cell *cell       = pe_suite_cell(s, task, l);
        char           all[NAMES] = "";
        int            is_first   = cell->reason[0] && !cell->is_unasked;
        for (int k = 0; k < s->label_count && is_first; k++) {
            const pe_cell *other = pe_suite_cell(s, task, k);
            if (strcmp(other->reason, cell->reason) != 0)
                continue;
            is_first = k >= l;
            add_name(all, other->label);
        }
        if (is_first)
            pe_table_note(t, "%s cannot do %s: %s.", all, cell->task->name, cell->reason);
    }
}

static void add_notes(const pe_suite *s, pe_table *t)
{
    pe_table_note(t,
                  "Tasks: share of right answers at the trained length L, at x2 and x4 (as far as "
                  "tested); 1 is all of them. --dry-run says what each asks, and what guessing gets right.");
    pe_table_note(t, "1/rank: mean over the tasks tested beyond L, ranked there; ranks are shared where the "
                     "paired 95 %% interval contains 0.");
    int unfinished = 0;
    for (int i = 0; i < s->task_count * s->label_count; i++)
        unfinished += s->cells[i].runs && !s->cells[i].is_complete;
    if (unfinished)
        pe_table_note(t, "%d cells did not finish and are left out.", unfinished);
    for (int task = 0; task < s->task_count; task++)
        add_reasons(s, task, t);
}

posenc_status pe_report_tasks_table(const pe_compare *compare, pe_table *table, posenc_error *err)
{
    const pe_suite *s    = compare->suite;
    const int       rows = s->task_count ? s->label_count : 0, last = 1 + s->task_count;
    pe_column       heads[PE_MOST_TASKS + 2] = {{"encoding", "as given on the command line", 1, 0}};
    heads[last] = (pe_column){"1/rank", "mean over tasks of 1 / rank beyond the trained length", 0, 0};
    for (int i = 0; i < s->task_count; i++)
        heads[1 + i] = (pe_column){s->tasks[i]->name, s->tasks[i]->title, 1, 0};
    const posenc_status status = pe_table_open(table, heads, last + 1, rows, err);
    for (int row = 0; row < rows && !status; row++) {
        const int label = s->order[row];
        pe_table_text(table, row, 0, s->labels[label]);
        for (int t = 0; t < s->task_count; t++)
            put_cell(table, row, 1 + t, pe_suite_cell(s, t, label));
        pe_table_number(table, row, last, "%.2f", s->reciprocal[label]);
    }
    if (!status && rows)
        add_notes(s, table);
    return status;
}

/* ---------------------------------------------------------------- plan ---------------------- */

posenc_status pe_report_tasks_plan(const pe_compare *compare, pe_table *table, posenc_error *err)
{
    const pe_suite        *suite   = compare->suite;
    static const pe_column heads[] = {{"task", "posenc compare --tasks NAME,...", 1, 0},
                                      {"what is asked", "of the model", PE_WIDE, 0},
                                      {"mask", "causal, or none", 1, 0},
                                      {"n", "sizes in training", 1, 0},
                                      {"tested at", "sizes", PE_WIDE, 0},
                                      {"steps", "of training", 0, 0},
                                      {"seeds", "runs per encoding", 0, 0},
                                      {"chance", "accuracy without knowing anything", 0, 0}};
    const int              rows    = suite->label_count ? suite->task_count : 0;
    const posenc_status    status  = pe_table_open(table, heads, sizeof heads / sizeof *heads, rows, err);
    for (int t = 0; t < rows && !status; t++) {
        const pe_task *task      = suite->tasks[t];
        const pe_cell *cell      = pe_suite_cell(suite, t, 0);
        char           sizes[64] = ""; /* "8 16 24 32 64" */
        for (int i = 0; i <= cell->config.longest; i++)
            if (pe_task_size(task, i))
                snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%lld", *sizes ? " " : "",
                         (long long)pe_task_size(task, i));
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

/* ---------------------------------------------------------------- colours ------------------- */

/* Ends of the scale in sRGB: white, and a blue of contrast 10 to white. */
static const double light[3] = {255, 255, 255}, dark[3] = {8, 64, 129};

/* The ground of a cell says how right it is: nothing at chance or below. At 0.7 black and white ink contrast
 * alike, 4.6 to 1. */
static void set_ground(pe_field *cell, double accuracy, double chance)
{
    const double s = fmin(1, fmax(0, (accuracy - chance) / (1 - chance)));
    unsigned     rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)lround(light[i] + s * (dark[i] - light[i]));
    snprintf(cell->ground, sizeof cell->ground, "#%02x%02x%02x;color:%s", rgb[0], rgb[1], rgb[2],
             s > 0.7 ? "#fff" : "#000");
}

/* ---------------------------------------------------------------- at a glance --------------- */

/* How many have that rank in a task. */
static int count_ranked(const pe_suite *s, int task, int rank)
{
    int count = 0;
    for (int l = 0; l < s->label_count; l++)
        count += pe_suite_cell(s, task, l)->rank == rank;
    return count;
}

/* Beyond L; at L where a task has no other. */
static void put_overview_cell(pe_table *t, int row, int task, const pe_suite *s, int label)
{
    const pe_cell *cell  = pe_suite_cell(s, task, label);
    const double   right = isnan(cell->beyond) ? cell->accuracy[PE_TASK_L].value : cell->beyond;
    pe_field      *to    = pe_table_at(t, row, 1 + task);
    if (!cell->is_complete || isnan(right)) {
        pe_table_text(t, row, 1 + task, !cell->is_complete && cell->reason[0] ? "n/a" : "-");
        to->hint = !cell->is_complete && cell->reason[0] ? strdup("does not apply") : NULL;
        return;
    }
    set_ground(to, right, cell->task->chance);
    pe_table_set(t, row, 1 + task, "%.2f", right);
    if (cell->rank)
        pe_table_set(t, row, 1 + task, "%.2f\t(%d%s)", right, cell->rank,
                     count_ranked(s, task, cell->rank) > 1 ? "=" : "");
}

static void write_overview(FILE *to, const pe_suite *s)
{
    pe_column heads[PE_MOST_TASKS + 2] = {{"encoding", NULL, 1, 0}};
    pe_table  t;
    const int last = 1 + s->task_count;
    heads[last]    = (pe_column){"1/rank", "mean over tasks of 1 / rank beyond L", 0, 0};
    for (int i = 0; i < s->task_count; i++)
        heads[1 + i] = (pe_column){s->tasks[i]->name, s->tasks[i]->title, PE_LINK, 0};
    if (pe_table_open(&t, heads, last + 1, s->label_count, NULL))
        return;
    for (int row = 0; row < s->label_count; row++) {
        pe_table_text(&t, row, 0, s->labels[s->order[row]]);
        for (int i = 0; i < s->task_count; i++)
            put_overview_cell(&t, row, i, s, s->order[row]);
        pe_table_number(&t, row, last, "%.2f", s->reciprocal[s->order[row]]);
    }
    pe_html_table(to, &t, "heat", 1);
    pe_table_free(&t);
}

/* Is this label first, alone or sharing the rank, in every task that has ranks? */
static int is_first_everywhere(const pe_suite *s, int label)
{
    int first = 0, ranked = 0;
    for (int t = 0; t < s->task_count; t++) {
        ranked += count_ranked(s, t, 1) > 0; /* by lengths beyond L, if the task has any */
        first += pe_suite_cell(s, t, label)->rank == 1;
    }
    return ranked > 0 && first == ranked;
}

/* Whether an encoding is first everywhere: these data say so, or they do not. */
static void set_first(pe_page *page, const pe_suite *s)
{
    char names[NAMES] = "";
    for (int row = 0; row < s->label_count; row++)
        if (is_first_everywhere(s, s->order[row]))
            add_name(names, s->labels[s->order[row]]);
    pe_html_set(page, "first", "%s", names);
}

/* ---------------------------------------------------------------- one task ------------------ */

/* Accuracy with its interval, and the share of sequences that are right as a whole. */
static void put_length(pe_table *t, int row, int column, const pe_cell *cell, int length)
{
    const pe_interval a         = cell->accuracy[length];
    char              all[LINE] = "";
    if (pe_task_asked(cell->task, length) > 1)
        snprintf(all, sizeof all, "; all %.2f", cell->exact[length].value);
    if (isnan(a.value)) {
        pe_table_text(t, row, column, "-");
        return;
    }
    set_ground(pe_table_at(t, row, column), a.value, cell->task->chance);
    pe_table_set(t, row, column, "%.3f\n%.2f to %.2f%s", a.value, a.low, a.high, all);
}

/* A column per tested length, and their heads. */
static int set_heads(pe_column heads[PE_TASK_LENGTHS + 2], char text[PE_TASK_LENGTHS][LINE],
                     const pe_cell *cell)
{
    int n      = 0;
    heads[n++] = (pe_column){"encoding", NULL, 1, 0};
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i)) {
            snprintf(text[i], LINE, "%s\nn = %lld", pe_task_length_name(i),
                     (long long)pe_task_size(cell->task, i));
            heads[n++] = (pe_column){.head = text[i]};
        }
    heads[n++] = (pe_column){.head = "loss at L"};
    return n;
}

static void put_task_row(pe_table *t, int row, const pe_cell *cell)
{
    int column = 1;
    pe_table_text(t, row, 0, cell->label);
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            put_length(t, row, column++, cell, i);
    if (isnan(cell->loss[PE_TASK_L]))
        pe_table_text(t, row, column, "diverged");
    else
        pe_table_set(t, row, column, "%.3f", cell->loss[PE_TASK_L]);
}

static void write_task(FILE *to, const pe_suite *s, int task)
{
    pe_column heads[PE_TASK_LENGTHS + 2];
    char      text[PE_TASK_LENGTHS][LINE];
    pe_table  t;
    int       rows = 0;
    if (pe_table_open(&t, heads, set_heads(heads, text, pe_suite_cell(s, task, 0)), s->label_count, NULL))
        return;
    for (int l = 0; l < s->label_count; l++)
        if (pe_suite_cell(s, task, s->order[l])->is_complete)
            put_task_row(&t, rows++, pe_suite_cell(s, task, s->order[l]));
    t.row_count = rows;
    pe_html_table(to, &t, "heat", 1);
    pe_table_free(&t);
}

static void set_task(pe_page *page, const pe_cell *cell)
{
    const pe_task *t = cell->task;
    char           seeds[48];
    pe_html_set(page, "task", "%s", t->name);
    pe_html_set(page, "title", "%s", t->title);
    pe_html_set(page, "asks", "%s", t->asks);
    pe_html_set(page, "mask", "%s", t->full ? "No mask" : "Causal");
    if (t->least == t->L)
        pe_html_set(page, "sizes", "n = L = %lld", (long long)t->L);
    else
        pe_html_set(page, "sizes", "n from %lld to L = %lld", (long long)t->least, (long long)t->L);
    pe_html_set(page, "task_steps", "%lld", (long long)cell->config.steps);
    pe_html_set(page, "task_batch", "%lld", (long long)cell->config.batch);
    pe_html_set(page, "task_seeds", "%s", pe_html_count(seeds, cell->seeds, "seed"));
    pe_html_set(page, "chance", "%.3f", t->chance);
    pe_html_set(page, "new_only", "%s", t->new_only ? "yes" : "");
}

void pe_report_tasks(pe_page *page, const pe_suite *s)
{
    if (!s->task_count || !s->label_count)
        return;
    const pe_run_config *c = &s->cells[0].config;
    pe_html_set(page, "task_layers", "%lld", (long long)c->layers);
    pe_html_set(page, "task_width", "%lld", (long long)c->d_model);
    pe_html_set(page, "sequences", "%lld", (long long)c->sequences);
    pe_html_part(page, "tasks");
    write_overview(page->to, s);
    set_first(page, s);
    pe_html_part(page, "ranks");
    for (int t = 0; t < s->task_count; t++) {
        set_task(page, pe_suite_cell(s, t, 0));
        pe_html_part(page, "task");
        write_task(page->to, s, t);
        for (int l = 0; l < s->label_count; l++) {
            const pe_cell *cell = pe_suite_cell(s, t, s->order[l]);
            if (cell->reason[0] && !cell->is_unasked)
                pe_html_element(page->to, "p class=note", "%s does not apply: %s.", cell->label,
                                cell->reason);
        }
    }
}
