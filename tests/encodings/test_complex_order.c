/* SPDX-License-Identifier: MIT */
/*
 * test_complex_order: words as waves
 *
 * A row is r e^(i phi): its length is r at every position, and n positions further is a turn by n omega.
 * Frequencies that are shared are the full ones with equal numbers, and their gradient is the sum; the
 * gradient holds for each way of sharing, with and without theta. The first coordinate is an id and must be
 * one. Tolerance: some ten roundings, 1e-14.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows_case.h"

enum { B = 2, L = 7, V = 4, D = 3, SCHEMES = 4 };

static const int64_t words[B * L] = {0, 3, 3, 1, 2, 0, 1, 2, 2, 0, 3, 1, 1, 3};

/* (word, column) of every token, and of all of them `shift` further on. */
static posenc_positions places(double at[B * L * 2], double shift)
{
    for (int i = 0; i < B * L; i++) {
        at[2 * i]     = (double)words[i];
        at[2 * i + 1] = (double)(i % L) + shift;
    }
    return posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, (int64_t[]){B, L, 2}));
}

static rows_case make(int per_word, int per_dim, const char *more)
{
    char spec[200];
    snprintf(spec, sizeof spec, "complex_order[vocab=%d:dim=%d:omega_per_word=%s:omega_per_dim=%s%s]", V, D,
             per_word ? "yes" : "no", per_dim ? "yes" : "no", more);
    return rows_make(spec, B, L, 1, 1);
}

static array rows_of(void)
{
    return array_make(3, (int64_t[]){B, L, 2 * D});
}

static void every_scheme_has_the_gradients_of_its_loss(void **state)
{
    static const char *const more[] = {"", ":theta=zero", ":position_start=1",
                                       ":position_start=-2.5:theta=zero"};
    double                   at[B * L * 2];
    (void)state;
    for (int s = 0; s < SCHEMES; s++)
        for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
            rows_case c  = make(s & 1, s >> 1, more[m]);
            array     dy = rows_of();
            assert_int_equal(c.count, strstr(more[m], "zero") ? 2 : 3);
            array_fill(&dy, 4, "dy", 1);
            rows_compare_slopes(&c, places(at, 0), &dy);
            array_free(&dy);
            rows_free(&c);
        }
}

/* Which of the shared numbers omega[word, m] is. */
static int64_t shared_at(int per_word, int per_dim, int64_t word, int64_t m)
{
    return per_word ? word * (per_dim ? D : 1) + (per_dim ? m : 0) : per_dim ? m : 0;
}

static void shared_frequencies_are_equal_ones_and_gather_their_gradients(void **state)
{
    double at[B * L * 2];
    (void)state;
    for (int s = 0; s < SCHEMES; s++) {
        const int per_word = s & 1, per_dim = s >> 1;
        rows_case some = make(per_word, per_dim, ""), all = make(1, 1, "");
        array     dy = rows_of(), a = rows_of(), b = rows_of();
        double    sums[V * D] = {0};
        assert_int_equal(some.numbers[1].count, (per_word ? V : 1) * (per_dim ? D : 1));
        for (int64_t i = 0; i < V * D; i++)
            all.numbers[1].wide[i] = some.numbers[1].wide[shared_at(per_word, per_dim, i / D, i % D)];
        rows_run(&some, places(at, 0), &a);
        rows_run(&all, places(at, 0), &b);
        assert_memory_equal(a.wide, b.wide, (size_t)a.count * sizeof(double));
        array_fill(&dy, 4, "dy", 1);
        rows_back(&some, places(at, 0), &dy);
        rows_back(&all, places(at, 0), &dy);
        for (int64_t i = 0; i < V * D; i++)
            sums[shared_at(per_word, per_dim, i / D, i % D)] += all.gradients[1].wide[i];
        for (int64_t i = 0; i < some.numbers[1].count; i++)
            assert_true(fabs(some.gradients[1].wide[i] - sums[i]) <= 1e-14 * 100);
        array_free(&dy), array_free(&a), array_free(&b);
        rows_free(&some), rows_free(&all);
    }
}

