/* SPDX-License-Identifier: MIT */
/*
 * The tasks are what docs/experiments.md says: every answer is worked out again from the sequence, by another
 * way than the generator's, exactly the places are asked that should be, and what is drawn is drawn evenly.
 */
#include "train/tasks/task.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1024, ROWS = 60, MANY = 4000, NONE = PE_NOTHING_ASKED };

/* What sequence and answers must be: returns NULL, or what is wrong. symbols, targets [tokens]. */
typedef const char *judge(int64_t n, const uint16_t *x, const int16_t *y);

/* The first of n symbols that is x, or NULL; and where it stands. */
static const uint16_t *find(const uint16_t *symbols, int x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (symbols[i] == x)
            return symbols + i;
    return NULL;
}

static int64_t place_of(const uint16_t *symbols, int x, size_t n)
{
    return find(symbols, x, n) - symbols;
}

static int is_symbol(int x)
{
    return x >= PE_FIRST_SYMBOL && x < PE_FIRST_SYMBOL + PE_ALPHABET;
}

static int are_symbols(const uint16_t *x, int64_t n)
{
    int all = 1;
    for (int64_t i = 0; i < n; i++)
        all &= is_symbol(x[i]);
    return all;
}

/* Is nothing asked at all places from `first` to before `end`? */
static int is_silent(const int16_t *y, int64_t first, int64_t end)
{
    int silent = 1;
    for (int64_t i = first; i < end; i++)
        silent &= y[i] == NONE;
    return silent;
}

static const char *judge_posid(int64_t n, const uint16_t *x, const int16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != x[0] || !is_symbol(x[i]) || y[i] != i)
            return "equal symbols, the answer is the place";
    return NULL;
}

static const char *judge_order(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *a = find(x, PE_MARK_A, (size_t)n + 1), *b = find(x, PE_MARK_B, (size_t)n + 1);
    int64_t         symbols = 0;
    for (int64_t i = 0; i <= n; i++)
        symbols += is_symbol(x[i]);
    if (x[0] != PE_BOS || !a || !b || symbols != n - 2)
        return "BOS, one A, one B, and symbols";
    return y[0] == (a > b) && is_silent(y, 1, n + 1) ? NULL : "0 if A is first, asked at BOS alone";
}

static const char *judge_shift(int64_t n, const uint16_t *x, const int16_t *y)
{
    const int64_t first = n > 16 ? 16 : 5;
    if (!are_symbols(x, n) || !is_silent(y, 0, first))
        return "symbols; not asked before place 5, nor where training was beyond L";
    for (int64_t i = first; i < n; i++)
        if (y[i] != x[i - 5])
            return "the symbol five places before";
    return NULL;
}

static const char *judge_needle(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *mark = find(x, PE_MARK, (size_t)n);
    if (!mark || mark - x > n - 3 || x[n - 1] != PE_SEP || !is_silent(y, 0, n - 1))
        return "MARK at most at n - 3, SEP last and alone asked";
    if (!are_symbols(x, mark - x) || !are_symbols(mark + 1, n - 2 - (mark - x)))
        return "all else symbols";
    return y[n - 1] == mark[1] ? NULL : "the symbol behind MARK";
}

/* BOS s SEP t, each of t asked for at the token before it, then SEP; s and t are handed to the caller's
   eyes. */
static const char *judge_writing(int64_t n, const uint16_t *x, const int16_t *y)
{
    if (x[0] != PE_BOS || x[n + 1] != PE_SEP || !are_symbols(x + 1, n) || !are_symbols(x + n + 2, n))
        return "BOS s SEP t";
    if (!is_silent(y, 0, n + 1) || y[2 * n + 1] != PE_SEP)
        return "asked from SEP on, for SEP at the end";
    for (int64_t i = 0; i < n; i++)
        if (y[n + 1 + i] != x[n + 2 + i])
            return "each token is asked for the next";
    return NULL;
}

static const char *judge_copy(int64_t n, const uint16_t *x, const int16_t *y)
{
    return memcmp(x + 1, x + n + 2, (size_t)n * sizeof *x) ? "t = s" : judge_writing(n, x, y);
}

