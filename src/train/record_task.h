/* SPDX-License-Identifier: MIT */
/*
 * record_task.h: a run on a task as one line of text: record.h for tasks
 */
#ifndef PE_TRAIN_RECORD_TASK_H
#define PE_TRAIN_RECORD_TASK_H

#include "train/task_run.h"

/* The identity of a run, with a member "task"; malloc'd, NULL without memory. */
char *pe_task_identity(const pe_task_config *config);
/* A finished run as one line of JSON, without the line end; malloc'd. */
posenc_status pe_task_record_write(char **line, const char *label, const pe_task_config *config,
                                   const pe_task_result *result, posenc_error *err);
/* The result that was written. config must have the identity of the line. FORMAT if something is missing;
   free with pe_task_result_free whatever the status. */
posenc_status pe_task_record_read(pe_task_result *result, const pe_task_config *config, const char *line,
                                  posenc_error *err);

#endif
