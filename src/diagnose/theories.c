/* SPDX-License-Identifier: MIT */
/*
 * theories.c: one encoding with some settings changed, tried at the expected positions and at those that it
 * implies
 *
 * A theory that leaves nothing over is kept. Its cost counts what departs, then the digits of its numbers.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 0x1.921fb54442d18p+1;

static const char *pairing_text(char text[PE_SEARCH_TEXT], const pe_search *s, int pairing)
{
    const pe_pairing *p = &s->pairings[pairing].pairing;
    snprintf(text, PE_SEARCH_TEXT, "layout=%s layout_out=%s dim=%lld offset_dim=%lld%s",
             p->in ? "half" : "interleaved",
             p->out == p->in ? "same"
             : p->out        ? "half"
                             : "interleaved",
             (long long)p->dim, (long long)p->offset, p->blocks > 1 ? " axis_rule=halves" : "");
    return text;
}

posenc_encoding *pe_theories_encoding(const pe_search *s, int pairing, const char *settings)
{
    posenc_encoding *e = NULL;
    posenc_error     why;
    char             text[PE_SEARCH_TEXT], all[2 * PE_SEARCH_TEXT];
    snprintf(all, sizeof all, "%s %s", pairing_text(text, s, pairing), settings);
    return posenc_encoding_create(&e, s->base, all, &why) ? NULL : e;
}

void pe_theories_free(pe_theory *t)
{
    posenc_encoding_free(t->e);
    free(t->list);
    free(t->w);
}

/* Do these speeds, times a common step, go with what was measured? The step, or 0. */
static double common_step(const pe_paired *p, const pe_frame *f, double *sign)
{
    double above = 0, below = 0;
    *sign = 1;
    for (int64_t i = 0; i < f->M; i++) { /* from the slowest: its turn is not lost */
        const int64_t m = f->course.order[i];
        const double  w = f->course.w[m], got = p->w[m], sure = p->error[m] + 1e-7 * fabs(got);
        if (w == 0 || fabs(got) < 8 * p->error[m])
            continue;
        const double step  = below > 0 ? above / below : got / w;
        const double whole = got + 2 * pi * rint((step * w - got) / (2 * pi));
        above += w * whole / (sure * sure);
        below += w * w / (sure * sure);
    }
    const double step = below > 0 ? above / below : 1;
    int64_t      bad  = 0; /* a few may have been measured badly */
    for (int64_t m = 0; m < f->M; m++)
        bad += fabs(remainder(step * f->course.w[m] - p->w[m], 2 * pi)) * p->reach >
               0.6 + 12 * p->error[m] * p->reach;
    return bad > f->M / 12 ? 0 : step;
}

int pe_theories_departures(unsigned departs)
{
    int n = 0;
    for (; departs; departs &= departs - 1)
        n++;
    return n;
}

/* Is the size of the gains the encoding's? */
static void settle_size(pe_theory *t, const pe_search *s, const pe_frame *f)
{
    const pe_gains *g        = s->pairings[t->pairing].gains;
    const double    relative = fmax(1e-6, ldexp(1, -(int)s->rows->bits - 1));
    int             is_size  = 1;
    for (int side = 0; side < s->in->count; side++)
        is_size &= fabs(g->size[side] / f->course.size - 1) <= relative;
    for (int side = 0; side < 2; side++)
        t->size[side] = f->course.size;
    if (is_size)
        return;
    pe_theory other = *t;
    pe_left   mine, theirs;
    for (int side = 0; side < 2; side++)
        other.size[side] = g->size[side];
    pe_misfit_measure(t, s, f, 0, &mine);
    pe_misfit_measure(&other, s, f, 0, &theirs);
    if (t->misfit > 1 && t->misfit > other.misfit + 0.5) {
        const double got = other.size[0], wanted = f->course.size;
        *t = other;
        t->departs |= 1u << PE_MAGNITUDE;
        if (fabs(got - 1) > 0.004 && fabs(got / wanted / wanted - 1) > 0.004)
            t->cost += 12; /* neither never nor twice: another factor may say it better */
    }
}

