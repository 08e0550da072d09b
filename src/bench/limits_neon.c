/* SPDX-License-Identifier: MIT */
/* limits_neon.c: the loops of limits.h for this instruction set. */
#include "kernels/vec_neon.h"

enum { CHAINS = 24 }; /* four a cycle, four cycles late, want 16 on wide cores */

#define LIMITS pe_limits_loops_neon
#define ISA    "neon"
#include "bench/limits.inc"
