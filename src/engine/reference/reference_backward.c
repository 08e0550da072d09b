/* SPDX-License-Identifier: MIT */
/*
 * reference_back.c: the backward of the reference executor
 *
 * Row by row, and in a row pair by pair: above each line of a gradient stands what it differentiates. Serial,
 * so that sums have one order. Cotangents of members by distance are gathered by distance and folded into
 * parameters once per head, those that heads share once per run.
 */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/reference/reference.h"

static double *cotangent_of(const pe_reference_head *x, pe_kind kind, int64_t i, int64_t j)
{
    return x->dby[kind] + (pe_reference_member(x, kind, i, j) - x->by[kind]);
}

/* x += f*g*y, where g may be NULL */
static void add_grown(double *x, double f, const double *y, const double *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += f * (g ? g[i] : 1) * y[i];
}

static void add(double *x, double f, const double *y, int64_t n)
{
    add_grown(x, f, y, NULL, n);
}

/* scale * (q_i + us) . G[z]; f = scale * dS */
static void segment_back(pe_reference_head *x, int64_t i, double f, int z)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const double       *G = pe_segment_vector(a, x->h, z), *us = pe_head_vector(a, a->terms->us, x->h);
    double *dG = pe_segment_gradient(a, x->h, z), *dus = pe_head_vector_gradient(a, a->terms->us, x->h);
    add(x->dQ + i * pe_query_width(a), f, G, D);
    if (dG)
        add(dG, f, x->Q + i * pe_query_width(a), D);
    if (dG && us)
        add(dG, f, us, D);
    if (dus)
        add(dus, f, G, D);
}

/* scale * (q_i + u) . k_j, or the modulus of two forms; f = scale * its cotangent */
static void product_back(pe_reference_head *x, int64_t i, int64_t j, double f)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const double       *u = pe_head_vector(a, a->terms->u, x->h), *k = x->K + j * D;
    double             *du       = pe_head_vector_gradient(a, a->terms->u, x->h);
    double              share[2] = {1, 0};
    const double       *g        = pe_pair_growth(x, i, j, 0);
    if (pe_forms(a->terms) > 1)
        pe_reference_product(x, i, j, share, 0);
    for (int64_t form = 0; form < pe_forms(a->terms); form++) {
        add_grown(x->dQ + i * pe_query_width(a) + form * D, f * share[form], k, g, D);
        add_grown(x->dK + j * D, f * share[form], x->Q + i * pe_query_width(a) + form * D, g, D);
    }
    if (u)
        add_grown(x->dK + j * D, f * share[0], u, g, D);
    if (du)
        add_grown(du, f * share[0], k, g, D);
}

/* The gradient of one score: dS is the cotangent of S[i,j], dproduct (dS and the hook's share) that of its
   product. Above each line, what it differentiates. */
static void score_back(pe_reference_head *x, int64_t i, int64_t j, double dS, double dproduct)
{
    const pe_attention *a  = x->a;
    const pe_terms     *m  = a->terms;
    const int64_t       D  = a->sizes.D;
    const double       *w  = pe_head_vector(a, m->w, x->h);
    double             *dw = pe_head_vector_gradient(a, m->w, x->h);
    const double       *A = pe_reference_member(x, PE_A, i, j), *B = pe_reference_member(x, PE_B, i, j);
    const double        f  = m->scale * dS;
    double             *dq = x->dQ + i * pe_query_width(a), *dk = x->dK + j * D;
    const double       *q = x->Q + i * pe_query_width(a), *k = x->K + j * D;
    product_back(x, i, j, m->scale * dproduct);
    /* b[t] */
    if (pe_has(m, PE_BIAS) && !pe_reference_is_apart(x, i, j))
        *cotangent_of(x, PE_BIAS, i, j) += dS;
    /* scale * (q_i + w) . A[t] */
    if (A) {
        add(dq, f, A, D);
        add(cotangent_of(x, PE_A, i, j), f, q, D);
    }
    if (A && w)
        add(cotangent_of(x, PE_A, i, j), f, w, D);
    if (A && dw)
        add(dw, f, A, D);
    if (m->G != PE_NONE)
        segment_back(x, i, f, pe_reference_differs(x, i, j));
    /* scale * k_j . B[t] */
    if (B) {
        add(dk, f, B, D);
        add(cotangent_of(x, PE_B, i, j), f, k, D);
    }
}

/* The gradient of one weight: o_i = sum_j P_ij c[t] (v_j + r[t]). Returns the cotangent of P_ij. */
static double weight_back(pe_reference_head *x, int64_t i, int64_t j, double P)
{
    const int64_t Dv = x->a->sizes.Dv;
    const double *c = pe_reference_member(x, PE_GATE, i, j), *r = pe_reference_member(x, PE_R, i, j);
    const double  W  = P * (c ? *c : 1);
    double        dW = pe_reference_dot(x->dout, x->V + j * Dv, Dv);
    add(x->dV + j * Dv, W, x->dout, Dv);
    if (r) {
        dW += pe_reference_dot(x->dout, r, Dv);
        add(cotangent_of(x, PE_R, i, j), W, x->dout, Dv);
    }
    if (c)
        *cotangent_of(x, PE_GATE, i, j) += P * dW;
    return dW * (c ? *c : 1);
}

