/* SPDX-License-Identifier: MIT */
/*
 * Hierarchical: a learned table of n rows that reaches n^2 positions
 *
 * Place    input: y = x + q[pos]
 * Formula  u_k = (p_k - alpha p_0) / (1 - alpha)                            k = 0 .. n-1
 *          q[pos] = alpha u[pos div n] + (1 - alpha) u[pos mod n]            0 <= pos < n^2
 * Learns   table p [rows, dim]
 * Source   Su 2020, kexue.fm/archives/7947; bert4keras PositionEmbedding(hierarchical)
 *
 * A position is written with two digits to base n, and each digit has a row of the same table. The first n
 * positions keep their rows exactly, so a trained table is extended without training it further. Three alphas
 * are refused: 0 repeats with period n, 1/2 cannot tell (i, j) from (j, i), 1 divides by zero. The table
 * stays trainable; rows are computed on demand. q is not normalised: a row can be (1 + alpha)/(1 - alpha)
 * times as long as the longest p.
 */
#include "encodings/encoding.h"

enum { ROWS, DIM, ALPHA, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"rows", "integer", "L", "1..", "rows of the table; positions run to its square"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"alpha", "real", "0.4", "", "weight of the leading digit; not 0, 1/2 or 1 (bert4keras: 0.4)"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "rows,dim", "normal(0, sigma)", "one vector per position of the first n, p", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

static const posenc_example examples[] = {
    {"rows=4 dim=1", 3, 0, 0, 3, "the first n positions keep their rows"},
    {"rows=4 dim=1", 5, 0, 0, 1.0 / 0.6, "(1, 1) is u_1 = (p_1 - 0.4 p_0) / 0.6"},
    {"rows=4 dim=1 alpha=0.7", 6, 0, 0, (0.7 * 1 + 0.3 * 2) / 0.3, "(1, 2) is 0.7 u_1 + 0.3 u_2"},
    {"rows=4 dim=1 alpha=0.7", 9, 0, 0, (0.7 * 2 + 0.3 * 1) / 0.3, "(2, 1) is not (1, 2)"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const double alpha = p->set[ALPHA].real;
    if (alpha == 0 || alpha == 0.5 || alpha == 1)
        return pe_fail(
            err, POSENC_ERROR_SETTING,
            "hierarchical: alpha=%g gives different positions equal rows; it must not be 0, 0.5 or 1", alpha);
    return POSENC_OK;
}

static posenc_status accept(const pe_problem *p, double low, double high, int whole, posenc_error *err)
{
    const double n = (double)p->set[ROWS].integer;
    if (!whole)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "hierarchical: positions must be whole numbers; they are split into digits");
    if (low < 0)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "hierarchical: position %.0f is negative; positions begin with 0", low);
    if (high >= n * n)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "hierarchical: position %.0f needs more than rows=%.0f; positions run from 0 to "
                       "rows^2 - 1 = %.0f",
                       high, n, n * n - 1);
    return POSENC_OK;
}

/* q = (alpha p_high + (1 - alpha) p_low - alpha p_0) / (1 - alpha): the three rows of one position, by
   weight. Below n the leading digit is 0, its row and the last one cancel, and p_low remains, with weight
   1. */
typedef struct mixture {
    int64_t row[3];
    double  weight[3];
    int     count;
} mixture;

static mixture mixture_of(const pe_problem *p, double pos)
{
    const int64_t n = p->set[ROWS].integer, high = (int64_t)pos / n, low = (int64_t)pos % n;
    const double  share = p->set[ALPHA].real / (1 - p->set[ALPHA].real);
    return (mixture){{low, high, 0}, {1, share, -share}, high ? 3 : 1};
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer;
    for (int64_t s = 0; s < n; s++) {
        const mixture m = mixture_of(p, pos[s]);
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0;
            for (int i = 0; i < m.count; i++)
                sum += m.weight[i] * par[TABLE][m.row[i] * dim + d];
            out[s * dim + d] = sum;
        }
    }
}

static void rows_back(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[])
{
    const int64_t dim = p->set[DIM].integer;
    for (int64_t s = 0; dpar[TABLE] && s < n; s++) {
        const mixture m = mixture_of(p, pos[s]);
        for (int i = 0; i < m.count; i++)
            for (int64_t d = 0; d < dim; d++)
                dpar[TABLE][m.row[i] * dim + d] += m.weight[i] * dout[s * dim + d];
    }
}

const pe_encoding pe_hierarchical = {
    .info.name      = "hierarchical",
    .info.place     = POSENC_PLACE_INPUT,
    .info.title     = "learned table extended to the square of its length",
    .info.formula   = "u_k = frac{T_k − α T_0}{1 − α}\n"
                      "p = α u_{⌊ P / n ⌋} + (1 − α) u_{P mod n}",
    .info.symbols   = "T_k: row k of the learned table\n"
                      "u_k: the row of digit k\n"
                      "k: a digit, counted from 0\n"
                      "α: setting alpha: the weight of the leading digit\n"
                      "n: how many rows the table has: positions have two digits to base n",
    .info.paper     = "kexue.fm/archives/7947",
    .info.models    = "bert4keras, Su's long BERT",
    .info.beyond    = "n trained rows make n^2 positions, where the table ends; the new ones want tuning.",
    .info.pictures  = "heatmap,curves,similarity,hierarchy",
    .info.at_length = "rows=floor(sqrt(Lk-1))+1",
    .model          = "rows=L sigma=0.5",
    /* Rows beyond the table's are p_low + share (p_high - p_0). */
    .operations      = "3*(Lq-min(Lq,rows))*dim",
    .check           = check,
    .input.width     = "dim",
    .input.accept    = accept,
    .input.rows      = rows,
    .input.rows_back = rows_back,
    PE_TABLES(settings, params, examples),
};
