/* SPDX-License-Identifier: MIT */
/* run_parts.h: what the stages of a run share */
#ifndef PE_TRAIN_RUN_PARTS_H
#define PE_TRAIN_RUN_PARTS_H

#include "train/model/model.h"
#include "train/model/optimiser.h"
#include "train/run/run.h"
#include "train/run/statistics.h"

/* How far a run is: steps, calls of the evaluation, 1 if it stopped there, units of the sequel. */
enum { PE_RUN_STEP, PE_RUN_UNIT, PE_RUN_DIVERGED, PE_RUN_SEQUEL, PE_RUN_MARKS };
/* What is measured on the way; the cosine before the first step. */
enum { PE_RUN_TRAIN_SECONDS, PE_RUN_EVAL_SECONDS, PE_RUN_RATE, PE_RUN_COSINE, PE_RUN_MEASURES };

/* What one run holds. */
typedef struct pe_run_state {
    const pe_run_config  *config;
    pe_run_progress      *progress; /* NULL: nobody looks */
    pe_run_result        *result;
    pe_model             *model;
    pe_optimiser         *optimiser;
    const unsigned char **windows; /* [rows of one pass] */
    double               *losses;  /* [tokens of one pass] */
    unsigned char        *hidden;  /* [tokens of a batch, or of all held-out windows]; NULL: next byte */
    double               *sums;    /* [windows] */
    int64_t              *counts;  /* [windows] hidden bytes */

    unsigned char *symbols; /* of tasks: [tokens of one pass] */
    int16_t       *targets; /* the same */

    char   *identity; /* of its checkpoints; NULL: there are none */
    int64_t marks[PE_RUN_MARKS];
    double  measures[PE_RUN_MEASURES];
    double  since; /* when the present stage began, less what it had taken before */
    double  kept;  /* when the last checkpoint was written */
} pe_run_state;

/* After each unit of work, which it adds to that mark: counts it for progress, writes a checkpoint if it is
   time to, and stops with result->cancelled if somebody asked to. */
posenc_status pe_run_pass(pe_run_state *w, int mark, posenc_error *err);

/* result->window_loss. */
posenc_status pe_run_evaluate(pe_run_state *w, posenc_error *err);
/* How many units that takes. */
int64_t pe_run_evaluation_calls(const pe_run_config *c);

/* The same of tasks, result->right and result->loss; and the batch of a step of training. */
posenc_status pe_task_check(const pe_run_config *c, posenc_error *err);
posenc_status pe_task_evaluate(pe_run_state *w, posenc_error *err);
int64_t       pe_task_evaluation_calls(const pe_run_config *c);
pe_batch      pe_task_next_batch(pe_run_state *w, int64_t step);

#endif
