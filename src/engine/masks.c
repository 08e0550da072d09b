/* SPDX-License-Identifier: MIT */
/* Which pairs a run lets be seen, and segments. Contract: attend.h. */
#include "base/tensor.h"
#include "engine/attend.h"

static int mask_byte(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const int64_t index[4] = {i0, i1, i2, i3};
    int64_t       offset   = 0;
    for (int d = 0; d < t->ndim; d++)
        offset += (t->shape[d] == 1 ? 0 : index[d]) * t->stride[d];
    return ((const uint8_t *)t->data)[offset] != 0;
}

int64_t pe_segment(const posenc_tensor *segments, int64_t b, int64_t s)
{
    return segments->data ? pe_integer_at(segments, (segments->shape[0] == 1 ? 0 : b) * segments->stride[0] +
                                                        s * segments->stride[1])
                          : 0;
}

int pe_is_allowed(const pe_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) {
        const double t = pe_position(&a->q_pos, b, i) - pe_position(&a->k_pos, b, j);
        if (t < (double)a->reach.low || t > (double)a->reach.high)
            return 0;
    }
    if ((a->mask & POSENC_MASK_SEGMENTS) &&
        pe_segment(&a->q_segments, b, i) != pe_segment(&a->k_segments, b, j))
        return 0;
    if ((a->mask & POSENC_MASK_KEY_PADDING) && !mask_byte(&a->key_allowed, b, j, 0, 0))
        return 0;
    return !(a->mask & POSENC_MASK_EXPLICIT) || mask_byte(&a->allowed, b, h, i, j);
}
