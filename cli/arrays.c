/* SPDX-License-Identifier: MIT */
/* The arrays of a problem, found, converted and made: contract in problem.h. */
#include "problem.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the file ------------------ */

void cli_refuse(cli_problem *p, const char *format, ...)
{
    va_list list;
    if (cli_stopped(p)) /* the first reason is the one to mend */
        return;
    va_start(list, format);
    vsnprintf(p->sentence, sizeof p->sentence, format, list);
    va_end(list);
    p->err.status = POSENC_ARGUMENT;
}

void cli_refuse_memory(cli_problem *p, const char *what)
{
    if (cli_stopped(p))
        return;
    cli_refuse(p, "there is no memory for %s", what);
    p->err.status = POSENC_MEMORY;
}

void cli_problem_read(cli_problem *p, const char *path)
{
    if (cli_stopped(p))
        return;
    p->path = strcmp(path, "-") ? path : "standard input";
    if (posenc_arrays_read(&p->file, path, &p->err))
        p->err.status = POSENC_ARGUMENT; /* an input that cannot be read is an unusable argument */
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
    const posenc_tensor block = cli_make(p, POSENC_U8, 1, &room);
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
    case POSENC_F64: return ((const double *)t->data)[i];
    case POSENC_F32: return (double)((const float *)t->data)[i];
    case POSENC_I64: return (double)((const int64_t *)t->data)[i];
    case POSENC_U8: return ((const unsigned char *)t->data)[i];
    case POSENC_F16: return from_16_bits(((const uint16_t *)t->data)[i], 10);
    case POSENC_BF16: return from_16_bits(((const uint16_t *)t->data)[i], 7);
    }
    return NAN;
}

void cli_put_element(posenc_tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case POSENC_F64: ((double *)t->data)[i] = x; break;
    case POSENC_F32: ((float *)t->data)[i] = (float)x; break;
    case POSENC_I64: ((int64_t *)t->data)[i] = (int64_t)x; break;
    case POSENC_U8: ((unsigned char *)t->data)[i] = x != 0; break;
    case POSENC_F16:
    case POSENC_BF16: break;
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
    return cli_convert(p, cli_is_float(t.dtype) ? POSENC_F64 : POSENC_I64, &t);
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
    return dtype == POSENC_F64 || dtype == POSENC_F32 || dtype == POSENC_F16 || dtype == POSENC_BF16;
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
