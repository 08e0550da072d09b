/* SPDX-License-Identifier: MIT */
/*
 * test_edges: empty runs, tensors that repeat or begin anywhere, what stands beyond a length, calls that fail
 *
 * Each was found by a stranger's program that read the contract and did what it allows.
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

/* ---- empty runs, and what stands beyond a length ---- */

static posenc_plan *plan_of(const char *spec, posenc_dims dims, int mask)
{
    posenc_encoding *e;
    posenc_plan     *plan    = NULL;
    posenc_options   options = posenc_options_default();
    options.mask             = mask;
    assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, &options, NULL), POSENC_OK);
    posenc_encoding_free(e);
    return plan;
}

/* x, read again and again along every axis. */
static posenc_tensor repeated(void *x, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    posenc_tensor t = posenc_tensor_contiguous(x, dtype, ndim, shape);
    for (int a = 0; a < ndim; a++)
        t.stride[a] = 0;
    return t;
}

static const int64_t many = (int64_t)1 << 50;

/* Items without tokens, and tokens without items. */
static void positions_of_empty_runs_take_no_time(void **state)
{
    static int64_t zero[1];
    static float   x[16];
    posenc_error   err;
    const int64_t  sizes[][2] = {{0, many}, {many, 0}};
    posenc_plan   *rows       = plan_of("sinusoidal", (posenc_dims){.Lq = 4, .d_model = 4}, 0);
    posenc_plan   *rope       = plan_of("rope", (posenc_dims){.B = 1, .H = 1, .Lq = 4, .D = 4}, 0);
    posenc_plan   *path =
        plan_of("path", (posenc_dims){.B = 1, .H = 1, .Lq = 4, .Lk = 4, .D = 4}, POSENC_MASK_CAUSAL);
    posenc_workspace work = workspace_for(rows, POSENC_RUN_ROWS);
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int64_t          B = sizes[i][0], L = sizes[i][1];
        const posenc_positions pos =
            posenc_positions_array(repeated(zero, POSENC_DTYPE_I64, 2, (int64_t[]){B ? B : 1, L}));
        posenc_tensor    y      = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 3, (int64_t[]){B, L, 4});
        posenc_tensor    q      = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (int64_t[]){B, 1, L, 4});
        posenc_rows_in   in     = {.size = sizeof in, .pos = pos};
        posenc_rotate_io io     = {.size = sizeof io, .q = q, .to_q = q, .q_pos = pos, .direction = 1};
        posenc_rotary_in angles = {.size = sizeof angles, .pos = pos};
        assert_int_equal(posenc_rows(rows, &in, &y, &work, &err), POSENC_OK);
        assert_int_equal(posenc_rotate(rope, &io, &work, &err), POSENC_OK);
        assert_int_equal(posenc_rotary_table(rope, 0, &angles, &y, &work, &err), POSENC_OK);
    }
    posenc_tensor k    = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 4, (int64_t[]){many, 1, 0, 4}),
                  beta = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 4, (int64_t[]){many, 1, 0, 1});
    assert_int_equal(posenc_path_keys(path, &k, &k, &beta, 0, &err), POSENC_OK);
    posenc_workspace_free(&work);
    posenc_plan_free(rows), posenc_plan_free(rope), posenc_plan_free(path);
}

