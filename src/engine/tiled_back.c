/* SPDX-License-Identifier: MIT */
/*
 * tiled_back.c: executor 2, backward
 *
 * Scores are computed again tile by tile and turned into weights by the saved log-sum-exp, so nothing of Lq x Lk
 * elements exists. One item of the batch at a time: its queries and cotangents are prepared once (linear memory);
 * then each task (key head, chunk) owns key tiles J = chunk, chunk + chunks, ... : it loads their keys and values, and
 * dK and dV of a tile are complete in one task; dQ and the gradients by distance are added up per chunk and summed afterwards in the order of
 * chunks. The number of chunks follows from the shape alone, so the bits do not depend on threads.
 *
 * With W = exp(S - lse) and delta_i = dO_i . O_i (= sum_j W_ij dW_ij):
 *   dW = dO V^T     dS = W * (dW - delta)     dV += W^T dO     dK += dS^T Qu     dQ += dS K     db[t] += dS
 *   by distance, with a tile X shifted onto diagonals as X~: dQ += dS~ A     dA += dS~^T Qw     dr += W~^T dO
 *   with a gate c: dO^T(v + r) = dWc for the gated weight, dc[t] += W dWc, dW = c dWc, and dV, dr see c W
 *   by key, with the columns of dS shifted instead: dK += dS^ B     dB += dS^^T K
 * Qu and Qw carry the scale, so only dQ, du and dw are multiplied by it at the end.
 *
 * Source   Dao et al. 2022, arXiv:2205.14135, algorithm 4
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/tiles.h"

typedef struct backward {
    pe_tiles T;
    int64_t  b;      /* the item at hand */
    int64_t  chunks; /* per key head */
    int      wants[PE_KINDS], wants_u, wants_w, wants_us, wants_G, wants_hook;
    /* the item's queries and keys */
    float       *Qu, *Qw, *dout, *delta, *lse; /* [forms,H,Lq,Dp], [H,Lq,Dp], [H,Lq,Dvp], [H,Lq], [H,Lq] */
    float       *key;                          /* [Lk] */
    const float *key_mask;
    /* sums: of the item, and over the batch */
    float   *dQ;             /* [forms,chunks,H,Lq,Dp] */
    float   *dK;             /* [G,Lk,Dp] of prepared keys, until they are folded */
    double  *dby1[PE_KINDS]; /* [H,chunks,table_rows] of bias and gate */
    float   *dby[PE_KINDS];  /* [H,chunks,table_rows,row] of A, B, r */
    double  *du, *dw, *dus;  /* [H,chunks,D] */
    double  *dG;             /* [H,chunks,2,D] */
    double  *hook;           /* [G*chunks, hook_count]: parameters of the part, end to end */
    double **hook_pointers;  /* [G*chunks, PE_HOOK_PARAMS] */
    double  *total, *mass;   /* [D] of one head: see find_residue */
    int64_t  hook_count;
    double  *state;  /* [H,Lq,PE_HOOK_STATE] of a hook that travels */
    int is_short;    /* rows of at most PE_SHORT keys, or sharp: delta is taken from the weights themselves */
    double *moments; /* [H,Lq,2] of such rows: sums of W and W*dW */
} backward;

enum { MANY_HEADS = 4 };

/* Two chunks keep two cores busy on one head; from four key heads on the heads do. */
static int64_t chunk_count(const pe_tiles *T)
{
    const int travels = T->a->terms->hook.state > 0; /* its key tiles have an order */
    return T->a->sizes.G >= MANY_HEADS || travels ? 1 : pe_smaller(2, T->key_tiles);
}

static int hook_learns(const pe_terms *m, int param)
{
    return !m->hook.learns || m->hook.learns >> param & 1;
}

/* While the plan counts, every gradient that this encoding could have is wanted. */
static void decide(backward *w, int all)
{
    const pe_attention *a    = w->T.a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const pe_terms     *m    = a->terms;
    const int           any  = all || pe_part_wanted(part);
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance x = pe_member(m, kind);
        w->wants[kind]         = pe_has(m, kind) && (all || pe_member_wanted(&a->parts[x.owner], &x));
    }
    w->wants_u    = m->u != PE_NONE && (all || (any && part->dpar[m->u]));
    w->wants_w    = m->w != PE_NONE && (all || (any && part->dpar[m->w]));
    w->wants_us   = m->us != PE_NONE && (all || (any && part->dpar[m->us]));
    w->wants_G    = m->G != PE_NONE && (all || (any && part->dpar[m->G]));
    w->wants_hook = m->hook.visit_back && (any || m->hook.content);
    w->hook_count = 0;
    for (int i = 0; w->wants_hook && i < part->count; i++)
        w->hook_count += hook_learns(m, i) ? part->sizes[i] : 0;
}

static void lay_out_item(backward *w, pe_arena *arena)
{
    const pe_tiles   *T    = &w->T;
    const pe_problem *p    = &T->a->sizes;
    const int64_t     rows = p->H * p->Lq;
    w->Qu                  = pe_take_floats(arena, pe_forms(T->a->terms) * rows * T->Dp);
    w->Qw                  = pe_has(T->a->terms, PE_A) ? pe_take_floats(arena, rows * T->Dp) : NULL;
    w->dout                = pe_take_floats(arena, rows * T->Dvp);
    w->delta               = pe_take_floats(arena, rows);
    w->lse                 = pe_take_floats(arena, rows);
    w->key                 = pe_take_floats(arena, pe_padded(p->Lk) + PE_LANES);
    w->dQ                  = pe_take_floats(arena, pe_forms(T->a->terms) * w->chunks * rows * T->Dp);
    w->dK                  = pe_take_floats(arena, T->a->terms->prepare.fold ? p->G * p->Lk * T->Dp : 0);
    w->state               = pe_take_doubles(arena, T->a->terms->hook.state ? rows * PE_HOOK_STATE : 0);
    w->moments = pe_take_doubles(arena, 2 * rows); /* a plan for long rows serves short ones too */
}

