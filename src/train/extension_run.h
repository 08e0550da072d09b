/* SPDX-License-Identifier: MIT */
/*
 * extension_run.h: what happens to the trained model of one family
 */
#ifndef PE_TRAIN_EXTENSION_RUN_H
#define PE_TRAIN_EXTENSION_RUN_H

#include "train/extension.h"

/* The sequel of a plan, which must outlive it. */
pe_run_sequel pe_extension_sequel(pe_extension_plan *plan);

/* The SPEC of a way with the settings of its room for a small model; dims: of the model, L its training
   length. */
posenc_status pe_way_spec(char spec[PE_LONGEST_SPEC], const pe_way *way, int64_t factor,
                          const posenc_dims *dims, posenc_error *err);

/* Where the losses [windows] of the way that is number `way` of its plan begin, of so many windows each. */
int64_t pe_extension_at(const pe_extension_plan *plan, int way, int factor, int tuning, int bucket);
/* Is it tuned at that factor? */
int pe_extension_tunes(const pe_extension_plan *plan, int factor);

#endif
