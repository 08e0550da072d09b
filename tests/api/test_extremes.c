/* SPDX-License-Identifier: MIT */
/*
 * test_extremes: numbers at the edge of what a caller can write down
 *
 * Sizes whose product no integer holds, positions far from any table, a window wider than all distances, NaN
 * where nothing reads it: each is refused in one sentence, or means what it says.
 */
#include <posenc/positions.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"
#include "refused.h"

/* ---- positions that become numbers of rows ---- */

/* Forward, then backward, of a case with its positions; the statuses must be this one. */
static void assert_attention(const attention_case *c, posenc_status status, const char *words)
{
    posenc_plan      *plan;
    posenc_error      err;
    posenc_tensor     params[CASE_PARAMS], dparams[CASE_PARAMS];
    attention_result  r   = {.o   = array_make4(c->dims.B, c->dims.H, c->dims.Lq, c->dims.Dv),
                             .lse = array_make(3, (int64_t[]){c->dims.B, c->dims.H, c->dims.Lq}),
                             .dq  = array_make4(c->dims.B, c->dims.H, c->dims.Lq, c->dims.D)};
    posenc_attend_in  in  = case_in(c, 0, params);
    posenc_attend_out out = {.size = sizeof(posenc_attend_out),
                             .o    = array_tensor(&r.o, 0),
                             .lse  = array_tensor(&r.lse, 0)};
    for (int i = 0; i < c->param_count; i++) {
        r.dparams[i] = array_make(c->params[i].ndim, c->params[i].shape);
        dparams[i]   = array_tensor(&r.dparams[i], 0);
    }
    const posenc_attend_grad grad = {.size    = sizeof(posenc_attend_grad),
                                     .o       = out.o,
                                     .lse     = out.lse,
                                     .dout    = array_tensor(&c->dout, 0),
                                     .dq      = array_tensor(&r.dq, 0),
                                     .dparams = dparams};
    assert_int_equal(posenc_plan_create(&plan, c->e, &c->dims, &c->options, &err), POSENC_OK);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    assert_refused(posenc_attend(plan, &in, &out, &work, &err), &err, status, words);
    assert_refused(posenc_attend_backward(plan, &in, &grad, &work, &err), &err, status, words);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    result_free(&r);
}

/* Also where the masks leave no pair: rows are made of positions all the same. */
static void positions_beyond_the_table_are_refused(void **state)
{
    static const struct {
        double q, k;
        int    mask;
    } all[]                = {{0.5, 0, POSENC_MASK_NONE},
                              {0, 0.5, POSENC_MASK_NONE},
                              {1e9 + 0.5, 1e9 + 0.5, POSENC_MASK_NONE},
                              {-1e9 - 0.5, 0, POSENC_MASK_NONE},
                              {0, 1e9, POSENC_MASK_CAUSAL},
                              {-1e9, 0, POSENC_MASK_CAUSAL},
                              {1e9, 0, POSENC_MASK_WINDOW}};
    const posenc_dims dims = {
        .B = 1, .H = 2, .G = 1, .Lq = 3, .Lk = 4, .D = 4, .Dv = 4, .d_model = 8, .L = 8};
    static const char *const specs[] = {"tupe[rows=20]", "tupe[rows=20:relative=yes]", "swin[window=4x2]",
                                        "swin_v2[window=4x2:mlp_width=4]", "absolute_distance[grid=4x2]"};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        attention_case c = case_make(specs[s], dims, 1);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            c.options.mask   = all[i].mask;
            c.options.window = all[i].mask & POSENC_MASK_WINDOW ? 2 : 0;
            c.q_pos          = posenc_positions_range(all[i].q, 1);
            c.k_pos          = posenc_positions_range(all[i].k, 1);
            assert_attention(&c, POSENC_ERROR_RANGE, "whole");
        }
        case_free(&c);
    }
}

/* ---- sizes whose product no integer holds ---- */

/* Rows of a tile are multiplied by what decays along it, and float does not hold all of that. The reference
   executor does, and positions that are nearer have a result. */
