/* SPDX-License-Identifier: MIT */
/*
 * bf16.c: attention in bf16, forward
 *
 * The same online softmax over tiles, where q, k and v are stored in bf16 and the processor has dot products
 * of pairs. A product of two bf16 is exact in float, and sums are float, so scores are as good as those of
 * the tiled executor; but the second product wants its weights in bf16 too: each is rounded, by 2^-8 of
 * itself at most. They are divided by their own sum, so that they still add to 1 and a constant value comes
 * out as it is; lse is made of the weights before they are rounded. Rows that are rotated are rotated in
 * float and rounded once more.
 *
 * Lanes are queries (bf16.inc). Keys of a (item, key head) pair are copied once, rotated and padded to whole
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
#include "engine/fast/fast.h"

enum { QUERIES = PE_BF16_QUERIES, KEYS = 128 }; /* of a tile */

#define LOG2_E 1.44269504088896340736
#define LN_2   0.69314718055994530942

typedef struct bf16_pair {
    uint16_t *K;   /* [tiles * KEYS, Dp] */
    uint32_t *V;   /* [tiles * KEYS / 2, Dvp] */
    float    *key; /* [tiles * KEYS] 0 or -infinity */
} bf16_pair;

/* Scratch of one thread. */
typedef struct bf16_scratch {
    uint32_t *Q, *P;                           /* [Dp / 2, QUERIES], [KEYS / 2, QUERIES] */
    float    *S, *O;                           /* [KEYS, QUERIES], [Dvp, QUERIES] */
    float    *m, *l, *rounded, *factor, *most; /* [QUERIES] */
    float    *rows;                            /* [QUERIES, max(Dp,Dvp)] */
    uint16_t *narrow;                          /* [QUERIES, max(Dp,Dvp)] */
} bf16_scratch;

typedef struct bf16_forward {
    const pe_attention    *a;
    const pe_bf16_kernels *kernels;
    pe_tiles               T; /* tables by distance, rows and their rotation; its tiles are not used */
    int64_t                key_tiles, query_tiles;
    bf16_pair             *pairs; /* [wave] */
    int64_t                wave, first, group;
    float  *bias; /* [H, bias_stride] times log2 e; query i and key j meet at i - j + Lk - 1 + QUERIES */
    int64_t bias_stride;
    bf16_scratch *scratch;
} bf16_forward;

int pe_bf16_may_serve(const pe_attention *a)
{
    return a->products == POSENC_PRODUCTS_BY_STORAGE && pe_kernels_bf16(a->kernels) && pe_fast_serves(a) &&
           !pe_drifts(a) && !pe_has(a->terms, PE_GATE) && a->terms->scale > 0 &&
           a->temper_on == PE_TEMPER_NONE && !(a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
}

int pe_bf16_serves(const pe_attention *a)
{
    const int by_place = pe_uses_distance(a->terms) || (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW));
    return pe_bf16_may_serve(a) && a->q.dtype == POSENC_DTYPE_BF16 && a->k.dtype == POSENC_DTYPE_BF16 &&
           a->v.dtype == POSENC_DTYPE_BF16 && (a->distances.skewed || !by_place);
}

/* ---- layout ---- */

static bf16_pair lay_out_pair(const bf16_forward *x, pe_arena *arena)
{
    const int64_t keys = x->key_tiles * KEYS;
    bf16_pair     y;
    y.K   = pe_arena_take(arena, (size_t)(keys * x->T.Dp) * sizeof *y.K);
    y.V   = pe_arena_take(arena, (size_t)(keys / 2 * x->T.Dvp) * sizeof *y.V);
    y.key = pe_arena_floats(arena, keys);
    return y;
}

static bf16_scratch lay_out_scratch(const bf16_forward *x, pe_arena *arena)
{
    const int64_t wide = x->T.Dp > x->T.Dvp ? x->T.Dp : x->T.Dvp;
    bf16_scratch  y;
    y.Q       = pe_arena_take(arena, (size_t)(x->T.Dp / 2 * QUERIES) * sizeof *y.Q);
    y.P       = pe_arena_take(arena, (size_t)(KEYS / 2 * QUERIES) * sizeof *y.P);
    y.S       = pe_arena_floats(arena, KEYS * QUERIES);
    y.O       = pe_arena_floats(arena, x->T.Dvp * QUERIES);
    y.m       = pe_arena_floats(arena, QUERIES);
    y.l       = pe_arena_floats(arena, QUERIES);
    y.rounded = pe_arena_floats(arena, QUERIES);
    y.factor  = pe_arena_floats(arena, QUERIES);
    y.most    = pe_arena_floats(arena, QUERIES);
    y.rows    = pe_arena_floats(arena, QUERIES * wide);
    y.narrow  = pe_arena_take(arena, (size_t)(QUERIES * wide) * sizeof *y.narrow);
    return y;
}

