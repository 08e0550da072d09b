/* SPDX-License-Identifier: MIT */
/*
 * turn.c: rotary angles that a token input makes
 *
 * Formula  token l turns pair m by the angle a_lm: of one number of the token z_l w_m; of its own angles
 *          phi_lm; of steps w_m times the sum of phi_um over the tokens u <= l of its segment. A key is a
 *          token, a query turns by the angle of that which is itself (pe_own), by 0 before its first
 * Adjoint  d a = x_a dx_b - x_b dx_a of the pair (x_a, x_b), over the key heads and query heads that read the
 *          angle; of steps d phi_um = w_m times the sum of d a_lm over l >= u
 *
 * Sums are double. Stored are those after each EVERY tokens, which is little, and for a few queries fewer; a
 * table is filled in blocks, each from the last sum before it on. A cache that keeps all sums gives them, and
 * nothing is added up: without them decoding adds up its whole past for each token.
 * The step of a key that padding hides counts as 0. Gates of channels (wall.c) are sums of the same kind, of
 * query heads and without a new start in each segment.
 */
#include <string.h>

#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/score/attention.h"

enum { EVERY = 512, FEW_BYTES = 1 << 18 };

/* Numbers of a token: one, or one for each pair or channel. */
static int64_t width_of(const pe_attention *a)
{
    return pe_walls(a) ? a->D : a->rotary->content == PE_CONTENT_POSITION ? 1 : a->rotary->M;
}

static int is_summed(const pe_attention *a)
{
    return (pe_walls(a) || a->rotary->content == PE_CONTENT_STEP) && !a->turn.given.data;
}

/* Rows of the token input: of query heads, of key heads, or one. */
static int64_t rows_of(const pe_attention *a)
{
    const pe_turned *t = &a->turn;
    return t->given.data ? t->given.shape[1]
           : t->token    ? t->token->shape[1]
           : pe_walls(a) ? t->heads * t->share
                         : t->heads;
}

/* ---- memory ---- */

/* Sums that are stored: a few queries must not need memory that grows with the keys or with the sequences. */
static int64_t stored_of(const pe_attention *a)
{
    const pe_problem *p   = &a->sizes;
    const int64_t     row = (pe_walls(a) ? p->H : p->G) * width_of(a) * (int64_t)sizeof(double),
                  all     = p->Lk / EVERY;
    return p->Lq > POSENC_DECODE_QUERIES ? all : pe_smaller(all, FEW_BYTES / (p->B * row));
}

void pe_turn_lay_out(pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    pe_turned        *t = &a->turn;
    if (!pe_turns(a) && !pe_walls(a))
        return;
    if (pe_walls(a)) {
        t->token  = a->tokens[PE_SCORE][a->terms->wall.token];
        t->dtoken = a->dtokens[PE_SCORE][a->terms->wall.token];
    }
    t->heads       = p->G;
    t->share       = p->H / p->G;
    t->queries     = p->Lq;
    t->keys        = p->Lk;
    t->key_allowed = a->key_allowed;
    t->k_segments  = a->k_segments;
    t->stored      = stored_of(a);
    t->every       = p->Lk / EVERY == t->stored ? EVERY : (p->Lk / (t->stored + 1) / EVERY + 1) * EVERY;
    t->own         = pe_arena_take(arena, pe_arena_bytes(p->B * p->Lq, sizeof *t->own));
    if (is_summed(a)) {
        t->sums = pe_arena_doubles(arena, p->B * rows_of(a) * t->stored * width_of(a));
        t->walk = pe_arena_doubles(arena, a->team.threads * PE_TURN_WALK * width_of(a));
    }
    if (!backward || (!a->for_any_run && !t->dtoken))
        return;
    t->first = pe_arena_take(arena, pe_arena_bytes(p->B * p->Lk, sizeof *t->first));
    t->next  = pe_arena_take(arena, pe_arena_bytes(p->B * p->Lq, sizeof *t->next));
    t->back =
        pe_arena_doubles(arena, a->team.threads * (pe_walls(a) ? 4 * a->D : 2 * a->rotary->M + 2 * a->D));
    if (pe_walls(a))
        t->dkey = pe_arena_doubles(arena, pe_sizes_product(p->H * p->Lk, a->D));
}

/* ---- what a token says ---- */

static int starts_segment(const pe_turned *t, int64_t b, int64_t l)
{
    return l == 0 || pe_pairs_segment(&t->k_segments, b, l) != pe_pairs_segment(&t->k_segments, b, l - 1);
}

static void load(const posenc_tensor *t, int64_t b, int64_t row, int64_t l, int64_t n, double to[])
{
    pe_tensor_load_double(to, pe_tensor_row(t, b, row, l), t->dtype, t->stride[3], n);
}

