/* SPDX-License-Identifier: MIT */
/*
 * test_learned: the row of padding
 *
 * fairseq's rule, from tokens to gradients: padding uses row padding_idx, text counts from the one after it;
 * that row starts as zero and no cotangent reaches it, while every other row gets the sum of its own. Nothing
 * here is rounded: numbers are equal or a test fails.
 */
#include <posenc/positions.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows_case.h"

enum { B = 2, L = 5, DIM = 6, PAD = 1, ROWS = 9 };

static const char spec[] = "learned[rows=9:padding_idx=1]";

static void the_row_of_padding_starts_as_zero_and_no_other_does(void **state)
{
    rows_case c = rows_make(spec, B, L, 1, 1);
    (void)state;
    assert_int_equal(posenc_param_init(c.e, &c.dims, c.params, 3, NULL), POSENC_OK);
    for (int64_t i = 0; i < c.numbers[0].count; i++)
        assert_true((c.numbers[0].wide[i] == 0) == (i / DIM == PAD));
    rows_free(&c);
}

/* Padding on the left, in the middle and on the right. */
static void padding_gets_no_gradient_and_text_gets_all_of_its_own(void **state)
{
    int64_t       tokens[B * L] = {PAD, 7, PAD, 4, 5, 6, 7, 8, PAD, PAD}, pos[B * L];
    const int64_t shape[2] = {B, L}, rule[B * L] = {1, 2, 1, 3, 4, 2, 3, 4, 1, 1};
    rows_case     c  = rows_make(spec, B, L, 1, 1);
    array         dy = array_make(3, (int64_t[]){B, L, DIM}), y = array_make(3, dy.shape);
    posenc_tensor from             = posenc_tensor_contiguous(tokens, POSENC_DTYPE_I64, 2, shape);
    posenc_tensor to               = posenc_tensor_contiguous(pos, POSENC_DTYPE_I64, 2, shape);
    double        want[ROWS * DIM] = {0};
    (void)state;
    assert_int_equal(posenc_positions_fairseq(&from, PAD, &to, NULL), POSENC_OK);
    assert_memory_equal(pos, rule, sizeof rule);
    array_fill(&dy, 2, "dy", 1);
    rows_back(&c, posenc_positions_array(to), &dy);
    for (int s = 0; s < B * L; s++)
        for (int d = 0; d < DIM && rule[s] != PAD; d++)
            want[rule[s] * DIM + d] += dy.wide[s * DIM + d];
    assert_memory_equal(c.gradients[0].wide, want, sizeof want);
    rows_run(&c, posenc_positions_array(to), &y); /* a table is read as it is brought */
    assert_memory_equal(y.wide, c.numbers[0].wide + PAD * DIM, DIM * sizeof(double));
    array_free(&dy), array_free(&y);
    rows_free(&c);
}

/* The row of the first token of a range. */
static int64_t first_row(const char *text)
{
    rows_case c = rows_make(text, 1, 1, 1, 1);
    array     y = array_make(3, (int64_t[]){1, 1, DIM});
    int64_t   row;
    rows_run(&c, posenc_positions_range(0, 1), &y);
    for (row = 0; memcmp(y.wide, c.numbers[0].wide + row * DIM, DIM * sizeof(double)); row++)
        assert_true(row < ROWS);
    array_free(&y);
    rows_free(&c);
    return row;
}

static void a_range_begins_behind_the_row_of_padding_unless_told_otherwise(void **state)
{
    (void)state;
    assert_int_equal(first_row("learned[rows=9]"), 0);
    assert_int_equal(first_row("learned[rows=9:offset=3]"), 3);
    assert_int_equal(first_row("learned[rows=9:padding_idx=1]"), 2);
    assert_int_equal(first_row("learned[rows=9:padding_idx=0]"), 1);
    assert_int_equal(first_row("learned[rows=9:padding_idx=1:offset=0]"), 0);
}

static int64_t rows_of(const char *spec_text)
{
    const posenc_dims dims = {.B = 1, .Lq = 6, .Lk = 6, .d_model = 4, .L = 6};
    posenc_encoding  *e;
    int32_t           ndim;
    int64_t           shape[POSENC_MAX_DIMS];
    assert_int_equal(posenc_encoding_create(&e, spec_text, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_param_shape(e, &dims, 0, &ndim, shape, NULL), POSENC_OK);
    posenc_encoding_free(e);
    return shape[0];
}

/* A range of L positions must find its rows, wherever it begins. */
static void a_table_that_nobody_sized_has_room_for_what_comes_before_the_text(void **state)
{
    (void)state;
    assert_int_equal(rows_of("learned"), 6);
    assert_int_equal(rows_of("learned[padding_idx=1]"), 8);
    assert_int_equal(rows_of("learned[offset=3]"), 9);
    assert_int_equal(rows_of("learned[padding_idx=1:offset=0]"), 6);
    assert_int_equal(rows_of("learned[padding_idx=1:rows=20]"), 20);
}

static void a_row_of_padding_outside_the_table_is_refused(void **state)
{
    const posenc_dims dims = {.B = 1, .Lq = 4, .d_model = DIM};
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "learned[rows=9:padding_idx=9]", NULL, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_ERROR_SETTING);
    assert_non_null(strstr(err.message, "padding_idx=9 must be one of the table's rows=9"));
    posenc_encoding_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_row_of_padding_starts_as_zero_and_no_other_does),
        cmocka_unit_test(padding_gets_no_gradient_and_text_gets_all_of_its_own),
        cmocka_unit_test(a_range_begins_behind_the_row_of_padding_unless_told_otherwise),
        cmocka_unit_test(a_table_that_nobody_sized_has_room_for_what_comes_before_the_text),
        cmocka_unit_test(a_row_of_padding_outside_the_table_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
