/* SPDX-License-Identifier: MIT */
/*
 * index.c: index maps. Contract: index.h.
 *
 * floor(log ratio * steps) is exact only where the product is no integer, and some arguments land on one (n =
 * 40 of 32 buckets up to 100). A result within 1e-9 of an integer is that integer: distances to the nearest
 * boundary that are not zero are far larger for any table that fits into memory, because log ratios of
 * integers below 2^31 do not come that close.
 */
#include "engine/score/index.h"

#include <math.h>

#define SNAP 1e-9

int64_t pe_index_t5(int64_t rel, int64_t num_buckets, int64_t max_distance, int bidirectional)
{
    const int64_t N = bidirectional ? num_buckets / 2 : num_buckets, m = N / 2;
    const int64_t base = bidirectional && rel > 0 ? N : 0;
    const int64_t n    = rel > 0 ? (bidirectional ? rel : 0) : -rel;
    if (n < m)
        return base + n;
    const double steps = log((double)n / (double)m) / log((double)max_distance / (double)m) * (double)(N - m);
    const int64_t large = steps >= (double)(N - m) ? N - 1 : m + (int64_t)floor(steps + SNAP);
    return base + (large < N - 1 ? large : N - 1);
}

int64_t pe_index_deberta(int64_t rel, int64_t position_buckets, int64_t max_relative_positions,
                         int clip_first)
{
    const int64_t mid = position_buckets / 2, far = max_relative_positions - 1;
    const int64_t limited = clip_first ? (rel > far ? far : rel < -far ? -far : rel) : rel;
    const int64_t n       = limited < 0 ? -limited : limited;
    if (n <= mid)
        return limited;
    const double  steps = log((double)n / (double)mid) / log((double)far / (double)mid) * (double)(mid - 1);
    const int64_t large = (int64_t)ceil(steps - SNAP) + mid;
    return limited < 0 ? -large : large;
}
