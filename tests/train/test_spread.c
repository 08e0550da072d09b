/* SPDX-License-Identifier: MIT */
/*
 * Spreads between seeds: simulated comparisons whose truth is known
 *
 * Losses are drawn from the model of stats.c and spread.c, evaluated as `compare` does, and counted: how many
 * 95 % intervals hold the true difference (coverage), how many tell apart what is equal (false alarms), and
 * how many what is not (power). Prints what it finds; `test_spread 20` draws twenty times as many, for the
 * table in docs/experiments.md, section 8.
 */
#include "train/run/spread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Four encodings are equal, one is worse by WORSE, two lose much beyond L; the last bucket but two. */
enum { EQUAL = 4, KEEP = 5, COUNT = 7, WINDOWS = 32, MOST = 5, BUCKET = PE_AT_2L };
#define WORSE  0.02
#define COMMON 0.006 /* of all encodings, from seed to seed */
#define NOISE  0.02  /* of an encoding, from window to window */

static int64_t trials = 300;

/* What is true of the variances. */
typedef enum world {
    AS_STORED, /* drawn about the stored ones, as the model says */
    ALIKE,     /* all the same, twice the stored ones */
    ONE_ODD    /* ALIKE, and one of the equal encodings moves by a hundred times as much */
} world;

typedef struct drawing {
    world    world;
    int64_t  seeds;
    uint64_t trial, next;
} drawing;

static double normal(drawing *d)
{
    return posenc_random_normal(d->trial + 1, "spread", d->next++);
}

/* n / chi2(n) */
static double inverse_chi2(drawing *d, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double x = normal(d);
        sum += x * x;
    }
    return n / sum;
}

static void draw_deviations(double sigma[COUNT], drawing *d)
{
    const double scale = d->world == AS_STORED ? inverse_chi2(d, 8) : 2;
    for (int e = 0; e < COUNT; e++) {
        const pe_spread stored = pe_spread_stored(BUCKET, e < KEEP ? 0 : 2, 1);
        const double    own    = d->world == AS_STORED ? inverse_chi2(d, (int)stored.freedom) : 1;
        sigma[e]               = sqrt(scale * own * stored.variance);
    }
    if (d->world == ONE_ODD)
        sigma[0] *= 100;
}

static double truth(int e)
{
    return e < EQUAL ? 2 : e < KEEP ? 2 + WORSE : 3;
}

/* losses [COUNT][seeds, WINDOWS] and their means [COUNT, seeds]. */
static void draw_losses(double losses[COUNT][MOST * WINDOWS], double *means, drawing *d)
{
    double sigma[COUNT], window[WINDOWS], own[COUNT][WINDOWS];
    draw_deviations(sigma, d);
    for (int w = 0; w < WINDOWS; w++)
        window[w] = 0.1 * normal(d);
    for (int e = 0; e < COUNT; e++)
        for (int w = 0; w < WINDOWS; w++)
            own[e][w] = NOISE * normal(d);
    for (int64_t s = 0; s < d->seeds; s++) {
        const double common = COMMON * normal(d);
        for (int e = 0; e < COUNT; e++) {
            const double run = truth(e) + common + sigma[e] * normal(d);
            for (int w = 0; w < WINDOWS; w++)
                losses[e][s * WINDOWS + w] = run + window[w] + own[e][w];
            means[e * d->seeds + s] = pe_stats_mean(losses[e] + s * WINDOWS, WINDOWS);
        }
    }
}

/* Shares of intervals, and their mean half width. */
typedef struct tally {
    double pairs, held, told, width;
} tally;

static void count(tally *t, pe_interval x, double difference)
{
    t->pairs++;
    t->held += x.low <= difference && difference <= x.high;
    t->told += x.low > 0 || x.high < 0;
    t->width += (x.high - x.low) / 2;
}

/* Half the width of the interval of the paired t-test over the seeds of two encodings: what it would be
   without the others. */
static double paired_t(const double *a, const double *b, int64_t seeds)
{
    double sum = 0, squares = 0;
    for (int64_t s = 0; s < seeds; s++) {
        sum += a[s] - b[s];
        squares += (a[s] - b[s]) * (a[s] - b[s]);
    }
    const double n = (double)seeds, variance = (squares - sum * sum / n) / (n - 1);
    return seeds > 1 ? pe_stats_student(n - 1) * sqrt(variance / n) : NAN;
}

/* Equal encodings; an equal one and the worse one; one that keeps its loss and one that does not. */
typedef struct tallies {
    tally  equal, worse, far;
    double t;   /* sum of paired_t */
    int    odd; /* how often the first encoding was found odd, and how often another */
    int    odd_others;
} tallies;

