/* SPDX-License-Identifier: MIT */
/*
 * picture.c: the pictures of an encoding: the table of kinds
 *
 * Each kind is a row of the table; posenc_encoding_info.pictures says which kinds an encoding has, and its
 * place which of two rows of one name. To add a kind, add a row, and a maker in one of the files that
 * sketch.h lists.
 */
#include "plot/sketch.h"

#include "base/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SPEC = 64, LONGEST_LINE = 70, MOST_PANELS = 64 };

static const struct picture_kind {
    const char  *name;
    posenc_place place;
    int          in_report;
    const char  *what;
    pe_maker    *make;
} kinds[] = {
    {"heatmap", POSENC_PLACE_INPUT, 1, "the vector of each position", pe_channels_heatmap},
    {"curves", POSENC_PLACE_INPUT, 0, "channels by position", pe_channels_curves},
    {"similarity", POSENC_PLACE_INPUT, 1, "similarity of positions", pe_similarity_matrix},
    {"similarity2d", POSENC_PLACE_INPUT, 0, "similarity to chosen points of a grid", pe_similarity_to_points},
    {"similarity", POSENC_PLACE_ROTARY, 1, "score of equal vectors by distance", pe_rotated_similarity},
    {"decay", POSENC_PLACE_ROTARY, 0, "scores of rotated vectors", pe_rotated_decay},
    {"mass", POSENC_PLACE_ROTARY, 0, "attention within a distance", pe_rotated_mass},
    {"pair", POSENC_PLACE_ROTARY, 0, "a rotated vector", pe_pair_make},
    {"wavelengths", POSENC_PLACE_ROTARY, 0, "wavelengths of the pairs", pe_wavelengths_make},
    {"bias", POSENC_PLACE_SCORE, 1, "bias by distance", pe_biases_make},
    {"mass", POSENC_PLACE_SCORE, 0, "attention within a distance, by the bias alone", pe_biases_mass},
    {"buckets", POSENC_PLACE_SCORE, 0, "buckets of distances", pe_biases_buckets},
    {"factors", POSENC_PLACE_WEIGHT, 1, "factor of the weights by distance", pe_biases_factors},
    {"hierarchy", POSENC_PLACE_INPUT, 0, "two digits of each position", pe_diagrams_hierarchy},
    {"onehot", POSENC_PLACE_INPUT, 0, "a one-hot position beside the token", pe_diagrams_onehot},
    {"words", POSENC_PLACE_ROTARY, 0, "words rotated by their positions", pe_diagrams_words},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

enum { LONGEST = 4096, MOST_WORDS = 32 };

static const pe_picture_size sizes[PE_PICTURE_KINDS] = {
    {"heatmap", 128, LONGEST, 64},    {"curves", 128, LONGEST, 64},
    {"similarity", 128, LONGEST, 64}, {"similarity2d", 0, LONGEST, 128},
    {"decay", 1024, LONGEST, 128},    {"mass", 1024, LONGEST, 64},
    {"pair", 8, LONGEST, 64},         {"wavelengths", 4096, PE_ENDLESS, 128},
    {"words", 0, MOST_WORDS, 8},      {"bias", 128, LONGEST, 64},
    {"buckets", 256, LONGEST, 64},    {"factors", 64, LONGEST, 64},
    {"hierarchy", 4, LONGEST, 8},     {"onehot", 4, LONGEST, 4},
};

const pe_picture_size *pe_picture_size_of(const char *kind)
{
    for (int i = 0; i < PE_PICTURE_KINDS; i++)
        if (!strcmp(sizes[i].kind, kind))
            return &sizes[i];
    return NULL;
}

static int is_constant(const posenc_tensor *t)
{
    const double *x = t->data;
    for (int64_t i = 1; i < pe_tensor_elements(t); i++)
        if (x[i] != x[0])
            return 0;
    return pe_tensor_elements(t) > 1;
}

int pe_picture_vary(const posenc_encoding *e, const posenc_tensor *params, const int *varied, int64_t seed,
                    char *names, size_t n)
{
    int count = 0;
    *names    = '\0';
    for (int i = 0; i < posenc_param_count(e); i++) {
        if (!varied[i] || !is_constant(&params[i]))
            continue;
        const char  *name = posenc_param_name(e, i);
        double      *x    = params[i].data;
        const size_t used = strlen(names);
        for (int64_t k = 0; k < pe_tensor_elements(&params[i]); k++)
            x[k] += posenc_random_normal((uint64_t)seed, name, (uint64_t)k);
        snprintf(names + used, n - used, "%s%s", count++ ? ", " : "", name);
    }
    return count;
}

static const struct picture_kind *find_kind(const pe_offer *offer)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].place == offer->place && !strcmp(kinds[i].name, offer->kind))
            return &kinds[i];
    return NULL;
}

