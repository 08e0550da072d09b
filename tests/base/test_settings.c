/* SPDX-License-Identifier: MIT */
/*
 * test_settings: "name=value" text against a table
 *
 * The table here is the test's own, with one row of each type and range form; the rules are those of
 * settings.h: a standard of "" means absent, numbers may be expressions over sizes, words and flags come from
 * a list, and a refusal names the encoding, the setting, the text and what would be accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/settings.h"

enum { ROWS, BASE, RATE, FORM, CAUSAL, CLAMP };
static const posenc_setting_info table[] = {
    {"rows", "integer", "8*L", "1..4096", "a size"},
    {"base", "real", "10000", "1<..", "above 1, not 1"},
    {"rate", "real", "0.5", "0..1", "both ends belong to it"},
    {"form", "word", "distance", "distance|key|both", "one of three"},
    {"causal", "flag", "no", "yes|no", "a flag"},
    {"clamp", "integer", "", "0..", "absent: no limit"},
    {0},
};

static const posenc_dims sizes = {
    .B = 1, .H = 2, .G = 3, .Lq = 4, .Lk = 5, .D = 6, .Dv = 7, .d_model = 8, .L = 9};

static void a_setting_is_found_by_its_whole_name(void **state)
{
    (void)state;
    assert_int_equal(pe_settings_index(table, "base", 4), BASE);
    assert_int_equal(pe_settings_index(table, "base=5", 4), BASE);
    assert_int_equal(pe_settings_index(table, "bas", 3), -1);
    assert_int_equal(pe_settings_index(table, "bases", 5), -1);
    assert_int_equal(pe_settings_index(NULL, "base", 4), -1);
}

static void a_word_is_its_number_in_the_list(void **state)
{
    (void)state;
    assert_int_equal(pe_settings_word_index("a|bc|d", "a", 1), 0);
    assert_int_equal(pe_settings_word_index("a|bc|d", "bc", 2), 1);
    assert_int_equal(pe_settings_word_index("a|bc|d", "d", 1), 2);
    assert_int_equal(pe_settings_word_index("a|bc|d", "b", 1), -1);
    assert_int_equal(pe_settings_word_index("a|bc|d", "", 0), -1);
    assert_int_equal(pe_settings_word_index("a|bc|d", "a|bc", 4), -1);
}

static void text_that_fits_becomes_its_value(void **state)
{
    static const struct {
        int         row;
        const char *text;
        int         given;
        int64_t     integer;
        double      real;
    } all[] = {
        {ROWS, "", 1, 72, 72}, /* the standard: 8*L */
        {ROWS, "12", 1, 12, 12},    {ROWS, "1", 1, 1, 1},         {ROWS, "4096", 1, 4096, 4096},
        {ROWS, "Lq*Lk", 1, 20, 20}, {ROWS, "1e3", 1, 1000, 1000}, {ROWS, "(B+H+G+D+Dv+d_model)", 1, 27, 27},
        {BASE, "", 1, 0, 10000},    {BASE, "5e5", 1, 0, 500000},  {BASE, "1.0000001", 1, 0, 1.0000001},
        {RATE, "0", 1, 0, 0},       {RATE, "1", 1, 0, 1},         {FORM, "", 1, 0, 0},
        {FORM, "both", 1, 2, 0},    {CAUSAL, "", 1, 0, 0},        {CAUSAL, "yes", 1, 1, 0},
        {CAUSAL, "no", 1, 0, 0},    {CLAMP, "", 0, 0, 0},         {CLAMP, "0", 1, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pe_value     v;
        posenc_error err;
        if (pe_settings_resolve(&v, &table[all[i].row], all[i].text, &sizes, "test", &err))
            fail_msg("%s=%s: %s", table[all[i].row].name, all[i].text, err.message);
        assert_int_equal(v.given, all[i].given);
        assert_int_equal(v.integer, all[i].integer);
        assert_true(v.real == all[i].real);
    }
}

