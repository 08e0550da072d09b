/* SPDX-License-Identifier: MIT */
/*
 * test_workspace: memory by what is run, and threads, flags and memory of the caller
 *
 * What a workspace is asked for is what a run takes: one made for another kind, fewer queries or fewer
 * threads is refused before anything is written. Memory that is asked for stays within what a server can
 * spare.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workspace.h"

enum { B = 1, H = 4, L = 96, D = 32, N = B * H * L * D };

/* Attention of a SPEC without parameters, forward and backward. */
typedef struct attending {
    posenc_plan       *plan;
    float              q[N], k[N], v[N], o[N], lse[B * H * L], dout[N], dq[N], dk[N], dv[N];
    posenc_attend_in   in;
    posenc_attend_out  out;
    posenc_attend_grad grad;
} attending;

static posenc_tensor rows(float *x)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){B, H, L, D});
}

static posenc_plan *plan_of(const char *spec, const posenc_dims *dims, const posenc_options *options)
{
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, dims, options, &err))
        fail_msg("%s: %s", spec, err.message);
    posenc_encoding_free(e); /* a plan needs it no more */
    return plan;
}

static const posenc_dims dims = {.B = B, .H = H, .Lq = L, .Lk = L, .D = D};

static attending *attending_make(const posenc_options *options)
{
    attending *x = calloc(1, sizeof *x);
    for (int i = 0; i < N; i++) {
        x->q[i]    = (float)posenc_random_normal(1, "q", (uint64_t)i);
        x->k[i]    = (float)posenc_random_normal(1, "k", (uint64_t)i);
        x->v[i]    = (float)posenc_random_normal(1, "v", (uint64_t)i);
        x->dout[i] = (float)posenc_random_normal(1, "dout", (uint64_t)i);
    }
    const posenc_tensor lse =
        posenc_tensor_contiguous(x->lse, POSENC_DTYPE_F32, 3, (const int64_t[]){B, H, L});
    x->plan = plan_of("rope", &dims, options);
    x->in   = (posenc_attend_in){
          .size = sizeof(posenc_attend_in), .q = rows(x->q), .k = rows(x->k), .v = rows(x->v)};
    x->out  = (posenc_attend_out){.size = sizeof(posenc_attend_out), .o = rows(x->o), .lse = lse};
    x->grad = (posenc_attend_grad){.size = sizeof(posenc_attend_grad),
                                   .o    = x->out.o,
                                   .lse  = lse,
                                   .dout = rows(x->dout),
                                   .dq   = rows(x->dq),
                                   .dk   = rows(x->dk),
                                   .dv   = rows(x->dv)};
    return x;
}

static void attending_free(attending *x)
{
    posenc_plan_free(x->plan);
    free(x);
}

static void attend_and_back(attending *x)
{
    posenc_workspace work = workspace_for(x->plan, POSENC_RUN_ATTEND | POSENC_RUN_ATTEND_BACKWARD);
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, NULL), POSENC_OK);
    assert_int_equal(posenc_attend_backward(x->plan, &x->in, &x->grad, &work, NULL), POSENC_OK);
    posenc_workspace_free(&work);
}

static void assert_same(const attending *x, const attending *y)
{
    assert_memory_equal(x->o, y->o, sizeof x->o);
    assert_memory_equal(x->dq, y->dq, sizeof x->dq);
    assert_memory_equal(x->dk, y->dk, sizeof x->dk);
    assert_memory_equal(x->dv, y->dv, sizeof x->dv);
}

static posenc_options on_threads(int threads)
{
    posenc_options o = posenc_options_default();
    o.threads        = threads;
    return o;
}

/* ---- asked for ---- */

static void what_is_no_run_takes_no_bytes(void **state)
{
    attending   *x = attending_make(NULL);
    posenc_sizes s = posenc_sizes_default();
    (void)state;
    assert_true(posenc_plan_workspace(NULL, POSENC_RUN_ATTEND, NULL) == 0);
    assert_true(posenc_plan_workspace(x->plan, (posenc_run)POSENC_PLACE_SCORE, NULL) == 0);
    assert_true(posenc_plan_workspace(x->plan, (posenc_run)0, NULL) == 0);
    assert_true(posenc_plan_workspace(x->plan, POSENC_RUN_ATTEND, &s) > 0);
    s.Lk = L + 1;
    assert_true(posenc_plan_workspace(x->plan, POSENC_RUN_ATTEND, &s) == 0);
    s.Lk = -1;
    assert_true(posenc_plan_workspace(x->plan, POSENC_RUN_ATTEND, &s) == 0);
    attending_free(x);
}