static bf16_forward lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p     = &a->sizes;
    const int64_t     pairs = p->B * p->G;
    bf16_forward      x     = {.a = a, .kernels = pe_kernels_bf16(a->kernels), .group = p->H / p->G};
    x.T                     = pe_fast_lay_out(a, arena, 1, KEYS, PE_FAST_OF_KEYS | PE_FAST_BY_DISTANCE);
    x.key_tiles             = (p->Lk + KEYS - 1) / KEYS;
    x.query_tiles           = (p->Lq + QUERIES - 1) / QUERIES;
    x.wave                  = pe_smaller(pairs, a->team.threads);
    x.bias_stride           = pe_padded(p->Lq + x.key_tiles * KEYS) + 3 * QUERIES;
    x.bias                  = pe_arena_floats(arena, pe_has(a->terms, PE_BIAS) ? p->H * x.bias_stride : 0);
    x.pairs                 = pe_arena_take(arena, (size_t)x.wave * sizeof *x.pairs);
    x.scratch               = pe_arena_take(arena, (size_t)a->team.threads * sizeof *x.scratch);
    for (int64_t i = 0; i < x.wave; i++) {
        const bf16_pair y = lay_out_pair(&x, arena);
        if (x.pairs)
            x.pairs[i] = y;
    }
    for (int i = 0; i < a->team.threads; i++) {
        const bf16_scratch y = lay_out_scratch(&x, arena);
        if (x.scratch)
            x.scratch[i] = y;
    }
    return x;
}

/* ---- a bias by distance ---- */

/* Where key tile j0 and the first query i0 of a tile meet. */
static const float *bias_at(const bf16_forward *x, int64_t h, int64_t i0, int64_t j0)
{
    return x->bias + h * x->bias_stride + i0 - j0 + (x->key_tiles * KEYS - 1) + QUERIES;
}

/* Numbers of all distances between a query and a key, 0 for those that the masks hide. */
static void fill_bias(void *context, int64_t h, int thread)
{
    const bf16_forward *x  = context;
    const pe_tiles     *T  = &x->T;
    const pe_problem   *p  = &x->a->sizes;
    float              *to = x->bias + h * x->bias_stride;
    const pe_distances *d  = &x->a->distances;
    memset(to, 0, (size_t)x->bias_stride * sizeof *to);
    const double slope = pe_fast_is_sloped(x->a) ? pe_fast_slope(x->a, h) : 0, near = pe_fast_nearest(x->a);
    float       *zero = to + (x->key_tiles * KEYS - 1) + QUERIES; /* i - j = 0 */
    for (int64_t e = -(p->Lk - 1); e < p->Lq; e++) {
        const int64_t row = p->Lq - 1 - e;
        if (pe_fast_is_sloped(x->a))
            zero[e] = (float)(LOG2_E * slope * (fabs((double)(d->t00 + d->step * e)) - near));
        else if (row >= T->band.first && row < T->band.last)
            zero[e] = (float)(LOG2_E * (double)*pe_rows_by(T, PE_BIAS, h, row));
    }
}

/* ---- rows ---- */

/* Row j of k or v; NULL if it is hidden. */
static const void *row_of(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t g, int64_t j)
{
    return pe_keys_is_hidden(a, b, j) ? NULL : pe_keys_row(a, t, b, g, j);
}

