/* SPDX-License-Identifier: MIT */
/* Pairs of channels, their angles, and rows that are rotated by them. Contract: rotation.h. */
#include "engine/rotation/rotation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/status.h"
#include "base/tensor.h"

/* ---- geometry ---- */

void pe_rotation_lay_out(pe_rotary *rotary, pe_arena *arena, int64_t D, int axes, int64_t heads)
{
    const int64_t most = D / 2 + 1;
    *rotary = (pe_rotary){.magnitude = 1, .sense = 1, .growth_sign = 1, .axes = axes, .heads = heads};
    rotary->phase_cosine = 1;
    rotary->w            = pe_arena_doubles(arena, heads * most * axes);
    rotary->k            = pe_arena_take(arena, (size_t)(heads * most * axes) * sizeof *rotary->k);
    rotary->growth       = pe_arena_doubles(arena, most);
    rotary->divisor      = pe_arena_doubles(arena, most);
    rotary->share        = pe_arena_doubles(arena, most);
    rotary->axis         = pe_arena_take(arena, (size_t)most * sizeof *rotary->axis);
    rotary->index        = pe_arena_take(arena, (size_t)most * sizeof *rotary->index);
    rotary->moves        = pe_arena_take(arena, (size_t)(3 * most + 1) * sizeof *rotary->moves);
    rotary->from         = pe_arena_take(arena, (size_t)(2 * most) * sizeof *rotary->from);
}

/* The whole of an odd width is what a vector has whose owner never heard of dim. */
posenc_status pe_rotation_check_dim(const char *who, int64_t dim, int64_t D, posenc_error *err)
{
    if (dim % 2 && dim == D)
        return pe_fail(
            err, POSENC_ERROR_SETTING,
            "%s: vectors have %lld channels, which are rotated in pairs; give them an even number, or "
            "set dim to the even number that is rotated",
            who, (long long)D);
    if (dim % 2 || dim > D)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: dim=%lld must be even and at most the head width %lld",
                       who, (long long)dim, (long long)D);
    return POSENC_OK;
}

void pe_rotation_one_block(pe_rotary *rotary, int64_t M, int64_t first, pe_layout layout)
{
    rotary->M          = M;
    rotary->first      = first;
    rotary->layout     = layout;
    rotary->layout_out = layout;
    rotary->blocks     = 1;
    rotary->start[0]   = 0;
    rotary->start[1]   = M;
    for (int64_t m = 0; m < M; m++) {
        rotary->axis[m]  = 0;
        rotary->index[m] = (int32_t)m;
    }
}

void pe_rotation_channels(const pe_rotary *rotary, pe_layout layout, int64_t m, int64_t channels[2])
{
    int i = 0;
    while (m >= rotary->start[i + 1])
        i++;
    const int64_t start = rotary->start[i], pairs = rotary->start[i + 1] - start, in = m - start;
    channels[0] = rotary->first + 2 * start + (layout == PE_HALF ? in : 2 * in);
    channels[1] = channels[0] + (layout == PE_HALF ? pairs : 1);
}

void pe_rotation_channel_growth(const pe_rotary *grown, int64_t D, double growth[])
{
    for (int64_t d = 0; d < D; d++)
        growth[d] = 0;
    for (int64_t m = 0; m < grown->M; m++) {
        int64_t channels[2];
        pe_rotation_channels(grown, grown->layout_out, m, channels);
        growth[channels[0]] = growth[channels[1]] = grown->growth[m];
    }
}

