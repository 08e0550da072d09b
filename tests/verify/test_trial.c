/* SPDX-License-Identifier: MIT */
/* The tolerances of the reference cases, number by number, and what a trial finds and tells. */
#include "verify/trial.h"

#include <math.h>

#include "files/scratch.h"

static const int64_t shape[2] = {2, 3};

static pe_difference measured(pe_case_kind kind, int is_single, double angle, const double *got,
                              const double *want)
{
    double             a[6], b[6];
    const pe_allowance allowance = {kind, is_single, angle, NULL, 0, 0};
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
    const pe_allowance a = {PE_CASE_OUTPUT, 1, 0, NULL, 0, 0};
    (void)state;
    const posenc_tensor flat[2] = {posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 1, &n),
                                   posenc_tensor_contiguous(y, POSENC_DTYPE_F64, 1, &n)};
    assert_true(pe_trial_measure(&flat[0], &flat[1], &a).worst < 0.01);
    const posenc_tensor one[2] = {posenc_tensor_contiguous(x + 2, POSENC_DTYPE_F64, 0, NULL),
                                  posenc_tensor_contiguous(y + 2, POSENC_DTYPE_F64, 0, NULL)};
    assert_true(near(pe_trial_measure(&one[0], &one[1], &a).worst, 5));
}

static void an_array_without_elements_has_no_error(void **state)
{
    const int64_t       empty[2] = {3, 0};
    const pe_allowance  a        = {PE_CASE_OUTPUT, 1, 0, NULL, 0, 0};
    const posenc_tensor t        = posenc_tensor_contiguous((double[]){0}, POSENC_DTYPE_F64, 2, empty);
    (void)state;
    assert_true(pe_trial_measure(&t, &t, &a).worst == 0);
}

static void rows_may_each_have_an_angle(void **state)
{
    const double       angles[2] = {0, 1e-9};
    const pe_allowance a         = {PE_CASE_OUTPUT, 0, 0, angles, 0, 0};
    double             got[6], ref[6];
    (void)state;
    memcpy(got, want, sizeof got);
    memcpy(ref, want, sizeof ref);
    const posenc_tensor x = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 2, shape);
    const posenc_tensor y = posenc_tensor_contiguous(ref, POSENC_DTYPE_F64, 2, shape);
    got[4] += 1e-9; /* of the second row */
    assert_true(near(pe_trial_measure(&x, &y, &a).worst, 1));
    got[4] = want[4];
    got[2] += 1e-9; /* of the first */
    assert_true(near(pe_trial_measure(&x, &y, &a).worst, 1000));
}

/* A gradient that is 0 in truth: the reference holds its own round-off, and other gradients give the scale.
 */
static void a_gradient_of_zero_is_measured_by_the_others(void **state)
{
    double              got[6] = {2e-6}, ref[6] = {1e-13, -1e-13};
    const posenc_tensor x = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 2, shape);
    const posenc_tensor y = posenc_tensor_contiguous(ref, POSENC_DTYPE_F64, 2, shape);
    (void)state;
    assert_true(pe_trial_measure(&x, &y, &(pe_allowance){PE_CASE_GRADIENT, 1, 0, NULL, 1, 0}).worst < 0.2);
    assert_true(pe_trial_measure(&x, &y, &(pe_allowance){PE_CASE_GRADIENT, 1, 0, NULL, 1e-3, 0}).worst > 50);
    assert_true(pe_trial_measure(&x, &y, &(pe_allowance){PE_CASE_OUTPUT, 1, 0, NULL, 1, 0}).worst > 1e3);
}

static void the_largest_leaves_out_what_is_not_finite(void **state)
{
    double              x[4] = {-3, (double)NAN, (double)INFINITY, 2};
    const int64_t       n    = 4;
    const posenc_tensor t    = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 1, &n);
    (void)state;
    assert_true(pe_trial_largest(&t) == 3);
}

/* ---------------------------------------------------------------- the trial ----------------- */

static void a_setting_of_a_case_is_found_by_its_whole_name(void **state)
{
    posenc_case c = {.settings = (char *)(uintptr_t) "rebase=7 base=500 form=a:b last=x"};
    (void)state;
    assert_int_equal(strncmp(pe_trial_setting(&c, "base"), "500 ", 4), 0);
    assert_int_equal(strncmp(pe_trial_setting(&c, "form"), "a:b ", 4), 0);
    assert_string_equal(pe_trial_setting(&c, "last"), "x");
    assert_null(pe_trial_setting(&c, "bas"));
    assert_null(pe_trial_setting(&c, "x"));
    c.settings = (char *)(uintptr_t) "";
    assert_null(pe_trial_setting(&c, "base"));
}

