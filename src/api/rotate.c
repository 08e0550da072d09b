/* SPDX-License-Identifier: MIT */
/*
 * rotate.c: posenc_rotate, its backward, and tables to rotate by
 *
 * All checks come first; then rows are rotated (engine/rotation/rotation.h), in blocks of positions whose
 * table serves all heads. The reference executor rotates rows in double and rounds once; else F64 rows are
 * rotated in double, others in float.
 */
#include "api/objects.h"
#include "base/parallel.h"
#include "base/positions.h"
#include "base/tensor.h"

/* Where a run would make fewer than MANY blocks they are shorter, for the threads' sake: by the shape alone,
   as the number of threads may change no bit. Each block begins with its rows, and meanwhile memory waits:
   long ones are interrupted less. */
enum {
    BLOCK   = 256,     /* positions whose table row serves all heads that are alike */
    TABLE   = 1 << 15, /* floats of their rows at most, which fit into the second cache; half as many, */
    WIDE    = 256,     /* channels, where heads have more: a run's own ladder is in its workspace too */
    LEAST   = 32,
    MANY    = 32,
    TOO_FEW = 1 << 19 /* bytes: rotated before a second thread has started */
};

/* q or k: tasks are (item, block of positions). */
typedef struct job {
    const posenc_plan      *plan;
    const pe_rotary        *rotation;
    pe_rotated              x;
    const posenc_tensor    *given; /* table of the caller; NULL: none */
    const posenc_positions *pos;
    int64_t                 block, blocks; /* positions of one, of each item */
    const pe_team          *team;
    int                     in_double, is_direct;
    float                  *tables, *rows; /* [threads, longest, width + pad], [threads, padded D] */
    double                 *wide;          /* [threads, D] */
    const pe_ladder        *ladder;        /* NULL: every row for itself */
    pe_rung                *rungs;         /* [threads] */
    const pe_attention     *turned;        /* what a token input says of angles; NULL: positions do */
    pe_side                 side;
    double                 *walks; /* [threads, PE_TURN_WALK * M] */
} job;

/* Positions of the longest block. */
static int64_t longest(const posenc_plan *plan)
{
    const int64_t D = plan->dims.D, most = D > WIDE ? TABLE / 2 : TABLE;
    int64_t       block = BLOCK;
    while (block > 1 && block * D > most)
        block /= 2;
    return block;
}

/* Floats of one thread's table; a width of 2M + 1 is D + 1 at most. */
static int64_t table_size(const posenc_plan *plan)
{
    return longest(plan) * (plan->dims.D + 1) + PE_LANES;
}

static int64_t block_of(const posenc_plan *plan, int64_t positions)
{
    const int64_t most  = longest(plan);
    int64_t       block = most < LEAST ? most : LEAST;
    while (block < most && positions >= MANY * 2 * block)
        block *= 2;
    return block;
}

/* Only the calling thread where the work is too little for more. A pointer, for a team that has just been
   written is slow to copy. */
static const pe_team *team_for(const pe_team *team, int64_t bytes)
{
    static const pe_team alone = {.threads = 1};
    return bytes < TOO_FEW ? &alone : team;
}

static void lay_out(job *j, pe_arena *arena)
{
    const int64_t threads = j->team->threads, D = j->plan->dims.D;
    j->tables = pe_arena_floats(arena, threads * table_size(j->plan));
    j->rows   = pe_arena_floats(arena, threads * (D + PE_LANES));
    j->wide   = pe_arena_doubles(arena, threads * D);
    j->walks =
        pe_arena_doubles(arena, j->plan->rotary.content ? threads * PE_TURN_WALK * j->plan->rotary.M : 0);
}

/* May runs need a ladder of their own? That of a rotation that no run changes was made with the plan. */
static int makes_ladder(const posenc_plan *plan)
{
    return plan->rotary.depends_on_run && !plan->rotary.is_matrix;
}

static pe_ladder lay_out_ladder(const posenc_plan *plan, pe_arena *arena)
{
    const int64_t width = 2 * plan->rotary.M;
    return pe_ladder_lay_out(width, pe_ladder_middle_of(width), arena);
}

/* The plan's ladder, or where the rotation is one of this run its own, if n rows are worth it. */
static void prepare_ladder(job *j, pe_ladder *own, int64_t n, pe_arena *arena)
{
    const posenc_plan *plan = j->plan;
    const int          has_it =
        plan->rotary_ladder && (j->rotation == &plan->rotary || j->rotation == &plan->rotary_keys);
    if (!(has_it || makes_ladder(plan)) || n < (has_it ? PE_LEAST_RUN : PE_LADDER_ROWS) ||
        !pe_rotation_climbs(j->rotation, j->pos))
        return;
    j->rungs  = pe_ladder_lay_out_rungs(j->team->threads, 2 * plan->rotary.M, arena);
    j->ladder = plan->rotary_ladder;
    if (has_it)
        return;
    *own = lay_out_ladder(plan, arena);
    pe_rotation_ladder(own, j->rotation, plan->kernels);
    j->ladder = own;
}

