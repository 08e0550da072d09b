/* SPDX-License-Identifier: MIT */
/*
 * test_rope_rounding: a frequency is its formula, rounded once
 *
 * The formulas stand here once more, in MPFR with 240 bits. A frequency must be the double next to the
 * formula's value: half a unit of its last place, and 2^-30 for what the plan carries of it. Bases, widths
 * and factors are those of published models and others at random; powers, pixels (in equal steps and by
 * powers of 2), periods, both forms of NTK, YaRN with its ramp, llama3 with its blend, its step and its step
 * where the two factors stand the wrong way round.
 */
#include "rope_case.h"

#include <mpfr.h>
#include <stdio.h>
#include <string.h>

enum { BITS = 240 };

typedef struct formula {
    double base, factor, original, low, high; /* low, high: beta_slow, beta_fast, or llama3's two */
    int    j, d;
    mpfr_t w, x, y, z;
} formula;

/* base^(-2j/d) */
static void plain(formula *f)
{
    mpfr_set_si(f->x, -2L * f->j, MPFR_RNDN);
    mpfr_div_si(f->x, f->x, f->d, MPFR_RNDN);
    mpfr_set_d(f->w, f->base, MPFR_RNDN);
    mpfr_pow(f->w, f->w, f->x, MPFR_RNDN);
}

static void linear(formula *f)
{
    plain(f);
    mpfr_div_d(f->w, f->w, f->factor, MPFR_RNDN);
}

/* base * factor^(d/(d-2)) for the base. */
static void ntk(formula *f)
{
    mpfr_set_si(f->x, f->d, MPFR_RNDN);
    mpfr_div_si(f->x, f->x, f->d - 2, MPFR_RNDN);
    mpfr_set_d(f->y, f->factor, MPFR_RNDN);
    mpfr_pow(f->y, f->y, f->x, MPFR_RNDN);
    mpfr_mul_d(f->y, f->y, f->base, MPFR_RNDN);
    mpfr_set_si(f->x, -2L * f->j, MPFR_RNDN);
    mpfr_div_si(f->x, f->x, f->d, MPFR_RNDN);
    mpfr_pow(f->w, f->y, f->x, MPFR_RNDN);
}

/* x = the pair that turns so often, which the truncated ramp rounds; z takes log base. */
static double end_of_ramp(formula *f, double turns, int up)
{
    mpfr_const_pi(f->x, MPFR_RNDN);
    mpfr_mul_d(f->x, f->x, 2 * turns, MPFR_RNDN);
    mpfr_d_div(f->x, f->original, f->x, MPFR_RNDN);
    mpfr_log(f->x, f->x, MPFR_RNDN);
    mpfr_set_d(f->z, f->base, MPFR_RNDN);
    mpfr_log(f->z, f->z, MPFR_RNDN);
    mpfr_mul_si(f->x, f->x, f->d, MPFR_RNDN);
    mpfr_div(f->x, f->x, f->z, MPFR_RNDN);
    mpfr_div_si(f->x, f->x, 2, MPFR_RNDN);
    up ? mpfr_ceil(f->x, f->x) : mpfr_floor(f->x, f->x);
    return fmin(fmax(mpfr_get_d(f->x, MPFR_RNDN), 0), f->d - 1);
}

/* w (1 - y) + w/factor y, with the ramp in y. */
static void yarn(formula *f)
{
    const double low = end_of_ramp(f, f->high, 0), high = end_of_ramp(f, f->low, 1);
    mpfr_set_d(f->y, fmin(fmax(f->j - low, 0), high - low), MPFR_RNDN);
    mpfr_div_d(f->y, f->y, high - low, MPFR_RNDN);
    plain(f);
    mpfr_div_d(f->x, f->w, f->factor, MPFR_RNDN);
    mpfr_sub(f->x, f->x, f->w, MPFR_RNDN);
    mpfr_fma(f->w, f->x, f->y, f->w, MPFR_RNDN);
}

/* transformers: wavelengths above original/low are divided, those below original/high are not, the rest is
   blended. */
static void llama3(formula *f)
{
    plain(f);
    mpfr_const_pi(f->x, MPFR_RNDN);
    mpfr_mul_si(f->x, f->x, 2, MPFR_RNDN);
    mpfr_div(f->x, f->w, f->x, MPFR_RNDN);
    mpfr_mul_d(f->x, f->x, f->original, MPFR_RNDN); /* turns */
    const int slow = mpfr_cmp_d(f->x, f->low)<0, fast = mpfr_cmp_d(f->x, f->high)> 0;
    mpfr_div_d(f->y, f->w, f->factor, MPFR_RNDN);
    if (slow)
        mpfr_set(f->w, f->y, MPFR_RNDN);
    if (slow || fast)
        return;
    mpfr_sub_d(f->x, f->x, f->low, MPFR_RNDN);
    mpfr_div_d(f->x, f->x, f->high - f->low, MPFR_RNDN);
    mpfr_sub(f->w, f->w, f->y, MPFR_RNDN);
    mpfr_fma(f->w, f->w, f->x, f->y, MPFR_RNDN);
}

