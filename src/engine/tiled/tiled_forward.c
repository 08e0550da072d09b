/* SPDX-License-Identifier: MIT */
/*
 * tiled_forward.c: the tiled executor, attention in float, forward
 *
 * Waves of (item, key head) pairs, as many as threads. First the keys of each pair are rotated and transposed
 * once, then every query tile of every head walks its key tiles with the online softmax: running maximum m,
 * sum l and output O, rescaled when the maximum rises. What a query tile computes depends on nothing but its
 * own rows and the keys, so any schedule gives the same bits.
 *
 * Source   Milakov, Gimelshein 2018, arXiv:1805.02867 (online softmax); Dao et al. 2022, arXiv:2205.14135
 *          (tiles)
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/tiled/tiles.h"

/* Can the caller's values be multiplied where they lie? */
static int values_serve(const pe_tiles *T)
{
    return T->a->v.dtype == POSENC_DTYPE_F32 && T->a->sizes.Dv % PE_LANES == 0 && pe_keys_are_plain(T->a);
}

/* Can the caller's keys be transposed from where they lie? */
static int keys_serve(const pe_tiles *T)
{
    const pe_attention *a = T->a;
    return a->k.dtype == POSENC_DTYPE_F32 && !a->rotary && !a->terms->prepare.fill && !a->grown &&
           !pe_chains(a) && pe_keys_are_plain(a);
}

/* Of a chain: the keys as queries from the right meet them. */
static void pack_chain(const pe_tiles *T, pe_scratch *z, const pe_packed *x, int64_t b, int64_t g, int64_t J)
{
    const int64_t       D = T->a->sizes.D, j0 = J * T->Bc, C = pe_smaller(T->Bc, T->a->sizes.Lk - j0);
    const pe_chain_rows to = {z->rows, z->chain.own_W, x->U + j0 * T->Dp, x->M + j0 * T->Bcp};
    pe_tile_chain_make(T, &z->chain, &to, b, g, j0, C);
    T->a->kernels->transpose(x->Kt + J * D * T->Bcp, T->Bcp, z->rows, T->Dp, C, D);
    T->a->kernels->transpose(x->Wt + J * D * T->Bcp, T->Bcp, z->chain.own_W, T->Dp, C, D);
}

/* The keys of tile J transposed, and its values. */
static void pack_tile(void *context, int64_t index, int thread)
{
    const pe_forward *f    = context;
    const pe_tiles   *T    = &f->T;
    const pe_problem *p    = &T->a->sizes;
    const int64_t     pair = index / T->key_tiles, J = index % T->key_tiles, j0 = J * T->Bc,
                  C = pe_smaller(T->Bc, p->Lk - j0), b = (f->first + pair) / p->G,
                  g = (f->first + pair) % p->G;
    pe_packed  *x   = f->pairs + pair;
    pe_scratch *z   = T->scratch + thread;
    float      *Kt  = x->Kt + J * p->D * T->Bcp;
    if (p->Lk <= PE_SHORT) {
        pe_tile_rows_prefetch(&T->a->k, b + 1, g, j0, C, T->a->D);
        pe_tile_rows_prefetch(&T->a->v, b + 1, g, j0, C, p->Dv);
    }
    if (T->a->v.data && !values_serve(T))
        pe_tile_rows_load_keys(T->a, x->V + j0 * T->Dvp, T->Dvp, &T->a->v, b, g, j0, C, p->Dv);
    if (keys_serve(T)) {
        T->a->kernels->transpose(Kt, T->Bcp, pe_tensor_row(&T->a->k, b, g, j0), T->a->k.stride[2], C, p->D);
        return;
    }
    if (pe_chains(T->a)) {
        pack_chain(T, z, x, b, g, J);
        return;
    }
    pe_tile_rows_load(T, z, z->rows, NULL, PE_KEYS, b, g, j0, C);
    T->a->kernels->transpose(Kt, T->Bcp, z->rows, T->Dp, C, p->D);
    if (T->forms[PE_KEYS] > 1) {
        pe_tile_rows_load_form(T, z->rows, PE_KEYS, 1, b, g, j0, C);
        T->a->kernels->transpose(x->Kmt + J * p->D * T->Bcp, T->Bcp, z->rows, T->Dp, C, p->D);
    }
    if (!T->a->grown)
        return;
    pe_tile_rows_grow_keys(T, z->growth.K, z->rows, b, j0, C);
    T->a->kernels->transpose(x->Kgt + J * p->D * T->Bcp, T->Bcp, z->growth.K, T->Dp, C, p->D);
}

