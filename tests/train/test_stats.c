/* SPDX-License-Identifier: MIT */
/*
 * Buckets, smoothing, intervals and ranks, on data whose answer is known without them. What several seeds do
 * to an interval: test_spread.c.
 */
#include "train/run/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { L = 16, LENGTH = PE_REACH * L };

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

/* ---------------------------------------------------------------- intervals ----------------- */

/* Of runs whose means do not vary from seed to seed. */
static pe_stats_sample sample(const double *x, int64_t seeds, int64_t windows)
{
    return (pe_stats_sample){x, seeds, windows, {0, 1, 0}};
}

static pe_interval difference(const double *a, const double *b, int64_t seeds, int64_t windows)
{
    const pe_stats_sample one = sample(a, seeds, windows), other = sample(b, seeds, windows);
    return pe_stats_difference(&one, &other);
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
    const pe_interval d = difference(a, b, 1, 40);
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
    const pe_interval paired = difference(b, a, 1, 96), unpaired = difference(b, other, 1, 96);
    assert_true(paired.low > 0 && paired.high < 0.04);
    assert_true(unpaired.high - unpaired.low > 10 * (paired.high - paired.low));
}

/* sigma / sqrt(n), and 1.96 of it on each side */
static void the_interval_shrinks_with_the_root_of_the_windows(void **state)
{
    double a[400], zero[400] = {0};
    (void)state;
    fill_normal(a, 400, "noise", 0, 1);
    const pe_interval few = difference(a, zero, 1, 100), many = difference(a, zero, 1, 400);
    const double      ratio = (few.high - few.low) / (many.high - many.low);
    assert_true(ratio > 1.7 && ratio < 2.3);
    assert_true(fabs((many.high - many.low) / (2 * 1.96 / 20) - 1) < 0.15);
}

static void nineteen_of_twenty_intervals_hold_the_truth(void **state)
{
    enum { TRIALS = 400, WINDOWS = 60 };
    double a[WINDOWS], zero[WINDOWS] = {0};
    int    held = 0;
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        char name[32];
        snprintf(name, sizeof name, "trial %d", trial);
        fill_normal(a, WINDOWS, name, 0.3, 1);
        const pe_interval d = difference(a, zero, 1, WINDOWS);
        held += d.low <= 0.3 && d.high >= 0.3;
    }
    assert_true(held >= 367 && held <= 393); /* binomial: 380 +- 4.4 */
}

/* Windows agree; spreads of 0.1 that are known with 3 degrees of freedom, mostly by the same pool: t is
   3.182446, and not 2.446912 for 6. */
static void spreads_of_both_encodings_add_and_seeds_divide_them(void **state)
{
    enum { SEEDS = 3, WINDOWS = 50 };
    double          zero[SEEDS * WINDOWS] = {0};
    pe_stats_sample a = sample(zero, SEEDS, WINDOWS), b = a;
    (void)state;
    a.spread = b.spread = (pe_spread){0.01, 3, 0};
    pe_interval d       = pe_stats_difference(&a, &b);
    assert_true(d.value == 0 && fabs(d.high - 3.182446 * sqrt(2 * 0.01 / 3)) < 1e-6 && d.low == -d.high);
    b.spread.variance = 0;
    d                 = pe_stats_difference(&a, &b);
    assert_true(fabs(d.high - 3.182446 * sqrt(0.01 / 3)) < 1e-6);
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
    const pe_interval a = difference(one, zero, 1, WINDOWS), b = difference(all, zero, SEEDS, WINDOWS);
    assert_true(fabs((b.high - b.low) / (a.high - a.low) - 1) < 1e-9);
}

/* Losses of 2 with ratios of 1.1: the ratio varies less from window to window than either of them. */
static void nineteen_of_twenty_ratios_hold_the_truth(void **state)
{
    enum { TRIALS = 400, WINDOWS = 40 };
    double a[WINDOWS], b[WINDOWS], noise[WINDOWS], width = 0;
    int    held = 0;
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        char name[32];
        snprintf(name, sizeof name, "ratio %d", trial);
        fill_normal(b, WINDOWS, name, 2, 0.3);
        strcat(name, " noise");
        fill_normal(noise, WINDOWS, name, 0, 0.1);
        for (int w = 0; w < WINDOWS; w++)
            a[w] = 1.1 * b[w] + noise[w];
        const pe_stats_sample one = sample(a, 1, WINDOWS), other = sample(b, 1, WINDOWS);
        const pe_interval     r = pe_stats_ratio(&one, &other);
        held += r.low <= 1.1 && r.high >= 1.1;
        width += (r.high - r.low) / TRIALS;
    }
    assert_true(held >= 367 && held <= 393);
    assert_true(fabs(width / (2 * 2.02 * 0.1 / sqrt(WINDOWS) / 2) - 1) < 0.05);
}

