/* SPDX-License-Identifier: MIT */
/*
 * report.h: the comparison as one page
 */
#ifndef PE_TRAIN_REPORT_H
#define PE_TRAIN_REPORT_H

#include "train/gallery.h"
#include "train/html.h"
#include "train/outcome.h"

/* One HTML file that needs nothing else: no network, no other file, readable without JavaScript and on paper.
   What could not be written the stream remembers. */
void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g);

/* Parts of it. The tasks, suite_tables.c; nothing where there are none. */
void pe_report_tasks(pe_page *page, const pe_suite *suite);
/* Models that are read further: extension_report.c. Nothing where nothing was extended. */
void pe_report_extension(pe_page *page, const pe_compare *c);
/* A card per encoding: formula, settings, papers, numbers, pictures; report_cards.c. */
void pe_report_cards(pe_page *page, const pe_compare *c, const pe_gallery *g);
/* What papers found, beside what was found here; report_papers.c. */
void pe_report_papers(pe_page *page, const pe_compare *c);
/* What introductions say, beside what is measured; claims_report.c. Nothing where it was not asked for. */
void pe_report_claims(pe_page *page, const pe_compare *c);

/* Shared by them. */
void pe_report_figure(FILE *to, const pe_exhibit *x, const char *caption);
/* "Su et al. 2021, arXiv:2104.09864": a link on its number. */
void pe_report_paper(FILE *to, const char *source);
/* The checks, cut to what a terminal has room for or whole; summary.c. */
posenc_status pe_checks_table(const pe_compare *c, pe_table *table, int whole, posenc_error *err);
/* "1 seed", "3 seeds" */
const char *pe_report_many(char text[48], int64_t n, const char *what);

#endif
