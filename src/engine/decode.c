/* SPDX-License-Identifier: MIT */
/*
 * decode.c: a few queries against a long cache
 *
 * One new token reads every key and value once and computes little with each, so the road is laid out for
 * reading: nothing of the cache is packed, transposed or copied; all query heads that share a key head meet
 * its rows while they are in the first-level cache; keys are cut into at most CHUNKS chunks that threads take
 * as they come, head by head, each leaving the maximum m, the sum l and the output O of its part of the
 * softmax. These are joined in the order of the chunks. Where chunks begin depends on the sizes alone, so the
 * bits do not depend on the number of threads.
 *
 * Within a chunk keys go by in blocks, first the keys of a block, then its values. Memory is read fastest in
 * long runs: each jump to another place costs what a quarter of a microsecond would have read, so blocks are
 * as long as their scores are small, and all of a head comes before the next. Where keys are turned on their
 * way it is the other way round: short blocks, of each all heads, so that cosines and sines of a position are
 * made once. Masks and biases meet the scores of a block in pieces that stay in the first-level cache. Rows
 * that cannot be read where they lie (a width that is no multiple of a vector, double, keys that are turned
 * on their way) pass through a few rows of scratch.
 *
 * Source   Dao et al. 2023, "Flash-Decoding for long-context inference" (parts of the keys, joined
 *          afterwards)
 */
#include "engine/decode.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/decoder.h"

/* Scores become weights; `at` is the first row of the chunk's sums. */
static void weigh_block(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t at)
{
    if (x->values)
        x->values->softmax_step(z->P, x->block, z->S, x->block,
                                &(pe_softmax_sums){x->m + at, x->l + at, x->rounded + at, z->factor}, x->rows,
                                n->C);
    else
        x->a->kernels->softmax_step(z->S, x->block, x->m + at, x->l + at, z->factor, x->rows, n->C);
}

/* One key head's share of a block: its queries from `q` on, their sums and outputs from `at` on. */
static void visit_block(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t g, int64_t q,
                        int64_t at)
{
    const pe_attention *a  = x->a;
    const int64_t       h0 = g * x->group;
    float              *O  = x->O + at * x->T.Dvp;
    pe_decode_keys(x, z, x->Q + q * x->T.Dp, n, g);
    pe_decode_finish(x, z, n, h0);
    weigh_block(x, z, n, at);
    a->kernels->scale_rows(O, x->T.Dvp, z->factor, x->rows, x->T.Dvp);
    pe_decode_gate(x, z, n, h0);
    pe_decode_values(x, z, O, n, g);
}

/* The keys that are read after those of head g, which go by with those of the heads g0 .. g1-1: of the next
   head, of the next block, of the next heads. */
static const void *next_keys(const pe_decoder *x, const pe_keys *n, int64_t g, int64_t g0, int64_t g1)
{
    const posenc_tensor *k   = &x->a->k;
    const int64_t        end = n->j0 + n->C;
    return g + 1 < g1           ? pe_row(k, n->b, g + 1, n->j0)
           : end < x->to        ? pe_row(k, n->b, g0, end)
           : g1 < x->a->sizes.G ? pe_row(k, n->b, g1, x->from)
                                : NULL;
}

/* Rows from `at` on. */
static void start_rows(const pe_decoder *x, int64_t at, int64_t rows)
{
    for (int64_t r = at; r < at + rows; r++) {
        x->m[r] = -INFINITY;
        x->l[r] = x->rounded[r] = 0;
    }
    memset(x->O + at * x->T.Dvp, 0, (size_t)(rows * x->T.Dvp) * sizeof *x->O);
}

/* Cosines and sines of a block. */
static void turn_places(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n)
{
    const pe_attention *a = x->a;
    pe_turn_fill(z->table, pe_turn_width(a->turn_keys), a->turn_keys, &a->k_turn, n->b, n->j0, n->C,
                 x->climbs ? &x->ladder : NULL, &z->rung, 0, a->kernels);
}

