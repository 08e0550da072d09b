/* SPDX-License-Identifier: MIT */
/*
 * config_layers.c: which layers of a model are alike
 *
 * First each layer gets a word, the file's own (layer_types) or that of the pattern of the class; then the
 * rule of the type says what a word means for the rotation. A list of the file wins over a pattern.
 *
 * Patterns  "every": layer i is full where (i + 1) % every == 0; "every-from-first": where i % every == 0;
 *           "every-from-last": counted backward from the last layer, which is one; "every-and-first",
 *           "every-and-last": layer 0, or the last one, as well. The other layers slide, or are linear where
 *           the rule is attention-only.
 * Windows   "layers": the layers that slide see sliding_window keys; "all": every layer, unless layer_types
 * says otherwise; "late-if-used", "odd-if-used", "all-if-used": Qwen's, where use_sliding_window is true,
 * from layer max_window_layers on, or every second one before it, or all; "late": without that flag. Source
 * transformers 5.16, configuration_*.py of the types named in model_types.def
 */
#include "files/config/config.h"

#include <stdlib.h>
#include <string.h>

typedef enum word { FULL, SLIDING, COMPRESSED, LINEAR } word;

/* ---------------------------------------------------------------- words of the file --------- */

/* Since 5.0 "attention" is read as full, "mamba" and "conv" as linear. */
static word word_of(pe_config *c, const json_t *value)
{
    static const char *const words[] = {
        [FULL]       = "full_attention attention global indexed_attention hybrid",
        [SLIDING]    = "sliding_attention chunked_attention local hybrid_sliding reference_sliding_attention",
        [COMPRESSED] = "compressed_sparse_attention heavily_compressed_attention",
        [LINEAR]     = "linear_attention mamba mamba2 conv recurrent mlp moe",
    };
    for (word means = FULL; means <= LINEAR; means++)
        if (pe_text_is_among(words[means], json_string_value(value)))
            return means;
    if (c->type.layers) /* without a rule the words change nothing */
        pe_build_refuse(
            c->m,
            "layer_types has %s; known are full_attention, sliding_attention, linear_attention, mamba, conv",
            pe_config_shown(c, value));
    return FULL;
}

static void check_length(pe_config *c, const char *name, const json_t *list, int64_t depth)
{
    if ((int64_t)json_array_size(list) != depth)
        pe_build_refuse(c->m, "%s has %zu entries but the model has %lld layers; there must be one for each",
                        name, json_array_size(list), (long long)depth);
}

/* ---------------------------------------------------------------- words of a pattern -------- */

/* EXAONE may write its pattern as letters: "LLLG" is every fourth. */
static int64_t every_of(pe_config *c)
{
    const json_t *value = pe_config_get(c->file, c->type.every_key);
    if (!json_is_string(value))
        return pe_config_whole(c, c->file, c->type.every_key, 1, PE_MODEL_DEEPEST, c->type.every);
    const char  *letters = json_string_value(value);
    const size_t n       = strlen(letters);
    if (!n || strspn(letters, "L") != n - 1 || letters[n - 1] != 'G')
        pe_build_refuse(c->m, "%s is %s; it must be a number, or letters like LLLG", c->type.every_key,
                        pe_config_shown(c, value));
    return n ? (int64_t)n : 1;
}

static int is_full(const pe_config *c, int64_t every, int64_t i, int64_t depth)
{
    const char *pattern = c->type.pattern;
    if (pe_text_is(pattern, "every-from-first"))
        return i % every == 0;
    if (pe_text_is(pattern, "every-from-last"))
        return (depth - 1 - i) % every == 0;
    if ((pe_text_is(pattern, "every-and-first") && i == 0) ||
        (pe_text_is(pattern, "every-and-last") && i == depth - 1))
        return 1;
    return (i + 1) % every == 0;
}

static int is_listed(const json_t *list, int64_t i)
{
    size_t  k;
    json_t *value;
    json_array_foreach(list, k, value) if (json_is_integer(value) && json_integer_value(value) == i) return 1;
    return 0;
}

