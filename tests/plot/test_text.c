/* SPDX-License-Identifier: MIT */
/* Lines of a text: none is too wide, nothing is lost, and breaks stand where a reader expects them. */
#include "plot/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const texts[] = {
    "sinusoidal2d[preset=mocov3]: similarity to chosen points of a grid",
    "rope[base=5e5:layout=half]: (1, 0) of a pair, turned to positions 0 to 7\nuntrained: initial "
    "parameters, seed 1",
    "one_word_that_is_longer_than_a_line_but_has_joints:between:its:parts",
    "nothingatwhichonecouldbreakthislinesothatitisbrokenanywhere",
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
    "",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void check_lines(const char *text, double width)
{
    char      to[PE_WRAPPED];
    const int lines = pe_layout_wrap(text, width, to);
    int       found = *to != 0;
    for (const char *line = to; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        assert_true(pe_layout_text_width(line, strcspn(line, "\n")) <= width);
        assert_true(((unsigned char)*line & 0xC0) != 0x80); /* no letter is torn */
    }
    for (const char *at = to; *at; at++)
        found += *at == '\n';
    assert_int_equal(lines, found);
}

static void no_line_is_too_wide(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++)
        for (double width = 2; width < 50; width += 0.7)
            check_lines(texts[i], width);
}

/* Every byte but blanks and breaks, in order. */
static void nothing_is_lost(void **state)
{
    char to[PE_WRAPPED];
    (void)state;
    for (int i = 0; i < TEXTS; i++)
        for (double width = 8; width < 50; width += 0.7) {
            const char *a = texts[i], *b = to;
            pe_layout_wrap(texts[i], width, to);
            for (;; a++, b++) {
                a += strspn(a, " \n");
                b += strspn(b, " \n");
                assert_int_equal(*a, *b);
                if (!*a)
                    break;
            }
        }
}

static void lines_end_at_blanks_and_joints_where_there_are_some(void **state)
{
    char to[PE_WRAPPED];
    (void)state;
    assert_int_equal(pe_layout_wrap("to chosen points", pe_layout_text_width("to chosen p", 11), to), 2);
    assert_string_equal(to, "to chosen\npoints");
    assert_int_equal(pe_layout_wrap("a=1:b=22", pe_layout_text_width("a=1:b=", 6), to), 2);
    assert_string_equal(to, "a=1:\nb=22");
    assert_int_equal(pe_layout_wrap("base=1:prefix_rows=1", pe_layout_text_width("base=1:prefix_ro", 16), to),
                     2);
    assert_string_equal(to, "base=1:\nprefix_rows=1");
    assert_int_equal(pe_layout_wrap("one\ntwo", 40, to), 2);
    assert_string_equal(to, "one\ntwo");
    assert_int_equal(pe_layout_wrap(NULL, 40, to), 0);
}

static void a_text_without_end_is_cut_and_not_overrun(void **state)
{
    char text[3 * PE_WRAPPED], to[PE_WRAPPED];
    (void)state;
    memset(text, 'm', sizeof text - 1);
    text[sizeof text - 1] = 0;
    pe_layout_wrap(text, 60, to);
    assert_true(strlen(to) > PE_WRAPPED / 2 && strlen(to) < PE_WRAPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_too_wide),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(lines_end_at_blanks_and_joints_where_there_are_some),
        cmocka_unit_test(a_text_without_end_is_cut_and_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
