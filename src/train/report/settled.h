/* SPDX-License-Identifier: MIT */
/*
 * settled.h: learning rates and the stability of the order, as members of results.json
 */
#ifndef PE_TRAIN_SETTLED_H
#define PE_TRAIN_SETTLED_H

#include "train/jobs/outcome.h"

#include <jansson.h>

/* Which rates were tried, with the loss of each trial, and which was chosen; of a single rate the curve of
   docs/experiments.md on which it lies. */
json_t *pe_settled_rates_json(const pe_compare *c);
/* The levels of training with their losses; for L and the last bucket the groups, every pair, and Kendall's
   tau of each level. */
json_t *pe_settled_orders_json(const pe_compare *c);

#endif
