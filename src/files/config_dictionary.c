/* SPDX-License-Identifier: MIT */
/*
 * config_dictionary.c: where the numbers of a rotation stand in a config.json, old style and new
 *
 * Old       flat keys (rope_theta ...) and rope_scaling, a dictionary with `type`. New (5.0):
 *           rope_parameters, a dictionary with `rope_type`, or one per layer type for the classes that need
 *           it. Where both stand, rope_scaling replaces rope_parameters whole; for classes with dictionaries
 *           per layer type it goes on top of those it is meant for.
 * Base      dictionary, top level, class.
 * Surprise  A class may bring a whole dictionary: a lone rope_theta beside it is then not read.
 * Source    transformers 5.16, modeling_rope_utils.py and the classes of the types
 */
#include "files/config_rope.h"

#include <math.h>
#include <string.h>

int pe_is_among(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at && n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

int pe_rope_takes_layers(const pe_config *c)
{
    return c->type->local_base > 0;
}

/* ---------------------------------------------------------------- which dictionaries --------- */

/* "full_attention", or "main" for DeepSeek-V4. */
static const char *label(const pe_config *c, int kind)
{
    const int compresses = pe_is(c->type->layers, "main-compress");
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
    else if (parameters && is_layered(parameters) && !pe_rope_takes_layers(c))
        pe_config_refuse(c,
                         "rope_parameters holds a dictionary per layer type, which the type %s does not take",
                         c->is_unknown ? "(not in the table)" : c->type->name);
    else if (parameters && !is_layered(parameters) && pe_rope_takes_layers(c))
        pe_config_refuse(c,
                         "rope_parameters is one dictionary; the type %s takes one per layer type (%s, %s)",
                         c->type->name, label(c, PE_SOURCE_FULL), label(c, PE_SOURCE_LOCAL));
    if (scaling && parameters && !json_equal(scaling, parameters))
        pe_modelfile_warn(c->model, "both-styles",
                          "rope_scaling and rope_parameters are both there and differ; rope_scaling %s",
                          pe_rope_takes_layers(c) ? "goes on top" : "replaces the other, base included");
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
    return !pe_rope_takes_layers(c)
               ? kind == PE_SOURCE_FULL
               : pe_is(to, "both") || pe_is(to, kind == PE_SOURCE_FULL ? "full" : "local");
}

/* The dictionary of a layer type: the class's, or the file's; then rope_scaling on top. */
static void layered_source(pe_config *c, pe_rope_source *s, int kind, const json_t *scaling,
                           const json_t *parameters, const json_t *standard)
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

static void flat_source(pe_rope_source *s, const json_t *scaling, const json_t *parameters,
                        const json_t *standard)
{
    const json_t *given = scaling ? scaling : parameters;
    s->words            = json_copy((json_t *)(uintptr_t)(given ? given : standard));
    s->name             = scaling ? "rope_scaling" : parameters ? "rope_parameters" : "the class";
    s->has_base         = given && pe_config_get(given, "rope_theta");
}

static void find_bases(const pe_config *c, pe_rope_source *from)
{
    const pe_model_type *t         = c->type;
    from[PE_SOURCE_FULL].base      = t->base;
    from[PE_SOURCE_FULL].old       = t->old_base;
    from[PE_SOURCE_FULL].base_key  = t->base_key ? t->base_key : "rope_theta";
    from[PE_SOURCE_LOCAL].base     = t->local_base;
    from[PE_SOURCE_LOCAL].old      = t->old_local_base;
    from[PE_SOURCE_LOCAL].base_key = t->local_base_key;
    if (c->is_unknown && !pe_config_get(c->file, "rope_theta"))
        from[PE_SOURCE_FULL].base_key = "rotary_emb_base";
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

void pe_rope_find_sources(pe_config *c, pe_rope_sources *d)
{
    const json_t *scaling    = read_dictionary(c, "rope_scaling"),
                 *parameters = read_dictionary(c, "rope_parameters");
    json_t *standard         = class_dictionary(c);
    check_form(c, scaling, parameters);
    d->is_class = !scaling && !parameters && c->type->rope_default;
    for (int kind = 0; kind < PE_SOURCES; kind++)
        if (pe_rope_takes_layers(c))
            layered_source(c, &d->from[kind], kind, scaling, parameters, standard);
        else
            flat_source(&d->from[kind], scaling, parameters, standard);
    find_bases(c, d->from);
    if (!d->from[PE_SOURCE_FULL].words || !d->from[PE_SOURCE_LOCAL].words)
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

static const char *rule_of_class(pe_config *c, const pe_rope_source *s)
{
    if (s->old == 0)
        return pe_modelfile_text(c->model, "standard of the class %s", c->type->name);
    return pe_modelfile_text(c->model, "standard of the class %s (%.15g in transformers 4.57)", c->type->name,
                             s->old);
}

void pe_rope_find_base(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    const char  *key = c->type->fixed_base ? NULL : s->base_key;
    const double of_words =
        c->type->fixed_base ? (double)NAN : pe_config_real(c, s->words, "rope_theta", (double)NAN);
    const double of_file = key ? pe_config_real(c, c->file, key, (double)NAN) : (double)NAN;
    r->base              = !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : s->base;
    r->base_rule         = !isnan(of_words)  ? pe_modelfile_text(c->model, "rope_theta of %s", s->name)
                           : !isnan(of_file) ? pe_modelfile_text(c->model, "%s of the file", key)
                           : c->is_unknown   ? "the usual standard"
                                             : rule_of_class(c, s);
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

/* "500000", or "1000000 and 10000" where full and sliding layers differ: what is taken where the file has no
   base. */
static const char *standards(pe_config *c, const pe_rope_sources *d)
{
    double base[PE_SOURCES];
    for (int kind = 0; kind < PE_SOURCES; kind++)
        base[kind] = pe_config_real(c, d->from[kind].words, "rope_theta", d->from[kind].base);
    if (!pe_rope_takes_layers(c) || base[PE_SOURCE_FULL] == base[PE_SOURCE_LOCAL])
        return pe_modelfile_text(c->model, "%.15g is", base[PE_SOURCE_FULL]);
    return pe_modelfile_text(c->model, "%.15g (%s) and %.15g (%s) are", base[PE_SOURCE_FULL],
                             label(c, PE_SOURCE_FULL), base[PE_SOURCE_LOCAL], label(c, PE_SOURCE_LOCAL));
}

/* A base under a name that this class passes over. */
static const char *unread_base(const pe_config *c)
{
    static const char *const names[] = {"rope_theta", "rotary_emb_base"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pe_config_get(c->file, names[i]))
            return names[i];
    return NULL;
}

static void warn_of_standard(pe_config *c, const pe_rope_sources *d)
{
    const char *unread = unread_base(c), *taken = standards(c, d);
    if (c->is_unknown)
        pe_modelfile_warn(c->model, "base-default", "the file gives no base; %s the standard of llama",
                          taken);
    else if (unread)
        pe_modelfile_warn(c->model, "base-default",
                          "the file gives %s, which the class %s does not read; %s its standard", unread,
                          c->type->name, taken);
    else
        pe_modelfile_warn(c->model, "base-default", "the file gives no base; %s the standard of the class %s",
                          taken, c->type->name);
}

void pe_rope_warn_of_base(pe_config *c, const pe_rope_sources *d)
{
    double old = 0;
    for (int kind = 0; kind < (pe_rope_takes_layers(c) ? PE_SOURCES : 1); kind++) {
        const pe_rope_source *s = &d->from[kind];
        if (c->type->fixed_base || s->has_base || pe_config_get(c->file, s->base_key))
            return;
        old = old != 0 ? old : s->old;
    }
    warn_of_standard(c, d);
    if (old != 0)
        pe_modelfile_warn(c->model, "base-default-changed",
                          "the standard base of the class %s was another in transformers 4.57: %.15g",
                          c->type->name, old);
}
