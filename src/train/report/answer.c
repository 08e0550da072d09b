/* SPDX-License-Identifier: MIT */
/*
 * answer.c: which encoding to choose, by need, and what each costs
 *
 * A need is a contest (advice.h): the loss at the trained length, at a multiple of it, wrong answers about an
 * exact distance, work per decoded token, or the ways of reading a model with rope further. Multiples with
 * the same recommendation are one row. The table goes to the terminal, the report and results.json alike, so
 * it holds nothing that a clock measured; costs do, and are a table of their own.
 *
 * Work     of a token that is decoded with as many keys in the cache as the furthest length: operations of
 *          the encoding's formulas (posenc_plan_operations), in every layer unless it acts at the input,
 *          against two per parameter of the model and four per key and channel of attention.
 * Cache    keys and values, 2 x width numbers per layer and token: encodings add nothing to it, as a rotation
 *          is applied before a key is stored, and a bias follows from the distance.
 */
#include "train/report/advice.h"
#include "train/report/report.h"

#include "base/shared/compiler.h"
#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MATTERS      0.02 /* of a loss: a difference as large is no tie */
#define KEPT         1.10 /* the loss beyond L over that at L: docs/experiments.md, section 8 */
#define RIGHT        0.9  /* of the answers about a distance, beyond L */
#define RIGHT_MARGIN 0.05

enum { NAMES = 1024, BECAUSE = 1024, MOST_CANDIDATES = 256 };

/* What one row says, and what it is about. */
typedef struct need {
    char      what[96], because[BECAUSE];
    pe_advice advice;
    const char *(*name_of)(const void *self, int candidate, char text[PE_LONGEST_SPEC]);
    const void *self;
} need;

typedef struct candidates {
    const pe_compare *c;
    int               count, bucket, task; /* task: number in the suite */
    double            value[MOST_CANDIDATES];
} candidates;

PE_PRINTF(2, 3) static void append(char text[BECAUSE], const char *format, ...)
{
    const size_t used = strlen(text);
    va_list      values;
    va_start(values, format);
    vsnprintf(text + used, BECAUSE - used, format, values);
    va_end(values);
}

/* "t5, rope, alibi" */
static void list_names(char text[NAMES], const need *n, const int *list, int count)
{
    char one[PE_LONGEST_SPEC];
    text[0] = 0;
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), NAMES - strlen(text), "%s%s", i ? ", " : "",
                 n->name_of(n->self, list[i], one));
}

/* Why it is open. */
static void append_doubtful(need *n)
{
    char names[NAMES];
    list_names(names, n, n->advice.doubtful, n->advice.doubtful_count);
    if (n->advice.doubtful_count)
        append(n->because, "; not excluded: %s", names);
}

/* ---------------------------------------------------------------- losses -------------------- */

static const char *label_of(const void *self, int candidate, char text[PE_LONGEST_SPEC])
{
    (void)text;
    return ((const candidates *)self)->c->outcomes[candidate].label;
}

static pe_interval loss_behind(const void *self, int other, int first)
{
    const candidates *k = self;
    return pe_losses_difference(k->c, other, first, k->bucket);
}

/* Of everybody who finished, as far as there is space. */
static void take_losses(candidates *k, const pe_compare *c, int bucket)
{
    *k = (candidates){.c = c, .bucket = bucket};
    for (; k->count < c->count && k->count < MOST_CANDIDATES; k->count++) {
        const pe_outcome *o = &c->outcomes[k->count];
        k->value[k->count]  = o->is_complete && !o->diverged && o->has_learned ? o->loss[bucket] : NAN;
    }
}

/* May more steps still turn two round? */
static int is_moving(const void *self, int other, int first)
{
    const candidates *k        = self;
    const int         furthest = pe_stats_furthest(k->c->config.preset.reach);
    const int         which    = k->bucket == PE_AT_L    ? PE_ORDER_AT_L
                                 : k->bucket == furthest ? PE_ORDER_FURTHEST
                                                         : PE_ORDER_OF_BUCKET + k->bucket;
    const pe_order   *o        = k->c->orders[which];
    for (int i = 0; o && i < o->pair_count; i++)
        if (o->pairs[i].better == first && o->pairs[i].worse == other)
            return o->pairs[i].state == PE_PAIR_MOVING || o->pairs[i].state == PE_PAIR_CROSSED;
    return 0;
}

