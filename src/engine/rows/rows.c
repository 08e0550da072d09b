/* SPDX-License-Identifier: MIT */
/* Rows of a table, in and out. Contract: rows.h. */
#include "engine/rows/rows.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"

enum { BLOCK = 64 };

typedef struct rows_block {
    double *pos, *rows, *x; /* [BLOCK, N], [BLOCK, width], [width] */
} rows_block;

typedef struct rows_job {
    const pe_rows_run *r;
    rows_block        *blocks; /* [threads] */
    pe_sequence_table  table;  /* where the room has a sequence */
} rows_job;

static int has_sequence(const pe_rows_run *r)
{
    return r->sequence.rows != NULL;
}

static rows_job lay_out(const pe_rows_run *r, pe_arena *arena, int backward)
{
    rows_job j = {.r = r};
    j.blocks   = pe_arena_take(arena, (size_t)r->team.threads * sizeof *j.blocks);
    for (int i = 0; i < r->team.threads; i++) {
        rows_block x = {0};
        x.pos        = pe_arena_doubles(arena, BLOCK * r->N);
        x.rows       = pe_arena_doubles(arena, BLOCK * r->width);
        x.x          = pe_arena_doubles(arena, r->width);
        if (j.blocks)
            j.blocks[i] = x;
    }
    if (has_sequence(r))
        j.table =
            pe_sequence_lay_out(&r->sequence, &r->part, r->width, r->kernels, &r->team, backward, arena);
    return j;
}

/* The table as far as this run reaches. */
static void make_table(rows_job *j)
{
    const pe_rows_run *r    = j->r;
    double             high = -1;
    if (r->ready) {
        j->table.rows = r->ready;
        return;
    }
    for (int64_t b = 0; b < pe_positions_batches(&r->pos); b++)
        high = fmax(high, pe_positions_extent(&r->pos, b, r->L).high);
    pe_sequence_make(&j->table, (int64_t)(high + (r->pos.array.data ? 0 : r->first)) + 1);
}

static void find_positions(const pe_rows_run *r, double *pos, int64_t b, int64_t s0, int64_t n)
{
    const int64_t N     = r->N;
    const int     range = !r->pos.array.data;
    for (int64_t s = 0; s < n; s++)
        if (range && r->locate)
            r->locate(r->part.p, (int64_t)pe_positions_at(&r->pos, b, s0 + s), pos + s * N);
        else
            for (int64_t c = 0; c < N; c++)
                pos[s * N + c] = pe_positions_coordinate(&r->pos, b, s0 + s, c) + (range ? r->first : 0);
}

static void add_rows(const pe_rows_run *r, const rows_block *k, int64_t b, int64_t s0, int64_t n)
{
    for (int64_t s = 0; s < n; s++) {
        const double *row = k->rows + s * r->width;
        if (r->x.data) {
            pe_tensor_load_double(k->x, pe_tensor_row(&r->x, b, s0 + s, 0), r->x.dtype, r->x.stride[2],
                                  r->width);
            for (int64_t d = 0; d < r->width; d++)
                k->x[d] += row[d];
            row = k->x;
        }
        pe_tensor_store_double(pe_tensor_row(&r->y, b, s0 + s, 0), r->y.dtype, r->y.stride[2], row, r->width);
    }
}

/* One block of positions for every item of the batch. */
static void forward_block(void *context, int64_t index, int thread)
{
    const rows_job    *j  = context;
    const pe_rows_run *r  = j->r;
    const rows_block  *k  = j->blocks + thread;
    const int64_t      s0 = index * BLOCK, n = r->L - s0 < BLOCK ? r->L - s0 : BLOCK;
    for (int64_t b = 0; b < r->B; b++) {
        if (b == 0 || pe_positions_batches(&r->pos) > 1) {
            find_positions(r, k->pos, b, s0, n);
            if (has_sequence(r))
                pe_sequence_read(&j->table, k->pos, n, k->rows);
            else
                r->rows(r->part.p, r->part.par, k->pos, n, k->rows);
        }
        add_rows(r, k, b, s0, n);
    }
}

/* ---- waves: rows of a range, without an x, made by a ladder ---- */

enum {
    WAVE_ROWS = 1024,   /* of one task */
    TOO_FEW   = 1 << 19 /* bytes: made before a second thread has started */
};

typedef struct wave_job {
    const pe_rows_run *r;
    pe_rung           *rungs; /* [threads] */
    double             start; /* position of row 0 */
    int64_t            blocks;
    int                stream;
} wave_job;

static int is_waves(const pe_rows_run *r)
{
    const posenc_positions *p = &r->pos;
    return r->waves && !r->x.data && !r->locate && !p->array.data && (p->step == 0 || p->step == 1) &&
           r->y.dtype == POSENC_DTYPE_F32 && r->y.stride[2] == 1 && r->B * r->L >= PE_LADDER_ROWS &&
           pe_ladder_reaches(p->start + r->first) && pe_ladder_reaches(p->start + r->first + (double)r->L);
}

