/* SPDX-License-Identifier: MIT */
/*
 * picture.c: the pictures of an encoding: the table of kinds, and what their makers share: memory, plans,
 * rows of positions, settings, figures
 *
 * Each kind is a row of a table; the registry's words (posenc_encoding_info.pictures) say which rows an
 * encoding has, its place says which of two rows with the same name. A further kind is a further row and a
 * maker in one of the files that picture.h lists.
 *
 * Everything is computed in double, by the reference executor, on one thread. The store is a chain of blocks
 * that the picture frees: a maker never has to give anything back, whatever fails on its way.
 */
#include "plot/picture.h"

#include <posenc/positions.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SPEC = 64, LONGEST_LINE = 70, LONGEST_TEXT = 200, ALIGNMENT = 64 };

typedef struct block {
    struct block *next;
    alignas(max_align_t) char bytes[];
} block;

/* ---------------------------------------------------------------- the store ----------------- */

posenc_status pe_plot_no_memory(posenc_error *err)
{
    return pe_plot_fail(err, POSENC_ERROR_MEMORY,
                        "there is no memory for the picture; ask for a shorter length");
}

void pe_plot_refuse(pe_sketch *s, posenc_status status, const char *format, ...)
{
    char    text[sizeof s->err->message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!s->status)
        s->status = pe_plot_fail(s->err, status, "%s", text);
}

void *pe_take(pe_sketch *s, int64_t count, size_t size)
{
    const int is_countable = count >= 0 && (uint64_t)count <= (SIZE_MAX - sizeof(block)) / size;
    block    *made = s->status || !is_countable ? NULL : calloc(1, sizeof(block) + (size_t)count * size);
    if (!made && !s->status)
        s->status = pe_plot_no_memory(s->err);
    if (!made)
        return NULL;
    made->next = s->store;
    s->store   = made;
    return made->bytes;
}

double *pe_take_numbers(pe_sketch *s, int64_t count)
{
    return pe_take(s, count, sizeof(double));
}

double *pe_take_range(pe_sketch *s, double start, double step, int64_t n)
{
    double *x = pe_take_numbers(s, n);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = start + step * (double)i;
    return x;
}

