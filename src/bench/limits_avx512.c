/* SPDX-License-Identifier: MIT */
/* The loops of limits.h for one instruction set: the only file of this folder that is compiled with its
   flags. */
#include "kernels/vec_avx512.h"

#define LIMITS pe_limit_loops_avx512
#define ISA    "avx512"

enum { CHAINS = 16 }; /* two a cycle, four cycles late, want 8; the rest hides what the loop itself takes */

static inline void stream(float *to, vec x)
{
    _mm512_stream_ps(to, x);
}

#include "bench/limits_fma.inc"
#include "bench/limits.inc"
