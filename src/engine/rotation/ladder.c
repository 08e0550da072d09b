/* SPDX-License-Identifier: MIT */
/* Angles added. Contract and idea: ladder.h. */
#include "engine/rotation/ladder.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

#define NOWHERE INT64_MIN

enum { CHUNK = 64, EXACT = 8 };

#define AMID (PE_STEP / 2 - 0.5) /* where the base of a block stands in it */

static int64_t padded(int64_t n)
{
    return (n + PE_LANES - 1) / PE_LANES * PE_LANES;
}

pe_ladder pe_ladder_lay_out(int64_t width, int64_t rows, pe_arena *arena)
{
    pe_ladder ladder = {.padded = padded(width), .rows = rows};
    ladder.fine      = pe_arena_doubles(arena, 3 * ladder.padded);
    ladder.middle    = pe_arena_doubles(arena, rows * 2 * ladder.padded);
    ladder.row       = pe_arena_doubles(arena, 2 * width); /* a row has a pair for one float at least */
    return ladder;
}

pe_rung pe_ladder_lay_out_rung(int64_t width, pe_arena *arena)
{
    pe_rung rung = {.coarse_at = NOWHERE};
    rung.coarse  = pe_arena_doubles(arena, 2 * padded(width));
    rung.row     = pe_arena_doubles(arena, 2 * width); /* a row has a pair for one float at least */
    return rung;
}

pe_rung *pe_ladder_lay_out_rungs(int threads, int64_t width, pe_arena *arena)
{
    pe_rung *rungs = pe_arena_take(arena, (size_t)threads * sizeof *rungs);
    for (int i = 0; i < threads; i++) {
        const pe_rung rung = pe_ladder_lay_out_rung(width, arena);
        if (arena->memory)
            rungs[i] = rung;
    }
    return rungs;
}

