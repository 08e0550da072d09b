/* SPDX-License-Identifier: MIT */
/* One pair of tiles, backward. Formulas: tiled_backward.c. */
#include <string.h>

#include "engine/tiled/backward.h"

/* ---- products of queries and keys ---- */

/* dX = dY Z, [R,C] of the tile, where a query may see a key; elsewhere 0. */
static void seen_product(const pe_tiles *T, const pe_scratch *z, float *dX, const float *dY, int64_t stride,
                         const float *Z, int64_t K)
{
    for (int64_t r = 0; r < z->R;) {
        const pe_visible y    = pe_visible_keys(z, r);
        const int64_t    last = y.first + pe_padded(y.count);
        for (int64_t i = r; y.count < z->C && i < r + y.rows; i++) {
            memset(dX + i * T->Bcp, 0, (size_t)y.first * sizeof *dX);
            memset(dX + i * T->Bcp + last, 0, (size_t)(T->Bcp - last) * sizeof *dX);
        }
        T->a->kernels->product(dX + r * T->Bcp + y.first, T->Bcp, dY + r * stride, stride, 1, Z + y.first,
                               T->Bcp, y.rows, y.count, K, 0);
        r += y.rows;
    }
}

/* To keys (dK, dV) += X^T Y of the queries that see them. */
static void product_to_keys(const pe_tiles *T, const pe_scratch *z, float *to, int64_t to_stride,
                            const float *X, const float *Y, int64_t y_stride, int64_t width)
{
    const int64_t keys = z->limited ? PE_LANES : z->C;
    for (int64_t c = 0; c < z->C; c += keys) {
        const pe_visible y = pe_queries_of_keys(z, c, pe_smaller(keys, z->C - c));
        T->a->kernels->product(to + c * to_stride, to_stride, X + y.first * T->Bcp + c, 1, T->Bcp,
                               Y + y.first * y_stride, y_stride, y.rows, width, y.count, 1);
    }
}

/* Where products of the pair are added that are to reach dQ: dQ itself; or, where a vector added to q wants
   its gradient in `sums`, rows that query_sums then adds to both. */
static float *query_rows(const pe_tiles *T, const pe_scratch *z, const double *sums)
{
    if (!sums)
        return z->back.dQ;
    memset(z->rows, 0, (size_t)(z->R * T->Dp) * sizeof *z->rows);
    return z->rows;
}

static void query_sums(const pe_tiles *T, const pe_scratch *z, double *sums)
{
    for (int64_t r = 0; sums && r < z->R; r++)
        for (int64_t d = 0; d < T->a->sizes.D; d++) {
            z->back.dQ[r * T->Dp + d] += z->rows[r * T->Dp + d];
            sums[d] += (double)z->rows[r * T->Dp + d];
        }
}

/* ---- members by distance ---- */

/* Where the cotangents of a run of rows from `row` of a member add up, for this head and chunk. */
static double *scalar_sums(const pe_backward *w, const pe_scratch *z, pe_kind kind, int64_t row)
{
    const pe_distance_table *t = &w->T.by[kind];
    return w->dby1[kind] + (z->h * w->chunks + z->back.chunk) * t->count + pe_row_in(t, row);
}

static float *vector_sums(const pe_backward *w, const pe_scratch *z, pe_kind kind, int64_t row)
{
    const pe_distance_table *t = &w->T.by[kind];
    return w->dby[kind] + ((z->h * w->chunks + z->back.chunk) * t->count + pe_row_in(t, row)) * t->row;
}

/* A scalar by distance: the tile's sums along diagonals. */
static void sum_diagonals(const pe_backward *w, pe_scratch *z, pe_kind kind, const float *tile)
{
    const int64_t x0 = z->x0, n = z->R + z->C - 1;
    double       *to = scalar_sums(w, z, kind, x0);
    memset(z->back.diagonal, 0, (size_t)n * sizeof(float));
    w->T.a->kernels->diagonal_sums(z->back.diagonal, tile, w->T.Bcp, z->R, z->C);
    for (int64_t c = 0; c < n; c++)
        to[c] += (double)z->back.diagonal[c];
}

/* to += X^T Y, for each group of distances the queries that stand so far from a key they see. */
static void product_to_band(const pe_tiles *T, const pe_scratch *z, float *to, const float *Y, int64_t width)
{
    const int64_t stride = pe_padded(width), n = z->R + z->C - 1;
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const pe_visible y = pe_queries_of_band(z, x, pe_smaller(PE_LANES, n - x));
        T->a->kernels->product(to + x * stride, stride, z->band.shift + y.first * T->band_width + x, 1,
                               T->band_width, Y + y.first * stride, stride, y.rows, width, y.count, 1);
    }
}

