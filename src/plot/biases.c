/* SPDX-License-Identifier: MIT */
/*
 * biases.c: biases of scores, the attention that they make by themselves, and the buckets of distances
 *
 *   bias     per head against the distance t; of an encoding with a window of rows and columns, a map of
 *            offsets per head; of one that knows positions one by one (tupe), a matrix of queries and keys
 *            per head
 *   mass     softmax of the bias alone: the share of the attention on the nearest keys, and on how many of
 *            them 90 % of it lies
 *   buckets  left the bucket of every distance, with its sign; right the buckets of all pairs of a query and
 *            a key, as the scores see them: exact integers by posenc_index_map, with the settings of the
 *            encoding; of shaw the clipped distance, whose vector a_x the pair gets. To add an encoding with
 *            buckets, add a row to the table: its map, the sign of the map's argument, and its settings.
 *   factors  urpe's: what multiplies each weight, by distance. With v_j the unit vector j, output channel j
 * is the weight times its factor; the weight itself is the softmax of the scores. So no encoding need be
 *            known.
 *
 * Surprises  The bias by distance is read for one query and a range of keys: that is every distance once, in
 *            linear memory. A map needs every pair of the window once; an offset is read at the first pair
 *            that has it.
 */
#include "plot/sketch.h"

#include <math.h>
#include <posenc/positions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

enum { HEADS_MOST = 64, MAPS_MOST = 16, MAP_COLUMNS = 4, MOST_TOKENS = 1024, MOST_SETTINGS = 3 };

static const char *head_name(pe_sketch *s, int64_t h)
{
    return pe_sketch_text(s, "head %lld", (long long)h);
}

static void check_heads(pe_sketch *s, int most)
{
    if (s->data->dims.H > most)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: %lld heads are too many; %s is drawn for at most %d heads",
                         (long long)s->data->dims.H, s->part->name, most);
}

/* bias [H, Lq, Lk] of queries from q0 on and keys from 0 on. */
static double *read_bias(pe_sketch *s, int64_t q0, int64_t Lq, int64_t Lk)
{
    const int64_t H = s->data->dims.H, shape[3] = {H, Lq, Lk}, most = q0 + Lq > Lk ? q0 + Lq : Lk;
    posenc_dims   dims = s->data->dims;
    dims.B             = 1;
    dims.Lq = dims.Lk = dims.Lk > most ? dims.Lk : most;
    double *bias =
        pe_sketch_prepare(s, s->e, &dims, POSENC_RUN_SCORES) ? pe_sketch_numbers(s, H * Lq * Lk) : NULL;
    if (!bias)
        return NULL;
    posenc_tensor out = posenc_tensor_contiguous(bias, POSENC_DTYPE_F64, 3, shape), *tokens;
    dims.Lq           = Lq;
    dims.Lk           = Lk;
    s->status         = pe_tokens_draw(s->e, &dims, 0, &tokens, s->err); /* those of a drawn sequence */
    const posenc_attend_in in = {.size   = sizeof in,
                                 .q_pos  = posenc_positions_range((double)q0, 1),
                                 .k_pos  = posenc_positions_range(0, 1),
                                 .params = s->data->params,
                                 .tokens = tokens};
    if (!s->status)
        s->status = pe_tokens_bias(s->plan, &in, &dims, &out, &s->work, s->err);
    pe_tokens_free(s->e, tokens);
    return s->status ? NULL : bias;
}

/* ---------------------------------------------------------------- on a line ----------------- */

/* [H, Lk] of one query at q0 and keys from 0 on. */
typedef double *read_line(pe_sketch *s, int64_t q0, int64_t Lk);

static double *read_bias_line(pe_sketch *s, int64_t q0, int64_t Lk)
{
    return read_bias(s, q0, 1, Lk);
}

/* Bias [H, n] of distances N-1, N-2, ... in tokens, where positions end with N-1: keys in the future belong
   to a query at 0. */
