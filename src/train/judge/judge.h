/* SPDX-License-Identifier: MIT */
/*
 * judge.h: what the runs of a comparison say: losses and ranks, rates, and whether claims hold
 *
 * Everything is measured only from finished runs, and again whenever it is asked for.
 */
#ifndef PE_TRAIN_JUDGE_H
#define PE_TRAIN_JUDGE_H

#include "train/jobs/extension.h"
#include "train/jobs/level.h"
#include "train/jobs/outcome.h"

/* ---------------------------------------------------------------- losses on the text: losses.c */

/* Mean loss of one held-out window of a run in a bucket; up to L that of its stretch (run_score.c). */
double pe_losses_of_window(const pe_run_result *result, const pe_run_config *config, int bucket,
                           int64_t window);
/* What the runs of one encoding say. Does nothing before all have finished. */
posenc_status pe_losses_measure(pe_outcome *o, int64_t seeds, posenc_error *err);
/* Loss in a bucket; NaN of NULL, and of what has no rank: it has not ended, or diverged. */
double pe_losses_ranked(const pe_outcome *o, int bucket);
/* Spreads, differences, resolution, ranks and c->order, once all that will be measured is measured. */
posenc_status pe_losses_rank(pe_compare *c, posenc_error *err);
/* The largest |shift|; NaN if none was measured. */
double pe_losses_largest_shift(const pe_outcome *o);
/* The difference of two outcomes in a bucket, a - b. */
pe_interval pe_losses_difference(const pe_compare *c, int a, int b, int bucket);
/* Loss in a bucket / loss at L, of one outcome. */
pe_interval pe_losses_ratio(const pe_outcome *o, int64_t seeds, int bucket);
/* Can two be told apart? Their interval excludes zero, and the difference is not below the resolution. */
int pe_losses_differ(const pe_compare *c, int a, int b, int bucket);

/* One way, by its number, a factor by its number (pe_way_factor), and untuned or tuned. */
typedef struct pe_losses_reading {
    int way, factor_index, tuning;
} pe_losses_reading;

/* Means by window of those families whose runs have all ended. */
posenc_status pe_losses_measure_extension(pe_extension *x, posenc_error *err);
/* Mean loss; NaN where it was not read. */
double pe_losses_extended(const pe_extension *x, pe_losses_reading r, int bucket);
/* Is there a number for it? */
int pe_losses_has_extended(const pe_extension *x, pe_losses_reading r);
/* a - b in a bucket, paired. */
pe_interval pe_losses_extended_difference(const pe_extension *x, pe_losses_reading a, pe_losses_reading b,
                                          int bucket);
/* The first way of the same family, untuned: nothing was done. */
pe_losses_reading pe_losses_nothing_done(int way);

/* ---------------------------------------------------------------- tasks: rates.c ------------ */

/* Of one finished run: the share of answers that are right, and of sequences all of whose are. */
double pe_rates_accuracy(const pe_cell *cell, int64_t seed, int length);
double pe_rates_exact(const pe_cell *cell, int64_t seed, int length);
/* Rates, ranks and the order of the rows, of what has finished. */
posenc_status pe_rates_measure(pe_suite *suite, posenc_error *err);
/* Mean of 1 / rank over the tasks in which it has one, except one (-1: none); NaN where that leaves none. */
double pe_rates_reciprocal(const pe_suite *suite, int label, int except);
/* ---------------------------------------------------------------- checks: claims.c ---------- */

/* Undecided: the interval of what was measured contains the limit. */
typedef enum pe_verdict { PE_PASSED, PE_FAILED, PE_CHECK_UNDECIDED, PE_NOT_APPLICABLE } pe_verdict;

typedef struct pe_check_result {
    int         number;
    pe_verdict  verdict;
    pe_interval measured; /* of the encoding that decides; no ends: an exact number; NaN: not applicable */
    double      limit;
    char        claim[512], found[320];
} pe_check_result;

enum { PE_MOST_CHECKS = 64 };

/* All checks, in the order of their numbers; returns their count. */
int         pe_claims_check(pe_check_result results[PE_MOST_CHECKS], const pe_compare *c);
const char *pe_claims_verdict_name(pe_verdict verdict);
/* The complete outcome with the default settings of that encoding, or -1. */
int pe_claims_find(const pe_compare *c, const char *name);

/* ---------------------------------------------------------------- claims -------------------- */

/* What introductions say, measured, each with its verdict. */
typedef enum pe_holds {
    PE_HOLDS,
    PE_HOLDS_NOT,
    PE_UNDECIDED,
    PE_UNMEASURED,
    PE_IN_PART,
    PE_HOLDS_SO_FAR
} pe_holds;

/* One number and what it must be. low and high are its interval, or NaN where it has none. */
typedef struct pe_evidence {
    const char *words, *of; /* what is measured, of which encoding */
    double      value, low, high, limit;
    int         at_least; /* 1: it must be at least the limit; 0: at most */
    pe_holds    holds;
} pe_evidence;

int pe_claims_count(void);
/* Which tutorials say it, and what; how much evidence there is. */
const char *pe_claims_said(int claim, const char **tutorials, int *evidence);
/* Number i of it. */
pe_evidence pe_claims_evidence(const pe_compare *c, int claim, int i);
/* All of it together: in part, where some holds and some does not. */
pe_holds    pe_claims_judge(const pe_compare *c, int claim);
const char *pe_claims_holds_name(pe_holds holds);

/* What checks and claims need and nothing else does: permuted and permuted_causal of every outcome with
   default settings; where claims are asked for also the properties that they speak of, into c->properties: a
   second or two. */
posenc_status pe_claims_measure(pe_compare *c, posenc_error *err);

/* ---------------------------------------------------------------- what is settled: stability.c */

/* c->orders, from the levels (level.h) whose runs have ended. */
posenc_status pe_stability_measure(pe_compare *c, posenc_error *err);
/* The level of training that is number k of an order (pe_order.levels): PE_LEVEL_QUARTER ... */
int pe_stability_level(const pe_levels *levels, int k);
/* The smallest difference of two encodings that can be told from none where one seed was trained; `order`:
   PE_ORDER_AT_L ... */
double pe_stability_resolution(int order);

#endif
