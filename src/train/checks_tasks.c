/* SPDX-License-Identifier: MIT */
/*
 * checks_tasks.c: claims about tasks that can turn out false
 *
 * A row TASK_CHECK of checks.def names a task, a length and encodings. It speaks of those among them that
 * were compared with their standard settings, finished, and were trained long enough; where none is left it
 * is not applicable. Each kind of claim has a function that gives an encoding's margin, how far it is on the
 * right side (negative: on the wrong); the encoding with the smallest margin decides and is named in what was
 * found.
 *
 * The claims do not depend on the text: a comparison whose text is too short or too strange has them all the
 * same.
 */
#include "train/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 200 };
#define SLACK       1e-4   /* nats: sums of a batch in float */
#define BINOMIAL_99 2.5758 /* the 99.5 % quantile of the normal */

typedef enum claim_kind { BLIND, CHANCE, RIGHT, WRONG, WRONG_OTHERS, BEST_EXACT, LAST, KINDS } claim_kind;

typedef struct claim {
    int         number;
    claim_kind  kind;
    const char *task, *encodings; /* a list; task NULL: over all tasks */
    int         length;
    double      limit;
    int64_t     steps;
} claim;

static const claim claims[] = {
#define CHECK(...)
#define BASELINE(encoding, ratio)
#define AMONG(list)
#define TASK_CHECK(number, kind, task, encodings, length, limit, steps) \
    {number, kind, task, encodings, length, limit, steps},
#include "train/checks.def"
#undef TASK_CHECK
#undef AMONG
};

static const char among[] =
#define TASK_CHECK(...)
#define AMONG(list) list
#include "train/checks.def"
    ;
#undef CHECK
#undef BASELINE
#undef TASK_CHECK
#undef AMONG

enum { CLAIMS = sizeof claims / sizeof *claims };

int pe_task_check_count(void)
{
    return CLAIMS;
}

/* ---------------------------------------------------------------- of whom a claim speaks ---- */

static int counts(const pe_cell *cell, const claim *k)
{
    return cell->is_plain && cell->is_complete && cell->config.steps >= k->steps;
}

/* Does claim k judge this cell? WRONG_OTHERS judges whom it does not name. */
static int judges(const pe_cell *cell, const claim *k)
{
    const int is_named = pe_check_lists(k->encodings, cell->label);
    if (strcmp(cell->task->name, k->task) != 0 || !counts(cell, k))
        return 0;
    return k->kind == WRONG_OTHERS ? !is_named && pe_check_lists(among, cell->label) : is_named;
}

/* ---------------------------------------------------------------- margins ------------------- */

/* Of one cell: at least 0 if the claim holds of it. `text` receives what was found. */
typedef double margin_of(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k);

static double blind(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k)
{
    const double bound = log((double)cell->task->L) - SLACK, accuracy = cell->accuracy[k->length].value;
    (void)s;
    snprintf(text, n, "%s: lowest loss %.4f, accuracy %.3f", cell->label, cell->lowest_loss, accuracy);
    return cell->diverged ? -1 : fmin(cell->lowest_loss - bound, cell->task->chance + k->limit - accuracy);
}

static double by_chance(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k)
{
    const double p = cell->task->chance, rate = cell->accuracy[k->length].value;
    const double half = BINOMIAL_99 * sqrt(p * (1 - p) / (double)(cell->config.sequences * cell->seeds));
    (void)s;
    snprintf(text, n, "%s: %.3f, interval %.3f to %.3f", cell->label, rate, p - half, p + half);
    return cell->diverged ? -1 : half - fabs(rate - p);
}

static double right(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k)
{
    const double rate = cell->accuracy[k->length].value;
    (void)s;
    snprintf(text, n, "%s: %.3f", cell->label, rate);
    return cell->diverged ? -1 : rate - k->limit;
}

static double wrong(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k)
{
    const double rate = cell->accuracy[k->length].value;
    (void)s;
    snprintf(text, n, "%s: %.3f", cell->label, rate);
    return cell->diverged ? -1 : k->limit - rate;
}

/* The upper end of the interval of own - other's exact matches, of the other for whom that is lowest. */
static double best_exact(char *text, size_t n, const pe_suite *s, const pe_cell *cell, const claim *k)
{
    double least = INFINITY;
    snprintf(text, n, "%s: %.3f", cell->label, cell->exact[k->length].value);
    for (int i = 0; i < s->task_count * s->label_count; i++) {
        const pe_cell *other = &s->cells[i];
        pe_interval    d;
        if (other == cell || other->task != cell->task || !counts(other, k) || other->diverged ||
            !pe_check_lists(among, other->label) ||
            pe_suite_exact_difference(cell, other, k->length, &d, NULL) || d.high >= least)
            continue;
        least = d.high;
        snprintf(text, n, "%s: %.3f, %s: %.3f, difference %+.3f (%+.3f to %+.3f)", cell->label,
                 cell->exact[k->length].value, other->label, other->exact[k->length].value, d.value, d.low,
                 d.high);
    }
    return cell->diverged ? -1 : least;
}

static margin_of *const margins[KINDS] = {
    [BLIND] = blind, [CHANCE] = by_chance,   [RIGHT] = right,
    [WRONG] = wrong, [WRONG_OTHERS] = wrong, [BEST_EXACT] = best_exact,
};

/* ---------------------------------------------------------------- over all tasks ------------ */

