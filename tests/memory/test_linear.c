/* SPDX-License-Identifier: MIT */
/*
 * test_linear: the tiled executor's memory grows with the length, not with its square
 *
 * The plan says how many bytes a run takes beyond inputs and outputs; twice the length may take at most 2.1
 * times as many, forward and backward, for every encoding of the registry; one head of 64 channels stays
 * below 64 MiB at 16384 tokens, for combinations too and on two threads. That runs keep to what the plan says
 * is seen here too: bytes behind the workspace must stay untouched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"
#include "memory/specs.h"

static size_t bytes_at(const posenc_encoding_info *info, int64_t L, posenc_executor executor, int mask,
                       posenc_run run)
{
    /* the settings are those of one model: they do not follow the length */
    const posenc_dims model   = {.B = 1, .H = 8, .Lq = 512, .Lk = 512, .D = 64, .L = 512};
    posenc_dims       dims    = model;
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan = NULL;
    posenc_error      err;
    char              small[256];
    dims.Lq = dims.Lk = L;
    options.executor  = executor;
    options.mask      = mask;
    assert_int_equal(posenc_small_model(info->name, &model, POSENC_MASK_CAUSAL, small, sizeof small, &err),
                     POSENC_OK);
    if (posenc_encoding_create(&e, info->name, small, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err))
        fail_msg("%s: %s", info->name, err.message);
    const size_t bytes = posenc_plan_workspace(plan, run, NULL);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return bytes;
}

static const posenc_run runs[] = {POSENC_RUN_ROWS,   POSENC_RUN_ROWS_BACKWARD,  POSENC_RUN_ROTATE,
                                  POSENC_RUN_ATTEND, POSENC_RUN_DECODE,         POSENC_RUN_ROTATE_BACKWARD,
                                  POSENC_RUN_SCORES, POSENC_RUN_ATTEND_BACKWARD};

static void twice_the_length_takes_at_most_2_1_times_the_memory(void **state)
{
    static const int masks[] = {POSENC_MASK_CAUSAL, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING};
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++)
            for (int m = 0; m < 2; m++) {
                const posenc_encoding_info *info = posenc_encoding_info_at(i);
                const posenc_run            run  = runs[r];
                if (is_quadratic(info))
                    continue;
                const size_t one = bytes_at(info, 8192, POSENC_EXECUTOR_TILED, masks[m], run),
                             two = bytes_at(info, 16384, POSENC_EXECUTOR_TILED, masks[m], run);
                if (!((double)two <= 2.1 * (double)one))
                    fail_msg("%s, run %d: %zu bytes at 8192, %zu at 16384", info->name, run, one, two);
            }
}

/* At 16384 one row of scores for each query would be 1 GiB in float. */
static void no_run_takes_the_memory_of_all_scores(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            const posenc_run run = runs[r];
            if (is_quadratic(posenc_encoding_info_at(i)))
                continue;
            const size_t bytes =
                bytes_at(posenc_encoding_info_at(i), 16384, POSENC_EXECUTOR_TILED, POSENC_MASK_CAUSAL, run);
            if (bytes >= (size_t)16384 * 16384 * sizeof(float))
                fail_msg("%s, run %d: %zu bytes", posenc_encoding_info_at(i)->name, run, bytes);
        }
}

/* One head, D = 64, forward and backward together. A bias by distance takes some 20 MiB at 16384; a vector
   for each of 2 L distances takes 32 MiB more (rows, the same transposed, gradients of two chunks). */
static size_t one_head(const char *spec, int64_t L, int threads)
{
    const posenc_dims dims    = {.B = 1, .H = 1, .Lq = L, .Lk = L, .D = 64, .d_model = 64, .L = 2048};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan = NULL;
    posenc_error      err;
    options.executor = POSENC_EXECUTOR_TILED;
    options.mask     = POSENC_MASK_CAUSAL;
    options.threads  = threads;
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, &dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    const size_t bytes = posenc_plan_workspace(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD, NULL);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return bytes;
}

enum { LONGEST = 16384, MOST_MIB = 64 };

static double mib(size_t bytes)
{
    return (double)bytes / 1048576;
}

