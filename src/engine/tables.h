/* SPDX-License-Identifier: MIT */
/* tables.h: the band of a run, and the tables of its members by distance */
#ifndef PE_ENGINE_TABLES_H
#define PE_ENGINE_TABLES_H

#include "engine/tiles.h"

/* The band of a run; tables laid out (on an arena without memory: counted, for any positions) and filled. */
void pe_band_find(pe_tiles *T);
void pe_tables_lay_out(pe_tiles *T, pe_arena *arena, int backward);
void pe_tables_fill(pe_tiles *T);
/* -infinity where there is none; a NaN is passed over. */
double pe_largest(const double x[], int64_t n);

#endif