static double *read_two_lines(pe_sketch *s, read_line *read, int64_t n)
{
    const int64_t H = s->data->dims.H, N = s->data->length;
    const double *past = read(s, N - 1, N), *future = past ? read(s, 0, N) : NULL;
    double       *bias = pe_sketch_numbers(s, H * n);
    for (int64_t k = 0; bias && future && k < H * n; k++) {
        const int64_t h = k / n, j = k % n;
        bias[k] = j < N ? past[h * N + j] : future[h * N + j - N + 1];
    }
    return bias;
}

/* A curve per head of lines [H, n] from distance N-1 on. */
static void set_lines(pe_sketch *s, const double *lines, int64_t n, const char *value)
{
    const int64_t H = s->data->dims.H, N = s->data->length;
    pe_curve     *curves =
        pe_sketch_curves(s, s->figure, pe_sketch_range(s, (double)(N - 1), -1, n), lines, n, (int)H);
    for (int h = 0; curves && h < (int)H; h++)
        curves[h].name = head_name(s, h);
    s->figure->ordered = H > 1;
    pe_sketch_labels(s->figure, "distance t (tokens), positive = the key lies in the past", value, NULL);
}

static void draw_two_lines(pe_sketch *s, read_line *read, const char *value)
{
    const int64_t N = s->data->length, n = s->data->causal ? N : 2 * N - 1;
    set_lines(s, s->status ? NULL : read_two_lines(s, read, n), n, value);
}

/* Without a limit of positions: one query at N-1, and keys from 0 on. */
static void draw_by_distance(pe_sketch *s)
{
    const int64_t N = s->data->length, n = s->data->causal ? N : 2 * N - 1;
    const char   *value = "bias added to the score";
    check_heads(s, HEADS_MOST);
    if (s->part->row_limit)
        draw_two_lines(s, read_bias_line, value);
    else
        set_lines(s, read_bias(s, N - 1, 1, n), n, value);
}

/* ---------------------------------------------------------------- on a window --------------- */

/* What limits the encoding's positions: 2 a window of rows and columns, "7x7", 1 a number of positions, 0
   nothing, or a window of one column. */
static int axes_of_limit(const pe_sketch *s, int64_t *rows, int64_t *cols)
{
    char      text[PE_SETTING_LENGTH];
    long long r = 0, c = 0;
    if (!s->part->row_limit)
        return 0;
    pe_sketch_setting(s, s->part->row_limit, text);
    const int axes = sscanf(text, "%lldx%lld", &r, &c);
    *rows          = r;
    *cols          = c;
    return axes != 2 ? 1 : c >= 2 ? 2 : 0;
}

int pe_biases_is_map(const posenc_encoding *e)
{
    const pe_sketch s = {.e = e, .part = posenc_encoding_part(e, POSENC_PLACE_SCORE)};
    int64_t         rows, cols;
    return s.part && axes_of_limit(&s, &rows, &cols) == 2;
}

/* Offset (dy, dx) = query - key stands at (dy + rows - 1, dx + cols - 1). bias [n, n] of one head. */
static void set_offset_map(pe_sketch *s, pe_figure *f, const double *bias, int64_t rows, int64_t cols)
{
    const int64_t height = 2 * rows - 1, width = 2 * cols - 1, n = rows * cols;
    double       *values = pe_sketch_numbers(s, height * width);
    if (!values)
        return;
    for (int64_t k = 0; k < height * width; k++) {
        const int64_t dy = k / width - rows + 1, dx = k % width - cols + 1;
        const int64_t query = (dy > 0 ? dy : 0) * cols + (dx > 0 ? dx : 0), key = query - dy * cols - dx;
        values[k] = bias[query * n + key];
    }
    pe_sketch_grid(f, values, height, width);
    pe_sketch_labels(f, "columns from key to query", "rows from key to query", "bias");
    f->x0 = (double)(1 - cols);
    f->y0 = (double)(1 - rows);
}

