/* SPDX-License-Identifier: MIT */
/*
 * config_rope.c: the rotations of a config.json, put together, and the layers that do not rotate
 *
 * A rotation is a source, a width, a schedule, axes, a temperature and the factor of the scores; each kind of
 * layer that the type has becomes a group. Some models put g(s, mu) of yarn on the scores, squared, rather
 * than on cosine and sine.
 * Widths  Four kinds of head (model_types.def): the width is a key, or follows from the model's, or is the
 *         sum of what rotates and what does not (MLA, whose last channels rotate), or only its last channels
 *         rotate. A fraction comes from the dictionary, the top level or the class, in this order; one that
 *         the class does not read is without effect in the default schedule and fails in every other.
 * Source  transformers 5.16, the configuration and modeling files of the types
 */
#include "files/config/config.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- widths -------------------- */

static int64_t key_width(pe_config *c, pe_file_rotation *r)
{
    const char   *own      = pe_config_get(c->file, c->type.head_dim_key) ? c->type.head_dim_key : "head_dim";
    const int64_t given    = pe_config_width(c, own, 1, 0);
    const int64_t fallback = c->is_unknown ? 0 : c->type.head_dim;
    r->head_rule           = given      ? pe_build_text(c->m, "%s of the file", own)
                             : fallback ? pe_build_text(c->m, "default of the class %s", c->type.name)
                                        : "hidden_size / heads";
    return given ? given : fallback ? fallback : pe_config_derived_width(c);
}

static void mla_width(pe_config *c, pe_file_rotation *r, const pe_config_layers *of)
{
    const int64_t alias = pe_config_width(c, c->type.head_dim_key, 1, c->type.rope_dim);
    const int64_t nope  = pe_config_of_layers(c, "qk_nope_head_dim", of,
                                              pe_config_width(c, "qk_nope_head_dim", 0, c->type.nope_dim));
    r->dim              = pe_config_width(c, "qk_rope_head_dim", 1, alias);
    r->head_dim         = nope + r->dim;
    r->head_rule        = "qk_nope_head_dim + qk_rope_head_dim";
    r->dim_rule         = "qk_rope_head_dim";
}

/* Head width; for the heads whose last channels rotate, those as well. */
static void find_width(pe_config *c, pe_file_rotation *r, const pe_config_layers *of)
{
    const int by_layer = json_is_object(pe_config_get(c->file, "per_layer_config"));
    if (pe_text_is(c->type.head, "mla"))
        mla_width(c, r, of);
    else if (pe_text_is(c->type.head, "derived")) {
        r->head_dim         = pe_config_derived_width(c);
        r->head_rule        = "hidden_size / heads";
        const int64_t given = pe_config_width(c, "head_dim", 1, r->head_dim);
        if (given != r->head_dim)
            pe_build_warn(
                c->m, "head_dim-mismatch",
                "head_dim is %lld, but the class never reads it: hidden_size / heads = %lld is used",
                (long long)given, (long long)r->head_dim);
    } else {
        const int64_t usual = key_width(c, r);
        r->head_dim         = pe_config_of_layers(c, "head_dim", of, usual);
        if (r->head_dim != usual)
            r->head_rule = "head_dim of per_layer_config";
    }
    if (of->kind == PE_FULL && c->type.full_head_dim && !by_layer) {
        r->head_dim  = pe_config_width(c, "global_head_dim", 1, c->type.full_head_dim);
        r->head_rule = "global_head_dim";
    }
}

/* ---------------------------------------------------------------- fraction ------------------ */

static double find_fraction(pe_config *c, const pe_rope_source *s, const char **rule)
{
    const char  *key      = c->type.partial_key ? c->type.partial_key : "partial_rotary_factor";
    const double of_words = pe_config_real(c, s->words, "partial_rotary_factor", (double)NAN);
    const double of_file  = pe_config_real(c, c->file, key, (double)NAN);
    const double fallback = c->type.partial > 0 ? c->type.partial : 1;
    *rule                 = !isnan(of_words) ? s->name : !isnan(of_file) ? "the file" : "the class";
    if (!isnan(of_words) && !isnan(of_file) && of_words != of_file)
        pe_build_warn(c->m, "partial-conflict",
                      "the fraction that rotates is %g in %s but %g at top level; %g is used", of_words,
                      s->name, of_file, of_words);
    return !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : fallback;
}

