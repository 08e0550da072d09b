/* SPDX-License-Identifier: MIT */
/*
 * KERPLE: biases from conditionally positive definite kernels
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b_h(t)          t = P(i) - P(j)
 *          b_h(t)   = -p_h * ln(1 + a_h * |t|)            kerple_log
 *          b_h(t)   = -a_h * |t|^p_h                      kerple_power
 * Learns   p [H], a [H]
 * Source   Chi, Fan, Ramadge, Rudnicky 2022, arXiv:2205.09921, section 4; authors' code chijames/KERPLE
 *
 * A kernel of this family becomes positive definite when a constant is added, and the softmax does not see
 * constants; that holds for p, a > 0, and with the power for p <= 2. The authors' code therefore moves the
 * parameters into [0.01, ..) (p of the power into [0.01, 2]) before each use, and trains as if it had not:
 * the move changes the stored numbers, not the graph. Here the caller's numbers stay as they are, the limits
 * act where they are used, and the gradient passes through, so that a parameter beyond its limit can come
 * back.
 *
 * ALiBi is kerple_power with p = 1. The derivative of |t|^p by p at t = 0 is taken as 0.
 */
#include "encodings/encoding.h"

#define LEAST 0.01 /* the authors' self.eps */

enum { P, A }; /* ORDER params */
static const posenc_param_info log_params[] = {
    {"p", "H", "uniform(0, 2)", "how strongly a head prefers near keys", 1},
    {"a", "H", "uniform(0, 1)", "how soon the logarithm bends: at distances of about 1/a", 1},
    {0},
};
static_assert(PE_ROWS(log_params) == A + 1, "ORDER params");

static const posenc_param_info power_params[] = {
    {"p", "H", "uniform(0, 2)", "the power of the distance, at most 2", 1},
    {"a", "H", "uniform(0, 1)", "what the distance 1 costs", 1},
    {0},
};
static_assert(PE_ROWS(power_params) == A + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ...: p_h = a_h = h. */
static const posenc_example log_examples[] = {
    {"H=3", 2, 3, 0, -3.8918202981106265, "-2 ln(1 + 2*3)"},
    {"H=3", 2, 0, 3, -3.8918202981106265, "the same, 3 tokens ahead"},
    {"H=1", 0, 100, 0, -0.0069314718055994531, "both limits act: -0.01 ln(1 + 0.01*100)"},
    {0},
};
static const posenc_example power_examples[] = {
    {"H=3", 1, 7, 2, -5, "p = 1 is ALiBi: -1 * 5"},
    {"H=3", 2, 4, 1, -18, "-2 * 3^2"},
    {"H=5", 4, 4, 1, -36, "p = 4 acts as 2: -4 * 3^2"},
    {0},
};

static double at_least(double x)
{
    return fmax(x, LEAST);
}

static void log_fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                     double b[])
{
    const double strength = at_least(par[P][h]), bend = at_least(par[A][h]);
    for (int64_t i = 0; i < n; i++)
        b[i] = bend * fabs((double)(t0 + i));
    p->kernels->logs(b, n);
    for (int64_t i = 0; i < n; i++)
        b[i] *= -strength;
}

/* d b/d p = -ln(1 + a|t|); d b/d a = -p|t| / (1 + a|t|) */
static void log_fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                     const double db[], double *const dpar[])
{
    const double strength = at_least(par[P][h]), bend = at_least(par[A][h]);
    double       by_p = 0, by_a = 0;
    for (int64_t i = 0; i < n; i++) {
        const double t = fabs((double)(t0 + i));
        by_p -= db[i] * log1p(bend * t);
        by_a -= db[i] * strength * t / (1 + bend * t);
    }
    pe_add(dpar, P, h, by_p);
    pe_add(dpar, A, h, by_a);
}

static double power_of(double x)
{
    return fmin(at_least(x), 2);
}

static void power_fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                       double b[])
{
    const double power = power_of(par[P][h]), factor = at_least(par[A][h]);
    for (int64_t i = 0; i < n; i++)
        b[i] = -factor * pow(fabs((double)(t0 + i)), power);
}

/* d b/d a = -|t|^p; d b/d p = -a |t|^p ln|t|, 0 at t = 0 */
static void power_fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                       const double db[], double *const dpar[])
{
    const double power = power_of(par[P][h]), factor = at_least(par[A][h]);
    double       by_p = 0, by_a = 0;
    for (int64_t i = 0; i < n; i++) {
        const double t = fabs((double)(t0 + i)), y = pow(t, power);
        by_a -= db[i] * y;
        by_p -= t > 0 ? db[i] * factor * y * log(t) : 0;
    }
    pe_add(dpar, P, h, by_p);
    pe_add(dpar, A, h, by_a);
}

const pe_encoding pe_kerple_log = {
    .info.name     = "kerple_log",
    .info.place    = POSENC_PLACE_SCORE,
    .info.title    = "logarithmic kernel bias with learned strength and bend",
    .info.formula  = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} − p_h ln(1 + a_h | t |)",
    .info.symbols  = "p_h: the learned weight of the bias of head h\n"
                     "a_h: the learned scale of distance in head h",
    .info.paper    = "arXiv:2205.09921",
    .info.models   = "",
    .info.beyond   = "The curve goes on at any distance: the loss is kept at many times the trained length.",
    .info.pictures = "bias,mass",
    .info.by_distance = 1,
    .examples         = log_examples,
    /* For each head and distance: p ln(1 + a |t|), four; a |t|^p, two. */
    .operations     = "4*H*(Lq+Lk-1)",
    .attention.bias = {.fill = log_fill, .fold = log_fold},
    PE_PARAMS(log_params),
};

const pe_encoding pe_kerple_power = {
    .info.name        = "kerple_power",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "power kernel bias with learned factor and power",
    .info.formula     = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} − a_h | t |^{p_h}",
    .info.symbols     = "a_h: the learned weight of the bias of head h\n"
                        "p_h: the learned exponent of head h",
    .info.paper       = "arXiv:2205.09921",
    .info.models      = "",
    .info.beyond      = "The curve goes on at any distance: in its paper the loss is kept.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .examples         = power_examples,
    .operations       = "2*H*(Lq+Lk-1)",
    .attention.bias   = {.fill = power_fill, .fold = power_fold},
    PE_PARAMS(power_params),
};
