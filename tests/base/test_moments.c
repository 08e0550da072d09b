/* SPDX-License-Identifier: MIT */
/* test_moments: mean and deviation of a row, as a LayerNorm takes them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/registry.h>

#include "base/moments.h"

enum { MOST = 257 };

static void draw(double *row, int64_t n, double offset)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = offset + posenc_random_normal(9, "row", (uint64_t)i);
}

/* The mean of all squared differences of two is twice the variance: no mean is needed. */
static double variance_by_pairs(const double *row, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            sum += (row[i] - row[j]) * (row[i] - row[j]);
    return sum / (2 * (double)(n * n));
}

static void the_variance_is_that_of_all_pairs(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 64, MOST};
    double               row[MOST];
    (void)state;
    for (int i = 0; i < 5; i++) {
        draw(row, sizes[i], 2);
        const double eps    = 1e-5;
        const double wanted = 1 / sqrt(variance_by_pairs(row, sizes[i]) + eps);
        assert_true(fabs(pe_moments_of(row, sizes[i], eps).inverse / wanted - 1) < 1e-13);
    }
}

/* Rounding a number of 2^40 moves it by 2^-13 at most: so may the mean move, and no more. */
static void a_row_far_from_zero_loses_no_more_than_its_own_rounding(void **state)
{
    double near[64], far[64];
    (void)state;
    draw(near, 64, 0);
    draw(far, 64, 0x1p40);
    const pe_moments a = pe_moments_of(near, 64, 0), b = pe_moments_of(far, 64, 0);
    assert_true(fabs(b.mean - 0x1p40 - a.mean) < 0x1p-12);
    assert_true(fabs(b.inverse / a.inverse - 1) < 0x1p-10);
}

static void a_normalised_row_has_mean_0_and_variance_1(void **state)
{
    double row[100], sum = 0, squares = 0;
    (void)state;
    draw(row, 100, -7);
    const pe_moments m = pe_moments_of(row, 100, 0);
    for (int i = 0; i < 100; i++) {
        const double x = (row[i] - m.mean) * m.inverse;
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum) < 1e-12);
    assert_true(fabs(squares / 100 - 1) < 1e-13);
}

static void a_row_that_does_not_vary_has_the_deviation_of_eps(void **state)
{
    const double level[4] = {3, 3, 3, 3};
    (void)state;
    assert_true(pe_moments_of(level, 4, 0x1p-10).mean == 3);
    assert_true(pe_moments_of(level, 4, 0x1p-10).inverse == 32);
    assert_true(isinf(pe_moments_of(level, 1, 0).inverse));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variance_is_that_of_all_pairs),
        cmocka_unit_test(a_row_far_from_zero_loses_no_more_than_its_own_rounding),
        cmocka_unit_test(a_normalised_row_has_mean_0_and_variance_1),
        cmocka_unit_test(a_row_that_does_not_vary_has_the_deviation_of_eps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
