/* SPDX-License-Identifier: MIT */
/*
 * compare.h: the one door of this folder: train one small model per encoding, measure, report
 *
 *     pe_compare_create    checks everything that can be checked before hours of work
 *     pe_compare_train     trains on worker threads, then evaluates and compares; may be interrupted
 *     pe_compare_table ... what came out, for whoever shows it
 *     pe_compare_write     results.json, results.csv, curves.csv, pictures and report.html, all or nothing
 *
 * While it trains, finished runs and checkpoints are kept in DIR.partial (store.h), from which a later start
 * with `resume` goes on, to the same bits. Several processes (ranks.h) may share the runs: all of them create
 * the same comparison and train it; number 0 alone has results afterwards.
 *
 * Nothing here prints. Results depend on the configuration and the text alone, never on the number of
 * workers.
 */
#ifndef PE_TRAIN_COMPARE_H
#define PE_TRAIN_COMPARE_H

#include "train/model/spec.h"
#include "train/jobs/preset.h"
#include "train/jobs/ranks.h"
#include "train/report/table.h"

#include <posenc/posenc.h>
#include <stdint.h>

/* Of the report; results.json and all else are in English. */
typedef enum pe_language { PE_ENGLISH, PE_CHINESE } pe_language;

typedef struct pe_compare_config {
    pe_preset            preset; /* a copy, perhaps with other encodings, steps or seeds */
    const unsigned char *text;   /* the last tenth is held out; must outlive the comparison */
    int64_t              text_size;
    const char          *text_name; /* for the report */
    const char          *directory; /* NULL: nothing will be written */
    int64_t              workers;   /* 0: one per processor, or one where several processes share the runs */
    int                  resume;    /* 1: go on with what an earlier start has left */
    double               checkpoint_seconds; /* between two checkpoints of a run */
    const char          *call;               /* the command that repeats it; NULL where there is none */
    int                  bidirectional;      /* 1: hidden bytes from both sides instead of the next byte */
    const char          *combine; /* for SPECs that do not say: "add", "concat", "add,concat"; NULL: "add" */
    const char          *tasks;   /* "NAME,..." or "none"; NULL: the preset's */
    int64_t              task_steps; /* of every task; 0: the preset's */
    int64_t              task_seeds; /* of every task; 0: the preset's */
    const char          *extension;  /* "none", "brief", "full" (extension.h); NULL: the preset's */
    int64_t              tune_steps; /* of every tuning there; 0: the preset's */
    pe_language          language;   /* of report.html */
} pe_compare_config;

typedef struct pe_compare pe_compare;

/* Everything is checked: encodings, sizes, text, directory, gnuplot. Statuses other than FILE and MEMORY are
   the caller's to mend. */
posenc_status pe_compare_create(pe_compare **compare, const pe_compare_config *config, posenc_error *err);
void          pe_compare_free(pe_compare *compare); /* NULL is fine */

/* What it says beside its tables; belongs to the comparison. */
typedef struct pe_compare_words {
    const char *warning;  /* about something that is unusual but no error (few held-out windows), or NULL */
    const char *notes;    /* lines about what was taken over from an earlier start, and left aside, or NULL */
    const char *answer;   /* in one or two sentences, once trained */
    int         finished; /* encodings whose runs all finished */
} pe_compare_words;
pe_compare_words pe_compare_says(const pe_compare *compare);

/* Where the training stands. */
typedef struct pe_compare_state {
    int    runs, finished; /* finished: those that were kept from before, and those told one by one */
    double fraction;       /* of all work, 0 to 1 */
    double seconds, left;  /* since the start; until the end as it looks now, or NaN */
} pe_compare_state;

/* One finished run: on the text, or on a task. */
typedef struct pe_compare_run {
    const char *label;
    const char *task; /* NULL: the text */
    int64_t     seed;
    double      accuracy_at_L, accuracy_at_2L; /* of a task; NaN where it is not tested */
    double      loss_at_L, loss_at_8L;         /* of the text: nats per byte; NaN if it diverged */
    double      seconds;
    int         diverged;
} pe_compare_run;

/* Called on the thread that trains, never two at a time. Members may be NULL. */
typedef struct pe_compare_watch {
    void *self;
    int (*interrupted)(void *self); /* nonzero: stop; what is finished is kept */
    void (*progress)(void *self, const pe_compare_state *state);
    void (*finished)(void *self, const pe_compare_run *run, const pe_compare_state *state);
} pe_compare_watch;

/* *interrupted = 1 if it was; the results then hold the encodings that were finished, perhaps none. */
posenc_status pe_compare_train(pe_compare *compare, const pe_compare_watch *watch, int *interrupted,
                               posenc_error *err);

/* Seconds that training would take, from a few steps of each encoding; trains nothing. */
posenc_status pe_compare_estimate(pe_compare *compare, double *seconds, posenc_error *err);
/* What would be, or was, trained: one row per encoding. Free both kinds with pe_table_free. */
posenc_status pe_compare_plan(const pe_compare *compare, pe_table *table, posenc_error *err);
/* The results, one row per encoding, in the order of their ranks. */
posenc_status pe_compare_table(const pe_compare *compare, pe_table *table, posenc_error *err);
/* The encodings at the input: how their rows enter, and what concatenating them changes against adding them;
   no rows where there is none. *is_plain = 1 if all of them are added at the input, as is standard. */
posenc_status pe_compare_entries(const pe_compare *compare, pe_table *table, int *is_plain,
                                 posenc_error *err);
/* The tasks: a row per encoding, best first, and a column per task; no rows where there are no tasks. */
posenc_status pe_compare_tasks(const pe_compare *compare, pe_table *table, posenc_error *err);
/* Models read further than they were trained: a row per way of doing it, untuned and tuned; no rows where
   none was. */
posenc_status pe_compare_extension(const pe_compare *compare, pe_table *table, posenc_error *err);
/* What they are, and how long they would be, or were, trained: a row per task. */
posenc_status pe_compare_task_plan(const pe_compare *compare, pe_table *table, posenc_error *err);
/* Is every task of this list one? ARGUMENT with those that there are, if not. */
posenc_status pe_compare_tasks_check(const char *list, posenc_error *err);
/* Is this a word for how much is extended? ARGUMENT with those that are, if not. */
posenc_status pe_compare_extension_check(const char *word, posenc_error *err);
/* "en" or "zh"; ARGUMENT with those words if it is neither. */
posenc_status pe_language_read(pe_language *language, const char *word, posenc_error *err);
/* Claims that must hold on an ordinary text: one row per claim, whole or cut to what a terminal has room
   for. */
posenc_status pe_compare_checks(const pe_compare *compare, pe_table *table, int whole, posenc_error *err);

/* results.json as text; malloc'd. */
posenc_status pe_compare_json(const pe_compare *compare, char **json, posenc_error *err);
/* Writes the directory: it appears whole, and an older result is replaced whole. DIR.partial is removed if
   all runs are finished. */
posenc_status pe_compare_write(const pe_compare *compare, posenc_error *err);

#endif
