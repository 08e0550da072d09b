/* SPDX-License-Identifier: MIT */
/* Finding, making and measuring the arrays of a case: contract in trial.h. */
#include "trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- arrays -------------------- */

posenc_status cli_trial_fail(cli_trial *t, const char *format, ...)
{
    if (!t->status) { /* the first reason is the one to mend */
        va_list list;
        va_start(list, format);
        vsnprintf(t->result->problem, sizeof t->result->problem, format, list);
        va_end(list);
    }
    t->status = t->status ? t->status : POSENC_ARGUMENT;
    return t->status;
}

posenc_status cli_trial_refused(cli_trial *t, const posenc_error *err)
{
    return cli_trial_fail(t, "%s", err->message);
}

const posenc_tensor *cli_trial_find(cli_trial *t, const char *name)
{
    for (int i = 0; i < t->file->count; i++)
        if (!strcmp(t->file->items[i].name, name)) {
            t->used[i] = 1;
            return &t->file->items[i].tensor;
        }
    return NULL;
}

static const posenc_tensor *find_joined(cli_trial *t, const char *prefix, const char *name)
{
    char joined[CLI_MAX_NAME];
    snprintf(joined, sizeof joined, "%s%s", prefix, name);
    return cli_trial_find(t, joined);
}

int cli_trial_has(const cli_trial *t, const char *name)
{
    return posenc_arrays_find(t->file, name) != NULL;
}

posenc_status cli_trial_need(cli_trial *t, const char *const *names)
{
    for (; *names && !t->status; names++)
        if (!cli_trial_has(t, *names))
            cli_trial_fail(t, "it has no array %s, which a case of this form needs", *names);
    return t->status;
}

posenc_tensor cli_trial_make(cli_trial *t, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    const posenc_tensor *added = posenc_arrays_add(&t->made, "", dtype, ndim, shape);
    if (added)
        return *added;
    cli_trial_fail(t, "no memory for its arrays");
    return (posenc_tensor){0};
}

