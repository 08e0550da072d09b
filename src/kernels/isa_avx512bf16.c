/* SPDX-License-Identifier: MIT */
/* isa_avx512bf16.c: every kernel for this instruction set. */
#include "kernels/vec_avx512.h"

#define PE_KERNELS      pe_kernels_avx512bf16
#define PE_KERNELS_BF16 pe_bf16_kernels_avx512
#define PE_ISA          "avx512bf16"
#include "kernels/table.inc"
