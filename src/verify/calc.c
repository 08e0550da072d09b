/* SPDX-License-Identifier: MIT */
/* A calculation's arrays, encoding, parameters and plan: contract in calc.h. */
#include "verify/calc.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/shared/work.h"

/* ---------------------------------------------------------------- beginning and end --------- */

pe_calc pe_calc_new(const char *path)
{
    return (pe_calc){.path = path, .options = posenc_options_default()};
}

void pe_calc_free(pe_calc *p)
{
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    posenc_arrays_free(&p->file);
    posenc_arrays_free(&p->made);
    posenc_arrays_free(&p->results);
}

void pe_calc_refuse(pe_calc *p, const char *format, ...)
{
    va_list list;
    if (pe_calc_failed(p)) /* the first reason is the one to fix */
        return;
    va_start(list, format);
    vsnprintf(p->sentence, sizeof p->sentence, format, list);
    va_end(list);
    p->err.status = POSENC_ERROR_ARGUMENT;
}

void pe_calc_refuse_memory(pe_calc *p, const char *what)
{
    if (pe_calc_failed(p))
        return;
    pe_calc_refuse(p, "not enough memory for %s", what);
    p->err.status = POSENC_ERROR_MEMORY;
}

/* ---------------------------------------------------------------- the file ------------------ */

void pe_calc_read(pe_calc *p, const char *path)
{
    if (pe_calc_failed(p))
        return;
    p->path = strcmp(path, "-") ? path : "standard input";
    if (posenc_arrays_read(&p->file, path, &p->err))
        p->err.status = POSENC_ERROR_ARGUMENT; /* an input that cannot be read is an unusable argument */
    p->used = pe_calc_block(p, (size_t)p->file.count);
}

const posenc_array *pe_calc_find_array(pe_calc *p, const char *const *names)
{
    int at = -1;
    for (; *names; names++)
        for (int i = 0; i < p->file.count && !pe_calc_failed(p); i++) {
            if (strcmp(p->file.items[i].name, *names))
                continue;
            if (at >= 0)
                pe_calc_refuse(p, "it has both %s and %s, two names of one array; keep one",
                               p->file.items[at].name, *names);
            at         = i;
            p->used[i] = 1;
        }
    return pe_calc_failed(p) || at < 0 ? NULL : &p->file.items[at];
}

posenc_tensor pe_calc_find(pe_calc *p, const char *const *names)
{
    const posenc_array *array = pe_calc_find_array(p, names);
    if (array && array->is_complex)
        pe_calc_refuse(p, "%s holds complex numbers; it must be real", array->name);
    return pe_calc_failed(p) || !array ? (posenc_tensor){0} : array->tensor;
}

posenc_tensor pe_calc_need(pe_calc *p, const char *const *names)
{
    const posenc_tensor t = pe_calc_find(p, names);
    if (!t.data)
        pe_calc_refuse(p, "it has no array %s (or %s)", names[0], names[1]);
    return t;
}

/* ---------------------------------------------------------------- memory -------------------- */

/* Bytes of an array, or INT64_MAX if they are more than half of that. */
static int64_t bytes_of(posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    int64_t n = (int64_t)posenc_dtype_size(dtype);
    for (int32_t a = 0; a < ndim; a++)
        n = shape[a] > 0 && n > INT64_MAX / 2 / shape[a] ? INT64_MAX : n == INT64_MAX ? n : n * shape[a];
    return n;
}

/* May it have so many bytes more? */
static int may_have(pe_calc *p, int64_t bytes)
{
    if (p->most && !pe_calc_failed(p) && bytes > p->most - p->taken)
        pe_calc_refuse(p,
                       "its settings ask for more than %lld MB of memory, far more than its arrays are worth",
                       (long long)(p->most >> 20));
    p->taken += pe_calc_failed(p) ? 0 : bytes;
    return !pe_calc_failed(p);
}

