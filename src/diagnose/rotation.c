/* SPDX-License-Identifier: MIT */
/*
 * rotation.c: which rotation turned one tensor into another, and what of it is not as it should be
 *
 * The idea   Not a list of known mistakes is tried, but the rotation is measured: which channels are pairs
 *            (dump.h), how fast each turns (speeds.c), how long it becomes. Then theories are made, each the
 *            expected encoding with one to three things changed, with numbers that fit what was measured, and
 *            what is left after each is counted in units of the rounding of the tensor.
 * Choice     Of those that leave nothing over, the one with the fewest changes and the roundest numbers; the
 *            others that do so as well are alternatives. What differs from the expected rotation by less
 *            than SAME roundings is the same.
 * Surprise   Positions divided by f and frequencies divided by f are one rotation, and so are static NTK and
 *            another base: both are then said.
 */
#include "diagnose/dump.h"

#include "base/half.h"
#include "base/shared/compiler.h"
#include "base/shared/decimal.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 400, MOST_PAIRINGS = 24, MOST_THEORIES = 96, LOOK = 160, LOWS = 24 };

static const double pi   = 0x1.921fb54442d18p+1;
static const double fine = 1e-7, bfloat16 = 0x1p-9; /* errors of speeds: of float32, and of fewer bits */
static const double same    = 2.5;                  /* roundings: less is no difference */
static const double unheard = 4;                    /* less than this is none where nothing explains it */
static const double near_by = 12;                   /* and less than this may be none by another count */
static const double slack   = 0.7;                  /* a simpler theory may leave so much more over */
static const double float32 = 0x1.4p-23;            /* relative error of an angle of float32: 2.5 roundings */

const char *const pe_departures[PE_DEPARTURES] = {"layout",   "dim",    "direction",   "base",
                                                  "schedule", "factor", "positions",   "magnitude",
                                                  "axes",     "angles", "slopes",      "buckets",
                                                  "scale",    "mask",   "temperature", "softcap"};

/* ---------------------------------------------------------------- what is known ------------- */

typedef struct theory {
    posenc_encoding *e;
    unsigned         departs;
    int              cost; /* hundreds: departures; rest: digits */
    int              pairing;
    double           step, offset;
    double          *list; /* [rows,N] positions that follow no rule; NULL */
    char             places[PE_WORDS];
    int              axes[PE_MOST_AXES];
    int              low; /* 1 + row of lows; 0: exact or float32 */
    double           size[2], misfit, strict;
    char             words[PE_WORDS];
} theory;

typedef struct paired {
    pe_pairing pairing;
    double     look; /* misfit of a few rows */
    pe_gains  *gains;
    double    *w, *error;           /* [M] measured speeds */
    double     agreed, reach, unit; /* unit: steps of positions in one of the expected */
    double    *of_axes;             /* [N,3,M] w, error and order of each coordinate; NULL: there is one */
    double     reaches[PE_MOST_AXES];
    unsigned   departs;
} paired;

typedef struct rotation_search {
    const pe_rotation *in;
    pe_rows           *rows;
    const char        *base; /* SPEC that theories change */
    int                N;
    paired             pairings[MOST_PAIRINGS];
    int                pairing_count;
    theory             theories[MOST_THEORIES];
    int                theory_count;
    double             floor, noisiness; /* least squares left of any pairing; in units of rounding */
    double             length;           /* largest position + 1 */
    int64_t            look[LOOK];
    int                look_count;
    int                axes[PE_MOST_AXES]; /* which expected coordinate each is taken for */
    double             coarse;             /* relative error of a speed that numbers may be fitted to */
    posenc_error      *err;
} rotation_search;

/* What an encoding makes of the pairs of a pairing. */
typedef struct frame {
    pe_course           course;
    posenc_rotary_pair *pairs;
    int64_t             M;
} frame;

static void frame_free(frame *f)
{
    free(f->course.w);
    free(f->course.coordinate);
    free(f->course.order);
    free(f->pairs);
    *f = (frame){0};
}

static int64_t round_up(double x)
{
    return x < 1 ? 1 : x > 1e15 ? (int64_t)1e15 : (int64_t)x;
}

static void sort_pairs(frame *f)
{
    for (int64_t i = 0; i < f->M; i++) {
        int64_t at = i;
        for (; at > 0 && fabs(f->course.w[f->course.order[at - 1]]) > fabs(f->course.w[i]); at--)
            f->course.order[at] = f->course.order[at - 1];
        f->course.order[at] = i;
    }
}

/* 0 where it cannot be: an encoding that does not fit the heads, or has parameters that nobody knows. */
static int frame_open(frame *f, const rotation_search *s, const posenc_encoding *e)
{
    const int64_t     D        = s->rows->D;
    const int         is_given = s->in->e && posenc_param_count(e) == posenc_param_count(s->in->e);
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = 1, .Lk = 1, .D = D, .L = round_up(s->length)};
    posenc_options    options  = posenc_options_default();
    posenc_plan      *plan     = NULL;
    posenc_workspace  work     = {0};
    posenc_error      why;
    double            magnitude = 1;
    *f                          = (frame){0};
    options.threads             = 1;
    int is_good                 = (posenc_param_count(e) == 0 || (is_given && s->in->params)) &&
                  !posenc_plan_create(&plan, e, &dims, &options, &why) &&
                  posenc_rotary_coordinates(plan) == s->N &&
                  !posenc_rotary_frequencies(plan, NULL, &f->M, &magnitude, &why) && f->M > 0;
    if (is_good) {
        f->pairs             = malloc((size_t)f->M * sizeof *f->pairs);
        f->course.w          = malloc((size_t)f->M * sizeof *f->course.w);
        f->course.coordinate = malloc((size_t)f->M * sizeof *f->course.coordinate);
        f->course.order      = malloc((size_t)f->M * sizeof *f->course.order);
        f->course.size       = magnitude;
        is_good =
            f->pairs && f->course.w && f->course.coordinate && f->course.order &&
            !posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, NULL, &why) &&
            !posenc_rotary_pairs(plan, is_given ? s->in->params : NULL, s->length, f->pairs, &work, &why);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    for (int64_t m = 0; is_good && m < f->M; m++) {
        f->course.w[m]          = f->pairs[m].w;
        f->course.coordinate[m] = f->pairs[m].coordinate;
        is_good &= f->pairs[m].coordinate >= 0;
    }
    if (is_good)
        sort_pairs(f);
    else
        frame_free(f);
    return is_good;
}

/* Are these the channels of the pairing? */
static int has_channels(const frame *f, const pe_pairing *p)
{
    if (f->M != p->dim / 2)
        return 0;
    for (int64_t m = 0; m < f->M; m++)
        for (int second = 0; second < 2; second++)
            if (f->pairs[m].from[second] != pe_pairing_channel(p, 0, m, second) ||
                f->pairs[m].to[second] != pe_pairing_channel(p, 1, m, second))
                return 0;
    return 1;
}

/* "half" of "rope[layout=half:base=5e5]"; 0 where it is not said. */
static int said(char *value, size_t size, const char *spec, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s=", name);
    for (const char *at = spec; (at = strstr(at, key)) != NULL; at++)
        if (at > spec && strchr("[:, ", at[-1])) {
            at += strlen(key);
            snprintf(value, size, "%.*s", (int)strcspn(at, ":], "), at);
            return 1;
        }
    snprintf(value, size, "%s", "");
    return 0;
}

static double number(const char *spec, const char *name, double otherwise)
{
    char text[64];
    return said(text, sizeof text, spec, name) ? strtod(text, NULL) : otherwise;
}

static int is_word(const char *spec, const char *name, const char *word, int otherwise)
{
    char text[64];
    return said(text, sizeof text, spec, name) ? !strcmp(text, word) : otherwise;
}

/* ---------------------------------------------------------------- angles -------------------- */

/* Fewer bits, and where. */
enum { FREQUENCIES = 1, POSITIONS = 2, ANGLES = 4, TABLE = 8 };
static const struct low {
    int places, is_f16;
} lows[LOWS] = {{FREQUENCIES, 0},
                {POSITIONS, 0},
                {ANGLES, 0},
                {TABLE, 0},
                {FREQUENCIES | ANGLES, 0},
                {POSITIONS | ANGLES, 0},
                {FREQUENCIES | POSITIONS, 0},
                {FREQUENCIES | POSITIONS | ANGLES, 0},
                {ANGLES | TABLE, 0},
                {FREQUENCIES | TABLE, 0},
                {POSITIONS | TABLE, 0},
                {FREQUENCIES | ANGLES | TABLE, 0},
                {POSITIONS | ANGLES | TABLE, 0},
                {FREQUENCIES | POSITIONS | TABLE, 0},
                {FREQUENCIES | POSITIONS | ANGLES | TABLE, 0},
                {FREQUENCIES, 1},
                {POSITIONS, 1},
                {ANGLES, 1},
                {TABLE, 1},
                {FREQUENCIES | ANGLES, 1},
                {POSITIONS | ANGLES, 1},
                {FREQUENCIES | POSITIONS | ANGLES, 1},
                {FREQUENCIES | POSITIONS | ANGLES | TABLE, 1},
                {-1, 0}}; /* ggml */

static double rounded(const struct low *l, int place, double x)
{
    return !(l->places & place) ? x : l->is_f16 ? pe_half_round_to_f16(x) : pe_half_round_to_bf16(x);
}

static double complex low_gain(const struct low *l, double w, double p, double size)
{
    const double f = rounded(l, FREQUENCIES, (double)(float)w), x = rounded(l, POSITIONS, p);
    const double a = rounded(l, ANGLES, (double)(float)(f * x));
    return CMPLX(rounded(l, TABLE, size * cos(a)), rounded(l, TABLE, size * sin(a)));
}