static void make_rows(const job *j, const pe_rotary *rotation, float *table, int64_t stride, int64_t b,
                      int64_t s, int64_t n, int thread, int stream)
{
    pe_rotation_fill(table, stride, rotation, j->pos, b, s, n, j->ladder,
                     j->ladder ? &j->rungs[thread] : NULL, stream, j->plan->kernels);
}

size_t pe_rotate_bytes(const posenc_plan *plan, int threads, int backward)
{
    const pe_rotated_run any    = {.team = {.threads = threads}};
    pe_attention         turned = {0};
    pe_arena             arena  = {0};
    pe_rotary_opened     run;
    job                  j = {.plan = plan, .team = &any.team};
    if (!plan->parts[POSENC_PLACE_ROTARY].room)
        return 0;
    pe_numbers_load(&run.numbers, plan, &(pe_numbers_of){.places = 1 << POSENC_PLACE_ROTARY}, &arena);
    pe_rotary_make(&run.rotation, plan, &run.numbers, 0, &arena);
    lay_out(&j, &arena);
    pe_ladder_lay_out_rungs(threads, 2 * plan->rotary.M, &arena);
    if (makes_ladder(plan))
        lay_out_ladder(plan, &arena);
    if (plan->rotary.content) {
        turned             = pe_attend_of(plan);
        turned.rotary      = &plan->rotary;
        turned.team        = any.team;
        turned.for_any_run = 1;
        pe_turn_lay_out(&turned, &arena, backward);
    }
    if (backward)
        pe_rotary_slopes(plan, &run.numbers, &any, &arena);
    else
        pe_rotary_lay_out_rows(plan, threads, &arena); /* of posenc_rotary_rerotate and _angles */
    return arena.used;
}

/* `walk`: to its angles, where a token input makes them. */
static void rotate_wide(const job *j, const pe_rotary *rotation, int64_t b, int64_t h, int64_t s,
                        pe_turn_walk *walk, double *row)
{
    const int64_t D = j->plan->dims.D;
    double        place[PE_MAX_AXES];
    if (!j->turned)
        pe_rotation_place(rotation, j->pos, b, s, place);
    const double *at = j->turned ? pe_turn_at(j->turned, walk, j->side, s) : place;
    pe_tensor_load_double(row, pe_tensor_row(j->x.from, b, h, s), j->x.from->dtype, 1, D);
    pe_rotation_row(row, D, rotation, at, j->x.sign);
    pe_tensor_store_double(pe_tensor_row(j->x.to, b, h, s), j->x.to->dtype, 1, row, D);
}

static void rotate_narrow(const job *j, const pe_rotary *rotation, int64_t b, int64_t h, int64_t s,
                          const float *table, float *row)
{
    const int64_t D = j->plan->dims.D;
    pe_tensor_load_float(row, pe_tensor_row(j->x.from, b, h, s), j->x.from->dtype, 1, D);
    pe_rotation_rows(row, D, D, rotation, table, 1, (float)j->x.sign, j->plan->kernels);
    pe_tensor_store_float(pe_tensor_row(j->x.to, b, h, s), j->x.to->dtype, 1, row, D);
}

/* Element s of item b in the caller's table. */
static const float *given_row(const job *j, int64_t b, int64_t s)
{
    const posenc_tensor *t = j->given;
    return (const float *)t->data + (t->shape[0] == 1 ? 0 : b * t->stride[0]) + s * t->stride[1];
}

static void rotate_directly(const job *j, int64_t b, int64_t s0, int64_t n, int thread)
{
    if (j->given) {
        pe_rotation_heads(&j->x, j->rotation, b, s0, n, given_row(j, b, s0), j->given->stride[1],
                          j->plan->kernels);
        return;
    }
    const int64_t width = pe_rotation_width(j->rotation);
    float        *table = j->tables + thread * table_size(j->plan);
    make_rows(j, j->rotation, table, width, b, s0, n, thread, 0);
    pe_rotation_heads(&j->x, j->rotation, b, s0, n, table, width, j->plan->kernels);
}

/* How many heads of the side share a row of cosines and sines. */
static int64_t heads_alike(const job *j)
{
    const int64_t rows = j->turned ? pe_turn_rows(j->turned) : j->rotation->heads;
    return j->x.from->shape[1] / rows;
}

