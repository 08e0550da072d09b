/* SPDX-License-Identifier: MIT */
/*
 * report.h: the comparison as one page
 */
#ifndef PE_TRAIN_REPORT_H
#define PE_TRAIN_REPORT_H

#include "train/gallery.h"
#include "train/outcome.h"

/* One HTML file that needs nothing else: no network, no other file, readable without JavaScript and on paper. What
   could not be written the stream remembers. */
void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g);

/* The tasks, a part of it: report_tasks.c. Nothing where there are none. */
void pe_report_tasks(FILE *to, const pe_suite *suite);

/* What trained models do with positions: report_trained.c. */
void pe_report_trained(FILE *to, const pe_compare *c);

#endif