const char *pe_take_text(pe_sketch *s, const char *format, ...)
{
    char    text[LONGEST_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char *kept = pe_take(s, (int64_t)strlen(text) + 1, 1);
    return kept ? strcpy(kept, text) : "";
}

/* ---------------------------------------------------------------- plans and rows ------------ */

int pe_prepare(pe_sketch *s, const posenc_encoding *e, const posenc_dims *dims, int runs)
{
    posenc_options options = posenc_options_default();
    options.threads        = 1;
    posenc_plan_free(s->plan);
    free(s->work);
    s->plan = NULL;
    s->work = NULL;
    if (!s->status)
        s->status = posenc_plan_create(&s->plan, e, dims, &options, s->err);
    if (s->status)
        return 0;
    const size_t bytes = posenc_plan_workspace(s->plan, runs);
    s->work            = aligned_alloc(ALIGNMENT, bytes ? bytes : ALIGNMENT);
    if (!s->work)
        s->status = pe_plot_no_memory(s->err);
    return s->work != NULL;
}

posenc_encoding *pe_alter(pe_sketch *s, const char *settings)
{
    posenc_encoding *other = NULL;
    if (!s->status)
        s->status = posenc_encoding_create(&other, posenc_encoding_spec(s->e), settings, s->err);
    return other;
}

void pe_forget(pe_sketch *s, posenc_encoding *other)
{
    posenc_plan_free(s->plan); /* it may not outlive its encoding */
    s->plan = NULL;
    posenc_encoding_free(other);
}

int pe_picture_axes(const posenc_encoding *e, const posenc_dims *dims)
{
    int64_t   tokens;
    const int N = posenc_rows_coordinates(e);
    return N > 1 && !posenc_rows_tokens(e, dims, &tokens, NULL) && tokens > 0 ? N : 1;
}

/* The coordinates of the tokens of a grid, the last axis fastest. */
static void count_tokens(const pe_picture_data *d, double *at)
{
    const int64_t two[2] = {d->rows, d->cols}, *sizes = d->axes ? d->sizes : two;
    const int     N = d->axes ? d->axes : 2;
    for (int64_t i = 0; i < d->rows * d->cols; i++) {
        int64_t rest = i;
        for (int a = N - 1; a >= 0; a--) {
            at[N * i + a] = (double)(rest % sizes[a]);
            rest /= sizes[a];
        }
    }
}

/* The same by DETR's rule, which counts pixels from 1, and may make them shares of 2 pi. */
static void count_pixels(pe_sketch *s, posenc_tensor *pos)
{
    const int64_t  image[3] = {1, s->data->rows, s->data->cols}, n = s->data->rows * s->data->cols;
    char           normalize[PE_SETTING_LENGTH], eps[PE_SETTING_LENGTH];
    unsigned char *valid = pe_take(s, n, 1);
    if (!valid)
        return;
    memset(valid, 1, (size_t)n);
    pe_setting_text(s, "normalize", normalize);
    pe_setting_text(s, "eps", eps);
    const posenc_tensor mask = posenc_tensor_contiguous(valid, POSENC_DTYPE_U8, 3, image);
    s->status = posenc_positions_detr(&mask, !strcmp(normalize, "yes"), strtod(eps, NULL), pos, s->err);
}

/* Positions of a grid, row by row: numbers from the first token's on, as rows of a table may come before it,
   or coordinates where the encoding wants them. */
static posenc_positions place_on_grid(pe_sketch *s)
{
    const int64_t shape[3] = {1, s->data->rows * s->data->cols, s->data->axes ? s->data->axes : 2};
    char          text[PE_SETTING_LENGTH];
    if (pe_picture_axes(s->e, &s->data->dims) == 1) {
        pe_setting_text(s, "prefix_rows", text);
        return posenc_positions_range((double)s->data->first + strtod(text, NULL), 1);
    }
    double          *at  = pe_take_numbers(s, shape[1] * shape[2]);
    posenc_positions pos = posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, shape));
    pe_setting_text(s, "preset", text);
    if (!strcmp(text, "detr"))
        count_pixels(s, &pos.array);
    else if (at)
        count_tokens(s->data, at);
    return pos;
}

static posenc_positions place(pe_sketch *s)
{
    const int N = pe_picture_axes(s->e, &s->data->dims), given = s->data->axes ? s->data->axes : 2;
    if (N > 1 && s->data->rows && N != given)
        pe_plot_refuse(s, POSENC_ERROR_ARGUMENT,
                       "picture: %s has %d coordinates and the grid %d axes; they must be as many",
                       s->part->name, N, given);
    if (N > 1 && !s->data->rows)
        pe_plot_refuse(s, POSENC_ERROR_ARGUMENT,
                       "picture: %s has positions on a grid; give its rows and columns", s->part->name);
    return s->data->rows && !s->status ? place_on_grid(s) : posenc_positions_range(0, 1);
}

pe_row_set pe_read_rows(pe_sketch *s)
{
    posenc_dims    dims = s->data->dims;
    posenc_rows_in in   = {.params = s->data->params, .pos = place(s)};
    const int64_t  n    = s->data->rows ? s->data->rows * s->data->cols : s->data->length;
    dims.B              = 1;
    dims.Lq = dims.Lk = dims.Lk > n ? dims.Lk : n;
    if (!pe_prepare(s, s->e, &dims, POSENC_RUN_FORWARD))
        return (pe_row_set){0};
    const int64_t shape[3] = {1, n, posenc_rows_width(s->plan)};
    double       *rows     = pe_take_numbers(s, n * shape[2]);
    posenc_tensor y        = posenc_tensor_contiguous(rows, POSENC_DTYPE_F64, 3, shape);
    if (rows)
        s->status = posenc_rows(s->plan, &in, &y, s->work, s->err);
    return (pe_row_set){s->status ? NULL : rows, n, shape[2]};
}

