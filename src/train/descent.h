/* SPDX-License-Identifier: MIT */
/*
 * descent.h: what runs on text and runs on tasks share: the step, the clock, who may watch
 */
#ifndef PE_TRAIN_DESCENT_H
#define PE_TRAIN_DESCENT_H

#include "train/optimiser.h"
#include "train/run.h"

/* How the weights move: docs/experiments.md, section 4. */
typedef struct pe_descent {
    int64_t steps, warmup;
    double  learning_rate, weight_decay, clip;
} pe_descent;

/* Step number `step` on a batch. *loss is the batch's before it; *finite = 0 if that or the gradient was not
   a number, and then nothing was changed. */
posenc_status pe_descent_step(pe_model *model, pe_optimiser *optimiser, const pe_batch *batch,
                              const pe_descent *descent, int64_t step, double *loss, int *finite,
                              posenc_error *err);

/* Counts one unit of work; nonzero if somebody asked to stop. */
int pe_advance(pe_run_progress *progress);
/* What a run then returns. */
posenc_status pe_run_cancelled(int *cancelled, posenc_error *err);

/* Seconds since some moment, by a clock that never goes back. */
double pe_clock(void);

#endif
