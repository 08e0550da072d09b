/* SPDX-License-Identifier: MIT */
/*
 * moments.h: mean and deviation of a row, as a LayerNorm takes them
 *
 * The variance is over the row itself (divided by n, not n - 1) and eps joins it under the root, as in every
 * framework. A normalised number is (x - mean) * inverse. Two passes, so that a row far from 0 loses no
 * digits.
 */
#ifndef PE_BASE_MOMENTS_H
#define PE_BASE_MOMENTS_H

#include <math.h>
#include <stdint.h>

typedef struct pe_moments {
    double mean, inverse; /* 1 / sqrt(variance + eps) */
} pe_moments;

#define PE_MOMENTS(name, type)                                                         \
    static inline pe_moments name(const type row[], int64_t n, double eps)             \
    {                                                                                  \
        double mean = 0, variance = 0;                                                 \
        for (int64_t m = 0; m < n; m++)                                                \
            mean += (double)row[m] / (double)n;                                        \
        for (int64_t m = 0; m < n; m++)                                                \
            variance += ((double)row[m] - mean) * ((double)row[m] - mean) / (double)n; \
        return (pe_moments){mean, 1 / sqrt(variance + eps)};                           \
    }

PE_MOMENTS(pe_moments_of, double)
PE_MOMENTS(pe_moments_of_floats, float)

#endif
