/* SPDX-License-Identifier: MIT */
/*
 * DeBERTa: products of content with position, and of position with content
 *
 * Place    score
 * Formula  S[h,i,j] = scale * ( q_i . k_j + q_i . pos_k[h,x] + k_j . pos_q[h,y] )
 *          scale = 1/sqrt(D (1 + m))
 *          x = clip(delta(P(i) - P(j)) + span, 0, 2 span - 1); delta: the distance, or its log bucket
 *          y = x (p2c_index=code), or the same of P(j) - P(i) (paper)      m = number of the two terms in use
 * Learns   projected=yes: pos_k, pos_q [H,2*span,D], as projected by the caller
 *          projected=no:  P [2*span,d_model], W_kr, W_qr [H*D,d_model]: pos_k[h,x] = P[x] . W_kr^T, rows hD
 *                         .. hD+D-1;
 *          biases: + b_kr, b_qr [H*D];  norm_rel_ebd=yes: P is LayerNorm(P) with ln_w, ln_b [d_model]
 * Source   He, Liu, Gao, Chen 2021, arXiv:2006.03654, section 3.1; microsoft/DeBERTa,
 *          disentangled_attention.py; He, Gao, Chen 2023, arXiv:2111.09543 (v3)
 *
 * Equation 4 of the paper gives the second term the opposite index, delta(j,i). All released code,
 * Microsoft's and Hugging Face's alike, ends with the same index in both terms, because it transposes what it
 * gathered: checkpoints are models of the code. As P is shared by the two terms, the two conventions are
 * different models.
 *
 * v1 clips at span = max_relative_positions; v2 and v3 have log buckets: position_buckets on each side, so
 * span is their number, also where max_relative_positions is less. Microsoft limits the distance before it
 * finds the bucket, Hugging Face does not; they differ in one row, at the far end of the future: clip_first.
 * The terms carry the same scale as the content, which counts them. The model is an encoder; nothing forbids
 * a causal mask.
 *
 * From P on (projected=no) the released models are: v1 biases=query; v2 and v3 biases=both norm_rel_ebd=yes
 * position_buckets=256. v2 and v3 share the projections of content with those of positions (share_att_key):
 * whoever has such a model brings the content's key projection as W_kr and b_kr, its query projection as W_qr
 * and b_qr, and adds their gradients to those of the content.
 */
#include "encodings/encoding.h"

#include "base/moments.h"

enum {
    MAX_RELATIVE,
    BUCKETS,
    SPAN,
    CLIP_FIRST,
    P2C_INDEX,
    TERMS,
    PROJECTED,
    SIGMA,
    BIASES,
    NORM,
    EPS
}; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"max_relative_positions", "integer", "512", "1..1048576", "the farthest distance with a row of its own"},
    {"position_buckets", "integer", "", "2..1048576",
     "log buckets on each side (v2, v3); absent: each distance its own row"},
    {"span", "integer", "first(position_buckets,max_relative_positions)", "1..1048576",
     "k: half the rows of the tables; the number of buckets where it is given"},
    {"clip_first", "flag", "no", "yes|no",
     "limit the distance before its bucket, as Microsoft's code; no: as Hugging Face"},
    {"p2c_index", "word", "code", "code|paper", "row for a key: code: as the query's; paper: of P(j) - P(i)"},
    {"terms", "word", "c2p:p2c", "c2p:p2c|c2p|p2c|p2c:c2p",
     "c2p: queries times positions; p2c: keys times positions"},
    {"projected", "flag", "yes", "yes|no",
     "the tables are given projected; no: one table P and its projections"},
    {"sigma", "real", "0.02", "0..", "standard deviation of all initial tables and projections"},
    {"biases", "word", "none", "none|query|both",
     "projected=no: projections with a bias; query: only W_qr (v1), both (v2, v3)"},
    {"norm_rel_ebd", "flag", "no", "yes|no", "projected=no: P goes through a LayerNorm (v2, v3)"},
    {"eps", "real", "1e-7", "0<..", "norm_rel_ebd=yes: added to the variance"},
    {0},
};
static_assert(PE_ROWS(settings) == EPS + 1, "ORDER settings");

