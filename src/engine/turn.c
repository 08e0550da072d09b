/* SPDX-License-Identifier: MIT */
/* Rotation by exact angles. Contract: turn.h. */
#include "engine/turn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/tensor.h"

/* ---- geometry ---- */

void pe_turn_lay_out(pe_turn *turn, pe_arena *arena, int64_t D, int axes, int64_t heads)
{
    const int64_t most = D / 2 + 1;
    *turn         = (pe_turn){.magnitude = 1, .sense = 1, .growth_sign = 1, .axes = axes, .heads = heads};
    turn->w       = pe_take_doubles(arena, heads * most * axes);
    turn->k       = pe_take(arena, (size_t)(heads * most * axes) * sizeof *turn->k);
    turn->growth  = pe_take_doubles(arena, most);
    turn->divisor = pe_take_doubles(arena, most);
    turn->share   = pe_take_doubles(arena, most);
    turn->axis    = pe_take(arena, (size_t)most * sizeof *turn->axis);
    turn->index   = pe_take(arena, (size_t)most * sizeof *turn->index);
    turn->moves   = pe_take(arena, (size_t)(3 * most + 1) * sizeof *turn->moves);
    turn->from    = pe_take(arena, (size_t)(2 * most) * sizeof *turn->from);
}

void pe_turn_one_block(pe_turn *turn, int64_t M, int64_t first, pe_layout layout)
{
    turn->M          = M;
    turn->first      = first;
    turn->layout     = layout;
    turn->layout_out = layout;
    turn->blocks     = 1;
    turn->start[0]   = 0;
    turn->start[1]   = M;
    for (int64_t m = 0; m < M; m++) {
        turn->axis[m]  = 0;
        turn->index[m] = (int32_t)m;
    }
}

static int block_of(const pe_turn *turn, int64_t m)
{
    int i = 0;
    while (m >= turn->start[i + 1])
        i++;
    return i;
}

void pe_turn_channels(const pe_turn *turn, pe_layout layout, int64_t m, int64_t channels[2])
{
    const int     i     = block_of(turn, m);
    const int64_t start = turn->start[i], pairs = turn->start[i + 1] - start, in = m - start;
    channels[0] = turn->first + 2 * start + (layout == PE_HALF ? in : 2 * in);
    channels[1] = channels[0] + (layout == PE_HALF ? pairs : 1);
}

/* Cycles of "channel c of the result holds channel from[c] of what was turned". */
static void find_moves(pe_turn *turn)
{
    int32_t *to = turn->moves;
    for (int64_t m = 0; m < turn->M; m++) {
        int64_t in[2], out[2];
        pe_turn_channels(turn, turn->layout, m, in);
        pe_turn_channels(turn, turn->layout_out, m, out);
        for (int i = 0; i < 2; i++)
            turn->from[out[i] - turn->first] = (int32_t)(in[i] - turn->first);
    }
    for (int32_t c = 0; c < 2 * turn->M; c++) {
        int32_t *length = to, at = c;
        if (turn->from[c] == c || turn->from[c] < 0)
            continue;
        to++;
        for (*length = 0; turn->from[at] >= 0; ++*length) {
            const int32_t next = turn->from[at];
            turn->from[at]     = -1;
            *to++              = at;
            at                 = next;
        }
    }
    *to = 0;
}

/* Frequencies of one pair. */
static int64_t per_pair(const pe_turn *turn)
{
    return turn->is_matrix ? turn->axes : 1;
}

static int64_t find_spoilt(const pe_turn *turn)
{
    const int64_t per = per_pair(turn);
    for (int64_t i = 0; i < turn->heads * turn->M * per; i++)
        if (!(fabs(turn->w[i]) <=
              0x1p20)) /* times a position of 2^31 its quarter turns are counted exactly */
            return i / per % turn->M;
    return -1;
}

void pe_turn_finish(pe_turn *turn)
{
    const int64_t n = turn->heads * turn->M * per_pair(turn);
    for (int64_t i = 0; i < n; i++)
        turn->k[i] = pe_frequency_of(turn->w[i]);
    if (turn->layout != turn->layout_out)
        find_moves(turn);
    turn->spoilt = find_spoilt(turn);
}

pe_turn pe_turn_for_keys(const pe_turn *turn)
{
    pe_turn keys     = *turn;
    keys.growth_sign = -turn->growth_sign;
    keys.temperature = PE_NO_TEMPERATURE;
    return keys;
}

const pe_turn *pe_turn_of_head(pe_turn *own, const pe_turn *turn, int64_t h)
{
    if (turn->heads == 1)
        return turn;
    const int64_t first = h * turn->M * per_pair(turn);
    *own                = *turn;
    own->heads          = 1;
    own->w              = turn->w + first;
    own->k              = turn->k + first;
    return own;
}

int64_t pe_turn_spoilt(const pe_turn *turn)
{
    return turn->spoilt;
}

void pe_turn_place(const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s,
                   double at[PE_MAX_AXES])
{
    for (int c = 0; c < turn->axes; c++)
        at[c] = pe_coordinate(pos, b, s, c);
}

/* ---- angles ---- */

