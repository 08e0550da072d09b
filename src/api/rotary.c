/* SPDX-License-Identifier: MIT */
/*
 * rotary.c: the rotation of one run, its positions, and gradients of its parameters
 *
 * Most rotations are made once, with the plan. Where frequencies are parameters of the caller, or follow the
 * length of the sequence, each run asks the room again, into its own workspace.
 */
#include <math.h>
#include <string.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/parallel.h"
#include "base/tensor.h"

static const pe_resolved *rotary_of(const posenc_plan *plan)
{
    return &plan->parts[POSENC_PLACE_ROTARY];
}

int posenc_rotary_coordinates(const posenc_plan *plan)
{
    return plan ? pe_plan_coordinates(plan) : 1;
}

int64_t posenc_rotary_heads(const posenc_plan *plan)
{
    return plan && rotary_of(plan)->room ? plan->rotary.heads : 1;
}

void pe_rotary_make(pe_run_rotation *t, const posenc_plan *plan, const pe_numbers *n, double length,
                    pe_arena *arena)
{
    const pe_resolved  *rotary = rotary_of(plan);
    const pe_rotary_run run    = {n->par[POSENC_PLACE_ROTARY], length};
    if (n->bound && n->bound->rotation.queries) {
        t->queries = n->bound->rotation.queries;
        t->keys    = n->bound->rotation.keys;
        return;
    }
    t->queries = rotary->room ? &plan->rotary : NULL;
    t->keys    = rotary->room ? &plan->rotary_keys : NULL;
    if (!plan->rotary.depends_on_run)
        return;
    pe_rotation_lay_out(&t->made[0], arena, plan->dims.D, plan->rotary.axes, plan->rotary.heads);
    if (!arena->memory)
        return;
    rotary->room->rotary.fill(&rotary->problem, &run, &t->made[0]);
    pe_rotation_finish(&t->made[0]);
    t->made[1] = pe_rotation_for_keys(&t->made[0]);
    t->queries = &t->made[0];
    t->keys    = &t->made[1];
}

posenc_status pe_rotary_check(const pe_run_rotation *t, const posenc_plan *plan, const char *who,
                              posenc_error *err)
{
    const int64_t m = t->queries ? t->queries->unusable : -1;
    if (m < 0)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "%s: the frequency of pair %lld of %s is not a finite number up to 2^20; correct its parameters", who,
        (long long)m, rotary_of(plan)->room->info.name);
}

const posenc_rotary_in *pe_rotary_read_in(posenc_rotary_in *copy, const posenc_rotary_in *in, const char *who,
                                          posenc_error *err)
{
    return pe_given_read(copy, in, PE_GIVEN(posenc_rotary_in, pos), who, "in", err);
}

posenc_positions pe_rotary_read_positions(const posenc_plan *plan, const posenc_positions *given)
{
    return given->array.data ? pe_positions_view(given, posenc_rotary_coordinates(plan))
                             : pe_positions_with_defaults(given);
}

double pe_rotary_length(double length, const posenc_positions *pos, int64_t L)
{
    for (int64_t b = 0; L > 0 && b < pe_positions_batches(pos); b++)
        length = fmax(length, pe_positions_extent(pos, b, L).high + 1);
    return length;
}

/* ---- how a run opens ---- */

posenc_status pe_rotary_require(const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (rotary_of(plan)->room)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "%s: %s has no part at place rotary", who, plan->e->spec);
}

posenc_status pe_rotary_require_of_one(const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (plan->rotary.map.kind == PE_MAP_NONE)
        return pe_rotary_require(plan, who, err);
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "%s: %s turns a pair of tokens by a distance of both, which no rotation of one is; "
                   "only attention has it",
                   who, plan->e->spec);
}

posenc_status pe_rotary_require_positions(const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (plan->rotary.content == PE_CONTENT_NONE)
        return pe_rotary_require(plan, who, err);
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "%s: angles of %s follow a token input, not positions: rotate or attend with that input",
                   who, plan->e->spec);
}

/* Real numbers of a shape that is right, rotated where they lie: nothing to find fault with, at one look. */
static int is_usual_in_place(const posenc_tensor *from, const posenc_tensor *to)
{
    int     repeats = 0;
    int64_t differs = 0;
    for (int a = 0; a < 4; a++) {
        differs |= (from->shape[a] ^ to->shape[a]) | (from->stride[a] ^ to->stride[a]);
        repeats |= from->stride[a] == 0;
    }
    return !differs && !repeats && from->data == to->data && from->dtype == to->dtype && to->ndim == 4 &&
           from->stride[3] == 1 && pe_tensor_is_float(from->dtype);
}