/* Cotangents of the profile of the tile's queries; NULL: not wanted. */
static float *profile_rows(const pe_backward *w, const pe_scratch *z)
{
    const pe_problem *p = &w->T.a->sizes;
    return w->dprofile ? w->dprofile + ((z->back.chunk * p->H + z->h) * p->Lq + z->i0) * w->T.Ap : NULL;
}

/* Queries and A along diagonals. */
static void query_band_back(const pe_backward *w, pe_scratch *z, const float *dS)
{
    const pe_tiles *T     = &w->T;
    const int64_t   width = pe_width_of_A(T), x0 = z->x0;
    double         *sums = w->wants_w ? z->back.dw : NULL;
    float          *to   = T->a->terms->profile == PE_NONE ? query_rows(T, z, sums) : profile_rows(w, z);
    pe_tile_scores_shift(T, z, dS);
    if (to)
        pe_tile_scores_band_product(T, z, to, pe_rows_by(T, PE_A, z->h, x0), width);
    query_sums(T, z, sums);
    if (w->wants[PE_A])
        product_to_band(T, z, vector_sums(w, z, PE_A, x0), w->Qw + (z->h * T->a->sizes.Lq + z->i0) * T->Ap,
                        width);
}

/* Some keys: their columns of dS, times scale, shifted into beta [C, band], of which `at` tells what is not
   0. */
static void shift_keys(const pe_tiles *T, const pe_scratch *z, const float *dS, int64_t c0, int64_t n,
                       pe_visible *at)
{
    const float      scale = (float)T->a->terms->scale;
    const pe_visible seen  = pe_queries_of_keys(z, c0, n);
    *at                    = (pe_visible){n, c0 + z->R - seen.first - seen.count, seen.count + n - 1};
    for (int64_t c = c0; c < c0 + n; c++) {
        float *row = z->band.beta + c * T->band_width;
        memset(row, 0, (size_t)T->band_width * sizeof(float));
        for (int64_t r = seen.first; r < seen.first + seen.count; r++)
            row[c + z->R - 1 - r] = scale * dS[r * T->Bcp + c];
    }
}

/* dB[x] += the column x of beta times K, for each group of distances the keys that stand so far from a
   query. */
static void keys_to_band(const pe_tiles *T, const pe_scratch *z, float *to)
{
    const int64_t n = z->R + z->C - 1;
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const int64_t some = pe_smaller(PE_LANES, n - x), c0 = pe_larger(0, x - (z->R - 1)),
                      c1 = pe_smaller(z->C, x + some);
        T->a->kernels->product(to + x * T->Dp, T->Dp, z->band.beta + c0 * T->band_width + x, 1, T->band_width,
                               z->back.K + c0 * T->Dp, T->Dp, some, T->a->sizes.D, c1 - c0, 1);
    }
}

/* Keys and B. */
static void key_band_back(const pe_backward *w, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = z->x0;
    const float    *B = pe_rows_by(&w->T, PE_B, z->h, x0);
    for (int64_t c = 0; c < z->C; c += PE_LANES) {
        pe_visible y;
        shift_keys(T, z, dS, c, pe_smaller(PE_LANES, z->C - c), &y);
        T->a->kernels->product(z->back.dK + c * T->Dp, T->Dp, z->band.beta + c * T->band_width + y.first,
                               T->band_width, 1, B + y.first * T->Dp, T->Dp, y.rows, D, y.count, 1);
    }
    if (w->wants[PE_B])
        keys_to_band(T, z, vector_sums(w, z, PE_B, x0));
}

/* dS without the pairs that have no bias, in z->extra, which is done with. */
static const float *without_special(const pe_tiles *T, pe_scratch *z, const float *dS)
{
    const int64_t R = z->R, C = z->C;
    memcpy(z->extra, dS, (size_t)(R * T->Bcp) * sizeof(float));
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (pe_pair_is_special(T, z, r, c))
                z->extra[r * T->Bcp + c] = 0;
    return z->extra;
}

static void skewed_back(const pe_backward *w, pe_scratch *z, const float *dS)
{
    const int special = w->T.a->terms->hook.is_special && z->hook.is_called;
    if (w->wants[PE_BIAS])
        sum_diagonals(w, z, PE_BIAS, special ? without_special(&w->T, z, dS) : dS);
    if (w->T.by[PE_A].rows && !pe_profile_is_over(&w->T, z->x0))
        query_band_back(w, z, dS);
    if (w->T.by[PE_B].rows)
        key_band_back(w, z, dS);
}

