/* SPDX-License-Identifier: MIT */
/*
 * model.c: the table of parameters, the plans and the memory of a model
 *
 * Everything that is decided once per run and involves no arithmetic on activations. A recipe per
 * tensor says its shape in units of d and how it starts; the encoding's own tensors follow, one set
 * per layer, but for the part at the place input, which has one set for the whole model wherever its
 * rows enter. Rows that are concatenated bring the matrix that projects them, which counts as theirs.
 *
 * What surprises: numbers of shared tensors depend on the run's seed and the tensor's name alone, so
 * two models with different encodings start from the same numbers, and the difference of their losses
 * is the encoding's.
 *
 * Source: initialisation as in GPT-2 (Radford et al. 2019) with the residual projections scaled by
 * 1/sqrt(2 layers), in units where a token has variance one (Vaswani et al. 2017, section 3.4).
 */
#include "train/model.h"

#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, ALIGNED_ELEMENTS = 16 };

typedef enum start { ZEROS, ONES, UNIT, FAN_IN, RESIDUAL, SMALL } start;

/* A tensor [rows, columns]; rows 0: a vector. Sizes in units of d; negative: minus a plain number. */
typedef struct recipe {
    const char *name;
    int64_t     rows, columns;
    start       start;
    int         decays;
} recipe;

// clang-format off
static const recipe layer_recipes[] = { /* ORDER pe_layer_weight */
    {"norm1.gain",    0, 1,            ONES,     0},
    {"norm1.bias",    0, 1,            ZEROS,    0},
    {"qkv",           1, 3,            FAN_IN,   1},
    {"attention.out", 1, 1,            RESIDUAL, 1},
    {"norm2.gain",    0, 1,            ONES,     0},
    {"norm2.bias",    0, 1,            ZEROS,    0},
    {"up",            1, PE_MLP_WIDTH, FAN_IN,   1},
    {"up.bias",       0, PE_MLP_WIDTH, ZEROS,    0},
    {"down",          PE_MLP_WIDTH, 1, RESIDUAL, 1},
    {"down.bias",     0, 1,            ZEROS,    0},
};
static const recipe model_recipes[] = { /* ORDER pe_model_weight */
    {"embedding",  -PE_BYTES, 1, UNIT,  0},
    {"final.gain", 0, 1,         ONES,  0},
    {"final.bias", 0, 1,         ZEROS, 0},
    {"output",     1, -PE_BYTES, SMALL, 1},
};
// clang-format on

_Static_assert(sizeof layer_recipes / sizeof *layer_recipes == PE_LAYER_WEIGHTS, "ORDER pe_layer_weight");
_Static_assert(sizeof model_recipes / sizeof *model_recipes == PE_MODEL_WEIGHTS, "ORDER pe_model_weight");

static int64_t align_elements(int64_t n)
{
    return (n + ALIGNED_ELEMENTS - 1) / ALIGNED_ELEMENTS * ALIGNED_ELEMENTS;
}

static size_t align_bytes(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY,
                         "model: no memory for a model of these sizes; make d_model or batch less");
}

/* ---------------------------------------------------------------- sizes --------------------- */

static posenc_status check(const pe_model_config *c, posenc_error *err)
{
    const struct {
        const char *name;
        int64_t     value, high;
    } sizes[] = {{"L", c->L, 1 << 20},
                 {"d_model", c->d_model, 1 << 14},
                 {"layers", c->layers, 1 << 10},
                 {"heads", c->heads, 1 << 10},
                 {"batch", c->batch, 1 << 14},
                 {"symbols", c->symbols ? c->symbols : PE_BYTES, PE_BYTES},
                 {"classes", c->symbols ? c->classes : PE_BYTES, PE_BYTES}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].high)
            return pe_train_fail(err, POSENC_ARGUMENT, "model: %s is %lld; it must be 1 to %lld",
                                 sizes[i].name, (long long)sizes[i].value, (long long)sizes[i].high);
    if (c->d_model % c->heads != 0)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "model: heads is %lld; it must divide d_model, which is %lld",
                             (long long)c->heads, (long long)c->d_model);
    if (c->longest < c->L || c->longest > 64 * c->L)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "model: longest is %lld; it must be L to 64 L, and L is %lld",
                             (long long)c->longest, (long long)c->L);
    if (c->dtype != POSENC_F32 && c->dtype != POSENC_F64)
        return pe_train_fail(err, POSENC_DTYPE, "model: dtype must be F32 or F64");
    return POSENC_OK;
}

