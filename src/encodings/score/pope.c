/* SPDX-License-Identifier: MIT */
/*
 * PoPE: polar coordinates, a magnitude from the content and an angle from the position
 *
 * Place    score: queries and keys of D numbers become 2D, whose products are the scores
 * Formula  S[h,i,j] = scale * sum over c of mu(q_ic) mu(k_jc) cos((P(j) - P(i)) w_c + delta_hc)
 *          mu(x) = ln(1 + e^x), w_c = base^(-c/D), c = 0 .. D-1
 *          query: mu(q_c) (cos(P w_c - delta), sin(P w_c - delta)), key: mu(k_c) (cos(P w_c), sin(P w_c))
 * Learns   delta, an angle for each head and channel, clipped to [-2 pi, 0] where it is used (clip=yes)
 * Source   Gopalakrishnan et al. 2025, arXiv:2509.10534; PoPE-pytorch; x-transformers, polar_pos_emb
 *
 * RoPE turns pairs of channels, so that the content of a pair moves its angle; here each channel has a
 * frequency of its own and the content no say in the angle. Scores have a positive mean, about scale D ln^2 2
 * at the start: posenc_bias, of queries and keys of 0, shows it. `scale` is that of D, not of 2D.
 *
 * Where code and paper differ, this is the code: the exponent is negative and delta, not w, is clipped. delta
 * stands with the queries: keys then have one form for all query heads that share them, and a cache holds k
 * as it came. At an edge of the clip the gradient passes (torch 2.15's clamp stops it there, so that a delta
 * that starts at 0 would never move). softplus has no threshold.
 */
#include "base/shared/pi.h"
#include "encodings/encoding.h"

enum { BASE, CLIP, INIT }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"base", "real", "10000", "1<..", "theta: channel c turns by base^(-c/D) from token to token"},
    {"clip", "flag", "yes", "yes|no", "delta is held within -2 pi .. 0 where it is used"},
    {"init", "word", "zeros", "zeros|uniform", "what delta starts as; uniform: between -2 pi and 0"},
    {0},
};
static_assert(PE_ROWS(settings) == INIT + 1, "ORDER settings");

enum { DELTA, MADE }; /* ORDER params; MADE: derived */
static const posenc_param_info params[] = {
    {"delta", "H,D", "zeros; init=uniform: uniform(-6.283185307179586, 0)",
     "delta_hc: by how much the angle of a key stands ahead", 1},
    {0},
};
static_assert(PE_ROWS(params) == MADE, "ORDER params");

/* Queries and keys of 0: mu = ln 2. delta is 0, 1, ..., of which the clip leaves 0. */
static const posenc_example examples[] = {
    {"H=1 D=2", 0, 1, 0, 0.5232723560557715, "ln^2 2 (cos 1 + cos 0.01) / sqrt(2)"},
    {"H=1 D=1 clip=no", 0, 5, 5, 0.48045301391820139, "ln^2 2 cos 0"},
    {0},
};

/* ---- numbers made of the parameters: k of w_c (two doubles each), and cosine and sine of delta ---- */

static int64_t derived(const pe_problem *p)
{
    return 2 * p->D * (1 + p->H);
}

static double clipped(const pe_problem *p, double delta)
{
    return p->set[CLIP].integer ? fmin(fmax(delta, -2 * PE_PI), 0) : delta;
}

static void derive(const pe_problem *p, const double *const par[], double made[])
{
    for (int64_t c = 0; c < p->D; c++) {
        const double       w = pow(p->set[BASE].real, -(double)c / (double)p->D);
        const pe_frequency k = pe_angle_frequency(w);
        made[2 * c]          = k.k_hi;
        made[2 * c + 1]      = k.k_lo;
    }
    for (int64_t x = 0; x < p->H * p->D; x++) {
        const double delta         = clipped(p, par[DELTA][x]);
        made[2 * p->D + 2 * x]     = cos(delta);
        made[2 * p->D + 2 * x + 1] = sin(delta);
    }
}

/* ---- rows ---- */

enum { SOME = 64 }; /* channels at once */

/* mu of n numbers: max(x, 0) + ln(1 + e^-|x|), and e^-|x| = s/(1 - s) for s = 1/(1 + e^|x|) */
static void magnitudes(const pe_problem *p, const double x[], int64_t n, double mu[])
{
    for (int64_t i = 0; i < n; i++)
        mu[i] = -fabs(x[i]);
    p->kernels->sigmoids(mu, mu, n);
    for (int64_t i = 0; i < n; i++)
        mu[i] /= 1 - mu[i];
    p->kernels->logs(mu, n);
    for (int64_t i = 0; i < n; i++)
        mu[i] += fmax(x[i], 0);
}

