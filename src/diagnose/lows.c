/* SPDX-License-Identifier: MIT */
/*
 * lows.c: angles of fewer bits
 *
 * Where rounding moves angles by whole turns no speed and no position can be measured, so here theories are
 * tried as the other program would compute them: the expected numbers, those that fit the speeds nearly, then
 * usual ones.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bfloat16 = 0x1p-9; /* error of speeds of fewer bits */

/* Cells whose angle is small cannot be far off, whatever was rounded. */
static int may_be_low(const pe_search *s, const pe_theory *t, const pe_frame *f)
{
    const pe_gains *g   = s->pairings[t->pairing].gains;
    double          bad = 0, all = 0;
    for (int i = 0; i < s->look_count; i++) {
        const int64_t row = s->look[i];
        int64_t       b, l;
        const int64_t side = pe_row_side(s->rows, row, &b, &l);
        for (int64_t m = 0; m < g->M; m++) {
            const int64_t at = row * g->M + m;
            const double  a  = f->course.w[m] * pe_misfit_place(s, t, row, f->course.coordinate[m]);
            if (!(fabs(a) < 0.5) || !(fabs(a) > 0) || !(g->power[at] > 0))
                continue;
            const double d = pe_misfit_distance(g->z[at], pe_misfit_turned(t->size[side], a));
            bad += d > 0x1p-6 * fabs(a) + 0x1p-7 + 6 * sqrt(s->noisiness * g->noise[at] / g->power[at]);
            all++;
        }
    }
    return bad <= 0.04 * all;
}

/* A copy that the search owns. */
static void keep_low(pe_search *s, const pe_theory *t, const pe_frame *f)
{
    const size_t bytes = (size_t)(s->rows->count * s->N) * sizeof *t->list;
    pe_theory    copy  = *t;
    pe_left      l;
    posenc_error why;
    copy.list = t->list ? malloc(bytes) : NULL;
    if ((t->list && !copy.list) || posenc_encoding_create(&copy.e, posenc_encoding_spec(t->e), NULL, &why)) {
        free(copy.list);
        return;
    }
    if (copy.list)
        memcpy(copy.list, t->list, bytes);
    copy.departs |= 1u << PE_ANGLES;
    copy.cost += copy.low;
    pe_misfit_measure(&copy, s, f, 1, &l);
    pe_theories_keep(s, &copy);
}

/* Cells of a row that are far off at position p, as far as `most`; NAN: where the theory has it. */
static int bad_cells(const pe_search *s, const pe_theory *t, const pe_frame *f, int64_t row, double p,
                     int most)
{
    const pe_gains *g = s->pairings[t->pairing].gains;
    int64_t         b, l;
    const int64_t   side  = pe_row_side(s->rows, row, &b, &l);
    const double    heads = (double)s->rows->heads[side];
    int             bad   = 0;
    for (int64_t m = 0; m < g->M && bad <= most; m++) {
        const int64_t i = row * g->M + m;
        const double  d = pe_misfit_distance(
             g->z[i],
             pe_misfit_low(t->low, f->course.w[m],
                          isnan(p) ? pe_misfit_place(s, t, row, f->course.coordinate[m]) : p, t->size[side]));
        bad += !(g->power[i] * d * d <=
                 36 * (g->noise[i] * s->noisiness / heads + 1e-30)); /* NaN: too large for float16 */
    }
    return bad;
}

/* Fewer bits leave single cells over; a row of them is a token at another position. */
static int has_bad_row(const pe_search *s, const pe_theory *t, const pe_frame *f)
{
    int has = 0;
    for (int64_t row = 0; row < s->rows->count && !has && !pe_misfit_is_ggml(t->low); row++)
        has = bad_cells(s, t, f, row, NAN, (int)f->M / 2) > f->M / 2;
    return has;
}

static void try_low(pe_search *s, pe_theory *t, const pe_frame *f)
{
    pe_left l;
    t->low = 0;
    if (!may_be_low(s, t, f))
        return;
    pe_misfit_measure(t, s, f, 0, &l);
    const double plain = l.bad, misfit = t->misfit;
    for (int low = 1; low <= PE_LOWS; low++) {
        t->low = low;
        if (pe_misfit_is_ggml(low) && s->N > 1)
            continue;
        pe_misfit_measure(t, s, f, 0, &l);
        const int is_heard = l.bad <= 0.03 * l.cells && l.bad <= 0.3 * plain;
        if (is_heard || (t->misfit < 1 && t->misfit < misfit - 1)) { /* or many cells, each a little off */
            if (!has_bad_row(s, t, f))
                keep_low(s, t, f);
            return;
        }
    }
}

