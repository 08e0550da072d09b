/* SPDX-License-Identifier: MIT */
/*
 * test_null: every function of posenc.h, rotary.h, positions.h and registry.h without its pointers
 *
 * What returns a status refuses and names the argument; what returns a value returns the one that its comment
 * states. The same for the pointers of structs: data, parameters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/positions.h>
#include <posenc/posenc.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>

#include "null_arguments.h"
#include "workspace.h"

enum { L = 3, H = 2, D = 8, WIDTH = H * D, N = H * L * D };

static posenc_encoding *e;
static posenc_plan     *plan;
static posenc_workspace work, two; /* for two plans */
static _Alignas(64) char both[1 << 16];
static posenc_rows_in     rows_in;
static posenc_rows_grad   rows_grad;
static posenc_rotate_io   io;
static posenc_rotate_grad rotate_grad;
static posenc_attend_in   in;
static posenc_attend_out  out;
static posenc_attend_grad grad;
static posenc_rotary_in   rotary_in;
static posenc_rerotate_io moved;
static posenc_tensor      param, dparam, y, S, bias, table, angle, temperature, tokens, pos, valid, places;

static const posenc_dims    dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
static const posenc_segment segment = {.tokens = L};

static posenc_tensor floats(int32_t ndim, const int64_t *shape)
{
    static float  memory[16 * N];
    static size_t used;
    int64_t       n = 1;
    for (int a = 0; a < ndim; a++)
        n *= shape[a];
    used += (size_t)n;
    assert_true(used <= sizeof memory / sizeof *memory);
    return posenc_tensor_contiguous(memory + used - n, POSENC_DTYPE_F32, ndim, shape);
}

static posenc_tensor heads(void)
{
    return floats(4, (const int64_t[]){1, H, L, D});
}

static posenc_tensor rows(void)
{
    return floats(3, (const int64_t[]){1, L, WIDTH});
}

static int set_up(void **state)
{
    static double  angles[L * D], temperatures[L];
    static int64_t ids[L], numbers[3 * L];
    static uint8_t pixels[L];
    posenc_error   err;
    (void)state;
    if (posenc_encoding_create(&e, "sinusoidal+rope+alibi", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    work        = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES |
                                          POSENC_RUN_BIAS_BACKWARD);
    two         = posenc_workspace_over(both, sizeof both);
    param       = floats(1, (const int64_t[]){H});
    dparam      = floats(1, (const int64_t[]){H});
    y           = rows();
    S           = floats(4, (const int64_t[]){1, H, L, L});
    bias        = floats(3, (const int64_t[]){H, L, L});
    table       = floats(3, (const int64_t[]){1, L, posenc_rotary_width(plan, POSENC_SIDE_QUERIES)});
    angle       = posenc_tensor_contiguous(angles, POSENC_DTYPE_F64, 3, (const int64_t[]){1, L, D / 2});
    temperature = posenc_tensor_contiguous(temperatures, POSENC_DTYPE_F64, 2, (const int64_t[]){1, L});
    tokens      = posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, 2, (const int64_t[]){1, L});
    pos         = posenc_tensor_contiguous(numbers, POSENC_DTYPE_I64, 2, (const int64_t[]){1, L});
    places      = posenc_tensor_contiguous(numbers, POSENC_DTYPE_I64, 2, (const int64_t[]){L, 3});
    valid       = posenc_tensor_contiguous(pixels, POSENC_DTYPE_U8, 3, (const int64_t[]){1, 1, L});
    rows_in     = (posenc_rows_in){.size = sizeof rows_in, .x = rows(), .params = &param};
    rows_grad   = (posenc_rows_grad){.size = sizeof rows_grad, .dy = rows(), .dx = rows()};
    const posenc_tensor q = heads(), k = heads(), v = heads(), o = heads();
    const posenc_tensor lse = floats(3, (const int64_t[]){1, H, L});
    io                      = (posenc_rotate_io){.size = sizeof io, .q = q, .to_q = o, .direction = 1};
    rotate_grad             = (posenc_rotate_grad){.size = sizeof rotate_grad, .dto_q = heads(), .dq = o};
    in                      = (posenc_attend_in){.size = sizeof in, .q = q, .k = k, .v = v, .params = &param};
    out                     = (posenc_attend_out){.size = sizeof out, .o = o, .lse = lse};
    grad                    = (posenc_attend_grad){.size = sizeof grad, .o = o, .lse = lse, .dout = heads()};
    rotary_in               = (posenc_rotary_in){.size = sizeof rotary_in};
    moved                   = (posenc_rerotate_io){.size = sizeof moved, .k = k, .to_k = o};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return 0;
}

