/* SPDX-License-Identifier: MIT */
/*
 * tasks.c: the tasks of `posenc compare`, a maker of sequences each, and at the end the table of them all
 *
 * What a model without a mask knows of places:
 *
 * posid      one symbol, n times; at token i the answer is i. All tokens are the same, so whatever acts
 *            only on scores gives every token the same output, and can do no better than 1/n: its loss is at
 *            least ln n at every step. Answers beyond the n of training were never given, so there are no
 *            other lengths.
 *            Source: Luo et al. 2022 (URPE), arXiv:2205.13401, section 5.1 (position identification).
 * order      "dog bites man", "man bites dog": among n random symbols stand A and B; which is first? The
 *            answer is asked for at a token in front. Without positions the model sees a bag of words and
 *            answers 1/2.
 *
 * Finding one symbol again, by an exact distance or by a mark:
 *
 * shift      at token i the answer is the symbol at i - 5. A bias that falls with the distance cannot single
 *            out one distance; a rotation or a vector per distance can. Beyond L only tokens from L on are
 *            asked: those before them are as in training.
 * needle     MARK stands somewhere, and at the end, where SEP is, the answer is the symbol after it. So
 *            content finds the mark, one step to the right finds the symbol, and the distance must not
 *            matter.
 *
 * Writing a sequence again:
 *
 * copy, reverse, sort
 *            BOS s_1 .. s_n SEP, then s rewritten, one symbol after the other, and SEP. The model reads what
 *            it should have written, and each token is asked for the next: n + 1 answers. If all of them are
 *            right, then so is the sequence that the model would write by itself, taking its likeliest symbol
 *            each time: exact match is that of free writing.
 *            With 16 symbols some repeat in a sequence, so copying by looking for the symbol just written is
 *            a shortcut that fails: without positions it cannot be done. Sorting needs no positions at all.
 *            Source: Kazemnejad et al. 2023, arXiv:2305.19466, appendix D, with symbols for words.
 *
 * Keeping count. Both ask at every token; beyond L only from L on, because tokens before are as in training:
 *
 * count      PASS, INC (a quarter of the tokens) and RESET (2/L of them, and the first): at every token the
 *            answer is how many INC there were since the last RESET, at most 9. What must be counted is not
 *            tokens but what they mean.
 *            Source: Golovneva et al. 2024 (CoPE), arXiv:2405.18719, section 5.2, with one variable.
 * parity     random bits, the answer at every token is their sum so far, modulo 2. What one head cannot do
 *            (Hahn 2020, arXiv:1906.06755), and no encoding of fixed positions carries beyond L.
 *
 * Shift in two dimensions:
 *
 * grid       n x n random symbols, row by row, without a mask. One cell holds MARK instead, and there the
 *            answer is the symbol DOWN rows below and RIGHT columns to the right; the mark is placed so that
 *            there is one. In the row-major order that offset is DOWN n + RIGHT tokens, another number for
 *            every n: what learned it on 8 x 8 as a distance on a line fails on 12 x 12, what learned it as
 *            an offset of rows and columns does not. Only for encodings of a grid.
 *
 * Arithmetic. Digits are tokens, and nothing is written in between (no scratchpad):
 *
 * addition   BOS a_1 .. a_n + b_1 .. b_n = c_1 .. c_n: two numbers of n digits, the least digit first, and
 *            their sum of n + 1 digits, each asked for at the token before it. Three places must be brought
 *            together, with a carry.
 * summation  BOS x_1 .. x_n SEP: the sum of n digits modulo 10, asked for at SEP, without intermediate steps.
 * lego       a chain of n clauses, v_1 = +-1, v_i = +- v_(i-1), and one of the variables: is it +1 or -1? A
 *            clause is three tokens (the variable, the sign, what it is made of). The variables of a chain
 *            all differ, and are drawn from 64 names, so that chains may be eight times as long as in
 *            training.
 *            Source: Kazemnejad et al. 2023, arXiv:2305.19466, appendix D; least digit first: Zhou et al.
 *            2024, arXiv:2402.09371; lego: Zhang et al. 2022, arXiv:2206.04301.
 *
 * Following what came before:
 *
 * fflm       flip-flop: n pairs of an instruction (w, r, i) and a bit; the first is w, the last r. The bit
 *            after r is the one after the last w, those after w and i are fair coins. Asked at every r.
 *            Between w and r others pass by: all but the last w must be ignored, however far it is. Trained
 *            with i at a share of 0.8; three test sets: that, fflm_sparse with 0.98, fflm_dense with 0.1, of
 *            the same model (they have the same training sequences).
 *            Source: Liu et al. 2023, arXiv:2306.00946.
 * indirect   n symbols that all differ, SEP, one of them, and an offset of -7 .. 7 but 0: which symbol stands
 *            that far from it? Content finds the symbol, position alone goes on from there.
 *            Source: Gopalakrishnan et al. 2025 (PoPE), arXiv:2509.10534; sizes are ours.
 * mqrar_N    n pairs of a key and a value; 8 keys in a sequence, and values are drawn anew each time. At a
 *            key that occurred N times before: the value it had N occurrences back.
 *            Source: Yang et al. 2025 (PaTH), arXiv:2505.16381; sizes are ours.
 */
