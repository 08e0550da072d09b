/* SPDX-License-Identifier: MIT */
/*
 * The optimiser against numbers worked out by hand.
 *
 * One element, rate 0.1, decay 0.01, gradients 0.5 and then -1:
 *     step 1: m = 0.05, v = 0.0125; corrected 0.5 and 0.25; theta = 1 * 0.999 - 0.1 * 0.5 / 0.5 = 0.899
 *     step 2: m = 0.9 * 0.05 - 0.1 = -0.055, v = 0.95 * 0.0125 + 0.05 = 0.061875; corrected -0.055 / 0.19 and
 *             0.061875 / 0.0975; theta = 0.899 * 0.999 + 0.1 * 0.28947368 / 0.79662779 = 0.93443838
 */
#include "train/model/optimiser.h"
#include "train/model/products.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const pe_weight matrix = {
    .name = "matrix", .offset = 0, .count = 1, .rate = 1, .decays = 1, .trains = 1};
static const pe_weight vector = {
    .name = "vector", .offset = 0, .count = 1, .rate = 1, .decays = 0, .trains = 1};
static const pe_weight fixed = {
    .name = "fixed", .offset = 0, .count = 1, .rate = 1, .decays = 0, .trains = 0};

static pe_optimiser *optimiser_of_weight(const pe_weight *w)
{
    pe_optimiser *o;
    assert_int_equal(pe_optimiser_create(&o, w, 1, pe_kernels_choose(), NULL), POSENC_OK);
    return o;
}

static pe_optimiser *optimiser_of(int64_t size)
{
    return optimiser_of_weight(&(pe_weight){.count = size});
}

static void two_steps_of_a_matrix_are_the_hand_computed_ones(void **state)
{
    (void)state;
    pe_optimiser *o     = optimiser_of(1);
    float         theta = 1, grad = 0.5f;
    pe_optimiser_step(o, &theta, &grad, &matrix, 1, 0.1, 0.01, 0);
    assert_true(fabs((double)theta - 0.899) < 1e-6);
    grad = -1;
    pe_optimiser_step(o, &theta, &grad, &matrix, 1, 0.1, 0.01, 0);
    assert_true(fabs((double)theta - 0.93443838) < 1e-6);
    pe_optimiser_free(o);
}

static void a_vector_does_not_decay(void **state)
{
    (void)state;
    pe_optimiser *o     = optimiser_of(1);
    float         theta = 1, grad = 0.5f;
    pe_optimiser_step(o, &theta, &grad, &vector, 1, 0.1, 0.01, 0);
    assert_true(fabs((double)theta - 0.9) < 1e-6);
    pe_optimiser_free(o);
}

static void a_fixed_parameter_stays_to_the_bit(void **state)
{
    (void)state;
    pe_optimiser *o     = optimiser_of(1);
    float         theta = 0.7f, grad = 3;
    pe_optimiser_step(o, &theta, &grad, &fixed, 1, 0.1, 0.01, 0);
    assert_true(theta == 0.7f);
    pe_optimiser_free(o);
}

/* The first step of Adam has length `rate` whatever the gradient's; the second sees the ratio of
   the two. */
static void a_long_gradient_counts_as_one_of_length_clip(void **state)
{
    (void)state;
    const float   raw[2] = {30, 40}, clipped[2] = {0.6f, 0.8f}, small[2] = {0.1f, -0.2f};
    pe_optimiser *a = optimiser_of(2), *b = optimiser_of(2);
    pe_weight     w    = vector;
    float         x[2] = {1, 2}, y[2] = {1, 2};
    w.count = 2;
    assert_true(pe_optimiser_step(a, x, raw, &w, 1, 0.1, 0, 1) == 50);
    pe_optimiser_step(b, y, clipped, &w, 1, 0.1, 0, 1);
    pe_optimiser_step(a, x, small, &w, 1, 0.1, 0, 1);
    pe_optimiser_step(b, y, small, &w, 1, 0.1, 0, 1);
    for (int i = 0; i < 2; i++)
        assert_true(fabsf(x[i] - y[i]) < 1e-6f);
    pe_optimiser_free(a);
    pe_optimiser_free(b);
}

static void a_gradient_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    pe_optimiser *a = optimiser_of(1), *b = optimiser_of(1);
    float         x = 1, y = 1, bad = NAN, good = 0.5f;
    const double  norm = pe_optimiser_step(a, &x, &bad, &matrix, 1, 0.1, 0.01, 1);
    assert_true(isnan(norm));
    assert_true(x == 1);
    pe_optimiser_step(a, &x, &good, &matrix, 1, 0.1, 0.01, 1);
    pe_optimiser_step(b, &y, &good, &matrix, 1, 0.1, 0.01, 1);
    assert_true(x == y);
    pe_optimiser_free(a);
    pe_optimiser_free(b);
}

static void the_rate_rises_to_its_peak_and_ends_at_a_tenth(void **state)
{
    (void)state;
    assert_true(fabs(pe_optimiser_rate(2, 0, 100, 500) - 0.02) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 99, 100, 500) - 2) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 100, 100, 500) - 2) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 300, 100, 500) - 1) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 499, 100, 500) - 0.005) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 0, 0, 1) - 2) < 1e-12);
}

static void the_norm_of_three_and_four_is_five(void **state)
{
    (void)state;
    float g[19] = {0};
    g[2]        = 3;
    g[17]       = 4;
    assert_true(pe_products_norm(g, 19) == 5);
}

