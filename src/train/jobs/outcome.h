/* SPDX-License-Identifier: MIT */
/*
 * outcome.h: what a comparison holds, shared by those who train, judge and write it
 *
 * An outcome is one encoding with all its runs (one per seed) and what follows from them. Numbers that were
 * not measured are NaN.
 *
 * The tasks are a suite of cells: a cell is one encoding on one task, with a run per seed. Its rates are
 * about the same test sequences in every cell of a task, so differences are paired.
 */
#ifndef PE_TRAIN_OUTCOME_H
#define PE_TRAIN_OUTCOME_H

#include "train/jobs/preset.h"
#include "train/run/order.h"
#include "train/run/run.h"
#include "train/run/spread.h"
#include "train/run/trained.h"

enum { PE_MOST_PARTS = 16, PE_LONGEST_ANSWER = 2048, PE_LONGEST_WARNING = 320, PE_MACHINE = 128 };

/* Where the order of the encodings is judged (order.h): in the bucket at L, and in the last. */
enum {
    PE_ORDER_AT_L,
    PE_ORDER_FURTHEST,
    PE_ORDERS_SHOWN,
    PE_ORDER_OF_BUCKET = PE_ORDERS_SHOWN, /* + a bucket between these, on which advice stands */
    PE_ORDERS          = PE_ORDER_OF_BUCKET + PE_MOST_BUCKETS
};

typedef struct pe_outcome {
    char                        label[PE_LONGEST_SPEC]; /* as it was asked for */
    posenc_encoding            *e;    /* of the first layer, whose part at the input is the model's */
    char                       *spec; /* of all layers, in the library's words; owned */
    const posenc_encoding_info *parts[PE_MOST_PARTS]; /* [part_count] of all layers, by place */
    int                         part_count;
    int           is_plain; /* a name of the registry and nothing else: what the checks speak of */
    int           is_bare;  /* no setting of the encoding is the caller's (but perhaps how rows enter) */
    int           untrained_beyond; /* a learned row per position: beyond L none was ever trained */
    pe_run_config config;           /* except the seed, of every run */
    pe_run_slot  *runs;             /* [seeds] */

    /* From here on: set by pe_losses_measure once all runs have finished. */
    int         is_complete, diverged;
    double     *numbers;                       /* owned: all arrays below */
    double     *window_means[PE_MOST_BUCKETS]; /* [seeds, windows] */
    double      loss[PE_MOST_BUCKETS];         /* nats per byte, mean over windows and seeds */
    double      ratio[PE_MOST_BUCKETS];        /* loss / loss at [L/2, L) */
    double     *curve, *low, *high; /* [R L] by position, smoothed over L/8; range over seeds, or NULL */
    double     *training;           /* [steps] smoothed loss of the training batches */
    int64_t     break_position;
    const char *verdict; /* of the loss beyond L: "kept", "rises", "breaks", "diverged"; or "not learned" */
    double      cosine_before, cosine_after; /* mean over seeds: pe_run_result */
    double      seconds;                     /* training and evaluation, mean over seeds */
    double
        shift[PE_SHIFTS]; /* loss there - loss at position 0, of the seed where it is furthest from 0; NaN */
    double     *near, *far;      /* [L], [R L] attention weight by distance, mean over seeds (trained.h) */
    int64_t     near_90, far_90; /* distance that holds 90 % of it; -1: not measured */
    double     *truncated;       /* [seeds, windows] loss of the last bucket with a context of L */
    pe_interval gain;            /* truncated - loss in that bucket; set by the comparison */
    /* max |f(Px) - P f(x)| of the encoding by itself: pe_claims_measure */
    double permuted, permuted_causal;
    /* Set by the comparison of all outcomes. */
    int         has_learned;                 /* loss at L below the entropy of the text's bytes */
    pe_spread   spread[PE_MOST_BUCKETS];     /* of one run's loss between seeds, moderated */
    pe_spread   own_spread[PE_MOST_BUCKETS]; /* as its own runs show it */
    pe_interval difference[PE_MOST_BUCKETS]; /* to the reference encoding */
    int         rank[PE_MOST_BUCKETS];       /* shared where two cannot be told apart; 0: not ranked */
} pe_outcome;

/* An encoding that was asked for among others, and has no meaning in these models. */
typedef struct pe_absent {
    char label[PE_LONGEST_SPEC];
    char reason[sizeof(((posenc_error *)0)->message)];
} pe_absent;

typedef struct pe_cell {
    const pe_task *task;
    const char    *label;                   /* of the encoding, as it was asked for: the suite's */
    int            is_plain;                /* a name of the registry and nothing else */
    char           spec[PE_LONGEST_SPEC];   /* complete */
    char           reason[PE_LONGEST_SPEC]; /* why it does not take part; "" if it does */
    int            is_unasked;              /* it is here for other tasks: that needs no note */
    pe_run_config  config;                  /* except the seed, of every run */
    int64_t        seeds;
    pe_run_slot   *runs; /* [seeds]; NULL: none */

    /* From here on: set by pe_rates_measure once all runs have finished. */
    int         is_complete, diverged;
    pe_interval accuracy[PE_TASK_LENGTHS]; /* of answers: other sequences, other seeds (rates.c) */
    pe_interval exact[PE_TASK_LENGTHS];    /* of sequences all of whose answers are right */
    double      loss[PE_TASK_LENGTHS];     /* nats per answer */
    double      lowest_loss;               /* of any batch of training of any seed */
    double      beyond; /* accuracy, mean over the lengths beyond L; NaN where there are none */
    double     *errors; /* [seeds, sequences] share of wrong answers, mean over the lengths beyond L */
    pe_spread   spread; /* of `beyond` between seeds */
    int         rank;   /* by `beyond`, shared where the interval of the difference contains 0; 0: none */
    double      seconds;
} pe_cell;

