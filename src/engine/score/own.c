/* SPDX-License-Identifier: MIT */
/* Which key a query is. Contract: attention.h. */
#include <math.h>

#include "engine/score/attention.h"

void pe_own_find(pe_own *own, const pe_attention *a, int64_t b, int64_t i)
{
    const int64_t segment = pe_has_segments(a) ? pe_pairs_segment(&a->q_segments, b, i) : 0;
    if (own->is_found && own->segment == segment)
        return;
    own->is_found = 1;
    own->segment  = segment;
    own->first    = 0;
    own->end      = own->keys;
    if (!pe_has_segments(a))
        return;
    while (own->first < own->keys && pe_pairs_segment(&a->k_segments, b, own->first) != segment)
        own->first++;
    for (own->end = own->first;
         own->end < own->keys && pe_pairs_segment(&a->k_segments, b, own->end) == segment;)
        own->end++;
}

int64_t pe_own_count(const pe_own *own, const pe_attention *a, int64_t b, int64_t i, int with)
{
    const double P   = pe_positions_at(&a->q_pos, b, i);
    int64_t      low = own->first, end = own->end;
    if (!a->k_pos.array.data && a->k_pos.step == 1) {
        const double n = with ? floor(P - a->k_pos.start) + 1 : ceil(P - a->k_pos.start);
        return (int64_t)fmin(fmax(n, (double)low), (double)end) - low;
    }
    while (low < end) {
        const int64_t middle = low + (end - low) / 2;
        const double  at     = pe_positions_at(&a->k_pos, b, middle);
        if (at < P || (with && at == P))
            low = middle + 1;
        else
            end = middle;
    }
    return low - own->first;
}
