/* SPDX-License-Identifier: MIT */
/* What was found, and what to change, in words. */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
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

static void advise_setting(pe_diagnosis *d, const char *name, const char *otherwise, const char *fix)
{
    char got[64], wanted[64];
    pe_spec_value(got, d->found.spec, name, otherwise);
    pe_spec_value(wanted, d->expected.spec, name, otherwise);
    if (strcmp(got, wanted))
        pe_fixes_add(&d->advice, "%s is %s, and should be %s%s", name, got, wanted, fix);
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

static void advise_layout(pe_diagnosis *d)
{
    char got[64], out[64];
    pe_spec_value(got, d->found.spec, "layout", "interleaved");
    pe_spec_value(out, d->found.spec, "layout_out", "same");
    pe_fixes_add(
        &d->advice,
        "the pairs are those of layout=%s, written as %s: rotate with layout=%s, or reorder the rows "
        "of q and k in the checkpoint (posenc permute --to %s)",
        got, !strcmp(out, "same") ? got : out,
        pe_spec_is_word(d->expected.spec, "layout", "half", 0) ? "half" : "interleaved", got);
}

static void advise_dim(pe_diagnosis *d)
{
    advise_setting(d, "dim", "the whole head", " (rotary_dim, partial_rotary_factor)");
    advise_setting(d, "offset_dim", "0", "");
    if (strstr(d->found.words, "exponent"))
        pe_fixes_add(&d->advice, "%s", d->found.words);
}

static void advise_schedule(pe_diagnosis *d)
{
    char got[64], wanted[64];
    pe_spec_value(got, d->found.spec, "schedule", "default");
    pe_spec_value(wanted, d->expected.spec, "schedule", "default");
    if (strstr(d->found.words, "no schedule"))
        pe_fixes_add(&d->advice,
                     "the frequencies are those of no schedule that is known, and should be of schedule=%s: "
                     "compare them one by one (--json lists what was measured)",
                     wanted);
    else
        pe_fixes_add(
            &d->advice,
            "the frequencies are those of schedule=%s, and should be of schedule=%s (rope_scaling)%s%s", got,
            wanted, *d->found.words ? ": " : "", d->found.words);
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
        advise_setting(d, "base", "10000", " (rope_theta)");
    if (x >> PE_SCHEDULE & 1)
        advise_schedule(d);
    if (x >> PE_FACTOR & 1) {
        advise_setting(d, "factor", "none", "");
        advise_setting(d, "alpha", "none", "");
    }
    if (x >> PE_POSITIONS & 1)
        pe_fixes_add(&d->advice, "positions are %s, and should be as expected", d->found.positions);
    if (x >> PE_MAGNITUDE & 1)
        advise_magnitude(d, wanted_size);
    if (x >> PE_AXES & 1)
        advise_axes(d);
    if (x >> PE_ANGLES & 1)
        advise_angles(d);
}
