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

/* What is made before the first key. */
typedef enum pe_fast_tables {
    PE_FAST_OF_QUERIES  = 0,      /* cosines and sines of queries */
    PE_FAST_OF_KEYS     = 1 << 0, /* those of all keys */
    PE_FAST_BY_DISTANCE = 1 << 1  /* biases and gates */
} pe_fast_tables;

/* Memory for these tables (joined by |), which pe_tiles_fill fills. Biases and gates that were ready before
   the run are there in any case, unless bands would not have the same numbers. */
pe_tiles pe_fast_lay_out(const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys, int tables);

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

/* ---- bands.c: biases and gates of a few keys at a time, where tables for all keys would be long ---- */

/* Would they be, in runs of so many keys? */
int pe_bands_serve(const pe_attention *a, int64_t keys);
/* Numbers of a band, padded: of so many queries and keys. */
int64_t pe_bands_padded(int64_t queries, int64_t keys);
/* In the place of tables, what is subtracted from a bias before it is rounded: memory; numbers. */
void pe_bands_lay_out(pe_tiles *T, pe_arena *arena);
void pe_bands_center(const pe_tiles *T);
/* to[j - j0 - i + Lq - 1] for keys j0 .. j0+C-1, distances along diagonals; `exact` is scratch of as many
   numbers. Rows that no mask reaches are 0. */
void pe_bands_fill(const pe_tiles *T, pe_kind kind, int64_t h, int64_t j0, int64_t C, double *exact,
                   float *to);
/* One, of distance t. */
float pe_bands_at(const pe_tiles *T, pe_kind kind, int64_t h, int64_t t);

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
