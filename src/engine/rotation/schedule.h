/* SPDX-License-Identifier: MIT */
/*
 * schedule.h: how fast each pair is rotated, and the magnitude of all pairs
 *
 * A schedule is a formula w(j, d): the frequency of pair number j of a list over d channels. Which j and d a
 * pair of the head has is the business of axes.h. All formulas start from the same powers base^(-2j/d); YaRN,
 * llama3 and the others slow the slow pairs down, LongRoPE by a list of factors, vision encoders count in
 * periods or pixels. The magnitude that some of them put on cosine and sine is told by one of five rules,
 * because five programs disagree.
 *
 * `single` makes every step round to float32 as the common Python code does (1/x is a reciprocal, base^x one
 * power): models were trained with these numbers. Otherwise numbers are wide (base/wide.h), and the finished
 * frequency is rounded once. An absent number is NAN.
 */
#ifndef PE_ENGINE_SCHEDULE_H
#define PE_ENGINE_SCHEDULE_H

#include <stdint.h>

#include "base/wide.h"

typedef enum pe_schedule {
    PE_DEFAULT,
    PE_LINEAR,
    PE_NTK,
    PE_NTK_MIXED,
    PE_DYNAMIC,
    PE_YARN,
    PE_LONGROPE,
    PE_LLAMA3,
    PE_PROPORTIONAL,
    PE_EXPLICIT,
    PE_PERIOD,
    PE_PIXEL,
    PE_SCHEDULES
} pe_schedule;

typedef enum pe_magnitude_rule {
    PE_HF,
    PE_VLLM,
    PE_DEEPSEEK,
    PE_GGML_RULE,
    PE_NO_MAGNITUDE
} pe_magnitude_rule;

typedef struct pe_frequencies {
    pe_schedule       schedule;
    pe_magnitude_rule rule;
    int               single;
    double            base, factor, alpha, mixed_b;
    pe_wide           log_base; /* of base: the costly half of its powers, which all pairs share */
    double            original_length, max_length, length; /* trained, longest, present */
    double            beta_fast, beta_slow, extrapolation_factor;
    int               truncate;
    double            low_freq_factor, high_freq_factor;
    double            partial_rotary_factor;
    double            min_period, max_period, max_freq;
    int               linear_bands;
    double            attention_factor, attention_factor_long, attn_factor, mscale, mscale_all_dim;
    const double     *inv_freq, *short_factor, *long_factor; /* [pairs], by the pair's own number */
} pe_frequencies;

/* w of pair m of the head, number j of a list over d channels, divided by `divisor`. */
double pe_schedule_frequency(const pe_frequencies *f, int64_t m, int64_t j, int64_t d, double divisor);

/* The factor on cosine and sine. */
double pe_schedule_magnitude(const pe_frequencies *f);

/* Is the present sequence longer than the trained one? */
int pe_schedule_is_long(const pe_frequencies *f);

/* Does w depend on how long the present sequence is? */
int pe_schedule_follows_length(pe_schedule schedule);

#endif