/* A theory that turns one way, with the magnitude of its encoding, and with that which was measured. */
static void try_low_sizes(pe_search *s, pe_theory u, const pe_frame *f)
{
    pe_frame         own;
    posenc_encoding *e = pe_frame_follow(&own, s, &u);
    if (e) {
        pe_theory t = u;
        t.e         = e;
        try_low_sizes(s, t, &own); /* which says its length, and so follows no more */
        pe_frame_free(&own);
        posenc_encoding_free(e);
    }
    const double *measured = s->pairings[u.pairing].gains->size;
    for (int side = 0; side < 2; side++)
        u.size[side] = f->course.size;
    try_low(s, &u, f);
    if (u.list || fabs(measured[0] / f->course.size - 1) <= 0.01)
        return;
    for (int side = 0; side < 2; side++)
        u.size[side] = measured[side];
    u.departs |= 1u << PE_MAGNITUDE;
    try_low(s, &u, f);
}

static void try_low_restarted(pe_search *s, pe_theory u, const pe_frame *f)
{
    u.list = s->N == 1 ? pe_places_restarted(s, u.pairing) : NULL;
    if (!u.list)
        return;
    for (int64_t row = 0; u.step < 0 && row < s->rows->count; row++)
        u.list[row] = -u.list[row];
    u.departs |= 1u << PE_POSITIONS;
    pe_places_describe(u.places, s, u.list);
    try_low_sizes(s, u, f);
    free(u.list);
}

enum { SHIFTS = 9 };

/* Offsets that some rows tell: small positions are the least rounded. How many there are, 0 among them. */
static int list_shifts(double list[SHIFTS], const pe_search *s, const pe_theory *t, const pe_frame *f)
{
    int count = 1;
    list[0]   = 0;
    for (int i = 0; i < SHIFTS - 1 && i < s->look_count; i++) {
        const int64_t row      = s->look[i];
        const double  expected = pe_row_position(s->rows, row)[0];
        const double  place = pe_place(s->pairings[t->pairing].gains, row, &f->course, 0, t->step * expected);
        const double  shift = rint(t->step * place - expected);
        int           is_new = fabs(shift) < 1e7;
        for (int k = 0; k < count; k++)
            is_new &= list[k] != shift;
        if (is_new)
            list[count++] = shift;
    }
    return count;
}

/* Is there one with fewer bits and at most one more departure? */
static int has_low(const pe_search *s)
{
    int has = 0;
    for (int i = 0; i < s->theory_count; i++)
        has |= s->theories[i].low > 0 && s->theories[i].cost < 300;
    return has;
}

/* ---- whole positions of no rule, at which no speed says anything ---- */

/* The position from which fewest cells are far off: near the last one, or anywhere. Returns whether few are.
 */
static int find_low_place(double *place, const pe_search *s, const pe_theory *t, const pe_frame *f,
                          int64_t row, double last)
{
    const double  near_by[] = {last + t->step, last, last + 2 * t->step, last - t->step, 0, t->step};
    const int     few       = (int)(0.03 * (double)f->M);
    const int64_t most      = s->length < 4000 ? 2 * (int64_t)s->length + 256 : 8256;
    int           least     = few + 1;
    for (int64_t k = 0; k < 6 + most && least > 0; k++) {
        const double p   = k < 6 ? near_by[k] : t->step * (double)(k - 6);
        const int    bad = bad_cells(s, t, f, row, p, least);
        if (bad < least) {
            least  = bad;
            *place = p;
        }
    }
    return least <= few;
}

/* Some rows first: where they have no place, none has. */
static int find_low_places(double *list, const pe_search *s, const pe_theory *t, const pe_frame *f)
{
    enum { FEW = 12 };
    int64_t wrong = 0;
    double  last  = 0;
    for (int i = 0; i < FEW; i++)
        if (!find_low_place(&last, s, t, f, (2 * i + 1) * s->rows->count / (2 * FEW), -1) && i < FEW / 2)
            return 0;
    for (int64_t row = 0; row < s->rows->count && wrong <= s->rows->count / 10; row++) {
        list[row] = last;
        wrong += !find_low_place(&list[row], s, t, f, row, last);
        last = list[row];
    }
    return wrong <= s->rows->count / 10;
}

