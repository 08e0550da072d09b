/* SPDX-License-Identifier: MIT */
/*
 * Shaw: a vector for each clipped distance, added to the key and another one added to the value
 *
 * Place    score (its second table acts on the values, at place weight)
 * Formula  S[h,i,j] = scale * ( q_i . k_j + q_i . rk[x] )
 *          o[h,i]   = sum_j softmax(S)[i,j] * ( v_j + rv[x] )
 *          x        = clip(P(j) - P(i), min_distance, max_distance) - min_distance
 * Learns   rk [R,D], rv [R,Dv], R = max_distance - min_distance + 1; one pair of tables per head where
 *          per_head=yes
 * Source   Shaw, Uszkoreit, Vaswani 2018, arXiv:1803.02155, section 3; tensorflow/tensor2tensor,
 *          layers/common_attention.py, dot_product_attention_relative
 *
 * The sign is the paper's: x rises with the key's position, row 0 is the far past. The scale covers both
 * products, because the authors multiply q by it first.
 *
 * The paper has tables per head in its base model and tables that heads share in its big one; the code always
 * shares: per_head. Its ablation does well without rv: values=no. The two directions are clipped alike there;
 * a causal model never sees the future rows, and max_distance=0 leaves them out.
 *
 * The authors' later code (dot_product_self_attention_relative_v2 and its kin, which skew a matrix of
 * products) pads its tables with zeros instead of repeating the last row: beyond=zero. Its
 * max_relative_position rows end one earlier: min_distance = 1 - max_relative_position.
 *
 * table=sinusoidal is NEZHA (arXiv:1909.00204): the same form with sinusoids in both tables, which are not
 * trained. The paper's are of the distance; the released code fills row x with those of x itself, from 0 on:
 * sinusoid_of.
 */
#include "encodings/encoding.h"

enum {
    MAX_RELATIVE,
    MIN_DISTANCE,
    MAX_DISTANCE,
    PER_HEAD,
    VALUES,
    TABLE,
    SIGMA,
    BEYOND,
    SINUSOID_OF
}; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"max_relative", "integer", "16", "0..1048576",
     "distances beyond share the last row, in both directions"},
    {"min_distance", "integer", "-max_relative", "-1048576..0",
     "the same for keys in the past only, as P(j) - P(i)"},
    {"max_distance", "integer", "max_relative", "0..1048576", "the same for keys in the future only"},
    {"per_head", "flag", "no", "yes|no", "each head has tables of its own (the paper's base model)"},
    {"values", "flag", "yes", "yes|no", "vectors are added to the values too"},
    {"table", "word", "learned", "learned|sinusoidal", "sinusoidal: fixed sinusoids, as NEZHA"},
    {"sigma", "real", "1/sqrt(D)", "0..", "standard deviation of initial learned tables"},
    {"beyond", "word", "clip", "clip|zero",
     "farther distances share the last row; zero: they add nothing (tensor2tensor's v2)"},
    {"sinusoid_of", "word", "distance", "distance|row",
     "table=sinusoidal: of the distance (paper), or of the number of its row (released code)"},
    {0},
};
static_assert(PE_ROWS(settings) == SINUSOID_OF + 1, "ORDER settings");

enum { RK, RV }; /* ORDER params */
static const posenc_param_info params[] = {
    {"rk", "H if per_head,max_distance-min_distance+1,D", "normal(0, sigma)",
     "a^K: added to the key at a distance", 1},
    {"rv", "H if per_head,max_distance-min_distance+1,Dv", "normal(0, sigma)",
     "a^V: added to the value at a distance", 1},
    {0},
};
static_assert(PE_ROWS(params) == RV + 1, "ORDER params");

static const posenc_example examples[] = {
    {"max_relative=2", 0, 3, 1, 0, "eq. 4: without content the distance adds nothing"},
    {0},
};

static int has(const pe_value *set, int index)
{
    return index != RV || set[VALUES].integer == 1;
}

static int trains(const pe_value *set, int index)
{
    return set[TABLE].integer == 0;
}

static int64_t rows_of(const pe_problem *p)
{
    return p->set[MAX_DISTANCE].integer - p->set[MIN_DISTANCE].integer + 1;
}

/* NEZHA, eq. 8: channels 2m and 2m + 1 are sine and cosine of rel * 10000^(-2m/width). */
static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const int64_t width = index == RK ? p->D : p->Dv;
    if (p->set[TABLE].integer == 0)
        return p->set[SIGMA].real * pe_random_normal(rng);
    const int64_t row = i / width % rows_of(p), even = i % width - i % width % 2,
                  rel = p->set[SINUSOID_OF].integer ? row : row + p->set[MIN_DISTANCE].integer;
    double c, s;
    pe_angle_cos_sin((double)rel, pe_angle_frequency(pow(10000.0, -(double)even / (double)width)), &c, &s);
    return i % width % 2 ? c : s;
}

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    const int64_t first = p->set[PER_HEAD].integer ? h * rows_of(p) : 0, low = p->set[MIN_DISTANCE].integer;
    for (int64_t i = 0; i < n; i++) {
        const int64_t clipped = pe_index_clip(-t0 - i, low, p->set[MAX_DISTANCE].integer);
        rows[i]               = p->set[BEYOND].integer && clipped != -t0 - i ? -1 : first + clipped - low;
    }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    /* distances: the settings with the opposite sign; rows of zeros are one row further out */
    const int64_t zeros = p->set[BEYOND].integer, low = -p->set[MAX_DISTANCE].integer - zeros,
                  high = -p->set[MIN_DISTANCE].integer + zeros;
    s->A = (pe_by_distance){.index = index_of, .param = RK, .clipped = 1, .low = low, .high = high};
    if (p->set[VALUES].integer)
        s->r = (pe_by_distance){.index = index_of, .param = RV, .clipped = 1, .low = low, .high = high};
}

const pe_encoding pe_shaw = {
    .info.name    = "shaw",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "a vector per clipped distance, for keys and values",
    .info.formula = "S_{h,i,j} = frac{q_i · (k_j + a_x)}{sqrt{D}} , x = clip(−t , −K , K)\n"
                    "o_i = ∑_j softmax(S)_{i,j} (v_j + b_x)",
    .info.symbols = "a_x: the learned vector that is added to keys at distance x\n"
                    "b_x: the learned vector that is added to values at distance x\n"
                    "x: the distance −t from query to key, at most K\n"
                    "K: setting max_relative: distances beyond share a vector",
    .info.paper   = "arXiv:1803.02155",
    .info.models  = "NEZHA",
    .info.beyond =
        "Distances beyond max_distance share a vector; if training has reached it, the loss is kept.",
    .info.pictures    = "buckets",
    .info.by_distance = 1,
    .model            = "max_relative=min(16,floor(L/2))",
    .has              = has,
    .trains           = trains,
    .init             = init,
    .attention.terms  = terms,
    PE_TABLES(settings, params, examples),
};
