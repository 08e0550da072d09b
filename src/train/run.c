/* SPDX-License-Identifier: MIT */
/*
 * run.c: one training run, from checks to numbers
 *
 * Train `steps` batches of L, then read held-out windows of 8 L in one causal pass each: since no byte
 * sees what follows it, that pass holds the loss at every shorter length. A bidirectional model reads
 * each window five times, cut into pieces of L/2, L, 2 L, 4 L and 8 L, and predicts the same hidden
 * bytes each time: only the length of what surrounds them differs.
 *
 * Nothing here depends on the clock, on other runs or on the number of workers: the library is told to use the calling
 * thread alone, random numbers are named and not drawn in order,
 * and sums have a fixed order. The clock is only read, for the throughput, which is taken from step
 * 100 on: the first steps warm caches and clocks.
 *
 * A run that has a place for checkpoints keeps its whole state there: parameters, the optimiser's moments, how far it is,
 * what was measured. Everything else is named by the step, so the run that goes on from there has the same bits.
 *
 * With the model still in memory follows what is asked of trained ones: measures (trained.c), and a sequel, such as
 * extending it to longer inputs (extension.c), whose units checkpoints count.
 *
 * A loss or a gradient that is not finite ends the run with `diverged` and status OK: that is a
 * finding about the encoding, not an error of the caller.
 */
#include "train/run.h"

#include "train/checkpoint.h"
#include "train/descent.h"
#include "train/fail.h"
#include "train/model.h"
#include "train/optimiser.h"
#include "train/record.h"
#include "train/text_windows.h"
#include "train/trained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 8, WARM_STEPS = 100 }; /* windows are REACH * L long */
enum { LENGTHS = 5 };                 /* bidirectional: pieces of L/2 << i, i = 0 .. LENGTHS-1 */
#define HELD_OUT_SEED 0 /* hidden bytes of held-out windows are the same for every seed of a run */

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_numbers(const pe_run_config *c, posenc_error *err)
{
    const struct {
        const char *name;
        double      value, low, high;
    } rows[] = {{"L", (double)c->L, 1, 1e6},
                {"steps", (double)c->steps, 1, 1e9},
                {"warmup", (double)c->warmup, 0, 1e9},
                {"windows", (double)c->windows, 1, 1e9},
                {"bidirectional", (double)c->bidirectional, 0, 1},
                {"learning_rate", c->learning_rate, 0, 1e3},
                {"weight_decay", c->weight_decay, 0, 1e3},
                {"clip", c->clip, 0, 1e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high))
            return pe_train_fail(err, POSENC_ARGUMENT, "run: %s is %g; it must be %g to %g", rows[i].name,
                                 rows[i].value, rows[i].low, rows[i].high);
    return POSENC_OK;
}

static posenc_status check_text(const pe_run_config *c, posenc_error *err)
{
    const pe_text *t = c->text;
    if (!t || !t->bytes || t->train_size < 0 || t->train_size > t->size)
        return pe_train_fail(err, POSENC_ARGUMENT, "run: text has no bytes, or its training part exceeds it");
    if (t->train_size <= c->L)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the training part of the text has %lld bytes; training at length %lld needs at "
            "least %lld: give a longer text",
            (long long)t->train_size, (long long)c->L, (long long)c->L + 1);
    const int64_t windows = pe_text_windows(t, c->L);
    if (windows < c->windows)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the held-out part of the text has %lld bytes; %lld window(s) of %lld predictions "
            "need %lld: give a longer text",
            (long long)(t->size - t->train_size), (long long)c->windows, (long long)(REACH * c->L),
            (long long)(c->windows * REACH * c->L + 1));
    return POSENC_OK;
}

static pe_model_config model_config(const pe_run_config *c)
{
    return (pe_model_config){.spec    = c->spec,
                             .L       = c->L,
                             .longest = REACH * c->L,
                             .d_model = c->d_model,
                             .layers  = c->layers,
                             .heads   = c->heads,
                             .batch   = c->batch,
                             .seed    = c->seed,
                             .dtype   = POSENC_F32,

                             .bidirectional = c->bidirectional,
                             .entry         = c->entry};
}

/* ---------------------------------------------------------------- progress ------------------ */