/* Chunks of the same heads follow each other. */
static void visit_chunk(void *context, int64_t index, int thread)
{
    const pe_decoder *x    = context;
    const pe_problem *p    = &x->a->sizes;
    pe_decode_bench  *z    = x->benches + thread;
    const int64_t     sets = p->G / x->together, part = index % x->chunks, set = index / x->chunks % sets,
                  b = index / x->chunks / sets, g0 = set * x->together, g1 = g0 + x->together;
    const int64_t start = x->from + part * x->chunk, end = pe_smaller(start + x->chunk, x->to);
    const int64_t heads = p->H * p->Lq, at = (b * x->chunks + part) * heads;
    start_rows(x, at + g0 * x->rows, (g1 - g0) * x->rows);
    for (int64_t j = start; j < end; j += x->block) {
        pe_keys n = {.b = b, .j0 = j, .C = pe_smaller(x->block, end - j)};
        if (x->a->turn)
            turn_places(x, z, &n);
        for (int64_t g = g0; g < g1; g++) {
            n.next = next_keys(x, &n, g, g0, g1);
            visit_block(x, z, &n, g, b * heads + g * x->rows, at + g * x->rows);
        }
    }
}

/* ---- the parts joined ---- */

/* Sums of the row whose chunks are `step` apart from `at` on, about the largest m. */
typedef struct joined {
    float m, l, rounded;
} joined;

static joined join_sums(const pe_decoder *x, int64_t at, int64_t step)
{
    joined y    = {.m = -INFINITY};
    int    seen = 0; /* any key; a NaN counts and stays */
    for (int64_t c = 0; c < x->chunks; c++) {
        y.m = fmaxf(y.m, x->m[at + c * step]);
        seen |= x->l[at + c * step] != 0;
    }
    for (int64_t c = 0; seen && c < x->chunks; c++) {
        const float factor = expf(x->m[at + c * step] - y.m);
        y.l += x->l[at + c * step] * factor;
        y.rounded += x->rounded[at + c * step] * factor;
    }
    return y;
}

/* Query r of item b and all heads: o and lse from its m, l and O of every chunk, in their order. */
static void join_row(void *context, int64_t index, int thread)
{
    const pe_decoder   *x = context;
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const int64_t heads = p->H * p->Lq, b = index / heads, r = index % heads, h = r / p->Lq, i = r % p->Lq,
                  first = b * x->chunks * heads + r;
    const joined y      = join_sums(x, first, heads);
    float       *sum    = x->Q + index * x->T.Dp; /* Dp numbers suffice for a strip of the output */
    (void)thread;
    for (int64_t d0 = 0; d0 < p->Dv; d0 += x->T.Dp) {
        const int64_t width = pe_smaller(x->T.Dp, p->Dv - d0);
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (int64_t c = 0; y.l != 0 && c < x->chunks; c++) {
            const int64_t at     = first + c * heads;
            const float   factor = expf(x->m[at] - y.m) / y.rounded, *O = x->O + at * x->T.Dvp + d0;
            for (int64_t d = 0; factor != 0 && d < width; d++)
                sum[d] += factor * O[d];
        }
        char *row = pe_row(&a->o, b, h, i);
        pe_store_float(row + d0 * (int64_t)posenc_dtype_size(a->o.dtype), a->o.dtype, 1, sum, width);
    }
    const float lse =
        y.l != 0 ? (float)((double)y.m + log((double)y.l) + pe_bias_taken(&x->T, h)) : -INFINITY;
    if (a->lse.data)
        pe_store_float(pe_element(&a->lse, b, h, i), a->lse.dtype, 1, &lse, 1);
}

void pe_decode_forward(const pe_attention *a, pe_arena *arena)
{
    pe_attention few = *a;
    few.sizes.Lq     = pe_smaller(few.sizes.Lq, PE_DECODE_QUERIES);
    pe_decoder x     = pe_decoder_lay_out(arena->memory ? a : &few, arena);
    if (!arena->memory)
        return;
    pe_decoder_make_ladder(&x);
    pe_decoder_load_queries(&x);
    pe_parallel_for(a->sizes.B * (a->sizes.G / x.together) * x.chunks, a->threads, visit_chunk, &x);
    pe_parallel_for(a->sizes.B * a->sizes.H * a->sizes.Lq, a->threads, join_row, &x);
}