static void a_decay_that_float_does_not_hold_is_refused(void **state)
{
    static const struct {
        const char     *spec;
        double          step;
        posenc_executor by;
        posenc_status   status;
    } all[]                = {{"xpos", 1, POSENC_EXECUTOR_TILED, POSENC_OK},
                              {"xpos", 400, POSENC_EXECUTOR_TILED, POSENC_OK},
                              {"xpos", 600, POSENC_EXECUTOR_TILED, POSENC_ERROR_RANGE},
                              {"xpos", 600, POSENC_EXECUTOR_REFERENCE, POSENC_OK},
                              {"xpos[scale_base=2]", 1, POSENC_EXECUTOR_TILED, POSENC_OK},
                              {"xpos[scale_base=0.5]", 1, POSENC_EXECUTOR_TILED, POSENC_ERROR_RANGE},
                              {"xpos[scale_base=0.5]", 1, POSENC_EXECUTOR_REFERENCE, POSENC_OK}};
    const posenc_dims dims = {
        .B = 1, .H = 2, .G = 1, .Lq = 70, .Lk = 70, .D = 4, .Dv = 4, .d_model = 8, .L = 8};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        attention_case c = case_make(all[i].spec, dims, 3);
        c.q_pos = c.k_pos  = posenc_positions_range(0, all[i].step);
        c.options.mask     = POSENC_MASK_CAUSAL;
        c.options.executor = all[i].by;
        assert_attention(&c, all[i].status, all[i].status ? "POSENC_EXECUTOR_REFERENCE" : "");
        case_free(&c);
    }
}

static void shapes_beyond_all_integers_are_refused(void **state)
{
    uint8_t       valid[4] = {1, 1, 1, 1};
    double        to[8]    = {0};
    posenc_error  err;
    posenc_tensor from = posenc_tensor_contiguous(valid, POSENC_DTYPE_U8, 3,
                                                  (int64_t[]){1, 4, (int64_t)1 << 62}),
                  pos  = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 3, (int64_t[]){1, 0, 2});
    (void)state;
    assert_refused(posenc_positions_detr(&from, 0, 1e-6, &pos, &err), &err, POSENC_ERROR_SHAPE, "valid");
    from.shape[0] = (int64_t)1 << 62;
    from.shape[2] = 1;
    pos.shape[0]  = from.shape[0];
    pos.shape[1]  = 4;
    assert_refused(posenc_positions_detr(&from, 0, 1e-6, &pos, &err), &err, POSENC_ERROR_SHAPE, "");
    const posenc_tensor wide = posenc_tensor_from_blhd(to, POSENC_DTYPE_F64, 1, INT64_MAX, 2, 2);
    assert_int_equal(wide.shape[2], INT64_MAX); /* what the sanitizer says of its strides counts */
}

/* Rows without a token are not gone through, however many they are. */
static void empty_rows_take_no_time(void **state)
{
    const int64_t most   = INT64_C(1) << 52;
    int64_t       ids[4] = {1, 2, 3, 4};
    double        to[4];
    posenc_error  err;
    posenc_tensor none = posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, 2, (int64_t[]){most, 0}), pos = none,
                  image = posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, 3, (int64_t[]){1, 0, most}),
                  at    = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 3, (int64_t[]){1, 0, 2});
    (void)state;
    assert_int_equal(posenc_positions_fairseq(&none, 1, &pos, &err), POSENC_OK);
    assert_int_equal(posenc_positions_from_mask(&none, &pos, &err), POSENC_OK);
    assert_int_equal(posenc_positions_detr(&image, 1, 1e-6, &at, &err), POSENC_OK);
    assert_int_equal(ids[0], 1);
}

static void running_sums_of_empty_rows_take_no_time(void **state)
{
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = 1, .D = 1};
    const int64_t     shape[4] = {INT64_C(1) << 26, INT64_C(1) << 26, 0, 1};
    posenc_tensor     none     = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 4, shape),
                  sums         = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, 4, shape);
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "fox", NULL, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_OK);
    assert_int_equal(posenc_token_sums(plan, 0, &none, &sums, 0, &err), POSENC_OK);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* ---- what nobody had looked at ---- */

