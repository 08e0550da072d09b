/* SPDX-License-Identifier: MIT */
/* The loops of limits.h for one instruction set: the only file of this folder that is compiled with its
   flags. */
#include "kernels/vec_avx2.h"

#define LIMITS pe_limit_loops_avx2
#define ISA    "avx2"

enum { CHAINS = 12 }; /* two a cycle, four cycles late, want 8; 16 registers hold 12 beside two numbers */

static inline void stream(float *to, vec x)
{
    _mm256_stream_ps(to, x);
}

#include "bench/limits_fma.inc"
#include "bench/limits.inc"
