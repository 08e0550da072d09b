/* SPDX-License-Identifier: MIT */
/* reference.h: the reference executor; idea: reference.c. */
#ifndef PE_ENGINE_REFERENCE_H
#define PE_ENGINE_REFERENCE_H

#include "engine/score/attention.h"

/* The memory of a run; and runs: outputs, or where S is not NULL the scores before masks; gradients. */
void pe_reference_lay_out(const pe_attention *a, pe_arena *arena, int backward);
void pe_reference_forward_run(const pe_attention *a, const posenc_tensor *S, pe_arena *arena);
void pe_reference_backward_run(const pe_attention *a, pe_arena *arena);
/* What the terms add whatever the content: bias [H,Lq,Lk], positions of batch item 0. */
void pe_reference_bias_run(const pe_attention *a, const posenc_tensor *bias, pe_arena *arena);
/* Its gradient, of parameters alone. */
void pe_reference_bias_backward_run(const pe_attention *a, const posenc_tensor *dbias, pe_arena *arena);

#endif
