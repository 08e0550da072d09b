/* SPDX-License-Identifier: MIT */
/*
 * config_rope.c: the rotations of a config.json, old style and new
 *
 * Old       flat keys (rope_theta ...) and rope_scaling, a dictionary with `type`. New (5.0): rope_parameters, a dictionary
 *           with `rope_type`, or one per layer type for the classes that need it. Where both stand, rope_scaling replaces
 *           rope_parameters whole; for classes with dictionaries per layer type it goes on top of those it is meant for.
 * Winners   base and fraction: dictionary, top level, class. Original length: top level (and the class where it has one),
 *           dictionary, max_position_embeddings.
 * Surprise  A class may bring a whole dictionary: a lone rope_theta beside it is then not read. A fraction that the class
 *           does not read is without effect in the default schedule and fails in every other. mscale of 0 is absent.
 * Numbers   Frequencies and magnitudes are the library's (rotation.h); here are only names, defaults and precedence, and
 *           g(s, mu), which the scores of some models take squared.
 * Source    transformers 5.16, modeling_rope_utils.py and the classes of the types
 */
#include "files/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/rotation.h"

static int is(const char *a, const char *b)
{
    return a && !strcmp(a, b);
}

/* Is word one of the blank-separated words of list? */
static int is_among(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at && n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

/* ---------------------------------------------------------------- which dictionaries --------- */

enum { FULL, LOCAL, KINDS };

/* Where the numbers of one rotation stand. */
typedef struct source {
    json_t     *words;     /* owned; may be empty */
    const char *name;      /* of the dictionary, for sentences and rules */
    int         has_base;  /* the file itself gives this dictionary's rope_theta */
    const char *base_key;  /* at top level */
    double      base, old; /* of the class, now and in 4.57 */
} source;

typedef struct dictionaries {
    source from[KINDS];
    int    is_class; /* the class's own: the file has none */
} dictionaries;

/* "full_attention", or "main" for DeepSeek-V4. */
static const char *label(const pe_config *c, int kind)
{
    const int compresses = is(c->type->layers, "main-compress");
    return kind == FULL ? compresses ? "main" : "full_attention"
           : compresses ? "compress"
                        : "sliding_attention";
}

static int takes_layers(const pe_config *c)
{
    return c->type->local_base > 0;
}

/* A dictionary of dictionaries? */
static int is_layered(const json_t *object)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) if (json_is_object(value)) return 1;
    return 0;
}

/* A dictionary of the file; NULL if absent or empty. */
static const json_t *dictionary(pe_config *c, const char *key)
{
    const json_t *value = pe_config_get(c->file, key);
    if (value && !json_is_object(value))
        pe_config_refuse(c, "%s is %s; it must be an object", key, pe_config_shown(c, value));
    return json_object_size(value) ? value : NULL;
}

static void check_form(pe_config *c, const json_t *scaling, const json_t *parameters)
{
    if (scaling && is_layered(scaling))
        pe_config_refuse(c,
                         "rope_scaling holds dictionaries; one per layer type belongs into rope_parameters");
    else if (parameters && is_layered(parameters) && !takes_layers(c))
        pe_config_refuse(c,
                         "rope_parameters holds a dictionary per layer type, which the type %s does not take",
                         c->is_unknown ? "(not in the table)" : c->type->name);
    else if (parameters && !is_layered(parameters) && takes_layers(c))
        pe_config_refuse(c,
                         "rope_parameters is one dictionary; the type %s takes one per layer type (%s, %s)",
                         c->type->name, label(c, FULL), label(c, LOCAL));
    if (scaling && parameters && !json_equal(scaling, parameters))
        pe_modelfile_warn(c->model, "both-styles",
                          "rope_scaling and rope_parameters are both there and differ; rope_scaling %s",
                          takes_layers(c) ? "goes on top" : "replaces the other, base included");
}

/* The table writes ' for ". */
static json_t *class_dictionary(pe_config *c)
{
    char *text = pe_modelfile_text(c->model, "%s", c->type->rope_default ? c->type->rope_default : "{}");
    for (char *at = text; *at; at++)
        *at = (char)(*at == '\'' ? '"' : *at);
    json_t *made = json_loads(text, 0, NULL);
    if (!made)
        pe_config_no_memory(c);
    return made;
}

static int scaling_is_for(const pe_config *c, int kind)
{
    const char *to = c->type->scaling ? c->type->scaling : "full";
    return !takes_layers(c) ? kind == FULL : is(to, "both") || is(to, kind == FULL ? "full" : "local");
}