/* Score terms of one element whose distance has table row `row`. */
static void element_back(const pe_backward *w, pe_scratch *z, int64_t r, int64_t c, int64_t row, float dS)
{
    const pe_tiles *T     = &w->T;
    const int64_t   D     = T->a->sizes.D;
    const float     scale = (float)T->a->terms->scale;
    if (w->wants[PE_BIAS] && !pe_pair_is_special(T, z, r, c))
        *scalar_sums(w, z, PE_BIAS, row) += (double)dS;
    if (T->by[PE_A].rows) {
        const float *A  = pe_rows_by(&w->T, PE_A, z->h, row);
        float       *dr = profile_rows(w, z);
        if (T->a->terms->profile == PE_NONE)
            pe_add_floats(z->back.dQ + r * T->Dp, dS, A, D);
        else if (dr)
            pe_add_floats(dr + r * T->Ap, dS, A, T->Ap);
        for (int64_t d = 0; w->wants_w && d < D; d++)
            z->back.dw[d] += (double)(dS * A[d]);
    }
    if (w->wants[PE_A])
        pe_add_floats(vector_sums(w, z, PE_A, row), dS, w->Qw + (z->h * T->a->sizes.Lq + z->i0 + r) * T->Ap,
                      T->Ap);
    if (T->by[PE_B].rows)
        pe_add_floats(z->back.dK + c * T->Dp, scale * dS, pe_rows_by(&w->T, PE_B, z->h, row), D);
    if (w->wants[PE_B])
        pe_add_floats(vector_sums(w, z, PE_B, row), scale * dS, z->back.K + c * T->Dp, D);
}

/* The same where distances were looked up one by one (z holds the tile's positions still). */
static void looked_up_back(const pe_backward *w, pe_scratch *z, const float *dS)
{
    const int64_t   R = z->R, C = z->C;
    const pe_tiles *T = &w->T;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double t = z->q_pos[r] - z->k_pos[c];
            if (dS[r * T->Bcp + c] != 0 && pe_band_has(T, t))
                element_back(w, z, r, c, pe_band_row(T, t), dS[r * T->Bcp + c]);
        }
}

/* shift[r,x] = dO[r,:] . r[x] where a query of the group sees a key at that distance; elsewhere 0. */
static void seen_band(const pe_tiles *T, const pe_scratch *z, const float *dO, const float *columns)
{
    const int64_t width = T->band_width;
    for (int64_t r = 0; r < z->R; r += PE_LANES) {
        const pe_visible y  = pe_band_group(z, r);
        const int64_t first = y.first / PE_LANES * PE_LANES, count = y.count ? y.first + y.count - first : 0;
        memset(z->band.shift + r * width, 0, (size_t)(y.rows * width) * sizeof *z->band.shift);
        T->a->kernels->product(z->band.shift + r * width + first, width, dO + r * T->Dvp, T->Dvp, 1,
                               columns + first, T->by[PE_R].stride, y.rows, count, T->a->sizes.Dv, 0);
    }
}

/* dW = dO V^T becomes the cotangent of the gated weights: plus dO . r[t]. */
static void add_value_vectors(const pe_backward *w, pe_scratch *z, const float *W, float *dW, const float *dO)
{
    const int64_t     R = z->R, C = z->C;
    const pe_tiles   *T  = &w->T;
    const pe_kernels *k  = T->a->kernels;
    const int64_t     Dv = T->a->sizes.Dv, x0 = z->x0;
    if (!T->by[PE_R].rows)
        return;
    if (T->skewed) {
        seen_band(T, z, dO, pe_columns_by(T, PE_R, z->h, x0));
        k->add_skewed(dW, T->Bcp, z->band.shift + R - 1, T->band_width - 1, R, C);
        return;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double t    = z->q_pos[r] - z->k_pos[c];
            const int    sees = W[r * T->Bcp + c] != 0 && pe_band_has(T, t);
            const float *row  = sees ? pe_rows_by(T, PE_R, z->h, pe_band_row(T, t)) : NULL;
            for (int64_t d = 0; sees && d < Dv; d++)
                dW[r * T->Bcp + c] += dO[r * T->Dvp + d] * row[d];
        }
}

/* dr[t] += the gated weights along the distance times dO. */
static void value_vectors_back(const pe_backward *w, pe_scratch *z, const float *gated, const float *dO)
{
    const int64_t   R = z->R, C = z->C;
    const pe_tiles *T  = &w->T;
    const int64_t   Dv = T->a->sizes.Dv;
    if (!w->wants[PE_R])
        return;
    if (T->skewed) {
        pe_tile_scores_shift(T, z, gated);
        product_to_band(T, z, vector_sums(w, z, PE_R, z->x0), dO, Dv);
        return;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double t = z->q_pos[r] - z->k_pos[c];
            if (gated[r * T->Bcp + c] != 0 && pe_band_has(T, t))
                pe_add_floats(vector_sums(w, z, PE_R, pe_band_row(T, t)), gated[r * T->Bcp + c],
                              dO + r * T->Dvp, Dv);
        }
}

