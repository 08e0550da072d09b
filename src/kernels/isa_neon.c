/* SPDX-License-Identifier: MIT */
/* isa_neon.c: every kernel for this instruction set. */
#include "kernels/vec_neon.h"

#define PE_KERNELS pe_kernels_neon
#define PE_ISA     "neon"
#include "kernels/table.inc"
