/* SPDX-License-Identifier: MIT */
/* Rows of scores in double, as the formula of terms.h reads. Contract: reference_head.h. */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/reference_head.h"

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
