/* SPDX-License-Identifier: MIT */
/*
 * test_turn: the rotation's table, rows in float and rows in double say the same
 *
 * The double row is the reference: it is held against cos and sin of libm at positions where the product of
 * position and frequency is exact (whole numbers times 1/64), to 1e-15 of the pair's length per operation. A
 * float row may be off by the kernel's 2^-22 and by the rounding of its table: cosine and sine carry 2^-25
 * each of the magnitude, times |a| + |b| <= sqrt(2) hypot.
 */
#include <posenc/registry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/rotation/rotation.h"

enum { M = 11, FIRST = 3, D = FIRST + 2 * M + 4, ROWS = 6 };

static char memory[64 << 10];

static pe_rotary make_turn(pe_layout layout, double magnitude)
{
    pe_arena  arena = {memory, 0};
    pe_rotary t;
    pe_rotation_lay_out(&t, &arena, D, 1, 1);
    assert_true(arena.used <= sizeof memory);
    pe_rotation_one_block(&t, M, FIRST, layout);
    t.magnitude = magnitude;
    t.growth    = NULL;
    for (int m = 0; m < M; m++)
        t.w[m] = (double)(64 - 5 * m) / 64;
    pe_rotation_finish(&t);
    return t;
}

static void turn_row(double *x, const pe_rotary *t, double position, double sign)
{
    pe_rotation_row(x, D, t, &position, sign);
}

static int64_t first_of(const pe_rotary *t, int64_t m)
{
    return t->first + (t->layout == PE_HALF ? m : 2 * m);
}

static int64_t second_of(const pe_rotary *t, int64_t m)
{
    return t->first + (t->layout == PE_HALF ? m + t->M : 2 * m + 1);
}

static void fill(double *x, const char *name)
{
    for (int64_t d = 0; d < D; d++)
        x[d] = (double)(float)posenc_random_normal(2, name, (uint64_t)d);
}

static const pe_layout layouts[] = {PE_INTERLEAVED, PE_HALF};

static void a_row_is_turned_by_cosine_and_sine_of_its_angle(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++)
        for (int position = -40; position <= 4000; position += 101) {
            const pe_rotary t = make_turn(layouts[l], 1.25);
            double          x[D], y[D];
            fill(x, "row");
            memcpy(y, x, sizeof y);
            turn_row(y, &t, position, 1);
            for (int64_t m = 0; m < M; m++) {
                const double a = x[first_of(&t, m)], b = x[second_of(&t, m)], angle = position * t.w[m];
                const double ya = 1.25 * (a * cos(angle) - b * sin(angle)),
                             yb = 1.25 * (b * cos(angle) + a * sin(angle));
                assert_true(fabs(y[first_of(&t, m)] - ya) <= 5e-15 * hypot(a, b));
                assert_true(fabs(y[second_of(&t, m)] - yb) <= 5e-15 * hypot(a, b));
            }
        }
}

static void channels_outside_the_block_pass_unchanged(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++) {
        const pe_rotary t = make_turn(layouts[l], 2);
        double          x[D], y[D];
        fill(x, "outside");
        memcpy(y, x, sizeof y);
        turn_row(y, &t, 77, 1);
        for (int64_t d = 0; d < D; d++)
            if (d < FIRST || d >= FIRST + 2 * M)
                assert_true(y[d] == x[d]);
    }
}

static void turning_back_undoes_turning_but_for_the_magnitude_squared(void **state)
{
    (void)state;
    for (int l = 0; l < 2; l++) {
        const pe_rotary t = make_turn(layouts[l], 1.5);
        double          x[D], y[D];
        fill(x, "back");
        memcpy(y, x, sizeof y);
        turn_row(y, &t, 123456, 1);
        turn_row(y, &t, 123456, -1);
        for (int64_t d = FIRST; d < FIRST + 2 * M; d++)
            assert_true(fabs(y[d] - 2.25 * x[d]) <= 5e-15);
    }
}

static void a_table_holds_the_row_s_own_cosines_and_sines_rounded_once(void **state)
{
    const pe_rotary        t   = make_turn(PE_HALF, 0.75);
    const posenc_positions pos = posenc_positions_range(1000000, 3);
    float                  table[ROWS * 2 * M];
    (void)state;
    pe_rotation_fill(table, pe_rotation_width(&t), &t, &pos, 0, 2, ROWS, NULL, NULL, 0,
                     pe_kernels_at(0)); /* elements 2 .. 7 */
    for (int64_t s = 0; s < ROWS; s++)
        for (int64_t m = 0; m < M; m++) {
            double c, n;
            pe_angle_cos_sin(1000000 + 3 * (double)(s + 2), t.k[m], &c, &n);
            assert_true(table[s * 2 * M + m] == (float)(c * 0.75));
            assert_true(table[s * 2 * M + M + m] == (float)(n * 0.75));
        }
}

static void rows_of_floats_agree_with_rows_of_doubles_on_every_instruction_set(void **state)
{
    const double           allowed = 0x1p-22 + 0x1p-25 * 1.4142135623730951;
    const posenc_positions pos     = posenc_positions_range(-5000, 2047);
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int l = 0; l < 2; l++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const pe_rotary t = make_turn(layouts[l], 1);
                float           table[ROWS * 2 * M], x[ROWS * D];
                double          start[D];
                fill(start, "rows");
                for (int i = 0; i < ROWS * D; i++)
                    x[i] = (float)start[i % D];
                pe_rotation_fill(table, pe_rotation_width(&t), &t, &pos, 0, 0, ROWS, NULL, NULL, 0,
                                 pe_kernels_at(isa));
                pe_rotation_rows(x, D, D, &t, table, ROWS, (float)sign, pe_kernels_at(isa));
                for (int64_t s = 0; s < ROWS; s++) {
                    double row[D];
                    memcpy(row, start, sizeof row);
                    turn_row(row, &t, pe_positions_at(&pos, 0, s), sign);
                    for (int64_t m = 0; m < M; m++) {
                        const double size = hypot(start[first_of(&t, m)], start[second_of(&t, m)]);
                        assert_true(fabs((double)x[s * D + first_of(&t, m)] - row[first_of(&t, m)]) <=
                                    allowed * size);
                        assert_true(fabs((double)x[s * D + second_of(&t, m)] - row[second_of(&t, m)]) <=
                                    allowed * size);
                    }
                    for (int64_t d = 0; d < D; d++)
                        if (d < FIRST || d >= FIRST + 2 * M)
                            assert_true((double)x[s * D + d] == start[d]);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_turned_by_cosine_and_sine_of_its_angle),
        cmocka_unit_test(channels_outside_the_block_pass_unchanged),
        cmocka_unit_test(turning_back_undoes_turning_but_for_the_magnitude_squared),
        cmocka_unit_test(a_table_holds_the_row_s_own_cosines_and_sines_rounded_once),
        cmocka_unit_test(rows_of_floats_agree_with_rows_of_doubles_on_every_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
