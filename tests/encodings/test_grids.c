/* SPDX-License-Identifier: MIT */
/*
 * test_grids: tables of sines on grids and lines, where the sources say nothing or say it in code
 *
 * Non-square grids: the tokens of a range are places given as coordinates, in the order that a preset's code
 * walks them. Rows before the grid are zero. Every width from 1 on gives numbers, all of them sines and
 * cosines. The tutorial's program is written down once more, as it stands there, and must come out; so must
 * the gradient of the one number that is learned, which is a sum of products. Equal means equal bits where
 * the same code runs on the same positions.
 */
#include <posenc/positions.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

enum { HIGH = 3, WIDE = 5, PREFIX = 2, DIM = 12 };

static const char *const presets[] = {"hw_interleaved", "wh_interleaved",   "mae",        "mocov3", "timm",
                                      "timm_default",   "timm_interleaved", "big_vision", "detr"};
enum { PRESETS = sizeof presets / sizeof *presets };

/* Rows [L, dim] of an encoding at these positions; with dy its parameters' gradients too. Returns the
   status. */
static posenc_status try_rows(const char *spec, int64_t L, int64_t dim, posenc_positions pos, array *params,
                              array *y, const array *dy, array *dparams, posenc_error *err)
{
    const posenc_dims dims = {.B = 1, .Lq = L, .Lk = L, .d_model = dim};
    posenc_encoding  *e    = NULL;
    posenc_plan      *plan = NULL;
    *y                     = array_make(3, (int64_t[]){1, L, dim});
    if (posenc_encoding_create(&e, spec, NULL, err) || posenc_plan_create(&plan, e, &dims, NULL, err))
        fail_msg("%s: %s", spec, err->message);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    posenc_tensor    to = array_tensor(y, 1), p = params ? array_tensor(params, 1) : (posenc_tensor){0};
    posenc_tensor    dp     = dparams ? array_tensor(dparams, 1) : (posenc_tensor){0};
    posenc_rows_in   in     = {.size = sizeof in, .pos = pos, .params = &p};
    posenc_status    status = posenc_rows(plan, &in, &to, &work, err);
    if (!status && dy) {
        const posenc_rows_grad grad = {.size = sizeof grad, .dy = array_tensor(dy, 1), .dparams = &dp};
        status                      = posenc_rows_backward(plan, &in, &grad, &work, err);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return status;
}

static array rows_at(const char *spec, int64_t L, int64_t dim, posenc_positions pos)
{
    array        y;
    posenc_error err;
    if (try_rows(spec, L, dim, pos, NULL, &y, NULL, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    return y;
}

static posenc_positions places(const double *at, int64_t L, int64_t N)
{
    return posenc_positions_array(
        posenc_tensor_contiguous((void *)(uintptr_t)at, POSENC_DTYPE_F64, N > 1 ? 2 : 1, (int64_t[]){L, N}));
}

static const posenc_positions range = {0};

static void tokens_of_a_grid_are_its_places_in_the_order_of_the_preset(void **state)
{
    double at[HIGH * WIDE * 2];
    (void)state;
    for (int i = 0; i < PRESETS; i++) {
        char      spec[120], bare[60];
        const int columns = !strcmp(presets[i], "mocov3"), from = !strcmp(presets[i], "detr");
        for (int s = 0; s < HIGH * WIDE; s++) {
            at[2 * s]     = from + (columns ? s % HIGH : s / WIDE);
            at[2 * s + 1] = from + (columns ? s / HIGH : s % WIDE);
        }
        snprintf(bare, sizeof bare, "sinusoidal2d[preset=%s]", presets[i]);
        snprintf(spec, sizeof spec, "sinusoidal2d[preset=%s:height=%d:width=%d:prefix_rows=%d]", presets[i],
                 HIGH, WIDE, PREFIX);
        array grid = rows_at(spec, HIGH * WIDE + PREFIX, DIM, range),
              own  = rows_at(bare, HIGH * WIDE, DIM, places(at, HIGH * WIDE, 2));
        for (int d = 0; d < PREFIX * DIM; d++)
            assert_true(grid.wide[d] == 0);
        assert_memory_equal(grid.wide + PREFIX * DIM, own.wide, HIGH * WIDE * DIM * sizeof(double));
        array_free(&grid), array_free(&own);
    }
}

/* MoCo v3 and MAE have the same channels; on a square grid their tables differ by the order of tokens
   alone. */
static void columns_first_is_the_transpose(void **state)
{
    array mae  = rows_at("sinusoidal2d[preset=mae:height=4:width=4]", 16, DIM, range),
          moco = rows_at("sinusoidal2d[preset=mocov3:height=4:width=4]", 16, DIM, range);
    (void)state;
    for (int s = 0; s < 16; s++)
        assert_memory_equal(mae.wide + s * DIM, moco.wide + (s % 4 * 4 + s / 4) * DIM, DIM * sizeof(double));
    assert_true(largest(&mae, &moco) > 0.5);
    array_free(&mae), array_free(&moco);
}

static void axes_of_a_grid_come_in_order_the_last_fastest(void **state)
{
    double at[2 * 3 * 4 * 3];
    (void)state;
    for (int s = 0; s < 24; s++) {
        at[3 * s]     = s / 12;
        at[3 * s + 1] = s / 4 % 3;
        at[3 * s + 2] = s % 4;
    }
    for (int t2t = 0; t2t < 2; t2t++) {
        const char *spec = t2t ? "sinusoidal_nd[shape=2x3x4:preset=t2t]" : "sinusoidal_nd[shape=2x3x4]";
        array       grid = rows_at(spec, 24, 14, range), own = rows_at(spec, 24, 14, places(at, 24, 3));
        assert_memory_equal(grid.wide, own.wide, 24 * 14 * sizeof(double));
        assert_true(largest(&grid, NULL) > 0.5);
        array_free(&grid), array_free(&own);
    }
}

static void a_mask_without_padding_is_a_grid(void **state)
{
    static const char *const        plain = "sinusoidal2d[preset=detr:height=3:width=5:base=20]",
                             *const normal =
                                 "sinusoidal2d[preset=detr:height=3:width=5:base=20:normalize=yes]";
    uint8_t       valid[HIGH * WIDE];
    double        at[HIGH * WIDE * 2];
    posenc_tensor mask = posenc_tensor_contiguous(valid, POSENC_DTYPE_U8, 3, (int64_t[]){1, HIGH, WIDE}),
                  pos  = posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, (int64_t[]){1, HIGH * WIDE, 2});
    (void)state;
    memset(valid, 1, sizeof valid);
    for (int normalize = 0; normalize < 2; normalize++) {
        const char *spec = normalize ? normal : plain;
        assert_int_equal(posenc_positions_detr(&mask, normalize, 1e-6, &pos, NULL), POSENC_OK);
        array grid   = rows_at(spec, HIGH * WIDE, DIM, range),
              masked = rows_at(spec, HIGH * WIDE, DIM, posenc_positions_array(pos));
        assert_memory_equal(grid.wide, masked.wide, HIGH * WIDE * DIM * sizeof(double));
        array_free(&grid), array_free(&masked);
    }
}

static void positions_that_are_no_place_are_refused(void **state)
{
    const double at[6] = {0, 1, 2, 3, 4, 5};
    const struct {
        const char      *spec;
        posenc_positions pos;
        const char      *words;
    } all[] = {
        {"sinusoidal2d[height=2:width=1]",
         {.start = 0},
         "from 0 to 2; for sinusoidal2d it must hold whole token numbers"},
        {"sinusoidal2d[height=9:width=9]", {.start = -1, .step = 1}, "from -1 to 1; for sinusoidal2d"},
        {"sinusoidal_nd[shape=3x3]", {.start = 0, .step = 0.5}, "whole token numbers from 0 to 8"},
        {"sinusoidal2d", places(at, 3, 1), "1 coordinates per position; it must have 2"},
        {"sinusoidal_nd[shape=2x2x2]", places(at, 3, 2), "2 coordinates per position; it must have 3"},
        {"sinusoidal",
         posenc_positions_array(
             posenc_tensor_contiguous((void *)(uintptr_t)at, POSENC_DTYPE_F64, 3, (int64_t[]){1, 3, 2})),
         "2 coordinates per position; it must have 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        array        y;
        posenc_error err = {0};
        if (!try_rows(all[i].spec, 3, DIM, all[i].pos, NULL, &y, NULL, NULL, &err) ||
            !strstr(err.message, all[i].words))
            fail_msg("%s: '%s'", all[i].spec, err.message);
        assert_true(largest(&y, NULL) == 0);
        array_free(&y);
    }
}

/* From the width 1 on, with a denominator of 0 on the way; each row holds as many waves as fit, the rest is
   0. */
static void every_width_gives_numbers(void **state)
{
    static const char *const lines[] = {"sinusoidal",
                                        "sinusoidal[preset=t2t]",
                                        "sinusoidal[preset=marian]",
                                        "sinusoidal[preset=fairseq]",
                                        "sinusoidal[preset=tutorial003]",
                                        "sinusoidal[spacing=linear]",
                                        "timestep",
                                        "timestep[flip_sin_to_cos=yes]",
                                        "sinusoidal_nd[shape=3x5]",
                                        "sinusoidal_nd[shape=3x5:preset=t2t]"};
    char                     spec[80];
    (void)state;
    for (int64_t dim = 1; dim <= 13; dim++)
        for (int i = 0; i < PRESETS + (int)(sizeof lines / sizeof *lines); i++) {
            snprintf(spec, sizeof spec, i < PRESETS ? "sinusoidal2d[preset=%s:height=3:width=5]" : "%s",
                     i < PRESETS ? presets[i] : lines[i - PRESETS]);
            array y = rows_at(spec, 15, dim, range);
            for (int64_t x = 0; x < y.count; x++)
                assert_true(fabs(y.wide[x]) <= 1);
            for (int64_t d = dim / 4 * 4; i < PRESETS && d < dim; d++)
                for (int64_t s = 0; s < 15; s++)
                    assert_true(y.wide[s * dim + d] == 0);
            assert_true(dim < 4 || largest(&y, NULL) > 0.5);
            array_free(&y);
        }
}

/* pos_table[pos][i] = pos / 10000^(2i/d); then, except in row 0, even columns become sines and odd ones
   cosines. */
static void the_tutorials_program_comes_out_with_its_fault(void **state)
{
    array y = rows_at("sinusoidal[preset=tutorial003]", 40, DIM, range);
    (void)state;
    for (int pos = 0; pos < 40; pos++)
        for (int i = 0; i < DIM; i++) {
            const double angle = pos / pow(10000, 2.0 * i / DIM), want = i % 2 ? cos(angle) : sin(angle);
            assert_true(fabs(y.wide[pos * DIM + i] - (pos ? want : 0)) <= 1e-13);
        }
    array_free(&y);
}

/* At position 1 channel 2k is the sine of frequency k. */
static void other_spacings_keep_the_first_and_the_last_frequency(void **state)
{
    array w[3] = {rows_at("sinusoidal", 2, DIM, range), rows_at("sinusoidal[spacing=linear]", 2, DIM, range),
                  rows_at("sinusoidal[spacing=quadratic]", 2, DIM, range)};
    (void)state;
    for (int i = 0; i < 3; i++) {
        double frequency[DIM / 2];
        for (int k = 0; k < DIM / 2; k++)
            frequency[k] = asin(w[i].wide[DIM + 2 * k]);
        const double last = pow(10000, -5.0 / 6), left = 0.6; /* k = 2 of 0 .. 5 */
        const double all[3] = {pow(10000, -2.0 / 6), last + (1 - last) * left,
                               last + (1 - last) * left * left};
        assert_true(fabs(frequency[0] - 1) <= 1e-14 && fabs(frequency[5] - last) <= 1e-14);
        assert_true(fabs(frequency[2] - all[i]) <= 1e-14);
        array_free(&w[i]);
    }
}

static void sines_alone_and_cosines_alone_are_the_same_table_without_the_others(void **state)
{
    array both    = rows_at("sinusoidal", 9, DIM, range),
          sines   = rows_at("sinusoidal[channels=sin]", 9, DIM, range),
          cosines = rows_at("sinusoidal[channels=cos]", 9, DIM, range);
    (void)state;
    for (int i = 0; i < 9 * DIM; i++) {
        assert_true(sines.wide[i] == (i % 2 ? 0 : both.wide[i]));
        assert_true(cosines.wide[i] == (i % 2 ? both.wide[i] : 0));
    }
    array_free(&both), array_free(&sines), array_free(&cosines);
}

/* Marian's odd channel is a cosine more. */
static void the_odd_channel_of_marian_goes_with_the_cosines(void **state)
{
    array both    = rows_at("sinusoidal[preset=marian]", 3, 7, range),
          sines   = rows_at("sinusoidal[preset=marian:channels=sin]", 3, 7, range),
          cosines = rows_at("sinusoidal[preset=marian:channels=cos]", 3, 7, range);
    (void)state;
    for (int i = 0; i < 3 * 7; i++) {
        assert_true(sines.wide[i] == (i % 7 < 3 ? both.wide[i] : 0));
        assert_true(cosines.wide[i] == (i % 7 < 3 ? 0 : both.wide[i]));
    }
    array_free(&both), array_free(&sines), array_free(&cosines);
}

/* y = a p: the rows are a times the plain ones, and da is the sum of dy * p. */
static void a_learned_amplitude_has_its_gradient(void **state)
{
    static const char *const specs[] = {"sinusoidal", "sinusoidal[preset=marian]"};
    posenc_error             err;
    (void)state;
    for (int i = 0; i < 2; i++) {
        char  spec[80];
        array a = array_make(0, NULL), da = array_make(0, NULL), y, dy = array_make(3, (int64_t[]){1, 70, 7});
        double sum = 0;
        a.wide[0]  = 0.3;
        da.wide[0] = 10; /* gradients add */
        array_fill(&dy, 1, "dy", 1);
        snprintf(spec, sizeof spec, i ? "sinusoidal[preset=marian:scaled=yes]" : "sinusoidal[scaled=yes]");
        array plain = rows_at(specs[i], 70, 7, range);
        assert_int_equal(try_rows(spec, 70, 7, range, &a, &y, &dy, &da, &err), POSENC_OK);
        for (int64_t x = 0; x < y.count; x++) {
            assert_true(y.wide[x] == 0.3 * plain.wide[x]);
            sum += dy.wide[x] * plain.wide[x];
        }
        assert_true(fabs(da.wide[0] - 10 - sum) <= 1e-14 * (double)y.count && fabs(sum) > 0.1);
        array_free(&a), array_free(&da), array_free(&y), array_free(&dy), array_free(&plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_a_grid_are_its_places_in_the_order_of_the_preset),
        cmocka_unit_test(columns_first_is_the_transpose),
        cmocka_unit_test(axes_of_a_grid_come_in_order_the_last_fastest),
        cmocka_unit_test(a_mask_without_padding_is_a_grid),
        cmocka_unit_test(positions_that_are_no_place_are_refused),
        cmocka_unit_test(every_width_gives_numbers),
        cmocka_unit_test(the_tutorials_program_comes_out_with_its_fault),
        cmocka_unit_test(other_spacings_keep_the_first_and_the_last_frequency),
        cmocka_unit_test(sines_alone_and_cosines_alone_are_the_same_table_without_the_others),
        cmocka_unit_test(the_odd_channel_of_marian_goes_with_the_cosines),
        cmocka_unit_test(a_learned_amplitude_has_its_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
