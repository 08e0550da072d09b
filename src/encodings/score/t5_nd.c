/* SPDX-License-Identifier: MIT */
/*
 * t5_nd: T5's buckets for every coordinate of a position, summed
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + bias_scale * sum_a table_a[bucket_a(step_a),h]
 *          step_a = factor_a * (P_a(j) - P_a(i)), without its fraction
 * Learns   table1 .. table4, one for each coordinate: [num_buckets_a, H]
 * Source   Xu et al. 2021, arXiv:2012.14740 (LayoutLMv2), section 2.1; Huang et al. 2022, arXiv:2204.08387
 *          (LayoutLMv3); Tang et al. 2023, arXiv:2212.02623 (UDOP); transformers, modeling_layoutlmv3.py,
 *          modeling_udop.py
 *
 * A token of a page has a place in the text and one on the page. Each coordinate has buckets of its own, by
 * T5's rule (both directions; see t5), and one score gets the sum: so the three tables of a LayoutLM are one
 * encoding. How many coordinates there are, num_buckets says; positions are arrays [.., L, coordinates], and
 * a range gives all of them the same number.
 *
 * LayoutLM's coordinates are token, left and lower edge in thousandths of the page: factor 1. LayoutLMv3 adds
 * its sum before it divides by sqrt(D): bias_scale=1/sqrt(D). UDOP has the middle of a box as a share of the
 * page, factor 100, and scale=1. Steps are rounded to float as in its code, or a share on the edge of a
 * bucket would fall on its other side.
 *
 * The numbers of all steps up to max_distance are made once per run, but for few queries; a pair then looks
 * one up for each coordinate.
 */
#include "encodings/encoding.h"

enum { NUM_BUCKETS, MAX_DISTANCE, FACTOR, BIAS_SCALE, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"num_buckets", "list", "32x64x64", "4..1048576",
     "of each coordinate: buckets, both directions together"},
    {"max_distance", "list", "128x256x256", "2..1048576", "of each: steps beyond share the last bucket"},
    {"factor", "list", "1x1x1", "1..1048576", "of each: steps in a coordinate's unit"},
    {"bias_scale", "real", "1", "", "factor of the sum: 1, of LayoutLMv3 1/sqrt(D)"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial tables"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { MOST = 4 }; /* coordinates; params 0 .. MOST-1 are their tables, MADE the numbers of all steps */
enum { MADE = MOST, MANY = 1 << 14 }; /* numbers of MADE: 128 KiB */
#define OF_COORDINATE(a)                                                                                 \
    {                                                                                                    \
        "table" a, "num_buckets" a ",H", "normal(0, sigma)", "what a bucket of coordinate " a " adds", 1 \
    }
static const posenc_param_info params[] = {
    OF_COORDINATE("1"), OF_COORDINATE("2"), OF_COORDINATE("3"), OF_COORDINATE("4"), {0},
};
static_assert(PE_ROWS(params) == MOST, "a table for each coordinate");

/* The examples' parameter values are 0, 1, 2, ... in memory order: bucket * H + h. A range is every
   coordinate. */
static const posenc_example examples[] = {
    {"H=1", 0, 5, 0, 15, "5 back: exact bucket 5 of all three"},
    {"H=1", 0, 0, 5, 16 + 32 + 32 + 15, "5 ahead: each after its first half"},
    {"H=1", 0, 1000, 0, 15 + 31 + 31, "beyond: the last bucket of each"},
    {"H=1 num_buckets=32x32 max_distance=128x100 factor=1x100", 0, 1, 0, 1 + 15, "100 steps in one"},
    {"H=2 num_buckets=32 max_distance=128 factor=1 bias_scale=0.5", 1, 3, 0, 3.5, "(3 * 2 + 1) / 2"},
    {0},
};

static int coordinates(const pe_value *set)
{
    return set[NUM_BUCKETS].count;
}

static int has(const pe_value *set, int index)
{
    return index < coordinates(set);
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int n = coordinates(p->set);
    if (n > MOST || p->set[MAX_DISTANCE].count != n || p->set[FACTOR].count != n)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "t5_nd: num_buckets, max_distance and factor have %d, %d and %d numbers; give each as "
                       "many, one for each coordinate, at most %d",
                       n, p->set[MAX_DISTANCE].count, p->set[FACTOR].count, MOST);
    for (int a = 0; a < n; a++)
        if (p->set[MAX_DISTANCE].items[a] <= p->set[NUM_BUCKETS].items[a] / 4)
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "t5_nd: number %d of max_distance is %lld; it must exceed the %lld steps with a "
                           "bucket of their own, a quarter of num_buckets",
                           a + 1, (long long)p->set[MAX_DISTANCE].items[a],
                           (long long)(p->set[NUM_BUCKETS].items[a] / 4));
    return POSENC_OK;
}

