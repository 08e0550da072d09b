/* SPDX-License-Identifier: MIT */
/*
 * model_f32.c: the model in float, as `compare` trains it
 *
 * Products, norms, gelu and the softmax are the library's kernels for the processor at hand: kernels.h has
 * their formulas, errors and the order of their sums. Terms of the gradient that a test leaves out are left
 * out only by the double model, which is what finite differences judge; another test holds this model's
 * gradients against its.
 */
#include "train/model/model.h"
#include "train/model/products.h"

#include <math.h>
#include <string.h>

#define REAL             float
#define DTYPE            POSENC_DTYPE_F32
#define MATH             pe_model_math_f32
#define KEEP(term)       ((float)(m->drop_gradient != (term)))
#define LAYER(name, ...) m->kernels->name(__VA_ARGS__)

#define multiply(m, ...)      pe_products_multiply(m->kernels, __VA_ARGS__)
#define multiply_fold(m, ...) pe_products_fold(m->kernels, __VA_ARGS__)

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

#include "train/model/model.inc"
