/* SPDX-License-Identifier: MIT */
/*
 * tensor.h: reading and writing the caller's views, one element or one row at a time
 *
 * Here storage types become arithmetic types: float for the tiled executor, double for the reference executor
 * and the rooms. What is computed with them knows no dtype.
 */
#ifndef PE_BASE_TENSOR_H
#define PE_BASE_TENSOR_H

#include <posenc/posenc.h>
#include <stdint.h>

#include "base/half.h"

/* Pointer to the row at (i0,i1,i2,:) of a tensor of up to four axes; for fewer axes the trailing indices are
   ignored by stride. */
void *pe_tensor_row(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2);

/* Pointer to element (i0,i1,i2) of a tensor of three axes. */
void *pe_tensor_element(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2);

/* Bytes of that many elements that lie one after the other; of Q8_0 a multiple of 32 of them. */
static inline int64_t pe_tensor_bytes(posenc_dtype dtype, int64_t elements)
{
    return dtype == POSENC_DTYPE_Q8_0 ? elements / PE_HALF_Q8 * PE_HALF_Q8_BYTES
                                      : elements * (int64_t)posenc_dtype_size(dtype);
}

/* Bytes from one row of that axis to the next; 0 where there is only one, whose stride may be any number. */
static inline int64_t pe_tensor_step(const posenc_tensor *t, int axis)
{
    return t->shape[axis] > 1 ? pe_tensor_bytes(t->dtype, t->stride[axis]) : 0;
}

/* n elements from `row` on, `stride` elements apart, converted. */
void pe_tensor_load_float(float *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n);
void pe_tensor_load_double(double *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n);
void pe_tensor_store_float(void *row, posenc_dtype dtype, int64_t stride, const float *from, int64_t n);
void pe_tensor_store_double(void *row, posenc_dtype dtype, int64_t stride, const double *from, int64_t n);

/* One element of an integer or mask tensor. */
int64_t pe_tensor_integer_at(const posenc_tensor *t, int64_t offset);
double  pe_tensor_real_at(const posenc_tensor *t, int64_t offset);

/* Has it axes, one of them of size 0? Then it needs no data. */
static inline int pe_tensor_is_empty(const posenc_tensor *t)
{
    int is_empty = 0;
    for (int a = 0; a < t->ndim && a < POSENC_MAX_DIMS; a++)
        is_empty |= t->shape[a] == 0;
    return is_empty;
}

/* Is there a tensor? */
static inline int pe_tensor_is_given(const posenc_tensor *t)
{
    return t->data || pe_tensor_is_empty(t);
}

/* Does it begin where an element may? Blocks of Q8_0 are bytes. */
static inline int pe_tensor_is_aligned(const posenc_tensor *t)
{
    const size_t size = posenc_dtype_size(t->dtype);
    return ((uintptr_t)t->data & (size - !!size)) == 0;
}

/* Is it a view of what can be memory: products of its sizes and strides stay far below what overflows? */
int pe_tensor_fits(const posenc_tensor *t);

/* Number of elements; 0-d counts 1. */
int64_t     pe_tensor_elements(const posenc_tensor *t);
int         pe_tensor_is_contiguous(const posenc_tensor *t);
const char *pe_tensor_dtype_name(posenc_dtype dtype);

/* Is it a type that whole numbers come in (positions, segments, lengths)? */
static inline int pe_tensor_is_whole(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_I64 || dtype == POSENC_DTYPE_I32;
}

/* And the types of keys and values in a cache, beside the floats? */
static inline int pe_tensor_is_quantised(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F8_E4M3 || dtype == POSENC_DTYPE_Q8_0;
}

static inline int pe_tensor_is_float(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F32 || dtype == POSENC_DTYPE_F64 || dtype == POSENC_DTYPE_F16 ||
           dtype == POSENC_DTYPE_BF16;
}

/* Of all its sizes or-ed together, and all its strides: can no product of four sizes or of a size and a
   stride be large? Then it fits, which is known without any product. */
static inline int pe_tensor_is_small(int ndim, uint64_t sizes, uint64_t strides)
{
    return ndim <= 4 && sizes < 1 << 14 && strides < (uint64_t)1 << 40;
}

/* Checks data, its alignment, dtype, ndim and shape of an argument; shape[a] < 0 accepts any size, 0 too.
 * `who` is "attend: q". */
posenc_status pe_tensor_check_other(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                                    posenc_error *err);

/* Inlined for tensors that are right and small, as a run checks all its tensors, which takes a good part of a
   small run. A negative size is not small. */
static inline posenc_status pe_tensor_check(const posenc_tensor *t, const char *who, int ndim,
                                            const int64_t *shape, posenc_error *err)
{
    uint64_t sizes = 0, strides = 0, wrong = !pe_tensor_is_aligned(t);
    if (!t->data || t->ndim != ndim || (size_t)t->dtype > POSENC_DTYPE_Q8_0)
        return pe_tensor_check_other(t, who, ndim, shape, err);
    for (int a = 0; a < ndim; a++) {
        wrong |= shape[a] < 0 ? 0 : (uint64_t)(t->shape[a] ^ shape[a]);
        sizes |= (uint64_t)t->shape[a];
        strides |= (uint64_t)t->stride[a];
    }
    return !wrong && pe_tensor_is_small(ndim, sizes, strides)
               ? POSENC_OK
               : pe_tensor_check_other(t, who, ndim, shape, err);
}

/* A tensor that is written: in addition no two indices share an element (no stride 0 on an axis longer than
   1). */
posenc_status pe_tensor_check_output(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                                     posenc_error *err);
/* SHAPE where an output has stride 0 along an axis of more than one element. */
posenc_status pe_tensor_check_self(const posenc_tensor *out, const char *who, posenc_error *err);
/* What pe_tensor_check_output asks of an output beyond pe_tensor_check, which has found it right. */
posenc_status pe_tensor_check_written(const posenc_tensor *t, const char *who, posenc_error *err);

#endif
