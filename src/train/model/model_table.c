/* SPDX-License-Identifier: MIT */
/*
 * model_table.c: which tensors a model has
 *
 * A recipe per tensor says its shape in units of d and how it starts; the encoding's own tensors follow, one
 * set per layer, except for the part at the place input, which has one set for the whole model wherever its
 * rows enter. Rows that are concatenated bring the matrix that projects them, which counts as theirs.
 *
 * What surprises: the numbers that shared tensors begin with depend only on the run's seed and the tensor's
 * name, so two models with different encodings start from the same numbers, and the difference of their
 * losses is the encoding's.
 *
 * Source: initialisation as in GPT-2 (Radford et al. 2019), in units where a token has variance one (Vaswani
 * et al. 2017, section 3.4), but for the two matrices whose products are added to the stream, which start at
 * zero, so that every layer starts as the identity (Zhang et al. 2019, arXiv:1901.09321; measured in
 * docs/decisions/0014-recipe.md).
 */
#include "train/model/model.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED_ELEMENTS = 16 };
#define ENCODING_RATE 2 /* its parameters learn at twice the rate of the others: docs/experiments.md */

typedef enum initial { ZEROS, ONES, UNIT, FAN_IN, SMALL } initial;

/* A tensor [rows, columns]; rows 0: a vector. Sizes in units of d; negative: minus a plain number. */
typedef struct recipe {
    const char *name;
    int64_t     rows, columns;
    initial     initial;
    int         decays;
    int         matrices; /* side by side, that Muon steps; 0: AdamW does */
} recipe;

// clang-format off
static const recipe layer_recipes[PE_LAYER_WEIGHTS] = { /* ORDER pe_layer_weight */
    {"norm1.gain",    0, 1,            ONES,     0, 0},
    {"norm1.bias",    0, 1,            ZEROS,    0, 0},
    {"qkv",           1, 3,            FAN_IN,   1, 3},
    {"attention.out", 1, 1,            ZEROS,    1, 1},
    {"norm2.gain",    0, 1,            ONES,     0, 0},
    {"norm2.bias",    0, 1,            ZEROS,    0, 0},
    {"up",            1, PE_MLP_WIDTH, FAN_IN,   1, 1},
    {"up.bias",       0, PE_MLP_WIDTH, ZEROS,    0, 0},
    {"down",          PE_MLP_WIDTH, 1, ZEROS,    1, 1},
    {"down.bias",     0, 1,            ZEROS,    0, 0},
};
static const recipe model_recipes[PE_MODEL_WEIGHTS] = { /* ORDER pe_model_weight */
    {"embedding",  -PE_BYTES, 1, UNIT,  0, 0},
    {"final.gain", 0, 1,         ONES,  0, 0},
    {"final.bias", 0, 1,         ZEROS, 0, 0},
    {"output",     1, -PE_BYTES, SMALL, 1, 0},
};
// clang-format on

posenc_status pe_model_no_memory(posenc_error *err)
{
    return pe_fail(err, POSENC_ERROR_MEMORY,
                   "model: not enough memory for a model of these sizes; make d_model or batch smaller");
}

posenc_dims pe_model_dims(const pe_model_config *c, int64_t B, int64_t length)
{
    const int64_t D = c->d_model / c->heads;
    return (posenc_dims){.B       = B,
                         .H       = c->heads,
                         .G       = c->heads,
                         .Lq      = length,
                         .Lk      = length,
                         .D       = D,
                         .Dv      = D,
                         .d_model = c->d_model,
                         .L       = c->L};
}

posenc_dims pe_model_short_dims(const pe_model *m)
{
    return pe_model_dims(&m->config, m->config.batch, m->config.L);
}

posenc_dims pe_model_long_dims(const pe_model *m)
{
    return pe_model_dims(&m->config, m->long_batch, m->config.longest);
}

/* Does parameter i of layer l belong to the part at the place input? */
static int is_of_rows(const pe_model *m, int64_t l, int i)
{
    const posenc_encoding      *e     = m->stack[l].kind->encoding;
    const posenc_encoding_info *input = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    const posenc_param_info    *info  = posenc_param_describe(e, i);
    return input && info >= input->params && info < input->params + input->param_count;
}