static pe_contest loss_contest(const candidates *k)
{
    double least = INFINITY;
    for (int i = 0; i < k->count; i++)
        least = fmin(least, k->value[i]);
    return (pe_contest){.count      = k->count,
                        .value      = k->value,
                        .resolution = k->c->resolution[k->bucket],
                        .margin     = fmax(MATTERS * least, k->c->resolution[k->bucket]),
                        .matters    = MATTERS * least,
                        .most       = INFINITY,
                        .behind     = loss_behind,
                        .is_moving  = is_moving,
                        .self       = k};
}

/* By how much the first is better than the next of all others. */
static void append_margin(char *because, const candidates *k, int first)
{
    int next = -1;
    for (int i = 0; i < k->count; i++)
        if (i != first && !isnan(k->value[i]) && (next < 0 || k->value[i] < k->value[next]))
            next = i;
    const pe_interval d = loss_behind(k, next, first);
    append(because, ", %.3f less than %s (95 %% interval %.3f to %.3f)", d.value, k->c->outcomes[next].label,
           d.low, d.high);
}

static void explain_losses(need *n, const candidates *k)
{
    const pe_advice *a = &n->advice;
    if (a->confidence == PE_NOBODY) {
        if (k->c->reference < 0)
            append(n->because, "no encoding finished its training");
        else
            append(n->because,
                   "no model has learned: each predicts worse than guessing by how frequent each byte is "
                   "(%.3f nats per byte); train for more steps",
                   k->c->entropy);
        return;
    }
    const pe_outcome *first = &k->c->outcomes[a->group[0]];
    const double      last  = k->value[a->group[a->count - 1]];
    append(n->because, a->count > 1 ? "%.3f to %.3f nats per byte" : "%.3f nats per byte",
           k->value[a->group[0]], last);
    if (a->confidence == PE_SETTLED)
        append_margin(n->because, k, a->group[0]);
    if (a->confidence == PE_SETTLED &&
        (!k->c->orders[PE_ORDER_AT_L] || k->c->orders[PE_ORDER_AT_L]->levels < 2))
        append(n->because, "; not tried with less training (--stability brief)");
    if (a->count > 1)
        append(n->because, "; differences below %.3f are not told apart", k->c->resolution[k->bucket]);
    if (a->count > 1 && k->c->seeds_to_settle[k->bucket] > PE_MOST_SEEDS)
        append(n->because, ", and %d seeds would not be enough", PE_MOST_SEEDS);
    else if (a->count > 1 && k->c->seeds_to_settle[k->bucket] > 0)
        append(n->because, ", with %d seeds they may be", k->c->seeds_to_settle[k->bucket]);
    append_doubtful(n);
    if (k->bucket > PE_AT_L)
        append(n->because,
               first->ratio[k->bucket] <= KEPT ? "; %.2f times the loss at L"
                                               : "; even that is %.2f times the loss at L",
               first->ratio[k->bucket]);
}

static int is_same_group(const pe_advice *a, const pe_advice *b)
{
    int same = a->confidence == b->confidence && a->count == b->count;
    for (int i = 0; same && i < a->count; i++) {
        int found = 0;
        for (int k = 0; k < b->count; k++)
            found |= a->group[i] == b->group[k];
        same = found;
    }
    return same;
}

/* Inputs of L, then of ever longer ones: a row for each, or for several with the same recommendation, of
   which the longest is explained. k [buckets]. Returns how many rows. */
static int decide_losses(need *needs, candidates *k, const pe_compare *c)
{
    int rows = 0, from = 1; /* from: the times of the last row's shortest inputs */
    for (int b = PE_AT_L; b <= pe_stats_furthest(c->config.preset.reach); b++) {
        take_losses(&k[b], c, b);
        const pe_contest contest = loss_contest(&k[b]);
        need             n       = {.advice = pe_advice_decide(&contest), .name_of = label_of, .self = &k[b]};
        const int        times   = 1 << (b - PE_AT_L),
                  goes_on        = b > PE_AT_2L && is_same_group(&n.advice, &needs[rows - 1].advice);
        rows -= goes_on;
        from = goes_on ? from : times;
        if (b == PE_AT_L)
            snprintf(n.what, sizeof n.what, "inputs as long as trained (%lld bytes)",
                     (long long)c->config.preset.L);
        else if (goes_on)
            snprintf(n.what, sizeof n.what, "inputs %d to %d times as long", from, times);
        else
            snprintf(n.what, sizeof n.what, "inputs %d times as long", times);
        explain_losses(&n, &k[b]);
        needs[rows++] = n;
    }
    return rows;
}

/* ---------------------------------------------------------------- an exact distance --------- */

