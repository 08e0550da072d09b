/* SPDX-License-Identifier: MIT */
/*
 * FLOATER: positions as the path of an ordinary differential equation
 *
 * Place    input: y = x + p(t),  t = position * dt
 * Formula  dp/dt = h(t, p) = W2 [max(W1 [p ; t] + b1, 0) ; t] + b2,   p(0) = y0
 * Learns   W1, W2 [dim, dim+1], b1, b2 [dim]: the same for every position and state; y0 [states, dim]
 * Source   Liu, Yu, Dhillon, Hsieh 2020, arXiv:2003.09229; xuanqing94/FLOATER, flow_func_linear
 *
 * Parameters do not grow with the length, and rows exist for positions that training never saw. A row has
 * `states` vectors that share the dynamics but not the initial value: one per block of a model, or per q, k
 * and v of a block.
 *
 * Solvers land on positions: `substeps` steps of dt / substeps each, stages at t + c * step. torchdiffeq's
 * "rk4", which the authors ran, is the 3/8 rule, not the classical tableau. Their fork of it interpolates
 * between steps from a state it has overwritten, so a position may come out one step late; that is not
 * repeated here. The gradient is exact for the discrete solver: p is saved at positions, the steps between
 * two of them are computed again, and differentiated stage by stage, the last one first. (The continuous
 * adjoint is not exact: the kinks of max(., 0) limit the order of any solver, and it was seen 3 % off.)
 * solver=exact follows the equation itself: steps are halved until a step and its two halves agree to 1e-14,
 * at a kink down to some 1e-7 of dt, and doubled again after it. Where that takes more than 2^16 steps
 * between two positions (2^12 where states are many or wide), the equation is too steep to be followed and
 * the path is NaN from there on. It has no gradient.
 */
#include "encodings/encoding.h"

enum { DIM, STATES, POSITIONS, DT, SUBSTEPS, SOLVER, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"dim", "integer", "d_model", "1..65536", "width of a state"},
    {"states", "integer", "1", "1..65536", "vectors per row, each with an initial value of its own"},
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
    {"W1", "dim,dim+1", "normal(0, sigma)", "first layer; the last column multiplies the time", 1},
    {"b1", "dim", "zeros", "its bias", 1},
    {"W2", "dim,dim+1", "normal(0, sigma)", "second layer; the last column multiplies the time", 1},
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
    return pe_fail(err, POSENC_ERROR_SETTING,
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
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "floater: positions must be whole numbers; its solver stops only at those");
    if (low < 0)
        return pe_fail(err, POSENC_ERROR_RANGE, "floater: position %.0f is negative; positions begin at 0",
                       low);
    if (high >= (double)positions(p))
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "floater: position %.0f is not below positions=%lld; raise that setting, or use "
                       "positions 0 to %lld",
                       high, (long long)positions(p), (long long)positions(p) - 1);
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
    return !no_gradient(set);
}

/* ---- what a group of states works with ---- */

enum { STAGES = 4 };

/*
 * Vectors of a group are matrices [states, wide], a state per row, padded with zeros. The layers are there
 * once more as the products want them: `in` transposed [dim, wide] for the way forward, `out` [dim, wide] for
 * the way back, where dW, dt and db are the sums of the group.
 */
typedef struct layer {
    double *in, *out, *time, *bias, *at; /* time, bias, at [wide]: the last column, b, and b at one time */
    double *dW, *dtime, *dbias;
} layer;

typedef struct work {
    const pe_problem *p;
    pe_product64_fn  *product;
    int64_t           d, wide, states, size; /* size = states * wide */
    layer             first, second;
    double           *x, *r, *k, *dk, *dr, *dx; /* [STAGES, size] of each stage */
    double *y, *dp, *full, *half, *end; /* [size] of the states at hand; of a step and its two halves */
    double *path;                       /* [substeps, size]: states between two positions */
    double  t[STAGES];
} work;

enum { LAYER_ROWS = 3, LAYER_VECTORS = 5, STAGE_VECTORS = 6 * STAGES, STATE_VECTORS = 5 };

static int64_t scratch(const pe_problem *p, int64_t lanes)
{
    const int64_t d = p->set[DIM].integer, wide = pe_padded64(d);
    return 2 * (LAYER_ROWS * d + LAYER_VECTORS) * wide +
           (STAGE_VECTORS + STATE_VECTORS + p->set[SUBSTEPS].integer) * lanes * wide;
}

static double *take(double **memory, int64_t n)
{
    double *from = *memory;
    memset(from, 0, (size_t)n * sizeof *from);
    *memory += n;
    return from;
}

