/* SPDX-License-Identifier: MIT */
/*
 * What is measured of trained models, on tiny runs and on arrays by hand; and claims of introductions, on
 * numbers that are made up.
 */
#include "train/report/report.h"
#include "train/run/trained.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_compare.h"

static char everything[1024];

static int begin(void **state)
{
    (void)state;
    tiny_write_words();
    for (int i = 0; i < posenc_encoding_count(); i++)
        snprintf(everything + strlen(everything), sizeof everything - strlen(everything), "%s%s",
                 i ? "," : "", posenc_encoding_info_at(i)->name);
    return 0;
}

/* ---------------------------------------------------------------- by hand ------------------- */

static void the_distance_that_holds_a_share_is_the_first_that_reaches_it(void **state)
{
    const double mass[5] = {0.5, 0.25, 0.125, 0.0625, 0.0625};
    (void)state;
    assert_int_equal(pe_trained_distance(mass, 5, 0.5), 0);
    assert_int_equal(pe_trained_distance(mass, 5, 0.51), 1);
    assert_int_equal(pe_trained_distance(mass, 5, 0.9), 3);
    assert_int_equal(pe_trained_distance(mass, 3, 0.9), 2); /* a sink has the rest */
    assert_int_equal(pe_trained_distance((double[]){NAN, 0.5}, 2, 0.9), -1);
    assert_true(pe_trained_sunk(mass, 3) == 0.125 && pe_trained_sunk(mass, 5) == 0);
}

/* ---------------------------------------------------------------- tiny runs ----------------- */

/* Every encoding whose scores see differences alone, of the registry; and those of positions do notice. */
static void only_what_sees_positions_notices_where_they_begin(void **state)
{
    const pe_compare_config config = tiny_compare(everything);
    pe_compare             *c      = tiny_trained(&config, NULL);
    int                     still = 0, noticed = 0;
    (void)state;
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o     = &c->outcomes[i];
        const double      shift = pe_losses_largest_shift(o);
        assert_true(shift >= 0);
        if (posenc_encoding_find(o->label)->by_distance) {
            if (!(shift <= 1e-5))
                fail_msg("%s: %g", o->label, shift);
            still++;
        } else
            noticed += shift > 1e-4;
    }
    assert_true(still > 10 && noticed > 3);
    pe_compare_free(c);
}

static double sum_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* All weight is somewhere; without positions it is spread, with a steep bias it is near. */
static void attention_weights_add_up_and_a_bias_holds_them_near(void **state)
{
    const pe_compare_config config = tiny_compare("nope,alibi");
    pe_compare             *c      = tiny_trained(&config, NULL);
    const int64_t           L      = c->config.preset.L;
    (void)state;
    for (int i = 0; i < c->count; i++) {
        assert_true(fabs(sum_of(c->outcomes[i].near, L) - 1) < 1e-5);
        assert_true(fabs(sum_of(c->outcomes[i].far, PE_REACH * L) - 1) < 1e-5);
        for (int64_t t = 0; t < PE_REACH * L; t++)
            assert_true(c->outcomes[i].far[t] >= 0);
    }
    assert_true(c->outcomes[1].far_90 < c->outcomes[0].far_90);
    pe_compare_free(c);
}

/* A sink of every query's own and one of the layer's take a part; a stick that is broken has no softmax whose
   denominator would say what each key has. */