/* A trial of a file with these arrays of shape [2,3]. */
static pe_trial trial_of(posenc_arrays *file, pe_case_result *result, const char *const *names)
{
    pe_trial t = {.p = pe_calc_new("case.npz"), .result = result};
    *result    = (pe_case_result){0};
    for (; *names; names++)
        memcpy(posenc_arrays_add(file, *names, POSENC_DTYPE_F64, 2, shape)->data, want, sizeof want);
    t.p.file = *file; /* the trial frees it */
    t.p.used = pe_calc_block(&t.p, (size_t)file->count);
    return t;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_a_case_lacks_is_named(void **state)
{
    posenc_arrays  file = {0};
    pe_case_result r;
    pe_trial       t = trial_of(&file, &r, NAMES("in_q", "in_k"));
    (void)state;
    assert_true(pe_trial_need(&t, NAMES("in_q", "in_k")));
    assert_true(pe_trial_has(&t, "in_q") && !pe_trial_has(&t, "in_v"));
    assert_null(pe_trial_find(&t, "in_v"));
    assert_non_null(pe_trial_find(&t, "in_k"));
    assert_true(!t.p.used[0] && t.p.used[1]); /* to look is not to use */
    assert_false(pe_trial_need(&t, NAMES("in_q", "in_v", "in_x")));
    assert_string_equal(t.p.sentence, "it has no array in_v, which a case of this form needs");
    pe_calc_free(&t.p);
}

static void the_worst_of_all_arrays_stays_and_is_told_with_its_element(void **state)
{
    posenc_arrays  file = {0};
    pe_case_result r;
    pe_trial       t = trial_of(&file, &r, NAMES("out_a", "out_b", "out_c"));
    double         got[6];
    (void)state;
    const int64_t       more[3] = {1, 2, 3};
    const posenc_tensor x       = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 3, more);
    memcpy(got, want, sizeof got);
    pe_trial_compare(&t, PE_CASE_OUTPUT, "out_a", &x, 0);
    assert_true(r.compared == 1 && r.worst == 0 && !r.problem[0]);
    got[4] += 5e-12;
    pe_trial_compare(&t, PE_CASE_OUTPUT, "out_b", &x, 0);
    assert_true(near(r.worst, 5));
    assert_string_equal(r.array, "out_b");
    assert_int_equal(strncmp(r.problem, "out_b[1,1] is 0.002000000005", 28), 0);
    got[4] = want[4] + 2e-12;
    pe_trial_compare(&t, PE_CASE_OUTPUT, "out_c", &x, 0); /* wrong too, but less so */
    pe_trial_compare(&t, PE_CASE_OUTPUT, "out_d", &x, 0); /* the file has none: not compared */
    assert_int_equal(r.compared, 3);
    assert_string_equal(r.array, "out_b");
    assert_false(pe_calc_failed(&t.p));
    pe_calc_free(&t.p);
}

static void another_shape_is_a_failure_and_no_comparison(void **state)
{
    posenc_arrays       file = {0};
    pe_case_result      r;
    pe_trial            t       = trial_of(&file, &r, NAMES("out_a"));
    double              got[6]  = {0};
    const int64_t       flip[2] = {3, 2};
    const posenc_tensor x       = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 2, flip);
    (void)state;
    pe_trial_compare(&t, PE_CASE_OUTPUT, "out_a", &x, 0);
    assert_int_equal(r.compared, 0);
    assert_string_equal(t.p.sentence, "out_a has the shape [2,3] but the encoding gives [3,2]");
    pe_calc_free(&t.p);
}

/* [2,6] against real and imaginary parts [2,3]. */
static void a_whole_is_compared_with_both_of_its_parts(void **state)
{
    static const char *const parts[2] = {"out_re", "out_im"};
    posenc_arrays            file     = {0};
    pe_case_result           r;
    pe_trial                 t = trial_of(&file, &r, NAMES("out_re", "out_im"));
    double                   got[12];
    const int64_t            wide[2] = {2, 6};
    const posenc_tensor      x       = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 2, wide),
                        narrow       = posenc_tensor_contiguous(got, POSENC_DTYPE_F64, 2, shape);
    (void)state;
    for (int i = 0; i < 12; i++)
        got[i] = want[i / 6 * 3 + i % 3];
    pe_trial_compare_parts(&t, PE_CASE_OUTPUT, parts, &x, 0);
    assert_true(r.compared == 2 && r.worst == 0);
    got[9] += 3e-12; /* row 1, imaginary part of number 0 */
    pe_trial_compare_parts(&t, PE_CASE_OUTPUT, parts, &x, 0);
    assert_string_equal(r.array, "out_im");
    assert_int_equal(strncmp(r.problem, "out_im[1,0] is ", 15), 0);
    pe_trial_compare_parts(&t, PE_CASE_OUTPUT, parts, &narrow, 0);
    assert_string_equal(t.p.sentence, "out_re is not half as large as what the encoding gives");
    pe_calc_free(&t.p);
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
        cmocka_unit_test(an_array_without_elements_has_no_error),
        cmocka_unit_test(rows_may_each_have_an_angle),
        cmocka_unit_test(a_gradient_of_zero_is_measured_by_the_others),
        cmocka_unit_test(the_largest_leaves_out_what_is_not_finite),
        cmocka_unit_test(a_setting_of_a_case_is_found_by_its_whole_name),
        cmocka_unit_test(what_a_case_lacks_is_named),
        cmocka_unit_test(the_worst_of_all_arrays_stays_and_is_told_with_its_element),
        cmocka_unit_test(another_shape_is_a_failure_and_no_comparison),
        cmocka_unit_test(a_whole_is_compared_with_both_of_its_parts),
        cmocka_unit_test(memory_that_is_missing_says_for_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
