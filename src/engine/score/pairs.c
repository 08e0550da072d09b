/* SPDX-License-Identifier: MIT */
/* What a run says pair by pair: the caller's numbers, masks, segments. Contract: attention.h. */
#include "base/tensor.h"
#include "engine/score/attention.h"

static char *pair_at(const pe_attention *a, const posenc_tensor *tensor, int64_t h, int64_t i, int64_t j)
{
    const pe_problem *p = a->parts[PE_SCORE].p;
    const int64_t     at =
        (a->terms->pairs.matrix(p, a->from.h + h) * p->Lq + a->from.i + i) * p->Lk + a->from.j + j;
    return (char *)tensor->data + at * (int64_t)posenc_dtype_size(tensor->dtype);
}

void pe_pairs_load(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n, double to[])
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].tensor[a->terms->pairs.param];
    pe_tensor_load_double(to, pair_at(a, tensor, h, i, j0), tensor->dtype, 1, n);
}

void pe_pairs_add(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n,
                  const double cotangents[])
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].dtensor[a->terms->pairs.param];
    pe_add_row(pair_at(a, tensor, h, i, j0), tensor->dtype, cotangents, n);
}

const float *pe_pairs_at(const pe_attention *a, int64_t h, int64_t i, int64_t j0)
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].tensor[a->terms->pairs.param];
    return tensor->dtype == POSENC_DTYPE_F32 ? (const float *)(const void *)pair_at(a, tensor, h, i, j0)
                                             : NULL;
}

/* ---- masks and segments ---- */

static int mask_byte(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const int64_t index[4] = {i0, i1, i2, i3};
    int64_t       offset   = 0;
    for (int d = 0; d < t->ndim; d++)
        offset += (t->shape[d] == 1 ? 0 : index[d]) * t->stride[d];
    return ((const uint8_t *)t->data)[offset] != 0;
}

int64_t pe_pairs_segment(const posenc_tensor *segments, int64_t b, int64_t s)
{
    return segments->data
               ? pe_tensor_integer_at(segments, (segments->shape[0] == 1 ? 0 : b) * segments->stride[0] +
                                                    s * segments->stride[1])
               : 0;
}

int pe_pairs_allowed(const pe_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) {
        const double t = pe_positions_at(&a->q_pos, b, i) - pe_positions_at(&a->k_pos, b, j);
        if (t < (double)a->reach.low || t > (double)a->reach.high)
            return 0;
    }
    if ((a->mask & POSENC_MASK_SEGMENTS) &&
        pe_pairs_segment(&a->q_segments, b, i) != pe_pairs_segment(&a->k_segments, b, j))
        return 0;
    if (pe_keys_is_padding(&a->key_allowed, b, j))
        return 0;
    return !(a->mask & POSENC_MASK_EXPLICIT) || mask_byte(&a->allowed, b, h, i, j);
}