/* The label's number if it is compared with standard settings, or -1. */
static int label_of(const pe_suite *s, const char *name, size_t length)
{
    for (int l = 0; l < s->label_count; l++)
        if (strlen(s->labels[l]) == length && !strncmp(s->labels[l], name, length) &&
            !isnan(s->reciprocal[l]))
            return l;
    return -1;
}

/* How many of AMONG are compared; *better counts those that stand above label. */
static int count_better(const pe_suite *s, int label, int *better)
{
    int count = 0;
    *better   = 0;
    for (const char *at = among; *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        const int    l = label_of(s, at, n);
        count += l >= 0;
        *better += l >= 0 && l != label && s->reciprocal[l] >= s->reciprocal[label];
        at += n;
    }
    return count;
}

static int is_trained_enough(const pe_suite *s, const claim *k)
{
    int tasks = 0;
    for (int t = 0; t < s->task_count; t++) {
        tasks += pe_task_size(s->tasks[t], PE_TASK_2) > 0 && !s->tasks[t]->grid;
        if (pe_suite_cell(s, t, 0)->config.steps < k->steps)
            return 0;
    }
    return tasks >= 8; /* the eight tasks over which the claim was measured */
}

/* By the number of those that are better: with `count` compared, at least count - limit must be. */
static void judge_last(pe_check_result *r, const pe_suite *s, const claim *k)
{
    int better, least = INT32_MAX, judged = 0;
    r->verdict = PE_NOT_APPLICABLE;
    snprintf(r->found, sizeof r->found, "not compared on eight tasks for so many steps");
    if (!is_trained_enough(s, k))
        return;
    for (const char *at = k->encodings; *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        const int    l = label_of(s, at, n);
        at += n;
        if (l < 0)
            continue;
        const int count = count_better(s, l, &better);
        if (count <= 2 * (int)k->limit || better - (count - (int)k->limit) >= least)
            continue;
        least  = better - (count - (int)k->limit);
        judged = 1;
        snprintf(r->found, sizeof r->found, "%s: %d of %d are better (mean of 1/rank %.2f)", s->labels[l],
                 better, count - 1, s->reciprocal[l]);
    }
    if (judged)
        r->verdict = least >= 0 ? PE_PASSED : PE_FAILED;
}

/* ---------------------------------------------------------------- claims -------------------- */

/* The encodings of which claim k speaks here: "rope, shaw"; "" if there are none. */
static void name_judged(char *text, size_t n, const pe_suite *s, const claim *k)
{
    text[0] = 0;
    for (int i = 0; s && k->task && i < s->task_count * s->label_count; i++)
        if (judges(&s->cells[i], k))
            snprintf(text + strlen(text), n - strlen(text), "%s%s", text[0] ? ", " : "", s->cells[i].label);
}

static void describe(char *text, size_t n, const claim *k, const char *judged)
{
    const char *whom = judged[0] ? judged : k->encodings, *at = pe_task_length_name(k->length);
    switch (k->kind) {
    case BLIND:
        snprintf(text, n, "%s: loss never below ln n, accuracy at most 1/n + %.2f: %s", k->task, k->limit,
                 whom);
        break;
    case CHANCE: snprintf(text, n, "%s at %s: by chance: %s", k->task, at, whom); break;
    case RIGHT: snprintf(text, n, "%s at %s: at least %.2f right: %s", k->task, at, k->limit, whom); break;
    case WRONG: snprintf(text, n, "%s at %s: at most %.2f right: %s", k->task, at, k->limit, whom); break;
    case WRONG_OTHERS:
        snprintf(text, n, "%s at %s: at most %.2f right but for %s%s%s", k->task, at, k->limit, k->encodings,
                 judged[0] ? ": " : "", judged);
        break;
    case BEST_EXACT:
        snprintf(text, n, "%s at %s: no more exact matches than by %s", k->task, at, k->encodings);
        break;
    default: snprintf(text, n, "mean of 1/rank over tasks: among the last %.0f: %s", k->limit, k->encodings);
    }
}

static void judge_cells(pe_check_result *r, const pe_suite *s, const claim *k)
{
    double least = INFINITY;
    for (int i = 0; i < s->task_count * s->label_count; i++) {
        char text[MOST_SHOWN];
        if (!judges(&s->cells[i], k))
            continue;
        const double margin = margins[k->kind](text, sizeof text, s, &s->cells[i], k);
        if (margin < least) {
            least = margin;
            snprintf(r->found, sizeof r->found, "%s", text);
        }
    }
    r->verdict = least >= 0 ? PE_PASSED : PE_FAILED;
}

void pe_task_check_judge(pe_check_result *result, const pe_compare *c, int index)
{
    const claim    *k = &claims[index];
    const pe_suite *s = c->suite;
    char            judged[MOST_SHOWN];
    name_judged(judged, sizeof judged, s, k);
    describe(result->claim, sizeof result->claim, k, judged);
    result->number  = k->number;
    result->verdict = PE_NOT_APPLICABLE;
    if (!pe_is_standard_model(&c->config.preset))
        snprintf(result->found, sizeof result->found, "another model than the threshold is for");
    else if (s && !k->task)
        judge_last(result, s, k);
    else if (s && judged[0])
        judge_cells(result, s, k);
    else
        snprintf(result->found, sizeof result->found, "not compared on this task for %lld steps or more",
                 (long long)k->steps);
}