static void parameters_between_two_elements_are_refused(void **state)
{
    static const posenc_dims dims = {
        .B = 1, .H = 2, .G = 1, .Lq = 3, .Lk = 4, .D = 4, .Dv = 4, .d_model = 8, .L = 8};
    attention_case   c      = case_make("alibi[learned=yes]", dims, 3);
    float            all[3] = {0};
    posenc_tensor    params[CASE_PARAMS];
    posenc_attend_in in = case_in(&c, 0, params);
    posenc_tensor    bias;
    posenc_bound    *bound;
    posenc_plan     *plan;
    posenc_error     err;
    (void)state;
    array to = array_make(3, (int64_t[]){2, 3, 4});
    bias     = array_tensor(&to, 0);
    assert_int_equal(posenc_plan_create(&plan, c.e, &dims, NULL, &err), POSENC_OK);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_SCORES);
    params[0].data        = (char *)all + 1;
    assert_refused(posenc_bias(plan, &in, &bias, &work, &err), &err, POSENC_ERROR_ARGUMENT,
                   "between two elements");
    assert_refused(posenc_plan_bind(&bound, plan, params, &err), &err, POSENC_ERROR_ARGUMENT,
                   "between two elements");
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    array_free(&to);
    case_free(&c);
}

/* Where no query sees a key, all of lse is the sink, whose gradient is looked at before it is written. */
static void a_gradient_of_a_sink_without_keys_has_its_shape(void **state)
{
    static const posenc_dims dims = {.B = 1, .H = 4, .Lq = 2, .Lk = 2, .D = 4};
    const int64_t heads = 4, one = 1, o[4] = {1, 4, 2, 4}, k[4] = {1, 4, 0, 4}, rows[3] = {1, 4, 2};
    float         x[32], sink[4] = {0}, dsink[4] = {0};
    posenc_tensor params    = posenc_tensor_contiguous(sink, POSENC_DTYPE_F32, 1, &heads),
                  dparams   = posenc_tensor_contiguous(dsink, POSENC_DTYPE_F32, 1, &one);
    posenc_attend_in   in   = {.size   = sizeof in,
                               .q      = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, o),
                               .k      = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, k),
                               .v      = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, k),
                               .params = &params};
    posenc_attend_grad grad = {.size    = sizeof grad,
                               .o       = in.q,
                               .dout    = in.q,
                               .lse     = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 3, rows),
                               .dparams = &dparams};
    posenc_encoding   *e;
    posenc_plan       *plan;
    posenc_error       err;
    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = 1;
    grad.dlse = grad.lse;
    assert_int_equal(posenc_encoding_create(&e, "nope[sink=head]", NULL, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_OK);
    assert_refused(posenc_attend_backward(plan, &in, &grad, NULL, &err), &err, POSENC_ERROR_SHAPE, "sink");
    assert_true(dsink[0] == 0 && dsink[1] == 0);
    dparams.shape[0] = heads;
    assert_int_equal(posenc_attend_backward(plan, &in, &grad, NULL, &err), POSENC_OK);
    assert_true(dsink[3] == 2);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* A value too long to be kept is not left out. */
static void a_long_value_of_an_index_map_is_refused(void **state)
{
    const char *const long_value = "num_buckets="
                                   "00000000000000000000000000000000000000000000000000000000000000000008";
    int64_t           rel[3] = {-7, -7, -7}, out[1] = {9};
    posenc_error      err;
    (void)state;
    assert_refused(posenc_index_map("t5", long_value, rel, 1, out, &err), &err, POSENC_ERROR_SETTING,
                   "num_buckets");
    assert_int_equal(out[0], 9);
    assert_refused(posenc_index_map("t5", NULL, rel, 2, rel + 1, &err), &err, POSENC_ERROR_ARGUMENT,
                   "overlap");
    assert_int_equal(rel[1], -7);
    assert_int_equal(posenc_index_map("t5", NULL, rel, 3, rel, &err), POSENC_OK);
    assert_int_equal(rel[0], 7);
}

/* Positions in place of their tokens, or apart from them; each once. */
static void positions_that_overlap_are_refused(void **state)
{
    int64_t       ids[9] = {1, 1, 5, 6, 1, 7, 8, 9, 0};
    double        to[8];
    posenc_error  err;
    posenc_tensor tokens = posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, 2, (int64_t[]){2, 4}),
                  pos    = tokens,
                  valid  = posenc_tensor_contiguous(to, POSENC_DTYPE_U8, 3, (int64_t[]){1, 2, 2}),
                  at = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 3, (int64_t[]){1, 4, 2}), crooked = at;
    posenc_segment text = {.tokens = 2};
    (void)state;
    pos.data = ids + 1;
    assert_refused(posenc_positions_fairseq(&tokens, 1, &pos, &err), &err, POSENC_ERROR_ARGUMENT, "overlaps");
    assert_refused(posenc_positions_from_mask(&tokens, &pos, &err), &err, POSENC_ERROR_ARGUMENT, "overlaps");
    assert_refused(posenc_positions_detr(&valid, 0, 1e-6, &at, &err), &err, POSENC_ERROR_ARGUMENT,
                   "overlaps");
    crooked.data = (char *)to + 4;
    valid.data   = ids;
    assert_refused(posenc_positions_detr(&valid, 0, 1e-6, &crooked, &err), &err, POSENC_ERROR_ARGUMENT,
                   "between two elements of F64");
    pos.data      = to;
    pos.stride[0] = 0;
    assert_refused(posenc_positions_fairseq(&tokens, 1, &pos, &err), &err, POSENC_ERROR_SHAPE, "stride 0");
    pos.shape[1] = 3;
    assert_refused(posenc_positions_segments(&text, 1, 0, &pos, NULL, &err), &err, POSENC_ERROR_SHAPE,
                   "stride 0");
    assert_int_equal(ids[1], 1);
    assert_int_equal(posenc_positions_fairseq(&tokens, 1, &tokens, &err), POSENC_OK);
    assert_int_equal(ids[3], 3);
    assert_int_equal(ids[4], 1);
}

