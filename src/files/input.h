/* SPDX-License-Identifier: MIT */
/*
 * input.h: the one way to fail in this folder, reals as text, and inputs read whole
 *
 * The core has such a function behind its door, where nobody may reach. This one also takes where
 * the trouble lies, because a sentence about a file that does not name the file helps nobody:
 *
 *     return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "it ends after %lld of %lld bytes", ...);
 *     -> "cases/t5.npz: in_q: it ends after 12 of 800 bytes"
 *
 * Names come from the disk and from archives, so they may be long or hold control characters: a
 * long one loses its front, a control character becomes '?', and an error stays one line whose end
 * is readable.
 */
#ifndef PE_FILES_INPUT_H
#define PE_FILES_INPUT_H

#include <posenc/posenc.h>
#include <stdarg.h>
#include <stdio.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the numbers of a file are used as they stand, which needs a little-endian machine"
#endif

typedef struct pe_origin {
    const char *path;
    const char *member; /* of an archive; NULL: the file itself */
} pe_origin;

posenc_status pe_file_fail(posenc_error *err, posenc_status status, pe_origin origin, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a function that has a format and values itself. */
posenc_status pe_file_fail_list(posenc_error *err, posenc_status status, pe_origin origin, const char *format,
                                va_list list) __attribute__((format(printf, 4, 0)));

/* Clears *err and returns POSENC_OK. */
posenc_status pe_file_done(posenc_error *err);

/* The system's word for an errno, e.g. "No space left on device". */
const char *pe_file_reason(int number);

/* x with the fewest of 15 to 17 digits that read back as x. */
enum { PE_REAL_TEXT = 40 };
void pe_real_text(char text[PE_REAL_TEXT], double x);

/* All bytes of a stream that cannot be sought (standard input, a pipe), or of a small file. */
typedef struct pe_bytes {
    char  *data; /* malloc'd; NULL if there are none */
    size_t size;
} pe_bytes;

/* Opens a file for reading, "-" is standard input; a folder is refused. *size is its length, -1 where it is
   no regular file and cannot be sought. */
posenc_status pe_open_input(FILE **stream, int64_t *size, const char *path, posenc_error *err);
void          pe_close_input(FILE *stream); /* leaves standard input open; NULL is fine */

/* Reads to the end; more than `limit` bytes is FORMAT. */
posenc_status pe_read_bytes(pe_bytes *bytes, FILE *stream, int64_t limit, const char *path,
                            posenc_error *err);
/* Does the text end so? */
int pe_ends_with(const char *text, const char *end);
/* Is word one of the blank-separated words of list? NULL is none. */
int pe_is_among(const char *list, const char *word);

#endif