static void make_turned_rows(const job *j, const pe_rotary *rotation, float *table, int64_t s, int64_t n,
                             pe_turn_walk *walk)
{
    for (int64_t i = 0; i < n; i++)
        pe_rotation_fill_at(table + i * pe_rotation_width(rotation), rotation,
                            pe_turn_at(j->turned, walk, j->side, s + i), j->plan->kernels);
}

static void rotate_through_rows(const job *j, int64_t b, int64_t s0, int64_t n, int thread)
{
    const int64_t D = j->plan->dims.D, width = pe_rotation_width(j->rotation);
    float        *table = j->tables + thread * table_size(j->plan), *row = j->rows + thread * (D + PE_LANES);
    const int64_t alike = heads_alike(j);
    for (int64_t h = 0; h < j->x.from->shape[1]; h++) {
        pe_rotary        own;
        const pe_rotary *rotation = pe_rotation_of_head(&own, j->rotation, h);
        pe_turn_walk     walk     = {0};
        if (j->turned)
            walk =
                pe_turn_start(j->turned, b, pe_turn_row(j->turned, h * j->plan->dims.H / j->x.from->shape[1]),
                              j->walks + thread * PE_TURN_WALK * j->rotation->M);
        if (!j->in_double && !j->given && h % alike == 0) {
            if (j->turned)
                make_turned_rows(j, rotation, table, s0, n, &walk);
            else
                make_rows(j, rotation, table, width, b, s0, n, thread, 0);
        }
        for (int64_t s = 0; s < n; s++) {
            if (j->in_double)
                rotate_wide(j, rotation, b, h, s0 + s, &walk, j->wide + thread * D);
            else
                rotate_narrow(j, rotation, b, h, s0 + s,
                              j->given ? given_row(j, b, s0 + s) : table + s * width, row);
        }
    }
}

static void rotate_block(void *context, int64_t index, int thread)
{
    const job    *j = context;
    const int64_t b = j->blocks == 1 ? index : index / j->blocks, /* a division takes long beside a row */
        s0 = (index - b * j->blocks) * j->block, L = j->x.from->shape[2],
                  n = L - s0 < j->block ? L - s0 : j->block;
    if (j->is_direct)
        rotate_directly(j, b, s0, n, thread);
    else
        rotate_through_rows(j, b, s0, n, thread);
}

/* ---- checks ---- */

/* A table has a row for all heads of a token. */
static posenc_status check_heads(const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (plan->rotary.heads == 1)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "%s: a table has one row for all heads, but each head has its own frequencies "
                   "(per_head=yes); leave the table out",
                   who);
}

/* A table of the caller's for L elements of B items. */
static posenc_status check_table(const posenc_plan *plan, posenc_side side, const posenc_tensor *table,
                                 const posenc_tensor *x, const char *who, posenc_error *err)
{
    const int64_t shape[3] = {table->ndim == 3 && table->shape[0] == 1 ? 1 : x->shape[0], x->shape[2],
                              posenc_rotary_width(plan, side)};
    posenc_status status   = pe_tensor_check(table, who, 3, shape, err);
    if (!status && (table->dtype != POSENC_DTYPE_F32 || table->stride[2] != 1))
        status = pe_fail(err, POSENC_ERROR_DTYPE,
                         "%s must be F32 with stride 1 on the last axis: posenc_rotary_table", who);
    if (!status && x->dtype == POSENC_DTYPE_F64)
        status = pe_fail(err, POSENC_ERROR_DTYPE,
                         "%s is an F32 table, but the vectors to rotate are F64; leave the table out", who);
    if (!status)
        status = check_heads(plan, who, err);
    return status;
}

/* One of q and k, as a run looks at it. */
typedef struct side {
    posenc_side          side;
    int64_t              heads;
    const posenc_tensor *from, *to, *table; /* to: forward only; table: NULL where there is none */
    const posenc_tensor *dto, *dx;          /* backward only */
    posenc_positions     pos;               /* as runs read them, where reads_positions */
    const char *const   *names; /* of from and to, of the positions and the table, of dto and dx */
} side;

static const char *const names_of[2][6] = {
    {"rotate: q", "rotate: to_q", "rotate: q_pos", "rotate: q_table", "rotate: dto_q", "rotate: dq"},
    {"rotate: k", "rotate: to_k", "rotate: k_pos", "rotate: k_table", "rotate: dto_k", "rotate: dk"}};

/* Forward, a table takes the place of positions; gradients of parameters need them all the same. */
static int reads_positions(const side *s)
{
    return !s->table || !s->to;
}

