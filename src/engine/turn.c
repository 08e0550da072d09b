/* SPDX-License-Identifier: MIT */
/* Pairs of channels, and rows turned by cosines and sines that are there. Contract: turn.h. */
#include "engine/turn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void pe_turn_channels(const pe_turn *turn, pe_layout layout, int64_t m, int64_t channels[2])
{
    int i = 0;
    while (m >= turn->start[i + 1])
        i++;
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

void pe_turn_finish(pe_turn *turn)
{
    const int64_t per = per_pair(turn);
    turn->spoilt      = -1;
    for (int64_t i = turn->heads * turn->M * per - 1; i >= 0; i--) {
        turn->k[i] = pe_frequency_of(turn->w[i]);
        if (!(fabs(turn->w[i]) <=
              0x1p20)) /* times a position of 2^31 its quarter turns are counted exactly */
            turn->spoilt = i / per % turn->M;
    }
    if (turn->layout != turn->layout_out)
        find_moves(turn);
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

void pe_turn_place(const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s,
                   double at[PE_MAX_AXES])
{
    for (int c = 0; c < turn->axes; c++)
        at[c] = pe_coordinate(pos, b, s, c);
}

/* ---- rows ---- */

int64_t pe_turn_width(const pe_turn *turn)
{
    return 2 * turn->M + (turn->temperature != PE_NO_TEMPERATURE);
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
    pe_walk   w;
    if (moves && sign < 0)
        move_doubles(x + turn->first, turn, 1);
    for (int64_t m = 0; m < turn->M; m++) {
        int64_t channels[2];
        double  c, n;
        pe_turn_pair(turn, m, at, &w, &c, &n);
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

int pe_turn_stores(const pe_turn *turn, posenc_dtype from, posenc_dtype to)
{
    return from == to &&
           (from == POSENC_DTYPE_F32 || from == POSENC_DTYPE_F16 || from == POSENC_DTYPE_BF16) &&
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

void pe_turn_aim(pe_turned *x, const pe_turn *turn, int64_t bytes)
{
    x->far    = pe_rotation_ahead((int64_t)posenc_dtype_size(x->from->dtype), bytes);
    x->stream = bytes > PE_BEYOND && x->to->data != x->from->data && is_in_lines(x->to, turn);
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
    static const pe_stored stored[] = {[POSENC_DTYPE_F32]  = PE_STORED_F32,
                                       [POSENC_DTYPE_F16]  = PE_STORED_F16,
                                       [POSENC_DTYPE_BF16] = PE_STORED_BF16};
    const size_t           size     = posenc_dtype_size(x->from->dtype);
    char                  *to       = pe_row(x->to, b, 0, s0);
    const char            *from     = pe_row(x->from, b, 0, s0);
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
