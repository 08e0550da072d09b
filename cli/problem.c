/* SPDX-License-Identifier: MIT */
/* A problem's arrays, encoding, parameters and plan: contract in problem.h. */
#include "problem.h"

#include <math.h>
#include <stdarg.h>
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
    p->err.status = POSENC_ERROR_ARGUMENT;
    p->status     = status;
}

int cli_problem_status(cli_problem *p)
{
    if (p->status || !cli_stopped(p))
        return p->status;
    if (!p->sentence[0])
        p->status = cli_error(&p->err);
    else if (p->err.status == POSENC_ERROR_MEMORY)
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

void cli_refuse(cli_problem *p, const char *format, ...)
{
    va_list list;
    if (cli_stopped(p)) /* the first reason is the one to mend */
        return;
    va_start(list, format);
    vsnprintf(p->sentence, sizeof p->sentence, format, list);
    va_end(list);
    p->err.status = POSENC_ERROR_ARGUMENT;
}

void cli_refuse_memory(cli_problem *p, const char *what)
{
    if (cli_stopped(p))
        return;
    cli_refuse(p, "there is no memory for %s", what);
    p->err.status = POSENC_ERROR_MEMORY;
}

/* ---------------------------------------------------------------- the file ------------------ */

void cli_problem_read(cli_problem *p, const char *path)
{
    if (cli_stopped(p))
        return;
    p->path = strcmp(path, "-") ? path : "standard input";
    if (posenc_arrays_read(&p->file, path, &p->err))
        p->err.status = POSENC_ERROR_ARGUMENT; /* an input that cannot be read is an unusable argument */
    p->used = cli_block(p, (size_t)p->file.count);
}

const posenc_array *cli_find_array(cli_problem *p, const char *const *names)
{
    int at = -1;
    for (; *names; names++)
        for (int i = 0; i < p->file.count && !cli_stopped(p); i++) {
            if (strcmp(p->file.items[i].name, *names))
                continue;
            if (at >= 0)
                cli_refuse(p, "it has both %s and %s, two names of one array; keep one",
                           p->file.items[at].name, *names);
            at         = i;
            p->used[i] = 1;
        }
    return cli_stopped(p) || at < 0 ? NULL : &p->file.items[at];
}

posenc_tensor cli_find(cli_problem *p, const char *const *names)
{
    const posenc_array *array = cli_find_array(p, names);
    if (array && array->is_complex)
        cli_refuse(p, "%s holds complex numbers; it must be real", array->name);
    return cli_stopped(p) || !array ? (posenc_tensor){0} : array->tensor;
}

posenc_tensor cli_need(cli_problem *p, const char *const *names)
{
    const posenc_tensor t = cli_find(p, names);
    if (!t.data)
        cli_refuse(p, "it has no array %s (or %s)", names[0], names[1]);
    return t;
}

static int begins_with(const char *name, const char *prefix)
{
    return *prefix && !strncmp(name, prefix, strlen(prefix));
}

void cli_warn_unused(const cli_problem *p, const char *passed_over)
{
    enum { MOST_NAMED = 5 };
    char   list[240] = "";
    size_t used      = 0;
    int    count     = 0;
    for (int i = 0; i < p->file.count; i++) {
        const char *name = p->file.items[i].name;
        if (p->used[i] || begins_with(name, "out_") || begins_with(name, "g_") ||
            begins_with(name, passed_over))
            continue;
        if (count++ < MOST_NAMED)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", used ? ", " : "", name);
    }
    if (count > MOST_NAMED)
        cli_warn("%s: %d arrays are not used: %s, ...", p->path, count, list);
    else if (count)
        cli_warn("%s: not used: %s", p->path, list);
}

/* ---------------------------------------------------------------- memory -------------------- */

static posenc_tensor add(cli_problem *p, posenc_arrays *to, const char *name, posenc_dtype dtype,
                         int32_t ndim, const int64_t *shape)
{
    const posenc_tensor *added = cli_stopped(p) ? NULL : posenc_arrays_add(to, name, dtype, ndim, shape);
    if (!added)
        cli_refuse_memory(p, *name ? name : "what is made of it");
    return added ? *added : (posenc_tensor){0};
}

posenc_tensor cli_make(cli_problem *p, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    return add(p, &p->made, "", dtype, ndim, shape);
}

posenc_tensor cli_result(cli_problem *p, const char *name, posenc_dtype dtype, int32_t ndim,
                         const int64_t *shape)
{
    return add(p, &p->results, name, dtype, ndim, shape);
}

posenc_tensor cli_make_like(cli_problem *p, posenc_dtype dtype, const posenc_tensor *like)
{
    return like && like->data ? cli_make(p, dtype, like->ndim, like->shape) : (posenc_tensor){0};
}

void *cli_block(cli_problem *p, size_t bytes)
{
    enum { ALIGNMENT = 64 };
    const int64_t       room  = (int64_t)bytes + ALIGNMENT;
    const posenc_tensor block = cli_make(p, POSENC_DTYPE_U8, 1, &room);
    return block.data ? (char *)block.data + (ALIGNMENT - (uintptr_t)block.data % ALIGNMENT) % ALIGNMENT
                      : NULL;
}

const char *cli_text(cli_problem *p, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int n    = vsnprintf(NULL, 0, format, list);
    char     *text = n < 0 ? NULL : cli_block(p, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(list);
    return text ? text : "";
}

const char *cli_shape_text(cli_problem *p, int32_t ndim, const int64_t *shape)
{
    const char *text = "[";
    for (int32_t a = 0; a < ndim; a++)
        text = cli_text(p, "%s%s%lld", text, a ? "," : "", (long long)shape[a]);
    return cli_text(p, "%s]", text);
}

/* ---------------------------------------------------------------- numbers ------------------- */

/* A sign, the exponent, and so many bits of fraction: 10 in IEEE 754 binary16, 7 in bfloat16. */
static double from_16_bits(uint16_t x, int bits)
{
    const int    most = (1 << (15 - bits)) - 1, exponent = x >> bits & most, fraction = x & ((1 << bits) - 1);
    const int    hidden = exponent ? 1 << bits : 0;
    const double size   = exponent == most ? (fraction ? (double)NAN : (double)INFINITY)
                                           : ldexp(fraction + hidden, exponent + !exponent - most / 2 - bits);
    return x >> 15 ? -size : size;
}

double cli_element(const posenc_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: return ((const double *)t->data)[i];
    case POSENC_DTYPE_F32: return (double)((const float *)t->data)[i];
    case POSENC_DTYPE_I64: return (double)((const int64_t *)t->data)[i];
    case POSENC_DTYPE_U8: return ((const unsigned char *)t->data)[i];
    case POSENC_DTYPE_F16: return from_16_bits(((const uint16_t *)t->data)[i], 10);
    case POSENC_DTYPE_BF16: return from_16_bits(((const uint16_t *)t->data)[i], 7);
    }
    return NAN;
}

void cli_put_element(posenc_tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: ((double *)t->data)[i] = x; break;
    case POSENC_DTYPE_F32: ((float *)t->data)[i] = (float)x; break;
    case POSENC_DTYPE_I64: ((int64_t *)t->data)[i] = (int64_t)x; break;
    case POSENC_DTYPE_U8: ((unsigned char *)t->data)[i] = x != 0; break;
    case POSENC_DTYPE_F16:
    case POSENC_DTYPE_BF16: break;
    }
}

