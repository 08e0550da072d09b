/* SPDX-License-Identifier: MIT */
/* growth.h: rotations whose pairs grow with the distance */
#ifndef PE_ENGINE_GROWTH_H
#define PE_ENGINE_GROWTH_H

#include "engine/tiles.h"

/* Factors of a run; before the product of a tile, queries times what they grow by until its keys (z->Qg,
   z->grow); keys times what they lack (`to` may be K; the adjoint is the same). */
void pe_growth_lay_out(pe_tiles *T, pe_arena *arena);
void pe_grow_queries(const pe_tiles *T, pe_scratch *z, int64_t b, const float *Qu, int64_t R);
void pe_grow_keys(const pe_tiles *T, float *to, const float *K, int64_t b, int64_t j0, int64_t C);

#endif