/* Keys beyond a length may be many, and have any position. */
static void keys_beyond_a_length_have_no_positions(void **state)
{
    static const char *const specs[] = {"nope", "stick_breaking[remainder=self]"};
    static float             x[16], out[8];
    static int64_t           zero[1], length[1] = {3};
    double                   some[4] = {0, 1, 2, NAN};
    const posenc_dims        dims    = {.B = 1, .H = 1, .Lq = 1, .Lk = 4, .D = 4};
    const int64_t            keys[4] = {1, 1, 4, 4};
    posenc_error             err;
    (void)state;
    for (int s = 0; s < 2; s++) {
        posenc_plan      *plan = plan_of(specs[s], dims, POSENC_MASK_CAUSAL);
        posenc_workspace  work = workspace_for(plan, POSENC_RUN_FORWARD);
        posenc_tensor     q    = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (int64_t[]){1, 1, 1, 4});
        posenc_attend_in  in   = {.size      = sizeof in,
                                  .q         = q,
                                  .k         = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, keys),
                                  .q_pos     = posenc_positions_range(3, 1),
                                  .k_lengths = posenc_tensor_contiguous(length, POSENC_DTYPE_I64, 1, keys)};
        posenc_attend_out to   = {.size = sizeof to, .o = q};
        to.o.data              = out;
        in.v                   = in.k;
        in.k_pos =
            posenc_positions_array(posenc_tensor_contiguous(some, POSENC_DTYPE_F64, 1, (int64_t[]){4}));
        assert_int_equal(posenc_attend(plan, &in, &to, &work, &err), POSENC_OK);
        in.k.shape[2] = in.v.shape[2] = many; /* one row again and again */
        in.k.stride[2] = in.v.stride[2] = 0;
        in.k_pos                        = (posenc_positions){.start = 0};
        assert_int_equal(posenc_attend(plan, &in, &to, &work, &err), POSENC_OK);
        if (s == 0) {
            in.k_pos = posenc_positions_array(repeated(zero, POSENC_DTYPE_I64, 1, &many));
            assert_int_equal(posenc_attend(plan, &in, &to, &work, &err), POSENC_OK);
        }
        posenc_workspace_free(&work);
        posenc_plan_free(plan);
    }
}

/* ---- tensors that are as a caller has them ---- */

static void running_sums_read_tokens_of_any_stride(void **state)
{
    static const char *const specs[] = {"rope[content=step]", "fox", "wall"};
    const posenc_dims        dims    = {.B = 1, .H = 1, .Lq = 4, .Lk = 4, .D = 8};
    (void)state;
    for (int s = 0; s < 3; s++) {
        posenc_plan     *plan = plan_of(specs[s], dims, POSENC_MASK_CAUSAL);
        posenc_encoding *e;
        posenc_error     err;
        int64_t          shape[4];
        double           apart[64], side_by_side[32], sums[2][32];
        assert_int_equal(posenc_encoding_create(&e, specs[s], NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_token_shape(e, &dims, 0, shape, &err), POSENC_OK);
        const int64_t n = shape[2] * shape[3];
        for (int64_t i = 0; i < 2 * n; i++)
            apart[i] = (double)i + 1;
        for (int64_t i = 0; i < n; i++)
            side_by_side[i] = apart[2 * i];
        posenc_tensor token = posenc_tensor_contiguous(side_by_side, POSENC_DTYPE_F64, 4, shape),
                      to    = posenc_tensor_contiguous(sums[0], POSENC_DTYPE_F64, 4, shape);
        assert_int_equal(posenc_token_sums(plan, 0, &token, &to, 0, &err), POSENC_OK);
        token.data      = apart;
        token.stride[3] = 2;
        token.stride[2] *= 2;
        to.data = sums[1];
        assert_int_equal(posenc_token_sums(plan, 0, &token, &to, 0, &err), POSENC_OK);
        assert_memory_equal(sums[0], sums[1], (size_t)n * sizeof(double));
        token = repeated(apart, POSENC_DTYPE_F64, 4, shape); /* one number, and behind it nothing of them */
        assert_int_equal(posenc_token_sums(plan, 0, &token, &to, 0, &err), POSENC_OK);
        posenc_encoding_free(e);
        posenc_plan_free(plan);
    }
}

/* Rows of 34 bytes, or of an odd number of them. */
static void rows_of_bytes_begin_anywhere(void **state)
{
    static const struct {
        posenc_dtype dtype;
        int64_t      D;
        size_t       shift;
        int          lengths;
    } all[] = {{POSENC_DTYPE_Q8_0, 32, 0, 1},
               {POSENC_DTYPE_Q8_0, 32, 34, 0},
               {POSENC_DTYPE_F8_E4M3, 5, 0, 1},
               {POSENC_DTYPE_F8_E4M3, 5, 1, 0}};
    static _Alignas(64) unsigned char cache[1024];
    static float                      q[64], o[64];
    static const int64_t              lengths[2] = {3, 2};
    posenc_error                      err;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int64_t    D = all[i].D, few[] = {2, 1, 1, D};
        posenc_plan     *plan = plan_of("nope", (posenc_dims){.B = 2, .H = 1, .Lq = 1, .Lk = 3, .D = D}, 0);
        posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
        posenc_attend_in in = {.size = sizeof in, .q = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, few)};
        posenc_attend_out out = {.size = sizeof out,
                                 .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, few)};
        in.k                  = in.v =
            posenc_tensor_contiguous(cache + all[i].shift, all[i].dtype, 4, (int64_t[]){2, 1, 3, D});
        in.k.stride[1] = in.v.stride[1] = 7; /* of an axis of one element: any */
        if (all[i].lengths)
            in.k_lengths = posenc_tensor_contiguous((void *)lengths, POSENC_DTYPE_I64, 1, (int64_t[]){2});
        assert_int_equal(posenc_attend(plan, &in, &out, &work, &err), POSENC_OK);
        posenc_workspace_free(&work);
        posenc_plan_free(plan);
    }
}

