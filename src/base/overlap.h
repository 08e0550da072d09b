/* SPDX-License-Identifier: MIT */
/* overlap.h: do two of the caller's tensors share memory? */
#ifndef PE_BASE_OVERLAP_H
#define PE_BASE_OVERLAP_H

#include <posenc/posenc.h>

/* Are they one tensor: data, type, shape and strides? */
int pe_overlap_is_same(const posenc_tensor *x, const posenc_tensor *y);

/* ARGUMENT where an element of `out` is also one of `in`, or, with may_be_same, where they are neither apart
   nor one tensor (data, type and strides). Tensors without data are apart from all. Where tensors run through
   each other in ways that a moment does not settle, they count as apart: no run is refused by mistake. */
posenc_status pe_overlap_check(const posenc_tensor *out, const char *out_name, const posenc_tensor *in,
                               const char *in_name, int may_be_same, posenc_error *err);

/* A tensor, and what sentences call it. */
typedef struct pe_named {
    const posenc_tensor *tensor;
    const char          *name;
} pe_named;

/* The same of outputs, each in memory of its own: apart from each other and from the inputs. */
posenc_status pe_overlap_check_apart(const pe_named *outputs, int output_count, const pe_named *inputs,
                                     int input_count, posenc_error *err);

#endif
