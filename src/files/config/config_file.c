/* SPDX-License-Identifier: MIT */
/*
 * config_file.c: a model's config.json: which object describes the language model, which row of the table it
 * is
 *
 * The idea  A configuration leaves out what its class takes for granted, so a file means something only
 *           together with the table of model types (model_types.def). This file finds both; config_other.c,
 *           config_rope.c and config_layers.c ask them.
 * Nested    The language model of a composite model is an object of the file, under one of four names.
 * Strict    A key that appears twice, NaN, Infinity, a number out of range: refused in one line. A key that
 *           is absent or null has the value that the table or the asker gives. Keys that say nothing about
 *           positions are ignored.
 * Source    transformers 5.16, configuration_utils.py and the configuration of each type
 */
#include "files/config/config.h"

#include <string.h>

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
                                   pe_text_is_among("rope_theta rope_scaling rope_parameters rotary_emb_base "
                                                    "partial_rotary_factor rotary_pct rotary_dim",
                                                    key)) return 1;
    return 0;
}

static void choose_row(pe_config *c, const json_t *outer)
{
    const char          *own  = pe_config_word(c, c->file, "model_type");
    const char          *name = inner_type(c->m, own ? own : pe_config_word(c, outer, "model_type"));
    const pe_model_type *row  = find_type(name);
    name = row ? name : own; /* what the whole is called says nothing about an object that is not known */
    c->m->info.type = name ? pe_build_text(c->m, "%s", name) : NULL;
    c->type         = row ? *row : *find_type("llama");
    c->type.name    = row ? c->m->info.type : "llama";
    if (!row) {
        c->is_unknown = 1;
        c->encoding   = has_rope_keys(c->file) ? "rope" : "unknown";
        pe_build_warn(c->m, "unknown-model-type", "%s is not in the table of model types: %s",
                      name ? name : "a file without model_type",
                      strcmp(c->encoding, "rope") ? "its encoding is not known"
                                                  : "it is read as a llama, which may be wrong");
        return;
    }
    const json_t *value = pe_config_get(c->file, c->type.switch_key);
    c->encoding         = c->type.encoding ? c->type.encoding : "rope";
    if (value && pe_text_is(json_is_true(value) ? "true" : json_string_value(value), c->type.switch_value))
        c->encoding = c->type.switched;
}

posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err)
{
    json_error_t why;
    pe_config    c = {.m = pe_build_begin(format, path, err)};
    if (!c.m)
        return POSENC_ERROR_MEMORY;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        pe_build_refuse(c.m, "it is not valid JSON: line %d, column %d: %.80s", why.line, why.column,
                        why.text);
    else if (!json_is_object(root))
        pe_build_refuse(c.m, "it is JSON but not an object; a configuration is { ... }");
    else {
        c.file = language_model(root);
        choose_row(&c, root);
    }
    if (!c.m->status) {
        posenc_model_info *info = &c.m->info;
        info->layers            = pe_config_size(&c, PE_DEPTH);
        if (pe_text_is_among("unknown none", c.encoding))
            info->encoding = c.encoding;
        else
            pe_config_encoding(&c);
        pe_config_windows(&c);
        if (!info->max_positions && strcmp(c.encoding, "t5") != 0) /* T5 knows no end */
            info->max_positions = pe_config_size(&c, PE_CONTEXT);
    }
    json_decref(root);
    return pe_build_finish(model, c.m);
}
