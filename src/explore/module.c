/* SPDX-License-Identifier: MIT */
/*
 * module.c: what the explorer's page asks of the library, compiled to WebAssembly
 *
 * The page draws and computes nothing: it sends a request, lines "name=value", and gets JSON in which arrays
 * are {"at": address, "n": count} of float64 in this module's memory. They stay until the next request. What
 * is drawn, and its CSV, are those of `posenc plot` (plot/plot.h) with the same names and the same defaults.
 *
 *   explore_offers    of SPEC: {"spec", "kinds": [{"kind", "place", "length", "dim", "axes", "map"}]}
 *   explore_picture   a picture of one or two SPECs: a figure (put_figure)
 *   explore_attend    scores and weights of the words of a sentence under SPEC: a figure of two grids
 *   explore_registry  every encoding with its settings
 *   explore_csv       the numbers of the figure that was made last
 *
 * All return text that lives until the next call; {"error": sentence} where something is wrong.
 */
#include "explore/text.h"
#include "plot/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPECS = 2, MOST_PARAMS = 64, MOST_WORDS = 32, TEXT = 160 };

/* One encoding of a picture; what it is made of is freed with the next request. */
typedef struct part {
    posenc_encoding *e;
    pe_offer         offer;
    pe_picture_data  data;
    posenc_tensor    params[MOST_PARAMS];
    int              varied[MOST_PARAMS];
    char             origin[TEXT];
    pe_picture      *picture;
} part;

static struct {
    part             parts[MOST_SPECS];
    int              count;
    pe_picture      *joint;
    const pe_figure *figure;
    double          *numbers; /* of explore_attend */
    char             words[1024];
    const char      *word[MOST_WORDS];
    int              word_count;
    char            *answer;
} now;

/* What the module exports: cmake/explore.cmake names them. */
const char *explore_picture(const char *request);
const char *explore_offers(const char *request);
const char *explore_attend(const char *request);
const char *explore_registry(void);
const char *explore_csv(void);
char       *explore_memory(size_t n);
void        explore_free(char *memory);

/* ---------------------------------------------------------------- requests ------------------ */

/* The value of a line "name=value" of the request, up to n-1 bytes; "" if there is no such line. */
static const char *value_of(const char *request, const char *name, char *to, size_t n)
{
    const size_t length = strlen(name);
    *to                 = '\0';
    for (const char *at = request; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (!strncmp(at, name, length) && at[length] == '=')
            snprintf(to, n, "%.*s", (int)strcspn(at + length + 1, "\n"), at + length + 1);
    return to;
}

static double number_of(const char *request, const char *name, double otherwise)
{
    char text[64];
    return *value_of(request, name, text, sizeof text) ? strtod(text, NULL) : otherwise;
}

static int64_t whole_of(const char *request, const char *name, int64_t otherwise)
{
    return (int64_t)number_of(request, name, (double)otherwise);
}

static void forget(void)
{
    pe_picture_free(now.joint);
    for (int i = 0; i < MOST_SPECS; i++) {
        part *p = &now.parts[i];
        pe_picture_free(p->picture);
        for (int k = 0; k < MOST_PARAMS; k++)
            free(p->params[k].data);
        posenc_encoding_free(p->e);
    }
    free(now.numbers);
    free(now.answer);
    memset(&now, 0, sizeof now);
}

static const char *answer(pe_explore_text *text)
{
    free(now.answer);
    return now.answer = pe_explore_finish(text);
}

static const char *refuse(const posenc_error *err)
{
    pe_explore_text text = {0};
    pe_explore_put(&text, "{\"error\": ");
    pe_explore_string(&text, err->message);
    pe_explore_put(&text, "}");
    return answer(&text);
}

static posenc_status fail(posenc_error *err, posenc_status status, const char *sentence)
{
    err->status = status;
    snprintf(err->message, sizeof err->message, "%s", sentence);
    return status;
}

/* "shape=16x32" and the like: settings by which an encoding of a grid learns its size. */
static void grid_settings(const posenc_encoding *e, int64_t rows, int64_t cols, char *to, size_t n)
{
    static const char *const    names[] = {"shape", "grid_out", "grid_in"};
    const posenc_encoding_info *info    = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    size_t                      used    = 0;
    *to                                 = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int s = 0; info && s < info->setting_count; s++)
            if (!strcmp(info->settings[s].name, names[i]) && !strstr(posenc_encoding_spec(e), names[i]))
                used += (size_t)snprintf(to + used, n - used, "%s%s=%lldx%lld", used ? " " : "", names[i],
                                         (long long)rows, (long long)cols);
}

