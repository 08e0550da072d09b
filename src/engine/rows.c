/* SPDX-License-Identifier: MIT */
/* Rows of a table, in and out. Contract: rows.h. */
#include "engine/rows.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"

enum { BLOCK = 64 };

typedef struct block {
    double *pos, *rows, *x; /* [BLOCK, N], [BLOCK, width], [width] */
} block;

typedef struct job {
    const pe_rows_run *r;
    block             *blocks; /* [threads] */
    pe_sequence_table  table;  /* where the room has a sequence */
} job;

static int64_t coordinates_of(const pe_rows_run *r)
{
    return r->N > 0 ? r->N : 1;
}

static int has_sequence(const pe_rows_run *r)
{
    return r->sequence.rows != NULL;
}

static job lay_out(const pe_rows_run *r, pe_arena *arena, int backward)
{
    job j    = {.r = r};
    j.blocks = pe_take(arena, (size_t)r->threads * sizeof *j.blocks);
    for (int i = 0; i < r->threads; i++) {
        block x = {0};
        x.pos   = pe_take_doubles(arena, BLOCK * coordinates_of(r));
        x.rows  = pe_take_doubles(arena, BLOCK * r->width);
        x.x     = pe_take_doubles(arena, r->width);
        if (arena->memory)
            j.blocks[i] = x;
    }
    if (has_sequence(r))
        j.table =
            pe_sequence_lay_out(&r->sequence, &r->part, r->width, r->kernels, r->threads, backward, arena);
    return j;
}

/* The table as far as this run reaches. */
static void make_table(job *j)
{
    const pe_rows_run *r    = j->r;
    double             high = -1;
    for (int64_t b = 0; b < pe_position_batches(&r->pos); b++)
        high = fmax(high, pe_position_extent(&r->pos, b, r->L).high);
    pe_sequence_make(&j->table, (int64_t)(high + (r->pos.array.data ? 0 : r->first)) + 1);
}

static void find_positions(const pe_rows_run *r, double *pos, int64_t b, int64_t s0, int64_t n)
{
    const int64_t N     = coordinates_of(r);
    const int     range = !r->pos.array.data;
    for (int64_t s = 0; s < n; s++)
        if (range && r->locate)
            r->locate(r->part.p, (int64_t)pe_position(&r->pos, b, s0 + s), pos + s * N);
        else
            for (int64_t c = 0; c < N; c++)
                pos[s * N + c] = pe_coordinate(&r->pos, b, s0 + s, c) + (range ? r->first : 0);
}

static void add_rows(const pe_rows_run *r, const block *k, int64_t b, int64_t s0, int64_t n)
{
    for (int64_t s = 0; s < n; s++) {
        const double *row = k->rows + s * r->width;
        if (r->x.data) {
            pe_load_double(k->x, pe_row(&r->x, b, s0 + s, 0), r->x.dtype, r->x.stride[2], r->width);
            for (int64_t d = 0; d < r->width; d++)
                k->x[d] += row[d];
            row = k->x;
        }
        pe_store_double(pe_row(&r->y, b, s0 + s, 0), r->y.dtype, r->y.stride[2], row, r->width);
    }
}

/* One block of positions for every item of the batch. */
static void forward_block(void *context, int64_t index, int thread)
{
    const job         *j  = context;
    const pe_rows_run *r  = j->r;
    const block       *k  = j->blocks + thread;
    const int64_t      s0 = index * BLOCK, n = r->L - s0 < BLOCK ? r->L - s0 : BLOCK;
    for (int64_t b = 0; b < r->B; b++) {
        if (b == 0 || pe_position_batches(&r->pos) > 1) {
            find_positions(r, k->pos, b, s0, n);
            if (has_sequence(r))
                pe_sequence_read(&j->table, k->pos, n, k->rows);
            else
                r->rows(r->part.p, r->part.par, k->pos, n, k->rows);
        }
        add_rows(r, k, b, s0, n);
    }
}

void pe_rows_forward(const pe_rows_run *r, pe_arena *arena)
{
    job j = lay_out(r, arena, 0);
    if (!arena->memory)
        return;
    if (has_sequence(r))
        make_table(&j);
    pe_parallel_for((r->L + BLOCK - 1) / BLOCK, r->threads, forward_block, &j);
}

/* y = x + row: the cotangent of x is that of y */
static void pass_through(const pe_rows_run *r, double *row)
{
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t s = 0; s < r->L; s++) {
            pe_load_double(row, pe_row(&r->x, b, s, 0), r->x.dtype, r->x.stride[2], r->width);
            pe_store_double(pe_row(&r->y, b, s, 0), r->y.dtype, r->y.stride[2], row, r->width);
        }
}

/* rows[s,:] += dy[b, s0+s, :] */
static void add_cotangents(const pe_rows_run *r, const block *k, int64_t b, int64_t s0, int64_t n)
{
    for (int64_t s = 0; s < n; s++) {
        pe_load_double(k->x, pe_row(&r->x, b, s0 + s, 0), r->x.dtype, r->x.stride[2], r->width);
        for (int64_t d = 0; d < r->width; d++)
            k->rows[s * r->width + d] += k->x[d];
    }
}

/* Cotangents of the rows at n positions go to the room, or wait in its table. */
static void hand_back(job *j, const block *k, int64_t n)
{
    const pe_rows_run *r = j->r;
    if (has_sequence(r))
        pe_sequence_add(&j->table, k->pos, n, k->rows);
    else
        r->rows_back(r->part.p, r->part.par, k->pos, n, k->rows, r->part.dpar);
}

void pe_rows_backward(const pe_rows_run *r, pe_arena *arena)
{
    job          j = lay_out(r, arena, 1);
    const block *k = j.blocks;
    if (!arena->memory)
        return;
    if (r->y.data)
        pass_through(r, k->x);
    if ((!r->rows_back && !has_sequence(r)) || !r->part.dpar)
        return;
    if (has_sequence(r))
        make_table(&j);
    const int shared = pe_position_batches(&r->pos) == 1;
    for (int64_t s0 = 0; s0 < r->L; s0 += BLOCK) {
        const int64_t n = r->L - s0 < BLOCK ? r->L - s0 : BLOCK;
        for (int64_t b = 0; b < r->B; b++) {
            if (b == 0 || !shared)
                memset(k->rows, 0, (size_t)(n * r->width) * sizeof(double));
            add_cotangents(r, k, b, s0, n);
            if (shared && b < r->B - 1)
                continue;
            find_positions(r, k->pos, b, s0, n);
            hand_back(&j, k, n);
        }
    }
    if (has_sequence(r))
        pe_sequence_back(&j.table);
}