static void moving_on_is_a_turn_and_keeps_the_length(void **state)
{
    static const double shift = 11;
    rows_case           c     = make(1, 1, "");
    array               here = rows_of(), there = rows_of();
    double              at[B * L * 2];
    (void)state;
    rows_run(&c, places(at, 0), &here);
    rows_run(&c, places(at, shift), &there);
    for (int64_t i = 0; i < B * L * D; i++) {
        const int64_t k = i / D * 2 * D + i % D, w = words[i / D] * D + i % D;
        const double  re = here.wide[k], im = here.wide[k + D], a = shift * c.numbers[1].wide[w];
        assert_true(fabs(hypot(re, im) - fabs(c.numbers[0].wide[w])) <= 1e-14);
        assert_true(fabs(there.wide[k] - (re * cos(a) - im * sin(a))) <= 1e-14);
        assert_true(fabs(there.wide[k + D] - (re * sin(a) + im * cos(a))) <= 1e-14);
    }
    array_free(&here), array_free(&there);
    rows_free(&c);
}

static void position_start_is_the_same_as_later_positions(void **state)
{
    rows_case from_0 = make(1, 1, ""), from_3 = make(1, 1, ":position_start=3");
    array     a = rows_of(), b = rows_of();
    double    at[B * L * 2];
    (void)state;
    rows_run(&from_0, places(at, 3), &a);
    rows_run(&from_3, places(at, 0), &b);
    assert_memory_equal(a.wide, b.wide, (size_t)a.count * sizeof(double));
    array_free(&a), array_free(&b);
    rows_free(&from_0), rows_free(&from_3);
}

static void a_range_shows_the_word_of_that_setting(void **state)
{
    rows_case c = make(1, 1, ":word=2");
    array     a = array_make(3, (int64_t[]){1, L, 2 * D}), b = array_make(3, a.shape);
    double    at[L * 2];
    (void)state;
    for (int s = 0; s < L; s++) {
        at[2 * s]     = 2;
        at[2 * s + 1] = s;
    }
    rows_run(&c, posenc_positions_range(0, 1), &a);
    rows_run(&c, posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 2, (int64_t[]){L, 2})),
             &b);
    assert_memory_equal(a.wide, b.wide, (size_t)a.count * sizeof(double));
    array_free(&a), array_free(&b);
    rows_free(&c);
}

static void what_is_no_word_is_refused(void **state)
{
    static const double no_word[] = {-1, V, 0.5};
    rows_case           c         = make(1, 1, "");
    array               y         = rows_of();
    double              at[B * L * 2];
    posenc_error        err;
    (void)state;
    for (size_t i = 0; i < sizeof no_word / sizeof *no_word; i++) {
        posenc_positions pos = places(at, 0);
        at[2 * (L + 4)]      = no_word[i];
        assert_int_equal(rows_try(&c, pos, &y, &err), POSENC_ERROR_RANGE);
        assert_non_null(strstr(err.message, "rows: pos[1,4] is"));
        assert_non_null(strstr(err.message, "for complex_order it must be a word's id, 0 to 3"));
    }
    assert_int_equal(rows_try(&c, places(at, -1000.25), &y, &err), POSENC_OK); /* positions may be any */
    const posenc_positions ids = posenc_positions_array(
        posenc_tensor_contiguous((int64_t[B *L]){0}, POSENC_DTYPE_I64, 2, (int64_t[]){B, L}));
    assert_int_equal(rows_try(&c, ids, &y, &err), POSENC_ERROR_SHAPE);
    array_free(&y);
    rows_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_has_the_gradients_of_its_loss),
        cmocka_unit_test(shared_frequencies_are_equal_ones_and_gather_their_gradients),
        cmocka_unit_test(moving_on_is_a_turn_and_keeps_the_length),
        cmocka_unit_test(position_start_is_the_same_as_later_positions),
        cmocka_unit_test(a_range_shows_the_word_of_that_setting),
        cmocka_unit_test(what_is_no_word_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
