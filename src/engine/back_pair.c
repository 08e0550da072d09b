/* SPDX-License-Identifier: MIT */
/* One pair of tiles, backward. Formulas: tiled_back.c. */
#include <math.h>
#include <string.h>

#include "engine/back.h"
#include "engine/groups.h"
#include "engine/sharp.h"
#include "engine/tile_scores.h"

/* Where the second form of queries at Qu lies; NULL where there is one. */
float *pe_second_form(const pe_backward *w, float *Qu)
{
    const pe_attention *a = w->T.a;
    return pe_forms(a->terms) > 1 ? Qu + a->sizes.H * a->sizes.Lq * w->T.Dp : NULL;
}

pe_pair pe_pair_of(const pe_backward *w, int64_t h, int64_t chunk, int64_t I, int64_t J)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    pe_pair           x = {.h = h, .chunk = chunk, .I = I, .J = J};
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

/* dX = dY Z, [R,C] of the tile, where a query may see a key; elsewhere 0. */
void pe_seen_product(const pe_tiles *T, const pe_scratch *z, float *dX, const float *dY, int64_t stride,
                     const float *Z, int64_t R, int64_t C, int64_t K)
{
    for (int64_t r = 0; r < R;) {
        const pe_group y    = pe_group_at(z, r, R, C);
        const int64_t  last = y.first + pe_padded(y.count);
        for (int64_t i = r; y.count < C && i < r + y.rows; i++) {
            memset(dX + i * T->Bcp, 0, (size_t)y.first * sizeof *dX);
            memset(dX + i * T->Bcp + last, 0, (size_t)(T->Bcp - last) * sizeof *dX);
        }
        T->a->kernels->product(dX + r * T->Bcp + y.first, T->Bcp, dY + r * stride, stride, 1, Z + y.first,
                               T->Bcp, y.rows, y.count, K, 0);
        r += y.rows;
    }
}

/* To keys (dK, dV) += X^T Y of the queries that meet them. */
void pe_meeting_product(const pe_tiles *T, const pe_scratch *z, float *to, int64_t to_stride, const float *X,
                        const float *Y, int64_t y_stride, int64_t R, int64_t C, int64_t width)
{
    const int64_t keys = z->limited ? PE_LANES : C;
    for (int64_t c = 0; c < C; c += keys) {
        const pe_group y = pe_meeting(z, c, pe_smaller(keys, C - c), R);
        T->a->kernels->product(to + c * to_stride, to_stride, X + y.first * T->Bcp + c, 1, T->Bcp,
                               Y + y.first * y_stride, y_stride, y.rows, width, y.count, 1);
    }
}

float *pe_query_rows(const pe_tiles *T, const pe_pair *x, const pe_scratch *z, const double *sums)
{
    if (!sums)
        return x->dQ;
    memset(z->rows, 0, (size_t)(x->R * T->Dp) * sizeof *z->rows);
    return z->rows;
}

void pe_query_sums(const pe_tiles *T, const pe_pair *x, const pe_scratch *z, double *sums)
{
    for (int64_t r = 0; sums && r < x->R; r++)
        for (int64_t d = 0; d < T->a->sizes.D; d++) {
            x->dQ[r * T->Dp + d] += z->rows[r * T->Dp + d];
            sums[d] += (double)z->rows[r * T->Dp + d];
        }
}

/* dQ += dS K, the keys that each query sees. */
static void seen_queries(const pe_backward *w, const pe_pair *x, const pe_scratch *z, const float *dS,
                         double *sums)
{
    const pe_tiles *T  = &w->T;
    float          *to = pe_query_rows(T, x, z, sums);
    for (int64_t r = 0; r < x->R;) {
        const pe_group y = pe_group_at(z, r, x->R, x->C);
        T->a->kernels->product(to + r * T->Dp, T->Dp, dS + r * T->Bcp + y.first, T->Bcp, 1,
                               z->K + y.first * T->Dp, T->Dp, y.rows, T->a->sizes.D, y.count, 1);
        r += y.rows;
    }
    pe_query_sums(T, x, z, sums);
}