static layer layer_of(const double *W, const double *b, int64_t d, double **memory)
{
    const int64_t wide = pe_padded64(d);
    layer         l    = {.in    = take(memory, d * wide),
                          .out   = take(memory, d * wide),
                          .dW    = take(memory, d * wide),
                          .time  = take(memory, wide),
                          .bias  = take(memory, wide),
                          .at    = take(memory, wide),
                          .dtime = take(memory, wide),
                          .dbias = take(memory, wide)};
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j < d; j++)
            l.in[j * wide + i] = l.out[i * wide + j] = W[i * (d + 1) + j];
        l.time[i] = W[i * (d + 1) + d];
        l.bias[i] = b[i];
    }
    return l;
}

static work work_of(const pe_problem *p, const double *const par[], const pe_lane_group *group,
                    double *memory)
{
    const int64_t d = p->set[DIM].integer, wide = pe_padded64(d), size = group->count * wide;
    work k  = {.p = p, .product = group->product, .d = d, .wide = wide, .states = group->count, .size = size};
    k.first = layer_of(par[W1], par[B1], d, &memory);
    k.second                        = layer_of(par[W2], par[B2], d, &memory);
    double **const         stages[] = {&k.x, &k.r, &k.k, &k.dk, &k.dr, &k.dx},
                   **const once[]   = {&k.y, &k.dp, &k.full, &k.half, &k.end};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        *stages[i] = take(&memory, STAGES * size);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        *once[i] = take(&memory, size);
    k.path = take(&memory, p->set[SUBSTEPS].integer * size);
    return k;
}

static void copy(double to[], const double x[], int64_t n)
{
    memcpy(to, x, (size_t)n * sizeof *to);
}

/* to += factor * x */
static void add_scaled(double *restrict to, double factor, const double *restrict x, int64_t n)
{
    for (int64_t i = 0; factor != 0 && i < n; i++)
        to[i] += factor * x[i];
}

/* Rows of a table's row, which has no padding. */
static void load(const work *k, double to[], const double row[])
{
    for (int64_t s = 0; s < k->states; s++)
        copy(to + s * k->wide, row + s * k->d, k->d);
}

/* ---- the dynamics and their adjoint ---- */

/* y = W [x ; t] + b */
static void affine(const work *k, const layer *l, double t, const double x[], double y[])
{
    for (int64_t i = 0; i < k->wide; i++)
        l->at[i] = l->bias[i] + l->time[i] * t;
    for (int64_t s = 0; s < k->states; s++)
        copy(y + s * k->wide, l->at, k->wide);
    k->product(y, k->wide, x, k->wide, 1, l->in, k->wide, k->states, k->d, k->d, 1);
}

/* k = h(t, x) of stage j; r is what the first layer gives. */
static void dynamics(work *k, int j, double t)
{
    const int64_t at = j * k->size;
    double       *r  = k->r + at;
    k->t[j]          = t;
    affine(k, &k->first, t, k->x + at, r);
    for (int64_t i = 0; i < k->size; i++)
        r[i] = r[i] < 0 ? 0 : r[i]; /* NaN stays NaN */
    affine(k, &k->second, t, r, k->k + at);
}

/* dx from dk of stage j, by way of dr. */
static void dynamics_back(const work *k, int j)
{
    const int64_t at = j * k->size;
    double       *dr = k->dr + at;
    k->product(dr, k->wide, k->dk + at, k->wide, 1, k->second.out, k->wide, k->states, k->d, k->d, 0);
    for (int64_t i = 0; i < k->size; i++)
        dr[i] = k->r[at + i] > 0 ? dr[i] : 0;
    k->product(k->dx + at, k->wide, dr, k->wide, 1, k->first.out, k->wide, k->states, k->d, k->d, 0);
}

/* dW += dy^T x, dt += t dy, db += dy, over all states and stages of a step at once. */
static void sum_layer(const work *k, const layer *l, int stages, const double x[], const double dy[])
{
    const int64_t rows = stages * k->states;
    k->product(l->dW, k->wide, dy, 1, k->wide, x, k->wide, k->d, k->d, rows, 1);
    for (int64_t row = 0; row < rows; row++) {
        add_scaled(l->dtime, k->t[row / k->states], dy + row * k->wide, k->wide);
        add_scaled(l->dbias, 1, dy + row * k->wide, k->wide);
    }
}

/* The sums of a layer to its parameters. */
static void add_layer(const work *k, const layer *l, double *dW, double *db)
{
    for (int64_t i = 0; i < k->d; i++) {
        for (int64_t j = 0; dW && j < k->d; j++)
            dW[i * (k->d + 1) + j] += l->dW[i * k->wide + j];
        if (dW)
            dW[i * (k->d + 1) + k->d] += l->dtime[i];
        if (db)
            db[i] += l->dbias[i];
    }
}

/* ---- one step of a solver and its adjoint ---- */

/* Stage j is at t + c[j] h and x + h sum_l a[j][l] k[l]; the step ends at x + h sum_j b[j] k[j]. */
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

