/* SPDX-License-Identifier: MIT */
/*
 * model.h: a model while its file is being read
 *
 * The readers (config.c, gguf_model.c) find numbers; this part keeps them as groups of facts that live as
 * long as the model, and knows nothing of file formats. Memory is taken piece by piece and freed with the
 * model; a piece that could not be had is remembered, so that only the end must ask (pe_modelfile_finish).
 */
#ifndef PE_FILES_MODEL_H
#define PE_FILES_MODEL_H

#include <posenc/files.h>

enum { PE_MODEL_GROUPS = 8, PE_MODEL_FACTS = 48, PE_MODEL_PARAMS = 4 };

/* The widest head, and the most heads and layers, that are believed: bounds on what a small file may make us
   allocate. */
enum { PE_MODEL_WIDEST = 1 << 16, PE_MODEL_DEEPEST = 1 << 16 };

/* The same word? NULL is none. */
int pe_is(const char *a, const char *b);

posenc_model *pe_modelfile_create(const char *format);

/* Zeroed memory that lives as long as the model; NULL without memory, which pe_modelfile_finish reports. */
void *pe_modelfile_take(posenc_model *model, size_t n);
char *pe_modelfile_text(posenc_model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

posenc_model_info *pe_modelfile_info(posenc_model *model);

/* "base-default" and what it means here. The same sentence twice is one warning. */
void pe_modelfile_warn(posenc_model *model, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new group, of all layers as yet. There are never more than PE_MODEL_GROUPS. */
posenc_model_group *pe_modelfile_group(posenc_model *model, const char *encoding);
/* The layers whose kind is `kind`, all where that is every one of them. */
void pe_modelfile_layers(posenc_model *model, posenc_model_group *group, const char *kinds, int64_t count,
                         char kind);
/* A parameter of the group's encoding: a list [count], whose numbers are copied. */
void pe_modelfile_param(posenc_model *model, posenc_model_group *group, const char *name,
                        const double *values, int64_t count);

/* Facts, in the order in which they are printed. `rule` may be NULL; texts and lists are copied. */
void pe_fact_none(posenc_model *model, posenc_model_group *group, const char *name, const char *rule);
void pe_fact_flag(posenc_model *model, posenc_model_group *group, const char *name, int value,
                  const char *rule);
void pe_fact_integer(posenc_model *model, posenc_model_group *group, const char *name, int64_t value,
                     const char *rule);
void pe_fact_real(posenc_model *model, posenc_model_group *group, const char *name, double value,
                  const char *rule); /* NaN: none */
void pe_fact_word(posenc_model *model, posenc_model_group *group, const char *name, const char *value,
                  const char *rule); /* NULL: none */
void pe_fact_words(posenc_model *model, posenc_model_group *group, const char *name, const char *value,
                   const char *rule);
void pe_fact_list(posenc_model *model, posenc_model_group *group, const char *name, posenc_fact_kind kind,
                  const double *values, int64_t count, const char *rule);

/* Makes one of groups that are alike, sorts groups and warnings and names the encoding of the whole; MEMORY
   if a piece could not be had. */
posenc_status pe_modelfile_finish(posenc_model *model, const char *path, posenc_error *err);

#endif
