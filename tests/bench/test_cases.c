/* SPDX-License-Identifier: MIT */
/*
 * test_cases: the frame of `posenc bench`, without a clock
 *
 * Which rows there are, what a row becomes where it cannot be measured, what "met" means, and that JSON has
 * exactly the members that docs/performance.md promises. Figures are made up here, or looked at only for
 * being numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/limits.h"

/* cli/print/print.h, which cannot be included together with limits.h */
json_t *cli_json_bench(const pe_bench_row *rows, int count);

static pe_bench_case *cases;
static int            count;

static int make_cases(void **state)
{
    posenc_error err;
    (void)state;
    return pe_cases_create(&cases, &count, &err) != POSENC_OK;
}

static int free_cases(void **state)
{
    (void)state;
    free(cases);
    return 0;
}

static int rows_of(const char *goal)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += !strcmp(cases[i].goal, goal);
    return n;
}

/* ---- which rows there are ---- */

static void every_goal_has_a_row_for_every_shape_it_names(void **state)
{
    static const struct {
        const char *goal;
        int         rows;
    } goals[] = {
        {"G1", 8},   /* two layouts, two sizes, two limits */
        {"G2", 8},   /* two layouts, two sizes, bf16 and f16 */
        {"G3", 8},   /* two layouts, by a table and from positions: speed, and overhead of a call */
        {"G4", 4},   /* two layouts, two sizes */
        {"G6", 6},   /* two layouts, two sizes; and in L2 */
        {"G7", 4},   /* sinusoidal and rotary, in and out of cache */
        {"G8", 8},   /* two lengths, two widths, causal and not */
        {"G9", 4},   /* two widths, causal and not */
        {"G10", 4},  /* two widths, causal and not */
        {"G14", 3},  /* forward both ways and causal, backward */
        {"G15", 3},  /* one run, two side by side; the model of the presets, stated */
        {"G17", 4},  /* two lengths: seconds and memory */
        {"G18", 12}, /* backward; six biases by distance; five that tokens make (stated) */
        {"G19", 4},  /* two widths, causal and not */
        {"G20", 8}, /* two types; no bias, and two; running sums; keys that are turned on their way, stated */
        {"G21", 18}, /* three lengths, in rows and in pages, one thread and two kinds of two */
        {"FLOATER", 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++)
        if (rows_of(goals[i].goal) != goals[i].rows)
            fail_msg("%s has %d rows, not %d", goals[i].goal, rows_of(goals[i].goal), goals[i].rows);
    assert_true(rows_of("limits") > 20 && rows_of("G11") > 30);
}

static int has_row(const char *goal, const char *start)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(cases[i].goal, goal) && !strncmp(cases[i].name, start, strlen(start)))
            return 1;
    return 0;
}

static void memory_has_a_row_for_every_encoding_forward_and_backward(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (int backward = 0; backward < 2; backward++) {
            char start[PE_BENCH_NAME];
            snprintf(start, sizeof start, "%s %s,", posenc_encoding_info_at(i)->name,
                     backward ? "backward" : "forward");
            if (!has_row("G12", start))
                fail_msg("G12 has no row \"%s...\"", start);
        }
    assert_int_equal(rows_of("G12"), 2 * posenc_encoding_count());
}

static void one_key_has_a_row_for_every_encoding_of_attention_bound_and_not(void **state)
{
    int encodings = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        start[2][PE_BENCH_NAME];
        if (info->place == POSENC_PLACE_INPUT || !strcmp(info->name, "nope"))
            continue;
        encodings++;
        for (int bound = 0; bound < 2; bound++) {
            snprintf(start[bound], sizeof start[bound], "%s, one key in a plan of 32768, parameters %s,",
                     info->name, bound ? "bound" : "not bound");
            assert_true(has_row("G22", start[bound]));
        }
    }
    assert_int_equal(rows_of("G22"), 2 * encodings);
}

static void time_over_plain_attention_has_a_row_for_every_encoding_that_acts_there(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place != POSENC_PLACE_INPUT && strcmp(info->name, "nope") != 0)
            assert_true(has_row("G11", info->name));
    }
}

static void no_two_rows_have_the_same_name(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(cases[i].goal, cases[k].goal) && !strcmp(cases[i].name, cases[k].name))
                fail_msg("two rows of %s are called \"%s\"", cases[i].goal, cases[i].name);
}

static void no_name_is_cut_short(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++)
        assert_true(strlen(cases[i].name) < PE_BENCH_NAME - 1);
}

/* ---- which are asked for ---- */

static void goals_are_chosen_by_whole_words(void **state)
{
    (void)state;
    assert_true(pe_bench_is_wanted(NULL, "G1"));
    assert_true(pe_bench_is_wanted("G1", "G1"));
    assert_true(pe_bench_is_wanted("G8,G11", "G11"));
    assert_false(pe_bench_is_wanted("G11", "G1"));
    assert_false(pe_bench_is_wanted("G1", "G11"));
    assert_false(pe_bench_is_wanted("", "G1"));
}

