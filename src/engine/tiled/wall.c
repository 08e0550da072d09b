/* SPDX-License-Identifier: MIT */
/*
 * wall.c: products whose channels decay by the gates of the tokens between, a tile at a time
 *
 * Formula  e^(G_i - G_j) for each channel: engine/score/wall.c
 *
 * G falls along the tokens. Where all keys of a tile stand before, or are, the first of the tile's queries,
 * it is e^(G_i - G_f) e^(G_f - G_l) e^(G_l - G_j), l the last key of the tile, f that first query's own key:
 * none is above 1, and what becomes 0 is 0 in the product too. The first and the last are tables of the run,
 * the second is made for a tile, and one product of matrices does the rest. In the few other tiles, which
 * each query has one or two of, each row goes from its own key to the left and takes one gate after the
 * other, in double. Ahead of a query the factor is 1.
 *
 * Backward the same factors; what the sums of keys receive, -k dk of this query head, is added to turn.dkey.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "engine/tiled/backward.h"

/* Numbers of a row of the token input: [rows, tiles, D, Bcp] of keys, [rows, Lq, Dp] of queries, and the sums
   at the ends of tiles [rows, tiles, D]; rows of all items. */
static int64_t tiles_of(const pe_tiles *T, pe_side side)
{
    return side == PE_KEYS ? T->key_tiles : T->query_tiles;
}

void pe_tile_wall_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a = T->a;
    if (!pe_walls(a))
        return;
    T->wall.rows      = pe_turn_rows(a);
    const int64_t all = pe_sizes_product(a->sizes.B, T->wall.rows);
    T->wall.keys      = pe_arena_floats(arena, pe_sizes_product(all, T->key_tiles * a->D * T->Bcp));
    T->wall.queries   = pe_arena_floats(arena, pe_sizes_product(all, a->sizes.Lq * T->Dp));
    T->wall.walk      = pe_arena_doubles(arena, a->team.threads * PE_TURN_WALK * a->D);
    T->wall.sums      = pe_arena_doubles(arena, a->team.threads * pe_larger(T->Br, T->Bc) * a->D);
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        T->wall.ends[side] = pe_arena_doubles(arena, pe_sizes_product(all, tiles_of(T, side) * a->D));
}

void pe_tile_wall_lay_out_scratch(const pe_tiles *T, pe_scratch *z, pe_arena *arena, int backward)
{
    const int64_t D = T->a->D;
    if (!pe_walls(T->a))
        return;
    z->wall.Q       = pe_arena_floats(arena, T->Br * T->Dp);
    z->wall.factors = pe_arena_floats(arena, T->Br * T->Dp);
    z->wall.between = pe_arena_floats(arena, T->Dp);
    z->wall.Kt      = pe_arena_floats(arena, D * T->Bcp);
    z->wall.K       = pe_arena_floats(arena, T->Bc * T->Dp);
    z->wall.dK      = pe_arena_floats(arena, backward ? T->Bc * T->Dp : 0);
    z->wall.walk    = pe_arena_doubles(arena, PE_TURN_WALK * D);
    z->wall.f       = pe_arena_doubles(arena, D);
    z->wall.G       = pe_arena_doubles(arena, T->Bc * D);
    z->wall.gate    = pe_arena_doubles(arena, T->Bc * D);
}

/* ---- tables of a run ---- */

/* The key that query i of the part is, as the part numbers keys: it may lie to either side. */
static int64_t own_of(const pe_tiles *T, int64_t b, int64_t i)
{
    const pe_attention *a = T->a;
    return a->turn.own[(a->from.b + b) * a->turn.queries + a->from.i + i] - a->from.j;
}

/* The row, of n from s0 on, whose sum is the end of their tile: the last key, or the earliest query. */
static int64_t end_of(const pe_tiles *T, pe_side side, int64_t b, int64_t s0, int64_t n)
{
    int64_t first = 0;
    if (side == PE_KEYS)
        return n - 1;
    for (int64_t s = 1; s < n; s++)
        if (own_of(T, b, s0 + s) < own_of(T, b, s0 + first))
            first = s;
    return first;
}