static posenc_status create_again(part *p, const char *settings, posenc_error *err)
{
    posenc_encoding *made;
    char             spec[512];
    snprintf(spec, sizeof spec, "%s", posenc_encoding_spec(p->e));
    const posenc_status status = posenc_encoding_create(&made, spec, settings, err);
    if (status)
        return status;
    posenc_encoding_free(p->e);
    p->e = made;
    return POSENC_OK;
}

static posenc_status read_spec(part *p, const char *request, int index, posenc_error *err)
{
    char name[8], spec[512];
    snprintf(name, sizeof name, index ? "spec%d" : "spec", index + 1);
    return posenc_encoding_create(&p->e, value_of(request, name, spec, sizeof spec), NULL, err);
}

/* ---------------------------------------------------------------- parameters ---------------- */

/* As they are initialised; those without a start of their own cannot be shown. */
static posenc_status make_params(part *p, const posenc_dims *dims, int64_t seed, posenc_error *err)
{
    const int count   = posenc_param_count(p->e);
    int       trained = 0;
    if (count > MOST_PARAMS)
        return fail(err, POSENC_ERROR_UNSUPPORTED, "it has more parameters than this page holds");
    for (int i = 0; i < count; i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS], n = 1;
        const posenc_status status = posenc_param_shape(p->e, dims, i, &ndim, shape, err);
        if (status)
            return status;
        for (int a = 0; a < ndim; a++)
            n *= shape[a];
        p->params[i] =
            posenc_tensor_contiguous(calloc((size_t)n + 1, sizeof(double)), POSENC_DTYPE_F64, ndim, shape);
        if (!p->params[i].data)
            return fail(err, POSENC_ERROR_MEMORY, "not enough memory for its parameters");
        trained += p->varied[i] = posenc_param_trainable(p->e, i);
    }
    if (trained)
        snprintf(p->origin, sizeof p->origin, "untrained: initial parameters, seed %lld", (long long)seed);
    p->data.params = p->params;
    p->data.origin = trained ? p->origin : NULL;
    return count ? posenc_param_init(p->e, dims, p->params, (uint64_t)seed, err) : POSENC_OK;
}

/* ---------------------------------------------------------------- pictures ------------------ */

/* Where the picture is one of a grid, or the window of a bias. */
static posenc_status fit_grid(part *p, const char *request, int64_t length, int64_t dim, posenc_error *err)
{
    const posenc_dims dims = {.B = 1, .Lq = length, .Lk = length, .L = length, .d_model = dim};
    int64_t           rows = whole_of(request, "rows", 0), cols = whole_of(request, "cols", 0);
    char              text[160];
    if (p->offer.place == POSENC_PLACE_ROTARY) {
        const char *spec = posenc_encoding_spec(p->e);
        if ((!strstr(spec, "schedule=dynamic") && !strstr(spec, "schedule=longrope")) ||
            strstr(spec, "length="))
            return POSENC_OK;
        snprintf(text, sizeof text, "%s.length=%lld", posenc_encoding_part(p->e, POSENC_PLACE_ROTARY)->name,
                 (long long)length);
        return create_again(p, text, err);
    }
    if (p->offer.place != POSENC_PLACE_INPUT) {
        const posenc_encoding_info *info = posenc_encoding_part(p->e, POSENC_PLACE_SCORE);
        if (!rows || !info || !pe_biases_is_map(p->e))
            return POSENC_OK;
        snprintf(text, sizeof text, "%s.%s=%lldx%lld", info->name, info->row_limit, (long long)rows,
                 (long long)cols);
        return create_again(p, text, err);
    }
    if (!rows && (!length || pe_picture_axes(p->e, &dims) > 1))
        rows = 16, cols = 32;
    if (!rows)
        return POSENC_OK;
    p->data.rows = rows;
    p->data.cols = cols;
    grid_settings(p->e, rows, cols, text, sizeof text);
    return *text ? create_again(p, text, err) : POSENC_OK;
}