/* The dictionary of a layer type: the class's, or the file's; then rope_scaling on top. */
static void layered_source(pe_config *c, source *s, int kind, const json_t *scaling, const json_t *parameters,
                           const json_t *standard)
{
    const json_t *own = pe_config_get(parameters ? parameters : standard, label(c, kind));
    s->words          = own && json_is_object(own) ? json_copy((json_t *)(uintptr_t)own) : json_object();
    s->name = parameters ? pe_modelfile_text(c->model, "rope_parameters.%s", label(c, kind)) : "the class";
    s->has_base = parameters && pe_config_get(own, "rope_theta");
    if (own && !json_is_object(own))
        pe_config_refuse(c, "rope_parameters.%s is %s; it must be an object", label(c, kind),
                         pe_config_shown(c, own));
    if (!scaling || !scaling_is_for(c, kind))
        return;
    s->name     = "rope_scaling";
    s->has_base = s->has_base || pe_config_get(scaling, "rope_theta");
    if (pe_config_get(scaling, "type") && !pe_config_get(scaling, "rope_type"))
        json_object_del(s->words, "rope_type"); /* the one that is given counts */
    json_object_update(s->words, (json_t *)(uintptr_t)scaling);
}

static void flat_source(source *s, const json_t *scaling, const json_t *parameters, const json_t *standard)
{
    const json_t *given = scaling ? scaling : parameters;
    s->words            = json_copy((json_t *)(uintptr_t)(given ? given : standard));
    s->name             = scaling ? "rope_scaling" : parameters ? "rope_parameters" : "the class";
    s->has_base         = given && pe_config_get(given, "rope_theta");
}

static void find_bases(const pe_config *c, source *from)
{
    const pe_model_type *t = c->type;
    from[FULL].base        = t->base;
    from[FULL].old         = t->old_base;
    from[FULL].base_key    = t->base_key ? t->base_key : "rope_theta";
    from[LOCAL].base       = t->local_base;
    from[LOCAL].old        = t->old_local_base;
    from[LOCAL].base_key   = t->local_base_key;
    if (c->is_unknown && !pe_config_get(c->file, "rope_theta"))
        from[FULL].base_key = "rotary_emb_base";
}

/* The classes with a fixed base know no dictionary at all. */
static const json_t *read_dictionary(pe_config *c, const char *name)
{
    const json_t *found = dictionary(c, name);
    if (found && c->type->fixed_base) {
        pe_modelfile_warn(c->model, "unused-key", "%s is not read by the class %s, whose rotation is fixed",
                          name, c->type->name);
        return NULL;
    }
    return found;
}

static void find_dictionaries(pe_config *c, dictionaries *d)
{
    const json_t *scaling    = read_dictionary(c, "rope_scaling"),
                 *parameters = read_dictionary(c, "rope_parameters");
    json_t *standard         = class_dictionary(c);
    check_form(c, scaling, parameters);
    d->is_class = !scaling && !parameters && c->type->rope_default;
    for (int kind = 0; kind < KINDS; kind++)
        if (takes_layers(c))
            layered_source(c, &d->from[kind], kind, scaling, parameters, standard);
        else
            flat_source(&d->from[kind], scaling, parameters, standard);
    find_bases(c, d->from);
    if (!d->from[FULL].words || !d->from[LOCAL].words)
        pe_config_no_memory(c);
    if (d->is_class)
        pe_modelfile_warn(c->model, "schedule-default", "the file names no schedule; the class %s brings one",
                          c->type->name);
    json_decref(standard);
}

/* ---------------------------------------------------------------- base ---------------------- */

static double checked_base(pe_config *c, const char *where, double base)
{
    if (!c->status && !(base > 1 && isfinite(base)))
        pe_config_refuse(c, "%s is %g; a base must be a finite number above 1", where, base);
    return base;
}

static void find_base(pe_config *c, const source *s, pe_rotation *r)
{
    const char  *key = c->type->fixed_base ? NULL : s->base_key;
    const double of_words =
        c->type->fixed_base ? (double)NAN : pe_config_real(c, s->words, "rope_theta", (double)NAN);
    const double of_file = key ? pe_config_real(c, c->file, key, (double)NAN) : (double)NAN;
    r->base              = !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : s->base;
    r->base_rule         = !isnan(of_words)  ? pe_modelfile_text(c->model, "rope_theta of %s", s->name)
                           : !isnan(of_file) ? pe_modelfile_text(c->model, "%s of the file", key)
                           : c->is_unknown   ? "the usual standard"
                                           : pe_modelfile_text(c->model, "standard of the class %s", c->type->name);
    if (!isnan(of_words) && !isnan(of_file) && of_words != of_file)
        pe_modelfile_warn(c->model, "base-conflict",
                          "rope_theta is %g in %s but %s is %g at top level; %g counts", of_words, s->name,
                          key, of_file, of_words);
    if (c->type->ratio_key) {
        r->base *= pe_config_real(c, c->file, c->type->ratio_key, 1);
        r->base_rule = pe_modelfile_text(c->model, "%g times %s", s->base, c->type->ratio_key);
    }
    checked_base(c, c->type->ratio_key ? c->type->ratio_key : "rope_theta", r->base);
}

