/* SPDX-License-Identifier: MIT */
/*
 * level.h: the encodings with less training and in a narrower model, to see whether their order would hold
 *
 * A level is every encoding once, with the first seed: after a quarter or a half of the steps, each with a
 * whole schedule of its own, and with all steps in a model of half the width. The last level is the
 * comparison itself. A quarter of the steps is also what trials of learning rates make by default (trial.h):
 * then the trial at the chosen rate is that level's run. order.h judges by the losses; docs/experiments.md,
 * section 19.
 */
#ifndef PE_TRAIN_LEVEL_H
#define PE_TRAIN_LEVEL_H

#include "train/jobs/trial.h"

enum { PE_LEVEL_QUARTER, PE_LEVEL_NARROW, PE_LEVEL_HALF, PE_LEVEL_WHOLE, PE_LEVELS };

/* One encoding at one level. */
typedef struct pe_level_run {
    pe_outcome outcome; /* its runs NULL: the model cannot be made */
    int        encoding;
} pe_level_run;

typedef struct pe_levels {
    pe_preset_extent extent;      /* PE_EXTENT_BRIEF: the quarter only */
    int              uses_trials; /* the quarter's runs are trials, and are not here */
    int              encodings;
    pe_level_run    *runs[PE_LEVELS]; /* [encodings]; NULL: none */
} pe_levels;

/* The levels of a comparison whose encodings and trials are known. ARGUMENT for an unknown word. */
posenc_status pe_level_list_create(pe_compare *c, posenc_error *err);
void          pe_level_list_free(pe_levels *levels); /* NULL is fine */

/* How many runs they add, and number i of them. */
int64_t       pe_level_runs(const pe_levels *levels);
pe_level_run *pe_level_run_at(const pe_levels *levels, int64_t i);

/* Encoding i at a level, or NULL where it has no run there. At a level of trials before the rate is chosen
   too. */
pe_outcome *pe_level_outcome(const pe_compare *c, int level, int i);
/* Is there such a level? The whole is one if there is any other. */
int pe_level_exists(const pe_levels *levels, int level);
/* "a quarter of the steps" */
const char *pe_level_name(int level);

#endif
