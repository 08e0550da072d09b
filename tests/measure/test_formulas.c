/* SPDX-License-Identifier: MIT */
/*
 * The formulas behind the properties, each against its definition summed directly, on tables of any size, and
 * on tables whose answer is a theorem
 */
#include "measure/subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"

enum { MOST_NUMBERS = 1 << 15 };

static double numbers[MOST_NUMBERS], others[MOST_NUMBERS];

/* cmocka's assert_float_equal compares floats: too coarse here. */
static void near(double x, double wanted, double error)
{
    if (!(fabs(x - wanted) <= error))
        fail_msg("%.17g is not %.17g within %g", x, wanted, error);
}

/* n numbers from N(0,1) in `numbers`. */
static void draw(int64_t n, const char *name)
{
    assert_true(n <= MOST_NUMBERS);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = posenc_random_normal(11, name, (uint64_t)i);
}

/* ---------------------------------------------------------------- uniqueness ---------------- */

static double distance(const double *table, int64_t d, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += pow(table[i * d + c] - table[j * d + c], 2);
    return sqrt(sum);
}

/* Widths on both sides of a block of 8. */
static void the_nearest_pair_is_the_nearest_of_all(void **state)
{
    static const int64_t widths[] = {1, 7, 8, 9, 17}, lengths[] = {2, 3, 40};
    (void)state;
    for (int w = 0; w < 5; w++)
        for (int l = 0; l < 3; l++) {
            const int64_t d = widths[w], N = lengths[l];
            double        least = INFINITY, squares = 0;
            draw(N * d, "nearest");
            for (int64_t i = 0; i < N * d; i++)
                squares += numbers[i] * numbers[i] / (double)N;
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < i; j++)
                    least = fmin(least, distance(numbers, d, i, j));
            const pe_row_pair pair = pe_uniqueness_nearest_pair(numbers, N, d);
            assert_true(0 <= pair.first && pair.first < pair.second && pair.second < N);
            near(distance(numbers, d, pair.first, pair.second), least, 1e-14);
            near(pair.distance, least / sqrt(squares), 1e-14);
        }
}

static void the_nearest_pair_knows_no_scale_and_finds_equal_rows(void **state)
{
    static const double zeros[6] = {0};
    (void)state;
    draw(60, "scale");
    const pe_row_pair plain = pe_uniqueness_nearest_pair(numbers, 20, 3);
    for (int i = 0; i < 60; i++)
        others[i] = 1024 * numbers[i];
    near(pe_uniqueness_nearest_pair(others, 20, 3).distance, plain.distance, 1e-15);
    memcpy(others + 3 * 17, others + 3 * 4, 3 * sizeof *others);
    const pe_row_pair equal = pe_uniqueness_nearest_pair(others, 20, 3);
    assert_true(equal.distance == 0 && equal.first == 4 && equal.second == 17);
    assert_true(pe_uniqueness_nearest_pair(zeros, 2, 3).distance == 0);
}

static void rows_are_counted_after_rounding(void **state)
{
    enum { N = 300, WIDTH = 2 };
    int64_t distinct = 0;
    (void)state;
    draw(N * WIDTH, "distinct");
    for (int i = 0; i < N * WIDTH; i++) { /* few values, so that rows coincide, and some only once rounded */
        numbers[i] = (double)(float)(floor(numbers[i] * 4) / 4 * (1 + 0x1p-12 * (i % 3)));
        others[i]  = (double)pe_half_bf16_to_float(pe_half_float_to_bf16((float)numbers[i]));
        assert_true(pe_uniqueness_round_bf16(numbers[i]) == others[i]);
    }
    for (int i = 0; i < N; i++) {
        int is_new = 1;
        for (int j = 0; j < i; j++)
            is_new = is_new && distance(others, WIDTH, i, j) > 0;
        distinct += is_new;
    }
    assert_true(distinct > 20 && distinct < N);
    assert_int_equal(pe_uniqueness_distinct_rows(numbers, N, WIDTH), distinct);
    assert_int_equal(pe_uniqueness_distinct_rows((const double[]){0.0, -0.0}, 2, 1), 1);
    assert_int_equal(pe_uniqueness_distinct_rows((const double[]){5}, 1, 1), 1);
}

