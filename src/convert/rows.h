/* SPDX-License-Identifier: MIT */
/*
 * rows.h: which rows of a checkpoint's tensor are rotary channels of queries and keys
 *
 * A row of a projection's weight makes one channel of a head; its bias, the scale of a quantised row, LoRA's
 * B and a norm over the channels are ordered as its rows are. Such a tensor is a run of slots, most of them
 * one head wide, of which those of queries and keys rotate: rows offset .. offset+dim-1 of each.
 */
#ifndef PE_CONVERT_ROWS_H
#define PE_CONVERT_ROWS_H

#include <posenc/files.h>

#include "files/arrays/checkpoint.h"

typedef enum pe_rows_order {
    PE_ROWS_HEADS,
    PE_ROWS_BLOCKS,
    PE_ROWS_GROUPS,
    PE_ROWS_QUARTERS,
    PE_ROWS_GATED,
    PE_ROWS_TAIL
} pe_rows_order;

/* Heads as a model has them. */
typedef struct pe_heads {
    int64_t     H, G, D, dim, offset; /* query and key heads, their width, rotary channels and the first */
    const char *layout;               /* of the type; NULL: not told */
} pe_heads;

/* Where heads come from: a model, or sizes that hold for every layer. */
typedef struct pe_rows_source {
    const posenc_model *model; /* NULL: sizes */
    pe_heads            sizes;
} pe_rows_source;

/* What of a tensor changes. */
typedef struct pe_rows_change {
    int           tensor; /* of the checkpoint */
    const char   *part;   /* "q", "k", "qkv", "q norm", "k norm" */
    pe_rows_order order;
    int64_t       rows, row_bytes, slot; /* slot: rows of one */
    pe_heads      heads;                 /* offset counts in a slot */
} pe_rows_change;

/* Does slot number i rotate? And how many do? */
int     pe_rows_rotates(const pe_rows_change *change, int64_t slot);
int64_t pe_rows_rotating(const pe_rows_change *change);
/* "heads", "blocks", ... */
const char *pe_rows_order_name(pe_rows_order order);

/* The sizes of a checkpoint whose keys are latent (MLA): the last channels of a head rotate. */
int pe_rows_is_latent(const pe_checkpoint *c);

/* Does it change? *found says so. Errors: FORMAT, by the tensor's name: rows that the heads do not fit,
   quantised in blocks that part rows which change places; UNSUPPORTED: an order that only the model's type
   tells, keys that are values too. */
posenc_status pe_rows_find(pe_rows_change *change, int *found, const pe_checkpoint *c, int tensor,
                           const pe_rows_source *source, posenc_error *err);

/* The heads of a layer that rotates; 0: it does not. A layer beyond the model's (a head for further tokens)
   is as the others. */
int pe_rows_heads(pe_heads *heads, const pe_rows_source *source, int64_t layer);

#endif
