/* SPDX-License-Identifier: MIT */
/* bf16.h: attention forward where q, k and v are stored in bf16 and the processor multiplies pairs of
   them. */
#ifndef PE_ENGINE_BF16_H
#define PE_ENGINE_BF16_H

#include "engine/attend.h"

/* May a run of this plan take this road, if its tensors are bf16? And does this one? */
int pe_bf16_may(const pe_attention *a);
int pe_bf16_does(const pe_attention *a);

/* On an arena without memory it only counts. */
void pe_bf16_forward(const pe_attention *a, pe_arena *arena);

#endif