/* Python's int(): towards zero. Refused where no whole number of channels could come out. */
static int64_t part_of(pe_config *c, int64_t width, double fraction)
{
    if (!(fraction > 0 && fraction <= 1))
        pe_build_refuse(c->m, "the fraction of a head that rotates is %g; it must be above 0 and at most 1",
                        fraction);
    return c->m->status ? 2 : (int64_t)((double)width * fraction);
}

static void unread_fraction(pe_config *c, pe_file_rotation *r, double fraction)
{
    if (fraction == 1)
        return;
    if (!pe_text_is(r->schedule, "default"))
        pe_build_refuse(c->m,
                        "partial_rotary_factor is %g with the schedule %s; the class %s rotates whole "
                        "heads, so it must be 1",
                        fraction, r->schedule, c->is_unknown ? "(read as llama)" : c->type.name);
    pe_build_warn(c->m, "partial-ignored", "partial_rotary_factor is %g, but the class %s does not read it",
                  fraction, c->is_unknown ? "(read as llama)" : c->type.name);
}

/* MLA: the width of the rotated part is a size of its own. A class that reads fractions takes them of
   that. */
static void mla_dim(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const char  *where;
    const double fraction = find_fraction(c, s, &where);
    if (c->type.share_read == 1 && pe_text_is(r->schedule, "default")) {
        pe_build_refuse(c->m,
                        "the class %s rotates head_dim channels with the schedule default, more than the "
                        "%lld that it has for that, and fails; name another schedule",
                        c->type.name, (long long)r->dim);
        return;
    }
    if (fraction == 1 || (c->type.share_read &&
                          part_of(c, pe_config_width(c, "head_dim", 1, r->head_dim), fraction) == r->dim))
        return;
    if (!c->type.partial_read) {
        unread_fraction(c, r, fraction);
        return;
    }
    r->dim      = part_of(c, r->dim, fraction);
    r->dim_rule = pe_build_text(c->m, "fraction %g of qk_rope_head_dim, from %s", fraction, where);
}

static void fraction_dim(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const char   *where;
    const double  fraction = find_fraction(c, s, &where);
    const char   *key      = c->type.rotary_dim_key ? "rotary_dim" : NULL;
    const int64_t counted  = pe_config_width(c, key, 1, c->type.rotary_dim);
    r->dim                 = r->head_dim;
    r->dim_rule            = "the whole head";
    if (pe_text_is(r->schedule, "proportional")) {
        r->partial  = fraction;
        r->dim_rule = "proportional: pairs over the whole head";
        part_of(c, r->head_dim, fraction);
        return;
    }
    if (counted)
        r->dim = counted, r->dim_rule = "rotary_dim";
    else if (c->type.partial_read && fraction != 1) {
        r->dim      = part_of(c, r->head_dim, fraction);
        r->dim_rule = pe_build_text(c->m, "fraction %g of head_dim, from %s", fraction, where);
    } else if (!c->type.partial_read)
        unread_fraction(c, r, fraction);
}

static void find_dim(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    if (pe_text_is(c->type.head, "mla"))
        mla_dim(c, s, r);
    else if (pe_text_is(c->type.head, "tail") && !pe_config_get(s->words, "partial_rotary_factor") &&
             !pe_config_get(c->file, "partial_rotary_factor")) {
        r->dim      = pe_config_width(c, "qk_rope_head_dim", 1, c->type.rope_dim);
        r->dim_rule = "qk_rope_head_dim";
    } else
        fraction_dim(c, s, r);
    pe_rotation_check(c->m, r);
    r->offset =
        pe_text_is(c->type.head, "mla") || pe_text_is(c->type.head, "tail") ? r->head_dim - r->dim : 0;
}