static pe_weight *add_weight(pe_model *m, int64_t count, int decays, int trains)
{
    pe_weight *w = &m->weights[m->weight_count++];
    *w = (pe_weight){.offset = m->size, .count = count, .decays = decays, .trains = trains, .rate = 1};
    m->size += (count + ALIGNED_ELEMENTS - 1) / ALIGNED_ELEMENTS * ALIGNED_ELEMENTS;
    return w;
}

/* A recipe's size, in a model of width d. */
static int64_t size_of(int64_t units, int64_t d)
{
    return units < 0 ? -units : units * d;
}

static void add_recipe(pe_model *m, const recipe *r, const char *prefix)
{
    const int64_t d       = m->config.d_model;
    int64_t       rows    = r->rows ? size_of(r->rows, d) : 1;
    int64_t       columns = size_of(r->columns, d);
    if (r == &model_recipes[PE_EMBEDDING])
        rows = m->symbols;
    if (r == &model_recipes[PE_OUTPUT])
        columns = m->classes;
    pe_weight *w = add_weight(m, rows * columns, r->decays, 1);
    w->rows      = rows;
    w->matrices  = r->matrices;
    snprintf(w->name, sizeof w->name, "%s%s", prefix, r->name);
}

static void add_recipes(pe_model *m)
{
    const int64_t layers_end = m->config.layers * PE_LAYER_WEIGHTS;
    char          prefix[32];
    for (int64_t l = 0; l < m->config.layers; l++) {
        snprintf(prefix, sizeof prefix, "layer%lld.", (long long)l);
        for (int i = 0; i < PE_LAYER_WEIGHTS; i++)
            add_recipe(m, &layer_recipes[i], prefix);
    }
    for (int i = 0; i < PE_MODEL_WEIGHTS; i++)
        add_recipe(m, &model_recipes[i], "");
    m->weights[layers_end + PE_EMBEDDING].trains = !m->by_word;
}

/* Parameter i of layer l: a stretch of its own, or layer 0's where the whole model shares it. */
static posenc_status add_parameter(pe_model *m, int64_t l, int i, posenc_error *err)
{
    const posenc_dims      dims = pe_model_short_dims(m);
    const posenc_encoding *e    = m->stack[l].kind->encoding;
    posenc_tensor         *t    = &pe_model_params(m, l)[i];
    int64_t                shape[POSENC_MAX_DIMS];
    int32_t                ndim    = 0;
    const int              is_rows = is_of_rows(m, l, i);
    if (is_rows && l > 0) {
        *t = m->params[i];
        return POSENC_OK;
    }
    posenc_status status = posenc_param_shape(e, &dims, i, &ndim, shape, err);
    if (status)
        return status;
    *t            = posenc_tensor_contiguous(NULL, m->config.dtype, ndim, shape);
    int64_t count = 1;
    for (int32_t a = 0; a < ndim; a++)
        count *= shape[a];
    pe_weight  *w    = add_weight(m, count, 0, posenc_param_trainable(e, i));
    const char *name = posenc_param_name(e, i);
    w->rate          = ENCODING_RATE;
    if (ndim == 3 &&
        shape[0] == m->config.d_model) { /* [d_model,H,D]: projects, as q, k and v are projected */
        w->rows     = shape[0];
        w->matrices = 1;
        w->decays   = 1;
    }
    if (is_rows)
        snprintf(w->name, sizeof w->name, "%s", name);
    else
        snprintf(w->name, sizeof w->name, "layer%lld.%s", (long long)l, name);
    return POSENC_OK;
}

/* The model is evaluated at lengths at which it was not trained: its parameters must not depend on
   the length. */
