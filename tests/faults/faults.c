/* SPDX-License-Identifier: MIT */
/*
 * faults.c: a library that is loaded before the C library (LD_PRELOAD) and lets calls fail
 *
 *     FAULT_ALLOCATION=N    the N-th allocation of the process gives NULL; 0: none, they are only counted
 *     FAULT_ALL=1           and so do all that follow
 *     FAULT_COUNT=FILE      at the end the number of allocations goes there
 *     FAULT_CLOCK=SECONDS   every reading of a clock jumps by so much, forth and back in turn
 *
 * All allocations of a process count, whoever asks for them. The processes and programs that it starts are
 * left alone.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_long asked;
static long        nth, all, jump;
static const char *count_to;

static void find(void *call, const char *name)
{
    void *const found = dlsym(RTLD_NEXT, name);
    memcpy(call, &found, sizeof found);
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void leave_alone(void)
{
    nth = jump = 0;
    count_to   = NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, leave_alone);
    nth      = number("FAULT_ALLOCATION");
    all      = number("FAULT_ALL");
    jump     = number("FAULT_CLOCK");
    count_to = getenv("FAULT_COUNT");
    unsetenv("LD_PRELOAD");
    atomic_store(&asked, 0);
}

__attribute__((destructor)) static void finish(void)
{
    const long n = atomic_load(&asked);
    nth          = 0;
    FILE *to     = count_to ? fopen(count_to, "w") : NULL;
    if (to) {
        fprintf(to, "%ld\n", n);
        fclose(to);
    }
}

static int fails(void)
{
    const long n = 1 + atomic_fetch_add(&asked, 1);
    if (!nth || n < nth || (n > nth && !all))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (!next)
        find(&next, "malloc");
    return fails() ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "calloc");
    return fails() ? NULL : next(count, size);
}

void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    if (!next)
        find(&next, "realloc");
    return fails() ? NULL : next(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "aligned_alloc");
    return fails() ? NULL : next(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    static int (*next)(void **, size_t, size_t);
    if (!next)
        find(&next, "posix_memalign");
    return fails() ? ENOMEM : next(memory, alignment, size);
}

/* The calendar's clock jumps; the one that cannot be set does not. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static atomic_long readings;
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        find(&next, "clock_gettime");
    const int status = next(clock, now);
    if (clock == CLOCK_REALTIME && jump)
        now->tv_sec += atomic_fetch_add(&readings, 1) % 2 ? jump : -jump;
    return status;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}
