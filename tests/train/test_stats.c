/* SPDX-License-Identifier: MIT */
/*
 * Buckets, smoothing, the paired bootstrap and ranks, on data whose answer is known without them.
 */
#include "train/run/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { L = 16, LENGTH = PE_REACH * L, RESAMPLES = 2000 };

static void buckets_follow_one_another_from_0_to_8_L(void **state)
{
    static const int64_t edges[PE_BUCKETS + 1] = {0, 8, 16, 32, 64, 128};
    (void)state;
    for (int b = 0; b <= PE_BUCKETS; b++)
        assert_int_equal(pe_stats_bucket_edge(L, b), edges[b]);
}

static void a_bucket_takes_its_own_positions_only(void **state)
{
    float  losses[2 * LENGTH];
    double means[2];
    (void)state;
    for (int p = 0; p < LENGTH; p++) {
        losses[p]          = (float)p;
        losses[LENGTH + p] = p >= 8 && p < 16 ? 1.0f : 100.0f;
    }
    pe_stats_bucket_means(means, losses, 2, LENGTH, L, PE_AT_L);
    assert_true(means[0] == (8 + 15) / 2.0 && means[1] == 1);
    pe_stats_bucket_means(means, losses, 2, LENGTH, L, PE_AT_8L);
    assert_true(means[0] == (64 + 127) / 2.0 && means[1] == 100);
}

static void smoothing_is_centred_and_keeps_a_line(void **state)
{
    double x[9], smooth[9];
    (void)state;
    for (int i = 0; i < 9; i++)
        x[i] = 2.0 * i;
    pe_stats_smooth(smooth, x, 9, 3);
    for (int i = 1; i < 8; i++)
        assert_true(fabs(smooth[i] - x[i]) < 1e-12);
    assert_true(smooth[0] == 1 && smooth[8] == 15); /* means of what is there */
    pe_stats_smooth(smooth, x, 9, 1);
    assert_memory_equal(smooth, x, sizeof x);
}

/* ---------------------------------------------------------------- bootstrap ----------------- */

static pe_interval difference_by(uint64_t seed, const double *a, const double *b, int64_t seeds,
                                 int64_t windows, int64_t resamples)
{
    pe_bootstrap *bootstrap;
    assert_int_equal(pe_stats_bootstrap_create(&bootstrap, seeds, windows, resamples, seed, NULL), POSENC_OK);
    const pe_interval d = pe_stats_bootstrap_difference(bootstrap, a, b);
    pe_stats_bootstrap_free(bootstrap);
    return d;
}

static pe_interval difference(const double *a, const double *b, int64_t seeds, int64_t windows,
                              int64_t resamples)
{
    return difference_by(1, a, b, seeds, windows, resamples);
}

static void fill_normal(double *x, int64_t n, const char *name, double mean, double sigma)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = mean + sigma * posenc_random_normal(7, name, (uint64_t)i);
}

static void a_constant_difference_has_no_width(void **state)
{
    double a[40], b[40];
    (void)state;
    fill_normal(a, 40, "text", 2, 0.5);
    for (int i = 0; i < 40; i++)
        b[i] = a[i] - 0.125;
    const pe_interval d = difference(a, b, 1, 40, RESAMPLES);
    assert_true(fabs(d.value - 0.125) < 1e-12 && fabs(d.low - 0.125) < 1e-12 && fabs(d.high - 0.125) < 1e-12);
}

/* Windows differ by 0.5, encodings by 0.02 with noise of 0.01: unpaired nobody could tell. */
static void pairing_sees_what_lies_far_below_the_noise_of_windows(void **state)
{
    double a[96], b[96], noise[96], other[96];
    (void)state;
    fill_normal(a, 96, "text", 2, 0.5);
    fill_normal(noise, 96, "noise", 0.02, 0.01);
    fill_normal(other, 96, "other text", 2, 0.5);
    for (int i = 0; i < 96; i++)
        b[i] = a[i] + noise[i];
    const pe_interval paired   = difference(b, a, 1, 96, RESAMPLES),
                      unpaired = difference(b, other, 1, 96, RESAMPLES);
    assert_true(paired.low > 0 && paired.high < 0.04);
    assert_true(unpaired.high - unpaired.low > 10 * (paired.high - paired.low));
}

