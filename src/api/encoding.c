/* SPDX-License-Identifier: MIT */
/* encoding.c: an encoding and sizes: its parts, settings as numbers, parameters and their first values */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/expression.h"
#include "base/sizes.h"
#include "base/tensor.h"

void pe_encoding_words(const pe_chosen *part, pe_value set[PE_MAX_SETTINGS])
{
    const posenc_encoding_info *info = &part->room->info;
    for (int i = 0; i < info->setting_count; i++)
        pe_settings_resolve(&set[i], &info->settings[i], part->text[i].text, NULL, info->name, NULL);
}

int posenc_rows_coordinates(const posenc_encoding *e)
{
    const pe_chosen *part = e ? &e->parts[POSENC_PLACE_INPUT] : NULL;
    pe_value         set[PE_MAX_SETTINGS];
    if (!part || !part->room || !part->room->coordinates)
        return 1;
    pe_encoding_words(part, set);
    return part->room->coordinates(set);
}

const posenc_encoding_info *posenc_encoding_part(const posenc_encoding *e, posenc_place place)
{
    return e && (size_t)place < POSENC_PLACE_COUNT && e->parts[place].room ? &e->parts[place].room->info
                                                                           : NULL;
}

posenc_dims pe_encoding_full_dims(const posenc_dims *dims)
{
    posenc_dims d = *dims;
    d.B           = d.B ? d.B : 1;
    d.G           = d.G ? d.G : d.H;
    d.Dv          = d.Dv ? d.Dv : d.D;
    d.Lk          = d.Lk ? d.Lk : d.Lq;
    d.Lq          = d.Lq ? d.Lq : d.Lk;
    d.d_model     = d.d_model ? d.d_model : pe_sizes_product(d.H, d.D);
    d.L           = d.L ? d.L : d.Lk;
    return d;
}

posenc_status pe_encoding_resolve(pe_resolved *r, const pe_chosen *part, const posenc_dims *full,
                                  posenc_error *err)
{
    const posenc_encoding_info *info = &part->room->info;
    *r                               = (pe_resolved){.room = part->room};
    for (int i = 0; i < info->setting_count; i++) {
        const pe_scope      scope  = {full, info->settings, r->set, i};
        const posenc_status status = pe_settings_resolve_in(&r->set[i], &info->settings[i],
                                                            part->text[i].text, &scope, info->name, err);
        if (status)
            return status;
    }
    /* where no plan says which; a POSENC_ISA that does not run here is refused when a plan is made */
    const pe_kernels *chosen = pe_kernels_choose(), *kernels = chosen ? chosen : pe_kernels_at(0);
    r->problem = (pe_problem){full->B,       full->H, full->G, full->Lq, full->Lk, full->D, full->Dv,
                              full->d_model, full->L, r->set,  NAN,      kernels,  NULL};
    return part->room->check ? part->room->check(&r->problem, err) : POSENC_OK;
}

/* ---- parameters: which there are, their shapes for given sizes, and their first values ---- */

int posenc_param_count(const posenc_encoding *e)
{
    return e ? e->param_count : 0;
}

/* Which part owns parameter `index`, and its number there. NULL outside. */
static const pe_chosen *owner_of(const posenc_encoding *e, int index, int *local)
{
    if (!e || index < 0 || index >= e->param_count)
        return NULL;
    *local = e->params[index].local;
    return &e->parts[e->params[index].place];
}

const posenc_param_info *posenc_param_describe(const posenc_encoding *e, int index)
{
    int              local = 0;
    const pe_chosen *part  = owner_of(e, index, &local);
    return part ? &part->room->info.params[local] : NULL;
}

const char *posenc_param_name(const posenc_encoding *e, int index)
{
    return e && index >= 0 && index < e->param_count ? e->names[index] : NULL;
}

int posenc_param_trainable(const posenc_encoding *e, int index)
{
    int              local = 0;
    const pe_chosen *part  = owner_of(e, index, &local);
    pe_value         set[PE_MAX_SETTINGS];
    if (!part)
        return 0;
    if (!part->room->trains)
        return part->room->info.params[local].trainable;
    pe_encoding_words(part, set);
    return part->room->trains(set, local);
}

