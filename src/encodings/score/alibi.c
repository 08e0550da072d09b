/* SPDX-License-Identifier: MIT */
/*
 * ALiBi: attention with linear biases
 *
 * Place    score: a bias by distance is added to every score before the softmax
 * Formula  S[h,i,j] = scale * q_i . k_j + b_h(t)        t = P(i) - P(j), in tokens
 *          b_h(t)   = -m_h * |t|                        form=key_shifted: + m_h * P(j) instead
 * Learns   nothing (default), or m_h, one slope per head
 * Source   Press, Smith, Lewis 2022, arXiv:2108.12409, section 3; authors' code
 *          ofirpress/attention_with_linear_biases
 *
 * The slopes are a geometric sequence that starts at 2^(-8/H) and has that same ratio when H is a
 * power of two. For any other H the authors take the slopes of the power of two below H, then every
 * other slope of the next power of two, until H heads have one.
 *
 * The bias is not multiplied by `scale`. The paper is causal, so it only defines t >= 0; for t < 0
 * the authors propose the symmetric form used here (issue 5 of their repository).
 * fairseq and BLOOM add +m_h * j instead: the same softmax under a causal mask, but other scores
 * and another log-sum-exp. It depends only on the key, not on the distance: a tile hook.
 */
#include "encodings/encoding.h"

enum { FORM, LEARNED }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"form", "word", "distance", "distance|key_shifted",
     "distance: -m|t|; key_shifted: +m P(j), as fairseq, BLOOM"},
    {"learned", "flag", "no", "yes|no", "train the slopes; the paper keeps them fixed"},
    {0},
};
static_assert(PE_ROWS(settings) == LEARNED + 1, "ORDER settings");

enum { SLOPES }; /* ORDER params */
static const posenc_param_info params[] = {
    {"slopes", "H", "geometric from 2^(-8/H)", "m_h: how much one token of distance costs head h", 0},
    {0},
};
static_assert(PE_ROWS(params) == SLOPES + 1, "ORDER params");

static const posenc_example examples[] = {
    {"H=8", 0, 5, 2, -1.5, "section 3: the slopes of 8 heads are 1/2, 1/4, ..., 1/256"},
    {"H=8", 7, 0, 256, -1.0, "the same, symmetric: 256 tokens ahead in the last head"},
    {"H=12", 8, 1, 0, -0.70710678118654752, "authors' get_slopes(12)[8] = 2^-0.5"},
    {"H=8 form=key_shifted", 1, 9, 3, 0.75, "fairseq: slope 1/4 times key position 3"},
    {0},
};

static double slope(int64_t h, int64_t H)
{
    int64_t below = 1;
    while (2 * below <= H)
        below *= 2;
    const double step = 8.0 / (double)below;
    return h < below ? exp2(-step * (double)(h + 1)) : exp2(-step * ((double)(h - below) + 0.5));
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t h)
{
    return slope(h, p->H);
}

static int trains(const pe_value *set, int index)
{
    return set[LEARNED].integer == 1;
}

/* b_h(t) as a factor of |t| */
static double bias_slope(const pe_problem *p, const double *const par[], int64_t h)
{
    return -par[SLOPES][h];
}

/* The adjoint: db[i] is the sum of dS over the diagonal of distance t0 + i.
   d loss / d m_h = -sum_i |t0 + i| * db[i] */
static void fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double db[], double *const dpar[])
{
    if (!dpar[SLOPES])
        return;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)(t0 + i)) * db[i];
    dpar[SLOPES][h] -= sum;
}

/* key_shifted: x[r,c] = m_h * P(c) */
static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++)
            x[r * tile->stride + c] = par[SLOPES][tile->h] * tile->k_pos[c];
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    for (int64_t r = 0; dpar[SLOPES] && r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++)
            dpar[SLOPES][tile->h] += dx[r * tile->stride + c] * tile->k_pos[c];
}

static void terms(const pe_problem *p, pe_terms *s)
{
    if (p->set[FORM].integer == 0)
        s->bias = (pe_by_distance){.slope = bias_slope, .fold = fold};
    else
        s->hook = (pe_tile_hook){.visit = visit, .visit_back = visit_back};
}

const pe_encoding pe_alibi = {
    .info.name     = "alibi",
    .info.place    = POSENC_PLACE_SCORE,
    .info.title    = "attention with linear biases",
    .info.formula  = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} − m_h | t | , m_h = 2^{−8 (h + 1) / H}",
    .info.symbols  = "m_h: the slope of head h: what one token of distance costs",
    .info.paper    = "arXiv:2108.12409",
    .info.models   = "BLOOM, MPT",
    .info.beyond   = "The slope goes on at any distance: the loss is kept at many times the trained length.",
    .info.pictures = "bias,mass",
    .info.by_distance = 1,
    /* m |t| for each distance; key_shifted: for each key. */
    .operations      = "H*(Lk+(1-form)*(Lq-1))",
    .init            = init,
    .trains          = trains,
    .attention.terms = terms,
    PE_TABLES(settings, params, examples),
};
