/* SPDX-License-Identifier: MIT */
/*
 * params.c: the parameters of a SPEC out of a model's checkpoint
 *
 * The idea  What a checkpoint calls a parameter is data (tensors.def); what shape it must have, the library
 *           says (posenc_param_shape). Between the two there is little: axes of length 1 come and go (ViT's
 *           table is [1,rows,dim], SwinV2's factor [H,1,1]), and 16-bit floats become float32.
 * Names     A model inside another one has its name before those of its tensors, so a tensor is known by the
 *           end of its name. Two of them that end alike are refused: which is meant, nobody has said.
 * Memory    Of a .safetensors only what is wanted is read, of a sharded one only the files that have it.
 */
#include "files/model/build.h"

#include <jansson.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/compiler.h"
#include "files/arrays/formats.h"
#include "files/arrays/json.h"

enum { MOST_WANTED = 32, LONGEST_NAME = 160, LONGEST_INDEX = 64 << 20 };

typedef struct tensor_names {
    const char *encoding, *param, *stack, *types, *names;
} tensor_names;

#define TENSOR(encoding, param, stack, types, names) {encoding, param, stack, types, names},
static const tensor_names rows[] = {
#include "files/model/tensors.def"
};

/* A name that a parameter may have in the checkpoint, in order of preference. */
typedef struct wanted_name {
    char text[LONGEST_NAME];
    int  param;     /* of the encoding */
    int  is_turned; /* the tensor has rows and columns exchanged */
} wanted_name;

typedef struct param_search {
    const posenc_model       *model;
    const posenc_model_group *group;
    int64_t                   layer, stage, block;
    const char               *checkpoint;
    posenc_error             *err;
    posenc_encoding          *e;
    wanted_name               wanted[MOST_WANTED];
    int                       count;
    posenc_arrays             found, params;
} param_search;

static posenc_status fail(const param_search *s, posenc_status status, const char *format, ...)
    PE_PRINTF(3, 4);

static posenc_status fail(const param_search *s, posenc_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const posenc_status told =
        pe_file_fail_list(s->err, status,
                          (pe_origin){s->checkpoint ? s->checkpoint : "posenc_model_params", NULL}, format,
                          values);
    va_end(values);
    return told;
}

/* ---------------------------------------------------------------- names --------------------- */

static int is_same(const char *a, const char *b)
{
    return a == b || (b && pe_text_is(a, b));
}

/* The row for this parameter: the one that names the model's type, else the one for all others. */
static const tensor_names *row_of(const param_search *s, const char *param)
{
    const tensor_names *common = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tensor_names *row = &rows[i];
        if ((strcmp(row->encoding, s->group->encoding) != 0 && strcmp(row->encoding, "any") != 0) ||
            strcmp(row->param, param) != 0 || !is_same(row->stack, s->group->stack))
            continue;
        if (row->types && pe_text_is_among(row->types, s->model->info.type))
            return row;
        common = row->types ? common : row;
    }
    return common;
}

/* Puts the numbers in the place of {layer}, {stage} and {block}. */
static void expand(char to[LONGEST_NAME], const char *from, size_t n, const param_search *s)
{
    const struct {
        const char *word;
        int64_t     number;
    } words[]        = {{"{layer}", s->layer}, {"{stage}", s->stage}, {"{block}", s->block}};
    size_t      used = 0;
    const char *end  = from + n;
    while (from < end && used < LONGEST_NAME - 1) {
        size_t i = 0;
        while (i < 3 && strncmp(from, words[i].word, strlen(words[i].word)) != 0)
            i++;
        if (i < 3) {
            used += (size_t)snprintf(to + used, LONGEST_NAME - used, "%lld", (long long)words[i].number);
            from += strlen(words[i].word);
        } else
            to[used++] = *from++;
    }
    to[used < LONGEST_NAME ? used : LONGEST_NAME - 1] = '\0';
}

static void want(param_search *s, const char *names, int param)
{
    for (size_t n; *names && s->count < MOST_WANTED; names += n + (names[n] == ' ')) {
        n                             = strcspn(names, " ");
        s->wanted[s->count].is_turned = names[n - 1] == '\'';
        expand(s->wanted[s->count].text, names, n - (names[n - 1] == '\''), s);
        s->wanted[s->count++].param = param;
    }
}

