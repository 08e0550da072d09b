/* SPDX-License-Identifier: MIT */
/*
 * directory.h: a directory of results that appears whole
 */
#ifndef PE_TRAIN_DIRECTORY_H
#define PE_TRAIN_DIRECTORY_H

#include <posenc/posenc.h>

typedef struct pe_directory {
    char *path, *temporary; /* write into `temporary` */
} pe_directory;

/* Could a result be written there? It may not exist yet, or be empty, or hold an older result and nothing
   else. ARGUMENT, with what to do, if not. */
posenc_status pe_directory_check(const char *path, posenc_error *err);
posenc_status pe_directory_open(pe_directory *d, const char *path, posenc_error *err);
/* Puts the new directory in the place of the old one, which is removed. Frees d, also when it fails. */
posenc_status pe_directory_commit(pe_directory *d, posenc_error *err);
void          pe_directory_discard(pe_directory *d);

/* Removes the remains of processes that were killed while they wrote a result there: DIR.tmp.PID. No process
   may be writing one. */
void pe_directory_sweep(const char *path);

/* What a link points to instead of the link, and without slashes at the end; malloc'd, NULL without
   memory. */
char *pe_directory_trimmed(const char *path);

/* Three texts, one after the other; malloc'd, NULL without memory. */
char *pe_directory_join(const char *a, const char *b, const char *c);

/* The file of the results; it lists the files of its directory in "files". */
#define PE_RESULTS_NAME   "results.json"
#define PE_RESULTS_FORMAT "posenc compare results"

#endif