/* Cosine and sine of the angles of channels c .. c+n-1 at position P; of a query's less delta of its head. */
static void angles(const pe_problem *p, const double *const par[], pe_side side, int64_t h, double P,
                   int64_t c, int64_t n, double cosine[], double sine[])
{
    double        position[SOME];
    const double *made = par[MADE], *turn = made + 2 * p->D + 2 * (h * p->D + c);
    for (int64_t i = 0; i < n; i++)
        position[i] = P;
    p->kernels->cosines(position, made + 2 * c, 1, cosine, sine, n);
    for (int64_t i = 0; side == PE_QUERIES && i < n; i++) {
        const double x = cosine[i], y = sine[i];
        cosine[i] = x * turn[2 * i] + y * turn[2 * i + 1];
        sine[i]   = y * turn[2 * i] - x * turn[2 * i + 1];
    }
}

/* y = (mu cos a, mu sin a) */
static void polar(const pe_problem *p, const double *const par[], pe_side side, int64_t h, const double pos[],
                  int64_t n, const double x[], double y[])
{
    const int64_t D = p->D;
    double        cosine[SOME], sine[SOME], mu[SOME];
    for (int64_t s = 0; s < n; s++)
        for (int64_t c = 0; c < D; c += SOME) {
            const int64_t some = D - c < SOME ? D - c : SOME;
            magnitudes(p, x + s * D + c, some, mu);
            angles(p, par, side, h, pos[s], c, some, cosine, sine);
            for (int64_t i = 0; i < some; i++) {
                y[2 * s * D + c + i]     = mu[i] * cosine[i];
                y[2 * s * D + D + c + i] = mu[i] * sine[i];
            }
        }
}

/* d mu / dx = 1/(1 + e^-x) */
static void polar_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                       const double pos[], int64_t n, const double x[], const double dy[], double dx[],
                       double *const dpar[])
{
    const int64_t D = p->D;
    double        cosine[SOME], sine[SOME], mu[SOME];
    for (int64_t s = 0; s < n; s++)
        for (int64_t c = 0; c < D; c += SOME) {
            const int64_t some = D - c < SOME ? D - c : SOME;
            double       *to   = dx + s * D + c;
            magnitudes(p, x + s * D + c, some, mu);
            angles(p, par, side, h, pos[s], c, some, cosine, sine);
            p->kernels->sigmoids(to, x + s * D + c, some);
            for (int64_t i = 0; i < some; i++) {
                const double re = dy[2 * s * D + c + i], im = dy[2 * s * D + D + c + i],
                             delta = par[DELTA][h * D + c + i];
                to[i] *= cosine[i] * re + sine[i] * im;
                if (side == PE_QUERIES && (!p->set[CLIP].integer || (delta >= -2 * PE_PI && delta <= 0)))
                    pe_add(dpar, DELTA, h * D + c + i, mu[i] * (sine[i] * re - cosine[i] * im));
            }
        }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->prepare = (pe_preparation){.fill = polar, .fold = polar_back, .width = 2 * p->D, .forms = 1};
}

const pe_encoding pe_pope = {
    .info.name     = "pope",
    .info.place    = POSENC_PLACE_SCORE,
    .info.title    = "polar coordinates",
    .info.formula  = "S_{h,i,j} = frac{1}{sqrt{D}} ∑_c μ(q_{i,c}) μ(k_{j,c}) cos((P(j) − "
                     "P(i)) w_c + δ_{h,c})",
    .info.symbols  = "μ: the magnitude of a channel, μ(x) = ln(1 + e^x)\n"
                     "c: a channel, counted from 0\n"
                     "w_c: the frequency of channel c, base^{−c / D}\n"
                     "δ_{h,c}: an angle that head h learns for channel c",
    .info.paper    = "arXiv:2509.10534",
    .info.models   = "research",
    .info.beyond   = "Angles go on at any distance; a model read at 10 times its length stays near its loss.",
    .info.pictures = "bias",
    .info.by_distance = 1,
    /* Of each channel of a query or key a logarithm, a cosine and a sine, and products. */
    .operations        = "(H*Lq+G*Lk)*D*12",
    .no_rotation       = "its scores have angles of their own",
    .attention.derived = derived,
    .attention.derive  = derive,
    .attention.terms   = terms,
    PE_TABLES(settings, params, examples),
};
