/* SPDX-License-Identifier: MIT */
/*
 * pool.c: the library's threads where it is built without OpenMP
 *
 * Helpers sleep until there is work; none of them spins. Whoever has work puts it on a list, wakes as many
 * helpers as it wants and begins itself: it waits for nobody but helpers that have joined. So it ends with
 * any number of helpers, also none, several callers share them, and a task may have work of its own.
 *
 * A child of fork() has no helpers: the list is locked during a fork, and the child begins with an empty one.
 * Helpers live as long as the process; signals are for the program's own threads. On Windows, which has
 * neither forks nor such signals, the threads are winpthreads', of mingw-w64.
 */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/parallel.h"

/* Lives on the stack of the caller, who leaves after the last helper. */
typedef struct helped_job {
    posenc_task       *task;
    void              *argument;
    int64_t            n;
    atomic_llong       next;           /* the first task that nobody has taken */
    int                wanted, joined; /* helpers that may still join, and have */
    int                working;        /* have, and have not left */
    struct helped_job *after;          /* on the list */
} helped_job;

typedef struct helper_pool {
    pthread_mutex_t lock;
    pthread_cond_t  work, left; /* there is a job; a helper has left one */
    helped_job     *jobs;       /* those that want helpers, the oldest first */
    int             idle;       /* helpers that nobody has called, or that are about to come into being */
} helper_pool;

#define EMPTY                                                                \
    {                                                                        \
        .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, \
        .left = PTHREAD_COND_INITIALIZER                                     \
    }

static helper_pool the_pool = EMPTY;

static void run_tasks(helped_job *j, int slot)
{
    for (int64_t index; (index = (int64_t)atomic_fetch_add(&j->next, 1)) < j->n;)
        j->task(j->argument, index, slot);
}

static void append(helper_pool *p, helped_job *j)
{
    helped_job **at = &p->jobs;
    while (*at)
        at = &(*at)->after;
    *at = j;
}

static void take_out(helper_pool *p, const helped_job *j)
{
    helped_job **at = &p->jobs;
    while (*at && *at != j)
        at = &(*at)->after;
    if (*at)
        *at = j->after;
}

/* What a helper does with the first job: it comes and leaves with the pool locked. */
static void help(helper_pool *p)
{
    helped_job *j    = p->jobs;
    const int   slot = ++j->joined;
    j->working++;
    if (--j->wanted == 0)
        take_out(p, j);
    pthread_mutex_unlock(&p->lock);
    run_tasks(j, slot);
    pthread_mutex_lock(&p->lock);
    j->working--;
    pthread_cond_broadcast(&p->left);
}

static void *live(void *argument)
{
    helper_pool *p = argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        p->idle--;
        while (p->jobs)
            help(p);
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
    }
    return NULL;
}

/* pthread_create of a thread that gets no signals. */
static int create_deaf(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
#ifdef _WIN32
    return pthread_create(thread, how, run, argument);
#else
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(thread, how, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
#endif
}

/* One helper more; where the system gives none the job has fewer. */
static void start_helper(helper_pool *p)
{
    pthread_t      thread;
    pthread_attr_t detached;
    if (pthread_attr_init(&detached))
        return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    p->idle += create_deaf(&thread, &detached, live, p) == 0;
    pthread_attr_destroy(&detached);
}

/* ---- fork ---- */

#ifdef _WIN32
static void watch_forks(void)
{
}
#else
static void lock_pool(void)
{
    pthread_mutex_lock(&the_pool.lock);
}

static void unlock_pool(void)
{
    pthread_mutex_unlock(&the_pool.lock);
}

static void empty_pool(void)
{
    the_pool = (helper_pool)EMPTY;
}

static void watch_forks(void)
{
    pthread_atfork(lock_pool, unlock_pool, empty_pool);
}
#endif

/* ---- contract: parallel.h ---- */

void pe_parallel_own(int64_t n, int threads, posenc_task *task, void *argument)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    helper_pool          *p    = &the_pool;
    const int             most = n < threads ? (int)n : threads;
    helped_job            j    = {.task = task, .argument = argument, .n = n, .wanted = most - 1};
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&p->lock);
    append(p, &j);
    for (int i = p->idle; i < j.wanted; i++)
        start_helper(p);
    for (int i = 0; i < j.wanted; i++)
        pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    run_tasks(&j, 0);
    pthread_mutex_lock(&p->lock);
    take_out(p, &j);
    while (j.working)
        pthread_cond_wait(&p->left, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int pe_parallel_default(void)
{
    return pe_parallel_processors();
}

int pe_parallel_processors(void)
{
#ifdef __linux__
    cpu_set_t mine;
    if (!sched_getaffinity(0, sizeof mine, &mine))
        return CPU_COUNT(&mine);
#endif
#ifdef _WIN32
    const long all = pthread_num_processors_np();
#else
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return all < 1 ? 1 : (int)all;
}
