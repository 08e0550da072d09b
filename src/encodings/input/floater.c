/* SPDX-License-Identifier: MIT */
/*
 * FLOATER: positions as the path of an ordinary differential equation
 *
 * Place    input: y = x + p(t),  t = position * dt
 * Formula  dp/dt = h(t, p) = W2 [max(W1 [p ; t] + b1, 0) ; t] + b2,   p(0) = y0
 * Learns   W1, W2 [dim, dim+1], b1, b2 [dim]: the same for every position and state; y0 [states, dim]
 * Source   Liu, Yu, Dhillon, Hsieh 2020, arXiv:2003.09229; xuanqing94/FLOATER, flow_func_linear
 *
 * Parameters do not grow with the length, and rows exist for positions that training never saw. A row has `states` vectors
 * that share the dynamics and start apart: one per block of a model, or per q, k and v of a block.
 *
 * Solvers land on positions: `substeps` steps of dt / substeps each, stages at t + c * step. torchdiffeq's "rk4", which
 * the authors ran, is the 3/8 rule, not the classical tableau. Their fork of it interpolates between steps from a state it
 * has overwritten, so a position may come out one step late; that is not repeated here. The gradient is exact for the
 * discrete solver: p is kept at positions, the steps between two of them are made again, and walked back stage by stage.
 * (The continuous adjoint is not: the kinks of max(., 0) limit the order of any solver, and it was seen 3 % off.)
 * solver=exact follows the equation itself: steps are halved until a step and its two halves agree to 1e-14, at a kink down
 * to some 1e-7 of dt, and doubled again behind it. It has no gradient.
 */
#include "encodings/encoding.h"

#include <math.h>
#include <string.h>

