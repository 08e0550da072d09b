/* SPDX-License-Identifier: MIT */
/*
 * run_file.h: a run in a file, finished or not: named arrays under the identity of the run
 *
 * One format for what goes on later (a checkpoint) and for what came out. An archive may hold several runs:
 * then the names of their arrays begin with a prefix, "NAME/".
 */
#ifndef PE_TRAIN_RUN_FILE_H
#define PE_TRAIN_RUN_FILE_H

#include <posenc/files.h>
#include <stdint.h>

enum { PE_MOST_ARRAYS = 16 };

/* The arrays are views of what is written, or filled. */
typedef struct pe_run_file {
    char        *identity; /* pe_run_identity; the owner's to free */
    int          is_finished;
    posenc_array arrays[PE_MOST_ARRAYS];
    int          count;
} pe_run_file;

/* One array more: [rows, columns], or [rows] where columns is 0. */
void pe_run_file_list(pe_run_file *k, const char *name, void *data, posenc_dtype dtype, int64_t rows,
                      int64_t columns);
/* How many numbers, and bytes. */
int64_t pe_run_file_elements(const posenc_tensor *t);
size_t  pe_run_file_bytes(const posenc_array *a);

/* Adds copies to a set; 0 without memory. */
int pe_run_file_add(posenc_arrays *set, const char *prefix, const pe_run_file *k);
/* Writes one run, whole or not at all. FILE, with what to do. */
posenc_status pe_run_file_write(const char *path, const pe_run_file *k, posenc_error *err);

/* Fills the arrays, all or none. FORMAT if one is missing; ARGUMENT if they are of another run. `path` is for
   the sentence. */
posenc_status pe_run_file_take(const pe_run_file *k, const posenc_arrays *set, const char *prefix,
                               const char *path, posenc_error *err);
/* The identity of the run there, malloc'd; NULL if there is none. */
char *pe_run_file_identity(const posenc_arrays *set, const char *prefix, int *is_finished);

#endif
