/* SPDX-License-Identifier: MIT */
/* Positions as numbers, and the pattern of their differences. Contract: positions.h. */
#include "base/positions.h"

#include <math.h>

#include "base/overlap.h"
#include "base/shared/pi.h"
#include "base/status.h"
#include "base/tensor.h"

/* Numbers per position. */
static int64_t coordinates_of(const posenc_positions *p)
{
    return p->array.data && p->array.ndim == 3 ? p->array.shape[2] : 1;
}

posenc_positions pe_positions_view(const posenc_positions *p, int64_t N)
{
    posenc_positions view = *p;
    if (N == 1 || !p->array.data || p->array.ndim != 2)
        return view;
    view.array.ndim = 3;
    for (int a = 2; a > 0; a--) {
        view.array.shape[a]  = p->array.shape[a - 1];
        view.array.stride[a] = p->array.stride[a - 1];
    }
    view.array.shape[0] = 1;
    return view;
}

posenc_positions pe_positions_with_defaults(const posenc_positions *p)
{
    return p->array.data ? *p : posenc_positions_range(p->start, p->step);
}

static posenc_status check_shape(const posenc_positions *p, const char *who, int64_t B, int64_t L, int64_t N,
                                 posenc_error *err)
{
    const posenc_tensor *a = &p->array;
    if (a->ndim < 1 || a->ndim > 3)
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s has %d axes; positions are [L], [B,L] or [B,L,N]", who,
                       a->ndim);
    if (!pe_tensor_fits(a))
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "%s has a shape and strides that no memory holds; at most 2^56 elements are possible",
                       who);
    if (!pe_tensor_is_aligned(a))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s begins between two elements of %s; align its data",
                       who, pe_tensor_dtype_name(a->dtype));
    const int64_t batch = a->ndim == 1 ? 1 : a->shape[0], length = a->shape[a->ndim == 1 ? 0 : 1];
    if ((batch != 1 && batch != B) || length != L)
        return pe_fail(
            err, POSENC_ERROR_SHAPE,
            "%s holds %lld x %lld positions; it must be [%lld], or [B,%lld] where B is 1 or the batch", who,
            (long long)batch, (long long)length, (long long)L, (long long)L);
    if (coordinates_of(p) != N)
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s has %lld coordinates per position; it must have %lld",
                       who, (long long)coordinates_of(p), (long long)N);
    return POSENC_OK;
}

posenc_status pe_positions_check(const posenc_positions *p, const char *who, int64_t B, int64_t L, int64_t N,
                                 posenc_error *err)
{
    return pe_positions_check_some(p, who, B, L, N, L, err);
}

posenc_status pe_positions_check_some(const posenc_positions *p, const char *who, int64_t B, int64_t L,
                                      int64_t N, int64_t n, posenc_error *err)
{
    const posenc_tensor *a = &p->array;
    if (!a->data) {
        if (!isfinite(p->start) || !isfinite(p->step))
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: start and step must be finite", who);
        if (p->step == 0 && p->start != 0 && n > 1)
            return pe_fail(
                err, POSENC_ERROR_ARGUMENT,
                "%s has start %g and step 0; give a step, or an array where all positions are the same", who,
                p->start);
        const double first = pe_positions_at(p, 0, 0), last = pe_positions_at(p, 0, n - 1);
        if (fabs(first) > 0x1p53 || fabs(last) > 0x1p53) /* beyond, distances are no exact numbers */
            return pe_fail(err, POSENC_ERROR_RANGE, "%s runs from %g to %g; positions must stay below 2^53",
                           who, first, last);
        return POSENC_OK;
    }
    if (!pe_tensor_is_whole(a->dtype) && a->dtype != POSENC_DTYPE_F64)
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; positions must be I64, I32 or F64", who,
                       pe_tensor_dtype_name(a->dtype));
    const posenc_status status = check_shape(p, who, B, L, N, err);
    if (status)
        return status;
    for (int64_t b = 0; B > 0 && n > 0 && b < pe_positions_batches(p); b++)
        for (int64_t i = 0; i < n * N; i++)
            if (!(fabs(pe_positions_coordinate(p, b, i / N, i % N)) <= 0x1p53))
                return pe_fail(err, POSENC_ERROR_RANGE, "%s[%lld,%lld] is not a finite number below 2^53",
                               who, (long long)b, (long long)(i / N));
    return POSENC_OK;
}