static void text_that_does_not_fit_is_refused_with_what_would(void **state)
{
    static const struct {
        int         row;
        const char *text, *words;
    } all[] = {
        {ROWS, "0", "t5: rows=0 is out of range; it must be an integer 1..4096"},
        {ROWS, "4097", "out of range"},
        {ROWS, "2.5", "out of range"},
        {ROWS, "1e30", "out of range"},
        {ROWS, "many", "t5: rows=many is not a number; rows must be an integer 1..4096"},
        {ROWS, "4 rows", "not a number"},
        {BASE, "1", "base=1 is out of range; it must be a real number 1<.."},
        {BASE, "-3", "out of range"},
        {BASE, "1/0", "out of range"},
        {BASE, "sqrt(-1)", "out of range"},
        {RATE, "1.0001", "out of range"},
        {RATE, "-0.0001", "out of range"},
        {FORM, "dist", "form=dist is unknown; it must be one of distance|key|both"},
        {CAUSAL, "1", "causal=1 is unknown; it must be one of no|yes"},
        {CLAMP, "-1", "out of range"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pe_value     v;
        posenc_error err = {0};
        if (pe_settings_resolve(&v, &table[all[i].row], all[i].text, &sizes, "t5", &err) !=
                POSENC_ERROR_SETTING ||
            !strstr(err.message, all[i].words))
            fail_msg("%s=%s: '%s' lacks '%s'", table[all[i].row].name, all[i].text, err.message,
                     all[i].words);
    }
}

static void expressions_over_sizes_wait_until_sizes_are_known(void **state)
{
    pe_value          v;
    posenc_error      err;
    const posenc_dims small = {.L = 0};
    (void)state;
    assert_int_equal(pe_settings_resolve(&v, &table[ROWS], "8*L", NULL, "x", &err), POSENC_OK);
    assert_int_equal(pe_settings_resolve(&v, &table[ROWS], "8*M", NULL, "x", &err),
                     POSENC_ERROR_SETTING); /* no size at all */
    assert_int_equal(pe_settings_resolve(&v, &table[ROWS], "0", NULL, "x", &err),
                     POSENC_ERROR_SETTING); /* wrong anyway */
    assert_int_equal(pe_settings_resolve(&v, &table[ROWS], "8*L", &small, "x", &err), POSENC_ERROR_SETTING);
}

static const posenc_setting_info list = {"grid", "list", "1", "1..99", "one number per axis"};

static void a_list_is_up_to_eight_integers_joined_by_colon_or_x(void **state)
{
    static const struct {
        const char *text;
        int         count;
        int64_t     items[PE_MAX_ITEMS];
    } all[] = {
        {"", 1, {1}},
        {"7", 1, {7}},
        {"24:20:20", 3, {24, 20, 20}},
        {"7x9", 2, {7, 9}},
        {"1:2:3:4:5:6:7:8", 8, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"L:2*D", 2, {9, 12}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pe_value     v;
        posenc_error err;
        if (pe_settings_resolve(&v, &list, all[i].text, &sizes, "test", &err))
            fail_msg("%s: %s", all[i].text, err.message);
        assert_int_equal(v.count, all[i].count);
        assert_memory_equal(v.items, all[i].items, (size_t)v.count * sizeof *v.items);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const all[] = {"1:",    "x7",  "7x",
                                      "1::2",  "a",   "0",
                                      "100:1", "1.5", "1:2:3:4:5:6:7:8:9"};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pe_value     v;
        posenc_error err = {0};
        if (pe_settings_resolve(&v, &list, all[i], &sizes, "test", &err) != POSENC_ERROR_SETTING ||
            !strstr(err.message, "test: grid="))
            fail_msg("grid=%s: '%s'", all[i], err.message);
    }
}

/* rows = 12 is known, clamp is absent, base is not yet resolved. */
static void a_standard_may_name_settings_before_it(void **state)
{
    const posenc_setting_info follows[]      = {{"half", "integer", "rows/2", "1..", ""},
                                                {"capped", "integer", "min(clamp,5)", "0..", ""},
                                                {"early", "real", "base", "0..", ""}};
    pe_value                  set[CLAMP + 1] = {{0}}, v;
    posenc_error              err;
    (void)state;
    set[ROWS]            = (pe_value){.given = 1, .integer = 12, .real = 12};
    const pe_scope whole = {&sizes, table, set, CLAMP + 1}, rows_alone = {&sizes, table, set, ROWS + 1};
    assert_int_equal(pe_settings_resolve_in(&v, &follows[0], "", &whole, "x", &err), POSENC_OK);
    assert_int_equal(v.integer, 6);
    assert_int_equal(pe_settings_resolve_in(&v, &follows[1], "", &whole, "x", &err), POSENC_OK);
    assert_int_equal(v.integer, 5); /* absent counts as infinity */
    assert_int_equal(pe_settings_resolve_in(&v, &follows[2], "", &rows_alone, "x", &err),
                     POSENC_ERROR_SETTING);
}

/* The recursive definition, without a table: all ways to end. */
static int slow_distance(const char *a, size_t na, const char *b, size_t nb)
{
    if (!na || !nb)
        return (int)(na + nb);
    int       best = slow_distance(a, na - 1, b, nb - 1) + (a[na - 1] != b[nb - 1]);
    const int del = slow_distance(a, na - 1, b, nb) + 1, ins = slow_distance(a, na, b, nb - 1) + 1;
    best = del < best ? del : best;
    best = ins < best ? ins : best;
    if (na > 1 && nb > 1 && a[na - 1] == b[nb - 2] && a[na - 2] == b[nb - 1]) {
        const int swap = slow_distance(a, na - 2, b, nb - 2) + 1;
        best           = swap < best ? swap : best;
    }
    return best;
}

static void edit_distance_counts_inserts_deletes_replacements_and_swaps(void **state)
{
    static const char *const words[] = {"",    "a",     "ab",   "ba",     "abc", "acb",
                                        "cab", "alibi", "alib", "alibbi", "t5",  "t6"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t j = 0; j < sizeof words / sizeof *words; j++)
            assert_int_equal(pe_settings_edit_distance(words[i], words[j]),
                             slow_distance(words[i], strlen(words[i]), words[j], strlen(words[j])));
    assert_int_equal(pe_settings_edit_distance("rope", "rpoe"), 1);
}

static void a_distance_has_no_regard_to_case(void **state)
{
    (void)state;
    assert_int_equal(pe_settings_edit_distance("RoPE", "rope"), 0);
    assert_int_equal(pe_settings_edit_distance("RPOE", "rope"), 1);
    assert_int_equal(pe_settings_distance("Num_Buckets", "num_buckets"), 0);
}

static void a_beginning_is_nearer_than_an_edit_and_a_word_than_two(void **state)
{
    (void)state;
    assert_int_equal(pe_settings_distance("SINUS", "sinusoidal"), 1);
    assert_int_equal(pe_settings_distance("buckets", "num_buckets"), 3);
    assert_int_equal(pe_settings_distance("seed", "seeds"), 1);
    assert_int_equal(pe_settings_distance("sede", "seeds"), 4);
    assert_int_equal(pe_settings_distance("ba", "base"), 4); /* two letters begin too much */
    assert_int_equal(pe_settings_distance("base", "base"), 0);
    assert_true(pe_settings_has_word("GPT-1, GPT-2, BERT", "bert"));
    assert_true(pe_settings_has_word("default|linear|yarn", "yarn"));
    assert_false(pe_settings_has_word("deberta", "bert"));
    assert_false(pe_settings_has_word("", "bert"));
    assert_false(pe_settings_has_word(NULL, "bert"));
}

static void a_word_of_any_length_has_a_distance(void **state)
{
    char text[5000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_true(pe_settings_edit_distance(text, "rope") > 4);
    assert_true(pe_settings_edit_distance("rope", text) > 4);
}

/* ---- lists, and standards that follow other settings ---- */

enum { REACH, BACK, LIMIT, NEAR, EITHER, GRID };
static const posenc_setting_info linked[] = {
    {"reach", "integer", "8", "0..", "a size"},
    {"back", "integer", "-reach", "..0", "follows the first"},
    {"limit", "integer", "", "1..", "absent: infinite"},
    {"near", "integer", "min(reach,limit)", "0..", "the smaller of two"},
    {"either", "integer", "first(limit,reach)", "0..", "the limit, where there is one"},
    {"grid", "list", "Lx1", "1..100", "rows and columns"},
    {0},
};

static posenc_status resolve_linked(pe_value set[], int row, const char *text, posenc_error *err)
{
    const pe_scope scope = {&sizes, linked, set, row};
    return pe_settings_resolve_in(&set[row], &linked[row], text, &scope, "linked", err);
}

static void a_standard_may_follow_settings_before_it(void **state)
{
    pe_value     set[GRID];
    posenc_error err;
    (void)state;
    assert_int_equal(resolve_linked(set, REACH, "", &err), POSENC_OK);
    assert_int_equal(resolve_linked(set, BACK, "", &err), POSENC_OK);
    assert_int_equal(set[BACK].integer, -8);
    assert_int_equal(resolve_linked(set, LIMIT, "", &err), POSENC_OK);
    assert_int_equal(resolve_linked(set, NEAR, "", &err), POSENC_OK);
    assert_int_equal(set[NEAR].integer, 8); /* an absent limit is infinite */
    assert_int_equal(resolve_linked(set, EITHER, "", &err), POSENC_OK);
    assert_int_equal(set[EITHER].integer, 8);
    assert_int_equal(resolve_linked(set, LIMIT, "11", &err), POSENC_OK);
    assert_int_equal(resolve_linked(set, NEAR, "", &err), POSENC_OK);
    assert_int_equal(set[NEAR].integer, 8);
    assert_int_equal(resolve_linked(set, EITHER, "", &err), POSENC_OK);
    assert_int_equal(set[EITHER].integer, 11); /* the first, not the smaller */
    assert_int_equal(resolve_linked(set, REACH, "limit", &err), POSENC_ERROR_SETTING); /* not one behind it */
}

static void a_list_holds_its_numbers_and_their_product(void **state)
{
    static const struct {
        const char *text;
        int         count;
        int64_t     first, last;
        double      product;
    } all[]                    = {{"", 2, 9, 1, 9},
                                  {"7x5", 2, 7, 5, 35},
                                  {"24:20:20", 3, 24, 20, 9600},
                                  {"3", 1, 3, 3, 3},
                                  {"2*L:1", 2, 18, 1, 18}};
    pe_value     set[GRID + 1] = {{0}};
    posenc_error err;
    double       number;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(resolve_linked(set, GRID, all[i].text, &err), POSENC_OK);
        assert_int_equal(set[GRID].count, all[i].count);
        assert_int_equal(set[GRID].items[0], all[i].first);
        assert_int_equal(set[GRID].items[set[GRID].count - 1], all[i].last);
        assert_true(set[GRID].real == all[i].product);
    }
    assert_int_equal(resolve_linked(set, GRID, "7x5", &err), POSENC_OK);
    assert_true(pe_settings_number(linked, set, "grid", 4, &number) && number == 35);
    assert_true(pe_settings_number(linked, set, "grid2", 5, &number) && number == 5);
    assert_false(pe_settings_number(linked, set, "grid3", 5, &number));
    assert_false(pe_settings_number(linked, set, "reach1", 6, &number));
}

static void a_list_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {"7x", "x7", "7xx7", "a", "0x3", "101", "1.5x2", "1:2:3:4:5:6:7:8:9"};
    pe_value                 set[GRID + 1] = {{0}};
    posenc_error             err;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(resolve_linked(set, GRID, wrong[i], &err), POSENC_ERROR_SETTING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standard_may_follow_settings_before_it),
        cmocka_unit_test(a_list_holds_its_numbers_and_their_product),
        cmocka_unit_test(a_list_that_is_none_is_refused),
        cmocka_unit_test(a_setting_is_found_by_its_whole_name),
        cmocka_unit_test(a_word_is_its_number_in_the_list),
        cmocka_unit_test(text_that_fits_becomes_its_value),
        cmocka_unit_test(text_that_does_not_fit_is_refused_with_what_would),
        cmocka_unit_test(expressions_over_sizes_wait_until_sizes_are_known),
        cmocka_unit_test(a_list_is_up_to_eight_integers_joined_by_colon_or_x),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(a_standard_may_name_settings_before_it),
        cmocka_unit_test(edit_distance_counts_inserts_deletes_replacements_and_swaps),
        cmocka_unit_test(a_distance_has_no_regard_to_case),
        cmocka_unit_test(a_beginning_is_nearer_than_an_edit_and_a_word_than_two),
        cmocka_unit_test(a_word_of_any_length_has_a_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
