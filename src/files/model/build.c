/* SPDX-License-Identifier: MIT */
/* build.c: groups of facts about a model, and the public questions to them: contract in build.h and
   posenc/files.h. */
#include "files/model/build.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/decimal.h"

typedef struct pe_build_piece {
    struct pe_build_piece *next;
    max_align_t            bytes[];
} piece;

/* ---------------------------------------------------------------- failing, memory ------------ */

static const char no_memory[] = "not enough memory for what it says";

posenc_model *pe_build_begin(const char *format, const char *path, posenc_error *err)
{
    posenc_model *model = calloc(1, sizeof *model);
    if (model)
        *model = (posenc_model){.path = path, .err = err, .info.format = format};
    else
        pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){path, NULL}, no_memory);
    return model;
}

void pe_build_refuse(posenc_model *model, const char *format, ...)
{
    va_list values;
    if (model->status)
        return;
    va_start(values, format);
    model->status =
        pe_file_fail_list(model->err, POSENC_ERROR_FORMAT, (pe_origin){model->path, NULL}, format, values);
    va_end(values);
}

void pe_build_refuse_memory(posenc_model *model)
{
    if (!model->status)
        model->status =
            pe_file_fail(model->err, POSENC_ERROR_MEMORY, (pe_origin){model->path, NULL}, no_memory);
}

void *pe_build_alloc(posenc_model *model, size_t n)
{
    piece *new = n < SIZE_MAX / 2 ? calloc(1, sizeof *new + n) : NULL;
    if (!new) {
        pe_build_refuse_memory(model);
        return NULL;
    }
    new->next     = model->pieces;
    model->pieces = new;
    return new->bytes;
}

char *pe_build_text(posenc_model *model, const char *format, ...)
{
    static char none[] = "";
    va_list     values;
    va_start(values, format);
    const int n = pe_decimal_print(NULL, 0, format, values);
    va_end(values);
    char *text = n < 0 ? NULL : pe_build_alloc(model, (size_t)n + 1);
    if (!text)
        return none;
    va_start(values, format);
    pe_decimal_print(text, (size_t)n + 1, format, values);
    va_end(values);
    return text;
}

void posenc_model_free(posenc_model *model)
{
    if (!model)
        return;
    for (int i = 0; i < model->info.tower_count; i++)
        posenc_model_free(model->towers[i]);
    for (piece *next, *one = model->pieces; one; one = next) {
        next = one->next;
        free(one);
    }
    free(model);
}

/* ---------------------------------------------------------------- filling ------------------- */

void pe_build_warn(posenc_model *model, const char *code, const char *format, ...)
{
    va_list values;
    char    sentence[400];
    va_start(values, format);
    pe_decimal_print(sentence, sizeof sentence, format, values);
    va_end(values);
    for (int i = 0; i < model->info.warning_count; i++)
        if (!strcmp(model->warnings[i].code, code) && !strcmp(model->warnings[i].sentence, sentence))
            return;
    if (model->info.warning_count < PE_MODEL_WARNINGS)
        model->warnings[model->info.warning_count++] =
            (posenc_model_warning){code, pe_build_text(model, "%s", sentence)};
}

/* A reader that has refused before it made a group still adds its facts: they go nowhere. */
static posenc_model_group *last_group(posenc_model *model)
{
    const int count = model->info.group_count;
    return &model->groups[count ? count - 1 : 0];
}

posenc_model_group *pe_build_group(posenc_model *model, const char *encoding, posenc_dims dims, int64_t width)
{
    model->info.group_count += model->info.group_count < PE_MODEL_GROUPS;
    posenc_model_group *group = last_group(model);
    *group        = (posenc_model_group){.encoding = encoding, .spec = encoding, .is_all = 1, .dims = dims};
    group->dims.D = width;
    group->facts  = pe_build_alloc(model, PE_MODEL_FACTS * sizeof *group->facts);
    group->params = pe_build_alloc(model, PE_MODEL_PARAMS * sizeof *group->params);
    return group;
}

