/* SPDX-License-Identifier: MIT */
/*
 * extension_run.c: a trained model, read further in one way after the other
 *
 * A unit is one way at one factor f. It makes a model like the trained one except for its positions, gives it
 * the trained weights, reads the held-out windows of 16 L, and, if it is to be tuned, trains it at f L for
 * some steps and reads them again. The trained model itself stays as it is, so units depend on nothing else,
 * and a run that was killed resumes with the unit that it was in.
 *
 * Windows    One causal pass over 16 L holds the loss at every shorter length. Not where frequencies follow
 *            the length of the input (dynamic): there a pass over 16 L would read position 0 with the
 *            frequencies of 16 L, so each bucket is read in inputs that end where it does.
 * Tuning     Batches have as many bytes as in training, in fewer and longer windows, from the steps that
 *            would follow the last one. The optimiser starts anew; the rate rises over a tenth of the steps
 *            to a quarter of training's peak and falls along a half cosine. All weights are trained, the
 *            extended table too.
 * At L       DroPE drops the rotation and goes on at L; one tuning serves every f, and what it was before
 *            that nobody would read. The same steps with the rotation are its control.
 * Same       A way that is the same for every f is read once and copied.
 */
#include "train/jobs/extension.h"

#include "train/model/optimiser.h"
#include "base/status.h"
#include "train/model/model.h"
#include "train/run/run.h"

#include <stdlib.h>
#include <string.h>

#define PASS 0.6 /* of a step, by the multiplications of both at L = 64 */

static const pe_way *way_of(const pe_extension_plan *plan, int64_t unit)
{
    return &pe_ways[plan->ways[unit / PE_FACTORS]];
}

/* Is that unit's way tuned at its factor? */
static int is_tuned(const pe_extension_plan *plan, int64_t unit)
{
    const int     factor_index = (int)(unit % PE_FACTORS);
    const pe_way *way          = way_of(plan, unit);
    if (way->is_untuned)
        return 0;
    if (plan->extend == PE_EXTENT_FULL && !way->stays_at_L)
        return 1;
    return plan->extend != PE_EXTENT_NONE && factor_index == 0;
}

int64_t pe_extension_offset(const pe_extension_plan *plan, int way, int factor_index, int tuning, int bucket)
{
    return (((int64_t)(way * PE_FACTORS + factor_index) * PE_TUNINGS + tuning) * PE_FAR_BUCKETS + bucket) *
           plan->windows;
}

/* Is it as it was at the first factor, whatever is still to be tuned? */
static int is_copy(const pe_extension_plan *plan, int64_t unit)
{
    return unit % PE_FACTORS && (way_of(plan, unit)->ignores_factor || way_of(plan, unit)->stays_at_L);
}

/* Is it read as it is, before it is tuned? */
static int is_read(const pe_extension_plan *plan, int64_t unit)
{
    return !is_copy(plan, unit) && !way_of(plan, unit)->stays_at_L;
}

/* ---------------------------------------------------------------- one unit ------------------ */

typedef struct unit {
    const pe_extension_plan *plan;
    const pe_run_config     *config;
    const pe_model          *trained;
    const pe_way            *way;
    int                      number, factor_index; /* of the way in its plan; of pe_way_factor */
    int64_t                  stretch;
    pe_run_progress         *progress;
    float                   *numbers;
    int                     *cancelled;

    pe_model        *model;
    const uint16_t **windows;
    double          *losses;
} unit;

/* How many L a window of its tuning has. */
static int64_t stretch_of(const pe_way *way, int factor_index)
{
    return way->stays_at_L ? 1 : pe_way_factor(factor_index);
}

/* Windows of such a batch: as many bytes as in training. */
static int64_t batch_of(const pe_extension_plan *p, int64_t stretch)
{
    const int64_t batch = p->batch / stretch;
    return batch > 1 ? batch : 1;
}

static int64_t passes_of(const pe_extension_plan *p, int factor_index, const pe_way *way)
{
    const int64_t stretch = stretch_of(way, factor_index), fit = batch_of(p, stretch) * stretch / PE_FURTHEST,
                  per_pass = fit > 1 ? fit : 1, once = (p->windows + per_pass - 1) / per_pass;
    return way->follows_length ? PE_FAR_BUCKETS * once : once;
}

static int64_t work_of(const void *self, int64_t number)
{
    const pe_extension_plan *p      = self;
    const int64_t            passes = passes_of(p, (int)(number % PE_FACTORS), way_of(p, number));
    return (is_read(p, number) ? passes : 0) + (is_tuned(p, number) ? p->steps + passes : 0);
}