static void fill_waves(void *context, int64_t index, int thread)
{
    const wave_job    *j = context;
    const pe_rows_run *r = j->r;
    const int64_t      b = index / j->blocks, s = index % j->blocks * WAVE_ROWS, rest = r->L - s;
    const double       p = j->start + (double)s, blank = r->blank - p;
    const int64_t      rows = rest < WAVE_ROWS ? rest : WAVE_ROWS, stride = r->y.stride[1];
    float             *to = pe_tensor_row(&r->y, b, s, 0);
    pe_ladder_rows(r->waves, &j->rungs[thread], to, stride, rows, p, j->stream);
    if (blank >= 0 && blank < (double)rows && blank == floor(blank))
        memset(to + (int64_t)blank * stride, 0, (size_t)r->width * sizeof *to);
}

static void make_waves(const pe_rows_run *r, pe_arena *arena)
{
    wave_job j = {.r = r, .start = r->pos.start + r->first, .blocks = (r->L + WAVE_ROWS - 1) / WAVE_ROWS};
    const int64_t bytes = r->B * r->L * r->width * (int64_t)sizeof(float);
    const pe_team team  = pe_parallel_for_work(&r->team, (double)bytes, TOO_FEW);
    j.rungs             = pe_ladder_lay_out_rungs(r->team.threads, r->width, arena);
    j.stream            = pe_ladder_streams(&r->y, bytes, r->waves->columns.M);
    pe_parallel_for(r->B * j.blocks, &team, fill_waves, &j);
}

/* ---- forward ---- */

/* Which of both ways a run takes, a plan does not know. */
void pe_rows_forward_lay_out(const pe_rows_run *r, pe_arena *arena)
{
    pe_arena waves = *arena;
    if (r->waves)
        pe_ladder_lay_out_rungs(r->team.threads, r->width, &waves);
    lay_out(r, arena, 0);
    arena->used = arena->used > waves.used ? arena->used : waves.used;
}

void pe_rows_forward_run(const pe_rows_run *r, pe_arena *arena)
{
    if (is_waves(r)) {
        make_waves(r, arena);
        return;
    }
    rows_job j = lay_out(r, arena, 0);
    if (has_sequence(r))
        make_table(&j);
    pe_parallel_for((r->L + BLOCK - 1) / BLOCK, &r->team, forward_block, &j);
}

/* ---- backward ---- */

/* y = x + row: the cotangent of x is that of y */
static void pass_through(const pe_rows_run *r, double *row)
{
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t s = 0; s < r->L; s++) {
            pe_tensor_load_double(row, pe_tensor_row(&r->x, b, s, 0), r->x.dtype, r->x.stride[2], r->width);
            pe_tensor_store_double(pe_tensor_row(&r->y, b, s, 0), r->y.dtype, r->y.stride[2], row, r->width);
        }
}

/* rows[s,:] += dy[b, s0+s, :] */
static void add_cotangents(const pe_rows_run *r, const rows_block *k, int64_t b, int64_t s0, int64_t n)
{
    for (int64_t s = 0; s < n; s++) {
        pe_tensor_load_double(k->x, pe_tensor_row(&r->x, b, s0 + s, 0), r->x.dtype, r->x.stride[2], r->width);
        for (int64_t d = 0; d < r->width; d++)
            k->rows[s * r->width + d] += k->x[d];
    }
}

void pe_rows_backward_lay_out(const pe_rows_run *r, pe_arena *arena)
{
    lay_out(r, arena, 1);
}

void pe_rows_backward_run(const pe_rows_run *r, pe_arena *arena)
{
    rows_job          j = lay_out(r, arena, 1);
    const rows_block *k = j.blocks;
    if (r->y.data)
        pass_through(r, k->x);
    if ((!r->rows_back && !has_sequence(r)) || !r->part.dpar)
        return;
    if (has_sequence(r))
        make_table(&j);
    const int shared = pe_positions_batches(&r->pos) == 1;
    for (int64_t s0 = 0; s0 < r->L && !pe_parallel_is_cancelled(&r->team); s0 += BLOCK) {
        const int64_t n = r->L - s0 < BLOCK ? r->L - s0 : BLOCK;
        for (int64_t b = 0; b < r->B; b++) {
            if (b == 0 || !shared)
                memset(k->rows, 0, (size_t)(n * r->width) * sizeof(double));
            add_cotangents(r, k, b, s0, n);
            if (shared && b < r->B - 1)
                continue;
            find_positions(r, k->pos, b, s0, n);
            if (has_sequence(r)) /* whose table waits for all of them */
                pe_sequence_add(&j.table, k->pos, n, k->rows);
            else
                r->rows_back(r->part.p, r->part.par, k->pos, n, k->rows, r->part.dpar);
        }
    }
    if (has_sequence(r))
        pe_sequence_back(&j.table);
}
