/* SPDX-License-Identifier: MIT */
/*
 * claims.h: what introductions say, measured, with the verdict beside the sentence
 */
#ifndef PE_TRAIN_CLAIMS_H
#define PE_TRAIN_CLAIMS_H

#include "train/outcome.h"

#include <jansson.h>

typedef enum pe_holds {
    PE_HOLDS,
    PE_HOLDS_NOT,
    PE_UNDECIDED,
    PE_UNMEASURED,
    PE_IN_PART,
    PE_HOLDS_SO_FAR
} pe_holds;

/* One number beside what it must be. Of a difference low and high are its interval, else NaN. */
typedef struct pe_evidence {
    const char *words, *of; /* what is measured, of which encoding */
    double      value, low, high, limit;
    int         at_least; /* 1: it must be at least the limit; 0: at most */
    pe_holds    holds;
} pe_evidence;

int pe_claim_count(void);
/* Which tutorials say it, and what; how much evidence there is. */
const char *pe_claim_said(int claim, const char **tutorials, int *evidence);
/* Number i of it. */
pe_evidence pe_claim_evidence(const pe_compare *c, int claim, int i);
/* All of it together: in part, where some holds and some does not. */
pe_holds    pe_claim_judge(const pe_compare *c, int claim);
const char *pe_holds_name(pe_holds holds);

/* What checks and claims need and nothing else does: permuted and permuted_causal of every outcome with
   standard settings; where claims are asked for also the properties that they speak of, into c->properties: a
   second or two. */
posenc_status pe_claims_measure(pe_compare *c, posenc_error *err);

/* Of encodings by themselves: claims_properties.c. values [pe_property_count] of the rows PROPERTY of
   claims.def, by their order; NaN for a row whose encoding has no such finding. */
int           pe_property_count(void);
posenc_status pe_properties_measure(double *values, posenc_error *err);
/* max |f(Px) - P f(x)| without a mask and under a causal one; the first is left as it was where the encoding
   has no meaning without a mask. Some milliseconds. */
posenc_status pe_properties_permuted(double *both_ways, double *causal, const char *spec, posenc_error *err);

/* The member "claims" of results.json. */
json_t *pe_json_claims(const pe_compare *c);

#endif
