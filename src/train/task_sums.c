/* SPDX-License-Identifier: MIT */
/*
 * task_sums.c: arithmetic: addition, summation, lego
 *
 * addition   BOS a_1 .. a_n + b_1 .. b_n = c_1 .. c_n: two numbers of n digits, the least digit first, and
 *            their sum of n + 1 digits, each asked for at the token before it. Three places must be brought
 *            together, with a carry.
 * summation  BOS x_1 .. x_n SEP: the sum of n digits modulo 10, asked for at SEP, without intermediate steps.
 * lego       a chain of n clauses, v_1 = +-1, v_i = +- v_(i-1), and one of the variables: is it +1 or -1? A
 *            clause is three tokens (the variable, the sign, what it is made of). The variables of a chain
 *            all differ, and are drawn from 64 names, so that chains may be eight times as long as in
 *            training.
 *
 * Source: Kazemnejad et al. 2023, arXiv:2305.19466, appendix D; least digit first: Zhou et al. 2024,
 * arXiv:2402.09371; lego: Zhang et al. 2022, arXiv:2206.04301. Digits are tokens, and nothing is written in
 * between (no scratchpad).
 */
#include "train/task.h"

enum { ZERO = PE_FIRST_SYMBOL, TEN = 10, PLUS = PE_MARK_A, EQUALS = PE_MARK_B };
enum { NAMES = 64, FIRST_NAME = PE_TASK_SYMBOLS, MINUS = PE_MARK_B, ONE = PE_MARK };

static int64_t three_and_three(int64_t n)
{
    return 3 * n + 3;
}

static void make_addition(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    unsigned char *a = symbols + 1, *b = a + n + 1, *c = b + n + 1;
    int            carry = 0;
    for (int64_t i = 0; i < n; i++)
        a[i] = (unsigned char)(ZERO + pe_draw(d, TEN));
    for (int64_t i = 0; i < n; i++)
        b[i] = (unsigned char)(ZERO + pe_draw(d, TEN));
    symbols[0] = PE_BOS;
    a[n]       = PLUS;
    b[n]       = EQUALS;
    for (int64_t i = 0; i <= n; i++) { /* digit i is asked for at the token before it */
        const int sum                = carry + (i < n ? a[i] + b[i] - 2 * ZERO : 0);
        carry                        = sum / TEN;
        targets[c - 1 + i - symbols] = (int16_t)(sum % TEN);
        if (i < n)
            c[i] = (unsigned char)(ZERO + sum % TEN);
    }
}

const pe_task pe_task_addition = {.name    = "addition",
                                  .title   = "add two numbers, least digit first",
                                  .asks    = "can it bring three places together?",
                                  .L       = 10,
                                  .least   = 2,
                                  .symbols = PE_TASK_SYMBOLS,
                                  .classes = TEN,
                                  .chance  = 0.1,
                                  .steps   = 4000,
                                  .tokens  = three_and_three,
                                  .make    = make_addition};

static int64_t and_two(int64_t n)
{
    return n + 2;
}

static void make_summation(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    int sum    = 0;
    symbols[0] = PE_BOS;
    for (int64_t i = 1; i <= n; i++) {
        const int digit = (int)pe_draw(d, TEN);
        symbols[i]      = (unsigned char)(ZERO + digit);
        sum             = (sum + digit) % TEN;
    }
    symbols[n + 1] = PE_SEP;
    targets[n + 1] = (int16_t)sum;
}

const pe_task pe_task_summation = {.name    = "summation",
                                   .title   = "the sum of the digits, modulo 10",
                                   .asks    = "can it gather all of a sequence?",
                                   .L       = 8,
                                   .least   = 2,
                                   .symbols = PE_TASK_SYMBOLS,
                                   .classes = TEN,
                                   .chance  = 0.1,
                                   .steps   = 4000,
                                   .tokens  = and_two,
                                   .make    = make_summation};

/* The first n of a random order of all names (Fisher and Yates, from the front). */
static void draw_names(pe_draws *d, int64_t n, unsigned char names[NAMES])
{
    for (int i = 0; i < NAMES; i++)
        names[i] = (unsigned char)(FIRST_NAME + i);
    for (int64_t i = 0; i < n; i++) {
        const int64_t       other = i + pe_draw(d, NAMES - i);
        const unsigned char name  = names[i];
        names[i]                  = names[other];
        names[other]              = name;
    }
}

static void make_lego(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    unsigned char names[NAMES], *clause = symbols + 1;
    const int64_t asked    = pe_draw(d, n);
    int           negative = 0;
    draw_names(d, n, names);
    symbols[0] = PE_BOS;
    for (int64_t i = 0; i < n; i++, clause += 3) {
        const int flips = (int)pe_draw(d, 2);
        negative ^= flips;
        clause[0] = names[i];
        clause[1] = flips ? MINUS : PLUS;
        clause[2] = i > 0 ? names[i - 1] : ONE;
        if (i == asked)
            targets[3 * n + 2] = (int16_t)negative;
    }
    clause[0] = PE_SEP;
    clause[1] = names[asked];
}

const pe_task pe_task_lego = {.name    = "lego",
                              .title   = "the sign of a variable at the end of a chain",
                              .asks    = "can it follow one reference after another?",
                              .L       = 8,
                              .least   = 2,
                              .symbols = FIRST_NAME + NAMES,
                              .classes = 2,
                              .chance  = 0.5,
                              .steps   = 4000,
                              .tokens  = three_and_three,
                              .make    = make_lego};