/* Windows that one evaluation pass takes: as many as fill the buffers of a training step. */
static int64_t windows_per_pass(const pe_run_config *c)
{
    return c->batch > REACH ? c->batch / REACH : 1;
}

static int64_t calls(int64_t all, int64_t per_call)
{
    return (all + per_call - 1) / per_call;
}

/* Bidirectional evaluation number i: the length of its pieces, and how many of them one call takes. */
static int64_t piece_length(const pe_run_config *c, int i)
{
    return i == 0 ? c->L / 2 : c->L << (i - 1);
}

static int64_t piece_count(const pe_run_config *c, int i)
{
    return c->windows * (REACH * c->L / piece_length(c, i));
}

static int64_t pieces_per_call(const pe_run_config *c, int i)
{
    return piece_length(c, i) <= c->L ? c->batch : windows_per_pass(c);
}

/* Of the sequel, up to before that unit. */
static int64_t sequel_work(const pe_run_config *c, int64_t units)
{
    int64_t work = 0;
    for (int64_t i = 0; c->sequel && i < units; i++)
        work += c->sequel->work(c->sequel->self, i);
    return work;
}

int64_t pe_run_work(const pe_run_config *config)
{
    int64_t work = config->steps + (config->sequel ? sequel_work(config, config->sequel->units) : 0);
    if (!config->bidirectional)
        return work + calls(config->windows, windows_per_pass(config));
    for (int i = 0; i < LENGTHS; i++)
        work += calls(piece_count(config, i), pieces_per_call(config, i));
    return work;
}

/* ---------------------------------------------------------------- training ------------------ */

/* How far a run is. */
enum {
    STEP,
    UNIT,
    DIVERGED,
    SEQUEL,
    MARKS
}; /* steps; evaluation calls; 1: it stopped there; units of the sequel */
enum { TRAIN_SECONDS, EVAL_SECONDS, RATE, COSINE, MEASURES }; /* cosine: before the first step */

/* What one run holds. */
typedef struct work {
    pe_model             *model;
    pe_optimiser         *optimiser;
    const unsigned char **windows; /* [batch] */
    double               *losses;  /* [tokens of one pass] */
    unsigned char        *hidden;  /* [tokens of a batch, or of all held-out windows]; NULL: next byte */
    double               *sums;    /* [windows] */
    int64_t              *counts;  /* [windows] hidden bytes */

    char   *identity; /* of its checkpoints; NULL: there are none */
    int64_t marks[MARKS];
    double  measures[MEASURES];
    double  since,
        kept; /* when the present stage began, less what it had taken before; when the last was written */
} work;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int work_allocate(work *w, const pe_run_config *c)
{
    const int64_t rows = larger(c->batch, w->model->long_batch), length = REACH * c->L;
    const int64_t tokens = larger(c->batch * c->L, w->model->long_batch * length);
    w->windows           = malloc((size_t)rows * sizeof *w->windows);
    w->losses            = malloc((size_t)tokens * sizeof *w->losses);
    w->sums              = calloc((size_t)c->windows, sizeof *w->sums);
    w->counts            = malloc((size_t)c->windows * sizeof *w->counts);
    if (c->bidirectional)
        w->hidden = malloc((size_t)larger(tokens, c->windows * length));
    if (c->checkpoint)
        w->identity = pe_run_identity(c);
    return w->windows && w->losses && w->sums && w->counts && (w->hidden || !c->bidirectional) &&
           (w->identity || !c->checkpoint);
}

static posenc_status work_create(work *w, const pe_run_config *c, posenc_error *err)
{
    const pe_model_config config = model_config(c);
    posenc_status         status = pe_model_create(&w->model, &config, err);
    if (!status)
        status = pe_optimiser_create(&w->optimiser, w->model->size, err);
    if (status)
        return status;
    if (!work_allocate(w, c))
        return pe_train_fail(err, POSENC_MEMORY, "run: no memory for a batch of %lld windows",
                             (long long)c->batch);
    return POSENC_OK;
}

static void work_free(work *w)
{
    pe_model_free(w->model);
    pe_optimiser_free(w->optimiser);
    free(w->windows);
    free(w->losses);
    free(w->hidden);
    free(w->sums);
    free(w->counts);
    free(w->identity);
}

/* ---------------------------------------------------------------- checkpoints --------------- */

enum { STRETCHES = 9 };

