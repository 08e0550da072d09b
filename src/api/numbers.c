/* SPDX-License-Identifier: MIT */
/*
 * numbers.c: the caller's parameters on their way in and gradients on their way out
 *
 * Rooms see double. F64 parameters are used where they lie, F32 ones are converted into the workspace.
 * Gradients are summed in double in the workspace and added once to the caller's tensors.
 */
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "base/tensor.h"

/* Is parameter `index` of one of these places? */
static int is_of(const posenc_plan *plan, int places, int index)
{
    return places >> plan->e->params[index].place & 1;
}

/* Is it what the plan knows that it must be? Otherwise pe_encoding_check_param says what is wrong. */
static int is_right(const posenc_plan *plan, int index, const posenc_tensor *t)
{
    const pe_shape *shape = &plan->shapes[index];
    if (!t->data || t->ndim != shape->ndim || (t->dtype != POSENC_DTYPE_F32 && t->dtype != POSENC_DTYPE_F64))
        return 0;
    return !memcmp(t->shape, shape->sizes, (size_t)shape->ndim * sizeof *t->shape) &&
           pe_tensor_is_aligned(t) && pe_tensor_is_contiguous(t);
}

posenc_status pe_numbers_check_apart(const posenc_plan *plan, int places, const posenc_tensor *dparams,
                                     const pe_named *others, int count, const char *who, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; dparams && i < plan->e->param_count; i++) {
        char name[2 * PE_MAX_NAME];
        if (!is_of(plan, places, i) || !dparams[i].data)
            continue;
        snprintf(name, sizeof name, "%s: gradient of %s", who, plan->e->names[i]);
        if ((status = pe_overlap_check_apart(&(pe_named){&dparams[i], name}, 1, others, count, err)))
            return status;
    }
    return status;
}

/* Of each other. */
static posenc_status check_gradients_apart(const posenc_plan *plan, int places, const posenc_tensor *dparams,
                                           const char *who, posenc_error *err)
{
    pe_named all[PE_MAX_PARAMS];
    char     names[PE_MAX_PARAMS][2 * PE_MAX_NAME];
    int      n = 0;
    for (int i = 0; dparams && i < plan->e->param_count; i++) {
        if (!is_of(plan, places, i))
            continue;
        snprintf(names[n], sizeof names[n], "%s: gradient of %s", who, plan->e->names[i]);
        all[n] = (pe_named){&dparams[i], names[n]};
        n++;
    }
    return pe_overlap_check_apart(all, n, NULL, 0, err);
}

posenc_status pe_numbers_check(const posenc_plan *plan, int places, pe_param_source given,
                               const posenc_tensor *dparams, const char *who, posenc_error *err)
{
    posenc_status status = given.bound ? pe_likeness_check(given.bound, plan, places, who, err) : POSENC_OK;
    for (int i = 0; !status && i < plan->e->param_count; i++) {
        if (!is_of(plan, places, i))
            continue;
        if (!given.bound && !given.params)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: params is NULL, but %s has parameter %s", who,
                           plan->e->spec, plan->e->names[i]);
        if (!given.bound && !is_right(plan, i, &given.params[i]))
            status = pe_encoding_check_param(plan->e, &plan->dims, i, &given.params[i], who, err);
        if (!status && dparams && dparams[i].data)
            status = pe_encoding_check_param(plan->e, &plan->dims, i, &dparams[i], who, err);
    }
    for (int i = 0; !status && dparams && given.params && !given.bound && i < plan->e->param_count; i++)
        if (is_of(plan, places, i))
            status = pe_numbers_check_apart(plan, places, dparams,
                                            &(pe_named){&given.params[i], plan->e->names[i]}, 1, who, err);
    return status ? status : check_gradients_apart(plan, places, dparams, who, err);
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

static int64_t derived_size(const posenc_plan *plan, int place)
{
    const pe_encoding *room = plan->parts[place].room;
    return room && room->attention.derived ? plan->sizes[place][room->info.param_count] : 0;
}

/* Is it at least not converted for few queries? Members that look rows up read some of them; but what a hook,
   a preparation or something derived reads, it reads in double, unless the room says otherwise. */
static int few_read_in_place(const posenc_plan *plan, pe_param_place at)
{
    const pe_owner owner = at.place == POSENC_PLACE_WEIGHT ? PE_WEIGHT : PE_SCORE;
    if (at.place != POSENC_PLACE_SCORE && at.place != POSENC_PLACE_WEIGHT)
        return 0;
    if (plan->parts[at.place].room->attention.in_place >> at.local & 1)
        return 1;
    if (owner == PE_SCORE && (plan->terms.hook.visit || plan->terms.prepare.fill))
        return 0;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m = pe_member(&plan->terms, kind);
        if (m.index && !m.load && m.owner == owner && m.param == at.local && !derived_size(plan, at.place))
            return 1;
    }
    return 0;
}

