/* SPDX-License-Identifier: MIT */
/*
 * bench.h: the one door of this folder: kernels against the limits of the computer that they run on
 *
 * A *case* is a row of the table before it is measured: which goal it belongs to, what it is called, how much
 * is wanted, what it takes, and the function that measures it. The list of cases is made without measuring
 * anything, so a row is never missing: what this computer cannot do has a row that says why. A *row* is what
 * came of it.
 *
 *     timing.h    the clock: kernel and limit alternately; the ratio of two speeds, median and quartiles
 *     limits.h    loops that do nothing but reach a limit, for each instruction set, and the best of them
 *     crew.h      whose threads a case runs on
 *     workload.h  what a case runs, made ready, and memory to measure on
 *     metric.h    what measures a case: the limits against the clock, kernels against limits (metric.c),
 *                 memory (memory.c: G12, G17), steps of training (training.c: G15)
 *     cases.c     the table of all rows
 *     bench.c     which of them are asked for, and what a measured one means
 *
 * Everything goes through the public interface, as a user's program would, except the table of G6 (kernels.h)
 * and the training step of G15 (train/model/speed.h). Goals, units and rules: docs/performance.md.
 */
#ifndef PE_BENCH_BENCH_H
#define PE_BENCH_BENCH_H

#include <posenc/registry.h>

enum { PE_BENCH_GOAL = 12, PE_BENCH_NAME = 128 };

/* NEAR_ONE: from `wanted` to as far beyond 1. STATED: a figure without a goal. */
typedef enum pe_bench_sense { PE_AT_LEAST, PE_AT_MOST, PE_NEAR_ONE, PE_STATED } pe_bench_sense;

/* How much time a case may take, and with how many threads a kernel and its limit run. */
typedef struct pe_bench_effort {
    double seconds; /* of one row, beyond the fewest repeats */
    int    repeats; /* at most; at least 1 */
    int    threads; /* at least 1 */
} pe_bench_effort;

/* Median and quartiles of what was measured, and the limit (or whatever the kernel was held against) in the
   same run. */
typedef struct pe_bench_figure {
    double value, q1, q3, limit; /* NaN: there is none */
} pe_bench_figure;

/* What is run: attention; rows, at the input; a table of them, or of a rotation; a rotation in place, out of
   place, or in place by a finished table. */
typedef enum pe_bench_verb {
    PE_ATTEND,
    PE_MAKE_ROWS,
    PE_MAKE_TABLE,
    PE_ROTATE,
    PE_ROTATE_AWAY,
    PE_ROTATE_BY_TABLE
} pe_bench_verb;

/* Whose threads run it: as many as asked for of the library's; one; two of OpenMP's, or of the pool that the
   library has in its place where it is built without. */
typedef enum pe_bench_crew { PE_CREW_ASKED, PE_CREW_ONE, PE_CREW_OPENMP, PE_CREW_POOL } pe_bench_crew;

/* Each measuring function reads what it needs. */
typedef struct pe_bench_shape {
    const char   *spec;
    pe_bench_verb verb;
    int64_t       H, G, Lq, Lk, D, window;
    int           mask, backward;
    posenc_dtype  dtype;
    int           kind; /* of pass (pe_pass_kind) */
    int64_t       keys; /* that a run brings, the first of Lk; 0: all */
    int64_t       page; /* keys of a page, which lie in any order; 0: rows side by side */
    pe_bench_crew crew;
    int           is_bound;      /* parameters are prepared once, not by each run */
    int64_t       layers, batch; /* of the model of a training step */
} pe_bench_shape;

typedef struct pe_bench_case pe_bench_case;

/* Fills *figure; a status means that there is none, and err->message is the reason. */
typedef posenc_status pe_bench_fn(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err);

struct pe_bench_case {
    char           goal[PE_BENCH_GOAL], name[PE_BENCH_NAME];
    const char    *unit; /* of the limit where there is one, else of the value */
    double         wanted;
    pe_bench_sense sense;
    const char    *isa;        /* it needs, and is measured on, this instruction set; NULL: the one in use */
    int            processors; /* it needs so many; 0: one */
    int            is_long;    /* minutes: only when asked for */
    pe_bench_fn   *measure;
    pe_bench_shape shape;
};

typedef struct pe_bench_row {
    const pe_bench_case *what;
    pe_bench_figure      figure; /* value NaN: not measured, and `reason` says why */
    char                 reason[sizeof(posenc_error)];
} pe_bench_row;

/* All cases in the order of their goals; free(*cases). Status MEMORY. */
posenc_status pe_cases_create(pe_bench_case **cases, int *count, posenc_error *err);

/* 1 if `goal` is one of the words of a comma-separated list; a NULL list has all. */
int pe_bench_is_wanted(const char *goals, const char *goal);
/* A word of the list that is no goal of any case: its length in *length; NULL if all are. */
const char *pe_bench_unknown_goal(const char *goals, const pe_bench_case *cases, int count, int *length);

/* Measures one case; never fails, for a row that could not be measured says why. */
void pe_bench_measure(pe_bench_row *row, const pe_bench_case *c, const pe_bench_effort *effort, int is_long);
/* A row that was not measured. */
void pe_bench_skip(pe_bench_row *row, const pe_bench_case *c, const char *reason);

/* 1 met, 0 not met, -1 neither: nothing was wanted, or nothing measured. */
int pe_bench_met(const pe_bench_row *row);

/* The processor as the system names it, its family, and how many this process may use. */
void pe_bench_machine(char *name, size_t size);

#endif
