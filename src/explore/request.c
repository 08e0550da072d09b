/* SPDX-License-Identifier: MIT */
/* request.c: the lines of a request, and the encodings it names with their parameters. Contract: explore.h.
 */
#include "explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pe_explore_value(const char *request, const char *name, char *to, size_t n)
{
    const size_t length = strlen(name);
    *to                 = '\0';
    for (const char *at = request; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (!strncmp(at, name, length) && at[length] == '=')
            snprintf(to, n, "%.*s", (int)strcspn(at + length + 1, "\n"), at + length + 1);
    return to;
}

double pe_explore_number(const char *request, const char *name, double otherwise)
{
    char text[64];
    return *pe_explore_value(request, name, text, sizeof text) ? strtod(text, NULL) : otherwise;
}

int64_t pe_explore_whole(const char *request, const char *name, int64_t otherwise)
{
    const double x = pe_explore_number(request, name, (double)otherwise);
    return x > -1e15 && x < 1e15 ? (int64_t)x : 0;
}

/* ---------------------------------------------------------------- encodings ----------------- */

posenc_status pe_explore_part_read(pe_explore_part *p, const char *request, int index, posenc_error *err)
{
    char name[8], spec[PE_EXPLORE_SPEC];
    snprintf(name, sizeof name, index ? "spec%d" : "spec", index + 1);
    p->group = index ? -1 : (int)pe_explore_whole(request, "group", -1);
    return posenc_encoding_create(&p->e, pe_explore_value(request, name, spec, sizeof spec), NULL, err);
}

void pe_explore_part_free(pe_explore_part *p)
{
    pe_picture_free(p->picture);
    for (int k = 0; k < PE_EXPLORE_PARAMS; k++)
        free(p->params[k].data);
    posenc_encoding_free(p->e);
    memset(p, 0, sizeof *p);
}

posenc_status pe_explore_part_params(pe_explore_part *p, const posenc_dims *dims, int64_t seed,
                                     posenc_error *err)
{
    const int     count   = posenc_param_count(p->e);
    int           trained = 0;
    posenc_status status;
    if (count > PE_EXPLORE_PARAMS)
        return pe_draw_fail(err, POSENC_ERROR_UNSUPPORTED, "it has more parameters than this page holds");
    for (int i = 0; i < count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        if ((status = posenc_param_shape(p->e, dims, i, &ndim, shape, err)))
            return status;
        for (int a = 0; a < ndim; a++)
            n *= shape[a];
        p->params[i] =
            posenc_tensor_contiguous(calloc((size_t)n + 1, sizeof(double)), POSENC_DTYPE_F64, ndim, shape);
        if (!p->params[i].data)
            return pe_draw_fail(err, POSENC_ERROR_MEMORY, "not enough memory for its parameters");
        trained += p->varied[i] = posenc_param_trainable(p->e, i);
    }
    if ((status = count ? posenc_param_init(p->e, dims, p->params, (uint64_t)seed, err) : POSENC_OK))
        return status;
    trained -= pe_explore_held(p, p->group);
    if (trained > 0)
        snprintf(p->origin, sizeof p->origin, "untrained: initial parameters, seed %lld", (long long)seed);
    p->data.params = p->params;
    p->data.origin = trained > 0 ? p->origin : NULL;
    return POSENC_OK;
}