static void lay_out_sums(backward *w, pe_arena *arena)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const int64_t     n = p->H * w->chunks, tasks = p->G * w->chunks;
    const pe_part    *part = &T->a->parts[PE_SCORE];
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        if (w->wants[kind] && kind == PE_B && pe_tables_shared(T->a->terms)) {
            w->dby[PE_B] = w->dby[PE_A];
            continue;
        }
        const int64_t size = w->wants[kind] ? n * T->by[kind].count * T->by[kind].row : 0;
        w->dby1[kind]      = pe_take_doubles(arena, pe_is_scalar(kind) ? size : 0);
        w->dby[kind]       = pe_take_floats(arena, pe_is_scalar(kind) ? 0 : size);
        if (arena->memory && pe_is_scalar(kind))
            memset(w->dby1[kind], 0, (size_t)size * sizeof(double));
        else if (arena->memory)
            memset(w->dby[kind], 0, (size_t)size * sizeof(float));
    }
    w->du    = pe_take_doubles(arena, n * p->D);
    w->dw    = pe_take_doubles(arena, n * p->D);
    w->dus   = pe_take_doubles(arena, n * p->D);
    w->dG    = pe_take_doubles(arena, w->wants_G ? n * 2 * p->D : 0);
    w->hook  = pe_take_doubles(arena, tasks * w->hook_count);
    w->total = pe_take_doubles(arena, p->D);
    w->mass  = pe_take_doubles(arena, p->D);
    w->hook_pointers =
        pe_take(arena, (size_t)(w->wants_hook ? tasks * PE_HOOK_PARAMS : 0) * sizeof(double *));
    if (!arena->memory)
        return;
    memset(w->du, 0, (size_t)(n * p->D) * sizeof(double));
    memset(w->dw, 0, (size_t)(n * p->D) * sizeof(double));
    memset(w->dus, 0, (size_t)(n * p->D) * sizeof(double));
    memset(w->dG, 0, (size_t)(w->wants_G ? n * 2 * p->D : 0) * sizeof(double));
    memset(w->hook, 0, (size_t)(tasks * w->hook_count) * sizeof(double));
    double *at = w->hook;
    for (int64_t task = 0; w->wants_hook && task < tasks; task++)
        for (int i = 0; i < part->count; i++) {
            const int learns                            = hook_learns(T->a->terms, i);
            w->hook_pointers[task * PE_HOOK_PARAMS + i] = learns && part->dpar && part->dpar[i] ? at : NULL;
            at += learns ? part->sizes[i] : 0;
        }
}

/* ---- the item's rows ---- */

/* Where the second form of queries at Qu lies; NULL where there is one. */
static float *second_form(const backward *w, float *Qu)
{
    const pe_attention *a = w->T.a;
    return pe_forms(a->terms) > 1 ? Qu + a->sizes.H * a->sizes.Lq * w->T.Dp : NULL;
}

static void prepare_queries(void *context, int64_t index, int thread)
{
    backward           *w  = context;
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const int64_t       Lq = a->sizes.Lq, Dv = a->sizes.Dv, h = index / T->query_tiles,
                  i0 = index % T->query_tiles * T->Br, R = pe_smaller(T->Br, Lq - i0), at = h * Lq + i0;
    float *o = T->scratch[thread].rows, *Qu = w->Qu + at * T->Dp, *Q2 = second_form(w, Qu);
    pe_load_turned(T, T->scratch + thread, Qu, Q2, PE_QUERIES, w->b, h, i0, R);
    pe_scale_queries(T, Qu, w->Qw ? w->Qw + at * T->Dp : NULL, h, R);
    if (Q2)
        pe_scale_queries(T, Q2, NULL, h, R);
    pe_load_plain(w->dout + at * T->Dvp, T->Dvp, &a->dout, w->b, h, i0, R, Dv);
    pe_load_plain(o, T->Dvp, &a->o, w->b, h, i0, R, Dv);
    a->kernels->dot_rows(w->delta + at, w->dout + at * T->Dvp, T->Dvp, o, T->Dvp, R, Dv);
    pe_load_float(w->lse + at, pe_element(&a->lse, w->b, h, i0), a->lse.dtype, a->lse.stride[2], R);
    for (int64_t r = 0; r < R; r++)
        w->lse[at + r] = (float)((double)w->lse[at + r] - pe_center(T, h));
    for (int64_t c = 0; c < pe_forms(a->terms) * w->chunks; c++)
        memset(w->dQ + (c * a->sizes.H * Lq + at) * T->Dp, 0, (size_t)(R * T->Dp) * sizeof(float));
}

/* Keys and values of tile J of key head g: each task has its own, for no other visits them. */
static void load_keys(const backward *w, pe_scratch *z, int64_t g, int64_t J)
{
    const pe_tiles   *T  = &w->T;
    const pe_problem *p  = &T->a->sizes;
    const int64_t     j0 = J * T->Bc, C = pe_smaller(T->Bc, p->Lk - j0);
    pe_load_turned(T, z, z->K, NULL, PE_KEYS, w->b, g, j0, C);
    T->a->kernels->transpose(z->Kt, T->Bcp, z->K, T->Dp, C, p->D);
    if (T->a->grown) {
        pe_grow_keys(T, z, z->Kg, z->K, w->b, j0, C);
        T->a->kernels->transpose(z->Kgt_own, T->Bcp, z->Kg, T->Dp, C, p->D);
        z->Kgt = z->Kgt_own;
    }
    pe_load_plain(z->rows, T->Dvp, &T->a->v, w->b, g, j0, C, p->Dv);
    T->a->kernels->transpose(z->Vt, T->Bcp, z->rows, T->Dvp, C, p->Dv);
}