void pe_build_layers(posenc_model *model, const char *kinds, int64_t count, char kind)
{
    posenc_model_group *group  = last_group(model);
    int64_t            *layers = pe_build_alloc(model, (size_t)count * sizeof *layers);
    int64_t             n      = 0;
    for (int64_t i = 0; layers && i < count; i++)
        if (kinds[i] == kind)
            layers[n++] = i;
    group->is_all      = n == count;
    group->layers      = layers;
    group->layer_count = n;
}

void pe_build_param(posenc_model *model, const char *name, const double *values, int64_t count)
{
    posenc_model_group *group  = last_group(model);
    posenc_array       *params = (posenc_array *)(uintptr_t)group->params;
    if (!params || !values || group->param_count == PE_MODEL_PARAMS)
        return;
    params[group->param_count].name = (char *)(uintptr_t)name;
    params[group->param_count++].tensor =
        posenc_tensor_contiguous((void *)(uintptr_t)values, POSENC_DTYPE_F64, 1, &count);
}

/* ---------------------------------------------------------------- facts --------------------- */

static posenc_fact *fact_of(posenc_model *model, posenc_model_group *group, const char *name,
                            posenc_fact_kind kind, const char *rule)
{
    static posenc_fact lost;
    posenc_fact       *facts = (posenc_fact *)(uintptr_t)group->facts;
    if (!facts || group->fact_count == PE_MODEL_FACTS) {
        pe_build_refuse_memory(model);
        return &lost;
    }
    facts[group->fact_count] = (posenc_fact){.name = name, .kind = kind, .rule = rule ? rule : ""};
    return &facts[group->fact_count++];
}

posenc_fact *pe_build_fact(posenc_model *model, const char *name, posenc_fact_kind kind, const char *rule)
{
    return fact_of(model, last_group(model), name, kind, rule);
}

void pe_build_flag(posenc_model *model, const char *name, int value, const char *rule)
{
    pe_build_fact(model, name, POSENC_FACT_FLAG, rule)->integer = value != 0;
}

void pe_build_integer(posenc_model *model, const char *name, int64_t value, const char *rule)
{
    pe_build_fact(model, name, POSENC_FACT_INTEGER, rule)->integer = value;
}

void pe_build_real(posenc_model *model, const char *name, double value, const char *rule)
{
    pe_build_fact(model, name, isnan(value) ? POSENC_FACT_NONE : POSENC_FACT_REAL, rule)->real = value;
}

void pe_build_word(posenc_model *model, const char *name, const char *value, const char *rule)
{
    pe_build_fact(model, name, value ? POSENC_FACT_WORD : POSENC_FACT_NONE, rule)->text = value;
}

void pe_build_list(posenc_model *model, const char *name, posenc_fact_kind kind, const double *values,
                   int64_t count, const char *rule)
{
    posenc_fact *f = pe_build_fact(model, name, kind, rule);
    f->list        = values;
    f->count       = values ? count : 0;
}

/* ---------------------------------------------------------------- ALiBi --------------------- */

/* The slopes as the library's alibi is initialised. */
static posenc_status ask_slopes(double *slopes, const posenc_dims *dims, posenc_error *err)
{
    posenc_encoding *e      = NULL;
    posenc_status    status = posenc_encoding_create(&e, "alibi", NULL, err);
    posenc_tensor    tensor = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F64, 1, &dims->H);
    if (!status)
        status = posenc_param_init(e, dims, &tensor, 1, err);
    posenc_encoding_free(e);
    return status;
}

void pe_build_alibi(posenc_model *model, posenc_dims dims, int64_t width, double most, double bias_scale,
                    double score_scale)
{
    const size_t size   = (size_t)dims.H * sizeof(double);
    double      *slopes = model->status ? NULL : pe_build_alloc(model, size),
           *applied     = slopes ? pe_build_alloc(model, size) : NULL;
    posenc_error why;
    dims.D = width;
    if (!applied)
        return;
    if (ask_slopes(slopes, &dims, &why)) {
        pe_build_refuse(model, "%s", why.message);
        return;
    }
    for (int64_t h = 0; h < dims.H; h++) {
        slopes[h]  = most == 8 ? slopes[h] : pow(slopes[h], most / 8);
        applied[h] = slopes[h] * bias_scale;
    }
    pe_build_group(model, "alibi", dims, width);
    if (most != 8 || bias_scale != 1) /* else they are what the encoding begins with */
        pe_build_param(model, "slopes", applied, dims.H);
    pe_build_integer(model, "heads", dims.H, NULL);
    pe_build_integer(model, "head_dim", width, "hidden_size / heads");
    pe_build_list(model, "slopes", POSENC_FACT_REALS, slopes, dims.H, NULL);
    pe_build_real(model, "bias_scale", bias_scale,
                  bias_scale == 1 ? NULL : "the bias is added before the scores are scaled");
    const int is_usual = fabs(score_scale * sqrt((double)width) - 1) < 1e-14;
    char      text[PE_TEXT_REAL];
    if (!is_usual)
        last_group(model)->spec = pe_build_text(model, "alibi[scale=%s]", pe_text_real(text, score_scale));
    pe_build_real(model, "score_scale", score_scale, is_usual ? "1 / sqrt(head_dim)" : "the file");
}

