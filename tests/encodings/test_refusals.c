/* SPDX-License-Identifier: MIT */
/*
 * test_refusals: settings that no room can work with, and runs that reach beyond its tables
 *
 * Each row is refused with the status and the words that it names: by the plan, where settings and sizes do
 * not fit together, or by the run, where positions lie beyond what was planned; a run next to it, within the
 * tables, is not refused. What is refused for every encoding alike (shapes, unknown settings, positions
 * beyond the rows of a table) is tests/api/test_checks.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

enum { H = 2, L = 4, D = 8, NUMBERS = 1 << 16, PARAMETERS = 16 };

static posenc_status plan_of(posenc_encoding **e, posenc_plan **plan, const char *spec, int64_t head_width,
                             posenc_error *err)
{
    const posenc_dims    dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = head_width, .d_model = 16, .L = 8};
    const posenc_options options = posenc_options_default();
    *e                           = NULL;
    *plan                        = NULL;
    const posenc_status status   = posenc_encoding_create(e, spec, NULL, err);
    return status ? status : posenc_plan_create(plan, *e, &dims, &options, err);
}

static void close_plan(posenc_encoding *e, posenc_plan *plan)
{
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

static void settings_that_do_not_fit_together_are_refused_by_the_plan(void **state)
{
    static const struct {
        const char   *spec;
        int64_t       head_width;
        posenc_status status;
        const char   *words;
    } rows[] = {
        {"nope[temper_length=9]", D, POSENC_ERROR_SETTING,
         "temper_length is given, but temperature=none does not use it"},
        {"alibi[temperature=ssmax:temper_scale=0.1]", D, POSENC_ERROR_SETTING,
         "temper_scale is given, but temperature=ssmax does not use it"},
        {"nope[temperature=logn]", D, POSENC_ERROR_SETTING,
         "temperature=logn needs temper_length, the number of positions of training"},
        {"nope[temperature=inkling]", D, POSENC_ERROR_SETTING, "temperature=inkling needs temper_length"},
        {"rope[temperature=llama4:temperature_rule=llama4]", D, POSENC_ERROR_SETTING,
         "temperature=llama4 and rope's temperature_rule=llama4 both temper"},
        {"nope[sink=head]+stick_breaking", D, POSENC_ERROR_UNSUPPORTED,
         "stick_breaking has no sink, for there is no denominator"},
        {"rope[axes=2:axis_rule=matrix:resonance=yes]", D, POSENC_ERROR_SETTING,
         "resonance=yes changes the frequencies of a schedule; axis_rule=matrix has its own"},
        {"rope[angles=ggml:cut_length=9]", D, POSENC_ERROR_SETTING,
         "cut_length changes the frequencies of a schedule; angles=ggml has its own"},
        {"rope[map=rerope:map_chunk=9]", D, POSENC_ERROR_SETTING, "map_chunk is given, but this map"},
        {"rope[map=rerope:axes=2:axis_rule=alternate]", D, POSENC_ERROR_SETTING, "leave out axes=2"},
        {"rope[map=rerope:temperature_rule=llama4]", D, POSENC_ERROR_SETTING, "take temperature="},
        {"rope[map=self_extend:map_factor=1.5]", D, POSENC_ERROR_SETTING, "whole numbers"},
        {"rope[map=dca:map_chunk=4:map_local=4]", D, POSENC_ERROR_SETTING, "below map_chunk"},
        {"rope[map=rerope]+shaw", D, POSENC_ERROR_UNSUPPORTED, "shaw multiplies them by more"},
        {"nope[softcap=0]", D, POSENC_ERROR_SETTING, "softcap"},
        {"absolute_distance[grid=4]", D, POSENC_ERROR_SETTING, "grid has 1 numbers; give rows and columns"},
        {"complex_order[word=9:vocab=9]", D, POSENC_ERROR_SETTING, "word=9 must be below vocab=9"},
        {"complex_order_attention", 5, POSENC_ERROR_SHAPE, "the head width D is 5; it must be even"},
        {"deberta[biases=query]", D, POSENC_ERROR_SETTING, "projected=no"},
        {"deberta[max_relative_positions=5:position_buckets=8]", D, POSENC_ERROR_SETTING,
         "max_relative_positions=5 is too small for 8 buckets; it must exceed 5"},
        {"floater[positions=1048576:states=65536:dim=32]", D, POSENC_ERROR_SETTING,
         "it must stay below 2^40"},
        {"learned_resize[grid_in=4:grid_out=2x2]", D, POSENC_ERROR_SETTING,
         "grid_in has 1 axes and grid_out 2"},
        {"learned_resize[grid_in=16777216x16777216x2:grid_out=2x2x2]", D, POSENC_ERROR_SETTING,
         "at most 2^48 are possible"},
        {"sandwich[d_bar=3]", D, POSENC_ERROR_SETTING, "d_bar=3 must be even"},
        {"sinusoidal_nd[shape=16777216x16777216x2]", D, POSENC_ERROR_SETTING, "a grid has at most 2^48"},
        {"swin[window=7]", D, POSENC_ERROR_SETTING, "window has 1 numbers; table_window needs window2"},
        {"swin_v2[window=7]", D, POSENC_ERROR_SETTING, "window has 1 numbers; give rows and columns"},
        {"swin_v2[pretrained_window=7]", D, POSENC_ERROR_SETTING, "pretrained_window has 1 numbers"},
        {"swin_v2[window=2x2:pretrained_window=1x2]", D, POSENC_ERROR_SETTING, "it must be at least 2 there"},
        {"t5[num_buckets=2]", D, POSENC_ERROR_SETTING, "num_buckets=2 leaves fewer than 2"},
        {"t5[max_distance=8]", D, POSENC_ERROR_SETTING, "max_distance=8 must exceed the 8 distances"},
        {"timestep[downscale_freq_shift=9:dim=16]", D, POSENC_ERROR_SETTING, "it must be 0 to 8"},
        {"transformer_xl[d_model=3]", D, POSENC_ERROR_SETTING, "d_model=3 must be even"},
        {"tupe[relative=yes:num_buckets=8:max_distance=2]", D, POSENC_ERROR_SETTING,
         "num_buckets=8 must be even and max_distance=2 above a quarter of it"},
        {"xpos[dim=3]", D, POSENC_ERROR_SETTING, "dim=3 must be even and at most the head width 8"},
        {"xpos[dim=10]", D, POSENC_ERROR_SETTING, "dim=10 must be even and at most the head width 8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_encoding    *e;
        posenc_plan        *plan;
        posenc_error        err    = {0};
        const posenc_status status = plan_of(&e, &plan, rows[i].spec, rows[i].head_width, &err);
        if (status != rows[i].status || !strstr(err.message, rows[i].words))
            fail_msg("%s: status %d, \"%s\"", rows[i].spec, (int)status, err.message);
        assert_null(plan);
        close_plan(e, plan);
    }
}

/* Attention of L queries from position `first` on with L keys from 0 on; all numbers are 0. */
static posenc_status attend_from(double first, const posenc_encoding *e, const posenc_plan *plan,
                                 posenc_error *err)
{
    static float        zeros[NUMBERS], o[H * L * D];
    const posenc_dims   dims     = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D, .d_model = 16, .L = 8};
    const int64_t       shape[4] = {1, H, L, D};
    const posenc_tensor qkv      = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F32, 4, shape);
    posenc_tensor       params[PARAMETERS];
    posenc_workspace    work = workspace_for(plan, POSENC_RUN_FORWARD);
    assert_in_range(posenc_param_count(e), 0, PARAMETERS);
    for (int p = 0; p < posenc_param_count(e); p++) {
        int32_t ndim;
        int64_t of[POSENC_MAX_DIMS], count = 1;
        assert_int_equal(posenc_param_shape(e, &dims, p, &ndim, of, err), POSENC_OK);
        for (int32_t a = 0; a < ndim; a++)
            count *= of[a];
        assert_in_range(count, 1, NUMBERS);
        params[p] = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F32, ndim, of);
    }
    const posenc_attend_in  in     = {.size   = sizeof in,
                                      .q      = qkv,
                                      .k      = qkv,
                                      .v      = qkv,
                                      .params = params,
                                      .q_pos  = posenc_positions_range(first, 1),
                                      .k_pos  = posenc_positions_range(0, 1)};
    const posenc_attend_out out    = {.size = sizeof out,
                                      .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, shape)};
    const posenc_status     status = posenc_attend(plan, &in, &out, &work, err);
    posenc_workspace_free(&work);
    return status;
}

