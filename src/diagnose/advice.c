/* SPDX-License-Identifier: MIT */
/* What was found, and what to change, in words. */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pe_advice_read(pe_reading *r, const pe_theory *t)
{
    *r = (pe_reading){.departs = t->departs, .step = t->step, .offset = t->offset, .mismatch = t->misfit};
    snprintf(r->spec, sizeof r->spec, "%s", posenc_encoding_spec(t->e));
    if (t->departs & pe_to_schedule)
        pe_spec_strip(r->spec);
    snprintf(r->words, sizeof r->words, "%s", t->words);
    snprintf(r->positions, sizeof r->positions, "%s", t->places);
    memcpy(r->axes, t->axes, sizeof r->axes);
    r->magnitude = t->size[0];
    snprintf(r->angles, sizeof r->angles, "%s", pe_misfit_angles(t));
}

/* 8 and 8.0 are one value. */
static int is_one_value(const char *a, const char *b)
{
    char        *end_a, *end_b;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return !strcmp(a, b) || (end_a > a && end_b > b && !*end_a && !*end_b && x == y);
}

/* Settings in the order of SPECs: what they are where a SPEC does not say them, and where a config does. */
static const struct {
    pe_departure departure;
    const char  *name, *otherwise, *fix;
} settings[] = {
    {PE_LAYOUT, "layout", "interleaved", ""},
    {PE_LAYOUT, "layout_out", "same", ""},
    {PE_DIM, "dim", "the whole head", " (rotary_dim, partial_rotary_factor)"},
    {PE_DIM, "offset_dim", "0", ""},
    {PE_BASE, "base", "10000", " (rope_theta)"},
    {PE_SCHEDULE, "schedule", "default", ""},
    {PE_FACTOR, "factor", "none", ""},
    {PE_FACTOR, "alpha", "none", ""},
    {PE_SCHEDULE, "mixed_b", "none", ""},
    {PE_SCHEDULE, "original_length", "none", " (original_max_position_embeddings)"},
    {PE_SCHEDULE, "max_length", "none", " (max_position_embeddings)"},
    {PE_SCHEDULE, "beta_fast", "32", ""},
    {PE_SCHEDULE, "beta_slow", "1", ""},
    {PE_SCHEDULE, "truncate", "yes", ""},
    {PE_SCHEDULE, "extrapolation_factor", "1", ""},
    {PE_SCHEDULE, "low_freq_factor", "none", ""},
    {PE_SCHEDULE, "high_freq_factor", "none", ""},
    {PE_SCHEDULE, "partial_rotary_factor", "none", ""},
    {PE_SCHEDULE, "max_freq", "none", ""},
    {PE_SCHEDULE, "linear_bands", "yes", ""},
    {PE_AXES, "axis_rule", "sections", ""},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Those of one departure; how many differ. */
static int advise_settings(pe_diagnosis *d, pe_departure departure)
{
    char got[64], wanted[64];
    int  count = 0;
    for (int i = 0; i < SETTINGS; i++) {
        pe_spec_value(got, d->found.spec, settings[i].name, settings[i].otherwise);
        pe_spec_value(wanted, d->expected.spec, settings[i].name, settings[i].otherwise);
        if (settings[i].departure != departure || is_one_value(got, wanted))
            continue;
        pe_fixes_add(&d->advice, "%s is %s, and should be %s%s", settings[i].name, got, wanted,
                     settings[i].fix);
        count++;
    }
    return count;
}

static void advise_magnitude(pe_diagnosis *d, double wanted)
{
    const double got = d->found.magnitude;
    if (fabs(got / wanted / wanted - 1) < 0.004 && fabs(wanted - 1) > 0.004)
        pe_fixes_add(&d->advice, "the magnitude %.6g is applied twice: leave one of the two out", wanted);
    else if (fabs(got - 1) < 0.004)
        pe_fixes_add(&d->advice, "the magnitude %.6g is never applied: multiply cosine and sine by it",
                     wanted);
    else
        pe_fixes_add(&d->advice, "cosine and sine are multiplied by %.6g, and should be by %.6g", got,
                     wanted);
}

/* "16:24:24"; "equal" where the SPEC has none. */
static void sections_of(char text[64], const char *spec)
{
    const char  *at = strstr(spec, "sections=");
    const size_t n  = at ? strspn(at + 9, "0123456789:") : 0;
    snprintf(text, 64, "%.*s", at ? (int)(at[8 + n] == ':' ? n - 1 : n) : 5, at ? at + 9 : "equal");
}

/* ", coordinates in the order 0,2,1"; "" where they are not taken for each other. */
static const char *order_of(char text[64], const pe_diagnosis *d)
{
    char axes[16];
    int  count = (int)pe_spec_number(d->found.spec, "axes", 1), is_other = 0, used = 0;
    for (int n = 0; n < count && n < PE_MOST_AXES; n++) {
        is_other |= d->found.axes[n] != n;
        used +=
            snprintf(axes + used, sizeof axes - (size_t)used, "%s%d", n ? "," : "", d->found.axes[n] % 10);
    }
    text[0] = '\0';
    if (is_other)
        snprintf(text, 64, ", coordinates in the order %s", axes);
    return text;
}

/* Which channels are pairs, and in which order they are written. */
static void layouts_of(char in[64], char out[64], const pe_reading *r)
{
    pe_spec_value(in, r->spec, "layout", "interleaved");
    pe_spec_value(out, r->spec, "layout_out", "same");
    if (!strcmp(out, "same"))
        memcpy(out, in, 64);
}

static void advise_layout(pe_diagnosis *d)
{
    char got[64], out[64], wanted[64], wanted_out[64];
    layouts_of(got, out, &d->found);
    layouts_of(wanted, wanted_out, &d->expected);
    if (!strcmp(got, wanted))
        pe_fixes_add(
            &d->advice,
            "the pairs are as expected, but written as %s, not as %s: no fault where q and k are both "
            "written so (--set layout_out=%s then expects it)",
            out, wanted_out, out);
    else
        pe_fixes_add(&d->advice,
                     "the pairs are those of layout=%s, written as %s: rotate with layout=%s, or reorder the "
                     "rows of q and k in the checkpoint (posenc permute --to %s)",
                     got, out, wanted, got);
}

static void advise_dim(pe_diagnosis *d)
{
    advise_settings(d, PE_DIM);
    if (strstr(d->found.words, "exponent"))
        pe_fixes_add(&d->advice, "%s", d->found.words);
}

static void advise_schedule(pe_diagnosis *d)
{
    char        got[64], wanted[64];
    const char *words = d->found.words, *colon = *words ? ": " : "";
    pe_spec_value(got, d->found.spec, "schedule", "default");
    pe_spec_value(wanted, d->expected.spec, "schedule", "default");
    if (strstr(words, "no schedule"))
        pe_fixes_add(&d->advice,
                     "the frequencies are those of no schedule that is known, and should be of schedule=%s: "
                     "compare them one by one (--json lists what was measured)",
                     wanted);
    else if (strcmp(got, wanted))
        pe_fixes_add(&d->advice,
                     "the frequencies are those of schedule=%s, and should be of schedule=%s "
                     "(rope_scaling)%s%s",
                     got, wanted, colon, words);
    else if (!(advise_settings(d, PE_FACTOR) + advise_settings(d, PE_SCHEDULE)))
        pe_fixes_add(&d->advice, "the frequencies are not those that schedule=%s has here%s%s", wanted, colon,
                     words);
}

static void advise_axes(pe_diagnosis *d)
{
    char got[64], wanted[64], order[64];
    sections_of(got, d->found.spec);
    sections_of(wanted, d->expected.spec);
    if (strcmp(got, wanted))
        pe_fixes_add(&d->advice, "sections are %s, and should be %s (mrope_section)", got, wanted);
    pe_spec_value(got, d->found.spec, "axis_rule", "sections");
    pe_spec_value(wanted, d->expected.spec, "axis_rule", "sections");
    if (*order_of(order, d) || strcmp(got, wanted))
        pe_fixes_add(&d->advice, "pairs follow other coordinates: axis_rule=%s%s, and should be axis_rule=%s",
                     got, order, wanted);
}

static void advise_angles(pe_diagnosis *d)
{
    if (!strcmp(d->found.angles, "float32"))
        pe_fixes_add(&d->advice, "angles are those of float32, and angles=exact was asked for: compute "
                                 "frequencies and angles in float64");
    else
        pe_fixes_add(&d->advice,
                     "angles are those of %s: compute frequencies, positions and angles in float32 at least",
                     d->found.angles);
}

/* What to change, in plain words. */
void pe_advice_all(pe_diagnosis *d, double wanted_size)
{
    const unsigned x = d->departs;
    if (x >> PE_LAYOUT & 1)
        advise_layout(d);
    if (x >> PE_DIM & 1)
        advise_dim(d);
    if (x >> PE_DIRECTION & 1)
        pe_fixes_add(&d->advice, "it rotates the other way: change the sign of the sine");
    if (x >> PE_BASE & 1)
        advise_settings(d, PE_BASE);
    if (x >> PE_SCHEDULE & 1)
        advise_schedule(d);
    if ((x >> PE_FACTOR & 1) && !(x >> PE_SCHEDULE & 1))
        advise_settings(d, PE_FACTOR);
    if (x >> PE_POSITIONS & 1)
        pe_fixes_add(&d->advice, "positions are %s, and should be as expected", d->found.positions);
    if (x >> PE_MAGNITUDE & 1)
        advise_magnitude(d, wanted_size);
    if (x >> PE_AXES & 1)
        advise_axes(d);
    if (x >> PE_ANGLES & 1)
        advise_angles(d);
}

/* ---------------------------------------------------------------- what a SPEC leaves out ---- */

/* Where "name=" begins; NULL: it is not said. */
static char *place_of(char *spec, const char *name)
{
    const size_t n = strlen(name);
    for (char *at = spec; (at = strstr(at, name)) != NULL; at += n)
        if (at > spec && strchr("[:", at[-1]) && at[n] == '=')
            return at;
    return NULL;
}

/* Setting i as it is where nothing says it, before the next that is said. */
static void put_in(char spec[PE_SPEC], int i)
{
    char  text[128];
    char *at = NULL;
    for (int next = i + 1; next < SETTINGS && !at; next++)
        at = place_of(spec, settings[next].name);
    const int is_last = !at;
    if (is_last && !(at = strchr(spec, ']')))
        return;
    const int n =
        snprintf(text, sizeof text, is_last ? ":%s=%s" : "%s=%s:", settings[i].name, settings[i].otherwise);
    if (strlen(spec) + (size_t)n >= PE_SPEC)
        return;
    memmove(at + n, at, strlen(at) + 1);
    memcpy(at, text, (size_t)n);
}

void pe_advice_spell(pe_diagnosis *d)
{
    char got[64], wanted[64];
    pe_spec_value(got, d->found.spec, "schedule", "default");
    pe_spec_value(wanted, d->expected.spec, "schedule", "default");
    const int is_schedule = !strcmp(got, wanted);
    for (int i = SETTINGS - 1; i >= 0; i--) {
        const int is_found  = pe_spec_said(got, sizeof got, d->found.spec, settings[i].name),
                  is_wanted = pe_spec_said(wanted, sizeof wanted, d->expected.spec, settings[i].name),
                  is_number = settings[i].departure == PE_SCHEDULE && strcmp(settings[i].name, "schedule");
        if ((d->departs >> settings[i].departure & 1) && is_found != is_wanted &&
            (is_schedule || !is_number) && !strpbrk(settings[i].otherwise, " ") &&
            strcmp(settings[i].otherwise, "none"))
            put_in(is_found ? d->expected.spec : d->found.spec, i);
    }
}
