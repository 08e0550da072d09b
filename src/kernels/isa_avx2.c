/* SPDX-License-Identifier: MIT */
/* isa_avx2.c: every kernel for this instruction set. */
#include "kernels/vec_avx2.h"

#define PE_KERNELS pe_kernels_avx2
#define PE_ISA     "avx2"
#include "kernels/table.inc"
