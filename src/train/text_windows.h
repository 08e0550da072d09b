/* SPDX-License-Identifier: MIT */
/*
 * text_windows.h: which bytes a run sees
 *
 * A window is length + 1 bytes, of which the first `length` are read and the last `length` predicted.
 * Training windows are drawn from the front of the text, each from a random number of its own that is
 * named by seed, step and row: every encoding sees the same batches, in whatever order its run draws
 * other numbers. Held-out windows stand evenly spread over the rest and do not depend on the seed.
 * (pe_text_windows, in run.h, says how many fit.)
 */
#ifndef PE_TRAIN_TEXT_WINDOWS_H
#define PE_TRAIN_TEXT_WINDOWS_H

#include "train/run.h"

/* windows[0 .. batch-1] point at L + 1 bytes each. train_size must exceed L. */
void pe_text_batch(const unsigned char **windows, const pe_text *text, int64_t L, int64_t batch,
                   uint64_t seed, int64_t step);

/* Masked text: which bytes a model must not see. hidden[p] = 1 for those of n bytes whose draw (number first
   + p of the stream named) is below PE_HIDDEN_SHARE, and in any case for the byte with the smallest draw, so
   that no window is without a prediction. The stream names what the bytes are, never an encoding: all see the
   same. */
#define PE_HIDDEN_SHARE 0.15
void pe_text_hide(unsigned char *hidden, int64_t n, uint64_t seed, const char *stream, int64_t first);

/* Held-out window w of `count`: 8 L + 1 bytes. count is at most pe_text_windows(text, L). */
const unsigned char *pe_text_window(const pe_text *text, int64_t L, int64_t count, int64_t w);

#endif
