/* SPDX-License-Identifier: MIT */
/* Exact angles, angles rounded as others round them, and tables of cosines and sines. Contract: turn.h. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "engine/rotation/rotation.h"

enum { CHUNK = 64 }; /* pairs whose cosines are made together */

/* The angle of a pair as a sum of products, which is the one thing that exact and rounded angles have in
   common: a rounded angle is itself times 1. */
typedef struct products {
    int          n;
    double       p[PE_MAX_AXES];
    pe_frequency k[PE_MAX_AXES];
} products;

static double single(double x)
{
    return (double)(float)x;
}

/* fl(p * w), summed from left to right where there are several. */
static double angle_in_float(const pe_turn *turn, int64_t m, const double at[])
{
    if (!turn->is_matrix)
        return single(single(at[turn->axis[m]]) * single(turn->w[m]));
    double sum = 0;
    for (int c = 0; c < turn->axes; c++)
        sum = single(sum + single(single(at[c]) * single(turn->w[m * turn->axes + c])));
    return sum;
}

static double angle_of_ggml(const pe_turn *turn, int64_t m, const double at[], pe_walk *walk)
{
    const int axis = turn->axis[m];
    if (m == 0 || turn->index[m] < walk->index[axis]) {
        for (int c = 0; c < turn->axes; c++)
            if (m == 0 || c == axis) {
                walk->theta[c] = single(at[c]);
                walk->index[c] = 0;
            }
    }
    for (; walk->index[axis] < turn->index[m]; walk->index[axis]++)
        walk->theta[axis] = single(walk->theta[axis] * turn->step);
    const double whole = single(walk->theta[axis] / single(turn->divisor[m])),
                 slow = single(turn->slower * whole), share = turn->share[m];
    return single(single(slow * single(1 - share)) + single(whole * share));
}

static void find_products(products *x, const pe_turn *turn, int64_t m, const double at[], pe_walk *walk)
{
    x->n = 1;
    if (turn->angles != PE_EXACT) {
        x->p[0] = turn->angles == PE_FLOAT32 ? angle_in_float(turn, m, at) : angle_of_ggml(turn, m, at, walk);
        x->k[0] = pe_frequency_of(1);
        return;
    }
    if (!turn->is_matrix) {
        x->p[0] = at[turn->axis[m]];
        x->k[0] = turn->k[m];
        return;
    }
    x->n = turn->axes;
    for (int c = 0; c < turn->axes; c++) {
        x->p[c] = at[c];
        x->k[c] = turn->k[m * turn->axes + c];
    }
}

void pe_turn_angles(const pe_turn *turn, const double at[], double angle[])
{
    pe_walk w;
    for (int64_t m = 0; m < turn->M; m++) {
        double sum = 0;
        if (turn->angles != PE_EXACT) {
            products x;
            find_products(&x, turn, m, at, &w);
            angle[m] = x.p[0];
            continue;
        }
        for (int c = 0; turn->is_matrix && c < turn->axes; c++)
            sum += at[c] * turn->w[m * turn->axes + c];
        angle[m] = turn->is_matrix ? sum : at[turn->axis[m]] * turn->w[m];
    }
}

/* How much longer a pair gets, as an exponent. */
static double growth_of(const pe_turn *turn, int64_t m, double position)
{
    return turn->growth_sign * turn->growth[m] * (position - turn->center);
}

static double factor(const pe_turn *turn, int64_t m, double position)
{
    return turn->growth ? turn->magnitude * exp(growth_of(turn, m, position)) : turn->magnitude;
}

static double as_number(pe_number type, double x)
{
    switch (type) {
    case PE_AS_F64: return x;
    case PE_AS_F32: return single(x);
    case PE_AS_BF16: return pe_rounded_to_bf16(x);
    case PE_AS_F16: return pe_rounded_to_f16(x);
    }
    return x;
}

void pe_turn_pair(const pe_turn *turn, int64_t m, const double at[], pe_walk *walk, double *cosine,
                  double *sine)
{
    products     x;
    double       c, n;
    const double f = factor(turn, m, at[0]);
    find_products(&x, turn, m, at, walk);
    if (x.n == 1)
        pe_cos_sin(x.p[0], x.k[0], &c, &n);
    else
        pe_cos_sin_sum(x.n, x.p, x.k, &c, &n);
    *cosine = as_number(turn->table_type, c * f);
    *sine   = as_number(turn->table_type, n * f) * turn->sense;
}

