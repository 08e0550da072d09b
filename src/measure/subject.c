/* SPDX-License-Identifier: MIT */
/*
 * subject.c: an encoding made ready to be measured
 *
 * What runs need is allocated in pe_subject_create; the workspace is that of the larger plan. Arrays for
 * results come from a store, a chain of blocks that is freed after each property.
 *
 * Profiles are scores against distance, for contents that are the same at every position: one query at the
 * last position, the same key at every position up to it, so that only position changes the score, and c(t)
 * is the score of the key t tokens back. Encodings that see more than the distance (fire) are measured as the
 * last query sees them.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/work.h"

int pe_subject_has(const pe_subject *s, posenc_place place)
{
    return posenc_encoding_part(s->e, place) != NULL;
}

int pe_subject_is_by_word(const pe_subject *s)
{
    const posenc_encoding_info *part = posenc_encoding_part(s->e, POSENC_PLACE_INPUT);
    return part && part->by_word;
}

int pe_subject_attends(const pe_subject *s)
{
    return pe_subject_has(s, POSENC_PLACE_ROTARY) || pe_subject_has(s, POSENC_PLACE_SCORE) ||
           pe_subject_has(s, POSENC_PLACE_WEIGHT);
}

/* ---------------------------------------------------------------- making one ---------------- */

posenc_status pe_subject_no_memory(posenc_error *err, const char *what)
{
    if (err) {
        err->status = POSENC_ERROR_MEMORY;
        snprintf(err->message, sizeof err->message, "measure: not enough memory for %s", what);
    }
    return POSENC_ERROR_MEMORY;
}

static posenc_status fail_on_shape(posenc_error *err, const char *format, int64_t one, int64_t other)
{
    if (err) {
        err->status = POSENC_ERROR_SHAPE;
        snprintf(err->message, sizeof err->message, format, (long long)one, (long long)other);
    }
    return POSENC_ERROR_SHAPE;
}

static posenc_status set_dims(pe_subject *s, posenc_error *err)
{
    const int64_t H = s->sizes.heads, width = s->sizes.width;
    const int     is_input = pe_subject_has(s, POSENC_PLACE_INPUT);
    if (is_input && width % H)
        return fail_on_shape(err, "measure: %lld heads do not divide the width %lld of an input encoding", H,
                             width);
    s->dims         = (posenc_dims){.B = 1, .H = H, .Lq = s->sizes.length, .Lk = s->sizes.length};
    s->dims.D       = is_input ? width / H : width;
    s->dims.d_model = is_input ? width : H * width;
    s->dims.L       = s->sizes.length;
    return POSENC_OK;
}

static int needs_causal(const posenc_encoding *e)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && part->causal_only)
            return 1;
    }
    return 0;
}

static posenc_status make_plans(pe_subject *s, posenc_error *err)
{
    posenc_options options = posenc_options_default();
    options.executor       = POSENC_EXECUTOR_REFERENCE;
    options.mask           = POSENC_MASK_CAUSAL;
    options.threads        = 1; /* runs are short: a team of threads would mostly wait */
    posenc_status status   = posenc_plan_create(&s->causal, s->e, &s->dims, &options, err);
    options.mask           = s->causal_only ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    if (!status)
        status = posenc_plan_create(&s->plan, s->e, &s->dims, &options, err);
    if (!status)
        status = pe_work_check_plan(s->e, s->plan, POSENC_RUN_FORWARD | POSENC_RUN_SCORES, err);
    if (!status)
        status = pe_work_check_params(s->e, &s->dims, PE_WORK_PARAMS, err);
    if (status || !pe_subject_has(s, POSENC_PLACE_INPUT) || posenc_rows_width(s->plan) == s->dims.d_model)
        return status;
    /* rows are added to tokens of width d_model: a table must have that width too */
    return fail_on_shape(err, "measure: the rows have width %lld but the model has %lld; these must be equal",
                         posenc_rows_width(s->plan), s->dims.d_model);
}

