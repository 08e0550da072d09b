/* SPDX-License-Identifier: MIT */
/*
 * places.c: at which positions given speeds turn as the tensor does, and the rule in them
 *
 * A rule for all tokens (a step, an offset) is preferred to a list; of a list it is said what it looks like.
 */
#include "diagnose/search.h"

#include "base/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The coordinate that stands for number n: coordinates may have been taken for each other. */
static double expected(const pe_search *s, int64_t row, int n)
{
    return pe_row_position(s->rows, row)[s->axes[n]];
}

/* Positions [rows,N] at which these speeds give the gains: of the few rows, or of all. */
void pe_places_find(double *list, const pe_search *s, int pairing, const pe_frame *f, int is_all)
{
    const pe_gains *g = s->pairings[pairing].gains;
    const int64_t   n = is_all ? s->rows->count : s->look_count;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = is_all ? i : s->look[i];
        for (int a = 0; a < s->N; a++) {
            const double p       = pe_place(g, row, &f->course, a, expected(s, row, a));
            list[row * s->N + a] = fabs(p - rint(p)) < 0.02 ? rint(p) : p;
        }
    }
}

/* Expected positions that start again at 0 wherever nothing is turned; NULL where they never do. */
double *pe_places_restarted(const pe_search *s, int pairing)
{
    const pe_gains *g    = s->pairings[pairing].gains;
    double         *list = malloc((size_t)s->rows->count * sizeof *list), start = 0;
    int             count = 0;
    for (int64_t row = 0; list && row < s->rows->count; row++) {
        int64_t      b, l;
        const double p    = *pe_row_position(s->rows, row);
        double       most = 0;
        pe_row_side(s->rows, row, &b, &l);
        for (int64_t m = 0; m < g->M; m++)
            most = fmax(most, fabs(g->angle[row * g->M + m]));
        if (l > 0 && most < 0.02) {
            start = p;
            count++;
        }
        start     = l ? start : 0;
        list[row] = p - start;
    }
    if (!count) {
        free(list);
        list = NULL;
    }
    return list;
}

/* bfloat16 holds whole numbers up to 256, float16 up to 2048. */
int pe_places_are_unrounded(const pe_search *s, const double *list)
{
    int    is_whole = 1, is_fine = 0;
    double most = 0, away = 0;
    for (int64_t i = 0; i < s->rows->count * s->N; i++) {
        is_whole &= list[i] == rint(list[i]);
        is_fine |= pe_half_round_to_bf16(list[i]) != list[i];
        most = fmax(most, fabs(list[i]));
        away = fmax(away, fabs(list[i] - expected(s, i / s->N, (int)(i % s->N))));
    }
    return is_whole && away > 2 && (most <= 256 || (is_fine && most <= 2048));
}

/* Whole numbers where nearly all are nearly so. */
static void snap(double *list, int64_t n)
{
    int64_t near = 0;
    for (int64_t i = 0; i < n; i++)
        near += fabs(list[i] - rint(list[i])) < 0.08;
    for (int64_t i = 0; i < n && near >= n - n / 50; i++)
        list[i] = rint(list[i]);
}

/* step * expected + offset by least squares; the largest distance of a row from it. */
static double affine(const pe_search *s, const double *list, double *step, double *offset)
{
    double        sx = 0, sy = 0, sxx = 0, sxy = 0, worst = 0;
    const int64_t n = s->rows->count * s->N;
    for (int64_t i = 0; i < n; i++) {
        const double x = expected(s, i / s->N, (int)(i % s->N)), y = list[i];
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    const double spread = sxx - sx * sx / (double)n;
    *step               = spread > 0 ? (sxy - sx * sy / (double)n) / spread : 1;
    *offset             = (sy - *step * sx) / (double)n;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(list[i] - *step * expected(s, i / s->N, (int)(i % s->N)) - *offset));
    return worst;
}

/* ---- positions that follow no rule of all rows, in words ---- */

/* The coordinate that differs most from what is expected; is_constant: each is shifted by one number. */
static int farthest(int *is_constant, double shifts[PE_MOST_AXES], const pe_search *s, const double *list)
{
    int    at    = 0;
    double most  = -1;
    *is_constant = 1;
    for (int n = 0; n < s->N; n++) {
        double away = 0;
        shifts[n]   = list[n] - expected(s, 0, n);
        for (int64_t row = 0; row < s->rows->count; row++) {
            const double shift = list[row * s->N + n] - expected(s, row, n);
            away += fabs(shift);
            *is_constant &= fabs(shift - shifts[n]) < 1e-9;
        }
        if (away > most) {
            most = away;
            at   = n;
        }
    }
    return at;
}

static void describe_shifts(char words[PE_WORDS], const double *shifts, int count)
{
    int used = snprintf(words, PE_WORDS, "offset by ");
    for (int n = 0; n < count; n++)
        used += snprintf(words + used, PE_WORDS - (size_t)used, "%s%.6g", n ? ", " : "", shifts[n]);
    if (count > 1)
        snprintf(words + used, PE_WORDS - (size_t)used, ", a number for each coordinate");
}

