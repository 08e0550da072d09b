/* SPDX-License-Identifier: MIT */
/* model_types.h: what the class of a model type takes for granted. The columns are explained in
   model_types.def. */
#ifndef PE_FILES_MODEL_TYPES_H
#define PE_FILES_MODEL_TYPES_H

#include <stdint.h>

typedef struct pe_model_type {
    const char *name, *encoding;
    const char *switch_key, *switch_value, *switched;
    int         scaled_bias;
    const char *layout, *layout_key;
    int         writes_half;
    int share_read; /* mla: the class sets the fraction to d / D itself, so one that says so is no surprise */
    int inverse;
    const char *head;
    int64_t     head_dim, full_head_dim, nope_dim, rope_dim;
    int         rotary_dim_key;
    int64_t     rotary_dim;
    int         partial_read;
    double      partial;
    const char *partial_key;
    double      base, local_base, old_base, old_local_base;
    const char *scaling;
    const char *base_key, *local_base_key;
    int         fixed_base;
    const char *ratio_key, *rope_default;
    int64_t     original_length;
    const char *only, *needs, *extra_keys;
    int         alpha;
    const char *axis_rule;
    int64_t     sections[3];
    const char *layers;
    int64_t     every;
    const char *every_key, *pattern, *temperature;
    const char *score;
    double      score_standard;
    const char *preset;
    int64_t     offset;
    int         offset_inside;
    int64_t     image, patch, prefix_rows;
    int64_t     buckets, max_distance;
    int         own_tables, log_buckets;
    int64_t     period, period_offset;
    int64_t     hidden, heads, depth, context;
    const char *hidden_key, *heads_key, *layers_key, *context_key, *head_dim_key, *layer_types_key;
} pe_model_type;

/* The row of that name, or NULL; and the type of the language model inside a composite one, or NULL. */
const pe_model_type *pe_model_type_find(const char *name);
const char          *pe_model_type_inside(const char *name);

#endif