typedef struct pe_suite {
    const pe_task *tasks[PE_MOST_TASKS]; /* [task_count] */
    int            task_count;
    char (*labels)[PE_LONGEST_SPEC]; /* [label_count] */
    int      label_count;
    pe_cell *cells;      /* [task_count, label_count] */
    double  *reciprocal; /* [label_count] mean of 1 / rank over the tasks in which it has one */
    int     *order;      /* [label_count] of rows in tables: best mean first */
} pe_suite;

struct pe_compare {
    pe_compare_config config;
    pe_text           text;
    uint16_t         *ids;                          /* its bytes, widened; NULL where it is tokens */
    double            token_bytes[PE_MOST_BUCKETS]; /* mean per token that is predicted; NaN: not known */
    double            unit; /* bytes of a token at L, or 1: spreads measured per byte, per prediction */
    uint64_t          fingerprint; /* of it */
    pe_run_places     places;      /* where windows of training stand */
    int               ways;        /* of combining, 1 << pe_combine each, where a SPEC does not say */
    pe_outcome       *outcomes;
    int               count;
    pe_absent        *absent; /* [absent_count] */
    int               absent_count;
    pe_suite         *suite;     /* the tasks; NULL until they are known */
    int *order[PE_MOST_BUCKETS]; /* [order_count] complete outcomes, best in that bucket first, then those
                               that diverged: pe_losses_rank */
    int                  order_count;
    struct pe_extension *extension; /* models read further than they were trained; NULL until it is known */
    int     reference; /* index of the encoding that differences are taken to: the best at L; -1: none */
    int64_t windows;
    int64_t workers;
    double  entropy; /* of the bytes of the held-out text: what a model reaches that knows their
                        frequencies only */
    /* Set by pe_losses_rank. The resolution: differences below it are not called, in nats. How many seeds
       would tell apart all that share the first place: 0 where one is best, 51 for more than 50. */
    double  resolution[PE_MOST_BUCKETS];
    int     seeds_to_settle[PE_MOST_BUCKETS];
    double *properties; /* by row of claims.c; NULL: claims are not judged */
    double  wall_seconds;
    int     runs, missing; /* of the runs those that an interruption left out: > 0 if there was one */

    struct pe_store *store; /* DIR.partial; NULL without a directory */
    char            *notes; /* lines about what was taken over from there; NULL: none */
    char             warning[PE_LONGEST_WARNING], machine[PE_MACHINE];

    struct pe_trials *trials;    /* of learning rates; NULL until they are known */
    struct pe_levels *levels;    /* less training, or a narrower model; NULL until they are known */
    pe_order *orders[PE_ORDERS]; /* what of the order is settled; NULL: there is nothing to judge by */
    char      rates_note[PE_LONGEST_ANSWER], orders_note[PE_LONGEST_ANSWER]; /* "": none */
};

/* Sizes of one window of R L, and the configuration of a run except its seed. */
posenc_dims   pe_outcome_dims(const pe_preset *p);
pe_run_config pe_outcome_run_config(const pe_compare *c, const posenc_encoding *e, const pe_entry *entry);

/* One run of an encoding under other sizes; a label that was compared. Refuses what those models cannot. */
posenc_status pe_outcome_resize(pe_outcome *o, const pe_compare *c, const pe_preset *sizes,
                                posenc_error *err);

/* "predicts the next byte ..." and its short name, for whatever is written. */
const char *pe_outcome_objective(int bidirectional);
const char *pe_outcome_objective_text(int bidirectional);
/* What bucket b is called, and the first position that belongs to it: every length starts at 0 where it is
   read by itself, as it is where the model is bidirectional. */
const char *pe_outcome_bucket(const pe_outcome *o, int bucket, int64_t *first);

/* Fewer windows than this decide nothing. */
enum { PE_FEWEST_WINDOWS = 24 };

/* Fills outcomes and absent from the list of SPECs. */
posenc_status pe_outcome_list_create(pe_compare *c, posenc_error *err);
void          pe_outcome_free(pe_outcome *o, int64_t seeds);

/* The sentence of an error without who says it and without what to do, which speak to a programmer: "plan:
   WHY; do this". */
void pe_outcome_reason(char *reason, size_t n, const posenc_error *why);
/* Its settings in full: the library's SPEC, and how rows enter where that is not the default. */
void pe_outcome_settings(char text[PE_LONGEST_SPEC + 64], const pe_outcome *o);
/* Are its rows combined with the vectors of tokens, as those of an input encoding are unless they take their
   place? */
int pe_outcome_adds_rows(const posenc_encoding *e);
/* The outcome that differs from number i in adding what i concatenates, or -1. */
int pe_outcome_added(const pe_compare *c, int i);

/* ---------------------------------------------------------------- the suite: suite.c -------- */

/* The tasks of a comparison whose encodings are known: tries every encoding on every task; those that cannot
   do it get a reason. */
posenc_status pe_suite_create(pe_suite **suite, const pe_compare *c, posenc_error *err);
void          pe_suite_free(pe_suite *suite); /* NULL is fine */

pe_cell *pe_suite_cell(const pe_suite *suite, int task, int label);

/* Runs are numbered from 0: task by task, encoding by encoding, seed by seed. */
int64_t pe_suite_runs(const pe_suite *suite);
/* The cell of a run, and which of its seeds it is, from 0. */
pe_cell *pe_suite_cell_of_run(const pe_suite *suite, int64_t run, int64_t *seed);

#endif
