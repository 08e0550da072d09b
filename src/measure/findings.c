/* SPDX-License-Identifier: MIT */
/*
 * findings.c: the list of findings, and the word for each number
 *
 * One table: each measure with its property, its title, its unit, and the rule that turns the number into a
 * word. A rule is a short list of limits; the first that the number does not exceed gives the word. Limits
 * are far from what any encoding measures (docs/properties.md shows how far), so that no word depends on a
 * last digit. A rule sees only the number, and for times, which are never the same twice, its spread: if two
 * numbers are exchanged, so are the words.
 */
#include "measure/measure.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { STEPS = 4 };

/* The word for numbers up to `limit`. */
typedef struct step {
    double      limit;
    const char *word;
} step;

/* Round-off of sums in float64, squared where the measure is a share of squares. */
#define EXACT 1e-20

#define ANY INFINITY
/* clang-format off */
static const struct {
    const char *property, *title, *unit;
    const char *nothing; /* the word for NaN, and for a time whose spread spans two words */
    step        steps[STEPS];
} measures[] = {
    {"uniqueness",   "nearest pair, |p_i - p_j| / rms",      "",  NULL,
     {{0, "repeats"}, {0.01, "nearly repeats"}, {ANY, "unique"}}},
    {"uniqueness",   "rows distinct in bf16",                "share", NULL,
     {{0.999999, "repeats"}, {ANY, "all distinct"}}},
    {"uniqueness",   "rows distinct, positions in bf16",     "share", NULL,
     {{0.999999, "repeats"}, {ANY, "all distinct"}}},
    {"uniqueness",   "smallest gap between two distances",   "", NULL, {{0, "repeats"}, {ANY, "unique"}}},
    {"uniqueness",   "distances told apart by the scores",   "share", NULL,
     {{0, "none"}, {0.999999, "the nearest"}, {ANY, "all"}}},
    {"uniqueness",   "last distance with a new score",       "tokens", NULL, {{0, NULL}}},
    {"relativity",   "p(i+k) from p(i), residual r(k)",      "",  "too short",
     {{EXACT, "relative"}, {1e-3, "nearly relative"}, {0.5, "partly"}, {ANY, "not relative"}}},
    {"relativity",   "dot products unexplained by offset, tau", "",  "constant",
     {{EXACT, "relative"}, {1e-3, "nearly relative"}, {0.9, "partly"}, {ANY, "not relative"}}},
    {"relativity",   "scores unexplained by offset, eta",    "",  "no position in the scores",
     {{EXACT, "relative"}, {0.1, "nearly relative"}, {ANY, "absolute"}}},
    {"direction",    "odd share of the mean scores",         "",  "no position in the scores",
     {{EXACT, "past and future alike"}, {ANY, "past and future differ"}}},
    {"score terms",  "content-content",                      "rms", NULL, {{0, NULL}}},
    {"score terms",  "content-position",                     "rms", NULL, {{0, NULL}}},
    {"score terms",  "position-content",                     "rms", NULL, {{0, NULL}}},
    {"score terms",  "position-position",                    "rms", NULL, {{0, NULL}}},
    {"score terms",  "|sum of the four - score|, largest",   "",  NULL,
     {{1e-9, "they add up"}, {ANY, "they do not add up"}}},
    {"equivariance", "max |f(Px) - P f(x)|, no mask",        "",  NULL,
     {{1e-5, "blind to order"}, {1e-2, "hardly sees order"}, {ANY, "sees order"}}},
    {"equivariance", "max |f(Px) - P f(x)|, causal",         "",  NULL,
     {{1e-5, "blind to order"}, {1e-2, "hardly sees order"}, {ANY, "sees order"}}},
    {"decay",        "Spearman's rho of distance and score", "",  "constant",
     {{-0.9, "decays"}, {-0.5, "tends to decay"}, {0.5, "no trend"}, {ANY, "grows"}}},
    {"decay",        "steps that do not rise",               "share", "constant",
     {{0.999999, "sometimes rises"}, {ANY, "never rises"}}},
    {"decay",        "half distance",                        "tokens", NULL, {{0, NULL}}},
    {"decay",        "score",                                "",  NULL, {{0, NULL}}},
    {"decay",        "90 % of the mass of softmax(bias)",    "tokens", NULL, {{0, NULL}}},
    {"decay",        "attention resolution",                 "",  NULL, {{0, NULL}}},
    {"grid",         "squares of the rows' means",           "share", NULL, {{0, NULL}}},
    {"grid",         "squares of the columns' means",        "share", NULL, {{0, NULL}}},
    {"grid",         "rows and columns, beyond chance",      "",  NULL,
     {{0.1, "neither rows nor columns"}, {0.9, "partly rows and columns"}, {ANY, "rows and columns"}}},
    {"cost",         "trained parameters",                   "",  NULL,
     {{0, "learns nothing"}, {ANY, "learns"}}},
    {"cost",         "further operations per token",         "FLOP", NULL, {{0, NULL}}},
    {"cost",         "further workspace per token",          "bytes", NULL, {{0, NULL}}},
    {"cost",         "tokens/s relative to nope",            "", "too close to a limit to say",
     {{0.5, "slow"}, {0.9, "slower"}, {ANY, "as fast"}}},
};
/* clang-format on */
static_assert(sizeof measures / sizeof *measures == PE_MEASURES, "ORDER pe_measure");

const char *pe_findings_property(pe_measure m)
{
    return measures[m].property;
}

const char *pe_findings_title(pe_measure m)
{
    return measures[m].title;
}

const char *pe_findings_unit(pe_measure m)
{
    return measures[m].unit;
}

const char *pe_findings_word(pe_measure m, double value)
{
    const step *at = measures[m].steps;
    if (isnan(value))
        return measures[m].nothing;
    while (at->word && value > at->limit)
        at++;
    return at->word;
}

/* A time differs from run to run: its word must hold for the whole spread. */
static const char *word_of(const pe_finding *f)
{
    if (f->measure != PE_SPEED)
        return pe_findings_word(f->measure, f->value);
    const char *low = pe_findings_word(f->measure, f->value - f->spread);
    return low == pe_findings_word(f->measure, f->value + f->spread) ? low
                                                                     : pe_findings_word(f->measure, NAN);
}

void pe_findings_add(pe_findings *to, pe_measure m, double value, double spread, const char *detail, ...)
{
    assert(to->count < PE_MOST_FINDINGS);
    pe_finding *row = &to->rows[to->count++];
    *row            = (pe_finding){.measure = m, .value = value, .spread = spread};
    va_list list;
    va_start(list, detail);
    vsnprintf(row->detail, sizeof row->detail, detail, list);
    va_end(list);
    row->verdict = word_of(row);
}
