/* SPDX-License-Identifier: MIT */
/*
 * speeds.c: how fast each pair turns from token to token, and which positions given speeds would mean
 *
 * Speeds      Between neighbours a pair turns by its frequency times the step; between tokens twice as far
 *             apart by twice that. So each lag says to which turn the next one belongs, and the longest gives
 *             the digits. Where many pairs jump at once (a reset, packed sequences) a lag is not counted.
 * Positions   The slowest pair tells a position but for its noise; each faster one makes it finer.
 */
#include "diagnose/dump.h"

#include "base/shared/compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 0x1.921fb54442d18p+1;

/* ---------------------------------------------------------------- speeds -------------------- */

/* Tokens i and i + k of a sequence are the rows at[i] and at[i + k], their positions k steps apart. */
typedef struct token_walk {
    const pe_rows  *rows;
    const pe_gains *g;
    int64_t        *at, count;
    int            *jumps; /* [count+1] how many jumps lie before a token; a sequence ends with one */
    double          step;
} token_walk;

/* From a row to another of its sequence; NAN: there is none, or it is another's. */
static double step_between(const pe_rows *rows, int64_t row, int64_t next)
{
    int64_t       b, l, b2, l2;
    const int64_t side = pe_row_side(rows, row, &b, &l);
    if (next >= rows->count || pe_row_side(rows, next, &b2, &l2) != side || b2 != b)
        return NAN;
    return *pe_row_position(rows, next) - *pe_row_position(rows, row);
}

static double step_at(const pe_rows *rows, int64_t row)
{
    return step_between(rows, row, row + 1);
}

/* The step that most neighbours have. */
static double usual_step(const pe_rows *rows)
{
    double  best = 1;
    int64_t most = 0;
    for (int64_t tries = 0; tries < 64 && tries < rows->count; tries++) {
        const double step =
            step_at(rows, tries * rows->count / 64 < rows->count ? tries * rows->count / 64 : 0);
        int64_t count = 0;
        for (int64_t row = 0; row < rows->count; row++)
            count += step_at(rows, row) == step;
        if (count > most && step != 0) {
            most = count;
            best = step;
        }
    }
    return best;
}

/* By how much a pair turns more than `angle` between tokens so far apart. */
static double turn(const token_walk *k, int64_t i, int64_t lag, int64_t m, double angle)
{
    const double x = k->g->angle[k->at[i + lag] * k->g->M + m] - k->g->angle[k->at[i] * k->g->M + m] - angle;
    return x - 2 * pi * rint(x / (2 * pi));
}

/* The angle that most turns are near: means, in which those far off count less each time. */
static double usual_turn(const token_walk *k, int64_t m)
{
    double        angle = 0;
    const int64_t step  = 1 + k->count / 512;
    for (int round = 0; round < 12; round++) {
        double complex sum  = 0;
        double         more = 0, weight = 0;
        for (int64_t i = 0; i < k->count; i += step) {
            if (k->jumps[i + 1] != k->jumps[i])
                continue;
            const double e = turn(k, i, 1, m, angle), w = 1 / (0.02 + e * e);
            if (!round)
                sum += cexp(I * e);
            more += w * e;
            weight += w;
        }
        angle += round ? more / (weight + 1e-300) : carg(sum);
    }
    return remainder(angle, 2 * pi);
}

/* Marks what is no neighbour, then what turns otherwise than most. Rows that were left out between two
   tokens are no step. */
static void mark_jumps(token_walk *k, const double *usual)
{
    int jumps = 0;
    for (int64_t i = 0; i < k->count; i++) {
        const int64_t next    = i + 1 < k->count ? k->at[i + 1] : k->rows->count;
        int           is_jump = next > k->at[i] + 1 ? isnan(step_between(k->rows, k->at[i], next))
                                                    : !(step_at(k->rows, k->at[i]) == k->step);
        k->jumps[i]           = jumps;
        for (int64_t m = 0; usual && m < k->g->M && !is_jump; m++)
            is_jump = fabs(turn(k, i, 1, m, usual[m])) > 0.35;
        jumps += is_jump;
    }
    k->jumps[k->count] = jumps;
}

