/* SPDX-License-Identifier: MIT */
/*
 * store.h: DIR.partial, which keeps what a comparison has done while it goes on
 *
 *     DIR.partial/runs.jsonl     one line per finished run (record.h)
 *     DIR.partial/<name>.npz     the checkpoint of a run that is under way (checkpoint.h); name: pe_run_name
 *     DIR.partial/lock           held by the process at work
 *
 * The directory is made when training begins and removed when the result DIR is in place; whatever ends the
 * process in between leaves it. Nothing here knows what a line says.
 */
#ifndef PE_TRAIN_STORE_H
#define PE_TRAIN_STORE_H

#include <posenc/posenc.h>

#define PE_RUNS_NAME "runs.jsonl"

typedef struct pe_store pe_store;

/* Of the result directory `directory`; touches nothing. NULL without memory. */
pe_store   *pe_store_create(const char *directory);
void        pe_store_free(pe_store *store); /* closes, and unlocks; NULL is fine */
const char *pe_store_path(const pe_store *store);
/* DIR.partial/NAME.npz, malloc'd. */
char *pe_store_checkpoint(const pe_store *store, const char *name);

/* Calls `line` for every whole line of runs.jsonl in DIR.partial (is_partial 1), or in an older result DIR,
   until it returns something else than OK; number counts from 1. *cut = 1 if the last line has no end: it was
   being written when the process ended. FILE if it cannot be read; no file is no line. */
typedef posenc_status pe_store_line(void *self, const char *line, int64_t number, posenc_error *err);
posenc_status pe_store_lines(const pe_store *store, int is_partial, pe_store_line *line, void *self, int *cut,
                             posenc_error *err);
/* Calls `name` for every checkpoint. */
typedef posenc_status pe_store_name(void *self, const char *name, posenc_error *err);
posenc_status pe_store_checkpoints(const pe_store *store, pe_store_name *name, void *self, posenc_error *err);

/* Makes the directory if it is not there; nothing is locked or opened. FILE if it cannot be made. */
posenc_status pe_store_make(const pe_store *store, posenc_error *err);
/* The same, locks it, cuts an unfinished line off and removes what half-written checkpoints have left.
   ARGUMENT if another process works there. */
posenc_status pe_store_open(pe_store *store, posenc_error *err);
/* Adds a line: on the disk when this returns OK, and not at all otherwise. */
posenc_status pe_store_append(pe_store *store, const char *line, posenc_error *err);
/* Removes the checkpoint of that name, if there is one. */
void pe_store_forget(const pe_store *store, const char *name);
/* Removes what belongs to it, and the directory if nothing else is in it. */
void pe_store_remove(pe_store *store);

#endif