/* 1.96 + 0.84 errors of sqrt(2 v / n) must fit into the difference: n = 15.7 for v = 1e-4 and 0.01. */
static void seeds_are_counted_until_a_difference_is_settled(void **state)
{
    enum { WINDOWS = 2 };
    const double    zero[WINDOWS] = {0}, some[WINDOWS] = {0.01, 0.01}, noisy[WINDOWS] = {-0.01, 0.03};
    pe_stats_sample a = sample(zero, 1, WINDOWS), b = sample(some, 1, WINDOWS), c = sample(noisy, 1, WINDOWS);
    (void)state;
    a.spread = b.spread = c.spread = (pe_spread){1e-4, 1e6, 0};
    assert_int_equal(pe_stats_seeds_to_settle(&a, &b), 16);
    assert_int_equal(pe_stats_seeds_to_settle(&b, &a), 16);
    assert_int_equal(pe_stats_seeds_to_settle(&a, &c), PE_MOST_SEEDS + 1); /* the windows do not tell */
    b.spread.variance = a.spread.variance = 1e-9;
    assert_int_equal(pe_stats_seeds_to_settle(&a, &b), 1);
    assert_int_equal(pe_stats_seeds_to_settle(&a, &a), PE_MOST_SEEDS + 1);
}

/* Tables of t to six digits; t^2 with n degrees of freedom is F with 1 and n; F(3, 10) from a table. */
static void t_and_F_are_those_of_the_tables(void **state)
{
    static const double quantiles[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624};
    (void)state;
    for (int n = 1; n <= 7; n++)
        assert_true(fabs(pe_stats_student(n) - quantiles[n - 1]) < 1e-6);
    assert_true(fabs(pe_stats_student(1e6) - 1.959966) < 1e-5);
    for (double freedom = 0.5; freedom < 1000; freedom *= 1.7) {
        const double t = pe_stats_student(freedom);
        assert_true(fabs(pe_stats_above_f(t * t, 1, freedom) - 0.05) < 1e-9);
    }
    assert_true(fabs(pe_stats_above_f(3.708265, 3, 10) - 0.05) < 1e-6);
    assert_true(pe_stats_above_f(0, 3, 10) == 1);
}

static void entropy_is_that_of_the_frequencies(void **state)
{
    static const int64_t counts[] = {1, 0, 1, 2};
    (void)state;
    assert_true(fabs(pe_stats_entropy(counts, 4) - 1.5 * log(2)) < 1e-15);
}

static void what_was_not_measured_has_no_interval(void **state)
{
    double a[10] = {0}, b[10] = {0};
    (void)state;
    a[3]                = NAN;
    const pe_interval d = difference(a, b, 1, 10);
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
    for (double n = 1; n < 2000; n *= 3)
        for (double rate = 0.1; rate < 1; rate += 0.2) {
            const pe_interval w = pe_stats_wilson(rate, n);
            assert_true(w.value == rate && w.low < rate && rate < w.high);
            assert_true(fabs(rate - w.low - z * sqrt(w.low * (1 - w.low) / n)) < 1e-9);
            assert_true(fabs(w.high - rate - z * sqrt(w.high * (1 - w.high) / n)) < 1e-9);
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
        cmocka_unit_test(spreads_of_both_encodings_add_and_seeds_divide_them),
        cmocka_unit_test(more_seeds_do_not_shrink_what_windows_leave_open),
        cmocka_unit_test(nineteen_of_twenty_ratios_hold_the_truth),
        cmocka_unit_test(seeds_are_counted_until_a_difference_is_settled),
        cmocka_unit_test(t_and_F_are_those_of_the_tables),
        cmocka_unit_test(entropy_is_that_of_the_frequencies),
        cmocka_unit_test(what_was_not_measured_has_no_interval),
        cmocka_unit_test(neighbours_that_cannot_be_told_apart_share_a_rank),
        cmocka_unit_test(a_group_does_not_drift),
        cmocka_unit_test(the_break_is_the_last_position_within_the_limit),
        cmocka_unit_test(random_directions_have_the_cosine_of_their_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
