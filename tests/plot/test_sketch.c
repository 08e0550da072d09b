/* SPDX-License-Identifier: MIT */
/* What makers of pictures share: settings read from a SPEC, shares of attention, the layout of panels. */
#include "plot/sketch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The setting of the part at `place` is this text. */
static void setting_is(const char *spec, posenc_place place, const char *name, const char *wanted)
{
    pe_sketch        s = {0};
    posenc_encoding *e;
    posenc_error     err;
    char             text[PE_SETTING_LENGTH];
    if (posenc_encoding_create(&e, spec, NULL, &err))
        fail_msg("%s", err.message);
    s.e    = e;
    s.part = posenc_encoding_part(e, place);
    pe_sketch_setting(&s, name, text);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s of %s is \"%s\", not \"%s\"", name, posenc_encoding_spec(e), text, wanted);
    posenc_encoding_free(e);
}

static void a_setting_is_that_of_its_part(void **state)
{
    (void)state;
    setting_is("t5", POSENC_PLACE_SCORE, "num_buckets", "32");
    setting_is("t5[num_buckets=16]", POSENC_PLACE_SCORE, "num_buckets", "16");
    setting_is("t5[max_distance=64,num_buckets=16]", POSENC_PLACE_SCORE, "num_buckets", "16");
    setting_is("t5[max_distance=64:num_buckets=16]", POSENC_PLACE_SCORE, "max_distance", "64");
    setting_is("t5[num_buckets=16]+rope[base=500]", POSENC_PLACE_ROTARY, "base", "500");
    setting_is("rope[base=500]+t5", POSENC_PLACE_SCORE, "num_buckets", "32");
    setting_is("rope+t5[num_buckets=16]", POSENC_PLACE_ROTARY, "base", "10000");
    setting_is("t5", POSENC_PLACE_SCORE, "buckets", "");
}

/* An expression may hold a sign that also joins encodings. */
static void a_sum_in_a_setting_does_not_end_the_settings(void **state)
{
    (void)state;
    setting_is("t5[num_buckets=8+8,max_distance=64]", POSENC_PLACE_SCORE, "num_buckets", "8+8");
    setting_is("t5[num_buckets=8+8,max_distance=64]", POSENC_PLACE_SCORE, "max_distance", "64");
    setting_is("t5[num_buckets=8+8]+rope[base=500]", POSENC_PLACE_ROTARY, "base", "500");
}

static void equal_scores_share_equally(void **state)
{
    double equal[8], one[1] = {-5};
    (void)state;
    for (int i = 0; i < 8; i++)
        equal[i] = 700; /* exp(700) overflows in a sum of eight */
    pe_sketch_shares(equal, 8);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(equal[i] - (i + 1) / 8.0) < 1e-15);
    pe_sketch_shares(one, 1);
    assert_true(one[0] == 1);
}

/* Scores -m t give a geometric series: the share of the nearest n is (1 - r^n) / (1 - r^N). */
static void falling_scores_share_as_a_geometric_series(void **state)
{
    enum { N = 50 };
    const double r = exp(-0.3);
    double       scores[N];
    (void)state;
    for (int t = 0; t < N; t++)
        scores[t] = 1000 - 0.3 * t;
    pe_sketch_shares(scores, N);
    for (int n = 1; n <= N; n++)
        assert_true(fabs(scores[n - 1] - (1 - pow(r, n)) / (1 - pow(r, N))) < 1e-13);
}

static void panels_stand_in_up_to_three_columns_or_in_a_square(void **state)
{
    static const int columns[] = {1, 2, 3, 2, 3, 3, 3};
    (void)state;
    for (int count = 1; count <= 7; count++) {
        pe_sketch s = {0};
        pe_figure f = {.kind = PE_GRID};
        assert_non_null(pe_sketch_panels(&s, &f, count, 0));
        assert_int_equal(f.kind, PE_PANELS);
        assert_int_equal(f.panel_count, count);
        assert_int_equal(f.panel_columns, columns[count - 1]);
        pe_sketch_panels(&s, &f, count, 4);
        assert_int_equal(f.panel_columns, 4);
        posenc_arrays_free(&s.store);
    }
}

static void a_grid_is_signed_if_a_value_is_negative(void **state)
{
    const double values[6] = {0, 1, 2, 3, 4, -1};
    pe_figure    plain = {0}, with = {0};
    (void)state;
    pe_sketch_grid(&plain, values, 1, 5);
    pe_sketch_grid(&with, values, 2, 3);
    assert_false(plain.signed_scale);
    assert_true(with.signed_scale);
    assert_true(with.rows == 2 && with.cols == 3 && with.dx == 1 && with.dy == 1);
}

static void after_a_failure_nothing_is_taken(void **state)
{
    posenc_error err = {0};
    pe_sketch    s   = {.err = &err};
    (void)state;
    const double *range = pe_sketch_range(&s, 5, -2, 3);
    assert_true(range[0] == 5 && range[1] == 3 && range[2] == 1);
    assert_string_equal(pe_sketch_text(&s, "%d heads", 4), "4 heads");
    pe_sketch_refuse(&s, POSENC_ERROR_ARGUMENT, "the %s", "first");
    pe_sketch_refuse(&s, POSENC_ERROR_RANGE, "the second");
    assert_int_equal(s.status, POSENC_ERROR_ARGUMENT);
    assert_string_equal(err.message, "the first");
    assert_null(pe_sketch_take(&s, 1, 1));
    assert_null(pe_sketch_numbers(&s, 1));
    assert_null(pe_sketch_range(&s, 0, 1, 2));
    assert_string_equal(pe_sketch_text(&s, "%d heads", 4), "");
    posenc_arrays_free(&s.store);
}

static void maps_are_drawn_of_windows(void **state)
{
    static const struct {
        const char *spec;
        int         wanted;
    } rows[] = {{"swin[window=7x7]", 1}, {"swin[window=7x1]", 0}, {"t5", 0}, {"sinusoidal", 0}, {"tupe", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_encoding *e;
        assert_int_equal(posenc_encoding_create(&e, rows[i].spec, NULL, NULL), POSENC_OK);
        if (pe_biases_is_map(e) != rows[i].wanted)
            fail_msg("is %s a map?", rows[i].spec);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_that_of_its_part),
        cmocka_unit_test(a_sum_in_a_setting_does_not_end_the_settings),
        cmocka_unit_test(equal_scores_share_equally),
        cmocka_unit_test(falling_scores_share_as_a_geometric_series),
        cmocka_unit_test(panels_stand_in_up_to_three_columns_or_in_a_square),
        cmocka_unit_test(a_grid_is_signed_if_a_value_is_negative),
        cmocka_unit_test(after_a_failure_nothing_is_taken),
        cmocka_unit_test(maps_are_drawn_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
