/* SPDX-License-Identifier: MIT */
/*
 * compare.h: the one door of this folder: train one small model per encoding, measure, report
 *
 *     pe_compare_create    checks everything that can be checked before hours of work
 *     pe_compare_train     trains on worker threads, then evaluates and compares; may be interrupted
 *     pe_summary_table ... what came out, for whoever shows it
 *     pe_results_write     results.json, results.csv, curves.csv, pictures and report.html, all or nothing
 *
 * While it trains, finished runs and checkpoints are saved in DIR.partial (store.h), from which a later start
 * with `resume` goes on, to the same bits. Several processes (ranks.h) may share the runs: all of them create
 * the same comparison and train it; only number 0 has results afterwards.
 *
 * Nothing here prints. Results depend only on the configuration and the text, never on the number of
 * workers.
 */
#ifndef PE_TRAIN_COMPARE_H
#define PE_TRAIN_COMPARE_H

#include "train/jobs/preset.h"
#include "train/jobs/ranks.h"
#include "train/model/spec.h"
#include "train/report/summary.h"

#include <posenc/posenc.h>
#include <stdint.h>

/* Everything is checked: encodings, sizes, text, directory, gnuplot. Statuses other than FILE and MEMORY are
   the caller's to correct. */
posenc_status pe_compare_create(pe_compare **compare, const pe_compare_config *config, posenc_error *err);
void          pe_compare_free(pe_compare *compare); /* NULL is fine */

/* What it says in addition to its tables; belongs to the comparison. */
typedef struct pe_compare_words {
    const char *warning;  /* about something that is unusual but no error (few held-out windows), or NULL */
    const char *advice;   /* about the number of seeds, or NULL */
    const char *notes;    /* lines about what was taken over from an earlier start or ignored, or NULL */
    int         finished; /* encodings whose runs all finished */
    int         runs, missing; /* of all runs those that an interruption left out: > 0 if there was one */
    const char *rates;         /* what is doubtful about the learning rates that were chosen, or NULL */
    const char *orders;        /* lines: which encodings stand in a settled order, or NULL */
} pe_compare_words;
pe_compare_words pe_compare_says(const pe_compare *compare);

/* Where the training stands. */
typedef struct pe_compare_state {
    int    runs, finished;     /* finished: those saved by an earlier start, and those told one by one */
    double fraction;           /* of all work, 0 to 1 */
    double seconds, remaining; /* since the start; until the end as it looks now, or NaN */
} pe_compare_state;

/* One finished run: on the text, or on a task. */
typedef struct pe_compare_run {
    const char *label;
    const char *task; /* NULL: the text */
    int64_t     seed;
    double      accuracy_at_L, accuracy_at_2L; /* of a task; NaN where it is not tested */
    double      loss_at_L, loss_beyond;        /* of the text, at L and furthest; NaN if it diverged */
    double      seconds;
    int         diverged;
} pe_compare_run;

/* Called on the thread that trains, never two at a time. Members may be NULL. */
typedef struct pe_compare_watch {
    void *self;
    int (*interrupted)(void *self); /* nonzero: stop; what is finished is saved */
    void (*progress)(void *self, const pe_compare_state *state);
    void (*finished)(void *self, const pe_compare_run *run, const pe_compare_state *state);
} pe_compare_watch;

/* *interrupted = 1 if it was; the results then hold the encodings that were finished, perhaps none. */
posenc_status pe_compare_train(pe_compare *compare, const pe_compare_watch *watch, int *interrupted,
                               posenc_error *err);

/* How long training would take, measured in about three seconds, of which nothing is kept:
   compare_estimate.c. */
posenc_status pe_compare_estimate(pe_compare *compare, pe_compare_cost *cost, posenc_error *err);

#endif
