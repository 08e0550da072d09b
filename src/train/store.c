/* SPDX-License-Identifier: MIT */
/*
 * store.c: DIR.partial, which keeps what a comparison has done while it goes on
 *
 * Why beside DIR   DIR appears whole and holds the older result until then; what is unfinished has a place of
 *                  its own, so that nobody takes it for a result.
 * A line           is written by one write behind the last one and synced. If that fails (a full disk), the
 *                  file is cut back to where it was; if the process is killed in the middle, the next one
 *                  finds a last line without an end and cuts it off: a line is there whole or not at all.
 * The lock         is fcntl's: it goes with the process, however that ends. On file systems without locks
 *                  there is none.
 * Removing         takes runs.jsonl, lock, checkpoints and their temporary files, and nothing else.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "train/store.h"

#include "train/directory.h"
#include "train/fail.h"
#include "train/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME  "lock"
#define CHECKPOINT ".npz"
#define TEMPORARY  ".tmp."

enum { NONE = -1 };

struct pe_store {
    char *path;        /* DIR.partial */
    char *result;      /* DIR */
    char *runs;        /* DIR.partial/runs.jsonl */
    int   lines, lock; /* descriptors, or NONE */
};

static char *joined(const char *a, const char *b, const char *c)
{
    char *text = malloc(strlen(a) + strlen(b) + strlen(c) + 1);
    if (text)
        sprintf(text, "%s%s%s", a, b, c);
    return text;
}

static posenc_status refuse(const pe_store *s, const char *what, posenc_error *err)
{
    return pe_train_fail(err, POSENC_FILE,
                         "%.150s: %s: %s; mend that and start again with --resume: what was kept before is "
                         "still there",
                         s->path, what, strerror(errno));
}

pe_store *pe_store_create(const char *directory)
{
    pe_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->lines = s->lock = NONE;
    s->result          = pe_directory_trimmed(directory);
    s->path            = s->result ? joined(s->result, ".partial", "") : NULL;
    s->runs            = s->path ? joined(s->path, "/", PE_RUNS_NAME) : NULL;
    if (s->runs)
        return s;
    pe_store_free(s);
    return NULL;
}

static void close_one(int *fd)
{
    if (*fd != NONE)
        close(*fd);
    *fd = NONE;
}

void pe_store_free(pe_store *store)
{
    if (!store)
        return;
    close_one(&store->lines);
    close_one(&store->lock);
    free(store->runs);
    free(store->path);
    free(store->result);
    free(store);
}

const char *pe_store_path(const pe_store *store)
{
    return store->path;
}

char *pe_store_checkpoint(const pe_store *store, const char *name)
{
    char *folder = joined(store->path, "/", name);
    char *path   = folder ? joined(folder, CHECKPOINT, "") : NULL;
    free(folder);
    return path;
}

/* ---------------------------------------------------------------- reading ------------------- */

posenc_status pe_store_lines(const pe_store *store, int is_partial, pe_store_line *line, void *self, int *cut,
                             posenc_error *err)
{
    char         *path   = joined(is_partial ? store->path : store->result, "/", PE_RUNS_NAME);
    FILE         *from   = path ? fopen(path, "r") : NULL;
    char         *text   = NULL;
    size_t        room   = 0;
    int64_t       number = 0;
    posenc_status status = POSENC_OK;
    ssize_t       n      = 0;
    *cut                 = 0;
    if (!from && path && errno != ENOENT)
        status = pe_train_fail(err, POSENC_FILE, "%.150s: it cannot be read: %s", path, strerror(errno));
    while (from && !status && (n = getline(&text, &room, from)) > 0) {
        if (text[n - 1] != '\n') {
            *cut = 1;
            break;
        }
        text[n - 1] = 0;
        status      = line(self, text, ++number, err);
    }
    if (from)
        fclose(from);
    free(text);
    free(path);
    return status;
}

/* Does the entry begin as checkpoints do, NAME.npz? Then its name; *rest is what follows. */
static int is_checkpoint(char name[PE_RUN_NAME], const char *entry, const char **rest)
{
    const size_t digits = PE_RUN_NAME - 1, tail = strlen(CHECKPOINT);
    if (strspn(entry, "0123456789abcdef") != digits || strncmp(entry + digits, CHECKPOINT, tail))
        return 0;
    memcpy(name, entry, digits);
    name[digits] = 0;
    *rest        = entry + digits + tail;
    return 1;
}