/* One token further: x->at of n numbers, and what it brings after them. */
static void step(const pe_attention *a, pe_turn_walk *x)
{
    const int64_t n = width_of(a);
    x->token++;
    if (!pe_walls(a) && starts_segment(&a->turn, x->b, x->token))
        memset(x->at, 0, (size_t)n * sizeof *x->at);
    if (pe_keys_is_padding(&a->turn.key_allowed, x->b, x->token))
        return;
    load(a->turn.token, x->b, x->row, x->token, n, x->at + (pe_walls(a) ? 2 : 1) * n);
    if (pe_walls(a))
        a->terms->wall.gates(a->parts[PE_SCORE].p, x->at + 2 * n, n, x->at + n);
    for (int64_t m = 0; m < n; m++)
        x->at[m] += x->at[n + m];
}

/* The last stored sum that is not beyond a token. */
static void restart(const pe_attention *a, pe_turn_walk *x, int64_t token)
{
    const int64_t n = width_of(a), have = (token + 1) / a->turn.every;
    x->token = have * a->turn.every - 1;
    if (have)
        memcpy(x->at, a->turn.sums + ((x->b * rows_of(a) + x->row) * a->turn.stored + have - 1) * n,
               (size_t)n * sizeof *x->at);
    else
        memset(x->at, 0, (size_t)n * sizeof *x->at);
}

int64_t pe_turn_row(const pe_attention *a, int64_t h)
{
    return (a->from.h + h) * rows_of(a) / (a->turn.heads * a->turn.share);
}

pe_turn_walk pe_turn_start(const pe_attention *a, int64_t b, int64_t row, double *memory)
{
    return (pe_turn_walk){.b = a->from.b + b, .row = row, .token = INT64_MAX, .at = memory};
}

/* Of a token of the whole run, or -1. */
static void go_to(const pe_attention *a, pe_turn_walk *x, int64_t token)
{
    const pe_turned *t = &a->turn;
    if (token < 0) {
        memset(x->at, 0, (size_t)width_of(a) * sizeof *x->at);
        x->token = INT64_MAX;
    } else if (!is_summed(a))
        load(t->given.data ? &t->given : t->token, x->b, x->row, token, width_of(a), x->at);
    else {
        if (x->token > token || token - x->token >= t->every)
            restart(a, x, token);
        while (x->token < token)
            step(a, x);
    }
}

const double *pe_turn_at(const pe_attention *a, pe_turn_walk *x, pe_side side, int64_t s)
{
    go_to(a, x, side == PE_KEYS ? a->from.j + s : a->turn.own[x->b * a->turn.queries + a->from.i + s]);
    return x->at;
}

/* ---- numbers of a run ---- */

static void sum_row(void *context, int64_t index, int thread)
{
    const pe_attention *a = context;
    const int64_t       n = width_of(a), rows = rows_of(a);
    double             *memory = a->turn.walk + thread * PE_TURN_WALK * n;
    pe_turn_walk        x      = {.b = index / rows, .row = index % rows, .token = -1, .at = memory};
    memset(x.at, 0, (size_t)n * sizeof *x.at);
    for (int64_t have = 0; have < a->turn.keys / a->turn.every; have++) {
        while (x.token + 1 < (have + 1) * a->turn.every)
            step(a, &x);
        memcpy(a->turn.sums + (index * a->turn.stored + have) * n, x.at, (size_t)n * sizeof *x.at);
    }
}

void pe_turn_fill(pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    if (!pe_turns(a) && !pe_walls(a))
        return;
    for (int64_t b = 0; b < p->B; b++) {
        pe_own own = {.keys = p->Lk};
        for (int64_t i = 0; i < p->Lq; i++) {
            pe_own_find(&own, a, b, i);
            const int64_t n            = pe_own_count(&own, a, b, i, 1);
            a->turn.own[b * p->Lq + i] = n || pe_walls(a) ? own.first + n - 1 : -1;
        }
    }
    if (is_summed(a))
        pe_parallel_for(p->B * rows_of(a), &a->team, sum_row, a);
}

int64_t pe_turn_rows(const pe_attention *a)
{
    const int64_t most = pe_walls(a) ? a->sizes.H : a->sizes.G;
    return a->for_any_run ? most : pe_turn_row(a, a->sizes.H - 1) - pe_turn_row(a, 0) + 1;
}

/* ---- tables ---- */

typedef struct turned_table {
    const pe_attention      *a;
    const pe_rotation_table *t;
    pe_side                  side;
    int64_t                  blocks;
} turned_table;

static void fill_rows(void *context, int64_t index, int thread)
{
    const turned_table      *j = context;
    const pe_rotation_table *t = j->t;
    const int64_t row = index / j->blocks, s0 = index % j->blocks * EVERY, end = pe_smaller(s0 + EVERY, t->L),
                  width = pe_rotation_width(t->by);
    pe_turn_walk x      = pe_turn_start(j->a, row / t->heads, pe_turn_row(j->a, 0) + row % t->heads,
                                        t->walks + thread * t->walk);
    for (int64_t s = s0; s < end; s++)
        pe_rotation_fill_at(t->rows + (row * t->L + s) * width, t->by, pe_turn_at(j->a, &x, j->side, s),
                            j->a->kernels);
}