/* Is there any position at all for a few of the rows? */
static int has_places(pe_search *s, pe_theory *t, const pe_frame *f, double *list)
{
    enum { FEW = 12 };
    const int all = s->look_count;
    int64_t   kept[PE_LOOK];
    pe_left   l;
    memcpy(kept, s->look, sizeof kept);
    if (all > 2 * FEW) {
        s->look_count = FEW;
        for (int i = 0; i < FEW; i++)
            s->look[i] = kept[(i * 2 + 1) * all / (2 * FEW)];
        pe_places_find(list, s, t->pairing, f, 0);
        settle_size(t, s, f);
        pe_misfit_measure(t, s, f, 0, &l);
        memcpy(s->look, kept, sizeof kept);
        s->look_count = all;
        if (t->misfit > 20)
            return 0;
    }
    pe_places_find(list, s, t->pairing, f, 0);
    settle_size(t, s, f);
    pe_misfit_measure(t, s, f, 0, &l);
    return t->misfit <= pe_same + 0.5;
}

void pe_theories_keep(pe_search *s, pe_theory *t)
{
    t->cost += 100 * pe_theories_departures(t->departs);
    if (s->theory_count < PE_MOST_THEORIES) {
        s->theories[s->theory_count++] = *t;
        return;
    }
    int worst = 0;
    for (int i = 1; i < s->theory_count; i++)
        worst = s->theories[i].cost > s->theories[worst].cost ? i : worst;
    if (s->theories[worst].cost <= t->cost) {
        pe_theories_free(t);
        return;
    }
    pe_theories_free(&s->theories[worst]);
    s->theories[worst] = *t;
}

static int is_permuted(const pe_search *s)
{
    int is_it = 0;
    for (int n = 0; n < s->N; n++)
        is_it |= s->axes[n] != n;
    return is_it;
}

int pe_theories_sure_cost(const pe_search *s)
{
    int best = 1000;
    for (int i = 0; i < s->theory_count; i++)
        if (s->theories[i].misfit <= 1.2 && s->theories[i].cost < best)
            best = s->theories[i].cost;
    return best;
}

int pe_theories_are_too_many(const pe_search *s, unsigned departs)
{
    return pe_theories_departures(departs) > pe_theories_sure_cost(s) / 100 + 1;
}

/* At the expected positions, either way round, or at those that its speeds tell, if they tell any. */
static int place_theory(pe_theory *t, pe_search *s, const pe_frame *f)
{
    pe_left l;
    for (int step = 1; step >= -1; step -= 2) {
        pe_theory plain = *t;
        plain.step      = step;
        plain.departs |= step < 0 ? 1u << PE_DIRECTION : 0;
        settle_size(&plain, s, f);
        pe_misfit_measure(&plain, s, f, 0, &l);
        pe_spec_say(plain.places, "as expected");
        if (plain.misfit <= pe_same + 0.5) {
            *t = plain;
            return 1;
        }
    }
    if (pe_theories_are_too_many(s, t->departs | (s->N > 1 ? 0 : 1u << PE_POSITIONS)))
        return 0;
    double *list = malloc((size_t)(s->rows->count * s->N) * sizeof *list);
    if (!list)
        return 0;
    t->list         = list;
    const int is_it = has_places(s, t, f, list);
    t->list         = NULL;
    if (!is_it) {
        free(list);
        return 0;
    }
    pe_places_find(list, s, t->pairing, f, 1);
    pe_places_settle(t, s, f, list);
    return !(t->list && is_permuted(s)); /* two causes, where any positions would do */
}

/* Kept where it leaves next to nothing over, 1 where nothing: else more digits may do better; 2: nothing, at
   positions of another step. Owns the encoding. */
