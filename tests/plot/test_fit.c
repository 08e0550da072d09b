/* SPDX-License-Identifier: MIT */
/* What a picture has where nobody says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plot/plot.h"

#include <string.h>

/* The data of a kind of picture of spec; the settings. */
static pe_picture_data fitted(const char *spec, const char *kind, pe_picture_data data,
                              char settings[PE_SETTINGS])
{
    posenc_encoding *e;
    posenc_error     err;
    pe_offer         offer;
    if (posenc_encoding_create(&e, spec, NULL, &err))
        fail_msg("%s", err.message);
    assert_true(pe_picture_offered(e, kind, &offer));
    pe_picture_fit(e, &offer, &data, settings);
    posenc_encoding_free(e);
    return data;
}

static void a_line_has_the_sizes_of_its_kind(void **state)
{
    char                  settings[PE_SETTINGS];
    const pe_picture_data d = fitted("sinusoidal", "heatmap", (pe_picture_data){0}, settings);
    (void)state;
    assert_true(d.length == 128 && !d.rows && d.dims.d_model == 64 && d.dims.L == 128 && d.dims.Lk == 128);
    assert_string_equal(settings, "");
}

static void what_is_said_stays(void **state)
{
    char                  settings[PE_SETTINGS];
    const pe_picture_data d =
        fitted("rope", "decay", (pe_picture_data){.length = 9, .dims = {.D = 16, .H = 3}}, settings);
    (void)state;
    assert_true(d.length == 9 && d.dims.D == 16 && d.dims.H == 3 && d.dims.d_model == 48 && d.dims.Lk == 9);
}

static void positions_on_a_grid_have_one_and_become_a_setting(void **state)
{
    char            settings[PE_SETTINGS];
    pe_picture_data d = fitted("sinusoidal_nd", "similarity2d", (pe_picture_data){0}, settings);
    (void)state;
    assert_true(d.rows == 16 && d.cols == 32 && d.dims.L == 512);
    assert_string_equal(settings, "shape=16x32");
    d = fitted("learned_resize[grid_in=4x4]", "heatmap", (pe_picture_data){.rows = 6, .cols = 2}, settings);
    assert_true(d.rows == 6 && d.cols == 2 && d.dims.L == 12);
    assert_string_equal(settings, "grid_out=6x2"); /* what a table was made for stays */
}

static void a_bias_reaches_both_ways_unless_it_is_causal(void **state)
{
    char            settings[PE_SETTINGS];
    pe_picture_data d = fitted("t5", "bias", (pe_picture_data){.length = 10}, settings);
    (void)state;
    assert_true(d.dims.Lk == 19 && d.dims.L == 10 && d.dims.H == 8 && !d.causal);
    d = fitted("fox", "bias", (pe_picture_data){.length = 10}, settings);
    assert_true(d.dims.Lk == 10 && d.causal);
}

static void the_grid_of_a_bias_is_its_window(void **state)
{
    char                  settings[PE_SETTINGS];
    const pe_picture_data d = fitted("swin", "bias", (pe_picture_data){.rows = 5, .cols = 7}, settings);
    (void)state;
    assert_string_equal(settings, "swin.window=5x7");
    assert_true(!d.rows && !d.cols);
}

static void frequencies_that_follow_the_length_are_told_it(void **state)
{
    char settings[PE_SETTINGS];
    (void)state;
    fitted("t5+rope[schedule=dynamic:factor=2:max_length=64]", "decay", (pe_picture_data){0}, settings);
    assert_string_equal(settings, "rope.length=1024");
    fitted("rope[schedule=dynamic:factor=2:max_length=64:length=70]", "decay", (pe_picture_data){0},
           settings);
    assert_string_equal(settings, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_sizes_of_its_kind),
        cmocka_unit_test(what_is_said_stays),
        cmocka_unit_test(positions_on_a_grid_have_one_and_become_a_setting),
        cmocka_unit_test(a_bias_reaches_both_ways_unless_it_is_causal),
        cmocka_unit_test(the_grid_of_a_bias_is_its_window),
        cmocka_unit_test(frequencies_that_follow_the_length_are_told_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
