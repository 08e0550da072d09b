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

posenc_status pe_numbers_check(const posenc_plan *plan, int places, const posenc_tensor *params,
                               const posenc_tensor *dparams, const char *who, posenc_error *err)
{
    for (int i = 0; i < plan->e->param_count; i++) {
        if (!is_of(plan, places, i))
            continue;
        if (!params)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: params is NULL, but %s has parameter %s", who,
                           plan->e->spec, plan->e->names[i]);
        posenc_status status = pe_encoding_check_param(plan->e, &plan->dims, i, &params[i], who, err);
        if (!status && dparams && dparams[i].data)
            status = pe_encoding_check_param(plan->e, &plan->dims, i, &dparams[i], who, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* Does a member read this parameter where it lies? Then it is neither converted nor summed here. */
static int is_read_in_place(const posenc_plan *plan, pe_param_place at)
{
    const pe_owner owner = at.place == POSENC_PLACE_WEIGHT ? PE_WEIGHT : PE_SCORE;
    if (at.place != POSENC_PLACE_SCORE && at.place != POSENC_PLACE_WEIGHT)
        return 0;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m = pe_member(&plan->terms, kind);
        if (m.row && m.owner == owner && m.param == at.local)
            return 1;
    }
    return owner == PE_SCORE && plan->terms.pairs.matrix && plan->terms.pairs.param == at.local;
}

/* What a room makes of its parameters, one place after them; its cotangents only where a parameter's are
   wanted. */
static void load_derived(pe_numbers *n, const posenc_plan *plan, posenc_place place, pe_arena *arena)
{
    const pe_resolved *part = &plan->parts[place];
    if (!part->room || !part->room->attention.derived)
        return;
    const int     count = part->room->info.param_count;
    const int64_t size  = plan->sizes[place][count];
    double       *made = pe_arena_doubles(arena, size), *sum = pe_arena_doubles(arena, size);
    if (!arena->memory)
        return;
    part->room->attention.derive(&part->problem, n->par[place], made);
    n->par[place][count] = made;
    for (int i = 0; i < count; i++)
        if (n->dpar[place][i])
            n->dpar[place][count] = sum;
    memset(sum, 0, (size_t)size * sizeof *sum);
}

void pe_numbers_load(pe_numbers *n, const posenc_plan *plan, int places, const posenc_tensor *params,
                     posenc_tensor *dparams, pe_arena *arena)
{
    memset(n, 0, sizeof *n);
    for (int i = 0; i < plan->e->param_count; i++) {
        const pe_param_place at = plan->e->params[i];
        if (!is_of(plan, places, i))
            continue;
        if (is_read_in_place(plan, at)) {
            n->tensor[at.place][at.local]  = params ? &params[i] : NULL;
            n->dtensor[at.place][at.local] = dparams && dparams[i].data ? &dparams[i] : NULL;
            continue;
        }
        const int64_t size = plan->sizes[at.place][at.local];
        double       *wide = pe_arena_doubles(arena, size), *sum = pe_arena_doubles(arena, size);
        if (!arena->memory)
            continue;
        n->par[at.place][at.local] = params[i].dtype == POSENC_DTYPE_F64 ? params[i].data : wide;
        if (params[i].dtype != POSENC_DTYPE_F64)
            pe_tensor_load_double(wide, params[i].data, params[i].dtype, 1, size);
        if (dparams && dparams[i].data) {
            memset(sum, 0, (size_t)size * sizeof *sum);
            n->dpar[at.place][at.local] = sum;
        }
    }
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        if (places >> place & 1)
            load_derived(n, plan, place, arena);
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
