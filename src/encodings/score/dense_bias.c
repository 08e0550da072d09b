/* SPDX-License-Identifier: MIT */
/*
 * Dense bias: the caller's own number for each pair
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b[h,i,j]      (b[0,i,j] for every head: heads=shared)
 * Learns   b [H or 1, Lq, Lk], the caller's matrix; its gradient is returned
 * Source   the additive mask of every framework (PyTorch's scaled_dot_product_attention: attn_mask)
 *
 * Besides an explicit mask the only input of Lq x Lk elements, for what depends on more than the distance. It
 * goes by the place in the tensors, not by positions. It is read, and its gradient added, in the caller's own
 * memory: neither is copied.
 */
#include "encodings/encoding.h"

enum { HEADS }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"heads", "word", "own", "own|shared", "a matrix for each head, or one for all"},
    {0},
};
static_assert(PE_ROWS(settings) == HEADS + 1, "ORDER settings");

enum { OWN, SHARED }; /* ORDER params */
static const posenc_param_info params[] = {
    {"b", "H,Lq,Lk", "zeros", "added to the scores of a head (heads=own)", 1},
    {"shared_b", "1,Lq,Lk", "zeros", "added to the scores of every head (heads=shared)", 1},
    {0},
};
static_assert(PE_ROWS(params) == SHARED + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order. */
static const posenc_example examples[] = {
    {"H=2 Lq=8 Lk=8", 1, 2, 3, 83, "head 1, query 2, key 3: 64 + 16 + 3"},
    {"H=2 Lq=8 Lk=8 heads=shared", 1, 2, 3, 19, "one matrix for both heads: 16 + 3"},
    {0},
};

static int has(const pe_value *set, int index)
{
    return set[HEADS].integer == (index == SHARED);
}

static int64_t matrix(const pe_problem *p, int64_t h)
{
    return p->set[HEADS].integer ? 0 : h;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->pairs = (pe_by_pair){.matrix = matrix,
                            .param  = p->set[HEADS].integer ? SHARED : OWN,
                            .shared = p->set[HEADS].integer != 0};
}

const pe_encoding pe_dense_bias = {
    .info.name        = "dense_bias",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "the caller's bias for each pair",
    .info.formula     = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + b_{h,i,j}",
    .info.symbols     = "b_{h,i,j}: your number for query i and key j in head h",
    .info.paper       = "none: the caller's own",
    .info.models      = "for ideas of one's own",
    .info.beyond      = "The numbers are the caller's: they end where the caller's array ends.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1, /* positions do not matter at all, so moving them changes nothing */
    .info.sees        = "the places of query and key in their tensors",
    .has              = has,
    .attention.terms  = terms,
    PE_TABLES(settings, params, examples),
};