static void warn_of_default_base(pe_config *c, const dictionaries *d)
{
    int has_old = 0;
    for (int kind = 0; kind < (takes_layers(c) ? KINDS : 1); kind++) {
        const source *s = &d->from[kind];
        if (c->type->fixed_base || s->has_base || pe_config_get(c->file, s->base_key))
            return;
        has_old |= s->old != 0;
    }
    pe_modelfile_warn(c->model, "base-default", "the file gives no base; %g is the standard %s%s",
                      d->from[FULL].base, c->is_unknown ? "of llama" : "of the class ",
                      c->is_unknown ? "" : c->type->name);
    if (has_old)
        pe_modelfile_warn(c->model, "base-default-changed",
                          "the standard base of the class %s was another in transformers 4.57: %g",
                          c->type->name, d->from[FULL].old ? d->from[FULL].old : d->from[LOCAL].old);
}

/* ---------------------------------------------------------------- schedule ------------------ */

/* Keys that a schedule reads of its dictionary; those in `needs` must be there. */
typedef struct schedule {
    const char *name, *needs, *reads;
    int         has_length; /* it has an original length */
} schedule;

static const schedule schedules[] = {
    {"default", "", "", 0},
    {"linear", "factor", "factor", 0},
    {"dynamic", "factor", "factor", 0},
    {"ntk", "alpha", "alpha factor", 0},
    {"yarn", "", "factor beta_fast beta_slow attention_factor mscale mscale_all_dim truncate", 1},
    {"longrope", "short_factor long_factor", "factor short_factor long_factor attention_factor", 1},
    {"llama3", "factor low_freq_factor high_freq_factor", "factor low_freq_factor high_freq_factor", 1},
    {"proportional", "", "factor", 0},
};

static const schedule *find_schedule(const char *name)
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
    const int                allowed  = is_among(c->type->only, "longrope") ? 3 : 2;
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

static const char *given_name(pe_config *c, const source *s)
{
    const char *new = pe_config_word(c, s->words, "rope_type"), *old = pe_config_word(c, s->words, "type");
    if (new &&old && strcmp(new, old) != 0 && !are_a_pair(old, new) && !are_a_pair(new, old))
        pe_modelfile_warn(c->model, "type-conflict", "%s has type %s and rope_type %s; rope_type counts",
                          s->name, old, new);
    return new ? new : old ? old : "default";
}

static const schedule *choose_schedule(pe_config *c, const source *s, pe_rotation *r)
{
    const char     *given  = given_name(c, s);
    const char     *name   = todays_name(c, given);
    const schedule *chosen = find_schedule(name);
    if (!chosen)
        pe_config_refuse(
            c,
            "the rope type %.60s is not known; known are default, linear, dynamic, yarn, longrope, llama3, "
            "proportional",
            given);
    else if (c->type->only && !is_among(c->type->only, name))
        pe_config_refuse(c, "the rope type %s is not one that %s has: %s", name, c->type->name,
                         c->type->only);
    if (c->type->alpha && is(name, "dynamic") && pe_config_real(c, s->words, "alpha", 0) != 0)
        chosen = &schedules[3];
    chosen           = chosen ? chosen : schedules;
    r->schedule      = chosen->name;
    r->schedule_rule = is(chosen->name, "ntk") ? "type dynamic with alpha"
                       : pe_config_get(s->words, "rope_type") || pe_config_get(s->words, "type")
                           ? pe_modelfile_text(c->model, "rope type of %s", s->name)
                           : "no schedule is named";
    return chosen;
}

static void check_needs(pe_config *c, const source *s, const char *needs)
{
    char word[40];
    int  used = 0;
    for (const char *at = needs; at && sscanf(at, " %39s%n", word, &used) == 1; at += used)
        if (!pe_config_get(s->words, word))
            pe_config_refuse(c, "%s is missing in %s; the rope type needs it", word, s->name);
}

