/* SPDX-License-Identifier: MIT */
/* bench.c: which rows are asked for, and what a measured one means. Contract: bench.h. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/limits.h"

static int is_word(const char *list, const char *word)
{
    const size_t length = strcspn(list, ",");
    return strlen(word) == length && !strncmp(list, word, length);
}

int pe_bench_is_wanted(const char *goals, const char *goal)
{
    const char *word = goals;
    while (word && !is_word(word, goal)) {
        word = strchr(word, ',');
        word = word ? word + 1 : NULL;
    }
    return !goals || word;
}

const char *pe_bench_unknown_goal(const char *goals, const pe_bench_case *cases, int count, int *length)
{
    for (const char *word = goals;; word += *length + 1) {
        int i   = 0;
        *length = (int)strcspn(word, ",");
        while (i < count && !is_word(word, cases[i].goal))
            i++;
        if (i == count || !word[*length])
            return i == count ? word : NULL;
    }
}

void pe_bench_skip(pe_bench_row *row, const pe_bench_case *c, const char *reason)
{
    *row = (pe_bench_row){.what = c, .figure = {NAN, NAN, NAN, NAN}};
    snprintf(row->reason, sizeof row->reason, "%s", reason);
}

/* Can a case be measured here? UNSUPPORTED with the reason, before anything is tried, if not. */
static posenc_status check(const pe_bench_case *c, int is_long, posenc_error *err)
{
    err->status = POSENC_ERROR_UNSUPPORTED;
    if (c->is_long && !is_long)
        snprintf(err->message, sizeof err->message, "takes minutes; ask for it with --long");
    else if (c->isa && !pe_limits_runs_here(c->isa))
        snprintf(err->message, sizeof err->message,
                 "no instruction set %s: this processor lacks it, or this build its kernels", c->isa);
    else if (c->processors > pe_parallel_processors())
        snprintf(err->message, sizeof err->message, "needs %d processors", c->processors);
    else
        err->status = POSENC_OK;
    return err->status;
}

void pe_bench_measure(pe_bench_row *row, const pe_bench_case *c, const pe_bench_effort *effort, int is_long)
{
    posenc_error err;
    pe_bench_skip(row, c, "");
    if (check(c, is_long, &err) || c->measure(c, effort, &row->figure, &err))
        pe_bench_skip(row, c, err.message);
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

void pe_bench_machine(char *name, size_t size)
{
    char  line[256], model[128] = "unknown processor";
    int   family = 0;
    FILE *info   = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof line, info)) {
        sscanf(line, "model name : %127[^\n]", model);
        sscanf(line, "cpu family : %d", &family);
    }
    if (info)
        fclose(info);
    snprintf(name, size, "%s family %d x %d", model, family, pe_parallel_processors());
}
