/* SPDX-License-Identifier: MIT */
/*
 * tile_scores.h: the scores of one tile, and the parts from which they are put together
 *
 * pe_tile_products calls the parts, when z->i0 and z->j0 say where the tile begins and z->limited whether its
 * queries have column limits. What they find goes to `terms`, which kernels add, or to z->extra.
 */
#ifndef PE_ENGINE_TILE_SCORES_H
#define PE_ENGINE_TILE_SCORES_H

#include "engine/tiles.h"

/* ---- tile_scores.c ---- */

/* The tile's products into s (stride Bcp), and the terms that the kernels which finish scores are to add. One
   of those, the bias, else the band, else numbers of pairs where they lie, is in s already and NULL in the
   terms: all but sharp products, two forms and hooks with content take it on their way out. Returns 0, and
   leaves s alone, if no pair of the tile is allowed. Qu, Qw: scaled rows (q+u), (q+w) of the tile, stride Dp;
   Kt: keys transposed [D, Bcp]. key: 0 or -infinity per key of the whole row, or NULL. reuse: the previous
   call had the previous key tile. */
int pe_tile_products(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t h, int64_t I, int64_t J,
                     const float *Qu, const float *Qw, const float *Kt, const float *key, int reuse,
                     pe_tile_terms *terms);

/* The gate of tile (I,J) as a term for the kernel of that name (stride of rows in *step), or NULL. Call it
   after pe_tile_products, whose lookups it shares. */
const float *pe_tile_gate(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t I, int64_t J,
                          int64_t *step);

/* ---- tile_bands.c ---- */

/* shift[r, R-1-r+c] = s[r,c], zero elsewhere: row by row onto diagonals. */
void pe_shift_tile(const pe_tiles *T, pe_scratch *z, const float *s, int64_t R, int64_t C);

/* to += X B, X the tile that lies on diagonals, B [R + C - 1, width] the band's rows, both with padded rows:
   for each group of queries the distances at which they see keys. */
void pe_band_product(const pe_tiles *T, const pe_scratch *z, float *to, const float *B, int64_t R, int64_t C,
                     int64_t width);

/* First row of the band of a tile, R + C - 1 rows long. */
int64_t pe_band_start(const pe_tiles *T, int64_t i0, int64_t R, int64_t j0);

/* Terms by distance that lie along the diagonals. */
void pe_find_diagonals(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t I, int64_t J,
                       int64_t R, int64_t C, const float *Qw, const float *Kt, int reuse,
                       pe_tile_terms *terms);

/* extra[r,c] += scale * B[x] . K[c,:]: the band with the tile's keys, for each group of distances those that
   stand so far from a query, read along diagonals. */
void pe_add_key_band(const pe_tiles *T, pe_scratch *z, int64_t h, const float *Kt, int64_t i0, int64_t R,
                     int64_t j0, int64_t C);

/* ---- tile_extra.c ---- */

/* Positions and segments of the tile's queries and keys, from z->i0 and z->j0 on. */
void pe_load_places(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t R, int64_t C);

/* Where all tokens are of one: a number for each query, with those of `row`, which may be NULL. */
const float *pe_meet_own_segment(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, const float *Qu,
                                 const float *row);

/* All terms of pairs, into z->extra; z has the places of the tile where they matter. `with_keys`: the band
   with keys too. */
void pe_fill_extra(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R, int64_t j0,
                   int64_t C, const float *Qu, const float *Qw, const float *Kt, int with_keys);

/* Numbers of pairs join what is added, where they could not be added in their place. */
void pe_take_pairs(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, int64_t C, pe_tile_terms *terms);

/* ---- tile_products.c ---- */

/* Numbers of the tile's pairs where the caller keeps them, if a kernel can add them from there; NULL: there
   are none, or something comes between (a kernel reads whole vectors, too). */
const float *pe_pairs_in_place(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t C);

/* Products of the tile's queries and keys, grown where that is asked for; of both forms their modulus. */
void pe_multiply_tile(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t R, int64_t C,
                      const float *Qu, const float *Kt, const float *pairs, pe_tile_terms *terms);

/* ---- tile_hook.c ---- */

/* What the hook sees of the tile at hand. */
pe_tile pe_hook_tile(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t R, int64_t C);

/* The tile's products in double, each with its share of X (rows `step` apart), into s. */
void pe_sharp_add(const pe_tiles *T, const pe_scratch *z, float *s, const double *X, int64_t step, int64_t R,
                  int64_t C);

/* May the hook have something to say of the tile at hand? */
int pe_is_hooked(const pe_tiles *T, const pe_scratch *z, int64_t R, int64_t C);

/* The tile's share of the products that are there in double, into s. */
void pe_take_sharp(const pe_tiles *T, const pe_scratch *z, float *s, int64_t R, int64_t C);

/* Products and queries in double for a hook that asks for content. Of masks by distance the column limits
   tell. */
void pe_widen_content(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                      int64_t j0, int64_t C, const float *s, const float *Qu);

/* X goes to z->extra; sharp products take it in double before they are rounded. */
void pe_visit_hook(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C);

#endif
