/* SPDX-License-Identifier: MIT */
/*
 * summary.h: what is shown of a comparison: tables, JSON, the directory of results
 */
#ifndef PE_TRAIN_SUMMARY_H
#define PE_TRAIN_SUMMARY_H

#include "train/jobs/preset.h"
#include "train/report/table.h"

/* Free every table with pe_table_free. What would be, or was, trained: one row per encoding. */
posenc_status pe_summary_plan(const pe_compare *compare, pe_table *table, posenc_error *err);
/* The results, one row per encoding, in the order of their ranks. */
posenc_status pe_summary_table(const pe_compare *compare, pe_table *table, posenc_error *err);
/* The encodings at the input: how their rows enter, and what concatenating them changes against adding them;
   no rows where there is none. *is_plain = 1 if all of them are added at the input, which is the default. */
posenc_status pe_summary_entries(const pe_compare *compare, pe_table *table, int *is_plain,
                                 posenc_error *err);
/* Claims that must hold on an ordinary text: one row per claim; not whole: of those that passed or do not
   apply only how many there are. */
posenc_status pe_summary_checks(const pe_compare *compare, pe_table *table, int whole, posenc_error *err);
/* What is doubtful about learning rates, and which of the order is settled, into its notes. */
void pe_settled_write_notes(pe_compare *compare);
/* Which encoding to choose: one row per need (answer.c); nothing in it depends on a clock. */
posenc_status pe_answer_table(const pe_compare *compare, pe_table *table, posenc_error *err);
/* What encodings cost: one row per encoding. */
posenc_status pe_answer_costs(const pe_compare *compare, pe_table *table, posenc_error *err);

/* Extended models, at factor 2: a row per method; no rows where none was measured. */
posenc_status pe_report_extension_table(const pe_compare *compare, pe_table *table, posenc_error *err);

/* The tasks: a row per encoding, best first, and a column per task; no rows where there are no tasks. */
posenc_status pe_report_tasks_table(const pe_compare *compare, pe_table *table, posenc_error *err);
/* What they are, and how long they would be, or were, trained: a row per task. */
posenc_status pe_report_tasks_plan(const pe_compare *compare, pe_table *table, posenc_error *err);

/* A text about bytes for whoever prints it: about tokens where the comparison's text is tokens. Malloc'd;
   NULL without memory. */
char *pe_words_retell(const pe_compare *compare, const char *text);

/* What would be trained and how long that takes, as JSON; malloc'd. */
posenc_status pe_results_plan_json(const pe_compare *compare, const pe_compare_cost *cost, char **json,
                                   posenc_error *err);
/* results.json as text; malloc'd. */
posenc_status pe_results_json(const pe_compare *compare, char **json, posenc_error *err);
/* Writes the directory: it appears whole, and an older result is replaced whole. DIR.partial is removed if
   all runs are finished. */
posenc_status pe_results_write(const pe_compare *compare, posenc_error *err);

#endif
