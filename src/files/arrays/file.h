/* SPDX-License-Identifier: MIT */
/*
 * file.h: errors that name their file, and bytes from a file or a stream
 *
 * All readers of files fail through one function, which takes where the fault lies, because a sentence that
 * does not name the file helps nobody:
 *
 *     return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "it ends after %lld of %lld bytes", ...);
 *     -> "cases/t5.npz: in_q: it ends after 12 of 800 bytes"
 *
 * Names come from the disk and from archives, so they may be long or hold control characters: a
 * long one loses its front, a control character becomes '?', and an error stays one line whose end
 * is readable.
 */
#ifndef PE_FILES_FILE_H
#define PE_FILES_FILE_H

#include <posenc/posenc.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/shared/compiler.h"
#include "files/arrays/text.h"

typedef struct pe_origin {
    const char *path;
    const char *member; /* of an archive; NULL: the file itself */
} pe_origin;

/* jansson, libzip and the C library tell of memory that ended as of a file that is broken or missing, or
   leave out what they could not make. The allocator tells errno: every public call begins by clearing it, and
   asks before it succeeds. */
void pe_file_begin(void);
int  pe_file_lost_memory(void);

/* Returns the status: MEMORY, with its sentence, where memory has ended since pe_file_begin. */
posenc_status pe_file_fail(posenc_error *err, posenc_status status, pe_origin origin, const char *format, ...)
    PE_PRINTF(4, 5);

/* The same for a function that has a format and values itself. */
posenc_status pe_file_fail_list(posenc_error *err, posenc_status status, pe_origin origin, const char *format,
                                va_list list) PE_PRINTF(4, 0);

/* Clears *err and returns POSENC_OK. */
posenc_status pe_file_done(posenc_error *err);

/* The system's word for an errno, e.g. "No space left on device". */
const char *pe_file_reason(int number);

/* "q" of "a/b/q.npy": where it begins and how long it is. */
const char *pe_file_stem(const char *path, size_t *length);

/* Are they two names of one file that is there? */
int pe_file_is_same(const char *a, const char *b);

/* The path of a file of this name in the folder of `path`, malloc'd. NULL: no memory. */
char *pe_file_beside(const char *path, const char *name);

/* All bytes of a stream that cannot be sought (standard input, a pipe), or of a small file. */
typedef struct pe_bytes {
    char  *data; /* malloc'd; NULL if there are none */
    size_t size;
} pe_bytes;

/* Does it begin as PyTorch's .pt and .bin do: a zip archive, or a pickle? */
int pe_file_is_torch(const void *bytes, size_t n);

/* Opens a file for reading, "-" is standard input; a folder is refused. *size is its length, -1 where it is
   no regular file and cannot be sought. */
posenc_status pe_file_open(FILE **stream, int64_t *size, const char *path, posenc_error *err);
/* The same of a file that the caller did not name, or that must be sought in: a pipe, where opening it would
   wait for a writer, is refused, and "-" too. */
posenc_status pe_file_open_found(FILE **stream, int64_t *size, const char *path, posenc_error *err);
void          pe_file_close(FILE *stream); /* leaves standard input open; NULL is fine */

/* Memory for n numbers of so many bytes, and one byte more, so that none have memory too; NULL: there is not
   so much, which on machines of 32 bits need not be memory that is used up. The caller frees it. */
void *pe_file_alloc(int64_t n, int64_t bytes);

/* Reads to the end; more than `limit` bytes is FORMAT, and no more than one of them is read. */
posenc_status pe_file_read(pe_bytes *bytes, FILE *stream, int64_t limit, const char *path, posenc_error *err);

/* The same reader serves a file, standard input and a member of an .npz, so it asks for a function that reads
   and for the number of bytes that the stream promises. */
typedef struct pe_stream {
    void *from;
    int64_t (*read)(void *from, void *to, uint64_t n); /* bytes read; 0 at the end; -1: ask reason */
    const char *(*reason)(void *from);
    int64_t   size; /* bytes that the stream promises in all */
    pe_origin origin;
} pe_stream;

/* The stream of a file from where it stands, which promises `size` bytes. */
pe_stream pe_file_stream(FILE *from, int64_t size, const char *path);

/* What is left of bytes in memory, which live as long as their stream; it promises all of them. */
typedef struct pe_memory {
    const char *at;
    size_t      left;
} pe_memory;
pe_stream pe_memory_stream(pe_memory *from, const char *path);

/* Reads n bytes, all of them or a sentence: FILE where the stream fails, FORMAT where it ends too soon. */
posenc_status pe_file_read_stream(void *to, int64_t n, const pe_stream *stream, posenc_error *err);

#endif
