/* SPDX-License-Identifier: MIT */
/*
 * sketch.c: what the makers of pictures share: memory, plans, rows of positions, settings, figures
 *
 * Everything is computed in double, by the reference executor, on one thread. The store is a set of arrays
 * that the picture frees: a maker never frees anything, whatever fails.
 */
#include "plot/sketch.h"

#include "base/shared/work.h"
#include "files/arrays/text.h"

#include <math.h>
#include <posenc/positions.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_TEXT = 200, MOST_NUMBERS = 4096 };

/* ---------------------------------------------------------------- the store ----------------- */

posenc_status pe_sketch_no_memory(posenc_error *err)
{
    return pe_draw_fail(err, POSENC_ERROR_MEMORY,
                        "not enough memory for the picture; ask for a shorter length");
}

void pe_sketch_refuse(pe_sketch *s, posenc_status status, const char *format, ...)
{
    char    text[sizeof s->err->message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!s->status)
        s->status = pe_draw_fail(s->err, status, "%s", text);
}

void *pe_sketch_take(pe_sketch *s, int64_t count, size_t size)
{
    const int64_t        shape[2] = {count, (int64_t)size};
    const posenc_tensor *made =
        s->status ? NULL : posenc_arrays_add(&s->store, "", POSENC_DTYPE_U8, 2, shape);
    if (!made && !s->status)
        s->status = pe_sketch_no_memory(s->err);
    return made ? made->data : NULL;
}

double *pe_sketch_numbers(pe_sketch *s, int64_t count)
{
    return pe_sketch_take(s, count, sizeof(double));
}

double *pe_sketch_range(pe_sketch *s, double start, double step, int64_t n)
{
    double *x = pe_sketch_numbers(s, n);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = start + step * (double)i;
    return x;
}

const char *pe_sketch_text(pe_sketch *s, const char *format, ...)
{
    char    text[LONGEST_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pe_text_clean_lines(text);
    char *copy = pe_sketch_take(s, (int64_t)strlen(text) + 1, 1);
    return copy ? strcpy(copy, text) : "";
}

/* ---------------------------------------------------------------- plans and rows ------------ */

int pe_sketch_prepare(pe_sketch *s, const posenc_encoding *e, const posenc_dims *dims, posenc_run runs)
{
    posenc_options options = posenc_options_default();
    options.threads        = 1;
    posenc_plan_free(s->plan);
    posenc_workspace_free(&s->work);
    s->plan = NULL;
    if (!s->status)
        s->status = posenc_plan_create(&s->plan, e, dims, &options, s->err);
    if (!s->status)
        s->status = pe_work_check_plan(e, s->plan, runs, s->err);
    if (!s->status)
        s->status = posenc_workspace_create(&s->work, s->plan, runs, NULL, s->err);
    return !s->status;
}

posenc_encoding *pe_sketch_alter(pe_sketch *s, const char *settings)
{
    posenc_encoding *other = NULL;
    if (!s->status)
        s->status = posenc_encoding_create(&other, posenc_encoding_spec(s->e), settings, s->err);
    return other;
}

void pe_sketch_forget(pe_sketch *s, posenc_encoding *other)
{
    posenc_plan_free(s->plan); /* it must not outlive its encoding */
    s->plan = NULL;
    posenc_encoding_free(other);
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
    unsigned char *valid = pe_sketch_take(s, n, 1);
    if (!valid)
        return;
    memset(valid, 1, (size_t)n);
    pe_sketch_setting(s, "normalize", normalize);
    pe_sketch_setting(s, "eps", eps);
    const posenc_tensor mask = posenc_tensor_contiguous(valid, POSENC_DTYPE_U8, 3, image);
    s->status = posenc_positions_detr(&mask, !strcmp(normalize, "yes"), strtod(eps, NULL), pos, s->err);
}

/* Positions of a grid, row by row: numbers, the first token after those rows of a table that come before the
   grid; or coordinates, where the encoding wants them. */
static posenc_positions positions_on_grid(pe_sketch *s)
{
    const int64_t shape[3] = {1, s->data->rows * s->data->cols, s->data->axes ? s->data->axes : 2};
    char          text[PE_SETTING_LENGTH];
    if (s->axes == 1) {
        pe_sketch_setting(s, "prefix_rows", text);
        return posenc_positions_range((double)s->data->first + strtod(text, NULL), 1);
    }
    double          *at  = pe_sketch_numbers(s, shape[1] * shape[2]);
    posenc_positions pos = posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, shape));
    pe_sketch_setting(s, "preset", text);
    if (!strcmp(text, "detr"))
        count_pixels(s, &pos.array);
    else if (at)
        count_tokens(s->data, at);
    return pos;
}

