/* SPDX-License-Identifier: MIT */
/*
 * test_learned_resize: what must hold of resizing without any reference
 *
 * Every kind, on grids that grow, shrink, come from one cell and go to one, are not square and have one to
 * three axes, with none, one and several rows in front. The backward is the transpose: sum(M x * z) = sum(x *
 * M^T z). A constant stays constant, ramps and parabolas are kept by the kernels that should keep them,
 * several axes are the product of single ones. Sums have at most some hundred terms of size 1: 1e-13.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows_case.h"

#define CLOSE 1e-13

static const char *const kinds[] = {"linear",  "linear_align_corners", "bilinear_align_corners",
                                    "bicubic", "bicubic_antialias",    "bicubic_scale_factor"};

static const struct {
    const char *in, *out;
    int64_t     cells;
} grids[] = {{"4", "7", 7},          {"9", "4", 4},      {"1", "5", 5},      {"5", "1", 1},
             {"40", "3", 3},         {"3x3", "5x5", 25}, {"4x4", "3x6", 18}, {"3x6", "4x2", 8},
             {"7x1", "1x7", 7},      {"1x1", "3x2", 6},  {"6x5", "1x1", 1},  {"2x3x4", "3x2x5", 30},
             {"14x14", "16x12", 192}};

enum { KINDS = sizeof kinds / sizeof *kinds, GRIDS = sizeof grids / sizeof *grids, DIM = 6 };

static const posenc_positions from_0 = {.step = 1};

static rows_case make(int kind, const char *in, const char *out, int64_t cells, int prefix)
{
    char spec[200];
    snprintf(spec, sizeof spec, "learned_resize[kind=%s:grid_in=%s:grid_out=%s:prefix_rows=%d]", kinds[kind],
             in, out, prefix);
    return rows_make(spec, 1, cells + prefix, 1, 1);
}

static array rows_of(int64_t n)
{
    return array_make(3, (int64_t[]){1, n, DIM});
}

/* Calls `try` for every kind and grid, with 0, 1 and 3 rows in front. */
static void everywhere(void (*try)(rows_case *c, int kind, const array *y, int prefix))
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int g = 0; g < GRIDS; g++)
            for (int prefix = 0; prefix < 4; prefix += 1 + prefix) {
                rows_case c = make(kind, grids[g].in, grids[g].out, grids[g].cells, prefix);
                array     y = rows_of(grids[g].cells + prefix);
                try(&c, kind, &y, prefix);
                array_free(&y);
                rows_free(&c);
            }
}

static void has_adjoint(rows_case *c, int kind, const array *y, int prefix)
{
    array dy = rows_of(y->shape[1]);
    (void)prefix;
    array_fill(&dy, 9, "dy", 1);
    rows_run(c, from_0, y);
    rows_back(c, from_0, &dy);
    const double forward = dot(y, &dy), back = dot(&c->numbers[0], &c->gradients[0]);
    if (!(fabs(forward - back) <= CLOSE * fmax(1, fabs(forward)) * 10))
        fail_msg("%s, kind %s: %.17g is not %.17g", posenc_encoding_spec(c->e), kinds[kind], forward, back);
    array_free(&dy);
}

static void the_backward_is_the_transpose(void **state)
{
    (void)state;
    everywhere(has_adjoint);
}

static void keeps_ones(rows_case *c, int kind, const array *y, int prefix)
{
    (void)kind, (void)prefix;
    for (int64_t i = 0; i < c->numbers[0].count; i++)
        c->numbers[0].wide[i] = 1;
    rows_run(c, from_0, y);
    for (int64_t i = 0; i < y->count; i++)
        assert_true(fabs(y->wide[i] - 1) <= CLOSE);
}

static void a_constant_table_stays_constant(void **state)
{
    (void)state;
    everywhere(keeps_ones);
}

/* Rows in front are 1000 times as large as the grid's. */
static void front_is_apart(rows_case *c, int kind, const array *y, int prefix)
{
    (void)kind;
    for (int64_t i = 0; i < (int64_t)prefix * DIM; i++)
        c->numbers[0].wide[i] = 1000 + (double)i;
    rows_run(c, from_0, y);
    assert_memory_equal(y->wide, c->numbers[0].wide, (size_t)prefix * DIM * sizeof(double));
    for (int64_t i = (int64_t)prefix * DIM; i < y->count; i++)
        assert_true(fabs(y->wide[i]) < 20);
}

static void rows_in_front_are_copied_and_used_nowhere_else(void **state)
{
    (void)state;
    everywhere(front_is_apart);
}

