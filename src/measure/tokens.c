/* SPDX-License-Identifier: MIT */
/*
 * tokens.c: token inputs that nobody gave, and what an encoding adds to the scores because of them
 *
 * A model makes them; a table or a picture of an encoding by itself has them drawn from N(0,1), each by its
 * name, head and place, so that a longer sequence begins with the same ones, and made as a model makes them.
 */
#include <math.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/measure.h"

enum { MOST = 1 << 20 }; /* tokens of a head */

static posenc_status no_memory(posenc_error *err)
{
    if (err) {
        err->status = POSENC_ERROR_MEMORY;
        snprintf(err->message, sizeof err->message, "measure: not enough memory for token inputs");
    }
    return POSENC_ERROR_MEMORY;
}

/* What a model makes of numbers of either sign, rows of n. */
static void make(posenc_token_made made, double *x, int64_t count, int64_t n)
{
    for (int64_t row = 0; made == POSENC_TOKEN_UNIT && row < count; row += n) {
        double sum = 0;
        for (int64_t i = row; i < row + n; i++)
            sum += x[i] * x[i];
        for (int64_t i = row; i < row + n; i++)
            x[i] /= sqrt(sum);
    }
    for (int64_t i = 0; made == POSENC_TOKEN_UP_TO_2 && i < count; i++)
        x[i] = 2 / (1 + exp(-x[i]));
}

static posenc_status draw_one(const posenc_encoding *e, const posenc_dims *dims, int index, uint64_t seed,
                              posenc_tensor *to, posenc_error *err)
{
    int64_t             shape[4];
    const posenc_status status = posenc_token_shape(e, dims, index, shape, err);
    if (status)
        return status;
    const int64_t row = shape[2] * shape[3], n = shape[0] * shape[1] * row;
    double       *x = malloc((size_t)n * sizeof *x);
    if (!x)
        return no_memory(err);
    for (int64_t i = 0; i < n; i++)
        x[i] = posenc_random_normal(seed, posenc_token_name(e, index),
                                    (uint64_t)(i / row * MOST * shape[3] + i % row));
    make(posenc_token_describe(e, index)->made, x, n, shape[3]);
    *to = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 4, shape);
    return POSENC_OK;
}

posenc_status pe_tokens_draw(const posenc_encoding *e, const posenc_dims *dims, uint64_t seed,
                             posenc_tensor **tokens, posenc_error *err)
{
    const int     n      = posenc_token_count(e);
    posenc_status status = POSENC_OK;
    *tokens              = calloc((size_t)n + 1, sizeof **tokens);
    if (!*tokens)
        return no_memory(err);
    for (int i = 0; !status && i < n; i++)
        status = draw_one(e, dims, i, seed, &(*tokens)[i], err);
    return status;
}

void pe_tokens_free(const posenc_encoding *e, posenc_tensor *tokens)
{
    for (int i = 0; tokens && i < posenc_token_count(e); i++)
        free(tokens[i].data);
    free(tokens);
}

/* Scores of queries and keys of 0, to the place of the bias. */
static posenc_status score_nothing(const posenc_plan *plan, const posenc_attend_in *in,
                                   const posenc_dims *dims, posenc_tensor *bias, const posenc_workspace *work,
                                   posenc_error *err)
{
    posenc_attend_in nothing  = *in;
    const int64_t    shape[4] = {1, dims->H, bias->shape[1], bias->shape[2]},
                  q[4]        = {1, dims->H, shape[2], dims->D},
                  k[4]        = {1, dims->G ? dims->G : dims->H, shape[3], dims->D};
    double *zeros             = calloc((size_t)dims->D, sizeof *zeros);
    if (!zeros)
        return no_memory(err);
    posenc_tensor S = posenc_tensor_contiguous(bias->data, POSENC_DTYPE_F64, 4, shape);
    nothing.q       = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F64, 4, q);
    nothing.k       = posenc_tensor_contiguous(zeros, POSENC_DTYPE_F64, 4, k);
    nothing.v       = (posenc_tensor){0};
    for (int a = 0; a < 3; a++)
        nothing.q.stride[a] = nothing.k.stride[a] = 0;
    const posenc_status status = posenc_scores(plan, &nothing, &S, work, err);
    free(zeros);
    return status;
}

posenc_status pe_tokens_bias(const posenc_plan *plan, const posenc_attend_in *in, const posenc_dims *dims,
                             posenc_tensor *bias, const posenc_workspace *work, posenc_error *err)
{
    const posenc_status status = posenc_bias(plan, in, bias, work, err);
    return status == POSENC_ERROR_UNSUPPORTED && in->tokens ? score_nothing(plan, in, dims, bias, work, err)
                                                            : status;
}
