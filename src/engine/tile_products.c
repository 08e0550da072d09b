/* SPDX-License-Identifier: MIT */
/* Products of a tile's queries and keys, and the terms that join them on their way out. Contract:
   tile_scores.h. */
#include <string.h>

#include "engine/groups.h"
#include "engine/growth.h"
#include "engine/sharp.h"
#include "engine/tile_scores.h"

/* The modulus of both forms; backward, the share of each in it besides: 0 where both are 0 and no direction
   is known. */
static void join_forms(const pe_tiles *T, pe_scratch *z, float *s, int64_t R, int64_t C)
{
    const int64_t n    = T->Br * T->Bcp;
    float *const first = z->share, *const second = z->share ? z->share + n : NULL;
    if (first)
        memcpy(first, s, (size_t)(R * T->Bcp) * sizeof *s);
    T->a->kernels->modulus(s, z->S2, T->Bcp, R, C);
    for (int64_t r = 0; first && r < R; r++)
        for (int64_t x = r * T->Bcp; x < r * T->Bcp + C; x++) {
            first[x]  = s[x] > 0 ? first[x] / s[x] : 0;
            second[x] = s[x] > 0 ? z->S2[x] / s[x] : 0;
        }
}

const float *pe_pairs_in_place(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t C)
{
    const pe_attention *a       = T->a;
    const int           between = a->grown || z->Q2 || pe_is_sharp(T) || a->terms->hook.visit || T->has_extra;
    return a->terms->pairs.matrix && !between && C % PE_LANES == 0 ? pe_pairs_at(a, h, z->i0, z->j0) : NULL;
}

/* The same for the tile after this: backward the queries go on, forward the keys. NULL behind the last. */
static const float *next_pairs(const pe_tiles *T, const pe_scratch *z, const float *pairs)
{
    const pe_problem *p    = &T->a->sizes;
    const int64_t     down = z->backward ? T->Br : 0, right = z->backward ? 0 : T->Bc;
    const int         last = z->i0 + down >= p->Lq || z->j0 + right >= p->Lk;
    return last ? NULL : pairs + down * T->a->parts[PE_SCORE].p->Lk + right;
}

/* One stream of terms, which goes into the products as they are made. */
typedef struct stream {
    const float *at; /* NULL: none */
    int64_t      step;
    int far; /* its rows lie far apart in memory, each on a page of its own, which no prefetcher foresees */
    const float *next; /* where it goes on with the next tile, if it is far and there is one */
} stream;

/* It is taken from the terms that are left to the kernels that finish scores. Where products are wanted bare,
   there is none. */
static stream take_stream(const pe_tiles *T, const pe_scratch *z, const float *pairs, pe_tile_terms *terms)
{
    stream y = {0};
    if (pe_is_sharp(T) || z->Q2 || T->a->terms->hook.content)
        return y;
    const float **from = terms->bias ? &terms->bias : terms->skewed ? &terms->skewed : &terms->extra;
    y.at               = *from;
    y.step = terms->bias ? terms->bias_step : terms->skewed ? terms->skewed_step : terms->extra_step;
    y.far  = y.at && y.at == pairs;
    y.next = y.far ? next_pairs(T, z, pairs) : NULL;
    *from  = NULL;
    return y;
}

/* Products of some queries from row r on with the keys that any of the group may see. What those from `ahead`
   on will add is asked for. */
static void multiply_group(const pe_tiles *T, float *s, int64_t r, int64_t rows, pe_group y, const float *Qu,
                           const float *Kt, stream plus, const float *ahead)
{
    const pe_kernels *k    = T->a->kernels;
    const int64_t     D    = T->a->sizes.D;
    float            *to   = s + r * T->Bcp + y.first;
    const pe_ahead    next = {.at   = {ahead ? (uintptr_t)(ahead + y.first) : 0},
                              .step = {plus.step * (int64_t)sizeof *ahead}};
    if (plus.at)
        k->product_plus(to, T->Bcp, Qu + r * T->Dp, T->Dp, Kt + y.first, T->Bcp, rows, y.count, D,
                        plus.at + r * plus.step + y.first, plus.step, ahead ? &next : NULL);
    else
        k->product(to, T->Bcp, Qu + r * T->Dp, T->Dp, 1, Kt + y.first, T->Bcp, rows, y.count, D, 0);
}

enum { TOGETHER = 6 }; /* rows of a block of products: whole blocks ask for what is ahead of them */

/* Some rows of a stream are called from memory at once; a number, as they may end before a whole tile
   does. */
static void call_rows(uintptr_t rows, int64_t step, int64_t n, int64_t C)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < C; c += PE_LANES)
            __builtin_prefetch((const void *)(rows + (uintptr_t)(r * step + c) * sizeof(float)));
}

/* Products of groups of queries. Where rows far apart are added, each block of products asks memory for those
   of the next, and the last of a tile for the first of the next tile: any earlier they would share sets of
   the first cache with too many others, all at once they would hold up the loads of the product at hand. */
static void multiply_seen(const pe_tiles *T, const pe_scratch *z, float *s, int64_t R, int64_t C,
                          const float *Qu, const float *Kt, stream plus)
{
    for (int64_t r = 0; r < R;) {
        const pe_group y   = pe_group_at(z, r, R, C);
        const int64_t  all = pe_smaller(y.rows, R - r), rows = plus.far ? pe_smaller(all, TOGETHER) : all,
                      next = r + rows;
        const float *ahead = !plus.far ? NULL : next < R ? plus.at + next * plus.step : plus.next;
        if (ahead && rows < TOGETHER)
            call_rows((uintptr_t)ahead, plus.step, pe_smaller(TOGETHER, next < R ? R - next : T->Br), C);
        multiply_group(T, s, r, rows, y, Qu, Kt, plus, ahead);
        r = next;
    }
}

void pe_multiply_tile(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t R, int64_t C,
                      const float *Qu, const float *Kt, const float *pairs, pe_tile_terms *terms)
{
    const pe_attention *a    = T->a;
    const float        *Q2   = z->Q2;
    const stream        plus = take_stream(T, z, pairs, terms);
    if (a->grown) {
        pe_grow_queries(T, z, b, Qu, R);
        Qu = z->Qg;
        Q2 = z->Q2 ? z->Qg + T->Br * T->Dp : NULL;
        Kt = z->Kgt;
    }
    if (pe_is_sharp(T))
        pe_take_sharp(T, z, s, R, C);
    else if (Q2) /* what is not seen must be numbers too: its share times 0 has to be 0 */
        a->kernels->product(s, T->Bcp, Qu, T->Dp, 1, Kt, T->Bcp, R, C, a->sizes.D, 0);
    else
        multiply_seen(T, z, s, R, C, Qu, Kt, plus);
    if (!Q2)
        return;
    a->kernels->product(z->S2, T->Bcp, Q2, T->Dp, 1, Kt, T->Bcp, R, C, a->sizes.D, 0);
    join_forms(T, z, s, R, C);
}
