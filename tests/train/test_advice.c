/* SPDX-License-Identifier: MIT */
/*
 * Who is recommended, on numbers made up so that the right recommendation is known: a tie stays a tie, what
 * is not excluded is said, and nobody is recommended who fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/report/advice.h"

#include <math.h>

enum { MOST = 8 };

/* Losses, the half width of every interval, and who still moves against the first. */
typedef struct made_up {
    double value[MOST], half, moving[MOST];
    int    count;
} made_up;

static pe_interval behind(const void *self, int other, int first)
{
    const made_up *m = self;
    const double   d = m->value[other] - m->value[first];
    return (pe_interval){d, d - m->half, d + m->half};
}

static int is_moving(const void *self, int other, int first)
{
    (void)first;
    return ((const made_up *)self)->moving[other] > 0;
}

static pe_contest contest_of(const made_up *m, double resolution)
{
    return (pe_contest){.count      = m->count,
                        .value      = m->value,
                        .resolution = resolution,
                        .margin     = 0.05,
                        .most       = 3,
                        .behind     = behind,
                        .is_moving  = is_moving,
                        .self       = m};
}

static pe_advice advice_on(const made_up *m, double resolution)
{
    const pe_contest c = contest_of(m, resolution);
    return pe_advice_decide(&c);
}

static void one_that_is_told_from_all_others_is_settled(void **state)
{
    const made_up   m = {.value = {1.5, 1.3, 1.6}, .half = 0.01, .count = 3};
    const pe_advice a = advice_on(&m, 0.05);
    (void)state;
    assert_int_equal(a.confidence, PE_SETTLED);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.group[0], 1);
}

static void those_within_their_intervals_tie_best_first(void **state)
{
    const made_up   m = {.value = {1.33, 1.6, 1.30, 1.32}, .half = 0.04, .count = 4};
    const pe_advice a = advice_on(&m, 0);
    (void)state;
    assert_int_equal(a.confidence, PE_TIE);
    assert_int_equal(a.count, 3);
    assert_true(a.group[0] == 2 && a.group[1] == 3 && a.group[2] == 0);
}

/* Nothing was measured well enough to call it a tie. */
static void a_group_that_may_differ_by_what_matters_is_open(void **state)
{
    const made_up m = {.value = {1.30, 1.31}, .half = 0.04, .count = 2};
    pe_contest    c = contest_of(&m, 0.04);
    (void)state;
    c.matters = 0.06;
    assert_int_equal(pe_advice_decide(&c).confidence, PE_TIE);
    c.matters         = 0.03;
    const pe_advice a = pe_advice_decide(&c);
    assert_int_equal(a.confidence, PE_OPEN);
    assert_int_equal(a.count, 2);
}

/* Intervals that are clear of zero settle nothing below what one seed can tell. */
static void below_the_resolution_there_is_no_winner(void **state)
{
    const made_up m = {.value = {1.30, 1.33}, .half = 0.001, .count = 2};
    (void)state;
    assert_int_equal(advice_on(&m, 0.05).confidence, PE_TIE);
    assert_int_equal(advice_on(&m, 0.02).confidence, PE_SETTLED);
}

static void a_wide_interval_leaves_it_open(void **state)
{
    const made_up   m = {.value = {1.3, 1.5}, .half = 0.4, .count = 2};
    const pe_advice a = advice_on(&m, 0);
    (void)state;
    assert_int_equal(a.confidence, PE_OPEN);
    assert_true(a.count == 1 && a.doubtful_count == 1 && a.doubtful[0] == 1);
}

static void an_order_that_still_moves_leaves_it_open(void **state)
{
    const made_up   m = {.value = {1.3, 1.5, 1.6}, .half = 0.01, .moving = {0, 0, 1}, .count = 3};
    const pe_advice a = advice_on(&m, 0);
    (void)state;
    assert_int_equal(a.confidence, PE_OPEN);
    assert_true(a.doubtful_count == 1 && a.doubtful[0] == 2);
}

static void what_was_not_measured_takes_no_part(void **state)
{
    const made_up one  = {.value = {NAN, 1.3, NAN}, .half = 0.01, .count = 3},
                  none = {.value = {NAN}, .count = 1};
    (void)state;
    assert_int_equal(advice_on(&one, 0).confidence, PE_SINGLE);
    assert_int_equal(advice_on(&one, 0).group[0], 1);
    assert_int_equal(advice_on(&none, 0).confidence, PE_NOBODY);
    assert_int_equal(advice_on(&none, 0).count, 0);
}

static void nobody_is_recommended_where_all_fail(void **state)
{
    const made_up m = {.value = {3.5, 3.1}, .half = 0.01, .count = 2};
    (void)state;
    assert_int_equal(advice_on(&m, 0).confidence, PE_FAILED_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_told_from_all_others_is_settled),
        cmocka_unit_test(those_within_their_intervals_tie_best_first),
        cmocka_unit_test(a_group_that_may_differ_by_what_matters_is_open),
        cmocka_unit_test(below_the_resolution_there_is_no_winner),
        cmocka_unit_test(a_wide_interval_leaves_it_open),
        cmocka_unit_test(an_order_that_still_moves_leaves_it_open),
        cmocka_unit_test(what_was_not_measured_takes_no_part),
        cmocka_unit_test(nobody_is_recommended_where_all_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