/* sigma / sqrt(n), and 1.96 of it on each side */
static void the_interval_shrinks_with_the_root_of_the_windows(void **state)
{
    double a[400], zero[400] = {0};
    (void)state;
    fill_normal(a, 400, "noise", 0, 1);
    const pe_interval few  = difference(a, zero, 1, 100, RESAMPLES),
                      many = difference(a, zero, 1, 400, RESAMPLES);
    const double ratio     = (few.high - few.low) / (many.high - many.low);
    assert_true(ratio > 1.7 && ratio < 2.3);
    assert_true(fabs((many.high - many.low) / (2 * 1.96 / 20) - 1) < 0.15);
}

static void nineteen_of_twenty_intervals_hold_the_truth(void **state)
{
    enum { TRIALS = 400, WINDOWS = 60, FEW = 400 };
    double a[WINDOWS], zero[WINDOWS] = {0};
    int    held = 0;
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        char name[32];
        snprintf(name, sizeof name, "trial %d", trial);
        fill_normal(a, WINDOWS, name, 0.3, 1);
        const pe_interval d = difference(a, zero, 1, WINDOWS, FEW);
        held += d.low <= 0.3 && d.high >= 0.3;
    }
    /* binomial: 380 +- 4.4; percentile intervals of 60 windows are a little narrow */
    assert_true(held >= 360 && held <= 396);
}

/* Windows agree, seeds do not: only resampling seeds can know. */
static void several_seeds_widen_the_interval_by_what_they_disagree(void **state)
{
    enum { SEEDS = 3, WINDOWS = 50 };
    double a[SEEDS * WINDOWS], zero[SEEDS * WINDOWS] = {0};
    (void)state;
    for (int s = 0; s < SEEDS; s++)
        for (int w = 0; w < WINDOWS; w++)
            a[s * WINDOWS + w] = s;
    const pe_interval d = difference(a, zero, SEEDS, WINDOWS, RESAMPLES);
    assert_true(d.value > 0.999 && d.value < 1.001);
    assert_true(d.low < 0.34 && d.high > 1.66);
}

/* All seeds read the same windows: more of them do not tell more about other windows. */
static void more_seeds_do_not_shrink_what_windows_leave_open(void **state)
{
    enum { SEEDS = 10, WINDOWS = 100 };
    double one[WINDOWS], all[SEEDS * WINDOWS], zero[SEEDS * WINDOWS] = {0};
    (void)state;
    fill_normal(one, WINDOWS, "windows", 0, 1);
    for (int s = 0; s < SEEDS; s++)
        memcpy(all + s * WINDOWS, one, sizeof one);
    const pe_interval a = difference(one, zero, 1, WINDOWS, RESAMPLES),
                      b = difference(all, zero, SEEDS, WINDOWS, RESAMPLES);
    /* means of ten equal numbers differ in their last bit, so that an end may be anywhere between two
       resamples */
    assert_true(fabs((b.high - b.low) / (a.high - a.low) - 1) < 0.01);
}

/* Seeds that differ by 0.03, windows by 0.1, as runs of this size do: the truth must lie within as often as
   is said, also for two and three seeds, where resampling them would hold it in half and three quarters of
   the trials. */
