/* SPDX-License-Identifier: MIT */
/*
 * verdict.c: which theory it was, and which others give the same rotation
 *
 * Surprise   Positions divided by f and frequencies divided by f are one rotation, and so are static NTK and
 *            another base: both are then said.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double unheard = 4;   /* less than this is none where nothing explains it */
static const double near_by = 12;  /* and less than this may be none by another count */
static const double slack   = 0.7; /* a simpler theory may leave so much more over */

static int compare_theories(const void *a, const void *b)
{
    const pe_theory *x = a, *y = b;
    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost)
                              : (x->misfit > y->misfit) - (x->misfit < y->misfit);
}

/* How far what is expected is from what was found, in roundings. */
double pe_verdict_distance(const pe_search *s, int is_strict, pe_theory *expected)
{
    pe_frame f;
    pe_left  l;
    *expected   = (pe_theory){.step = 1};
    expected->e = pe_theories_encoding(s, 0, "");
    for (int n = 0; n < PE_MOST_AXES; n++)
        expected->axes[n] = n;
    pe_spec_say(expected->places, "as expected");
    if (!expected->e || !pe_frame_open(&f, s, expected->e))
        return INFINITY;
    for (int side = 0; side < 2; side++)
        expected->size[side] = f.course.size;
    expected->low = pe_spec_is_word(s->base, "angles", "ggml", 0) ? PE_LOWS : 0;
    pe_misfit_measure(expected, s, &f, 1, &l);
    pe_frame_free(&f);
    return is_strict ? expected->strict : expected->misfit;
}

/* How many neighbours of a list are about `step` apart, and the mean of those; `all`: of those that are not
   at one position. */
static double agree_on(double *mean, double *all, const pe_search *s, const pe_theory *t, double step)
{
    double sum = 0, count = 0;
    *all = 0;
    for (int64_t row = 1; row < s->rows->count; row++) {
        const double got   = t->list[row] - t->list[row - 1];
        const int    is_it = fabs(got - step) < 0.3 * fabs(step);
        sum += is_it ? got : 0;
        count += is_it;
        *all += fabs(got) > 0.3 * fabs(step);
    }
    *mean = count > 0 ? fabs(sum) / count : 0;
    return count;
}

/* The step of the positions: of a list, the one that most neighbours have which are not at one position, as
   padding is, and tokens whose positions repeat. 0: none. */
static double theory_step(const pe_search *s, const pe_theory *t)
{
    enum { LOOKS = 16 };
    double best = 0, most = 0, mean, all;
    if (!t->list)
        return fabs(t->step);
    for (int i = 0; i < LOOKS && s->N == 1; i++) { /* any row of many may be the first after padding */
        int64_t row = 1 + i * (s->rows->count - 1) / LOOKS;
        while (row < s->rows->count && fabs(t->list[row] - t->list[row - 1]) <= 0.01)
            row++;
        if (row >= s->rows->count)
            continue;
        const double count = agree_on(&mean, &all, s, t, t->list[row] - t->list[row - 1]);
        if (count > most && count > 0.6 * all && 8 * count > (double)s->rows->count) {
            most = count;
            best = mean;
        }
    }
    return best;
}

/* Is there an alternative with these departures already? */
static int is_listed(const pe_diagnosis *d, unsigned departs)
{
    int is_it = departs == d->departs;
    for (int i = 0; i < d->alternative_count; i++)
        is_it |= d->alternatives[i].departs == departs;
    return is_it;
}

/* The rotation that was found, by another name. */
static void add_sibling(pe_diagnosis *d, unsigned departs, const char *format, ...)
{
    if (is_listed(d, departs) || d->alternative_count == PE_MOST_ALTERNATIVES)
        return;
    pe_reading *r = &d->alternatives[d->alternative_count++];
    va_list     words;
    *r         = d->found;
    r->departs = departs;
    va_start(words, format);
    vsnprintf(r->words, PE_WORDS, format, words);
    va_end(words);
}

