/* SPDX-License-Identifier: MIT */
/*
 * TUPE: products of positions with positions, by projections of their own; the class token is an exception
 *
 * Place    score: queries and keys get further channels; with relative=yes a bias by distance too
 * Formula  S[h,i,j] = scale * ( q_i . k_j + e[h,i,j] ) [ + table[bucket(i,j),h] ]        scale = 1/sqrt(2 D)
 *          e = (p_i . Uq_h + bq_h) . (p_j . Uk_h + bk_h), except theta1_h where P(i) = 0,
 *          else theta2_h where P(j) = 0
 *          p_i = LayerNorm(pos[P(i) + 1]), theta1 = e of row 0 with itself, theta2 = e of row 1 with itself
 *          bucket = that of T5 for P(j) - P(i), except cls_to_others where P(i) = 0,
 *          else others_to_cls where P(j) = 0
 * Learns   pos [rows,d_model], ln_w, ln_b [d_model], Uq [H*D,d_model], bq [H*D], Uk [G*D,d_model], bk [G*D];
 *          relative=yes: table [num_buckets+1,H]
 * Source   Ke, He, Liu 2021, arXiv:2006.15595; guolinke/TUPE, fairseq/modules/transformer_sentence_encoder.py
 *
 * The word and its place are not added: each is multiplied with its like, so the sum of both products is
 * scaled as one of 2 D channels. That is done here to the letter: a query is extended by its position's
 * projection, a key by its own, and the engine sees a head of 2 D channels. The class token is extended by
 * zeros, and a hook adds what its pairs have instead: theta, made once per run, and the bucket.
 *
 * Token t has row t + 1: rows 0 and 1 make the two numbers of the class token. (So row 1 serves theta2 and
 * the token at 0, whose own products are overridden; that is the authors' code.) cls=no: no token is special,
 * and token t still has row t + 1. The class token is the one at position 0, whatever chunk of the queries a
 * run brings.
 *
 * The bias is not scaled. The bucket `num_buckets/2` is one that T5 never gives. Projections and table are
 * shared by all layers of the authors' model, which makes the positional products once; here they cost D
 * channels more per head. The projections depend only on positions, so that a run makes them once for all
 * items of its batch.
 */
#include "encodings/encoding.h"

#include "base/moments.h"