static void count_pairs(tallies *t, double losses[COUNT][MOST * WINDOWS], const pe_spread *spreads,
                        const drawing *d)
{
    const int first = d->world == ONE_ODD; /* which is counted by itself */
    for (int a = first; a < COUNT; a++)
        for (int b = first; b < a; b++) {
            const pe_stats_sample one   = {losses[a], d->seeds, WINDOWS, spreads[a]},
                                  other = {losses[b], d->seeds, WINDOWS, spreads[b]};
            tally *to                   = a < EQUAL ? &t->equal : a < KEEP ? &t->worse : &t->far;
            if (a < KEEP || b < KEEP)
                count(to, pe_stats_difference(&one, &other), truth(a) - truth(b));
        }
}

static tallies simulate(world of, int64_t seeds)
{
    static const int classes[COUNT] = {0, 0, 0, 0, 0, 2, 2};
    static double    losses[COUNT][MOST * WINDOWS];
    tallies          t = {.odd = 0};
    for (int64_t trial = 0; trial < trials; trial++) {
        drawing              d = {of, seeds, (uint64_t)(trial * 64 + 8 * (int)of + seeds), 0};
        double               means[COUNT * MOST];
        pe_spread            spreads[COUNT], own[COUNT];
        const pe_spread_runs runs = {means, classes, COUNT, seeds, BUCKET, 1};
        draw_losses(losses, means, &d);
        pe_spread_estimate(spreads, own, &runs);
        count_pairs(&t, losses, spreads, &d);
        t.t += paired_t(means + seeds, means + 2 * seeds, seeds);
        t.odd += spreads[0].is_odd;
        for (int e = 1; e < COUNT; e++)
            t.odd_others += spreads[e].is_odd;
    }
    static const char *const worlds[] = {"as stored", "alike, x 2", "one odd"};
    printf("%-10s %lld seeds: hold %.3f %.3f %.3f; false alarms %.3f, power %.3f, width %.3f (t %.3f); odd "
           "%.3f %.4f\n",
           worlds[of], (long long)seeds, t.equal.held / t.equal.pairs, t.worse.held / t.worse.pairs,
           t.far.held / t.far.pairs, t.equal.told / t.equal.pairs, t.worse.told / t.worse.pairs,
           t.equal.width / t.equal.pairs, t.t / (double)trials, t.odd / (double)trials,
           t.odd_others / (6.0 * (double)trials));
    return t;
}

static const int64_t seeds_tried[] = {1, 2, 3, 5};

/* 1 to 5 seeds, variances as the model says. Pairs of one trial depend on each other, so 300 trials tell a
   coverage to about 0.015. */
static void nineteen_of_twenty_intervals_hold_the_truth_for_any_number_of_seeds(void **state)
{
    double power = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        const tallies t = simulate(AS_STORED, seeds_tried[i]);
        assert_true(t.equal.held > 0.925 * t.equal.pairs && t.equal.held < 0.99 * t.equal.pairs);
        assert_true(t.worse.held > 0.92 * t.worse.pairs && t.far.held > 0.92 * t.far.pairs);
        assert_true(t.worse.told / t.worse.pairs > power); /* more seeds see more */
        power = t.worse.told / t.worse.pairs;
    }
    assert_true(power > 0.8);
}

/* The stored variance is half of the true one: one seed believes it, more correct it. */
static void seeds_correct_a_stored_variance_that_is_wrong(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const tallies t = simulate(ALIKE, seeds_tried[i]);
        assert_true(t.equal.held > (seeds_tried[i] == 1 ? 0.88 : 0.93) * t.equal.pairs);
    }
}

/* It neither widens the intervals of the others, nor is it believed to be as steady as they are. */
static void one_that_moves_far_more_than_the_others_is_kept_out_of_their_pool(void **state)
{
    (void)state;
    for (int i = 2; i < 4; i++) {
        const tallies t = simulate(ONE_ODD, seeds_tried[i]), without = simulate(ALIKE, seeds_tried[i]);
        assert_true(t.odd > 0.9 * (double)trials && t.odd_others < 0.01 * 6 * (double)trials);
        assert_true(t.equal.held > 0.92 * t.equal.pairs);
        assert_true(t.equal.width / t.equal.pairs < 1.3 * without.equal.width / without.equal.pairs);
    }
}

