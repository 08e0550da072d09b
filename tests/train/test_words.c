/* SPDX-License-Identifier: MIT */
/* Texts in Chinese: numbers, names and texts stand where the catalogue has them, and what it lacks stays in
   English. That its rows agree with themselves `make check` sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/report/report.h"

static void assert_about(const char *english, const char *expected, pe_language language, int tokens)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    pe_words_speak(language, tokens);
    pe_words_write(to, english, strlen(english));
    pe_words_speak(PE_ENGLISH, 0);
    fclose(to);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_written(const char *english, const char *expected, pe_language language)
{
    assert_about(english, expected, language, 0);
}

static void assert_chinese(const char *english, const char *expected)
{
    assert_written(english, expected, PE_CHINESE);
    assert_written(english, english, PE_ENGLISH);
}

static void numbers_names_and_texts_stand_where_the_chinese_has_them(void **state)
{
    (void)state;
    assert_chinese("loss of rope below that of sinusoidal at L/2..L",
                   "rope 的损失在 L/2..L 处低于 sinusoidal");
    assert_chinese("E_8 of alibi at most 1.10", "alibi 的 E_8 不超过 1.10");
    /* a text within a text, and the row with more letters before one that takes everything */
    assert_chinese("loss at x2: rope by ntk 2, untuned below rope by none, untuned",
                   "x2 处的损失：rope（NTK 2，未调优） 低于 rope（不改，未调优）");
    assert_chinese("yarn tuned", "调优后的 YaRN");
    assert_chinese("Warning: no model was extended.", "警告：没有模型被延长。");
}

static void what_has_no_row_stays_in_english(void **state)
{
    (void)state;
    assert_chinese("sinusoidal", "sinusoidal");
    assert_chinese("", "");
    assert_chinese("an encoding that nobody has translated", "an encoding that nobody has translated");
}

static void a_page_about_tokens_says_so_in_both_languages(void **state)
{
    static const char english[] = "nats per byte at positions from 4 L to 8 L";
    (void)state;
    assert_about(english, "nats per token at positions from 4 L to 8 L", PE_ENGLISH, 1);
    assert_about(english, "位置 4 L 至 8 L，每词元的 nat 数", PE_CHINESE, 1);
    assert_about(english, "位置 4 L 至 8 L，每字节的 nat 数", PE_CHINESE, 0);
    assert_about("distance + 1 (tokens, log scale)", "距离 + 1（词元，对数坐标）", PE_CHINESE, 1);
    assert_about("a name: bytes.npy", "a name: bytes.npy", PE_ENGLISH, 1);
}

static void names_stay_escaped(void **state)
{
    static const char title[] = "Which positional encoding for <b> & \"?";
    (void)state;
    assert_written(title, "&lt;b&gt; &amp; &quot; 该用哪种位置编码？", PE_CHINESE);
    assert_written(title, "Which positional encoding for &lt;b&gt; &amp; &quot;?", PE_ENGLISH);
}

/* Of the template: values, what stands or not, texts that are translated, and those that are not. */
static void a_part_of_the_page_has_its_values_and_is_translated(void **state)
{
    char  *text;
    size_t n;
    (void)state;
    for (int language = PE_ENGLISH; language <= PE_CHINESE; language++) {
        pe_page page = {.to = open_memstream(&text, &n)};
        pe_words_speak((pe_language)language, 0);
        pe_html_set(&page, "family", "%s", "rope");
        pe_html_set(&page, "factor", "%d", 2);
        pe_html_set(&page, "open", "%s", " open");
        pe_html_part(&page, "factor");
        pe_html_set(&page, "first", "%s", "");
        pe_html_set(&page, "first", "%s", "<rope>");
        pe_html_set(&page, "two_seeds", "%s", "");
        pe_html_part(&page, "ranks");
        pe_html_element(page.to, "b translate=\"no\"", "%s", "Results");
        pe_words_speak(PE_ENGLISH, 0);
        fclose(page.to);
        assert_non_null(strstr(text, language == PE_CHINESE
                                         ? "<details open><summary>rope，因子 2</summary>"
                                         : "<details open><summary>rope, factor 2</summary>"));
        assert_non_null(strstr(text, language == PE_CHINESE ? "：&lt;rope&gt;。</p>\n"
                                                            : "sharing the place: &lt;rope&gt;.</p>\n"));
        assert_null(strstr(text, language == PE_CHINESE ? "并列也没有" : "No encoding is first"));
        assert_null(strstr(text, language == PE_CHINESE ? "标准误" : "Two seeds"));
        assert_null(strstr(text, "{{"));
        assert_non_null(strstr(text, "<b translate=\"no\">Results</b>"));
        free(text);
    }
}

static void languages_are_read_and_others_refused(void **state)
{
    pe_language  language;
    posenc_error err;
    (void)state;
    assert_int_equal(pe_preset_read_language(&language, "zh", &err), POSENC_OK);
    assert_int_equal(language, PE_CHINESE);
    assert_int_equal(pe_preset_read_language(&language, "en", &err), POSENC_OK);
    assert_int_equal(language, PE_ENGLISH);
    assert_int_equal(pe_preset_read_language(&language, "fr", &err), POSENC_ERROR_ARGUMENT);
    assert_string_equal(err.message, "lang: \"fr\" is not known; it must be en or zh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_names_and_texts_stand_where_the_chinese_has_them),
        cmocka_unit_test(what_has_no_row_stays_in_english),
        cmocka_unit_test(a_page_about_tokens_says_so_in_both_languages),
        cmocka_unit_test(names_stay_escaped),
        cmocka_unit_test(a_part_of_the_page_has_its_values_and_is_translated),
        cmocka_unit_test(languages_are_read_and_others_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
