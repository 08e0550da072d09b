/* SPDX-License-Identifier: MIT */
/*
 * The row-wise layers in float, against libm in double.
 *
 * They are static, so this test includes the unit that holds them. What is promised: the exponential
 * within 1.25 ulp; the rest follows from it and from sums of float numbers in a fixed order.
 */
#include "train/model_f32.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_exponential_is_within_one_and_a_quarter_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i <= 1750000; i++) {
        const float at = -87 + 1e-4f * (float)i;
        float       x  = at;
        exponentials(&x, 1);
        const double exact = exp((double)at),
                     ulp   = (double)(nextafterf((float)exact, INFINITY) - (float)exact);
        worst              = fmax(worst, fabs((double)x - exact) / ulp);
    }
    assert_true(worst <= 1.25);
}

static void beyond_its_range_the_exponential_stays_at_the_end_and_nan_stays_nan(void **state)
{
    (void)state;
    float x[5] = {-1e30f, -INFINITY, 1e30f, NAN, 0};
    exponentials(x, 5);
    assert_true(x[0] > 0 && x[0] < 1.7e-38f && x[1] == x[0]);
    assert_true(x[2] > 1e38f && isfinite(x[2]));
    assert_true(isnan(x[3]));
    assert_true(x[4] == 1);
}

static double exact_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static void gelu_and_its_slope_are_those_of_the_tanh_form(void **state)
{
    (void)state;
    const float bias = 0.25f;
    for (int i = -1200; i <= 1200; i++) {
        float        a = 0.01f * (float)i, slope;
        const double x = (double)(a + bias), h = 1e-6;
        gelu(&a, &slope, &bias, 1, 1, 1);
        assert_true(fabs((double)a - exact_gelu(x)) <= 1e-6 * fmax(1, fabs(x)));
        assert_true(fabs((double)slope - (exact_gelu(x + h) - exact_gelu(x - h)) / (2 * h)) <= 2e-6);
    }
}

static void a_normalised_row_has_mean_zero_and_variance_one(void **state)
{
    (void)state;
    float x[37], unit[37], scale;
    for (int i = 0; i < 37; i++)
        x[i] = (float)(3 + 2 * sin(1.7 * i));
    normalise(unit, &scale, x, 1, 37);
    assert_true(fabsf(sum_of(unit, 37)) < 1e-4f);
    assert_true(fabsf(dot_of(unit, unit, 37) / 37 - 1) < 1e-4f);
}

static void sums_and_maxima_count_every_element_of_any_length(void **state)
{
    (void)state;
    float ones[70];
    for (int i = 0; i < 70; i++)
        ones[i] = 1;
    for (int n = 1; n <= 70; n++) {
        assert_true(sum_of(ones, n) == (float)n && dot_of(ones, ones, n) == (float)n);
        ones[n - 1] = 2;
        assert_true(largest_of(ones, n) == 2);
        ones[n - 1] = 1;
    }
}

static void the_cross_entropy_of_equal_logits_is_the_logarithm_of_their_count(void **state)
{
    (void)state;
    float logits[PE_BYTES], sum;
    for (int i = 0; i < PE_BYTES; i++)
        logits[i] = -3;
    assert_true(fabs(cross_entropy(logits, &sum, 7, PE_BYTES) - log(256.0)) < 1e-6);
    cross_entropy_back(logits, sum, 7, PE_BYTES, 1, 1);
    assert_true(fabsf(sum_of(logits, PE_BYTES)) < 1e-6f && logits[7] < -0.99f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponential_is_within_one_and_a_quarter_ulp),
        cmocka_unit_test(beyond_its_range_the_exponential_stays_at_the_end_and_nan_stays_nan),
        cmocka_unit_test(gelu_and_its_slope_are_those_of_the_tanh_form),
        cmocka_unit_test(a_normalised_row_has_mean_zero_and_variance_one),
        cmocka_unit_test(sums_and_maxima_count_every_element_of_any_length),
        cmocka_unit_test(the_cross_entropy_of_equal_logits_is_the_logarithm_of_their_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