static posenc_status choose_offer(part *p, const char *kind, posenc_error *err)
{
    pe_offer  offers[PE_MOST_OFFERS];
    const int count = pe_picture_offers(p->e, offers);
    for (int i = 0; i < count; i++)
        if (!strcmp(offers[i].kind, kind)) {
            p->offer = offers[i];
            return POSENC_OK;
        }
    snprintf(err->message, sizeof err->message, "%s has no picture \"%s\"", posenc_encoding_spec(p->e), kind);
    return err->status = POSENC_ERROR_ARGUMENT;
}

static posenc_status make_part(part *p, const char *request, int index, posenc_error *err)
{
    char                   kind[PE_KIND_LENGTH];
    const pe_picture_size *size = pe_picture_size_of(value_of(request, "kind", kind, sizeof kind));
    posenc_status          status;
    if (!size)
        return fail(err, POSENC_ERROR_ARGUMENT, "there is no such picture");
    const int64_t length =
        now.word_count && !strcmp(kind, "words") ? now.word_count : whole_of(request, "length", size->length);
    const int64_t dim = whole_of(request, "dim", size->dim), heads = whole_of(request, "heads", 8);
    const int64_t seed = whole_of(request, "seed", 1);
    if ((status = read_spec(p, request, index, err)) || (status = choose_offer(p, kind, err)) ||
        (status = fit_grid(p, request, length, dim, err)))
        return status;
    const posenc_encoding_info *info     = posenc_encoding_part(p->e, p->offer.place);
    const int                   is_input = p->offer.place == POSENC_PLACE_INPUT;
    pe_picture_data            *d        = &p->data;
    const int64_t               n        = d->rows ? d->rows * d->cols : length;
    const int64_t most = p->offer.place == POSENC_PLACE_SCORE && !info->causal_only ? 2 * n - 1 : n;
    d->length          = length;
    d->causal          = info->causal_only;
    d->draws           = whole_of(request, "draws", 0);
    d->seed            = (uint64_t)seed;
    d->products        = (int)whole_of(request, "products", 0);
    d->transposed      = (int)whole_of(request, "transpose", 0);
    d->binary_counter  = (int)whole_of(request, "counter", 0) && !d->rows;
    d->words           = now.word_count && !strcmp(kind, "words") ? now.word : NULL;
    d->dims            = (posenc_dims){.B       = 1,
                                       .H       = heads,
                                       .D       = dim,
                                       .Lq      = most,
                                       .Lk      = most,
                                       .L       = n,
                                       .d_model = is_input ? dim : heads * dim};
    if ((status = make_params(p, &d->dims, seed, err)))
        return status;
    return pe_picture_create_varied(&p->picture, p->e, &p->offer, d, p->varied, p->origin, sizeof p->origin,
                                    err);
}

static void read_words(const char *request)
{
    value_of(request, "words", now.words, sizeof now.words);
    for (char *at = strtok(now.words, " "); at && now.word_count < MOST_WORDS; at = strtok(NULL, " "))
        now.word[now.word_count++] = at;
}

static const char *show(const pe_figure *figure)
{
    pe_explore_text text = {0};
    now.figure           = figure;
    pe_explore_figure(&text, figure);
    return answer(&text);
}

