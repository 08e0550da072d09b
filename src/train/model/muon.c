/* SPDX-License-Identifier: MIT */
/* muon.c: the nearest orthogonal matrix. Contract: muon.h. */
#include "train/model/muon.h"

#include "train/model/products.h"

#include <string.h>

enum { ITERATIONS = 5 };
static const float a = 3.4445f, b = -4.7750f, c = 2.0315f;

int64_t pe_muon_scratch(int64_t count, int64_t narrow)
{
    return count + 2 * narrow * narrow + PE_LANES;
}

/* p [n, n] = a I + b g + c g^2 */
static void polynomial(const pe_kernels *kernels, float *p, const float *g, int64_t n)
{
    pe_products_multiply(kernels, p, g, g, n, n, n, 0);
    for (int64_t i = 0; i < n * n; i++)
        p[i] = b * g[i] + c * p[i];
    for (int64_t i = 0; i < n; i++)
        p[i * n + i] += a;
}

void pe_muon_orthogonalise(const pe_kernels *kernels, float *x, int64_t rows, int64_t columns, float *scratch)
{
    const int64_t count = rows * columns, n = columns;
    const double  norm   = pe_products_norm(x, count);
    const float   shrink = (float)(1 / (norm + 1e-12));
    float        *next = scratch, *g = next + count, *p = g + n * n;
    for (int64_t i = 0; i < count; i++)
        x[i] *= shrink;
    for (int i = 0; i < ITERATIONS; i++) {
        memset(g, 0, (size_t)(n * n) * sizeof *g);
        pe_products_fold(kernels, g, x, x, rows, n, n);
        polynomial(kernels, p, g, n);
        pe_products_multiply(kernels, next, x, p, rows, n, n, 0);
        memcpy(x, next, (size_t)count * sizeof *x);
    }
}
