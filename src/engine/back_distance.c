/* SPDX-License-Identifier: MIT */
/* Members by distance of one pair of tiles, backward. Formulas: tiled_back.c. */
#include <string.h>

#include "engine/back.h"

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

/* Queries and A along diagonals. */
static void query_band_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
{
    const pe_tiles *T = &w->T;
    const int64_t   D = T->a->sizes.D, x0 = pe_band_start(T, x->i0, x->R, x->j0), n = x->R + x->C - 1;
    pe_shift_tile(T, z, dS, x->R, x->C);
    pe_query_product(w, x, z, z->shift, T->band_width, pe_rows_by(T, PE_A, x->h, x0), n,
                     w->wants_w ? x->dw : NULL);
    if (w->wants[PE_A])
        T->a->kernels->product(vector_sums(w, x, PE_A, x0), T->Dp, z->shift, 1, T->band_width,
                               w->Qw + (x->h * T->a->sizes.Lq + x->i0) * T->Dp, T->Dp, n, D, x->R, 1);
}

/* Keys and B: columns of dS, times scale, shifted into beta [C, band]. */
static void key_band_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *dS)
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

/* dW = dO V^T becomes the cotangent of the gated weights: plus dO . r[t]. */
static void add_value_vectors(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *W,
                              float *dW, const float *dO)
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
static void value_vectors_back(const pe_backward *w, const pe_pair *x, pe_scratch *z, const float *gated,
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

/* W (kept) and dW (from dO V^T) become the cotangent of the softmax's output; with `sums`, values, gate and r get theirs. */
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
