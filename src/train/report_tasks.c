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

#include "train/html.h"

#include <math.h>
#include <string.h>

enum { LINE = 256, NAMES = 1024 };

/* ---------------------------------------------------------------- colours ------------------- */

/* Ends of the scale in sRGB: white, and a blue of contrast 10 to white. */
static const double light[3] = {255, 255, 255}, dark[3] = {8, 64, 129};

/* 0 at chance or below, 1 where all is right. */
static double shade_of(double accuracy, double chance)
{
    return fmin(1, fmax(0, (accuracy - chance) / (1 - chance)));
}

/* A cell whose ground says how right it is. At 0.7 black and white ink contrast alike, 4.6 to 1. */
static void open_cell(FILE *to, double accuracy, double chance)
{
    const double s = shade_of(accuracy, chance);
    int          rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (int)lround(light[i] + s * (dark[i] - light[i]));
    fprintf(to, "<td style=\"background:#%02x%02x%02x;color:%s\">", (unsigned)rgb[0], (unsigned)rgb[1],
            (unsigned)rgb[2], s > 0.7 ? "#fff" : "#000");
}

static void heat_cell(FILE *to, double accuracy, double chance, int rank, int shared)
{
    if (isnan(accuracy)) {
        fputs("<td>-</td>", to);
        return;
    }
    open_cell(to, accuracy, chance);
    fprintf(to, "%.2f", accuracy);
    if (rank)
        fprintf(to, " <small>(%d%s)</small>", rank, shared ? "=" : "");
    fputs("</td>", to);
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

/* Beyond L; at L where a task has no other length. */
static void glance_cell(FILE *to, const pe_suite *s, int task, int label)
{
    const pe_cell *cell = pe_suite_cell(s, task, label);
    if (!cell->is_complete) {
        fputs(cell->reason[0] ? "<td title=\"does not apply\">n/a</td>" : "<td>-</td>", to);
        return;
    }
    heat_cell(to, isnan(cell->beyond) ? cell->accuracy[PE_TASK_L].value : cell->beyond, cell->task->chance,
              cell->rank, cell->rank && is_shared(s, task, cell->rank));
}

static void glance(FILE *to, const pe_suite *s)
{
    fputs("<div class=wide><table class=heat><thead><tr><th scope=col class=t>encoding</th>", to);
    for (int t = 0; t < s->task_count; t++) {
        fprintf(to, "<th scope=col title=\"");
        pe_html_text(to, s->tasks[t]->title);
        fprintf(to, "\"><a href=#task-%s>%s</a></th>", s->tasks[t]->name, s->tasks[t]->name);
    }
    fputs("<th scope=col title=\"mean over tasks of 1 / rank beyond L\">1/rank</th></tr></thead><tbody>\n",
          to);
    for (int row = 0; row < s->label_count; row++) {
        const int label = s->order[row];
        fputs("<tr><th scope=row class=t>", to);
        pe_html_text(to, s->labels[label]);
        fputs("</th>", to);
        for (int t = 0; t < s->task_count; t++)
            glance_cell(to, s, t, label);
        if (isnan(s->reciprocal[label]))
            fputs("<td>-</td></tr>\n", to);
        else
            fprintf(to, "<td>%.2f</td></tr>\n", s->reciprocal[label]);
    }
    fputs("</tbody></table></div>\n", to);
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

/* What 1/rank is, and whether somebody is first everywhere: these data say so, or they do not. */
static void ranks_note(FILE *to, const pe_suite *s)
{
    char names[NAMES] = "";
    for (int row = 0; row < s->label_count; row++)
        if (is_first_everywhere(s, s->order[row]))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.60s", names[0] ? ", " : "",
                     s->labels[s->order[row]]);
    if (names[0])
        pe_html_element(to, "p class=note",
                        "1/rank is the mean over the tasks tested beyond L. First in each of these, alone or "
                        "sharing the place: %s.",
                        names);
    else
        pe_html_element(to, "p class=note",
                        "1/rank is the mean over the tasks tested beyond L. No encoding is first in each of "
                        "these, not even sharing the place.");
    if (has_two_seeds(s))
        pe_html_element(to, "p class=note",
                        "Two seeds say little about a third: an interval is then 12.7 standard errors to "
                        "either side, so that a wide difference may share a rank.");
}

/* ---------------------------------------------------------------- one task ------------------ */

/* Accuracy with its interval, and the share of sequences that are right as a whole. */
static void length_cell(FILE *to, const pe_cell *cell, int length)
{
    const pe_interval a = cell->accuracy[length], e = cell->exact[length];
    if (isnan(a.value)) {
        fputs("<td>-</td>", to);
        return;
    }
    open_cell(to, a.value, cell->task->chance);
    fprintf(to, "%.3f<br><small>%.2f to %.2f", a.value, a.low, a.high);
    if (pe_task_asked(cell->task, length) > 1)
        fprintf(to, "; all %.2f", e.value);
    fputs("</small></td>", to);
}

static void task_head(FILE *to, const pe_cell *cell)
{
    fputs("<div class=wide><table class=heat><thead><tr><th scope=col class=t>encoding</th>", to);
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            fprintf(to, "<th scope=col>%s<br><small>n = %lld</small></th>", pe_task_length_name(i),
                    (long long)pe_task_size(cell->task, i));
    fputs("<th scope=col>loss at L</th></tr></thead><tbody>\n", to);
}

static void task_row(FILE *to, const pe_cell *cell)
{
    fputs("<tr><th scope=row class=t>", to);
    pe_html_text(to, cell->label);
    fputs("</th>", to);
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            length_cell(to, cell, i);
    if (isnan(cell->loss[PE_TASK_L]))
        fputs("<td>diverged</td></tr>\n", to);
    else
        fprintf(to, "<td>%.3f</td></tr>\n", cell->loss[PE_TASK_L]);
}

/* "a, b: why" for those that do not take part. */
static void task_reasons(FILE *to, const pe_suite *s, int task)
{
    for (int l = 0; l < s->label_count; l++) {
        const pe_cell *cell = pe_suite_cell(s, task, s->order[l]);
        if (cell->reason[0] && !cell->is_unasked)
            pe_html_element(to, "p class=note", "%.200s does not apply: %s.", cell->label, cell->reason);
    }
}

static void sizes(char text[LINE], const pe_task *task)
{
    if (task->least == task->L)
        snprintf(text, LINE, "n = L = %lld", (long long)task->L);
    else
        snprintf(text, LINE, "n from %lld to L = %lld", (long long)task->least, (long long)task->L);
}

static void one_task(FILE *to, const pe_suite *s, int task)
{
    const pe_cell *first = pe_suite_cell(s, task, 0);
    const pe_task *t     = first->task;
    char           trained[LINE], id[LINE];
    snprintf(id, sizeof id, "h3 id=task-%s", t->name);
    pe_html_element(to, id, "%s: %s", t->name, t->title);
    sizes(trained, t);
    pe_html_element(
        to, "p",
        "It asks: %s %s, trained at %s for %lld steps of %lld sequences, %lld seed%s. Chance is "
        "%.3f, and white.%s",
        t->asks, t->full ? "No mask" : "Causal", trained, (long long)first->config.steps,
        (long long)first->config.batch, (long long)first->seeds, first->seeds == 1 ? "" : "s", t->chance,
        t->new_only ? " Beyond L only answers from place L on count: those before are as in training." : "");
    task_head(to, first);
    for (int l = 0; l < s->label_count; l++)
        if (pe_suite_cell(s, task, s->order[l])->is_complete)
            task_row(to, pe_suite_cell(s, task, s->order[l]));
    fputs("</tbody></table></div>\n", to);
    task_reasons(to, s, task);
}

void pe_report_tasks(FILE *to, const pe_suite *s)
{
    if (!s->task_count || !s->label_count)
        return;
    const pe_run_config *c = &s->cells[0].config;
    fputs("<h2 id=tasks>Tasks</h2>\n", to);
    pe_html_element(to, "p",
                    "Sequences of tokens without a meaning, made by the tool, whose right answers are known: "
                    "what a model "
                    "(%lld layers, width %lld) can answer is its encoding's doing. Accuracy beyond the "
                    "trained length L, the "
                    "mean over the tested lengths (at L, where a task has no other), and behind it the rank; "
                    "ranks are shared "
                    "where the paired 95 %% interval contains zero. All encodings answered the same %lld "
                    "sequences of each "
                    "length.",
                    (long long)c->layers, (long long)c->d_model, (long long)c->sequences);
    glance(to, s);
    ranks_note(to, s);
    pe_html_element(
        to, "p class=note",
        "Below: the share of right answers, the 95 %% interval (Wilson, n = sequences: other sequences, "
        "not other seeds), and \"all\", the share of sequences without a wrong answer.");
    for (int t = 0; t < s->task_count; t++)
        one_task(to, s, t);
}
