/* SPDX-License-Identifier: MIT */
/*
 * scores.c: what made one tensor of scores of another: a bias, a scale, a temperature, a softcap, a mask
 *
 * The idea   Masked scores are apart by their size and tell the mask. The others are fitted by theories from
 *            the simplest on: nothing, a scale, a bias of each head and distance, a scale of each row, a cap,
 *            and two of these (scores_fit.c); the first that leaves nothing over is what happened. Then the
 *            bias is read (scores_bias.c) and the mask held against that which is expected, score by score.
 * Surprise   What is the same for all keys of a query changes no attention; BLOOM's slopes times the key's
 *            position are such a bias by distance and a number for each row, so these are taken off where
 *            nothing else fits.
 */
#include "diagnose/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The range of distances that are seen, if it is one; keys that no query of their item sees are padding. */
static int find_range(pe_range *r, const pe_fit *f, const posenc_tensor *t)
{
    int is_range = 1;
    *r           = (pe_range){f->Lk, -f->Lk};
    for (int64_t row = 0; row < f->B * f->Lq; row++)
        for (int64_t j = 0; j < f->Lk; j++)
            if (!pe_fit_is_hidden(pe_fit_score(t, row / f->Lq, 0, row % f->Lq, j))) {
                const int64_t d = pe_fit_distance(f, row % f->Lq, j);
                r->low          = d < r->low ? d : r->low;
                r->high         = d > r->high ? d : r->high;
            }
    for (int64_t k = 0; k < f->B * f->Lk; k++) {
        const int64_t b = k / f->Lk, j = k % f->Lk;
        int64_t       seen = 0, hid = 0;
        for (int64_t i = 0; i < f->Lq; i++) {
            const int64_t d       = pe_fit_distance(f, i, j);
            const int     is_seen = !pe_fit_is_hidden(pe_fit_score(t, b, 0, i, j));
            seen += is_seen;
            hid += !is_seen && d >= r->low && d <= r->high;
        }
        is_range &= !hid || !seen;
    }
    if (r->low <= -(f->Lk - 1))
        r->low = -f->Lk;
    if (r->high >= f->Lk - 1)
        r->high = f->Lk;
    return is_range;
}

/* No item of the batch sees this key: a batch is padded to its longest item, so of one query that is a mask.
 */
static int is_hidden_in_all(const pe_fit *f, int64_t j)
{
    int is_it = 1;
    for (int64_t b = 0; b < f->B; b++)
        is_it &= pe_fit_is_hidden(pe_fit_score(&f->in->after, b, 0, 0, j));
    return is_it;
}

/* Does a query see a key that it should not, or the other way round? It should see those of the range that
   the scores before have; keys that no query of their item sees are padding. */
static int is_other_mask(const pe_fit *f, const pe_range *wanted)
{
    const posenc_tensor *before = &f->in->before, *after = &f->in->after;
    for (int64_t k = 0; k < f->B * f->H * f->Lk; k++) {
        const int64_t b = k / (f->H * f->Lk), h = k / f->Lk % f->H, j = k % f->Lk;
        int64_t       seen = 0, wrong = 0;
        for (int64_t i = 0; i < f->Lq; i++) {
            const int64_t d       = pe_fit_distance(f, i, j);
            const int     is_seen = !pe_fit_is_hidden(pe_fit_score(after, b, h, i, j));
            const int     should =
                d >= wanted->low && d <= wanted->high && !pe_fit_is_hidden(pe_fit_score(before, b, h, i, j));
            seen += is_seen;
            wrong += is_seen != should;
        }
        if (wrong && (seen || (f->Lq == 1 && is_hidden_in_all(f, j))))
            return 1;
    }
    return 0;
}

const char *pe_scores_range_text(char text[PE_RANGE_TEXT], const pe_range *r, int64_t Lk)
{
    const int is_far = r->high >= Lk;
    if (r->low <= -Lk && is_far)
        snprintf(text, PE_RANGE_TEXT, "all keys");
    else if (is_far && (r->low == 0 || r->low == 1))
        snprintf(text, PE_RANGE_TEXT, "keys up to %s", r->low ? "the one before their own" : "their own");
    else if (is_far && r->low < 0)
        snprintf(text, PE_RANGE_TEXT, "keys up to %lld after their own", (long long)-r->low);
    else if (r->low == 0)
        snprintf(text, PE_RANGE_TEXT, "the last %lld keys up to their own", (long long)r->high + 1);
    else
        snprintf(text, PE_RANGE_TEXT, "keys from %lld before to %lld after their own", (long long)r->high,
                 (long long)-r->low);
    return text;
}

