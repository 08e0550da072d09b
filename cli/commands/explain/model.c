/* SPDX-License-Identifier: MIT */
/*
 * model.c: posenc explain --config F: the formulas of a rotation, with a model's numbers
 *
 * A formula is written twice: as papers write it, then with this model's numbers; what follows from it comes
 * after. They are the rows of a table, and a name in braces is a number: a fact of the model (posenc/files.h;
 * the rule that gave it ends the line) or one that follows from facts. The frequencies themselves are asked
 * of the library (posenc_rotary_pairs), so that what is said about them - which pairs a schedule leaves
 * unchanged, which it slows by the whole factor - is seen in them, not concluded from the formula.
 */
#include "base/shared/pi.h"
#include "cli/commands/explain/explain.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 80, MOST_TEXTS = 8 };

/* What follows from the facts: a text, or a number; a condition of rows is one that is not 0. */
typedef struct named_value {
    const char *name;
    double      x;
    const char *text;
} named_value;

typedef struct view {
    const cli_config         *config;
    const posenc_model_group *group;
    pe_calc                   p;
    posenc_rotary_pair       *pairs, *late; /* of a short sequence, and of the whole context */
    int                      *marks;        /* of the pairs: bits */
    int64_t                   M;
    double                    base, dim, factor;
    named_value               values[MOST_VALUES];
    int                       value_count, text_count;
    char                      texts[MOST_TEXTS][CLI_LAYERS_TEXT];
} view;

/* ---------------------------------------------------------------- the table ----------------- */

