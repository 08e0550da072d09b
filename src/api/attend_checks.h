/* SPDX-License-Identifier: MIT */
/*
 * attend_checks.h: what a caller gives to attention: looked at, refused in one sentence, or filled into the
 * run
 *
 * Nothing is written before all of these have passed. Each returns the status of the first thing that is
 * wrong.
 */
#ifndef PE_API_ATTEND_CHECKS_H
#define PE_API_ATTEND_CHECKS_H

#include "api/objects.h"

/* Pointers, and whether the plan has heads. `who` opens the sentence. */
posenc_status pe_attend_check_start(const posenc_plan *plan, const void *in, const void *out, const char *who,
                                    posenc_error *err);
/* Scores alone and rotations may be asked for without a mask; attention that sees the future may not. */
posenc_status pe_attend_check_causal(const posenc_plan *plan, posenc_error *err);

/* Tensors, masks, segments and positions of a run; fills the sizes, inputs and distances of *a. */
posenc_status pe_attend_check_in(const posenc_plan *plan, const posenc_attend_in *in, pe_attention *a,
                                 int needs_v, posenc_error *err);
/* The same for a bias alone: its own shape says how many queries and keys there are. */
posenc_status pe_attend_check_bias(const posenc_plan *plan, const posenc_attend_in *in,
                                   const posenc_tensor *bias, pe_attention *a, posenc_error *err);

/* Outputs of the forward run, and all that the backward run has beside its inputs; *a has the sizes. */
posenc_status pe_attend_check_out(const pe_attention *a, const posenc_attend_out *out, posenc_error *err);
posenc_status pe_attend_check_gradients(const pe_attention *a, const posenc_attend_grad *g,
                                        posenc_error *err);

#endif
