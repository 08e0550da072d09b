/* SPDX-License-Identifier: MIT */
/*
 * text_windows.c: which bytes or tokens a run sees: random windows to train on, evenly spread windows to
 * evaluate on
 *
 * A window is length + 1 bytes, of which the first `length` are read and the last `length` predicted.
 * Training windows are drawn from the front of the text, each from a random number of its own that is
 * named by seed, step and row: every encoding sees the same batches, in whatever order its run draws
 * other numbers. Held-out windows stand evenly spread over the rest and do not depend on the seed.
 *
 * Window w of n starts at floor(w (size - length - 1) / (n - 1)) of a held-out part of `size` bytes, so
 * that the first stands at its front and the last at its end. As n windows of `length` predictions fit,
 * neighbours are at least `length` apart: no byte is predicted twice.
 */
#include "train/run/run.h"

void pe_text_batch(const uint16_t **windows, const pe_text *text, int64_t L, int64_t batch, uint64_t seed,
                   int64_t step)
{
    const int64_t places = text->train_size - text->spared - L;
    for (int64_t r = 0; r < batch; r++) {
        const double u = posenc_random_uniform(seed, "batch", (uint64_t)(step * batch + r));
        windows[r]     = text->ids + (int64_t)(u * (double)places);
    }
}

void pe_text_hide(unsigned char *hidden, int64_t n, uint64_t seed, const char *stream, int64_t first)
{
    double  least = 1;
    int64_t at    = 0;
    for (int64_t p = 0; p < n; p++) {
        const double draw = posenc_random_uniform(seed, stream, (uint64_t)(first + p));
        hidden[p]         = draw < PE_HIDDEN_SHARE;
        if (draw < least) {
            least = draw;
            at    = p;
        }
    }
    hidden[at] = 1;
}

int64_t pe_text_windows(const pe_text *text, int64_t length)
{
    const int64_t predictions = text->size - text->train_size - 1;
    return predictions > 0 && length > 0 ? predictions / length : 0;
}

const uint16_t *pe_text_window(const pe_text *text, int64_t length, int64_t count, int64_t w)
{
    const int64_t range = text->size - text->train_size - length - 1;
    return text->ids + text->train_size + (count > 1 ? w * range / (count - 1) : 0);
}
