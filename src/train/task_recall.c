/* SPDX-License-Identifier: MIT */
/*
 * task_recall.c: finding one symbol again: shift by an exact distance, needle by a mark
 *
 * shift    at token i the answer is the symbol at i - 5. A bias that falls with the distance cannot single
 *          out one distance; a rotation or a vector per distance can. Beyond L only tokens from L on are
 *          asked: those before them are as in training.
 * needle   MARK stands somewhere, and at the end, where SEP is, the answer is the symbol behind it. So
 *          content finds the mark, one step to the right finds the symbol, and the distance must not matter.
 */
#include "train/task.h"

enum { BACK = 5 };

static int64_t as_many(int64_t n)
{
    return n;
}

static void make_shift(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    for (int64_t i = 0; i < n; i++)
        symbols[i] = pe_draw_symbol(d);
    for (int64_t i = BACK; i < n; i++)
        targets[i] = symbols[i - BACK];
}

const pe_task pe_task_shift = {.name     = "shift",
                               .title    = "repeat the symbol five places back",
                               .asks     = "can it look back by an exact distance?",
                               .L        = 16,
                               .least    = 16,
                               .symbols  = PE_TASK_SYMBOLS,
                               .classes  = PE_TASK_SYMBOLS,
                               .chance   = 1.0 / PE_ALPHABET,
                               .steps    = 300,
                               .new_only = 1,
                               .tokens   = as_many,
                               .make     = make_shift};

static void make_needle(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    for (int64_t i = 0; i < n - 1; i++)
        symbols[i] = pe_draw_symbol(d);
    const int64_t place = pe_draw(d, n - 2); /* at most n - 3: a symbol stands between MARK and SEP */
    symbols[place]      = PE_MARK;
    symbols[n - 1]      = PE_SEP;
    targets[n - 1]      = symbols[place + 1];
}

const pe_task pe_task_needle = {.name    = "needle",
                                .title   = "which symbol stood behind the mark?",
                                .asks    = "can it find one thing far away?",
                                .L       = 16,
                                .least   = 3,
                                .symbols = PE_TASK_SYMBOLS,
                                .classes = PE_TASK_SYMBOLS,
                                .chance  = 1.0 / PE_ALPHABET,
                                .steps   = 300,
                                .tokens  = as_many,
                                .make    = make_needle};