/* ---- one pair of tiles ---- */

/* A rectangle of the pair (I,J) with the places its sums go to. */
typedef struct pair {
    int64_t h, chunk, I, J, i0, R, j0, C, g;
    float  *dQ; /* [R, Dp] rows of the chunk */
    double *du, *dw;
} pair;

static pair pair_of(const backward *w, int64_t h, int64_t chunk, int64_t I, int64_t J)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    pair              x = {.h = h, .chunk = chunk, .I = I, .J = J};
    x.i0                = I * T->Br;
    x.R                 = pe_smaller(T->Br, p->Lq - x.i0);
    x.j0                = J * T->Bc;
    x.C                 = pe_smaller(T->Bc, p->Lk - x.j0);
    x.g                 = h / (p->H / p->G);
    x.dQ                = w->dQ + ((chunk * p->H + h) * p->Lq + x.i0) * T->Dp;
    x.du                = w->du + (h * w->chunks + chunk) * p->D;
    x.dw                = w->dw + (h * w->chunks + chunk) * p->D;
    return x;
}

/* dQ += dS B, and the column sums of dS B to `sums` where a vector added to q wants its gradient. */
static void query_product(const backward *w, const pair *x, pe_scratch *z, const float *dS, int64_t stride,
                          const float *B, int64_t K, double *sums)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D;
    if (!sums) {
        T->a->kernels->product(x->dQ, T->Dp, dS, stride, 1, B, T->Dp, x->R, D, K, 1);
        return;
    }
    T->a->kernels->product(z->rows, T->Dp, dS, stride, 1, B, T->Dp, x->R, D, K, 0);
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t d = 0; d < D; d++) {
            x->dQ[r * T->Dp + d] += z->rows[r * T->Dp + d];
            sums[d] += (double)z->rows[r * T->Dp + d];
        }
}

/* Where the cotangents of a run of rows from `row` of a member add up, for this head and chunk. */
static double *scalar_sums(const backward *w, const pair *x, pe_kind kind, int64_t row)
{
    const pe_table *t = &w->T.by[kind];
    return w->dby1[kind] + (x->h * w->chunks + x->chunk) * t->count + pe_row_in(t, row);
}

static float *vector_sums(const backward *w, const pair *x, pe_kind kind, int64_t row)
{
    const pe_table *t = &w->T.by[kind];
    return w->dby[kind] + ((x->h * w->chunks + x->chunk) * t->count + pe_row_in(t, row)) * t->row;
}

/* A scalar by distance: the tile's sums along diagonals. */
static void sum_diagonals(const backward *w, const pair *x, pe_scratch *z, pe_kind kind, const float *tile)
{
    const int64_t x0 = pe_band_start(&w->T, x->i0, x->R, x->j0), n = x->R + x->C - 1;
    double       *to = scalar_sums(w, x, kind, x0);
    memset(z->diagonal, 0, (size_t)n * sizeof(float));
    w->T.a->kernels->diagonal_sums(z->diagonal, tile, w->T.Bcp, x->R, x->C);
    for (int64_t c = 0; c < n; c++)
        to[c] += (double)z->diagonal[c];
}

/* Queries and A along diagonals. */
static void query_band_back(const backward *w, const pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = pe_band_start(T, x->i0, x->R, x->j0), n = x->R + x->C - 1;
    pe_shift_tile(T, z, dS, x->R, x->C);
    query_product(w, x, z, z->shift, T->band_width, pe_rows_by(T, PE_A, x->h, x0), n,
                  w->wants_w ? x->dw : NULL);
    if (w->wants[PE_A])
        T->a->kernels->product(vector_sums(w, x, PE_A, x0), T->Dp, z->shift, 1, T->band_width,
                               w->Qw + (x->h * T->a->sizes.Lq + x->i0) * T->Dp, T->Dp, n, D, x->R, 1);
}

/* Keys and B: columns of dS, times scale, shifted into beta [C, band]. */
static void key_band_back(const backward *w, const pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = pe_band_start(T, x->i0, x->R, x->j0), n = x->R + x->C - 1;
    const float     scale = (float)T->a->terms->scale;
    for (int64_t c = 0; c < x->C; c++) {
        float *row = z->beta + c * T->band_width;
        memset(row, 0, (size_t)n * sizeof(float));
        for (int64_t r = 0; r < x->R; r++)
            row[c + x->R - 1 - r] = scale * dS[r * T->Bcp + c];
    }
    T->a->kernels->product(z->dK, T->Dp, z->beta, T->band_width, 1, pe_rows_by(&w->T, PE_B, x->h, x0), T->Dp,
                           x->C, D, n, 1);
    if (w->wants[PE_B])
        T->a->kernels->product(vector_sums(w, x, PE_B, x0), T->Dp, z->beta, 1, T->band_width, z->K, T->Dp, n,
                               D, x->C, 1);
}

/* dS without the pairs that have no bias, in z->extra, which is done with. */
static const float *without_apart(const pe_tiles *T, pe_scratch *z, int64_t R, int64_t C, const float *dS)
{
    memcpy(z->extra, dS, (size_t)(R * T->Bcp) * sizeof(float));
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (pe_pair_is_apart(T, z, r, c))
                z->extra[r * T->Bcp + c] = 0;
    return z->extra;
}

