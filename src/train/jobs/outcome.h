/* SPDX-License-Identifier: MIT */
/*
 * outcome.h: what a comparison holds, shared by those who measure, judge and write it
 *
 * An outcome is one encoding with all its runs (one per seed) and what follows from them. Numbers that were
 * not measured are NaN.
 */
#ifndef PE_TRAIN_OUTCOME_H
#define PE_TRAIN_OUTCOME_H

#include "train/compare.h"
#include "train/run/run.h"
#include "train/run/statistics.h"
#include "train/jobs/suite.h"
#include "train/run/trained.h"

enum { PE_LONGEST_ANSWER = 2048, PE_LONGEST_WARNING = 320, PE_MACHINE = 128 };

typedef struct pe_outcome {
    char             label[PE_LONGEST_SPEC]; /* as it was asked for */
    posenc_encoding *e;
    int              is_plain; /* a name of the registry and nothing else: what the checks speak of */
    int              is_bare;  /* no setting of the encoding is the caller's (but perhaps how rows enter) */
    int              untrained_beyond; /* a learned row per position: beyond L none was ever trained */
    pe_run_config    config;           /* but for the seed, of every run */
    pe_run_result   *runs;             /* [seeds] */
    pe_run_progress *progress;         /* [seeds] */
    atomic_int      *ended;            /* [seeds] 1 + the run's status, or 0 while there is no result */

    /* From here on: set by pe_outcome_measure once all runs have finished. */
    int         is_complete, diverged;
    double     *numbers;                  /* owned: all arrays below */
    double     *window_means[PE_BUCKETS]; /* [seeds, windows] */
    double      loss[PE_BUCKETS];         /* nats per byte, mean over windows and seeds */
    double      ratio[PE_BUCKETS];        /* loss / loss at [L/2, L) */
    double     *curve, *low, *high; /* [8 L] by position, smoothed over L/8; range over seeds, or NULL */
    double     *training;           /* [steps] smoothed loss of the training batches */
    int64_t     break_position;
    const char *verdict;                     /* "extrapolates", "degrades", "breaks", "diverged" */
    double      cosine_before, cosine_after; /* mean over seeds: pe_run_result */
    double      seconds;                     /* training and evaluation, mean over seeds */
    double
        shift[PE_SHIFTS]; /* loss there - loss at position 0, of the seed where it is furthest from 0; NaN */
    double     *near, *far;      /* [L], [8 L] attention weight by distance, mean over seeds (trained.h) */
    int64_t     near_90, far_90; /* distance that holds 90 % of it; -1: not measured */
    double     *truncated;       /* [seeds, windows] loss of the last bucket with a context of L */
    pe_interval gain;            /* truncated - loss in that bucket; set by the comparison */
    /* max |f(Px) - P f(x)| of the encoding by itself: pe_claims_measure */
    double permuted, permuted_causal;
    /* Set by the comparison of all outcomes. */
    pe_interval difference[PE_BUCKETS]; /* to the reference encoding */
    int         rank[PE_BUCKETS];       /* shared where intervals contain 0; 0: not ranked */
} pe_outcome;

/* An encoding that was asked for beside others, and has no meaning in these models. */
typedef struct pe_absent {
    char label[PE_LONGEST_SPEC];
    char reason[sizeof(((posenc_error *)0)->message)];
} pe_absent;

struct pe_compare {
    pe_compare_config    config;
    pe_text              text;
    uint64_t             fingerprint; /* of its bytes */
    int                  ways;        /* of combining, 1 << pe_combine each, where a SPEC does not say */
    pe_outcome          *outcomes;
    int                  count;
    pe_absent           *absent; /* [absent_count] */
    int                  absent_count;
    pe_suite            *suite;     /* the tasks; NULL until they are known */
    struct pe_extension *extension; /* models read further than they were trained; NULL until it is known */
    int     reference; /* index of the encoding that differences are taken to: the best at L; -1: none */
    int64_t windows;
    int64_t workers;
    pe_bootstrap *bootstrap;
    double       *properties; /* by row of claims.c; NULL: claims are not judged */
    double        wall_seconds;

