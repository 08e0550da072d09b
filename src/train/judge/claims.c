/* SPDX-License-Identifier: MIT */
/*
 * claims.c: what must come out, and what introductions say, as quantities and sides of limits
 *
 * A row of checks.def is a check; one of claims.def is a sentence, or a piece of evidence for the sentence
 * above it. Checks and evidence are alike: a quantity, whom it is measured of, and the side of a limit on
 * which it must lie. What was measured has a 95 % interval, theorems and properties are single numbers. Of
 * several subjects the one that is furthest from holding decides.
 *
 * Verdict     holds where both ends are on the right side of the limit, does not where both are on the other,
 *             and is undecided where the limit lies between them. A check that is FAILED means that the text,
 *             the budget or the code is not what it was when the thresholds were set; one that is undecided
 *             needs more seeds or windows. A sentence holds or does not where all that was measured for it
 *             says so, else in part. Its
 *             limits are this project's (docs/properties.md, section 8 of docs/experiments.md), not those of
 *             the text that makes the claim: it names none.
 * No verdict  by rule and with the reason. Losses need the next byte as what is predicted, default settings,
 *             24 held-out windows, the model and the steps that the thresholds are for, and a text whose loss
 *             without positions (BASELINE in checks.def) is 2 % or more above the best at L. Tasks do not
 *             depend on the text. Nor do the theorems: that tokens without positions are a bag, and that a
 *             shift changes nothing where scores see only differences; that it changes something is learned.
 */
#include "train/judge/judge.h"

#include "measure/measure.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 400, MOST_FOUND = sizeof((pe_check_result *)0)->found, TASKS_OF_LAST = 8 };
enum { FEWEST_TASK_STEPS = 200 }; /* of a claim: after fewer no model has learned its task */
#define SLACK       1e-4          /* nats: sums of a batch in float */
#define BY_CHANCE   0.02          /* so much better than chance is none yet */
#define BINOMIAL_99 2.5758        /* the 99.5 % quantile of the normal */

typedef enum quantity {
    SENTENCE,
    PROPERTIES,
    PERMUTED,
    PERMUTED_CAUSAL,
    SHIFT,
    RATIO,
    BREAK,
    DIFFERENCE,
    MAGNITUDE,
    ANGLE,
    CONCAT,
    EXTENDED,
    EXTENDED_AT_L,
    TUNED,
    BLIND,
    CHANCE,
    RIGHT,
    LAST
} quantity; /* in the order of what they are measured of: kind_of */

typedef struct claim_row {
    int         number; /* of a check */
    quantity    quantity;
    const char *of, *with;
    int         at; /* which bucket, length, factor or pe_measure */
    enum { AT_MOST, AT_LEAST, BELOW, ABOVE } side;
    double limit;
    enum whom { NAMED, OTHERS, BY_DISTANCE } whom;
    int64_t     steps;
    const char *minus;
    int         minus_tuning;
    const char *words;
} claim_row;

static const claim_row checks[] = {
#define CHECK(...) {__VA_ARGS__, .words = NULL},
#include "train/judge/checks.def"
#undef CHECK
};

static const claim_row rows[] = {
#define CLAIM(tutorials, said) {.quantity = SENTENCE, .of = tutorials, .words = said},
#define EVIDENCE(quantity, of, with, number, side, limit, said) \
    {0, quantity, of, with, number, side, limit, .words = said},
#define PROPERTY(spec, detail, measure, side, limit, said) \
    {0, PROPERTIES, spec, detail, measure, side, limit, .words = said},
#include "train/judge/claims.def"
#undef CLAIM
#undef PROPERTY
#undef EVIDENCE
};

enum { CHECKS = sizeof checks / sizeof *checks, ROWS = sizeof rows / sizeof *rows };
static_assert((int)CHECKS <= (int)PE_MOST_CHECKS, "PE_MOST_CHECKS");

/* ---------------------------------------------------------------- what judging needs -------- */