/* ---------------------------------------------------------------- at the input -------------- */

posenc_model_group *pe_build_input(posenc_model *model, const char *encoding, posenc_dims dims,
                                   const char *stack)
{
    posenc_model_group *g = pe_build_group(model, encoding, dims, dims.D);
    g->is_input           = 1;
    g->is_all             = 0;
    g->stack              = stack;
    return g;
}

posenc_model_group *pe_build_learned(posenc_model *model, posenc_dims dims, const pe_learned_table *t)
{
    if (model->status)
        return NULL;
    posenc_model_group *g = pe_build_input(model, "learned", dims, t->stack);
    g->spec = pe_build_text(model, "learned[rows=%lld,dim=%lld,offset=%lld]", (long long)t->rows,
                            (long long)t->dim, (long long)t->offset);
    pe_build_integer(model, "rows", t->rows, t->rows_rule);
    pe_build_integer(model, "offset", t->offset, "row of the first token");
    pe_build_integer(model, "dim", t->dim, t->dim_rule);
    if (t->stack)
        pe_build_word(model, "stack", t->stack, NULL);
    return g;
}

/* ---------------------------------------------------------------- layers that are alike ----- */

static int are_equal_facts(const posenc_fact *a, const posenc_fact *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->count != b->count)
        return 0;
    if (a->kind == POSENC_FACT_NONE)
        return 1;
    if (a->text && b->text ? strcmp(a->text, b->text) != 0 : a->text != b->text)
        return 0;
    for (int64_t i = 0; i < a->count; i++)
        if (a->list[i] != b->list[i])
            return 0;
    return a->integer == b->integer && a->real == b->real;
}

/* The same encoding with the same numbers, whatever rules gave them? */
static int are_alike(const posenc_model_group *a, const posenc_model_group *b)
{
    if (a->is_input || b->is_input || a->stack || b->stack || strcmp(a->encoding, b->encoding) != 0 ||
        strcmp(a->spec, b->spec) != 0 || a->fact_count != b->fact_count || a->param_count != b->param_count)
        return 0;
    for (int i = 0; i < a->fact_count; i++)
        if (!are_equal_facts(&a->facts[i], &b->facts[i]))
            return 0;
    for (int i = 0; i < a->param_count; i++) {
        const posenc_tensor *x = &a->params[i].tensor, *y = &b->params[i].tensor;
        if (strcmp(a->params[i].name, b->params[i].name) != 0 || x->shape[0] != y->shape[0] ||
            memcmp(x->data, y->data, (size_t)x->shape[0] * sizeof(double)) != 0)
            return 0;
    }
    return 1;
}

/* Layers of both, in order. */
static void join_layers(posenc_model *model, posenc_model_group *a, const posenc_model_group *b)
{
    const int64_t n      = a->layer_count + b->layer_count;
    int64_t      *layers = pe_build_alloc(model, (size_t)n * sizeof *layers);
    for (int64_t i = 0, k = 0; layers && i + k < n;) {
        const int from_a = k == b->layer_count || (i < a->layer_count && a->layers[i] < b->layers[k]);
        layers[i + k]    = from_a ? a->layers[i] : b->layers[k];
        from_a ? i++ : k++;
    }
    a->layers      = layers;
    a->layer_count = layers ? n : 0;
    a->is_all      = n == model->info.layers;
}

