/* SPDX-License-Identifier: MIT */
/*
 * test_checks: every refusal of a plan or a run, its status and its sentence, and that nothing was written
 *
 * A table row takes a call that works, spoils one thing, and says with which status and words the library
 * must refuse it. Before each refused run all outputs and the workspace are filled with a pattern that must
 * still be there afterwards: checks come before the first write. The unspoiled call runs too, so a row cannot
 * pass because the call was wrong anyway. Encodings are found in the registry by what they are.
 */
#include <posenc/positions.h>
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

static const posenc_dims dims = {
    .B = 2, .H = 4, .G = 2, .Lq = 6, .Lk = 8, .D = 8, .Dv = 6, .d_model = 16, .L = 8};

/* A score encoding by distance with parameters. */
static const posenc_encoding_info *by_distance(void)
{
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place == POSENC_PLACE_SCORE && info->by_distance && info->param_count)
            return info;
    }
    fail();
    return NULL;
}

static const posenc_encoding_info *first_at(posenc_place place)
{
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (posenc_encoding_info_at(i)->place == place)
            return posenc_encoding_info_at(i);
    fail();
    return NULL;
}

static void assert_sentence(const posenc_error *err, posenc_status got, posenc_status status,
                            const char *words, int row)
{
    if (got != status || err->status != status || !strstr(err->message, words))
        fail_msg("row %d: '%s' (%s) instead of '%s' (%s)", row, err->message, posenc_status_string(got),
                 words, posenc_status_string(status));
}

/* ---- plans ---- */

typedef struct plan_row {
    posenc_dims   dims;
    posenc_status status;
    const char   *words;
} plan_row;

static void sizes_that_make_no_sense_are_refused(void **state)
{
    static const plan_row all[] = {
        {{.B = -1, .H = 2, .Lq = 4, .D = 4}, POSENC_ERROR_SHAPE, "dims.B is -1"},
        {{.H = 4, .G = 3, .Lq = 4, .D = 4},
         POSENC_ERROR_SHAPE,
         "dims.G is 3 key heads; it must divide dims.H = 4"},
        {{.H = 4, .Lq = 4}, POSENC_ERROR_SHAPE, "dims.H is 4 and dims.D is 0"},
        {{.D = 4, .Lq = 4}, POSENC_ERROR_SHAPE, "dims.H is 0 and dims.D is 4"},
        {{.H = 4, .D = 4}, POSENC_ERROR_SHAPE, "dims.Lq and dims.Lk are 0"},
        {{.H = 4, .D = 4, .Lq = -3}, POSENC_ERROR_SHAPE, "dims.Lq is -3"},
        {{.H = 100000, .D = 4, .Lq = 4}, POSENC_ERROR_SHAPE, "dims.H is 100000"},
        {{.H = 1, .D = 1000000, .Lq = 4}, POSENC_ERROR_SHAPE, "dims.D is 1000000"},
        {{.H = 1, .D = 4, .Lq = (int64_t)1 << 40}, POSENC_ERROR_SHAPE, "dims.Lq is"},
        {{.Lq = 4}, POSENC_ERROR_SHAPE, "acts in attention; dims.H and dims.D are needed"},
        {{.H = 65536, .D = 65536, .Lq = (int64_t)1 << 31, .d_model = 16}, POSENC_ERROR_SHAPE, "too large"},
    };
    posenc_encoding *e;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, by_distance()->name, NULL, NULL), POSENC_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_error        err    = {0};
        posenc_plan        *plan   = (posenc_plan *)(uintptr_t)&err;
        const posenc_status status = posenc_plan_create(&plan, e, &all[i].dims, NULL, &err);
        assert_sentence(&err, status, all[i].status, all[i].words, (int)i);
        assert_null(plan);
    }
    posenc_encoding_free(e);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    const posenc_options     good = posenc_options_default();
    posenc_options           bad[9];
    static const char *const words[9] = {"options.size is 0; set it",  "options.window is 0",
                                         "options.threads is -1",      "options.threads is 5000",
                                         "tile_q and tile_k",          "tile_q and tile_k",
                                         "options.executor is 7",      "options.mask is 64",
                                         "options.max_distances is -1"};
    posenc_encoding         *e;
    posenc_plan             *plan;
    posenc_error             err;
    (void)state;
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].size          = 0;
    bad[1].mask          = POSENC_MASK_WINDOW;
    bad[2].threads       = -1;
    bad[3].threads       = 5000;
    bad[4].tile_q        = -1;
    bad[5].tile_k        = 100000;
    bad[6].executor      = (posenc_executor)7;
    bad[7].mask          = 64;
    bad[8].max_distances = -1;
    assert_int_equal(posenc_encoding_create(&e, by_distance()->name, NULL, NULL), POSENC_OK);
    for (int i = 0; i < 9; i++)
        assert_sentence(&err, posenc_plan_create(&plan, e, &dims, &bad[i], &err), POSENC_ERROR_ARGUMENT,
                        words[i], i);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, &good, &err), POSENC_OK);
    posenc_plan_free(plan);
    assert_int_equal(posenc_plan_create(NULL, e, &dims, &good, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_plan_create(&plan, NULL, &dims, &good, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_plan_create(&plan, e, NULL, &good, &err), POSENC_ERROR_ARGUMENT);
    posenc_encoding_free(e);
}

static void a_table_of_distances_beyond_any_memory_is_refused(void **state)
{
    posenc_options   options = posenc_options_default();
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    (void)state;
    options.max_distances = (int64_t)1 << 61; /* times 8 bytes is 2^64 = 0: a workspace of nothing */
    assert_int_equal(posenc_encoding_create(&e, by_distance()->name, NULL, NULL), POSENC_OK);
    assert_sentence(&err, posenc_plan_create(&plan, e, &dims, &options, &err), POSENC_ERROR_SHAPE,
                    "too large", 0);
    posenc_encoding_free(e);
}

static void encodings_that_need_a_causal_mask_say_so(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (!info->causal_only)
            continue;
        for (int causal = 0; causal < 2; causal++) {
            attention_case    c = case_make(info->name, dims, 1);
            posenc_tensor     params[CASE_PARAMS];
            posenc_attend_in  in  = case_in(&c, 0, params);
            array             o   = array_make4(dims.B, dims.H, dims.Lq, dims.Dv);
            posenc_attend_out out = {.size = sizeof out, .o = array_tensor(&o, 0)};
            posenc_plan      *plan;
            posenc_error      err;
            c.options.mask = causal ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
            assert_int_equal(posenc_plan_create(&plan, c.e, &dims, &c.options, &err), POSENC_OK);
            posenc_workspace    work   = workspace_for(plan, POSENC_RUN_FORWARD);
            const posenc_status status = posenc_attend(plan, &in, &out, &work, &err);
            if (causal)
                assert_int_equal(status, POSENC_OK);
            else
                assert_sentence(&err, status, POSENC_ERROR_UNSUPPORTED, "causal mask", i);
            posenc_workspace_free(&work);
            posenc_plan_free(plan);
            array_free(&o);
            case_free(&c);
        }
    }
}

