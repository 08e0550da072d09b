/* SPDX-License-Identifier: MIT */
/*
 * test_empty: runs of size 0
 *
 * No items, no queries, no keys or no rows are work that is done: tensors of no elements need no data, and
 * nobody a workspace. Queries without keys get o = 0, lse = -infinity and no gradient.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/positions.h>
#include <posenc/posenc.h>
#include <posenc/rotary.h>
#include <string.h>

#include "workspace.h"

enum { B = 2, L = 3, H = 2, D = 8, N = B * H * L * D };

static const posenc_dims dims = {.B = B, .H = H, .Lq = L, .Lk = L, .D = D};

static posenc_plan *plan_of(const char *spec, int mask)
{
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    posenc_options   options = posenc_options_default();
    options.mask             = mask;
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, &dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    posenc_encoding_free(e);
    return plan;
}

/* Over `x`, which is filled with ones, or over nothing where there are no elements. */
static posenc_tensor over(float *x, int32_t ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int a = 0; a < ndim; a++)
        n *= shape[a];
    for (int64_t i = 0; i < n; i++)
        x[i] = 1;
    return posenc_tensor_contiguous(n ? x : NULL, POSENC_DTYPE_F32, ndim, shape);
}

static posenc_tensor heads(float *x, int64_t items, int64_t length)
{
    return over(x, 4, (const int64_t[]){items, H, length, D});
}

static void assert_all(const posenc_tensor *t, float value)
{
    const int64_t *s = t->shape;
    for (int64_t i = 0; t->data && i < s[0] * s[1] * s[2] * (t->ndim == 4 ? s[3] : 1); i++)
        assert_true(((const float *)t->data)[i] == value);
}

typedef struct sizes {
    int64_t B, Lq, Lk;
} sizes;

static const sizes empty[] = {{0, L, L}, {B, 0, L}, {B, L, 0}, {B, 0, 0}, {0, 0, 0}};

enum { EMPTY = sizeof empty / sizeof *empty };

/* Attention of these sizes, forward and backward, without a workspace. */
static void attend(const posenc_plan *plan, const sizes *n, const posenc_tensor *params, posenc_attend_in in)
{
    float              q[N], k[N], v[N], o[N], lse[N], dout[N], dq[N], dk[N], dv[N];
    const int64_t      of_lse[] = {n->B, H, n->Lq};
    posenc_error       err;
    posenc_attend_out  out  = {.size = sizeof out, .o = heads(o, n->B, n->Lq), .lse = over(lse, 3, of_lse)};
    posenc_attend_grad grad = {.size = sizeof grad,
                               .o    = out.o,
                               .lse  = out.lse,
                               .dout = heads(dout, n->B, n->Lq),
                               .dq   = heads(dq, n->B, n->Lq),
                               .dk   = heads(dk, n->B, n->Lk),
                               .dv   = heads(dv, n->B, n->Lk)};
    in.size                 = sizeof in;
    in.q                    = heads(q, n->B, n->Lq);
    in.k                    = heads(k, n->B, n->Lk);
    in.v                    = heads(v, n->B, n->Lk);
    in.params               = params;
    if (posenc_attend(plan, &in, &out, NULL, &err))
        fail_msg("B %d, Lq %d, Lk %d: %s", (int)n->B, (int)n->Lq, (int)n->Lk, err.message);
    assert_all(&out.o, 0);
    assert_all(&out.lse, -INFINITY);
    if (posenc_attend_backward(plan, &in, &grad, NULL, &err))
        fail_msg("B %d, Lq %d, Lk %d: backward: %s", (int)n->B, (int)n->Lq, (int)n->Lk, err.message);
    assert_all(&grad.dq, 0);
    assert_all(&grad.dk, 0);
    assert_all(&grad.dv, 0);
}

static void attention_of_size_0_is_done(void **state)
{
    static const char *const specs[] = {"nope", "rope", "alibi", "t5", "cope", "urpe", "deberta", "shaw"};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int i = 0; i < EMPTY; i++) {
            posenc_plan *plan = plan_of(specs[s], POSENC_MASK_CAUSAL);
            attend(plan, &empty[i], NULL, (posenc_attend_in){.size = sizeof(posenc_attend_in)});
            posenc_plan_free(plan);
        }
}

static void masks_and_positions_of_size_0_need_no_data(void **state)
{
    posenc_plan *plan =
        plan_of("alibi", POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS);
    const sizes            n      = {B, 0, 0};
    const int64_t          keys[] = {B, 0}, all[] = {B, H, 0, 0};
    const posenc_tensor    ids = posenc_tensor_contiguous(NULL, POSENC_DTYPE_I64, 2, keys);
    const posenc_attend_in in  = {
         .size        = sizeof in,
         .q_pos       = posenc_positions_array(ids),
         .k_pos       = posenc_positions_array(ids),
         .key_allowed = posenc_tensor_contiguous(NULL, POSENC_DTYPE_U8, 2, keys),
         .allowed     = posenc_tensor_contiguous(NULL, POSENC_DTYPE_U8, 4, all),
         .q_segments  = ids,
         .k_segments  = ids,
    };
    (void)state;
    attend(plan, &n, NULL, in);
    posenc_plan_free(plan);
}