/* NORMED is made of P, ln_w and ln_b: the table as it is projected [2*span,d_model]. */
enum { POS_K, POS_Q, TABLE, W_KR, W_QR, B_KR, B_QR, LN_W, LN_B, NORMED }; /* ORDER params */
static const posenc_param_info params[] = {
    {"pos_k", "H,2*span,D", "normal(0, sigma)", "K^r: multiplied with queries; projected=yes", 1},
    {"pos_q", "H,2*span,D", "normal(0, sigma)", "Q^r: multiplied with keys; projected=yes", 1},
    {"P", "2*span,d_model", "normal(0, sigma)", "one vector per row, before projection; projected=no", 1},
    {"W_kr", "H*D,d_model", "normal(0, sigma)", "projects P to K^r; projected=no", 1},
    {"W_qr", "H*D,d_model", "normal(0, sigma)", "projects P to Q^r; projected=no", 1},
    {"b_kr", "H*D", "zeros", "the bias of W_kr; biases=both", 1},
    {"b_qr", "H*D", "zeros", "the bias of W_qr; biases=query or both", 1},
    {"ln_w", "d_model", "ones", "weight of the normalisation of P; norm_rel_ebd=yes", 1},
    {"ln_b", "d_model", "zeros", "its bias", 1},
    {0},
};
static_assert(PE_ROWS(params) == LN_B + 1, "ORDER params");

static const posenc_example examples[] = {
    {"span=4", 0, 3, 1, 0, "without content the position adds nothing"},
    {"span=4 projected=no", 0, 3, 1, 0, "the same"},
    {0},
};

static int has_c2p(const pe_value *set)
{
    return set[TERMS].integer != 2;
}

static int has_p2c(const pe_value *set)
{
    return set[TERMS].integer != 1;
}

static int has_norm(const pe_value *set)
{
    return set[PROJECTED].integer == 0 && set[NORM].integer == 1;
}

static int has(const pe_value *set, int index)
{
    const int projected = set[PROJECTED].integer == 1;
    switch (index) {
    case POS_K: return projected && has_c2p(set);
    case POS_Q: return projected && has_p2c(set);
    case W_KR: return !projected && has_c2p(set);
    case W_QR: return !projected && has_p2c(set);
    case B_KR: return !projected && has_c2p(set) && set[BIASES].integer == 2;
    case B_QR: return !projected && has_p2c(set) && set[BIASES].integer >= 1;
    case LN_W:
    case LN_B: return has_norm(set);
    default: return !projected;
    }
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const pe_value *buckets = &p->set[BUCKETS];
    if (p->set[PROJECTED].integer && (p->set[BIASES].integer || p->set[NORM].integer))
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "deberta: %s needs a table that is not projected yet; add projected=no",
                       p->set[BIASES].integer ? "biases" : "norm_rel_ebd=yes");
    if (!buckets->given || p->set[MAX_RELATIVE].integer - 1 > buckets->integer / 2)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "deberta: max_relative_positions=%lld is too small for %lld buckets; it must exceed %lld",
                   (long long)p->set[MAX_RELATIVE].integer, (long long)buckets->integer,
                   (long long)(buckets->integer / 2 + 1));
}

static int64_t row_at(const pe_problem *p, int64_t t)
{
    const int64_t span  = p->set[SPAN].integer;
    const int64_t delta = p->set[BUCKETS].given
                              ? pe_index_deberta(t, p->set[BUCKETS].integer, p->set[MAX_RELATIVE].integer,
                                                 (int)p->set[CLIP_FIRST].integer)
                              : t;
    return pe_index_clip(delta, -span, span - 1) + span;
}

/* Tables that are given projected have rows of their own for each head. */
static int64_t first_of(const pe_problem *p, int64_t h)
{
    return p->set[PROJECTED].integer ? h * 2 * p->set[SPAN].integer : 0;
}

static void query_index(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = first_of(p, h) + row_at(p, t0 + i);
}

static void key_index(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = first_of(p, h) + row_at(p, p->set[P2C_INDEX].integer == 0 ? t0 + i : -(t0 + i));
}

/* Which table the projections see: P, or what the normalisation makes of it. */
static int seen(const pe_problem *p)
{
    return has_norm(p->set) ? NORMED : TABLE;
}

/* ---- the normalised table, once per run of many queries ---- */

static int64_t normed_count(const pe_problem *p)
{
    return has_norm(p->set) ? 2 * p->set[SPAN].integer * p->d_model : 0;
}

/* Of the row at `at`, wherever it is read. */
static pe_moments moments_at(const pe_problem *p, const double *const par[], int64_t at)
{
    const double eps = p->set[EPS].real;
    return par[TABLE] ? pe_moments_of(par[TABLE] + at, p->d_model, eps)
                      : pe_moments_of_floats((const float *)p->tensor[TABLE]->data + at, p->d_model, eps);
}

static void make_normed(const pe_problem *p, const double *const par[], double normed[])
{
    for (int64_t at = 0; at < normed_count(p); at += p->d_model) {
        const pe_moments of = moments_at(p, par, at);
        for (int64_t m = 0; m < p->d_model; m++)
            normed[at + m] = (par[TABLE][at + m] - of.mean) * of.inverse * par[LN_W][m] + par[LN_B][m];
    }
}

/* The row at `at`. With y = (x - mean) inverse: dx = inverse (g - mean(g) - y mean(g y)), g = ln_w
   dnormed. */
