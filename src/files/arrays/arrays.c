/* SPDX-License-Identifier: MIT */
/* arrays.c: sets of named arrays in memory. Their capacity is the count rounded up to a power of two, so the
   public struct needs no third member. */
#include "files/arrays/formats.h"

#include "base/half.h"

#include <stdlib.h>
#include <string.h>

int pe_arrays_take(posenc_arrays *set, const char *name, size_t length, const posenc_array *array)
{
    char         *copy     = malloc(length + 1);
    const int     is_full  = (set->count & (set->count - 1)) == 0;
    const size_t  capacity = set->count ? 2 * (size_t)set->count : 1;
    posenc_array *items    = is_full ? realloc(set->items, capacity * sizeof *items) : set->items;
    if (items)
        set->items = items;
    if (!copy || !items) {
        free(copy);
        free(array->tensor.data);
        return 0;
    }
    memcpy(copy, name, length);
    copy[length]                  = '\0';
    set->items[set->count]        = *array;
    set->items[set->count++].name = copy;
    return 1;
}

size_t pe_arrays_bytes(const posenc_tensor *tensor)
{
    size_t n = posenc_dtype_size(tensor->dtype);
    for (int32_t a = 0; a < tensor->ndim; a++)
        n *= (size_t)tensor->shape[a];
    return n;
}

static double element(const posenc_tensor *t, size_t i)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: return ((const double *)t->data)[i];
    case POSENC_DTYPE_F32: return (double)((const float *)t->data)[i];
    case POSENC_DTYPE_F16: return (double)pe_half_f16_to_float(((const uint16_t *)t->data)[i]);
    default: return (double)pe_half_bf16_to_float(((const uint16_t *)t->data)[i]);
    }
}

int pe_arrays_convert(const posenc_tensor *to, const posenc_tensor *from)
{
    const size_t n = pe_arrays_bytes(from) / posenc_dtype_size(from->dtype);
    if (from->dtype > POSENC_DTYPE_BF16)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (to->dtype == POSENC_DTYPE_F64)
            ((double *)to->data)[i] = element(from, i);
        else
            ((float *)to->data)[i] = (float)element(from, i);
    return 1;
}

static int is_countable(posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    int64_t bytes = (int64_t)posenc_dtype_size(dtype);
    if (ndim < 0 || ndim > POSENC_MAX_DIMS ||
        (size_t)dtype > POSENC_DTYPE_I32) /* no file format has quantised rows */
        return 0;
    for (int32_t a = 0; a < ndim; a++) {
        if (shape[a] < 0 || (shape[a] > 0 && bytes > INT64_MAX / 2 / shape[a]))
            return 0;
        bytes *= shape[a] > 0 ? shape[a] : 1;
    }
    return bytes > 0;
}

int pe_arrays_is_sound(const posenc_array *array)
{
    const posenc_tensor *t = &array->tensor;
    if (!array->name || !t->data || !is_countable(t->dtype, t->ndim, t->shape))
        return 0;
    const posenc_tensor plain = posenc_tensor_contiguous(t->data, t->dtype, t->ndim, t->shape);
    for (int32_t a = 0; a < t->ndim; a++)
        if (t->stride[a] != plain.stride[a] && t->shape[a] > 1)
            return 0;
    return 1;
}

posenc_tensor *posenc_arrays_add(posenc_arrays *set, const char *name, posenc_dtype dtype, int32_t ndim,
                                 const int64_t *shape)
{
    if (!set || !name || (ndim && !shape) || !is_countable(dtype, ndim, shape))
        return NULL;
    posenc_array array = {.tensor = posenc_tensor_contiguous(NULL, dtype, ndim, shape)};
    array.tensor.data  = calloc(1, pe_arrays_bytes(&array.tensor) + 1); /* an empty array has data too */
    if (!array.tensor.data || !pe_arrays_take(set, name, strlen(name), &array))
        return NULL;
    return &set->items[set->count - 1].tensor;
}

posenc_tensor *posenc_arrays_find(const posenc_arrays *set, const char *name)
{
    for (int i = 0; set && name && i < set->count; i++)
        if (!strcmp(set->items[i].name, name))
            return &set->items[i].tensor;
    return NULL;
}

void posenc_arrays_free(posenc_arrays *set)
{
    if (!set)
        return;
    for (int i = 0; i < set->count; i++) {
        free(set->items[i].name);
        free(set->items[i].tensor.data);
    }
    free(set->items);
    *set = (posenc_arrays){0};
}
