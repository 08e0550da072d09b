/* SPDX-License-Identifier: MIT */
/* Tables of rows that follow from each other. Contract: sequence.h. */
#include "engine/rows/sequence.h"

#include <string.h>

#include "base/parallel.h"

/* At most so many lanes go together: their vectors and the two matrices of a small room stay in a
   second-level cache. */
enum { TOGETHER = 4 };

/* Two groups at least where there are two lanes, for two cores. */
static int64_t together(int64_t lanes)
{
    const int64_t half = (lanes + 1) / 2;
    return half < TOGETHER ? half : TOGETHER;
}

static pe_lane_group group_at(const pe_sequence_table *t, int64_t index)
{
    const int64_t lanes = t->room->lanes(t->part->p), most = together(lanes), first = index * most;
    return (pe_lane_group){first, lanes - first < most ? lanes - first : most, t->kernels->product64,
                           &t->team};
}

static int64_t group_count(const pe_sequence_table *t)
{
    const int64_t lanes = t->room->lanes(t->part->p), most = together(lanes);
    return (lanes + most - 1) / most;
}

/* Blocks for the sums of one group at a time. */
static pe_lane_sums take_sums(const pe_part *part, pe_arena *arena)
{
    pe_lane_sums sums = {{NULL}};
    for (int i = 0; i < part->count; i++)
        if (!arena->memory || (part->dpar && part->dpar[i]))
            sums.dpar[i] = pe_arena_doubles(arena, part->sizes[i]);
    return sums;
}

pe_sequence_table pe_sequence_lay_out(const pe_sequence *room, const pe_part *part, int64_t width,
                                      const pe_kernels *kernels, const pe_team *team, int backward,
                                      pe_arena *arena)
{
    pe_sequence_table t     = {.room = room, .part = part, .width = width, .kernels = kernels, .team = *team};
    const int64_t     group = together(room->lanes(part->p));
    const int64_t     count = room->rows(part->p) * width;
    t.rows                  = pe_arena_doubles(arena, count);
    t.drows                 = backward ? pe_arena_doubles(arena, count) : NULL;
    t.scratch               = pe_arena_take(arena, (size_t)team->threads * sizeof *t.scratch);
    t.sums                  = backward ? pe_arena_take(arena, (size_t)team->threads * sizeof *t.sums) : NULL;
    for (int i = 0; i < team->threads; i++) {
        double            *scratch = pe_arena_doubles(arena, room->scratch(part->p, group));
        const pe_lane_sums sums    = backward ? take_sums(part, arena) : (pe_lane_sums){{NULL}};
        if (!arena->memory)
            continue;
        t.scratch[i] = scratch;
        if (backward)
            t.sums[i] = sums;
    }
    return t;
}

static void make_group(void *context, int64_t index, int thread)
{
    const pe_sequence_table *t     = context;
    const pe_lane_group      group = group_at(t, index);
    t->room->make(t->part->p, t->part->par, &group, t->n, t->rows, t->scratch[thread]);
}

void pe_sequence_make(pe_sequence_table *t, int64_t n)
{
    t->n = n;
    pe_parallel_for(group_count(t), &t->team, make_group, t);
    if (t->drows)
        memset(t->drows, 0, (size_t)(n * t->width) * sizeof(double));
}

void pe_sequence_read(const pe_sequence_table *t, const double pos[], int64_t n, double out[])
{
    for (int64_t s = 0; s < n; s++)
        memcpy(out + s * t->width, t->rows + (int64_t)pos[s] * t->width, (size_t)t->width * sizeof *out);
}

void pe_sequence_add(pe_sequence_table *t, const double pos[], int64_t n, const double dout[])
{
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < t->width; d++)
            t->drows[(int64_t)pos[s] * t->width + d] += dout[s * t->width + d];
}

/* Group group0 + index sums into block `index`, whichever thread it is on. */
static void back_group(void *context, int64_t index, int thread)
{
    const pe_sequence_table *t     = context;
    double *const           *sums  = t->sums[index].dpar;
    const pe_lane_group      group = group_at(t, t->group0 + index);
    for (int i = 0; i < t->part->count; i++)
        if (sums[i])
            memset(sums[i], 0, (size_t)t->part->sizes[i] * sizeof(double));
    t->room->make_back(t->part->p, t->part->par, &group, t->n, t->rows, t->drows, t->scratch[index], sums);
}

/* As many groups at a time as there are blocks for their sums. */
void pe_sequence_back(pe_sequence_table *t)
{
    const int64_t groups = group_count(t);
    for (t->group0 = 0; t->group0 < groups; t->group0 += t->team.threads) {
        const int64_t n = groups - t->group0 < t->team.threads ? groups - t->group0 : t->team.threads;
        pe_parallel_for(n, &t->team, back_group, t);
        for (int64_t i = 0; i < n; i++)
            for (int j = 0; j < t->part->count; j++)
                for (int64_t x = 0; t->sums[i].dpar[j] && x < t->part->sizes[j]; x++)
                    t->part->dpar[j][x] += t->sums[i].dpar[j][x];
    }
}
