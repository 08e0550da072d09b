/* SPDX-License-Identifier: MIT */
/*
 * rotate.c: posenc_rotate, its backward, rotation from one plan to another, and what a rotation consists of
 *
 * All checks come first; then rows are turned by machine 2 (engine/turn.h), in blocks of positions whose table serves all
 * heads. The reference executor turns rows in double and rounds once; else F64 rows are turned in double, others in float.
 */
#include <math.h>
#include <string.h>

#include "api/objects.h"
#include "base/parallel.h"
#include "base/tensor.h"

enum { BLOCK = 16 }; /* positions whose table row serves all heads that are alike */

/* q or k: tasks are (item, block of positions). */
typedef struct job {
    const posenc_plan *plan;
    const pe_turn     *turn;
    posenc_tensor      from, to;
    posenc_positions   pos;
    double             sign;
    int64_t            blocks;
    float             *tables, *rows; /* [threads, BLOCK, width + pad], [threads, padded D] */
    double            *wide;          /* [threads, D] */
} job;

/* Floats of one thread's table; a width of 2M + 1 is D + 1 at most. */
static int64_t table_size(const posenc_plan *plan)
{
    return BLOCK * (plan->dims.D + 1) + PE_LANES;
}

static void lay_out(job *j, pe_arena *arena)
{
    const int64_t threads = j->plan->threads, D = j->plan->dims.D;
    j->tables = pe_take_floats(arena, threads * table_size(j->plan));
    j->rows   = pe_take_floats(arena, threads * (D + PE_LANES));
    j->wide   = pe_take_doubles(arena, threads * D);
}

enum { ROTARY = 1 << POSENC_ROTARY };

size_t pe_rotate_bytes(const posenc_plan *plan, int backward)
{
    pe_arena    arena = {0};
    pe_numbers  numbers;
    pe_run_turn turn;
    job         j = {.plan = plan};
    pe_numbers_load(&numbers, plan, ROTARY, NULL, NULL, &arena);
    pe_run_turn_make(&turn, plan, &numbers, 0, &arena);
    lay_out(&j, &arena);
    if (backward)
        pe_rotary_slopes(plan, &numbers, 0, 1, NULL, &arena);
    else
        pe_take_doubles(&arena, plan->threads * 2 * plan->dims.D); /* of posenc_rotary_reroute */
    return arena.used;
}

static void turn_wide(const job *j, const pe_turn *turn, int64_t b, int64_t h, int64_t s, double *row)
{
    const int64_t D = j->plan->dims.D;
    double        at[PE_MAX_AXES];
    pe_turn_place(turn, &j->pos, b, s, at);
    pe_load_double(row, pe_row(&j->from, b, h, s), j->from.dtype, 1, D);
    pe_turn_row(row, D, turn, at, j->sign);
    pe_store_double(pe_row(&j->to, b, h, s), j->to.dtype, 1, row, D);
}

static void turn_narrow(const job *j, int64_t b, int64_t h, int64_t s, const float *table, float *row)
{
    const int64_t D = j->plan->dims.D;
    pe_load_float(row, pe_row(&j->from, b, h, s), j->from.dtype, 1, D);
    pe_turn_rows(row, D, D, j->turn, table, 1, (float)j->sign, j->plan->kernels);
    pe_store_float(pe_row(&j->to, b, h, s), j->to.dtype, 1, row, D);
}

static void turn_block(void *context, int64_t index, int thread)
{
    const job    *j = context;
    const int64_t D = j->plan->dims.D, b = index / j->blocks, s0 = index % j->blocks * BLOCK;
    const int64_t n     = j->from.shape[2] - s0 < BLOCK ? j->from.shape[2] - s0 : BLOCK;
    float        *table = j->tables + thread * table_size(j->plan), *row = j->rows + thread * (D + PE_LANES);
    const int     wide = j->from.dtype == POSENC_F64 || j->plan->options.executor == POSENC_REFERENCE;
    for (int64_t h = 0; h < j->from.shape[1]; h++) {
        pe_turn        own;
        const pe_turn *turn = pe_turn_of_head(&own, j->turn, h);
        if (!wide && (h == 0 || turn == &own))
            pe_turn_table(table, turn, &j->pos, b, s0, n, j->plan->kernels);
        for (int64_t s = 0; s < n; s++) {
            if (wide)
                turn_wide(j, turn, b, h, s0 + s, j->wide + thread * D);
            else
                turn_narrow(j, b, h, s0 + s, table + s * pe_turn_width(turn), row);
        }
    }
}

/* ---- checks ---- */