static void skewed_back(const backward *w, const pair *x, pe_scratch *z, const float *dS)
{
    const int apart = w->T.a->terms->hook.apart && z->hooked;
    if (w->wants[PE_BIAS])
        sum_diagonals(w, x, z, PE_BIAS, apart ? without_apart(&w->T, z, x->R, x->C, dS) : dS);
    if (w->T.by[PE_A].rows)
        query_band_back(w, x, z, dS);
    if (w->T.by[PE_B].rows)
        key_band_back(w, x, z, dS);
}

/* x += f*y */
static void add(float *x, float f, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += f * y[i];
}

/* Score terms of one element whose distance has table row `row`. */
static void element_back(const backward *w, const pair *x, pe_scratch *z, int64_t r, int64_t c, int64_t row,
                         float dS)
{
    const pe_tiles *T     = &w->T;
    const int64_t   D     = T->a->sizes.D;
    const float     scale = (float)T->a->terms->scale;
    if (w->wants[PE_BIAS] && !pe_pair_is_apart(T, z, r, c))
        *scalar_sums(w, x, PE_BIAS, row) += (double)dS;
    if (T->by[PE_A].rows) {
        const float *A = pe_rows_by(&w->T, PE_A, x->h, row);
        add(x->dQ + r * T->Dp, dS, A, D);
        for (int64_t d = 0; w->wants_w && d < D; d++)
            x->dw[d] += (double)(dS * A[d]);
    }
    if (w->wants[PE_A])
        add(vector_sums(w, x, PE_A, row), dS, w->Qw + (x->h * T->a->sizes.Lq + x->i0 + r) * T->Dp, D);
    if (T->by[PE_B].rows)
        add(z->dK + c * T->Dp, scale * dS, pe_rows_by(&w->T, PE_B, x->h, row), D);
    if (w->wants[PE_B])
        add(vector_sums(w, x, PE_B, row), scale * dS, z->K + c * T->Dp, D);
}