/* dc[t] += sum of W * dW along the distance, dW being that of the gated weight. */
static void gate_back(const pe_backward *w, pe_scratch *z, const float *W, const float *dW)
{
    const int64_t   R = z->R, C = z->C;
    const pe_tiles *T = &w->T;
    if (!w->wants[PE_GATE])
        return;
    memcpy(z->back.gated, W, (size_t)(R * T->Bcp) * sizeof(float));
    T->a->kernels->gate(z->back.gated, T->Bcp, dW, T->Bcp, R, C);
    if (T->skewed)
        sum_diagonals(w, z, PE_GATE, z->back.gated);
    for (int64_t r = 0; !T->skewed && r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double t = z->q_pos[r] - z->k_pos[c];
            if (W[r * T->Bcp + c] != 0 && pe_band_has(T, t))
                *scalar_sums(w, z, PE_GATE, pe_band_row(T, t)) += (double)z->back.gated[r * T->Bcp + c];
        }
}

/* dW (from dO V^T) becomes the cotangent of the softmax's output; with `sums`, values, gate and r
   get theirs. */
static void values_back(const pe_backward *w, pe_scratch *z, float *W, float *dW, const float *dO, int sums)
{
    const pe_tiles   *T = &w->T;
    const pe_kernels *k = T->a->kernels;
    int64_t           step;
    const float      *gate  = pe_tile_scores_gate(T, z, &step);
    float            *gated = gate ? z->back.gated : W;
    add_value_vectors(w, z, W, dW, dO);
    if (sums && gate) {
        memcpy(gated, W, (size_t)(z->R * T->Bcp) * sizeof(float));
        k->gate(gated, T->Bcp, gate, step, z->R, z->C);
    }
    if (sums) {
        product_to_keys(T, z, z->back.dV, T->Dvp, gated, dO, T->Dvp, T->a->sizes.Dv);
        value_vectors_back(w, z, gated, dO);
    }
    if (sums && gate)
        gate_back(w, z, W, dW);
    if (gate)
        k->gate(dW, T->Bcp, gate, step, z->R, z->C);
}

/* ---- the pair ---- */

void pe_pair_backward_begin(const pe_backward *w, pe_scratch *z, int64_t h, int64_t chunk, int64_t I,
                            int64_t J)
{
    const pe_problem *p = &w->T.a->sizes;
    pe_tile_begin(&w->T, z, w->b, h, I, J);
    z->back.g     = h / (p->H / p->G);
    z->back.chunk = chunk;
    z->back.dQ    = w->dQ + ((chunk * p->H + h) * p->Lq + z->i0) * w->T.Dp;
    z->back.du    = w->du + (h * w->chunks + chunk) * p->D;
    z->back.dw    = w->dw + (h * w->chunks + chunk) * p->D;
}

/* to += dS K, the keys that each query sees. */
static void add_seen(const pe_tiles *T, const pe_scratch *z, float *to, const float *dS, const float *K)
{
    for (int64_t r = 0; r < z->R;) {
        const pe_visible y = pe_visible_keys(z, r);
        T->a->kernels->product(to + r * T->Dp, T->Dp, dS + r * T->Bcp + y.first, T->Bcp, 1,
                               K + y.first * T->Dp, T->Dp, y.rows, T->a->sizes.D, y.count, 1);
        r += y.rows;
    }
}

/* dQ += dS K */
static void seen_queries(const pe_backward *w, const pe_scratch *z, const float *dS, double *sums)
{
    add_seen(&w->T, z, query_rows(&w->T, z, sums), dS, z->back.K);
    query_sums(&w->T, z, sums);
}

