/* SPDX-License-Identifier: MIT */
/*
 * misfit.c: what a theory leaves over, in units of the rounding of the tensor
 *
 * Gains that were measured are compared with those that the theory's speeds, positions and magnitude give.
 * What float32 makes of an angle is not counted, except in `strict`: of its product, and, unless ggml's chain
 * of products gives just these numbers, of its frequency too (frame.c). Fewer bits (bfloat16 or
 * float16, somewhere on the way from frequency to table; ggml's product from pair to pair) are computed as
 * the other program would.
 */
#include "diagnose/search.h"

#include "base/half.h"
#include "base/shared/compiler.h"

#include <math.h>

static const double float32 = 0x1.4p-23; /* relative error of an angle of float32: 2.5 roundings */

/* Fewer bits, and where. */
enum { FREQUENCIES = 1, POSITIONS = 2, ANGLES = 4, TABLE = 8 };
static const struct low {
    int places, is_f16;
} lows[PE_LOWS] = {{FREQUENCIES, 0},
                   {POSITIONS, 0},
                   {ANGLES, 0},
                   {TABLE, 0},
                   {FREQUENCIES | ANGLES, 0},
                   {POSITIONS | ANGLES, 0},
                   {FREQUENCIES | POSITIONS, 0},
                   {FREQUENCIES | POSITIONS | ANGLES, 0},
                   {ANGLES | TABLE, 0},
                   {FREQUENCIES | TABLE, 0},
                   {POSITIONS | TABLE, 0},
                   {FREQUENCIES | ANGLES | TABLE, 0},
                   {POSITIONS | ANGLES | TABLE, 0},
                   {FREQUENCIES | POSITIONS | TABLE, 0},
                   {FREQUENCIES | POSITIONS | ANGLES | TABLE, 0},
                   {FREQUENCIES, 1},
                   {POSITIONS, 1},
                   {ANGLES, 1},
                   {TABLE, 1},
                   {FREQUENCIES | ANGLES, 1},
                   {POSITIONS | ANGLES, 1},
                   {FREQUENCIES | POSITIONS | ANGLES, 1},
                   {FREQUENCIES | POSITIONS | ANGLES | TABLE, 1},
                   {-1, 0}}; /* ggml */

static double rounded(const struct low *l, int place, double x)
{
    return !(l->places & place) ? x : l->is_f16 ? pe_half_round_to_f16(x) : pe_half_round_to_bf16(x);
}

static double complex low_gain(const struct low *l, double w, double p, double size)
{
    const double f = rounded(l, FREQUENCIES, (double)(float)w), x = rounded(l, POSITIONS, p);
    const double a = rounded(l, ANGLES, (double)(float)(f * x));
    return PE_COMPLEX(rounded(l, TABLE, size * cos(a)), rounded(l, TABLE, size * sin(a)));
}

int pe_misfit_is_ggml(int low)
{
    return low && lows[low - 1].places < 0;
}

double pe_misfit_place(const pe_search *s, const pe_theory *t, int64_t row, int axis)
{
    if (t->list)
        return t->list[row * s->N + axis];
    return t->step * pe_row_position(s->rows, row)[t->axes[axis]] + t->offset;
}

double pe_misfit_longest(const pe_search *s, const pe_theory *t)
{
    double most = 0;
    for (int64_t row = 0; row < s->rows->count; row++)
        most = fmax(most, fabs(pe_misfit_place(s, t, row, 0)));
    return most;
}

/* Faster than cexp and cabs, which mind infinities. */
double complex pe_misfit_turned(double size, double angle)
{
    return PE_COMPLEX(size * cos(angle), size * sin(angle));
}

double pe_misfit_distance(double complex a, double complex b)
{
    const double x = creal(a) - creal(b), y = cimag(a) - cimag(b);
    return sqrt(x * x + y * y);
}

