/* SPDX-License-Identifier: MIT */
/* Opening inputs and reading them whole, within a limit: contract in bytes.h. */
#include "files/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

posenc_status pe_open_input(FILE **stream, int *is_regular, int64_t *size, const char *path,
                            posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    struct stat     s;
    *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!*stream || fstat(fileno(*stream), &s)) {
        const int reason = errno;
        pe_close_input(*stream);
        return pe_file_fail(err, POSENC_FILE, origin, "it cannot be opened: %s", pe_file_reason(reason));
    }
    if (S_ISDIR(s.st_mode)) {
        pe_close_input(*stream);
        return pe_file_fail(err, POSENC_FILE, origin, "it is a folder; a file is needed here");
    }
    *is_regular = S_ISREG(s.st_mode) && *stream != stdin;
    *size       = *is_regular ? (int64_t)s.st_size : -1;
    return POSENC_OK;
}

void pe_close_input(FILE *stream)
{
    if (stream && stream != stdin)
        fclose(stream);
}

posenc_status pe_read_bytes(pe_bytes *bytes, FILE *stream, int64_t limit, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    size_t          room   = 0;
    *bytes                 = (pe_bytes){NULL, 0};
    for (;;) {
        if (bytes->size == room) {
            room       = room ? 2 * room : 1 << 16;
            char *more = realloc(bytes->data, room);
            if (!more) {
                free(bytes->data);
                return pe_file_fail(err, POSENC_MEMORY, origin, "no memory for its content");
            }
            bytes->data = more;
        }
        bytes->size += fread(bytes->data + bytes->size, 1, room - bytes->size, stream);
        if ((int64_t)bytes->size > limit) {
            free(bytes->data);
            return pe_file_fail(err, POSENC_FORMAT, origin,
                                "it is longer than %lld bytes, the most that are read", (long long)limit);
        }
        if (ferror(stream)) {
            const int reason = errno;
            free(bytes->data);
            return pe_file_fail(err, POSENC_FILE, origin, "it cannot be read: %s", pe_file_reason(reason));
        }
        if (bytes->size < room) /* fread gives less than asked only at the end */
            return POSENC_OK;
    }
}
