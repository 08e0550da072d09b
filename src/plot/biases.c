/* SPDX-License-Identifier: MIT */
/*
 * biases.c: what is added to the scores whatever the content, and where attention goes by it alone
 *
 *   bias  per head against the distance t; of a room with a window of rows and columns, a map of offsets per
 *         head; of one that knows positions one by one (tupe), a matrix of queries and keys per head
 *   mass  softmax of the bias alone: the share of the attention that the nearest keys have, and how many have
 *         90 %
 *
 * Surprises  The bias by distance is asked for one query and a range of keys: that is every distance once, in
 *            linear memory. A map needs every pair of the window once; an offset is read where it comes
 *            first.
 */
#include "plot/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEADS_MOST = 64, MAPS_MOST = 16, MAP_COLUMNS = 4, MOST_TOKENS = 1024 };

static const char *head_name(pe_sketch *s, int64_t h)
{
    return pe_take_text(s, "head %lld", (long long)h + 1);
}

static posenc_status check_heads(const pe_sketch *s, int most, posenc_error *err)
{
    if (s->data->dims.H <= most)
        return POSENC_OK;
    return pe_plot_fail(err, POSENC_ARGUMENT, "picture: %lld heads are too many; %s is drawn for at most %d",
                        (long long)s->data->dims.H, s->part->name, most);
}

/* bias [H, Lq, Lk] of queries from q0 on and keys from 0 on. */
static posenc_status read_bias(pe_sketch *s, int64_t q0, int64_t Lq, int64_t Lk, double **bias,
                               posenc_error *err)
{
    const int64_t H = s->data->dims.H, shape[3] = {H, Lq, Lk}, most = q0 + Lq > Lk ? q0 + Lq : Lk;
    posenc_dims   dims = s->data->dims;
    dims.B             = 1;
    dims.Lq = dims.Lk    = dims.Lk > most ? dims.Lk : most;
    posenc_status status = pe_prepare(s, s->e, &dims, POSENC_SCORES, err);
    *bias                = status ? NULL : pe_take_numbers(s, H * Lq * Lk);
    if (status || !*bias)
        return status ? status : pe_plot_no_memory(err);
    posenc_tensor          out = posenc_tensor_contiguous(*bias, POSENC_F64, 3, shape);
    const posenc_attend_in in  = {.q_pos  = posenc_positions_range((double)q0, 1),
                                  .k_pos  = posenc_positions_range(0, 1),
                                  .params = s->data->params};
    return posenc_bias(s->plan, &in, &out, s->work, err);
}

/* ---------------------------------------------------------------- on a line ----------------- */

/* Bias [H, n] of distances N-1, N-2, ... in tokens: one query at N-1 and keys from 0 on. */
static posenc_status read_line(pe_sketch *s, int64_t n, double **bias, posenc_error *err)
{
    return read_bias(s, s->data->length - 1, 1, n, bias, err);
}

/* The same where positions end with N-1: keys in the future belong to a query at 0. */
static posenc_status read_two_lines(pe_sketch *s, int64_t n, double **bias, posenc_error *err)
{
    const int64_t H = s->data->dims.H, N = s->data->length;
    double       *past, *future;
    posenc_status status = read_bias(s, N - 1, 1, N, &past, err);
    if (!status)
        status = read_bias(s, 0, 1, N, &future, err);
    *bias = status ? NULL : pe_take_numbers(s, H * n);
    if (!*bias)
        return status ? status : pe_plot_no_memory(err);
    for (int64_t k = 0; k < H * n; k++) {
        const int64_t h = k / n, j = k % n;
        (*bias)[k] = j < N ? past[h * N + j] : future[h * N + j - N + 1];
    }
    return POSENC_OK;
}

static posenc_status on_a_line(pe_sketch *s, posenc_error *err)
{
    const int64_t H = s->data->dims.H, N = s->data->length, n = s->data->causal ? N : 2 * N - 1;
    double       *bias;
    posenc_status status = check_heads(s, HEADS_MOST, err);
    if (!status)
        status = (s->part->row_limit ? read_two_lines : read_line)(s, n, &bias, err);
    if (status)
        return status;
    double   *x      = pe_take_range(s, (double)(N - 1), -1, n);
    pe_curve *curves = x ? pe_set_curves(s, s->figure, x, bias, n, (int)H) : NULL;
    if (!curves)
        return pe_plot_no_memory(err);
    for (int h = 0; h < (int)H; h++)
        curves[h].name = head_name(s, h);
    s->figure->ordered = H > 1;
    s->figure->x_label = "distance t (tokens), positive = the key lies in the past";
    s->figure->y_label = "bias added to the score";
    return POSENC_OK;
}

