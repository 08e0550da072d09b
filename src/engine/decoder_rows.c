/* SPDX-License-Identifier: MIT */
/* Keys and values of a block as the kernels of decode.inc read them: where they lie, or a few at a time
   through scratch.
   Contract: decoder.h. */
#include "base/tensor.h"
#include "engine/decoder.h"
#include "engine/tile_rows.h"

enum { LINE = 64 }; /* bytes that are asked for at once */

static int cache_type(posenc_dtype dtype, pe_cache_type *type)
{
    *type = dtype == POSENC_BF16 ? PE_CACHE_BF16 : dtype == POSENC_F16 ? PE_CACHE_F16 : PE_CACHE_F32;
    return dtype == POSENC_F32 || dtype == POSENC_BF16 || dtype == POSENC_F16;
}

/* Rows of key head g where they lie; returns 0 if they cannot be read there. */
static int rows_in_place(pe_cache *cache, const posenc_tensor *t, const pe_keys *n, int64_t g)
{
    cache->rows   = pe_row(t, n->b, g, n->j0);
    cache->C      = n->C;
    cache->D      = t->shape[3];
    cache->stride = t->stride[2];
    cache->found  = !pe_asking_helps();
    return t->shape[3] % PE_ROAD_LANES == 0 && t->shape[3] <= PE_CACHE_WIDEST &&
           cache_type(t->dtype, &cache->type);
}

/* After the keys of a block its values are wanted, then other keys. */
static void set_next(pe_cache *cache, const posenc_tensor *t, const void *row)
{
    cache->next      = row;
    cache->next_step = t->stride[2] * (int64_t)posenc_dtype_size(t->dtype);
}

/* Row c of those that pass through scratch is asked for; behind the keys of a block lie its values. */
static void ask_for(const pe_decoder *x, const posenc_tensor *t, const pe_keys *n, int64_t g, int64_t c)
{
    const posenc_tensor *from = c >= n->C && t == &x->a->k ? &x->a->v : t;
    const int64_t        at   = from == t ? c : c - n->C;
    const int64_t        size = (int64_t)posenc_dtype_size(from->dtype);
    if (at >= n->C)
        return;
    const char *row = pe_row(from, n->b, g, n->j0 + at);
    for (int64_t i = 0; i < from->shape[3] * size; i += LINE)
        __builtin_prefetch(row + i);
}

/* The same through scratch: `count` rows from s on, turned if they are keys. */
static pe_cache rows_in_scratch(const pe_decoder *x, pe_decode_bench *z, const posenc_tensor *t,
                                const pe_keys *n, int64_t g, int64_t s, int64_t count)
{
    const pe_attention *a      = x->a;
    const int64_t       stride = t == &a->v ? x->T.Dvp : x->T.Dp;
    for (int64_t r = 0; r < count; r++) {
        ask_for(x, t, n, g, s + r + PE_DECODE_FEW);
        pe_load_plain(z->few + r * stride, stride, t, n->b, g, n->j0 + s + r, 1, t->shape[3]);
    }
    if (a->turn && t == &a->k)
        pe_turn_rows(z->few, stride, a->sizes.D, a->turn_keys, z->table + s * pe_turn_width(a->turn_keys),
                     count, 1, a->kernels);
    return (pe_cache){
        .rows = z->few, .C = count, .D = stride, .stride = stride, .type = PE_CACHE_F32, .found = 1};
}

void pe_decode_keys(const pe_decoder *x, pe_decode_bench *z, const float *Q, const pe_keys *n, int64_t g)
{
    const pe_attention *a     = x->a;
    pe_cache            cache = {0};
    if (rows_in_place(&cache, &a->k, n, g) && !a->turn) {
        set_next(&cache, &a->v, pe_row(&a->v, n->b, g, n->j0));
        if (x->keys)
            x->keys->cache_scores(z->S, x->block, x->Q16 + (Q - x->Q), x->T.Dp, &cache, x->rows,
                                  (float)a->terms->scale);
        else
            a->kernels->cache_scores(z->S, x->block, Q, x->T.Dp, &cache, x->rows);
        return;
    }
    for (int64_t s = 0; s < n->C; s += PE_DECODE_FEW) {
        const int64_t count = pe_smaller(PE_DECODE_FEW, n->C - s);
        cache               = rows_in_scratch(x, z, &a->k, n, g, s, count);
        a->kernels->cache_scores(z->S + s, x->block, Q, x->T.Dp, &cache, x->rows);
    }
}

void pe_decode_values(const pe_decoder *x, pe_decode_bench *z, float *O, const pe_keys *n, int64_t g)
{
    const pe_attention *a     = x->a;
    pe_cache            cache = {0};
    if (rows_in_place(&cache, &a->v, n, g)) {
        set_next(&cache, &a->k, n->next);
        if (x->values)
            x->values->cache_values(O, x->T.Dvp, z->P, x->block, &cache, x->rows);
        else
            a->kernels->cache_values(O, x->T.Dvp, z->S, x->block, &cache, x->rows);
        return;
    }
    for (int64_t s = 0; s < n->C; s += PE_DECODE_FEW) {
        const int64_t count = pe_smaller(PE_DECODE_FEW, n->C - s);
        cache               = rows_in_scratch(x, z, &a->v, n, g, s, count);
        a->kernels->cache_values(O, x->T.Dvp, z->S + s, x->block, &cache, x->rows);
    }
}