/* The same where distances were looked up one by one (z holds the tile's positions still). */
static void looked_up_back(const backward *w, const pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (dS[r * T->Bcp + c] != 0) /* masked ones may have no row */
                element_back(w, x, z, r, c, (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0,
                             dS[r * T->Bcp + c]);
}

/* dW = dO V^T becomes the cotangent of the gated weights: plus dO . r[t]. */
static void add_value_vectors(const backward *w, const pair *x, pe_scratch *z, const float *W, float *dW,
                              const float *dO)
{
    const pe_tiles   *T  = &w->T;
    const pe_kernels *k  = T->a->kernels;
    const int64_t     Dv = T->a->sizes.Dv, n = x->R + x->C - 1, x0 = pe_band_start(T, x->i0, x->R, x->j0);
    if (!T->by[PE_R].rows)
        return;
    if (T->skewed) {
        k->product(z->shift, T->band_width, dO, T->Dvp, 1, pe_columns_by(T, PE_R, x->h, x0),
                   T->by[PE_R].stride, x->R, n, Dv, 0);
        k->add_skewed(dW, T->Bcp, z->shift + x->R - 1, T->band_width - 1, x->R, x->C);
        return;
    }
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++) {
            const int64_t row = (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0;
            for (int64_t d = 0; W[r * T->Bcp + c] != 0 && d < Dv; d++)
                dW[r * T->Bcp + c] += dO[r * T->Dvp + d] * pe_rows_by(&w->T, PE_R, x->h, row)[d];
        }
}

/* dr[t] += the gated weights along the distance times dO. */
static void value_vectors_back(const backward *w, const pair *x, pe_scratch *z, const float *gated,
                               const float *dO)
{
    const pe_tiles *T  = &w->T;
    const int64_t   Dv = T->a->sizes.Dv, n = x->R + x->C - 1;
    if (!w->wants[PE_R])
        return;
    if (T->skewed) {
        pe_shift_tile(T, z, gated, x->R, x->C);
        T->a->kernels->product(vector_sums(w, x, PE_R, pe_band_start(T, x->i0, x->R, x->j0)), T->Dvp,
                               z->shift, 1, T->band_width, dO, T->Dvp, n, Dv, x->R, 1);
        return;
    }
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (gated[r * T->Bcp + c] != 0)
                add(vector_sums(w, x, PE_R, (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0),
                    gated[r * T->Bcp + c], dO + r * T->Dvp, Dv);
}

/* dc[t] += sum of W * dW along the distance, dW being that of the gated weight. */
static void gate_back(const backward *w, const pair *x, pe_scratch *z, const float *W, const float *dW)
{
    const pe_tiles *T = &w->T;
    if (!w->wants[PE_GATE])
        return;
    memcpy(z->gated, W, (size_t)(x->R * T->Bcp) * sizeof(float));
    T->a->kernels->gate(z->gated, T->Bcp, dW, T->Bcp, x->R, x->C);
    if (T->skewed)
        sum_diagonals(w, x, z, PE_GATE, z->gated);
    for (int64_t r = 0; !T->skewed && r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (W[r * T->Bcp + c] != 0)
                *scalar_sums(w, x, PE_GATE, (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0) +=
                    (double)z->gated[r * T->Bcp + c];
}

/* W (kept) and dW (from dO V^T) become the cotangent of the softmax's output; with `sums`, values, gate and r get theirs. */
static void values_back(const backward *w, const pair *x, pe_scratch *z, float *W, float *dW, const float *dO,
                        int sums)
{
    const pe_tiles   *T = &w->T;
    const pe_kernels *k = T->a->kernels;
    int64_t           step;
    const float      *gate  = pe_tile_gate(T, z, x->h, x->I, x->J, &step);
    float            *gated = gate ? z->gated : W;
    add_value_vectors(w, x, z, W, dW, dO);
    if (sums && gate) {
        memcpy(gated, W, (size_t)(x->R * T->Bcp) * sizeof(float));
        k->gate(gated, T->Bcp, gate, step, x->R, x->C);
    }
    if (sums) {
        k->product(z->dV, T->Dvp, gated, 1, T->Bcp, dO, T->Dvp, x->C, T->a->sizes.Dv, x->R, 1);
        value_vectors_back(w, x, z, gated, dO);
    }
    if (sums && gate)
        gate_back(w, x, z, W, dW);
    if (gate)
        k->gate(dW, T->Bcp, gate, step, x->R, x->C);
}

/* scale * (q + us) . G[z]: row sums of dS by segment meet G and the queries. dQ, dus take the scale at the end; scaled
   queries carry it for dG already. */
static void segments_back(const backward *w, const pair *x, const pe_scratch *z, const float *dS)
{
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D, sums = x->h * w->chunks + x->chunk;
    const double       *u = pe_head_vector(a, a->terms->u, x->h), *us = pe_head_vector(a, a->terms->us, x->h);
    for (int64_t r = 0; r < x->R; r++) {
        const float *q      = w->Qu + (x->h * a->sizes.Lq + x->i0 + r) * T->Dp;
        double       sum[2] = {0, 0};
        for (int64_t c = 0; c < x->C; c++)
            sum[z->q_seg[r] != z->k_seg[c]] += (double)dS[r * T->Bcp + c];
        for (int g = 0; g < 2; g++) {
            const double *G = pe_segment_vector(a, x->h, g);
            for (int64_t d = 0; d < D; d++) {
                const double shift = (us ? us[d] : 0) - (u ? u[d] : 0);
                x->dQ[r * T->Dp + d] += (float)(sum[g] * G[d]);
                w->dus[sums * D + d] += sum[g] * G[d];
                if (w->wants_G)
                    w->dG[(2 * sums + g) * D + d] += sum[g] * ((double)q[d] + a->terms->scale * shift);
            }
        }
    }
}

/* dX = dS to the hook's parameters; for one with content also to queries, and to the products: dS becomes the cotangent of
   those. */
static void hook_back(const backward *w, const pair *x, pe_scratch *z, float *dS)
{
    const pe_tiles     *T       = &w->T;
    const pe_attention *a       = T->a;
    const pe_tile       tile    = pe_hook_tile(T, z, x->h, x->R, x->C);
    const int           content = a->terms->hook.content;
    const int64_t       D = a->sizes.D, n = x->R * x->C;
    const double        inverse = 1 / a->terms->scale; /* dQ takes the scale at the end */
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            z->x[r * x->C + c] = (double)dS[r * T->Bcp + c];
    if (content) {
        memset(z->ds, 0, (size_t)n * sizeof(double));
        memset(z->dq, 0, (size_t)(x->R * D) * sizeof(double));
    }
    a->terms->hook.visit_back(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile, z->x,
                              w->hook_pointers + (x->g * w->chunks + x->chunk) * PE_HOOK_PARAMS);
    for (int64_t r = 0; content && r < x->R; r++) {
        for (int64_t c = 0; c < x->C; c++)
            dS[r * T->Bcp + c] += (float)z->ds[r * x->C + c];
        for (int64_t d = 0; d < D; d++)
            x->dQ[r * T->Dp + d] += (float)(z->dq[r * D + d] * inverse);
    }
}

/* db of each pair. */
static void pairs_back(const backward *w, const pair *x, const pe_scratch *z, const float *dS)
{
    for (int64_t r = 0; r < x->R; r++) {
        for (int64_t c = 0; c < x->C; c++)
            z->pair_row[c] = (double)dS[r * w->T.Bcp + c];
        pe_pairs_add(w->T.a, x->h, x->i0 + r, x->j0, x->C, z->pair_row);
    }
}

/* A weight that is 1 leaves nothing to the others, so that dS = W (1 - W) (...) = 0. Without gate and r, dW and delta are then
   the same sum and cancel to the bit; with them o was rounded on another way, and what would be left is noise. */
static void settle_certain(const pair *x, const float *W, float *dS, int64_t stride)
{
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (W[r * stride + c] == 1)
                dS[r * stride + c] = 0;
}

/* What the scores of a tile are to be less: lse, or what of it they have not been made less by yet. */
static const float *lse_of_scores(const backward *w, const pair *x, const pe_scratch *z)
{
    const float *lse = w->lse + x->h * w->T.a->sizes.Lq + x->i0;
    if (!pe_is_shifted(&w->T, z) && !pe_is_sharp(&w->T))
        return lse;
    for (int64_t r = 0; r < x->R; r++)
        z->m[r] = pe_is_shifted(&w->T, z) ? 0 : (float)((double)lse[r] - z->top[r]);
    return z->m;
}

/* Weights of the pair into z->S and the cotangents of the softmax's output into z->W; 0 if no pair is allowed. */
static int weights_back(const backward *w, const pair *x, pe_scratch *z, int sums)
{
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const pe_problem   *p  = &a->sizes;
    const pe_kernels   *k  = a->kernels;
    const int64_t       at = x->h * p->Lq + x->i0;
    const float        *Qu = w->Qu + at * T->Dp, *Qw = w->Qw ? w->Qw + at * T->Dp : NULL,
                *dO = w->dout + at * T->Dvp;
    z->lse          = w->lse + at;
    z->Q2           = second_form(w, w->Qu + at * T->Dp);
    if (pe_is_sharp(T))
        pe_sharpen_tile(T, z, w->b, x->h, x->i0, x->R, x->j0, x->C, w->lse + at);
    if (!pe_tile_scores(T, z, z->S, w->b, x->h, x->I, x->J, Qu, Qw, z->Kt, w->key_mask, 0))
        return 0;
    k->weights(z->S, T->Bcp, lse_of_scores(w, x, z), x->R, x->C);
    k->product(z->W, T->Bcp, dO, T->Dvp, 1, z->Vt, T->Bcp, x->R, x->C, p->Dv, 0);
    values_back(w, x, z, z->S, z->W, dO, sums);
    return 1;
}

/* Products of grown queries and keys: dKg sees the queries as they were grown, dQ the keys by the same factors. */
static void grown_back(const backward *w, const pair *x, pe_scratch *z, const float *dS, const float *Qg,
                       float *dQ, double *sums)
{
    const pe_tiles   *T = &w->T;
    const int64_t     D = T->a->sizes.D;
    const pe_kernels *k = T->a->kernels;
    k->product(z->dKg, T->Dp, dS, 1, T->Bcp, Qg, T->Dp, x->C, D, x->R, 1);
    k->product(z->rows, T->Dp, dS, T->Bcp, 1, z->Kg, T->Dp, x->R, D, x->C, 0);
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t d = 0; d < D; d++) {
            const float dq = z->rows[r * T->Dp + d] * z->grow[r * T->Dp + d];
            dQ[r * T->Dp + d] += dq;
            if (sums)
                sums[d] += (double)dq;
        }
}

/* The cotangent of a modulus: the second form's share of it goes to its queries and the keys, dS becomes the first's. */
static void forms_back(const backward *w, const pair *x, pe_scratch *z, float *dS)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const pe_kernels *k = T->a->kernels;
    const int64_t     n = T->Br * T->Bcp;
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++) {
            const int64_t at = r * T->Bcp + c;
            z->S2[at]        = dS[at] * z->share[n + at];
            dS[at] *= z->share[at];
        }
    if (T->a->grown) {
        grown_back(w, x, z, z->S2, z->Qg + T->Br * T->Dp, x->dQ + w->chunks * p->H * p->Lq * T->Dp, NULL);
        return;
    }
    k->product(z->dK, T->Dp, z->S2, 1, T->Bcp, z->Q2, T->Dp, x->C, p->D, x->R, 1);
    k->product(x->dQ + w->chunks * p->H * p->Lq * T->Dp, T->Dp, z->S2, T->Bcp, 1, z->K, T->Dp, x->R, p->D,
               x->C, 1);
}

static void pair_back(const backward *w, const pair *x, pe_scratch *z)
{
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const pe_kernels   *k  = a->kernels;
    const int64_t       at = x->h * a->sizes.Lq + x->i0, D = a->sizes.D;
    float              *W = z->S, *dS = z->W;
    double             *moments = w->moments + 2 * at;
    z->backward                 = 1;
    z->state                    = a->terms->hook.state ? w->state + at * PE_HOOK_STATE : z->own_state;
    if (!weights_back(w, x, z, 1))
        return;
    if (w->is_short && T->key_tiles == 1) {
        memset(moments, 0, (size_t)(2 * x->R) * sizeof(double));
        k->row_moments(moments, W, dS, T->Bcp, x->R, x->C);
    }
    if (w->is_short)
        k->exact_cotangent(dS, W, T->Bcp, moments, x->R, x->C);
    else
        k->score_cotangent(dS, W, T->Bcp, w->delta + at, x->R, x->C);
    if (!w->is_short && (T->by[PE_GATE].rows || T->by[PE_R].rows))
        settle_certain(x, W, dS, T->Bcp);
    if (T->by_distance && T->skewed)
        skewed_back(w, x, z, dS);
    else if (T->by_distance)
        looked_up_back(w, x, z, dS);
    if (a->terms->G != PE_NONE)
        segments_back(w, x, z, dS);
    if (w->wants_hook && z->hooked)
        hook_back(w, x, z, dS);
    if (pe_pairs_wanted(a))
        pairs_back(w, x, z, dS);
    if (z->Q2)
        forms_back(w, x, z, dS);
    if (a->grown) {
        grown_back(w, x, z, dS, z->Qg, x->dQ, w->wants_u ? x->du : NULL);
        return;
    }
    k->product(z->dK, T->Dp, dS, 1, T->Bcp, w->Qu + at * T->Dp, T->Dp, x->C, D, x->R, 1);
    query_product(w, x, z, dS, T->Bcp, z->K, x->C, w->wants_u ? x->du : NULL);
}

/* Before the sums: what a travelling hook's state holds after the forward, and the moments of short rows in several
   tiles. Both need all key tiles of a query once more, from the right. */
static void look_ahead(void *context, int64_t index, int thread)
{
    const backward   *w = context;
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const int64_t     h = index / T->query_tiles, I = index % T->query_tiles, at = h * p->Lq + I * T->Br,
                  R = pe_smaller(T->Br, p->Lq - I * T->Br);
    pe_scratch *z   = T->scratch + thread;
    z->backward     = 0;
    z->state        = T->a->terms->hook.state ? w->state + at * PE_HOOK_STATE : z->own_state;
    memset(z->state, 0, (size_t)(R * PE_HOOK_STATE) * sizeof(double));
    memset(w->moments + 2 * at, 0, (size_t)(2 * R) * sizeof(double));
    for (int64_t J = T->key_tiles - 1; J >= 0; J--) {
        const pair x = pair_of(w, h, 0, I, J);
        load_keys(w, z, x.g, J);
        if (weights_back(w, &x, z, 0) && w->is_short)
            T->a->kernels->row_moments(w->moments + 2 * at, z->S, z->W, T->Bcp, x.R, x.C);
    }
}

/* All key tiles of one (key head, chunk). */
static void chunk_back(void *context, int64_t index, int thread)
{
    const backward   *w = context;
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const int64_t     g = index / w->chunks, chunk = index % w->chunks, group = p->H / p->G;
    pe_scratch       *z = T->scratch + thread;
    for (int64_t J = chunk; J < T->key_tiles; J += w->chunks) {
        const int64_t j0 = J * T->Bc, C = pe_smaller(T->Bc, p->Lk - j0);
        load_keys(w, z, g, J);
        memset(z->dK, 0, (size_t)(C * T->Dp) * sizeof(float));
        if (T->a->grown)
            memset(z->dKg, 0, (size_t)(C * T->Dp) * sizeof(float));
        memset(z->dV, 0, (size_t)(C * T->Dvp) * sizeof(float));
        for (int64_t h = g * group; h < (g + 1) * group; h++)
            for (int64_t I = 0; I < T->query_tiles; I++) {
                const pair x = pair_of(w, h, chunk, I, J);
                pair_back(w, &x, z);
            }
        if (T->a->grown) {
            pe_grow_keys(T, z, z->dKg, z->dKg, w->b, j0, C);
            add(z->dK, 1, z->dKg, C * T->Dp);
        }
        pe_store_turned(T, z->dK, PE_KEYS, &T->a->dk, w->b, g, j0, C);
        if (T->a->terms->prepare.fold)
            memcpy(w->dK + (g * p->Lk + j0) * T->Dp, z->dK, (size_t)(C * T->Dp) * sizeof(float));
        for (int64_t c = 0; T->a->dv.data && c < C; c++)
            pe_store_float(pe_row(&T->a->dv, w->b, g, j0 + c), T->a->dv.dtype, 1, z->dV + c * T->Dvp, p->Dv);
    }
}

/* One form of a query tile: sums of the chunks, scaled and turned back. */
static void finish_queries(void *context, int64_t index, int thread)
{
    const backward   *w     = context;
    const pe_tiles   *T     = &w->T;
    const pe_problem *p     = &T->a->sizes;
    const float       scale = (float)T->a->terms->scale;
    const int64_t     form = index / (p->H * T->query_tiles), task = index % (p->H * T->query_tiles),
                  h = task / T->query_tiles, i0 = task % T->query_tiles * T->Br,
                  R = pe_smaller(T->Br, p->Lq - i0), n = R * T->Dp;
    float *sum = w->dQ + ((form * w->chunks * p->H + h) * p->Lq + i0) * T->Dp;
    (void)thread;
    for (int64_t c = 1; c < w->chunks; c++) {
        const float *part = sum + c * p->H * p->Lq * T->Dp;
        for (int64_t x = 0; x < n; x++)
            sum[x] += part[x];
    }
    for (int64_t x = 0; x < n; x++)
        sum[x] *= scale;
    pe_store_turned(T, sum, PE_QUERIES, &T->a->dq, w->b, h, i0, R);
}

/* Cotangents of prepared rows go through the room one tile after the other: parameters add in this order. */
static void fold_prepared(const backward *w)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    for (int64_t h = 0; h < p->H; h++)
        for (int64_t i0 = 0; i0 < p->Lq; i0 += T->Br)
            pe_fold_prepared(T, T->scratch, w->dQ + (h * p->Lq + i0) * T->Dp,
                             w->chunks * p->H * p->Lq * T->Dp, PE_QUERIES, w->b, h, i0,
                             pe_smaller(T->Br, p->Lq - i0));
    for (int64_t g = 0; g < p->G; g++)
        for (int64_t j0 = 0; j0 < p->Lk; j0 += T->Bc)
            pe_fold_prepared(T, T->scratch, w->dK + (g * p->Lk + j0) * T->Dp, 0, PE_KEYS, w->b, g, j0,
                             pe_smaller(T->Bc, p->Lk - j0));
}

