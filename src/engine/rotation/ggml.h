/* SPDX-License-Identifier: MIT */
/*
 * ggml.h: the same schedules as ggml computes them
 *
 * ggml has no list of frequencies. It walks from pair to pair with an angle that is multiplied by base^(-2/d)
 * each time, and makes of that angle t what the schedule wants: t/divisor, times `slower`, and YaRN's mixture
 * of both speeds, all in float32. A converter puts the other schedules into these numbers when it writes the
 * file: static NTK into the base, LongRoPE's lists, llama3 and proportional into divisors (the tensors
 * rope_factors and rope_freqs). What it drops (dynamic), and what no file can say (su's mixed form, periods,
 * pixels, free frequencies), ggml does not have.
 *
 * Sources  ggml: ggml_rope_cache_init, rope_yarn, ggml_rope_yarn_corr_dims; llama.cpp: generate_extra_tensors
 *          of its converter. Each operation is rounded here; a compiler that fuses a product with a sum there
 *          may differ in an angle's last bit.
 */
#ifndef PE_ENGINE_GGML_H
#define PE_ENGINE_GGML_H

#include "engine/rotation/schedule.h"

/* Why ggml has no such schedule, and what to do; NULL: it has. */
const char *pe_ggml_lacks(const pe_frequencies *f);

/* float32 of base^(-2/d). */
double pe_ggml_step(const pe_frequencies *f, int64_t d);
/* freq_scale. */
double pe_ggml_slower(const pe_frequencies *f);
/* What the angle of pair m, number j of a list over d channels, is divided by. */
double pe_ggml_divisor(const pe_frequencies *f, int64_t m, int64_t j, int64_t d);
/* Does the schedule fill the divisors itself, so that no others can? */
int pe_ggml_divides(pe_schedule schedule);
/* YaRN: the share of the angle that is not slowed. Else 0. */
double pe_ggml_share(const pe_frequencies *f, int64_t j, int64_t d);

#endif
