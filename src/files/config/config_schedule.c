/* SPDX-License-Identifier: MIT */
/*
 * config_schedule.c: where the numbers of a rotation are found in a config.json
 *
 * Only names, defaults and precedence are here; frequencies and magnitudes are the library's (rotation.c).
 * Old       flat keys (rope_theta ...) and rope_scaling, a dictionary with `type`.
 * New (5.0) rope_parameters, a dictionary with `rope_type`, or one per layer type for the classes that need
 *           it. Where both are given, rope_scaling replaces rope_parameters whole; for classes with
 *           dictionaries per layer type it goes on top of those it is meant for.
 * Base      dictionary, top level, class.
 * Length    of pre-training: top level (and the class where it has one), dictionary, max_position_embeddings.
 * Surprise  A class may bring a whole dictionary: a rope_theta outside it is then not read. beta_fast,
 *           beta_slow and mscale of 0 are absent, as null is; a null factor of yarn is the ratio of the
 *           lengths, a missing one is refused.
 * Source    transformers 5.16, modeling_rope_utils.py and the classes of the types
 */
#include "files/config/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "files/arrays/json.h"

/* Does the type have a dictionary per layer type? */
static int takes_layers(const pe_config *c)
{
    return c->type.local_base > 0;
}

/* ---------------------------------------------------------------- which dictionaries --------- */

/* "full_attention", or "main" for DeepSeek-V4. */
const char *pe_config_label(pe_config *c, int kind)
{
    const int   compresses = pe_text_is(c->type.layers, "main-compress");
    const char *own        = c->type.labels;
    if (own)
        return pe_build_text(c->m, "%.*s", (int)strcspn(own, " "),
                             kind == PE_SOURCE_FULL ? own : strchr(own, ' ') + 1);
    return kind == PE_SOURCE_FULL ? compresses ? "main" : "full_attention"
           : compresses           ? "compress"
                                  : "sliding_attention";
}

/* A dictionary of dictionaries? */
static int is_layered(const json_t *object)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) if (json_is_object(value)) return 1;
    return 0;
}

/* 8 and 8.0 are one value, alone and in lists. */
static int is_one_value(const json_t *a, const json_t *b)
{
    if (a == b)
        return 1;
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    int is_one = json_array_size(a) == json_array_size(b);
    for (size_t i = 0; is_one && i < json_array_size(a); i++)
        is_one = is_one_value(json_array_get(a, i), json_array_get(b, i));
    return json_is_array(a) && json_is_array(b) ? is_one : json_equal(a, b);
}

/* Does b say what a says, but for the base and how the schedule is called? */
static int says_all_of(const json_t *b, const json_t *a)
{
    const char *key;
    json_t     *value;
    int         is_it = 1;
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
    {
        if (!json_is_null(value) && !pe_text_is_among("rope_theta rope_type type", key))
            is_it &= is_one_value(value, json_object_get(b, key));
    }
    return is_it;
}

/* The member under its first name that is there. */
static const json_t *either(const json_t *object, const char *name, const json_t *other,
                            const char *otherwise)
{
    const json_t *found = pe_config_get(object, name);
    return found ? found : pe_config_get(other, otherwise);
}

/* One rotation in both styles? */
static int say_the_same(const pe_config *c, const json_t *a, const json_t *b)
{
    const char *key = c->type.base_key ? c->type.base_key : "rope_theta";
    return says_all_of(a, b) && says_all_of(b, a) &&
           is_one_value(either(a, "rope_type", a, "type"), either(b, "rope_type", b, "type")) &&
           is_one_value(either(a, "rope_theta", c->file, key), either(b, "rope_theta", c->file, key));
}

