/* SPDX-License-Identifier: MIT */
/*
 * permute.h: a checkpoint in the other rotary layout: half <-> interleaved
 *
 * The same model in the other order of its rotary channels: rows of queries and keys change places, nothing
 * else, and the scores of every pair of tokens stay what they were. First a plan, which reads headers alone
 * and refuses what cannot be done; then the run, which writes.
 *
 * Source   RoFormer's pairs (2i, 2i+1) against GPT-NeoX's (i, i+M); `permute` of transformers' and
 * llama.cpp's converters
 */
#ifndef PE_CONVERT_PERMUTE_H
#define PE_CONVERT_PERMUTE_H

#include "convert/layout.h"
#include "convert/rows.h"

/* One file of a checkpoint. */
typedef struct pe_permute_file {
    char           *path, *name; /* name: in its folder */
    pe_checkpoint   c;
    pe_rows_change *changes;
    int             count;
    pe_layout       now, was; /* what an earlier run wrote into its header; UNTOLD: nothing */
} pe_permute_file;

typedef struct pe_permute {
    const char      *path; /* of the file, or of the index of a sharded checkpoint */
    int              is_sharded;
    pe_permute_file *files; /* by name */
    int              file_count;
    pe_layout        from, to;
    int64_t          changes, bytes; /* of all files */
    posenc_error    *err;
} pe_permute;

/* What the caller wants. from: UNTOLD: as the header or the model's type says, else the other of the two. */
typedef struct pe_permute_wish {
    pe_rows_source source;
    pe_layout      from, to;
} pe_permute_wish;

/* Errors: FILE, FORMAT, UNSUPPORTED (rows.h), ARGUMENT (it is in that layout already; contradictions),
   MEMORY. `path` must live as long as the plan, which is the caller's to free in either case. */
posenc_status pe_permute_plan(pe_permute *p, const char *path, const pe_permute_wish *wish,
                              posenc_error *err);
/* Writes the file, or a sharded checkpoint's files and then its index, which must not be there yet (until the
   index stands there is no checkpoint) or be `path`: then the files are replaced, all when the last is
   written. Nothing is left of a run that fails. Memory: some MiB and the headers. */
posenc_status pe_permute_run(const pe_permute *p, const char *output, pe_progress progress,
                             posenc_error *err);
void          pe_permute_free(pe_permute *p);

#endif