/* ---------------------------------------------------------------- axes, temperature, scores -- */

static int64_t sum_of(const int64_t x[3])
{
    return x[0] + x[1] + x[2];
}

/* Eyes: each coordinate has as many pairs as the others, and what is left over does not rotate. */
static void even_sections(pe_config *c, pe_file_rotation *r)
{
    r->axes          = c->type.axes;
    r->axis_rule     = c->type.axis_rule;
    r->sections_rule = "as many for each";
    for (int a = 0; a < r->axes; a++)
        r->sections[a] = r->dim / 2 / r->axes;
    if (r->sections[0] < 1)
        pe_build_refuse(c->m, "%lld channels of a head are too few for %d coordinates", (long long)r->dim,
                        r->axes);
    if (r->dim != 2 * r->axes * r->sections[0])
        r->dim_rule = "what the coordinates can share out evenly";
    r->dim = 2 * r->axes * r->sections[0];
}

static void find_sections(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const json_t *list = pe_config_list(c, s->words, "mrope_section");
    if (!c->type.axis_rule || c->m->status)
        return;
    if (c->type.axes) {
        even_sections(c, r);
        return;
    }
    r->axes          = 3;
    r->axis_rule     = c->type.axis_rule;
    r->sections_rule = list ? pe_build_text(c->m, "mrope_section of %s", s->name) : "the class";
    memcpy(r->sections, c->type.sections, sizeof c->type.sections);
    if (!list && !sum_of(r->sections))
        pe_build_refuse(c->m, "mrope_section is missing; the type %s needs it", c->type.name);
    if (list && json_array_size(list) != 3)
        pe_build_refuse(c->m, "mrope_section has %zu numbers; it must have 3: time, height, width",
                        json_array_size(list));
    for (size_t a = 0; list && !c->m->status && a < 3; a++) {
        const json_t *value = json_array_get(list, a);
        r->sections[a]      = json_integer_value(value);
        if (!json_is_integer(value) || r->sections[a] < 0 || r->sections[a] > PE_MODEL_WIDEST)
            pe_build_refuse(c->m, "mrope_section has %s; it must hold numbers of pairs",
                            pe_config_shown(c, value));
    }
    if (c->m->status || sum_of(r->sections) == r->dim / 2)
        return;
    if (pe_text_is(r->axis_rule, "sections"))
        pe_build_refuse(c->m, "mrope_section sums to %lld; it must sum to the %lld pairs that rotate",
                        (long long)sum_of(r->sections), (long long)r->dim / 2);
    pe_build_warn(c->m, "sections-sum", "mrope_section sums to %lld of %lld pairs; the rest follows time",
                  (long long)sum_of(r->sections), (long long)r->dim / 2);
}

/* Ministral's is in the dictionary and acts on every layer. */
static void find_temperature(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    if (!pe_text_is(c->type.temperature, "ministral") || !pe_config_get(s->words, "llama_4_scaling_beta"))
        return;
    r->temperature        = "ministral";
    r->temperature_scale  = pe_config_real(c, s->words, "llama_4_scaling_beta", 0);
    r->temperature_length = r->original_length ? r->original_length : pe_config_size(c, PE_CONTEXT);
    if (!r->temperature_length)
        pe_build_refuse(c->m, "original_max_position_embeddings is missing; llama_4_scaling_beta needs it");
}