static void nineteen_of_twenty_hold_the_truth_for_few_seeds_too(void **state)
{
    enum { TRIALS = 400, WINDOWS = 40, MOST = 5, FEW = 400 };
    double a[MOST * WINDOWS], zero[MOST * WINDOWS] = {0}, windows[WINDOWS], seeds[MOST];
    (void)state;
    for (int n = 2; n <= MOST; n++) {
        int held = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            char name[32];
            snprintf(name, sizeof name, "trial %d of %d", trial, n);
            fill_normal(windows, WINDOWS, name, 0.3, 0.1);
            strcat(name, " seeds");
            fill_normal(seeds, n, name, 0, 0.03);
            for (int i = 0; i < n * WINDOWS; i++)
                a[i] = windows[i % WINDOWS] + seeds[i / WINDOWS];
            const pe_interval d = difference(a, zero, n, WINDOWS, FEW);
            held += d.low <= 0.3 && d.high >= 0.3;
        }
        if (held < 362 || held > 399) /* binomial: 380 +- 4.4 */
            fail_msg("%d seeds: %d of %d intervals hold the truth", n, held, TRIALS);
    }
}

/* Where windows agree the interval is that of the paired t-test: quantiles of t to six digits, as tables have
   them. */
static void seeds_alone_give_the_interval_of_the_t_test(void **state)
{
    static const double quantiles[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624};
    enum { WINDOWS = 3, MOST = 8 };
    double a[MOST * WINDOWS], zero[MOST * WINDOWS] = {0};
    (void)state;
    for (int n = 2; n <= MOST; n++) {
        for (int i = 0; i < n * WINDOWS; i++)
            a[i] = 2 + 0.125 * (i / WINDOWS); /* the deviation of 0 .. n-1 is the root of n (n + 1) / 12 */
        const pe_interval d    = difference(a, zero, n, WINDOWS, RESAMPLES);
        const double      half = 0.125 * sqrt((n + 1) / 12.0) * quantiles[n - 2];
        assert_true(fabs(d.high - d.value - half) < 1e-6 && fabs(d.value - d.low - half) < 1e-6);
    }
}

/* Cauchy's distribution function: t for two seeds. */
static double cauchy_below(double x)
{
    return 0.5 + atan(x) / acos(-1.0);
}

/* Two windows, -1 and 1: resamples are -1, 0 and 1 in a quarter, a half and a quarter of the cases, or 1 %
   beside that with 20000 of them; errors of seeds from far below to far above. */
static void windows_and_seeds_mix_as_their_distributions_do(void **state)
{
    const double zero[4] = {0};
    (void)state;
    for (double error = 1.0 / 16; error < 20; error *= 2) {
        const double      a[4]   = {-1 - error, 1 - error, -1 + error, 1 + error};
        const pe_interval d      = difference(a, zero, 2, 2, 20000);
        const double      ends[] = {d.low, d.high}, shares[] = {0.025, 0.975};
        for (int i = 0; i < 2; i++) {
            const double below = cauchy_below((ends[i] + 1) / error) / 4 + cauchy_below(ends[i] / error) / 2 +
                                 cauchy_below((ends[i] - 1) / error) / 4;
            assert_true(fabs(below - shares[i]) < 0.001);
        }
    }
}

/* Twenty bootstraps of the same two seeds: draws of t would make their widths differ by a quarter and
   more. */
static void two_seeds_have_one_interval_whatever_the_resamples(void **state)
{
    enum { WINDOWS = 40, TIMES = 20 };
    double a[2 * WINDOWS], zero[2 * WINDOWS] = {0}, windows[WINDOWS], least = INFINITY, most = 0;
    (void)state;
    fill_normal(windows, WINDOWS, "windows", 0.3, 0.1);
    for (int i = 0; i < 2 * WINDOWS; i++)
        a[i] = windows[i % WINDOWS] + (i < WINDOWS ? 0.03 : 0);
    for (uint64_t seed = 1; seed <= TIMES; seed++) {
        const pe_interval d = difference_by(seed, a, zero, 2, WINDOWS, RESAMPLES);
        least               = fmin(least, d.high - d.low);
        most                = fmax(most, d.high - d.low);
    }
    assert_true(most / least < 1.01);
}

