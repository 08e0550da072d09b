/* SPDX-License-Identifier: MIT */
/*
 * model.c: a model from its configuration, and its calls
 *
 * Everything that is decided once per run and involves no arithmetic on activations: sizes, plans, and one
 * block for parameters, gradients, activations and buffers: the same function counts its size and lays it
 * out. Which tensors there are, and what they begin with, is in model_table.c.
 */
#include "train/model/model.h"

#include "base/shared/work.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* ---------------------------------------------------------------- sizes --------------------- */

static posenc_status check_config(const pe_model_config *c, posenc_error *err)
{
    const struct {
        const char *name;
        int64_t     value, high;
    } sizes[] = {{"L", c->L, 1 << 20},
                 {"d_model", c->d_model, 1 << 14},
                 {"layers", c->layers, 1 << 10},
                 {"heads", c->heads, 1 << 10},
                 {"batch", c->batch, 1 << 14},
                 {"vocabulary", c->vocabulary ? c->vocabulary : PE_BYTES, PE_MOST_SYMBOLS},
                 {"symbols", c->symbols ? c->symbols : PE_BYTES, PE_BYTES},
                 {"classes", c->symbols ? c->classes : PE_BYTES, PE_BYTES}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].high)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "model: %s is %lld; it must be 1 to %lld",
                           sizes[i].name, (long long)sizes[i].value, (long long)sizes[i].high);
    if (c->d_model % c->heads != 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "model: heads is %lld; it must divide d_model, which is %lld", (long long)c->heads,
                       (long long)c->d_model);
    if (c->longest < c->L || c->longest > 64 * c->L)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "model: longest is %lld; it must be L to 64 L, and L is %lld", (long long)c->longest,
                       (long long)c->L);
    if (c->dtype != POSENC_DTYPE_F32 && c->dtype != POSENC_DTYPE_F64)
        return pe_fail(err, POSENC_ERROR_DTYPE, "model: dtype must be F32 or F64");
    return POSENC_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t pe_model_rows(const pe_model *m)
{
    return m->config.batch > m->long_batch ? m->config.batch : m->long_batch;
}

int64_t pe_model_tokens(const pe_model *m)
{
    const int64_t a = m->config.batch * m->config.L, b = m->long_batch * m->config.longest;
    return a > b ? a : b;
}

/* ---------------------------------------------------------------- plans --------------------- */

/* Whether every part of the encoding has a meaning without a causal mask, if this model has none. */
static posenc_status check_direction(const pe_model *m, const posenc_encoding *e, posenc_error *err)
{
    for (int place = 0; m->config.bidirectional && place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && part->causal_only)
            return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "model: %s works only with a causal mask: %s",
                           part->name, part->why_causal);
    }
    return POSENC_OK;
}

/* Rows enter the stream once, for all layers. */
static posenc_status check_input(const pe_model *m, const posenc_encoding *e, posenc_error *err)
{
    const posenc_encoding_info *input = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    if (!input || m->kind_count == 1)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "model: %s acts at the input, which all layers share; it cannot stand in a SPEC per layer",
                   input->name);
}

static posenc_status plans_of_kind(pe_model *m, pe_layer_kind *kind, posenc_error *err)
{
    posenc_status status = check_direction(m, kind->encoding, err);
    if (!status)
        status = check_input(m, kind->encoding, err);
    if (status)
        return status;
    const posenc_dims shorter = pe_model_short_dims(m), longer = pe_model_long_dims(m);
    posenc_options    options = posenc_options_default();
    options.mask              = (m->config.bidirectional ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL) |
                   (kind->read.window ? POSENC_MASK_WINDOW : POSENC_MASK_NONE);
    options.window        = kind->read.window;
    options.threads       = 1;
    options.max_distances = larger(2 * m->config.scattered, shorter.Lq + shorter.Lk);
    status                = posenc_plan_create(&kind->short_plan, kind->encoding, &shorter, &options, err);
    options.max_distances = 0; /* what is read in the long plan stands in order */
    if (!status)
        status = posenc_plan_create(&kind->long_plan, kind->encoding, &longer, &options, err);
    if (!status)
        status = pe_work_check_plan(kind->encoding, kind->long_plan, POSENC_RUN_FORWARD, err);
    return status ? status : pe_work_check_params(kind->encoding, &shorter, PE_WORK_PARAMS, err);
}