/* What is known of a pair before its tiles are packed. */
static void begin_pair(const pe_forward *f, int64_t pair)
{
    const pe_tiles      *T = &f->T;
    const posenc_tensor *v = &T->a->v;
    pe_packed           *x = f->pairs + pair;
    const int64_t        b = (f->first + pair) / T->a->sizes.G, g = (f->first + pair) % T->a->sizes.G;
    const int            there = v->data && values_serve(T);
    x->values                  = there ? pe_tensor_row(v, b, g, 0) : x->V;
    x->v_stride                = there && T->a->sizes.Lk > 1 ? v->stride[2] : T->Dvp; /* of one key: any */
    x->key_mask                = pe_tile_rows_key_mask(T, x->key, b);
}

static void store_scores(const pe_forward *f, const pe_scratch *z)
{
    const posenc_tensor *S    = f->S;
    const int64_t        size = (int64_t)posenc_dtype_size(S->dtype);
    for (int64_t r = 0; r < z->R; r++) {
        char *row = pe_tensor_row(S, z->b, z->h, z->i0 + r);
        pe_tensor_store_float(row + z->j0 * S->stride[3] * size, S->dtype, S->stride[3], z->S + r * f->T.Bcp,
                              z->C);
    }
}

static void start_rows(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t i0, int64_t R)
{
    for (int64_t r = 0; r < R; r++)
        z->softmax.most[r] = -FLT_MAX;
    memset(z->softmax.sums, 0, (size_t)(R * PE_LANES) * sizeof(float));
    memset(z->softmax.O, 0, (size_t)(R * T->Dvp) * sizeof(float));
    if (pe_sticks(T->a))
        memset(z->stick.left, 0, (size_t)R * sizeof(double));
    z->hook.state = z->hook.own_state;
    if (T->a->state)
        z->hook.state = T->a->state + (h * T->a->sizes.Lq + i0) * PE_HOOK_STATE;
    else if (T->a->terms->hook.state)
        memset(z->hook.state, 0, (size_t)(R * PE_HOOK_STATE) * sizeof(double));
    z->backward       = 0;
    z->band.gamma_key = -1;
}

static void finish_rows(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a = T->a;
    a->kernels->lane_sums(z->softmax.factor, z->softmax.sums, R);
    for (int64_t r = 0; r < R; r++) {
        const double taken   = pe_center(T, h) + (pe_products64_serve(T) ? z->products64.top[r] : 0);
        const float  l       = z->softmax.factor[r];
        const int    seen    = l != 0;
        z->softmax.factor[r] = seen ? 1.0f / l : 0;
        double lse           = seen ? (double)z->softmax.most[r] + log((double)l) + taken : -INFINITY;
        if (a->has_sink)
            z->softmax.factor[r] *= (float)pe_sink_join(a, b, h, i0 + r, &lse);
        if (a->lse.data)
            pe_tensor_store_double(pe_tensor_element(&a->lse, b, h, i0 + r), a->lse.dtype, 1, &lse, 1);
    }
    a->kernels->scale_rows(z->softmax.O, T->Dvp, z->softmax.factor, R, a->sizes.Dv);
    pe_tile_rows_store_plain(&a->o, b, h, i0, R, z->softmax.O, T->Dvp, a->sizes.Dv);
}

/* Keys and values of tile J, which comes next, seen as rows that go with those of a tile of outputs, from row
   r on. */
