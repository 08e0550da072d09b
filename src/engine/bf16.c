/* SPDX-License-Identifier: MIT */
/*
 * bf16.c: executor 2 in bf16, forward
 *
 * The same online softmax over tiles, where q, k and v are stored in bf16 and the processor has dot products
 * of pairs. A product of two bf16 is exact in float, and sums are float, so scores are as good as those of
 * the float road; but the second product wants its weights in bf16 too: each is rounded, by 2^-8 of itself at
 * most. They are divided by their own sum, so that they still add to 1 and a constant value comes out as it
 * is; lse is made of the weights before they are rounded. Rows that are turned are turned in float and
 * rounded once more.
 *
 * Lanes are queries (bf16.inc). Keys of a (item, key head) pair are copied once, turned and padded to whole
 * tiles, and values interleaved by pairs of keys: 2 bytes a number, linear in length. A bias by distance
 * becomes one vector of floats per head, in which query i and key j meet at i - j: for neighbouring queries
 * neighbouring numbers. Tiles that every mask lets through are not masked; those that none lets through are
 * not visited.
 *
 * Source   Dao 2023, arXiv:2307.08691 (tiles of queries outside, weights in 16 bits)
 */

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/roads.h"

enum { QUERIES = PE_BF16_QUERIES, KEYS = 128, ROWS = 16 }; /* of a tile; rows that are loaded at once */

#define LOG2_E 1.44269504088896340736
#define LN_2   0.69314718055994530942

typedef struct pair {
    uint16_t *K;   /* [tiles * KEYS, Dp] */
    uint32_t *V;   /* [tiles * KEYS / 2, Dvp] */
    float    *key; /* [tiles * KEYS] 0 or -infinity */
} pair;

/* Scratch of one thread. */
typedef struct bench {
    uint32_t *Q, *P;                           /* [Dp / 2, QUERIES], [KEYS / 2, QUERIES] */
    float    *S, *O;                           /* [KEYS, QUERIES], [Dvp, QUERIES] */
    float    *m, *l, *rounded, *factor, *most; /* [QUERIES] */
    float    *rows;                            /* [QUERIES, max(Dp,Dvp)] */
    uint16_t *narrow;                          /* [QUERIES, max(Dp,Dvp)] */
} bench;

typedef struct road {
    const pe_attention    *a;
    const pe_bf16_kernels *kernels;
    pe_tiles               T; /* tables by distance, rows and their turns; its tiles are not used */
    int64_t                key_tiles, query_tiles, Dp, Dvp;
    pair                  *pairs; /* [wave] */
    int64_t                wave, first, group;
    float  *bias; /* [H, bias_stride] times log2 e; query i and key j meet at i - j + Lk - 1 + QUERIES */
    int64_t bias_stride;
    bench  *benches;
} road;

int pe_bf16_may(const pe_attention *a)
{
    return a->products == POSENC_PRODUCTS_BY_STORAGE && pe_kernels_bf16(a->kernels) && pe_road_may(a) &&
           !pe_has(a->terms, PE_GATE) && a->terms->scale > 0 &&
           !(a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
}

int pe_bf16_does(const pe_attention *a)
{
    const int by_place = pe_uses_distance(a->terms) || (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW));
    return pe_bf16_may(a) && a->q.dtype == POSENC_DTYPE_BF16 && a->k.dtype == POSENC_DTYPE_BF16 &&
           a->v.dtype == POSENC_DTYPE_BF16 && (a->distances.skewed || !by_place);
}

/* ---- layout ---- */

static void lay_out_pair(const road *x, pair *to, pe_arena *arena)
{
    const int64_t keys = x->key_tiles * KEYS;
    pair          y;
    y.K   = pe_take(arena, (size_t)(keys * x->Dp) * sizeof *y.K);
    y.V   = pe_take(arena, (size_t)(keys / 2 * x->Dvp) * sizeof *y.V);
    y.key = pe_take_floats(arena, keys);
    if (arena->memory)
        *to = y;
}

