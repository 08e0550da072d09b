/* SPDX-License-Identifier: MIT */
/*
 * turns.c: cosines and sines of a model against exact ones, and the mistake that gives just these
 *
 * The idea   Right are numbers whose angles, position times frequency, were rounded to float32, as the code
 * of most models has them. Anything else is explained by trying: the tables of other layers, fewer bits
 *            somewhere, the conventions of conventions.c, and then what the numbers themselves tell: at
 * position 1 the angles are the frequencies, from which base and factor follow; the slowest pair tells which
 *            position was meant.
 * Surprise   An attempt counts only if it gives every number, except that of fewer bits: there a product that
 *            lies in the middle of two numbers may have gone either way, so one in fifty may differ.
 */
#include "diagnose/diagnose.h"

#include "base/half.h"
#include "base/shared/decimal.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS = 128, SPARED = 50 /* one in so many */ };

typedef struct judging {
    const pe_turns   *t;
    pe_turns_verdict *v;
    float            *table;     /* [rows, width] M cosines, then M sines: of the attempt */
    double           *positions; /* [rows] of the attempt */
    double           *angle;     /* [rows, M] of what should be */
    double           *wanted;    /* [rows, width] cosines and sines of what should be, as in table */
    int64_t           M;
    posenc_error     *err;
} judging;

/* Where pair m's number stands in a row of the model's. */
static int64_t place(const judging *j, int interleaved, int64_t m, int second)
{
    return interleaved ? 2 * m + second : m + second * j->M;
}

/* Does the model write each number twice, and not halves? The numbers themselves tell, right or wrong. */
static int is_interleaved(const judging *j)
{
    double halves = 0, neighbours = 0;
    for (int64_t r = 0; r < j->t->rows; r++)
        for (int64_t m = 0; m < j->M; m++) {
            const double *c = j->t->cosines + r * j->t->width;
            halves += fabs(c[m] - c[m + j->M]);
            neighbours += fabs(c[2 * m] - c[2 * m + 1]);
        }
    return neighbours < halves;
}

/* ---------------------------------------------------------------- tables -------------------- */

/* The table of an encoding at positions of j, that of keys, which have no temperature; its angles too where
   `angle` is not NULL. SHAPE where it has other pairs. */
static posenc_status make_table(judging *j, const posenc_encoding *e, const posenc_tensor *params,
                                double *angle)
{
    const int64_t     rows = j->t->rows, D = j->t->D;
    const posenc_dims dims    = {.B = 1, .H = 1, .Lq = rows, .Lk = rows, .D = D, .L = rows};
    posenc_options    options = posenc_options_default();
    posenc_plan      *plan    = NULL;
    posenc_workspace  work    = {0};
    posenc_rotary_in  in      = {.size = sizeof in, .pos = posenc_positions_range(0, 1), .params = params};
    options.threads           = 1;
    in.pos.array = posenc_tensor_contiguous(j->positions, POSENC_DTYPE_F64, 1, (const int64_t[]){rows});
    posenc_tensor table = posenc_tensor_contiguous(j->table, POSENC_DTYPE_F32, 3,
                                                   (const int64_t[]){1, rows, 2 * j->M}),
                  to = posenc_tensor_contiguous(angle, POSENC_DTYPE_F64, 3, (const int64_t[]){1, rows, j->M});
    posenc_status status = posenc_plan_create(&plan, e, &dims, &options, j->err);
    if (!status && posenc_rotary_width(plan, POSENC_SIDE_KEYS) != 2 * j->M) {
        *j->err = (posenc_error){.status = POSENC_ERROR_SHAPE, .message = "diagnose: other pairs"};
        status  = POSENC_ERROR_SHAPE;
    }
    if (!status)
        status = posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, NULL, j->err);
    if (!status)
        status = posenc_rotary_table(plan, POSENC_SIDE_KEYS, &in, &table, &work, j->err);
    if (!status && angle)
        status = posenc_rotary_angles(plan, &in, &to, NULL, &work, j->err);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return status;
}

/* The largest difference from j->table, in that layout; how many numbers are wrong. */
static int64_t compare(const judging *j, int interleaved, double *error)
{
    const pe_turns *t     = j->t;
    int64_t         wrong = 0;
    *error                = 0;
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t m = 0; m < j->M; m++)
            for (int second = 0; second < 2; second++) {
                const int64_t at = r * t->width + place(j, interleaved, m, second);
                const double  c  = fabs(t->cosines[at] - (double)j->table[r * t->width + m]),
                             sn  = fabs(t->sines[at] - (double)j->table[r * t->width + j->M + m]);
                wrong += !(c <= j->v->allowed && sn <= j->v->allowed); /* NaN too */
                *error = isnan(c) || isnan(sn) ? INFINITY : fmax(*error, fmax(c, sn));
            }
    return wrong;
}

