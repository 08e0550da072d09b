/* SPDX-License-Identifier: MIT */
/* What all pages share: escaped texts, one style, drawings with a title. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/page.h"

static void a_text_is_escaped_up_to_its_length(void **state)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    (void)state;
    pe_page_escape(to, "a<b>&\"c\"d", 8);
    fclose(to);
    assert_string_equal(text, "a&lt;b&gt;&amp;&quot;c&quot;");
    free(text);
}

static void a_drawing_loses_its_first_lines_and_gets_a_title(void **state)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    (void)state;
    pe_page_drawing(to, "<?xml version=\"1.0\"?>\n<svg>\n<title>Gnuplot</title>\n<g/></svg>\n", "a < b");
    fclose(to);
    assert_string_equal(text, "<svg>\n<title>a &lt; b</title>\n<g/></svg>\n");
    free(text);
}

static void the_style_is_one_element_for_light_and_dark(void **state)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    (void)state;
    pe_page_style(to);
    fclose(to);
    assert_int_equal(strncmp(text, "<style>\n", strlen("<style>\n")), 0);
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_string_equal(strstr(text, "</style>"), "</style>\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_escaped_up_to_its_length),
        cmocka_unit_test(a_drawing_loses_its_first_lines_and_gets_a_title),
        cmocka_unit_test(the_style_is_one_element_for_light_and_dark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