/* The stages of the step of length h from y at time t. */
static void fill_stages(const tableau *s, double t, double h, const double y[], work *k)
{
    for (int j = 0; j < s->stages; j++) {
        copy(k->x + j * k->size, y, k->size);
        for (int l = 0; l < j; l++)
            add_scaled(k->x + j * k->size, h * s->a[j][l], k->k + l * k->size, k->size);
        dynamics(k, j, t + s->c[j] * h);
    }
}

/* to = where the step ends; to may be y. */
static void step(const tableau *s, double t, double h, const double y[], work *k, double to[])
{
    fill_stages(s, t, h, y, k);
    memmove(to, y, (size_t)k->size * sizeof *to);
    for (int j = 0; j < s->stages; j++)
        add_scaled(to, h * s->b[j], k->k + j * k->size, k->size);
}

/* dp from the cotangent of the end of the step to that of its start y, from the last stage to the first. */
static void step_back(const tableau *s, double t, double h, const double y[], work *k)
{
    fill_stages(s, t, h, y, k);
    for (int j = s->stages - 1; j >= 0; j--) {
        double *dk = k->dk + j * k->size;
        memset(dk, 0, (size_t)k->size * sizeof *dk);
        add_scaled(dk, h * s->b[j], k->dp, k->size);
        for (int l = j + 1; l < s->stages; l++)
            add_scaled(dk, h * s->a[l][j], k->dx + l * k->size, k->size);
        dynamics_back(k, j);
    }
    for (int j = 0; j < s->stages; j++)
        add_scaled(k->dp, 1, k->dx + j * k->size, k->size);
    sum_layer(k, &k->second, s->stages, k->r, k->dk);
    sum_layer(k, &k->first, s->stages, k->x, k->dr);
}

/* One step of a solver: its stages, and the sums of their slopes that begin and end them. */
static double step_operations(const tableau *s, double d)
{
    double all = s->stages * (2 * (2 * d * (d + 1)) + d); /* the two layers and the maximum between them */
    for (int j = 0; j < s->stages; j++) {
        all += s->b[j] != 0 ? 2 * d : 0;
        for (int l = 0; l < j; l++)
            all += s->a[j][l] != 0 ? 2 * d : 0;
    }
    return all;
}

/* ---- from position to position ---- */

/* One step of length h and the same in two halves; the weighted difference, which takes their leading errors
   away, goes to k->end; an estimate of the error is returned. */
static double try_step(double t, double h, work *k)
{
    double error = 0;
    step(&tableaus[RK4_CLASSIC], t, h, k->y, k, k->full);
    step(&tableaus[RK4_CLASSIC], t, h / 2, k->y, k, k->half);
    step(&tableaus[RK4_CLASSIC], t + h / 2, h / 2, k->half, k, k->half);
    for (int64_t i = 0; i < k->size; i++) {
        const double gap = (k->half[i] - k->full[i]) / 15; /* 2^4 - 1 */
        k->end[i]        = k->half[i] + gap;
        error            = fmax(error, fabs(gap));
    }
    return error;
}

#define STEP_ERROR 1e-14 /* of a step, relative to the state where that is above 1 */

/* How many steps are tried between two positions: seconds for all states, in float64 operations and calls. A
   channel's kink takes some 50. */
static int64_t most_steps(const pe_problem *p)
{
    const double a_step = 3 * step_operations(&tableaus[RK4_CLASSIC], p->set[DIM].real) + 0x1p12;
    return (int64_t)fmin(fmax(0x1p35 / (a_step * (double)states(p)), 0x1p12), 0x1p16);
}

/* The equation's own path from position i to i + 1. Times are counted in ticks, 2^-40 of dt, and steps are
   powers of two of them at multiples of themselves: so the last one ends on the position. A state that is
   no longer finite is not refined. After `most` steps it becomes NaN: a number would be a wrong one. */
static void follow(int64_t i, int64_t most, work *k)
{
    const int64_t whole = INT64_C(1) << 40;
    const double  dt    = k->p->set[DT].real;
    int64_t       size = whole, tried = 0;
    for (int64_t at = 0; at < whole;) {
        if (tried++ == most) {
            for (int64_t x = 0; x < k->size; x++)
                k->y[x] = NAN;
            return;
        }
        const double t       = ((double)i + (double)at / (double)whole) * dt,
                     h       = dt * ((double)size / (double)whole);
        const double error   = try_step(t, h, k);
        double       largest = 1;
        for (int64_t x = 0; x < k->size; x++)
            largest = fmax(largest, fabs(k->y[x]));
        const double allowed = STEP_ERROR * largest;
        if (error > allowed && size > 1) {
            size /= 2;
            continue;
        }
        copy(k->y, k->end, k->size);
        at += size;
        if (error * 32 < allowed && at % (2 * size) == 0 &&
            2 * size <= whole - at) /* the error grows by 2^5 */
            size *= 2;
    }
}