/* How many numbers of the model differ from what should be. */
static int64_t count_wrong(judging *j, double *error)
{
    for (int64_t k = 0; k < j->t->rows * j->t->width; k++)
        j->table[k] = (float)j->wanted[k];
    return compare(j, j->v->is_interleaved, error);
}

/* Does the attempt in j->table give the model's numbers, but for so many of them? */
static int fits(const judging *j, int64_t spared)
{
    double error;
    return compare(j, j->v->is_interleaved, &error) <= spared;
}

static int try_encoding(judging *j, const posenc_encoding *e, const posenc_tensor *params, double shift)
{
    for (int64_t r = 0; r < j->t->rows; r++)
        j->positions[r] = j->t->positions[r] + shift;
    const int same =
        !posenc_param_count(e) || (params && posenc_param_count(e) == posenc_param_count(j->t->e));
    return same && !make_table(j, e, params, NULL) && fits(j, 0);
}

/* With one setting more. */
static int try_setting(judging *j, const char *settings)
{
    posenc_encoding *e;
    if (posenc_encoding_create(&e, posenc_encoding_spec(j->t->e), settings, NULL))
        return 0;
    const int is_it = try_encoding(j, e, j->t->params, 0);
    posenc_encoding_free(e);
    return is_it;
}

/* ---------------------------------------------------------------- causes -------------------- */

static int find_rival(judging *j)
{
    for (int i = 0; i < j->t->rival_count; i++) {
        const pe_rival *r = &j->t->rivals[i];
        for (int64_t k = 0; k < j->t->rows; k++)
            j->positions[k] = j->t->positions[k];
        if (!make_table(j, r->e, r->params, NULL) && fits(j, 0)) {
            snprintf(j->v->cause, PE_CAUSE, "it is %s", r->words);
            return 1;
        }
    }
    return 0;
}

enum { FREQUENCIES = 1, POSITIONS = 2, ANGLES = 4, TABLE = 8 };

/* What should be, with fewer bits at the places of `low`. */
static void fill_low(judging *j, int low, double (*round)(double))
{
    const pe_turns *t     = j->t;
    int64_t         first = 0; /* a row that tells frequencies */
    while (first < t->rows - 1 && t->positions[first] <= 0)
        first++;
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t m = 0; m < j->M; m++) {
            const double P = t->positions[r], w = j->angle[first * j->M + m] / t->positions[first];
            const double c = j->wanted[r * t->width + m], s = j->wanted[r * t->width + j->M + m];
            double a = (low & POSITIONS ? round(P) : P) * (low & FREQUENCIES ? round((double)(float)w) : w);
            a        = low & ANGLES ? round((double)(float)a) : a;
            const double size = sqrt(c * c + s * s), x = size * cos(a), y = size * sin(a);
            j->table[r * t->width + m]        = (float)(low & TABLE ? round(x) : x);
            j->table[r * t->width + j->M + m] = (float)(low & TABLE ? round(y) : y);
        }
}

static int find_low(judging *j)
{
    static const struct {
        const char *name;
        double (*round)(double);
    } types[] = {{"bfloat16", pe_half_round_to_bf16}, {"float16", pe_half_round_to_f16}};
    static const int         order[] = {FREQUENCIES,
                                        ANGLES,
                                        POSITIONS,
                                        TABLE,
                                        FREQUENCIES | ANGLES,
                                        POSITIONS | ANGLES,
                                        FREQUENCIES | POSITIONS,
                                        FREQUENCIES | POSITIONS | ANGLES,
                                        ANGLES | TABLE,
                                        FREQUENCIES | TABLE,
                                        FREQUENCIES | ANGLES | TABLE,
                                        FREQUENCIES | POSITIONS | ANGLES | TABLE};
    static const char *const names[] = {"frequencies", "positions", "angles", "cosines and sines"};
    double                   error;
    const int64_t            most = 2 * j->M * j->t->rows / SPARED, wrong = count_wrong(j, &error) / 10;
    const int64_t spared = most < wrong ? most : wrong; /* it must explain nearly all that is wrong */
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            fill_low(j, order[i], types[k].round);
            if (!fits(j, spared))
                continue;
            size_t used = 0;
            for (int bit = 0; bit < 4; bit++)
                if (order[i] >> bit & 1)
                    used += (size_t)snprintf(j->v->cause + used, PE_CAUSE - used, "%s%s", used ? ", " : "",
                                             names[bit]);
            snprintf(j->v->cause + used, PE_CAUSE - used, " %s rounded to %s", "are", types[k].name);
            return 1;
        }
    return 0;
}

