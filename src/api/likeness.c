/* SPDX-License-Identifier: MIT */
/*
 * likeness.c: which plans a bound fits
 *
 * A bound may outlive its plan, and another plan may then lie where that was: so it does not keep where its
 * plan is, but what it made its tables by, and fits every plan of which that is true.
 */
#include <string.h>

#include "api/objects.h"
#include "base/status.h"

void pe_likeness_note(pe_likeness *to, const posenc_plan *plan)
{
    memcpy(to->spec, plan->e->spec, sizeof to->spec);
    to->dims          = plan->dims;
    to->options       = plan->options;
    to->allocator     = plan->allocator;
    to->kernels       = plan->kernels;
    to->max_distances = plan->max_distances;
}

static int is_alike(const pe_likeness *x, const posenc_plan *plan)
{
    const posenc_options *a = &x->options, *b = &plan->options;
    return x->kernels == plan->kernels && x->max_distances == plan->max_distances &&
           !memcmp(&x->dims, &plan->dims, sizeof x->dims) && a->executor == b->executor &&
           a->mask == b->mask && a->window == b->window && a->tile_q == b->tile_q && a->tile_k == b->tile_k &&
           !strcmp(x->spec, plan->e->spec);
}

posenc_status pe_likeness_check(const posenc_bound *bound, const posenc_plan *plan, int places,
                                const char *who, posenc_error *err)
{
    if (!is_alike(&bound->plan, plan))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%s: bound was made for another plan, of %s; it must be of this run's plan, or of one "
                       "with the same dims and options",
                       who, bound->plan.spec);
    for (int i = 0; i < plan->e->param_count; i++)
        if ((places & ~bound->places) >> plan->e->params[i].place & 1)
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "%s: bound was made without parameter %s; give it to posenc_plan_bind", who,
                           plan->e->names[i]);
    return POSENC_OK;
}
