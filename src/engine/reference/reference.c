/* SPDX-License-Identifier: MIT */
/*
 * reference.c: executor 1, attention in double, direct
 *
 * One (batch item, head) at a time, one query row at a time: scores, softmax, output - as the formula in
 * terms.h reads. Slow and obviously right: the tiled executor is tested against it, and it is what the
 * reference cases in float64 are held against. A row of the forward depends on nothing but its own query, so
 * a chunk of queries gives the same bits as the full pass. The backward is serial: sums have one order.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/reference/reference.h"

/* ---- one head in double ---- */

static int64_t longest_row(const pe_problem *p)
{
    return p->Lk > p->Dv ? p->Lk : p->Dv;
}

double *pe_reference_row(const pe_reference_head *x, int thread, int which)
{
    return x->rows + (thread * PE_REFERENCE_ROWS + which) * longest_row(&x->a->sizes);
}

static int64_t table_size(const pe_attention *a, pe_kind kind)
{
    return pe_has(a->terms, kind) ? a->max_distances * pe_member_width(&a->sizes, kind) : 0;
}

int64_t pe_query_width(const pe_attention *a)
{
    return pe_forms(a->terms) * a->sizes.D;
}

/* Rows to prepare at once, in numbers of the caller's; 0: rows are taken as they are. */
static int64_t raw_size(const pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    return a->terms->prepare.fill ? (p->Lq > p->Lk ? p->Lq : p->Lk) * a->D : 0;
}

pe_reference_head pe_reference_lay_out(const pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    pe_reference_head x = {.a = a};
    x.growth            = pe_take_doubles(arena, a->grown ? (1 + a->threads) * p->D : 0);
    if (a->grown && arena->memory)
        pe_channel_growth(a->grown, p->D, x.growth);
    x.raw   = pe_take_doubles(arena, raw_size(a));
    x.Q     = pe_take_doubles(arena, p->Lq * pe_query_width(a));
    x.K     = pe_take_doubles(arena, p->Lk * p->D);
    x.V     = pe_take_doubles(arena, p->Lk * p->Dv);
    x.q_pos = pe_take_doubles(arena, p->Lq);
    x.k_pos = pe_take_doubles(arena, p->Lk);
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        x.by[kind] = pe_take_doubles(arena, table_size(a, kind));
    x.rows  = pe_take_doubles(arena, PE_REFERENCE_ROWS * a->threads * longest_row(p));
    x.state = pe_take_doubles(arena, PE_HOOK_STATE * a->threads);
    if (backward) {
        x.draw = pe_take_doubles(arena, raw_size(a));
        x.dQ   = pe_take_doubles(arena, p->Lq * pe_query_width(a));
        x.dK   = pe_take_doubles(arena, p->Lk * p->D);
        x.dV   = pe_take_doubles(arena, p->Lk * p->Dv);
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            x.dby[kind] = kind == PE_B && pe_tables_shared(a->terms)
                              ? x.dby[PE_A]
                              : pe_take_doubles(arena, table_size(a, kind));
        x.dout = pe_take_doubles(arena, p->Dv);
    }
    return x;
}

void pe_reference_load_rows(double *to, const posenc_tensor *t, int64_t b, int64_t h, int64_t L,
                            int64_t width)
{
    for (int64_t s = 0; s < L; s++)
        pe_load_double(to + s * width, pe_row(t, b, h, s), t->dtype, t->stride[3], width);
}

static void reference_tables(const pe_reference_head *x, int64_t h)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m    = pe_member(a->terms, kind);
        const pe_part       *part = &a->parts[m.owner];
        if (pe_has(a->terms, kind))
            pe_member_fill(part, &m, pe_member_width(&a->sizes, kind), h, a->distances.low,
                           a->distances.count, x->by[kind]);
    }
}