/* n rows of q or k as bf16, rotated, stride Dp, padding zeroed. */
static void load_rows(const bf16_forward *x, bf16_scratch *z, uint16_t *to, pe_side side, int64_t b,
                      int64_t h, int64_t s0, int64_t n)
{
    const pe_attention  *a = x->a;
    const posenc_tensor *t = side == PE_KEYS ? &a->k : &a->q;
    const double        *u = side == PE_QUERIES ? pe_head_vector(a, a->terms->u, h) : NULL;
    if (!a->rotary && !u) {
        for (int64_t s = 0; s < n; s++) {
            const void   *row = side == PE_KEYS ? row_of(a, t, b, h, s0 + s) : pe_tensor_row(t, b, h, s0 + s);
            const int64_t used = row ? a->sizes.D : 0;
            if (row)
                memcpy(to + s * x->T.Dp, row, (size_t)used * sizeof *to);
            memset(to + s * x->T.Dp + used, 0, (size_t)(x->T.Dp - used) * sizeof *to);
        }
        return;
    }
    pe_tile_rows_load(&x->T, x->T.scratch, z->rows, NULL, side, b, h, s0, n);
    for (int64_t r = 0; u && r < n; r++)
        for (int64_t d = 0; d < a->sizes.D; d++)
            z->rows[r * x->T.Dp + d] += (float)u[d];
    x->kernels->narrow(to, z->rows, n * x->T.Dp);
}

static void pack_keys(const bf16_forward *x, bf16_scratch *z, bf16_pair *to, int64_t b, int64_t g)
{
    const int64_t Lk = x->a->sizes.Lk, keys = x->key_tiles * KEYS;
    for (int64_t j = 0; j < Lk; j += QUERIES)
        load_rows(x, z, to->K + j * x->T.Dp, PE_KEYS, b, g, j, pe_smaller(QUERIES, Lk - j));
    memset(to->K + Lk * x->T.Dp, 0, (size_t)((keys - Lk) * x->T.Dp) * sizeof *to->K);
}

/* Two rows of values as one of pairs; NULL for zeros. */
static void pair_values(const bf16_forward *x, uint32_t *to, const uint16_t *first, const uint16_t *second)
{
    const int64_t Dv = x->a->sizes.Dv;
    if (first && second) {
        x->kernels->pair_rows(to, first, second, Dv);
        return;
    }
    for (int64_t d = 0; d < Dv; d++)
        to[d] = (first ? first[d] : 0u) | (second ? (uint32_t)second[d] << 16 : 0u);
}

static void pack_values(const bf16_forward *x, bf16_pair *to, int64_t b, int64_t g)
{
    const pe_attention *a  = x->a;
    const int64_t       Lk = a->sizes.Lk;
    memset(to->V, 0, (size_t)(x->key_tiles * KEYS / 2 * x->T.Dvp) * sizeof *to->V);
    for (int64_t j = 0; j < Lk; j += 2)
        pair_values(x, to->V + j / 2 * x->T.Dvp, row_of(a, &a->v, b, g, j),
                    j + 1 < Lk ? row_of(a, &a->v, b, g, j + 1) : NULL);
}

static void pack_pair(void *context, int64_t index, int thread)
{
    const bf16_forward *x = context;
    const int64_t       G = x->a->sizes.G, b = (x->first + index) / G, g = (x->first + index) % G;
    bf16_pair          *to = x->pairs + index;
    pack_keys(x, x->scratch + thread, to, b, g);
    pack_values(x, to, b, g);
    if (!pe_tile_rows_key_mask(&x->T, to->key, b))
        memset(to->key, 0, (size_t)x->a->sizes.Lk * sizeof *to->key);
    for (int64_t j = x->a->sizes.Lk; j < x->key_tiles * KEYS; j++)
        to->key[j] = -INFINITY;
}

static void load_queries(const bf16_forward *x, bf16_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const uint16_t *from = z->narrow;
    load_rows(x, z, z->narrow, PE_QUERIES, b, h, i0, R);
    memset(z->narrow + R * x->T.Dp, 0, (size_t)((QUERIES - R) * x->T.Dp) * sizeof *z->narrow);
    for (int64_t d = 0; d < x->T.Dp / 2; d++)
        for (int64_t r = 0; r < QUERIES; r++)
            z->Q[d * QUERIES + r] = from[r * x->T.Dp + 2 * d] | (uint32_t)from[r * x->T.Dp + 2 * d + 1] << 16;
}

/* ---- tiles ---- */

static void start(const bf16_forward *x, bf16_scratch *z)
{
    for (int64_t r = 0; r < QUERIES; r++) {
        z->m[r] = -INFINITY;
        z->l[r] = z->rounded[r] = 0;
    }
    memset(z->O, 0, (size_t)(x->T.Dvp * QUERIES) * sizeof *z->O);
}