/* ---- gradients of parameters, after the whole batch ---- */

/* The sum over chunks of number d of row x of a member of one head. */
static double sum_of_chunks(const backward *w, pe_kind kind, int64_t h, int64_t x, int64_t d)
{
    const pe_table *t   = &w->T.by[kind];
    double          sum = 0;
    for (int64_t c = 0; c < w->chunks; c++) {
        const int64_t at = (h * w->chunks + c) * t->count + x - t->first;
        sum += pe_is_scalar(kind) ? w->dby1[kind][at] : (double)w->dby[kind][at * t->row + d];
    }
    return sum;
}

/*
 * A softmax does not see a number added to a whole row of scores, so the cotangents of a row sum to zero, and so do
 * those of all distances together. In float a residue of some 1e-7 is left. A parameter that weighs all distances nearly
 * alike (a slow sinusoid behind Wr) has a gradient smaller than that residue and would be nothing but noise; so the
 * residue is taken out, from each distance in proportion to its size, which moves no sum by more than its own rounding.
 * Not where a table's own sum is not zero: pairs that stand apart have no bias, and shared rows meet keys as well.
 */
static void find_residue(const backward *w, pe_kind kind, int64_t h)
{
    const int64_t width = w->T.by[kind].width, end = pe_table_end(&w->T, kind);
    memset(w->total, 0, (size_t)width * sizeof(double));
    memset(w->mass, 0, (size_t)width * sizeof(double));
    for (int64_t r = pe_table_begin(&w->T, kind); r < end; r++)
        for (int64_t d = 0; d < width; d++) {
            const double x = sum_of_chunks(w, kind, h, r, d);
            w->total[d] += x;
            w->mass[d] += fabs(x);
        }
}