/* One of q and k, and what else the caller gives of it; 0 if it has no data. */
static int find_side(side *s, posenc_side which, const posenc_plan *plan, const posenc_tensor *from,
                     const posenc_tensor *to, const posenc_tensor *table, const posenc_positions *pos)
{
    if (!pe_tensor_is_given(from))
        return 0;
    s->side  = which;
    s->heads = which == POSENC_SIDE_QUERIES ? plan->dims.H : plan->dims.G;
    s->from  = from;
    s->to    = to;
    s->table = table->data ? table : NULL;
    s->names = names_of[which];
    if (reads_positions(s))
        s->pos = pe_rotary_read_positions(plan, pos);
    return 1;
}

/* The sides that have data, as the caller gives them; returns how many. `grad` is NULL forward. */
static int find_sides(const posenc_plan *plan, const posenc_rotate_io *io, const posenc_rotate_grad *grad,
                      side sides[2])
{
    int n = find_side(&sides[0], POSENC_SIDE_QUERIES, plan, &io->q, grad ? NULL : &io->to_q, &io->q_table,
                      &io->q_pos);
    n += find_side(&sides[n], POSENC_SIDE_KEYS, plan, &io->k, grad ? NULL : &io->to_k, &io->k_table,
                   &io->k_pos);
    for (int i = 0; grad && i < n; i++) {
        sides[i].dto = sides[i].side == POSENC_SIDE_QUERIES ? &grad->dto_q : &grad->dto_k;
        sides[i].dx  = sides[i].side == POSENC_SIDE_QUERIES ? &grad->dq : &grad->dk;
    }
    return n;
}

static posenc_status check_side(const posenc_plan *plan, const side *s, posenc_error *err)
{
    posenc_status status = pe_rotary_check_rows(plan, s->from, s->to, s->heads, s->names, err);
    if (!status && s->table)
        status = check_table(plan, s->side, s->table, s->from, s->names[3], err);
    if (status || !reads_positions(s))
        return status;
    return pe_positions_check(&s->pos, s->names[2], s->from->shape[0], s->from->shape[2], plan->rotary.axes,
                              err);
}

/* A side may be rotated where it lies, and touches nothing else. */
static posenc_status check_apart(const side sides[], int count, posenc_error *err)
{
    const side   *q = &sides[0], *k = &sides[count - 1];
    posenc_status status = POSENC_OK;
    if (count == 2)
        status = pe_overlap_check(q->to, q->names[1], k->to, k->names[1], 0, err);
    for (int i = 0; !status && i < count; i++) {
        const side *s = &sides[i], *other = &sides[count - 1 - i];
        if (other != s && other->from->data != other->to->data)
            status = pe_overlap_check(s->to, s->names[1], other->from, other->names[0], 0, err);
        if (!status && other->table)
            status = pe_overlap_check(s->to, s->names[1], other->table, other->names[3], 0, err);
        if (!status && s->table && s != other)
            status = pe_overlap_check(s->to, s->names[1], s->table, s->names[3], 0, err);
    }
    return status;
}

/* Which number the token input of the rotary part has; -1: there is none. */
static int turned_by(const posenc_plan *plan)
{
    for (int i = 0; i < plan->e->token_count; i++)
        if (plan->e->tokens[i].place == POSENC_PLACE_ROTARY)
            return i;
    return -1;
}

static posenc_status check_apart_tokens(const posenc_plan *plan, const posenc_rotate_io *io,
                                        const side sides[], int count, posenc_error *err)
{
    const int            n = turned_by(plan);
    const posenc_tensor *t = io->sums && pe_tensor_is_given(&io->sums[n]) ? &io->sums[n] : &io->tokens[n];
    posenc_status        status = POSENC_OK;
    for (int i = 0; !status && i < count; i++)
        status = pe_overlap_check(sides[i].to, sides[i].names[1], t, posenc_token_name(plan->e, n), 0, err);
    return status;
}

static posenc_status check_io(const posenc_plan *plan, const posenc_rotate_io *io, const side sides[],
                              int count, posenc_error *err)
{
    posenc_status status = pe_rotary_require_of_one(plan, "rotate", err);
    if (!status && io->direction != 1 && io->direction != -1)
        status =
            pe_fail(err, POSENC_ERROR_ARGUMENT, "rotate: direction is %d; it must be 1 or -1", io->direction);
    for (int i = 0; !status && i < count; i++)
        status = check_side(plan, &sides[i], err);
    return status;
}

static int all_are_empty(const side sides[], int count)
{
    return pe_tensor_is_empty(sides[0].from) && (count == 1 || pe_tensor_is_empty(sides[1].from));
}

static double length_of(const side sides[], int count)
{
    double length = 0;
    for (int i = 0; i < count; i++)
        if (reads_positions(&sides[i]))
            length = pe_rotary_length(length, &sides[i].pos, sides[i].from->shape[2]);
    return length;
}