static void row_back(const pe_problem *p, const double *const par[], int64_t at, const double dnormed[],
                     double *const dpar[])
{
    const int64_t    n    = p->d_model;
    const pe_moments of   = moments_at(p, par, at);
    double           mean = 0, along = 0;
    for (int64_t m = 0; m < n; m++) {
        const double y = (par[TABLE][at + m] - of.mean) * of.inverse, g = par[LN_W][m] * dnormed[m];
        mean += g / (double)n;
        along += g * y / (double)n;
        pe_add(dpar, LN_W, m, dnormed[m] * y);
        pe_add(dpar, LN_B, m, dnormed[m]);
    }
    for (int64_t m = 0; dpar[TABLE] && m < n; m++) {
        const double y = (par[TABLE][at + m] - of.mean) * of.inverse;
        dpar[TABLE][at + m] += of.inverse * (par[LN_W][m] * dnormed[m] - mean - y * along);
    }
}

static void make_normed_back(const pe_problem *p, const double *const par[], const double normed[],
                             double dnormed[], double *const dpar[])
{
    for (int64_t at = 0; at < normed_count(p); at += p->d_model)
        row_back(p, par, at, dnormed + at, dpar);
}

/* ---- projected rows ---- */

/* How one of the two tables is projected. */
typedef struct table_weights {
    int projection, bias;
} table_weights;

static table_weights weights_of(int table)
{
    return table == POS_K ? (table_weights){W_KR, B_KR} : (table_weights){W_QR, B_QR};
}

/* Numbers at, at+1, ... of a parameter: where they are double, or read into `room`. */
static const double *numbers_at(const pe_problem *p, const double *const par[], int index, int64_t at,
                                int64_t n, double room[])
{
    if (par[index])
        return par[index] + at;
    pe_read(p, par, index, at, n, room);
    return room;
}

enum { TOGETHER = 8, COLUMNS = 64 }; /* rows of a projection, and how much of them is read at once */

/* n numbers of row x of the table that the projections see, from m on. Where the normalised table is not made
   (few queries) `of` are the row's moments. */
static const double *seen_at(const pe_problem *p, const double *const par[], const pe_moments *of, int64_t x,
                             int64_t m, int64_t n, double room[COLUMNS])
{
    if (!has_norm(p->set) || par[NORMED])
        return numbers_at(p, par, seen(p), x * p->d_model + m, n, room);
    double weight[COLUMNS], bias[COLUMNS];
    pe_read(p, par, TABLE, x * p->d_model + m, n, room);
    pe_read(p, par, LN_W, m, n, weight);
    pe_read(p, par, LN_B, m, n, bias);
    for (int64_t c = 0; c < n; c++)
        room[c] = (room[c] - of->mean) * of->inverse * weight[c] + bias[c];
    return room;
}

/* sum[0 .. rows-1] += W v, n columns of so many rows of W that lie `stride` apart: sums side by side, which
   do not wait for one another. */
static void add_products(double sum[TOGETHER], const double *restrict w, int64_t stride,
                         const double *restrict v, int64_t rows, int64_t n)
{
    for (int64_t m = 0; rows == TOGETHER && m < n; m++)
        for (int64_t i = 0; i < TOGETHER; i++)
            sum[i] += w[i * stride + m] * v[m];
    for (int64_t i = 0; rows < TOGETHER && i < rows; i++)
        for (int64_t m = 0; m < n; m++)
            sum[i] += w[i * stride + m] * v[m];
}

/* sum[0 .. rows-1] = rows `first`, ... of a projection times row x of the table */
static void project(const pe_problem *p, const double *const par[], const pe_moments *of, int projection,
                    int64_t first, int64_t rows, int64_t x, double sum[TOGETHER])
{
    const int64_t N = p->d_model;
    double        w[TOGETHER][COLUMNS], v[COLUMNS];
    memset(sum, 0, TOGETHER * sizeof *sum);
    for (int64_t m = 0; m < N; m += COLUMNS) {
        const int64_t n   = N - m < COLUMNS ? N - m : COLUMNS;
        const double *row = seen_at(p, par, of, x, m, n, v);
        for (int64_t i = 0; !par[projection] && i < rows; i++)
            pe_read(p, par, projection, (first + i) * N + m, n, w[i]);
        if (par[projection])
            add_products(sum, par[projection] + first * N + m, N, row, rows, n);
        else
            add_products(sum, w[0], COLUMNS, row, rows, n);
    }
}

