/* SPDX-License-Identifier: MIT */
/*
 * test_tutorials: numbers that introductions print, from the library
 *
 * A tutorial prints 0.841 and means sin 1: a number of the library, rounded to the digits that are printed,
 * must read the same. From "Position Embedding" (docs/errata.md, tutorial 004): all 88 cells of its tables of
 * sines and cosines, its six vectors of width 8, its periods, the matrices of a step, and its rotation of (1,
 * 2, 3, 4); from the lecture on positional encodings (tutorial 001): (1, 0) rotated by 45 degrees.
 */
#include <posenc/rotary.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "workspace.h"

enum { ROWS = 11, DIM = 8, PAIRS = DIM / 2 };

/* clang-format off */
static const char *const sine_cells[11][4] = {
    {"0", "0", "0", "0"},
    {"0.841", "0.0998", "0.0100", "0.0010"},
    {"0.909", "0.1987", "0.0200", "0.0020"},
    {"0.141", "0.2955", "0.0300", "0.0030"},
    {"-0.757", "0.3894", "0.0400", "0.0040"},
    {"-0.959", "0.4794", "0.0500", "0.0050"},
    {"-0.279", "0.5646", "0.0600", "0.0060"},
    {"0.657", "0.6442", "0.0699", "0.0070"},
    {"0.989", "0.7174", "0.0799", "0.0080"},
    {"0.412", "0.7833", "0.0899", "0.0090"},
    {"-0.544", "0.8415", "0.0998", "0.0100"},
};
static const char *const cosine_cells[11][4] = {
    {"1", "1", "1", "1"},
    {"0.540", "0.9950", "0.99995", "1.0000"},
    {"-0.416", "0.9801", "0.9998", "1.0000"},
    {"-0.990", "0.9553", "0.9996", "1.0000"},
    {"-0.654", "0.9211", "0.9992", "1.0000"},
    {"0.284", "0.8776", "0.9988", "1.0000"},
    {"0.960", "0.8253", "0.9982", "1.0000"},
    {"0.754", "0.7648", "0.9976", "1.0000"},
    {"-0.146", "0.6967", "0.9968", "1.0000"},
    {"-0.911", "0.6216", "0.9960", "1.0000"},
    {"-0.839", "0.5403", "0.9950", "0.99995"},
};
static const char *const vectors[6][8] = {
    {"0", "1", "0", "1", "0", "1", "0", "1"},
    {"0.841", "0.540", "0.100", "0.995", "0.010", "1.000", "0.001", "1.000"},
    {"0.909", "-0.416", "0.199", "0.980", "0.020", "1.000", "0.002", "1.000"},
    {"0.141", "-0.990", "0.296", "0.955", "0.030", "1.000", "0.003", "1.000"},
    {"-0.757", "-0.654", "0.389", "0.921", "0.040", "0.999", "0.004", "1.000"},
    {"-0.959", "0.284", "0.479", "0.878", "0.050", "0.999", "0.005", "1.000"},
};
/* clang-format on */

/* cmocka's assert_float_equal compares floats: too coarse here. */
static void near(double x, double wanted, double error)
{
    if (!(fabs(x - wanted) <= error))
        fail_msg("%.17g is not %.17g within %g", x, wanted, error);
}