/* x = j / (pairs - 1) */
static void share(formula *f)
{
    mpfr_set_si(f->x, 2L * f->j, MPFR_RNDN);
    mpfr_div_si(f->x, f->x, f->d - 2, MPFR_RNDN);
}

static void times_pi(formula *f)
{
    mpfr_const_pi(f->x, MPFR_RNDN);
    mpfr_mul(f->w, f->w, f->x, MPFR_RNDN);
}

static void even_pixels(formula *f)
{
    share(f);
    mpfr_mul_d(f->w, f->x, f->factor / 2 - 1, MPFR_RNDN);
    mpfr_add_si(f->w, f->w, 1, MPFR_RNDN);
    times_pi(f);
}

static void pixels_by_powers(formula *f)
{
    share(f);
    mpfr_set_d(f->w, f->factor / 2, MPFR_RNDN);
    mpfr_pow(f->w, f->w, f->x, MPFR_RNDN);
    times_pi(f);
}

static void period(formula *f)
{
    plain(f);
    times_pi(f);
    mpfr_mul_si(f->w, f->w, 2, MPFR_RNDN);
}

/* In units of the last place of w as a double. */
static double error_of(formula *f, double got)
{
    const double want = mpfr_get_d(f->w, MPFR_RNDN);
    mpfr_sub_d(f->x, f->w, got, MPFR_RNDN);
    return fabs(mpfr_get_d(f->x, MPFR_RNDN)) / (nextafter(want, INFINITY) - want);
}

static const struct {
    const char *spec; /* base, factor */
    void (*value)(formula *f);
    double original, low, high;
} all[] = {
    {"rope[base=%.17g:factor=%.17g]", plain, 0, 0, 0},
    {"rope[base=%.17g:schedule=linear:factor=%.17g]", linear, 0, 0, 0},
    {"rope[base=%.17g:schedule=ntk:alpha=%.17g]", ntk, 0, 0, 0},
    {"rope[base=%.17g:schedule=yarn:factor=%.17g:original_length=4096]", yarn, 4096, 1, 32},
    {"rope[base=%.17g:schedule=llama3:factor=%.17g:low_freq_factor=1:high_freq_factor=4:original_length="
     "8192]",
     llama3, 8192, 1, 4},
    {"rope[base=%.17g:schedule=llama3:factor=%.17g:low_freq_factor=2:high_freq_factor=2:original_length="
     "8192]",
     llama3, 8192, 2, 2},
    {"rope[base=%.17g:schedule=llama3:factor=%.17g:low_freq_factor=4:high_freq_factor=1:original_length="
     "1024]",
     llama3, 1024, 4, 1},
    {"rope[base=%.17g:schedule=pixel:max_freq=%.17g]", even_pixels, 0, 0, 0},
    {"rope[base=%.17g:schedule=pixel:linear_bands=no:max_freq=%.17g]", pixels_by_powers, 0, 0, 0},
    {"rope[base=%.17g:schedule=period:factor=%.17g]", period, 0, 0, 0},
};

static void check(int i, double base, double factor, int d)
{
    char spec[160];
    snprintf(spec, sizeof spec, all[i].spec, base, factor);
    formula f = {base, factor, all[i].original, all[i].low, all[i].high, 0, d, {{0}}, {{0}}, {{0}}, {{0}}};
    turning t = make(spec, d);
    mpfr_inits2(BITS, f.w, f.x, f.y, f.z, (mpfr_ptr)0);
    for (f.j = 0; f.j < d / 2; f.j++) {
        all[i].value(&f);
        const double error = error_of(&f, t.pairs[f.j].w);
        if (!(error <= 0.5 + 0x1p-30))
            fail_msg("%s, %d channels: w_%d = %.17g is off by %.3f units", spec, d, f.j, t.pairs[f.j].w,
                     error);
    }
    mpfr_clears(f.w, f.x, f.y, f.z, (mpfr_ptr)0);
    drop(&t);
}

static void frequencies_are_rounded_once(void **state)
{
    static const double bases[]   = {1e4, 5e5, 1e6, 11158840, 1.5e5, 100, 7.5, 23123.456};
    static const double factors[] = {224, 10, 4, 31.7};
    static const int    widths[]  = {6, 10, 64, 80, 128};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                check((int)i, bases[b], factors[(b + w) % 4], widths[w]);
}

/* Beyond the step every pair is slowed, before it none. */
static void llama3_with_its_factors_exchanged_is_a_step(void **state)
{
    turning t = make(
                "rope[schedule=llama3:factor=8:low_freq_factor=4:high_freq_factor=1:original_length=1024]",
                64),
            plain_one = make("rope", 64);
    (void)state;
    for (int64_t m = 0; m < t.M; m++) {
        const double turns = 1024 * plain_one.pairs[m].w / 6.283185307179586;
        assert_near(plain_one.pairs[m].w / t.pairs[m].w, turns < 4 ? 8 : 1, 1e-15, "the divisor");
    }
    drop(&t), drop(&plain_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_rounded_once),
        cmocka_unit_test(llama3_with_its_factors_exchanged_is_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
