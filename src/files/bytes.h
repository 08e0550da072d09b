/* SPDX-License-Identifier: MIT */
/* bytes.h: all bytes of a stream that cannot be sought (standard input, a pipe), or of a small
   file. */
#ifndef PE_FILES_BYTES_H
#define PE_FILES_BYTES_H

#include "files/fail.h"

#include <stdio.h>

typedef struct pe_bytes {
    char  *data; /* malloc'd; NULL if there are none */
    size_t size;
} pe_bytes;

/* Opens a file for reading, "-" is standard input; a folder is refused. *is_regular says whether it
   can be sought and *size, if so, how long it is. */
posenc_status pe_open_input(FILE **stream, int *is_regular, int64_t *size, const char *path,
                            posenc_error *err);
void          pe_close_input(FILE *stream); /* leaves standard input open; NULL is fine */

/* Reads to the end; more than `limit` bytes is FORMAT. */
posenc_status pe_read_bytes(pe_bytes *bytes, FILE *stream, int64_t limit, const char *path,
                            posenc_error *err);

#endif
