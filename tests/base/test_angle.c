/* SPDX-License-Identifier: MIT */
/*
 * test_angle: cosine and sine of position * frequency against MPFR
 *
 * The oracle multiplies position and frequency exactly (both are doubles) and rounds the cosine and the sine
 * to 120 bits. Positions are those where errors show: small ones, random ones to 2^31 in both directions,
 * real ones, and the denominators of the continued fraction of 2w/pi, where the angle comes as close to a
 * multiple of pi/2 as any position below them does, so that one function is almost 0 and the other almost 1.
 * The tolerances are the Error line of angle.h.
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

enum { BITS = 120, CONVERGENTS = 40 };

typedef struct worst { /* relative: of what exceeds |p*w| * 2^-104 */
    double float_ulp, relative, absolute;
} worst;

/* x is the oracle's number, got ours, for this angle. */
static void measure(worst *w, double got, const mpfr_t x, double angle)
{
    mpfr_t difference;
    mpfr_init2(difference, BITS);
    mpfr_sub_d(difference, x, got, MPFR_RNDN);
    const double size = fabs(mpfr_get_d(x, MPFR_RNDN)), error = fabs(mpfr_get_d(difference, MPFR_RNDN));
    mpfr_sub_d(difference, x, (double)(float)got, MPFR_RNDN);
    const double rounded = fabs(mpfr_get_d(difference, MPFR_RNDN));
    int          exponent;
    frexp(size, &exponent);
    w->float_ulp        = fmax(w->float_ulp, rounded / ldexp(1, exponent < -125 ? -149 : exponent - 24));
    const double excess = fmax(0, error - fabs(angle) * 0x1p-104);
    w->relative         = fmax(w->relative, size > 0 ? excess / size : excess > 0 ? INFINITY : 0);
    w->absolute         = fmax(w->absolute, error);
    mpfr_clear(difference);
}

static void try_position(worst *w, double position, double frequency)
{
    double cosine, sine;
    mpfr_t angle, c, s;
    mpfr_inits2(BITS, angle, c, s, (mpfr_ptr)0);
    mpfr_set_d(angle, position, MPFR_RNDN);
    mpfr_mul_d(angle, angle, frequency, MPFR_RNDN); /* 106 bits: exact */
    mpfr_sin_cos(s, c, angle, MPFR_RNDN);
    pe_angle_cos_sin(position, pe_angle_frequency(frequency), &cosine, &sine);
    measure(w, cosine, c, position * frequency);
    measure(w, sine, s, position * frequency);
    mpfr_clears(angle, c, s, (mpfr_ptr)0);
}

/* Denominators below 2^31 of the continued fraction of 2w/pi; returns their count. */
static int convergents(double frequency, double denominators[CONVERGENTS])
{
    mpfr_t x, whole;
    double before = 0, now = 1;
    int    n = 0;
    mpfr_inits2(400, x, whole, (mpfr_ptr)0);
    mpfr_const_pi(x, MPFR_RNDN);
    mpfr_d_div(x, 2 * frequency, x, MPFR_RNDN);
    while (n < CONVERGENTS && now < 0x1p31) {
        denominators[n++] = now;
        mpfr_floor(whole, x);
        mpfr_sub(x, x, whole, MPFR_RNDN);
        mpfr_ui_div(x, 1, x, MPFR_RNDN);
        const double quotient = floor(mpfr_get_d(x, MPFR_RNDD)), next = quotient * now + before;
        before = now;
        now    = next;
    }
    mpfr_clears(x, whole, (mpfr_ptr)0);
    return n;
}

/* Frequencies of the rotary tables in use, with 64 pairs: base^(-m/64). */
static double frequency_of(int i)
{
    static const double bases[] = {10000, 500000, 1e6, 100};
    return pow(bases[i % 4], -(double)(i / 4) / 64);
}

enum { FREQUENCIES = 4 * 64 };

static void assert_within_the_error_line(const worst *w)
{
    if (!(w->float_ulp <= 0.501 && w->absolute <= 2.3e-16 && w->relative <= 1e-15))
        fail_msg("off by %.4f float ulp, %.3g relative, %.3g absolute", w->float_ulp, w->relative,
                 w->absolute);
}

static void random_positions_are_exact_to_the_last_bits(void **state)
{
    worst w = {0, 0, 0};
    (void)state;
    for (int i = 0; i < FREQUENCIES; i++)
        for (uint64_t n = 0; n < 40; n++) {
            const double u = posenc_random_uniform(1, "angle", (uint64_t)i * 40 + n), side = n % 2 ? 1 : -1;
            try_position(&w, (double)n * side, frequency_of(i));
            try_position(&w, floor(u * 0x1p31) * side, frequency_of(i));
            try_position(&w, floor(exp2(31 * u)) * side, frequency_of(i));
            try_position(&w, u * 1000 * side, frequency_of(i));
        }
    assert_within_the_error_line(&w);
}

static void positions_that_nearly_hit_a_quarter_turn_are_exact_too(void **state)
{
    worst w     = {0, 0, 0};
    int   tried = 0;
    (void)state;
    for (int i = 0; i < FREQUENCIES; i++) {
        double    p[CONVERGENTS];
        const int n = convergents(frequency_of(i), p);
        for (int c = 0; c < n; c++) {
            try_position(&w, p[c], frequency_of(i));
            try_position(&w, -p[c], frequency_of(i));
            try_position(&w, fmin(2 * p[c], 0x1p31), frequency_of(i));
        }
        tried += n;
    }
    assert_true(tried > 15 * FREQUENCIES);
    assert_within_the_error_line(&w);
}

static void the_ends_of_the_range_are_exact(void **state)
{
    static const double frequencies[] = {1,   -1, 0x1p-20,           1e-300,
                                         0.5, 3,  6.283185307179586, 1.5707963267948966,
                                         0};
    worst               w             = {0, 0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++)
        for (double p = 0x1p31 - 3; p <= 0x1p31; p++) {
            try_position(&w, p, frequencies[i]);
            try_position(&w, -p, frequencies[i]);
        }
    assert_within_the_error_line(&w);
}

static void standing_still_is_exactly_one_and_zero(void **state)
{
    double c, s;
    (void)state;
    pe_angle_cos_sin(0, pe_angle_frequency(0.7), &c, &s);
    assert_true(c == 1 && s == 0);
    pe_angle_cos_sin(12345, pe_angle_frequency(0), &c, &s);
    assert_true(c == 1 && s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_positions_are_exact_to_the_last_bits),
        cmocka_unit_test(positions_that_nearly_hit_a_quarter_turn_are_exact_too),
        cmocka_unit_test(the_ends_of_the_range_are_exact),
        cmocka_unit_test(standing_still_is_exactly_one_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
