/* SPDX-License-Identifier: MIT */
/*
 * test_overlap: outputs are in memory of their own
 *
 * Apart from each other, from what has numbers for each token, and gradients of parameters from all that a
 * run is given. A call that is refused has written nothing: each tensor of a call in turn is laid over
 * another one.
 */
#include <posenc/rotary.h>
#include <posenc/scores.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "workspace.h"

enum { B = 2, H = 4, G = 2, L = 6, D = 4, ROOM = B * H * L * L, MOST = 20 };

static const posenc_dims dims = {.B = B, .H = H, .G = G, .Lq = L, .Lk = L, .D = D, .d_model = D};

/* Tensors in rooms of their own, numbered as they are made. */
static float  rooms[MOST][ROOM];
static double sums[B * H * L];
static int    used;

static posenc_tensor four(int64_t heads, int64_t rows, int64_t width)
{
    const int64_t shape[4] = {B, heads, rows, width};
    return posenc_tensor_contiguous(rooms[used++], POSENC_DTYPE_F32, 4, shape);
}

static posenc_tensor fewer(int32_t ndim, int64_t a, int64_t b, int64_t c)
{
    return posenc_tensor_contiguous(rooms[used++], POSENC_DTYPE_F32, ndim, (int64_t[]){a, b, c});
}

typedef struct made {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
    posenc_error     err;
} made;

static made make(const char *spec)
{
    made           m;
    posenc_options options = posenc_options_default();
    options.mask           = POSENC_MASK_CAUSAL;
    if (posenc_encoding_create(&m.e, spec, NULL, &m.err) ||
        posenc_plan_create(&m.plan, m.e, &dims, &options, &m.err))
        fail_msg("%s", m.err.message);
    m.work = workspace_for(m.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES |
                                       POSENC_RUN_BIAS_BACKWARD);
    used   = 0;
    memset(rooms, 0, sizeof rooms);
    memset(sums, 0, sizeof sums);
    return m;
}

static void drop(made *m)
{
    posenc_workspace_free(&m->work);
    posenc_plan_free(m->plan);
    posenc_encoding_free(m->e);
}

/* A call on tensors that are where they are. */
typedef struct laid {
    made                      m;
    const posenc_attend_in   *in;
    const posenc_attend_out  *out;
    const posenc_attend_grad *grad;
    posenc_tensor            *S, *dparams;
    posenc_rotate_io         *io;
    posenc_rotate_grad       *back;
    posenc_rows_in           *rows;
    posenc_rows_grad         *rows_back;
} laid;

typedef posenc_status call(laid *x);

static posenc_status attend(laid *x)
{
    return posenc_attend(x->m.plan, x->in, x->out, &x->m.work, &x->m.err);
}

static posenc_status attend_back(laid *x)
{
    return posenc_attend_backward(x->m.plan, x->in, x->grad, &x->m.work, &x->m.err);
}

static posenc_status scores(laid *x)
{
    return posenc_scores(x->m.plan, x->in, x->S, &x->m.work, &x->m.err);
}

static posenc_status bias_back(laid *x)
{
    return posenc_bias_backward(x->m.plan, x->in, x->S, x->dparams, &x->m.work, &x->m.err);
}

static posenc_status rotate(laid *x)
{
    return posenc_rotate(x->m.plan, x->io, &x->m.work, &x->m.err);
}

static posenc_status rotate_back(laid *x)
{
    return posenc_rotate_backward(x->m.plan, x->io, x->back, &x->m.work, &x->m.err);
}

static posenc_status rows_back(laid *x)
{
    return posenc_rows_backward(x->m.plan, x->rows, x->rows_back, &x->m.work, &x->m.err);
}