/* Everything that a run needs to go on. */
static int list_state(pe_stretch list[STRETCHES], work *w, const pe_run_config *c,
                      const pe_run_result *result)
{
    int64_t      *t;
    float        *moments;
    const int64_t remembered = pe_optimiser_memory(w->optimiser, &t, &moments);
    int           n          = 0;
    list[n++]                = (pe_stretch){"marks", w->marks, MARKS, POSENC_I64};
    list[n++]                = (pe_stretch){"measures", w->measures, MEASURES, POSENC_F64};
    list[n++]                = (pe_stretch){"theta", w->model->theta, w->model->size, POSENC_F32};
    list[n++]                = (pe_stretch){"optimiser.step", t, 1, POSENC_I64};
    list[n++]                = (pe_stretch){"optimiser.moments", moments, remembered, POSENC_F32};
    list[n++]                = (pe_stretch){"train_loss", result->train_loss, c->steps, POSENC_F32};
    list[n++] = (pe_stretch){"window_loss", result->window_loss, c->windows * REACH * c->L, POSENC_F32};
    list[n++] = (pe_stretch){"sums", w->sums, c->windows, POSENC_F64};
    if (c->sequel)
        list[n++] = (pe_stretch){"sequel", result->sequel, c->sequel->count, POSENC_F32};
    return n;
}

/* Goes on from the checkpoint, if there is one. */
static posenc_status go_on(work *w, const pe_run_config *c, pe_run_progress *progress, pe_run_result *result,
                           posenc_error *err)
{
    pe_stretch list[STRETCHES];
    int        found;
    w->kept = pe_clock();
    if (!c->checkpoint)
        return POSENC_OK;
    const int           n      = list_state(list, w, c, result);
    const posenc_status status = pe_checkpoint_read(c->checkpoint, w->identity, list, n, &found, err);
    result->diverged           = w->marks[DIVERGED] != 0;
    if (progress)
        atomic_store(&progress->step, w->marks[STEP] + w->marks[UNIT] + sequel_work(c, w->marks[SEQUEL]));
    return status;
}

static posenc_status keep(work *w, const pe_run_config *c, const pe_run_result *result, posenc_error *err)
{
    pe_stretch list[STRETCHES];
    const int  n = list_state(list, w, c, result);
    w->kept      = pe_clock();
    return pe_checkpoint_write(c->checkpoint, w->identity, list, n, err);
}

/* After each unit of work: counts it, writes a checkpoint if it is time to, and stops if somebody asked to. Who is told
   to stop has the checkpoint before this one if none can be written any more. */
static posenc_status pass(work *w, const pe_run_config *c, pe_run_progress *progress, pe_run_result *result,
                          int mark, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    const int     stop   = progress && atomic_load(&progress->cancel);
    w->marks[mark]++;
    w->measures[mark == STEP ? TRAIN_SECONDS : EVAL_SECONDS] = pe_clock() - w->since;
    if (progress)
        atomic_fetch_add(&progress->step, 1);
    if (c->checkpoint && (stop || pe_clock() - w->kept >= c->checkpoint_seconds))
        status = keep(w, c, result, err);
    return stop ? pe_run_cancelled(&result->cancelled, err) : status;
}

/* One step; *finite = 0 if its loss or gradient was not, and then nothing was changed. */
static posenc_status train_step(work *w, const pe_run_config *c, int64_t step, float *train_loss, int *finite,
                                posenc_error *err)
{
    double           loss;
    const pe_descent descent = {c->steps, c->warmup, c->learning_rate, c->weight_decay, c->clip};
    const pe_batch   batch   = {.windows = w->windows, .hidden = w->hidden, .B = c->batch, .length = c->L};
    pe_text_batch(w->windows, c->text, c->L, c->batch, c->seed, step);
    for (int64_t r = 0; w->hidden && r < c->batch; r++)
        pe_text_hide(w->hidden + r * c->L, c->L, c->seed, "hidden", (step * c->batch + r) * c->L);
    const posenc_status status =
        pe_descent_step(w->model, w->optimiser, &batch, &descent, step, &loss, finite, err);
    if (!status)
        *train_loss =
            isnan(loss) ? NAN : (float)loss; /* processors differ in the sign of a NaN, files know none */
    return status;
}

