/* SPDX-License-Identifier: MIT */
/*
 * job.h: the runs of a comparison by number: what workers take, files keep and processes send each other
 *
 * Runs on the text come first, then those of models that are extended, then those on tasks, whose order
 * suite.h tells.
 */
#ifndef PE_TRAIN_JOB_H
#define PE_TRAIN_JOB_H

#include "train/outcome.h"

/* A run, whatever it trains on. */
typedef struct pe_job {
    pe_outcome      *outcome; /* NULL: a run on a task */
    pe_cell         *cell;    /* NULL: a run on the text */
    int64_t          seed;    /* from 0 */
    pe_run_progress *progress;
    atomic_int      *ended;
} pe_job;

int64_t pe_job_count(const pe_compare *c);
pe_job  pe_job_at(const pe_compare *c, int64_t job);
/* Is there a result, or an error? */
int pe_job_has_ended(const pe_compare *c, int64_t job);
/* Its whole configuration, without a checkpoint: of a run on the text, and on a task. */
pe_run_config  pe_job_config(const pe_job *job);
pe_task_config pe_job_task(const pe_job *job);

/* The identity of a run (record.h); malloc'd, NULL without memory. */
char *pe_job_identity(const pe_job *job);
/* A finished run as one line; malloc'd. */
posenc_status pe_job_write(char **line, const pe_job *job, posenc_error *err);
/* Its result from that line, whose identity must be that of the run; it has then ended. */
posenc_status pe_job_read(const pe_job *job, const char *line, posenc_error *err);

#endif
