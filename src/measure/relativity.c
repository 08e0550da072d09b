/* SPDX-License-Identifier: MIT */
/*
 * relativity.c: is a step of k positions the same linear map everywhere?
 *
 * r(k): the matrix M that best takes p(i) to p(i+k) over the even i is tested on the odd i; r is the share of
 * the variance there that it does not explain. Fitting and testing on different rows matters: any table of
 * N <= d rows has a perfect M. Even and odd rows rather than halves, because the slow channels of a sinusoid
 * hardly move within a half, and what does not move cannot be fitted.
 *
 * tau: the share of the variance of all dot products p_i . p_j, i > j, that is within the offsets i - j: 0
 * where the product is a function of the offset.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>

#define CUT 1e-13 /* of the largest singular value: below it a direction is round-off */

enum { OFFSETS = 3, MOST_PRODUCTS = 1024 };
static const int64_t offsets[OFFSETS] = {1, 7, 64};

/* to [n,d]: rows first, first + 2, ... of the table. */
static void every_other(double *to, const double *table, int64_t first, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++)
            to[i * d + c] = table[(first + 2 * i) * d + c];
}

/* sum |b_i - a_i M|^2 / sum |b_i - mean|^2 over n rows, M [d,d]. */
static double residual(const double *a, const double *b, const double *M, int64_t n, int64_t d)
{
    double unexplained = 0, variance = 0, squares = 0;
    for (int64_t c = 0; c < d; c++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++)
            mean += b[i * d + c] / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double sum = b[i * d + c];
            for (int64_t m = 0; m < d; m++)
                sum -= a[i * d + m] * M[m * d + c];
            unexplained += sum * sum;
            variance += (b[i * d + c] - mean) * (b[i * d + c] - mean);
            squares += b[i * d + c] * b[i * d + c];
        }
    }
    return pe_scores_share(unexplained, variance, squares);
}

posenc_status pe_relativity_shift_residual(double *r, const double *table, int64_t N, int64_t d, int64_t k,
                                           posenc_error *err)
{
    const int64_t even = (N - k + 1) / 2, odd = (N - k) / 2;
    *r = NAN;
    if (N - k < 4 * d)
        return POSENC_OK;
    double *a = malloc((size_t)((2 * even + d) * d) * sizeof *a), *b = a + even * d, *M = b + even * d;
    if (!a)
        return pe_subject_no_memory(err, "half a table");
    every_other(a, table, 0, even, d);
    every_other(b, table, k, even, d);
    const posenc_status status = pe_least_squares_fit(M, a, b, even, d, d, CUT, err);
    if (!status) {
        every_other(a, table, 1, odd, d);
        every_other(b, table, 1 + k, odd, d);
        *r = residual(a, b, M, odd, d);
    }
    free(a);
    return status;
}

posenc_status pe_relativity_offset_share(double *tau, const double *table, int64_t N, int64_t d,
                                         posenc_error *err)
{
    const int64_t n      = N < MOST_PRODUCTS ? N : MOST_PRODUCTS;
    double        within = 0, total = 0, squares = 0;
    double       *products = malloc((size_t)(n * n) * sizeof *products);
    if (!products)
        return pe_subject_no_memory(err, "dot products");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t c = 0; c < d; c++)
                sum += table[i * d + c] * table[j * d + c];
            products[i * n + j] = sum;
            squares += sum * sum;
        }
    pe_scores_offset_squares(products, n, 1, &within, &total, NULL);
    free(products);
    *tau = pe_scores_share(within, total, squares);
    return POSENC_OK;
}

static double span(const double *table, int64_t N, int64_t d, int64_t c)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < N; i++) {
        low  = fmin(low, table[i * d + c]);
        high = fmax(high, table[i * d + c]);
    }
    return high - low;
}

int64_t pe_relativity_idle_channels(const double *table, int64_t N, int64_t d)
{
    double  widest = 0;
    int64_t idle   = 0;
    for (int64_t c = 0; c < d; c++)
        widest = fmax(widest, span(table, N, d, c));
    for (int64_t c = 0; c < d; c++)
        idle += span(table, N, d, c) < widest / 20;
    return idle;
}

posenc_status pe_relativity_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model;
    double       *table, r, tau;
    if (!pe_subject_has(s, POSENC_PLACE_INPUT) || s->coordinates > 1)
        return POSENC_OK;
    posenc_status status = pe_subject_take_table(s, &table, err);
    for (int o = 0; !status && o < OFFSETS; o++) {
        status = pe_relativity_shift_residual(&r, table, N, d, offsets[o], err);
        if (!status)
            pe_findings_add(to, PE_SHIFT, r, NAN, "k = %lld", (long long)offsets[o]);
    }
    if (!status)
        status = pe_relativity_offset_share(&tau, table, N, d, err);
    if (!status)
        pe_findings_add(to, PE_OFFSET_SHARE, tau, NAN, "%s", "");
    return status;
}
