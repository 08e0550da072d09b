/* SPDX-License-Identifier: MIT */
/*
 * model_start.c: the numbers that a model begins with
 *
 * What surprises: numbers of shared tensors depend on the run's seed and the tensor's name alone, so two
 * models with different encodings start from the same numbers, and the difference of their losses is the
 * encoding's.
 *
 * Source: initialisation as in GPT-2 (Radford et al. 2019) with the residual projections scaled by 1/sqrt(2
 * layers), in units where a token has variance one (Vaswani et al. 2017, section 3.4).
 */
#include "train/model_parts.h"

#include <math.h>

static void put(pe_model *m, int64_t index, double value)
{
    if (m->config.dtype == POSENC_F64)
        ((double *)m->theta)[index] = value;
    else
        ((float *)m->theta)[index] = (float)value;
}

/* Standard deviation of a tensor; fan_in = its rows. */
static double sigma_of(const pe_model *m, pe_start how, int64_t fan_in)
{
    switch (how) {
    case PE_START_ZEROS:
    case PE_START_ONES: return 0;
    case PE_START_UNIT: return 1;
    case PE_START_SMALL: return 0.02;
    case PE_START_FAN_IN: return 1 / sqrt((double)fan_in);
    case PE_START_RESIDUAL: return 1 / sqrt((double)fan_in * 2 * (double)m->config.layers);
    }
    return 0;
}

static void start_weight(pe_model *m, const pe_weight *w, const pe_recipe *r)
{
    const double mean  = r->start == PE_START_ONES,
                 sigma = sigma_of(m, r->start, pe_extent(r->rows, m->config.d_model));
    for (int64_t i = 0; i < w->count; i++)
        put(m, w->offset + i,
            mean + (sigma > 0 ? sigma * posenc_random_normal(m->config.seed, w->name, (uint64_t)i) : 0));
}

/* W = [I; I], cut to the rows that it has: the model begins as the one that adds, token half and position
   half alike, and so as paired with it as two models can be. Training may then leave the sum. */
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

posenc_status pe_model_start(pe_model *m, posenc_error *err)
{
    const pe_weight *w = m->weights;
    for (int64_t l = 0; l < m->config.layers; l++)
        for (int i = 0; i < PE_LAYER_WEIGHTS; i++)
            start_weight(m, w++, &pe_layer_recipes[i]);
    for (int i = 0; i < PE_MODEL_WEIGHTS; i++)
        start_weight(m, w++, &pe_model_recipes[i]);
    if (m->has_mixer)
        start_mixer(m);
    if (m->param_count == 0)
        return POSENC_OK;
    /* Downwards, so that what all layers share ends as layer 0's seed has it. */
    const posenc_dims dims   = pe_short_dims(m);
    posenc_status     status = POSENC_OK;
    for (int64_t l = m->config.layers - 1; l >= 0 && !status; l--)
        status = posenc_param_init(m->encoding, &dims, m->params + l * m->param_count,
                                   layer_seed(m->config.seed, l), err);
    return status;
}
