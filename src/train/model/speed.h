/* SPDX-License-Identifier: MIT */
/*
 * speed.h: steps of training for whoever measures them: the model, its optimiser and a batch of random bytes
 *
 * A step is what a run of `compare` does again and again: gradient and update (optimiser.h), on the thread
 * that asks for it.
 */
#ifndef PE_TRAIN_SPEED_H
#define PE_TRAIN_SPEED_H

#include <posenc/posenc.h>
#include <stdint.h>

typedef struct pe_speed_shape {
    int64_t d_model, layers, heads, L, batch;
} pe_speed_shape;

typedef struct pe_speed pe_speed;

/* Errors: those of the model; MEMORY. */
posenc_status pe_speed_create(pe_speed **s, const char *spec, const pe_speed_shape *shape, uint64_t seed,
                              posenc_error *err);
void          pe_speed_free(pe_speed *s); /* NULL is fine */

/* One step on the same batch. */
void pe_speed_step(pe_speed *s);

#endif