typedef struct shape_names {
    const posenc_dims *full;
    const pe_resolved *r;
} shape_names;

static int shape_lookup(void *context, const char *name, size_t length, double *value)
{
    const shape_names *s = context;
    if (pe_settings_number(s->r->room->info.settings, s->r->set, name, length, value))
        return isfinite(*value);
    return pe_settings_size(s->full, name, length, value);
}

double pe_encoding_number(const pe_resolved *r, const posenc_dims *full, const char *text)
{
    double value = 0;
    pe_expression_evaluate(text, shape_lookup, &(shape_names){full, r}, &value);
    return value;
}

int64_t pe_encoding_whole(const pe_resolved *r, const posenc_dims *full, const char *text)
{
    const double value = pe_encoding_number(r, full, text);
    return value < 0x1p53 ? (int64_t)value : INT64_C(1) << 53;
}

/* "H if per_head": an axis that a flag calls for. Leaves only the size in `piece`. */
static int has_axis(const pe_resolved *r, char *piece)
{
    char *condition = strstr(piece, " if ");
    if (!condition)
        return 1;
    const char *flag  = condition + strlen(" if ");
    const int   index = pe_settings_index(r->room->info.settings, flag, strlen(flag));
    *condition        = '\0';
    return index >= 0 && r->set[index].integer == 1;
}

posenc_status posenc_param_shape(const posenc_encoding *e, const posenc_dims *dims, int index, int32_t *ndim,
                                 int64_t shape[POSENC_MAX_DIMS], posenc_error *err)
{
    int              local = 0;
    pe_resolved      r;
    const pe_chosen *part = owner_of(e, index, &local);
    if (!e || !dims || !ndim || !shape)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "parameter: e, dims, ndim and shape must not be NULL");
    if (!part)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "parameter: this encoding has no parameter number %d",
                       index);
    const posenc_dims   full   = pe_encoding_full_dims(dims);
    const posenc_status status = pe_encoding_resolve(&r, part, &full, err);
    if (status)
        return status;
    shape_names names = {&full, &r};
    double      total = 1;
    int64_t     sizes[POSENC_MAX_DIMS];
    int32_t     n_axes = 0;
    for (const char *at = part->room->info.params[local].shape; *at;) {
        char         piece[PE_MAX_TEXT];
        double       size;
        const size_t n = strcspn(at, ",");
        snprintf(piece, sizeof piece, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
        if (!has_axis(&r, piece))
            continue;
        if (!pe_expression_evaluate(piece, shape_lookup, &names, &size) || !(size >= 1) ||
            (total *= size) > 0x1p40)
            return pe_fail(err, POSENC_ERROR_SHAPE,
                           "parameter %s: its axis '%s' is missing, below 1 or too large for these sizes",
                           e->names[index], piece);
        sizes[n_axes++] = (int64_t)size;
    }
    *ndim = n_axes;
    memcpy(shape, sizes, (size_t)n_axes * sizeof *shape);
    return pe_done(err);
}

posenc_status pe_encoding_check_param(const posenc_encoding *e, const posenc_dims *dims, int index,
                                      const posenc_tensor *t, const char *who, posenc_error *err)
{
    int32_t       ndim;
    int64_t       shape[POSENC_MAX_DIMS];
    char          name[2 * PE_MAX_NAME];
    posenc_status status = posenc_param_shape(e, dims, index, &ndim, shape, err);
    snprintf(name, sizeof name, "%s: %s", who, e->names[index]);
    if (!status)
        status = pe_tensor_check(t, name, ndim, shape, err);
    if (!status && t->dtype != POSENC_DTYPE_F32 && t->dtype != POSENC_DTYPE_F64)
        status = pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F32 or F64", name,
                         pe_tensor_dtype_name(t->dtype));
    if (!status && !pe_tensor_is_contiguous(t))
        status = pe_fail(err, POSENC_ERROR_DTYPE, "%s has strides; it must be contiguous", name);
    return status;
}

/* What a parameter starts with, as `list` prints it. */
typedef struct start {
    enum { NUMBER, NORMAL, UNIFORM } kind;
    double low, high; /* the number, the deviation of a normal: high */
} start;

