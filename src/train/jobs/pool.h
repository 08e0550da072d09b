/* SPDX-License-Identifier: MIT */
/*
 * crew.h: who does which job: threads of this process, and of others (ranks.h)
 *
 * One queue: number 0 counts, and whoever has a free worker asks. A job depends on its number alone, so which
 * worker of which process does it changes no number.
 */
#ifndef PE_TRAIN_CREW_H
#define PE_TRAIN_CREW_H

#include <posenc/posenc.h>
#include <stdint.h>

enum { PE_MOST_WORKERS = 1024 };

/* What a process may tell number 0 about a job: it has come so far (int64_t), it is finished (as pe_job_pack
   has it), it has failed (posenc_error). */
typedef enum pe_news { PE_NEWS_STEP, PE_NEWS_FINISHED, PE_NEWS_FAILED, PE_NEWS } pe_news;

/* All but `work` are called on the thread that called pe_crew_run. */
typedef struct pe_crew_calls {
    void *self;
    /* Does a job, on a worker's thread. */
    void (*work)(void *self, int64_t job);
    /* Number 0: the next job that nobody has, or -1. */
    int64_t (*next)(void *self);
    /* At least ten times a second, and once at the end. Nonzero: hand out no further job, here or elsewhere
       (the caller tells the running ones himself). */
    int (*watch)(void *self);
    /* Number 0: another process has told something. NULL where there is none. */
    void (*hear)(void *self, pe_news news, int64_t job, const void *data, size_t n);
    /* Another process stops everything. */
    void (*stop)(void *self);
} pe_crew_calls;

/* Returns when every job that was handed out has ended, at number 0 also those of the others. MEMORY if no
   thread could be started. */
posenc_status pe_crew_run(const pe_crew_calls *calls, int workers, posenc_error *err);
/* From a process other than number 0, in watch. */
void pe_crew_tell(pe_news news, int64_t job, const void *data, size_t n);

#endif
