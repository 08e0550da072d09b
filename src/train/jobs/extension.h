/* SPDX-License-Identifier: MIT */
/*
 * extension.h: one model trained at L, read at 2 L to 16 L in every way that needs no new model
 *
 * A family is an encoding that is trained (a rotation, a learned table); a way is what its model is turned
 * into to be read further (extensions.def: frequency schedules, rules for more rows), for a factor f of 2, 4,
 * 8 or 16; it is read as it is, and after a short training at f L. Families are runs like others - trained,
 * checkpointed, kept and shared the same - whose sequel (run.h) are their ways. Definitions:
 * docs/experiments.md, section 16.
 */
#ifndef PE_TRAIN_EXTENSION_H
#define PE_TRAIN_EXTENSION_H

#include "train/jobs/outcome.h"

#include <jansson.h>

enum { PE_FACTORS = 4, PE_FAMILIES = 2, PE_FURTHEST = 16 };
enum { PE_UNTUNED, PE_TUNED, PE_TUNINGS };
/* Positions of a window of 16 L: those of statistics.h, and [8 L, 16 L). */
enum { PE_AT_16L = PE_BUCKETS, PE_FAR_BUCKETS };

/* What is done: PE_EXTEND_BRIEF tunes at f = 2 alone. ORDER words (extension.c) */
typedef enum pe_extend { PE_EXTEND_NONE, PE_EXTEND_BRIEF, PE_EXTEND_FULL } pe_extend;

typedef struct pe_way {
    const char *family, *name, *room, *settings, *of_factor, *of_length, *of_longer;
    int         base_power, flags;
    const char *what;
} pe_way;

enum { PE_EVERY_FACTOR = 1, PE_EVERY_LENGTH = 2 };

int64_t       pe_factor_at(int i); /* 2, 4, 8, 16 */
int           pe_way_count(void);
const pe_way *pe_way_at(int index);
int           pe_way_find(const char *family, const char *name); /* -1 */
/* "2", "untuned": for whatever is written. */
const char *pe_tuning_name(int tuning);
const char *pe_far_bucket_name(int bucket);

/* "none", "brief", "full"; ARGUMENT with those words if it is none of them. */
posenc_status pe_extend_read(pe_extend *extend, const char *word, posenc_error *err);
const char   *pe_extend_name(pe_extend extend);

/* Rows 0 .. count - 1 that a way makes of the first L rows of table [.., width], into rows [count, width]. */
posenc_status pe_way_rows(float *rows, int64_t count, const pe_way *way, int64_t factor, const float *table,
                          int64_t L, int64_t width, posenc_error *err);

/* ---------------------------------------------------------------- of a comparison ----------- */

/* What one family's sequel does; its numbers: [ways of the family, factors, tunings, far buckets,
   windows]. */
typedef struct pe_extension_plan {
    const char *family;
    int         ways[PE_FACTORS * PE_FAMILIES]; /* numbers of them */
    int         way_count;
    pe_extend   extend;
    int64_t     L, batch; /* of training */
    int64_t     windows;  /* of 16 L */
    int64_t     steps, warmup;
    double      learning_rate;
    char        name[160];
} pe_extension_plan;

typedef struct pe_extension {
    pe_extension_plan plans[PE_FAMILIES];
    pe_run_sequel     sequels[PE_FAMILIES];
    pe_outcome        outcomes[PE_FAMILIES]; /* their labels say what they are: "rope, extended" */
    int               count;                 /* of families; 0: nothing is extended */
    int64_t           windows, seeds, L;
    pe_bootstrap     *bootstrap;
    char              reason[PE_LONGEST_WARNING]; /* why nothing is, though it was asked for; "" else */
    /* Once measured. */
    double *means; /* [ways, factors, tunings, far buckets, seeds, windows]; NaN where nothing was read */
} pe_extension;

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

/* Whatever the comparison's configuration asks for, its text and sizes known. ARGUMENT where that was asked
   for by name and has no meaning. */
posenc_status pe_extension_create(pe_extension **x, const pe_compare *c, posenc_error *err);
void          pe_extension_free(pe_extension *x);       /* NULL is fine */
int64_t       pe_extension_runs(const pe_extension *x); /* NULL: 0 */
/* Means by window of those families whose runs have all ended. */
posenc_status pe_extension_measure(pe_extension *x, posenc_error *err);

/* Mean loss; NaN where it was not read. */
double pe_extension_loss(const pe_extension *x, int way, int factor, int tuning, int bucket);
/* Is there a number for it? */
int pe_extension_has(const pe_extension *x, int way, int factor, int tuning);
/* a - b in a bucket, paired. */
typedef struct pe_spot {
    int way, factor, tuning; /* factor: its number */
} pe_spot;
pe_interval pe_extension_difference(const pe_extension *x, pe_spot a, pe_spot b, int bucket);

/* The first way of the same family, untuned: nothing was done. */
pe_spot pe_extension_nothing_done(int way);

/* The member "extension" of results.json. */
json_t *pe_json_extension(const pe_extension *x);

#endif
