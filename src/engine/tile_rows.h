/* SPDX-License-Identifier: MIT */
/* tile_rows.h: rows of the tensors on their way into tiles and out of them */
#ifndef PE_ENGINE_TILE_ROWS_H
#define PE_ENGINE_TILE_ROWS_H

#include "engine/tiles.h"

/* Rows s0 .. s0+n-1 of q or k in float, prepared and turned, stride Dp, padding zeroed; z lends its memory.
   The second form of queries goes to to2 (NULL where there is one form). */
void pe_load_turned(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side, int64_t b,
                    int64_t h, int64_t s0, int64_t n);
/* Rows of v or dout, or to o and dv: no rotation. */
void pe_load_plain(float *to, int64_t stride, const posenc_tensor *t, int64_t b, int64_t h, int64_t s0,
                   int64_t n, int64_t width);
/* Rows s0 .. s0+n-1 of item b, head h, will be wanted soon: asks for them, if there is such an item. Rows of
   short sequences lie apart, many to a page and few to a head, so that no prefetcher foresees them. */
void pe_call_rows(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, int64_t width);
void pe_store_plain(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, const float *from,
                    int64_t stride, int64_t width);
/* Cotangents of n rows, of one form, turned back in place. */
void pe_turn_back(const pe_tiles *T, float *rows, pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n);
/* Turned back and written to dq or dk; rows that were prepared are not written: pe_fold_prepared does it. */
void pe_store_turned(const pe_tiles *T, float *rows, pe_side side, const posenc_tensor *to, int64_t b,
                     int64_t h, int64_t s0, int64_t n);
/* Cotangents of prepared rows (turned back; stride Dp, forms `form_step` apart) to dq or dk and to
   parameters. */
void pe_fold_prepared(const pe_tiles *T, const pe_scratch *z, const float *rows, int64_t form_step,
                      pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n);
/* scale*(q + u) and scale*(q + w) of n loaded rows; Qw may be NULL. */
void pe_scale_queries(const pe_tiles *T, float *Qu, float *Qw, int64_t h, int64_t n);
/* key[j] = 0 or -infinity for item b; returns NULL without a padding mask. */
const float *pe_key_mask(const pe_tiles *T, float *key, int64_t b);

/* n prepared rows of q or k in double, as pe_load_turned makes them, into `to`; z lends its memory. */
void pe_prepare_exactly(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b,
                        int64_t h, int64_t s0, int64_t n);

#endif
