/* SPDX-License-Identifier: MIT */
/* groups.h: which queries of a tile meet which of its keys */
#ifndef PE_ENGINE_GROUPS_H
#define PE_ENGINE_GROUPS_H

#include "engine/tiles.h"

/* Are there allowed pairs in tile (I,J)? */
static inline int pe_tile_is_reached(const pe_tiles *T, int64_t I, int64_t J)
{
    const pe_problem *p  = &T->a->sizes;
    const int64_t     i0 = I * T->Br, i1 = pe_smaller(i0 + T->Br, p->Lq), j0 = J * T->Bc,
                  j1 = pe_smaller(j0 + T->Bc, p->Lk);
    return !T->skewed || T->a->unmasked || (i1 - 1 - j0 >= T->e_low && i0 - (j1 - 1) <= T->e_high);
}

/* Queries of a tile that meet keys first .. first+count-1 together; first is a multiple of PE_LANES. Where
   all queries see all keys, one group is all of them. */
typedef struct pe_group {
    int64_t rows, first, count;
} pe_group;

static inline pe_group pe_group_at(const pe_scratch *z, int64_t r, int64_t R, int64_t C)
{
    if (!z->limited)
        return (pe_group){R, 0, C};
    const int64_t rows = pe_smaller(PE_LANES, R - r), first = z->low[r] / PE_LANES * PE_LANES,
                  last = z->high[r + rows - 1]; /* limits rise from row to row */
    return (pe_group){rows, first, last > first ? last - first : 0};
}

/* And the other way: queries that meet any of the keys c .. c+n-1 of the tile; `first` and `count` are
   theirs. */
static inline pe_group pe_meeting(const pe_scratch *z, int64_t c, int64_t n, int64_t R)
{
    pe_group y = {n, 0, R};
    while (z->limited && y.count && z->high[y.first] <= c)
        y.first++, y.count--;
    while (z->limited && y.count && z->low[y.first + y.count - 1] >= c + n)
        y.count--;
    return y;
}

/* Columns of a tile's row that its query may see: first .. last-1. */
static inline pe_group pe_seen_columns(const pe_scratch *z, int64_t r, int64_t C)
{
    return z->limited ? (pe_group){1, z->low[r], z->high[r] - z->low[r]} : (pe_group){1, 0, C};
}

/* The same on diagonals (pe_shift_tile): of rows r .. r+rows-1 the columns of the band that any of them
   sees. */
static inline pe_group pe_band_group(const pe_scratch *z, int64_t r, int64_t R, int64_t C)
{
    const int64_t  rows = pe_smaller(PE_LANES, R - r);
    const pe_group top = pe_seen_columns(z, r, C), low = pe_seen_columns(z, r + rows - 1, C);
    const int64_t  first = R - r - rows + top.first, last = R - 1 - r + low.first + low.count;
    return (pe_group){rows, first, low.first + low.count > top.first ? last - first : 0};
}

static inline int pe_meets_band(const pe_scratch *z, int64_t r, int64_t x, int64_t n, int64_t R, int64_t C)
{
    const pe_group y     = pe_seen_columns(z, r, C);
    const int64_t  first = R - 1 - r + y.first;
    return y.count > 0 && first < x + n && first + y.count > x;
}

/* And queries that see any of the band's columns x .. x+n-1; `first` and `count` are theirs. */
static inline pe_group pe_meeting_band(const pe_scratch *z, int64_t x, int64_t n, int64_t R, int64_t C)
{
    pe_group y = {n, 0, R};
    while (y.count && !pe_meets_band(z, y.first, x, n, R, C))
        y.first++, y.count--;
    while (y.count && !pe_meets_band(z, y.first + y.count - 1, x, n, R, C))
        y.count--;
    return y;
}

#endif
