/* SPDX-License-Identifier: MIT */
/*
 * checks_trained.c: claims about encodings by themselves and about trained and extended models that can turn
 * out false
 *
 * Rows of checks_trained.def. That tokens without positions are a bag, and that a shift changes nothing where
 * scores see differences alone, are theorems, which need no ordinary text and no training; that a shift
 * changes something must be learned first. Losses of extended models are judged under the conditions of all
 * claims about losses (checks.c), and where enough windows of 16 L fit.
 */
#include "train/extension.h"

#include "train/claims_properties.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 400 };

typedef enum claim_kind { AT_MOST, AT_LEAST, BELOW, ABOVE, NOT_ABOVE } claim_kind;
typedef enum quantity { PERMUTED, PERMUTED_CAUSAL, SHIFT, QUANTITIES } quantity;
typedef enum whom { NAMED, OTHERS, BY_DISTANCE } whom;

typedef struct outcome_claim {
    int         number;
    claim_kind  kind;
    quantity    quantity;
    whom        whom;
    const char *encodings; /* a list */
    double      limit;
} outcome_claim;

typedef struct extension_claim {
    int         number;
    claim_kind  kind;
    const char *family, *way;
    int         factor, tuning;
    const char *other;
    int         other_factor, other_tuning, bucket;
} extension_claim;

static const outcome_claim outcome_claims[] = {
#define OUTCOME_CHECK(...) {__VA_ARGS__},
#define EXTENSION_CHECK(...)
#include "train/checks_trained.def"
#undef OUTCOME_CHECK
#undef EXTENSION_CHECK
};

static const extension_claim extension_claims[] = {
#define OUTCOME_CHECK(...)
#define EXTENSION_CHECK(...) {__VA_ARGS__},
#include "train/checks_trained.def"
#undef OUTCOME_CHECK
#undef EXTENSION_CHECK
};

enum {
    OUTCOME_CLAIMS   = sizeof outcome_claims / sizeof *outcome_claims,
    EXTENSION_CLAIMS = sizeof extension_claims / sizeof *extension_claims
};

int pe_trained_check_count(void)
{
    return OUTCOME_CLAIMS + EXTENSION_CLAIMS;
}

/* ---------------------------------------------------------------- of one encoding ----------- */

posenc_status pe_check_measure(pe_compare *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < c->count && !status; i++) {
        pe_outcome *o = &c->outcomes[i];
        o->permuted = o->permuted_causal = NAN;
        if (o->is_plain)
            status = pe_properties_permuted(&o->permuted, &o->permuted_causal, o->label, err);
    }
    return status;
}

static double value_of(const pe_compare *c, quantity q, const pe_outcome *o)
{
    if (q != SHIFT)
        return q == PERMUTED ? o->permuted : o->permuted_causal;
    return pe_is_standard_model(&c->config.preset) && o->is_complete && !o->diverged
               ? pe_outcome_largest_shift(o)
               : NAN;
}

static int speaks_of(const outcome_claim *k, const pe_outcome *o)
{
    if (!o->is_plain)
        return 0;
    if (k->whom == BY_DISTANCE)
        return posenc_encoding_find(o->label)->by_distance;
    return pe_check_lists(k->encodings, o->label) == (k->whom == NAMED);
}

/* Of whom it speaks here, or would: "all but nope". */
static void name_whom(char *text, size_t n, const outcome_claim *k, const char *names)
{
    if (names[0] || k->whom == NAMED)
        snprintf(text, n, "%s", names[0] ? names : k->encodings);
    else if (k->whom == OTHERS)
        snprintf(text, n, "all but %s", k->encodings);
    else
        snprintf(text, n, "what sees differences alone");
}

static void describe_outcomes(char *text, size_t n, const outcome_claim *k, const char *names)
{
    static const char *const of[QUANTITIES] = {
        [PERMUTED]        = "permuted tokens, no mask: the output differs from the permuted output by",
        [PERMUTED_CAUSAL] = "permuted tokens, causal mask: the output differs from the permuted output by",
        [SHIFT]           = "positions from 1, 16, L/2, L, 4 L on change the loss by"};
    char who[MOST_NAMES];
    name_whom(who, sizeof who, k, names);
    snprintf(text, n, "%s at %s %.0e: %s", of[k->quantity], k->kind == AT_MOST ? "most" : "least", k->limit,
             who);
}