static pe_ahead tile_ahead(const pe_tiles *T, const pe_packed *x, int64_t J, int64_t r)
{
    const int64_t D = T->a->sizes.D;
    const float  *K = T->a->grown ? x->Kgt : x->Kt;
    enum { BYTES = sizeof(float) };
    const int64_t k = (J * T->Bcp + r) * D * BYTES, v = (J * T->Bc + r) * x->v_stride * BYTES;
    return (pe_ahead){.at   = {(uintptr_t)K + (uintptr_t)k, (uintptr_t)x->values + (uintptr_t)v},
                      .step = {D * BYTES, x->v_stride * BYTES}};
}

/* O += W V, with the gate on the weights and the vectors that join the values; meanwhile tile `next`, -1 if
   there is none, is asked for. */
static void add_values(const pe_tiles *T, pe_scratch *z, const pe_packed *x, int64_t next)
{
    const int64_t       R = z->R, C = z->C;
    const pe_attention *a      = T->a;
    const pe_problem   *p      = &a->sizes;
    const int           joined = T->by[PE_R].rows && T->skewed;
    const int           flat   = joined && pe_run_is_flat(&T->by[PE_R], z->x0);
    const float        *V      = x->values + z->j0 * x->v_stride;
    int64_t             stride = x->v_stride;
    if (flat) { /* all keys are joined by one vector */
        a->kernels->join_rows(z->rows, T->Dvp, V, stride,
                              pe_rows_by(T, PE_R, z->h, pe_flat_row(&T->by[PE_R], z->x0)), C, T->Dvp);
        V      = z->rows;
        stride = T->Dvp;
    }
    for (int64_t r = 0; r < R;) {
        const pe_visible y     = pe_visible_keys(z, r);
        float           *O     = z->softmax.O + r * T->Dvp;
        const pe_ahead   ahead = tile_ahead(T, x, next < 0 ? z->J : next, r);
        a->kernels->product_plus(O, T->Dvp, z->S + r * T->Bcp + y.first, T->Bcp, V + y.first * stride, stride,
                                 y.rows, p->Dv, y.count, O, T->Dvp, next < 0 ? NULL : &ahead);
        r += y.rows;
    }
    if (!T->by[PE_R].rows || flat)
        return;
    if (T->skewed) {
        pe_tile_scores_shift(T, z, z->S);
        pe_tile_scores_band_product(T, z, z->softmax.O, pe_rows_by(T, PE_R, z->h, z->x0), p->Dv);
        return;
    }
    for (int64_t i = 0; i < R; i++)
        for (int64_t c = 0; c < C; c++) {
            const float  W = z->S[i * T->Bcp + c];
            const double t = z->q_pos[i] - z->k_pos[c];
            if (W == 0 || !pe_band_has(T, t))
                continue;
            const float *row = pe_rows_by(T, PE_R, z->h, pe_band_row(T, t));
            for (int64_t d = 0; d < p->Dv; d++)
                z->softmax.O[i * T->Dvp + d] += W * row[d];
        }
}

/* The key tile that query tile I meets first, before those to the left of it and then those to the right: the
   last one where keys are met one after the other, and the one at distance 0 where a bias that falls with the
   distance would raise the running maximum tile after tile if the farthest came first. -1: they come in
   order, as a band of products is walked. */
static int64_t first_tile(const pe_tiles *T, int64_t I)
{
    const pe_distances *d = &T->a->distances;
    if (T->a->terms->hook.state > 0 || pe_chains(T->a) || pe_sticks(T->a))
        return T->key_tiles - 1;
    if (!(pe_has(T->a->terms, PE_BIAS) || pe_drifts(T->a)) || pe_has(T->a->terms, PE_A) || !T->skewed ||
        d->step == 0)
        return -1;
    const int64_t j = I * T->Br + T->Br / 2 + d->t00 / d->step;
    return j < 0 ? -1 : pe_smaller(j / T->Bc, T->key_tiles - 1);
}

