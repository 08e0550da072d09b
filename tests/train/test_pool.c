/* SPDX-License-Identifier: MIT */
/*
 * Workers: that every job is done once, whoever does it, and that a word stops the rest.
 */
#include "train/jobs/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { JOBS = 200 };

typedef struct board {
    atomic_int done[JOBS];
    atomic_int total;
    int64_t    given, jobs;
    int        watched;
    atomic_int stop;
} board;

static void work(void *self, int64_t job)
{
    board *b = self;
    atomic_fetch_add(&b->done[job], 1);
    atomic_fetch_add(&b->total, 1);
}

static int64_t next(void *self)
{
    board *b = self;
    return b->given < b->jobs ? b->given++ : -1;
}

static int watch(void *self)
{
    board *b = self;
    b->watched++;
    return atomic_load(&b->stop);
}

static void every_job_is_done_once_by_any_number_of_workers(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 5; workers++) {
        board               b     = {.jobs = JOBS};
        const pe_pool_calls calls = {.self = &b, .work = work, .next = next, .watch = watch};
        assert_int_equal(pe_pool_run(&calls, workers, NULL), POSENC_OK);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(atomic_load(&b.done[i]), 1);
        assert_true(b.watched >= 1);
    }
}

/* A job that waits until the watcher has spoken, so that the test does not depend on the clock. */
static void work_slowly(void *self, int64_t job)
{
    board *b = self;
    work(self, job);
    while (!atomic_load(&b->stop))
        ;
}

static int watch_and_stop(void *self)
{
    board *b = self;
    atomic_store(&b->stop, 1);
    return 1;
}

static void a_word_of_the_watcher_ends_it(void **state)
{
    board               b     = {.jobs = JOBS};
    const pe_pool_calls calls = {.self = &b, .work = work_slowly, .next = next, .watch = watch_and_stop};
    (void)state;
    assert_int_equal(pe_pool_run(&calls, 2, NULL), POSENC_OK);
    assert_true(atomic_load(&b.total) < JOBS);
}

static void no_jobs_are_no_error(void **state)
{
    board               b     = {0};
    const pe_pool_calls calls = {.self = &b, .work = work, .next = next, .watch = watch};
    (void)state;
    assert_int_equal(pe_pool_run(&calls, 2, NULL), POSENC_OK);
    assert_int_equal(atomic_load(&b.total), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_done_once_by_any_number_of_workers),
        cmocka_unit_test(a_word_of_the_watcher_ends_it),
        cmocka_unit_test(no_jobs_are_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
