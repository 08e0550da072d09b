/* SPDX-License-Identifier: MIT */
/*
 * store.h: what a comparison has done, saved while it goes on and afterwards
 *
 *     DIR.partial/<name>.npz     a run (run.h), under way or finished; name: pe_run_name
 *     DIR.partial/lock           held by the process that works there
 *     DIR/runs.npz               all finished runs of a result
 *
 * DIR.partial is made when training begins and removed when the result DIR is in place; whatever ends the
 * process in between leaves it.
 */
#ifndef PE_TRAIN_STORE_H
#define PE_TRAIN_STORE_H

#include "train/jobs/outcome.h"

#define PE_RUNS_NAME "runs.npz"

typedef struct pe_store pe_store;

/* Names all runs in c->store, and looks at DIR.partial: without config.resume it must hold nothing, with it
   everything there must belong to this comparison. Finished runs are taken over, from an older result DIR
   where DIR.partial has none; what is damaged is noted in c->notes and ignored. Writes nothing. ARGUMENT
   with what to do. */
posenc_status pe_store_look(pe_compare *c, posenc_error *err);
void          pe_store_free(pe_store *store); /* closes, and unlocks; NULL is fine */

/* Makes DIR.partial if it is not there and locks it, removes half-written files and what is
   damaged. ARGUMENT if another process works there. (Of several processes only the first locks and cleans.)
 */
posenc_status pe_store_open(pe_compare *c, posenc_error *err);
/* With `resume`, once the learning rates are chosen: takes over finished runs that have them. */
posenc_status pe_store_take(pe_compare *c, posenc_error *err);
/* The file of a run whose learning rate is known; malloc'd. */
char *pe_store_file(const pe_compare *c, int64_t job);
/* Saves a finished run in the place of its checkpoint: on the disk when this returns OK, and the checkpoint
 * otherwise. */
posenc_status pe_store_save(const pe_compare *c, int64_t job, posenc_error *err);
/* All finished runs in one archive. */
posenc_status pe_store_write(const char *path, const pe_compare *c, posenc_error *err);
/* Removes what belongs to it, and the directory if nothing else is in it. */
void pe_store_remove(pe_store *store);

#endif