int64_t cli_element_count(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

posenc_tensor cli_convert(cli_problem *p, posenc_dtype dtype, const posenc_tensor *from)
{
    if (!from || !from->data || from->dtype == dtype)
        return from ? *from : (posenc_tensor){0};
    posenc_tensor to = cli_make_like(p, dtype, from);
    for (int64_t i = 0; to.data && i < cli_element_count(from); i++)
        cli_put_element(&to, i, cli_element(from, i));
    return to;
}

posenc_tensor cli_find_positions(cli_problem *p, const char *const *names)
{
    const posenc_tensor t = cli_find(p, names);
    return cli_convert(p, cli_is_float(t.dtype) ? POSENC_DTYPE_F64 : POSENC_DTYPE_I64, &t);
}

/* ---------------------------------------------------------------- shapes -------------------- */

posenc_tensor cli_with_axes(posenc_tensor t, int32_t ndim)
{
    int64_t shape[POSENC_MAX_DIMS];
    int32_t extra = ndim - t.ndim, from = 0;
    if (!t.data || extra > POSENC_MAX_DIMS)
        return t;
    for (; extra < 0 && t.shape[from] == 1; extra++)
        from++;
    if (extra < 0) /* sizes that mean something cannot be taken away */
        return t;
    for (int32_t a = 0; a < ndim; a++)
        shape[a] = a < extra ? 1 : t.shape[from + a - extra];
    return posenc_tensor_contiguous(t.data, t.dtype, ndim, shape);
}

int cli_is_float(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F64 || dtype == POSENC_DTYPE_F32 || dtype == POSENC_DTYPE_F16 ||
           dtype == POSENC_DTYPE_BF16;
}

void cli_split(const posenc_tensor *whole, const posenc_tensor parts[2])
{
    const size_t row  = (size_t)whole->shape[whole->ndim - 1] / 2 * posenc_dtype_size(whole->dtype);
    const size_t rows = row ? (size_t)cli_element_count(whole) * posenc_dtype_size(whole->dtype) / row : 0;
    for (size_t r = 0; r < rows; r++)
        memcpy((char *)parts[r % 2].data + r / 2 * row, (const char *)whole->data + r * row, row);
}

posenc_tensor cli_join(cli_problem *p, const posenc_tensor parts[2])
{
    const posenc_tensor *re = &parts[0], *im = &parts[1];
    posenc_tensor        whole = *re;
    if (!re->data || !im->data || re->ndim != im->ndim || re->ndim == 0 || re->dtype != im->dtype ||
        memcmp(re->shape, im->shape, (size_t)re->ndim * sizeof *re->shape))
        return (posenc_tensor){0};
    whole.shape[whole.ndim - 1] *= 2;
    whole            = cli_make_like(p, re->dtype, &whole);
    const size_t row = (size_t)re->shape[re->ndim - 1] * posenc_dtype_size(re->dtype);
    const size_t rows =
        row && whole.data ? (size_t)cli_element_count(&whole) * posenc_dtype_size(whole.dtype) / row : 0;
    for (size_t r = 0; r < rows; r++)
        memcpy((char *)whole.data + r * row, (const char *)parts[r % 2].data + r / 2 * row, row);
    return whole;
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
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
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

int cli_is_said(const char *text, const char *name)
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
    return setting && !strcmp(setting->type, type) && !cli_is_said(h->spec, name) &&
           !cli_is_said(h->given, name);
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
    for (int place = 0; place < POSENC_PLACE_COUNT && !cli_stopped(p); place++) {
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
    return cli_convert(p, t.dtype == POSENC_DTYPE_F64 ? POSENC_DTYPE_F64 : dtype, &t);
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
