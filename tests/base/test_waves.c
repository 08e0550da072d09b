/* SPDX-License-Identifier: MIT */
/*
 * test_waves: frequencies, channels that are left out, rows that have no place, and the adjoint
 *
 * What is written is held against libm's sine and cosine of the double product, whose own error at positions
 * below 100 is 2^-53 * 100 for the product and an ulp for the function: 1e-13 covers both. The fold is the
 * adjoint of the fill by its definition, a sum of products, in another order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>

#include "base/angle.h"

enum { ROWS = 9, WIDTH = 5, STEP = 2 };

/* Positions up to 90 in every second number, the others are another coordinate's. */
static void make_positions(double pos[ROWS * STEP])
{
    for (int s = 0; s < ROWS * STEP; s++)
        pos[s] = s % STEP ? 1e9 : 10.0 * s / STEP + posenc_random_uniform(1, "waves", (uint64_t)s);
}

static void the_first_frequency_is_1_whatever_the_denominator(void **state)
{
    (void)state;
    assert_true(pe_angle_base_frequency(10000, 0, 4) == 1 && pe_angle_base_frequency(10000, 0, 0) == 1);
    assert_true(pe_angle_base_frequency(10000, 1, 0) == 0); /* the limit from above */
    assert_true(pe_angle_base_frequency(16, 1, 2) == 0.25 && pe_angle_base_frequency(16, 3, 2) == 1.0 / 64);
}

static void sine_and_cosine_reach_their_channels_and_no_others(void **state)
{
    double pos[ROWS * STEP], out[ROWS * WIDTH];
    (void)state;
    make_positions(pos);
    for (int i = 0; i < ROWS * WIDTH; i++)
        out[i] = 7;
    const pe_waves x = {.pos = pos, .n = ROWS, .step = STEP, .width = WIDTH, .blank = NAN};
    pe_angle_wave_fill(&x, 0.5, 3, 1, 2, out);
    pe_angle_wave_fill(&x, 0.25, 4, WIDTH, 1, out); /* a cosine beyond the row */
    pe_angle_wave_fill(&x, 0.25, -1, -1, 1, out);
    for (int s = 0; s < ROWS; s++) {
        const double p = pos[s * STEP], *row = out + s * WIDTH;
        assert_true(fabs(row[3] - 2 * sin(0.5 * p)) <= 1e-13 && fabs(row[1] - 2 * cos(0.5 * p)) <= 1e-13);
        assert_true(fabs(row[4] - sin(0.25 * p)) <= 1e-13);
        assert_true(row[0] == 7 && row[2] == 7);
    }
}

static void a_row_without_a_place_has_no_waves(void **state)
{
    double       pos[3] = {1, NAN, 2}, out[3 * WIDTH] = {0};
    const double ones[3 * WIDTH] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    const pe_waves all   = {.pos = pos, .n = 3, .step = 1, .width = WIDTH, .blank = NAN},
                   but_2 = {.pos = pos, .n = 3, .step = 1, .width = WIDTH, .blank = 2};
    pe_angle_wave_fill(&but_2, 1, 0, 1, 1, out);
    assert_true(out[0] != 0 && out[1] != 0);
    for (int i = WIDTH; i < 3 * WIDTH; i++)
        assert_true(out[i] == 0);
    assert_true(fabs(pe_angle_wave_fold(&but_2, 1, 0, -1, ones) - sin(1)) <= 1e-15);
    assert_true(fabs(pe_angle_wave_fold(&all, 1, 0, -1, ones) - sin(1) - sin(2)) <= 1e-15);
}

static void folding_is_the_adjoint_of_filling(void **state)
{
    double pos[ROWS * STEP], out[ROWS * WIDTH] = {0}, dout[ROWS * WIDTH], sum = 0;
    (void)state;
    make_positions(pos);
    for (int i = 0; i < ROWS * WIDTH; i++)
        dout[i] = posenc_random_normal(1, "dout", (uint64_t)i);
    const pe_waves x = {.pos = pos, .n = ROWS, .step = STEP, .width = WIDTH, .blank = NAN};
    pe_angle_wave_fill(&x, 0.3, 0, 4, 1, out);
    for (int i = 0; i < ROWS * WIDTH; i++)
        sum += out[i] * dout[i];
    assert_true(fabs(pe_angle_wave_fold(&x, 0.3, 0, 4, dout) - sum) <= 1e-14 * ROWS * WIDTH);
    assert_true(fabs(sum) > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_frequency_is_1_whatever_the_denominator),
        cmocka_unit_test(sine_and_cosine_reach_their_channels_and_no_others),
        cmocka_unit_test(a_row_without_a_place_has_no_waves),
        cmocka_unit_test(folding_is_the_adjoint_of_filling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
