/* SPDX-License-Identifier: MIT */
/*
 * config.h: what the parts of the reader of config.json share
 *
 * The object of the language model, the row of its type, and the questions one asks of both. The first
 * refusal sticks: questions asked after it give harmless answers, and only the end of a step must look
 * (config->status). A null is absent, with the two exceptions that ask for it themselves.
 */
#ifndef PE_FILES_CONFIG_H
#define PE_FILES_CONFIG_H

#include <jansson.h>

#include "files/model.h"
#include "files/model_types.h"

typedef struct pe_config {
    const char          *path;
    posenc_error        *err;
    posenc_status        status;
    posenc_model        *model;
    const json_t        *file; /* the object of the language model */
    const pe_model_type *type;
    const char          *encoding;   /* the type's, after its switch */
    int                  is_unknown; /* no row of its own: read as llama, without llama's sizes */
} pe_config;

/* model_read's second half: text of a config.json. `format` is what the model says of itself. */
posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err);

/* Remembers the first refusal. */
void pe_config_refuse(pe_config *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pe_config_no_memory(pe_config *c);

/* Member of an object, NULL if absent or null. */
const json_t *pe_config_get(const json_t *object, const char *key);

/* Numbers of a member; `fallback` where it is absent. A wrong one is refused under the key's name. */
double  pe_config_real(pe_config *c, const json_t *object, const char *key, double fallback);
int64_t pe_config_whole(pe_config *c, const json_t *object, const char *key, int64_t low, int64_t high,
                        int64_t fallback);
int     pe_config_flag(pe_config *c, const json_t *object, const char *key, int fallback);
/* A text, NULL if absent. */
const char *pe_config_word(pe_config *c, const json_t *object, const char *key);
/* A list, NULL if absent. */
const json_t *pe_config_list(pe_config *c, const json_t *object, const char *key);
/* A short form of a value, for sentences. */
const char *pe_config_shown(pe_config *c, const json_t *value);

/* Sizes of the file under the class's own name or the common one, else the class's. 0: not told. */
int64_t pe_config_hidden(pe_config *c);
int64_t pe_config_heads(pe_config *c);
int64_t pe_config_depth(pe_config *c);
int64_t pe_config_context(pe_config *c);
/* hidden / heads; refuses a remainder. */
int64_t pe_config_derived_width(pe_config *c);
/* Heads, key heads and model width, as far as told. */
posenc_dims pe_config_dims(pe_config *c);

/* What each layer is: a character per layer. The letters are kinds of rotation ... */
enum { PE_FULL = 'f', PE_LOCAL = 'l', PE_NOPE = 'n', PE_NO_ATTENTION = '-' };
/* ... as the rule of the type and the lists of the file have it; [*count], NULL after a refusal. */
char *pe_config_kinds(pe_config *c, int64_t *count);

/* The readers of the encodings, by the words of model_types.def; they add the groups. */
void pe_config_rope(pe_config *c);
void pe_config_nope(pe_config *c);
void pe_config_other(pe_config *c); /* any of the rest */

#endif