/* ---------------------------------------------------------------- what is left -------------- */

static double place_of(const rotation_search *s, const theory *t, int64_t row, int axis)
{
    if (t->list)
        return t->list[row * s->N + axis];
    return t->step * pe_row_position(s->rows, row)[t->axes[axis]] + t->offset;
}

/* Faster than cexp and cabs, which mind infinities. */
static double complex turned(double size, double angle)
{
    return CMPLX(size * cos(angle), size * sin(angle));
}

static double distance_of(double complex a, double complex b)
{
    const double x = creal(a) - creal(b), y = cimag(a) - cimag(b);
    return sqrt(x * x + y * y);
}

typedef struct left {
    double free, strict, bad, cells; /* squares beyond float32's angles; all; cells that are far off, of */
} left;

static void add_row(left *l, const rotation_search *s, const theory *t, const frame *f, int64_t row)
{
    int64_t         b, at;
    const int64_t   side  = pe_row_side(s->rows, row, &b, &at);
    const pe_gains *g     = s->pairings[t->pairing].gains;
    const double    heads = (double)s->rows->heads[side];
    double          places[PE_MOST_AXES];
    float           theta = 0, base = 0;
    for (int n = 0; n < s->N; n++)
        places[n] = place_of(s, t, row, n);
    const int is_ggml = t->low && lows[t->low - 1].places < 0;
    if (is_ggml) {
        theta = (float)places[0];
        base  = f->M > 1 ? (float)(f->course.w[1] / f->course.w[0]) : 1;
        theta *= (float)f->course.w[0];
    }
    for (int64_t m = 0; m < g->M; m++) {
        const int64_t  i = row * g->M + m;
        double         a = f->course.w[m] * places[f->course.coordinate[m]];
        double complex z;
        if (is_ggml) {
            z = turned(t->size[side], (double)theta);
            theta *= base;
        } else if (t->low)
            z = low_gain(&lows[t->low - 1], f->course.w[m], places[f->course.coordinate[m]], t->size[side]);
        else
            z = turned(t->size[side], a);
        const double d    = distance_of(g->z[i], z);
        const double part = fmax(0, d - float32 * fabs(a) * t->size[side]);
        l->free += g->power[i] * part * part;
        l->strict += g->power[i] * d * d;
        l->bad += g->power[i] * d * d > 36 * (g->noise[i] * s->noisiness / heads + 1e-30);
        l->cells++;
    }
}

/* From squares to roundings: less what noise of gains leaves, relative to the noise of all numbers. */
static double in_roundings(double squares, double expected, double total)
{
    return sqrt(fmax(0, squares - expected) / (total + 1e-300));
}

static void measure(theory *t, const rotation_search *s, const frame *f, int is_all, left *l)
{
    const pe_gains *g     = s->pairings[t->pairing].gains;
    const int64_t   n     = is_all ? s->rows->count : s->look_count;
    double          total = 0, expected = 0;
    *l = (left){0};
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = is_all ? i : s->look[i];
        int64_t       b, at;
        const double  heads = (double)s->rows->heads[pe_row_side(s->rows, row, &b, &at)];
        add_row(l, s, t, f, row);
        for (int64_t m = 0; m < g->M; m++) /* channels that pass are not rounded again */
            total += g->noise[row * g->M + m];
        for (int64_t m = 0; m < g->M; m++)
            expected += s->noisiness * g->noise[row * g->M + m] / heads;
    }
    const double more = is_all ? fmax(0, g->floor - s->floor) : 0;
    t->misfit         = in_roundings(l->free + more, expected, total);
    t->strict         = in_roundings(l->strict + more, expected, total);
}

/* ---------------------------------------------------------------- pairings ------------------ */

static int is_same_pairing(const pe_pairing *a, const pe_pairing *b)
{
    return a->in == b->in && a->out == b->out && a->blocks == b->blocks && a->offset == b->offset &&
           a->dim == b->dim;
}

/* The pairing of an encoding, if it is one of ours. */
static int pairing_of(pe_pairing *p, const rotation_search *s, const posenc_encoding *e)
{
    const char *spec = posenc_encoding_spec(e);
    frame       f;
    if (!frame_open(&f, s, e))
        return 0;
    p->in     = is_word(spec, "layout", "half", 0);
    p->out    = is_word(spec, "layout_out", "half", p->in && !is_word(spec, "layout_out", "interleaved", 0));
    p->dim    = 2 * f.M;
    p->offset = (int64_t)number(spec, "offset_dim", 0);
    p->blocks = is_word(spec, "axis_rule", "halves", 0) ? s->N : 1;
    const int is_it = has_channels(&f, p);
    frame_free(&f);
    return is_it;
}

/* Adds a pairing that nobody has added yet. */
static void add_pairing(rotation_search *s, pe_pairing p, unsigned departs)
{
    if (p.dim < 2 || p.dim % 2 || p.offset < 0 || p.offset + p.dim > s->rows->D || p.dim / 2 % p.blocks)
        return;
    for (int i = 0; i < s->pairing_count; i++)
        if (is_same_pairing(&s->pairings[i].pairing, &p))
            return;
    const double look = pe_pairing_misfit(s->rows, &p);
    int          at   = s->pairing_count;
    if (at && look > 40 + 4 * s->pairings[0].look && departs) /* no pairs at all */
        return;
    if (at == MOST_PAIRINGS)
        return;
    s->pairings[s->pairing_count++] = (paired){.pairing = p, .look = look, .departs = departs};
}

/* Widths of blocks that are often met come first: where nothing turns, a wider block does as well. */
static int width_rank(int64_t d, int64_t D)
{
    return d == D                                       ? 0
           : 2 * d == D || 4 * d == D || 4 * d == 3 * D ? 1
           : d % 32 == 0                                ? 2
           : d % 16 == 0                                ? 3
           : d % 8 == 0                                 ? 4
                                                        : 5;
}

static void add_block(rotation_search *s, const pe_pairing *e, int64_t offset, int64_t dim,
                      int is_expected_dim)
{
    for (int layouts = 0; layouts < 4; layouts++) {
        pe_pairing p = {layouts & 1, layouts >> 1, 1, offset, dim};
        p.in ^= e->in;
        p.out ^= e->out;
        const unsigned layout = p.in != e->in || p.out != e->out ? 1u << PE_LAYOUT : 0;
        add_pairing(s, p, layout | (is_expected_dim ? 0 : 1u << PE_DIM));
        if (s->N > 1 && p.in && p.out) {
            p.blocks = s->N;
            add_pairing(s, p, layout | (is_expected_dim ? 0 : 1u << PE_DIM) | 1u << PE_AXES);
        }
    }
}

/* All blocks that hold every channel that changes, at the head's front or tail. */
static posenc_status find_pairings(rotation_search *s, const pe_pairing *expected)
{
    const int64_t D       = s->rows->D;
    double       *changed = malloc((size_t)D * sizeof *changed);
    int64_t       low = D, high = -1;
    if (!changed)
        return POSENC_ERROR_MEMORY;
    pe_channels_changed(changed, s->rows);
    for (int64_t c = 0; c < D; c++)
        if (changed[c] > 10) {
            low  = low < c ? low : c;
            high = c;
        }
    free(changed);
    add_pairing(s, *expected, 0);
    add_block(s, expected, expected->offset, expected->dim, 1);
    for (int rank = 0; rank < 6; rank++)
        for (int64_t d = D - D % 2; d >= 2; d -= 2) {
            if (width_rank(d, D) != rank)
                continue;
            if (d > high)
                add_block(s, expected, 0, d, 0);
            if (d < D && D - d <= low)
                add_block(s, expected, D - d, d, 0);
        }
    return POSENC_OK;
}

static posenc_status measure_pairing(rotation_search *s, paired *p)
{
    p->unit                    = 1;
    const size_t        M      = (size_t)p->pairing.dim / 2;
    const posenc_status status = pe_gains_create(&p->gains, s->rows, &p->pairing, s->err);
    p->w                       = malloc(M * sizeof *p->w);
    p->error                   = malloc(M * sizeof *p->error);
    if (status || !p->w || !p->error)
        return POSENC_ERROR_MEMORY;
    if (s->N == 1) {
        p->agreed = pe_speeds(p->w, p->error, &p->reach, s->rows, p->gains);
        return POSENC_OK;
    }
    p->of_axes = malloc(3 * M * (size_t)s->N * sizeof *p->of_axes);
    for (int n = 0; p->of_axes && n < s->N; n++) {
        double *at    = p->of_axes + 3 * M * (size_t)n;
        p->reaches[n] = pe_speeds_of_axis(at, at + M, at + 2 * M, s->rows, p->gains, n);
    }
    return p->of_axes ? POSENC_OK : POSENC_ERROR_MEMORY;
}

/* Keeps pairings that leave over hardly more than the best does; the expected one stays, for comparison. */
static posenc_status keep_pairings(rotation_search *s)
{
    double best = INFINITY;
    int    kept = 1;
    for (int i = 0; i < s->pairing_count; i++)
        best = fmin(best, s->pairings[i].look);
    for (int i = 1; i < s->pairing_count; i++)
        if (s->pairings[i].look <= fmax(2, 1.7 * best + 0.5) && s->pairings[i].look < 40)
            s->pairings[kept++] = s->pairings[i];
    s->pairing_count = kept;
    s->floor         = INFINITY;
    for (int i = 0; i < kept; i++) {
        if (measure_pairing(s, &s->pairings[i]))
            return POSENC_ERROR_MEMORY;
        s->floor = fmin(s->floor, s->pairings[i].gains->floor);
    }
    double noise = 0;
    for (int i = 0; i < kept; i++) {
        const pe_gains *g = s->pairings[i].gains;
        if (g->floor == s->floor && noise == 0)
            for (int64_t k = 0; k < s->rows->count * g->M; k++)
                noise += g->noise[k];
    }
    s->noisiness = fmin(30, fmax(0.5, s->floor / (noise + 1e-300)));
    return POSENC_OK;
}