static const char *judge_reverse(int64_t n, const uint16_t *x, const int16_t *y)
{
    for (int64_t i = 1; i <= n; i++)
        if (x[i] != x[2 * n + 2 - i])
            return "t is s backwards";
    return judge_writing(n, x, y);
}

static const char *judge_sort(int64_t n, const uint16_t *x, const int16_t *y)
{
    int64_t difference[256] = {0};
    for (int64_t i = 1; i <= n; i++) {
        difference[x[i]]++;
        difference[x[n + 1 + i]]--;
        if (i > 1 && x[n + 1 + i] < x[n + i])
            return "t rises";
    }
    for (int i = 0; i < 256; i++)
        if (difference[i])
            return "t has the symbols of s";
    return judge_writing(n, x, y);
}

/* From the definition, for every place anew. */
static const char *judge_count(int64_t n, const uint16_t *x, const int16_t *y)
{
    enum { PASS = PE_FIRST_SYMBOL, INC, RESET };
    if (x[0] != RESET || (n > 16 && !is_silent(y, 0, 16)))
        return "RESET first; beyond L only new places";
    for (int64_t i = n > 16 ? 16 : 0; i < n; i++) {
        int64_t count = 0, k = i;
        for (; x[k] != RESET; k--)
            count += x[k] == INC;
        if (y[i] != (count < 9 ? count : 9) || x[i] < PASS || x[i] > RESET)
            return "INC since RESET, at most 9";
    }
    return NULL;
}

static const char *judge_parity(int64_t n, const uint16_t *x, const int16_t *y)
{
    if (n > 16 && !is_silent(y, 0, 16))
        return "beyond L only new places";
    for (int64_t i = n > 16 ? 16 : 0; i < n; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k <= i; k++)
            sum += x[k] - PE_FIRST_SYMBOL;
        if (y[i] != sum % 2 || (x[i] != PE_FIRST_SYMBOL && x[i] != PE_FIRST_SYMBOL + 1))
            return "bits; the parity of those so far";
    }
    return NULL;
}

static const char *judge_grid(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *mark = find(x, PE_MARK, (size_t)(n * n));
    if (!mark)
        return "a mark";
    const int64_t at = mark - x, row = at / n, column = at % n;
    if (row + 1 >= n || column + 2 >= n || !is_silent(y, 0, at) || !is_silent(y, at + 1, n * n))
        return "the mark has a cell one down, two right, and it alone is asked";
    return y[at] == x[(row + 1) * n + column + 2] && is_symbol(y[at]) ? NULL : "the symbol there";
}

static long long number_of(const uint16_t *digits, int64_t n)
{
    long long value = 0;
    for (int64_t i = n - 1; i >= 0; i--) /* the least digit first */
        value = 10 * value + digits[i] - PE_FIRST_SYMBOL;
    return value;
}

/* The numbers as integers: up to 17 digits; longer ones by their digits modulo 9. */
static const char *judge_addition(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *a = x + 1, *b = a + n + 1, *c = b + n + 1;
    if (x[0] != PE_BOS || a[n] != PE_MARK_A || b[n] != PE_MARK_B || !is_silent(y, 0, 2 * n + 2))
        return "BOS a + b = c, asked from = on";
    long long sum = 0, nines = 0, unit = 1;
    for (int64_t i = 0; i < n; i++) {
        nines += a[i] + b[i] - 2 * PE_FIRST_SYMBOL - y[2 * n + 2 + i];
        if (y[2 * n + 2 + i] + PE_FIRST_SYMBOL != c[i])
            return "each token is asked for the next digit";
    }
    for (int64_t i = 0; i <= n && n <= 17; i++, unit *= 10)
        sum += unit * y[2 * n + 2 + i];
    if ((nines - y[3 * n + 2]) % 9 || y[3 * n + 2] > 1)
        return "the sum, modulo 9, and a last digit of 0 or 1";
    return n > 17 || sum == number_of(a, n) + number_of(b, n) ? NULL : "the sum";
}