static void lay_out_bench(const road *x, bench *to, pe_arena *arena)
{
    const int64_t wide = x->Dp > x->Dvp ? x->Dp : x->Dvp;
    bench         y;
    y.Q       = pe_take(arena, (size_t)(x->Dp / 2 * QUERIES) * sizeof *y.Q);
    y.P       = pe_take(arena, (size_t)(KEYS / 2 * QUERIES) * sizeof *y.P);
    y.S       = pe_take_floats(arena, KEYS * QUERIES);
    y.O       = pe_take_floats(arena, x->Dvp * QUERIES);
    y.m       = pe_take_floats(arena, QUERIES);
    y.l       = pe_take_floats(arena, QUERIES);
    y.rounded = pe_take_floats(arena, QUERIES);
    y.factor  = pe_take_floats(arena, QUERIES);
    y.most    = pe_take_floats(arena, QUERIES);
    y.rows    = pe_take_floats(arena, QUERIES * wide);
    y.narrow  = pe_take(arena, (size_t)(QUERIES * wide) * sizeof *y.narrow);
    if (arena->memory)
        *to = y;
}

static road lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p     = &a->sizes;
    const int64_t     pairs = p->B * p->G;
    road              x     = {.a = a, .kernels = pe_kernels_bf16(a->kernels), .group = p->H / p->G};
    pe_road_make(&x.T, a, arena, 1, KEYS, 1);
    x.Dp          = x.T.Dp;
    x.Dvp         = x.T.Dvp;
    x.key_tiles   = (p->Lk + KEYS - 1) / KEYS;
    x.query_tiles = (p->Lq + QUERIES - 1) / QUERIES;
    x.wave        = pe_smaller(pairs, a->threads);
    x.bias_stride = pe_padded(p->Lq + x.key_tiles * KEYS) + 3 * QUERIES;
    x.bias        = pe_take_floats(arena, pe_has(a->terms, PE_BIAS) ? p->H * x.bias_stride : 0);
    x.pairs       = pe_take(arena, (size_t)x.wave * sizeof *x.pairs);
    x.benches     = pe_take(arena, (size_t)a->threads * sizeof *x.benches);
    for (int64_t i = 0; i < x.wave; i++)
        lay_out_pair(&x, arena->memory ? x.pairs + i : NULL, arena);
    for (int i = 0; i < a->threads; i++)
        lay_out_bench(&x, arena->memory ? x.benches + i : NULL, arena);
    return x;
}

/* ---- a bias by distance ---- */

/* Where key tile j0 and the first query i0 of a tile meet. */
static const float *bias_at(const road *x, int64_t h, int64_t i0, int64_t j0)
{
    return x->bias + h * x->bias_stride + i0 - j0 + (x->key_tiles * KEYS - 1) + QUERIES;
}

/* Numbers of all distances between a query and a key, 0 for those that the masks hide. */
static void fill_bias(void *context, int64_t h, int thread)
{
    const road         *x  = context;
    const pe_tiles     *T  = &x->T;
    const pe_problem   *p  = &x->a->sizes;
    float              *to = x->bias + h * x->bias_stride;
    const pe_distances *d  = &x->a->distances;
    memset(to, 0, (size_t)x->bias_stride * sizeof *to);
    const double slope = pe_is_sloped(x->a) ? pe_bias_slope(x->a, h) : 0, near = pe_bias_near(x->a);
    float       *zero = to + (x->key_tiles * KEYS - 1) + QUERIES; /* i - j = 0 */
    for (int64_t e = -(p->Lk - 1); e < p->Lq; e++) {
        const int64_t row = p->Lq - 1 - e;
        if (pe_is_sloped(x->a))
            zero[e] = (float)(LOG2_E * slope * (fabs((double)(d->t00 + d->step * e)) - near));
        else if (row >= T->band.first && row < T->band.last)
            zero[e] = (float)(LOG2_E * (double)*pe_rows_by(T, PE_BIAS, h, row));
    }
}

/* ---- rows ---- */

