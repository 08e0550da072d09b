/* SPDX-License-Identifier: MIT */
/*
 * config_schedule.c: how frequencies follow: names, keys, lengths and factors of the schedules
 *
 * Only names, defaults and precedence stand here; frequencies and magnitudes are the library's (rotation.h).
 * Length    of pre-training: top level (and the class where it has one), dictionary, max_position_embeddings.
 * Surprise  beta_fast, beta_slow and mscale of 0 are absent, as null is; a null factor of yarn is the ratio
 *           of the lengths, a missing one is refused.
 * Source    transformers 5.16, modeling_rope_utils.py
 */
#include "files/config_rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int pe_rope_is_scaled(const pe_rotation *r)
{
    return strcmp(r->schedule, "default") != 0;
}

/* ---------------------------------------------------------------- schedule ------------------ */

static const pe_rope_schedule schedules[] = {
    {"default", "", "", 0},
    {"linear", "factor", "factor", 0},
    {"dynamic", "factor", "factor", 0},
    {"ntk", "alpha", "alpha factor", 0},
    {"yarn", "", "factor beta_fast beta_slow attention_factor mscale mscale_all_dim truncate", 1},
    {"longrope", "short_factor long_factor", "factor short_factor long_factor attention_factor", 1},
    {"llama3", "factor low_freq_factor high_freq_factor", "factor low_freq_factor high_freq_factor", 1},
    {"proportional", "", "factor", 0},
};

static const pe_rope_schedule *find_schedule(const char *name)
{
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (!strcmp(schedules[i].name, name) &&
            strcmp(name, "ntk") != 0) /* a form of dynamic, no name in a file */
            return &schedules[i];
    return NULL;
}

/* The name that counts today. */
static const char *todays_name(pe_config *c, const char *name)
{
    static const char *const old[][2] = {{"su", "longrope"}, {"mrope", "default"}, {"yarn", "longrope"}};
    const int                allowed  = pe_is_among(c->type->only, "longrope") ? 3 : 2;
    for (int i = 0; i < allowed; i++)
        if (!strcmp(old[i][0], name)) {
            pe_modelfile_warn(c->model, "renamed-type", "the rope type %s is read as %s", name, old[i][1]);
            return old[i][1];
        }
    return name;
}

static int are_a_pair(const char *a, const char *b)
{
    return (!strcmp(a, "mrope") && !strcmp(b, "default")) || (!strcmp(a, "su") && !strcmp(b, "longrope"));
}

static const char *given_name(pe_config *c, const pe_rope_source *s)
{
    const char *new = pe_config_word(c, s->words, "rope_type"), *old = pe_config_word(c, s->words, "type");
    if (new &&old && strcmp(new, old) != 0 && !are_a_pair(old, new) && !are_a_pair(new, old))
        pe_modelfile_warn(c->model, "type-conflict", "%s has type %s and rope_type %s; rope_type counts",
                          s->name, old, new);
    return new ? new : old ? old : "default";
}

const pe_rope_schedule *pe_rope_choose_schedule(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    const char             *given  = given_name(c, s);
    const char             *name   = todays_name(c, given);
    const pe_rope_schedule *chosen = find_schedule(name);
    if (!chosen)
        pe_config_refuse(
            c,
            "the rope type %.60s is not known; known are default, linear, dynamic, yarn, longrope, llama3, "
            "proportional",
            given);
    else if (c->type->only && !pe_is_among(c->type->only, name))
        pe_config_refuse(c, "the rope type %s is not one that %s has: %s", name, c->type->name,
                         c->type->only);
    if (c->type->alpha && pe_is(name, "dynamic") && pe_config_real(c, s->words, "alpha", 0) != 0)
        chosen = &schedules[3];
    chosen           = chosen ? chosen : schedules;
    r->schedule      = chosen->name;
    r->schedule_rule = pe_is(chosen->name, "ntk") ? "type dynamic with alpha"
                       : pe_config_get(s->words, "rope_type") || pe_config_get(s->words, "type")
                           ? pe_modelfile_text(c->model, "rope type of %s", s->name)
                           : "no schedule is named";
    return chosen;
}

