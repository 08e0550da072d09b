/* SPDX-License-Identifier: MIT */
/*
 * bound.c: posenc_plan_bind - parameters made ready once, for all runs with them
 *
 * What a run makes of its parameters before it looks at its inputs: numbers in double, what rooms derive of
 * them, tables by distance and by position (tiled/ready.h), a rotation, rows that follow from each other.
 * Runs take it from here as they would from their workspace. A bound keeps what it needs of its plan
 * (likeness.c), not the plan, so either may be freed first.
 */
#include <string.h>

#include "api/objects.h"
#include "base/memory.h"
#include "base/tensor.h"

/* ---- parameters ---- */

/* Places whose parameters are given: all or none of each. */
static int places_of(const posenc_plan *plan, const posenc_tensor *params)
{
    int places = 0;
    for (int i = 0; i < plan->e->param_count; i++)
        if (params && params[i].data)
            places |= 1 << plan->e->params[i].place;
    return places;
}

/* Copies of the parameters, in double, or as they are where members read them as they lie (by pair: no copy);
   counts on an arena without memory. */
static void copy_params(posenc_bound *to, const posenc_plan *plan, const posenc_tensor *params,
                        pe_arena *arena)
{
    for (int i = 0; i < plan->e->param_count; i++) {
        const pe_param_place at   = plan->e->params[i];
        const pe_stay        stay = pe_numbers_stay(plan, at);
        const int64_t        size = plan->sizes[at.place][at.local];
        to->tensors[i]            = params[i];
        if (!(to->places >> at.place & 1) || stay == PE_STAYS_BY_PAIR)
            continue;
        if (stay == PE_CONVERTED)
            to->tensors[i].dtype = POSENC_DTYPE_F64;
        const size_t bytes  = (size_t)size * posenc_dtype_size(to->tensors[i].dtype);
        to->tensors[i].data = pe_arena_take(arena, bytes);
        if (!arena->memory)
            continue;
        if (stay == PE_CONVERTED)
            pe_tensor_load_double(to->tensors[i].data, params[i].data, params[i].dtype, 1, size);
        else
            memcpy(to->tensors[i].data, params[i].data, bytes);
    }
}

/* ---- tables by distance ---- */

/* Are the parameters of this place there, or has it none? */
static int is_complete(const posenc_bound *of, const posenc_plan *plan, int place)
{
    for (int i = 0; i < plan->e->param_count; i++)
        if (plan->e->params[i].place == place)
            return of->places >> place & 1;
    return 1;
}

/* May a run ask for these distances? */
static int reaches(const posenc_plan *plan, double low, double high)
{
    const pe_span span = {.q_high = high > 0 ? high : 0,
                          .k_high = low < 0 ? -low : 0,
                          .t_low  = (int64_t)low,
                          .t_high = (int64_t)high,
                          .whole  = 1};
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_resolved *part = &plan->parts[place];
        if (part->room && part->room->attention.reach &&
            part->room->attention.reach(&part->problem, &span, NULL))
            return 0;
    }
    return 1;
}

