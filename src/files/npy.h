/* SPDX-License-Identifier: MIT */
/*
 * npy.h: one array in NumPy's .npy format, from any stream of bytes
 *
 * The same reader serves a file, standard input and a member of an .npz, so it asks for a function
 * that reads and for the number of bytes that the stream promises. The promise is checked against
 * the header before anything is allocated, and the stream against the promise while it is read.
 */
#ifndef PE_FILES_NPY_H
#define PE_FILES_NPY_H

#include <posenc/files.h>

#include "files/fail.h"

/* No array, and no archive together, may be larger. */
#define PE_MAX_BYTES (INT64_C(4) << 30)

typedef struct pe_stream {
    void *from;
    int64_t (*read)(void *from, void *to, uint64_t n); /* bytes read; 0 at the end; -1: ask reason */
    const char *(*reason)(void *from);
    int64_t   size; /* bytes that the stream promises in all */
    pe_origin origin;
} pe_stream;

/* Reads n bytes, all of them or a sentence: FILE where the stream fails, FORMAT where it ends too soon. */
posenc_status pe_stream_read(void *to, int64_t n, const pe_stream *stream, posenc_error *err);

/* Reads one array and the end of the stream behind it. array->tensor.data is malloc'd, contiguous, of
   type F64, F32, F16, I64 or U8; the name is NULL. On failure array is as it was. */
posenc_status pe_npy_read(posenc_array *array, const pe_stream *stream, posenc_error *err);

/* Magic, version and header text for a contiguous array, a multiple of 64 bytes; the data follow
   as they are. */
enum { PE_NPY_HEADER = 320 };
posenc_status pe_npy_header(char header[PE_NPY_HEADER], size_t *length, const posenc_array *array,
                            pe_origin origin, posenc_error *err);

/* n integers of `size` bytes as int64, which may lie in the same place; n bytes as 0 and 1. */
void pe_widen(void *to, const void *from, int64_t n, int64_t size, int is_signed);
void pe_truth(void *data, int64_t n);

/* Bytes of the data of a contiguous tensor. */
size_t pe_tensor_bytes(const posenc_tensor *tensor);

#endif
