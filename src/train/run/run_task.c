/* SPDX-License-Identifier: MIT */
/*
 * run_task.c: what of a run is a task's: the encoding's settings, batches, and tests at every length
 *
 * A model of a task has another length than that of the text, perhaps another mask, and few symbols, so the
 * settings that rooms recommend for a small model are asked for again. On a grid an encoding must be told how
 * large it is. Rooms have different words for it (`shape`, `window` ...); the table below knows these words,
 * and no encoding. An encoding without any of them stands on a line: it is not asked about grids.
 *
 * The model is the one of `compare` (model.h) with the task's symbols and classes for bytes. Batches are made
 * as they are needed. Every length is read by itself, causal or not: a sequence of another n is another
 * sequence.
 *
 * An answer is right if its class is likelier than every other. All answers of a sequence right is an exact
 * match, and as each answer was given what should have been written before it, that is also what free writing
 * would have brought.
 */
#include "base/status.h"
#include "train/run/run_state.h"

#include <string.h>

posenc_status pe_run_task_check(const pe_run_config *c, posenc_error *err)
{
    if (c->steps < 1 || c->batch < 1 || c->sequences < 1)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "task %s: steps is %lld, batch %lld, sequences %lld; all must be at least 1",
                       c->task->name, (long long)c->steps, (long long)c->batch, (long long)c->sequences);
    if (c->longest < PE_TASK_L || c->longest >= PE_TASK_LENGTHS)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "task %s: longest is %d; it must be %d to %d",
                       c->task->name, c->longest, PE_TASK_L, PE_TASK_LENGTHS - 1);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the encoding -------------- */

/* Which grid a setting is about: the largest that is tested, or that of training. */
typedef enum grid_of { TESTED, TRAINED } grid_of;

static const struct {
    const char *setting, *format;
    grid_of     of;
} words[] = {{"height", "%lld", TESTED},       {"width", "%lld", TESTED},
             {"shape", "%lldx%lld", TESTED},   {"window", "%lldx%lld", TESTED},
             {"grid", "%lldx%lld", TESTED},    {"pretrained_window", "%lldx%lld", TRAINED},
             {"grid_in", "%lldx%lld", TESTED}, {"grid_out", "%lldx%lld", TESTED}};

/* The settings of a grid that an encoding has: "height=16:width=16". */
static void write_grid(char *text, size_t n, const posenc_encoding_info *info, const int64_t side[2])
{
    pe_spec_text t = pe_spec_begin(text, n);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char          value[64], pair[128];
        const int64_t s = side[words[i].of];
        if (!pe_spec_has_setting(info, words[i].setting))
            continue;
        snprintf(value, sizeof value, words[i].format, (long long)s, (long long)s);
        snprintf(pair, sizeof pair, "%s%s=%s", text[0] ? ":" : "", words[i].setting, value);
        pe_spec_put(&t, pair, strlen(pair));
    }
}

/* spec, whose parts know rows and columns. */
static posenc_status give_grid(char *to, size_t n, const char *spec, const int64_t side[2], posenc_error *err)
{
    pe_spec_text t     = pe_spec_begin(to, n);
    pe_spec_part p     = pe_spec_first(spec);
    int          knows = 0;
    if (pe_spec_is_layered(spec))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "task: a SPEC per layer is for tokens in a line, not for the cells of a grid");
    do {
        char grid[256];
        write_grid(grid, sizeof grid, posenc_encoding_find(p.name), side);
        pe_spec_put_with(&t, &p, grid, ":");
        knows |= grid[0] != 0;
    } while (pe_spec_following(&t, &p));
    if (t.is_full || knows)
        return pe_spec_end(&t, spec, err);
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "task: its positions form a line, but the cells of a grid have rows and columns");
}

