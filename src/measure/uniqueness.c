/* SPDX-License-Identifier: MIT */
/*
 * uniqueness.c: has every position its own vector, every distance its own score?
 *
 * Tables: u = min over pairs of |p_i - p_j| / rms, rms^2 = mean |p_i|^2, so that u does not depend on the
 * table's scale. The distance of a pair is summed channel by channel, and no further once it exceeds the
 * smallest so far, which for most pairs is after a few channels; all pairs of 65536 rows take seconds.
 *
 * Rounding: rows are counted again after rounding to bf16, and once more with positions that were rounded to
 * bf16 first, as in a model whose positions are of that type: whole numbers beyond 256 then coincide.
 *
 * Scores: v(t) = the scores of all heads at distance t, for one drawn content that is the same everywhere.
 * Their smallest difference in the head that tells best; the largest D such that v(0) ... v(D) all differ;
 * and the last distance that differs from the one before it, beyond which all are alike. A clipped table has
 * both at its clip; T5 has the first at its last bucket of one member and the second where its last bucket
 * begins.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 8 };     /* summed before the sum is compared */
#define TIE (1 - 1e-9)     /* pairs that differ by round-off are equally near: the first one is named */
enum { MOST_GAPS = 4096 }; /* distances whose pairs are compared */

/* |a - b|^2, or something larger than `limit` if it is larger. */
static double squared_distance(const double *a, const double *b, int64_t d, double limit)
{
    double sum = 0;
    for (int64_t c = 0; c < d && sum <= limit; c += CHANNELS)
        for (int64_t i = c; i < d && i < c + CHANNELS; i++)
            sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

pe_row_pair pe_uniqueness_nearest_pair(const double *table, int64_t N, int64_t d)
{
    pe_row_pair best = {INFINITY, 0, 0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = i + 1; j < N; j++) {
            const double square = squared_distance(table + i * d, table + j * d, d, best.distance);
            if (square < best.distance * TIE)
                best = (pe_row_pair){square, i, j};
        }
    double scale = 0; /* mean |p_i|^2 */
    for (int64_t i = 0; i < N * d; i++)
        scale += table[i] * table[i];
    scale /= (double)N;
    best.distance = scale > 0 ? sqrt(best.distance / scale) : 0;
    return best;
}

/* To nearest, ties to even; exponents as in float. */
double pe_uniqueness_round_bf16(double x)
{
    float    f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits += 0x7fffu + (bits >> 16 & 1u);
    bits &= 0xffff0000u;
    memcpy(&f, &bits, sizeof bits);
    return (double)f;
}

/* The width of a row, in front of it, for qsort. */
static int compare_rows(const void *a, const void *b)
{
    const double *const x = *(double *const *)a, *const y = *(double *const *)b;
    return memcmp(x + 1, y + 1, (size_t)x[0] * sizeof *x);
}

/* rows [N][1 + d]: the width, then the rounded numbers; + 0.0 makes one zero of two. */
static void round_rows(double *rows, double **order, const double *table, int64_t N, int64_t d)
{
    for (int64_t i = 0; i < N; i++) {
        order[i]    = rows + i * (d + 1);
        order[i][0] = (double)d;
        for (int64_t c = 0; c < d; c++)
            order[i][c + 1] = pe_uniqueness_round_bf16(table[i * d + c]) + 0.0;
    }
}

int64_t pe_uniqueness_distinct_rows(const double *table, int64_t N, int64_t d)
{
    double  *rows  = malloc((size_t)(N * (d + 1)) * sizeof *rows);
    double **order = malloc((size_t)N * sizeof *order);
    int64_t  count = rows && order ? 1 : -1;
    if (count > 0) {
        round_rows(rows, order, table, N, d);
        qsort(order, (size_t)N, sizeof *order, compare_rows);
        for (int64_t i = 1; i < N; i++)
            count += compare_rows(&order[i - 1], &order[i]) != 0;
    }
    free(rows);
    free(order);
    return count;
}

/* Adds the share of the rows that are still distinct once rounded. */
static posenc_status find_distinct(const pe_subject *s, const double *table, pe_measure m, pe_findings *to,
                                   posenc_error *err)
{
    const int64_t N = s->sizes.length, distinct = pe_uniqueness_distinct_rows(table, N, s->dims.d_model);
    if (distinct < 0)
        return pe_subject_no_memory(err, "the rows in order");
    pe_findings_add(to, m, (double)distinct / (double)N, NAN, "%lld of %lld", (long long)distinct,
                    (long long)N);
    return POSENC_OK;
}

/* Rows of the positions rounded to bf16. The last may round up to N, which a table of N rows does not have.
 */
static posenc_status find_rounded(pe_subject *s, double *table, pe_findings *to, posenc_error *err)
{
    const int64_t N         = s->sizes.length;
    double       *positions = pe_subject_take(s, N, sizeof *positions);
    if (!positions)
        return pe_subject_no_memory(err, "positions");
    for (int64_t i = 0; i < N; i++)
        positions[i] = pe_uniqueness_round_bf16((double)i);
    const posenc_status status = pe_subject_rows(s, positions, table, err);
    if (status)
        return status == POSENC_ERROR_RANGE ? POSENC_OK : status;
    return find_distinct(s, table, PE_DISTINCT_BF16, to, err);
}

static posenc_status find_table(pe_subject *s, pe_findings *to, posenc_error *err)
{
    double       *table;
    posenc_status status = pe_subject_take_table(s, &table, err);
    if (status)
        return status;
    const pe_row_pair pair = pe_uniqueness_nearest_pair(table, s->sizes.length, s->dims.d_model);
    pe_findings_add(to, PE_NEAREST, pair.distance, NAN, "positions %lld and %lld", (long long)pair.first,
                    (long long)pair.second);
    status = find_distinct(s, table, PE_DISTINCT, to, err);
    return status || s->coordinates > 1 ? status : find_rounded(s, table, to, err);
}

/* max over the heads of |v(s) - v(t)|; c [H,N] */
static double head_distance(const double *c, int64_t H, int64_t N, int64_t s, int64_t t)
{
    double largest = 0;
    for (int64_t h = 0; h < H; h++)
        largest = fmax(largest, fabs(c[h * N + s] - c[h * N + t]));
    return largest;
}

static int seen_before(const double *c, int64_t H, int64_t N, int64_t t)
{
    for (int64_t s = 0; s < t; s++)
        if (head_distance(c, H, N, s, t) == 0)
            return 1;
    return 0;
}

static double smallest_gap(const double *c, int64_t H, int64_t N)
{
    const int64_t n       = N < MOST_GAPS ? N : MOST_GAPS;
    double        nearest = INFINITY;
    for (int64_t t = 1; t < n; t++)
        for (int64_t s = 0; s < t; s++)
            nearest = fmin(nearest, head_distance(c, H, N, s, t));
    return nearest;
}

static void find_gaps(const double *c, int64_t H, int64_t N, pe_findings *to)
{
    int64_t told_apart = 1, last_change = N - 1;
    while (told_apart < N && !seen_before(c, H, N, told_apart))
        told_apart++;
    while (last_change > 0 && head_distance(c, H, N, last_change, last_change - 1) == 0)
        last_change--;
    if (last_change == 0)
        return;
    pe_findings_add(to, PE_GAP, smallest_gap(c, H, N), NAN, "%s", "");
    pe_findings_add(to, PE_DISTANCES, (double)(told_apart - 1) / (double)(N - 1), NAN,
                    "0 to %lld of 0 to %lld", (long long)(told_apart - 1), (long long)(N - 1));
    pe_findings_add(to, PE_LAST_CHANGE, (double)last_change, NAN, "%s", "");
}

static posenc_status find_distances(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, H = s->dims.H;
    double       *c = pe_subject_take(s, H * N, sizeof *c);
    if (!c)
        return pe_subject_no_memory(err, "scores");
    const posenc_status status = pe_subject_profiles(s, PE_CONTENT_NORMAL, 0, c, err);
    if (!status)
        find_gaps(c, H, N, to);
    return status;
}

posenc_status pe_uniqueness_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const posenc_status status = pe_subject_has(s, POSENC_PLACE_INPUT) ? find_table(s, to, err) : POSENC_OK;
    return status || !pe_subject_attends(s) ? status : find_distances(s, to, err);
}
