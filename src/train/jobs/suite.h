/* SPDX-License-Identifier: MIT */
/*
 * suite.h: all encodings on all tasks: what is trained, and what came out
 *
 * A cell is one encoding on one task, with a run per seed. Its rates are about the same test sequences in
 * every cell of a task, so differences are paired. Numbers that were not measured are NaN.
 */
#ifndef PE_TRAIN_SUITE_H
#define PE_TRAIN_SUITE_H

#include "train/jobs/preset.h"
#include "train/run/stats.h"
#include "train/run/run.h"

enum { PE_CELL_TEXT = PE_LONGEST_SPEC };

typedef struct pe_cell {
    const pe_task *task;
    const char    *label;                /* of the encoding, as it was asked for: the suite's */
    int            is_plain;             /* a name of the registry and nothing else */
    char           spec[PE_CELL_TEXT];   /* complete */
    char           reason[PE_CELL_TEXT]; /* why it does not take part; "" if it does */
    int            is_unasked;           /* it is here for other tasks: that needs no note */
    pe_run_config  config;               /* except the seed, of every run */
    int64_t        seeds;
    pe_run_slot   *runs; /* [seeds]; NULL: none */

    /* From here on: set by pe_rates_measure once all runs have finished. */
    int         is_complete, diverged;
    pe_interval accuracy[PE_TASK_LENGTHS]; /* of answers; Wilson with n = sequences: the answers of one depend
                                              on each other */
    pe_interval exact[PE_TASK_LENGTHS];    /* of sequences all of whose answers are right */
    double      loss[PE_TASK_LENGTHS];     /* nats per answer */
    double      lowest_loss;               /* of any batch of training of any seed */
    double      beyond; /* accuracy, mean over the lengths beyond L; NaN where there are none */
    double     *errors; /* [seeds, sequences] share of wrong answers, mean over the lengths beyond L */
    int         rank;   /* by `beyond`, shared where the interval of the difference contains 0; 0: none */
    double      seconds;
} pe_cell;

typedef struct pe_suite {
    const pe_task *tasks[PE_MOST_TASKS]; /* [task_count] */
    int            task_count;
    char (*labels)[PE_CELL_TEXT]; /* [label_count] */
    int      label_count;
    pe_cell *cells;      /* [task_count, label_count] */
    double  *reciprocal; /* [label_count] mean of 1 / rank over the tasks in which it has one */
    int     *order;      /* [label_count] of rows in tables: best mean first */
} pe_suite;

/* The tasks of a comparison whose encodings are known: tries every encoding on every task; those that cannot
   do it get a reason. */
posenc_status pe_suite_create(pe_suite **suite, const pe_compare *c, posenc_error *err);
void          pe_suite_free(pe_suite *suite); /* NULL is fine */

pe_cell *pe_suite_cell(const pe_suite *suite, int task, int label);

/* Runs are numbered from 0: task by task, encoding by encoding, seed by seed. */
int64_t pe_suite_runs(const pe_suite *suite);
/* The cell of a run, and which of its seeds it is, from 0. */
pe_cell *pe_suite_run(const pe_suite *suite, int64_t run, int64_t *seed);

#endif
