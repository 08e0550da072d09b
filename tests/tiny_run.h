/* SPDX-License-Identifier: MIT */
/*
 * tiny_run.h: one run that trains in a moment, for tests; include it behind cmocka.h
 */
#ifndef TINY_RUN_H
#define TINY_RUN_H

#include "train/run/run.h"

#include <string.h>

enum { TINY_RUN_LENGTH = 16, TINY_RUN_BYTES = 4000, TINY_STEPS = 12, TINY_WINDOWS = 3 };

static uint16_t      tiny_run_bytes[TINY_RUN_BYTES];
static const pe_text tiny_run_text = {.ids = tiny_run_bytes, .size = TINY_RUN_BYTES, .train_size = 3000};

static inline int tiny_run_write_text(void **state)
{
    const char *sentence = "a stitch in time saves nine; ";
    (void)state;
    for (size_t i = 0; i < TINY_RUN_BYTES; i++)
        tiny_run_bytes[i] = (unsigned char)sentence[i % strlen(sentence)];
    return 0;
}

static inline pe_run_config tiny_run(const char *spec)
{
    return (pe_run_config){.spec          = spec,
                           .L             = TINY_RUN_LENGTH,
                           .reach         = 8,
                           .d_model       = 16,
                           .layers        = 2,
                           .heads         = 2,
                           .batch         = 8,
                           .steps         = TINY_STEPS,
                           .warmup        = 5,
                           .learning_rate = 0.024,
                           .weight_decay  = 0.01,
                           .clip          = 1,
                           .windows       = TINY_WINDOWS,
                           .seed          = 1,
                           .text          = &tiny_run_text};
}

static inline int tiny_same_bits(const void *a, const void *b, size_t n)
{
    return !memcmp(a, b, n);
}

/* All numbers of two results but the times, NaN included. */
static inline void tiny_assert_same(const pe_run_result *a, const pe_run_result *b)
{
    assert_memory_equal(a->train_loss, b->train_loss, TINY_STEPS * sizeof(float));
    assert_memory_equal(a->window_loss, b->window_loss, TINY_WINDOWS * 8 * TINY_RUN_LENGTH * sizeof(float));
    assert_true(a->diverged == b->diverged && a->parameters == b->parameters &&
                a->encoding_parameters == b->encoding_parameters);
    assert_true(tiny_same_bits(&a->cosine_before, &b->cosine_before, sizeof(double)) &&
                tiny_same_bits(&a->cosine_after, &b->cosine_after, sizeof(double)));
    assert_int_equal(a->param_count, b->param_count);
    for (int i = 0; i < a->param_count; i++) {
        const posenc_tensor *x = &a->params[i], *y = &b->params[i];
        size_t               n = sizeof(float);
        assert_int_equal(x->ndim, y->ndim);
        for (int32_t k = 0; k < x->ndim; k++) {
            assert_int_equal(x->shape[k], y->shape[k]);
            n *= (size_t)x->shape[k];
        }
        assert_memory_equal(x->data, y->data, n);
    }
}

#endif
