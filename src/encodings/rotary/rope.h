/* SPDX-License-Identifier: MIT */
/*
 * rope.h: what the files of the room rope share
 *
 * rope.c is the room: essay, settings, parameters, examples. rope_check.c says which settings fit together,
 * rope_turn.c makes the rotation of them, its gradient and its parameters' first values.
 */
#ifndef PE_ENCODINGS_ROTARY_ROPE_H
#define PE_ENCODINGS_ROTARY_ROPE_H

#include "encodings/encoding.h"
#include "engine/axes.h"
#include "engine/schedule.h"

enum {
    LAYOUT,
    LAYOUT_OUT,
    DIM,
    OFFSET_DIM,
    BASE,
    SCHEDULE,
    FACTOR,
    ALPHA,
    MIXED_B,
    ORIGINAL_LENGTH,
    MAX_LENGTH,
    LENGTH,
    BETA_FAST,
    BETA_SLOW,
    TRUNCATE,
    EXTRAPOLATION_FACTOR,
    LOW_FREQ_FACTOR,
    HIGH_FREQ_FACTOR,
    PARTIAL_ROTARY_FACTOR,
    MIN_PERIOD,
    MAX_PERIOD,
    MAX_FREQ,
    LINEAR_BANDS,
    MAGNITUDE_RULE,
    ATTENTION_FACTOR,
    ATTENTION_FACTOR_LONG,
    ATTN_FACTOR,
    MSCALE,
    MSCALE_ALL_DIM,
    AXES,
    AXIS_RULE,
    SECTIONS,
    DIRECTION,
    ANGLES,
    FREQUENCY_TYPE,
    TABLE_TYPE,
    TEMPERATURE_RULE,
    TEMPERATURE_SCALE,
    TEMPERATURE_LENGTH,
    PER_HEAD,
    HAS_FREQ_FACTORS,
    HAS_INV_FREQ32,
    HAS_THETA_SCALE32
}; /* ORDER settings */

enum {
    INV_FREQ,
    FREQ_FACTORS,
    SHORT_FACTOR,
    LONG_FACTOR,
    FREQ_MATRIX,
    INV_FREQ32,
    THETA_SCALE32
}; /* ORDER params */

extern const posenc_setting_info pe_rope_settings[];

/* Settings as the machines want them. */
pe_axes        pe_rope_axes(const pe_problem *p);
int64_t        pe_rope_heads(const pe_problem *p);
pe_frequencies pe_rope_frequencies(const pe_problem *p, const pe_rotary_run *run);
/* NULL where the run is not known yet. */
const double *pe_rope_parameter(const pe_rotary_run *run, int index);

/* Members of the door plate. */
posenc_status pe_rope_check(const pe_problem *p, posenc_error *err);
int           pe_rope_has(const pe_value *set, int index);
void          pe_rope_turn(const pe_problem *p, const pe_rotary_run *run, pe_turn *t);
void   pe_rope_turn_back(const pe_problem *p, const pe_rotary_run *run, const pe_turn *t, const double dw[],
                         double *const dpar[]);
double pe_rope_init(const pe_problem *p, int index, pe_random *rng, int64_t i);

#endif