static posenc_tensor add(pe_calc *p, posenc_arrays *to, const char *name, posenc_dtype dtype, int32_t ndim,
                         const int64_t *shape)
{
    if (p->most && !may_have(p, bytes_of(dtype, ndim, shape)))
        return (posenc_tensor){0};
    const posenc_tensor *added = pe_calc_failed(p) ? NULL : posenc_arrays_add(to, name, dtype, ndim, shape);
    if (!added)
        pe_calc_refuse_memory(p, *name ? name : "what is made of it");
    return added ? *added : (posenc_tensor){0};
}

posenc_tensor pe_calc_make(pe_calc *p, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    return add(p, &p->made, "", dtype, ndim, shape);
}

posenc_tensor pe_calc_result(pe_calc *p, const char *name, posenc_dtype dtype, int32_t ndim,
                             const int64_t *shape)
{
    return add(p, &p->results, name, dtype, ndim, shape);
}

posenc_tensor pe_calc_make_like(pe_calc *p, posenc_dtype dtype, const posenc_tensor *like)
{
    return like && like->data ? pe_calc_make(p, dtype, like->ndim, like->shape) : (posenc_tensor){0};
}

void *pe_calc_block(pe_calc *p, size_t bytes)
{
    enum { ALIGNMENT = 64 };
    const int64_t       total = (int64_t)bytes + ALIGNMENT;
    const posenc_tensor block = pe_calc_make(p, POSENC_DTYPE_U8, 1, &total);
    return block.data ? (char *)block.data + (ALIGNMENT - (uintptr_t)block.data % ALIGNMENT) % ALIGNMENT
                      : NULL;
}

const char *pe_calc_text(pe_calc *p, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int n    = vsnprintf(NULL, 0, format, list);
    char     *text = n < 0 ? NULL : pe_calc_block(p, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(list);
    return text ? text : "";
}

const char *pe_calc_shape_text(pe_calc *p, int32_t ndim, const int64_t *shape)
{
    const char *text = "[";
    for (int32_t a = 0; a < ndim; a++)
        text = pe_calc_text(p, "%s%s%lld", text, a ? "," : "", (long long)shape[a]);
    return pe_calc_text(p, "%s]", text);
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

double pe_calc_element(const posenc_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: return ((const double *)t->data)[i];
    case POSENC_DTYPE_F32: return (double)((const float *)t->data)[i];
    case POSENC_DTYPE_I64: return (double)((const int64_t *)t->data)[i];
    case POSENC_DTYPE_U8: return ((const unsigned char *)t->data)[i];
    case POSENC_DTYPE_F16: return from_16_bits(((const uint16_t *)t->data)[i], 10);
    case POSENC_DTYPE_BF16: return from_16_bits(((const uint16_t *)t->data)[i], 7);
    default: return NAN; /* arrays of files have no others */
    }
}

int64_t pe_calc_whole(double x)
{
    return fabs(x) <= 0x1p53 && x == floor(x) ? (int64_t)x : INT64_MAX;
}

void pe_calc_put(posenc_tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: ((double *)t->data)[i] = x; break;
    case POSENC_DTYPE_F32: ((float *)t->data)[i] = (float)x; break;
    case POSENC_DTYPE_I64: ((int64_t *)t->data)[i] = pe_calc_whole(x); break;
    case POSENC_DTYPE_U8: ((unsigned char *)t->data)[i] = x != 0; break;
    default: break;
    }
}

posenc_tensor pe_calc_convert(pe_calc *p, posenc_dtype dtype, const posenc_tensor *from)
{
    if (!from || !from->data || from->dtype == dtype)
        return from ? *from : (posenc_tensor){0};
    posenc_tensor to = pe_calc_make_like(p, dtype, from);
    for (int64_t i = 0; to.data && i < pe_tensor_elements(from); i++)
        pe_calc_put(&to, i, pe_calc_element(from, i));
    return to;
}

int pe_calc_is_whole(const posenc_array *array)
{
    const posenc_tensor *t        = &array->tensor;
    int                  is_whole = !pe_tensor_is_float(t->dtype) || array->is_text;
    for (int64_t i = 0; array->is_text && is_whole && i < pe_tensor_elements(t); i++)
        is_whole =
            fabs(pe_calc_element(t, i)) < 0x1p53 && pe_calc_element(t, i) == floor(pe_calc_element(t, i));
    return is_whole;
}

