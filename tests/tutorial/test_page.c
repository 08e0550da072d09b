/* SPDX-License-Identifier: MIT */
/* A tutorial as a page: well formed in both languages, with a formula, a picture, a refusal, an erratum. */
#include "cli/tutorial/tour.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "page.h"

/* The page of one row; malloc'd. */
static char *page_of(const char *id, cli_tongue tongue)
{
    char      *text;
    size_t     n;
    cli_lesson l;
    cli_tour   t = {.view = {.to = open_memstream(&text, &n), .tongue = tongue, .width = 80}, .only = id};
    assert_int_equal(cli_lesson_open(&l, id[2] - '0'), 0);
    t.section = cli_tour_find(&l, id);
    assert_true(t.section > 0);
    cli_page_view(&t.view);
    assert_int_equal(cli_tour_show(&t, &l), 0);
    assert_int_equal(t.rows, 1);
    fclose(t.view.to);
    cli_tour_free(&t);
    cli_lesson_free(&l);
    return text;
}

static void assert_page(const char *id, cli_tongue tongue, const char *part)
{
    char  fault[PAGE_FAULT];
    char *page = page_of(id, tongue);
    if (!page_is_well_formed(page, fault))
        fail_msg("the page of %s is not well formed: %s", id, fault);
    if (!strstr(page, part))
        fail_msg("the page of %s lacks %s", id, part);
    free(page);
}

static void a_row_is_a_well_formed_page_in_either_language(void **state)
{
    (void)state;
    assert_page("000-E8", CLI_ENGLISH, "<mtable>");
    assert_page("000-F2", CLI_CHINESE, "<svg");
    assert_page("000-C7", CLI_CHINESE, "outside the table of rows=512");
    assert_page("000-N2", CLI_ENGLISH, "<p class=differs>differs: the tutorial says 62832, right is 54410");
}

/* Rows of a table stay lines, and are scrolled. */
static void sentences_of_an_output_are_marked_to_be_wrapped(void **state)
{
    (void)state;
    assert_page("004-E3", CLI_ENGLISH, "<span>  Two channels are the sine");
    assert_page("004-E3", CLI_ENGLISH, "</span>  k  SINE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_row_is_a_well_formed_page_in_either_language),
                                       cmocka_unit_test(sentences_of_an_output_are_marked_to_be_wrapped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