enum { RELATIVE, NUM_BUCKETS, MAX_DISTANCE, CLS, CLS_BUCKETS, TABLE_ROWS, EPS, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"relative", "flag", "no", "yes|no", "TUPE-R: a bias by T5's buckets as well; no: TUPE-A"},
    {"num_buckets", "integer", "32", "4..1048576",
     "relative=yes: buckets of distances, both directions together"},
    {"max_distance", "integer", "128", "2..1048576", "relative=yes: distances beyond share the last bucket"},
    {"cls", "flag", "yes", "yes|no", "the token at position 0 is the class token"},
    {"cls_buckets", "map", "others_to_cls=num_buckets:cls_to_others=num_buckets/2",
     "others_to_cls|cls_to_others", "relative=yes: the buckets of pairs with the class token"},
    {"rows", "integer", "L+1", "2..", "rows of pos: one more than positions"},
    {"eps", "real", "1e-5", "0<..", "added to the variance in the normalisation"},
    {"sigma", "real", "0.02", "0..", "standard deviation of initial rows and projections"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { OTHERS_TO_CLS, CLS_TO_OTHERS }; /* ORDER cls_buckets */

/* THETAS are made of the others: theta1 and theta2 of each head [2,H]. */
enum { POS, LN_W, LN_B, UQ, BQ, UK, BK, TABLE, THETAS }; /* ORDER params */
static const posenc_param_info params[] = {
    {"pos", "rows,d_model", "normal(0, sigma)", "a vector per position; the token at t has row t + 1", 1},
    {"ln_w", "d_model", "ones", "weight of the normalisation", 1},
    {"ln_b", "d_model", "zeros", "bias of the normalisation", 1},
    {"Uq", "H*D,d_model", "normal(0, sigma)", "projects positions of queries, head h to channels hD ..", 1},
    {"bq", "H*D", "zeros", "its bias", 1},
    {"Uk", "G*D,d_model", "normal(0, sigma)", "projects positions of keys", 1},
    {"bk", "G*D", "zeros", "its bias", 1},
    {"table", "num_buckets+1,H", "normal(0, sigma)",
     "what a bucket adds to the scores of a head; relative=yes", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order. A model of one channel is normalised to
   ln_b = 0, so the products are those of bq and bk. */
static const posenc_example examples[] = {
    {"H=1 D=2 d_model=1 L=4 cls=no", 0, 2, 1, 0.5, "(0,1).(0,1) / sqrt(4)"},
    {"H=2 D=2 d_model=1 L=4", 1, 3, 2, 6.5, "(2,3).(2,3) / sqrt(4)"},
    {"H=1 D=2 d_model=1 L=4 relative=yes num_buckets=8 max_distance=12", 0, 0, 3, 4.5, "0.5 + bucket 4"},
    {"H=1 D=2 d_model=1 L=4 relative=yes num_buckets=8 max_distance=12", 0, 3, 0, 8.5, "0.5 + bucket 8"},
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
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "tupe: num_buckets=%lld must be even and max_distance=%lld above a quarter of it",
                       (long long)buckets, (long long)p->set[MAX_DISTANCE].integer);
    for (int i = 0; i < p->set[CLS_BUCKETS].count; i++)
        if (p->set[CLS_BUCKETS].items[i] > buckets)
            return pe_fail(err, POSENC_ERROR_SETTING, "tupe: cls_buckets has bucket %lld; the last is %lld",
                           (long long)p->set[CLS_BUCKETS].items[i], (long long)buckets);
    return POSENC_OK;
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const double low = fmin(span->q_low, span->k_low), high = fmax(span->q_high, span->k_high);
    const double last = (double)p->set[TABLE_ROWS].integer - 2;
    if (span->whole && low >= 0 && high <= last)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
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

/* Channels of the model, channels of a head and positions at a time, since rooms have no memory of their
   own. */
enum { BLOCK = 64 };

static int64_t block_width(const pe_problem *p, int64_t m0)
{
    return p->d_model - m0 < BLOCK ? p->d_model - m0 : BLOCK;
}

/* Some of the channels of a head: d0 .. d0+n-1. */
typedef struct channels {
    int64_t d0, n;
} channels;

static channels next_channels(const pe_problem *p, int64_t d0)
{
    return (channels){d0, p->D - d0 < BLOCK ? p->D - d0 : BLOCK};
}

/* Number of channel c.d0 of a head among the rows of U. */
static int64_t first_row(const pe_problem *p, int64_t head, channels c)
{
    return head * p->D + c.d0;
}

/* Rows of up to BLOCK positions. */
typedef struct places {
    int64_t    n;
    int64_t    at[BLOCK]; /* where their rows of pos begin */
    pe_moments of[BLOCK];
    double     normal[BLOCK][BLOCK]; /* some channels of each, normalised */
} places;

static int64_t row_at(double pos)
{
    return (int64_t)pos + 1;
}

/* A row at a time, some channels at a time: sums of what `mean` is taken from, or of its square. */
static double mean_of(const pe_problem *p, const double *const par[], int64_t at, double mean, int squared)
{
    double x[BLOCK], sum = 0;
    for (int64_t m0 = 0; m0 < p->d_model; m0 += BLOCK) {
        const int64_t width = block_width(p, m0);
        pe_read(p, par, POS, at + m0, width, x);
        for (int64_t i = 0; i < width; i++)
            sum += (squared ? (x[i] - mean) * (x[i] - mean) : x[i]) / (double)p->d_model;
    }
    return sum;
}

static void find_places(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                        places *at)
{
    at->n = n;
    for (int64_t s = 0; s < n; s++) {
        at->at[s]         = row_at(pos[s]) * p->d_model;
        const double mean = mean_of(p, par, at->at[s], 0, 0);
        at->of[s] = (pe_moments){mean, 1 / sqrt(mean_of(p, par, at->at[s], mean, 1) + p->set[EPS].real)};
    }
}

/* Channels m0 .. of the normalised rows. */
static void normalise(const pe_problem *p, const double *const par[], int64_t m0, places *at)
{
    const int64_t width = block_width(p, m0);
    double        x[BLOCK];
    for (int64_t s = 0; s < at->n; s++) {
        pe_read(p, par, POS, at->at[s] + m0, width, x);
        for (int64_t i = 0; i < width; i++)
            at->normal[s][i] =
                (x[i] - at->of[s].mean) * at->of[s].inverse * par[LN_W][m0 + i] + par[LN_B][m0 + i];
    }
}

/* Some channels of n positions, at most BLOCK, to `to`, rows `step` apart. */
static void project(const pe_problem *p, const double *const par[], projection by, int64_t head,
                    const double pos[], int64_t n, channels c, double to[], int64_t step)
{
    const int64_t U = first_row(p, head, c) * p->d_model;
    const double *b = par[by.bias] + first_row(p, head, c);
    double        row[BLOCK];
    places        at;
    double        transposed[BLOCK][BLOCK];
    find_places(p, par, pos, n, &at);
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < c.n; d++)
            to[s * step + d] = b[d];
    for (int64_t m0 = 0; m0 < p->d_model; m0 += BLOCK) {
        const int64_t width = block_width(p, m0);
        normalise(p, par, m0, &at);
        for (int64_t d = 0; d < c.n; d++) {
            pe_read(p, par, by.U, U + d * p->d_model + m0, width, row);
            for (int64_t i = 0; i < width; i++)
                transposed[i][d] = row[i];
        }
        pe_multiply64(p, to, step, at.normal[0], BLOCK, 1, transposed[0], BLOCK, n, c.n, width);
    }
}

/* Cotangents of projected channels, rows `step` apart. */
typedef struct cotangents {
    const double *at;
    int64_t       step;
} cotangents;

/* With y = (x - mean) inverse: dx = inverse (g - mean(g) - y mean(g y)), g = ln_w d(normalised row). The
   first pass finds both means. */
static void normalise_back(const pe_problem *p, const double *const par[], const double *U,
                           const double pos[], const places *at, channels c, cotangents dto,
                           double *const dpar[])
{
    const int64_t n = p->d_model;
    double        dnormal[BLOCK][BLOCK], mean[BLOCK] = {0}, along[BLOCK] = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t m0 = 0; m0 < n; m0 += BLOCK) {
            const int64_t width = block_width(p, m0);
            memset(dnormal, 0, sizeof dnormal);
            pe_multiply64(p, dnormal[0], BLOCK, dto.at, dto.step, 1, U + m0, n, at->n, width, c.n);
            for (int64_t s = 0; s < at->n; s++)
                for (int64_t i = 0; i < width; i++) {
                    const int64_t m = m0 + i;
                    const double  y = (par[POS][at->at[s] + m] - at->of[s].mean) * at->of[s].inverse,
                                 g  = par[LN_W][m] * dnormal[s][i];
                    if (pass == 0) {
                        mean[s] += g / (double)n;
                        along[s] += g * y / (double)n;
                        continue;
                    }
                    pe_add(dpar, LN_W, m, dnormal[s][i] * y);
                    pe_add(dpar, LN_B, m, dnormal[s][i]);
                    pe_add(dpar, POS, row_at(pos[s]) * n + m,
                           at->of[s].inverse * (g - mean[s] - y * along[s]));
                }
        }
}

/* The adjoint of project. */
static void project_back(const pe_problem *p, const double *const par[], projection by, int64_t head,
                         const double pos[], int64_t n, channels c, cotangents dto, double *const dpar[])
{
    const int64_t u0 = first_row(p, head, c), d_model = p->d_model;
    places        at;
    find_places(p, par, pos, n, &at);
    for (int64_t m0 = 0; dpar[by.U] && m0 < d_model; m0 += BLOCK) {
        normalise(p, par, m0, &at);
        pe_multiply64(p, dpar[by.U] + u0 * d_model + m0, d_model, dto.at, 1, dto.step, at.normal[0], BLOCK,
                      c.n, block_width(p, m0), n);
    }
    for (int64_t s = 0; dpar[by.bias] && s < n; s++)
        for (int64_t d = 0; d < c.n; d++)
            dpar[by.bias][u0 + d] += dto.at[s * dto.step + d];
    if (dpar[POS] || dpar[LN_W] || dpar[LN_B])
        normalise_back(p, par, par[by.U] + u0 * d_model, pos, &at, c, dto, dpar);
}

/* ---- theta: what the class token gets, from rows 0 and 1; once per run ---- */

static int64_t key_head(const pe_problem *p, int64_t h)
{
    return h / (p->H / p->G);
}

/* Both projections of row 0 or 1, some channels of them. */
static void project_both(const pe_problem *p, const double *const par[], int64_t h, int64_t row, channels c,
                         double a[BLOCK], double b[BLOCK])
{
    const double pos = (double)row - 1;
    project(p, par, projection_of(PE_QUERIES), h, &pos, 1, c, a, BLOCK);
    project(p, par, projection_of(PE_KEYS), key_head(p, h), &pos, 1, c, b, BLOCK);
}

static int64_t theta_count(const pe_problem *p)
{
    return 2 * p->H;
}

static void make_thetas(const pe_problem *p, const double *const par[], double thetas[])
{
    double a[BLOCK], b[BLOCK];
    for (int64_t x = 0; x < 2 * p->H; x++) {
        thetas[x] = 0;
        for (int64_t d0 = 0; d0 < p->D; d0 += BLOCK) {
            const channels c = next_channels(p, d0);
            project_both(p, par, x % p->H, x / p->H, c, a, b);
            for (int64_t d = 0; d < c.n; d++)
                thetas[x] += a[d] * b[d];
        }
    }
}

/* theta1 is added to a whole row of scores, which the softmax does not see: nobody gives it a cotangent. */
static void make_thetas_back(const pe_problem *p, const double *const par[], const double thetas[],
                             double dthetas[], double *const dpar[])
{
    const double pos = 0;
    double       a[BLOCK], b[BLOCK], da[BLOCK], db[BLOCK];
    for (int64_t h = 0; h < p->H; h++)
        for (int64_t d0 = 0; d0 < p->D; d0 += BLOCK) {
            const channels c = next_channels(p, d0);
            project_both(p, par, h, 1, c, a, b);
            for (int64_t d = 0; d < c.n; d++) {
                da[d] = dthetas[p->H + h] * b[d];
                db[d] = dthetas[p->H + h] * a[d];
            }
            project_back(p, par, projection_of(PE_QUERIES), h, &pos, 1, c, (cotangents){da, BLOCK}, dpar);
            project_back(p, par, projection_of(PE_KEYS), key_head(p, h), &pos, 1, c, (cotangents){db, BLOCK},
                         dpar);
        }
}

/* ---- the longer queries and keys ---- */

static int64_t width(const pe_problem *p)
{
    return 2 * p->D;
}

/* How many positions from s on go together: none of them the class token, which has no projection. */
static int64_t run_from(const pe_problem *p, const double pos[], int64_t n, int64_t s)
{
    int64_t end = s;
    while (end < n && end - s < BLOCK && !is_cls(p, pos[end]))
        end++;
    return end - s;
}

/* The further channels of n positions to `to`, rows `step` apart. */
static void project_places(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                           const double pos[], int64_t n, double to[], int64_t step)
{
    for (int64_t s = 0, m; s < n; s += m ? m : 1) {
        m = run_from(p, pos, n, s);
        if (!m)
            memset(to + s * step, 0, (size_t)p->D * sizeof *to);
        for (int64_t d0 = 0; m && d0 < p->D; d0 += BLOCK)
            project(p, par, projection_of(side), h, pos + s, m, next_channels(p, d0), to + s * step + d0,
                    step);
    }
}

static void project_places_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                                const double pos[], int64_t n, const double dto[], int64_t step,
                                double *const dpar[])
{
    for (int64_t s = 0, m; s < n; s += m ? m : 1) {
        m = run_from(p, pos, n, s);
        for (int64_t d0 = 0; m && d0 < p->D; d0 += BLOCK)
            project_back(p, par, projection_of(side), h, pos + s, m, next_channels(p, d0),
                         (cotangents){dto + s * step + d0, step}, dpar);
    }
}

