/* SPDX-License-Identifier: MIT */
/* kept.h: what a hook says of all pairs, made once */
#ifndef PE_ENGINE_KEPT_H
#define PE_ENGINE_KEPT_H

#include "engine/tiles.h"

/* What a hook says of all pairs, where it depends on positions that a batch shares and the pairs are few.
   Laid out and filled (T->kept is NULL where it is not so); the share of the tile at hand added to its terms,
   or to sharp products. */
void pe_kept_lay_out(pe_tiles *T, pe_arena *arena);
void pe_kept_add(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C,
                 pe_tile_terms *terms);

#endif
