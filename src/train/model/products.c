/* SPDX-License-Identifier: MIT */
/*
 * products.c: the matrix products of the float model. Contract: products.h.
 *
 * The kernel `product` goes through strips of 64 columns and reuses a strip of B for all rows of C. What
 * remains to be done here is to hand it so little of B at once, DEPTH rows, that the strip stays in the first
 * cache: 128 x 64 floats are 32 KiB. Copying B into panels first was tried and lost: 0 to 6 % won where B has
 * 512 columns, 3 to 25 % lost where B is the rows of a batch, whose copy serves one product only.
 *
 * The kernel writes whole vectors. Columns beyond the last multiple of PE_LANES, which only odd widths have,
 * go through a tile, so that nothing is written beyond a row.
 */
#include "train/model/products.h"

#include <math.h>

enum { DEPTH = 128, TILE_ROWS = 64, LANES = 8 };

/* A product, as the kernel takes it. */
typedef struct problem {
    float       *c;
    const float *a, *b;
    int64_t      c_stride, a_row, a_col, b_stride, R, columns, K;
    int          add;
} problem;

static void multiply_strip(const pe_kernels *kernels, const problem *p)
{
    kernels->product(p->c, p->c_stride, p->a, p->a_row, p->a_col, p->b, p->b_stride, p->R, p->columns, p->K,
                     p->add);
}

/* Fewer than PE_LANES columns. */
static void multiply_in_tile(const pe_kernels *kernels, const problem *p)
{
    float tile[TILE_ROWS * PE_LANES];
    for (int64_t r = 0; r < p->R; r += TILE_ROWS) {
        problem part  = *p;
        part.c        = tile;
        part.c_stride = PE_LANES;
        part.a += r * p->a_row;
        part.R   = p->R - r < TILE_ROWS ? p->R - r : TILE_ROWS;
        part.add = 0;
        multiply_strip(kernels, &part);
        for (int64_t i = 0; i < part.R; i++)
            for (int64_t c = 0; c < p->columns; c++) {
                float *to = p->c + (r + i) * p->c_stride + c;
                *to       = (p->add ? *to : 0) + tile[i * PE_LANES + c];
            }
    }
}

/* All of K in pieces of DEPTH, the columns that fill vectors first, then the others. */
static void multiply_all(const pe_kernels *kernels, const problem *p)
{
    const int64_t whole = p->columns / PE_LANES * PE_LANES;
    for (int64_t k = 0; k < p->K; k += DEPTH) {
        problem part = *p;
        part.a += k * p->a_col;
        part.b += k * p->b_stride;
        part.K       = p->K - k < DEPTH ? p->K - k : DEPTH;
        part.add     = p->add || k > 0;
        part.columns = whole;
        multiply_strip(kernels, &part);
        part.c += whole;
        part.b += whole;
        part.columns = p->columns - whole;
        if (part.columns > 0)
            multiply_in_tile(kernels, &part);
    }
}

void pe_products_multiply(const pe_kernels *kernels, float *c, const float *a, const float *w, int64_t n,
                          int64_t k, int64_t columns, int add)
{
    const problem p = {.c        = c,
                       .a        = a,
                       .b        = w,
                       .c_stride = columns,
                       .a_row    = k,
                       .a_col    = 1,
                       .b_stride = columns,
                       .R        = n,
                       .columns  = columns,
                       .K        = k,
                       .add      = add};
    multiply_all(kernels, &p);
}

void pe_products_fold(const pe_kernels *kernels, float *dw, const float *a, const float *dc, int64_t n,
                      int64_t k, int64_t columns)
{
    const problem p = {.c        = dw,
                       .a        = a,
                       .b        = dc,
                       .c_stride = columns,
                       .a_row    = 1,
                       .a_col    = k,
                       .b_stride = columns,
                       .R        = k,
                       .columns  = columns,
                       .K        = n,
                       .add      = 1};
    multiply_all(kernels, &p);
}

double pe_products_norm(const float *x, int64_t n)
{
    double  lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i] * (double)x[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sqrt(sum);
}