posenc_tensor cli_trial_make_like(cli_trial *t, posenc_dtype dtype, const posenc_tensor *like)
{
    return like ? cli_trial_make(t, dtype, like->ndim, like->shape) : (posenc_tensor){0};
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

posenc_tensor cli_trial_convert(cli_trial *t, posenc_dtype dtype, const posenc_tensor *from)
{
    posenc_tensor to = cli_trial_make_like(t, dtype, from);
    if (!to.data)
        return to;
    for (int64_t i = 0; i < cli_element_count(from); i++)
        put(&to, i, cli_element(from, i));
    return to;
}

posenc_tensor cli_trial_numbers(cli_trial *t, const char *name)
{
    return cli_trial_convert(t, t->with->dtype, cli_trial_find(t, name));
}

posenc_positions cli_trial_positions(cli_trial *t, const char *name)
{
    const posenc_tensor *array = cli_trial_find(t, name);
    return posenc_positions_array(array->dtype == POSENC_I64 ? *array
                                                             : cli_trial_convert(t, POSENC_F64, array));
}

void *cli_trial_workspace(cli_trial *t, const posenc_plan *plan, int runs)
{
    enum { ALIGNMENT = 64 };
    const int64_t       bytes = (int64_t)posenc_plan_workspace(plan, runs) + ALIGNMENT;
    const posenc_tensor block = cli_trial_make(t, POSENC_U8, 1, &bytes);
    if (!block.data)
        return NULL;
    const uintptr_t at = (uintptr_t)block.data;
    return (char *)block.data + (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
}

static void describe_shape(char *to, size_t room, const posenc_tensor *t)
{
    int n = snprintf(to, room, "[");
    for (int32_t a = 0; a < t->ndim; a++)
        n += snprintf(to + n, room - (size_t)n, "%s%lld", a ? "," : "", (long long)t->shape[a]);
    snprintf(to + n, room - (size_t)n, "]");
}

/* Equal but for leading axes of length 1, which carry no meaning in the cases ([L,d] is [1,L,d]).
 */
static int same_shape(const posenc_tensor *a, const posenc_tensor *b)
{
    int32_t i = a->ndim, j = b->ndim;
    while (i > 0 && j > 0)
        if (a->shape[--i] != b->shape[--j])
            return 0;
    while (i > 0)
        if (a->shape[--i] != 1)
            return 0;
    while (j > 0)
        if (b->shape[--j] != 1)
            return 0;
    return 1;
}

static void describe_element(char *to, size_t room, const posenc_tensor *t, int64_t at)
{
    posenc_tensor index = *t;
    for (int32_t a = t->ndim - 1; a >= 0; a--) {
        index.shape[a] = at % t->shape[a];
        at /= t->shape[a];
    }
    describe_shape(to, room, &index);
}

/* The new largest error, and which element shows it if it is too large. */
static void keep(cli_trial *t, const char *name, const posenc_tensor *want, const cli_measure *m)
{
    cli_case_result *r = t->result;
    char             where[160];
    r->worst    = m->worst;
    r->executor = t->with ? t->with->name : NULL;
    snprintf(r->array, sizeof r->array, "%s", name);
    if (m->worst <= 1)
        return;
    describe_element(where, sizeof where, want, m->at);
    snprintf(r->problem, sizeof r->problem, "%.60s%s is %.17g instead of %.17g", name, where, m->got,
             m->want);
}

static void measure(cli_trial *t, const char *name, const posenc_tensor *got, const cli_allowance *allowance)
{
    const posenc_tensor *want = t->status ? NULL : cli_trial_find(t, name);
    if (!want)
        return;
    if (!same_shape(got, want)) {
        char is[160], must[160];
        describe_shape(is, sizeof is, want);
        describe_shape(must, sizeof must, got);
        cli_trial_fail(t, "%.60s has the shape %s but the encoding gives %s", name, is, must);
        return;
    }
    const cli_measure m = cli_measure_array(got, want, allowance);
    if (t->result->compared++ == 0 || m.worst > t->result->worst)
        keep(t, name, want, &m);
}

static int is_single(const cli_trial *t)
{
    return t->with && t->with->dtype == POSENC_F32;
}

/* max |ref| over every g_* of the file. */
static double largest_gradient(const cli_trial *t)
{
    double most = 0;
    for (int i = 0; i < t->file->count; i++) {
        const posenc_tensor *x = &t->file->items[i].tensor;
        for (int64_t n = 0; !strncmp(t->file->items[i].name, "g_", 2) && n < cli_element_count(x); n++)
            most = fabs(cli_element(x, n)) > most ? fabs(cli_element(x, n)) : most;
    }
    return most;
}

void cli_trial_compare(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got, double angle)
{
    const cli_allowance allowance = {kind, is_single(t), angle, NULL,
                                     kind == CLI_GRADIENT ? largest_gradient(t) : 0};
    measure(t, name, got, &allowance);
}

void cli_trial_compare_rows(cli_trial *t, const char *name, const posenc_tensor *got, const double *angles)
{
    measure(t, name, got, &(cli_allowance){CLI_OUTPUT, is_single(t), 0, angles, 0});
}

/* ---------------------------------------------------------------- settings ------------------ */

const char *cli_find_setting(const posenc_case *c, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = c->settings; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return NULL;
}

double cli_real_setting(const posenc_case *c, const char *name, double standard)
{
    const char *text = cli_find_setting(c, name);
    return text ? strtod(text, NULL) : standard;
}

int cli_setting_is(const posenc_case *c, const char *name, const char *word)
{
    const char  *text = cli_find_setting(c, name);
    const size_t n    = strlen(word);
    return text && !strncmp(text, word, n) && (!text[n] || text[n] == ' ');
}

/* ---------------------------------------------------------------- plan and parameters ------- */

posenc_status cli_trial_plan(cli_trial *t, const posenc_dims *dims, int mask)
{
    posenc_error   err;
    posenc_options options = posenc_options_default();
    options.executor       = t->with->executor;
    options.mask           = mask;
    options.tile_q         = t->options->tile_q;
    options.tile_k         = t->options->tile_k;
    options.threads        = 1; /* cases are small, and the bits do not depend on it */
    t->dims                = *dims;
    if (!t->status && posenc_plan_create(&t->plan, t->e, dims, &options, &err))
        return cli_trial_refused(t, &err);
    return t->status;
}

/* Copies the file's par_<name>, or in_<name>, over the initial value of a parameter. */
static void take_param(cli_trial *t, posenc_tensor *to, int i)
{
    const char          *name = posenc_param_name(t->e, i);
    const posenc_tensor *par = find_joined(t, "par_", name), *from = par ? par : find_joined(t, "in_", name);
    char                 is[160], must[160];
    if (!from)
        return;
    if (!same_shape(from, to)) {
        describe_shape(is, sizeof is, from);
        describe_shape(must, sizeof must, to);
        cli_trial_fail(t, "par_%.60s has the shape %s; the settings ask for %s", name, is, must);
        return;
    }
    for (int64_t n = 0; n < cli_element_count(from); n++)
        put(to, n, cli_element(from, n));
}

posenc_status cli_trial_initial(cli_trial *t, const posenc_dims *dims, posenc_dtype dtype,
                                posenc_tensor *params)
{
    posenc_error err;
    const int    n = posenc_param_count(t->e);
    if (n > CLI_MAX_PARAMS)
        return cli_trial_fail(t, "its encoding has %d parameters; at most %d can be checked", n,
                              CLI_MAX_PARAMS);
    for (int i = 0; i < n && !t->status; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(t->e, dims, i, &ndim, shape, &err))
            return cli_trial_refused(t, &err);
        params[i] = cli_trial_make(t, dtype, ndim, shape);
    }
    if (!t->status && posenc_param_init(t->e, dims, params, 0, &err))
        return cli_trial_refused(t, &err);
    return t->status;
}

/* Does parameter i belong to the rotary part? */
static int is_rotary(const cli_trial *t, int i)
{
    const posenc_encoding_info *part = posenc_encoding_part(t->e, POSENC_ROTARY);
    for (int n = 0; part && n < part->param_count; n++)
        if (&part->params[n] == posenc_param_describe(t->e, i))
            return 1;
    return 0;
}

posenc_status cli_trial_params(cli_trial *t)
{
    memset(t->dparams, 0, sizeof t->dparams);
    cli_trial_initial(t, &t->dims, t->with->dtype, t->params);
    cli_trial_initial(t, &t->dims, POSENC_F64, t->exact);
    for (int i = 0; i < posenc_param_count(t->e) && !t->status; i++) {
        take_param(t, &t->params[i], i);
        take_param(t, &t->exact[i], i);
        if (find_joined(t, "g_", posenc_param_name(t->e, i)))
            t->dparams[i] = cli_trial_make_like(t, t->with->dtype, &t->params[i]);
        if (is_rotary(t, i))
            t->params[i] = t->exact[i];
    }
    return t->status;
}

void cli_trial_compare_param_gradients(cli_trial *t, double angle)
{
    char name[CLI_MAX_NAME];
    for (int i = 0; i < posenc_param_count(t->e); i++)
        if (t->dparams[i].data) {
            snprintf(name, sizeof name, "g_%s", posenc_param_name(t->e, i));
            cli_trial_compare(t, CLI_GRADIENT, name, &t->dparams[i], angle);
        }
}