posenc_status pe_rotary_check_rows(const posenc_plan *plan, const posenc_tensor *from,
                                   const posenc_tensor *to, int64_t heads, const char *const names[2],
                                   posenc_error *err)
{
    const int64_t shape[4] = {-1, heads, -1, plan->dims.D};
    posenc_status status   = pe_tensor_check(from, names[0], 4, shape, err);
    if (!status && to && is_usual_in_place(from, to))
        return POSENC_OK;
    const int in_place = !status && to && pe_overlap_is_same(to, from); /* then its shape is right */
    if (in_place)
        status = pe_tensor_check_written(to, names[1], err);
    else if (!status && to)
        status = pe_tensor_check_output(to, names[1], 4, from->shape, err);
    if (!status && (!pe_tensor_is_float(from->dtype) || from->stride[3] != 1))
        status = pe_fail(err, POSENC_ERROR_SHAPE, "%s must be real numbers whose last axis has stride 1",
                         names[0]);
    if (!status && to && (!pe_tensor_is_float(to->dtype) || to->stride[3] != 1))
        status = pe_fail(err, POSENC_ERROR_SHAPE,
                         "%s and %s must be real numbers whose last axis has stride 1", names[0], names[1]);
    return status || !to || in_place ? status : pe_overlap_check(to, names[1], from, names[0], 1, err);
}

enum { ROTARY = 1 << POSENC_PLACE_ROTARY };

size_t pe_rotary_bytes(const posenc_plan *plan, int threads, int backward)
{
    const size_t *bytes = plan->turn_bytes[backward];
    return bytes[0] + (size_t)threads * bytes[1];
}

posenc_status pe_rotary_open_workspace(pe_opened *run, const pe_rotary_request *r,
                                       const posenc_workspace *work, posenc_error *err)
{
    const int       threads = pe_run_threads(r->plan, work);
    const pe_wanted wanted  = {r->who, threads, pe_rotary_bytes(r->plan, threads, r->is_backward), r->taken};
    return pe_run_open(run, r->plan, work, &wanted, err);
}

posenc_status pe_rotary_open(pe_rotary_opened *run, const pe_rotary_request *r, const posenc_workspace *work,
                             posenc_error *err)
{
    posenc_status status = pe_numbers_check(r->plan, ROTARY, r->given, r->dparams, r->who, err);
    if (!status)
        status = pe_rotary_open_workspace(&run->work, r, work, err);
    if (status)
        return status;
    if (!r->plan->rotary.depends_on_run && !r->is_backward) { /* no parameter has a say */
        run->rotation.queries = &r->plan->rotary;
        run->rotation.keys    = &r->plan->rotary_keys;
        return pe_rotary_check(&run->rotation, r->plan, r->who, err);
    }
    pe_numbers_load(&run->numbers, r->plan, &(pe_numbers_of){ROTARY, r->given, r->dparams, PE_NUMBERS_BOTH},
                    &run->work.arena);
    pe_rotary_make(&run->rotation, r->plan, &run->numbers, r->length, &run->work.arena);
    return pe_rotary_check(&run->rotation, r->plan, r->who, err);
}

double *pe_rotary_lay_out_rows(const posenc_plan *plan, int threads, pe_arena *arena)
{
    return pe_arena_doubles(arena, threads * 2 * plan->dims.D);
}

/* ---- gradients of parameters ---- */

int pe_rotary_has_params(const posenc_plan *plan, const posenc_tensor *dparams)
{
    int has = 0;
    for (int i = 0; i < plan->e->param_count; i++)
        has |= plan->e->params[i].place == POSENC_PLACE_ROTARY && (!dparams || dparams[i].data);
    return has;
}

posenc_status pe_rotary_slopes_check(const posenc_plan *plan, const posenc_tensor *dparams,
                                     const posenc_tensor *dq, const posenc_tensor *dk, const char *who,
                                     posenc_error *err)
{
    const pe_resolved *rotary = rotary_of(plan);
    if (!dparams || !pe_rotary_has_params(plan, dparams))
        return POSENC_OK;
    const char *name   = rotary->room->info.name;
    const char *reason = rotary->room->no_gradient ? rotary->room->no_gradient(rotary->set) : NULL;
    if (reason)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "%s: %s has no gradient for its parameters: %s", who,
                       name, reason);
    if (plan->terms.prepare.fill)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "%s: together with %s, which prepares rows, %s has no gradient for its parameters; "
                       "leave them out of "
                       "dparams",
                       who, plan->parts[POSENC_PLACE_SCORE].room->info.name, name);
    if (!pe_tensor_is_given(dq) || !pe_tensor_is_given(dk))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%s: gradients of %s's parameters come from dq and dk; give both", who, name);
    return POSENC_OK;
}