/* Is it this name, with or without those of the models around it? */
static int ends_in(const char *full, const char *name)
{
    const size_t n = strlen(full), m = strlen(name);
    return n >= m && !strcmp(full + n - m, name) && (n == m || full[n - m - 1] == '.');
}

static int is_wanted(const void *context, const char *name)
{
    const param_search *s = context;
    for (int i = 0; i < s->count; i++)
        if (ends_in(name, s->wanted[i].text))
            return 1;
    return 0;
}

/* ---------------------------------------------------------------- the checkpoint ------------ */

static posenc_status read_safetensors(param_search *s, const char *path)
{
    FILE           *stream;
    int64_t         size;
    const pe_picker wanted = {is_wanted, s};
    posenc_status   status = pe_file_open_found(&stream, &size, path, s->err);
    if (status)
        return status;
    status = pe_safetensors_pick(&s->found, stream, size, path, &wanted, s->err);
    pe_file_close(stream);
    return status;
}

/* The files of weight_map that have what is wanted, each once. A name with a folder in it is not followed. */
static posenc_status read_parts(param_search *s, const json_t *map)
{
    const char   *name, *slash = strrchr(s->checkpoint, '/');
    const int     folder = slash ? (int)(slash - s->checkpoint) + 1 : 0;
    json_t       *value, *done = json_object();
    posenc_status status = done ? POSENC_OK : fail(s, POSENC_ERROR_MEMORY, "not enough memory for its index");
    json_object_foreach((json_t *)(uintptr_t)map, name, value)
    {
        const char *file = json_string_value(value);
        if (status || !is_wanted(s, name) || (file && json_object_get(done, file)))
            continue;
        if (!file || !*file || strchr(file, '/')) {
            status = fail(s, POSENC_ERROR_FORMAT, "weight_map names no file of its folder for %.60s", name);
            continue;
        }
        const size_t room = (size_t)folder + strlen(file) + 1;
        char        *path = malloc(room);
        if (!path || json_object_set_new(done, file, json_true()))
            status = fail(s, POSENC_ERROR_MEMORY, "not enough memory for its index");
        else {
            snprintf(path, room, "%.*s%s", folder, s->checkpoint, file);
            status = read_safetensors(s, path);
        }
        free(path);
    }
    json_decref(done);
    return status;
}

static posenc_status read_index(param_search *s)
{
    FILE         *stream;
    int64_t       size;
    pe_bytes      bytes;
    json_error_t  why;
    posenc_status status = pe_file_open(&stream, &size, s->checkpoint, s->err);
    if (status)
        return status;
    status = pe_file_read(&bytes, stream, LONGEST_INDEX, s->checkpoint, s->err);
    pe_file_close(stream);
    if (status)
        return status;
    json_t       *json = pe_json_load(bytes.data, bytes.size, &why);
    const json_t *map  = json_object_get(json, "weight_map");
    free(bytes.data);
    if (!json)
        return fail(s, POSENC_ERROR_FORMAT, "it is not valid JSON: line %d, column %d: %.80s", why.line,
                    why.column, why.text);
    status = json_is_object(map)
                 ? read_parts(s, map)
                 : fail(s, POSENC_ERROR_FORMAT,
                        "it has no object weight_map, as the index of a sharded checkpoint has");
    json_decref(json);
    return status;
}

static posenc_status read_checkpoint(param_search *s)
{
    if (pe_text_ends_with(s->checkpoint, ".json"))
        return read_index(s);
    return pe_text_ends_with(s->checkpoint, ".safetensors")
               ? read_safetensors(s, s->checkpoint)
               : posenc_arrays_read(&s->found, s->checkpoint, s->err);
}

/* ---------------------------------------------------------------- one parameter ------------- */

