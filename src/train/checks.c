/* SPDX-License-Identifier: MIT */
/*
 * checks.c: claims about a comparison that can turn out false
 *
 * Each row of checks.def is a claim; here is how a kind of claim is judged. A claim that is printed as FAILED means
 * that the text, the budget or the code is not what it was when the thresholds were set: a reason to look, and the
 * report says so. Where a claim cannot be judged it is "not applicable", by rule and with the reason:
 *
 *   - an encoding that it names was not compared, or only with settings of its own, or its run diverged;
 *   - fewer than 24 held-out windows;
 *   - fewer steps, or another model, than the thresholds are for;
 *   - the text is strange: the best encoding is no 2 % better at L than the one without positions. (Which that is, the
 *     registry says: the encoding that has no parameters, no settings and no pictures of its own.)
 */
#include "train/outcome.h"

#include <math.h>
#include <string.h>

#define STRANGE_RATIO 1.02

typedef enum claim_kind { LOWER, AT_MOST, AT_LEAST } claim_kind;

typedef struct claim {
    int         number;
    claim_kind  kind;
    const char *encoding, *other;
    int         bucket;
    double      limit;
} claim;

static const claim claims[] = {
#define CHECK(number, kind, encoding, other, bucket, limit) {number, kind, encoding, other, bucket, limit},
#include "train/checks.def"
#undef CHECK
};

enum { CLAIMS = sizeof claims / sizeof *claims };

int pe_check_count(void)
{
    return CLAIMS;
}

const char *pe_verdict_name(pe_verdict verdict)
{
    static const char *const names[] = {"passed", "FAILED", "not applicable"};
    return names[verdict];
}

/* "rope lower than sinusoidal at L/2..L", "E_8 of alibi at most 1.10" */
static void describe(char *text, size_t n, const claim *k)
{
    if (k->kind == LOWER)
        snprintf(text, n, "loss of %s below that of %s at %s", k->encoding, k->other, pe_bucket_name(k->bucket));
    else
        snprintf(text, n, "E_%d of %s at %s %.2f", 1 << (k->bucket - 1), k->encoding,
                 k->kind == AT_MOST ? "most" : "least", k->limit);
}

/* The outcome with the standard settings of that encoding, or -1. */
static int find(const pe_compare *c, const char *name)
{
    for (int i = 0; name && i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        if (o->is_plain && o->is_complete && !o->diverged && !strcmp(o->label, name))
            return i;
    }
    return -1;
}

/* Does the model of this comparison differ from that of its preset, for which the thresholds are? */
static int is_another_model(const pe_preset *p)
{
    const pe_preset *standard = pe_preset_find(p->name);
    return !standard || p->L != standard->L || p->d_model != standard->d_model || p->layers != standard->layers ||
           p->heads != standard->heads || p->batch != standard->batch || p->steps < standard->steps;
}

static int has_no_positions(const pe_outcome *o)
{
    pe_offer_count_type unused = 0;
    (void)unused;
    return o->is_complete;
}
