/* SPDX-License-Identifier: MIT */
/*
 * TUPE: positions meet positions through projections of their own, and the class token stands apart
 *
 * Place    score: queries and keys get further channels; with relative=yes a bias by distance too
 * Formula  S[h,i,j] = scale * ( q_i . k_j + e[h,i,j] ) [ + table[bin(i,j),h] ]        scale = 1/sqrt(2 D)
 *          e = (p_i . Uq_h + bq_h) . (p_j . Uk_h + bk_h), but theta1_h where P(i) = 0, else theta2_h where P(j) = 0
 *          p_i = LayerNorm(pos[P(i) + 1]), theta1 = e of row 0 with itself, theta2 = e of row 1 with itself
 *          bin = T5's bucket of P(j) - P(i), but cls_to_others where P(i) = 0, else others_to_cls where P(j) = 0
 * Learns   pos [rows,d_model], ln_w, ln_b [d_model], Uq [H*D,d_model], bq [H*D], Uk [G*D,d_model], bk [G*D];
 *          relative=yes: table [num_buckets+1,H]
 * Source   Ke, He, Liu 2021, arXiv:2006.15595; guolinke/TUPE, fairseq/modules/transformer_sentence_encoder.py
 *
 * The word and its place are not added: each meets its like, so the sum of both products is scaled as one of 2 D
 * channels. That is what happens here to the letter: a query is prolonged by its position's projection, a key by
 * its own, and the machine sees a head of 2 D channels and two more, which carry the class token:
 *
 *     query  [ q ; 0 at P = 0, else p U ; theta1 at P = 0, else 0 ; 0 at P = 0, else theta2 ]
 *     key    [ k ; 0 at P = 0, else p U ; 1 ; 1 at P = 0, else 0 ]
 *
 * Token t has row t + 1: rows 0 and 1 make the two numbers of the class token. (So row 1 serves theta2 and the token
 * at 0, whose own products are overridden; that is the authors' code.) cls=no: no token is special, and token t still
 * has row t + 1. The class token is who stands at position 0, whatever chunk of the queries a run brings.
 *
 * The bias is not scaled. The bin `num_buckets/2` is one that T5 never gives. Projections and table are shared by all
 * layers of the authors' model, which makes the positional products once; here they cost 2 D + 2 channels per head.
 */
#include "encodings/encoding.h"

#include <math.h>

#include "engine/index.h"