/* An error of seeds that vanishes leaves the interval of the windows. */
static void seeds_that_agree_nearly_are_near_the_interval_of_windows(void **state)
{
    enum { WINDOWS = 100 };
    double one[WINDOWS], two[2 * WINDOWS], zero[2 * WINDOWS] = {0};
    (void)state;
    fill_normal(one, WINDOWS, "windows", 0, 1);
    const pe_interval want = difference(one, zero, 1, WINDOWS, RESAMPLES);
    for (double error = 1e-15; error < 1e-3; error *= 10) {
        for (int i = 0; i < 2 * WINDOWS; i++)
            two[i] = one[i % WINDOWS] + (i < WINDOWS ? error : -error);
        const pe_interval d = difference(two, zero, 2, WINDOWS, RESAMPLES);
        assert_true(fabs(d.low - want.low) < 0.01 && fabs(d.high - want.high) < 0.01);
    }
}

static void the_same_seed_gives_the_same_interval(void **state)
{
    double a[30], zero[30] = {0};
    (void)state;
    fill_normal(a, 30, "noise", 0, 1);
    const pe_interval x = difference(a, zero, 1, 30, RESAMPLES), y = difference(a, zero, 1, 30, RESAMPLES);
    assert_memory_equal(&x, &y, sizeof x);
}

static void what_was_not_measured_has_no_interval(void **state)
{
    double a[10] = {0}, b[10] = {0};
    (void)state;
    a[3]                = NAN;
    const pe_interval d = difference(a, b, 1, 10, RESAMPLES);
    assert_true(isnan(d.value) && isnan(d.low) && isnan(d.high));
}

/* ---------------------------------------------------------------- ranks --------------------- */

/* Told apart when further apart than *self. */
typedef struct scale {
    const double *means;
    double        apart;
} scale;

static int tells(void *self, int better, int worse)
{
    const scale *s = self;
    return s->means[worse] - s->means[better] > s->apart;
}

static void neighbours_that_cannot_be_told_apart_share_a_rank(void **state)
{
    static const double means[] = {1.90, 1.60, 1.62, NAN, 2.50, 1.61};
    static const int    want[]  = {4, 1, 1, 0, 5, 1};
    int                 ranks[6];
    scale               s = {means, 0.05};
    (void)state;
    pe_stats_rank(ranks, means, 6, tells, &s);
    assert_memory_equal(ranks, want, sizeof want);
}

/* 0.04 steps with a resolution of 0.05: a chain must not make the first and the last equal. */
static void a_group_does_not_drift(void **state)
{
    static const double means[] = {1.00, 1.04, 1.08, 1.12};
    static const int    want[]  = {1, 1, 3, 3};
    int                 ranks[4];
    scale               s = {means, 0.05};
    (void)state;
    pe_stats_rank(ranks, means, 4, tells, &s);
    assert_memory_equal(ranks, want, sizeof want);
}

static void the_break_is_the_last_position_within_the_limit(void **state)
{
    static const double curve[] = {3, 1, 1, 1.1, 2, 1.2, 3, 4};
    (void)state;
    assert_int_equal(pe_stats_break_position(curve, 8, 1.15), 3);
    assert_int_equal(pe_stats_break_position(curve, 8, 1.25), 5);
    assert_int_equal(pe_stats_break_position(curve, 8, 0.5), -1);
}

