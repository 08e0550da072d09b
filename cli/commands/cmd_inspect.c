/* SPDX-License-Identifier: MIT */
/*
 * cmd_inspect.c: posenc inspect: what a model's own file says about its positions
 *
 * posenc_model_read finds the encoding of every layer, each number with the rule that gave it; this command
 * prints these facts in words, or as posenc_model_json has them.
 *
 * Words           Per group of layers: its facts; the SPEC; and for a rotation what follows from its
 *                 frequencies at the model's context. Wavelengths are in tokens: a pair whose wavelength is
 *                 longer than the context never completes a turn there, and tells far from near only by its
 *                 sign. Turns are counted between a query and its keys, so within the window where layers
 *                 have one; errors come from the positions themselves, which go on to the context's end.
 * Rounded angles  The error is the largest of all pairs at the last positions of the context. float32:
 *                 frequency and product rounded to float32, as the common Python code has it; bf16: the
 *                 frequency rounded to bf16, the product to float32, as a model cast as a whole has it.
 */
#include "base/shared/compiler.h"
#include "base/shared/pi.h"
#include "cli/commands/config.h"
#include "cli/print/print.h"
#include "files/arrays/text.h"
#include "measure/measure.h"

#include <math.h>
#include <posenc/registry.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 24, VALUE = 24, TEXT = 64, LAST = 1000 };

/* ---------------------------------------------------------------- values -------------------- */

