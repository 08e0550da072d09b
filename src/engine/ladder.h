/* SPDX-License-Identifier: MIT */
/*
 * ladder.h: cosines and sines of many whole positions, by adding angles
 *
 * An exact angle costs as much as twenty sums of angles. So position p is climbed in three steps: the exact row of the
 * multiple of 512 below it, plus a row of the multiples of 16 below 512, plus a row of 0 .. 15; the latter two are made once
 * and serve everywhere. Nothing accumulates: whatever the position, a number is off by what three steps carry.
 *
 * Error     an exact cosine or sine is off by 2.3e-16; a sum of angles by what its parts are, each times the other's length, and
 *           two roundings: a step that is itself a sum by 8e-16, all three together by less than 4e-15. Of the last place of
 *           a float of 2^-14 that is 5e-4; the kernel makes smaller ones from their exact angles (kernels.h, wave_rows).
 * Source    the two angle-sum formulas; tables of multiples as in Gal's method
 */
#ifndef PE_ENGINE_LADDER_H
#define PE_ENGINE_LADDER_H

#include "base/angle.h"
#include "base/workspace.h"
#include "kernels/kernels.h"

/* Rows of small angles: few enough for the first cache to hold them beside what is written; and of middle ones. */
enum { PE_STEP = 16, PE_MIDDLE = 32 };

typedef struct pe_ladder {
    int64_t             M, padded;
    const pe_frequency *k;
    double              factor, sense; /* of every row: cosine * factor, sine * factor * sense */
    double             *fine, *middle; /* [PE_STEP, 2, padded], [PE_MIDDLE, 2, padded] */
    const pe_kernels   *kernels;
} pe_ladder;

/* Where one thread stands. */
typedef struct pe_rung {
    int64_t coarse_at; /* the position of the row below */
    double *coarse;    /* [2, padded] */
} pe_rung;

/* Fewer rows than this are made sooner one by one than by a ladder. */
enum { PE_LADDER_ROWS = 128 };

/* Memory for M pairs, and for a thread; both count on an arena without memory. */
pe_ladder pe_ladder_lay_out(int64_t M, pe_arena *arena);
pe_rung   pe_rung_lay_out(int64_t M, pe_arena *arena);

/* Makes the rows that serve everywhere. */
void pe_ladder_make(pe_ladder *ladder, const pe_frequency *k, double factor, double sense,
                    const pe_kernels *kernels);

/* May this position be climbed to? Whole, and below 2^31. */
int pe_ladder_reaches(double position);

/* `to` says where and how many: to, stride, rows, width, cosine, sine, step and stream are the caller's. Row r stands at
   position + r. */
void pe_ladder_rows(const pe_ladder *ladder, pe_rung *rung, pe_wave_rows to, double position);

#endif