static void extend(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                   const double pos[], int64_t n, const double x[], double y[])
{
    for (int64_t s = 0; s < n; s++)
        memcpy(y + s * width(p), x + s * p->D, (size_t)p->D * sizeof *y);
    project_places(p, par, side, h, pos, n, y + p->D, width(p));
}

static void extend_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                        const double pos[], int64_t n, const double x[], const double dy[], double dx[],
                        double *const dpar[])
{
    for (int64_t s = 0; s < n; s++)
        memcpy(dx + s * p->D, dy + s * width(p), (size_t)p->D * sizeof *dx);
    project_places_back(p, par, side, h, pos, n, dy + p->D, width(p), dpar);
}

static void by_position(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                        const double pos[], int64_t n, double to[])
{
    project_places(p, par, side, h, pos, n, to, p->D);
}

static void by_position_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                             const double pos[], int64_t n, const double dto[], double *const dpar[])
{
    project_places_back(p, par, side, h, pos, n, dto, p->D, dpar);
}

/* ---- relative=yes: a bias by distance; pairs with the class token have theta and a bucket instead ---- */

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] =
            p->H * pe_index_t5(-(t0 + i), p->set[NUM_BUCKETS].integer, p->set[MAX_DISTANCE].integer, 1) + h;
}

/* What a pair with the class token has: which theta and, with relative=yes, which bucket. The row's rule wins
   where both are it. */
