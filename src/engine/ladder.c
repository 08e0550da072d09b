/* SPDX-License-Identifier: MIT */
/* Angles added. Contract and idea: ladder.h. */
#include "engine/ladder.h"

#include <math.h>
#include <string.h>

#define NOWHERE INT64_MIN

enum { CHUNK = 64, EXACT = 8, COARSE = PE_STEP * PE_MIDDLE };

static int64_t padded_of(int64_t M)
{
    return (M + PE_LANES - 1) / PE_LANES * PE_LANES;
}

pe_ladder pe_ladder_lay_out(int64_t M, pe_arena *arena)
{
    pe_ladder ladder = {.M = M, .padded = padded_of(M)};
    ladder.fine      = pe_take_doubles(arena, PE_STEP * 2 * ladder.padded);
    ladder.middle    = pe_take_doubles(arena, PE_MIDDLE * 2 * ladder.padded);
    return ladder;
}

pe_rung pe_rung_lay_out(int64_t M, pe_arena *arena)
{
    return (pe_rung){.coarse_at = NOWHERE, .coarse = pe_take_doubles(arena, 2 * padded_of(M))};
}

/* The exact row of a position; what pads it is 0. */
static void exact_row(const pe_ladder *l, double position, double factor, double row[])
{
    double p[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        p[i] = position;
    memset(row, 0, (size_t)(2 * l->padded) * sizeof *row);
    for (int64_t m = 0; m < l->M; m += CHUNK)
        l->kernels->cosines(p, &l->k[m].k_hi, 1, row + m, row + l->padded + m,
                            l->M - m < CHUNK ? l->M - m : CHUNK);
    for (int64_t m = 0; m < l->M; m++) {
        row[m] *= factor;
        row[l->padded + m] *= factor * l->sense;
    }
}

/* Rows of 0, step, 2*step, ...: of eights and of ones exactly, of others as their sum. */
static void make_steps(const pe_ladder *l, double rows[], int64_t count, double step)
{
    const int64_t row = 2 * l->padded;
    for (int64_t a = 0; a < count; a++)
        if (a < EXACT || a % EXACT == 0)
            exact_row(l, (double)a * step, 1, rows + a * row);
    for (int64_t a = EXACT; a < count; a++)
        if (a % EXACT != 0)
            l->kernels->add_angles(rows + a * row, rows + a / EXACT * EXACT * row, rows + a % EXACT * row,
                                   l->padded);
}

void pe_ladder_make(pe_ladder *ladder, const pe_frequency *k, double factor, double sense,
                    const pe_kernels *kernels)
{
    ladder->k       = k;
    ladder->factor  = factor;
    ladder->sense   = sense;
    ladder->kernels = kernels;
    make_steps(ladder, ladder->fine, PE_STEP, 1);
    make_steps(ladder, ladder->middle, PE_MIDDLE, PE_STEP);
}

int pe_ladder_reaches(double position)
{
    return fabs(position) <= 0x1p31 && position == floor(position);
}

/* The multiple of a power of two at or below a whole number, negative ones included. */
static int64_t whole_below(int64_t position, int64_t power)
{
    return position & -power;
}

void pe_ladder_rows(const pe_ladder *ladder, pe_rung *rung, pe_wave_rows to, double position)
{
    const int64_t first = (int64_t)position, all = to.rows;
    to.M      = ladder->M;
    to.padded = ladder->padded;
    to.coarse = rung->coarse;
    to.k      = &ladder->k->k_hi;
    to.factor = ladder->factor;
    to.sense  = ladder->sense;
    for (int64_t r = 0; r < all; r += to.rows, to.to += to.rows * to.stride) {
        const int64_t base = whole_below(first + r, PE_STEP), in = first + r - base,
                      coarse = whole_below(base, COARSE);
        if (rung->coarse_at != coarse)
            exact_row(ladder, (double)coarse, ladder->factor, rung->coarse);
        rung->coarse_at = coarse;
        to.rows         = all - r < PE_STEP - in ? all - r : PE_STEP - in;
        to.position     = (double)(first + r);
        to.middle       = ladder->middle + (base - coarse) / PE_STEP * 2 * ladder->padded;
        to.fine         = ladder->fine + in * 2 * ladder->padded;
        to.last         = r + to.rows == all;
        ladder->kernels->wave_rows(&to);
    }
}
