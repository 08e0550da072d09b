/* SPDX-License-Identifier: MIT */
/*
 * results.h: what the parts of results.json share
 */
#ifndef PE_TRAIN_RESULTS_H
#define PE_TRAIN_RESULTS_H

#include "train/gallery.h"
#include "train/outcome.h"

#include <jansson.h>
#include <stdio.h>

/* The whole file, malloc'd; without a gallery it names no pictures. MEMORY. */
posenc_status pe_results_json(const pe_compare *c, const pe_gallery *g, char **text, posenc_error *err);

/* null for what is no number. */
json_t *pe_json_number(double x);
json_t *pe_json_interval(pe_interval d);

/* tasks.csv: a row per task, encoding, seed and length. */
void pe_csv_tasks(FILE *to, const pe_suite *suite);
/* A field between quotes; a number behind a comma, nothing for what is no number. */
void pe_csv_field(FILE *to, const char *text);
void pe_csv_value(FILE *to, double x);

#endif
