/* SPDX-License-Identifier: MIT */
/* Formulas in a line become text: indices, fractions and matrices in lines of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/formula.h"

#include <posenc/registry.h>

static char *written(const char *formula, int width, int *is_good)
{
    char  *text;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    *is_good  = pe_plain_write(to, formula, 2, width);
    fclose(to);
    return text;
}

static void assert_written(const char *formula, int width, const char *expected)
{
    int   is_good;
    char *text = written(formula, width, &is_good);
    assert_int_equal(is_good, 1);
    assert_string_equal(text, expected);
    free(text);
}

static void indices_stand_below_and_above(void **state)
{
    (void)state;
    assert_written("p_{i,2 k + 1} = base^{−2 k / d}", 80,
                   "                −2k/d\n"
                   "  p       = base\n"
                   "   i,2k+1\n");
    assert_written("o = ∑_j c_j", 80,
                   "  o = ∑ c\n"
                   "      j  j\n");
}

static void a_fraction_has_a_bar(void **state)
{
    (void)state;
    assert_written("S = frac{q · k}{sqrt{D}} , t", 80,
                   "      q · k\n"
                   "  S = ─────, t\n"
                   "       √D\n");
}

static void a_matrix_has_rows_and_brackets(void **state)
{
    (void)state;
    assert_written("matrix{cos θ, −sin θ; sin θ, cos θ} x", 80,
                   "  ⎡ cos θ  −sin θ ⎤ x\n"
                   "  ⎣ sin θ  cos θ  ⎦\n");
    assert_written("matrix{a; b; c} = matrix{d, e}", 80,
                   "  ⎡ a ⎤\n"
                   "  ⎢ b ⎥ = [ d  e ]\n"
                   "  ⎣ c ⎦\n");
}

static void a_long_line_goes_on_before_an_operator(void **state)
{
    (void)state;
    assert_written("x = a + b − c", 11,
                   "  x = a + b\n"
                   "    − c\n");
}

static void every_encoding_has_a_formula_that_fits_60_columns(void **state)
{
    (void)state;
    for (int i = 0; posenc_encoding_info_at(i); i++) {
        int   is_good, columns = 0;
        char *text = written(posenc_encoding_info_at(i)->formula, 60, &is_good);
        assert_int_equal(is_good, 1);
        for (const char *s = text; *s; s += pe_formula_letter(s)) {
            columns = *s == '\n' ? 0 : columns + 1;
            if (columns > 60)
                fail_msg("%s is wider than 60:\n%s", posenc_encoding_info_at(i)->name, text);
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_stand_below_and_above),
        cmocka_unit_test(a_fraction_has_a_bar),
        cmocka_unit_test(a_matrix_has_rows_and_brackets),
        cmocka_unit_test(a_long_line_goes_on_before_an_operator),
        cmocka_unit_test(every_encoding_has_a_formula_that_fits_60_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