/* The hook's share of the cotangents of products, into dproducts. */
static void hook_back(pe_reference_head *x, int64_t i, const double *dS, double *dproducts)
{
    const pe_attention *a                    = x->a;
    const pe_part      *part                 = &a->parts[PE_SCORE];
    pe_tile             tile                 = pe_reference_tile(x, i, 0);
    double *const       none[PE_HOOK_PARAMS] = {0};
    memset(dproducts, 0, (size_t)a->sizes.Lk * sizeof *dproducts);
    if (!a->terms->hook.visit_back || (!part->dpar && !a->terms->hook.content))
        return;
    tile.ds = dproducts;
    tile.dq = x->dQ + i * pe_query_width(a);
    a->terms->hook.visit_back(part->p, part->par, &tile, dS, part->dpar ? part->dpar : none);
}

static void backward_row(pe_reference_head *x, int64_t i)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    double             *s = pe_reference_row(x, 0, PE_ROW_SCORES), *o = pe_reference_row(x, 0, PE_ROW_OUTPUT),
           *dproducts = pe_reference_row(x, 0, PE_ROW_DPRODUCTS), lse;
    pe_load_double(&lse, pe_element(&a->lse, x->b, x->h, i), a->lse.dtype, 1, 1);
    if (lse == -INFINITY)
        return;
    pe_load_double(o, pe_row(&a->o, x->b, x->h, i), a->o.dtype, 1, p->Dv);
    pe_load_double(x->dout, pe_row(&a->dout, x->b, x->h, i), a->dout.dtype, 1, p->Dv);
    const double delta = pe_reference_dot(x->dout, o, p->Dv); /* sum_j P_ij dP_ij */
    pe_reference_score_row(x, i, s, 0);
    for (int64_t j = 0; j < p->Lk; j++) {
        const double P = s[j] == -INFINITY ? 0 : exp(s[j] - lse);
        s[j]           = P == 0 ? 0 : P * (weight_back(x, i, j, P) - delta);
    }
    hook_back(x, i, s, dproducts);
    if (pe_pairs_wanted(a))
        pe_pairs_add(a, x->h, i, 0, p->Lk, s);
    for (int64_t j = 0; j < p->Lk; j++)
        if (s[j] != 0 || dproducts[j] != 0)
            score_back(x, i, j, s[j], s[j] + dproducts[j]);
}

static void store_rows(const posenc_tensor *t, int64_t b, int64_t h, const double *from, int64_t L,
                       int64_t width)
{
    for (int64_t s = 0; t->data && s < L; s++)
        pe_store_double(pe_row(t, b, h, s), t->dtype, 1, from + s * width, width);
}

/* Cotangents of prepared rows to those of the caller's, in x->draw, and to parameters. */
static void prepare_back(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a                    = x->a;
    const pe_part      *part                 = &a->parts[PE_SCORE];
    const int           keys                 = side == PE_KEYS;
    double *const       none[PE_HOOK_PARAMS] = {0};
    pe_reference_load_rows(x->raw, keys ? &a->k : &a->q, x->b, h, keys ? a->sizes.Lk : a->sizes.Lq, a->D);
    a->terms->prepare.fold(part->p, part->par, side, h, keys ? x->k_pos : x->q_pos,
                           keys ? a->sizes.Lk : a->sizes.Lq, x->raw, keys ? x->dK : x->dQ, x->draw,
                           part->dpar ? part->dpar : none);
}

/* The adjoint of load_side. */
static void store_side(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    const int64_t       L    = keys ? a->sizes.Lk : a->sizes.Lq;
    double             *rows = keys ? x->dK : x->dQ;
    if (a->turn)
        pe_reference_turn(x, side, h, rows, -1);
    if (a->terms->prepare.fill)
        prepare_back(x, side, h);
    store_rows(keys ? &a->dk : &a->dq, x->b, h, a->terms->prepare.fill ? x->draw : rows, L, a->D);
}

/* Rows that heads share and the caller keeps are folded once, when all heads of all items have added to
   them. */
static void fold_tables(const pe_reference_head *x, int shared)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m    = pe_member(a->terms, kind);
        const pe_part       *part = &a->parts[m.owner];
        if (pe_has(a->terms, kind) && pe_member_wanted(part, &m) && (m.row != NULL) == shared &&
            !(kind == PE_B && pe_tables_shared(a->terms)))
            pe_member_fold(part, &m, pe_member_width(&a->sizes, kind), x->h, a->distances.low,
                           a->distances.count, x->dby[kind]);
    }
}

static void clear_tables(const pe_reference_head *x, int shared)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (pe_has(a->terms, kind) && (pe_member(a->terms, kind).row != NULL) == shared)
            memset(x->dby[kind], 0,
                   (size_t)(a->distances.count * pe_member_width(&a->sizes, kind)) * sizeof(double));
}

static void backward_head(pe_reference_head *x, int64_t b, int64_t h)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    pe_reference_load(x, b, h);
    memset(x->dQ, 0, (size_t)(p->Lq * pe_query_width(a)) * sizeof(double));
    clear_tables(x, 0);
    for (int64_t i = 0; i < p->Lq; i++)
        backward_row(x, i);
    store_side(x, PE_QUERIES, h);
    fold_tables(x, 0);
}

void pe_reference_backward(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_reference_head x = pe_reference_lay_out(a, arena, 1);
    if (!arena->memory)
        return;
    clear_tables(&x, 1);
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t g = 0; g < p->G; g++) {
            memset(x.dK, 0, (size_t)(p->Lk * p->D) * sizeof(double));
            memset(x.dV, 0, (size_t)(p->Lk * p->Dv) * sizeof(double));
            for (int64_t h = g * (p->H / p->G); h < (g + 1) * (p->H / p->G); h++)
                backward_head(&x, b, h);
            store_side(&x, PE_KEYS, g);
            store_rows(&a->dv, b, g, x.dV, p->Lk, p->Dv);
        }
    fold_tables(&x, 1);
}
