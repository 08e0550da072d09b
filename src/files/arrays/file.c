/* SPDX-License-Identifier: MIT */
/* Sentences that name their file, inputs read whole within a limit, streams: contract in file.h. */
#include "files/arrays/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/shared/decimal.h"

enum { PATH_SHOWN = 90, MEMBER_SHOWN = 40 };

/* The last `shown` characters of a name, and "..." before them if that is not all. */
static int put_name(char *to, size_t size, const char *name, size_t shown)
{
    const size_t n = strlen(name);
    return n <= shown ? snprintf(to, size, "%s: ", name) : snprintf(to, size, "...%s: ", name + n - shown);
}

void pe_file_begin(void)
{
    errno = 0;
}

int pe_file_lost_memory(void)
{
    return errno == ENOMEM;
}

posenc_status pe_file_fail_list(posenc_error *err, posenc_status status, pe_origin origin, const char *format,
                                va_list list)
{
    const int is_memory = pe_file_lost_memory() && status != POSENC_ERROR_MEMORY;
    status              = is_memory ? POSENC_ERROR_MEMORY : status;
    if (!err)
        return status;
    char  *to   = err->message;
    size_t used = (size_t)put_name(to, sizeof err->message,
                                   strcmp(origin.path, "-") ? origin.path : "standard input", PATH_SHOWN);
    if (origin.member)
        used += (size_t)put_name(to + used, sizeof err->message - used, origin.member, MEMBER_SHOWN);
    if (is_memory)
        snprintf(to + used, sizeof err->message - used, "not enough memory");
    else
        pe_decimal_print(to + used, sizeof err->message - used, format, list);
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
    const posenc_status told = pe_file_fail_list(err, status, origin, format, list);
    va_end(list);
    return told;
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

const char *pe_file_stem(const char *path, size_t *length)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    *length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    return name;
}

int pe_file_is_same(const char *a, const char *b)
{
    struct stat one, other;
    return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

char *pe_file_beside(const char *path, const char *name)
{
    const char  *slash  = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, n = strlen(name);
    char        *to = malloc(folder + n + 1);
    if (to) {
        memcpy(to, path, folder);
        memcpy(to + folder, name, n + 1);
    }
    return to;
}

int pe_file_is_torch(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    return n > 4 && (!memcmp(b, "PK\3\4", 4) || (b[0] == 0x80 && b[1] >= 2 && b[1] <= 5));
}

posenc_status pe_file_open(FILE **stream, int64_t *size, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    struct stat     s;
    if (!*path) {
        *stream = NULL;
        return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){"\"\"", NULL},
                            "the name is empty; name a file, or - for standard input");
    }
    *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!*stream || fstat(fileno(*stream), &s)) {
        const int reason = errno;
        pe_file_close(*stream);
        *stream = NULL;
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be opened: %s%s",
                            pe_file_reason(reason),
                            strchr(path, '\\') ? " (folders are separated by / here)" : "");
    }
    if (S_ISDIR(s.st_mode)) {
        pe_file_close(*stream);
        *stream = NULL;
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it is a folder; a file is needed here");
    }
    *size = S_ISREG(s.st_mode) && *stream != stdin ? (int64_t)s.st_size : -1;
    return POSENC_OK;
}

posenc_status pe_file_open_found(FILE **stream, int64_t *size, const char *path, posenc_error *err)
{
    struct stat s;
    if (strcmp(path, "-") && (stat(path, &s) || S_ISREG(s.st_mode) || S_ISDIR(s.st_mode)))
        return pe_file_open(stream, size, path, err);
    *stream = NULL;
    return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){path, NULL},
                        "it is no regular file, which is needed here");
}

void pe_file_close(FILE *stream)
{
    if (stream && stream != stdin)
        fclose(stream);
}

void *pe_file_alloc(int64_t n, int64_t bytes)
{
    return (uint64_t)n >= SIZE_MAX / (uint64_t)bytes ? NULL : malloc((size_t)(n * bytes) + 1);
}

posenc_status pe_file_read(pe_bytes *bytes, FILE *stream, int64_t limit, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    const size_t    most   = (uint64_t)limit < SIZE_MAX ? (size_t)limit + 1 : SIZE_MAX; /* it may never end */
    size_t          capacity = 0;
    *bytes                   = (pe_bytes){NULL, 0};
    for (;;) {
        if (bytes->size == capacity) {
            capacity = capacity > most / 2 ? most : capacity ? 2 * capacity : most < 1 << 16 ? most : 1 << 16;
            char *more = realloc(bytes->data, capacity);
            if (!more) {
                free(bytes->data);
                return pe_file_fail(err, POSENC_ERROR_MEMORY, origin, "not enough memory for its content");
            }
            bytes->data = more;
        }
        bytes->size += fread(bytes->data + bytes->size, 1, capacity - bytes->size, stream);
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
        if (bytes->size < capacity) /* fread gives less than asked only at the end */
            return POSENC_OK;
    }
}

static int64_t read_front(void *from, void *to, uint64_t n)
{
    const size_t got = fread(to, 1, (size_t)n, from);
    return ferror((FILE *)from) ? -1 : (int64_t)got;
}

static const char *last_reason(void *from)
{
    (void)from;
    return pe_file_reason(errno);
}

pe_stream pe_file_stream(FILE *from, int64_t size, const char *path)
{
    return (pe_stream){from, read_front, last_reason, size, {path, NULL}};
}

static int64_t read_memory(void *from, void *to, uint64_t n)
{
    pe_memory   *m   = from;
    const size_t got = n < m->left ? (size_t)n : m->left;
    memcpy(to, m->at, got);
    m->at += got;
    m->left -= got;
    return (int64_t)got;
}

static const char *no_reason(void *from)
{
    (void)from;
    return pe_file_reason(0);
}

pe_stream pe_memory_stream(pe_memory *from, const char *path)
{
    return (pe_stream){from, read_memory, no_reason, (int64_t)from->left, {path, NULL}};
}

posenc_status pe_file_read_stream(void *to, int64_t n, const pe_stream *s, posenc_error *err)
{
    for (int64_t done = 0; done < n;) {
        const int64_t got = s->read(s->from, (char *)to + done, (uint64_t)(n - done));
        if (got < 0)
            return pe_file_fail(err, POSENC_ERROR_FILE, s->origin, "it cannot be read: %s",
                                s->reason(s->from));
        if (got == 0)
            return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin,
                                "it is truncated: %lld bytes are missing", (long long)(n - done));
        done += got;
    }
    return POSENC_OK;
}