static void fill_tile(const pe_tiles *T, pe_side side, int64_t index, int thread)
{
    const pe_attention *a     = T->a;
    const int64_t       tiles = tiles_of(T, side), at = index % tiles, row = index / tiles, D = a->D;
    const int64_t size = side == PE_KEYS ? T->Bc : T->Br, L = side == PE_KEYS ? a->sizes.Lk : a->sizes.Lq,
                  s0 = at * size, n = pe_smaller(size, L - s0), b = row / T->wall.rows;
    double      *sums = T->wall.sums + thread * pe_larger(T->Br, T->Bc) * D;
    pe_turn_walk walk =
        pe_turn_start(a, b, pe_turn_row(a, 0) + row % T->wall.rows, T->wall.walk + thread * PE_TURN_WALK * D);
    for (int64_t s = 0; s < n; s++)
        memcpy(sums + s * D, pe_turn_at(a, &walk, side, s0 + s), (size_t)D * sizeof *sums);
    const double *end = sums + end_of(T, side, b, s0, n) * D;
    memcpy(T->wall.ends[side] + index * D, end, (size_t)D * sizeof *end);
    if (side == PE_KEYS) {
        float *to = T->wall.keys + index * D * T->Bcp;
        for (int64_t d = 0; d < D; d++)
            for (int64_t s = 0; s < T->Bcp; s++)
                to[d * T->Bcp + s] = s < n ? (float)exp(end[d] - sums[s * D + d]) : 0;
        return;
    }
    float *to = T->wall.queries + (row * L + s0) * T->Dp;
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < T->Dp; d++)
            to[s * T->Dp + d] = d < D ? (float)exp(sums[s * D + d] - end[d]) : 0;
}

static void fill_task(void *context, int64_t index, int thread)
{
    const pe_tiles *T    = context;
    const int64_t   keys = T->a->sizes.B * T->wall.rows * T->key_tiles;
    fill_tile(T, index < keys ? PE_KEYS : PE_QUERIES, index < keys ? index : index - keys, thread);
}

void pe_tile_wall_fill(pe_tiles *T)
{
    if (pe_walls(T->a))
        pe_parallel_for(T->a->sizes.B * T->wall.rows * (T->key_tiles + T->query_tiles), &T->a->team,
                        fill_task, T);
}

/* ---- a tile ---- */

/* Which row of all tables the head at hand has. */
static int64_t row_of(const pe_tiles *T, const pe_scratch *z)
{
    return z->b * T->wall.rows + pe_turn_row(T->a, z->h) - pe_turn_row(T->a, 0);
}

/* Do all keys of the tile stand before its queries, or are the first of them? */
static int is_left(const pe_tiles *T, const pe_scratch *z)
{
    for (int64_t r = 0; r < z->R; r++)
        if (own_of(T, z->b, z->i0 + r) < z->j0 + z->C - 1)
            return 0;
    return 1;
}

/* Factors of the queries until the last key, and queries times them; keys times what they have until then,
   transposed. */
static void gate_tile(const pe_tiles *T, pe_scratch *z, const float *Qu, const float *Kt)
{
    const int64_t D = T->a->D, row = row_of(T, z), I = z->i0 / T->Br, J = z->j0 / T->Bc;
    const double *first = T->wall.ends[PE_QUERIES] + (row * T->query_tiles + I) * D,
                 *last  = T->wall.ends[PE_KEYS] + (row * T->key_tiles + J) * D;
    const float *own    = T->wall.queries + (row * T->a->sizes.Lq + z->i0) * T->Dp,
                *keys   = T->wall.keys + (row * T->key_tiles + J) * D * T->Bcp;
    for (int64_t d = 0; d < T->Dp; d++)
        z->wall.between[d] = d < D ? (float)exp(first[d] - last[d]) : 0;
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t x = r * T->Dp, d = 0; d < T->Dp; d++, x++) {
            z->wall.factors[x] = own[x] * z->wall.between[d];
            z->wall.Q[x]       = Qu[x] * z->wall.factors[x];
        }
    for (int64_t x = 0; x < D * T->Bcp; x++)
        z->wall.Kt[x] = Kt[x] * keys[x];
}

/* Sums of the tile's keys, and the gate of each but the first. */
static void load_gates(const pe_tiles *T, pe_scratch *z)
{
    const int64_t D    = T->a->D;
    pe_turn_walk  walk = pe_turn_start(T->a, z->b, pe_turn_row(T->a, z->h), z->wall.walk);
    for (int64_t c = 0; c < z->C; c++)
        memcpy(z->wall.G + c * D, pe_turn_at(T->a, &walk, PE_KEYS, z->j0 + c), (size_t)D * sizeof(double));
    for (int64_t x = D; x < z->C * D; x++)
        z->wall.gate[x] = exp(z->wall.G[x] - z->wall.G[x - D]);
}

/* The key of the tile from which query r goes to the left; -1: all are ahead. f becomes the factor there. */
static int64_t start_row(const pe_tiles *T, pe_scratch *z, int64_t r)
{
    const int64_t D = T->a->D, own = own_of(T, z->b, z->i0 + r) - z->j0, top = pe_smaller(own, z->C - 1);
    pe_turn_walk  walk = pe_turn_start(T->a, z->b, pe_turn_row(T->a, z->h), z->wall.walk);
    const double *G    = own > top ? pe_turn_at(T->a, &walk, PE_QUERIES, z->i0 + r) : NULL;
    for (int64_t d = 0; d < D; d++)
        z->wall.f[d] = G ? exp(G[d] - z->wall.G[top * D + d]) : 1;
    return top < 0 ? -1 : top;
}

