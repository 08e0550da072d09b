/* SPDX-License-Identifier: MIT */
/*
 * picture.c: the pictures of an encoding, through the public door
 *
 *   heatmap     input    the vector of each position, a column each
 *   similarity  input    cosine of the vectors of every two positions
 *   similarity  rotary   q.k / D for q = k = (1, ..., 1), turned to positions t apart
 *   bias        score    what is added to the scores whatever the content, per head, against the distance t
 *
 * Each kind is a row of a table; the encoding's parts say which rows are theirs. A further kind is a further row.
 *
 * Surprises  The bias is asked for one query and a range of keys: that is every distance once, in linear memory.
 *            Everything is computed in double, by the reference executor. A similarity of ones-vectors falls with
 *            the distance; that of random vectors does not, and the picture's title says which it is.
 */
#include "plot/plot.h"

#include "plot/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_TITLE = 200, LONGEST_SPEC = 64, HEADS_MOST = 64, HEAD_NAME = 16, ALIGNMENT = 64 };

struct pe_picture {
    pe_figure figure;
    char      title[LONGEST_TITLE];
    pe_mark   mark;
    double   *values, *x; /* the grid, or all curves one after the other */
    pe_curve  curves[HEADS_MOST];
    char      names[HEADS_MOST][HEAD_NAME];
};

/* What every kind needs while it is made. */
typedef struct sketch {
    const posenc_encoding      *e;
    const posenc_encoding_info *part;
    const pe_picture_data      *data;
    posenc_plan                *plan;
    void                       *work;
} sketch;

static posenc_status no_memory(posenc_error *err)
{
    return pe_plot_fail(err, POSENC_MEMORY, "there is no memory for the picture; ask for a shorter length");
}

/* A plan for sizes, and a workspace for its runs. */
static posenc_status prepare(sketch *s, const posenc_dims *dims, int runs, posenc_error *err)
{
    posenc_options options     = posenc_options_default();
    options.threads            = 1;
    const posenc_status status = posenc_plan_create(&s->plan, s->e, dims, &options, err);
    if (status)
        return status;
    const size_t bytes = posenc_plan_workspace(s->plan, runs);
    s->work            = aligned_alloc(ALIGNMENT, bytes ? bytes : ALIGNMENT);
    return s->work ? POSENC_OK : no_memory(err);
}

static posenc_status allocate(pe_picture *p, int64_t values, int64_t x, posenc_error *err)
{
    p->values = malloc((size_t)values * sizeof *p->values);
    p->x      = malloc((size_t)x * sizeof *p->x);
    return p->values && p->x ? POSENC_OK : no_memory(err);
}

static int is_signed(const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (v[i] < 0)
            return 1;
    return 0;
}

/* ---------------------------------------------------------------- place input --------------- */

/* Rows of positions 0 .. n-1, [n, width]; *width from the encoding. */
static posenc_status read_rows(sketch *s, pe_picture *p, int64_t *width, posenc_error *err)
{
    const posenc_dims *d    = &s->data->dims;
    const int64_t      n    = s->data->length;
    posenc_dims        dims = *d;
    dims.B                  = 1;
    dims.Lq = dims.Lk    = d->Lk > n ? d->Lk : n;
    posenc_status status = prepare(s, &dims, POSENC_FORWARD, err);
    if (status)
        return status;
    *width = posenc_row_width(s->plan);
    status = allocate(p, n * *width > n * n ? n * *width : n * n, n * *width, err);
    if (status)
        return status;
    posenc_tensor        y  = posenc_tensor_contiguous(p->x, POSENC_F64, 3, (const int64_t[]){1, n, *width});
    const posenc_rows_in in = {.pos = posenc_positions_range(0, 1), .params = s->data->params};
    return posenc_rows(s->plan, &in, &y, s->work, err);
}

static void set_grid(pe_picture *p, int64_t rows, int64_t cols, const char *y_label, const char *value_label)
{
    pe_figure *f    = &p->figure;
    f->kind         = PE_GRID;
    f->values       = p->values;
    f->rows         = rows;
    f->cols         = cols;
    f->dx           = 1;
    f->dy           = 1;
    f->x_label      = "position (tokens)";
    f->y_label      = y_label;
    f->value_label  = value_label;
    f->signed_scale = is_signed(p->values, rows * cols);
}

