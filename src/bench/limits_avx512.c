/* SPDX-License-Identifier: MIT */
/* limits_avx512.c: the loops of limits.h for this instruction set. */
#include "kernels/vec_avx512.h"

enum { CHAINS = 16 }; /* two a cycle, four cycles late, want 8; the rest hides what the loop itself takes */

#define LIMITS pe_limits_loops_avx512
#define ISA    "avx512"
#include "bench/limits.inc"
