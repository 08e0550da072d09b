/* SPDX-License-Identifier: MIT */
/*
 * FIRE: a small network of the distance as a share of the query's position
 *
 * Place    score: a bias of distance and query position, by a tile hook
 * Formula  S[h,i,j] = scale * q_i . k_j + b_h(x)          t = P(i) - P(j)
 *          x        = psi(t) / ( psi(max(P(i), limit)) + eps )
 *          psi(y)   = ln(|c y| + 1), limit = |L_mult * init_L|
 *          b_h(x)   = sum_k W2[h,k] * max(0, W1[k,0] * x + b1[k]) + b2[h]
 * Learns   W1 [mlp_width,1], b1 [mlp_width], W2 [H,mlp_width], b2 [H], and two single numbers: c, L_mult
 * Source   Li et al. 2024, arXiv:2310.04418, section 3 and the listing in the appendix
 *
 * In a long text the distance is measured as a share of the way back to the beginning, so that the network
 * only ever sees numbers from 0 to 1, whatever the length; before the threshold it sees the distance itself.
 * The bias depends on P(i) too: moving all positions changes it. The paper is causal; |c y| makes future keys
 * symmetric where no mask hides them. All heads share the network, except its last layer. The bias is not
 * multiplied by the scale.
 *
 * At a kink the gradient is that of the authors' framework: 0 for max(0, 0) and |0|; at P(i) = limit, where
 * max() may take either, half of it goes to each.
 */
#include "encodings/encoding.h"

enum { INIT_L, EPS, MLP_WIDTH }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"init_L", "real", "512", "0..", "query position up to which distances count as they are, at the start"},
    {"eps", "real", "1e-6", "1e-30..", "added to the denominator"},
    {"mlp_width", "integer", "32", "1..1024", "width of the hidden layer"},
    {0},
};
static_assert(PE_ROWS(settings) == MLP_WIDTH + 1, "ORDER settings");