posenc_tensor pe_calc_find_positions(pe_calc *p, const char *const *names)
{
    const posenc_array *array = pe_calc_find_array(p, names);
    posenc_tensor       t     = pe_calc_find(p, names);
    if (t.data && array->is_text && t.ndim == 2 && t.shape[1] == 1)
        t = posenc_tensor_contiguous(t.data, t.dtype, 1, t.shape);
    return pe_calc_convert(p, t.data && pe_calc_is_whole(array) ? POSENC_DTYPE_I64 : POSENC_DTYPE_F64, &t);
}

void pe_calc_match_positions(pe_calc *p, const posenc_positions *q, const posenc_positions *k)
{
    const int q_has = q->array.data && q->array.ndim == 3, k_has = k->array.data && k->array.ndim == 3;
    if (q_has != k_has)
        pe_calc_refuse(p, "%s_pos holds coordinates, but there are none for %s; give both q_pos and k_pos",
                       q_has ? "q" : "k", q_has ? "k" : "q");
}

/* ---------------------------------------------------------------- shapes -------------------- */

posenc_tensor pe_calc_with_axes(posenc_tensor t, int32_t ndim)
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

void pe_calc_split(const posenc_tensor *whole, const posenc_tensor parts[2])
{
    const size_t row  = (size_t)whole->shape[whole->ndim - 1] / 2 * posenc_dtype_size(whole->dtype);
    const size_t rows = row ? (size_t)pe_tensor_elements(whole) * posenc_dtype_size(whole->dtype) / row : 0;
    for (size_t r = 0; r < rows; r++)
        memcpy((char *)parts[r % 2].data + r / 2 * row, (const char *)whole->data + r * row, row);
}

posenc_tensor pe_calc_join(pe_calc *p, const posenc_tensor parts[2])
{
    const posenc_tensor *re = &parts[0], *im = &parts[1];
    posenc_tensor        whole = *re;
    if (!re->data || !im->data || re->ndim != im->ndim || re->ndim == 0 || re->dtype != im->dtype ||
        memcmp(re->shape, im->shape, (size_t)re->ndim * sizeof *re->shape))
        return (posenc_tensor){0};
    whole.shape[whole.ndim - 1] *= 2;
    whole            = pe_calc_make_like(p, re->dtype, &whole);
    const size_t row = (size_t)re->shape[re->ndim - 1] * posenc_dtype_size(re->dtype);
    const size_t rows =
        row && whole.data ? (size_t)pe_tensor_elements(&whole) * posenc_dtype_size(whole.dtype) / row : 0;
    for (size_t r = 0; r < rows; r++)
        memcpy((char *)whole.data + r * row, (const char *)parts[r % 2].data + r / 2 * row, row);
    return whole;
}

/* ---------------------------------------------------------------- the encoding -------------- */