/* Name number i of a list, "a,b", into text; 0 if there is none. */
static int name_at(char text[MOST_NAMES], const char *list, int i)
{
    const char *at = list;
    for (; *at && i > 0; i--)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
    snprintf(text, MOST_NAMES, "%.*s", (int)strcspn(at, ","), at);
    return *text != 0;
}

static int lists(const char *list, const char *name)
{
    char one[MOST_NAMES];
    for (int i = 0; list && name_at(one, list, i); i++)
        if (!strcmp(one, name))
            return 1;
    return 0;
}

int pe_claims_find(const pe_compare *c, const char *name)
{
    for (int i = 0; name && i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        if (o->is_plain && o->is_complete && !o->diverged && !strcmp(o->label, name))
            return i;
    }
    return -1;
}

/* Are model and training of this comparison those of its preset, for which the thresholds are? */
static int is_as_preset(const pe_preset *p)
{
    const pe_preset *preset = pe_preset_find(p->name);
    return preset && p->L == preset->L && p->d_model == preset->d_model && p->layers == preset->layers &&
           p->heads == preset->heads && p->batch == preset->batch && p->task_layers == preset->task_layers &&
           p->task_batch == preset->task_batch && p->learning_rate == preset->learning_rate &&
           !p->positions == !preset->positions;
}

/* Why claims about losses on the text cannot be judged here, or NULL. */
static const char *reason_of_text(const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    if (c->windows < PE_FEWEST_WINDOWS)
        return "too few held-out windows: give a longer text";
    if (!is_as_preset(p) || p->steps < pe_preset_find(p->name)->steps)
        return "fewer steps, another model or another training than the threshold is for";
    if (c->text.vocabulary)
        return "the threshold is for bytes";
    const int without = pe_claims_find(c, BASELINE); /* which may not be among the encodings */
    return without >= 0 && c->reference >= 0 &&
                   c->outcomes[without].loss[PE_AT_L] <
                       BASELINE_RATIO * c->outcomes[c->reference].loss[PE_AT_L]
               ? "position hardly matters in this text"
               : NULL;
}

/* ---------------------------------------------------------------- encodings by themselves --- */

/* The sizes of `posenc properties`, so that this command prints the same numbers. */
static const pe_survey survey = {.sizes  = {.length = 512, .width = 64, .heads = 4, .draws = 20, .seed = 1},
                                 .tokens = 64};

/* All rows about one SPEC, which is surveyed once: from row `first` on. */
static posenc_status measure_spec(double *values, int first, posenc_error *err)
{
    const char      *spec = rows[first].of;
    pe_findings     *f    = calloc(1, sizeof *f);
    posenc_encoding *e    = NULL;
    if (!f)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for properties");
    posenc_status status = pe_survey_encoding(&e, spec, NULL, err);
    if (!status)
        status = pe_survey_run(e, &survey, f, err);
    for (int i = first; i < ROWS && !status; i++)
        for (int k = f->count - 1; k >= 0 && rows[i].quantity == PROPERTIES; k--) /* the first that fits */
            if (!strcmp(rows[i].of, spec) && (int)f->rows[k].measure == rows[i].at &&
                !strncmp(f->rows[k].detail, rows[i].with, strlen(rows[i].with)))
                values[i] = f->rows[k].value;
    posenc_encoding_free(e);
    free(f);
    return status;
}

/* NaN for a row whose encoding has no such finding. */
static posenc_status measure_properties(double values[ROWS], posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < ROWS; i++)
        values[i] = NAN;
    for (int i = 0; i < ROWS && !status; i++) {
        int is_first = rows[i].quantity == PROPERTIES;
        for (int k = 0; k < i && is_first; k++)
            is_first = rows[k].quantity != PROPERTIES || strcmp(rows[k].of, rows[i].of) != 0;
        if (is_first)
            status = measure_spec(values, i, err);
    }
    return status;
}

