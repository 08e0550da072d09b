/* SPDX-License-Identifier: MIT */
/*
 * specs.h: what the tests of memory run: every encoding of the registry that acts in attention, then
 * combinations
 *
 * Settings are those of a small model whose windows of eight times its training length are as long as the
 * test's, so that tables reach all distances. An encoding with a parameter of a number per pair is left out:
 * the caller's own matrix is quadratic whatever attention does with it.
 */
#ifndef TESTS_MEMORY_SPECS_H
#define TESTS_MEMORY_SPECS_H

#include <posenc/registry.h>
#include <stdio.h>
#include <string.h>

enum { SPEC_TEXT = 1024, SPEC_REACH = 8 };

/* Places differ, so that every pair of machines meets: rotation, bias, vectors, gate. */
static const char *const combinations[] = {"rope+alibi", "rope+t5", "rope+urpe", "kerple_log+urpe",
                                           "xpos+shaw"};

enum { COMBINATIONS = sizeof combinations / sizeof *combinations };

static inline int is_quadratic(const posenc_encoding_info *info)
{
    for (int p = 0; p < info->param_count; p++)
        if (strstr(info->params[p].shape, "Lq,Lk"))
            return 1;
    return 0;
}

/* Appends one name with its settings. Returns 0 if they do not fit. */
static inline int append_part(char *spec, const char *name, int64_t longest)
{
    const posenc_dims model = {
        .B = 1, .H = 1, .Lq = longest, .Lk = longest, .D = 64, .L = longest / SPEC_REACH};
    char         settings[256];
    const size_t used = strlen(spec);
    if (posenc_small_model(name, &model, POSENC_MASK_CAUSAL, settings, sizeof settings, NULL))
        return 0;
    return snprintf(spec + used, SPEC_TEXT - used, settings[0] ? "%s%s[%s]" : "%s%s", used ? "+" : "", name,
                    settings) < SPEC_TEXT - (int)used;
}

/* Number i of the list for attention up to `longest`. Returns 0 beyond the end; spec is empty where entry i
   of the registry does not belong here. */
static inline int spec_at(char spec[SPEC_TEXT], int i, int64_t longest)
{
    const int count = posenc_encoding_count();
    char      names[128];
    spec[0] = 0;
    if (i >= count + COMBINATIONS)
        return 0;
    if (i < count) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        return info->place == POSENC_PLACE_INPUT || is_quadratic(info) ||
               append_part(spec, info->name, longest);
    }
    snprintf(names, sizeof names, "%s", combinations[i - count]);
    for (char *name = names, *plus; name; name = plus) {
        plus = strchr(name, '+');
        if (plus)
            *plus++ = 0;
        if (!append_part(spec, name, longest))
            return 0;
    }
    return 1;
}

#endif