/* Throughput of the steps from `first` on, which began at `warm`. */
static double rate_of(const pe_run_config *c, int64_t first, double warm)
{
    const double seconds = pe_clock() - warm;
    return seconds > 0 ? (double)((c->steps - first) * c->batch * c->L) / seconds : 0;
}

static posenc_status train(work *w, const pe_run_config *c, pe_run_progress *progress, pe_run_result *result,
                           posenc_error *err)
{
    const int64_t begin = w->marks[STEP];
    double        warm  = pe_clock();
    int64_t       first = begin;
    w->since            = warm - w->measures[TRAIN_SECONDS];
    for (int64_t step = begin; step < c->steps && !result->diverged; step++) {
        int           finite = 1;
        posenc_status status = train_step(w, c, step, &result->train_loss[step], &finite, err);
        if (status)
            return status;
        result->diverged   = !finite;
        w->marks[DIVERGED] = !finite;
        if (step + 1 == begin + WARM_STEPS && step + 1 < c->steps) {
            warm  = pe_clock();
            first = step + 1;
        }
        if (step + 1 == c->steps && finite)
            w->measures[RATE] = rate_of(c, first, warm);
        status = pass(w, c, progress, result, STEP, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- evaluation ---------------- */

static posenc_status evaluate_causal(work *w, const pe_run_config *c, pe_run_progress *progress,
                                     pe_run_result *result, posenc_error *err)
{
    const int64_t length = REACH * c->L, per_pass = windows_per_pass(c);
    for (int64_t first = w->marks[UNIT] * per_pass; first < c->windows; first += per_pass) {
        const int64_t count = c->windows - first < per_pass ? c->windows - first : per_pass;
        for (int64_t i = 0; i < count; i++)
            w->windows[i] = pe_text_window(c->text, c->L, c->windows, first + i);
        const pe_batch batch  = {.windows = w->windows, .B = count, .length = length};
        posenc_status  status = pe_model_losses(w->model, w->losses, &batch, err);
        for (int64_t i = 0; !status && i < count * length; i++)
            result->window_loss[first * length + i] = (float)w->losses[i];
        if (!status)
            status = pass(w, c, progress, result, UNIT, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* Reads pieces first .. first + count - 1 of one length and adds up the losses of their hidden bytes, by window.
   Pieces lie in the order of the windows, so hidden bytes are found by position alone. */
static posenc_status read_pieces(work *w, const pe_run_config *c, int64_t length, int64_t first,
                                 int64_t count, posenc_error *err)
{
    const int64_t  per_window = REACH * c->L / length;
    const pe_batch batch      = {
             .windows = w->windows, .hidden = w->hidden + first * length, .B = count, .length = length};
    for (int64_t i = 0; i < count; i++)
        w->windows[i] = pe_text_window(c->text, c->L, c->windows, (first + i) / per_window) +
                        (first + i) % per_window * length;
    const posenc_status status = pe_model_losses(w->model, w->losses, &batch, err);
    for (int64_t i = 0; !status && i < count * length; i++)
        if (batch.hidden[i])
            w->sums[(first + i / length) / per_window] += w->losses[i];
    return status;
}

/* Column p of every window from `begin` to before `end` receives the mean over its hidden bytes. */
static void write_means(pe_run_result *result, const work *w, const pe_run_config *c, int64_t begin,
                        int64_t end)
{
    for (int64_t i = 0; i < c->windows; i++)
        for (int64_t p = begin; p < end; p++)
            result->window_loss[i * REACH * c->L + p] = (float)(w->sums[i] / (double)w->counts[i]);
}

/* The same for all lengths: which bytes of the held-out windows are hidden, and how many of each. */
static void hide_windows(work *w, const pe_run_config *c)
{
    const int64_t length = REACH * c->L;
    for (int64_t i = 0; i < c->windows; i++) {
        pe_text_hide(w->hidden + i * length, length, HELD_OUT_SEED, "hidden.held-out", i * length);
        w->counts[i] = 0;
        for (int64_t p = 0; p < length; p++)
            w->counts[i] += w->hidden[i * length + p];
    }
}

/* Reads the windows in pieces of one length, but for the calls that a checkpoint has done already. */
static posenc_status evaluate_length(work *w, const pe_run_config *c, int l, int64_t done,
                                     pe_run_progress *progress, pe_run_result *result, posenc_error *err)
{
    const int64_t length = piece_length(c, l), all = piece_count(c, l), most = pieces_per_call(c, l);
    if (done == 0)
        memset(w->sums, 0, (size_t)c->windows * sizeof *w->sums);
    for (int64_t first = done * most; first < all; first += most) {
        const int64_t count  = all - first < most ? all - first : most;
        posenc_status status = read_pieces(w, c, length, first, count, err);
        if (!status && first + count == all)
            write_means(result, w, c, l ? piece_length(c, l - 1) : 0, length);
        if (!status)
            status = pass(w, c, progress, result, UNIT, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

static posenc_status evaluate_bidirectional(work *w, const pe_run_config *c, pe_run_progress *progress,
                                            pe_run_result *result, posenc_error *err)
{
    const int64_t done  = w->marks[UNIT];
    int64_t       units = 0;
    hide_windows(w, c);
    for (int l = 0; l < LENGTHS; l++) {
        const int64_t       before = larger(done - units, 0);
        const posenc_status status = evaluate_length(w, c, l, before, progress, result, err);
        if (status)
            return status;
        units += calls(piece_count(c, l), pieces_per_call(c, l));
    }
    return POSENC_OK;
}

static posenc_status evaluate(work *w, const pe_run_config *c, pe_run_progress *progress,
                              pe_run_result *result, posenc_error *err)
{
    w->since = pe_clock() - w->measures[EVAL_SECONDS];
    return c->bidirectional ? evaluate_bidirectional(w, c, progress, result, err)
                            : evaluate_causal(w, c, progress, result, err);
}

/* ---------------------------------------------------------------- what follows -------------- */

/* What the trained model does, where that was asked for. */
static posenc_status measure_trained(work *w, const pe_run_config *c, pe_run_result *result,
                                     posenc_error *err)
{
    const int     is_wanted = c->measures && !c->bidirectional;
    const double  since     = pe_clock();
    posenc_status status    = is_wanted ? pe_trained_measure(result->trained, w->model, c, err) : POSENC_OK;
    w->measures[EVAL_SECONDS] += pe_clock() - since;
    return status;
}

/* One unit of the sequel; a run that is told to stop writes a checkpoint first, from which it does that unit again. */
static posenc_status follow_on(work *w, const pe_run_config *c, pe_run_progress *progress,
                               pe_run_result *result, posenc_error *err)
{
    posenc_status status      = c->sequel->unit(c->sequel->self, c, w->model, w->marks[SEQUEL], progress,
                                                result->sequel, &result->cancelled, err);
    w->measures[EVAL_SECONDS] = pe_clock() - w->since;
    if (status && !result->cancelled)
        return status;
    w->marks[SEQUEL] += !status;
    if (c->checkpoint && (status || pe_clock() - w->kept >= c->checkpoint_seconds)) {
        const posenc_status kept = keep(w, c, result, err);
        return kept ? kept : status ? pe_run_cancelled(&result->cancelled, err) : POSENC_OK;
    }
    return status;
}

static posenc_status follow(work *w, const pe_run_config *c, pe_run_progress *progress, pe_run_result *result,
                            posenc_error *err)
{
    posenc_status status = POSENC_OK;
    w->since             = pe_clock() - w->measures[EVAL_SECONDS];
    while (c->sequel && w->marks[SEQUEL] < c->sequel->units && !status)
        status = follow_on(w, c, progress, result, err);
    return status;
}

/* ---------------------------------------------------------------- tokens and positions ------ */

static posenc_status measure_cosine(double *cosine, const work *w, const pe_run_config *c, posenc_error *err)
{
    int64_t counts[PE_BYTES] = {0};
    double  weight[PE_BYTES];
    for (int64_t i = 0; i < c->text->train_size; i++)
        counts[c->text->bytes[i]]++;
    for (int i = 0; i < PE_BYTES; i++)
        weight[i] = (double)counts[i] / (double)c->text->train_size;
    return pe_model_cosine(w->model, cosine, weight, err);
}

/* ---------------------------------------------------------------- results ------------------- */

/* An array of n NaNs: what was not measured must not look like a number. */
static float *unmeasured_create(int64_t n)
{
    float *a = malloc((size_t)n * sizeof *a);
    for (int64_t i = 0; a && i < n; i++)
        a[i] = NAN;
    return a;
}

static posenc_status result_create(pe_run_result *result, const pe_run_config *c, const pe_model *m,
                                   posenc_error *err)
{
    result->train_loss          = unmeasured_create(c->steps);
    result->window_loss         = unmeasured_create(c->windows * REACH * c->L);
    result->trained             = unmeasured_create(pe_trained_count(c));
    result->sequel              = c->sequel ? unmeasured_create(c->sequel->count) : NULL;
    result->params              = calloc((size_t)(c->layers * m->param_count) + 1, sizeof *result->params);
    result->parameters          = pe_model_parameters(m);
    result->encoding_parameters = pe_model_encoding_parameters(m);
    result->cosine_before = result->cosine_after = NAN;
    if (!result->train_loss || !result->window_loss || !result->params || !result->trained ||
        (c->sequel && !result->sequel))
        return pe_train_fail(err, POSENC_MEMORY, "run: no memory for the losses of %lld windows",
                             (long long)c->windows);
    return POSENC_OK;
}

static int copy_create(pe_run_param *to, const char *name, const posenc_tensor *from)
{
    size_t n = 1;
    for (int32_t a = 0; a < from->ndim; a++)
        n *= (size_t)from->shape[a];
    to->tensor      = *from;
    to->tensor.data = malloc(n * sizeof(float) + 1);
    to->name        = malloc(strlen(name) + 1);
    if (!to->tensor.data || !to->name)
        return 0;
    memcpy(to->tensor.data, from->data, n * sizeof(float));
    strcpy(to->name, name);
    return 1;
}

static posenc_status params_create(pe_run_result *result, const pe_model *m, posenc_error *err)
{
    const int64_t n = m->config.layers * m->param_count;
    for (int64_t i = 0; i < n; i++) {
        const char *name = posenc_param_name(m->encoding, (int)(i % m->param_count));
        result->param_count++;
        if (!copy_create(&result->params[i], name, &m->params[i]))
            return pe_train_fail(err, POSENC_MEMORY,
                                 "run: no memory for a copy of the encoding's parameters");
    }
    return POSENC_OK;
}

/* Before the first step; a run that goes on has it from its checkpoint. */
static posenc_status measure_first(work *w, const pe_run_config *c, posenc_error *err)
{
    return w->marks[STEP] ? POSENC_OK : measure_cosine(&w->measures[COSINE], w, c, err);
}

static void copy_measures(pe_run_result *result, const work *w)
{
    result->cosine_before     = w->measures[COSINE];
    result->train_seconds     = w->measures[TRAIN_SECONDS];
    result->eval_seconds      = w->measures[EVAL_SECONDS];
    result->tokens_per_second = w->measures[RATE];
}

posenc_status pe_run(const pe_run_config *config, pe_run_progress *progress, pe_run_result *result,
                     posenc_error *err)
{
    work w               = {.measures[COSINE] = NAN};
    *result              = (pe_run_result){0};
    posenc_status status = check_numbers(config, err);
    if (!status)
        status = check_text(config, err);
    if (!status)
        status = work_create(&w, config, err);
    if (!status)
        status = result_create(result, config, w.model, err);
    if (!status)
        status = go_on(&w, config, progress, result, err);
    if (!status)
        status = measure_first(&w, config, err);
    if (!status)
        status = train(&w, config, progress, result, err);
    if (!status && !result->diverged)
        status = measure_cosine(&result->cosine_after, &w, config, err);
    if (!status && !result->diverged)
        status = evaluate(&w, config, progress, result, err);
    if (!status && !result->diverged)
        status = measure_trained(&w, config, result, err);
    if (!status && !result->diverged)
        status = follow(&w, config, progress, result, err);
    if (!status)
        status = params_create(result, w.model, err);
    copy_measures(result, &w);
    work_free(&w);
    return status;
}

void pe_run_result_free(pe_run_result *result)
{
    if (!result)
        return;
    for (int i = 0; i < result->param_count; i++) {
        free(result->params[i].name);
        free(result->params[i].tensor.data);
    }
    free(result->params);
    free(result->train_loss);
    free(result->window_loss);
    free(result->trained);
    free(result->sequel);
    *result = (pe_run_result){0};
}