/* The tensor of a parameter: the first of its names that is there. */
static posenc_status find(const param_search *s, int param, const posenc_array **found, int *is_turned)
{
    const wanted_name *first = NULL;
    *found                   = NULL;
    for (int i = 0; i < s->count && !*found; i++) {
        if (s->wanted[i].param != param)
            continue;
        first      = first ? first : &s->wanted[i];
        *is_turned = s->wanted[i].is_turned;
        for (int k = 0; k < s->found.count; k++) {
            const posenc_array *a = &s->found.items[k];
            if (!ends_in(a->name, s->wanted[i].text))
                continue;
            if (*found)
                return fail(s, POSENC_ERROR_FORMAT,
                            "it has %.60s and %.60s: which is meant cannot be told; leave one out",
                            (*found)->name, a->name);
            *found = a;
        }
    }
    return *found ? POSENC_OK
                  : fail(s, POSENC_ERROR_FORMAT, "it has no tensor %s, which is %s of %s",
                         first ? first->text : "", posenc_param_name(s->e, param), s->group->encoding);
}

/* The sizes above 1. */
static int squeeze(int64_t to[POSENC_MAX_DIMS], const int64_t *shape, int32_t ndim)
{
    int n = 0;
    for (int32_t a = 0; a < ndim; a++)
        if (shape[a] != 1)
            to[n++] = shape[a];
    return n;
}

static const char *shape_text(char text[120], const int64_t *shape, int32_t ndim)
{
    size_t used = (size_t)snprintf(text, 120, "[");
    for (int32_t a = 0; a < ndim && used < 100; a++)
        used += (size_t)snprintf(text + used, 120 - used, "%s%lld", a ? "," : "", (long long)shape[a]);
    snprintf(text + used, 120 - used, "]");
    return text;
}

/* Numbers as floats or doubles. */
static posenc_status convert(const param_search *s, const posenc_tensor *to, const posenc_tensor *t,
                             int is_turned)
{
    if (!is_turned) {
        pe_arrays_convert(to, t);
        return POSENC_OK;
    }
    const int64_t high = to->shape[0], across = to->shape[1];
    const size_t  size = posenc_dtype_size(to->dtype);
    posenc_tensor wide = posenc_tensor_contiguous(malloc(pe_arrays_bytes(to)), to->dtype, 2, t->shape);
    if (!wide.data)
        return fail(s, POSENC_ERROR_MEMORY, "not enough memory for a table");
    pe_arrays_convert(&wide, t);
    for (int64_t r = 0; r < high; r++)
        for (int64_t c = 0; c < across; c++)
            memcpy((char *)to->data + (size_t)(r * across + c) * size,
                   (char *)wide.data + (size_t)(c * high + r) * size, size);
    free(wide.data);
    return POSENC_OK;
}

static posenc_status add_param(param_search *s, int index, const posenc_array *from, int is_turned)
{
    const char   *name = posenc_param_name(s->e, index);
    posenc_tensor seen = from->tensor, *t = &seen;
    int32_t       ndim;
    int64_t       shape[POSENC_MAX_DIMS], is[POSENC_MAX_DIMS], must[POSENC_MAX_DIMS];
    char          text[2][120];
    posenc_status status = posenc_param_shape(s->e, &s->group->dims, index, &ndim, shape, s->err);
    if (status)
        return status;
    if (is_turned && t->ndim == 2) {
        seen.shape[0] = from->tensor.shape[1];
        seen.shape[1] = from->tensor.shape[0];
    }
    const int m = squeeze(is, t->shape, t->ndim), n = squeeze(must, shape, ndim);
    if (t->dtype > POSENC_DTYPE_BF16 || m != n || memcmp(is, must, (size_t)n * sizeof *is) != 0)
        return fail(s, POSENC_ERROR_FORMAT,
                    "%.60s holds %s numbers of the shape %s; %s of %s must be real, %s", from->name,
                    t->dtype > POSENC_DTYPE_BF16 ? "whole" : "real", shape_text(text[0], t->shape, t->ndim),
                    name, s->group->encoding, shape_text(text[1], shape, ndim));
    const posenc_dtype   type = t->dtype == POSENC_DTYPE_F64 ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
    const posenc_tensor *to   = posenc_arrays_add(&s->params, name, type, ndim, shape);
    if (!to)
        return fail(s, POSENC_ERROR_MEMORY, "not enough memory for %s", name);
    return convert(s, to, &from->tensor, is_turned && from->tensor.ndim == 2);
}