/* ---------------------------------------------------------------- relativity ---------------- */

/* Row i turns d/2 pairs by i times their frequencies: a step is a rotation. */
static void fill_rotating(double *table, int64_t N, int64_t d)
{
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < d; c += 2) {
            table[i * d + c]     = cos((double)i * pow(0.3, (double)c / 2));
            table[i * d + c + 1] = sin((double)i * pow(0.3, (double)c / 2));
        }
}

static double residual_of(const double *table, int64_t N, int64_t d, int64_t k)
{
    double r;
    assert_int_equal(pe_relativity_shift_residual(&r, table, N, d, k, NULL), POSENC_OK);
    return r;
}

static double share_of(const double *table, int64_t N, int64_t d)
{
    double tau;
    assert_int_equal(pe_relativity_offset_share(&tau, table, N, d, NULL), POSENC_OK);
    return tau;
}

static void a_rotation_is_relative_and_noise_is_not(void **state)
{
    (void)state;
    fill_rotating(numbers, 80, 6);
    near(residual_of(numbers, 80, 6, 1), 0, 1e-20);
    near(residual_of(numbers, 80, 6, 7), 0, 1e-20);
    near(share_of(numbers, 80, 6), 0, 1e-25);
    draw(400 * 4, "noise");
    assert_true(residual_of(numbers, 400, 4, 1) > 0.9); /* a fit on other rows explains nothing */
    assert_true(share_of(numbers, 400, 4) > 0.9);
}

static void a_residual_needs_four_rows_per_channel_and_a_table_that_moves(void **state)
{
    (void)state;
    draw(40 * 4, "few");
    assert_true(isnan(residual_of(numbers, 20, 4, 5)));
    assert_true(residual_of(numbers, 21, 4, 5) > 0);
    for (int i = 0; i < 160; i++)
        others[i] = 0.1; /* the mean of many is not quite 0.1 */
    assert_true(isnan(residual_of(others, 40, 4, 1)));
    assert_true(isnan(share_of(others, 40, 4)));
}

static void a_scale_of_the_table_changes_no_share(void **state)
{
    (void)state;
    draw(60 * 3, "scale");
    for (int i = 0; i < 180; i++)
        others[i] = numbers[i] * 64;
    assert_true(residual_of(others, 60, 3, 2) == residual_of(numbers, 60, 3, 2));
    assert_true(share_of(others, 60, 3) == share_of(numbers, 60, 3));
}

/* Only the first 1024 rows count. */
static void long_tables_are_judged_by_their_first_rows(void **state)
{
    (void)state;
    draw(1100, "long");
    const double tau = share_of(numbers, 1024, 1);
    for (int i = 1024; i < 1100; i++)
        numbers[i] = 1e9;
    assert_true(share_of(numbers, 1100, 1) == tau);
    assert_true(share_of(numbers, 1023, 1) != tau);
}

static void idle_channels_span_less_than_a_twentieth(void **state)
{
    static const double table[3 * 4] = {0, 0, 5, 1, 20, 0.99, 5, 2, 10, 0.5, 5, -1};
    (void)state;
    assert_int_equal(pe_relativity_idle_channels(table, 3, 4), 2);  /* spans 20, 0.99, 0, 3 */
    assert_int_equal(pe_relativity_idle_channels(table, 1, 12), 0); /* nothing moves: none lags behind */
}

/* ---------------------------------------------------------------- scores -------------------- */

/* Squares about the means, summed over pairs. */
static void sum_squares(const double *S, int64_t N, int past_only, double *within, double *total,
                        double *means)
{
    double  all   = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++)
            if (!past_only || i > j)
                all += S[i * N + j], count++;
    for (int64_t t = 1 - N; t < N; t++) {
        double  sum = 0;
        int64_t n   = 0;
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++)
                if (i - j == t)
                    sum += S[i * N + j], n++;
        means[N - 1 + t] = sum / (double)n;
    }
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++)
            if (!past_only || i > j) {
                *within += pow(S[i * N + j] - means[N - 1 + i - j], 2);
                *total += pow(S[i * N + j] - all / (double)count, 2);
            }
}

