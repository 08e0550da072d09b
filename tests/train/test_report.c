/* SPDX-License-Identifier: MIT */
/*
 * The report as a page: its elements are closed, in English it has no Chinese, and in Chinese its own
 * sentences are. Of a causal and a bidirectional comparison, with one seed and two, with tasks, claims and
 * models that are extended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page.h"
#include "tiny_compare.h"
#include "train/report/report.h"

static char *page_of(pe_compare *c, pe_language language)
{
    char        *page;
    size_t       n;
    pe_gallery   g;
    posenc_error err;
    c->config.language = language;
    if (pe_gallery_create(&g, c, &err))
        fail_msg("%s", err.message);
    FILE *to = open_memstream(&page, &n);
    pe_report_write(to, c, &g);
    fclose(to);
    pe_gallery_free(&g);
    return page;
}

/* Bytes of UTF-8 that only characters from U+2E80 on begin with: ideographs and their punctuation. */
static int has_chinese(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)s[0] == 0xE2 && (unsigned char)s[1] >= 0xBA) ||
            ((unsigned char)s[0] >= 0xE3 && (unsigned char)s[0] <= 0xE9))
            return 1;
    return 0;
}

static void judge_texts(const char *page, pe_language language)
{
    page_reader r = {.at = page};
    char        text[PAGE_TEXT], fault[PAGE_FAULT] = "";
    int         is_kept, more                      = 1;
    while (more > 0) {
        more = page_next(&r, text, &is_kept, fault);
        if (!is_kept && language == PE_ENGLISH && has_chinese(text))
            fail_msg("in the other language: \"%s\"", text);
    }
    if (more < 0)
        fail_msg("not well formed: %s", fault);
}

static void judge_pages(const pe_compare_config *config)
{
    static const char *const loads[] = {" src=", "<link", "@import", "url(http", "xlink:href=\"http"};
    /* of the template, of an attribute, of the longest text about a column, of a note, of a table, of a
       check, of the registry, of a drawing */
    static const char *const sentences[][2] = {{"Repeat it", "如何重复"},
                                               {"rank at x8\"", "x8 处的名次\""},
                                               {"how frequent each byte is<", "按各字节的频率来猜<"},
                                               {"Nats per byte of held-out text",
                                                "留出文本上每字节的 nat 数"},
                                               {">Which to choose<", ">该选哪一种<"},
                                               {">already on RoPE", ">已使用 RoPE"},
                                               {"Nothing was tuned for any", "没有为任何编码调参"},
                                               {"permuted tokens, no mask", "打乱词元，无掩码"},
                                               {"no positional encoding", "无位置编码"},
                                               {">loss (nats per byte)<", ">损失（每字节 nat 数）<"}};
    tiny_write_words();
    pe_compare *c = tiny_trained(config, NULL);
    for (int language = PE_ENGLISH; language <= PE_CHINESE; language++) {
        char *page = page_of(c, (pe_language)language);
        judge_texts(page, (pe_language)language);
        assert_non_null(strstr(page, language == PE_CHINESE ? "<html lang=zh>" : "<html lang=en>"));
        for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
            assert_non_null(strstr(page, sentences[i][language]));
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
            assert_null(strstr(page, loads[i]));
        free(page);
    }
    pe_compare_free(c);
}

static void a_causal_comparison_is_a_page_in_two_languages(void **state)
{
    pe_compare_config config  = tiny_compare("nope,sinusoidal,rope+alibi,learned,xpos,t5");
    config.tasks              = "posid,shift,grid";
    config.task_steps         = 3;
    config.preset.claims      = 1;
    config.preset.task_layers = 1;
    config.preset.task_batch  = 4;
    config.preset.sequences   = 10;
    config.preset.longest     = PE_TASK_2;
    (void)state;
    judge_pages(&config);
}

