/* SPDX-License-Identifier: MIT */
/*
 * URPE: a factor by distance on the weights, after the softmax
 *
 * Place    weight
 * Formula  o[h,i]   = sum_j softmax(S)[i,j] * c[x,h] * v_j          x = P(j) - P(i) + index_offset
 *          S[h,i,j] = scale * q_i . k_j + table[x,h]
 *          bias=table; or any score encoding: kerple_log+urpe
 * Learns   c [rows,H]; table [rows,H] where bias=table
 * Source   Luo, Li, Zheng, Wang, He 2022, arXiv:2205.13401, section 4; lsj2408/URPE
 *
 * What acts inside the softmax leaves every row of weights summing to 1, so a sequence of equal vectors stays
 * one whatever the bias: such a Transformer is no universal approximator. The factor breaks that with one
 * Toeplitz matrix per head. The weights are not normalised again.
 *
 * The rows ascend with the key's position, from index_offset tokens back; both tables are read at the same
 * row. The authors' code starts c at 1 only in its synthetic runs, elsewhere at N(0, 0.02): init. The
 * default is 1, with which training begins with the plain encoding. Their table of biases is this one; joined
 * with a score encoding there is none.
 */
#include "encodings/encoding.h"

enum { INDEX_OFFSET, ROWS, BIAS, SIGMA, INIT }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"index_offset", "integer", "L-1", "0..1073741824", "the row of distance 0: how far back keys may lie"},
    {"rows", "integer", "2*(index_offset+1)", "1..1073741824",
     "of both tables; a run beyond them is refused"},
    {"bias", "word", "table", "table|none",
     "table: scores get a learned bias; joined with a score encoding the default is none"},
    {"sigma", "real", "0.02", "0..", "standard deviation of what starts at random"},
    {"init", "word", "ones", "ones|normal", "how c starts; normal: as most of the authors' runs"},
    {0},
};
static_assert(PE_ROWS(settings) == INIT + 1, "ORDER settings");

enum { TABLE, C }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "rows,H", "normal(0, sigma)", "what a distance adds to the scores of a head", 1},
    {"c", "rows,H", "ones; init=normal: normal(0, sigma)",
     "what a distance multiplies the weights of a head by", 1},
    {0},
};
static_assert(PE_ROWS(params) == C + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the bias is x * H + h. */
static const posenc_example examples[] = {
    {"H=2 index_offset=6", 1, 5, 3, 9, "2 tokens back: row 4"},
    {"H=2 index_offset=6", 0, 1, 5, 20, "4 tokens ahead: row 10"},
    {0},
};

static int has(const pe_value *set, int index)
{
    return index != TABLE || set[BIAS].integer == 0;
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const int64_t offset = p->set[INDEX_OFFSET].integer, rows = p->set[ROWS].integer;
    if (offset - span->t_high >= 0 && offset - span->t_low < rows)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_RANGE,
                   "urpe: keys lie from %lld back to %lld ahead, but its tables end at %lld back and %lld "
                   "ahead; set index_offset and rows",
                   (long long)span->t_high, (long long)-span->t_low, (long long)offset,
                   (long long)(rows - 1 - offset));
}

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] =
            pe_index_clip(p->set[INDEX_OFFSET].integer - t0 - i, 0, p->set[ROWS].integer - 1) * p->H + h;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->gate = (pe_by_distance){.index = index_of, .param = C};
    if (p->set[BIAS].integer == 0)
        s->bias = (pe_by_distance){.index = index_of, .param = TABLE};
}

const pe_encoding pe_urpe = {
    .info.name        = "urpe",
    .info.place       = POSENC_PLACE_WEIGHT,
    .info.title       = "a learned factor per distance after the softmax",
    .info.formula     = "o_i = ∑_j softmax(S)_{i,j} c_{h,t} v_j",
    .info.symbols     = "S: the scores, with the learned bias of the distance unless bias=none\n"
                        "c_{h,t}: the learned factor of head h at distance t",
    .info.paper       = "arXiv:2205.13401",
    .info.models      = "",
    .info.pictures    = "factors",
    .info.by_distance = 1,
    .info.row_limit   = "index_offset",
    .model            = "index_offset=8*L-1",
    .with_score       = "bias=none",
    .has              = has,
    .attention.terms  = terms,
    .attention.reach  = reach,
    PE_TABLES(settings, params, examples),
};