static const char *stranger_of(const char *goals)
{
    static char word[32];
    int         length;
    const char *at = pe_bench_unknown_goal(goals, cases, count, &length);
    snprintf(word, sizeof word, "%.*s", at ? length : 4, at ? at : "none");
    return word;
}

static void a_word_that_is_no_goal_is_found(void **state)
{
    (void)state;
    assert_string_equal(stranger_of("G1,G20,limits,FLOATER"), "none");
    assert_string_equal(stranger_of("G1,G5"), "G5");
    assert_string_equal(stranger_of("g1"), "g1");
    assert_string_equal(stranger_of("G1,"), "");
    assert_string_equal(stranger_of(""), "");
}

/* ---- what a row becomes ---- */

static posenc_status measure_nine(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    (void)c, (void)effort, (void)err;
    *figure = (pe_bench_figure){0.9, 0.8, 1.0, 272};
    return POSENC_OK;
}

static posenc_status refuse(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                            posenc_error *err)
{
    (void)c, (void)effort, (void)figure;
    *err = (posenc_error){POSENC_ERROR_UNSUPPORTED, "there is no such kernel"};
    return err->status;
}

static const pe_bench_effort least = {.seconds = 0, .repeats = 1, .threads = 1};

static pe_bench_row row_of(const pe_bench_case *c, int is_long)
{
    pe_bench_row row;
    pe_bench_measure(&row, c, &least, is_long);
    return row;
}

static void a_row_that_cannot_be_measured_says_why(void **state)
{
    const pe_bench_case lacks    = {.goal = "G1", .name = "x", .isa = "abacus", .measure = measure_nine};
    const pe_bench_case refused  = {.goal = "G1", .name = "x", .measure = refuse};
    const pe_bench_case long_one = {.goal = "G1", .name = "x", .is_long = 1, .measure = measure_nine};
    const pe_bench_case crowd = {.goal = "G1", .name = "x", .processors = 1 << 20, .measure = measure_nine};
    (void)state;
    assert_non_null(strstr(row_of(&lacks, 0).reason, "no instruction set abacus"));
    assert_string_equal(row_of(&refused, 0).reason, "there is no such kernel");
    assert_non_null(strstr(row_of(&long_one, 0).reason, "--long"));
    assert_non_null(strstr(row_of(&crowd, 0).reason, "1048576 processors"));
    assert_true(isnan(row_of(&lacks, 0).figure.value) && isnan(row_of(&refused, 0).figure.value));
    assert_string_equal(row_of(&long_one, 1).reason, "");
    assert_true(row_of(&long_one, 1).figure.value == 0.9);
}

static int met(pe_bench_sense sense, double wanted, double value)
{
    const pe_bench_case c   = {.sense = sense, .wanted = wanted};
    const pe_bench_row  row = {.what = &c, .figure = {.value = value}};
    return pe_bench_met(&row);
}

static void met_follows_from_value_and_wanted(void **state)
{
    (void)state;
    assert_int_equal(met(PE_AT_LEAST, 0.82, 0.82), 1);
    assert_int_equal(met(PE_AT_LEAST, 0.82, 0.8199), 0);
    assert_int_equal(met(PE_AT_MOST, 1.03, 1.03), 1);
    assert_int_equal(met(PE_AT_MOST, 1.03, 1.031), 0);
    assert_int_equal(met(PE_NEAR_ONE, 0.97, 0.975), 1);
    assert_int_equal(met(PE_NEAR_ONE, 0.97, 1.025), 1);
    assert_int_equal(met(PE_NEAR_ONE, 0.97, 0.965), 0);
    assert_int_equal(met(PE_NEAR_ONE, 0.97, 1.035), 0); /* too much is as wrong as too little */
    assert_int_equal(met(PE_STATED, 0, 7), -1);
    assert_int_equal(met(PE_AT_LEAST, 0.82, (double)NAN), -1);
    assert_int_equal(met(PE_AT_MOST, 0.82, (double)NAN), -1);
}

static void a_measured_row_is_a_number_between_its_quartiles(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++)
        if (!strcmp(cases[i].goal, "G3") || !strcmp(cases[i].goal, "G22")) { /* G22: of every encoding */
            const pe_bench_row row = row_of(&cases[i], 0);
            if (*row.reason)
                fail_msg("%s: %s", cases[i].name, row.reason);
            assert_true(isfinite(row.figure.value));
            assert_true(row.figure.q1 <= row.figure.value && row.figure.value <= row.figure.q3);
        }
}

