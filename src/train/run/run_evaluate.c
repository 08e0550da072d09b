/* SPDX-License-Identifier: MIT */
/*
 * run_evaluate.c: held-out windows of R L, by position
 *
 * A causal model reads each window in one pass: since no byte sees what follows it, that pass holds the loss
 * at every shorter length. A bidirectional model reads each window several times, cut into pieces of L/2, L,
 * 2 L and so on up to R L, and predicts the same hidden bytes each time: only the length of what surrounds
 * them differs.
 *
 * A unit of this stage is one call of the model, on as many windows or pieces as fill the buffers of a
 * training step.
 */
#include "train/run/run_state.h"

#include <string.h>

#define HELD_OUT_SEED 0 /* hidden bytes of held-out windows are the same for every seed of a run */

/* ---------------------------------------------------------------- calls --------------------- */

static int64_t calls(int64_t all, int64_t per_call)
{
    return (all + per_call - 1) / per_call;
}

/* Evaluation number i: the length of its pieces, L/2 << i, how many there are, and how many one call takes.
 */
static int64_t piece_length(const pe_run_config *c, int i)
{
    return i == 0 ? c->L / 2 : c->L << (i - 1);
}

static int64_t piece_count(const pe_run_config *c, int i)
{
    return c->windows * (c->reach * c->L / piece_length(c, i));
}

/* As many as fill the buffers of a training step. */
static int64_t pieces_per_call(const pe_run_config *c, int i)
{
    return piece_length(c, i) <= c->L ? c->batch : c->batch > c->reach ? c->batch / c->reach : 1;
}

/* A causal model reads only the longest pieces, which are whole windows. */
static int first_length(const pe_run_config *c)
{
    return c->bidirectional ? 0 : pe_stats_furthest(c->reach);
}

int64_t pe_run_evaluate_calls(const pe_run_config *c)
{
    int64_t all = 0;
    for (int i = first_length(c); i <= pe_stats_furthest(c->reach); i++)
        all += calls(piece_count(c, i), pieces_per_call(c, i));
    return all;
}

/* ---------------------------------------------------------------- pieces -------------------- */

/* Reads pieces first .. first + count - 1 of one length and writes the losses of their bytes, or adds up
   those of hidden bytes, by window. Pieces lie in the order of the windows, so hidden bytes are found by
   position. */
static posenc_status read_pieces(pe_run_state *w, int64_t length, int64_t first, int64_t count,
                                 posenc_error *err)
{
    const pe_run_config *c          = w->config;
    const int64_t        per_window = c->reach * c->L / length;
    const pe_batch       batch      = {.windows = w->windows,
                                       .hidden  = c->bidirectional ? w->hidden + first * length : NULL,
                                       .B       = count,
                                       .length  = length};
    for (int64_t i = 0; i < count; i++)
        w->windows[i] = pe_text_window(c->text, c->reach * c->L, c->windows, (first + i) / per_window) +
                        (first + i) % per_window * length;
    const posenc_status status = pe_model_losses(w->model, w->losses, &batch, err);
    for (int64_t i = 0; !status && i < count * length; i++)
        if (!batch.hidden)
            w->result->window_loss[first * length + i] = (float)w->losses[i];
        else if (batch.hidden[i])
            w->sums[(first + i / length) / per_window] += w->losses[i];
    return status;
}

/* Column p of every window from `begin` to before `end` receives the mean over its hidden bytes. */
static void write_means(pe_run_state *w, int64_t begin, int64_t end)
{
    const pe_run_config *c = w->config;
    for (int64_t i = 0; i < c->windows; i++)
        for (int64_t p = begin; p < end; p++)
            w->result->window_loss[i * c->reach * c->L + p] = (float)(w->sums[i] / (double)w->counts[i]);
}

/* The same for all lengths: which bytes of the held-out windows are hidden, and how many of each. */
static void hide_windows(pe_run_state *w)
{
    const pe_run_config *c      = w->config;
    const int64_t        length = c->reach * c->L;
    for (int64_t i = 0; i < c->windows; i++) {
        pe_text_hide(w->hidden + i * length, length, HELD_OUT_SEED, "hidden.held-out", i * length);
        w->counts[i] = 0;
        for (int64_t p = 0; p < length; p++)
            w->counts[i] += w->hidden[i * length + p];
    }
}

/* Reads the windows in pieces of one length, except for the calls that a checkpoint has done already. */
static posenc_status evaluate_length(pe_run_state *w, int l, int64_t done, posenc_error *err)
{
    const pe_run_config *c      = w->config;
    const int64_t        length = piece_length(c, l), all = piece_count(c, l), most = pieces_per_call(c, l);
    if (done == 0)
        memset(w->sums, 0, (size_t)c->windows * sizeof *w->sums);
    for (int64_t first = done * most; first < all; first += most) {
        const int64_t count  = all - first < most ? all - first : most;
        posenc_status status = read_pieces(w, length, first, count, err);
        if (!status && first + count == all && c->bidirectional)
            write_means(w, l ? piece_length(c, l - 1) : 0, length);
        if (!status)
            status = pe_run_unit_done(w, PE_RUN_UNIT, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

posenc_status pe_run_evaluate(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c      = w->config;
    const int64_t        done   = w->marks[PE_RUN_UNIT];
    int64_t              units  = 0;
    posenc_status        status = POSENC_OK;
    w->stage_start              = pe_run_clock() - w->measures[PE_RUN_EVAL_SECONDS];
    if (c->bidirectional)
        hide_windows(w);
    for (int l = first_length(c); l <= pe_stats_furthest(c->reach) && !status; l++) {
        status = evaluate_length(w, l, done > units ? done - units : 0, err);
        units += calls(piece_count(c, l), pieces_per_call(c, l));
    }
    return status;
}
