/* SPDX-License-Identifier: MIT */
/*
 * task_count.c: keeping count: of steps since a reset, and of ones
 *
 * count    PASS, INC (a quarter of the tokens) and RESET (2/L of them, and the first): at every token the
 *          answer is how many INC there were since the last RESET, at most 9. What must be counted is not
 *          tokens but what they mean.
 *          Source: Golovneva et al. 2024 (CoPE), arXiv:2405.18719, section 5.2, with one variable.
 * parity   random bits, the answer at every token is their sum so far, modulo 2. What one head cannot do
 *          (Hahn 2020, arXiv:1906.06755), and no encoding of fixed positions carries beyond L.
 *
 * Both ask at every token; beyond L only from L on, because tokens before are as in training.
 */
#include "train/task.h"

enum { COUNT_L = 16, MOST = 9 };
enum { PASS = PE_FIRST_SYMBOL, INC, RESET };
enum { ZERO = PE_FIRST_SYMBOL };

#define INC_SHARE   0.25
#define RESET_SHARE (2.0 / COUNT_L)

static int64_t as_many(int64_t n)
{
    return n;
}

static unsigned char draw_instruction(pe_draws *d)
{
    const int64_t parts = 16, part = pe_draw(d, parts); /* both shares are whole sixteenths */
    if (part < (int64_t)(INC_SHARE * (double)parts))
        return INC;
    return part < (int64_t)((INC_SHARE + RESET_SHARE) * (double)parts) ? RESET : PASS;
}

static void make_count(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    int16_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        symbols[i] = i == 0 ? RESET : draw_instruction(d);
        count      = (int16_t)(symbols[i] == RESET ? 0 : count + (symbols[i] == INC));
        targets[i] = count < MOST ? count : MOST;
    }
}

/* chance: after long the count is 0 with the probability r / (r + q) that the last of RESET (r) and INC (q)
   was a RESET, 1/3, and every further step is less likely: always answering 0 is best. */
const pe_task pe_task_count = {.name     = "count",
                               .title    = "how many since the last reset?",
                               .asks     = "can it count what matters instead of tokens?",
                               .L        = COUNT_L,
                               .least    = COUNT_L,
                               .symbols  = PE_TASK_SYMBOLS,
                               .classes  = MOST + 1,
                               .chance   = RESET_SHARE / (RESET_SHARE + INC_SHARE),
                               .steps    = 1500,
                               .new_only = 1,
                               .tokens   = as_many,
                               .make     = make_count};

static void make_parity(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    int parity = 0;
    for (int64_t i = 0; i < n; i++) {
        const int bit = (int)pe_draw(d, 2);
        symbols[i]    = (unsigned char)(ZERO + bit);
        parity ^= bit;
        targets[i] = (int16_t)parity;
    }
}

const pe_task pe_task_parity = {.name     = "parity",
                                .title    = "is the number of ones so far odd?",
                                .asks     = "does anything carry a state along?",
                                .L        = 16,
                                .least    = 16,
                                .symbols  = PE_TASK_SYMBOLS,
                                .classes  = 2,
                                .chance   = 0.5,
                                .steps    = 1500,
                                .new_only = 1,
                                .tokens   = as_many,
                                .make     = make_parity};