/* Each build has one kind of threads of its own, and with OpenMP the pool as well. */
static void one_token_is_measured_on_every_kind_of_threads_that_this_build_has(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++)
        if (!strcmp(cases[i].goal, "G21") && strstr(cases[i].name, "against 512 keys")) {
            const pe_bench_row row = row_of(&cases[i], 0);
            if (strstr(row.reason, "built without OpenMP"))
                assert_non_null(strstr(cases[i].name, "two threads of OpenMP"));
            else if (strcmp(row.reason, "needs 2 processors") != 0)
                assert_true(row.figure.value > 0 && row.figure.limit > 0);
        }
}

static void quartiles_are_those_of_sorted_numbers(void **state)
{
    double                five[] = {5, 1, 4, 2, 3}, four[] = {4, 1, 3, 2}, one[] = {7};
    const pe_bench_figure f = pe_timing_quartiles(five, 5), g = pe_timing_quartiles(four, 4),
                          h = pe_timing_quartiles(one, 1);
    (void)state;
    assert_true(f.value == 3 && f.q1 == 2 && f.q3 == 4);
    assert_true(g.value == 2.5 && g.q1 == 2 && g.q3 == 3);
    assert_true(h.value == 7 && h.q1 == 7 && h.q3 == 7);
}

/* ---- JSON ---- */

static void check_members(const json_t *row, int has_reason)
{
    static const char *const members[] = {"goal",  "name", "value",  "q1", "q3",
                                          "limit", "unit", "wanted", "met"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!json_object_get(row, members[i]))
            fail_msg("a row has no member %s", members[i]);
    assert_int_equal(json_object_size(row), sizeof members / sizeof *members + (size_t)has_reason);
    assert_int_equal(json_object_get(row, "reason") != NULL, has_reason);
}

static void json_is_one_array_with_exactly_the_promised_members(void **state)
{
    pe_bench_row *rows = calloc((size_t)count, sizeof *rows);
    (void)state;
    for (int i = 0; i < count; i++)
        pe_bench_skip(&rows[i], &cases[i], "not measured");
    json_t *all = cli_json_bench(rows, count);
    assert_int_equal(json_array_size(all), count);
    for (int i = 0; i < count; i++) {
        const json_t *row = json_array_get(all, (size_t)i);
        check_members(row, 1);
        assert_true(json_is_null(json_object_get(row, "value")) && json_is_null(json_object_get(row, "met")));
        assert_true(json_is_string(json_object_get(row, "unit")));
    }
    json_decref(all);
    free(rows);
}

static void json_has_the_figures_and_no_reason_where_there_are_some(void **state)
{
    const pe_bench_case c = {
        .goal = "G8", .name = "attention", .unit = "GFLOP/s", .wanted = 0.82, .measure = measure_nine};
    const pe_bench_row row = row_of(&c, 0);
    json_t            *all = cli_json_bench(&row, 1);
    const json_t      *got = json_array_get(all, 0);
    (void)state;
    check_members(got, 0);
    assert_string_equal(json_string_value(json_object_get(got, "goal")), "G8");
    assert_true(json_real_value(json_object_get(got, "value")) == 0.9);
    assert_true(json_real_value(json_object_get(got, "q1")) == 0.8);
    assert_true(json_real_value(json_object_get(got, "q3")) == 1.0);
    assert_true(json_number_value(json_object_get(got, "limit")) == 272);
    assert_true(json_real_value(json_object_get(got, "wanted")) == 0.82);
    assert_true(json_is_true(json_object_get(got, "met")));
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_goal_has_a_row_for_every_shape_it_names),
        cmocka_unit_test(memory_has_a_row_for_every_encoding_forward_and_backward),
        cmocka_unit_test(one_key_has_a_row_for_every_encoding_of_attention_bound_and_not),
        cmocka_unit_test(time_over_plain_attention_has_a_row_for_every_encoding_that_acts_there),
        cmocka_unit_test(no_two_rows_have_the_same_name),
        cmocka_unit_test(no_name_is_cut_short),
        cmocka_unit_test(goals_are_chosen_by_whole_words),
        cmocka_unit_test(a_word_that_is_no_goal_is_found),
        cmocka_unit_test(a_row_that_cannot_be_measured_says_why),
        cmocka_unit_test(met_follows_from_value_and_wanted),
        cmocka_unit_test(a_measured_row_is_a_number_between_its_quartiles),
        cmocka_unit_test(one_token_is_measured_on_every_kind_of_threads_that_this_build_has),
        cmocka_unit_test(quartiles_are_those_of_sorted_numbers),
        cmocka_unit_test(json_is_one_array_with_exactly_the_promised_members),
        cmocka_unit_test(json_has_the_figures_and_no_reason_where_there_are_some),
    };
    return cmocka_run_group_tests(tests, make_cases, free_cases);
}