/* The sum of a row, in lanes that do not wait for one another. */
static double row_sum(const float *x, int64_t n)
{
    enum { APART = 8 };
    double lanes[APART] = {0}, sum = 0;
    for (int64_t i = 0; i + APART <= n; i += APART)
        for (int k = 0; k < APART; k++)
            lanes[k] += (double)x[i + k];
    for (int64_t i = n - n % APART; i < n; i++)
        sum += (double)x[i];
    for (int k = 0; k < APART; k++)
        sum += lanes[k];
    return sum;
}

/* What a query and the segments share in scale * (q + us) . G[g], `sum` being that of the query's dS there:
   dQ and dG; dQ takes the scale at the end, scaled queries carry it already. */
static void segment_row_back(double sum, const double *restrict G, const float *restrict q,
                             float *restrict dQ, double *restrict dG, int64_t D)
{
    for (int64_t d = 0; d < D; d++)
        dQ[d] += (float)(sum * G[d]);
    for (int64_t d = 0; dG && d < D; d++)
        dG[d] += sum * (double)q[d];
}

/* And what follows from the sum of all queries: dus, which takes the scale at the end, and the rest of dG. */
static void segment_sum_back(const pe_backward *w, const pe_pair *x, int g, double total)
{
    const pe_attention *a = w->T.a;
    const int64_t       D = a->sizes.D, sums = x->h * w->chunks + x->chunk;
    const double       *u = pe_head_vector(a, a->terms->u, x->h), *us = pe_head_vector(a, a->terms->us, x->h),
                 *G = pe_segment_vector(a, x->h, g);
    for (int64_t d = 0; d < D; d++) {
        w->dus[sums * D + d] += total * G[d];
        if (w->wants_G)
            w->dG[(2 * sums + g) * D + d] += total * a->terms->scale * ((us ? us[d] : 0) - (u ? u[d] : 0));
    }
}

/* Row sums of dS by segment meet G and the queries. */
static void segments_back(const pe_backward *w, const pe_pair *x, const pe_scratch *z, const float *dS)
{
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D, sums = x->h * w->chunks + x->chunk;
    const int           segments = pe_segments_known(a) ? 2 : 1;
    double              total[2] = {0, 0};
    for (int64_t r = 0; r < x->R; r++) {
        const float *q      = w->Qu + (x->h * a->sizes.Lq + x->i0 + r) * T->Dp;
        double       sum[2] = {0, 0};
        if (segments == 1)
            sum[0] = row_sum(dS + r * T->Bcp, x->C);
        for (int64_t c = 0; segments == 2 && c < x->C; c++)
            sum[z->q_seg[r] != z->k_seg[c]] += (double)dS[r * T->Bcp + c];
        for (int g = 0; g < segments; g++) {
            segment_row_back(sum[g], pe_segment_vector(a, x->h, g), q, x->dQ + r * T->Dp,
                             w->wants_G ? w->dG + (2 * sums + g) * D : NULL, D);
            total[g] += sum[g];
        }
    }
    for (int g = 0; g < segments; g++)
        segment_sum_back(w, x, g, total[g]);
}

/* dX = dS to the hook's parameters; for one with content also to queries, and to the products: dS becomes the
   cotangent of those. */
static void hook_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, float *dS)
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
static void pairs_back(const pe_backward *w, const pe_pair *x, const pe_scratch *z, const float *dS)
{
    for (int64_t r = 0; r < x->R; r++) {
        for (int64_t c = 0; c < x->C; c++)
            z->pair_row[c] = (double)dS[r * w->T.Bcp + c];
        pe_pairs_add(w->T.a, x->h, x->i0 + r, x->j0, x->C, z->pair_row);
    }
}

/* A weight that is 1 leaves nothing to the others, so that dS = W (1 - W) (...) = 0. Without gate and r, dW
   and delta are then the same sum and cancel to the bit; with them o was rounded on another way, and what
   would be left is noise. */
static void settle_certain(const pe_pair *x, const float *W, float *dS, int64_t stride)
{
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (W[r * stride + c] == 1)
                dS[r * stride + c] = 0;
}

