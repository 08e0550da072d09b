/* SPDX-License-Identifier: MIT */
/* Tables, masks and positions with a mistake each: the verdict, where it begins, and its cause. */
#include "diagnose/diagnose.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { M = 8, WIDTH = 2 * M, ROWS = 5, KEYS = 6 };

static const double at[ROWS] = {0, 1, 63, 255, 1000};

typedef struct tables {
    double cosines[ROWS * WIDTH], sines[ROWS * WIDTH];
} tables;

/* As halves, angles (P + shift) * base^(-2m/dim) / factor, of a size. */
static tables make(double base, double dim, double factor, double shift, double size)
{
    tables t;
    for (int r = 0; r < ROWS; r++)
        for (int m = 0; m < WIDTH; m++) {
            const double a           = (at[r] + shift) * pow(base, -2.0 * (m % M) / dim) / factor;
            t.cosines[r * WIDTH + m] = size * cos(a);
            t.sines[r * WIDTH + m]   = size * sin(a);
        }
    return t;
}

static pe_turns_verdict judge_beside(const char *spec, const tables *t, int64_t D, const pe_rival *rivals,
                                     int count)
{
    posenc_encoding *e;
    posenc_error     err;
    pe_turns_verdict v;
    assert_int_equal(posenc_encoding_create(&e, spec, NULL, &err), POSENC_OK);
    const pe_turns turns = {.e           = e,
                            .D           = D,
                            .rows        = ROWS,
                            .width       = WIDTH,
                            .positions   = at,
                            .cosines     = t->cosines,
                            .sines       = t->sines,
                            .rivals      = rivals,
                            .rival_count = count};
    if (pe_turns_judge(&v, &turns, &err))
        fail_msg("%s", err.message);
    posenc_encoding_free(e);
    return v;
}

static pe_turns_verdict judge(const char *spec, tables t)
{
    return judge_beside(spec, &t, WIDTH, NULL, 0);
}

static void expect(pe_turns_verdict v, const char *cause)
{
    assert_int_equal(v.is_right, 0);
    assert_true(v.error > v.allowed);
    if (!strstr(v.cause, cause))
        fail_msg("\"%s\" does not say \"%s\"", v.cause, cause);
}

static void exact_angles_and_those_of_float32_are_right(void **state)
{
    tables t = make(1e4, WIDTH, 1, 0, 1);
    (void)state;
    assert_int_equal(judge("rope", t).is_right, 1);
    for (int r = 0; r < ROWS; r++)
        for (int m = 0; m < WIDTH; m++) {
            const float a            = (float)at[r] * (float)pow(1e4, -2.0 * (m % M) / WIDTH);
            t.cosines[r * WIDTH + m] = (double)cosf(a);
            t.sines[r * WIDTH + m]   = (double)sinf(a);
        }
    const pe_turns_verdict v = judge("rope", t);
    assert_int_equal(v.is_right, 1);
    assert_true(v.error > 1e-7);
    assert_string_equal(v.cause, "");
}

static void neighbours_are_told_from_halves(void **state)
{
    const tables halves = make(1e4, WIDTH, 1, 0, 1);
    tables       t;
    (void)state;
    for (int k = 0; k < ROWS * WIDTH; k++) {
        t.cosines[k] = halves.cosines[k / WIDTH * WIDTH + k % WIDTH / 2];
        t.sines[k]   = halves.sines[k / WIDTH * WIDTH + k % WIDTH / 2];
    }
    const pe_turns_verdict v = judge("rope", t);
    assert_true(v.is_right && v.is_interleaved);
    assert_int_equal(judge("rope", halves).is_interleaved, 0);
}

static void numbers_tell_base_and_factor_though_nobody_lists_them(void **state)
{
    (void)state;
    expect(judge("rope", make(5e5, WIDTH, 1, 0, 1)), "base=500000");
    expect(judge("rope", make(123456, WIDTH, 1, 0, 1)), "base=123456");
    expect(judge("rope", make(1e4, WIDTH, 3, 0, 1)), "linear scaling by 3");
    expect(judge("rope[schedule=linear:factor=4]", make(1e4, WIDTH, 1, 0, 1)),
           "scaling of the config is dropped");
    expect(judge("rope[schedule=linear:factor=4]", make(1e4, WIDTH, 8, 0, 1)), "factor=8");
}

static void shifts_signs_and_magnitudes_are_named(void **state)
{
    tables t = make(1e4, WIDTH, 1, 0, 1);
    (void)state;
    expect(judge("rope", make(1e4, WIDTH, 1, 1, 1)), "too large by one");
    expect(judge("rope", make(1e4, WIDTH, 1, -1, 1)), "too small by one");
    expect(judge("rope", make(1e4, WIDTH, 1, 7, 1)), "positions are off by +7");
    expect(judge("rope", make(1e4, WIDTH, 1, 0, 1.2)), "magnitude is 1.2 times");
    for (int k = 0; k < ROWS * WIDTH; k++)
        t.sines[k] = -t.sines[k];
    expect(judge("rope", t), "the sign is the other one");
}

static void a_width_that_is_that_of_the_head_is_named(void **state)
{
    const tables t = make(1e4, 2 * WIDTH, 1, 0, 1);
    (void)state;
    expect(judge_beside("rope[dim=16]", &t, 2 * WIDTH, NULL, 0),
           "divided by 32, the width of a head, instead of 16");
}

