/* SPDX-License-Identifier: MIT */
/*
 * claims.c: sentences of introductions as numbers and sides of limits
 *
 * A row of claims.def is a sentence or a piece of evidence for the one above it. Evidence about an encoding
 * by itself is measured once (claims_properties.c) and kept, as it takes a moment; all else is read from the
 * comparison's own results.
 *
 * Verdict    of evidence: which side of the limit the number is on; of a difference, which side its whole
 *            interval is on, and undecided where the limit lies within. Losses need an ordinary text and
 *            enough steps, as those of checks (checks.c). Of a claim: holds or does not where all that was
 *            measured says so, else in part. Limits are those of this project's words (docs/properties.md,
 *            section 8 of docs/experiments.md), not of the text that makes the claim: it names none.
 */
#include "train/claims.h"

#include "train/claims_properties.h"
#include "train/extension.h"
#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum quantity {
    SENTENCE,
    PROPERTIES,
    RATIO,
    BREAK,
    SHIFT,
    DIFFERENCE,
    APART,
    ANGLE,
    RIGHT,
    CONCAT,
    EXTENDED,
    EXTENDED_AT_L,
    TUNED,
    QUANTITIES
} quantity;

enum { AT_MOST, AT_LEAST };

typedef struct row {
    quantity    quantity;
    const char *of, *with;
    int         number, at_least;
    double      limit;
    const char *words;
} row;

static const row rows[] = {
#define CLAIM(tutorials, said) {.quantity = SENTENCE, .of = tutorials, .words = said},
#define EVIDENCE(quantity, of, with, number, at_least, limit, words) \
    {quantity, of, with, number, at_least, limit, words},
#define PROPERTY(spec, detail, measure, at_least, limit, words) \
    {PROPERTIES, spec, detail, 0, at_least, limit, words},
#include "train/claims.def"
#undef CLAIM
#undef PROPERTY
#undef EVIDENCE
};

enum { ROWS = sizeof rows / sizeof *rows };

int pe_claim_count(void)
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

const char *pe_claim_said(int claim, const char **tutorials, int *evidence)
{
    const int at = row_of(claim);
    *tutorials   = rows[at].of;
    *evidence    = 0;
    while (at + *evidence + 1 < ROWS && rows[at + *evidence + 1].quantity != SENTENCE)
        ++*evidence;
    return rows[at].words;
}

const char *pe_holds_name(pe_holds holds)
{
    static const char *const names[] = {"holds",        "does not hold", "undecided",
                                        "not measured", "holds in part", "holds as far as measured"};
    return names[holds];
}

posenc_status pe_claims_measure(pe_compare *c, posenc_error *err)
{
    if (!c->config.preset.claims)
        return POSENC_OK;
    free(c->properties);
    c->properties = malloc((size_t)pe_property_count() * sizeof *c->properties);
    if (!c->properties)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for properties");
    return pe_properties_measure(c->properties, err);
}

/* ---------------------------------------------------------------- evidence ------------------ */

static const pe_interval unmeasured = {NAN, NAN, NAN};

static pe_interval single(double value)
{
    return (pe_interval){value, value, value};
}

static pe_interval property_of(const pe_compare *c, const row *r)
{
    int number = 0;
    for (const row *before = rows; before < r; before++)
        number += before->quantity == PROPERTIES;
    return c->properties ? single(c->properties[number]) : unmeasured;
}

/* The outcome that a row speaks of; NULL if it was not compared, or if losses are about something else
   here. */
static const pe_outcome *outcome_of(const pe_compare *c, const char *name)
{
    const int i = c->config.bidirectional ? -1 : pe_check_find(c, name);
    return i < 0 ? NULL : &c->outcomes[i];
}

/* The same for what needs an ordinary text and a model that was trained long enough. */
static const pe_outcome *well_trained(const pe_compare *c, const char *name)
{
    return pe_check_reason(c) ? NULL : outcome_of(c, name);
}

static pe_interval ratio_of(const pe_compare *c, const row *r)
{
    const pe_outcome *o = well_trained(c, r->of);
    return o ? single(o->ratio[r->number]) : unmeasured;
}

static pe_interval break_of(const pe_compare *c, const row *r)
{
    const pe_outcome *o = well_trained(c, r->of);
    return o ? single((double)(o->break_position + 1) / (double)o->config.L) : unmeasured;
}

static pe_interval shift_of(const pe_compare *c, const row *r)
{
    const pe_outcome *o = outcome_of(c, r->of);
    return o ? single(pe_outcome_largest_shift(o)) : unmeasured;
}

static pe_interval difference_of(const pe_compare *c, const row *r)
{
    const pe_outcome *a = well_trained(c, r->of), *b = well_trained(c, r->with);
    return a && b ? pe_outcomes_difference(c, (int)(a - c->outcomes), (int)(b - c->outcomes), r->number)
                  : unmeasured;
}

