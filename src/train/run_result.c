/* SPDX-License-Identifier: MIT */
/*
 * run_result.c: the arrays of a result, and copies of what the encoding has learnt
 *
 * Arrays begin as NaN: what was not measured, as the run diverged or was stopped before, must not look like a
 * number. Parameters are copied, layer by layer, because the model goes with the run.
 */
#include "train/fail.h"
#include "train/run_parts.h"
#include "train/trained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An array of n NaNs: what was not measured must not look like a number. */
static float *unmeasured_create(int64_t n)
{
    float *a = malloc((size_t)n * sizeof *a);
    for (int64_t i = 0; a && i < n; i++)
        a[i] = NAN;
    return a;
}

posenc_status pe_run_result_create(pe_run_result *result, const pe_run_config *c, const pe_model *m,
                                   posenc_error *err)
{
    result->train_loss          = unmeasured_create(c->steps);
    result->window_loss         = unmeasured_create(c->windows * PE_REACH * c->L);
    result->trained             = unmeasured_create(pe_trained_count(c));
    result->sequel              = c->sequel ? unmeasured_create(c->sequel->count) : NULL;
    result->params              = calloc((size_t)(c->layers * m->param_count) + 1, sizeof *result->params);
    result->parameters          = pe_model_parameters(m);
    result->encoding_parameters = pe_model_encoding_parameters(m);
    result->cosine_before = result->cosine_after = NAN;
    if (!result->train_loss || !result->window_loss || !result->params || !result->trained ||
        (c->sequel && !result->sequel))
        return pe_train_fail(err, POSENC_MEMORY, "run: no memory for the losses of %lld windows",
                             (long long)c->windows);
    return POSENC_OK;
}

static int copy_create(pe_run_param *to, const char *name, const posenc_tensor *from)
{
    size_t n = 1;
    for (int32_t a = 0; a < from->ndim; a++)
        n *= (size_t)from->shape[a];
    to->tensor      = *from;
    to->tensor.data = malloc(n * sizeof(float) + 1);
    to->name        = malloc(strlen(name) + 1);
    if (!to->tensor.data || !to->name)
        return 0;
    memcpy(to->tensor.data, from->data, n * sizeof(float));
    strcpy(to->name, name);
    return 1;
}

posenc_status pe_run_params_create(pe_run_result *result, const pe_model *m, posenc_error *err)
{
    const int64_t n = m->config.layers * m->param_count;
    for (int64_t i = 0; i < n; i++) {
        const char *name = posenc_param_name(m->encoding, (int)(i % m->param_count));
        result->param_count++;
        if (!copy_create(&result->params[i], name, &m->params[i]))
            return pe_train_fail(err, POSENC_MEMORY,
                                 "run: no memory for a copy of the encoding's parameters");
    }
    return POSENC_OK;
}

void pe_run_result_free(pe_run_result *result)
{
    if (!result)
        return;
    for (int i = 0; i < result->param_count; i++) {
        free(result->params[i].name);
        free(result->params[i].tensor.data);
    }
    free(result->params);
    free(result->train_loss);
    free(result->window_loss);
    free(result->trained);
    free(result->sequel);
    *result = (pe_run_result){0};
}
