/* SPDX-License-Identifier: MIT */
/*
 * decode.c: a few queries against a long cache
 *
 * One new token reads every key and value once and computes little with each, so memory is laid out for
 * reading: nothing of the cache is packed, transposed or copied; all query heads that share a key head are
 * multiplied by its rows while they are in the first-level cache; keys are cut into chunks
 * that threads take as they come, head by head, each leaving the maximum m, the sum l and the output O of its
 * part of the softmax. These are joined in the order of the chunks. Where chunks begin depends only on the
 * sizes, so the bits do not depend on the number of threads.
 *
 * Within a chunk keys go by in blocks, first the keys of a block, then its values. Memory is read fastest in
 * long runs: each jump to another place costs what a quarter of a microsecond would have read, so blocks are
 * as long as their scores are small, and all of a head comes before the next. Where keys are rotated on their
 * way it is the other way round: short blocks, of each all heads, so that cosines and sines of a position are
 * made once; and where they lie in pages, so that the heads of a page are read together. Pages are read
 * several at a time, some rows of each in turn: one alone is nearly read when the hardware has found it
 * (pages of 16 were read at a third of the speed of rows side by side). Masks and biases are added to the
 * scores of a block in pieces that stay in the first-level cache. Rows that cannot be read where they lie (a
 * width that is no multiple of a vector, double, keys that are rotated on their way) pass through a few rows
 * of scratch.
 *
 * Source   Dao et al. 2023, "Flash-Decoding for long-context inference" (parts of the keys, joined
 *          afterwards)
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/shared/compiler.h"
#include "base/tensor.h"
#include "engine/fast/fast.h"

enum {
    PIECE = 128, /* keys of a piece that masks are added to, and of a block at least */
    FEW   = 16   /* rows in scratch */
};

/* Of one thread. */
typedef struct decode_scratch {
    float        *S, *extra; /* [rows, block], [PIECE] */
    uint16_t     *P;         /* [rows, block] weights in bf16 */
    float        *key;       /* [PIECE] 0 or -infinity */
    float        *factor;    /* [rows] */
    float        *few;       /* [FEW, max(Dp,Dvp)] */
    float        *band;      /* [Lq + RUN] the biases or gates at hand */
    double       *exact;     /* the same before they are rounded */
    float        *table;     /* [PIECE, width of a rotation] */
    double       *drift;     /* [RUN] running sums of a piece, there */
    const double *drift_at;  /* or where they lie */
    pe_rung       rung;
} decode_scratch;

typedef struct decoder {
    const pe_attention *a;
    pe_tiles            T;           /* tables by distance and the width of rows; nothing of it is a tile */
    int64_t             group, rows; /* query heads of a key head; their queries */
    int64_t             from, to, chunk, chunks; /* keys that any query may see; of a chunk; chunks */
    int64_t             block, together;         /* keys of a block; key heads that share its cosines */
    int64_t             piece;                   /* keys that masks and biases are added to at once */
    double              near;                    /* the smallest distance among them */
    double              bytes;                   /* of keys and values that are read */
    float              *Q;                       /* [B, H, Lq, Dp] rotated and scaled */
    uint16_t           *Q16; /* the same as they came, where they are multiplied by keys as pairs of bf16 */
    const pe_bf16_kernels *keys;    /* of those pairs; NULL: they do not */
    const pe_bf16_kernels *values;  /* of weights in bf16 with values; NULL: weights are floats */
    float                 *m, *l;   /* [B, chunks, H, Lq] */
    float                 *rounded; /* as l, of the weights that are multiplied by values */
    float                 *O;       /* [B, chunks, H, Lq, Dvp] */
    decode_scratch        *scratch; /* [threads] */
    pe_ladder              ladder;  /* for rotating keys */
    int                    climbs;  /* is it there? */
    int                    banded;  /* are biases and gates made for each piece? */
} decoder;

/* Rows of keys or values: of head g from j on. */
typedef struct key_place {
    const posenc_tensor *t; /* NULL: none */
    int64_t              g, j;
} key_place;

/* C keys from j0 on of item b. */
typedef struct key_block {
    int64_t   b, j0, C;
    key_place next;   /* what is read after them */
    int64_t   at;     /* of a run within a block: where it begins */
    int       spread; /* of a run: of how many whole pages, as pe_cache has it */
} key_block;

