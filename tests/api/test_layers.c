/* SPDX-License-Identifier: MIT */
/* A SPEC per layer, read layer by layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <posenc/registry.h>

static void is(const char *spec, int64_t index, const char *wanted, int64_t window, int64_t period)
{
    posenc_layer layer;
    posenc_error err;
    if (posenc_layer_read(&layer, spec, index, &err))
        fail_msg("%s: %s", spec, err.message);
    assert_string_equal(layer.spec, wanted);
    assert_int_equal(layer.window, window);
    assert_int_equal(layer.period, period);
}

static void entries_stand_in_the_order_of_the_layers_and_repeat(void **state)
{
    static const char spec[] = "rope[base=1e4,window=32]:3/nope[temperature=ssmax]";
    (void)state;
    for (int64_t l = 0; l < 12; l++)
        if (l % 4 < 3)
            is(spec, l, "rope[base=1e4]", 32, 4);
        else
            is(spec, l, "nope[temperature=ssmax]", 0, 4);
    is("rope/nope:2", 3, "rope", 0, 3);
    is("alibi", 7, "alibi", 0, 1);
}

static void a_window_is_taken_from_any_part_and_left_where_a_part_has_one_itself(void **state)
{
    (void)state;
    is("rope[window=8]", 0, "rope", 8, 1);
    is("RoPE[layout=half WINDOW=8:base=500]", 0, "RoPE[layout=half:base=500]", 8, 1);
    is("rope[layout=half]+t5[window=8]", 0, "rope[layout=half]+t5", 8, 1);
    is("rope[window=8]+t5[window=8]", 0, "rope+t5", 8, 1);
    is("swin[window=3x1]", 0, "swin[window=3x1]", 0, 1);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *spec, *says;
    } rows[] = {
        {"", "empty"},
        {"rope/", "empty"},
        {"/rope", "empty"},
        {"rope//nope", "empty"},
        {"rope:0", "'0' after 'rope:' is not a number of layers"},
        {"rope:x/nope", "'x' after 'rope:' is not a number of layers"},
        {"rope:", "is not a number of layers"},
        {"rope[window=0]/nope", "window is '0'"},
        {"rope[window=3.5]", "window is '3.5'"},
        {"rope[window=]", "window is ''"},
        {"rope[window=99999999999999999999]", "window is '99999999999999999999'"},
        {"rope[window=8]+t5[window=9]", "window is 8 and 9 in one entry"},
    };
    posenc_layer layer;
    posenc_error err;
    char         endless[2048] = "rope[";
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(posenc_layer_read(&layer, rows[i].spec, 0, &err), POSENC_ERROR_SETTING);
        if (!strstr(err.message, rows[i].says))
            fail_msg("\"%s\": %s", rows[i].spec, err.message);
    }
    memset(endless + strlen(endless), 'a', sizeof endless - 6);
    assert_int_equal(posenc_layer_read(&layer, endless, 0, &err), POSENC_ERROR_SETTING);
    assert_int_equal(posenc_layer_read(&layer, "rope", -1, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_layer_read(NULL, "rope", 0, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_layer_read(&layer, NULL, 0, &err), POSENC_ERROR_ARGUMENT);
}

static void one_encoding_is_not_made_of_several_layers(void **state)
{
    posenc_encoding *e;
    posenc_error     err;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "rope/nope", NULL, &err), POSENC_ERROR_SETTING);
    assert_non_null(strstr(err.message, "a SPEC per layer"));
    assert_int_equal(posenc_encoding_create(&e, "rope[window=8]", NULL, &err), POSENC_ERROR_SETTING);
    assert_non_null(strstr(err.message, "window is a setting of layers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stand_in_the_order_of_the_layers_and_repeat),
        cmocka_unit_test(a_window_is_taken_from_any_part_and_left_where_a_part_has_one_itself),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(one_encoding_is_not_made_of_several_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
