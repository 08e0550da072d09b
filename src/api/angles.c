/* SPDX-License-Identifier: MIT */
/*
 * angles.c: what a rotation consists of: frequencies, pairs, angles and temperatures
 *
 * For whoever rotates elsewhere, explains or draws: the numbers that posenc_rotate rotates by, in double and
 * not reduced. Frequencies are the plan's own and need no run; pairs and angles may depend on parameters and
 * length, so they open one.
 */
#include <math.h>
#include <string.h>

#include "api/objects.h"
#include "base/positions.h"
#include "base/tensor.h"

posenc_status posenc_rotary_frequencies(const posenc_plan *plan, double *w, int64_t *pairs, double *magnitude,
                                        posenc_error *err)
{
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "frequencies: plan and pairs must not be NULL");
    const posenc_status status = pe_rotary_start(plan, "frequencies", err);
    if (status)
        return status;
    if (w && plan->rotary.M > 0 && isnan(plan->rotary.w[0])) /* not known without parameters */
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "frequencies: %s takes them from its parameters; call posenc_rotary_pairs with those",
                       plan->e->spec);
    *pairs = plan->rotary.M;
    if (w)
        memcpy(w, plan->rotary.w, (size_t)plan->rotary.M * sizeof *w);
    if (magnitude)
        *magnitude = plan->rotary.growth ? NAN : plan->rotary.magnitude;
    return pe_done(err);
}

posenc_status posenc_rotary_pairs(const posenc_plan *plan, const posenc_tensor *params, double length,
                                  posenc_rotary_pair *pairs, void *workspace, posenc_error *err)
{
    pe_arena        arena;
    pe_numbers      numbers;
    pe_run_rotation run;
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "pairs: plan and pairs must not be NULL");
    posenc_status status = pe_rotary_start(plan, "pairs", err);
    if (!status)
        status = pe_rotary_open(plan, params, NULL, length, "pairs", &numbers, &run, workspace, &arena, err);
    if (status)
        return status;
    const pe_rotary *turn = run.queries;
    for (int64_t m = 0; m < turn->M; m++) {
        pe_rotation_channels(turn, turn->layout, m, pairs[m].from);
        pe_rotation_channels(turn, turn->layout_out, m, pairs[m].to);
        pairs[m].coordinate = turn->is_matrix ? -1 : turn->axis[m];
        pairs[m].w          = turn->is_matrix ? (double)NAN : turn->w[m];
    }
    return pe_done(err);
}

/* [B,L,...] of positions: an array's own, and its length where only that is asked. */
static posenc_status check_places(const posenc_plan *plan, posenc_positions *pos, const posenc_tensor *angle,
                                  const posenc_tensor *temperature, posenc_error *err)
{
    const int64_t        any[3] = {-1, -1, plan->rotary.heads * plan->rotary.M};
    const posenc_tensor *first  = angle->data ? angle : temperature;
    posenc_status        status =
        angle->data ? pe_tensor_check_output(angle, "angles: angle", 3, any, err) : POSENC_OK;
    if (!status && temperature->data)
        status = pe_tensor_check_output(temperature, "angles: temperature", 2,
                                        angle->data ? angle->shape : any, err);
    if (!status && (!first->data || (angle->data && angle->dtype != POSENC_DTYPE_F64) ||
                    (temperature->data && temperature->dtype != POSENC_DTYPE_F64)))
        status =
            pe_fail(err, POSENC_ERROR_DTYPE, "angles: angle, temperature or both must have data, as F64");
    return status ? status
                  : pe_rotary_positions(plan, pos, "angles: pos", first->shape[0], first->shape[1], err);
}

static double *f64_at(const posenc_tensor *t, int64_t b, int64_t s)
{
    return (double *)t->data + b * t->stride[0] + s * t->stride[1];
}

posenc_status posenc_rotary_angles(const posenc_plan *plan, const posenc_rotary_in *in,
                                   const posenc_tensor *angle, const posenc_tensor *temperature,
                                   void *workspace, posenc_error *err)
{
    pe_arena            arena;
    pe_numbers          numbers;
    pe_run_rotation     run;
    const posenc_tensor none = {0};
    if (!plan || !in)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "angles: plan and in must not be NULL");
    posenc_positions pos    = pe_positions_with_defaults(&in->pos);
    posenc_status    status = pe_rotary_start(plan, "angles", err);
    angle                   = angle ? angle : &none;
    temperature             = temperature ? temperature : &none;
    if (!status)
        status = check_places(plan, &pos, angle, temperature, err);
    if (status)
        return status;
    const int64_t B = (angle->data ? angle : temperature)->shape[0],
                  L = (angle->data ? angle : temperature)->shape[1];
    status = pe_rotary_open(plan, in->params, NULL, pe_rotary_length(0, &pos, L), "angles", &numbers, &run,
                            workspace, &arena, err);
    if (status)
        return status;
    double *row = pe_arena_doubles(&arena, plan->dims.D);
    for (int64_t e = 0; e < B * L; e++) {
        double at[PE_MAX_AXES];
        pe_rotation_place(run.queries, &pos, e / L, e % L, at);
        for (int64_t h = 0; angle->data && h < run.queries->heads; h++) {
            pe_rotary own;
            pe_rotation_angles(pe_rotation_of_head(&own, run.queries, h), at, row);
            for (int64_t m = 0; m < run.queries->M; m++)
                f64_at(angle, e / L, e % L)[(h * run.queries->M + m) * angle->stride[2]] = row[m];
        }
        if (temperature->data)
            *f64_at(temperature, e / L, e % L) = pe_rotation_temperature(run.queries, at);
    }
    return pe_done(err);
}