static void another_layers_table_comes_before_all_else(void **state)
{
    const tables     t = make(1e6, WIDTH, 1, 0, 1);
    posenc_encoding *e;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "rope[base=1e6]", NULL, NULL), POSENC_OK);
    const pe_rival rival = {"that of others", e, NULL};
    expect(judge_beside("rope", &t, WIDTH, &rival, 1), "it is that of others");
    posenc_encoding_free(e);
}

static void the_first_that_is_wrong_is_named(void **state)
{
    tables t = make(1e4, WIDTH, 1, 0, 1);
    (void)state;
    t.cosines[2 * WIDTH + 3] += 0.5;
    const pe_turns_verdict v = judge("rope", t);
    expect(v, "no known");
    assert_int_equal(v.row, 2);
    assert_int_equal(v.pair, 3);
    assert_true(fabs(v.got - v.wanted - 0.5) < 1e-6);
}

static void what_is_no_number_is_wrong(void **state)
{
    tables t = make(1e4, WIDTH, 1, 0, 1);
    (void)state;
    t.sines[5] = NAN;
    expect(judge("rope", t), "no known");
    assert_int_equal(judge_beside("rope[dim=8]", &t, WIDTH, NULL, 0).is_right, 0);
}

/* ---------------------------------------------------------------- masks --------------------- */

static unsigned char seen[KEYS * KEYS];

static pe_seen_verdict judge_seen(int causal, int64_t window, int64_t wanted, int64_t padding, int hidden)
{
    static unsigned char allowed[KEYS];
    for (int64_t i = 0; i < KEYS; i++)
        allowed[i] = i >= padding;
    for (int64_t i = 0; i < KEYS; i++)
        for (int64_t j = 0; j < KEYS; j++)
            seen[i * KEYS + j] =
                (!causal || j <= i) && (!window || i - j < window) && (!hidden || allowed[j]);
    return pe_seen_judge(&(pe_seen){seen, 1, KEYS, KEYS, 1, wanted, allowed});
}

static void masks_that_differ_are_described(void **state)
{
    static const struct {
        int         causal;
        int64_t     window, wanted, padding;
        int         hidden;
        const char *cause;
    } rows[] = {{1, 3, 3, 0, 1, ""},
                {1, 0, 0, 2, 1, ""},
                {1, 4, 3, 0, 1, "the window is 4 keys instead of 3"},
                {1, 2, 3, 0, 1, "the window is 2 keys instead of 3"},
                {1, 0, 3, 0, 1, "the window of 3 keys is dropped"},
                {1, 3, 0, 0, 1, "a window of 3 keys, of which"},
                {1, 0, 0, 2, 0, "padding is seen"},
                {0, 0, 0, 0, 1, "keys of the future are seen"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pe_seen_verdict v =
            judge_seen(rows[i].causal, rows[i].window, rows[i].wanted, rows[i].padding, rows[i].hidden);
        assert_int_equal(v.is_right, !*rows[i].cause);
        assert_int_equal(v.wrong == 0, !*rows[i].cause);
        if (!strstr(v.cause, rows[i].cause))
            fail_msg("\"%s\" does not say \"%s\"", v.cause, rows[i].cause);
    }
    const pe_seen_verdict v = judge_seen(1, 4, 3, 0, 1);
    assert_int_equal(v.i, 3);
    assert_int_equal(v.j, 0);
    assert_int_equal(v.wrong, 3);
}

static void positions_that_differ_are_described(void **state)
{
    static const double wanted[] = {4, 5, 6};
    char                cause[PE_CAUSE];
    (void)state;
    pe_positions_judge(cause, wanted, wanted, 3);
    assert_string_equal(cause, "");
    pe_positions_judge(cause, (const double[]){5, 6, 7}, wanted, 3);
    assert_string_equal(cause, "positions are off by +1");
    pe_positions_judge(cause, (const double[]){0, 1, 2}, wanted, 3);
    assert_string_equal(cause, "positions start again at 0 instead of 4");
    pe_positions_judge(cause, (const double[]){8, 10, 12}, wanted, 3);
    assert_string_equal(cause, "positions are multiplied by 2");
    pe_positions_judge(cause, (const double[]){4, 9, 6}, wanted, 3);
    assert_string_equal(cause, "position 5 is taken for 9");
}

static void every_encoding_has_conventions_that_differ_from_it(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        posenc_encoding *e;
        pe_conventions  *list;
        posenc_error     err;
        if (posenc_encoding_create(&e, posenc_encoding_info_at(i)->name, NULL, &err))
            continue; /* it needs a setting */
        assert_int_equal(pe_conventions_create(&list, e, &err), POSENC_OK);
        assert_true(list->count >= 2 && list->count < PE_MOST_CONVENTIONS);
        for (int c = 0; c < list->count; c++)
            assert_true(!list->items[c].e ||
                        strcmp(posenc_encoding_spec(list->items[c].e), posenc_encoding_spec(e)) != 0);
        pe_conventions_free(list);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_angles_and_those_of_float32_are_right),
        cmocka_unit_test(neighbours_are_told_from_halves),
        cmocka_unit_test(numbers_tell_base_and_factor_though_nobody_lists_them),
        cmocka_unit_test(shifts_signs_and_magnitudes_are_named),
        cmocka_unit_test(a_width_that_is_that_of_the_head_is_named),
        cmocka_unit_test(another_layers_table_comes_before_all_else),
        cmocka_unit_test(the_first_that_is_wrong_is_named),
        cmocka_unit_test(what_is_no_number_is_wrong),
        cmocka_unit_test(masks_that_differ_are_described),
        cmocka_unit_test(positions_that_differ_are_described),
        cmocka_unit_test(every_encoding_has_conventions_that_differ_from_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
