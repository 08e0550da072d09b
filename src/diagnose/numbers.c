/* SPDX-License-Identifier: MIT */
/*
 * numbers.c: base and factor that fit the measured speeds
 *
 * Gauss and Newton on the logarithms of one or both, whatever the schedule; then with as few digits as do.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* With as few digits as say the very number: it stands in the SPEC that the user reads. */
static const char *shortest(char text[40], double x)
{
    for (int digits = 9; digits <= 17 && (snprintf(text, 40, "%.*g", digits, x), strtod(text, NULL) != x);
         digits++)
        ;
    return text;
}

void pe_numbers_text(char text[PE_SEARCH_TEXT], const pe_family *f)
{
    char base[40], factor[40];
    if (f->key)
        snprintf(text, PE_SEARCH_TEXT, "%.300s base=%s %s=%s", f->fixed, shortest(base, f->base), f->key,
                 shortest(factor, f->factor));
    else
        snprintf(text, PE_SEARCH_TEXT, "%.300s base=%s", f->fixed, shortest(base, f->base));
}

/* log of each speed; 0 where it cannot be. */
static int family_speeds(double *logs, const pe_search *s, int pairing, const pe_family *f)
{
    char     text[PE_SEARCH_TEXT + 80];
    pe_frame one;
    pe_numbers_text(text, f);
    posenc_encoding *e     = pe_theories_encoding(s, pairing, text);
    const int        is_it = e && pe_frame_open(&one, s, e);
    if (is_it) {
        for (int64_t m = 0; m < one.M && m < s->pairings[pairing].pairing.dim / 2; m++)
            logs[m] = one.course.w[m] != 0 ? log(fabs(one.course.w[m])) : -INFINITY;
        pe_frame_free(&one);
    }
    posenc_encoding_free(e);
    return is_it;
}

/* One step of Gauss and Newton on the logarithms of base and factor; whether it could be taken. */
static int improve(pe_family *f, const pe_search *s, int pairing, int loose, double *work, double *moves)
{
    const pe_paired *p  = &s->pairings[pairing];
    const int64_t    M  = p->pairing.dim / 2;
    double          *at = work, *by_base = work + M, *by_factor = work + 2 * M;
    const double     h     = 1e-3;
    pe_family        moved = *f;
    moved.base *= exp(h);
    if (!family_speeds(at, s, pairing, f) ||
        ((loose & PE_LOOSE_BASE) && !family_speeds(by_base, s, pairing, &moved)))
        return 0;
    moved = *f;
    moved.factor *= exp(h);
    if ((loose & PE_LOOSE_FACTOR) && !family_speeds(by_factor, s, pairing, &moved))
        return 0;
    double aa = 1e-9, ab = 0, bb = 1e-9, ra = 0, rb = 0;
    for (int64_t m = 0; m < M; m++) {
        const double got = fabs(p->w[m]) / p->unit;
        if (got * p->unit < 8 * p->error[m] || !isfinite(at[m]))
            continue;
        const double sure = p->error[m] / got + s->coarse, r = (log(got) - at[m]) / sure;
        const double a = loose & PE_LOOSE_BASE ? (by_base[m] - at[m]) / h / sure : 0,
                     b = loose & PE_LOOSE_FACTOR ? (by_factor[m] - at[m]) / h / sure : 0;
        if (!isfinite(a) || !isfinite(b))
            continue;
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ra += a * r;
        rb += b * r;
    }
    const double det = aa * bb - ab * ab, da = (ra * bb - rb * ab) / det, db = (rb * aa - ra * ab) / det;
    if (!(det > 0) || !isfinite(da) || !isfinite(db))
        return 0;
    f->base *= exp(fmax(-3, fmin(3, loose & PE_LOOSE_BASE ? da : 0)));
    f->factor *= exp(fmax(-2, fmin(2, loose & PE_LOOSE_FACTOR ? db : 0)));
    *moves = fabs(loose & PE_LOOSE_BASE ? da : 0) + fabs(loose & PE_LOOSE_FACTOR ? db : 0);
    return f->base > 1 && f->base < 1e15 && f->factor > 1e-4 && f->factor < 1e6;
}