/* "name[a=1:b=2]+other[...]": where the part's own brackets begin; lists inside have ':' between numbers. */
static const char *brackets_of(const pe_sketch *s)
{
    const size_t n = strlen(s->part->name);
    for (const char *at = posenc_encoding_spec(s->e); at; at = strchr(at, '+')) {
        at += *at == '+';
        if (!strncmp(at, s->part->name, n) && (at[n] == '[' || !at[n] || at[n] == '+'))
            return at + n;
    }
    return "";
}

void pe_setting_text(const pe_sketch *s, const char *name, char text[PE_SETTING_LENGTH])
{
    const char  *at = brackets_of(s);
    const size_t n  = strlen(name);
    text[0]         = 0;
    for (int i = 0; i < s->part->setting_count; i++)
        if (!strcmp(s->part->settings[i].name, name))
            snprintf(text, PE_SETTING_LENGTH, "%s", s->part->settings[i].default_value);
    for (; *at && *at != ']' && *at != '+'; at += 1 + strcspn(at + 1, "[:, ]+"))
        if (strchr("[:, ", *at) && !strncmp(at + 1, name, n) && at[n + 1] == '=')
            snprintf(text, PE_SETTING_LENGTH, "%.*s", (int)strcspn(at + n + 2, ":, ]"), at + n + 2);
}

double pe_product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---------------------------------------------------------------- figures ------------------- */

void pe_set_grid(pe_figure *f, const double *values, int64_t rows, int64_t cols)
{
    f->kind         = PE_GRID;
    f->values       = values;
    f->rows         = rows;
    f->cols         = cols;
    f->dx           = 1;
    f->dy           = 1;
    f->signed_scale = 0;
    for (int64_t i = 0; i < rows * cols; i++)
        f->signed_scale |= values[i] < 0;
}

pe_curve *pe_set_curves(pe_sketch *s, pe_figure *f, const double *x, const double *y, int64_t n, int count)
{
    pe_curve *curves = x && y ? pe_take(s, count, sizeof *curves) : NULL;
    f->kind          = PE_CURVES;
    f->curves        = curves;
    f->curve_count   = curves ? count : 0;
    for (int k = 0; k < f->curve_count; k++)
        curves[k] = (pe_curve){.name = "", .x = x, .y = y + k * n, .n = n};
    return curves;
}

pe_figure *pe_set_panels(pe_sketch *s, pe_figure *f, int count, int columns)
{
    pe_figure *panels = pe_take(s, count, sizeof *panels);
    f->kind           = PE_PANELS;
    f->panels         = panels;
    f->panel_count    = panels ? count : 0;
    f->panel_columns  = columns ? columns : count == 4 ? 2 : count < 3 ? count : 3;
    return panels;
}

void pe_set_labels(pe_figure *f, const char *x, const char *y, const char *value)
{
    f->x_label     = x;
    f->y_label     = y;
    f->value_label = value;
}

struct pe_picture {
    pe_figure figure;
    pe_mark   mark;
    block    *blocks;
};

/* ---------------------------------------------------------------- the table of kinds -------- */

