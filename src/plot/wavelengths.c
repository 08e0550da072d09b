/* SPDX-License-Identifier: MIT */
/*
 * wavelengths.c: the wavelength of each pair of a rotation, against the context
 *
 * After 2 pi / w tokens a pair has made one rotation. A pair that makes many within the context that a model
 * was first trained at tells near positions apart, and has seen every angle there is; one that never
 * completes a rotation says how far away a token is, and at a longer context it meets angles that it was
 * never trained on. YaRN draws its borders there, and so does this picture, whatever the schedule: 32
 * rotations and one within the first context (beta_fast and beta_slow, where the encoding has them), counted
 * before any scaling.
 *
 * What is seen  dots are wavelengths as they are used; the grey line is what they were before scaling, where
 *               that differs; flat lines are contexts: of the first training, and the present one.
 * Surprise      YaRN rounds its borders to whole pairs, so a pair next to one may be scaled like its
 *               neighbours.
 * Source        Peng et al. 2023, arXiv:2309.00071, section 3.2
 */
#include "plot/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGIMES = 3, MOST_RULES = 3 };

/* In tokens, [M]; NaN for a pair that does not rotate. */
typedef struct wavelengths {
    double *length;
    int64_t M;
} wavelengths;

static wavelengths read_waves(pe_sketch *s, const posenc_encoding *e)
{
    wavelengths made;
    made.length = pe_rotated_frequencies(s, e, &made.M, NULL);
    for (int64_t m = 0; made.length && m < made.M; m++)
        made.length[m] = made.length[m] > 0 ? PE_TWO_PI / made.length[m] : NAN;
    return made;
}

/* ---------------------------------------------------------------- before scaling ------------ */

/* Does the schedule change what the base gives? */
static int is_scaled(const char *schedule)
{
    static const char *const own[] = {"", "default", "explicit", "period", "pixel"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(schedule, own[i]))
            return 0;
    return 1;
}

/* By the settings that undo any scaling of the frequencies, where they are scaled. */
static wavelengths read_unscaled(pe_sketch *s)
{
    char        schedule[PE_SETTING_LENGTH], divided[PE_SETTING_LENGTH];
    const char *settings = "";
    pe_sketch_setting(s, "schedule", schedule);
    pe_sketch_setting(s, "freq_factors", divided);
    if (is_scaled(schedule))
        settings = pe_sketch_text(s, "%s.schedule=default ", s->part->name);
    if (!strcmp(divided, "yes"))
        settings = pe_sketch_text(s, "%s%s.freq_factors=no", settings, s->part->name);
    if (!*settings)
        return read_waves(s, s->e);
    posenc_encoding  *plain = pe_sketch_alter(s, settings);
    const wavelengths made  = read_waves(s, plain);
    pe_sketch_forget(s, plain);
    return made;
}

/* A setting as a number, `otherwise` where it is absent. */
static double setting_or(const pe_sketch *s, const char *name, double otherwise)
{
    char         text[PE_SETTING_LENGTH], *end;
    const double x = (pe_sketch_setting(s, name, text), strtod(text, &end));
    return end > text && x > 0 ? x : otherwise;
}

/* The context of the first training, by the encoding's settings, or the present one. */
static double first_context(const pe_sketch *s)
{
    return setting_or(s, "original_length", setting_or(s, "max_length", (double)s->data->length));
}

/* The pairs of each regime: 0 many rotations, 1 some, 2 less than one; no curve without pairs. */
static void add_regimes(pe_sketch *s, pe_curve *curves, const wavelengths *now, const wavelengths *before)
{
    const double first = first_context(s), fast = setting_or(s, "beta_fast", 32),
                 slow                = setting_or(s, "beta_slow", 1);
    const char *const names[REGIMES] = {
        pe_sketch_text(s, "%g rotations or more within %.0f tokens", fast, first),
        pe_sketch_text(s, "%g to %g rotations", slow, fast),
        slow == 1 ? "less than one rotation" : pe_sketch_text(s, "fewer than %g rotations", slow)};
    for (int r = 0; r < REGIMES; r++) {
        double *x = pe_sketch_numbers(s, 2 * now->M), *y = x ? x + now->M : NULL;
        int64_t n = 0;
        for (int64_t m = 0; x && m < now->M; m++) {
            const double rotations = first / before->length[m];
            if ((rotations >= fast ? 0 : rotations >= slow ? 1 : 2) == r && isfinite(now->length[m])) {
                x[n]   = (double)m;
                y[n++] = now->length[m];
            }
        }
        if (n)
            curves[s->figure->curve_count++] =
                (pe_curve){.name = names[r], .x = x, .y = y, .n = n, .style = PE_DOTS, .hue = r + 1};
    }
}

static void add_rule(pe_sketch *s, pe_curve *curves, const double *x, const double *y, int64_t n,
                     const char *name)
{
    if (!s->status)
        curves[s->figure->curve_count++] = (pe_curve){.name = name, .x = x, .y = y, .n = n, .style = PE_RULE};
}

/* A flat line from the first pair to the last. */
static void add_context(pe_sketch *s, pe_curve *curves, int64_t M, double tokens, const char *name)
{
    add_rule(s, curves, pe_sketch_range(s, 0, (double)(M - 1), 2), pe_sketch_range(s, tokens, 0, 2), 2,
             pe_sketch_text(s, "%s %.0f", name, tokens));
}

static void name_them(pe_sketch *s, const wavelengths *now)
{
    int64_t still = 0, unfinished = 0;
    for (int64_t m = 0; m < now->M; m++) {
        still += isnan(now->length[m]);
        unfinished += now->length[m] > (double)s->data->length;
    }
    const char *rest = still ? pe_sketch_text(s, "; %lld do not rotate", (long long)still) : "";
    char        schedule[PE_SETTING_LENGTH];
    pe_sketch_setting(s, "schedule", schedule);
    s->what      = pe_sketch_text(s, "%s%s%lld of %lld wavelengths are longer than the context%s",
                             is_scaled(schedule) ? schedule : "", is_scaled(schedule) ? ": " : "",
                                  (long long)unfinished, (long long)now->M, rest);
    s->unlearned = 1;
}

void pe_wavelengths_make(pe_sketch *s)
{
    pe_figure        *f      = s->figure;
    pe_curve         *curves = pe_sketch_take(s, REGIMES + MOST_RULES, sizeof *curves);
    const wavelengths before = read_unscaled(s), now = read_waves(s, s->e);
    const double      first = first_context(s), present = (double)s->data->length;
    if (s->status)
        return;
    f->kind   = PE_CURVES;
    f->curves = curves;
    f->log_y  = 1;
    pe_sketch_labels(f, "pair of channels", "wavelength (tokens per rotation)", NULL);
    int differ = 0;
    for (int64_t m = 0; m < now.M && now.M == before.M; m++)
        differ |= isfinite(now.length[m]) && now.length[m] != before.length[m];
    /* lines first: dots are drawn over them */
    if (differ)
        add_rule(s, curves, pe_sketch_range(s, 0, 1, before.M), before.length, before.M, "before scaling");
    if (first != present)
        add_context(s, curves, now.M, first, "first context");
    add_context(s, curves, now.M, present, "context");
    add_regimes(s, curves, &now, &before);
    name_them(s, &now);
}
