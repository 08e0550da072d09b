/* SPDX-License-Identifier: MIT */
/* posenc_rows, its backward and its sizes: check, then hand to the pass over rows (engine/rows/rows.h). */
#include <math.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/tensor.h"
#include "engine/rows/rows.h"

/* Over all items and coordinates. */
static pe_extent extent_of(const pe_rows_run *r)
{
    const double first = r->pos.array.data ? 0 : r->first; /* a whole number */
    pe_extent    all   = {INFINITY, -INFINITY, 1};
    for (int64_t b = 0; b < pe_positions_batches(&r->pos); b++) {
        const pe_extent e = pe_positions_extent(&r->pos, b, r->L);
        all.low           = fmin(all.low, e.low + first);
        all.high          = fmax(all.high, e.high + first);
        all.whole         = all.whole && e.whole;
    }
    return all;
}

/* A range of token numbers, of which the room makes places. */
static posenc_status check_tokens(const posenc_plan *plan, const pe_extent *e, posenc_error *err)
{
    const int64_t tokens = plan->row_tokens;
    if (!e->whole || e->low < 0 || e->high >= (double)tokens)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "rows: pos runs from %g to %g; for %s it must hold whole token numbers from 0 to %lld",
                       e->low, e->high, plan->parts[POSENC_PLACE_INPUT].room->info.name,
                       (long long)tokens - 1);
    return POSENC_OK;
}

/* Each first coordinate must be the id of a word. */
static posenc_status check_ids(const posenc_plan *plan, const pe_rows_run *r, posenc_error *err)
{
    const pe_resolved *part = &plan->parts[POSENC_PLACE_INPUT];
    const int64_t      ids  = plan->row_ids;
    for (int64_t b = 0; b < pe_positions_batches(&r->pos); b++)
        for (int64_t s = 0; s < r->L; s++) {
            const double id = pe_positions_at(&r->pos, b, s);
            if (!(id >= 0 && id < (double)ids && id == floor(id)))
                return pe_fail(err, POSENC_ERROR_RANGE,
                               "rows: pos[%lld,%lld] is %g; for %s it must be a word's id, 0 to %lld",
                               (long long)b, (long long)s, id, part->room->info.name, (long long)ids - 1);
        }
    return POSENC_OK;
}

static posenc_status check_extent(const posenc_plan *plan, const pe_rows_run *r, posenc_error *err)
{
    const pe_resolved *part  = &plan->parts[POSENC_PLACE_INPUT];
    const int          range = !r->pos.array.data;
    const pe_extent    e     = extent_of(r);
    if (range && r->locate)
        return check_tokens(plan, &e, err);
    if (range && r->N > 1)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "rows: pos is a range; a position of %s has %lld coordinates: give an array [L,%lld]",
                       part->room->info.name, (long long)r->N, (long long)r->N);
    if (part->room->input.ids)
        return check_ids(plan, r, err);
    return part->room->input.accept ? part->room->input.accept(&part->problem, e.low, e.high, e.whole, err)
                                    : POSENC_OK;
}

static posenc_status require_part(const posenc_encoding *e, posenc_error *err)
{
    if (e->parts[POSENC_PLACE_INPUT].room)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "rows: %s has no part at place input", e->spec);
}

posenc_status posenc_rows_tokens(const posenc_encoding *e, const posenc_dims *dims, int64_t *tokens,
                                 posenc_error *err)
{
    pe_resolved   r;
    posenc_status status;
    if (!e || !dims || !tokens)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rows: e, dims and tokens must not be NULL");
    const pe_chosen  *part = &e->parts[POSENC_PLACE_INPUT];
    const posenc_dims full = pe_encoding_full_dims(dims);
    if ((status = require_part(e, err)) || (status = pe_encoding_resolve(&r, part, &full, err)))
        return status;
    *tokens = part->room->input.tokens ? pe_encoding_whole(&r, &full, part->room->input.tokens) : 0;
    return pe_done(err);
}

int64_t posenc_rows_width(const posenc_plan *plan)
{
    return plan ? plan->row_width : 0;
}