static int is_rotation(const rotation_search *s, const paired *p)
{
    return p->gains->floor <= fmax(2 * s->floor, s->floor + 4 * s->rows->total) &&
           s->floor <= 40 * s->rows->total;
}

/* ---------------------------------------------------------------- theories ------------------ */

static const char *pairing_text(char text[TEXT], const rotation_search *s, int pairing)
{
    const pe_pairing *p = &s->pairings[pairing].pairing;
    snprintf(text, TEXT, "layout=%s layout_out=%s dim=%lld offset_dim=%lld%s", p->in ? "half" : "interleaved",
             p->out == p->in ? "same"
             : p->out        ? "half"
                             : "interleaved",
             (long long)p->dim, (long long)p->offset, p->blocks > 1 ? " axis_rule=halves" : "");
    return text;
}

static posenc_encoding *make_encoding(const rotation_search *s, int pairing, const char *settings)
{
    posenc_encoding *e = NULL;
    posenc_error     why;
    char             text[TEXT], all[2 * TEXT];
    snprintf(all, sizeof all, "%s %s", pairing_text(text, s, pairing), settings);
    return posenc_encoding_create(&e, s->base, all, &why) ? NULL : e;
}

static void theory_free(theory *t)
{
    posenc_encoding_free(t->e);
    free(t->list);
}

/* Do these speeds, times a common step, go with what was measured? The step, or 0. */
static double common_step(const paired *p, const frame *f, double *sign)
{
    double above = 0, below = 0;
    *sign = 1;
    for (int64_t i = 0; i < f->M; i++) { /* from the slowest: its turn is not lost */
        const int64_t m = f->course.order[i];
        const double  w = f->course.w[m], got = p->w[m], sure = p->error[m] + 1e-7 * fabs(got);
        if (w == 0 || fabs(got) < 8 * p->error[m])
            continue;
        const double step  = below > 0 ? above / below : got / w;
        const double whole = got + 2 * pi * rint((step * w - got) / (2 * pi));
        above += w * whole / (sure * sure);
        below += w * w / (sure * sure);
    }
    const double step = below > 0 ? above / below : 1;
    for (int64_t m = 0; m < f->M; m++)
        if (fabs(remainder(step * f->course.w[m] - p->w[m], 2 * pi)) * p->reach >
            0.6 + 12 * p->error[m] * p->reach)
            return 0;
    return step;
}

static const char *fewest_digits(char text[40], double x, int digits)
{
    snprintf(text, 40, "%.*g", digits, x);
    return text;
}

static double nearest_round(double x, double slackness, int *digits)
{
    char text[40];
    for (*digits = 1; *digits < 12; ++*digits) {
        const double y = strtod(fewest_digits(text, x, *digits), NULL);
        if (fabs(y - x) <= slackness)
            return y;
    }
    return x;
}

/* Positions [rows,N] at which these speeds give the gains: of the few rows, or of all. */
static void find_places(double *list, const rotation_search *s, int pairing, const frame *f, int is_all)
{
    const pe_gains *g = s->pairings[pairing].gains;
    const int64_t   n = is_all ? s->rows->count : s->look_count;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = is_all ? i : s->look[i];
        for (int a = 0; a < s->N; a++) {
            const double p       = pe_place(g, row, &f->course, a, pe_row_position(s->rows, row)[a]);
            list[row * s->N + a] = fabs(p - rint(p)) < 0.02 ? rint(p) : p;
        }
    }
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
static double affine(const rotation_search *s, const double *list, double *step, double *offset)
{
    double        sx = 0, sy = 0, sxx = 0, sxy = 0, worst = 0;
    const int64_t n = s->rows->count * s->N;
    for (int64_t i = 0; i < n; i++) {
        const double x = pe_row_position(s->rows, i / s->N)[i % s->N], y = list[i];
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    const double spread = sxx - sx * sx / (double)n;
    *step               = spread > 0 ? (sxy - sx * sy / (double)n) / spread : 1;
    *offset             = (sy - *step * sx) / (double)n;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(list[i] - *step * pe_row_position(s->rows, i / s->N)[i % s->N] - *offset));
    return worst;
}

/* ---- positions that follow no rule of all rows, in words ---- */

static void describe_places(char words[PE_WORDS], const rotation_search *s, const double *list)
{
    int64_t first = -1, resets = 0, reset = -1, same_in_item = 1, repeats = 0, items = 0;
    double  least = INFINITY, most = -INFINITY;
    for (int64_t row = 0; row < s->rows->count; row++) {
        int64_t       b, l;
        const int64_t side = pe_row_side(s->rows, row, &b, &l);
        const double *p = pe_row_position(s->rows, row), shift = list[row * s->N] - p[0];
        const int64_t start = row - l;
        (void)side;
        first = first < 0 && shift != 0 ? row : first;
        items += l == 0;
        same_in_item &= shift == list[start * s->N] - pe_row_position(s->rows, start)[0];
        least = fmin(least, shift);
        most  = fmax(most, shift);
        if (l > 0 && list[row * s->N] < list[(row - 1) * s->N] - 0.5) {
            resets++;
            reset = reset < 0 ? l : reset;
        }
        repeats += l > 0 && list[row * s->N] == list[(row - 1) * s->N];
    }
    if (same_in_item && items > 1)
        snprintf(words, PE_WORDS, "each item has an offset of its own, from %.6g to %.6g", least, most);
    else if (resets)
        snprintf(words, PE_WORDS, "they start again at token %lld%s", (long long)reset,
                 resets > 1 ? ", and later" : "");
    else if (repeats * 4 > s->rows->count)
        snprintf(words, PE_WORDS, "several tokens have one position");
    else
        snprintf(words, PE_WORDS, "they differ from token %lld on (row %lld), by %.6g to %.6g",
                 (long long)(first < 0 ? 0 : first), (long long)(first < 0 ? 0 : first), least, most);
}

