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
#include <string.h>

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

/* Rows of one side: of a run, or of positions 0 .. L-1. */
typedef struct side_job {
    const pe_attention *a;
    pe_side             side;
    int64_t             L;
    int                 numbered; /* are positions 0, 1, 2, ...? */
    float              *to;
    double             *rows; /* [threads, ROWS, D - a->D] before they are rounded */
} side_job;

typedef struct row_block {
    int64_t h, s0, n, at; /* `at`: its first number */
    double  pos[ROWS];
} row_block;

static int64_t blocks_of(int64_t L)
{
    return (L + ROWS - 1) / ROWS;
}

static row_block block_at(const side_job *j, int64_t index)
{
    const int64_t blocks = blocks_of(j->L);
    row_block     x      = {.h = index / blocks, .s0 = index % blocks * ROWS};
    x.n                  = pe_smaller(ROWS, j->L - x.s0);
    x.at                 = (x.h * j->L + x.s0) * appended(j->a);
    for (int64_t s = 0; s < x.n; s++)
        x.pos[s] = j->numbered
                       ? (double)(x.s0 + s)
                       : pe_positions_at(j->side == PE_KEYS ? &j->a->k_pos : &j->a->q_pos, 0, x.s0 + s);
    return x;
}

static void fill_block(void *context, int64_t index, int thread)
{
    const side_job     *j    = context;
    const pe_attention *a    = j->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const row_block     x    = block_at(j, index);
    double             *made = j->rows + thread * ROWS * appended(a);
    a->terms->prepare.by_position(part->p, part->par, j->side, x.h, x.pos, x.n, made);
    for (int64_t i = 0; i < x.n * appended(a); i++)
        j->to[x.at + i] = (float)made[i];
}

static void fill_side(side_job *j)
{
    pe_parallel_for(heads_of(&j->a->sizes, j->side) * blocks_of(j->L), &j->a->team, fill_block, j);
}

/* ---- made before the run ---- */

void pe_by_position_lay_out_ready(pe_ready *r, const pe_attention *a, int64_t positions, pe_arena *arena)
{
    r->positions = a->terms->prepare.by_position ? positions : 0;
    for (pe_side side = PE_QUERIES; r->positions && side <= PE_KEYS; side++)
        r->by_position[side] = pe_arena_floats(arena, heads_of(&a->sizes, side) * r->positions * appended(a));
}

void pe_by_position_make_ready(const pe_ready *r, const pe_attention *a, pe_arena *lent)
{
    if (!r->positions)
        return;
    side_job j = {.a = a, .L = r->positions, .numbered = 1};
    j.rows     = pe_arena_doubles(lent, a->team.threads * ROWS * appended(a));
    for (; lent->memory && j.side <= PE_KEYS; j.side++) {
        j.to = r->by_position[j.side];
        fill_side(&j);
    }
}

/* Are all positions of a side among those? */
static int is_ready(const pe_attention *a, const posenc_positions *p, int64_t L)
{
    for (int64_t b = 0; b < pe_positions_batches(p); b++) {
        const pe_extent e = pe_positions_extent(p, b, L);
        if (!e.whole || !(e.low >= 0 && e.high < (double)a->ready->positions))
            return 0;
    }
    return 1;
}

static int are_ready(const pe_attention *a)
{
    return a->ready && !a->for_any_run && a->ready->positions && is_ready(a, &a->q_pos, a->sizes.Lq) &&
           is_ready(a, &a->k_pos, a->sizes.Lk);
}

const float *pe_by_position_row(const pe_tiles *T, pe_side side, int64_t b, int64_t h, int64_t s)
{
    const pe_attention *a = T->a;
    if (!T->positions_are_ready)
        return T->by_position[side] + (h * length_of(&a->sizes, side) + s) * appended(a);
    const int64_t first    = side == PE_KEYS ? a->from.g : a->from.h,
                  position = (int64_t)pe_positions_at(side == PE_KEYS ? &a->k_pos : &a->q_pos, b, s);
    return T->by_position[side] + ((first + h) * a->ready->positions + position) * appended(a);
}

/* ---- made for the run ---- */

void pe_by_position_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a = T->a;
    if (are_ready(a)) {
        T->positions_are_ready = 1;
        memcpy(T->by_position, a->ready->by_position, sizeof T->by_position);
        return;
    }
    if (!pe_by_position_size(a, PE_QUERIES) ||
        (!a->for_any_run && pe_positions_pair_batches(&a->q_pos, &a->k_pos, 2) > 1))
        return;
    T->by_position_rows = pe_arena_doubles(arena, a->team.threads * ROWS * appended(a));
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        T->by_position[side] = pe_arena_floats(arena, pe_by_position_size(a, side));
}

static side_job job_of(const pe_tiles *T, pe_side side)
{
    return (side_job){.a    = T->a,
                      .side = side,
                      .L    = length_of(&T->a->sizes, side),
                      .to   = T->by_position[side],
                      .rows = T->by_position_rows};
}

void pe_by_position_fill(pe_tiles *T)
{
    for (pe_side side = PE_QUERIES; side <= PE_KEYS && T->by_position[side] && !T->positions_are_ready;
         side++) {
        side_job j = job_of(T, side);
        fill_side(&j);
    }
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
    const side_job      j    = job_of(T, side);
    for (int64_t i = 0; part->dpar && i < heads_of(&a->sizes, side) * blocks_of(j.L); i++) {
        const row_block x = block_at(&j, i);
        a->terms->prepare.by_position_back(part->p, part->par, side, x.h, x.pos, x.n, sums + x.at,
                                           part->dpar);
    }
}
