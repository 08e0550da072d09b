/* SPDX-License-Identifier: MIT */
/*
 * test_expression: small arithmetic in text
 *
 * Values that rooms and users write, precedence where a wrong parser would still give a number, and what must
 * be refused: the text may come from a stranger, so neither depth nor garbage may do more than return 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/expression.h"
#include "base/random.h"

/* L = 64, D = 16, num_buckets = 32 */
static int lookup(void *context, const char *name, size_t length, double *value)
{
    static const struct {
        const char *name;
        double      value;
    } names[] = {{"L", 64}, {"D", 16}, {"num_buckets", 32}};
    (void)context;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == length && !strncmp(names[i].name, name, length)) {
            *value = names[i].value;
            return 1;
        }
    return 0;
}

static void text_has_the_value_of_its_arithmetic(void **state)
{
    static const struct {
        const char *text;
        double      value;
    } all[] = {
        {"42", 42},
        {"5e5", 500000},
        {".5", 0.5},
        {"-3", -3},
        {" 1 + 2 * 3 ", 7},
        {"(1+2)*3", 9},
        {"10-4-3", 3},
        {"64/4/2", 8},
        {"2*3-4/2", 4},
        {"2--3", 5},
        {"-2*3", -6},
        {"-(1+2)", -3},
        {"8*L", 512},
        {"1/sqrt(D)", 0.25},
        {"floor(7/2)", 3},
        {"floor(-1/2)", -1},
        {"min(num_buckets,floor(L/4))", 16},
        {"min(min(3,2),1+0)", 1},
        {"first(1/0,L)", 64},
        {"first(D,L)", 16},
        {"first(first(1/0,1/0),3)", 3},
        {"sqrt(sqrt(D))", 2},
        {"L-D*2", 32},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double value = NAN;
        if (!pe_expression_evaluate(all[i].text, lookup, NULL, &value) || value != all[i].value)
            fail_msg("'%s' gave %g, not %g", all[i].text, value, all[i].value);
    }
}

static void what_is_no_expression_is_refused_and_writes_nothing(void **state)
{
    static const char *const all[] = {
        "",       " ",        "+",          "1+",        "1 2",    "(1",         "1)",
        "()",     "2**3",     "L2",         "unknown",   "sqrt",   "sqrt 4",     "sqrt(",
        "min(1)", "min(1,2",  "min(1,2,3)", "sqrt(1,2)", "exp(1)", ".",          "1..2",
        "#",      "1,2",      "-",          "L(2)",      "1e5e5",  "num_bucket", "num_buckets_",
        "\xff",   "first(1)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double value = 1.25;
        if (pe_expression_evaluate(all[i], lookup, NULL, &value) || value != 1.25)
            fail_msg("'%s' was accepted as %g", all[i], value);
    }
}

static void names_need_somebody_who_knows_them(void **state)
{
    double value;
    (void)state;
    assert_int_equal(pe_expression_evaluate("L", NULL, NULL, &value), 0);
    assert_int_equal(pe_expression_evaluate("2+2", NULL, NULL, &value), 1);
    assert_true(value == 4);
}

/* "((( ... 1 ... )))" and "---- ... 1". */
static int accepts_depth(char open, const char *close, int depth)
{
    static char text[200000];
    int         n = 0;
    double      value;
    for (int i = 0; i < depth; i++)
        text[n++] = open;
    text[n++] = '1';
    for (int i = 0; i < depth && *close; i++)
        text[n++] = *close;
    text[n] = '\0';
    return pe_expression_evaluate(text, NULL, NULL, &value);
}

static void nesting_is_limited_so_that_no_text_can_exhaust_the_stack(void **state)
{
    (void)state;
    assert_int_equal(accepts_depth('(', ")", 20), 1);
    assert_int_equal(accepts_depth('-', "", 20), 1);
    assert_int_equal(accepts_depth('(', ")", 90000), 0);
    assert_int_equal(accepts_depth('-', "", 90000), 0);
}

static void a_long_flat_sum_is_no_nesting(void **state)
{
    char   text[4001];
    double value = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        text[2 * i]     = '1';
        text[2 * i + 1] = i < 1999 ? '+' : '\0';
    }
    assert_int_equal(pe_expression_evaluate(text, NULL, NULL, &value), 1);
    assert_true(value == 2000);
}

static void garbage_made_of_the_right_letters_never_hangs_or_crashes(void **state)
{
    static const char letters[] = "0123456789.eE+-*/(),LDminsqrtfloor _[]";
    uint64_t          at = 0, accepted = 0;
    const uint64_t    key = pe_random_key(1, "garbage");
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char      text[24];
        double    value;
        const int n = (int)(pe_random_uniform_at(key, at++) * 23);
        for (int i = 0; i < n; i++)
            text[i] = letters[(size_t)(pe_random_uniform_at(key, at++) * (double)(sizeof letters - 1))];
        text[n] = '\0';
        accepted += (uint64_t)pe_expression_evaluate(text, lookup, NULL, &value);
    }
    assert_in_range(accepted, 100, 10000); /* else the letters test nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_the_value_of_its_arithmetic),
        cmocka_unit_test(what_is_no_expression_is_refused_and_writes_nothing),
        cmocka_unit_test(names_need_somebody_who_knows_them),
        cmocka_unit_test(nesting_is_limited_so_that_no_text_can_exhaust_the_stack),
        cmocka_unit_test(a_long_flat_sum_is_no_nesting),
        cmocka_unit_test(garbage_made_of_the_right_letters_never_hangs_or_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