static int find_convention(judging *j)
{
    pe_conventions *list;
    int             found = 0;
    if (pe_conventions_create(&list, j->t->e, j->err))
        return 0;
    for (int i = 0; i < list->count && !found; i++) {
        const pe_convention *c = &list->items[i];
        if (c->inverse)
            for (int64_t r = 0; r < j->t->rows; r++) /* sines change their sign, and nothing else */
                for (int64_t m = 0; m < j->M; m++) {
                    const int64_t at    = r * j->t->width + m;
                    j->table[at]        = (float)j->wanted[at];
                    j->table[at + j->M] = -(float)j->wanted[at + j->M];
                }
        found = c->inverse ? fits(j, 0) : try_encoding(j, c->e ? c->e : j->t->e, j->t->params, c->shift);
        if (found)
            snprintf(j->v->cause, PE_CAUSE, "%s", c->words);
    }
    pe_conventions_free(list);
    return found;
}

/* The angle of pair m in row r as the model has it, from -pi to pi. */
static double angle_of(const judging *j, int64_t r, int64_t m)
{
    const int64_t at = r * j->t->width + place(j, j->v->is_interleaved, m, 0);
    return atan2(j->t->sines[at], j->t->cosines[at]);
}

/* x with so many digits */
static double rounded(double x, int digits)
{
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, x);
    return strtod(text, NULL);
}

/* The factor of the config's schedule; 0: it has none. */
static double factor_of(const judging *j)
{
    const char *at = posenc_encoding_spec(j->t->e);
    while ((at = strstr(at, "factor=")) && at[-1] != ':' && at[-1] != '[')
        at++;
    return at ? strtod(at + 7, NULL) : 0;
}

/* At position 1 angles are frequencies: is it another base, or a factor on all of them? The slowest pair
   tells the factor of a schedule that spares the fast ones. */
static int find_frequencies(judging *j)
{
    char         text[SETTINGS];
    const double factor = factor_of(j);
    int64_t      one = 0, best = 0;
    while (one < j->t->rows && j->t->positions[one] != 1)
        one++;
    if (one == j->t->rows)
        return 0;
    for (int64_t m = 1; m < j->M; m++) /* where rounding matters least, and the exponent is large enough */
        if (fabs(log(fabs(angle_of(j, one, m)) / 0.02)) < fabs(log(fabs(angle_of(j, one, best)) / 0.02)))
            best = m;
    const double got = angle_of(j, one, best), wanted = j->angle[one * j->M + best],
                 slow = j->angle[one * j->M + j->M - 1] / angle_of(j, one, j->M - 1);
    for (int digits = 1; digits <= 7 && got > 0 && wanted > 0; digits++) {
        const double ratio = rounded(wanted / got, digits),
                     base  = rounded(pow(got, -(double)j->M / (double)(best ? best : 1)), digits);
        snprintf(text, sizeof text, "base=%.10g", base);
        if (best && base > 1 && try_setting(j, text)) {
            snprintf(j->v->cause, PE_CAUSE, "it fits %s", text);
            return 1;
        }
        snprintf(text, sizeof text, "schedule=linear factor=%.10g", ratio);
        if (ratio != 1 && try_setting(j, text)) {
            snprintf(j->v->cause, PE_CAUSE, "it fits linear scaling by %.10g", ratio);
            return 1;
        }
        snprintf(text, sizeof text, "factor=%.10g", rounded(factor * slow, digits));
        if (factor * slow > 0 && isfinite(slow) && try_setting(j, text)) {
            snprintf(j->v->cause, PE_CAUSE, "it fits %s", text);
            return 1;
        }
    }
    return 0;
}

/* Frequencies as if the whole head were rotated, in a model that rotates a part of it. */
static int find_width(judging *j)
{
    char         text[SETTINGS];
    const char  *at   = strstr(posenc_encoding_spec(j->t->e), "base=");
    const double said = at ? strtod(at + 5, NULL) : 1e4;
    if (2 * j->M == j->t->D)
        return 0;
    snprintf(text, sizeof text, "base=%.17g", pow(said, 2.0 * (double)j->M / (double)j->t->D));
    if (!try_setting(j, text))
        return 0;
    snprintf(j->v->cause, PE_CAUSE, "the exponent is divided by %lld, the width of a head, instead of %lld",
             (long long)j->t->D, (long long)(2 * j->M));
    return 1;
}

/* Which positions would give this? The slowest pair tells. */
static int find_positions(judging *j)
{
    const pe_turns *t     = j->t;
    const int64_t   last  = j->M - 1;
    int64_t         first = 0, wrong = -1;
    while (first < t->rows - 1 && t->positions[first] <= 0)
        first++;
    const double w = j->angle[first * j->M + last] / t->positions[first];
    for (int64_t r = 0; r < t->rows; r++) {
        j->positions[r] = rint(64 * angle_of(j, r, last) / w) / 64;
        if (j->positions[r] < 0 || !isfinite(j->positions[r]))
            return 0;
        wrong = wrong < 0 && j->positions[r] != t->positions[r] ? r : wrong;
    }
    char cause[PE_CAUSE];
    pe_positions_judge(cause, j->positions, t->positions, t->rows);
    if (wrong < 0 || make_table(j, t->e, t->params, NULL) || !fits(j, 0))
        return 0;
    snprintf(j->v->cause, PE_CAUSE, "%s", cause);
    return 1;
}