/* From tile `first` leftwards, then those to the right of it. */
static int64_t tile_at(int64_t step, int64_t first)
{
    return step <= first ? first - step : step;
}

/* The tile after `step`, if it is to be asked for; else, and where the queries see none, -1. Of a long
   sequence every tile comes from the last cache or from memory, whose latency the loads of a product do not
   hide; up to 4 MiB to ask costs 1 %. */
static int64_t next_tile(const pe_tiles *T, int64_t I, int64_t step, int64_t first)
{
    enum { FAR = 4 << 20 }; /* bytes of keys and values */
    const pe_problem *p   = &T->a->sizes;
    const int         far = p->Lk * (p->D + p->Dv) * (int64_t)sizeof(float) > FAR;
    const int64_t     J   = far && step + 1 < T->key_tiles ? tile_at(step + 1, first) : -1;
    return J >= 0 && pe_tile_is_reached(T, I, J) ? J : -1;
}

static void meet_chain(const pe_tiles *T, pe_scratch *z, const pe_packed *x)
{
    z->chain.Wt = x->Wt + z->J * T->a->sizes.D * T->Bcp;
    z->chain.U  = x->U + z->j0 * T->Dp;
    z->chain.M  = x->M + z->j0 * T->Bcp;
    pe_tile_chain_meet(T, z, z->Qu);
}

/* Rows of A meet the queries scaled another way. */
static float *profiled(const pe_tiles *T, const pe_scratch *z)
{
    return pe_has(T->a->terms, PE_A) ? z->Qw : NULL;
}

/* The queries of a tile, in each of their forms. */
static void load_queries(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a  = T->a;
    float              *Q2 = pe_forms(a->terms) > 1 ? z->Qu + T->Br * T->Dp : NULL;
    if (a->sizes.Lk <= PE_SHORT)
        pe_tile_rows_prefetch(&a->q, b + 1, h, i0, R, a->D);
    pe_tile_rows_load(T, z, z->Qu, Q2, PE_QUERIES, b, h, i0, R);
    pe_tile_rows_scale(T, z->Qu, profiled(T, z), b, h, i0, R);
    if (Q2)
        pe_tile_rows_scale(T, Q2, NULL, b, h, i0, R);
    z->forms.Q2 = Q2;
    for (int n = 1; n < T->forms[PE_QUERIES]; n++) {
        float *form = z->Qu + n * T->Br * T->Dp;
        pe_tile_rows_load_form(T, form, PE_QUERIES, n, b, h, i0, R);
        pe_tile_rows_scale(T, form, NULL, b, h, i0, R);
    }
    if (pe_chains(a))
        pe_tile_chain_resume(T, z->Qu, h, i0, R);
    z->map.Q    = z->Qu;
    z->map.step = T->Br * T->Dp;
}

/* A tile of keys: its scores to the caller, or its weights and values to the outputs. */
static void meet_keys(const pe_forward *f, pe_scratch *z, const pe_packed *x, int64_t step, int64_t first)
{
    const pe_tiles     *T       = &f->T;
    const pe_attention *a       = T->a;
    const int64_t       keys    = z->J * a->sizes.D * T->Bcp;
    const pe_softmax    running = {.shift    = z->softmax.most,
                                   .sums     = z->softmax.sums,
                                   .o        = z->softmax.O,
                                   .o_stride = T->Dvp,
                                   .columns  = a->sizes.Dv};
    pe_tile_terms       terms;
    z->growth.Kt = x->Kgt + keys;
    z->map.Kt    = x->Kmt + keys;
    if (pe_chains(a) && pe_tile_is_reached(T, z->I, z->J))
        meet_chain(T, z, x);
    if (!pe_tile_scores_multiply(T, z, z->S, z->Qu, profiled(T, z), x->Kt + keys, x->key_mask, first < 0,
                                 &terms))
        return;
    if (pe_chains(a))
        pe_tile_chain_step(T, z, z->Qu);
    if (f->S) {
        a->kernels->scores_finish(z->S, T->Bcp, &terms, z->R, z->C);
        store_scores(f, z);
        return;
    }
    terms.gate = pe_tile_scores_gate(T, z, &terms.gate_step);
    if (pe_sticks(a))
        pe_tile_stick_weights(T, z, &terms);
    else
        a->kernels->softmax(z->S, T->Bcp, &terms, &running, z->R, z->C);
    add_values(T, z, x, next_tile(T, z->I, step, first));
}