/* ---- attention ---- */

typedef struct call { /* one call that works, for rows to spoil */
    attention_case     c;
    attention_result   r;
    posenc_plan       *plan;
    posenc_tensor      params[CASE_PARAMS], dparams[CASE_PARAMS], S, bias;
    posenc_attend_in   in;
    posenc_attend_out  out;
    posenc_attend_grad grad;
    array              scores, biases;
    int64_t            ids[64];
    posenc_workspace   made, work;
} call;

static void call_make(call *x, int mask)
{
    char                        spec[300], small[256];
    const posenc_encoding_info *info = by_distance();
    memset(x, 0, sizeof *x);
    assert_int_equal(posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    snprintf(spec, sizeof spec, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
    x->c              = case_make(spec, dims, 1);
    x->c.options.mask = mask;
    x->r              = case_run(&x->c, 0);
    x->scores         = array_make4(dims.B, dims.H, dims.Lq, dims.Lk);
    x->biases         = array_make(3, (int64_t[]){dims.H, dims.Lq, dims.Lk});
    x->S              = array_tensor(&x->scores, 0);
    x->bias           = array_tensor(&x->biases, 0);
    assert_int_equal(posenc_plan_create(&x->plan, x->c.e, &dims, &x->c.options, NULL), POSENC_OK);
    x->in  = case_in(&x->c, 0, x->params);
    x->out = (posenc_attend_out){.size = sizeof(posenc_attend_out),
                                 .o    = array_tensor(&x->r.o, 0),
                                 .lse  = array_tensor(&x->r.lse, 0)};
    for (int i = 0; i < x->c.param_count; i++)
        x->dparams[i] = array_tensor(&x->r.dparams[i], 0);
    x->grad = (posenc_attend_grad){.size    = sizeof(posenc_attend_grad),
                                   .o       = x->out.o,
                                   .lse     = x->out.lse,
                                   .dout    = array_tensor(&x->c.dout, 0),
                                   .dq      = array_tensor(&x->r.dq, 0),
                                   .dk      = array_tensor(&x->r.dk, 0),
                                   .dv      = array_tensor(&x->r.dv, 0),
                                   .dparams = x->dparams};
    x->made = x->work = workspace_for(x->plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES);
}

static void call_free(call *x)
{
    posenc_workspace_free(&x->made);
    posenc_plan_free(x->plan);
    array_free(&x->scores);
    array_free(&x->biases);
    result_free(&x->r);
    case_free(&x->c);
}

enum { PATTERN = 0x3b };

/* The buffers that a run may write: fill them, or see that they are as they were filled. */
static void each_output(const call *x, void (*visit)(void *memory, size_t bytes), int is_backward)
{
    const attention_result *r = &x->r;
    visit(x->made.memory, x->made.bytes);
    visit(r->dq.narrow, (size_t)r->dq.count * sizeof(float));
    visit(r->dk.narrow, (size_t)r->dk.count * sizeof(float));
    visit(r->dv.narrow, (size_t)r->dv.count * sizeof(float));
    visit(x->scores.narrow, (size_t)x->scores.count * sizeof(float));
    visit(x->biases.narrow, (size_t)x->biases.count * sizeof(float));
    for (int i = 0; i < x->c.param_count; i++)
        visit(r->dparams[i].narrow, (size_t)r->dparams[i].count * sizeof(float));
    if (is_backward)
        return;
    visit(r->o.narrow, (size_t)r->o.count * sizeof(float));
    visit(r->lse.narrow, (size_t)r->lse.count * sizeof(float));
}

static void fill_pattern(void *memory, size_t bytes)
{
    memset(memory, PATTERN, bytes);
}

static void assert_pattern(void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((const unsigned char *)memory)[i], PATTERN);
}

typedef enum run { ATTEND = 1, BACK = 2, SCORES = 4, BIAS = 8 } run;
enum { SEES_V = ATTEND | BACK, SEES_Q = SEES_V | SCORES, EVERY = SEES_Q | BIAS, SHOWN = SCORES | BIAS };

static posenc_status execute(call *x, run which, posenc_error *err)
{
    switch (which) {
    case ATTEND: return posenc_attend(x->plan, &x->in, &x->out, &x->work, err);
    case BACK: return posenc_attend_backward(x->plan, &x->in, &x->grad, &x->work, err);
    case SCORES: return posenc_scores(x->plan, &x->in, &x->S, &x->work, err);
    case BIAS: return posenc_bias(x->plan, &x->in, &x->bias, &x->work, err);
    }
    return POSENC_OK;
}

/* What a row spoils. */
// clang-format off
static void q_without_data(call *x) { x->in.q.data = NULL; }
static void k_without_data(call *x) { x->in.k.data = NULL; }
static void v_without_data(call *x) { x->in.v.data = NULL; }
static void o_without_data(call *x) { x->out.o.data = x->grad.o.data = NULL; }
static void three_key_heads(call *x) { x->in.k.shape[1] = 3; }
static void one_key_head(call *x) { x->in.k.shape[1] = x->in.v.shape[1] = 1; }
static void two_heads(call *x) { x->in.q.shape[1] = 2; }
static void narrow_q(call *x) { x->in.q.shape[3] = 7; }
static void three_axes(call *x) { x->in.q.ndim = 3; }
static void k_of_another_batch(call *x) { x->in.k.shape[0] = 1; }
static void v_of_another_length(call *x) { x->in.v.shape[2] = 7; }
static void q_strided(call *x) { x->in.q.stride[3] = 2; }
static void v_strided(call *x) { x->in.v.stride[3] = 0; }
static void o_strided(call *x) { x->out.o.stride[3] = 2; x->grad.dq.stride[3] = 2; }
static void o_overlapping(call *x) { x->out.o.stride[1] = 0; x->grad.dq.stride[1] = 0; }
static void q_between_elements(call *x) { x->in.q.data = (char *)x->in.q.data + 1; }
static void o_between_elements(call *x)
{
    x->out.o.data   = (char *)x->out.o.data + 2;
    x->grad.dq.data = (char *)x->grad.dq.data + 2;
}
static void q_of_ids(call *x) { x->in.q.dtype = POSENC_DTYPE_I64; }
static void o_of_bytes(call *x) { x->out.o.dtype = POSENC_DTYPE_U8; x->grad.dq.dtype = POSENC_DTYPE_U8; }
static void lse_in_half(call *x) { x->out.lse.dtype = x->grad.lse.dtype = POSENC_DTYPE_F16; }
static void lse_of_another_shape(call *x) { x->out.lse.shape[2] = x->grad.lse.shape[2] = 5; }
static void o_of_another_shape(call *x) { x->out.o.shape[3] = x->grad.dout.shape[3] = 5; }
static void too_many_items(call *x) { x->in.q.shape[0] = x->in.k.shape[0] = x->in.v.shape[0] = 3; }
static void too_many_queries(call *x) { x->in.q.shape[2] = 7; }
static void too_many_keys(call *x) { x->in.k.shape[2] = x->in.v.shape[2] = 9; }
static void no_workspace(call *x) { x->work.memory = NULL; }
static void small_workspace(call *x) { x->work.bytes = 64; }
static void old_workspace(call *x) { x->work.size = 0; }
static void too_many_threads(call *x) { x->work.threads = 4097; }
static void crooked_workspace(call *x) { x->work.memory = (char *)x->made.memory + 8; }
static void no_params(call *x) { x->in.params = NULL; }
static void param_without_data(call *x) { x->params[0].data = NULL; }
static void param_in_half(call *x) { x->params[0].dtype = POSENC_DTYPE_F16; }
static void param_of_another_shape(call *x) { x->params[0].shape[0]++; }
static void gradient_in_half(call *x) { x->dparams[0].dtype = POSENC_DTYPE_BF16; }
static void gradient_of_another_shape(call *x) { x->dparams[0].shape[0]++; }
static void positions_that_stand_still(call *x) { x->in.q_pos = posenc_positions_range(5, 0); }
static void output_over_an_input(call *x) { x->in.v.data = (float *)x->out.o.data + 1; }
static void gradient_over_an_input(call *x) { x->in.q.data = x->grad.dq.data; }
static void half_positions(call *x) { x->in.q_pos = posenc_positions_range(0.5, 1); }
static void half_steps(call *x) { x->in.k_pos = posenc_positions_range(0, 0.5); }
static void far_positions(call *x) { x->in.q_pos = posenc_positions_range(0, 1000); }
static void endless_positions(call *x) { x->in.q_pos = posenc_positions_range(INFINITY, 1); }
static void huge_positions(call *x) { x->in.q_pos = posenc_positions_range(1e300, 1); }
static void scores_of_another_shape(call *x) { x->S.shape[3]--; x->bias.shape[0]--; }
static void scores_of_bytes(call *x) { x->S.dtype = x->bias.dtype = POSENC_DTYPE_U8; }
static void scores_overlapping(call *x) { x->S.stride[2] = x->bias.stride[1] = 0; }
static void no_padding_mask(call *x) { x->in.key_allowed.data = NULL; }
static void real_padding_mask(call *x) { x->in.key_allowed.dtype = POSENC_DTYPE_F32; }
static void padding_of_three_items(call *x) { x->in.key_allowed.shape[0] = 3; }
static void padding_of_another_length(call *x) { x->in.key_allowed.shape[1] = 7; }
static void no_explicit_mask(call *x) { x->in.allowed.data = NULL; }
static void explicit_mask_of_two_heads(call *x) { x->in.allowed.shape[1] = 2; }
static void no_query_segments(call *x) { x->in.q_segments.data = NULL; }
static void no_key_segments(call *x) { x->in.k_segments.data = NULL; }
static void segments_of_three_items(call *x) { x->in.k_segments.shape[0] = 3; }
static void segments_of_another_length(call *x) { x->in.q_segments.shape[1] = 5; }
static void real_segments(call *x) { x->in.q_segments.dtype = POSENC_DTYPE_F64; }

// clang-format on

static void positions_of_another_length(call *x)
{
    x->in.q_pos =
        posenc_positions_array(posenc_tensor_contiguous(x->ids, POSENC_DTYPE_I64, 1, (int64_t[]){5}));
}

static void positions_in_float(call *x)
{
    x->in.q_pos =
        posenc_positions_array(posenc_tensor_contiguous(x->ids, POSENC_DTYPE_F32, 1, (int64_t[]){6}));
}

// clang-format off
static const struct {
    void        (*spoil)(call *x);
    int           runs; /* which of them must refuse it */
    posenc_status status;
    const char   *words;
} rows[] = {
    {q_without_data,              SEES_Q, POSENC_ERROR_ARGUMENT, "q has no data"},
    {k_without_data,              SEES_Q, POSENC_ERROR_ARGUMENT, "k has no data"},
    {v_without_data,              SEES_V, POSENC_ERROR_ARGUMENT, "v has no data"},
    {o_without_data,              SEES_V, POSENC_ERROR_ARGUMENT, "o has no data"},
    {three_key_heads,             SEES_Q, POSENC_ERROR_SHAPE,
     "k has shape [2,3,8,8]; it must be [2,2,any,8]"},
    {one_key_head,                SEES_Q, POSENC_ERROR_SHAPE,
     "k has shape [2,1,8,8]; it must be [2,2,any,8]"},
    {two_heads,                   SEES_Q, POSENC_ERROR_SHAPE,
     "q has shape [2,2,6,8]; it must be [any,4,any,8]"},
    {narrow_q,                    SEES_Q, POSENC_ERROR_SHAPE,
     "q has shape [2,4,6,7]; it must be [any,4,any,8]"},
    {three_axes,                  SEES_Q, POSENC_ERROR_SHAPE, "q has shape [2,4,6]"},
    {k_of_another_batch,          SEES_Q, POSENC_ERROR_SHAPE,
     "k has shape [1,2,8,8]; it must be [2,2,any,8]"},
    {v_of_another_length,         SEES_V, POSENC_ERROR_SHAPE, "v has shape [2,2,7,6]; it must be [2,2,8,6]"},
    {q_strided,                   SEES_Q, POSENC_ERROR_SHAPE, "q: its last axis has stride 2; it must be 1"},
    {v_strided,                   SEES_V, POSENC_ERROR_SHAPE, "v: its last axis has stride 0; it must be 1"},
    {o_strided,                   SEES_V, POSENC_ERROR_SHAPE, "its last axis has stride 2"},
    {o_overlapping,               SEES_V, POSENC_ERROR_SHAPE,
     "has stride 0 on axis 1; outputs must not overlap themselves"},
    {q_between_elements,          SEES_Q, POSENC_ERROR_ARGUMENT,
     "q begins between two elements of F32; align its data"},
    {o_between_elements,          SEES_V, POSENC_ERROR_ARGUMENT, "begins between two elements"},
    {q_of_ids,                    SEES_Q, POSENC_ERROR_DTYPE, "q is I64; it must be F32, F64, F16 or BF16"},
    {o_of_bytes,                  SEES_V, POSENC_ERROR_DTYPE, "is U8"},
    {lse_in_half,                 SEES_V, POSENC_ERROR_DTYPE, "lse must be F32 or F64, not F16"},
    {lse_of_another_shape,        SEES_V, POSENC_ERROR_SHAPE, "lse has shape [2,4,5]; it must be [2,4,6]"},
    {o_of_another_shape,          SEES_V, POSENC_ERROR_SHAPE, "[2,4,6,5]; it must be [2,4,6,6]"},
    {too_many_items,              SEES_Q, POSENC_ERROR_RANGE,
     "the batch is 3 but the plan was made for at most 2"},
    {too_many_queries,            SEES_Q, POSENC_ERROR_RANGE,
     "the number of queries is 7 but the plan was made for at most 6"},
    {too_many_keys,               SEES_Q, POSENC_ERROR_RANGE,
     "the number of keys is 9 but the plan was made for at most 8"},
    {no_workspace,                EVERY,  POSENC_ERROR_WORKSPACE,
     "workspace has no memory; see posenc_workspace_create"},
    {small_workspace,             EVERY,  POSENC_ERROR_WORKSPACE,
     "workspace has 64 bytes, but this run takes"},
    {old_workspace,               EVERY,  POSENC_ERROR_WORKSPACE,
     "the workspace is empty, its size 0; see posenc_workspace_create"},
    {too_many_threads,            EVERY,  POSENC_ERROR_ARGUMENT,
     "workspace's threads are 4097; they must be 0 (as planned) to 4096"},
    {crooked_workspace,           EVERY,  POSENC_ERROR_WORKSPACE, "workspace is not aligned"},
    {no_params,                   EVERY,  POSENC_ERROR_ARGUMENT, "params is NULL, but"},
    {param_without_data,          EVERY,  POSENC_ERROR_ARGUMENT, "has no data"},
    {param_in_half,               EVERY,  POSENC_ERROR_DTYPE, "it must be F32 or F64"},
    {param_of_another_shape,      EVERY,  POSENC_ERROR_SHAPE, "has shape ["},
    {gradient_in_half,            BACK,   POSENC_ERROR_DTYPE, "it must be F32 or F64"},
    {gradient_of_another_shape,   BACK,   POSENC_ERROR_SHAPE, "has shape ["},
    {positions_that_stand_still,  EVERY,  POSENC_ERROR_ARGUMENT,
     "q_pos has start 5 and step 0; give a step, or an array"},
    {output_over_an_input,        ATTEND,  POSENC_ERROR_ARGUMENT, "attend: o overlaps v; it must be in"},
    {gradient_over_an_input,      BACK,   POSENC_ERROR_ARGUMENT, "attend: dq overlaps q; it must be in"},
    {half_positions,              EVERY,  POSENC_ERROR_RANGE,
     "depends on whole distances; positions must be whole numbers"},
    {half_steps,                  EVERY,  POSENC_ERROR_RANGE, "depends on whole distances"},
    {far_positions,               EVERY,  POSENC_ERROR_RANGE, "raise options.max_distances"},
    {endless_positions,           EVERY,  POSENC_ERROR_ARGUMENT, "q_pos: start and step must be finite"},
    {huge_positions,              EVERY,  POSENC_ERROR_RANGE, "positions must stay below 2^53"},
    {positions_of_another_length, EVERY,  POSENC_ERROR_SHAPE,
     "q_pos holds 1 x 5 positions; it must be [6]"},
    {positions_in_float,          EVERY,  POSENC_ERROR_DTYPE, "q_pos is F32; positions must be I64, I32"},
    {scores_of_another_shape,     SHOWN,  POSENC_ERROR_SHAPE, "it must be ["},
    {scores_of_bytes,             SHOWN,  POSENC_ERROR_DTYPE, "is U8; an output must be"},
    {scores_overlapping,          SHOWN,  POSENC_ERROR_SHAPE, "outputs must not overlap themselves"},
    {no_padding_mask,             SEES_V, POSENC_ERROR_ARGUMENT, "key_allowed has no data"},
    {real_padding_mask,           SEES_V, POSENC_ERROR_SHAPE, "key_allowed must be U8 for 1 or 2 items"},
    {padding_of_three_items,      SEES_V, POSENC_ERROR_SHAPE, "key_allowed must be U8 for 1 or 2 items"},
    {padding_of_another_length,   SEES_V, POSENC_ERROR_SHAPE,
     "key_allowed has shape [2,7]; it must be [any,8]"},
    {no_explicit_mask,            SEES_V, POSENC_ERROR_ARGUMENT, "allowed has no data"},
    {explicit_mask_of_two_heads,  SEES_V, POSENC_ERROR_SHAPE, "allowed must be U8 [1 or 2, 1 or 4, 6, 8]"},
    {no_query_segments,           SEES_V, POSENC_ERROR_ARGUMENT, "q_segments has no data"},
    {no_key_segments,             SEES_V, POSENC_ERROR_ARGUMENT, "k_segments has no data"},
    {segments_of_three_items,     SEES_V, POSENC_ERROR_SHAPE,
     "k_segments must be I64, I32 or U8 for 1 or 2 items"},
    {segments_of_another_length,  SEES_V, POSENC_ERROR_SHAPE,
     "q_segments has shape [2,5]; it must be [any,6]"},
    {real_segments,               SEES_V, POSENC_ERROR_SHAPE, "q_segments must be I64, I32 or U8"},
};
// clang-format on

static void a_spoiled_run_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int which = ATTEND; which <= BIAS; which *= 2) {
            call         x;
            posenc_error err = {0};
            if (!(rows[i].runs & which))
                continue;
            call_make(&x, POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS);
            assert_int_equal(execute(&x, (run)which, &err), POSENC_OK);
            each_output(&x, fill_pattern, which == BACK);
            rows[i].spoil(&x);
            assert_sentence(&err, execute(&x, (run)which, &err), rows[i].status, rows[i].words, (int)i);
            assert_int_equal(execute(&x, (run)which, NULL), rows[i].status); /* err may be NULL */
            each_output(&x, assert_pattern, which == BACK);
            call_free(&x);
        }
}