static void check_needs(pe_config *c, const pe_rope_source *s, const char *needs)
{
    char word[40];
    int  used = 0;
    for (const char *at = needs; at && sscanf(at, " %39s%n", word, &used) == 1; at += used)
        if (!pe_config_get(s->words, word))
            pe_config_refuse(c, "%s is missing in %s; the rope type needs it", word, s->name);
}

void pe_rope_warn_of_unused_keys(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen)
{
    static const char always[] =
        "rope_type type rope_theta partial_rotary_factor original_max_position_embeddings";
    const char *key;
    json_t     *value;
    json_object_foreach(s->words, key, value)
    {
        const int is_read = pe_is_among(always, key) || pe_is_among(chosen->reads, key) ||
                            pe_is_among(c->type->extra_keys, key) || pe_is_among(c->type->needs, key);
        if (!is_read && !json_is_null(value))
            pe_modelfile_warn(c->model, "unused-key",
                              "%.60s in %s is read by nobody: the schedule %s has no such number", key,
                              s->name, chosen->name);
    }
}

/* ---------------------------------------------------------------- lengths and factors ------- */

static const char length_key[] = "original_max_position_embeddings";

static int64_t length_of(pe_config *c, const json_t *object)
{
    return pe_config_whole(c, object, length_key, 1, INT64_C(1) << 53, 0);
}

/* The original length as the file has it, 0 if it has none. That at top level is for schedules; a temperature
   beside another schedule has that of its dictionary. */
static int64_t given_length(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen,
                            pe_rotation *r)
{
    const int64_t of_words = length_of(c, s->words);
    int64_t       of_file  = pe_rope_takes_layers(c) ? 0 : length_of(c, c->file);
    r->length_rule         = of_file ? "the file, at top level" : s->name;
    if (!of_file && c->type->original_length)
        of_file = c->type->original_length, r->length_rule = "the class";
    if (of_words && of_file && of_words != of_file)
        pe_modelfile_warn(c->model, "original-length-conflict",
                          "%s is %lld in %s but %lld %s, which counts%s", length_key, (long long)of_words,
                          s->name, (long long)of_file,
                          pe_is(r->length_rule, "the class") ? "for the class" : "at top level",
                          chosen->has_length ? "" : " for schedules that read it");
    return of_file && (chosen->has_length || !of_words) ? of_file : of_words;
}

static void find_length(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen, pe_rotation *r)
{
    const int64_t context = pe_config_context(c), given = given_length(c, s, chosen, r);
    const int     is_told = length_of(c, s->words) || (!pe_rope_takes_layers(c) && length_of(c, c->file));
    r->max_length         = context;
    r->original_length    = given;
    if (!chosen->has_length && is_told && strcmp(chosen->name, "ntk") != 0)
        pe_modelfile_warn(c->model, "original-length-ignored",
                          "%s is given, but the schedule %s does not read it", length_key, chosen->name);
    if (pe_is(chosen->name, "dynamic") && !context)
        pe_config_refuse(c, "max_position_embeddings is missing; the schedule dynamic needs it");
    if (!chosen->has_length || given)
        return;
    if (!context)
        pe_config_refuse(c, "%s and max_position_embeddings are missing; the schedule %s needs one of them",
                         length_key, chosen->name);
    r->original_length = context;
    r->length_rule     = "max_position_embeddings";
    pe_modelfile_warn(c->model, "original-length-missing",
                      "%s is missing; max_position_embeddings %lld is taken", length_key, (long long)context);
}

/* How far the context was stretched, by its lengths. */
static double stretch(const pe_rotation *r)
{
    return r->max_length && r->original_length ? (double)r->max_length / (double)r->original_length : 1;
}