static void join_groups(posenc_model *model)
{
    for (int i = 0; i < model->info.group_count; i++)
        for (int k = i + 1; k < model->info.group_count;) {
            if (!are_alike(&model->groups[i], &model->groups[k])) {
                k++;
                continue;
            }
            join_layers(model, &model->groups[i], &model->groups[k]);
            posenc_fact       *facts = (posenc_fact *)(uintptr_t)model->groups[i].facts;
            const posenc_fact *more  = model->groups[k].facts;
            for (int f = 0; f < model->groups[i].fact_count; f++) /* two rules of one number are both given */
                if (strcmp(facts[f].rule, more[f].rule) != 0)
                    facts[f].rule = pe_build_text(model, "%s; %s", facts[f].rule, more[f].rule);
            model->info.group_count--;
            memmove(&model->groups[k], &model->groups[k + 1],
                    (size_t)(model->info.group_count - k) * sizeof *model->groups);
        }
}

/* ---------------------------------------------------------------- the end ------------------- */

static int by_code(const void *a, const void *b)
{
    const posenc_model_warning *x = a, *y = b;
    const int                   code = strcmp(x->code, y->code);
    return code ? code : strcmp(x->sentence, y->sentence);
}

/* What stands at the input comes first, the encoder before the decoder, then by the first layer. */
static int64_t rank(const posenc_model_group *g)
{
    const int64_t first = g->is_all || !g->layer_count ? 0 : g->layers[0];
    return g->is_input ? -1 : first;
}

/* By insertion: there are few, and equal ones keep their order. */
static void sort_groups(posenc_model *model)
{
    for (int i = 1; i < model->info.group_count; i++)
        for (int k = i; k > 0 && rank(&model->groups[k]) < rank(&model->groups[k - 1]); k--) {
            const posenc_model_group swap = model->groups[k];
            model->groups[k]              = model->groups[k - 1];
            model->groups[k - 1]          = swap;
        }
}

static const char *encoding_of_all(const posenc_model *model)
{
    const char *found = NULL;
    for (int i = 0; i < model->info.group_count; i++) {
        const char *name = model->groups[i].encoding;
        if (!strcmp(name, "nope"))
            continue;
        if (found && strcmp(found, name) != 0)
            return "mixed";
        found = name;
    }
    return found ? found : model->info.group_count ? "nope" : "none";
}

static int64_t original_length_of_all(const posenc_model *model)
{
    int64_t found = 0;
    for (int i = 0; i < model->info.group_count; i++) {
        const posenc_fact *f = posenc_model_fact(&model->groups[i], "original_length");
        if (f && found && f->integer != found)
            return 0;
        found = f ? f->integer : found;
    }
    return found;
}

/* ---------------------------------------------------------------- windows ------------------- */

void pe_build_windows(posenc_model *model, const int64_t *windows, const char *rule)
{
    model->windows     = windows;
    model->window_rule = rule;
}

int64_t posenc_model_window(const posenc_model *model, int64_t layer)
{
    return model && model->windows && layer >= 0 && layer < model->info.layers ? model->windows[layer] : 0;
}

/* Layers that differ in nothing but windows are one group: then the fact is a list, one number per layer. */
static void add_windows(posenc_model *model)
{
    for (int i = 0; model->windows && i < model->info.group_count; i++) {
        posenc_model_group *g     = &model->groups[i];
        const int64_t       n     = g->is_all ? model->info.layers : g->layer_count;
        double             *sizes = g->is_input ? NULL : pe_build_alloc(model, (size_t)n * sizeof *sizes);
        int64_t             same = 0, some = 0;
        for (int64_t k = 0; sizes && k < n; k++) {
            sizes[k] = (double)posenc_model_window(model, g->is_all ? k : g->layers[k]);
            same += sizes[k] == sizes[0];
            some += sizes[k] > 0;
        }
        if (!some)
            continue;
        const posenc_fact_kind kind = same == n ? POSENC_FACT_INTEGER : POSENC_FACT_INTEGERS;
        posenc_fact           *f    = fact_of(model, g, "sliding_window", kind, model->window_rule);
        f->integer                  = (int64_t)sizes[0];
        f->list                     = sizes;
        f->count                    = n;
    }
}

void pe_build_other_terms(posenc_model *model, const char *text, int only_sliding)
{
    model->other_terms       = text;
    model->other_terms_slide = only_sliding;
}