/* Decides between the expected positions, a rule for all, and a list. */
static void settle_places(theory *t, const rotation_search *s, const frame *f, double *list)
{
    double       step, offset;
    int          step_digits = 1, offset_digits = 1;
    const double worst  = affine(s, list, &step, &offset);
    double       extent = 1;
    for (int64_t row = 0; row < s->rows->count; row++)
        extent = fmax(extent, fabs(pe_row_position(s->rows, row)[0]));
    theory rule = *t;
    left   l;
    if (worst < 2 || worst < 0.02 * fabs(step)) {
        step        = nearest_round(step, 0.3 * fmin(0.1, fmax(worst, 1e-4)) / extent, &step_digits);
        offset      = fabs(offset) < fmax(0.04, 0.5 * worst)
                          ? 0
                          : nearest_round(offset, fmax(0.04, 0.5 * worst), &offset_digits);
        rule.step   = step;
        rule.offset = offset;
        measure(&rule, s, f, 0, &l);
    }
    if ((worst < 2 || worst < 0.02 * fabs(step)) && rule.misfit <= same + 0.5) {
        t->step   = step;
        t->offset = offset;
        free(list);
        t->departs |= step < 0 ? 1u << PE_DIRECTION : 0;
        t->departs |= fabs(step) != 1 || offset != 0 ? 1u << PE_POSITIONS : 0;
        t->cost += fabs(step) != 1 ? step_digits : 0;
        t->cost += offset != 0 ? offset_digits : 0;
        if (fabs(step) == 1 && offset == 0)
            snprintf(t->places, PE_WORDS, "as expected");
        else if (fabs(step) == 1)
            snprintf(t->places, PE_WORDS, "offset by %.10g", offset * step);
        else
            snprintf(t->places, PE_WORDS, "multiplied by %.10g%s%.0g", fabs(step),
                     offset != 0 ? ", then offset" : "", 0.0);
        if (fabs(step) != 1)
            snprintf(t->places, PE_WORDS,
                     offset != 0 ? "multiplied by %.10g, then offset by %.10g" : "multiplied by %.10g",
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
    describe_places(t->places, s, list);
}

static int departures(unsigned departs)
{
    int n = 0;
    for (; departs; departs &= departs - 1)
        n++;
    return n;
}

/* Is the size of the gains the encoding's? */
static void settle_size(theory *t, const rotation_search *s, const frame *f)
{
    const pe_gains *g        = s->pairings[t->pairing].gains;
    const double    relative = fmax(1e-6, ldexp(1, -(int)s->rows->bits - 1));
    int             is_size  = 1;
    for (int side = 0; side < s->in->count; side++)
        is_size &= fabs(g->size[side] / f->course.size - 1) <= relative;
    for (int side = 0; side < 2; side++)
        t->size[side] = f->course.size;
    if (is_size)
        return;
    theory other = *t;
    left   mine, theirs;
    for (int side = 0; side < 2; side++)
        other.size[side] = g->size[side];
    measure(t, s, f, 0, &mine);
    measure(&other, s, f, 0, &theirs);
    if (t->misfit > 1 && t->misfit > other.misfit + 0.5) {
        *t = other;
        t->departs |= 1u << PE_MAGNITUDE;
    }
}

/* Is there any position at all for a few of the rows? */
static int has_places(rotation_search *s, theory *t, const frame *f, double *list)
{
    enum { FEW = 12 };
    const int all = s->look_count;
    int64_t   kept[LOOK];
    left      l;
    memcpy(kept, s->look, sizeof kept);
    if (all > 2 * FEW) {
        s->look_count = FEW;
        for (int i = 0; i < FEW; i++)
            s->look[i] = kept[(i * 2 + 1) * all / (2 * FEW)];
        find_places(list, s, t->pairing, f, 0);
        settle_size(t, s, f);
        measure(t, s, f, 0, &l);
        memcpy(s->look, kept, sizeof kept);
        s->look_count = all;
        if (t->misfit > 20)
            return 0;
    }
    find_places(list, s, t->pairing, f, 0);
    settle_size(t, s, f);
    measure(t, s, f, 0, &l);
    return t->misfit <= same + 0.5;
}

static void keep(rotation_search *s, theory *t)
{
    t->cost += 100 * departures(t->departs);
    if (s->theory_count < MOST_THEORIES) {
        s->theories[s->theory_count++] = *t;
        return;
    }
    int worst = 0;
    for (int i = 1; i < s->theory_count; i++)
        worst = s->theories[i].cost > s->theories[worst].cost ? i : worst;
    if (s->theories[worst].cost <= t->cost) {
        theory_free(t);
        return;
    }
    theory_free(&s->theories[worst]);
    s->theories[worst] = *t;
}

static void say(char *words, const char *format, ...) PE_PRINTF(2, 3);
static void say(char *words, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(words, PE_WORDS, format, list);
    va_end(list);
}

static int is_permuted(const rotation_search *s)
{
    int is_it = 0;
    for (int n = 0; n < s->N; n++)
        is_it |= s->axes[n] != n;
    return is_it;
}

/* At the expected positions, or at those that its speeds tell, if they tell any. */
static int place_theory(theory *t, rotation_search *s, const frame *f)
{
    theory plain = *t;
    left   l;
    settle_size(&plain, s, f);
    measure(&plain, s, f, 0, &l);
    say(plain.places, "as expected");
    if (plain.misfit <= same + 0.5) {
        *t = plain;
        return 1;
    }
    double *list = is_permuted(s) ? NULL : malloc((size_t)(s->rows->count * s->N) * sizeof *list);
    if (!list)
        return 0;
    t->list         = list;
    const int is_it = has_places(s, t, f, list);
    t->list         = NULL;
    if (!is_it) {
        free(list);
        return 0;
    }
    find_places(list, s, t->pairing, f, 1);
    settle_places(t, s, f, list);
    return 1;
}

/* One encoding: at the positions that its speeds tell, if they tell any. Kept where it leaves nothing over.
 */
static int try(rotation_search *s, int pairing, const char *settings, unsigned departs, int cost,
               const char *words)
{
    paired *p = &s->pairings[pairing];
    frame   f;
    double  sign;
    left    l;
    theory  t = {.departs = departs | p->departs, .cost = cost, .pairing = pairing, .step = 1};
    t.e       = make_encoding(s, pairing, settings);
    if (!t.e || !frame_open(&f, s, t.e)) {
        posenc_encoding_free(t.e);
        return 0;
    }
    for (int n = 0; n < PE_MOST_AXES; n++)
        t.axes[n] = s->axes[n];
    if (pairing)
        t.cost += width_rank(p->pairing.dim, s->rows->D);
    say(t.words, "%s", words);
    int is_it = has_channels(&f, &p->pairing) && !(p->agreed > 0.9 && common_step(p, &f, &sign) == 0) &&
                place_theory(&t, s, &f);
    if (is_it)
        measure(&t, s, &f, 1, &l);
    is_it = is_it && t.misfit <= same + 0.5;
    frame_free(&f);
    if (is_it)
        keep(s, &t);
    else
        theory_free(&t);
    return is_it;
}

/* ---------------------------------------------------------------- numbers that fit ---------- */

enum { BASE = 1, FACTOR = 2 };

/* Settings with two numbers to find. */
typedef struct family {
    const char *fixed; /* "schedule=yarn original_length=4096" */
    const char *key;   /* "factor" or "alpha"; NULL: it has none */
    double      base, factor;
} family;

static void family_text(char text[TEXT], const family *f)
{
    if (f->key)
        snprintf(text, TEXT, "%.300s base=%.17g %s=%.17g", f->fixed, f->base, f->key, f->factor);
    else
        snprintf(text, TEXT, "%.300s base=%.17g", f->fixed, f->base);
}

/* log of each speed; 0 where it cannot be. */
static int family_speeds(double *logs, const rotation_search *s, int pairing, const family *f)
{
    char  text[TEXT + 80];
    frame one;
    family_text(text, f);
    posenc_encoding *e     = make_encoding(s, pairing, text);
    const int        is_it = e && frame_open(&one, s, e);
    if (is_it) {
        for (int64_t m = 0; m < one.M && m < s->pairings[pairing].pairing.dim / 2; m++)
            logs[m] = one.course.w[m] != 0 ? log(fabs(one.course.w[m])) : -INFINITY;
        frame_free(&one);
    }
    posenc_encoding_free(e);
    return is_it;
}

/* One step of Gauss and Newton on the logarithms of base and factor; whether it could be taken. */
static int improve(family *f, const rotation_search *s, int pairing, int loose, double *work, double *moves)
{
    const paired *p  = &s->pairings[pairing];
    const int64_t M  = p->pairing.dim / 2;
    double       *at = work, *by_base = work + M, *by_factor = work + 2 * M;
    const double  h     = 1e-3;
    family        moved = *f;
    moved.base *= exp(h);
    if (!family_speeds(at, s, pairing, f) || ((loose & BASE) && !family_speeds(by_base, s, pairing, &moved)))
        return 0;
    moved = *f;
    moved.factor *= exp(h);
    if ((loose & FACTOR) && !family_speeds(by_factor, s, pairing, &moved))
        return 0;
    double aa = 1e-9, ab = 0, bb = 1e-9, ra = 0, rb = 0;
    for (int64_t m = 0; m < M; m++) {
        const double got = fabs(p->w[m]) / p->unit;
        if (got * p->unit < 8 * p->error[m] || !isfinite(at[m]))
            continue;
        const double sure = p->error[m] / got + s->coarse, r = (log(got) - at[m]) / sure;
        const double a = loose & BASE ? (by_base[m] - at[m]) / h / sure : 0,
                     b = loose & FACTOR ? (by_factor[m] - at[m]) / h / sure : 0;
        if (!isfinite(a) || !isfinite(b))
            continue;
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ra += a * r;
        rb += b * r;
    }
    const double det = aa * bb - ab * ab, da = (ra * bb - rb * ab) / det, db = (rb * aa - ra * ab) / det;
    if (!(det > 0) || !isfinite(da) || !isfinite(db))
        return 0;
    f->base *= exp(fmax(-3, fmin(3, loose & BASE ? da : 0)));
    f->factor *= exp(fmax(-2, fmin(2, loose & FACTOR ? db : 0)));
    *moves = fabs(loose & BASE ? da : 0) + fabs(loose & FACTOR ? db : 0);
    return f->base > 1 && f->base < 1e15 && f->factor > 1e-4 && f->factor < 1e6;
}

/* Are these the speeds that were measured, but for some that were measured badly? */
static int has_speeds(const double *logs, const rotation_search *s, const paired *p)
{
    const int64_t M   = p->pairing.dim / 2;
    double        bad = 0, all = 0;
    for (int64_t m = 0; m < M; m++) {
        const double got = fabs(p->w[m]) / p->unit;
        if (got * p->unit < 8 * p->error[m] || !isfinite(logs[m]))
            continue;
        bad += fabs(log(got) - logs[m]) > 6 * (p->error[m] / got + s->coarse);
        all++;
    }
    return bad <= 0.25 * all;
}

static int fit_family(family *f, const rotation_search *s, int pairing, int loose)
{
    const paired *p     = &s->pairings[pairing];
    double       *work  = malloc((size_t)(3 * p->pairing.dim / 2) * sizeof *work);
    int           is_it = work != NULL;
    double        moves = 1;
    for (int round = 0; is_it && round < 10 && moves > 1e-9; round++)
        is_it = improve(f, s, pairing, loose, work, &moves);
    if (is_it && p->agreed > 0.9)
        is_it = family_speeds(work, s, pairing, f) && has_speeds(work, s, p);
    free(work);
    return is_it;
}

/* Tries a family's numbers with as few digits as do. */
static int try_family(rotation_search *s, int pairing, family f, int loose, unsigned departs,
                      const char *words)
{
    char         text[TEXT], said_words[PE_WORDS], number_text[40];
    const family exact = f;
    for (int digits = 1; digits <= 7; digits++) {
        if (loose & BASE)
            f.base = strtod(fewest_digits(number_text, exact.base, digits), NULL);
        if (loose & FACTOR)
            f.factor = strtod(fewest_digits(number_text, exact.factor, digits), NULL);
        if (f.base <= 1)
            continue;
        family_text(text, &f);
        say(said_words, "%s", words);
        if (try(s, pairing, text, departs, 2 * digits, said_words))
            return 1;
    }
    return 0;
}

static int fit_and_try(rotation_search *s, int pairing, family f, int loose, unsigned departs,
                       const char *words)
{
    return s->pairings[pairing].w && fit_family(&f, s, pairing, loose) &&
           try_family(s, pairing, f, loose, departs, words);
}

/* The fastest pair turns by 1 a step without a schedule: by 2, 1/2, ... where positions have that step. */
static double whole_unit(const paired *p)
{
    const double got = fabs(p->w[0]), step = got >= 1 ? rint(got) : got > 0 ? 1 / rint(1 / got) : 1;
    return p->agreed > 0.9 && fabs(got / step - 1) < 1e-3 && step < 4 && step > 0.01 ? step : 1;
}

static const unsigned to_base = 1u << PE_BASE, to_schedule = 1u << PE_SCHEDULE, to_factor = 1u << PE_FACTOR;

/* The expected schedule with other numbers, or none. */
static void try_numbers(rotation_search *s, int p, const char *prefix, unsigned departs)
{
    char         schedule[64], text[TEXT];
    const char  *spec = s->base;
    const double base = number(spec, "base", 1e4);
    const int    has  = said(schedule, sizeof schedule, spec, "schedule") && strcmp(schedule, "default") != 0;
    const char  *key  = !has ? NULL : !strcmp(schedule, "ntk") ? "alpha" : "factor";
    const family f    = {prefix, key && number(spec, key, 0) > 0 ? key : NULL, base,
                      key ? number(spec, key, 0) : 1};
    snprintf(text, sizeof text, "%s schedule=default", prefix);
    try(s, p, prefix, departs, 0, "");
    if (has)
        try(s, p, text, departs | to_schedule, 0, "the schedule is dropped");
    fit_and_try(s, p, f, BASE, departs | to_base, "");
    s->pairings[p].unit = whole_unit(&s->pairings[p]);
    if (s->pairings[p].unit != 1) { /* another base at positions of another step */
        fit_and_try(s, p, f, BASE, departs | to_base, "");
        if (f.key)
            fit_and_try(s, p, f, FACTOR, departs | to_factor, "");
    }
    s->pairings[p].unit = 1;
    if (has)
        fit_and_try(s, p, (family){text, NULL, base, 1}, BASE, departs | to_base | to_schedule,
                    "the schedule is dropped");
    if (f.key) {
        static const double starts[] = {0, 1.5, 3, 6, 12, 24, 48};
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
            family other = f;
            other.factor = i ? starts[i] : f.factor;
            if (fit_and_try(s, p, other, FACTOR, departs | to_factor, ""))
                break;
        }
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
            family other = f;
            other.factor = i ? starts[i] : f.factor;
            if (fit_and_try(s, p, other, BASE | FACTOR, departs | to_factor | to_base, ""))
                break;
        }
    }
    if (has && (!strcmp(schedule, "dynamic") || !strcmp(schedule, "longrope"))) {
        snprintf(text, sizeof text, "%s length=1", prefix);
        try(s, p, text, departs | to_schedule, 2, "as for short sequences");
        snprintf(text, sizeof text, "%s length=1e9", prefix);
        try(s, p, text, departs | to_schedule, 3, "as for long sequences");
    }
}

