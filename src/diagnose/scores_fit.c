/* SPDX-License-Identifier: MIT */
/*
 * scores_fit.c: the scale, bias by distance, cap and shift of each row that leave least of scores over
 */
#include "diagnose/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 30 };

static const double hidden = -9e3;    /* scores below are masked */
static const double summed = 0x1p-22; /* relative error of a score that was summed in float32 */

double pe_fit_score(const posenc_tensor *t, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return pe_dump_element(t, b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + j * t->stride[3]);
}

int64_t pe_fit_distance(const pe_fit *f, int64_t i, int64_t j)
{
    return i + f->Lk - f->Lq - j;
}

int pe_fit_is_hidden(double x)
{
    return !(x > hidden);
}

/* Calls `visit` for each score that both have; y without the cap. */
typedef void visitor(pe_fit *f, void *to, int64_t at[4], double x, double y);

static void visit_all(pe_fit *f, visitor *visit, void *to)
{
    int64_t at[4];
    for (at[0] = 0; at[0] < f->B; at[0]++)
        for (at[1] = 0; at[1] < f->H; at[1]++)
            for (at[2] = 0; at[2] < f->Lq; at[2]++)
                for (at[3] = 0; at[3] < f->Lk; at[3]++) {
                    const double x = pe_fit_score(&f->in->before, at[0], at[1], at[2], at[3]),
                                 y = pe_fit_score(&f->in->after, at[0], at[1], at[2], at[3]);
                    if (!pe_fit_is_hidden(x) && !pe_fit_is_hidden(y))
                        visit(f, to, at, x, y);
                }
}

/* A score at its cap may be that of any larger one: of the next that would still be told apart. */
static double uncapped(const pe_fit *f, double y)
{
    const double most = 1 - fmax(1e-12, ldexp(1, -(int)f->bits - 1));
    for (int i = 0; i < f->caps; i++)
        y = f->cap * atanh(fmax(-most, fmin(most, y / f->cap)));
    return y;
}

static double capped(const pe_fit *f, double y)
{
    for (int i = 0; i < f->caps; i++)
        y = f->cap * tanh(y / f->cap);
    return y;
}

static double *bias_at(const pe_fit *f, const int64_t at[4])
{
    return &f->bias[at[1] * f->T + f->group[pe_fit_distance(f, at[2], at[3]) + f->Lk - 1]];
}

static double *shift_at(const pe_fit *f, const int64_t at[4])
{
    return &f->shift[(at[0] * f->H + at[1]) * f->Lq + at[2]];
}

/* What a cap flattens is uncertain: it says something only where nothing else does. */
static double weight_of(const pe_fit *f, double y)
{
    double slope = 1;
    for (int i = 0; i < f->caps; i++) {
        slope *= 1 - y * y / (f->cap * f->cap);
        y = i + 1 < f->caps ? f->cap * atanh(fmax(-1 + 1e-12, fmin(1 - 1e-12, y / f->cap))) : y;
    }
    return fmax(slope > 0.02 ? slope * slope : 0, f->caps ? 1e-9 : 0);
}

static void sum_scale(pe_fit *f, void *unused, int64_t at[4], double x, double y)
{
    (void)unused;
    const double w = weight_of(f, y);
    f->above[at[2]] += w * x * (uncapped(f, y) - *bias_at(f, at) - *shift_at(f, at));
    f->below[at[2]] += w * x * x;
}

static void sum_bias(pe_fit *f, void *unused, int64_t at[4], double x, double y)
{
    (void)unused;
    const double  w = weight_of(f, y);
    const int64_t k = bias_at(f, at) - f->bias;
    f->above[k] += w * (uncapped(f, y) - f->scale[at[2]] * x - *shift_at(f, at));
    f->below[k] += w;
}

static void sum_shift(pe_fit *f, void *unused, int64_t at[4], double x, double y)
{
    (void)unused;
    const double  w = weight_of(f, y);
    const int64_t k = shift_at(f, at) - f->shift;
    f->above[k] += w * (uncapped(f, y) - f->scale[at[2]] * x - *bias_at(f, at));
    f->below[k] += w;
}

static double theory_of(const pe_fit *f, const int64_t at[4], double x)
{
    const double y = f->scale[at[2]] * x + *bias_at(f, at) + *shift_at(f, at);
    return capped(f, y);
}

static void sum_rest(pe_fit *f, void *to, int64_t at[4], double x, double y)
{
    double      *s = to;
    const double d = y - theory_of(f, at, x);
    s[0] += d * d;
    s[1] += 1;
}

/* Some theories have no number of their own left to tell them by: as many numbers as scores. */
static void measure_beside(pe_fit *f, double numbers)
{
    double rest[2] = {0};
    visit_all(f, sum_rest, rest);
    f->rest = rest[1] > numbers ? rest[0] / (rest[1] - numbers) : INFINITY;
}

