/* SPDX-License-Identifier: MIT */
/*
 * config.h: what the parts of the reader of config.json share
 *
 * The object of the language model, the row of its type, and the questions one asks of both. A question that
 * is refused, or asked after a refusal (build.h), gets a harmless answer. A null is absent, with the two
 * exceptions that ask for it themselves.
 */
#ifndef PE_FILES_CONFIG_H
#define PE_FILES_CONFIG_H

#include <jansson.h>

#include "files/model/build.h"

/* What the class of a model type takes for granted: a row of model_types.def, where the columns are
 * explained. */
typedef struct pe_model_type {
    const char *names; /* of the types that are so, blank-separated */
    const char *name;  /* of them, that of the file: set when the row is chosen */
    const char *encoding;
    const char *switch_key, *switch_value, *switched;
    int         scaled_bias;
    const char *layout, *layout_key;
    int         writes_half;
    int share_read; /* mla: the class sets the fraction to d / D itself; 1: and its default schedule does not
                       read it */
    int         inverse;
    const char *head;
    int64_t     head_dim, full_head_dim, nope_dim, rope_dim;
    int         rotary_dim_key;
    int64_t     rotary_dim;
    int         partial_read;
    double      partial;
    const char *partial_key;
    double      base, local_base, old_base, old_local_base;
    const char *scaling;
    const char *base_key, *local_base_key;
    int         fixed_base;
    const char *ratio_key, *rope_default;
    int64_t     original_length;
    const char *only, *needs, *extra_keys;
    int         alpha, mixed;
    const char *axis_rule;
    int         axes, periods;
    int64_t     sections[3];
    const char *layers, *labels, *indices_key, *blocks_key;
    int         none_listed, every_named;
    int64_t     every;
    const char *every_key, *pattern, *temperature;
    const char *score;
    double      score_default;
    const char *windows, *window_key;
    int64_t     window, window_first;
    int         window_both;
    double      softcap;
    int         sinks;
    const char *other_terms;
    const char *preset;
    int64_t     offset;
    int         offset_inside;
    const char *rows_key, *image_key, *beside;
    int64_t     patch, image, prefix_rows;
    int         two_stacks;
    int64_t     table_dim;
    const char *table_dim_key;
    const char *nested;
    const char *by_width_key, *beyond;
    int64_t     alibi_width;
    const char *unknown, *shown;
    int         own_tables, log_buckets;
    int64_t     period, period_offset;
    int64_t     hidden, heads, depth, context;
    const char *hidden_key, *heads_key, *layers_key, *context_key, *head_dim_key, *layer_types_key;
} pe_model_type;

typedef struct pe_config {
    posenc_model *m;
    const json_t *file; /* the object of the language model */
    pe_model_type type;
    const char   *encoding;   /* the type's, after its switch */
    int           is_unknown; /* no row of its own: read as llama, without llama's sizes */
    unsigned      defaults;   /* sizes that were asked for and are the class's: 1 << PE_HIDDEN ... */
} pe_config;

/* Member of an object, NULL if absent or null. */
const json_t *pe_config_get(const json_t *object, const char *key);

/* The object inside the file where some types keep numbers of attention (attn_config); NULL without. */
const json_t *pe_config_nested(const pe_config *c);

/* Numbers of a member; `fallback` where it is absent. A wrong one is refused under the key's name. */
double  pe_config_real(pe_config *c, const json_t *object, const char *key, double fallback);
int64_t pe_config_whole(pe_config *c, const json_t *object, const char *key, int64_t low, int64_t high,
                        int64_t fallback);
int     pe_config_flag(pe_config *c, const json_t *object, const char *key, int fallback);
/* A whole number up to PE_MODEL_WIDEST of the file: heads, channels. */
int64_t pe_config_width(pe_config *c, const char *key, int64_t low, int64_t fallback);
/* A text, NULL if absent. */
const char *pe_config_word(pe_config *c, const json_t *object, const char *key);
/* A list, NULL if absent. */
const json_t *pe_config_list(pe_config *c, const json_t *object, const char *key);
/* A short form of a value, for sentences. */
const char *pe_config_shown(pe_config *c, const json_t *value);

/* Sizes of the file under the class's own name or the common one, else the class's. 0: unknown. */
enum { PE_HIDDEN, PE_HEADS, PE_DEPTH, PE_CONTEXT, PE_SIZES };
int64_t pe_config_size(pe_config *c, int which);
/* Is it in the file? And a warning that names those that are not and were asked for. */
int  pe_config_gives(const pe_config *c, int which);
void pe_config_warn_of_sizes(pe_config *c);
/* hidden / heads; refuses a remainder. */
int64_t pe_config_derived_width(pe_config *c);
/* Heads, key heads and model width, as far as known. */
posenc_dims pe_config_dims(pe_config *c);

/* What each layer is, as the rule of the type and the lists of the file have it: [*count] kinds of model.h,
   NULL after a refusal. */
char *pe_config_kinds(pe_config *c, int64_t *count);

/* Layers of one kind, among all. */
typedef struct pe_config_layers {
    const char *kinds;
    int64_t     depth;
    char        kind;
} pe_config_layers;

/* What per_layer_config gives them all, else the usual; refuses what differs among them. And what of it is
   not read. */
int64_t pe_config_of_layers(pe_config *c, const char *key, const pe_config_layers *of, int64_t usual);
void    pe_config_check_layers(pe_config *c);

/* Which layers slide, and over how many keys. */
void pe_config_windows(pe_config *c);

/* What attention does besides the encoding. */
void pe_config_other_terms(pe_config *c);

/* Adds the groups of an encoding, one of the words of model_types.def; some of its readers. */
void pe_config_encoding(pe_config *c, const char *word);
void pe_config_rope(pe_config *c);
void pe_config_nope(pe_config *c);
void pe_config_layoutlm(pe_config *c);
void pe_config_udop(pe_config *c);

/* The model of a config.json's text, which says `format` of itself. */
posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err);

/* ---------------------------------------------------------------- rotations ----------------- */

/* Where the numbers of one rotation stand. */
typedef struct pe_rope_source {
    json_t     *words;     /* owned; may be empty */
    const char *name;      /* of the dictionary, for sentences and rules */
    int         has_base;  /* the file itself gives this dictionary's rope_theta */
    const char *base_key;  /* at top level */
    double      base, old; /* of the class, now and in 4.57 */
} pe_rope_source;

/* Of the layers that are alike there are two kinds at most: full and sliding, or main and compressed. */
enum { PE_SOURCE_FULL, PE_SOURCE_LOCAL, PE_SOURCES };

/* The dictionaries, whose words the caller gives back; warns of bases that the file does not give. */
void pe_config_sources(pe_config *c, pe_rope_source d[PE_SOURCES]);
void pe_config_base(pe_config *c, const pe_rope_source *s, pe_file_rotation *r);

/* What the dictionary of a source is called: "full_attention", or "main" for DeepSeek-V4. */
const char *pe_config_label(pe_config *c, int kind);

/* Which schedule; its lengths, factors and further numbers, once r->dim is known. */
void pe_config_choose_schedule(pe_config *c, const pe_rope_source *s, pe_file_rotation *r);
void pe_config_read_schedule(pe_config *c, const pe_rope_source *s, pe_file_rotation *r);
void pe_config_warn_of_unused_keys(pe_config *c, const pe_rope_source *s, const pe_file_rotation *r);

#endif
