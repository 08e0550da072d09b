/* SPDX-License-Identifier: MIT */
/* The module's fma: exact where a product and a number cancel, else as good as two roundings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "explore/fused.h"

#include <posenc/registry.h>

enum { COUNT = 100000 };

static double drawn(const char *name, uint64_t i)
{
    return ldexp(posenc_random_normal(1, name, 2 * i),
                 (int)(80 * posenc_random_uniform(2, name, 2 * i)) - 40);
}

static void assert_within(double a, double b, double c, double part)
{
    const double mine = pe_fused(a, b, c), its = fma(a, b, c);
    if (!(fabs(mine - its) <= part * fabs(its)) && !(isnan(mine) && isnan(its)) && mine != its)
        fail_msg("fma(%a, %a, %a) is %a, not %a", a, b, c, its, mine);
}

static void what_a_product_lost_is_exact(void **state)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const double a = drawn("a", i), b = drawn("b", i);
        assert_within(a, b, -(a * b), 0);
        assert_within(-(a / b), b, a, 0); /* the rest of a division */
    }
}

static void numbers_that_nearly_cancel_keep_all_bits(void **state)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const double a = drawn("a", i), b = drawn("b", i);
        assert_within(a, b, -(a * b) * (1 + ldexp(1, -(int)(i % 52))), 0x1p-52);
    }
}

static void else_two_roundings_do(void **state)
{
    for (uint64_t i = 0; i < COUNT; i++)
        assert_within(drawn("a", i), drawn("b", i), drawn("c", i), 4 * 0x1p-53);
}

static void zeros_and_infinities_stay(void **state)
{
    static const double x[] = {0, -0.0, 1, -3, 1e-9, INFINITY, -INFINITY, NAN};
    const int           n   = sizeof x / sizeof *x;
    for (int i = 0; i < n * n * n; i++)
        assert_within(x[i % n], x[i / n % n], x[i / n / n], 0x1p-52);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_product_lost_is_exact),
        cmocka_unit_test(numbers_that_nearly_cancel_keep_all_bits),
        cmocka_unit_test(else_two_roundings_do),
        cmocka_unit_test(zeros_and_infinities_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