/* A pass has as many bytes as a step; it goes forwards only, but through longer windows. */
static double steps_of(const void *self, int64_t number)
{
    const pe_extension_plan *p      = self;
    const int64_t            tuning = is_tuned(p, number) ? p->steps : 0;
    return (double)tuning + PASS * (double)(work_of(self, number) - tuning);
}

static posenc_status count_unit(unit *u, posenc_error *err)
{
    return pe_run_advance(u->progress) ? pe_run_cancelled(u->cancelled, err) : POSENC_OK;
}

/* ---------------------------------------------------------------- the model ----------------- */

static posenc_status model_create(unit *u, posenc_error *err)
{
    char                spec[PE_LONGEST_SPEC];
    const int64_t       f = pe_way_factor(u->factor_index), L = u->config->L;
    pe_model_config     config = pe_run_model_config(u->config);
    const posenc_dims   dims   = pe_model_dims(&config, 1, f * L);
    const posenc_status status = pe_way_spec(spec, u->way, f, &dims, err);
    config.spec                = spec;
    config.norms_heads         = u->way->norms_heads;
    config.L                   = u->stretch * L;
    config.longest             = PE_FURTHEST * L;
    config.batch               = batch_of(u->plan, u->stretch);
    return status ? status : pe_model_create(&u->model, &config, err);
}

/* The rows of a table that another table takes over: as the way makes them, or the first L as they are. */
static posenc_status copy_rows(unit *u, float *to, const float *from, posenc_error *err)
{
    const int64_t L = u->config->L, width = u->trained->row_width, f = pe_way_factor(u->factor_index);
    const int64_t count = u->way->ignores_factor ? PE_FURTHEST * L : f * L;
    if (u->way->encoding)
        return pe_way_rows(to, count, u->way, f, from, L, width, err);
    memcpy(to, from, (size_t)(L * width) * sizeof *to);
    return POSENC_OK;
}

/* Tensors have the same names in both models; the one that has another size is the table. */
static posenc_status copy_weights(unit *u, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < u->model->weight_count && !status; i++) {
        const pe_weight *to = &u->model->weights[i], *from = &u->trained->weights[i];
        float           *there = (float *)u->model->theta + to->offset;
        const float     *here  = (const float *)u->trained->theta + from->offset;
        if (to->count == from->count)
            memcpy(there, here, (size_t)to->count * sizeof *there);
        else
            status = copy_rows(u, there, here, err);
    }
    return status;
}

static posenc_status unit_create(unit *u, posenc_error *err)
{
    posenc_status status = model_create(u, err);
    if (!status)
        status = copy_weights(u, err);
    if (status)
        return status;
    u->windows = malloc((size_t)pe_model_rows(u->model) * sizeof *u->windows);
    u->losses  = malloc((size_t)pe_model_tokens(u->model) * sizeof *u->losses);
    return u->windows && u->losses
               ? POSENC_OK
               : pe_fail(err, POSENC_ERROR_MEMORY, "extension: not enough memory for %s", u->way->name);
}

/* ---------------------------------------------------------------- reading ------------------- */

static float *losses_at(const unit *u, int tuning, int bucket)
{
    return u->numbers + pe_extension_offset(u->plan, u->number, u->factor_index, tuning, bucket);
}

/* to[w] = mean loss of one window over a bucket; losses: of `count` windows of so many bytes, the first
   number `first`. */
static void write_bucket(const unit *u, int tuning, int bucket, int64_t first, const pe_batch *batch)
{
    const int64_t from = pe_stats_bucket_edge(u->config->L, bucket),
                  end  = pe_stats_bucket_edge(u->config->L, bucket + 1);
    for (int64_t b = 0; b < batch->B; b++) {
        double sum = 0;
        for (int64_t p = from; p < end; p++)
            sum += u->losses[b * batch->length + p];
        losses_at(u, tuning, bucket)[first + b] = (float)(sum / (double)(end - from));
    }
}

/* Reads `length` bytes of every window, for the buckets first .. end - 1. */
static posenc_status read_length(unit *u, int tuning, int64_t length, int first, int end, posenc_error *err)
{
    const int64_t per_pass = u->model->long_batch, all = u->plan->windows;
    posenc_status status = POSENC_OK;
    for (int64_t w = 0; w < all && !status; w += per_pass) {
        const pe_batch batch = {.windows = u->windows,
                                .B       = all - w < per_pass ? all - w : per_pass,
                                .length  = length};
        for (int64_t b = 0; b < batch.B; b++)
            u->windows[b] = pe_text_window(u->config->text, PE_FURTHEST * u->config->L, all, w + b);
        status = pe_model_losses(u->model, u->losses, &batch, err);
        for (int k = first; k < end && !status; k++)
            write_bucket(u, tuning, k, w, &batch);
        if (!status)
            status = count_unit(u, err);
    }
    return status;
}