const double *pe_reference_member(const pe_reference_head *x, pe_kind kind, int64_t i, int64_t j)
{
    if (!pe_has(x->a->terms, kind))
        return NULL;
    const int64_t t = (int64_t)(x->q_pos[i] - x->k_pos[j]) - x->a->distances.low;
    return x->by[kind] + t * pe_member_width(&x->a->sizes, kind);
}

static void reference_positions(pe_reference_head *x, int64_t b)
{
    const pe_attention *a = x->a;
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        x->q_pos[i] = pe_position(&a->q_pos, b, i);
    for (int64_t j = 0; j < a->sizes.Lk; j++)
        x->k_pos[j] = pe_position(&a->k_pos, b, j);
}

static void reference_prepare(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const int           keys = side == PE_KEYS;
    a->terms->prepare.fill(part->p, part->par, side, h, keys ? x->k_pos : x->q_pos,
                           keys ? a->sizes.Lk : a->sizes.Lq, x->raw, keys ? x->K : x->Q);
}

void pe_reference_turn(const pe_reference_head *x, pe_side side, int64_t h, double *rows, double sign)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    pe_turn             own;
    const pe_turn      *turn = pe_turn_of_head(&own, keys ? a->turn_keys : a->turn, h);
    const int64_t L = keys ? a->sizes.Lk : a->sizes.Lq, D = a->sizes.D, forms = keys ? 1 : pe_forms(a->terms);
    for (int64_t r = 0; r < L * forms; r++) {
        double at[PE_MAX_AXES];
        pe_turn_place(turn, keys ? &a->k_turn : &a->q_turn, x->b, r / forms, at);
        pe_turn_row(rows + r * D, D, turn, at, sign);
    }
}

/* Queries of head h, or keys of key head h, prepared and rotated. */
static void load_side(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    const int64_t       L    = keys ? a->sizes.Lk : a->sizes.Lq;
    double             *rows = keys ? x->K : x->Q;
    pe_reference_load_rows(a->terms->prepare.fill ? x->raw : rows, keys ? &a->k : &a->q, x->b, h, L, a->D);
    if (a->terms->prepare.fill)
        reference_prepare(x, side, h);
    if (a->turn)
        pe_reference_turn(x, side, h, rows, 1);
}

void pe_reference_load(pe_reference_head *x, int64_t b, int64_t h)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const int64_t       g = h / (p->H / p->G);
    x->b                  = b;
    x->h                  = h;
    reference_positions(x, b);
    load_side(x, PE_QUERIES, h);
    load_side(x, PE_KEYS, g);
    if (a->v.data)
        pe_reference_load_rows(x->V, &a->v, b, g, p->Lk, p->Dv);
    reference_tables(x, h);
}

/* ---- rows of scores, as the formula of terms.h reads ---- */

double pe_reference_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* pe_reference_dot(a + b, c), b may be NULL */
static double dot_shifted(const double *a, const double *b, const double *c, int64_t n)
{
    return b ? pe_reference_dot(a, c, n) + pe_reference_dot(b, c, n) : pe_reference_dot(a, c, n);
}

int pe_reference_differs(const pe_reference_head *x, int64_t i, int64_t j)
{
    return pe_segment(&x->a->q_segments, x->b, i) != pe_segment(&x->a->k_segments, x->b, j);
}

pe_tile pe_reference_tile(const pe_reference_head *x, int64_t i, int thread)
{
    const pe_problem *p = &x->a->sizes;
    return (pe_tile){.h      = x->h,
                     .rows   = 1,
                     .cols   = p->Lk,
                     .stride = p->Lk,
                     .i0     = i,
                     .q_pos  = x->q_pos + i,
                     .k_pos  = x->k_pos,
                     .scale  = x->a->terms->scale,
                     .q      = x->Q + i * pe_query_width(x->a),
                     .s      = pe_reference_row(x, thread, PE_ROW_PRODUCTS),
                     .state  = x->state + thread * PE_HOOK_STATE};
}

