/* SPDX-License-Identifier: MIT */
/*
 * preset.h: what `compare` trains when nothing else is said
 */
#ifndef PE_TRAIN_PRESET_H
#define PE_TRAIN_PRESET_H

#include <posenc/posenc.h>
#include <stddef.h>
#include <stdint.h>

enum { PE_MOST_TASKS = 16 };

/* A task (task.h) that a preset trains on, and how long. */
typedef struct pe_preset_task {
    const char *name;
    int64_t     steps, seeds;
} pe_preset_task;

typedef struct pe_preset {
    const char *name, *summary;
    const char *encodings;      /* SPECs, separated by commas */
    const char *grid_encodings; /* further ones, for tasks on a grid alone; NULL: none */
    int64_t     steps, seeds, L, d_model, layers, heads, batch, warmup, windows;
    double      learning_rate, weight_decay, clip;
    /* Tasks: those of a run without another word, and what all of them have in common. */
    pe_preset_task tasks[PE_MOST_TASKS];               /* ends with {0} */
    int64_t        task_layers, task_batch, sequences; /* sequences: tested, of each length */
    int            longest;                            /* tested length: PE_TASK_4 ... */
    const char    *extension;  /* how much is extended: "none", "brief", "full"; NULL: "none" */
    int64_t        tune_steps; /* of a tuning there */
    int            claims;     /* 1: what introductions say is measured too */
} pe_preset;

/* The preset of that name, or NULL; number `index`, or NULL beyond the last. */
const pe_preset *pe_preset_find(const char *name);
const pe_preset *pe_preset_at(int index);

#endif