/* Whatever the positions are, by the angles that fewer bits give them. */
static void try_low_places(pe_search *s, pe_theory t, const pe_frame *f)
{
    double *list = s->N == 1 ? malloc((size_t)s->rows->count * sizeof *list) : NULL;
    for (int low = 1; list && low <= PE_LOWS; low++) {
        t.low = low;
        if (pe_misfit_is_ggml(low) || !find_low_places(list, s, &t, f))
            continue;
        t.list = list;
        t.departs |= 1u << PE_POSITIONS;
        t.cost += 20;
        pe_places_describe(t.places, s, list);
        keep_low(s, &t, f);
        break;
    }
    free(list);
}

static void try_low_shifts(pe_search *s, pe_theory t, const pe_frame *f)
{
    double    shifts[SHIFTS];
    const int count = list_shifts(shifts, s, &t, f);
    for (int i = 0; i < count; i++) {
        pe_theory u = t;
        u.offset    = u.step * shifts[i];
        u.departs |= shifts[i] != 0 ? 1u << PE_POSITIONS : 0;
        pe_spec_say(u.places, shifts[i] != 0 ? "offset by %.10g" : "as expected", shifts[i]);
        try_low_sizes(s, u, f);
    }
}

static void try_low_steps(pe_search *s, pe_theory t, const pe_frame *f)
{
    static const double steps[] = {2, 0.5, 4, 0.25};
    const double        sign    = t.step;
    t.departs |= 1u << PE_POSITIONS;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !has_low(s); i++) {
        t.step = sign * steps[i];
        pe_spec_say(t.places, "multiplied by %.10g", steps[i]);
        try_low_sizes(s, t, f);
    }
}

/* is_wide: positions may be any. */
static void try_low_encoding(pe_search *s, int p, const char *settings, unsigned departs, int cost,
                             int is_wide)
{
    pe_frame  f;
    pe_theory t = {.departs = departs | s->pairings[p].departs, .cost = cost, .pairing = p};
    t.e         = pe_theories_encoding(s, p, settings);
    for (int n = 0; n < PE_MOST_AXES; n++)
        t.axes[n] = n;
    if (!t.e || !pe_frame_open(&f, s, t.e)) {
        posenc_encoding_free(t.e);
        return;
    }
    for (int inverse = 0; inverse < 2 && pe_frame_has_channels(&f, &s->pairings[p].pairing); inverse++) {
        t.step = inverse ? -1 : 1;
        t.departs |= inverse ? 1u << PE_DIRECTION : 0;
        try_low_restarted(s, t, &f);
        try_low_shifts(s, t, &f);
        try_low_steps(s, t, &f);
        for (int side = 0; side < 2; side++)
            t.size[side] = f.course.size;
        if (is_wide && !has_low(s))
            try_low_places(s, t, &f);
    }
    pe_frame_free(&f);
    posenc_encoding_free(t.e);
}

/* ---- numbers that give the measured speeds nearly ---- */

static void set_number(pe_family *f, int loose, double x)
{
    *(loose & PE_LOOSE_BASE ? &f->base : &f->factor) = x;
}

/* Cells that are far off at the expected positions, of some rows; counted until there are `least`. */
static int low_misses(const pe_search *s, const pe_theory *t, const pe_frame *f, int least)
{
    enum { FEW = 16 };
    const int64_t n   = s->rows->count < FEW ? s->rows->count : FEW;
    int           bad = 0;
    for (int64_t i = 0; i < n && bad < least; i++)
        bad += bad_cells(s, t, f, (2 * i + 1) * s->rows->count / (2 * n), NAN, least - bad);
    return bad;
}

/* Of the numbers from `from` on, by a ratio, the one with fewest misses of any fewer bits; the misses, or of
   `low` alone. */