/* X of row i into s, or the numbers of its pairs; zero without either. */
static void visit_row(const pe_reference_head *x, int64_t i, double *s, int thread)
{
    const pe_attention *a    = x->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const pe_tile       tile = pe_reference_tile(x, i, thread);
    memset(s, 0, (size_t)a->sizes.Lk * sizeof *s);
    if (a->terms->pairs.matrix)
        pe_pairs_load(a, x->h, i, 0, a->sizes.Lk, s);
    if (!a->terms->hook.visit)
        return;
    memset(tile.state, 0, PE_HOOK_STATE * sizeof(double));
    a->terms->hook.visit(part->p, part->par, &tile, s);
}

const double *pe_pair_growth(const pe_reference_head *x, int64_t i, int64_t j, int thread)
{
    const int64_t D = x->a->sizes.D;
    double       *f = x->growth + (1 + thread) * D;
    if (!x->a->grown)
        return NULL;
    for (int64_t d = 0; d < D; d++)
        f[d] = exp(x->growth[d] * (x->q_pos[i] - x->k_pos[j]));
    return f;
}

/* sum of f (a + b) c, where f and b may be NULL */
static double dot_grown(const double *a, const double *b, const double *c, const double *f, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; f && i < n; i++)
        sum += f[i] * (a[i] + (b ? b[i] : 0)) * c[i];
    return f ? sum : dot_shifted(a, b, c, n);
}

double pe_reference_product(const pe_reference_head *x, int64_t i, int64_t j, double share[2], int thread)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const double *q = x->Q + i * pe_query_width(a), *k = x->K + j * D, *f = pe_pair_growth(x, i, j, thread);
    const double  s1 = dot_grown(q, pe_head_vector(a, a->terms->u, x->h), k, f, D);
    if (pe_forms(a->terms) == 1)
        return s1;
    const double s2 = dot_grown(q + D, NULL, k, f, D), modulus = hypot(s1, s2);
    if (share) {
        share[0] = modulus > 0 ? s1 / modulus : 0;
        share[1] = modulus > 0 ? s2 / modulus : 0;
    }
    return modulus;
}

int pe_reference_is_apart(const pe_reference_head *x, int64_t i, int64_t j)
{
    return pe_is_apart(x->a, x->q_pos[i]) || pe_is_apart(x->a, x->k_pos[j]);
}

void pe_reference_score_row(const pe_reference_head *x, int64_t i, double *s, int thread)
{
    const pe_attention *a = x->a;
    const pe_terms     *m = a->terms;
    const pe_problem   *p = &a->sizes;
    const double       *q = x->Q + i * pe_query_width(a), *w = pe_head_vector(a, m->w, x->h),
                 *us = pe_head_vector(a, m->us, x->h);
    double *products = pe_reference_row(x, thread, PE_ROW_PRODUCTS);
    for (int64_t j = 0; j < p->Lk; j++)
        products[j] = !pe_is_allowed(a, x->b, x->h, i, j) ? -INFINITY
                      : m->hook.content ? m->scale * pe_reference_product(x, i, j, NULL, thread)
                                        : 0; /* nobody looks */
    visit_row(x, i, s, thread);
    for (int64_t j = 0; j < p->Lk; j++) {
        if (products[j] == -INFINITY && !a->unmasked) {
            s[j] = -INFINITY;
            continue;
        }
        const double *k = x->K + j * p->D, *A = pe_reference_member(x, PE_A, i, j),
                     *B = pe_reference_member(x, PE_B, i, j),
                     *b = pe_reference_is_apart(x, i, j) ? NULL : pe_reference_member(x, PE_BIAS, i, j);
        double sum      = 0;
        if (A)
            sum += dot_shifted(q, w, A, p->D);
        if (B)
            sum += pe_reference_dot(k, B, p->D);
        if (m->G != PE_NONE)
            sum += dot_shifted(q, us, pe_segment_vector(a, x->h, pe_reference_differs(x, i, j)), p->D);
        s[j] += m->scale * (pe_reference_product(x, i, j, NULL, thread) + sum) + (b ? *b : 0);
    }
}

/* ---- forward ---- */