/* Does something go by positions one by one? */
static int has_extra(const decoder *x)
{
    return !x->T.skewed || (x->a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
}

/* ---- how keys are cut, what each thread has, and the queries ---- */

enum {
    CHUNKS = 32,
    ENOUGH = 8,       /* chunks, where their sums would need more than */
    SUMS   = 1 << 19, /* bytes for each item */
    LEAST  = 256,     /* keys of a chunk at least, of all heads together */
    BLOCK  = 2048,    /* of a block at most */
    TURN   = 1024,    /* of pages that are read in turn, where chunks are shorter */
    RUN    = 512,     /* of a piece that a table by distance is added to */
    SCORES = 16384    /* of a block of several pieces: what the caches hold with rows that pass by */
};

static void find_keys(decoder *x)
{
    const pe_problem *p = &x->a->sizes;
    x->from             = 0;
    x->to               = p->Lk;
    if (x->T.skewed) { /* allowed iff e_low <= i - j <= e_high */
        x->from = x->T.e_high < 0 ? pe_smaller(-x->T.e_high, p->Lk) : 0;
        x->to   = x->T.e_low > p->Lq - p->Lk ? p->Lq - x->T.e_low : p->Lk;
        x->to   = x->to > x->from ? x->to : x->from;
    }
    x->near = pe_fast_nearest(x->a);
}

static int64_t in_pieces(int64_t keys)
{
    return (keys + PIECE - 1) / PIECE * PIECE;
}

/* Keys of a page; 0: there are none. */
static int64_t page_of(const pe_attention *a)
{
    return a->pages.data ? a->k.shape[2] : 0;
}

/* Do all heads of a short block go by before the next? Where keys lie in pages, each read of a head is a
   jump, whose address is translated faster next to another's. */
static int by_blocks(const pe_attention *a)
{
    return a->rotary || a->pages.data;
}

/* At most, of runs of so many queries. */
static int64_t chunks_of(const decoder *x, int64_t queries)
{
    const int64_t sums = x->a->sizes.H * queries * (x->T.Dvp + 3) * (int64_t)sizeof(float);
    return pe_larger(ENOUGH, pe_smaller(CHUNKS, SUMS / sums));
}

/* Keys of a chunk at least, where so many heads go by one after another. */
static int64_t least_chunk(int64_t heads)
{
    return in_pieces(pe_smaller(LEAST * heads, BLOCK));
}

/* Parts that a run has at most, whatever the keys are; fewer queries may have more. Keys in pages have
   shorter chunks, but items that have pages run one by one. */
static int64_t most_parts(const decoder *x)
{
    const pe_problem *p    = &x->a->sizes;
    const int64_t     wide = least_chunk(p->G / x->together), narrow = least_chunk(1);
    const int64_t     apart  = (p->Lk + narrow - 1) / narrow;
    const int64_t     beside = p->B * ((p->Lk + wide - 1) / wide);
    int64_t           most   = 0;
    for (int64_t n = 1; n <= p->Lq; n++) {
        const int64_t chunks = chunks_of(x, n);
        most = pe_larger(most, n * pe_larger(pe_smaller(chunks, apart), pe_smaller(p->B * chunks, beside)));
    }
    return p->H * most;
}

/* Of a block. Where keys lie in pages: of as many as are read in turn, if chunks stay small. */
static int64_t keys_of_block(const decoder *x)
{
    const int64_t most = pe_larger(PIECE, pe_smaller(SCORES / x->rows, BLOCK) / PIECE * PIECE),
                  fits = pe_smaller(most, pe_larger(x->chunk, TURN)), page = page_of(x->a);
    int64_t pages = page <= fits ? PE_CACHE_PLACES : 0;
    while (pages * page > fits)
        pages /= 2;
    const int64_t blocks = (x->chunk + most - 1) / most;
    return x->a->rotary    ? PIECE
           : page && pages ? in_pieces(pages * page)
                           : in_pieces((x->chunk + blocks - 1) / blocks);
}

/* Keys into chunks, chunks into blocks. */
static void cut_keys(decoder *x)
{
    const int64_t most_chunks = chunks_of(x, x->a->sizes.Lq);
    const int64_t n = x->to - x->from, want = (n + most_chunks - 1) / most_chunks,
                  heads = x->a->sizes.G / x->together;
    x->chunk            = pe_larger(in_pieces(want), least_chunk(heads));
    x->block            = keys_of_block(x);
    if (page_of(x->a) && !x->a->rotary)
        x->chunk = (x->chunk + x->block - 1) / x->block * x->block;
    x->chunks = (n + x->chunk - 1) / x->chunk;
}

/* Thousands of calls for a few numbers each would be a tenth of the time of a cache of 16 bits. */
static int64_t keys_at_once(const decoder *x)
{
    return has_extra(x) || (x->a->mask & POSENC_MASK_KEY_PADDING) ? PIECE
           : x->T.by_distance || x->banded || pe_drifts(x->a)     ? RUN
                                                                  : x->block;
}

static int has_ladder(const decoder *x)
{
    return x->a->rotary && x->a->sizes.Lk >= PE_LADDER_ROWS;
}

static decode_scratch lay_out_scratch(const decoder *x, pe_arena *arena)
{
    const pe_tiles *T      = &x->T;
    const int64_t   scores = x->rows * PIECE > SCORES ? x->rows * PIECE : SCORES;
    decode_scratch  y;
    y.S      = pe_arena_floats(arena, scores);
    y.P      = pe_arena_take(arena, (size_t)scores * sizeof *y.P);
    y.extra  = pe_arena_floats(arena, PIECE);
    y.key    = pe_arena_floats(arena, PIECE);
    y.factor = pe_arena_floats(arena, x->rows);
    y.few    = pe_arena_floats(arena, FEW * (T->Dp > T->Dvp ? T->Dp : T->Dvp));
    y.table =
        pe_arena_floats(arena, (x->a->rotary ? PIECE * pe_rotation_width(x->a->rotary_keys) : 0) + PE_LANES);
    const int64_t band = x->banded ? pe_bands_padded(x->a->sizes.Lq, RUN) : 0;
    y.band             = pe_arena_floats(arena, band);
    y.exact            = pe_arena_doubles(arena, band);
    y.drift            = pe_arena_doubles(arena, pe_drifts(x->a) ? RUN : 0);
    y.drift_at         = NULL;
    y.rung             = pe_ladder_lay_out_rung(has_ladder(x) ? 2 * x->a->rotary_keys->M : 0, arena);
    return y;
}

/* Are queries multiplied by keys as they are stored, so that products of bf16 are exact? */
static int are_pairs(const pe_attention *a)
{
    return a->q.dtype == POSENC_DTYPE_BF16 && a->k.dtype == POSENC_DTYPE_BF16 && !a->rotary &&
           a->temper_on == PE_TEMPER_NONE && a->terms->u == PE_NONE && a->sizes.D % PE_FAST_LANES == 0;
}

/* Are weights rounded to bf16, as in bf16.c? Values must lie as the kernel reads them. */
static int are_rounded(const pe_attention *a)
{
    return a->products == POSENC_PRODUCTS_BY_STORAGE && a->q.dtype == POSENC_DTYPE_BF16 &&
           a->k.dtype == POSENC_DTYPE_BF16 && a->v.dtype == POSENC_DTYPE_BF16 && !pe_has(a->terms, PE_GATE) &&
           a->sizes.Dv % PE_FAST_LANES == 0 && a->sizes.Dv <= PE_CACHE_WIDEST;
}

/* A plan, which does not know how keys are cut and what is stored, takes the most of everything. */
static double bytes_read(const decoder *x)
{
    const pe_problem *p   = &x->a->sizes;
    const int64_t     row = pe_tensor_bytes(x->a->k.dtype, p->D) + pe_tensor_bytes(x->a->v.dtype, p->Dv);
    return (double)(p->B * p->G) * (double)(x->to - x->from) * (double)row;
}

static decoder lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    decoder           x = {.a = a, .group = p->H / p->G};
    x.rows              = x.group * p->Lq;
    x.together          = by_blocks(a) ? p->G : 1;
    x.banded            = pe_bands_serve(a, RUN);
    x.T      = pe_fast_lay_out(a, arena, 1, RUN, x.banded ? PE_FAST_OF_QUERIES : PE_FAST_BY_DISTANCE);
    x.banded = x.banded && !x.T.by_distance;
    if (x.banded)
        pe_bands_lay_out(&x.T, arena);
    x.to = p->Lk;
    if (!a->for_any_run)
        find_keys(&x);
    x.bytes = bytes_read(&x);
    cut_keys(&x);
    x.piece               = keys_at_once(&x);
    const int64_t queries = p->B * p->H * p->Lq, parts = a->for_any_run ? most_parts(&x) : x.chunks * queries;
    const int64_t wide = has_ladder(&x) ? 2 * a->rotary_keys->M : 0;
    x.Q                = pe_arena_floats(arena, queries * x.T.Dp);
    x.Q16              = pe_arena_take(arena, (size_t)(queries * x.T.Dp) * sizeof *x.Q16);
    x.keys             = are_pairs(a) ? pe_kernels_bf16(a->kernels) : NULL;
    x.values           = are_rounded(a) ? pe_kernels_bf16(a->kernels) : NULL;
    x.m                = pe_arena_floats(arena, parts);
    x.l                = pe_arena_floats(arena, parts);
    x.rounded          = x.values || a->for_any_run ? pe_arena_floats(arena, parts) : x.l;
    x.O                = pe_arena_floats(arena, parts * x.T.Dvp);
    x.ladder           = pe_ladder_lay_out(wide, pe_ladder_middle_of(wide), arena);
    x.scratch          = pe_arena_take(arena, (size_t)a->team.threads * sizeof *x.scratch);
    for (int i = 0; i < a->team.threads; i++) {
        const decode_scratch z = lay_out_scratch(&x, arena);
        if (x.scratch)
            x.scratch[i] = z;
    }
    return x;
}

