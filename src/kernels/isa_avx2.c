/* SPDX-License-Identifier: MIT */
/* Every kernel for one instruction set: the only file that is compiled with its flags, and it holds no other code. */
#include <stddef.h>

#include "kernels/kernels.h"
#include "kernels/vec_avx2.h"

#include "kernels/product.inc"
#include "kernels/attend.inc"
#include "kernels/rotate.inc"

extern const pe_kernels pe_kernels_avx2;

const pe_kernels pe_kernels_avx2 = {
    .isa                = "avx2",
    .product            = product,
    .scores_finish      = scores_finish,
    .softmax_step       = softmax_step,
    .weights            = weights,
    .score_cotangent    = score_cotangent,
    .row_moments        = row_moments,
    .exact_cotangent    = exact_cotangent,
    .gate               = gate,
    .add_skewed         = add_skewed,
    .scale_rows         = scale_rows,
    .diagonal_sums      = diagonal_sums,
    .dot_rows           = dot_rows,
    .rotate_half        = rotate_half,
    .rotate_interleaved = rotate_interleaved,
};
