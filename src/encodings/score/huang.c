/* SPDX-License-Identifier: MIT */
/*
 * Huang M4: a vector for each distance, multiplied with the query and with the key
 *
 * Place    score
 * Formula  S[h,i,j] = scale * ( q_i . k_j + q_i . e[x] + k_j . e[x] )
 *          x = P(i) - P(j) + max_positions - 1
 * Learns   dist = e [2*max_positions-1, D], one table for both products and all heads
 * Source   Huang, Liang, Xu, Xiang 2020, arXiv:2009.13658, section 3, method 4; Hugging Face,
 *          modeling_bert.py, position_embedding_type "relative_key_query"
 *
 * The sign is opposite to Shaw's: the rows ascend with the distance into the past. Nothing is clipped: a
 * distance beyond the table has no vector, and a run that needs one is refused. Without the last product it
 * is Hugging Face's "relative_key": key_term=no.
 */
#include "encodings/encoding.h"

enum { MAX_POSITIONS, KEY_TERM, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"max_positions", "integer", "512", "1..1048576", "positions of a model: distances go up to one less"},
    {"key_term", "flag", "yes", "yes|no",
     "keys are multiplied with the vectors too; no: method 1, \"relative_key\""},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { DIST }; /* ORDER params */
static const posenc_param_info params[] = {
    {"dist", "2*max_positions-1,D", "normal(0, sigma)", "e: multiplied with queries and keys at a distance",
     1},
    {0},
};
static_assert(PE_ROWS(params) == DIST + 1, "ORDER params");

static const posenc_example examples[] = {
    {"max_positions=10", 0, 3, 1, 0, "without content the distance adds nothing"},
    {0},
};

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const int64_t M = p->set[MAX_POSITIONS].integer;
    if (span->t_low > -M && span->t_high < M)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_RANGE,
                   "huang_m4: distances run from %lld to %lld, but max_positions=%lld has vectors up to "
                   "%lld; set it higher",
                   (long long)span->t_low, (long long)span->t_high, (long long)M, (long long)(M - 1));
}

static int64_t row_at(const pe_problem *p, int64_t t)
{
    const int64_t last = p->set[MAX_POSITIONS].integer - 1;
    return pe_index_clip(t, -last, last) + last;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->A = (pe_by_distance){.row = row_at, .param = DIST};
    if (p->set[KEY_TERM].integer)
        s->B = s->A;
}

const pe_encoding pe_huang_m4 = {
    .info.name        = "huang_m4",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "a vector per distance, for queries and keys",
    .info.formula     = "S_{h,i,j} = frac{q_i · k_j + q_i · e_t + k_j · e_t}{sqrt{D}}",
    .info.symbols     = "e_t: the learned vector of distance t",
    .info.paper       = "arXiv:2009.13658",
    .info.models      = "BERT with relative_key_query",
    .info.beyond      = "The table ends: a distance beyond max_positions has no vector and is refused.",
    .info.pictures    = "",
    .info.by_distance = 1,
    .info.row_limit   = "max_positions",
    .model            = "max_positions=8*L sigma=1/sqrt(D)",
    .attention.terms  = terms,
    .attention.reach  = reach,
    PE_TABLES(settings, params, examples),
};