static int try_frame(pe_search *s, pe_theory t, const pe_frame *f)
{
    pe_left l;
    for (int n = 0; n < PE_MOST_AXES; n++)
        t.axes[n] = s->axes[n];
    if (t.pairing)
        t.cost += pe_pairings_rank(s->pairings[t.pairing].pairing.dim, s->rows->D);
    int is_it = place_theory(&t, s, f);
    if (is_it)
        pe_misfit_measure(&t, s, f, 1, &l);
    const int is_near = is_it && t.misfit <= pe_same + 0.5;
    is_it             = !is_near || t.misfit > pe_same ? 0 : fabs(t.step) == 1 ? 1 : 2;
    if (is_near)
        pe_theories_keep(s, &t);
    else
        pe_theories_free(&t);
    return is_it;
}

int pe_theories_try(pe_search *s, int pairing, const char *settings, unsigned departs, int cost,
                    const char *words)
{
    pe_paired *p = &s->pairings[pairing];
    pe_frame   f;
    double     sign;
    pe_theory  t = {.departs = departs | p->departs, .cost = cost, .pairing = pairing, .step = 1};
    if (pe_theories_are_too_many(s, t.departs))
        return 0;
    t.e = pe_theories_encoding(s, pairing, settings);
    if (!t.e || !pe_frame_open(&f, s, t.e)) {
        posenc_encoding_free(t.e);
        return 0;
    }
    pe_spec_say(t.words, "%s", words);
    if ((t.departs & pe_to_schedule) && pe_spec_is_rescaled(posenc_encoding_spec(t.e), s->base))
        t.departs = (t.departs & ~pe_to_schedule) | pe_to_factor; /* met among other lengths */
    const int may_be =
        pe_frame_has_channels(&f, &p->pairing) && !(p->agreed > 0.9 && common_step(p, &f, &sign) == 0);
    const int is_it = may_be ? try_frame(s, t, &f) : 0;
    if (!may_be)
        pe_theories_free(&t);
    pe_frame_free(&f);
    return is_it;
}

/* The same pairs with any frequencies. */
static posenc_encoding *explicit_encoding(const pe_search *s, int pairing)
{
    posenc_encoding *e = NULL;
    posenc_error     why;
    char             text[PE_SEARCH_TEXT], all[2 * PE_SEARCH_TEXT];
    snprintf(all, sizeof all, "%s schedule=explicit", pairing_text(text, s, pairing));
    return posenc_encoding_create(&e, s->N > 1 ? s->base : "rope", all, &why) ? NULL : e;
}

/* Speeds from position 0 on are known better than those between tokens: at the expected positions [rows,N],
   or those of a list. Of a coordinate that is the same everywhere any speed will do that gives its angle: the
   one next to `expected`.
 */
static void sharpen(double *w, const pe_search *s, const pe_paired *p, const pe_course *expected,
                    const double *list)
{
    const pe_gains *g = p->gains;
    for (int64_t m = 0; m < g->M; m++) {
        const int n   = s->axes[expected->coordinate[m]];
        double    sum = 0, weight = 0, most = 0, low = INFINITY, high = -INFINITY;
        for (int64_t row = 0; row < s->rows->count; row++) {
            low  = fmin(low, pe_row_position(s->rows, row)[n]);
            high = fmax(high, pe_row_position(s->rows, row)[n]);
        }
        if (low == high)
            w[m] = expected->w[m];
        for (int64_t row = 0; row < s->rows->count; row++) {
            const int64_t i = row * g->M + m;
            const double  x = list ? list[row * s->N + n] : pe_row_position(s->rows, row)[n],
                         e  = remainder(g->angle[i] - w[m] * x, 2 * pi);
            sum += g->power[i] * x * e;
            weight += g->power[i] * x * x;
            most = fmax(most, fabs(e));
        }
        w[m] += weight > 0 && (most < 1 || low == high) ? sum / weight : 0;
    }
}

/* The other way round, if most turn so. */
static void turn_forward(double *w, int64_t M)
{
    int64_t back = 0;
    for (int64_t m = 0; m < M; m++)
        back += w[m] < 0 ? 1 : -1;
    for (int64_t m = 0; m < M && back > 0; m++)
        w[m] = -w[m];
}