/* ---- posenc.h ---- */

static posenc_status encoding_create(unsigned without, posenc_error *err)
{
    posenc_encoding    *made   = NULL;
    const posenc_status status = posenc_encoding_create(WITH(0, &made), WITH(1, "rope"), WITH(2, ""), err);
    posenc_encoding_free(made);
    return status;
}

static posenc_status encoding_create_in(unsigned without, posenc_error *err)
{
    posenc_encoding       *made = NULL;
    const posenc_allocator own  = {.size = sizeof own};
    const posenc_status    status =
        posenc_encoding_create_in(WITH(0, &made), WITH(1, "rope"), WITH(2, ""), WITH(3, &own), err);
    posenc_encoding_free(made);
    return status;
}

static posenc_status param_shape(unsigned without, posenc_error *err)
{
    int32_t ndim;
    int64_t shape[POSENC_MAX_DIMS];
    return posenc_param_shape(WITH(0, e), WITH(1, &dims), 0, WITH(2, &ndim), WITH(3, shape), err);
}

static posenc_status param_init(unsigned without, posenc_error *err)
{
    return posenc_param_init(WITH(0, e), WITH(1, &dims), WITH(2, &param), 1, err);
}

static posenc_status plan_create(unsigned without, posenc_error *err)
{
    posenc_plan         *made    = NULL;
    const posenc_options options = posenc_options_default();
    const posenc_status  status =
        posenc_plan_create(WITH(0, &made), WITH(1, e), WITH(2, &dims), WITH(3, &options), err);
    posenc_plan_free(made);
    return status;
}

static posenc_status plan_bind(unsigned without, posenc_error *err)
{
    posenc_bound       *made   = NULL;
    const posenc_status status = posenc_plan_bind(WITH(0, &made), WITH(1, plan), WITH(2, &param), err);
    posenc_bound_free(made);
    return status;
}

static posenc_status workspace_create(unsigned without, posenc_error *err)
{
    posenc_workspace    made  = {0};
    const posenc_sizes  sizes = posenc_sizes_default();
    const posenc_status status =
        posenc_workspace_create(WITH(0, &made), WITH(1, plan), POSENC_RUN_ROTATE, WITH(2, &sizes), err);
    posenc_workspace_free(&made);
    return status;
}

static posenc_status rows_tokens(unsigned without, posenc_error *err)
{
    int64_t count;
    return posenc_rows_tokens(WITH(0, e), WITH(1, &dims), WITH(2, &count), err);
}

static posenc_status run_rows(unsigned without, posenc_error *err)
{
    return posenc_rows(WITH(0, plan), WITH(1, &rows_in), WITH(2, &y), WITH(3, &work), err);
}

static posenc_status run_rows_backward(unsigned without, posenc_error *err)
{
    return posenc_rows_backward(WITH(0, plan), WITH(1, &rows_in), WITH(2, &rows_grad), WITH(3, &work), err);
}

static posenc_status run_rotate(unsigned without, posenc_error *err)
{
    return posenc_rotate(WITH(0, plan), WITH(1, &io), WITH(2, &work), err);
}

static posenc_status run_rotate_backward(unsigned without, posenc_error *err)
{
    return posenc_rotate_backward(WITH(0, plan), WITH(1, &io), WITH(2, &rotate_grad), WITH(3, &work), err);
}