/* The exponent divided by the width of the head, not of the rotated block; and the other way round. */
static void try_exponents(rotation_search *s, int p, const char *prefix, unsigned departs)
{
    char         text[TEXT];
    const double base = number(s->base, "base", 1e4), D = (double)s->rows->D;
    const double d = (double)s->pairings[p].pairing.dim, expected = (double)s->pairings[0].pairing.dim;
    const double widths[] = {D, expected};
    for (int i = 0; i < 2; i++)
        if (widths[i] != d) {
            snprintf(text, sizeof text, "%s base=%.17g", prefix, pow(base, d / widths[i]));
            try(s, p, text, departs | 1u << PE_DIM, 4 + i,
                "the exponent is divided by another width than that of the rotated block");
        }
}

/* A schedule that is not the expected one, with numbers of which the expected may know some. */
static void try_schedule(rotation_search *s, int p, const char *prefix, unsigned departs,
                         const char *settings, const char *key, double factor, unsigned extra, double base)
{
    char   fixed[TEXT];
    family f = {fixed, key, base, factor};
    char   text[TEXT];
    snprintf(fixed, sizeof fixed, "%s %s", prefix, settings);
    const double expected = number(s->base, key, 0);
    if (expected > 0 && expected != factor) {
        family given = f;
        given.factor = expected;
        family_text(text, &given);
        if (try(s, p, text, departs | to_schedule | (extra & to_base), 1, ""))
            return;
    }
    fit_and_try(s, p, f, FACTOR, departs | to_schedule | extra, "");
}

static void try_schedules(rotation_search *s, int p, const char *prefix, unsigned departs, double base,
                          unsigned extra)
{
    static const double lengths[] = {0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
    char                schedule[64], text[TEXT];
    const int has = said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    const unsigned and_factor = has && number(s->base, "factor", 0) > 0 ? to_factor : 0;
    const paired  *q          = &s->pairings[p];
    const int64_t  M          = q->pairing.dim / 2;
    double         slowest    = 1; /* how much slower the slowest pair is than without a schedule */
    if (q->agreed <= 0.9 || M < 2)
        return;
    for (int64_t m = 0; m < M; m++)
        if (fabs(q->w[m]) > 30 * q->error[m])
            slowest = fmax(slowest, pow(base, -(double)m / (double)M) / fabs(q->w[m]));
    if (!has || strcmp(schedule, "linear") != 0)
        try_schedule(s, p, prefix, departs, "schedule=linear", "factor", slowest, extra | and_factor, base);
    if (!has || strcmp(schedule, "ntk") != 0)
        try_schedule(s, p, prefix, departs, "schedule=ntk", "alpha", slowest, extra, base);
    if (slowest < 1.005)
        return;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const double length =
            i ? lengths[i] : number(s->base, "original_length", number(s->base, "max_length", 0));
        if (!(length > 1))
            continue;
        const unsigned named = !has || (strcmp(schedule, "yarn") != 0) ? and_factor : 0;
        for (int truncate = 1; truncate >= 0; truncate--) {
            snprintf(text, sizeof text, "schedule=yarn original_length=%.10g truncate=%s", length,
                     truncate ? "yes" : "no");
            try_schedule(s, p, prefix, departs, text, "factor", slowest, extra | named, base);
        }
        snprintf(text, sizeof text,
                 "schedule=llama3 original_length=%.10g low_freq_factor=1 high_freq_factor=4", length);
        try_schedule(s, p, prefix, departs, text, "factor", slowest, extra | named, base);
        snprintf(text, sizeof text, "schedule=dynamic max_length=%.10g", length);
        if (s->length > length)
            try_schedule(s, p, prefix, departs, text, "factor", 2, extra | named, base);
    }
    if (!has || strcmp(schedule, "ntk_mixed") != 0)
        try_schedule(s, p, prefix, departs, "schedule=ntk_mixed", "factor", slowest, extra | and_factor,
                     base);
}

static int best_cost(const rotation_search *s)
{
    int best = 1000;
    for (int i = 0; i < s->theory_count; i++)
        best = s->theories[i].cost < best ? s->theories[i].cost : best;
    return best;
}

/* Speeds of several coordinates depend on which pair follows which. Returns how far the angles are from those
   of such speeds, 0 to 1: large where the rule is another. */
static double measure_axes(rotation_search *s, int p, const char *settings)
{
    paired          *q        = &s->pairings[p];
    const int64_t    M        = q->pairing.dim / 2;
    double           disorder = 1;
    frame            f;
    posenc_encoding *e = make_encoding(s, p, settings);
    if (e && frame_open(&f, s, e)) {
        q->reach = 1;
        disorder = f.M == M ? 0 : 1;
        for (int64_t m = 0; m < M && f.M == M; m++) {
            const int     n  = s->axes[f.course.coordinate[m]];
            const double *at = q->of_axes + 3 * M * n + m;
            q->w[m]          = at[0];
            q->error[m]      = at[M];
            q->reach         = fmax(q->reach, q->reaches[n]);
            disorder += (1 - at[2 * M]) / (double)M;
        }
        q->agreed = 0.95;
        frame_free(&f);
    }
    posenc_encoding_free(e);
    return disorder;
}

static int is_heard(const paired *p, int64_t m)
{
    return fabs(p->w[m]) > 8 * p->error[m];
}

/* The base by which w[m] is so much slower than a pair `pairs` before it; 0 where that is not sure. */
static double told_base(const paired *p, int64_t m, int64_t pairs, double before)
{
    const double M = (double)p->pairing.dim / 2, got = fabs(p->w[m]);
    const double error = (16 * p->error[m] / got + 1e-6) * M / (double)pairs;
    int          digits;
    const double base = pow(before / got, M / (double)pairs);
    return error < 0.3 ? nearest_round(base, base * error, &digits) : 0;
}

/* The bases that the fastest pairs tell, which schedules leave alone, and the slowest, which they slow alike.
 */
static void tell_bases(double told[2], const paired *p)
{
    const int64_t M = p->pairing.dim / 2, apart = M / 10 + 1;
    told[0] = told[1] = 0;
    for (int64_t m = 4; m > 0; m--)
        if (m < M && is_heard(p, m))
            told[0] = told_base(p, m, m, 1);
    for (int64_t m = apart; m < M; m++)
        if (is_heard(p, m) && is_heard(p, m - apart))
            told[1] = told_base(p, m, apart, fabs(p->w[m - apart]));
}

static void try_pairing(rotation_search *s, int p, const char *prefix, unsigned departs)
{
    const int so_far = departures(s->pairings[p].departs | departs);
    if (100 * so_far > best_cost(s) + 20)
        return;
    if (s->N > 1)
        measure_axes(s, p, prefix);
    try_numbers(s, p, prefix, departs);
    if (100 * so_far + 100 > best_cost(s) + 20)
        return;
    try_exponents(s, p, prefix, departs);
    try_schedules(s, p, prefix, departs, number(s->base, "base", 1e4), 0);
    if (100 * so_far + 200 > best_cost(s) + 20)
        return;
    double told[2];
    tell_bases(told, &s->pairings[p]);
    for (int i = 0; i < 2 && 100 * so_far + 200 <= best_cost(s) + 20; i++)
        if (told[i] > 1 && told[i] < 1e12 && told[i] != number(s->base, "base", 1e4) &&
            (!i || told[1] != told[0]))
            try_schedules(s, p, prefix, departs, told[i], to_base);
    fit_and_try(s, p, (family){"schedule=linear", "factor", 1e4, 2}, BASE | FACTOR,
                departs | to_base | to_schedule, "");
}