double pe_positions_coordinate(const posenc_positions *p, int64_t b, int64_t s, int64_t c)
{
    const posenc_tensor *a = &p->array;
    if (!a->data)
        return p->start + (double)s * (p->step == 0 ? 1 : p->step);
    const int64_t row = a->ndim == 1 || a->shape[0] == 1 ? 0 : b * a->stride[0];
    const int64_t in  = a->ndim == 3 ? c * a->stride[2] : 0;
    return pe_tensor_real_at(a, row + s * a->stride[a->ndim == 1 ? 0 : 1] + in);
}

double pe_positions_at(const posenc_positions *p, int64_t b, int64_t s)
{
    return pe_positions_coordinate(p, b, s, 0);
}

int64_t pe_positions_batches(const posenc_positions *p)
{
    return p->array.data && p->array.ndim > 1 ? p->array.shape[0] : 1;
}

int64_t pe_positions_pair_batches(const posenc_positions *q_pos, const posenc_positions *k_pos, int64_t B)
{
    return pe_positions_batches(q_pos) > 1 || pe_positions_batches(k_pos) > 1 ? B : 1;
}

pe_reach pe_positions_reach(int mask, int64_t window)
{
    pe_reach reach = {INT64_MIN / 4, INT64_MAX / 4};
    if (mask & POSENC_MASK_WINDOW) {
        reach.high = window - 1 < reach.high ? window - 1 : reach.high;
        reach.low  = -reach.high;
    }
    if ((mask & POSENC_MASK_CAUSAL) && reach.low < 0)
        reach.low = 0;
    return reach;
}

/* start + s*step for every s of item b? */
static int is_arithmetic(const posenc_positions *p, int64_t b, int64_t L, double start, double step)
{
    for (int64_t s = 0; s < L; s++)
        if (pe_positions_at(p, b, s) != start + (double)s * step)
            return 0;
    return 1;
}

static double step_of(const posenc_positions *p, int64_t L)
{
    return L > 1 ? pe_positions_at(p, 0, 1) - pe_positions_at(p, 0, 0) : 0;
}

static int is_skewed(const posenc_positions *q_pos, const posenc_positions *k_pos, int64_t B, int64_t Lq,
                     int64_t Lk, double *t00, double *step)
{
    const double sq = step_of(q_pos, Lq), sk = step_of(k_pos, Lk), q0 = pe_positions_at(q_pos, 0, 0),
                 k0 = pe_positions_at(k_pos, 0, 0);
    *step           = Lk > 1 ? sk : Lq > 1 ? sq : 1; /* one query or one key fits any step of the other */
    *t00            = q0 - k0;
    if ((Lq > 1 && sq != *step) || (Lk > 1 && sk != *step) || *step == 0)
        return 0;
    const int64_t batches = pe_positions_pair_batches(q_pos, k_pos, B);
    for (int64_t b = 0; b < batches; b++) {
        const double qb = pe_positions_at(q_pos, b, 0), kb = pe_positions_at(k_pos, b, 0);
        if (qb - kb != *t00)
            return 0;
        if ((q_pos->array.data && !is_arithmetic(q_pos, b, Lq, qb, *step)) ||
            (k_pos->array.data && !is_arithmetic(k_pos, b, Lk, kb, *step)))
            return 0;
    }
    return 1;
}

