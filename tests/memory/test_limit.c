/* SPDX-License-Identifier: MIT */
/*
 * test_limit: attention at L = 16384 where all scores could not be held
 *
 * A child process may have 256 MiB of data (RLIMIT_DATA), a quarter of one buffer of L x L floats: that
 * malloc of such a buffer fails there is shown first, so that the rest means something. Then every encoding
 * that acts in attention, and five combinations, run forward and backward on full-length inputs: one head, D
 * = 64, tiled, one thread.
 *
 * A sliding window keeps most runs cheap: all buffers have their full length and only the tiles beside the
 * diagonal are computed. One encoding also runs without the window, all pairs. Each problem is a child of its
 * own, so that what one leaves in the heap is not charged to the next. Not under sanitizers: they reserve
 * terabytes of address space and keep freed memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/specs.h"

enum { LENGTH = 16384, WIDTH = 64, LIMIT_MIB = 256, WINDOW = 32, PARAMS = 16 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What the child tells: 0, or why not. */
enum { FITS, NO_LIMIT, SCORES_FIT, NO_BUFFER, REFUSED, NOT_FINITE };
static const char *const verdicts[] = {"fits",
                                       "the limit could not be set",
                                       "a buffer of L x L floats could be had",
                                       "an input or the workspace could not be had",
                                       "a call refused",
                                       "a result is not a finite number"};

static float *numbers(int64_t n, const char *name)
{
    float *x = aligned_alloc(64, (size_t)(n + 16) / 16 * 64);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = (float)(posenc_random_uniform(1, name, (uint64_t)i) - 0.5);
    return x;
}

static posenc_tensor rows(float *x, int64_t width)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){1, 1, LENGTH, width});
}

/* Parameters as they start, and zeroed gradients. 0 without memory. */
static int make_params(const posenc_encoding *e, const posenc_dims *dims, posenc_tensor *params,
                       posenc_tensor *dparams)
{
    for (int i = 0; i < posenc_param_count(e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        if (posenc_param_shape(e, dims, i, &ndim, shape, NULL))
            return 0;
        for (int32_t a = 0; a < ndim; a++)
            n *= shape[a];
        params[i] = posenc_tensor_contiguous(numbers(n, "p"), POSENC_DTYPE_F32, ndim, shape);
        dparams[i] =
            posenc_tensor_contiguous(calloc((size_t)n, sizeof(float)), POSENC_DTYPE_F32, ndim, shape);
        if (!params[i].data || !dparams[i].data)
            return 0;
    }
    return posenc_param_init(e, dims, params, 1, NULL) == POSENC_OK;
}

static int are_finite(const float *x, int64_t n)
{
    int ok = 1;
    for (int64_t i = 0; i < n; i++)
        ok &= x[i] - x[i] == 0;
    return ok;
}

static int refused(const char *spec, const posenc_error *err)
{
    fprintf(stderr, "%s: %s\n", spec, err->message);
    return REFUSED;
}

static int make_tokens(const posenc_encoding *e, const posenc_dims *dims, posenc_tensor *tokens,
                       posenc_tensor *dtokens)
{
    posenc_error err;
    int64_t      shape[4];
    for (int i = 0; i < posenc_token_count(e); i++) {
        if (posenc_token_shape(e, dims, i, shape, &err))
            return 0;
        const int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
        float        *x = numbers(count, "token"), *dx = numbers(count, "dtoken");
        if (!x || !dx)
            return 0;
        tokens[i]  = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, shape);
        dtokens[i] = posenc_tensor_contiguous(dx, POSENC_DTYPE_F32, 4, shape);
    }
    return 1;
}

