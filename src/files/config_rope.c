/* SPDX-License-Identifier: MIT */
/*
 * config_rope.c: the rotations of a config.json, put together, and the layers that do not rotate
 *
 * A rotation is a source, a width, a schedule, axes, a temperature and the factor of the scores; each kind of
 * layer that the type has becomes a group. Some models put g(s, mu) of yarn on the scores, squared, rather
 * than on cosine and sine.
 * Source  transformers 5.16, the classes of the types
 */
#include "files/config_rope.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- axes, temperature, scores -- */

static int64_t sum_of(const int64_t *x, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static void find_sections(pe_config *c, const pe_rope_source *s, pe_rotation *r)
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
    if (pe_is(r->axis_rule, "sections"))
        pe_config_refuse(c, "mrope_section sums to %lld; it must sum to the %lld pairs that rotate",
                         (long long)sum_of(r->sections, 3), (long long)r->dim / 2);
    pe_modelfile_warn(c->model, "sections-sum",
                      "mrope_section sums to %lld of %lld pairs; the rest follows time",
                      (long long)sum_of(r->sections, 3), (long long)r->dim / 2);
}

/* Ministral's stands in the dictionary and acts on every layer. */
static void find_temperature(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    if (!pe_is(c->type->temperature, "ministral") || !pe_config_get(s->words, "llama_4_scaling_beta"))
        return;
    r->temperature        = "ministral";
    r->temperature_scale  = pe_config_real(c, s->words, "llama_4_scaling_beta", 0);
    r->temperature_length = r->original_length ? r->original_length : pe_config_context(c);
    if (!r->temperature_length)
        pe_config_refuse(c, "original_max_position_embeddings is missing; llama_4_scaling_beta needs it");
}

/* Llama 4's is for the layers that do not rotate. */
static void llama4_temperature(pe_config *c, pe_rotation *r)
{
    if (!pe_is(c->type->temperature, "llama4") || !pe_config_flag(c, c->file, "attn_temperature_tuning", 1))
        return;
    r->temperature        = "llama4";
    r->temperature_scale  = pe_config_real(c, c->file, "attn_scale", 0.1);
    r->temperature_length = pe_config_whole(c, c->file, "floor_scale", 1, INT64_C(1) << 53, 8192);
}

/* g of the factor, which DeepSeek's classes put on the scores, squared. */
static double yarn_on_scores(const pe_config *c, const pe_rope_source *s, const pe_rotation *r)
{
    const json_t *value = pe_config_get(s->words, "mscale_all_dim");
    const double  mu    = json_number_value(value);
    const double  g = pe_rope_is_scaled(r) && mu != 0 && !isnan(r->factor) ? pe_yarn_scale(r->factor, mu) : 1;
    (void)c;
    return g * g;
}

static void find_score_scale(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    const char  *key      = c->type->score;
    const double by_width = 1 / sqrt((double)r->head_dim);
    r->score_scale        = by_width;
    r->score_rule         = "1 / sqrt(head_dim)";
    if (pe_is(key, "one"))
        r->score_scale = 1, r->score_rule = "by the model type";
    else if (pe_is(key, "mla-yarn")) {
        const double g2 = s ? yarn_on_scores(c, s, r) : 1;
        r->score_scale *= g2;
        r->score_rule =
            g2 == 1 ? r->score_rule : "1 / sqrt(head_dim), times g(factor, mscale_all_dim) squared";
    } else if (pe_is(key, "query_pre_attn_scalar")) {
        const double x = pe_config_real(c, c->file, key, c->type->score_standard);
        if (!c->status && !(x > 0))
            pe_config_refuse(c, "%s is %g; it must be above 0", key, x);
        r->score_scale = 1 / sqrt(x), r->score_rule = "1 / sqrt(query_pre_attn_scalar)";
    } else if (pe_is(key, "attention_multiplier")) {
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
    if (c->type->writes_half)
        r->layout_rule = pe_modelfile_text(c->model, "%s; transformers writes half order (layout_out=half)",
                                           r->layout_rule);
    if (value && !pe_config_flag(c, c->file, c->type->layout_key, 1))
        r->layout = "half", r->layout_rule = pe_modelfile_text(c->model, "%s is false", c->type->layout_key);
}

static pe_rotation read_rotation(pe_config *c, const pe_rope_source *s, int is_full)
{
    pe_rotation             r      = pe_rotation_none();
    const pe_rope_schedule *chosen = pe_rope_choose_schedule(c, s, &r);
    r.dims                         = pe_config_dims(c);
    find_layout(c, &r);
    pe_rope_find_base(c, s, &r);
    pe_rope_find_width(c, &r, is_full);
    if (!c->status)
        pe_rope_find_dim(c, s, &r);
    if (!c->status)
        pe_rope_read_schedule(c, s, chosen, &r);
    if (!c->status) {
        find_sections(c, s, &r);
        find_temperature(c, s, &r);
        find_score_scale(c, s, &r);
        pe_rope_warn_of_unused_keys(c, s, chosen);
    }
    return r;
}

static void warn_of_dialect(pe_config *c, const pe_rotation *r, const posenc_model_group *g)
{
    const posenc_fact *magnitude = posenc_model_fact(g, "magnitude");
    const double       usual     = pe_yarn_scale(r->factor, 1);
    if (pe_is(r->schedule, "yarn") && magnitude && fabs(magnitude->real - usual) > 1e-9)
        pe_modelfile_warn(
            c->model, "magnitude-dialect",
            "the magnitude is %.6g, where 0.1 ln factor + 1 is %.6g: engines disagree on this file",
            magnitude->real, usual);
}

static void add_rotation(pe_config *c, const pe_rope_source *s, const char *kinds, int64_t depth, char kind)
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
    pe_rope_find_width(c, &r, 0);
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
    pe_rope_sources d = {0};
    int64_t         depth;
    char           *kinds = pe_config_kinds(c, &depth);
    if (!c->status)
        pe_rope_find_sources(c, &d);
    if (!c->status)
        pe_rope_warn_of_base(c, &d);
    if (!c->status && is_used(kinds, PE_FULL))
        add_rotation(c, &d.from[PE_SOURCE_FULL], kinds, depth, PE_FULL);
    if (!c->status && is_used(kinds, PE_LOCAL))
        add_rotation(c, &d.from[PE_SOURCE_LOCAL], kinds, depth, PE_LOCAL);
    if (!c->status && is_used(kinds, PE_NOPE))
        add_nope(c, kinds, depth);
    pe_modelfile_info(c->model)->max_positions = pe_config_context(c);
    for (int kind = 0; kind < PE_SOURCES; kind++)
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
