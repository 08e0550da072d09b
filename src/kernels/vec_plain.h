/* SPDX-License-Identifier: MIT */
/*
 * vec_plain.h: the vector layer in portable C, four floats
 *
 * Compilers' vector extensions (gcc, clang) on whatever the baseline has: SSE2, NEON, or scalars. There is no
 * fused multiply-add in the baseline, so vfma rounds twice here: results differ from other widths in the last
 * bit.
 */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <stdint.h>

enum { VL = 4, BLOCK_VECS = 4, BLOCK_ROWS = 2, ROWS_OF_3 = 2, ROWS_OF_2 = 4, ROWS_OF_1 = 8 };

typedef float    vec __attribute__((vector_size(16)));
typedef int32_t  ivec __attribute__((vector_size(16)));
typedef uint32_t wvec __attribute__((vector_size(16)));
typedef uint16_t hvec __attribute__((vector_size(8)));
typedef double   dvec __attribute__((vector_size(16)));

#define KEEP(x) (void)(x)
enum { FUSES = 0 };

#include "kernels/vec_all.h"

static inline vec vfma(vec a, vec b, vec c)
{
    return a * b + c;
}

static inline vec vfms(vec a, vec b, vec c)
{
    return a * b - c;
}

static inline vec vwhere(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

static inline float vhmax(vec x)
{
    const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}

static inline float vhsum(vec x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

static inline vec vload_twice(const float *p)
{
    return (vec){p[0], p[0], p[1], p[1]};
}

#include "kernels/vec_four.h"

#endif