static posenc_status read_all(unit *u, int tuning, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (!(u->way->follows_length))
        return read_length(u, tuning, PE_FURTHEST * u->config->L, 0, PE_FAR_BUCKETS, err);
    for (int k = 0; k < PE_FAR_BUCKETS && !status; k++)
        status = read_length(u, tuning, pe_stats_bucket_edge(u->config->L, k + 1), k, k + 1, err);
    return status;
}

/* ---------------------------------------------------------------- tuning -------------------- */

static posenc_status tune_step(unit *u, pe_optimiser *optimiser, int64_t step, int *finite, posenc_error *err)
{
    double               loss;
    const pe_run_config *c      = u->config;
    const int64_t        length = u->stretch * c->L, rows = u->model->config.batch;
    const pe_descent     descent = {u->plan->steps, u->plan->warmup, u->plan->learning_rate, c->weight_decay,
                                    c->clip};
    const pe_batch       batch   = {.windows = u->windows, .B = rows, .length = length};
    /* draws that training did not use: number (step * rows + r) from c->steps * c->batch on */
    pe_text_batch(u->windows, c->text, length, rows, c->seed, (c->steps * c->batch + rows - 1) / rows + step);
    return pe_optimiser_descend(u->model, optimiser, &batch, &descent, step, &loss, finite, err);
}

/* *finite = 0 if it diverged. */
static posenc_status tune_model(unit *u, int *finite, posenc_error *err)
{
    pe_optimiser *optimiser;
    *finite = 1;
    posenc_status status =
        pe_optimiser_create(&optimiser, u->model->weights, u->model->weight_count, u->model->kernels, err);
    for (int64_t step = 0; step < u->plan->steps && !status && *finite; step++) {
        status = tune_step(u, optimiser, step, finite, err);
        if (!status)
            status = count_unit(u, err);
    }
    pe_optimiser_free(optimiser);
    return status;
}

static posenc_status run_unit(const void *self, const pe_run_config *config, pe_model *trained,
                              int64_t number, pe_run_progress *progress, float *numbers, int *cancelled,
                              posenc_error *err)
{
    const pe_extension_plan *p            = self;
    const pe_way            *way          = way_of(p, number);
    const int                factor_index = (int)(number % PE_FACTORS);
    unit                     u            = {.plan         = p,
                                             .config       = config,
                                             .trained      = trained,
                                             .way          = way,
                                             .number       = (int)(number / PE_FACTORS),
                                             .factor_index = factor_index,
                                             .stretch      = stretch_of(way, factor_index),
                                             .progress     = progress,
                                             .numbers      = numbers,
                                             .cancelled    = cancelled};
    const int                tunes = is_tuned(p, number), reads = is_read(p, number);
    const int                copied = way->stays_at_L ? PE_TUNED : PE_UNTUNED;
    int                      finite = 1;
    posenc_status            status = POSENC_OK;
    if (is_copy(p, number))
        memcpy(losses_at(&u, copied, 0), numbers + pe_extension_offset(p, u.number, 0, copied, 0),
               (size_t)(PE_FAR_BUCKETS * p->windows) * sizeof *numbers);
    if (reads || tunes)
        status = unit_create(&u, err);
    if (!status && reads)
        status = read_all(&u, PE_UNTUNED, err);
    if (!status && tunes)
        status = tune_model(&u, &finite, err);
    if (!status && tunes && finite) /* a loss that is not leaves its numbers NaN: a finding, not an error */
        status = read_all(&u, PE_TUNED, err);
    pe_model_free(u.model);
    free(u.windows);
    free(u.losses);
    return status;
}

pe_run_followup pe_extension_followup(pe_extension_plan *plan)
{
    snprintf(plan->name, sizeof plan->name,
             "extension %s in %d ways, %lld windows, %lld steps of %g after %lld",
             pe_preset_extent_name(plan->extend), plan->way_count, (long long)plan->windows,
             (long long)plan->steps, plan->learning_rate, (long long)plan->warmup);
    return (pe_run_followup){.name  = plan->name,
                             .self  = plan,
                             .units = plan->way_count * PE_FACTORS,
                             .count = pe_extension_offset(plan, plan->way_count, 0, 0, 0),
                             .work  = work_of,
                             .unit  = run_unit,
                             .steps = steps_of};
}