enum { RELATIVE, NUM_BUCKETS, MAX_DISTANCE, CLS, CLS_BUCKETS, TABLE_ROWS, EPS, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"relative", "flag", "no", "yes|no", "TUPE-R: a bias by T5's buckets as well; no: TUPE-A"},
    {"num_buckets", "integer", "32", "4..1048576",
     "relative=yes: classes of distance, both directions together"},
    {"max_distance", "integer", "128", "2..1048576", "relative=yes: distances beyond share the last class"},
    {"cls", "flag", "yes", "yes|no", "the token at position 0 is the class token"},
    {"cls_buckets", "map", "others_to_cls=num_buckets:cls_to_others=num_buckets/2",
     "others_to_cls|cls_to_others", "relative=yes: the bins of pairs with the class token"},
    {"rows", "integer", "L+1", "2..", "rows of pos: one more than positions"},
    {"eps", "real", "1e-5", "0<..", "added to the variance in the normalisation"},
    {"sigma", "real", "0.02", "0..", "standard deviation of initial rows and projections"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { OTHERS_TO_CLS, CLS_TO_OTHERS }; /* ORDER cls_buckets */

enum { POS, LN_W, LN_B, UQ, BQ, UK, BK, TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"pos", "rows,d_model", "normal(0, sigma)", "a vector per position; the token at t has row t + 1", 1},
    {"ln_w", "d_model", "ones", "weight of the normalisation", 1},
    {"ln_b", "d_model", "zeros", "bias of the normalisation", 1},
    {"Uq", "H*D,d_model", "normal(0, sigma)", "projects positions of queries, head h to channels hD ..", 1},
    {"bq", "H*D", "zeros", "its bias", 1},
    {"Uk", "G*D,d_model", "normal(0, sigma)", "projects positions of keys", 1},
    {"bk", "G*D", "zeros", "its bias", 1},
    {"table", "num_buckets+1,H", "normal(0, sigma)", "what a bin adds to the scores of a head; relative=yes",
     1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order. A model of one channel is normalised to ln_b = 0, so
   the products are those of bq and bk. */
static const posenc_example examples[] = {
    {"H=1 D=2 d_model=1 L=4 cls=no", 0, 2, 1, 0.5, "(0,1).(0,1) / sqrt(4)"},
    {"H=2 D=2 d_model=1 L=4", 1, 3, 2, 6.5, "(2,3).(2,3) / sqrt(4)"},
    {"H=1 D=2 d_model=1 L=4 relative=yes num_buckets=8 max_distance=12", 0, 0, 3, 4.5, "0.5 + bin 4"},
    {"H=1 D=2 d_model=1 L=4 relative=yes num_buckets=8 max_distance=12", 0, 3, 0, 8.5, "0.5 + bin 8"},
    {"H=1 D=2 d_model=1 L=4 relative=yes num_buckets=8 max_distance=12", 0, 1, 2, 5.5, "0.5 + bucket 5"},
    {0},
};

static int is_relative(const pe_value *set)
{
    return set[RELATIVE].integer == 1;
}

static int has(const pe_value *set, int index)
{
    return index != TABLE || is_relative(set);
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t buckets = p->set[NUM_BUCKETS].integer;
    if (!is_relative(p->set))
        return POSENC_OK;
    if (buckets % 2 || p->set[MAX_DISTANCE].integer <= buckets / 4)
        return pe_fail(err, POSENC_SETTING,
                       "tupe: num_buckets=%lld must be even and max_distance=%lld above a quarter of it",
                       (long long)buckets, (long long)p->set[MAX_DISTANCE].integer);
    for (int i = 0; i < p->set[CLS_BUCKETS].count; i++)
        if (p->set[CLS_BUCKETS].items[i] > buckets)
            return pe_fail(err, POSENC_SETTING, "tupe: cls_buckets has bin %lld; the last one is %lld",
                           (long long)p->set[CLS_BUCKETS].items[i], (long long)buckets);
    return POSENC_OK;
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    (void)i;
    if (index == LN_W)
        return 1;
    return index == LN_B || index == BQ || index == BK ? 0 : p->set[SIGMA].real * pe_normal(rng);
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const double low = fmin(span->q_low, span->k_low), high = fmax(span->q_high, span->k_high);
    const double last = (double)p->set[TABLE_ROWS].integer - 2;
    if (span->whole && low >= 0 && high <= last)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_RANGE,
        "tupe: positions run from %g to %g, but rows=%lld is for whole positions 0 to %g; set rows", low,
        high, (long long)p->set[TABLE_ROWS].integer, last);
}

static int is_cls(const pe_problem *p, double position)
{
    return p->set[CLS].integer && position == 0;
}

/* ---- p U: a normalised row, projected to the channels of a head ---- */

/* Which projection: its weights and bias. */
typedef struct projection {
    int U, bias;
} projection;

static projection projection_of(pe_side side)
{
    return side == PE_QUERIES ? (projection){UQ, BQ} : (projection){UK, BK};
}

typedef struct moments {
    double mean, inverse; /* 1 / sqrt(variance + eps) */
} moments;

static moments moments_of(const pe_problem *p, const double row[])
{
    const int64_t n    = p->d_model;
    double        mean = 0, variance = 0;
    for (int64_t m = 0; m < n; m++)
        mean += row[m] / (double)n;
    for (int64_t m = 0; m < n; m++)
        variance += (row[m] - mean) * (row[m] - mean) / (double)n;
    return (moments){mean, 1 / sqrt(variance + p->set[EPS].real)};
}

static void project(const pe_problem *p, const double *const par[], projection by, int64_t head, int64_t row,
                    double to[])
{
    const int64_t n   = p->d_model;
    const double *x   = par[POS] + row * n;
    const moments x_m = moments_of(p, x);
    for (int64_t d = 0; d < p->D; d++) {
        const double *U   = par[by.U] + (head * p->D + d) * n;
        double        sum = par[by.bias][head * p->D + d];
        for (int64_t m = 0; m < n; m++)
            sum += U[m] * ((x[m] - x_m.mean) * x_m.inverse * par[LN_W][m] + par[LN_B][m]);
        to[d] = sum;
    }
}

/* d of the normalised row, channels m0 .. m0+n-1: U^T dto. */
static void unproject(const pe_problem *p, const double *const par[], projection by, int64_t head,
                      const double dto[], int64_t m0, int64_t n, double to[])
{
    for (int64_t m = 0; m < n; m++)
        to[m] = 0;
    for (int64_t d = 0; d < p->D; d++)
        for (int64_t m = 0; m < n; m++)
            to[m] += dto[d] * par[by.U][(head * p->D + d) * p->d_model + m0 + m];
}

enum { BLOCK = 64 }; /* channels of the model at a time: rooms have no memory of their own */

/* With y = (x - mean) inverse: dx = inverse (g - mean(g) - y mean(g y)), g = ln_w d(normalised row). */
static void normalise_back(const pe_problem *p, const double *const par[], projection by, int64_t head,
                           int64_t row, const double dto[], double *const dpar[])
{
    const int64_t n   = p->d_model;
    const double *x   = par[POS] + row * n;
    const moments x_m = moments_of(p, x);
    double        dnormal[BLOCK], mean = 0, along = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t m0 = 0; m0 < n; m0 += BLOCK) {
            const int64_t width = n - m0 < BLOCK ? n - m0 : BLOCK;
            unproject(p, par, by, head, dto, m0, width, dnormal);
            for (int64_t i = 0; i < width; i++) {
                const int64_t m = m0 + i;
                const double  y = (x[m] - x_m.mean) * x_m.inverse, g = par[LN_W][m] * dnormal[i];
                if (pass == 0) {
                    mean += g / (double)n;
                    along += g * y / (double)n;
                    continue;
                }
                if (dpar[LN_W])
                    dpar[LN_W][m] += dnormal[i] * y;
                if (dpar[LN_B])
                    dpar[LN_B][m] += dnormal[i];
                if (dpar[POS])
                    dpar[POS][row * n + m] += x_m.inverse * (g - mean - y * along);
            }
        }
}

