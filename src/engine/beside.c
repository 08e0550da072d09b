/* SPDX-License-Identifier: MIT */
/*
 * beside.c: what stands beside queries and keys and follows from the position alone
 *
 * A room may prolong queries and keys by numbers that content has no part in (TUPE's projected positions).
 * Where the items of a batch share their positions, they share these numbers: a run makes them once, and
 * queries and keys are copied as the caller wrote them. Backwards their cotangents are added up over the
 * batch in double, item by item, and go through the room once. A single item, and items with positions of
 * their own, take the road of other prepared rows, one by one.
 */
#include "engine/beside.h"

#include "base/parallel.h"

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

static int is_shared(const pe_attention *a)
{
    return pe_position_batches(&a->q_pos) == 1 && pe_position_batches(&a->k_pos) == 1;
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
    if (!pe_beside_size(a, PE_QUERIES) || (arena->memory && !is_shared(a)))
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