/* One range of colours for all heads: centred at zero, where there are values on both sides of it. */
static void share_signed_scale(pe_figure *panels, int count)
{
    double low, high;
    pe_colours_extremes(panels, count, &low, &high);
    const int    is_signed = low < 0 && high > 0;
    const double most      = fmax(fabs(low), fabs(high));
    for (int k = 0; k < count; k++) {
        panels[k].signed_scale = is_signed;
        panels[k].low          = is_signed ? -most : low;
        panels[k].high         = is_signed ? most : high;
    }
}

/* A panel per head: a map of offsets, or, without rows, the matrix itself, whose row i is query i, column j
 * key j. */
static void set_heads(pe_sketch *s, int64_t n, int64_t rows, int64_t cols)
{
    const int     H      = (int)s->data->dims.H;
    const double *bias   = read_bias(s, 0, n, n);
    pe_figure    *panels = pe_sketch_panels(s, s->figure, H, H < MAP_COLUMNS ? H : MAP_COLUMNS);
    for (int h = 0; panels && h < H; h++) {
        if (rows)
            set_offset_map(s, &panels[h], bias + h * n * n, rows, cols);
        else {
            pe_sketch_grid(&panels[h], bias + h * n * n, n, n);
            pe_sketch_labels(&panels[h], "key (position)", "query (position)", "bias");
        }
        panels[h].square_cells = 1;
        panels[h].title        = head_name(s, h);
    }
    if (!s->status)
        share_signed_scale(panels, H);
}

static void draw_window(pe_sketch *s, int64_t rows, int64_t cols)
{
    const int64_t n = rows * cols;
    check_heads(s, MAPS_MOST);
    if (n > MOST_TOKENS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: a window of %lldx%lld is too large; at most %d tokens are drawn",
                         (long long)rows, (long long)cols, MOST_TOKENS);
    s->what = pe_sketch_text(s, "bias by offset on a window of %lldx%lld", (long long)rows, (long long)cols);
    set_heads(s, n, rows, cols);
}

static void draw_by_pair(pe_sketch *s)
{
    const int64_t n = s->data->length;
    check_heads(s, MAPS_MOST);
    if (n > MOST_TOKENS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: length is %lld; a bias of every pair of positions is drawn for 2 to %d",
                         (long long)n, MOST_TOKENS);
    s->what = "bias of every pair of positions";
    set_heads(s, n, 0, 0);
}

/* An encoding with a limit of positions whose bias is not by distance (tupe) has one for each pair. */
void pe_biases_make(pe_sketch *s)
{
    int64_t   rows, cols;
    const int axes = axes_of_limit(s, &rows, &cols);
    if (axes == 2)
        draw_window(s, rows, cols);
    else if (!s->part->by_distance && axes == 1)
        draw_by_pair(s);
    else
        draw_by_distance(s);
}

void pe_biases_mass(pe_sketch *s)
{
    const int64_t H = s->data->dims.H, n = s->data->length;
    const char   *names[HEADS_MOST];
    check_heads(s, HEADS_MOST);
    const double *bias   = read_bias(s, n - 1, 1, n);
    double       *shares = pe_sketch_numbers(s, H * n);
    for (int64_t h = 0; shares && h < H; h++) {
        names[h] = head_name(s, h);
        for (int64_t t = 0; t < n; t++)
            shares[h * n + t] = bias[h * n + n - 1 - t];
        pe_sketch_shares(shares + h * n, n);
    }
    pe_sketch_mass(s, shares, names, (int)H, n);
}

/* ---------------------------------------------------------------- factors ------------------- */

/* One query at q0, keys 0 .. n-1, content 0: weights times factors [H,n] into to, scores [H,n] into scores.
 */