static void check_form(pe_config *c, const json_t *scaling, const json_t *parameters)
{
    if (scaling && is_layered(scaling))
        pe_build_refuse(c->m,
                        "rope_scaling holds dictionaries; one per layer type belongs in rope_parameters");
    else if (parameters && is_layered(parameters) && !takes_layers(c))
        pe_build_refuse(c->m,
                        "rope_parameters holds a dictionary per layer type, which the type %s does not take",
                        c->is_unknown ? "(not in the table)" : c->type.name);
    else if (parameters && !is_layered(parameters) && takes_layers(c))
        pe_build_refuse(c->m,
                        "rope_parameters is one dictionary; the type %s takes one per layer type (%s, %s)",
                        c->type.name, pe_config_label(c, PE_SOURCE_FULL),
                        pe_config_label(c, PE_SOURCE_LOCAL));
    if (scaling && parameters && !say_the_same(c, scaling, parameters))
        pe_build_warn(c->m, "both-styles",
                      "rope_scaling and rope_parameters are both there and differ; rope_scaling %s",
                      takes_layers(c) ? "is applied on top of it" : "replaces the other, base included");
}

/* The table writes ' for ". */
static json_t *class_dictionary(pe_config *c)
{
    char *text = pe_build_text(c->m, "%s", c->type.rope_default ? c->type.rope_default : "{}");
    for (char *at = text; *at; at++)
        *at = (char)(*at == '\'' ? '"' : *at);
    json_error_t why;
    json_t      *made = pe_json_load(text, strlen(text), &why);
    if (!made)
        pe_build_refuse_memory(c->m);
    return made;
}

/* The dictionary of a layer type: the class's, or the file's; then rope_scaling on top. */
static void layered_source(pe_config *c, pe_rope_source *s, int kind, const json_t *scaling,
                           const json_t *parameters, const json_t *of_class)
{
    const char   *to  = c->type.scaling ? c->type.scaling : "full";
    const json_t *own = pe_config_get(parameters ? parameters : of_class, pe_config_label(c, kind));
    s->words          = json_is_object(own) ? json_copy((json_t *)(uintptr_t)own) : json_object();
    s->name = parameters ? pe_build_text(c->m, "rope_parameters.%s", pe_config_label(c, kind)) : "the class";
    s->has_base = parameters && pe_config_get(own, "rope_theta");
    if (own && !json_is_object(own))
        pe_build_refuse(c->m, "rope_parameters.%s is %s; it must be an object", pe_config_label(c, kind),
                        pe_config_shown(c, own));
    if (!scaling || !(pe_text_is(to, "both") || pe_text_is(to, kind == PE_SOURCE_FULL ? "full" : "local")))
        return;
    s->name     = "rope_scaling";
    s->has_base = s->has_base || pe_config_get(scaling, "rope_theta");
    if (pe_config_get(scaling, "type") && !pe_config_get(scaling, "rope_type"))
        json_object_del(s->words, "rope_type"); /* the one that is given counts */
    json_object_update(s->words, (json_t *)(uintptr_t)scaling);
}

/* A dictionary of the file; NULL if absent or empty. The classes with a fixed base know none at all. */
static const json_t *read_dictionary(pe_config *c, const char *key)
{
    const json_t *found = pe_config_get(c->file, key);
    if (found && !json_is_object(found))
        pe_build_refuse(c->m, "%s is %s; it must be an object", key, pe_config_shown(c, found));
    if (!json_object_size(found))
        return NULL;
    if (c->type.fixed_base)
        pe_build_warn(c->m, "unused-key", "%s is not read by the class %s, whose rotation is fixed", key,
                      c->type.name);
    return c->type.fixed_base ? NULL : found;
}

/* "500000", or "1000000 and 10000" where full and sliding layers differ: what is taken where the file has no
   base. */
static const char *default_bases(pe_config *c, const pe_rope_source *from)
{
    double base[PE_SOURCES];
    for (int kind = 0; kind < PE_SOURCES; kind++)
        base[kind] = pe_config_real(c, from[kind].words, "rope_theta", from[kind].base);
    if (!takes_layers(c) || base[PE_SOURCE_FULL] == base[PE_SOURCE_LOCAL])
        return pe_build_text(c->m, "%.15g is", base[PE_SOURCE_FULL]);
    return pe_build_text(c->m, "%.15g (%s) and %.15g (%s) are", base[PE_SOURCE_FULL],
                         pe_config_label(c, PE_SOURCE_FULL), base[PE_SOURCE_LOCAL],
                         pe_config_label(c, PE_SOURCE_LOCAL));
}