static void forward_row(void *context, int64_t i, int thread)
{
    const pe_reference_head *x = context;
    const pe_attention      *a = x->a;
    const pe_problem        *p = &a->sizes;
    double *s = pe_reference_row(x, thread, PE_ROW_SCORES), *o = pe_reference_row(x, thread, PE_ROW_OUTPUT);
    pe_reference_score_row(x, i, s, thread);
    double m = -INFINITY, sum = 0, lse = -INFINITY;
    for (int64_t j = 0; j < p->Lk; j++)
        m = fmax(m, s[j]);
    memset(o, 0, (size_t)p->Dv * sizeof *o);
    for (int64_t j = 0; m > -INFINITY && j < p->Lk; j++) {
        const double e = exp(s[j] - m);
        sum += e;
        if (e == 0) /* masked: its distance may have no row */
            continue;
        const double *c = pe_reference_member(x, PE_GATE, i, j), *r = pe_reference_member(x, PE_R, i, j);
        for (int64_t d = 0; d < p->Dv; d++)
            o[d] += e * (c ? *c : 1) * (x->V[j * p->Dv + d] + (r ? r[d] : 0));
    }
    for (int64_t d = 0; m > -INFINITY && d < p->Dv; d++)
        o[d] /= sum;
    if (m > -INFINITY)
        lse = m + log(sum);
    pe_store_double(pe_row(&a->o, x->b, x->h, i), a->o.dtype, 1, o, p->Dv);
    if (a->lse.data)
        pe_store_double(pe_element(&a->lse, x->b, x->h, i), a->lse.dtype, 1, &lse, 1);
}

static void scores_row(void *context, int64_t i, int thread)
{
    const pe_reference_head *x = context;
    double                  *s = pe_reference_row(x, thread, PE_ROW_SCORES);
    pe_reference_score_row(x, i, s, thread);
    pe_store_double(pe_row(x->S, x->b, x->h, i), x->S->dtype, x->S->stride[3], s, x->a->sizes.Lk);
}

static void each_head(const pe_attention *a, const posenc_tensor *S, pe_arena *arena, pe_parallel_task *row)
{
    pe_reference_head x = pe_reference_lay_out(a, arena, 0);
    x.S                 = S;
    for (int64_t b = 0; arena->memory && b < a->sizes.B; b++)
        for (int64_t h = 0; h < a->sizes.H; h++) {
            pe_reference_load(&x, b, h);
            pe_parallel_for(a->sizes.Lq, a->threads, row, &x);
        }
}

void pe_reference_forward(const pe_attention *a, pe_arena *arena)
{
    each_head(a, NULL, arena, forward_row);
}

void pe_reference_scores(const pe_attention *a, const posenc_tensor *S, pe_arena *arena)
{
    each_head(a, S, arena, scores_row);
}

void pe_attend_bias(const pe_attention *a, const posenc_tensor *bias, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_reference_head x = pe_reference_lay_out(a, arena, 0);
    if (!arena->memory)
        return;
    memset(x.Q, 0, (size_t)(p->Lq * pe_query_width(a)) * sizeof(double));
    memset(x.K, 0, (size_t)(p->Lk * p->D) * sizeof(double));
    memset(x.raw, 0, (size_t)raw_size(a) * sizeof(double));
    reference_positions(&x, 0);
    for (int64_t h = 0; h < p->H; h++) {
        x.h = h;
        if (a->terms->prepare.fill) {
            reference_prepare(&x, PE_QUERIES, h);
            reference_prepare(&x, PE_KEYS, h / (p->H / p->G));
        }
        reference_tables(&x, h);
        for (int64_t i = 0; i < p->Lq; i++) {
            pe_reference_score_row(&x, i, pe_reference_row(&x, 0, PE_ROW_SCORES), 0);
            pe_store_double(pe_row(bias, h, i, 0), bias->dtype, bias->stride[2],
                            pe_reference_row(&x, 0, PE_ROW_SCORES), p->Lk);
        }
    }
}