static int64_t which_theta(const pe_problem *p, const pe_tile *tile, int64_t r)
{
    return (is_cls(p, tile->q_pos[r]) ? 0 : p->H) + tile->h;
}

static int64_t bin_at(const pe_problem *p, const pe_tile *tile, int64_t r)
{
    return p->set[CLS_BUCKETS].items[is_cls(p, tile->q_pos[r]) ? CLS_TO_OTHERS : OTHERS_TO_CLS] * p->H +
           tile->h;
}

static int has_cls(const pe_problem *p, const pe_tile *tile, int64_t r, int64_t c)
{
    return is_cls(p, tile->q_pos[r]) || is_cls(p, tile->k_pos[c]);
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    for (int64_t r = 0; r < tile->rows; r++) {
        const double own = p->scale * par[THETAS][which_theta(p, tile, r)] +
                           (is_relative(p->set) ? par[TABLE][bin_at(p, tile, r)] : 0);
        for (int64_t c = 0; c < tile->cols; c++)
            x[r * tile->stride + c] = has_cls(p, tile, r, c) ? own : 0;
    }
}

/* The class token's own row learns nothing: it has one number for all keys. */
static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++) {
            if (is_cls(p, tile->q_pos[r]) || !has_cls(p, tile, r, c))
                continue;
            pe_add(dpar, THETAS, which_theta(p, tile, r), p->scale * dx[r * tile->stride + c]);
            if (is_relative(p->set) && dpar[TABLE])
                dpar[TABLE][bin_at(p, tile, r)] += dx[r * tile->stride + c];
        }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale   = 1.0 / sqrt(2 * (double)p->D);
    s->prepare = (pe_preparation){.fill             = extend,
                                  .fold             = extend_back,
                                  .by_position      = by_position,
                                  .by_position_back = by_position_back,
                                  .width            = width(p)};
    if (is_relative(p->set))
        s->bias = (pe_by_distance){.index = index_of, .param = TABLE};
    if (p->set[CLS].integer)
        s->hook = (pe_tile_hook){.visit      = visit,
                                 .visit_back = visit_back,
                                 .is_special = is_cls,
                                 .learns     = 1 << TABLE | 1 << THETAS};
}