/* A tensor of rows and, if `to` is not NULL, where they go. */
static posenc_status check_rows(const posenc_plan *plan, const posenc_tensor *from, const posenc_tensor *to,
                                int64_t heads, const char *const names[2], posenc_error *err)
{
    const int64_t shape[4] = {-1, heads, -1, plan->dims.D};
    posenc_status status   = pe_check_tensor(from, names[0], 4, shape, err);
    if (!status && to)
        status = pe_check_output(to, names[1], 4, from->shape, err);
    if (!status && (!pe_is_float(from->dtype) || from->stride[3] != 1))
        status = pe_fail(err, POSENC_SHAPE, "%s must be real numbers whose last axis has stride 1", names[0]);
    if (!status && to && (!pe_is_float(to->dtype) || to->stride[3] != 1))
        status = pe_fail(err, POSENC_SHAPE, "%s and %s must be real numbers whose last axis has stride 1",
                         names[0], names[1]);
    return status;
}

static posenc_status check_start(const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (plan->parts[POSENC_ROTARY].room)
        return POSENC_OK;
    return pe_fail(err, POSENC_UNSUPPORTED, "%s: %s has no part at place rotary", who, plan->e->spec);
}

/* A range means start 0 and step 1 where nothing is set. */
static posenc_positions plain_positions(const posenc_positions *p)
{
    return p->array.data ? *p : posenc_positions_range(p->start, p->step);
}

static const char *const q_names[2] = {"rotate: q", "rotate: to_q"};
static const char *const k_names[2] = {"rotate: k", "rotate: to_k"};

/* io with positions as the machine reads them; *length is that of the run. */
static posenc_status check_io(const posenc_plan *plan, posenc_rotate_io *io, int has_outputs, double *length,
                              posenc_error *err)
{
    posenc_status status = check_start(plan, "rotate", err);
    *length              = 0;
    io->q_pos            = plain_positions(&io->q_pos);
    io->k_pos            = plain_positions(&io->k_pos);
    if (!status && io->direction != 1 && io->direction != -1)
        status = pe_fail(err, POSENC_ARGUMENT, "rotate: direction is %d; it must be 1 or -1", io->direction);
    if (!status && io->q.data)
        status = check_rows(plan, &io->q, has_outputs ? &io->to_q : NULL, plan->dims.H, q_names, err);
    if (!status && io->q.data)
        status = pe_rotary_positions(plan, &io->q_pos, "rotate: q_pos", io->q.shape[0], io->q.shape[2], err);
    if (!status && io->k.data)
        status = check_rows(plan, &io->k, has_outputs ? &io->to_k : NULL, plan->dims.G, k_names, err);
    if (!status && io->k.data)
        status = pe_rotary_positions(plan, &io->k_pos, "rotate: k_pos", io->k.shape[0], io->k.shape[2], err);
    if (status)
        return status;
    if (io->q.data)
        *length = pe_rotary_length(*length, &io->q_pos, io->q.shape[2]);
    if (io->k.data)
        *length = pe_rotary_length(*length, &io->k_pos, io->k.shape[2]);
    return POSENC_OK;
}

/* Parameters, workspace, and the rotation made of them. */
static posenc_status open_run(const posenc_plan *plan, const posenc_tensor *params, posenc_tensor *dparams,
                              double length, const char *who, pe_numbers *numbers, pe_run_turn *turn,
                              void *workspace, pe_arena *arena, posenc_error *err)
{
    posenc_status status = pe_numbers_check(plan, ROTARY, params, dparams, who, err);
    if (!status)
        status = pe_check_workspace(workspace, who, err);
    if (status)
        return status;
    *arena = (pe_arena){workspace, 0};
    pe_numbers_load(numbers, plan, ROTARY, params, dparams, arena);
    pe_run_turn_make(turn, plan, numbers, length, arena);
    return pe_run_turn_check(turn, plan, who, err);
}

static void turn_side(const posenc_plan *plan, const pe_turn *turn, const posenc_tensor *from,
                      const posenc_tensor *to, const posenc_positions *pos, double sign, pe_arena arena)
{
    job j = {.plan = plan, .turn = turn, .from = *from, .to = *to, .pos = *pos, .sign = sign};
    if (!from->data)
        return;
    lay_out(&j, &arena);
    j.blocks = (from->shape[2] + BLOCK - 1) / BLOCK;
    pe_parallel_for(from->shape[0] * j.blocks, plan->threads, turn_block, &j);
}

/* ---- runs ---- */