/* The same of each form that meets in the tile, dS of its own pairs alone; dK of its keys. */
static void mapped_back(const pe_backward *w, const pe_scratch *z, const float *dS)
{
    const pe_tiles   *T   = &w->T;
    const pe_problem *p   = &T->a->sizes;
    const pe_map     *map = &T->a->rotary->map;
    const int64_t     D = p->D, step = w->chunks * p->H * p->Lq * T->Dp;
    const int         several = (z->map.classes & (z->map.classes - 1)) != 0;
    for (int n = 0; n < T->forms[PE_QUERIES]; n++) {
        const int64_t at = pe_map_key_form(map, n) * T->Bc * T->Dp;
        if (!(z->map.classes >> n & 1))
            continue;
        for (int64_t r = 0; several && r < z->R; r++) {
            memset(z->map.S + r * T->Bcp, 0, (size_t)T->Bcp * sizeof(float));
            for (int64_t c = 0, run; c < z->C; c += run)
                if (pe_map_run(T, z, r, c, &run) == n)
                    memcpy(z->map.S + r * T->Bcp + c, dS + r * T->Bcp + c, (size_t)run * sizeof *dS);
        }
        const float *own = several ? z->map.S : dS;
        product_to_keys(T, z, z->back.dK + at, T->Dp, own, z->map.Q + n * z->map.step, T->Dp, D);
        add_seen(T, z, z->back.dQ + n * step, own, z->back.K + at);
    }
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
static void segment_sum_back(const pe_backward *w, const pe_scratch *z, int g, double total)
{
    const pe_attention *a = w->T.a;
    const int64_t       D = a->sizes.D, sums = z->h * w->chunks + z->back.chunk;
    const double       *u = pe_head_vector(a, a->terms->u, z->h), *us = pe_head_vector(a, a->terms->us, z->h),
                 *G = pe_segment_vector(a, z->h, g);
    for (int64_t d = 0; d < D; d++) {
        w->dus[sums * D + d] += total * G[d];
        if (w->wants_G)
            w->dG[(2 * sums + g) * D + d] += total * a->terms->scale * ((us ? us[d] : 0) - (u ? u[d] : 0));
    }
}

/* Row sums of dS by segment times G and the queries. */
static void segments_back(const pe_backward *w, const pe_scratch *z, const float *dS)
{
    const int64_t       R = z->R, C = z->C;
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D, sums = z->h * w->chunks + z->back.chunk;
    const int           segments = pe_has_segments(a) ? 2 : 1;
    double              total[2] = {0, 0};
    for (int64_t r = 0; r < R; r++) {
        const float *q      = w->Qu + (z->h * a->sizes.Lq + z->i0 + r) * T->Dp;
        double       sum[2] = {0, 0};
        if (segments == 1)
            sum[0] = row_sum(dS + r * T->Bcp, C);
        for (int64_t c = 0; segments == 2 && c < C; c++)
            sum[z->q_seg[r] != z->k_seg[c]] += (double)dS[r * T->Bcp + c];
        for (int g = 0; g < segments; g++) {
            segment_row_back(sum[g], pe_segment_vector(a, z->h, g), q, z->back.dQ + r * T->Dp,
                             w->wants_G ? w->dG + (2 * sums + g) * D : NULL, D);
            total[g] += sum[g];
        }
    }
    for (int g = 0; g < segments; g++)
        segment_sum_back(w, z, g, total[g]);
}

/* dX = dS to the hook's parameters; for one with content also to queries, and to the products: dS becomes the
   cotangent of those. */
static void hook_back(const pe_backward *w, pe_scratch *z, float *dS)
{
    const int64_t       R = z->R, C = z->C;
    const pe_tiles     *T       = &w->T;
    const pe_attention *a       = T->a;
    const pe_tile       tile    = pe_tile_scores_hook_tile(T, z);
    const int           content = a->terms->hook.content;
    const int64_t       D = a->sizes.D, n = R * C;
    const double        inverse = 1 / a->terms->scale; /* dQ takes the scale at the end */
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            z->hook.x[r * C + c] = (double)dS[r * T->Bcp + c];
    if (content) {
        memset(z->hook.ds, 0, (size_t)n * sizeof(double));
        memset(z->hook.dq, 0, (size_t)(R * D) * sizeof(double));
    }
    a->terms->hook.visit_back(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile, z->hook.x,
                              w->hook_pointers + (z->back.g * w->chunks + z->back.chunk) * PE_HOOK_PARAMS);
    for (int64_t r = 0; content && r < R; r++) {
        for (int64_t c = 0; c < C; c++)
            dS[r * T->Bcp + c] += (float)z->hook.ds[r * C + c];
        for (int64_t d = 0; d < D; d++)
            z->back.dQ[r * T->Dp + d] += (float)(z->hook.dq[r * D + d] * inverse);
    }
}

/* Sums of keys, and of queries where nothing else tells them. */
static void drift_back(const pe_backward *w, pe_scratch *z, const float *dS)
{
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    const int64_t Lq = a->sizes.Lq, Lk = a->sizes.Lk, row = (z->back.chunk * a->sizes.H + z->h) * Lq + z->i0;
    double       *dkey = a->drift.dkey[PE_BEHIND] + z->h * Lk + z->j0;
    if (a->terms->drift.two_sided) {
        pe_tile_scores_load_places(T, z);
        for (int64_t x = 0; x < z->R * z->C; x++) {
            const int64_t r = x / z->C, c = x % z->C;
            const int     side = z->k_pos[c] > z->q_pos[r] ? PE_AHEAD : PE_BEHIND;
            const double  d    = (double)dS[r * T->Bcp + c] * (side == PE_AHEAD ? -1 : 1);
            w->drift_rows[side][row + r] += d;
            a->drift.dkey[side][z->h * Lk + z->j0 + c] -= d;
        }
        return;
    }
    for (int64_t r = 0; r < z->R; r++)
        z->drift.ones[r] = 1;
    a->kernels->product(z->drift.sum, T->Bcp, z->drift.ones, T->Br, 1, dS, T->Bcp, 1, z->C, z->R, 0);
    for (int64_t c = 0; c < z->C; c++)
        dkey[c] -= (double)z->drift.sum[c];
    for (int64_t r = 0; w->drift_rows[PE_BEHIND] && r < z->R; r++)
        w->drift_rows[PE_BEHIND][row + r] += row_sum(dS + r * T->Bcp, z->C);
}

/* db of each pair. */
static void pairs_back(const pe_backward *w, const pe_scratch *z, const float *dS)
{
    const int64_t R = z->R, C = z->C;
    for (int64_t r = 0; r < R; r++) {
        for (int64_t c = 0; c < C; c++)
            z->pair_row[c] = (double)dS[r * w->T.Bcp + c];
        pe_pairs_add(w->T.a, z->h, z->i0 + r, z->j0, C, z->pair_row);
    }
}

/* A weight that is 1 leaves nothing to the others, so that dS = W (1 - W) (...) = 0. Without gate and r, dW
   and delta are then the same sum and cancel to the bit; with them o was rounded on another way, and what
   would remain is noise. */
static void settle_certain(const pe_scratch *z, const float *W, float *dS, int64_t stride)
{
    const int64_t R = z->R, C = z->C;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (W[r * stride + c] == 1)
                dS[r * stride + c] = 0;
}

/* With a sink the weights of a row sum to what that leaves: delta is not their mean. */
static void leave_sink(const pe_backward *w, int64_t h, int64_t i0, int64_t n)
{
    const pe_attention *a = w->T.a;
    for (int64_t r = h * a->sizes.Lq + i0; r < h * a->sizes.Lq + i0 + n; r++) {
        const double lse  = (double)w->lse[r] + pe_center(&w->T, h),
                     left = 1 - pe_sink_share(a, w->b, h, r - h * a->sizes.Lq, lse);
        w->moments[2 * r] = left > 0 ? w->moments[2 * r] / left : 0;
    }
}

/* Z = c tanh(tau S / c): dS = tau (1 - (Z/c)^2) dZ, and dtau = sum_j (1 - (Z/c)^2) dZ S, S as it was before.
 */
static void finish_back(const pe_backward *w, const pe_scratch *z, float *dS)
{
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    double *dtau = w->dtau ? w->dtau + (z->back.chunk * a->sizes.H + z->h) * a->sizes.Lq + z->i0 : NULL;
    if (a->softcap > 0)
        a->kernels->gate(dS, T->Bcp, z->finish.slope, T->Bcp, z->R, z->C);
    for (int64_t r = 0; dtau && a->temper.gradient && r < z->R; r++)
        for (int64_t c = 0; c < z->C; c++)
            if (dS[r * T->Bcp + c] != 0)
                dtau[r] += (double)dS[r * T->Bcp + c] * (double)z->finish.raw[r * T->Bcp + c];
    if (a->temper_on == PE_TEMPER_SCORE && !T->folds)
        a->kernels->scale_rows(dS, T->Bcp, z->finish.tau, z->R, z->C);
}

/* lse of row r grows with each score by its weight. */
static void add_lse_back(const float *dlse, const pe_scratch *z, const float *W, float *dS, int64_t stride)
{
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t c = 0; c < z->C; c++)
            if (W[r * stride + c] != 0) /* a row that sees no key may have any dlse */
                dS[r * stride + c] += dlse[r] * W[r * stride + c];
}

