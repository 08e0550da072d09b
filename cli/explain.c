/* SPDX-License-Identifier: MIT */
/*
 * explain.c: posenc list rope --explain --config F: the formulas of a rotation, with a model's numbers
 *
 * A formula is written twice: as papers write it, then with this model's numbers; what follows from it stands
 * behind. The numbers are the facts of the model (posenc/files.h), each with the rule that gave it; the
 * frequencies themselves are asked of the library (posenc_rotary_pairs), so that what is said about them -
 * which pairs a schedule leaves alone, which it slows by the whole factor - is seen in them, not concluded
 * from the formula.
 *
 * One function per schedule, in a table: a schedule without a row is explained by its frequencies alone.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO_PI 6.283185307179586

typedef struct view {
    const cli_config         *config;
    const posenc_model_group *group;
    cli_problem               p;
    posenc_rotary_pair       *pairs, *late; /* of a short sequence, and of the whole context */
    int64_t                   M;
    double                    base, dim, factor, first;
} view;

/* ---------------------------------------------------------------- numbers and words --------- */

/* A fact as a number; NAN where the model has none. */
static double real(const view *v, const char *name)
{
    const posenc_fact *f = posenc_model_fact(v->group, name);
    if (!f || (f->kind != POSENC_FACT_REAL && f->kind != POSENC_FACT_INTEGER))
        return NAN;
    return f->kind == POSENC_FACT_REAL ? f->real : (double)f->integer;
}

static const char *word(const view *v, const char *name)
{
    const posenc_fact *f = posenc_model_fact(v->group, name);
    return f && f->kind == POSENC_FACT_WORD ? f->text : "";
}

static int is_set(const view *v, const char *name)
{
    const posenc_fact *f = posenc_model_fact(v->group, name);
    return f && f->kind == POSENC_FACT_FLAG && f->integer;
}

/* A setting of the model's SPEC as a number; NAN where it says nothing. */
static double setting(const view *v, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = v->group->spec; (at = strstr(at, name)) != NULL; at += n)
        if (at > v->group->spec && strchr("[,: ", at[-1]) && at[n] == '=')
            return strtod(at + n + 1, NULL);
    return NAN;
}

static void title(const char *text)
{
    printf("\n%s\n", text);
}

