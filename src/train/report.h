/* SPDX-License-Identifier: MIT */
/*
 * report.h: the comparison as one page
 */
#ifndef PE_TRAIN_REPORT_H
#define PE_TRAIN_REPORT_H

#include "train/gallery.h"
#include "train/outcome.h"

/* One HTML file that needs nothing else: no network, no other file, readable without JavaScript and on paper.
   What could not be written the stream remembers. */
void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g);

/* The tasks, a part of it: report_tasks.c. Nothing where there are none. */
void pe_report_tasks(FILE *to, const pe_suite *suite);

/* A card per encoding: formula, settings, papers, numbers, pictures; report_cards.c. */
void pe_report_cards(FILE *to, const pe_compare *c, const pe_gallery *g);

/* What papers found, beside what was found here; report_papers.c. */
void pe_report_papers(FILE *to, const pe_compare *c);

/* Shared by all of them; report_page.c. The script comes once, before all figures. */
void pe_report_style(FILE *to);
void pe_report_script(FILE *to, const pe_gallery *g);
void pe_report_figure(FILE *to, const pe_exhibit *x, const char *caption);
/* "Su et al. 2021, arXiv:2104.09864": a link on its number. */
void pe_report_paper(FILE *to, const char *source);

/* What trained models do with positions: report_trained.c. */
void pe_report_trained(FILE *to, const pe_compare *c, const pe_gallery *g);

#endif