/* What an engine has before the first token: caches without pages. */
static void a_cache_without_keys_or_pages_is_attended(void **state)
{
    posenc_plan        *plan = plan_of("rope", POSENC_MASK_CAUSAL);
    float               q[N], o[N], lse[N];
    int64_t             none[B] = {0, 0};
    posenc_error        err;
    const posenc_tensor cache =
        posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 4, (const int64_t[]){0, H, 4, D});
    posenc_attend_out   out   = {.size = sizeof out,
                                 .o    = heads(o, B, 1),
                                 .lse  = over(lse, 3, (const int64_t[]){B, H, 1})};
    const posenc_tensor pages = posenc_tensor_contiguous(NULL, POSENC_DTYPE_I64, 2, (const int64_t[]){B, 0});
    posenc_attend_in in = {.size = sizeof in, .q = heads(q, B, 1), .k = cache, .v = cache, .k_pages = pages};
    (void)state;
    if (posenc_attend(plan, &in, &out, NULL, &err))
        fail_msg("%s", err.message);
    assert_all(&out.o, 0);
    assert_all(&out.lse, -INFINITY);
    out.o        = heads(o, B, 1);
    in.k_lengths = posenc_tensor_contiguous(none, POSENC_DTYPE_I64, 1, (const int64_t[]){B});
    if (posenc_attend(plan, &in, &out, NULL, &err))
        fail_msg("with lengths: %s", err.message);
    assert_all(&out.o, 0);
    posenc_plan_free(plan);
}

static void scores_and_biases_of_size_0_are_done(void **state)
{
    posenc_plan *plan = plan_of("rope+alibi", POSENC_MASK_NONE);
    float        q[N], k[N], to[N];
    (void)state;
    for (int i = 0; i < EMPTY; i++) {
        const sizes           *n    = &empty[i];
        const posenc_attend_in in   = {.size = sizeof in,
                                       .q    = heads(q, n->B, n->Lq),
                                       .k    = heads(k, n->B, n->Lk)};
        posenc_tensor          S    = over(to, 4, (const int64_t[]){n->B, H, n->Lq, n->Lk});
        posenc_tensor          bias = over(to, 3, (const int64_t[]){H, n->Lq, n->Lk});
        posenc_error           err;
        if (posenc_scores(plan, &in, &S, NULL, &err) ||
            (n->Lq * n->Lk == 0 && posenc_bias(plan, &in, &bias, NULL, &err)))
            fail_msg("B %d, Lq %d, Lk %d: %s", (int)n->B, (int)n->Lq, (int)n->Lk, err.message);
    }
    posenc_plan_free(plan);
}

static void rotations_of_size_0_are_done(void **state)
{
    posenc_plan     *plan = plan_of("rope", POSENC_MASK_NONE);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_ROTATE);
    float            q[N], k[N];
    posenc_error     err;
    (void)state;
    for (int i = 0; i < EMPTY; i++) {
        const sizes           *n    = &empty[i];
        const posenc_tensor    none = heads(k, n->B, n->Lq * n->Lk);
        const posenc_rotate_io io   = {
              .size = sizeof io, .q = none, .to_q = none, .k = none, .to_k = none, .direction = -1};
        const posenc_rotate_grad grad = {
            .size = sizeof grad, .dto_q = none, .dq = none, .dto_k = none, .dk = none};
        const posenc_rerotate_io moved = {.size = sizeof moved, .k = none, .to_k = none};
        const posenc_rotary_in   in    = {.size = sizeof in};
        posenc_tensor            table =
            over(q, 3, (const int64_t[]){n->B, n->Lq * n->Lk, posenc_rotary_width(plan, POSENC_SIDE_KEYS)});
        posenc_tensor angle = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, 3,
                                                       (const int64_t[]){n->B, n->Lq * n->Lk, D / 2});
        if (posenc_rotate(plan, &io, NULL, &err) || posenc_rotate_backward(plan, &io, &grad, NULL, &err) ||
            posenc_rotary_rerotate(plan, plan, &moved, NULL, &err) ||
            posenc_rotary_table(plan, POSENC_SIDE_KEYS, &in, &table, NULL, &err) ||
            posenc_rotary_angles(plan, &in, &angle, NULL, NULL, &err))
            fail_msg("B %d, L %d: %s", (int)n->B, (int)(n->Lq * n->Lk), err.message);
    }
    /* beside queries, no keys */
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = heads(q, B, L),
                                 .to_q      = heads(q, B, L),
                                 .k         = heads(k, B, 0),
                                 .to_k      = heads(k, B, 0),
                                 .direction = 1};
    assert_int_equal(posenc_rotate(plan, &io, NULL, &err), POSENC_ERROR_WORKSPACE);
    assert_int_equal(posenc_rotate(plan, &io, &work, &err), POSENC_OK);
    assert_true(q[D] != 1);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
}