/* ---------------------------------------------------------------- axes ---------------------- */

enum { MOST_RULES = 40 };

/* Which pair follows which coordinate. */
typedef struct follow {
    char     settings[64];
    int      axes[PE_MOST_AXES];
    unsigned departs;
    double   disorder;
} follow;

static void add_follow(follow *list, int *count, const rotation_search *s, const char *rule, unsigned departs)
{
    if (*count == MOST_RULES)
        return;
    follow *f = &list[(*count)++];
    *f        = (follow){.departs = departs};
    snprintf(f->settings, sizeof f->settings, "%s%s", *rule ? "axis_rule=" : "", rule);
    memcpy(f->axes, s->axes, sizeof f->axes);
}

/* The expected rule, others, and the expected one with coordinates taken for each other. */
static int list_follows(follow *list, rotation_search *s)
{
    static const char *const rules[] = {"sections",
                                        "interleaved_sections",
                                        "interleaved_sections_ggml",
                                        "alternate_sections",
                                        "balanced",
                                        "axial",
                                        "axial_alternate",
                                        "alternate"};
    char                     value[64];
    int                      count = 0;
    said(value, sizeof value, s->base, "axis_rule");
    add_follow(list, &count, s, "", 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i], *value ? value : "sections"))
            add_follow(list, &count, s, rules[i], 1u << PE_AXES);
    for (int way = 1; way < 27 && s->N <= 3; way++) {
        int is_identity = 1, is_possible = 1;
        for (int n = 0, left_over = way; n < s->N; n++, left_over /= 3) {
            s->axes[n] = (n + left_over) % 3;
            is_identity &= s->axes[n] == n;
            is_possible &= s->axes[n] < s->N;
        }
        if (is_possible && !is_identity)
            add_follow(list, &count, s, "", 1u << PE_AXES);
    }
    return count;
}

/* A rule by which pairs turn with no one speed is not tried: that would take long, and in vain. */
static void try_axes(rotation_search *s, int p)
{
    follow    list[MOST_RULES];
    double    least = 1;
    const int count = s->N > 1 ? list_follows(list, s) : 0;
    if (s->N == 1)
        try_pairing(s, p, "", 0);
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        list[i].disorder = measure_axes(s, p, list[i].settings);
        least            = fmin(least, list[i].disorder);
    }
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        if (list[i].disorder <= 3 * least + 0.02)
            try_pairing(s, p, list[i].settings, list[i].departs);
    }
    for (int n = 0; n < PE_MOST_AXES; n++)
        s->axes[n] = n;
}

/* ---------------------------------------------------------------- fewer bits ---------------- */

/* Cells whose angle is small cannot be far off, whatever was rounded. */
static int may_be_low(const rotation_search *s, const theory *t, const frame *f)
{
    const pe_gains *g   = s->pairings[t->pairing].gains;
    double          bad = 0, all = 0;
    for (int i = 0; i < s->look_count; i++) {
        const int64_t row = s->look[i];
        int64_t       b, l;
        const int64_t side = pe_row_side(s->rows, row, &b, &l);
        for (int64_t m = 0; m < g->M; m++) {
            const int64_t at = row * g->M + m;
            const double  a  = f->course.w[m] * place_of(s, t, row, f->course.coordinate[m]);
            if (!(fabs(a) < 0.5) || !(fabs(a) > 0) || !(g->power[at] > 0))
                continue;
            const double d = distance_of(g->z[at], turned(t->size[side], a));
            bad += d > 0x1p-6 * fabs(a) + 0x1p-7 + 6 * sqrt(s->noisiness * g->noise[at] / g->power[at]);
            all++;
        }
    }
    return all > 0 && bad <= 0.04 * all;
}

static void try_low(rotation_search *s, theory *t, const frame *f)
{
    left   l;
    double plain, misfit;
    t->low = 0;
    if (!may_be_low(s, t, f))
        return;
    measure(t, s, f, 0, &l);
    plain  = l.bad;
    misfit = t->misfit;
    for (int low = 1; low <= LOWS; low++) {
        t->low = low;
        if (lows[low - 1].places < 0 && s->N > 1)
            continue;
        measure(t, s, f, 0, &l);
        const int is_heard = l.bad <= 0.03 * l.cells && l.bad <= 0.3 * plain;
        if (!is_heard && !(t->misfit < 1 && t->misfit < misfit - 1)) /* many cells, each a little off */
            continue;
        theory copy = *t;
        copy.e      = NULL;
        copy.list   = NULL;
        posenc_error why;
        if (posenc_encoding_create(&copy.e, posenc_encoding_spec(t->e), NULL, &why))
            return;
        if (t->list) {
            const size_t bytes = (size_t)(s->rows->count * s->N) * sizeof *copy.list;
            copy.list          = malloc(bytes);
            if (!copy.list) {
                posenc_encoding_free(copy.e);
                return;
            }
            memcpy(copy.list, t->list, bytes);
        }
        copy.departs |= 1u << PE_ANGLES;
        copy.cost += low;
        measure(&copy, s, f, 1, &l);
        keep(s, &copy);
        return;
    }
}

/* Expected positions that start again at 0 wherever nothing is turned; NULL where they never do. */
static double *restarted(const rotation_search *s, int pairing)
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

/* A theory that turns one way, with the magnitude of its encoding, and with that which was measured. */
static void try_low_sizes(rotation_search *s, theory u, const frame *f)
{
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

static void try_low_restarted(rotation_search *s, theory u, const frame *f)
{
    u.list = s->N == 1 ? restarted(s, u.pairing) : NULL;
    if (!u.list)
        return;
    for (int64_t row = 0; u.step < 0 && row < s->rows->count; row++)
        u.list[row] = -u.list[row];
    u.departs |= 1u << PE_POSITIONS;
    describe_places(u.places, s, u.list);
    try_low_sizes(s, u, f);
    free(u.list);
}

enum { SHIFTS = 9 };

/* Offsets that some rows tell: small positions are the least rounded. How many there are, 0 among them. */
static int list_shifts(double list[SHIFTS], const rotation_search *s, const theory *t, const frame *f)
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

static void try_low_encoding(rotation_search *s, int p, const char *settings, unsigned departs, int cost)
{
    frame  f;
    theory t = {.departs = departs | s->pairings[p].departs, .cost = cost, .pairing = p};
    t.e      = make_encoding(s, p, settings);
    for (int n = 0; n < PE_MOST_AXES; n++)
        t.axes[n] = n;
    if (!t.e || !frame_open(&f, s, t.e)) {
        posenc_encoding_free(t.e);
        return;
    }
    for (int inverse = 0; inverse < 2 && has_channels(&f, &s->pairings[p].pairing); inverse++) {
        double shifts[SHIFTS];
        t.step = inverse ? -1 : 1;
        t.departs |= inverse ? 1u << PE_DIRECTION : 0;
        try_low_restarted(s, t, &f);
        const int count = list_shifts(shifts, s, &t, &f);
        for (int i = 0; i < count; i++) {
            theory u = t;
            u.offset = u.step * shifts[i];
            u.departs |= shifts[i] != 0 ? 1u << PE_POSITIONS : 0;
            say(u.places, shifts[i] != 0 ? "offset by %.10g" : "as expected", shifts[i]);
            try_low_sizes(s, u, &f);
        }
    }
    frame_free(&f);
    posenc_encoding_free(t.e);
}

static int has_low(const rotation_search *s)
{
    int has = 0;
    for (int i = 0; i < s->theory_count; i++)
        has |= s->theories[i].low > 0;
    return has;
}

/* Numbers that give the measured speeds nearly, with as few digits as do. */
static void fit_low(rotation_search *s, int p, family f, int loose, unsigned departs)
{
    char         text[TEXT], last[TEXT] = "", number_text[40];
    const int    is_it = !has_low(s) && fit_family(&f, s, p, loose);
    const family exact = f;
    for (int digits = 1; digits <= 5 && is_it && !has_low(s); digits++) {
        if (loose & BASE)
            f.base = strtod(fewest_digits(number_text, exact.base, digits), NULL);
        if (loose & FACTOR)
            f.factor = strtod(fewest_digits(number_text, exact.factor, digits), NULL);
        family_text(text, &f);
        if (f.base > 1 && strcmp(text, last) && fabs(log(f.base / exact.base)) < 0.1 &&
            fabs(log(f.factor / exact.factor)) < 0.1)
            try_low_encoding(s, p, text, departs, 2 * digits);
        snprintf(last, sizeof last, "%s", text);
    }
}

/* The expected schedule with another base or factor, no schedule, and each of the others. */
static void fit_lows(rotation_search *s, int p)
{
    static const double      lengths[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 131072};
    static const char *const named[]   = {"schedule=yarn original_length=%.10g",
                                          "schedule=llama3 original_length=%.10g low_freq_factor=1 "
                                            "high_freq_factor=4"};
    char                     schedule[64], text[TEXT];
    const int has = said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    const char  *key  = !has ? NULL : !strcmp(schedule, "ntk") ? "alpha" : "factor";
    const double base = number(s->base, "base", 1e4), factor = key ? number(s->base, key, 0) : 0;
    const family expected = {"", factor > 0 ? key : NULL, base, factor > 0 ? factor : 1};
    if (s->N > 1)
        measure_axes(s, p, "");
    s->coarse = bfloat16;
    fit_low(s, p, expected, BASE, to_base);
    if (expected.key)
        fit_low(s, p, expected, FACTOR, to_factor);
    if (has)
        fit_low(s, p, (family){"schedule=default", NULL, base, 1}, BASE, to_base | to_schedule);
    fit_low(s, p, (family){"schedule=linear", "factor", base, 2}, FACTOR, to_schedule);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths * 2; i++) {
        snprintf(text, sizeof text, named[i % 2], lengths[i / 2]);
        fit_low(s, p, (family){text, "factor", base, 4}, FACTOR, to_schedule);
    }
    s->coarse = fine;
}