/* Theories that give the same rotation by another name. */
static void add_siblings(pe_diagnosis *d, const pe_search *s, const pe_theory *best)
{
    char         schedule[64];
    int          digits;
    const double base  = pe_spec_number(s->base, "base", 1e4),
                 found = pe_spec_number(d->found.spec, "base", 1e4);
    pe_spec_said(schedule, sizeof schedule, d->found.spec, "schedule");
    const int is_plain = !*schedule || !strcmp(schedule, "default"), is_linear = !strcmp(schedule, "linear"),
              is_ntk   = !strcmp(schedule, "ntk");
    const double dim   = (double)s->pairings[best->pairing].pairing.dim,
                 whole = found * pow(pe_spec_number(d->found.spec, "alpha", 1), dim / (dim - 2)), /* of ntk */
        factor = pe_spec_number(d->found.spec, "factor", 1), step = theory_step(s, best);
    const unsigned departs = best->departs, is_more = best->list || best->offset != 0,
                   others          = departs & ~(is_more ? 0 : 1u << PE_POSITIONS);
    const char *const more         = is_more ? ", and other positions" : "";
    const int         is_stretched = (departs >> PE_POSITIONS & 1) && step > 0 && fabs(step - 1) > 0.01;
    if (d->alternative_count + 6 > PE_MOST_ALTERNATIVES)
        return;
    if ((departs & pe_to_base) && is_plain && dim > 2)
        add_sibling(d, (departs & ~pe_to_base) | pe_to_schedule,
                    "schedule=ntk alpha=%.6g, which is base=%.10g", pow(found / base, (dim - 2) / dim),
                    found);
    if (is_stretched && (is_plain || is_linear)) {
        const double longer = (is_linear ? factor : 1) / step;
        if (is_linear && fabs(longer - 1) < 0.002)
            add_sibling(d, others | pe_to_schedule, "no schedule%s", more);
        add_sibling(d, others | (is_linear ? pe_to_factor : pe_to_schedule), "schedule=linear factor=%.6g%s",
                    pe_spec_nearest_round(longer, 0.002 * longer, &digits), more);
    }
    if ((departs & (pe_to_schedule | pe_to_factor)) && is_linear)
        add_sibling(d, (departs & ~(pe_to_schedule | pe_to_factor)) | 1u << PE_POSITIONS,
                    "positions divided by %.6g", factor);
    if ((departs & pe_to_schedule) && !strcmp(schedule, "dynamic"))
        add_sibling(d, (departs & ~(pe_to_schedule | pe_to_factor)) | pe_to_base,
                    "no schedule, and another base that gives the same frequencies");
    if ((departs & pe_to_schedule) && is_ntk) {
        add_sibling(d, (departs & ~pe_to_schedule) | pe_to_base, "base=%.10g", whole);
        if (is_stretched)
            add_sibling(d, others | pe_to_base | pe_to_schedule,
                        "schedule=linear factor=%.6g, and base=%.10g",
                        pe_spec_nearest_round(1 / step, 0.002 / step, &digits), whole);
    }
    if ((departs & (pe_to_base | pe_to_factor)) && is_ntk && dim > 2) {
        const int is_it = fabs(whole / base - 1) < 1e-4;
        add_sibling(d, (departs & ~(pe_to_base | pe_to_factor)) | pe_to_schedule | (is_it ? 0 : pe_to_base),
                    "no schedule, base=%.10g", is_it ? base : whole);
    }
}

/* Of the expected schedule base and factor are one number, if it is one that changes the base: either alone,
   or both. */
static void add_bases(pe_diagnosis *d, const pe_search *s, const pe_theory *best)
{
    const unsigned both  = pe_to_base | pe_to_factor;
    unsigned       known = best->departs & both, other = best->departs & ~(both | pe_to_schedule);
    char           schedule[64];
    pe_spec_said(schedule, sizeof schedule, s->base, "schedule");
    if (strcmp(schedule, "ntk") && strcmp(schedule, "dynamic"))
        return;
    for (int i = 0; i < d->alternative_count && !known; i++)
        known = d->alternatives[i].departs & both;
    for (unsigned way = 0; known && way < 3; way++) {
        const unsigned departs = other | (way == 0 ? pe_to_base : way == 1 ? pe_to_factor : both);
        add_sibling(d, departs, "schedule=%s with another %s that gives the same frequencies", schedule,
                    way == 0   ? "base"
                    : way == 1 ? "factor"
                               : "base and factor");
    }
}

/* What choose decides from. */
typedef struct choice {
    pe_theory expected; /* no e where nothing is */
    double    away;     /* of it, in roundings */
    double    enough;   /* what a theory may leave */
    int       best;     /* of the theories; -1: none */
} choice;

static choice best_theory(pe_search *s)
{
    choice c     = {.best = -1};
    double least = INFINITY;
    c.away       = s->in->e ? pe_verdict_distance(s, s->in->is_strict, &c.expected) : INFINITY;
    qsort(s->theories, (size_t)s->theory_count, sizeof *s->theories, compare_theories);
    for (int i = 0; i < s->theory_count; i++)
        least = fmin(least, s->theories[i].misfit);
    c.enough = fmin(pe_same, least + slack);
    for (int i = 0; i < s->theory_count && c.best < 0; i++)
        if (s->theories[i].low || s->theories[i].misfit <= c.enough)
            c.best = i;
    return c;
}