static void what_sinks_take_is_missing_from_the_keys(void **state)
{
    const pe_compare_config config =
        tiny_compare("nope[sink=head],alibi[window=8:sink=token],nope+stick_breaking");
    pe_compare   *c = tiny_trained(&config, NULL);
    const int64_t L = c->config.preset.L;
    (void)state;
    for (int i = 0; i < 2; i++) {
        const double *near = c->outcomes[i].near, sunk = pe_trained_sunk(near, L);
        assert_true(sunk > 0.005 && sunk < 0.5); /* about one of so many keys at the start */
        assert_true(fabs(sum_of(near, L) + sunk - 1) < 1e-12);
        assert_true(c->outcomes[i].near_90 >= 0);
    }
    /* all keys of a window, and a sink beside them, have about the same weight */
    assert_true(pe_trained_sunk(c->outcomes[1].near, L) > pe_trained_sunk(c->outcomes[0].near, L));
    assert_true(fabs(sum_of(c->outcomes[1].far + 8, PE_REACH * L - 8)) == 0);
    assert_true(isnan(pe_trained_sunk(c->outcomes[2].near, L)) && c->outcomes[2].far_90 == -1);
    pe_compare_free(c);
}

/* A model that attends to nothing but the near past loses nothing by a short context: ALiBi with a steep
   slope. One whose table ends is better off without the far one. */
static void the_gain_is_the_truncated_loss_less_the_whole(void **state)
{
    const pe_compare_config config = tiny_compare("alibi,learned[sigma=3]");
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o    = &c->outcomes[i];
        const double      want = pe_stats_mean(o->truncated, c->windows) - o->loss[PE_AT_8L];
        assert_true(fabs(o->gain.value - want) < 1e-12);
        assert_true(o->gain.low <= o->gain.value && o->gain.value <= o->gain.high);
    }
    assert_true(fabs(c->outcomes[0].gain.value) < 0.02);
    assert_true(c->outcomes[1].gain.high < 0);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- claims -------------------- */

/* Evidence is worth what its number is: pushed to either side of its limit it changes, and so does the
   claim. */
static void every_claim_about_an_encoding_by_itself_can_hold_and_not(void **state)
{
    pe_compare_config config = tiny_compare("nope");
    config.preset.claims     = 1;
    pe_compare *c            = tiny_trained(&config, NULL);
    int         row = 0, tried = 0; /* of claims.def */
    (void)state;
    assert_non_null(c->properties);
    for (int k = 0; k < pe_claims_count(); k++) {
        const char *tutorials;
        int         count;
        assert_true(strlen(pe_claims_said(k, &tutorials, &count)) > 10 && count > 0);
        row++;
        for (int i = 0; i < count; i++, row++) {
            const pe_evidence e = pe_claims_evidence(c, k, i);
            if (e.holds == PE_UNMEASURED)
                continue; /* of models, which are not the presets' here */
            assert_true(fabs(c->properties[row]) >= 0);
            const double was = c->properties[row], aside = fabs(e.limit) + 1;
            c->properties[row] = e.limit + (e.at_least ? aside : -aside);
            assert_int_equal(pe_claims_evidence(c, k, i).holds, PE_HOLDS);
            c->properties[row] = e.limit - (e.at_least ? aside : -aside);
            assert_int_equal(pe_claims_evidence(c, k, i).holds, PE_HOLDS_NOT);
            assert_int_not_equal(pe_claims_judge(c, k), PE_HOLDS);
            c->properties[row] = was;
            tried++;
        }
    }
    assert_true(tried > 20);
    pe_compare_free(c);
}

static void claims_are_not_judged_where_nobody_asked(void **state)
{
    const pe_compare_config config = tiny_compare("nope");
    (void)state;
    json_t *numbers = tiny_numbers(&config);
    assert_int_equal(json_array_size(json_object_get(numbers, "claims")), 0);
    json_decref(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_distance_that_holds_a_share_is_the_first_that_reaches_it),
        cmocka_unit_test(only_what_sees_positions_notices_where_they_begin),
        cmocka_unit_test(attention_weights_add_up_and_a_bias_holds_them_near),
        cmocka_unit_test(what_sinks_take_is_missing_from_the_keys),
        cmocka_unit_test(the_gain_is_the_truncated_loss_less_the_whole),
        cmocka_unit_test(every_claim_about_an_encoding_by_itself_can_hold_and_not),
        cmocka_unit_test(claims_are_not_judged_where_nobody_asked),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