/* Against the definition, at widths where it has a closed form, and as the mean over random directions. */
static void random_directions_have_the_cosine_of_their_width(void **state)
{
    const double pi = acos(-1.0);
    (void)state;
    assert_true(fabs(pe_stats_random_cosine(1) - 1) < 1e-14);      /* a line: always 1 */
    assert_true(fabs(pe_stats_random_cosine(2) - 2 / pi) < 1e-14); /* a circle: the mean of |cos| */
    assert_true(fabs(pe_stats_random_cosine(3) - 0.5) <
                1e-14); /* a sphere: heights are uniform, Archimedes */
    assert_true(fabs(pe_stats_random_cosine(512) - 0.0353) < 5e-5);
    for (int64_t d = 16; d <= 512; d *= 32) {
        enum { DRAWS = 4000 };
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < DRAWS; i++) { /* against the first axis: any two directions are like that */
            double first = 0, length = 0;
            for (int64_t k = 0; k < d; k++) {
                const double x = posenc_random_normal(1, "direction", i * (uint64_t)d + (uint64_t)k);
                first          = k ? first : x;
                length += x * x;
            }
            sum += fabs(first) / sqrt(length);
            squares += first * first / length;
        }
        const double mean = sum / DRAWS, error = sqrt((squares / DRAWS - mean * mean) / DRAWS);
        assert_true(fabs(mean - pe_stats_random_cosine(d)) < 3 * error);
    }
}

/* 0 of 10, 10 of 10 and 5 of 10 as in Brown, Cai and DasGupta 2001; ends are the roots of |p - rate| = z
   sqrt(p(1-p)/n). */
static void wilson_intervals_hold_the_rates_that_are_z_deviations_away(void **state)
{
    static const double z = 1.959963984540054;
    (void)state;
    assert_true(fabs(pe_stats_wilson(0, 10).high - 0.277533) < 1e-6 && pe_stats_wilson(0, 10).low == 0);
    assert_true(fabs(pe_stats_wilson(1, 10).low - 0.722467) < 1e-6 && pe_stats_wilson(1, 10).high == 1);
    for (int64_t n = 1; n < 2000; n *= 3)
        for (double rate = 0.1; rate < 1; rate += 0.2) {
            const pe_interval w = pe_stats_wilson(rate, n);
            assert_true(w.value == rate && w.low < rate && rate < w.high);
            assert_true(fabs(rate - w.low - z * sqrt(w.low * (1 - w.low) / (double)n)) < 1e-9);
            assert_true(fabs(w.high - rate - z * sqrt(w.high * (1 - w.high) / (double)n)) < 1e-9);
        }
    assert_true(isnan(pe_stats_wilson(NAN, 10).value) && isnan(pe_stats_wilson(NAN, 10).low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wilson_intervals_hold_the_rates_that_are_z_deviations_away),
        cmocka_unit_test(buckets_follow_one_another_from_0_to_8_L),
        cmocka_unit_test(a_bucket_takes_its_own_positions_only),
        cmocka_unit_test(smoothing_is_centred_and_keeps_a_line),
        cmocka_unit_test(a_constant_difference_has_no_width),
        cmocka_unit_test(pairing_sees_what_lies_far_below_the_noise_of_windows),
        cmocka_unit_test(the_interval_shrinks_with_the_root_of_the_windows),
        cmocka_unit_test(nineteen_of_twenty_intervals_hold_the_truth),
        cmocka_unit_test(several_seeds_widen_the_interval_by_what_they_disagree),
        cmocka_unit_test(more_seeds_do_not_shrink_what_windows_leave_open),
        cmocka_unit_test(nineteen_of_twenty_hold_the_truth_for_few_seeds_too),
        cmocka_unit_test(seeds_alone_give_the_interval_of_the_t_test),
        cmocka_unit_test(windows_and_seeds_mix_as_their_distributions_do),
        cmocka_unit_test(two_seeds_have_one_interval_whatever_the_resamples),
        cmocka_unit_test(seeds_that_agree_nearly_are_near_the_interval_of_windows),
        cmocka_unit_test(the_same_seed_gives_the_same_interval),
        cmocka_unit_test(what_was_not_measured_has_no_interval),
        cmocka_unit_test(neighbours_that_cannot_be_told_apart_share_a_rank),
        cmocka_unit_test(a_group_does_not_drift),
        cmocka_unit_test(the_break_is_the_last_position_within_the_limit),
        cmocka_unit_test(random_directions_have_the_cosine_of_their_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
