/* SPDX-License-Identifier: MIT */
/*
 * config.c: a model's config.json: which object describes the language model, which row of the table it is
 *
 * The idea  A configuration leaves out what its class takes for granted, so a file means something only
 *           together with the table of model types (model_types.def). This file finds both; config_members.c
 *           answers questions about them, which config_rope.c, config_layers.c and config_other.c ask.
 * Nested    The language model of a composite model is an object of the file, under one of four names.
 * Strict    A key that stands twice, NaN, Infinity, a number out of range: refused in one line. Keys that say
 *           nothing about positions are passed over.
 * Source    transformers 5.16, configuration_utils.py and the configuration of each type
 */
#include "files/config.h"

#include <string.h>

#include "files/fail.h"

static const json_t *language_model(const json_t *file)
{
    static const char *const names[] = {"text_config", "decoder", "generator", "text_encoder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_object(json_object_get(file, names[i])))
            return json_object_get(file, names[i]);
    return file;
}

/* The type that is read: the object's own, for a composite one that of its language model. */
static const char *type_of(pe_config *c, const json_t *outer)
{
    const char *name = pe_config_word(c, c->file, "model_type");
    if (!name)
        name = pe_config_word(c, outer, "model_type");
    if (!name || pe_model_type_find(name))
        return name;
    const char *inside = pe_model_type_inside(name);
    return inside ? inside : pe_config_word(c, c->file, "model_type");
}

static int has_rope_keys(const json_t *file)
{
    static const char *const keys[] = {"rope_theta",      "rope_scaling",          "rope_parameters",
                                       "rotary_emb_base", "partial_rotary_factor", "rotary_pct",
                                       "rotary_dim"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pe_config_get(file, keys[i]))
            return 1;
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
    const char *name                  = type_of(c, outer);
    pe_modelfile_info(c->model)->type = name ? pe_modelfile_text(c->model, "%s", name) : NULL;
    c->type                           = name ? pe_model_type_find(name) : NULL;
    if (!c->type) {
        c->type       = pe_model_type_find("llama");
        c->is_unknown = 1;
        c->encoding   = has_rope_keys(c->file) ? "rope" : "unknown";
        pe_modelfile_warn(c->model, "unknown-model-type", "%s is not in the table of model types: %s",
                          name ? pe_modelfile_info(c->model)->type : "a file without model_type",
                          strcmp(c->encoding, "rope") ? "its encoding is not known"
                                                      : "it is read as a llama, which may be wrong");
        return;
    }
    const json_t *value = pe_config_get(c->file, c->type->switch_key);
    c->encoding = value && has_value(value, c->type->switch_value) ? c->type->switched : c->type->encoding;
}

static void read_groups(pe_config *c)
{
    posenc_model_info *info = pe_modelfile_info(c->model);
    info->layers            = pe_config_depth(c);
    if (!strcmp(c->encoding, "unknown") || !strcmp(c->encoding, "none"))
        info->encoding = c->encoding, info->max_positions = pe_config_context(c);
    else if (!strcmp(c->encoding, "rope"))
        pe_config_rope(c);
    else if (!strcmp(c->encoding, "nope"))
        pe_config_nope(c);
    else
        pe_config_other(c);
}

posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err)
{
    json_error_t why;
    pe_config    c    = {.path = path, .err = err, .model = pe_modelfile_create(format)};
    json_t      *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!c.model)
        pe_config_no_memory(&c);
    else if (!root)
        pe_config_refuse(&c, "it is not JSON as a configuration needs it: line %d, column %d: %.80s",
                         why.line, why.column, why.text);
    else if (!json_is_object(root))
        pe_config_refuse(&c, "it is JSON but no object; a configuration is { ... }");
    if (!c.status) {
        c.file = language_model(root);
        choose_row(&c, root);
        if (!c.status)
            read_groups(&c);
    }
    if (!c.status)
        c.status = pe_modelfile_finish(c.model, path, err);
    json_decref(root);
    if (c.status)
        posenc_model_free(c.model);
    else
        *model = c.model;
    return c.status;
}
