/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h: the state of a run in a file, so that a kill costs seconds
 */
#ifndef PE_TRAIN_CHECKPOINT_H
#define PE_TRAIN_CHECKPOINT_H

#include <posenc/posenc.h>
#include <stdint.h>

/* One array of the state: F32, F64 or I64. */
typedef struct pe_stretch {
    const char  *name;
    void        *data;
    int64_t      count;
    posenc_dtype dtype;
} pe_stretch;

/* Writes the arrays, whole or not at all, under the identity (record.h) of their run. FILE with the mend. */
posenc_status pe_checkpoint_write(const char *path, const char *identity, const pe_stretch *stretches,
                                  int count, posenc_error *err);
/* Fills the arrays, all or none. *found = 0 and OK if there is no such file; FORMAT if it is damaged;
   ARGUMENT if it is of another run. */
posenc_status pe_checkpoint_read(const char *path, const char *identity, const pe_stretch *stretches,
                                 int count, int *found, posenc_error *err);
/* The identity in a checkpoint, malloc'd; NULL if the file is no whole checkpoint. */
char *pe_checkpoint_identity(const char *path);

#endif