/* Why it cannot be judged though there are numbers, or NULL: a theorem needs no training, an effect does. */
static const char *reason_against_outcomes(const pe_compare *c, const outcome_claim *k)
{
    return k->quantity == SHIFT && k->kind == AT_LEAST ? pe_check_reason(c) : NULL;
}

static void judge_outcomes(pe_check_result *r, const pe_compare *c, const outcome_claim *k)
{
    char        names[MOST_NAMES] = "";
    double      least             = INFINITY; /* margin: below 0 the claim is wrong */
    const char *why               = reason_against_outcomes(c, k);
    snprintf(r->found, sizeof r->found, "not compared with standard settings in the preset's model");
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o     = &c->outcomes[i];
        const double      value = value_of(c, k->quantity, o);
        if (!speaks_of(k, o) || isnan(value))
            continue;
        const double margin = k->kind == AT_MOST ? k->limit - value : value - k->limit;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.60s", names[0] ? ", " : "",
                 o->label);
        if (margin < least)
            snprintf(r->found, sizeof r->found, "%.60s: %.2g", o->label, value);
        least = fmin(least, margin);
    }
    describe_outcomes(r->claim, sizeof r->claim, k, names);
    r->verdict = isinf(least) || why ? PE_NOT_APPLICABLE : least >= 0 ? PE_PASSED : PE_FAILED;
    if (why && !isinf(least))
        snprintf(r->found, sizeof r->found, "%s", why);
}

/* ---------------------------------------------------------------- extension ----------------- */

/* "rope by ntk 2, untuned" */
static void name_spot(char *text, size_t n, const char *family, const char *way, int factor, int tuning)
{
    const int is_nothing =
        pe_way_at(pe_way_find(family, way))->flags & PE_EVERY_FACTOR && tuning == PE_UNTUNED;
    if (is_nothing)
        snprintf(text, n, "%s by %s, %s", family, way, pe_tuning_name(tuning));
    else
        snprintf(text, n, "%s by %s %lld, %s", family, way, (long long)pe_factor_at(factor),
                 pe_tuning_name(tuning));
}

static void describe(char *text, size_t n, const extension_claim *k)
{
    char one[96], other[96];
    name_spot(one, sizeof one, k->family, k->way, k->factor, k->tuning);
    name_spot(other, sizeof other, k->family, k->other, k->other_factor, k->other_tuning);
    snprintf(text, n, "loss at %s: %s %s %s", pe_far_bucket_name(k->bucket), one,
             k->kind == BELOW   ? "below"
             : k->kind == ABOVE ? "above"
                                : "not above",
             other);
}

static const char *reason_against(const pe_compare *c, pe_spot a, pe_spot b)
{
    const pe_extension *x = c->extension;
    if (!x || !x->count)
        return x && x->reason[0] ? x->reason : "no model was extended";
    if (!pe_extension_has(x, a.way, a.factor, a.tuning) || !pe_extension_has(x, b.way, b.factor, b.tuning))
        return "not read";
    return x->windows < PE_FEWEST_WINDOWS ? "too few windows of 16 L: give a longer text"
                                          : pe_check_reason(c);
}

static void judge_extension(pe_check_result *r, const pe_compare *c, const extension_claim *k)
{
    const pe_spot a = {pe_way_find(k->family, k->way), k->factor, k->tuning},
                  b = {pe_way_find(k->family, k->other), k->other_factor, k->other_tuning};
    const char *why = reason_against(c, a, b);
    describe(r->claim, sizeof r->claim, k);
    r->verdict = PE_NOT_APPLICABLE;
    if (why) {
        snprintf(r->found, sizeof r->found, "%s", why);
        return;
    }
    const pe_interval d     = pe_extension_difference(c->extension, a, b, k->bucket);
    const int         holds = k->kind == BELOW ? d.high < 0 : k->kind == ABOVE ? d.low > 0 : d.low <= 0;
    r->verdict              = holds ? PE_PASSED : PE_FAILED;
    snprintf(r->found, sizeof r->found, "difference %+.3f (%+.3f to %+.3f)", d.value, d.low, d.high);
}

void pe_trained_check_judge(pe_check_result *result, const pe_compare *c, int index)
{
    if (index < OUTCOME_CLAIMS) {
        result->number = outcome_claims[index].number;
        judge_outcomes(result, c, &outcome_claims[index]);
        return;
    }
    result->number = extension_claims[index - OUTCOME_CLAIMS].number;
    judge_extension(result, c, &extension_claims[index - OUTCOME_CLAIMS]);
}