static void rows_of_size_0_are_done(void **state)
{
    static const char *const specs[] = {"sinusoidal", "learned", "sinusoidal2d", "timestep"};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int i = 0; i < 2; i++) {
            posenc_plan  *plan = plan_of(specs[s], POSENC_MASK_NONE);
            posenc_tensor y =
                posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 3,
                                         (const int64_t[]){i ? B : 0, i ? 0 : L, posenc_rows_width(plan)});
            posenc_tensor    params[16] = {{0}};
            posenc_encoding *e;
            posenc_error     err;
            double           numbers[4096];
            assert_int_equal(posenc_encoding_create(&e, specs[s], NULL, &err), POSENC_OK);
            for (int p = 0; p < posenc_param_count(e); p++) {
                int32_t ndim;
                int64_t shape[POSENC_MAX_DIMS];
                assert_int_equal(posenc_param_shape(e, &dims, p, &ndim, shape, &err), POSENC_OK);
                params[p] = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, ndim, shape);
            }
            const posenc_rows_in   in   = {.size = sizeof in, .x = y, .params = params};
            const posenc_rows_grad grad = {.size = sizeof grad, .dy = y, .dx = y};
            if (posenc_rows(plan, &in, &y, NULL, &err) || posenc_rows_backward(plan, &in, &grad, NULL, &err))
                fail_msg("%s: %s", specs[s], err.message);
            posenc_encoding_free(e);
            posenc_plan_free(plan);
        }
}

static void positions_of_size_0_are_done(void **state)
{
    posenc_error  err;
    posenc_tensor ids    = posenc_tensor_contiguous(NULL, POSENC_DTYPE_I64, 2, (const int64_t[]){B, 0});
    posenc_tensor pixels = posenc_tensor_contiguous(NULL, POSENC_DTYPE_U8, 3, (const int64_t[]){0, L, L});
    posenc_tensor places =
        posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, 3, (const int64_t[]){0, L * L, 2});
    (void)state;
    assert_int_equal(posenc_positions_fairseq(&ids, 1, &ids, &err), POSENC_OK);
    assert_int_equal(posenc_positions_from_mask(&ids, &ids, &err), POSENC_OK);
    assert_int_equal(posenc_positions_detr(&pixels, 1, 1e-6, &places, &err), POSENC_OK);
    assert_int_equal(posenc_index_map("t5", NULL, NULL, 0, NULL, &err), POSENC_OK);
}

/* Only a tensor of no elements may go without data; sizes and types are asked for as ever. */
static void what_is_wrong_is_refused_at_size_0_too(void **state)
{
    posenc_plan *plan = plan_of("rope", POSENC_MASK_NONE);
    float        q[N], k[N], v[N], o[N];
    const struct {
        int64_t       k_size, v_size;
        posenc_status status;
        const char   *words;
    } all[] = {
        {-1, 0, POSENC_ERROR_SHAPE, "attend: k has size -1 on axis 2; sizes are 0 or more"},
        {0, L, POSENC_ERROR_SHAPE, "attend: v has shape [2,2,3,8]; it must be [2,2,0,8]"},
        {L, 0, POSENC_ERROR_SHAPE, "attend: v has shape [2,2,0,8]; it must be [2,2,3,8]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_error     err;
        posenc_attend_in in = {
            .size = sizeof in, .q = heads(q, B, L), .k = heads(k, B, L), .v = heads(v, B, L)};
        const posenc_attend_out out = {.size = sizeof out, .o = heads(o, B, L)};
        in.k.shape[2]               = all[i].k_size;
        in.v.shape[2]               = all[i].v_size;
        assert_int_equal(posenc_attend(plan, &in, &out, NULL, &err), all[i].status);
        assert_string_equal(err.message, all[i].words);
        in.k      = heads(k, B, L);
        in.v      = heads(v, B, L);
        in.k.data = NULL;
        assert_int_equal(posenc_attend(plan, &in, &out, NULL, &err), POSENC_ERROR_ARGUMENT);
        assert_string_equal(err.message, "attend: k has no data; it is needed here");
    }
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_size_0_is_done),
        cmocka_unit_test(masks_and_positions_of_size_0_need_no_data),
        cmocka_unit_test(a_cache_without_keys_or_pages_is_attended),
        cmocka_unit_test(scores_and_biases_of_size_0_are_done),
        cmocka_unit_test(rotations_of_size_0_are_done),
        cmocka_unit_test(rows_of_size_0_are_done),
        cmocka_unit_test(positions_of_size_0_are_done),
        cmocka_unit_test(what_is_wrong_is_refused_at_size_0_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
