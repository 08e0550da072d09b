/* SPDX-License-Identifier: MIT */
/*
 * shared.c: what the items of a batch share is made once
 *
 * A hook that sees neither content nor tokens apart knows a pair by its positions alone. Where the items of a
 * batch share those, and all pairs of a run are few enough to be held (short sequences, windows of an image),
 * the hook is asked once and every item reads the table; backwards the cotangents of a pair are added up in
 * double, item by item, and the hook takes their sum. The table is bounded whatever the length: longer runs
 * ask tile by tile.
 *
 * A room may prolong queries and keys by numbers that content has no part in (TUPE's projected positions).
 * Where the items of a batch share their positions, they share these numbers: a run makes them once, and
 * queries and keys are copied as the caller wrote them. Backwards their cotangents are added up over the
 * batch in double, item by item, and go through the room once. A single item, and items with positions of
 * their own, take the road of other prepared rows, one by one.
 */
#include <string.h>

#include "base/parallel.h"
#include "engine/tiled/backward.h"

/* ---- what a hook says of pairs ---- */

enum { MOST_PAIRS = 1 << 18 };

static int64_t stride_of(const pe_problem *p)
{
    return pe_padded(p->Lk);
}

/* A plan, which knows no positions and takes shorter runs too, asks for what any of them may need. */
static int64_t numbers(const pe_attention *a, int counting)
{
    const pe_tile_hook *hook = &a->terms->hook;
    const pe_problem   *p    = &a->sizes;
    const int64_t       all  = p->H * p->Lq * stride_of(p);
    if (!hook->visit || hook->content || hook->apart || p->B < 2)
        return 0;
    if (!counting && (all > MOST_PAIRS || pe_position_pairs(&a->q_pos, &a->k_pos, p->B) > 1))
        return 0;
    return pe_smaller(all, MOST_PAIRS);
}

static int64_t first_of(const pe_problem *p, int64_t h, int64_t i0, int64_t j0)
{
    return (h * p->Lq + i0) * stride_of(p) + j0;
}

/* Tile (I,J) of head h as the hook sees it, lying in a table of all pairs. */
static pe_tile tile_at(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t I, int64_t J)
{
    const pe_problem *p = &T->a->sizes;
    const int64_t     R = pe_smaller(T->Br, p->Lq - I * T->Br), C = pe_smaller(T->Bc, p->Lk - J * T->Bc);
    z->i0 = I * T->Br;
    z->j0 = J * T->Bc;
    pe_load_places(T, z, 0, R, C);
    pe_tile tile = pe_hook_tile(T, z, h, R, C);
    tile.stride  = stride_of(p);
    return tile;
}

/* All tiles of one head. */
static void keep_head(void *context, int64_t h, int thread)
{
    const pe_tiles     *T = context;
    const pe_attention *a = T->a;
    for (int64_t I = 0; I < T->query_tiles; I++)
        for (int64_t J = 0; J < T->key_tiles; J++) {
            if (!pe_tile_is_reached(T, I, J))
                continue;
            const pe_tile tile = tile_at(T, T->scratch + thread, h, I, J);
            a->terms->hook.visit(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile,
                                 T->kept + first_of(&a->sizes, h, tile.i0, tile.j0));
        }
}

void pe_kept_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a = T->a;
    const int64_t       n = numbers(a, !arena->memory);
    if (!n)
        return;
    double *kept  = pe_take_zeros(arena, n);
    float  *added = pe_take_floats(arena, n + PE_LANES);
    if (!arena->memory)
        return;
    T->kept = kept;
    pe_parallel_for(a->sizes.H, a->threads, keep_head, T);
    for (int64_t i = 0; i < n; i++)
        added[i] = (float)kept[i];
    memset(added + n, 0, PE_LANES * sizeof *added);
    T->kept_added = added;
}

void pe_kept_add(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C,
                 pe_tile_terms *terms)
{
    const pe_problem *p    = &T->a->sizes;
    const int64_t     step = stride_of(p), first = first_of(p, h, z->i0, z->j0);
    if (pe_is_sharp(T)) {
        pe_sharp_add(T, z, s, T->kept + first, step, R, C);
        return;
    }
    if (!terms->extra) {
        terms->extra      = T->kept_added + first;
        terms->extra_step = step;
        return;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] += T->kept_added[first + r * step + c];
}

double *pe_kept_sums(const pe_attention *a, pe_arena *arena)
{
    const int64_t n = numbers(a, !arena->memory);
    return n ? pe_take_zeros(arena, n) : NULL;
}

