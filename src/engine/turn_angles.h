/* SPDX-License-Identifier: MIT */
/*
 * turn_angles.h: cosines and sines of single pairs, for the rows and tables of turn.h
 */
#ifndef PE_ENGINE_TURN_ANGLES_H
#define PE_ENGINE_TURN_ANGLES_H

#include "engine/turn.h"

/* ggml's running product, one for each coordinate; the first pair of a place starts it. */
typedef struct pe_walk {
    double  theta[PE_MAX_AXES];
    int32_t index[PE_MAX_AXES];
} pe_walk;

/* Cosine and sine of pair m, magnitude, sense and rounding included. Pairs of a place come in ascending
   order. */
void pe_turn_pair(const pe_turn *turn, int64_t m, const double at[], pe_walk *walk, double *cosine,
                  double *sine);

enum { PE_TURN_CHUNK = 64 }; /* pairs whose cosines are made together */

/* Cosines and sines of n pairs from m on, as pe_turn_pair has them. */
void pe_turn_chunk(const pe_turn *turn, int64_t m, int64_t n, const double at[], pe_walk *walk,
                   const pe_kernels *kernels, double cosine[], double sine[]);

#endif
