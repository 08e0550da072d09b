/* SPDX-License-Identifier: MIT */
/*
 * task_run.h: one encoding trained and tested on one task
 *
 * Like a run on text (run.h) it depends on its configuration alone: one thread, named random numbers, sums in
 * a fixed order. What it leaves is small and whole numbers for the most part, so that it can be kept and read
 * again.
 */
#ifndef PE_TRAIN_TASK_RUN_H
#define PE_TRAIN_TASK_RUN_H

#include "train/descent.h"
#include "train/task.h"

typedef struct pe_task_config {
    const pe_task *task;
    const char    *spec; /* for posenc_encoding_create, complete with settings: pe_task_spec */
    pe_entry       entry;
    int64_t        d_model, layers, heads;
    int64_t        batch; /* sequences of a step */
    pe_descent     descent;
    int64_t        sequences; /* of each tested length */
    int            longest;   /* tested: PE_TASK_4 ... */
    uint64_t       seed;
} pe_task_config;

typedef struct pe_task_result {
    int64_t *right; /* [PE_TASK_LENGTHS, sequences] answers of each test sequence that were right */
    double   loss[PE_TASK_LENGTHS];  /* nats per answer; NaN where not tested */
    double   lowest_loss, last_loss; /* of the batches of training */
    int64_t  parameters, encoding_parameters;
    double   train_seconds, eval_seconds;
    int      cancelled;
    char     instructions[PE_ISA];
    uint8_t  diverged; /* a loss that is not finite: training stopped there, nothing was tested */
} pe_task_result;

/* The sizes of the model and of its longest sequence, as posenc_small_model_for takes them. */
posenc_dims pe_task_dims(const pe_task_config *config);

/* A SPEC of `compare` as it was asked for, divided for a task: complete [n] receives the library's SPEC with
   the settings of its rooms, *entry how rows enter. UNSUPPORTED, with a sentence, for encodings that have no
   meaning in it. */
posenc_status pe_task_spec(char *complete, size_t n, pe_entry *entry, const char *label,
                           const pe_task_config *config, posenc_error *err);

/* How many units of progress->step it takes. */
int64_t pe_task_work(const pe_task_config *config);

/* Runs it. result is overwritten; free with pe_task_result_free whatever the status. progress may be NULL. */
posenc_status pe_task_run(const pe_task_config *config, pe_run_progress *progress, pe_task_result *result,
                          posenc_error *err);
void          pe_task_result_free(pe_task_result *result);

/* The arrays of a result before anything is known; and everything in it as arrays of a file. */
posenc_status pe_task_result_create(pe_task_result *result, const pe_task_config *config, posenc_error *err);
void          pe_task_list(pe_run_file *kept, const pe_task_config *config, pe_task_result *result);

#endif
