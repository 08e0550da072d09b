/* SPDX-License-Identifier: MIT */
/*
 * optimiser.c: AdamW and Muon over the table of parameters
 *
 * The factors that depend only on the step are worked out in double; the loop over elements is float
 * and has no branch, so it vectorises. It costs about a hundredth of a training step, so it is left
 * at that; the matrices' orthogonal steps (muon.c) cost a sixth at d = 64.
 *
 * What surprises: the gaps between tensors, which only align them, are never touched; the norm may
 * include them, because a gap's gradient is zero.
 */
#include "train/model/optimiser.h"

#include "base/status.h"
#include "train/model/muon.h"
#include "train/model/products.h"

#include <math.h>
#include <stdlib.h>

static const double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
static const float  momentum = 0.95F;
/* A step of a matrix, of singular values near 1, by the rate of the other parameters; and its decay by
 * theirs. */
static const double matrix_share = 0.8, matrix_decay = 0.5;

struct pe_optimiser {
    const pe_kernels *kernels;
    int64_t           t, size;
    float            *step;      /* of one matrix, and scratch */
    float             moments[]; /* m [size], then v [size], then step */
};

/* Numbers of one of the matrices that lie side by side in w, and the shorter of its sides. */
static int64_t matrix_count(const pe_weight *w)
{
    return w->count / w->matrices;
}

static int64_t narrow_side(const pe_weight *w)
{
    const int64_t columns = matrix_count(w) / w->rows;
    return w->rows < columns ? w->rows : columns;
}

static int64_t step_elements(const pe_weight *weights, int count)
{
    int64_t most = 0;
    for (const pe_weight *w = weights; w < weights + count; w++)
        if (w->matrices) {
            const int64_t n = matrix_count(w) + PE_LANES + pe_muon_scratch(matrix_count(w), narrow_side(w));
            most            = n > most ? n : most;
        }
    return most;
}

posenc_status pe_optimiser_create(pe_optimiser **o, const pe_weight *weights, int count,
                                  const pe_kernels *kernels, posenc_error *err)
{
    const pe_weight *last = &weights[count - 1];
    const int64_t    size = count ? (last->offset + last->count + 15) / 16 * 16 : 0;
    const int64_t    step = step_elements(weights, count);
    *o                    = calloc(1, sizeof **o + (size_t)(2 * size + step) * sizeof(float));
    if (!*o)
        return pe_fail(err, POSENC_ERROR_MEMORY,
                       "optimiser: not enough memory for the moments of %lld parameters", (long long)size);
    (*o)->size    = size;
    (*o)->kernels = kernels;
    (*o)->step    = (*o)->moments + 2 * size;
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

double pe_optimiser_rate(double peak, int64_t step, int64_t warmup, int64_t steps)
{
    return step < warmup ? peak * (double)(step + 1) / (double)warmup
                         : peak * (double)(steps - step) / (double)(steps - warmup);
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

/* ---------------------------------------------------------------- matrices ------------------ */

/* One of the matrices of a weight, in an array that has theta's places. */
typedef struct matrix {
    float  *at;
    int64_t rows, columns, stride;
} matrix;

static matrix matrix_of(const pe_weight *w, float *array, int which)
{
    const int64_t columns = matrix_count(w) / w->rows;
    return (matrix){array + w->offset + which * columns, w->rows, columns, w->count / w->rows};
}

/* m = momentum m + (1 - momentum) g, step = momentum m + (1 - momentum) g (Nesterov's), transposed if it is
   wider than tall. */
static void push(float *step, matrix m, matrix g)
{
    const int wide = m.columns > m.rows;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.columns; c++) {
            float      *at                                  = &m.at[r * m.stride + c];
            const float d                                   = (1 - momentum) * g.at[r * g.stride + c];
            *at                                             = momentum * *at + d;
            step[wide ? c * m.rows + r : r * m.columns + c] = d + momentum * *at;
        }
}

static void follow(matrix theta, const float *step, float shrink, float rate)
{
    const int wide = theta.columns > theta.rows;
    for (int64_t r = 0; r < theta.rows; r++)
        for (int64_t c = 0; c < theta.columns; c++) {
            float *at = &theta.at[r * theta.stride + c];
            *at       = shrink * *at - rate * step[wide ? c * theta.rows + r : r * theta.columns + c];
        }
}

/* A step of length 0 needs no direction, which costs most of it. */
static void step_matrices(pe_optimiser *o, float *theta, const float *grad, const pe_weight *w, double rate,
                          double decay)
{
    const int64_t narrow = narrow_side(w), wide = matrix_count(w) / narrow;
    float        *scratch = o->step + matrix_count(w) + PE_LANES;
    for (int i = 0; i < w->matrices; i++) {
        const matrix at    = matrix_of(w, theta, i);
        const double ratio = (double)at.columns / (double)at.rows;
        push(o->step, matrix_of(w, o->moments, i), matrix_of(w, (float *)grad, i));
        if (rate == 0)
            continue;
        pe_muon_orthogonalise(o->kernels, o->step, wide, narrow, scratch);
        follow(at, o->step, (float)(1 - matrix_decay * rate * decay),
               (float)(matrix_share * rate * sqrt(ratio > 1 ? ratio : 1)));
    }
}

double pe_optimiser_step(pe_optimiser *o, float *theta, const float *grad, const pe_weight *weights,
                         int count, double rate, double decay, double clip)
{
    if (count == 0)
        return 0;
    const pe_weight *last = &weights[count - 1];
    const double     norm = pe_products_norm(grad, last->offset + last->count);
    if (!isfinite(norm))
        return norm;
    o->t++;
    factors f = {.clip = clip > 0 && norm > clip ? (float)(clip / norm) : 1,
                 .rate = (float)(rate / (1 - pow(beta1, (double)o->t))),
                 .root = (float)(1 / sqrt(1 - pow(beta2, (double)o->t)))};
    for (const pe_weight *w = weights; w <= last; w++) {
        f.shrink = w->decays ? (float)(1 - rate * decay) : 1;
        f.rate   = (float)(rate * w->rate / (1 - pow(beta1, (double)o->t)));
        if (w->trains && w->matrices)
            step_matrices(o, theta, grad, w, rate, decay);
        else if (w->trains)
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
