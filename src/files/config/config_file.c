/* SPDX-License-Identifier: MIT */
/*
 * config_file.c: a model's config.json: which object describes the language model, which row of the table it
 * is
 *
 * The idea  A configuration leaves out what its class takes for granted, so a file means something only
 *           together with the table of model types (model_types.def). This file finds both; config_other.c,
 *           config_rope.c and config_layers.c ask them.
 * Nested    The language model of a composite model is an object of the file, under one of four names.
 * Strict    A key that appears twice, a number out of range: refused in one line, and so is NaN or Infinity
 *           where a number is read. A key that is absent or null has the value that the table or the asker
 *           gives. Keys that say nothing about positions are ignored, whatever they hold.
 * Source    transformers 5.16, configuration_utils.py and the configuration of each type
 */
#include "files/config/config.h"

#include <stdio.h>
#include <string.h>

#include "files/arrays/json.h"

/* ---------------------------------------------------------------- the table ----------------- */

#define MODEL(types, ...) {.names = types, __VA_ARGS__},
#define COMPOSITE(outer, inner)
static const pe_model_type types[] = {
#include "files/config/model_types.def"
};

#undef MODEL
#undef COMPOSITE
#define MODEL(types, ...)
#define COMPOSITE(outer, inner) {outer, inner},
static const char *const composites[][2] = {
#include "files/config/model_types.def"
};

static const pe_model_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (pe_text_is_among(types[i].names, name))
            return &types[i];
    return NULL;
}

/* The type of the part `key` of a model of type `name`, where it does not say: vision_config of siglip is
   siglip_vision_model. */
static const char *part_type(posenc_model *m, const char *name, const char *key)
{
    const int   n    = (int)(strlen(key) - (pe_text_ends_with(key, "_config") ? strlen("_config") : 0));
    const char *full = pe_build_text(m, "%s_%.*s", name ? name : "", n, key),
               *part = pe_build_text(m, "%s_model", full);
    return find_type(part) ? part : full;
}

/* The type of the language model of a composite one; any other is its own. */
static const char *inner_type(posenc_model *m, const char *name)
{
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (pe_text_is_among(composites[i][0], name))
            return *composites[i][1] == '_' ? pe_build_text(m, "%s%s", name, composites[i][1])
                                            : composites[i][1];
    return name;
}

/* ---------------------------------------------------------------- which row ----------------- */

/* The object of the language model, and the key it stands under; the file itself, under none. */
static const json_t *language_model(const json_t *file, const char **key)
{
    static const char *const names[] = {"text_config", "decoder", "generator", "text_encoder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_object(json_object_get(file, names[i]))) {
            *key = names[i];
            return json_object_get(file, names[i]);
        }
    *key = NULL;
    return file;
}

static int has_rope_keys(const json_t *file)
{
    const char *key;
    json_t     *value;
    json_object_foreach(
        (json_t *)(uintptr_t)file, key,
        value) if (!json_is_null(value) &&
                   pe_text_is_among(
                       "qk_rope_head_dim rope_theta rope_scaling rope_parameters rotary_emb_base "
                       "partial_rotary_factor rotary_pct rotary_dim",
                       key)) return 1;
    return 0;
}

/* BERT and its kin: what position_embedding_type names, by those who read it. */
static void choose_positions(pe_config *c)
{
    static const char *const by[][2] = {
        {"alibi", "the model's own code has slopes by distance"},
        {"relative_key", "transformers before 5.0 has vectors by distance"},
        {"relative_key_query", "transformers before 5.0 has vectors by distance"},
    };
    const char *type = pe_config_word(c, c->file, "position_embedding_type");
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        if (pe_text_is(type, by[i][0])) {
            c->encoding = i ? "huang_m4" : "alibi";
            pe_build_warn(
                c->m, "programs-disagree",
                "position_embedding_type is %s: %s; transformers 5 does not read it and adds a learned table",
                type, by[i][1]);
            return;
        }
    if (type && strcmp(type, "absolute") != 0)
        pe_build_refuse(
            c->m,
            "position_embedding_type is %.30s; known are absolute, relative_key, relative_key_query "
            "and alibi",
            type);
}

/* A type that is not known: a llama, but for the heads and the fraction that the file itself has. */
static void guess_heads(pe_config *c)
{
    c->type.partial_read = 1;
    if (!pe_config_get(c->file, "qk_rope_head_dim"))
        return;
    c->type.head   = "mla";
    c->type.layout = "interleaved";
    pe_build_warn(
        c->m, "unknown-model-type",
        "its heads are read as those of DeepSeek (qk_nope_head_dim + qk_rope_head_dim, the last ones "
        "rotate, neighbours are pairs)");
}

/* " (num_conv_pos_embeddings 128, ...)": keys of the file that say more of what no SPEC says. */
static const char *shown_keys(pe_config *c)
{
    char        word[40];
    int         used = 0;
    const char *text = "", *at = c->type.shown;
    for (; at && sscanf(at, " %39s%n", word, &used) == 1; at += used)
        if (pe_config_get(c->file, word))
            text = pe_build_text(c->m, "%s%s%s %s", text, *text ? ", " : " (", word,
                                 pe_config_shown(c, pe_config_get(c->file, word)));
    return *text ? pe_build_text(c->m, "%s)", text) : text;
}