/* A line; where `fact` names one whose rule is told, that too. */
static void line(const view *v, const char *fact, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void line(const view *v, const char *fact, const char *format, ...)
{
    const posenc_fact *f = fact ? posenc_model_fact(v->group, fact) : NULL;
    va_list            list;
    va_start(list, format);
    fputs("  ", stdout);
    vprintf(format, list);
    va_end(list);
    if (f && f->rule && *f->rule)
        printf("   (%s: %s)", fact, f->rule);
    putchar('\n');
}

/* ---------------------------------------------------------------- pairs --------------------- */

/* "0-15, 40-63" of the pairs that `holds`; "none". */
typedef int pair_test(const view *v, int64_t m, double wanted);

static const char *ranges(const view *v, pair_test *holds, double wanted, char text[CLI_LAYERS_TEXT])
{
    size_t used = 0;
    snprintf(text, CLI_LAYERS_TEXT, "none");
    for (int64_t m = 0; m < v->M && used < CLI_LAYERS_TEXT - 24; m++) {
        int64_t end = m;
        if (!holds(v, m, wanted))
            continue;
        while (end + 1 < v->M && holds(v, end + 1, wanted))
            end++;
        used += (size_t)snprintf(text + used, CLI_LAYERS_TEXT - used, end > m ? "%s%lld-%lld" : "%s%lld",
                                 used ? ", " : "", (long long)m, (long long)end);
        m = end;
    }
    if (used >= CLI_LAYERS_TEXT - 24)
        snprintf(text + used, CLI_LAYERS_TEXT - used, ", ...");
    return text;
}

static double unscaled(const view *v, int64_t m)
{
    return pow(v->base, -2 * (double)m / v->dim);
}

static int is_near(double x, double y)
{
    return fabs(x - y) <= 1e-9 * fabs(y);
}

/* Is w'_m = w_m / wanted? */
static int is_divided(const view *v, int64_t m, double wanted)
{
    return is_near(v->pairs[m].w * wanted, unscaled(v, m));
}

static int is_between(const view *v, int64_t m, double factor)
{
    return !is_divided(v, m, 1) && !is_divided(v, m, factor);
}

static int follows(const view *v, int64_t m, double coordinate)
{
    return v->pairs[m].coordinate == (int)coordinate;
}

static int is_longer(const view *v, int64_t m, double tokens)
{
    return v->late[m].w > 0 && TWO_PI / v->late[m].w > tokens;
}

static int is_still(const view *v, int64_t m, double unused)
{
    (void)unused;
    return v->late[m].w == 0;
}

static int64_t count(const view *v, pair_test *holds, double wanted)
{
    int64_t n = 0;
    for (int64_t m = 0; m < v->M; m++)
        n += holds(v, m, wanted);
    return n;
}

/* ---------------------------------------------------------------- schedules ----------------- */

static void explain_regimes(const view *v)
{
    char kept[CLI_LAYERS_TEXT], between[CLI_LAYERS_TEXT], divided[CLI_LAYERS_TEXT];
    line(v, NULL, "pairs with w' = w: %s; between: %s; with w' = w / %g: %s", ranges(v, is_divided, 1, kept),
         ranges(v, is_between, v->factor, between), v->factor, ranges(v, is_divided, v->factor, divided));
}

static void explain_linear(const view *v)
{
    line(v, "factor", "w'_m = w_m / factor = w_m / %g", v->factor);
}

static void explain_ntk(const view *v)
{
    const double alpha = real(v, "alpha"), power = v->dim / (v->dim - 2);
    line(v, "alpha", "base' = base alpha^(dim / (dim - 2)) = %g * %g^(%g/%g) = %.6g", v->base, alpha, v->dim,
         v->dim - 2, v->base * pow(alpha, power));
    line(v, NULL, "w'_m = base'^(-2m/dim): w'_0 = w_0, w'_%lld = w_%lld / %g", (long long)v->M - 1,
         (long long)v->M - 1, alpha);
}

static void explain_dynamic(const view *v)
{
    const double max = real(v, "max_length"), power = v->dim / (v->dim - 2);
    line(v, "max_length", "L = the present length, at least max_length = %g", max);
    line(
        v, "factor",
        "base' = base (factor L / max_length - (factor - 1))^(dim / (dim - 2)) = %g (%g L / %g - %g)^(%g/%g)",
        v->base, v->factor, max, v->factor - 1, v->dim, v->dim - 2);
    line(v, NULL, "w'_m = base'^(-2m/dim); base' is %g up to %g tokens, %.6g at %g, %.6g at %g", v->base, max,
         v->base * pow(2 * v->factor - (v->factor - 1), power), 2 * max,
         v->base * pow(4 * v->factor - (v->factor - 1), power), 4 * max);
}

/* The index, as a real number, of the pair that turns so often within the first context. */
static double index_of(const view *v, double turns)
{
    return v->dim * log(v->first / (TWO_PI * turns)) / (2 * log(v->base));
}

static void explain_blend(const view *v)
{
    const double e = real(v, "extrapolation_factor");
    if (isnan(e)) {
        line(v, "factor",
             "w'_m = w_m (1 - ramp_m) + w_m / factor ramp_m = w_m (1 - ramp_m) + w_m / %g ramp_m", v->factor);
        return;
    }
    line(v, "extrapolation_factor", "a_m = extrapolation_factor (1 - ramp_m) = %g (1 - ramp_m): left alone",
         e);
    line(v, "factor", "w'_m = w_m a_m + w_m / factor (1 - a_m) = w_m a_m + w_m / %g (1 - a_m)", v->factor);
}

static void explain_yarn(const view *v)
{
    const double fast = real(v, "beta_fast"), slow = real(v, "beta_slow"), low = index_of(v, fast),
                 high      = index_of(v, slow);
    const int    truncated = is_set(v, "truncate");
    const double from      = fmax(truncated ? floor(low) : low, 0),
                 to        = fmin(truncated ? ceil(high) : high, v->dim - 1);
    line(v, "original_length",
         "c(r) = dim ln(original_length / (2 pi r)) / (2 ln base) = %g ln(%g / (2 pi r)) / %.6g: the pair "
         "that turns r times",
         v->dim, v->first, 2 * log(v->base));
    line(v, "truncate", "low = c(beta_fast) = c(%g) = %.6g%s, high = c(beta_slow) = c(%g) = %.6g%s", fast,
         low, truncated ? ", rounded down" : "", slow, high, truncated ? ", rounded up" : "");
    line(v, NULL, "ramp_m = clip((m - low) / (high - low), 0, 1) = clip((m - %.6g) / %.6g, 0, 1)", from,
         to == from ? 0.001 : to - from);
    explain_blend(v);
    explain_regimes(v);
}

static void explain_llama3(const view *v)
{
    const double low = real(v, "low_freq_factor"), high = real(v, "high_freq_factor");
    line(v, "original_length",
         "r_m = original_length w_m / (2 pi) = %g w_m / (2 pi): turns within the first context", v->first);
    if (high <= low) {
        line(v, "low_freq_factor",
             "high_freq_factor = %g is not above low_freq_factor = %g: no ramp, w'_m = w_m where r_m >= %g",
             high, low, low);
        line(v, "factor", "and w'_m = w_m / factor = w_m / %g where r_m is less", v->factor);
        explain_regimes(v);
        return;
    }
    line(v, NULL,
         "s_m = clip((r_m - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1) = clip((r_m - "
         "%g) / %g, 0, 1)",
         low, high - low);
    line(v, "factor", "w'_m = w_m ((1 - s_m) / factor + s_m) = w_m ((1 - s_m) / %g + s_m)", v->factor);
    explain_regimes(v);
}

static void explain_longrope(const view *v)
{
    line(v, "original_length",
         "w'_m = w_m / short_factor_m while the sequence has at most original_length = %g tokens", v->first);
    line(v, NULL, "w'_m = w_m / long_factor_m beyond, for all tokens, those before too");
    line(v, NULL, "divisors of pairs 0 and %lld: short %.6g and %.6g, long %.6g and %.6g",
         (long long)v->M - 1, unscaled(v, 0) / v->pairs[0].w, unscaled(v, v->M - 1) / v->pairs[v->M - 1].w,
         unscaled(v, 0) / v->late[0].w, unscaled(v, v->M - 1) / v->late[v->M - 1].w);
}

static void explain_proportional(const view *v)
{
    const int64_t turning = v->M - count(v, is_still, 0);
    line(v, NULL,
         "pairs span the whole head, and the first int(p dim / 2) = %lld of them turn: w'_m = w_m / factor "
         "= w_m / %g",
         (long long)turning, v->factor);
    line(v, NULL, "the other %lld have w'_m = 0 and pass", (long long)(v->M - turning));
}

static const struct {
    const char *schedule;
    void (*explain)(const view *v);
} schedules[] = {
    {"linear", explain_linear},
    {"ntk", explain_ntk},
    {"dynamic", explain_dynamic},
    {"yarn", explain_yarn},
    {"llama3", explain_llama3},
    {"longrope", explain_longrope},
    {"proportional", explain_proportional},
};

/* ---------------------------------------------------------------- the parts of the text ----- */

static void explain_shape(const view *v)
{
    const int64_t offset = (int64_t)real(v, "offset_dim"), head = v->group->dims.D, dim = (int64_t)v->dim;
    title("Which channels");
    line(v, "head_dim", "a head has %lld channels", (long long)head);
    line(v, "dim", "M = dim / 2 = %lld / 2 = %lld pairs", (long long)dim, (long long)v->M);
    if (offset)
        line(v, "offset_dim", "the first %lld channels pass unchanged", (long long)offset);
    if (head > offset + dim)
        line(v, NULL, "the last %lld channels pass unchanged", (long long)(head - offset - dim));
    line(v, "layout", "%s: pair m is channels %s of those that turn, so (%lld, %lld) to (%lld, %lld)",
         word(v, "layout"), !strcmp(word(v, "layout"), "half") ? "(m, m + M)" : "(2m, 2m + 1)",
         (long long)v->pairs[0].from[0], (long long)v->pairs[0].from[1],
         (long long)v->pairs[v->M - 1].from[0], (long long)v->pairs[v->M - 1].from[1]);
}

static void explain_axes(const view *v)
{
    char      text[CLI_LAYERS_TEXT];
    const int axes = (int)real(v, "axes");
    if (axes < 2)
        return;
    title("Which coordinate");
    line(v, "sections", "positions have %d coordinates, dealt out by axis_rule = %s", axes,
         word(v, "axis_rule"));
    for (int n = 0; n < axes; n++)
        line(v, NULL, "coordinate %d: pairs %s", n, ranges(v, follows, n, text));
}

static void explain_rotation(const view *v)
{
    const char *sign = !strcmp(word(v, "direction"), "inverse") ? "-" : "";
    title("What happens to a pair at position P");
    line(v, "direction", "a = %sP w'_m", sign);
    line(v, NULL, "(x, y) becomes magnitude (x cos a - y sin a, y cos a + x sin a)");
}

static void explain_frequencies(const view *v)
{
    const char *schedule = word(v, "schedule");
    title("How fast it turns");
    line(v, "base", "w_m = base^(-2m/dim) = %g^(-2m/%g): w_0 = 1, w_1 = %.6g, w_%lld = %.6g", v->base, v->dim,
         unscaled(v, 1), (long long)v->M - 1, unscaled(v, v->M - 1));
    line(v, "schedule", "schedule = %s%s", schedule, strcmp(schedule, "default") ? "" : ": w'_m = w_m");
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (!strcmp(schedules[i].schedule, schedule))
            schedules[i].explain(v);
    if (is_set(v, "freq_factors"))
        line(v, "freq_factors", "each w'_m is divided by its own factor: pair %lld by %.6g",
             (long long)v->M - 1, unscaled(v, v->M - 1) / v->pairs[v->M - 1].w);
}

static double g(double factor, double mu)
{
    return factor <= 1 ? 1 : 0.1 * mu * log(factor) + 1;
}

/* PhiMoE: two of them, by the length of the sequence. */
static void explain_two_magnitudes(const view *v, double near, double far)
{
    line(v, "magnitude", "magnitude = %g while the sequence has at most original_length = %g tokens", near,
         v->first);
    line(v, "magnitude_long", "magnitude = %g beyond, for all tokens, those before too", far);
    line(v, NULL,
         "queries and keys both have it, so the rotated part of a score grows by magnitude^2 = %.6g, "
         "beyond by %.6g",
         near * near, far * far);
}

static void explain_magnitude(const view *v)
{
    const double m = real(v, "magnitude"), given = setting(v, "attention_factor"), a = setting(v, "mscale"),
                 b     = setting(v, "mscale_all_dim");
    const int yarn     = !strcmp(word(v, "schedule"), "yarn"),
              longrope = !strcmp(word(v, "schedule"), "longrope");
    title("How long it becomes");
    if (!isnan(real(v, "magnitude_long"))) {
        explain_two_magnitudes(v, m, real(v, "magnitude_long"));
        return;
    }
    if (!isnan(given))
        line(v, "magnitude", "magnitude = attention_factor = %g", given);
    else if (yarn && a > 0 && b > 0)
        line(v, "magnitude",
             "magnitude = (0.1 mscale ln factor + 1) / (0.1 mscale_all_dim ln factor + 1) = %.6g / %.6g = "
             "%.6g",
             g(v->factor, a), g(v->factor, b), m);
    else if (yarn)
        line(v, "magnitude", "magnitude = 0.1 ln factor + 1 = 0.1 ln %g + 1 = %.6g", v->factor, m);
    else if (longrope && m > 1)
        line(v, "magnitude",
             "magnitude = sqrt(1 + ln factor / ln original_length) = sqrt(1 + ln %g / ln %g) = %.6g",
             v->factor, v->first, m);
    else
        line(v, "magnitude", "magnitude = %g", m);
    if (m != 1)
        line(v, NULL,
             "queries and keys both have it, so the rotated part of a score grows by magnitude^2 = %.6g",
             m * m);
}

static void explain_scores(const view *v)
{
    const double scale = real(v, "score_scale"), at = real(v, "temperature.scale"),
                 length = real(v, "temperature.length");
    title("What becomes of a score");
    if (isnan(scale))
        line(v, NULL, "the file does not tell the scale");
    else
        line(v, "score_scale", "q.k is multiplied by score_scale = %.6g", scale);
    if (*word(v, "temperature.rule"))
        line(v, "temperature.rule", "and the query at position P by 1 + %g ln(1 + floor(%s / %g))", at,
             strcmp(word(v, "temperature.rule"), "llama4") ? "P" : "(P + 1)", length);
}

static void explain_context(const view *v)
{
    const double  context = (double)v->config->info->max_positions;
    const int64_t still   = count(v, is_still, 0);
    int64_t       slowest = v->M - 1;
    while (slowest > 0 && v->late[slowest].w == 0)
        slowest--;
    title("Within the context");
    line(v, NULL, "wavelength of pair m = 2 pi / w'_m tokens: %.6g for pair 0, %.6g for pair %lld",
         TWO_PI / v->late[0].w, TWO_PI / v->late[slowest].w, (long long)slowest);
    if (context > 0)
        line(v, NULL, "%lld of %lld pairs never complete a turn within %g positions",
             (long long)count(v, is_longer, context), (long long)v->M, context);
    if (still)
        line(v, NULL, "%lld pairs do not turn at all", (long long)still);
}

/* ---------------------------------------------------------------- all ----------------------- */

static void make_pairs(view *v)
{
    cli_problem *p = &v->p;
    p->dims        = (posenc_dims){
               .B = 1, .H = 1, .G = 1, .Lq = 2, .Lk = 2, .D = v->group->dims.D, .Dv = v->group->dims.D};
    cli_encoding(p, v->group->spec, NULL);
    cli_plan(p, POSENC_FORWARD);
    cli_params(p, POSENC_F64);
    if (cli_stopped(p) || posenc_rotary_frequencies(p->plan, NULL, &v->M, NULL, &p->err))
        return;
    cli_said(p, cli_config_params(v->config, p));
    v->pairs           = cli_block(p, 2 * (size_t)v->M * sizeof *v->pairs);
    v->late            = v->pairs + v->M;
    const double whole = fmax((double)v->config->info->max_positions, 2 * v->first);
    if (!cli_stopped(p) && !posenc_rotary_pairs(p->plan, p->params, 1, v->pairs, p->work, &p->err))
        posenc_rotary_pairs(p->plan, p->params, isfinite(whole) ? whole : 1, v->late, p->work, &p->err);
}

static void print(const view *v)
{
    char layers[CLI_LAYERS_TEXT];
    printf("%s: %s, %s\n  %s\n", v->config->path,
           v->config->info->type ? v->config->info->type : "unknown type",
           cli_config_layers(layers, sizeof layers, v->group), v->group->spec);
    explain_shape(v);
    explain_axes(v);
    explain_rotation(v);
    explain_frequencies(v);
    explain_magnitude(v);
    explain_scores(v);
    explain_context(v);
}

int cli_explain(const cli_config *config)
{
    view v   = {.config = config, .group = config->group, .p = cli_problem_new(config->path)};
    v.base   = real(&v, "base");
    v.dim    = real(&v, "dim");
    v.factor = real(&v, "factor");
    v.first  = real(&v, "original_length");
    make_pairs(&v);
    if (!cli_stopped(&v.p))
        print(&v);
    return cli_problem_end(&v.p);
}
