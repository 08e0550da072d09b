/* SPDX-License-Identifier: MIT */
/*
 * crew.c: the messages between processes that share a comparison
 *
 *     to number 0      ASK   a worker is free            from number 0   JOB   take this run; -1: none is
 *                      left
 *                      STEP  so far is this run                          STOP  end what you do
 *                      LINE  this run is finished
 *                      FAIL  this run failed
 *                      STOP  I was told to stop
 *                      BYE   I have ended
 *
 * A message is a number and bytes. Numbers of runs mean the same everywhere, because every process has
 * checked the same configuration; number 0 compares the identity in a LINE all the same.
 *
 * Workers are threads and only the main thread may speak, so a worker that wants a run leaves a wish; the
 * main thread, which looks ten times a second, asks for it and lays the answer into a small box.
 */
#include "train/crew.h"

#include "train/fail.h"
#include "train/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum message { ASK, JOB, STEP, LINE, FAIL, STOP, BYE } message;

enum { NONE_LEFT = -1, MOST_WORKERS = 1024 };

struct pe_crew {
    pe_crew_calls   calls;
    int             others; /* number 0: processes that have not said BYE */
    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t  changed;
    int             wishes;            /* workers that wait and nobody has asked for */
    int64_t         box[MOST_WORKERS]; /* [boxed] runs that have arrived */
    int             boxed;
    int             is_empty, is_stopped; /* number 0 has no more; nobody shall begin anything */
};

posenc_status pe_crew_create(pe_crew **crew, const pe_crew_calls *calls, posenc_error *err)
{
    pe_crew *c = calloc(1, sizeof *c);
    *crew      = c;
    if (!c)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory to talk to other processes");
    c->calls  = *calls;
    c->others = pe_ranks_here() == 0 ? pe_ranks_count() - 1 : 0;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    return POSENC_OK;
}

void pe_crew_free(pe_crew *crew)
{
    if (!crew)
        return;
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

/* ---------------------------------------------------------------- sending ------------------- */

/* A number, then bytes. */
static void send_with(int to, message kind, int64_t number, const void *data, size_t n)
{
    char *whole = malloc(sizeof number + n);
    if (!whole)
        return; /* a run that is lost so is trained again by the next start */
    memcpy(whole, &number, sizeof number);
    if (n)
        memcpy(whole + sizeof number, data, n);
    pe_ranks_send(to, (int)kind, whole, sizeof number + n);
    free(whole);
}

static void send_number(int to, message kind, int64_t number)
{
    send_with(to, kind, number, NULL, 0);
}

void pe_crew_tell_finished(pe_crew *crew, int64_t job, const char *line)
{
    (void)crew;
    send_with(0, LINE, job, line, strlen(line));
}

void pe_crew_tell_advanced(pe_crew *crew, int64_t job, int64_t step)
{
    (void)crew;
    send_with(0, STEP, job, &step, sizeof step);
}

void pe_crew_tell_failed(pe_crew *crew, int64_t job, const posenc_error *err)
{
    (void)crew;
    send_with(0, FAIL, job, err, sizeof *err);
}

static void end_taking(pe_crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_stopped = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void pe_crew_tell_stop(pe_crew *crew)
{
    end_taking(crew);
    if (pe_ranks_here())
        send_number(0, STOP, 0);
    else
        for (int r = 1; r < pe_ranks_count(); r++)
            send_number(r, STOP, 0);
}

void pe_crew_leave(pe_crew *crew)
{
    end_taking(crew);
    send_number(0, BYE, 0);
}

int pe_crew_is_waiting(const pe_crew *crew)
{
    return crew->others > 0;
}

/* ---------------------------------------------------------------- workers ------------------- */

int64_t pe_crew_take(pe_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->wishes++;
    while (!crew->is_stopped && !crew->is_empty && crew->boxed == 0)
        pthread_cond_wait(&crew->changed, &crew->lock);
    const int64_t job = crew->is_stopped || crew->boxed == 0 ? NONE_LEFT : crew->box[--crew->boxed];
    pthread_mutex_unlock(&crew->lock);
    return job;
}

/* There are as many answers as there were wishes, and no more workers than the box has room for. */
static void put_in_box(pe_crew *c, int64_t job)
{
    pthread_mutex_lock(&c->lock);
    if (job < 0)
        c->is_empty = 1;
    else if (c->boxed < MOST_WORKERS)
        c->box[c->boxed++] = job;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void ask_for_wishes(pe_crew *c)
{
    pthread_mutex_lock(&c->lock);
    const int wishes = c->is_stopped ? 0 : c->wishes;
    c->wishes        = 0;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < wishes; i++)
        send_number(0, ASK, 0);
}

/* ---------------------------------------------------------------- listening ----------------- */

static void answer(pe_crew *c, int from, message kind, int64_t number, const char *rest, size_t n)
{
    const pe_crew_calls *call = &c->calls;
    posenc_error         err;
    int64_t              step;
    switch (kind) {
    case ASK: send_number(from, JOB, call->take(call->self)); break;
    case JOB: put_in_box(c, number); break;
    case LINE: call->finished(call->self, number, rest); break;
    case BYE: c->others--; break;
    case STOP:
        end_taking(c);
        call->stop(call->self);
        break;
    case STEP:
        if (n == sizeof step) {
            memcpy(&step, rest, sizeof step);
            call->advanced(call->self, number, step);
        }
        break;
    case FAIL:
        if (n == sizeof err) {
            memcpy(&err, rest, sizeof err);
            call->failed(call->self, number, &err);
        }
        break;
    }
}

void pe_crew_listen(pe_crew *crew)
{
    int     from, kind;
    void   *data;
    size_t  n;
    int64_t number;
    if (pe_ranks_here())
        ask_for_wishes(crew);
    while (pe_ranks_receive(&from, &kind, &data, &n)) {
        if (n >= sizeof number) {
            memcpy(&number, data, sizeof number);
            answer(crew, from, (message)kind, number, (char *)data + sizeof number, n - sizeof number);
        }
        free(data);
    }
}
