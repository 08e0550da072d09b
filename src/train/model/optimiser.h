/* SPDX-License-Identifier: MIT */
/*
 * optimiser.h: AdamW with a learning-rate schedule and gradient clipping, and one step of training
 *
 * Per element, with g the clipped gradient and t counting steps from 1:
 *
 *     m = b1 m + (1 - b1) g            v = b2 v + (1 - b2) g^2
 *     theta = (1 - rate decay) theta - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 *
 * Decay is decoupled from the gradient and applies to matrices only: pulling a table of biases, a gain or
 * an embedding towards zero would change what is being compared. The schedule rises linearly over
 * `warmup` steps and falls along a half cosine to a tenth at the last step. Clipping scales the whole
 * gradient to the norm `clip` if it is longer.
 *
 * Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2; clipping: Pascanu et al. 2013,
 * arXiv:1211.5063.
 */
#ifndef PE_TRAIN_OPTIMISER_H
#define PE_TRAIN_OPTIMISER_H

#include "train/model/model.h"

typedef struct pe_optimiser pe_optimiser;

/* For theta of `size` elements. */
posenc_status pe_optimiser_create(pe_optimiser **o, int64_t size, posenc_error *err);
void          pe_optimiser_free(pe_optimiser *o); /* NULL is fine */

/* What the optimiser remembers, for checkpoints: *t steps, and both moments one after the other. Returns the
   number of elements of *moments. */
int64_t pe_optimiser_memory(pe_optimiser *o, int64_t **t, float **moments);

/* Euclidean norm of n numbers, summed in double in a fixed order. */
double pe_optimiser_norm(const float *grad, int64_t n);

/* Of `peak`, at step 0 .. steps - 1: (step + 1) / warmup while it rises, 1 at step warmup - 1, 0.1
   at the last. */
double pe_optimiser_rate(double peak, int64_t step, int64_t warmup, int64_t steps);

/* One step. clip 0 = none. Returns the norm of the gradient before clipping; if that is not finite,
   nothing has changed. */
double pe_optimiser_step(pe_optimiser *o, float *theta, const float *grad, const pe_weight *weights,
                         int count, double rate, double decay, double clip);

/* ---------------------------------------------------------------- a step -------------------- */

/* How the weights move: docs/experiments.md, section 4. */
typedef struct pe_descent {
    int64_t steps, warmup;
    double  learning_rate, weight_decay, clip;
} pe_descent;

/* Step number `step` on a batch. *loss is the batch's before it; *finite = 0 if that or the gradient was not
   a number, and then nothing was changed. */
posenc_status pe_optimiser_descend(pe_model *model, pe_optimiser *optimiser, const pe_batch *batch,
                                   const pe_descent *descent, int64_t step, double *loss, int *finite,
                                   posenc_error *err);

#endif