void pe_places_describe(char words[PE_WORDS], const pe_search *s, const double *list)
{
    int64_t   first = -1, resets = 0, reset = -1, same_in_item = 1, repeats = 0, items = 0;
    double    least = INFINITY, most = -INFINITY, shifts[PE_MOST_AXES];
    int       is_constant;
    const int n      = farthest(&is_constant, shifts, s, list);
    char      of[40] = "";
    if (is_constant) {
        describe_shifts(words, shifts, s->N);
        return;
    }
    if (s->N > 1)
        snprintf(of, sizeof of, " (coordinate %d)", n);
    for (int64_t row = 0; row < s->rows->count; row++) {
        int64_t b, l;
        pe_row_side(s->rows, row, &b, &l);
        const int64_t start = row - l;
        const double  shift = list[row * s->N + n] - expected(s, row, n);
        const double  step  = l ? list[row * s->N + n] - list[(row - 1) * s->N + n] : 1,
                     wanted = l ? expected(s, row, n) - expected(s, row - 1, n) : 1;
        first               = first < 0 && shift != 0 ? l : first;
        items += l == 0;
        same_in_item &= shift == list[start * s->N + n] - expected(s, start, n);
        least = fmin(least, shift);
        most  = fmax(most, shift);
        if (step < -0.5 && wanted >= 0) {
            resets++;
            reset = reset < 0 ? l : reset;
        }
        repeats += step == 0 && wanted != 0;
    }
    if (same_in_item && items > 1)
        snprintf(words, PE_WORDS, "offset by a number of each item, from %.6g to %.6g%s", least, most, of);
    else if (resets)
        snprintf(words, PE_WORDS, "starting again at token %lld%s%s", (long long)reset,
                 resets > 1 ? ", and later" : "", of);
    else if (repeats * 4 > s->rows->count)
        snprintf(words, PE_WORDS, "the same for several tokens%s", of);
    else
        snprintf(words, PE_WORDS, "others from token %lld on, by %.6g to %.6g%s",
                 (long long)(first < 0 ? 0 : first), least, most, of);
}

/* Decides between the expected positions, a rule for all, and a list. */
void pe_places_settle(pe_theory *t, const pe_search *s, const pe_frame *f, double *list)
{
    double       step, offset;
    int          step_digits = 1, offset_digits = 1;
    const double worst  = affine(s, list, &step, &offset);
    double       extent = 1;
    for (int64_t row = 0; row < s->rows->count; row++)
        extent = fmax(extent, fabs(pe_row_position(s->rows, row)[0]));
    pe_theory rule = *t;
    pe_left   l;
    if (worst < 2 || worst < 0.02 * fabs(step)) {
        step        = pe_spec_nearest_round(step, 0.3 * fmin(0.1, fmax(worst, 1e-4)) / extent, &step_digits);
        offset      = fabs(offset) < fmax(0.04, 0.5 * worst)
                          ? 0
                          : pe_spec_nearest_round(offset, fmax(0.04, 0.5 * worst), &offset_digits);
        rule.step   = step;
        rule.offset = offset;
        pe_misfit_measure(&rule, s, f, 0, &l);
    }
    if ((worst < 2 || worst < 0.02 * fabs(step)) && rule.misfit <= pe_same + 0.5) {
        t->step   = step;
        t->offset = offset;
        free(list);
        t->departs |= step < 0 ? 1u << PE_DIRECTION : 0;
        t->departs |= fabs(step) != 1 || offset != 0 ? 1u << PE_POSITIONS : 0;
        t->cost += fabs(step) != 1 ? step_digits : 0;
        t->cost += fabs(step) < 1 || step != rint(step) ? 4 : 0; /* rather linear scaling */
        t->cost += offset != 0 ? offset_digits : 0;
        if (fabs(step) == 1 && offset == 0)
            snprintf(t->places, PE_WORDS, "as expected");
        else if (fabs(step) == 1)
            snprintf(t->places, PE_WORDS, "offset by %.10g", offset * step);
        else
            snprintf(t->places, PE_WORDS,
                     offset == 0 && step == 0 ? "all 0, so that nothing is rotated"
                     : offset != 0            ? "multiplied by %.10g, then offset by %.10g"
                                              : "multiplied by %.10g",
                     fabs(step), offset);
        return;
    }
    int64_t down = 0;
    for (int64_t i = 0; i < s->rows->count * s->N; i++)
        down += list[i] < -0.5;
    if (down > s->rows->count * s->N / 2) { /* the other way round, at positions that count up */
        t->departs |= 1u << PE_DIRECTION;
        t->step = -1;
    }
    snap(list, s->rows->count * s->N);
    t->list = list;
    t->departs |= 1u << PE_POSITIONS;
    t->cost += 20;
    pe_places_describe(t->places, s, list);
}
