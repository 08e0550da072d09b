/* SPDX-License-Identifier: MIT */
/*
 * inspect_json.c: a model as one JSON object
 *
 * The facts of a group are its members, in their order; a fact "a.b" is member b of the object a. Numbers
 * have the fewest digits that read back as they are, which jansson does not offer; texts are quoted by it.
 */
#include "inspect.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_text(const char *text)
{
    json_t *value  = text ? json_string(text) : NULL;
    char   *quoted = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    fputs(quoted ? quoted : "null", stdout);
    free(quoted);
    json_decref(value);
}

/* A real keeps a mark that it is one: 10000.0. */
static void put_real(double x)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    printf("%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void put_list(const posenc_fact *f)
{
    putchar('[');
    for (int64_t i = 0; i < f->count; i++) {
        fputs(i ? ", " : "", stdout);
        if (f->kind == POSENC_FACT_INTEGERS)
            printf("%lld", (long long)f->list[i]);
        else
            put_real(f->list[i]);
    }
    putchar(']');
}

static void put_words(const char *words)
{
    const char *between = "";
    putchar('[');
    while (*words) {
        const size_t n = strcspn(words, " ");
        printf("%s\"%.*s\"", between, (int)n, words);
        words += n + (words[n] == ' ');
        between = ", ";
    }
    putchar(']');
}

static void put_value(const posenc_fact *f)
{
    switch (f->kind) {
    case POSENC_FACT_NONE: fputs("null", stdout); return;
    case POSENC_FACT_FLAG: fputs(f->integer ? "true" : "false", stdout); return;
    case POSENC_FACT_INTEGER: printf("%lld", (long long)f->integer); return;
    case POSENC_FACT_REAL: put_real(f->real); return;
    case POSENC_FACT_WORD: put_text(f->text); return;
    case POSENC_FACT_WORDS: put_words(f->text); return;
    default: put_list(f); return;
    }
}

static void put_layers(const posenc_model_group *g)
{
    if (g->is_input || g->is_all) {
        printf("\"layers\": \"%s\"", g->is_input ? "input" : "all");
        return;
    }
    fputs("\"layers\": [", stdout);
    for (int64_t i = 0; i < g->layer_count; i++)
        printf("%s%lld", i ? ", " : "", (long long)g->layers[i]);
    putchar(']');
}

/* Length of the "a." of "a.b", 0 for a plain name. */
static size_t object_of(const posenc_fact *f)
{
    const char *dot = strchr(f->name, '.');
    return dot ? (size_t)(dot - f->name) : 0;
}

static int same_object(const posenc_fact *a, const posenc_fact *b)
{
    return object_of(a) == object_of(b) && !strncmp(a->name, b->name, object_of(a));
}

static void put_fact(const posenc_model_group *g, int i)
{
    const posenc_fact *f      = &g->facts[i];
    const size_t       n      = object_of(f);
    const int          opens  = n && (i == 0 || !same_object(f, &g->facts[i - 1]));
    const int          closes = n && (i == g->fact_count - 1 || !same_object(f, &g->facts[i + 1]));
    if (opens)
        printf(",\n      \"%.*s\": {", (int)n, f->name);
    else
        fputs(n ? ", " : ",\n      ", stdout);
    printf("\"%s\": ", f->name + (n ? n + 1 : 0));
    put_value(f);
    fputs(closes ? "}" : "", stdout);
}

static void put_group(const posenc_model_group *g)
{
    fputs("    {", stdout);
    put_layers(g);
    printf(",\n      \"encoding\": \"%s\"", g->encoding);
    for (int i = 0; i < g->fact_count; i++)
        put_fact(g, i);
    fputs("}", stdout);
}

static void put_count(const char *name, int64_t n)
{
    if (n)
        printf("\"%s\": %lld", name, (long long)n);
    else
        printf("\"%s\": null", name);
}

/* Codes, each once: they come sorted. */
static void put_warnings(const posenc_model *model)
{
    const char *last = "";
    fputs("  \"warnings\": [", stdout);
    for (int i = 0; i < posenc_model_describe(model)->warning_count; i++) {
        const char *code = posenc_model_warning_at(model, i)->code;
        if (strcmp(code, last) != 0)
            printf("%s\"%s\"", *last ? ", " : "", code);
        last = code;
    }
    puts("]");
}

int cli_inspect_json(const posenc_model *model, int group)
{
    const posenc_model_info *info    = posenc_model_describe(model);
    const char              *between = "";
    fputs("{\n  \"model_type\": ", stdout);
    put_text(info->type);
    printf(",\n  \"encoding\": \"%s\",\n  \"groups\": [", info->encoding);
    for (int i = 0; i < info->group_count; i++)
        if (group < 0 || i == group) {
            printf("%s\n", between);
            put_group(posenc_model_group_at(model, i));
            between = ",";
        }
    printf("],\n  \"context\": {");
    put_count("max_positions", info->max_positions);
    fputs(", ", stdout);
    put_count("original_length", info->original_length);
    puts("},");
    put_warnings(model);
    puts("}");
    return CLI_DONE;
}
