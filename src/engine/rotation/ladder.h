/* SPDX-License-Identifier: MIT */
/*
 * ladder.h: cosines and sines of many whole positions, by adding angles
 *
 * An exact angle costs as much as twenty sums of angles. So position p is climbed in steps: the exact row
 * amid the first 16 of the 512 positions that p is among, plus a row of the multiples of 16 below 512, plus
 * or minus half a position, and from there up to seven positions away, each from the two rows before it
 * (waves.inc). What only knows steps is made once and serves everywhere. Whatever the position, a number is
 * off by what two sums and seven such steps carry. Rows of the ladder have a column for every float of a row
 * to be made, in its order: a sine is a cosine that begins a quarter turn back, so that only the exact row
 * knows which is which.
 *
 * Error     an exact cosine or sine is off by 2.3e-16; a sum of angles by what its parts are, each times the
 *           other's length, and two roundings: a step that is itself a sum by 8e-16, the two together by less
 *           than 2e-15, and the steps bring 11e-15 more where they meet a zero. Of the last place of a float
 *           of 2^-13 that is 9e-4; the kernel makes smaller ones from their exact angles (waves.inc).
 * Others    add angles in other ways, for they want something else. sandwich.c wants the sum of all waves at
 *           a distance, in double: a product of matrices gives it without any one angle, thirty times sooner
 *           than angle by angle. transformer_xl.c wants rows in double, for the reference and for gradients,
 *           and has no memory that would keep small angles from call to call; in float, it goes by centres
 *           and distances from them (basis.c).
 * Source    the two angle-sum formulas; tables of multiples as in Gal's method
 */
#ifndef PE_ENGINE_LADDER_H
#define PE_ENGINE_LADDER_H

#include <posenc/posenc.h>

#include "base/angle.h"
#include "base/arena.h"
#include "kernels/kernels.h"

/* Rows that one row of middle angles serves: few enough for steps from its middle to stay exact. Rows of
   middle angles, and at least; a power of two. */
enum { PE_STEP = PE_BLOCK_WAVES, PE_MIDDLE = 32, PE_MIDDLE_LEAST = 8 };

/* Rotations have fewer where rows are wide, as a run may hold them in its workspace: 86 KiB at 512. */
static inline int64_t pe_ladder_middle_of(int64_t width)
{
    int64_t middle = PE_MIDDLE;
    while (middle > PE_MIDDLE_LEAST && middle * width > PE_MIDDLE * 128)
        middle /= 2;
    return middle;
}

/* Where cosines and sines of M pairs go: kernels.h, wave_rows. */
typedef struct pe_columns {
    int64_t M, width, cosine, sine, step;
} pe_columns;

typedef struct pe_ladder {
    pe_columns          columns;
    int64_t             padded, rows; /* of floats; rows of middle angles */
    const pe_frequency *k;
    double              factor, sense; /* of every row: cosine * factor, sine * factor * sense */
    float               small;         /* kernels.h */
    double             *fine, *middle; /* [3, padded]: kernels.h; [rows, 2, padded] */
    double             *row;           /* [2, M], of one thread: used by pe_ladder_make only */
    const pe_kernels   *kernels;
} pe_ladder;

/* Where one thread stands. */
typedef struct pe_rung {
    int64_t coarse_at;    /* the first of the positions that its row serves */
    double *coarse, *row; /* [2, padded]; [2, M] */
} pe_rung;

/* Fewer rows than this are made sooner one by one than by a ladder. */
enum { PE_LADDER_ROWS = 128 };

enum { PE_BEYOND = 32 << 20 /* bytes: more than the last cache holds */ };

/* Memory for rows of `width` floats with so many of middle angles, and for a thread; both count on an arena
 * without memory. */
pe_ladder pe_ladder_lay_out(int64_t width, int64_t rows, pe_arena *arena);
pe_rung   pe_ladder_lay_out_rung(int64_t width, pe_arena *arena);
pe_rung  *pe_ladder_lay_out_rungs(int threads, int64_t width, pe_arena *arena);

/* Makes the rows that serve everywhere. */
void pe_ladder_make(pe_ladder *ladder, const pe_columns *columns, const pe_frequency *k, double factor,
                    double sense, const pe_kernels *kernels);

/* A ladder that keeps its memory and its frequencies, until pe_memory_free; NULL where there is no memory. */
pe_ladder *pe_ladder_create(const pe_columns *columns, int64_t rows, const pe_frequency *k, double factor,
                            double sense, const pe_kernels *kernels, const posenc_allocator *from);

/* Is a table of that many bytes, whose blocks of M floats follow each other, better written past the caches?
 */
int pe_ladder_streams(const posenc_tensor *table, int64_t bytes, int64_t M);

/* May this position be climbed to? Whole, and below 2^31. */
int pe_ladder_reaches(double position);

/* `n` rows of the ladder's width, `stride` floats apart: row r stands at position + r. stream:
   pe_wave_rows. */
void pe_ladder_rows(const pe_ladder *ladder, pe_rung *rung, float *to, int64_t stride, int64_t n,
                    double position, int stream);

#endif