#include "train/tasks/task.h"

#include <string.h>

static void draw_symbols(pe_task_draws *d, uint16_t *symbols, int64_t n, int64_t kinds)
{
    for (int64_t i = 0; i < n; i++)
        symbols[i] = (uint16_t)(PE_FIRST_SYMBOL + pe_task_draw(d, kinds));
}

/* ---------------------------------------------------------------- places -------------------- */

static void make_posid(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols, 1, PE_ALPHABET);
    for (int64_t i = 0; i < n; i++) {
        symbols[i] = symbols[0];
        targets[i] = (int16_t)i;
    }
}

/* Two places, all pairs as likely: the second is drawn among the others. */
static void make_order(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    symbols[0] = PE_BOS;
    draw_symbols(d, symbols + 1, n, PE_ALPHABET);
    const int64_t a = pe_task_draw(d, n), other = pe_task_draw(d, n - 1), b = other + (other >= a);
    symbols[1 + a] = PE_MARK_A;
    symbols[1 + b] = PE_MARK_B;
    targets[0]     = b < a;
}

/* ---------------------------------------------------------------- one symbol again ---------- */

enum { BACK = 5 };

static void make_shift(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols, n, PE_ALPHABET);
    for (int64_t i = BACK; i < n; i++)
        targets[i] = (int16_t)symbols[i - BACK];
}

static void make_needle(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols, n - 1, PE_ALPHABET);
    const int64_t place = pe_task_draw(d, n - 2); /* at most n - 3: a symbol stands between MARK and SEP */
    symbols[place]      = PE_MARK;
    symbols[n - 1]      = PE_SEP;
    targets[n - 1]      = (int16_t)symbols[place + 1];
}

enum { SIDE = 8, DOWN = 1, RIGHT = 2 };

static void make_grid(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols, n * n, PE_ALPHABET);
    const int64_t row = pe_task_draw(d, n - DOWN), column = pe_task_draw(d, n - RIGHT),
                  cell = row * n + column;
    targets[cell]      = (int16_t)symbols[cell + DOWN * n + RIGHT];
    symbols[cell]      = PE_MARK;
}

/* ---------------------------------------------------------------- a sequence again ---------- */

/* BOS s SEP, then `again`, whose symbols have been written to symbols + n + 2; each token from SEP on is
   asked for the next one, the last for SEP. */
static void ask(int64_t n, uint16_t *symbols, int16_t *targets)
{
    symbols[0]     = PE_BOS;
    symbols[n + 1] = PE_SEP;
    for (int64_t i = 0; i < n; i++)
        targets[n + 1 + i] = (int16_t)symbols[n + 2 + i];
    targets[2 * n + 1] = PE_SEP;
}

static void make_copy(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols + 1, n, PE_ALPHABET);
    memcpy(symbols + n + 2, symbols + 1, (size_t)n * sizeof *symbols);
    ask(n, symbols, targets);
}

static void make_reverse(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    draw_symbols(d, symbols + 1, n, PE_ALPHABET);
    for (int64_t i = 0; i < n; i++)
        symbols[n + 2 + i] = symbols[n - i];
    ask(n, symbols, targets);
}

/* By counting: there are few symbols. */
static void make_sort(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    int64_t at = n + 2;
    draw_symbols(d, symbols + 1, n, PE_ALPHABET);
    for (int symbol = PE_FIRST_SYMBOL; symbol < PE_FIRST_SYMBOL + PE_ALPHABET; symbol++)
        for (int64_t i = 1; i <= n; i++)
            if (symbols[i] == symbol)
                symbols[at++] = (uint16_t)symbol;
    ask(n, symbols, targets);
}

/* ---------------------------------------------------------------- counts -------------------- */

enum { COUNT_L = 16, MOST = 9, PARTS = 16 };
enum { PASS = PE_FIRST_SYMBOL, INC, RESET };