/* Cosines and sines of steps, for keys that are rotated. */
static void make_ladder(decoder *x)
{
    const pe_attention *a = x->a;
    x->climbs             = has_ladder(x) && pe_rotation_climbs(a->rotary_keys, &a->k_coordinates);
    if (x->climbs)
        pe_rotation_ladder(&x->ladder, a->rotary_keys, a->kernels);
}

/* ---- queries ---- */

/* Q, and Q16 where it is wanted. */
static void load_queries(const decoder *x)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const pe_tiles     *T = &x->T;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            float *q = x->Q + (b * p->H + h) * p->Lq * T->Dp;
            for (int64_t i = 0; x->keys && i < p->Lq; i++)
                memcpy(x->Q16 + (q - x->Q) + i * T->Dp, pe_tensor_row(&a->q, b, h, i),
                       (size_t)p->D * sizeof *x->Q16);
            pe_tile_rows_load(T, T->scratch, q, NULL, PE_QUERIES, b, h, 0, p->Lq);
            pe_tile_rows_scale(T, q, NULL, b, h, 0, p->Lq);
        }
}

/* ---- keys and values of a block as the kernels of decode.inc read them: where they lie, or a few at a time
   through scratch ---- */

enum { LINE = 64 }; /* bytes that are asked for at once */

