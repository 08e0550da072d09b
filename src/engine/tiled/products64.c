/* SPDX-License-Identifier: MIT */
/*
 * products64.c: products in double, for scores that are large
 *
 * A float of the size of 75 has steps of 8e-6, and a weight is off by as much as its score: where cosines are
 * multiplied by up to 100, the rounding of the product is the largest error of the whole attention. What
 * matters is how far a score lies below the largest of its row. So, for encodings that ask for `products64`
 * and rows of at most PE_PRODUCTS64_KEYS keys (the windows they are made for), products are taken in double,
 * and something of their size is subtracted before they become float: forward the largest allowed one of the
 * row, backward lse. Longer rows keep the rounding of float.
 */
#include <math.h>

#include "engine/tiled/tiles.h"

int pe_products64_serve(const pe_tiles *T)
{
    return T->a->terms->prepare.products64 && T->a->sizes.Lk <= PE_PRODUCTS64_KEYS;
}

/* Of a rotation whose scores grow with the distance t. */
static void grown_products(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t i0, int64_t R,
                           int64_t j0, int64_t n, double *to)
{
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < n; c++) {
            const double t   = pe_positions_at(&a->q_pos, b, i0 + r) - pe_positions_at(&a->k_pos, b, j0 + c);
            double       sum = 0;
            for (int64_t d = 0; d < D; d++)
                sum += z->prepared.made[r * D + d] * z->products64.keys[c * D + d] * exp(T->growth[d] * t);
            to[r * z->products64.stride + c] = sum;
        }
}

/* The kernel writes whole vectors: into columns that come next, or that nobody reads. */
static void plain_products(const pe_tiles *T, const pe_scratch *z, int64_t R, int64_t n, double *to)
{
    const int64_t D = T->a->sizes.D, step = pe_products64_padded(T->Bc);
    for (int64_t c = 0; c < n; c++)
        for (int64_t d = 0; d < D; d++)
            z->products64.keys_across[d * step + c] = z->products64.keys[c * D + d];
    T->a->kernels->product64(to, z->products64.stride, z->prepared.made, D, 1, z->products64.keys_across,
                             step, R, n, D, 0);
}

/* Columns j0 .. j0+n-1, of so many rows; n is at most a tile. */
static void fill_columns(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                         int64_t j0, int64_t n)
{
    const pe_problem *p  = &T->a->sizes;
    double           *to = z->products64.products + j0 - z->products64.from;
    pe_tile_rows_load_doubles(T, z, z->products64.keys, PE_KEYS, b, h / (p->H / p->G), j0, n);
    if (T->growth)
        grown_products(T, z, b, i0, R, j0, n, to);
    else
        plain_products(T, z, R, n, to);
    for (int64_t r = 0; (T->a->terms->scale != 1 || T->folds) && r < R; r++) {
        const double factor = T->a->terms->scale * (T->folds ? pe_temper_at(T->a, b, h, i0 + r) : 1);
        for (int64_t c = 0; c < n; c++)
            to[r * z->products64.stride + c] *= factor;
    }
}

/* By several at a time: each comparison waits for the one before it. */
double pe_products64_largest(const double x[], int64_t n)
{
    enum { SIDE_BY_SIDE = 8 };
    double  most[SIDE_BY_SIDE];
    int64_t i = 0;
    for (int k = 0; k < SIDE_BY_SIDE; k++)
        most[k] = -INFINITY;
    for (; i + SIDE_BY_SIDE <= n; i += SIDE_BY_SIDE)
        for (int k = 0; k < SIDE_BY_SIDE; k++)
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
    for (; i < n; i++)
        most[0] = x[i] > most[0] ? x[i] : most[0];
    for (int k = 1; k < SIDE_BY_SIDE; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

/* The largest allowed product of a row; 0 if there is none. */
static double row_top(const pe_tiles *T, const double *row, int64_t b, int64_t h, int64_t i)
{
    const int     ask = pe_asks_pairs(T);
    const int64_t Lk = T->a->sizes.Lk, first = pe_larger(0, T->skewed ? i - T->e_high : 0),
                  last = pe_smaller(Lk, T->skewed ? i - T->e_low + 1 : Lk); /* by masks by distance */
    double top         = -INFINITY;
    if (!ask)
        top = pe_products64_largest(row + first, last - first);
    for (int64_t j = first; ask && j < last; j++)
        if (pe_pairs_allowed(T->a, b, h, i, j))
            top = row[j] > top ? row[j] : top;
    return isfinite(top) ? top : 0;
}

void pe_products64_fill_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                            int whole)
{
    const int64_t Lk     = T->a->sizes.Lk;
    z->products64.stride = pe_products64_padded(Lk);
    z->products64.from   = 0;
    pe_tile_rows_load_doubles(T, z, z->prepared.made, PE_QUERIES, b, h, i0, R);
    for (int64_t j0 = 0; j0 < Lk; j0 += T->Bc)
        if (pe_tile_is_reached(T, i0 / T->Br, j0 / T->Bc))
            fill_columns(T, z, b, h, i0, R, j0, pe_smaller(T->Bc, Lk - j0));
    for (int64_t r = 0; r < R; r++)
        z->products64.top[r] =
            whole || T->finishes
                ? 0
                : row_top(T, z->products64.products + r * z->products64.stride, b, h, i0 + r);
}

void pe_products64_fill_tile(const pe_tiles *T, pe_scratch *z, const float lse[])
{
    z->products64.stride = pe_products64_padded(z->C);
    z->products64.from   = z->j0;
    pe_tile_rows_load_doubles(T, z, z->prepared.made, PE_QUERIES, z->b, z->h, z->i0, z->R);
    fill_columns(T, z, z->b, z->h, z->i0, z->R, z->j0, z->C);
    for (int64_t r = 0; r < z->R; r++)
        z->products64.top[r] = isfinite(lse[r]) && !T->finishes ? (double)lse[r] : 0;
}
