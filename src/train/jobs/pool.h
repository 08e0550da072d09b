/* SPDX-License-Identifier: MIT */
/*
 * pool.h: a pool of workers: threads of this process, and of others (ranks.h)
 *
 * One queue: process 0 counts, and whichever has a free worker asks. A job depends only on its number, so
 * which worker of which process does it changes no result.
 */
#ifndef PE_TRAIN_POOL_H
#define PE_TRAIN_POOL_H

#include <posenc/posenc.h>
#include <stdint.h>

enum { PE_MOST_WORKERS = 1024 };

/* What a process may tell process 0 about a job: it has come so far (int64_t), it is finished (as pe_job_pack
   has it), it has failed (posenc_error). */
typedef enum pe_message { PE_MESSAGE_STEP, PE_MESSAGE_FINISHED, PE_MESSAGE_FAILED, PE_MESSAGES } pe_message;

/* All except `work` are called on the thread that called pe_pool_run. */
typedef struct pe_pool_calls {
    void *self;
    /* Does a job, on a worker's thread. */
    void (*work)(void *self, int64_t job);
    /* Process 0: the next job that no worker has taken, or -1. */
    int64_t (*next)(void *self);
    /* At least ten times a second, and once at the end. Nonzero: hand out no further job, here or elsewhere
       (the caller tells the running ones). */
    int (*watch)(void *self);
    /* Process 0: another process has told something. NULL where there is none. */
    void (*receive)(void *self, pe_message message, int64_t job, const void *data, size_t n);
    /* Another process stops everything. */
    void (*stop)(void *self);
} pe_pool_calls;

/* Returns when every job that was handed out has ended, at number 0 also those of the others. MEMORY if no
   thread could be started. */
posenc_status pe_pool_run(const pe_pool_calls *calls, int workers, posenc_error *err);
/* From a process other than number 0, in watch. */
void pe_pool_tell(pe_message message, int64_t job, const void *data, size_t n);

#endif