static void a_page_says_which_learning_rates_were_tried(void **state)
{
    static const char *const sentences[] = {"the best of the learning rates 0.001, 0.004,",
                                            "每种编码都用学习率 0.001, 0.004 中"};
    pe_compare_config        config      = tiny_compare("nope,rope");
    (void)state;
    config.preset.rates = "1e-3,4e-3";
    pe_compare *c       = tiny_trained(&config, NULL);
    for (int language = PE_ENGLISH; language <= PE_CHINESE; language++) {
        char *page = page_of(c, (pe_language)language);
        judge_texts(page, (pe_language)language);
        assert_non_null(strstr(page, sentences[language]));
        assert_null(strstr(page, "Nothing was tuned"));
        free(page);
    }
    pe_compare_free(c);
}

static void two_seeds_and_extended_models_are_too(void **state)
{
    pe_compare_config config = tiny_compare("nope,rope,learned[combine=concat]");
    config.preset.seeds      = 2;
    config.extension         = "brief";
    config.tune_steps        = 2;
    (void)state;
    judge_pages(&config);
}

static void ways_of_reading_further_are_named_in_the_language_of_the_page(void **state)
{
    static const char *const cells[] = {" class=t>linear<", " class=t>线性内插<"};
    pe_compare_config        config  = tiny_compare("nope");
    config.extension                 = "brief";
    config.tune_steps                = 2;
    (void)state;
    tiny_write_words();
    pe_compare *c = tiny_trained(&config, NULL);
    for (int language = PE_ENGLISH; language <= PE_CHINESE; language++) {
        char *page = page_of(c, (pe_language)language);
        assert_non_null(strstr(page, cells[language]));
        free(page);
    }
    pe_compare_free(c);
}

static void each_item_of_a_list_is_translated_by_itself(void **state)
{
    static const pe_column head = {"choose", NULL, PE_WIDE | PE_ITEMS, 0};
    pe_table               t;
    char                  *text;
    size_t                 n;
    (void)state;
    assert_int_equal(pe_table_open(&t, &head, 1, 1, NULL), POSENC_OK);
    pe_table_text(&t, 0, 0, "yarn tuned, rope, as it is");
    FILE *to = open_memstream(&text, &n);
    pe_words_speak(PE_CHINESE, 0);
    pe_html_table(to, &t, "", 1);
    pe_words_speak(PE_ENGLISH, 0);
    fclose(to);
    assert_non_null(strstr(text, ">调优后的 YaRN, rope, 原样<"));
    free(text);
    pe_table_free(&t);
}

static void a_bidirectional_comparison_with_few_windows_is_too(void **state)
{
    pe_compare_config config = tiny_compare("nope,learned,xpos,alibi");
    config.bidirectional     = 1;
    config.text_size         = 20000;
    (void)state;
    judge_pages(&config);
}

/* A band as wide as few runs may leave it, about losses that lie together. */
static void wide_bands_do_not_press_losses_together(void **state)
{
    static const double below[] = {0.01, 1.5, 30, 1.2}, above[] = {0.01, 1.5, 30, 0.3};
    pe_compare_config   config = tiny_compare("nope,alibi");
    config.preset.seeds        = 2;
    (void)state;
    tiny_write_words();
    pe_compare *c = tiny_trained(&config, NULL);
    for (int w = 0; w < 4; w++) {
        pe_gallery   g;
        posenc_error err;
        for (int b = 0; b < PE_BUCKETS; b++) {
            for (int i = 0; i < c->count; i++)
                c->outcomes[i].loss[b] = 0.1 + i;
            c->outcomes[1].difference[b] =
                (pe_interval){.value = 1, .low = 1 - below[w], .high = 1 + above[w]};
        }
        if (pe_gallery_create(&g, c, &err))
            fail_msg("%s", err.message);
        int seen = 0;
        for (int i = 0; i < g.count; i++) {
            const pe_figure *f = g.items[i].figure;
            if (strcmp(g.items[i].name, "length") != 0)
                continue;
            seen++;
            if (w == 0) /* nothing to cut: from the data */
                assert_true(f->low >= f->high);
            else
                assert_true(f->low >= 0 && f->low <= 0.1 && f->high >= 1.1 && f->high <= 1.6 + 1e-9);
        }
        assert_int_equal(seen, 1);
        pe_gallery_free(&g);
    }
    pe_compare_free(c);
}