static void warn_of_base(pe_config *c, const pe_rope_source *from)
{
    const char *name = c->type.name, *unread = pe_config_get(c->file, "rope_theta")        ? "rope_theta"
                                               : pe_config_get(c->file, "rotary_emb_base") ? "rotary_emb_base"
                                                                                           : NULL;
    double      old = 0;
    for (int kind = 0; kind < (takes_layers(c) ? PE_SOURCES : 1); kind++) {
        const pe_rope_source *s = &from[kind];
        if (c->type.fixed_base || s->has_base || pe_config_get(c->file, s->base_key) ||
            pe_config_get(pe_config_nested(c), s->base_key))
            return;
        old = old != 0 ? old : s->old;
    }
    if (unread && !c->is_unknown)
        pe_build_warn(c->m, "base-default",
                      "the file gives %s, which the class %s does not read; %s its default", unread, name,
                      default_bases(c, from));
    else
        pe_build_warn(c->m, "base-default", "the file gives no base; %s the default of %s%s",
                      default_bases(c, from), c->is_unknown ? "" : "the class ", name);
    if (old != 0)
        pe_build_warn(c->m, "base-default-changed",
                      "the default base of the class %s was different in transformers 4.57: %.15g", name,
                      old);
}

void pe_config_sources(pe_config *c, pe_rope_source from[PE_SOURCES])
{
    const pe_model_type *t       = &c->type;
    const json_t        *scaling = read_dictionary(c, "rope_scaling"),
                 *parameters = read_dictionary(c, "rope_parameters"), *given = scaling ? scaling : parameters;
    const int is_other = c->is_unknown && !pe_config_get(c->file, "rope_theta");
    json_t   *of_class = class_dictionary(c);
    check_form(c, scaling, parameters);
    from[PE_SOURCE_FULL] = (pe_rope_source){.base     = t->base > 0 ? t->base : 1e4,
                                            .old      = t->old_base,
                                            .base_key = is_other      ? "rotary_emb_base"
                                                        : t->base_key ? t->base_key
                                                                      : "rope_theta"};
    from[PE_SOURCE_LOCAL] =
        (pe_rope_source){.base = t->local_base, .old = t->old_local_base, .base_key = t->local_base_key};
    for (int kind = 0; kind < PE_SOURCES; kind++) {
        pe_rope_source *s = &from[kind];
        if (takes_layers(c))
            layered_source(c, s, kind, scaling, parameters, of_class);
        else {
            s->words    = json_copy((json_t *)(uintptr_t)(given ? given : of_class));
            s->name     = scaling ? "rope_scaling" : parameters ? "rope_parameters" : "the class";
            s->has_base = given && pe_config_get(given, "rope_theta");
        }
        if (!s->words || pe_file_lost_memory()) /* jansson copies what it can */
            pe_build_refuse_memory(c->m);
    }
    if (!given && t->rope_default)
        pe_build_warn(c->m, "schedule-default", "the file names no schedule; the class %s brings one",
                      t->name);
    json_decref(of_class);
    warn_of_base(c, from);
}

/* ---------------------------------------------------------------- base ---------------------- */

void pe_config_base(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const char  *key = c->type.fixed_base ? NULL : s->base_key;
    const double of_words =
        pe_config_real(c, s->words, c->type.fixed_base ? NULL : "rope_theta", (double)NAN);
    const json_t *nested  = pe_config_get(c->file, key) ? NULL : pe_config_nested(c);
    const double  of_file = pe_config_real(c, nested ? nested : c->file, key, (double)NAN);
    if (nested && !c->type.beyond && !isnan(of_file) && isnan(of_words) && of_file != s->base)
        pe_build_warn(c->m, "programs-disagree",
                      "%s of %s is %.15g; transformers 5 does not look there and takes %.15g", key,
                      c->type.nested, of_file, s->base);
    r->base      = !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : s->base;
    r->base_rule = !isnan(of_words)  ? pe_build_text(c->m, "rope_theta of %s", s->name)
                   : !isnan(of_file) ? pe_build_text(c->m, "%s of the file", key)
                   : c->is_unknown   ? "the usual default"
                                     : pe_build_text(c->m, "default of the class %s", c->type.name);
    if (isnan(of_words) && isnan(of_file) && !c->is_unknown && s->old != 0)
        r->base_rule = pe_build_text(c->m, "%s (%.15g in transformers 4.57)", r->base_rule, s->old);
    if (!isnan(of_words) && !isnan(of_file) && of_words != of_file)
        pe_build_warn(c->m, "base-conflict", "rope_theta is %g in %s but %s is %g at top level; %g is used",
                      of_words, s->name, key, of_file, of_words);
    if (c->type.ratio_key) {
        r->base *= pe_config_real(c, c->file, c->type.ratio_key, 1);
        r->base_rule = pe_build_text(c->m, "%g times %s", s->base, c->type.ratio_key);
    }
    if (!(r->base > 1 && isfinite(r->base)))
        pe_build_refuse(c->m, "%s is %g; a base must be a finite number above 1",
                        c->type.ratio_key ? c->type.ratio_key : "rope_theta", r->base);
}