static void take_memory(job *j, pe_ladder *own, pe_arena arena)
{
    lay_out(j, &arena);
    if (!j->given && !j->in_double && !j->turned)
        prepare_ladder(j, own, j->x.from->shape[2], &arena);
}

/* x are the rows to rotate: those of the side, or their cotangents. */
static void rotate_side(const posenc_plan *plan, const pe_rotary *rotation, const side *s,
                        const posenc_tensor *from, const posenc_tensor *to, double sign,
                        const pe_attention *turned, const pe_opened *work)
{
    const int64_t bytes = pe_tensor_elements(from) * (int64_t)posenc_dtype_size(from->dtype);
    pe_ladder     own; /* used where rows are many */
    if (!bytes)
        return;
    job j; /* field by field: what a small run does not need would cost it more to zero than to rotate */
    j.plan        = plan;
    j.rotation    = rotation;
    j.given       = s->table;
    j.pos         = &s->pos;
    j.ladder      = NULL;
    j.turned      = turned;
    j.side        = s->side == POSENC_SIDE_KEYS ? PE_KEYS : PE_QUERIES;
    j.x.from      = from;
    j.x.to        = to;
    j.x.sign      = sign;
    j.x.far_table = s->table != NULL;
    j.in_double =
        from->dtype == POSENC_DTYPE_F64 || (plan->options.executor == POSENC_EXECUTOR_REFERENCE && !s->table);
    j.is_direct = !j.in_double && pe_rotation_stores(rotation, from->dtype, to->dtype);
    j.block     = block_of(plan, from->shape[0] * from->shape[2]);
    j.blocks    = from->shape[2] <= j.block ? 1 : (from->shape[2] + j.block - 1) / j.block;
    j.team      = team_for(&work->team, bytes);
    pe_rotation_aim(&j.x, rotation, bytes);
    if (!s->table || !j.is_direct) /* else it needs no memory of its own */
        take_memory(&j, &own, work->arena);
    pe_parallel_for(from->shape[0] * j.blocks, j.team, rotate_block, &j);
}

/* ---- runs ---- */

static const pe_rotary *rotation_of(const pe_rotary_opened *run, posenc_side of)
{
    return of == POSENC_SIDE_KEYS ? run->rotation.keys : run->rotation.queries;
}

/* The rotation of a run; where tables say all about angles the plan's own, whose pairs are those of every
   run. */
static posenc_status open_rotation(pe_rotary_opened *run, const pe_rotary_request *request,
                                   const side sides[], int count, const posenc_workspace *work,
                                   posenc_error *err)
{
    if (!sides[0].table || !sides[count - 1].table)
        return pe_rotary_open(run, request, work, err);
    run->rotation.queries = &request->plan->rotary;
    run->rotation.keys    = &request->plan->rotary_keys;
    return pe_rotary_open_workspace(&run->work, request, work, err);
}

/* ---- angles that a token input makes ---- */

static posenc_status check_lengths(const posenc_plan *plan, const pe_attention *a, posenc_error *err)
{
    const posenc_dims *d = &plan->dims;
    if (a->sizes.B <= d->B && a->sizes.Lq <= d->Lq && a->sizes.Lk <= d->Lk)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "rotate: B, Lq and Lk are %lld, %lld and %lld, but the plan was made for at most %lld, %lld "
        "and %lld",
        (long long)a->sizes.B, (long long)a->sizes.Lq, (long long)a->sizes.Lk, (long long)d->B,
        (long long)d->Lq, (long long)d->Lk);
}