/* What comes in may be one number for all; and a stride that nothing is read by may be any. */
static void cotangents_may_be_repeated(void **state)
{
    static float      x[64], o[64], dq[64], lse[8], one[1] = {1};
    const int64_t     shape[] = {1, 2, 4, 4}, rows[] = {1, 4, 8};
    const posenc_dims dims = {.B = 1, .H = 2, .Lq = 4, .Lk = 4, .D = 4};
    posenc_plan      *plan = plan_of("nope", dims, POSENC_MASK_CAUSAL), *rope = plan_of("rope", dims, 0),
                *table      = plan_of("sinusoidal", (posenc_dims){.Lq = 4, .d_model = 8}, 0);
    posenc_workspace   work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    posenc_error       err;
    posenc_tensor      q    = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, shape);
    posenc_attend_in   in   = {.size = sizeof in, .q = q, .k = q, .v = q};
    posenc_attend_grad grad = {.size = sizeof grad,
                               .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, shape),
                               .lse  = posenc_tensor_contiguous(lse, POSENC_DTYPE_F32, 3, shape),
                               .dlse = repeated(one, POSENC_DTYPE_F32, 3, shape),
                               .dout = q,
                               .dq   = posenc_tensor_contiguous(dq, POSENC_DTYPE_F32, 4, shape)};
    posenc_attend_out  out  = {.size = sizeof out, .o = grad.o, .lse = grad.lse};
    posenc_rows_in     row  = {.size = sizeof row};
    posenc_rows_grad   back = {.size = sizeof back,
                               .dy   = repeated(one, POSENC_DTYPE_F32, 3, rows),
                               .dx   = posenc_tensor_contiguous(dq, POSENC_DTYPE_F32, 3, rows)};
    (void)state;
    assert_int_equal(posenc_attend(plan, &in, &out, &work, &err), POSENC_OK);
    assert_int_equal(posenc_attend_backward(plan, &in, &grad, &work, &err), POSENC_OK);
    posenc_workspace of_rows = workspace_for(table, POSENC_RUN_ROWS | POSENC_RUN_ROWS_BACKWARD);
    assert_int_equal(posenc_rows_backward(table, &row, &back, &of_rows, &err), POSENC_OK);
    assert_true(dq[0] == 1 && dq[31] == 1);
    posenc_workspace of_rope = workspace_for(rope, POSENC_RUN_ROTATE);
    q.shape[2]               = 1;
    q.stride[2]              = INT64_MIN;
    posenc_rotate_io io      = {.size = sizeof io, .q = q, .to_q = q, .direction = 1};
    assert_int_equal(posenc_rotate(rope, &io, &of_rope, &err), POSENC_OK);
    posenc_workspace_free(&work), posenc_workspace_free(&of_rows), posenc_workspace_free(&of_rope);
    posenc_plan_free(plan), posenc_plan_free(rope), posenc_plan_free(table);
}