/* ---------------------------------------------------------------- schedule ------------------ */

/* Has it an original length? */
static int has_length(const pe_file_rotation *r)
{
    return pe_text_is(r->schedule, "yarn") || pe_text_is(r->schedule, "longrope") ||
           pe_text_is(r->schedule, "llama3");
}

/* The name that counts today. */
static const char *todays_name(pe_config *c, const char *name)
{
    if (c->type.axes && !strcmp(name, "axial"))
        return "default"; /* the rule of the axes, which the type has anyway */
    if (c->type.mixed && !strcmp(name, "ntk"))
        return "ntk_mixed";
    static const char *const old[][2] = {{"su", "longrope"}, {"mrope", "default"}, {"yarn", "longrope"}};
    const int                allowed  = pe_text_is_among(c->type.only, "longrope") ? 3 : 2;
    for (int i = 0; i < allowed; i++)
        if (!strcmp(old[i][0], name)) {
            pe_build_warn(c->m, "renamed-type", "the rope type %s is read as %s", name, old[i][1]);
            return old[i][1];
        }
    return name;
}

static int are_a_pair(const char *a, const char *b)
{
    return (!strcmp(a, "mrope") && !strcmp(b, "default")) || (!strcmp(a, "su") && !strcmp(b, "longrope"));
}

static void check_needs(pe_config *c, const pe_rope_source *s, const char *needs)
{
    char word[40];
    int  used = 0;
    for (const char *at = needs; at && sscanf(at, " %39s%n", word, &used) == 1; at += used)
        if (!pe_config_get(s->words, word))
            pe_build_refuse(c->m, "%s is missing in %s; the rope type needs it", word, s->name);
}

/* ---------------------------------------------------------------- lengths and factors ------- */

static const char length_key[] = "original_max_position_embeddings";

static int64_t length_of(pe_config *c, const json_t *object)
{
    return pe_config_whole(c, object, length_key, 1, INT64_C(1) << 53, 0);
}

/* The original length as the file has it, 0 if it has none. That at top level is for schedules; a temperature
   with another schedule has that of its dictionary. */
static int64_t given_length(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const int64_t of_words = length_of(c, s->words);
    int64_t       of_file  = takes_layers(c) ? 0 : length_of(c, c->file);
    r->length_rule         = of_file ? "the file, at top level" : s->name;
    if (!of_file && c->type.original_length)
        of_file = c->type.original_length, r->length_rule = "the class";
    if (of_words && of_file && of_words != of_file)
        pe_build_warn(c->m, "original-length-conflict", "%s is %lld in %s but %lld %s, which is used%s",
                      length_key, (long long)of_words, s->name, (long long)of_file,
                      pe_text_is(r->length_rule, "the class") ? "for the class" : "at top level",
                      has_length(r) ? "" : " for schedules that read it");
    return of_file && (has_length(r) || !of_words) ? of_file : of_words;
}

/* The file says it, or its class. */
static const char *context_name(const pe_config *c)
{
    return pe_config_gives(c, PE_CONTEXT) ? "max_position_embeddings" : "the class's max_position_embeddings";
}

