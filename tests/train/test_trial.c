/* SPDX-License-Identifier: MIT */
/*
 * Learning rates that are tried for each encoding, and levels of less training: which runs there are, what
 * decides, and what must not.
 */
#include "train/compare.h"
#include "train/jobs/job.h"
#include "train/jobs/level.h"
#include "train/judge/judge.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_compare.h"

#define ENCODINGS "nope,rope,alibi"
#define RATES     "1e-3,1e-2,4e-3"

static int begin(void **state)
{
    (void)state;
    tiny_write_words();
    return 0;
}

static pe_compare_config with_rates(const char *rates, const char *stability)
{
    pe_compare_config config = tiny_compare(ENCODINGS);
    config.preset.rates      = rates;
    config.preset.stability  = stability;
    config.workers           = 2;
    return config;
}

/* ---------------------------------------------------------------- the choice ---------------- */

static void each_encoding_is_compared_at_the_rate_of_its_best_trial(void **state)
{
    const pe_compare_config config = with_rates(RATES, NULL);
    pe_compare             *c      = tiny_trained(&config, NULL);
    const pe_trials        *t      = c->trials;
    (void)state;
    assert_int_equal(pe_job_count(c), 3 * 3 + 3);
    assert_true(t->rates[0] == 1e-3 && t->rates[1] == 4e-3 && t->rates[2] == 1e-2);
    for (int i = 0; i < c->count; i++) {
        double best = INFINITY;
        for (int r = 0; r < t->rate_count; r++) {
            assert_int_equal(pe_trial_at(t, i, r)->config.steps, 5);
            best = fmin(best, pe_trial_loss(t, i, r));
        }
        assert_true(pe_trial_loss(t, i, t->chosen[i]) == best && best > 0);
        assert_true(c->outcomes[i].config.learning_rate == t->rates[t->chosen[i]]);
        assert_true(c->outcomes[i].is_complete);
    }
    pe_compare_free(c);
}

/* The run at the chosen rate is what a comparison at that rate alone would have, the same bytes spared. */
static void a_chosen_rate_is_what_is_trained(void **state)
{
    const pe_compare_config config = with_rates("1e-5,4e-3", NULL);
    pe_compare             *c      = tiny_trained(&config, NULL);
    const pe_job            first  = pe_job_at(c, pe_trial_runs(c->trials));
    pe_run_result           again;
    (void)state;
    assert_true(first.config.learning_rate == 4e-3); /* the other learns nothing */
    assert_int_equal(pe_run(&first.config, NULL, &again, NULL), POSENC_OK);
    assert_memory_equal(again.window_loss, first.result->window_loss,
                        (size_t)(c->windows * PE_REACH * TINY_LENGTH) * sizeof(float));
    pe_run_result_free(&again);
    pe_compare_free(c);
}

static void a_rate_that_diverges_is_not_chosen(void **state)
{
    const pe_compare_config config = with_rates("1e-3,400", NULL);
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    for (int i = 0; i < c->count; i++)
        assert_int_equal(c->trials->chosen[i], 0);
    pe_compare_free(c);
}

/* Losses of trials on what decides, and the choices. */
static void copy_choice(double losses[9], int chosen[3], const unsigned char *text)
{
    pe_compare_config config = with_rates(RATES, NULL);
    config.text              = text;
    pe_compare *c            = tiny_trained(&config, NULL);
    for (int i = 0; i < 9; i++)
        losses[i] = pe_trial_loss(c->trials, i / 3, i % 3);
    memcpy(chosen, c->trials->chosen, 3 * sizeof *chosen);
    pe_compare_free(c);
}

/* The choice reads no byte that scores the comparison. */
static void held_out_bytes_do_not_decide(void **state)
{
    static unsigned char other[TINY_BYTES];
    double               losses[2][9];
    int                  chosen[2][3];
    (void)state;
    memcpy(other, tiny_bytes, sizeof other);
    memset(other + TINY_BYTES - TINY_BYTES / 10, 'x', TINY_BYTES / 10);
    copy_choice(losses[0], chosen[0], tiny_bytes);
    copy_choice(losses[1], chosen[1], other);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_memory_equal(chosen[0], chosen[1], sizeof chosen[0]);
}

