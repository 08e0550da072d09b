/* SPDX-License-Identifier: MIT */
/*
 * numbers.c: the caller's parameters on their way in and gradients on their way out
 *
 * Rooms see double. F64 parameters are used where they lie, F32 ones are converted into the workspace.
 * Gradients are summed in double in the workspace and added once to the caller's tensors.
 */
#include <string.h>

#include "api/objects.h"
#include "base/tensor.h"

/* Is parameter `index` of one of these places? */
static int is_of(const posenc_plan *plan, int places, int index)
{
    return places >> plan->e->params[index].place & 1;
}

posenc_status pe_numbers_check(const posenc_plan *plan, int places, pe_param_source given,
                               const posenc_tensor *dparams, const char *who, posenc_error *err)
{
    posenc_status status = given.bound ? pe_bound_check(given.bound, plan, places, who, err) : POSENC_OK;
    for (int i = 0; !status && i < plan->e->param_count; i++) {
        if (!is_of(plan, places, i))
            continue;
        if (!given.bound && !given.params)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: params is NULL, but %s has parameter %s", who,
                           plan->e->spec, plan->e->names[i]);
        if (!given.bound)
            status = pe_encoding_check_param(plan->e, &plan->dims, i, &given.params[i], who, err);
        if (!status && dparams && dparams[i].data)
            status = pe_encoding_check_param(plan->e, &plan->dims, i, &dparams[i], who, err);
    }
    return status;
}

pe_stay pe_numbers_stay(const posenc_plan *plan, pe_param_place at)
{
    const pe_owner owner = at.place == POSENC_PLACE_WEIGHT ? PE_WEIGHT : PE_SCORE;
    if (at.place != POSENC_PLACE_SCORE && at.place != POSENC_PLACE_WEIGHT)
        return PE_CONVERTED;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m = pe_member(&plan->terms, kind);
        if (m.row && m.owner == owner && m.param == at.local)
            return PE_STAYS_BY_DISTANCE;
    }
    return owner == PE_SCORE && plan->terms.pairs.matrix && plan->terms.pairs.param == at.local
               ? PE_STAYS_BY_PAIR
               : PE_CONVERTED;
}

/* Is it no run yet but any run of the plan, that counts? */
static int is_any(pe_param_source given)
{
    return !given.params && !given.bound && !given.loaded;
}

/* What a room makes of its parameters, one place after them; its cotangents only where a parameter's are
   wanted. */
/* Numbers that are there already, or NULL. */
static const pe_numbers *loaded_in(pe_param_source given)
{
    return given.loaded ? given.loaded : given.bound ? &given.bound->numbers : NULL;
}

static void load_derived(pe_numbers *n, const posenc_plan *plan, posenc_place place, pe_param_source given,
                         pe_arena *arena)
{
    const pe_resolved *part = &plan->parts[place];
    if (!part->room || !part->room->attention.derived)
        return;
    const int     count  = part->room->info.param_count;
    const int64_t size   = plan->sizes[place][count];
    int           wanted = is_any(given);
    for (int i = 0; i < count; i++)
        wanted |= n->dpar[place][i] != NULL;
    n->dpar[place][count] = wanted ? pe_arena_zeros(arena, size) : NULL;
    if (loaded_in(given)) {
        n->par[place][count] = loaded_in(given)->par[place][count];
        return;
    }
    double *made = pe_arena_doubles(arena, size);
    if (made)
        part->room->attention.derive(&part->problem, n->par[place], made);
    n->par[place][count] = made;
}

/* One parameter in double; t NULL: of any type. */
static const double *load_numbers(const posenc_tensor *t, int64_t size, pe_arena *arena)
{
    if (t && t->dtype == POSENC_DTYPE_F64)
        return t->data;
    double *wide = pe_arena_doubles(arena, size);
    if (wide)
        pe_tensor_load_double(wide, t->data, t->dtype, 1, size);
    return wide;
}

void pe_numbers_load(pe_numbers *n, const posenc_plan *plan, int places, pe_param_source given,
                     posenc_tensor *dparams, pe_arena *arena)
{
    const pe_numbers *const ready = loaded_in(given);
    memset(n, 0, sizeof *n);
    for (int i = 0; i < plan->e->param_count; i++) {
        const pe_param_place at = plan->e->params[i];
        if (!is_of(plan, places, i))
            continue;
        if (pe_numbers_stay(plan, at)) {
            n->tensor[at.place][at.local]  = ready          ? ready->tensor[at.place][at.local]
                                             : given.params ? &given.params[i]
                                                            : NULL;
            n->dtensor[at.place][at.local] = dparams && dparams[i].data ? &dparams[i] : NULL;
            continue;
        }
        const int64_t        size  = plan->sizes[at.place][at.local];
        const posenc_tensor *t     = given.params ? &given.params[i] : NULL;
        n->par[at.place][at.local] = ready ? ready->par[at.place][at.local] : load_numbers(t, size, arena);
        if (is_any(given) || (dparams && dparams[i].data))
            n->dpar[at.place][at.local] = pe_arena_zeros(arena, size);
    }
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        if (places >> place & 1)
            load_derived(n, plan, place, given, arena);
}

static void fold_derived(const pe_numbers *n, const posenc_plan *plan, posenc_place place)
{
    const pe_resolved *part = &plan->parts[place];
    if (!part->room || !part->room->attention.derive_back)
        return;
    const int count = part->room->info.param_count;
    if (n->dpar[place][count])
        part->room->attention.derive_back(&part->problem, n->par[place], n->par[place][count],
                                          n->dpar[place][count], n->dpar[place]);
}

void pe_numbers_add(const pe_numbers *n, const posenc_plan *plan, posenc_tensor *dparams)
{
    for (int place = 0; dparams && place < POSENC_PLACE_COUNT; place++)
        fold_derived(n, plan, place);
    for (int i = 0; dparams && i < plan->e->param_count; i++) {
        const pe_param_place at  = plan->e->params[i];
        const double        *sum = n->dpar[at.place][at.local];
        for (int64_t x = 0; sum && x < plan->sizes[at.place][at.local]; x++) {
            if (dparams[i].dtype == POSENC_DTYPE_F64)
                ((double *)dparams[i].data)[x] += sum[x];
            else
                ((float *)dparams[i].data)[x] += (float)sum[x];
        }
    }
}

pe_part pe_numbers_part(const posenc_plan *plan, posenc_place place, const pe_numbers *n, int gradients)
{
    pe_part            part = {0};
    const pe_encoding *room = plan->parts[place].room;
    if (!room)
        return part;
    part.p       = &plan->parts[place].problem;
    part.par     = n->par[place];
    part.dpar    = gradients ? n->dpar[place] : NULL;
    part.tensor  = n->tensor[place];
    part.dtensor = gradients ? n->dtensor[place] : NULL;
    part.count   = room->info.param_count + (room->attention.derived != NULL);
    part.sizes   = plan->sizes[place];
    return part;
}