static posenc_dims dims_of(const pe_model_config *c, int64_t B, int64_t length)
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

static posenc_dims short_dims(const pe_model *m)
{
    return dims_of(&m->config, m->config.batch, m->config.L);
}

static posenc_dims long_dims(const pe_model *m)
{
    return dims_of(&m->config, m->long_batch, m->config.longest);
}

/* Tokens that the buffers hold. */
static int64_t capacity(const pe_model *m)
{
    const int64_t a = m->config.batch * m->config.L, b = m->long_batch * m->config.longest;
    return a > b ? a : b;
}

/* ---------------------------------------------------------------- the table of parameters --- */

/* Whether parameter i belongs to the part at the place input. */
static int is_of_rows(const pe_model *m, int i)
{
    const posenc_encoding_info *input = posenc_encoding_part(m->encoding, POSENC_INPUT);
    if (!input)
        return 0;
    for (int place = POSENC_INPUT + 1; place < POSENC_PLACES; place++)
        if (posenc_encoding_part(m->encoding, (posenc_place)place)) {
            /* several parts: names are "encoding.name" */
            const size_t n    = strlen(input->name);
            const char  *name = posenc_param_name(m->encoding, i);
            return strncmp(name, input->name, n) == 0 && name[n] == '.';
        }
    return 1;
}

static pe_weight *add_weight(pe_model *m, int64_t count, int decays, int trains)
{
    pe_weight *w = &m->weights[m->weight_count++];
    *w           = (pe_weight){.offset = m->size, .count = count, .decays = decays, .trains = trains};
    m->size += align_elements(count);
    return w;
}

static int64_t extent(int64_t units, int64_t d)
{
    return units < 0 ? -units : units * d;
}

/* The embedding of a bidirectional model of bytes has one row more, the mask symbol's. It is the last, so that all
   others start from the numbers that they have in any model. */
static void count_symbols(pe_model *m)
{
    const pe_model_config *c = &m->config;
    m->symbols               = c->symbols ? c->symbols : PE_BYTES + (c->bidirectional ? 1 : 0);
    m->classes               = c->symbols ? c->classes : PE_BYTES;
}

static int64_t rows_of(const pe_model *m, const recipe *r)
{
    if (r == &model_recipes[PE_EMBEDDING])
        return m->symbols;
    return r->rows ? extent(r->rows, m->config.d_model) : 1;
}

static int64_t columns_of(const pe_model *m, const recipe *r)
{
    return r == &model_recipes[PE_OUTPUT] ? m->classes : extent(r->columns, m->config.d_model);
}

static void add_recipe(pe_model *m, const recipe *r, const char *prefix)
{
    pe_weight *w = add_weight(m, rows_of(m, r) * columns_of(m, r), r->decays, 1);
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
    const posenc_dims dims = short_dims(m);
    posenc_tensor    *t    = &m->params[l * m->param_count + i];
    int64_t           shape[POSENC_MAX_DIMS];
    int32_t           ndim    = 0;
    const int         is_rows = is_of_rows(m, i);
    if (is_rows && l > 0) {
        *t = m->params[i];
        return POSENC_OK;
    }
    posenc_status status = posenc_param_shape(m->encoding, &dims, i, &ndim, shape, err);
    if (status)
        return status;
    *t            = posenc_tensor_contiguous(NULL, m->config.dtype, ndim, shape);
    int64_t count = 1;
    for (int32_t a = 0; a < ndim; a++)
        count *= shape[a];
    pe_weight  *w    = add_weight(m, count, 0, posenc_param_trainable(m->encoding, i));
    const char *name = posenc_param_name(m->encoding, i);
    if (is_rows)
        snprintf(w->name, sizeof w->name, "%s", name);
    else
        snprintf(w->name, sizeof w->name, "layer%lld.%s", (long long)l, name);
    return POSENC_OK;
}

