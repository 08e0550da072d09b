/* SPDX-License-Identifier: MIT */
/* Texts in Chinese: the table agrees with itself, has all that the tool's tables say, and pages are
   translated by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/claims.h"
#include "train/extension.h"
#include "train/task.h"
#include "train/words.h"

static int is_place(const char *s)
{
    return s[0] == '%' && s[1] && strchr("sdwt", s[1]);
}

static int places_of(const char *english)
{
    int count = 0;
    for (; *english; english++)
        count += is_place(english);
    return count;
}

static void every_chinese_text_names_each_place_of_the_english_and_no_other(void **state)
{
    static const char names[] = "123456789abcdef";
    (void)state;
    for (int i = 0; i < pe_words_count(); i++) {
        const char *english, *chinese;
        unsigned    named = 0;
        pe_words_at(i, &english, &chinese);
        for (const char *s = chinese; *s; s++) {
            const char *at = s[0] == '%' && s[1] ? strchr(names, s[1]) : NULL;
            named |= at ? 1u << (at - names) : 0;
        }
        if (!*english || !*chinese || named != (1u << places_of(english)) - 1)
            fail_msg("places of \"%s\" and \"%s\" do not agree", english, chinese);
    }
}

/* Where one begins, the other must not end: nobody could say what belongs to which. */
static void no_english_text_has_two_rows_or_two_places_side_by_side(void **state)
{
    const char *one, *other, *chinese;
    (void)state;
    for (int i = 0; i < pe_words_count(); i++) {
        pe_words_at(i, &one, &chinese);
        for (const char *s = one; *s; s++)
            if (is_place(s) && is_place(s + 2))
                fail_msg("%s", one);
        for (int k = 0; k < i; k++) {
            pe_words_at(k, &other, &chinese);
            if (!strcmp(one, other))
                fail_msg("\"%s\" has two rows", one);
        }
    }
}

static void assert_chinese(const char *english, const char *expected)
{
    char chinese[1024];
    if (!pe_words_translate(chinese, sizeof chinese, english))
        fail_msg("\"%s\" has no translation", english);
    assert_string_equal(chinese, expected);
}

static void numbers_names_and_texts_stand_where_the_chinese_has_them(void **state)
{
    char none[64];
    (void)state;
    assert_chinese("loss of rope below that of sinusoidal at L/2..L",
                   "rope 的损失在 L/2..L 处低于 sinusoidal");
    assert_chinese("E_8 of alibi at most 1.10", "alibi 的 E_8 不超过 1.10");
    /* a text within a text, and the row with more letters before one that takes everything */
    assert_chinese("loss at x2: rope by ntk 2, untuned below rope by none, untuned",
                   "x2 处的损失：rope（ntk 2，未调优） 低于 rope（none，未调优）");
    assert_chinese("Warning: no model was extended.", "警告：没有模型被延长。");
    assert_int_equal(pe_words_translate(none, sizeof none, "sinusoidal"), 0);
    assert_int_equal(pe_words_translate(none, sizeof none, ""), 0);
}

static void a_translation_that_is_too_long_is_cut_and_ends(void **state)
{
    char five[5] = "????";
    (void)state;
    assert_int_equal(pe_words_translate(five, sizeof five, "passed"), 1);
    assert_int_equal(five[4], 0);
}

static void of_a_page_texts_and_pointers_are_translated_and_names_are_not(void **state)
{
    char  *page;
    size_t n;
    FILE  *to = open_memstream(&page, &n);
    (void)state;
    pe_words_page(to,
                  "<!DOCTYPE html>\n<html lang=en><p title=\"rank at x8\"> Results\n</p><code>Results</code>"
                  "<b translate=\"no\">Results</b><script>if (a<b) Results</script><i>&lt;text&gt;</i><br>"
                  "<p>Its training diverged: a loss was no longer a finite number.</p></html>",
                  PE_CHINESE);
    fclose(to);
    assert_string_equal(page, "<!DOCTYPE html>\n<html lang=zh><p title=\"x8 处的名次\"> 结果\n</p>"
                              "<code>Results</code><b translate=\"no\">Results</b>"
                              "<script>if (a<b) Results</script><i>&lt;text&gt;</i><br>"
                              "<p>它的训练发散了：损失不再是有限的数。</p></html>");
    free(page);
}