static posenc_plan *plan_of(posenc_encoding **e, const char *spec, posenc_dims dims)
{
    posenc_plan   *plan;
    posenc_error   err;
    posenc_options options = posenc_options_default();
    options.executor       = POSENC_EXECUTOR_REFERENCE;
    if (posenc_encoding_create(e, spec, NULL, &err) || posenc_plan_create(&plan, *e, &dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    return plan;
}

/* table [ROWS, DIM] of positions 0, 1, ..., as the tutorial has it. */
static void make_table(double table[ROWS][DIM])
{
    posenc_encoding  *e;
    posenc_error      err;
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = ROWS, .Lk = ROWS, .D = DIM, .d_model = DIM};
    const int64_t     shape[3] = {1, ROWS, DIM};
    posenc_plan      *plan     = plan_of(&e, "sinusoidal", dims);
    posenc_rows_in    in       = {.size = sizeof in, .pos = posenc_positions_range(0, 1)};
    posenc_tensor     y        = posenc_tensor_contiguous(table, POSENC_DTYPE_F64, 3, shape);
    posenc_workspace  work     = workspace_for(plan, POSENC_RUN_ROWS);
    assert_int_equal(posenc_rows(plan, &in, &y, &work, &err), POSENC_OK);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* Does x, rounded to the digits of the printed number, read as it? */
static void prints_as(double x, const char *printed, const char *what, int row, int column)
{
    char        text[32];
    const char *point    = strchr(printed, '.');
    const int   decimals = point ? (int)strlen(point + 1) : 0;
    snprintf(text, sizeof text, "%.*f", decimals, x);
    if (strcmp(text, printed) != 0)
        fail_msg("%s(%d, %d): %s, printed %s", what, row, column, text, printed);
}

static void all_88_cells_are_right(void **state)
{
    (void)state;
    double table[ROWS][DIM];
    make_table(table);
    for (int pos = 0; pos < ROWS; pos++)
        for (int i = 0; i < PAIRS; i++) {
            prints_as(table[pos][2 * i], sine_cells[pos][i], "sin", pos, i);
            prints_as(table[pos][2 * i + 1], cosine_cells[pos][i], "cos", pos, i);
        }
}

static void the_six_vectors_are_right(void **state)
{
    (void)state;
    double table[ROWS][DIM];
    make_table(table);
    for (int pos = 0; pos < 6; pos++)
        for (int c = 0; c < DIM; c++)
            prints_as(table[pos][c], vectors[pos][c], "PE", pos, c);
}

/* omega_i = 1, 0.1, 0.01, 0.001; T_0 = 6.28, T_3 = 6283. The same frequencies turn queries. */
static void periods_are_right(void **state)
{
    (void)state;
    static const char *const frequencies[PAIRS] = {"1.0", "0.1", "0.01", "0.001"};
    double                   w[PAIRS];
    int64_t                  pairs;
    posenc_encoding         *e;
    posenc_error             err;
    const posenc_dims        dims = {.B = 1, .H = 1, .Lq = 1, .Lk = 1, .D = DIM};
    posenc_plan             *plan = plan_of(&e, "rope", dims);
    assert_int_equal(posenc_rotary_frequencies(plan, w, &pairs, NULL, &err), POSENC_OK);
    assert_int_equal(pairs, PAIRS);
    for (int i = 0; i < PAIRS; i++)
        prints_as(w[i], frequencies[i], "omega", i, 0);
    prints_as(2 * acos(-1.0) / w[0], "6.28", "period", 0, 0);
    prints_as(2 * acos(-1.0) / w[3], "6283", "period", 3, 0);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* (sin, cos)(pos + k) = [cos kw, sin kw; -sin kw, cos kw] (sin, cos)(pos): the tutorial proves it for w = 1,
   where its matrix has cos k and sin k; for the other pairs k must be k w. Sines within 2^-52, one product
   each. */
static void a_step_is_the_same_matrix_everywhere(void **state)
{
    (void)state;
    const double w[PAIRS] = {1, 0.1, 0.01, 0.001};
    double       table[ROWS][DIM];
    make_table(table);
    for (int k = 1; k < ROWS; k++)
        for (int pos = 0; pos + k < ROWS; pos++)
            for (int i = 0; i < PAIRS; i++) {
                const double c = cos(k * w[i]), s = sin(k * w[i]);
                const double from_sine = table[pos][2 * i], from_cosine = table[pos][2 * i + 1];
                near(table[pos + k][2 * i], c * from_sine + s * from_cosine, 1e-15);
                near(table[pos + k][2 * i + 1], -s * from_sine + c * from_cosine, 1e-15);
            }
}

/* x [D] rotated at a position. */
static void turn(const char *spec, double *x, int64_t D, double position)
{
    posenc_encoding  *e;
    posenc_error      err;
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = 1, .Lk = 1, .D = D};
    const int64_t     shape[4] = {1, 1, 1, D};
    posenc_plan      *plan     = plan_of(&e, spec, dims);
    posenc_rotate_io  io       = {.size      = sizeof io,
                                  .q         = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 4, shape),
                                  .to_q      = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 4, shape),
                                  .q_pos     = posenc_positions_range(position, 1),
                                  .direction = 1};
    posenc_workspace  work     = workspace_for(plan, POSENC_RUN_ROTATE);
    if (posenc_rotate(plan, &io, &work, &err))
        fail_msg("%s", err.message);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* Printed: -2.234, 0.077, 2.92, 4.06. The last three are rounded as they should be; the first is the sum of
   sines and cosines that had been rounded to three digits before: -0.416 * 1 - 0.909 * 2 = -2.234, where
   -2.235 is right. */
static void the_rotation_example_is_right_but_for_one_digit(void **state)
{
    (void)state;
    double x[4] = {1, 2, 3, 4};
    turn("rope", x, 4, 2);
    prints_as(x[0], "-2.23474", "rotation", 0, 0);
    prints_as(x[0], "-2.235", "rotation", 0, 0);
    prints_as(x[1], "0.077", "rotation", 1, 0);
    prints_as(x[2], "2.92", "rotation", 2, 0);
    prints_as(x[3], "4.06", "rotation", 3, 0);
    prints_as(-0.416 * 1 - 0.909 * 2, "-2.234", "rotation from rounded sines", 0, 0);
}

/* The angle of the only pair is the position itself: pi/4. */
static void one_zero_turned_by_45_degrees_is_the_diagonal(void **state)
{
    (void)state;
    double x[2] = {1, 0};
    turn("rope", x, 2, acos(-1.0) / 4);
    near(x[0], sqrt(0.5), 1e-15);
    near(x[1], sqrt(0.5), 1e-15);
    near(hypot(x[0], x[1]), 1, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_88_cells_are_right),
        cmocka_unit_test(the_six_vectors_are_right),
        cmocka_unit_test(periods_are_right),
        cmocka_unit_test(a_step_is_the_same_matrix_everywhere),
        cmocka_unit_test(the_rotation_example_is_right_but_for_one_digit),
        cmocka_unit_test(one_zero_turned_by_45_degrees_is_the_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