/* Each of these was ignored once, without a word. */
static void what_the_plan_does_not_ask_for_is_refused(void **state)
{
    (void)state;
    posenc_options   options = posenc_options_default();
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    options.window = 8;
    assert_int_equal(posenc_encoding_create(&e, "nope", NULL, NULL), POSENC_OK);
    assert_sentence(&err, posenc_plan_create(&plan, e, &dims, &options, &err), POSENC_ERROR_ARGUMENT,
                    "options.window is 8, but options.mask has no POSENC_MASK_WINDOW", 0);
    posenc_encoding_free(e);
    for (int explicit = 0; explicit < 2; explicit ++) {
        call x;
        call_make(&x, POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT);
        const posenc_attend_in both = x.in;
        call_free(&x);
        call_make(&x, POSENC_MASK_NONE);
        *(explicit ? &x.in.allowed : &x.in.key_allowed)      = explicit ? both.allowed : both.key_allowed;
        (explicit ? &x.in.allowed : &x.in.key_allowed)->data = x.c.allowed;
        assert_sentence(&err, execute(&x, ATTEND, &err), POSENC_ERROR_ARGUMENT,
                        explicit ? "allowed is given, but the plan's mask has no POSENC_MASK_EXPLICIT"
                                 : "key_allowed is given, but the plan's mask has no POSENC_MASK_KEY_PADDING",
                        explicit);
        call_free(&x);
    }
    for (int keys = 0; keys < 2; keys++) {
        const int64_t shape[2] = {1, keys ? dims.Lk : dims.Lq};
        uint8_t       ids[64]  = {0};
        call          x;
        call_make(&x, POSENC_MASK_NONE);
        *(keys ? &x.in.k_segments : &x.in.q_segments) =
            posenc_tensor_contiguous(ids, POSENC_DTYPE_U8, 2, shape);
        assert_sentence(&err, execute(&x, ATTEND, &err), POSENC_ERROR_ARGUMENT,
                        keys ? "k_segments is given, but the plan's mask has no POSENC_MASK_SEGMENTS"
                             : "q_segments is given, but the plan's mask has no POSENC_MASK_SEGMENTS",
                        keys);
        call_free(&x);
    }
}