posenc_status pe_rotary_turns_check(const posenc_plan *plan, const posenc_tensor *dq, const posenc_tensor *dk,
                                    const char *who, posenc_error *err)
{
    if (plan->terms.prepare.fill)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "%s: together with %s, which prepares rows, the token input of %s has no gradient; "
                       "leave it out of dtokens",
                       who, plan->parts[POSENC_PLACE_SCORE].room->info.name,
                       rotary_of(plan)->room->info.name);
    if (!pe_tensor_is_given(dq) || !pe_tensor_is_given(dk))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%s: the gradient of the token input of %s comes from dq and dk; give both", who,
                       rotary_of(plan)->room->info.name);
    return POSENC_OK;
}

/* Blocks of elements are summed one by one, whichever thread has them, and added in their order. */
enum { SUMS = 16 };

typedef struct slopes {
    const posenc_plan     *plan;
    const pe_rotated_side *side;
    double                *sums, *rows; /* [SUMS, heads, M, axes], [threads, 2, D] */
    int64_t                count;       /* heads * M * axes */
    double                 sign;
} slopes;

static void sum_elements(void *context, int64_t index, int thread)
{
    const slopes          *w    = context;
    const pe_rotated_side *side = w->side;
    const posenc_tensor   *x = side->x, *dx = side->dx;
    const int64_t          D = x->shape[3], all = x->shape[0] * x->shape[2], from = all * index / SUMS,
                  to    = all * (index + 1) / SUMS;
    const int64_t heads = side->rotation->heads;
    double       *sum = w->sums + index * w->count, *row = w->rows + thread * 2 * D;
    memset(sum, 0, (size_t)w->count * sizeof *sum);
    for (int64_t e = from; e < to; e++) {
        const int64_t b = e / x->shape[2], s = e % x->shape[2];
        double        at[PE_MAX_AXES];
        pe_rotation_place(side->rotation, side->pos, b, s, at);
        for (int64_t h = 0; h < x->shape[1]; h++) {
            pe_tensor_load_double(row, pe_tensor_row(x, b, h, s), x->dtype, 1, D);
            pe_tensor_load_double(row + D, pe_tensor_row(dx, b, h, s), dx->dtype, 1, D);
            pe_rotation_slopes(sum + (heads > 1 ? h : 0) * (w->count / heads), side->rotation, at, w->sign,
                               row, row + D);
        }
    }
}

void pe_rotary_slopes(const posenc_plan *plan, const pe_numbers *n, const pe_rotated_run *of, pe_arena *arena)
{
    const pe_resolved  *rotary   = rotary_of(plan);
    const pe_rotary_run run      = {n->par[POSENC_PLACE_ROTARY], of->length};
    const pe_rotary    *rotation = &plan->rotary;
    slopes w = {.plan = plan, .count = rotation->heads * rotation->M * rotation->axes, .sign = of->sign};
    if (!pe_rotary_has_params(plan, NULL))
        return;
    double *total = pe_arena_doubles(arena, w.count);
    w.sums        = pe_arena_doubles(arena, SUMS * w.count);
    w.rows        = pe_rotary_lay_out_rows(plan, of->team.threads, arena);
    int wanted    = 0;
    for (int i = 0; i < rotary->room->info.param_count; i++)
        wanted |= n->dpar[POSENC_PLACE_ROTARY][i] != NULL;
    if (!arena->memory || !wanted)
        return;
    memset(total, 0, (size_t)w.count * sizeof *total);
    for (int i = 0; i < 2; i++) {
        w.side = &of->sides[i];
        if (!w.side->x->data)
            continue;
        pe_parallel_for(SUMS, &of->team, sum_elements, &w);
        for (int64_t at = 0; at < SUMS * w.count; at++)
            total[at % w.count] += w.sums[at];
    }
    rotary->room->rotary.fold(&rotary->problem, &run, of->sides[0].rotation, total,
                              n->dpar[POSENC_PLACE_ROTARY]);
}
