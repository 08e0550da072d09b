/* SPDX-License-Identifier: MIT */
/* Words, lists of words and reals as text. */
#include "files/arrays/text.h"

#include <math.h>
#include <posenc/registry.h>

#include "scratch.h"

static void a_word_is_among_words_only_as_a_whole(void **state)
{
    static const struct {
        const char *list, *word;
        int         wanted;
    } rows[] = {{"c2p p2c p2p", "c2p", 1},
                {"c2p p2c p2p", "p2c", 1},
                {"c2p p2c p2p", "p2p", 1},
                {"c2p p2c p2p", "p2", 0},
                {"c2p p2c p2p", "2p", 0},
                {"c2p p2c p2p", "c2p p2c", 0},
                {"aa a", "a", 1},
                {"xa ax a", "a", 1},
                {"aaa", "a", 0},
                {"a", "a", 1},
                {"a", "", 0},
                {"", "a", 0},
                {"", "", 0},
                {NULL, "a", 0},
                {"a", NULL, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pe_text_is_among(rows[i].list, rows[i].word) != rows[i].wanted)
            fail_msg("is \"%s\" among \"%s\"?", rows[i].word, rows[i].list);
}

static void a_text_is_and_ends_as_it_says(void **state)
{
    (void)state;
    assert_true(pe_text_is("rope", "rope"));
    assert_false(pe_text_is("rope", "rop"));
    assert_false(pe_text_is(NULL, "rope"));
    assert_true(pe_text_ends_with("a.npz", ".npz"));
    assert_true(pe_text_ends_with(".npz", ".npz"));
    assert_true(pe_text_ends_with("a", ""));
    assert_false(pe_text_ends_with("npz", ".npz"));
    assert_false(pe_text_ends_with("a.npz.part", ".npz"));
}

static void a_real_is_as_short_as_reads_back(void **state)
{
    static const struct {
        double      x;
        const char *text;
    } rows[] = {{0.1, "0.1"},
                {10000, "10000"},
                {-0.5, "-0.5"},
                {1e300, "1e+300"},
                {0, "0"},
                {0.1 + 0.2, "0.30000000000000004"},
                {1.0 / 3, "0.3333333333333333"}};
    char text[PE_TEXT_REAL];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(pe_text_real(text, rows[i].x), rows[i].text);
    for (uint64_t i = 0; i < 2000; i++) {
        const double x = ldexp(posenc_random_uniform(4, "real", i) - 0.5, (int)(i % 2000) - 1000);
        assert_true(strtod(pe_text_real(text, x), NULL) == x);
        assert_true(strlen(text) < PE_TEXT_REAL - 1);
    }
}

static void only_what_shows_itself_is_shown(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {{"plain", "plain"},
                {"\xc3\xa9 \xe5\xad\x97 \xf0\x9f\x98\x80", "\xc3\xa9 \xe5\xad\x97 \xf0\x9f\x98\x80"},
                {"\033[31m\r\n\x7f", "?[31m???"},
                {"\xc2\x9b", "??"}, /* a C1 control */
                {"\xe2\x80\xae"
                 "a",
                 "???a"}, /* writes from right to left */
                {"\xff\xfe", "??"},
                {"\xd8\x9c", "??"},                              /* a mark of direction, as U+200E is */
                {"\xef\xbf\xbe\xef\xbf\xbd", "???\xef\xbf\xbd"}, /* no XML holds the first */
                {"\xc0\xaf", "??"},                              /* a slash in too many bytes */
                {"\xed\xa0\x80"
                 "a",
                 "???a"}, /* half of a pair */
                {"\xf4\x90\x80\x80"
                 "a",
                 "????a"},          /* beyond Unicode */
                {"a\xe5\xad", "a"}, /* cut off */
                {"a\xe5"
                 "b",
                 "a?b"},
                {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        strcpy(text, rows[i].text);
        assert_string_equal(pe_text_clean(text), rows[i].shown);
    }
    char text[] = "a\n\033\nb";
    assert_string_equal(pe_text_clean_lines(text), "a\n?\nb");
}

static void a_formula_in_csv_is_a_text(void **state)
{
    char        text[64] = "";
    FILE *const to       = fmemopen(text, sizeof text, "w");
    (void)state;
    assert_non_null(to);
    pe_text_write_csv(to, "=1+1");
    pe_text_write_csv(to, "@A");
    pe_text_write_csv(to, "a=1");
    pe_text_write_csv(to, "\xef\xbc\x9d"
                          "1");
    pe_text_write_csv(to, "\n=1");
    pe_text_write_csv(to, "\xff\033");
    fclose(to);
    assert_string_equal(text, "\"'=1+1\"\"'@A\"\"a=1\"\"'\xef\xbc\x9d"
                              "1\"\"'\n=1\"\"??\"");
}

static void a_csv_field_keeps_commas_and_doubles_quotes(void **state)
{
    char        text[64] = "";
    FILE *const to       = fmemopen(text, sizeof text, "w");
    (void)state;
    assert_non_null(to);
    pe_text_write_csv(to, "t5[buckets=8], \"large\"");
    pe_text_write_csv(to, "");
    fclose(to);
    assert_string_equal(text, "\"t5[buckets=8], \"\"large\"\"\"\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_is_among_words_only_as_a_whole),
        cmocka_unit_test(a_text_is_and_ends_as_it_says),
        cmocka_unit_test(a_real_is_as_short_as_reads_back),
        cmocka_unit_test(only_what_shows_itself_is_shown),
        cmocka_unit_test(a_formula_in_csv_is_a_text),
        cmocka_unit_test(a_csv_field_keeps_commas_and_doubles_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