static posenc_status heatmap(sketch *s, pe_picture *p, posenc_error *err)
{
    int64_t             width;
    const int64_t       n      = s->data->length;
    const posenc_status status = read_rows(s, p, &width, err);
    if (status)
        return status;
    for (int64_t c = 0; c < width; c++)
        for (int64_t i = 0; i < n; i++)
            p->values[c * n + i] = p->x[i * width + c];
    set_grid(p, width, n, "channel", "value");
    return POSENC_OK;
}

static double product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static posenc_status similarity_of_rows(sketch *s, pe_picture *p, posenc_error *err)
{
    int64_t             width;
    const int64_t       n      = s->data->length;
    const posenc_status status = read_rows(s, p, &width, err);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double *a = p->x + i * width, *b = p->x + j * width;
            p->values[i * n + j] = product(a, b, width) / sqrt(product(a, a, width) * product(b, b, width));
        }
    set_grid(p, n, n, "position (tokens)", "cosine of the two vectors");
    return POSENC_OK;
}

/* ---------------------------------------------------------------- curves by distance -------- */

static void set_curves(pe_picture *p, int count, int64_t n, const char *y_label)
{
    pe_figure *f   = &p->figure;
    f->kind        = PE_CURVES;
    f->x_label     = "distance t (tokens), positive = the key lies in the past";
    f->y_label     = y_label;
    f->curves      = p->curves;
    f->curve_count = count;
    f->ordered     = count > 1;
    for (int k = 0; k < count; k++)
        p->curves[k] = (pe_curve){.name = p->names[k], .x = p->x, .y = p->values + k * n, .n = n};
}

static posenc_status similarity_by_distance(sketch *s, pe_picture *p, posenc_error *err)
{
    const int64_t D = s->data->dims.D, n = s->data->length, shape[4] = {1, 1, n, D};
    posenc_dims   dims   = s->data->dims;
    posenc_status status = POSENC_OK;
    dims.B               = 1;
    dims.H = dims.G = 1;
    dims.Lq = dims.Lk = dims.Lk > n ? dims.Lk : n;
    if (!dims.d_model)
        dims.d_model = D;
    status = prepare(s, &dims, POSENC_FORWARD, err);
    if (!status)
        status = allocate(p, n * D, n, err);
    if (status)
        return status;
    for (int64_t i = 0; i < n * D; i++)
        p->values[i] = 1;
    const posenc_tensor q  = posenc_tensor_contiguous(p->values, POSENC_F64, 4, shape);
    posenc_rotate_io    io = {.q = q, .to_q = q, .q_pos = posenc_positions_range(0, 1), .direction = 1};
    io.k = io.to_k = (posenc_tensor){0};
    io.k_pos       = io.q_pos;
    status         = posenc_rotate(s->plan, &io, s->work, err);
    /* The key stands at 0 and is the first row; only then may the products overwrite the rows. */
    for (int64_t t = 0; !status && t < n; t++)
        p->x[t] = product(p->values + t * D, p->values, D) / (double)D;
    for (int64_t t = 0; !status && t < n; t++) {
        p->values[t] = p->x[t];
        p->x[t]      = (double)t;
    }
    snprintf(p->names[0], HEAD_NAME, "q = k = ones");
    set_curves(p, 1, n, "score of two ones-vectors, q.k / D");
    return status;
}

