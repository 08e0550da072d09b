/* SPDX-License-Identifier: MIT */
/*
 * model_memory.c: where a model's parameters, gradients, activations and buffers lie
 *
 * One block for all of it: the same function counts its size and lays it out.
 */
#include "train/model_parts.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static size_t align_bytes(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Tokens that the buffers hold. */
static int64_t capacity(const pe_model *m)
{
    const int64_t a = m->config.batch * m->config.L, b = m->long_batch * m->config.longest;
    return a > b ? a : b;
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

/* Of the matrices that are transposed at one time: a layer's after attention (d, 4d and 4d rows of d), the
   output, or W of rows that are concatenated. */
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
    m->asked  = take(base, &used, n * sizeof *m->asked);
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
            const int     is_rows = pe_is_of_rows(m, i);
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

posenc_status pe_model_memory_create(pe_model *m, posenc_error *err)
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
    connect(m);
    return POSENC_OK;
}
