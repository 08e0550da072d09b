/* SPDX-License-Identifier: MIT */
/*
 * marker.h: what a header says of the layout in which a file was written
 *
 * A checkpoint does not say how its rotary channels are ordered, and the permutation done twice is not
 * undone. So a permuted file says so itself, in the texts that every .safetensors header may hold:
 *
 *     "__metadata__": {"posenc.rope_layout": "interleaved, was half", ...}
 *
 * Permuted back it is as it was, to the byte: the text that was put in is taken out.
 */
#ifndef PE_CONVERT_MARKER_H
#define PE_CONVERT_MARKER_H

#include "convert/layout.h"
#include "files/arrays/checkpoint.h"

/* What the header says; UNTOLD both where it says nothing. */
void pe_marker_read(pe_layout *now, pe_layout *was, const pe_checkpoint *c);

/* The text of the header with this mark, or (now UNTOLD) without any; malloc'd. NULL: no memory. */
char *pe_marker_write(int64_t *length, const pe_checkpoint *c, pe_layout now, pe_layout was);

#endif