/* The model is evaluated at lengths at which it was not trained: its parameters must not depend on
   the length. */
static posenc_status check_length_free(const pe_model *m, int i, posenc_error *err)
{
    const posenc_dims    dims = long_dims(m);
    const posenc_tensor *t    = &m->params[i];
    int64_t              shape[POSENC_MAX_DIMS];
    int32_t              ndim   = 0;
    posenc_status        status = posenc_param_shape(m->encoding, &dims, i, &ndim, shape, err);
    if (status)
        return status;
    for (int32_t a = 0; a < ndim; a++)
        if (ndim != t->ndim || shape[a] != t->shape[a])
            return pe_train_fail(
                err, POSENC_UNSUPPORTED,
                "%s: the size of its parameter %s depends on the length, so a model trained at "
                "%lld cannot be evaluated at %lld; choose an encoding without such a parameter",
                posenc_encoding_spec(m->encoding), posenc_param_name(m->encoding, i), (long long)m->config.L,
                (long long)m->config.longest);
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
        return pe_train_fail(
            err, POSENC_SHAPE,
            "model: %.60s has rows of %lld numbers; to be added in every block they must have "
            "%lld, or %lld for rows of each block's own",
            m->config.spec, (long long)m->row_width, (long long)d, (long long)all);
    return pe_train_fail(err, POSENC_SHAPE,
                         "model: %.60s has rows of %lld numbers; to be added they must have %lld; "
                         "combine=concat takes any",
                         m->config.spec, (long long)m->row_width, (long long)d);
}

/* Finds out how rows enter, if there are any. */
static posenc_status entry_create(pe_model *m, posenc_error *err)
{
    const pe_entry *entry = &m->config.entry;
    m->row_width          = posenc_row_width(m->short_plan);
    m->has_rows           = m->row_width > 0;
    m->by_word            = m->has_rows && posenc_encoding_part(m->encoding, POSENC_INPUT)->by_word;
    m->coordinates        = m->by_word ? 1 : posenc_coordinates(m->encoding);
    m->has_mixer          = entry->combine == PE_CONCAT;
    if (m->has_mixer && entry->inject == PE_IN_BLOCKS)
        return pe_train_fail(err, POSENC_UNSUPPORTED, "model: combine=concat must go with inject=input");
    if (!m->has_rows && !pe_entry_is_standard(entry))
        return pe_train_fail(err, POSENC_UNSUPPORTED,
                             "model: %.60s does not act at the input; combine and inject are for encodings "
                             "that do",
                             m->config.spec);
    if (m->by_word && !pe_entry_is_standard(entry))
        return pe_train_fail(
            err, POSENC_UNSUPPORTED,
            "model: rows of %.60s take the place of the tokens' vectors, so there is nothing to "
            "combine them with; leave out combine and inject",
            m->config.spec);
    return m->has_rows ? check_row_width(m, err) : POSENC_OK;
}

/* W of [e; p] W. It takes weight decay, as all matrices of the model. */
static void add_mixer(pe_model *m)
{
    const int64_t d = m->config.d_model;
    snprintf(add_weight(m, (d + m->row_width) * d, 1, 1)->name, sizeof m->weights->name, "combine");
}