/* ---------------------------------------------------------------- the verdict --------------- */

static void depart(pe_scores_diagnosis *d, pe_departure what)
{
    d->departs |= 1u << what;
}

static void compare_caps(pe_scores_diagnosis *d, const pe_scores_reading *e)
{
    const pe_scores_reading *r = &d->found;
    if (r->caps == 2)
        pe_fixes_add(&d->advice, "scores are capped at %.6g twice%s", r->softcap,
                     e->softcap > 0 ? ": leave one of the two out" : ", and should not be");
    else if (fabs(r->softcap - e->softcap) <= 0.02 * fmax(r->softcap, e->softcap))
        return;
    else if (r->softcap > 0 && e->softcap > 0)
        pe_fixes_add(&d->advice, "scores are capped at %.6g, and should be at %.6g", r->softcap, e->softcap);
    else
        pe_fixes_add(&d->advice,
                     r->softcap > 0 ? "scores are capped at %.6g, and should not be"
                                    : "scores are not capped, and should be at %.6g",
                     fmax(r->softcap, e->softcap));
    depart(d, PE_SOFTCAP);
}

static void compare_masks(pe_scores_diagnosis *d, const pe_scores_reading *e, const pe_fit *f)
{
    char got[PE_RANGE_TEXT], wanted[PE_RANGE_TEXT];
    if (!is_other_mask(f, &e->seen))
        return;
    depart(d, PE_MASK);
    pe_scores_range_text(got, &d->found.seen, f->Lk);
    pe_scores_range_text(wanted, &e->seen, f->Lk);
    if (d->found.is_irregular)
        pe_fixes_add(
            &d->advice,
            "which keys a query sees is not told by their distance; it should see %s, of those that the "
            "scores before have",
            wanted);
    else
        pe_fixes_add(&d->advice, "queries see %s, and should see %s", got, wanted);
}

static void compare_rest(pe_scores_diagnosis *d, const pe_scores_reading *e, const pe_fit *f)
{
    const pe_scores_reading *r = &d->found;
    if (r->has_temperature != e->has_temperature) {
        depart(d, PE_TEMPERATURE);
        pe_fixes_add(
            &d->advice,
            r->has_temperature
                ? "rows are multiplied by %.6g to %.6g, and should all be by %.6g"
                : "all rows are multiplied by %.6g, and should be by a temperature of their position, from "
                  "%.6g to %.6g",
            r->first, r->has_temperature ? r->last : e->first, r->has_temperature ? e->scale : e->last);
    } else if (r->has_temperature && fmax(fabs(r->first / e->first - 1), fabs(r->last / e->last - 1)) >
                                         fmax(1e-3, ldexp(1, 1 - (int)f->bits))) {
        depart(d, PE_TEMPERATURE);
        pe_fixes_add(&d->advice, "rows are multiplied by %.6g to %.6g, and should be by %.6g to %.6g",
                     r->first, r->last, e->first, e->last);
    } else if (!r->has_temperature &&
               fabs(r->scale / e->scale - 1) > fmax(1e-5, ldexp(1, 1 - (int)f->bits))) {
        depart(d, PE_SCALE);
        pe_fixes_add(&d->advice, "scores are multiplied by %.6g, and should be by %.6g", r->scale, e->scale);
        d->alternatives[d->alternative_count] = (d->departs & ~(1u << PE_SCALE)) | 1u << PE_TEMPERATURE;
        snprintf(d->alternative_words[d->alternative_count++], PE_WORDS, "a temperature of %.6g",
                 e->scale / r->scale);
    }
    compare_caps(d, e);
    compare_masks(d, e, f);
}

static int64_t clipped(int64_t x, int64_t Lk)
{
    return x <= -(Lk - 1) ? -Lk : x >= Lk - 1 ? Lk : x;
}

/* A row of scales that hardly moves is one scale. */
static void read_scale(pe_scores_reading *r, const pe_fit *f, int what)
{
    r->scale = r->first = f->scale[0];
    r->last             = f->scale[f->Lq - 1];
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = f->Lq / 8; i < f->Lq; i++) {
        low  = fmin(low, f->scale[i]);
        high = fmax(high, f->scale[i]);
    }
    r->first           = low;
    r->last            = high;
    r->has_temperature = what & PE_FIT_ROWS && high / low - 1 > 1e-4;
    char text[32];
    for (int digits = 1; digits < 8; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, r->scale);
        if (fabs(strtod(text, NULL) / r->scale - 1) < ldexp(1, -(int)f->bits)) {
            r->scale = strtod(text, NULL);
            break;
        }
    }
}