/* Each of `outputs` over each other one of them and over each of `others`; where they are, it is well. */
static void assert_apart(laid *x, call *run, posenc_tensor *const outputs[], int output_count,
                         posenc_tensor *const others[], int other_count)
{
    if (run(x))
        fail_msg("%s", x->m.err.message);
    for (int i = 0; i < output_count; i++)
        for (int j = i + 1; j < output_count + other_count; j++) {
            void *const kept = outputs[i]->data;
            outputs[i]->data = j < output_count ? outputs[j]->data : others[j - output_count]->data;
            if (run(x) != POSENC_ERROR_ARGUMENT || !strstr(x->m.err.message, "overlaps"))
                fail_msg("output %d over %s %d: '%s'", i, j < output_count ? "output" : "input",
                         j < output_count ? j : j - output_count, x->m.err.message);
            outputs[i]->data = kept;
        }
}

#define APART(x, run, outputs, others)                                         \
    assert_apart(x, run, outputs, sizeof(outputs) / sizeof *(outputs), others, \
                 sizeof(others) / sizeof *(others))

static void attention_writes_in_memory_of_its_own(void **state)
{
    laid          x     = {.m = make("fox+rope[schedule=explicit]")};
    posenc_tensor token = four(H, L, 1), dtoken = four(H, L, 1), w = fewer(1, D / 2, 0, 0),
                  dw = fewer(1, D / 2, 0, 0), S = four(H, L, L);
    posenc_attend_in     in        = {.size   = sizeof in,
                                      .q      = four(H, L, D),
                                      .k      = four(G, L, D),
                                      .v      = four(G, L, D),
                                      .params = &w,
                                      .tokens = &token};
    posenc_attend_out    out       = {.size = sizeof out, .o = four(H, L, D), .lse = fewer(3, B, H, L)};
    posenc_attend_grad   grad      = {.size    = sizeof grad,
                                      .o       = out.o,
                                      .lse     = out.lse,
                                      .dout    = four(H, L, D),
                                      .dlse    = fewer(3, B, H, L),
                                      .dq      = four(H, L, D),
                                      .dk      = four(G, L, D),
                                      .dv      = four(G, L, D),
                                      .dparams = &dw,
                                      .dtokens = &dtoken};
    posenc_tensor *const outputs[] = {&out.o, &out.lse}, *const inputs[] = {&in.q, &in.k, &in.v, &token},
                         *const gradients[] = {&dw, &dtoken, &grad.dq, &grad.dk, &grad.dv},
                         *const taken[]     = {&in.q,   &in.k,     &in.v,      &token,
                                               &grad.o, &grad.lse, &grad.dout, &grad.dlse},
                         *const shown[] = {&S}, *const seen[] = {&in.q, &in.k, &token};
    posenc_tensor *const of_params[] = {&dw}, *const params[] = {&w};
    (void)state;
    x.in   = &in;
    x.out  = &out;
    x.grad = &grad;
    x.S    = &S;
    APART(&x, attend, outputs, inputs);
    APART(&x, attend_back, gradients, taken);
    APART(&x, attend_back, of_params, params);
    APART(&x, scores, shown, seen);
    drop(&x.m);
}

static void a_gradient_of_a_bias_is_apart_from_it(void **state)
{
    laid                 x      = {.m = make("alibi[learned=yes]")};
    posenc_tensor        slopes = fewer(1, H, 0, 0), dslopes = fewer(1, H, 0, 0), dbias = fewer(3, H, L, L);
    posenc_attend_in     in        = {.size = sizeof in, .params = &slopes};
    posenc_tensor *const outputs[] = {&dslopes}, *const others[] = {&slopes, &dbias};
    (void)state;
    x.in      = &in;
    x.S       = &dbias;
    x.dparams = &dslopes;
    APART(&x, bias_back, outputs, others);
    drop(&x.m);
}