int pe_picture_offers(const posenc_encoding *e, pe_offer offers[PE_MOST_OFFERS])
{
    int count = 0;
    for (int at_place = 0; at_place < POSENC_PLACE_COUNT; at_place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)at_place);
        for (const char *at = part && part->pictures ? part->pictures : ""; *at && count < PE_MOST_OFFERS;) {
            const size_t n     = strcspn(at, ",");
            pe_offer    *offer = &offers[count];
            offer->place       = (posenc_place)at_place;
            snprintf(offer->kind, sizeof offer->kind, "%.*s", (int)n, at);
            const struct picture_kind *kind = find_kind(offer);
            offer->in_report                = kind && kind->in_report;
            count += kind != NULL;
            at += n + (at[n] == ',');
        }
    }
    return count;
}

int pe_picture_axes(const posenc_encoding *e, const posenc_dims *dims)
{
    int64_t   tokens;
    const int N = posenc_rows_coordinates(e);
    return N > 1 && !posenc_rows_tokens(e, dims, &tokens, NULL) && tokens > 0 ? N : 1;
}

static void set_title(pe_sketch *s, pe_picture *p)
{
    const char *spec    = s->data->name ? s->data->name : posenc_encoding_spec(s->e);
    const char *named   = strlen(spec) <= LONGEST_SPEC ? spec : s->part->name;
    const char *origin  = s->unlearned ? NULL : s->data->origin;
    const char *between = strlen(named) + strcspn(s->what, "\n") > LONGEST_LINE ? "\n" : ": ";
    p->name             = pe_sketch_text(s, "%s", named);
    p->what             = pe_sketch_text(s, "%s", s->what);
    p->origin           = origin ? pe_sketch_text(s, "%s", origin) : NULL;
    p->figure.title =
        pe_sketch_text(s, "%s%s%s%s%s", named, between, s->what, origin ? "\n" : "", origin ? origin : "");
    if (p->figure.kind == PE_PANELS)
        return;
    p->figure.marks      = s->marks;
    p->figure.mark_count = s->mark_count;
}

/* Does a parameter of the part grow with the heads? Pictures rotate all vectors alike. */
static int heads_differ(const posenc_encoding *e, const posenc_encoding_info *part, posenc_dims dims)
{
    int32_t ndim;
    int64_t shape[2][POSENC_MAX_DIMS];
    for (int i = 0; i < posenc_param_count(e); i++) {
        const posenc_param_info *param = posenc_param_describe(e, i);
        if (param < part->params || param >= part->params + part->param_count)
            continue;
        for (int two = 0; two < 2; two++) {
            dims.H = dims.G = 1 + two;
            if (posenc_param_shape(e, &dims, i, &ndim, shape[two], NULL))
                return 0; /* the maker will fail and say why */
        }
        if (ndim > 0 && shape[0][0] != shape[1][0])
            return 1;
    }
    return 0;
}

posenc_status pe_picture_create(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                const pe_picture_data *data, posenc_error *err)
{
    const struct picture_kind *kind = find_kind(offer);
    pe_sketch                  s    = {.e          = e,
                                       .part       = posenc_encoding_part(e, offer->place),
                                       .data       = data,
                                       .mark_count = data->mark > 0,
                                       .axes       = pe_picture_axes(e, &data->dims),
                                       .err        = err};
    *picture                        = NULL;
    if (!kind || !s.part)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT, "picture: %s has no %s at place %s",
                            posenc_encoding_spec(e), offer->kind, posenc_place_name(offer->place));
    if (!data->rows && data->length < 2)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT, "picture: length is %lld; it must be at least 2",
                            (long long)data->length);
    if (offer->place == POSENC_PLACE_ROTARY && heads_differ(e, s.part, data->dims))
        return pe_draw_fail(
            err, POSENC_ERROR_UNSUPPORTED,
            "picture: each head of %s rotates at its own frequencies; leave out per_head=yes to draw one "
            "matrix for all heads",
            posenc_encoding_spec(e));
    pe_picture *made = calloc(1, sizeof *made);
    if (!made)
        return pe_sketch_no_memory(err);
    made->mark = (pe_mark){data->mark, data->mark_label};
    s.marks    = &made->mark;
    s.figure   = &made->figure;
    s.what     = kind->what;
    kind->make(&s);
    set_title(&s, made);
    made->store = s.store;
    posenc_plan_free(s.plan);
    posenc_workspace_free(&s.work);
    if (s.status)
        pe_picture_free(made);
    else
        *picture = made;
    return s.status;
}