static void a_workspace_of_the_wrong_kind_is_refused(void **state)
{
    attending       *x    = attending_make(NULL);
    posenc_workspace work = workspace_for(x->plan, POSENC_RUN_ATTEND);
    posenc_error     err;
    (void)state;
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, &err), POSENC_OK);
    assert_int_equal(posenc_attend_backward(x->plan, &x->in, &x->grad, &work, &err), POSENC_ERROR_WORKSPACE);
    assert_non_null(strstr(err.message, "but this run takes"));
    for (int i = 0; i < N; i++)
        assert_true(x->dq[i] == 0 && x->dk[i] == 0 && x->dv[i] == 0);
    posenc_workspace_free(&work);
    attending_free(x);
}

static void more_threads_than_the_workspace_was_made_for_are_refused(void **state)
{
    const posenc_options one  = on_threads(1);
    attending           *x    = attending_make(&one);
    posenc_workspace     work = workspace_for(x->plan, POSENC_RUN_ATTEND);
    (void)state;
    work.threads = 3;
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, NULL), POSENC_ERROR_WORKSPACE);
    work.threads = 1;
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, NULL), POSENC_OK);
    posenc_workspace_free(&work);
    attending_free(x);
}

/* ---- how much ---- */

static size_t bytes_of_width(const char *spec, posenc_run run, int64_t Lq, int64_t Lk, int64_t width,
                             int threads)
{
    const posenc_dims    large = {.B = 1, .H = 32, .G = 8, .Lq = Lq, .Lk = Lk, .D = width};
    const posenc_options o     = on_threads(threads);
    posenc_sizes         s     = posenc_sizes_default();
    posenc_plan         *plan  = plan_of(spec, &large, &o);
    const size_t         bytes = posenc_plan_workspace(plan, run, &s);
    posenc_plan_free(plan);
    return bytes;
}

static size_t bytes_of(const char *spec, posenc_run run, int64_t Lq, int64_t Lk, int threads)
{
    return bytes_of_width(spec, run, Lq, Lk, 128, threads);
}

/* Rotations of the plan, of the run, learned; by rows that climb, grow, or are products. */
static void a_rotation_takes_at_most_256_kib_a_thread_at_any_length(void **state)
{
    static const char *const specs[] = {"rope",
                                        "xpos",
                                        "rope[schedule=dynamic:max_length=4096:factor=4]",
                                        "rope[schedule=longrope:factor=4:original_length=4096]",
                                        "rope[schedule=explicit]",
                                        "rope[schedule=yarn:factor=4:original_length=4096:layout=half]",
                                        "rope[axis_rule=matrix:axes=2]"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int64_t n = 1; n <= 1 << 20; n *= 32)
            for (int64_t width = 64; width <= 512; width *= 2)
                for (int threads = 1; threads <= 8; threads++) {
                    const posenc_run runs  = POSENC_RUN_ROTATE | POSENC_RUN_ROTATE_BACKWARD;
                    const size_t     bytes = bytes_of_width(specs[i], runs, n, n, width, threads);
                    if (bytes > (size_t)threads << 18)
                        fail_msg("%s, D %d, %d threads: %zu bytes", specs[i], (int)width, threads, bytes);
                }
}

static void one_query_takes_at_most_1_mib_a_thread_against_any_cache(void **state)
{
    static const char *const specs[] = {"nope", "rope", "alibi", "t5", "rope+alibi"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int64_t n = 1; n <= 1 << 20; n *= 32)
            for (int threads = 1; threads <= 8; threads++) {
                const size_t bytes = bytes_of(specs[i], POSENC_RUN_DECODE, 1, n, threads);
                if (bytes > (size_t)threads << 20)
                    fail_msg("%s, %lld keys, %d threads: %zu bytes", specs[i], (long long)n, threads, bytes);
            }
}

/* 32 parts of each cache, which only longer ones are cut into, took 8 MiB. */
static void short_caches_of_64_sequences_take_less_than_1_mib(void **state)
{
    const posenc_dims    many = {.B = 64, .H = 8, .Lq = 1, .Lk = 800, .D = 128};
    const posenc_options one  = on_threads(1);
    posenc_plan         *plan = plan_of("nope", &many, &one);
    (void)state;
    assert_true(posenc_plan_workspace(plan, POSENC_RUN_DECODE, NULL) < 1 << 20);
    posenc_plan_free(plan);
}

