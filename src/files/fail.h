/* SPDX-License-Identifier: MIT */
/*
 * fail.h: the one way to fail in this folder, and reals as text
 *
 * The core has such a function behind its door, where nobody may reach. This one also takes where
 * the trouble lies, because a sentence about a file that does not name the file helps nobody:
 *
 *     return pe_file_fail(err, POSENC_FORMAT, origin, "it ends after %lld of %lld bytes", ...);
 *     -> "cases/t5.npz: in_q: it ends after 12 of 800 bytes"
 *
 * Names come from the disk and from archives, so they may be long or hold control characters: a
 * long one loses its front, a control character becomes '?', and an error stays one line whose end
 * is readable.
 */
#ifndef PE_FILES_FAIL_H
#define PE_FILES_FAIL_H

#include <posenc/posenc.h>
#include <stdarg.h>

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

#endif
