/* SPDX-License-Identifier: MIT */
/* How keys are cut for a few queries, what each thread has, and the queries. Contract: decoder.h; why:
   decode.c. */
#include <string.h>

#include "base/tensor.h"
#include "engine/decoder.h"
#include "engine/tile_rows.h"

enum {
    CHUNKS = 32,
    LEAST  = 256,  /* keys of a chunk at least, of all heads together */
    BLOCK  = 2048, /* of a block at most */
    RUN    = 512,  /* of a piece that a table by distance meets */
    SCORES = 16384 /* of a block of several pieces: what the caches hold beside rows that pass by */
};

static void find_keys(pe_decoder *x)
{
    const pe_problem *p = &x->a->sizes;
    x->from             = 0;
    x->to               = p->Lk;
    if (x->T.skewed) { /* allowed iff e_low <= i - j <= e_high */
        x->from = x->T.e_high < 0 ? pe_smaller(-x->T.e_high, p->Lk) : 0;
        x->to   = x->T.e_low > p->Lq - p->Lk ? p->Lq - x->T.e_low : p->Lk;
        x->to   = x->to > x->from ? x->to : x->from;
    }
    x->near = pe_bias_near(x->a);
}

static int64_t in_pieces(int64_t keys)
{
    return (keys + PE_DECODE_PIECE - 1) / PE_DECODE_PIECE * PE_DECODE_PIECE;
}

static void cut_keys(pe_decoder *x)
{
    const int64_t n = x->to - x->from, want = (n + CHUNKS - 1) / CHUNKS, heads = x->a->sizes.G / x->together;
    const int64_t least = pe_smaller(LEAST * heads, BLOCK);
    x->chunk            = in_pieces(want < least ? least : want);
    x->chunks           = (n + x->chunk - 1) / x->chunk;
}

static void cut_chunks(pe_decoder *x)
{
    const int64_t fits   = x->a->turn ? PE_DECODE_PIECE
                                      : pe_smaller(SCORES / x->rows, BLOCK) / PE_DECODE_PIECE * PE_DECODE_PIECE,
                  most   = fits < PE_DECODE_PIECE ? PE_DECODE_PIECE : fits,
                  blocks = (x->chunk + most - 1) / most;
    x->block             = in_pieces((x->chunk + blocks - 1) / blocks);
}

/* Thousands of calls for a few numbers each would be a tenth of the time of a cache of 16 bits. */
static int64_t keys_at_once(const pe_decoder *x)
{
    return pe_decoder_has_extra(x) || (x->a->mask & POSENC_MASK_KEY_PADDING) ? PE_DECODE_PIECE
           : x->T.by_distance                                                ? RUN
                                                                             : x->block;
}

static int has_ladder(const pe_decoder *x)
{
    return x->a->turn && x->a->sizes.Lk >= PE_LADDER_ROWS;
}

static void lay_out_bench(const pe_decoder *x, pe_decode_bench *to, pe_arena *arena)
{
    const pe_tiles *T      = &x->T;
    const int64_t   scores = x->rows * PE_DECODE_PIECE > SCORES ? x->rows * PE_DECODE_PIECE : SCORES;
    pe_decode_bench y;
    y.S      = pe_take_floats(arena, scores);
    y.P      = pe_take(arena, (size_t)scores * sizeof *y.P);
    y.extra  = pe_take_floats(arena, PE_DECODE_PIECE);
    y.key    = pe_take_floats(arena, PE_DECODE_PIECE);
    y.factor = pe_take_floats(arena, x->rows);
    y.few    = pe_take_floats(arena, PE_DECODE_FEW * (T->Dp > T->Dvp ? T->Dp : T->Dvp));
    y.table =
        pe_take_floats(arena, (x->a->turn ? PE_DECODE_PIECE * pe_turn_width(x->a->turn_keys) : 0) + PE_LANES);
    y.rung = pe_rung_lay_out(has_ladder(x) ? 2 * x->a->turn_keys->M : 0, arena);
    if (arena->memory)
        *to = y;
}

/* Do queries meet keys as they are stored, so that products of bf16 are exact? */
static int are_pairs(const pe_attention *a)
{
    return a->q.dtype == POSENC_BF16 && a->k.dtype == POSENC_BF16 && !a->turn && a->terms->u == PE_NONE &&
           a->sizes.D % PE_ROAD_LANES == 0;
}

/* Are weights rounded to bf16, as in bf16.c? Values must lie as the kernel reads them. */
static int are_rounded(const pe_attention *a)
{
    return a->products == POSENC_PRODUCTS_BY_STORAGE && a->q.dtype == POSENC_BF16 &&
           a->k.dtype == POSENC_BF16 && a->v.dtype == POSENC_BF16 && !pe_has(a->terms, PE_GATE) &&
           a->sizes.Dv % PE_ROAD_LANES == 0 && a->sizes.Dv <= PE_CACHE_WIDEST;
}

pe_decoder pe_decoder_lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_decoder        x = {.a = a, .group = p->H / p->G};
    x.rows              = x.group * p->Lq;
    x.together          = a->turn ? p->G : 1;
    pe_road_make(&x.T, a, arena, 1, RUN, 0);
    if (arena->memory)
        find_keys(&x);
    else
        x.to = p->Lk;
    cut_keys(&x);
    cut_chunks(&x);
    x.piece               = keys_at_once(&x);
    const int64_t queries = p->B * p->H * p->Lq, parts = (arena->memory ? x.chunks : CHUNKS) * queries;
    x.Q       = pe_take_floats(arena, queries * x.T.Dp);
    x.Q16     = pe_take(arena, (size_t)(queries * x.T.Dp) * sizeof *x.Q16);
    x.keys    = arena->memory && are_pairs(a) ? pe_kernels_bf16(a->kernels) : NULL;
    x.values  = arena->memory && are_rounded(a) ? pe_kernels_bf16(a->kernels) : NULL;
    x.m       = pe_take_floats(arena, parts);
    x.l       = pe_take_floats(arena, parts);
    x.rounded = x.values || !arena->memory ? pe_take_floats(arena, parts) : x.l;
    x.O       = pe_take_floats(arena, parts * x.T.Dvp);
    x.ladder  = pe_ladder_lay_out(has_ladder(&x) ? 2 * a->turn_keys->M : 0, arena);
    x.benches = pe_take(arena, (size_t)a->threads * sizeof *x.benches);
    for (int i = 0; i < a->threads; i++)
        lay_out_bench(&x, x.benches ? x.benches + i : NULL, arena);
    return x;
}

void pe_decoder_make_ladder(pe_decoder *x)
{
    const pe_attention *a = x->a;
    x->climbs             = has_ladder(x) && pe_turn_climbs(a->turn_keys, &a->k_turn);
    if (x->climbs)
        pe_turn_ladder(&x->ladder, a->turn_keys, a->kernels);
}

/* ---- queries ---- */

void pe_decoder_load_queries(const pe_decoder *x)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const pe_tiles     *T = &x->T;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            float *q = x->Q + (b * p->H + h) * p->Lq * T->Dp;
            for (int64_t i = 0; x->keys && i < p->Lq; i++)
                memcpy(x->Q16 + (q - x->Q) + i * T->Dp, pe_row(&a->q, b, h, i),
                       (size_t)p->D * sizeof *x->Q16);
            pe_load_turned(T, T->scratch, q, NULL, PE_QUERIES, b, h, 0, p->Lq);
            pe_scale_queries(T, q, NULL, h, p->Lq);
        }
}
