/* SPDX-License-Identifier: MIT */
/*
 * schedules.c: for one pairing, other numbers, exponents and schedules, from the nearest to what is expected
 * on
 *
 * What needs more departures than the best theory so far has is not tried.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The fastest pair turns by 1 a step, or as a schedule has it: by 2, 1/2, ... times that where positions have
   that step. */
static double whole_unit(const pe_search *s, int pairing, const char *settings)
{
    const pe_paired *p = &s->pairings[pairing];
    posenc_encoding *e = pe_theories_encoding(s, pairing, settings);
    pe_frame         f = {0};
    const double first = s->N == 1 && e && pe_frame_open(&f, s, e) && f.course.w[0] > 0 ? f.course.w[0] : 1;
    const double got = fabs(p->w[0]) / first, step = got >= 1 ? rint(got) : got > 0 ? 1 / rint(1 / got) : 1;
    pe_frame_free(&f);
    posenc_encoding_free(e);
    return p->agreed > 0.9 && fabs(got / step - 1) < 1e-3 && step < 4 && step > 0.01 ? step : 1;
}

/* A dynamic schedule whose length follows other positions: its base says which length that was. */
static void try_length(pe_search *s, int p, const char *prefix, unsigned departs)
{
    const double base = pe_spec_number(s->base, "base", 1e4), factor = pe_spec_number(s->base, "factor", 1),
                 limit = pe_spec_number(s->base, "max_length", 0), dim = (double)s->pairings[p].pairing.dim;
    char      text[PE_SEARCH_TEXT];
    pe_family f = {text, NULL, base, 1};
    snprintf(text, sizeof text, "%s schedule=default", prefix);
    for (int is_double = 0; is_double < 2; is_double++) {
        f.base = base;
        snprintf(text, sizeof text, "%s schedule=default", prefix);
        s->pairings[p].unit = is_double ? whole_unit(s, p, text) : 1;
        const int    is_it  = pe_numbers_fit(&f, s, p, PE_LOOSE_BASE);
        const double length = limit * (pow(f.base / base, (dim - 2) / dim) + factor - 1) / factor;
        s->pairings[p].unit = 1;
        if (!is_it || !(length > limit) || !(length < 1e9))
            continue;
        snprintf(text, sizeof text, "%s length=%.10g", prefix, rint(length));
        const int count = s->theory_count;
        pe_theories_try(s, p, text, departs | 1u << PE_POSITIONS, 2, "its length follows other positions");
        if (s->theory_count > count &&
            fabs(pe_misfit_longest(s, &s->theories[count]) + 1 - length) > 2 + 0.02 * length)
            s->theories[count].cost += 150; /* none of those found: rather another base */
    }
}

static int is_heard(const pe_paired *p, int64_t m)
{
    return fabs(p->w[m]) > 8 * p->error[m];
}

/* The base by which w[m] is so much slower than a pair `pairs` before it; 0 where that is not sure. */
static double told_base(const pe_paired *p, int64_t m, int64_t pairs, double before)
{
    const double M = (double)p->pairing.dim / 2, got = fabs(p->w[m]);
    const double error = (16 * p->error[m] / got + 1e-6) * M / (double)pairs;
    int          digits;
    const double base = pow(before / got, M / (double)pairs);
    return error < 0.3 ? pe_spec_nearest_round(base, base * error, &digits) : 0;
}

/* The bases that the fastest pairs tell, which schedules leave alone, and the slowest, which they slow alike.
 */
static void tell_bases(double told[2], const pe_paired *p)
{
    const int64_t M = p->pairing.dim / 2, apart = M / 10 + 1;
    told[0] = told[1] = 0;
    for (int64_t m = 4; m > 0; m--)
        if (m < M && is_heard(p, m))
            told[0] = told_base(p, m, m, 1);
    for (int64_t m = apart; m < M; m++)
        if (is_heard(p, m) && is_heard(p, m - apart))
            told[1] = told_base(p, m, apart, fabs(p->w[m - apart]));
}

/* The factor is sought from the expected one, then from others, until one search ends well. */
static void try_factors(pe_search *s, int p, pe_family f, int loose, unsigned departs)
{
    static const double others[] = {1.5, 3, 6, 12, 24, 48};
    int                 is_told  = pe_numbers_try(s, p, f, loose, departs, "");
    for (size_t i = 0; i < sizeof others / sizeof *others && !is_told; i++) {
        f.factor = others[i];
        is_told  = pe_numbers_try(s, p, f, loose, departs, "");
    }
}

