/* SPDX-License-Identifier: MIT */
/*
 * memory.c: how memory grows with the length, for every encoding of the registry: G12, and the memory of G17
 *
 * A child process makes the problem, writes all inputs and outputs, then runs forward or backward and tells
 * by how much its peak of resident pages grew meanwhile: whatever the run touched that was neither input nor
 * output, be it workspace, stack or heap. A child starts with its parent's pages and with what the parent's
 * heap has freed, which would hide what the run takes: it gives the freed pages back and resets its peak,
 * before it makes the problem and before the run. From L to 2 L that may double. A matrix of Lq x Lk
 * would grow fourfold, even of single bits: 2 MiB at L = 4096, and a page is 4 KiB. A quarter of a
 * mebibyte is added on both sides, so that a few pages of the C library do not count. Encodings at the input
 * have no pairs; their rows are measured the same way.
 */
#include "bench/metric.h"
#include "bench/workload.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define FLOOR_KILOBYTES 256.0

/* What a child reports: kilobytes, or why there are none. */
typedef struct child_report {
    double       kilobytes;
    posenc_error err;
} child_report;

static double peak(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss;
}

/* Freed memory goes back to the system, and the peak becomes what is resident now (Linux; elsewhere the peak
   stays). */
static void forget_peak(void)
{
    static const char word[] = "5"; /* of proc(5), clear_refs: reset the peak resident set size */
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    const int file = open("/proc/self/clear_refs", O_WRONLY);
    if (file < 0)
        return;
    const int done = write(file, word, sizeof word - 1) == (ssize_t)(sizeof word - 1);
    close(file);
    (void)done;
}

static void measure_child(child_report *to, const pe_bench_case *c)
{
    pe_workload w;
    pe_workload_open(&w, c, 1, &to->err);
    forget_peak();
    const double before = peak();
    pe_workload_start(&w, &to->err);
    to->kilobytes = peak() - before;
}

static posenc_status ask_child(double *kilobytes, const pe_bench_case *c, posenc_error *err)
{
    int          ends[2];
    child_report said = {0};
    *err              = (posenc_error){POSENC_ERROR_MEMORY, "no second process can be started"};
    if (pipe(ends))
        return err->status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        pe_workload_use_small_pages();
        forget_peak();
        measure_child(&said, c);
        _exit(write(ends[1], &said, sizeof said) != (ssize_t)sizeof said);
    }
    close(ends[1]);
    if (child > 0) {
        *err = (posenc_error){POSENC_ERROR_MEMORY, "the measuring process ended early (out of memory?)"};
        if (read(ends[0], &said, sizeof said) == (ssize_t)sizeof said)
            *err = said.err;
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    *kilobytes = said.kilobytes;
    return err->status;
}

/* limit: MiB at the shorter length. */
posenc_status pe_memory_growth(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    pe_bench_case twice   = *c;
    double        at_once = 0, at_twice = 0;
    (void)effort;
    twice.shape.Lq = twice.shape.Lk = 2 * c->shape.Lk;
    posenc_status status            = ask_child(&at_once, c, err);
    if (!status)
        status = ask_child(&at_twice, &twice, err);
    if (status)
        return status;
    figure->value = (at_twice + FLOOR_KILOBYTES) / (at_once + FLOOR_KILOBYTES);
    figure->q1 = figure->q3 = figure->value;
    figure->limit           = at_once / 1024;
    return POSENC_OK;
}

posenc_status pe_memory_megabytes(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    double              kilobytes;
    const posenc_status status = ask_child(&kilobytes, c, err);
    (void)effort;
    if (!status)
        figure->value = figure->q1 = figure->q3 = kilobytes / 1024;
    return status;
}
