/* SPDX-License-Identifier: MIT */
/*
 * buckets.c: which distances share a class
 *
 * Left the class of every distance, with its sign; right the classes of all pairs of a query and a key, as
 * the scores see them. The classes come from posenc_index_map, exact integers; the settings are those of the
 * encoding. A further encoding with classes is a further row of the table: its map, which way its argument
 * counts, and its settings.
 */
#include "plot/picture.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SETTINGS = 4, MOST_LENGTH = 1024 };

static const struct map {
    const char *encoding, *map;
    int         sign; /* +1: the map takes t, -1: it takes -t */
    const char *settings[MOST_SETTINGS];
} maps[] = {
    {"t5", "t5", -1, {"num_buckets", "max_distance", "bidirectional"}},
    {"deberta", "deberta", 1, {"position_buckets", "max_relative_positions", "clip_first"}},
};

/* Classes [2n-1] of the distances t = -(n-1) .. n-1. */
static int64_t *read_classes(pe_sketch *s, const struct map *map, int64_t n)
{
    char     settings[MOST_SETTINGS * (PE_SETTING_LENGTH + 32)] = "", value[PE_SETTING_LENGTH];
    size_t   used                                               = 0;
    int64_t *rel = pe_take(s, 2 * n - 1, sizeof *rel), *classes = pe_take(s, 2 * n - 1, sizeof *classes);
    for (int i = 0; i < MOST_SETTINGS && map->settings[i]; i++) {
        pe_setting_text(s, map->settings[i], value);
        if (!value[0])
            pe_plot_refuse(s, POSENC_UNSUPPORTED, "picture: %s has classes only where %s is given; set it",
                           s->part->name, map->settings[i]);
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s=%s", used ? " " : "",
                                 map->settings[i], value);
    }
    for (int64_t i = 0; rel && i < 2 * n - 1; i++)
        rel[i] = map->sign * (i - n + 1);
    if (!s->status)
        s->status = posenc_index_map(map->map, settings, rel, 2 * n - 1, classes, s->err);
    return s->status ? NULL : classes;
}

static void set_curve(pe_sketch *s, pe_figure *f, const int64_t *classes, int64_t n)
{
    double *y = pe_take_numbers(s, 2 * n - 1);
    for (int64_t i = 0; y && i < 2 * n - 1; i++)
        y[i] = (double)classes[i];
    pe_set_curves(s, f, pe_take_range(s, (double)(1 - n), 1, 2 * n - 1), y, 2 * n - 1, 1);
    pe_set_labels(f, "distance t (tokens), positive = past", "class", NULL);
    f->title = "class of each distance";
    f->steps = 1;
}

static void set_matrix(pe_sketch *s, pe_figure *f, const int64_t *classes, int64_t n)
{
    double *values = pe_take_numbers(s, n * n);
    if (!values)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            values[i * n + j] = (double)classes[i - j + n - 1];
    pe_set_grid(f, values, n, n);
    pe_set_labels(f, "key (position)", "query (position)", "class");
    f->title        = "class of each pair";
    f->square_cells = 1;
}

void pe_make_buckets(pe_sketch *s)
{
    const struct map *map = maps, *end = maps + sizeof maps / sizeof *maps;
    const int64_t     n = s->data->length;
    s->unlearned        = 1;
    while (map < end && strcmp(map->encoding, s->part->name) != 0)
        map++;
    if (map == end)
        pe_plot_refuse(s, POSENC_UNSUPPORTED, "picture: no map of classes is known for %s", s->part->name);
    if (n > MOST_LENGTH)
        pe_plot_refuse(s, POSENC_ARGUMENT, "picture: length is %lld; classes are drawn for 2 to %d positions",
                       (long long)n, MOST_LENGTH);
    const int64_t *classes = s->status ? NULL : read_classes(s, map, n);
    pe_figure     *panels  = pe_set_panels(s, s->figure, 2, 2);
    if (!panels)
        return;
    set_curve(s, &panels[0], classes, n);
    set_matrix(s, &panels[1], classes, n);
}
