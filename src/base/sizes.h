/* SPDX-License-Identifier: MIT */
/*
 * sizes.h: sizes compared, and products and sums of those that a caller gives, before anybody has checked
 * them
 *
 * A product or a sum that no int64_t holds is the largest or the smallest one, which no check lets pass. What
 * was checked needs none of this: sizes and strides of a tensor that pe_tensor_check has seen, and positions
 * up to 2^53, stay in range below.
 */
#ifndef PE_BASE_SIZES_H
#define PE_BASE_SIZES_H

#include <stdint.h>

static inline int64_t pe_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t pe_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t pe_sizes_product(int64_t a, int64_t b)
{
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) ? product : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static inline int64_t pe_sizes_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

#endif