static void forward_tile(void *context, int64_t index, int thread)
{
    const pe_forward   *f = context;
    const pe_tiles     *T = &f->T;
    const pe_attention *a = T->a;
    const pe_problem   *p = &a->sizes;
    const int64_t group = p->H / p->G, pair = index / f->tasks_per_pair, task = index % f->tasks_per_pair;
    const int64_t b = (f->first + pair) / p->G, h = (f->first + pair) % p->G * group + task % group;
    const int64_t I  = T->query_tiles - 1 - task / group; /* longest causal rows first */
    const int64_t i0 = I * T->Br, R = pe_smaller(T->Br, p->Lq - i0), first = first_tile(T, I);
    pe_scratch   *z = T->scratch + thread;
    start_rows(T, z, h, i0, R);
    load_queries(T, z, b, h, i0, R);
    if (pe_products64_serve(T))
        pe_products64_fill_row(T, z, b, h, i0, R, f->S != NULL);
    for (int64_t step = 0; step < T->key_tiles; step++) {
        pe_tile_begin(T, z, b, h, I, tile_at(step, first));
        meet_keys(f, z, f->pairs + pair, step, first);
    }
    if (pe_chains(a))
        pe_tile_chain_leave(T, z->Qu, h, i0, R);
    if (!f->S && pe_sticks(a))
        pe_tile_stick_finish(T, z, b, h, i0, R);
    else if (!f->S)
        finish_rows(T, z, b, h, i0, R);
}

pe_forward pe_tiled_forward_lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_forward        f = {.T = pe_tiles_lay_out(a, arena, 0)};
    const pe_tiles   *T = &f.T;
    f.wave              = pe_smaller(p->B * p->G, a->team.threads);
    f.tasks_per_pair    = T->query_tiles * (p->H / p->G);
    f.pairs             = pe_arena_take(arena, (size_t)f.wave * sizeof *f.pairs);
    for (int64_t i = 0; i < f.wave; i++) {
        pe_packed x = {0};
        x.Kt        = pe_arena_floats(arena, T->key_tiles * p->D * T->Bcp);
        x.Kgt       = pe_arena_floats(arena, a->grown ? T->key_tiles * p->D * T->Bcp : 0);
        x.Kmt       = pe_arena_floats(arena, (T->forms[PE_KEYS] - 1) * T->key_tiles * p->D * T->Bcp);
        x.Wt        = pe_arena_floats(arena, pe_chains(a) ? T->key_tiles * p->D * T->Bcp : 0);
        x.U         = pe_arena_floats(arena, pe_chains(a) ? p->Lk * T->Dp : 0);
        x.M         = pe_arena_floats(arena, pe_chains(a) ? p->Lk * T->Bcp : 0);
        x.V         = pe_arena_floats(arena, p->Lk * T->Dvp);
        x.key       = pe_arena_floats(arena, pe_padded(p->Lk) + PE_LANES);
        if (f.pairs)
            f.pairs[i] = x;
    }
    return f;
}

void pe_tiled_forward_run(pe_forward *f)
{
    const pe_attention *a     = f->T.a;
    const int64_t       pairs = a->sizes.B * a->sizes.G;
    for (f->first = 0; f->first < pairs; f->first += f->wave) {
        const int64_t n = pe_smaller(f->wave, pairs - f->first);
        for (int64_t pair = 0; pair < n; pair++)
            begin_pair(f, pair);
        pe_parallel_for(n * f->T.key_tiles, &a->team, pack_tile, f);
        pe_parallel_for(n * f->tasks_per_pair, &a->team, forward_tile, f);
    }
}