static posenc_status check_length_free(const pe_model *m, int64_t l, int i, posenc_error *err)
{
    const posenc_dims      dims = pe_model_long_dims(m);
    const posenc_encoding *e    = m->stack[l].kind->encoding;
    const posenc_tensor   *t    = &pe_model_params(m, l)[i];
    int64_t                shape[POSENC_MAX_DIMS];
    int32_t                ndim   = 0;
    posenc_status          status = posenc_param_shape(e, &dims, i, &ndim, shape, err);
    if (status)
        return status;
    for (int32_t a = 0; a < ndim; a++)
        if (ndim != t->ndim || shape[a] != t->shape[a])
            return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                           "%s: the size of its parameter %s depends on the length, so a model trained at "
                           "%lld cannot be evaluated at %lld; choose an encoding without such a parameter",
                           posenc_encoding_spec(e), posenc_param_name(e, i), (long long)m->config.L,
                           (long long)m->config.longest);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- token inputs -------------- */

posenc_tensor *pe_model_params(const pe_model *m, int64_t l)
{
    return m->params + m->stack[l].params;
}

const pe_weight *pe_model_projection(const pe_model *m, int64_t l, int i)
{
    return &m->weights[m->stack[l].projections + 2 * i];
}

int64_t pe_model_token_columns(const pe_model *m, int64_t l, int i)
{
    return pe_model_projection(m, l, i)[1].count;
}

/* W [d, columns] and b [columns] of every token input of layer l, of every head its own. Matrices that
   project, as those of q, k and v do. */
static posenc_status add_projections(pe_model *m, int64_t l, posenc_error *err)
{
    const posenc_dims    dims = pe_model_short_dims(m);
    const pe_layer_kind *kind = m->stack[l].kind;
    m->stack[l].projections   = m->weight_count;
    for (int i = 0; i < kind->token_count; i++) {
        int64_t             shape[4];
        const posenc_status status = posenc_token_shape(kind->encoding, &dims, i, shape, err);
        if (status)
            return status;
        const int64_t columns = shape[1] * shape[3];
        const char   *name    = posenc_token_name(kind->encoding, i);
        pe_weight    *w       = add_weight(m, m->config.d_model * columns, 1, 1);
        w->rows               = m->config.d_model;
        w->matrices           = 1;
        snprintf(w->name, sizeof w->name, "layer%lld.tokens.%s", (long long)l, name);
        w = add_weight(m, columns, 0, 1);
        snprintf(w->name, sizeof w->name, "layer%lld.tokens.%s.bias", (long long)l, name);
    }
    return POSENC_OK;
}

/* Of all token inputs of a kind together; before the table, which is sized by it. */
static posenc_status count_columns(pe_model *m, posenc_error *err)
{
    const posenc_dims dims = pe_model_short_dims(m);
    for (pe_layer_kind *kind = m->kinds; kind < m->kinds + m->kind_count; kind++)
        for (int i = 0; i < kind->token_count; i++) {
            int64_t             shape[4];
            const posenc_status status = posenc_token_shape(kind->encoding, &dims, i, shape, err);
            if (status)
                return status;
            kind->columns += shape[1] * shape[3];
        }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- rows at the input --------- */

/* How wide rows must be to be added: d, or with inject=blocks d for every block. */
static posenc_status check_row_width(const pe_model *m, posenc_error *err)
{
    const int64_t d = m->config.d_model, all = m->config.layers * d;
    const int     in_blocks = m->config.entry.inject == PE_IN_BLOCKS;
    if (m->has_mixer || m->row_width == d || (in_blocks && m->row_width == all))
        return POSENC_OK;
    if (in_blocks)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "model: %.60s has rows of %lld numbers; to be added in every block they must have "
                       "%lld, or %lld to give each block its own rows",
                       m->config.spec, (long long)m->row_width, (long long)d, (long long)all);
    return pe_fail(
        err, POSENC_ERROR_SHAPE,
        "model: %.60s has rows of %lld numbers; to be added they must have %lld; combine=concat takes any",
        m->config.spec, (long long)m->row_width, (long long)d);
}