// clang-format off
static const struct {
    const char *when; /* the value that must not be 0; NULL: always */
    const char *fact; /* whose rule is printed */
    const char *text; /* one that begins with a line end is a title */
} sentences[] = {
    {NULL, NULL, "\nWhich channels"},
    {NULL, "head_dim", "a head has {head} channels"},
    {NULL, "dim", "M = dim / 2 = {dim} / 2 = {M} pairs"},
    {"offset_dim", "offset_dim", "the first {offset_dim} channels are unchanged"},
    {"rest", NULL, "the last {rest} channels are unchanged"},
    {NULL, "layout",
     "{layout}: pair m is channels {channels} of those that are rotated, so ({from 0}, {to 0}) to ({from "
     "end}, {to end})"},

    {"pairs 0", NULL, "\nWhich coordinate"},
    {"pairs 0", "sections", "positions have {axes} coordinates, dealt out by axis_rule = {axis_rule}"},
    {"pairs 0", NULL, "coordinate 0: pairs {pairs 0}"},
    {"pairs 1", NULL, "coordinate 1: pairs {pairs 1}"},
    {"pairs 2", NULL, "coordinate 2: pairs {pairs 2}"},
    {"pairs 3", NULL, "coordinate 3: pairs {pairs 3}"},

    {NULL, NULL, "\nWhat happens to a pair at position P"},
    {NULL, "direction", "a = {sign}P w'_m"},
    {NULL, NULL, "(x, y) becomes magnitude (x cos a - y sin a, y cos a + x sin a)"},

    {NULL, NULL, "\nHow fast it rotates"},
    {NULL, "base", "w_m = base^(-2m/dim) = {base}^(-2m/{dim}): w_0 = 1, w_1 = {w 1}, w_{end} = {w end}"},
    {NULL, "schedule", "schedule = {schedule}{nothing more}"},
    {"linear", "factor", "w'_m = w_m / factor = w_m / {factor}"},
    {"ntk", "alpha", "base' = base alpha^(dim / (dim - 2)) = {base} * {alpha}^({dim}/{dim - 2}) = {base'}"},
    {"ntk", NULL, "w'_m = base'^(-2m/dim): w'_0 = w_0, w'_{end} = w_{end} / {alpha}"},
    {"dynamic", "max_length", "L = the present length, at least max_length = {max_length}"},
    {"dynamic", "factor",
     "base' = base (factor L / max_length - (factor - 1))^(dim / (dim - 2)) = {base} ({factor} L / "
     "{max_length} - {factor - 1})^({dim}/{dim - 2})"},
    {"dynamic", NULL,
     "w'_m = base'^(-2m/dim); base' is {base} up to {max_length} tokens, {base' at 2} at {2 max}, {base' "
     "at 4} at {4 max}"},
    {"yarn", "original_length",
     "c(r) = dim ln(original_length / (2 pi r)) / (2 ln base) = {dim} ln({original_length} / (2 pi r)) / "
     "{2 ln base}: the pair that rotates r times"},
    {"yarn", "truncate",
     "low = c(beta_fast) = c({beta_fast}) = {low}{rounded down}, high = c(beta_slow) = c({beta_slow}) = "
     "{high}{rounded up}"},
    {"yarn", NULL,
     "ramp_m = clip((m - low) / (high - low), 0, 1) = clip((m - {ramp begins}) / {ramp's width}, 0, 1)"},
    {"plain ramp", "factor",
     "w'_m = w_m (1 - ramp_m) + w_m / factor ramp_m = w_m (1 - ramp_m) + w_m / {factor} ramp_m"},
    {"extrapolation_factor", "extrapolation_factor",
     "a_m = extrapolation_factor (1 - ramp_m) = {extrapolation_factor} (1 - ramp_m): the unscaled part"},
    {"extrapolation_factor", "factor",
     "w'_m = w_m a_m + w_m / factor (1 - a_m) = w_m a_m + w_m / {factor} (1 - a_m)"},
    {"llama3", "original_length",
     "r_m = original_length w_m / (2 pi) = {original_length} w_m / (2 pi): full rotations within the first "
     "context"},
    {"step", "low_freq_factor",
     "high_freq_factor = {high_freq_factor} is not above low_freq_factor = {low_freq_factor}: a step, "
     "w'_m = w_m where r_m >= {low_freq_factor}"},
    {"step", "factor", "and w'_m = w_m / factor = w_m / {factor} where r_m is less"},
    {"bands", NULL,
     "s_m = clip((r_m - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1) = clip((r_m - "
     "{low_freq_factor}) / {bands}, 0, 1)"},
    {"bands", "factor", "w'_m = w_m ((1 - s_m) / factor + s_m) = w_m ((1 - s_m) / {factor} + s_m)"},
    {"unchanged", NULL,
     "pairs with w' = w: {unchanged}; between: {between}; with w' = w / {factor}: {divided}"},
    {"longrope", "original_length",
     "w'_m = w_m / short_factor_m while the sequence has at most original_length = {original_length} tokens"},
    {"longrope", NULL, "w'_m = w_m / long_factor_m for longer ones, for all their tokens"},
    {"longrope", NULL,
     "divisors of pairs 0 and {end}: short {short 0} and {short end}, long {long 0} and {long end}"},
    {"proportional", NULL,
     "pairs span the whole head, and the first int(p dim / 2) = {rotated} of them are rotated: w'_m = w_m / "
     "factor = w_m / {factor}"},
    {"proportional", NULL, "the other {still} have w'_m = 0 and are unchanged"},
    {"freq_factors", "freq_factors", "each w'_m is divided by its own factor: pair {end} by {short end}"},

    {NULL, NULL, "\nHow its length changes"},
    {"two magnitudes", "magnitude",
     "magnitude = {magnitude} while the sequence has at most original_length = {original_length} tokens"},
    {"two magnitudes", "magnitude_long",
     "magnitude = {magnitude_long} for longer ones, for all their tokens"},
    {"two magnitudes", NULL,
     "queries and keys both have it, so the rotated part of a score grows by magnitude^2 = {magnitude^2}, "
     "for longer ones by {magnitude_long^2}"},
    {"by attention_factor", "magnitude", "magnitude = attention_factor = {by attention_factor}"},
    {"by mscale", "magnitude",
     "magnitude = (0.1 mscale ln factor + 1) / (0.1 mscale_all_dim ln factor + 1) = {g mscale} / {g "
     "mscale_all_dim} = {magnitude}"},
    {"by yarn", "magnitude", "magnitude = 0.1 ln factor + 1 = 0.1 ln {factor} + 1 = {magnitude}"},
    {"by longrope", "magnitude",
     "magnitude = sqrt(1 + ln factor / ln original_length) = sqrt(1 + ln {factor} / ln {original_length}) "
     "= {magnitude}"},
    {"as it is", "magnitude", "magnitude = {magnitude}"},
    {"grows", NULL,
     "queries and keys both have it, so the rotated part of a score grows by magnitude^2 = {magnitude^2}"},

    {NULL, NULL, "\nWhat becomes of a score"},
    {"no scale", NULL, "the file does not give the scale"},
    {"score_scale", "score_scale", "q.k is multiplied by score_scale = {score_scale}"},
    {"temperature.length", "temperature.rule",
     "and the query at position P by 1 + {temperature.scale} ln(1 + floor({position} / "
     "{temperature.length}))"},

    {NULL, NULL, "\nWithin the context"},
    {NULL, NULL,
     "wavelength of pair m = 2 pi / w'_m tokens: {wave 0} for pair 0, {slowest wave} for pair {slowest}"},
    {"reach", NULL, "{never} of {M} pairs never complete a full rotation within {window}{reach} positions"},
    {"still", NULL, "{still} pairs are not rotated at all"},
};
// clang-format on

