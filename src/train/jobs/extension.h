/* SPDX-License-Identifier: MIT */
/*
 * extension.h: one model trained at L, read at 2 L to 16 L in every way that needs no new model
 *
 * A way (way.h) is what the trained model of a family becomes to be read further; it is read as it is, and
 * after a short training at f L. Families are runs like others - trained, checkpointed, saved and shared the
 * same - whose follow-up (run.h) are their ways.
 */
#ifndef PE_TRAIN_EXTENSION_H
#define PE_TRAIN_EXTENSION_H

#include "train/jobs/outcome.h"
#include "train/jobs/way.h"

/* What one family's follow-up does; its numbers: [ways of the family, factors, tunings, far buckets,
   windows]. */
typedef struct pe_extension_plan {
    const char      *family;
    int              ways[PE_FACTORS * PE_FAMILIES]; /* numbers of them */
    int              way_count;
    pe_preset_extent extend;
    int64_t          batch;   /* of training */
    int64_t          windows; /* of 16 L */
    int64_t          steps, warmup;
    double           learning_rate;
    char             name[160];
} pe_extension_plan;

typedef struct pe_extension {
    pe_extension_plan plans[PE_FAMILIES];
    pe_run_followup   followups[PE_FAMILIES];
    pe_outcome        outcomes[PE_FAMILIES]; /* their labels say what they are: "rope, extended" */
    int               count;                 /* of families; 0: nothing is extended */
    int64_t           windows, seeds, L;
    pe_bootstrap     *bootstrap;
    char              reason[PE_LONGEST_WARNING]; /* why nothing is, though it was asked for; "" else */
    /* Once measured. */
    double *means; /* [ways, factors, tunings, far buckets, seeds, windows]; NaN where nothing was read */
} pe_extension;

/* The follow-up of a plan, which must outlive it. */
pe_run_followup pe_extension_followup(pe_extension_plan *plan);

/* Where the losses [windows] of the way that is number `way` of its plan begin, of so many windows each. */
int64_t pe_extension_offset(const pe_extension_plan *plan, int way, int factor, int tuning, int bucket);

/* Whatever the comparison's configuration asks for, its text and sizes known. ARGUMENT where that was asked
   for by name and has no meaning. */
posenc_status pe_extension_create(pe_extension **x, const pe_compare *c, posenc_error *err);
void          pe_extension_free(pe_extension *x);       /* NULL is fine */
int64_t       pe_extension_runs(const pe_extension *x); /* NULL: 0 */

#endif
