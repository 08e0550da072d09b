/* SPDX-License-Identifier: MIT */
/*
 * crew.h: who takes which run, when several processes (ranks.h) work on one comparison
 *
 * Number 0 hands out runs, to itself and to whoever asks, and gathers finished ones as lines (record.h). The
 * others ask whenever a worker of theirs is free. Which process does which run changes no number.
 */
#ifndef PE_TRAIN_CREW_H
#define PE_TRAIN_CREW_H

#include <posenc/posenc.h>
#include <stdint.h>

/* What the comparison does when a message comes. Called from pe_crew_listen alone, on the main thread. */
typedef struct pe_crew_calls {
    void *self;
    /* Number 0: the next run for somebody else, or -1 if none is left. */
    int64_t (*take)(void *self);
    /* Number 0: another process has finished a run (its line), has come so far with it, or has failed. */
    void (*finished)(void *self, int64_t job, const char *line);
    void (*advanced)(void *self, int64_t job, int64_t step);
    void (*failed)(void *self, int64_t job, const posenc_error *err);
    /* Everybody: the comparison is being stopped. */
    void (*stop)(void *self);
} pe_crew_calls;

typedef struct pe_crew pe_crew;

/* MEMORY at worst. */
posenc_status pe_crew_create(pe_crew **crew, const pe_crew_calls *calls, posenc_error *err);
void          pe_crew_free(pe_crew *crew); /* NULL is fine */

/* Answers what has arrived. */
void pe_crew_listen(pe_crew *crew);
/* The next run for a worker of a process other than number 0; waits for it, -1 at the end. Any thread. */
int64_t pe_crew_take(pe_crew *crew);
/* To number 0. */
void pe_crew_tell_finished(pe_crew *crew, int64_t job, const char *line);
void pe_crew_tell_advanced(pe_crew *crew, int64_t job, int64_t step);
void pe_crew_tell_failed(pe_crew *crew, int64_t job, const posenc_error *err);
/* From number 0, or to it: stop. */
void pe_crew_tell_stop(pe_crew *crew);
/* A process other than number 0 has done all it will do. */
void pe_crew_leave(pe_crew *crew);
/* Number 0: are others still at work? */
int pe_crew_is_waiting(const pe_crew *crew);

#endif
