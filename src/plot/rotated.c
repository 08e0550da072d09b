/* SPDX-License-Identifier: MIT */
/*
 * rotated.c: scores of rotated vectors by distance, and where they put the attention
 *
 *   similarity  q.k / D for q = k = (1, ..., 1)
 *   decay       the same for ones, for U[0,1] and for N(0,1): mean over draws, and the band of the middle 80
 *               %; rotated by the encoding's frequencies (a panel per base), and all pairs by a single one;
 *               beside the former the envelope of ones
 *   mass        the share of the attention, softmax of q.k / sqrt(D), on the nearest keys
 *
 * Why three contents: the decay with distance that tutorials show belongs to vectors with a common mean. For
 * ones it is mean cos(t w_m), for U[0,1] a quarter of that on average; for vectors with mean zero every score
 * has mean zero, at any distance. Why one theta: cos(t theta) returns to 1, so that only many frequencies
 * together decay. The one taken is the middle of the encoding's own. Where a factor changes with the position
 * (xPos) it contributes to the decay, and one theta would show another encoding: that panel is left out, and
 * the title says so.
 *
 * The query is rotated to position t, the key stays at 0: t > 0 is a key in the past. The library rotates;
 * what it cannot do is rotate every pair at the same frequency, and that is computed here:
 *     (q_x k_x + q_y k_y) cos(t theta) + (q_x k_y - q_y k_x) sin(t theta), summed over the pairs (2m, 2m+1),
 * times the square of the encoding's factor; channels that it does not rotate are added as they are.
 *
 * Surprises  A stride of 0 puts one query at all positions. Positions are done in pieces: R draws at n
 *            positions would be R * n * D numbers.
 */
#include "plot/sketch.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENTS = 3, DRAWS = 200, MOST_ELEMENTS = 1 << 20, MOST_BASES = 32 };

/* ---------------------------------------------------------------- vectors ------------------- */

typedef struct content {
    const char *name;
    int         flag;
    double (*draw)(uint64_t seed, const char *stream, uint64_t index); /* NULL: ones */
} content;

static const content contents[CONTENTS] = {
    {"ones", PE_VECTORS_ONES, NULL},
    {"U[0,1]", PE_VECTORS_UNIFORM, posenc_random_uniform},
    {"N(0,1)", PE_VECTORS_NORMAL, posenc_random_normal},
};

static int64_t draw_count(const pe_sketch *s)
{
    return s->data->draws ? s->data->draws : DRAWS;
}

/* Of one content: R queries and keys [R, D], and their scores q.k / D [R, n] by distance. */
typedef struct trial {
    int64_t R, D, n;
    double *q, *k, *scores;
} trial;

/* R = 1 of ones, else as many draws as the data asks for. */
static trial draw_vectors(pe_sketch *s, const content *of)
{
    trial         t  = {.D = s->data->dims.D, .n = s->data->length};
    const int64_t RD = (t.R = of->draw ? draw_count(s) : 1) * t.D;
    t.q              = pe_sketch_numbers(s, RD);
    t.k              = pe_sketch_numbers(s, RD);
    t.scores         = pe_sketch_numbers(s, t.R * t.n);
    for (int64_t i = 0; t.scores && i < RD; i++) {
        t.q[i] = of->draw ? of->draw(s->data->seed, "plot q", (uint64_t)i) : 1;
        t.k[i] = of->draw ? of->draw(s->data->seed, "plot k", (uint64_t)i) : 1;
    }
    return t;
}

/* A plan of a run that rotates R heads at n positions. */
static int prepare_rotation(pe_sketch *s, const posenc_encoding *e, int64_t R, int64_t n)
{
    posenc_dims dims = s->data->dims;
    dims.B           = 1;
    dims.H = dims.G = R;
    dims.Lq         = n;
    dims.Lk         = dims.Lk > n ? dims.Lk : n;
    dims.d_model    = dims.d_model ? dims.d_model : dims.D;
    return pe_sketch_prepare(s, e, &dims, POSENC_RUN_ROTATE);
}

