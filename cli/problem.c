/* SPDX-License-Identifier: MIT */
/* The encoding of a problem, its parameters and its plan: contract in problem.h. */
#include "problem.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- beginning and end --------- */

cli_problem cli_problem_new(const char *path)
{
    return (cli_problem){.path = path, .options = posenc_options_default()};
}

void cli_said(cli_problem *p, int status)
{
    if (cli_stopped(p) || status == CLI_DONE)
        return;
    p->err.status = POSENC_ARGUMENT;
    p->status     = status;
}

int cli_problem_status(cli_problem *p)
{
    if (p->status || !cli_stopped(p))
        return p->status;
    if (!p->sentence[0])
        p->status = cli_error(&p->err);
    else if (p->err.status == POSENC_MEMORY)
        p->status = cli_failed("%s: %s", p->path, p->sentence);
    else
        p->status = cli_usage("%s: %s", p->path, p->sentence);
    return p->status;
}

int cli_problem_end(cli_problem *p)
{
    const int status = cli_problem_status(p);
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    posenc_arrays_free(&p->file);
    posenc_arrays_free(&p->made);
    posenc_arrays_free(&p->results);
    return status;
}

/* ---------------------------------------------------------------- the encoding -------------- */

const char *cli_settings(cli_problem *p, const cli_args *args)
{
    const char *all = "";
    for (int i = 0; i < cli_value_count(args, "set"); i++)
        all = cli_text(p, "%s%s%s", all, i ? " " : "", cli_value_at(args, "set", i));
    return all;
}

void cli_encoding(cli_problem *p, const char *spec, const char *settings)
{
    posenc_encoding_free(p->e);
    p->e = NULL;
    if (!cli_stopped(p))
        posenc_encoding_create(&p->e, spec, settings, &p->err);
}

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

enum { PARAM_NAMES = 6 };

/* What a file may call a parameter, ended by NULL. */
static void param_names(cli_problem *p, const char *name, const char *list[PARAM_NAMES + 1])
{
    static const char *const    before[] = {"", "par_", "in_"};
    const posenc_encoding_info *only     = only_part(p->e);
    for (int prefix = 0; prefix < 3; prefix++) {
        *list++ = cli_text(p, "%s%s", before[prefix], name);
        if (only)
            *list++ = cli_text(p, "%s%s.%s", before[prefix], only->name, name);
    }
    *list = NULL;
}

int cli_is_param(const cli_problem *p, const char *name)
{
    for (int i = 0; i < posenc_param_count(p->e); i++)
        if (!strcmp(posenc_param_name(p->e, i), name))
            return 1;
    return 0;
}

/* ---------------------------------------------------------------- settings of the arrays ---- */

/* What is known while settings are read off the arrays, and the text that they become. */
typedef struct hints {
    cli_problem *p;
    const char  *spec, *given, *text;
} hints;

/* Is "name=" somewhere in the text, as a word of its own? */
static int is_said(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at[n] == '=' && (at == text || strchr(" ,:[.", at[-1])))
            return 1;
    return 0;
}

const posenc_setting_info *cli_find_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return &info->settings[i];
    return NULL;
}

/* A setting of that type that nobody has given. */
static int is_free(const hints *h, const posenc_encoding_info *info, const char *name, const char *type)
{
    const posenc_setting_info *setting = cli_find_setting(info, name);
    return setting && !strcmp(setting->type, type) && !is_said(h->spec, name) && !is_said(h->given, name);
}

/* The array of a parameter, or NULL. */
static const posenc_tensor *array_of(const hints *h, const char *name)
{
    const char          *names[PARAM_NAMES + 1];
    const posenc_tensor *found = NULL;
    param_names(h->p, name, names);
    for (int i = 0; names[i] && !found; i++)
        found = posenc_arrays_find(&h->p->file, names[i]);
    return found;
}

/* An axis "grid1*grid2" is the product of a list of two; how it divides an array cannot tell, so it is one
   column. */
static void read_axis(hints *h, const posenc_encoding_info *info, const char *axis, int64_t size)
{
    char name[64], other[64];
    int  end = 0;
    if (is_free(h, info, axis, "integer"))
        h->text = cli_text(h->p, "%s %s.%s=%lld", h->text, info->name, axis, (long long)size);
    if (sscanf(axis, "%63[a-z_]1*%63[a-z_]2%n", name, other, &end) == 2 && end && !axis[end] &&
        !strcmp(name, other) && is_free(h, info, name, "list"))
        h->text = cli_text(h->p, "%s %s.%s=%lldx1", h->text, info->name, name, (long long)size);
}

/* Every axis of the parameter that is a setting nobody has given. Shapes with axes that a flag calls for are
   left. */
