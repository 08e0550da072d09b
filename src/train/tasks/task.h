/* SPDX-License-Identifier: MIT */
/*
 * task.h: synthetic tasks: sequences whose right answers are known
 *
 * A task asks one question about positions ("which symbol stood five places before?") with tokens of no
 * meaning, so that what a model can answer is its encoding's doing. A task is one pe_task, a row of the table
 * in tasks.c, with a function that writes one sequence of size n and what is to be answered where. All else
 * (batches, lengths, training, scores, tables) is common and knows no task.
 *
 * Sizes. n is what the task counts: symbols, or the side of a grid; a sequence has pe_task_tokens tokens.
 * Models are trained at n = L, or at n drawn from least .. L, one n for a batch; and tested at L/2, L, 1.5 L,
 * 2 L, 4 L, 8 L.
 *
 * Random numbers are counter-based (posenc_random_uniform): stream (seed, task's name), counter (step, row,
 * draw). So every encoding sees the same batches, and nothing depends on the order in which runs go on. Test
 * sequences come from streams of another name, with the length in place of the step; they are the same for
 * every encoding and seed.
 *
 * Definitions and sources: docs/experiments.md, section 11.
 */
#ifndef PE_TRAIN_TASK_H
#define PE_TRAIN_TASK_H

#include <posenc/registry.h>
#include <stddef.h>
#include <stdint.h>

/* Tokens that tasks share. A task may have further ones from PE_TASK_SYMBOLS on. */
enum {
    PE_BOS,
    PE_SEP,
    PE_MARK,
    PE_PAD,
    PE_FIRST_SYMBOL,
    PE_ALPHABET = 16,
    PE_MARK_A   = PE_FIRST_SYMBOL + PE_ALPHABET,
    PE_MARK_B,
    PE_TASK_SYMBOLS
};
enum { PE_NOTHING_ASKED = -1 };

/* Tested lengths, as multiples of L. ORDER half_lengths (task.c) */
enum { PE_TASK_HALF, PE_TASK_L, PE_TASK_1_5, PE_TASK_2, PE_TASK_4, PE_TASK_8, PE_TASK_LENGTHS };

/* The numbers of one sequence, one after the other. */
typedef struct pe_task_draws {
    uint64_t    seed;
    const char *stream;
    uint64_t    next;
} pe_task_draws;

/* 0 .. n - 1, each as likely. */
int64_t pe_task_draw(pe_task_draws *d, int64_t n);

/* Writes symbols, targets [pe_task_tokens]; all targets are PE_NOTHING_ASKED before. */
typedef void pe_task_maker(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets);

typedef struct pe_task {
    const char *name;  /* "shift" */
    const char *title; /* "repeat the symbol five places back" */
    const char *asks;  /* what it asks of an encoding */
    int         full;  /* 1: no mask; 0: causal */
    int64_t     L;     /* the largest n of training */
    int64_t     least; /* the smallest; L: all batches have n = L */
    int64_t     symbols, classes;
    double      chance;    /* the accuracy of a model that knows the possible answers and nothing else */
    int64_t     steps;     /* of training, where a preset says nothing else */
    unsigned    untested;  /* bits 1 << PE_TASK_...: lengths without a meaning */
    int         new_only;  /* 1: beyond L only tokens from L on are asked: those before are as in training */
    int         grid;      /* 1: n is the side of a square, whose cells are the tokens, row by row */
    int64_t     tokens[3]; /* those of a sequence, as a polynomial of n: n^2, n, 1 */
    pe_task_maker *make;
    pe_task_maker *test;   /* of test sequences, where they are others than training's; else NULL */
    const char    *trains; /* the task whose training sequences these are; NULL: its own */
    int            varies; /* 1: sequences are asked for answers of different number */
} pe_task;

enum { PE_TASKS = 21 };
extern const pe_task pe_tasks[PE_TASKS];

/* That of a name, or NULL. */
const pe_task *pe_task_find(const char *name);

/* "L/2", "L", "x1.5", "x2" ...; n there, or 0 if the task is not tested at that length. */
const char *pe_task_length_name(int length);
int64_t     pe_task_size(const pe_task *task, int length);
/* Tokens of a sequence of size n. */
int64_t pe_task_tokens(const pe_task *task, int64_t n);
/* The largest n that is tested up to a length. */
int64_t pe_task_largest(const pe_task *task, int longest);
/* Tokens of the longest sequence in tests up to a length. */
int64_t pe_task_tested_tokens(const pe_task *task, int longest);

/* n of a training batch. */
int64_t pe_task_batch_size(const pe_task *task, uint64_t seed, int64_t step);
/* Rows first .. first + count - 1 of a training batch of size n, or of the test sequences at a length:
   symbols, targets [count, tokens]. */
void pe_task_batch(const pe_task *task, uint64_t seed, int64_t step, int64_t n, int64_t count,
                   uint16_t *symbols, int16_t *targets);
void pe_task_test(const pe_task *task, int length, int64_t first, int64_t count, uint16_t *symbols,
                  int16_t *targets);
/* Answers that the first test sequence of that length is asked for: all of them, where their number does not
   vary; 0 of a length that is not tested. Of each of so many: asked [count]. */
int64_t pe_task_asked(const pe_task *task, int length);
void    pe_task_asked_each(const pe_task *task, int length, int64_t count, int64_t *asked);

#endif