static void choose_row(pe_config *c, const json_t *outer, const char *type)
{
    const char *own           = pe_config_word(c, c->file, "model_type");
    own                       = own || c->file != outer ? own : type;
    const char          *name = inner_type(c->m, own ? own : type);
    const pe_model_type *row  = find_type(name);
    name = row ? name : own; /* what the whole is called says nothing about an object that is not known */
    c->m->info.type = name ? pe_build_text(c->m, "%s", name) : NULL;
    c->type         = row ? *row : *find_type("llama");
    c->type.name    = row ? c->m->info.type : "llama";
    if (!row) {
        c->is_unknown = 1;
        guess_heads(c);
        c->encoding =
            has_rope_keys(c->file) && !c->m->info.tower ? "rope" : "unknown"; /* no tower is a llama */
        pe_build_warn(c->m, "unknown-model-type", "%s is not in the table of model types: %s",
                      name ? name : "a file without model_type",
                      strcmp(c->encoding, "rope") ? "its encoding is not known"
                                                  : "it is read as a llama, which may be wrong");
        return;
    }
    if (row->unknown) {
        c->encoding = "unknown";
        pe_build_warn(c->m, "not-known", "%s: %s%s", name, row->unknown, shown_keys(c));
        return;
    }
    const json_t *value = pe_config_get(c->file, c->type.switch_key);
    c->encoding         = c->type.encoding ? c->type.encoding : "rope";
    const char *words   = json_is_true(value)    ? "true"
                          : json_is_false(value) ? "false"
                                                 : json_string_value(value);
    if (value && pe_text_is(words, c->type.switch_value))
        c->encoding = c->type.switched;
    if (c->type.alibi_width && pe_config_size(c, PE_HIDDEN) >= c->type.alibi_width)
        c->encoding = "alibi";
    if (!strcmp(c->encoding, "learned") && !c->type.switch_key)
        choose_positions(c);
    if (c->type.beyond)
        pe_build_warn(c->m, "beyond-length", "right up to %lld positions: beyond, %s",
                      (long long)pe_config_size(c, PE_CONTEXT), c->type.beyond);
}

/* ---------------------------------------------------------------- one model, and its parts --- */

enum { MOST_NESTED = 3 };

static posenc_model *read_object(const json_t *object, const char *type, const char *tower,
                                 posenc_model *begun, int depth);

/* A part that cannot be read says why, and the model around it is none the worse. */
static void add_tower(posenc_model *m, const json_t *object, const char *key, const char *outer, int depth)
{
    posenc_error  why   = {0};
    posenc_model *tower = pe_build_begin(m->info.format, m->path, &why), *done = NULL;
    const char   *own  = json_string_value(json_object_get(object, "model_type"));
    const int     n    = (int)(strlen(key) - (pe_text_ends_with(key, "_config") ? strlen("_config") : 0));
    const char   *name = pe_build_text(m, "%.*s", n, key), *type = own ? own : part_type(m, outer, key);
    if (tower && pe_build_finish(&done, read_object(object, type, name, tower, depth)) &&
        why.status != POSENC_ERROR_MEMORY && (tower = pe_build_begin(m->info.format, m->path, &why))) {
        tower->info.type     = pe_build_text(tower, "%s", type);
        tower->info.tower    = name;
        tower->info.encoding = "unknown";
        pe_build_warn(tower, "unknown-model-type", "it cannot be read: %.240s", why.message);
        pe_build_finish(&done, tower);
    }
    if (done)
        m->towers[m->info.tower_count++] = done;
    else
        pe_build_refuse_memory(m);
}

static void add_towers(posenc_model *m, const json_t *file, const char *main_key, const char *outer,
                       int depth)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)(uintptr_t)file, key, value)
    {
        const int is_part = json_is_object(value) && (json_is_string(json_object_get(value, "model_type")) ||
                                                      pe_text_is_among("vision_config audio_config", key));
        if (is_part && !(main_key && pe_text_is(key, main_key)) && m->info.tower_count < PE_MODEL_TOWERS &&
            !m->status)
            add_tower(m, value, key, outer, depth);
    }
}

/* `type` is that of the object where it does not say. */
static posenc_model *read_object(const json_t *object, const char *type, const char *tower,
                                 posenc_model *begun, int depth)
{
    const char        *key;
    pe_config          c    = {.m = begun};
    posenc_model_info *info = &c.m->info;
    info->tower             = tower;
    c.file                  = language_model(object, &key);
    choose_row(&c, object, type);
    if (key && !tower)
        info->tower = pe_build_text(c.m, "%.*s", (int)strcspn(key, "_"), key);
    if (!c.m->status) {
        info->layers = pe_config_size(&c, PE_DEPTH);
        if (pe_text_is_among("unknown none", c.encoding))
            info->encoding = c.encoding;
        else
            pe_config_encoding(&c, c.encoding);
        if (c.type.beside && !c.m->status)
            pe_config_encoding(&c, c.type.beside);
        pe_config_windows(&c);
        pe_config_other_terms(&c);
        if (!info->max_positions && strcmp(c.encoding, "t5") != 0) /* T5 knows no end */
            info->max_positions = pe_config_size(&c, PE_CONTEXT);
        pe_config_warn_of_sizes(&c);
    }
    if (!c.m->status && depth < MOST_NESTED)
        add_towers(c.m, object, key, type, depth + 1);
    return c.m;
}

posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err)
{
    json_error_t  why;
    posenc_model *m = pe_build_begin(format, path, err);
    if (!m)
        return POSENC_ERROR_MEMORY;
    json_t *root = pe_json_load_python(text, n, &why);
    if (!root)
        pe_build_refuse(m, "it is not valid JSON: line %d, column %d: %.80s", why.line, why.column, why.text);
    else if (!json_is_object(root))
        pe_build_refuse(m, "it is JSON but not an object; a configuration is { ... }");
    else {
        pe_config   whole = {.m = m, .file = root};
        const char *type  = pe_config_word(&whole, root, "model_type");
        if (!m->status)
            read_object(root, type, NULL, m, 0);
    }
    json_decref(root);
    return pe_build_finish(model, m);
}