/* n rows of q or k as bf16, turned, stride Dp, padding zeroed. */
static void load_rows(const road *x, bench *z, uint16_t *to, pe_side side, int64_t b, int64_t h, int64_t s0,
                      int64_t n)
{
    const pe_attention  *a = x->a;
    const posenc_tensor *t = side == PE_KEYS ? &a->k : &a->q;
    const double        *u = side == PE_QUERIES ? pe_head_vector(a, a->terms->u, h) : NULL;
    if (!a->turn && !u) {
        for (int64_t s = 0; s < n; s++) {
            memcpy(to + s * x->Dp, pe_row(t, b, h, s0 + s), (size_t)a->sizes.D * sizeof *to);
            memset(to + s * x->Dp + a->sizes.D, 0, (size_t)(x->Dp - a->sizes.D) * sizeof *to);
        }
        return;
    }
    pe_load_turned(&x->T, x->T.scratch, z->rows, NULL, side, b, h, s0, n);
    for (int64_t r = 0; u && r < n; r++)
        for (int64_t d = 0; d < a->sizes.D; d++)
            z->rows[r * x->Dp + d] += (float)u[d];
    x->kernels->narrow(to, z->rows, n * x->Dp);
}

static void pack_keys(const road *x, bench *z, pair *to, int64_t b, int64_t g)
{
    const int64_t Lk = x->a->sizes.Lk, keys = x->key_tiles * KEYS;
    for (int64_t j = 0; j < Lk; j += QUERIES)
        load_rows(x, z, to->K + j * x->Dp, PE_KEYS, b, g, j, pe_smaller(QUERIES, Lk - j));
    memset(to->K + Lk * x->Dp, 0, (size_t)((keys - Lk) * x->Dp) * sizeof *to->K);
}

static void pack_values(const road *x, pair *to, int64_t b, int64_t g)
{
    const posenc_tensor *v  = &x->a->v;
    const int64_t        Lk = x->a->sizes.Lk, Dv = x->a->sizes.Dv;
    memset(to->V, 0, (size_t)(x->key_tiles * KEYS / 2 * x->Dvp) * sizeof *to->V);
    for (int64_t j = 0; j + 1 < Lk; j += 2)
        x->kernels->pair_rows(to->V + j / 2 * x->Dvp, pe_row(v, b, g, j), pe_row(v, b, g, j + 1), Dv);
    for (int64_t d = 0; Lk % 2 && d < Dv; d++)
        to->V[Lk / 2 * x->Dvp + d] = ((const uint16_t *)pe_row(v, b, g, Lk - 1))[d];
}

static void pack_pair(void *context, int64_t index, int thread)
{
    const road   *x = context;
    const int64_t G = x->a->sizes.G, b = (x->first + index) / G, g = (x->first + index) % G;
    pair         *to = x->pairs + index;
    pack_keys(x, x->benches + thread, to, b, g);
    pack_values(x, to, b, g);
    if (!pe_key_mask(&x->T, to->key, b))
        memset(to->key, 0, (size_t)x->a->sizes.Lk * sizeof *to->key);
    for (int64_t j = x->a->sizes.Lk; j < x->key_tiles * KEYS; j++)
        to->key[j] = -INFINITY;
}

static void load_queries(const road *x, bench *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const uint16_t *from = z->narrow;
    load_rows(x, z, z->narrow, PE_QUERIES, b, h, i0, R);
    memset(z->narrow + R * x->Dp, 0, (size_t)((QUERIES - R) * x->Dp) * sizeof *z->narrow);
    for (int64_t d = 0; d < x->Dp / 2; d++)
        for (int64_t r = 0; r < QUERIES; r++)
            z->Q[d * QUERIES + r] = from[r * x->Dp + 2 * d] | (uint32_t)from[r * x->Dp + 2 * d + 1] << 16;
}

/* ---- tiles ---- */

static void start(const road *x, bench *z)
{
    for (int64_t r = 0; r < QUERIES; r++) {
        z->m[r] = -INFINITY;
        z->l[r] = z->rounded[r] = 0;
    }
    memset(z->O, 0, (size_t)(x->Dvp * QUERIES) * sizeof *z->O);
}