posenc_status posenc_rotate(const posenc_plan *plan, const posenc_rotate_io *caller, void *workspace,
                            posenc_error *err)
{
    pe_arena    arena;
    pe_numbers  numbers;
    pe_run_turn turn;
    double      length;
    if (!plan || !caller || (!caller->q.data && !caller->k.data))
        return pe_fail(err, POSENC_ARGUMENT,
                       "rotate: plan and io must not be NULL, and q or k must have data");
    posenc_rotate_io io     = *caller;
    posenc_status    status = check_io(plan, &io, 1, &length, err);
    if (!status)
        status = open_run(plan, io.params, NULL, length, "rotate", &numbers, &turn, workspace, &arena, err);
    if (status)
        return status;
    turn_side(plan, turn.queries, &io.q, &io.to_q, &io.q_pos, io.direction, arena);
    turn_side(plan, turn.keys, &io.k, &io.to_k, &io.k_pos, io.direction, arena);
    return pe_done(err);
}

static posenc_status check_cotangents(const posenc_plan *plan, const posenc_rotate_io *io,
                                      const posenc_rotate_grad *grad, posenc_error *err)
{
    static const char *const dq_names[2] = {"rotate: dto_q", "rotate: dq"};
    static const char *const dk_names[2] = {"rotate: dto_k", "rotate: dk"};
    posenc_status            status      = POSENC_OK;
    if (io->q.data && grad->dq.data)
        status = check_rows(plan, &grad->dto_q, &grad->dq, plan->dims.H, dq_names, err);
    if (!status && io->q.data && grad->dq.data)
        status = pe_check_tensor(&grad->dq, dq_names[1], 4, io->q.shape, err);
    if (!status && io->k.data && grad->dk.data)
        status = check_rows(plan, &grad->dto_k, &grad->dk, plan->dims.G, dk_names, err);
    if (!status && io->k.data && grad->dk.data)
        status = pe_check_tensor(&grad->dk, dk_names[1], 4, io->k.shape, err);
    /* a side that takes no part in the run needs no gradient either */
    if (!status)
        status = pe_rotary_slopes_check(plan, grad->dparams, io->q.data ? &grad->dq : &grad->dk,
                                        io->k.data ? &grad->dk : &grad->dq, "rotate", err);
    return status;
}

posenc_status posenc_rotate_backward(const posenc_plan *plan, const posenc_rotate_io *caller,
                                     const posenc_rotate_grad *grad, void *workspace, posenc_error *err)
{
    pe_arena    arena;
    pe_numbers  numbers;
    pe_run_turn turn;
    double      length;
    if (!plan || !caller || !grad || (!caller->q.data && !caller->k.data))
        return pe_fail(err, POSENC_ARGUMENT,
                       "rotate: plan, io and grad must not be NULL, and q or k must have data");
    posenc_rotate_io io     = *caller;
    posenc_status    status = check_io(plan, &io, 0, &length, err);
    if (!status)
        status = check_cotangents(plan, &io, grad, err);
    if (!status)
        status = open_run(plan, io.params, grad->dparams, length, "rotate", &numbers, &turn, workspace,
                          &arena, err);
    if (status)
        return status;
    const pe_turned_side sides[2] = {{&io.q, &grad->dq, &io.q_pos, turn.queries},
                                     {&io.k, &grad->dk, &io.k_pos, turn.keys}};
    if (io.q.data && grad->dq.data)
        turn_side(plan, turn.queries, &grad->dto_q, &grad->dq, &io.q_pos, -io.direction, arena);
    if (io.k.data && grad->dk.data)
        turn_side(plan, turn.keys, &grad->dto_k, &grad->dk, &io.k_pos, -io.direction, arena);
    pe_rotary_slopes(plan, &numbers, length, io.direction, sides, &arena);
    pe_numbers_add(&numbers, plan, grad->dparams);
    return pe_done(err);
}

/* ---- from one plan to another ---- */

typedef struct reroute {
    const posenc_plan       *to_plan;
    const pe_turn           *from, *to;
    const posenc_reroute_io *io;
    posenc_positions         from_pos, to_pos;
    double                  *rows; /* [threads, 2, D] */
} reroute;