/* The angle of a pair as a sum of products, which is the one thing that exact and rounded angles have in common: a rounded
   angle is itself times 1. */
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

/* ggml's running product, one for each coordinate. */
typedef struct running {
    double  theta[PE_MAX_AXES];
    int32_t index[PE_MAX_AXES];
} running;

static double angle_of_ggml(const pe_turn *turn, int64_t m, const double at[], running *walk)
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

static void find_products(products *x, const pe_turn *turn, int64_t m, const double at[], running *walk)
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
    running w;
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

/* Cosine and sine of pair m, magnitude, sense and rounding included. Pairs of a place come in ascending order. */
static void turn_of(const pe_turn *turn, int64_t m, const double at[], running *walk, double *cosine,
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

/* ---- rows ---- */

int64_t pe_turn_width(const pe_turn *turn)
{
    return 2 * turn->M + (turn->temperature != PE_NO_TEMPERATURE);
}

enum { CHUNK = 64 }; /* pairs whose cosines are made together */

/* Cosines and sines of n pairs from m on, as turn_of has them. */
static void turn_chunk(const pe_turn *turn, int64_t m, int64_t n, const double at[], running *walk,
                       const pe_kernels *kernels, double cosine[], double sine[])
{
    const pe_frequency one = pe_frequency_of(1);
    double             p[CHUNK];
    if (turn->is_matrix && turn->angles == PE_EXACT) {
        for (int64_t i = 0; i < n; i++)
            turn_of(turn, m + i, at, walk, &cosine[i], &sine[i]);
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

/* The pairs of block i into its part of a row: cosines, then sines. */
static void fill_block(float *to, const pe_turn *turn, int i, const double at[], running *walk,
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

static void fill_row(float *row, const pe_turn *turn, const double at[], const pe_kernels *kernels)
{
    running walk;
    for (int i = 0; i < turn->blocks; i++)
        fill_block(row + 2 * turn->start[i], turn, i, at, &walk, kernels);
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
    if (turn->M == 0 || turn->heads > 1 || pe_turn_spoilt(turn) >= 0 || !pe_turn_climbs(turn, &range))
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
    if (run >= PE_LEAST_RUN) {
        pe_ladder_rows(ladder, rung, table, stride, run, pe_position(pos, b, s), stream);
        return run;
    }
    pe_turn_place(turn, pos, b, s, at);
    fill_row(table, turn, at, kernels);
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

void pe_turn_table(float *table, const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s0,
                   int64_t n, const pe_kernels *kernels)
{
    pe_turn_fill(table, pe_turn_width(turn), turn, pos, b, s0, n, NULL, NULL, 0, kernels);
}

/* Along the cycles: to the layout of the result, or back. */
#define MOVE(name, type)                                                     \
    static void name(type *x, const pe_turn *turn, int back)                 \
    {                                                                        \
        const int32_t *c = turn->moves;                                      \
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

void pe_turn_row(double *x, int64_t width, const pe_turn *turn, const double at[], double sign)
{
    const int moves = turn->layout != turn->layout_out;
    running   w;
    if (moves && sign < 0)
        move_doubles(x + turn->first, turn, 1);
    for (int64_t m = 0; m < turn->M; m++) {
        int64_t channels[2];
        double  c, n;
        turn_of(turn, m, at, &w, &c, &n);
        pe_turn_channels(turn, turn->layout, m, channels);
        const double a = x[channels[0]], b = x[channels[1]];
        n *= sign;
        x[channels[0]] = a * c - b * n;
        x[channels[1]] = b * c + a * n;
    }
    if (moves && sign > 0)
        move_doubles(x + turn->first, turn, 0);
    if (turn->temperature == PE_NO_TEMPERATURE)
        return;
    const double t = pe_turn_temperature(turn, at);
    for (int64_t d = 0; d < width; d++)
        x[d] *= t;
}

void pe_turn_rows(float *x, int64_t stride, int64_t width, const pe_turn *turn, const float *table, int64_t R,
                  float sign, const pe_kernels *kernels)
{
    const int64_t row   = pe_turn_width(turn);
    const int     moves = turn->layout != turn->layout_out;
    for (int64_t r = 0; moves && sign < 0 && r < R; r++)
        move_floats(x + r * stride + turn->first, turn, 1);
    pe_rotation rotation = {
        .to_token = stride, .from_token = stride, .table_stride = row, .tokens = R, .heads = 1, .sign = sign};
    for (int i = 0; i < turn->blocks; i++) {
        rotation.to    = x + turn->first + 2 * turn->start[i];
        rotation.from  = rotation.to;
        rotation.table = table + 2 * turn->start[i];
        rotation.M     = turn->start[i + 1] - turn->start[i];
        kernels->rotate[PE_STORED_F32][turn->layout](&rotation);
    }
    for (int64_t r = 0; moves && sign > 0 && r < R; r++)
        move_floats(x + r * stride + turn->first, turn, 0);
    for (int64_t r = 0; turn->temperature != PE_NO_TEMPERATURE && r < R; r++)
        for (int64_t d = 0; d < width; d++)
            x[r * stride + d] *= table[r * row + 2 * turn->M];
}

/* ---- rows where they lie ---- */

enum {
    AHEAD  = 6 << 10, /* bytes; lines of 16-bit numbers take longer to turn and are asked for sooner */
    FAR    = 1 << 20, /* bytes: what the second cache of a core holds */
    BEYOND = 32 << 20 /* what the last cache holds */
};

int pe_turn_stores(const pe_turn *turn, posenc_dtype from, posenc_dtype to)
{
    return from == to && (from == POSENC_F32 || from == POSENC_F16 || from == POSENC_BF16) &&
           turn->layout == turn->layout_out && turn->temperature == PE_NO_TEMPERATURE && turn->heads == 1;
}

/* Are all addresses of the result, of every block and of both of its halves, whole lines of a cache? */
static int is_in_lines(const posenc_tensor *x, const pe_turn *turn)
{
    int64_t all = turn->first;
    for (int a = 0; a < 3; a++)
        all |= x->stride[a];
    for (int i = 1; i <= turn->blocks; i++)
        all |= turn->start[i];
    return (uintptr_t)x->data % 64 == 0 && all * (int64_t)posenc_dtype_size(x->dtype) % 64 == 0;
}

/* How far ahead of its turn a tensor of so many bytes is asked for. */
static int64_t ahead_of(posenc_dtype dtype, int64_t bytes)
{
    if (bytes <= FAR || !pe_asking_helps())
        return 0;
    return posenc_dtype_size(dtype) == 2 ? 2 * AHEAD : AHEAD;
}

void pe_turn_aim(pe_turned *x, const pe_turn *turn, int64_t bytes)
{
    x->far    = ahead_of(x->from->dtype, bytes);
    x->stream = bytes > BEYOND && x->to->data != x->from->data && is_in_lines(x->to, turn);
}

int pe_turn_streams(const posenc_tensor *table, int64_t bytes, int64_t M)
{
    const int64_t all = table->stride[0] | table->stride[1] | M;
    return bytes > BEYOND && (uintptr_t)table->data % 64 == 0 && all * (int64_t)sizeof(float) % 64 == 0;
}

/* Channels outside the rotated block of a result that lies elsewhere. */
static void pass_on(const pe_turned *x, const pe_turn *turn, int64_t b, int64_t s0, int64_t n)
{
    const size_t size = posenc_dtype_size(x->from->dtype), first = (size_t)turn->first * size,
                 end = (size_t)(turn->first + 2 * turn->M) * size, width = (size_t)x->from->shape[3] * size;
    for (int64_t s = s0; s < s0 + n; s++)
        for (int64_t h = 0; h < x->from->shape[1]; h++) {
            char       *to   = pe_row(x->to, b, h, s);
            const char *from = pe_row(x->from, b, h, s);
            memcpy(to, from, first);
            memcpy(to + end, from + end, width - end);
        }
}

/* Heads first where they lie closer together than tokens. */
static void rotate_in_order(pe_rotation *r, pe_rotate_fn *rotate, size_t size)
{
    const int64_t heads = r->heads;
    if (heads == 1 || llabs(r->from_head) <= llabs(r->from_token)) {
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

void pe_turn_heads(const pe_turned *x, const pe_turn *turn, int64_t b, int64_t s0, int64_t n,
                   const float *table, int64_t stride, const pe_kernels *kernels)
{
    static const pe_stored stored[] = {
        [POSENC_F32] = PE_STORED_F32, [POSENC_F16] = PE_STORED_F16, [POSENC_BF16] = PE_STORED_BF16};
    const size_t size = posenc_dtype_size(x->from->dtype);
    char        *to   = pe_row(x->to, b, 0, s0);
    const char  *from = pe_row(x->from, b, 0, s0);
    for (int i = 0; i < turn->blocks; i++) {
        const size_t offset = (size_t)(turn->first + 2 * turn->start[i]) * size;
        pe_rotation  r      = {.to           = to + offset,
                               .from         = from + offset,
                               .to_token     = x->to->stride[2],
                               .to_head      = x->to->stride[1],
                               .from_token   = x->from->stride[2],
                               .from_head    = x->from->stride[1],
                               .table        = table + 2 * turn->start[i],
                               .table_stride = stride,
                               .tokens       = n,
                               .heads        = x->from->shape[1],
                               .M            = turn->start[i + 1] - turn->start[i],
                               .sign         = (float)x->sign,
                               .far          = x->far,
                               .far_table    = x->far_table,
                               .stream       = x->stream};
        rotate_in_order(&r, kernels->rotate[stored[x->from->dtype]][turn->layout], size);
    }
    if (x->to->data != x->from->data && 2 * turn->M < x->from->shape[3])
        pass_on(x, turn, b, s0, n);
}

/* ---- from one rotation to another, and gradients ---- */

/* Pairs that a rotation turned, turned further: angles and logarithms of lengths are subtracted. */
static void turn_between(const pe_turn *from, const double from_at[], running *from_walk, const pe_turn *to,
                         const double to_at[], running *to_walk, int64_t m, double *cosine, double *sine)
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
    running from_walk, to_walk;
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
