/* SPDX-License-Identifier: MIT */
/*
 * crew.c: a counter, some threads, one who watches, and messages between processes
 *
 * Jobs are independent and long (a training run), so a free worker takes the next number and nothing else is
 * shared. A worker that wants a job leaves a wish. The calling thread does no work: it wakes for every wish
 * and ten times a second, lays a number into a small box for each, and watches, so that progress, a signal or
 * a cancelled run need no further thread. Number 0 takes the numbers from its counter; another process asks
 * for them, as only this one thread may speak:
 *
 *     to number 0      ASK   a worker is free            from number 0   JOB   take this one; -1: none left
 *                      STOP  I was told to stop                          STOP  end what you do
 *                      BYE   I have ended
 *                      and news (crew.h)
 *
 * A message is a number and bytes. Numbers mean the same everywhere, because every process has checked the
 * same configuration. If fewer threads can be started than asked for, those that run do all the work.
 */
#include "train/jobs/pool.h"

#include "train/fail.h"
#include "train/jobs/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASK = PE_NEWS, JOB, STOP, BYE, NANOSECONDS = 1000000000, PERIOD = NANOSECONDS / 10 };

typedef struct crew {
    const pe_crew_calls *calls;
    int                  others;     /* number 0: processes that have not said BYE */
    int                  is_stopped; /* everybody has been told */
    pthread_mutex_t      lock;       /* of all that follows */
    pthread_cond_t       changed;
    int                  active; /* workers that have not ended */
    int                  wishes; /* workers that wait and nobody has asked for */
    int                  is_closed;
    int64_t              box[PE_MOST_WORKERS]; /* [boxed] jobs for those who wait */
    int                  boxed;
} crew;

/* ---------------------------------------------------------------- messages ------------------ */

static void send(int to, int kind, int64_t number, const void *data, size_t n)
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

void pe_crew_tell(pe_news news, int64_t job, const void *data, size_t n)
{
    send(0, (int)news, job, data, n);
}

/* ---------------------------------------------------------------- the box ------------------- */

/* There are as many jobs as there were wishes, and no more workers than the box has room for. -1 closes it.
 */
static void put(crew *c, int64_t job)
{
    pthread_mutex_lock(&c->lock);
    if (job < 0)
        c->is_closed = 1;
    else
        c->box[c->boxed++] = job;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Nobody shall begin anything more. */
static void stop(crew *c)
{
    c->is_stopped = 1;
    pthread_mutex_lock(&c->lock);
    c->boxed = 0;
    pthread_mutex_unlock(&c->lock);
    put(c, -1);
}

/* A job, or -1. */
static int64_t take(crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->wishes++;
    pthread_cond_broadcast(&c->changed);
    while (!c->is_closed && c->boxed == 0)
        pthread_cond_wait(&c->changed, &c->lock);
    const int64_t job = c->boxed ? c->box[--c->boxed] : -1;
    pthread_mutex_unlock(&c->lock);
    return job;
}

static void *worker(void *at)
{
    crew *c = at;
    for (int64_t job = take(c); job >= 0; job = take(c))
        c->calls->work(c->calls->self, job);
    pthread_mutex_lock(&c->lock);
    c->active--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---------------------------------------------------------------- the one who watches ------- */

/* Until there is a wish, a worker has ended, or a tenth of a second has passed. */
static void wait_a_moment(crew *c)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* what pthread_cond_timedwait reads unless told otherwise */
    until.tv_nsec += PERIOD;
    until.tv_sec += until.tv_nsec / NANOSECONDS;
    until.tv_nsec %= NANOSECONDS;
    pthread_mutex_lock(&c->lock);
    for (const int active = c->active; (c->wishes == 0 || c->is_closed) && c->active == active;)
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until))
            break;
    pthread_mutex_unlock(&c->lock);
}

static void grant_wishes(crew *c)
{
    pthread_mutex_lock(&c->lock);
    const int wishes = c->is_closed ? 0 : c->wishes;
    c->wishes        = 0;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < wishes; i++)
        if (pe_ranks_here())
            send(0, ASK, 0, NULL, 0);
        else
            put(c, c->calls->next(c->calls->self));
}

static void answer(crew *c, int from, int kind, int64_t number, const char *rest, size_t n)
{
    const pe_crew_calls *call = c->calls;
    if (kind == ASK)
        send(from, JOB, c->is_stopped ? -1 : call->next(call->self), NULL, 0);
    else if (kind == JOB && !c->is_stopped)
        put(c, number);
    else if (kind == STOP) {
        stop(c);
        call->stop(call->self);
    } else if (kind == BYE)
        c->others--;
    else if (kind < PE_NEWS)
        call->hear(call->self, (pe_news)kind, number, rest, n);
}

static void listen(crew *c)
{
    int     from, kind;
    void   *data;
    size_t  n;
    int64_t number;
    while (pe_ranks_receive(&from, &kind, &data, &n)) {
        if (n >= sizeof number) {
            memcpy(&number, data, sizeof number);
            answer(c, from, kind, number, (char *)data + sizeof number, n - sizeof number);
        }
        free(data);
    }
}

/* The first who stops tells number 0, which tells everybody. */
static void tell_stop(crew *c)
{
    stop(c);
    if (pe_ranks_here())
        send(0, STOP, 0, NULL, 0);
    else
        for (int r = 1; r < pe_ranks_count(); r++)
            send(r, STOP, 0, NULL, 0);
}

static void look_after(crew *c)
{
    int is_told = 0, is_over = 0;
    while (!is_over) {
        wait_a_moment(c);
        grant_wishes(c);
        listen(c);
        pthread_mutex_lock(&c->lock);
        is_over = c->active == 0 && c->others == 0;
        pthread_mutex_unlock(&c->lock);
        if (c->calls->watch(c->calls->self) && !is_told) {
            is_told = 1;
            tell_stop(c);
        }
    }
    if (pe_ranks_here())
        send(0, BYE, 0, NULL, 0);
}

posenc_status pe_crew_run(const pe_crew_calls *calls, int workers, posenc_error *err)
{
    crew      c = {.calls = calls, .others = pe_ranks_here() ? 0 : pe_ranks_count() - 1, .active = workers};
    pthread_t threads[PE_MOST_WORKERS];
    int       started = 0;
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.changed, NULL);
    while (started < workers && !pthread_create(&threads[started], NULL, worker, &c))
        started++;
    pthread_mutex_lock(&c.lock);
    c.active -= workers - started;
    pthread_mutex_unlock(&c.lock);
    if (started == 0 && workers > 0)
        tell_stop(&c);
    look_after(&c);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
    return started > 0 || workers == 0
               ? POSENC_OK
               : pe_train_fail(err, POSENC_MEMORY, "no worker thread could be started");
}