static void find_score_scale(pe_config *c, const pe_rope_source *s, pe_file_rotation *r)
{
    const char  *key      = c->type.score;
    const double by_width = 1 / sqrt((double)r->head_dim);
    r->score_scale        = by_width;
    r->score_rule         = "1 / sqrt(head_dim)";
    if (pe_config_flag(c, c->file, c->type.by_width_key, 0))
        r->score_scale = by_width * by_width, r->score_rule = c->type.by_width_key;
    else if (pe_text_is(key, "half_width"))
        r->score_scale = 1 / sqrt((double)r->head_dim / 2), r->score_rule = "1 / sqrt(head_dim / 2)";
    else if (pe_text_is(key, "one"))
        r->score_scale = 1, r->score_rule = "by the model type";
    else if (pe_text_is(c->type.head, "mla")) {
        /* DeepSeek's classes put g of the factor on the scores, squared */
        const double mu = s ? json_number_value(pe_config_get(s->words, "mscale_all_dim")) : 0;
        const double g  = mu == 0 || isnan(r->factor) || pe_text_is(r->schedule, "default")
                              ? 1
                              : pe_rotation_yarn(r->factor, mu);
        const double g2 = g * g;
        r->score_scale *= g2;
        r->score_rule =
            g2 == 1 ? r->score_rule : "1 / sqrt(head_dim), times g(factor, mscale_all_dim) squared";
    } else if (pe_text_is(key, "query_pre_attn_scalar")) {
        const double x = pe_config_real(c, c->file, key, c->type.score_default);
        if (!(x > 0))
            pe_build_refuse(c->m, "%s is %g; it must be above 0", key, x);
        r->score_scale = 1 / sqrt(x), r->score_rule = "1 / sqrt(query_pre_attn_scalar)";
    } else if (pe_text_is(key, "attention_multiplier")) {
        const double fallback = c->type.score_default > 0 ? c->type.score_default : by_width;
        r->score_scale        = pe_config_real(c, c->file, key, fallback);
        r->score_rule         = key;
    }
}

/* ---------------------------------------------------------------- one rotation -------------- */

static void find_layout(pe_config *c, pe_file_rotation *r)
{
    const json_t *value = pe_config_get(c->file, c->type.layout_key);
    r->layout           = c->type.layout ? c->type.layout : "half";
    r->layout_rule      = c->is_unknown ? pe_text_is(c->type.head, "mla") ? "as DeepSeek has it: a guess"
                                                                          : "as llama has it: a guess"
                                        : pe_build_text(c->m, "by the model type %s", c->type.name);
    r->inverse          = c->type.inverse;
    r->writes_half      = c->type.writes_half;
    if (c->type.writes_half)
        r->layout_rule = pe_build_text(c->m, "%s; transformers writes half order", r->layout_rule);
    if (value && !pe_config_flag(c, c->file, c->type.layout_key, 1))
        r->layout = "half", r->layout_rule = pe_build_text(c->m, "%s is false", c->type.layout_key);
}

static pe_file_rotation read_rotation(pe_config *c, const pe_rope_source *s, const pe_config_layers *of)
{
    pe_file_rotation r = pe_rotation_none();
    pe_config_choose_schedule(c, s, &r);
    r.dims    = pe_config_dims(c);
    r.dims.H  = pe_config_of_layers(c, "num_attention_heads", of, r.dims.H);
    r.dims.G  = pe_config_of_layers(c, "num_key_value_heads", of, r.dims.G);
    r.periods = c->type.periods;
    find_layout(c, &r);
    pe_config_base(c, s, &r);
    find_width(c, &r, of);
    find_dim(c, s, &r);
    pe_config_read_schedule(c, s, &r);
    find_sections(c, s, &r);
    find_temperature(c, s, &r);
    find_score_scale(c, s, &r);
    pe_config_warn_of_unused_keys(c, s, &r);
    return r;
}

static void add_rotation(pe_config *c, const pe_rope_source *s, const char *kinds, int64_t depth, char kind)
{
    const pe_config_layers    of        = {kinds, depth, kind};
    const pe_file_rotation    r         = read_rotation(c, s, &of);
    const posenc_model_group *g         = pe_rotation_group(c->m, &r, kinds, depth, kind);
    const posenc_fact        *magnitude = g ? posenc_model_fact(g, "magnitude") : NULL;
    const double              usual     = pe_rotation_yarn(r.factor, 1);
    if (pe_text_is(r.schedule, "yarn") && magnitude && fabs(magnitude->real - usual) > 1e-9)
        pe_build_warn(c->m, "magnitude-dialect",
                      "the magnitude is %.6g, where 0.1 ln factor + 1 is %.6g: engines disagree on this file",
                      magnitude->real, usual);
}