static void read_fit(pe_scores_reading *r, const pe_fit *f, int what)
{
    read_scale(r, f, what);
    r->softcap = f->cap;
    r->caps    = f->caps;
    pe_bias_read(r, f, f->in->expected);
}

/* One query tells a bias by its rule alone. */
static int explain_query(pe_scores_diagnosis *d, pe_fit *f)
{
    const int is_it = pe_fit_lines(f) <= pe_scores_enough || pe_bias_each_buckets(f, f->in->expected);
    if (is_it) {
        d->residual = sqrt(f->rest / f->noise);
        read_fit(&d->found, f, 0);
    }
    return is_it;
}

/* What is expected comes first, also where something simpler would do: a cap that hardly bends anything,
   slopes of which one query tells too little. */
static int explain(pe_scores_diagnosis *d, pe_fit *f)
{
    enum { S = PE_FIT_SCALE, B = PE_FIT_BIAS, R = PE_FIT_ROWS, C = PE_FIT_CAP, F = PE_FIT_SHIFT };
    static const int theories[] = {
        0,     S,     B,     C,     S | B,     R,        C | PE_FIT_TWICE, C | S, C | S | PE_FIT_TWICE,
        B | F, C | B, R | B, C | R, S | B | F, C | S | B};
    const pe_scores_reading *e   = f->in->expected;
    const double             cap = e ? e->softcap : 0;
    if (e && !strcmp(e->encoding, "alibi") && !e->has_temperature) {
        d->residual = pe_fit_given(f, e->scale, e->slopes, cap);
        if (d->residual <= pe_scores_loose) {
            read_fit(&d->found, f, 0);
            return 1;
        }
    }
    for (int is_loose = 0; is_loose < 2;
         is_loose++) /* each step of a program rounds: four roundings are few */
        for (size_t i = 0; i < sizeof theories / sizeof *theories; i++)
            for (int way = cap > 0 ? 0 : 1; way < 2; way++) {
                d->residual = pe_fit_try(f, theories[i] | (way ? 0 : C), way ? 0 : cap);
                if (d->residual > (is_loose ? pe_scores_loose : pe_scores_enough))
                    continue;
                read_fit(&d->found, f, theories[i]);
                return 1;
            }
    return f->B * f->Lq == 1 && explain_query(d, f);
}

static posenc_status judge(pe_scores_diagnosis *d, pe_fit *f)
{
    const pe_scores_reading *e = f->in->expected;
    pe_range                 before;
    d->found.is_irregular = !find_range(&d->found.seen, f, &f->in->after);
    find_range(&before, f, &f->in->before);
    if (!explain(d, f)) {
        d->verdict = PE_UNEXPLAINED;
        pe_fixes_add(&d->advice, "no scale, temperature, bias by distance or softcap makes these scores of "
                                 "those before: are both of the same tokens and layer?");
        return POSENC_OK;
    }
    if (!e) {
        d->verdict = PE_FOUND;
        return POSENC_OK;
    }
    pe_scores_reading wanted  = *e;
    const int         is_said = e->seen.low <= e->seen.high;
    wanted.seen.low           = clipped(is_said ? e->seen.low : before.low, f->Lk);
    wanted.seen.high          = clipped(is_said ? e->seen.high : before.high, f->Lk);
    if (!is_said && before.low == -f->Lk && before.high == f->Lk && !d->found.is_irregular &&
        d->found.seen.low == 0)
        wanted.seen = d->found.seen; /* a causal mask beside the bias is no fault of the bias */
    pe_bias_compare(d, &wanted, f);
    compare_rest(d, &wanted, f);
    d->verdict = d->departs ? PE_DIFFERENT : PE_SAME;
    return POSENC_OK;
}

posenc_status pe_scores_judge(pe_scores_diagnosis *d, const pe_scores *in, posenc_error *err)
{
    const int64_t *n = in->after.shape;
    pe_fit         f;
    *d = (pe_scores_diagnosis){0};
    if (memcmp(in->before.shape, n, 4 * sizeof *n) || n[2] > n[3]) {
        *err = (posenc_error){
            .status  = POSENC_ERROR_SHAPE,
            .message = "diagnose: scores before and after must have one shape, [B,H,Lq,Lk] with Lq <= Lk"};
        return err->status;
    }
    posenc_status status = POSENC_ERROR_MEMORY;
    if (pe_fit_open(&f, in))
        status = judge(d, &f);
    else
        *err = (posenc_error){.status = status, .message = "diagnose: not enough memory"};
    pe_fit_close(&f);
    return status;
}

void pe_scores_diagnosis_free(pe_scores_diagnosis *d)
{
    free(d->found.slopes);
    d->found.slopes = NULL;
}