/* What is to be subtracted from the scores of a tile: lse, or what of it has not been subtracted yet. */
static const float *lse_of_scores(const pe_backward *w, const pe_scratch *z)
{
    const float *lse = w->lse + z->h * w->T.a->sizes.Lq + z->i0;
    if (!pe_is_shifted(&w->T, z) && !pe_products64_serve(&w->T))
        return lse;
    for (int64_t r = 0; r < z->R; r++)
        z->m[r] = pe_is_shifted(&w->T, z) ? 0 : (float)((double)lse[r] - z->products64.top[r]);
    return z->m;
}

/* The first form of the queries at hand. */
static const float *queries_of(const pe_backward *w, const pe_scratch *z)
{
    return z->chain.X ? z->chain.X : w->Qu + (z->h * w->T.a->sizes.Lq + z->i0) * w->T.Dp;
}

/* The tile's products into z->S, which the terms are still to be added to. */
static int find_scores(const pe_backward *w, pe_scratch *z, pe_tile_terms *terms)
{
    const pe_tiles   *T  = &w->T;
    const pe_problem *p  = &T->a->sizes;
    const int64_t     at = z->h * p->Lq + z->i0;
    const float      *Qu = queries_of(w, z), *Qw = w->Qw ? w->Qw + at * T->Ap : NULL;
    z->back.lse = w->lse + at;
    z->forms.Q2 = pe_second_form(w, w->Qu + at * T->Dp);
    z->map.Q    = Qu;
    z->map.step = p->H * p->Lq * T->Dp;
    z->map.Kt   = z->back.Kt + p->D * T->Bcp;
    if (pe_products64_serve(T))
        pe_products64_fill_tile(T, z, w->lse + at);
    return pe_tile_scores_multiply(T, z, z->S, Qu, Qw, z->back.Kt, w->key_mask, 0, terms);
}