/* A quarter of a millisecond of reading: what a second thread would save of it is less than it costs to wait
   for one that other programs keep from its processor. */
enum { LITTLE = 6 << 20 };

static int cache_type(posenc_dtype dtype, pe_cache_type *type)
{
    switch (dtype) {
    case POSENC_DTYPE_F32: *type = PE_CACHE_F32; return 1;
    case POSENC_DTYPE_BF16: *type = PE_CACHE_BF16; return 1;
    case POSENC_DTYPE_F16: *type = PE_CACHE_F16; return 1;
    case POSENC_DTYPE_F8_E4M3: *type = PE_CACHE_E4M3; return 1;
    case POSENC_DTYPE_Q8_0: *type = PE_CACHE_Q8; return 1;
    default: return 0;
    }
}

/* What is read afterwards, from as many places. */
static void find_next(const decoder *x, pe_cache *cache, const key_block *n)
{
    const key_place next = n->next;
    for (int i = 0; i < (1 << n->spread); i++) {
        const int64_t j = next.j + i * next.t->shape[2];
        cache->next[i]  = pe_keys_row(x->a, next.t, n->b, next.g, j < x->to ? j : next.j);
    }
    cache->next_step = pe_tensor_step(next.t, 2);
}

/* Rows of key head g where they lie; returns 0 if they cannot be read there. */
static int rows_in_place(const decoder *x, pe_cache *cache, const posenc_tensor *t, const key_block *n,
                         int64_t g)
{
    for (int i = 0; i < (1 << n->spread); i++)
        cache->rows[i] = pe_keys_row(x->a, t, n->b, g, n->j0 + i * t->shape[2]);
    cache->spread = n->spread;
    cache->far    = x->bytes > LITTLE;
    cache->scale  = (float)pe_keys_scale(x->a, t, g);
    cache->C      = n->C;
    cache->D      = t->shape[3];
    cache->stride = t->stride[2];
    cache->found  = !pe_kernels_prefetch_helps();
    if (n->next.t && (n->spread ? cache->far : !cache->found))
        find_next(x, cache, n);
    return t->shape[3] % PE_FAST_LANES == 0 && t->shape[3] <= PE_CACHE_WIDEST &&
           cache_type(t->dtype, &cache->type);
}

/* Row c of those that pass through scratch is asked for; after the keys of a block come its values. */
static void ask_for(const decoder *x, const posenc_tensor *t, const key_block *n, int64_t g, int64_t c)
{
    const posenc_tensor *from = c >= n->C && t == &x->a->k ? &x->a->v : t;
    const int64_t        at   = from == t ? c : c - n->C;
    if (at >= n->C)
        return;
    const char *row = pe_keys_row(x->a, from, n->b, g, n->j0 + at);
    for (int64_t i = 0; i < pe_tensor_bytes(from->dtype, from->shape[3]); i += LINE)
        PE_PREFETCH(row + i, 0, 3);
}