/* Shorter runs than planned, without lse, in any storage type, are no mistakes. */
static void what_the_plan_allows_is_not_refused(void **state)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F64, POSENC_DTYPE_F16,
                                         POSENC_DTYPE_BF16};
    call                      x;
    posenc_error              err;
    (void)state;
    call_make(&x, POSENC_MASK_NONE);
    x.out.lse.data       = NULL;
    x.in.q_segments.data = x.in.k_segments.data = NULL; /* no mask asks for them */
    x.in.q.shape[2] = x.out.o.shape[2] = 1;
    x.in.k.shape[2] = x.in.v.shape[2] = 3;
    x.in.q.shape[0] = x.in.k.shape[0] = x.in.v.shape[0] = x.out.o.shape[0] = 1;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        double memory[8 * 6 * 8] = {0};
        x.in.q.data = x.in.k.data = x.in.v.data = memory;
        x.in.q.dtype = x.in.k.dtype = x.in.v.dtype = types[t];
        assert_int_equal(execute(&x, ATTEND, &err), POSENC_OK);
    }
    call_free(&x);
}

/* ---- rotary and input ---- */

static void a_rotation_without_a_rotary_part_is_refused(void **state)
{
    call         x;
    posenc_error err;
    int64_t      pairs;
    (void)state;
    call_make(&x, POSENC_MASK_NONE);
    const posenc_rotate_io io = {.size = sizeof io, .q = x.in.q, .to_q = x.in.q, .direction = 1};
    assert_sentence(&err, posenc_rotate(x.plan, &io, &x.work, &err), POSENC_ERROR_UNSUPPORTED,
                    "has no part at place rotary", 0);
    assert_sentence(&err, posenc_rotary_frequencies(x.plan, NULL, &pairs, NULL, &err),
                    POSENC_ERROR_UNSUPPORTED, "has no part at place rotary", 1);
    const posenc_rows_in in = {.size = sizeof in, .params = x.params};
    assert_sentence(&err, posenc_rows(x.plan, &in, &x.bias, &x.work, &err), POSENC_ERROR_UNSUPPORTED,
                    "has no part at place input", 2);
    call_free(&x);
}

