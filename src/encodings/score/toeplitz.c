/* SPDX-License-Identifier: MIT */
/*
 * Toeplitz: the caller's own number for each distance
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b[h,x]      x = P(i) - P(j) - first
 * Learns   b [H, Lq+Lk-1], the caller's vector; its gradient is returned
 * Source   the primitive behind every bias by distance (docs/house.md); the rows ascend with the distance
 *
 * For an idea of one's own: compute any bias by distance in NumPy or PyTorch, hand it over as a vector of Lq
 * + Lk - 1 numbers per head, and attention with it trains in linear memory: the gradient that comes back is
 * one number per distance. `first` is the distance of entry 0; as it stands it fits Lq queries at the end of
 * Lk keys (a KV cache), and so also Lq = Lk. A run that needs a distance outside the vector is refused.
 */
#include "encodings/encoding.h"

enum { FIRST, COUNT }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"first", "integer", "1-Lq", "", "distance P(i) - P(j) of entry 0"},
    {"count", "integer", "Lq+Lk-1", "1..1099511627776", "distances in the vector"},
    {0},
};
static_assert(PE_ROWS(settings) == COUNT + 1, "ORDER settings");

enum { B }; /* ORDER params */
static const posenc_param_info params[] = {
    {"b", "H,count", "zeros", "b: what is added to the scores of a head at a distance", 1},
    {0},
};
static_assert(PE_ROWS(params) == B + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the bias is h * count + t - first. */
static const posenc_example examples[] = {
    {"H=2 Lq=4 Lk=4", 1, 2, 2, 10, "the second head's entry for distance 0: 7 + 3"},
    {"H=1 Lq=4 Lk=4", 0, 0, 3, 0, "three tokens ahead: entry 0"},
    {0},
};

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const int64_t first = p->set[FIRST].integer, last = first + p->set[COUNT].integer - 1;
    if (span->t_low >= first && span->t_high <= last)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "toeplitz: distances run from %lld to %lld, but b holds those from %lld to %lld; set first or count",
        (long long)span->t_low, (long long)span->t_high, (long long)first, (long long)last);
}

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = h * p->set[COUNT].integer + t0 + i - p->set[FIRST].integer;
}

const pe_encoding pe_toeplitz = {
    .info.name        = "toeplitz",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "the caller's bias for each distance",
    .info.formula     = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + b_{h , t}",
    .info.symbols     = "b_{h,t}: your number for distance t in head h",
    .info.paper       = "none: the caller's own",
    .info.models      = "for ideas of one's own",
    .info.beyond      = "The numbers are the caller's: they end where the caller's vector ends.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .model            = "first=1-8*L count=16*L-1",
    .attention.reach  = reach,
    .attention.bias   = {.index = index_of, .param = B},
    PE_TABLES(settings, params, examples),
};
