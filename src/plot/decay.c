/* SPDX-License-Identifier: MIT */
/*
 * decay.c: scores of turned vectors by distance, and where attention goes by them
 *
 *   similarity  q.k / D for q = k = (1, ..., 1)
 *   decay       the same for ones, for U[0,1] and for N(0,1): mean over draws, and the band of the middle 80
 *               %; turned by the encoding's frequencies (a panel per base), and all pairs by one
 *   mass        the share of the attention, softmax of q.k / sqrt(D), that the nearest keys have
 *
 * Why three contents: the fall with distance that tutorials show belongs to vectors with a common mean. Of
 * ones it is mean cos(t w_m), of U[0,1] on the average a quarter of that; of vectors with mean zero every
 * score has mean zero, at any distance. Why one theta: cos(t theta) comes back, so the fall is the work of
 * many. The one taken is the middle of the encoding's own. Where a factor changes with the position (xPos)
 * the fall is that factor's work too, and one theta would show another encoding: that panel is left out, and
 * the title says so.
 */
#include "plot/turns.h"

#include <math.h>
#include <string.h>

static int wanted_contents(const pe_sketch *s)
{
    return s->data->contents ? s->data->contents : PE_ONES | PE_UNIFORM | PE_NORMAL;
}

static int content_count(const pe_sketch *s)
{
    int count = 0;
    for (int c = 0; c < PE_CONTENTS; c++)
        count += (wanted_contents(s) & pe_contents[c].flag) != 0;
    return count;
}

/* What the bands are, for the title; nothing without a random content. */
static void name_bands(pe_sketch *s, const char *what)
{
    const int64_t draws = pe_draws(s);
    s->what             = what;
    if (wanted_contents(s) & ~PE_ONES)
        s->what = pe_take_text(s, "%s\nmean, and the middle 80 %% of %lld draws", what, (long long)draws);
}

/* ---------------------------------------------------------------- decay --------------------- */

/* One panel: every content, turned by e, or by one theta where e is NULL. */
static void set_scores(pe_sketch *s, pe_figure *f, const posenc_encoding *e, const pe_one_theta *one)
{
    const int64_t n      = s->data->length;
    double       *x      = pe_take_range(s, 0, 1, n);
    pe_curve     *curves = pe_set_curves(s, f, x, x, n, content_count(s));
    for (int c = 0, k = 0; c < PE_CONTENTS && !s->status; c++) {
        if (!(wanted_contents(s) & pe_contents[c].flag))
            continue;
        pe_trial t = pe_draw_vectors(s, &pe_contents[c]);
        if (e)
            pe_score(s, e, &t);
        else if (!s->status)
            pe_score_with_one_theta(&t, one);
        pe_summarise(s, &t, &curves[k]);
        curves[k++].name = pe_contents[c].name;
    }
    pe_set_labels(f, "distance t (tokens), the key lies in the past", "score q.k / D", NULL);
    f->marks      = s->marks;
    f->mark_count = s->mark_count;
}

void pe_make_turn_similarity(pe_sketch *s)
{
    const pe_picture_data *data = s->data;
    pe_picture_data        ones = *data;
    ones.contents               = PE_ONES;
    s->data                     = &ones;
    set_scores(s, s->figure, s->e, NULL);
    s->data            = data;
    s->figure->y_label = "score of two ones-vectors, q.k / D";
}

/* Turned by the encoding's own frequencies, or with base number `index`, written as people write bases: 5e5.
 */
static void set_many_thetas(pe_sketch *s, pe_figure *f, int index)
{
    char setting[80];
    f->title = "many thetas: the encoding's own";
    if (!s->data->base_count) {
        set_scores(s, f, s->e, NULL);
        return;
    }
    const double base  = s->data->bases[index];
    const int    power = base > 0 ? (int)floor(log10(base) + 1e-9) : 0;
    const double first = base / pow(10, power);
    f->title           = power < 4 ? pe_take_text(s, "many thetas, base %g", base)
                                   : pe_take_text(s, "many thetas, base %.4ge%d", first, power);
    snprintf(setting, sizeof setting, "%s.base=%.17g", s->part->name, base);
    posenc_encoding *other = pe_alter(s, setting);
    set_scores(s, f, other, NULL);
    pe_forget(s, other);
}

