/* SPDX-License-Identifier: MIT */
/*
 * resume.h: what an earlier start of the same comparison has left
 */
#ifndef PE_TRAIN_RESUME_H
#define PE_TRAIN_RESUME_H

#include "train/job.h"

/* Names all runs, and looks at DIR.partial: without config.resume it must hold nothing, with it everything
   there must belong to this comparison. Finished runs are taken over; what is damaged is noted in c->notes
   and left aside. Writes nothing. ARGUMENT with the mend. */
posenc_status pe_resume_read(pe_compare *c, posenc_error *err);
/* Makes DIR.partial ready for writing, without what was left aside. (Of several processes the first alone
   reads and cleans; the others write their checkpoints there.) */
posenc_status pe_resume_open(pe_compare *c, posenc_error *err);
/* The file for the checkpoints of a run; malloc'd. */
char *pe_resume_checkpoint(const pe_compare *c, int64_t job);
/* Keeps a finished run, and forgets its checkpoint. */
posenc_status pe_resume_keep(pe_compare *c, int64_t job, posenc_error *err);
/* The run of that number from its line. FORMAT if the line is of another run. */
posenc_status pe_resume_take_over(pe_compare *c, int64_t job, const char *line, posenc_error *err);

#endif