enum { DIM, STATES, POSITIONS, DT, SUBSTEPS, SOLVER, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"dim", "integer", "d_model", "1..65536", "width of a state"},
    {"states", "integer", "1", "1..65536", "vectors per row, each from a start of its own"},
    {"positions", "integer", "Lk", "1..2147483648", "positions that a run may reach: 0 .. positions-1"},
    {"dt", "real", "0.01", "0<..", "time between two positions"},
    {"substeps", "integer", "5", "1..1000000",
     "steps of the solver between two positions; exact chooses its own"},
    {"solver", "word", "rk4_38", "rk4_38|rk4_classic|midpoint|euler|exact", "how a step is made"},
    {"sigma", "real", "sqrt(2/(2*dim+1))", "0..", "standard deviation of the initial W1 and W2 (Xavier's)"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { RK4_38, RK4_CLASSIC, MIDPOINT, EULER, EXACT }; /* ORDER the range of `solver` */

enum { W1, B1, W2, B2, Y0 }; /* ORDER params */
static const posenc_param_info params[] = {
    {"W1", "dim,dim+1", "normal(0, sigma)", "first layer; the last column meets the time", 1},
    {"b1", "dim", "zeros", "its bias", 1},
    {"W2", "dim,dim+1", "normal(0, sigma)", "second layer; the last column meets the time", 1},
    {"b2", "dim", "zeros", "its bias", 1},
    {"y0", "states,dim", "uniform(-sqrt(6/(dim+states)), sqrt(6/(dim+states)))", "p at position 0", 1},
    {0},
};
static_assert(PE_ROWS(params) == Y0 + 1, "ORDER params");

/* With dim = 1, W1 = W2 = [0 1] and all else 0, the equation is dp/dt = t. */
static const posenc_example examples[] = {
    {"dim=1 dt=1 solver=euler substeps=1", 2, 0, 0, 1, "0 + 1: Euler uses the slope at the left"},
    {"dim=1 dt=1 solver=euler substeps=2", 1, 0, 0, 0.25, "0 + 0.5 * 0.5"},
    {"dim=1 dt=1 solver=midpoint substeps=1", 3, 0, 0, 4.5, "t^2/2, exactly"},
    {"dim=1 dt=2 solver=rk4_38 substeps=3", 1, 0, 0, 2, "t^2/2 at t = 2"},
    {"dim=1 dt=2 solver=rk4_classic substeps=1", 1, 0, 0, 2, "t^2/2 at t = 2"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const double all =
        (double)p->set[POSITIONS].integer * (double)p->set[STATES].integer * (double)p->set[DIM].integer;
    if (all <= 0x1p40)
        return POSENC_OK;
    return pe_fail(err, POSENC_SETTING,
                   "floater: positions, states and dim make a table of %.3g numbers; it must stay below 2^40",
                   all);
}

static int64_t width(const pe_problem *p)
{
    return p->set[STATES].integer * p->set[DIM].integer;
}

static int64_t positions(const pe_problem *p)
{
    return p->set[POSITIONS].integer;
}

static int64_t states(const pe_problem *p)
{
    return p->set[STATES].integer;
}

static posenc_status accept(const pe_problem *p, double low, double high, int whole, posenc_error *err)
{
    if (!whole)
        return pe_fail(err, POSENC_RANGE,
                       "floater: positions must be whole numbers; its solver stops at those alone");
    if (low < 0)
        return pe_fail(err, POSENC_RANGE, "floater: position %.0f is negative; its path begins at 0", low);
    if (high >= (double)positions(p))
        return pe_fail(
            err, POSENC_RANGE,
            "floater: position %.0f is outside positions=%lld; they run from 0 to %lld (give more)", high,
            (long long)positions(p), (long long)positions(p) - 1);
    return POSENC_OK;
}

static const char *no_gradient(const pe_value *set)
{
    return set[SOLVER].integer == EXACT
               ? "solver=exact follows the equation, not a fixed number of steps; train with "
                 "solver=rk4_38"
               : NULL;
}

static int trains(const pe_value *set, int index)
{
    (void)index;
    return !no_gradient(set);
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const double bound = sqrt(6 / (p->set[DIM].real + p->set[STATES].real));
    (void)i;
    switch (index) {
    case W1:
    case W2: return p->set[SIGMA].real * pe_normal(rng);
    case Y0: return bound * (2 * pe_uniform(rng) - 1);
    default: return 0;
    }
}

/* ---- the dynamics and their adjoint ---- */

enum { LANES = 8 };

/* a . b in LANES sums of their own, which compilers keep in vectors; a single one they may not split. */
static double dot(const double a[], const double b[], int64_t n)
{
    double  sum[LANES] = {0}, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += a[i + l] * b[i + l];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        all += sum[l];
    return all;
}

/* y = W [x ; t] + b */
static void affine(const double *W, const double *b, int64_t d, double t, const double x[], double y[])
{
    for (int64_t i = 0; i < d; i++, W += d + 1)
        y[i] = b[i] + W[d] * t + dot(W, x, d);
}

/* to += factor * x */
static void add_scaled(double to[], double factor, const double x[], int64_t d)
{
    for (int64_t i = 0; i < d; i++)
        to[i] += factor * x[i];
}

/* dW += dy [x ; t]^T;  db += dy;  dx = W^T dy */
static void affine_back(const double *W, int64_t d, double t, const double x[], const double dy[], double *dW,
                        double *db, double dx[])
{
    memset(dx, 0, (size_t)d * sizeof *dx);
    for (int64_t i = 0; i < d; i++) {
        const int64_t row = i * (d + 1);
        add_scaled(dx, dy[i], W + row, d);
        if (dW) {
            add_scaled(dW + row, dy[i], x, d);
            dW[row + d] += t * dy[i];
        }
        if (db)
            db[i] += dy[i];
    }
}

/* k = h(t, x); r keeps what the first layer lets through. */
static void dynamics(const double *const par[], int64_t d, double t, const double x[], double r[], double k[])
{
    affine(par[W1], par[B1], d, t, x, r);
    for (int64_t i = 0; i < d; i++)
        r[i] = r[i] < 0 ? 0 : r[i]; /* no number stays none */
    affine(par[W2], par[B2], d, t, r, k);
}

/* dx from dk, with dr as scratch. */
static void dynamics_back(const double *const par[], int64_t d, double t, const double x[], const double r[],
                          const double dk[], double dr[], double dx[], double *const dpar[])
{
    affine_back(par[W2], d, t, r, dk, dpar[W2], dpar[B2], dr);
    for (int64_t i = 0; i < d; i++)
        dr[i] = r[i] > 0 ? dr[i] : 0;
    affine_back(par[W1], d, t, x, dr, dpar[W1], dpar[B1], dx);
}

/* ---- one step of a solver and its adjoint ---- */

enum { STAGES = 4 };

/* Stage j stands at t + c[j] h and x + h sum_l a[j][l] k[l]; the step ends at x + h sum_j b[j] k[j]. */
typedef struct tableau {
    int    stages;
    double c[STAGES], a[STAGES][STAGES], b[STAGES];
} tableau;

static const tableau tableaus[] = {
    [RK4_38]      = {4,
                     {0, 1 / 3.0, 2 / 3.0, 1},
                     {{0}, {1 / 3.0}, {-1 / 3.0, 1}, {1, -1, 1}},
                     {0.125, 0.375, 0.375, 0.125}},
    [RK4_CLASSIC] = {4,
                     {0, 0.5, 0.5, 1},
                     {{0}, {0.5}, {0, 0.5}, {0, 0, 1}},
                     {1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0}},
    [MIDPOINT]    = {2, {0, 0.5}, {{0}, {0.5}}, {0, 1}},
    [EULER]       = {1, {0}, {{0}}, {1}},
};

/* Vectors that a lane works with. */
typedef struct desk {
    double *x[STAGES], *r[STAGES], *k[STAGES], *dx[STAGES]; /* of each stage */
    double *dk, *dr, *dp;                                   /* of the stage, and of the state at hand */
    double *full, *half, *end;                              /* of a step and its two halves */
    double *path; /* [substeps, dim]: states between two positions */
} desk;

enum { VECTORS = 4 * STAGES + 6 };

static int64_t scratch(const pe_problem *p)
{
    return (VECTORS + p->set[SUBSTEPS].integer) * p->set[DIM].integer;
}

static desk desk_of(double *memory, int64_t d)
{
    desk k;
    for (int j = 0; j < STAGES; j++, memory += 4 * d) {
        k.x[j]  = memory;
        k.r[j]  = memory + d;
        k.k[j]  = memory + 2 * d;
        k.dx[j] = memory + 3 * d;
    }
    double **const rest[] = {&k.dk, &k.dr, &k.dp, &k.full, &k.half, &k.end, &k.path};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        *rest[i] = memory + (int64_t)i * d;
    return k;
}

static void copy(double to[], const double x[], int64_t d)
{
    memcpy(to, x, (size_t)d * sizeof *to);
}

/* The stages of the step of length h from p at time t. */
static void fill_stages(const tableau *s, const double *const par[], int64_t d, double t, double h,
                        const double p[], const desk *k)
{
    for (int j = 0; j < s->stages; j++) {
        copy(k->x[j], p, d);
        for (int l = 0; l < j; l++)
            add_scaled(k->x[j], h * s->a[j][l], k->k[l], d);
        dynamics(par, d, t + s->c[j] * h, k->x[j], k->r[j], k->k[j]);
    }
}

/* to = where the step ends; to may be p. */
static void step(const tableau *s, const double *const par[], int64_t d, double t, double h, const double p[],
                 const desk *k, double to[])
{
    fill_stages(s, par, d, t, h, p, k);
    memmove(to, p, (size_t)d * sizeof *to);
    for (int j = 0; j < s->stages; j++)
        add_scaled(to, h * s->b[j], k->k[j], d);
}

/* dp from the cotangent of the end of the step to that of its start p, from the last stage to the first. */
static void step_back(const tableau *s, const double *const par[], int64_t d, double t, double h,
                      const double p[], const desk *k, double dp[], double *const dpar[])
{
    fill_stages(s, par, d, t, h, p, k);
    for (int j = s->stages - 1; j >= 0; j--) {
        memset(k->dk, 0, (size_t)d * sizeof *k->dk);
        add_scaled(k->dk, h * s->b[j], dp, d);
        for (int l = j + 1; l < s->stages; l++)
            add_scaled(k->dk, h * s->a[l][j], k->dx[l], d);
        dynamics_back(par, d, t + s->c[j] * h, k->x[j], k->r[j], k->dk, k->dr, k->dx[j], dpar);
    }
    for (int j = 0; j < s->stages; j++)
        add_scaled(dp, 1, k->dx[j], d);
}

/* ---- from position to position ---- */

static double largest(const double x[], int64_t d)
{
    double most = 0;
    for (int64_t i = 0; i < d; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* One step of length h and the same in two halves; the weighted difference, which takes their leading errors away, is
   left in k->end, an estimate of the error returned. */
static double try_step(const double *const par[], int64_t d, double t, double h, const double p[],
                       const desk *k)
{
    double error = 0;
    step(&tableaus[RK4_CLASSIC], par, d, t, h, p, k, k->full);
    step(&tableaus[RK4_CLASSIC], par, d, t, h / 2, p, k, k->half);
    step(&tableaus[RK4_CLASSIC], par, d, t + h / 2, h / 2, k->half, k, k->half);
    for (int64_t i = 0; i < d; i++) {
        const double gap = (k->half[i] - k->full[i]) / 15; /* 2^4 - 1 */
        k->end[i]        = k->half[i] + gap;
        error            = fmax(error, fabs(gap));
    }
    return error;
}

#define STEP_ERROR 1e-14 /* of a step, relative to the state where that is above 1 */

/* The equation's own path from position i to i + 1. Times are counted in ticks, 2^-40 of dt, and steps are powers of two of
   them at multiples of themselves: so the last one ends on the position. A state that has left the numbers is let go. */
static void follow(const pe_problem *p, const double *const par[], int64_t i, const desk *k, double y[])
{
    const int64_t d = p->set[DIM].integer, whole = INT64_C(1) << 40;
    const double  dt   = p->set[DT].real;
    int64_t       size = whole;
    for (int64_t at = 0; at < whole;) {
        const double t     = ((double)i + (double)at / (double)whole) * dt,
                     h     = dt * ((double)size / (double)whole);
        const double error = try_step(par, d, t, h, y, k), allowed = STEP_ERROR * fmax(1, largest(y, d));
        if (error > allowed && size > 1) {
            size /= 2;
            continue;
        }
        copy(y, k->end, d);
        at += size;
        if (error * 32 < allowed && at % (2 * size) == 0 &&
            2 * size <= whole - at) /* the error grows by 2^5 */
            size *= 2;
    }
}

/* `substeps` steps from position i, from y to y; path, if there is one, keeps where each began. */
static void march(const pe_problem *p, const double *const par[], int64_t i, const desk *k, double y[],
                  double *path)
{
    const int64_t d = p->set[DIM].integer, m = p->set[SUBSTEPS].integer;
    const double  dt = p->set[DT].real, h = dt / (double)m;
    for (int64_t s = 0; s < m; s++) {
        if (path)
            copy(path + s * d, y, d);
        step(&tableaus[p->set[SOLVER].integer], par, d, (double)i * dt + (double)s * h, h, y, k, y);
    }
}

static void make(const pe_problem *p, const double *const par[], int64_t lane, int64_t n, double table[],
                 double memory[])
{
    const int64_t d = p->set[DIM].integer, row = width(p);
    const desk    k = desk_of(memory, d);
    for (int64_t i = 0; i < n; i++) {
        double *y = table + i * row + lane * d;
        if (i == 0) {
            copy(y, par[Y0] + lane * d, d);
            continue;
        }
        copy(y, y - row, d);
        if (p->set[SOLVER].integer == EXACT)
            follow(p, par, i - 1, &k, y);
        else
            march(p, par, i - 1, &k, y, NULL);
    }
}

/* dp runs from the last position to the first, taking up the cotangent of each. */
static void make_back(const pe_problem *p, const double *const par[], int64_t lane, int64_t n,
                      const double table[], const double drows[], double memory[], double *const dpar[])
{
    const int64_t d = p->set[DIM].integer, m = p->set[SUBSTEPS].integer, row = width(p);
    const double  dt = p->set[DT].real, h = dt / (double)m;
    const desk    k = desk_of(memory, d);
    memset(k.dp, 0, (size_t)d * sizeof *k.dp);
    for (int64_t i = n - 1; i >= 0; i--) {
        add_scaled(k.dp, 1, drows + i * row + lane * d, d);
        if (i == 0)
            break;
        copy(k.end, table + (i - 1) * row + lane * d, d);
        march(p, par, i - 1, &k, k.end, k.path);
        for (int64_t s = m - 1; s >= 0; s--)
            step_back(&tableaus[p->set[SOLVER].integer], par, d, (double)(i - 1) * dt + (double)s * h, h,
                      k.path + s * d, &k, k.dp, dpar);
    }
    if (dpar[Y0] && n > 0)
        add_scaled(dpar[Y0] + lane * d, 1, k.dp, d);
}

/* The two layers and the maximum between them. */
static double evaluation(double d)
{
    return 2 * (2 * d * (d + 1)) + d;
}

/* One step of a solver: its stages, and the sums of their slopes that begin and end them. */
static double step_operations(const tableau *s, double d)
{
    double all = s->stages * evaluation(d);
    for (int j = 0; j < s->stages; j++) {
        all += s->b[j] != 0 ? 2 * d : 0;
        for (int l = 0; l < j; l++)
            all += s->a[j][l] != 0 ? 2 * d : 0;
    }
    return all;
}

/* From each position to the next, all states. solver=exact: three steps and their difference, which is the least. */
static double operations(const pe_problem *p)
{
    const double d = p->set[DIM].real, steps = (double)(p->Lq - 1) * (double)states(p);
    const int    is_exact = p->set[SOLVER].integer == EXACT;
    if (is_exact)
        return steps * (3 * step_operations(&tableaus[RK4_CLASSIC], d) + 3 * d);
    return steps * p->set[SUBSTEPS].real * step_operations(&tableaus[p->set[SOLVER].integer], d);
}

const pe_encoding pe_floater = {
    .info =
        {
            .name          = "floater",
            .place         = POSENC_INPUT,
            .title         = "positions as the path of a learned differential equation",
            .paper         = "arXiv:2003.09229",
            .models        = "research",
            .pictures      = "heatmap,curves,similarity",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .params        = params,
            .param_count   = PE_ROWS(params),
        },
    .model       = "positions=8*L",
    .examples    = examples,
    .operations  = operations,
    .check       = check,
    .init        = init,
    .trains      = trains,
    .width       = width,
    .accept      = accept,
    .sequence    = {positions, states, scratch, make, make_back},
    .no_gradient = no_gradient,
};
