/* SPDX-License-Identifier: MIT */
/* DETR's coordinates from a mask. Contracts: detr.h, posenc.h. */
#include "base/detr.h"

#include <math.h>
#include <posenc/posenc.h>

#include "base/status.h"
#include "base/tensor.h"

#define TWO_PI 6.283185307179586

double pe_detr_coordinate(double count, double last, int normalize, double eps)
{
    return normalize ? count / (last + eps) * TWO_PI : count;
}

/* One line of n pixels along axis `axis` (1: down a column, 2: along a row), from offset `from` on:
   coordinate number axis - 1 of each. */
static void count_line(const posenc_tensor *valid, int axis, int64_t from, double *pos, int64_t step,
                       int normalize, double eps)
{
    const int64_t n    = valid->shape[axis];
    int64_t       seen = 0, last = 0;
    for (int64_t i = 0; i < n; i++)
        last += pe_integer_at(valid, from + i * valid->stride[axis]) != 0;
    for (int64_t i = 0; i < n; i++) {
        seen += pe_integer_at(valid, from + i * valid->stride[axis]) != 0;
        pos[i * step] = pe_detr_coordinate((double)seen, (double)last, normalize, eps);
    }
}

static posenc_status check(const posenc_tensor *valid, double eps, const posenc_tensor *pos,
                           posenc_error *err)
{
    const int64_t any[3] = {-1, -1, -1};
    posenc_status status = pe_check_tensor(valid, "positions: valid", 3, any, err);
    if (status)
        return status;
    const int64_t shape[3] = {valid->shape[0], valid->shape[1] * valid->shape[2], 2};
    status                 = pe_check_tensor(pos, "positions: pos", 3, shape, err);
    if (!status && valid->dtype != POSENC_U8 && valid->dtype != POSENC_I64)
        status = pe_fail(err, POSENC_DTYPE, "positions: valid is %s; it must be U8 or I64",
                         pe_dtype_name(valid->dtype));
    if (!status && (pos->dtype != POSENC_F64 || !pe_is_contiguous(pos)))
        status = pe_fail(err, POSENC_DTYPE, "positions: pos must be contiguous F64");
    if (!status && !(eps > 0 && isfinite(eps)))
        status = pe_fail(err, POSENC_ARGUMENT, "positions: eps is %g; it must be a number above 0", eps);
    return status;
}

posenc_status posenc_positions_detr(const posenc_tensor *valid, int normalize, double eps, posenc_tensor *pos,
                                    posenc_error *err)
{
    if (!valid || !pos)
        return pe_fail(err, POSENC_ARGUMENT, "positions: valid and pos must not be NULL");
    const posenc_status status = check(valid, eps, pos, err);
    if (status)
        return status;
    const int64_t h = valid->shape[1], w = valid->shape[2];
    for (int64_t b = 0; b < valid->shape[0]; b++) {
        double       *item = (double *)pos->data + b * h * w * 2;
        const int64_t from = b * valid->stride[0];
        for (int64_t x = 0; x < w; x++)
            count_line(valid, 1, from + x * valid->stride[2], item + 2 * x, 2 * w, normalize, eps);
        for (int64_t y = 0; y < h; y++)
            count_line(valid, 2, from + y * valid->stride[1], item + 2 * y * w + 1, 2, normalize, eps);
    }
    return pe_done(err);
}