/* DeepSeek-V4's older lists name a ratio per layer, 0 for layers that slide. */
static void ratio_words(pe_config *c, word *words, const json_t *ratios, int64_t depth)
{
    check_length(c, "compress_ratios", ratios, depth);
    for (int64_t i = 0; !c->m->status && i < depth; i++) {
        const json_t *value = json_array_get(ratios, (size_t)i);
        if (!json_is_integer(value))
            pe_build_refuse(c->m, "compress_ratios has %s; it must hold whole numbers",
                            pe_config_shown(c, value));
        words[i] = json_integer_value(value) ? COMPRESSED : SLIDING;
    }
}

static void pattern_words(pe_config *c, word *words, int64_t depth)
{
    const int64_t every   = every_of(c);
    const char   *named   = c->type.indices_key ? c->type.indices_key : "full_attn_idxs";
    const json_t *indices = pe_config_list(c, c->file, named), *ratios = NULL;
    const word    other = pe_text_is(c->type.layers, "attention-only") ? LINEAR : SLIDING;
    if (pe_text_is(c->type.layers, "main-compress"))
        ratios = pe_config_list(c, c->file, "compress_ratios");
    if (ratios)
        ratio_words(c, words, ratios, depth);
    else
        for (int64_t i = 0; !c->m->status && i < depth; i++)
            if (pe_text_is(c->type.layers, "main-compress"))
                words[i] = COMPRESSED;
            else if ((indices || c->type.none_listed) && !c->type.every_key && other == LINEAR)
                words[i] = is_listed(indices, i) ? FULL : LINEAR;
            else
                words[i] = every && !is_full(c, every, i, depth) ? other : FULL;
}

static void layer_words(pe_config *c, word *words, int64_t depth)
{
    const char   *own    = c->type.layer_types_key;
    const char   *key    = pe_config_get(c->file, own) ? own : "layer_types";
    const json_t *list   = pe_config_list(c, c->file, key);
    const json_t *blocks = list ? NULL : pe_config_list(c, c->file, c->type.blocks_key);
    for (int64_t i = 0; !c->m->status && json_array_size(blocks) && i < depth; i++)
        words[i] = word_of(c, json_array_get(blocks, (size_t)i % json_array_size(blocks)));
    if (!list && !json_array_size(blocks))
        pattern_words(c, words, depth);
    if (!list)
        return;
    check_length(c, key, list, depth);
    for (int64_t i = 0; !c->m->status && i < depth; i++)
        words[i] = word_of(c, json_array_get(list, (size_t)i));
    if (pe_text_is(c->type.pattern, "every-and-last"))
        words[depth - 1] = FULL;
}

/* ---------------------------------------------------------------- rules --------------------- */

static void no_rope_layers(pe_config *c, char *kinds, int64_t depth)
{
    const json_t *list  = pe_config_list(c, c->file, "no_rope_layers");
    const int64_t every = every_of(c);
    if (json_array_size(list))
        check_length(c, "no_rope_layers", list, depth);
    for (int64_t i = 0; !c->m->status && i < depth; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (value && !json_is_integer(value) && !json_is_boolean(value))
            pe_build_refuse(c->m, "no_rope_layers has %s; it must hold 1 (rotate) and 0",
                            pe_config_shown(c, value));
        const int rotates = value ? json_is_true(value) || json_integer_value(value) : (i + 1) % every != 0;
        kinds[i]          = rotates ? PE_FULL : PE_NOPE;
    }
}

/* A base for each layer, 0 where it does not rotate; without the list full layers do not. */
static void no_rope_bases(pe_config *c, char *kinds, const word *words, int64_t depth)
{
    const json_t *list = pe_config_list(c, c->file, "layer_rope_theta");
    if (list)
        check_length(c, "layer_rope_theta", list, depth);
    for (int64_t i = 0; !c->m->status && i < depth; i++) {
        const double base = json_number_value(json_array_get(list, (size_t)i));
        kinds[i]          = (list ? base > 0 : words[i] == SLIDING) ? PE_FULL : PE_NOPE;
        if (words[i] == LINEAR)
            kinds[i] = PE_NO_ATTENTION;
    }
}