/* max |f(Px) - P f(x)| without a mask and under a causal one; NaN where the encoding has no meaning there. */
static posenc_status measure_permuted(pe_outcome *o, posenc_error *err)
{
    pe_subject_sizes few   = survey.sizes;
    pe_findings      found = {.count = 0};
    posenc_encoding *e     = NULL;
    pe_subject      *s     = NULL;
    few.length             = survey.tokens;
    posenc_status status   = pe_survey_encoding(&e, o->label, NULL, err);
    if (!status)
        status = pe_subject_create(&s, e, &few, err);
    if (!status)
        status = pe_equivariance_measure(s, &found, err);
    for (int i = 0; i < found.count; i++)
        *(found.rows[i].measure == PE_CAUSAL ? &o->permuted_causal : &o->permuted) = found.rows[i].value;
    pe_subject_free(s);
    posenc_encoding_free(e);
    return status;
}

posenc_status pe_claims_measure(pe_compare *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < c->count && !status; i++) {
        pe_outcome *o = &c->outcomes[i];
        o->permuted = o->permuted_causal = NAN;
        if (o->is_plain)
            status = measure_permuted(o, err);
    }
    if (status || !c->config.preset.claims)
        return status;
    free(c->properties);
    c->properties = malloc(ROWS * sizeof *c->properties);
    if (!c->properties)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for properties");
    return measure_properties(c->properties, err);
}

/* ---------------------------------------------------------------- what is measured ---------- */

/* What a row is measured of, by number: the outcomes, the cells of the suite, the names of its list, or only
   one thing, which the row says. */
static enum subject_kind { ONE_THING, OUTCOMES, CELLS, NAMES } kind_of(const claim_row *r)
{
    const quantity q = r->quantity;
    return q < PERMUTED || (q >= EXTENDED && q <= TUNED) ? ONE_THING
           : q < EXTENDED                                ? OUTCOMES
           : q < LAST                                    ? CELLS
                                                         : NAMES;
}

static const pe_interval unmeasured = {NAN, NAN, NAN};

static pe_interval single(double value)
{
    return (pe_interval){value, NAN, NAN};
}

static pe_interval magnitude(pe_interval d)
{
    return (pe_interval){fabs(d.value), d.low <= 0 && d.high >= 0 ? 0 : fmin(fabs(d.low), fabs(d.high)),
                         isnan(d.value) ? NAN : fmax(fabs(d.low), fabs(d.high))};
}

/* Concatenated minus added, the latter being outcome `added`. */
static pe_interval concatenated(const pe_compare *c, int added, int bucket)
{
    for (int i = 0; i < c->count; i++)
        if (pe_outcome_added(c, i) == added && c->outcomes[i].is_complete && !c->outcomes[i].diverged)
            return pe_losses_difference(c, i, added, bucket);
    return unmeasured;
}

static pe_interval of_outcome(const pe_compare *c, const claim_row *r, int i)
{
    const pe_outcome *o     = &c->outcomes[i];
    const int         other = pe_claims_find(c, r->with);
    switch (r->quantity) {
    case PERMUTED: return single(o->permuted);
    case PERMUTED_CAUSAL: return single(o->permuted_causal);
    case SHIFT:
        return r->number && (!is_as_preset(&c->config.preset) || c->config.preset.reach != PE_REACH)
                   ? unmeasured
                   : single(pe_losses_largest_shift(o));
    case RATIO: return pe_losses_ratio(o, c->config.preset.seeds, r->at);
    case BREAK: return single((double)(o->break_position + 1) / (double)o->config.L);
    case ANGLE: return single(o->cosine_after);
    case CONCAT: return concatenated(c, i, r->at);
    case MAGNITUDE: return other < 0 ? unmeasured : magnitude(pe_losses_difference(c, i, other, r->at));
    default: return other < 0 ? unmeasured : pe_losses_difference(c, i, other, r->at);
    }
}

