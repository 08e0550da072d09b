/* SPDX-License-Identifier: MIT */
/*
 * test_wide: numbers of two doubles against MPFR
 *
 * Operands are wide themselves, random over the range that frequencies have: bases and factors up to 1e12,
 * exponents down to -1. The tolerances are the Error line of wide.h. What is no finite number must come out
 * as IEEE has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <mpfr.h>
#include <posenc/registry.h>

#include "base/angle.h"
#include "base/wide.h"

enum { BITS = 240, TRIES = 4000 };

/* Between low and high by its logarithm, with a second part. */
static pe_wide random_wide(const char *name, uint64_t i, double low, double high)
{
    const double u = posenc_random_uniform(5, name, 2 * i), v = posenc_random_uniform(5, name, 2 * i + 1);
    const double x = low * pow(high / low, u);
    return pe_wide_joined(x, x * 0x1p-53 * (v - 0.5));
}

static void set(mpfr_t to, pe_wide x)
{
    mpfr_set_d(to, x.hi, MPFR_RNDN);
    mpfr_add_d(to, to, x.lo, MPFR_RNDN);
}

/* Is got within 2^-bits of want's size, and its first part the rounded number? */
static void assert_wide(pe_wide got, const mpfr_t want, int bits, const char *what)
{
    mpfr_t difference;
    mpfr_init2(difference, BITS);
    set(difference, got);
    mpfr_sub(difference, difference, want, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(difference, MPFR_RNDN)), size = fabs(mpfr_get_d(want, MPFR_RNDN));
    if (!(error <= ldexp(size, -bits)) || got.hi + got.lo != got.hi)
        fail_msg("%s: %.17g + %.17g is off by 2^%.1f of itself", what, got.hi, got.lo, log2(error / size));
    mpfr_clear(difference);
}

typedef int mpfr_two(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static void sums_products_and_ratios_have_two_doubles_digits(void **state)
{
    static const struct {
        const char *name;
        pe_wide (*ours)(pe_wide, pe_wide);
        mpfr_two *theirs;
        int       bits;
    } all[] = {{"sum", pe_wide_sum, mpfr_add, 104},
               {"product", pe_wide_product, mpfr_mul, 103},
               {"ratio", pe_wide_ratio, mpfr_div, 103}};
    mpfr_t a, b, want;
    (void)state;
    mpfr_inits2(BITS, a, b, want, (mpfr_ptr)0);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (uint64_t i = 0; i < TRIES; i++) {
            const pe_wide x = random_wide("x", i, 1e-12, 1e12), y = random_wide("y", i, 1e-12, 1e12);
            set(a, x), set(b, y);
            all[k].theirs(want, a, b, MPFR_RNDN);
            assert_wide(all[k].ours(x, y), want, all[k].bits, all[k].name);
        }
    mpfr_clears(a, b, want, (mpfr_ptr)0);
}

static void powers_are_right_to_2_to_the_minus_90(void **state)
{
    mpfr_t a, b, want;
    (void)state;
    mpfr_inits2(BITS, a, b, want, (mpfr_ptr)0);
    for (uint64_t i = 0; i < TRIES; i++) {
        const pe_wide x = random_wide("base", i, 1 + 1e-3, 1e12), y = random_wide("exponent", i, 1e-4, 1.5);
        const pe_wide back = {-y.hi, -y.lo};
        set(a, x), set(b, back);
        mpfr_pow(want, a, b, MPFR_RNDN);
        assert_wide(pe_wide_power(x, back), want, 90, "power");
        mpfr_log(want, a, MPFR_RNDN);
        assert_wide(pe_wide_log(x), want, 90, "log");
        mpfr_exp(want, b, MPFR_RNDN);
        assert_wide(pe_wide_exp(back), want, 90, "exp");
    }
    mpfr_clears(a, b, want, (mpfr_ptr)0);
}

static void what_is_no_number_stays_none(void **state)
{
    (void)state;
    assert_true(isnan(pe_wide_product(pe_wide_of((double)NAN), pe_wide_of(2)).hi));
    assert_true(isnan(pe_wide_exp(pe_wide_of((double)NAN)).hi));
    assert_true(pe_wide_exp(pe_wide_of(-1e4)).hi == 0 && isinf(pe_wide_exp(pe_wide_of(1e4)).hi));
    assert_true(pe_wide_power(pe_wide_of(INFINITY), pe_wide_of(-1)).hi == 0);
    assert_true(pe_wide_power(pe_wide_of(7), pe_wide_of(0)).hi == 1);
    const pe_wide far = pe_wide_product(pe_wide_of(1e300), pe_wide_of(1e300));
    assert_true(isinf(far.hi) && far.lo == 0);
}

/* Those of sinusoidal tables: base^(-k/N) rounded once, whatever the width. */
static void frequencies_of_waves_are_rounded_once(void **state)
{
    static const double bases[] = {100, 1e4, 5e5, 1e6};
    static const double sizes[] = {9, 65, 150, 255, 256, 384, 511, 0.5};
    mpfr_t              base, k, want;
    (void)state;
    mpfr_inits2(BITS, base, k, want, (mpfr_ptr)0);
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (double i = 0; i < fmax(sizes[n], 1); i++) {
                mpfr_set_d(base, bases[b], MPFR_RNDN);
                mpfr_set_d(k, -i, MPFR_RNDN);
                mpfr_div_d(k, k, sizes[n], MPFR_RNDN);
                mpfr_pow(want, base, k, MPFR_RNDN);
                assert_true(pe_angle_base_frequency(bases[b], i, sizes[n]) == mpfr_get_d(want, MPFR_RNDN));
            }
    mpfr_clears(base, k, want, (mpfr_ptr)0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_products_and_ratios_have_two_doubles_digits),
        cmocka_unit_test(powers_are_right_to_2_to_the_minus_90),
        cmocka_unit_test(what_is_no_number_stays_none),
        cmocka_unit_test(frequencies_of_waves_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
