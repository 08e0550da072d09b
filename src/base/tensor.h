/* SPDX-License-Identifier: MIT */
/*
 * tensor.h: reading and writing the caller's views, one element or one row at a time
 *
 * This is the door where storage types become arithmetic types: float for the tiled machine, double for the
 * reference and the rooms. Behind it nobody asks for a dtype again.
 */
#ifndef PE_BASE_TENSOR_H
#define PE_BASE_TENSOR_H

#include <posenc/posenc.h>
#include <stdint.h>

/* Pointer to the row at (i0,i1,i2,:) of a tensor of up to four axes; for fewer axes the trailing indices are
   ignored by stride. */
void *pe_row(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2);

/* Pointer to element (i0,i1,i2) of a tensor of three axes. */
void *pe_element(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2);

/* n elements from `row` on, `stride` elements apart, converted. */
void pe_load_float(float *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n);
void pe_load_double(double *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n);
void pe_store_float(void *row, posenc_dtype dtype, int64_t stride, const float *from, int64_t n);
void pe_store_double(void *row, posenc_dtype dtype, int64_t stride, const double *from, int64_t n);

/* One element of an integer or mask tensor. */
int64_t pe_integer_at(const posenc_tensor *t, int64_t offset);
double  pe_real_at(const posenc_tensor *t, int64_t offset);

/* Number of elements; 0-d counts 1. */
int64_t     pe_element_count(const posenc_tensor *t);
int         pe_is_contiguous(const posenc_tensor *t);
const char *pe_dtype_name(posenc_dtype dtype);

static inline int pe_is_float(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F32 || dtype == POSENC_DTYPE_F64 || dtype == POSENC_DTYPE_F16 ||
           dtype == POSENC_DTYPE_BF16;
}

/* Checks data, dtype, ndim and shape of an argument; shape[a] < 0 accepts any size. `who` is "attend: q". */
posenc_status pe_check_tensor(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                              posenc_error *err);
/* A tensor that is written: in addition no two indices share an element (no stride 0 on an axis longer than
   1). */
posenc_status pe_check_output(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                              posenc_error *err);

#endif
