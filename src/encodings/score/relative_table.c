/* SPDX-License-Identifier: MIT */
/*
 * relative_table: a learned number for each signed distance
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + table[h,x]
 *          x = clip(t, min_distance, max_distance) - min_distance
 *          t = P(i) - P(j)
 * Learns   table [H,R], R = max_distance - min_distance + 1
 * Source   the plainest distance bias there is, as surveys write it: b_h(i - j); T5 without its buckets
 *
 * The rows ascend with t: row 0 is the far future, the last row the far past; distances beyond share the last
 * row of their side. The bias is not multiplied by the scale. Any bias by distance that somebody computed
 * elsewhere can be put into this table as it is.
 */
#include "encodings/encoding.h"

enum { MAX_RELATIVE, MIN_DISTANCE, MAX_DISTANCE, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"max_relative", "integer", "128", "0..1073741824", "distances beyond share the last row of their side"},
    {"min_distance", "integer", "-max_relative", "-1073741824..0",
     "the same for keys in the future only, as P(i) - P(j)"},
    {"max_distance", "integer", "max_relative", "0..1073741824", "the same for keys in the past only"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "H,max_distance-min_distance+1", "normal(0, sigma)",
     "b: what a distance adds to the scores of a head", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the bias is h * R + x. */
static const posenc_example examples[] = {
    {"H=2 max_relative=3", 1, 5, 3, 12, "2 tokens back: row 3 + 2 of the second head"},
    {"H=2 max_relative=3", 0, 0, 9, 0, "9 tokens ahead share row 0 with all from 3"},
    {"max_relative=3 min_distance=0", 0, 2, 2, 0, "a causal table begins at distance 0"},
    {0},
};

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    const int64_t low = p->set[MIN_DISTANCE].integer, high = p->set[MAX_DISTANCE].integer;
    for (int64_t i = 0; i < n; i++)
        rows[i] = h * (high - low + 1) + pe_index_clip(t0 + i, low, high) - low;
}

const pe_encoding pe_relative_table = {
    .info.name    = "relative_table",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "a learned bias per signed distance",
    .info.formula = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + T_{h , clip(t)}",
    .info.symbols = "T_{h,x}: the learned number of distance x in head h\n"
                    "clip: the distance, at most max_distance and at least min_distance",
    .info.paper   = "arXiv:1910.10683",
    .info.models  = "",
    .info.beyond =
        "Distances beyond the last share its number; if training has reached it, the loss is kept.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .model            = "max_relative=floor(L/2) min_distance=0 sigma=0.1",
    .model_both       = "max_relative=floor(L/2) sigma=0.1",
    .attention.bias   = {.index = index_of, .param = TABLE},
    PE_TABLES(settings, params, examples),
};
