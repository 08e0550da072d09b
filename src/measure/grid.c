/* SPDX-License-Identifier: MIT */
/*
 * grid.c: a table of positions on a grid: does similarity fall with distance, and is the table made of rows
 * and columns?
 *
 * Distance is that of the cells, sqrt(dy^2 + dx^2), and every pair of positions counts once: Spearman's rho
 * of distance and p_i . p_j. It is far from -1 for a table whose similarity has the shape of a cross, because
 * there neighbours along a row are more alike than near neighbours across.
 *
 * A table p(y, x) that is a(y) + b(x), such as sinusoids of the two coordinates side by side, is all rows and
 * columns. In general the squares of p about its mean divide, exactly, into those of the means of the rows,
 * those of the means of the columns, and a rest (analysis of variance with two factors). Random numbers leave
 * each degree of freedom the same share, H - 1 and W - 1 of the H W - 1 there are; so what goes beyond chance
 * is
 *
 *     1 - (rest / ((H - 1) (W - 1))) / (all / (H W - 1))                          0 for random numbers, on
 * average
 *
 * Without --grid a table of two coordinates is measured on the squarest grid of as many positions.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_POSITIONS = 2048 };

/* ---------------------------------------------------------------- numbers of a table -------- */

/* Squares about the mean of the `groups` means of rows g * step + k * stride, k < members; times members. */
static double squares_between(const double *table, int64_t d, const double *mean, int64_t groups,
                              int64_t step, int64_t members, int64_t stride)
{
    double sum = 0;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t c = 0; c < d; c++) {
            double of_group = 0;
            for (int64_t k = 0; k < members; k++)
                of_group += table[(g * step + k * stride) * d + c];
            const double apart = of_group / (double)members - mean[c];
            sum += (double)members * apart * apart;
        }
    return sum;
}

posenc_status pe_grid_structure(pe_grid_shares *to, const double *table, int64_t H, int64_t W, int64_t d,
                                posenc_error *err)
{
    const int64_t n    = H * W;
    double       *mean = calloc((size_t)d, sizeof *mean);
    double        all = 0, squares = 0;
    if (!mean)
        return pe_subject_no_memory(err, "the mean of a table");
    for (int64_t i = 0; i < n * d; i++)
        mean[i % d] += table[i] / (double)n;
    for (int64_t i = 0; i < n * d; i++) {
        const double apart = table[i] - mean[i % d];
        all += apart * apart;
        squares += table[i] * table[i];
    }
    to->rows    = pe_scores_share(squares_between(table, d, mean, H, W, W, 1), all, squares);
    to->columns = pe_scores_share(squares_between(table, d, mean, W, 1, H, W), all, squares);
    to->beyond  = H > 1 && W > 1
                      ? 1 - (1 - to->rows - to->columns) * (double)(n - 1) / (double)((H - 1) * (W - 1))
                      : (double)NAN;
    free(mean);
    return POSENC_OK;
}

double pe_grid_trend(const double *similarity, int64_t H, int64_t W)
{
    const int64_t n = H * W, pairs = n * (n - 1) / 2;
    double       *distance = malloc((size_t)(2 * pairs) * sizeof *distance),
           *s              = distance ? distance + pairs : NULL;
    int64_t k              = 0;
    for (int64_t i = 0; distance && i < n; i++)
        for (int64_t j = 0; j < i; j++, k++) {
            distance[k] = hypot((double)(i / W - j / W), (double)(i % W - j % W));
            s[k]        = similarity[i * n + j];
        }
    const double rho = distance ? pe_decay_rank_correlation(distance, s, pairs) : (double)NAN;
    free(distance);
    return rho;
}

/* ---------------------------------------------------------------- of a subject -------------- */

/* The grid that is asked for, or the squarest one. 0: there is none. */
static int choose_grid(const pe_subject *s, int64_t *H, int64_t *W)
{
    *H = s->grid_rows;
    if (!*H && s->coordinates == 2 && !pe_subject_is_by_word(s))
        for (*H = (int64_t)sqrt((double)s->sizes.length); s->sizes.length % *H; --*H)
            ;
    *W = *H ? s->sizes.length / *H : 0;
    return *W > 1 && *H * *W <= MOST_POSITIONS && s->coordinates <= 2;
}

/* The rows of the grid's cells, row by row; a position of one coordinate is the number of its cell. */
static posenc_status take_grid(pe_subject *s, int64_t W, double **table, posenc_error *err)
{
    const int64_t    n = s->sizes.length, shape[3] = {1, n, 2};
    double          *at        = pe_subject_take(s, 2 * n, sizeof *at);
    posenc_positions positions = s->positions;
    if (!at)
        return pe_subject_no_memory(err, "a grid");
    for (int64_t i = 0; i < n; i++) {
        at[2 * i]     = (double)(i / W);
        at[2 * i + 1] = (double)(i % W);
    }
    if (s->coordinates == 2)
        positions = posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, shape));
    return pe_subject_take_rows(s, positions, table, err);
}

static posenc_status find_structure(const double *table, int64_t H, int64_t W, int64_t d, pe_findings *to,
                                    posenc_error *err)
{
    pe_grid_shares      shares;
    const posenc_status status = pe_grid_structure(&shares, table, H, W, d, err);
    if (status)
        return status;
    pe_findings_add(to, PE_ROW_SHARE, shares.rows, NAN, "grid %lldx%lld", (long long)H, (long long)W);
    pe_findings_add(to, PE_COLUMN_SHARE, shares.columns, NAN, "grid %lldx%lld", (long long)H, (long long)W);
    pe_findings_add(to, PE_BEYOND_CHANCE, shares.beyond, NAN, "grid %lldx%lld", (long long)H, (long long)W);
    return POSENC_OK;
}

posenc_status pe_grid_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    int64_t       H, W;
    const int64_t n = s->sizes.length, d = s->dims.d_model;
    double       *table;
    if (!pe_subject_has(s, POSENC_PLACE_INPUT) || !choose_grid(s, &H, &W))
        return POSENC_OK;
    double *products = pe_subject_take(s, n * n, sizeof *products);
    if (!products)
        return pe_subject_no_memory(err, "products");
    const posenc_status status = take_grid(s, W, &table, err);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t c = 0; c < d; c++)
                sum += table[i * d + c] * table[j * d + c];
            products[i * n + j] = sum;
        }
    pe_findings_add(to, PE_TREND, pe_grid_trend(products, H, W), NAN, "p_i . p_j, grid %lldx%lld",
                    (long long)H, (long long)W);
    return find_structure(table, H, W, d, to, err);
}
