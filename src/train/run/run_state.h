/* SPDX-License-Identifier: MIT */
/* run_state.h: what the stages of a run share: its state while it goes on, and the stages of other files */
#ifndef PE_TRAIN_RUN_STATE_H
#define PE_TRAIN_RUN_STATE_H

#include "train/model/optimiser.h"
#include "train/run/run.h"
#include "train/run/stats.h"

/* How far a run is: steps, calls of the evaluation, 1 if it stopped there, units of the follow-up, calls of
   the scoring at L. */
enum { PE_RUN_STEP, PE_RUN_UNIT, PE_RUN_DIVERGED, PE_RUN_FOLLOWUP, PE_RUN_SCORED, PE_RUN_MARKS };
/* What is measured on the way; the cosine before the first step. */
enum { PE_RUN_TRAIN_SECONDS, PE_RUN_EVAL_SECONDS, PE_RUN_RATE, PE_RUN_COSINE, PE_RUN_MEASURES };

/* What one run holds. */
typedef struct pe_run_state {
    const pe_run_config *config;
    pe_run_progress     *progress; /* NULL: nobody looks */
    pe_run_result       *result;
    pe_model            *model;
    pe_optimiser        *optimiser;
    const uint16_t     **windows; /* [rows of one pass] */
    double              *losses;  /* [tokens of one pass] */
    unsigned char       *hidden;  /* [tokens of a batch, or of all held-out windows]; NULL: next byte */
    double              *sums;    /* [windows] */
    int64_t             *counts;  /* [windows] hidden bytes */

    uint16_t *symbols; /* of tasks: [tokens of one pass] */
    int16_t  *targets; /* the same */

    char    *identity;  /* of its checkpoints; NULL: there are none */
    int64_t *positions; /* [tokens of a batch], where windows do not stand in order; else NULL */
    int64_t  asked;     /* answers of the length that is tested */
    int64_t  marks[PE_RUN_MARKS];
    double   measures[PE_RUN_MEASURES];
    double   stage_start; /* when the present stage began, minus what it had taken before */
    double   saved;       /* when the last checkpoint was written */
} pe_run_state;

/* Model, optimiser and buffers, for a state without them, which is freed whatever the status. */
posenc_status pe_run_state_create(pe_run_state *w, const pe_run_config *c, posenc_error *err);
void          pe_run_state_free(pe_run_state *w);

/* Goes on from the checkpoint, if there is one. */
posenc_status pe_run_resume(pe_run_state *w, posenc_error *err);
/* Writes one, if there is a file for it and it is time to, or the run stops. */
posenc_status pe_run_save(pe_run_state *w, int stops, posenc_error *err);
/* After each unit of work, which it adds to that mark: counts it for progress, writes a checkpoint if it is
   time to, and stops with result->cancelled if somebody asked to. */
posenc_status pe_run_unit_done(pe_run_state *w, int mark, posenc_error *err);

/* Units of progress of the follow-up, up to before its unit number `units`. */
int64_t pe_run_followup_work(const pe_run_config *c, int64_t units);

/* result->window_loss. */
posenc_status pe_run_evaluate(pe_run_state *w, posenc_error *err);
/* How many units that takes. */
int64_t pe_run_evaluate_calls(const pe_run_config *c);
/* result->scored. */
posenc_status pe_run_score(pe_run_state *w, posenc_error *err);

/* The same of tasks, result->right and result->loss; and the batch of a step of training. */
posenc_status pe_run_task_check(const pe_run_config *c, posenc_error *err);
posenc_status pe_run_task_evaluate(pe_run_state *w, posenc_error *err);
int64_t       pe_run_task_calls(const pe_run_config *c);
pe_batch      pe_run_task_batch(pe_run_state *w, int64_t step);

#endif
