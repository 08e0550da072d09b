/* SPDX-License-Identifier: MIT */
/*
 * config.c: a model's config.json: which object describes the language model, which row of the table it is
 *
 * The idea  A configuration leaves out what its class takes for granted, so a file means something only
 *           together with the table of model types (model_types.def). This file finds both and answers
 *           questions about them, which config_rope.c, config_layers.c and config_other.c ask.
 * Nested    The language model of a composite model is an object of the file, under one of four names.
 * Strict    A key that stands twice, NaN, Infinity, a number out of range: refused in one line. A key that is
 *           absent or null has the value that the table or the asker gives. Keys that say nothing about
 *           positions are passed over.
 * Source    transformers 5.16, configuration_utils.py and the configuration of each type
 */
#include "files/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the table ----------------- */

#define MODEL(types, ...) {.names = types, __VA_ARGS__},
#define COMPOSITE(outer, inner)
static const pe_model_type types[] = {
#include "files/model_types.def"
};

#undef MODEL
#undef COMPOSITE
#define MODEL(types, ...)
#define COMPOSITE(outer, inner) {outer, inner},
static const char *const composites[][2] = {
#include "files/model_types.def"
};

static const pe_model_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (pe_is_among(types[i].names, name))
            return &types[i];
    return NULL;
}

/* The type of the language model of a composite one; any other is its own. */
static const char *inner_type(posenc_model *m, const char *name)
{
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (pe_is_among(composites[i][0], name))
            return *composites[i][1] == '_' ? pe_print(m, "%s%s", name, composites[i][1]) : composites[i][1];
    return name;
}

/* ---------------------------------------------------------------- members ------------------- */

enum { SHOWN = 40 };

const char *pe_config_shown(pe_config *c, const json_t *value)
{
    char       *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    const char *kept = text ? pe_print(c->m, "%.*s%s", SHOWN, text, strlen(text) > SHOWN ? "..." : "") : "?";
    free(text);
    return kept;
}

const json_t *pe_config_get(const json_t *object, const char *key)
{
    const json_t *value = key ? json_object_get(object, key) : NULL;
    return json_is_null(value) ? NULL : value;
}

double pe_config_real(pe_config *c, const json_t *object, const char *key, double fallback)
{
    const json_t *value = pe_config_get(object, key);
    if (!value)
        return fallback;
    if (!json_is_number(value))
        pe_refuse(c->m, "%s is %s; it must be a number", key, pe_config_shown(c, value));
    return json_number_value(value);
}

int64_t pe_config_whole(pe_config *c, const json_t *object, const char *key, int64_t low, int64_t high,
                        int64_t fallback)
{
    const json_t *value = pe_config_get(object, key);
    if (!value)
        return fallback;
    const double x = json_number_value(value);
    if (!json_is_number(value) || x != floor(x) || x < (double)low || x > (double)high) {
        pe_refuse(c->m, "%s is %s; it must be a whole number from %lld to %lld", key,
                  pe_config_shown(c, value), (long long)low, (long long)high);
        return fallback;
    }
    return (int64_t)x;
}

int64_t pe_config_width(pe_config *c, const char *key, int64_t low, int64_t fallback)
{
    return pe_config_whole(c, c->file, key, low, PE_MODEL_WIDEST, fallback);
}

/* Numbers count as flags: 0 is no (Llama 4 has been seen with 4). */
int pe_config_flag(pe_config *c, const json_t *object, const char *key, int fallback)
{
    const json_t *value = pe_config_get(object, key);
    if (!value)
        return fallback;
    if (json_is_boolean(value))
        return json_is_true(value);
    if (!json_is_number(value))
        pe_refuse(c->m, "%s is %s; it must be true or false", key, pe_config_shown(c, value));
    return json_number_value(value) != 0;
}

const char *pe_config_word(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_string(value))
        pe_refuse(c->m, "%s is %s; it must be a text", key, pe_config_shown(c, value));
    return json_string_value(value);
}

const json_t *pe_config_list(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_array(value))
        pe_refuse(c->m, "%s is %s; it must be a list", key, pe_config_shown(c, value));
    return json_is_array(value) ? value : NULL;
}

/* ---------------------------------------------------------------- sizes --------------------- */

int64_t pe_config_size(pe_config *c, int which)
{
    const pe_model_type *t = &c->type;
    const struct {
        const char *own, *common;
        int64_t     high, standard;
    } all[]         = {[PE_HIDDEN]  = {t->hidden_key, "hidden_size", 1LL << 31, t->hidden},
                       [PE_HEADS]   = {t->heads_key, "num_attention_heads", PE_MODEL_WIDEST, t->heads},
                       [PE_DEPTH]   = {t->layers_key, "num_hidden_layers", PE_MODEL_DEEPEST, t->depth},
                       [PE_CONTEXT] = {t->context_key, "max_position_embeddings", 1LL << 53, t->context}},
      *size         = &all[which];
    const char *key = pe_config_get(c->file, size->own) ? size->own : size->common;
    return pe_config_whole(c, c->file, key, 1, size->high, c->is_unknown ? 0 : size->standard);
}

