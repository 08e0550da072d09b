/* SPDX-License-Identifier: MIT */
/*
 * optimiser.h: AdamW, for matrices Muon, with a learning-rate schedule and gradient clipping, and one step of
 * training
 *
 * AdamW per element, with g the clipped gradient, t counting steps from 1, r the weight's share of the rate:
 *
 *     m = b1 m + (1 - b1) g            v = b2 v + (1 - b2) g^2
 *     theta = (1 - rate decay) theta - r rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 *
 * Muon for the matrices between the layers of the model, each [in, out] by itself, with g not clipped, as its
 * length does not count:
 *
 *     m = b m + (1 - b) g              theta = (1 - rate decay / 2) theta
 *                                              - 0.8 rate sqrt(max(1, out / in)) orthogonal(b m + (1 - b) g)
 *
 * Decay is decoupled from the gradient and applies to matrices only: pulling a table of biases, a gain or
 * an embedding towards zero would change what is being compared. The schedule rises linearly over
 * `warmup` steps and falls linearly to zero. Clipping scales the whole gradient to the norm `clip` if it is
 * longer. One rate scales everything; what stands beside it was searched: docs/decisions/0014-recipe.md.
 *
 * Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2; Muon: muon.h; clipping: Pascanu et al.
 * 2013, arXiv:1211.5063.
 */
#ifndef PE_TRAIN_OPTIMISER_H
#define PE_TRAIN_OPTIMISER_H

#include "train/model/model.h"

typedef struct pe_optimiser pe_optimiser;

/* For theta as `weights` [count] divide it. kernels: of the products of Muon; they must outlive it. */
posenc_status pe_optimiser_create(pe_optimiser **o, const pe_weight *weights, int count,
                                  const pe_kernels *kernels, posenc_error *err);
void          pe_optimiser_free(pe_optimiser *o); /* NULL is fine */

/* What the optimiser remembers, for checkpoints: *t steps, and both moments one after the other. Returns the
   number of elements of *moments. */
int64_t pe_optimiser_memory(pe_optimiser *o, int64_t **t, float **moments);

/* Of `peak`, at step 0 .. steps - 1: (step + 1) / warmup while it rises, 1 at steps warmup - 1
   and warmup, 1 / (steps - warmup) at the last. */
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
