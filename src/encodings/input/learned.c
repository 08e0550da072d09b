/* SPDX-License-Identifier: MIT */
/*
 * Learned: a table with one vector per position
 *
 * Place    input: y = x + table[row]
 * Formula  row = offset + s for the s-th token,
 *          or the row number the caller gives for it (posenc_positions_fairseq)
 * Learns   table [rows, dim]
 * Source   Gehring et al. 2017, arXiv:1705.03122; Devlin et al. 2019 (BERT), arXiv:1810.04805; Radford et al.
 *          2018 (GPT)
 *
 * The table ends: a position at or beyond `rows` is an error here, never a clamp, a wrap or uninitialised
 * memory. Rows that training never saw stay as they were initialised, so `sigma` decides what a model does
 * beyond its training length. Initial sigma in use: 0.02 (BERT, ViT, Hugging Face's GPT-2), 0.01 (OpenAI's
 * GPT-2), dim^-0.5 (fairseq).
 *
 * Row padding_idx (fairseq, RoBERTa: 1) belongs to tokens that are no text: it starts as zero and gets no
 * gradient, so it stays what it is; a caller's table is read as it is brought. The first token of a text then
 * uses row padding_idx + 1, and a table for texts of L tokens has as many rows more.
 */
#include "encodings/encoding.h"

enum { DIM, PADDING_IDX, OFFSET, ROWS, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"padding_idx", "integer", "-1", "-1..", "row of padding: zero at the start, without gradient; -1: none"},
    {"offset", "integer", "padding_idx+1", "0..",
     "row of the first token where positions are a range (GPT-2: tokens already cached)"},
    {"rows", "integer", "L+offset", "1..", "positions in the table"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "rows,dim", "normal(0, sigma)", "one vector per position", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: row * dim + channel. */
static const posenc_example examples[] = {
    {"rows=10 dim=6", 2, 1, 0, 13, "row 2, channel 1 of a table of width 6"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t padding = p->set[PADDING_IDX].integer;
    if (padding >= p->set[ROWS].integer)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "learned: padding_idx=%lld must be one of the table's rows=%lld", (long long)padding,
                       (long long)p->set[ROWS].integer);
    return POSENC_OK;
}

static int is_padding(const pe_problem *p, int64_t row)
{
    return row == p->set[PADDING_IDX].integer; /* -1 is no row */
}

static double first(const pe_problem *p)
{
    return (double)p->set[OFFSET].integer;
}

static posenc_status accept(const pe_problem *p, double low, double high, int whole, posenc_error *err)
{
    if (!whole)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "learned: positions must be whole numbers; a table has no row between two rows");
    if (low < 0)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "learned: position %.0f is negative; the rows of a table begin with 0", low);
    if (high >= (double)p->set[ROWS].integer)
        return pe_fail(
            err, POSENC_ERROR_RANGE,
            "learned: position %.0f is outside the table of rows=%lld; positions run from 0 to %lld", high,
            (long long)p->set[ROWS].integer, (long long)p->set[ROWS].integer - 1);
    return POSENC_OK;
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const double x = p->set[SIGMA].real * pe_random_normal(rng);
    return is_padding(p, i / p->set[DIM].integer) ? 0 : x;
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer;
    for (int64_t s = 0; s < n; s++)
        memcpy(out + s * dim, par[TABLE] + (int64_t)pos[s] * dim, (size_t)dim * sizeof *out);
}

/* Scatter: a row used twice gets both cotangents. */
static void rows_back(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[])
{
    const int64_t dim = p->set[DIM].integer;
    for (int64_t s = 0; dpar[TABLE] && s < n; s++)
        for (int64_t d = 0; d < dim && !is_padding(p, (int64_t)pos[s]); d++)
            dpar[TABLE][(int64_t)pos[s] * dim + d] += dout[s * dim + d];
}

const pe_encoding pe_learned = {
    .info.name       = "learned",
    .info.place      = POSENC_PLACE_INPUT,
    .info.title      = "learned table of absolute positions",
    .info.formula    = "p = T_{P} , T ∈ ℝ^{rows × d}",
    .info.symbols    = "T: the learned table, one row per position\n"
                       "ℝ: the real numbers",
    .info.paper      = "arXiv:1810.04805",
    .info.models     = "BERT, GPT-1, GPT-2, ALBERT, OPT, ViT",
    .info.beyond     = "The table ends: positions beyond it have no row, and untrained rows mean nothing.",
    .info.pictures   = "heatmap,curves,similarity,similarity2d,onehot",
    .info.row_limit  = "rows",
    .model           = "rows=8*L sigma=0.5",
    .check           = check,
    .init            = init,
    .input.width     = "dim",
    .input.first     = first,
    .input.accept    = accept,
    .input.rows      = rows,
    .input.rows_back = rows_back,
    PE_TABLES(settings, params, examples),
};