/* The run as attention has it: its keys are the tokens, also where k takes no part. */
static posenc_status take_turned(pe_attention *a, const posenc_plan *plan, const posenc_rotate_io *io,
                                 posenc_tensor *dtokens, posenc_error *err)
{
    enum { PLACE = 1 << POSENC_PLACE_ROTARY };
    const int             n = turned_by(plan), with_sums = io->sums && pe_tensor_is_given(&io->sums[n]);
    const int             has_q = pe_tensor_is_given(&io->q), has_k = pe_tensor_is_given(&io->k);
    const posenc_tensor  *t     = with_sums ? &io->sums[n] : io->tokens ? &io->tokens[n] : NULL;
    const pe_tokens_given given = {io->tokens, io->sums, dtokens, t && t->ndim == 4 ? t->shape[2] : 0,
                                   PLACE,      "rotate"};
    posenc_status         status;
    if (pe_tensor_is_given(&io->q_table) || pe_tensor_is_given(&io->k_table))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "rotate: angles of %s follow a token input; leave q_table and k_table out",
                       plan->e->spec);
    *a          = pe_attend_of(plan);
    a->mask     = POSENC_MASK_NONE;
    a->sizes.B  = (has_q ? &io->q : &io->k)->shape[0];
    a->sizes.Lq = has_q ? io->q.shape[2] : 0;
    a->sizes.Lk = given.keys;
    a->q_pos    = pe_positions_with_defaults(&io->q_pos);
    a->k_pos    = pe_positions_with_defaults(&io->k_pos);
    if ((status = pe_tokens_take(a, plan, &given, err)))
        return status;
    if (has_k && (io->k.shape[0] != a->sizes.B || io->k.shape[2] != a->sizes.Lk))
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "rotate: k has %lld items of %lld tokens; token input %s has %lld of %lld",
                       (long long)io->k.shape[0], (long long)io->k.shape[2], posenc_token_name(plan->e, n),
                       (long long)a->sizes.B, (long long)a->sizes.Lk);
    if ((status = check_lengths(plan, a, err)) ||
        (status = pe_positions_check(&a->k_pos, "rotate: k_pos", a->sizes.B, a->sizes.Lk, 1, err)) ||
        (status = pe_tokens_check_order(a, plan, "rotate", err)))
        return status;
    if (dtokens && with_sums)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "rotate: the backward takes token inputs, not their sums; leave io.sums NULL");
    return dtokens ? pe_tokens_take_gradients(a, plan, &given, err) : POSENC_OK;
}

/* Its numbers; the arena of the run goes on after them. */
static const pe_attention *fill_turned(pe_attention *a, const posenc_plan *plan, pe_rotary_opened *run,
                                       int backward)
{
    if (!plan->rotary.content)
        return NULL;
    a->rotary      = run->rotation.queries;
    a->rotary_keys = run->rotation.keys;
    a->team        = run->work.team;
    pe_turn_lay_out(a, &run->work.arena, backward);
    pe_turn_fill(a);
    return a;
}

static const posenc_rotate_io *read_io(posenc_rotate_io *copy, const posenc_rotate_io *io, posenc_error *err)
{
    return pe_given_read(copy, io, PE_GIVEN(posenc_rotate_io, direction), "rotate", "io", err);
}

posenc_status posenc_rotate(const posenc_plan *plan, const posenc_rotate_io *io, const posenc_workspace *work,
                            posenc_error *err)
{
    pe_rotary_opened run;
    posenc_rotate_io copy;
    pe_attention     turned;
    side             sides[2];
    if (!plan || !io)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rotate: plan and io must not be NULL");
    if (!(io = read_io(&copy, io, err)))
        return POSENC_ERROR_ARGUMENT;
    const int count = find_sides(plan, io, NULL, sides);
    if (!count)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rotate: q or k must have data");
    posenc_status status = check_io(plan, io, sides, count, err);
    if (status || (status = check_apart(sides, count, err)) ||
        (plan->rotary.content && ((status = take_turned(&turned, plan, io, NULL, err)) ||
                                  (status = check_apart_tokens(plan, io, sides, count, err)))))
        return status;
    if (all_are_empty(sides, count))
        return pe_done(err);
    const pe_rotary_request request = {
        plan, "rotate", {.params = io->params, .bound = io->bound}, NULL, length_of(sides, count), 0, 0};
    if ((status = open_rotation(&run, &request, sides, count, work, err)))
        return status;
    const pe_attention *by = fill_turned(&turned, plan, &run, 0);
    for (int i = 0; i < count; i++)
        rotate_side(plan, rotation_of(&run, sides[i].side), &sides[i], sides[i].from, sides[i].to,
                    io->direction, by, &run.work);
    return pe_run_done(&run.work.team, "rotate", err);
}

/* ---- tables ---- */

int64_t posenc_rotary_width(const posenc_plan *plan, posenc_side of)
{
    return plan ? pe_rotation_width(of == POSENC_SIDE_KEYS ? &plan->rotary_keys : &plan->rotary) : 0;
}

typedef struct table_job {
    job                  j;
    const posenc_tensor *table;
    int                  stream;
} table_job;

enum { ROWS = 1024 }; /* of a table that one task makes */

static void fill_rows(void *context, int64_t index, int thread)
{
    const table_job     *t = context;
    const posenc_tensor *x = t->table;
    const int64_t        b = index / t->j.blocks, s = index % t->j.blocks * ROWS, rest = x->shape[1] - s;
    make_rows(&t->j, t->j.rotation, pe_tensor_row(x, b, s, 0), x->stride[1], b, s, rest < ROWS ? rest : ROWS,
              thread, t->stream);
}