pe_extent pe_positions_extent(const posenc_positions *p, int64_t b, int64_t L)
{
    pe_extent     e    = {INFINITY, -INFINITY, 1};
    const int64_t N    = coordinates_of(p);
    const int64_t step = p->array.data || L < 2 ? 1 : L - 1; /* a range: its two ends */
    for (int64_t i = 0; i < L * N; i += step) {
        const double x = pe_positions_coordinate(p, b, i / N, i % N);
        e.low          = fmin(e.low, x);
        e.high         = fmax(e.high, x);
        e.whole        = e.whole && x == floor(x);
    }
    if (!p->array.data && L > 1)
        e.whole = e.whole && p->step == floor(p->step);
    return e;
}

void pe_positions_distances(pe_distances *d, const posenc_positions *q_pos, const posenc_positions *k_pos,
                            int64_t B, int64_t Lq, int64_t Lk, pe_reach reach)
{
    double        t00, step, low = INFINITY, high = -INFINITY;
    const int64_t batches = pe_positions_pair_batches(q_pos, k_pos, B);
    *d                    = (pe_distances){.reach = reach, .whole = 1};
    for (int64_t b = 0; b < batches; b++) {
        const pe_extent q = pe_positions_extent(q_pos, b, Lq), k = pe_positions_extent(k_pos, b, Lk);
        low      = fmin(low, q.low - k.high);
        high     = fmax(high, q.high - k.low);
        d->whole = d->whole && q.whole && k.whole;
    }
    low  = fmax(low, (double)reach.low);
    high = fmin(high, (double)reach.high);
    if (d->whole && Lq && Lk) {
        d->low   = (int64_t)low;
        d->count = high >= low ? (int64_t)(high - low) + 1 : 0;
    }
    d->skewed = d->whole && is_skewed(q_pos, k_pos, B, Lq, Lk, &t00, &step);
    d->t00    = d->skewed ? (int64_t)t00 : 0;
    d->step   = d->skewed ? (int64_t)step : 0;
}

static const int64_t MOST_POSITION = INT64_C(1) << 53;

/* pos[b,s] from how many of from[b,0..s] count, and whether this one does: after padding_idx, which is the
   position of those that do not count; or from 0, and those get 1 (Hugging Face). */
static void number_rows(const posenc_tensor *from, int64_t not_counted, const int64_t *padding_idx,
                        posenc_tensor *pos)
{
    for (int64_t b = 0; b < from->shape[0]; b++) {
        int64_t seen = 0;
        for (int64_t s = 0; s < from->shape[1]; s++) {
            const int counts =
                pe_tensor_integer_at(from, b * from->stride[0] + s * from->stride[1]) != not_counted;
            seen += counts;
            ((int64_t *)pos->data)[b * pos->stride[0] + s * pos->stride[1]] =
                padding_idx ? (counts ? seen : 0) + *padding_idx
                : counts    ? seen - 1
                            : 1;
        }
    }
}

/* from [B,L], I64 or a mask in U8; `name` is "positions: mask". */
static posenc_status number_tokens(const posenc_tensor *from, const char *name, int64_t not_counted,
                                   const int64_t *padding_idx, posenc_tensor *pos, posenc_error *err)
{
    const int64_t any[2] = {-1, -1};
    if (!from || !pos)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s and pos must not be NULL", name);
    posenc_status status = pe_tensor_check(from, name, 2, any, err);
    if (!status)
        status = pe_tensor_check(pos, "positions: pos", 2, from->shape, err);
    if (!status && (pos->dtype != POSENC_DTYPE_I64 ||
                    (from->dtype != POSENC_DTYPE_I64 && from->dtype != POSENC_DTYPE_U8)))
        status = pe_fail(err, POSENC_ERROR_DTYPE, "%s must be I64 (a mask also U8), and pos I64", name);
    if (!status)
        status = pe_tensor_check_self(pos, "positions: pos", err);
    if (!status)
        status = pe_overlap_check(pos, "positions: pos", from, name, 1, err);
    if (status)
        return status;
    if (!pe_tensor_is_empty(from)) /* else it may have any number of empty rows */
        number_rows(from, not_counted, padding_idx, pos);
    return pe_done(err);
}

