/* SPDX-License-Identifier: MIT */
/* Tables of rows that follow from each other. Contract: sequence.h. */
#include "engine/sequence.h"

#include <string.h>

#include "base/parallel.h"

/* Blocks for the sums of one lane at a time. */
static pe_lane_sums take_sums(const pe_part *part, pe_arena *arena)
{
    pe_lane_sums sums = {{NULL}};
    for (int i = 0; i < part->count; i++)
        if (!arena->memory || (part->dpar && part->dpar[i]))
            sums.dpar[i] = pe_take_doubles(arena, part->sizes[i]);
    return sums;
}

pe_sequence_table pe_sequence_lay_out(const pe_sequence *room, const pe_part *part, int64_t width,
                                      int threads, int backward, pe_arena *arena)
{
    pe_sequence_table t     = {.room = room, .part = part, .width = width, .threads = threads};
    const int64_t     count = room->rows(part->p) * width;
    t.rows                  = pe_take_doubles(arena, count);
    t.drows                 = backward ? pe_take_doubles(arena, count) : NULL;
    t.scratch               = pe_take(arena, (size_t)threads * sizeof *t.scratch);
    t.sums                  = backward ? pe_take(arena, (size_t)threads * sizeof *t.sums) : NULL;
    for (int i = 0; i < threads; i++) {
        double            *scratch = pe_take_doubles(arena, room->scratch(part->p));
        const pe_lane_sums sums    = backward ? take_sums(part, arena) : (pe_lane_sums){{NULL}};
        if (!arena->memory)
            continue;
        t.scratch[i] = scratch;
        if (backward)
            t.sums[i] = sums;
    }
    return t;
}

static void make_lane(void *context, int64_t lane, int thread)
{
    const pe_sequence_table *t = context;
    t->room->make(t->part->p, t->part->par, lane, t->n, t->rows, t->scratch[thread]);
}

void pe_sequence_make(pe_sequence_table *t, int64_t n)
{
    t->n = n;
    pe_parallel_for(t->room->lanes(t->part->p), t->threads, make_lane, t);
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

/* Lane lane0 + index sums into block `index`, whichever thread it is on. */
static void back_lane(void *context, int64_t index, int thread)
{
    const pe_sequence_table *t    = context;
    double *const           *sums = t->sums[index].dpar;
    (void)thread;
    for (int i = 0; i < t->part->count; i++)
        if (sums[i])
            memset(sums[i], 0, (size_t)t->part->sizes[i] * sizeof(double));
    t->room->make_back(t->part->p, t->part->par, t->lane0 + index, t->n, t->rows, t->drows, t->scratch[index],
                       sums);
}

static void add_sums(const pe_part *part, const pe_lane_sums *sums)
{
    for (int i = 0; i < part->count; i++)
        for (int64_t x = 0; sums->dpar[i] && x < part->sizes[i]; x++)
            part->dpar[i][x] += sums->dpar[i][x];
}

/* As many lanes at a time as there are blocks for their sums. */
void pe_sequence_back(pe_sequence_table *t)
{
    const int64_t lanes = t->room->lanes(t->part->p);
    for (t->lane0 = 0; t->lane0 < lanes; t->lane0 += t->threads) {
        const int64_t n = lanes - t->lane0 < t->threads ? lanes - t->lane0 : t->threads;
        pe_parallel_for(n, t->threads, back_lane, t);
        for (int64_t i = 0; i < n; i++)
            add_sums(t->part, &t->sums[i]);
    }
}
