/* SPDX-License-Identifier: MIT */
/*
 * by_position.c: numbers of queries and keys that follow from the position only
 *
 * A room may append numbers to queries and keys that content has no part in (TUPE's projected positions).
 * Where the items of a batch share their positions, they share these numbers: a run makes them once, and
 * queries and keys are copied as the caller wrote them. Backward their cotangents are added up over the batch
 * in double, item by item, and go through the room once. A single item, and items with positions of their
 * own, are prepared row by row like others.
 */
#include "base/parallel.h"
#include "engine/tiled/tiles.h"

enum { ROWS = 64 }; /* of one task */

static int64_t appended(const pe_attention *a)
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

typedef struct side_job {
    const pe_tiles *T;
    pe_side         side;
} side_job;

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
    x.at            = (x.h * L + x.s0) * appended(a);
    for (int64_t s = 0; s < x.n; s++)
        x.pos[s] = pe_positions_at(side == PE_KEYS ? &a->k_pos : &a->q_pos, 0, x.s0 + s);
    return x;
}

static void fill_block(void *context, int64_t index, int thread)
{
    const side_job     *j    = context;
    const pe_attention *a    = j->T->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const row_block     x    = block_at(a, j->side, index);
    double             *made = j->T->by_position_rows + thread * ROWS * appended(a);
    a->terms->prepare.by_position(part->p, part->par, j->side, x.h, x.pos, x.n, made);
    for (int64_t i = 0; i < x.n * appended(a); i++)
        j->T->by_position[j->side][x.at + i] = (float)made[i];
}

void pe_by_position_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a = T->a;
    if (!pe_by_position_size(a, PE_QUERIES) ||
        (!a->for_any_run && pe_positions_pair_batches(&a->q_pos, &a->k_pos, 2) > 1))
        return;
    T->by_position_rows = pe_arena_doubles(arena, a->team.threads * ROWS * appended(a));
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        T->by_position[side] = pe_arena_floats(arena, pe_by_position_size(a, side));
}

void pe_by_position_fill(pe_tiles *T)
{
    const pe_attention *a = T->a;
    for (side_job j = {.T = T}; j.side <= PE_KEYS && T->by_position[j.side]; j.side++)
        pe_parallel_for(heads_of(&a->sizes, j.side) * blocks_of(a, j.side), &a->team, fill_block, &j);
}

void pe_by_position_sum(const pe_tiles *T, double *sums, const float *rows, pe_side side, int64_t h,
                        int64_t s0, int64_t n)
{
    const int64_t width = appended(T->a), D = T->a->D;
    double       *to = sums + (h * length_of(&T->a->sizes, side) + s0) * width;
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < width; d++)
            to[s * width + d] += (double)rows[s * T->Dp + D + d];
}

/* One block after the other: parameters add in this order. */
void pe_by_position_fold(const pe_tiles *T, const double *sums, pe_side side)
{
    const pe_attention *a    = T->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    for (int64_t i = 0; part->dpar && i < heads_of(&a->sizes, side) * blocks_of(a, side); i++) {
        const row_block x = block_at(a, side, i);
        a->terms->prepare.by_position_back(part->p, part->par, side, x.h, x.pos, x.n, sums + x.at,
                                           part->dpar);
    }
}