static void squares_by_offset_are_those_of_all_pairs(void **state)
{
    (void)state;
    for (int64_t N = 1; N <= 9; N += 4)
        for (int past_only = 0; past_only <= 1; past_only++) {
            double within = 1, total = 2, wanted_within = 1, wanted_total = 2; /* both are added to */
            double profile[17] = {0}, means[17] = {0};
            draw(N * N, "pairs");
            pe_scores_offset_squares(numbers, N, past_only, &within, &total, profile);
            sum_squares(numbers, N, past_only, &wanted_within, &wanted_total, means);
            near(within, wanted_within, 1e-12);
            near(total, wanted_total, 1e-12);
            for (int64_t t = past_only ? 1 : 1 - N; t < N; t++)
                near(profile[N - 1 + t], means[N - 1 + t], 1e-14);
        }
}

/* ---------------------------------------------------------------- decay --------------------- */

/* Ranks by counting, then Pearson. */
static double direct_spearman(const double *c, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        double rank = 0;
        for (int64_t j = 0; j < n; j++)
            rank += c[j] < c[i] ? 1 : c[j] == c[i] ? 0.5 : 0;
        const double a = (double)i - (double)(n - 1) / 2, b = rank - (double)n / 2;
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    return ab / sqrt(aa * bb);
}

static void spearman_is_the_correlation_of_ranks(void **state)
{
    (void)state;
    for (int64_t n = 2; n < 60; n += 7) {
        draw(n, "ranks");
        for (int64_t i = 0; i < n; i++)
            others[i] = floor(2 * numbers[i]) - 0.1 * (double)i * (double)(n % 2); /* ties in every other */
        near(pe_decay_spearman(numbers, n), direct_spearman(numbers, n), 1e-14);
        if (n > 2)
            near(pe_decay_spearman(others, n), direct_spearman(others, n), 1e-14);
        const double rho = pe_decay_spearman(numbers, n);
        for (int64_t i = 0; i < n; i++)
            numbers[i] = exp(numbers[i]); /* only the order counts */
        assert_true(pe_decay_spearman(numbers, n) == rho);
    }
    assert_true(isnan(pe_decay_spearman(numbers, 1)));
    assert_true(isnan(pe_decay_falling_share(numbers, 1)));
}

/* ---------------------------------------------------------------- on a grid ----------------- */

/* p(y, x) = a(y) + 3 b(x) of random a [H, d] and b [W, d]: the squares about their means say how it divides.
 */
static void a_sum_of_rows_and_columns_is_all_structure(void **state)
{
    enum { H = 5, W = 7, D = 3 };
    double         mean[2][D] = {{0}}, squares[2] = {0};
    pe_grid_shares shares;
    (void)state;
    draw((H + W) * D, "parts");
    for (int i = 0; i < (H + W) * D; i++)
        mean[i >= H * D][i % D] += numbers[i] / (i < H * D ? H : W);
    for (int i = 0; i < (H + W) * D; i++) {
        const double apart = numbers[i] - mean[i >= H * D][i % D];
        squares[i >= H * D] += apart * apart * (i < H * D ? W : 9 * H);
    }
    for (int i = 0; i < H * W * D; i++)
        others[i] = numbers[i / (W * D) * D + i % D] + 3 * numbers[(H + i / D % W) * D + i % D];
    assert_int_equal(pe_grid_structure(&shares, others, H, W, D, NULL), POSENC_OK);
    near(shares.rows, squares[0] / (squares[0] + squares[1]), 1e-14);
    near(shares.columns, squares[1] / (squares[0] + squares[1]), 1e-14);
    near(shares.beyond, 1, 1e-13);
}