/* The same through scratch: `count` rows from s on, rotated if they are keys. */
static pe_cache rows_in_scratch(const decoder *x, decode_scratch *z, const posenc_tensor *t,
                                const key_block *n, int64_t g, int64_t s, int64_t count)
{
    const pe_attention *a      = x->a;
    const int64_t       stride = t == &a->v ? x->T.Dvp : x->T.Dp;
    for (int64_t r = 0; r < count; r++)
        ask_for(x, t, n, g, s + r + FEW);
    pe_tile_rows_load_keys(a, z->few, stride, t, n->b, g, n->j0 + s, count, t->shape[3]);
    if (a->rotary && t == &a->k)
        pe_rotation_rows(z->few, stride, a->sizes.D, a->rotary_keys,
                         z->table + (n->at + s) * pe_rotation_width(a->rotary_keys), count, 1, a->kernels);
    return (pe_cache){
        .rows = {z->few}, .C = count, .D = stride, .stride = stride, .type = PE_CACHE_F32, .found = 1};
}

/* Of how many pages is the run, which begins with one, if nothing of them is hidden? */
static int spread_at(const decoder *x, const posenc_tensor *t, const key_block *n, const key_block *run)
{
    const int64_t page = page_of(x->a), most = pe_smaller(n->C, run->at + PE_CACHE_PLACES * page);
    int64_t       end = run->at + page; /* of pages that are shown */
    int           y   = 0;
    if (!page || run->C != page || page % PE_CACHE_TURN || pe_keys_is_hidden(x->a, n->b, run->j0))
        return 0;
    while (end + page <= most && !pe_keys_is_hidden(x->a, n->b, n->j0 + end) &&
           pe_keys_run(x->a, t, n->b, n->j0 + end, page) == page)
        end += page;
    while (run->at + (page << (y + 1)) <= end)
        y++;
    return y;
}

/* The run of a block that begins at key c: keys that lie one after the other, or in pages side by side. After
   its rows of t the next run's are read, or those at `last`. */
static key_block run_at(const decoder *x, const posenc_tensor *t, const key_block *n, int64_t g, int64_t c,
                        key_place last)
{
    key_block run = {.b = n->b, .j0 = n->j0 + c, .at = c};
    run.C         = pe_keys_run(x->a, t, n->b, run.j0, n->C - c);
    run.spread    = spread_at(x, t, n, &run);
    run.C <<= run.spread;
    run.next = c + run.C < n->C ? (key_place){t, g, run.j0 + run.C} : last;
    return run;
}

static void multiply_keys(const decoder *x, decode_scratch *z, const float *Q, const key_block *n, int64_t g)
{
    const pe_attention *a     = x->a;
    pe_cache            cache = {.C = 0};
    float              *S     = z->S + n->at;
    if (rows_in_place(x, &cache, &a->k, n, g) && !a->rotary) {
        if (x->keys)
            x->keys->cache_scores(S, x->block, x->Q16 + (Q - x->Q), x->T.Dp, &cache, x->rows,
                                  (float)a->terms->scale);
        else
            a->kernels->cache_scores(S, x->block, Q, x->T.Dp, &cache, x->rows);
        return;
    }
    for (int64_t s = 0; s < n->C; s += FEW) {
        const int64_t count = pe_smaller(FEW, n->C - s);
        cache               = rows_in_scratch(x, z, &a->k, n, g, s, count);
        a->kernels->cache_scores(S + s, x->block, Q, x->T.Dp, &cache, x->rows);
    }
}

/* Products of the queries Q with the keys of head g become z->S; those of hidden keys 0, which their mask
   makes -infinity. */
static void decode_keys(const decoder *x, decode_scratch *z, const float *Q, const key_block *n, int64_t g)
{
    const pe_attention *a      = x->a;
    const key_place     values = {&a->v, g, n->j0};
    for (int64_t c = 0; c < n->C;) {
        const key_block run = run_at(x, &a->k, n, g, c, values);
        if (!pe_keys_is_hidden(a, n->b, run.j0))
            multiply_keys(x, z, Q, &run, g);
        for (int64_t r = 0; r < x->rows && pe_keys_is_hidden(a, n->b, run.j0); r++)
            memset(z->S + r * x->block + c, 0, (size_t)run.C * sizeof *z->S);
        c += run.C;
    }
}

static void add_values(const decoder *x, decode_scratch *z, float *O, const key_block *n, int64_t g)
{
    const pe_attention *a     = x->a;
    pe_cache            cache = {.C = 0};
    if (rows_in_place(x, &cache, &a->v, n, g)) {
        if (x->values)
            x->values->cache_values(O, x->T.Dvp, z->P + n->at, x->block, &cache, x->rows);
        else
            a->kernels->cache_values(O, x->T.Dvp, z->S + n->at, x->block, &cache, x->rows);
        return;
    }
    for (int64_t s = 0; s < n->C; s += FEW) {
        const int64_t count = pe_smaller(FEW, n->C - s);
        cache               = rows_in_scratch(x, z, &a->v, n, g, s, count);
        a->kernels->cache_values(O, x->T.Dvp, z->S + n->at + s, x->block, &cache, x->rows);
    }
}

