/* SPDX-License-Identifier: MIT */
/*
 * decode.h: attention of a few queries against a long cache, forward
 *
 * The road that executor 2 takes where there are at most PE_DECODE_QUERIES queries and the terms are those of
 * most models: products, rotation, a bias and a gate by distance, all masks.
 */
#ifndef PE_ENGINE_DECODE_H
#define PE_ENGINE_DECODE_H

#include "engine/attend.h"

enum { PE_DECODE_QUERIES = 8 };

/* Of terms that roads.h knows. On an arena without memory it only counts, for PE_DECODE_QUERIES queries at
   most. */
void pe_decode_forward(const pe_attention *a, pe_arena *arena);

#endif
