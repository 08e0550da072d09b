/* SPDX-License-Identifier: MIT */
/*
 * halves.h: complex numbers as two arrays
 *
 * An encoding with complex heads takes one tensor whose last axis holds the real parts, then the imaginary
 * ones. Reference cases and people have two arrays, "qr" and "qi": here they are put together and taken
 * apart, all contiguous.
 */
#ifndef CLI_HALVES_H
#define CLI_HALVES_H

#include <posenc/posenc.h>

/* Do two arrays have one shape and type, so that they may be halves? */
int cli_are_halves(const posenc_tensor *re, const posenc_tensor *im);

/* The shape of both together. */
void cli_whole_shape(int64_t shape[POSENC_MAX_DIMS], const posenc_tensor *half);

void cli_join_halves(posenc_tensor *whole, const posenc_tensor *re, const posenc_tensor *im);
void cli_split_halves(const posenc_tensor *whole, posenc_tensor *re, posenc_tensor *im);

#endif