/* ---------------------------------------------------------------- several ------------------- */

static int panel_count(const pe_picture *p)
{
    return p->figure.kind == PE_PANELS ? p->figure.panel_count : 1;
}

/* What all show; NULL: not the same. */
static const char *common_what(pe_picture *const *parts, int count)
{
    for (int i = 1; i < count; i++)
        if (strcmp(parts[i]->what, parts[0]->what) != 0)
            return NULL;
    return parts[0]->what;
}

/* "alibi", or "rope: many thetas" of one of several panels, or "tupe: ..." where each shows something else.
 */
static const char *panel_name(pe_sketch *s, const pe_picture *p, int panel, int is_common)
{
    const char *own    = is_common ? NULL : p->what;
    const char *title  = p->figure.kind == PE_PANELS ? p->figure.panels[panel].title : own;
    const char *origin = p->origin ? p->origin : "";
    return pe_sketch_text(s, "%s%s%s%s%s", p->name, title ? ": " : "", title ? title : "",
                          *origin ? "\n" : "", origin);
}

/* What all show, else their names; and from where the parameters of a joint frame come. */
static const char *joint_title(pe_sketch *s, pe_picture *const *parts, int count, int with_origin)
{
    const char *what = common_what(parts, count), *origin = NULL, *names = "";
    for (int i = 0; i < count; i++) {
        names  = pe_sketch_text(s, "%s%s%s", names, i ? ", " : "", parts[i]->name);
        origin = with_origin && !origin ? parts[i]->origin : origin;
    }
    return pe_sketch_text(s, "%s%s%s", what ? what : names, origin ? "\n" : "", origin ? origin : "");
}

static void join(pe_sketch *s, pe_picture *const *parts, int count)
{
    const char *names[MOST_PANELS] = {NULL};
    pe_figure   all[MOST_PANELS]   = {{0}};
    int         n                  = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < panel_count(parts[i]) && n < MOST_PANELS; k++, n++) {
            const pe_figure *f = &parts[i]->figure;
            all[n]             = f->kind == PE_PANELS ? f->panels[k] : *f;
            names[n]           = parts[i]->name;
        }
    if (n == count && pe_sketch_overlay(s, s->figure, all, names, count)) {
        s->figure->title = joint_title(s, parts, count, 1);
        return;
    }
    pe_figure *panels = pe_sketch_panels(s, s->figure, n, 0);
    for (int i = 0, at = 0; panels && i < count; i++)
        for (int k = 0; k < panel_count(parts[i]) && at < n; k++, at++) {
            panels[at]       = all[at];
            panels[at].title = panel_name(s, parts[i], k, common_what(parts, count) != NULL);
        }
    s->figure->title = joint_title(s, parts, count, 0);
}

posenc_status pe_picture_join(pe_picture **picture, pe_picture *const *parts, int count, posenc_error *err)
{
    pe_picture *made = *picture = calloc(1, sizeof *made);
    if (!made)
        return pe_sketch_no_memory(err);
    pe_sketch s = {.figure = &made->figure, .err = err};
    join(&s, parts, count);
    made->store = s.store;
    if (s.status) {
        pe_picture_free(made);
        *picture = NULL;
    }
    return s.status;
}

int pe_picture_is_flat(const pe_picture *picture)
{
    const pe_figure *f = &picture->figure;
    double           low, high;
    pe_colours_extremes(f->kind == PE_PANELS ? f->panels : f, f->kind == PE_PANELS ? f->panel_count : 1, &low,
                        &high);
    return high - low <= 1e-9 * fmax(fabs(low), fabs(high));
}

posenc_status pe_picture_create_varied(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                       pe_picture_data *data, const int *varied, char *origin, size_t n,
                                       posenc_error *err)
{
    char                names[120];
    const int64_t       seed   = (int64_t)data->seed;
    const posenc_status status = pe_picture_create(picture, e, offer, data, err);
    if (status || !pe_picture_is_flat(*picture) ||
        !pe_picture_vary(e, data->params, varied, seed, names, sizeof names))
        return status;
    pe_picture_free(*picture); /* parameters that start at one number leave nothing to see */
    *picture = NULL;
    snprintf(origin, n, "untrained, and N(0,1) added to %.40s, flat as initialised; seed %lld", names,
             (long long)seed);
    data->origin = origin;
    return pe_picture_create(picture, e, offer, data, err);
}

const pe_figure *pe_picture_figure(const pe_picture *picture)
{
    return &picture->figure;
}

void pe_picture_free(pe_picture *picture)
{
    if (!picture)
        return;
    posenc_arrays_free(&picture->store);
    free(picture);
}
