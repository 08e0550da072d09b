/* SPDX-License-Identifier: MIT */
/*
 * model_f64.c: the model in double, which finite differences can judge
 *
 * The same source as the float model, so what is proved here is true there. The exponential is libm's:
 * speed does not matter, and a difference quotient sees every digit. Attention runs in the reference
 * executor.
 */
#include "train/model.h"

#include <math.h>

#define REAL  double
#define DTYPE POSENC_F64
#define GEMM  cblas_dgemm
#define MATH  pe_model_math_f64

static void exponentials(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = exp(x[i]);
}

#include "train/layers.inc"
#include "train/model.inc"