static void equal_grids_change_nothing_but_with_the_scale_factor(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        rows_case c = make(kind, "3x5", "3x5", 15, 2);
        array     y = rows_of(17);
        rows_run(&c, from_0, &y);
        const double most = largest(&y, &c.numbers[0]);
        if (strcmp(kinds[kind], "bicubic_scale_factor"))
            assert_true(most == 0);
        else
            assert_true(most > 1e-3); /* its 0.1 shows */
        array_free(&y);
        rows_free(&c);
    }
}

/* The largest deviation from f((o + 1/2) n_in / n_out - 1/2) over the cells of 24 that are far from both ends
   of a table of 12 cells f(i). */
static double deviation(int kind, double (*f)(double))
{
    rows_case c    = make(kind, "12", "24", 24, 0);
    array     y    = rows_of(24);
    double    most = 0;
    for (int64_t i = 0; i < c.numbers[0].count; i++)
        c.numbers[0].wide[i] = f((double)(i / DIM));
    rows_run(&c, from_0, &y);
    for (int64_t o = 4; o < 20; o++)
        most = fmax(most, fabs(y.wide[o * DIM] - f(((double)o + 0.5) / 2 - 0.5)));
    array_free(&y);
    rows_free(&c);
    return most;
}

static double ramp(double x)
{
    return 0.25 * x - 1;
}

static double parabola(double x)
{
    return 0.25 * x * x - x;
}

static void kernels_keep_the_polynomials_they_are_made_for(void **state)
{
    enum { LINEAR, BICUBIC = 3, ANTIALIAS };
    (void)state;
    assert_true(deviation(LINEAR, ramp) <= CLOSE);
    assert_true(deviation(ANTIALIAS, ramp) <= CLOSE);
    assert_true(deviation(ANTIALIAS, parabola) <= CLOSE); /* A = -1/2 is the cubic that keeps parabolas */
    assert_true(deviation(LINEAR, parabola) > 1e-2);
    assert_true(deviation(BICUBIC, parabola) > 1e-2); /* A = -3/4 does not */
}

/* Column 0 of the new grid, for a table whose cell i is u[i]. */
static array one_axis(int kind, const char *in, const char *out, int64_t cells, const double *u)
{
    rows_case c = make(kind, in, out, cells, 0);
    array     y = rows_of(cells);
    for (int64_t i = 0; i < c.numbers[0].count; i++)
        c.numbers[0].wide[i] = u[i / DIM];
    rows_run(&c, from_0, &y);
    rows_free(&c);
    return y;
}

static void two_axes_are_the_product_of_single_ones(void **state)
{
    static const double u[4] = {1, -2, 0.5, 3}, v[5] = {2, 1, -1, 4, -3};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        rows_case c = make(kind, "4x5", "7x3", 21, 0);
        array     y = rows_of(21), a = one_axis(kind, "4", "7", 7, u), b = one_axis(kind, "5", "3", 3, v);
        for (int64_t i = 0; i < c.numbers[0].count; i++)
            c.numbers[0].wide[i] = u[i / DIM / 5] * v[i / DIM % 5];
        rows_run(&c, from_0, &y);
        for (int64_t o = 0; o < 21; o++)
            assert_true(fabs(y.wide[o * DIM] - a.wide[o / 3 * DIM] * b.wide[o % 3 * DIM]) <= CLOSE * 10);
        array_free(&y), array_free(&a), array_free(&b);
        rows_free(&c);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    const posenc_dims dims = {.B = 1, .Lq = 4, .d_model = DIM};
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "learned_resize[grid_in=4x4:grid_out=9]", NULL, &err),
                     POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_ERROR_SETTING);
    assert_non_null(strstr(err.message, "grid_in has 2 axes and grid_out 1"));
    posenc_encoding_free(e);

    rows_case c = make(0, "4", "7", 7, 2);
    array     y = rows_of(9);
    assert_int_equal(rows_try(&c, posenc_positions_range(1, 1), &y, &err), POSENC_ERROR_RANGE);
    assert_non_null(strstr(err.message, "position 9 is outside the table; its rows run from 0 to 8"));
    array_free(&y);
    rows_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_backward_is_the_transpose),
        cmocka_unit_test(a_constant_table_stays_constant),
        cmocka_unit_test(rows_in_front_are_copied_and_used_nowhere_else),
        cmocka_unit_test(equal_grids_change_nothing_but_with_the_scale_factor),
        cmocka_unit_test(kernels_keep_the_polynomials_they_are_made_for),
        cmocka_unit_test(two_axes_are_the_product_of_single_ones),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