static void reroute_element(void *context, int64_t index, int thread)
{
    const reroute       *w = context;
    const posenc_tensor *k = &w->io->k, *to = &w->io->to_k;
    const int64_t        D = w->to_plan->dims.D, b = index / k->shape[2], s = index % k->shape[2];
    double              *row = w->rows + thread * 2 * D, from_at[PE_MAX_AXES], to_at[PE_MAX_AXES];
    pe_turn_place(w->from, &w->from_pos, b, s, from_at);
    pe_turn_place(w->to, &w->to_pos, b, s, to_at);
    for (int64_t g = 0; g < k->shape[1]; g++) {
        pe_turn own_from, own_to;
        pe_load_double(row, pe_row(k, b, g, s), k->dtype, 1, D);
        pe_turn_again(row + D, row, D, pe_turn_of_head(&own_from, w->from, g), from_at,
                      pe_turn_of_head(&own_to, w->to, g), to_at);
        pe_store_double(pe_row(to, b, g, s), to->dtype, 1, row + D, D);
    }
}

/* Do both turn the same channels in the same pairs? What is paired differently cannot be turned on. */
static int pairs_are_equal(const pe_turn *a, const pe_turn *b)
{
    if (a->M != b->M || a->first != b->first || a->layout != b->layout || a->blocks != b->blocks)
        return 0;
    for (int i = 0; i <= a->blocks; i++)
        if (a->start[i] != b->start[i])
            return 0;
    return 1;
}

static posenc_status check_reroute(const posenc_plan *from, const posenc_plan *to, reroute *w,
                                   posenc_error *err)
{
    static const char *const names[2] = {"reroute: k", "reroute: to_k"};
    posenc_status            status   = check_start(from, "reroute", err);
    if (!status)
        status = check_start(to, "reroute", err);
    if (!status && (from->dims.D != to->dims.D || from->dims.G != to->dims.G))
        status = pe_fail(
            err, POSENC_SHAPE,
            "reroute: the plans have %lld and %lld key heads of width %lld and %lld; they must be equal",
            (long long)from->dims.G, (long long)to->dims.G, (long long)from->dims.D, (long long)to->dims.D);
    if (!status && !pairs_are_equal(&from->turn, &to->turn))
        status =
            pe_fail(err, POSENC_SHAPE,
                    "reroute: the plans pair different channels; dim, offset_dim and layout must be equal");
    if (!status)
        status = check_rows(to, &w->io->k, &w->io->to_k, to->dims.G, names, err);
    if (!status)
        status = pe_rotary_positions(from, &w->from_pos, "reroute: from_pos", w->io->k.shape[0],
                                     w->io->k.shape[2], err);
    if (!status)
        status =
            pe_rotary_positions(to, &w->to_pos, "reroute: to_pos", w->io->k.shape[0], w->io->k.shape[2], err);
    return status;
}

posenc_status posenc_rotary_reroute(const posenc_plan *from, const posenc_plan *to,
                                    const posenc_reroute_io *io, void *workspace, posenc_error *err)
{
    pe_arena    old_arena, arena;
    pe_numbers  numbers;
    pe_run_turn old, now;
    if (!from || !to || !io || !io->k.data)
        return pe_fail(err, POSENC_ARGUMENT,
                       "reroute: from, to and io must not be NULL, and k must have data");
    reroute       w      = {.to_plan  = to,
                            .io       = io,
                            .from_pos = plain_positions(&io->from_pos),
                            .to_pos   = plain_positions(&io->to_pos)};
    posenc_status status = check_reroute(from, to, &w, err);
    if (status)
        return status;
    const int64_t L = io->k.shape[2];
    status = open_run(from, io->from_params, NULL, pe_rotary_length(0, &w.from_pos, L), "reroute", &numbers,
                      &old, workspace, &old_arena, err);
    if (!status)
        status = open_run(to, io->to_params, NULL, pe_rotary_length(0, &w.to_pos, L), "reroute", &numbers,
                          &now, (char *)workspace + posenc_plan_workspace(from, POSENC_FORWARD), &arena, err);
    if (status)
        return status;
    w.from = old.keys;
    w.to   = now.keys;
    w.rows = pe_take_doubles(&arena, to->threads * 2 * to->dims.D);
    pe_parallel_for(io->k.shape[0] * L, to->threads, reroute_element, &w);
    return pe_done(err);
}

/* ---- what a rotation consists of ---- */

/* Are the frequencies known without parameters? */
static int is_known(const pe_turn *turn)
{
    return turn->M == 0 || !isnan(turn->w[0]);
}

posenc_status posenc_rotary_frequencies(const posenc_plan *plan, double *w, int64_t *pairs, double *magnitude,
                                        posenc_error *err)
{
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ARGUMENT, "frequencies: plan and pairs must not be NULL");
    const posenc_status status = check_start(plan, "frequencies", err);
    if (status)
        return status;
    if (w && !is_known(&plan->turn))
        return pe_fail(err, POSENC_UNSUPPORTED,
                       "frequencies: those of %s are parameters; posenc_rotary_pairs takes them",
                       plan->e->spec);
    *pairs = plan->turn.M;
    if (w)
        memcpy(w, plan->turn.w, (size_t)plan->turn.M * sizeof *w);
    if (magnitude)
        *magnitude = plan->turn.growth ? NAN : plan->turn.magnitude;
    return pe_done(err);
}

