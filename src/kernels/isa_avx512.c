/* SPDX-License-Identifier: MIT */
/* isa_avx512.c: every kernel for this instruction set. */
#include "kernels/vec_avx512.h"

#define PE_KERNELS pe_kernels_avx512
#define PE_ISA     "avx512"
#include "kernels/table.inc"
