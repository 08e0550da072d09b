/* SPDX-License-Identifier: MIT */
/*
 * test_logs: ln(1 + x), on every instruction set this processor has
 *
 * Against long double from 1e-300 to 1e300, where most are as large as distances make them; both sides of
 * where the parts of the sum are cut; every length up to some vectors; ends and special numbers; the same
 * bits on all sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/posenc.h>
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

/* A tenth anywhere, the others up to millions; then numbers about the cuts, sqrt(2) 2^k - 1. */
static double drawn(uint64_t i)
{
    const double u = posenc_random_uniform(5, "x", i);
    if (i % 10 == 1)
        return ldexp(sqrt(2), (int)(i / 10 % 40)) * (1 + (u - 0.5) * 0x1p-50) - 1;
    return i % 10 ? exp(u * 30 - 15) : exp((u - 0.5) * 1380);
}

static void is_near(double found, double x)
{
    const long double exact = log1pl((long double)x);
    if (!(fabsl(found - exact) <= (long double)(ULPS * 0x1p-53) * exact))
        fail_msg("ln(1 + %.17g) is %.17g instead of %.17Lg", x, found, exact);
}

static void check_error(const pe_kernels *kernels)
{
    static double x[MANY], y[MANY], plain[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        x[i] = drawn(i);
    x[0] = 0, x[2] = 1e-300, x[3] = 1e300, x[4] = 1, x[5] = 0x1p53;
    memcpy(y, x, sizeof y);
    memcpy(plain, x, sizeof plain);
    kernels->logs(y, MANY);
    pe_kernels_at(0)->logs(plain, MANY);
    for (int i = 0; i < MANY; i++)
        is_near(y[i], x[i]);
    assert_true(y[0] == 0);
    assert_memory_equal(y, plain, sizeof y);
}

static void check_tails(const pe_kernels *kernels)
{
    double x[MOST], y[MOST + 1];
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i <= MOST; i++)
            y[i] = UNTOUCHED;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] = drawn((uint64_t)(n * MOST + i));
        kernels->logs(y, n);
        for (int64_t i = 0; i < n; i++)
            is_near(y[i], x[i]);
        for (int64_t i = n; i <= MOST; i++)
            assert_true(y[i] == UNTOUCHED);
    }
}

static void check_special(const pe_kernels *kernels)
{
    double x[] = {INFINITY, NAN};
    kernels->logs(x, 2);
    assert_true(x[0] == INFINITY && isnan(x[1]));
}

static void logarithms_are_within_four_ulp_and_everywhere_the_same(void **state)
{
    (void)state;
    on_all(check_error);
}

static void logarithms_write_what_they_are_asked_for(void **state)
{
    (void)state;
    on_all(check_tails);
}

static void logarithms_know_the_end_of_the_line(void **state)
{
    (void)state;
    on_all(check_special);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_are_within_four_ulp_and_everywhere_the_same),
        cmocka_unit_test(logarithms_write_what_they_are_asked_for),
        cmocka_unit_test(logarithms_know_the_end_of_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