static void measure(pe_fit *f, int what)
{
    double numbers = what & PE_FIT_BIAS ? 0 : what & PE_FIT_ROWS ? (double)f->Lq : 1;
    for (int64_t k = 0; what & PE_FIT_BIAS && k < f->H * f->T; k++)
        numbers += f->count[k] > 0;
    numbers += what & PE_FIT_SHIFT ? (double)(f->B * f->H * f->Lq) : 0;
    measure_beside(f, numbers);
}

static void solve_scale(pe_fit *f, int what)
{
    double above = 0, below = 0;
    memset(f->above, 0, (size_t)f->Lq * sizeof *f->above);
    memset(f->below, 0, (size_t)f->Lq * sizeof *f->below);
    visit_all(f, sum_scale, NULL);
    for (int64_t i = 0; i < f->Lq; i++) {
        above += f->above[i];
        below += f->below[i];
    }
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = what & PE_FIT_ROWS && f->below[i] > 0 ? f->above[i] / f->below[i]
                      : below > 0                           ? above / below
                                                            : 1;
}

static void solve_list(pe_fit *f, visitor *visit, double *list, int64_t n)
{
    memset(f->above, 0, (size_t)n * sizeof *f->above);
    memset(f->below, 0, (size_t)n * sizeof *f->below);
    visit_all(f, visit, NULL);
    for (int64_t k = 0; k < n; k++)
        list[k] = f->below[k] > 0 ? f->above[k] / f->below[k] : 0;
}

/* The parts of a theory in turn, until nothing moves. */
static void fit(pe_fit *f, int what, double cap)
{
    const int parts =
        !!(what & (PE_FIT_SCALE | PE_FIT_ROWS)) + !!(what & PE_FIT_BIAS) + !!(what & PE_FIT_SHIFT);
    f->cap  = cap;
    f->caps = !(cap > 0) ? 0 : what & PE_FIT_TWICE ? 2 : 1;
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = 1;
    memset(f->bias, 0, (size_t)(f->H * f->T) * sizeof *f->bias);
    memset(f->shift, 0, (size_t)(f->B * f->H * f->Lq) * sizeof *f->shift);
    double before = INFINITY;
    for (int round = 0; round < (parts > 1 ? ROUNDS : 1); round++) {
        if (what & (PE_FIT_SCALE | PE_FIT_ROWS))
            solve_scale(f, what);
        if (what & PE_FIT_BIAS)
            solve_list(f, sum_bias, f->bias, f->H * f->T);
        if (what & PE_FIT_SHIFT)
            solve_list(f, sum_shift, f->shift, f->B * f->H * f->Lq);
        measure(f, what);
        if (!(f->rest < 0.999 * before) || f->rest < f->noise)
            break;
        before = f->rest;
    }
    measure(f, what);
}

static void largest(pe_fit *f, void *to, int64_t at[4], double x, double y)
{
    (void)f;
    (void)at;
    (void)x;
    *(double *)to = fmax(*(double *)to, fabs(y));
}

/* The cap that leaves least: from just above the largest score on, then finer, then rounder. */
static void fit_cap(pe_fit *f, int what)
{
    double most = 0, best = 0, least = INFINITY, ratio = 1.1;
    visit_all(f, largest, &most);
    most /= what & PE_FIT_TWICE ? tanh(1) : 1;
    for (double cap = most * 1.0001; cap < 40 * most && most > 0; cap *= ratio) {
        fit(f, what, cap);
        if (f->rest < least) {
            least = f->rest;
            best  = cap;
        }
    }
    for (int round = 0; round < 14 && best > 0; round++, ratio = sqrt(ratio))
        for (int side = -1; side <= 1; side += 2) {
            const double cap = fmax(best * pow(ratio, side), most * (1 + 1e-9));
            fit(f, what, cap);
            if (f->rest < least) {
                least = f->rest;
                best  = cap;
            }
        }
    for (int digits = 1; digits < 8 && best > 0; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, best);
        const double cap = strtod(text, NULL);
        if (cap < most)
            continue;
        fit(f, what, cap);
        if (f->rest <= fmax(1.3 * least, f->noise * 1.5))
            return;
    }
    fit(f, what, best);
}

/* ---------------------------------------------------------------- all of it ----------------- */

double pe_fit_try(pe_fit *f, int what, double cap)
{
    if ((what & PE_FIT_CAP) && !(cap > 0))
        fit_cap(f, what);
    else
        fit(f, what, cap);
    return sqrt(f->rest / f->noise);
}

double pe_fit_given(pe_fit *f, double scale, const double *slopes, double cap)
{
    fit(f, 0, cap);
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = scale;
    for (int64_t k = 0; k < f->H * f->T; k++)
        f->bias[k] = -slopes[k / f->T] * fabs((double)(k % f->T - f->Lk + 1));
    measure(f, 0);
    return sqrt(f->rest / f->noise);
}

static void count_bias(pe_fit *f, void *unused, int64_t at[4], double x, double y)
{
    (void)unused;
    (void)x;
    (void)y;
    f->count[bias_at(f, at) - f->bias]++;
}