void pe_calc_encoding(pe_calc *p, const char *spec, const char *settings)
{
    posenc_encoding_free(p->e);
    p->e = NULL;
    if (!pe_calc_failed(p))
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

enum { PARAM_NAMES = 9 };

/* "b" of "dense_bias.b" where no other part has a parameter of that name; else NULL. `pos` are positions. */
static const char *short_name(const pe_calc *p, const char *name)
{
    const char *dot = strchr(name, '.');
    int         n   = 0;
    for (int i = 0; dot && i < posenc_param_count(p->e); i++) {
        const char *other = strchr(posenc_param_name(p->e, i), '.');
        n += other && !strcmp(other, dot);
    }
    return n == 1 && strcmp(dot, ".pos") != 0 ? dot + 1 : NULL;
}

/* What a file may call a parameter, ended by NULL. */
static void param_names(pe_calc *p, const char *name, const char *list[PARAM_NAMES + 1])
{
    static const char *const    before[] = {"", "par_", "in_"};
    const posenc_encoding_info *only     = only_part(p->e);
    const char                 *bare     = short_name(p, name);
    for (int prefix = 0; prefix < 3; prefix++) {
        *list++ = pe_calc_text(p, "%s%s", before[prefix], name);
        if (bare)
            *list++ = pe_calc_text(p, "%s%s", before[prefix], bare);
        if (only)
            *list++ = pe_calc_text(p, "%s%s.%s", before[prefix], only->name, name);
    }
    *list = NULL;
}

int pe_calc_is_param(const pe_calc *p, const char *name)
{
    for (int i = 0; i < posenc_param_count(p->e); i++)
        if (!strcmp(posenc_param_name(p->e, i), name))
            return 1;
    return 0;
}

/* ---------------------------------------------------------------- settings of the arrays ---- */

/* What is known while settings are read off the arrays, and the text that they become. */
typedef struct hints {
    pe_calc    *p;
    const char *spec, *given, *text;
} hints;

int pe_calc_is_set(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at[n] == '=' && (at == text || strchr(" ,:[.", at[-1])))
            return 1;
    return 0;
}

const posenc_setting_info *pe_calc_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return &info->settings[i];
    return NULL;
}

/* A setting of that type that nobody has given. */
static int is_free(const hints *h, const posenc_encoding_info *info, const char *name, const char *type)
{
    const posenc_setting_info *setting = pe_calc_setting(info, name);
    return setting && !strcmp(setting->type, type) && !pe_calc_is_set(h->spec, name) &&
           !pe_calc_is_set(h->given, name);
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
        h->text = pe_calc_text(h->p, "%s %s.%s=%lld", h->text, info->name, axis, (long long)size);
    if (sscanf(axis, "%63[a-z_]1*%63[a-z_]2%n", name, other, &end) == 2 && end && !axis[end] &&
        !strcmp(name, other) && is_free(h, info, name, "list"))
        h->text = pe_calc_text(h->p, "%s %s.%s=%lldx1", h->text, info->name, name, (long long)size);
}

/* Every axis of the parameter that is a setting nobody has given. Shapes with axes that a flag calls for are
   skipped. */
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
        read_axis(h, info, pe_calc_text(h->p, "%.*s", (int)n, at), array->shape[axis]);
        at += n + (at[n] == ',');
    }
}

/* Axes of the parameters that e has; and a flag of a parameter's own name, which calls for it: whoever brings
   the array has raised it. */
static void read_part(hints *h, const posenc_encoding_info *part)
{
    const int is_single = only_part(h->p->e) != NULL;
    for (int i = 0; i < part->param_count; i++) {
        const char          *plain = part->params[i].name;
        const char          *name  = is_single ? plain : pe_calc_text(h->p, "%s.%s", part->name, plain);
        const posenc_tensor *array = array_of(h, name);
        if (array && pe_calc_is_param(h->p, name))
            read_axes(h, part, &part->params[i], array);
        if (array && is_free(h, part, plain, "flag"))
            h->text = pe_calc_text(h->p, "%s %s.%s=yes", h->text, part->name, plain);
    }
}

void pe_calc_infer(pe_calc *p, const char *spec, const char *given)
{
    hints h = {p, spec, given, given};
    for (int place = 0; place < POSENC_PLACE_COUNT && !pe_calc_failed(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part)
            read_part(&h, part);
    }
    pe_calc_encoding(p, spec, h.text);
}

/* ---------------------------------------------------------------- plan and parameters ------- */

posenc_dims pe_calc_attention_dims(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v)
{
    return (posenc_dims){.B  = q->shape[0],
                         .H  = q->shape[1],
                         .G  = k->shape[1],
                         .Lq = q->shape[2],
                         .Lk = k->shape[2],
                         .D  = q->shape[3],
                         .Dv = v->shape[3]};
}

posenc_workspace pe_calc_workspace(pe_calc *p, const posenc_plan *plan, posenc_run runs)
{
    const size_t bytes = pe_calc_failed(p) ? 0 : posenc_plan_workspace(plan, runs, NULL);
    return posenc_workspace_over(bytes ? pe_calc_block(p, bytes) : NULL, bytes);
}

