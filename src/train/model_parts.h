/* SPDX-License-Identifier: MIT */
/*
 * model_parts.h: what the files that build a model share
 *
 * model.c decides the order; model_table.c knows which tensors there are, model_memory.c where they and the
 * buffers lie, model_start.c which numbers they begin with.
 */
#ifndef PE_TRAIN_MODEL_PARTS_H
#define PE_TRAIN_MODEL_PARTS_H

#include "train/model.h"

typedef enum pe_start {
    PE_START_ZEROS,
    PE_START_ONES,
    PE_START_UNIT,
    PE_START_FAN_IN,
    PE_START_RESIDUAL,
    PE_START_SMALL
} pe_start;

/* A tensor [rows, columns]; rows 0: a vector. Sizes in units of d; negative: minus a plain number. */
typedef struct pe_recipe {
    const char *name;
    int64_t     rows, columns;
    pe_start    start;
    int         decays;
} pe_recipe;

extern const pe_recipe pe_layer_recipes[PE_LAYER_WEIGHTS], pe_model_recipes[PE_MODEL_WEIGHTS];

posenc_status pe_model_no_memory(posenc_error *err);

/* Sizes of the two plans. */
posenc_dims pe_short_dims(const pe_model *m);
posenc_dims pe_long_dims(const pe_model *m);

/* A recipe's size, in a model of width d. */
int64_t pe_extent(int64_t units, int64_t d);
/* How many symbols and classes the model has. */
void pe_count_symbols(pe_model *m);
/* Whether parameter i of the encoding belongs to the part at the place input. */
int pe_is_of_rows(const pe_model *m, int i);

/* Finds out how rows enter, if there are any; after the plans. */
posenc_status pe_model_entry_prepare(pe_model *m, posenc_error *err);
/* The table `weights`, and the encoding's tensors without data; after pe_model_entry_prepare. */
posenc_status pe_model_table_create(pe_model *m, posenc_error *err);
/* All buffers; after pe_model_table_create. */
posenc_status pe_model_memory_create(pe_model *m, posenc_error *err);
/* The numbers before the first step; after pe_model_memory_create. */
posenc_status pe_model_start(pe_model *m, posenc_error *err);

#endif