static void a_spoiled_rotation_is_refused_and_writes_nothing(void **state)
{
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    array            q = array_make4(2, 4, 6, 8), to = array_make4(2, 4, 6, 8);
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, first_at(POSENC_PLACE_ROTARY)->name, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, NULL), POSENC_OK);
    posenc_workspace       work = workspace_for(plan, POSENC_RUN_FORWARD);
    const posenc_rotate_io good = {
        .size = sizeof good, .q = array_tensor(&q, 0), .to_q = array_tensor(&to, 0), .direction = 1};
    posenc_rotate_io bad[9];
    static const struct {
        posenc_status status;
        const char   *words;
    } want[9] = {
        {POSENC_ERROR_ARGUMENT, "direction is 0; it must be 1 or -1"},
        {POSENC_ERROR_ARGUMENT, "q or k must have data"},
        {POSENC_ERROR_ARGUMENT, "to_q has no data"},
        {POSENC_ERROR_SHAPE, "to_q has shape [2,4,5,8]; it must be [2,4,6,8]"},
        {POSENC_ERROR_SHAPE, "q has shape [2,3,6,8]"},
        {POSENC_ERROR_SHAPE, "last axis has stride 1"},
        {POSENC_ERROR_ARGUMENT, "q_pos: start and step must be finite"},
        {POSENC_ERROR_SHAPE, "outputs must not overlap"},
        {POSENC_ERROR_ARGUMENT, "rotate: to_q overlaps q; it must be that tensor"},
    };
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].direction      = 0;
    bad[1].q.data         = NULL;
    bad[2].to_q.data      = NULL;
    bad[3].to_q.shape[2]  = 5;
    bad[4].q.shape[1]     = 3;
    bad[5].q.stride[3]    = 2;
    bad[6].q_pos          = posenc_positions_range(NAN, 1);
    bad[7].to_q.stride[1] = 0;
    bad[8].q.shape[0] = bad[8].to_q.shape[0] = 1;
    bad[8].q.data                            = to.narrow + 8; /* from its second row on */
    memset(to.narrow, PATTERN, (size_t)to.count * sizeof(float));
    for (int i = 0; i < 9; i++)
        assert_sentence(&err, posenc_rotate(plan, &bad[i], &work, &err), want[i].status, want[i].words, i);
    assert_int_equal(posenc_rotate(plan, &good, NULL, &err), POSENC_ERROR_WORKSPACE);
    assert_pattern(to.narrow, (size_t)to.count * sizeof(float));
    assert_int_equal(posenc_rotate(plan, &good, &work, &err), POSENC_OK);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    array_free(&q), array_free(&to);
}

