/* SPDX-License-Identifier: MIT */
/*
 * pool.c: a counter, some threads, and one who watches
 *
 * Jobs are independent and long (a training run), so the next free worker takes the next number and nothing
 * else is shared. Which worker does which job changes no result: a job depends on its number alone. (Where
 * several processes share the jobs, somebody else counts: take.) The calling thread does no work; it wakes
 * ten times a second to watch, so that progress, a signal or a cancelled run need no further thread. If fewer
 * threads can be started than asked for, those that run do all the work.
 */
#include "train/pool.h"

#include "train/fail.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NANOSECONDS = 1000000000, PERIOD = NANOSECONDS / 10 };

typedef struct crew {
    const pe_pool  *pool;
    atomic_llong    next;
    atomic_int      stop;
    int             active; /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t  ended;
} crew;

static int64_t next_job(crew *c)
{
    return c->pool->take ? c->pool->take(c->pool->self) : atomic_fetch_add(&c->next, 1);
}

static void *worker(void *at)
{
    crew *c = at;
    while (!atomic_load(&c->stop)) {
        const int64_t job = next_job(c);
        if (job < 0 || job >= c->pool->jobs)
            break;
        c->pool->work(c->pool->self, job);
    }
    pthread_mutex_lock(&c->lock);
    c->active--;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static struct timespec a_moment_from_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t); /* what pthread_cond_timedwait reads unless told otherwise */
    t.tv_nsec += PERIOD;
    t.tv_sec += t.tv_nsec / NANOSECONDS;
    t.tv_nsec %= NANOSECONDS;
    return t;
}

static void watch(crew *c)
{
    if (c->pool->watch && c->pool->watch(c->pool->self))
        atomic_store(&c->stop, 1);
}

static void watch_until_the_end(crew *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->active > 0) {
        const struct timespec until = a_moment_from_now();
        while (c->active > 0 && !pthread_cond_timedwait(&c->ended, &c->lock, &until))
            ;
        pthread_mutex_unlock(&c->lock);
        watch(c);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    watch(c);
}

posenc_status pe_pool_run(const pe_pool *pool, posenc_error *err)
{
    crew       c       = {.pool = pool};
    const int  wanted  = pool->jobs < pool->workers ? (int)pool->jobs : pool->workers;
    pthread_t *threads = calloc((size_t)wanted + 1, sizeof *threads);
    int        started = 0;
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.ended, NULL);
    c.active = wanted;
    while (threads && started < wanted && !pthread_create(&threads[started], NULL, worker, &c))
        started++;
    pthread_mutex_lock(&c.lock);
    c.active -= wanted - started;
    pthread_mutex_unlock(&c.lock);
    watch_until_the_end(&c);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.lock);
    free(threads);
    return started > 0 || wanted == 0
               ? POSENC_OK
               : pe_train_fail(err, POSENC_MEMORY, "no worker thread could be started");
}