static void a_run_beyond_the_tables_is_refused_and_its_neighbour_is_not(void **state)
{
    static const struct {
        const char *spec;
        double      within, beyond; /* positions of the first query */
        const char *words;
    } rows[] = {
        {"absolute_distance[grid=8x1]", 4, 5, "less than 8 rows of 1 apart, but keys lie up to 8 rows back"},
        {"absolute_distance[grid=4x2]", 4, 5, "less than 4 rows of 2 apart, but keys lie up to 4 rows back"},
        {"huang_m4[max_positions=8]", 4, 5, "max_positions=8 has vectors up to 7; set it higher"},
        {"swin[window=4x4,class_token=yes]", 4, -1, "whole numbers 0 to 16; set window"},
        {"toeplitz[first=-3:count=11]", 4, 5, "b holds those from -3 to 7; set first or count"},
        {"tupe[rows=9]", 4, 5, "rows=9 is for whole positions 0 to 7; set rows"},
        {"urpe[index_offset=7]", 4, 5, "its tables end at 7 back and 8 ahead; set index_offset and rows"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_encoding *e;
        posenc_plan     *plan;
        posenc_error     err = {0};
        if (plan_of(&e, &plan, rows[i].spec, D, &err) || attend_from(rows[i].within, e, plan, &err))
            fail_msg("%s: %s", rows[i].spec, err.message);
        if (attend_from(rows[i].beyond, e, plan, &err) != POSENC_ERROR_RANGE ||
            !strstr(err.message, rows[i].words))
            fail_msg("%s: status %d, \"%s\"", rows[i].spec, (int)err.status, err.message);
        close_plan(e, plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_do_not_fit_together_are_refused_by_the_plan),
        cmocka_unit_test(a_run_beyond_the_tables_is_refused_and_its_neighbour_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
