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
    const posenc_status status = pe_rotary_require(plan, "frequencies", err);
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
                                  posenc_rotary_pair *pairs, const posenc_workspace *work, posenc_error *err)
{
    pe_rotary_opened        run;
    const pe_rotary_request request = {plan, "pairs", {.params = params}, NULL, length, 0, 0};
    posenc_status           status;
    if (!plan || !pairs)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "pairs: plan and pairs must not be NULL");
    if ((status = pe_rotary_require(plan, "pairs", err)) ||
        (status = pe_rotary_open(&run, &request, work, err)))
        return status;
    const pe_rotary *rotary = run.rotation.queries;
    for (int64_t m = 0; m < rotary->M; m++) {
        pe_rotation_channels(rotary, rotary->layout, m, pairs[m].from);
        pe_rotation_channels(rotary, rotary->layout_out, m, pairs[m].to);
        pairs[m].coordinate = rotary->is_matrix ? -1 : rotary->axis[m];
        pairs[m].w          = rotary->is_matrix ? (double)NAN : rotary->w[m];
    }
    return pe_done(err);
}

/* angle [B,L,heads*M] and temperature [B,L], one of which may have no data; then positions for B and L. */
static posenc_status check_places(const posenc_plan *plan, const posenc_positions *pos,
                                  const posenc_tensor *angle, const posenc_tensor *temperature,
                                  posenc_error *err)
{
    const int64_t        any[3] = {-1, -1, plan->rotary.heads * plan->rotary.M};
    const posenc_tensor *first  = pe_tensor_is_given(angle) ? angle : temperature;
    posenc_status        status =
        pe_tensor_is_given(angle) ? pe_tensor_check_output(angle, "angles: angle", 3, any, err) : POSENC_OK;
    if (!status && pe_tensor_is_given(temperature))
        status = pe_tensor_check_output(temperature, "angles: temperature", 2,
                                        pe_tensor_is_given(angle) ? angle->shape : any, err);
    if (!status &&
        (!pe_tensor_is_given(first) || (pe_tensor_is_given(angle) && angle->dtype != POSENC_DTYPE_F64) ||
         (pe_tensor_is_given(temperature) && temperature->dtype != POSENC_DTYPE_F64)))
        status =
            pe_fail(err, POSENC_ERROR_DTYPE, "angles: angle, temperature or both must have data, as F64");
    if (!status)
        status = pe_overlap_check(angle, "angles: angle", temperature, "temperature", 0, err);
    return status ? status
                  : pe_positions_check(pos, "angles: pos", first->shape[0], first->shape[1],
                                       plan->rotary.axes, err);
}

static double *f64_at(const posenc_tensor *t, int64_t b, int64_t s)
{
    return (double *)t->data + b * t->stride[0] + s * t->stride[1];
}

posenc_status posenc_rotary_angles(const posenc_plan *plan, const posenc_rotary_in *in,
                                   const posenc_tensor *angle, const posenc_tensor *temperature,
                                   const posenc_workspace *work, posenc_error *err)
{
    pe_rotary_opened    run;
    posenc_rotary_in    copy;
    const posenc_tensor none = {0};
    if (!plan || !in)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "angles: plan and in must not be NULL");
    if (!(in = pe_rotary_read_in(&copy, in, "angles: in", err)))
        return POSENC_ERROR_ARGUMENT;
    const posenc_positions pos    = pe_rotary_read_positions(plan, &in->pos);
    posenc_status          status = pe_rotary_require_positions(plan, "angles", err);
    angle                         = angle ? angle : &none;
    temperature                   = temperature ? temperature : &none;
    if (status || (status = check_places(plan, &pos, angle, temperature, err)))
        return status;
    if (pe_tensor_is_empty(angle) || pe_tensor_is_empty(temperature))
        return pe_done(err);
    const int64_t          *shape = (angle->data ? angle : temperature)->shape, L = shape[1];
    const pe_rotary_request request = {
        plan, "angles", {.params = in->params, .bound = in->bound}, NULL, pe_rotary_length(0, &pos, L), 0, 0};
    if ((status = pe_rotary_open(&run, &request, work, err)))
        return status;
    const pe_rotary *rotary = run.rotation.queries;
    double          *row    = pe_rotary_lay_out_rows(plan, 1, &run.work.arena);
    for (int64_t e = 0; e < shape[0] * L; e++) {
        double at[PE_MAX_AXES];
        pe_rotation_place(rotary, &pos, e / L, e % L, at);
        for (int64_t h = 0; angle->data && h < rotary->heads; h++) {
            pe_rotary own;
            pe_rotation_angles(pe_rotation_of_head(&own, rotary, h), at, row);
            for (int64_t m = 0; m < rotary->M; m++)
                f64_at(angle, e / L, e % L)[(h * rotary->M + m) * angle->stride[2]] = row[m];
        }
        if (temperature->data)
            *f64_at(temperature, e / L, e % L) = pe_rotation_temperature(rotary, at);
    }
    return pe_done(err);
}