static void segments_of_too_many_tokens_are_refused(void **state)
{
    const posenc_segment all[] = {
        {.kind = POSENC_SEGMENT_LINES, .rows = 2, .columns = INT64_MAX},
        {.kind = POSENC_SEGMENT_LINES, .rows = INT64_MAX, .columns = INT64_MAX},
        {.kind = POSENC_SEGMENT_IMAGE, .rows = INT64_MAX, .columns = 2},
        {.kind = POSENC_SEGMENT_VIDEO, .frames = INT64_MAX, .rows = 1, .columns = 1},
        {.kind = POSENC_SEGMENT_TEXT, .tokens = INT64_MAX},
        {.kind = POSENC_SEGMENT_VIDEO, .frames = 1, .rows = 1, .columns = 1, .sound = INT64_MAX, .chunk = 1}};
    int64_t      tokens = 7;
    posenc_error err;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_refused(posenc_segments_tokens(&all[i], 1, &tokens, &err), &err, POSENC_ERROR_RANGE, "2^40");
    assert_int_equal(tokens, 7);
}

/* seconds and rate belong to a video; NaN there is refused, and elsewhere not read. */
static void a_time_that_is_no_number_is_refused(void **state)
{
    static const double times[][2] = {{NAN, 1}, {1, NAN}, {INFINITY, 1}, {1, INFINITY}, {-1, 1}, {1, -1}};
    int64_t             to[2][3], tokens;
    posenc_error        err;
    posenc_tensor       pos = posenc_tensor_contiguous(to, POSENC_DTYPE_I64, 2, (int64_t[]){2, 3});
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        posenc_segment s = {.kind    = POSENC_SEGMENT_VIDEO,
                            .frames  = 2,
                            .rows    = 1,
                            .columns = 1,
                            .seconds = times[i][0],
                            .rate    = times[i][1]};
        assert_refused(posenc_segments_tokens(&s, 1, &tokens, &err), &err, POSENC_ERROR_ARGUMENT, "seconds");
        s.kind = POSENC_SEGMENT_IMAGE;
        s.rows = 2;
        assert_int_equal(posenc_positions_segments(&s, 1, 0, &pos, NULL, &err), POSENC_OK);
        assert_int_equal(to[0][0], 0);
        assert_int_equal(to[1][0], 0);
        assert_int_equal(to[1][1], 1);
    }
}