static const posenc_array *own_param(const param_search *s, const char *name)
{
    for (int i = 0; i < s->group->param_count; i++)
        if (pe_text_is(s->group->params[i].name, name))
            return &s->group->params[i];
    return NULL;
}

/* ---------------------------------------------------------------- the function -------------- */

/* Which layer, and where it stands among the stages of a model that has such. */
static posenc_status choose_layer(param_search *s, int group, int64_t layer)
{
    const posenc_model_group *g     = s->group;
    const int64_t             first = g->is_all || !g->layer_count ? 0 : g->layers[0];
    s->layer                        = layer == -1 ? first : layer;
    const int64_t depth             = s->model->info.layers;
    if (!g->is_input && !g->stack &&
        (posenc_model_group_of(s->model, s->layer) != group || (depth && s->layer >= depth)))
        return fail(s, POSENC_ERROR_ARGUMENT, "layer %lld is not one of group %d (%s)", (long long)s->layer,
                    group, g->encoding);
    for (int i = 0; i < group; i++)
        s->stage += !s->model->groups[i].is_input;
    s->block = s->layer - first;
    return POSENC_OK;
}

static posenc_status list_wanted(param_search *s)
{
    for (int i = 0; i < posenc_param_count(s->e); i++) {
        const char         *name = posenc_param_name(s->e, i);
        const tensor_names *row  = row_of(s, name);
        if (own_param(s, name) || (!row && !posenc_param_trainable(s->e, i)))
            continue;
        if (!row)
            return fail(s, POSENC_ERROR_UNSUPPORTED, "what a model of type %.40s calls its %s is not known",
                        s->model->info.type ? s->model->info.type : "?", name);
        want(s, row->names, i);
    }
    return s->count && !s->checkpoint ? fail(s, POSENC_ERROR_ARGUMENT, "%s needs %s; give a checkpoint",
                                             s->group->spec, s->wanted[0].text)
                                      : POSENC_OK;
}

static posenc_status gather(param_search *s)
{
    posenc_status status = posenc_encoding_create(&s->e, s->group->spec, NULL, s->err);
    if (!status)
        status = list_wanted(s);
    if (!status && s->count)
        status = read_checkpoint(s);
    for (int i = 0; !status && i < posenc_param_count(s->e); i++) {
        const char         *name      = posenc_param_name(s->e, i);
        const posenc_array *from      = own_param(s, name);
        int                 is_turned = 0;
        if (!from && (row_of(s, name) || posenc_param_trainable(s->e, i)))
            status = find(s, i, &from, &is_turned);
        if (!status && from)
            status = add_param(s, i, from, is_turned);
    }
    return status;
}

posenc_status posenc_model_params(posenc_arrays *params, const posenc_model *model, int group, int64_t layer,
                                  const char *checkpoint, posenc_error *err)
{
    pe_file_begin();
    param_search s = {.model = model, .checkpoint = checkpoint, .err = err};
    if (!params || !model)
        return fail(&s, POSENC_ERROR_ARGUMENT, "%s must not be NULL", params ? "model" : "params");
    if (!(s.group = posenc_model_group_at(model, group)))
        return fail(&s, POSENC_ERROR_ARGUMENT, "group is %d; the model has %d, counted from 0", group,
                    model->info.group_count);
    const int     before = params->count;
    posenc_status status = choose_layer(&s, group, layer);
    if (!status)
        status = gather(&s);
    if (!status && pe_file_lost_memory())
        status = fail(&s, POSENC_ERROR_MEMORY, "not enough memory");
    for (int i = 0; !status && i < s.params.count; i++) {
        posenc_array *a = &s.params.items[i];
        if (!pe_arrays_take(params, a->name, strlen(a->name), a))
            status = fail(&s, POSENC_ERROR_MEMORY, "not enough memory for %s", a->name);
        a->tensor.data = NULL; /* taken, or freed */
    }
    while (status && params->count > before) {
        posenc_array *last = &params->items[--params->count];
        free(last->name);
        free(last->tensor.data);
    }
    posenc_arrays_free(&s.found);
    posenc_arrays_free(&s.params);
    posenc_encoding_free(s.e);
    return status ? status : pe_file_done(err);
}
