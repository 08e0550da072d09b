/* SPDX-License-Identifier: MIT */
/* Parameters from a file or as they start: contract in params.h. */
#include "params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parameter's names in a file: its own, par_<name>, and in_<name> of reference cases that call it an input. */
typedef struct spellings {
    char        prefixed[2][160];
    const char *names[4];
} spellings;

static void spell(spellings *s, const char *name)
{
    snprintf(s->prefixed[0], sizeof s->prefixed[0], "par_%s", name);
    snprintf(s->prefixed[1], sizeof s->prefixed[1], "in_%s", name);
    s->names[0] = name;
    s->names[1] = s->prefixed[0];
    s->names[2] = s->prefixed[1];
    s->names[3] = NULL;
}

/* The file's array for parameter `name`, no data if it has none. */
static posenc_tensor given_param(cli_inputs *in, const char *name, posenc_dtype dtype,
                                 const posenc_tensor *must_be)
{
    spellings     s;
    char          is[CLI_SHAPE_TEXT], must[CLI_SHAPE_TEXT];
    const int32_t ndim = must_be->ndim;
    spell(&s, name);
    const posenc_tensor found = cli_inputs_find(in, s.names), t = cli_with_axes(found, ndim);
    if (!t.data)
        return t;
    if (t.ndim != ndim || memcmp(t.shape, must_be->shape, (size_t)ndim * sizeof *t.shape))
        cli_inputs_fail(in, "%s has the shape %s; with these settings and sizes it must be %s", name,
                        cli_shape_text(is, found.ndim, found.shape),
                        cli_shape_text(must, ndim, must_be->shape));
    else if (!cli_is_float(t.dtype))
        cli_inputs_fail(in, "%s holds whole numbers; parameters are real ones", name);
    return cli_inputs_convert(in, t.dtype == POSENC_F64 ? POSENC_F64 : dtype, &t);
}

static int make_initial(cli_params *p, cli_inputs *in, const posenc_encoding *e, const posenc_dims *dims,
                        posenc_dtype dtype)
{
    posenc_error err;
    for (int i = 0; i < p->count && !in->status; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(e, dims, i, &ndim, shape, &err))
            in->status = cli_error(&err);
        else
            p->tensors[i] = cli_inputs_make(in, dtype, ndim, shape);
    }
    if (!in->status && posenc_param_init(e, dims, p->tensors, (uint64_t)p->seed, &err))
        in->status = cli_error(&err);
    return in->status;
}

int cli_params_make(cli_params *p, cli_inputs *in, const posenc_encoding *e, const posenc_dims *dims,
                    posenc_dtype dtype, int64_t seed)
{
    const int count = posenc_param_count(e);
    *p              = (cli_params){.count = count, .seed = seed};
    p->tensors      = calloc((size_t)count + 1, sizeof *p->tensors);
    p->is_initial   = calloc((size_t)count + 1, 1);
    if (!p->tensors || !p->is_initial)
        return in->status = cli_failed("there is no memory for %d parameters", count);
    if (make_initial(p, in, e, dims, dtype))
        return in->status;
    for (int i = 0; i < count && !in->status; i++) {
        const posenc_tensor given = given_param(in, posenc_param_name(e, i), dtype, &p->tensors[i]);
        p->is_initial[i]          = !given.data;
        if (given.data)
            p->tensors[i] = given;
    }
    return in->status;
}

const posenc_tensor *cli_params_array(void *inputs, const char *name)
{
    const cli_inputs    *in    = inputs;
    const posenc_tensor *found = NULL;
    spellings            s;
    spell(&s, name);
    for (int i = 0; s.names[i] && !found; i++)
        found = posenc_arrays_find(&in->file, s.names[i]);
    return found;
}

void cli_params_free(cli_params *p)
{
    free(p->tensors);
    free(p->is_initial);
}

void cli_params_warn_initial(const cli_params *p, const cli_inputs *in, const posenc_encoding *e)
{
    for (int i = 0; i < p->count; i++)
        if (p->is_initial[i] && posenc_param_trainable(e, i))
            cli_warn("%s: it has no array %s; initialised with seed %lld", in->path, posenc_param_name(e, i),
                     (long long)p->seed);
}