/* Everything but tensors, which differ between the two directions. */
static pe_rows_run make_run(const posenc_plan *plan, const pe_team *team)
{
    const pe_resolved *part = &plan->parts[POSENC_PLACE_INPUT];
    pe_rows_run        r    = {0};
    r.width                 = posenc_rows_width(plan);
    r.N                     = part->room->coordinates ? part->room->coordinates(part->set) : 1;
    r.first                 = part->room->input.first ? part->room->input.first(&part->problem) : 0;
    r.locate                = part->room->input.locate;
    r.rows                  = part->room->input.rows;
    r.rows_back             = part->room->input.rows_back;
    r.waves                 = plan->waves;
    r.blank                 = plan->waves_blank;
    r.sequence              = part->room->input.sequence;
    r.team                  = *team;
    r.kernels               = plan->kernels;
    return r;
}

size_t pe_rows_bytes(const posenc_plan *plan, int threads, int backward)
{
    pe_arena    arena = {0};
    pe_numbers  numbers;
    pe_rows_run r = make_run(plan, &(pe_team){.threads = threads});
    pe_numbers_load(&numbers, plan, &(pe_numbers_of){.places = 1 << POSENC_PLACE_INPUT}, &arena);
    r.part = pe_numbers_part(plan, POSENC_PLACE_INPUT, &numbers, 0);
    if (backward)
        pe_rows_backward_lay_out(&r, &arena);
    else
        pe_rows_forward_lay_out(&r, &arena);
    return arena.used;
}

static posenc_status start_run(const posenc_plan *plan, pe_rows_run *r, const posenc_tensor *main,
                               const char *name, int is_output, const posenc_rows_in *in,
                               const posenc_tensor *dparams, posenc_error *err)
{
    posenc_status status = require_part(plan->e, err);
    if (status)
        return status;
    *r                   = make_run(plan, &(pe_team){.threads = 1}); /* until there is a workspace */
    const int64_t any[3] = {-1, -1, r->width};
    if ((status = is_output ? pe_tensor_check_output(main, name, 3, any, err)
                            : pe_tensor_check(main, name, 3, any, err)))
        return status;
    r->B   = main->shape[0];
    r->L   = main->shape[1];
    r->pos = in->pos.array.data ? pe_positions_view(&in->pos, r->N) : pe_positions_with_defaults(&in->pos);
    if ((status = pe_positions_check(&r->pos, "rows: pos", r->B, r->L, r->N, err)) ||
        (!pe_tensor_is_empty(main) && (status = check_extent(plan, r, err))))
        return status;
    return pe_numbers_check(plan, 1 << POSENC_PLACE_INPUT,
                            (pe_param_source){.params = in->params, .bound = in->bound}, dparams, "rows",
                            err);
}

/* The first parameter of the input part whose gradient is asked for, or -1. */
static int first_asked(const posenc_plan *plan, const posenc_tensor *dparams)
{
    for (int i = 0; dparams && i < plan->e->param_count; i++)
        if (plan->e->params[i].place == POSENC_PLACE_INPUT && dparams[i].data)
            return i;
    return -1;
}

/* Gradients of the input part that are asked for, though its settings have none. */
static posenc_status check_gradient(const posenc_plan *plan, const posenc_tensor *dparams, posenc_error *err)
{
    const pe_resolved *part   = &plan->parts[POSENC_PLACE_INPUT];
    const char        *reason = part->room->no_gradient ? part->room->no_gradient(part->set) : NULL;
    const int          asked  = first_asked(plan, dparams);
    if (!reason || asked < 0)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "rows: %s has no gradient for %s: %s",
                   part->room->info.name, plan->e->names[asked], reason);
}

static posenc_status open_workspace(pe_opened *run, const posenc_plan *plan, const posenc_workspace *work,
                                    int is_backward, posenc_error *err)
{
    const int       threads = pe_run_threads(plan, work);
    const pe_wanted wanted  = {"rows", threads, pe_rows_bytes(plan, threads, is_backward), 0};
    return pe_run_open(run, plan, work, &wanted, err);
}

static const posenc_rows_in *read_in(posenc_rows_in *copy, const posenc_rows_in *in, posenc_error *err)
{
    return pe_given_read(copy, in, PE_GIVEN(posenc_rows_in, x), "rows", "in", err);
}