/* What follows returns how many characters it has printed. */
static int put_list(const posenc_fact *f)
{
    enum { MOST_SHOWN = 8 };
    int     n    = 0;
    int64_t some = 0, different = 0;
    double  most = 0;
    for (int64_t i = 0; i < f->count; i++)
        some += f->list[i] > 0, most = fmax(most, f->list[i]);
    for (int64_t i = 0; i < f->count; i++)
        different += f->list[i] > 0 && f->list[i] < most;
    if (f->count > MOST_SHOWN && different) /* of many layers */
        return printf("%.0f in %lld of %lld layers, fewer in %lld", most, (long long)(some - different),
                      (long long)f->count, (long long)different);
    if (f->count > MOST_SHOWN)
        return printf("%.0f in %lld of %lld layers", most, (long long)some, (long long)f->count);
    for (int64_t i = 0; i < f->count; i++)
        n += printf("%s%lld", i ? ", " : "", (long long)f->list[i]);
    return n;
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

static int print_json(const posenc_model *model, int group)
{
    char        *text;
    posenc_error err;
    if (posenc_model_json(&text, model, group, &err))
        return cli_error(&err);
    puts(text);
    posenc_model_json_free(text);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- in words ------------------ */

/* What there is not is said only where it might be expected. */
static int is_idle(const posenc_fact *f)
{
    return (f->kind == POSENC_FACT_NONE && !*f->rule) || !strcmp(f->name, "stack") ||
           (!strcmp(f->name, "offset_dim") && !f->integer) || (!strcmp(f->name, "axes") && f->integer == 1);
}

/* The names of a group's arrays that training made, or of those that the file holds; how many. */
static int list_arrays(const posenc_model_group *g, int trained, char *text, size_t size)
{
    posenc_encoding *e    = NULL;
    size_t           used = 0;
    int              n    = 0;
    *text                 = '\0';
    for (int i = 0; !trained && i < g->param_count && used < size; i++, n++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", n ? ", " : "", g->params[i].name);
    if (trained && !posenc_encoding_create(&e, g->spec, NULL, NULL))
        for (int i = 0; i < posenc_param_count(e) && used < size; i++)
            if (posenc_param_trainable(e, i))
                used += (size_t)snprintf(text + used, size - used, "%s%s", n++ ? ", " : "",
                                         posenc_param_name(e, i));
    posenc_encoding_free(e);
    return n;
}

/* What the SPEC does not say. */
static void put_arrays(const posenc_model_group *g)
{
    char names[4 * TEXT];
    for (int trained = 0; trained < 2; trained++)
        if (list_arrays(g, trained, names, sizeof names)) {
            const int at = printf("  %-*s", NAME, trained ? "TRAINED" : "ARRAYS");
            cli_wrap(names, strlen(names), at, at, cli_width());
        }
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
    if (posenc_model_fact(g, "sliding_window"))
        printf("  %-*swithout sliding_window, which is a mask\n", NAME, "");
    put_arrays(g);
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
PE_PRINTF(1, 2) static void say(const char *format, ...)
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

static void put_turns(const posenc_fact *w, int64_t reach, int64_t context)
{
    int64_t       still;
    const int64_t never      = cli_config_unfinished(w, reach, &still);
    char          none[TEXT] = "";
    if (still)
        snprintf(none, sizeof none, ", %lld of them are not rotated at all", (long long)still);
    say("%lld of %lld pairs never complete a full rotation within %s%lld positions%s", (long long)never,
        (long long)w->count, reach == context ? "" : "the window of ", (long long)reach, none);
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
static void put_wave(double w, int64_t reach, int is_last)
{
    char wavelength[TEXT] = "never", turns[TEXT] = "";
    if (fabs(w) >= 1e-20)
        snprintf(wavelength, TEXT, "%.9g", PE_TWO_PI / fabs(w));
    if (reach)
        snprintf(turns, TEXT, "  %.6g", fabs(w) * (double)reach / PE_TWO_PI);
    printf("  %-16.9g  %-*s%-*s", w, is_last && !reach ? 0 : 14, wavelength, is_last ? 0 : 14, turns);
}

static void put_frequencies(const posenc_fact *w, const posenc_fact *far, int64_t reach)
{
    printf("\n  %-5s  %-16s  %-*s%-*s%s\n", "PAIR", "FREQUENCY", far || reach ? 14 : 0, "WAVELENGTH",
           far ? 14 : 0, reach ? "  TURNS" : "", far ? "  LONG: FREQUENCY  WAVELENGTH      TURNS" : "");
    for (int64_t m = 0; m < w->count; m++) {
        printf("  %-5lld", (long long)m);
        put_wave(w->list[m], reach, !far);
        if (far)
            put_wave(far->list[m], reach, 1);
        putchar('\n');
    }
}

static void put_group(const posenc_model_group *g, int64_t context)
{
    const posenc_fact *w = posenc_model_fact(g, "inv_freq"), *slopes = posenc_model_fact(g, "slopes");
    const int64_t      reach = cli_config_reach(g, context);
    char               layers[4096];
    const char        *where = g->is_input ? "at the input" : cli_config_layers(layers, sizeof layers, g);
    putchar('\n');
    const int at = printf("%s%s%s: ", g->encoding, g->stack ? ", " : "", g->stack ? g->stack : "");
    cli_wrap(where, strlen(where), at, at + (int)strlen("layers "), cli_width());
    put_facts(g);
    if (w) {
        putchar('\n');
        put_magnitude(g);
        if (reach)
            put_turns(cli_config_frequencies(g, context), reach, context);
        if (context)
            put_errors(cli_config_frequencies(g, context), context);
        put_frequencies(w, posenc_model_fact(g, "inv_freq_long"), reach);
    }
    if (slopes)
        printf("\n  %-5s  %s\n", "HEAD", "SLOPE");
    for (int64_t h = 0; slopes && h < slopes->count; h++)
        printf("  %-5lld  %.9g\n", (long long)h, slopes->list[h]);
}

static void put_warnings(const posenc_model *model)
{
    const int n     = posenc_model_describe(model)->warning_count;
    int       width = NAME;
    if (!n)
        return;
    for (int i = 0; i < n; i++)
        width = (int)fmax(width, (double)strlen(posenc_model_warning_at(model, i)->code) + 2);
    puts("\nWarnings");
    for (int i = 0; i < n; i++) {
        const posenc_model_warning *w  = posenc_model_warning_at(model, i);
        const int                   at = printf("  %-*s", width, w->code);
        cli_wrap(w->sentence, strlen(w->sentence), at, at, cli_width());
    }
}

static int print_words(const posenc_model *model, int group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    const char              *type = info->type ? info->type : "no model_type";
    char                     text[4 * TEXT];
    for (const char *at = type; *at; at++) /* any text that a file holds */
        putchar((unsigned char)*at < 0x20 || *at == 0x7f ? '?' : *at);
    int n = snprintf(text, sizeof text, "(%s): %s", info->format, info->encoding);
    if (info->layers)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %lld layer%s", (long long)info->layers,
                      info->layers == 1 ? "" : "s");
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
    for (int i = 0; group < 0 && i < info->tower_count; i++) {
        const posenc_model *part = posenc_model_tower(model, i);
        printf("\nPart %s: ", posenc_model_describe(part)->tower);
        print_words(part, -1);
    }
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the command --------------- */

static const cli_option options[] = {
    {0, "layer", "N", "only the group of layers to which layer N belongs"},
    {0, "tower", "NAME", "only the part of that name, of a model that has several: encoder, decoder, vision"},
    {0, "arrays", "F.npz", "write the arrays that the SPEC needs, for attend, encode and rotate",
     .words = ".npz"},
    {0, "weights", "F",
     "where the trained ones of --arrays are: a .safetensors (FILE itself, if it is one), the index.json of "
     "a "
     "sharded one, or an .npz",
     .words = ".safetensors|.json|.npz"},
    {0, "json", NULL, "print every number as JSON, for programs"},
    {0, NULL, NULL, NULL},
};

/* The group that --layer and --tower name, or -1 for all. */
static int choose(const cli_args *args, const posenc_model *model, int *group)
{
    const posenc_model_info *info  = posenc_model_describe(model);
    const char              *tower = cli_value(args, "tower");
    int64_t                  layer;
    *group          = -1;
    const int given = cli_integer(args, "layer", 0, info->layers > 0 ? info->layers - 1 : INT64_MAX, &layer);
    for (int i = 0; tower && *group < 0 && i < info->group_count; i++)
        if (pe_text_is(posenc_model_group_at(model, i)->stack, tower))
            *group = i;
    if (given <= 0 || *group >= 0)
        return given < 0 ? CLI_USAGE : CLI_DONE;
    *group = posenc_model_group_of(model, layer);
    if (*group < 0)
        return cli_usage("inspect: --layer: layer %lld has no attention; choose another", (long long)layer);
    return CLI_DONE;
}

/* The arrays of the group, or of the only one that needs any. */
static int write_arrays(const cli_args *args, const posenc_model *model, int group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    const char              *from = cli_value(args, "weights"), *file = cli_at(args, 0);
    posenc_arrays            set = {0};
    posenc_error             err;
    int64_t                  layer = -1;
    int                      count = 0, is_trained = 0;
    char                     names[4 * TEXT];
    cli_integer(args, "layer", 0, INT64_MAX, &layer);
    for (int i = 0, one = group; i < info->group_count; i++) {
        const posenc_model_group *g       = posenc_model_group_at(model, i);
        const int                 trained = list_arrays(g, 1, names, sizeof names), held = g->param_count;
        if ((one >= 0 && i != one) || !(trained + held))
            continue;
        group      = i, count++;
        is_trained = trained > 0;
    }
    if (count > 1)
        return cli_usage(
            "inspect: --arrays: several parts of this model need arrays; choose one by --layer N or "
            "--tower NAME");
    if (!count)
        return cli_usage("inspect: --arrays: its SPEC needs no arrays");
    if (!from && pe_text_ends_with(file, ".safetensors"))
        from = file;
    if (is_trained && !from)
        return cli_usage("inspect: --arrays: the parameters of %s are trained; name the model's weights with "
                         "--weights F",
                         posenc_model_group_at(model, group)->spec);
    posenc_status status = posenc_model_params(&set, model, group, layer, from, &err);
    if (!status)
        status = posenc_arrays_write(&set, cli_value(args, "arrays"), &err);
    posenc_arrays_free(&set);
    return status ? cli_error(&err) : CLI_DONE;
}

static int run(const cli_args *args)
{
    posenc_error  err;
    posenc_model *model = NULL;
    int           group;
    if (args->count != 1)
        return cli_usage(
            "inspect: give one file: config.json, .gguf or .safetensors (- for standard input), not %d",
            args->count);
    if (posenc_model_read(&model, cli_at(args, 0), &err))
        return cli_say(err.status == POSENC_ERROR_MEMORY ? CLI_FAILED : CLI_USAGE, "%s", err.message);
    const posenc_model *part   = cli_config_part(model, cli_value(args, "tower"));
    int                 status = part ? choose(args, part, &group) : CLI_USAGE;
    if (status == CLI_DONE && cli_value(args, "arrays"))
        status = write_arrays(args, part, group);
    if (status == CLI_DONE)
        status = (cli_value(args, "json") ? print_json : print_words)(part, group);
    posenc_model_free(model);
    return status;
}

const cli_command cli_inspect = {
    .name     = "inspect",
    .summary  = "show which encoding a model was trained with, from its own file",
    .synopsis = "FILE [--layer N] [--tower NAME] [--json] [--arrays F.npz [--weights F]]",
    .details =
        "FILE is a config.json (Hugging Face, before and since transformers 5), a .gguf, or a "
        ".safetensors with its config.json in the same folder. What the file leaves out comes from the "
        "table of model types, by the rules of transformers 5.24; what has no clear meaning is "
        "refused, with the reason.\n\n"
        "For each kind of layer: the encoding, its numbers with the rule that gave each, the SPEC "
        "for the other commands; for a rotation every frequency and wavelength, how many pairs never "
        "complete a full rotation within the context (or the window, where layers have one), where the "
        "magnitude acts, and the largest error "
        "that angles in float32 and bf16 would make at the model's context. Then the warnings: what "
        "engines disagree about in this file.\n\n"
        "ARRAYS and TRAINED name what the SPEC does not say: numbers of the file, and parameters that "
        "training "
        "made. --arrays writes what the SPEC of the chosen layers or part does not say, under the names by "
        "which "
        "attend, "
        "encode and rotate read it: numbers of the file, such as longrope's factors, and trained parameters, "
        "found in the checkpoint by the names that models of this type give them.\n\n"
        "--json prints one object: model_type, encoding, groups of layers that are alike, context, "
        "warnings. Its numbers are in float64, never rounded to float32.",
    .options = options,
    .run     = run,
    .takes   = ".json|.gguf|.safetensors",
};