static void attend_once(pe_sketch *s, int64_t q0, int64_t n, double *to, double *scores)
{
    const int64_t H = s->data->dims.H, D = s->data->dims.D;
    double       *zeros = pe_sketch_numbers(s, D), *units = pe_sketch_numbers(s, n * n);
    for (int64_t j = 0; units && j < n; j++)
        units[j * n + j] = 1;
    if (s->status)
        return;
    posenc_attend_in in = {
        .size   = sizeof in,
        .q      = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F64, 4, (const int64_t[]){1, H, 1, D}),
        .k      = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F64, 4, (const int64_t[]){1, H, n, D}),
        .v      = posenc_tensor_contiguous(units, POSENC_DTYPE_F64, 4, (const int64_t[]){1, H, n, n}),
        .q_pos  = posenc_positions_range((double)q0, 1),
        .k_pos  = posenc_positions_range(0, 1),
        .params = s->data->params};
    memset(in.q.stride, 0, 3 * sizeof *in.q.stride); /* the same zeros, the same units everywhere */
    memset(in.k.stride, 0, 3 * sizeof *in.k.stride);
    in.v.stride[0] = in.v.stride[1] = 0;
    const int64_t     shape[4]      = {1, H, 1, n};
    posenc_attend_out out           = {.size = sizeof out,
                                       .o    = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 4, shape)};
    posenc_tensor     S             = posenc_tensor_contiguous(scores, POSENC_DTYPE_F64, 4, shape);
    s->status                       = posenc_attend(s->plan, &in, &out, &s->work, s->err);
    if (!s->status)
        s->status = posenc_scores(s->plan, &in, &S, &s->work, s->err);
}

/* Factors [H,n] of the keys 0 .. n-1 for a query at q0. */
static double *read_factors(pe_sketch *s, int64_t q0, int64_t n)
{
    const int64_t H    = s->data->dims.H;
    posenc_dims   dims = s->data->dims;
    dims.B             = 1;
    dims.Lq            = 1;
    dims.Lk            = n;
    dims.Dv            = n;
    double *factors = pe_sketch_numbers(s, H * n), *scores = pe_sketch_numbers(s, H * n);
    if (!scores || !pe_sketch_prepare(s, s->e, &dims, POSENC_RUN_FORWARD | POSENC_RUN_SCORES))
        return NULL;
    attend_once(s, q0, n, factors, scores);
    for (int64_t h = 0; !s->status && h < H; h++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += exp(scores[h * n + j]);
        for (int64_t j = 0; j < n; j++)
            factors[h * n + j] *= sum / exp(scores[h * n + j]);
    }
    return s->status ? NULL : factors;
}

void pe_biases_factors(pe_sketch *s)
{
    check_heads(s, HEADS_MOST);
    if (s->data->length > MOST_TOKENS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: length is %lld; factors are drawn for 2 to %d positions",
                         (long long)s->data->length, MOST_TOKENS);
    draw_two_lines(s, read_factors, "factor of the weight");
}

/* ---------------------------------------------------------------- buckets ------------------- */

/* A setting that is a number, `otherwise` where it is absent or follows from another one. */
static int64_t whole_setting(const pe_sketch *s, const char *name, int64_t otherwise)
{
    char text[PE_SETTING_LENGTH], *end;
    pe_sketch_setting(s, name, text);
    const long long x = strtoll(text, &end, 10);
    return *text && !*end ? x : otherwise;
}

/* By the map of that name, whose settings are the encoding's. */
static void map_buckets(pe_sketch *s, const char *map, const char *const *names, const int64_t *rel,
                        int64_t n, int64_t *to)
{
    char   settings[MOST_SETTINGS * (PE_SETTING_LENGTH + 32)] = "", value[PE_SETTING_LENGTH];
    size_t used                                               = 0;
    for (int i = 0; i < MOST_SETTINGS && names[i]; i++) {
        pe_sketch_setting(s, names[i], value);
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s=%s", used ? " " : "",
                                 names[i], value);
    }
    s->status = posenc_index_map(map, settings, rel, n, to, s->err);
}

static void clip(const int64_t *rel, int64_t n, int64_t shift, int64_t low, int64_t high, int64_t *to)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = rel[i] + shift;
        to[i]           = x < low ? low : x > high ? high : x;
    }
}

static void map_t5(pe_sketch *s, const int64_t *rel, int64_t n, int64_t *to)
{
    static const char *const names[MOST_SETTINGS] = {"num_buckets", "max_distance", "bidirectional"};
    map_buckets(s, "t5", names, rel, n, to);
}