static const char *judge_summation(int64_t n, const uint16_t *x, const int16_t *y)
{
    int64_t sum = 0;
    for (int64_t i = 1; i <= n; i++)
        sum += x[i] - PE_FIRST_SYMBOL;
    if (x[0] != PE_BOS || x[n + 1] != PE_SEP || !is_silent(y, 0, n + 1))
        return "BOS digits SEP, asked at SEP";
    return y[n + 1] == sum % 10 ? NULL : "the sum modulo 10";
}

/* Backwards from the variable that is asked about to +-1. */
static const char *judge_lego(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *clause = x + 1;
    int             name = x[3 * n + 2], negative = 0;
    if (x[0] != PE_BOS || x[3 * n + 1] != PE_SEP || !is_silent(y, 0, 3 * n + 2))
        return "BOS clauses SEP variable, asked there alone";
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++)
            if (clause[3 * i] == clause[3 * k])
                return "all variables differ";
    for (int64_t i = n - 1; i >= 0; i--) {
        if (clause[3 * i] != name)
            continue;
        negative ^= clause[3 * i + 1] == PE_MARK_B;
        name = clause[3 * i + 2];
    }
    return name == PE_MARK && y[3 * n + 2] == negative ? NULL : "the sign at the end of the chain";
}

/* w, r, i are the first three symbols, the bits the next two. */
static const char *judge_fflm(int64_t n, const uint16_t *x, const int16_t *y)
{
    int held = -1;
    if (x[0] != PE_FIRST_SYMBOL || x[2 * n - 2] != PE_FIRST_SYMBOL + 1)
        return "the first instruction is w, the last r";
    for (int64_t i = 0; i < n; i++) {
        const int what = x[2 * i] - PE_FIRST_SYMBOL, bit = x[2 * i + 1] - PE_FIRST_SYMBOL - 3;
        if (what < 0 || what > 2 || bit < 0 || bit > 1 || y[2 * i + 1] != NONE)
            return "an instruction and a bit, at which nothing is asked";
        held = what == 0 ? bit : held;
        if (what == 1 ? bit != held || y[2 * i] != held : y[2 * i] != NONE)
            return "asked at every r, and there alone, for the bit after the last w, which stands there";
    }
    return NULL;
}

static const char *judge_indirect(int64_t n, const uint16_t *x, const int16_t *y)
{
    const uint16_t *place = find(x, x[n + 1], (size_t)n);
    const int       drawn = x[n + 2] - 41, by = drawn < 7 ? drawn - 7 : drawn - 6;
    for (int64_t i = 0; i < n; i++)
        if (x[i] >= 40 || find(x, x[i], (size_t)n) != x + i)
            return "symbols of 40, no two alike";
    if (x[n] != 40 || !place || drawn < 0 || drawn > 13 || by == 0 || !is_silent(y, 0, n + 2))
        return "SEP, one of the symbols, an offset, where it is asked";
    const int64_t there = place - x + by;
    return there >= 0 && there < n && y[n + 2] == x[there] ? NULL : "the symbol at a + d";
}

/* Backwards from every key, where the maker goes forwards. */
static const char *judge_recall(int64_t n, const uint16_t *x, const int16_t *y, int back)
{
    int kinds = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i, left = back;
        while (left > 0 && --at >= 0)
            left -= x[2 * at] == x[2 * i];
        kinds += find(x, x[2 * i], (size_t)(2 * n)) == x + 2 * i;
        if (!is_symbol(x[2 * i]) || x[2 * i + 1] < PE_TASK_SYMBOLS || x[2 * i + 1] >= PE_TASK_SYMBOLS + 16)
            return "a key and a value, of two alphabets";
        if (y[2 * i + 1] != NONE || y[2 * i] != (at < 0 ? NONE : x[2 * at + 1] - PE_TASK_SYMBOLS))
            return "asked where the key occurred often enough, for the value then";
    }
    return kinds <= 8 ? NULL : "8 keys at most";
}

static const char *judge_mqrar_1(int64_t n, const uint16_t *x, const int16_t *y)
{
    return judge_recall(n, x, y, 1);
}

