/* SPDX-License-Identifier: MIT */
/* limits_avx2.c: the loops of limits.h for this instruction set. */
#include "kernels/vec_avx2.h"

enum { CHAINS = 12 }; /* two a cycle, four cycles late, want 8; 16 registers hold 12 beside two numbers */

#define LIMITS pe_limits_loops_avx2
#define ISA    "avx2"
#include "bench/limits.inc"