/* ---------------------------------------------------------------- numbers and words --------- */

static const named_value *find(const view *v, const char *name)
{
    for (const named_value *known = v->values; known < v->values + v->value_count; known++)
        if (!strcmp(known->name, name))
            return known;
    return NULL;
}

/* A fact, or what follows from facts, as a number; NAN where there is none. */
static double number(const view *v, const char *name)
{
    const named_value *known = find(v, name);
    return known ? known->x : cli_config_fact(v->group, name);
}

static const char *word_of(const view *v, const char *name)
{
    const named_value *known = find(v, name);
    const posenc_fact *f     = known ? NULL : posenc_model_fact(v->group, name);
    return known ? known->text : f && f->kind == POSENC_FACT_WORD ? f->text : NULL;
}

static int is(const view *v, const char *name, const char *wanted)
{
    const char *found = word_of(v, name);
    return found && !strcmp(found, wanted);
}

static void set(view *v, const char *name, double x)
{
    v->values[v->value_count++] = (named_value){name, x, NULL};
}

static void set_text(view *v, const char *name, const char *text)
{
    v->values[v->value_count++] = (named_value){name, 1, text};
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

/* ---------------------------------------------------------------- pairs --------------------- */

/* What a pair is, as bits: unchanged, slowed by the whole factor, something between, or its coordinate. */
enum { UNCHANGED = 1, DIVIDED = 2, BETWEEN = 4 };

/* "0-15, 40-63" of the pairs that have the bit; "none". */
static void set_ranges(view *v, const char *name, int bit)
{
    char  *text = v->texts[v->text_count++];
    size_t used = 0;
    snprintf(text, CLI_LAYERS_TEXT, "none");
    for (int64_t end, m = 0; m < v->M && used < CLI_LAYERS_TEXT - 24; m = end + 1) {
        end = m;
        if (!(v->marks[m] & bit))
            continue;
        while (end + 1 < v->M && v->marks[end + 1] & bit)
            end++;
        used += (size_t)snprintf(text + used, CLI_LAYERS_TEXT - used, end > m ? "%s%lld-%lld" : "%s%lld",
                                 used ? ", " : "", (long long)m, (long long)end);
    }
    if (used >= CLI_LAYERS_TEXT - 24)
        snprintf(text + used, CLI_LAYERS_TEXT - used, ", ...");
    set_text(v, name, text);
}

static double unscaled(const view *v, int64_t m)
{
    return pow(v->base, -2 * (double)m / v->dim);
}

/* ---------------------------------------------------------------- what follows -------------- */

static void derive_channels(view *v)
{
    static const char *const  names[] = {"pairs 0", "pairs 1", "pairs 2", "pairs 3"};
    const double              axes = number(v, "axes"), head = (double)v->group->dims.D;
    const posenc_rotary_pair *end = &v->pairs[v->M - 1];
    set(v, "head", head);
    set(v, "M", (double)v->M);
    set(v, "end", (double)v->M - 1);
    set(v, "rest", fmax(head - number(v, "offset_dim") - v->dim, 0));
    set_text(v, "channels", is(v, "layout", "half") ? "(m, m + M)" : "(2m, 2m + 1)");
    set(v, "from 0", (double)v->pairs[0].from[0]);
    set(v, "to 0", (double)v->pairs[0].from[1]);
    set(v, "from end", (double)end->from[0]);
    set(v, "to end", (double)end->from[1]);
    for (int64_t m = 0; m < v->M; m++)
        v->marks[m] = 1 << v->pairs[m].coordinate;
    for (int n = 0; axes > 1 && n < axes; n++)
        set_ranges(v, names[n], 1 << n);
    set_text(v, "sign", is(v, "direction", "inverse") ? "-" : "");
}

/* The index, as a real number, of the pair that rotates so often within the first context. */
static double index_of(const view *v, double turns)
{
    return v->dim * log(number(v, "original_length") / (PE_TWO_PI * turns)) / (2 * log(v->base));
}

static void derive_yarn(view *v)
{
    const int    truncated = number(v, "truncate") != 0;
    const double low = index_of(v, number(v, "beta_fast")), high = index_of(v, number(v, "beta_slow")),
                 from = fmax(truncated ? floor(low) : low, 0),
                 to   = fmin(truncated ? ceil(high) : high, v->dim - 1);
    set(v, "2 ln base", 2 * log(v->base));
    set(v, "low", low);
    set(v, "high", high);
    set_text(v, "rounded down", truncated ? ", rounded down" : "");
    set_text(v, "rounded up", truncated ? ", rounded up" : "");
    set(v, "ramp begins", from);
    set(v, "ramp's width", to == from ? 0.001 : to - from);
    set(v, "plain ramp", isnan(number(v, "extrapolation_factor")));
}

static void derive_regimes(view *v)
{
    for (int64_t m = 0; m < v->M; m++) {
        const double w = v->pairs[m].w, w0 = unscaled(v, m), near = 1e-9 * w0;
        v->marks[m] =
            (fabs(w - w0) <= near ? UNCHANGED : 0) | (fabs(w * v->factor - w0) <= near ? DIVIDED : 0);
        v->marks[m] = v->marks[m] ? v->marks[m] : BETWEEN;
    }
    set_ranges(v, "unchanged", UNCHANGED);
    set_ranges(v, "between", BETWEEN);
    set_ranges(v, "divided", DIVIDED);
}

static void derive_frequencies(view *v)
{
    const char  *schedule = word_of(v, "schedule");
    const double power = v->dim / (v->dim - 2), max = number(v, "max_length"), f = v->factor,
                 bands = number(v, "high_freq_factor") - number(v, "low_freq_factor"),
                 last  = unscaled(v, v->M - 1);
    set(v, schedule, 1);
    set_text(v, "nothing more", strcmp(schedule, "default") ? "" : ": w'_m = w_m");
    set(v, "w 1", unscaled(v, 1));
    set(v, "w end", last);
    set(v, "dim - 2", v->dim - 2);
    set(v, "base'", v->base * pow(number(v, "alpha"), power));
    set(v, "factor - 1", f - 1);
    set(v, "2 max", 2 * max);
    set(v, "4 max", 4 * max);
    set(v, "base' at 2", v->base * pow(2 * f - (f - 1), power));
    set(v, "base' at 4", v->base * pow(4 * f - (f - 1), power));
    if (!strcmp(schedule, "yarn"))
        derive_yarn(v);
    set(v, "bands", fmax(bands, 0));
    set(v, "step", bands <= 0);
    if (!strcmp(schedule, "yarn") || !strcmp(schedule, "llama3"))
        derive_regimes(v);
    set(v, "short 0", unscaled(v, 0) / v->pairs[0].w);
    set(v, "short end", last / v->pairs[v->M - 1].w);
    set(v, "long 0", unscaled(v, 0) / v->late[0].w);
    set(v, "long end", last / v->late[v->M - 1].w);
}

static double g(double factor, double mu)
{
    return factor <= 1 ? 1 : 0.1 * mu * log(factor) + 1;
}

/* PhiMoE has two, by the length of the sequence. */
static void derive_magnitude(view *v)
{
    const double m = number(v, "magnitude"), far = number(v, "magnitude_long"),
                 given = setting(v, "attention_factor"), a = setting(v, "mscale"),
                 b = setting(v, "mscale_all_dim");
    const char *by = !isnan(far)                              ? "two magnitudes"
                     : !isnan(given)                          ? "by attention_factor"
                     : is(v, "schedule", "yarn")              ? a > 0 && b > 0 ? "by mscale" : "by yarn"
                     : is(v, "schedule", "longrope") && m > 1 ? "by longrope"
                                                              : "as it is";
    set(v, by, isnan(given) ? 1 : given);
    set(v, "magnitude^2", m * m);
    set(v, "magnitude_long^2", far * far);
    set(v, "g mscale", g(v->factor, a));
    set(v, "g mscale_all_dim", g(v->factor, b));
    set(v, "grows", isnan(far) && m != 1);
    set(v, "no scale", isnan(number(v, "score_scale")));
    set_text(v, "position", is(v, "temperature.rule", "llama4") ? "(P + 1)" : "P");
}

static void derive_context(view *v)
{
    const int64_t      context = v->config->info->max_positions, reach = cli_config_reach(v->group, context);
    int64_t            slowest = 0, still;
    const posenc_fact *w       = cli_config_frequencies(v->group, context);
    const int64_t      never   = cli_config_unfinished(w, reach, &still);
    for (int64_t m = 0; m < w->count; m++)
        slowest = w->list[m] != 0 ? m : slowest;
    set(v, "wave 0", PE_TWO_PI / w->list[0]);
    set(v, "slowest", (double)slowest);
    set(v, "slowest wave", PE_TWO_PI / w->list[slowest]);
    set(v, "reach", (double)reach);
    set_text(v, "window", reach == context ? "" : "the window of ");
    set(v, "never", (double)(never - still));
    set(v, "still", (double)still);
    set(v, "rotated", (double)(v->M - still));
}

/* ---------------------------------------------------------------- all ----------------------- */

/* A text with numbers and words in place of the names in braces. */
static void put(FILE *to, const view *v, const char *text)
{
    for (const char *end; *text; text = end) {
        char name[32] = "";
        end           = text + strcspn(text, "{");
        fprintf(to, "%.*s", (int)(end - text), text);
        if (*end != '{')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(end + 1, "}"), end + 1);
        if (word_of(v, name))
            fputs(word_of(v, name), to);
        else
            fprintf(to, "%g", number(v, name));
        end += strlen(name) + 2;
    }
}

