/* SPDX-License-Identifier: MIT */
/*
 * report_tasks.c: the tasks in the report: who can do what, and up to which length
 *
 * First all tasks at a glance, accuracy beyond the trained length; then each by itself, encoding against
 * length. A cell is a number on a colour: the scale goes from white (chance, or nothing right) to a dark blue
 * (all right) in one hue, so that it reads the same to every eye and in print, and whoever sees no colour has
 * lost nothing. The numbers turn white where the ground is dark.
 */
#include "train/report.h"

#include <math.h>
#include <string.h>

enum { LINE = 256, NAMES = 1024, MOST_TASKS = 62 };

/* ---------------------------------------------------------------- colours ------------------- */

/* Ends of the scale in sRGB: white, and a blue of contrast 10 to white. */
static const double light[3] = {255, 255, 255}, dark[3] = {8, 64, 129};

/* 0 at chance or below, 1 where all is right. */
static double shade_of(double accuracy, double chance)
{
    return fmin(1, fmax(0, (accuracy - chance) / (1 - chance)));
}

/* The ground of a cell says how right it is. At 0.7 black and white ink contrast alike, 4.6 to 1. */
static void set_ground(pe_field *cell, double accuracy, double chance)
{
    const double s = shade_of(accuracy, chance);
    unsigned     rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)lround(light[i] + s * (dark[i] - light[i]));
    snprintf(cell->ground, sizeof cell->ground, "#%02x%02x%02x;color:%s", rgb[0], rgb[1], rgb[2],
             s > 0.7 ? "#fff" : "#000");
}

/* ---------------------------------------------------------------- at a glance --------------- */

static int is_shared(const pe_suite *s, int task, int rank)
{
    int count = 0;
    for (int l = 0; l < s->label_count; l++)
        count += pe_suite_cell(s, task, l)->rank == rank;
    return count > 1;
}

/* Does a task have lengths beyond L, by which it is ranked? */
static int has_ranks(const pe_suite *s, int task)
{
    int count = 0;
    for (int l = 0; l < s->label_count; l++)
        count += pe_suite_cell(s, task, l)->rank == 1;
    return count > 0;
}

static int has_two_seeds(const pe_suite *s)
{
    for (int t = 0; t < s->task_count; t++)
        if (pe_suite_cell(s, t, 0)->seeds == 2)
            return 1;
    return 0;
}

/* Beyond L; at L where a task has no other. */
static void glance_cell(pe_table *t, int row, int task, const pe_suite *s, int label)
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
                     is_shared(s, task, cell->rank) ? "=" : "");
}

static void glance(FILE *to, const pe_suite *s)
{
    pe_column heads[MOST_TASKS + 2] = {{"encoding", NULL, 1, 0}};
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
            glance_cell(&t, row, i, s, s->order[row]);
        pe_table_number(&t, row, last, "%.2f", s->reciprocal[s->order[row]]);
    }
    pe_html_table(to, &t, "heat", 1);
    pe_table_free(&t);
}

/* Is this label first, alone or not, in every task that has ranks? */
static int is_first_everywhere(const pe_suite *s, int label)
{
    int first = 0, ranked = 0;
    for (int t = 0; t < s->task_count; t++) {
        ranked += has_ranks(s, t);
        first += pe_suite_cell(s, t, label)->rank == 1;
    }
    return ranked > 0 && first == ranked;
}

/* Whether somebody is first everywhere: these data say so, or they do not. */
static void set_first(pe_page *page, const pe_suite *s)
{
    char names[NAMES] = "";
    for (int row = 0; row < s->label_count; row++)
        if (is_first_everywhere(s, s->order[row]))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.60s", names[0] ? ", " : "",
                     s->labels[s->order[row]]);
    pe_page_set(page, "first", "%s", names);
    pe_page_set(page, "two_seeds", "%s", has_two_seeds(s) ? "yes" : "");
}

/* ---------------------------------------------------------------- one task ------------------ */

/* Accuracy with its interval, and the share of sequences that are right as a whole. */
static void length_cell(pe_table *t, int row, int column, const pe_cell *cell, int length)
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

static void task_row(pe_table *t, int row, const pe_cell *cell)
{
    int column = 1;
    pe_table_text(t, row, 0, cell->label);
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            length_cell(t, row, column++, cell, i);
    if (isnan(cell->loss[PE_TASK_L]))
        pe_table_text(t, row, column, "diverged");
    else
        pe_table_set(t, row, column, "%.3f", cell->loss[PE_TASK_L]);
}

static void task_table(FILE *to, const pe_suite *s, int task)
{
    pe_column heads[PE_TASK_LENGTHS + 2];
    char      text[PE_TASK_LENGTHS][LINE];
    pe_table  t;
    int       rows = 0;
    if (pe_table_open(&t, heads, set_heads(heads, text, pe_suite_cell(s, task, 0)), s->label_count, NULL))
        return;
    for (int l = 0; l < s->label_count; l++)
        if (pe_suite_cell(s, task, s->order[l])->is_complete)
            task_row(&t, rows++, pe_suite_cell(s, task, s->order[l]));
    t.row_count = rows;
    pe_html_table(to, &t, "heat", 1);
    pe_table_free(&t);
}

/* "a: why" for those that do not take part. */
static void task_reasons(FILE *to, const pe_suite *s, int task)
{
    for (int l = 0; l < s->label_count; l++) {
        const pe_cell *cell = pe_suite_cell(s, task, s->order[l]);
        if (cell->reason[0] && !cell->is_unasked)
            pe_html_element(to, "p class=note", "%.200s does not apply: %s.", cell->label, cell->reason);
    }
}

static void set_task(pe_page *page, const pe_cell *cell)
{
    const pe_task *t = cell->task;
    char           seeds[48];
    pe_page_set(page, "task", "%s", t->name);
    pe_page_set(page, "title", "%s", t->title);
    pe_page_set(page, "asks", "%s", t->asks);
    pe_page_set(page, "mask", "%s", t->full ? "No mask" : "Causal");
    if (t->least == t->L)
        pe_page_set(page, "sizes", "n = L = %lld", (long long)t->L);
    else
        pe_page_set(page, "sizes", "n from %lld to L = %lld", (long long)t->least, (long long)t->L);
    pe_page_set(page, "task_steps", "%lld", (long long)cell->config.steps);
    pe_page_set(page, "task_batch", "%lld", (long long)cell->config.batch);
    pe_page_set(page, "task_seeds", "%s", pe_report_many(seeds, cell->seeds, "seed"));
    pe_page_set(page, "chance", "%.3f", t->chance);
    pe_page_set(page, "new_only", "%s", t->new_only ? "yes" : "");
}

void pe_report_tasks(pe_page *page, const pe_suite *s)
{
    if (!s->task_count || !s->label_count)
        return;
    const pe_run_config *c = &s->cells[0].config;
    pe_page_set(page, "task_layers", "%lld", (long long)c->layers);
    pe_page_set(page, "task_width", "%lld", (long long)c->d_model);
    pe_page_set(page, "sequences", "%lld", (long long)c->sequences);
    pe_page_part(page, "tasks");
    glance(page->to, s);
    set_first(page, s);
    pe_page_part(page, "ranks");
    for (int t = 0; t < s->task_count; t++) {
        set_task(page, pe_suite_cell(s, t, 0));
        pe_page_part(page, "task");
        task_table(page->to, s, t);
        task_reasons(page->to, s, t);
    }
}
