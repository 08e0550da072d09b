/* SPDX-License-Identifier: MIT */
/* Every kernel for one instruction set: the only file that is compiled with its flags, and it holds no other
   code. */
#define PE_KERNELS pe_kernels_neon
#define PE_ISA     "neon"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/quarter.h"
#include "kernels/kernels.h"
#include "kernels/vec_neon.h"

#include "kernels/product.inc"
#include "kernels/product64.inc"
#include "kernels/attend.inc"
#include "kernels/rotate.inc"
#include "kernels/cosines.inc"
#include "kernels/layers.inc"
#include "kernels/waves.inc"
#include "kernels/decode.inc"
#include "kernels/sigmoids.inc"
#include "kernels/logs.inc"
#include "kernels/table.inc"
