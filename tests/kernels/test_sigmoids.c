/* SPDX-License-Identifier: MIT */
/*
 * test_sigmoids: 1 / (1 + e^-x), on every instruction set this processor has
 *
 * Against long double from -700 to 700, where most of what a gate sees is drawn near 0; every length up to
 * some vectors, so that tails are seen; ends and special numbers; and nothing is written behind the last
 * number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/posenc.h>

#include "kernels/kernels.h"

enum { MANY = 20000, MOST = 67 };
static const double ULPS = 4, UNTOUCHED = 7;

static void on_all(void (*check)(const pe_kernels *kernels))
{
    int known = 0;
    for (const pe_kernels *kernels; (kernels = pe_kernels_at(known)) != NULL; known++)
        check(kernels);
    assert_true(known > 0);
}

/* A tenth far out, the others where gates live. */
static double drawn(uint64_t i)
{
    return posenc_random_normal(5, "x", i) * (i % 10 ? 3 : 150);
}

static void is_near(double found, double x)
{
    const long double exact = 1 / (1 + expl(-(long double)x));
    if (fabsl(found - exact) > (long double)(ULPS * 0x1p-53) * exact)
        fail_msg("sigmoid(%.17g) is %.17g instead of %.17Lg", x, found, exact);
}

static void check_error(const pe_kernels *kernels)
{
    static double x[MANY], y[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        x[i] = fmax(-700, fmin(700, drawn(i)));
    x[0] = -700, x[1] = 700, x[2] = 0, x[3] = -0.0, x[4] = 1e-300;
    kernels->sigmoids(y, x, MANY);
    for (int i = 0; i < MANY; i++)
        is_near(y[i], x[i]);
    assert_true(y[2] == 0.5 && y[3] == 0.5);
}

static void check_tails(const pe_kernels *kernels)
{
    double x[MOST], y[MOST + 1];
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i < MOST; i++)
            x[i] = drawn((uint64_t)(n * MOST + i)) / 10;
        for (int64_t i = 0; i <= MOST; i++)
            y[i] = UNTOUCHED;
        kernels->sigmoids(y, x, n);
        for (int64_t i = 0; i < n; i++)
            is_near(y[i], x[i]);
        for (int64_t i = n; i <= MOST; i++)
            assert_true(y[i] == UNTOUCHED);
    }
}

static void check_special(const pe_kernels *kernels)
{
    const double x[] = {-INFINITY, INFINITY, NAN, -1e6, 1e6};
    double       y[5];
    kernels->sigmoids(y, x, 5);
    assert_true(y[0] == 0 && y[1] == 1 && isnan(y[2]) && y[4] == 1);
    assert_true(y[3] >= 0 && y[3] < 1e-304);
}

static void sigmoids_are_within_four_ulp(void **state)
{
    (void)state;
    on_all(check_error);
}

static void sigmoids_write_what_they_are_asked_for(void **state)
{
    (void)state;
    on_all(check_tails);
}

static void sigmoids_know_the_ends_of_the_line(void **state)
{
    (void)state;
    on_all(check_special);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmoids_are_within_four_ulp),
        cmocka_unit_test(sigmoids_write_what_they_are_asked_for),
        cmocka_unit_test(sigmoids_know_the_ends_of_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
