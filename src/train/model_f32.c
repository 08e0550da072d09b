/* SPDX-License-Identifier: MIT */
/*
 * model_f32.c: the model in float, as `compare` trains it
 *
 * Products, norms, gelu and the softmax are the library's kernels for the processor at hand: kernels.h has
 * their formulas, errors and the order of their sums. Terms of the gradient that a test leaves out are left
 * out by the double model alone, which is what finite differences judge; another test holds this model's
 * gradients against its.
 */
#include "train/model.h"
#include "train/products.h"

#include <math.h>
#include <string.h>

#define REAL       float
#define DTYPE      POSENC_F32
#define MATH       pe_model_math_f32
#define KEEP(term) ((float)(m->drop_gradient != (term)))

static void multiply(const pe_model *m, float *c, const float *a, const float *w, int64_t n, int64_t k,
                     int64_t columns, int add)
{
    pe_multiply(m->kernels, c, a, w, n, k, columns, add);
}

static void multiply_fold(const pe_model *m, float *dw, const float *a, const float *dc, int64_t n, int64_t k,
                          int64_t columns)
{
    pe_multiply_fold(m->kernels, dw, a, dc, n, k, columns);
}

/* to[columns,rows] = w[rows,columns]^T. The kernel writes whole vectors. */
static void transpose(const pe_model *m, float *to, const float *w, int64_t rows, int64_t columns)
{
    if (rows % PE_LANES == 0) {
        m->kernels->transpose(to, rows, w, columns, rows, columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * rows + r] = w[r * columns + c];
}

static void norm(const pe_model *m, float *y, float *unit, float *scale, const float *x, const float *gain,
                 const float *bias, int64_t n, int64_t d)
{
    m->kernels->norm(y, unit, scale, x, gain, bias, n, d);
}

static void stretch(const pe_model *m, float *y, const float *unit, const float *gain, const float *bias,
                    int64_t n, int64_t d)
{
    m->kernels->stretch(y, unit, gain, bias, n, d);
}

static void norm_back(const pe_model *m, float *dx, float *dgain, float *dbias, const float *dy,
                      const float *unit, const float *scale, const float *gain, int64_t n, int64_t d)
{
    m->kernels->norm_back(dx, dgain, dbias, dy, unit, scale, gain, n, d);
}

static void gelu(const pe_model *m, float *active, const float *h, const float *bias, int64_t n,
                 int64_t columns)
{
    m->kernels->gelu(active, h, bias, n, columns);
}

static void gelu_back(const pe_model *m, float *active, float *dh, float *dbias, const float *h,
                      const float *bias, int64_t n, int64_t columns)
{
    m->kernels->gelu_back(active, dh, dbias, h, bias, n, columns);
}

static void softmax_row(const pe_model *m, float *logits, float *largest, float *sum, int64_t n)
{
    m->kernels->softmax_row(logits, largest, sum, n);
}

#include "train/model.inc"