const char *explore_picture(const char *request)
{
    posenc_error  err;
    posenc_status status = POSENC_OK;
    char          second[8];
    forget();
    read_words(request);
    now.count = *value_of(request, "spec2", second, sizeof second) ? 2 : 1;
    for (int i = 0; i < now.count && !status; i++)
        status = make_part(&now.parts[i], request, i, &err);
    pe_picture *const pictures[] = {now.parts[0].picture, now.parts[1].picture};
    if (!status && now.count > 1)
        status = pe_picture_join(&now.joint, pictures, now.count, &err);
    return status ? refuse(&err) : show(pe_picture_figure(now.joint ? now.joint : pictures[0]));
}

const char *explore_offers(const char *request)
{
    posenc_error    err;
    pe_offer        offers[PE_MOST_OFFERS];
    pe_explore_text text = {0};
    forget();
    part *p = &now.parts[0];
    if (read_spec(p, request, 0, &err))
        return refuse(&err);
    const int count = pe_picture_offers(p->e, offers);
    pe_explore_put(&text, "{\"spec\": ");
    pe_explore_string(&text, posenc_encoding_spec(p->e));
    pe_explore_put(&text, ", \"kinds\": [");
    for (int i = 0; i < count; i++) {
        const pe_picture_size *size = pe_picture_size_of(offers[i].kind);
        const posenc_dims      dims = {
                 .B = 1, .Lq = size->length, .Lk = size->length, .L = size->length, .d_model = size->dim};
        const int is_input = offers[i].place == POSENC_PLACE_INPUT;
        pe_explore_put(
            &text, "%s{\"kind\": \"%s\", \"place\": \"%s\", \"length\": %lld, \"dim\": %lld, \"grid\": %s}",
            i ? ", " : "", offers[i].kind, posenc_place_name(offers[i].place), (long long)size->length,
            (long long)size->dim,
            (is_input && (!size->length || pe_picture_axes(p->e, &dims) > 1)) ||
                    (offers[i].place == POSENC_PLACE_SCORE && pe_biases_is_map(p->e) &&
                     !strcmp(offers[i].kind, "bias"))
                ? "true"
                : "false");
    }
    pe_explore_put(&text, "]}");
    return answer(&text);
}

/* ---------------------------------------------------------------- the registry -------------- */

static void put_member(pe_explore_text *t, const char *name, const char *text)
{
    pe_explore_put(t, ", \"%s\": ", name);
    pe_explore_string(t, text);
}

static void put_settings(pe_explore_text *t, const posenc_setting_info *settings, int count)
{
    pe_explore_put(t, ", \"settings\": [");
    for (int i = 0; i < count; i++) {
        pe_explore_put(t, "%s{\"name\": ", i ? ", " : "");
        pe_explore_string(t, settings[i].name);
        put_member(t, "type", settings[i].type), put_member(t, "default", settings[i].default_value);
        put_member(t, "range", settings[i].range), put_member(t, "meaning", settings[i].meaning);
        pe_explore_put(t, "}");
    }
    pe_explore_put(t, "]");
}

/* Every encoding: name, place, title, formula and what its letters mean, models, settings. */
const char *explore_registry(void)
{
    pe_explore_text t = {0};
    forget();
    pe_explore_put(&t, "{\"version\": \"%s\", \"scales\": [", posenc_version());
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const pe_rgb *stops;
        const int     n = pe_colours_stops(is_signed, &stops);
        for (int i = 0; i < n; i++)
            pe_explore_put(&t, "%s[%d, %d, %d]",
                           i           ? ", "
                           : is_signed ? ", ["
                                       : "[",
                           stops[i].r, stops[i].g, stops[i].b);
        pe_explore_put(&t, "]");
    }
    pe_explore_put(&t, "], \"encodings\": [");
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *e = posenc_encoding_info_at(i);
        pe_explore_put(&t, "%s{\"place\": \"%s\"", i ? ", " : "", posenc_place_name(e->place));
        put_member(&t, "name", e->name), put_member(&t, "title", e->title);
        put_member(&t, "formula", e->formula), put_member(&t, "symbols", e->symbols);
        put_member(&t, "models", e->models), put_member(&t, "beyond", e->beyond);
        put_member(&t, "paper", e->paper), put_member(&t, "pictures", e->pictures);
        put_settings(&t, e->settings, e->setting_count);
        pe_explore_put(&t, "}");
    }
    pe_explore_put(&t, "]}");
    return answer(&t);
}