/* One row of the table, in lines that fit; 0 without memory. */
static int print_line(const view *v, size_t i)
{
    const posenc_fact *f     = sentences[i].fact ? posenc_model_fact(v->group, sentences[i].fact) : NULL;
    const int          title = *sentences[i].text == '\n';
    char              *text  = NULL;
    size_t             size  = 0;
    FILE              *to    = open_memstream(&text, &size);
    if (!to)
        return 0;
    put(to, v, sentences[i].text);
    if (f && *f->rule)
        fprintf(to, " (%s: %s)", sentences[i].fact, f->rule);
    const int done = fclose(to) == 0;
    if (done && title)
        puts(text);
    else if (done)
        cli_wrap(text, size, printf("  "), 4, cli_width());
    free(text);
    return done;
}

static void print(view *v)
{
    const posenc_model_info *info = v->config->info;
    char                     layers[CLI_LAYERS_TEXT];
    printf("%s: %s, %s\n  %s\n", v->config->path, info->type ? info->type : "unknown type",
           cli_config_layers(layers, sizeof layers, v->group), v->group->spec);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        const double when = sentences[i].when ? number(v, sentences[i].when) : 1;
        if (!isnan(when) && when != 0 && !print_line(v, i)) {
            pe_calc_refuse_memory(&v->p, "a line");
            return;
        }
    }
}

