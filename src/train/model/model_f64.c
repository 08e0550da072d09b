/* SPDX-License-Identifier: MIT */
/*
 * model_f64.c: the model in double, which finite differences can judge
 *
 * The order of things is model.inc's, the same source as the float model's; the layers are plain loops, one
 * line per formula, that the float model's kernels are held against. Speed does not matter, and a difference
 * quotient sees every digit. Attention runs in the reference executor. KEEP(term) is 1 but where a test
 * leaves a term of the gradient out.
 */
#include "train/model/model.h"

#include <math.h>
#include <string.h>

#define REAL             double
#define DTYPE            POSENC_DTYPE_F64
#define MATH             pe_model_math_f64
#define KEEP(term)       ((double)(m->drop_gradient != (term)))
#define LAYER(name, ...) name(m, __VA_ARGS__)

/* c[n,columns] = a[n,k] w[k,columns], or += */
static void multiply(const pe_model *m, double *c, const double *a, const double *w, int64_t n, int64_t k,
                     int64_t columns, int add)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < columns; i++) {
            double sum = add ? c[r * columns + i] : 0;
            for (int64_t j = 0; j < k; j++)
                sum += a[r * k + j] * w[j * columns + i];
            c[r * columns + i] = sum;
        }
}

/* dw[k,columns] += a[n,k]^T dc[n,columns] */
static void multiply_fold(const pe_model *m, double *dw, const double *a, const double *dc, int64_t n,
                          int64_t k, int64_t columns)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t j = 0; j < k; j++)
            for (int64_t i = 0; i < columns; i++)
                dw[j * columns + i] += a[r * k + j] * dc[r * columns + i];
}

static void transpose(const pe_model *m, double *to, const double *w, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * rows + r] = w[r * columns + c];
}

/* y = unit gain + bias */
static void stretch(const pe_model *m, double *y, const double *unit, const double *gain, const double *bias,
                    int64_t n, int64_t d)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < d; i++)
            y[r * d + i] = unit[r * d + i] * gain[i] + bias[i];
}

static double mean_product(const double *a, const double *b, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += a[i] * b[i];
    return sum / (double)d;
}

/* unit = (x - mean) scale, scale = 1 / sqrt(variance + 1e-5), along each row */
static void norm(const pe_model *m, double *y, double *unit, double *scale, const double *x,
                 const double *gain, const double *bias, int64_t n, int64_t d)
{
    for (int64_t r = 0; r < n; r++) {
        double *u = unit + r * d, sum = 0;
        for (int64_t i = 0; i < d; i++)
            sum += x[r * d + i];
        for (int64_t i = 0; i < d; i++)
            u[i] = x[r * d + i] - sum / (double)d;
        scale[r] = 1 / sqrt(mean_product(u, u, d) + 1e-5);
        for (int64_t i = 0; i < d; i++)
            u[i] *= scale[r];
    }
    stretch(m, y, unit, gain, bias, n, d);
}

/* With g = dy gain:  dx += scale (g - mean(g) - unit mean(g unit)) */
static void norm_back(const pe_model *m, double *dx, double *dgain, double *dbias, const double *dy,
                      const double *unit, const double *scale, const double *gain, int64_t n, int64_t d)
{
    for (int64_t r = 0; r < n; r++) {
        const double *y = dy + r * d, *u = unit + r * d;
        double        mean = KEEP(PE_DROP_NORM_MEAN) * mean_product(y, gain, d), slant = 0;
        for (int64_t i = 0; i < d; i++)
            slant += KEEP(PE_DROP_NORM_VARIANCE) * y[i] * gain[i] * u[i] / (double)d;
        for (int64_t i = 0; i < d; i++) {
            dx[r * d + i] += scale[r] * (y[i] * gain[i] - mean - u[i] * slant);
            dgain[i] += KEEP(PE_DROP_NORM_GAIN) * y[i] * u[i];
            dbias[i] += KEEP(PE_DROP_NORM_BIAS) * y[i];
        }
    }
}

/* With z = 2 sqrt(2/pi) (x + 0.044715 x^3) and s = 1 / (1 + e^-z):
   gelu(x) = x/2 (1 + tanh(z/2)) = x s        gelu'(x) = s + x s (1 - s) z' */
static const double z1 = 1.5957691216057308, z3 = 1.5957691216057308 * 0.044715;

static double sigmoid_at(double x)
{
    return 1 / (1 + exp(-x * (z1 + z3 * x * x)));
}

/* active = gelu(h + bias) */
static void gelu(const pe_model *m, double *active, const double *h, const double *bias, int64_t n,
                 int64_t columns)
{
    for (int64_t i = 0; i < n * columns; i++) {
        const double x = h[i] + bias[i % columns];
        active[i]      = x * sigmoid_at(x);
    }
}

/* active again; dh, the cotangent of active, becomes h's; dbias += its column sums */
static void gelu_back(const pe_model *m, double *active, double *dh, double *dbias, const double *h,
                      const double *bias, int64_t n, int64_t columns)
{
    gelu(m, active, h, bias, n, columns);
    for (int64_t i = 0; i < n * columns; i++) {
        const double x = h[i] + bias[i % columns], s = sigmoid_at(x);
        dh[i] *= s + KEEP(PE_DROP_GELU_CURVE) * (x * s) * (1 - s) * (z1 + 3 * z3 * x * x);
        dbias[i % columns] += KEEP(PE_DROP_UP_BIAS) * dh[i];
    }
}

/* x becomes e^(x - largest), *sum their sum */
static void softmax_row(const pe_model *m, double *x, double *largest, double *sum, int64_t n)
{
    *largest = x[0];
    for (int64_t i = 1; i < n; i++)
        *largest = fmax(*largest, x[i]);
    *sum = 0;
    for (int64_t i = 0; i < n; i++)
        *sum += x[i] = exp(x[i] - *largest);
}

#include "train/model/model.inc"
