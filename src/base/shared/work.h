/* SPDX-License-Identifier: MIT */
/*
 * work.h: how much a program that shows or compares encodings takes on
 *
 * A setting of 2^24 is one that the library holds, and a minute and gigabytes in a picture or a table of
 * properties, which nobody asked for. Pictures, explanations, properties and comparisons are of small models,
 * so what is larger than any of these needs is refused before it is begun, in one sentence with the number
 * and its limit. The limits are a few seconds of one core and a gigabyte.
 */
#ifndef PE_BASE_WORK_H
#define PE_BASE_WORK_H

#include <posenc/posenc.h>
#include <stdio.h>

/* Numbers in all parameters together; of them, those that the tool makes for your own tensors; channels of a
   row; bytes, and operations of a run. */
#define PE_WORK_PARAMS (INT64_C(1) << 24)
#define PE_WORK_OWN    (INT64_C(1) << 26)
#define PE_WORK_WIDTH  (INT64_C(1) << 16)
#define PE_WORK_BYTES  (INT64_C(1) << 30)
#define PE_WORK_RUN    INT64_C(2000000000)

static inline posenc_status pe_work_refuse(const posenc_encoding *e, const char *what, double n, int64_t most,
                                           posenc_error *err)
{
    if (err) {
        err->status = POSENC_ERROR_RANGE;
        snprintf(err->message, sizeof err->message,
                 "%.90s asks for %.0f %s; at most %lld are taken on here, so choose smaller settings",
                 posenc_encoding_spec(e), n, what, (long long)most);
    }
    return POSENC_ERROR_RANGE;
}

/* Also what posenc_param_shape refuses. */
static inline posenc_status pe_work_check_params(const posenc_encoding *e, const posenc_dims *dims,
                                                 int64_t most, posenc_error *err)
{
    double all = 0;
    for (int i = 0; i < posenc_param_count(e); i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS];
        double              n      = 1;
        const posenc_status status = posenc_param_shape(e, dims, i, &ndim, shape, err);
        if (status)
            return status;
        for (int32_t a = 0; a < ndim; a++)
            n *= (double)shape[a];
        all += n;
    }
    return all <= (double)most ? POSENC_OK : pe_work_refuse(e, "numbers in its parameters", all, most, err);
}

/* A plan for these runs. */
static inline posenc_status pe_work_check_plan(const posenc_encoding *e, const posenc_plan *plan,
                                               posenc_run runs, posenc_error *err)
{
    const double width = (double)posenc_rows_width(plan),
                 bytes = (double)posenc_plan_workspace(plan, runs, NULL), run = posenc_plan_operations(plan);
    if (!(width <= (double)PE_WORK_WIDTH))
        return pe_work_refuse(e, "numbers in a row", width, PE_WORK_WIDTH, err);
    if (!(bytes <= (double)PE_WORK_BYTES))
        return pe_work_refuse(e, "bytes of memory", bytes, PE_WORK_BYTES, err);
    return run <= (double)PE_WORK_RUN ? POSENC_OK : pe_work_refuse(e, "operations", run, PE_WORK_RUN, err);
}

#endif
