/* SPDX-License-Identifier: MIT */
/* One number of a JSON text replaced, and every other byte kept. */
#include "convert/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *text, const char *object, const char *key, const char *must)
{
    char *got = pe_edit_set(text, object, key, "7");
    if (!must)
        assert_null(got);
    else
        assert_string_equal(got, must);
    free(got);
}

static void a_value_is_replaced_and_nothing_else(void **state)
{
    (void)state;
    expect("{\"a\" : 12,\n \"b\":1e-12}", NULL, "a", "{\"a\" : 7,\n \"b\":1e-12}");
    expect("  {\"b\":{\"a\":1},\"a\":[1,{\"a\":2}]}\n", NULL, "a", "  {\"b\":{\"a\":1},\"a\":7}\n");
    expect("{\"x\":null,\"a\":null}", NULL, "a", "{\"x\":null,\"a\":7}");
}

static void strings_with_marks_in_them_do_not_mislead(void **state)
{
    (void)state;
    expect("{\"b\":\"}\\\",\\\"a\\\":1\",\"c\\\"a\":2,\"a\":3}", NULL, "a",
           "{\"b\":\"}\\\",\\\"a\\\":1\",\"c\\\"a\":2,\"a\":7}");
    expect("{\"b\":[\"]\",{\"a\":\"{\"}],\"a\":\"\\\\\"}", NULL, "a",
           "{\"b\":[\"]\",{\"a\":\"{\"}],\"a\":7}");
}

static void an_inner_object_has_members_of_its_own(void **state)
{
    (void)state;
    expect("{\"a\":1,\"t\":{\"a\":2}}", "t", "a", "{\"a\":1,\"t\":{\"a\":7}}");
    expect("{\"a\":1}", "t", "a", NULL);
    expect("{\"t\":3}", "t", "a", NULL);
}

static void what_is_missing_becomes_the_first(void **state)
{
    (void)state;
    expect("{\"b\":1}", NULL, "a", "{\n  \"a\": 7,\"b\":1}");
    expect("{}", NULL, "a", "{\n  \"a\": 7}");
}

/* What escapes spell, the text does not show. */
static void a_name_is_found_as_it_is_written(void **state)
{
    static const char text[] = "{\"\\u0061\":1,\"b\":2,\"t\":{\"a\":2},\"\\u0075\":{\"a\":3}}";
    (void)state;
    assert_true(pe_edit_finds(text, NULL, NULL) && pe_edit_finds(text, NULL, "b"));
    assert_true(pe_edit_finds(text, "t", NULL) && pe_edit_finds(text, "t", "a"));
    assert_false(pe_edit_finds(text, NULL, "a") || pe_edit_finds(text, "t", "b"));
    assert_false(pe_edit_finds(text, "u", "a") || pe_edit_finds(text, "b", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_replaced_and_nothing_else),
        cmocka_unit_test(strings_with_marks_in_them_do_not_mislead),
        cmocka_unit_test(an_inner_object_has_members_of_its_own),
        cmocka_unit_test(what_is_missing_becomes_the_first),
        cmocka_unit_test(a_name_is_found_as_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