/* Where no run has a number there is still a page, which says so. */
static void a_comparison_that_diverged_is_a_page(void **state)
{
    pe_compare_config config    = tiny_compare("nope,alibi");
    config.preset.learning_rate = 1000;
    config.preset.weight_decay  = 1000;
    (void)state;
    tiny_write_words();
    pe_compare *c = tiny_trained(&config, NULL);
    for (int i = 0; i < c->count; i++)
        assert_true(c->outcomes[i].diverged);
    for (int language = PE_ENGLISH; language <= PE_CHINESE; language++) {
        char *page = page_of(c, (pe_language)language);
        judge_texts(page, (pe_language)language);
        assert_non_null(strstr(page, language == PE_ENGLISH ? ">no finite numbers<" : ">没有有限的数值<"));
        free(page);
    }
    pe_compare_free(c);
}

/* No digit that gnuplot is told is between these losses: its range must not be empty. */
static void losses_that_are_almost_equal_are_drawn(void **state)
{
    pe_compare_config config = tiny_compare("nope,alibi");
    pe_gallery        g;
    posenc_error      err;
    (void)state;
    tiny_write_words();
    pe_compare *c = tiny_trained(&config, NULL);
    for (int b = 0; b < PE_BUCKETS; b++) {
        for (int i = 0; i < c->count; i++)
            c->outcomes[i].loss[b] = 0.1 + 1e-13 * i;
        c->outcomes[1].difference[b] = (pe_interval){.value = 1e-13, .low = -1, .high = 1};
    }
    if (pe_gallery_create(&g, c, &err))
        fail_msg("%s", err.message);
    const pe_figure *f = pe_gallery_find(&g, "length")->figure;
    assert_true(f->low < f->high && f->high - f->low < 1e-12);
    pe_gallery_free(&g);
    pe_compare_free(c);
}

/* A reader has titles, not the numbers of docs/errata.md. */
static void introductions_are_named_by_title(void **state)
{
    char text[512];
    (void)state;
    pe_report_sources(text, sizeof text, "001, 004, table");
    assert_string_equal(text, "Embedding (lecture slides); Position Embedding (notes)");
}

static void the_page_has_formulas_curves_and_what_papers_found(void **state)
{
    pe_compare_config config = tiny_compare("sinusoidal,alibi");
    (void)state;
    tiny_write_words();
    pe_compare *c    = tiny_trained(&config, NULL);
    char       *page = page_of(c, PE_ENGLISH);
    assert_non_null(strstr(page, "<math display=\"block\">"));
    assert_non_null(strstr(page, "id=\"length\""));
    assert_non_null(strstr(page, "id=\"loss\""));
    assert_non_null(strstr(page, "247 M parameters, WikiText-103, trained at 512 tokens"));
    assert_non_null(strstr(page, "<td>271.40</td>"));
    assert_null(strstr(page, "<td>47.81</td>")); /* rope was not compared */
    assert_non_null(strstr(page, "@media print"));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_non_null(strstr(page, "<svg class=chart"));
    assert_non_null(strstr(page, "viewBox=\"0 0 640 ")); /* a phone's width, enlarged little */
    assert_non_null(strstr(page, "class=name x=256"));
    assert_non_null(strstr(page, "What each costs"));
    assert_non_null(strstr(page, "id=carries"));
    free(page);
    pe_compare_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_comparison_is_a_page_in_two_languages),
        cmocka_unit_test(a_page_says_which_learning_rates_were_tried),
        cmocka_unit_test(two_seeds_and_extended_models_are_too),
        cmocka_unit_test(ways_of_reading_further_are_named_in_the_language_of_the_page),
        cmocka_unit_test(each_item_of_a_list_is_translated_by_itself),
        cmocka_unit_test(a_bidirectional_comparison_with_few_windows_is_too),
        cmocka_unit_test(wide_bands_do_not_press_losses_together),
        cmocka_unit_test(a_comparison_that_diverged_is_a_page),
        cmocka_unit_test(losses_that_are_almost_equal_are_drawn),
        cmocka_unit_test(introductions_are_named_by_title),
        cmocka_unit_test(the_page_has_formulas_curves_and_what_papers_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
