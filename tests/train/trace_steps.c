/* SPDX-License-Identifier: MIT */
/*
 * trace_steps.c: trains a small model for some steps and writes down each, for
 * python/tests/torch/test_training.py
 *
 *     trace_steps SPEC STEPS FILE      text: a line per tensor (name offset count rows matrices rate decays
 * trains); FILE: theta before the first step [size] float, the windows' symbols [STEPS, BATCH, L + 1] uint16,
 * the losses [STEPS] double
 *
 * The model, its start, its batches and its recipe are those of `compare`, in small.
 */
#include "train/model/model.h"
#include "train/model/optimiser.h"
#include "train/run/run.h"

#include <stdio.h>
#include <stdlib.h>

enum { L = 32, WIDTH = 32, LAYERS = 2, HEADS = 4, BATCH = 4, TEXT = 8192, SEED = 1, WARMUP = 5 };

static uint16_t symbols[TEXT];

/* Words of a few letters, drawn again and again: something that can be learned. */
static void fill_text(void)
{
    for (int i = 0; i < TEXT; i++) {
        const uint64_t word = (uint64_t)(8 * posenc_random_uniform(SEED, "words", (uint64_t)(i / 6)));
        symbols[i]          = i % 6 ? (uint16_t)(97 + (word * 5 + (uint64_t)i % 6 * 3) % 26) : 32;
    }
}

static int fail(const posenc_error *err)
{
    fprintf(stderr, "trace_steps: %s\n", err->message);
    return 1;
}

static int trace(FILE *to, pe_model *model, pe_optimiser *optimiser, int64_t steps)
{
    const pe_text    text    = {.ids = symbols, .size = TEXT, .train_size = TEXT};
    const pe_descent descent = {steps, WARMUP, 0.01, 0.1, 1};
    const uint16_t  *windows[BATCH];
    double          *losses = calloc((size_t)steps, sizeof *losses);
    posenc_error     err    = {.message = "not enough memory"};
    int              finite = 1;
    if (!losses)
        return fail(&err);
    for (int64_t step = 0; step < steps && finite; step++) {
        pe_text_batch(windows, &text, L, BATCH, SEED, step);
        for (int b = 0; b < BATCH; b++)
            fwrite(windows[b], sizeof *windows[b], L + 1, to);
        const pe_batch batch = {.windows = windows, .B = BATCH, .length = L};
        if (pe_optimiser_descend(model, optimiser, &batch, &descent, step, &losses[step], &finite, &err)) {
            free(losses);
            return fail(&err);
        }
    }
    fwrite(losses, sizeof *losses, (size_t)steps, to);
    free(losses);
    return finite ? 0 : 1;
}

int main(int argc, char **argv)
{
    const pe_model_config config    = {.spec    = argc > 1 ? argv[1] : NULL,
                                       .L       = L,
                                       .d_model = WIDTH,
                                       .layers  = LAYERS,
                                       .heads   = HEADS,
                                       .batch   = BATCH,
                                       .seed    = SEED,
                                       .dtype   = POSENC_DTYPE_F32};
    pe_model             *model     = NULL;
    pe_optimiser         *optimiser = NULL;
    posenc_error          err;
    FILE                 *to = argc == 4 ? fopen(argv[3], "wb") : NULL;
    if (!to) {
        fputs("usage: trace_steps SPEC STEPS FILE\n", stderr);
        return 2;
    }
    fill_text();
    int status =
        pe_model_create(&model, &config, &err) ||
                pe_optimiser_create(&optimiser, model->weights, model->weight_count, model->kernels, &err)
            ? fail(&err)
            : 0;
    for (int i = 0; !status && i < model->weight_count; i++) {
        const pe_weight *w = &model->weights[i];
        printf("%s %lld %lld %lld %d %.17g %d %d\n", w->name, (long long)w->offset, (long long)w->count,
               (long long)w->rows, w->matrices, w->rate, w->decays, w->trains);
    }
    if (!status) {
        printf("size %lld\n", (long long)model->size);
        fwrite(model->theta, sizeof(float), (size_t)model->size, to);
        status = trace(to, model, optimiser, strtoll(argv[2], NULL, 10));
    }
    status |= fclose(to) != 0;
    pe_optimiser_free(optimiser);
    pe_model_free(model);
    return status;
}
