/* SPDX-License-Identifier: MIT */
/*
 * test_hierarchical: a table of n rows as n^2 positions
 *
 * The first n rows are the table's own, to the bit. u is not stored, but position k(n+1) has the two digits
 * k, k and is u_k; so every row must be alpha times one of these and 1 - alpha times another: three products
 * of size 10, 1e-13.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows_case.h"

enum { N = 7, DIM = 6 };

static const double alphas[] = {0.4, 0.7, 0.1, -0.5, 1.5};

static rows_case make(double alpha)
{
    char spec[80];
    snprintf(spec, sizeof spec, "hierarchical[rows=%d:alpha=%g]", N, alpha);
    return rows_make(spec, 1, N * N, 1, 1);
}

static void the_first_rows_are_the_table_to_the_bit(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        rows_case c = make(alphas[a]);
        array     y = array_make(3, (int64_t[]){1, N, DIM});
        rows_run(&c, posenc_positions_range(0, 1), &y);
        assert_memory_equal(y.wide, c.numbers[0].wide, N * DIM * sizeof(double));
        array_free(&y);
        rows_free(&c);
    }
}

static void every_row_is_made_of_the_rows_of_its_two_digits(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        rows_case c = make(alphas[a]);
        array     u = array_make(3, (int64_t[]){1, N, DIM}), y = array_make(3, (int64_t[]){1, N * N, DIM});
        rows_run(&c, posenc_positions_range(0, N + 1), &u);
        rows_run(&c, posenc_positions_range(0, 1), &y);
        for (int64_t s = 0; s < N * N; s++)
            for (int64_t d = 0; d < DIM; d++)
                assert_true(fabs(y.wide[s * DIM + d] - alphas[a] * u.wide[s / N * DIM + d] -
                                 (1 - alphas[a]) * u.wide[s % N * DIM + d]) <= 1e-13);
        array_free(&u), array_free(&y);
        rows_free(&c);
    }
}

static void no_two_positions_share_a_row(void **state)
{
    rows_case c = make(0.4);
    array     y = array_make(3, (int64_t[]){1, N * N, DIM});
    (void)state;
    rows_run(&c, posenc_positions_range(0, 1), &y);
    for (int64_t s = 0; s < N * N; s++)
        for (int64_t r = 0; r < s; r++)
            assert_memory_not_equal(y.wide + s * DIM, y.wide + r * DIM, DIM * sizeof(double));
    array_free(&y);
    rows_free(&c);
}

static void gradients_reach_every_row_that_made_a_row(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        rows_case c  = make(alphas[a]);
        array     dy = array_make(3, (int64_t[]){1, N * N, DIM});
        array_fill(&dy, 3, "dy", 1);
        rows_compare_slopes(&c, posenc_positions_range(0, 1), &dy);
        array_free(&dy);
        rows_free(&c);
    }
}

static void alphas_that_cannot_tell_positions_apart_are_refused(void **state)
{
    static const char *const refused[] = {"0", "0.5", "1", "1/2"};
    const posenc_dims        dims      = {.B = 1, .Lq = 4, .d_model = DIM};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char             settings[40];
        posenc_encoding *e;
        posenc_plan     *plan;
        posenc_error     err;
        snprintf(settings, sizeof settings, "alpha=%s", refused[i]);
        assert_int_equal(posenc_encoding_create(&e, "hierarchical", settings, &err), POSENC_OK);
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_ERROR_SETTING);
        assert_non_null(strstr(err.message, "must not be 0, 0.5 or 1"));
        posenc_encoding_free(e);
    }
}

static void positions_end_at_the_square(void **state)
{
    rows_case    c = make(0.4);
    array        y = array_make(3, (int64_t[]){1, 2, DIM});
    posenc_error err;
    (void)state;
    assert_int_equal(rows_try(&c, posenc_positions_range(N * N - 2, 1), &y, &err), POSENC_OK);
    assert_int_equal(rows_try(&c, posenc_positions_range(N * N - 1, 1), &y, &err), POSENC_ERROR_RANGE);
    assert_non_null(strstr(err.message, "position 49 needs more than rows=7"));
    assert_int_equal(rows_try(&c, posenc_positions_range(0.5, 1), &y, &err), POSENC_ERROR_RANGE);
    assert_int_equal(rows_try(&c, posenc_positions_range(-1, 1), &y, &err), POSENC_ERROR_RANGE);
    array_free(&y);
    rows_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rows_are_the_table_to_the_bit),
        cmocka_unit_test(every_row_is_made_of_the_rows_of_its_two_digits),
        cmocka_unit_test(no_two_positions_share_a_row),
        cmocka_unit_test(gradients_reach_every_row_that_made_a_row),
        cmocka_unit_test(alphas_that_cannot_tell_positions_apart_are_refused),
        cmocka_unit_test(positions_end_at_the_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
