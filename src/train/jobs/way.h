/* SPDX-License-Identifier: MIT */
/*
 * way.h: the ways to read a model that was trained at length L at f times that length, f being 2, 4, 8 or 16
 *
 * A family is an encoding that is trained: a rotation, or a learned table. A rotation is read with other
 * frequencies, a table of rows as another table. Definitions: docs/experiments.md, section 16.
 */
#ifndef PE_TRAIN_WAY_H
#define PE_TRAIN_WAY_H

#include "train/model/spec.h"
#include "train/run/stats.h"

enum { PE_FACTORS = 4, PE_FAMILIES = 2, PE_FURTHEST = 16, PE_WAYS = 9 };
enum { PE_UNTUNED, PE_TUNED, PE_TUNINGS };
/* Positions of a window of 16 L: those of stats.h, and [8 L, 16 L). */
enum { PE_AT_16L = PE_BUCKETS, PE_FAR_BUCKETS };

typedef struct pe_way {
    const char *family, *name;
    const char *encoding, *settings; /* the SPEC that is read; NULL, "": rows as they were initialised */
    const char *of_factor, *of_length, *of_longer; /* its settings that are f, L and f L; NULL: it has none */
    int         base_power;                        /* its base is 10000 f^base_power; 0: as it is */
    int         every_factor;                      /* 1: without tuning it is the same for all f */
    int         every_length; /* 1: frequencies follow the input's length: every length is read by itself */
    const char *what;
} pe_way;

extern const pe_way pe_ways[PE_WAYS];

int64_t pe_way_factor(int i);                              /* 2, 4, 8, 16 */
int     pe_way_find(const char *family, const char *name); /* -1 */
/* The first way of the same family: nothing is done. */
int pe_way_first(int way);
/* "untuned", "x2": for whatever is written. */
const char *pe_way_tuning_name(int tuning);
const char *pe_way_bucket_name(int bucket);

/* The SPEC of a way with the settings of its room for a small model; dims: of the model, L its training
   length. */
posenc_status pe_way_spec(char spec[PE_LONGEST_SPEC], const pe_way *way, int64_t factor,
                          const posenc_dims *dims, posenc_error *err);

/* Rows 0 .. count - 1 that a way makes of the first L rows of table [.., width], into rows [count, width]. */
posenc_status pe_way_rows(float *rows, int64_t count, const pe_way *way, int64_t factor, const float *table,
                          int64_t L, int64_t width, posenc_error *err);

#endif