/* The mean of 40 tables: a share of degrees of freedom has a standard deviation of about 0.03 here. */
static void random_numbers_have_no_structure_beyond_chance(void **state)
{
    enum { H = 6, W = 4, D = 8, TABLES = 40 };
    double         rows = 0, beyond = 0;
    pe_grid_shares shares;
    (void)state;
    draw(H * W * D * TABLES, "noise");
    for (int k = 0; k < TABLES; k++) {
        assert_int_equal(pe_grid_structure(&shares, numbers + k * H * W * D, H, W, D, NULL), POSENC_OK);
        rows += shares.rows / TABLES;
        beyond += shares.beyond / TABLES;
    }
    near(rows, (H - 1) / (double)(H * W - 1), 0.03);
    near(beyond, 0, 0.05);
}

static void similarity_that_is_less_with_distance_has_the_trend_minus_one(void **state)
{
    enum { H = 4, W = 6, N = H * W };
    (void)state;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            numbers[i * N + j] = exp(-hypot(i / W - j / W, i % W - j % W));
    near(pe_grid_trend(numbers, H, W), -1, 1e-14);
    for (int i = 0; i < N * N; i++)
        numbers[i] = 2;
    assert_true(isnan(pe_grid_trend(numbers, H, W)));
}

static const pe_finding *finding_of(const pe_findings *f, pe_measure m)
{
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].measure == m)
            return &f->rows[i];
    return NULL;
}

/* The figure of docs/properties.md. */
static void an_untrained_table_has_no_structure(void **state)
{
    const pe_subject_sizes sizes = {.length = 512, .width = 64, .heads = 4, .draws = 1, .seed = 1};
    posenc_encoding       *e;
    pe_subject            *s;
    pe_findings            found = {.count = 0};
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "learned", NULL, NULL), POSENC_OK);
    assert_int_equal(pe_subject_create(&s, e, &sizes, NULL), POSENC_OK);
    assert_int_equal(pe_grid_measure(s, &found, NULL), POSENC_OK);
    assert_int_equal(found.count, 0); /* one coordinate, and no grid is said */
    s->grid_rows = 16;
    assert_int_equal(pe_grid_measure(s, &found, NULL), POSENC_OK);
    near(finding_of(&found, PE_BEYOND_CHANCE)->value, 0.002, 0.0005);
    pe_subject_free(s);
    posenc_encoding_free(e);
}

/* Rows are cells row by row, also where a range of positions goes down the columns. */
static void a_table_of_two_coordinates_is_measured_on_a_grid(void **state)
{
    static const char *const specs[] = {"sinusoidal2d", "sinusoidal2d[preset=mocov3]"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        const pe_subject_sizes sizes = {.length = 24, .width = 16, .heads = 1, .draws = 1, .seed = 1};
        posenc_encoding       *e;
        pe_subject            *s;
        pe_findings            found = {.count = 0};
        assert_int_equal(posenc_encoding_create(&e, specs[k], NULL, NULL), POSENC_OK);
        assert_int_equal(pe_subject_create(&s, e, &sizes, NULL), POSENC_OK);
        assert_int_equal(pe_grid_measure(s, &found, NULL), POSENC_OK);
        assert_string_equal(finding_of(&found, PE_ROW_SHARE)->detail, "grid 4x6");
        near(finding_of(&found, PE_BEYOND_CHANCE)->value, 1, 1e-12);
        assert_true(finding_of(&found, PE_TREND)->value < -0.5);
        pe_subject_free(s);
        posenc_encoding_free(e);
    }
}

/* ---------------------------------------------------------------- least squares ------------- */

/* The gradient of |A X - B|^2 is zero at the least squares solution, and of many solutions the shortest is
   meant: it has no part in the kernel of A. */