static void warn_of_unused_keys(pe_config *c, const source *s, const schedule *chosen)
{
    static const char always[] =
        "rope_type type rope_theta partial_rotary_factor original_max_position_embeddings";
    const char *key;
    json_t     *value;
    json_object_foreach(s->words, key, value)
    {
        const int is_read = is_among(always, key) || is_among(chosen->reads, key) ||
                            is_among(c->type->extra_keys, key) || is_among(c->type->needs, key);
        if (!is_read && !json_is_null(value))
            pe_modelfile_warn(c->model, "unused-key",
                              "%.60s in %s is read by nobody: the schedule %s has no such number", key,
                              s->name, chosen->name);
    }
}

/* ---------------------------------------------------------------- widths -------------------- */

static void warn_of_given_width(pe_config *c, int64_t width)
{
    const int64_t given = pe_config_whole(c, c->file, "head_dim", 1, PE_MODEL_WIDEST, width);
    if (given != width)
        pe_modelfile_warn(c->model, "head_dim-mismatch",
                          "head_dim is %lld, but the class never reads it: hidden_size / heads = %lld counts",
                          (long long)given, (long long)width);
}

static int64_t key_width(pe_config *c, pe_rotation *r)
{
    const char   *own   = pe_config_get(c->file, c->type->head_dim_key) ? c->type->head_dim_key : "head_dim";
    const int64_t given = pe_config_whole(c, c->file, own, 1, PE_MODEL_WIDEST, 0);
    const int64_t standard = c->is_unknown ? 0 : c->type->head_dim;
    r->head_rule           = given      ? pe_modelfile_text(c->model, "%s of the file", own)
                             : standard ? pe_modelfile_text(c->model, "standard of the class %s", c->type->name)
                                        : "hidden_size / heads";
    return given ? given : standard ? standard : pe_config_derived_width(c);
}

static void mla_width(pe_config *c, pe_rotation *r)
{
    const int64_t alias =
        pe_config_whole(c, c->file, c->type->head_dim_key, 1, PE_MODEL_WIDEST, c->type->rope_dim);
    const int64_t nope =
        pe_config_whole(c, c->file, "qk_nope_head_dim", 0, PE_MODEL_WIDEST, c->type->nope_dim);
    r->dim       = pe_config_whole(c, c->file, "qk_rope_head_dim", 1, PE_MODEL_WIDEST, alias);
    r->head_dim  = nope + r->dim;
    r->head_rule = "qk_nope_head_dim + qk_rope_head_dim";
    r->dim_rule  = "qk_rope_head_dim";
}

/* Head width; for the heads whose last channels turn, those as well. */
static void find_width(pe_config *c, pe_rotation *r, int is_full)
{
    if (is(c->type->head, "mla"))
        mla_width(c, r);
    else if (is(c->type->head, "derived")) {
        r->head_dim  = pe_config_derived_width(c);
        r->head_rule = "hidden_size / heads";
        warn_of_given_width(c, r->head_dim);
    } else
        r->head_dim = key_width(c, r);
    if (is_full && c->type->full_head_dim) {
        r->head_dim =
            pe_config_whole(c, c->file, "global_head_dim", 1, PE_MODEL_WIDEST, c->type->full_head_dim);
        r->head_rule = "global_head_dim";
    }
}

/* ---------------------------------------------------------------- fraction ------------------ */

static double find_fraction(pe_config *c, const source *s, const char **rule)
{
    const char  *key      = c->type->partial_key ? c->type->partial_key : "partial_rotary_factor";
    const double of_words = pe_config_real(c, s->words, "partial_rotary_factor", (double)NAN);
    const double of_file  = pe_config_real(c, c->file, key, (double)NAN);
    const double standard = c->type->partial > 0 ? c->type->partial : 1;
    *rule                 = !isnan(of_words) ? s->name : !isnan(of_file) ? "the file" : "the class";
    if (!isnan(of_words) && !isnan(of_file) && of_words != of_file)
        pe_modelfile_warn(c->model, "partial-conflict",
                          "the fraction that rotates is %g in %s but %g at top level; %g counts", of_words,
                          s->name, of_file, of_words);
    return !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : standard;
}

/* Python's int(): towards zero. Refused where no whole number of channels could come out. */
static int64_t part_of(pe_config *c, int64_t width, double fraction)
{
    if (!(fraction > 0 && fraction <= 1))
        pe_config_refuse(c, "the fraction of a head that rotates is %g; it must lie above 0 and up to 1",
                         fraction);
    return c->status ? 2 : (int64_t)((double)width * fraction);
}

static int is_scaled(const pe_rotation *r)
{
    return strcmp(r->schedule, "default") != 0;
}