posenc_status posenc_rows(const posenc_plan *plan, const posenc_rows_in *in, posenc_tensor *y,
                          const posenc_workspace *work, posenc_error *err)
{
    pe_opened      run;
    pe_numbers     numbers;
    pe_rows_run    r;
    posenc_rows_in copy;
    posenc_status  status;
    if (!plan || !in || !y)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rows: plan, in and y must not be NULL");
    if (!(in = read_in(&copy, in, err)))
        return POSENC_ERROR_ARGUMENT;
    if ((status = start_run(plan, &r, y, "rows: y", 1, in, NULL, err)) ||
        (in->x.data && (status = pe_tensor_check(&in->x, "rows: x", 3, y->shape, err))) ||
        (status = pe_overlap_check(y, "rows: y", &in->x, "x", 1, err)))
        return status;
    if (in->x.data && !pe_tensor_is_float(in->x.dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "rows: x is %s; it must be F32, F64, F16 or BF16",
                       pe_tensor_dtype_name(in->x.dtype));
    if (pe_tensor_is_empty(y))
        return pe_done(err);
    if ((status = open_workspace(&run, plan, work, 0, err)))
        return status;
    r.team = run.team;
    pe_numbers_load(&numbers, plan,
                    &(pe_numbers_of){1 << POSENC_PLACE_INPUT,
                                     {.params = in->params, .bound = in->bound},
                                     NULL,
                                     PE_NUMBERS_BOTH},
                    &run.arena);
    r.part  = pe_numbers_part(plan, POSENC_PLACE_INPUT, &numbers, 0);
    r.x     = in->x;
    r.y     = *y;
    r.ready = in->bound ? in->bound->rows : NULL;
    pe_rows_forward_run(&r, &run.arena);
    return pe_run_done(&run.team, "rows", err);
}

posenc_status posenc_rows_backward(const posenc_plan *plan, const posenc_rows_in *in,
                                   const posenc_rows_grad *grad, const posenc_workspace *work,
                                   posenc_error *err)
{
    pe_opened        run;
    pe_numbers       numbers;
    pe_rows_run      r;
    posenc_rows_in   copy;
    posenc_rows_grad grad_copy;
    posenc_status    status;
    if (!plan || !in || !grad)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rows: plan, in and grad must not be NULL");
    if (!(in = read_in(&copy, in, err)) ||
        !(grad = pe_given_read(&grad_copy, grad, PE_GIVEN(posenc_rows_grad, dy), "rows", "grad", err)))
        return POSENC_ERROR_ARGUMENT;
    if ((status = start_run(plan, &r, &grad->dy, "rows: dy", 0, in, grad->dparams, err)) ||
        (grad->dx.data && (status = pe_tensor_check_output(&grad->dx, "rows: dx", 3, grad->dy.shape, err))) ||
        (status = pe_overlap_check(&grad->dx, "rows: dx", &grad->dy, "dy", 1, err)) ||
        (status = check_gradient(plan, grad->dparams, err)) ||
        (status = pe_numbers_check_apart(plan, 1 << POSENC_PLACE_INPUT, grad->dparams,
                                         (const pe_named[]){{&grad->dx, "dx"}, {&grad->dy, "dy"}}, 2, "rows",
                                         err)))
        return status;
    if (pe_tensor_is_empty(&grad->dy))
        return pe_done(err);
    if ((status = open_workspace(&run, plan, work, 1, err)))
        return status;
    r.team = run.team;
    pe_numbers_load(&numbers, plan,
                    &(pe_numbers_of){1 << POSENC_PLACE_INPUT,
                                     {.params = in->params, .bound = in->bound},
                                     grad->dparams,
                                     PE_NUMBERS_BOTH},
                    &run.arena);
    r.part = pe_numbers_part(plan, POSENC_PLACE_INPUT, &numbers, first_asked(plan, grad->dparams) >= 0);
    r.x    = grad->dy;
    r.y    = grad->dx;
    pe_rows_backward_run(&r, &run.arena);
    const posenc_status done = pe_run_done(&run.team, "rows", err);
    if (!done)
        pe_numbers_add(&numbers, plan, grad->dparams);
    return done;
}
