/* SPDX-License-Identifier: MIT */
/*
 * chain_backward.c: the backward of queries that are transformed from key to key. Formulas: chain.c
 *
 * One key head is a task (so few key heads keep few threads busy): what becomes of a query follows from all
 * keys to its right, so its query tiles walk their key tiles twice, from right to left, keeping what the
 * queries were at each tile, then from left to right with the cotangents. Sums of keys are kept until all
 * query tiles of the head have been there. All of it is linear in the keys.
 */
#include <string.h>

#include "base/parallel.h"
#include "engine/tiled/backward.h"

/* A key head: keys as they are met, queries on their way, and cotangents. */
typedef struct head_rows {
    float *K, *W, *U, *M;          /* [Lk, Dp] and M [Lk, Bcp] */
    float *X;                      /* [key_tiles, Br, Dp] */
    float *dK, *dW, *dU, *dM, *dV; /* as K to M, and [Lk, Dvp] */
    float *Wt, *Ut, *Mt, *cross;   /* [D, Bcp], [D, Bcp], [Bc, Bcp] of a tile, and [Br, Bcp] dB */
} head_rows;

struct pe_chain_back {
    int64_t        wave, first; /* key heads at once, those of the wave: first .. first+wave-1 */
    head_rows     *rows;        /* [wave] */
    pe_chain_fold *fold;        /* [wave] one tile in double */
    double        *dW, *dbeta;  /* [G, Lk, D], [G, Lk], D padded to PE_LANES64; NULL: not wanted */
};

pe_chain_back *pe_chain_back_lay_out(const pe_tiles *T, pe_arena *arena)
{
    const pe_problem *p = &T->a->sizes;
    const int64_t     D = pe_padded64(p->D), C = pe_padded64(T->Bc), tall = T->key_tiles * T->Br;
    const int64_t     wave   = pe_smaller(p->G, T->a->team.threads);
    const int         wanted = pe_chain_is_wanted(T->a);
    if (!pe_chains(T->a))
        return NULL;
    pe_chain_back *x = pe_arena_take(arena, sizeof *x);
    pe_chain_back  y = {.wave  = wave,
                        .rows  = pe_arena_take(arena, (size_t)wave * sizeof *y.rows),
                        .fold  = pe_arena_take(arena, (size_t)wave * sizeof *y.fold),
                        .dW    = wanted ? pe_arena_doubles(arena, p->G * p->Lk * D) : NULL,
                        .dbeta = wanted ? pe_arena_doubles(arena, p->G * p->Lk) : NULL};
    for (int64_t i = 0; i < wave; i++) {
        head_rows     r;
        pe_chain_fold f;
        float **const wide[] = {&r.K, &r.W, &r.U, &r.dK, &r.dW, &r.dU};
        for (int n = 0; n < 6; n++)
            *wide[n] = pe_arena_floats(arena, p->Lk * T->Dp);
        r.M     = pe_arena_floats(arena, p->Lk * T->Bcp);
        r.dM    = pe_arena_floats(arena, p->Lk * T->Bcp);
        r.dV    = pe_arena_floats(arena, p->Lk * T->Dvp);
        r.X     = pe_arena_floats(arena, tall * T->Dp);
        r.Wt    = pe_arena_floats(arena, p->D * T->Bcp);
        r.Ut    = pe_arena_floats(arena, p->D * T->Bcp);
        r.Mt    = pe_arena_floats(arena, T->Bc * T->Bcp);
        r.cross = pe_arena_floats(arena, T->Br * T->Bcp);
        f.dK    = pe_arena_doubles(arena, T->Bc * D);
        f.dW    = pe_arena_doubles(arena, T->Bc * D);
        f.dUM   = pe_arena_doubles(arena, T->Bc * (D + C));
        f.dbeta = pe_arena_doubles(arena, T->Bc);
        if (x) {
            y.rows[i] = r;
            y.fold[i] = f;
        }
    }
    if (x)
        *x = y;
    return x;
}

static int64_t columns_of(const pe_tiles *T, int64_t J)
{
    return pe_smaller(T->Bc, T->a->sizes.Lk - J * T->Bc);
}

/* Keys of a key head; sums are 0. */
static void start_head(const pe_backward *w, pe_scratch *z, const head_rows *x, int64_t g)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    for (int64_t J = 0; J < T->key_tiles; J++) {
        const int64_t       j0 = J * T->Bc;
        const pe_chain_rows to = {x->K + j0 * T->Dp, x->W + j0 * T->Dp, x->U + j0 * T->Dp,
                                  x->M + j0 * T->Bcp};
        pe_tile_chain_make(T, &z->chain, &to, w->b, g, j0, columns_of(T, J));
    }
    memset(x->dK, 0, (size_t)(p->Lk * T->Dp) * sizeof(float));
    memset(x->dW, 0, (size_t)(p->Lk * T->Dp) * sizeof(float));
    memset(x->dU, 0, (size_t)(p->Lk * T->Dp) * sizeof(float));
    memset(x->dM, 0, (size_t)(p->Lk * T->Bcp) * sizeof(float));
    memset(x->dV, 0, (size_t)(p->Lk * T->Dvp) * sizeof(float));
}

