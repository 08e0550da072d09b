/* SPDX-License-Identifier: MIT */
/*
 * extension.h: one model trained at L, read at 2 L to 16 L in every way that needs no new model
 *
 * A family is an encoding that is trained: a rotation, or a learned table. A way is what its trained model
 * becomes to be read at f times its length L, f being 2, 4, 8 or 16: a rotation is read with other
 * frequencies, a table of rows as another table. It is read as it is, and after a short training at f L.
 * Families are runs like others - trained, checkpointed, saved and shared the same - whose follow-up (run.h)
 * are their ways. Definitions: docs/experiments.md, section 16.
 */
#ifndef PE_TRAIN_EXTENSION_H
#define PE_TRAIN_EXTENSION_H

#include "train/jobs/outcome.h"

/* ---------------------------------------------------------------- ways: way.c --------------- */

enum { PE_FACTORS = 4, PE_FAMILIES = 2, PE_FURTHEST = 16, PE_WAYS = 15 };
enum { PE_UNTUNED, PE_TUNED, PE_TUNINGS };
/* Positions of a window of 16 L: those of stats.h, and [8 L, 16 L). */
enum { PE_AT_16L = PE_BUCKETS, PE_FAR_BUCKETS };

typedef struct pe_way {
    const char *family, *name;
    const char *encoding, *settings; /* the SPEC that is read; encoding NULL: rows as they were initialised */
    const char *of_factor, *of_length, *of_longer; /* its settings that are f, L and f L; NULL: it has none */
    /* The same of distance maps: L/2, a quarter of L, and 2 f - 1: what lies beyond L/2 is pressed into L/2.
     */
    const char *of_half, *of_quarter, *of_press;
    int         base_power;     /* its base is 10000 f^base_power; 0: as it is */
    int         ignores_factor; /* 1: without tuning one reading serves all f */
    int         follows_length; /* 1: frequencies follow the input's length: each length is read by itself */
    int         is_untuned;     /* 1: it is never tuned */
    int         stays_at_L;     /* 1: it is tuned at L, once for all f, and not read untuned */
    int         norms_heads;    /* 1: q and k of each head are divided by their root mean square */
    const char *what;
} pe_way;

extern const pe_way pe_ways[PE_WAYS];

int64_t pe_way_factor(int factor_index);                   /* f: 2, 4, 8, 16 */
int     pe_way_find(const char *family, const char *name); /* -1 */
/* "untuned", "x2": for whatever is written. */
const char *pe_way_tuning_name(int tuning);
const char *pe_way_bucket_name(int bucket);

/* The SPEC of a way with the settings of its room for a small model; factor: f, here and below; dims: of the
   model, L its training length. */
posenc_status pe_way_spec(char spec[PE_LONGEST_SPEC], const pe_way *way, int64_t factor,
                          const posenc_dims *dims, posenc_error *err);

/* Rows 0 .. count - 1 that a way makes of the first L rows of table [.., width], into rows [count, width]. */
posenc_status pe_way_rows(float *rows, int64_t count, const pe_way *way, int64_t factor, const float *table,
                          int64_t L, int64_t width, posenc_error *err);

/* ---------------------------------------------------------------- families: extension.c ----- */

/* What one family's follow-up does; its numbers: [ways of the family, factors, tunings, far buckets,
   windows]. */
typedef struct pe_extension_plan {
    const char      *family;
    int              ways[PE_WAYS]; /* numbers of them */
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
    double            unit;                       /* of the losses, in nats per byte */
    char              reason[PE_LONGEST_WARNING]; /* why nothing is, though it was asked for; "" else */
    /* Once measured. */
    double *means; /* [ways, factors, tunings, far buckets, seeds, windows]; NaN where nothing was read */
} pe_extension;

/* The follow-up of a plan, which must outlive it. */
pe_run_followup pe_extension_followup(pe_extension_plan *plan);

/* Where the losses [windows] of the way that is number `way` of its plan begin, of so many windows each. */
int64_t pe_extension_offset(const pe_extension_plan *plan, int way, int factor_index, int tuning, int bucket);

/* Whatever the comparison's configuration asks for, its text and sizes known. ARGUMENT where that was asked
   for by name and has no meaning. */
posenc_status pe_extension_create(pe_extension **x, const pe_compare *c, posenc_error *err);
void          pe_extension_free(pe_extension *x); /* NULL is fine */
/* The peak rate of a family's training; that of its tunings follows. */
void    pe_extension_set_rate(pe_extension *x, int family, double rate);
int64_t pe_extension_runs(const pe_extension *x); /* NULL: 0 */

#endif