void pe_calc_plan(pe_calc *p, posenc_run runs)
{
    if (!pe_calc_failed(p))
        posenc_plan_create(&p->plan, p->e, &p->dims, &p->options, &p->err);
    if (!pe_calc_failed(p) && p->is_shown)
        pe_work_check_plan(p->e, p->plan, runs, &p->err);
    p->work = pe_calc_workspace(p, p->plan, runs);
}

posenc_tensor *pe_calc_initial(pe_calc *p, posenc_dtype dtype)
{
    const int      n      = pe_calc_failed(p) ? 0 : posenc_param_count(p->e);
    posenc_tensor *params = pe_calc_block(p, ((size_t)n + 1) * sizeof *params);
    int32_t        ndim;
    int64_t        shape[POSENC_MAX_DIMS];
    if (n && !pe_calc_failed(p) && !p->most)
        pe_work_check_params(p->e, &p->dims, p->is_shown ? PE_WORK_PARAMS : PE_WORK_OWN, &p->err);
    for (int i = 0; i < n && !pe_calc_failed(p); i++)
        if (!posenc_param_shape(p->e, &p->dims, i, &ndim, shape, &p->err))
            params[i] = pe_calc_make(p, dtype, ndim, shape);
    if (!pe_calc_failed(p))
        posenc_param_init(p->e, &p->dims, params, (uint64_t)p->seed, &p->err);
    return pe_calc_failed(p) ? NULL : params;
}

/* The file's array for parameter `name`, no data if it has none. */
static posenc_tensor given_param(pe_calc *p, const char *name, posenc_dtype dtype,
                                 const posenc_tensor *must_be)
{
    const char   *names[PARAM_NAMES + 1];
    const int32_t ndim = must_be->ndim;
    param_names(p, name, names);
    const posenc_tensor found = pe_calc_find(p, names), t = pe_calc_with_axes(found, ndim);
    if (!t.data)
        return t;
    if (t.ndim != ndim || memcmp(t.shape, must_be->shape, (size_t)ndim * sizeof *t.shape))
        pe_calc_refuse(p, "%s has the shape %s; with these settings and sizes it must be %s", name,
                       pe_calc_shape_text(p, found.ndim, found.shape),
                       pe_calc_shape_text(p, ndim, must_be->shape));
    else if (!pe_tensor_is_float(t.dtype))
        pe_calc_refuse(p, "%s holds whole numbers; parameters are real ones", name);
    return pe_calc_convert(p, t.dtype == POSENC_DTYPE_F64 ? POSENC_DTYPE_F64 : dtype, &t);
}

void pe_calc_params(pe_calc *p, posenc_dtype dtype)
{
    p->params     = pe_calc_initial(p, dtype);
    p->count      = pe_calc_failed(p) ? 0 : posenc_param_count(p->e);
    p->is_initial = pe_calc_block(p, (size_t)p->count);
    for (int i = 0; i < p->count && !pe_calc_failed(p); i++) {
        const posenc_tensor given = given_param(p, posenc_param_name(p->e, i), dtype, &p->params[i]);
        p->is_initial[i]          = !given.data;
        if (given.data)
            p->params[i] = given;
    }
}

posenc_tensor *pe_calc_tokens(pe_calc *p, posenc_dtype dtype)
{
    const int      n      = pe_calc_failed(p) ? 0 : posenc_token_count(p->e);
    posenc_tensor *tokens = pe_calc_block(p, ((size_t)n + 1) * sizeof *tokens);
    for (int i = 0; i < n && !pe_calc_failed(p); i++) {
        const char *const   name    = posenc_token_name(p->e, i);
        const char *const   names[] = {name, pe_calc_text(p, "in_%s", name), NULL};
        const posenc_tensor t       = pe_calc_need(p, names);
        tokens[i]                   = pe_calc_with_axes(pe_calc_convert(p, dtype, &t), 4);
    }
    return tokens;
}
