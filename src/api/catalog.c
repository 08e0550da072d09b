/* SPDX-License-Identifier: MIT */
/* catalog.c: what the registry tells about encodings, by name or number: what exists, near misses, settings
   for a small model */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/shared/decimal.h"

int posenc_common_settings(const posenc_setting_info **settings)
{
    if (settings)
        *settings = pe_common.info.settings;
    return pe_common.info.setting_count;
}

int posenc_encoding_count(void)
{
    return pe_encoding_count();
}

const posenc_encoding_info *posenc_encoding_info_at(int index)
{
    const pe_encoding *room = pe_encoding_at(index);
    return room ? &room->info : NULL;
}

const posenc_encoding_info *posenc_encoding_find(const char *name)
{
    const pe_encoding *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    return room ? &room->info : NULL;
}

/* "rotary", "Whisper", "yarn": a word of the title, of the models, of what a setting may be. */
static int is_about(const posenc_encoding_info *info, const char *typed)
{
    int found = pe_settings_has_word(info->title, typed) || pe_settings_has_word(info->models, typed);
    for (int i = 0; i < info->setting_count && !found; i++)
        found =
            !strcmp(info->settings[i].type, "word") && pe_settings_has_word(info->settings[i].range, typed);
    return found;
}

static int distance(const char *typed, const posenc_encoding_info *info)
{
    const int far = pe_settings_distance(typed, info->name);
    return far > PE_SETTINGS_HAS_WORD && is_about(info, typed) ? PE_SETTINGS_HAS_WORD : far;
}

const char *posenc_encoding_nearest(const char *name)
{
    /* nope, number 0, comes last: its models are those whose other layers have an encoding */
    const int                   count = pe_encoding_count();
    const posenc_encoding_info *best  = &pe_encoding_at(1)->info;
    name                              = name ? name : "";
    for (int i = 2; i <= count; i++) {
        const posenc_encoding_info *other = &pe_encoding_at(i % count)->info;
        if (distance(name, other) < distance(name, best))
            best = other;
    }
    return best->name;
}

const char *posenc_place_name(posenc_place place)
{
    static const char *const names[] = {"input", "rotary", "score", "weight"};
    return (size_t)place < POSENC_PLACE_COUNT ? names[place] : "unknown";
}

int posenc_examples(const char *name, const posenc_example **examples)
{
    const pe_encoding    *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    const posenc_example *all  = room ? room->examples : NULL;
    int                   n    = 0;
    while (all && all[n].settings)
        n++;
    if (examples)
        *examples = all;
    return n;
}

/* ---- settings of a small model ---- */

/* A row that is there. */
static const posenc_setting_info *row_of(const posenc_encoding_info *info, const pe_setting_pair *pair)
{
    const int own = pe_settings_index(info->settings, pair->name, pair->name_length);
    return own >= 0
               ? &info->settings[own]
               : &pe_common.info
                      .settings[pe_settings_index(pe_common.info.settings, pair->name, pair->name_length)];
}

/* The fewest digits that read back as the same number: 0.1, not 0.10000000000000001. */
static void print_number(char *text, size_t n, double x)
{
    pe_decimal_shortest(text, n, x, 1, 17, 0);
}

posenc_status posenc_small_model(const char *name, const posenc_dims *dims, int mask, char *buf, size_t n,
                                 posenc_error *err)
{
    const pe_encoding *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    if (!name || !dims || !buf || n == 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "small model: name, dims and buf must not be NULL, nor n 0");
    if (!room)
        return pe_fail(err, POSENC_ERROR_SETTING, "unknown encoding '%.60s'; did you mean '%s'?", name,
                       posenc_encoding_nearest(name));
    const posenc_dims full   = pe_encoding_full_dims(dims);
    const int         future = !(mask & POSENC_MASK_CAUSAL) && room->model_both;
    const char       *at     = future ? room->model_both : room->model ? room->model : "";
    size_t            used   = 0;
    buf[0]                   = '\0';
    for (pe_setting_pair pair; pe_settings_next(&pair, &at, " ");) {
        const posenc_setting_info *row = row_of(&room->info, &pair);
        char                       text[PE_MAX_TEXT];
        pe_value                   value;
        snprintf(text, sizeof text, "%.*s", (int)pair.value_length, pair.value);
        const posenc_status status = pe_settings_resolve(&value, row, text, &full, name, err);
        if (status) {
            buf[0] = '\0';
            return status;
        }
        const int is_number = !strcmp(row->type, "integer") || !strcmp(row->type, "real");
        if (is_number)
            print_number(text, sizeof text, value.real);
        for (int item = 0, length = 0; item < value.count && length < (int)sizeof text; item++)
            length += snprintf(text + length, sizeof text - (size_t)length, "%s%lld", item ? "x" : "",
                               (long long)value.items[item]);
        used += (size_t)snprintf(buf + used, used < n ? n - used : 0, "%s%s=%s", used ? " " : "", row->name,
                                 text);
        if (used >= n) {
            buf[0] = '\0';
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "small model: buf has %zu bytes, too few for the settings of %s", n, name);
        }
    }
    return pe_done(err);
}