/* The queries X at tile J. */
static void meet(const pe_tiles *T, pe_scratch *z, const head_rows *x, const float *X)
{
    z->chain.Wt = x->Wt;
    z->chain.U  = x->U + z->j0 * T->Dp;
    z->chain.M  = x->M + z->j0 * T->Bcp;
    T->a->kernels->transpose(x->Wt, T->Bcp, x->W + z->j0 * T->Dp, T->Dp, z->C, T->a->sizes.D);
    pe_tile_chain_meet(T, z, X);
}

/* From right to left: what the queries of the tile are at each key tile. */
static void walk_left(const pe_backward *w, pe_scratch *z, const head_rows *x, int64_t h, int64_t I)
{
    const pe_tiles *T    = &w->T;
    const int64_t   each = T->Br * T->Dp;
    const float    *from = w->Qu + (h * T->a->sizes.Lq + I * T->Br) * T->Dp;
    for (int64_t J = T->key_tiles - 1; J >= 0; J--) {
        float *X = x->X + J * each;
        pe_tile_begin(T, z, w->b, h, I, J);
        memcpy(X, from, (size_t)(z->R * T->Dp) * sizeof *X);
        if (J == 0)
            return;
        from = X;
        if (!pe_tile_is_reached(T, I, J))
            continue;
        meet(T, z, x, X);
        memcpy(X - each, X, (size_t)(z->R * T->Dp) * sizeof *X);
        pe_tile_chain_step(T, z, X - each);
        from = X - each;
    }
}

/* Keys and values of the tile at hand, and where their sums go. */
static void load_tile(const pe_tiles *T, pe_scratch *z, const head_rows *x)
{
    const pe_kernels *k = T->a->kernels;
    const pe_problem *p = &T->a->sizes;
    z->back.K           = x->K + z->j0 * T->Dp;
    z->back.dK          = x->dK + z->j0 * T->Dp;
    z->back.dV          = x->dV + z->j0 * T->Dvp;
    k->transpose(z->back.Kt, T->Bcp, z->back.K, T->Dp, z->C, p->D);
    pe_tile_rows_load_keys(T->a, z->rows, T->Dvp, &T->a->v, z->b, z->back.g, z->j0, z->C, p->Dv);
    k->transpose(z->back.Vt, T->Bcp, z->rows, T->Dvp, z->C, p->Dv);
}

/* dB = -lower(dX' U^T), and dU -= (lower B)^T dX'; U is there with the minus sign, and so is dU. */
static void step_back(const pe_tiles *T, const pe_scratch *z, const head_rows *x, const float *dX)
{
    const pe_kernels *k = T->a->kernels;
    const int64_t     D = T->a->sizes.D;
    memset(x->cross, 0, (size_t)(z->R * T->Bcp) * sizeof(float));
    if (!z->chain.steps)
        return;
    k->transpose(x->Ut, T->Bcp, z->chain.U, T->Dp, z->C, D);
    k->product(x->cross, T->Bcp, dX, T->Dp, 1, x->Ut, T->Bcp, z->R, z->C, D, 0);
    for (int64_t r = 0; r < z->R; r++)
        memset(x->cross + r * T->Bcp + z->chain.own[r], 0, (size_t)(z->C - z->chain.own[r]) * sizeof(float));
    k->product(x->dU + z->j0 * T->Dp, T->Dp, z->chain.lower, 1, T->Bcp, dX, T->Dp, z->C, D, z->R, 1);
}

/* dB += upper(dP M^T), dM += (upper B)^T dP. */
static void reach_back(const pe_tiles *T, const pe_scratch *z, const head_rows *x, const float *dP)
{
    const pe_kernels *k = T->a->kernels;
    if (!z->chain.reaches)
        return;
    k->transpose(x->Mt, T->Bcp, z->chain.M, T->Bcp, z->C, z->C);
    k->product(z->chain.lower, T->Bcp, dP, T->Bcp, 1, x->Mt, T->Bcp, z->R, z->C, z->C,
               0); /* it is done with */
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t c = z->chain.own[r]; c < z->C; c++)
            x->cross[r * T->Bcp + c] += z->chain.lower[r * T->Bcp + c];
    k->product(x->dM + z->j0 * T->Bcp, T->Bcp, z->chain.upper, 1, T->Bcp, dP, T->Bcp, z->C, z->C, z->R, 1);
}