static void make_table(const posenc_plan *plan, const pe_rotary *rotation, const posenc_positions *pos,
                       const posenc_tensor *table, const pe_opened *work)
{
    const int64_t rows  = table->shape[0] * table->shape[1],
                  bytes = rows * table->shape[2] * (int64_t)sizeof(float);
    pe_arena  arena     = work->arena;
    pe_ladder own;
    table_job t = {.j     = {.plan = plan, .rotation = rotation, .pos = pos, .team = &work->team},
                   .table = table};
    t.stream    = pe_ladder_streams(table, bytes, rotation->M);
    t.j.blocks  = (table->shape[1] + ROWS - 1) / ROWS;
    prepare_ladder(&t.j, &own, rows, &arena);
    pe_parallel_for(table->shape[0] * t.j.blocks, team_for(&work->team, bytes), fill_rows, &t);
}

posenc_status posenc_rotary_table(const posenc_plan *plan, posenc_side of, const posenc_rotary_in *in,
                                  posenc_tensor *table, const posenc_workspace *work, posenc_error *err)
{
    pe_rotary_opened run;
    posenc_rotary_in copy;
    if (!plan || !in || !table)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "table: plan, in and table must not be NULL");
    if (!(in = pe_rotary_read_in(&copy, in, "table", err)))
        return POSENC_ERROR_ARGUMENT;
    const int64_t          shape[3] = {-1, -1, posenc_rotary_width(plan, of)};
    const posenc_positions pos      = pe_rotary_read_positions(plan, &in->pos);
    posenc_status          status;
    if ((status = pe_rotary_require_of_one(plan, "table", err)) ||
        (status = pe_rotary_require_positions(plan, "table", err)) ||
        (status = check_heads(plan, "table", err)) ||
        (status = pe_tensor_check_output(table, "table: table", 3, shape, err)))
        return status;
    if (table->dtype != POSENC_DTYPE_F32 || table->stride[2] != 1)
        return pe_fail(err, POSENC_ERROR_DTYPE, "table: table must be F32 with stride 1 on the last axis");
    if ((status = pe_positions_check(&pos, "table: pos", table->shape[0], table->shape[1], plan->rotary.axes,
                                     err)))
        return status;
    if (pe_tensor_is_empty(table))
        return pe_done(err);
    const pe_rotary_request request = {plan,
                                       "table",
                                       {.params = in->params, .bound = in->bound},
                                       NULL,
                                       pe_rotary_length(0, &pos, table->shape[1]),
                                       0,
                                       0};
    if ((status = pe_rotary_open(&run, &request, work, err)))
        return status;
    make_table(plan, rotation_of(&run, of), &pos, table, &run.work);
    return pe_run_done(&run.work.team, "table", err);
}

/* ---- backward ---- */

/* A side's gradient may lie where its cotangent is. Gradients of parameters are sums over q and k too. */
static posenc_status check_apart_back(const posenc_plan *plan, const posenc_rotate_io *io,
                                      const posenc_tensor *dparams, const side sides[], int count,
                                      posenc_error *err)
{
    enum { ROTARY = 1 << POSENC_PLACE_ROTARY };
    const int     slopes = dparams && pe_rotary_has_params(plan, dparams) && !all_are_empty(sides, count);
    posenc_status status =
        slopes ? pe_numbers_check(plan, ROTARY, (pe_param_source){.params = io->params, .bound = io->bound},
                                  dparams, "rotate", err)
               : POSENC_OK;
    for (int i = 0; !status && i < count; i++) {
        const side    *s = &sides[i], *other = &sides[count - 1 - i];
        const pe_named all[3] = {{s->from, s->names[0]},
                                 {s->dx, s->names[5]},
                                 {s->dx->data ? s->dto : s->dx, s->names[4]}};
        if (other != s)
            status = pe_overlap_check_apart(&(pe_named){other->dx, other->names[5]}, 1, all + !slopes,
                                            3 - !slopes, err);
        if (!status && slopes)
            status = pe_overlap_check(s->dx, s->names[5], s->from, s->names[0], 0, err);
        if (!status && slopes)
            status = pe_numbers_check_apart(plan, ROTARY, dparams, all, 3, "rotate", err);
    }
    return status;
}

static posenc_status check_cotangents(const posenc_plan *plan, const posenc_rotate_io *io,
                                      const posenc_tensor *dparams, const side sides[], int count,
                                      posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; !status && i < count; i++) {
        const side *s = &sides[i];
        if (!s->dx->data)
            continue;
        status = pe_rotary_check_rows(plan, s->dto, s->dx, s->heads, s->names + 4, err);
        if (!status)
            status = pe_tensor_check(s->dx, s->names[5], 4, s->from->shape, err);
    }
    /* a side that takes no part in the run needs no gradient either */
    if (!status)
        status = pe_rotary_slopes_check(plan, dparams, sides[0].dx, sides[count - 1].dx, "rotate", err);
    return status ? status : check_apart_back(plan, io, dparams, sides, count, err);
}