/* Cycles of "channel c of the result holds channel from[c] of what was rotated". */
static void find_moves(pe_rotary *rotary)
{
    int32_t *to = rotary->moves;
    for (int64_t m = 0; m < rotary->M; m++) {
        int64_t in[2], out[2];
        pe_rotation_channels(rotary, rotary->layout, m, in);
        pe_rotation_channels(rotary, rotary->layout_out, m, out);
        for (int i = 0; i < 2; i++)
            rotary->from[out[i] - rotary->first] = (int32_t)(in[i] - rotary->first);
    }
    for (int32_t c = 0; c < 2 * rotary->M; c++) {
        int32_t *length = to, at = c;
        if (rotary->from[c] == c || rotary->from[c] < 0)
            continue;
        to++;
        for (*length = 0; rotary->from[at] >= 0; ++*length) {
            const int32_t next = rotary->from[at];
            rotary->from[at]   = -1;
            *to++              = at;
            at                 = next;
        }
    }
    *to = 0;
}

/* Frequencies of one pair. */
static int64_t per_pair(const pe_rotary *rotary)
{
    return rotary->is_matrix ? rotary->axes : 1;
}

void pe_rotation_finish(pe_rotary *rotary)
{
    const int64_t per = per_pair(rotary);
    rotary->unusable  = -1;
    rotary->growth    = rotary->grows ? rotary->growth : NULL;
    for (int64_t i = rotary->heads * rotary->M * per - 1; i >= 0; i--) {
        rotary->k[i] = pe_angle_frequency(rotary->w[i]);
        if (!(fabs(rotary->w[i]) <=
              0x1p20)) /* times a position of 2^31 its quarter turns are counted exactly */
            rotary->unusable = i / per % rotary->M;
    }
    if (rotary->layout != rotary->layout_out)
        find_moves(rotary);
}

pe_rotary pe_rotation_for_keys(const pe_rotary *rotary)
{
    pe_rotary keys   = *rotary;
    keys.growth_sign = -rotary->growth_sign;
    keys.temperature = PE_NO_TEMPERATURE;
    keys.phase       = 0;
    keys.of_keys     = 1;
    return keys;
}

static int has_phase(const pe_rotary *rotary, int64_t h)
{
    switch (rotary->phase_heads) {
    case PE_PHASE_ODD: return h % 2 == 1;
    case PE_PHASE_SECOND_HALF: return h >= rotary->second_half;
    default: return 1;
    }
}

const pe_rotary *pe_rotation_of_head(pe_rotary *own, const pe_rotary *rotary, int64_t h)
{
    if (rotary->heads == 1 && rotary->phase == 0)
        return rotary;
    const int64_t first = rotary->heads > 1 ? h * rotary->M * per_pair(rotary) : 0;
    const double  phase = has_phase(rotary, h) ? rotary->phase * rotary->sense : 0;
    *own                = *rotary;
    own->heads          = 1;
    own->phase_cosine   = cos(phase);
    own->phase_sine     = sin(phase);
    own->w              = rotary->w + first;
    own->k              = rotary->k + first;
    return own;
}

void pe_rotation_place(const pe_rotary *rotary, const posenc_positions *pos, int64_t b, int64_t s,
                       double at[PE_MAX_AXES])
{
    for (int c = 0; c < rotary->axes; c++)
        at[c] = pe_positions_coordinate(pos, b, s, c);
    if (rotary->map.kind != PE_MAP_NONE)
        at[0] = pe_map_place(&rotary->map, rotary->of_keys, rotary->form, at[0]);
}

/* ---- angles ---- */

enum { CHUNK = 64 }; /* pairs whose cosines are made together */

/* The angle of a pair as a sum of products, which is the one thing that exact and rounded angles have in
   common: a rounded angle is itself times 1. */
typedef struct products {
    int          n;
    double       p[PE_MAX_AXES];
    pe_frequency k[PE_MAX_AXES];
} products;

/* ggml's running product, one for each coordinate; the first pair of a place starts it. */
typedef struct ggml_walk {
    double  theta[PE_MAX_AXES];
    int32_t index[PE_MAX_AXES];
} ggml_walk;

static double single(double x)
{
    return (double)(float)x;
}