static void add_nope(pe_config *c, const char *kinds, int64_t depth)
{
    pe_file_rotation r = pe_rotation_none();
    r.dims             = pe_config_dims(c);
    find_width(c, &r, &(pe_config_layers){kinds, depth, PE_NOPE});
    find_score_scale(c, NULL, &r);
    if (pe_text_is(c->type.temperature, "llama4") &&
        pe_config_flag(c, c->file, "attn_temperature_tuning", 1)) {
        r.temperature        = "llama4";
        r.temperature_scale  = pe_config_real(c, c->file, "attn_scale", 0.1);
        r.temperature_length = pe_config_whole(c, c->file, "floor_scale", 1, INT64_C(1) << 53, 8192);
    }
    pe_rotation_nope(c->m, &r, kinds, depth);
}

/* Molmo 2: layers outside rope_scaling_layers have the base alone. */
static void unscaled_source(pe_config *c, pe_rope_source from[PE_SOURCES])
{
    pe_rope_source *s    = &from[PE_SOURCE_LOCAL];
    const json_t   *base = pe_config_get(from[PE_SOURCE_FULL].words, "rope_theta");
    json_decref(s->words);
    *s       = from[PE_SOURCE_FULL];
    s->words = json_object();
    if (!s->words || (base && json_object_set(s->words, "rope_theta", (json_t *)(uintptr_t)base)))
        pe_build_refuse_memory(c->m);
}

/* Layers whose dictionary is null do not rotate; some types need one, or null, for each. */
static void unrotated_kinds(pe_config *c, char *kinds)
{
    static const char by_source[PE_SOURCES] = {PE_FULL, PE_LOCAL};
    const json_t     *parameters            = pe_config_get(c->file, "rope_parameters");
    for (int kind = 0; kind < PE_SOURCES && c->type.local_base > 0; kind++) {
        const char   *name = pe_config_label(c, kind);
        const json_t *own  = json_object_get(parameters, name);
        for (char *at = kinds; !own && c->type.every_named && *at; at++)
            if (*at == by_source[kind] && !c->m->status)
                pe_build_refuse(c->m,
                                "rope_parameters has no %s; the type %s needs a dictionary or null there",
                                name, c->type.name);
        for (char *at = kinds; json_is_null(own) && *at; at++)
            *at = *at == by_source[kind] ? PE_NOPE : *at;
    }
}

void pe_config_rope(pe_config *c)
{
    pe_rope_source from[PE_SOURCES] = {0};
    int64_t        depth;
    char          *kinds = pe_config_kinds(c, &depth);
    if (!kinds)
        return;
    pe_config_check_layers(c);
    pe_config_sources(c, from);
    if (pe_text_is(c->type.layers, "scaled-layers"))
        unscaled_source(c, from);
    unrotated_kinds(c, kinds);
    if (strchr(kinds, PE_FULL))
        add_rotation(c, &from[PE_SOURCE_FULL], kinds, depth, PE_FULL);
    if (strchr(kinds, PE_LOCAL))
        add_rotation(c, &from[PE_SOURCE_LOCAL], kinds, depth, PE_LOCAL);
    if (strchr(kinds, PE_NOPE))
        add_nope(c, kinds, depth);
    for (int kind = 0; kind < PE_SOURCES; kind++)
        json_decref(from[kind].words);
}

/* ---------------------------------------------------------------- no rotation at all -------- */

/* Jamba: one attention layer in each period. */
static void periodic_kinds(pe_config *c, char *kinds, int64_t depth)
{
    const int64_t period =
        pe_config_whole(c, c->file, "attn_layer_period", 1, PE_MODEL_DEEPEST, c->type.period);
    const int64_t offset =
        pe_config_whole(c, c->file, "attn_layer_offset", 0, PE_MODEL_DEEPEST, c->type.period_offset);
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
    if (c->type.period)
        periodic_kinds(c, kinds, depth);
    if (strchr(kinds, PE_NOPE))
        add_nope(c, kinds, depth);
}