/* The gradient of a token input is made of x and dx, when dx is complete. */
static posenc_status check_turned_back(const posenc_plan *plan, const posenc_rotate_io *io,
                                       const posenc_tensor *dtoken, const side sides[], int count,
                                       posenc_error *err)
{
    const posenc_tensor *token = &io->tokens[turned_by(plan)];
    const char *const    name  = posenc_token_name(plan->e, turned_by(plan));
    posenc_status status       = pe_rotary_turns_check(plan, sides[0].dx, sides[count - 1].dx, "rotate", err);
    for (int i = 0; !status && i < count; i++) {
        const side    *s     = &sides[i];
        const pe_named out   = {dtoken, "rotate: gradient of the token input"};
        const pe_named all[] = {{s->from, s->names[0]}, {s->dx, s->names[5]}, {s->dto, s->names[4]}};
        if (!(status = pe_overlap_check_apart(&out, 1, all, 3, err)) &&
            !(status = pe_overlap_check(s->dx, s->names[5], s->from, s->names[0], 0, err)))
            status = pe_overlap_check(s->dx, s->names[5], token, name, 0, err);
    }
    return status ? status
                  : pe_overlap_check(dtoken, "rotate: gradient of the token input", token, name, 0, err);
}

posenc_status posenc_rotate_backward(const posenc_plan *plan, const posenc_rotate_io *io,
                                     const posenc_rotate_grad *grad, const posenc_workspace *work,
                                     posenc_error *err)
{
    pe_rotary_opened   run;
    posenc_rotate_io   copy;
    posenc_rotate_grad grad_copy;
    pe_attention       turned;
    side               sides[2];
    if (!plan || !io || !grad)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rotate: plan, io and grad must not be NULL");
    if (!(io = read_io(&copy, io, err)) ||
        !(grad = pe_given_read(&grad_copy, grad, PE_GIVEN(posenc_rotate_grad, dto_k), "rotate", "grad", err)))
        return POSENC_ERROR_ARGUMENT;
    const int count = find_sides(plan, io, grad, sides);
    if (!count)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rotate: q or k must have data");
    posenc_status status = check_io(plan, io, sides, count, err);
    if (status || (status = check_cotangents(plan, io, grad->dparams, sides, count, err)) ||
        (plan->rotary.content && (status = take_turned(&turned, plan, io, grad->dtokens, err))) ||
        (plan->rotary.content && turned.turn.dtoken &&
         (status = check_turned_back(plan, io, turned.turn.dtoken, sides, count, err))))
        return status;
    if (all_are_empty(sides, count)) {
        if (plan->rotary.content && turned.turn.dtoken)
            pe_items_clear(turned.turn.dtoken, 0);
        return pe_done(err);
    }
    const double            length  = length_of(sides, count);
    const pe_rotary_request request = {
        plan, "rotate", {.params = io->params, .bound = io->bound}, grad->dparams, length, 1, 0};
    if ((status = pe_rotary_open(&run, &request, work, err)))
        return status;
    const pe_attention *turned_by_run = fill_turned(&turned, plan, &run, 1);
    const posenc_tensor none          = {0};
    pe_turn_back        angles        = {.sign = io->direction};
    pe_rotated_run      back          = {.length = length, .sign = io->direction, .team = run.work.team};
    for (int n = 0; n < 2; n++) /* also one that is not there */
        back.sides[n] = (pe_rotated_side){.x = &none, .rotation = rotation_of(&run, (posenc_side)n)};
    for (int i = 0; i < count; i++) {
        const side      *s  = &sides[i];
        const pe_rotary *by = rotation_of(&run, s->side);
        back.sides[s->side] = (pe_rotated_side){s->from, s->dx, &s->pos, by};
        if (s->dx->data)
            rotate_side(plan, by, s, s->dto, s->dx, -io->direction, turned_by_run, &run.work);
        *(s->side == POSENC_SIDE_KEYS ? &angles.k : &angles.q)   = s->from;
        *(s->side == POSENC_SIDE_KEYS ? &angles.dk : &angles.dq) = s->dx;
    }
    if (turned_by_run)
        pe_turn_back_run(turned_by_run, &angles);
    pe_rotary_slopes(plan, &run.numbers, &back, &run.work.arena);
    if ((status = pe_run_done(&run.work.team, "rotate", err)))
        return status;
    pe_numbers_add(&run.numbers, plan, grad->dparams);
    return POSENC_OK;
}