static posenc_status plans_create(pe_model *m, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int k = 0; k < m->kind_count && !status; k++)
        status = plans_of_kind(m, &m->kinds[k], err);
    m->short_plan = m->kinds->short_plan;
    m->long_plan  = m->kinds->long_plan;
    return status;
}

/* ---------------------------------------------------------------- layers -------------------- */

/* Of the kinds so far that with the same SPEC and window; else one more. */
static posenc_status find_kind(pe_model *m, int64_t l, const posenc_layer *read, posenc_error *err)
{
    int k = 0;
    while (k < m->kind_count &&
           (m->kinds[k].read.window != read->window || strcmp(m->kinds[k].read.spec, read->spec) != 0))
        k++;
    pe_layer_kind *kind = &m->kinds[k];
    m->stack[l].kind    = kind;
    if (k < m->kind_count)
        return POSENC_OK;
    kind->read                 = *read;
    m->kind_count              = k + 1;
    const posenc_status status = posenc_encoding_create(&kind->encoding, read->spec, NULL, err);
    kind->param_count          = status ? 0 : posenc_param_count(kind->encoding);
    kind->token_count          = status ? 0 : posenc_token_count(kind->encoding);
    return status;
}

static posenc_status layers_create(pe_model *m, posenc_error *err)
{
    const int64_t layers = m->config.layers;
    posenc_status status = POSENC_OK;
    posenc_layer  read;
    m->kinds = calloc((size_t)layers, sizeof *m->kinds);
    m->stack = calloc((size_t)layers, sizeof *m->stack);
    if (!m->kinds || !m->stack)
        return pe_model_no_memory(err);
    for (int64_t l = 0; l < layers && !status; l++) {
        status = posenc_layer_read(&read, m->config.spec, l, err);
        if (!status)
            status = find_kind(m, l, &read, err);
    }
    if (status)
        return status;
    m->encoding = m->kinds->encoding;
    if (m->kind_count == 1)
        m->config.spec = posenc_encoding_spec(m->encoding);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- memory -------------------- */

/* Takes `bytes` from the block. With base NULL it only counts. */
static void *carve(char *base, size_t *used, size_t bytes)
{
    char *p = base ? base + *used : NULL;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return p;
}

/* Columns of the projections of token inputs, in the layer that has most. */
static int64_t most_columns(const pe_model *m)
{
    int64_t most = 0;
    for (int k = 0; k < m->kind_count; k++)
        most = larger(m->kinds[k].columns, most);
    return most;
}

/* Of the matrices that are transposed at one time: a layer's after attention (d, 4d and 4d rows of d) or
   before it (3d, and the projections of token inputs), the output, or W of rows that are concatenated. */
static int64_t transposed_elements(const pe_model *m)
{
    const int64_t d = m->config.d_model, mixer = d + m->row_width;
    const int64_t layer = larger((1 + 2 * PE_MLP_WIDTH) * d, 3 * d + most_columns(m));
    return larger(layer, larger(m->classes, mixer)) * d;
}

/* What the plans of any layer ask for. */
static size_t workspace_bytes(const pe_model *m)
{
    size_t most = 0;
    for (int k = 0; k < m->kind_count; k++) {
        const pe_layer_kind *kind    = &m->kinds[k];
        const size_t         forward = posenc_plan_workspace(kind->long_plan, POSENC_RUN_FORWARD, NULL),
                     back = posenc_plan_workspace(kind->short_plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD,
                                                  NULL);
        most              = forward > most ? forward : most;
        most              = back > most ? back : most;
    }
    return most;
}

/* Lays the buffers out in `base` and returns their size; with base NULL only the size. */
static size_t lay_out(pe_model *m, char *base)
{
    const size_t e = posenc_dtype_size(m->config.dtype), n = (size_t)pe_model_tokens(m),
                 d       = (size_t)m->config.d_model;
    const size_t columns = (size_t)most_columns(m), bytes = workspace_bytes(m),
                 wide = (size_t)larger(larger(PE_MLP_WIDTH * m->config.d_model, m->classes), most_columns(m));
    size_t used       = 0;
    m->theta          = carve(base, &used, (size_t)m->size * e);
    m->grad           = carve(base, &used, (size_t)m->size * e);
    m->workspace      = posenc_workspace_over(carve(base, &used, bytes), bytes);
    for (int64_t l = 0; l < m->config.layers; l++) {
        pe_layer_memory *y = &m->layers[l];
        y->unit1           = carve(base, &used, n * d * e);
        y->scale1          = carve(base, &used, n * e);
        y->head_scale = carve(base, &used, m->config.norms_heads ? 2 * n * (size_t)m->config.heads * e : 0);
        y->qkv        = carve(base, &used, 3 * n * d * e);
        y->o          = carve(base, &used, n * d * e);
        y->lse        = carve(base, &used, n * (size_t)m->config.heads * e);
        y->unit2      = carve(base, &used, n * d * e);
        y->scale2     = carve(base, &used, n * e);
        y->hidden     = carve(base, &used, PE_MLP_WIDTH * n * d * e);
        y->tokens     = carve(base, &used, (size_t)m->stack[l].kind->columns * n * e);
    }
    m->x          = carve(base, &used, n * d * e);
    m->dx         = carve(base, &used, n * d * e);
    m->spare      = carve(base, &used, n * d * e);
    m->dqkv       = carve(base, &used, 3 * n * d * e);
    m->dtoken     = carve(base, &used, columns * n * e);
    m->y          = carve(base, &used, PE_BLOCK_ROWS * columns * e);
    m->rows       = carve(base, &used, PE_BLOCK_ROWS * d * e);
    m->unit       = carve(base, &used, PE_BLOCK_ROWS * d * e);
    m->wide       = carve(base, &used, PE_BLOCK_ROWS * wide * e);
    m->active     = carve(base, &used, PE_BLOCK_ROWS * PE_MLP_WIDTH * d * e);
    m->transposed = carve(base, &used, (size_t)transposed_elements(m) * e);
    m->scale      = carve(base, &used, PE_BLOCK_ROWS * e);
    m->losses     = carve(base, &used, n * sizeof(double));
    m->asked      = carve(base, &used, n * sizeof *m->asked);
    if (m->has_rows) {
        const size_t rows = m->config.scattered ? n : (size_t)m->config.longest;
        m->table          = carve(base, &used, rows * (size_t)m->row_width * e);
        m->dtable         = carve(base, &used, rows * (size_t)m->row_width * e);
        m->mixed_rows     = carve(base, &used, rows * d * e);
    }
    if (m->by_word)
        m->places = carve(base, &used, 2 * n * sizeof *m->places);
    if (m->config.grid) {
        m->cells   = carve(base, &used, 2 * (size_t)m->config.longest * sizeof *m->cells);
        m->numbers = carve(base, &used, (size_t)m->config.longest * sizeof *m->numbers);
    }
    if (m->config.symbols)
        m->right = carve(base, &used, n);
    return used + PE_LANES * e; /* products read so far beyond the last array */
}

static posenc_status memory_create(pe_model *m, posenc_error *err)
{
    m->layers = calloc((size_t)m->config.layers, sizeof *m->layers);
    if (!m->layers)
        return pe_model_no_memory(err);
    const size_t bytes = lay_out(m, NULL);
    m->memory          = aligned_alloc(ALIGNMENT, bytes);
    if (!m->memory)
        return pe_model_no_memory(err);
    /* Touches every page now, so that the first steps are not slower than the others. */
    memset(m->memory, 0, bytes);
    lay_out(m, m->memory);
    pe_model_connect(m);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- rows of any length -------- */

/* Rows 0 .. L-1 as a plan makes them. */
static posenc_status make_rows(pe_model *m, void *to, const posenc_plan *plan, posenc_error *err)
{
    const int64_t        shape[3] = {1, m->config.L, m->row_width};
    posenc_tensor        y        = posenc_tensor_contiguous(to, m->config.dtype, 3, shape);
    const posenc_rows_in in       = {.size = sizeof in, .params = m->params};
    return posenc_rows(plan, &in, &y, &m->workspace, err);
}

/* A model is trained at L and read at `longest`, where its first positions must stand for the length L: a
   table that is stretched to the length of the input does not do that. */
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
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "model: the rows of %.60s depend on the length of the whole input, so a model trained at "
                   "%lld cannot be evaluated at %lld in one pass; give it a fixed length",
                   m->config.spec, (long long)m->config.L, (long long)m->config.longest);
}