/* Numbers that are there already, or NULL. */
static const pe_numbers *loaded_in(pe_param_source given)
{
    return given.loaded ? given.loaded : given.bound ? &given.bound->numbers : NULL;
}

/* What a room makes of its parameters, one place after them; its cotangents only where a parameter's are
   wanted. */
static void load_derived(pe_numbers *n, const posenc_plan *plan, int place, const pe_numbers_of *of,
                         pe_arena *arena)
{
    const pe_resolved *part = &plan->parts[place];
    const int64_t      size = derived_size(plan, place),
                  most      = part->room ? part->room->attention.derived_for_many : 0;
    if (!size || (of->use == PE_NUMBERS_FEW && most && size >= most))
        return;
    const int count  = part->room->info.param_count;
    int       wanted = is_any(of->given);
    for (int i = 0; i < count; i++)
        wanted |= n->dpar[place][i] != NULL;
    if (wanted && of->use == PE_NUMBERS_BOTH)
        n->dpar[place][count] = pe_arena_zeros(arena, size);
    if (loaded_in(of->given)) {
        n->par[place][count] = loaded_in(of->given)->par[place][count];
        return;
    }
    double *made = pe_arena_doubles(arena, size);
    if (made)
        part->room->attention.derive(&n->problem[place], n->par[place], made);
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

/* One parameter. */
static void load_one(pe_numbers *n, const posenc_plan *plan, int i, const pe_numbers_of *of, pe_arena *arena)
{
    const pe_param_place at       = plan->e->params[i];
    const int64_t        size     = plan->sizes[at.place][at.local];
    const pe_numbers    *ready    = loaded_in(of->given);
    const posenc_tensor *t        = ready              ? ready->tensor[at.place][at.local]
                                    : of->given.params ? &of->given.params[i]
                                                       : NULL;
    posenc_tensor       *dparam   = of->dparams && of->dparams[i].data ? &of->dparams[i] : NULL;
    n->tensor[at.place][at.local] = t;
    if (pe_numbers_stay(plan, at)) {
        n->dtensor[at.place][at.local] = dparam;
        return;
    }
    if (of->use == PE_NUMBERS_BOTH && (dparam || is_any(of->given)))
        n->dpar[at.place][at.local] = pe_arena_zeros(arena, size);
    if (ready)
        n->par[at.place][at.local] = ready->par[at.place][at.local];
    else if (of->use != PE_NUMBERS_FEW || !few_read_in_place(plan, at))
        n->par[at.place][at.local] = load_numbers(t, size, arena);
    else if (t && t->dtype == POSENC_DTYPE_F64)
        n->par[at.place][at.local] = t->data;
}

static void clear(pe_numbers *n, const posenc_plan *plan, int place)
{
    memset(n->par[place], 0, sizeof n->par[place]);
    memset(n->dpar[place], 0, sizeof n->dpar[place]);
    memset(n->tensor[place], 0, sizeof n->tensor[place]);
    memset(n->dtensor[place], 0, sizeof n->dtensor[place]);
    n->problem[place]        = plan->parts[place].problem;
    n->problem[place].tensor = n->tensor[place];
}

void pe_numbers_load(pe_numbers *n, const posenc_plan *plan, const pe_numbers_of *of, pe_arena *arena)
{
    n->bound = of->given.bound;
    for (int place = 0; place < PE_PLACES; place++)
        if (plan->parts[place].room)
            clear(n, plan, place);
    for (int i = 0; i < plan->e->param_count; i++)
        if (is_of(plan, of->places, i))
            load_one(n, plan, i, of, arena);
    for (int place = 0; place < PE_PLACES; place++)
        if (of->places >> place & 1)
            load_derived(n, plan, place, of, arena);
}

static void fold_derived(const pe_numbers *n, const posenc_plan *plan, int place)
{
    const pe_resolved *part = &plan->parts[place];
    if (!part->room || !part->room->attention.derive_back)
        return;
    const int count = part->room->info.param_count;
    if (n->dpar[place][count])
        part->room->attention.derive_back(&n->problem[place], n->par[place], n->par[place][count],
                                          n->dpar[place][count], n->dpar[place]);
}

void pe_numbers_add(const pe_numbers *n, const posenc_plan *plan, posenc_tensor *dparams)
{
    for (int place = 0; dparams && place < PE_PLACES; place++)
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

pe_part pe_numbers_part(const posenc_plan *plan, int place, const pe_numbers *n, int gradients)
{
    pe_part            part = {0};
    const pe_encoding *room = plan->parts[place].room;
    if (!room)
        return part;
    part.p       = &n->problem[place];
    part.par     = n->par[place];
    part.dpar    = gradients ? n->dpar[place] : NULL;
    part.tensor  = n->tensor[place];
    part.dtensor = gradients ? n->dtensor[place] : NULL;
    part.count   = room->info.param_count + (room->attention.derived != NULL);
    part.sizes   = plan->sizes[place];
    return part;
}
