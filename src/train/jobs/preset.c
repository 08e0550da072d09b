/* SPDX-License-Identifier: MIT */
/*
 * preset.c: the presets of `posenc compare`: data, compiled in: the tool finds them wherever it is
 *
 * Numbers are those of docs/experiments.md; step counts are fixed and never adapted to the clock, so that the
 * same command gives the same table on any machine. `default` has the encodings of `quick` and three more;
 * `full` all encodings that a causal model can use, and combinations; `huge` a larger model. Tasks are {name,
 * steps, seeds} (task.h); extension: extension.h. Nobody need wait for `huge` on one machine.
 */
#include "train/jobs/preset.h"

#include "train/tasks/task.h"

#include <string.h>

// clang-format off
#define SMALL_MODEL \
    .L = 64, .d_model = 64, .layers = 3, .heads = 4, .batch = 32, .warmup = 100, .learning_rate = 2e-3, \
    .weight_decay = 0.01, .clip = 1, .windows = 96, .tune_steps = 100, .claims = 1, \
    SMALL_TASKS(512, PE_TASK_4)
#define SMALL_TASKS(n, most) .task_layers = 2, .task_batch = 64, .sequences = n, .longest = most
#define CAUSAL \
    "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl,kerple_log,fire,shaw,cope,kerple_power,sandwich," \
    "huang_m4,xlnet,deberta,tupe,urpe,xpos,relative_table,hierarchical,floater,complex_order"
#define COMBINATIONS "rope+alibi,rope+t5,sinusoidal+alibi,rope+urpe,kerple_log+urpe"
#define GRIDS \
    "sinusoidal2d,sinusoidal2d[preset=wh_interleaved],sinusoidal2d[preset=mae]," \
    "sinusoidal2d[preset=mocov3],sinusoidal2d[preset=timm],sinusoidal2d[preset=big_vision]," \
    "sinusoidal_nd,absolute_distance,swin,swin_v2"

static const pe_preset presets[] = {
    {.name = "quick", .summary = "seven encodings, one seed, 500 steps: about a minute on two cores",
     .encodings = "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl", .steps = 500, .seeds = 1,
     .tasks = {{"posid", 200, 1}, {"order", 300, 1}, {"shift", 200, 1}}, SMALL_MODEL},
    {.name = "default", .summary = "ten encodings, one seed, 500 steps: some two minutes on two cores",
     .encodings = "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl,kerple_log,fire,shaw",
     .steps = 500, .seeds = 1,
     .tasks = {{"posid", 400, 1}, {"order", 600, 1}, {"shift", 300, 2}, {"needle", 300, 2}},
     .extension = "brief", SMALL_MODEL},
    {.name = "full",
     .summary = "all encodings and combinations, three seeds, 2000 steps: an hour and a half on two cores",
     .encodings = CAUSAL "," COMBINATIONS, .grid_encodings = GRIDS, .steps = 2000, .seeds = 3,
     .tasks = {{"posid", 1500, 3}, {"order", 1500, 3}, {"shift", 1500, 3}, {"needle", 1500, 3},
               {"copy", 1500, 3}, {"reverse", 1500, 3}, {"sort", 1500, 3}, {"count", 1500, 3},
               {"parity", 1500, 3}, {"grid", 1500, 3}},
     .extension = "full", SMALL_MODEL},
    {.name = "huge", .summary = "the same with a larger model at L = 256, 4000 steps and three tasks more: "
                "a night on many machines",
     .encodings = CAUSAL "," COMBINATIONS, .grid_encodings = GRIDS, .steps = 4000, .seeds = 3, .L = 256,
     .d_model = 128, .layers = 4, .heads = 4, .batch = 32, .warmup = 100, .learning_rate = 1e-3,
     .weight_decay = 0.01, .clip = 1, .windows = 96, .extension = "full", .tune_steps = 100, .claims = 1,
     .tasks = {{"posid", 4000, 3}, {"order", 4000, 3}, {"shift", 4000, 3}, {"needle", 4000, 3},
               {"copy", 4000, 3}, {"reverse", 4000, 3}, {"sort", 4000, 3}, {"count", 4000, 3},
               {"parity", 4000, 3}, {"grid", 4000, 3}, {"addition", 4000, 3}, {"summation", 4000, 3},
               {"lego", 4000, 3}},
     SMALL_TASKS(1024, PE_TASK_8)},
};
// clang-format on

enum { PRESETS = sizeof presets / sizeof *presets };

const pe_preset *pe_preset_at(int index)
{
    return index >= 0 && index < PRESETS ? &presets[index] : NULL;
}

const pe_preset *pe_preset_find(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (!strcmp(presets[i].name, name))
            return &presets[i];
    return NULL;
}