static posenc_status make_workspace(pe_subject *s, posenc_error *err)
{
    const posenc_run runs   = (posenc_run)(POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    const int        larger = posenc_plan_workspace(s->causal, runs, NULL) > /* there may be no such plan */
                       posenc_plan_workspace(s->plan, runs, NULL);
    s->content = malloc((size_t)(2 * s->dims.H * s->dims.D) * sizeof *s->content);
    return s->content ? posenc_workspace_create(&s->work, larger ? s->causal : s->plan, runs, NULL, err)
                      : pe_subject_no_memory(err, "a workspace");
}

static int64_t elements(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

static posenc_status make_params(pe_subject *s, posenc_error *err)
{
    const int count = posenc_param_count(s->e);
    s->params       = calloc((size_t)count + 1, sizeof *s->params);
    for (int i = 0; s->params && i < count; i++) {
        int32_t       ndim;
        int64_t       shape[POSENC_MAX_DIMS];
        posenc_status status = posenc_param_shape(s->e, &s->dims, i, &ndim, shape, err);
        if (status)
            return status;
        s->params[i]      = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, ndim, shape);
        s->params[i].data = calloc((size_t)elements(&s->params[i]), sizeof(double));
        if (!s->params[i].data)
            return pe_subject_no_memory(err, posenc_param_name(s->e, i));
    }
    return s->params ? pe_subject_initialise(s, s->sizes.seed, err) : pe_subject_no_memory(err, "parameters");
}

/* Drawn, as a model would make them: for all queries, and for one alone. */
static posenc_status make_tokens(pe_subject *s, posenc_error *err)
{
    posenc_dims         one    = s->dims;
    const posenc_status status = pe_tokens_draw(s->e, &s->dims, s->sizes.seed, &s->tokens, err);
    one.Lq                     = 1;
    return status ? status : pe_tokens_draw(s->e, &one, s->sizes.seed, &s->last, err);
}

posenc_status pe_subject_create(pe_subject **subject, const posenc_encoding *e, const pe_subject_sizes *sizes,
                                posenc_error *err)
{
    pe_subject *s = *subject = calloc(1, sizeof *s);
    if (!s)
        return pe_subject_no_memory(err, "a subject");
    s->e                 = e;
    s->sizes             = *sizes;
    s->causal_only       = needs_causal(e);
    s->coordinates       = posenc_rows_coordinates(e);
    s->positions         = posenc_positions_range(0, 1);
    posenc_status status = set_dims(s, err);
    if (!status)
        status = make_plans(s, err);
    if (!status)
        status = make_workspace(s, err);
    if (!status)
        status = make_params(s, err);
    if (!status)
        status = make_tokens(s, err);
    if (status) {
        pe_subject_free(s);
        *subject = NULL;
    }
    return status;
}

void pe_subject_free(pe_subject *s)
{
    if (!s)
        return;
    for (int i = 0; s->params && i < posenc_param_count(s->e); i++)
        free(s->params[i].data);
    free(s->params);
    pe_tokens_free(s->e, s->tokens);
    pe_tokens_free(s->e, s->last);
    posenc_plan_free(s->plan);
    posenc_plan_free(s->causal);
    posenc_workspace_free(&s->work);
    free(s->content);
    pe_subject_give_back(s);
    free(s);
}

static int are_all(const double *x, int64_t n, double value)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != value)
            return 0;
    return 1;
}

/* Adds N(0,1) to all of parameter i. */
static void add_normal(pe_subject *s, int i, uint64_t seed)
{
    double *x = s->params[i].data;
    for (int64_t n = 0; n < elements(&s->params[i]); n++)
        x[n] += posenc_random_normal(seed, posenc_param_name(s->e, i), (uint64_t)n);
}

posenc_status pe_subject_initialise(pe_subject *s, uint64_t seed, posenc_error *err)
{
    const posenc_status status = posenc_param_init(s->e, &s->dims, s->params, seed, err);
    const int           count  = posenc_param_count(s->e);
    s->randomised              = !status && count > 0;
    for (int i = 0; s->randomised && i < count; i++)
        s->randomised = are_all(s->params[i].data, elements(&s->params[i]), 0);
    for (int i = 0; s->randomised && i < count; i++)
        add_normal(s, i, seed);
    return status;
}

posenc_status pe_subject_initialise_varied(pe_subject *s, uint64_t seed, posenc_error *err)
{
    const posenc_status status = pe_subject_initialise(s, seed, err);
    for (int i = 0; !status && i < posenc_param_count(s->e); i++) {
        const double *x = s->params[i].data;
        const int64_t n = elements(&s->params[i]);
        if (posenc_param_trainable(s->e, i) && n > 1 && are_all(x, n, x[0]))
            add_normal(s, i, seed);
    }
    return status;
}

