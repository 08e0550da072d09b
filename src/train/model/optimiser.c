/* SPDX-License-Identifier: MIT */
/*
 * optimiser.c: AdamW over the table of parameters
 *
 * The factors that depend only on the step are worked out in double; the loop over elements is float
 * and has no branch, so it vectorises. It costs about a hundredth of a training step, so it is left
 * at that.
 *
 * What surprises: the gaps between tensors, which only align them, are never touched; the norm may
 * include them, because a gap's gradient is zero.
 */
#include "train/model/optimiser.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

static const double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8, last_share = 0.1, pi = 3.14159265358979323846;

enum { LANES = 8 };

struct pe_optimiser {
    int64_t t, size;
    float   moments[]; /* m [size], then v [size] */
};

posenc_status pe_optimiser_create(pe_optimiser **o, int64_t size, posenc_error *err)
{
    *o = calloc(1, sizeof **o + 2 * (size_t)size * sizeof(float));
    if (!*o)
        return pe_fail(err, POSENC_ERROR_MEMORY,
                       "optimiser: not enough memory for the moments of %lld parameters", (long long)size);
    (*o)->size = size;
    return POSENC_OK;
}

void pe_optimiser_free(pe_optimiser *o)
{
    free(o);
}

int64_t pe_optimiser_memory(pe_optimiser *o, int64_t **t, float **moments)
{
    *t       = &o->t;
    *moments = o->moments;
    return 2 * o->size;
}

double pe_optimiser_norm(const float *grad, int64_t n)
{
    double  lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)grad[i + l] * (double)grad[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)grad[i] * (double)grad[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sqrt(sum);
}

double pe_optimiser_rate(double peak, int64_t step, int64_t warmup, int64_t steps)
{
    const double done = (double)(step + 1);
    if (step < warmup)
        return peak * done / (double)warmup;
    const double share = (done - (double)warmup) / (double)(steps - warmup);
    return peak * (last_share + (1 - last_share) * 0.5 * (1 + cos(pi * share)));
}

/* What one step does to every element alike. */
typedef struct factors {
    float shrink, clip, rate, root;
} factors;

static void update(float *restrict theta, float *restrict m, float *restrict v, const float *restrict grad,
                   int64_t n, factors f)
{
    const float b1 = (float)beta1, b2 = (float)beta2, eps = (float)epsilon;
    for (int64_t i = 0; i < n; i++) {
        const float g = f.clip * grad[i];
        m[i]          = b1 * m[i] + (1 - b1) * g;
        v[i]          = b2 * v[i] + (1 - b2) * g * g;
        theta[i]      = f.shrink * theta[i] - f.rate * m[i] / (sqrtf(v[i]) * f.root + eps);
    }
}

double pe_optimiser_step(pe_optimiser *o, float *theta, const float *grad, const pe_weight *weights,
                         int count, double rate, double decay, double clip)
{
    if (count == 0)
        return 0;
    const pe_weight *last = &weights[count - 1];
    const double     norm = pe_optimiser_norm(grad, last->offset + last->count);
    if (!isfinite(norm))
        return norm;
    o->t++;
    factors f = {.clip = clip > 0 && norm > clip ? (float)(clip / norm) : 1,
                 .rate = (float)(rate / (1 - pow(beta1, (double)o->t))),
                 .root = (float)(1 / sqrt(1 - pow(beta2, (double)o->t)))};
    for (const pe_weight *w = weights; w <= last; w++) {
        f.shrink = w->decays ? (float)(1 - rate * decay) : 1;
        if (w->trains)
            update(theta + w->offset, o->moments + w->offset, o->moments + o->size + w->offset,
                   grad + w->offset, w->count, f);
    }
    return norm;
}

/* ---------------------------------------------------------------- a step -------------------- */

posenc_status pe_optimiser_descend(pe_model *model, pe_optimiser *optimiser, const pe_batch *batch,
                                   const pe_descent *descent, int64_t step, double *loss, int *finite,
                                   posenc_error *err)
{
    const posenc_status status = pe_model_gradient(model, loss, batch, err);
    if (status)
        return status;
    const double rate = pe_optimiser_rate(descent->learning_rate, step, descent->warmup, descent->steps);
    *finite           = isfinite(*loss) &&
              isfinite(pe_optimiser_step(optimiser, model->theta, model->grad, model->weights,
                                         model->weight_count, rate, descent->weight_decay, descent->clip));
    return POSENC_OK;
}
