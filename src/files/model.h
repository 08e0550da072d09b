/* SPDX-License-Identifier: MIT */
/*
 * model.h: a model while its file is being read
 *
 * The readers (config.c, gguf_model.c) find numbers; this part keeps them as groups of facts and knows
 * nothing of file formats. One way to fail: the first refusal sticks in model->status, questions asked after
 * it get harmless answers, and only the end must ask (pe_finish). Memory is taken piece by piece and freed
 * with the model; a piece that could not be had is such a refusal.
 */
#ifndef PE_FILES_MODEL_H
#define PE_FILES_MODEL_H

#include <posenc/files.h>

enum { PE_MODEL_GROUPS = 8, PE_MODEL_FACTS = 48, PE_MODEL_PARAMS = 4, PE_MODEL_WARNINGS = 64 };

/* The widest head, and the most heads and layers, that are believed: bounds on what a small file may make us
   allocate. */
enum { PE_MODEL_WIDEST = 1 << 16, PE_MODEL_DEEPEST = 1 << 16 };

/* Kinds of layers, a character for each: rotated, rotated otherwise (sliding, compressed), attention without
   positions, none at all. */
enum { PE_FULL = 'f', PE_LOCAL = 'l', PE_NOPE = 'n', PE_NO_ATTENTION = '-' };

struct posenc_model {
    const char          *path; /* while it is read, as err */
    posenc_error        *err;
    posenc_status        status; /* of the first refusal */
    posenc_model_info    info;
    posenc_model_group   groups[PE_MODEL_GROUPS];
    posenc_model_warning warnings[PE_MODEL_WARNINGS];
    struct pe_piece     *pieces;
};

/* ---------------------------------------------------------------- bytes --------------------- */

/* Bytes that may be asked for in any order, from a file or from memory: model files are larger than memory,
   and what is wanted of them is small and lies anywhere. */
typedef struct pe_source {
    const void *from;
    int64_t (*read_at)(const void *from, void *to, int64_t n, int64_t at); /* bytes read, -1 on failure */
    int64_t     size;
    const char *path; /* for sentences */
} pe_source;

/* Reads a model's file from memory; a .safetensors is refused, for nothing lies beside it. */
posenc_status pe_modelfile_parse(posenc_model **model, const void *bytes, size_t n, const char *path,
                                 posenc_error *err);

/* The model of a config.json's text, which says `format` of itself; of a GGUF file. */
posenc_status pe_config_parse(posenc_model **model, const char *text, size_t n, const char *path,
                              const char *format, posenc_error *err);
posenc_status pe_gguf_model(posenc_model **model, const pe_source *source, posenc_error *err);

/* ---------------------------------------------------------------- filling ------------------- */

/* The same word? NULL is none. */
int pe_is(const char *a, const char *b);

/* NULL without memory, which *err then says. */
posenc_model *pe_begin(const char *format, const char *path, posenc_error *err);
/* Makes one of groups that are alike, sorts groups and warnings and names the encoding of the whole. After a
   refusal frees the model and returns its status. */
posenc_status pe_finish(posenc_model **out, posenc_model *model);

/* Refuses the file, FORMAT; for want of memory. */
void pe_refuse(posenc_model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pe_refuse_memory(posenc_model *model);

/* Zeroed memory that lives as long as the model, NULL without; a text in it. */
void *pe_keep(posenc_model *model, size_t n);
char *pe_print(posenc_model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "base-default" and what it means here. The same sentence twice is one warning. */
void pe_warn(posenc_model *model, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new group, of all layers as yet. There are never more than PE_MODEL_GROUPS. What follows is about the
   group that was made last; names, rules, texts and lists must live as long as the model. */
posenc_model_group *pe_group_add(posenc_model *model, const char *encoding);
/* The layers whose kind is `kind`, all where that is every one of them. */
void pe_layers(posenc_model *model, const char *kinds, int64_t count, char kind);
/* A parameter of the group's encoding: a list [count]. */
void pe_param(posenc_model *model, const char *name, const double *values, int64_t count);

/* Facts, in the order in which they are printed. `rule` may be NULL. The first has no value yet. */
posenc_fact *pe_fact(posenc_model *model, const char *name, posenc_fact_kind kind, const char *rule);
void         pe_fact_flag(posenc_model *model, const char *name, int value, const char *rule);
void         pe_fact_integer(posenc_model *model, const char *name, int64_t value, const char *rule);
void pe_fact_real(posenc_model *model, const char *name, double value, const char *rule); /* NaN: none */
void pe_fact_word(posenc_model *model, const char *name, const char *value,
                  const char *rule); /* NULL: none */
void pe_fact_list(posenc_model *model, const char *name, posenc_fact_kind kind, const double *values,
                  int64_t count, const char *rule);

#endif
