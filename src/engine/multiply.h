/* SPDX-License-Identifier: MIT */
/*
 * multiply.h: products with a parameter, for rooms
 *
 * The kernel takes whole vectors; a plain loop serves other widths.
 */
#ifndef PE_ENGINE_MULTIPLY_H
#define PE_ENGINE_MULTIPLY_H

#include "engine/terms.h"

/* C [R,columns] += A [R,K] B, A element (r,k) at a + r*a_row + k*a_col, rows of B and C at their strides. */
static inline void pe_multiply64(const pe_problem *p, double *c, int64_t c_stride, const double *a,
                                 int64_t a_row, int64_t a_col, const double *b, int64_t b_stride, int64_t R,
                                 int64_t columns, int64_t K)
{
    if (columns % PE_LANES64 == 0) {
        p->kernels->product64(c, c_stride, a, a_row, a_col, b, b_stride, R, columns, K, 1);
        return;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t d = 0; d < columns; d++)
                c[r * c_stride + d] += a[r * a_row + k * a_col] * b[k * b_stride + d];
}

#endif