posenc_status pe_model_entry_prepare(pe_model *m, posenc_error *err)
{
    const pe_entry *entry = &m->config.entry;
    m->row_width          = posenc_rows_width(m->short_plan);
    m->has_rows           = m->row_width > 0;
    m->by_word            = m->has_rows && posenc_encoding_part(m->encoding, POSENC_PLACE_INPUT)->by_word;
    m->coordinates        = m->by_word ? 1 : posenc_rows_coordinates(m->encoding);
    m->has_mixer          = entry->combine == PE_CONCAT;
    if (m->has_mixer && entry->inject == PE_IN_BLOCKS)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "model: combine=concat works only with inject=input");
    if (!m->has_rows && !pe_spec_entry_is_default(entry))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "model: %.60s does not act at the input; combine and inject are for encodings that do",
                       m->config.spec);
    if (m->by_word && !pe_spec_entry_is_default(entry))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "model: rows of %.60s take the place of the tokens' vectors, so there is nothing to "
                       "combine them with; leave out combine and inject",
                       m->config.spec);
    return m->has_rows ? check_row_width(m, err) : POSENC_OK;
}

posenc_status pe_model_table_create(pe_model *m, posenc_error *err)
{
    const int64_t layers = m->config.layers, d = m->config.d_model;
    size_t        projections = 0;
    posenc_status status      = count_columns(m, err);
    for (int64_t l = 0; l < layers; l++) {
        m->stack[l].params = m->param_count;
        m->param_count += m->stack[l].kind->param_count;
        projections += 2 * (size_t)m->stack[l].kind->token_count;
    }
    const size_t tensors = (size_t)m->param_count + 1; /* and the mixer */
    m->weights = calloc((size_t)layers * PE_LAYER_WEIGHTS + PE_MODEL_WEIGHTS + tensors + projections,
                        sizeof *m->weights);
    m->params  = calloc(3 * tensors, sizeof *m->params);
    if (!m->weights || !m->params)
        return pe_model_no_memory(err);
    m->layer_dparams = m->params + tensors;
    m->rows_dparams  = m->layer_dparams + tensors;
    add_recipes(m);
    m->encoding_weight = m->weight_count;
    if (m->has_mixer) /* W of [e; p] W, which takes weight decay as all matrices of the model */
        snprintf(add_weight(m, (d + m->row_width) * d, 1, 1)->name, sizeof m->weights->name, "combine");
    for (int64_t l = 0; l < layers && !status; l++)
        for (int i = 0; i < m->stack[l].kind->param_count && !status; i++) {
            status = add_parameter(m, l, i, err);
            if (!status)
                status = check_length_free(m, l, i, err);
        }
    for (int64_t l = 0; l < layers && !status; l++)
        status = add_projections(m, l, err);
    return status;
}

/* ---------------------------------------------------------------- where they lie ------------ */

static void *element(const pe_model *m, void *array, int64_t index)
{
    return (char *)array + (size_t)index * posenc_dtype_size(m->config.dtype);
}

/* Points the encoding's tensors into theta and grad. A gradient is asked for where it trains and
   where it arises: rows from posenc_rows_backward, all else from posenc_attend_backward. */
void pe_model_connect(pe_model *m)
{
    int which = m->encoding_weight + m->has_mixer;
    for (int64_t l = 0; l < m->config.layers; l++)
        for (int i = 0; i < m->stack[l].kind->param_count; i++) {
            const int at      = m->stack[l].params + i;
            const int is_rows = is_of_rows(m, l, i);
            if (is_rows && l > 0) {
                m->params[at]        = m->params[i];
                m->layer_dparams[at] = m->layer_dparams[i];
                continue;
            }
            const pe_weight *w   = &m->weights[which++];
            m->params[at].data   = element(m, m->theta, w->offset);
            posenc_tensor wanted = m->params[at], unwanted = m->params[at];
            wanted.data          = w->trains ? element(m, m->grad, w->offset) : NULL;
            unwanted.data        = NULL;
            m->layer_dparams[at] = is_rows ? unwanted : wanted;
            if (l == 0)
                m->rows_dparams[i] = is_rows ? wanted : unwanted;
        }
}

/* ---------------------------------------------------------------- what they begin with ------ */