static int bucket_of(const claim_row *r)
{
    return r->quantity == EXTENDED_AT_L ? PE_AT_L : PE_AT_2L + r->at;
}

/* Of a row about reading further: by its way, or what that is held against, which is nothing done unless it
 * says. */
static pe_losses_reading spot_of(const claim_row *r, int is_other)
{
    const pe_losses_reading spot = {pe_way_find(r->of, r->with), r->at,
                                    r->quantity == TUNED ? PE_TUNED : PE_UNTUNED};
    if (!is_other)
        return spot;
    return r->minus ? (pe_losses_reading){pe_way_find(r->of, r->minus), r->at, r->minus_tuning}
                    : pe_losses_nothing_done(spot.way);
}

static pe_interval of_reading(const pe_compare *c, const claim_row *r)
{
    const pe_losses_reading a = spot_of(r, 0), b = spot_of(r, 1);
    if (!c->extension || !pe_losses_has_extended(c->extension, a) || !pe_losses_has_extended(c->extension, b))
        return unmeasured;
    return pe_losses_extended_difference(c->extension, a, b, bucket_of(r));
}

static int counts(const pe_cell *cell, const claim_row *r)
{
    return cell->is_plain && cell->is_complete &&
           cell->config.steps >= (r->steps ? r->steps : FEWEST_TASK_STEPS);
}

/* Of BLIND and CHANCE: how far it is on the right side. */
static pe_interval of_cell(char text[MOST_FOUND], const pe_compare *c, const claim_row *r, int i)
{
    const pe_cell    *cell = &c->suite->cells[i];
    const pe_interval rate = cell->accuracy[r->at];
    const double      p    = cell->task->chance,
                 half      = BINOMIAL_99 * sqrt(p * (1 - p) / (double)(cell->config.sequences * cell->seeds));
    switch (r->quantity) {
    case BLIND:
        snprintf(text, MOST_FOUND, "%s: lowest loss %.4f, accuracy %.3f", cell->label, cell->lowest_loss,
                 rate.value);
        return single(
            fmin(cell->lowest_loss - (log((double)cell->task->L) - SLACK), p + BY_CHANCE - rate.value));
    case CHANCE:
        snprintf(text, MOST_FOUND, "%s: %.3f, interval %.3f to %.3f", cell->label, rate.value, p - half,
                 p + half);
        return single(half - fabs(rate.value - p));
    default:
        snprintf(text, MOST_FOUND, "%s: %.3f (%.3f to %.3f)", cell->label, rate.value, rate.low, rate.high);
        return rate;
    }
}

/* The label's number if it is compared with default settings, or -1. */
static int label_of(const pe_suite *s, const char *name)
{
    for (int l = 0; s && l < s->label_count; l++)
        if (!strcmp(s->labels[l], name) && !isnan(s->reciprocal[l]))
            return l;
    return -1;
}

/* Are these tasks beyond L as many as the claim was measured over, and trained for so long? */
static int has_all_tasks(const pe_suite *s, const claim_row *r)
{
    int tasks = 0;
    for (int t = 0; t < s->task_count; t++) {
        if (pe_task_size(s->tasks[t], PE_TASK_2) <= 0)
            continue;
        if (pe_suite_cell(s, t, 0)->config.steps < r->steps)
            return 0;
        tasks += !s->tasks[t]->grid;
    }
    return tasks >= TASKS_OF_LAST;
}

/* How many of AMONG are compared, and how many of them are better than this one over all tasks except
   one. */
static int count_better(const pe_suite *s, int label, int except, int *count)
{
    char         other[MOST_NAMES];
    const double own    = pe_rates_reciprocal(s, label, except);
    int          better = 0;
    *count              = 0;
    for (int i = 0; name_at(other, AMONG, i); i++) {
        const int l = label_of(s, other);
        *count += l >= 0;
        better += l >= 0 && l != label && pe_rates_reciprocal(s, l, except) > own;
    }
    return better;
}