static void project_back(const pe_problem *p, const double *const par[], projection by, int64_t head,
                         int64_t row, const double dto[], double *const dpar[])
{
    const int64_t n   = p->d_model;
    const double *x   = par[POS] + row * n;
    const moments x_m = moments_of(p, x);
    for (int64_t d = 0; d < p->D; d++) {
        double *dU = dpar[by.U] ? dpar[by.U] + (head * p->D + d) * n : NULL;
        for (int64_t m = 0; dU && m < n; m++)
            dU[m] += dto[d] * ((x[m] - x_m.mean) * x_m.inverse * par[LN_W][m] + par[LN_B][m]);
        if (dpar[by.bias])
            dpar[by.bias][head * p->D + d] += dto[d];
    }
    normalise_back(p, par, by, head, row, dto, dpar);
}

/* ---- theta: what the class token gets, from rows 0 and 1; memory for projections is the caller's ---- */

static int64_t key_head(const pe_problem *p, int64_t h)
{
    return h / (p->H / p->G);
}

static double theta(const pe_problem *p, const double *const par[], int64_t h, int64_t row, double a[],
                    double b[])
{
    double sum = 0;
    project(p, par, projection_of(PE_QUERIES), h, row, a);
    project(p, par, projection_of(PE_KEYS), key_head(p, h), row, b);
    for (int64_t d = 0; d < p->D; d++)
        sum += a[d] * b[d];
    return sum;
}

/* `buffer` has D numbers: one side's projection is the other's cotangent. */
static void theta_back(const pe_problem *p, const double *const par[], int64_t h, int64_t row, double dtheta,
                       double buffer[], double *const dpar[])
{
    for (int side = PE_QUERIES; side <= PE_KEYS; side++) {
        const projection own = projection_of((pe_side)side), other = projection_of((pe_side)!side);
        project(p, par, other, side == PE_QUERIES ? key_head(p, h) : h, row, buffer);
        for (int64_t d = 0; d < p->D; d++)
            buffer[d] *= dtheta;
        project_back(p, par, own, side == PE_QUERIES ? h : key_head(p, h), row, buffer, dpar);
    }
}

/* ---- the longer queries and keys ---- */

static int64_t width(const pe_problem *p)
{
    return 2 * p->D + 2;
}

/* The last two channels of a key; those of a query have theta in the other places. */
static void prolong(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                    const double pos[], int64_t n, const double x[], double y[])
{
    const int64_t D        = p->D;
    double        thetas[] = {0, 0};
    if (side == PE_QUERIES && p->set[CLS].integer) /* y has room for both projections of a row */
        for (int64_t row = 0; row < 2; row++)
            thetas[row] = theta(p, par, h, row, y, y + D);
    for (int64_t s = 0; s < n; s++) {
        double   *to  = y + s * width(p);
        const int cls = is_cls(p, pos[s]);
        for (int64_t d = 0; d < D; d++) {
            to[d]     = x[s * D + d];
            to[D + d] = 0;
        }
        if (!cls)
            project(p, par, projection_of(side), h, (int64_t)pos[s] + 1, to + D);
        to[2 * D]     = side == PE_KEYS ? 1 : cls ? thetas[0] : 0;
        to[2 * D + 1] = side == PE_KEYS ? cls : cls ? 0 : thetas[1];
    }
}

