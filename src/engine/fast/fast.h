/* SPDX-License-Identifier: MIT */
/*
 * fast.h: forwards that are faster than tiles where they serve (decode.c, bf16.c)
 *
 * They take the simplest terms only, but those as the tiled executor has them: tables by distance, rotated
 * rows and masks of tiles.h, for runs of `queries` queries and `keys` keys.
 */
#ifndef PE_ENGINE_FAST_H
#define PE_ENGINE_FAST_H

#include "engine/tiled/tiles.h"

/* Rows of floats are padded to this. */
enum { PE_FAST_LANES = 2 * PE_LANES };

/* Are the terms those that are known here: products, rotation, bias and gate by distance? */
int pe_fast_serves(const pe_attention *a);

/* Memory for tables and, with `key_rotation`, for cosines and sines of all keys; without, of the queries
   only. pe_tiles_fill fills them. */
pe_tiles pe_fast_lay_out(const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys,
                         int key_rotation);

/* A bias that is a slope times the distance needs no table. */
static inline int pe_fast_is_sloped(const pe_attention *a)
{
    return a->terms->bias.slope != NULL;
}

/* That slope, and what it is counted from: the smallest distance that the masks let through. */
double pe_fast_slope(const pe_attention *a, int64_t h);
double pe_fast_nearest(const pe_attention *a);

/* What was subtracted from the bias of a head before it was rounded: lse gets it back. */
double pe_fast_center(const pe_tiles *T, int64_t h);

/* ---- decode.c: at most POSENC_DECODE_QUERIES queries against a long cache, forward ---- */

/* Memory, of a plan for POSENC_DECODE_QUERIES queries at most. */
void pe_decode_lay_out(const pe_attention *a, pe_arena *arena);
void pe_decode_run(const pe_attention *a, pe_arena *arena);

/* ---- bf16.c: where q, k and v are stored in bf16 and the processor multiplies pairs of them, forward ----
 */

/* Does it serve runs of this plan if their tensors are bf16? And this run? */
int pe_bf16_may_serve(const pe_attention *a);
int pe_bf16_serves(const pe_attention *a);

void pe_bf16_lay_out(const pe_attention *a, pe_arena *arena);
void pe_bf16_run(const pe_attention *a, pe_arena *arena);

#endif