#define INC_SHARE   0.25
#define RESET_SHARE (2.0 / COUNT_L)

static uint16_t draw_instruction(pe_task_draws *d)
{
    const int64_t part = pe_task_draw(d, PARTS); /* both shares are whole sixteenths */
    if (part < (int64_t)(INC_SHARE * PARTS))
        return INC;
    return part < (int64_t)((INC_SHARE + RESET_SHARE) * PARTS) ? RESET : PASS;
}

static void make_count(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    int16_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        symbols[i] = i == 0 ? RESET : draw_instruction(d);
        count      = (int16_t)(symbols[i] == RESET ? 0 : count + (symbols[i] == INC));
        targets[i] = count < MOST ? count : MOST;
    }
}

enum { ZERO = PE_FIRST_SYMBOL };

static void make_parity(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    int parity = 0;
    draw_symbols(d, symbols, n, 2);
    for (int64_t i = 0; i < n; i++) {
        parity ^= symbols[i] - ZERO;
        targets[i] = (int16_t)parity;
    }
}

/* ---------------------------------------------------------------- arithmetic ---------------- */

enum { TEN = 10, PLUS = PE_MARK_A, EQUALS = PE_MARK_B };
enum { NAMES = 64, FIRST_NAME = PE_TASK_SYMBOLS, MINUS = PE_MARK_B, ONE = PE_MARK };

static void make_addition(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    uint16_t *a = symbols + 1, *b = a + n + 1, *c = b + n + 1;
    int       carry = 0;
    draw_symbols(d, a, n, TEN);
    draw_symbols(d, b, n, TEN);
    symbols[0] = PE_BOS;
    a[n]       = PLUS;
    b[n]       = EQUALS;
    for (int64_t i = 0; i <= n; i++) { /* digit i is asked for at the token before it */
        const int sum                = carry + (i < n ? a[i] + b[i] - 2 * ZERO : 0);
        carry                        = sum / TEN;
        targets[c - 1 + i - symbols] = (int16_t)(sum % TEN);
        if (i < n)
            c[i] = (uint16_t)(ZERO + sum % TEN);
    }
}

static void make_summation(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    int sum    = 0;
    symbols[0] = PE_BOS;
    draw_symbols(d, symbols + 1, n, TEN);
    for (int64_t i = 1; i <= n; i++)
        sum += symbols[i] - ZERO;
    symbols[n + 1] = PE_SEP;
    targets[n + 1] = (int16_t)(sum % TEN);
}

/* The first n of a random order of `kinds` (Fisher and Yates, from the front). */
static void draw_distinct(pe_task_draws *d, int64_t n, uint16_t *order, int kinds)
{
    for (int i = 0; i < kinds; i++)
        order[i] = (uint16_t)i;
    for (int64_t i = 0; i < n; i++) {
        const int64_t  other = i + pe_task_draw(d, kinds - i);
        const uint16_t kind  = order[i];
        order[i]             = order[other];
        order[other]         = kind;
    }
}