static void unread_fraction(pe_config *c, pe_rotation *r, double fraction)
{
    if (fraction == 1)
        return;
    if (is_scaled(r))
        pe_config_refuse(
            c, "partial_rotary_factor %g with the schedule %s: the class %s rotates whole heads only",
            fraction, r->schedule, c->is_unknown ? "(read as llama)" : c->type->name);
    pe_modelfile_warn(c->model, "partial-ignored",
                      "partial_rotary_factor is %g, but the class %s does not read it", fraction,
                      c->is_unknown ? "(read as llama)" : c->type->name);
}

/* MLA: the width of the rotated part is a size of its own; a fraction that says the same is no contradiction. */
static void mla_dim(pe_config *c, const source *s, pe_rotation *r)
{
    const char  *where;
    const double fraction = find_fraction(c, s, &where);
    if (fraction != 1 && part_of(c, r->head_dim, fraction) != r->dim)
        unread_fraction(c, r, fraction);
}

static int has_fraction(const pe_config *c, const source *s)
{
    return pe_config_get(s->words, "partial_rotary_factor") ||
           pe_config_get(c->file, "partial_rotary_factor");
}

static void fraction_dim(pe_config *c, const source *s, pe_rotation *r)
{
    const char   *where;
    const double  fraction = find_fraction(c, s, &where);
    const int64_t counted  = c->type->rotary_dim_key ? pe_config_whole(c, c->file, "rotary_dim", 1,
                                                                       PE_MODEL_WIDEST, c->type->rotary_dim)
                                                     : 0;
    r->dim                 = r->head_dim;
    r->dim_rule            = "the whole head";
    if (is(r->schedule, "proportional")) {
        r->partial  = fraction;
        r->dim_rule = "proportional: pairs over the whole head";
        part_of(c, r->head_dim, fraction);
        return;
    }
    if (counted)
        r->dim = counted, r->dim_rule = "rotary_dim";
    else if (c->type->partial_read && fraction != 1) {
        r->dim      = part_of(c, r->head_dim, fraction);
        r->dim_rule = pe_modelfile_text(c->model, "fraction %g of head_dim, from %s", fraction, where);
    } else if (!c->type->partial_read)
        unread_fraction(c, r, fraction);
}

static void find_dim(pe_config *c, const source *s, pe_rotation *r)
{
    if (is(c->type->head, "mla"))
        mla_dim(c, s, r);
    else if (is(c->type->head, "tail") && !has_fraction(c, s)) {
        r->dim      = pe_config_whole(c, c->file, "qk_rope_head_dim", 1, PE_MODEL_WIDEST, c->type->rope_dim);
        r->dim_rule = "qk_rope_head_dim";
    } else
        fraction_dim(c, s, r);
    if (!c->status && (r->dim < 2 || r->dim % 2 || r->dim > r->head_dim))
        pe_config_refuse(
            c, "%lld channels of a head of %lld would rotate; it must be an even number from 2 to the width",
            (long long)r->dim, (long long)r->head_dim);
    r->offset = is(c->type->head, "mla") || is(c->type->head, "tail") ? r->head_dim - r->dim : 0;
}

/* ---------------------------------------------------------------- lengths and factors ------- */

static const char length_key[] = "original_max_position_embeddings";

static int64_t length_of(pe_config *c, const json_t *object)
{
    return pe_config_whole(c, object, length_key, 1, INT64_C(1) << 53, 0);
}

/* The original length as the file has it, 0 if it has none. */
static int64_t given_length(pe_config *c, const source *s, pe_rotation *r)
{
    const int64_t of_words = length_of(c, s->words);
    int64_t       of_file  = takes_layers(c) ? 0 : length_of(c, c->file);
    r->length_rule         = of_file ? "the file, at top level" : s->name;
    if (!of_file && c->type->original_length)
        of_file = c->type->original_length, r->length_rule = "the class";
    if (of_words && of_file && of_words != of_file)
        pe_modelfile_warn(c->model, "original-length-conflict", "%s is %lld in %s but %lld %s, which counts",
                          length_key, (long long)of_words, s->name, (long long)of_file,
                          is(r->length_rule, "the class") ? "for the class" : "at top level");
    return of_file ? of_file : of_words;
}

