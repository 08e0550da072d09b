/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.c: bytes of a checkpoint, and the writer: contract in checkpoint.h
 *
 * Holes  The file system says where they are (SEEK_DATA), so they are passed over without being read. Of what
 *        is read, a block of zeros at a multiple of BLOCK is not written: at the end the file gets its
 * length. One that does not know SEEK_DATA calls everything data, and the blocks of zeros are found by
 * looking.
 */
#ifdef __linux__
#define _GNU_SOURCE /* SEEK_DATA, which POSIX has since 2024 */
#endif

#include "files/arrays/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096, BUFFER = 1 << 20 };

/* ---------------------------------------------------------------- reading ------------------- */

posenc_status pe_checkpoint_read(const pe_checkpoint *c, void *to, int64_t n, int64_t at, posenc_error *err)
{
    for (int64_t done = 0; done < n;) {
        const ssize_t got =
            pread(fileno(c->stream), (char *)to + done, (size_t)(n - done), (off_t)(at + done));
        if (got <= 0)
            return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){c->path, NULL}, "it cannot be read: %s",
                                got ? pe_file_reason(errno) : "it has become shorter");
        done += got;
    }
    return POSENC_OK;
}

/* Where data begin, at `at` or after it; `at` itself where nobody can say. */
static int64_t next_data(const pe_checkpoint *c, int64_t at)
{
#ifdef SEEK_DATA
    const off_t data = lseek(fileno(c->stream), (off_t)at, SEEK_DATA);
    if (data >= 0)
        return (int64_t)data;
    return errno == ENXIO ? c->size : at; /* there is none up to the end */
#else
    return at;
#endif
}

int pe_checkpoint_is_hole(const pe_checkpoint *c, int64_t n, int64_t at)
{
    return next_data(c, at) >= at + n;
}

/* ---------------------------------------------------------------- writing ------------------- */

posenc_status pe_writer_open(pe_writer *w, const char *path, pe_progress progress, posenc_error *err)
{
    *w                   = (pe_writer){.progress = progress};
    posenc_status status = posenc_whole_file_open(&w->file, path, err);
    if (status)
        return status;
    w->leaps  = w->file.temporary != NULL;
    w->buffer = malloc(BUFFER);
    if (w->buffer)
        return POSENC_OK;
    status = pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){path, NULL}, "not enough memory");
    pe_writer_discard(w);
    return status;
}

static posenc_status fail(const pe_writer *w, posenc_error *err)
{
    return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){w->file.path, NULL}, "it cannot be written: %s",
                        pe_file_reason(errno));
}

/* These bytes, as they are. */
static posenc_status write_all(const pe_writer *w, const char *bytes, int64_t n, int64_t at,
                               posenc_error *err)
{
    errno = 0;
    if (!w->leaps)
        return fwrite(bytes, 1, (size_t)n, w->file.stream) == (size_t)n ? POSENC_OK : fail(w, err);
    for (int64_t done = 0; done < n;) {
        const ssize_t got =
            pwrite(fileno(w->file.stream), bytes + done, (size_t)(n - done), (off_t)(at + done));
        if (got < 0)
            return fail(w, err);
        done += got;
    }
    return POSENC_OK;
}

static int is_zero(const char *bytes, int64_t n)
{
    return !bytes[0] && !memcmp(bytes, bytes + 1, (size_t)n - 1);
}

/* Bytes from `at` to the end of its block, or of all. */
static int64_t to_block_end(int64_t at, int64_t left)
{
    const int64_t n = BLOCK - at % BLOCK;
    return n < left ? n : left;
}

posenc_status pe_writer_put(pe_writer *w, const void *bytes, int64_t n, posenc_error *err)
{
    const char   *from   = bytes;
    posenc_status status = POSENC_OK;
    for (int64_t i = 0, run = 0; !status && i < n; i = run) {
        int64_t zeros = i; /* up to here nothing but blocks of zeros; from there to `run` data */
        while (w->leaps && zeros < n && is_zero(from + zeros, to_block_end(w->at + zeros, n - zeros)))
            zeros += to_block_end(w->at + zeros, n - zeros);
        for (run = zeros; run < n; run += to_block_end(w->at + run, n - run))
            if (w->leaps && run > zeros && is_zero(from + run, to_block_end(w->at + run, n - run)))
                break;
        if (run > zeros)
            status = write_all(w, from + zeros, run - zeros, w->at + zeros, err);
    }
    w->at += n;
    if (!status && w->progress.tell)
        w->progress.tell(w->progress.self, w->at);
    return status;
}

/* Zeros that need not be read. */
static posenc_status put_hole(pe_writer *w, int64_t n, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (w->leaps)
        w->at += n;
    else
        memset(w->buffer, 0, BUFFER);
    for (int64_t i = 0; !w->leaps && !status && i < n; i += BUFFER)
        status = pe_writer_put(w, w->buffer, n - i < BUFFER ? n - i : BUFFER, err);
    return status;
}

posenc_status pe_writer_copy(pe_writer *w, const pe_checkpoint *from, int64_t n, int64_t at,
                             posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int64_t i = 0; !status && i < n;) {
        const int64_t data = next_data(from, at + i) - at, left = n - i;
        const int64_t piece = data > i ? (data < n ? data : n) - i : left < BUFFER ? left : BUFFER;
        if (data > i)
            status = put_hole(w, piece, err);
        else if (!(status = pe_checkpoint_read(from, w->buffer, piece, at + i, err)))
            status = pe_writer_put(w, w->buffer, piece, err);
        i += piece;
    }
    return status;
}

posenc_status pe_writer_header(pe_writer *w, const char *text, int64_t n, posenc_error *err)
{
    const uint64_t      length = (uint64_t)n;
    const posenc_status status = pe_writer_put(w, &length, sizeof length, err);
    return status ? status : pe_writer_put(w, text, n, err);
}

posenc_status pe_writer_commit(pe_writer *w, posenc_error *err)
{
    if (w->leaps && ftruncate(fileno(w->file.stream), (off_t)w->at)) {
        const posenc_status status = fail(w, err);
        pe_writer_discard(w);
        return status;
    }
    free(w->buffer);
    w->buffer = NULL;
    return posenc_whole_file_commit(&w->file, err);
}

void pe_writer_discard(pe_writer *w)
{
    free(w->buffer);
    if (w->file.path)
        posenc_whole_file_discard(&w->file);
    *w = (pe_writer){0};
}