/* From a number of each distance to the first of its neighbours that have it too. */
static void join_groups(pe_fit *f)
{
    int64_t last = -1;
    for (int64_t k = 0; k < f->T; k++) {
        const int64_t number = f->group[k];
        f->group[k]          = k && number == last ? f->group[k - 1] : k;
        last                 = number;
    }
    memset(f->count, 0, (size_t)(f->H * f->T) * sizeof *f->count);
    visit_all(f, count_bias, NULL);
}

static void part_groups(pe_fit *f)
{
    for (int64_t k = 0; k < f->T; k++)
        f->group[k] = k;
    join_groups(f);
}

/* The line through the biases of a head. */
static void straighten(const pe_fit *f, double *bias, const double *count)
{
    double n = 0, mean = 0, mean_k = 0, above = 0, below = 0;
    for (int64_t k = 0; k < f->T; k++) {
        n += count[k];
        mean += count[k] * bias[k];
        mean_k += count[k] * (double)k;
    }
    mean /= fmax(1, n);
    mean_k /= fmax(1, n);
    for (int64_t k = 0; k < f->T; k++) {
        above += count[k] * ((double)k - mean_k) * (bias[k] - mean);
        below += count[k] * ((double)k - mean_k) * ((double)k - mean_k);
    }
    for (int64_t k = 0; k < f->T; k++)
        bias[k] = mean + (below > 0 ? above / below : 0) * ((double)k - mean_k);
}

static void solve_bias(pe_fit *f, double scale, int is_line)
{
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = scale;
    solve_list(f, sum_bias, f->bias, f->H * f->T);
    for (int64_t h = 0; is_line && h < f->H; h++)
        straighten(f, f->bias + h * f->T, f->count + h * f->T);
}

/* Scale and bias in turn move the scale by a geometric series, whose sum is taken: biases of a few keys each
   take nearly all that a wrong scale leaves. */
static void fit_scale_and_bias(pe_fit *f, int is_line)
{
    double scale = 1;
    fit(f, 0, 0);
    solve_bias(f, scale, is_line);
    for (int round = 0; round < 3; round++) {
        solve_scale(f, PE_FIT_SCALE);
        const double next = f->scale[0], step = next - scale;
        solve_bias(f, next, is_line);
        solve_scale(f, PE_FIT_SCALE);
        const double ratio = (f->scale[0] - next) / step;
        scale              = fabs(ratio) < 1 && step != 0 ? scale + step / (1 - ratio) : f->scale[0];
        solve_bias(f, scale, is_line);
    }
    if (is_line)
        measure_beside(f, 2 * (double)f->H + 1);
    else
        measure(f, PE_FIT_SCALE | PE_FIT_BIAS);
}

double pe_fit_groups(pe_fit *f)
{
    join_groups(f);
    fit_scale_and_bias(f, 0);
    for (int64_t i = 0; i < f->H * f->T; i++)
        f->bias[i] = f->bias[i / f->T * f->T + f->group[i % f->T]];
    part_groups(f);
    return sqrt(f->rest / f->noise);
}

double pe_fit_lines(pe_fit *f)
{
    fit_scale_and_bias(f, 1);
    return sqrt(f->rest / f->noise);
}

/* Rounding of the file, and of products summed in float32, whose order nobody knows: of 512 about six. */
static void count_one(pe_fit *f, void *to, int64_t at[4], double x, double y)
{
    double *noise = to;
    (void)at;
    noise[0] += pe_dump_rounding(y, f->bits) + (f->bits < 30 ? summed * summed * y * y : 1e-20 * x * x);
    noise[1]++;
}

int pe_fit_open(pe_fit *f, const pe_scores *in)
{
    const int64_t       *n        = in->after.shape;
    const posenc_tensor *after    = &in->after;
    double               noise[2] = {0};
    *f                  = (pe_fit){.in = in, .B = n[0], .H = n[1], .Lq = n[2], .Lk = n[3], .T = 2 * n[3] - 1};
    const size_t   most = (size_t)(f->H * f->T + f->B * f->H * f->Lq + f->Lq);
    double **const lists[] = {&f->bias, &f->count, &f->scale, &f->shift, &f->above, &f->below};
    int            is_open = 1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        is_open &= (*lists[i] = calloc(most, sizeof **lists[i])) != NULL;
    is_open &= (f->group = malloc((size_t)f->T * sizeof *f->group)) != NULL;
    f->bits = pe_dump_bits(&after, 1);
    if (is_open) {
        part_groups(f);
        visit_all(f, count_one, noise);
    }
    f->noise = noise[1] > 0 ? noise[0] / noise[1] + 1e-300 : 1;
    return is_open;
}

void pe_fit_close(pe_fit *f)
{
    free(f->bias);
    free(f->count);
    free(f->group);
    free(f->scale);
    free(f->shift);
    free(f->above);
    free(f->below);
}
