/* SPDX-License-Identifier: MIT */
/*
 * cmd_inspect.c: posenc inspect: what a model's own file says about its positions
 *
 * posenc_model_read finds the encoding of every layer, each number with the rule that gave it; this command
 * prints these facts, with --json or in words.
 *
 * JSON            The facts of a group are its members, in their order; a fact "a.b" is member b of the
 *                 object a. Numbers have the fewest digits that read back as they are, which jansson does
 *                 not offer; texts are quoted by it.
 * Words           Per group of layers: its facts; the SPEC; and for a rotation what follows from its
 *                 frequencies at the model's context. Wavelengths are in tokens: a pair whose wavelength is
 *                 longer than the context never completes a turn there, and tells far from near only by its
 *                 sign.
 * Rounded angles  The error is the largest of all pairs at the last positions of the context. float32:
 *                 frequency and product rounded to float32, as the common Python code has it; bf16: the
 *                 frequency rounded to bf16, the product to float32, as a model cast as a whole has it.
 */
#include "cli/commands/config.h"
#include "cli/print/print.h"
#include "files/arrays/text.h"
#include "measure/measure.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 24, VALUE = 24, TEXT = 64, LAST = 1000 };

#define TAU 6.283185307179586

/* ---------------------------------------------------------------- values -------------------- */

/* Takes the value over; NULL prints null. */
static void put_value(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    fputs(text ? text : "null", stdout);
    free(text);
    json_decref(value);
}

