/* SPDX-License-Identifier: MIT */
/*
 * test_rows.c: the tables have every row of rows.txt, in its order, and no other; each row is complete
 *
 * rows.txt is the inventory of the five texts: the id of every figure, formula, number, listing and claim.
 */
#include "cli/tutorial/lesson.h"

#include "show/formula.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { ID = 16 };

/* Calls each for every row of the five tables, in order. */
static void for_rows(void (*each)(const cli_row *row, void *to), void *to)
{
    for (int n = 0; n < CLI_LESSONS; n++) {
        cli_lesson l;
        size_t     s, i;
        json_t    *part, *from;
        assert_int_equal(cli_lesson_open(&l, n), 0);
        json_array_foreach(l.sections, s, part)
        {
            json_array_foreach(cli_lesson_rows(part), i, from)
            {
                char        fault[160];
                cli_row     row;
                const char *wrong = cli_lesson_row(&row, from, fault);
                if (wrong)
                    fail_msg("%s: %s", l.number, wrong);
                if (strncmp(row.id, l.number, strlen(l.number)) != 0)
                    fail_msg("%s is in the table of %s", row.id, l.number);
                each(&row, to);
            }
        }
        cli_lesson_free(&l);
    }
}

static void expect_next(const cli_row *row, void *list)
{
    char id[ID] = "";
    if (fscanf(list, "%15s", id) != 1 || strcmp(id, row->id) != 0)
        fail_msg("the table has %s where the inventory has %s", row->id, *id ? id : "no more");
}

static void every_row_of_the_inventory_stands_in_its_order(void **state)
{
    char  rest[ID];
    FILE *list = fopen(POSENC_SOURCE_DIR "/tests/tutorial/rows.txt", "r");
    (void)state;
    assert_non_null(list);
    for_rows(expect_next, list);
    if (fscanf(list, "%15s", rest) == 1)
        fail_msg("no table has %s", rest);
    fclose(list);
}

static void expect_complete(const cli_row *row, void *to)
{
    if (!*row->says[CLI_ENGLISH] || !*row->says[CLI_CHINESE])
        fail_msg("%s says nothing", row->id);
    if (!json_array_size(row->runs) && !row->note[CLI_ENGLISH] && !row->erratum)
        fail_msg("%s has neither a command nor a note nor an erratum", row->id);
    if (!*cli_lesson_kind(row->id, CLI_ENGLISH) || !*cli_lesson_kind(row->id, CLI_CHINESE))
        fail_msg("%s is of no kind", row->id);
}

static void a_row_has_its_text_in_both_languages_and_something_to_show(void **state)
{
    (void)state;
    for_rows(expect_complete, NULL);
}

static void expect_formula(const cli_row *row, void *to)
{
    if (row->formula && (!pe_mathml_write(to, row->formula) || !pe_plain_write(to, row->formula, 4, 80)))
        fail_msg("the formula of %s is not well formed: %s", row->id, row->formula);
    if (row->id[4] == 'E' && !row->formula && !row->note[CLI_ENGLISH])
        fail_msg("%s has neither a formula nor a note why not", row->id);
}

static void every_formula_is_well_formed(void **state)
{
    FILE *nowhere = fopen("/dev/null", "w");
    (void)state;
    assert_non_null(nowhere);
    for_rows(expect_formula, nowhere);
    fclose(nowhere);
}

/* An erratum is an entry of docs/errata.md. */
static void expect_entry(const cli_row *row, void *page)
{
    char head[24];
    snprintf(head, sizeof head, "\n**%d. ", row->erratum);
    if (row->erratum && !strstr(page, head))
        fail_msg("%s names erratum %d, which docs/errata.md does not have", row->id, row->erratum);
}

static void every_erratum_is_an_entry_of_the_errata(void **state)
{
    static char page[1 << 18];
    FILE       *from = fopen(POSENC_SOURCE_DIR "/docs/errata.md", "r");
    (void)state;
    assert_non_null(from);
    const size_t n = fread(page, 1, sizeof page - 1, from);
    assert_true(n > 0 && n < sizeof page - 1);
    fclose(from);
    for_rows(expect_entry, page);
}

/* Does a number of the output round to this one, which has so many decimals? */
static int has_number(const char *output, const char *number, size_t decimals)
{
    const double half = 0.5 * pow(10, -(double)decimals) * (1 + 1e-9), x = atof(number);
    for (const char *at = output; *(at += strcspn(at, "0123456789"));) {
        char *end;
        if (fabs(strtod(at, &end) - x) <= half)
            return 1;
        at = end;
    }
    return 0;
}

static void expect_numbers(const char *id, const char *text, const char *output)
{
    while (*(text += strcspn(text, "0123456789"))) {
        const size_t whole    = strspn(text, "0123456789");
        const size_t decimals = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
        if (decimals && !has_number(output, text, decimals))
            fail_msg("the erratum of %s says %.*s, which the stored result does not have", id,
                     (int)(whole + 1 + decimals), text);
        text += whole + (decimals ? 1 + decimals : 0);
    }
}

/* Numbers with decimals, which are those of a loss; "eight times" is none. */
static void expect_stored(const cli_row *row, void *to)
{
    (void)to;
    for (size_t i = 0; i < json_array_size(row->runs); i++)
        for (int tongue = 0; tongue < CLI_TONGUES; tongue++) {
            const char *on,
                *command       = json_string_value(json_object_get(json_array_get(row->runs, i), "command"));
            const char *output = cli_lesson_stored(command, (cli_tongue)tongue, &on);
            if (output && row->erratum)
                expect_numbers(row->id, row->right[tongue], output);
        }
}

static void an_erratum_has_the_numbers_of_the_stored_result_beside_it(void **state)
{
    (void)state;
    for_rows(expect_stored, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_inventory_stands_in_its_order),
        cmocka_unit_test(a_row_has_its_text_in_both_languages_and_something_to_show),
        cmocka_unit_test(every_formula_is_well_formed),
        cmocka_unit_test(every_erratum_is_an_entry_of_the_errata),
        cmocka_unit_test(an_erratum_has_the_numbers_of_the_stored_result_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