/* A run does not count what it takes where its workspace has enough for all that its plan is made for. */
static void assert_smaller_take_less(const posenc_encoding_info *info, posenc_dims of, int executor,
                                     int threads)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16, POSENC_DTYPE_F64};
    static const int64_t      keys[]  = {1, 2, 15, 63, 64, 65, 127, 128, 129, 300, 513, 1000, 4000, 9000};
    posenc_options            o       = on_threads(threads);
    o.executor                        = (posenc_executor)executor;
    o.mask                            = POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING;
    o.window                          = 700;
    posenc_plan *plan                 = plan_of(info->name, &of, &o);
    for (int run = 0; run < 2; run++) {
        const posenc_run kind = run ? POSENC_RUN_SCORES : POSENC_RUN_ATTEND;
        const size_t     all  = posenc_plan_workspace(plan, run ? kind : POSENC_RUN_DECODE, NULL);
        for (size_t i = 0; i < sizeof keys / sizeof *keys && keys[i] <= of.Lk; i++)
            for (int64_t Lq = 1; Lq <= POSENC_DECODE_QUERIES; Lq++)
                for (int64_t b = 1; b <= of.B; b++) {
                    posenc_sizes s = posenc_sizes_default();
                    s.B            = b;
                    s.Lq           = Lq;
                    s.Lk           = keys[i];
                    s.threads      = 1 + (int)i % threads;
                    s.dtype        = types[Lq % 3];
                    if (posenc_plan_workspace(plan, kind, &s) > all)
                        fail_msg("%s, run %d: %d x %d queries, %d keys take more than %zu bytes", info->name,
                                 (int)kind, (int)b, (int)Lq, (int)keys[i], all);
                }
    }
    posenc_plan_free(plan);
}

static void smaller_runs_take_no_more_than_all_few_of_a_plan(void **state)
{
    static const posenc_dims of[] = {{.B = 3, .H = 4, .Lq = 8, .Lk = 300, .D = 32},
                                     {.B = 2, .H = 8, .G = 2, .Lq = 8, .Lk = 9000, .D = 64},
                                     {.B = 1, .H = 32, .G = 8, .Lq = 20, .Lk = 131072, .D = 128}};
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (size_t d = 0; d < sizeof of / sizeof *of; d++)
            for (int executor = POSENC_EXECUTOR_AUTO; executor <= POSENC_EXECUTOR_REFERENCE; executor++)
                for (int threads = 1; threads <= 3; threads += 2) /* one: no items side by side */
                    if (posenc_encoding_info_at(i)->place != POSENC_PLACE_INPUT)
                        assert_smaller_take_less(posenc_encoding_info_at(i), of[d], executor, threads);
}

/* ---- of the caller ---- */

/* Tasks from the last to the first on two threads that are made for them. */
typedef struct half {
    int64_t      n;
    posenc_task *task;
    void        *argument;
    int          slot;
} half;

static int calls;

static void *run_half(void *of)
{
    const half *h = of;
    for (int64_t index = h->n - 1; index >= 0; index--)
        if (index % 2 == h->slot)
            h->task(h->argument, index, h->slot);
    return NULL;
}

static void my_parallel_for(void *context, int64_t n, posenc_task *task, void *argument)
{
    half      halves[2] = {{n, task, argument, 0}, {n, task, argument, 1}};
    pthread_t other;
    calls += *(int *)context;
    assert_int_equal(pthread_create(&other, NULL, run_half, &halves[1]), 0);
    run_half(&halves[0]);
    pthread_join(other, NULL);
}

static void threads_of_the_caller_give_the_same_bits(void **state)
{
    int            one  = 1;
    posenc_options mine = on_threads(2), alone = on_threads(1), ours = on_threads(3);
    mine.parallel_for     = my_parallel_for;
    mine.parallel_context = &one;
    attending *x = attending_make(&alone), *y = attending_make(&mine), *z = attending_make(&ours);
    (void)state;
    attend_and_back(x), attend_and_back(y), attend_and_back(z);
    assert_true(calls > 0);
    assert_same(x, y);
    assert_same(x, z);
    attending_free(x), attending_free(y), attending_free(z);
}

static void threads_of_the_caller_must_be_counted(void **state)
{
    posenc_options   o = posenc_options_default();
    posenc_plan     *plan;
    posenc_error     err;
    posenc_encoding *e;
    (void)state;
    o.parallel_for = my_parallel_for;
    assert_int_equal(posenc_encoding_create(&e, "rope", NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, &o, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "options.threads"));
    posenc_encoding_free(e);
}