static void a_padding_index_beyond_positions_is_refused(void **state)
{
    static const int64_t wrong[] = {INT64_MAX, INT64_MIN, ((int64_t)1 << 53) + 1};
    int64_t              ids[3] = {5, 6, 7}, to[3] = {9, 9, 9};
    posenc_error         err;
    posenc_tensor        tokens = posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, 2, (int64_t[]){1, 3}),
                  pos           = posenc_tensor_contiguous(to, POSENC_DTYPE_I64, 2, (int64_t[]){1, 3});
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(posenc_positions_fairseq(&tokens, wrong[i], &pos, &err), &err, POSENC_ERROR_ARGUMENT,
                       "padding_idx");
    assert_int_equal(to[0], 9);
    assert_int_equal(posenc_positions_fairseq(&tokens, -1, &pos, &err), POSENC_OK);
    assert_int_equal(to[2], 2);
}

/* As the farthest distances that logarithms tell apart. */
static void the_farthest_distance_has_a_bucket(void **state)
{
    static const char *const maps[] = {"t5", "deberta"};
    const int64_t            rel[2] = {INT64_MIN, -INT64_MAX};
    int64_t                  out[2];
    posenc_error             err;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(posenc_index_map(maps[i], NULL, rel, 2, out, &err), POSENC_OK);
        assert_int_equal(out[0], out[1]);
    }
}

/* Refused before anything is multiplied. */
static void windows_of_no_size_are_refused(void **state)
{
    int64_t      index[1] = {7};
    double       at[2]    = {7, 7};
    posenc_error err;
    (void)state;
    assert_refused(posenc_window_index(-2, INT64_MAX, index, &err), &err, POSENC_ERROR_RANGE, "window");
    assert_refused(posenc_window_coordinates(INT64_MAX, INT64_MAX, 0, 0, at, &err), &err, POSENC_ERROR_RANGE,
                   "window");
    assert_int_equal(index[0], 7);
}

/* ---- windows ---- */

/* A window that covers everything is no window, however wide, on either executor. */
static void a_window_beyond_all_distances_is_none(void **state)
{
    static const int64_t     windows[] = {1000, (int64_t)1 << 53, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    static const char *const specs[]   = {"nope", "alibi", "t5", "rope"};
    const posenc_dims        dims      = {
                    .B = 1, .H = 2, .G = 1, .Lq = 70, .Lk = 90, .D = 8, .Dv = 8, .d_model = 16, .L = 8};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int wide = 0; wide < 2; wide++) {
            attention_case   c    = case_make(specs[s], dims, 3);
            attention_result none = case_run(&c, wide);
            c.options.mask        = POSENC_MASK_WINDOW;
            for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                c.options.window   = windows[w];
                attention_result r = case_run(&c, wide);
                for (int64_t i = 0; i < r.o.count; i++) {
                    const double got  = wide ? r.o.wide[i] : (double)r.o.narrow[i],
                                 want = wide ? none.o.wide[i] : (double)none.o.narrow[i];
                    if (!(fabs(got - want) <= 1e-5))
                        fail_msg("%s, window %lld: %g instead of %g", specs[s], (long long)windows[w], got,
                                 want);
                }
                result_free(&r);
            }
            result_free(&none);
            case_free(&c);
        }
}

/* ---- strides ---- */