static void find_length(pe_config *c, const source *s, const schedule *chosen, pe_rotation *r)
{
    const int64_t context = pe_config_context(c), given = given_length(c, s, r);
    const int     is_told = length_of(c, s->words) || (!takes_layers(c) && length_of(c, c->file));
    r->max_length         = context;
    r->original_length    = given;
    if (!chosen->has_length && is_told && strcmp(chosen->name, "ntk") != 0)
        pe_modelfile_warn(c->model, "original-length-ignored",
                          "%s is given, but the schedule %s does not read it", length_key, chosen->name);
    if (is(chosen->name, "dynamic") && !context)
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

static void find_factor(pe_config *c, const source *s, const schedule *chosen, pe_rotation *r)
{
    r->factor      = pe_config_real(c, s->words, "factor", (double)NAN);
    r->factor_rule = s->name;
    if (isnan(r->factor) && chosen->has_length) {
        if (is(chosen->name, "yarn") && !json_is_null(json_object_get(s->words, "factor")))
            pe_config_refuse(c, "factor is missing in %s; the rope type yarn needs it", s->name);
        else if (is(chosen->name, "yarn"))
            pe_modelfile_warn(c->model, "factor-inferred",
                              "factor is null; max_position_embeddings / %s = %g is taken", length_key,
                              stretch(r));
        r->factor      = stretch(r);
        r->factor_rule = "max_position_embeddings / original length";
    } else if (!is(chosen->name, "llama3") && chosen->has_length && r->factor != stretch(r) &&
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
static double beta(pe_config *c, const source *s, const char *key, double standard)
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

static const char *given_or_standard(const source *s, const char *key)
{
    return pe_config_get(s->words, key) ? s->name : "the standard";
}

static void read_yarn(pe_config *c, const source *s, pe_rotation *r)
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
    if (is(c->type->layers, "main-compress"))
        r->attention_factor = 1, r->magnitude_rule = "DeepSeek-V4 takes 1";
    warn_of_yarn(c, r);
}

static const double *read_factors(pe_config *c, const source *s, const char *key, int64_t pairs)
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

static void read_longrope(pe_config *c, const source *s, pe_rotation *r)
{
    r->short_factor     = read_factors(c, s, "short_factor", r->dim / 2);
    r->long_factor      = read_factors(c, s, "long_factor", r->dim / 2);
    r->attention_factor = pe_config_real(c, s->words, "attention_factor", (double)NAN);
    r->magnitude_rule =
        !isnan(r->attention_factor) ? "attention_factor" : "sqrt(1 + ln factor / ln original length)";
}

static void read_llama3(pe_config *c, const source *s, pe_rotation *r)
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

static void read_ntk(pe_config *c, const source *s, pe_rotation *r)
{
    r->alpha = pe_config_real(c, s->words, "alpha", 1);
    if (!(r->alpha > 0))
        pe_config_refuse(c, "alpha is %g; it must be above 0", r->alpha);
}

/* PhiMoE has a magnitude of its own for either side of the original length. */
static void read_two_magnitudes(pe_config *c, const source *s, pe_rotation *r)
{
    if (!c->type->needs || !is_scaled(r))
        return;
    check_needs(c, s, c->type->needs);
    r->magnitude      = pe_config_real(c, s->words, "short_mscale", 1);
    r->magnitude_long = pe_config_real(c, s->words, "long_mscale", 1);
    r->magnitude_rule = "short_mscale";
}

static void read_schedule(pe_config *c, const source *s, const schedule *chosen, pe_rotation *r)
{
    static const struct {
        const char *name;
        void (*read)(pe_config *c, const source *s, pe_rotation *r);
    } readers[] = {
        {"yarn", read_yarn}, {"longrope", read_longrope}, {"llama3", read_llama3}, {"ntk", read_ntk}};
    r->source = s->name;
    check_needs(c, s, chosen->needs);
    find_length(c, s, chosen, r);
    if (is_among(chosen->reads, "factor") && strcmp(chosen->name, "ntk") != 0)
        find_factor(c, s, chosen, r);
    if (!c->status && r->dim == 2 && (is(chosen->name, "ntk") || is(chosen->name, "dynamic")))
        pe_config_refuse(c, "the schedule %s divides by zero where only 2 channels rotate", chosen->name);
    for (size_t i = 0; !c->status && i < sizeof readers / sizeof *readers; i++)
        if (is(readers[i].name, chosen->name))
            readers[i].read(c, s, r);
    if (!c->status)
        read_two_magnitudes(c, s, r);
}

/* ---------------------------------------------------------------- axes, temperature, scores -- */

static int64_t sum_of(const int64_t *x, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static void find_sections(pe_config *c, const source *s, pe_rotation *r)
{
    const json_t *list = pe_config_list(c, s->words, "mrope_section");
    if (!c->type->axis_rule || c->status)
        return;
    r->axes          = 3;
    r->axis_rule     = c->type->axis_rule;
    r->sections_rule = list ? pe_modelfile_text(c->model, "mrope_section of %s", s->name) : "the class";
    memcpy(r->sections, c->type->sections, sizeof c->type->sections);
    if (!list && !sum_of(r->sections, 3))
        pe_config_refuse(c, "mrope_section is missing; the type %s needs it", c->type->name);
    if (list && json_array_size(list) != 3)
        pe_config_refuse(c, "mrope_section has %zu numbers; it must have 3: time, height, width",
                         json_array_size(list));
    for (size_t a = 0; list && !c->status && a < 3; a++) {
        const json_t *value = json_array_get(list, a);
        r->sections[a]      = json_integer_value(value);
        if (!json_is_integer(value) || r->sections[a] < 0 || r->sections[a] > PE_MODEL_WIDEST)
            pe_config_refuse(c, "mrope_section has %s; it must hold numbers of pairs",
                             pe_config_shown(c, value));
    }
    if (c->status || sum_of(r->sections, 3) == r->dim / 2)
        return;
    if (is(r->axis_rule, "sections"))
        pe_config_refuse(c, "mrope_section sums to %lld; it must sum to the %lld pairs that rotate",
                         (long long)sum_of(r->sections, 3), (long long)r->dim / 2);
    pe_modelfile_warn(c->model, "sections-sum",
                      "mrope_section sums to %lld of %lld pairs; the rest follows time",
                      (long long)sum_of(r->sections, 3), (long long)r->dim / 2);
}

/* Ministral's stands in the dictionary and acts on every layer. */
static void find_temperature(pe_config *c, const source *s, pe_rotation *r)
{
    if (!is(c->type->temperature, "ministral") || !pe_config_get(s->words, "llama_4_scaling_beta"))
        return;
    r->temperature        = "ministral";
    r->temperature_scale  = pe_config_real(c, s->words, "llama_4_scaling_beta", 0);
    r->temperature_length = r->original_length ? r->original_length : pe_config_context(c);
    if (!r->temperature_length)
        pe_config_refuse(c, "%s is missing; llama_4_scaling_beta needs it", length_key);
}

/* Llama 4's is for the layers that do not rotate. */
static void llama4_temperature(pe_config *c, pe_rotation *r)
{
    if (!is(c->type->temperature, "llama4") || !pe_config_flag(c, c->file, "attn_temperature_tuning", 1))
        return;
    r->temperature        = "llama4";
    r->temperature_scale  = pe_config_real(c, c->file, "attn_scale", 0.1);
    r->temperature_length = pe_config_whole(c, c->file, "floor_scale", 1, INT64_C(1) << 53, 8192);
}

/* g of the factor, which DeepSeek's classes put on the scores, squared. */
static double yarn_on_scores(const pe_config *c, const source *s, const pe_rotation *r)
{
    const json_t *value = pe_config_get(s->words, "mscale_all_dim");
    const double  mu    = json_number_value(value);
    const double  g     = is_scaled(r) && mu != 0 && !isnan(r->factor) ? pe_yarn_scale(r->factor, mu) : 1;
    (void)c;
    return g * g;
}

static void find_score_scale(pe_config *c, const source *s, pe_rotation *r)
{
    const char  *key      = c->type->score;
    const double by_width = 1 / sqrt((double)r->head_dim);
    r->score_scale        = by_width;
    r->score_rule         = "1 / sqrt(head_dim)";
    if (is(key, "one"))
        r->score_scale = 1, r->score_rule = "by the model type";
    else if (is(key, "mla-yarn")) {
        const double g2 = s ? yarn_on_scores(c, s, r) : 1;
        r->score_scale *= g2;
        r->score_rule =
            g2 == 1 ? r->score_rule : "1 / sqrt(head_dim), times g(factor, mscale_all_dim) squared";
    } else if (is(key, "query_pre_attn_scalar")) {
        const double x = pe_config_real(c, c->file, key, c->type->score_standard);
        if (!c->status && !(x > 0))
            pe_config_refuse(c, "%s is %g; it must be above 0", key, x);
        r->score_scale = 1 / sqrt(x), r->score_rule = "1 / sqrt(query_pre_attn_scalar)";
    } else if (is(key, "attention_multiplier")) {
        const double standard = c->type->score_standard > 0 ? c->type->score_standard : by_width;
        r->score_scale        = pe_config_real(c, c->file, key, standard);
        r->score_rule         = key;
    }
}

/* ---------------------------------------------------------------- one rotation -------------- */

static void find_layout(pe_config *c, pe_rotation *r)
{
    const json_t *value = pe_config_get(c->file, c->type->layout_key);
    r->layout           = c->type->layout;
    r->layout_rule      = c->is_unknown ? "as llama has it: a guess"
                                        : pe_modelfile_text(c->model, "by the model type %s", c->type->name);
    r->inverse          = c->type->inverse;
    if (value && !pe_config_flag(c, c->file, c->type->layout_key, 1))
        r->layout = "half", r->layout_rule = pe_modelfile_text(c->model, "%s is false", c->type->layout_key);
}

static pe_rotation read_rotation(pe_config *c, const source *s, int is_full)
{
    pe_rotation     r      = pe_rotation_none();
    const schedule *chosen = choose_schedule(c, s, &r);
    r.dims                 = pe_config_dims(c);
    find_layout(c, &r);
    find_base(c, s, &r);
    find_width(c, &r, is_full);
    if (!c->status)
        find_dim(c, s, &r);
    if (!c->status)
        read_schedule(c, s, chosen, &r);
    if (!c->status) {
        find_sections(c, s, &r);
        find_temperature(c, s, &r);
        find_score_scale(c, s, &r);
        warn_of_unused_keys(c, s, chosen);
    }
    return r;
}

static void warn_of_dialect(pe_config *c, const pe_rotation *r, const posenc_model_group *g)
{
    const posenc_fact *magnitude = posenc_model_fact(g, "magnitude");
    const double       usual     = pe_yarn_scale(r->factor, 1);
    if (is(r->schedule, "yarn") && magnitude && fabs(magnitude->real - usual) > 1e-9)
        pe_modelfile_warn(
            c->model, "magnitude-dialect",
            "the magnitude is %.6g, where 0.1 ln factor + 1 is %.6g: engines disagree on this file",
            magnitude->real, usual);
}

static void add_rotation(pe_config *c, const source *s, const char *kinds, int64_t depth, char kind)
{
    posenc_model_group *g = NULL;
    const pe_rotation   r = read_rotation(c, s, kind == PE_FULL);
    if (!c->status)
        c->status = pe_rotation_group(c->model, &g, &r, c->path, c->err);
    if (c->status)
        return;
    pe_modelfile_layers(c->model, g, kinds, depth, kind);
    warn_of_dialect(c, &r, g);
}

static void add_nope(pe_config *c, const char *kinds, int64_t depth)
{
    pe_rotation r = pe_rotation_none();
    r.dims        = pe_config_dims(c);
    find_width(c, &r, 0);
    if (c->status)
        return;
    find_score_scale(c, NULL, &r);
    llama4_temperature(c, &r);
    if (!c->status)
        pe_modelfile_layers(c->model, pe_nope_group(c->model, &r), kinds, depth, PE_NOPE);
}

static int is_used(const char *kinds, char kind)
{
    return kinds && strchr(kinds, kind);
}

void pe_config_rope(pe_config *c)
{
    dictionaries d = {0};
    int64_t      depth;
    char        *kinds = pe_config_kinds(c, &depth);
    if (!c->status)
        find_dictionaries(c, &d);
    if (!c->status)
        warn_of_default_base(c, &d);
    if (!c->status && is_used(kinds, PE_FULL))
        add_rotation(c, &d.from[FULL], kinds, depth, PE_FULL);
    if (!c->status && is_used(kinds, PE_LOCAL))
        add_rotation(c, &d.from[LOCAL], kinds, depth, PE_LOCAL);
    if (!c->status && is_used(kinds, PE_NOPE))
        add_nope(c, kinds, depth);
    pe_modelfile_info(c->model)->max_positions = pe_config_context(c);
    for (int kind = 0; kind < KINDS; kind++)
        json_decref(d.from[kind].words);
}

/* ---------------------------------------------------------------- no rotation at all -------- */

/* Jamba: one attention layer in each period. */
static void periodic_kinds(pe_config *c, char *kinds, int64_t depth)
{
    const int64_t period =
        pe_config_whole(c, c->file, "attn_layer_period", 1, PE_MODEL_DEEPEST, c->type->period);
    const int64_t offset =
        pe_config_whole(c, c->file, "attn_layer_offset", 0, PE_MODEL_DEEPEST, c->type->period_offset);
    for (int64_t i = 0; i < depth; i++)
        kinds[i] = i % period == offset ? PE_NOPE : PE_NO_ATTENTION;
}

void pe_config_nope(pe_config *c)
{
    int64_t depth;
    char   *kinds = pe_config_kinds(c, &depth);
    if (!kinds)
        return;
    for (int64_t i = 0; i < depth; i++)
        kinds[i] = kinds[i] == PE_FULL ? PE_NOPE : kinds[i];
    if (c->type->period)
        periodic_kinds(c, kinds, depth);
    if (!c->status && is_used(kinds, PE_NOPE))
        add_nope(c, kinds, depth);
    pe_modelfile_info(c->model)->max_positions = pe_config_context(c);
}
