/* SPDX-License-Identifier: MIT */
/* posenc_index_map: the integer maps of engine/score/index.h by name, with settings as text. */
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "engine/score/index.h"

static const posenc_setting_info t5_settings[] = {
    {"num_buckets", "integer", "32", "2..1048576", "buckets of distances, both directions together"},
    {"max_distance", "integer", "128", "2..", "distances beyond share the last bucket"},
    {"bidirectional", "flag", "yes", "yes|no", "keys in the future have buckets of their own"},
    {0},
};

static const posenc_setting_info deberta_settings[] = {
    {"position_buckets", "integer", "256", "4..1048576", "span of the table"},
    {"max_relative_positions", "integer", "512", "2..", "distance of the last bucket"},
    {"clip_first", "flag", "no", "yes|no", "limit the distance before taking logarithms (Microsoft's code)"},
    {0},
};

static posenc_status t5_check(const pe_value *set, posenc_error *err)
{
    const int64_t per = set[0].integer / (set[2].integer ? 2 : 1);
    if (per < 2 || set[1].integer <= per / 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "t5: needs at least 2 buckets per direction, and max_distance above half of them");
    return POSENC_OK;
}

static posenc_status deberta_check(const pe_value *set, posenc_error *err)
{
    if (set[1].integer - 1 <= set[0].integer / 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "deberta: max_relative_positions - 1 must exceed position_buckets / 2");
    return POSENC_OK;
}

static int64_t t5(const pe_value *set, int64_t rel)
{
    return pe_index_t5(rel, set[0].integer, set[1].integer, (int)set[2].integer);
}

static int64_t deberta(const pe_value *set, int64_t rel)
{
    return pe_index_deberta(rel, set[0].integer, set[1].integer, (int)set[2].integer);
}

static const struct {
    const char                *name;
    const posenc_setting_info *settings;
    posenc_status (*check)(const pe_value *set, posenc_error *err);
    int64_t (*map)(const pe_value *set, int64_t rel);
} maps[] = {{"t5", t5_settings, t5_check, t5}, {"deberta", deberta_settings, deberta_check, deberta}};

enum { MAPS = sizeof maps / sizeof *maps };

/* Texts of "a=1 b=2" for the rows of a table. */
static posenc_status read_texts(const posenc_setting_info *table, const char *map, const char *settings,
                                pe_setting_text texts[], posenc_error *err)
{
    pe_setting_pair pair;
    while (settings && pe_settings_next(&pair, &settings, " ,")) {
        const int    row = pair.value ? pe_settings_index(table, pair.name, pair.name_length) : -1;
        const size_t n   = pair.value_length;
        if (row < 0)
            return pe_fail(err, POSENC_ERROR_SETTING, "index map %s has no setting '%.*s'", map,
                           (int)(pair.name_length + (pair.value ? n + 1 : 0)), pair.name);
        if (n >= PE_MAX_TEXT)
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "index map %s: the value of %s has %zu characters; at most %d are possible", map,
                           table[row].name, n, PE_MAX_TEXT - 1);
        snprintf(texts[row].text, PE_MAX_TEXT, "%.*s", (int)n, pair.value);
    }
    return POSENC_OK;
}

static posenc_status run_map(int m, const char *settings, const int64_t *rel, int64_t n, int64_t *out,
                             posenc_error *err)
{
    /* there are no sizes here: a text that names one has the value of 0, not of "later" */
    const posenc_dims none = {0};
    pe_value          set[PE_MAX_SETTINGS];
    pe_setting_text   texts[PE_MAX_SETTINGS] = {{{0}}};
    posenc_status     status = read_texts(maps[m].settings, maps[m].name, settings, texts, err);
    for (int i = 0; !status && maps[m].settings[i].name; i++)
        status = pe_settings_resolve(&set[i], &maps[m].settings[i], texts[i].text, &none, maps[m].name, err);
    if (!status)
        status = maps[m].check(set, err);
    for (int64_t i = 0; !status && i < n; i++)
        out[i] = maps[m].map(set, pe_index_clip(rel[i], -INT64_MAX, INT64_MAX)); /* its sign can be changed */
    return status ? status : pe_done(err);
}

posenc_status posenc_index_map(const char *map, const char *settings, const int64_t *rel, int64_t n,
                               int64_t *out, posenc_error *err)
{
    if (!map || (n > 0 && (!rel || !out)))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "index map: map, rel and out must not be NULL");
    if (n < 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "index map: n is %lld; it must be at least 0",
                       (long long)n);
    const uintptr_t from = (uintptr_t)rel, to = (uintptr_t)out, apart = from > to ? from - to : to - from;
    if (n > 0 && apart && apart / sizeof *rel < (uint64_t)n)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "index map: out overlaps rel; it must be rel, or apart from it");
    for (int m = 0; m < MAPS; m++)
        if (!strcmp(map, maps[m].name))
            return run_map(m, settings, rel, n, out, err);
    return pe_fail(err, POSENC_ERROR_ARGUMENT, "index map '%.40s' is unknown; there are t5 and deberta", map);
}

/* ---- windows ---- */

enum { LARGEST_WINDOW = 4096 };

static posenc_status check_window(int64_t rows, int64_t columns, const void *out, const char *name,
                                  posenc_error *err)
{
    if (!out)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "window: %s must not be NULL", name);
    if (rows < 1 || columns < 1 || rows > LARGEST_WINDOW || columns > LARGEST_WINDOW)
        return pe_fail(err, POSENC_ERROR_RANGE, "window: %lldx%lld tokens; each side must be 1 to %d",
                       (long long)rows, (long long)columns, LARGEST_WINDOW);
    return pe_done(err);
}

posenc_status posenc_window_index(int64_t rows, int64_t columns, int64_t *index, posenc_error *err)
{
    const posenc_status status = check_window(rows, columns, index, "index", err);
    const int64_t       n      = status ? 0 : rows * columns;
    for (int64_t x = 0; x < n * n; x++) {
        const int64_t i = x / n, j = x % n;
        index[x] = pe_index_window(i / columns - j / columns, i % columns - j % columns, rows, columns);
    }
    return status;
}

posenc_status posenc_window_coordinates(int64_t rows, int64_t columns, int64_t pretrained_rows,
                                        int64_t pretrained_columns, double *coordinates, posenc_error *err)
{
    const posenc_status status = check_window(rows, columns, coordinates, "coordinates", err);
    if (status)
        return status;
    if (pretrained_rows < 0 || pretrained_columns < 0 || (pretrained_rows == 1 && rows > 1) ||
        (pretrained_columns == 1 && columns > 1))
        return pe_fail(
            err, POSENC_ERROR_RANGE,
            "window: pretrained sides are %lld and %lld; each must be 0 (as the window) or at least 2",
            (long long)pretrained_rows, (long long)pretrained_columns);
    for (int64_t x = 0; x < (2 * rows - 1) * (2 * columns - 1); x++) {
        const int64_t dy = x / (2 * columns - 1) - (rows - 1), dx = x % (2 * columns - 1) - (columns - 1);
        coordinates[2 * x]     = pe_window_coordinate(dy, rows, pretrained_rows);
        coordinates[2 * x + 1] = pe_window_coordinate(dx, columns, pretrained_columns);
    }
    return pe_done(err);
}
