/* SPDX-License-Identifier: MIT */
/* Views: conversion at the door and checks. Contract: tensor.h. */
#include "base/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

void *pe_tensor_row(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    int64_t offset = t->ndim > 1 ? i0 * t->stride[0] : 0;
    if (t->ndim > 2)
        offset += i1 * t->stride[1];
    if (t->ndim > 3)
        offset += i2 * t->stride[2];
    return (char *)t->data + pe_tensor_bytes(t->dtype, offset);
}

void *pe_tensor_element(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    const int64_t offset = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
    return (char *)t->data + offset * (int64_t)posenc_dtype_size(t->dtype);
}

double pe_tensor_real_at(const posenc_tensor *t, int64_t offset)
{
    double x = 0;
    pe_tensor_load_double(&x, (const char *)t->data + offset * (int64_t)posenc_dtype_size(t->dtype), t->dtype,
                          1, 1);
    return x;
}

int64_t pe_tensor_integer_at(const posenc_tensor *t, int64_t offset)
{
    switch (t->dtype) {
    case POSENC_DTYPE_I64: return ((const int64_t *)t->data)[offset];
    case POSENC_DTYPE_U8: return ((const uint8_t *)t->data)[offset];
    case POSENC_DTYPE_I32: return ((const int32_t *)t->data)[offset];
    default: return (int64_t)pe_tensor_real_at(t, offset);
    }
}

void pe_tensor_load_float(float *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n)
{
    if (dtype == POSENC_DTYPE_F32 && stride == 1) {
        memcpy(to, row, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t i = 0; stride == 1 && dtype == POSENC_DTYPE_BF16 && i < n; i++)
        to[i] = pe_half_bf16_to_float(((const uint16_t *)row)[i]);
    for (int64_t i = 0; stride == 1 && dtype == POSENC_DTYPE_F16 && i < n; i++)
        to[i] = pe_half_f16_to_float(((const uint16_t *)row)[i]);
    if (stride == 1 && (dtype == POSENC_DTYPE_BF16 || dtype == POSENC_DTYPE_F16))
        return;
    for (int64_t i = 0; i < n; i++) {
        const int64_t s = i * stride;
        switch (dtype) {
        case POSENC_DTYPE_F32: to[i] = ((const float *)row)[s]; break;
        case POSENC_DTYPE_F64: to[i] = (float)((const double *)row)[s]; break;
        case POSENC_DTYPE_F16: to[i] = pe_half_f16_to_float(((const uint16_t *)row)[s]); break;
        case POSENC_DTYPE_BF16: to[i] = pe_half_bf16_to_float(((const uint16_t *)row)[s]); break;
        case POSENC_DTYPE_I64: to[i] = (float)((const int64_t *)row)[s]; break;
        case POSENC_DTYPE_U8: to[i] = (float)((const uint8_t *)row)[s]; break;
        case POSENC_DTYPE_I32: to[i] = (float)((const int32_t *)row)[s]; break;
        default: break; /* quantised rows become floats by the kernels (widen_e4m3, widen_q8) */
        }
    }
}

void pe_tensor_load_double(double *to, const void *row, posenc_dtype dtype, int64_t stride, int64_t n)
{
    if (dtype == POSENC_DTYPE_F32 && stride == 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] = (double)((const float *)row)[i];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t s = i * stride;
        switch (dtype) {
        case POSENC_DTYPE_F32: to[i] = ((const float *)row)[s]; break;
        case POSENC_DTYPE_F64: to[i] = ((const double *)row)[s]; break;
        case POSENC_DTYPE_F16: to[i] = pe_half_f16_to_float(((const uint16_t *)row)[s]); break;
        case POSENC_DTYPE_BF16: to[i] = pe_half_bf16_to_float(((const uint16_t *)row)[s]); break;
        case POSENC_DTYPE_I64: to[i] = (double)((const int64_t *)row)[s]; break;
        case POSENC_DTYPE_U8: to[i] = ((const uint8_t *)row)[s]; break;
        case POSENC_DTYPE_I32: to[i] = ((const int32_t *)row)[s]; break;
        case POSENC_DTYPE_F8_E4M3: to[i] = pe_half_e4m3_to_float(((const uint8_t *)row)[s]); break;
        case POSENC_DTYPE_Q8_0: to[i] = pe_half_q8_to_float(row, s); break;
        }
    }
}

void pe_tensor_store_float(void *row, posenc_dtype dtype, int64_t stride, const float *from, int64_t n)
{
    if (dtype == POSENC_DTYPE_F32 && stride == 1) {
        memcpy(row, from, (size_t)n * sizeof *from);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t s = i * stride;
        switch (dtype) {
        case POSENC_DTYPE_F32: ((float *)row)[s] = from[i]; break;
        case POSENC_DTYPE_F64: ((double *)row)[s] = from[i]; break;
        case POSENC_DTYPE_F16: ((uint16_t *)row)[s] = pe_half_float_to_f16(from[i]); break;
        case POSENC_DTYPE_BF16: ((uint16_t *)row)[s] = pe_half_float_to_bf16(from[i]); break;
        default: break; /* never an output of real numbers: refused by the checks of the door */
        }
    }
}