static void find_length(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const int64_t context = pe_config_size(c, PE_CONTEXT), given = given_length(c, s, r);
    const int     is_told = length_of(c, s->words) || (!takes_layers(c) && length_of(c, c->file));
    r->max_length         = context;
    r->original_length    = given;
    if (!has_length(r) && is_told && strcmp(r->schedule, "ntk") != 0)
        pe_build_warn(c->m, "original-length-ignored", "%s is given, but the schedule %s does not read it",
                      length_key, r->schedule);
    if (pe_text_is(r->schedule, "dynamic") && !context)
        pe_build_refuse(c->m, "max_position_embeddings is missing; the schedule dynamic needs it");
    if (!has_length(r) || given)
        return;
    if (!context)
        pe_build_refuse(c->m, "%s and max_position_embeddings are missing; the schedule %s needs one of them",
                        length_key, r->schedule);
    r->original_length = context;
    r->length_rule     = context_name(c);
    pe_build_warn(c->m, "original-length-missing", "%s is missing; %s %lld is used instead", length_key,
                  context_name(c), (long long)context);
}

/* How far the context was stretched, by its lengths. */
static double stretch(const pe_file_rotation *r)
{
    return r->max_length && r->original_length ? (double)r->max_length / (double)r->original_length : 1;
}

static void find_factor(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->factor      = pe_config_real(c, s->words, "factor", (double)NAN);
    r->factor_rule = s->name;
    if (isnan(r->factor) && has_length(r)) {
        if (pe_text_is(r->schedule, "yarn") && !json_is_null(json_object_get(s->words, "factor")))
            pe_build_refuse(c->m, "factor is missing in %s; the rope type yarn needs it", s->name);
        else if (pe_text_is(r->schedule, "yarn"))
            pe_build_warn(c->m, "factor-inferred", "factor is null; %s / %s = %g is used instead",
                          context_name(c), length_key, stretch(r));
        r->factor      = stretch(r);
        r->factor_rule = pe_build_text(c->m, "%s / original length", context_name(c));
    } else if (!pe_text_is(r->schedule, "llama3") && has_length(r) && r->factor != stretch(r) &&
               stretch(r) != 1 && pe_config_gives(c, PE_CONTEXT))
        pe_build_warn(
            c->m, "factor-vs-max_position",
            "factor is %g, but max_position_embeddings %lld / %lld is %g: the factor is used, which "
            "is for %.15g positions",
            r->factor, (long long)r->max_length, (long long)r->original_length, stretch(r),
            r->factor * (double)r->original_length);
    if (isnan(r->factor))
        r->factor = 1, r->factor_rule = "the default";
    if (!(r->factor > 0 && isfinite(r->factor)))
        pe_build_refuse(c->m, "factor is %g; it must be a finite number above 0", r->factor);
    if (r->factor < 1)
        pe_build_warn(c->m, "factor-below-one", "factor is %g: it would shorten the context", r->factor);
}

/* ---------------------------------------------------------------- numbers of the schedules --- */

/* 0 is absent, as null is. */
static double beta(pe_config *c, const pe_rope_source *s, const char *key, double fallback)
{
    const double x = pe_config_real(c, s->words, key, 0);
    if (x < 0)
        pe_build_refuse(c->m, "%s is %g; it must be positive", key, x);
    return x == 0 ? fallback : x;
}

static void warn_of_yarn(pe_config *c, const pe_file_rotation *r)
{
    const int has_scale = !isnan(r->mscale) && r->mscale != 0,
              has_all   = !isnan(r->mscale_all_dim) && r->mscale_all_dim != 0;
    if (r->beta_fast < r->beta_slow)
        pe_build_warn(c->m, "beta-order", "beta_fast %g is below beta_slow %g", r->beta_fast, r->beta_slow);
    if (has_scale != has_all && isnan(r->attention_factor))
        pe_build_warn(c->m, "mscale-alone",
                      "%s is given without the other: transformers ignores it, DeepSeek's rule does not",
                      has_scale ? "mscale" : "mscale_all_dim");
    if (!r->truncate)
        pe_build_warn(c->m, "truncate-false", "truncate is false: ggml, mlx-lm and others truncate anyway");
}

static const char *given_or_default(const pe_rope_source *s, const char *key)
{
    return pe_config_get(s->words, key) ? s->name : "the default";
}