posenc_status pe_store_checkpoints(const pe_store *store, pe_store_name *name, void *self, posenc_error *err)
{
    char          text[PE_RUN_NAME];
    const char   *rest;
    posenc_status status = POSENC_OK;
    DIR          *dir    = opendir(store->path);
    for (const struct dirent *entry; dir && !status && (entry = readdir(dir));)
        if (is_checkpoint(text, entry->d_name, &rest) && !*rest)
            status = name(self, text, err);
    if (dir)
        closedir(dir);
    return status;
}

/* ---------------------------------------------------------------- writing ------------------- */

posenc_status pe_store_make(const pe_store *store, posenc_error *err)
{
    return mkdir(store->path, 0777) && errno != EEXIST ? refuse(store, "it cannot be made", err) : POSENC_OK;
}

static int open_in(const pe_store *s, const char *name, int flags)
{
    char     *path = joined(s->path, "/", name);
    const int fd   = path ? open(path, flags | O_CREAT | O_CLOEXEC, 0666) : NONE;
    free(path);
    return fd;
}

static posenc_status take_lock(pe_store *s, posenc_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    s->lock            = open_in(s, LOCK_NAME, O_RDWR);
    if (s->lock == NONE)
        return refuse(s, "it cannot be written", err);
    if (fcntl(s->lock, F_SETLK, &whole) && (errno == EACCES || errno == EAGAIN))
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "%.150s: another posenc compare is at work there; wait for it or name another "
                             "directory with -o",
                             s->path);
    return POSENC_OK;
}

/* The length of the file up to its last line end. */
static off_t whole_length(int fd)
{
    char  piece[4096];
    off_t end = lseek(fd, 0, SEEK_END);
    while (end > 0) {
        const off_t   first = end > (off_t)sizeof piece ? end - (off_t)sizeof piece : 0;
        const ssize_t n     = pread(fd, piece, (size_t)(end - first), first);
        if (n != end - first)
            return -1;
        for (ssize_t i = n; i > 0; i--)
            if (piece[i - 1] == '\n')
                return first + i;
        end = first;
    }
    return end;
}

/* What a process leaves that is killed while it writes a checkpoint. */
static int is_temporary(const char *entry)
{
    char        name[PE_RUN_NAME];
    const char *rest;
    return is_checkpoint(name, entry, &rest) && !strncmp(rest, TEMPORARY, strlen(TEMPORARY));
}

static int is_ours(const char *entry)
{
    char        name[PE_RUN_NAME];
    const char *rest;
    return !strcmp(entry, PE_RUNS_NAME) || !strcmp(entry, LOCK_NAME) || is_temporary(entry) ||
           (is_checkpoint(name, entry, &rest) && !*rest);
}

static void remove_those(const pe_store *s, int (*is_one)(const char *entry))
{
    DIR *dir = opendir(s->path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_one(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

posenc_status pe_store_open(pe_store *store, posenc_error *err)
{
    posenc_status status = pe_store_make(store, err);
    if (!status)
        status = take_lock(store, err);
    if (status)
        return status;
    remove_those(store, is_temporary);
    store->lines       = open_in(store, PE_RUNS_NAME, O_RDWR | O_APPEND);
    const off_t length = store->lines == NONE ? -1 : whole_length(store->lines);
    if (length < 0 || ftruncate(store->lines, length))
        return refuse(store, PE_RUNS_NAME " cannot be written", err);
    return POSENC_OK;
}

/* 0, or -1 with errno. */
static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && errno != EINTR)
            return -1;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

posenc_status pe_store_append(pe_store *store, const char *line, posenc_error *err)
{
    const off_t before = lseek(store->lines, 0, SEEK_END);
    char       *whole  = joined(line, "\n", "");
    if (!whole)
        return pe_train_fail(err, POSENC_MEMORY, "%.150s: no memory to write a line", store->runs);
    const int failed = write_all(store->lines, whole, strlen(whole)) || fsync(store->lines);
    free(whole);
    if (!failed)
        return POSENC_OK;
    const int reason = errno;
    (void)!ftruncate(store->lines, before); /* if this fails too, the next start cuts the line off */
    errno = reason;
    return refuse(store, "a finished run cannot be written", err);
}

void pe_store_forget(const pe_store *store, const char *name)
{
    char *path = pe_store_checkpoint(store, name);
    if (path)
        unlink(path);
    free(path);
}

void pe_store_remove(pe_store *store)
{
    remove_those(store, is_ours);
    rmdir(store->path);
    close_one(&store->lines);
    close_one(&store->lock);
}