const pe_encoding pe_tupe = {
    .info.name    = "tupe",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "positions meet positions through their own projections",
    .info.formula = "S_{h,i,j} = frac{q_i · k_j + (U_q p_i) · (U_k p_j)}{sqrt{2 D}}",
    .info.symbols = "U_q: the learned projection of positions to queries\n"
                    "U_k: the learned projection of positions to keys\n"
                    "p_i: the learned vector of position i, normalised",
    .info.paper   = "arXiv:2006.15595",
    .info.models  = "TUPE-A, TUPE-R",
    .info.beyond =
        "Positions are a learned table, which ends; with relative=yes far distances share a bucket.",
    .info.pictures  = "bias",
    .info.scale     = "1/sqrt(2*D)",
    .info.row_limit = "rows",
    .model          = "rows=8*L+1 cls=no relative=yes max_distance=L+8 sigma=1/sqrt(d_model)",
    /* Each position's row: mean, variance, normalisation, weight and bias, eight for each channel; and its
       two projections to all heads. With a class token theta1 and theta2, products over the channels of a
       head. */
    .operations            = "Lq*(8*d_model+2*d_model*H*D)+Lk*2*d_model*G*D+cls*4*H*D",
    .check                 = check,
    .has                   = has,
    .attention.terms       = terms,
    .attention.reach       = reach,
    .attention.in_place    = 1 << POS | 1 << UQ | 1 << UK,
    .attention.derived     = theta_count,
    .attention.derive      = make_thetas,
    .attention.derive_back = make_thetas_back,
    PE_TABLES(settings, params, examples),
};