static double without_residue(const backward *w, double x, int64_t d)
{
    return w->mass[d] > 0 ? x - w->total[d] * (fabs(x) / w->mass[d]) : x;
}

/* The same for a member that folds; one whose rows heads share folds the sums of all of them, with the last. */
static double sum_to_fold(const backward *w, const pe_by_distance *m, pe_kind kind, int64_t h, int64_t x,
                          int64_t d)
{
    double sum = 0;
    for (int64_t i = m->row ? 0 : h; i <= h; i++)
        sum += sum_of_chunks(w, kind, i, x, d);
    return sum;
}

/* The band's sums go back to the room, PE_CHUNK distances at a time and rising; the mirror of fill_chunk. */
static void fold_band(const backward *w, pe_kind kind, int64_t h)
{
    const pe_tiles      *T    = &w->T;
    const pe_by_distance m    = pe_member(T->a->terms, kind);
    const pe_part       *part = &T->a->parts[m.owner];
    const int            down = T->band.slope < 0,
              is_score        = (kind == PE_BIAS && !T->a->terms->hook.apart) || (kind == PE_A && !m.row);
    const int64_t most = T->band.slope == 1 || T->band.slope == -1 ? PE_CHUNK : 1, width = T->by[kind].width,
                  end = pe_table_end(T, kind);
    double *chunk     = T->scratch[0].chunk;
    if (is_score)
        find_residue(w, kind, h);
    for (int64_t r0 = pe_table_begin(T, kind); r0 < end; r0 += most) {
        const int64_t n = pe_smaller(most, end - r0);
        for (int64_t r = 0; r < n; r++)
            for (int64_t d = 0; d < width; d++) {
                const double x                            = sum_to_fold(w, &m, kind, h, r0 + r, d);
                chunk[(down ? n - 1 - r : r) * width + d] = is_score ? without_residue(w, x, d) : x;
            }
        pe_member_fold(part, &m, width, h, pe_band_distance(&T->band, down ? r0 + n - 1 : r0), n, chunk);
    }
}