/* fl(p * w), summed from left to right where there are several. */
static double angle_in_float(const pe_rotary *rotary, int64_t m, const double at[])
{
    if (!rotary->is_matrix)
        return single(single(at[rotary->axis[m]]) * single(rotary->w[m]));
    double sum = 0;
    for (int c = 0; c < rotary->axes; c++)
        sum = single(sum + single(single(at[c]) * single(rotary->w[m * rotary->axes + c])));
    return sum;
}

static double angle_of_ggml(const pe_rotary *rotary, int64_t m, const double at[], ggml_walk *walk)
{
    const int axis = rotary->axis[m];
    if (m == 0 || rotary->index[m] < walk->index[axis]) {
        for (int c = 0; c < rotary->axes; c++)
            if (m == 0 || c == axis) {
                walk->theta[c] = single(at[c]);
                walk->index[c] = 0;
            }
    }
    for (; walk->index[axis] < rotary->index[m]; walk->index[axis]++)
        walk->theta[axis] = single(walk->theta[axis] * rotary->step);
    const double whole = single(walk->theta[axis] / single(rotary->divisor[m])),
                 slow = single(rotary->slower * whole), share = rotary->share[m];
    return single(single(slow * single(1 - share)) + single(whole * share));
}

static void find_products(products *x, const pe_rotary *rotary, int64_t m, const double at[], ggml_walk *walk)
{
    x->n = 1;
    if (rotary->angles != PE_EXACT) {
        x->p[0] =
            rotary->angles == PE_FLOAT32 ? angle_in_float(rotary, m, at) : angle_of_ggml(rotary, m, at, walk);
        x->k[0] = pe_angle_frequency(1);
        return;
    }
    if (!rotary->is_matrix) {
        x->p[0] = at[rotary->axis[m]];
        x->k[0] = rotary->k[m];
        return;
    }
    x->n = rotary->axes;
    for (int c = 0; c < rotary->axes; c++) {
        x->p[c] = at[c];
        x->k[c] = rotary->k[m * rotary->axes + c];
    }
}

void pe_rotation_angles(const pe_rotary *rotary, const double at[], double angle[])
{
    ggml_walk w;
    for (int64_t m = 0; m < rotary->M; m++) {
        double sum = 0;
        if (rotary->angles != PE_EXACT) {
            products x;
            find_products(&x, rotary, m, at, &w);
            angle[m] = x.p[0];
            continue;
        }
        for (int c = 0; rotary->is_matrix && c < rotary->axes; c++)
            sum += at[c] * rotary->w[m * rotary->axes + c];
        angle[m] = rotary->is_matrix ? sum : at[rotary->axis[m]] * rotary->w[m];
    }
}

/* How much longer a pair gets, as an exponent. */
static double growth_of(const pe_rotary *rotary, int64_t m, double position)
{
    return rotary->growth_sign * rotary->growth[m] * (position - rotary->center);
}

static double factor(const pe_rotary *rotary, int64_t m, double position)
{
    return rotary->growth ? rotary->magnitude * exp(growth_of(rotary, m, position)) : rotary->magnitude;
}

static double as_number(pe_number type, double x)
{
    switch (type) {
    case PE_AS_F64: return x;
    case PE_AS_F32: return single(x);
    case PE_AS_BF16: return pe_half_round_to_bf16(x);
    case PE_AS_F16: return pe_half_round_to_f16(x);
    }
    return x;
}

/* Cosine and sine of pair m, magnitude, sense and rounding included. Pairs of a place come in ascending
   order. */
static void rotate_pair(const pe_rotary *rotary, int64_t m, const double at[], ggml_walk *walk,
                        double *cosine, double *sine)
{
    products     x;
    double       c, n;
    const double f = factor(rotary, m, at[0]);
    find_products(&x, rotary, m, at, walk);
    if (x.n == 1)
        pe_angle_cos_sin(x.p[0], x.k[0], &c, &n);
    else
        pe_angle_cos_sin_sum(x.n, x.p, x.k, &c, &n);
    *cosine = as_number(rotary->table_type, c * f);
    *sine   = as_number(rotary->table_type, n * f) * rotary->sense;
}