/* "ones; init=normal: normal(0, sigma)": what holds where a setting is not that word, then where it is. */
static void choose_start(char *text, size_t n, const char *init, const pe_resolved *r)
{
    const char  *other = strstr(init, "; "), *word = other ? strchr(other, '=') + 1 : NULL;
    const size_t plain = other ? (size_t)(other - init) : strlen(init);
    snprintf(text, n, "%.*s", (int)plain, init);
    if (!other)
        return;
    const posenc_setting_info *table = r->room->info.settings;
    const int                  index = pe_settings_index(table, other + 2, (size_t)(word - other) - 3);
    if (r->set[index].integer == pe_settings_word_index(table[index].range, word, strcspn(word, ":")))
        snprintf(text, n, "%s", strstr(word, ": ") + 2);
}

/* What is neither drawn nor a number is "ones" or "zeros". */
static start read_start(const char *init, shape_names *names)
{
    char  text[2 * PE_MAX_TEXT], low[PE_MAX_TEXT], high[PE_MAX_TEXT];
    start s = {0};
    choose_start(text, sizeof text, init, names->r);
    if (sscanf(text, "normal(0, %63[^)])", high) == 1)
        s.kind = NORMAL;
    else if (sscanf(text, "uniform(%63[^,], %63[^\n]", low, high) == 2) {
        s.kind                 = UNIFORM;
        high[strlen(high) - 1] = '\0'; /* the bracket */
        pe_expression_evaluate(low, shape_lookup, names, &s.low);
    } else
        sscanf(text, "%63[^\n]", high);
    s.high = !strcmp(high, "ones");
    pe_expression_evaluate(high, shape_lookup, names, &s.high);
    return s;
}

static double draw(const start *s, pe_random *rng)
{
    if (s->kind == NORMAL)
        return s->high * pe_random_normal(rng);
    if (s->kind == NUMBER)
        return s->high;
    return s->low == -s->high ? s->high * (2 * pe_random_uniform(rng) - 1)
                              : s->low + (s->high - s->low) * pe_random_uniform(rng);
}

static posenc_status init_one(const posenc_encoding *e, const posenc_dims *full, int index, posenc_tensor *to,
                              uint64_t seed, posenc_error *err)
{
    int              local = 0;
    pe_resolved      r;
    const pe_chosen *part   = owner_of(e, index, &local);
    posenc_status    status = pe_encoding_resolve(&r, part, full, err);
    if (status)
        return status;
    shape_names names = {full, &r};
    const start first =
        part->room->init ? (start){0} : read_start(part->room->info.params[local].init, &names);
    char stream[2 * PE_MAX_NAME];
    snprintf(stream, sizeof stream, "%s.%s", part->room->info.name, part->room->info.params[local].name);
    pe_random    rng  = pe_random_stream(seed, stream);
    const size_t item = posenc_dtype_size(to->dtype);
    for (int64_t i = 0; i < pe_tensor_elements(to); i++) {
        const double x = part->room->init ? part->room->init(&r.problem, local, &rng, i) : draw(&first, &rng);
        pe_tensor_store_double((char *)to->data + (size_t)i * item, to->dtype, 1, &x, 1);
    }
    return POSENC_OK;
}

posenc_status posenc_param_init(const posenc_encoding *e, const posenc_dims *dims, posenc_tensor *params,
                                uint64_t seed, posenc_error *err)
{
    if (!e || !dims || (!params && e->param_count))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "parameters: e, dims and params must not be NULL");
    const posenc_dims full   = pe_encoding_full_dims(dims);
    posenc_status     status = POSENC_OK;
    pe_named          all[PE_MAX_PARAMS];
    for (int i = 0; !status && i < e->param_count; i++) {
        all[i] = (pe_named){&params[i], e->names[i]};
        status = pe_encoding_check_param(e, dims, i, &params[i], "parameters", err);
    }
    if (!status)
        status = pe_overlap_check_apart(all, e->param_count, NULL, 0, err);
    for (int i = 0; !status && i < e->param_count; i++)
        status = init_one(e, &full, i, &params[i], seed, err);
    return status ? status : pe_done(err);
}
