/* SPDX-License-Identifier: MIT */
/* sharp.h: products that are taken in double */
#ifndef PE_ENGINE_SHARP_H
#define PE_ENGINE_SHARP_H

#include "engine/tiles.h"

/* Room for so many columns of sharp products: the kernel writes whole vectors from any column on. */
static inline int64_t pe_sharp_padded(int64_t n)
{
    return pe_padded(n) + PE_LANES;
}

/* Are products taken in double? Then they are there, in z->sharp with what is to be taken from each row in
   z->top, before the tiles of a query tile (forward; `whole`: scores themselves are wanted, nothing is
   taken), or of one tile (backward: lse is taken). */
int  pe_is_sharp(const pe_tiles *T);
void pe_sharpen_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R, int whole);
void pe_sharpen_tile(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                     int64_t j0, int64_t C, const float lse[]);

#endif
