/* SPDX-License-Identifier: MIT */
/* basis.h: the table of a member that is a basis times a parameter */
#ifndef PE_ENGINE_BASIS_H
#define PE_ENGINE_BASIS_H

#include "engine/tiles.h"

/* Is member A a basis times a parameter, to be multiplied in float? Its memory; its tables filled, but for
   what lies around them. */
int  pe_basis_serves(const pe_tiles *T);
void pe_basis_lay_out(pe_tiles *T, pe_arena *arena);
void pe_basis_fill(pe_tiles *T);

#endif