static void add_row(pe_left *l, const pe_search *s, const pe_theory *t, const pe_frame *f, int64_t row)
{
    int64_t         b, at;
    const int64_t   side  = pe_row_side(s->rows, row, &b, &at);
    const pe_gains *g     = s->pairings[t->pairing].gains;
    const double    heads = (double)s->rows->heads[side];
    double          places[PE_MOST_AXES];
    float           theta = 0, base = 0;
    for (int n = 0; n < s->N; n++)
        places[n] = pe_misfit_place(s, t, row, n);
    const int is_ggml = pe_misfit_is_ggml(t->low);
    if (is_ggml) {
        theta = (float)places[0];
        base  = f->M > 1 ? (float)(f->course.w[1] / f->course.w[0]) : 1;
        theta *= (float)f->course.w[0];
    }
    for (int64_t m = 0; m < g->M; m++) {
        const int64_t  i = row * g->M + m;
        double         a = f->course.w[m] * places[f->course.coordinate[m]];
        double complex z;
        if (is_ggml) {
            z = pe_misfit_turned(t->size[side], (double)theta);
            theta *= base;
        } else if (t->low)
            z = low_gain(&lows[t->low - 1], f->course.w[m], places[f->course.coordinate[m]], t->size[side]);
        else
            z = pe_misfit_turned(t->size[side], a);
        const double d    = pe_misfit_distance(g->z[i], z);
        const double part = fmax(0, d - float32 * fabs(a) * t->size[side]),
                     rest = fmax(0, d - f->course.blur[m] * fabs(a) * t->size[side]);
        l->free += g->power[i] * part * part;
        l->wide += g->power[i] * rest * rest;
        l->strict += g->power[i] * d * d;
        l->bad += g->power[i] * d * d > 36 * (g->noise[i] * s->noisiness / heads + 1e-30);
        l->cells++;
    }
}

/* From squares to roundings: less what noise of gains leaves, relative to the noise of all numbers. */
static double in_roundings(double squares, double expected, double total)
{
    return sqrt(fmax(0, squares - expected) / (total + 1e-300));
}

/* Are they the angles of ggml? */
static int is_chain(const pe_theory *t, const pe_search *s, const pe_frame *f, int is_all)
{
    pe_theory chain = *t;
    pe_left   l;
    chain.low = PE_LOWS;
    pe_misfit_measure(&chain, s, f, is_all, &l);
    return s->N == 1 && chain.misfit <= pe_same;
}

void pe_misfit_measure(pe_theory *t, const pe_search *s, const pe_frame *f, int is_all, pe_left *l)
{
    const pe_gains *g     = s->pairings[t->pairing].gains;
    const int64_t   n     = is_all ? s->rows->count : s->look_count;
    double          total = 0, expected = 0;
    *l = (pe_left){0};
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = is_all ? i : s->look[i];
        int64_t       b, at;
        const double  heads = (double)s->rows->heads[pe_row_side(s->rows, row, &b, &at)];
        add_row(l, s, t, f, row);
        for (int64_t m = 0; m < g->M; m++) /* channels that pass are not rounded again */
            total += g->noise[row * g->M + m];
        for (int64_t m = 0; m < g->M; m++)
            expected += s->noisiness * g->noise[row * g->M + m] / heads;
    }
    const double more = is_all ? fmax(0, g->floor - s->floor) : 0;
    t->misfit         = in_roundings(l->free + more, expected, total);
    t->strict         = in_roundings(l->strict + more, expected, total);
    const double wide = in_roundings(l->wide + more, expected, total);
    if (!t->low && t->misfit > pe_same && wide <= pe_same && !is_chain(t, s, f, is_all))
        t->misfit = wide;
}

double complex pe_misfit_low(int low, double w, double p, double size)
{
    return low_gain(&lows[low - 1], w, p, size);
}

const char *pe_misfit_angles(const pe_theory *t)
{
    return !t->low                     ? t->strict <= pe_same ? "exact" : "float32"
           : pe_misfit_is_ggml(t->low) ? "ggml"
           : lows[t->low - 1].is_f16   ? "float16"
                                       : "bfloat16";
}