static const char *judge_mqrar_2(int64_t n, const uint16_t *x, const int16_t *y)
{
    return judge_recall(n, x, y, 2);
}

static const char *judge_mqrar_3(int64_t n, const uint16_t *x, const int16_t *y)
{
    return judge_recall(n, x, y, 3);
}

static const char *judge_mqrar_4(int64_t n, const uint16_t *x, const int16_t *y)
{
    return judge_recall(n, x, y, 4);
}

static const struct {
    const char *name;
    judge      *judge;
} judges[] = {{"fflm", judge_fflm},         {"fflm_sparse", judge_fflm},    {"fflm_dense", judge_fflm},
              {"indirect", judge_indirect}, {"mqrar_1", judge_mqrar_1},     {"mqrar_2", judge_mqrar_2},
              {"mqrar_3", judge_mqrar_3},   {"mqrar_4", judge_mqrar_4},     {"posid", judge_posid},
              {"order", judge_order},       {"shift", judge_shift},         {"needle", judge_needle},
              {"copy", judge_copy},         {"reverse", judge_reverse},     {"sort", judge_sort},
              {"count", judge_count},       {"parity", judge_parity},       {"grid", judge_grid},
              {"addition", judge_addition}, {"summation", judge_summation}, {"lego", judge_lego}};

static judge *judge_of(const pe_task *task)
{
    for (size_t i = 0; i < sizeof judges / sizeof *judges; i++)
        if (!strcmp(judges[i].name, task->name))
            return judges[i].judge;
    fail_msg("%s has no judge in this test", task->name);
    return NULL;
}

static uint16_t symbols[ROWS * MOST];
static int16_t  targets[ROWS * MOST];

static void assert_rows(const pe_task *task, int64_t n)
{
    const int64_t length = pe_task_tokens(task, n);
    for (int r = 0; r < ROWS; r++) {
        const char *wrong = judge_of(task)(n, symbols + r * length, targets + r * length);
        if (wrong)
            fail_msg("%s, n = %lld, row %d: not so: %s", task->name, (long long)n, r, wrong);
        for (int64_t i = 0; i < length; i++) {
            assert_true(symbols[r * length + i] < task->symbols);
            assert_true(targets[r * length + i] >= NONE && targets[r * length + i] < task->classes);
        }
    }
}

static void every_training_sequence_is_as_its_definition_says(void **state)
{
    (void)state;
    for (int t = 0; t < PE_TASKS; t++)
        for (int64_t n = pe_tasks[t].least; n <= pe_tasks[t].L; n++) {
            pe_task_batch(&pe_tasks[t], 7, 3, n, ROWS, symbols, targets);
            assert_rows(&pe_tasks[t], n);
        }
}

static void every_test_sequence_is_as_its_definition_says_at_every_length(void **state)
{
    (void)state;
    for (int t = 0; t < PE_TASKS; t++)
        for (int length = 0; length < PE_TASK_LENGTHS; length++) {
            const int64_t n = pe_task_size(&pe_tasks[t], length);
            if (n == 0) { /* not tested: nothing is asked, and nothing written */
                assert_int_equal(pe_task_asked(&pe_tasks[t], length), 0);
                continue;
            }
            pe_task_test(&pe_tasks[t], length, 0, ROWS, symbols, targets);
            assert_rows(&pe_tasks[t], n);
            int64_t asked = 0;
            for (int64_t i = 0; i < ROWS * pe_task_tokens(&pe_tasks[t], n); i++)
                asked += targets[i] != NONE;
            int64_t each[ROWS], all = 0;
            pe_task_asked_each(&pe_tasks[t], length, ROWS, each);
            for (int r = 0; r < ROWS; r++) {
                all += each[r];
                assert_true(pe_tasks[t].varies || each[r] == pe_task_asked(&pe_tasks[t], length));
            }
            assert_int_equal(asked, all);
        }
}

/* A judge that says yes to everything would prove nothing: each must notice a wrong answer, a missing one,
   one more. */