/* Every table with a row limit refuses a position at or beyond it, below 0, and between two rows. */
static void a_table_refuses_positions_it_has_no_row_for(void **state)
{
    int tried = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        posenc_encoding            *e;
        posenc_plan                *plan;
        posenc_error                err;
        char                        settings[80];
        if (!info->row_limit || info->place != POSENC_PLACE_INPUT)
            continue;
        snprintf(settings, sizeof settings, "%s=10", info->row_limit);
        assert_int_equal(posenc_encoding_create(&e, info->name, settings, NULL), POSENC_OK);
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, NULL), POSENC_OK);
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        assert_int_equal(posenc_param_shape(e, &dims, 0, &ndim, shape, NULL), POSENC_OK);
        array            table = array_make(ndim, shape), y = array_make(3, (int64_t[]){2, 6, dims.d_model});
        posenc_tensor    params = array_tensor(&table, 1), to = array_tensor(&y, 1);
        posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
        const struct {
            double      start, step;
            const char *words;
        } all[]           = {{5, 1, "position 10 is outside the table"},
                             {-1, 1, "position -1 is negative"},
                             {0.5, 1, "whole numbers"}};
        posenc_rows_in in = {.size = sizeof in, .params = &params, .pos = posenc_positions_range(4, 1)};
        assert_int_equal(posenc_rows(plan, &in, &to, &work, &err),
                         POSENC_OK); /* rows 4 .. 9: the last one counts */
        memset(y.wide, PATTERN, (size_t)y.count * sizeof(double));
        for (int x = 0; x < 3; x++) {
            in.pos = posenc_positions_range(all[x].start, all[x].step);
            assert_sentence(&err, posenc_rows(plan, &in, &to, &work, &err), POSENC_ERROR_RANGE, all[x].words,
                            x);
        }
        assert_pattern(y.wide, (size_t)y.count * sizeof(double));
        posenc_workspace_free(&work);
        array_free(&table), array_free(&y);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
        tried++;
    }
    assert_true(tried > 0);
}