    struct pe_store *store; /* DIR.partial; NULL without a directory */
    char            *notes; /* lines about what was taken over from there; NULL: none */
    char             warning[PE_LONGEST_WARNING], answer[PE_LONGEST_ANSWER], machine[PE_MACHINE];
};

/* Sizes of one window of 8 L, and the configuration of a run but for its seed. */
posenc_dims   pe_compare_dims(const pe_preset *p);
pe_run_config pe_compare_run_config(const pe_compare *c, const posenc_encoding *e, const pe_entry *entry);

/* "predicts the next byte ..." and its short name, for whatever is written. */
const char *pe_objective_name(int bidirectional);
const char *pe_objective_text(int bidirectional);
/* What bucket b is called, and the first position that belongs to it: every length starts at 0 where it is
   read by itself, as it is where the model is bidirectional. */
const char *pe_outcome_bucket(const pe_outcome *o, int bucket, int64_t *first);

/* Fewer windows than this decide nothing; fewer positions than this make no bucket of L/2. */
enum { PE_FEWEST_WINDOWS = 24, PE_SHORTEST_L = 8 };

/* The sentence of an error without who says it and without its mend, which speak to a programmer: "plan: WHY;
   do this". */
void pe_reason_copy(char *reason, size_t n, const posenc_error *why);

/* What the runs of one encoding say. Does nothing before all have finished. */
posenc_status pe_outcome_measure(pe_outcome *o, int64_t seeds, posenc_error *err);
void          pe_outcome_free(pe_outcome *o, int64_t seeds);

/* Fills outcomes and absent from the list of SPECs (compare_outcomes.c). */
posenc_status pe_compare_outcomes(pe_compare *c, posenc_error *err);

/* Differences and ranks, once all that will be measured is measured; then the answer from them. */
posenc_status pe_outcomes_rank(pe_compare *c, posenc_error *err);
void          pe_compare_answer_write(pe_compare *c);
/* Its settings in full: the library's SPEC, and how rows enter where that is not standard. */
void pe_outcome_settings(char text[PE_LONGEST_SPEC + 64], const pe_outcome *o);
/* Do its rows meet the vectors of tokens, as those of an input encoding do unless they take their place? */
int pe_outcome_meets(const pe_outcome *o);
/* The outcome that differs from number i in adding what i concatenates, or -1. */
int pe_outcome_sum_of(const pe_compare *c, int i);
/* Indices of the complete outcomes, best at L first, then those that diverged; returns their count. */
int pe_outcomes_order(const pe_compare *c, int order[]);
/* The largest |shift|; NaN if none was measured. */
double pe_outcome_largest_shift(const pe_outcome *o);
/* The difference of two outcomes in a bucket, a - b. */
pe_interval pe_outcomes_difference(const pe_compare *c, int a, int b, int bucket);

/* ---------------------------------------------------------------- checks -------------------- */

typedef enum pe_verdict { PE_PASSED, PE_FAILED, PE_NOT_APPLICABLE } pe_verdict;

typedef struct pe_check_result {
    int        number;
    pe_verdict verdict;
    char       claim[512], found[320];
} pe_check_result;

enum { PE_MOST_CHECKS = 64 };

/* All checks, in the order of their numbers; returns their count. claims.c */
int         pe_checks_judge(pe_check_result results[PE_MOST_CHECKS], const pe_compare *c);
const char *pe_verdict_name(pe_verdict verdict);
/* The complete outcome with the standard settings of that encoding, or -1. */
int pe_check_find(const pe_compare *c, const char *name);

/* ---------------------------------------------------------------- claims -------------------- */

/* What introductions say, measured, with the verdict beside the sentence: claims.c. */
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

#endif
