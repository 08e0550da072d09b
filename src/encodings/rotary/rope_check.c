/* SPDX-License-Identifier: MIT */
/* Which settings of rope fit together, and which parameters they call for. Contract: rope.h. */
#include "rope.h"

#include "engine/ggml.h"

/* ---- what fits together ---- */

/* Settings without which a schedule has no meaning. */
static const struct {
    pe_schedule schedule;
    int         setting;
} needs[] = {
    {PE_LINEAR, FACTOR},           {PE_NTK, ALPHA},
    {PE_NTK_MIXED, FACTOR},        {PE_DYNAMIC, FACTOR},
    {PE_DYNAMIC, MAX_LENGTH},      {PE_YARN, FACTOR},
    {PE_YARN, ORIGINAL_LENGTH},    {PE_LONGROPE, ORIGINAL_LENGTH},
    {PE_LLAMA3, FACTOR},           {PE_LLAMA3, LOW_FREQ_FACTOR},
    {PE_LLAMA3, HIGH_FREQ_FACTOR}, {PE_LLAMA3, ORIGINAL_LENGTH},
    {PE_PIXEL, MAX_FREQ},          {PE_PROPORTIONAL, PARTIAL_ROTARY_FACTOR},
};

static posenc_status check_schedule(const pe_problem *p, posenc_error *err)
{
    const pe_value   *set      = p->set;
    const pe_schedule schedule = (pe_schedule)set[SCHEDULE].integer;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i].schedule == schedule && !set[needs[i].setting].given)
            return pe_fail(err, POSENC_SETTING, "rope: this schedule needs %s; give %s=..., a number of %s",
                           pe_rope_settings[needs[i].setting].name, pe_rope_settings[needs[i].setting].name,
                           pe_rope_settings[needs[i].setting].range);
    if (schedule == PE_LONGROPE && !set[FACTOR].given && !set[MAX_LENGTH].given)
        return pe_fail(err, POSENC_SETTING,
                       "rope: schedule=longrope needs factor or max_length; give one of them");
    if (schedule == PE_PERIOD && set[MIN_PERIOD].given != set[MAX_PERIOD].given)
        return pe_fail(err, POSENC_SETTING,
                       "rope: schedule=period takes min_period and max_period together, or base");
    return POSENC_OK;
}

/* A list of one pair has no exponent dim/(dim-2). */
static posenc_status check_lists(const pe_problem *p, const pe_axes *x, posenc_error *err)
{
    const int64_t schedule = p->set[SCHEDULE].integer;
    for (int n = 0; (schedule == PE_NTK || schedule == PE_DYNAMIC) && n < x->N; n++)
        if (pe_axis_width(x, n) == 2)
            return pe_fail(
                err, POSENC_SETTING,
                "rope: schedules ntk and dynamic need 2 pairs in a list at least; dim=%lld gives 1",
                (long long)p->set[DIM].integer);
    return POSENC_OK;
}

static posenc_status check_heads(const pe_problem *p, posenc_error *err)
{
    if (!p->set[PER_HEAD].integer)
        return POSENC_OK;
    if (p->set[AXIS_RULE].integer != PE_MATRIX)
        return pe_fail(
            err, POSENC_SETTING,
            "rope: per_head=yes is for axis_rule=matrix, whose frequencies are free; choose it, with "
            "axes=1 for one coordinate");
    if (p->G != p->H)
        return pe_fail(
            err, POSENC_SETTING,
            "rope: per_head=yes needs as many key heads as heads, %lld, not %lld: a key meets queries "
            "of one head only",
            (long long)p->H, (long long)p->G);
    return POSENC_OK;
}

/* What ggml can be told: engine/ggml.h. */
static posenc_status check_ggml(const pe_problem *p, const pe_axes *x, posenc_error *err)
{
    const pe_rotary_run  none  = {NULL, 0};
    const pe_frequencies f     = pe_rope_frequencies(p, &none);
    const char          *lacks = pe_ggml_lacks(&f);
    if (p->set[ANGLES].integer != PE_GGML)
        return POSENC_OK;
    if (x->rule == PE_MATRIX)
        return pe_fail(err, POSENC_SETTING,
                       "rope: angles=ggml has no axis_rule=matrix; choose exact or float32");
    if (lacks)
        return pe_fail(err, POSENC_SETTING, "rope: angles=ggml %s", lacks);
    if (pe_ggml_divides(f.schedule) && p->set[HAS_FREQ_FACTORS].integer)
        return pe_fail(err, POSENC_SETTING,
                       "rope: angles=ggml has one list of divisors, which this schedule fills; leave out "
                       "freq_factors=yes, or choose schedule=default");
    for (int n = 0; (f.schedule == PE_YARN || pe_ggml_divides(f.schedule)) && n < x->N; n++)
        if (pe_axis_width(x, n) != 2 * x->M)
            return pe_fail(
                err, POSENC_SETTING,
                "rope: angles=ggml has this schedule for one list over all pairs; choose an axis_rule "
                "of sections, or angles=exact or float32");
    return POSENC_OK;
}

static posenc_status check_numbers(const pe_problem *p, posenc_error *err)
{
    const pe_value *set    = p->set;
    const int64_t   angles = set[ANGLES].integer, schedule = set[SCHEDULE].integer;
    if (set[HAS_INV_FREQ32].integer && (angles != PE_FLOAT32 || set[AXIS_RULE].integer == PE_MATRIX))
        return pe_fail(err, POSENC_SETTING, "rope: inv_freq32=yes is for angles=float32 without a matrix");
    if (set[HAS_THETA_SCALE32].integer && angles != PE_GGML)
        return pe_fail(err, POSENC_SETTING, "rope: theta_scale32=yes is for angles=ggml");
    if (set[AXIS_RULE].integer == PE_MATRIX && schedule != PE_DEFAULT && schedule != PE_EXPLICIT)
        return pe_fail(
            err, POSENC_SETTING,
            "rope: axis_rule=matrix brings its own frequencies; leave out the schedule, or say explicit");
    return POSENC_OK;
}

posenc_status pe_rope_check(const pe_problem *p, posenc_error *err)
{
    const int64_t dim = p->set[DIM].integer, offset = p->set[OFFSET_DIM].integer;
    const pe_axes x = pe_rope_axes(p);
    if (dim % 2 || dim > p->D)
        return pe_fail(err, POSENC_SETTING, "rope: dim=%lld must be even and at most the head width %lld",
                       (long long)dim, (long long)p->D);
    if (offset > p->D - dim)
        return pe_fail(err, POSENC_SETTING,
                       "rope: offset_dim=%lld and dim=%lld end beyond the head width %lld", (long long)offset,
                       (long long)dim, (long long)p->D);
    posenc_status status;
    if ((status = pe_axes_check(&x, "rope", err)) || (status = check_schedule(p, err)) ||
        (status = check_lists(p, &x, err)) || (status = check_heads(p, err)) ||
        (status = check_ggml(p, &x, err)))
        return status;
    return check_numbers(p, err);
}