/* ---------------------------------------------------------------- attention ----------------- */

typedef struct sentence {
    posenc_encoding *e;
    posenc_dims      dims;
    posenc_plan     *plan;
    posenc_workspace work;
    double          *q, *k, *v, *S, *W; /* [H, n, D] twice, [H, n, n] three times */
} sentence;

/* x[h, i]: the vector of word i, drawn by its text, so that a word is the same wherever it stands and for
   each head; the row of its position is added. */
static posenc_status make_vectors(const sentence *s, const part *p, double *x, int64_t seed, double shift,
                                  posenc_error *err)
{
    const int64_t n = s->dims.Lq, D = s->dims.D, H = s->dims.H, shape[] = {1, n, D};
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < D; d++)
            x[i * D + d] = posenc_random_normal((uint64_t)seed, now.word[i], (uint64_t)d);
    if (posenc_encoding_part(p->e, POSENC_PLACE_INPUT)) {
        posenc_tensor        t  = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 3, shape);
        const posenc_rows_in in = {
            .size = sizeof in, .x = t, .pos = posenc_positions_range(shift, 1), .params = p->params};
        const posenc_status status = posenc_rows(s->plan, &in, &t, &s->work, err);
        if (status)
            return status;
    }
    for (int64_t h = 1; h < H; h++)
        memcpy(x + h * n * D, x, (size_t)(n * D) * sizeof *x);
    return POSENC_OK;
}

/* Scores; and the weights, which attention gives as its output where the values are the unit vectors. */
static posenc_status attend(sentence *s, const part *p, int64_t seed, double shift, posenc_error *err)
{
    const int64_t n = s->dims.Lq, D = s->dims.D, H = s->dims.H;
    const int64_t qk[] = {1, H, n, D}, square[] = {1, H, n, n};
    posenc_tensor S      = posenc_tensor_contiguous(s->S, POSENC_DTYPE_F64, 4, square);
    posenc_status status = make_vectors(s, p, s->q, 2 * seed, shift, err);
    if (status || (status = make_vectors(s, p, s->k, 2 * seed + 1, shift, err)))
        return status;
    for (int64_t i = 0; i < H * n * n; i++)
        s->v[i] = i / n % n == i % n;
    const posenc_positions  at   = posenc_positions_range(shift, 1);
    const posenc_attend_in  in   = {.size   = sizeof in,
                                    .q      = posenc_tensor_contiguous(s->q, POSENC_DTYPE_F64, 4, qk),
                                    .k      = posenc_tensor_contiguous(s->k, POSENC_DTYPE_F64, 4, qk),
                                    .v      = posenc_tensor_contiguous(s->v, POSENC_DTYPE_F64, 4, square),
                                    .q_pos  = at,
                                    .k_pos  = at,
                                    .params = p->params};
    const posenc_attend_out out  = {.size = sizeof out,
                                    .o    = posenc_tensor_contiguous(s->W, POSENC_DTYPE_F64, 4, square)};
    const posenc_status     done = posenc_scores(s->plan, &in, &S, &s->work, err);
    return done ? done : posenc_attend(s->plan, &in, &out, &s->work, err);
}

static void grid_of(pe_figure *f, const char *title, const double *values, int64_t n)
{
    *f = (pe_figure){.kind         = PE_GRID,
                     .title        = title,
                     .x_label      = "key",
                     .y_label      = "query",
                     .values       = values,
                     .rows         = n,
                     .cols         = n,
                     .dx           = 1,
                     .dy           = 1,
                     .square_cells = 1,
                     .row_names    = now.word,
                     .col_names    = now.word};
    for (int64_t i = 0; i < n * n; i++)
        f->signed_scale |= values[i] < 0;
}

