/* SPDX-License-Identifier: MIT */
/* The loops of limits.h for one instruction set: the only file of this folder that is compiled with its
   flags. */
#include "kernels/vec_neon.h"

#define LIMITS pe_limit_loops_neon
#define ISA    "neon"

enum { CHAINS = 24 }; /* four a cycle, four cycles late, want 16 on wide cores */

static inline void stream(float *to, vec x)
{
    vstore(to, x); /* stnp has no intrinsic */
}

#include "bench/limits_fma.inc"
#include "bench/limits.inc"