posenc_status posenc_rotary_pairs(const posenc_plan *plan, const posenc_tensor *params, double length,
                                  posenc_rotary_pair *pairs, void *workspace, posenc_error *err)
{
    pe_arena    arena;
    pe_numbers  numbers;
    pe_run_turn run;
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ARGUMENT, "pairs: plan and pairs must not be NULL");
    posenc_status status = check_start(plan, "pairs", err);
    if (!status)
        status = open_run(plan, params, NULL, length, "pairs", &numbers, &run, workspace, &arena, err);
    if (status)
        return status;
    const pe_turn *turn = run.queries;
    for (int64_t m = 0; m < turn->M; m++) {
        pe_turn_channels(turn, turn->layout, m, pairs[m].from);
        pe_turn_channels(turn, turn->layout_out, m, pairs[m].to);
        pairs[m].coordinate = turn->is_matrix ? -1 : turn->axis[m];
        pairs[m].w          = turn->is_matrix ? (double)NAN : turn->w[m];
    }
    return pe_done(err);
}

/* [B,L,...] of positions: an array's own, and its length where only that is asked. */
static posenc_status check_places(const posenc_plan *plan, posenc_positions *pos, const posenc_tensor *angle,
                                  const posenc_tensor *temperature, posenc_error *err)
{
    const int64_t        any[3] = {-1, -1, plan->turn.heads * plan->turn.M};
    const posenc_tensor *first  = angle->data ? angle : temperature;
    posenc_status status = angle->data ? pe_check_output(angle, "angles: angle", 3, any, err) : POSENC_OK;
    if (!status && temperature->data)
        status =
            pe_check_output(temperature, "angles: temperature", 2, angle->data ? angle->shape : any, err);
    if (!status && (!first->data || (angle->data && angle->dtype != POSENC_F64) ||
                    (temperature->data && temperature->dtype != POSENC_F64)))
        status = pe_fail(err, POSENC_DTYPE, "angles: angle or temperature must have data, and both be F64");
    return status ? status
                  : pe_rotary_positions(plan, pos, "angles: pos", first->shape[0], first->shape[1], err);
}

static double *f64_at(const posenc_tensor *t, int64_t b, int64_t s)
{
    return (double *)t->data + b * t->stride[0] + s * t->stride[1];
}

posenc_status posenc_rotary_angles(const posenc_plan *plan, const posenc_tensor *params,
                                   const posenc_positions *caller, const posenc_tensor *angle,
                                   const posenc_tensor *temperature, void *workspace, posenc_error *err)
{
    pe_arena            arena;
    pe_numbers          numbers;
    pe_run_turn         run;
    const posenc_tensor none = {0};
    if (!plan || !caller)
        return pe_fail(err, POSENC_ARGUMENT, "angles: plan and pos must not be NULL");
    posenc_positions pos    = plain_positions(caller);
    posenc_status    status = check_start(plan, "angles", err);
    angle                   = angle ? angle : &none;
    temperature             = temperature ? temperature : &none;
    if (!status)
        status = check_places(plan, &pos, angle, temperature, err);
    if (status)
        return status;
    const int64_t B = (angle->data ? angle : temperature)->shape[0],
                  L = (angle->data ? angle : temperature)->shape[1];
    status = open_run(plan, params, NULL, pe_rotary_length(0, &pos, L), "angles", &numbers, &run, workspace,
                      &arena, err);
    if (status)
        return status;
    double *row = pe_take_doubles(&arena, plan->dims.D);
    for (int64_t e = 0; e < B * L; e++) {
        double at[PE_MAX_AXES];
        pe_turn_place(run.queries, &pos, e / L, e % L, at);
        for (int64_t h = 0; angle->data && h < run.queries->heads; h++) {
            pe_turn own;
            pe_turn_angles(pe_turn_of_head(&own, run.queries, h), at, row);
            for (int64_t m = 0; m < run.queries->M; m++)
                f64_at(angle, e / L, e % L)[(h * run.queries->M + m) * angle->stride[2]] = row[m];
        }
        if (temperature->data)
            *f64_at(temperature, e / L, e % L) = pe_turn_temperature(run.queries, at);
    }
    return pe_done(err);
}
