/* SPDX-License-Identifier: MIT */
/* Sentences that name their file, and inputs read whole within a limit: contract in input.h. */
#include "files/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SHOWN = 90, MEMBER_SHOWN = 40 };

/* The last `shown` characters of a name, and "..." before them if that is not all. */
static int put_name(char *to, size_t room, const char *name, size_t shown)
{
    const size_t n = strlen(name);
    return n <= shown ? snprintf(to, room, "%s: ", name) : snprintf(to, room, "...%s: ", name + n - shown);
}

posenc_status pe_file_fail_list(posenc_error *err, posenc_status status, pe_origin origin, const char *format,
                                va_list list)
{
    if (!err)
        return status;
    char  *to   = err->message;
    size_t used = (size_t)put_name(to, sizeof err->message, origin.path, PATH_SHOWN);
    if (origin.member)
        used += (size_t)put_name(to + used, sizeof err->message - used, origin.member, MEMBER_SHOWN);
    vsnprintf(to + used, sizeof err->message - used, format, list);
    for (; *to; to++) /* one line */
        if ((unsigned char)*to < 0x20 || *to == 0x7f)
            *to = '?';
    err->status = status;
    return status;
}

posenc_status pe_file_fail(posenc_error *err, posenc_status status, pe_origin origin, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    pe_file_fail_list(err, status, origin, format, list);
    va_end(list);
    return status;
}

posenc_status pe_file_done(posenc_error *err)
{
    if (err) {
        err->status     = POSENC_OK;
        err->message[0] = '\0';
    }
    return POSENC_OK;
}

const char *pe_file_reason(int number)
{
    return number ? strerror(number) : "no reason given";
}

void pe_real_text(char text[PE_REAL_TEXT], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PE_REAL_TEXT, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            return;
    }
}

posenc_status pe_open_input(FILE **stream, int64_t *size, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    struct stat     s;
    *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!*stream || fstat(fileno(*stream), &s)) {
        const int reason = errno;
        pe_close_input(*stream);
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be opened: %s",
                            pe_file_reason(reason));
    }
    if (S_ISDIR(s.st_mode)) {
        pe_close_input(*stream);
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it is a folder; a file is needed here");
    }
    *size = S_ISREG(s.st_mode) && *stream != stdin ? (int64_t)s.st_size : -1;
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
                return pe_file_fail(err, POSENC_ERROR_MEMORY, origin, "no memory for its content");
            }
            bytes->data = more;
        }
        bytes->size += fread(bytes->data + bytes->size, 1, room - bytes->size, stream);
        if ((int64_t)bytes->size > limit) {
            free(bytes->data);
            return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                                "it is longer than %lld bytes, the most that are read", (long long)limit);
        }
        if (ferror(stream)) {
            const int reason = errno;
            free(bytes->data);
            return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be read: %s",
                                pe_file_reason(reason));
        }
        if (bytes->size < room) /* fread gives less than asked only at the end */
            return POSENC_OK;
    }
}

int pe_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

int pe_is_among(const char *list, const char *word)
{
    const size_t n = word && !strchr(word, ' ') ? strlen(word) : 0;
    for (const char *at = list; at && n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}
