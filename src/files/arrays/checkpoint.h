/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h: a .safetensors of any size, read where it lies and written from front to back
 *
 * Whoever changes some tensors of a checkpoint copies the others, of which there may be more than there is
 * memory. A reader knows the header alone and where each tensor lies; a writer takes bytes in the order of
 * the file, from memory or out of another file, through one buffer of a MiB. What is written is a file whole
 * or not at all (posenc_whole_file), and a block of zeros stays a hole in it where its file system has such:
 * a sparse file stays as small on the disk as it was.
 */
#ifndef PE_FILES_CHECKPOINT_H
#define PE_FILES_CHECKPOINT_H

#include <jansson.h>
#include <posenc/files.h>

#include "files/arrays/file.h"

typedef struct pe_checkpoint_tensor {
    const char *name, *type; /* "BF16", as the header says it */
    int64_t     bits;        /* of an element; 0: the type is not known */
    int32_t     ndim;
    int64_t     shape[POSENC_MAX_DIMS]; /* as many axes of them as fit */
    int64_t     begin, bytes;           /* in the file */
} pe_checkpoint_tensor;

typedef struct pe_checkpoint {
    const char           *path; /* the caller's */
    FILE                 *stream;
    int64_t               size, data; /* of the file; where its data begin */
    char                 *header;     /* data - 8 bytes of JSON */
    json_t               *json;       /* the same, read; owns the names */
    pe_checkpoint_tensor *tensors;    /* in the order of the file */
    int                   count;
} pe_checkpoint;

/* Errors as of posenc_arrays_read; its tensors may have any types and sizes. After a failure there is nothing
   to close. */
posenc_status pe_checkpoint_open(pe_checkpoint *c, const char *path, posenc_error *err);
void          pe_checkpoint_close(pe_checkpoint *c);

/* n bytes from there on: all of them, or FILE. */
posenc_status pe_checkpoint_read(const pe_checkpoint *c, void *to, int64_t n, int64_t at, posenc_error *err);
/* Are they a hole of the file, so that they are zeros that need not be read? */
int pe_checkpoint_is_hole(const pe_checkpoint *c, int64_t n, int64_t at);

/* After each piece: how many bytes are written. */
typedef struct pe_progress {
    void (*tell)(void *self, int64_t done); /* NULL: nobody asks */
    void *self;
} pe_progress;

typedef struct pe_writer {
    posenc_whole_file file;
    int64_t           at;    /* bytes written */
    int               leaps; /* it is a file where zeros may be left out */
    char             *buffer;
    pe_progress       progress;
} pe_writer;

/* "-" and what is no regular file are written to directly, zeros too. After a failure of _open or _commit
   there is nothing to discard. */
posenc_status pe_writer_open(pe_writer *w, const char *path, pe_progress progress, posenc_error *err);
posenc_status pe_writer_put(pe_writer *w, const void *bytes, int64_t n, posenc_error *err);
/* n bytes of a checkpoint. */
posenc_status pe_writer_copy(pe_writer *w, const pe_checkpoint *from, int64_t n, int64_t at,
                             posenc_error *err);
/* Eight bytes of length and the text of a header. */
posenc_status pe_writer_header(pe_writer *w, const char *text, int64_t n, posenc_error *err);
posenc_status pe_writer_commit(pe_writer *w, posenc_error *err);
void          pe_writer_discard(pe_writer *w); /* one that is not open is fine */

#endif