static const char distance_task[] = "shift";

static const char *suite_label(const void *self, int candidate, char text[PE_LONGEST_SPEC])
{
    (void)text;
    return ((const candidates *)self)->c->suite->labels[candidate];
}

/* Ranks say who can be told apart. */
static pe_interval wrong_behind(const void *self, int other, int first)
{
    const candidates *k = self;
    const double      d = k->value[other] - k->value[first];
    return (pe_interval){d, pe_suite_cell(k->c->suite, k->task, other)->rank > 1 ? d : -d, d};
}

static int find_task(const pe_suite *s, const char *name)
{
    for (int t = 0; t < s->task_count; t++)
        if (!strcmp(s->tasks[t]->name, name))
            return t;
    return -1;
}

static int decide_distance(need *n, candidates *k, const pe_compare *c)
{
    *k = (candidates){.c = c, .task = find_task(c->suite, distance_task)};
    if (k->task < 0)
        return 0;
    for (; k->count < c->suite->label_count && k->count < MOST_CANDIDATES; k->count++) {
        const pe_cell *cell = pe_suite_cell(c->suite, k->task, k->count);
        k->value[k->count]  = cell->is_complete ? 1 - cell->beyond : NAN;
    }
    const pe_contest contest = {.count  = k->count,
                                .value  = k->value,
                                .margin = RIGHT_MARGIN,
                                .most   = 1 - RIGHT,
                                .behind = wrong_behind,
                                .self   = k};
    *n = (need){.advice = pe_advice_decide(&contest), .name_of = suite_label, .self = k};
    if (n->advice.confidence == PE_NOBODY)
        return 0;
    snprintf(n->what, sizeof n->what, "looking back by an exact distance");
    append(n->because, "task %s: %.2f of the answers right beyond the trained length (guessing: %.2f)",
           distance_task, 1 - k->value[n->advice.group[0]], c->suite->tasks[k->task]->chance);
    if (n->advice.confidence == PE_FAILED_ALL)
        append(n->because, "; %s comes closest, and %.1f is asked", c->suite->labels[n->advice.group[0]],
               RIGHT);
    append_doubtful(n);
    return 1;
}

/* ---------------------------------------------------------------- work of a token ----------- */

/* Of one layer's encoding, per token that is decoded at the end of the furthest length; NaN where the library
   cannot say. Its token inputs are projected, two operations a weight. */
static double work_of_layer(const posenc_encoding *e, const posenc_dims *dims, int64_t window)
{
    posenc_options options = posenc_options_default();
    posenc_plan   *plan;
    int64_t        shape[4];
    options.mask   = POSENC_MASK_CAUSAL | (window ? POSENC_MASK_WINDOW : POSENC_MASK_NONE);
    options.window = window;
    if (posenc_plan_create(&plan, e, dims, &options, NULL))
        return NAN;
    double each = posenc_plan_operations(plan) / (double)dims->Lq;
    posenc_plan_free(plan);
    for (int i = 0; i < posenc_token_count(e); i++)
        if (!posenc_token_shape(e, dims, i, shape, NULL))
            each += 2.0 * (double)(dims->d_model * shape[1] * shape[3]);
    return each;
}

/* Of all layers; rows at the input are made once. */
static double work_of(const pe_compare *c, const pe_outcome *o)
{
    const posenc_dims dims   = pe_outcome_dims(&c->config.preset);
    const int64_t     layers = posenc_encoding_part(o->e, POSENC_PLACE_INPUT) ? 1 : o->config.layers;
    double            sum    = 0;
    for (int64_t l = 0; l < layers; l++) {
        posenc_encoding *e;
        posenc_layer     read;
        sum += pe_spec_layer(&e, &read, o->config.spec, l, NULL) ? NAN : work_of_layer(e, &dims, read.window);
        posenc_encoding_free(e);
    }
    return sum;
}

/* The model's own, without an encoding. */
static double work_of_model(const pe_compare *c, const pe_outcome *o)
{
    const pe_preset *p = &c->config.preset;
    return 2 * (double)(o->runs[0].result.parameters - o->runs[0].result.encoding_parameters) +
           4 * (double)(p->layers * p->d_model * p->reach * p->L);
}

static pe_interval exactly_behind(const void *self, int other, int first)
{
    const candidates *k = self;
    const double      d = k->value[other] - k->value[first];
    return (pe_interval){d, d, d};
}

