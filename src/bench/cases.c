/* SPDX-License-Identifier: MIT */
/*
 * cases.c: the list of all rows, which of them somebody asked for, and what a measured one means
 *
 * The list depends on nothing but this program: machines that can do less have the same rows, some of which
 * say why they hold no figure. The order is that of the goals' numbers, and within a goal that in which its
 * file adds them.
 */
#include "bench/cases.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

void pe_add_case(pe_case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
{
    if (to->count == to->room) {
        const int      room = 2 * to->room + 64;
        pe_bench_case *rows = realloc(to->rows, (size_t)room * sizeof *rows);
        if (!rows) {
            to->is_full = 1;
            return;
        }
        to->rows = rows;
        to->room = room;
    }
    va_list values;
    va_start(values, format);
    snprintf(c.goal, sizeof c.goal, "%s", goal);
    vsnprintf(c.name, sizeof c.name, format, values);
    va_end(values);
    to->rows[to->count++] = c;
}

const char *pe_mask_word(int mask)
{
    return mask & POSENC_MASK_CAUSAL ? "causal" : mask & POSENC_MASK_WINDOW ? "window" : "both ways";
}

const char *pe_dtype_word(posenc_dtype dtype)
{
    return dtype == POSENC_BF16 ? "bf16" : dtype == POSENC_F16 ? "f16" : "f32";
}

/* "limits" before "G1" before "G2" before "G10"; words without a number last. */
static int rank(const char *goal)
{
    return !strcmp(goal, "limits") ? 0 : goal[0] == 'G' ? atoi(goal + 1) : 1000;
}

/* Stable, which qsort is not: rows of one goal keep the order of their file. */
static void sort_by_goal(pe_bench_case *rows, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && rank(rows[k].goal) < rank(rows[k - 1].goal); k--) {
            const pe_bench_case swapped = rows[k];
            rows[k]                     = rows[k - 1];
            rows[k - 1]                 = swapped;
        }
}

posenc_status pe_bench_cases(pe_bench_case **cases, int *count, posenc_error *err)
{
    static void (*const files[])(pe_case_list *) = {pe_machine_cases,   pe_rotation_cases, pe_table_cases,
                                                    pe_attention_cases, pe_growth_cases,   pe_training_cases,
                                                    pe_floater_cases};
    pe_case_list list                            = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        files[i](&list);
    *cases = list.rows;
    *count = list.count;
    if (!list.is_full) {
        sort_by_goal(list.rows, list.count);
        return POSENC_OK;
    }
    free(list.rows);
    *err =
        (posenc_error){.status = POSENC_MEMORY, .message = "bench: there is no memory for the list of rows"};
    return err->status;
}

/* ---------------------------------------------------------------- which are asked for -------- */

/* Behind the word at `list`, and at the next word or the end. */
static const char *next_word(const char *list)
{
    list += strcspn(list, ",");
    return *list ? list + 1 : list;
}

static int is_word(const char *list, const char *word)
{
    const size_t length = strcspn(list, ",");
    return strlen(word) == length && !strncmp(list, word, length);
}

int pe_bench_is_wanted(const char *goals, const char *goal)
{
    if (!goals)
        return 1;
    for (; *goals; goals = next_word(goals))
        if (is_word(goals, goal))
            return 1;
    return 0;
}

const char *pe_bench_stranger(const char *goals, const pe_bench_case *cases, int count, int *length)
{
    const char *word = goals;
    do {
        int i = 0;
        while (i < count && !is_word(word, cases[i].goal))
            i++;
        *length = (int)strcspn(word, ",");
        if (i == count)
            return word;
        word += *length;
    } while (*word++ == ',');
    return NULL;
}

/* ---------------------------------------------------------------- measured ------------------- */

void pe_bench_leave(pe_bench_row *row, const pe_bench_case *c, const char *reason)
{
    *row = (pe_bench_row){.what = c, .figure = {NAN, NAN, NAN, NAN}};
    snprintf(row->reason, sizeof row->reason, "%s", reason);
}

static int runs_here(const char *isa)
{
    for (int i = 0; posenc_isa_at(i); i++)
        if (!strcmp(posenc_isa_at(i), isa))
            return 1;
    return 0;
}

/* Why a case cannot be measured here, before anything is tried; 0: it can. */
static int refuse(char *reason, size_t size, const pe_bench_case *c, int is_long)
{
    if (c->is_long && !is_long)
        return snprintf(reason, size, "takes minutes; ask for it with --long");
    if (c->isa && !runs_here(c->isa))
        return snprintf(reason, size,
                        "no instruction set %s: this processor lacks it, or this build its kernels", c->isa);
    if (c->processors > pe_processors())
        return snprintf(reason, size, "needs %d processors", c->processors);
    return 0;
}

void pe_bench_measure(pe_bench_row *row, const pe_bench_case *c, const pe_bench_effort *effort, int is_long)
{
    char         reason[sizeof row->reason];
    posenc_error err = {0};
    if (refuse(reason, sizeof reason, c, is_long)) {
        pe_bench_leave(row, c, reason);
        return;
    }
    pe_bench_leave(row, c, "");
    if (c->measure(c, effort, &row->figure, &err))
        pe_bench_leave(row, c, err.message);
}

int pe_bench_met(const pe_bench_row *row)
{
    const double value = row->figure.value, wanted = row->what->wanted;
    if (isnan(value))
        return -1;
    switch (row->what->sense) {
    case PE_AT_LEAST: return value >= wanted;
    case PE_AT_MOST: return value <= wanted;
    case PE_NEAR_ONE: return fabs(value - 1) <= 1 - wanted;
    case PE_STATED: break;
    }
    return -1;
}