/* What follows returns how many characters it has printed. A real keeps a mark that it is one: 10000.0. */
static int put_real(double x)
{
    char text[PE_TEXT_REAL];
    pe_text_real(text, x);
    return printf("%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static int put_list(const posenc_fact *f)
{
    int n = 0;
    for (int64_t i = 0; i < f->count; i++) {
        n += printf("%s", i ? ", " : "");
        n += f->kind == POSENC_FACT_INTEGERS ? printf("%lld", (long long)f->list[i]) : put_real(f->list[i]);
    }
    return n;
}

static void put_json(const posenc_fact *f)
{
    switch (f->kind) {
    case POSENC_FACT_NONE: printf("null"); return;
    case POSENC_FACT_FLAG: printf(f->integer ? "true" : "false"); return;
    case POSENC_FACT_INTEGER: printf("%lld", (long long)f->integer); return;
    case POSENC_FACT_REAL: put_real(f->real); return;
    case POSENC_FACT_WORD: put_value(json_string(f->text)); return;
    case POSENC_FACT_WORDS: put_value(cli_json_words(f->text, " ")); return;
    default: break;
    }
    putchar('[');
    put_list(f);
    putchar(']');
}

static int put_plain(const posenc_fact *f)
{
    switch (f->kind) {
    case POSENC_FACT_NONE: return printf("none");
    case POSENC_FACT_FLAG: return printf(f->integer ? "yes" : "no");
    case POSENC_FACT_INTEGER: return printf("%lld", (long long)f->integer);
    case POSENC_FACT_REAL: return printf("%.9g", f->real);
    case POSENC_FACT_INTEGERS: return put_list(f);
    case POSENC_FACT_REALS: return printf("%lld numbers, below", (long long)f->count);
    default: return printf("%s", f->text);
    }
}

/* ---------------------------------------------------------------- as JSON ------------------- */

/* The facts; those called "a.b" follow each other and make one object a. */
static void put_members(const posenc_model_group *g)
{
    const char *object = "";
    size_t      open   = 0; /* length of its name, 0 where none is open */
    for (const posenc_fact *f = g->facts; f < g->facts + g->fact_count; f++) {
        const char  *dot  = strchr(f->name, '.');
        const size_t n    = dot ? (size_t)(dot - f->name) : 0;
        const int    goes = n && n == open && !strncmp(f->name, object, n);
        fputs(open && !goes ? "}" : "", stdout);
        fputs(goes ? ", " : ",\n      ", stdout);
        if (n && !goes)
            printf("\"%.*s\": {", (int)n, f->name);
        printf("\"%s\": ", dot ? dot + 1 : f->name);
        put_json(f);
        object = f->name, open = n;
    }
    fputs(open ? "}" : "", stdout);
}

static void put_object(const posenc_model_group *g)
{
    const char *where = g->is_input ? "input" : g->is_all ? "all" : NULL;
    fputs("    {\"layers\": ", stdout);
    if (where)
        put_value(json_string(where));
    for (int64_t i = 0; !where && i < g->layer_count; i++)
        printf("%s%lld", i ? ", " : "[", (long long)g->layers[i]);
    printf("%s,\n      \"encoding\": \"%s\"", where ? "" : g->layer_count ? "]" : "[]", g->encoding);
    put_members(g);
    putchar('}');
}

static void put_count(const char *name, int64_t n)
{
    printf(n ? "\"%s\": %lld" : "\"%s\": null", name, (long long)n);
}

static void print_json(const posenc_model *model, int group)
{
    const posenc_model_info *info    = posenc_model_describe(model);
    const char              *between = "", *last = "";
    fputs("{\n  \"model_type\": ", stdout);
    put_value(json_string(info->type));
    printf(",\n  \"encoding\": \"%s\",\n  \"groups\": [", info->encoding);
    for (int i = 0; i < info->group_count; i++)
        if (group < 0 || i == group) {
            printf("%s\n", between);
            put_object(posenc_model_group_at(model, i));
            between = ",";
        }
    printf("],\n  \"context\": {");
    put_count("max_positions", info->max_positions);
    fputs(", ", stdout);
    put_count("original_length", info->original_length);
    fputs("},\n  \"warnings\": [", stdout);
    for (int i = 0; i < info->warning_count; i++) { /* codes, each once: they come sorted */
        const char *code = posenc_model_warning_at(model, i)->code;
        if (strcmp(code, last) != 0)
            printf("%s\"%s\"", *last ? ", " : "", code);
        last = code;
    }
    puts("]\n}");
}

/* ---------------------------------------------------------------- in words ------------------ */

/* What there is not is said only where it might be expected. */
static int is_idle(const posenc_fact *f)
{
    return (f->kind == POSENC_FACT_NONE && !*f->rule) || !strcmp(f->name, "stack") ||
           (!strcmp(f->name, "offset_dim") && !f->integer) || (!strcmp(f->name, "axes") && f->integer == 1);
}

static void put_facts(const posenc_model_group *g)
{
    for (const posenc_fact *f = g->facts; f < g->facts + g->fact_count; f++) {
        if (is_idle(f))
            continue;
        printf("  %-*s", NAME, f->name);
        const int n = put_plain(f), blanks = n < VALUE ? VALUE - n + 1 : 1, at = 2 + NAME + n + blanks;
        printf("%*s", *f->rule ? blanks : 0, "");
        if (*f->rule)
            cli_wrap(f->rule, strlen(f->rule), at, 2 + NAME + VALUE + 1, cli_width());
        else
            putchar('\n');
    }
    const int at = printf("  %-*s", NAME, "SPEC");
    cli_wrap(g->spec, strlen(g->spec), at, at, cli_width());
}

/* ---------------------------------------------------------------- what follows -------------- */

static double to_f32(double x)
{
    return (double)(float)x;
}

/* The largest error of rounded angles, and of which pair. */
static double worst_angle(const posenc_fact *w, int64_t context, double (*round)(double), int64_t *pair)
{
    double worst = 0;
    *pair        = 0;
    for (int64_t m = 0; m < w->count; m++)
        for (int64_t p = context > LAST ? context - LAST : 0; p < context; p++) {
            const double angle = (double)((float)p * (float)round(w->list[m]));
            const double error = fabs(angle - (double)p * w->list[m]);
            if (error > worst)
                worst = error, *pair = m;
        }
    return worst;
}

/* A sentence of what follows, in lines that fit. */
static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    char    text[4 * TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cli_wrap(text, strlen(text), printf("  "), 2, cli_width());
}

static void put_errors(const posenc_fact *w, int64_t context)
{
    int64_t      pair, half_pair;
    const double single = worst_angle(w, context, to_f32, &pair),
                 half   = worst_angle(w, context, pe_uniqueness_round_bf16, &half_pair);
    say("angles in float32 would be off by up to %.2g rad at %lld positions (pair %lld), in bf16 by %.2g "
        "(pair %lld)",
        single, (long long)context, (long long)pair, half, (long long)half_pair);
}

static void put_turns(const posenc_fact *w, int64_t context)
{
    int64_t never = 0, still = 0;
    for (int64_t m = 0; m < w->count; m++) {
        still += fabs(w->list[m]) < 1e-20;
        never += fabs(w->list[m]) * (double)context < TAU;
    }
    char none[TEXT] = "";
    if (still)
        snprintf(none, sizeof none, ", %lld of them are not rotated at all", (long long)still);
    say("%lld of %lld pairs never complete a full rotation within %lld positions%s", (long long)never,
        (long long)w->count, (long long)context, none);
}

static void put_magnitude(const posenc_model_group *g)
{
    const double m = cli_config_fact(g, "magnitude"), far = cli_config_fact(g, "magnitude_long"),
                 first = cli_config_fact(g, "original_length"), scale = cli_config_fact(g, "score_scale"),
                 width = cli_config_fact(g, "head_dim"), extra = scale * sqrt(width);
    if (!isnan(far) && !isnan(first))
        say("the magnitude acts on cosine and sine: up to %.0f tokens q and k are multiplied by %.6g, their "
            "scores by %.6g; beyond by %.6g and %.6g",
            first, m, m * m, far, far * far);
    else if (m != 1)
        say("the magnitude acts on cosine and sine: q and k are multiplied by %.6g, their scores by %.6g", m,
            m * m);
    else
        say("the magnitude is 1: the rotation preserves lengths");
    if (fabs(extra - 1) > 1e-12)
        say("the scores are scaled by %.6g, which is %.6g times 1 / sqrt(%.0f)", scale, extra, width);
}

/* ---------------------------------------------------------------- the tables ---------------- */

/* Frequency, wavelength and turns; the last column of a line has no width. */
static void put_wave(double w, int64_t context, int is_last)
{
    char wavelength[TEXT] = "never", turns[TEXT] = "";
    if (fabs(w) >= 1e-20)
        snprintf(wavelength, TEXT, "%.9g", TAU / fabs(w));
    if (context)
        snprintf(turns, TEXT, "  %.6g", fabs(w) * (double)context / TAU);
    printf("  %-16.9g  %-*s%-*s", w, is_last && !context ? 0 : 14, wavelength, is_last ? 0 : 14, turns);
}

static void put_frequencies(const posenc_fact *w, const posenc_fact *far, int64_t context)
{
    printf("\n  %-5s  %-16s  %-*s%-*s%s\n", "PAIR", "FREQUENCY", far || context ? 14 : 0, "WAVELENGTH",
           far ? 14 : 0, context ? "  TURNS" : "", far ? "  LONG: FREQUENCY  WAVELENGTH      TURNS" : "");
    for (int64_t m = 0; m < w->count; m++) {
        printf("  %-5lld", (long long)m);
        put_wave(w->list[m], context, !far);
        if (far)
            put_wave(far->list[m], context, 1);
        putchar('\n');
    }
}

static void put_group(const posenc_model_group *g, int64_t context)
{
    const posenc_fact *w = posenc_model_fact(g, "inv_freq"), *slopes = posenc_model_fact(g, "slopes");
    char               layers[4096];
    const char        *where = g->is_input ? "at the input" : cli_config_layers(layers, sizeof layers, g);
    putchar('\n');
    const int at = printf("%s%s%s: ", g->encoding, g->stack ? ", " : "", g->stack ? g->stack : "");
    cli_wrap(where, strlen(where), at, at + (int)strlen("layers "), cli_width());
    put_facts(g);
    if (w) {
        putchar('\n');
        put_magnitude(g);
        if (context) {
            put_turns(w, context);
            put_errors(w, context);
        }
        put_frequencies(w, posenc_model_fact(g, "inv_freq_long"), context);
    }
    if (slopes)
        printf("\n  %-5s  %s\n", "HEAD", "SLOPE");
    for (int64_t h = 0; slopes && h < slopes->count; h++)
        printf("  %-5lld  %.9g\n", (long long)h, slopes->list[h]);
}

static void put_warnings(const posenc_model *model)
{
    const int n = posenc_model_describe(model)->warning_count;
    if (!n)
        return;
    puts("\nWarnings");
    for (int i = 0; i < n; i++) {
        const posenc_model_warning *w  = posenc_model_warning_at(model, i);
        const int                   at = printf("  %-*s", NAME, w->code);
        cli_wrap(w->sentence, strlen(w->sentence), at, at, cli_width());
    }
}

static void print_words(const posenc_model *model, int group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    const char              *type = info->type ? info->type : "no model_type";
    char                     text[4 * TEXT];
    for (const char *at = type; *at; at++) /* any text that a file holds */
        putchar((unsigned char)*at < 0x20 || *at == 0x7f ? '?' : *at);
    int n = snprintf(text, sizeof text, "(%s): %s", info->format, info->encoding);
    if (info->layers)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %lld layers", (long long)info->layers);
    if (info->max_positions)
        n += snprintf(text + n, sizeof text - (size_t)n, ", up to %lld positions",
                      (long long)info->max_positions);
    if (info->original_length)
        snprintf(text + n, sizeof text - (size_t)n, ", first trained at %lld",
                 (long long)info->original_length);
    putchar(' ');
    cli_wrap(text, strlen(text), (int)strlen(type) + 1, 2, cli_width());
    for (int i = 0; i < info->group_count; i++)
        if (group < 0 || i == group)
            put_group(posenc_model_group_at(model, i), info->max_positions);
    put_warnings(model);
}

/* ---------------------------------------------------------------- the command --------------- */

static const cli_option options[] = {
    {0, "layer", "N", "only the group of layers to which layer N belongs"},
    {0, "json", NULL, "print every number as JSON, for programs"},
    {0, NULL, NULL, NULL},
};

/* The group that --layer names, or -1 for all. */
static int choose(const cli_args *args, const posenc_model *model, int *group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    int64_t                  layer;
    *group          = -1;
    const int given = cli_integer(args, "layer", 0, info->layers > 0 ? info->layers - 1 : INT64_MAX, &layer);
    if (given <= 0)
        return given < 0 ? CLI_USAGE : CLI_DONE;
    *group = posenc_model_group_of(model, layer);
    if (*group < 0)
        return cli_usage("inspect: --layer: layer %lld has no attention; choose another", (long long)layer);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    posenc_error  err;
    posenc_model *model;
    int           group;
    if (args->count != 1)
        return cli_usage(
            "inspect: give one file: config.json, .gguf or .safetensors (- for standard input), not %d",
            args->count);
    if (posenc_model_read(&model, cli_at(args, 0), &err))
        return cli_say(err.status == POSENC_ERROR_MEMORY ? CLI_FAILED : CLI_USAGE, "%s", err.message);
    int status = choose(args, model, &group);
    if (status == CLI_DONE)
        (cli_value(args, "json") ? print_json : print_words)(model, group);
    posenc_model_free(model);
    return status;
}

const cli_command cli_inspect = {
    .name     = "inspect",
    .summary  = "show which encoding a model was trained with, from its own file",
    .synopsis = "FILE [--layer N] [--json]",
    .details =
        "FILE is a config.json (Hugging Face, before and since transformers 5), a .gguf, or a "
        ".safetensors with its config.json in the same folder. What the file leaves out comes from the "
        "table of model types, by the rules of transformers 5.16; what has no clear meaning is "
        "refused, with the reason.\n\n"
        "For each kind of layer: the encoding, its numbers with the rule that gave each, the SPEC "
        "for the other commands; for a rotation every frequency and wavelength, how many pairs never "
        "complete a full rotation within the context, where the magnitude acts, and the largest error "
        "that angles in float32 and bf16 would make at the model's context. Then the warnings: what "
        "engines disagree about in this file.\n\n"
        "--json prints one object: model_type, encoding, groups of layers that are alike, context, "
        "warnings. Its numbers are in float64, never rounded to float32.",
    .options = options,
    .run     = run,
    .takes   = ".json|.gguf|.safetensors",
};