/* ---------------------------------------------------------------- matrices ------------------ */

enum { ROWS = 48, COLUMNS = 16, MOST = 2 * ROWS * COLUMNS };

/* H = I - 2 v v^T, v = (1, 1, ..., 1) / sqrt(n): x = H x, or x H, for x [rows, columns]. */
static void reflect(double *x, int64_t rows, int64_t columns, int from_left)
{
    const int64_t n = from_left ? rows : columns, others = from_left ? columns : rows;
    for (int64_t o = 0; o < others; o++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[from_left ? i * columns + o : o * columns + i];
        for (int64_t i = 0; i < n; i++)
            x[from_left ? i * columns + o : o * columns + i] -= 2 * sum / (double)n;
    }
}

/* A matrix with singular values 1, 0.9, 0.81 ..., whose singular vectors are those of the reflections. */
static void known_matrix(float *g, int64_t rows, int64_t columns)
{
    double x[MOST] = {0};
    for (int64_t i = 0; i < rows && i < columns; i++)
        x[i * columns + i] = pow(0.9, (double)i);
    reflect(x, rows, columns, 1);
    reflect(x, rows, columns, 0);
    for (int64_t i = 0; i < rows * columns; i++)
        g[i] = (float)x[i];
}

/* From zero a step is -0.8 rate sqrt(max(1, out / in)) times a matrix with the same singular vectors and
   singular values near one. */
static void check_step(int64_t rows, int64_t columns)
{
    const pe_weight w      = {.count = rows * columns, .rows = rows, .matrices = 1, .rate = 1, .trains = 1};
    const double    length = 0.8 * 0.1 * sqrt(columns > rows ? (double)columns / (double)rows : 1);
    float           theta[MOST] = {0}, g[MOST];
    double          x[MOST];
    pe_optimiser   *o = optimiser_of_weight(&w);
    known_matrix(g, rows, columns);
    pe_optimiser_step(o, theta, g, &w, 1, 0.1, 0, 1);
    for (int64_t i = 0; i < w.count; i++)
        x[i] = -(double)theta[i] / length;
    reflect(x, rows, columns, 1);
    reflect(x, rows, columns, 0);
    for (int64_t i = 0; i < w.count; i++)
        if (i / columns == i % columns)
            assert_true(x[i] > 0.65 && x[i] < 1.25);
        else
            assert_true(fabs(x[i]) < 1e-3);
    pe_optimiser_free(o);
}

static void a_step_of_a_matrix_is_orthogonal(void **state)
{
    (void)state;
    check_step(ROWS, COLUMNS);
    check_step(COLUMNS, ROWS);
    check_step(COLUMNS, COLUMNS);
}

/* The length of its gradient does not count, and clipping neither. */
static void matrices_side_by_side_are_stepped_each_by_itself(void **state)
{
    const pe_weight both = {.count = MOST, .rows = ROWS, .matrices = 2, .rate = 1, .trains = 1};
    const pe_weight one  = {.count = MOST / 2, .rows = ROWS, .matrices = 1, .rate = 1, .trains = 1};
    float           g[MOST / 2], pair[MOST], theta[MOST] = {0}, single[MOST / 2] = {0};
    pe_optimiser   *o = optimiser_of_weight(&both), *p = optimiser_of_weight(&one);
    (void)state;
    known_matrix(g, ROWS, COLUMNS);
    for (int64_t i = 0; i < MOST; i++) {
        const int64_t r = i / (2 * COLUMNS), c = i % (2 * COLUMNS);
        pair[i] = c < COLUMNS ? g[r * COLUMNS + c] : 100 * g[r * COLUMNS + c - COLUMNS];
    }
    pe_optimiser_step(o, theta, pair, &both, 1, 0.1, 0, 1);
    pe_optimiser_step(p, single, g, &one, 1, 0.1, 0, 0);
    for (int64_t i = 0; i < MOST; i++)
        assert_true(fabsf(theta[i] - single[i / (2 * COLUMNS) * COLUMNS + i % COLUMNS]) < 1e-5F);
    pe_optimiser_free(o);
    pe_optimiser_free(p);
}

static void a_gradient_of_zero_moves_no_matrix(void **state)
{
    const pe_weight w         = {.count = 16, .rows = 4, .matrices = 1, .rate = 1, .trains = 1};
    const float     g[16]     = {0};
    float           theta[16] = {1};
    pe_optimiser   *o         = optimiser_of_weight(&w);
    (void)state;
    pe_optimiser_step(o, theta, g, &w, 1, 0.1, 0, 1);
    assert_true(theta[0] == 1 && theta[1] == 0);
    pe_optimiser_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_a_matrix_is_orthogonal),
        cmocka_unit_test(matrices_side_by_side_are_stepped_each_by_itself),
        cmocka_unit_test(a_gradient_of_zero_moves_no_matrix),
        cmocka_unit_test(two_steps_of_a_matrix_are_the_hand_computed_ones),
        cmocka_unit_test(a_vector_does_not_decay),
        cmocka_unit_test(a_fixed_parameter_stays_to_the_bit),
        cmocka_unit_test(a_long_gradient_counts_as_one_of_length_clip),
        cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(the_rate_rises_to_its_peak_and_ends_at_a_tenth),
        cmocka_unit_test(the_norm_of_three_and_four_is_five),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