static void a_flag_ends_a_run(void **state)
{
    volatile int   stop   = 0;
    posenc_options o      = on_threads(2);
    o.cancel              = &stop;
    attending       *x    = attending_make(&o);
    posenc_workspace work = workspace_for(x->plan, POSENC_RUN_ATTEND);
    (void)state;
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, NULL), POSENC_OK);
    stop = 1;
    memset(x->o, 0, sizeof x->o);
    assert_int_equal(posenc_attend(x->plan, &x->in, &x->out, &work, NULL), POSENC_ERROR_CANCELLED);
    for (int i = 0; i < N; i++)
        assert_true(x->o[i] == 0);
    posenc_workspace_free(&work);
    attending_free(x);
}

/* ---- several at once ---- */

/* Runs again and again on one plan and one bound, with a workspace of its own, until it is cancelled. */
typedef struct runner {
    const posenc_plan *plan;
    attending         *x;
    float              alone[N]; /* what a run writes that has no other beside it */
    atomic_int         runs;     /* finished: the test waits for the first */
    int                others;
    posenc_status      status;
} runner;

static void *run_until_cancelled(void *of)
{
    runner          *r    = of;
    posenc_workspace work = workspace_for(r->plan, POSENC_RUN_ATTEND);
    while (!(r->status = posenc_attend(r->plan, &r->x->in, &r->x->out, &work, NULL))) {
        r->others += memcmp(r->x->o, r->alone, sizeof r->alone) != 0;
        atomic_fetch_add(&r->runs, 1);
    }
    posenc_workspace_free(&work);
    return NULL;
}

/* However loaded the machine is, for a minute at most. */
static void wait_for_a_run_of_each(runner r[2])
{
    for (int i = 0; i < 60000 && !(atomic_load(&r[0].runs) && atomic_load(&r[1].runs)); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void two_runs_at_once_share_plan_and_bound_until_another_thread_cancels_them(void **state)
{
    static float   numbers[32 * H];
    static runner  r[2];
    atomic_int     stop  = 0;
    posenc_options o     = on_threads(2);
    posenc_tensor  table = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F32, 2, (int64_t[]){32, H});
    posenc_bound  *bound;
    pthread_t      thread[2];
    (void)state;
    for (int i = 0; i < 32 * H; i++)
        numbers[i] = (float)posenc_random_normal(1, "table", (uint64_t)i);
    o.cancel          = (const volatile int *)&stop;
    posenc_plan *plan = plan_of("t5", &dims, &o);
    assert_int_equal(posenc_plan_bind(&bound, plan, &table, NULL), POSENC_OK);
    for (int i = 0; i < 2; i++) {
        posenc_workspace work = workspace_for(plan, POSENC_RUN_ATTEND);
        r[i]                  = (runner){.plan = plan, .x = attending_make(NULL)};
        r[i].x->in.bound      = bound;
        assert_int_equal(posenc_attend(plan, &r[i].x->in, &r[i].x->out, &work, NULL), POSENC_OK);
        memcpy(r[i].alone, r[i].x->o, sizeof r[i].alone);
        posenc_workspace_free(&work);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_until_cancelled, &r[i]), 0);
    wait_for_a_run_of_each(r);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* and more of them side by side */
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(r[i].status, POSENC_ERROR_CANCELLED);
        assert_true(atomic_load(&r[i].runs) > 0);
        assert_int_equal(r[i].others, 0);
        attending_free(r[i].x);
    }
    posenc_bound_free(bound);
    posenc_plan_free(plan);
}

/* A child that hangs is ended by its alarm. */
static void a_child_of_a_process_that_ran_with_two_threads_runs(void **state)
{
    const posenc_options two = on_threads(2);
    attending           *x = attending_make(&two), *y = attending_make(&two);
    int                  status = 0;
    (void)state;
    attend_and_back(x);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        attend_and_back(y);
        _exit(memcmp(x->o, y->o, sizeof x->o) || memcmp(x->dk, y->dk, sizeof x->dk));
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    attending_free(x), attending_free(y);
}

/* Counts, and fails from call number `left` on. */
typedef struct bank {
    int asked, held, left;
} bank;

static void *lend(void *context, size_t alignment, size_t bytes)
{
    bank *b = context;
    b->asked++;
    if (b->left-- <= 0)
        return NULL;
    b->held++;
    return aligned_alloc(alignment, bytes);
}

static void take_back(void *context, void *memory)
{
    ((bank *)context)->held--;
    free(memory);
}

