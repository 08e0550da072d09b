/* SPDX-License-Identifier: MIT */
/*
 * task.c: of any task its lengths, batches and test sequences
 *
 * Counter  (step, row, draw) is packed into the one index of a stream: 28, 20 and 16 bits. The n of a batch
 *          is drawn from a stream of its own, so that it shares no number with a row.
 * Test     the stream's name is "test." and the task's, and its seed is TEST_SEED whatever the run's:
 *          every encoding and every seed answers the same questions, and differences between encodings are
 *          paired.
 */
#include "train/tasks/task.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ROW_SHIFT = 16, STEP_SHIFT = 36, STREAM = 48 };
#define TEST_SEED 0

/* In halves of L. */
static const struct {
    int         halves;
    const char *name;
} lengths[] = {/* ORDER PE_TASK_HALF ... */
               {1, "L/2"}, {2, "L"}, {3, "x1.5"}, {4, "x2"}, {8, "x4"}, {16, "x8"}};
static_assert(sizeof lengths / sizeof *lengths == PE_TASK_LENGTHS, "ORDER PE_TASK_HALF ...");

const pe_task *pe_task_find(const char *name)
{
    for (int i = 0; i < PE_TASKS; i++)
        if (!strcmp(pe_tasks[i].name, name))
            return &pe_tasks[i];
    return NULL;
}

const char *pe_task_length_name(int length)
{
    return lengths[length].name;
}

int64_t pe_task_size(const pe_task *task, int length)
{
    const int is_tested = length >= 0 && length < PE_TASK_LENGTHS && !(task->untested >> length & 1);
    return is_tested ? task->L * lengths[length].halves / 2 : 0;
}

int64_t pe_task_tokens(const pe_task *task, int64_t n)
{
    return task->tokens[0] * n * n + task->tokens[1] * n + task->tokens[2];
}

int64_t pe_task_largest(const pe_task *task, int longest)
{
    int64_t most = task->L;
    for (int i = 0; i <= longest; i++)
        most = pe_task_size(task, i) > most ? pe_task_size(task, i) : most;
    return most;
}

int64_t pe_task_tested_tokens(const pe_task *task, int longest)
{
    return pe_task_tokens(task, pe_task_largest(task, longest));
}

/* ---------------------------------------------------------------- sequences ----------------- */

int64_t pe_task_draw(pe_task_draws *d, int64_t n)
{
    return (int64_t)(posenc_random_uniform(d->seed, d->stream, d->next++) * (double)n);
}

/* Rows first .. end - 1 of group `step` of a stream. */
static void make_rows(const pe_task *task, pe_task_maker *make, uint64_t seed, const char *stream,
                      int64_t step, int64_t first, int64_t end, int64_t n, uint16_t *symbols,
                      int16_t *targets)
{
    const int64_t length = pe_task_tokens(task, n);
    for (int64_t row = first; row < end; row++, symbols += length, targets += length) {
        pe_task_draws d = {seed, stream, (uint64_t)step << STEP_SHIFT | (uint64_t)row << ROW_SHIFT};
        for (int64_t s = 0; s < length; s++)
            targets[s] = PE_NOTHING_ASKED;
        make(&d, n, symbols, targets);
        for (int64_t s = 0; task->new_only && n > task->L && s < task->L; s++)
            targets[s] = PE_NOTHING_ASKED;
    }
}

/* Whose training sequences it has. */
static const char *trained_name(const pe_task *task)
{
    return task->trains ? task->trains : task->name;
}

int64_t pe_task_batch_size(const pe_task *task, uint64_t seed, int64_t step)
{
    char stream[STREAM];
    snprintf(stream, sizeof stream, "size.%s", trained_name(task));
    pe_task_draws d = {seed, stream, (uint64_t)step};
    return task->least + pe_task_draw(&d, task->L - task->least + 1);
}

void pe_task_batch(const pe_task *task, uint64_t seed, int64_t step, int64_t n, int64_t count,
                   uint16_t *symbols, int16_t *targets)
{
    make_rows(task, task->make, seed, trained_name(task), step, 0, count, n, symbols, targets);
}

void pe_task_test(const pe_task *task, int length, int64_t first, int64_t count, uint16_t *symbols,
                  int16_t *targets)
{
    char stream[STREAM];
    snprintf(stream, sizeof stream, "test.%s", task->name);
    make_rows(task, task->test ? task->test : task->make, TEST_SEED, stream, length, first, first + count,
              pe_task_size(task, length), symbols, targets);
}

enum { MOST_TOKENS = 4096 };

/* Answers that test sequence `row` is asked for. */
static int64_t asked_of(const pe_task *task, int length, int64_t row)
{
    uint16_t      symbols[MOST_TOKENS];
    int16_t       targets[MOST_TOKENS];
    const int64_t n = pe_task_size(task, length), tokens = pe_task_tokens(task, n);
    int64_t       asked = 0;
    if (n == 0)
        return 0;
    assert(tokens <= MOST_TOKENS);
    pe_task_test(task, length, row, 1, symbols, targets);
    for (int64_t s = 0; s < tokens; s++)
        asked += targets[s] >= 0;
    return asked;
}

int64_t pe_task_asked(const pe_task *task, int length)
{
    return asked_of(task, length, 0);
}

void pe_task_asked_each(const pe_task *task, int length, int64_t count, int64_t *asked)
{
    for (int64_t i = 0; i < count; i++)
        asked[i] = i > 0 && !task->varies ? asked[0] : asked_of(task, length, i);
}
