/* SPDX-License-Identifier: MIT */
/*
 * test_parallel: tasks on several threads
 *
 * What callers rely on: every task runs exactly once, whatever the number of tasks and threads; the thread
 * number is a valid index of scratch memory, and no two tasks that run at once share it; one thread means the
 * calling one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/parallel.h"

enum { MOST = 1000, THREADS = 8 };

typedef struct watch {
    atomic_int runs[MOST], busy[THREADS], shared, out_of_range, elsewhere;
    int        threads;
    pthread_t  caller;
} watch;

static void look(void *context, int64_t index, int thread)
{
    watch *w = context;
    atomic_fetch_add(&w->runs[index], 1);
    if (thread < 0 || thread >= w->threads) {
        atomic_fetch_add(&w->out_of_range, 1);
        return;
    }
    if (atomic_fetch_add(&w->busy[thread], 1) != 0)
        atomic_fetch_add(&w->shared, 1);
    if (!pthread_equal(pthread_self(), w->caller))
        atomic_fetch_add(&w->elsewhere, 1);
    atomic_fetch_sub(&w->busy[thread], 1);
}

static void every_task_runs_once_with_scratch_of_its_own(void **state)
{
    static const int counts[] = {0, 1, 2, 7, 100, MOST};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int threads = 1; threads <= THREADS; threads++) {
            static watch w;
            w = (watch){.threads = threads, .caller = pthread_self()};
            pe_parallel_for(counts[c], &(pe_team){.threads = threads}, look, &w);
            for (int i = 0; i < MOST; i++)
                assert_int_equal(w.runs[i], i < counts[c]);
            assert_int_equal(w.out_of_range, 0);
            assert_int_equal(w.shared, 0);
            if (threads == 1)
                assert_int_equal(w.elsewhere, 0);
        }
}

static void a_request_for_threads_is_kept_and_zero_means_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(pe_parallel_threads(1), 1);
    assert_int_equal(pe_parallel_threads(37), 37);
    assert_true(pe_parallel_threads(0) >= 1);
    assert_true(pe_parallel_threads(-5) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_with_scratch_of_its_own),
        cmocka_unit_test(a_request_for_threads_is_kept_and_zero_means_at_least_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
