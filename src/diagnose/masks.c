/* SPDX-License-Identifier: MIT */
/*
 * masks.c: which keys are seen, and which positions are used, against what should be
 *
 * A mask is described by few numbers (causal, window, padding), so its mistakes are looked for by trying
 * others until one gives the whole mask.
 */
#include "diagnose/diagnose.h"

#include <math.h>
#include <stdio.h>

static int is_allowed(const pe_seen *s, int64_t b, int64_t j)
{
    return !s->allowed || s->allowed[b * s->Lk + j];
}

/* Is the key to be seen? t = P(i) - P(j). */
static int is_wanted(const pe_seen *s, int64_t b, int64_t i, int64_t j)
{
    const int64_t t = i + s->Lk - s->Lq - j;
    return is_allowed(s, b, j) && (!s->causal || t >= 0) && (!s->window || (t < s->window && -t < s->window));
}

/* The first pair that differs, and how many there are. */
static int64_t count_wrong(const pe_seen *s, pe_seen_verdict *v)
{
    int64_t wrong = 0;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t i = 0; i < s->Lq; i++)
            for (int64_t j = 0; j < s->Lk; j++) {
                const int seen = s->seen[(b * s->Lq + i) * s->Lk + j] != 0;
                if (!is_allowed(s, b, i + s->Lk - s->Lq) || seen == is_wanted(s, b, i, j))
                    continue;
                if (!wrong++ && v) {
                    v->b = b;
                    v->i = i;
                    v->j = j;
                }
            }
    return wrong;
}

static int fits(const pe_seen *s)
{
    return count_wrong(s, NULL) == 0;
}

/* Which other rule gives this mask? */
static void find_cause(pe_seen_verdict *v, const pe_seen *s)
{
    pe_seen other = *s;
    for (other.window = 0; other.window <= s->Lk; other.window++)
        if (other.window != s->window && fits(&other)) {
            if (!other.window)
                snprintf(v->cause, sizeof v->cause, "the window of %lld keys is dropped",
                         (long long)s->window);
            else if (!s->window)
                snprintf(v->cause, sizeof v->cause,
                         "there is a window of %lld keys, of which the config knows "
                         "nothing",
                         (long long)other.window);
            else
                snprintf(v->cause, sizeof v->cause, "the window is %lld keys instead of %lld",
                         (long long)other.window, (long long)s->window);
            return;
        }
    other         = *s;
    other.allowed = NULL;
    if (s->allowed && fits(&other)) {
        snprintf(v->cause, sizeof v->cause, "padding is seen");
        return;
    }
    other        = *s;
    other.causal = !s->causal;
    if (fits(&other))
        snprintf(v->cause, sizeof v->cause, "%s",
                 s->causal ? "keys of the future are seen" : "keys of the future are hidden");
    else
        snprintf(v->cause, sizeof v->cause, "no other window, padding or direction fits");
}

pe_seen_verdict pe_seen_judge(const pe_seen *seen)
{
    pe_seen_verdict v = {0};
    v.wrong           = count_wrong(seen, &v);
    v.is_right        = v.wrong == 0;
    if (!v.is_right)
        find_cause(&v, seen);
    return v;
}

void pe_positions_judge(char cause[PE_CAUSE], const double *got, const double *wanted, int64_t n)
{
    int64_t first   = 0;
    int     shifted = 1, scaled = 1, again = n > 0 && got[0] == 0;
    cause[0] = '\0';
    while (first < n && got[first] == wanted[first])
        first++;
    if (first == n)
        return;
    double ratio = NAN;
    for (int64_t i = 0; i < n; i++)
        ratio = isnan(ratio) && wanted[i] != 0 ? got[i] / wanted[i] : ratio;
    for (int64_t i = 0; i < n; i++) {
        shifted &= got[i] - wanted[i] == got[0] - wanted[0];
        scaled &= got[i] == ratio * wanted[i];
        again &= got[i] == (double)i;
    }
    if (again)
        snprintf(cause, PE_CAUSE, "positions start again at 0 instead of %.10g", wanted[0]);
    else if (shifted)
        snprintf(cause, PE_CAUSE, "positions are off by %+.10g", got[0] - wanted[0]);
    else if (scaled)
        snprintf(cause, PE_CAUSE, "positions are multiplied by %.6g", ratio);
    else
        snprintf(cause, PE_CAUSE, "position %lld is taken for %.10g", (long long)wanted[first], got[first]);
}
