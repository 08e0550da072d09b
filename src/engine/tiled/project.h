/* SPDX-License-Identifier: MIT */
/* project.h: few queries times vectors by distance that are a product; idea: project.c. */
#ifndef PE_ENGINE_PROJECT_H
#define PE_ENGINE_PROJECT_H

#include "engine/score/attention.h"

/* Is member A sinusoids times a parameter? And does this run, if it has few queries, want its products with
   them by pair, or are its rows ready? */
static inline int pe_project_is_for(const pe_attention *a)
{
    return a->terms->A.waves != NULL;
}
int pe_project_serves(const pe_attention *a);

/* Writes the products of all queries and keys of a part, whose keys are not read: rows of to->row floats, a
   multiple of PE_LANES that is not less than Lk. Memory of one thread; its size. */
void   pe_project_run(const pe_attention *a, const pe_projected *to, float *rows, pe_arena *arena);
size_t pe_project_bytes(const pe_attention *a);

#endif
