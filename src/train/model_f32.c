/* SPDX-License-Identifier: MIT */
/*
 * model_f32.c: the model in float, as `compare` trains it
 *
 * The exponential is our own, because a call of libm per element would cost more than the matrix
 * products beside it: e^x = 2^k e^r with k = x / ln 2 rounded to a whole number and |r| <= ln 2 / 2,
 * and e^r by its Taylor series up to r^7 / 7!, which leaves out at most (ln 2 / 2)^8 / 8! = 5.2e-9
 * relative. Adding 1.5 * 2^23 rounds to whole numbers and leaves k in the low bits of the sum, so
 * there is no conversion, no branch and nothing but operations that vectorise. Error: at most 1.25 ulp
 * (seen: 1.02) for -87 <= x <= 88; beyond, the value at that end. NaN stays NaN.
 */
#include "train/model.h"

#include <stdint.h>
#include <string.h>

#define REAL  float
#define DTYPE POSENC_F32
#define GEMM  cblas_sgemm
#define MATH  pe_model_math_f32

#define LOWEST        (-87.0f) /* 2^-126 < e^LOWEST, e^HIGHEST < 2^127: `power` is a normal number */
#define HIGHEST       88.0f
#define LN2_HI        0x1.62e4p-1f    /* ln 2 cut to 15 bits: k * LN2_HI is exact for |k| < 2^9 */
#define LN2_LO        0x1.7f7d1cp-20f /* ln 2 - LN2_HI */
#define ROUNDING      0x1.8p23f       /* 1.5 * 2^23: sums near it have no bits behind the point */
#define ROUNDING_BITS 0x4b400000u     /* its representation */

static float exponential(float x)
{
    const float sum = x * 0x1.715476p0f + ROUNDING, k = sum - ROUNDING; /* 1 / ln 2 */
    const float r    = (x - k * LN2_HI) - k * LN2_LO;
    const float tail = 1 / 6.0f + r * (1 / 24.0f + r * (1 / 120.0f + r * (1 / 720.0f + r * (1 / 5040.0f))));
    const float e    = 1 + (r + r * r * (0.5f + r * tail));
    uint32_t    bits;
    float       power;
    memcpy(&bits, &sum, sizeof bits);
    bits = (bits - ROUNDING_BITS + 127u) << 23;
    memcpy(&power, &bits, sizeof power);
    return e * power;
}

/* x = e^x. Two loops, because gcc 12 carries the comparisons of the first into the arithmetic of
   the second when they are one, which made it four times slower. */
static void exponentials(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float low = x[i] < LOWEST ? LOWEST : x[i];
        x[i]            = low > HIGHEST ? HIGHEST : low;
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = exponential(x[i]);
}

#include "train/layers.inc"
#include "train/model.inc"
