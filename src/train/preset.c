/* SPDX-License-Identifier: MIT */
/* preset.c: what `compare` trains, from a table. Contract: preset.h. */
#include "train/preset.h"

#include "train/task.h"

#include <string.h>

static const pe_preset presets[] = {
#define PRESET(word, ...) {.name = #word, __VA_ARGS__},
#include "train/presets.def"
#undef PRESET
};

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
