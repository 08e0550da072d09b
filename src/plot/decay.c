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
static posenc_status set_scores(pe_sketch *s, pe_figure *f, const posenc_encoding *e, const pe_one_theta *one,
                                posenc_error *err)
{
    const int64_t n      = s->data->length;
    double       *x      = pe_take_range(s, 0, 1, n);
    pe_curve     *curves = x ? pe_set_curves(s, f, x, x, n, content_count(s)) : NULL;
    posenc_status status = curves ? POSENC_OK : pe_plot_no_memory(err);
    for (int c = 0, k = 0; c < PE_CONTENTS && !status; c++) {
        pe_trial t;
        if (!(wanted_contents(s) & pe_contents[c].flag))
            continue;
        status = pe_draw_vectors(s, &pe_contents[c], &t, err);
        if (!status && e)
            status = pe_score(s, e, &t, err);
        else if (!status)
            pe_score_with_one_theta(&t, one);
        if (!status)
            status = pe_summarise(s, &t, &curves[k], err);
        curves[k++].name = pe_contents[c].name;
    }
    f->x_label    = "distance t (tokens), the key lies in the past";
    f->y_label    = "score q.k / D";
    f->marks      = s->marks;
    f->mark_count = s->mark_count;
    return status;
}

posenc_status pe_make_turn_similarity(pe_sketch *s, posenc_error *err)
{
    pe_picture_data ones   = *s->data;
    pe_sketch       sketch = *s;
    posenc_status   status;
    ones.contents      = PE_ONES;
    sketch.data        = &ones;
    status             = set_scores(&sketch, s->figure, s->e, NULL, err);
    s->plan            = sketch.plan;
    s->work            = sketch.work;
    s->figure->y_label = "score of two ones-vectors, q.k / D";
    return status;
}

/* The encoding of the sketch with another base; its own where there is none to set. */
static posenc_status with_base(pe_sketch *s, double base, posenc_encoding **e, posenc_error *err)
{
    char setting[80];
    snprintf(setting, sizeof setting, "%s.base=%.17g", s->part->name, base);
    return posenc_encoding_create(e, posenc_encoding_spec(s->e), setting, err);
}

/* 500000 is 5e5, as people write bases. */
static const char *short_number(pe_sketch *s, double x)
{
    const int    power = x > 0 ? (int)floor(log10(x) + 1e-9) : 0;
    const double digit = x / pow(10, power);
    return power < 4 ? pe_take_text(s, "%g", x) : pe_take_text(s, "%.4ge%d", digit, power);
}

static posenc_status set_many_thetas(pe_sketch *s, pe_figure *f, int index, posenc_error *err)
{
    posenc_encoding *other = NULL;
    posenc_status    status;
    if (!s->data->base_count) {
        f->title = "many thetas: the encoding's own";
        return set_scores(s, f, s->e, NULL, err);
    }
    status   = with_base(s, s->data->bases[index], &other, err);
    f->title = pe_take_text(s, "many thetas, base %s", short_number(s, s->data->bases[index]));
    if (!status)
        status = set_scores(s, f, other, NULL, err);
    posenc_plan_free(s->plan); /* it may not outlive its encoding */
    s->plan = NULL;
    posenc_encoding_free(other);
    return status;
}

/* The middle one of the encoding's own. A factor of NAN: there is none to draw. */
static posenc_status find_one_theta(pe_sketch *s, pe_one_theta *one, posenc_error *err)
{
    double       *w;
    posenc_status status = pe_read_frequencies(s, s->e, &w, &one->M, &one->magnitude, err);
    one->theta           = status ? 0 : w[one->M / 2];
    if (!status && s->data->thetas == PE_ONE_THETA && isnan(one->magnitude))
        return pe_plot_fail(
            err, POSENC_UNSUPPORTED,
            "picture: %s has a factor that changes with the position, which one theta would leave out; "
            "draw many thetas",
            s->part->name);
    return status;
}

static posenc_status set_one_theta(pe_sketch *s, pe_figure *f, const pe_one_theta *one, posenc_error *err)
{
    f->title =
        pe_take_text(s, "one theta: %.3g for all pairs, wavelength %.4g", one->theta, PE_TWO_PI / one->theta);
    return set_scores(s, f, NULL, one, err);
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

posenc_status pe_make_decay(pe_sketch *s, posenc_error *err)
{
    const int     thetas = s->data->thetas ? s->data->thetas : PE_MANY_THETAS | PE_ONE_THETA;
    const int     many   = thetas & PE_MANY_THETAS ? s->data->base_count ? s->data->base_count : 1 : 0;
    pe_one_theta  one    = {.magnitude = NAN};
    posenc_status status = thetas & PE_ONE_THETA ? find_one_theta(s, &one, err) : POSENC_OK;
    const int     count  = many + !isnan(one.magnitude);
    pe_figure    *panels = status ? NULL : pe_set_panels(s, s->figure, count, count < 2 ? 1 : 2);
    if (!panels)
        return status ? status : pe_plot_no_memory(err);
    for (int k = 0; !status && k < count; k++)
        status = k < many ? set_many_thetas(s, &panels[k], k, err) : set_one_theta(s, &panels[k], &one, err);
    if (!status && many)
        share_range(panels, many);
    name_bands(s, "scores of turned vectors by distance");
    if (thetas & PE_ONE_THETA && isnan(one.magnitude))
        s->what = pe_take_text(
            s, "%s\none theta is left out: it has no place for a factor that changes with the position",
            s->what);
    return status;
}

/* ---------------------------------------------------------------- mass ---------------------- */

posenc_status pe_make_turn_mass(pe_sketch *s, posenc_error *err)
{
    const int64_t n      = s->data->length;
    const int     count  = content_count(s);
    double       *shares = pe_take_numbers(s, count * n);
    pe_curve      curves[PE_CONTENTS];
    const char   *names[PE_CONTENTS];
    posenc_status status = shares ? POSENC_OK : pe_plot_no_memory(err);
    for (int c = 0, k = 0; c < PE_CONTENTS && !status; c++) {
        pe_trial t;
        if (!(wanted_contents(s) & pe_contents[c].flag))
            continue;
        status = pe_draw_vectors(s, &pe_contents[c], &t, err);
        if (!status)
            status = pe_score(s, s->e, &t, err);
        for (int64_t i = 0; !status && i < t.R * n; i++)
            t.scores[i] *= sqrt((double)t.D); /* q.k / D becomes q.k / sqrt(D) */
        for (int64_t r = 0; !status && r < t.R; r++)
            pe_share_within(t.scores + r * n, n);
        if (!status)
            status = pe_summarise(s, &t, &curves[k], err);
        if (!status)
            memcpy(shares + k * n, curves[k].y, (size_t)n * sizeof *shares);
        names[k++] = pe_contents[c].name;
    }
    pe_curve *drawn = status ? NULL : pe_draw_mass(s, shares, names, count, n);
    if (!drawn)
        return status ? status : pe_plot_no_memory(err);
    for (int k = 0; k < count; k++) {
        drawn[k].low  = curves[k].low;
        drawn[k].high = curves[k].high;
    }
    s->figure->ordered = 0;
    name_bands(s, s->what);
    return POSENC_OK;
}