static void spoiled_rows_are_refused_and_write_nothing(void **state)
{
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    array            x = array_make(3, (int64_t[]){2, 6, dims.d_model}), y = array_make(3, x.shape);
    posenc_tensor    bad[4];
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, first_at(POSENC_PLACE_INPUT)->name, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, NULL), POSENC_OK);
    posenc_workspace         work     = workspace_for(plan, POSENC_RUN_FORWARD);
    static const char *const words[4] = {"y has no data", "it must be [any,any,16]", "y is I64",
                                         "outputs must not overlap"};
    posenc_rows_in           in       = {.size = sizeof in, .x = array_tensor(&x, 1)};
    for (int i = 0; i < 4; i++)
        bad[i] = array_tensor(&y, 1);
    bad[0].data      = NULL;
    bad[1].shape[2]  = 15;
    bad[2].dtype     = POSENC_DTYPE_I64;
    bad[3].stride[1] = 0;
    memset(y.wide, PATTERN, (size_t)y.count * sizeof(double));
    for (int i = 0; i < 4; i++) {
        assert_true(posenc_rows(plan, &in, &bad[i], &work, &err) != POSENC_OK);
        assert_non_null(strstr(err.message, words[i]));
    }
    posenc_tensor to = array_tensor(&y, 1);
    in.x.shape[1]    = 5;
    assert_sentence(&err, posenc_rows(plan, &in, &to, &work, &err), POSENC_ERROR_SHAPE,
                    "x has shape [2,5,16]; it must be [2,6,16]", 0);
    in.x.shape[1] = 6;
    assert_int_equal(posenc_rows(plan, &in, &to, NULL, &err), POSENC_ERROR_WORKSPACE);
    in.x.dtype = POSENC_DTYPE_I64;
    assert_sentence(&err, posenc_rows(plan, &in, &to, &work, &err), POSENC_ERROR_DTYPE, "x is I64", 1);
    assert_pattern(y.wide, (size_t)y.count * sizeof(double));
    in.x.dtype = POSENC_DTYPE_F64;
    assert_int_equal(posenc_rows(plan, &in, &to, &work, &err), POSENC_OK);
    posenc_workspace_free(&work);
    array_free(&x), array_free(&y);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* ---- index maps ---- */

