/* SPDX-License-Identifier: MIT */
/* Members by distance of one pair of tiles, backward. Formulas: tiled_back.c. */
#include <string.h>

#include "engine/back.h"
#include "engine/groups.h"
#include "engine/tile_scores.h"

/* Where the cotangents of a run of rows from `row` of a member add up, for this head and chunk. */
static double *scalar_sums(const pe_backward *w, const pe_pair *x, pe_kind kind, int64_t row)
{
    const pe_table *t = &w->T.by[kind];
    return w->dby1[kind] + (x->h * w->chunks + x->chunk) * t->count + pe_row_in(t, row);
}

static float *vector_sums(const pe_backward *w, const pe_pair *x, pe_kind kind, int64_t row)
{
    const pe_table *t = &w->T.by[kind];
    return w->dby[kind] + ((x->h * w->chunks + x->chunk) * t->count + pe_row_in(t, row)) * t->row;
}

/* A scalar by distance: the tile's sums along diagonals. */
static void sum_diagonals(const pe_backward *w, const pe_pair *x, pe_scratch *z, pe_kind kind,
                          const float *tile)
{
    const int64_t x0 = pe_band_start(&w->T, x->i0, x->R, x->j0), n = x->R + x->C - 1;
    double       *to = scalar_sums(w, x, kind, x0);
    memset(z->diagonal, 0, (size_t)n * sizeof(float));
    w->T.a->kernels->diagonal_sums(z->diagonal, tile, w->T.Bcp, x->R, x->C);
    for (int64_t c = 0; c < n; c++)
        to[c] += (double)z->diagonal[c];
}

/* to += X^T Y, for each group of distances the queries that stand so far from a key they see. */
static void band_meeting(const pe_tiles *T, const pe_scratch *z, float *to, const float *Y, int64_t R,
                         int64_t C, int64_t width)
{
    const int64_t stride = pe_padded(width), n = R + C - 1;
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const pe_group y = pe_meeting_band(z, x, pe_smaller(PE_LANES, n - x), R, C);
        T->a->kernels->product(to + x * stride, stride, z->shift + y.first * T->band_width + x, 1,
                               T->band_width, Y + y.first * stride, stride, y.rows, width, y.count, 1);
    }
}

/* Queries and A along diagonals. */
static void query_band_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = pe_band_start(T, x->i0, x->R, x->j0);
    double         *sums = w->wants_w ? x->dw : NULL;
    pe_shift_tile(T, z, dS, x->R, x->C);
    pe_band_product(T, z, pe_query_rows(T, x, z, sums), pe_rows_by(T, PE_A, x->h, x0), x->R, x->C, D);
    pe_query_sums(T, x, z, sums);
    if (w->wants[PE_A])
        band_meeting(T, z, vector_sums(w, x, PE_A, x0), w->Qw + (x->h * T->a->sizes.Lq + x->i0) * T->Dp, x->R,
                     x->C, D);
}

/* Some keys: their columns of dS, times scale, shifted into beta [C, band], of which `at` tells what is not
   0. */
static void shift_keys(const pe_tiles *T, const pe_scratch *z, const float *dS, int64_t c0, int64_t n,
                       int64_t R, pe_group *at)
{
    const float    scale = (float)T->a->terms->scale;
    const pe_group seen  = pe_meeting(z, c0, n, R);
    *at                  = (pe_group){n, c0 + R - seen.first - seen.count, seen.count + n - 1};
    for (int64_t c = c0; c < c0 + n; c++) {
        float *row = z->beta + c * T->band_width;
        memset(row, 0, (size_t)T->band_width * sizeof(float));
        for (int64_t r = seen.first; r < seen.first + seen.count; r++)
            row[c + R - 1 - r] = scale * dS[r * T->Bcp + c];
    }
}

/* dB[x] += the column x of beta times K, for each group of distances the keys that stand so far from a
   query. */
static void key_band_meeting(const pe_tiles *T, const pe_scratch *z, float *to, int64_t R, int64_t C)
{
    const int64_t n = R + C - 1;
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const int64_t some = pe_smaller(PE_LANES, n - x), c0 = pe_larger(0, x - (R - 1)),
                      c1 = pe_smaller(C, x + some);
        T->a->kernels->product(to + x * T->Dp, T->Dp, z->beta + c0 * T->band_width + x, 1, T->band_width,
                               z->K + c0 * T->Dp, T->Dp, some, T->a->sizes.D, c1 - c0, 1);
    }
}

/* Keys and B. */
static void key_band_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = pe_band_start(T, x->i0, x->R, x->j0);
    const float    *B = pe_rows_by(&w->T, PE_B, x->h, x0);
    for (int64_t c = 0; c < x->C; c += PE_LANES) {
        pe_group y;
        shift_keys(T, z, dS, c, pe_smaller(PE_LANES, x->C - c), x->R, &y);
        T->a->kernels->product(z->dK + c * T->Dp, T->Dp, z->beta + c * T->band_width + y.first, T->band_width,
                               1, B + y.first * T->Dp, T->Dp, y.rows, D, y.count, 1);
    }
    if (w->wants[PE_B])
        key_band_meeting(T, z, vector_sums(w, x, PE_B, x0), x->R, x->C);
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