int64_t pe_config_derived_width(pe_config *c)
{
    const int64_t hidden = pe_config_size(c, PE_HIDDEN), heads = pe_config_size(c, PE_HEADS);
    if (!hidden || !heads)
        pe_refuse(c->m, "%s is missing, and the type %s has no size of its own for it",
                  hidden ? "num_attention_heads" : "hidden_size",
                  c->is_unknown ? "is not in the table and" : c->type.name);
    else if (hidden % heads || hidden / heads > PE_MODEL_WIDEST)
        pe_refuse(c->m,
                  "hidden_size %lld is no multiple of %lld heads (up to %d wide), and head_dim is missing",
                  (long long)hidden, (long long)heads, PE_MODEL_WIDEST);
    return c->m->status ? 2 : hidden / heads;
}

posenc_dims pe_config_dims(pe_config *c)
{
    static const char *const names[] = {"num_key_value_heads", "n_head_kv", "num_kv_heads",
                                        "multi_query_group_num"};
    posenc_dims dims = {.H = pe_config_size(c, PE_HEADS), .d_model = pe_config_size(c, PE_HIDDEN)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!dims.G)
            dims.G = pe_config_width(c, names[i], 1, 0);
    return dims;
}

/* ---------------------------------------------------------------- which row ----------------- */

static const json_t *language_model(const json_t *file)
{
    static const char *const names[] = {"text_config", "decoder", "generator", "text_encoder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_object(json_object_get(file, names[i])))
            return json_object_get(file, names[i]);
    return file;
}

static int has_rope_keys(const json_t *file)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)(uintptr_t)file, key,
                        value) if (!json_is_null(value) &&
                                   pe_is_among("rope_theta rope_scaling rope_parameters rotary_emb_base "
                                               "partial_rotary_factor rotary_pct rotary_dim",
                                               key)) return 1;
    return 0;
}

/* "true" and "rotary" alike: what JSON writes without quotes. */
static int has_value(const json_t *value, const char *word)
{
    return json_is_true(value) ? !strcmp(word, "true")
                               : json_is_string(value) && !strcmp(json_string_value(value), word);
}

static void choose_row(pe_config *c, const json_t *outer)
{
    const char          *own  = pe_config_word(c, c->file, "model_type");
    const char          *name = inner_type(c->m, own ? own : pe_config_word(c, outer, "model_type"));
    const pe_model_type *row  = find_type(name);
    name = row ? name : own; /* what the whole is called says nothing about an object that is not known */
    c->m->info.type = name ? pe_print(c->m, "%s", name) : NULL;
    c->type         = row ? *row : *find_type("llama");
    c->type.name    = row ? c->m->info.type : "llama";
    if (!row) {
        c->is_unknown = 1;
        c->encoding   = has_rope_keys(c->file) ? "rope" : "unknown";
        pe_warn(c->m, "unknown-model-type", "%s is not in the table of model types: %s",
                name ? name : "a file without model_type",
                strcmp(c->encoding, "rope") ? "its encoding is not known"
                                            : "it is read as a llama, which may be wrong");
        return;
    }
    const json_t *value = pe_config_get(c->file, c->type.switch_key);
    c->encoding         = c->type.encoding ? c->type.encoding : "rope";
    if (value && has_value(value, c->type.switch_value))
        c->encoding = c->type.switched;
}

static void read_groups(pe_config *c)
{
    posenc_model_info *info = &c->m->info;
    info->layers            = pe_config_size(c, PE_DEPTH);
    if (pe_is_among("unknown none", c->encoding))
        info->encoding = c->encoding;
    else
        pe_config_encoding(c);
    if (!info->max_positions && strcmp(c->encoding, "t5") != 0) /* T5 knows no end */
        info->max_positions = pe_config_size(c, PE_CONTEXT);
}

posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err)
{
    json_error_t why;
    pe_config    c = {.m = pe_begin(format, path, err)};
    if (!c.m)
        return POSENC_ERROR_MEMORY;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        pe_refuse(c.m, "it is not JSON as a configuration needs it: line %d, column %d: %.80s", why.line,
                  why.column, why.text);
    else if (!json_is_object(root))
        pe_refuse(c.m, "it is JSON but no object; a configuration is { ... }");
    else {
        c.file = language_model(root);
        choose_row(&c, root);
        if (!c.m->status)
            read_groups(&c);
    }
    json_decref(root);
    return pe_finish(model, c.m);
}