/* An axis of one element has any stride; what the sanitizer says of products with it counts. */
static void a_stride_of_one_element_may_be_any(void **state)
{
    static const int64_t strides[] = {0, INT64_MIN, INT64_MAX};
    const posenc_dims    dims      = {
                .B = 1, .H = 2, .G = 1, .Lq = 70, .Lk = 1, .D = 64, .Dv = 64, .d_model = 128, .L = 70};
    attention_case    c = case_make("nope", dims, 3);
    posenc_plan      *plan;
    posenc_error      err;
    posenc_attend_in  in  = case_in(&c, 0, NULL);
    array             o   = array_make4(1, 2, 70, 64);
    posenc_attend_out out = {.size = sizeof(posenc_attend_out), .o = array_tensor(&o, 0)};
    (void)state;
    assert_int_equal(posenc_plan_create(&plan, c.e, &dims, NULL, &err), POSENC_OK);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
    for (size_t s = 0; s < sizeof strides / sizeof *strides; s++) {
        for (int axis = 0; axis < 3; axis++)
            in.k.stride[axis] = in.v.stride[axis] = strides[s];
        in.q.stride[0] = out.o.stride[0] = strides[s];
        assert_int_equal(posenc_attend(plan, &in, &out, &work, &err), POSENC_OK);
        for (int64_t i = 0; i < o.count; i++)
            assert_true(o.narrow[i] == c.v.narrow[i % 64]); /* the only key has all the weight */
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    array_free(&o);
    case_free(&c);
}

/* ---- NaN and masks ---- */

/* A NaN makes the weights of hidden pairs NaN too, whose distances have no row of any table. Positions that
   skip are looked up one by one. */
static void nan_in_a_row_reads_no_rows_of_hidden_distances(void **state)
{
    static const char *const specs[] = {"absolute_distance[grid=264x1]+urpe[index_offset=263]",
                                        "t5+urpe[index_offset=20]", "shaw[max_relative=3]", "huang_m4",
                                        "toeplitz[first=-9:count=19]+urpe[index_offset=20]"};
    const posenc_dims        dims    = {
                  .B = 1, .H = 2, .G = 1, .Lq = 6, .Lk = 5, .D = 4, .Dv = 4, .d_model = 8, .L = 8};
    int64_t q[6] = {20, 26, 12, 24, 14, 28};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int64_t far = 0; far < 2; far++) {
            attention_case c        = case_make(specs[s], dims, 5);
            c.options.mask          = POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW;
            c.options.window        = 9;
            c.options.max_distances = 64;
            c.q_pos = posenc_positions_array(posenc_tensor_contiguous(q, POSENC_DTYPE_I64, 1, &dims.Lq));
            c.k_pos = posenc_positions_range(far ? 1e9 : 14, 3);
            for (int64_t i = 0; i < c.q.count; i += 5)
                c.q.narrow[i] = NAN;
            c.dout.narrow[0] = NAN;
            assert_attention(&c, POSENC_OK, "");
            case_free(&c);
        }
}

/* ---- vectors of one number ---- */

/* Distances beyond the table add a zero, not what lies before the table. */
static void vectors_of_one_number_end_with_their_table(void **state)
{
    const posenc_dims dims = {
        .B = 1, .H = 2, .G = 1, .Lq = 9, .Lk = 4, .D = 1, .Dv = 1, .d_model = 8, .L = 8};
    (void)state;
    attention_case c      = case_make("shaw[beyond=zero:max_relative=3]", dims, 3);
    c.q_pos               = posenc_positions_range(0, 1);
    attention_result want = case_run(&c, 1), got = case_run(&c, 0);
    for (int64_t i = 0; i < want.o.count; i++)
        if (!(fabs(want.o.wide[i] - (double)got.o.narrow[i]) < 1e-5))
            fail_msg("number %lld: %g instead of %g", (long long)i, (double)got.o.narrow[i], want.o.wide[i]);
    result_free(&want);
    result_free(&got);
    case_free(&c);
}

/* ---- gradients of one side ---- */