/* Exact cosines, then sines, of all pairs. */
static void exact_pairs(const pe_ladder *l, double position, double pairs[])
{
    const int64_t M = l->columns.M;
    double        p[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        p[i] = position;
    for (int64_t m = 0; m < M; m += CHUNK)
        l->kernels->cosines(p, &l->k[m].k_hi, 1, pairs + m, pairs + M + m, M - m < CHUNK ? M - m : CHUNK);
}

/* n numbers, times a factor, to places `step` apart: constants make vectors of it. */
static void spread(double *restrict to, const double *restrict from, int64_t n, int64_t step, double factor)
{
    if (step == 1)
        for (int64_t m = 0; m < n; m++)
            to[m] = from[m] * factor;
    else
        for (int64_t m = 0; m < n; m++)
            to[m * step] = from[m] * factor;
}

/* How many of n places from `first` on lie within a row. */
static int64_t count_of(const pe_columns *c, int64_t first)
{
    const int64_t fit = (c->width - first + c->step - 1) / c->step;
    return fit < c->M ? fit : c->M;
}

static void pad(const pe_ladder *l, double row[], double factor)
{
    for (int64_t j = l->columns.width; j < l->padded; j++) {
        row[j]             = factor;
        row[l->padded + j] = 0;
    }
}

/* The row that steps every column on by as much as `position` rotates its pair. */
static void step_row(const pe_ladder *l, double position, double row[])
{
    const pe_columns *c       = &l->columns;
    const double     *sines   = l->row + c->M;
    const int64_t     cosines = count_of(c, c->cosine), fit = count_of(c, c->sine);
    exact_pairs(l, position, l->row);
    spread(row + c->cosine, l->row, cosines, c->step, 1);
    spread(row + l->padded + c->cosine, sines, cosines, c->step, 1);
    spread(row + c->sine, l->row, fit, c->step, 1);
    spread(row + l->padded + c->sine, sines, fit, c->step, 1);
    pad(l, row, 1);
}

/* The row of a position itself: sines a quarter turn back, where the cosine is the sine and the sine the
   cosine below zero. */
static void coarse_row(const pe_ladder *l, double position, double pairs[], double row[])
{
    const pe_columns *c       = &l->columns;
    const double     *sines   = pairs + c->M;
    const int64_t     cosines = count_of(c, c->cosine), fit = count_of(c, c->sine);
    exact_pairs(l, position, pairs);
    spread(row + c->cosine, pairs, cosines, c->step, l->factor);
    spread(row + l->padded + c->cosine, sines, cosines, c->step, l->factor);
    spread(row + c->sine, sines, fit, c->step, l->factor * l->sense);
    spread(row + l->padded + c->sine, pairs, fit, c->step, -l->factor * l->sense);
    pad(l, row, l->factor);
}

/* Below this a float's last place may be finer than what a sum of angles is good for. */
static float small_of(double factor)
{
    int          power;
    const double part = frexp(fabs(factor), &power);
    return part == 0 ? 0 : (float)ldexp(1, (part == 0.5 ? power - 1 : power) - 13);
}

/* Half a step, and twice the cosine of a whole one. */
static void make_fine(const pe_ladder *l)
{
    double *const twice = l->fine + 2 * l->padded;
    step_row(l, 1, l->fine + l->padded); /* its sines are not wanted */
    for (int64_t j = 0; j < l->padded; j++)
        twice[j] = 2 * l->fine[l->padded + j];
    step_row(l, 0.5, l->fine);
}

/* Rows of 0, 1, 2, ... steps: of eights and of ones exactly, of others as their sum. */
static void make_middle(const pe_ladder *l)
{
    const int64_t row  = 2 * l->padded;
    double *const rows = l->middle;
    for (int64_t a = 0; a < l->rows; a++)
        if (a < EXACT || a % EXACT == 0)
            step_row(l, (double)(a * PE_STEP), rows + a * row);
    for (int64_t a = EXACT; a < l->rows; a++)
        if (a % EXACT != 0)
            l->kernels->add_angles(rows + a * row, rows + a / EXACT * EXACT * row, rows + a % EXACT * row,
                                   l->padded);
}

void pe_ladder_make(pe_ladder *ladder, const pe_columns *columns, const pe_frequency *k, double factor,
                    double sense, const pe_kernels *kernels)
{
    ladder->columns = *columns;
    ladder->k       = k;
    ladder->factor  = factor;
    ladder->sense   = sense;
    ladder->small   = small_of(factor);
    ladder->kernels = kernels;
    make_fine(ladder);
    make_middle(ladder);
}

pe_ladder *pe_ladder_create(const pe_columns *columns, int64_t rows, const pe_frequency *k, double factor,
                            double sense, const pe_kernels *kernels, const posenc_allocator *from)
{
    const size_t bytes = (size_t)columns->M * sizeof *k;
    pe_arena     arena = {0};
    pe_arena_take(&arena, sizeof(pe_ladder));
    pe_arena_take(&arena, bytes);
    pe_ladder_lay_out(columns->width, rows, &arena);
    arena = (pe_arena){pe_memory_create(from, arena.used), 0};
    if (!arena.memory)
        return NULL;
    pe_ladder    *ladder = pe_arena_take(&arena, sizeof *ladder);
    pe_frequency *own    = pe_arena_take(&arena, bytes);
    *ladder              = pe_ladder_lay_out(columns->width, rows, &arena);
    memcpy(own, k, bytes);
    pe_ladder_make(ladder, columns, own, factor, sense, kernels);
    return ladder;
}

int pe_ladder_streams(const posenc_tensor *table, int64_t bytes, int64_t M)
{
    const int64_t all = table->stride[0] | table->stride[1] | M;
    return bytes > PE_BEYOND && (uintptr_t)table->data % 64 == 0 && all * (int64_t)sizeof(float) % 64 == 0;
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

void pe_ladder_rows(const pe_ladder *ladder, pe_rung *rung, float *to, int64_t stride, int64_t n,
                    double position, int stream)
{
    const int64_t     from = (int64_t)position, row = 2 * ladder->padded;
    const pe_columns *c = &ladder->columns;
    pe_wave_rows      w = {.stride = stride,
                           .M      = c->M,
                           .padded = ladder->padded,
                           .width  = c->width,
                           .cosine = c->cosine,
                           .sine   = c->sine,
                           .step   = c->step,
                           .small  = ladder->small,
                           .coarse = rung->coarse,
                           .fine   = ladder->fine,
                           .k      = &ladder->k->k_hi,
                           .factor = ladder->factor,
                           .sense  = ladder->sense,
                           .stream = stream};
    for (int64_t r = 0; r < n; r += w.rows) {
        const int64_t base   = whole_below(from + r, PE_STEP),
                      coarse = whole_below(base, PE_STEP * ladder->rows);
        if (rung->coarse_at != coarse)
            coarse_row(ladder, (double)coarse + AMID, rung->row, rung->coarse);
        rung->coarse_at = coarse;
        w.to            = to + r * stride;
        w.first         = from + r - base;
        w.rows          = n - r < PE_STEP - w.first ? n - r : PE_STEP - w.first;
        w.position      = (double)(from + r);
        w.middle        = ladder->middle + (base - coarse) / PE_STEP * row;
        w.last          = r + w.rows == n;
        ladder->kernels->wave_rows(&w);
    }
}