static int scan_low(double *best, int *low, const pe_search *s, int p, pe_family f, int loose, double from,
                    double ratio, int steps)
{
    int       least = 1 << 30;
    const int first = *low ? *low : 1, last = *low ? *low : PE_LOWS;
    char      text[PE_SEARCH_TEXT];
    *best = from;
    for (int k = 0; k < steps; k++, from *= ratio) {
        pe_frame frame;
        set_number(&f, loose, from);
        pe_numbers_text(text, &f);
        posenc_encoding *e = pe_theories_encoding(s, p, text);
        if (e && pe_frame_open(&frame, s, e)) {
            for (int at = first; at <= last; at++) {
                const double size = frame.course.size;
                pe_theory    t    = {.low = at, .pairing = p, .step = 1, .size = {size, size}};
                memcpy(t.axes, s->axes, sizeof t.axes);
                const int bad = pe_misfit_is_ggml(at) ? least : low_misses(s, &t, &frame, least);
                if (bad < least) {
                    least = bad;
                    *best = from;
                    *low  = at;
                }
            }
            pe_frame_free(&frame);
        }
        posenc_encoding_free(e);
    }
    return least;
}

/* The number near that which was fitted by which fewest cells are far off, then rounder. */
static void scan_lows(pe_search *s, int p, pe_family f, int loose, unsigned departs)
{
    const double exact = loose & PE_LOOSE_BASE ? f.base : f.factor;
    double       best  = exact, near_by;
    int          low   = 0;
    char         text[PE_SEARCH_TEXT], number_text[40];
    scan_low(&best, &low, s, p, f, loose, exact * 0.98, 1.0004, 101);
    const int least = scan_low(&near_by, &low, s, p, f, loose, best * 0.9996, 1.00002, 41);
    if (least > 0.04 * 16 * (double)s->pairings[p].gains->M)
        return;
    for (int digits = 1; digits <= 7 && !has_low(s); digits++) {
        const double x = strtod(pe_spec_fewest_digits(number_text, near_by, digits), NULL);
        if (fabs(x / near_by - 1) > 6e-5)
            continue;
        set_number(&f, loose, x);
        pe_numbers_text(text, &f);
        try_low_encoding(s, p, text, departs, 2 * digits, 0);
    }
}

/* With as few digits as do. */
static void fit_low(pe_search *s, int p, pe_family f, int loose, unsigned departs)
{
    char      text[PE_SEARCH_TEXT], last[PE_SEARCH_TEXT] = "", number_text[40];
    const int count = s->theory_count;
    if (!pe_numbers_fit(&f, s, p, loose))
        return;
    const pe_family exact = f;
    for (int digits = 1; digits <= 5 && s->theory_count == count; digits++) {
        const double x = loose & PE_LOOSE_BASE ? exact.base : exact.factor,
                     y = strtod(pe_spec_fewest_digits(number_text, x, digits), NULL);
        set_number(&f, loose, y);
        pe_numbers_text(text, &f);
        if (f.base > 1 && strcmp(text, last) && fabs(log(y / x)) < 0.1)
            try_low_encoding(s, p, text, departs, 2 * digits, 0);
        snprintf(last, sizeof last, "%s", text);
    }
    if (s->theory_count == count && !has_low(s))
        scan_lows(s, p, exact, loose, departs);
}

/* The expected schedule with another base or factor, no schedule, and each of the others. */
static void fit_lows(pe_search *s, int p)
{
    static const double      lengths[] = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 131072};
    static const char *const named[]   = {"schedule=yarn original_length=%.10g",
                                          "schedule=llama3 original_length=%.10g low_freq_factor=1 "
                                            "high_freq_factor=4"};
    char                     schedule[64], text[PE_SEARCH_TEXT];
    const int                has =
        pe_spec_said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    const char  *key         = !has ? NULL : !strcmp(schedule, "ntk") ? "alpha" : "factor";
    const double base        = pe_spec_number(s->base, "base", 1e4),
                 factor      = key ? pe_spec_number(s->base, key, 0) : 0;
    const pe_family expected = {"", factor > 0 ? key : NULL, base, factor > 0 ? factor : 1};
    if (s->N > 1)
        pe_numbers_of_axes(s, p, "");
    s->coarse = bfloat16;
    if (!has_low(s)) { /* another base and another factor may be one rotation: both are kept */
        fit_low(s, p, expected, PE_LOOSE_BASE, pe_to_base);
        if (expected.key)
            fit_low(s, p, expected, PE_LOOSE_FACTOR, pe_to_factor);
    }
    if (has && !has_low(s))
        fit_low(s, p, (pe_family){"schedule=default", NULL, base, 1}, PE_LOOSE_BASE,
                pe_to_base | pe_to_schedule);
    if (!has_low(s))
        fit_low(s, p, (pe_family){"schedule=linear", "factor", base, 2}, PE_LOOSE_FACTOR, pe_to_schedule);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths * 2 && !has_low(s); i++) {
        snprintf(text, sizeof text, named[i % 2], lengths[i / 2]);
        fit_low(s, p, (pe_family){text, "factor", base, 4}, PE_LOOSE_FACTOR, pe_to_schedule);
    }
    s->coarse = pe_fine;
}

