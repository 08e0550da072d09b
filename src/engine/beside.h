/* SPDX-License-Identifier: MIT */
/* beside.h: what stands beside q and k and follows from the position alone */
#ifndef PE_ENGINE_BESIDE_H
#define PE_ENGINE_BESIDE_H

#include "engine/tiles.h"

/* What stands beside q and k and follows from the position alone (pe_preparation), made once per run where
   all items have the same positions. Laid out and filled; n rows of it copied behind the a->D numbers of rows
   already there; their cotangents, of rows as wide as those, added to sums [heads, L, D - a->D]; in the end
   folded to parameters. */
void pe_beside_lay_out(pe_tiles *T, pe_arena *arena);
void pe_beside_load(const pe_tiles *T, float *rows, pe_side side, int64_t h, int64_t s0, int64_t n);
void pe_beside_sum(const pe_tiles *T, double *sums, const float *rows, pe_side side, int64_t h, int64_t s0,
                   int64_t n);
void pe_beside_fold(const pe_tiles *T, const double *sums, pe_side side);

/* Numbers of all its rows, of one side. */
static inline int64_t pe_beside_size(const pe_attention *a, pe_side side)
{
    const pe_problem *p    = &a->sizes;
    const int64_t     rows = side == PE_KEYS ? p->G * p->Lk : p->H * p->Lq;
    return a->terms->prepare.beside && p->B > 1 ? rows * (p->D - a->D) : 0;
}

#endif