/* One lag: the mean error of w, and how many tokens said so. */
static int64_t refine(const token_walk *k, int64_t lag, int64_t m, double *w, double *error)
{
    double  sum = 0, squares = 0, weight = 0;
    int64_t n = 0;
    for (int64_t i = 0; i + lag < k->count; i++) {
        if (k->jumps[i + lag] != k->jumps[i])
            continue;
        const double e = turn(k, i, lag, m, *w * k->step * (double)lag);
        const double p = k->g->power[k->at[i] * k->g->M + m];
        sum += p * e;
        squares += p * e * e;
        weight += p;
        n++;
    }
    if (!n || !(weight > 0) || squares / weight > 0.5)
        return 0;
    *w += sum / weight / (k->step * (double)lag);
    *error = sqrt(squares / weight) / (fabs(k->step) * (double)lag);
    return n;
}

/* Speeds of the tokens of a walk; the share of neighbours that agree. */
static double walk(double *w, double *error, double *reach, token_walk *k)
{
    int64_t within = 0, all = 0;
    *reach = 1;
    mark_jumps(k, NULL);
    for (int64_t i = 0; i < k->count; i++)
        all += k->jumps[i + 1] == k->jumps[i];
    for (int64_t m = 0; m < k->g->M; m++)
        w[m] = usual_turn(k, m);
    mark_jumps(k, w);
    for (int64_t i = 0; i < k->count; i++)
        within += k->jumps[i + 1] == k->jumps[i];
    for (int64_t m = 0; m < k->g->M; m++) {
        w[m] /= k->step;
        error[m] = 1;
        for (int64_t lag = 1; lag < k->count && refine(k, lag, m, &w[m], &error[m]); lag *= 2)
            *reach = fmax(*reach, (double)lag * fabs(k->step));
    }
    return all ? (double)within / (double)all : 0;
}

/* Is a row turned just as the one before it, but for noise? */
static int is_still(const pe_rows *rows, const pe_gains *g, int64_t row)
{
    double sum = 0, noise = 0;
    if (row == 0 || isnan(step_between(rows, row - 1, row)))
        return 0;
    for (int64_t m = 0; m < g->M; m++) {
        const int64_t i = row * g->M + m, before = i - g->M;
        const double  d = remainder(g->angle[i] - g->angle[before], 2 * pi);
        sum += fmin(g->power[i], g->power[before]) * d * d;
        noise += g->noise[i] + g->noise[before];
    }
    return sum <= 4 * noise + 1e-12 * (double)g->M;
}

/* Only the first of rows that are turned alike: repeated positions, and padding. */
static int64_t leave_out_still(int64_t *at, const pe_rows *rows, const pe_gains *g)
{
    int64_t count = 0;
    for (int64_t row = 0; row < rows->count; row++)
        if (!is_still(rows, g, row))
            at[count++] = row;
    return count;
}

double pe_speeds(double *w, double *error, double *reach, const pe_rows *rows, const pe_gains *g)
{
    const size_t most = (size_t)rows->count + 1;
    token_walk   k    = {.rows = rows, .g = g, .count = rows->count, .step = usual_step(rows)};
    k.at              = malloc(most * sizeof *k.at);
    k.jumps           = malloc(most * sizeof *k.jumps);
    double share      = 0;
    if (k.at && k.jumps) {
        for (int64_t row = 0; row < rows->count; row++)
            k.at[row] = row;
        share = walk(w, error, reach, &k);
        if (share <= 0.9) {
            k.count = leave_out_still(k.at, rows, g);
            if (k.count > 2 && k.count < rows->count - rows->count / 10)
                share = walk(w, error, reach, &k);
        }
    }
    free(k.at);
    free(k.jumps);
    return share;
}