/* ---------------------------------------------------------------- runs ---------------------- */

/* A tensor has no const: inputs stay as they are. */
static posenc_tensor tensor_of(const double *x, int32_t ndim, const int64_t *shape)
{
    return posenc_tensor_contiguous((void *)(uintptr_t)x, POSENC_DTYPE_F64, ndim, shape);
}

/* y = x + the rows of positions, or only the rows where x is NULL. */
static posenc_status add_rows(pe_subject *s, const double *x, posenc_positions positions, double *y,
                              posenc_error *err)
{
    const int64_t  shape[3] = {1, s->sizes.length, s->dims.d_model};
    posenc_tensor  to       = tensor_of(y, 3, shape);
    posenc_rows_in in       = {.size = sizeof in, .pos = positions, .params = s->params};
    if (x)
        in.x = tensor_of(x, 3, shape);
    return posenc_rows(s->plan, &in, &to, &s->work, err);
}

posenc_status pe_subject_rows(pe_subject *s, const double *positions, double *table, posenc_error *err)
{
    return add_rows(s, NULL,
                    positions ? posenc_positions_array(tensor_of(positions, 1, &s->sizes.length))
                              : s->positions,
                    table, err);
}

posenc_status pe_subject_take_rows(pe_subject *s, posenc_positions positions, double **table,
                                   posenc_error *err)
{
    *table = pe_subject_take(s, s->sizes.length * s->dims.d_model, sizeof **table);
    return *table ? add_rows(s, NULL, positions, *table, err) : pe_subject_no_memory(err, "a table");
}

posenc_status pe_subject_take_table(pe_subject *s, double **table, posenc_error *err)
{
    return pe_subject_take_rows(s, s->positions, table, err);
}

posenc_status pe_subject_embed(pe_subject *s, const double *x, double *y, posenc_error *err)
{
    if (pe_subject_has(s, POSENC_PLACE_INPUT))
        return add_rows(s, x, s->positions, y, err);
    memcpy(y, x, (size_t)(s->sizes.length * s->dims.d_model) * sizeof *y);
    return POSENC_OK;
}

/* q of Lq queries and k of all keys; stride 0 where every position has the same. */
static posenc_attend_in inputs_of(const pe_subject *s, const double *q, int64_t Lq, const double *k, int same)
{
    const int64_t    H = s->dims.H, D = s->dims.D, N = s->sizes.length;
    const int64_t    of_q[4] = {1, H, same ? 1 : Lq, D}, of_k[4] = {1, H, same ? 1 : N, D};
    posenc_attend_in in = {
        .size = sizeof in, .q = tensor_of(q, 4, of_q), .k = tensor_of(k, 4, of_k), .params = s->params};
    in.q.shape[2] = Lq;
    in.k.shape[2] = N;
    if (same)
        in.q.stride[2] = in.k.stride[2] = 0;
    in.q_pos = in.k_pos = s->positions;
    in.tokens           = Lq == s->dims.Lq ? s->tokens : s->last;
    if (Lq == 1)
        in.q_pos = posenc_positions_range((double)(N - 1), 1);
    return in;
}

posenc_status pe_subject_bias(pe_subject *s, double *bias, posenc_error *err)
{
    const int64_t    N = s->sizes.length, shape[3] = {s->dims.H, 1, N};
    posenc_attend_in in = inputs_of(s, bias, 1, bias, 1); /* neither q nor k is read */
    posenc_tensor    to = tensor_of(bias, 3, shape);
    return pe_tokens_bias(s->plan, &in, &s->dims, &to, &s->work, err);
}

posenc_status pe_subject_scores(pe_subject *s, const double *q, const double *k, double *S, posenc_error *err)
{
    const int64_t    N = s->sizes.length, shape[4] = {1, s->dims.H, N, N};
    posenc_attend_in in = inputs_of(s, q, N, k, 0);
    posenc_tensor    to = tensor_of(S, 4, shape);
    return posenc_scores(s->plan, &in, &to, &s->work, err);
}

