/* SPDX-License-Identifier: MIT */
/*
 * gguf.h: the metadata of a GGUF file, and the small tensors one asks for
 *
 * Values are stored as numbers or texts, lists of numbers up to a bound; what is too long to be about
 * positions (a vocabulary) is walked over. Everything is checked against the size of the file before it is
 * believed. What is stored lives as long as the model, and what is wrong is refused there.
 */
#ifndef PE_FILES_GGUF_H
#define PE_FILES_GGUF_H

#include "files/model/build.h"

/* Bytes that may be asked for in any order, from a file or from memory: model files are larger than memory,
   and what is wanted of them is small and lies anywhere. */
typedef struct pe_source {
    const void *from;
    int64_t (*read_at)(const void *from, void *to, int64_t n, int64_t at); /* bytes read, -1 on failure */
    int64_t     size;
    const char *path; /* for sentences */
} pe_source;

typedef enum pe_gguf_kind {
    PE_GGUF_NUMBER,
    PE_GGUF_FLAG,
    PE_GGUF_TEXT,
    PE_GGUF_LIST,
    PE_GGUF_OTHER
} pe_gguf_kind;

typedef struct pe_gguf_value {
    char        *name;
    pe_gguf_kind kind;
    double       number; /* of NUMBER and FLAG; of a LIST how many */
    char        *text;
    double      *list;
    int64_t      count;
} pe_gguf_value;

typedef struct pe_gguf_tensor {
    char    *name;
    int64_t  shape[4]; /* fastest first, as in the file */
    int      ndim;
    uint32_t type;
    uint64_t at; /* from the first byte of the file */
} pe_gguf_tensor;

typedef struct pe_gguf {
    posenc_model    *model;
    const pe_source *source;
    pe_gguf_value   *values; /* by name */
    int64_t          value_count;
    pe_gguf_tensor  *tensors; /* those whose name has no "blk.", by name */
    int64_t          tensor_count;
} pe_gguf;

/* Fills values and tensors. */
void pe_gguf_read(pe_gguf *g);

const pe_gguf_value  *pe_gguf_find(const pe_gguf *g, const char *name);
const pe_gguf_tensor *pe_gguf_tensor_of(const pe_gguf *g, const char *name);

/* The numbers of a float32 tensor as doubles, count of them; refuses another type or number, and numbers that
   are not finite and above 0. NULL after a refusal, and where there is no such tensor. */
const double *pe_gguf_floats(const pe_gguf *g, const char *name, int64_t count);

/* The model of a GGUF file. */
posenc_status pe_gguf_model(posenc_model **model, const pe_source *source, posenc_error *err);

#endif