/* Its place among those of AMONG that are compared, counted from the last; its ends are the places that it
   would have if one of the tasks were not among them (jackknife). */
static pe_interval of_name(char text[MOST_FOUND], const pe_suite *s, const claim_row *r, const char *name)
{
    const int label = label_of(s, name);
    int       count;
    if (label < 0 || !has_all_tasks(s, r))
        return unmeasured;
    const int   better = count_better(s, label, -1, &count);
    pe_interval place  = {count - better, count - better, count - better};
    for (int t = 0; t < s->task_count; t++) {
        const double one = count - count_better(s, label, t, &count);
        place.low        = fmin(place.low, one);
        place.high       = fmax(place.high, one);
    }
    snprintf(text, MOST_FOUND, "%.60s: %d of %d are better (mean of 1/rank %.2f)", name, better, count - 1,
             s->reciprocal[label]);
    return count > 2 * (int)r->limit ? place : unmeasured;
}

/* ---------------------------------------------------------------- of whom ------------------- */

static int count_subjects(const pe_compare *c, const claim_row *r)
{
    char name[MOST_NAMES];
    int  count = kind_of(r) == OUTCOMES ? c->count : kind_of(r) == ONE_THING;
    if (kind_of(r) == CELLS && c->suite)
        return c->suite->task_count * c->suite->label_count;
    while (kind_of(r) == NAMES && name_at(name, r->of, count))
        count++;
    return count;
}

static int speaks_of_outcome(const pe_outcome *o, const claim_row *r)
{
    const int by_itself = r->quantity == PERMUTED || r->quantity == PERMUTED_CAUSAL;
    if (!o->is_plain || (!by_itself && (!o->is_complete || o->diverged)))
        return 0;
    return r->whom == BY_DISTANCE ? posenc_encoding_find(o->label)->by_distance
                                  : lists(r->of, o->label) == (r->whom == NAMED);
}

/* Does the row speak of subject i? Its name. */
static int speaks_of(char name[MOST_NAMES], const pe_compare *c, const claim_row *r, int i)
{
    const enum subject_kind kind = kind_of(r);
    if (kind == NAMES)
        return name_at(name, r->of, i);
    const pe_cell *cell = kind == CELLS ? &c->suite->cells[i] : NULL;
    snprintf(name, MOST_NAMES, "%.60s", kind == OUTCOMES ? c->outcomes[i].label : cell ? cell->label : r->of);
    if (!cell)
        return kind == ONE_THING || speaks_of_outcome(&c->outcomes[i], r);
    const int is_named = lists(r->of, cell->label);
    return !strcmp(cell->task->name, r->with) && counts(cell, r) &&
           (r->whom == OTHERS ? !is_named && lists(AMONG, cell->label) : is_named);
}

/* ---------------------------------------------------------------- verdicts ------------------ */

/* How far on the right side of the limit the worse end is, or the better one. */
static double margin_of(pe_interval x, const claim_row *r, int is_better)
{
    const double low = isnan(x.low) ? x.value : x.low, high = isnan(x.high) ? x.value : x.high;
    const int    is_up = r->side == AT_LEAST || r->side == ABOVE;
    const double end   = is_up == is_better ? high : low;
    return is_up ? end - r->limit : r->limit - end;
}

static pe_holds holds_of(pe_interval x, const claim_row *r)
{
    const double worse = margin_of(x, r, 0);
    if (r->side == BELOW || r->side == ABOVE ? worse > 0 : worse >= 0)
        return PE_HOLDS;
    return margin_of(x, r, 1) < 0 ? PE_HOLDS_NOT : PE_UNDECIDED;
}

/* What a row comes to: the number of the subject that decides, and what was found, or why there is no
 * verdict. */
typedef struct judged {
    pe_interval x;
    pe_holds    holds;
    int         count; /* of subjects with a number */
    double      margin;
    char        names[MOST_NAMES], found[MOST_FOUND];
} judged;

