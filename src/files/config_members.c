/* SPDX-License-Identifier: MIT */
/*
 * config_members.c: what the object of a configuration says: members of a type, sizes, and refusals
 *
 * A number out of range or of another type is refused in one line; a key that is absent or null has the value
 * that the table of model types (model_types.def) or the asker gives.
 */
#include "files/config.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "files/fail.h"

/* ---------------------------------------------------------------- refusing ------------------ */

void pe_config_refuse(pe_config *c, const char *format, ...)
{
    va_list values;
    if (c->status)
        return;
    va_start(values, format);
    c->status = pe_file_fail_list(c->err, POSENC_FORMAT, (pe_origin){c->path, NULL}, format, values);
    va_end(values);
}

void pe_config_no_memory(pe_config *c)
{
    if (!c->status)
        c->status =
            pe_file_fail(c->err, POSENC_MEMORY, (pe_origin){c->path, NULL}, "no memory for what it says");
}

enum { SHOWN = 40 };

const char *pe_config_shown(pe_config *c, const json_t *value)
{
    char       *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    const char *kept =
        text ? pe_modelfile_text(c->model, "%.*s%s", SHOWN, text, strlen(text) > SHOWN ? "..." : "") : "?";
    free(text);
    return kept;
}

/* ---------------------------------------------------------------- members ------------------- */

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
        pe_config_refuse(c, "%s is %s; it must be a number", key, pe_config_shown(c, value));
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
        pe_config_refuse(c, "%s is %s; it must be a whole number from %lld to %lld", key,
                         pe_config_shown(c, value), (long long)low, (long long)high);
        return fallback;
    }
    return (int64_t)x;
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
        pe_config_refuse(c, "%s is %s; it must be true or false", key, pe_config_shown(c, value));
    return json_number_value(value) != 0;
}

const char *pe_config_word(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_string(value))
        pe_config_refuse(c, "%s is %s; it must be a text", key, pe_config_shown(c, value));
    return json_string_value(value);
}

const json_t *pe_config_list(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_array(value))
        pe_config_refuse(c, "%s is %s; it must be a list", key, pe_config_shown(c, value));
    return json_is_array(value) ? value : NULL;
}

/* ---------------------------------------------------------------- sizes --------------------- */

static const int64_t widest_model = INT64_C(1) << 31, longest_context = INT64_C(1) << 53;

static int64_t size_of(pe_config *c, const char *own, const char *common, int64_t high, int64_t standard)
{
    const char *key = pe_config_get(c->file, own) ? own : common;
    return pe_config_whole(c, c->file, key, 1, high, c->is_unknown ? 0 : standard);
}

int64_t pe_config_hidden(pe_config *c)
{
    return size_of(c, c->type->hidden_key, "hidden_size", widest_model, c->type->hidden);
}

int64_t pe_config_heads(pe_config *c)
{
    return size_of(c, c->type->heads_key, "num_attention_heads", PE_MODEL_WIDEST, c->type->heads);
}

int64_t pe_config_depth(pe_config *c)
{
    return size_of(c, c->type->layers_key, "num_hidden_layers", PE_MODEL_DEEPEST, c->type->depth);
}

int64_t pe_config_context(pe_config *c)
{
    return size_of(c, c->type->context_key, "max_position_embeddings", longest_context, c->type->context);
}

int64_t pe_config_derived_width(pe_config *c)
{
    const int64_t hidden = pe_config_hidden(c), heads = pe_config_heads(c);
    if (!hidden || !heads)
        pe_config_refuse(c, "%s is missing, and the type %s has no size of its own for it",
                         hidden ? "num_attention_heads" : "hidden_size",
                         c->is_unknown ? "is not in the table and" : c->type->name);
    else if (hidden % heads || hidden / heads > PE_MODEL_WIDEST)
        pe_config_refuse(
            c, "hidden_size %lld is no multiple of %lld heads (up to %d wide), and head_dim is missing",
            (long long)hidden, (long long)heads, PE_MODEL_WIDEST);
    return c->status ? 2 : hidden / heads;
}

posenc_dims pe_config_dims(pe_config *c)
{
    static const char *const names[] = {"num_key_value_heads", "n_head_kv", "num_kv_heads",
                                        "multi_query_group_num"};
    posenc_dims              dims    = {.H = pe_config_heads(c), .d_model = pe_config_hidden(c)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!dims.G)
            dims.G = pe_config_whole(c, c->file, names[i], 1, PE_MODEL_WIDEST, 0);
    return dims;
}