/* PIECES are made of the others: for each head what `pieces` says. */
enum { W1, B1, W2, B2, C, L_MULT, PIECES }; /* ORDER params */
static const posenc_param_info params[] = {
    {"W1", "mlp_width,1", "uniform(-1, 1)", "first layer", 1},
    {"b1", "mlp_width", "uniform(-1, 1)", "its bias", 1},
    {"W2", "H,mlp_width", "uniform(-1/sqrt(mlp_width), 1/sqrt(mlp_width))", "second layer, one row per head",
     1},
    {"b2", "H", "uniform(-1/sqrt(mlp_width), 1/sqrt(mlp_width))", "its bias", 1},
    {"c", "", "0.1", "how soon the logarithm bends", 1},
    {"L_mult", "", "1", "moves the threshold: limit = |L_mult * init_L|", 1},
    {0},
};
static_assert(PE_ROWS(params) == L_MULT + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order; c and L_mult are single numbers, so both
   are 0, psi is 0, and what remains is b_h(0) = sum_k W2[h,k] * b1[k] + b2[h]. */
static const posenc_example examples[] = {
    {"H=1 mlp_width=3", 0, 4, 1, 5, "0*0 + 1*1 + 2*2 + 0"},
    {"H=2 mlp_width=3", 1, 2, 2, 15, "3*0 + 4*1 + 5*2 + 1"},
    {0},
};

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double psi(double c, double y)
{
    return log1p(fabs(c * y));
}

/* d psi / d c, and by symmetry d psi / d y with the arguments exchanged */
static double psi_slope(double c, double y)
{
    return sign(c * y) * y / (1 + fabs(c * y));
}

/* What a query position makes of the denominator. */
typedef struct measure {
    double limit, far, denominator;
} measure;

static measure measure_of(const pe_problem *p, const double *const par[], double position)
{
    const double limit = fabs(par[L_MULT][0] * p->set[INIT_L].real), far = fmax(position, limit);
    return (measure){limit, far, psi(par[C][0], far) + p->set[EPS].real};
}

/*
 * The network as what it is: a line on each piece between its knots. Hidden unit k is 0 on one side of
 * x = -b1[k] / W1[k]; so b_h(x) = base + slope * x with numbers that change from piece to piece, and a pair
 * costs a search among the knots instead of the whole layer. Unit `order[m]` has the m-th knot; piece m ends
 * there, and holds its end. They are found once per run, or once for all runs whose parameters are bound.
 */
enum { MOST_WIDTH = 1024 };

typedef struct pieces {
    int64_t       count;                       /* knots: units whose W1 is not 0 */
    const double *knot, *order, *slope, *base; /* [width], [width], [width+1], [width+1] */
} pieces;

/* Where the knots lie, all heads know alike: their count and those; then the lines of each head. */
static int64_t knots_size(const pe_problem *p)
{
    return 1 + 2 * p->set[MLP_WIDTH].integer;
}

static int64_t lines_size(const pe_problem *p)
{
    return 2 * (p->set[MLP_WIDTH].integer + 1);
}

static int64_t pieces_count(const pe_problem *p)
{
    return knots_size(p) + p->H * lines_size(p);
}

static pieces pieces_of(const pe_problem *p, const double *const par[], int64_t h)
{
    const int64_t width = p->set[MLP_WIDTH].integer;
    const double *at = par[PIECES], *lines = at + knots_size(p) + h * lines_size(p);
    return (pieces){(int64_t)at[0], at + 1, at + 1 + width, lines, lines + width + 1};
}

static int64_t sort_knots(const pe_problem *p, const double *const par[], double knots[], double order[])
{
    int64_t count = 0;
    for (int k = 0; k < (int)p->set[MLP_WIDTH].integer; k++) {
        if (par[W1][k] == 0)
            continue;
        double knot = -par[B1][k] / par[W1][k];
        if (par[W1][k] < 0) /* at its knot a unit is 0: then the next piece holds it */
            knot = nextafter(knot, -INFINITY);
        int64_t m = count++;
        for (; m > 0 && knots[m - 1] > knot; m--) {
            knots[m] = knots[m - 1];
            order[m] = order[m - 1];
        }
        knots[m] = knot;
        order[m] = k;
    }
    return count;
}

/* From far left, where the units with a negative W1 are active, to the right: each knot switches a unit on or
   off. */
static void find_lines(const pe_problem *p, const double *const par[], int64_t h, int64_t count,
                       const double order[], double slope[])
{
    const int64_t width = p->set[MLP_WIDTH].integer;
    const double *w2    = par[W2] + h * width;
    double *const base  = slope + width + 1;
    slope[0]            = 0;
    base[0]             = par[B2][h];
    for (int64_t k = 0; k < width; k++)
        if (par[W1][k] < 0 || (par[W1][k] == 0 && par[B1][k] > 0)) {
            slope[0] += w2[k] * par[W1][k];
            base[0] += w2[k] * par[B1][k];
        }
    for (int64_t m = 0; m < count; m++) {
        const int    k   = (int)order[m];
        const double now = sign(par[W1][k]);
        slope[m + 1]     = slope[m] + now * w2[k] * par[W1][k];
        base[m + 1]      = base[m] + now * w2[k] * par[B1][k];
    }
}

static void make_pieces(const pe_problem *p, const double *const par[], double made[])
{
    double *const order = made + 1 + p->set[MLP_WIDTH].integer, *const lines = made + knots_size(p);
    const int64_t count = sort_knots(p, par, made + 1, order);
    made[0]             = (double)count;
    for (int64_t h = 0; h < p->H; h++)
        find_lines(p, par, h, count, order, lines + h * lines_size(p));
}

/* How many knots lie left of x: its piece, found from that of a neighbour, for shares change little from key
   to key. */
static int64_t piece_of(const pieces *in, int64_t near, double x)
{
    while (near < in->count && in->knot[near] < x)
        near++;
    while (near > 0 && !(in->knot[near - 1] < x))
        near--;
    return near;
}

/*
 * psi of the distances of a block of a tile, and backward its slope by c. Where positions step by one it
 * depends only on c - r, so a block of 64 x 64 pairs costs 127 logarithms; otherwise a row is computed when
 * it is asked for.
 */
enum { BLOCK = 64 };

typedef struct distances {
    const double *q_pos, *k_pos; /* of the block */
    double        bend;          /* c */
    int64_t       rows, cols;
    int           stepping, slopes;
    double        psi[2 * BLOCK], slope[2 * BLOCK];
} distances;

static void measure_distance(distances *to, int64_t at, double t)
{
    to->psi[at] = psi(to->bend, t);
    if (to->slopes)
        to->slope[at] = psi_slope(to->bend, t);
}

static int steps_by_one(const double pos[], int64_t n)
{
    int steps = 1;
    for (int64_t i = 1; i < n; i++)
        steps = steps && pos[i] == pos[0] + (double)i;
    return steps;
}

static void find_distances(distances *to, const double *const par[], const pe_tile *tile, int64_t r0,
                           int64_t c0, int slopes)
{
    to->q_pos    = tile->q_pos + r0;
    to->k_pos    = tile->k_pos + c0;
    to->bend     = par[C][0];
    to->rows     = tile->rows - r0 < BLOCK ? tile->rows - r0 : BLOCK;
    to->cols     = tile->cols - c0 < BLOCK ? tile->cols - c0 : BLOCK;
    to->slopes   = slopes;
    to->stepping = steps_by_one(to->q_pos, to->rows) && steps_by_one(to->k_pos, to->cols);
    for (int64_t x = 0; to->stepping && x < to->rows + to->cols - 1; x++)
        measure_distance(to, x, to->q_pos[to->rows - 1] - to->k_pos[0] - (double)x);
}

/* Where in psi and slope row r of the block begins. */
static int64_t distances_of_row(distances *in, int64_t r)
{
    for (int64_t c = 0; !in->stepping && c < in->cols; c++)
        measure_distance(in, c, in->q_pos[r] - in->k_pos[c]);
    return in->stepping ? in->rows - 1 - r : 0;
}

/* The gradients of a unit, from the sums of db and of db * x over the pairs where it is active. */
static void unit_back(const double *const par[], int64_t at, int64_t k, double db, double db_x,
                      double *const dpar[])
{
    pe_add(dpar, W2, at + k, par[W1][k] * db_x + par[B1][k] * db);
    pe_add(dpar, W1, k, par[W2][at + k] * db_x);
    pe_add(dpar, B1, k, par[W2][at + k] * db);
}

/* db[m] and db_x[m] are the sums of piece m. */
static void network_back(const pe_problem *p, const double *const par[], int64_t h, const pieces *in,
                         const double db[], const double db_x[], double *const dpar[])
{
    const int64_t width = p->set[MLP_WIDTH].integer, at = h * width;
    double        all = 0, all_x = 0, left = 0, left_x = 0;
    for (int64_t m = 0; m <= in->count; m++) {
        all += db[m];
        all_x += db_x[m];
    }
    pe_add(dpar, B2, h, all);
    for (int64_t k = 0; k < width; k++)
        if (par[W1][k] == 0 && par[B1][k] > 0)
            unit_back(par, at, k, all, all_x, dpar);
    for (int64_t m = 0; m < in->count; m++) {
        const int k = (int)in->order[m];
        left += db[m];
        left_x += db_x[m];
        if (par[W1][k] > 0)
            unit_back(par, at, k, all - left, all_x - left_x, dpar);
        else
            unit_back(par, at, k, left, left_x, dpar);
    }
}

static void visit_block(const pe_problem *p, const double *const par[], const pieces *in, distances *d,
                        double x[], int64_t stride)
{
    for (int64_t r = 0; r < d->rows; r++) {
        const double  inverse = 1 / measure_of(p, par, d->q_pos[r]).denominator;
        const double *y       = d->psi + distances_of_row(d, r);
        int64_t       piece   = 0;
        for (int64_t c = 0; c < d->cols; c++) {
            const double share = y[c] * inverse;
            piece              = piece_of(in, piece, share);
            x[r * stride + c]  = in->base[piece] + in->slope[piece] * share;
        }
    }
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    const pieces in = pieces_of(p, par, tile->h);
    distances    d;
    for (int64_t r0 = 0; r0 < tile->rows; r0 += BLOCK)
        for (int64_t c0 = 0; c0 < tile->cols; c0 += BLOCK) {
            find_distances(&d, par, tile, r0, c0, 0);
            visit_block(p, par, &in, &d, x + r0 * tile->stride + c0, tile->stride);
        }
}

/* x = psi(c, t) / n, n = psi(c, far) + eps, far = max(P, |L_mult init_L|). `by_numerator` is the sum over the
   row of dx * dpsi(t)/dc / n, `by_denominator` that of -dx * psi(t) / n^2. */
static void measure_back(const pe_problem *p, const double *const par[], const measure *m, double position,
                         double by_numerator, double by_denominator, double *const dpar[])
{
    const double c = par[C][0], slope = by_denominator * psi_slope(m->far, c); /* of psi(c, far) by far */
    const double share = position < m->limit ? 1 : position == m->limit ? 0.5 : 0;
    pe_add(dpar, C, 0, by_numerator + by_denominator * psi_slope(c, m->far));
    pe_add(dpar, L_MULT, 0, share * slope * sign(par[L_MULT][0] * p->set[INIT_L].real) * p->set[INIT_L].real);
}

/* db[m] and db_x[m] are the sums of piece m. */
static void row_back(const pe_problem *p, const double *const par[], const pieces *in, distances *d,
                     int64_t r, const double dx[], double db[], double db_x[], double *const dpar[])
{
    const measure m         = measure_of(p, par, d->q_pos[r]);
    const double  inverse   = 1 / m.denominator;
    const int64_t at        = distances_of_row(d, r);
    double        numerator = 0, denominator = 0;
    int64_t       piece = 0;
    for (int64_t c = 0; c < d->cols; c++) {
        const double share = d->psi[at + c] * inverse, by_share = dx[c] * share;
        if (dx[c] == 0)
            continue;
        piece = piece_of(in, piece, share);
        db[piece] += dx[c];
        db_x[piece] += by_share;
        numerator += dx[c] * in->slope[piece] * d->slope[at + c];
        denominator -= by_share * in->slope[piece];
    }
    measure_back(p, par, &m, d->q_pos[r], numerator * inverse, denominator * inverse, dpar);
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    const pieces in = pieces_of(p, par, tile->h);
    double       db[MOST_WIDTH + 1], db_x[MOST_WIDTH + 1];
    distances    d;
    memset(db, 0, (size_t)(in.count + 1) * sizeof *db);
    memset(db_x, 0, (size_t)(in.count + 1) * sizeof *db_x);
    for (int64_t r0 = 0; r0 < tile->rows; r0 += BLOCK)
        for (int64_t c0 = 0; c0 < tile->cols; c0 += BLOCK) {
            find_distances(&d, par, tile, r0, c0, 1);
            for (int64_t r = 0; r < d.rows; r++)
                row_back(p, par, &in, &d, r, dx + (r0 + r) * tile->stride + c0, db, db_x, dpar);
        }
    network_back(p, par, tile->h, &in, db, db_x, dpar);
}

const pe_encoding pe_fire = {
    .info.name    = "fire",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "a network of the distance relative to the query's position",
    .info.formula = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + f_h(x) , "
                    "x = frac{ψ(t)}{ψ(max(P(i) , limit)) + ε}\n"
                    "ψ(y) = ln(| c y | + 1) , f_h(x) = W_2 max(W_1 x + b_1 , 0) + b_2",
    .info.symbols = "f_h: a small network, learned, for head h\n"
                    "x: the distance as a share of the query's position\n"
                    "ψ: the logarithm that spreads small distances\n"
                    "c: how fast ψ bends, learned\n"
                    "limit: positions below it count as this one, learned\n"
                    "ε: a small number that keeps the divisor from 0\n"
                    "W_1: learned matrices of the network; W_2 is the other\n"
                    "b_1: learned numbers of the network; b_2 are others\n"
                    "y: what ψ is taken of",
    .info.paper   = "arXiv:2310.04418",
    .info.models  = "",
    .info.beyond =
        "Distances count as shares of the query's position, so long inputs look like trained ones.",
    .info.pictures = "bias,mass",
    .model         = "init_L=L/2",
    /* By the formula, though runs use the network's pieces: for each pair psi and its share (four) and the
       first layer, which the heads share; for each head the second layer. For each query the denominator. */
    .operations     = "Lq*Lk*(4+3*mlp_width+H*2*mlp_width)+5*Lq",
    .attention.hook = {.visit = visit, .visit_back = visit_back, .learns = (1 << PIECES) - 1},
    /* gradients go to the parameters themselves */
    .attention.derived = pieces_count,
    .attention.derive  = make_pieces,
    PE_TABLES(settings, params, examples),
};