/* From right to left once more, where there is something to look for. */
static void look_ahead(const pe_backward *w, pe_scratch *z, const head_rows *x, int64_t h, int64_t I)
{
    const pe_tiles *T  = &w->T;
    const int64_t   i0 = I * T->Br, R = pe_smaller(T->Br, T->a->sizes.Lq - i0);
    if (!pe_looks_ahead(w))
        return;
    pe_look_begin(w, z, h, i0, R);
    for (int64_t J = T->key_tiles - 1; J >= 0; J--) {
        pe_pair_backward_begin(w, z, h, 0, I, J);
        if (!pe_tile_is_reached(T, I, J))
            continue;
        load_tile(T, z, x);
        z->chain.X = x->X + J * T->Br * T->Dp;
        meet(T, z, x, z->chain.X);
        pe_look(w, z);
    }
    z->chain.X = NULL;
    pe_look_end(w, z, h, i0, R);
}

/* From left to right, with the cotangents of what the queries became. */
static void walk_right(const pe_backward *w, pe_scratch *z, const head_rows *x, int64_t h, int64_t I)
{
    const pe_tiles   *T = &w->T;
    const pe_kernels *k = T->a->kernels;
    const int64_t     D = T->a->sizes.D;
    for (int64_t J = 0; J < T->key_tiles; J++) {
        const float *X = x->X + J * T->Br * T->Dp;
        if (!pe_tile_is_reached(T, I, J))
            continue;
        pe_pair_backward_begin(w, z, h, 0, I, J);
        load_tile(T, z, x);
        meet(T, z, x, X);
        step_back(T, z, x, z->back.dQ);
        z->chain.X = X;
        pe_pair_backward_run(w, z);
        z->chain.X = NULL;
        reach_back(T, z, x, z->W);
        k->product(z->back.dQ, T->Dp, x->cross, T->Bcp, 1, x->W + z->j0 * T->Dp, T->Dp, z->R, D, z->C, 1);
        k->product(x->dW + z->j0 * T->Dp, T->Dp, x->cross, 1, T->Bcp, X, T->Dp, z->C, D, z->R, 1);
    }
}

static void widen(double *to, int64_t to_stride, const float *from, int64_t stride, int64_t n, int64_t width,
                  int64_t columns, double sign)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t d = 0; d < columns; d++)
            to[r * to_stride + d] = d < width ? sign * (double)from[r * stride + d] : 0;
}

/* A tile of the key head, when all queries have been there. */
static void finish_tile(const pe_backward *w, const pe_scratch *z, const head_rows *x, const pe_chain_fold *f,
                        int64_t g, int64_t J)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const int64_t     D = pe_padded64(p->D), C = pe_padded64(T->Bc), j0 = J * T->Bc, n = columns_of(T, J);
    widen(f->dK, D, x->dK + j0 * T->Dp, T->Dp, n, p->D, D, 1);
    widen(f->dW, D, x->dW + j0 * T->Dp, T->Dp, n, p->D, D, 1);
    widen(f->dUM, D + C, x->dU + j0 * T->Dp, T->Dp, n, p->D, D, 1);
    widen(f->dUM + D, D + C, x->dM + j0 * T->Bcp, T->Bcp, n, n, C, -1);
    pe_tile_chain_fold(T, &z->chain, f, w->b, g, j0, n);
    for (int64_t j = 0; T->a->dk.data && j < n; j++)
        pe_tensor_store_double(pe_tensor_row(&T->a->dk, w->b, g, j0 + j), T->a->dk.dtype, 1, f->dK + j * D,
                               p->D);
    if (w->chain->dW) {
        memcpy(w->chain->dW + (g * p->Lk + j0) * D, f->dW, (size_t)(n * D) * sizeof(double));
        memcpy(w->chain->dbeta + g * p->Lk + j0, f->dbeta, (size_t)n * sizeof(double));
    }
}

static void head_back(void *context, int64_t index, int thread)
{
    const pe_backward *w     = context;
    const pe_tiles    *T     = &w->T;
    const pe_problem  *p     = &T->a->sizes;
    const int64_t      group = p->H / p->G;
    pe_scratch        *z     = T->scratch + thread;
    const head_rows   *x     = w->chain->rows + index;
    const int64_t      g     = w->chain->first + index;
    start_head(w, z, x, g);
    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t I = 0; I < T->query_tiles && !pe_parallel_is_cancelled(&T->a->team); I++) {
            walk_left(w, z, x, h, I);
            look_ahead(w, z, x, h, I);
            walk_right(w, z, x, h, I);
        }
    for (int64_t J = 0; J < T->key_tiles; J++)
        finish_tile(w, z, x, w->chain->fold + index, g, J);
    if (T->a->dv.data)
        pe_tile_rows_store_plain(&T->a->dv, w->b, g, 0, p->Lk, x->dV, T->Dvp, p->Dv);
}

void pe_chain_back_run(pe_backward *w)
{
    const pe_attention *a = w->T.a;
    for (w->chain->first = 0; w->chain->first < a->sizes.G; w->chain->first += w->chain->wave)
        pe_parallel_for(pe_smaller(w->chain->wave, a->sizes.G - w->chain->first), &a->team, head_back, w);
    if (w->chain->dW)
        pe_chain_store(a, w->b, w->chain->dW, pe_padded64(a->sizes.D), w->chain->dbeta);
}
