/* SPDX-License-Identifier: MIT */
/*
 * sharp.c: products in double, for scores that are large
 *
 * A float of the size of 75 has steps of 8e-6, and a weight is off by as much as its score: where cosines are multiplied
 * by up to 100, the rounding of the product is the largest error of the whole attention. What matters is how far a score
 * lies below the largest of its row. So, for encodings that say `sharp` and rows of at most PE_SHARP keys (the windows
 * they are made for), products are taken in double, and made less by something of their size before they become float:
 * forward the largest allowed one of the row, backward lse. Longer rows keep the rounding of float.
 */
#include <math.h>

#include "engine/tiles.h"

int pe_is_sharp(const pe_tiles *T)
{
    return T->a->terms->prepare.sharp && T->a->sizes.Lk <= PE_SHARP;
}

/* t: their distance, for a rotation whose scores grow. */
static double product(const pe_tiles *T, const double *q, const double *k, double t)
{
    const int64_t D   = T->a->sizes.D;
    double        sum = 0;
    for (int64_t d = 0; d < D; d++)
        sum += q[d] * k[d] * (T->growth ? exp(T->growth[d] * t) : 1);
    return T->a->terms->scale * sum;
}

/* Columns j0 .. j0+n-1, of so many rows; n is at most a tile. */
static void fill_columns(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                         int64_t j0, int64_t n)
{
    const pe_attention *a = T->a;
    const pe_problem   *p = &a->sizes;
    pe_prepare_exactly(T, z, z->keys, PE_KEYS, b, h / (p->H / p->G), j0, n);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < n; c++)
            z->sharp[r * z->sharp_stride + j0 - z->sharp_from + c] =
                product(T, z->made + r * p->D, z->keys + c * p->D,
                        pe_position(&a->q_pos, b, i0 + r) - pe_position(&a->k_pos, b, j0 + c));
}

/* The largest allowed product of a row; 0 if there is none. */
static double row_top(const pe_tiles *T, const double *row, int64_t b, int64_t h, int64_t i)
{
    double top = -INFINITY;
    for (int64_t j = 0; j < T->a->sizes.Lk; j++)
        if (pe_is_allowed(T->a, b, h, i, j))
            top = fmax(top, row[j]);
    return isfinite(top) ? top : 0;
}

void pe_sharpen_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R, int whole)
{
    const int64_t Lk = T->a->sizes.Lk;
    z->sharp_stride  = Lk;
    z->sharp_from    = 0;
    pe_prepare_exactly(T, z, z->made, PE_QUERIES, b, h, i0, R);
    for (int64_t j0 = 0; j0 < Lk; j0 += T->Bc)
        fill_columns(T, z, b, h, i0, R, j0, pe_smaller(T->Bc, Lk - j0));
    for (int64_t r = 0; r < R; r++)
        z->top[r] = whole ? 0 : row_top(T, z->sharp + r * Lk, b, h, i0 + r);
}

void pe_sharpen_tile(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                     int64_t j0, int64_t C, const float lse[])
{
    z->sharp_stride = C;
    z->sharp_from   = j0;
    pe_prepare_exactly(T, z, z->made, PE_QUERIES, b, h, i0, R);
    fill_columns(T, z, b, h, i0, R, j0, C);
    for (int64_t r = 0; r < R; r++)
        z->top[r] = isfinite(lse[r]) ? (double)lse[r] : 0;
}
