/* SPDX-License-Identifier: MIT */
/*
 * spec.h: SPECs of `compare`, and how the rows of an input encoding enter the model
 *
 * An encoding at the place input says what its rows are. What a model does with them is the model's affair,
 * and two settings of `compare` say it, written among the encoding's own:
 *
 *     combine=add        x = e + p                             the library's sum (default)
 *     combine=concat     x = [e; p] W                          W [d + width, d] is learned
 *     inject=input       before the first block (default)
 *     inject=blocks      before every block:  x = x + p_n      p_n: columns n d .. (n + 1) d - 1 of the rows,
 *                                                              or, where rows have d numbers, the same p
 *
 * e is the token's vector, p the row of its position. A row of layers * d numbers holds one state per block:
 * FLOATER with states=layers, or a table that is learned for every block, learned[dim=layers*d].
 *
 * They stand in the SPEC, and not only in an option, so that one comparison can hold both kinds side by side
 * and each line of its table names what it is: sinusoidal, sinusoidal[combine=concat].
 *
 * Source: adding, Vaswani et al. 2017, arXiv:1706.03762, section 3.5; at every block, Dehghani et al. 2019,
 * arXiv:1807.03819, section 2.1, and with a state per block Liu et al. 2020 (FLOATER), arXiv:2003.09229,
 * section 3.
 */
#ifndef PE_TRAIN_SPEC_H
#define PE_TRAIN_SPEC_H

#include <posenc/registry.h>
#include <stddef.h>

enum { PE_LONGEST_SPEC = 1024 };

/* ORDER settings (spec.c) */
typedef enum pe_combine { PE_ADD, PE_CONCAT } pe_combine;
typedef enum pe_inject { PE_AT_INPUT, PE_IN_BLOCKS } pe_inject;

typedef struct pe_entry {
    pe_combine combine;
    pe_inject  inject;
    int        names_combine; /* the SPEC said how to combine */
} pe_entry;

const char *pe_spec_combine_name(pe_combine combine); /* "add" */
const char *pe_spec_inject_name(pe_inject inject);    /* "input" */
int         pe_spec_entry_is_default(const pe_entry *entry);

/* Divides a SPEC of `compare`: plain [n] receives what posenc_encoding_create reads, entry the rest. SETTING
   for a value that does not exist, a part that does not act at the input, or concat in blocks. */
posenc_status pe_spec_split(char *plain, size_t n, pe_entry *entry, const char *spec, posenc_error *err);

/* Writes spec with combine=... among the settings of its input part. */
posenc_status pe_spec_set_combine(char *named, size_t n, const char *spec, pe_combine combine,
                                  posenc_error *err);

/* Puts name=value among the settings of its input part if that encoding has such a setting and spec does not
   give it. The model knows two of them: `states`, vectors per row, one for every block where rows enter
   blocks; and `vocab`, the words of rows that belong to words, which with a mask symbol are one more. */
posenc_status pe_spec_set_missing(char spec[PE_LONGEST_SPEC], const char *name, int64_t value,
                                  posenc_error *err);

/* The ways of combining in "add", "concat" or "add,concat": bits 1 << pe_combine. */
posenc_status pe_spec_read_combine(int *ways, const char *list, posenc_error *err);

/* ---------------------------------------------------------------- SPECs per layer ----------- */

/* Does it say something of layers: another SPEC for each, or a window (posenc_layer_read)? */
int pe_spec_is_layered(const char *spec);
/* The encoding of layer l, and what else is read of it. */
posenc_status pe_spec_layer(posenc_encoding **e, posenc_layer *read, const char *spec, int64_t l,
                            posenc_error *err);
/* Whether every layer's encoding can be made. */
posenc_status pe_spec_check(const char *spec, posenc_error *err);
/* The text of each layer's encoding as the library writes it, settings that are usual left out. */
posenc_status pe_spec_canonical(char *to, size_t n, const char *spec, posenc_error *err);

/* ---------------------------------------------------------------- SPECs as text ------------- */

/* Copies the first SPEC of `list` into spec and returns where the next one starts, or NULL if it was the
   last. A comma inside brackets belongs to the SPEC. ARGUMENT in *status for an empty SPEC or one of n bytes
   or more. */
const char *pe_spec_next(char *spec, size_t n, const char *list, posenc_status *status, posenc_error *err);

/* Writes spec with every part's settings for a small model under a mask (posenc_small_model), which the
   spec's own settings override: "t5[num_buckets=16]" becomes "t5[max_distance=32 ... num_buckets=16]". Of a
   SPEC per layer every entry. */
posenc_status pe_spec_complete(char *complete, size_t n, const char *spec, const posenc_dims *dims, int mask,
                               posenc_error *err);

/* Text that is put together in an array of `capacity` bytes; that it did not fit is asked at the end. */
typedef struct pe_spec_text {
    char  *to;
    size_t capacity, used;
    int    is_full;
} pe_spec_text;

/* A stretch of a SPEC, and a part of it: its name, and what stands between its brackets, if it has any. */
typedef struct pe_spec_piece {
    const char *at;
    size_t      length;
} pe_spec_piece;
typedef struct pe_spec_part {
    char          name[64];
    const char   *bracket; /* NULL: none */
    pe_spec_piece whole, inside;
} pe_spec_part;

pe_spec_text pe_spec_begin(char *to, size_t capacity);
void         pe_spec_put(pe_spec_text *t, const char *from, size_t length);
/* A part with settings before its own, which override them. */
void         pe_spec_put_with(pe_spec_text *t, const pe_spec_part *p, const char *given, const char *between);
pe_spec_part pe_spec_first(const char *spec);
/* The next part, a '+' before it in the text; 0 if there is none. */
int pe_spec_following(pe_spec_text *t, pe_spec_part *p);
/* Has an encoding such a setting? NULL: no. */
int pe_spec_has_setting(const posenc_encoding_info *info, const char *name);
/* Did all of spec fit? */
posenc_status pe_spec_end(const pe_spec_text *t, const char *spec, posenc_error *err);

#endif