static void fold_vector(const backward *w, int64_t h, const double *sums, double *to)
{
    const int64_t D = w->T.a->sizes.D;
    for (int64_t c = 0; c < w->chunks; c++)
        for (int64_t d = 0; d < D; d++)
            to[d] += w->T.a->terms->scale * sums[(h * w->chunks + c) * D + d];
}

static void fold_segments(const backward *w, int64_t h)
{
    const int64_t D = w->T.a->sizes.D;
    for (int g = 0; g < 2; g++)
        for (int64_t c = 0; c < w->chunks; c++)
            for (int64_t d = 0; d < D; d++)
                pe_segment_gradient(w->T.a, h, g)[d] += w->dG[(2 * (h * w->chunks + c) + g) * D + d];
}

static void fold_hook(const backward *w)
{
    const pe_part *part = &w->T.a->parts[PE_SCORE];
    for (int64_t task = 0; task < w->T.a->sizes.G * w->chunks; task++)
        for (int i = 0; i < part->count; i++)
            for (int64_t x = 0; w->hook_pointers[task * PE_HOOK_PARAMS + i] && x < part->sizes[i]; x++)
                part->dpar[i][x] += w->hook_pointers[task * PE_HOOK_PARAMS + i][x];
}

/* One head after the other: heads may share parameters, and the order is part of the result. */
static void fold_parameters(const backward *w)
{
    const pe_attention *a = w->T.a;
    const pe_terms     *m = a->terms;
    for (int64_t h = 0; h < a->sizes.H; h++) {
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            if (w->wants[kind] && (!pe_member(m, kind).row || h == a->sizes.H - 1) &&
                !(kind == PE_B && pe_tables_shared(m)))
                fold_band(w, kind, h);
        if (w->wants_u)
            fold_vector(w, h, w->du, pe_head_vector_gradient(a, m->u, h));
        if (w->wants_w)
            fold_vector(w, h, w->dw, pe_head_vector_gradient(a, m->w, h));
        if (w->wants_us)
            fold_vector(w, h, w->dus, pe_head_vector_gradient(a, m->us, h));
        if (w->wants_G)
            fold_segments(w, h);
    }
    if (w->wants_hook)
        fold_hook(w);
}

void pe_tiled_backward(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    backward          w = {.T = pe_tiles_make(a, arena, 1)};
    w.chunks            = chunk_count(&w.T);
    w.is_short          = p->Lk <= PE_SHORT || pe_is_sharp(&w.T);
    decide(&w, !arena->memory);
    lay_out_item(&w, arena);
    lay_out_sums(&w, arena);
    if (!arena->memory)
        return;
    for (w.b = 0; w.b < p->B; w.b++) {
        w.key_mask = pe_key_mask(&w.T, w.key, w.b);
        pe_parallel_for(p->H * w.T.query_tiles, a->threads, prepare_queries, &w);
        if (a->terms->hook.state || (w.is_short && w.T.key_tiles > 1))
            pe_parallel_for(p->H * w.T.query_tiles, a->threads, look_ahead, &w);
        /* heads that share a matrix add to the same numbers, one after the other */
        const int together = !(pe_pairs_wanted(a) && a->terms->pairs.shared);
        pe_parallel_for(p->G * w.chunks, together ? a->threads : 1, chunk_back, &w);
        pe_parallel_for(pe_forms(a->terms) * p->H * w.T.query_tiles, a->threads, finish_queries, &w);
        if (a->terms->prepare.fold)
            fold_prepared(&w);
    }
    fold_parameters(&w);
}
