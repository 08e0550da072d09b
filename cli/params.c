/* SPDX-License-Identifier: MIT */
/* Parameters from a file or as they start: contract in params.h. */
#include "params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The only part of e; NULL if there are several. */
static const posenc_encoding_info *only_part(const posenc_encoding *e)
{
    const posenc_encoding_info *only = NULL;
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && only)
            return NULL;
        only = part ? part : only;
    }
    return only;
}

void cli_param_names_of(cli_param_names *names, const posenc_encoding *e, const char *name)
{
    const posenc_encoding_info *only     = only_part(e);
    int                         count    = 0;
    static const char *const    before[] = {"", "par_", "in_"};
    for (int prefixed = 0; prefixed < 3; prefixed++)
        for (int qualified = 0; qualified <= (only != NULL); qualified++) {
            snprintf(names->text[count], CLI_PARAM_TEXT, "%s%s%s%s", before[prefixed],
                     qualified ? only->name : "", qualified ? "." : "", name);
            names->list[count] = names->text[count];
            count++;
        }
    names->list[count] = NULL;
}

int cli_is_param(const posenc_encoding *e, const char *name)
{
    for (int i = 0; i < posenc_param_count(e); i++)
        if (!strcmp(posenc_param_name(e, i), name))
            return 1;
    return 0;
}

/* The file's array for parameter `name`, no data if it has none. */
static posenc_tensor given_param(cli_inputs *in, const posenc_encoding *e, const char *name,
                                 posenc_dtype dtype, const posenc_tensor *must_be)
{
    char            is[CLI_SHAPE_TEXT], must[CLI_SHAPE_TEXT];
    cli_param_names names;
    const int32_t   ndim = must_be->ndim;
    cli_param_names_of(&names, e, name);
    const posenc_tensor found = cli_inputs_find(in, names.list), t = cli_with_axes(found, ndim);
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
        const posenc_tensor given = given_param(in, e, posenc_param_name(e, i), dtype, &p->tensors[i]);
        p->is_initial[i]          = !given.data;
        if (given.data)
            p->tensors[i] = given;
    }
    return in->status;
}

const posenc_tensor *cli_params_array(void *search, const char *name)
{
    const cli_param_search *where = search;
    const posenc_tensor    *found = NULL;
    cli_param_names         names;
    cli_param_names_of(&names, where->e, name);
    for (int i = 0; names.list[i] && !found; i++)
        found = posenc_arrays_find(&where->in->file, names.list[i]);
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
