/* SPDX-License-Identifier: MIT */
/*
 * trained.h: properties of a trained model, rather than of an encoding by itself
 *
 *     shift      the same bytes read at positions s, s+1, ...: a model that sees only differences does not
 *                notice
 *     attention  how much of the attention's weight lies how far back, in training's length and at R L
 *     truncated  the far end of the windows read with L bytes of context only: what is a long context good
 *                for?
 *
 * A run measures them (pe_run_config.measures) into one array of floats, laid out here and nowhere else.
 * Definitions: docs/experiments.md, section 15.
 */
#ifndef PE_TRAIN_TRAINED_H
#define PE_TRAIN_TRAINED_H

#include "train/model/model.h"
#include "train/run/run.h"

enum { PE_SHIFTS = 5 };

/* Shift number i, in positions: 1, 16, L/2, L, R L/2. */
int64_t pe_trained_shift_at(const pe_run_config *config, int i);

/* Where each measure begins in the array; `count` is the whole. */
typedef struct pe_trained_layout {
    int64_t shift;     /* [PE_SHIFTS] loss there - loss at 0, nats; NaN where it has no such positions */
    int64_t near;      /* [L] mean weight at distance t, of queries [L/2, L): 1 in all, less what sinks take;
                          NaN where some layer's weights are no softmax */
    int64_t far;       /* [R L] the same of queries [(R - 1) L, R L) */
    int64_t truncated; /* [windows] mean loss of bytes [R L/2, R L), each with 3 L/4 to L bytes before it */
    int64_t count;
} pe_trained_layout;

pe_trained_layout pe_trained_lay_out(const pe_run_config *config);

/* Fills numbers [count]. model: trained, causal, of bytes, in float, planned for R L; it is as it
   was afterwards. */
posenc_status pe_trained_measure(float *numbers, pe_model *model, const pe_run_config *config,
                                 posenc_error *err);

/* The smallest distance up to which at least `share` of the weight that keys have lies, of mass [n]; -1 if
   there is none. */
int64_t pe_trained_distance(const double *mass, int64_t n, double share);
/* What sinks take of it: what is missing from 1, or 0 where that is rounding; NaN of NULL. */
double pe_trained_sunk(const double *mass, int64_t n);

#endif