/* Sums over themselves would be gates of gates. */
static void running_sums_are_apart_from_their_gates(void **state)
{
    made                m     = make("fox");
    const int64_t       all[] = {B, H, L, 1}, some[] = {B, H, 2, 1};
    const posenc_tensor gates = posenc_tensor_contiguous(sums, POSENC_DTYPE_F64, 4, some);
    posenc_tensor       to    = posenc_tensor_contiguous(sums, POSENC_DTYPE_F64, 4, all);
    (void)state;
    assert_int_equal(posenc_token_sums(m.plan, 0, &gates, &to, 0, &m.err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(m.err.message, "overlaps"));
    assert_true(sums[0] == 0);
    drop(&m);
}

/* q and k each where they lie, and not over each other; gradients of frequencies want q and k as they were.
 */
static void sides_of_a_rotation_are_apart(void **state)
{
    laid             x = {.m = make("rope[schedule=explicit]")};
    posenc_tensor    w = fewer(1, D / 2, 0, 0), dw = fewer(1, D / 2, 0, 0);
    posenc_rotate_io io = {
        .size = sizeof io, .q = four(H, L, D), .k = four(G, L, D), .direction = 1, .params = &w};
    posenc_rotate_grad   grad = {.size    = sizeof grad,
                                 .dto_q   = four(H, L, D),
                                 .dto_k   = four(G, L, D),
                                 .dq      = four(H, L, D),
                                 .dk      = four(G, L, D),
                                 .dparams = &dw};
    posenc_tensor *const q[] = {&io.to_q}, *const k[] = {&io.to_k}, *const of_q[] = {&io.q, &io.to_q},
                         *const of_k[] = {&io.k, &io.to_k}, *const gradients[] = {&dw, &grad.dq, &grad.dk},
                         *const taken[] = {&io.q, &io.k};
    (void)state;
    x.io    = &io;
    x.back  = &grad;
    io.to_q = four(H, L, D);
    io.to_k = four(G, L, D);
    APART(&x, rotate, q, of_k);
    APART(&x, rotate, k, of_q);
    APART(&x, rotate_back, gradients, taken);
    io.to_q = io.q;
    io.to_k = io.k;
    io.to_q = io.q;
    assert_int_equal(rotate(&x), POSENC_OK);
    grad.dq      = grad.dto_q;
    grad.dk      = grad.dto_k;
    grad.dparams = NULL;
    assert_int_equal(rotate_back(&x), POSENC_OK);
    grad.dq.data = grad.dto_k.data;
    assert_int_equal(rotate_back(&x), POSENC_ERROR_ARGUMENT);
    io.q_table = posenc_tensor_contiguous(io.q.data, POSENC_DTYPE_F32, 3, (int64_t[]){B, L, D});
    assert_int_equal(rotate(&x), POSENC_ERROR_ARGUMENT);
    drop(&x.m);
}

static void gradients_of_rows_are_apart(void **state)
{
    laid             x     = {.m = make("learned[rows=8]")};
    posenc_tensor    table = fewer(2, 8, D, 0), dtable = fewer(2, 8, D, 0);
    posenc_rows_in   in   = {.size = sizeof in, .params = &table};
    posenc_rows_grad grad = {
        .size = sizeof grad, .dy = fewer(3, B, L, D), .dx = fewer(3, B, L, D), .dparams = &dtable};
    posenc_tensor *const outputs[] = {&dtable}, *const others[] = {&table, &grad.dy, &grad.dx};
    (void)state;
    x.rows      = &in;
    x.rows_back = &grad;
    APART(&x, rows_back, outputs, others);
    drop(&x.m);
}

static void angles_are_apart_from_their_temperatures(void **state)
{
    made             m = make("rope");
    double           to[B * L * D];
    posenc_rotary_in in       = {.size = sizeof in};
    posenc_tensor    angle    = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 3, (int64_t[]){1, L, D / 2}),
                  temperature = posenc_tensor_contiguous(to + 2, POSENC_DTYPE_F64, 2, (int64_t[]){1, L});
    (void)state;
    assert_int_equal(posenc_rotary_angles(m.plan, &in, &angle, &temperature, &m.work, &m.err),
                     POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(m.err.message, "overlaps"));
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_writes_in_memory_of_its_own),
        cmocka_unit_test(a_gradient_of_a_bias_is_apart_from_it),
        cmocka_unit_test(running_sums_are_apart_from_their_gates),
        cmocka_unit_test(sides_of_a_rotation_are_apart),
        cmocka_unit_test(gradients_of_rows_are_apart),
        cmocka_unit_test(angles_are_apart_from_their_temperatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
