/* SPDX-License-Identifier: MIT */
/*
 * run_score.c: the loss at the training length, on many short held-out windows
 *
 * Windows of R L are few, and each holds only L/2 bytes whose loss ranks encodings at L: too few to tell the
 * leaders apart. So the held-out part is divided into as many stretches as there are windows of R L, and of
 * each stretch short windows of L are read until PE_SCORED bytes in [L/2, L) are scored, or the text ends. A
 * stretch stays one sample, so that neighbouring text is not counted as independent.
 */
#include "train/run/run_state.h"

enum { PE_SCORED = 100000 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Short windows of one stretch. */
static int64_t windows_of_stretch(const pe_run_config *c)
{
    const int64_t all = c->windows * (c->L - c->L / 2), wanted = (PE_SCORED + all - 1) / all;
    const int64_t stretch = (c->text->size - c->text->train_size - 1) / c->windows;
    return smaller(wanted, stretch / c->L);
}

const uint16_t *pe_run_scored_window(const pe_run_config *c, int64_t i)
{
    const int64_t n = windows_of_stretch(c), held_out = c->text->size - c->text->train_size - 1;
    const int64_t first = i / n * held_out / c->windows, stretch = held_out / c->windows;
    return c->text->ids + c->text->train_size + first + i % n * (stretch / n);
}

int64_t pe_run_scored_windows(const pe_run_config *c)
{
    return c->bidirectional || c->is_rough ? 0 : windows_of_stretch(c) * c->windows;
}

int64_t pe_run_score_calls(const pe_run_config *c)
{
    return (pe_run_scored_windows(c) + c->batch - 1) / c->batch;
}

/* Adds what windows first .. first + count - 1 say of both halves of L to the means of their stretches. */
static posenc_status score(pe_run_state *w, int64_t first, int64_t count, posenc_error *err)
{
    const pe_run_config *c = w->config;
    const int64_t        n = windows_of_stretch(c), half = c->L / 2;
    const pe_batch       batch = {.windows = w->windows, .B = count, .length = c->L};
    for (int64_t i = 0; i < count; i++)
        w->windows[i] = pe_run_scored_window(c, first + i);
    const posenc_status status = pe_model_losses(w->model, w->losses, &batch, err);
    for (int64_t i = 0; !status && i < count * c->L; i++) {
        const int64_t p = i % c->L, upper = p >= half, stretch = (first + i / c->L) / n;
        w->result->scored[2 * stretch + upper] += w->losses[i] / (double)(n * (upper ? c->L - half : half));
    }
    return status;
}

posenc_status pe_run_score(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c   = w->config;
    const int64_t        all = pe_run_scored_windows(c), done = w->marks[PE_RUN_SCORED] * c->batch;
    posenc_status        status = POSENC_OK;
    w->stage_start              = pe_run_clock() - w->measures[PE_RUN_EVAL_SECONDS];
    for (int64_t i = 0; i < 2 * c->windows && all && !done; i++)
        w->result->scored[i] = 0;
    for (int64_t first = done; first < all && !status; first += c->batch) {
        status = score(w, first, smaller(c->batch, all - first), err);
        if (!status)
            status = pe_run_unit_done(w, PE_RUN_SCORED, err);
    }
    return status;
}