static posenc_positions positions_to_draw(pe_sketch *s)
{
    const int N = s->axes, given = s->data->axes ? s->data->axes : 2;
    if (N > 1 && s->data->rows && N != given)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: %s has %d coordinates but the grid has %d axes; these must match",
                         s->part->name, N, given);
    if (N > 1 && !s->data->rows)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: %s has positions on a grid; give its rows and columns", s->part->name);
    return s->data->rows && !s->status ? positions_on_grid(s) : posenc_positions_range(0, 1);
}

pe_row_set pe_sketch_rows(pe_sketch *s)
{
    posenc_dims    dims = s->data->dims;
    posenc_rows_in in   = {.size = sizeof in, .params = s->data->params, .pos = positions_to_draw(s)};
    const int64_t  n    = s->data->rows ? s->data->rows * s->data->cols : s->data->length;
    dims.B              = 1;
    dims.Lq = dims.Lk = dims.Lk > n ? dims.Lk : n;
    if (!pe_sketch_prepare(s, s->e, &dims, POSENC_RUN_ROWS))
        return (pe_row_set){0};
    const int64_t shape[3] = {1, n, posenc_rows_width(s->plan)};
    double       *rows     = pe_sketch_numbers(s, n * shape[2]);
    posenc_tensor y        = posenc_tensor_contiguous(rows, POSENC_DTYPE_F64, 3, shape);
    if (rows)
        s->status = posenc_rows(s->plan, &in, &y, &s->work, s->err);
    return (pe_row_set){s->status ? NULL : rows, n, shape[2]};
}

/* Where the part's brackets begin in "name[a=1:b=2]+other[...]". A list in them has ':' between numbers. */
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

void pe_sketch_setting(const pe_sketch *s, const char *name, char text[PE_SETTING_LENGTH])
{
    const char  *at = brackets_of(s);
    const size_t n  = strlen(name);
    text[0]         = 0;
    for (int i = 0; i < s->part->setting_count; i++)
        if (!strcmp(s->part->settings[i].name, name))
            snprintf(text, PE_SETTING_LENGTH, "%s", s->part->settings[i].default_value);
    for (at = *at == '[' ? at : ""; *at && *at != ']'; at += 1 + strcspn(at + 1, ":, ]"))
        if (strchr("[:, ", *at) && !strncmp(at + 1, name, n) && at[n + 1] == '=')
            snprintf(text, PE_SETTING_LENGTH, "%.*s", (int)strcspn(at + n + 2, ":, ]"), at + n + 2);
}

double pe_sketch_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---------------------------------------------------------------- figures ------------------- */

void pe_sketch_grid(pe_figure *f, const double *values, int64_t rows, int64_t cols)
{
    f->kind   = PE_GRID;
    f->values = values;
    f->rows   = rows;
    f->cols   = cols;
    f->dx     = 1;
    f->dy     = 1;
    for (int64_t i = 0; i < rows * cols; i++)
        f->signed_scale |= values[i] < 0;
}

void pe_sketch_transpose(pe_sketch *s, pe_figure *f)
{
    const pe_figure was    = *f;
    double         *values = pe_sketch_numbers(s, was.rows * was.cols);
    for (int64_t i = 0; values && i < was.rows * was.cols; i++)
        values[i] = was.values[i % was.rows * was.cols + i / was.rows];
    f->values     = values;
    f->rows       = was.cols;
    f->cols       = was.rows;
    f->row_names  = was.col_names;
    f->col_names  = was.row_names;
    f->apart_rows = was.apart_cols;
    f->apart_cols = was.apart_rows;
    f->x_label    = was.y_label;
    f->y_label    = was.x_label;
    f->x0 = was.y0, f->dx = was.dy;
    f->y0 = was.x0, f->dy = was.dx;
    f->tick_count = 0;
}