/* `substeps` steps of k->y from position i; path, if there is one, gets where each began. */
static void march(int64_t i, work *k, double *path)
{
    const int64_t m  = k->p->set[SUBSTEPS].integer;
    const double  dt = k->p->set[DT].real, h = dt / (double)m;
    for (int64_t s = 0; s < m; s++) {
        if (path)
            copy(path + s * k->size, k->y, k->size);
        step(&tableaus[k->p->set[SOLVER].integer], (double)i * dt + (double)s * h, h, k->y, k, k->y);
    }
}

static void make_rows(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                      double table[], double memory[])
{
    work          k    = work_of(p, par, group, memory);
    const int64_t most = most_steps(p);
    double       *at   = table + group->first * k.d;
    load(&k, k.y, par[Y0] + group->first * k.d);
    for (int64_t i = 0; i < n && !pe_parallel_is_cancelled(group->team); i++, at += width(p)) {
        if (i > 0 && p->set[SOLVER].integer == EXACT)
            follow(i - 1, most, &k);
        else if (i > 0)
            march(i - 1, &k, NULL);
        for (int64_t s = 0; s < k.states; s++)
            copy(at + s * k.d, k.y + s * k.wide, k.d);
    }
}

/* solver=exact has steps of their own for each state. */
static void make(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                 double table[], double memory[])
{
    const int     one_by_one = p->set[SOLVER].integer == EXACT;
    pe_lane_group one        = {group->first, one_by_one ? 1 : group->count, group->product, group->team};
    for (; one.first < group->first + group->count; one.first += one.count)
        make_rows(p, par, &one, n, table, memory);
}

/* dp runs from the last position to the first, taking up the cotangent of each. */
static void make_back(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                      const double table[], const double drows[], double memory[], double *const dpar[])
{
    const int64_t m  = p->set[SUBSTEPS].integer;
    const double  dt = p->set[DT].real, h = dt / (double)m;
    work          k = work_of(p, par, group, memory);
    for (int64_t i = n - 1; i >= 0 && !pe_parallel_is_cancelled(group->team); i--) {
        const int64_t at = i * width(p) + group->first * k.d;
        load(&k, k.end, drows + at);
        add_scaled(k.dp, 1, k.end, k.size);
        if (i == 0)
            break;
        load(&k, k.y, table + at - width(p));
        march(i - 1, &k, k.path);
        for (int64_t s = m - 1; s >= 0; s--)
            step_back(&tableaus[p->set[SOLVER].integer], (double)(i - 1) * dt + (double)s * h, h,
                      k.path + s * k.size, &k);
    }
    add_layer(&k, &k.first, dpar[W1], dpar[B1]);
    add_layer(&k, &k.second, dpar[W2], dpar[B2]);
    for (int64_t s = 0; dpar[Y0] && n > 0 && s < k.states; s++)
        add_scaled(dpar[Y0] + (group->first + s) * k.d, 1, k.dp + s * k.wide, k.d);
}

/* From each position to the next, all states. solver=exact: three steps and their difference, which is the
   least. */
static double count_operations(const pe_problem *p)
{
    const double d = p->set[DIM].real, steps = (double)(p->Lq - 1) * (double)states(p);
    const int    is_exact = p->set[SOLVER].integer == EXACT;
    if (is_exact)
        return steps * (3 * step_operations(&tableaus[RK4_CLASSIC], d) + 3 * d);
    return steps * p->set[SUBSTEPS].real * step_operations(&tableaus[p->set[SOLVER].integer], d);
}

const pe_encoding pe_floater = {
    .info.name      = "floater",
    .info.place     = POSENC_PLACE_INPUT,
    .info.title     = "positions as the path of a learned differential equation",
    .info.formula   = "frac{dp}{dt} = W_2 [ max(W_1 [ p ; t ] + b_1 , 0) ; t ] + b_2 , p(0) = y_0",
    .info.symbols   = "p: the row of position P, at time t = P dt\n"
                      "dp: the change of the row in a short time dt\n"
                      "t: the time, P times the setting dt\n"
                      "W_1: a learned matrix; W_2 is another\n"
                      "b_1: learned numbers; b_2 are others\n"
                      "y_0: the row at position 0, learned",
    .info.paper     = "arXiv:2003.09229",
    .info.models    = "research",
    .info.beyond    = "Computed beyond its length, where nothing holds the path: the model breaks.",
    .info.pictures  = "heatmap,curves,similarity",
    .model          = "positions=8*L",
    .count          = count_operations,
    .check          = check,
    .trains         = trains,
    .input.width    = "states*dim",
    .input.accept   = accept,
    .input.sequence = {positions, states, scratch, make, make_back},
    .no_gradient    = no_gradient,
    PE_TABLES(settings, params, examples),
};