static posenc_status table_create(pe_model *m, posenc_error *err)
{
    const int64_t layers = m->config.layers;
    m->param_count       = posenc_param_count(m->encoding);
    const size_t tensors = (size_t)(layers * m->param_count) + 1; /* and the mixer */
    m->weights = calloc((size_t)layers * PE_LAYER_WEIGHTS + PE_MODEL_WEIGHTS + tensors, sizeof *m->weights);
    m->params  = calloc(2 * tensors + (size_t)m->param_count + 1, sizeof *m->params);
    if (!m->weights || !m->params)
        return no_memory(err);
    m->layer_dparams = m->params + tensors;
    m->rows_dparams  = m->layer_dparams + tensors;
    add_recipes(m);
    m->encoding_weight = m->weight_count;
    if (m->has_mixer)
        add_mixer(m);
    for (int64_t l = 0; l < layers; l++)
        for (int i = 0; i < m->param_count; i++) {
            posenc_status status = add_parameter(m, l, i, err);
            if (!status && l == 0)
                status = check_length_free(m, i, err);
            if (status)
                return status;
        }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- plans and memory ---------- */

/* Whether every part of the encoding has a meaning without a causal mask, if this model has none. */
static posenc_status check_direction(const pe_model *m, posenc_error *err)
{
    for (int place = 0; m->config.bidirectional && place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(m->encoding, (posenc_place)place);
        if (part && part->causal_only)
            return pe_train_fail(err, POSENC_UNSUPPORTED,
                                 "model: %s has a meaning with a causal mask only: %s", part->name,
                                 part->why_causal);
    }
    return POSENC_OK;
}

static posenc_status plans_create(pe_model *m, posenc_error *err)
{
    const posenc_status direction = check_direction(m, err);
    if (direction)
        return direction;
    const posenc_dims shorter = short_dims(m), longer = long_dims(m);
    posenc_options    options = posenc_options_default();
    options.mask              = m->config.bidirectional ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL;
    options.threads           = 1;
    posenc_status status      = posenc_plan_create(&m->short_plan, m->encoding, &shorter, &options, err);
    return status ? status : posenc_plan_create(&m->long_plan, m->encoding, &longer, &options, err);
}

static size_t workspace_bytes(const pe_model *m)
{
    const size_t a = posenc_plan_workspace(m->short_plan, POSENC_FORWARD | POSENC_BACKWARD);
    const size_t b = posenc_plan_workspace(m->long_plan, POSENC_FORWARD);
    return a > b ? a : b;
}

/* Takes `bytes` from the block. With base NULL it only counts. */
static void *take(char *base, size_t *used, size_t bytes)
{
    char *p = base ? base + *used : NULL;
    *used += align_bytes(bytes);
    return p;
}

/* Of the matrices that are transposed at one time: a layer's after attention (d, 4d and 4d rows of d), the output, or W of
   rows that are concatenated. */
static int64_t turned_elements(const pe_model *m)
{
    const int64_t d = m->config.d_model, layer = (1 + 2 * PE_MLP_WIDTH) * d, mixer = d + m->row_width;
    const int64_t output = m->classes > mixer ? m->classes : mixer;
    return (layer > output ? layer : output) * d;
}

/* Lays the buffers out in `base` and returns their size; with base NULL only the size. */
static size_t lay_out(pe_model *m, char *base)
{
    const size_t e = posenc_dtype_size(m->config.dtype), n = (size_t)capacity(m),
                 d    = (size_t)m->config.d_model;
    const size_t wide = PE_MLP_WIDTH * d > PE_BYTES ? PE_MLP_WIDTH * d : PE_BYTES;
    size_t       used = 0;
    m->theta          = take(base, &used, (size_t)m->size * e);
    m->grad           = take(base, &used, (size_t)m->size * e);
    m->workspace      = take(base, &used, workspace_bytes(m));
    for (int64_t l = 0; l < m->config.layers; l++) {
        pe_layer_memory *y = &m->layers[l];
        y->unit1           = take(base, &used, n * d * e);
        y->scale1          = take(base, &used, n * e);
        y->qkv             = take(base, &used, 3 * n * d * e);
        y->o               = take(base, &used, n * d * e);
        y->lse             = take(base, &used, n * (size_t)m->config.heads * e);
        y->unit2           = take(base, &used, n * d * e);
        y->scale2          = take(base, &used, n * e);
        y->hidden          = take(base, &used, PE_MLP_WIDTH * n * d * e);
    }
    m->x      = take(base, &used, n * d * e);
    m->dx     = take(base, &used, n * d * e);
    m->spare  = take(base, &used, n * d * e);
    m->dqkv   = take(base, &used, 3 * n * d * e);
    m->rows   = take(base, &used, PE_BLOCK_ROWS * d * e);
    m->unit   = take(base, &used, PE_BLOCK_ROWS * d * e);
    m->wide   = take(base, &used, PE_BLOCK_ROWS * wide * e);
    m->active = take(base, &used, PE_BLOCK_ROWS * PE_MLP_WIDTH * d * e);
    m->turned = take(base, &used, (size_t)turned_elements(m) * e);
    m->scale  = take(base, &used, PE_BLOCK_ROWS * e);
    m->losses = take(base, &used, n * sizeof(double));
    if (m->has_rows) {
        const size_t rows = (size_t)m->config.longest;
        m->table          = take(base, &used, rows * (size_t)m->row_width * e);
        m->dtable         = take(base, &used, rows * (size_t)m->row_width * e);
        m->meeting        = take(base, &used, rows * d * e);
    }
    if (m->by_word)
        m->places = take(base, &used, 2 * n * sizeof *m->places);
    if (m->config.grid) {
        m->cells   = take(base, &used, 2 * (size_t)m->config.longest * sizeof *m->cells);
        m->numbers = take(base, &used, (size_t)m->config.longest * sizeof *m->numbers);
    }
    if (m->config.symbols)
        m->right = take(base, &used, n);
    return used + PE_LANES * e; /* products read so far beyond the last array */
}

static void *element(const pe_model *m, void *array, int64_t index)
{
    return (char *)array + (size_t)index * posenc_dtype_size(m->config.dtype);
}

/* Points the encoding's tensors into theta and grad. A gradient is asked for where it trains and
   where it arises: rows from posenc_rows_backward, all else from posenc_attend_backward. */
static void connect(pe_model *m)
{
    int which = m->encoding_weight + m->has_mixer;
    for (int64_t l = 0; l < m->config.layers; l++)
        for (int i = 0; i < m->param_count; i++) {
            const int64_t at      = l * m->param_count + i;
            const int     is_rows = is_of_rows(m, i);
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

static posenc_status memory_create(pe_model *m, posenc_error *err)
{
    m->layers = calloc((size_t)m->config.layers, sizeof *m->layers);
    if (!m->layers)
        return no_memory(err);
    const size_t bytes = lay_out(m, NULL);
    m->memory          = aligned_alloc(ALIGNMENT, bytes);
    if (!m->memory)
        return no_memory(err);
    /* Touches every page now, so that the first steps are not slower than the others. */
    memset(m->memory, 0, bytes);
    lay_out(m, m->memory);
    connect(m);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- first numbers ------------- */

static void put(pe_model *m, int64_t index, double value)
{
    if (m->config.dtype == POSENC_F64)
        ((double *)m->theta)[index] = value;
    else
        ((float *)m->theta)[index] = (float)value;
}

/* Standard deviation of a tensor; fan_in = its rows. */
static double sigma_of(const pe_model *m, start how, int64_t fan_in)
{
    switch (how) {
    case ZEROS:
    case ONES: return 0;
    case UNIT: return 1;
    case SMALL: return 0.02;
    case FAN_IN: return 1 / sqrt((double)fan_in);
    case RESIDUAL: return 1 / sqrt((double)fan_in * 2 * (double)m->config.layers);
    }
    return 0;
}

static void start_weight(pe_model *m, const pe_weight *w, const recipe *r)
{
    const double mean = r->start == ONES, sigma = sigma_of(m, r->start, extent(r->rows, m->config.d_model));
    for (int64_t i = 0; i < w->count; i++)
        put(m, w->offset + i,
            mean + (sigma > 0 ? sigma * posenc_random_normal(m->config.seed, w->name, (uint64_t)i) : 0));
}

/* W = [I; I], cut to the rows that it has: the model begins as the one that adds, token half and position half alike,
   and so as paired with it as two models can be. Training may then leave the sum. */
static void start_mixer(pe_model *m)
{
    const int64_t d = m->config.d_model, at = m->weights[m->encoding_weight].offset;
    for (int64_t i = 0; i < d; i++)
        put(m, at + i * d + i, 1);
    for (int64_t i = 0; i < d && i < m->row_width; i++)
        put(m, at + (d + i) * d + i, 1);
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

static posenc_status start_all(pe_model *m, posenc_error *err)
{
    const pe_weight *w = m->weights;
    for (int64_t l = 0; l < m->config.layers; l++)
        for (int i = 0; i < PE_LAYER_WEIGHTS; i++)
            start_weight(m, w++, &layer_recipes[i]);
    for (int i = 0; i < PE_MODEL_WEIGHTS; i++)
        start_weight(m, w++, &model_recipes[i]);
    if (m->has_mixer)
        start_mixer(m);
    if (m->param_count == 0)
        return POSENC_OK;
    /* Downwards, so that what all layers share ends as layer 0's seed has it. */
    const posenc_dims dims   = short_dims(m);
    posenc_status     status = POSENC_OK;
    for (int64_t l = m->config.layers - 1; l >= 0 && !status; l--)
        status = posenc_param_init(m->encoding, &dims, m->params + l * m->param_count,
                                   layer_seed(m->config.seed, l), err);
    return status;
}

/* ---------------------------------------------------------------- rows of any length -------- */

/* Rows 0 .. L-1 as a plan makes them. */
static posenc_status make_rows(pe_model *m, void *to, const posenc_plan *plan, posenc_error *err)
{
    const int64_t        shape[3] = {1, m->config.L, m->row_width};
    posenc_tensor        y        = posenc_tensor_contiguous(to, m->config.dtype, 3, shape);
    const posenc_rows_in in       = {.params = m->params};
    return posenc_rows(plan, &in, &y, m->workspace, err);
}

/* A model is trained at L and read at `longest`, where its first positions must stand for the length L: a table that is
   stretched to the length of the input does not do that. */
static posenc_status check_rows_length_free(pe_model *m, posenc_error *err)
{
    const size_t bytes = (size_t)m->config.L * (size_t)m->row_width * posenc_dtype_size(m->config.dtype);
    if (!m->has_rows)
        return POSENC_OK;
    posenc_status status = make_rows(m, m->table, m->short_plan, err);
    if (!status)
        status = make_rows(m, m->dtable, m->long_plan, err);
    if (status || !memcmp(m->table, m->dtable, bytes))
        return status;
    return pe_train_fail(
        err, POSENC_UNSUPPORTED,
        "model: the rows of %.60s depend on the length of the whole input, so a model trained at "
        "%lld cannot be evaluated at %lld in one pass; give it a fixed length",
        m->config.spec, (long long)m->config.L, (long long)m->config.longest);
}

/* ---------------------------------------------------------------- the model's own calls ----- */

posenc_status pe_model_create(pe_model **model, const pe_model_config *config, posenc_error *err)
{
    *model      = NULL;
    pe_model *m = calloc(1, sizeof *m);
    if (!m)
        return no_memory(err);
    m->config = *config;
    if (m->config.longest == 0)
        m->config.longest = m->config.L;
    posenc_status status = check(&m->config, err);
    count_symbols(m);
    if (!status) {
        m->kernels            = pe_kernels_choose();
        m->math               = config->dtype == POSENC_F64 ? &pe_model_math_f64 : &pe_model_math_f32;
        const int64_t windows = config->batch * config->L / m->config.longest;
        m->long_batch         = windows > 1 ? windows : 1;
        status                = posenc_encoding_create(&m->encoding, config->spec, NULL, err);
    }
    if (!status) {
        m->config.spec = posenc_encoding_spec(m->encoding);
        status         = plans_create(m, err);
    }
    if (!status)
        status = entry_create(m, err);
    if (!status)
        status = table_create(m, err);
    if (!status)
        status = memory_create(m, err);
    if (!status)
        status = start_all(m, err);
    if (!status)
        status = check_rows_length_free(m, err);
    if (status)
        pe_model_free(m);
    else
        *model = m;
    return status;
}

void pe_model_free(pe_model *model)
{
    if (!model)
        return;
    posenc_plan_free(model->short_plan);
    posenc_plan_free(model->long_plan);
    posenc_encoding_free(model->encoding);
    free(model->memory);
    free(model->layers);
    free(model->params);
    free(model->weights);
    free(model);
}

static posenc_status check_batch(const pe_model *m, const pe_batch *batch, int64_t longest, posenc_error *err)
{
    const int64_t most = batch->length <= m->config.L ? m->config.batch : m->long_batch;
    if (batch->length < 1 || batch->length > longest || batch->B < 1 || batch->B > most)
        return pe_train_fail(err, POSENC_RANGE,
                             "model: %lld windows of %lld bytes are beyond what was planned",
                             (long long)batch->B, (long long)batch->length);
    const int hides = m->config.bidirectional && !m->config.symbols;
    if (!batch->hidden != !hides)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "model: hidden bytes must be given to a bidirectional model and to no other");
    if (!batch->targets != !m->config.symbols)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "model: targets must be given to a model of symbols and to no other");
    if (m->config.grid && (batch->columns < 1 || batch->columns > m->config.grid))
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "model: columns is %lld; a grid must have 1 to %lld of them",
                             (long long)batch->columns, (long long)m->config.grid);
    return POSENC_OK;
}

posenc_status pe_model_losses(pe_model *m, double *losses, const pe_batch *batch, posenc_error *err)
{
    const posenc_status status = check_batch(m, batch, m->config.longest, err);
    return status ? status : m->math->losses(m, losses, batch, err);
}

posenc_status pe_model_gradient(pe_model *m, double *loss, const pe_batch *batch, posenc_error *err)
{
    const posenc_status status = check_batch(m, batch, m->config.L, err);
    return status ? status : m->math->gradient(m, loss, batch, err);
}

posenc_status pe_model_cosine(pe_model *m, double *cosine, const double weight[PE_BYTES], posenc_error *err)
{
    *cosine            = NAN;
    const int has_both = m->has_rows && !m->by_word && !m->config.symbols;
    return has_both ? m->math->cosine(m, cosine, weight, err) : POSENC_OK;
}

double pe_model_cost(int64_t d_model, int64_t layers, int64_t classes, int64_t tokens)
{
    const double d = (double)d_model; /* a layer: 3 d d, d d, and twice 4 d d */
    return (12 * d * d * (double)layers + d * (double)classes) * (double)tokens;
}

static int64_t trained_from(const pe_model *m, int first)
{
    int64_t sum = 0;
    for (int i = first; i < m->weight_count; i++)
        sum += m->weights[i].trains ? m->weights[i].count : 0;
    return sum;
}

int64_t pe_model_parameters(const pe_model *m)
{
    return trained_from(m, 0);
}

int64_t pe_model_encoding_parameters(const pe_model *m)
{
    return trained_from(m, m->encoding_weight);
}
