/* SPDX-License-Identifier: MIT */
/*
 * roads.h: what the roads of executor 2 beside the general one share (decode.c, bf16.c)
 *
 * They take the simplest terms only, but those as the general road has them: tables by distance, turned rows
 * and masks of tiles.h, for runs of `queries` queries and `keys` keys.
 */
#ifndef PE_ENGINE_ROADS_H
#define PE_ENGINE_ROADS_H

#include "engine/tiled/tiles.h"

/* Rows of floats are padded to this. */
enum { PE_ROAD_LANES = 2 * PE_LANES };

/* Are the terms those that these roads know: products, rotation, bias and gate by distance? */
int pe_road_may(const pe_attention *a);

/* Tables and, with `key_turns`, cosines and sines of all keys; without, of the queries alone. Filled where
   the arena has memory. */
void pe_road_make(pe_tiles *T, const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys,
                  int key_turns);

/* A bias that is a slope times the distance needs no table. */
static inline int pe_is_sloped(const pe_attention *a)
{
    return a->terms->bias.slope != NULL;
}

/* That slope, and what it is counted from: the smallest distance that the masks let through. */
double pe_bias_slope(const pe_attention *a, int64_t h);
double pe_bias_near(const pe_attention *a);

/* What was taken from the bias of a head before it was rounded: lse gets it back. */
double pe_bias_taken(const pe_tiles *T, int64_t h);

/* ---- decode.c: at most PE_DECODE_QUERIES queries against a long cache, forward ---- */

enum { PE_DECODE_QUERIES = 8 };

/* Of terms that these roads know. On an arena without memory it only counts, for PE_DECODE_QUERIES queries at
   most. */
void pe_decode_forward(const pe_attention *a, pe_arena *arena);

/* ---- bf16.c: where q, k and v are stored in bf16 and the processor multiplies pairs of them, forward ----
 */

/* May a run of this plan take this road, if its tensors are bf16? And does this one? */
int pe_bf16_may(const pe_attention *a);
int pe_bf16_does(const pe_attention *a);

/* On an arena without memory it only counts. */
void pe_bf16_forward(const pe_attention *a, pe_arena *arena);

#endif