static void find_factor(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen, pe_rotation *r)
{
    r->factor      = pe_config_real(c, s->words, "factor", (double)NAN);
    r->factor_rule = s->name;
    if (isnan(r->factor) && chosen->has_length) {
        if (pe_is(chosen->name, "yarn") && !json_is_null(json_object_get(s->words, "factor")))
            pe_config_refuse(c, "factor is missing in %s; the rope type yarn needs it", s->name);
        else if (pe_is(chosen->name, "yarn"))
            pe_modelfile_warn(c->model, "factor-inferred",
                              "factor is null; max_position_embeddings / %s = %g is taken", length_key,
                              stretch(r));
        r->factor      = stretch(r);
        r->factor_rule = "max_position_embeddings / original length";
    } else if (!pe_is(chosen->name, "llama3") && chosen->has_length && r->factor != stretch(r) &&
               stretch(r) != 1)
        pe_modelfile_warn(
            c->model, "factor-vs-max_position",
            "factor is %g, but max_position_embeddings %lld / %lld is %g: one of the three is not meant",
            r->factor, (long long)r->max_length, (long long)r->original_length, stretch(r));
    if (isnan(r->factor))
        r->factor = 1, r->factor_rule = "the standard";
    if (!c->status && !(r->factor > 0 && isfinite(r->factor)))
        pe_config_refuse(c, "factor is %g; it must be a finite number above 0", r->factor);
    if (r->factor < 1)
        pe_modelfile_warn(c->model, "factor-below-one", "factor is %g: it would shorten the context",
                          r->factor);
}

/* ---------------------------------------------------------------- numbers of the schedules --- */

/* 0 is absent, as null is. */
static double beta(pe_config *c, const pe_rope_source *s, const char *key, double standard)
{
    const double x = pe_config_real(c, s->words, key, 0);
    if (x < 0)
        pe_config_refuse(c, "%s is %g; it must be positive", key, x);
    return x == 0 ? standard : x;
}

static void warn_of_yarn(pe_config *c, const pe_rotation *r)
{
    const int has_scale = !isnan(r->mscale) && r->mscale != 0,
              has_all   = !isnan(r->mscale_all_dim) && r->mscale_all_dim != 0;
    if (r->beta_fast < r->beta_slow)
        pe_modelfile_warn(c->model, "beta-order", "beta_fast %g lies below beta_slow %g", r->beta_fast,
                          r->beta_slow);
    if (has_scale != has_all && isnan(r->attention_factor))
        pe_modelfile_warn(c->model, "mscale-alone",
                          "%s stands alone: transformers ignores it, DeepSeek's rule does not",
                          has_scale ? "mscale" : "mscale_all_dim");
    if (!r->truncate)
        pe_modelfile_warn(c->model, "truncate-false",
                          "truncate is false: ggml, mlx-lm and others truncate all the same");
}

static const char *given_or_standard(const pe_rope_source *s, const char *key)
{
    return pe_config_get(s->words, key) ? s->name : "the standard";
}

static void read_yarn(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    r->fast_rule        = given_or_standard(s, "beta_fast");
    r->slow_rule        = given_or_standard(s, "beta_slow");
    r->truncate_rule    = given_or_standard(s, "truncate");
    r->beta_fast        = beta(c, s, "beta_fast", 32);
    r->beta_slow        = beta(c, s, "beta_slow", 1);
    r->truncate         = pe_config_flag(c, s->words, "truncate", 1);
    r->attention_factor = pe_config_real(c, s->words, "attention_factor", (double)NAN);
    r->mscale           = pe_config_real(c, s->words, "mscale", (double)NAN);
    r->mscale_all_dim   = pe_config_real(c, s->words, "mscale_all_dim", (double)NAN);
    r->magnitude_rule   = !isnan(r->attention_factor) ? "attention_factor" : "transformers' rule for yarn";
    if (pe_is(c->type->layers, "main-compress"))
        r->attention_factor = 1, r->magnitude_rule = "DeepSeek-V4 takes 1";
    warn_of_yarn(c, r);
}