/* Measured speeds [M]; is_elsewhere: at the whole positions that they tell themselves. NULL: memory is short.
 */
static double *measured_speeds(pe_search *s, int pairing, pe_frame *f, int is_elsewhere)
{
    const pe_paired *p    = &s->pairings[pairing];
    const size_t     rows = (size_t)(s->rows->count * s->N);
    double *w = malloc((size_t)f->M * sizeof *w), *list = is_elsewhere ? malloc(rows * sizeof *list) : NULL;
    if (!w || (is_elsewhere && !list)) {
        free(w);
        free(list);
        return NULL;
    }
    memcpy(w, p->w, (size_t)f->M * sizeof *w);
    if (list) {
        memcpy(f->course.w, w, (size_t)f->M * sizeof *w);
        pe_frame_sort(f);
        pe_places_find(list, s, pairing, f, 1);
        for (size_t i = 0; i < rows; i++)
            list[i] = rint(list[i]);
    }
    sharpen(w, s, p, &f->course, list);
    turn_forward(w, f->M);
    free(list);
    return w;
}

static int try_measured(pe_search *s, int pairing, int is_elsewhere)
{
    pe_paired *p = &s->pairings[pairing];
    pe_frame   f;
    pe_theory  t = {.departs = p->departs | pe_to_schedule, .cost = 60, .pairing = pairing, .step = 1};
    t.e          = pe_theories_encoding(s, pairing, "");
    int is_it    = 0;
    if (!t.e || !pe_frame_open(&f, s, t.e)) {
        posenc_encoding_free(t.e);
        return 0;
    }
    pe_spec_say(t.words, "no schedule that is known gives them");
    t.w = f.M == p->pairing.dim / 2 ? measured_speeds(s, pairing, &f, is_elsewhere) : NULL;
    if (t.w)
        memcpy(f.course.w, t.w, (size_t)f.M * sizeof *t.w);
    posenc_encoding *e = explicit_encoding(s, pairing);
    if (e) {
        posenc_encoding_free(t.e);
        t.e = e;
    }
    if (t.w && pe_frame_has_channels(&f, &p->pairing)) {
        pe_frame_sort(&f);
        is_it = try_frame(s, t, &f);
    } else
        pe_theories_free(&t);
    pe_frame_free(&f);
    return is_it;
}

/* Positions of no rule that are no whole numbers: speeds that were told at the expected ones may be a little
   off. */
static int is_broken(const pe_search *s, const pe_theory *t)
{
    int is_it = 0;
    for (int64_t i = 0; t->list && i < s->rows->count * s->N; i++)
        is_it |= t->list[i] != rint(t->list[i]);
    return is_it;
}

/* What no schedule gives may still be a rotation: with the speeds that were measured. */
void pe_theories_try_measured(pe_search *s, int pairing)
{
    const int count = s->theory_count;
    if (s->pairings[pairing].agreed <= 0.9)
        return;
    int is_it = try_measured(s, pairing, 0);
    if (is_it && s->theory_count > count && is_broken(s, &s->theories[count])) {
        s->theories[count].cost += 5;
        is_it = 0;
    }
    if (!is_it)
        try_measured(s, pairing, 1);
}

int pe_theories_best_cost(const pe_search *s)
{
    int best = 1000;
    for (int i = 0; i < s->theory_count; i++)
        best = s->theories[i].cost < best ? s->theories[i].cost : best;
    return best;
}

/* Is there one of at most this cost that leaves hardly anything over? Fewer bits may explain the rest of
 * others. */
int pe_theories_has(const pe_search *s, int cost)
{
    int has = 0;
    for (int i = 0; i < s->theory_count; i++)
        has |= s->theories[i].cost <= cost && s->theories[i].misfit <= 1.2;
    return has;
}

int pe_theories_explain(const pe_search *s)
{
    int is_it = 0;
    for (int i = 0; i < s->theory_count; i++)
        is_it |= s->theories[i].low || s->theories[i].misfit <= pe_same;
    return is_it;
}