/* Weights times the values of head g are added to O. */
static void decode_values(const decoder *x, decode_scratch *z, float *O, const key_block *n, int64_t g)
{
    for (int64_t c = 0; c < n->C;) {
        const key_block run = run_at(x, &x->a->v, n, g, c, n->next);
        if (!pe_keys_is_hidden(x->a, n->b, run.j0))
            add_values(x, z, O, &run, g);
        c += run.C;
    }
}

/* ---- what scores have besides products: biases and masks, and the gate ---- */

/* What goes by positions one by one, into z->extra. */
static int fill_extra(const decoder *x, decode_scratch *z, const key_block *n, int64_t h, int64_t i)
{
    const pe_attention *a         = x->a;
    const pe_distances *d         = &a->distances;
    const int           looked_up = !x->T.skewed;
    if (!has_extra(x))
        return 0;
    const double slope = pe_fast_is_sloped(a) ? pe_fast_slope(a, h) : 0;
    memset(z->extra, 0, PIECE * sizeof *z->extra);
    for (int64_t c = 0; c < n->C; c++) {
        const double t = pe_positions_at(&a->q_pos, n->b, i) - pe_positions_at(&a->k_pos, n->b, n->j0 + c);
        if (!pe_pairs_allowed(a, n->b, h, i, n->j0 + c) || t < (double)d->reach.low ||
            t > (double)d->reach.high)
            z->extra[c] = -INFINITY;
        else if (looked_up && pe_fast_is_sloped(a))
            z->extra[c] = (float)(slope * (fabs(t) - x->near));
        else if (looked_up && x->banded && pe_has(a->terms, PE_BIAS))
            z->extra[c] = pe_bands_at(&x->T, PE_BIAS, h, (int64_t)t);
        else if (looked_up && x->T.by[PE_BIAS].rows)
            z->extra[c] = *pe_rows_by(&x->T, PE_BIAS, h, pe_band_row(&x->T, t));
    }
    return 1;
}

/* Biases or gates of query i for the keys of a piece, along diagonals; NULL: there are none. A band is of all
   queries of the head. */
static const float *by_distance(const decoder *x, const decode_scratch *z, pe_kind kind, const key_block *n,
                                int64_t h, int64_t i)
{
    if (kind == PE_BIAS && pe_fast_is_sloped(x->a)) /* it is there already */
        return NULL;
    if (!x->banded)
        return x->T.by[kind].rows ? pe_rows_by(&x->T, kind, h, pe_band_start(&x->T, i, 1, n->j0)) : NULL;
    if (!pe_has(x->a->terms, kind))
        return NULL;
    if (i == 0)
        pe_bands_fill(&x->T, kind, h, n->j0, n->C, z->exact, z->band);
    return z->band + x->a->sizes.Lq - 1 - i;
}

/* c_i - c_j of query i and the keys of a piece: neighbours of one token head have the same sums. */
static void add_drift(const decoder *x, decode_scratch *z, float *s, const key_block *n, int64_t h, int64_t i)
{
    const pe_attention *a = x->a;
    if (i == 0)
        z->drift_at = pe_drift_keys(a, PE_BEHIND, n->b, h, n->j0, n->C, z->drift);
    a->kernels->drift_row(s, pe_drift_queries(a, PE_BEHIND, n->b, h)[i], z->drift_at, n->C);
}

/* Products of one query with a piece become scores. */
static void finish_row(const decoder *x, decode_scratch *z, float *s, const key_block *n, int64_t h,
                       int64_t i)
{
    const pe_attention *a     = x->a;
    const pe_tiles     *T     = &x->T;
    pe_tile_terms       terms = {0};
    int32_t             low, high;
    if (pe_fast_is_sloped(a) && T->skewed)
        a->kernels->slope_row(s, pe_fast_slope(a, h),
                              (double)(a->distances.t00 + a->distances.step * (i - n->j0)),
                              (double)-a->distances.step, x->near, n->C);
    if (pe_drifts(a))
        add_drift(x, z, s, n, h, i);
    if (fill_extra(x, z, n, h, i))
        terms.extra = z->extra;
    if (T->skewed)
        terms.bias = by_distance(x, z, PE_BIAS, n, h, i);
    if (a->mask & POSENC_MASK_KEY_PADDING)
        terms.key = z->key;
    if (T->skewed && (i - (n->j0 + n->C - 1) < T->e_low || i - n->j0 > T->e_high)) {
        const int64_t least = i - T->e_high - n->j0, most = i - T->e_low - n->j0 + 1;
        low        = (int32_t)(least < 0 ? 0 : pe_smaller(least, n->C));
        high       = (int32_t)(most < 0 ? 0 : pe_smaller(most, n->C));
        terms.low  = &low;
        terms.high = &high;
    }
    if (terms.bias && !terms.extra && !terms.key && !terms.low && n->C % PE_LANES == 0)
        a->kernels->add_skewed(s, PIECE, terms.bias, 0, 1, n->C);
    else if (terms.extra || terms.bias || terms.key || terms.low || n->C % PE_LANES)
        a->kernels->scores_finish(s, PIECE, &terms, 1, n->C);
}