/* Is it clearly better than no encoding? Where that was not compared: is its loss near the lowest? */
static int is_worth_it(const pe_compare *c, int i)
{
    const int nope = pe_claims_find(c, "nope");
    return nope < 0 ? c->outcomes[i].loss[PE_AT_L] <= (1 + MATTERS) * c->outcomes[c->reference].loss[PE_AT_L]
                    : i != nope && pe_losses_difference(c, i, nope, PE_AT_L).high < 0;
}

static int decide_decoding(need *n, candidates *k, const pe_compare *c)
{
    take_losses(k, c, PE_AT_L);
    for (int i = 0; i < k->count && !c->config.bidirectional; i++)
        k->value[i] = isnan(k->value[i]) || !is_worth_it(c, i) ? NAN : work_of(c, &c->outcomes[i]);
    const pe_contest contest = {.count  = k->count,
                                .value  = k->value,
                                .margin = 1,
                                .most   = INFINITY,
                                .behind = exactly_behind,
                                .self   = k};
    *n                       = (need){.advice = pe_advice_decide(&contest), .name_of = label_of, .self = k};
    if (n->advice.confidence == PE_NOBODY || c->config.bidirectional)
        return 0;
    const int         first = n->advice.group[0];
    const pe_outcome *o = &c->outcomes[first], *best = &c->outcomes[c->reference];
    snprintf(n->what, sizeof n->what, "cheapest to decode, %s",
             pe_claims_find(c, "nope") < 0 ? "loss at L within 2 %" : "better than no encoding");
    append(n->because,
           "%.0f operations per token, %.2g %% of the model's; loss at L %.3f, the lowest is %.3f",
           k->value[first], 100 * k->value[first] / work_of_model(c, o), o->loss[PE_AT_L],
           best->loss[PE_AT_L]);
    return 1;
}

/* ---------------------------------------------------------------- with rope already --------- */

/* A candidate is a way and whether it is tuned. */
static pe_losses_reading reading_of(const candidates *k, int candidate)
{
    return (pe_losses_reading){candidate / PE_TUNINGS, k->bucket - PE_AT_2L, candidate % PE_TUNINGS};
}

static const char *way_name(const void *self, int candidate, char text[PE_LONGEST_SPEC])
{
    const pe_losses_reading r       = reading_of(self, candidate);
    const int               is_none = r.way == pe_losses_nothing_done(r.way).way;
    snprintf(text, PE_LONGEST_SPEC, r.tuning ? "%s tuned" : "%s",
             !is_none   ? pe_ways[r.way].name
             : r.tuning ? "just"
                        : "as it is");
    return text;
}

static pe_interval reading_behind(const void *self, int other, int first)
{
    const candidates *k = self;
    return pe_losses_extended_difference(k->c->extension, reading_of(k, other), reading_of(k, first),
                                         k->bucket);
}

static void explain_extension(need *n, const candidates *k)
{
    const double none = pe_losses_extended(k->c->extension, pe_losses_nothing_done(0), k->bucket);
    append(n->because, "rope's model read further: %.3f nats per byte there, %.3f as it was trained",
           k->value[n->advice.group[0]], none);
}

/* k [factors]. Returns how many rows. */
static int decide_extension(need *needs, candidates *k, const pe_compare *c)
{
    int rows = 0;
    for (int f = 0; c->extension && c->extension->means && f < PE_FACTORS; f++) {
        k[f] = (candidates){.c = c, .bucket = PE_AT_2L + f, .count = PE_WAYS * PE_TUNINGS};
        for (int i = 0; i < k[f].count; i++) {
            const pe_losses_reading r = reading_of(&k[f], i);
            k[f].value[i]             = strcmp(pe_ways[r.way].family, "rope")
                                            ? NAN
                                            : pe_losses_extended(c->extension, r, k[f].bucket);
        }
        pe_contest contest = loss_contest(&k[f]);
        contest.behind     = reading_behind;
        contest.is_moving  = NULL;
        contest.resolution = 0; /* all are readings of the same trained model */
        need n             = {.advice = pe_advice_decide(&contest), .name_of = way_name, .self = &k[f]};
        if (n.advice.confidence == PE_NOBODY)
            continue;
        snprintf(n.what, sizeof n.what, "already on RoPE, read %lld times as far",
                 (long long)pe_way_factor(f));
        explain_extension(&n, &k[f]);
        needs[rows++] = n;
    }
    return rows;
}

/* ---------------------------------------------------------------- the table ----------------- */

enum { MOST_NEEDS = PE_MOST_BUCKETS + 2 + PE_FACTORS };