/* From 0 towards `far`, as far as runs may go. */
static int64_t farthest(const posenc_plan *plan, int64_t far)
{
    int64_t good = 0, bad = far + (far < 0 ? -1 : 1);
    if (reaches(plan, (double)(far < 0 ? far : 0), (double)(far > 0 ? far : 0)))
        return far;
    while (bad - good > 1 || good - bad > 1) {
        const int64_t middle = good + (bad - good) / 2;
        if (reaches(plan, (double)(middle < 0 ? middle : 0), (double)(middle > 0 ? middle : 0)))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* Attention as far as a bound knows it, and the distances and positions that it has tables for. */
static pe_attention attention_of(const posenc_bound *of, const posenc_plan *plan, pe_ready_extent *extent)
{
    const posenc_options *o     = &plan->options;
    const pe_reach        reach = pe_positions_reach(o->mask, o->window);
    pe_attention          a     = pe_attend_of(plan);
    int64_t               most  = plan->dims.Lq > plan->dims.Lk ? plan->dims.Lq : plan->dims.Lk;
    most                        = (o->max_distances ? o->max_distances : most) - 1;
    a.team                      = (pe_team){plan->threads, o->parallel_for, o->parallel_context, NULL};
    a.parts[PE_SCORE]           = pe_numbers_part(plan, POSENC_PLACE_SCORE, &of->numbers, 0);
    a.parts[PE_WEIGHT]          = pe_numbers_part(plan, POSENC_PLACE_WEIGHT, &of->numbers, 0);
    *extent                     = (pe_ready_extent){1, 0, 0};
    if (plan->dims.D == 0 || o->executor == POSENC_EXECUTOR_REFERENCE ||
        !is_complete(of, plan, POSENC_PLACE_SCORE) || !is_complete(of, plan, POSENC_PLACE_WEIGHT) ||
        !reaches(plan, 0, 0))
        return a;
    extent->positions = farthest(plan, most) + 1;
    if (!pe_uses_distance(a.terms))
        return a;
    extent->low  = farthest(plan, reach.low < -most ? -most : reach.low);
    extent->high = farthest(plan, reach.high > most ? most : reach.high);
    return a;
}

/* ---- the input part's, where rows follow from each other ---- */

static const pe_sequence *sequence_of(const posenc_bound *of, const posenc_plan *plan)
{
    const pe_encoding *room = plan->parts[POSENC_PLACE_INPUT].room;
    return room && room->input.sequence.rows && is_complete(of, plan, POSENC_PLACE_INPUT)
               ? &room->input.sequence
               : NULL;
}

static void lay_out_rows(posenc_bound *to, const posenc_plan *plan, pe_arena *arena)
{
    const pe_sequence *room = sequence_of(to, plan);
    if (room)
        to->rows =
            pe_arena_doubles(arena, room->rows(&plan->parts[POSENC_PLACE_INPUT].problem) * plan->row_width);
}

static void fill_rows(const posenc_bound *to, const posenc_plan *plan, const pe_team *team, pe_arena *lent)
{
    const pe_sequence *room = sequence_of(to, plan);
    const pe_part      part = pe_numbers_part(plan, POSENC_PLACE_INPUT, &to->numbers, 0);
    if (!room)
        return;
    pe_sequence_table t = pe_sequence_lay_out(room, &part, plan->row_width, plan->kernels, team, 0, lent);
    t.rows              = to->rows;
    if (lent->memory)
        pe_sequence_make(&t, room->rows(part.p));
}

/* ---- all of it ---- */

/* Tables, with memory for the time of making them. */
static posenc_status make_tables(posenc_bound *to, const posenc_plan *plan, posenc_error *err)
{
    pe_ready_extent    extent;
    const pe_attention a    = attention_of(to, plan, &extent);
    pe_arena           lent = {0};
    pe_ready_fill(&to->ready, &a, &lent);
    fill_rows(to, plan, &a.team, &lent);
    if (!lent.used)
        return POSENC_OK;
    lent.memory = pe_memory_create(&plan->allocator, lent.used);
    if (!lent.memory)
        return pe_fail(err, POSENC_ERROR_MEMORY, "bind: out of memory for %zu bytes", lent.used);
    void *memory = lent.memory;
    lent.used    = 0;
    pe_ready_fill(&to->ready, &a, &lent);
    fill_rows(to, plan, &a.team, &lent);
    pe_memory_free(&plan->allocator, memory);
    return POSENC_OK;
}

/* Everything that a bound holds, tables without their numbers; counts on an arena without memory. */
static void lay_out(posenc_bound *to, const posenc_plan *plan, const posenc_tensor *params, pe_arena *arena)
{
    pe_ready_extent extent;
    copy_params(to, plan, params, arena);
    pe_numbers_load(&to->numbers, plan,
                    &(pe_numbers_of){to->places, {.params = to->tensors}, NULL, PE_NUMBERS_FORWARD}, arena);
    const pe_attention a = attention_of(to, plan, &extent);
    to->ready            = pe_ready_lay_out(&a, &extent, arena);
    lay_out_rows(to, plan, arena);
    if (plan->rotary.depends_on_run && !plan->rotary.depends_on_length &&
        is_complete(to, plan, POSENC_PLACE_ROTARY))
        pe_rotary_make(&to->rotation, plan, &to->numbers, 0, arena);
}

posenc_status posenc_plan_bind(posenc_bound **bound, const posenc_plan *plan, const posenc_tensor *params,
                               posenc_error *err)
{
    posenc_bound  counted = {0};
    pe_arena      arena   = {0};
    posenc_status status;
    if (bound)
        *bound = NULL;
    if (!bound || !plan || (!params && plan->e->param_count))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "bind: bound, plan and params must not be NULL");
    counted.places = places_of(plan, params);
    if ((status =
             pe_numbers_check(plan, counted.places, (pe_param_source){.params = params}, NULL, "bind", err)))
        return status;
    pe_arena_take(&arena, sizeof **bound);
    lay_out(&counted, plan, params, &arena);
    posenc_bound *made = pe_memory_zeros_create(&plan->allocator, arena.used);
    if (!made)
        return pe_fail(err, POSENC_ERROR_MEMORY, "bind: out of memory for %zu bytes", arena.used);
    pe_likeness_note(&made->plan, plan);
    made->places = counted.places;
    arena        = (pe_arena){(char *)made, 0};
    pe_arena_take(&arena, sizeof *made);
    lay_out(made, plan, params, &arena);
    if ((status = make_tables(made, plan, err))) {
        posenc_bound_free(made);
        return status;
    }
    *bound = made;
    return pe_done(err);
}

void posenc_bound_free(posenc_bound *bound)
{
    if (!bound)
        return;
    const posenc_allocator to = bound->plan.allocator;
    pe_memory_free(&to, bound);
}
