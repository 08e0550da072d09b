/* SPDX-License-Identifier: MIT */
/*
 * limits_plain.c: the loops of limits.h in portable C, which has no fused multiply-add and no store around
 * the caches
 *
 * Its multiply-add is a product and a sum that waits for it, six or seven cycles together: 14 chains and
 * their two numbers fill the 16 registers of the oldest processors, and reach some 0.95 of two of each a
 * cycle. So its row has no goal.
 */
#include "kernels/vec_plain.h"

enum { CHAINS = 14 };

#define LIMITS pe_limits_loops_plain
#define ISA    "plain"
#include "bench/limits.inc"