void pe_kept_sum(const pe_backward *w, const pe_pair *x, const float *dS)
{
    const pe_tiles   *T    = &w->T;
    const pe_problem *p    = &T->a->sizes;
    const int64_t     step = stride_of(p);
    double           *to   = w->dkept + first_of(p, x->h, x->i0, x->j0);
    for (int64_t r = 0; r < x->R; r++)
        for (int64_t c = 0; c < x->C; c++)
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
                                          w->dkept + first_of(&a->sizes, h, tile.i0, tile.j0),
                                          w->hook_pointers + g * w->chunks * PE_HOOK_PARAMS);
            }
}

void pe_kept_fold(const pe_backward *w)
{
    pe_parallel_for(w->T.a->sizes.G, w->T.a->threads, fold_head, (void *)w);
}

/* ---- what stands beside queries and keys ---- */

enum { ROWS = 64 }; /* of one task */

static int64_t more(const pe_attention *a)
{
    return a->sizes.D - a->D;
}

static int64_t heads_of(const pe_problem *p, pe_side side)
{
    return side == PE_KEYS ? p->G : p->H;
}

static int64_t length_of(const pe_problem *p, pe_side side)
{
    return side == PE_KEYS ? p->Lk : p->Lq;
}

/* Blocks of rows of one side, for tasks. */
typedef struct side_run {
    const pe_tiles *T;
    pe_side         side;
    double         *made; /* [threads, ROWS, more] */
} side_run;

typedef struct row_block {
    int64_t h, s0, n, at; /* `at`: its first number */
    double  pos[ROWS];
} row_block;

static int64_t blocks_of(const pe_attention *a, pe_side side)
{
    return (length_of(&a->sizes, side) + ROWS - 1) / ROWS;
}

static row_block block_at(const pe_attention *a, pe_side side, int64_t index)
{
    const int64_t L = length_of(&a->sizes, side), blocks = blocks_of(a, side);
    row_block     x = {.h = index / blocks, .s0 = index % blocks * ROWS};
    x.n             = pe_smaller(ROWS, L - x.s0);
    x.at            = (x.h * L + x.s0) * more(a);
    for (int64_t s = 0; s < x.n; s++)
        x.pos[s] = pe_position(side == PE_KEYS ? &a->k_pos : &a->q_pos, 0, x.s0 + s);
    return x;
}

static void fill_block(void *context, int64_t index, int thread)
{
    const side_run     *run  = context;
    const pe_attention *a    = run->T->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const row_block     x    = block_at(a, run->side, index);
    double             *made = run->made + thread * ROWS * more(a);
    a->terms->prepare.beside(part->p, part->par, run->side, x.h, x.pos, x.n, made);
    for (int64_t i = 0; i < x.n * more(a); i++)
        run->T->beside[run->side][x.at + i] = (float)made[i];
}

void pe_beside_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a = T->a;
    if (!pe_beside_size(a, PE_QUERIES) || (arena->memory && pe_position_pairs(&a->q_pos, &a->k_pos, 2) > 1))
        return;
    side_run run = {.T = T, .made = pe_take_doubles(arena, a->threads * ROWS * more(a))};
    for (run.side = PE_QUERIES; run.side <= PE_KEYS; run.side++) {
        T->beside[run.side] = pe_take_floats(arena, pe_beside_size(a, run.side));
        if (arena->memory)
            pe_parallel_for(heads_of(&a->sizes, run.side) * blocks_of(a, run.side), a->threads, fill_block,
                            &run);
    }
}

void pe_beside_load(const pe_tiles *T, float *rows, pe_side side, int64_t h, int64_t s0, int64_t n)
{
    const int64_t width = more(T->a), D = T->a->D;
    const float  *from = T->beside[side] + (h * length_of(&T->a->sizes, side) + s0) * width;
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < width; d++)
            rows[s * T->Dp + D + d] = from[s * width + d];
}

void pe_beside_sum(const pe_tiles *T, double *sums, const float *rows, pe_side side, int64_t h, int64_t s0,
                   int64_t n)
{
    const int64_t width = more(T->a), D = T->a->D;
    double       *to = sums + (h * length_of(&T->a->sizes, side) + s0) * width;
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < width; d++)
            to[s * width + d] += (double)rows[s * T->Dp + D + d];
}

/* One block after the other: parameters add in this order. */
void pe_beside_fold(const pe_tiles *T, const double *sums, pe_side side)
{
    const pe_attention *a    = T->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    for (int64_t i = 0; part->dpar && i < heads_of(&a->sizes, side) * blocks_of(a, side); i++) {
        const row_block x = block_at(a, side, i);
        a->terms->prepare.beside_back(part->p, part->par, side, x.h, x.pos, x.n, sums + x.at, part->dpar);
    }
}