static void gate_row(const decoder *x, const decode_scratch *z, float *s, const key_block *n, int64_t h,
                     int64_t i)
{
    const pe_attention *a = x->a;
    const pe_tiles     *T = &x->T;
    if (T->skewed) {
        a->kernels->gate(s, PIECE, by_distance(x, z, PE_GATE, n, h, i), 0, 1, n->C);
        return;
    }
    for (int64_t c = 0; c < n->C; c++) {
        const double t = pe_positions_at(&a->q_pos, n->b, i) - pe_positions_at(&a->k_pos, n->b, n->j0 + c);
        if (s[c] != 0 && (x->banded || pe_band_has(T, t)))
            s[c] *= x->banded ? pe_bands_at(T, PE_GATE, h, (int64_t)t)
                              : *pe_rows_by(T, PE_GATE, h, pe_band_row(T, t));
    }
}

static void load_mask(const decoder *x, decode_scratch *z, const key_block *n)
{
    for (int64_t c = 0; (x->a->mask & POSENC_MASK_KEY_PADDING) && c < PIECE; c++)
        z->key[c] = c >= n->C || pe_keys_is_padding(&x->a->key_allowed, n->b, n->j0 + c) ? -INFINITY : 0;
}

/* The rows of scores of one key head, piece by piece. */
static void decode_finish(const decoder *x, decode_scratch *z, const key_block *n, int64_t h0)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t c = 0; c < n->C; c += x->piece) {
        const key_block piece = {.b = n->b, .j0 = n->j0 + c, .C = pe_smaller(x->piece, n->C - c), .at = c};
        load_mask(x, z, &piece);
        for (int64_t r = 0; r < x->rows; r++)
            finish_row(x, z, z->S + r * x->block + c, &piece, h0 + r / Lq, r % Lq);
    }
}

static void decode_gate(const decoder *x, decode_scratch *z, const key_block *n, int64_t h0)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t c = 0; pe_has(x->a->terms, PE_GATE) && c < n->C; c += PIECE) {
        const key_block piece = {.b = n->b, .j0 = n->j0 + c, .C = pe_smaller(PIECE, n->C - c), .at = c};
        for (int64_t r = 0; r < x->rows; r++)
            gate_row(x, z, z->S + r * x->block + c, &piece, h0 + r / Lq, r % Lq);
    }
}

/* ---- a chunk ---- */

/* Scores become weights; `at` is the first row of the chunk's sums. */
static void weigh_block(const decoder *x, decode_scratch *z, const key_block *n, int64_t at)
{
    if (x->values)
        x->values->softmax_step(z->P, x->block, z->S, x->block,
                                &(pe_softmax_sums){x->m + at, x->l + at, x->rounded + at, z->factor}, x->rows,
                                n->C);
    else
        x->a->kernels->softmax_step(z->S, x->block, x->m + at, x->l + at, z->factor, x->rows, n->C);
}

/* One key head's share of a block: its queries from `q` on, their sums and outputs from `at` on. */
static void visit_block(const decoder *x, decode_scratch *z, const key_block *n, int64_t g, int64_t q,
                        int64_t at)
{
    const pe_attention *a  = x->a;
    const int64_t       h0 = g * x->group;
    float              *O  = x->O + at * x->T.Dvp;
    decode_keys(x, z, x->Q + q * x->T.Dp, n, g);
    decode_finish(x, z, n, h0);
    weigh_block(x, z, n, at);
    a->kernels->scale_rows(O, x->T.Dvp, z->factor, x->rows, x->T.Dvp);
    decode_gate(x, z, n, h0);
    decode_values(x, z, O, n, g);
}

/* The keys that are read after those of head g, which go by with those of the heads g0 .. g1-1: of the next
   head, of the next block, of the next heads. */
static key_place next_keys(const decoder *x, const key_block *n, int64_t g, int64_t g0, int64_t g1)
{
    const pe_attention *a   = x->a;
    const int64_t       end = n->j0 + n->C;
    return g + 1 < g1        ? (key_place){&a->k, g + 1, n->j0}
           : end < x->to     ? (key_place){&a->k, g0, end}
           : g1 < a->sizes.G ? (key_place){&a->k, g1, x->from}
                             : (key_place){NULL, 0, 0};
}

