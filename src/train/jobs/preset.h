/* SPDX-License-Identifier: MIT */
/*
 * preset.h: what is asked of a comparison: a preset, and what the caller changes or adds
 */
#ifndef PE_TRAIN_PRESET_H
#define PE_TRAIN_PRESET_H

#include "train/tasks/task.h"

#include <posenc/posenc.h>
#include <stdint.h>

enum { PE_MOST_TASKS = 24 };

/* Of the report; results.json and all else are in English. */
typedef enum pe_language { PE_ENGLISH, PE_CHINESE } pe_language;

/* How much is read further than it was trained (extension.h): PE_EXTENT_BRIEF tunes at f = 2 only. ORDER
   extents (preset.c) */
typedef enum pe_preset_extent { PE_EXTENT_NONE, PE_EXTENT_BRIEF, PE_EXTENT_FULL } pe_preset_extent;

/* A task (task.h) that a preset trains on, and how long. */
typedef struct pe_preset_task {
    const char *name;
    int64_t     steps, seeds;
} pe_preset_task;

typedef struct pe_preset {
    const char *name;
    const char *minutes;        /* how long it takes on two cores: "1 minute" */
    const char *encodings;      /* SPECs, separated by commas */
    const char *grid_encodings; /* further ones, only for tasks on a grid; NULL: none */
    int64_t     steps, seeds, L, reach, d_model, layers, heads, batch, warmup, windows;
    double      learning_rate, weight_decay, clip;
    /* Tasks: those of a run without another word, and what all of them have in common. */
    pe_preset_task tasks[PE_MOST_TASKS];               /* ends with {0} */
    int64_t        task_layers, task_batch, sequences; /* sequences: tested, of each length */
    int            longest;                            /* tested length: PE_TASK_4 ... */
    const char    *extension;  /* how much is extended: "none", "brief", "full"; NULL: "none" */
    int64_t        tune_steps; /* of a tuning there */
    int            claims;     /* 1: what introductions say is measured too */
    /* Learning rates that are tried on the text for each encoding, "1e-3,2e-3": trial.h. NULL: learning_rate
       only. A trial makes that share of the steps; 0: a quarter. */
    const char *rates;
    double      rate_share;
    const char *positions; /* where windows of training stand, "random:512" (run.h); NULL: in order */
    const char *stability; /* what is trained less, to see what is settled: level.h; NULL: "none" */
} pe_preset;

enum { PE_MOST_RATES = 8 };

enum { PE_PRESETS = 4 };
extern const pe_preset pe_presets[PE_PRESETS];

/* That of a name, or NULL. */
const pe_preset *pe_preset_find(const char *name);
/* The batch that reads as many bytes a step at length L as `batch` windows do at `from`; at least 1. */
int64_t pe_preset_batch(int64_t batch, int64_t from, int64_t L);
/* In one line what it trains with: "7 encodings, 500 steps, L 64, ...". */
void pe_preset_describe(char *text, size_t n, const pe_preset *preset);

/* ---------------------------------------------------------------- by option's name: preset_fields.c */

enum { PE_SHORTEST_L = 8 }; /* fewer positions make no bucket of L/2 */

/* Are all its numbers within bounds, and do they go together? ARGUMENT with the option that does not. */
posenc_status pe_preset_check(const pe_preset *preset, posenc_error *err);
/* Does a name mean a file: "mine.json", "folder/mine"? */
int pe_preset_is_path(const char *name);
/* The preset of such a file, over that of "default". *memory holds its texts until pe_preset_forget, whatever
   the status. */
posenc_status pe_preset_read(pe_preset *preset, void **memory, const char *path, posenc_error *err);
void          pe_preset_forget(void *memory); /* NULL is fine */

typedef struct pe_compare_config {
    pe_preset            preset;      /* a copy, perhaps with other encodings, steps or seeds */
    const unsigned char *text;        /* the last tenth is held out; must outlive the comparison */
    const uint16_t      *tokens;      /* or ids of tokens instead of its bytes: the same; else NULL */
    int64_t              text_size;   /* of either */
    const int32_t       *token_bytes; /* [token_kinds] how many bytes an id stands for, or NULL */
    int64_t              token_kinds;
    const char          *text_name; /* for the report */
    const char          *directory; /* NULL: nothing will be written */
    int64_t              workers;   /* 0: one per processor, or one where several processes share the runs */
    int                  resume;    /* 1: go on with what an earlier start has saved */
    double               checkpoint_seconds; /* between two checkpoints of a run */
    const char          *call;               /* the command that repeats it; NULL where there is none */
    int                  bidirectional;      /* 1: hidden bytes from both sides instead of the next byte */
    const char          *combine; /* for SPECs that do not say: "add", "concat", "add,concat"; NULL: "add" */
    const char          *tasks;   /* "NAME,..." or "none"; NULL: the preset's */
    int64_t              task_steps; /* of every task; 0: the preset's, or the task's own */
    int64_t              task_seeds; /* of every task; 0: the preset's */
    const char          *extension;  /* "none", "brief", "full"; NULL: the preset's */
    int64_t              tune_steps; /* of every tuning there; 0: the preset's */
    pe_language          language;   /* of report.html */
} pe_compare_config;

typedef struct pe_compare pe_compare;

/* How long a comparison would take. */
typedef struct pe_compare_cost {
    double  seconds, processor_seconds; /* until the end, and of all workers together */
    int64_t runs, workers;
} pe_compare_cost;

/* The words of a configuration, "en" and "brief"; ARGUMENT with those that there are for any other. */
posenc_status pe_preset_read_language(pe_language *language, const char *word, posenc_error *err);
const char   *pe_preset_language_code(pe_language language);
posenc_status pe_preset_read_extent(pe_preset_extent *extent, const char *word, posenc_error *err);
const char   *pe_preset_extent_name(pe_preset_extent extent);
/* tasks [PE_MOST_TASKS] of a list, each at most once. */
posenc_status pe_preset_read_tasks(const pe_task **tasks, int *count, const char *list, posenc_error *err);
/* The tasks of a comparison: those of its list, or the preset's. */
posenc_status pe_preset_choose_tasks(const pe_task **tasks, int *count, const pe_compare_config *config,
                                     posenc_error *err);
/* rates [PE_MOST_RATES] of a list, the lowest first. */
posenc_status pe_preset_read_rates(double *rates, int *count, const char *list, posenc_error *err);
posenc_status pe_preset_read_stability(pe_preset_extent *extent, const char *word, posenc_error *err);

/* What is asked for besides a preset, over config->preset: a JSON object whose members are named as the
   options of `posenc compare` that are about training. *memory holds its texts until pe_preset_forget,
   whatever the status. */
posenc_status pe_preset_ask(pe_compare_config *config, void **memory, const char *object, posenc_error *err);

#endif
