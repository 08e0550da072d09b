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

#endif