/* Rows from `at` on. */
static void start_rows(const decoder *x, int64_t at, int64_t rows)
{
    for (int64_t r = at; r < at + rows; r++) {
        x->m[r] = -INFINITY;
        x->l[r] = x->rounded[r] = 0;
    }
    memset(x->O + at * x->T.Dvp, 0, (size_t)(rows * x->T.Dvp) * sizeof *x->O);
}

/* Cosines and sines of a block. */
static void fill_cosines(const decoder *x, decode_scratch *z, const key_block *n)
{
    const pe_attention *a = x->a;
    pe_rotation_fill(z->table, pe_rotation_width(a->rotary_keys), a->rotary_keys, &a->k_coordinates, n->b,
                     n->j0, n->C, x->climbs ? &x->ladder : NULL, &z->rung, 0, a->kernels);
}

/* Where the block that begins at key j ends: with a page, if it can be. */
static int64_t end_of_block(const decoder *x, int64_t j)
{
    const int64_t page = page_of(x->a), end = j + x->block, unit = page && page <= x->block ? page : 1;
    return end / unit * unit > j ? end / unit * unit : end;
}

/* Chunks of the same heads follow each other. */
static void visit_chunk(void *context, int64_t index, int thread)
{
    const decoder    *x    = context;
    const pe_problem *p    = &x->a->sizes;
    decode_scratch   *z    = x->scratch + thread;
    const int64_t     sets = p->G / x->together, part = index % x->chunks, set = index / x->chunks % sets,
                  b = index / x->chunks / sets, g0 = set * x->together, g1 = g0 + x->together;
    const int64_t start = x->from + part * x->chunk, end = pe_smaller(start + x->chunk, x->to);
    const int64_t heads = p->H * p->Lq, at = (b * x->chunks + part) * heads;
    start_rows(x, at + g0 * x->rows, (g1 - g0) * x->rows);
    for (int64_t j = start, next; j < end; j = next) {
        next        = pe_smaller(end_of_block(x, j), end);
        key_block n = {.b = b, .j0 = j, .C = next - j};
        if (x->a->rotary)
            fill_cosines(x, z, &n);
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

static joined join_sums(const decoder *x, int64_t at, int64_t step)
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
    const decoder      *x = context;
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const int64_t heads = p->H * p->Lq, b = index / heads, r = index % heads, h = r / p->Lq, i = r % p->Lq,
                  first = b * x->chunks * heads + r;
    const joined y      = join_sums(x, first, heads);
    double       lse    = y.l != 0 ? (double)y.m + log((double)y.l) + pe_fast_center(&x->T, h) : -INFINITY;
    const double left   = a->has_sink ? pe_sink_join(a, b, h, i, &lse) : 1;
    float       *sum    = x->Q + index * x->T.Dp; /* Dp numbers suffice for a strip of the output */
    for (int64_t d0 = 0; d0 < p->Dv; d0 += x->T.Dp) {
        const int64_t width = pe_smaller(x->T.Dp, p->Dv - d0);
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (int64_t c = 0; y.l != 0 && c < x->chunks; c++) {
            const int64_t at     = first + c * heads;
            const float   factor = expf(x->m[at] - y.m) / y.rounded * (float)left,
                        *O       = x->O + at * x->T.Dvp + d0;
            for (int64_t d = 0; factor != 0 && d < width; d++)
                sum[d] += factor * O[d];
        }
        char *row = pe_tensor_row(&a->o, b, h, i);
        pe_tensor_store_float(row + d0 * (int64_t)posenc_dtype_size(a->o.dtype), a->o.dtype, 1, sum, width);
    }
    const float rounded = (float)lse;
    if (a->lse.data)
        pe_tensor_store_float(pe_tensor_element(&a->lse, b, h, i), a->lse.dtype, 1, &rounded, 1);
}

void pe_decode_lay_out(const pe_attention *a, pe_arena *arena)
{
    pe_attention few = *a;
    few.sizes.Lq     = pe_smaller(few.sizes.Lq, POSENC_DECODE_QUERIES);
    lay_out(&few, arena);
}

void pe_decode_run(const pe_attention *a, pe_arena *arena)
{
    decoder       x    = lay_out(a, arena);
    const pe_team team = pe_parallel_for_work(&a->team, x.bytes, LITTLE);
    pe_tiles_fill(&x.T);
    if (x.banded)
        pe_bands_center(&x.T);
    make_ladder(&x);
    load_queries(&x);
    pe_parallel_for(a->sizes.B * (a->sizes.G / x.together) * x.chunks, &team, visit_chunk, &x);
    pe_parallel_for(a->sizes.B * a->sizes.H * a->sizes.Lq, &team, join_row, &x);
}
