/* SPDX-License-Identifier: MIT */
/*
 * Tensors as runs of bytes: axes that lie without a gap are one run, and of two tensors whose bytes from
 * first to last cross, the one with the longest steps is cut along these, until two runs cross. Contract:
 * overlap.h.
 */
#include "base/overlap.h"

#include "base/status.h"
#include "base/tensor.h"

enum { MOST_CUTS = 512 };

/* `count` steps of so many bytes along each axis, the longest last, of runs of `width` bytes from `at` on. */
typedef struct block {
    int64_t at, width, count[POSENC_MAX_DIMS], step[POSENC_MAX_DIMS];
    int     axes;
} block;

static void add_axis(block *x, int64_t count, int64_t step)
{
    int a = x->axes++;
    if (step < 0) {
        x->at += (count - 1) * step;
        step = -step;
    }
    for (; a > 0 && x->step[a - 1] > step; a--) {
        x->count[a] = x->count[a - 1];
        x->step[a]  = x->step[a - 1];
    }
    x->count[a] = count;
    x->step[a]  = step;
}

/* The shortest steps become part of the run. */
static void close_gaps(block *x)
{
    while (x->axes && x->step[0] <= x->width) {
        x->width += (x->count[0] - 1) * x->step[0];
        x->axes--;
        for (int a = 0; a < x->axes; a++) {
            x->count[a] = x->count[a + 1];
            x->step[a]  = x->step[a + 1];
        }
    }
}

/* No bytes where a size is 0. */
static block block_of(const posenc_tensor *t)
{
    const int is_q8 = t->dtype == POSENC_DTYPE_Q8_0; /* its rows are whole blocks */
    const int rows  = is_q8 && t->ndim ? t->ndim - 1 : t->ndim;
    block     x     = {.at = (int64_t)(intptr_t)t->data,
                       .width =
                   is_q8 ? pe_tensor_bytes(t->dtype, t->shape[rows]) : (int64_t)posenc_dtype_size(t->dtype)};
    for (int a = 0; a < rows; a++) {
        if (t->shape[a] <= 0)
            x.width = 0;
        if (t->shape[a] > 1)
            add_axis(&x, t->shape[a], pe_tensor_bytes(t->dtype, t->stride[a]));
    }
    if (x.width)
        close_gaps(&x);
    return x;
}

static int64_t end_of(const block *x)
{
    int64_t end = x->at + x->width;
    for (int a = 0; a < x->axes; a++)
        end += (x->count[a] - 1) * x->step[a];
    return end;
}

/* Do they share a byte? What takes more cuts than there are left: no. */
static int cross(const block *x, const block *y, int *cuts)
{
    if (x->at >= end_of(y) || y->at >= end_of(x) || !x->width || !y->width || --*cuts < 0)
        return 0;
    if (!x->axes && !y->axes)
        return 1;
    const int64_t steps[2] = {x->axes ? x->step[x->axes - 1] : 0, y->axes ? y->step[y->axes - 1] : 0};
    const block  *cut = steps[0] >= steps[1] ? x : y, *other = cut == x ? y : x;
    block         part = *cut;
    part.axes--;
    const int64_t step = cut->step[part.axes], length = end_of(&part) - part.at,
                  low = other->at - cut->at - length, high = end_of(other) - cut->at;
    for (int64_t i = low < 0 ? 0 : low / step; i < cut->count[part.axes] && i * step < high; i++) {
        part.at = cut->at + i * step;
        if (cross(&part, other, cuts))
            return 1;
        if (*cuts < 0)
            return 0;
    }
    return 0;
}

/* From the first byte to behind the last, in the order of the axes: says of most that they are apart. */
static void span_of(const posenc_tensor *t, int64_t *low, int64_t *high)
{
    const int64_t size = (int64_t)posenc_dtype_size(t->dtype);
    *low = *high = (int64_t)(intptr_t)t->data;
    for (int a = 0; a < t->ndim; a++) {
        const int64_t far = t->shape[a] > 1 ? (t->shape[a] - 1) * t->stride[a] * size : 0;
        *low += far < 0 ? far : 0;
        *high += far > 0 ? far : 0;
    }
    *high += size;
}

static int are_far(const posenc_tensor *x, const posenc_tensor *y)
{
    int64_t low[2], high[2];
    if (x->dtype == POSENC_DTYPE_Q8_0 || y->dtype == POSENC_DTYPE_Q8_0)
        return 0;
    span_of(x, &low[0], &high[0]);
    span_of(y, &low[1], &high[1]);
    return low[0] >= high[1] || low[1] >= high[0];
}

/* "rotate: to_q overlaps q": the caller's name stands once. */
static const char *within(const char *out_name, const char *in_name)
{
    const char *colon = strstr(out_name, ": ");
    return colon && !strncmp(out_name, in_name, (size_t)(colon + 2 - out_name))
               ? in_name + (colon + 2 - out_name)
               : in_name;
}

int pe_overlap_is_same(const posenc_tensor *x, const posenc_tensor *y)
{
    int same = x->data == y->data && x->dtype == y->dtype && x->ndim == y->ndim;
    for (int a = 0; same && a < x->ndim; a++)
        same = x->shape[a] == y->shape[a] && (x->shape[a] == 1 || x->stride[a] == y->stride[a]);
    return same;
}

posenc_status pe_overlap_check(const posenc_tensor *out, const char *out_name, const posenc_tensor *in,
                               const char *in_name, int may_be_same, posenc_error *err)
{
    int cuts = MOST_CUTS;
    if (!out->data || !in->data || are_far(out, in) || (may_be_same && pe_overlap_is_same(out, in)))
        return POSENC_OK;
    const block x = block_of(out), y = block_of(in);
    if (!cross(&x, &y, &cuts))
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s overlaps %s; it must be %s", out_name,
                   within(out_name, in_name),
                   may_be_same ? "that tensor (data, type and strides) or apart from it"
                               : "in memory of its own");
}

posenc_status pe_overlap_check_apart(const pe_named *outputs, int output_count, const pe_named *inputs,
                                     int input_count, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < output_count; i++) {
        for (int j = 0; !status && j < input_count; j++)
            status = pe_overlap_check(outputs[i].tensor, outputs[i].name, inputs[j].tensor, inputs[j].name, 0,
                                      err);
        for (int j = i + 1; !status && j < output_count; j++)
            status = pe_overlap_check(outputs[i].tensor, outputs[i].name, outputs[j].tensor, outputs[j].name,
                                      0, err);
    }
    return status;
}
