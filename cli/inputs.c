/* SPDX-License-Identifier: MIT */
/* Finding and converting the tensors of an input file: contract in inputs.h. */
#include "inputs.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tolerance.h"

/* ---------------------------------------------------------------- the file ------------------ */

int cli_inputs_fail(cli_inputs *in, const char *format, ...)
{
    char    sentence[400];
    va_list list;
    if (in->status)
        return in->status;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    in->status = cli_usage("%s: %s", in->path, sentence);
    return in->status;
}

int cli_inputs_read(cli_inputs *in, const char *path)
{
    posenc_error err;
    *in = (cli_inputs){.path = strcmp(path, "-") ? path : "standard input"};
    if (posenc_arrays_read(&in->file, path, &err)) {
        in->status = cli_usage("%s", err.message); /* an input that cannot be read is an unusable argument */
        return in->status;
    }
    in->used = calloc((size_t)in->file.count + 1, 1);
    if (!in->used)
        in->status = cli_failed("%s: there is no memory for its names", path);
    return in->status;
}

void cli_inputs_free(cli_inputs *in)
{
    posenc_arrays_free(&in->file);
    posenc_arrays_free(&in->made);
    free(in->used);
}

const posenc_array *cli_inputs_array(cli_inputs *in, const char *const *names)
{
    int at = -1;
    for (; *names && !in->status; names++)
        for (int i = 0; i < in->file.count; i++) {
            if (strcmp(in->file.items[i].name, *names))
                continue;
            if (at >= 0)
                cli_inputs_fail(in, "it has both %s and %s, two names of one array; keep one",
                                in->file.items[at].name, *names);
            at          = i;
            in->used[i] = 1;
        }
    return in->status || at < 0 ? NULL : &in->file.items[at];
}

posenc_tensor cli_inputs_find(cli_inputs *in, const char *const *names)
{
    const posenc_array *array = cli_inputs_array(in, names);
    if (array && array->is_complex)
        cli_inputs_fail(in, "%s holds complex numbers; it must be real", array->name);
    return in->status || !array ? (posenc_tensor){0} : array->tensor;
}

posenc_tensor cli_inputs_need(cli_inputs *in, const char *const *names)
{
    const posenc_tensor t = cli_inputs_find(in, names);
    if (!t.data)
        cli_inputs_fail(in, "it has no array %s (or %s)", names[0], names[1]);
    return t;
}

static int begins_with(const char *name, const char *prefix)
{
    return *prefix && !strncmp(name, prefix, strlen(prefix));
}

void cli_inputs_warn_unused(const cli_inputs *in, const char *passed_over)
{
    enum { MOST_NAMED = 5 };
    char   list[240] = "";
    size_t used      = 0;
    int    count     = 0;
    for (int i = 0; i < in->file.count; i++) {
        const char *name = in->file.items[i].name;
        if (in->used[i] || begins_with(name, "out_") || begins_with(name, "g_") ||
            begins_with(name, passed_over))
            continue;
        if (count++ < MOST_NAMED)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", used ? ", " : "", name);
    }
    if (count > MOST_NAMED)
        cli_warn("%s: %d arrays are not used: %s, ...", in->path, count, list);
    else if (count)
        cli_warn("%s: not used: %s", in->path, list);
}

/* ---------------------------------------------------------------- numbers ------------------- */

posenc_tensor cli_inputs_make(cli_inputs *in, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    if (in->status)
        return (posenc_tensor){0};
    const posenc_tensor *added = posenc_arrays_add(&in->made, "", dtype, ndim, shape);
    if (added)
        return *added;
    in->status = cli_failed("%s: there is no memory for what is made of it", in->path);
    return (posenc_tensor){0};
}

void *cli_inputs_block(cli_inputs *in, size_t bytes)
{
    enum { ALIGNMENT = 64 };
    const int64_t       room  = (int64_t)bytes + ALIGNMENT;
    const posenc_tensor block = cli_inputs_make(in, POSENC_U8, 1, &room);
    if (!block.data)
        return NULL;
    return (char *)block.data + (ALIGNMENT - (uintptr_t)block.data % ALIGNMENT) % ALIGNMENT;
}

/* IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction. */
static double half(uint16_t x)
{
    const int    exponent = x >> 10 & 31, fraction = x & 1023;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return x >> 15 ? -size : size;
}

/* bfloat16 is the upper half of a float32. */
static double brain(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float          f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double number(const posenc_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case POSENC_F16: return half(((const uint16_t *)t->data)[i]);
    case POSENC_BF16: return brain(((const uint16_t *)t->data)[i]);
    default: return cli_element(t, i);
    }
}

static void put(posenc_tensor *to, int64_t i, double x)
{
    switch (to->dtype) {
    case POSENC_F64: ((double *)to->data)[i] = x; break;
    case POSENC_F32: ((float *)to->data)[i] = (float)x; break;
    case POSENC_I64: ((int64_t *)to->data)[i] = (int64_t)x; break;
    case POSENC_U8: ((unsigned char *)to->data)[i] = x != 0; break;
    case POSENC_F16:
    case POSENC_BF16: break;
    }
}

posenc_tensor cli_inputs_convert(cli_inputs *in, posenc_dtype dtype, const posenc_tensor *from)
{
    if (!from->data || from->dtype == dtype)
        return *from;
    posenc_tensor to = cli_inputs_make(in, dtype, from->ndim, from->shape);
    for (int64_t i = 0; to.data && i < cli_element_count(from); i++)
        put(&to, i, number(from, i));
    return to;
}

posenc_tensor cli_inputs_positions(cli_inputs *in, const char *const *names)
{
    const posenc_tensor t = cli_inputs_find(in, names);
    return cli_inputs_convert(in, cli_is_float(t.dtype) ? POSENC_F64 : POSENC_I64, &t);
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

const char *cli_shape_text(char to[CLI_SHAPE_TEXT], int32_t ndim, const int64_t *shape)
{
    int n = snprintf(to, CLI_SHAPE_TEXT, "[");
    for (int32_t a = 0; a < ndim; a++)
        n += snprintf(to + n, (size_t)(CLI_SHAPE_TEXT - n), "%s%lld", a ? "," : "", (long long)shape[a]);
    snprintf(to + n, (size_t)(CLI_SHAPE_TEXT - n), "]");
    return to;
}

int cli_is_float(posenc_dtype dtype)
{
    return dtype == POSENC_F64 || dtype == POSENC_F32 || dtype == POSENC_F16 || dtype == POSENC_BF16;
}
