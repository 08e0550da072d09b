/* SPDX-License-Identifier: MIT */
/* isa_plain.c: every kernel for this instruction set. */
#include "kernels/vec_plain.h"

#define PE_KERNELS pe_kernels_plain
#define PE_ISA     "plain"
#include "kernels/table.inc"