/* Is a subject with this verdict further from holding than those before? One that does not hold is further
   than any that is undecided, and that than any that holds. */
static int is_further(const judged *j, pe_holds holds, double margin)
{
    static const int order[] = {[PE_HOLDS] = 0, [PE_UNDECIDED] = 1, [PE_HOLDS_NOT] = 2};
    return !j->count || order[holds] > order[j->holds] || (holds == j->holds && margin < j->margin);
}

static void describe_found(judged *j, const claim_row *r, const char *name)
{
    const pe_interval x = j->x;
    if (r->quantity == RATIO)
        snprintf(j->found, MOST_FOUND, "%.3f (%.3f to %.3f)", x.value, x.low, x.high);
    else if (!isnan(x.low))
        snprintf(j->found, MOST_FOUND, "difference %+.3f (%+.3f to %+.3f)", x.value, x.low, x.high);
    else
        snprintf(j->found, MOST_FOUND, "%.60s: %.2g", name, x.value);
}

static pe_interval measured_of(char text[MOST_FOUND], const pe_compare *c, const claim_row *r, int i,
                               const char *name)
{
    switch (kind_of(r)) {
    case OUTCOMES: return of_outcome(c, r, i);
    case CELLS: return of_cell(text, c, r, i);
    case NAMES: return of_name(text, c->suite, r, name);
    default:
        return r->quantity != PROPERTIES ? of_reading(c, r)
               : c->properties           ? single(c->properties[r - rows])
                                         : unmeasured;
    }
}

static void add_subject(judged *j, const pe_compare *c, const claim_row *r, int i)
{
    char name[MOST_NAMES], text[MOST_FOUND] = "";
    if (!speaks_of(name, c, r, i))
        return;
    const pe_interval x = measured_of(text, c, r, i, name);
    /* a model that diverged is on the wrong side of a check, whatever it answers */
    const int      is_lost = r->number && kind_of(r) == CELLS && c->suite->cells[i].diverged;
    const double   margin  = is_lost ? -INFINITY : margin_of(x, r, 0);
    const pe_holds holds   = is_lost ? PE_HOLDS_NOT : holds_of(x, r);
    if (isnan(x.value) && !is_lost)
        return;
    snprintf(j->names + strlen(j->names), MOST_NAMES - strlen(j->names), "%s%s", j->count ? ", " : "", name);
    if (is_further(j, holds, margin)) {
        j->x      = x;
        j->holds  = holds;
        j->margin = margin;
        describe_found(j, r, name);
        if (text[0])
            snprintf(j->found, MOST_FOUND, "%s", text);
    }
    j->count++;
}

/* Why there is no verdict, or NULL; `text` is memory for it. */
static const char *reason_against(char text[MOST_FOUND], const pe_compare *c, const claim_row *r, int count)
{
    const pe_extension *x = c->extension;
    switch (kind_of(r)) {
    case OUTCOMES:
        if (r->at > pe_stats_furthest(c->config.preset.reach))
            return "not read so far beyond L: see --reach";
        if (r->quantity <= SHIFT && !count)
            return "not in this comparison with default settings and the preset's model, or diverged";
        if (r->quantity <= SHIFT)
            return r->number && r->quantity == SHIFT && r->side == AT_LEAST ? reason_of_text(c) : NULL;
        if (c->config.bidirectional || c->text.vocabulary)
            return "the claims are about predicting the next byte";
        return count ? reason_of_text(c) : "not in this comparison with default settings, or diverged";
    case ONE_THING:
        if (r->quantity == PROPERTIES)
            return count ? NULL : "not measured";
        if (!x || !x->count)
            return x && x->reason[0] ? x->reason : "no model was extended";
        if (!count)
            return "not read";
        return x->windows < PE_FEWEST_WINDOWS ? "too few windows of 16 L: give a longer text"
                                              : reason_of_text(c);
    default:
        if (!is_as_preset(&c->config.preset))
            return "another model or another training than the threshold is for";
        snprintf(text, MOST_FOUND, "not compared on this task for %lld steps or more", (long long)r->steps);
        return count ? NULL : r->quantity == LAST ? "not compared on eight tasks for so many steps" : text;
    }
}