/* The tile's weights into z->S and the cotangents of the softmax's output into z->W; 0 if no pair is allowed.
   With `sums`, values, gate and r get theirs. */
static int find_weights(const pe_backward *w, pe_scratch *z, int sums)
{
    const pe_tiles   *T  = &w->T;
    const pe_kernels *k  = T->a->kernels;
    const float      *dO = w->dout + (z->h * T->a->sizes.Lq + z->i0) * T->Dvp;
    pe_tile_terms     terms;
    if (!find_scores(w, z, &terms))
        return 0;
    if (pe_sticks(T->a))
        pe_stick_weights_again(w, z, &terms);
    else
        k->weights(z->S, T->Bcp, &terms, lse_of_scores(w, z), z->R, z->C);
    seen_product(T, z, z->W, dO, T->Dvp, z->back.Vt, T->a->sizes.Dv);
    values_back(w, z, z->S, z->W, dO, sums);
    return 1;
}

/* ---- a visit before ---- */

int pe_looks_ahead(const pe_backward *w)
{
    return w->stick || (w->T.key_tiles > 1 && (w->T.a->terms->hook.state || w->is_short));
}

void pe_look_begin(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R)
{
    z->backward = 0;
    memset(w->moments + 2 * (h * w->T.a->sizes.Lq + i0), 0, (size_t)(2 * R) * sizeof(double));
    if (w->stick)
        memset(z->stick.left, 0, (size_t)R * sizeof(double));
}

void pe_look(const pe_backward *w, pe_scratch *z)
{
    const pe_tiles *T = &w->T;
    pe_tile_terms   terms;
    if (w->stick && find_scores(w, z, &terms))
        pe_tile_stick_weights(T, z, &terms);
    if (!w->stick && find_weights(w, z, 0) && w->is_short)
        T->a->kernels->row_moments(w->moments + 2 * (z->h * T->a->sizes.Lq + z->i0), z->S, z->W, T->Bcp, z->R,
                                   z->C);
}

void pe_look_end(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R)
{
    if (w->stick)
        pe_stick_start(w, z, h, i0, R);
    else if (w->is_short && w->T.a->has_sink)
        leave_sink(w, h, i0, R);
}

/* ---- the tile's share ---- */

/* Products of grown queries and keys: dKg sees the queries as they were grown, dQ the keys by the same
   factors. */
static void grown_back(const pe_backward *w, pe_scratch *z, const float *dS, const float *Qg, float *dQ,
                       double *sums)
{
    const pe_tiles   *T = &w->T;
    const int64_t     D = T->a->sizes.D;
    const pe_kernels *k = T->a->kernels;
    k->product(z->growth.dK, T->Dp, dS, 1, T->Bcp, Qg, T->Dp, z->C, D, z->R, 1);
    k->product(z->rows, T->Dp, dS, T->Bcp, 1, z->growth.K, T->Dp, z->R, D, z->C, 0);
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t d = 0; d < D; d++) {
            const float dq = z->rows[r * T->Dp + d] * z->growth.factors[r * T->Dp + d];
            dQ[r * T->Dp + d] += dq;
            if (sums)
                sums[d] += (double)dq;
        }
}

