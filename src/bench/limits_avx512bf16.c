/* SPDX-License-Identifier: MIT */
/* limits_avx512bf16.c: the limit of bfloat16 dot products: independent vdpbf16ps, 64 operations each. */
#include <immintrin.h>

#include "bench/limits.h"

enum { CHAINS = 16 };

float pe_limits_dot_product_loop(int64_t n)
{
    __m512         x[CHAINS];
    const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.25f), _mm512_set1_ps(0.5f)),
                   b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.001f), _mm512_set1_ps(-0.001f));
    for (int c = 0; c < CHAINS; c++)
        x[c] = _mm512_set1_ps(0.001f * (float)c);
    for (int64_t i = 0; i < n; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            x[c] = _mm512_dpbf16_ps(x[c], a, b);
    for (int c = 1; c < CHAINS; c++)
        x[0] = _mm512_add_ps(x[0], x[c]);
    return _mm512_cvtss_f32(x[0]);
}

const double pe_limits_dot_product_operations = 64.0 * CHAINS;