static void a_judge_notices_a_wrong_answer_a_missing_one_and_one_too_many(void **state)
{
    (void)state;
    for (int t = 0; t < PE_TASKS; t++) {
        const pe_task *task = &pe_tasks[t];
        const int64_t  n = task->L, length = pe_task_tokens(task, n);
        for (int64_t i = 0; i < length; i++) {
            pe_task_batch(task, 7, 3, n, 1, symbols, targets);
            const int16_t right = targets[i];
            targets[i]          = (int16_t)(right == NONE ? 0 : (right + 1) % task->classes);
            assert_non_null(judge_of(task)(n, symbols, targets));
            targets[i] = NONE;
            assert_int_equal(judge_of(task)(n, symbols, targets) != NULL, right != NONE);
        }
    }
}

/* ---------------------------------------------------------------- lengths ------------------- */

static void sizes_are_multiples_of_the_trained_length(void **state)
{
    static const struct {
        const char *task;
        int64_t     n[PE_TASK_LENGTHS], trained, longest;
    } rows[] = {{"posid", {0, 16, 0, 0, 0, 0}, 16, 16},      {"order", {8, 16, 24, 32, 64, 128}, 17, 65},
                {"shift", {8, 16, 24, 32, 64, 128}, 16, 64}, {"copy", {8, 16, 24, 32, 64, 128}, 34, 130},
                {"grid", {0, 8, 12, 16, 0, 0}, 64, 256},     {"addition", {5, 10, 15, 20, 40, 80}, 33, 123}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pe_task *task = pe_task_find(rows[i].task);
        for (int l = 0; l < PE_TASK_LENGTHS; l++)
            assert_int_equal(pe_task_size(task, l), rows[i].n[l]);
        assert_int_equal(pe_task_tokens(task, task->L), rows[i].trained);
        assert_int_equal(pe_task_tested_tokens(task, PE_TASK_4), rows[i].longest);
    }
    assert_null(pe_task_find("no such task"));
    assert_string_equal(pe_task_length_name(PE_TASK_1_5), "x1.5");
}

/* Fixed tasks have one n; others all from least to L, about equally often. */
static void batches_have_the_sizes_that_they_should(void **state)
{
    (void)state;
    for (int t = 0; t < PE_TASKS; t++) {
        const pe_task *task      = &pe_tasks[t];
        int            seen[256] = {0};
        const int64_t  kinds     = task->L - task->least + 1;
        for (int64_t step = 0; step < MANY; step++) {
            const int64_t n = pe_task_batch_size(task, 1, step);
            assert_true(n >= task->least && n <= task->L);
            seen[n]++;
        }
        for (int64_t n = task->least; n <= task->L; n++) { /* 5 standard deviations */
            const double p = 1 / (double)kinds, mean = MANY * p, sigma = sqrt(MANY * p * (1 - p));
            assert_true(fabs(seen[n] - mean) <= 5 * sigma);
        }
    }
}

/* ---------------------------------------------------------------- draws --------------------- */

static void numbers_depend_on_seed_task_step_and_row_alone(void **state)
{
    uint16_t again[ROWS * MOST], tests[ROWS * MOST];
    int16_t  same[ROWS * MOST];
    (void)state;
    for (int t = 0; t < PE_TASKS; t++) {
        const pe_task *task = &pe_tasks[t];
        const int64_t  n = task->L, length = pe_task_tokens(task, n);
        const size_t   bytes = (size_t)(ROWS * length) * sizeof *symbols;
        pe_task_batch(task, 7, 3, n, ROWS, symbols, targets);
        pe_task_batch(task, 7, 2, n, ROWS, again, same); /* something else in between */
        assert_true(memcmp(symbols, again, bytes) != 0);
        pe_task_batch(task, 8, 3, n, ROWS, again, same);
        assert_true(memcmp(symbols, again, bytes) != 0);
        pe_task_batch(task, 7, 3, n, 5, again, same); /* fewer rows are the first of them */
        assert_memory_equal(symbols, again, (size_t)(5 * length) * sizeof *symbols);
        assert_memory_equal(targets, same, (size_t)(5 * length) * sizeof *targets);
        pe_task_test(task, PE_TASK_L, 0, ROWS, tests, same);
        assert_true(memcmp(symbols, tests, bytes) != 0);
        pe_task_test(task, PE_TASK_L, 20, 7, again, same); /* tests may be made in any portions */
        assert_memory_equal(tests + 20 * length, again, (size_t)(7 * length) * sizeof *again);
    }
}

