/* SPDX-License-Identifier: MIT */
/*
 * turn.h: machine 2, rotation of pairs of channels by position
 *
 * A room states frequencies, the pairing and a magnitude; everything else - exact angles, tables, rows in float and
 * double, forward and back - is here. Position p turns pair m by the angle p * w[m]: the product is exact
 * (base/angle.h), cosine and sine are rounded once to the type of the table.
 */
#ifndef PE_ENGINE_TURN_H
#define PE_ENGINE_TURN_H

#include "base/angle.h"
#include "base/positions.h"
#include "engine/terms.h"
#include "kernels/kernels.h"

typedef enum pe_layout {
    PE_INTERLEAVED, /* pair m = channels (2m, 2m+1) of the block: the paper, GPT-J */
    PE_HALF         /* pair m = channels (m, m+M): GPT-NeoX */
} pe_layout;

typedef struct pe_turn {
    int64_t   M; /* pairs; the rotated block is channels first .. first + 2M - 1 */
    int64_t   first;
    pe_layout layout;
    double    magnitude; /* factor on cosine and sine */
    /* xPos: a query at p is also multiplied by exp(growth * (p - center)), a key by exp(-growth * (p - center)). Scores do
       not depend on center; it keeps both factors within the range of float. NULL: no growth */
    double       *growth;
    double        center, growth_sign; /* +1 queries, -1 keys */
    double       *w;                   /* [M] frequencies in radians per position; room for D/2 */
    pe_frequency *k;                   /* [M] the same in quarter turns, filled by pe_turn_finish */
} pe_turn;

void pe_turn_finish(pe_turn *turn);

/* The same rotation for keys. */
pe_turn pe_turn_for_keys(const pe_turn *turn);

/* Table rows [n, 2M] for elements s0 .. s0+n-1 of batch item b: M cosines, then M sines, times the magnitude. */
void pe_turn_table(float *table, const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s0,
                   int64_t n);

/* One row of D doubles in place; sign +1 or -1. */
void pe_turn_row(double *x, const pe_turn *turn, double position, double sign);

/* R rows of floats in place, with table rows of the same elements. */
void pe_turn_rows(float *x, int64_t stride, const pe_turn *turn, const float *table, int64_t R, float sign,
                  const pe_kernels *kernels);

#endif