/* The cotangent of a modulus: the second form's share of it goes to its queries and the keys, dS becomes the
   first's. */
static void forms_back(const pe_backward *w, pe_scratch *z, float *dS)
{
    const int64_t     R = z->R, C = z->C;
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const pe_kernels *k = T->a->kernels;
    const int64_t     n = T->Br * T->Bcp;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const int64_t at = r * T->Bcp + c;
            z->forms.S2[at]  = dS[at] * z->forms.share[n + at];
            dS[at] *= z->forms.share[at];
        }
    if (T->a->grown) {
        grown_back(w, z, z->forms.S2, z->growth.Q + T->Br * T->Dp,
                   z->back.dQ + w->chunks * p->H * p->Lq * T->Dp, NULL);
        return;
    }
    k->product(z->back.dK, T->Dp, z->forms.S2, 1, T->Bcp, z->forms.Q2, T->Dp, C, p->D, R, 1);
    k->product(z->back.dQ + w->chunks * p->H * p->Lq * T->Dp, T->Dp, z->forms.S2, T->Bcp, 1, z->back.K, T->Dp,
               R, p->D, C, 1);
}

/* Cotangents of the weights, in dS, become those of the scores. */
static void softmax_back(const pe_backward *w, pe_scratch *z, const float *W, float *dS)
{
    const pe_tiles     *T       = &w->T;
    const pe_attention *a       = T->a;
    const pe_kernels   *k       = a->kernels;
    const int64_t       at      = z->h * a->sizes.Lq + z->i0;
    double             *moments = w->moments + 2 * at;
    if (w->is_short && T->key_tiles == 1) {
        memset(moments, 0, (size_t)(2 * z->R) * sizeof(double));
        k->row_moments(moments, W, dS, T->Bcp, z->R, z->C);
    }
    if (w->is_short && a->has_sink && T->key_tiles == 1)
        leave_sink(w, z->h, z->i0, z->R);
    if (w->is_short)
        k->exact_cotangent(dS, W, T->Bcp, moments, z->R, z->C);
    else
        k->score_cotangent(dS, W, T->Bcp, w->delta + at, z->R, z->C);
    if (!w->is_short && (T->by[PE_GATE].rows || T->by[PE_R].rows))
        settle_certain(z, W, dS, T->Bcp);
    if (w->dlse)
        add_lse_back(w->dlse + at, z, W, dS, T->Bcp);
}

void pe_pair_backward_run(const pe_backward *w, pe_scratch *z)
{
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const int64_t       at = z->h * a->sizes.Lq + z->i0, D = a->sizes.D;
    float              *W = z->S, *dS = z->W;
    z->backward       = 1;
    z->hook.state     = a->terms->hook.state ? w->state + at * PE_HOOK_STATE : z->hook.own_state;
    z->hook.whole_row = T->key_tiles == 1;
    if (z->hook.whole_row && a->terms->hook.state)
        memset(z->hook.state, 0, (size_t)(z->R * PE_HOOK_STATE) * sizeof(double));
    if (a->has_rest)
        pe_stick_rest_back(w, z);
    if (!find_weights(w, z, 1))
        return;
    z->hook.whole_row = 0;
    if (pe_sticks(a))
        pe_stick_cotangent(w, z);
    else
        softmax_back(w, z, W, dS);
    if (T->finishes)
        finish_back(w, z, dS);
    if (T->by_distance && T->skewed)
        skewed_back(w, z, dS);
    else if (T->by_distance)
        looked_up_back(w, z, dS);
    if (a->terms->G != PE_NONE)
        segments_back(w, z, dS);
    if (a->drift.dkey[PE_BEHIND])
        drift_back(w, z, dS);
    if (w->wants_hook && T->hook_cache)
        pe_hook_cache_sum(w, z, dS);
    else if (w->wants_hook && z->hook.is_called)
        hook_back(w, z, dS);
    if (pe_pairs_wanted(a))
        pairs_back(w, z, dS);
    if (z->forms.Q2)
        forms_back(w, z, dS);
    if (pe_walls(a)) {
        pe_tile_wall_back(T, z, dS, w->Qu + at * T->Dp);
        return;
    }
    if (a->grown) {
        grown_back(w, z, dS, z->growth.Q, z->back.dQ, w->wants_u ? z->back.du : NULL);
        return;
    }
    if (T->forms[PE_QUERIES] > 1) {
        mapped_back(w, z, dS);
        return;
    }
    product_to_keys(T, z, z->back.dK, T->Dp, dS, queries_of(w, z), T->Dp, D);
    seen_queries(w, z, dS, w->wants_u ? z->back.du : NULL);
}