static const struct kind {
    const char  *name;
    posenc_place place;
    int          in_report;
    const char  *what;
    pe_maker    *make;
} kinds[] = {
    {"heatmap", POSENC_PLACE_INPUT, 1, "the vector of each position", pe_make_heatmap},
    {"curves", POSENC_PLACE_INPUT, 0, "channels by position", pe_make_channels},
    {"similarity", POSENC_PLACE_INPUT, 1, "similarity of positions", pe_make_row_similarity},
    {"similarity2d", POSENC_PLACE_INPUT, 0, "similarity to chosen points of a grid", pe_make_similarity2d},
    {"similarity", POSENC_PLACE_ROTARY, 1, "score of equal vectors by distance", pe_make_turn_similarity},
    {"decay", POSENC_PLACE_ROTARY, 0, "scores of turned vectors", pe_make_decay},
    {"mass", POSENC_PLACE_ROTARY, 0, "attention within a distance", pe_make_turn_mass},
    {"pair", POSENC_PLACE_ROTARY, 0, "a vector that turns", pe_make_pair},
    {"wavelengths", POSENC_PLACE_ROTARY, 0, "wavelengths of the pairs", pe_make_wavelengths},
    {"bias", POSENC_PLACE_SCORE, 1, "bias by distance", pe_make_bias},
    {"mass", POSENC_PLACE_SCORE, 0, "attention within a distance, by the bias alone", pe_make_bias_mass},
    {"buckets", POSENC_PLACE_SCORE, 0, "classes of distances", pe_make_buckets},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const pe_offer *offer)
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
            const struct kind *kind = find_kind(offer);
            offer->in_report        = kind && kind->in_report;
            count += kind != NULL;
            at += n + (at[n] == ',');
        }
    }
    return count;
}

static void set_title(pe_sketch *s, pe_picture *p)
{
    const char *spec    = s->data->name ? s->data->name : posenc_encoding_spec(s->e);
    const char *named   = strlen(spec) <= LONGEST_SPEC ? spec : s->part->name;
    const char *origin  = s->unlearned ? NULL : s->data->origin;
    const char *between = strlen(named) + strcspn(s->what, "\n") > LONGEST_LINE ? "\n" : ": ";
    p->figure.title =
        pe_take_text(s, "%s%s%s%s%s", named, between, s->what, origin ? "\n" : "", origin ? origin : "");
    if (p->figure.kind == PE_PANELS)
        return;
    p->figure.marks      = s->marks;
    p->figure.mark_count = s->mark_count;
}

/* Does a parameter of the part grow with the heads? Pictures turn as many vectors as heads, all alike. */
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
                return 0; /* said by whoever needs it */
        }
        if (ndim > 0 && shape[0][0] != shape[1][0])
            return 1;
    }
    return 0;
}

posenc_status pe_picture_create(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                const pe_picture_data *data, posenc_error *err)
{
    const struct kind *kind = find_kind(offer);
    pe_sketch          s    = {.e          = e,
                               .part       = posenc_encoding_part(e, offer->place),
                               .data       = data,
                               .mark_count = data->mark > 0,
                               .err        = err};
    *picture                = NULL;
    if (!kind || !s.part)
        return pe_plot_fail(err, POSENC_ERROR_ARGUMENT, "picture: %s has no %s at place %s",
                            posenc_encoding_spec(e), offer->kind, posenc_place_name(offer->place));
    if (!data->rows && data->length < 2)
        return pe_plot_fail(err, POSENC_ERROR_ARGUMENT, "picture: length is %lld; it must be at least 2",
                            (long long)data->length);
    if (offer->place == POSENC_PLACE_ROTARY && heads_differ(e, s.part, data->dims))
        return pe_plot_fail(
            err, POSENC_ERROR_UNSUPPORTED,
            "picture: each head of %s turns at frequencies of its own; leave out per_head=yes to draw "
            "one matrix for all",
            posenc_encoding_spec(e));
    pe_picture *made = calloc(1, sizeof *made);
    if (!made)
        return pe_plot_no_memory(err);
    made->mark = (pe_mark){data->mark, data->mark_label};
    s.marks    = &made->mark;
    s.figure   = &made->figure;
    s.what     = kind->what;
    kind->make(&s);
    set_title(&s, made);
    made->blocks = s.store;
    posenc_plan_free(s.plan);
    free(s.work);
    if (s.status)
        pe_picture_free(made);
    else
        *picture = made;
    return s.status;
}

const pe_figure *pe_picture_figure(const pe_picture *picture)
{
    return &picture->figure;
}

void pe_picture_free(pe_picture *picture)
{
    if (!picture)
        return;
    for (block *at = picture->blocks, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    free(picture);
}
