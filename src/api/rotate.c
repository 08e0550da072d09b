/* SPDX-License-Identifier: MIT */
/* posenc_rotate: check, then turn rows by machine 2 (engine/turn.h). */
#include <math.h>
#include <string.h>

#include "api/objects.h"
#include "base/parallel.h"
#include "base/tensor.h"

enum { BLOCK = 16 }; /* positions whose table row serves all heads */

/* q or k: tasks are (item, block of positions). */
typedef struct job {
    const posenc_plan *plan;
    const pe_turn     *turn;
    posenc_tensor      from, to;
    posenc_positions   pos;
    double             sign;
    int64_t            blocks;
    float             *tables, *rows; /* [threads, BLOCK, 2M + pad], [threads, padded D] */
    double            *wide;          /* [threads, D] */
} job;

static void lay_out(job *j, pe_arena *arena)
{
    const int64_t threads = j->plan->threads, D = j->plan->dims.D;
    j->tables = pe_take_floats(arena, threads * (BLOCK * D + PE_LANES));
    j->rows   = pe_take_floats(arena, threads * (D + PE_LANES));
    j->wide   = pe_take_doubles(arena, threads * D);
}

size_t pe_rotate_bytes(const posenc_plan *plan)
{
    pe_arena arena = {0};
    job      j     = {.plan = plan};
    lay_out(&j, &arena);
    return arena.used;
}

static void turn_wide(const job *j, int64_t b, int64_t h, int64_t s, double *row)
{
    const int64_t D = j->plan->dims.D;
    pe_load_double(row, pe_row(&j->from, b, h, s), j->from.dtype, 1, D);
    pe_turn_row(row, j->turn, pe_position(&j->pos, b, s), j->sign);
    pe_store_double(pe_row(&j->to, b, h, s), j->to.dtype, 1, row, D);
}

static void turn_narrow(const job *j, int64_t b, int64_t h, int64_t s, const float *table, float *row)
{
    const int64_t D = j->plan->dims.D;
    pe_load_float(row, pe_row(&j->from, b, h, s), j->from.dtype, 1, D);
    pe_turn_rows(row, D, j->turn, table, 1, (float)j->sign, j->plan->kernels);
    pe_store_float(pe_row(&j->to, b, h, s), j->to.dtype, 1, row, D);
}

static void turn_block(void *context, int64_t index, int thread)
{
    const job    *j = context;
    const int64_t D = j->plan->dims.D, M = j->turn->M, b = index / j->blocks, s0 = index % j->blocks * BLOCK;
    const int64_t n = j->from.shape[2] - s0 < BLOCK ? j->from.shape[2] - s0 : BLOCK;
    float    *table = j->tables + thread * (BLOCK * D + PE_LANES), *row = j->rows + thread * (D + PE_LANES);
    const int wide = j->from.dtype == POSENC_F64;
    if (!wide)
        pe_turn_table(table, j->turn, &j->pos, b, s0, n);
    for (int64_t h = 0; h < j->from.shape[1]; h++)
        for (int64_t s = 0; s < n; s++) {
            if (wide)
                turn_wide(j, b, h, s0 + s, j->wide + thread * D);
            else
                turn_narrow(j, b, h, s0 + s, table + s * 2 * M, row);
        }
}

static posenc_status check_one(const posenc_plan *plan, const posenc_tensor *from, const posenc_tensor *to,
                               const posenc_positions *pos, int64_t heads, const char *const names[3],
                               posenc_error *err)
{
    const int64_t shape[4] = {-1, heads, -1, plan->dims.D};
    posenc_status status   = pe_check_tensor(from, names[0], 4, shape, err);
    if (!status)
        status = pe_check_output(to, names[1], 4, from->shape, err);
    if (!status && (!pe_is_float(from->dtype) || from->stride[3] != 1 || to->stride[3] != 1))
        status = pe_fail(err, POSENC_SHAPE, "%s and %s must be real numbers whose last axis has stride 1",
                         names[0], names[1]);
    if (!status)
        status = pe_positions_check(pos, names[2], from->shape[0], from->shape[2], 1, err);
    return status;
}

posenc_status posenc_rotate(const posenc_plan *plan, const posenc_rotate_io *io, void *workspace,
                            posenc_error *err)
{
    static const char *const q_names[3] = {"rotate: q", "rotate: to_q", "rotate: q_pos"};
    static const char *const k_names[3] = {"rotate: k", "rotate: to_k", "rotate: k_pos"};
    posenc_status            status     = POSENC_OK;
    if (!plan || !io || (!io->q.data && !io->k.data))
        return pe_fail(err, POSENC_ARGUMENT,
                       "rotate: plan and io must not be NULL, and q or k must have data");
    if (!plan->parts[POSENC_ROTARY].room)
        return pe_fail(err, POSENC_UNSUPPORTED, "rotate: %s has no part at place rotary", plan->e->spec);
    if (io->direction != 1 && io->direction != -1)
        return pe_fail(err, POSENC_ARGUMENT, "rotate: direction is %d; it must be 1 or -1", io->direction);
    if (io->q.data)
        status = check_one(plan, &io->q, &io->to_q, &io->q_pos, plan->dims.H, q_names, err);
    if (!status && io->k.data)
        status = check_one(plan, &io->k, &io->to_k, &io->k_pos, plan->dims.G, k_names, err);
    if (!status)
        status = pe_check_workspace(workspace, "rotate", err);
    if (status)
        return status;
    const job both[2] = {{.plan = plan,
                          .turn = &plan->turn,
                          .from = io->q,
                          .to   = io->to_q,
                          .pos  = io->q_pos,
                          .sign = io->direction},
                         {.plan = plan,
                          .turn = &plan->turn_keys,
                          .from = io->k,
                          .to   = io->to_k,
                          .pos  = io->k_pos,
                          .sign = io->direction}};
    for (int i = 0; i < 2; i++) {
        job      j     = both[i];
        pe_arena arena = {workspace, 0};
        if (!j.from.data)
            continue;
        lay_out(&j, &arena);
        j.blocks = (j.from.shape[2] + BLOCK - 1) / BLOCK;
        pe_parallel_for(j.from.shape[0] * j.blocks, plan->threads, turn_block, &j);
    }
    return pe_done(err);
}

posenc_status posenc_rotary_frequencies(const posenc_plan *plan, double *w, int64_t *pairs, double *magnitude,
                                        posenc_error *err)
{
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ARGUMENT, "frequencies: plan and pairs must not be NULL");
    if (!plan->parts[POSENC_ROTARY].room)
        return pe_fail(err, POSENC_UNSUPPORTED, "frequencies: %s has no part at place rotary", plan->e->spec);
    *pairs = plan->turn.M;
    if (w)
        memcpy(w, plan->turn.w, (size_t)plan->turn.M * sizeof *w);
    if (magnitude)
        *magnitude = plan->turn.growth ? NAN : plan->turn.magnitude;
    return pe_done(err);
}