/* Tells of every specification for which `is_wrong` says so, before it fails. */
static void judge_all(int (*is_wrong)(const size_t bytes[3]))
{
    char spec[SPEC_TEXT];
    int  wrong = 0;
    for (int threads = 1; threads <= 2; threads++)
        for (int i = 0; spec_at(spec, i, LONGEST); i++) {
            if (!spec[0])
                continue;
            const size_t bytes[3] = {one_head(spec, LONGEST / 4, threads),
                                     one_head(spec, LONGEST / 2, threads), one_head(spec, LONGEST, threads)};
            if (!is_wrong(bytes))
                continue;
            print_error("%s, %d thread(s): %.1f, %.1f, %.1f MiB at 4096, 8192, 16384\n", spec, threads,
                        mib(bytes[0]), mib(bytes[1]), mib(bytes[2]));
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static int grows_too_fast(const size_t bytes[3])
{
    return (double)bytes[1] > 2.1 * (double)bytes[0] || (double)bytes[2] > 2.1 * (double)bytes[1];
}

static int is_too_much(const size_t bytes[3])
{
    return bytes[2] >= (size_t)MOST_MIB << 20;
}

static void one_head_and_combinations_grow_linearly_on_one_thread_and_two(void **state)
{
    (void)state;
    judge_all(grows_too_fast);
}

static void one_head_of_16384_takes_less_than_64_mib(void **state)
{
    (void)state;
    judge_all(is_too_much);
}

static void workspaces_are_multiples_of_64_and_cover_all_runs_that_are_named(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (int first = 1; first < 1 << 8; first = 2 * first + 1) {
            const posenc_encoding_info *info  = posenc_encoding_info_at(i);
            size_t                      most  = 0;
            const size_t                bytes = bytes_at(info, 100, POSENC_EXECUTOR_AUTO, POSENC_MASK_NONE,
                                                         (posenc_run)(first * (int)POSENC_RUN_ROWS));
            assert_true(bytes > 0 && bytes % 64 == 0);
            for (int run = POSENC_RUN_ROWS; run <= first * (int)POSENC_RUN_ROWS; run *= 2) {
                const size_t one =
                    bytes_at(info, 100, POSENC_EXECUTOR_AUTO, POSENC_MASK_NONE, (posenc_run)run);
                most = one > most ? one : most;
            }
            assert_true(bytes == most);
        }
}

enum { BEHIND = 4096 };

static posenc_workspace guarded_workspace(size_t bytes)
{
    return posenc_workspace_over(memset(aligned_alloc(64, bytes + BEHIND), 0x77, bytes + BEHIND), bytes);
}

static void assert_untouched(const posenc_workspace *work, const char *name, const char *run)
{
    const unsigned char *behind = (const unsigned char *)work->memory + work->bytes;
    for (int i = 0; i < BEHIND; i++)
        if (behind[i] != 0x77)
            fail_msg("%s: %s wrote behind its workspace of %zu bytes", name, run, work->bytes);
}

static void runs_keep_to_the_workspace_that_the_plan_names(void **state)
{
    const posenc_dims dims = {
        .B = 2, .H = 4, .G = 2, .Lq = 45, .Lk = 83, .D = 10, .Dv = 6, .d_model = 16, .L = 64};
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < posenc_encoding_count(); i++) {
            const char *name = posenc_encoding_info_at(i)->name;
            char        spec[300], small[256];
            assert_int_equal(posenc_small_model(name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                             POSENC_OK);
            snprintf(spec, sizeof spec, "%s%s%s%s", name, *small ? "[" : "", small, *small ? "]" : "");
            attention_case c   = case_make(spec, dims, 1);
            c.options.mask     = POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING;
            attention_result r = case_run(&c, wide);
            posenc_plan     *plan;
            posenc_tensor    params[CASE_PARAMS], dparams[CASE_PARAMS];
            c.options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
            assert_int_equal(posenc_plan_create(&plan, c.e, &dims, &c.options, NULL), POSENC_OK);
            for (int p = 0; p < c.param_count; p++)
                dparams[p] = array_tensor(&r.dparams[p], wide);
            const posenc_attend_in   in      = case_in(&c, wide, params);
            const posenc_attend_out  out     = {.size = sizeof out,
                                                .o    = array_tensor(&r.o, wide),
                                                .lse  = array_tensor(&r.lse, wide)};
            const posenc_attend_grad grad    = {.size    = sizeof grad,
                                                .o       = out.o,
                                                .lse     = out.lse,
                                                .dout    = array_tensor(&c.dout, wide),
                                                .dq      = array_tensor(&r.dq, wide),
                                                .dk      = array_tensor(&r.dk, wide),
                                                .dv      = array_tensor(&r.dv, wide),
                                                .dparams = dparams};
            const size_t             forward = posenc_plan_workspace(plan, POSENC_RUN_FORWARD, NULL),
                         back                = posenc_plan_workspace(plan, POSENC_RUN_BACKWARD, NULL);
            posenc_workspace work            = guarded_workspace(forward);
            assert_int_equal(posenc_attend(plan, &in, &out, &work, NULL), POSENC_OK);
            assert_untouched(&work, name, "attend");
            free(work.memory);
            work = guarded_workspace(back);
            assert_int_equal(posenc_attend_backward(plan, &in, &grad, &work, NULL), POSENC_OK);
            assert_untouched(&work, name, "its backward");
            free(work.memory);
            posenc_plan_free(plan);
            result_free(&r);
            case_free(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_the_length_takes_at_most_2_1_times_the_memory),
        cmocka_unit_test(no_run_takes_the_memory_of_all_scores),
        cmocka_unit_test(one_head_and_combinations_grow_linearly_on_one_thread_and_two),
        cmocka_unit_test(one_head_of_16384_takes_less_than_64_mib),
        cmocka_unit_test(workspaces_are_multiples_of_64_and_cover_all_runs_that_are_named),
        cmocka_unit_test(runs_keep_to_the_workspace_that_the_plan_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