/* The kinds of layers that are FULL, SLIDING, COMPRESSED, LINEAR. */
static const char *kinds_of_words(const pe_config *c)
{
    static const char *const rules[][2] = {
        {"per-type", "fll-"},
        {"main-compress", "lfll"}, /* sliding layers have the main rotation, every other the compressed one */
        {"rope-on-sliding", "nff-"},
        {"rope-on-sliding-if-window", "nff-"},
    };
    /* EXAONE 4: null, which is not the same as absent here, means that there are no windows. */
    const int no_window = pe_text_is(c->type.layers, "rope-on-sliding-if-window") &&
                          json_is_null(json_object_get(c->file, "sliding_window"));
    for (size_t i = 0; !no_window && i < sizeof rules / sizeof *rules; i++)
        if (pe_text_is(c->type.layers, rules[i][0]))
            return rules[i][1];
    return "fff-"; /* without a rule windows may differ, and nothing else */
}

char *pe_config_kinds(pe_config *c, int64_t *count)
{
    const int64_t depth = *count = pe_config_size(c, PE_DEPTH);
    if (!depth)
        pe_build_refuse(c->m, "num_hidden_layers is missing, and the table has none for this type");
    char *kinds = pe_build_alloc(c->m, (size_t)depth + 1);
    word *words = pe_build_alloc(c->m, (size_t)depth * sizeof *words);
    if (!c->m->status)
        layer_words(c, words, depth);
    if (c->m->status)
        return NULL;
    if (pe_text_is(c->type.layers, "no-rope-layers"))
        no_rope_layers(c, kinds, depth);
    else if (pe_text_is(c->type.layers, "scaled-layers")) {
        const json_t *list = pe_config_list(c, c->file, "rope_scaling_layers");
        for (int64_t i = 0; i < depth; i++)
            kinds[i] = !list || is_listed(list, i) ? PE_FULL : PE_LOCAL;
    } else if (pe_text_is(c->type.layers, "no-rope-bases"))
        no_rope_bases(c, kinds, words, depth);
    else if (pe_text_is(c->type.layers, "no-cross")) {
        /* Mllama: layers that look at the image have no positions of the text */
        const json_t *list = pe_config_list(c, c->file, "cross_attention_layers");
        for (int64_t i = 0; i < depth; i++)
            kinds[i] = (list ? is_listed(list, i) : i >= 3 && (i - 3) % 5 == 0 && i <= 38) ? PE_NO_ATTENTION
                                                                                           : PE_FULL;
    } else
        for (int64_t i = 0; i < depth; i++)
            kinds[i] = kinds_of_words(c)[words[i]];
    return c->m->status ? NULL : kinds;
}

/* ---------------------------------------------------------------- numbers of single layers -- */

/* Entry of per_layer_config: which layer, or -1. Its keys are numbers, "5" or "05". */
static int64_t layer_of(const char *key, int64_t depth)
{
    char         *end;
    const int64_t layer = strtoll(key, &end, 10);
    return *key && !*end && layer >= 0 && layer < depth ? layer : -1;
}

int64_t pe_config_of_layers(pe_config *c, const char *key, const pe_config_layers *of, int64_t usual)
{
    const char   *name;
    json_t       *entry;
    const json_t *all = pe_config_get(c->file, "per_layer_config");
    int64_t      *values =
        json_is_object(all) && of->kinds ? pe_build_alloc(c->m, (size_t)of->depth * sizeof *values) : NULL;
    int64_t found = -1;
    for (int64_t i = 0; values && !c->m->status && i < of->depth; i++)
        values[i] = usual;
    if (values && !c->m->status)
        json_object_foreach((json_t *)(uintptr_t)all, name, entry) if (layer_of(name, of->depth) >= 0)
            values[layer_of(name, of->depth)] = pe_config_whole(c, entry, key, 0, PE_MODEL_WIDEST, usual);
    for (int64_t i = 0; values && !c->m->status && i < of->depth; i++) {
        if (of->kinds[i] != of->kind)
            continue;
        if (found >= 0 && values[i] != found)
            pe_build_refuse(c->m,
                            "per_layer_config gives layers of one kind the %s %lld and %lld; layers of a "
                            "kind are read alike",
                            key, (long long)found, (long long)values[i]);
        found = values[i];
    }
    return found < 0 ? usual : found;
}