static judged judge(const pe_compare *c, const claim_row *r)
{
    judged j = {.x = unmeasured, .holds = PE_HOLDS};
    char   text[MOST_FOUND];
    for (int i = 0, n = count_subjects(c, r); i < n; i++)
        add_subject(&j, c, r, i);
    const char *why = reason_against(text, c, r, j.count);
    if (why) {
        j.x     = unmeasured;
        j.holds = PE_UNMEASURED;
        snprintf(j.found, MOST_FOUND, "%s", why);
    }
    return j;
}

/* ---------------------------------------------------------------- checks -------------------- */

/* "rope by ntk 2, untuned" */
static const char *name_spot(char text[96], const claim_row *r, pe_losses_reading spot)
{
    const pe_way *way = &pe_ways[spot.way];
    char          factor[24];
    snprintf(factor, sizeof factor, " %lld", (long long)pe_way_factor(spot.factor_index));
    snprintf(text, 96, "%s by %s%s, %s", r->of, way->name,
             way->ignores_factor && spot.tuning == PE_UNTUNED ? "" : factor, pe_way_tuning_name(spot.tuning));
    return text;
}

/* "rope,t5" as "rope, t5"; "" where there is no list */
static void spell(char text[MOST_NAMES], const char *list)
{
    size_t n = 0;
    for (text[0] = 0; list && *list && n + 3 < MOST_NAMES; list++)
        n += (size_t)snprintf(text + n, MOST_NAMES - n, *list == ',' ? "%c " : "%c", *list);
}

/* Of whom it speaks here, or would: "all except nope". */
static void name_whom(char text[MOST_NAMES], const claim_row *r, const char *names)
{
    char of[MOST_NAMES];
    spell(of, r->of);
    if (names[0])
        snprintf(text, MOST_NAMES, "%s", names);
    else if (r->whom == BY_DISTANCE)
        snprintf(text, MOST_NAMES, "encodings that see only differences");
    else
        snprintf(text, MOST_NAMES, "%s%s", r->whom == OTHERS ? "all except " : "", of);
}

static void describe(char *text, size_t n, const claim_row *r, const char *names)
{
    static const char *const sides[] = {"at most", "at least", "below", "above"};
    const char              *side = sides[r->side], *at = pe_task_length_name(r->at);
    char                     whom[MOST_NAMES], of[MOST_NAMES], one[96], other[96];
    name_whom(whom, r, names);
    spell(of, r->of);
    switch (r->quantity) {
    case PERMUTED:
    case PERMUTED_CAUSAL:
        snprintf(text, n,
                 "permuted tokens, %s mask: the output differs from the permuted output by %s %.0e: %s",
                 r->quantity == PERMUTED ? "no" : "causal", side, r->limit, whom);
        break;
    case SHIFT:
        snprintf(text, n, "positions from 1, 16, L/2, L, 4 L on change the loss by %s %.0e: %s", side,
                 r->limit, whom);
        break;
    case RATIO: snprintf(text, n, "E_%d of %s %s %.2f", 1 << (r->at - 1), r->of, side, r->limit); break;
    case DIFFERENCE:
        snprintf(text, n, "loss of %s %s that of %s at %s", r->of, side, r->with,
                 pe_stats_bucket_name(r->at));
        break;
    case BLIND:
        snprintf(text, n, "%s: loss never below ln n, accuracy at most 1/n + %.2f: %s", r->with, BY_CHANCE,
                 whom);
        break;
    case CHANCE: snprintf(text, n, "%s at %s: by chance: %s", r->with, at, whom); break;
    case RIGHT:
        if (r->whom == OTHERS)
            snprintf(text, n, "%s at %s: %s %.2f right except %s%s%s", r->with, at, side, r->limit, r->of,
                     names[0] ? ": " : "", names);
        else
            snprintf(text, n, "%s at %s: %s %.2f right: %s", r->with, at, side, r->limit, whom);
        break;
    case LAST: snprintf(text, n, "mean of 1/rank over tasks: among the last %.0f: %s", r->limit, of); break;
    default:
        snprintf(text, n, "loss at %s: %s %s %s", pe_way_bucket_name(bucket_of(r)),
                 name_spot(one, r, spot_of(r, 0)), side, name_spot(other, r, spot_of(r, 1)));
    }
}