/* The expected schedule with other numbers, or none. */
static void try_numbers(pe_search *s, int p, const char *prefix, unsigned departs)
{
    char         schedule[64], text[PE_SEARCH_TEXT];
    const char  *spec = s->base;
    const double base = pe_spec_number(spec, "base", 1e4);
    const int    has =
        pe_spec_said(schedule, sizeof schedule, spec, "schedule") && strcmp(schedule, "default") != 0;
    const char     *key    = !has ? NULL : !strcmp(schedule, "ntk") ? "alpha" : "factor";
    const double    factor = key ? pe_spec_number(spec, key, 0) : 0;
    const pe_family f      = {prefix, factor > 0 ? key : NULL, base, factor > 0 ? factor : 1};
    snprintf(text, sizeof text, "%s schedule=default", prefix);
    pe_theories_try(s, p, prefix, departs, 0, "");
    if (has)
        pe_theories_try(s, p, text, departs | pe_to_schedule, 0, "the schedule is dropped");
    double told[2];
    int    is_told = pe_numbers_try(s, p, f, PE_LOOSE_BASE, departs | pe_to_base, "");
    tell_bases(told, &s->pairings[p]);
    for (int i = 0; i < 2 && !is_told && has; i++) /* from far away a schedule's ramp may hide the way */
        is_told = told[i] > 1 && told[i] < 1e12 &&
                  pe_numbers_try(s, p, (pe_family){prefix, f.key, told[i], f.factor}, PE_LOOSE_BASE,
                                 departs | pe_to_base, "");
    s->pairings[p].unit = whole_unit(s, p, prefix);
    if (s->pairings[p].unit != 1) { /* another base at positions of another step */
        pe_numbers_try(s, p, f, PE_LOOSE_BASE, departs | pe_to_base, "");
        if (f.key)
            pe_numbers_try(s, p, f, PE_LOOSE_FACTOR, departs | pe_to_factor, "");
    }
    s->pairings[p].unit = 1;
    if (has)
        pe_numbers_try(s, p, (pe_family){text, NULL, base, 1}, PE_LOOSE_BASE,
                       departs | pe_to_base | pe_to_schedule, "the schedule is dropped");
    if (f.key) {
        try_factors(s, p, f, PE_LOOSE_FACTOR, departs | pe_to_factor);
        try_factors(s, p, f, PE_LOOSE_BASE | PE_LOOSE_FACTOR, departs | pe_to_factor | pe_to_base);
    }
    if (has && (!strcmp(schedule, "dynamic") || !strcmp(schedule, "longrope"))) {
        snprintf(text, sizeof text, "%s length=1", prefix);
        pe_theories_try(s, p, text, departs | pe_to_schedule, 2, "as for short sequences");
        snprintf(text, sizeof text, "%s length=1e9", prefix);
        pe_theories_try(s, p, text, departs | pe_to_schedule, 3, "as for long sequences");
        if (!strcmp(schedule, "dynamic") && s->N == 1)
            try_length(s, p, prefix, departs);
    }
}

/* The exponent divided by the width of the head, not of the rotated block; and the other way round. */
static void try_exponents(pe_search *s, int p, const char *prefix, unsigned departs)
{
    char         text[PE_SEARCH_TEXT];
    const double base = pe_spec_number(s->base, "base", 1e4), D = (double)s->rows->D;
    const double d = (double)s->pairings[p].pairing.dim, expected = (double)s->pairings[0].pairing.dim;
    const double widths[] = {D, expected};
    for (int i = 0; i < 2; i++)
        if (widths[i] != d) {
            snprintf(text, sizeof text, "%s base=%.17g", prefix, pow(base, d / widths[i]));
            pe_theories_try(s, p, text, departs | 1u << PE_DIM, 4 + i,
                            "the exponent is divided by another width than that of the rotated block");
        }
}

/* A schedule that is not the expected one, with numbers of which the expected may know some. */
static void try_schedule(pe_search *s, int p, const char *prefix, unsigned departs, const char *settings,
                         const char *key, double factor, unsigned extra, double base)
{
    char      fixed[PE_SEARCH_TEXT];
    pe_family f = {fixed, key, base, factor};
    char      text[PE_SEARCH_TEXT];
    snprintf(fixed, sizeof fixed, "%s %s", prefix, settings);
    const double expected = pe_spec_number(s->base, key, 0);
    if (expected > 0 && expected != factor) {
        pe_family given = f;
        given.factor    = expected;
        pe_numbers_text(text, &given);
        if (pe_theories_try(s, p, text, departs | pe_to_schedule | (extra & pe_to_base), 1, ""))
            return;
    }
    pe_numbers_try(s, p, f, PE_LOOSE_FACTOR, departs | pe_to_schedule | extra, "");
}