/* Forward and backward. Nothing is freed: the process ends. */
static int attend_once(const char *spec, int mask)
{
    const posenc_dims dims = {
        .B = 1, .H = 1, .Lq = LENGTH, .Lk = LENGTH, .D = WIDTH, .d_model = WIDTH, .L = LENGTH / 8};
    posenc_options   options = posenc_options_default();
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    posenc_workspace work;
    posenc_tensor    params[PARAMS], dparams[PARAMS], tokens[PARAMS], dtokens[PARAMS];
    float           *x[9];
    options.executor = POSENC_EXECUTOR_TILED;
    options.threads  = 1;
    options.mask     = mask;
    options.window   = options.mask & POSENC_MASK_WINDOW ? WINDOW : 0;
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, &dims, &options, &err))
        return refused(spec, &err);
    if (posenc_workspace_create(&work, plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD, NULL, &err))
        return NO_BUFFER;
    for (int i = 0; i < 9; i++)
        if (!(x[i] = numbers(LENGTH * (i == 8 ? 1 : WIDTH), "x")))
            return NO_BUFFER;
    if (!make_params(e, &dims, params, dparams) || !make_tokens(e, &dims, tokens, dtokens))
        return NO_BUFFER;
    const posenc_attend_in in = {.size   = sizeof in,
                                 .q      = rows(x[0], WIDTH),
                                 .k      = rows(x[1], WIDTH),
                                 .v      = rows(x[2], WIDTH),
                                 .params = params,
                                 .tokens = tokens};
    const posenc_tensor    lse =
        posenc_tensor_contiguous(x[8], POSENC_DTYPE_F32, 3, (const int64_t[]){1, 1, LENGTH});
    const posenc_attend_out  out  = {.size = sizeof out, .o = rows(x[3], WIDTH), .lse = lse};
    const posenc_attend_grad grad = {.size    = sizeof grad,
                                     .o       = out.o,
                                     .lse     = lse,
                                     .dout    = rows(x[4], WIDTH),
                                     .dq      = rows(x[5], WIDTH),
                                     .dk      = rows(x[6], WIDTH),
                                     .dv      = rows(x[7], WIDTH),
                                     .dparams = dparams,
                                     .dtokens = dtokens};
    if (posenc_attend(plan, &in, &out, &work, &err) || posenc_attend_backward(plan, &in, &grad, &work, &err))
        return refused(spec, &err);
    for (int i = 3; i < 8; i++)
        if (!are_finite(x[i], LENGTH * WIDTH))
            return NOT_FINITE;
    return FITS;
}

static int limited(const char *spec, int mask)
{
    const struct rlimit limit = {(rlim_t)LIMIT_MIB << 20, (rlim_t)LIMIT_MIB << 20};
    if (setrlimit(RLIMIT_DATA, &limit))
        return NO_LIMIT;
    void *volatile scores = malloc((size_t)LENGTH * LENGTH * sizeof(float));
    if (scores)
        return SCORES_FIT;
    return attend_once(spec, mask);
}

static void assert_fits(const char *spec, int mask)
{
    int         status = 0;
    const pid_t child  = fork();
    if (child == 0)
        _exit(limited(spec, mask));
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status))
        fail_msg("%s: the process was killed by signal %d", spec, WTERMSIG(status));
    if (WEXITSTATUS(status) != FITS)
        fail_msg("%s: %s", spec, verdicts[WEXITSTATUS(status)]);
}

static int is_sanitized(void)
{
    if (SANITIZED)
        print_message("skipped: sanitizers reserve more address space than the limit leaves\n");
    return SANITIZED;
}

static void every_encoding_and_combination_runs_where_all_scores_would_not_fit(void **state)
{
    (void)state;
    if (is_sanitized())
        skip();
    char spec[SPEC_TEXT];
    for (int i = 0; spec_at(spec, i, LENGTH); i++)
        if (spec[0])
            assert_fits(spec, POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW);
}

static void one_runs_over_all_pairs(void **state)
{
    (void)state;
    if (is_sanitized())
        skip();
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        spec[SPEC_TEXT];
        if (info->place == POSENC_PLACE_SCORE && info->by_distance && info->param_count > 0 &&
            spec_at(spec, i, LENGTH) && spec[0]) {
            assert_fits(spec, POSENC_MASK_CAUSAL);
            return;
        }
    }
    fail_msg("the registry has no learned bias by distance");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_encoding_and_combination_runs_where_all_scores_would_not_fit),
        cmocka_unit_test(one_runs_over_all_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