double pe_rotation_temperature(const pe_rotary *rotary, const double at[])
{
    const double p = at[0] + (rotary->temperature == PE_LLAMA4);
    if (rotary->temperature == PE_NO_TEMPERATURE)
        return 1;
    return 1 + rotary->temperature_scale * log(1 + fmax(floor(p / rotary->temperature_length), 0));
}

/* Cosines and sines of n pairs from m on, as rotate_pair has them. */
static void rotate_chunk(const pe_rotary *rotary, int64_t m, int64_t n, const double at[], ggml_walk *walk,
                         const pe_kernels *kernels, double cosine[], double sine[])
{
    const pe_frequency one = pe_angle_frequency(1);
    double             p[CHUNK];
    if (rotary->is_matrix && rotary->angles == PE_EXACT) {
        for (int64_t i = 0; i < n; i++)
            rotate_pair(rotary, m + i, at, walk, &cosine[i], &sine[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        p[i] = rotary->angles == PE_EXACT     ? at[rotary->axis[m + i]]
               : rotary->angles == PE_FLOAT32 ? angle_in_float(rotary, m + i, at)
                                              : angle_of_ggml(rotary, m + i, at, walk);
    if (rotary->angles == PE_EXACT)
        kernels->cosines(p, &rotary->k[m].k_hi, 1, cosine, sine, n);
    else
        kernels->cosines(p, &one.k_hi, 0, cosine, sine, n);
    for (int64_t i = 0; i < n; i++) {
        const double f = factor(rotary, m + i, at[0]);
        cosine[i]      = as_number(rotary->table_type, cosine[i] * f);
        sine[i]        = as_number(rotary->table_type, sine[i] * f) * rotary->sense;
    }
}

/* ---- rows ---- */

int64_t pe_rotation_width(const pe_rotary *rotary)
{
    return 2 * rotary->M + (rotary->temperature != PE_NO_TEMPERATURE);
}

/* Along the cycles: to the layout of the result, or back. */
#define MOVE(name, type)                                                     \
    static void name(type *x, const pe_rotary *rotary, int back)             \
    {                                                                        \
        const int32_t *c = rotary->moves;                                    \
        for (int32_t n = *c++; n > 0; c += n, n = *c++) {                    \
            const type end = back ? x[c[n - 1]] : x[c[0]];                   \
            for (int32_t i = 0; i < n - 1; i++)                              \
                x[c[back ? n - 1 - i : i]] = x[c[back ? n - 2 - i : i + 1]]; \
            x[c[back ? 0 : n - 1]] = end;                                    \
        }                                                                    \
    }
MOVE(move_doubles, double)
MOVE(move_floats, float)
#undef MOVE

void pe_rotation_row(double *x, int64_t width, const pe_rotary *rotary, const double at[], double sign)
{
    const int moves = rotary->layout != rotary->layout_out;
    ggml_walk w;
    if (moves && sign < 0)
        move_doubles(x + rotary->first, rotary, 1);
    for (int64_t m = 0; m < rotary->M; m++) {
        int64_t channels[2];
        double  c, n;
        rotate_pair(rotary, m, at, &w, &c, &n);
        pe_rotation_channels(rotary, rotary->layout, m, channels);
        const double a = x[channels[0]], b = x[channels[1]],
                     cosine = c * rotary->phase_cosine - n * rotary->phase_sine,
                     sine   = sign * (n * rotary->phase_cosine + c * rotary->phase_sine);
        x[channels[0]]      = a * cosine - b * sine;
        x[channels[1]]      = b * cosine + a * sine;
    }
    if (moves && sign > 0)
        move_doubles(x + rotary->first, rotary, 0);
    if (rotary->temperature == PE_NO_TEMPERATURE)
        return;
    const double t = pe_rotation_temperature(rotary, at);
    for (int64_t d = 0; d < width; d++)
        x[d] *= t;
}

/* Every pair by the phase. */
static void turn_further(float *x, int64_t stride, const pe_rotary *rotary, int64_t R, float sign)
{
    const float c = (float)rotary->phase_cosine, n = sign * (float)rotary->phase_sine;
    for (int i = 0; i < rotary->blocks; i++) {
        const int64_t first = rotary->first + 2 * rotary->start[i],
                      M = rotary->start[i + 1] - rotary->start[i], half = rotary->layout == PE_HALF,
                      step = half ? 1 : 2, apart = half ? M : 1;
        for (int64_t r = 0; r < R; r++)
            for (int64_t m = 0; m < M; m++) {
                float *at = x + r * stride + first + m * step, a = at[0], b = at[apart];
                at[0]     = a * c - b * n;
                at[apart] = b * c + a * n;
            }
    }
}

void pe_rotation_rows(float *x, int64_t stride, int64_t width, const pe_rotary *rotary, const float *table,
                      int64_t R, float sign, const pe_kernels *kernels)
{
    const int64_t row   = pe_rotation_width(rotary);
    const int     moves = rotary->layout != rotary->layout_out;
    for (int64_t r = 0; moves && sign < 0 && r < R; r++)
        move_floats(x + r * stride + rotary->first, rotary, 1);
    pe_rotate_args rotation = {
        .to_token = stride, .from_token = stride, .table_stride = row, .tokens = R, .heads = 1, .sign = sign};
    for (int i = 0; i < rotary->blocks; i++) {
        rotation.to    = x + rotary->first + 2 * rotary->start[i];
        rotation.from  = rotation.to;
        rotation.table = table + 2 * rotary->start[i];
        rotation.M     = rotary->start[i + 1] - rotary->start[i];
        kernels->rotate[PE_STORED_F32][rotary->layout](&rotation);
    }
    if (rotary->phase_sine != 0)
        turn_further(x, stride, rotary, R, sign);
    for (int64_t r = 0; moves && sign > 0 && r < R; r++)
        move_floats(x + r * stride + rotary->first, rotary, 0);
    for (int64_t r = 0; rotary->temperature != PE_NO_TEMPERATURE && r < R; r++)
        for (int64_t d = 0; d < width; d++)
            x[r * stride + d] *= table[r * row + 2 * rotary->M];
}

/* ---- from one rotation to another, and gradients ---- */

/* Pairs that one rotation rotated, rotated further: angles and logarithms of lengths are subtracted. */
static void angle_between(const pe_rotary *from, const double from_at[], ggml_walk *from_walk,
                          const pe_rotary *to, const double to_at[], ggml_walk *to_walk, int64_t m,
                          double *cosine, double *sine)
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
    pe_angle_cos_sin_sum(a.n + b.n, p, k, cosine, sine);
    const double grown =
        (to->growth ? growth_of(to, m, to_at[0]) : 0) - (from->growth ? growth_of(from, m, from_at[0]) : 0);
    const double f = to->magnitude / from->magnitude * exp(grown);
    *cosine *= f;
    *sine *= f;
}

void pe_rotation_rerotate(double *y, const double *x, int64_t width, const pe_rotary *from,
                          const double from_at[], const pe_rotary *to, const double to_at[])
{
    ggml_walk from_walk, to_walk;
    memcpy(y, x, (size_t)width * sizeof *y);
    for (int64_t m = 0; m < to->M; m++) {
        int64_t in[2], out[2];
        double  c, n;
        angle_between(from, from_at, &from_walk, to, to_at, &to_walk, m, &c, &n);
        pe_rotation_channels(from, from->layout_out, m, in);
        pe_rotation_channels(to, to->layout_out, m, out);
        y[out[0]] = x[in[0]] * c - x[in[1]] * n;
        y[out[1]] = x[in[1]] * c + x[in[0]] * n;
    }
}

/* The cotangent of an angle is that of the row times the row a quarter turn further: x_a dx_b - x_b dx_a. */
static double turn_of(const pe_rotary *rotary, int64_t m, double sign, const double *x, const double *dx)
{
    int64_t c[2];
    pe_rotation_channels(rotary, sign > 0 ? rotary->layout : rotary->layout_out, m, c);
    return sign * rotary->sense * (x[c[0]] * dx[c[1]] - x[c[1]] * dx[c[0]]);
}

void pe_rotation_turns(double *dangle, const pe_rotary *rotary, double sign, const double *x,
                       const double *dx)
{
    for (int64_t m = 0; m < rotary->M; m++)
        dangle[m] += turn_of(rotary, m, sign, x, dx);
}

void pe_rotation_slopes(double *dw, const pe_rotary *rotary, const double at[], double sign, const double *x,
                        const double *dx)
{
    for (int64_t m = 0; m < rotary->M; m++) {
        const double slope = turn_of(rotary, m, sign, x, dx);
        for (int n = 0; n < rotary->axes; n++)
            if (rotary->is_matrix || n == rotary->axis[m])
                dw[m * rotary->axes + n] += at[n] * slope;
    }
}

/* ---- rows where they lie ---- */

int pe_rotation_stores(const pe_rotary *rotary, posenc_dtype from, posenc_dtype to)
{
    return from == to &&
           (from == POSENC_DTYPE_F32 || from == POSENC_DTYPE_F16 || from == POSENC_DTYPE_BF16) &&
           rotary->layout == rotary->layout_out && rotary->temperature == PE_NO_TEMPERATURE &&
           rotary->heads == 1 && rotary->phase == 0 && !rotary->content;
}

/* Are all addresses of the result, of every block and of both of its halves, whole lines of a cache? */
static int is_in_lines(const posenc_tensor *x, const pe_rotary *rotary)
{
    int64_t all = rotary->first;
    for (int a = 0; a < 3; a++)
        all |= x->stride[a];
    for (int i = 1; i <= rotary->blocks; i++)
        all |= rotary->start[i];
    return (uintptr_t)x->data % 64 == 0 && all * (int64_t)posenc_dtype_size(x->dtype) % 64 == 0;
}

void pe_rotation_aim(pe_rotated *x, const pe_rotary *rotary, int64_t bytes)
{
    x->far    = pe_kernels_prefetch_distance((int64_t)posenc_dtype_size(x->from->dtype), bytes);
    x->stream = bytes > PE_BEYOND && x->to->data != x->from->data && is_in_lines(x->to, rotary);
}

/* Channels outside the rotated block of a result that lies elsewhere. */
static void pass_on(const pe_rotated *x, const pe_rotary *rotary, int64_t b, int64_t s0, int64_t n)
{
    const size_t size = posenc_dtype_size(x->from->dtype), first = (size_t)rotary->first * size,
                 end   = (size_t)(rotary->first + 2 * rotary->M) * size,
                 width = (size_t)x->from->shape[3] * size;
    for (int64_t s = s0; s < s0 + n; s++)
        for (int64_t h = 0; h < x->from->shape[1]; h++) {
            char       *to   = pe_tensor_row(x->to, b, h, s);
            const char *from = pe_tensor_row(x->from, b, h, s);
            memcpy(to, from, first);
            memcpy(to + end, from + end, width - end);
        }
}

/* Heads first where they lie closer together than tokens. */
static void rotate_in_order(pe_rotate_args *r, pe_rotate_fn *rotate, size_t size)
{
    const int64_t heads = r->heads;
    if (heads == 1 || fabs((double)r->from_head) <= fabs((double)r->from_token)) {
        rotate(r);
        return;
    }
    r->heads = 1;
    for (int64_t h = 0; h < heads; h++) {
        rotate(r);
        r->to   = (char *)r->to + r->to_head * (int64_t)size;
        r->from = (const char *)r->from + r->from_head * (int64_t)size;
    }
}

/* Of the first head, as pe_tensor_row has it, without its questions. */
static char *row_of(const posenc_tensor *t, int64_t b, int64_t s, size_t size)
{
    return (char *)t->data + (b * t->stride[0] + s * t->stride[2]) * (int64_t)size;
}

void pe_rotation_heads(const pe_rotated *x, const pe_rotary *rotary, int64_t b, int64_t s0, int64_t n,
                       const float *table, int64_t stride, const pe_kernels *kernels)
{
    static const pe_stored stored[] = {[POSENC_DTYPE_F32]  = PE_STORED_F32,
                                       [POSENC_DTYPE_F16]  = PE_STORED_F16,
                                       [POSENC_DTYPE_BF16] = PE_STORED_BF16};
    const size_t           size     = posenc_dtype_size(x->from->dtype);
    char                  *to       = row_of(x->to, b, s0, size);
    const char            *from     = row_of(x->from, b, s0, size);
    for (int i = 0; i < rotary->blocks; i++) {
        const size_t   offset = (size_t)(rotary->first + 2 * rotary->start[i]) * size;
        pe_rotate_args r      = {.to           = to + offset,
                                 .from         = from + offset,
                                 .to_token     = x->to->stride[2],
                                 .to_head      = x->to->stride[1],
                                 .from_token   = x->from->stride[2],
                                 .from_head    = x->from->stride[1],
                                 .table        = table + 2 * rotary->start[i],
                                 .table_stride = stride,
                                 .tokens       = n,
                                 .heads        = x->from->shape[1],
                                 .M            = rotary->start[i + 1] - rotary->start[i],
                                 .sign         = (float)x->sign,
                                 .far          = x->far,
                                 .far_table    = x->far_table,
                                 .stream       = x->stream};
        rotate_in_order(&r, kernels->rotate[stored[x->from->dtype]][rotary->layout], size);
    }
    if (x->to->data != x->from->data && 2 * rotary->M < x->from->shape[3])
        pass_on(x, rotary, b, s0, n);
}

/* ---- rows of tables ---- */

/* The pairs of block i into its part of a row: cosines, then sines. */
static void fill_block(float *to, const pe_rotary *rotary, int i, const double at[], ggml_walk *walk,
                       const pe_kernels *kernels)
{
    const int64_t pairs = rotary->start[i + 1] - rotary->start[i];
    for (int64_t m = 0; m < pairs; m += CHUNK) {
        const int64_t n = pairs - m < CHUNK ? pairs - m : CHUNK;
        double        cosine[CHUNK], sine[CHUNK];
        rotate_chunk(rotary, rotary->start[i] + m, n, at, walk, kernels, cosine, sine);
        for (int64_t c = 0; c < n; c++) {
            to[m + c]         = (float)cosine[c];
            to[m + c + pairs] = (float)sine[c];
        }
    }
}

void pe_rotation_fill_at(float *table, const pe_rotary *rotary, const double at[], const pe_kernels *kernels)
{
    ggml_walk walk;
    for (int i = 0; i < rotary->blocks; i++)
        fill_block(table + 2 * rotary->start[i], rotary, i, at, &walk, kernels);
}

int pe_rotation_climbs(const pe_rotary *rotary, const posenc_positions *pos)
{
    return rotary->angles == PE_EXACT && !rotary->is_matrix && !rotary->content && !rotary->growth &&
           rotary->blocks == 1 && (rotary->table_type == PE_AS_F64 || rotary->table_type == PE_AS_F32) &&
           (rotary->axes == 1 || !pos->array.data);
}

static pe_columns columns_of(const pe_rotary *rotary)
{
    return (pe_columns){.M = rotary->M, .width = 2 * rotary->M, .sine = rotary->M, .step = 1};
}

void pe_rotation_ladder(pe_ladder *ladder, const pe_rotary *rotary, const pe_kernels *kernels)
{
    const pe_columns    columns = columns_of(rotary);
    const pe_frequency *k       = rotary->k;
    if (rotary->step_k) {
        const double divisor = pe_map_divisor(&rotary->map, rotary->form);
        for (int64_t m = 0; m < rotary->M; m++)
            rotary->step_k[m] = pe_angle_divided(k[m], divisor);
        k = rotary->step_k;
    }
    pe_ladder_make(ladder, &columns, k, rotary->magnitude, rotary->sense, kernels);
}

pe_ladder *pe_rotation_ladder_create(const pe_rotary *rotary, const pe_kernels *kernels,
                                     const posenc_allocator *from)
{
    const posenc_positions range   = posenc_positions_range(0, 1);
    const pe_columns       columns = columns_of(rotary);
    if (rotary->M == 0 || rotary->heads > 1 || rotary->unusable >= 0 || !pe_rotation_climbs(rotary, &range))
        return NULL;
    return pe_ladder_create(&columns, pe_ladder_middle_of(columns.width), rotary->k, rotary->magnitude,
                            rotary->sense, kernels, from);
}

/* Where element s is rotated, by coordinate 0, in steps of the ladder. */
static double steps_of(const pe_rotary *rotary, const posenc_positions *pos, int64_t b, int64_t s)
{
    const double P = pe_positions_at(pos, b, s);
    return rotary->map.kind == PE_MAP_NONE ? P : pe_map_steps(&rotary->map, rotary->of_keys, rotary->form, P);
}

/* How many of n elements from s on stand at whole positions one after another. */
static int64_t run_of(const pe_rotary *rotary, const posenc_positions *pos, int64_t b, int64_t s, int64_t n)
{
    const double p   = steps_of(rotary, pos, b, s);
    int64_t      run = 0;
    if (rotary->map.kind == PE_MAP_NONE && !pos->array.data && (pos->step == 0 || pos->step == 1))
        return pe_ladder_reaches(p) && pe_ladder_reaches(p + (double)(n - 1)) ? n : 0;
    while (run < n && steps_of(rotary, pos, b, s + run) == p + (double)run &&
           pe_ladder_reaches(p + (double)run))
        run++;
    return run;
}

/* Only cosines and sines; returns how many rows. Scattered positions have the very rounding of double. */
static int64_t fill_some(float *table, int64_t stride, const pe_rotary *rotary, const posenc_positions *pos,
                         int64_t b, int64_t s, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                         const pe_kernels *kernels)
{
    const int64_t run             = ladder ? run_of(rotary, pos, b, s, n) : 0;
    double        at[PE_MAX_AXES] = {0};
    if (run >= PE_LEAST_RUN) {
        pe_ladder_rows(ladder, rung, table, stride, run, steps_of(rotary, pos, b, s), stream);
        return run;
    }
    pe_rotation_place(rotary, pos, b, s, at);
    pe_rotation_fill_at(table, rotary, at, kernels);
    return 1;
}

void pe_rotation_fill(float *table, int64_t stride, const pe_rotary *rotary, const posenc_positions *pos,
                      int64_t b, int64_t s0, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                      const pe_kernels *kernels)
{
    const int mapped = rotary->map.kind != PE_MAP_NONE;
    for (int64_t s = 0; s < n;)
        if (mapped && s > 0 && steps_of(rotary, pos, b, s0 + s) == steps_of(rotary, pos, b, s0 + s - 1)) {
            memcpy(table + s * stride, table + (s - 1) * stride, (size_t)(2 * rotary->M) * sizeof *table);
            s++;
        } else
            s += fill_some(table + s * stride, stride, rotary, pos, b, s0 + s, n - s, ladder, rung, stream,
                           kernels);
    for (int64_t s = 0; rotary->temperature != PE_NO_TEMPERATURE && s < n; s++) {
        double at[PE_MAX_AXES] = {0};
        pe_rotation_place(rotary, pos, b, s0 + s, at);
        table[s * stride + 2 * rotary->M] = (float)pe_rotation_temperature(rotary, at);
    }
}
