/* SPDX-License-Identifier: MIT */
/* Formulas in a line become MathML, and every encoding has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/formula.h"

#include "page.h"

#include <posenc/registry.h>

/* malloc'd; *is_good as pe_mathml_write says. */
static char *written(const char *formula, int *is_good)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    *is_good  = pe_mathml_write(to, formula);
    fclose(to);
    return text;
}

static void assert_written(const char *formula, const char *expected)
{
    int   is_good;
    char *text = written(formula, &is_good);
    assert_int_equal(is_good, 1);
    assert_string_equal(text, expected);
    free(text);
}

static void indices_fractions_and_roots_become_elements(void **state)
{
    (void)state;
    assert_written("x_{h,i}^2", "<math display=\"block\"><msubsup><mi>x</mi>\n<mrow><mi>h</mi>\n<mo>,</mo>\n"
                                "<mi>i</mi>\n</mrow><mn>2</mn>\n</msubsup></math>\n");
    assert_written("frac{1}{sqrt{D}}", "<math display=\"block\"><mfrac><mrow><mn>1</mn>\n</mrow><mrow><msqrt>"
                                       "<mi>D</mi>\n</msqrt></mrow></mfrac></math>\n");
    assert_written("a < ω\n\"if\" b",
                   "<math display=\"block\"><mi>a</mi>\n<mo>&lt;</mo>\n<mi>ω</mi>\n</math>\n"
                   "<math display=\"block\"><mtext>if</mtext>\n<mi>b</mi>\n</math>\n");
    assert_written("∑_j x",
                   "<math display=\"block\"><munder><mo>∑</mo>\n<mi>j</mi>\n</munder><mi>x</mi>\n</math>\n");
}

static void a_matrix_becomes_a_table_of_its_rows(void **state)
{
    (void)state;
    assert_written(
        "matrix{a, f(b, c); d_1, }",
        "<math display=\"block\"><mrow><mo>[</mo><mtable><mtr><mtd><mi>a</mi>\n</mtd><mtd><mi>f</mi>\n"
        "<mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">(</mo>\n<mi>b</mi>\n<mo>,</mo>\n<mi>c</mi>\n"
        "<mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">)</mo>\n</mtd></mtr>\n<mtr><mtd><msub>"
        "<mi>d</mi>\n<mn>1</mn>\n</msub></mtd><mtd></mtd></mtr>\n</mtable><mo>]</mo></mrow></math>\n");
}

static void what_is_not_closed_is_refused(void **state)
{
    static const char *const broken[] = {"x_",         "x_{a", "frac{a}", "sqrt{",           "x}",
                                         "\"if",       "^2",   "{a\nb}",  "matrix{a, b; c}", "matrix{a, b",
                                         "matrix{a\n}"};
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        int   is_good;
        char *text = written(broken[i], &is_good);
        if (is_good)
            fail_msg("%s was taken: %s", broken[i], text);
        free(text);
    }
}

static void every_encoding_has_a_formula_that_is_well_formed(void **state)
{
    (void)state;
    for (int i = 0; posenc_encoding_info_at(i); i++) {
        const char *name = posenc_encoding_info_at(i)->name, *formula = posenc_encoding_info_at(i)->formula;
        int         is_good;
        char        fault[PAGE_FAULT];
        if (!formula)
            fail_msg("%s has no formula", name);
        char *text = written(formula, &is_good);
        if (!is_good || !page_is_well_formed(text, fault))
            fail_msg("the formula of %s is not well formed: %s", name, text);
        assert_non_null(strstr(text, "<mo>=</mo>"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_fractions_and_roots_become_elements),
        cmocka_unit_test(a_matrix_becomes_a_table_of_its_rows),
        cmocka_unit_test(what_is_not_closed_is_refused),
        cmocka_unit_test(every_encoding_has_a_formula_that_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