void pe_turn_table(const pe_attention *a, const pe_rotation_table *t, pe_side side)
{
    turned_table j = {a, t, side, (t->L + EVERY - 1) / EVERY};
    pe_parallel_for(t->batches * t->heads * j.blocks, &a->team, fill_rows, &j);
}

/* ---- backward ---- */

int pe_turn_adds(const pe_attention *a, int64_t b, int64_t token)
{
    return token + 1 < a->turn.keys && !starts_segment(&a->turn, b, token + 1);
}

/* For each token of an item the queries that turn by its angle, in their order. */
void pe_turn_list(const pe_attention *a, int64_t b)
{
    const pe_turned *t     = &a->turn;
    int64_t         *first = t->first + b * t->keys, *next = t->next + b * t->queries;
    for (int64_t l = 0; l < t->keys; l++)
        first[l] = -1;
    for (int64_t i = t->queries - 1; i >= 0; i--) {
        const int64_t l = t->own[b * t->queries + i];
        if (l < 0)
            continue;
        next[i]  = first[l];
        first[l] = i;
    }
}

typedef struct pairs_of {
    double *dangle, *sum, *x, *dx; /* [M] [M] [D] [D] */
} pairs_of;

/* Cotangents of the angles of token l, from all rows that turned by them. */
static void gather(const pe_attention *a, const pe_turn_back *w, int64_t b, int64_t row, int64_t l,
                   const pairs_of *z)
{
    const pe_turned *t     = &a->turn;
    const int64_t    share = t->heads / t->dtoken->shape[1];
    memset(z->dangle, 0, (size_t)a->rotary->M * sizeof *z->dangle);
    for (int64_t g = row * share; g < (row + 1) * share; g++) {
        if (w->k) {
            pe_keys_load_double(a, z->x, w->k, b, g, l, a->D);
            pe_tensor_load_double(z->dx, pe_tensor_row(w->dk, b, g, l), w->dk->dtype, 1, a->D);
            pe_rotation_turns(z->dangle, a->rotary, w->sign, z->x, z->dx);
        }
        for (int64_t i = w->q ? t->first[b * t->keys + l] : -1; i >= 0; i = t->next[b * t->queries + i])
            for (int64_t h = g * t->share; h < (g + 1) * t->share; h++) {
                pe_tensor_load_double(z->x, pe_tensor_row(w->q, b, h, i), w->q->dtype, 1, a->D);
                pe_tensor_load_double(z->dx, pe_tensor_row(w->dq, b, h, i), w->dq->dtype, 1, a->D);
                pe_rotation_turns(z->dangle, a->rotary, w->sign, z->x, z->dx);
            }
    }
}

typedef struct back_job {
    const pe_attention *a;
    const pe_turn_back *of;
} back_job;

static void fold_row(void *context, int64_t index, int thread)
{
    const back_job     *j = context;
    const pe_attention *a = j->a;
    const pe_turned    *t = &a->turn;
    const int64_t       M = a->rotary->M, b = index / t->dtoken->shape[1], row = index % t->dtoken->shape[1];
    double             *own = t->back + thread * (2 * M + 2 * a->D);
    const pairs_of      z   = {own, own + M, own + 2 * M, own + 2 * M + a->D};
    const pe_content    is  = a->rotary->content;
    memset(z.sum, 0, (size_t)M * sizeof *z.sum);
    for (int64_t l = t->keys - 1; l >= 0; l--) {
        const int adds = is == PE_CONTENT_STEP && pe_turn_adds(a, b, l);
        gather(a, j->of, b, row, l, &z);
        for (int64_t m = 0; m < M; m++) {
            const double dp = a->rotary->w[m] * z.dangle[m];
            z.sum[m]        = (adds ? z.sum[m] : 0) + dp;
            if (is == PE_CONTENT_POSITION && m > 0)
                z.sum[0] += dp;
            z.dangle[m] = is == PE_CONTENT_STEP && pe_keys_is_padding(&t->key_allowed, b, l) ? 0 : z.sum[m];
        }
        z.dangle[0] = is == PE_CONTENT_POSITION && M ? z.sum[0] : z.dangle[0];
        pe_tensor_store_double(pe_tensor_row(t->dtoken, b, row, l), t->dtoken->dtype, 1, z.dangle,
                               width_of(a));
    }
}

void pe_turn_back_run(const pe_attention *a, const pe_turn_back *of)
{
    back_job j = {a, of};
    if (!pe_turns(a) || !a->turn.dtoken)
        return;
    for (int64_t b = 0; b < a->sizes.B; b++)
        pe_turn_list(a, b);
    pe_parallel_for(a->sizes.B * a->turn.dtoken->shape[1], &a->team, fold_row, &j);
}