/* ---- the numbers of all steps, [H] by coordinate by step from -max_distance to max_distance ---- */

static int64_t steps_of(const pe_problem *p, int a)
{
    return 2 * p->set[MAX_DISTANCE].items[a] + 1;
}

static int64_t steps_of_head(const pe_problem *p)
{
    int64_t sum = 0;
    for (int a = 0; a < coordinates(p->set); a++)
        sum += steps_of(p, a);
    return sum;
}

static int64_t made_count(const pe_problem *p)
{
    return p->H * steps_of_head(p);
}

/* Number `x` of coordinate a's steps has this bucket. */
static int64_t bucket(const pe_problem *p, int a, int64_t x)
{
    const int64_t far = p->set[MAX_DISTANCE].items[a];
    return pe_index_t5(x - far, p->set[NUM_BUCKETS].items[a], far, 1);
}

static void make(const pe_problem *p, const double *const par[], double made[])
{
    const double by = p->set[BIAS_SCALE].real;
    for (int a = 0; a < coordinates(p->set); made += steps_of(p, a++))
        for (int64_t x = 0; x < steps_of(p, a); x++)
            for (int64_t h = 0, b = bucket(p, a, x) * p->H; h < p->H; h++)
                made[h * steps_of_head(p) + x] = by * par[a][b + h];
}

static void make_back(const pe_problem *p, const double *const par[], const double made[], double dmade[],
                      double *const dpar[])
{
    const double by = p->set[BIAS_SCALE].real;
    for (int a = 0; a < coordinates(p->set); dmade += steps_of(p, a++))
        for (int64_t x = 0; x < steps_of(p, a); x++)
            for (int64_t h = 0, b = bucket(p, a, x) * p->H; h < p->H; h++)
                pe_add(dpar, a, b + h, by * dmade[h * steps_of_head(p) + x]);
}

/* ---- pairs ---- */

/* Where the numbers of some keys stand, by coordinate. */
enum { TOGETHER = 64 };
typedef struct placed_keys {
    int64_t count;
    double  at[MOST][TOGETHER];
} placed_keys;

static placed_keys keys_from(const pe_problem *p, const pe_tile *tile, int64_t first)
{
    const int64_t rest = tile->cols - first;
    placed_keys   y    = {.count = rest < TOGETHER ? rest : TOGETHER};
    for (int a = 0; a < coordinates(p->set); a++)
        for (int64_t c = 0; c < y.count; c++)
            y.at[a][c] = pe_place_of(&tile->k_places, first + c, a);
    return y;
}

/* Which number of coordinate a's steps a query has with each of these keys. */
static void find(const pe_problem *p, const placed_keys *keys, int a, double query, int64_t at[])
{
    const float  factor = (float)p->set[FACTOR].items[a];
    const double far    = (double)p->set[MAX_DISTANCE].items[a];
    for (int64_t c = 0; c < keys->count; c++) {
        const double step = (double)((float)(keys->at[a][c] - query) * factor);
        at[c]             = (int64_t)(step < -far ? 0 : step > far ? 2 * far : trunc(step) + far);
    }
}

