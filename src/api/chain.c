/* SPDX-License-Identifier: MIT */
/* chain.c: decoding with PaTH, where a new token rewrites the keys of a cache. Contract: posenc/scores.h. */
#include <posenc/scores.h>
#include <stdint.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/sizes.h"
#include "base/tensor.h"

static posenc_status check(const posenc_plan *plan, const posenc_tensor *k, const posenc_tensor *w,
                           const posenc_tensor *beta, int64_t from, posenc_error *err)
{
    const int64_t shape[4] = {-1, plan->dims.G, -1, plan->dims.D};
    posenc_status status   = pe_tensor_check_output(k, "keys: k", 4, shape, err);
    if (status)
        return status;
    if (!pe_tensor_is_float(k->dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "keys: k is %s; it must be F32, F64, F16 or BF16",
                       pe_tensor_dtype_name(k->dtype));
    const pe_resolved       *score = &plan->parts[POSENC_PLACE_SCORE];
    const posenc_token_info *of    = score->room->info.tokens;
    const pe_chain          *chain = &plan->terms.chain;
    if ((status = pe_tokens_check(&score->problem, &of[chain->w], w, "keys: w",
                                  (const int64_t[]){k->shape[0], -1, plan->dims.D}, err)) ||
        (status = pe_tokens_check(&score->problem, &of[chain->beta], beta, "keys: beta",
                                  (const int64_t[]){k->shape[0], w->shape[2], 1}, err)) ||
        (status = pe_overlap_check(k, "keys: k", w, "w", 0, err)) ||
        (status = pe_overlap_check(k, "keys: k", beta, "beta", 0, err)))
        return status;
    const int64_t n = w->shape[2];
    if (from < 0 || from > k->shape[2] - (n > 0 ? n - 1 : 0))
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "keys: from is %lld; with %lld tokens and %lld keys it must be from 0 to %lld",
                       (long long)from, (long long)n, (long long)k->shape[2],
                       (long long)(k->shape[2] - (n > 0 ? n - 1 : 0)));
    return POSENC_OK;
}

/* A row in double, a piece at a time. */
enum { PIECE = 64 };

static void load(const posenc_tensor *t, const void *row, int64_t d, int64_t n, double to[])
{
    pe_tensor_load_double(to, (const char *)row + pe_tensor_bytes(t->dtype, d * t->stride[3]), t->dtype,
                          t->stride[3], n);
}

/* w.x, in lanes that do not wait for one another. */
static double product(const posenc_tensor *k, const void *x, const posenc_tensor *w, const void *row)
{
    enum { APART = 8 };
    double lanes[APART] = {0}, sum = 0, a[PIECE], c[PIECE];
    for (int64_t d = 0; d < k->shape[3]; d += PIECE) {
        const int64_t n = pe_smaller(PIECE, k->shape[3] - d), whole = n - n % APART;
        load(k, x, d, n, a);
        load(w, row, d, n, c);
        for (int64_t i = 0; i < whole; i += APART)
            for (int lane = 0; lane < APART; lane++)
                lanes[lane] += a[i + lane] * c[i + lane];
        for (int64_t i = whole; i < n; i++)
            sum += a[i] * c[i];
    }
    for (int lane = 0; lane < APART; lane++)
        sum += lanes[lane];
    return sum;
}

/* x -= f w */
static void subtract(const posenc_tensor *k, void *x, const posenc_tensor *w, const void *row, double f)
{
    double a[PIECE], c[PIECE];
    for (int64_t d = 0; d < k->shape[3]; d += PIECE) {
        const int64_t n = pe_smaller(PIECE, k->shape[3] - d);
        load(k, x, d, n, a);
        load(w, row, d, n, c);
        for (int64_t i = 0; i < n; i++)
            a[i] -= f * c[i];
        pe_tensor_store_double((char *)x + pe_tensor_bytes(k->dtype, d * k->stride[3]), k->dtype,
                               k->stride[3], a, n);
    }
}

static const void *row_of(const posenc_tensor *t, int64_t b, int64_t g, int64_t n)
{
    return pe_tensor_row(t, b, t->shape[1] == 1 ? 0 : g, n);
}

/* Key j meets those of the new tokens that stand after it. */
static void rewrite(const posenc_tensor *k, const posenc_tensor *w, const posenc_tensor *beta, int64_t b,
                    int64_t g, int64_t from, int64_t j)
{
    void *x = pe_tensor_row(k, b, g, j);
    for (int64_t n = j < from ? 0 : j - from + 1; n < w->shape[2]; n++) {
        const void *row = row_of(w, b, g, n);
        double      f;
        pe_tensor_load_double(&f, row_of(beta, b, g, n), beta->dtype, 1, 1);
        subtract(k, x, w, row, f * product(k, x, w, row));
    }
}

posenc_status posenc_path_keys(const posenc_plan *plan, posenc_tensor *k, const posenc_tensor *w,
                               const posenc_tensor *beta, int64_t from, posenc_error *err)
{
    if (!plan || !k || !w || !beta)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "keys: plan, k, w and beta must not be NULL");
    if (plan->dims.D == 0 || !plan->terms.chain.is_given)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "keys: %s does not transform queries; plan with path",
                       plan->e->spec);
    const posenc_status status = check(plan, k, w, beta, from, err);
    if (status)
        return status;
    const int64_t last = from + w->shape[2] - 1; /* key that stands before a new token */
    for (int64_t row = 0; last > 0 && row < k->shape[0] * k->shape[1]; row++)
        for (int64_t j = 0; j < last; j++)
            rewrite(k, w, beta, row / k->shape[1], row % k->shape[1], from, j);
    return pe_done(err);
}
