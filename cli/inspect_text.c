/* SPDX-License-Identifier: MIT */
/*
 * inspect_text.c: a model in words, for people
 *
 * Per group of layers: its numbers, each with the rule that gave it; the SPEC; and for a rotation what
 * follows from its frequencies at the model's context. Wavelengths are in tokens: a pair whose wavelength is
 * longer than the context never completes a turn there, and tells far from near only by its sign.
 *
 * Rounded angles  The error is the largest of all pairs at the last THOUSAND positions of the context.
 *                 float32: frequency and product rounded to float32, as the common Python code has it; bf16:
 *                 the frequency rounded to bf16, the product to float32, as a model cast as a whole has it.
 */
#include "config.h"
#include "inspect.h"
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 100, NAME = 24, VALUE = 24, TEXT = 64, LAST = 1000 };

#define TAU 6.283185307179586

/* ---------------------------------------------------------------- layers -------------------- */

static void put_head(const posenc_model_group *g)
{
    char      text[4096];
    const int at =
        printf("\n%s%s%s: ", g->encoding, g->stack ? ", " : "", g->stack ? g->stack : "") - (int)strlen("\n");
    const char *where = g->is_input ? "at the input" : cli_config_layers(text, sizeof text, g);
    cli_wrap(where, strlen(where), at, at + (int)strlen("layers "), WIDTH);
}

/* ---------------------------------------------------------------- facts --------------------- */

static void integers_text(char text[TEXT], const posenc_fact *f)
{
    int used = 0;
    for (int64_t i = 0; i < f->count && used < TEXT - 16; i++)
        used += snprintf(text + used, TEXT - (size_t)used, "%s%lld", i ? ", " : "", (long long)f->list[i]);
}

static void value_text(char text[TEXT], const posenc_fact *f)
{
    *text = '\0';
    switch (f->kind) {
    case POSENC_FACT_NONE: snprintf(text, TEXT, "none"); return;
    case POSENC_FACT_FLAG: snprintf(text, TEXT, f->integer ? "yes" : "no"); return;
    case POSENC_FACT_INTEGER: snprintf(text, TEXT, "%lld", (long long)f->integer); return;
    case POSENC_FACT_REAL: snprintf(text, TEXT, "%.9g", f->real); return;
    case POSENC_FACT_WORD:
    case POSENC_FACT_WORDS: snprintf(text, TEXT, "%s", f->text); return;
    case POSENC_FACT_INTEGERS: integers_text(text, f); return;
    case POSENC_FACT_REALS: snprintf(text, TEXT, "%lld numbers, below", (long long)f->count); return;
    }
}

/* What there is not is said only where it might be expected. */
static int is_idle(const posenc_fact *f)
{
    return (f->kind == POSENC_FACT_NONE && !*f->rule) || !strcmp(f->name, "stack") ||
           (!strcmp(f->name, "offset_dim") && !f->integer) || (!strcmp(f->name, "axes") && f->integer == 1);
}

static void put_facts(const posenc_model_group *g)
{
    char text[TEXT];
    for (int i = 0; i < g->fact_count; i++) {
        const posenc_fact *f = &g->facts[i];
        if (is_idle(f))
            continue;
        value_text(text, f);
        printf("  %-*s%-*s%s%s\n", NAME, f->name, *f->rule ? VALUE : 0, text, *f->rule ? " " : "", f->rule);
    }
    const int at = printf("  %-*s", NAME, "SPEC");
    cli_wrap(g->spec, strlen(g->spec), at, at, WIDTH);
}

/* ---------------------------------------------------------------- what follows -------------- */

static double to_bf16(double x)
{
    const float single = (float)x;
    uint32_t    bits;
    float       rounded;
    memcpy(&bits, &single, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u; /* to nearest, ties to even */
    memcpy(&rounded, &bits, sizeof rounded);
    return (double)rounded;
}

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

static void put_errors(const posenc_fact *w, int64_t context)
{
    int64_t      pair, half_pair;
    const double single = worst_angle(w, context, to_f32, &pair),
                 half   = worst_angle(w, context, to_bf16, &half_pair);
    printf("  angles in float32 would be off by up to %.2g rad at %lld positions (pair %lld), in bf16 by "
           "%.2g (pair %lld)\n",
           single, (long long)context, (long long)pair, half, (long long)half_pair);
}

static void put_turns(const posenc_fact *w, int64_t context)
{
    int64_t never = 0, still = 0;
    for (int64_t m = 0; m < w->count; m++) {
        still += fabs(w->list[m]) < 1e-20;
        never += fabs(w->list[m]) * (double)context < TAU;
    }
    printf("  %lld of %lld pairs never complete a turn within %lld positions", (long long)never,
           (long long)w->count, (long long)context);
    if (still)
        printf(", %lld of them do not turn at all", (long long)still);
    putchar('\n');
}

static void put_magnitude(const posenc_model_group *g)
{
    const posenc_fact *m = posenc_model_fact(g, "magnitude"), *s = posenc_model_fact(g, "score_scale"),
                      *far   = posenc_model_fact(g, "magnitude_long"),
                      *first = posenc_model_fact(g, "original_length");
    if (m && far && first)
        printf("  the magnitude acts on cosine and sine: up to %lld tokens q and k are multiplied by %.6g, "
               "their scores by %.6g; beyond by %.6g and %.6g\n",
               (long long)first->integer, m->real, m->real * m->real, far->real, far->real * far->real);
    else if (m && m->real != 1)
        printf(
            "  the magnitude acts on cosine and sine: q and k are multiplied by %.6g, their scores by %.6g\n",
            m->real, m->real * m->real);
    else
        puts("  the magnitude is 1: the rotation keeps lengths");
    const posenc_fact *d     = posenc_model_fact(g, "head_dim");
    const double       extra = s && d && s->kind == POSENC_FACT_REAL ? s->real * sqrt((double)d->integer) : 1;
    if (fabs(extra - 1) > 1e-12)
        printf("  the scores are scaled by %.6g, which is %.6g times 1 / sqrt(%lld)\n", s->real, extra,
               (long long)d->integer);
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

static void put_slopes(const posenc_fact *slopes)
{
    printf("\n  %-5s  %s\n", "HEAD", "SLOPE");
    for (int64_t h = 0; h < slopes->count; h++)
        printf("  %-5lld  %.9g\n", (long long)h, slopes->list[h]);
}

static void put_group(const posenc_model_group *g, int64_t context)
{
    const posenc_fact *w = posenc_model_fact(g, "inv_freq"), *slopes = posenc_model_fact(g, "slopes");
    put_head(g);
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
        put_slopes(slopes);
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
        cli_wrap(w->sentence, strlen(w->sentence), at, at, WIDTH);
    }
}

/* A type is any text that the file holds. */
static void put_name(const char *text)
{
    for (; text && *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

int cli_inspect_text(const posenc_model *model, int group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    put_name(info->type ? info->type : "no model_type");
    printf(" (%s): %s", info->format, info->encoding);
    if (info->layers)
        printf(", %lld layers", (long long)info->layers);
    if (info->max_positions)
        printf(", up to %lld positions", (long long)info->max_positions);
    if (info->original_length)
        printf(", trained at %lld first", (long long)info->original_length);
    putchar('\n');
    for (int i = 0; i < info->group_count; i++)
        if (group < 0 || i == group)
            put_group(posenc_model_group_at(model, i), info->max_positions);
    put_warnings(model);
    return CLI_DONE;
}