posenc_status posenc_positions_fairseq(const posenc_tensor *tokens, int64_t padding_idx, posenc_tensor *pos,
                                       posenc_error *err)
{
    if (padding_idx < -MOST_POSITION || padding_idx > MOST_POSITION)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "positions: padding_idx is %lld; it must be from -2^53 to 2^53",
                       (long long)padding_idx);
    return number_tokens(tokens, "positions: tokens", padding_idx, &padding_idx, pos, err);
}

posenc_status posenc_positions_from_mask(const posenc_tensor *mask, posenc_tensor *pos, posenc_error *err)
{
    return number_tokens(mask, "positions: mask", 0, NULL, pos, err);
}

/* ---- DETR's coordinates from a mask ---- */

double pe_positions_detr_coordinate(double count, double last, int normalize, double eps)
{
    return normalize ? count / (last + eps) * PE_TWO_PI : count;
}

/* One line of n pixels along axis `axis` (1: down a column, 2: along a row), from offset `from` on:
   coordinate number axis - 1 of each. */
static void count_line(const posenc_tensor *valid, int axis, int64_t from, double *pos, int64_t step,
                       int normalize, double eps)
{
    const int64_t n    = valid->shape[axis];
    int64_t       seen = 0, last = 0;
    for (int64_t i = 0; i < n; i++)
        last += pe_tensor_integer_at(valid, from + i * valid->stride[axis]) != 0;
    for (int64_t i = 0; i < n; i++) {
        seen += pe_tensor_integer_at(valid, from + i * valid->stride[axis]) != 0;
        pos[i * step] = pe_positions_detr_coordinate((double)seen, (double)last, normalize, eps);
    }
}

static posenc_status check_detr(const posenc_tensor *valid, double eps, const posenc_tensor *pos,
                                posenc_error *err)
{
    const int64_t any[3] = {-1, -1, -1};
    posenc_status status = pe_tensor_check(valid, "positions: valid", 3, any, err);
    if (status)
        return status;
    const int64_t shape[3] = {valid->shape[0], valid->shape[1] * valid->shape[2], 2};
    status                 = pe_tensor_check(pos, "positions: pos", 3, shape, err);
    if (!status && valid->dtype != POSENC_DTYPE_U8 && valid->dtype != POSENC_DTYPE_I64)
        status = pe_fail(err, POSENC_ERROR_DTYPE, "positions: valid is %s; it must be U8 or I64",
                         pe_tensor_dtype_name(valid->dtype));
    if (!status && (pos->dtype != POSENC_DTYPE_F64 || !pe_tensor_is_contiguous(pos)))
        status = pe_fail(err, POSENC_ERROR_DTYPE, "positions: pos must be contiguous F64");
    if (!status && !(eps > 0 && isfinite(eps)))
        status =
            pe_fail(err, POSENC_ERROR_ARGUMENT, "positions: eps is %g; it must be a number above 0", eps);
    return status ? status : pe_overlap_check(pos, "positions: pos", valid, "positions: valid", 0, err);
}

posenc_status posenc_positions_detr(const posenc_tensor *valid, int normalize, double eps, posenc_tensor *pos,
                                    posenc_error *err)
{
    if (!valid || !pos)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "positions: valid and pos must not be NULL");
    const posenc_status status = check_detr(valid, eps, pos, err);
    if (status)
        return status;
    const int64_t h = valid->shape[1], w = valid->shape[2];
    for (int64_t b = 0; b < valid->shape[0] && !pe_tensor_is_empty(valid); b++) {
        double       *item = (double *)pos->data + b * h * w * 2;
        const int64_t from = b * valid->stride[0];
        for (int64_t x = 0; x < w; x++)
            count_line(valid, 1, from + x * valid->stride[2], item + 2 * x, 2 * w, normalize, eps);
        for (int64_t y = 0; y < h; y++)
            count_line(valid, 2, from + y * valid->stride[1], item + 2 * y * w + 1, 2, normalize, eps);
    }
    return pe_done(err);
}