/* ---------------------------------------------------------------- on a window --------------- */

/* Rows and columns of the window that bounds the room's positions, if it has columns. */
static int has_window(const pe_sketch *s, int64_t *rows, int64_t *cols)
{
    char      text[PE_SETTING_LENGTH];
    long long r, c;
    if (!s->part->row_limit)
        return 0;
    pe_setting_text(s, s->part->row_limit, text);
    if (sscanf(text, "%lldx%lld", &r, &c) != 2 || c < 2)
        return 0;
    *rows = r;
    *cols = c;
    return 1;
}

int pe_picture_is_map(const posenc_encoding *e)
{
    const pe_sketch s = {.e = e, .part = posenc_encoding_part(e, POSENC_SCORE)};
    int64_t         rows, cols;
    return s.part && has_window(&s, &rows, &cols);
}

static void label_map(pe_figure *f)
{
    f->square_cells = 1;
    f->x_label      = "columns from key to query";
    f->y_label      = "rows from key to query";
    f->value_label  = "bias";
}

/* Offset (dy, dx) = query less key stands at (dy + rows - 1, dx + cols - 1). bias [n, n] of one head. */
static posenc_status set_map(pe_sketch *s, pe_figure *f, const double *bias, int64_t rows, int64_t cols,
                             posenc_error *err)
{
    const int64_t height = 2 * rows - 1, width = 2 * cols - 1, n = rows * cols;
    double       *values = pe_take_numbers(s, height * width);
    if (!values)
        return pe_plot_no_memory(err);
    for (int64_t k = 0; k < height * width; k++) {
        const int64_t dy = k / width - rows + 1, dx = k % width - cols + 1;
        const int64_t query = (dy > 0 ? dy : 0) * cols + (dx > 0 ? dx : 0), key = query - dy * cols - dx;
        values[k] = bias[query * n + key];
    }
    pe_set_grid(f, values, height, width);
    label_map(f);
    f->x0 = (double)(1 - cols);
    f->y0 = (double)(1 - rows);
    return POSENC_OK;
}

/* Row i is query i, column j key j. */
static void set_matrix(pe_figure *f, const double *bias, int64_t n)
{
    pe_set_grid(f, bias, n, n);
    f->square_cells = 1;
    f->x_label      = "key (position)";
    f->y_label      = "query (position)";
    f->value_label  = "bias";
}

/* One range of colours for all heads: centred at zero, where there is something on both sides of it. */
static void share_scale(pe_figure *panels, int count)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < count; k++)
        for (int64_t i = 0; i < panels[k].rows * panels[k].cols; i++) {
            low  = fmin(low, panels[k].values[i]);
            high = fmax(high, panels[k].values[i]);
        }
    const double most = fmax(fabs(low), fabs(high));
    for (int k = 0; k < count; k++) {
        panels[k].signed_scale = low < 0 && high > 0;
        panels[k].low          = panels[k].signed_scale ? -most : low;
        panels[k].high         = panels[k].signed_scale ? most : high;
    }
}

/* A panel per head of bias [H, n, n]: a map of offsets, or, without rows, the matrix itself. */
static posenc_status set_heads(pe_sketch *s, const double *bias, int64_t n, int64_t rows, int64_t cols,
                               posenc_error *err)
{
    const int     H      = (int)s->data->dims.H;
    posenc_status status = POSENC_OK;
    pe_figure    *panels = pe_set_panels(s, s->figure, H, H < MAP_COLUMNS ? H : MAP_COLUMNS);
    if (!panels)
        return pe_plot_no_memory(err);
    for (int h = 0; h < H && !status; h++) {
        if (rows)
            status = set_map(s, &panels[h], bias + h * n * n, rows, cols, err);
        else
            set_matrix(&panels[h], bias + h * n * n, n);
        panels[h].title = head_name(s, h);
    }
    if (!status)
        share_scale(panels, H);
    return status;
}

