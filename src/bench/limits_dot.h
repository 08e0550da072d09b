/* SPDX-License-Identifier: MIT */
/* limits_dot.h: bfloat16 dot products, where the processor has them (x86 with AVX512-BF16). */
#ifndef PE_BENCH_LIMITS_DOT_H
#define PE_BENCH_LIMITS_DOT_H

#include <stdint.h>

/* n rounds of independent dot products of `pe_dot_product_operations` operations. */
float               pe_dot_product_loop(int64_t n);
extern const double pe_dot_product_operations;

#endif
