/* SPDX-License-Identifier: MIT */
/*
 * test_tokens: inputs per token that the model makes
 *
 * Which there are, what is refused, and that each item of a batch, and a query that sees no key, has its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>
#include <string.h>

#include "workspace.h"

enum { B = 2, H = 4, G = 2, L = 3, D = 8, N = B * H * L * D };

static const posenc_dims dims = {.B = B, .H = H, .G = G, .Lq = L, .Lk = L, .D = D};

/* A run with sink=token, forward and backward. */
typedef struct attention {
    float q[N], k[N], v[N], o[N], lse[B * H * L], dout[N], dlse[B * H * L], sink[B * H * L], dsink[B * H * L];
    posenc_tensor      tokens[1], dtokens[1];
    posenc_attend_in   in;
    posenc_attend_out  out;
    posenc_attend_grad grad;
    posenc_plan       *plan;
    posenc_workspace   work;
} attention;

static posenc_tensor rows(float *x, int64_t items, int64_t heads, int64_t length, int64_t width)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){items, heads, length, width});
}

static posenc_tensor one_each(float *x, int64_t length)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 3, (const int64_t[]){B, H, length});
}

static posenc_encoding *encoding_of(const char *spec)
{
    posenc_encoding *e;
    posenc_error     err;
    if (posenc_encoding_create(&e, spec, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    return e;
}

/* Of so many heads of sinks. */
static void open_run(attention *a, int64_t heads)
{
    posenc_encoding *e = encoding_of("nope[sink=token]");
    posenc_error     err;
    if (posenc_plan_create(&a->plan, e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    posenc_encoding_free(e);
    a->work = workspace_for(a->plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    for (int i = 0; i < N; i++) {
        a->q[i]    = sinf((float)i);
        a->k[i]    = cosf((float)(3 * i));
        a->v[i]    = sinf((float)(2 * i));
        a->dout[i] = cosf((float)i);
    }
    for (int i = 0; i < B * H * L; i++) {
        a->sink[i]  = (float)(i % 7) * 0.5f - 1;
        a->dlse[i]  = (float)(i % 5) * 0.25f;
        a->dsink[i] = 99;
    }
    a->tokens[0]  = rows(a->sink, B, heads, L, 1);
    a->dtokens[0] = rows(a->dsink, B, heads, L, 1);
    a->in         = (posenc_attend_in){.size   = sizeof a->in,
                                       .q      = rows(a->q, B, H, L, D),
                                       .k      = rows(a->k, B, G, L, D),
                                       .v      = rows(a->v, B, G, L, D),
                                       .tokens = a->tokens};
    a->out =
        (posenc_attend_out){.size = sizeof a->out, .o = rows(a->o, B, H, L, D), .lse = one_each(a->lse, L)};
    a->grad = (posenc_attend_grad){.size    = sizeof a->grad,
                                   .o       = a->out.o,
                                   .lse     = a->out.lse,
                                   .dout    = rows(a->dout, B, H, L, D),
                                   .dlse    = one_each(a->dlse, L),
                                   .dtokens = a->dtokens};
}

static void close_run(attention *a)
{
    posenc_workspace_free(&a->work);
    posenc_plan_free(a->plan);
}

static void run(attention *a)
{
    posenc_error err;
    if (posenc_attend(a->plan, &a->in, &a->out, &a->work, &err) ||
        posenc_attend_backward(a->plan, &a->in, &a->grad, &a->work, &err))
        fail_msg("%s", err.message);
}

static void a_token_input_has_a_name_and_a_shape(void **state)
{
    posenc_encoding *e = encoding_of("rope[sink=token]+alibi"), *none = encoding_of("alibi[sink=head]");
    int64_t          shape[4];
    posenc_error     err;
    (void)state;
    assert_int_equal(posenc_token_count(e), 1);
    assert_string_equal(posenc_token_name(e, 0), "sink");
    assert_int_equal(posenc_token_describe(e, 0)->of_keys, 0);
    assert_int_equal(posenc_token_shape(e, &dims, 0, shape, &err), POSENC_OK);
    assert_true(shape[0] == B && shape[1] == H && shape[2] == L && shape[3] == 1);
    assert_int_equal(posenc_token_shape(e, &dims, 1, shape, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_token_shape(e, NULL, 0, shape, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_token_shape(NULL, &dims, 0, shape, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_token_shape(e, &dims, 0, NULL, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_token_count(none), 0);
    assert_string_equal(posenc_param_name(none, posenc_param_count(none) - 1), "sink");
    assert_null(posenc_token_name(none, 0));
    assert_int_equal(posenc_token_count(NULL), 0);
    assert_null(posenc_token_describe(NULL, 0));
    posenc_encoding_free(e);
    posenc_encoding_free(none);
}

static void assert_refused(attention *a, posenc_status status, const char *words)
{
    posenc_error err = {0};
    a->o[0]          = 7;
    assert_int_equal(posenc_attend(a->plan, &a->in, &a->out, &a->work, &err), status);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_true(a->o[0] == 7);
}

static void what_is_wrong_with_a_token_input_is_said(void **state)
{
    static attention a;
    (void)state;
    open_run(&a, H);
    const posenc_tensor right = a.tokens[0];
    a.in.tokens               = NULL;
    assert_refused(&a, POSENC_ERROR_ARGUMENT, "token input sink is missing");
    a.in.tokens      = a.tokens;
    a.tokens[0].data = NULL;
    assert_refused(&a, POSENC_ERROR_ARGUMENT, "token input sink is missing");
    a.tokens[0] = rows(a.sink, B, 3, L, 1);
    assert_refused(&a, POSENC_ERROR_SHAPE, "sink has 3 heads; it must have 4 (of queries), 2 (of keys) or 1");
    a.tokens[0] = rows(a.sink, B, H, L - 1, 1);
    assert_refused(&a, POSENC_ERROR_SHAPE, "token input sink");
    a.tokens[0]       = right;
    a.tokens[0].dtype = POSENC_DTYPE_I64;
    assert_refused(&a, POSENC_ERROR_DTYPE, "sink is I64; it must be F32, F64, F16 or BF16");
    a.tokens[0]           = right;
    a.tokens[0].stride[1] = 0;
    assert_refused(&a, POSENC_ERROR_SHAPE, "sink must be contiguous");
    close_run(&a);
}

/* o and lse are those of a softmax with one more score, and a sink that heads share takes the sum. */
static void a_sink_is_one_more_score(void **state)
{
    static attention a, shared;
    (void)state;
    open_run(&a, H);
    run(&a);
    for (int64_t r = 0; r < B * H * L; r++) {
        const int64_t b = r / (H * L), g = r / L % H / (H / G);
        double        sum = exp((double)a.sink[r]), o[D] = {0};
        for (int64_t j = 0; j < L; j++) {
            double s = 0;
            for (int d = 0; d < D; d++)
                s += (double)a.q[r * D + d] * (double)a.k[((b * G + g) * L + j) * D + d] / sqrt((double)D);
            sum += exp(s);
            for (int d = 0; d < D; d++)
                o[d] += exp(s) * (double)a.v[((b * G + g) * L + j) * D + d];
        }
        assert_true(fabs(log(sum) - (double)a.lse[r]) < 1e-5);
        for (int d = 0; d < D; d++)
            assert_true(fabs(o[d] / sum - (double)a.o[r * D + d]) < 1e-5);
    }
    open_run(&shared, 1);
    for (int64_t b = B - 1; b >= 0; b--) /* the same sinks for all heads, one by one and together */
        for (int64_t x = 0; x < H * L; x++)
            a.sink[b * H * L + x] = shared.sink[b * L + x % L];
    run(&a);
    run(&shared);
    for (int64_t x = 0; x < B * L; x++) {
        double sum = 0;
        for (int64_t h = 0; h < H; h++)
            sum += (double)a.dsink[(x / L * H + h) * L + x % L];
        assert_true(fabs(sum - (double)shared.dsink[x]) < 1e-5);
    }
    close_run(&a);
    close_run(&shared);
}

static void a_query_without_keys_has_its_sink_alone(void **state)
{
    static attention a;
    (void)state;
    open_run(&a, H);
    a.in.k = rows(a.k, B, G, 0, D);
    a.in.v = rows(a.v, B, G, 0, D);
    run(&a);
    for (int x = 0; x < N; x++)
        assert_true(a.o[x] == 0);
    for (int x = 0; x < B * H * L; x++)
        assert_true(a.lse[x] == a.sink[x] && a.dsink[x] == a.dlse[x]);
    close_run(&a);
}

/* Items of different lengths are calls of their own, each with its own token inputs. */
static void items_with_lengths_have_their_own(void **state)
{
    static attention     a, alone;
    static const int32_t lengths[B] = {3, 2};
    (void)state;
    open_run(&a, G);
    open_run(&alone, G);
    a.in.k_lengths =
        posenc_tensor_contiguous((void *)(uintptr_t)lengths, POSENC_DTYPE_I32, 1, (const int64_t[]){B});
    run(&a);
    alone.in.k.shape[2] = alone.in.v.shape[2] = lengths[1]; /* strides stay */
    run(&alone);
    for (int x = H * L; x < 2 * H * L; x++)
        assert_true(a.lse[x] == alone.lse[x]);
    for (int x = G * L; x < 2 * G * L; x++)
        assert_true(fabsf(a.dsink[x] - alone.dsink[x]) < 1e-6f);
    close_run(&a);
    close_run(&alone);
}

/* ---- running sums ---- */

enum { GATED = 40 };

static posenc_plan *causal_plan(const char *spec, posenc_executor executor)
{
    const posenc_dims sizes   = {.B = 1, .H = 2, .G = 1, .Lq = GATED, .Lk = GATED, .D = D};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e       = encoding_of(spec);
    posenc_plan      *plan;
    posenc_error      err;
    options.executor = executor;
    options.mask     = POSENC_MASK_CAUSAL;
    if (posenc_plan_create(&plan, e, &sizes, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    posenc_encoding_free(e);
    return plan;
}

/* Two query heads and the key head that they share. */
static posenc_attend_in two_heads(float *q, int64_t queries, float *k, float *v, int64_t keys)
{
    return (posenc_attend_in){.size = sizeof(posenc_attend_in),
                              .q    = rows(q, 1, 2, queries, D),
                              .k    = rows(k, 1, 1, keys, D),
                              .v    = rows(v, 1, 1, keys, D)};
}

/* One query at the end against all keys, from the tokens, and from sums that grew in two steps. */
static void sums_of_a_cache_are_as_good_as_its_tokens(void **state)
{
    static float  q[2 * D], k[GATED * D], v[GATED * D], f[2 * GATED], o[2][2 * D];
    static double sums[2 * (GATED + 5)];
    const int64_t room[4] = {1, 2, GATED + 5, 1};
    (void)state;
    for (int i = 0; i < GATED * D; i++) {
        k[i] = cosf((float)(3 * i));
        v[i] = sinf((float)(2 * i));
    }
    for (int i = 0; i < 2 * GATED; i++)
        f[i] = 2 * sinf((float)i);
    for (int i = 0; i < 2 * D; i++)
        q[i] = sinf((float)i);
    for (int reference = 0; reference < 2; reference++) {
        posenc_plan *plan = causal_plan("fox", reference ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED);
        posenc_workspace work = workspace_for(plan, POSENC_RUN_DECODE);
        posenc_tensor    all = rows(f, 1, 2, GATED, 1), first = all, rest = all,
                      to    = posenc_tensor_contiguous(sums, POSENC_DTYPE_F64, 4, room);
        posenc_attend_in in = two_heads(q, 1, k, v, GATED);
        in.q_pos            = posenc_positions_range(GATED - 1, 1);
        first.shape[2]      = 33;
        rest.shape[2]       = GATED - 33;
        rest.data           = f + 33;
        assert_int_equal(posenc_token_sums(plan, 0, &first, &to, 0, NULL), POSENC_OK);
        assert_int_equal(posenc_token_sums(plan, 0, &rest, &to, 33, NULL), POSENC_OK);
        to.shape[2] = GATED;
        for (int i = 0; i < 2; i++) {
            const posenc_attend_out out = {.size = sizeof out, .o = rows(o[i], 1, 2, 1, D)};
            in.tokens                   = i ? NULL : &all;
            in.sums                     = i ? &to : NULL;
            assert_int_equal(posenc_attend(plan, &in, &out, &work, NULL), POSENC_OK);
        }
        for (int i = 0; i < 2 * D; i++)
            assert_true(fabsf(o[0][i] - o[1][i]) < 1e-6f && o[0][i] != 0);
        posenc_workspace_free(&work);
        posenc_plan_free(plan);
    }
}

/* ---- keys that new tokens rewrite ---- */

typedef struct chained {
    float q[GATED * 2 * D], k[GATED * D], v[GATED * D], w[GATED * D], beta[GATED], f[2 * GATED];
    float o[GATED * 2 * D], kept[GATED * D], one[2 * D];
} chained;

static void fill_chained(chained *x)
{
    for (int i = 0; i < GATED * 2 * D; i++)
        x->q[i] = sinf((float)i);
    for (int i = 0; i < GATED * D; i++) {
        x->k[i] = cosf((float)(3 * i));
        x->v[i] = sinf((float)(2 * i));
        x->w[i] = sinf((float)(7 * i)) / 2; /* about the length 1 */
    }
    for (int i = 0; i < GATED; i++)
        x->beta[i] = 1 + cosf((float)(5 * i));
    for (int i = 0; i < 2 * GATED; i++)
        x->f[i] = 2 * sinf((float)i);
    memcpy(x->kept, x->k, sizeof x->k);
}

/* Token n alone, of a tensor of tokens. */
static posenc_tensor token_at(posenc_tensor t, int64_t n)
{
    t.data     = (float *)t.data + n * t.stride[2];
    t.shape[2] = 1;
    return t;
}

/* Query n attends to the cache so far, without positions, or with the gates of fox. */
static void attend_to_cache(chained *x, const posenc_plan *plan, posenc_plan *path, int n, int gated)
{
    double           sum[2 * GATED];
    posenc_workspace work = workspace_for(plan, POSENC_RUN_DECODE);
    posenc_tensor    f    = rows(x->f, 1, 2, GATED, 1),
                  sums =
                      posenc_tensor_contiguous(sum, POSENC_DTYPE_F64, 4, (const int64_t[]){1, 2, n + 1, 1});
    posenc_attend_in        in  = two_heads(x->q, GATED, x->kept, x->v, n + 1);
    const posenc_attend_out out = {.size = sizeof out, .o = rows(x->one, 1, 2, 1, D)};
    posenc_error            err;
    in.q       = token_at(in.q, n);
    in.q_pos   = posenc_positions_range(n, 1);
    in.sums    = gated ? &sums : NULL;
    f.shape[2] = n + 1;
    if ((gated && posenc_token_sums(path, 2, &f, &sums, 0, &err)) ||
        posenc_attend(plan, &in, &out, &work, &err))
        fail_msg("token %d: %s", n, err.message);
    posenc_workspace_free(&work);
}

/* Token after token, each of which rewrites the cache: what the forward gives at once. Tokens may come
   several at a time, and the last of them sees what they made. */
static void decoding_with_rewritten_keys_is_the_forward_pass(void **state)
{
    static const char *const specs[] = {"path", "path[gate=plain]", "path[gate=scaled]"};
    (void)state;
    for (int s = 0; s < 3; s++) {
        static chained x;
        posenc_plan   *path          = causal_plan(specs[s], POSENC_EXECUTOR_AUTO),
                    *plain           = causal_plan(s ? "fox" : "nope", POSENC_EXECUTOR_AUTO);
        posenc_workspace    work     = workspace_for(path, POSENC_RUN_FORWARD);
        const posenc_tensor tokens[] = {rows(x.w, 1, 1, GATED, D), rows(x.beta, 1, 1, GATED, 1),
                                        rows(x.f, 1, 2, GATED, 1)};
        posenc_tensor       cache    = rows(x.kept, 1, 1, GATED, D);
        posenc_error        err;
        fill_chained(&x);
        posenc_attend_in        in  = two_heads(x.q, GATED, x.k, x.v, GATED);
        const posenc_attend_out out = {.size = sizeof out, .o = rows(x.o, 1, 2, GATED, D)};
        in.tokens                   = tokens;
        if (posenc_attend(path, &in, &out, &work, &err))
            fail_msg("%s: %s", specs[s], err.message);
        for (int n = 0, step; n < GATED; n += step) {
            posenc_tensor w = token_at(tokens[0], n), beta = token_at(tokens[1], n);
            step       = n == 8 ? 5 : 1;
            w.shape[2] = beta.shape[2] = step;
            if (posenc_path_keys(path, &cache, &w, &beta, n, &err))
                fail_msg("%s", err.message);
            const int last = n + step - 1;
            attend_to_cache(&x, plain, path, last, s > 0);
            for (int c = 0; c < 2 * D; c++)
                if (!(fabsf(x.one[c] - x.o[((c / D) * GATED + last) * D + c % D]) < 2e-5f))
                    fail_msg("%s: token %d, channel %d: %g instead of %g", specs[s], last, c,
                             (double)x.one[c], (double)x.o[((c / D) * GATED + last) * D + c % D]);
        }
        posenc_workspace_free(&work);
        posenc_plan_free(path);
        posenc_plan_free(plain);
    }
}

static void says(posenc_status status, posenc_status want, const posenc_error *err, const char *part)
{
    if (status != want || !strstr(err->message, part))
        fail_msg("%d: '%s' lacks '%s'", (int)status, err->message, part);
}

/* Steps of angles, which are 0.1 of a turn apart at most. */
static void fill_turned(float *q, float *k, float *phi)
{
    for (int i = 0; i < GATED * 2 * D; i++)
        q[i] = sinf((float)i);
    for (int i = 0; i < GATED * D; i++) {
        k[i]   = cosf((float)(3 * i));
        phi[i] = 0.6f * sinf((float)(5 * i));
    }
}

/* Rotated by themselves, then attended without a rotation: what attention does at once, both ways. */
static void a_rotation_by_content_is_that_of_attention(void **state)
{
    static const char *const specs[] = {"rope[content=step]", "rope[content=angle:layout=half]",
                                        "rope[content=position]", "rope[content=step:q_phase=0.5]"};
    static float             q[GATED * 2 * D], k[GATED * D], phi[GATED * D], rq[GATED * 2 * D], rk[GATED * D],
        o[2][GATED * 2 * D], lse[2][GATED * 2], dq[2][GATED * 2 * D], dk[2][GATED * D], dv[2][GATED * D],
        dphi[2][GATED * D], dout[GATED * 2 * D];
    (void)state;
    fill_turned(q, k, phi);
    for (int i = 0; i < GATED * 2 * D; i++)
        dout[i] = cosf((float)(2 * i));
    for (int n = 0; n < 8; n++) {
        const posenc_executor by     = n % 2 ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
        posenc_plan          *turned = causal_plan(specs[n / 2], by), *plain = causal_plan("nope", by);
        const int64_t         width = n / 2 == 2 ? 1 : D / 2;
        posenc_workspace      work  = workspace_for(turned, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD),
                         own        = workspace_for(plain, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
        const posenc_tensor token = rows(phi, 1, 1, GATED, width), Q = rows(q, 1, 2, GATED, D),
                            K = rows(k, 1, 1, GATED, D), RQ = rows(rq, 1, 2, GATED, D),
                            RK = rows(rk, 1, 1, GATED, D), dO = rows(dout, 1, 2, GATED, D);
        posenc_error err;
        for (int apart = 0; apart < 2; apart++) {
            posenc_tensor dtoken    = rows(dphi[apart], 1, 1, GATED, width),
                          sum       = posenc_tensor_contiguous(lse[apart], POSENC_DTYPE_F32, 3,
                                                               (const int64_t[]){1, 2, GATED});
            posenc_rotate_io   io   = {.size = sizeof io, .q = Q, .k = K, .to_q = RQ, .to_k = RK};
            posenc_attend_in   in   = {.size = sizeof in, .v = K};
            posenc_attend_out  out  = {.size = sizeof out, .o = rows(o[apart], 1, 2, GATED, D), .lse = sum};
            posenc_attend_grad grad = {.size = sizeof grad, .o = out.o, .lse = sum, .dout = dO};
            posenc_rotate_grad back = {.size = sizeof back, .dq = RQ, .dk = RK, .dtokens = &dtoken};
            io.direction            = 1;
            io.tokens               = &token;
            in.q                    = apart ? RQ : Q;
            in.k                    = apart ? RK : K;
            in.tokens               = apart ? NULL : &token;
            grad.dq = back.dto_q = rows(dq[apart], 1, 2, GATED, D);
            grad.dk = back.dto_k = rows(dk[apart], 1, 1, GATED, D);
            grad.dv              = rows(dv[apart], 1, 1, GATED, D);
            grad.dtokens         = apart ? NULL : &dtoken;
            if ((apart && posenc_rotate(turned, &io, &work, &err)) ||
                posenc_attend(apart ? plain : turned, &in, &out, apart ? &own : &work, &err) ||
                posenc_attend_backward(apart ? plain : turned, &in, &grad, apart ? &own : &work, &err) ||
                (apart && posenc_rotate_backward(turned, &io, &back, &work, &err)))
                fail_msg("%s: %s", specs[n / 2], err.message);
        }
        for (int i = 0; i < GATED * 2 * D; i++)
            assert_true(fabsf(o[0][i] - o[1][i]) < 2e-6f && fabsf(dq[0][i] - rq[i]) < 2e-5f);
        for (int i = 0; i < GATED * D; i++)
            assert_true(fabsf(dk[0][i] - rk[i]) < 2e-5f);
        for (int i = 0; i < GATED * width; i++)
            assert_true(fabsf(dphi[0][i] - dphi[1][i]) < 2e-4f * (1 + fabsf(dphi[0][i])) && dphi[0][i] != 0);
        posenc_workspace_free(&work);
        posenc_workspace_free(&own);
        posenc_plan_free(turned);
        posenc_plan_free(plain);
    }
}

/* A rotation has no mask and no segments: where positions do not rise, no token is the query's; a table has
   rows by position. */
static void what_is_wrong_with_angles_of_content_is_said(void **state)
{
    static float         q[GATED * 2 * D], k[GATED * D], phi[GATED * D];
    static double        sums[GATED * D / 2];
    static const int64_t falling[3] = {0, 2, 1};
    posenc_plan         *plan       = causal_plan("rope[content=step]", POSENC_EXECUTOR_TILED);
    posenc_workspace     work       = workspace_for(plan, POSENC_RUN_ROTATE | POSENC_RUN_ROTATE_BACKWARD);
    posenc_tensor        token = rows(phi, 1, 1, 3, D / 2), wide = rows(phi, 1, 2, 3, D / 2),
                  more = rows(phi, 1, 1, GATED + 1, D / 2), Q = rows(q, 1, 2, 3, D), K = rows(k, 1, 1, 3, D),
                  sum =
                      posenc_tensor_contiguous(sums, POSENC_DTYPE_F64, 4, (const int64_t[]){1, 1, 3, D / 2});
    posenc_rotate_io       io    = {.size = sizeof io, .q = Q, .k = K, .to_q = Q, .to_k = K, .direction = 1};
    const posenc_rotary_in table = {.size = sizeof table};
    posenc_rotate_grad     grad  = {.size = sizeof grad, .dto_q = Q, .dq = Q, .dtokens = &sum};
    posenc_error           err;
    (void)state;
    fill_turned(q, k, phi);
    says(posenc_rotate(plan, &io, &work, &err), POSENC_ERROR_ARGUMENT, &err, "token input phi is missing");
    io.tokens = &wide;
    says(posenc_rotate(plan, &io, &work, &err), POSENC_ERROR_SHAPE, &err, "1 (of keys) or 1");
    io.tokens = &more;
    says(posenc_rotate(plan, &io, &work, &err), POSENC_ERROR_SHAPE, &err, "token input phi has 1 of");
    io.tokens = &token;
    io.k_pos  = posenc_positions_array(
         posenc_tensor_contiguous((void *)(uintptr_t)falling, POSENC_DTYPE_I64, 1, (const int64_t[]){3}));
    says(posenc_rotate(plan, &io, &work, &err), POSENC_ERROR_RANGE, &err, "rotate: k_pos of token 2");
    io.k_pos = (posenc_positions){0};
    says(posenc_rotate_backward(plan, &io, &grad, &work, &err), POSENC_ERROR_ARGUMENT, &err,
         "comes from dq and dk");
    says(posenc_rotary_table(plan, POSENC_SIDE_KEYS, &table, &token, &work, &err), POSENC_ERROR_UNSUPPORTED,
         &err, "attend with that input");
    io.tokens = NULL;
    io.sums   = &sum;
    assert_int_equal(posenc_token_sums(plan, 0, &token, &sum, 0, &err), POSENC_OK);
    assert_true(fabs(sums[2 * (D / 2)] - ((double)phi[0] + (double)phi[D / 2] + (double)phi[D])) < 1e-12);
    assert_int_equal(posenc_rotate(plan, &io, &work, &err), POSENC_OK);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
}

static void what_is_wrong_with_sums_is_said(void **state)
{
    static float     x[2 * GATED * D], f[2 * GATED];
    static double    sums[2 * GATED], S[2 * GATED * GATED];
    int64_t          falling[GATED];
    const int64_t    room[4] = {1, 2, GATED, 1}, bias[3] = {2, GATED, GATED};
    posenc_plan     *plan  = causal_plan("fox", POSENC_EXECUTOR_TILED);
    posenc_workspace work  = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    posenc_tensor    token = rows(f, 1, 2, GATED, 1),
                  to       = posenc_tensor_contiguous(sums, POSENC_DTYPE_F64, 4, room),
                  b        = posenc_tensor_contiguous(S, POSENC_DTYPE_F64, 3, bias);
    posenc_attend_in in    = two_heads(x, GATED, x, x, GATED);
    posenc_error     err;
    (void)state;
    in.tokens = &token;
    for (int i = 0; i < GATED; i++)
        falling[i] = i == 7 ? 6 : i;
    says(posenc_token_sums(plan, 1, &token, &to, 0, &err), POSENC_ERROR_ARGUMENT, &err, "number 1");
    says(posenc_token_sums(plan, 0, &token, &to, 1, &err), POSENC_ERROR_RANGE, &err, "from is 1");
    says(posenc_token_sums(plan, 0, NULL, &to, 1, &err), POSENC_ERROR_ARGUMENT, &err, "token");
    says(posenc_token_sums(plan, 0, &token, &token, 0, &err), POSENC_ERROR_DTYPE, &err, "F64");
    says(posenc_bias(plan, &in, &b, &work, &err), POSENC_ERROR_UNSUPPORTED, &err, "posenc_scores");
    in.k_pos = posenc_positions_array(
        posenc_tensor_contiguous(falling, POSENC_DTYPE_I64, 1, (const int64_t[]){GATED}));
    posenc_attend_out  out  = {.size = sizeof out, .o = rows(x, 1, 2, GATED, D)};
    posenc_attend_grad grad = {.size = sizeof grad};
    says(posenc_attend(plan, &in, &out, &work, &err), POSENC_ERROR_RANGE, &err, "k_pos of token 7");
    in.sums = &token;
    says(posenc_attend(plan, &in, &out, &work, &err), POSENC_ERROR_DTYPE, &err, "in.sums of f");
    in.k_pos = (posenc_positions){0};
    in.sums  = &to;
    says(posenc_attend_backward(plan, &in, &grad, &work, &err), POSENC_ERROR_UNSUPPORTED, &err, "in.sums");
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
}

/* The sum of a query ends with its own key, which is sought where its segment begins. */
static void keys_of_a_segment_lie_side_by_side(void **state)
{
    enum { KEYS = 5 };
    static const struct {
        uint8_t       segments[KEYS];
        posenc_status status;
    } all[] = {{{0, 0, 1, 1, 1}, POSENC_OK},
               {{3, 1, 1, 0, 0}, POSENC_OK},
               {{0, 1, 0, 2, 2}, POSENC_ERROR_RANGE},
               {{2, 1, 1, 1, 2}, POSENC_ERROR_RANGE}};
    static float      x[KEYS], f[KEYS], o[KEYS];
    const posenc_dims small   = {.B = 1, .H = 1, .Lq = KEYS, .Lk = KEYS, .D = 1};
    const int64_t     ids[2]  = {1, KEYS};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    (void)state;
    options.mask = POSENC_MASK_CAUSAL | POSENC_MASK_SEGMENTS;
    assert_int_equal(posenc_encoding_create(&e, "fox", NULL, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &small, &options, &err), POSENC_OK);
    posenc_workspace        work  = workspace_for(plan, POSENC_RUN_FORWARD);
    const posenc_tensor     token = rows(f, 1, 1, KEYS, 1), one = rows(x, 1, 1, KEYS, 1);
    const posenc_attend_out out = {.size = sizeof out, .o = rows(o, 1, 1, KEYS, 1)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_attend_in in = {.size = sizeof in, .q = one, .k = one, .v = one, .tokens = &token};
        in.q_segments = posenc_tensor_contiguous((void *)(uintptr_t)all[i].segments, POSENC_DTYPE_U8, 2, ids);
        in.k_segments = in.q_segments;
        err.message[0] = 0;
        says(posenc_attend(plan, &in, &out, &work, &err), all[i].status, &err,
             all[i].status ? "side by side" : "");
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

static void what_is_wrong_with_keys_to_rewrite_is_said(void **state)
{
    static chained x;
    posenc_plan   *path = causal_plan("path", POSENC_EXECUTOR_AUTO),
                *nope   = causal_plan("nope", POSENC_EXECUTOR_AUTO);
    posenc_tensor k = rows(x.k, 1, 1, GATED, D), w = rows(x.w, 1, 1, 2, D), beta = rows(x.beta, 1, 1, 2, 1),
                  two = rows(x.w, 1, 2, 2, D), narrow = rows(x.w, 1, 1, 2, D - 1),
                  over = rows(x.k, 1, 1, 2, D);
    posenc_error err;
    (void)state;
    says(posenc_path_keys(NULL, &k, &w, &beta, 0, &err), POSENC_ERROR_ARGUMENT, &err, "NULL");
    says(posenc_path_keys(nope, &k, &w, &beta, 0, &err), POSENC_ERROR_ARGUMENT, &err, "nope");
    says(posenc_path_keys(path, &k, &w, &beta, GATED, &err), POSENC_ERROR_RANGE, &err, "from is 40");
    says(posenc_path_keys(path, &k, &two, &beta, 0, &err), POSENC_ERROR_SHAPE, &err, "w has 2 heads");
    says(posenc_path_keys(path, &k, &narrow, &beta, 0, &err), POSENC_ERROR_SHAPE, &err, "w");
    says(posenc_path_keys(path, &k, &over, &beta, 0, &err), POSENC_ERROR_ARGUMENT, &err, "w");
    assert_int_equal(posenc_path_keys(path, &k, &w, &beta, GATED - 1, &err), POSENC_OK);
    posenc_plan_free(path);
    posenc_plan_free(nope);
}

/* Where nobody said what it is: without a causal mask, beside a rotation, of query heads. */
static void what_path_is_not_for_is_said(void **state)
{
    static float            x[4 * D];
    const posenc_dims       sizes   = {.B = 1, .H = 2, .G = 1, .Lq = 2, .Lk = 2, .D = D};
    posenc_encoding        *e       = encoding_of("path"), *none;
    posenc_options          options = posenc_options_default();
    posenc_plan            *free_of_masks, *plan = causal_plan("path", POSENC_EXECUTOR_AUTO);
    posenc_error            err;
    posenc_tensor           tokens[] = {rows(x, 1, 2, 2, D), rows(x, 1, 1, 2, 1)};
    posenc_attend_in        in       = two_heads(x, 2, x, x, 2);
    static float            o[4 * D];
    const posenc_attend_out out = {.size = sizeof out, .o = rows(o, 1, 2, 2, D)};
    (void)state;
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
    in.tokens             = tokens;
    says(posenc_attend(plan, &in, &out, &work, &err), POSENC_ERROR_SHAPE, &err, "w has 2 heads");
    tokens[0] = rows(x, 1, 1, 2, D);
    assert_int_equal(posenc_attend(plan, &in, &out, &work, &err), POSENC_OK);
    assert_int_equal(posenc_plan_create(&free_of_masks, e, &sizes, &options, &err), POSENC_OK);
    says(posenc_attend(free_of_masks, &in, &out, &work, &err), POSENC_ERROR_UNSUPPORTED, &err, "causal mask");
    says(posenc_encoding_create(&none, "path+rope", NULL, &err), POSENC_ERROR_UNSUPPORTED, &err, "rope");
    says(posenc_encoding_create(&none, "path+xpos", NULL, &err), POSENC_ERROR_UNSUPPORTED, &err, "xpos");
    posenc_workspace_free(&work);
    posenc_plan_free(free_of_masks);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_input_has_a_name_and_a_shape),
        cmocka_unit_test(what_is_wrong_with_a_token_input_is_said),
        cmocka_unit_test(a_sink_is_one_more_score),
        cmocka_unit_test(a_query_without_keys_has_its_sink_alone),
        cmocka_unit_test(items_with_lengths_have_their_own),
        cmocka_unit_test(sums_of_a_cache_are_as_good_as_its_tokens),
        cmocka_unit_test(decoding_with_rewritten_keys_is_the_forward_pass),
        cmocka_unit_test(what_is_wrong_with_keys_to_rewrite_is_said),
        cmocka_unit_test(what_path_is_not_for_is_said),
        cmocka_unit_test(a_rotation_by_content_is_that_of_attention),
        cmocka_unit_test(what_is_wrong_with_angles_of_content_is_said),
        cmocka_unit_test(what_is_wrong_with_sums_is_said),
        cmocka_unit_test(keys_of_a_segment_lie_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