/* to = row x of the projected table of head h */
static void load_row(const pe_problem *p, const double *const par[], int table, int64_t h, int64_t x,
                     double to[])
{
    const table_weights s = weights_of(table);
    const pe_moments    of =
        has_norm(p->set) && !par[NORMED] ? moments_at(p, par, x * p->d_model) : (pe_moments){0};
    double sum[TOGETHER];
    for (int64_t d = 0; d < p->D; d++)
        to[d] = 0;
    for (int64_t d = 0; has(p->set, s.bias) && d < p->D; d++)
        pe_read(p, par, s.bias, h * p->D + d, 1, to + d);
    for (int64_t d = 0; d < p->D; d += TOGETHER) {
        const int64_t rows = p->D - d < TOGETHER ? p->D - d : TOGETHER;
        project(p, par, &of, s.projection, h * p->D + d, rows, x, sum);
        for (int64_t i = 0; i < rows; i++)
            to[d + i] += sum[i];
    }
}

/* to[d] = sum_m W[hD+d,m] * P[x,m] + b[hD+d] */
static void store_row(const pe_problem *p, const double *const par[], int table, int64_t h, int64_t x,
                      const double drow[], double *const dpar[])
{
    const int64_t       D = p->D, d_model = p->d_model;
    const table_weights s     = weights_of(table);
    double             *dseen = dpar[seen(p)], *dw = dpar[s.projection], *db = dpar[s.bias];
    const double       *row = par[seen(p)] + x * d_model, *w = par[s.projection] + h * D * d_model;
    for (int64_t d = 0; db && d < D; d++)
        db[h * D + d] += drow[d];
    if (dseen)
        pe_multiply64(p, dseen + x * d_model, d_model, drow, D, 1, w, d_model, 1, d_model, D);
    if (dw)
        pe_multiply64(p, dw + h * D * d_model, d_model, drow, 1, 1, row, d_model, D, d_model, 1);
}

/* The distance from which on all have the row of the last, in both directions; 0: the logarithm goes on
   growing within the table (a span beyond the buckets, and no limit first). */
static int64_t last_distance(const pe_problem *p)
{
    const int64_t span = p->set[SPAN].integer, half = p->set[BUCKETS].integer / 2;
    if (!p->set[BUCKETS].given)
        return span;
    return p->set[CLIP_FIRST].integer || span <= 2 * half ? p->set[MAX_RELATIVE].integer : 0;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    const int64_t        last = last_distance(p);
    const int            made = !p->set[PROJECTED].integer;
    const pe_by_distance ends = {.load    = made ? load_row : NULL,
                                 .store   = made ? store_row : NULL,
                                 .clipped = last > 0,
                                 .low     = -last,
                                 .high    = last};
    s->scale                  = 1.0 / sqrt((double)p->D * (1 + has_c2p(p->set) + has_p2c(p->set)));
    if (has_c2p(p->set)) {
        s->A       = ends;
        s->A.index = query_index;
        s->A.param = POS_K;
    }
    if (has_p2c(p->set)) {
        s->B       = ends;
        s->B.index = key_index;
        s->B.param = POS_Q;
    }
}

/* projected=no: every row of P by both projections, for all heads. */
static double count_operations(const pe_problem *p)
{
    const int    sides = p->set[PROJECTED].integer ? 0 : has_c2p(p->set) + has_p2c(p->set);
    const double rows  = 2 * (double)p->set[SPAN].integer;
    return sides * rows * 2 * (double)p->d_model * (double)(p->H * p->D);
}

const pe_encoding pe_deberta = {
    .info.name     = "deberta",
    .info.place    = POSENC_PLACE_SCORE,
    .info.title    = "disentangled attention: content and position meet both ways",
    .info.formula  = "S_{h,i,j} = frac{q_i · k_j + q_i · a_{h,x} + k_j · b_{h,x}}{sqrt{3 D}}\n"
                     "x = clip(δ(t) + span , 0 , 2 span − 1)",
    .info.symbols  = "a_{h,x}: the vector of class x that meets queries (key positions)\n"
                     "b_{h,x}: the vector of class x that meets keys (query positions)\n"
                     "x: the class of the distance\n"
                     "δ: the distance, or its bucket with position_buckets\n"
                     "span: how many classes lie on each side",
    .info.paper    = "arXiv:2006.03654",
    .info.models   = "DeBERTa v1, v2, v3",
    .info.beyond   = "Distances beyond the last share its vectors: nothing ends, but far words look alike.",
    .info.pictures = "buckets",
    .info.by_distance           = 1,
    .info.scale                 = "1/sqrt(D*(1+number of terms))",
    .model                      = "max_relative_positions=floor(L/2) projected=no sigma=1/sqrt(d_model)",
    .count                      = count_operations,
    .check                      = check,
    .has                        = has,
    .attention.terms            = terms,
    .attention.derived          = normed_count,
    .attention.derived_for_many = 1,
    .attention.in_place = 1 << TABLE | 1 << W_KR | 1 << W_QR | 1 << B_KR | 1 << B_QR | 1 << LN_W | 1 << LN_B,
    .attention.derive   = make_normed,
    .attention.derive_back = make_normed_back,
    PE_TABLES(settings, params, examples),
};