static void try_schedules(pe_search *s, int p, const char *prefix, unsigned departs, double base,
                          unsigned extra)
{
    static const double lengths[] = {0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
    char                schedule[64], text[PE_SEARCH_TEXT];
    const int           has =
        pe_spec_said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    const unsigned   and_factor = has && pe_spec_number(s->base, "factor", 0) > 0 ? pe_to_factor : 0;
    const pe_paired *q          = &s->pairings[p];
    const int64_t    M          = q->pairing.dim / 2;
    double           slowest    = 1; /* how much slower the slowest pair is than without a schedule */
    if (q->agreed <= 0.9 || M < 2)
        return;
    for (int64_t m = 0; m < M; m++)
        if (fabs(q->w[m]) > 30 * q->error[m])
            slowest = fmax(slowest, q->unit * pow(base, -(double)m / (double)M) / fabs(q->w[m]));
    if (!has || strcmp(schedule, "linear") != 0)
        try_schedule(s, p, prefix, departs, "schedule=linear", "factor", slowest, extra | and_factor, base);
    if (slowest < 1.005) /* no model is made shorter: this is another base, without a schedule */
        return;
    if (!has || strcmp(schedule, "ntk") != 0)
        try_schedule(s, p, prefix, departs, "schedule=ntk", "alpha", slowest, extra, base);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const double length =
            i ? lengths[i]
              : pe_spec_number(s->base, "original_length", pe_spec_number(s->base, "max_length", 0));
        if (!(length > 1))
            continue;
        const unsigned named = !has || (strcmp(schedule, "yarn") != 0) ? and_factor : 0;
        for (int truncate = 1; truncate >= 0; truncate--) {
            snprintf(text, sizeof text, "schedule=yarn original_length=%.10g truncate=%s", length,
                     truncate ? "yes" : "no");
            try_schedule(s, p, prefix, departs, text, "factor", slowest, extra | named, base);
        }
        snprintf(text, sizeof text,
                 "schedule=llama3 original_length=%.10g low_freq_factor=1 high_freq_factor=4", length);
        try_schedule(s, p, prefix, departs, text, "factor", slowest, extra | named, base);
        snprintf(text, sizeof text, "schedule=dynamic max_length=%.10g", length);
        if (s->length > length)
            try_schedule(s, p, prefix, departs, text, "factor", 2, extra | named, base);
    }
    if (!has || strcmp(schedule, "ntk_mixed") != 0)
        try_schedule(s, p, prefix, departs, "schedule=ntk_mixed", "factor", slowest, extra | and_factor,
                     base);
}

void pe_schedules_try(pe_search *s, int p, const char *prefix, unsigned departs)
{
    char      plain[PE_SEARCH_TEXT];
    const int so_far = pe_theories_departures(s->pairings[p].departs | departs);
    if (100 * so_far > pe_theories_best_cost(s) + 20)
        return;
    if (s->N > 1)
        pe_numbers_of_axes(s, p, prefix);
    try_numbers(s, p, prefix, departs);
    if (100 * so_far + 100 > pe_theories_best_cost(s) + 20)
        return;
    try_exponents(s, p, prefix, departs);
    try_schedules(s, p, prefix, departs, pe_spec_number(s->base, "base", 1e4), 0);
    snprintf(plain, sizeof plain, "%s schedule=default", prefix);
    s->pairings[p].unit = whole_unit(s, p, plain);
    if (s->pairings[p].unit != 1 && 100 * so_far + 200 <= pe_theories_best_cost(s) + 20)
        try_schedules(s, p, prefix, departs, pe_spec_number(s->base, "base", 1e4), 0);
    s->pairings[p].unit = 1;
    if (100 * so_far + 200 > pe_theories_best_cost(s) + 20)
        return;
    double told[2];
    tell_bases(told, &s->pairings[p]);
    for (int i = 0; i < 2 && 100 * so_far + 200 <= pe_theories_best_cost(s) + 20; i++)
        if (told[i] > 1 && told[i] < 1e12 && told[i] != pe_spec_number(s->base, "base", 1e4) &&
            (!i || told[1] != told[0]))
            try_schedules(s, p, prefix, departs, told[i], pe_to_base);
    pe_numbers_try(s, p, (pe_family){"schedule=linear", "factor", 1e4, 2}, PE_LOOSE_BASE | PE_LOOSE_FACTOR,
                   departs | pe_to_base | pe_to_schedule, "");
}