/* ---- several coordinates: the speed that gives the gains of some rows best ---- */

enum { SOME_ROWS = 64 };

/* A pair, some rows, and one coordinate. A constant angle is free: positions may have an offset. */
typedef struct axis_look {
    const pe_rows  *rows;
    const pe_gains *g;
    int64_t         m;
    int             axis;
    double          center, extent; /* of the coordinate */
} axis_look;

static double place_at(const axis_look *k, int64_t row)
{
    return pe_row_position(k->rows, row)[k->axis] - k->center;
}

static axis_look axis_look_at(const pe_rows *rows, const pe_gains *g, int axis)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t row = 0; row < rows->count; row++) {
        low  = fmin(low, pe_row_position(rows, row)[axis]);
        high = fmax(high, pe_row_position(rows, row)[axis]);
    }
    return (axis_look){rows, g, 0, axis, (low + high) / 2, high - low};
}

/* The sum of all turned back by w. */
static double complex turned_back(const axis_look *k, double w)
{
    double complex sum = 0;
    for (int64_t row = 0; row < k->rows->count; row++) {
        const int64_t at = row * k->g->M + k->m;
        sum += k->g->power[at] * cexp(I * (k->g->angle[at] - w * place_at(k, row)));
    }
    return sum;
}

/* One of each SOME_ROWSth part, as if drawn: of a grid, rows that follow any rule (multiples of the golden
   ratio were all even among 932) might show but some of a coordinate's numbers. */
static int64_t some_row(int64_t count, int64_t i)
{
    const int64_t first = i * count / SOME_ROWS, next = (i + 1) * count / SOME_ROWS;
    uint64_t      drawn = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    drawn               = (drawn ^ drawn >> 29) * 0xbf58476d1ce4e5b9u;
    return count <= SOME_ROWS ? i : first + (int64_t)((drawn ^ drawn >> 32) % (uint64_t)(next - first));
}

/* The best of speeds from, from + step, ... to, of both signs: each next sum by one product a row. */
static void scan(const axis_look *k, double from, double step, double to, double *w, double *most)
{
    double complex at[2][SOME_ROWS], by[SOME_ROWS];
    const int64_t  n = k->rows->count < SOME_ROWS ? k->rows->count : SOME_ROWS;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = some_row(k->rows->count, i), cell = row * k->g->M + k->m;
        const double  p = place_at(k, row);
        by[i]           = cexp(-I * step * p);
        for (int side = 0; side < 2; side++)
            at[side][i] = k->g->power[cell] * cexp(I * (k->g->angle[cell] + (side ? 1 : -1) * from * p));
    }
    for (double x = from; x < to; x += step)
        for (int side = 0; side < 2; side++) {
            double real = 0, imaginary = 0;
            for (int64_t i = 0; i < n; i++) {
                const double complex z = at[side][i], r = by[i];
                const double         ri = side ? -cimag(r) : cimag(r);
                real += creal(z);
                imaginary += cimag(z);
                at[side][i] =
                    PE_COMPLEX(creal(z) * creal(r) - cimag(z) * ri, creal(z) * ri + cimag(z) * creal(r));
            }
            const double sum = hypot(real, imaginary);
            if (sum > *most) {
                *most = sum;
                *w    = side ? -x : x;
            }
        }
}

/* Least squares on what is left of a turn. */
static double sharpen(double *w, const axis_look *k)
{
    const double phase = carg(turned_back(k, *w));
    double       sum = 0, se = 0, sp = 0, sep = 0, spp = 0, see = 0;
    for (int64_t row = 0; row < k->rows->count; row++) {
        const int64_t at = row * k->g->M + k->m;
        const double  p = place_at(k, row), weight = k->g->power[at];
        const double  e = remainder(k->g->angle[at] - *w * p - phase, 2 * pi);
        sum += weight;
        se += weight * e;
        sp += weight * p;
        sep += weight * e * p;
        spp += weight * p * p;
        see += weight * e * e;
    }
    const double spread = spp - sp * sp / (sum + 1e-300);
    *w += spread > 0 ? (sep - se * sp / sum) / spread : 0;
    return spread > 0 ? sqrt(see / spread) : INFINITY;
}

