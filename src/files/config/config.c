/* SPDX-License-Identifier: MIT */
/* config.c: members and sizes of a configuration: contract in config.h. */
#include "files/config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- members ------------------- */

enum { SHOWN = 40 };

const char *pe_config_shown(pe_config *c, const json_t *value)
{
    char       *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    const char *shown =
        text ? pe_build_text(c->m, "%.*s%s", SHOWN, text, strlen(text) > SHOWN ? "..." : "") : "?";
    free(text);
    return shown;
}

const json_t *pe_config_get(const json_t *object, const char *key)
{
    const json_t *value = key ? json_object_get(object, key) : NULL;
    return json_is_null(value) ? NULL : value;
}

const json_t *pe_config_nested(const pe_config *c)
{
    const json_t *object = pe_config_get(c->file, c->type.nested);
    return json_is_object(object) ? object : NULL;
}

double pe_config_real(pe_config *c, const json_t *object, const char *key, double fallback)
{
    const json_t *value = pe_config_get(object, key);
    if (!value)
        return fallback;
    if (!json_is_number(value))
        pe_build_refuse(c->m, "%s is %s; it must be a number", key, pe_config_shown(c, value));
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
        pe_build_refuse(c->m, "%s is %s; it must be a whole number from %lld to %lld", key,
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
        pe_build_refuse(c->m, "%s is %s; it must be true or false", key, pe_config_shown(c, value));
    return json_number_value(value) != 0;
}

const char *pe_config_word(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_string(value))
        pe_build_refuse(c->m, "%s is %s; it must be a string", key, pe_config_shown(c, value));
    return json_string_value(value);
}

const json_t *pe_config_list(pe_config *c, const json_t *object, const char *key)
{
    const json_t *value = pe_config_get(object, key);
    if (value && !json_is_array(value))
        pe_build_refuse(c->m, "%s is %s; it must be a list", key, pe_config_shown(c, value));
    return json_is_array(value) ? value : NULL;
}

/* ---------------------------------------------------------------- sizes --------------------- */

typedef struct size_rule {
    const char *own, *common;
    int64_t     high, fallback;
} size_rule;

static size_rule rule_of(const pe_config *c, int which)
{
    const pe_model_type *t     = &c->type;
    const size_rule      all[] = {
             [PE_HIDDEN]  = {t->hidden_key, "hidden_size", 1LL << 31, t->hidden},
             [PE_HEADS]   = {t->heads_key, "num_attention_heads", PE_MODEL_WIDEST, t->heads},
             [PE_DEPTH]   = {t->layers_key, "num_hidden_layers", PE_MODEL_DEEPEST, t->depth},
             [PE_CONTEXT] = {t->context_key, "max_position_embeddings", 1LL << 53, t->context},
    };
    return all[which];
}

int pe_config_gives(const pe_config *c, int which)
{
    const size_rule r = rule_of(c, which);
    return pe_config_get(c->file, r.own) || pe_config_get(c->file, r.common);
}

int64_t pe_config_size(pe_config *c, int which)
{
    const size_rule r        = rule_of(c, which);
    const char     *key      = pe_config_get(c->file, r.own) ? r.own : r.common;
    const int64_t   fallback = c->is_unknown ? 0 : r.fallback;
    c->defaults |= fallback && !pe_config_gives(c, which) ? 1u << which : 0;
    return pe_config_whole(c, c->file, key, 1, r.high, fallback);
}

void pe_config_warn_of_sizes(pe_config *c)
{
    const char *text = "";
    for (int which = 0; which < PE_SIZES; which++) {
        const size_rule r = rule_of(c, which);
        if (c->defaults >> which & 1)
            text = pe_build_text(c->m, "%s%s%s %lld", text, *text ? ", " : "", r.own ? r.own : r.common,
                                 (long long)r.fallback);
    }
    if (*text)
        pe_build_warn(c->m, "size-default", "the file does not give all sizes; the class %s brings %s",
                      c->type.name, text);
}

int64_t pe_config_derived_width(pe_config *c)
{
    const int64_t hidden = pe_config_size(c, PE_HIDDEN), heads = pe_config_size(c, PE_HEADS);
    if (!hidden || !heads)
        pe_build_refuse(c->m, "%s is missing, and the type %s has no default for it",
                        hidden ? "num_attention_heads" : "hidden_size",
                        c->is_unknown ? "is not in the table and" : c->type.name);
    else if (hidden % heads || hidden / heads > PE_MODEL_WIDEST)
        pe_build_refuse(
            c->m, "hidden_size %lld is not a multiple of %lld heads (up to %d wide), and head_dim is missing",
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
    if (!dims.G)
        dims.G = pe_config_whole(c, pe_config_nested(c), "kv_n_heads", 1, PE_MODEL_WIDEST, 0);
    const int64_t width = dims.H && dims.d_model % dims.H == 0 ? dims.d_model / dims.H : 0;
    dims.D              = pe_config_width(c, "d_kv", 1, width <= PE_MODEL_WIDEST ? width : 0);
    return dims;
}