/* The middle one of the encoding's own. A factor of NAN: there is none to draw. */
static pe_one_theta find_one_theta(pe_sketch *s)
{
    pe_one_theta  one = {.magnitude = NAN};
    const double *w   = pe_read_frequencies(s, s->e, &one.M, &one.magnitude);
    one.theta         = w ? w[one.M / 2] : 0;
    if (s->data->thetas == PE_ONE_THETA && isnan(one.magnitude))
        pe_plot_refuse(
            s, POSENC_UNSUPPORTED,
            "picture: %s has a factor that changes with the position, which one theta would leave out; "
            "draw many thetas",
            s->part->name);
    return one;
}

static void share_range(pe_figure *panels, int count)
{
    double low = INFINITY, high = -INFINITY;
    for (int p = 0; p < count; p++)
        for (int k = 0; k < panels[p].curve_count; k++)
            for (int64_t i = 0; i < panels[p].curves[k].n; i++) {
                const pe_curve *c = &panels[p].curves[k];
                low               = fmin(low, c->low ? c->low[i] : c->y[i]);
                high              = fmax(high, c->high ? c->high[i] : c->y[i]);
            }
    for (int p = 0; p < count; p++) {
        panels[p].low  = low - 0.03 * (high - low);
        panels[p].high = high + 0.03 * (high - low);
    }
}

void pe_make_decay(pe_sketch *s)
{
    const int          thetas = s->data->thetas ? s->data->thetas : PE_MANY_THETAS | PE_ONE_THETA;
    const int          many   = thetas & PE_MANY_THETAS ? s->data->base_count ? s->data->base_count : 1 : 0;
    const pe_one_theta one    = thetas & PE_ONE_THETA ? find_one_theta(s) : (pe_one_theta){.magnitude = NAN};
    const int          count  = many + !isnan(one.magnitude);
    pe_figure         *panels = pe_set_panels(s, s->figure, count, count < 2 ? 1 : 2);
    for (int k = 0; panels && k < many; k++)
        set_many_thetas(s, &panels[k], k);
    if (panels && many < count) {
        panels[many].title = pe_take_text(s, "one theta: %.3g for all pairs, wavelength %.4g", one.theta,
                                          PE_TWO_PI / one.theta);
        set_scores(s, &panels[many], NULL, &one);
    }
    if (!s->status && many)
        share_range(panels, many);
    name_bands(s, "scores of turned vectors by distance");
    if (thetas & PE_ONE_THETA && isnan(one.magnitude))
        s->what = pe_take_text(
            s, "%s\none theta is left out: it has no place for a factor that changes with the position",
            s->what);
}

/* ---------------------------------------------------------------- mass ---------------------- */

void pe_make_turn_mass(pe_sketch *s)
{
    const int64_t n      = s->data->length;
    const int     count  = content_count(s);
    double       *shares = pe_take_numbers(s, count * n);
    pe_curve      curves[PE_CONTENTS];
    const char   *names[PE_CONTENTS];
    for (int c = 0, k = 0; c < PE_CONTENTS && !s->status; c++) {
        if (!(wanted_contents(s) & pe_contents[c].flag))
            continue;
        pe_trial t = pe_draw_vectors(s, &pe_contents[c]);
        pe_score(s, s->e, &t);
        for (int64_t i = 0; !s->status && i < t.R * n; i++)
            t.scores[i] *= sqrt((double)t.D); /* q.k / D becomes q.k / sqrt(D) */
        for (int64_t r = 0; !s->status && r < t.R; r++)
            pe_share_within(t.scores + r * n, n);
        pe_summarise(s, &t, &curves[k]);
        if (!s->status)
            memcpy(shares + k * n, curves[k].y, (size_t)n * sizeof *shares);
        names[k++] = pe_contents[c].name;
    }
    pe_curve *drawn = s->status ? NULL : pe_draw_mass(s, shares, names, count, n);
    for (int k = 0; drawn && k < count; k++) {
        drawn[k].low  = curves[k].low;
        drawn[k].high = curves[k].high;
    }
    s->figure->ordered = 0;
    name_bands(s, s->what);
}