/* Without buckets each distance has a row, up to max_relative_positions. */
static void map_deberta(pe_sketch *s, const int64_t *rel, int64_t n, int64_t *to)
{
    static const char *const names[MOST_SETTINGS] = {"position_buckets", "max_relative_positions",
                                                     "clip_first"};
    const int64_t            buckets              = whole_setting(s, "position_buckets", 0),
                  span = whole_setting(s, "span", whole_setting(s, "max_relative_positions", 1));
    if (buckets)
        map_buckets(s, "deberta", names, rel, n, to);
    else
        clip(rel, n, span, 0, 2 * span - 1, to);
}

static void map_shaw(pe_sketch *s, const int64_t *rel, int64_t n, int64_t *to)
{
    const int64_t k = whole_setting(s, "max_relative", 1);
    clip(rel, n, 0, whole_setting(s, "min_distance", -k), whole_setting(s, "max_distance", k), to);
}

static const struct bucket_map {
    const char *encoding, *value;
    int         sign; /* +1: of t, -1: of -t */
    void (*map)(pe_sketch *s, const int64_t *rel, int64_t n, int64_t *to);
} maps[] = {
    {"t5", "bucket", -1, map_t5},
    {"deberta", "row of the table", 1, map_deberta},
    {"shaw", "clipped distance x", -1, map_shaw},
};

/* Buckets [2n-1] of the distances t = -(n-1) .. n-1. */
static int64_t *read_buckets(pe_sketch *s, const struct bucket_map *map, int64_t n)
{
    int64_t *rel     = pe_sketch_take(s, 2 * n - 1, sizeof *rel),
            *buckets = pe_sketch_take(s, 2 * n - 1, sizeof *buckets);
    for (int64_t i = 0; rel && i < 2 * n - 1; i++)
        rel[i] = map->sign * (i - n + 1);
    if (!s->status)
        map->map(s, rel, 2 * n - 1, buckets);
    return s->status ? NULL : buckets;
}

static void set_distances(pe_sketch *s, pe_figure *f, const int64_t *buckets, int64_t n, const char *value)
{
    double *y = pe_sketch_numbers(s, 2 * n - 1);
    for (int64_t i = 0; y && i < 2 * n - 1; i++)
        y[i] = (double)buckets[i];
    pe_sketch_curves(s, f, pe_sketch_range(s, (double)(1 - n), 1, 2 * n - 1), y, 2 * n - 1, 1);
    pe_sketch_labels(f, "distance t (tokens), positive = past", value, NULL);
    f->title = "by distance";
    f->steps = 1;
}

static void set_pairs(pe_sketch *s, pe_figure *f, const int64_t *buckets, int64_t n, const char *value)
{
    double *values = pe_sketch_numbers(s, n * n);
    if (!values)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            values[i * n + j] = (double)buckets[i - j + n - 1];
    pe_sketch_grid(f, values, n, n);
    pe_sketch_labels(f, "key (position)", "query (position)", value);
    f->title        = "of each pair of a query and a key";
    f->square_cells = 1;
    f->row_names = f->col_names = s->data->words;
    pe_sketch_table(s, f);
}

void pe_biases_buckets(pe_sketch *s)
{
    const struct bucket_map *map = maps, *end = maps + sizeof maps / sizeof *maps;
    const int64_t            n = s->data->length;
    s->unlearned               = 1;
    while (map < end && strcmp(map->encoding, s->part->name) != 0)
        map++;
    if (map == end)
        pe_sketch_refuse(s, POSENC_ERROR_UNSUPPORTED, "picture: no buckets are known for %s", s->part->name);
    if (n > MOST_TOKENS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: length is %lld; buckets are drawn for 2 to %d positions", (long long)n,
                         MOST_TOKENS);
    const int64_t *buckets = s->status ? NULL : read_buckets(s, map, n);
    pe_figure     *panels  = pe_sketch_panels(s, s->figure, 2, 2);
    if (!panels)
        return;
    set_distances(s, &panels[0], buckets, n, map->value);
    set_pairs(s, &panels[1], buckets, n, map->value);
}