static void parameters_and_their_gradients_are_apart(void **state)
{
    const posenc_dims  dims = {.B = 1, .H = 2, .G = 2, .Lq = 4, .Lk = 4, .D = 4, .Dv = 4, .L = 8};
    attention_case     c    = case_make("transformer_xl", dims, 1);
    posenc_tensor      params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_plan       *plan = plan_of("transformer_xl", dims, 0);
    posenc_workspace   work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    posenc_attend_in   in   = case_in(&c, 0, params);
    array              lse  = array_make(3, (int64_t[]){1, 2, 4});
    posenc_error       err;
    posenc_attend_grad grad = {
        .size = sizeof grad, .o = in.q, .lse = array_tensor(&lse, 0), .dout = in.q, .dparams = dparams};
    (void)state;
    for (int i = 0; i < c.param_count; i++)
        dparams[i] = (posenc_tensor){0};
    assert_string_equal(posenc_param_name(c.e, 0), "u_bias");
    assert_string_equal(posenc_param_name(c.e, 1), "v_bias");
    dparams[0] = dparams[1] = array_tensor(&c.dout, 0);
    dparams[0].ndim = dparams[1].ndim = params[0].ndim;
    memcpy(dparams[0].shape, params[0].shape, sizeof params[0].shape);
    memcpy(dparams[0].stride, params[0].stride, sizeof params[0].stride);
    dparams[1] = dparams[0];
    assert_refused(posenc_attend_backward(plan, &in, &grad, &work, &err), &err, POSENC_ERROR_ARGUMENT,
                   "gradient of u_bias overlaps gradient of v_bias");
    params[1] = params[0];
    assert_refused(posenc_param_init(c.e, &dims, params, 1, &err), &err, POSENC_ERROR_ARGUMENT,
                   "u_bias overlaps v_bias");
    array_free(&lse);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    case_free(&c);
}

/* ---- calls that fail ---- */

static void calls_that_fail_write_nothing_and_say_one_line(void **state)
{
    posenc_layer     layer = {.window = 77};
    posenc_encoding *e;
    posenc_error     err;
    int32_t          ndim     = 77;
    int64_t          shape[6] = {9, 9, 9, 9, 9, 9}, rel[1] = {1};
    char             buf[10] = "#";
    posenc_sizes     sizes   = posenc_sizes_default();
    posenc_workspace work;
    posenc_plan     *plan = plan_of("rope", (posenc_dims){.B = 1, .H = 1, .Lq = 4, .D = 4}, 0);
    (void)state;
    assert_refused(posenc_layer_read(&layer, "rope+t5[window=3:window=4]", 0, &err), &err,
                   POSENC_ERROR_SETTING, "window is 3 and 4");
    assert_true(layer.window == 77 && !layer.spec[0]);
    assert_refused(posenc_layer_read(&layer, "rope\n:x", 0, &err), &err, POSENC_ERROR_SETTING, "'rope?:'");
    assert_refused(posenc_small_model("t5", &(posenc_dims){.H = 2, .D = 8, .L = 8}, 0, buf, sizeof buf, &err),
                   &err, POSENC_ERROR_ARGUMENT, "10 bytes");
    assert_string_equal(buf, "");
    assert_int_equal(posenc_encoding_create(&e, "dense_bias", NULL, &err), POSENC_OK);
    assert_refused(posenc_param_shape(e, &(posenc_dims){.H = 2, .D = 4, .Lq = 1 << 20, .Lk = 1 << 30}, 0,
                                      &ndim, shape, &err),
                   &err, POSENC_ERROR_SHAPE, "too large");
    assert_true(ndim == 77 && shape[0] == 9);
    posenc_encoding_free(e);
    for (int type = -1; type < 100; type += 100) {
        sizes.dtype = (posenc_dtype)type;
        assert_refused(posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, &sizes, &err), &err,
                       POSENC_ERROR_ARGUMENT, "sizes.dtype");
    }
    assert_refused(posenc_index_map("t5", NULL, rel, INT64_MIN, rel, &err), &err, POSENC_ERROR_ARGUMENT,
                   "at least 0");
    assert_refused(posenc_index_map("t\x1b\n5", NULL, rel, 1, rel, &err), &err, POSENC_ERROR_ARGUMENT,
                   "'t??5'");
    assert_refused(posenc_encoding_create(&e, "ro\npe", NULL, &err), &err, POSENC_ERROR_SETTING, "'ro?pe'");
    assert_refused(posenc_encoding_create(&e, "alibi[softcap=1e300]", NULL, &err), &err, POSENC_ERROR_SETTING,
                   "1e-30..1e30"); /* float does not hold it */
    assert_null(posenc_isa_at(INT32_MIN));
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_of_empty_runs_take_no_time),
        cmocka_unit_test(keys_beyond_a_length_have_no_positions),
        cmocka_unit_test(running_sums_read_tokens_of_any_stride),
        cmocka_unit_test(rows_of_bytes_begin_anywhere),
        cmocka_unit_test(cotangents_may_be_repeated),
        cmocka_unit_test(parameters_and_their_gradients_are_apart),
        cmocka_unit_test(calls_that_fail_write_nothing_and_say_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