void pe_skewed_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
{
    const int apart = w->T.a->terms->hook.apart && z->hooked;
    if (w->wants[PE_BIAS])
        sum_diagonals(w, x, z, PE_BIAS, apart ? without_apart(&w->T, z, x->R, x->C, dS) : dS);
    if (w->T.by[PE_A].rows)
        query_band_back(w, x, z, dS);
    if (w->T.by[PE_B].rows)
        key_band_back(w, x, z, dS);
}

/* Score terms of one element whose distance has table row `row`. */
static void element_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, int64_t r, int64_t c,
                         int64_t row, float dS)
{
    const pe_tiles *T     = &w->T;
    const int64_t   D     = T->a->sizes.D;
    const float     scale = (float)T->a->terms->scale;
    if (w->wants[PE_BIAS] && !pe_pair_is_apart(T, z, r, c))
        *scalar_sums(w, x, PE_BIAS, row) += (double)dS;
    if (T->by[PE_A].rows) {
        const float *A = pe_rows_by(&w->T, PE_A, x->h, row);
        pe_add_floats(x->dQ + r * T->Dp, dS, A, D);
        for (int64_t d = 0; w->wants_w && d < D; d++)
            x->dw[d] += (double)(dS * A[d]);
    }
    if (w->wants[PE_A])
        pe_add_floats(vector_sums(w, x, PE_A, row), dS, w->Qw + (x->h * T->a->sizes.Lq + x->i0 + r) * T->Dp,
                      D);
    if (T->by[PE_B].rows)
        pe_add_floats(z->dK + c * T->Dp, scale * dS, pe_rows_by(&w->T, PE_B, x->h, row), D);
    if (w->wants[PE_B])
        pe_add_floats(vector_sums(w, x, PE_B, row), scale * dS, z->K + c * T->Dp, D);
}

/* The same where distances were looked up one by one (z holds the tile's positions still). */
void pe_looked_up_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (dS[r * T->Bcp + c] != 0) /* masked ones may have no row */
                element_back(w, x, z, r, c, (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0,
                             dS[r * T->Bcp + c]);
}

/* shift[r,x] = dO[r,:] . r[x] where a query of the group sees a key at that distance; elsewhere 0. */
static void seen_band(const pe_tiles *T, const pe_scratch *z, const float *dO, const float *columns,
                      int64_t R, int64_t C)
{
    const int64_t width = T->band_width;
    for (int64_t r = 0; r < R; r += PE_LANES) {
        const pe_group y     = pe_band_group(z, r, R, C);
        const int64_t  first = y.first / PE_LANES * PE_LANES, count = y.count ? y.first + y.count - first : 0;
        memset(z->shift + r * width, 0, (size_t)(y.rows * width) * sizeof *z->shift);
        T->a->kernels->product(z->shift + r * width + first, width, dO + r * T->Dvp, T->Dvp, 1,
                               columns + first, T->by[PE_R].stride, y.rows, count, T->a->sizes.Dv, 0);
    }
}

/* dW = dO V^T becomes the cotangent of the gated weights: plus dO . r[t]. */
static void add_value_vectors(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *W,
                              float *dW, const float *dO)
{
    const pe_tiles   *T  = &w->T;
    const pe_kernels *k  = T->a->kernels;
    const int64_t     Dv = T->a->sizes.Dv, x0 = pe_band_start(T, x->i0, x->R, x->j0);
    if (!T->by[PE_R].rows)
        return;
    if (T->skewed) {
        seen_band(T, z, dO, pe_columns_by(T, PE_R, x->h, x0), x->R, x->C);
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
static void value_vectors_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *gated,
                               const float *dO)
{
    const pe_tiles *T  = &w->T;
    const int64_t   Dv = T->a->sizes.Dv;
    if (!w->wants[PE_R])
        return;
    if (T->skewed) {
        pe_shift_tile(T, z, gated, x->R, x->C);
        band_meeting(T, z, vector_sums(w, x, PE_R, pe_band_start(T, x->i0, x->R, x->j0)), dO, x->R, x->C, Dv);
        return;
    }
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
            if (gated[r * T->Bcp + c] != 0)
                pe_add_floats(vector_sums(w, x, PE_R, (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0),
                              gated[r * T->Bcp + c], dO + r * T->Dvp, Dv);
}

/* dc[t] += sum of W * dW along the distance, dW being that of the gated weight. */
static void gate_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *W, const float *dW)
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

/* W (kept) and dW (from dO V^T) become the cotangent of the softmax's output; with `sums`, values, gate and r
   get theirs. */
void pe_values_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, float *W, float *dW,
                    const float *dO, int sums)
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
        pe_meeting_product(T, z, z->dV, T->Dvp, gated, dO, T->Dvp, x->R, x->C, T->a->sizes.Dv);
        value_vectors_back(w, x, z, gated, dO);
    }
    if (sums && gate)
        gate_back(w, x, z, W, dW);
    if (gate)
        k->gate(dW, T->Bcp, gate, step, x->R, x->C);
}
