/* SPDX-License-Identifier: MIT */
/*
 * sharp.c: products of short rows in double, for scores that are large
 *
 * A float of the size of 75 has steps of 8e-6, and a weight is off by as much as its score: where cosines are multiplied
 * by up to 100, the rounding of the product is the largest error of the whole attention. What matters is how far a score
 * lies below the largest of its row. So, for encodings that say `sharp` and rows of at most PE_SHORT keys (the windows
 * they are made for), a query tile's products are taken in double, and less the largest allowed one when they become
 * float. Longer rows keep the rounding of float.
 */
#include <math.h>

#include "engine/tiles.h"

int pe_is_sharp(const pe_tiles *T)
{
    return T->a->terms->prepare.sharp && T->a->sizes.Lk <= PE_SHORT;
}

static double product(const double *q, const double *k, int64_t D, double scale)
{
    double sum = 0;
    for (int64_t d = 0; d < D; d++)
        sum += q[d] * k[d];
    return scale * sum;
}

void pe_sharpen(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                int whole)
{
    const pe_attention *a = T->a;
    const pe_problem   *p = &a->sizes;
    pe_prepare_exactly(T, z, z->keys, PE_KEYS, b, h / (p->H / p->G), 0, p->Lk);
    pe_prepare_exactly(T, z, z->made, PE_QUERIES, b, h, i0, R);
    for (int64_t r = 0; r < R; r++) {
        double *row = z->sharp + r * PE_SHORT, top = -INFINITY;
        for (int64_t j = 0; j < p->Lk; j++) {
            row[j] = product(z->made + r * p->D, z->keys + j * p->D, p->D, a->terms->scale);
            if (!whole && pe_is_allowed(a, b, h, i0 + r, j))
                top = fmax(top, row[j]);
        }
        z->top[r] = isfinite(top) ? top : 0;
        for (int64_t j = 0; j < p->Lk; j++)
            row[j] -= z->top[r];
    }
}
