/* SPDX-License-Identifier: MIT */
/*
 * workspace.c: how much memory runs take
 *
 * The engine counts it: each pass lays its pieces out once on an arena without memory. A run counts again,
 * for its own sizes (pe_run_open): so it is refused exactly where it has fewer bytes than are said here.
 */
#include <assert.h>
#include <string.h>

#include "api/objects.h"
#include "base/memory.h"
#include "base/status.h"

enum {
    ALL_RUNS = POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_DECODE | POSENC_RUN_SCORES |
               POSENC_RUN_BIAS_BACKWARD,
    ROW_RUNS  = POSENC_RUN_ROWS | POSENC_RUN_ROWS_BACKWARD,
    TURN_RUNS = POSENC_RUN_ROTATE | POSENC_RUN_ROTATE_BACKWARD,
    HEADER    = PE_ALIGN /* before the memory of posenc_workspace_create: its allocator */
};

static_assert(sizeof(posenc_allocator) <= HEADER, "the allocator fits into the header");

/* ---- how much ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The sizes of the plan. */
static pe_run_size whole_plan(const posenc_plan *plan)
{
    const posenc_dims *d = &plan->dims;
    return (pe_run_size){.B = d->B, .Lq = d->Lq, .Lk = d->Lk, .threads = plan->threads, .any_type = 1};
}

static posenc_status refuse_size(const char *name, posenc_error *err)
{
    return pe_fail(err, POSENC_ERROR_RANGE,
                   "workspace: sizes.%s is negative or more than the plan was made for", name);
}

/* What is not 0 replaces what the plan says. */
static posenc_status read_sizes(pe_run_size *to, const posenc_plan *plan, const posenc_sizes *sizes,
                                posenc_error *err)
{
    posenc_sizes copy;
    *to = whole_plan(plan);
    if (!sizes)
        return POSENC_OK;
    const posenc_sizes *s =
        pe_given_read(&copy, sizes, PE_GIVEN(posenc_sizes, Lk), "workspace", "sizes", err);
    if (!s)
        return POSENC_ERROR_ARGUMENT;
    const struct {
        int64_t    *to, size;
        const char *name;
    } all[] = {{&to->B, s->B, "B"}, {&to->Lq, s->Lq, "Lq"}, {&to->Lk, s->Lk, "Lk"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].size < 0 || all[i].size > *all[i].to)
            return refuse_size(all[i].name, err);
        *all[i].to = all[i].size ? all[i].size : *all[i].to;
    }
    if (s->threads < 0 || s->threads > PE_MOST_THREADS)
        return refuse_size("threads", err);
    if (!pe_tensor_is_float(s->dtype))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "workspace: sizes.dtype is %s; it must be F32, F64, F16 or BF16",
                       pe_tensor_dtype_name(s->dtype));
    to->threads  = s->threads ? s->threads : to->threads;
    to->dtype    = s->dtype;
    to->any_type = 0;
    return POSENC_OK;
}

/* Runs that attend: one of them. While decoding, items of a batch may be apart: then each thread has one of
   them, and what they have in common is beside. */
static size_t attend_bytes(const posenc_plan *plan, const pe_run_size *of, posenc_run run)
{
    pe_run_size      few  = *of;
    const posenc_run kind = run == POSENC_RUN_DECODE ? POSENC_RUN_ATTEND : run;
    if (run == POSENC_RUN_DECODE && few.Lq > POSENC_DECODE_QUERIES)
        few.Lq = POSENC_DECODE_QUERIES;
    const size_t bytes = pe_attend_bytes(plan, &few, kind);
    if (kind != POSENC_RUN_ATTEND || few.Lq > POSENC_DECODE_QUERIES || few.B < 2 || few.threads < 2)
        return bytes;
    const size_t parts = (size_t)few.threads + 1;
    few.B = few.threads = 1;
    return larger(bytes, parts * pe_attend_bytes(plan, &few, kind));
}

static size_t count_bytes(const posenc_plan *plan, const pe_run_size *of, posenc_run run)
{
    if (run & ROW_RUNS)
        return plan->parts[POSENC_PLACE_INPUT].room
                   ? pe_rows_bytes(plan, of->threads, run == POSENC_RUN_ROWS_BACKWARD)
                   : 0;
    if (plan->dims.D == 0)
        return 0;
    if (run & TURN_RUNS)
        return pe_rotary_bytes(plan, of->threads, run == POSENC_RUN_ROTATE_BACKWARD);
    return attend_bytes(plan, of, run);
}

static size_t bytes_of(const posenc_plan *plan, const pe_run_size *of, int runs)
{
    size_t most = PE_ALIGN;
    for (int run = POSENC_RUN_ROWS; run <= POSENC_RUN_BIAS_BACKWARD; run <<= 1)
        if (runs & run)
            most = larger(most, count_bytes(plan, of, (posenc_run)run));
    return most;
}

static int are_runs(int runs)
{
    return runs && !(runs & ~ALL_RUNS);
}

size_t posenc_plan_workspace(const posenc_plan *plan, posenc_run runs, const posenc_sizes *sizes)
{
    pe_run_size of;
    if (!plan || !are_runs((int)runs) || read_sizes(&of, plan, sizes, NULL))
        return 0;
    return bytes_of(plan, &of, (int)runs);
}

/* ---- of the library's making ---- */

posenc_status posenc_workspace_create(posenc_workspace *work, const posenc_plan *plan, posenc_run runs,
                                      const posenc_sizes *sizes, posenc_error *err)
{
    pe_run_size of;
    if (work)
        *work = posenc_workspace_over(NULL, 0);
    if (!work || !plan)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "workspace: work and plan must not be NULL");
    if (!are_runs((int)runs))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "workspace: runs is %d; it must be POSENC_RUN_... joined by |", (int)runs);
    const posenc_status status = read_sizes(&of, plan, sizes, err);
    if (status)
        return status;
    const size_t bytes  = bytes_of(plan, &of, (int)runs);
    char        *memory = pe_memory_create(&plan->allocator, HEADER + bytes);
    if (!memory)
        return pe_fail(err, POSENC_ERROR_MEMORY, "workspace: out of memory for %zu bytes", bytes);
    memcpy(memory, &plan->allocator, sizeof plan->allocator);
    *work         = posenc_workspace_over(memory + HEADER, bytes);
    work->threads = of.threads;
    return pe_done(err);
}

void posenc_workspace_free(posenc_workspace *work)
{
    posenc_allocator allocator;
    if (!work || !work->memory)
        return;
    char *memory = (char *)work->memory - HEADER;
    memcpy(&allocator, memory, sizeof allocator);
    pe_memory_free(&allocator, memory);
    work->memory = NULL; /* and no more: an older caller's struct may be shorter */
    work->bytes  = 0;
}