/* One key to the left. */
static void step_left(const pe_tiles *T, pe_scratch *z, int64_t c)
{
    const double *gate = z->wall.gate + c * T->a->D;
    for (int64_t d = 0; c > 0 && d < T->a->D; d++)
        z->wall.f[d] *= gate[d];
}

static void multiply_rows(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Kt)
{
    const int64_t     D = T->a->D;
    const pe_kernels *k = T->a->kernels;
    k->transpose(z->wall.K, T->Dp, Kt, T->Bcp, D, z->C);
    load_gates(T, z);
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t c = start_row(T, z, r); c >= 0; step_left(T, z, c--)) {
            const float *key = z->wall.K + c * T->Dp, *q = Qu + r * T->Dp;
            double       sum = 0;
            for (int64_t d = 0; d < D; d++)
                sum += z->wall.f[d] * (double)q[d] * (double)key[d];
            s[r * T->Bcp + c] = (float)sum;
        }
}

void pe_tile_wall_multiply(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Kt)
{
    const pe_kernels *k = T->a->kernels;
    z->wall.is_left     = is_left(T, z);
    if (z->wall.is_left) {
        gate_tile(T, z, Qu, Kt);
        k->product(s, T->Bcp, z->wall.Q, T->Dp, 1, z->wall.Kt, T->Bcp, z->R, z->C, T->a->D, 0);
        return;
    }
    k->product(s, T->Bcp, Qu, T->Dp, 1, Kt, T->Bcp, z->R, z->C, T->a->D, 0);
    multiply_rows(T, z, s, Qu, Kt);
}

/* ---- backward ---- */

/* dkey of a key -= k dk of this head. */
static void add_to_sums(const pe_tiles *T, const pe_scratch *z, int64_t c, const float *key, const float *dk)
{
    double *to = T->a->turn.dkey + (z->h * T->a->sizes.Lk + z->j0 + c) * T->a->D;
    for (int64_t d = 0; d < T->a->D; d++)
        to[d] -= (double)key[d] * (double)dk[d];
}

static void rows_back(const pe_tiles *T, pe_scratch *z, const float *dS, const float *Qu)
{
    const int64_t D = T->a->D;
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t c = start_row(T, z, r); c >= 0; step_left(T, z, c--)) {
            const double x   = (double)dS[r * T->Bcp + c];
            const float *key = z->back.K + c * T->Dp, *q = Qu + r * T->Dp;
            float       *dk = z->wall.dK + c * T->Dp, *dq = z->back.dQ + r * T->Dp;
            for (int64_t d = 0; d < D; d++) {
                const double f = x * z->wall.f[d];
                dk[d] += (float)(f * (double)q[d]);
                dq[d] += (float)(f * (double)key[d]);
            }
        }
}

static void left_back(const pe_tiles *T, pe_scratch *z, const float *dS)
{
    const int64_t     D    = T->a->D;
    const pe_kernels *k    = T->a->kernels;
    const float      *keys = T->wall.keys + (row_of(T, z) * T->key_tiles + z->j0 / T->Bc) * D * T->Bcp;
    k->product(z->wall.dK, T->Dp, dS, 1, T->Bcp, z->wall.Q, T->Dp, z->C, D, z->R, 0);
    for (int64_t c = 0; c < z->C; c++)
        for (int64_t d = 0; d < D; d++)
            z->wall.dK[c * T->Dp + d] *= keys[d * T->Bcp + c];
    k->transpose(z->wall.K, T->Dp, z->wall.Kt, T->Bcp, D, z->C);
    k->product(z->rows, T->Dp, dS, T->Bcp, 1, z->wall.K, T->Dp, z->R, D, z->C, 0);
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t x = r * T->Dp; x < r * T->Dp + D; x++)
            z->back.dQ[x] += z->rows[x] * z->wall.factors[x];
}

void pe_tile_wall_back(const pe_tiles *T, pe_scratch *z, const float *dS, const float *Qu)
{
    if (z->wall.is_left)
        left_back(T, z, dS);
    else {
        memset(z->wall.dK, 0, (size_t)(z->C * T->Dp) * sizeof(float));
        rows_back(T, z, dS, Qu);
    }
    for (int64_t c = 0; c < z->C; c++) {
        if (T->a->turn.dkey)
            add_to_sums(T, z, c, z->back.K + c * T->Dp, z->wall.dK + c * T->Dp);
        for (int64_t d = 0; d < T->a->D; d++)
            z->back.dK[c * T->Dp + d] += z->wall.dK[c * T->Dp + d];
    }
}