/* ---------------------------------------------------------------- the model's own calls ----- */

typedef posenc_status stage(pe_model *m, posenc_error *err);

static stage *const stages[] = {plans_create,  pe_model_entry_prepare, pe_model_table_create,
                                memory_create, pe_model_start,         check_rows_length_free};

int64_t pe_model_classes(const pe_model_config *c)
{
    return c->symbols ? c->classes : c->vocabulary ? c->vocabulary : PE_BYTES;
}

posenc_status pe_model_create(pe_model **model, const pe_model_config *config, posenc_error *err)
{
    *model      = NULL;
    pe_model *m = calloc(1, sizeof *m);
    if (!m)
        return pe_model_no_memory(err);
    m->config = *config;
    if (m->config.longest == 0)
        m->config.longest = m->config.L;
    posenc_status status = check_config(&m->config, err);
    if (!status) {
        /* The embedding of a bidirectional model of text has one row more, the mask symbol's. It is the
           last, so that all others start from the numbers that they have in any model. */
        m->classes = pe_model_classes(config);
        m->symbols = config->symbols ? config->symbols : m->classes + (config->bidirectional ? 1 : 0);
        m->kernels = pe_kernels_choose();
        m->math    = config->dtype == POSENC_DTYPE_F64 ? &pe_model_math_f64 : &pe_model_math_f32;
        const int64_t windows = config->batch * config->L / m->config.longest;
        m->long_batch         = windows > 1 ? windows : 1;
        status                = layers_create(m, err);
    }
    for (size_t i = 0; i < sizeof stages / sizeof *stages && !status; i++)
        status = stages[i](m, err);
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
    for (int k = 0; k < model->kind_count; k++) {
        posenc_plan_free(model->kinds[k].short_plan);
        posenc_plan_free(model->kinds[k].long_plan);
        posenc_encoding_free(model->kinds[k].encoding);
    }
    free(model->kinds);
    free(model->stack);
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
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "model: %lld windows of %lld bytes are more than the model was created for",
                       (long long)batch->B, (long long)batch->length);
    if (batch->positions && !m->config.scattered)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "model: positions may be given to a model that was created for them alone");
    const int hides = m->config.bidirectional && !m->config.symbols;
    if (!batch->hidden != !hides)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "model: hidden bytes must be given to a bidirectional model and to no other");
    if (!batch->targets != !m->config.symbols)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "model: targets must be given to a model of symbols and to no other");
    if (m->config.grid && (batch->columns < 1 || batch->columns > m->config.grid))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
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

posenc_status pe_model_cosine(pe_model *m, double *cosine, const double *weight, posenc_error *err)
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
