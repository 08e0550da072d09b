/* SPDX-License-Identifier: MIT */
/*
 * job.h: the runs of a comparison by number: what workers take, files hold and processes send each other
 *
 * Trials of learning rates come first, since the runs after them need the rates that they decide. Then runs
 * on the text, then those of models that are extended, then those on tasks, whose order outcome.h tells, then
 * those with less training (level.h).
 */
#ifndef PE_TRAIN_JOB_H
#define PE_TRAIN_JOB_H

#include "train/jobs/outcome.h"

/* A run, whatever it trains on. */
typedef struct pe_job {
    pe_outcome      *outcome;  /* NULL: a run on a task */
    int              encoding; /* the outcome of the comparison whose encoding it is; -1: none, or a task */
    int              rate;     /* number of its learning rate (trial.h), 0 where there is no choice */
    int              waits;    /* 1: the rate is not chosen yet; its number is then 0 */
    pe_cell         *cell;     /* NULL: a run on the text */
    const char      *label;
    int64_t          seed;   /* from 0 */
    pe_run_config    config; /* whole, except for a checkpoint */
    pe_run_result   *result;
    pe_run_progress *progress;
    atomic_int      *ended; /* nonzero: there is a result, or an error */
} pe_job;

int64_t pe_job_count(const pe_compare *c);
pe_job  pe_job_at(const pe_compare *c, int64_t job);

/* All runs that wait for a rate get that of each encoding's best trial, once the trials have ended. */
void pe_job_choose_rates(pe_compare *c);
/* Sets the rates that are chosen; `tried`: where none is, that number. */
void pe_job_set_rates(pe_compare *c, int tried);

/* A finished run as arrays; free its identity. MEMORY. */
posenc_status pe_job_list(pe_run_file *file, const pe_job *job, posenc_error *err);
/* Its result from a set of arrays (run.h), whose identity must be that of the run; it has then ended. */
posenc_status pe_job_take(const pe_job *job, const posenc_arrays *set, const char *prefix, const char *path,
                          posenc_error *err);

/* The same as bytes, for another process with the same configuration; malloc'd, NULL without memory. */
char         *pe_job_pack(const pe_job *job, size_t *n);
posenc_status pe_job_unpack(const pe_job *job, const char *bytes, size_t n, posenc_error *err);

#endif