/* A number of a single layer that is read for all alike would be lost in silence. */
void pe_config_check_layers(pe_config *c)
{
    static const char *const same[] = {"qk_rope_head_dim", "rope_theta", "rope_parameters", "rope_scaling",
                                       "partial_rotary_factor"};
    const char              *name;
    json_t                  *entry;
    json_object_foreach((json_t *)(uintptr_t)pe_config_get(c->file, "per_layer_config"), name,
                        entry) for (size_t i = 0; i < sizeof same / sizeof *same;
                                    i++) if (pe_config_get(entry, same[i]))
        pe_build_refuse(c->m, "per_layer_config has %s for layer %.20s, which is read for all layers alike",
                        same[i], name);
}

/* ---------------------------------------------------------------- windows ------------------- */

/* Layers with a window of their own; null: they see all keys. */
static void own_windows(pe_config *c, int64_t *windows, int64_t depth)
{
    const char *name;
    json_t     *entry;
    json_object_foreach((json_t *)(uintptr_t)pe_config_get(c->file, "per_layer_config"), name,
                        entry) if (layer_of(name, depth) >= 0 && json_object_get(entry, "sliding_window"))
        windows[layer_of(name, depth)] = pe_config_whole(c, entry, "sliding_window", 0, INT64_C(1) << 53, 0);
}

/* The file's, where null says that there is none; else the class's. */
static int64_t window_size(pe_config *c, const char **rule)
{
    const char *usual    = "sliding_window";
    const int   is_local = c->type.window_key && !(pe_config_get(c->file, usual) && !c->type.window_both);
    const char *key      = is_local ? c->type.window_key : usual;
    const int   is_given = json_object_get(c->file, key) != NULL;
    *rule                = is_given ? pe_build_text(c->m, "%s of the file", key) : "default of the class";
    return is_given ? pe_config_whole(c, c->file, key, 0, INT64_C(1) << 53, 0) : c->type.window;
}

/* Does layer i slide where the file has no list? */
static int slides(const pe_config *c, int64_t i, int64_t first)
{
    const char *rule = c->type.windows;
    return pe_text_is(rule, "all") || pe_text_is(rule, "all-if-used") ||
           (pe_text_is(rule, "odd-if-used") ? i % 2 == 0 && i < first : i >= first);
}

void pe_config_windows(pe_config *c)
{
    const char   *rule = c->type.windows, *why = "";
    const int64_t depth = rule ? pe_config_size(c, PE_DEPTH) : 0, size = rule ? window_size(c, &why) : 0;
    const int64_t first =
        pe_config_whole(c, c->file, "max_window_layers", 0, INT64_C(1) << 31, c->type.window_first);
    const int is_listed = pe_text_is(rule, "layers") || pe_config_get(c->file, "layer_types");
    if (!depth || !size || c->m->status ||
        (pe_text_ends_with(rule, "-if-used") && !pe_config_flag(c, c->file, "use_sliding_window", 0)))
        return;
    word    *words   = pe_build_alloc(c->m, (size_t)depth * sizeof *words);
    int64_t *windows = pe_build_alloc(c->m, (size_t)depth * sizeof *windows);
    if (is_listed && !c->m->status)
        layer_words(c, words, depth);
    for (int64_t i = 0; !c->m->status && i < depth; i++)
        if (is_listed ? words[i] == SLIDING : slides(c, i, first))
            windows[i] = pe_text_is(c->type.window_key, "local_attention") && !strstr(why, "sliding_window")
                             ? size / 2 + c->type.window_both
                             : size;
    if (!c->m->status)
        own_windows(c, windows, depth);
    if (!c->m->status)
        pe_build_windows(c->m, windows, why);
}

/* ---------------------------------------------------------------- other terms --------------- */

/* A number of the file, where null says that there is none; else the class's. */
static double number_or_none(pe_config *c, const char *key, double fallback)
{
    return json_object_get(c->file, key) ? pe_config_real(c, c->file, key, 0) : fallback;
}

void pe_config_other_terms(pe_config *c)
{
    enum { SINKS_OF_ALL = 1, SINKS_OF_SLIDING, SINKS_OF_TOKENS };
    const char  *text = c->type.other_terms ? c->type.other_terms : "";
    const double cap  = number_or_none(c, "attn_logit_softcapping", c->type.softcap);
    if (cap > 0)
        pe_build_softcap(c->m, cap);
    if (c->type.sinks && c->type.sinks != SINKS_OF_TOKENS)
        pe_build_sinks(c->m, c->type.sinks == SINKS_OF_SLIDING);
    if (*text)
        pe_build_other_terms(c->m, text, 0);
}