static void the_fit_is_the_shortest_of_the_least(void **state)
{
    static const struct {
        int64_t m, n, c;
        int     twin; /* the last column repeats the first */
    } rows[] = {{9, 4, 1, 0}, {9, 4, 3, 0}, {8, 8, 2, 0}, {17, 5, 2, 1}, {1, 1, 1, 0}};
    double X[8 * 3];
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const int64_t m = rows[r].m, n = rows[r].n, c = rows[r].c;
        double       *A = numbers, *B = numbers + m * n;
        draw(m * (n + c), "fit");
        for (int64_t i = 0; rows[r].twin && i < m; i++)
            A[i * n + n - 1] = A[i * n];
        assert_int_equal(pe_least_squares_fit(X, A, B, m, n, c, 1e-10, NULL), POSENC_OK);
        for (int64_t j = 0; j < c; j++)
            for (int64_t k = 0; k < n; k++) {
                double gradient = 0;
                for (int64_t i = 0; i < m; i++) {
                    double rest = -B[i * c + j];
                    for (int64_t l = 0; l < n; l++)
                        rest += A[i * n + l] * X[l * c + j];
                    gradient += A[i * n + k] * rest;
                }
                near(gradient, 0, 1e-11);
            }
        for (int64_t j = 0; rows[r].twin && j < c; j++)
            near(X[j], X[(n - 1) * c + j], 1e-12);
    }
}

/* ---------------------------------------------------------------- subjects ------------------ */