static pe_interval apart_of(const pe_compare *c, const row *r)
{
    const pe_interval d = difference_of(c, r);
    return (pe_interval){fabs(d.value), d.low <= 0 && d.high >= 0 ? 0 : fmin(fabs(d.low), fabs(d.high)),
                         isnan(d.value) ? NAN : fmax(fabs(d.low), fabs(d.high))};
}

static pe_interval angle_of(const pe_compare *c, const row *r)
{
    const pe_outcome *o = well_trained(c, r->of);
    return o ? single(o->cosine_after) : unmeasured;
}

static pe_interval right_of(const pe_compare *c, const row *r)
{
    const pe_cell *cell = pe_suite_find(c->suite, r->with, r->of);
    return cell && cell->is_complete && pe_is_standard_model(&c->config.preset)
               ? single(cell->accuracy[r->number].value)
               : unmeasured;
}

static pe_interval concat_of(const pe_compare *c, const row *r)
{
    const pe_outcome *added = well_trained(c, r->of);
    for (int i = 0; added && i < c->count; i++)
        if (pe_outcome_sum_of(c, i) == (int)(added - c->outcomes) && c->outcomes[i].is_complete &&
            !c->outcomes[i].diverged)
            return pe_outcomes_difference(c, i, (int)(added - c->outcomes), r->number);
    return unmeasured;
}

/* Read by a way, less nothing done. */
static pe_interval reading_of(const pe_compare *c, const row *r, int tuning, int bucket)
{
    const pe_extension *x    = c->extension;
    const pe_spot       spot = {pe_way_find(r->of, r->with), r->number, tuning};
    if (!x || !x->means || x->windows < PE_FEWEST_WINDOWS || pe_check_reason(c) ||
        !pe_extension_has(x, spot.way, spot.factor, tuning))
        return unmeasured;
    return pe_extension_difference(x, spot, pe_extension_nothing_done(spot.way), bucket);
}

static pe_interval extended_of(const pe_compare *c, const row *r)
{
    return reading_of(c, r, PE_UNTUNED, PE_AT_2L + r->number);
}

static pe_interval extended_at_L_of(const pe_compare *c, const row *r)
{
    return reading_of(c, r, PE_UNTUNED, PE_AT_L);
}

static pe_interval tuned_of(const pe_compare *c, const row *r)
{
    return reading_of(c, r, PE_TUNED, PE_AT_2L + r->number);
}

static pe_interval (*const readers[QUANTITIES])(const pe_compare *c, const row *r) = {
    [PROPERTIES]    = property_of,
    [RATIO]         = ratio_of,
    [BREAK]         = break_of,
    [SHIFT]         = shift_of,
    [DIFFERENCE]    = difference_of,
    [APART]         = apart_of,
    [ANGLE]         = angle_of,
    [RIGHT]         = right_of,
    [CONCAT]        = concat_of,
    [EXTENDED]      = extended_of,
    [EXTENDED_AT_L] = extended_at_L_of,
    [TUNED]         = tuned_of,
};

static pe_holds judge(pe_interval x, int at_least, double limit)
{
    if (isnan(x.low) || isnan(x.high))
        return PE_UNMEASURED;
    const double worst = at_least ? x.low - limit : limit - x.high,
                 best  = at_least ? x.high - limit : limit - x.low;
    return worst >= 0 ? PE_HOLDS : best < 0 ? PE_HOLDS_NOT : PE_UNDECIDED;
}

pe_evidence pe_claim_evidence(const pe_compare *c, int claim, int i)
{
    const row        *r          = &rows[row_of(claim) + 1 + i];
    const pe_interval x          = readers[r->quantity](c, r);
    const int         has_bounds = r->quantity == DIFFERENCE || r->quantity == APART || r->quantity >= CONCAT;
    return (pe_evidence){r->words,
                         r->of,
                         x.value,
                         has_bounds ? x.low : NAN,
                         has_bounds ? x.high : NAN,
                         r->limit,
                         r->at_least,
                         judge(x, r->at_least, r->limit)};
}

pe_holds pe_claim_judge(const pe_compare *c, int claim)
{
    const char *tutorials;
    int         evidence, seen[PE_UNMEASURED + 1] = {0};
    pe_claim_said(claim, &tutorials, &evidence);
    for (int i = 0; i < evidence; i++)
        seen[pe_claim_evidence(c, claim, i).holds]++;
    if (seen[PE_HOLDS] && seen[PE_HOLDS_NOT])
        return PE_IN_PART;
    if (seen[PE_UNDECIDED])
        return PE_UNDECIDED;
    if (seen[PE_HOLDS])
        return seen[PE_UNMEASURED] ? PE_HOLDS_SO_FAR : PE_HOLDS;
    return seen[PE_HOLDS_NOT] ? PE_HOLDS_NOT : PE_UNMEASURED;
}
