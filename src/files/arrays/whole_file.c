/* SPDX-License-Identifier: MIT */
/*
 * whole_file: a file appears whole or not at all
 *
 * The idea  Write F.tmp.PID in the folder of F, flush and sync it, then rename it over F: rename
 *           replaces in one step, and it does so only once the bytes are on the disk. Whoever reads
 *           F sees the old file or the new.
 * Surprise  A full disk is often noticed only by fflush, fsync or fclose, so all three are asked. A
 *           symbolic link is followed first: what it points to is replaced, not the link. Something
 *           that is no regular file (/dev/full, a pipe) must not be replaced by one: it is written
 *           to directly, and so is "-", standard output.
 * Rights    A file that is replaced keeps its permissions, but neither set-user-ID nor set-group-ID: new
 * content has not earned them. Left over Nothing: a failed commit removes the temporary file, as discard
 * does, and a program that ends early removes those of a list of all that are open. Only a killed process
 * leaves one, and the next with its number takes another name.
 */
#define _XOPEN_SOURCE 700 /* realpath, which glibc keeps from plain POSIX */

#include <posenc/files.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/arrays/file.h"

enum { LONGEST_TAIL = 48, TRIES = 100, MOST_OPEN = 256 };

/* The temporary files that are there now; those beyond MOST_OPEN are not known here. */
static _Atomic(char *) temporaries[MOST_OPEN];

static void replace_known(char *old, char *new)
{
    for (int i = 0; i < MOST_OPEN; i++) {
        char *is = old;
        if (atomic_compare_exchange_strong(&temporaries[i], &is, new))
            return;
    }
}

void posenc_whole_file_abandon(void)
{
    for (int i = 0; i < MOST_OPEN; i++) {
        const char *name = atomic_load(&temporaries[i]);
        if (name)
            unlink(name);
    }
}

static posenc_status refuse(const char *path, int reason, posenc_error *err)
{
    return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){path, NULL}, "it cannot be written: %s",
                        reason == ENOENT && strchr(path, '/') ? "its folder does not exist; create that first"
                                                              : pe_file_reason(reason));
}

static void release(posenc_whole_file *file)
{
    if (file->temporary)
        replace_known(file->temporary, NULL);
    free(file->path);
    free(file->temporary);
    *file = (posenc_whole_file){0};
}

/* Creates path.tmp.PID, or path.tmp.PID.2 ... where that exists. Returns a descriptor, or -1. */
static int create_temporary(char **name, const char *path, mode_t mode)
{
    const size_t size = strlen(path) + LONGEST_TAIL;
    *name             = malloc(size);
    if (!*name)
        return -1;
    int fd = -1;
    for (int i = 1; i <= TRIES && fd < 0; i++) {
        const int n = snprintf(*name, size, "%s.tmp.%ld", path, (long)getpid());
        if (i > 1)
            snprintf(*name + n, size - (size_t)n, ".%d", i);
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd >= 0)
        replace_known(NULL, *name);
    return fd;
}

/* A stream to a new file in the folder of the one that it will replace. */
static FILE *open_beside(posenc_whole_file *file, const struct stat *old)
{
    const int fd = create_temporary(&file->temporary, file->path, 0666);
    if (fd < 0)
        return NULL;
    if (old)
        (void)!fchmod(fd, old->st_mode & 01777); /* keeping the permissions is a courtesy, not a condition */
    FILE *stream = fdopen(fd, "wb");
    if (!stream) {
        const int reason = errno;
        close(fd);
        unlink(file->temporary);
        errno = reason;
    }
    return stream;
}

posenc_status posenc_whole_file_open(posenc_whole_file *file, const char *path, posenc_error *err)
{
    pe_file_begin();
    struct stat old;
    if (!file || !path)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"whole file", NULL},
                            "file and path must not be NULL");
    *file = (posenc_whole_file){0};
    if (!strcmp(path, "-")) {
        file->path   = strdup("standard output");
        file->stream = stdout;
        return file->path ? pe_file_done(err) : refuse(path, ENOMEM, err);
    }
    if (!*path)
        return refuse("\"\"", ENOENT, err);
    const int exists = stat(path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return refuse(path, EISDIR, err);
    const int is_file = exists && S_ISREG(old.st_mode); /* of a pipe, realpath gives no name that opens */
    file->path        = is_file ? realpath(path, NULL) : strdup(path);
    if (!file->path)
        return refuse(path, errno, err);
    file->stream = exists && !is_file ? fopen(file->path, "wb") : open_beside(file, exists ? &old : NULL);
    if (file->stream)
        return pe_file_done(err);
    const posenc_status status = refuse(path, errno, err);
    release(file);
    return status;
}

/* The rename itself lives in the folder; on file systems where a folder cannot be synced nothing
   more can be done. */
static void sync_folder(char *path)
{
    const int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!fsync(fd);
    close(fd);
}

/* 0, or the errno of the first step that failed. The stream is closed in any case. */
static int finish(FILE *stream, int must_reach_disk)
{
    errno      = 0;
    int reason = 0;
    if (ferror(stream)) /* why, C has forgotten; a file that will be thrown away is asked again */
        reason = must_reach_disk && write(fileno(stream), "", 1) < 0 ? errno : EIO;
    if (fflush(stream))
        reason = errno;
    else if (!reason && must_reach_disk && fsync(fileno(stream)))
        reason = errno;
    if (stream != stdout && fclose(stream) && !reason)
        reason = errno;
    return reason;
}

posenc_status posenc_whole_file_commit(posenc_whole_file *file, posenc_error *err)
{
    if (!file || !file->stream)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"whole file", NULL},
                            "file and its stream must not be NULL");
    int reason = finish(file->stream, file->temporary != NULL);
    if (file->temporary && !reason && rename(file->temporary, file->path))
        reason = errno;
    if (file->temporary && reason)
        unlink(file->temporary);
    const posenc_status status = reason ? refuse(file->path, reason, err) : pe_file_done(err);
    if (file->temporary && !reason)
        sync_folder(file->path);
    release(file);
    return status;
}

void posenc_whole_file_discard(posenc_whole_file *file)
{
    if (!file)
        return;
    if (file->stream && file->stream != stdout)
        fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    release(file);
}
