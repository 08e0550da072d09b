/* SPDX-License-Identifier: MIT */
/*
 * task_rewrite.c: writing a sequence again: copy, reverse, sort
 *
 * BOS s_1 .. s_n SEP, then s rewritten, one symbol after the other, and SEP. The model reads what it should
 * have written, and each token is asked for the next: n + 1 answers. If all of them are right, then so is the
 * sequence that the model would write by itself, taking its likeliest symbol each time: exact match is that
 * of free writing.
 *
 * With 16 symbols some repeat in a sequence, so copying by looking for the symbol just written is a shortcut
 * that fails: without positions it cannot be done. Sorting needs no positions at all.
 *
 * Source: Kazemnejad et al. 2023, arXiv:2305.19466, appendix D, with symbols for words.
 */
#include "train/task.h"

#include <string.h>

static int64_t twice_and_two(int64_t n)
{
    return 2 * n + 2;
}

/* BOS s SEP, then `again`, whose symbols have been written to symbols + n + 2; each token from SEP on is
   asked for the next one, the last for SEP. */
static void ask(int64_t n, unsigned char *symbols, int16_t *targets)
{
    symbols[0]     = PE_BOS;
    symbols[n + 1] = PE_SEP;
    for (int64_t i = 0; i < n; i++)
        targets[n + 1 + i] = symbols[n + 2 + i];
    targets[2 * n + 1] = PE_SEP;
}

static void draw_first(pe_draws *d, int64_t n, unsigned char *symbols)
{
    for (int64_t i = 1; i <= n; i++)
        symbols[i] = pe_draw_symbol(d);
}

static void make_copy(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    draw_first(d, n, symbols);
    memcpy(symbols + n + 2, symbols + 1, (size_t)n);
    ask(n, symbols, targets);
}

static void make_reverse(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    draw_first(d, n, symbols);
    for (int64_t i = 0; i < n; i++)
        symbols[n + 2 + i] = symbols[n - i];
    ask(n, symbols, targets);
}

/* By counting: there are few symbols. */
static void make_sort(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    int64_t at = n + 2;
    draw_first(d, n, symbols);
    for (int symbol = PE_FIRST_SYMBOL; symbol < PE_FIRST_SYMBOL + PE_ALPHABET; symbol++)
        for (int64_t i = 1; i <= n; i++)
            if (symbols[i] == symbol)
                symbols[at++] = (unsigned char)symbol;
    ask(n, symbols, targets);
}

#define REWRITING                                                                \
    .L = 16, .least = 2, .symbols = PE_TASK_SYMBOLS, .classes = PE_TASK_SYMBOLS, \
    .chance = 1.0 / PE_ALPHABET, .tokens = twice_and_two

const pe_task pe_task_copy    = {.name  = "copy",
                                 .title = "write the sequence again",
                                 .asks  = "can it keep its place in a text with repeats?",
                                 .steps = 750,
                                 .make  = make_copy,
                                 REWRITING};
const pe_task pe_task_reverse = {.name  = "reverse",
                                 .title = "write the sequence backwards",
                                 .asks  = "can it relate a place to its mirror image?",
                                 .steps = 1500,
                                 .make  = make_reverse,
                                 REWRITING};
const pe_task pe_task_sort    = {.name  = "sort",
                                 .title = "write the sequence in order",
                                 .asks  = "does it disturb where places do not count?",
                                 .steps = 1500,
                                 .make  = make_sort,
                                 REWRITING};