/* Where speeds cannot be measured: numbers that are often met. */
static void guess_lows(rotation_search *s, int p)
{
    static const double bases[] = {1e2, 1e3, 1e4, 2e4, 1e5, 1.5e5, 1.6e5, 5e5, 1e6, 2e6, 4e6, 5e6, 8e6, 1e7};
    static const double factors[] = {1.5, 2, 3, 4, 6, 8, 10, 16, 20, 32, 40, 64};
    char                text[TEXT], schedule[64];
    const int has = said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        snprintf(text, sizeof text, "base=%.10g", bases[i]);
        if (bases[i] != number(s->base, "base", 1e4))
            try_low_encoding(s, p, text, to_base, 2);
    }
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const char *key = has && !strcmp(schedule, "ntk") ? "alpha" : "factor";
        snprintf(text, sizeof text, "%s %s=%.10g", has ? "" : "schedule=linear", key, factors[i]);
        if (factors[i] != number(s->base, key, 1))
            try_low_encoding(s, p, text, has ? to_factor : to_schedule, 2);
    }
}

static void try_lows(rotation_search *s)
{
    char      schedule[64];
    const int has = said(schedule, sizeof schedule, s->base, "schedule") && strcmp(schedule, "default") != 0;
    for (int p = 0; p < s->pairing_count && p < 12; p++) {
        if (!is_rotation(s, &s->pairings[p]))
            continue;
        try_low_encoding(s, p, "", 0, 0);
        if (has)
            try_low_encoding(s, p, "schedule=default", to_schedule, 0);
        if (best_cost(s) <= 125) /* positions of no rule may be rounded ones; more is not needed */
            continue;
        fit_lows(s, p);
        if (!has_low(s))
            guess_lows(s, p);
    }
}

/* ---------------------------------------------------------------- the verdict --------------- */

static void read_theory(pe_reading *r, const theory *t)
{
    *r = (pe_reading){.departs = t->departs, .step = t->step, .offset = t->offset, .mismatch = t->misfit};
    snprintf(r->spec, sizeof r->spec, "%s", posenc_encoding_spec(t->e));
    snprintf(r->words, sizeof r->words, "%s", t->words);
    snprintf(r->positions, sizeof r->positions, "%s", t->places);
    memcpy(r->axes, t->axes, sizeof r->axes);
    r->magnitude        = t->size[0];
    const struct low *l = t->low ? &lows[t->low - 1] : NULL;
    snprintf(r->angles, sizeof r->angles, "%s",
             l                   ? l->places < 0 ? "ggml"
                                   : l->is_f16   ? "float16"
                                                 : "bfloat16"
             : t->strict <= same ? "exact"
                                 : "float32");
}

static const char *value_of(char text[64], const char *spec, const char *name, const char *otherwise)
{
    if (!said(text, 64, spec, name))
        snprintf(text, 64, "%s", otherwise);
    return text;
}

static void advise_setting(pe_diagnosis *d, const char *name, const char *otherwise, const char *mend)
{
    char got[64], wanted[64];
    value_of(got, d->found.spec, name, otherwise);
    value_of(wanted, d->expected.spec, name, otherwise);
    if (strcmp(got, wanted))
        pe_mends_add(&d->advice, "%s is %s, and should be %s%s", name, got, wanted, mend);
}

static void advise_magnitude(pe_diagnosis *d, double wanted)
{
    const double got = d->found.magnitude;
    if (fabs(got / wanted / wanted - 1) < 0.004 && fabs(wanted - 1) > 0.004)
        pe_mends_add(&d->advice, "the magnitude %.6g is applied twice: leave one of the two out", wanted);
    else if (fabs(got - 1) < 0.004)
        pe_mends_add(&d->advice, "the magnitude %.6g is never applied: multiply cosine and sine by it",
                     wanted);
    else
        pe_mends_add(&d->advice, "cosine and sine are multiplied by %.6g, and should be by %.6g", got,
                     wanted);
}

/* What to change, in plain words. */
static void advise_all(pe_diagnosis *d, double wanted_size)
{
    const unsigned x = d->departs;
    char           got[64], wanted[64];
    if (x >> PE_LAYOUT & 1) {
        pe_mends_add(
            &d->advice,
            "the pairs are those of layout=%s, written as %s: rotate with layout=%s, or reorder the rows "
            "of q and k in "
            "the checkpoint (posenc permute --to %s)",
            value_of(got, d->found.spec, "layout", "interleaved"),
            !strcmp(value_of(wanted, d->found.spec, "layout_out", "same"), "same") ? got : wanted,
            is_word(d->expected.spec, "layout", "half", 0) ? "half" : "interleaved", got);
    }
    if (x >> PE_DIM & 1) {
        advise_setting(d, "dim", "the whole head", " (rotary_dim, partial_rotary_factor)");
        advise_setting(d, "offset_dim", "0", "");
        if (*d->found.words && strstr(d->found.words, "exponent"))
            pe_mends_add(&d->advice, "%s", d->found.words);
    }
    if (x >> PE_DIRECTION & 1)
        pe_mends_add(&d->advice, "it rotates the other way: change the sign of the sine");
    if (x >> PE_BASE & 1)
        advise_setting(d, "base", "10000", " (rope_theta)");
    if (x >> PE_SCHEDULE & 1) {
        pe_mends_add(
            &d->advice,
            "the frequencies are those of schedule=%s, and should be of schedule=%s (rope_scaling)%s%s",
            value_of(got, d->found.spec, "schedule", "default"),
            value_of(wanted, d->expected.spec, "schedule", "default"), *d->found.words ? ": " : "",
            d->found.words);
    }
    if (x >> PE_FACTOR & 1) {
        advise_setting(d, "factor", "none", "");
        advise_setting(d, "alpha", "none", "");
    }
    if (x >> PE_POSITIONS & 1)
        pe_mends_add(&d->advice, "positions are %s, and should be as expected", d->found.positions);
    if (x >> PE_MAGNITUDE & 1)
        advise_magnitude(d, wanted_size);
    if (x >> PE_AXES & 1)
        pe_mends_add(&d->advice, "pairs follow other coordinates: %s, and should be axis_rule=%s",
                     value_of(got, d->found.spec, "axis_rule", "sections"),
                     value_of(wanted, d->expected.spec, "axis_rule", "sections"));
    if (x >> PE_ANGLES & 1)
        pe_mends_add(
            &d->advice,
            "angles are those of %s: compute frequencies, positions and angles in float32 at least%s",
            d->found.angles, strcmp(d->found.angles, "float32") ? "" : ", here in float64");
}

static int compare_theories(const void *a, const void *b)
{
    const theory *x = a, *y = b;
    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost)
                              : (x->misfit > y->misfit) - (x->misfit < y->misfit);
}

/* How far what is expected is from what was found, in roundings. */
static double distance(const rotation_search *s, int is_strict, theory *expected)
{
    frame f;
    left  l;
    *expected   = (theory){.step = 1};
    expected->e = make_encoding(s, 0, "");
    for (int n = 0; n < PE_MOST_AXES; n++)
        expected->axes[n] = n;
    say(expected->places, "as expected");
    if (!expected->e || !frame_open(&f, s, expected->e))
        return INFINITY;
    for (int side = 0; side < 2; side++)
        expected->size[side] = f.course.size;
    expected->low = is_word(s->base, "angles", "ggml", 0) ? LOWS : 0;
    measure(expected, s, &f, 1, &l);
    frame_free(&f);
    return is_strict ? expected->strict : expected->misfit;
}

/* The step of the positions: of a list, the one that most neighbours have. 0: none. */
static double theory_step(const rotation_search *s, const theory *t)
{
    const int64_t rows = s->rows->count;
    double        sum = 0, count = 0;
    if (!t->list)
        return fabs(t->step);
    for (int64_t row = 1; row < rows && s->N == 1; row++) {
        const double step  = t->list[row] - t->list[row - 1];
        const int    is_it = fabs(step - (t->list[1] - t->list[0])) < 0.1;
        sum += is_it ? step : 0;
        count += is_it;
    }
    return count > 0.8 * (double)rows ? fabs(sum) / count : 0;
}

/* Theories that give the same rotation by another name. */
static void add_siblings(pe_diagnosis *d, const rotation_search *s, const theory *best)
{
    pe_reading  *r = &d->alternatives[d->alternative_count];
    char         schedule[64];
    const double base = number(s->base, "base", 1e4), found = number(d->found.spec, "base", 1e4);
    said(schedule, sizeof schedule, d->found.spec, "schedule");
    const int    is_plain = !*schedule || !strcmp(schedule, "default");
    const double dim      = (double)s->pairings[best->pairing].pairing.dim;
    if (d->alternative_count + 3 > PE_MOST_ALTERNATIVES)
        return;
    if ((best->departs & to_base) && is_plain && dim > 2) {
        *r         = d->found;
        r->departs = (best->departs & ~to_base) | to_schedule;
        snprintf(r->words, PE_WORDS, "schedule=ntk alpha=%.6g, which is base=%.10g",
                 pow(found / base, (dim - 2) / dim), found);
        r++, d->alternative_count++;
    }
    const int    is_linear = !strcmp(schedule, "linear");
    const double step      = theory_step(s, best);
    const int    is_more   = best->list || best->offset != 0;
    if ((best->departs >> PE_POSITIONS & 1) && step > 0 && fabs(step - 1) > 0.01 && (is_plain || is_linear)) {
        const double factor = (is_linear ? number(d->found.spec, "factor", 1) : 1) / step;
        int          digits;
        *r = d->found;
        r->departs =
            (best->departs & ~(is_more ? 0 : 1u << PE_POSITIONS)) | (is_linear ? to_factor : to_schedule);
        snprintf(r->words, PE_WORDS, "schedule=linear factor=%.6g%s",
                 nearest_round(factor, 0.002 * factor, &digits), is_more ? ", and other positions" : "");
        r++, d->alternative_count++;
    }
    if ((best->departs & (to_schedule | to_factor)) && is_linear) {
        *r         = d->found;
        r->departs = (best->departs & ~(to_schedule | to_factor)) | 1u << PE_POSITIONS;
        snprintf(r->words, PE_WORDS, "positions divided by %.6g", number(d->found.spec, "factor", 1));
        r++, d->alternative_count++;
    }
    if ((best->departs & to_schedule) && !strcmp(schedule, "ntk")) {
        *r         = d->found;
        r->departs = (best->departs & ~to_schedule) | to_base;
        snprintf(r->words, PE_WORDS, "base=%.10g",
                 found * pow(number(d->found.spec, "alpha", 1), dim / (dim - 2)));
        r++, d->alternative_count++;
    }
}