/* With two encodings that keep their loss, many seeds and no windows, it is the paired t-test. */
static void many_seeds_of_two_encodings_are_the_paired_t_test(void **state)
{
    enum { SEEDS = 200 };
    static const int classes[2] = {0, 0};
    double           means[2 * SEEDS], sum = 0, squares = 0;
    pe_spread        spreads[2], own[2];
    (void)state;
    for (int s = 0; s < SEEDS; s++) {
        drawing      d   = {AS_STORED, SEEDS, (uint64_t)s, 0};
        const double c   = normal(&d);
        means[s]         = c + 0.02 * normal(&d);
        means[SEEDS + s] = c + 0.01 * normal(&d);
        sum += means[s] - means[SEEDS + s];
        squares += pow(means[s] - means[SEEDS + s], 2);
    }
    const pe_spread_runs runs     = {means, classes, 2, SEEDS, PE_AT_L, 1};
    const double         variance = (squares - sum * sum / SEEDS) / (SEEDS - 1);
    pe_spread_estimate(spreads, own, &runs);
    assert_true(fabs((own[0].variance + own[1].variance) / variance - 1) < 1e-9);
    assert_true(fabs(own[0].freedom + own[1].freedom - (SEEDS - 1)) < 1e-9);
    assert_true(fabs((spreads[0].variance + spreads[1].variance) / variance - 1) < 0.1);
}

static void what_diverged_has_no_spread_and_changes_no_other(void **state)
{
    const double         means[]   = {2, 2.01, NAN, NAN, 2.1, 2.12};
    static const int     classes[] = {0, -1, 0};
    pe_spread            with[3], without[2], own[3];
    const double         two[] = {2, 2.01, 2.1, 2.12};
    const pe_spread_runs all   = {means, classes, 3, 2, PE_AT_L, 1},
                         rest  = {two, (int[]){0, 0}, 2, 2, PE_AT_L, 1};
    (void)state;
    pe_spread_estimate(with, own, &all);
    pe_spread_estimate(without, own, &rest);
    assert_true(isnan(with[1].variance));
    assert_true(with[0].variance == without[0].variance && with[2].variance == without[1].variance);
}

/* A loss that breaks differs far more between seeds than one that is kept, and so does its difference from
   it. In tokens of four bytes everything is four times as large. */
static void readings_vary_as_their_losses_do(void **state)
{
    const double          x[]  = {2, 2.1, 2.2, 2.3};
    const pe_stats_sample a    = {.x = x, .seeds = 1, .windows = 4};
    const pe_spread       kept = pe_spread_stored(BUCKET, 0, 1), broken = pe_spread_stored(BUCKET, 2, 1),
                    both   = pe_spread_of_readings(&a, &a, BUCKET, 0, 2, 1),
                    tokens = pe_spread_of_readings(&a, &a, BUCKET, 0, 2, 4);
    (void)state;
    assert_true(fabs(both.variance / (kept.variance + broken.variance) - 1) < 1e-12);
    assert_true(both.freedom < broken.freedom);
    assert_true(fabs(tokens.variance / both.variance - 16) < 1e-12);
    assert_true(pe_spread_of_readings(&a, &a, BUCKET, 0, 0, 1).variance < 0.1 * both.variance);
    assert_true(isnan(pe_spread_of_readings(&a, &a, BUCKET, 0, -1, 1).variance));
}

/* Half learned varies most; what is known or guessed, hardly. Seeds that disagree widen it. */
static void rates_vary_most_where_a_task_is_half_learned(void **state)
{
    const double all = 1, half = 0.75, guessed = 0.5, apart[] = {0.55, 0.95}, together[] = {0.75, 0.75};
    (void)state;
    const double widest = pe_spread_of_rate(&half, 1, 512, 0.5).variance;
    assert_true(pe_spread_of_rate(&all, 1, 512, 0.5).variance < 0.01 * widest);
    assert_true(pe_spread_of_rate(&guessed, 1, 512, 0.5).variance < 0.01 * widest);
    assert_true(pe_spread_of_rate(apart, 2, 512, 0.5).variance > 1.5 * widest);
    assert_true(pe_spread_of_rate(together, 2, 512, 0.5).variance < widest);
    const double below = 0.35; /* as far from guessing as 0.65, so as little known */
    assert_true(pe_spread_of_rate(&below, 1, 512, 0.5).variance > 0.1 * widest);
}

/* Two seeds get advice; one and three do not. */
static void two_seeds_are_advised_against(void **state)
{
    (void)state;
    assert_non_null(pe_spread_advice(2));
    assert_true(!pe_spread_advice(1) && !pe_spread_advice(3));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nineteen_of_twenty_intervals_hold_the_truth_for_any_number_of_seeds),
        cmocka_unit_test(seeds_correct_a_stored_variance_that_is_wrong),
        cmocka_unit_test(one_that_moves_far_more_than_the_others_is_kept_out_of_their_pool),
        cmocka_unit_test(many_seeds_of_two_encodings_are_the_paired_t_test),
        cmocka_unit_test(what_diverged_has_no_spread_and_changes_no_other),
        cmocka_unit_test(readings_vary_as_their_losses_do),
        cmocka_unit_test(rates_vary_most_where_a_task_is_half_learned),
        cmocka_unit_test(two_seeds_are_advised_against),
    };
    trials *= argc > 1 ? atoi(argv[1]) : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
