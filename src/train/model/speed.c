/* SPDX-License-Identifier: MIT */
/* Steps of training to be measured. Contract: speed.h. */
#include "train/model/speed.h"

#include <stdlib.h>

#include "train/model/optimiser.h"
#include "base/status.h"

struct pe_speed {
    pe_model        *model;
    pe_optimiser    *optimiser;
    uint16_t        *text;
    const uint16_t **windows;
    pe_batch         batch;
    int64_t          step;
};

static posenc_status make_text(pe_speed *s, const pe_speed_shape *shape, uint64_t seed, posenc_error *err)
{
    const int64_t window = shape->L + 1;
    s->text              = malloc((size_t)(shape->batch * window) * sizeof *s->text);
    s->windows           = malloc((size_t)shape->batch * sizeof *s->windows);
    if (!s->text || !s->windows)
        return pe_fail(err, POSENC_ERROR_MEMORY, "speed: not enough memory for a batch");
    for (int64_t i = 0; i < shape->batch * window; i++)
        s->text[i] = (uint16_t)(posenc_random_uniform(seed, "text", (uint64_t)i) * PE_BYTES);
    for (int64_t b = 0; b < shape->batch; b++)
        s->windows[b] = s->text + b * window;
    s->batch = (pe_batch){.windows = s->windows, .B = shape->batch, .length = shape->L};
    return POSENC_OK;
}

posenc_status pe_speed_create(pe_speed **s, const char *spec, const pe_speed_shape *shape, uint64_t seed,
                              posenc_error *err)
{
    const pe_model_config config = {.spec    = spec,
                                    .L       = shape->L,
                                    .d_model = shape->d_model,
                                    .layers  = shape->layers,
                                    .heads   = shape->heads,
                                    .batch   = shape->batch,
                                    .seed    = seed,
                                    .dtype   = POSENC_DTYPE_F32};
    pe_speed             *made   = calloc(1, sizeof *made);
    *s                           = NULL;
    if (!made)
        return pe_fail(err, POSENC_ERROR_MEMORY, "speed: not enough memory for a run");
    posenc_status status = make_text(made, shape, seed, err);
    if (!status)
        status = pe_model_create(&made->model, &config, err);
    if (!status)
        status = pe_optimiser_create(&made->optimiser, made->model->weights, made->model->weight_count,
                                     made->model->kernels, err);
    if (status)
        pe_speed_free(made);
    else
        *s = made;
    return status;
}

void pe_speed_free(pe_speed *s)
{
    if (!s)
        return;
    pe_model_free(s->model);
    pe_optimiser_free(s->optimiser);
    free(s->text);
    free(s->windows);
    free(s);
}

void pe_speed_step(pe_speed *s)
{
    const pe_descent descent = {
        .steps = 1 << 20, .warmup = 100, .learning_rate = 1e-3, .weight_decay = 0.01, .clip = 1};
    posenc_error err;
    double       loss;
    int          finite;
    pe_optimiser_descend(s->model, s->optimiser, &s->batch, &descent, s->step++, &loss, &finite, &err);
}
