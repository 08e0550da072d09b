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

static const struct map *find_map(const pe_sketch *s)
{
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (!strcmp(maps[i].encoding, s->part->name))
            return &maps[i];
    return NULL;
}

/* Classes [2n-1] of the distances t = -(n-1) .. n-1. */
static posenc_status read_classes(pe_sketch *s, const struct map *map, int64_t n, int64_t **classes,
                                  posenc_error *err)
{
    char     settings[MOST_SETTINGS * (PE_SETTING_LENGTH + 32)] = "", value[PE_SETTING_LENGTH];
    size_t   used                                               = 0;
    int64_t *rel                                                = pe_take(s, 2 * n - 1, sizeof *rel);
    *classes                                                    = pe_take(s, 2 * n - 1, sizeof **classes);
    if (!rel || !*classes)
        return pe_plot_no_memory(err);
    for (int i = 0; i < MOST_SETTINGS && map->settings[i]; i++) {
        pe_setting_text(s, map->settings[i], value);
        if (!value[0])
            return pe_plot_fail(err, POSENC_UNSUPPORTED,
                                "picture: %s has classes only where %s is given; set it", s->part->name,
                                map->settings[i]);
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s=%s", used ? " " : "",
                                 map->settings[i], value);
    }
    for (int64_t i = 0; i < 2 * n - 1; i++)
        rel[i] = map->sign * (i - n + 1);
    return posenc_index_map(map->map, settings, rel, 2 * n - 1, *classes, err);
}

static posenc_status set_curve(pe_sketch *s, pe_figure *f, const int64_t *classes, int64_t n,
                               posenc_error *err)
{
    double   *x = pe_take_range(s, (double)(1 - n), 1, 2 * n - 1), *y = pe_take_numbers(s, 2 * n - 1);
    pe_curve *curve = x && y ? pe_set_curves(s, f, x, y, 2 * n - 1, 1) : NULL;
    if (!curve)
        return pe_plot_no_memory(err);
    for (int64_t i = 0; i < 2 * n - 1; i++)
        y[i] = (double)classes[i];
    f->title   = "class of each distance";
    f->x_label = "distance t (tokens), positive = past";
    f->y_label = "class";
    f->steps   = 1;
    return POSENC_OK;
}

static posenc_status set_matrix(pe_sketch *s, pe_figure *f, const int64_t *classes, int64_t n,
                                posenc_error *err)
{
    double *values = pe_take_numbers(s, n * n);
    if (!values)
        return pe_plot_no_memory(err);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            values[i * n + j] = (double)classes[i - j + n - 1];
    pe_set_grid(f, values, n, n);
    f->title        = "class of each pair";
    f->x_label      = "key (position)";
    f->y_label      = "query (position)";
    f->value_label  = "class";
    f->square_cells = 1;
    return POSENC_OK;
}

posenc_status pe_make_buckets(pe_sketch *s, posenc_error *err)
{
    const struct map *map = find_map(s);
    const int64_t     n   = s->data->length;
    int64_t          *classes;
    s->unlearned = 1;
    if (!map)
        return pe_plot_fail(err, POSENC_UNSUPPORTED, "picture: no map of classes is known for %s",
                            s->part->name);
    if (n > MOST_LENGTH)
        return pe_plot_fail(err, POSENC_ARGUMENT,
                            "picture: length is %lld; classes are drawn for 2 to %d positions", (long long)n,
                            MOST_LENGTH);
    posenc_status status = read_classes(s, map, n, &classes, err);
    pe_figure    *panels = status ? NULL : pe_set_panels(s, s->figure, 2, 2);
    if (!panels)
        return status ? status : pe_plot_no_memory(err);
    status = set_curve(s, &panels[0], classes, n, err);
    return status ? status : set_matrix(s, &panels[1], classes, n, err);
}