/* Where speeds cannot be measured: numbers that are often met. */
static void guess_lows(pe_search *s, int p)
{
    static const double bases[] = {1e2, 1e3, 1e4, 2e4, 1e5, 1.5e5, 1.6e5, 5e5, 1e6, 2e6, 4e6, 5e6, 8e6, 1e7};
    static const char *const scaled[] = {
        "schedule=llama3 factor=8 original_length=8192 low_freq_factor=1 high_freq_factor=4",
        "schedule=llama3 factor=32 original_length=8192 low_freq_factor=1 high_freq_factor=4",
        "schedule=yarn factor=4 original_length=32768",
        "schedule=yarn factor=4 original_length=4096",
        "schedule=yarn factor=32 original_length=4096",
        "schedule=yarn factor=40 original_length=4096"};
    static const double factors[] = {1.5, 2, 3, 4, 6, 8, 10, 16, 20, 32, 40, 64};
    char                text[PE_SEARCH_TEXT], schedule[64];
    const int           has =
        pe_spec_said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        snprintf(text, sizeof text, "base=%.10g", bases[i]);
        if (bases[i] != pe_spec_number(s->base, "base", 1e4))
            try_low_encoding(s, p, text, pe_to_base, 2, 0);
    }
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const char *key = has && !strcmp(schedule, "ntk") ? "alpha" : "factor";
        snprintf(text, sizeof text, "%s %s=%.10g", has ? "" : "schedule=linear", key, factors[i]);
        if (factors[i] != pe_spec_number(s->base, key, 1))
            try_low_encoding(s, p, text, has ? pe_to_factor : pe_to_schedule, 2, 0);
    }
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled && !has && !has_low(s); i++)
        try_low_encoding(s, p, scaled[i], pe_to_schedule, 2, 0);
}

/* Pairs that follow other coordinates than they should. */
static void try_low_axes(pe_search *s, int p, const char *settings, unsigned departs)
{
    if (departs && !has_low(s))
        try_low_encoding(s, p, settings, departs, 2, 0);
}

/* A rule of two departures that leaves nothing of a tensor in float32 over is no chance: fewer bits would
   leave thousands of its roundings. */
static int is_told(const pe_search *s)
{
    int is_it = 0;
    for (int i = 0; i < s->theory_count && s->rows->bits > 20; i++) {
        const pe_theory *t = &s->theories[i];
        is_it |= !t->low && (!t->list || pe_places_are_unrounded(s, t->list)) && !t->w && t->cost < 300 &&
                 t->misfit <= 1.2;
    }
    return is_it;
}

void pe_lows_try(pe_search *s)
{
    char      schedule[64];
    const int has =
        pe_spec_said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    for (int p = 0; p < s->pairing_count && p < 12; p++) {
        if (!pe_pairings_is_rotation(s, &s->pairings[p]))
            continue;
        try_low_encoding(s, p, "", 0, 0, !pe_theories_explain(s));
        if (has)
            try_low_encoding(s, p, "schedule=default", pe_to_schedule, 0, !pe_theories_explain(s));
        if (s->N > 1 && !has_low(s))
            pe_axes_each(s, p, try_low_axes);
        if (pe_theories_has(s, 125) || is_told(s)) /* positions of no rule may be rounded ones; no more */
            continue;
        if (p && 100 * (pe_theories_departures(s->pairings[p].departs) + 2) > pe_theories_sure_cost(s))
            continue; /* other pairs, fewer bits and another number: less explains it */
        fit_lows(s, p);
        if (!has_low(s))
            guess_lows(s, p);
    }
}
