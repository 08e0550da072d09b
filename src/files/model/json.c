/* SPDX-License-Identifier: MIT */
/*
 * json.c: a model as JSON: what `posenc inspect --json` prints
 *
 * The facts of a group are its members, in their order; a fact "a.b" is member b of the object a. Numbers
 * have the fewest digits that read back as they are, which jansson does not offer; texts are quoted by it.
 */
#include "files/model/build.h"

#include <jansson.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- values -------------------- */

/* NULL prints null. */
static void put_text(FILE *to, const char *text)
{
    json_t *value  = text ? json_string(text) : NULL;
    char   *quoted = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    fputs(quoted ? quoted : "null", to);
    free(quoted);
    json_decref(value);
}

/* A real keeps a mark that it is one: 10000.0. */
static void put_real(FILE *to, double x)
{
    char text[PE_TEXT_REAL];
    pe_text_real(text, x);
    fprintf(to, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void put_words(FILE *to, const char *words)
{
    const char *between = "";
    fputc('[', to);
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        fprintf(to, "%s\"%.*s\"", n ? between : "", n ? (int)n : 0, words);
        between = n ? ", " : between;
    }
    fputc(']', to);
}

static void put_list(FILE *to, const posenc_fact *f)
{
    fputc('[', to);
    for (int64_t i = 0; i < f->count; i++) {
        fputs(i ? ", " : "", to);
        if (f->kind == POSENC_FACT_INTEGERS)
            fprintf(to, "%lld", (long long)f->list[i]);
        else
            put_real(to, f->list[i]);
    }
    fputc(']', to);
}

static void put_fact(FILE *to, const posenc_fact *f)
{
    switch (f->kind) {
    case POSENC_FACT_NONE: fputs("null", to); return;
    case POSENC_FACT_FLAG: fputs(f->integer ? "true" : "false", to); return;
    case POSENC_FACT_INTEGER: fprintf(to, "%lld", (long long)f->integer); return;
    case POSENC_FACT_REAL: put_real(to, f->real); return;
    case POSENC_FACT_WORD: put_text(to, f->text); return;
    case POSENC_FACT_WORDS: put_words(to, f->text); return;
    default: put_list(to, f);
    }
}

/* ---------------------------------------------------------------- groups -------------------- */

/* The facts; those called "a.b" follow each other and make one object a. */
static void put_members(FILE *to, const posenc_model_group *g)
{
    const char *object = "";
    size_t      open   = 0; /* length of its name, 0 where none is open */
    for (const posenc_fact *f = g->facts; f < g->facts + g->fact_count; f++) {
        const char  *dot  = strchr(f->name, '.');
        const size_t n    = dot ? (size_t)(dot - f->name) : 0;
        const int    goes = n && n == open && !strncmp(f->name, object, n);
        fputs(open && !goes ? "}" : "", to);
        fputs(goes ? ", " : ",\n      ", to);
        if (n && !goes)
            fprintf(to, "\"%.*s\": {", (int)n, f->name);
        fprintf(to, "\"%s\": ", dot ? dot + 1 : f->name);
        put_fact(to, f);
        object = f->name, open = n;
    }
    fputs(open ? "}" : "", to);
}

/* Names of the arrays that the SPEC needs: those that the file holds, or those that training made. */
static void put_arrays(FILE *to, const posenc_model_group *g, int trained)
{
    posenc_encoding *e       = NULL;
    const char      *between = "";
    fprintf(to, ",\n      \"%s\": [", trained ? "trained" : "arrays");
    for (int i = 0; !trained && i < g->param_count; i++, between = ", ")
        fprintf(to, "%s\"%s\"", between, g->params[i].name);
    if (trained && !posenc_encoding_create(&e, g->spec, NULL, NULL))
        for (int i = 0; i < posenc_param_count(e); i++)
            if (posenc_param_trainable(e, i))
                fprintf(to, "%s\"%s\"", between, posenc_param_name(e, i)), between = ", ";
    posenc_encoding_free(e);
    fputc(']', to);
}

static void put_group(FILE *to, const posenc_model_group *g)
{
    const char *where = g->is_input ? "input" : g->is_all ? "all" : NULL;
    fputs("    {\"layers\": ", to);
    if (where)
        put_text(to, where);
    for (int64_t i = 0; !where && i < g->layer_count; i++)
        fprintf(to, "%s%lld", i ? ", " : "[", (long long)g->layers[i]);
    fprintf(to, "%s,\n      \"encoding\": \"%s\"", where ? "" : g->layer_count ? "]" : "[]", g->encoding);
    put_members(to, g);
    fputs(",\n      \"spec\": ", to);
    put_text(to, g->spec);
    put_arrays(to, g, 0);
    put_arrays(to, g, 1);
    fputc('}', to);
}

static void put_count(FILE *to, const char *name, int64_t n)
{
    if (n)
        fprintf(to, "\"%s\": %lld", name, (long long)n);
    else
        fprintf(to, "\"%s\": null", name);
}

/* Codes, each once: they come sorted. */
static void put_codes(FILE *to, const posenc_model *model)
{
    const char *last = "";
    for (int i = 0; i < model->info.warning_count; i++) {
        const char *code = model->warnings[i].code;
        if (strcmp(code, last) != 0)
            fprintf(to, "%s\"%s\"", *last ? ", " : "", code);
        last = code;
    }
}

static void put_model(FILE *to, const posenc_model *model, int group)
{
    const posenc_model_info *info    = &model->info;
    const char              *between = "";
    fputs("{\n  \"model_type\": ", to);
    put_text(to, info->type);
    fprintf(to, ",\n  \"encoding\": \"%s\",\n  \"groups\": [", info->encoding);
    for (int i = 0; i < info->group_count; i++)
        if (group < 0 || i == group) {
            fprintf(to, "%s\n", between);
            put_group(to, &model->groups[i]);
            between = ",";
        }
    fputs("],\n  \"context\": {", to);
    put_count(to, "max_positions", info->max_positions);
    fputs(", ", to);
    put_count(to, "original_length", info->original_length);
    fputs("},\n  \"warnings\": [", to);
    put_codes(to, model);
    fputc(']', to);
    if (info->tower) {
        fputs(",\n  \"tower\": ", to);
        put_text(to, info->tower);
    }
    for (int i = 0; group < 0 && i < info->tower_count; i++) {
        fputs(i ? ", " : ",\n  \"towers\": [", to);
        put_model(to, model->towers[i], -1);
    }
    fputs(group < 0 && info->tower_count ? "]\n}" : "\n}", to);
}

/* ---------------------------------------------------------------- the function -------------- */

posenc_status posenc_model_json(char **text, const posenc_model *model, int group, posenc_error *err)
{
    const pe_origin origin = {"posenc_model_json", NULL};
    size_t          size;
    pe_file_begin();
    if (!text || !model)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin, "%s must not be NULL",
                            text ? "model" : "text");
    *text = NULL;
    if (group < -1 || group >= model->info.group_count)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin,
                            "group is %d; it must be -1 (all) or one of the model's %d groups", group,
                            model->info.group_count);
    FILE *to = open_memstream(text, &size);
    if (to)
        put_model(to, model, group);
    if (!to || ferror(to) | fclose(to) || pe_file_lost_memory()) {
        free(*text);
        *text = NULL;
        return pe_file_fail(err, POSENC_ERROR_MEMORY, origin, "not enough memory for the text");
    }
    return pe_file_done(err);
}

void posenc_model_json_free(char *text)
{
    free(text);
}