static void put_number(pe_model *m, int64_t index, double value)
{
    if (m->config.dtype == POSENC_DTYPE_F64)
        ((double *)m->theta)[index] = value;
    else
        ((float *)m->theta)[index] = (float)value;
}

/* Standard deviation of a tensor; fan_in = its rows. */
static double sigma_of(initial how, int64_t fan_in)
{
    switch (how) {
    case ZEROS:
    case ONES: return 0;
    case UNIT: return 1;
    case SMALL: return 0.02;
    case FAN_IN: return 1 / sqrt((double)fan_in);
    }
    return 0;
}

/* Of mean 0 and variance 1 too, in a hundredth of the time: for what is only tried or timed. */
static double rough_number(int64_t i)
{
    return sqrt(12.0) * ((double)((uint32_t)i * 2654435761u) / 4294967296.0 - 0.5);
}

static double first_number(const pe_model *m, const pe_weight *w, int64_t i)
{
    return m->config.is_rough ? rough_number(i) : posenc_random_normal(m->config.seed, w->name, (uint64_t)i);
}

static void start_weight(pe_model *m, const pe_weight *w, const recipe *r)
{
    const double mean = r->initial == ONES, sigma = sigma_of(r->initial, size_of(r->rows, m->config.d_model));
    for (int64_t i = 0; i < w->count; i++)
        put_number(m, w->offset + i, mean + (sigma > 0 ? sigma * first_number(m, w, i) : 0));
}

/* W = [I; I], cut to the rows that it has: the model begins as the one that adds, token half and position
   half alike, and so as paired with it as two models can be. Training may then leave the sum. */
static void start_mixer(pe_model *m)
{
    const int64_t d = m->config.d_model, at = m->weights[m->encoding_weight].offset;
    for (int64_t i = 0; i < d; i++)
        put_number(m, at + i * d + i, 1);
    for (int64_t i = 0; i < d && i < m->row_width; i++)
        put_number(m, at + (d + i) * d + i, 1);
}

/* As the encoding states it (posenc_token_info). */
static void start_projections(pe_model *m, int64_t l)
{
    const double sigma = 1 / sqrt((double)m->config.d_model);
    for (int i = 0; i < m->stack[l].kind->token_count; i++) {
        const pe_weight *w = pe_model_projection(m, l, i), *b = w + 1;
        for (int64_t k = 0; k < w->count; k++)
            put_number(m, w->offset + k, sigma * first_number(m, w, k));
        for (int64_t k = 0; k < b->count; k++)
            put_number(m, b->offset + k, posenc_token_describe(m->stack[l].kind->encoding, i)->bias);
    }
}

/* A seed for layer l of a run: one step of splitmix64 (Steele et al. 2014), so that neighbours
   share nothing. */
static uint64_t layer_seed(uint64_t seed, int64_t l)
{
    uint64_t z = seed + ((uint64_t)l + 1) * 0x9e3779b97f4a7c15u;
    z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z          = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

posenc_status pe_model_start(pe_model *m, posenc_error *err)
{
    const pe_weight *w = m->weights;
    for (int64_t l = 0; l < m->config.layers; l++)
        for (int i = 0; i < PE_LAYER_WEIGHTS; i++)
            start_weight(m, w++, &layer_recipes[i]);
    for (int i = 0; i < PE_MODEL_WEIGHTS; i++)
        start_weight(m, w++, &model_recipes[i]);
    if (m->has_mixer)
        start_mixer(m);
    for (int64_t l = 0; l < m->config.layers; l++)
        start_projections(m, l);
    /* Downwards, so that what all layers share ends as layer 0's seed has it. */
    const posenc_dims dims   = pe_model_short_dims(m);
    posenc_status     status = POSENC_OK;
    for (int64_t l = m->config.layers - 1; l >= 0 && !status; l--)
        if (m->stack[l].kind->param_count)
            status = posenc_param_init(m->stack[l].kind->encoding, &dims, pe_model_params(m, l),
                                       layer_seed(m->config.seed, l), err);
    return status;
}