static int find_magnitude(judging *j)
{
    const pe_turns *t   = j->t;
    double          got = 0, wanted = 0;
    for (int64_t m = 0; m < j->M; m++) {
        const int64_t at = place(j, j->v->is_interleaved, m, 0);
        got += t->cosines[at] * t->cosines[at] + t->sines[at] * t->sines[at];
        wanted += j->wanted[m] * j->wanted[m] + j->wanted[m + j->M] * j->wanted[m + j->M];
    }
    const double ratio = sqrt(got / wanted);
    for (int64_t k = 0; k < t->rows * t->width; k++)
        j->table[k] = (float)(ratio * j->wanted[k]);
    if (!(fabs(ratio - 1) > 1e-5) || !fits(j, 0))
        return 0;
    snprintf(j->v->cause, PE_CAUSE, "the magnitude is %.6g times that of the config", ratio);
    return 1;
}

static void find_cause(judging *j)
{
    static int (*const causes[])(judging *) = {find_rival,      find_magnitude,   find_width,    find_low,
                                               find_convention, find_frequencies, find_positions};
    snprintf(j->v->cause, PE_CAUSE, "no known layout, base, schedule, factor, magnitude, type or shift fits");
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i](j))
            return;
}

/* ---------------------------------------------------------------- the verdict --------------- */

static void find_first(judging *j)
{
    const pe_turns   *t = j->t;
    pe_turns_verdict *v = j->v;
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t m = 0; m < j->M; m++)
            for (int second = 0; second < 2; second++) {
                const int64_t channel = place(j, v->is_interleaved, m, second), at = r * t->width + channel;
                const double  c = j->wanted[r * t->width + m], s = j->wanted[r * t->width + j->M + m];
                if (fabs(t->cosines[at] - c) <= v->allowed && fabs(t->sines[at] - s) <= v->allowed)
                    continue;
                v->row     = r;
                v->channel = channel;
                v->pair    = m;
                v->got     = t->cosines[at];
                v->wanted  = c;
                return;
            }
}

static posenc_status judge(judging *j)
{
    const pe_turns   *t       = j->t;
    pe_turns_verdict *v       = j->v;
    double            largest = 1;
    memcpy(j->positions, t->positions, (size_t)t->rows * sizeof *j->positions);
    const posenc_status status = make_table(j, t->e, t->params, j->angle);
    if (status == POSENC_ERROR_SHAPE) {
        v->error = INFINITY;
        snprintf(v->cause, PE_CAUSE, "it is %lld wide, which is not twice the pairs of the config",
                 (long long)t->width);
        return POSENC_OK;
    }
    if (status)
        return status;
    for (int64_t k = 0; k < t->rows * t->width; k++)
        j->wanted[k] = (double)j->table[k];
    for (int64_t k = 0; k < t->rows * j->M; k++)
        largest = fmax(largest, fabs(j->angle[k]));
    v->allowed        = 0x1p-22 * largest; /* two roundings of a product to float32 */
    v->is_interleaved = is_interleaved(j);
    v->is_right       = compare(j, v->is_interleaved, &v->error) == 0;
    if (!v->is_right) {
        find_first(j);
        find_cause(j);
    }
    return POSENC_OK;
}

posenc_status pe_turns_judge(pe_turns_verdict *verdict, const pe_turns *turns, posenc_error *err)
{
    const size_t  rows = (size_t)turns->rows, width = (size_t)turns->width;
    posenc_error  attempts;                    /* what an attempt says is nobody's affair */
    locale_t      before = pe_decimal_begin(); /* numbers go into SPECs and come out of them */
    posenc_status status = POSENC_ERROR_MEMORY;
    judging       j      = {.t         = turns,
                            .v         = verdict,
                            .M         = turns->width / 2,
                            .table     = malloc((rows * width + 1) * sizeof *j.table),
                            .positions = malloc((rows + 1) * sizeof *j.positions),
                            .angle     = malloc((rows * width + 1) * sizeof *j.angle),
                            .wanted    = malloc((rows * width + 1) * sizeof *j.wanted),
                            .err       = &attempts};
    *verdict             = (pe_turns_verdict){.row = -1};
    attempts = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
    if (j.table && j.positions && j.angle && j.wanted)
        status = judge(&j);
    pe_decimal_end(before);
    if (status)
        *err = attempts;
    free(j.table);
    free(j.positions);
    free(j.angle);
    free(j.wanted);
    return status;
}