/* What the scores of a tile are to be less: lse, or what of it they have not been made less by yet. */
static const float *lse_of_scores(const pe_backward *w, const pe_pair *x, const pe_scratch *z)
{
    const float *lse = w->lse + x->h * w->T.a->sizes.Lq + x->i0;
    if (!pe_is_shifted(&w->T, z) && !pe_is_sharp(&w->T))
        return lse;
    for (int64_t r = 0; r < x->R; r++)
        z->m[r] = pe_is_shifted(&w->T, z) ? 0 : (float)((double)lse[r] - z->top[r]);
    return z->m;
}

/* Weights of the pair into z->S and the cotangents of the softmax's output into z->W; 0 if no pair is
   allowed. */
int pe_weights_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, int sums)
{
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const pe_problem   *p  = &a->sizes;
    const pe_kernels   *k  = a->kernels;
    const int64_t       at = x->h * p->Lq + x->i0;
    const float        *Qu = w->Qu + at * T->Dp, *Qw = w->Qw ? w->Qw + at * T->Dp : NULL,
                *dO = w->dout + at * T->Dvp;
    z->lse          = w->lse + at;
    z->Q2           = pe_second_form(w, w->Qu + at * T->Dp);
    if (pe_is_sharp(T))
        pe_sharpen_tile(T, z, w->b, x->h, x->i0, x->R, x->j0, x->C, w->lse + at);
    pe_tile_terms terms;
    if (!pe_tile_products(T, z, z->S, w->b, x->h, x->I, x->J, Qu, Qw, z->Kt, w->key_mask, 0, &terms))
        return 0;
    k->weights(z->S, T->Bcp, &terms, lse_of_scores(w, x, z), x->R, x->C);
    pe_seen_product(T, z, z->W, dO, T->Dvp, z->Vt, x->R, x->C, p->Dv);
    pe_values_back(w, x, z, z->S, z->W, dO, sums);
    return 1;
}

/* Products of grown queries and keys: dKg sees the queries as they were grown, dQ the keys by the same
   factors. */
static void grown_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS,
                       const float *Qg, float *dQ, double *sums)
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

/* The cotangent of a modulus: the second form's share of it goes to its queries and the keys, dS becomes the
   first's. */
static void forms_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, float *dS)
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

void pe_pair_back(const pe_backward *w, const pe_pair *x, pe_scratch *z)
{
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const pe_kernels   *k  = a->kernels;
    const int64_t       at = x->h * a->sizes.Lq + x->i0, D = a->sizes.D;
    float              *W = z->S, *dS = z->W;
    double             *moments = w->moments + 2 * at;
    z->backward                 = 1;
    z->state                    = a->terms->hook.state ? w->state + at * PE_HOOK_STATE : z->own_state;
    z->whole_row                = T->key_tiles == 1;
    if (z->whole_row && a->terms->hook.state)
        memset(z->state, 0, (size_t)(x->R * PE_HOOK_STATE) * sizeof(double));
    if (!pe_weights_back(w, x, z, 1))
        return;
    z->whole_row = 0;
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
        pe_skewed_back(w, x, z, dS);
    else if (T->by_distance)
        pe_looked_up_back(w, x, z, dS);
    if (a->terms->G != PE_NONE)
        segments_back(w, x, z, dS);
    if (w->wants_hook && T->kept)
        pe_kept_sum(w, x, dS);
    else if (w->wants_hook && z->hooked)
        hook_back(w, x, z, dS);
    if (pe_pairs_wanted(a))
        pairs_back(w, x, z, dS);
    if (z->Q2)
        forms_back(w, x, z, dS);
    if (a->grown) {
        grown_back(w, x, z, dS, z->Qg, x->dQ, w->wants_u ? x->du : NULL);
        return;
    }
    pe_meeting_product(T, z, z->dK, T->Dp, dS, w->Qu + at * T->Dp, T->Dp, x->R, x->C, D);
    seen_queries(w, x, z, dS, w->wants_u ? x->du : NULL);
}