static void make_lego(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    uint16_t      names[NAMES], *clause = symbols + 1;
    const int64_t asked    = pe_task_draw(d, n);
    int           negative = 0;
    draw_distinct(d, n, names, NAMES);
    for (int64_t i = 0; i < n; i++)
        names[i] = (uint16_t)(names[i] + FIRST_NAME);
    symbols[0] = PE_BOS;
    for (int64_t i = 0; i < n; i++, clause += 3) {
        const int flips = (int)pe_task_draw(d, 2);
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

/* ---------------------------------------------------------------- what came before ---------- */

enum { WRITE = PE_FIRST_SYMBOL, READ, IGNORE, BIT };
enum { PARTS_OF_FLIP = 1000, USUAL = 800, SPARSE = 980, DENSE = 100 }; /* of them IGNORE */

static uint16_t draw_flip(pe_task_draws *d, int ignored)
{
    const int64_t part = pe_task_draw(d, PARTS_OF_FLIP);
    if (part < ignored)
        return IGNORE;
    return part < (PARTS_OF_FLIP + ignored) / 2 ? WRITE : READ;
}

static void make_flips(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets, int ignored)
{
    int held = 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t *pair = symbols + 2 * i;
        pair[0]        = draw_flip(d, ignored);
        pair[0]        = i == 0 ? WRITE : i == n - 1 ? READ : pair[0];
        int bit        = (int)pe_task_draw(d, 2);
        if (pair[0] == WRITE)
            held = bit;
        if (pair[0] == READ)
            targets[2 * i] = (int16_t)(bit = held);
        pair[1] = (uint16_t)(BIT + bit);
    }
}

static void make_fflm(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_flips(d, n, symbols, targets, USUAL);
}

static void make_fflm_sparse(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_flips(d, n, symbols, targets, SPARSE);
}

static void make_fflm_dense(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_flips(d, n, symbols, targets, DENSE);
}

/* Its tokens: the symbols, SEP, the offsets. */
enum {
    STRING           = 40,
    STRING_SEP       = STRING,
    OFFSET           = STRING_SEP + 1,
    REACH            = 7,
    INDIRECT_SYMBOLS = OFFSET + 2 * REACH
};

static void make_indirect(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    uint16_t      order[STRING];
    const int64_t drawn = pe_task_draw(d, 2 * REACH), by = drawn < REACH ? drawn - REACH : drawn - REACH + 1;
    const int64_t size = by < 0 ? -by : by, place = pe_task_draw(d, n - size) + (by < 0 ? size : 0);
    draw_distinct(d, n, order, STRING);
    memcpy(symbols, order, (size_t)n * sizeof *symbols);
    symbols[n]     = STRING_SEP;
    symbols[n + 1] = order[place];
    symbols[n + 2] = (uint16_t)(OFFSET + drawn);
    targets[n + 2] = (int16_t)order[place + by];
}

enum { KEYS = 8, MOST_BACK = 4, FIRST_VALUE = PE_TASK_SYMBOLS, MQRAR_SYMBOLS = FIRST_VALUE + PE_ALPHABET };

static void make_recall(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets, int64_t back)
{
    uint16_t order[PE_ALPHABET];
    int16_t  values[KEYS][MOST_BACK] = {{0}}; /* the last ones of each key, the latest first */
    int64_t  seen[KEYS]              = {0};
    draw_distinct(d, KEYS, order, PE_ALPHABET);
    for (int64_t i = 0; i < n; i++) {
        const int64_t key = pe_task_draw(d, KEYS), value = pe_task_draw(d, PE_ALPHABET);
        if (seen[key]++ >= back)
            targets[2 * i] = values[key][back - 1];
        memmove(values[key] + 1, values[key], (MOST_BACK - 1) * sizeof **values);
        values[key][0]     = (int16_t)value;
        symbols[2 * i]     = (uint16_t)(PE_FIRST_SYMBOL + order[key]);
        symbols[2 * i + 1] = (uint16_t)(FIRST_VALUE + value);
    }
}

static void make_mqrar_1(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_recall(d, n, symbols, targets, 1);
}

static void make_mqrar_2(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_recall(d, n, symbols, targets, 2);
}

static void make_mqrar_3(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_recall(d, n, symbols, targets, 3);
}

static void make_mqrar_4(pe_task_draws *d, int64_t n, uint16_t *symbols, int16_t *targets)
{
    make_recall(d, n, symbols, targets, 4);
}

/* ---------------------------------------------------------------- the table ----------------- */

enum {
    ALL          = PE_TASK_SYMBOLS,
    LEGO_SYMBOLS = FIRST_NAME + NAMES,
    BEYOND       = 1 << PE_TASK_HALF | 1 << PE_TASK_4 | 1 << PE_TASK_8,
    ONLY_L_2     = BEYOND | 1 << PE_TASK_1_5
};
#define ONLY_L   (~(1u << PE_TASK_L))
#define A_SYMBOL (1.0 / PE_ALPHABET)

/* chance of count: after long the count is 0 with the probability r / (r + q) that the last of RESET (r) and
   INC (q) was a RESET, 1/3, and every further step is less likely: always answering 0 is best. */
#define A_RESET (RESET_SHARE / (RESET_SHARE + INC_SHARE))

#define DO(task) .make = make_##task

/* In the order of the tables of `posenc compare`. Tokens of a sequence: {per n n, per n, fixed}. */
// clang-format off
const pe_task pe_tasks[PE_TASKS] = {
    /* name, title, what it asks of an encoding,
            full  L least     symbols classes    chance steps untested new grid     tokens  make */
    {"posid", "where am I, among equal symbols?", "can it create position where content has none?",
               1, 16, 16,         ALL,    16,   1. / 16,  400, ONLY_L, 0, 0, {0, 1, 0}, DO(posid)},
    {"order", "is A before B?", "who bit whom: does a word's place count at all?",
               1, 16,  2,         ALL,     2,       0.5,  300,      0, 0, 0, {0, 1, 1}, DO(order)},
    {"shift", "repeat the symbol five places back", "can it look back by an exact distance?",
               0, 16, 16,         ALL,   ALL,  A_SYMBOL,  300,      0, 1, 0, {0, 1, 0}, DO(shift)},
    {"needle", "which symbol follows the mark?", "can it find one thing far away?",
               0, 16,  3,         ALL,   ALL,  A_SYMBOL,  300,      0, 0, 0, {0, 1, 0}, DO(needle)},
    {"copy", "write the sequence again", "can it keep its place in a text with repeats?",
               0, 16,  2,         ALL,   ALL,  A_SYMBOL,  750,      0, 0, 0, {0, 2, 2}, DO(copy)},
    {"reverse", "write the sequence backwards", "can it relate a place to its mirror image?",
               0, 16,  2,         ALL,   ALL,  A_SYMBOL, 1500,      0, 0, 0, {0, 2, 2}, DO(reverse)},
    {"sort", "write the sequence in order", "does it get in the way where order does not matter?",
               0, 16,  2,         ALL,   ALL,  A_SYMBOL, 1500,      0, 0, 0, {0, 2, 2}, DO(sort)},
    {"count", "how many since the last reset?", "can it count what matters instead of tokens?",
          0, COUNT_L, COUNT_L,    ALL, MOST + 1, A_RESET, 1500,     0, 1, 0, {0, 1, 0}, DO(count)},
    {"parity", "is the number of ones so far odd?", "does anything carry a state along?",
               0, 16, 16,         ALL,     2,       0.5, 1500,      0, 1, 0, {0, 1, 0}, DO(parity)},
    {"grid", "which symbol stands one row down, two columns right of the mark?",
            "does it know rows and columns?",
             1, SIDE, SIDE,       ALL,   ALL,  A_SYMBOL, 1500, BEYOND, 0, 1, {1, 0, 0}, DO(grid)},
    {"addition", "add two numbers, least digit first", "can it bring three places together?",
               0, 10,  2,         ALL,   TEN,       0.1, 4000,      0, 0, 0, {0, 3, 3}, DO(addition)},
    {"summation", "the sum of the digits, modulo 10", "can it gather all of a sequence?",
               0,  8,  2,         ALL,   TEN,       0.1, 4000,      0, 0, 0, {0, 1, 2}, DO(summation)},
    {"lego", "the sign of a variable at the end of a chain", "can it follow one reference after another?",
               0,  8,  2, LEGO_SYMBOLS,    2,       0.5, 4000,      0, 0, 0, {0, 3, 3}, DO(lego)},
    {"fflm", "the bit that was written last, among many to ignore",
            "can it single out one token however far?",
               0, 32, 16,         ALL,     2,       0.5, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(fflm),
               .varies = 1},
    {"fflm_sparse", "the bit that was written last, longer ago",
            "does it still, where there is more to ignore?",
               0, 32, 16,         ALL,     2,       0.5, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(fflm),
               .test = make_fflm_sparse, .trains = "fflm", .varies = 1},
    {"fflm_dense", "the bit that was written last, just before",
            "does it keep apart what stands close together?",
               0, 32, 16,         ALL,     2,       0.5, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(fflm),
               .test = make_fflm_dense, .trains = "fflm", .varies = 1},
    {"indirect", "which symbol stands so many places from that one?",
            "can it find by content, and go on by position?",
               0, 16,  8, INDIRECT_SYMBOLS, STRING, 1. / 16, 1500, BEYOND, 0, 0, {0, 1, 3}, DO(indirect)},
    {"mqrar_1", "the latest value of a key", "can it find the nearest of equals?",
               0, 32, 24, MQRAR_SYMBOLS, PE_ALPHABET, A_SYMBOL, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(mqrar_1),
               .varies = 1},
    {"mqrar_2", "the value of a key the time before", "can it count back two of equals?",
               0, 32, 24, MQRAR_SYMBOLS, PE_ALPHABET, A_SYMBOL, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(mqrar_2),
               .varies = 1},
    {"mqrar_3", "the value of a key three times back", "can it count back three?",
               0, 32, 24, MQRAR_SYMBOLS, PE_ALPHABET, A_SYMBOL, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(mqrar_3),
               .varies = 1},
    {"mqrar_4", "the value of a key four times back", "can it count back four?",
               0, 32, 24, MQRAR_SYMBOLS, PE_ALPHABET, A_SYMBOL, 1500, ONLY_L_2, 0, 0, {0, 2, 0}, DO(mqrar_4),
               .varies = 1},
};
// clang-format on