double pe_turn_temperature(const pe_turn *turn, const double at[])
{
    const double p = at[0] + (turn->temperature == PE_LLAMA4);
    if (turn->temperature == PE_NO_TEMPERATURE)
        return 1;
    return 1 + turn->temperature_scale * log(1 + fmax(floor(p / turn->temperature_length), 0));
}

/* Cosines and sines of n pairs from m on, as pe_turn_pair has them. */
static void turn_chunk(const pe_turn *turn, int64_t m, int64_t n, const double at[], pe_walk *walk,
                       const pe_kernels *kernels, double cosine[], double sine[])
{
    const pe_frequency one = pe_frequency_of(1);
    double             p[CHUNK];
    if (turn->is_matrix && turn->angles == PE_EXACT) {
        for (int64_t i = 0; i < n; i++)
            pe_turn_pair(turn, m + i, at, walk, &cosine[i], &sine[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        p[i] = turn->angles == PE_EXACT     ? at[turn->axis[m + i]]
               : turn->angles == PE_FLOAT32 ? angle_in_float(turn, m + i, at)
                                            : angle_of_ggml(turn, m + i, at, walk);
    if (turn->angles == PE_EXACT)
        kernels->cosines(p, &turn->k[m].k_hi, 1, cosine, sine, n);
    else
        kernels->cosines(p, &one.k_hi, 0, cosine, sine, n);
    for (int64_t i = 0; i < n; i++) {
        const double f = factor(turn, m + i, at[0]);
        cosine[i]      = as_number(turn->table_type, cosine[i] * f);
        sine[i]        = as_number(turn->table_type, sine[i] * f) * turn->sense;
    }
}

/* ---- from one rotation to another, and gradients ---- */

/* Pairs that a rotation turned, turned further: angles and logarithms of lengths are subtracted. */
static void turn_between(const pe_turn *from, const double from_at[], pe_walk *from_walk, const pe_turn *to,
                         const double to_at[], pe_walk *to_walk, int64_t m, double *cosine, double *sine)
{
    products     a, b;
    double       p[2 * PE_MAX_AXES];
    pe_frequency k[2 * PE_MAX_AXES];
    find_products(&a, to, m, to_at, to_walk);
    find_products(&b, from, m, from_at, from_walk);
    for (int i = 0; i < a.n; i++) {
        p[i] = a.p[i] * to->sense;
        k[i] = a.k[i];
    }
    for (int i = 0; i < b.n; i++) {
        p[a.n + i] = -b.p[i] * from->sense;
        k[a.n + i] = b.k[i];
    }
    pe_cos_sin_sum(a.n + b.n, p, k, cosine, sine);
    const double grown =
        (to->growth ? growth_of(to, m, to_at[0]) : 0) - (from->growth ? growth_of(from, m, from_at[0]) : 0);
    const double f = to->magnitude / from->magnitude * exp(grown);
    *cosine *= f;
    *sine *= f;
}

void pe_turn_again(double *y, const double *x, int64_t width, const pe_turn *from, const double from_at[],
                   const pe_turn *to, const double to_at[])
{
    pe_walk from_walk, to_walk;
    memcpy(y, x, (size_t)width * sizeof *y);
    for (int64_t m = 0; m < to->M; m++) {
        int64_t in[2], out[2];
        double  c, n;
        turn_between(from, from_at, &from_walk, to, to_at, &to_walk, m, &c, &n);
        pe_turn_channels(from, from->layout_out, m, in);
        pe_turn_channels(to, to->layout_out, m, out);
        y[out[0]] = x[in[0]] * c - x[in[1]] * n;
        y[out[1]] = x[in[1]] * c + x[in[0]] * n;
    }
}

/* The cotangent of an angle is that of the row times the row a quarter turn further: x_a dx_b - x_b dx_a. */
void pe_turn_slopes(double *dw, const pe_turn *turn, const double at[], double sign, const double *x,
                    const double *dx)
{
    for (int64_t m = 0; m < turn->M; m++) {
        int64_t c[2];
        pe_turn_channels(turn, sign > 0 ? turn->layout : turn->layout_out, m, c);
        const double slope = sign * turn->sense * (x[c[0]] * dx[c[1]] - x[c[1]] * dx[c[0]]);
        for (int n = 0; n < turn->axes; n++)
            if (turn->is_matrix || n == turn->axis[m])
                dw[m * turn->axes + n] += at[n] * slope;
    }
}

/* ---- tables ---- */

/* The pairs of block i into its part of a row: cosines, then sines. */
static void fill_block(float *to, const pe_turn *turn, int i, const double at[], pe_walk *walk,
                       const pe_kernels *kernels)
{
    const int64_t pairs = turn->start[i + 1] - turn->start[i];
    for (int64_t m = 0; m < pairs; m += CHUNK) {
        const int64_t n = pairs - m < CHUNK ? pairs - m : CHUNK;
        double        cosine[CHUNK], sine[CHUNK];
        turn_chunk(turn, turn->start[i] + m, n, at, walk, kernels, cosine, sine);
        for (int64_t c = 0; c < n; c++) {
            to[m + c]         = (float)cosine[c];
            to[m + c + pairs] = (float)sine[c];
        }
    }
}

int pe_turn_climbs(const pe_turn *turn, const posenc_positions *pos)
{
    return turn->angles == PE_EXACT && !turn->is_matrix && !turn->growth && turn->blocks == 1 &&
           (turn->table_type == PE_AS_F64 || turn->table_type == PE_AS_F32) &&
           (turn->axes == 1 || !pos->array.data);
}

static pe_columns columns_of(const pe_turn *turn)
{
    return (pe_columns){.M = turn->M, .width = 2 * turn->M, .sine = turn->M, .step = 1};
}

void pe_turn_ladder(pe_ladder *ladder, const pe_turn *turn, const pe_kernels *kernels)
{
    const pe_columns columns = columns_of(turn);
    pe_ladder_make(ladder, &columns, turn->k, turn->magnitude, turn->sense, kernels);
}

pe_ladder *pe_turn_ladder_create(const pe_turn *turn, const pe_kernels *kernels)
{
    const posenc_positions range   = posenc_positions_range(0, 1);
    const pe_columns       columns = columns_of(turn);
    if (turn->M == 0 || turn->heads > 1 || turn->spoilt >= 0 || !pe_turn_climbs(turn, &range))
        return NULL;
    return pe_ladder_create(&columns, turn->k, turn->magnitude, turn->sense, kernels);
}

/* How many of n elements from s on stand at whole positions one after another. */
static int64_t run_of(const posenc_positions *pos, int64_t b, int64_t s, int64_t n)
{
    const double p   = pe_position(pos, b, s);
    int64_t      run = 0;
    if (!pos->array.data && (pos->step == 0 || pos->step == 1))
        return pe_ladder_reaches(p) && pe_ladder_reaches(p + (double)(n - 1)) ? n : 0;
    while (run < n && pe_position(pos, b, s + run) == p + (double)run && pe_ladder_reaches(p + (double)run))
        run++;
    return run;
}

/* Cosines and sines alone; returns how many rows. Scattered positions have the very rounding of double. */
static int64_t fill_some(float *table, int64_t stride, const pe_turn *turn, const posenc_positions *pos,
                         int64_t b, int64_t s, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                         const pe_kernels *kernels)
{
    const int64_t run             = ladder ? run_of(pos, b, s, n) : 0;
    double        at[PE_MAX_AXES] = {0};
    pe_walk       walk;
    if (run >= PE_LEAST_RUN) {
        pe_ladder_rows(ladder, rung, table, stride, run, pe_position(pos, b, s), stream);
        return run;
    }
    pe_turn_place(turn, pos, b, s, at);
    for (int i = 0; i < turn->blocks; i++)
        fill_block(table + 2 * turn->start[i], turn, i, at, &walk, kernels);
    return 1;
}

void pe_turn_fill(float *table, int64_t stride, const pe_turn *turn, const posenc_positions *pos, int64_t b,
                  int64_t s0, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                  const pe_kernels *kernels)
{
    for (int64_t s = 0; s < n;)
        s +=
            fill_some(table + s * stride, stride, turn, pos, b, s0 + s, n - s, ladder, rung, stream, kernels);
    for (int64_t s = 0; turn->temperature != PE_NO_TEMPERATURE && s < n; s++) {
        double at[PE_MAX_AXES] = {0};
        pe_turn_place(turn, pos, b, s0 + s, at);
        table[s * stride + 2 * turn->M] = (float)pe_turn_temperature(turn, at);
    }
}