static posenc_status make_attention(const char *request, pe_figure panels[2], char *title, size_t size,
                                    posenc_error *err)
{
    part         *p      = &now.parts[0];
    posenc_status status = read_spec(p, request, 0, err);
    const int64_t n = now.word_count, D = whole_of(request, "dim", 64), H = whole_of(request, "heads", 1),
                  seed = whole_of(request, "seed", 1);
    const int64_t head = whole_of(request, "head", 0);
    if (status)
        return status;
    if (n < 2)
        return fail(err, POSENC_ERROR_ARGUMENT, "type a sentence of at least two words");
    int causal = (int)whole_of(request, "causal", 0);
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *info = posenc_encoding_part(p->e, (posenc_place)place);
        causal |= info && info->causal_only;
    }
    const double shift    = number_of(request, "shift", 0);
    const int    is_input = posenc_encoding_part(p->e, POSENC_PLACE_INPUT) != NULL;
    /* as many rows as the sentence is long, where positions have rows: what lies beyond is refused */
    sentence             s       = {.dims = {.B       = 1,
                                             .H       = H,
                                             .G       = H,
                                             .Lq      = n,
                                             .Lk      = n,
                                             .D       = D,
                                             .Dv      = n,
                                             .d_model = is_input ? D : H * D,
                                             .L       = whole_of(request, "length", n)}};
    const posenc_options options = {.size     = sizeof options,
                                    .executor = POSENC_EXECUTOR_REFERENCE,
                                    .mask     = causal ? POSENC_MASK_CAUSAL : 0};
    const posenc_run     runs    = POSENC_RUN_SCORES | POSENC_RUN_ATTEND | (is_input ? POSENC_RUN_ROWS : 0);
    s.q = now.numbers = calloc((size_t)(H * n * (2 * D + 3 * n)) + 1, sizeof(double));
    if (!s.q)
        return fail(err, POSENC_ERROR_MEMORY, "not enough memory");
    s.k = s.q + H * n * D;
    s.v = s.k + H * n * D;
    s.S = s.v + H * n * n;
    s.W = s.S + H * n * n;
    if (!(status = make_params(p, &s.dims, seed, err)) &&
        !(status = posenc_plan_create(&s.plan, p->e, &s.dims, &options, err)) &&
        !(status = posenc_workspace_create(&s.work, s.plan, runs, NULL, err)))
        status = attend(&s, p, seed, shift, err);
    posenc_workspace_free(&s.work);
    posenc_plan_free(s.plan);
    if (status || head < 0 || head >= H)
        return status ? status : fail(err, POSENC_ERROR_ARGUMENT, "there is no such head");
    for (int64_t i = 0; i < H * n * n; i++)
        if (isinf(s.S[i]))
            s.S[i] = NAN; /* no score: the key is in the future */
    snprintf(title, size, "%.120s, head %lld of %lld", posenc_encoding_spec(p->e), (long long)head + 1,
             (long long)H);
    grid_of(&panels[0], "scores", s.S + head * n * n, n);
    grid_of(&panels[1], "weights", s.W + head * n * n, n);
    return POSENC_OK;
}

const char *explore_attend(const char *request)
{
    static pe_figure panels[2], figure;
    static char      title[TEXT];
    posenc_error     err;
    forget();
    read_words(request);
    if (make_attention(request, panels, title, sizeof title, &err))
        return refuse(&err);
    figure = (pe_figure){
        .kind = PE_PANELS, .title = title, .panels = panels, .panel_count = 2, .panel_columns = 2};
    return show(&figure);
}

const char *explore_csv(void)
{
    char  *text = NULL;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    if (!to || !now.figure) {
        if (to)
            fclose(to);
        free(text);
        return "";
    }
    pe_numbers_write(to, now.figure);
    fclose(to);
    free(now.answer);
    return now.answer = text;
}

/* Memory for a request of n bytes, the page's to free. */
char *explore_memory(size_t n)
{
    return malloc(n);
}

void explore_free(char *memory)
{
    free(memory);
}
