/* SPDX-License-Identifier: MIT */
/*
 * formats.h: arrays in NumPy's .npy and .npz, in .safetensors and as CSV, from any stream of bytes (public
 * face: posenc/files.h)
 *
 * The promise of a stream (file.h) is checked against the header before anything is allocated, and the stream
 * against the promise while it is read, once from front to back.
 */
#ifndef PE_FILES_FORMATS_H
#define PE_FILES_FORMATS_H

#include <posenc/files.h>

#include "files/arrays/file.h"

/* No array, and no archive together, may be larger. */
#define PE_MAX_BYTES (INT64_C(4) << 30)

/* Is it what posenc_arrays_add makes: named, of a size that can be, contiguous, with data? */
int pe_arrays_is_sound(const posenc_array *array);

/* Reads one array and the end of the stream after it. array->tensor.data is malloc'd, contiguous, of
   type F64, F32, F16, I64 or U8; the name is NULL. On failure array is as it was. */
posenc_status pe_npy_read(posenc_array *array, const pe_stream *stream, posenc_error *err);

/* Magic, version and header text for a contiguous array, a multiple of 64 bytes; the data follow
   as they are. */
enum { PE_NPY_HEADER = 320 };
posenc_status pe_npy_header(char header[PE_NPY_HEADER], size_t *length, const posenc_array *array,
                            pe_origin origin, posenc_error *err);

/* n integers of `size` bytes as int64, which may lie in the same place; n bytes as 0 and 1. */
void pe_npy_widen(void *to, const void *from, int64_t n, int64_t size, int is_signed);
void pe_npy_booleans(void *data, int64_t n);

/* ---------------------------------------------------------------- .npz ---------------------- */

/* A zip archive of .npy members, stored or deflated, ZIP64 where needed; UNSUPPORTED where the library is
   built without libzip (npz_none.c). `path` only names the file in sentences. */

/* Adds every member of an archive of `size` bytes to set, which may have some of them after a failure: a
   regular file, which is closed whatever the status, or without one the bytes. */
posenc_status pe_npz_read(posenc_arrays *set, FILE *stream, const void *bytes, int64_t size, const char *path,
                          posenc_error *err);

/* The bytes of an archive, stored, with one fixed date: the same arrays give the same bytes. */
posenc_status pe_npz_write(const posenc_arrays *set, FILE *stream, const char *path, posenc_error *err);

/* ---------------------------------------------------------------- .safetensors -------------- */

/* Eight bytes of length, a JSON header, then the tensors end to end: a set in the order of the data. */

/* How many first bytes pe_safetensors_begins looks at. */
enum { PE_SAFETENSORS_MAGIC = 9 };

/* Do these first bytes begin such a file? Neither an .npy nor a zip archive looks like one. */
int pe_safetensors_begins(const unsigned char first[PE_SAFETENSORS_MAGIC]);

/* Adds every tensor of the stream to set; F64, F32, F16, BF16, I64 and U8 as they are, I32 as I64, BOOL
   as U8. After a failure set may have some of them. */
posenc_status pe_safetensors_read(posenc_arrays *set, const pe_stream *stream, posenc_error *err);

/* Refuses what is not such a file: only the header is read, its tensors may have any type and size. */
posenc_status pe_safetensors_check(const pe_stream *stream, posenc_error *err);

/* Which tensors of a file are wanted. */
typedef struct pe_picker {
    int (*wants)(const void *context, const char *name);
    const void *context;
} pe_picker;

/* Adds those of the regular file that are wanted, whatever types and sizes the others have. */
posenc_status pe_safetensors_pick(posenc_arrays *set, FILE *stream, int64_t size, const char *path,
                                  const pe_picker *wanted, posenc_error *err);

/* ---------------------------------------------------------------- CSV ----------------------- */

/* Do these first n bytes begin a text of numbers? No binary format here begins so. */
int pe_csv_begins(const char *first, size_t n);

/* Adds the arrays of a text to set, all F64; after a failure set may have some of them. */
posenc_status pe_csv_read(posenc_arrays *set, const char *text, size_t n, const char *path,
                          posenc_error *err);
/* Refuses complex numbers before anything is written. */
posenc_status pe_csv_write(const posenc_arrays *set, FILE *to, const char *path, posenc_error *err);

/* ---------------------------------------------------------------- sets ---------------------- */

/* Contiguous numbers as float32 or float64: `to` has its data, type and shape; as many elements in the same
   order. 0 where `from` holds no real numbers. */
int pe_arrays_convert(const posenc_tensor *to, const posenc_tensor *from);

/* Bytes of the data of a contiguous tensor. */
size_t pe_arrays_bytes(const posenc_tensor *tensor);

/* Adds an array under the first `length` characters of name, which need not be array->name; its data then
   belong to the set. 0 without memory: they are freed. */
int pe_arrays_take(posenc_arrays *set, const char *name, size_t length, const posenc_array *array);

/* posenc_arrays_read on bytes in memory; `path` names them in sentences and an .npy's array. */
posenc_status pe_arrays_parse(posenc_arrays *set, const void *bytes, size_t n, const char *path,
                              posenc_error *err);

#endif
