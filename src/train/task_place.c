/* SPDX-License-Identifier: MIT */
/*
 * task_place.c: what a model without a mask knows of places: posid, order
 *
 * posid    one symbol, n times; at token i the answer is i. All tokens are the same, so whatever acts on
 *          scores alone gives every token the same output, and can do no better than 1/n: its loss is at
 *          least ln n at every step. Answers beyond the n of training were never given, so there are no other
 *          lengths.
 *          Source: Luo et al. 2022 (URPE), arXiv:2205.13401, section 5.1 (position identification).
 * order    "dog bites man", "man bites dog": among n random symbols stand A and B; which is first? The answer
 *          is asked for at a token in front. Without positions the model sees a bag of words and answers 1/2.
 */
#include "train/task.h"

enum { PLACES = 16 };
#define ONLY_L (~(1u << PE_TASK_L))

static int64_t as_many(int64_t n)
{
    return n;
}

static int64_t one_more(int64_t n)
{
    return n + 1;
}

static void make_posid(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    const unsigned char symbol = pe_draw_symbol(d);
    for (int64_t i = 0; i < n; i++) {
        symbols[i] = symbol;
        targets[i] = (int16_t)i;
    }
}

const pe_task pe_task_posid = {.name     = "posid",
                               .title    = "where am I, among equal symbols?",
                               .asks     = "can it create position where content has none?",
                               .full     = 1,
                               .L        = PLACES,
                               .least    = PLACES,
                               .symbols  = PE_TASK_SYMBOLS,
                               .classes  = PLACES,
                               .chance   = 1.0 / PLACES,
                               .steps    = 400,
                               .untested = ONLY_L,
                               .tokens   = as_many,
                               .make     = make_posid};

/* Two places, all pairs as likely: the second is drawn among those that the first leaves. */
static void make_order(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    symbols[0] = PE_BOS;
    for (int64_t i = 1; i <= n; i++)
        symbols[i] = pe_draw_symbol(d);
    const int64_t a = pe_draw(d, n), other = pe_draw(d, n - 1), b = other + (other >= a);
    symbols[1 + a] = PE_MARK_A;
    symbols[1 + b] = PE_MARK_B;
    targets[0]     = b < a;
}

const pe_task pe_task_order = {.name    = "order",
                               .title   = "is A before B?",
                               .asks    = "who bit whom: does a word's place count at all?",
                               .full    = 1,
                               .L       = 16,
                               .least   = 2,
                               .symbols = PE_TASK_SYMBOLS,
                               .classes = 2,
                               .chance  = 0.5,
                               .steps   = 300,
                               .tokens  = one_more,
                               .make    = make_order};
