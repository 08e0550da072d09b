/* SPDX-License-Identifier: MIT */
/*
 * pool.c: a queue of jobs, worker threads, one thread that watches, and messages between processes
 *
 * Jobs are independent and long (a training run), so a free worker takes the next number and nothing else is
 * shared. A worker that wants a job requests one. The calling thread does no work: it wakes for every request
 * and ten times a second, puts a number into the queue for each, and watches, so that progress, a signal or a
 * cancelled run need no further thread. Process 0 takes the numbers from its counter; another process asks
 * for them, as only this one thread may send messages:
 *
 *     to process 0     ASK   a worker is free            from process 0  JOB   take this one; -1: no more
 *                      STOP  I was told to stop                          STOP  end what you do
 *                      BYE   I have ended
 *                      and those of pool.h
 *
 * A message is a number and bytes. Numbers mean the same everywhere, because every process has checked the
 * same configuration. If fewer threads can be started than asked for, those that run do all the work.
 */
#include "train/jobs/pool.h"

#include "base/status.h"
#include "train/jobs/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASK = PE_MESSAGES, JOB, STOP, BYE, NANOSECONDS = 1000000000, PERIOD = NANOSECONDS / 10 };

typedef struct pool {
    const pe_pool_calls *calls;
    int                  others;     /* process 0: processes that have not said BYE */
    int                  is_stopped; /* all processes have been told */
    pthread_mutex_t      lock;       /* of all that follows */
    pthread_cond_t       changed;
    int                  active;   /* workers that have not ended */
    int                  requests; /* of workers, not yet served */
    int                  is_closed;
    int64_t              queue[PE_MOST_WORKERS]; /* [queued] jobs for those that wait */
    int                  queued;
} pool;

/* ---------------------------------------------------------------- messages ------------------ */

static void send_message(int to, int kind, int64_t number, const void *data, size_t n)
{
    char *whole = malloc(sizeof number + n);
    if (!whole)
        return; /* a run that is lost so is trained again by the next start */
    memcpy(whole, &number, sizeof number);
    if (n)
        memcpy(whole + sizeof number, data, n);
    pe_ranks_send(to, kind, whole, sizeof number + n);
    free(whole);
}

void pe_pool_tell(pe_message message, int64_t job, const void *data, size_t n)
{
    send_message(0, (int)message, job, data, n);
}

/* ---------------------------------------------------------------- the queue ----------------- */

/* There are as many jobs as there were requests, and no more workers than the queue has places. -1 closes it.
 */
static void enqueue(pool *p, int64_t job)
{
    pthread_mutex_lock(&p->lock);
    if (job < 0)
        p->is_closed = 1;
    else
        p->queue[p->queued++] = job;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* No further job is handed out. */
static void stop_pool(pool *p)
{
    p->is_stopped = 1;
    pthread_mutex_lock(&p->lock);
    p->queued = 0;
    pthread_mutex_unlock(&p->lock);
    enqueue(p, -1);
}

/* A job, or -1. */
static int64_t dequeue(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->requests++;
    pthread_cond_broadcast(&p->changed);
    while (!p->is_closed && p->queued == 0)
        pthread_cond_wait(&p->changed, &p->lock);
    const int64_t job = p->queued ? p->queue[--p->queued] : -1;
    pthread_mutex_unlock(&p->lock);
    return job;
}

static void *run_worker(void *at)
{
    pool *p = at;
    for (int64_t job = dequeue(p); job >= 0; job = dequeue(p))
        p->calls->work(p->calls->self, job);
    pthread_mutex_lock(&p->lock);
    p->active--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---------------------------------------------------------------- the watching thread ------- */

/* Until there is a request, a worker has ended, or a tenth of a second has passed. */
static void wait_for_change(pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until); /* which the condition waits by: the calendar may be set back */
    until.tv_nsec += PERIOD;
    until.tv_sec += until.tv_nsec / NANOSECONDS;
    until.tv_nsec %= NANOSECONDS;
    pthread_mutex_lock(&p->lock);
    for (const int active = p->active; (p->requests == 0 || p->is_closed) && p->active == active;)
        if (pthread_cond_timedwait(&p->changed, &p->lock, &until))
            break;
    pthread_mutex_unlock(&p->lock);
}

static void serve_requests(pool *p)
{
    pthread_mutex_lock(&p->lock);
    const int requests = p->is_closed ? 0 : p->requests;
    p->requests        = 0;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < requests; i++)
        if (pe_ranks_here())
            send_message(0, ASK, 0, NULL, 0);
        else
            enqueue(p, p->calls->next(p->calls->self));
}

static void handle(pool *p, int from, int kind, int64_t number, const char *rest, size_t n)
{
    const pe_pool_calls *call = p->calls;
    if (kind == ASK)
        send_message(from, JOB, p->is_stopped ? -1 : call->next(call->self), NULL, 0);
    else if (kind == JOB && !p->is_stopped)
        enqueue(p, number);
    else if (kind == STOP) {
        stop_pool(p);
        call->stop(call->self);
    } else if (kind == BYE)
        p->others--;
    else if (kind < PE_MESSAGES)
        call->receive(call->self, (pe_message)kind, number, rest, n);
}

static void receive_messages(pool *p)
{
    int     from, kind;
    void   *data;
    size_t  n;
    int64_t number;
    while (pe_ranks_receive(&from, &kind, &data, &n)) {
        if (n >= sizeof number) {
            memcpy(&number, data, sizeof number);
            handle(p, from, kind, number, (char *)data + sizeof number, n - sizeof number);
        }
        free(data);
    }
}

/* The first that stops tells process 0, which tells all others. */
static void send_stop(pool *p)
{
    stop_pool(p);
    if (pe_ranks_here())
        send_message(0, STOP, 0, NULL, 0);
    else
        for (int r = 1; r < pe_ranks_count(); r++)
            send_message(r, STOP, 0, NULL, 0);
}

static void watch_workers(pool *p)
{
    int is_told = 0, is_over = 0;
    while (!is_over) {
        wait_for_change(p);
        serve_requests(p);
        receive_messages(p);
        pthread_mutex_lock(&p->lock);
        is_over = p->active == 0 && p->others == 0;
        pthread_mutex_unlock(&p->lock);
        if (p->calls->watch(p->calls->self) && !is_told) {
            is_told = 1;
            send_stop(p);
        }
    }
    if (pe_ranks_here())
        send_message(0, BYE, 0, NULL, 0);
}

posenc_status pe_pool_run(const pe_pool_calls *calls, int workers, posenc_error *err)
{
    pool      p = {.calls = calls, .others = pe_ranks_here() ? 0 : pe_ranks_count() - 1, .active = workers};
    pthread_t threads[PE_MOST_WORKERS];
    int       started = 0;
    pthread_mutex_init(&p.lock, NULL);
    pthread_condattr_t by;
    pthread_condattr_init(&by);
    pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    pthread_cond_init(&p.changed, &by);
    pthread_condattr_destroy(&by);
    while (started < workers && !pthread_create(&threads[started], NULL, run_worker, &p))
        started++;
    pthread_mutex_lock(&p.lock);
    p.active -= workers - started;
    pthread_mutex_unlock(&p.lock);
    if (started == 0 && workers > 0)
        send_stop(&p);
    watch_workers(&p);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
    return started > 0 || workers == 0
               ? POSENC_OK
               : pe_fail(err, POSENC_ERROR_MEMORY, "no worker thread could be started");
}