static void names_stay_escaped(void **state)
{
    char  *page;
    size_t n;
    FILE  *to = open_memstream(&page, &n);
    (void)state;
    pe_words_page(to, "<h1>Which positional encoding for &lt;b&gt; &amp; &quot;?</h1>", PE_CHINESE);
    fclose(to);
    assert_string_equal(page, "<h1>&lt;b&gt; &amp; &quot; 该用哪种位置编码？</h1>");
    free(page);
}

static void languages_are_read_and_others_refused(void **state)
{
    pe_language  language;
    posenc_error err;
    (void)state;
    assert_int_equal(pe_language_read(&language, "zh", &err), POSENC_OK);
    assert_int_equal(language, PE_CHINESE);
    assert_int_equal(pe_language_read(&language, "en", &err), POSENC_OK);
    assert_int_equal(language, PE_ENGLISH);
    assert_int_equal(pe_language_read(&language, "fr", &err), POSENC_ARGUMENT);
    assert_string_equal(err.message, "lang: \"fr\" is not known; it must be en or zh");
}

/* ---------------------------------------------------------------- the tool's own tables ----- */

static void needs(const char *english)
{
    char chinese[2048];
    if (!pe_words_translate(chinese, sizeof chinese, english))
        fail_msg("\"%s\" has no row in words.def", english);
}

static void every_claim_and_its_evidence_has_a_translation(void **state)
{
    const pe_compare none = {.reference = -1, .config = {.preset = {.name = "tiny"}}};
    (void)state;
    for (int k = 0; k < pe_claim_count(); k++) {
        const char *tutorials;
        int         count;
        needs(pe_claim_said(k, &tutorials, &count));
        for (int i = 0; i < count; i++)
            needs(pe_claim_evidence(&none, k, i).words);
    }
    for (int holds = PE_HOLDS; holds <= PE_HOLDS_SO_FAR; holds++)
        needs(pe_holds_name((pe_holds)holds));
}

static void every_check_has_a_translation(void **state)
{
    const pe_compare none = {.reference = -1, .config = {.preset = {.name = "tiny"}}};
    pe_check_result  all[PE_MOST_CHECKS];
    const int        count = pe_checks_judge(all, &none);
    (void)state;
    for (const pe_check_result *r = all; r < all + count; r++) {
        needs(r->claim);
        needs(r->found);
        needs(pe_verdict_name(r->verdict));
    }
}

static void every_task_way_and_encoding_has_a_translation(void **state)
{
    (void)state;
    for (int i = 0; pe_task_at(i); i++) {
        needs(pe_task_at(i)->title);
        needs(pe_task_at(i)->asks);
    }
    for (int i = 0; i < pe_way_count(); i++)
        needs(pe_way_at(i)->what);
    for (int i = 0; posenc_encoding_info_at(i); i++) {
        needs(posenc_encoding_info_at(i)->title);
        needs(posenc_place_name(posenc_encoding_info_at(i)->place));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chinese_text_names_each_place_of_the_english_and_no_other),
        cmocka_unit_test(no_english_text_has_two_rows_or_two_places_side_by_side),
        cmocka_unit_test(numbers_names_and_texts_stand_where_the_chinese_has_them),
        cmocka_unit_test(a_translation_that_is_too_long_is_cut_and_ends),
        cmocka_unit_test(of_a_page_texts_and_pointers_are_translated_and_names_are_not),
        cmocka_unit_test(names_stay_escaped),
        cmocka_unit_test(languages_are_read_and_others_refused),
        cmocka_unit_test(every_claim_and_its_evidence_has_a_translation),
        cmocka_unit_test(every_check_has_a_translation),
        cmocka_unit_test(every_task_way_and_encoding_has_a_translation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