static posenc_encoding *encoding(const char *spec)
{
    posenc_encoding *e;
    posenc_error     err;
    if (posenc_encoding_create(&e, spec, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    return e;
}

static pe_subject *subject(const posenc_encoding *e, int64_t length, int64_t width, int64_t heads)
{
    const pe_subject_sizes sizes = {.length = length, .width = width, .heads = heads, .draws = 1, .seed = 3};
    pe_subject            *s;
    posenc_error           err;
    if (pe_subject_create(&s, e, &sizes, &err))
        fail_msg("%s", err.message);
    return s;
}

static void samples_have_a_mean_and_a_spread(void **state)
{
    pe_sample sample = {0};
    (void)state;
    assert_true(isnan(pe_subject_sample_mean(&sample)) && isnan(pe_subject_sample_spread(&sample)));
    pe_subject_sample_add(&sample, 3);
    assert_true(pe_subject_sample_mean(&sample) == 3 && isnan(pe_subject_sample_spread(&sample)));
    pe_subject_sample_add(&sample, (double)NAN); /* a draw without an answer is none */
    pe_subject_sample_add(&sample, 5);
    pe_subject_sample_add(&sample, 10);
    near(pe_subject_sample_mean(&sample), 6, 1e-15);
    near(pe_subject_sample_spread(&sample), sqrt(13), 1e-14); /* (9 + 1 + 16) / 2 */
}

static void heads_that_do_not_divide_the_width_are_refused(void **state)
{
    const pe_subject_sizes sizes = {.length = 8, .width = 10, .heads = 4, .draws = 1};
    posenc_encoding       *e     = encoding("sinusoidal");
    pe_subject            *s     = NULL;
    posenc_error           err;
    (void)state;
    assert_int_equal(pe_subject_create(&s, e, &sizes, &err), POSENC_ERROR_SHAPE);
    assert_null(s);
    assert_string_equal(err.message, "measure: 4 heads do not divide the width 10 of an input encoding");
    assert_int_equal(pe_subject_create(&s, e, &sizes, NULL), POSENC_ERROR_SHAPE);
    posenc_encoding_free(e);
}

static void rows_are_those_of_the_positions(void **state)
{
    enum { N = 12, WIDTH = 6 };
    posenc_encoding *e = encoding("sinusoidal");
    pe_subject      *s = subject(e, N, WIDTH, 1);
    double           at[N];
    (void)state;
    for (int i = 0; i < N; i++)
        at[i] = i + 2;
    assert_int_equal(pe_subject_rows(s, NULL, numbers, NULL), POSENC_OK);
    assert_int_equal(pe_subject_rows(s, at, others, NULL), POSENC_OK);
    assert_memory_equal(others, numbers + 2 * WIDTH, (N - 2) * WIDTH * sizeof *others);
    near(numbers[5 * WIDTH], sin(5), 1e-15);
    near(numbers[5 * WIDTH + 1], cos(5), 1e-15);
    pe_subject_free(s);
    posenc_encoding_free(e);
}

/* ALiBi takes m_h off a score for each token of distance; ones have the same product everywhere. A rotation
   of ones has the mean of cosines. */
static void profiles_are_scores_by_distance(void **state)
{
    enum { N = 20, H = 4, D = 6 };
    posenc_encoding *alibi = encoding("alibi"), *rope = encoding("rope");
    pe_subject      *a = subject(alibi, N, D, H), *r = subject(rope, N, D, H);
    (void)state;
    assert_int_equal(pe_subject_profiles(a, PE_CONTENT_ONES, 0, numbers, NULL), POSENC_OK);
    assert_int_equal(pe_subject_profiles(r, PE_CONTENT_ONES, 0, others, NULL), POSENC_OK);
    for (int h = 0; h < H; h++)
        for (int t = 0; t < N; t++) {
            double cosines = 0;
            for (int m = 0; m < D / 2; m++)
                cosines += 2 * cos(t * pow(10000, -2.0 * m / D));
            near(numbers[h * N + t], D / sqrt(D) - t * pow(2, -8.0 * (h + 1) / H), 1e-13);
            near(others[h * N + t], cosines / sqrt(D), 1e-13);
        }
    pe_subject_free(a);
    pe_subject_free(r);
    posenc_encoding_free(alibi);
    posenc_encoding_free(rope);
}

/* The numbers of a parameter after `make`. */
static void take_params(pe_subject *s, posenc_status (*make)(pe_subject *, uint64_t, posenc_error *),
                        uint64_t seed, double *to)
{
    assert_int_equal(make(s, seed, NULL), POSENC_OK);
    memcpy(to, s->params[0].data, 8 * sizeof *to);
}

static void a_seed_decides_the_parameters(void **state)
{
    posenc_encoding *e = encoding("learned[rows=8]"), *gate = encoding("urpe[bias=none]");
    pe_subject      *s = subject(e, 8, 8, 1), *g = subject(gate, 8, 8, 2);
    double           one[8], again[8], other[8], unit[8], varied[8];
    (void)state;
    take_params(s, pe_subject_initialise, 1, one);
    take_params(s, pe_subject_initialise, 2, other);
    take_params(s, pe_subject_initialise, 1, again);
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    take_params(s, pe_subject_initialise_varied, 1, again); /* what differs already is left alone */
    assert_memory_equal(one, again, sizeof one);
    take_params(g, pe_subject_initialise, 1, unit);
    take_params(g, pe_subject_initialise_varied, 1, varied);
    for (int i = 0; i < 8; i++)
        assert_true(unit[i] == 1 && varied[i] != 1); /* gates that are all open measure nothing */
    pe_subject_free(s);
    pe_subject_free(g);
    posenc_encoding_free(e);
    posenc_encoding_free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_pair_is_the_nearest_of_all),
        cmocka_unit_test(the_nearest_pair_knows_no_scale_and_finds_equal_rows),
        cmocka_unit_test(rows_are_counted_after_rounding),
        cmocka_unit_test(a_rotation_is_relative_and_noise_is_not),
        cmocka_unit_test(a_residual_needs_four_rows_per_channel_and_a_table_that_moves),
        cmocka_unit_test(a_scale_of_the_table_changes_no_share),
        cmocka_unit_test(long_tables_are_judged_by_their_first_rows),
        cmocka_unit_test(idle_channels_span_less_than_a_twentieth),
        cmocka_unit_test(squares_by_offset_are_those_of_all_pairs),
        cmocka_unit_test(spearman_is_the_correlation_of_ranks),
        cmocka_unit_test(a_sum_of_rows_and_columns_is_all_structure),
        cmocka_unit_test(random_numbers_have_no_structure_beyond_chance),
        cmocka_unit_test(similarity_that_is_less_with_distance_has_the_trend_minus_one),
        cmocka_unit_test(an_untrained_table_has_no_structure),
        cmocka_unit_test(a_table_of_two_coordinates_is_measured_on_a_grid),
        cmocka_unit_test(the_fit_is_the_shortest_of_the_least),
        cmocka_unit_test(samples_have_a_mean_and_a_spread),
        cmocka_unit_test(heads_that_do_not_divide_the_width_are_refused),
        cmocka_unit_test(rows_are_those_of_the_positions),
        cmocka_unit_test(profiles_are_scores_by_distance),
        cmocka_unit_test(a_seed_decides_the_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
