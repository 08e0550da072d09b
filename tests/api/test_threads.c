/* SPDX-License-Identifier: MIT */
/*
 * test_threads: the same bits for 1, 2, 3, 5 and 8 threads, of rows and rotations and of their gradients
 *
 * Every encoding of the registry that has a part at the input or at the rotation, in the settings of a small
 * model, and rotations that learn. The parts in the scores are encodings/test_executors, forward and
 * backward.
 */
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

/* Long enough to be worth more threads than one. */
enum { L = 420, MOST_COORDINATES = 8, OUTPUTS = 4 };

static const posenc_dims dims = {
    .B = 8, .H = 4, .G = 4, .Lq = L, .Lk = L, .D = 8, .Dv = 8, .d_model = 64, .L = L};

/* What a run gave: its results, and the gradients of its parameters. */
typedef struct given {
    array of[OUTPUTS], dparams[CASE_PARAMS];
    int   count;
} given;

typedef given run(const attention_case *c, posenc_plan *plan, const posenc_workspace *work);

static void given_free(given *g)
{
    for (int i = 0; i < OUTPUTS; i++)
        array_free(&g->of[i]);
    for (int i = 0; i < g->count; i++)
        array_free(&g->dparams[i]);
}

static void require(posenc_status status, const attention_case *c, const posenc_error *err)
{
    if (status)
        fail_msg("%s: %s", posenc_encoding_spec(c->e), err->message);
}

/* Small whole numbers: as many for a position as there are coordinates. */
static posenc_positions places(int64_t *numbers, int coordinates)
{
    const int64_t shape[2] = {L, coordinates};
    assert_true(coordinates <= MOST_COORDINATES);
    for (int64_t i = 0; i < L * coordinates; i++)
        numbers[i] = coordinates > 1 ? i % 5 : i;
    return posenc_positions_array(
        posenc_tensor_contiguous(numbers, POSENC_DTYPE_I64, coordinates > 1 ? 2 : 1, shape));
}

static given begin(const attention_case *c, posenc_tensor *params, posenc_tensor *dparams)
{
    given g = {.count = c->param_count};
    for (int i = 0; i < g.count; i++) {
        g.dparams[i] = array_make(c->params[i].ndim, c->params[i].shape);
        params[i]    = array_tensor(&c->params[i], 0);
        dparams[i]   = array_tensor(&g.dparams[i], 0);
    }
    return g;
}

static given rows(const attention_case *c, posenc_plan *plan, const posenc_workspace *work)
{
    int64_t              numbers[L * MOST_COORDINATES];
    const int64_t        shape[3] = {dims.B, L, posenc_rows_width(plan)};
    posenc_tensor        params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_error         err;
    given                g  = begin(c, params, dparams);
    const posenc_rows_in in = {.size   = sizeof in,
                               .pos    = places(numbers, posenc_rows_coordinates(c->e)),
                               .params = params};
    for (int i = 0; i < 3; i++)
        g.of[i] = array_make(3, shape);
    array_fill(&g.of[2], 7, "dy", 1);
    posenc_tensor          y    = array_tensor(&g.of[0], 0);
    const posenc_rows_grad grad = {.size    = sizeof grad,
                                   .dy      = array_tensor(&g.of[2], 0),
                                   .dx      = array_tensor(&g.of[1], 0),
                                   .dparams = g.count ? dparams : NULL};
    require(posenc_rows(plan, &in, &y, work, &err), c, &err);
    require(posenc_rows_backward(plan, &in, &grad, work, &err), c, &err);
    return g;
}

static given rotation(const attention_case *c, posenc_plan *plan, const posenc_workspace *work)
{
    int64_t                numbers[L * MOST_COORDINATES];
    const posenc_positions at = places(numbers, posenc_rotary_coordinates(plan));
    posenc_tensor          params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_error           err;
    given                  g = begin(c, params, dparams);
    for (int i = 0; i < OUTPUTS; i++)
        g.of[i] = array_make(4, (i % 2 ? &c->k : &c->q)->shape);
    const posenc_rotate_io   io   = {.size      = sizeof io,
                                     .q         = array_tensor(&c->q, 0),
                                     .k         = array_tensor(&c->k, 0),
                                     .q_pos     = at,
                                     .k_pos     = at,
                                     .to_q      = array_tensor(&g.of[0], 0),
                                     .to_k      = array_tensor(&g.of[1], 0),
                                     .direction = 1,
                                     .params    = params};
    const posenc_rotate_grad grad = {.size    = sizeof grad,
                                     .dto_q   = array_tensor(&c->dout, 0),
                                     .dto_k   = array_tensor(&c->v, 0),
                                     .dq      = array_tensor(&g.of[2], 0),
                                     .dk      = array_tensor(&g.of[3], 0),
                                     .dparams = g.count ? dparams : NULL};
    require(posenc_rotate(plan, &io, work, &err), c, &err);
    require(posenc_rotate_backward(plan, &io, &grad, work, &err), c, &err);
    return g;
}

static given on_threads(const attention_case *c, run *how, int threads)
{
    posenc_options options = c->options;
    posenc_plan   *plan;
    posenc_error   err;
    options.threads = threads;
    require(posenc_plan_create(&plan, c->e, &c->dims, &options, &err), c, &err);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    const given      g    = how(c, plan, &work);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return g;
}

static void assert_same(const array *a, const array *b, const attention_case *c, int threads)
{
    if (a->narrow && memcmp(a->narrow, b->narrow, (size_t)a->count * sizeof(float)))
        fail_msg("%s: %d threads give other bits than one", posenc_encoding_spec(c->e), threads);
}

static void compare_threads(const char *spec, run *how)
{
    static const int counts[] = {2, 3, 5, 8};
    attention_case   c        = case_make(spec, dims, 11);
    given            one      = on_threads(&c, how, 1);
    for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
        given many = on_threads(&c, how, counts[t]);
        for (int i = 0; i < OUTPUTS; i++)
            assert_same(&one.of[i], &many.of[i], &c, counts[t]);
        for (int i = 0; i < one.count; i++)
            assert_same(&one.dparams[i], &many.dparams[i], &c, counts[t]);
        given_free(&many);
    }
    given_free(&one);
    case_free(&c);
}

/* Every encoding of a place. */
static void compare_place(posenc_place place, run *how)
{
    int n = 0;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        small[256], spec[320];
        if (info->place != place)
            continue;
        assert_int_equal(posenc_small_model(info->name, &dims, 0, small, sizeof small, NULL), POSENC_OK);
        for (char *at = small; *at; at++)
            *at = *at == ' ' ? ':' : *at;
        snprintf(spec, sizeof spec, *small ? "%s[%s]" : "%s", info->name, small);
        compare_threads(spec, how);
        n++;
    }
    assert_true(n > 0);
}

static void rows_have_the_same_bits(void **state)
{
    (void)state;
    compare_place(POSENC_PLACE_INPUT, rows);
}

static void rotations_have_the_same_bits(void **state)
{
    (void)state;
    compare_place(POSENC_PLACE_ROTARY, rotation);
    compare_threads("rope[schedule=explicit]", rotation);
    compare_threads("rope[axes=2:axis_rule=matrix]", rotation);
    compare_threads("rope[axes=2:axis_rule=matrix:per_head=yes]", rotation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_have_the_same_bits),
                                       cmocka_unit_test(rotations_have_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