const char *pe_claims_verdict_name(pe_verdict verdict)
{
    static const char *const names[] = {"passed", "FAILED", "undecided", "not applicable"};
    return names[verdict];
}

int pe_claims_check(pe_check_result results[PE_MOST_CHECKS], const pe_compare *c)
{
    for (int i = 0; i < CHECKS; i++) {
        static const pe_verdict verdicts[] = {[PE_HOLDS]      = PE_PASSED,
                                              [PE_HOLDS_NOT]  = PE_FAILED,
                                              [PE_UNDECIDED]  = PE_CHECK_UNDECIDED,
                                              [PE_UNMEASURED] = PE_NOT_APPLICABLE};
        const judged            j          = judge(c, &checks[i]);
        results[i].number                  = checks[i].number;
        results[i].verdict                 = verdicts[j.holds];
        results[i].measured                = j.x;
        results[i].limit                   = checks[i].limit;
        describe(results[i].claim, sizeof results[i].claim, &checks[i], j.names);
        memcpy(results[i].found, j.found, sizeof j.found);
    }
    return CHECKS;
}

/* ---------------------------------------------------------------- sentences ----------------- */

int pe_claims_count(void)
{
    int count = 0;
    for (int i = 0; i < ROWS; i++)
        count += rows[i].quantity == SENTENCE;
    return count;
}

/* The row of claim number `claim`. */
static int row_of(int claim)
{
    int i = 0;
    for (int before = claim; before > 0 || rows[i].quantity != SENTENCE; i++)
        before -= rows[i + 1].quantity == SENTENCE;
    return i;
}

const char *pe_claims_said(int claim, const char **tutorials, int *evidence)
{
    const int at = row_of(claim);
    *tutorials   = rows[at].of;
    *evidence    = 0;
    while (at + *evidence + 1 < ROWS && rows[at + *evidence + 1].quantity != SENTENCE)
        ++*evidence;
    return rows[at].words;
}

const char *pe_claims_holds_name(pe_holds holds)
{
    static const char *const names[] = {"holds",        "does not hold", "undecided",
                                        "not measured", "holds in part", "holds as far as measured"};
    return names[holds];
}

pe_evidence pe_claims_evidence(const pe_compare *c, int claim, int i)
{
    const claim_row *r = &rows[row_of(claim) + 1 + i];
    const judged     j = judge(c, r);
    return (pe_evidence){r->words, r->of,    j.x.value,           j.x.low,
                         j.x.high, r->limit, r->side == AT_LEAST, j.holds};
}

pe_holds pe_claims_judge(const pe_compare *c, int claim)
{
    const char *tutorials;
    int         evidence, seen[PE_UNMEASURED + 1] = {0};
    pe_claims_said(claim, &tutorials, &evidence);
    for (int i = 0; i < evidence; i++)
        seen[pe_claims_evidence(c, claim, i).holds]++;
    if (seen[PE_HOLDS] && seen[PE_HOLDS_NOT])
        return PE_IN_PART;
    if (seen[PE_UNDECIDED])
        return PE_UNDECIDED;
    if (seen[PE_HOLDS])
        return seen[PE_UNMEASURED] ? PE_HOLDS_SO_FAR : PE_HOLDS;
    return seen[PE_HOLDS_NOT] ? PE_HOLDS_NOT : PE_UNMEASURED;
}