static void visit_tile(const road *x, bench *z, const pair *keys, int64_t h, int64_t i0, int64_t R, int64_t J)
{
    const pe_attention    *a  = x->a;
    const pe_bf16_kernels *k  = x->kernels;
    const int64_t          j0 = J * KEYS, C = pe_smaller(KEYS, a->sizes.Lk - j0), n = (C + 3) / 4 * 4;
    const float           *bias = pe_has(a->terms, PE_BIAS) ? bias_at(x, h, i0, j0) : NULL;
    const int64_t          low = x->T.e_low, high = x->T.e_high;
    if (i0 + R - 1 - j0 < low || i0 - (j0 + C - 1) > high)
        return;
    k->scores(z->S, z->Q, keys->K + j0 * x->Dp, x->Dp, (a->sizes.D + 1) / 2, n,
              (float)(a->terms->scale * LOG2_E), bias, z->most);
    if (i0 - (j0 + C - 1) < low || i0 + R - 1 - j0 > high || (a->mask & POSENC_MASK_KEY_PADDING) || n > C)
        k->mask(z->S, n, keys->key + j0, i0 - j0, low, high, z->most);
    const int moved = k->softmax(z->P, z->S, n, z->most, z->m, z->l, z->rounded, z->factor);
    k->values(z->O, z->P, keys->V + j0 / 2 * x->Dvp, x->Dvp, n / 2, (a->sizes.Dv + 3) / 4 * 4,
              moved ? z->factor : NULL);
}

static void finish(const road *x, bench *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a      = x->a;
    const int64_t       Dv     = a->sizes.Dv;
    const double        center = pe_bias_taken(&x->T, h);
    for (int64_t r = 0; r < R; r++) {
        const float  inverse = z->rounded[r] != 0 ? 1 / z->rounded[r] : 0; /* NaN counts */
        const double l       = (double)z->l[r];
        const float  lse     = l != 0 ? (float)(LN_2 * (double)z->m[r] + log(l) + center) : -INFINITY;
        for (int64_t d = 0; d < Dv; d++)
            z->rows[d] = z->O[d * QUERIES + r] * inverse;
        pe_store_float(pe_row(&a->o, b, h, i0 + r), a->o.dtype, 1, z->rows, Dv);
        if (a->lse.data)
            pe_store_float(pe_element(&a->lse, b, h, i0 + r), a->lse.dtype, 1, &lse, 1);
    }
}

static void visit_queries(void *context, int64_t index, int thread)
{
    const road       *x     = context;
    const pe_problem *p     = &x->a->sizes;
    bench            *z     = x->benches + thread;
    const int64_t     tasks = x->query_tiles * x->group, which = index / tasks, task = index % tasks;
    const int64_t b = (x->first + which) / p->G, h = (x->first + which) % p->G * x->group + task % x->group;
    const int64_t i0 = (x->query_tiles - 1 - task / x->group) * QUERIES; /* longest causal rows first */
    const int64_t R  = pe_smaller(QUERIES, p->Lq - i0);
    load_queries(x, z, b, h, i0, R);
    start(x, z);
    for (int64_t J = 0; J < x->key_tiles; J++)
        visit_tile(x, z, x->pairs + which, h, i0, R, J);
    finish(x, z, b, h, i0, R);
}

void pe_bf16_forward(const pe_attention *a, pe_arena *arena)
{
    road              x = lay_out(a, arena);
    const pe_problem *p = &a->sizes;
    if (!arena->memory)
        return;
    if (pe_has(a->terms, PE_BIAS))
        pe_parallel_for(p->H, a->threads, fill_bias, &x);
    for (x.first = 0; x.first < p->B * p->G; x.first += x.wave) {
        const int64_t n = pe_smaller(x.wave, p->B * p->G - x.first);
        pe_parallel_for(n, a->threads, pack_pair, &x);
        pe_parallel_for(n * x.query_tiles * x.group, a->threads, visit_queries, &x);
    }
}
