/* SPDX-License-Identifier: MIT */
/* The tolerances of the reference cases, number by number. */
#include "verify/trial.h"

#include <math.h>

#include "files/scratch.h"

static const int64_t shape[2] = {2, 3};

static pe_difference measured(pe_case_kind kind, int is_single, double angle, const double *got,
                              const double *want)
{
    double             a[6], b[6];
    const pe_allowance allowance = {kind, is_single, angle, NULL, 0};
    memcpy(a, got, sizeof a);
    memcpy(b, want, sizeof b);
    const posenc_tensor x = posenc_tensor_contiguous(a, POSENC_DTYPE_F64, 2, shape);
    const posenc_tensor y = posenc_tensor_contiguous(b, POSENC_DTYPE_F64, 2, shape);
    return pe_trial_measure(&x, &y, &allowance);
}

/* The fraction for one element that is off by `error`. */
static double fraction_at(pe_case_kind kind, int is_single, double angle, const double *want, int at,
                          double error)
{
    double got[6];
    memcpy(got, want, sizeof got);
    got[at] += error;
    const pe_difference m = measured(kind, is_single, angle, got, want);
    assert_int_equal(m.at, at);
    return m.worst;
}

static int near(double x, double y)
{
    return fabs(x - y) < 1e-3 * fabs(y);
}

static const double want[6] = {0.5, -8, 0, 0.001, 0.002, 0};

static void float64_is_measured_by_the_element(void **state)
{
    (void)state;
    assert_true(near(fraction_at(PE_CASE_OUTPUT, 0, 0, want, 1, 4e-12), 4e-12 / 8e-12));
    assert_true(near(fraction_at(PE_CASE_OUTPUT, 0, 0, want, 2, 4e-12), 4)); /* at least 1 */
    assert_true(near(fraction_at(PE_CASE_GRADIENT, 0, 0, want, 2, 4e-12), 0.4));
}

static void float32_is_measured_by_the_row(void **state)
{
    (void)state;
    assert_true(near(fraction_at(PE_CASE_OUTPUT, 1, 0, want, 2, 8e-6), 8e-6 / (2e-6 * 8)));
    assert_true(near(fraction_at(PE_CASE_GRADIENT, 1, 0, want, 2, 8e-6), 8e-6 / (2e-5 * 8)));
    assert_true(
        near(fraction_at(PE_CASE_OUTPUT, 1, 0, want, 5, 1.6e-8), 1)); /* a row of 0.002 counts as 8e-3 */
}

static void what_is_prepared_in_double_is_measured_as_float64(void **state)
{
    (void)state;
    assert_true(near(fraction_at(PE_CASE_PREPARED, 1, 0, want, 2, 4e-12), 4));
}

static void whole_numbers_are_equal_or_not(void **state)
{
    (void)state;
    assert_true(measured(PE_CASE_INDEX, 0, 0, want, want).worst == 0);
    assert_true(isinf(fraction_at(PE_CASE_INDEX, 0, 0, want, 0, 1)));
}

static void an_angle_allows_more_where_its_row_is_larger(void **state)
{
    (void)state;
    assert_true(near(fraction_at(PE_CASE_OUTPUT, 0, 1e-9, want, 0, 8e-9), 1)); /* the row holds an 8 */
    assert_true(near(fraction_at(PE_CASE_OUTPUT, 0, 1e-9, want, 4, 1e-9), 1));
}

static void what_is_no_number_fails(void **state)
{
    double got[6], ref[6];
    (void)state;
    memcpy(got, want, sizeof got);
    got[3] = (double)NAN;
    assert_true(isinf(measured(PE_CASE_OUTPUT, 0, 0, got, want).worst));
    assert_true(isinf(measured(PE_CASE_OUTPUT, 0, 0, want, got).worst));
    assert_true(isinf(
        measured(PE_CASE_OUTPUT, 1, 0, got, got).worst)); /* a reference without a value proves nothing */
    memcpy(ref, want, sizeof ref);
    ref[0] = -(double)INFINITY;
    memcpy(got, ref, sizeof got);
    assert_true(measured(PE_CASE_OUTPUT, 1, 0, got, ref).worst == 0); /* lse of a query without keys */
    got[0] = (double)INFINITY;
    assert_true(isinf(measured(PE_CASE_OUTPUT, 1, 0, got, ref).worst));
}

static void a_row_is_the_last_axis_and_one_number_is_a_row(void **state)
{
    double             x[3] = {1000, 1, 1.00001}, y[3] = {1000, 1, 1};
    const int64_t      n = 3;
    const pe_allowance a = {PE_CASE_OUTPUT, 1, 0, NULL, 0};
    (void)state;
    const posenc_tensor flat[2] = {posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 1, &n),
                                   posenc_tensor_contiguous(y, POSENC_DTYPE_F64, 1, &n)};
    assert_true(pe_trial_measure(&flat[0], &flat[1], &a).worst < 0.01);
    const posenc_tensor one[2] = {posenc_tensor_contiguous(x + 2, POSENC_DTYPE_F64, 0, NULL),
                                  posenc_tensor_contiguous(y + 2, POSENC_DTYPE_F64, 0, NULL)};
    assert_true(near(pe_trial_measure(&one[0], &one[1], &a).worst, 5));
}

static void memory_that_is_missing_says_for_what(void **state)
{
    pe_calc p = pe_calc_new("attend");
    (void)state;
    pe_calc_refuse_memory(&p, "q");
    assert_int_equal(p.err.status, POSENC_ERROR_MEMORY);
    assert_string_equal(p.sentence, "not enough memory for q");
    pe_calc_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float64_is_measured_by_the_element),
        cmocka_unit_test(float32_is_measured_by_the_row),
        cmocka_unit_test(what_is_prepared_in_double_is_measured_as_float64),
        cmocka_unit_test(whole_numbers_are_equal_or_not),
        cmocka_unit_test(an_angle_allows_more_where_its_row_is_larger),
        cmocka_unit_test(what_is_no_number_fails),
        cmocka_unit_test(a_row_is_the_last_axis_and_one_number_is_a_row),
        cmocka_unit_test(memory_that_is_missing_says_for_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