static void objects_live_in_memory_of_the_caller(void **state)
{
    bank             b = {.left = 1000};
    posenc_options   o = posenc_options_default();
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
    (void)state;
    posenc_allocator from = {sizeof from, lend, take_back, &b};
    o.allocator           = &from;
    assert_int_equal(posenc_encoding_create_in(&e, "rope", NULL, &from, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, &o, NULL), POSENC_OK);
    assert_int_equal(posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, NULL, NULL), POSENC_OK);
    assert_true(b.held >= 3);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    posenc_workspace_free(&work); /* the plan is gone */
    assert_int_equal(b.held, 0);
    b.left = 0;
    assert_int_equal(posenc_encoding_create_in(&e, "rope", NULL, &from, NULL), POSENC_ERROR_MEMORY);
    from.release = NULL;
    assert_int_equal(posenc_encoding_create_in(&e, "rope", NULL, &from, NULL), POSENC_ERROR_ARGUMENT);
}

static double operations_of(const char *spec, int64_t d_model)
{
    posenc_dims d      = dims;
    d.d_model          = d_model;
    posenc_plan *plan  = plan_of(spec, &d, NULL);
    const double count = posenc_plan_operations(plan);
    posenc_plan_free(plan);
    return count;
}

/* DeBERTa projects 2 tables of 1024 rows, each number of a row for each of H * D; FLOATER's layers are d by
 * d.
 */
static void operations_grow_with_the_width(void **state)
{
    const double each = 2 * 1024 * 2.0 * H * D;
    (void)state;
    const double narrow = operations_of("deberta[projected=no]", 16);
    assert_true(operations_of("deberta[projected=no]", 48) - narrow == 32 * each);
    const double some = operations_of("floater[dim=16:solver=exact]", 16);
    assert_true(operations_of("floater[dim=32:solver=exact]", 32) > 3 * some && some > (L - 1) * 16 * 16);
}

/* All 2^40 cells for each of two rows: eight operations for the weight of a tap, two for its product. */
static void operations_are_counted_without_a_walk(void **state)
{
    const double one = operations_of("learned_resize[kind=bicubic_antialias:grid_in=1:grid_out=2:dim=1]", 16),
                 all = operations_of(
                     "learned_resize[kind=bicubic_antialias:grid_in=1099511627776:grid_out=2:dim=1]", 16);
    (void)state;
    assert_true(all - one == 2 * 10 * (0x1p40 - 1));
}

static void numbers_and_names_of_nothing_are_nothing(void **state)
{
    posenc_workspace work;
    (void)state;
    assert_int_equal(posenc_param_count(NULL), 0);
    assert_null(posenc_param_name(NULL, 0));
    assert_null(posenc_param_describe(NULL, 0));
    assert_int_equal(posenc_param_trainable(NULL, 0), 0);
    assert_null(posenc_encoding_spec(NULL));
    assert_null(posenc_encoding_part(NULL, POSENC_PLACE_SCORE));
    assert_int_equal(posenc_rows_width(NULL), 0);
    assert_int_equal(posenc_rows_coordinates(NULL), 1);
    assert_int_equal(posenc_rotary_width(NULL, POSENC_SIDE_KEYS), 0);
    assert_int_equal(posenc_rotary_coordinates(NULL), 1);
    assert_int_equal(posenc_rotary_heads(NULL), 1);
    assert_true(posenc_plan_operations(NULL) == 0);
    assert_int_equal(posenc_workspace_create(&work, NULL, POSENC_RUN_ROWS, NULL, NULL),
                     POSENC_ERROR_ARGUMENT);
    posenc_workspace_free(&work);
    posenc_workspace_free(NULL);
    posenc_plan_free(NULL);
    posenc_encoding_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_run_takes_no_bytes),
        cmocka_unit_test(a_workspace_of_the_wrong_kind_is_refused),
        cmocka_unit_test(more_threads_than_the_workspace_was_made_for_are_refused),
        cmocka_unit_test(a_rotation_takes_at_most_256_kib_a_thread_at_any_length),
        cmocka_unit_test(one_query_takes_at_most_1_mib_a_thread_against_any_cache),
        cmocka_unit_test(short_caches_of_64_sequences_take_less_than_1_mib),
        cmocka_unit_test(smaller_runs_take_no_more_than_all_few_of_a_plan),
        cmocka_unit_test(threads_of_the_caller_give_the_same_bits),
        cmocka_unit_test(threads_of_the_caller_must_be_counted),
        cmocka_unit_test(a_flag_ends_a_run),
        cmocka_unit_test(two_runs_at_once_share_plan_and_bound_until_another_thread_cancels_them),
        cmocka_unit_test(a_child_of_a_process_that_ran_with_two_threads_runs),
        cmocka_unit_test(objects_live_in_memory_of_the_caller),
        cmocka_unit_test(operations_grow_with_the_width),
        cmocka_unit_test(operations_are_counted_without_a_walk),
        cmocka_unit_test(numbers_and_names_of_nothing_are_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