void pe_rotated_vectors(pe_sketch *s, double *q, int64_t R, int64_t n, double first)
{
    const posenc_tensor all =
        posenc_tensor_contiguous(q, POSENC_DTYPE_F64, 4, (const int64_t[]){1, R, n, s->data->dims.D});
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = all,
                                 .to_q      = all,
                                 .q_pos     = posenc_positions_range(first, 1),
                                 .k_pos     = posenc_positions_range(0, 1),
                                 .direction = 1,
                                 .params    = s->data->params};
    if (q && prepare_rotation(s, s->e, R, n > 1 ? n : 2))
        s->status = posenc_rotate(s->plan, &io, &s->work, s->err);
}

/* ---------------------------------------------------------------- scores -------------------- */

/* The queries at positions t0 .. t0+n-1 into rotated [R, n, D], the keys at 0 into key [R, D]. Stride 0 gives
   one query to all positions. */
static void rotate_trial(pe_sketch *s, const trial *t, int64_t t0, int64_t n, double *rotated, double *key)
{
    const int64_t    shape[4] = {1, t->R, n, t->D}, one[4] = {1, t->R, 1, t->D};
    posenc_rotate_io io = {.size      = sizeof io,
                           .q         = posenc_tensor_contiguous(t->q, POSENC_DTYPE_F64, 4, shape),
                           .k         = posenc_tensor_contiguous(t->k, POSENC_DTYPE_F64, 4, one),
                           .to_q      = posenc_tensor_contiguous(rotated, POSENC_DTYPE_F64, 4, shape),
                           .to_k      = posenc_tensor_contiguous(key, POSENC_DTYPE_F64, 4, one),
                           .q_pos     = posenc_positions_range((double)t0, 1),
                           .k_pos     = posenc_positions_range(0, 1),
                           .direction = 1,
                           .params    = s->data->params};
    io.q.stride[0] = io.q.stride[1] = t->D;
    io.q.stride[2]                  = 0;
    s->status                       = posenc_rotate(s->plan, &io, &s->work, s->err);
}

/* With the vectors rotated by e, some positions at a time. */
static void score(pe_sketch *s, const posenc_encoding *e, trial *t)
{
    const int64_t fit = MOST_ELEMENTS / (t->R * t->D), step = fit < 1 ? 1 : fit < t->n ? fit : t->n;
    double       *rotated = malloc((size_t)(t->R * (step + 1) * t->D) * sizeof *rotated); /* not for long */
    double       *key     = rotated ? rotated + t->R * step * t->D : NULL;
    if (!rotated)
        s->status = s->status ? s->status : pe_sketch_no_memory(s->err);
    prepare_rotation(s, e, t->R, step);
    for (int64_t t0 = 0; !s->status && t0 < t->n; t0 += step) {
        const int64_t n = t->n - t0 < step ? t->n - t0 : step;
        rotate_trial(s, t, t0, n, rotated, key);
        for (int64_t i = 0; !s->status && i < t->R * n; i++)
            t->scores[i / n * t->n + t0 + i % n] =
                pe_sketch_dot(rotated + i * t->D, key + i / n * t->D, t->D) / (double)t->D;
    }
    free(rotated);
}

/* One frequency for M pairs, and a factor on their length. */
typedef struct one_theta {
    double  theta, magnitude;
    int64_t M;
} one_theta;

static void score_with_one_theta(trial *t, const one_theta *one)
{
    const double factor = one->magnitude * one->magnitude;
    for (int64_t r = 0; r < t->R; r++) {
        const double *q = t->q + r * t->D, *k = t->k + r * t->D;
        double        even = 0, odd = 0;
        const double  still = pe_sketch_dot(q + 2 * one->M, k + 2 * one->M, t->D - 2 * one->M);
        for (int64_t m = 0; m < one->M; m++) {
            even += q[2 * m] * k[2 * m] + q[2 * m + 1] * k[2 * m + 1];
            odd += q[2 * m] * k[2 * m + 1] - q[2 * m + 1] * k[2 * m];
        }
        for (int64_t i = 0; i < t->n; i++) {
            const double a          = (double)i * one->theta;
            t->scores[r * t->n + i] = (factor * (even * cos(a) + odd * sin(a)) + still) / (double)t->D;
        }
    }
}