static void read_yarn(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->fast_rule        = given_or_default(s, "beta_fast");
    r->slow_rule        = given_or_default(s, "beta_slow");
    r->truncate_rule    = given_or_default(s, "truncate");
    r->beta_fast        = beta(c, s, "beta_fast", 32);
    r->beta_slow        = beta(c, s, "beta_slow", 1);
    r->truncate         = pe_config_flag(c, s->words, "truncate", 1);
    r->attention_factor = pe_config_real(c, s->words, "attention_factor", (double)NAN);
    r->mscale           = pe_config_real(c, s->words, "mscale", (double)NAN);
    r->mscale_all_dim   = pe_config_real(c, s->words, "mscale_all_dim", (double)NAN);
    r->magnitude_rule   = !isnan(r->attention_factor) ? "attention_factor" : "transformers' rule for yarn";
    if (pe_text_is(c->type.layers, "main-compress"))
        r->attention_factor = 1, r->magnitude_rule = "DeepSeek-V4 takes 1";
    warn_of_yarn(c, r);
}

static const double *read_factors(pe_config *c, const pe_rope_source *s, const char *key, int64_t pairs)
{
    const json_t *list = pe_config_list(c, s->words, key);
    if ((int64_t)json_array_size(list) != pairs)
        pe_build_refuse(c->m, "%s has %zu numbers; it must have one for each of the %lld pairs that rotate",
                        key, json_array_size(list), (long long)pairs);
    double *x = c->m->status ? NULL : pe_build_alloc(c->m, (size_t)pairs * sizeof *x);
    for (int64_t i = 0; x && i < pairs; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        x[i]                = json_number_value(value);
        if (!json_is_number(value) || !(x[i] > 0))
            pe_build_refuse(c->m, "%s has %s at place %lld; it must hold positive numbers", key,
                            pe_config_shown(c, value), (long long)i);
    }
    return x;
}

static void read_longrope(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->short_factor     = read_factors(c, s, "short_factor", r->dim / 2);
    r->long_factor      = read_factors(c, s, "long_factor", r->dim / 2);
    r->attention_factor = pe_config_real(c, s->words, "attention_factor", (double)NAN);
    r->magnitude_rule =
        !isnan(r->attention_factor) ? "attention_factor" : "sqrt(1 + ln factor / ln original length)";
}

static void read_llama3(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->low_freq_factor  = pe_config_real(c, s->words, "low_freq_factor", 1);
    r->high_freq_factor = pe_config_real(c, s->words, "high_freq_factor", 4);
    if (!(r->low_freq_factor > 0 && r->high_freq_factor > 0))
        pe_build_refuse(c->m, "low_freq_factor is %g and high_freq_factor %g; both must be above 0",
                        r->low_freq_factor, r->high_freq_factor);
    if (r->high_freq_factor <= r->low_freq_factor)
        pe_build_warn(c->m, "freq-factor-order",
                      "high_freq_factor %g is not above low_freq_factor %g: a step, not a ramp",
                      r->high_freq_factor, r->low_freq_factor);
    if (r->max_length && r->original_length >= r->max_length && pe_config_gives(c, PE_CONTEXT))
        pe_build_warn(c->m, "original-length-not-below-max",
                      "%s %lld is not below max_position_embeddings %lld", length_key,
                      (long long)r->original_length, (long long)r->max_length);
}

static void read_mixed(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->mixed_b = pe_config_real(c, s->words, "mixed_b", (double)NAN);
}

static void read_ntk(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    r->alpha = pe_config_real(c, s->words, "alpha", 1);
    if (!(r->alpha > 0))
        pe_build_refuse(c->m, "alpha is %g; it must be above 0", r->alpha);
}

/* PhiMoE has a magnitude of its own for longrope, for either side of the original length; it wants both with
   any schedule. */
static void read_two_magnitudes(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    if (!c->type.needs || pe_text_is(r->schedule, "default"))
        return;
    check_needs(c, s, c->type.needs);
    if (!pe_text_is(r->schedule, "longrope"))
        return;
    r->magnitude      = pe_config_real(c, s->words, "short_mscale", 1);
    r->magnitude_long = pe_config_real(c, s->words, "long_mscale", 1);
    r->magnitude_rule = "short_mscale";
}

/* ---------------------------------------------------------------- which schedule ------------ */