static const double *read_factors(pe_config *c, const pe_rope_source *s, const char *key, int64_t pairs)
{
    const json_t *list = pe_config_list(c, s->words, key);
    if (!c->status && (int64_t)json_array_size(list) != pairs)
        pe_config_refuse(c, "%s has %zu numbers; it must have one for each of the %lld pairs that rotate",
                         key, json_array_size(list), (long long)pairs);
    double *x = c->status ? NULL : pe_modelfile_take(c->model, (size_t)pairs * sizeof *x);
    for (int64_t i = 0; x && i < pairs; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        x[i]                = json_number_value(value);
        if (!json_is_number(value) || !(x[i] > 0))
            pe_config_refuse(c, "%s has %s at place %lld; it must hold positive numbers", key,
                             pe_config_shown(c, value), (long long)i);
    }
    return x;
}

static void read_longrope(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    r->short_factor     = read_factors(c, s, "short_factor", r->dim / 2);
    r->long_factor      = read_factors(c, s, "long_factor", r->dim / 2);
    r->attention_factor = pe_config_real(c, s->words, "attention_factor", (double)NAN);
    r->magnitude_rule =
        !isnan(r->attention_factor) ? "attention_factor" : "sqrt(1 + ln factor / ln original length)";
}

static void read_llama3(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    r->low_freq_factor  = pe_config_real(c, s->words, "low_freq_factor", 1);
    r->high_freq_factor = pe_config_real(c, s->words, "high_freq_factor", 4);
    if (!(r->low_freq_factor > 0 && r->high_freq_factor > 0))
        pe_config_refuse(c, "low_freq_factor is %g and high_freq_factor %g; both must be above 0",
                         r->low_freq_factor, r->high_freq_factor);
    if (r->high_freq_factor <= r->low_freq_factor)
        pe_modelfile_warn(c->model, "freq-factor-order",
                          "high_freq_factor %g is not above low_freq_factor %g: a step, no ramp",
                          r->high_freq_factor, r->low_freq_factor);
    if (r->max_length && r->original_length >= r->max_length)
        pe_modelfile_warn(c->model, "original-length-not-below-max",
                          "%s %lld is not below max_position_embeddings %lld", length_key,
                          (long long)r->original_length, (long long)r->max_length);
}

static void read_ntk(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    r->alpha = pe_config_real(c, s->words, "alpha", 1);
    if (!(r->alpha > 0))
        pe_config_refuse(c, "alpha is %g; it must be above 0", r->alpha);
}

/* PhiMoE has a magnitude of its own for longrope, for either side of the original length; it wants both with
   any schedule. */
static void read_two_magnitudes(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    if (!c->type->needs || !pe_rope_is_scaled(r))
        return;
    check_needs(c, s, c->type->needs);
    if (!pe_is(r->schedule, "longrope"))
        return;
    r->magnitude      = pe_config_real(c, s->words, "short_mscale", 1);
    r->magnitude_long = pe_config_real(c, s->words, "long_mscale", 1);
    r->magnitude_rule = "short_mscale";
}

void pe_rope_read_schedule(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen,
                           pe_rotation *r)
{
    static const struct {
        const char *name;
        void (*read)(pe_config *c, const pe_rope_source *s, pe_rotation *r);
    } readers[] = {
        {"yarn", read_yarn}, {"longrope", read_longrope}, {"llama3", read_llama3}, {"ntk", read_ntk}};
    r->source = s->name;
    check_needs(c, s, chosen->needs);
    find_length(c, s, chosen, r);
    if (pe_is_among(chosen->reads, "factor") && strcmp(chosen->name, "ntk") != 0)
        find_factor(c, s, chosen, r);
    if (!c->status && r->dim == 2 && (pe_is(chosen->name, "ntk") || pe_is(chosen->name, "dynamic")))
        pe_config_refuse(c, "the schedule %s divides by zero where only 2 channels rotate", chosen->name);
    for (size_t i = 0; !c->status && i < sizeof readers / sizeof *readers; i++)
        if (pe_is(readers[i].name, chosen->name))
            readers[i].read(c, s, r);
    if (!c->status)
        read_two_magnitudes(c, s, r);
}