void pe_build_softcap(posenc_model *model, double cap)
{
    model->softcap = cap;
}

void pe_build_sinks(posenc_model *model, int only_sliding)
{
    model->has_sinks   = 1;
    model->sinks_slide = only_sliding;
}

/* One more setting of the SPEC, which every encoding has. */
static void add_setting(posenc_model *model, posenc_model_group *g, const char *setting)
{
    const size_t n   = strlen(g->spec);
    const int    any = n > 0 && g->spec[n - 1] == ']';
    g->spec = pe_build_text(model, "%.*s%c%s]", (int)(any ? n - 1 : n), g->spec, any ? ',' : '[', setting);
}

static void add_common_settings(posenc_model *model)
{
    char cap[PE_TEXT_REAL];
    for (int i = 0; i < model->info.group_count; i++) {
        posenc_model_group *g = &model->groups[i];
        if (g->is_input || !g->spec)
            continue;
        if (model->softcap > 0) {
            add_setting(model, g, pe_build_text(model, "softcap=%s", pe_text_real(cap, model->softcap)));
            fact_of(model, g, "softcap", POSENC_FACT_REAL, "attn_logit_softcapping")->real = model->softcap;
        }
        if (model->has_sinks && (!model->sinks_slide || posenc_model_fact(g, "sliding_window"))) {
            add_setting(model, g, "sink=head");
            fact_of(model, g, "sink", POSENC_FACT_WORD, "learned for each head")->text = "head";
        }
    }
}

static void add_other_terms(posenc_model *model)
{
    for (int i = 0; model->other_terms && i < model->info.group_count; i++) {
        posenc_model_group *g = &model->groups[i];
        if (!g->is_input && (!model->other_terms_slide || posenc_model_fact(g, "sliding_window")))
            fact_of(model, g, "other_terms", POSENC_FACT_WORD, "besides the SPEC")->text = model->other_terms;
    }
}

posenc_status pe_build_finish(posenc_model **out, posenc_model *model)
{
    if (pe_file_lost_memory())
        pe_build_refuse_memory(model);
    if (!model->status) {
        sort_groups(model);
        if (!model->sinks_slide) /* which differ in what is added below */
            join_groups(model);
        add_windows(model);
        add_common_settings(model);
        add_other_terms(model);
        if (!model->info.encoding)
            model->info.encoding = encoding_of_all(model);
        model->info.original_length = original_length_of_all(model);
        qsort(model->warnings, (size_t)model->info.warning_count, sizeof *model->warnings, by_code);
    }
    const posenc_status status = model->status ? model->status : pe_file_done(model->err);
    if (status)
        posenc_model_free(model);
    else
        *out = model;
    return status;
}

/* ---------------------------------------------------------------- questions ----------------- */

const posenc_model_info *posenc_model_describe(const posenc_model *model)
{
    return model ? &model->info : NULL;
}

const posenc_model_group *posenc_model_group_at(const posenc_model *model, int index)
{
    return model && index >= 0 && index < model->info.group_count ? &model->groups[index] : NULL;
}

const posenc_model_warning *posenc_model_warning_at(const posenc_model *model, int index)
{
    return model && index >= 0 && index < model->info.warning_count ? &model->warnings[index] : NULL;
}

const posenc_model *posenc_model_tower(const posenc_model *model, int index)
{
    return model && index >= 0 && index < model->info.tower_count ? model->towers[index] : NULL;
}

int posenc_model_group_of(const posenc_model *model, int64_t layer)
{
    for (int i = 0; model && i < model->info.group_count; i++) {
        const posenc_model_group *g = &model->groups[i];
        for (int64_t k = 0; !g->is_input && !g->is_all && k < g->layer_count; k++)
            if (g->layers[k] == layer)
                return i;
        if (g->is_all && !g->is_input && layer >= 0 && (!model->info.layers || layer < model->info.layers))
            return i;
    }
    return -1;
}

const posenc_fact *posenc_model_fact(const posenc_model_group *group, const char *name)
{
    for (int i = 0; group && name && i < group->fact_count; i++)
        if (!strcmp(group->facts[i].name, name))
            return &group->facts[i];
    return NULL;
}
