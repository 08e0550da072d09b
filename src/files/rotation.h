/* SPDX-License-Identifier: MIT */
/*
 * rotation.h: one rotation as a model's file describes it, whatever the format
 *
 * The readers fill a pe_rotation; pe_rotation_group turns it into a group: the SPEC, the facts, and the
 * frequencies and the magnitude that the library's own `rope` gives for that SPEC. So no schedule is written
 * here. Groups that both readers find and that are no rotation stand here as well.
 */
#ifndef PE_FILES_ROTATION_H
#define PE_FILES_ROTATION_H

#include "files/model.h"

enum { PE_ROTATION_AXES = 4 };

typedef struct pe_rotation {
    const char   *layout, *schedule; /* words of the settings of `rope` */
    int           inverse;
    int64_t       head_dim, dim, offset;
    double        base;
    double        factor; /* NaN: none is told */
    double        alpha, low_freq_factor, high_freq_factor, beta_fast, beta_slow, extrapolation;
    int           truncate;
    int64_t       original_length, max_length;
    double        partial;                                  /* proportional */
    double        attention_factor, mscale, mscale_all_dim; /* NaN: absent */
    double        magnitude;                                /* NaN: by the rule of the schedule */
    double        magnitude_long;                           /* longrope; NaN: as for short inputs */
    const double *short_factor, *long_factor, *divisors;    /* [dim/2] or NULL */
    double        score_scale;                              /* NaN: not known */
    int           axes;
    const char   *axis_rule; /* NULL for one axis */
    int64_t       sections[PE_ROTATION_AXES];
    const char   *temperature; /* llama4, ministral, or NULL */
    double        temperature_scale;
    int64_t       temperature_length;
    posenc_dims   dims; /* heads, key heads, widths */

    /* Where the numbers come from, in words; NULL where the name says all. */
    const char *source, /* of the schedule's numbers that have no rule of their own */
        *fast_rule, *slow_rule, *truncate_rule, *extrapolation_rule, *layout_rule, *dim_rule, *head_rule,
        *base_rule, *schedule_rule, *factor_rule, *length_rule, *magnitude_rule, *score_rule, *sections_rule;
} pe_rotation;

/* Everything absent, axes 1. */
pe_rotation pe_rotation_none(void);

/* 0.1 mu ln s + 1 (1 for s <= 1), of which YaRN's magnitudes are made. */
double pe_yarn_scale(double s, double mu);

/* What follows adds a group, or after a refusal nothing and gives NULL. */

/* The layers of one kind. A SPEC that the library refuses is refused here with its sentence. */
posenc_model_group *pe_rotation_group(posenc_model *m, const pe_rotation *r, const char *kinds, int64_t depth,
                                      char kind);

/* The layers without positions; r gives width, score scale and temperature. */
void pe_nope_group(posenc_model *m, const pe_rotation *r, const char *kinds, int64_t depth);

/* ALiBi's slopes for these heads, 2^(-8/H) ... as the library has them, raised to most / 8 (8 is the
   paper's); each times bias_scale is what the encoding takes. */
void pe_alibi_group(posenc_model *m, posenc_dims dims, int64_t width, double most, double bias_scale);

/* A learned table at the input. */
typedef struct pe_learned {
    int64_t     rows, offset, dim;
    const char *rows_rule, *dim_rule, *stack;
} pe_learned;

posenc_model_group *pe_input_group(posenc_model *m, const char *encoding, posenc_dims dims,
                                   const char *stack);
posenc_model_group *pe_learned_group(posenc_model *m, posenc_dims dims, const pe_learned *table);

#endif