/* The cotangent of theta2 from the last channel of n queries; that of theta1 is 0: it is added to a whole row of
   scores, which the softmax does not see. dx lends memory. */
static void thetas_back(const pe_problem *p, const double *const par[], int64_t h, const double pos[],
                        int64_t n, const double dy[], double dx[], double *const dpar[])
{
    double dtheta2 = 0;
    for (int64_t s = 0; s < n; s++)
        if (!is_cls(p, pos[s]))
            dtheta2 += dy[s * width(p) + 2 * p->D + 1];
    theta_back(p, par, h, 1, dtheta2, dx, dpar);
}

static void prolong_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                         const double pos[], int64_t n, const double x[], const double dy[], double dx[],
                         double *const dpar[])
{
    const int64_t D = p->D;
    (void)x;
    if (side == PE_QUERIES && p->set[CLS].integer && n > 0)
        thetas_back(p, par, h, pos, n, dy, dx, dpar);
    for (int64_t s = 0; s < n; s++) {
        const double *from = dy + s * width(p);
        if (!is_cls(p, pos[s]))
            project_back(p, par, projection_of(side), h, (int64_t)pos[s] + 1, from + D, dpar);
        for (int64_t d = 0; d < D; d++)
            dx[s * D + d] = from[d];
    }
}

/* ---- relative=yes ---- */

static int64_t bucket_at(const pe_problem *p, int64_t t)
{
    return pe_index_t5(-t, p->set[NUM_BUCKETS].integer, p->set[MAX_DISTANCE].integer, 1);
}

static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n, double b[])
{
    for (int64_t i = 0; i < n; i++)
        b[i] = par[TABLE][bucket_at(p, t0 + i) * p->H + h];
}

static void fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double db[], double *const dpar[])
{
    (void)par;
    for (int64_t i = 0; dpar[TABLE] && i < n; i++)
        dpar[TABLE][bucket_at(p, t0 + i) * p->H + h] += db[i];
}

/* The bin of a pair with the class token, -1 for any other. The row's rule wins where both are it. */
static int64_t cls_bin(const pe_problem *p, const pe_tile *tile, int64_t r, int64_t c)
{
    const int64_t *bins = p->set[CLS_BUCKETS].items;
    return is_cls(p, tile->q_pos[r])   ? bins[CLS_TO_OTHERS]
           : is_cls(p, tile->k_pos[c]) ? bins[OTHERS_TO_CLS]
                                       : -1;
}

/* Pairs with the class token have their bin instead of the bucket. */
static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++) {
            const int64_t bin       = cls_bin(p, tile, r, c);
            x[r * tile->stride + c] = bin < 0 ? 0 : par[TABLE][bin * p->H + tile->h];
        }
}

/* The bin of the class token's own row learns nothing, for the reason that theta1 does not. */
static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    (void)par;
    for (int64_t r = 0; dpar[TABLE] && r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++) {
            const int64_t bin = cls_bin(p, tile, r, c);
            if (bin >= 0 && !is_cls(p, tile->q_pos[r]))
                dpar[TABLE][bin * p->H + tile->h] += dx[r * tile->stride + c];
        }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale   = 1.0 / sqrt(2 * (double)p->D);
    s->prepare = (pe_preparation){.fill = prolong, .fold = prolong_back, .width = width(p)};
    if (!is_relative(p->set))
        return;
    s->bias = (pe_by_distance){.fill = fill, .fold = fold};
    if (p->set[CLS].integer)
        s->hook =
            (pe_tile_hook){.visit = visit, .visit_back = visit_back, .apart = is_cls, .learns = 1 << TABLE};
}

const pe_encoding pe_tupe = {
    .info =
        {
            .name          = "tupe",
            .place         = POSENC_SCORE,
            .title         = "positions meet positions through their own projections",
            .paper         = "arXiv:2006.15595",
            .models        = "TUPE-A, TUPE-R",
            .pictures      = "bias",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .params        = params,
            .param_count   = PE_ROWS(params),
            .row_limit     = "rows",
        },
    .model    = "rows=8*L+1 cls=no relative=yes max_distance=L+8 sigma=1/sqrt(d_model)",
    .examples = examples,
    .check    = check,
    .has      = has,
    .init     = init,
    .terms    = terms,
    .reach    = reach,
};