static void read_axes(hints *h, const posenc_encoding_info *info, const posenc_param_info *param,
                      const posenc_tensor *array)
{
    int32_t axes = *param->shape ? 1 : 0;
    for (const char *at = param->shape; *at; at++)
        axes += *at == ',';
    if (array->ndim != axes || strstr(param->shape, " if "))
        return;
    const char *at = param->shape;
    for (int32_t axis = 0; axis < axes; axis++) {
        const size_t n = strcspn(at, ",");
        read_axis(h, info, cli_text(h->p, "%.*s", (int)n, at), array->shape[axis]);
        at += n + (at[n] == ',');
    }
}

/* Axes of the parameters that e has; and a flag of a parameter's own name, which calls for it: whoever brings
   the array has raised it. */
static void read_part(hints *h, const posenc_encoding_info *part)
{
    const int alone = only_part(h->p->e) != NULL;
    for (int i = 0; i < part->param_count; i++) {
        const char          *plain = part->params[i].name;
        const char          *name  = alone ? plain : cli_text(h->p, "%s.%s", part->name, plain);
        const posenc_tensor *array = array_of(h, name);
        if (array && cli_is_param(h->p, name))
            read_axes(h, part, &part->params[i], array);
        if (array && is_free(h, part, plain, "flag"))
            h->text = cli_text(h->p, "%s %s.%s=yes", h->text, part->name, plain);
    }
}

void cli_infer(cli_problem *p, const char *spec, const char *given)
{
    hints h = {p, spec, given, given};
    for (int place = 0; place < POSENC_PLACES && !cli_stopped(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part)
            read_part(&h, part);
    }
    cli_encoding(p, spec, h.text);
}

/* ---------------------------------------------------------------- plan and parameters ------- */

posenc_dims cli_attention_dims(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v)
{
    return (posenc_dims){.B  = q->shape[0],
                         .H  = q->shape[1],
                         .G  = k->shape[1],
                         .Lq = q->shape[2],
                         .Lk = k->shape[2],
                         .D  = q->shape[3],
                         .Dv = v->shape[3]};
}

void *cli_workspace(cli_problem *p, const posenc_plan *plan, int runs)
{
    return cli_stopped(p) ? NULL : cli_block(p, posenc_plan_workspace(plan, runs));
}

void cli_plan(cli_problem *p, int runs)
{
    if (!cli_stopped(p))
        posenc_plan_create(&p->plan, p->e, &p->dims, &p->options, &p->err);
    p->work = cli_workspace(p, p->plan, runs);
}

posenc_tensor *cli_initial(cli_problem *p, posenc_dtype dtype)
{
    const int      n      = cli_stopped(p) ? 0 : posenc_param_count(p->e);
    posenc_tensor *params = cli_block(p, ((size_t)n + 1) * sizeof *params);
    int32_t        ndim;
    int64_t        shape[POSENC_MAX_DIMS];
    for (int i = 0; i < n && !cli_stopped(p); i++)
        if (!posenc_param_shape(p->e, &p->dims, i, &ndim, shape, &p->err))
            params[i] = cli_make(p, dtype, ndim, shape);
    if (!cli_stopped(p))
        posenc_param_init(p->e, &p->dims, params, (uint64_t)p->seed, &p->err);
    return cli_stopped(p) ? NULL : params;
}

/* The file's array for parameter `name`, no data if it has none. */
static posenc_tensor given_param(cli_problem *p, const char *name, posenc_dtype dtype,
                                 const posenc_tensor *must_be)
{
    const char   *names[PARAM_NAMES + 1];
    const int32_t ndim = must_be->ndim;
    param_names(p, name, names);
    const posenc_tensor found = cli_find(p, names), t = cli_with_axes(found, ndim);
    if (!t.data)
        return t;
    if (t.ndim != ndim || memcmp(t.shape, must_be->shape, (size_t)ndim * sizeof *t.shape))
        cli_refuse(p, "%s has the shape %s; with these settings and sizes it must be %s", name,
                   cli_shape_text(p, found.ndim, found.shape), cli_shape_text(p, ndim, must_be->shape));
    else if (!cli_is_float(t.dtype))
        cli_refuse(p, "%s holds whole numbers; parameters are real ones", name);
    return cli_convert(p, t.dtype == POSENC_F64 ? POSENC_F64 : dtype, &t);
}

void cli_params(cli_problem *p, posenc_dtype dtype)
{
    p->params     = cli_initial(p, dtype);
    p->count      = cli_stopped(p) ? 0 : posenc_param_count(p->e);
    p->is_initial = cli_block(p, (size_t)p->count);
    for (int i = 0; i < p->count && !cli_stopped(p); i++) {
        const posenc_tensor given = given_param(p, posenc_param_name(p->e, i), dtype, &p->params[i]);
        p->is_initial[i]          = !given.data;
        if (given.data)
            p->params[i] = given;
    }
}

void cli_warn_initial(const cli_problem *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->is_initial[i] && posenc_param_trainable(p->e, i))
            cli_warn("%s: it has no array %s; initialised with seed %lld", p->path,
                     posenc_param_name(p->e, i), (long long)p->seed);
}