/* Keys alone: the gradients of frequencies are those with queries of zeros beside them. */
static void a_rotation_of_keys_alone_has_gradients(void **state)
{
    enum { L = 3, D = 4 };
    double x[2][L * D] = {{0}}, dto[2][L * D], dx[2][L * D], w[D / 2] = {1, 0.25}, dw[2][D / 2] = {{0}};
    const int64_t     shape[4] = {1, 1, L, D}, pairs = D / 2;
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = L, .Lk = L, .D = D};
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    (void)state;
    for (int i = 0; i < L * D; i++)
        x[1][i] = dto[0][i] = dto[1][i] = 1 + i % 5;
    assert_int_equal(posenc_encoding_create(&e, "rope[schedule=explicit]", NULL, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_OK);
    posenc_workspace    work   = workspace_for(plan, POSENC_RUN_ROTATE_BACKWARD);
    const posenc_tensor params = posenc_tensor_contiguous(w, POSENC_DTYPE_F64, 1, &pairs);
    for (int both = 0; both < 2; both++) {
        posenc_tensor      dparams = posenc_tensor_contiguous(dw[both], POSENC_DTYPE_F64, 1, &pairs);
        posenc_rotate_io   io      = {.size      = sizeof io,
                                      .k         = posenc_tensor_contiguous(x[1], POSENC_DTYPE_F64, 4, shape),
                                      .direction = 1,
                                      .params    = &params};
        posenc_rotate_grad grad    = {.size    = sizeof grad,
                                      .dto_k   = posenc_tensor_contiguous(dto[1], POSENC_DTYPE_F64, 4, shape),
                                      .dk      = posenc_tensor_contiguous(dx[1], POSENC_DTYPE_F64, 4, shape),
                                      .dparams = &dparams};
        io.to_k                    = grad.dk;
        if (both) {
            io.q       = posenc_tensor_contiguous(x[0], POSENC_DTYPE_F64, 4, shape);
            grad.dto_q = posenc_tensor_contiguous(dto[0], POSENC_DTYPE_F64, 4, shape);
            grad.dq    = posenc_tensor_contiguous(dx[0], POSENC_DTYPE_F64, 4, shape);
            io.to_q    = grad.dq;
        }
        if (posenc_rotate_backward(plan, &io, &grad, &work, &err))
            fail_msg("%s", err.message);
    }
    assert_true(dw[0][0] != 0);
    assert_memory_equal(dw[0], dw[1], sizeof dw[0]);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* ---- a table of cosines for queries alone ---- */

/* Keys have positions that the schedule's length follows; those of the queries are in their table, and
   whatever q_pos says is not read. */
static void a_table_for_queries_alone_leaves_their_positions_unread(void **state)
{
    enum { L = 3, D = 4 };
    float             q[L * D], k[L * D], to_q[2][L * D], to_k[2][L * D], table[L * D];
    const int64_t     shape[4] = {1, 1, L, D};
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = 64, .Lk = 64, .D = D};
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    (void)state;
    for (int i = 0; i < L * D; i++)
        q[i] = k[i] = (float)(i + 1);
    assert_int_equal(posenc_encoding_create(&e, "rope[schedule=dynamic:max_length=4:factor=2]", NULL, &err),
                     POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_OK);
    posenc_workspace work  = workspace_for(plan, POSENC_RUN_ROTATE);
    posenc_tensor    t     = posenc_tensor_contiguous(table, POSENC_DTYPE_F32, 3, (int64_t[]){1, L, D});
    posenc_rotary_in where = {.size = sizeof(posenc_rotary_in), .pos = posenc_positions_range(5, 1)};
    assert_int_equal(posenc_rotary_table(plan, POSENC_SIDE_QUERIES, &where, &t, &work, &err), POSENC_OK);
    for (int i = 0; i < 2; i++) {
        const posenc_rotate_io io = {.size  = sizeof(posenc_rotate_io),
                                     .q     = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, shape),
                                     .k     = posenc_tensor_contiguous(k, POSENC_DTYPE_F32, 4, shape),
                                     .q_pos = posenc_positions_range(i ? 1e300 : 0, i ? NAN : 1),
                                     .k_pos = posenc_positions_range(5, 1),
                                     .to_q  = posenc_tensor_contiguous(to_q[i], POSENC_DTYPE_F32, 4, shape),
                                     .to_k  = posenc_tensor_contiguous(to_k[i], POSENC_DTYPE_F32, 4, shape),
                                     .direction = 1,
                                     .q_table   = t};
        assert_int_equal(posenc_rotate(plan, &io, &work, &err), POSENC_OK);
    }
    assert_memory_equal(to_q[0], to_q[1], sizeof to_q[0]);
    assert_memory_equal(to_k[0], to_k[1], sizeof to_k[0]);
    assert_memory_equal(to_q[0], to_k[0], sizeof to_q[0]);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* ---- sizes that no memory holds ---- */