static posenc_status run_attend(unsigned without, posenc_error *err)
{
    return posenc_attend(WITH(0, plan), WITH(1, &in), WITH(2, &out), WITH(3, &work), err);
}

static posenc_status run_attend_backward(unsigned without, posenc_error *err)
{
    return posenc_attend_backward(WITH(0, plan), WITH(1, &in), WITH(2, &grad), WITH(3, &work), err);
}

static posenc_status run_scores(unsigned without, posenc_error *err)
{
    return posenc_scores(WITH(0, plan), WITH(1, &in), WITH(2, &S), WITH(3, &work), err);
}

static posenc_status run_bias(unsigned without, posenc_error *err)
{
    return posenc_bias(WITH(0, plan), WITH(1, &in), WITH(2, &bias), WITH(3, &work), err);
}

static posenc_status run_bias_backward(unsigned without, posenc_error *err)
{
    return posenc_bias_backward(WITH(0, plan), WITH(1, &in), WITH(2, &bias), WITH(3, &dparam), WITH(4, &work),
                                err);
}

/* ---- rotary.h ---- */

static posenc_status run_table(unsigned without, posenc_error *err)
{
    return posenc_rotary_table(WITH(0, plan), POSENC_SIDE_QUERIES, WITH(1, &rotary_in), WITH(2, &table),
                               WITH(3, &work), err);
}

static posenc_status frequencies(unsigned without, posenc_error *err)
{
    double  w[D], magnitude;
    int64_t pairs;
    return posenc_rotary_frequencies(WITH(0, plan), WITH(1, w), WITH(2, &pairs), WITH(3, &magnitude), err);
}

static posenc_status run_pairs(unsigned without, posenc_error *err)
{
    posenc_rotary_pair pairs[D];
    return posenc_rotary_pairs(WITH(0, plan), WITH(1, &param), L, WITH(2, pairs), WITH(3, &work), err);
}

static posenc_status run_angles(unsigned without, posenc_error *err)
{
    return posenc_rotary_angles(WITH(0, plan), WITH(1, &rotary_in), WITH(2, &angle), WITH(3, &temperature),
                                WITH(4, &work), err);
}

static posenc_status rerotate(unsigned without, posenc_error *err)
{
    return posenc_rotary_rerotate(WITH(0, plan), WITH(1, plan), WITH(2, &moved), WITH(3, &two), err);
}

/* ---- positions.h ---- */

static posenc_status fairseq(unsigned without, posenc_error *err)
{
    return posenc_positions_fairseq(WITH(0, &tokens), 1, WITH(1, &pos), err);
}

static posenc_status from_mask(unsigned without, posenc_error *err)
{
    return posenc_positions_from_mask(WITH(0, &tokens), WITH(1, &pos), err);
}

static posenc_status detr(unsigned without, posenc_error *err)
{
    static double numbers[2 * L];
    posenc_tensor at = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, 3, (const int64_t[]){1, L, 2});
    return posenc_positions_detr(WITH(0, &valid), 0, 1e-6, WITH(1, &at), err);
}

static posenc_status segments_tokens(unsigned without, posenc_error *err)
{
    int64_t count;
    return posenc_segments_tokens(WITH(0, &segment), 1, WITH(1, &count), err);
}

static posenc_status positions_segments(unsigned without, posenc_error *err)
{
    int64_t delta;
    return posenc_positions_segments(WITH(0, &segment), 1, 0, WITH(1, &places), WITH(2, &delta), err);
}

static posenc_status index_map(unsigned without, posenc_error *err)
{
    int64_t rel = -1, to;
    return posenc_index_map(WITH(0, "t5"), WITH(1, ""), WITH(2, &rel), 1, WITH(3, &to), err);
}

static posenc_status window_index(unsigned without, posenc_error *err)
{
    int64_t index[1];
    return posenc_window_index(1, 1, WITH(0, index), err);
}

static posenc_status window_coordinates(unsigned without, posenc_error *err)
{
    double at[2];
    return posenc_window_coordinates(1, 1, 0, 0, WITH(0, at), err);
}

/* ---- registry.h ---- */

