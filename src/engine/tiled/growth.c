/* SPDX-License-Identifier: MIT */
/*
 * growth.c: pairs of channels whose share of a score decays with distance (xPos)
 *
 * Formula  pair m of q_i . k_j is multiplied by exp(growth_m (P(i) - P(j)))
 * Source   Sun et al. 2022, arXiv:2212.10554, section 3
 *
 * The paper multiplies a query by exp(growth_m P(i)) and a key by exp(-growth_m P(j)), which leaves the range
 * of any number somewhere: near position 36 000 in float. Only the distance counts, so here a tile of keys
 * has a centre c: its keys are multiplied by exp(-growth_m (P(j) - c)), never far from 1, and the queries
 * that meet it by exp(growth_m (P(i) - c)), which only vanishes. Along ranges that is a factor of the query's
 * own tile times one of the two tiles; positions without a pattern are taken one by one.
 */
#include <math.h>

#include "base/parallel.h"
#include "engine/tiled/tiles.h"

void pe_channel_growth(const pe_turn *grown, int64_t D, double growth[])
{
    for (int64_t d = 0; d < D; d++)
        growth[d] = 0;
    for (int64_t m = 0; m < grown->M; m++) {
        int64_t channels[2];
        pe_turn_channels(grown, grown->layout_out, m, channels);
        growth[channels[0]] = growth[channels[1]] = grown->growth[m];
    }
}

/* Masked pairs may stand anywhere; what they are multiplied by must only be finite, also as a product of two.
   What has decayed is 0: a least factor would come back where the two that it is multiplied by are large. */
enum { MOST = 40 };

/* Neighbours are most often the same: pairs of channels, and those that do not turn. */
static void fill_row(const pe_tiles *T, double distance, float to[])
{
    for (int64_t d = 0; d < T->a->sizes.D; d++)
        to[d] = T->growth[d] == 0                           ? 1
                : d > 0 && T->growth[d] == T->growth[d - 1] ? to[d - 1]
                                                            : (float)exp(fmin(T->growth[d] * distance, MOST));
    for (int64_t d = T->a->sizes.D; d < T->Dp; d++)
        to[d] = 0;
}

/* The position of the middle of a tile. */
static double query_center(const pe_tiles *T, int64_t b, int64_t i0)
{
    return pe_position(&T->a->q_pos, b, i0 + pe_smaller(T->Br, T->a->sizes.Lq - i0) / 2);
}

static double key_center(const pe_tiles *T, int64_t b, int64_t j0)
{
    return pe_position(&T->a->k_pos, b, j0 + pe_smaller(T->Bc, T->a->sizes.Lk - j0) / 2);
}

/* The factors of the keys of one tile of one item. */
static void grow_tile(void *context, int64_t index, int thread)
{
    const pe_tiles *T = context;
    const int64_t   b = index / T->key_tiles, j0 = index % T->key_tiles * T->Bc, Lk = T->a->sizes.Lk,
                  C     = pe_smaller(T->Bc, Lk - j0);
    const double center = key_center(T, b, j0);
    for (int64_t j = j0; j < j0 + C; j++)
        fill_row(T, center - pe_position(&T->a->k_pos, b, j), T->k_grown + (b * Lk + j) * T->Dp);
}

/* Once per call, for all heads: an exponential costs more than what it is multiplied with. */
void pe_growth_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_problem *p = &T->a->sizes;
    if (!T->a->grown)
        return;
    T->growth  = pe_take_doubles(arena, p->D);
    T->q_grown = pe_take_floats(arena, T->q_batches * p->Lq * T->Dp);
    T->k_grown = pe_take_floats(arena, T->k_batches * p->Lk * T->Dp);
    if (!arena->memory)
        return;
    pe_channel_growth(T->a->grown, p->D, T->growth);
    pe_parallel_for(T->k_batches * T->key_tiles, T->a->threads, grow_tile, T);
    for (int64_t b = 0; T->skewed && b < T->q_batches; b++)
        for (int64_t i = 0; i < p->Lq; i++)
            fill_row(T, pe_position(&T->a->q_pos, b, i) - query_center(T, b, i / T->Br * T->Br),
                     T->q_grown + (b * p->Lq + i) * T->Dp);
}

/* factor[r,:] of the tile's queries for the keys at j0. */
static void fill_factors(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t R)
{
    const double center = key_center(T, b, z->j0);
    if (!T->skewed) {
        for (int64_t r = 0; r < R; r++)
            fill_row(T, pe_position(&T->a->q_pos, b, z->i0 + r) - center, z->grow + r * T->Dp);
        return;
    }
    const float *own = T->q_grown + ((T->q_batches > 1 ? b : 0) * T->a->sizes.Lq + z->i0) * T->Dp;
    fill_row(T, query_center(T, b, z->i0) - center, z->between);
    for (int64_t r = 0; r < R; r++)
        for (int64_t d = 0; d < T->Dp; d++)
            z->grow[r * T->Dp + d] = own[r * T->Dp + d] * z->between[d];
}

static void multiply(float *to, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * y[i];
}

void pe_grow_queries(const pe_tiles *T, pe_scratch *z, int64_t b, const float *Qu, int64_t R)
{
    fill_factors(T, z, b, R);
    multiply(z->Qg, Qu, z->grow, R * T->Dp);
    if (z->Q2)
        multiply(z->Qg + T->Br * T->Dp, z->Q2, z->grow, R * T->Dp);
}

void pe_grow_keys(const pe_tiles *T, float *to, const float *K, int64_t b, int64_t j0, int64_t C)
{
    const float *factors = T->k_grown + ((T->k_batches > 1 ? b : 0) * T->a->sizes.Lk + j0) * T->Dp;
    multiply(to, K, factors, C * T->Dp);
}
