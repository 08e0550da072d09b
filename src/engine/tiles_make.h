/* SPDX-License-Identifier: MIT */
/* tiles_make.h: the sizes, tables and scratch of a run */
#ifndef PE_ENGINE_TILES_MAKE_H
#define PE_ENGINE_TILES_MAKE_H

#include "engine/tiles.h"

/* Sizes, tables and scratch. Tables are filled only where the arena has memory. */
pe_tiles pe_tiles_make(const pe_attention *a, pe_arena *arena, int backward);

/* Cosines and sines of the queries and, with `keys`, of the keys; filled where the arena has memory. */
void pe_turns_make(pe_tiles *T, pe_arena *arena, int keys);

#endif