/* What choose decides from. */
typedef struct choice {
    theory expected; /* no e where nothing is */
    double away;     /* of it, in roundings */
    double enough;   /* what a theory may leave */
    int    best;     /* of the theories; -1: none */
} choice;

static choice best_theory(rotation_search *s)
{
    choice c     = {.best = -1};
    double least = INFINITY;
    c.away       = s->in->e ? distance(s, s->in->is_strict, &c.expected) : INFINITY;
    qsort(s->theories, (size_t)s->theory_count, sizeof *s->theories, compare_theories);
    for (int i = 0; i < s->theory_count; i++)
        least = fmin(least, s->theories[i].misfit);
    c.enough = fmin(same, least + slack);
    for (int i = 0; i < s->theory_count && c.best < 0; i++)
        if (s->theories[i].low || s->theories[i].misfit <= c.enough)
            c.best = i;
    return c;
}

static void read_expected(pe_diagnosis *d, const rotation_search *s, const choice *c)
{
    d->difference = c->away;
    if (!c->expected.e)
        return;
    read_theory(&d->expected, &c->expected);
    snprintf(d->expected.angles, sizeof d->expected.angles, "%s",
             s->in->is_strict  ? "exact"
             : c->expected.low ? "ggml"
                               : "exact or float32");
}

static void judge_best(pe_diagnosis *d, const rotation_search *s, theory *t)
{
    read_theory(&d->found, t);
    if (s->in->is_strict && !t->low && t->strict > same)
        t->departs |= 1u << PE_ANGLES;
    d->found.departs = d->departs = s->in->e ? t->departs : 0;
    d->verdict                    = s->in->e && t->departs ? PE_DIFFERENT : PE_SAME;
    d->residual                   = t->misfit;
}

static void judge(pe_diagnosis *d, rotation_search *s, const choice *c)
{
    if (c->expected.e && c->away <= (c->best < 0 ? unheard : same)) {
        d->verdict = PE_SAME;
        read_theory(&d->found, &c->expected);
        d->residual = c->expected.misfit;
    } else if (c->best >= 0)
        judge_best(d, s, &s->theories[c->best]);
    else {
        d->verdict = PE_UNEXPLAINED;
        pe_mends_add(
            &d->advice,
            s->floor > 40 * s->rows->total
                ? "no pairs of channels are rotated by an angle: is it a rotation, and of this tensor?"
                : "these channels are rotated, but no base, schedule, factor or positions give their angles");
    }
}

/* Whether a theory says something that neither the finding nor an alternative says already. */
static int is_news(const pe_diagnosis *d, const theory *t, int is_near)
{
    if (!t->departs || d->alternative_count >= PE_MOST_ALTERNATIVES - 4)
        return 0;
    for (int k = 0; k < d->alternative_count; k++)
        if (d->alternatives[k].departs == t->departs)
            return 0;
    if (d->verdict != PE_DIFFERENT)
        return 1;
    return t->departs == d->departs ? is_near : (t->departs & d->departs) != d->departs;
}

static void list_alternatives(pe_diagnosis *d, const rotation_search *s, const choice *c)
{
    const int is_near = c->expected.e && c->away > same && c->away < near_by;
    for (int i = 0; i < s->theory_count && c->best >= 0 && s->in->e; i++) {
        const theory *t = &s->theories[i];
        if (!is_news(d, t, is_near) || t->misfit > c->enough + 0.5 ||
            t->cost > s->theories[c->best].cost / 100 * 100 + 199 ||
            (d->verdict == PE_SAME && !(t->misfit < c->away - 0.4)))
            continue;
        read_theory(&d->alternatives[d->alternative_count++], t);
    }
}

static void give_frequencies(pe_diagnosis *d, const rotation_search *s, const posenc_encoding *e)
{
    frame f;
    if (!frame_open(&f, s, e))
        return;
    d->frequencies = f.course.w;
    d->pairs       = f.M;
    f.course.w     = NULL;
    frame_free(&f);
}

static void choose(pe_diagnosis *d, rotation_search *s)
{
    const choice c = best_theory(s);
    read_expected(d, s, &c);
    judge(d, s, &c);
    list_alternatives(d, s, &c);
    if (d->verdict == PE_DIFFERENT) {
        add_siblings(d, s, &s->theories[c.best]);
        advise_all(d, c.expected.e ? c.expected.size[0] : 1);
    }
    if (d->verdict == PE_SAME && c.expected.e)
        give_frequencies(d, s, c.expected.e);
    else if (d->verdict != PE_UNEXPLAINED)
        give_frequencies(d, s, s->theories[c.best].e);
    posenc_encoding_free(c.expected.e);
}

/* ---------------------------------------------------------------- all of it ----------------- */

static void choose_rows(rotation_search *s)
{
    const int64_t n = s->rows->count, most = n < LOOK ? n : LOOK;
    for (int64_t i = 0; i < most; i++) /* the first few, and some of all the rest */
        s->look[s->look_count++] = i < most / 4 ? i : i * (n - 1) / (most > 1 ? most - 1 : 1);
}

static posenc_status check(const pe_rotation *in, posenc_error *err)
{
    for (int i = 0; i < in->count; i++) {
        const posenc_tensor *a = &in->sides[i].before, *b = &in->sides[i].after;
        if (a->ndim != 4 || b->ndim != 4 || memcmp(a->shape, b->shape, 4 * sizeof *a->shape) ||
            a->shape[3] != in->sides[0].before.shape[3] || a->shape[3] < 2) {
            *err = (posenc_error){.status = POSENC_ERROR_SHAPE,
                                  .message =
                                      "diagnose: tensors before and after must have one shape, [B,H,L,D]"};
            return err->status;
        }
    }
    return POSENC_OK;
}

static posenc_status look(pe_diagnosis *d, rotation_search *s)
{
    pe_pairing       expected = {0, 0, 1, 0, s->rows->D - s->rows->D % 2};
    posenc_encoding *e        = NULL;
    for (int64_t row = 0; row < s->rows->count; row++)
        for (int n = 0; n < s->N; n++)
            s->length = fmax(s->length, pe_row_position(s->rows, row)[n] + 1);
    const posenc_status status = posenc_encoding_create(&e, s->base, NULL, s->err);
    if (status)
        return status;
    if (!pairing_of(&expected, s, e) && s->in->e) {
        posenc_encoding_free(e);
        *s->err = (posenc_error){.status  = POSENC_ERROR_UNSUPPORTED,
                                 .message = "diagnose: the expected rotation does not fit these heads, or is "
                                            "no rope whose pairs have one angle each"};
        return s->err->status;
    }
    posenc_encoding_free(e);
    choose_rows(s);
    if (find_pairings(s, &expected) || keep_pairings(s))
        return POSENC_ERROR_MEMORY;
    theory       right = {0};
    const double away  = s->in->e ? distance(s, s->in->is_strict, &right) : INFINITY;
    posenc_encoding_free(right.e);
    for (int p = 0; p < s->pairing_count && away > 0.6; p++)
        if (is_rotation(s, &s->pairings[p]))
            try_axes(s, p);
    if (away > same && best_cost(s) > 104)
        try_lows(s);
    choose(d, s);
    return POSENC_OK;
}

posenc_status pe_rotation_judge(pe_diagnosis *d, const pe_rotation *in, posenc_error *err)
{
    const locale_t   before = pe_decimal_begin();
    rotation_search *s      = calloc(1, sizeof *s);
    *d                      = (pe_diagnosis){0};
    *err = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
    posenc_status status =
        s ? check(in, err) == POSENC_ERROR_SHAPE ? POSENC_ERROR_SHAPE : pe_rows_create(&s->rows, in, err)
          : err->status;
    if (!status) {
        *err    = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
        s->in   = in;
        s->N    = in->coordinates;
        s->base = in->e ? posenc_encoding_spec(in->e) : "rope";
        s->err  = err;
        for (int n = 0; n < PE_MOST_AXES; n++)
            s->axes[n] = n;
        s->coarse = fine;
        status    = look(d, s);
    }
    for (int i = 0; s && i < s->theory_count; i++)
        theory_free(&s->theories[i]);
    for (int i = 0; s && i < s->pairing_count; i++) {
        pe_gains_free(s->pairings[i].gains);
        free(s->pairings[i].w);
        free(s->pairings[i].error);
        free(s->pairings[i].of_axes);
    }
    if (s)
        pe_rows_free(s->rows);
    free(s);
    pe_decimal_end(before);
    if (!status)
        *err = (posenc_error){0};
    return status;
}

void pe_diagnosis_free(pe_diagnosis *d)
{
    free(d->frequencies);
    d->frequencies = NULL;
}