static void index_maps_refuse_what_they_do_not_know(void **state)
{
    static const struct {
        const char   *map, *settings;
        posenc_status status;
        const char   *words;
    } all[] = {
        {"t6", "", POSENC_ERROR_ARGUMENT, "'t6' is unknown; there are t5 and deberta"},
        {"t5", "buckets=3", POSENC_ERROR_SETTING, "has no setting 'buckets=3'"},
        {"t5", "num_buckets", POSENC_ERROR_SETTING, "has no setting 'num_buckets'"},
        {"t5", "num_buckets=x", POSENC_ERROR_SETTING, "is not a number"},
        {"t5", "num_buckets=1", POSENC_ERROR_SETTING, "out of range"},
        {"t5", "num_buckets=L", POSENC_ERROR_SETTING,
         "num_buckets=L is 0; it must be"}, /* no size is known here */
        {"deberta", "position_buckets=Dv", POSENC_ERROR_SETTING, "position_buckets=Dv is 0"},
        {"t5", "num_buckets=32 max_distance=8", POSENC_ERROR_SETTING, "max_distance"},
        {"deberta", "position_buckets=512 max_relative_positions=200", POSENC_ERROR_SETTING, "must exceed"},
    };
    const int64_t rel[3] = {-5, 0, 700};
    int64_t       out[3] = {77, 77, 77};
    posenc_error  err;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_sentence(&err, posenc_index_map(all[i].map, all[i].settings, rel, 3, out, &err), all[i].status,
                        all[i].words, (int)i);
    assert_int_equal(posenc_index_map(NULL, "", rel, 3, out, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_index_map("t5", "", NULL, 3, out, &err), POSENC_ERROR_ARGUMENT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(out[i], 77);
    assert_int_equal(posenc_index_map("t5", "bidirectional=no, num_buckets=32", rel, 3, out, &err),
                     POSENC_OK);
    assert_true(out[0] == 5 && out[1] == 0 && out[2] == 0);
    assert_int_equal(posenc_index_map("t5", NULL, rel, 0, NULL, &err), POSENC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_make_no_sense_are_refused),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(what_the_plan_does_not_ask_for_is_refused),
        cmocka_unit_test(a_table_of_distances_beyond_any_memory_is_refused),
        cmocka_unit_test(encodings_that_need_a_causal_mask_say_so),
        cmocka_unit_test(a_spoiled_run_is_refused_and_writes_nothing),
        cmocka_unit_test(what_the_plan_allows_is_not_refused),
        cmocka_unit_test(a_rotation_without_a_rotary_part_is_refused),
        cmocka_unit_test(a_spoiled_rotation_is_refused_and_writes_nothing),
        cmocka_unit_test(a_table_refuses_positions_it_has_no_row_for),
        cmocka_unit_test(spoiled_rows_are_refused_and_write_nothing),
        cmocka_unit_test(index_maps_refuse_what_they_do_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