static posenc_status bias(sketch *s, pe_picture *p, posenc_error *err)
{
    const int64_t H = s->data->dims.H, N = s->data->length, n = s->data->causal ? N : 2 * N - 1;
    const int64_t shape[3] = {H, 1, n};
    posenc_dims   dims     = s->data->dims;
    if (H > HEADS_MOST)
        return pe_plot_fail(err, POSENC_ARGUMENT, "picture: a bias is drawn for at most %d heads, not %lld",
                            HEADS_MOST, (long long)H);
    dims.B               = 1;
    dims.Lq              = dims.Lk > n ? dims.Lk : n;
    dims.Lk              = dims.Lq;
    posenc_status status = prepare(s, &dims, POSENC_SCORES, err);
    if (!status)
        status = allocate(p, H * n, n, err);
    if (status)
        return status;
    /* One query at N-1; keys from the farthest in the past on. */
    posenc_tensor          out = posenc_tensor_contiguous(p->values, POSENC_F64, 3, shape);
    const posenc_attend_in in  = {.q_pos  = posenc_positions_range((double)(N - 1), 1),
                                  .k_pos  = posenc_positions_range(0, 1),
                                  .params = s->data->params};
    status                     = posenc_bias(s->plan, &in, &out, s->work, err);
    for (int64_t j = 0; j < n; j++)
        p->x[j] = (double)(N - 1 - j);
    for (int h = 0; h < (int)H; h++)
        snprintf(p->names[h], HEAD_NAME, "head %d", h + 1);
    set_curves(p, (int)H, n, "bias added to the score");
    return status;
}

/* ---------------------------------------------------------------- the table of kinds -------- */

static const struct kind {
    const char  *name;
    posenc_place place;
    const char  *what;
    posenc_status (*make)(sketch *s, pe_picture *p, posenc_error *err);
} kinds[] = {
    {"heatmap", POSENC_INPUT, "the vector of each position", heatmap},
    {"similarity", POSENC_INPUT, "similarity of positions", similarity_of_rows},
    {"similarity", POSENC_ROTARY, "score of equal vectors by distance", similarity_by_distance},
    {"bias", POSENC_SCORE, "bias by distance", bias},
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
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        for (const char *at = part && part->pictures ? part->pictures : ""; *at && count < PE_MOST_OFFERS;) {
            const size_t n     = strcspn(at, ",");
            pe_offer    *offer = &offers[count];
            offer->place       = (posenc_place)place;
            snprintf(offer->kind, sizeof offer->kind, "%.*s", (int)n, at);
            count += find_kind(offer) != NULL;
            at += n + (at[n] == ',');
        }
    }
    return count;
}

static void set_title(const sketch *s, pe_picture *p, const struct kind *kind)
{
    const char *spec  = posenc_encoding_spec(s->e);
    const char *named = strlen(spec) <= LONGEST_SPEC ? spec : s->part->name;
    snprintf(p->title, sizeof p->title, "%s: %s%s%s", named, kind->what, s->data->origin ? "\n" : "",
             s->data->origin ? s->data->origin : "");
    p->figure.title = p->title;
    p->mark         = (pe_mark){s->data->mark, s->data->mark_label};
    if (s->data->mark > 0) {
        p->figure.marks      = &p->mark;
        p->figure.mark_count = 1;
    }
}

posenc_status pe_picture_create(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                const pe_picture_data *data, posenc_error *err)
{
    const struct kind *kind = find_kind(offer);
    sketch             s    = {.e = e, .part = posenc_encoding_part(e, offer->place), .data = data};
    *picture                = NULL;
    if (!kind || !s.part)
        return pe_plot_fail(err, POSENC_ARGUMENT, "picture: %s has no %s at place %s",
                            posenc_encoding_spec(e), offer->kind, posenc_place_name(offer->place));
    if (data->length < 2)
        return pe_plot_fail(err, POSENC_ARGUMENT, "picture: length is %lld; it must be at least 2",
                            (long long)data->length);
    pe_picture *made = calloc(1, sizeof *made);
    if (!made)
        return no_memory(err);
    posenc_status status = kind->make(&s, made, err);
    set_title(&s, made, kind);
    posenc_plan_free(s.plan);
    free(s.work);
    if (status) {
        pe_picture_free(made);
        return status;
    }
    *picture = made;
    return POSENC_OK;
}

const pe_figure *pe_picture_figure(const pe_picture *picture)
{
    return &picture->figure;
}

void pe_picture_free(pe_picture *picture)
{
    if (!picture)
        return;
    free(picture->values);
    free(picture->x);
    free(picture);
}
