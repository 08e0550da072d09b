/* SPDX-License-Identifier: MIT */
/*
 * hook_cache.c: what a hook says of all pairs, made once for the items of a batch
 *
 * A hook that sees neither content nor special tokens knows a pair only by its positions. Where the items of
 * a batch share those, and all pairs of a run are few enough to be held (short sequences, windows of an
 * image), the hook is asked once and every item reads the table; backward the cotangents of a pair are added
 * up in double, item by item, and the hook takes their sum. The table is bounded whatever the length: longer
 * runs ask tile by tile.
 */
#include <string.h>

#include "base/parallel.h"
#include "base/sizes.h"
#include "engine/tiled/backward.h"

enum { MOST_PAIRS = 1 << 18 };

/* A plan, which knows no positions and takes shorter runs too, asks for what any of them may need. */
static int64_t numbers(const pe_attention *a)
{
    const pe_tile_hook *hook = &a->terms->hook;
    const pe_problem   *p    = &a->sizes;
    const int64_t       all  = pe_sizes_product(p->H * p->Lq, pe_hook_cache_stride(p));
    if (!hook->visit || hook->content || hook->is_special || p->B < 2)
        return 0;
    if (!a->for_any_run &&
        (all > MOST_PAIRS || pe_positions_pair_batches(&a->q_coordinates, &a->k_coordinates, p->B) > 1))
        return 0;
    return pe_smaller(all, MOST_PAIRS);
}

/* Tile (I,J) of head h as the hook sees it, lying in a table of all pairs. */
static pe_tile tile_at(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t I, int64_t J)
{
    pe_tile_begin(T, z, 0, h, I, J);
    pe_tile_scores_load_places(T, z);
    pe_tile tile = pe_tile_scores_hook_tile(T, z);
    tile.stride  = pe_hook_cache_stride(&T->a->sizes);
    return tile;
}

/* All tiles of one head. */
static void fill_head(void *context, int64_t h, int thread)
{
    const pe_tiles     *T = context;
    const pe_attention *a = T->a;
    for (int64_t I = 0; I < T->query_tiles; I++)
        for (int64_t J = 0; J < T->key_tiles; J++) {
            if (!pe_tile_is_reached(T, I, J))
                continue;
            const pe_tile tile = tile_at(T, T->scratch + thread, h, I, J);
            a->terms->hook.visit(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile,
                                 T->hook_cache + pe_hook_cache_first(&a->sizes, h, tile.i0, tile.j0));
        }
}

void pe_hook_cache_lay_out(pe_tiles *T, pe_arena *arena)
{
    const int64_t n = numbers(T->a);
    if (!n)
        return;
    T->hook_cache  = pe_arena_zeros(arena, n);
    T->hook_floats = pe_arena_floats(arena, n + PE_LANES);
}

void pe_hook_cache_fill(pe_tiles *T)
{
    const int64_t n = numbers(T->a);
    if (!n)
        return;
    pe_parallel_for(T->a->sizes.H, &T->a->team, fill_head, T);
    for (int64_t i = 0; i < n; i++)
        T->hook_floats[i] = (float)T->hook_cache[i];
    memset(T->hook_floats + n, 0, PE_LANES * sizeof *T->hook_floats);
}

double *pe_hook_cache_sums(const pe_attention *a, pe_arena *arena)
{
    const int64_t n = numbers(a);
    return n ? pe_arena_zeros(arena, n) : NULL;
}

void pe_hook_cache_sum(const pe_backward *w, const pe_scratch *z, const float *dS)
{
    const int64_t     R = z->R, C = z->C;
    const pe_tiles   *T    = &w->T;
    const pe_problem *p    = &T->a->sizes;
    const int64_t     step = pe_hook_cache_stride(p);
    double           *to   = w->hook_sums + pe_hook_cache_first(p, z->h, z->i0, z->j0);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            to[r * step + c] += (double)dS[r * T->Bcp + c];
}

/* One key head, whose gradients are its own until all heads are folded. */
static void fold_head(void *context, int64_t g, int thread)
{
    const pe_backward  *w     = context;
    const pe_tiles     *T     = &w->T;
    const pe_attention *a     = T->a;
    const int64_t       group = a->sizes.H / a->sizes.G;
    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t I = 0; I < T->query_tiles; I++)
            for (int64_t J = 0; J < T->key_tiles; J++) {
                if (!pe_tile_is_reached(T, I, J))
                    continue;
                const pe_tile tile = tile_at(T, T->scratch + thread, h, I, J);
                a->terms->hook.visit_back(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile,
                                          w->hook_sums + pe_hook_cache_first(&a->sizes, h, tile.i0, tile.j0),
                                          w->hook_pointers + g * w->chunks * PE_HOOK_PARAMS);
            }
}

void pe_hook_cache_fold(const pe_backward *w)
{
    pe_parallel_for(w->T.a->sizes.G, &w->T.a->team, fold_head, (void *)w);
}