static void read_expected(pe_diagnosis *d, const pe_search *s, const choice *c)
{
    d->difference = c->away;
    if (!c->expected.e)
        return;
    pe_advice_read(&d->expected, &c->expected);
    snprintf(d->expected.angles, sizeof d->expected.angles, "%s",
             s->in->is_strict  ? "exact"
             : c->expected.low ? "ggml"
                               : "exact or float32");
}

static void judge_best(pe_diagnosis *d, const pe_search *s, pe_theory *t)
{
    pe_advice_read(&d->found, t);
    if (s->in->is_strict && !t->low && t->strict > pe_same)
        t->departs |= 1u << PE_ANGLES;
    d->found.departs = d->departs = s->in->e ? t->departs : 0;
    d->verdict                    = !s->in->e ? PE_FOUND : t->departs ? PE_DIFFERENT : PE_SAME;
    d->residual                   = t->misfit;
}

static void judge(pe_diagnosis *d, pe_search *s, const choice *c)
{
    const int is_little = c->best < 0 || s->theories[c->best].misfit > c->away - 1; /* better than it */
    if (c->expected.e && c->away <= (is_little ? unheard : pe_same)) {
        d->verdict = PE_SAME;
        pe_advice_read(&d->found, &c->expected);
        d->residual = c->expected.misfit;
    } else if (c->best >= 0)
        judge_best(d, s, &s->theories[c->best]);
    else {
        d->verdict = PE_UNEXPLAINED;
        pe_fixes_add(
            &d->advice,
            s->floor > 40 * s->rows->total
                ? "no pairs of channels are rotated by an angle: is it a rotation of this tensor, and are "
                  "its axes [B,H,L,D]?"
                : "these channels are rotated, but no base, schedule, factor or positions give their angles: "
                  "give the positions that this call had, or q and k one at a time");
    }
}

/* Whether a theory says something that neither the finding nor an alternative says already. */
static int is_news(const pe_diagnosis *d, const pe_theory *t, int is_near)
{
    if (!t->departs || d->alternative_count >= PE_MOST_ALTERNATIVES - 4)
        return 0;
    for (int k = 0; k < d->alternative_count; k++)
        if (d->alternatives[k].departs == t->departs)
            return 0;
    if (d->verdict != PE_DIFFERENT)
        return 1;
    return t->departs == d->departs ? is_near : (t->departs & d->departs) != d->departs;
}

/* A search for two numbers may find that one of them is as expected: that is another theory's finding. */
static int is_twin(const pe_reading *a, const pe_reading *b)
{
    return !strcmp(a->spec, b->spec) && !strcmp(a->positions, b->positions) &&
           !strcmp(a->angles, b->angles) && !strcmp(a->words, b->words) &&
           fabs(a->magnitude - b->magnitude) < 1e-9;
}

static void list_alternatives(pe_diagnosis *d, const pe_search *s, const choice *c)
{
    const int is_near = c->expected.e && c->away > pe_same && c->away < near_by;
    for (int i = 0; i < s->theory_count && c->best >= 0 && s->in->e; i++) {
        const pe_theory *t = &s->theories[i];
        if (!is_news(d, t, is_near) || t->misfit > c->enough + 0.5 ||
            t->cost > s->theories[c->best].cost / 100 * 100 + 199 ||
            (d->verdict == PE_SAME && !(t->misfit < c->away - 0.4)))
            continue;
        pe_reading *r     = &d->alternatives[d->alternative_count];
        int         is_it = 0;
        pe_advice_read(r, t);
        for (int k = 0; k < d->alternative_count; k++)
            is_it |= is_twin(r, &d->alternatives[k]);
        d->alternative_count += !is_it;
    }
}

static void give_frequencies(pe_diagnosis *d, const pe_search *s, pe_theory *t)
{
    pe_frame f = {.course.w = t->w, .M = s->pairings[t->pairing].pairing.dim / 2};
    if (!t->w && !pe_frame_open(&f, s, t->e))
        return;
    d->frequencies = f.course.w;
    d->pairs       = f.M;
    f.course.w = t->w = NULL;
    pe_frame_free(&f);
}

void pe_verdict_choose(pe_diagnosis *d, pe_search *s)
{
    choice c = best_theory(s);
    read_expected(d, s, &c);
    judge(d, s, &c);
    list_alternatives(d, s, &c);
    if (d->verdict == PE_DIFFERENT) {
        add_siblings(d, s, &s->theories[c.best]);
        add_bases(d, s, &s->theories[c.best]);
        pe_advice_all(d, c.expected.e ? c.expected.size[0] : 1);
    }
    if (d->verdict == PE_SAME && c.expected.e)
        give_frequencies(d, s, &c.expected);
    else if (d->verdict != PE_UNEXPLAINED)
        give_frequencies(d, s, &s->theories[c.best]);
    if (d->verdict == PE_DIFFERENT)
        pe_advice_spell(d);
    posenc_encoding_free(c.expected.e);
}