static posenc_status small_model(unsigned without, posenc_error *err)
{
    char buf[64];
    return posenc_small_model(WITH(0, "rope"), WITH(1, &dims), POSENC_MASK_NONE, WITH(2, buf), sizeof buf,
                              err);
}

static void each_call_refuses_and_names_the_pointer(void **state)
{
    static const null_subject subjects[] = {
        {"posenc_encoding_create", encoding_create, {"e", "spec", "settings?"}},
        {"posenc_encoding_create_in", encoding_create_in, {"e", "spec", "settings?", "allocator?"}},
        {"posenc_param_shape", param_shape, {"e", "dims", "ndim", "shape"}},
        {"posenc_param_init", param_init, {"e", "dims", "params"}},
        {"posenc_plan_create", plan_create, {"plan", "e", "dims", "options?"}},
        {"posenc_plan_bind", plan_bind, {"bound", "plan", "params"}},
        {"posenc_workspace_create", workspace_create, {"work", "plan", "sizes?"}},
        {"posenc_rows_tokens", rows_tokens, {"e", "dims", "tokens"}},
        {"posenc_rows", run_rows, {"plan", "in", "y", "workspace"}},
        {"posenc_rows_backward", run_rows_backward, {"plan", "in", "grad", "workspace"}},
        {"posenc_rotate", run_rotate, {"plan", "io", "workspace"}},
        {"posenc_rotate_backward", run_rotate_backward, {"plan", "io", "grad", "workspace"}},
        {"posenc_attend", run_attend, {"plan", "in", "out", "workspace"}},
        {"posenc_attend_backward", run_attend_backward, {"plan", "in", "grad", "workspace"}},
        {"posenc_scores", run_scores, {"plan", "in", "S", "workspace"}},
        {"posenc_bias", run_bias, {"plan", "in", "bias", "workspace"}},
        {"posenc_bias_backward", run_bias_backward, {"plan", "in", "bias", "dparams", "workspace"}},
        {"posenc_rotary_table", run_table, {"plan", "in", "table", "workspace"}},
        {"posenc_rotary_frequencies", frequencies, {"plan", "w?", "pairs", "magnitude?"}},
        {"posenc_rotary_pairs", run_pairs, {"plan", "params?", "pairs", "workspace"}},
        {"posenc_rotary_angles", run_angles, {"plan", "in", "angle?", "temperature?", "workspace"}},
        {"posenc_rotary_rerotate", rerotate, {"from", "to", "io", "workspace"}},
        {"posenc_positions_fairseq", fairseq, {"tokens", "pos"}},
        {"posenc_positions_from_mask", from_mask, {"mask", "pos"}},
        {"posenc_positions_detr", detr, {"valid", "pos"}},
        {"posenc_segments_tokens", segments_tokens, {"segments", "tokens"}},
        {"posenc_positions_segments", positions_segments, {"segments", "pos", "delta?"}},
        {"posenc_index_map", index_map, {"map", "settings?", "rel", "out"}},
        {"posenc_window_index", window_index, {"index"}},
        {"posenc_window_coordinates", window_coordinates, {"coordinates"}},
        {"posenc_small_model", small_model, {"name", "dims", "buf"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        null_try(&subjects[i]);
}

static void each_value_without_its_object_is_the_neutral_one(void **state)
{
    const posenc_example *examples = NULL;
    (void)state;
    posenc_encoding_free(NULL);
    posenc_plan_free(NULL);
    posenc_bound_free(NULL);
    posenc_workspace_free(NULL);
    assert_null(posenc_encoding_spec(NULL));
    assert_int_equal(posenc_param_count(NULL), 0);
    assert_null(posenc_param_name(NULL, 0));
    assert_int_equal(posenc_token_count(NULL), 0);
    assert_null(posenc_token_name(NULL, 0));
    assert_null(posenc_token_describe(NULL, 0));
    assert_int_equal(posenc_plan_workspace(NULL, POSENC_RUN_ATTEND, NULL), 0);
    assert_true(posenc_plan_operations(NULL) == 0);
    assert_int_equal(posenc_rows_width(NULL), 0);
    assert_int_equal(posenc_rows_coordinates(NULL), 1);
    assert_int_equal(posenc_rotary_coordinates(NULL), 1);
    assert_int_equal(posenc_rotary_heads(NULL), 1);
    assert_int_equal(posenc_rotary_width(NULL, POSENC_SIDE_KEYS), 0);
    assert_null(posenc_encoding_find(NULL));
    assert_non_null(posenc_encoding_nearest(NULL));
    assert_null(posenc_encoding_part(NULL, POSENC_PLACE_ROTARY));
    assert_null(posenc_param_describe(NULL, 0));
    assert_int_equal(posenc_param_trainable(NULL, 0), 0);
    assert_true(posenc_common_settings(NULL) > 0);
    assert_int_equal(posenc_examples(NULL, &examples), 0);
    assert_int_equal(posenc_examples(NULL, NULL), 0);
    assert_true(posenc_examples("alibi", NULL) > 0);
    assert_true(posenc_random_uniform(1, NULL, 2) == posenc_random_uniform(1, "", 2));
    assert_true(posenc_random_normal(1, NULL, 2) == posenc_random_normal(1, "", 2));
}

static void each_number_outside_an_enum_has_its_neutral_value(void **state)
{
    (void)state;
    assert_non_null(posenc_status_string((posenc_status)99));
    assert_non_null(posenc_status_string((posenc_status)-1));
    assert_int_equal(posenc_dtype_size((posenc_dtype)99), 0);
    assert_null(posenc_isa_at(-1));
    assert_null(posenc_isa_at(99));
    assert_null(posenc_param_name(e, -1));
    assert_null(posenc_param_name(e, 99));
    assert_null(posenc_token_name(e, 0));
    assert_null(posenc_token_describe(e, -1));
    assert_null(posenc_encoding_info_at(-1));
    assert_null(posenc_encoding_info_at(9999));
    assert_non_null(posenc_place_name((posenc_place)9));
    assert_null(posenc_encoding_part(e, (posenc_place)9));
    assert_null(posenc_param_describe(e, 9));
}

/* A member that a run needs, taken away; the sentence names it. */
static void each_member_that_a_run_needs_is_asked_for_by_its_name(void **state)
{
    const struct {
        void       *member;
        size_t      bytes;
        null_call  *call;
        const char *name;
    } all[] = {
        {&in.q, sizeof in.q, run_attend, "q"},
        {&in.k, sizeof in.k, run_attend, "k"},
        {&in.v, sizeof in.v, run_attend, "v"},
        {&in.params, sizeof in.params, run_attend, "params"},
        {&in.params, sizeof in.params, run_bias, "params"},
        {&param.data, sizeof param.data, run_attend, "slopes"},
        {&param.data, sizeof param.data, param_init, "slopes"},
        {&out.o, sizeof out.o, run_attend, "o"},
        {&out.o.data, sizeof out.o.data, run_attend, "o"},
        {&grad.o, sizeof grad.o, run_attend_backward, "o"},
        {&grad.lse, sizeof grad.lse, run_attend_backward, "lse"},
        {&grad.dout, sizeof grad.dout, run_attend_backward, "dout"},
        {&S.data, sizeof S.data, run_scores, "S"},
        {&bias.data, sizeof bias.data, run_bias, "bias"},
        {&io.q.data, sizeof io.q.data, run_rotate, "q"},
        {&io.to_q, sizeof io.to_q, run_rotate, "to_q"},
        {&rotate_grad.dto_q, sizeof rotate_grad.dto_q, run_rotate_backward, "dto_q"},
        {&rows_grad.dy, sizeof rows_grad.dy, run_rows_backward, "dy"},
        {&y.data, sizeof y.data, run_rows, "y"},
        {&table.data, sizeof table.data, run_table, "table"},
        {&moved.k, sizeof moved.k, rerotate, "k"},
        {&moved.to_k, sizeof moved.to_k, rerotate, "to_k"},
        {&work.memory, sizeof work.memory, run_attend, "workspace"},
        {&tokens.data, sizeof tokens.data, fairseq, "tokens"},
        {&pos.data, sizeof pos.data, fairseq, "pos"},
        {&valid.data, sizeof valid.data, detr, "valid"},
        {&places.data, sizeof places.data, positions_segments, "pos"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned char kept[sizeof(posenc_tensor)];
        posenc_error  err;
        memcpy(kept, all[i].member, all[i].bytes);
        memset(all[i].member, 0, all[i].bytes);
        const posenc_status status = all[i].call(0, &err);
        memcpy(all[i].member, kept, all[i].bytes);
        if ((status != POSENC_ERROR_ARGUMENT && status != POSENC_ERROR_WORKSPACE) ||
            !strstr(err.message, all[i].name))
            fail_msg("%s: status %d, \"%s\"", all[i].name, (int)status, err.message);
        if (all[i].call(0, &err))
            fail_msg("%s is there again: %s", all[i].name, err.message);
    }
}

/* A tensor that is none: axes, a type or a size that do not exist. */
static void each_tensor_that_is_none_is_refused(void **state)
{
    const struct {
        posenc_tensor *tensor;
        null_call     *call;
        const char    *name;
    } all[] = {
        {&in.q, run_attend, "q"},
        {&in.k, run_attend, "k"},
        {&in.v, run_attend, "v"},
        {&out.o, run_attend, "o"},
        {&out.lse, run_attend, "lse"},
        {&param, run_attend, "slopes"},
        {&param, param_init, "slopes"},
        {&in.q, run_attend_backward, "q"},
        {&grad.o, run_attend_backward, "o"},
        {&grad.lse, run_attend_backward, "lse"},
        {&grad.dout, run_attend_backward, "dout"},
        {&in.q, run_scores, "q"},
        {&in.k, run_scores, "k"},
        {&S, run_scores, "S"},
        {&bias, run_bias, "bias"},
        {&io.q, run_rotate, "q"},
        {&io.to_q, run_rotate, "to_q"},
        {&rotate_grad.dto_q, run_rotate_backward, "dto_q"},
        {&rotate_grad.dq, run_rotate_backward, "dq"},
        {&rows_in.x, run_rows, "x"},
        {&y, run_rows, "y"},
        {&rows_grad.dy, run_rows_backward, "dy"},
        {&rows_grad.dx, run_rows_backward, "dx"},
        {&table, run_table, "table"},
        {&angle, run_angles, "angle"},
        {&temperature, run_angles, "temperature"},
        {&moved.k, rerotate, "k"},
        {&moved.to_k, rerotate, "to_k"},
        {&tokens, fairseq, "tokens"},
        {&pos, fairseq, "pos"},
        {&tokens, from_mask, "mask"},
        {&valid, detr, "valid"},
        {&places, positions_segments, "pos"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int fault = 0; fault < 6; fault++) {
            const posenc_tensor kept = *all[i].tensor;
            posenc_tensor      *t    = all[i].tensor;
            posenc_error        err;
            t->ndim  = fault == 0 ? 0 : fault == 1 ? 7 : fault == 2 ? -1 : t->ndim;
            t->dtype = fault == 3 ? (posenc_dtype)99 : fault == 4 ? (posenc_dtype)-1 : t->dtype;
            if (fault == 5)
                t->shape[0] = -1;
            const posenc_status status = all[i].call(0, &err);
            *t                         = kept;
            if ((status != POSENC_ERROR_SHAPE && status != POSENC_ERROR_DTYPE) ||
                !strstr(err.message, all[i].name))
                fail_msg("%s, fault %d: status %d, \"%s\"", all[i].name, fault, (int)status, err.message);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_refuses_and_names_the_pointer),
        cmocka_unit_test(each_value_without_its_object_is_the_neutral_one),
        cmocka_unit_test(each_number_outside_an_enum_has_its_neutral_value),
        cmocka_unit_test(each_member_that_a_run_needs_is_asked_for_by_its_name),
        cmocka_unit_test(each_tensor_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