/* Coordinate a's part of the scores of a query. Its numbers of this head begin at `before`. */
static void add_numbers(const pe_problem *p, const double *const par[], int64_t h, int a, int64_t before,
                        const int64_t at[], int64_t n, double to[])
{
    for (int64_t c = 0; c < n; c++)
        to[c] += par[MADE] ? par[MADE][before + at[c]]
                           : p->set[BIAS_SCALE].real * par[a][bucket(p, a, at[c]) * p->H + h];
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    int64_t at[TOGETHER];
    for (int64_t first = 0; first < tile->cols; first += TOGETHER) {
        const placed_keys keys = keys_from(p, tile, first);
        for (int64_t r = 0; r < tile->rows; r++) {
            double *to     = x + r * tile->stride + first;
            int64_t before = tile->h * steps_of_head(p);
            memset(to, 0, (size_t)keys.count * sizeof *to);
            for (int a = 0; a < coordinates(p->set); before += steps_of(p, a++)) {
                find(p, &keys, a, pe_place_of(&tile->q_places, r, a), at);
                add_numbers(p, par, tile->h, a, before, at, keys.count, to);
            }
        }
    }
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    int64_t at[TOGETHER];
    for (int64_t first = 0; dpar[MADE] && first < tile->cols; first += TOGETHER) {
        const placed_keys keys = keys_from(p, tile, first);
        for (int64_t r = 0; r < tile->rows; r++) {
            const double *from   = dx + r * tile->stride + first;
            int64_t       before = tile->h * steps_of_head(p);
            for (int a = 0; a < coordinates(p->set); before += steps_of(p, a++)) {
                find(p, &keys, a, pe_place_of(&tile->q_places, r, a), at);
                for (int64_t c = 0; c < keys.count; c++)
                    dpar[MADE][before + at[c]] += from[c];
            }
        }
    }
}

/* Each number of a step is scaled; for a pair each coordinate costs a difference, a product and a sum, of
   which the engine counts the last. */
static double count_operations(const pe_problem *p)
{
    return (double)made_count(p) +
           (double)p->H * (double)p->Lq * (double)p->Lk * (3 * coordinates(p->set) - 1);
}

const pe_encoding pe_t5_nd = {
    .info.name         = "t5_nd",
    .info.place        = POSENC_PLACE_SCORE,
    .info.title        = "bucketed biases of several coordinates, summed",
    .info.formula      = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + s ∑_a b_{a , bucket(x_a) , h}\n"
                         "x_a = f_a (P_a(j) − P_a(i))",
    .info.symbols      = "s: setting bias_scale\n"
                         "a: a coordinate, counted from 1\n"
                         "b_{a,x,h}: the learned number of bucket x in head h, of coordinate a\n"
                         "bucket: the class of a step: one each for small ones, then ever wider ones\n"
                         "x_a: steps between the two along coordinate a\n"
                         "f_a: steps in a unit of coordinate a, setting factor\n"
                         "P_a: coordinate a of a position",
    .info.paper        = "arXiv:2012.14740",
    .info.models       = "LayoutLMv2, LayoutLMv3, UDOP",
    .info.beyond       = "Steps beyond max_distance share a bucket, as with t5, in every coordinate.",
    .info.pictures     = "bias,mass",
    .info.by_distance  = 1,
    .model             = "num_buckets=16x8 max_distance=floor(L/2)+4xfloor(L/4)+4 factor=1x2 sigma=0.1",
    .count             = count_operations,
    .check             = check,
    .has               = has,
    .coordinates       = coordinates,
    .attention.hook    = {.visit = visit, .visit_back = visit_back, .learns = 1 << MADE},
    .attention.derived = made_count,
    .attention.derived_for_many = MANY,
    .attention.derive           = make,
    .attention.derive_back      = make_back,
    PE_TABLES(settings, params, examples),
};