static posenc_status on_a_window(pe_sketch *s, int64_t rows, int64_t cols, posenc_error *err)
{
    const int64_t n = rows * cols;
    double       *bias;
    posenc_status status = check_heads(s, MAPS_MOST, err);
    if (!status && n > MOST_TOKENS)
        return pe_plot_fail(err, POSENC_ARGUMENT,
                            "picture: a window of %lldx%lld is too large; at most %d tokens", (long long)rows,
                            (long long)cols, MOST_TOKENS);
    if (!status)
        status = read_bias(s, 0, n, n, &bias, err);
    s->what = pe_take_text(s, "bias by offset on a window of %lldx%lld", (long long)rows, (long long)cols);
    return status ? status : set_heads(s, bias, n, rows, cols, err);
}

/* ---------------------------------------------------------------- of two positions ---------- */

/* Does the room know positions one by one, up to a limit, and not by their distance (tupe)? */
static int is_absolute(const pe_sketch *s)
{
    char text[PE_SETTING_LENGTH];
    if (s->part->by_distance || !s->part->row_limit)
        return 0;
    pe_setting_text(s, s->part->row_limit, text);
    return !strchr(text, 'x');
}

static posenc_status of_two_positions(pe_sketch *s, posenc_error *err)
{
    const int64_t n = s->data->length;
    double       *bias;
    posenc_status status = check_heads(s, MAPS_MOST, err);
    if (!status && n > MOST_TOKENS)
        return pe_plot_fail(err, POSENC_ARGUMENT,
                            "picture: length is %lld; a bias of every two positions is drawn for 2 to %d",
                            (long long)n, MOST_TOKENS);
    if (!status)
        status = read_bias(s, 0, n, n, &bias, err);
    s->what = "bias of every two positions";
    return status ? status : set_heads(s, bias, n, 0, 0, err);
}

posenc_status pe_make_bias(pe_sketch *s, posenc_error *err)
{
    int64_t rows, cols;
    if (has_window(s, &rows, &cols))
        return on_a_window(s, rows, cols, err);
    return is_absolute(s) ? of_two_positions(s, err) : on_a_line(s, err);
}

/* ---------------------------------------------------------------- mass ---------------------- */

void pe_share_within(double *scores, int64_t n)
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

/* Number of nearest keys that have the part together. */
static int64_t reaches(const double *shares, int64_t n, double part)
{
    int64_t count = 1;
    while (count < n && shares[count - 1] < part)
        count++;
    return count;
}

pe_curve *pe_draw_mass(pe_sketch *s, const double *shares, const char *const *names, int count, int64_t n)
{
    pe_figure *f      = s->figure;
    double    *x      = pe_take_range(s, 1, 1, n);
    pe_curve  *curves = x ? pe_set_curves(s, f, x, shares, n, count) : NULL;
    for (int k = 0; curves && k < count; k++)
        curves[k].name =
            pe_take_text(s, "%s: 90 %% in %lld", names[k], (long long)reaches(shares + k * n, n, 0.9));
    f->ordered = count > 1;
    f->log_x   = 1;
    f->low     = 0;
    f->high    = 1;
    f->x_label = pe_take_text(s, "nearest keys, the query's own first (of %lld, log scale)", (long long)n);
    f->y_label = "their share of the attention";
    return curves;
}

posenc_status pe_make_bias_mass(pe_sketch *s, posenc_error *err)
{
    const int64_t H = s->data->dims.H, n = s->data->length;
    double       *bias;
    const char   *names[HEADS_MOST];
    posenc_status status = check_heads(s, HEADS_MOST, err);
    if (!status)
        status = read_bias(s, n - 1, 1, n, &bias, err);
    double *shares = status ? NULL : pe_take_numbers(s, H * n);
    if (!shares)
        return status ? status : pe_plot_no_memory(err);
    for (int64_t h = 0; h < H; h++) {
        names[h] = head_name(s, h);
        for (int64_t t = 0; t < n; t++)
            shares[h * n + t] = bias[h * n + n - 1 - t];
        pe_share_within(shares + h * n, n);
    }
    return pe_draw_mass(s, shares, names, (int)H, n) ? POSENC_OK : pe_plot_no_memory(err);
}