static void assert_even(const int *seen, int kinds, int draws)
{
    const double p = 1 / (double)kinds, sigma = sqrt(draws * p * (1 - p));
    for (int i = 0; i < kinds; i++)
        if (fabs(seen[i] - draws * p) > 5 * sigma)
            fail_msg("kind %d of %d was seen %d times of %d", i, kinds, seen[i], draws);
}

/* Answers by chance: nobody who sees only what is asked can do better than `chance`. */
static void the_commonest_answer_is_right_as_often_as_chance_says(void **state)
{
    (void)state;
    for (int t = 0; t < PE_TASKS; t++) {
        const pe_task *task      = &pe_tasks[t];
        const int      length    = pe_task_size(task, PE_TASK_2) ? PE_TASK_2 : PE_TASK_L;
        const int64_t  tokens    = pe_task_tokens(task, pe_task_size(task, length));
        int            seen[256] = {0}, asked = 0, most = 0, answers = 0;
        for (int r = 0; r < MANY; r++) {
            pe_task_test(task, length, r, 1, symbols, targets);
            int64_t at = tokens - 1; /* one answer of each sequence, so that they are independent */
            while (targets[at] == NONE || (task->classes == PE_TASK_SYMBOLS && targets[at] == PE_SEP))
                at--;
            if (!strcmp(task->name, "posid"))
                at = r % 16; /* all places alike */
            if (!strcmp(task->name, "sort"))
                at -= r % pe_task_size(task, length);
            if (!strcmp(task->name, "addition"))
                at -= 1; /* the last digit is a carry, 0 or 1 */
            seen[targets[at]]++;
            asked++;
        }
        for (int i = 0; i < 256; i++) {
            most = seen[i] > most ? seen[i] : most;
            answers += seen[i] > 0;
        }
        /* who sees the string guesses among its 16 symbols, of the 40 that answers are from */
        const double chance = !strcmp(task->name, "indirect") ? 1.0 / 40 : task->chance;
        const double sigma  = sqrt(chance * (1 - chance) / asked);
        assert_true(task->chance == chance || task->chance == 1.0 / 16);
        if (fabs((double)most / asked - chance) > 5 * sigma)
            fail_msg("%s: the commonest of %d answers is right %d times of %d, chance is %g", task->name,
                     answers, most, asked, chance);
    }
}

static void marks_stand_at_all_places_alike(void **state)
{
    int places[2][64] = {{0}}, pairs[16 * 16] = {0}, cells[64] = {0};
    (void)state;
    for (int r = 0; r < MANY; r++) {
        pe_task_test(pe_task_find("needle"), PE_TASK_L, r, 1, symbols, targets);
        places[0][place_of(symbols, PE_MARK, 16)]++;
        pe_task_test(pe_task_find("order"), PE_TASK_HALF, r, 1, symbols, targets);
        const int64_t a = place_of(symbols, PE_MARK_A, 9) - 1, b = place_of(symbols, PE_MARK_B, 9) - 1;
        pairs[a * 7 + b - (b > a)]++;
        pe_task_test(pe_task_find("grid"), PE_TASK_L, r, 1, symbols, targets);
        const int64_t cell = place_of(symbols, PE_MARK, 64);
        cells[cell / 8 * 6 + cell % 8]++;
    }
    assert_even(places[0], 14, MANY);
    assert_even(pairs, 8 * 7, MANY);
    assert_even(cells, 7 * 6, MANY);
}