posenc_status pe_subject_attend(pe_subject *s, int causal, const double *q, const double *k, const double *v,
                                double *o, posenc_error *err)
{
    const int64_t     shape[4] = {1, s->dims.H, s->sizes.length, s->dims.D};
    posenc_attend_in  in       = inputs_of(s, q, s->sizes.length, k, 0);
    posenc_attend_out out      = {.size = sizeof out, .o = tensor_of(o, 4, shape)};
    in.v                       = tensor_of(v, 4, shape);
    return posenc_attend(causal ? s->causal : s->plan, &in, &out, &s->work, err);
}

/* ---------------------------------------------------------------- what all properties use --- */

typedef struct store_block {
    struct store_block *next;
    alignas(max_align_t) char bytes[];
} store_block;

void *pe_subject_take(pe_subject *s, int64_t count, size_t size)
{
    store_block *made = malloc(sizeof *made + (size_t)count * size);
    if (!made)
        return NULL;
    made->next = s->store;
    s->store   = made;
    return made->bytes;
}

void pe_subject_give_back(pe_subject *s)
{
    for (store_block *at = s->store, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    s->store = NULL;
}

int pe_subject_take_all(pe_subject *s, double **const parts[], const int64_t sizes[], size_t count)
{
    size_t i = 0;
    while (i < count && (*parts[i] = pe_subject_take(s, sizes[i], sizeof **parts[i])))
        i++;
    return i == count;
}

void pe_subject_sample_add(pe_sample *m, double x)
{
    if (isnan(x))
        return;
    m->sum += x;
    m->squares += x * x;
    m->count++;
}

double pe_subject_sample_mean(const pe_sample *m)
{
    return m->count ? m->sum / (double)m->count : (double)NAN;
}

double pe_subject_sample_spread(const pe_sample *m)
{
    const double mean = pe_subject_sample_mean(m), n = (double)m->count;
    return m->count < 2 ? (double)NAN : sqrt(fmax(0, m->squares / n - mean * mean) * n / (n - 1));
}

void pe_subject_draw_normal(double *x, int64_t n, double sigma, const pe_subject *s, const char *name,
                            int64_t draw)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = sigma * posenc_random_normal(s->sizes.seed, name, (uint64_t)(draw * n + i));
}

void pe_subject_project(double *to, const double *y, const double *W, const posenc_dims *dims, int64_t N)
{
    const int64_t d = dims->d_model, D = dims->D, all = dims->H * D;
    memset(to, 0, (size_t)(N * all) * sizeof *to);
    for (int64_t h = 0; h < dims->H; h++)
        for (int64_t i = 0; i < N; i++)
            for (int64_t c = 0; c < d; c++)
                for (int64_t m = 0; m < D; m++)
                    to[(h * N + i) * D + m] += y[i * d + c] * W[c * all + h * D + m];
}

/* ---------------------------------------------------------------- profiles ------------------ */

static void fill_content(double *x, int64_t n, pe_content content, const pe_subject *s, const char *name,
                         int64_t draw)
{
    if (content == PE_CONTENT_NORMAL)
        pe_subject_draw_normal(x, n, 1, s, name, draw);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = content == PE_CONTENT_ONES
                       ? 1
                       : posenc_random_uniform(s->sizes.seed, name, (uint64_t)(draw * n + i));
}

posenc_status pe_subject_profiles(pe_subject *s, pe_content content, int64_t draw, double *c,
                                  posenc_error *err)
{
    const int64_t n = s->dims.H * s->dims.D, N = s->sizes.length, shape[4] = {1, s->dims.H, 1, N};
    fill_content(s->content, n, content, s, "query", draw);
    fill_content(s->content + n, n, content, s, "key", draw);
    posenc_attend_in    in     = inputs_of(s, s->content, 1, s->content + n, 1);
    posenc_tensor       to     = tensor_of(c, 4, shape);
    const posenc_status status = posenc_scores(s->plan, &in, &to, &s->work, err);
    /* the scores are by key: distance 0 is the last */
    for (int64_t h = 0; !status && h < s->dims.H; h++)
        for (int64_t t = 0; t < N - 1 - t; t++) {
            const double other   = c[h * N + t];
            c[h * N + t]         = c[h * N + N - 1 - t];
            c[h * N + N - 1 - t] = other;
        }
    return status;
}
