/* SPDX-License-Identifier: MIT */
/*
 * model_read.h: bytes that may be asked for in any order, from a file or from memory
 *
 * Model files are larger than memory, and what is wanted of them is small and lies anywhere.
 */
#ifndef PE_FILES_MODEL_READ_H
#define PE_FILES_MODEL_READ_H

#include <posenc/files.h>

typedef struct pe_source {
    const void *from;
    int64_t (*read_at)(const void *from, void *to, int64_t n, int64_t at); /* bytes read, -1 on failure */
    int64_t     size;
    const char *path; /* for sentences */
} pe_source;

pe_source pe_source_of_bytes(const void *bytes, int64_t n, const char *path);

/* Reads a model's file from memory; a .safetensors is refused, for nothing lies beside it. */
posenc_status pe_modelfile_parse(posenc_model **model, const void *bytes, size_t n, const char *path,
                                 posenc_error *err);

/* Refuses what is no .safetensors: the header alone is read, its tensors may have any type. */
posenc_status pe_safetensors_check(const pe_source *source, posenc_error *err);

/* The model of a GGUF file. */
posenc_status pe_gguf_model(posenc_model **model, const pe_source *source, posenc_error *err);

#endif