static const char known_of_rope[] =
    "not tried here (--extension brief does); a short tuning with linear frequencies (Chen et al. 2023, "
    "arXiv:2306.15595) or yarn (Peng et al. 2023, arXiv:2309.00071) made models of 7 billion parameters read "
    "up to 16 times as far; ntk helps without tuning";

/* About tokens where the text is tokens. */
static void put_told(pe_table *t, int row, int column, const pe_compare *c, const char *text)
{
    char *told = pe_words_retell(c, text);
    pe_table_text(t, row, column, told ? told : text);
    free(told);
}

static void put_need(pe_table *t, int row, const pe_compare *c, const need *n)
{
    char names[NAMES];
    list_names(names, n, n->advice.group, n->advice.count);
    const int fails = n->advice.confidence == PE_FAILED_ALL || n->advice.confidence == PE_NOBODY;
    put_told(t, row, 0, c, n->what);
    pe_table_text(t, row, 1, fails ? "-" : names);
    pe_table_text(t, row, 2, pe_advice_name(n->advice.confidence));
    put_told(t, row, 3, c, n->because);
}

posenc_status pe_answer_table(const pe_compare *c, pe_table *table, posenc_error *err)
{
    static const pe_column heads[] = {{"for", "what the models are for", PE_WIDE, 0},
                                      {"choose", "encodings that cannot be told apart are a tie",
                                       PE_WIDE | PE_ITEMS, 0},
                                      {"confidence", "settled, a tie, or open", PE_TEXT, 0},
                                      {"because", "what was measured", PE_WIDE, 0}};
    need                   needs[MOST_NEEDS];
    candidates            *k     = malloc(MOST_NEEDS * sizeof *k);
    int                    count = 0;
    if (!k)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the recommendations");
    count += decide_losses(needs, k, c);
    count += decide_distance(&needs[count], &k[PE_MOST_BUCKETS], c);
    count += decide_decoding(&needs[count], &k[PE_MOST_BUCKETS + 1], c);
    const int extended         = decide_extension(&needs[count], &k[PE_MOST_BUCKETS + 2], c),
              tells            = !extended && c->reference >= 0;
    const posenc_status status = pe_table_open(table, heads, 4, count + extended + tells, err);
    for (int i = 0; i < count + extended && !status; i++)
        put_need(table, i, c, &needs[i]);
    if (tells && !status) {
        pe_table_text(table, count, 0, "already on RoPE");
        pe_table_text(table, count, 1, "-");
        pe_table_text(table, count, 2, pe_advice_name(PE_NOBODY));
        pe_table_text(table, count, 3, known_of_rope);
    }
    free(k);
    return status;
}

/* ---------------------------------------------------------------- costs --------------------- */

/* Seconds of a training step against those without an encoding; NaN where that was not measured. */
static double time_of(const pe_compare *c, const pe_outcome *o)
{
    const int    nope = pe_claims_find(c, "nope");
    const double own  = o->runs[0].result.tokens_per_second;
    return nope >= 0 && own > 0 ? c->outcomes[nope].runs[0].result.tokens_per_second / own : NAN;
}

posenc_status pe_answer_costs(const pe_compare *c, pe_table *table, posenc_error *err)
{
    static const pe_column heads[] = {
        {"encoding", "as given on the command line", 1, 0},
        {"learns", "trained parameters of the encoding (and W of combine=concat)", 0, 0},
        {"step", "time of a training step, nope = 1", 0, 0},
        {"work", "operations per decoded token, in % of the model's own", 0, 0}};
    const pe_preset    *p      = &c->config.preset;
    const posenc_status status = pe_table_open(table, heads, 4, c->order_count, err);
    for (int row = 0; row < c->order_count && !status; row++) {
        const pe_outcome *o = &c->outcomes[c->order[PE_AT_L][row]];
        pe_table_text(table, row, 0, o->label);
        pe_table_set(table, row, 1, "%lld", (long long)o->runs[0].result.encoding_parameters);
        pe_table_number(table, row, 2, "x%.2f", time_of(c, o));
        pe_table_number(table, row, 3, "%.2g %%", 100 * work_of(c, o) / work_of_model(c, o));
    }
    if (!status)
        pe_table_note(
            table,
            "Costs: numbers that the encoding learns; time of a training step, nope = 1; operations per "
            "token that is decoded with %lld tokens in the cache. The cache is the same for all: %lld "
            "numbers per token.",
            (long long)(p->reach * p->L), (long long)(2 * p->layers * p->d_model));
    return status;
}