/* Nor is anything trained on the bytes that decide. */
static void bytes_that_decide_are_not_trained_on(void **state)
{
    static unsigned char    other[TINY_BYTES];
    const pe_compare_config config = with_rates(RATES, NULL);
    pe_compare_config       second = config;
    pe_compare             *c      = tiny_trained(&config, NULL);
    const int64_t           end = c->text.train_size, spared = c->text.spared;
    int                     moved = 0;
    (void)state;
    assert_true(spared > 1000 && spared <= end / 20);
    memcpy(other, tiny_bytes, sizeof other);
    memset(other + end - spared + 1, 'x', (size_t)spared - 1);
    second.text   = other;
    pe_compare *d = tiny_trained(&second, NULL);
    for (int64_t job = 0; job < pe_trial_runs(c->trials); job++) {
        const pe_job a = pe_job_at(c, job), b = pe_job_at(d, job);
        assert_memory_equal(a.result->train_loss, b.result->train_loss,
                            (size_t)a.config.steps * sizeof(float));
        moved += a.result->followup[0] != b.result->followup[0];
    }
    assert_true(moved > 0);
    pe_compare_free(c);
    pe_compare_free(d);
}

static void a_choice_is_made_for_both_sides_too(void **state)
{
    pe_compare_config config = with_rates("1e-5,1e-2", "brief");
    (void)state;
    config.bidirectional = 1;
    config.preset.steps  = 60;
    pe_compare *c        = tiny_trained(&config, NULL);
    for (int i = 0; i < c->count; i++)
        assert_true(isfinite(pe_trial_loss(c->trials, i, 0)) && c->trials->chosen[i] == 1);
    pe_compare_free(c);
}

static void any_number_of_workers_chooses_the_same(void **state)
{
    pe_compare_config config = with_rates(RATES, "full");
    (void)state;
    config.extension         = "brief";
    config.preset.tune_steps = 2;
    config.preset.seeds      = 2;
    json_t *two              = tiny_numbers(&config);
    config.workers           = 1;
    json_t *one              = tiny_numbers(&config);
    assert_true(json_equal(one, two));
    json_decref(one);
    json_decref(two);
}

