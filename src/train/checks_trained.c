/* SPDX-License-Identifier: MIT */
/*
 * checks_trained.c: claims about trained and extended models that can turn out false
 *
 * Rows of checks_trained.def. A shift is a theorem of the encoding, so it needs no ordinary text; losses of extended models
 * are judged under the conditions of all claims about losses (checks.c), and where enough windows of 16 L fit.
 */
#include "train/extension.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BY_DISTANCE NULL

enum { MOST_NAMES = 200 };

typedef enum claim_kind { AT_MOST, AT_LEAST, BELOW, ABOVE, NOT_ABOVE } claim_kind;

typedef struct shift_claim {
    int         number;
    claim_kind  kind;
    const char *encodings; /* a list; BY_DISTANCE */
    double      limit;
} shift_claim;

typedef struct extension_claim {
    int         number;
    claim_kind  kind;
    const char *family, *way;
    int         factor, tuning;
    const char *other;
    int         other_factor, other_tuning, bucket;
} extension_claim;

static const shift_claim shift_claims[] = {
#define SHIFT_CHECK(...) {__VA_ARGS__},
#define EXTENSION_CHECK(...)
#include "train/checks_trained.def"
#undef SHIFT_CHECK
#undef EXTENSION_CHECK
};

static const extension_claim extension_claims[] = {
#define SHIFT_CHECK(...)
#define EXTENSION_CHECK(...) {__VA_ARGS__},
#include "train/checks_trained.def"
#undef SHIFT_CHECK
#undef EXTENSION_CHECK
};

enum {
    SHIFT_CLAIMS     = sizeof shift_claims / sizeof *shift_claims,
    EXTENSION_CLAIMS = sizeof extension_claims / sizeof *extension_claims
};

int pe_trained_check_count(void)
{
    return SHIFT_CLAIMS + EXTENSION_CLAIMS;
}

/* ---------------------------------------------------------------- shift --------------------- */

static int lists(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (length == n && !strncmp(at, name, n))
            return 1;
        at += length;
    }
    return 0;
}

static int speaks_of(const pe_compare *c, const shift_claim *k, const pe_outcome *o)
{
    const posenc_encoding_info *info = o->is_plain ? posenc_encoding_find(o->label) : NULL;
    if (!info || !pe_is_standard_model(&c->config.preset) || !o->is_complete || o->diverged ||
        isnan(pe_outcome_largest_shift(o)))
        return 0;
    return k->encodings ? lists(k->encodings, o->label) : info->by_distance;
}

static void judge_shift(pe_check_result *r, const pe_compare *c, const shift_claim *k)
{
    char   names[MOST_NAMES] = "";
    double least             = INFINITY; /* margin: below 0 the claim is wrong */
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        if (!speaks_of(c, k, o))
            continue;
        const double shift  = pe_outcome_largest_shift(o),
                     margin = k->kind == AT_MOST ? k->limit - shift : shift - k->limit;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "", o->label);
        if (margin < least)
            snprintf(r->found, sizeof r->found, "%s: %.2g", o->label, shift);
        least = fmin(least, margin);
    }
    snprintf(r->claim, sizeof r->claim,
             "positions from 1, 16, L/2, L, 4 L on change the loss by at %s %.0e: %s",
             k->kind == AT_MOST ? "most" : "least", k->limit,
             names[0]       ? names
             : k->encodings ? k->encodings
                            : "what sees differences alone");
    r->verdict = isinf(least) ? PE_NOT_APPLICABLE : least >= 0 ? PE_PASSED : PE_FAILED;
    if (isinf(least))
        snprintf(r->found, sizeof r->found, "not compared with standard settings in the preset's model");
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
    if (index < SHIFT_CLAIMS) {
        result->number = shift_claims[index].number;
        judge_shift(result, c, &shift_claims[index]);
        return;
    }
    result->number = extension_claims[index - SHIFT_CLAIMS].number;
    judge_extension(result, c, &extension_claims[index - SHIFT_CLAIMS]);
}