/* PASS, INC, RESET: 10, 4 and 2 of 16. */
static void instructions_are_as_frequent_as_they_should(void **state)
{
    static const double share[3] = {10.0 / 16, 4.0 / 16, 2.0 / 16};
    int                 seen[3]  = {0};
    (void)state;
    for (int r = 0; r < MANY; r++) {
        pe_task_batch(pe_task_find("count"), 1, r, 16, 1, symbols, targets);
        seen[symbols[1 + r % 15] - PE_FIRST_SYMBOL]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(fabs(seen[i] - MANY * share[i]) < 5 * sqrt(MANY * share[i] * (1 - share[i])));
}

/* Training as fflm's own test set; the others have more and less to ignore. Numbers of a sequence between its
   first and last instruction. */
static void flips_are_as_frequent_as_their_test_sets_say(void **state)
{
    static const struct {
        const char *name;
        double      share;
    } sets[] = {{"fflm", 0.8}, {"fflm_sparse", 0.98}, {"fflm_dense", 0.1}};
    enum { N = 32, EACH = N - 2 };
    (void)state;
    for (int set = 0; set < 3; set++) {
        const pe_task *task    = pe_task_find(sets[set].name);
        int            seen[3] = {0}, ones = 0, coins = 0;
        for (int r = 0; r < MANY; r++) {
            pe_task_test(task, PE_TASK_L, r, 1, symbols, targets);
            for (int i = 1; i < N - 1; i++)
                seen[symbols[2 * i] - PE_FIRST_SYMBOL]++;
            for (int i = 0; i < N; i++)
                if (symbols[2 * i] != PE_FIRST_SYMBOL + 1) {
                    ones += symbols[2 * i + 1] - PE_FIRST_SYMBOL - 3;
                    coins++;
                }
        }
        const double all = (double)EACH * MANY, rest = (1 - sets[set].share) / 2;
        assert_true(fabs(seen[2] - all * sets[set].share) <
                    5 * sqrt(all * sets[set].share * (1 - sets[set].share)));
        for (int i = 0; i < 2; i++)
            assert_true(fabs(seen[i] - all * rest) < 5 * sqrt(all * rest * (1 - rest)));
        assert_true(fabs(ones - coins * 0.5) < 2.5 * sqrt(coins));
        uint16_t again[64];
        int16_t  same[64];
        pe_task_batch(task, 7, 3, N, 1, symbols, targets);
        pe_task_batch(pe_task_find("fflm"), 7, 3, N, 1, again, same);
        assert_memory_equal(symbols, again, sizeof again); /* one model, three tests */
    }
}

/* Offsets evenly, then places evenly among those that it leaves; keys evenly among 8. */
static void offsets_and_keys_are_drawn_evenly(void **state)
{
    int offsets[14] = {0}, places[9] = {0}, keys = 0, same = 0;
    (void)state;
    for (int r = 0; r < MANY; r++) {
        pe_task_test(pe_task_find("indirect"), PE_TASK_L, r, 1, symbols, targets);
        offsets[symbols[18] - 41]++;
        if (symbols[18] == 41) /* 7 back: from place 7 on */
            places[place_of(symbols, symbols[17], 16) - 7]++;
        pe_task_test(pe_task_find("mqrar_1"), PE_TASK_L, r, 1, symbols, targets);
        same += symbols[0] == symbols[2]; /* two draws of 8 */
        keys++;
    }
    int all = 0;
    for (int i = 0; i < 9; i++)
        all += places[i];
    assert_even(offsets, 14, MANY);
    assert_even(places, 9, all);
    assert_true(fabs(same - keys / 8.0) < 5 * sqrt(keys * 7 / 64.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_training_sequence_is_as_its_definition_says),
        cmocka_unit_test(every_test_sequence_is_as_its_definition_says_at_every_length),
        cmocka_unit_test(a_judge_notices_a_wrong_answer_a_missing_one_and_one_too_many),
        cmocka_unit_test(sizes_are_multiples_of_the_trained_length),
        cmocka_unit_test(batches_have_the_sizes_that_they_should),
        cmocka_unit_test(numbers_depend_on_seed_task_step_and_row_alone),
        cmocka_unit_test(the_commonest_answer_is_right_as_often_as_chance_says),
        cmocka_unit_test(marks_stand_at_all_places_alike),
        cmocka_unit_test(instructions_are_as_frequent_as_they_should),
        cmocka_unit_test(flips_are_as_frequent_as_their_test_sets_say),
        cmocka_unit_test(offsets_and_keys_are_drawn_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