/* Models that are read further are those of the comparison: at the same rate, a quarter of it to tune. */
static void an_extended_model_has_the_rate_of_its_encoding(void **state)
{
    pe_compare_config config = with_rates("1e-5,4e-3", NULL);
    (void)state;
    config.extension         = "brief";
    config.preset.tune_steps = 2;
    pe_compare         *c    = tiny_trained(&config, NULL);
    const pe_extension *x    = c->extension;
    assert_string_equal(x->plans[0].family, "rope");
    assert_true(x->outcomes[0].config.learning_rate == c->outcomes[1].config.learning_rate);
    assert_true(x->plans[0].learning_rate == c->outcomes[1].config.learning_rate / 4);
    assert_true(x->outcomes[1].config.learning_rate ==
                config.preset.learning_rate); /* learned: not compared */
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- the edges ----------------- */

static void a_best_rate_at_the_edge_is_said(void **state)
{
    const pe_compare_config config = with_rates("1e-5,1e-4", NULL);
    pe_compare             *c      = tiny_trained(&config, NULL);
    const char             *note   = pe_compare_says(c).rates;
    (void)state;
    assert_int_equal(pe_trial_edge(c->trials, 0), 1);
    assert_non_null(note);
    assert_non_null(strstr(note, "the highest that was tried, 0.0001"));
    assert_non_null(strstr(note, "try --rates 1e-05,0.0001,0.001\n"));
    c->trials->chosen[0] = 0;
    pe_settled_write_notes(c);
    assert_non_null(strstr(pe_compare_says(c).rates, "nope: the best learning rate is the lowest"));
    assert_non_null(strstr(pe_compare_says(c).rates, "--rates 1e-06,1e-05,0.0001\n"));
    pe_compare_free(c);
}

static void one_rate_needs_no_trial(void **state)
{
    const pe_compare_config config = with_rates("4e-3", NULL);
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    assert_int_equal(pe_job_count(c), 3);
    assert_int_equal(c->text.spared, 0);
    assert_true(c->outcomes[0].config.learning_rate == 4e-3);
    assert_int_equal(pe_trial_edge(c->trials, 0), 0);
    assert_null(pe_compare_says(c).rates);
    assert_null(pe_compare_says(c).orders);
    pe_compare_free(c);
}

/* The rows of docs/experiments.md: as results.json has them where no rates were tried. */
static void the_documented_curve_is_that_of_the_results(void **state)
{
    static char             page[200000];
    const pe_compare_config config = with_rates(NULL, NULL);
    json_t                 *all    = tiny_numbers(&config);
    const json_t           *curve  = json_object_get(json_object_get(all, "rates"), "documented_curve"), *one;
    FILE                   *file   = fopen(POSENC_SOURCE_DIR "/docs/experiments.md", "r");
    (void)state;
    assert_non_null(file);
    assert_in_range(fread(page, 1, sizeof page - 1, file), 1000, sizeof page - 2);
    fclose(file);
    assert_int_equal(json_array_size(json_object_get(curve, "encodings")), 7);
    for (size_t r = 0; r < json_array_size(json_object_get(curve, "learning_rates")); r++) {
        char   row[256] = "";
        size_t i;
        json_array_foreach(json_object_get(curve, "encodings"), i, one)
        {
            const json_t *loss = json_array_get(json_object_get(one, "losses"), r);
            if (json_is_null(loss))
                strcat(row, " - |");
            else
                snprintf(row + strlen(row), sizeof row - strlen(row), " %.3f |", json_real_value(loss));
        }
        if (!strstr(page, row))
            fail_msg("docs/experiments.md has no row \"%s\"", row);
    }
    json_decref(all);
}

static void rates_that_cannot_be_are_refused(void **state)
{
    static const char *const cases[][2] = {{"0.001,", "is not a learning rate"},
                                           {"0.001,fast", "\"fast\" is not a learning rate"},
                                           {"0", "above 0"},
                                           {"nan", "above 0"},
                                           {"-1e-3", "above 0"},
                                           {"2000", "up to 1000"},
                                           {"1e-3,0.001", "0.001 is named twice"},
                                           {"1,2,3,4,5,6,7,8,9", "more than 8"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pe_compare_config config = with_rates(cases[i][0], NULL);
        posenc_error            err    = {0};
        pe_compare             *c;
        assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
        if (!strstr(err.message, cases[i][1]) || strncmp(err.message, "rates: ", 7) != 0)
            fail_msg("%s: %s", cases[i][0], err.message);
    }
}

static void the_shortest_text_has_something_to_choose_on(void **state)
{
    pe_compare_config config = with_rates(RATES, NULL);
    pe_compare       *c;
    (void)state;
    config.preset.L     = 256;
    config.preset.batch = 1;
    config.text_size    = 10 * (PE_REACH * config.preset.L + 1);
    assert_int_equal(pe_compare_create(&c, &config, NULL), POSENC_OK);
    assert_int_equal(c->trials->plan.windows, 3);
    /* forwards only, which is a third: an estimate that took a window for a step would be off by as many */
    const pe_run_followup *f = &c->trials->followup;
    assert_true(fabs(f->steps(f->self, 0) - 1.0 / (double)config.preset.batch) < 1e-12);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- levels -------------------- */

static void a_quarter_that_was_tried_is_not_made_twice(void **state)
{
    const pe_compare_config config = with_rates(RATES, "brief");
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    assert_int_equal(pe_job_count(c), 3 * 3 + 3);
    for (int i = 0; i < c->count; i++) {
        pe_outcome *o = pe_level_outcome(c, PE_LEVEL_QUARTER, i);
        assert_ptr_equal(o, pe_trial_at(c->trials, i, c->trials->chosen[i]));
        assert_true(o->is_complete && o->config.steps == 5 && isfinite(o->loss[PE_AT_8L]));
    }
    assert_int_equal(c->orders[PE_ORDER_AT_L]->levels, 2);
    pe_compare_free(c);
}

static void without_trials_a_quarter_is_trained(void **state)
{
    pe_compare_config config = with_rates(NULL, "brief");
    (void)state;
    pe_compare   *c     = tiny_trained(&config, NULL);
    const pe_job  last  = pe_job_at(c, 5);
    const double *first = c->outcomes[0].loss;
    assert_int_equal(pe_job_count(c), 6);
    assert_int_equal(last.config.steps, 5);
    assert_int_equal(last.config.warmup, 5);
    assert_true(last.config.learning_rate == 2 * c->outcomes[2].config.learning_rate);
    assert_string_equal(last.label, "alibi, a quarter of the steps");
    assert_non_null(strstr(pe_compare_says(c).orders, "Order at L: "));
    assert_true(pe_level_outcome(c, PE_LEVEL_QUARTER, 0)->loss[PE_AT_L] > first[PE_AT_L]);
    pe_compare_free(c);
    config.preset.rates      = RATES;
    config.preset.rate_share = 0.5; /* trials of another length are no quarter */
    c                        = tiny_trained(&config, NULL);
    assert_int_equal(pe_job_count(c), 9 + 3 + 3);
    for (int i = 0; i < c->count; i++)
        assert_true(pe_level_outcome(c, PE_LEVEL_QUARTER, i)->config.learning_rate ==
                    2 * c->outcomes[i].config.learning_rate);
    pe_compare_free(c);
}

static void full_trains_half_of_the_steps_and_of_the_width(void **state)
{
    const pe_compare_config config = with_rates(NULL, "full");
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    assert_int_equal(pe_job_count(c), 3 + 3 * 3);
    for (int i = 0; i < c->count; i++) {
        const pe_run_config *narrow = &pe_level_outcome(c, PE_LEVEL_NARROW, i)->config,
                            *half   = &pe_level_outcome(c, PE_LEVEL_HALF, i)->config;
        assert_true(narrow->d_model == 8 && narrow->heads == 1 && narrow->steps == 20);
        assert_true(half->d_model == 16 && half->heads == 2 && half->steps == 10 && half->warmup == 5);
        assert_true(pe_level_outcome(c, PE_LEVEL_NARROW, i)->is_complete);
        assert_ptr_equal(pe_level_outcome(c, PE_LEVEL_WHOLE, i), &c->outcomes[i]);
    }
    assert_int_equal(c->orders[PE_ORDER_FURTHEST]->levels, PE_LEVELS);
    assert_int_equal(pe_stability_level(c->levels, 1), PE_LEVEL_NARROW);
    pe_compare_free(c);
}

static void results_hold_trials_and_orders(void **state)
{
    const pe_compare_config config = with_rates(RATES, "brief");
    json_t                 *all    = tiny_numbers(&config);
    const json_t *rates = json_object_get(all, "rates"), *orders = json_object_get(all, "stability");
    const json_t *first = json_array_get(json_object_get(rates, "encodings"), 0);
    (void)state;
    assert_int_equal(json_array_size(json_object_get(rates, "tried")), 3);
    assert_int_equal(json_array_size(json_object_get(first, "trials")), 3);
    assert_true(json_is_real(json_object_get(first, "learning_rate")));
    assert_string_equal(json_string_value(json_object_get(orders, "extent")), "brief");
    assert_int_equal(json_array_size(json_object_get(orders, "levels")), 2);
    orders = json_object_get(orders, "orders");
    assert_int_equal(json_array_size(orders), 2);
    first = json_array_get(orders, 0);
    assert_string_equal(json_string_value(json_object_get(first, "at")), "L");
    assert_int_equal(json_array_size(json_object_get(first, "pairs")), 3);
    assert_true(json_real_value(json_array_get(json_object_get(first, "kendall_tau"), 1)) == 1 ||
                json_is_null(json_array_get(json_object_get(first, "kendall_tau"), 1)));
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_encoding_is_compared_at_the_rate_of_its_best_trial),
        cmocka_unit_test(a_chosen_rate_is_what_is_trained),
        cmocka_unit_test(a_rate_that_diverges_is_not_chosen),
        cmocka_unit_test(held_out_bytes_do_not_decide),
        cmocka_unit_test(bytes_that_decide_are_not_trained_on),
        cmocka_unit_test(a_choice_is_made_for_both_sides_too),
        cmocka_unit_test(any_number_of_workers_chooses_the_same),
        cmocka_unit_test(an_extended_model_has_the_rate_of_its_encoding),
        cmocka_unit_test(a_best_rate_at_the_edge_is_said),
        cmocka_unit_test(one_rate_needs_no_trial),
        cmocka_unit_test(the_documented_curve_is_that_of_the_results),
        cmocka_unit_test(rates_that_cannot_be_are_refused),
        cmocka_unit_test(the_shortest_text_has_something_to_choose_on),
        cmocka_unit_test(a_quarter_that_was_tried_is_not_made_twice),
        cmocka_unit_test(without_trials_a_quarter_is_trained),
        cmocka_unit_test(full_trains_half_of_the_steps_and_of_the_width),
        cmocka_unit_test(results_hold_trials_and_orders),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
