/* SPDX-License-Identifier: MIT */
/*
 * test_curves: ln(1 + x) and 1 / (1 + e^-x), on every instruction set this processor has
 *
 * Against long double: logarithms from 1e-300 to 1e300, where most are as large as distances make them, both
 * sides of where the parts of the sum are cut, and the same bits on all sets; sigmoids from -700 to 700,
 * where most of what a gate sees is drawn near 0. Every length up to some vectors, so that tails are seen;
 * ends and special numbers; and nothing is written behind the last number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <string.h>

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

/* ---- logarithms ---- */

/* A tenth anywhere, the others up to millions; then numbers about the cuts, sqrt(2) 2^k - 1. */
static double log_drawn(uint64_t i)
{
    const double u = posenc_random_uniform(5, "x", i);
    if (i % 10 == 1)
        return ldexp(sqrt(2), (int)(i / 10 % 40)) * (1 + (u - 0.5) * 0x1p-50) - 1;
    return i % 10 ? exp(u * 30 - 15) : exp((u - 0.5) * 1380);
}

static void is_log(double found, double x)
{
    const long double exact = log1pl((long double)x);
    if (!(fabsl(found - exact) <= (long double)(ULPS * 0x1p-53) * exact))
        fail_msg("ln(1 + %.17g) is %.17g instead of %.17Lg", x, found, exact);
}

static void check_log_error(const pe_kernels *kernels)
{
    static double x[MANY], y[MANY], plain[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        x[i] = log_drawn(i);
    x[0] = 0, x[2] = 1e-300, x[3] = 1e300, x[4] = 1, x[5] = 0x1p53;
    memcpy(y, x, sizeof y);
    memcpy(plain, x, sizeof plain);
    kernels->logs(y, MANY);
    pe_kernels_at(0)->logs(plain, MANY);
    for (int i = 0; i < MANY; i++)
        is_log(y[i], x[i]);
    assert_true(y[0] == 0);
    assert_memory_equal(y, plain, sizeof y);
}

static void check_log_tails(const pe_kernels *kernels)
{
    double x[MOST], y[MOST + 1];
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i <= MOST; i++)
            y[i] = UNTOUCHED;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] = log_drawn((uint64_t)(n * MOST + i));
        kernels->logs(y, n);
        for (int64_t i = 0; i < n; i++)
            is_log(y[i], x[i]);
        for (int64_t i = n; i <= MOST; i++)
            assert_true(y[i] == UNTOUCHED);
    }
}

static void check_log_special(const pe_kernels *kernels)
{
    double x[] = {INFINITY, NAN};
    kernels->logs(x, 2);
    assert_true(x[0] == INFINITY && isnan(x[1]));
}

static void logarithms_are_within_four_ulp_and_everywhere_the_same(void **state)
{
    (void)state;
    on_all(check_log_error);
}

static void logarithms_write_what_they_are_asked_for(void **state)
{
    (void)state;
    on_all(check_log_tails);
}

static void logarithms_know_the_end_of_the_line(void **state)
{
    (void)state;
    on_all(check_log_special);
}

/* ---- sigmoids ---- */

/* A tenth far out, the others where gates live. */
static double sigmoid_drawn(uint64_t i)
{
    return posenc_random_normal(5, "x", i) * (i % 10 ? 3 : 150);
}

static void is_sigmoid(double found, double x)
{
    const long double exact = 1 / (1 + expl(-(long double)x));
    if (fabsl(found - exact) > (long double)(ULPS * 0x1p-53) * exact)
        fail_msg("sigmoid(%.17g) is %.17g instead of %.17Lg", x, found, exact);
}

static void check_sigmoid_error(const pe_kernels *kernels)
{
    static double x[MANY], y[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        x[i] = fmax(-700, fmin(700, sigmoid_drawn(i)));
    x[0] = -700, x[1] = 700, x[2] = 0, x[3] = -0.0, x[4] = 1e-300;
    kernels->sigmoids(y, x, MANY);
    for (int i = 0; i < MANY; i++)
        is_sigmoid(y[i], x[i]);
    assert_true(y[2] == 0.5 && y[3] == 0.5);
}

static void check_sigmoid_tails(const pe_kernels *kernels)
{
    double x[MOST], y[MOST + 1];
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i < MOST; i++)
            x[i] = sigmoid_drawn((uint64_t)(n * MOST + i)) / 10;
        for (int64_t i = 0; i <= MOST; i++)
            y[i] = UNTOUCHED;
        kernels->sigmoids(y, x, n);
        for (int64_t i = 0; i < n; i++)
            is_sigmoid(y[i], x[i]);
        for (int64_t i = n; i <= MOST; i++)
            assert_true(y[i] == UNTOUCHED);
    }
}

static void check_sigmoid_special(const pe_kernels *kernels)
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
    on_all(check_sigmoid_error);
}

static void sigmoids_write_what_they_are_asked_for(void **state)
{
    (void)state;
    on_all(check_sigmoid_tails);
}

static void sigmoids_know_the_ends_of_the_line(void **state)
{
    (void)state;
    on_all(check_sigmoid_special);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_are_within_four_ulp_and_everywhere_the_same),
        cmocka_unit_test(logarithms_write_what_they_are_asked_for),
        cmocka_unit_test(logarithms_know_the_end_of_the_line),
        cmocka_unit_test(sigmoids_are_within_four_ulp),
        cmocka_unit_test(sigmoids_write_what_they_are_asked_for),
        cmocka_unit_test(sigmoids_know_the_ends_of_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