double pe_speeds_of_axis(double *w, double *error, double *order, const pe_rows *rows, const pe_gains *g,
                         int axis)
{
    axis_look k = axis_look_at(rows, g, axis);
    for (k.m = 0; k.m < g->M; k.m++) {
        double most = 0, total = 0;
        w[k.m]     = 0;
        error[k.m] = 1e9; /* one angle is that of many speeds */
        if (k.extent > 0)
            scan(&k, 0, 0.7 / k.extent, 3.2, &w[k.m], &most);
        for (int round = 0; k.extent > 0 && round < 4; round++)
            error[k.m] = sharpen(&w[k.m], &k);
        for (int64_t row = 0; row < rows->count; row++)
            total += g->power[row * g->M + k.m];
        order[k.m] = cabs(turned_back(&k, w[k.m])) / (total + 1e-300);
    }
    return k.extent;
}

/* ---------------------------------------------------------------- positions ----------------- */

static double row_misfit(const pe_gains *g, int64_t row, const pe_course *c, int axis, double p)
{
    double sum = 0;
    for (int64_t m = 0; m < g->M; m++)
        if (c->coordinate[m] == axis) {
            const double complex d = g->z[row * g->M + m] - c->size * cexp(I * c->w[m] * p);
            sum += g->power[row * g->M + m] * (creal(d) * creal(d) + cimag(d) * cimag(d));
        }
    return sum;
}

/* From the slowest pair to the fastest: p is known to a part of a turn of the next. Few of the slow are
   heard where nothing but noise turns them; they count by their weight. */
static double unwrap(const pe_gains *g, int64_t row, const pe_course *c, int axis, double prior)
{
    double p = prior, above = 0, below = 0;
    for (int64_t i = 0; i < g->M; i++) {
        const int64_t m = c->order[i], at = row * g->M + m;
        if (c->coordinate[m] != axis || c->w[m] == 0 || !(g->power[at] > 0))
            continue;
        const double angle  = g->angle[at];
        const double whole  = angle + 2 * pi * rint((c->w[m] * p - angle) / (2 * pi));
        const double weight = g->power[at] / (g->noise[at] + 1e-300);
        above += weight * c->w[m] * whole;
        below += weight * c->w[m] * c->w[m];
        p = above / below;
    }
    return p;
}

double pe_place(const pe_gains *g, int64_t row, const pe_course *c, int axis, double expected)
{
    enum { TURNS = 3 }; /* of the slowest pair, where that is fast */
    double slowest = 0, best = NAN, least = INFINITY;
    for (int64_t i = 0; i < g->M && slowest == 0; i++)
        slowest = c->coordinate[c->order[i]] == axis ? fabs(c->w[c->order[i]]) : 0;
    const int far   = slowest > 0.005 ? 2 * TURNS + 1 : 1;
    double    noise = 0;
    for (int64_t m = 0; m < g->M; m++)
        noise += c->coordinate[m] == axis ? g->noise[row * g->M + m] : 0;
    for (int i = 0; i < 5 + 2 * far; i++) {
        const double priors[] = {expected, 0, -expected, 2 * expected, expected / 2};
        const double prior =
            i < 5 ? priors[i] : (i % 2 ? expected : -expected) + ((i - 5) / 2 - TURNS) * 2 * pi / slowest;
        if ((i >= 5 && far == 1) || least < 4 * noise)
            break;
        const double p = unwrap(g, row, c, axis, prior);
        if (fabs(p - best) <= 1e-9 * fabs(p))
            continue;
        const double misfit = row_misfit(g, row, c, axis, p);
        if (!(misfit >= least)) {
            least = misfit;
            best  = p;
        }
    }
    return best;
}