posenc_status pe_run_task_spec(char *complete, size_t n, pe_entry *entry, const char *label,
                               const pe_run_config *config, posenc_error *err)
{
    const pe_task        *task    = config->task;
    const pe_model_config model   = pe_run_model_config(config);
    const posenc_dims     dims    = pe_model_dims(&model, 1, model.longest);
    const int             mask    = task->full ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL;
    const int64_t         side[2] = {pe_task_largest(task, config->longest), task->L}; /* ORDER grid_of */
    char                  plain[PE_LONGEST_SPEC], placed[PE_LONGEST_SPEC];
    posenc_status         status = pe_spec_split(plain, sizeof plain, entry, label, err);
    if (!status && entry->inject == PE_IN_BLOCKS)
        status = pe_spec_set_missing(plain, "states", config->layers, err);
    if (!status)
        status = pe_spec_set_missing(plain, "vocab", task->symbols, err);
    if (!status && task->grid)
        status = give_grid(placed, sizeof placed, plain, side, err);
    if (status)
        return status;
    return pe_spec_complete(complete, n, task->grid ? placed : plain, &dims, mask, err);
}

/* ---------------------------------------------------------------- batches ------------------- */

/* The sequences in w as a batch of size n. */
static pe_batch batch_of(pe_run_state *w, const pe_task *task, int64_t n, int64_t count)
{
    const int64_t length = pe_task_tokens(task, n);
    for (int64_t r = 0; r < count; r++)
        w->windows[r] = w->symbols + r * length;
    return (pe_batch){.windows = w->windows,
                      .B       = count,
                      .length  = length,
                      .targets = w->targets,
                      .columns = task->grid ? n : 0};
}

pe_batch pe_run_task_batch(pe_run_state *w, int64_t step)
{
    const pe_run_config *c = w->config;
    const int64_t        n = pe_task_batch_size(c->task, c->seed, step);
    pe_task_batch(c->task, c->seed, step, n, c->batch, w->symbols, w->targets);
    return batch_of(w, c->task, n, c->batch);
}

/* ---------------------------------------------------------------- tests --------------------- */

/* Test sequences that one call takes. The model's buffers are those of a training batch. */
static int64_t per_call(const pe_run_config *c, int length)
{
    const int64_t trained = pe_task_tokens(c->task, c->task->L),
                  tokens  = pe_task_tokens(c->task, pe_task_size(c->task, length)),
                  fit     = c->batch * trained / pe_task_tested_tokens(c->task, c->longest);
    return tokens <= trained ? c->batch : fit > 1 ? fit : 1;
}

int64_t pe_run_task_calls(const pe_run_config *c)
{
    int64_t units = 0;
    for (int i = 0; i <= c->longest; i++)
        if (pe_task_size(c->task, i))
            units += (c->sequences + per_call(c, i) - 1) / per_call(c, i);
    return units;
}

/* Sequences first .. first + count - 1 of a length: adds up the losses, and counts what was right in each. */
static posenc_status test_some(pe_run_state *w, int length, int64_t first, int64_t count, posenc_error *err)
{
    const pe_run_config *c     = w->config;
    int64_t             *right = w->result->right + length * c->sequences + first;
    pe_task_test(c->task, length, first, count, w->symbols, w->targets);
    const pe_batch      batch  = batch_of(w, c->task, pe_task_size(c->task, length), count);
    const posenc_status status = pe_model_losses(w->model, w->losses, &batch, err);
    for (int64_t i = 0; !status && i < count * batch.length; i++)
        if (w->targets[i] >= 0) {
            w->asked++;
            w->result->loss[length] += w->losses[i];
            right[i / batch.length] += w->model->right[i];
        }
    return status ? status : pe_run_unit_done(w, PE_RUN_UNIT, err);
}

static posenc_status test_length(pe_run_state *w, int length, posenc_error *err)
{
    const pe_run_config *c      = w->config;
    const int64_t        most   = per_call(c, length);
    posenc_status        status = POSENC_OK;
    w->result->loss[length]     = 0;
    w->asked                    = 0;
    for (int64_t first = 0; first < c->sequences && !status; first += most)
        status = test_some(w, length, first, c->sequences - first < most ? c->sequences - first : most, err);
    w->result->loss[length] /= (double)w->asked;
    return status;
}

posenc_status pe_run_task_evaluate(pe_run_state *w, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    w->stage_start       = pe_run_clock();
    for (int i = 0; i <= w->config->longest && !status; i++)
        if (pe_task_size(w->config->task, i))
            status = test_length(w, i, err);
    return status;
}
