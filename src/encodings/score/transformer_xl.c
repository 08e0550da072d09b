/* SPDX-License-Identifier: MIT */
/*
 * Transformer-XL: scores from distance vectors and two learned query vectors
 *
 * Place    score
 * Formula  S[h,i,j] = scale * [ (q_i + u_h) . k_j + (q_i + w_h) . r_h(t) ]      t = P(i) - P(j)
 *          r_h(t)   = sum_m R(t)[m] * Wr[m,h,:]
 *          R(t)     = [sin(t*omega_k) | cos(t*omega_k)], omega_k = 10000^(-2k/d_model), k < d_model/2
 * Learns   u_bias = u [H,D], v_bias = w [H,D], Wr [d_model,H,D]
 * Source   Dai et al. 2019, arXiv:1901.02860, section 3.3; kimiyoung/transformer-xl, pytorch/mem_transformer.py
 *
 * u is r_w_bias in the authors' code ("content"), w is r_r_bias ("position"). Wr is separate from the content's
 * W_k. clamp_len limits t from above only: distances in the future keep their own vectors. There is no gradient into
 * R, and r_h(t) does not depend on the content, so its gradient is summed over the batch before Wr sees it.
 */
#include "encodings/encoding.h"

#include <math.h>
#include <string.h>

#include "base/angle.h"

enum { D_MODEL, CLAMP_LEN, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"d_model", "integer", "d_model", "2..65536", "channels of the sinusoid R(t); even"},
    {"clamp_len", "integer", "", "0..", "distances beyond use the vector of this one; absent: no limit"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial Wr"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { U_BIAS, V_BIAS, WR }; /* ORDER params */
static const posenc_param_info params[] = {
    {"u_bias", "H,D", "zeros", "u: added to the query before the content product", 1},
    {"v_bias", "H,D", "zeros", "w: added to the query before the distance product", 1},
    {"Wr", "d_model,H,D", "normal(0, sigma)", "projects the sinusoid of a distance to the heads", 1},
    {0},
};
static_assert(PE_ROWS(params) == WR + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order. */
static const posenc_example examples[] = {
    {"H=1 D=1 d_model=2 scale=1", 0, 3, 3, 0, "w = 0 alone: no bias whatever the distance"},
    {"H=2 D=1 d_model=2 scale=1", 1, 5, 5, 3, "t = 0: R = [0 | 1], w_1 = 1, Wr[1,1] = 3"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[D_MODEL].integer % 2)
        return pe_fail(err, POSENC_SETTING, "transformer_xl: d_model=%lld must be even: half sines, half cosines",
                       (long long)p->set[D_MODEL].integer);
    return POSENC_OK;
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    (void)i;
    return index == WR ? p->set[SIGMA].real * pe_normal(rng) : 0;
}

static double limited(const pe_problem *p, int64_t t)
{
    const pe_value *clamp = &p->set[CLAMP_LEN];
    return (double)(clamp->given && t > clamp->integer ? clamp->integer : t);
}

static pe_frequency omega(const pe_problem *p, int64_t k)
{
    return pe_frequency_of(pow(10000.0, -2.0 * (double)k / (double)p->set[D_MODEL].integer));
}

/* Channel by channel for all n distances: a frequency is found once, and its rows of Wr stay in cache.
   rows[i,:] = r_h(t0 + i) */
static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n, double rows[])
{
    const int64_t half = p->set[D_MODEL].integer / 2, D = p->D, row = p->H * D;
    memset(rows, 0, (size_t)(n * D) * sizeof *rows);
    for (int64_t k = 0; k < half; k++) {
        const double *ws = par[WR] + k * row + h * D, *wc = ws + half * row;
        const pe_frequency w = omega(p, k);
        for (int64_t i = 0; i < n; i++) {
            double c, s;
            pe_cos_sin(limited(p, t0 + i), w, &c, &s);
            for (int64_t d = 0; d < D; d++)
                rows[i * D + d] += s * ws[d] + c * wc[d];
        }
    }
}

/* dWr[m,h,:] += sum_i R(t0 + i)[m] * drows[i,:] */
static void fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double drows[], double *const dpar[])
{
    const int64_t half = p->set[D_MODEL].integer / 2, D = p->D, row = p->H * D;
    (void)par;
    for (int64_t k = 0; dpar[WR] && k < half; k++) {
        double      *ws = dpar[WR] + k * row + h * D, *wc = ws + half * row;
        const pe_frequency w = omega(p, k);
        for (int64_t i = 0; i < n; i++) {
            double c, s;
            pe_cos_sin(limited(p, t0 + i), w, &c, &s);
            for (int64_t d = 0; d < D; d++) {
                ws[d] += s * drows[i * D + d];
                wc[d] += c * drows[i * D + d];
            }
        }
    }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale = 1.0 / sqrt((double)p->D);
    s->u     = U_BIAS;
    s->w     = V_BIAS;
    s->A     = (pe_by_distance){.fill = fill, .fold = fold};
}

const pe_encoding pe_transformer_xl = {
    .info =
        {
            .name          = "transformer_xl",
            .place         = POSENC_SCORE,
            .title         = "relative positions by projected sinusoids",
            .paper         = "arXiv:1901.02860",
            .models        = "Transformer-XL",
            .pictures      = "bias",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .params        = params,
            .param_count   = PE_ROWS(params),
            .by_distance   = 1,
        },
    .model    = "sigma=1/sqrt(d_model)",
    .examples = examples,
    .check    = check,
    .init     = init,
    .terms    = terms,
};