void pe_sketch_table(pe_sketch *s, pe_figure *f)
{
    f->with_numbers = s->data->with_numbers;
    f->decimals     = s->data->decimals;
    if (f->with_numbers && f->rows * f->cols > MOST_NUMBERS)
        pe_sketch_refuse(
            s, POSENC_ERROR_ARGUMENT,
            "picture: a table of %lldx%lld has too many numbers; at most %d are written: draw fewer "
            "positions or channels",
            (long long)f->rows, (long long)f->cols, MOST_NUMBERS);
}

pe_curve *pe_sketch_curves(pe_sketch *s, pe_figure *f, const double *x, const double *y, int64_t n, int count)
{
    pe_curve *curves = x && y ? pe_sketch_take(s, count, sizeof *curves) : NULL;
    f->kind          = PE_CURVES;
    f->curves        = curves;
    f->curve_count   = curves ? count : 0;
    for (int k = 0; k < f->curve_count; k++)
        curves[k] = (pe_curve){.name = "", .x = x, .y = y + k * n, .n = n};
    return curves;
}

static int is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

int pe_sketch_overlay(pe_sketch *s, pe_figure *to, const pe_figure *figures, const char *const *names,
                      int count)
{
    for (int k = 0; k < count; k++)
        if (figures[k].kind != PE_CURVES || figures[k].curve_count != 1 ||
            !is_same_text(figures[k].x_label, figures->x_label) ||
            !is_same_text(figures[k].y_label, figures->y_label))
            return 0;
    pe_curve *curves = pe_sketch_take(s, count, sizeof *curves);
    for (int k = 0; curves && k < count; k++) {
        curves[k]      = *figures[k].curves;
        curves[k].name = names[k];
    }
    *to             = *figures;
    to->curves      = curves;
    to->curve_count = curves ? count : 0;
    return 1;
}

pe_figure *pe_sketch_panels(pe_sketch *s, pe_figure *f, int count, int columns)
{
    pe_figure *panels = pe_sketch_take(s, count, sizeof *panels);
    f->kind           = PE_PANELS;
    f->panels         = panels;
    f->panel_count    = panels ? count : 0;
    f->panel_columns  = columns ? columns : count == 4 ? 2 : count < 3 ? count : 3;
    return panels;
}

void pe_sketch_labels(pe_figure *f, const char *x, const char *y, const char *value)
{
    f->x_label     = x;
    f->y_label     = y;
    f->value_label = value;
}

void pe_sketch_shares(double *scores, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, scores[i]);
    for (int64_t i = 0; i < n; i++) {
        sum += exp(scores[i] - most);
        scores[i] = sum;
    }
    for (int64_t i = 0; i < n; i++)
        scores[i] /= sum;
}

pe_curve *pe_sketch_mass(pe_sketch *s, const double *shares, const char *const *names, int count, int64_t n)
{
    pe_figure *f      = s->figure;
    pe_curve  *curves = pe_sketch_curves(s, f, pe_sketch_range(s, 1, 1, n), shares, n, count);
    for (int k = 0; curves && k < count; k++) {
        int64_t nearest = 1;
        while (nearest < n && shares[k * n + nearest - 1] < 0.9)
            nearest++;
        curves[k].name = pe_sketch_text(s, "%s: 90 %% on %lld keys", names[k], (long long)nearest);
    }
    f->ordered = count > 1;
    f->log_x   = 1;
    f->low     = 0;
    f->high    = 1;
    pe_sketch_labels(
        f, pe_sketch_text(s, "nearest keys, the query's own first (of %lld, log scale)", (long long)n),
        "their share of the attention", NULL);
    return curves;
}