/* Sums and products of sizes are made before the sizes are checked. */
static void sizes_at_the_end_of_integers_are_refused(void **state)
{
    static const posenc_dims all[] = {{.H = 1, .Lq = INT64_MAX, .Lk = INT64_MAX, .D = 4},
                                      {.H = INT64_MAX, .Lq = 1, .D = 4},
                                      {.H = INT64_MIN, .Lq = 1, .D = INT64_MIN},
                                      {.H = 1, .Lq = 1, .D = 4, .L = INT64_MAX}};
    posenc_encoding         *e;
    posenc_plan             *plan;
    posenc_error             err;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "alibi", NULL, &err), POSENC_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_refused(posenc_plan_create(&plan, e, &all[i], NULL, &err), &err, POSENC_ERROR_SHAPE, "dims.");
    posenc_encoding_free(e);
}

static void sizes_that_no_memory_holds_are_refused(void **state)
{
    static const struct {
        const char *spec;
        posenc_dims dims;
    } all[] = {
        {"sinusoidal[dim=9007199254740992]", {.Lq = 8}},
        {"sinusoidal[dim=1099511627776:preset=t2t]", {.Lq = 8}},
        {"timestep[dim=9007199254740992]", {.Lq = 8, .d_model = 8}},
        {"learned[rows=9007199254740992]", {.Lq = 8, .d_model = 8}},
        {"t5[num_buckets=1048576]", {.B = (int64_t)1 << 31, .H = 65536, .Lq = (int64_t)1 << 20, .D = 64}},
        {"nope", {.B = 1, .H = 65536, .Lq = (int64_t)1 << 31, .D = 1}},
        {"rope", {.B = (int64_t)1 << 31, .H = 65536, .Lq = 1 << 16, .D = 64}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_encoding *e;
        posenc_plan     *plan;
        posenc_error     err;
        const char      *sentence = "";
        if (posenc_encoding_create(&e, all[i].spec, NULL, &err))
            fail_msg("%s: %s", all[i].spec, err.message);
        const posenc_status status = posenc_plan_create(&plan, e, &all[i].dims, NULL, &err);
        sentence                   = err.message;
        if (!status || status == POSENC_ERROR_MEMORY ||
            (!strstr(sentence, "too large") && !strstr(sentence, "at most")))
            fail_msg("%s: %s", all[i].spec, status ? sentence : "a plan was made");
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_beyond_the_table_are_refused),
        cmocka_unit_test(a_decay_that_float_does_not_hold_is_refused),
        cmocka_unit_test(shapes_beyond_all_integers_are_refused),
        cmocka_unit_test(empty_rows_take_no_time),
        cmocka_unit_test(running_sums_of_empty_rows_take_no_time),
        cmocka_unit_test(parameters_between_two_elements_are_refused),
        cmocka_unit_test(a_gradient_of_a_sink_without_keys_has_its_shape),
        cmocka_unit_test(a_long_value_of_an_index_map_is_refused),
        cmocka_unit_test(positions_that_overlap_are_refused),
        cmocka_unit_test(segments_of_too_many_tokens_are_refused),
        cmocka_unit_test(a_time_that_is_no_number_is_refused),
        cmocka_unit_test(a_padding_index_beyond_positions_is_refused),
        cmocka_unit_test(the_farthest_distance_has_a_bucket),
        cmocka_unit_test(windows_of_no_size_are_refused),
        cmocka_unit_test(a_window_beyond_all_distances_is_none),
        cmocka_unit_test(a_stride_of_one_element_may_be_any),
        cmocka_unit_test(nan_in_a_row_reads_no_rows_of_hidden_distances),
        cmocka_unit_test(vectors_of_one_number_end_with_their_table),
        cmocka_unit_test(a_rotation_of_keys_alone_has_gradients),
        cmocka_unit_test(a_table_for_queries_alone_leaves_their_positions_unread),
        cmocka_unit_test(sizes_at_the_end_of_integers_are_refused),
        cmocka_unit_test(sizes_that_no_memory_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