static void make_pairs(view *v)
{
    const int64_t D      = v->group->dims.D;
    const double  length = fmax((double)v->config->info->max_positions, 2 * number(v, "original_length"));
    pe_calc      *p      = &v->p;
    p->dims              = (posenc_dims){.B = 1, .H = 1, .G = 1, .Lq = 2, .Lk = 2, .D = D, .Dv = D};
    pe_calc_encoding(p, v->group->spec, NULL);
    pe_calc_params(p, POSENC_DTYPE_F64);
    cli_config_params(v->config, p);
    pe_calc_plan(p, POSENC_RUN_ROTATE);
    if (pe_calc_failed(p) || posenc_rotary_frequencies(p->plan, NULL, &v->M, NULL, &p->err))
        return;
    v->pairs = pe_calc_block(p, 2 * (size_t)v->M * sizeof *v->pairs);
    v->marks = pe_calc_block(p, (size_t)v->M * sizeof *v->marks);
    v->late  = v->pairs ? v->pairs + v->M : NULL;
    if (!pe_calc_failed(p) && !posenc_rotary_pairs(p->plan, p->params, 1, v->pairs, &p->work, &p->err))
        posenc_rotary_pairs(p->plan, p->params, isfinite(length) ? length : 1, v->late, &p->work, &p->err);
}

void cli_explain_model(cli_explanation *x)
{
    view v   = {.config = &x->subject.config, .group = x->subject.config.group, .p = pe_calc_new("explain")};
    v.base   = number(&v, "base");
    v.dim    = number(&v, "dim");
    v.factor = number(&v, "factor");
    make_pairs(&v);
    if (!pe_calc_failed(&v.p)) {
        derive_channels(&v);
        derive_frequencies(&v);
        derive_magnitude(&v);
        derive_context(&v);
        print(&v);
    }
    cli_calc_said(&x->subject.p, cli_calc_end(&v.p));
}