static void visit_tile(const bf16_forward *x, bf16_scratch *z, const bf16_pair *keys, int64_t h, int64_t i0,
                       int64_t R, int64_t J)
{
    const pe_attention    *a  = x->a;
    const pe_bf16_kernels *k  = x->kernels;
    const int64_t          j0 = J * KEYS, C = pe_smaller(KEYS, a->sizes.Lk - j0), n = (C + 3) / 4 * 4;
    const float           *bias = pe_has(a->terms, PE_BIAS) ? bias_at(x, h, i0, j0) : NULL;
    const int64_t          low = x->T.e_low, high = x->T.e_high;
    if (i0 + R - 1 - j0 < low || i0 - (j0 + C - 1) > high)
        return;
    k->scores(z->S, z->Q, keys->K + j0 * x->T.Dp, x->T.Dp, (a->sizes.D + 1) / 2, n,
              (float)(a->terms->scale * LOG2_E), bias, z->most);
    if (i0 - (j0 + C - 1) < low || i0 + R - 1 - j0 > high || (a->mask & POSENC_MASK_KEY_PADDING) || n > C)
        k->mask(z->S, n, keys->key + j0, i0 - j0, low, high, z->most);
    const int moved = k->softmax(z->P, z->S, n, z->most, z->m, z->l, z->rounded, z->factor);
    k->values(z->O, z->P, keys->V + j0 / 2 * x->T.Dvp, x->T.Dvp, n / 2, (a->sizes.Dv + 3) / 4 * 4,
              moved ? z->factor : NULL);
}

static void finish(const bf16_forward *x, bf16_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a      = x->a;
    const int64_t       Dv     = a->sizes.Dv;
    const double        center = pe_fast_center(&x->T, h);
    for (int64_t r = 0; r < R; r++) {
        float        inverse = z->rounded[r] != 0 ? 1 / z->rounded[r] : 0; /* NaN counts */
        const double l       = (double)z->l[r];
        double       lse     = l != 0 ? LN_2 * (double)z->m[r] + log(l) + center : -INFINITY;
        if (a->has_sink)
            inverse *= (float)pe_sink_join(a, b, h, i0 + r, &lse);
        const float rounded = (float)lse;
        for (int64_t d = 0; d < Dv; d++)
            z->rows[d] = z->O[d * QUERIES + r] * inverse;
        pe_tensor_store_float(pe_tensor_row(&a->o, b, h, i0 + r), a->o.dtype, 1, z->rows, Dv);
        if (a->lse.data)
            pe_tensor_store_float(pe_tensor_element(&a->lse, b, h, i0 + r), a->lse.dtype, 1, &rounded, 1);
    }
}

static void visit_queries(void *context, int64_t index, int thread)
{
    const bf16_forward *x     = context;
    const pe_problem   *p     = &x->a->sizes;
    bf16_scratch       *z     = x->scratch + thread;
    const int64_t       tasks = x->query_tiles * x->group, which = index / tasks, task = index % tasks;
    const int64_t b = (x->first + which) / p->G, h = (x->first + which) % p->G * x->group + task % x->group;
    const int64_t i0 = (x->query_tiles - 1 - task / x->group) * QUERIES; /* longest causal rows first */
    const int64_t R  = pe_smaller(QUERIES, p->Lq - i0);
    load_queries(x, z, b, h, i0, R);
    start(x, z);
    for (int64_t J = 0; J < x->key_tiles; J++)
        visit_tile(x, z, x->pairs + which, h, i0, R, J);
    finish(x, z, b, h, i0, R);
}

void pe_bf16_lay_out(const pe_attention *a, pe_arena *arena)
{
    lay_out(a, arena);
}

void pe_bf16_run(const pe_attention *a, pe_arena *arena)
{
    bf16_forward      x = lay_out(a, arena);
    const pe_problem *p = &a->sizes;
    pe_tiles_fill(&x.T);
    if (pe_has(a->terms, PE_BIAS))
        pe_parallel_for(p->H, &a->team, fill_bias, &x);
    for (x.first = 0; x.first < p->B * p->G; x.first += x.wave) {
        const int64_t n = pe_smaller(x.wave, p->B * p->G - x.first);
        pe_parallel_for(n, &a->team, pack_pair, &x);
        pe_parallel_for(n * x.query_tiles * x.group, &a->team, visit_queries, &x);
    }
}
