/* SPDX-License-Identifier: MIT */
/*
 * index.h: distance -> bucket, the integer maps that encodings share
 *
 * Pure functions, exact integers: the logarithms are evaluated so that no rounding of libm moves a boundary.
 */
#ifndef PE_ENGINE_INDEX_H
#define PE_ENGINE_INDEX_H

#include <math.h>
#include <stdint.h>

/* t limited to low .. high. */
static inline int64_t pe_index_clip(int64_t t, int64_t low, int64_t high)
{
    return t < low ? low : t > high ? high : t;
}

/* Row and column of position P on a grid of so many columns, row by row; rows before 0 are negative. */
static inline int64_t pe_index_row(double P, int64_t columns)
{
    return (int64_t)floor(P / (double)columns);
}

static inline int64_t pe_index_column(double P, int64_t columns)
{
    return (int64_t)P - pe_index_row(P, columns) * columns;
}

/* Swin: which of all offsets on a window of rows x columns an offset (query - key) is. */
static inline int64_t pe_index_window(int64_t dy, int64_t dx, int64_t rows, int64_t columns)
{
    return (dy + rows - 1) * (2 * columns - 1) + dx + columns - 1;
}

/* Swin V2: an offset along an axis of `window` tokens, as a share of the window that the network was trained
   with (0: this one), spaced by its logarithm. An axis of one token has no share. Source: arXiv:2111.09883,
   eq. 4. */
static inline double pe_window_coordinate(int64_t offset, int64_t window, int64_t pretrained)
{
    const int64_t size = pretrained > 0 ? pretrained : window;
    if (size == 1)
        return 0;
    const double a = 8 * (double)offset / (double)(size - 1);
    return copysign(log2(1 + fabs(a)) / 3, a);
}

/*
 * T5's buckets of rel = P(j) - P(i), in [0, num_buckets).
 *
 * Formula  bidirectional: N = num_buckets/2, base = N if rel > 0 else 0, n = |rel|; else N = num_buckets,
 *          base = 0,
 *          n = max(-rel, 0). With m = N/2: n < m gives base + n, else
 *          base + min(N-1, m + floor( ln(n/m)/ln(max_distance/m) * (N-m) ))
 * Needs    N >= 2, max_distance > m
 * Source   mesh-tensorflow, transformer_layers.py, _relative_position_bucket
 */
int64_t pe_index_t5(int64_t rel, int64_t num_buckets, int64_t max_distance, int bidirectional);

/*
 * DeBERTa's log buckets of rel = P(i) - P(j): signed, before the span is added, unclipped.
 *
 * Formula  mid = b/2; |rel| <= mid: rel;
 *          else sign(rel) * ( ceil( ln(|rel|/mid)/ln((mp-1)/mid) * (mid-1) ) + mid )
 *          clip_first (Microsoft's code): rel is first limited to +-(mp-1); Hugging Face's does not
 * Source   microsoft/DeBERTa, da_utils.py, make_log_bucket_position
 */
int64_t pe_index_deberta(int64_t rel, int64_t position_buckets, int64_t max_relative_positions,
                         int clip_first);

#endif
