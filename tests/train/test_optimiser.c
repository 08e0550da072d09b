/* SPDX-License-Identifier: MIT */
/*
 * The optimiser against numbers worked out by hand.
 *
 * One element, rate 0.1, decay 0.01, gradients 0.5 and then -1:
 *     step 1: m = 0.05, v = 0.005; corrected 0.5 and 0.25; theta = 1 * 0.999 - 0.1 * 0.5 / 0.5 = 0.899
 *     step 2: m = 0.9 * 0.05 - 0.1 = -0.055, v = 0.98 * 0.005 + 0.02 = 0.0249; corrected -0.055 / 0.19 and
 *             0.0249 / 0.0396; theta = 0.899 * 0.999 + 0.1 * 0.28947368 / 0.79296127 = 0.93460634
 */
#include "train/model/optimiser.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const pe_weight matrix = {.name = "matrix", .offset = 0, .count = 1, .decays = 1, .trains = 1};
static const pe_weight vector = {.name = "vector", .offset = 0, .count = 1, .decays = 0, .trains = 1};
static const pe_weight fixed  = {.name = "fixed", .offset = 0, .count = 1, .decays = 0, .trains = 0};

static pe_optimiser *optimiser_of(int64_t size)
{
    pe_optimiser *o;
    assert_int_equal(pe_optimiser_create(&o, size, NULL), POSENC_OK);
    return o;
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
    assert_true(fabs((double)theta - 0.93460634) < 1e-6);
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
    assert_true(fabs(pe_optimiser_rate(2, 299, 100, 500) - 1.1) < 1e-12); /* half way along the cosine */
    assert_true(fabs(pe_optimiser_rate(2, 499, 100, 500) - 0.2) < 1e-12);
    assert_true(fabs(pe_optimiser_rate(2, 0, 0, 1) - 0.2) < 1e-12);
}

static void the_norm_of_three_and_four_is_five(void **state)
{
    (void)state;
    float g[19] = {0};
    g[2]        = 3;
    g[17]       = 4;
    assert_true(pe_optimiser_norm(g, 19) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
