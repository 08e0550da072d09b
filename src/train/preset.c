/* SPDX-License-Identifier: MIT */
/*
 * preset.c: presets from their table, specifications from a list
 *
 * A SPEC is text: NAME, NAME[settings], several joined by '+'. The comma that separates SPECs also separates
 * settings within brackets, so a list is cut by depth. What a setting means is the library's affair; here a
 * part is only given the settings that its room recommends for a small model, before its own, because the
 * last one counts.
 */
#include "train/preset.h"

#include "train/fail.h"
#include "train/task.h"

#include <string.h>

enum { LONGEST_NAME = 64, LONGEST_SETTINGS = 1024 };

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

size_t pe_spec_length(const char *text, char end)
{
    size_t n = 0;
    for (int depth = 0; text[n] && (depth > 0 || text[n] != end); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return n;
}

const char *pe_spec_next(char *spec, size_t n, const char *list, posenc_status *status, posenc_error *err)
{
    const size_t length = pe_spec_length(list, ',');
    *status             = POSENC_OK;
    if (length == 0)
        *status = pe_train_fail(err, POSENC_ARGUMENT,
                                "the list of encodings has an empty place; write NAME,NAME,...");
    else if (length >= n)
        *status =
            pe_train_fail(err, POSENC_ARGUMENT,
                          "the encoding \"%.40s...\" has %zu characters; %zu are too many", list, length, n);
    if (*status)
        return NULL;
    memcpy(spec, list, length);
    spec[length] = 0;
    return list[length] ? list + length + 1 : NULL;
}

int pe_spec_append(char *to, size_t n, const char *text, size_t length)
{
    const size_t used = strlen(to);
    if (used + length >= n)
        return 0;
    memcpy(to + used, text, length);
    to[used + length] = 0;
    return 1;
}

static posenc_status complete_part(char *complete, size_t n, const char *part, size_t length,
                                   const posenc_dims *dims, int mask, posenc_error *err)
{
    const char  *bracket     = memchr(part, '[', length);
    const size_t name_length = bracket ? (size_t)(bracket - part) : length;
    const size_t own         = bracket ? length - name_length - 1 : 0; /* with the closing bracket */
    char         name[LONGEST_NAME], settings[LONGEST_SETTINGS];
    snprintf(name, sizeof name, "%.*s", (int)(name_length < sizeof name ? name_length : sizeof name - 1),
             part);
    const posenc_status status = posenc_small_model_for(name, dims, mask, settings, sizeof settings, err);
    if (status)
        return status;
    int fits = pe_spec_append(complete, n, part, name_length);
    if (settings[0] || bracket) {
        fits &=
            pe_spec_append(complete, n, "[", 1) && pe_spec_append(complete, n, settings, strlen(settings));
        fits &= pe_spec_append(complete, n, settings[0] && own > 1 ? " " : "", settings[0] && own > 1);
        fits &= bracket ? pe_spec_append(complete, n, bracket + 1, own) : pe_spec_append(complete, n, "]", 1);
    }
    return fits ? POSENC_OK
                : pe_train_fail(err, POSENC_ARGUMENT, "%s: the settings of this encoding are too long", name);
}

posenc_status pe_spec_complete(char *complete, size_t n, const char *spec, const posenc_dims *dims, int mask,
                               posenc_error *err)
{
    complete[0] = 0;
    for (;;) {
        const size_t        length = pe_spec_length(spec, '+');
        const posenc_status status = complete_part(complete, n, spec, length, dims, mask, err);
        if (status || !spec[length])
            return status;
        if (!pe_spec_append(complete, n, "+", 1))
            return pe_train_fail(err, POSENC_ARGUMENT, "%.40s: this specification is too long", spec);
        spec += length + 1;
    }
}