/* Keys that a schedule reads of its dictionary; those in `needs` must be there. */
typedef struct schedule {
    const char *name, *needs, *reads;
    void (*read)(pe_config *c, const pe_rope_source *s, pe_file_rotation *r);
} schedule;

static const schedule *find_schedule(const char *name)
{
    static const char     bands[]     = "factor low_freq_factor high_freq_factor";
    static const schedule schedules[] = {
        {"default", "", "", NULL},
        {"linear", "factor", "factor", NULL},
        {"dynamic", "factor", "factor", NULL},
        {"ntk", "alpha", "alpha factor", read_ntk},
        {"ntk_mixed", "factor", "factor mixed_b", read_mixed},
        {"yarn", "", "factor beta_fast beta_slow attention_factor mscale mscale_all_dim truncate", read_yarn},
        {"longrope", "short_factor long_factor", "factor short_factor long_factor attention_factor",
         read_longrope},
        {"llama3", bands, bands, read_llama3},
        {"proportional", "", "factor", NULL},
    };
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (!strcmp(schedules[i].name, name))
            return &schedules[i];
    return NULL;
}

void pe_config_choose_schedule(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const char *new = pe_config_word(c, s->words, "rope_type"), *old = pe_config_word(c, s->words, "type");
    const char *given = new ? new : old ? old : "default";
    if (new &&old && strcmp(new, old) != 0 && !are_a_pair(old, new) && !are_a_pair(new, old))
        pe_build_warn(c->m, "type-conflict", "%s has type %s and rope_type %s; rope_type is used", s->name,
                      old, new);
    const char *name     = todays_name(c, given);
    const int   is_known = find_schedule(name) &&
                         strcmp(name, "ntk") != 0 && /* a form of dynamic, no name in a file */
                         (c->type.mixed || strcmp(name, "ntk_mixed") != 0);
    if (!is_known)
        pe_build_refuse(
            c->m,
            "the rope type %.60s is not known; known are default, linear, dynamic, yarn, longrope, llama3, "
            "proportional",
            given);
    else if (c->type.only && !pe_text_is_among(c->type.only, name))
        pe_build_refuse(c->m, "the rope type %s is not one that %s has: %s", name, c->type.name,
                        c->type.only);
    if (c->type.alpha && pe_text_is(name, "dynamic") && pe_config_real(c, s->words, "alpha", 0) != 0)
        name = "ntk";
    r->schedule      = is_known ? find_schedule(name)->name : "default";
    r->schedule_rule = pe_text_is(name, "ntk") ? "type dynamic with alpha"
                       : new || old            ? pe_build_text(c->m, "rope type of %s", s->name)
                                               : "no schedule is named";
}

void pe_config_warn_of_unused_keys(pe_config *c, const pe_rope_source *s, const pe_file_rotation *r)
{
    static const char always[] =
        "rope_type type rope_theta partial_rotary_factor original_max_position_embeddings";
    const char *key, *reads = find_schedule(r->schedule)->reads;
    json_t     *value;
    json_object_foreach(s->words, key, value)
    {
        const int is_read = pe_text_is_among(always, key) || pe_text_is_among(reads, key) ||
                            pe_text_is_among(c->type.extra_keys, key) || pe_text_is_among(c->type.needs, key);
        if (!is_read && !json_is_null(value))
            pe_build_warn(c->m, "unused-key", "%.60s in %s is not read: the schedule %s has no such number",
                          key, s->name, r->schedule);
    }
}

void pe_config_read_schedule(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const schedule *chosen = find_schedule(r->schedule);
    r->source              = s->name;
    check_needs(c, s, chosen->needs);
    find_length(c, s, r);
    if (pe_text_is_among(chosen->reads, "factor") && !pe_text_is(chosen->name, "ntk"))
        find_factor(c, s, r);
    if (r->dim == 2 && (pe_text_is(chosen->name, "ntk") || pe_text_is(chosen->name, "dynamic")))
        pe_build_refuse(c->m, "the schedule %s divides by zero where only 2 channels rotate", chosen->name);
    if (chosen->read)
        chosen->read(c, s, r);
    read_two_magnitudes(c, s, r);
}