void pe_tensor_store_double(void *row, posenc_dtype dtype, int64_t stride, const double *from, int64_t n)
{
    if (dtype == POSENC_DTYPE_F32 && stride == 1) {
        for (int64_t i = 0; i < n; i++)
            ((float *)row)[i] = (float)from[i];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)from[i];
        if (dtype == POSENC_DTYPE_F64)
            ((double *)row)[i * stride] = from[i];
        else
            pe_tensor_store_float((char *)row + i * stride * (int64_t)posenc_dtype_size(dtype), dtype, 1, &x,
                                  1);
    }
}

/* Sizes of a shape that has been compared. */
static int fits_in_double(const posenc_tensor *t)
{
    double count = 1, span = 0;
    for (int a = 0; a < t->ndim; a++) {
        count *= fmax(1, (double)t->shape[a]); /* a size of 0 hides none of the others */
        span += fabs((double)t->stride[a]) * fmax(0, (double)t->shape[a] - 1);
    }
    return count <= 0x1p56 && span <= 0x1p56;
}

int pe_tensor_fits(const posenc_tensor *t)
{
    uint64_t sizes = 0, strides = 0;
    for (int a = 0; a < t->ndim; a++) {
        sizes |= (uint64_t)t->shape[a];
        strides |= (uint64_t)t->stride[a];
    }
    return pe_tensor_is_small(t->ndim, sizes, strides) || fits_in_double(t);
}

int64_t pe_tensor_elements(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

int pe_tensor_is_contiguous(const posenc_tensor *t)
{
    int64_t step = 1;
    for (int a = t->ndim - 1; a >= 0; a--) {
        if (t->shape[a] != 1 && t->stride[a] != step)
            return 0;
        step *= t->shape[a];
    }
    return 1;
}

const char *pe_tensor_dtype_name(posenc_dtype dtype)
{
    static const char *const names[] = {"F32", "F64", "F16", "BF16", "I64", "U8", "I32", "F8_E4M3", "Q8_0"};
    return (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : "unknown";
}

/* "[2,3,any,8]" */
static void print_shape(char *text, size_t size, int ndim, const int64_t *shape)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int a = 0; a < ndim && used < size; a++) {
        const char *comma = a ? "," : "";
        used +=
            (size_t)(shape[a] < 0 ? snprintf(text + used, size - used, "%sany", comma)
                                  : snprintf(text + used, size - used, "%s%lld", comma, (long long)shape[a]));
    }
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static int same_shape(const posenc_tensor *t, int ndim, const int64_t *shape)
{
    if (t->ndim != ndim)
        return 0;
    for (int a = 0; a < ndim; a++)
        if (shape[a] < 0 ? t->shape[a] < 0 : t->shape[a] != shape[a])
            return 0;
    return 1;
}

/* Says what is wrong. Not inlined: a run checks all its tensors, which takes a good part of a small run. */
static __attribute__((noinline)) posenc_status bad_tensor(const posenc_tensor *t, const char *who, int ndim,
                                                          const int64_t *shape, posenc_error *err)
{
    char is[80], must[80];
    if (!pe_tensor_is_given(t))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s has no data; it is needed here", who);
    if ((size_t)t->dtype > POSENC_DTYPE_Q8_0)
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s has dtype number %d, which does not exist", who,
                       (int)t->dtype);
    if (t->ndim < 0 || t->ndim > POSENC_MAX_DIMS)
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s has %d axes; at most %d are possible", who, (int)t->ndim,
                       POSENC_MAX_DIMS);
    for (int a = 0; a < t->ndim; a++)
        if (t->shape[a] < 0)
            return pe_fail(err, POSENC_ERROR_SHAPE, "%s has size %lld on axis %d; sizes are 0 or more", who,
                           (long long)t->shape[a], a);
    if (!pe_tensor_is_aligned(t))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s begins between two elements of %s; align its data",
                       who, pe_tensor_dtype_name(t->dtype));
    print_shape(is, sizeof is, t->ndim, t->shape);
    if (same_shape(t, ndim, shape))
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "%s has shape %s and strides that no memory holds; at most 2^56 elements are possible",
                       who, is);
    print_shape(must, sizeof must, ndim, shape);
    return pe_fail(err, POSENC_ERROR_SHAPE, "%s has shape %s; it must be %s", who, is, must);
}

posenc_status pe_tensor_check_other(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                                    posenc_error *err)
{
    if (pe_tensor_is_given(t) && (size_t)t->dtype <= POSENC_DTYPE_Q8_0 && same_shape(t, ndim, shape) &&
        pe_tensor_is_aligned(t) && pe_tensor_fits(t))
        return POSENC_OK;
    return bad_tensor(t, who, ndim, shape, err);
}

posenc_status pe_tensor_check_output(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                                     posenc_error *err)
{
    const posenc_status status = pe_tensor_check(t, who, ndim, shape, err);
    return status ? status : pe_tensor_check_written(t, who, err);
}

posenc_status pe_tensor_check_self(const posenc_tensor *out, const char *who, posenc_error *err)
{
    for (int a = 0; a < out->ndim; a++)
        if (out->stride[a] == 0 && out->shape[a] > 1 && !pe_tensor_is_empty(out))
            return pe_fail(err, POSENC_ERROR_SHAPE,
                           "%s has stride 0 on axis %d; outputs must not overlap themselves", who, a);
    return POSENC_OK;
}

posenc_status pe_tensor_check_written(const posenc_tensor *t, const char *who, posenc_error *err)
{
    if (!pe_tensor_is_float(t->dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; an output must be F32, F64, F16 or BF16", who,
                       pe_tensor_dtype_name(t->dtype));
    return pe_tensor_check_self(t, who, err);
}