/* Are these the speeds that were measured, but for some that were measured badly? */
static int has_speeds(const double *logs, const pe_search *s, const pe_paired *p)
{
    const int64_t M   = p->pairing.dim / 2;
    double        bad = 0, all = 0;
    for (int64_t m = 0; m < M; m++) {
        const double got = fabs(p->w[m]) / p->unit;
        if (got * p->unit < 8 * p->error[m] || !isfinite(logs[m]))
            continue;
        bad += fabs(log(got) - logs[m]) > 6 * (p->error[m] / got + s->coarse);
        all++;
    }
    return bad <= 0.25 * all;
}

int pe_numbers_fit(pe_family *f, const pe_search *s, int pairing, int loose)
{
    const pe_paired *p     = &s->pairings[pairing];
    double          *work  = malloc((size_t)(3 * p->pairing.dim / 2) * sizeof *work);
    int              is_it = work != NULL;
    double           moves = 1;
    for (int round = 0; is_it && round < 10 && moves > 1e-9; round++)
        is_it = improve(f, s, pairing, loose, work, &moves);
    if (is_it && p->agreed > 0.9)
        is_it = family_speeds(work, s, pairing, f) && has_speeds(work, s, p);
    free(work);
    return is_it;
}

/* A number that is nearly the expected one is more likely another rounding of angles. */
static int is_hardly_other(const pe_search *s, const pe_family *f, int loose)
{
    const double base   = pe_spec_number(s->base, "base", 1e4),
                 factor = f->key ? pe_spec_number(s->base, f->key, 1) : 1;
    return s->in->e && (!(loose & PE_LOOSE_BASE) || fabs(log(f->base / base)) < 1e-4) &&
           (!(loose & PE_LOOSE_FACTOR) || fabs(log(f->factor / factor)) < 1e-4);
}

/* Tries a family's numbers with as few digits as do. */
static int try_family(pe_search *s, int pairing, pe_family f, int loose, unsigned departs, const char *words)
{
    char            text[PE_SEARCH_TEXT], number_text[40];
    const pe_family exact = f;
    int             found = 0;
    for (int digits = 1; digits <= 7 && found != 1; digits++) {
        if (loose & PE_LOOSE_BASE)
            f.base = strtod(pe_spec_fewest_digits(number_text, exact.base, digits), NULL);
        if (loose & PE_LOOSE_FACTOR)
            f.factor = strtod(pe_spec_fewest_digits(number_text, exact.factor, digits), NULL);
        if (f.base <= 1)
            continue;
        pe_numbers_text(text, &f);
        const int is_it = pe_theories_try(s, pairing, text, departs,
                                          2 * digits + (is_hardly_other(s, &f, loose) ? 40 : 0) +
                                              (f.key && f.factor < 1 ? 10 : 0),
                                          words);
        found           = is_it ? is_it : found; /* at another step of positions: linear by 60 for 64 */
    }
    return found > 0;
}

int pe_numbers_try(pe_search *s, int pairing, pe_family f, int loose, unsigned departs, const char *words)
{
    return !pe_theories_are_too_many(s, departs | s->pairings[pairing].departs) && s->pairings[pairing].w &&
           pe_numbers_fit(&f, s, pairing, loose) && try_family(s, pairing, f, loose, departs, words);
}

/* Speeds of several coordinates depend on which pair follows which. Returns how far the angles are from those
   of such speeds, 0 to 1: large where the rule is another. */
double pe_numbers_of_axes(pe_search *s, int p, const char *settings)
{
    pe_paired       *q        = &s->pairings[p];
    const int64_t    M        = q->pairing.dim / 2;
    double           disorder = 1;
    pe_frame         f;
    posenc_encoding *e = pe_theories_encoding(s, p, settings);
    if (e && pe_frame_open(&f, s, e)) {
        q->reach = 1;
        disorder = f.M == M ? 0 : 1;
        for (int64_t m = 0; m < M && f.M == M; m++) {
            const int     n  = s->axes[f.course.coordinate[m]];
            const double *at = q->of_axes + 3 * M * n + m;
            q->w[m]          = at[0];
            q->error[m]      = at[M];
            q->reach         = fmax(q->reach, q->reaches[n]);
            disorder += (1 - at[2 * M]) / (double)M;
        }
        q->agreed = 0.95;
        pe_frame_free(&f);
    }
    posenc_encoding_free(e);
    return disorder;
}
