/* SPDX-License-Identifier: MIT */
/* Tables of cosines and sines, filled by all threads. Contract: rotation.h. */
#include "engine/rotation/rotation.h"

#include "base/sizes.h"

enum { ROWS = 512 }; /* of one task */

typedef struct rotation_job {
    const pe_rotation_table *t;
    int64_t                  blocks; /* of a table */
    const pe_ladder         *ladder; /* NULL: every angle for itself */
    const pe_kernels        *kernels;
} rotation_job;

static int has_ladder(const pe_rotation_table *t)
{
    return t->by->heads == 1 && !t->by->content && t->L >= PE_LADDER_ROWS;
}

void pe_rotation_table_lay_out(pe_rotation_table *t, int threads, pe_arena *arena)
{
    const int64_t row  = t->by ? t->heads * pe_rotation_width(t->by) : 0,
                  rows = pe_sizes_product(pe_sizes_product(t->batches, t->L), row);
    t->rows            = pe_arena_floats(arena, pe_sizes_sum(rows, PE_LANES));
    if (!t->by)
        return;
    t->walk             = t->by->content ? PE_TURN_WALK * t->by->M : 0;
    t->walks            = pe_arena_doubles(arena, threads * t->walk);
    const int64_t width = has_ladder(t) ? 2 * t->by->M : 0;
    t->ladder           = pe_ladder_lay_out(width, pe_ladder_middle_of(width), arena);
    t->rungs            = pe_ladder_lay_out_rungs(threads, width, arena);
}

static void fill_rows(void *context, int64_t index, int thread)
{
    const rotation_job      *j = context;
    const pe_rotation_table *t = j->t;
    const int64_t i = index / j->blocks, s = index % j->blocks * ROWS, n = t->L - s < ROWS ? t->L - s : ROWS,
                  width = pe_rotation_width(t->by);
    pe_rotary own;
    pe_rotation_fill(t->rows + (i * t->L + s) * width, width, pe_rotation_of_head(&own, t->by, i % t->heads),
                     t->pos, i / t->heads, s, n, j->ladder, j->ladder ? &t->rungs[thread] : NULL, 0,
                     j->kernels);
}

void pe_rotation_table_fill(pe_rotation_table *t, const pe_team *team, const pe_kernels *kernels)
{
    rotation_job j = {.t = t, .kernels = kernels};
    if (!t->by)
        return;
    j.blocks = (t->L + ROWS - 1) / ROWS;
    if (has_ladder(t) && pe_rotation_climbs(t->by, t->pos)) {
        pe_rotation_ladder(&t->ladder, t->by, kernels);
        j.ladder = &t->ladder;
    }
    pe_parallel_for(t->batches * t->heads * j.blocks, team, fill_rows, &j);
}