/* ---------------------------------------------------------------- mean and band ------------- */

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the neighbours, as NumPy's "linear". sorted [n]. */
static double quantile(const double *sorted, int64_t n, double part)
{
    const double  at = part * (double)(n - 1);
    const int64_t i  = (int64_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* What the R draws come to: curve->y their mean, low and high the quantiles 0.1 and 0.9 of a random
   content. */
static void summarise(pe_sketch *s, const trial *t, pe_curve *curve)
{
    double *mean = pe_sketch_numbers(s, 3 * t->n), *low = mean + t->n, *high = low + t->n;
    double *column = pe_sketch_numbers(s, t->R);
    for (int64_t i = 0; column && i < t->n; i++) {
        for (int64_t r = 0; r < t->R; r++) {
            column[r] = t->scores[r * t->n + i];
            mean[i] += column[r] / (double)t->R;
        }
        qsort(column, (size_t)t->R, sizeof *column, smaller_first);
        low[i]  = quantile(column, t->R, 0.1);
        high[i] = quantile(column, t->R, 0.9);
    }
    curve->y    = mean;
    curve->low  = t->R > 1 ? low : NULL;
    curve->high = t->R > 1 ? high : NULL;
}

/* ---------------------------------------------------------------- frequencies --------------- */

/* Frequencies need no rows: a plan of the shortest run will do. */
double *pe_rotated_frequencies(pe_sketch *s, const posenc_encoding *e, int64_t *M, double *magnitude)
{
    posenc_dims dims = s->data->dims;
    dims.B = dims.H = dims.G = 1;
    dims.Lq = dims.Lk = 2;
    dims.d_model      = dims.D;
    *M                = 0;
    if (pe_sketch_prepare(s, e, &dims, POSENC_RUN_ROTATE))
        s->status = posenc_rotary_frequencies(s->plan, NULL, M, magnitude, s->err);
    posenc_rotary_pair *pairs = pe_sketch_take(s, *M, sizeof *pairs);
    double             *w     = pe_sketch_numbers(s, *M);
    if (!w)
        return NULL;
    s->status =
        posenc_rotary_pairs(s->plan, s->data->params, (double)s->data->length, pairs, &s->work, s->err);
    for (int64_t m = 0; !s->status && m < *M; m++)
        w[m] = pairs[m].w;
    if (!s->status && isnan(w[0]))
        pe_sketch_refuse(
            s, POSENC_ERROR_UNSUPPORTED,
            "picture: each pair of %s follows several coordinates at once, so it has no single frequency",
            posenc_encoding_spec(e));
    return s->status ? NULL : w;
}

static int wanted_contents(const pe_sketch *s)
{
    return s->data->contents ? s->data->contents : PE_VECTORS_ONES | PE_VECTORS_UNIFORM | PE_VECTORS_NORMAL;
}

static int content_count(int wanted)
{
    int count = 0;
    for (int c = 0; c < CONTENTS; c++)
        count += (wanted & contents[c].flag) != 0;
    return count;
}

/* What the bands are, for the title; no band without a random content. */
static void name_bands(pe_sketch *s, const char *what)
{
    s->what = what;
    if (!(wanted_contents(s) & ~PE_VECTORS_ONES))
        return;
    s->what = draw_count(s) == 1
                  ? pe_sketch_text(s, "%s\none draw, seed %llu", what, (unsigned long long)s->data->seed)
                  : pe_sketch_text(s, "%s\nmean, and the middle 80 %% of %lld draws", what,
                                   (long long)draw_count(s));
}

/* What the score of ones reaches at no phase of its waves: |sum exp(i t w_m)| in the place of sum cos(t w_m).
   It is also that of vectors of ones whose pairs are turned by any angle, the same for all. */
static void set_envelope(pe_sketch *s, const posenc_encoding *e, pe_curve *curve)
{
    const int64_t n = s->data->length, D = s->data->dims.D;
    int64_t       M;
    double        factor, *y = pe_sketch_numbers(s, n);
    const double *w = pe_rotated_frequencies(s, e, &M, &factor);
    for (int64_t t = 0; w && y && t < n; t++) {
        double x = 0, z = 0;
        for (int64_t m = 0; m < M; m++)
            x += cos((double)t * w[m]), z += sin((double)t * w[m]);
        y[t] = (2 * factor * factor * hypot(x, z) + (double)(D - 2 * M)) / (double)D;
    }
    curve->y     = y;
    curve->name  = "envelope of ones";
    curve->style = PE_RULE;
}

/* One panel: every content, rotated by e, or by one theta where e is NULL. */
static void set_scores(pe_sketch *s, pe_figure *f, const posenc_encoding *e, const one_theta *one, int wanted,
                       int with_envelope)
{
    const int64_t n      = s->data->length;
    const int     count  = content_count(wanted);
    double       *x      = pe_sketch_range(s, 0, 1, n);
    pe_curve     *curves = pe_sketch_curves(s, f, x, x, n, count + with_envelope);
    if (with_envelope && curves)
        set_envelope(s, e, &curves[count]);
    for (int c = 0, k = 0; c < CONTENTS && !s->status; c++) {
        if (!(wanted & contents[c].flag))
            continue;
        trial t = draw_vectors(s, &contents[c]);
        if (e)
            score(s, e, &t);
        else if (!s->status)
            score_with_one_theta(&t, one);
        summarise(s, &t, &curves[k]);
        curves[k++].name = contents[c].name;
    }
    pe_sketch_labels(f, "distance t (tokens), the key lies in the past", "score q.k / D", NULL);
    f->marks      = s->marks;
    f->mark_count = s->mark_count;
}

void pe_rotated_similarity(pe_sketch *s)
{
    set_scores(s, s->figure, s->e, NULL, PE_VECTORS_ONES, 0);
    s->figure->y_label = "score of two ones-vectors, q.k / D";
}

/* "base 5e5" */
static const char *base_name(pe_sketch *s, double base)
{
    const int power = base > 0 ? (int)floor(log10(base) + 1e-9) : 0;
    return power < 4 ? pe_sketch_text(s, "base %g", base)
                     : pe_sketch_text(s, "base %.4ge%d", base / pow(10, power), power);
}

/* Rotated by the encoding's own frequencies, or with base number `index`, whose title says 5e5. */
static void set_many_thetas(pe_sketch *s, pe_figure *f, int index, int with_envelope)
{
    char setting[80];
    f->title = "many thetas: the encoding's own";
    if (!s->data->base_count) {
        set_scores(s, f, s->e, NULL, wanted_contents(s), with_envelope);
        return;
    }
    const double base = s->data->bases[index];
    f->title          = pe_sketch_text(s, "many thetas, %s", base_name(s, base));
    snprintf(setting, sizeof setting, "%s.base=%.17g", s->part->name, base);
    posenc_encoding *other = pe_sketch_alter(s, setting);
    set_scores(s, f, other, NULL, wanted_contents(s), with_envelope);
    pe_sketch_forget(s, other);
}

/* The chosen one, or the middle one of the encoding's own. Magnitude NAN: there is none to draw. */
static one_theta find_one_theta(pe_sketch *s)
{
    one_theta     one = {.magnitude = NAN};
    const double *w   = pe_rotated_frequencies(s, s->e, &one.M, &one.magnitude);
    one.theta         = s->data->theta > 0 ? s->data->theta : w ? w[one.M / 2] : 0;
    if (s->data->thetas == PE_ONE_THETA && isnan(one.magnitude))
        pe_sketch_refuse(
            s, POSENC_ERROR_UNSUPPORTED,
            "picture: %s scales vectors by their position, which one theta cannot show; draw many thetas",
            s->part->name);
    return one;
}

static void share_range(pe_figure *panels, int count)
{
    double low, high;
    pe_colours_extremes(panels, count, &low, &high);
    for (int p = 0; p < count; p++) {
        panels[p].low  = low - 0.03 * (high - low);
        panels[p].high = high + 0.03 * (high - low);
    }
}

/* Bases with one curve each are compared in one frame. */
static void join_bases(pe_sketch *s, const pe_figure *panels)
{
    const char *names[MOST_BASES];
    const int   count = s->data->base_count;
    if (s->status || count < 2 || count > MOST_BASES || s->figure->panel_count != count)
        return;
    for (int k = 0; k < count; k++)
        names[k] = base_name(s, s->data->bases[k]);
    if (pe_sketch_overlay(s, s->figure, panels, names, count))
        s->figure->title = NULL;
}

void pe_rotated_decay(pe_sketch *s)
{
    const int       thetas = s->data->thetas ? s->data->thetas : PE_MANY_THETAS | PE_ONE_THETA;
    const int       many   = thetas & PE_MANY_THETAS ? s->data->base_count ? s->data->base_count : 1 : 0;
    const one_theta one    = thetas & PE_ONE_THETA ? find_one_theta(s) : (one_theta){.magnitude = NAN};
    const int       count  = many + !isnan(one.magnitude);
    /* a single curve is compared with those of other bases or encodings */
    const int with_envelope = !isnan(one.magnitude) && wanted_contents(s) & PE_VECTORS_ONES &&
                              wanted_contents(s) != PE_VECTORS_ONES;
    pe_figure *panels = pe_sketch_panels(s, s->figure, count, count < 2 ? 1 : 2);
    for (int k = 0; panels && k < many; k++)
        set_many_thetas(s, &panels[k], k, with_envelope);
    if (panels && many < count) {
        panels[many].title = pe_sketch_text(s, "one theta: %.3g for all pairs, wavelength %.4g", one.theta,
                                            PE_TWO_PI / one.theta);
        set_scores(s, &panels[many], NULL, &one, wanted_contents(s), 0);
    }
    if (!s->status && many)
        share_range(panels, many);
    join_bases(s, panels);
    name_bands(s, "scores of rotated vectors by distance");
    if (thetas & PE_ONE_THETA && isnan(one.magnitude))
        s->what = pe_sketch_text(
            s, "%s\none theta is left out: it cannot show a factor that changes with the position", s->what);
}

void pe_rotated_mass(pe_sketch *s)
{
    const int64_t n      = s->data->length;
    const int     count  = content_count(wanted_contents(s));
    double       *shares = pe_sketch_numbers(s, count * n);
    pe_curve      curves[CONTENTS];
    const char   *names[CONTENTS];
    for (int c = 0, k = 0; c < CONTENTS && !s->status; c++) {
        if (!(wanted_contents(s) & contents[c].flag))
            continue;
        trial t = draw_vectors(s, &contents[c]);
        score(s, s->e, &t);
        for (int64_t i = 0; !s->status && i < t.R * n; i++)
            t.scores[i] *= sqrt((double)t.D); /* q.k / D becomes q.k / sqrt(D) */
        for (int64_t r = 0; !s->status && r < t.R; r++)
            pe_sketch_shares(t.scores + r * n, n);
        summarise(s, &t, &curves[k]);
        if (!s->status)
            memcpy(shares + k * n, curves[k].y, (size_t)n * sizeof *shares);
        names[k++] = contents[c].name;
    }
    pe_curve *mass = s->status ? NULL : pe_sketch_mass(s, shares, names, count, n);
    for (int k = 0; mass && k < count; k++) {
        mass[k].low  = curves[k].low;
        mass[k].high = curves[k].high;
    }
    s->figure->ordered = 0;
    name_bands(s, s->what);
}
