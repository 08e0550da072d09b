/* SPDX-License-Identifier: MIT */
/*
 * pool.h: workers that take whole jobs
 */
#ifndef PE_TRAIN_POOL_H
#define PE_TRAIN_POOL_H

#include <posenc/posenc.h>
#include <stdint.h>

typedef struct pe_pool {
    void   *self;
    int64_t jobs;
    int     workers; /* threads */
    /* Does job number `job`; called on a worker's thread. */
    void (*work)(void *self, int64_t job);
    /* Called on the calling thread about ten times a second, and once at the end. Nonzero: hand out no
       further job (the caller tells the running ones himself). May be NULL. */
    int (*watch)(void *self);
    /* The job that a free worker takes, or -1 when there is none; called on its thread, and may wait as long
       as watch goes on being called. NULL: 0, 1, ... jobs - 1. */
    int64_t (*take)(void *self);
} pe_pool;

/* Returns when every job that was handed out has ended. MEMORY if no thread could be started. */
posenc_status pe_pool_run(const pe_pool *pool, posenc_error *err);

#endif
