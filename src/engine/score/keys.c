/* SPDX-License-Identifier: MIT */
/* Where rows of keys and values lie: in pages or not, hidden by padding or not. Contract: attention.h. */
#include <string.h>

#include "base/tensor.h"
#include "engine/score/attention.h"

const void *pe_keys_row(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t g, int64_t j)
{
    if (!a->pages.data)
        return pe_tensor_row(t, b, g, j);
    const int64_t n = t->shape[2], at = a->from.j + j;
    return pe_tensor_row(t, pe_tensor_integer_at(&a->pages, at / n * a->pages.stride[0]), g, at % n);
}

int pe_keys_is_hidden(const pe_attention *a, int64_t b, int64_t j)
{
    return !a->unmasked && pe_keys_is_padding(&a->key_allowed, b, j);
}

int64_t pe_keys_run(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t j, int64_t n)
{
    const int64_t page  = a->pages.data ? t->shape[2] - (a->from.j + j) % t->shape[2] : n;
    const int64_t most  = page < n ? page : n;
    int64_t       count = 1;
    if (!(a->mask & POSENC_MASK_KEY_PADDING))
        return most;
    for (const int hidden = pe_keys_is_hidden(a, b, j); count < most; count++)
        if (pe_keys_is_hidden(a, b, j + count) != hidden)
            break;
    return count;
}

int pe_keys_are_plain(const pe_attention *a)
{
    return !a->pages.data && !(a->mask & POSENC_MASK_KEY_PADDING) && !pe_tensor_is_quantised(a->k.dtype) &&
           !pe_tensor_is_quantised(a->v.dtype);
}

double pe_keys_scale(const pe_attention *a, const posenc_tensor *t, int64_t g)
{
    const posenc_tensor *scale = t == &a->k ? &a->k_scale : &a->v_scale;
    return scale->data ? pe_tensor_real_at(scale, g * scale->stride[0]) : 1;
}

void pe_keys_load_double(const pe_attention *a, double *to, const posenc_tensor *t, int64_t b, int64_t g,
                         int64_t j, int64_t width)
{
    const int hidden = pe_keys_is_hidden(a, b, j);
    if (hidden)
        memset(to, 0, (size_t)width * sizeof *to);
    else
        pe_tensor_load_double(to, pe_keys_row(a, t, b, g, j), t->dtype, 1, width);
    const double scale = pe_tensor_is_quantised(t->dtype) ? pe_keys_scale(a, t, g) : 1;
    for (int64_t d = 0; scale != 1 && d < width; d++)
        to[d] *= scale;
}
