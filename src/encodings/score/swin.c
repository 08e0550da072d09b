/* SPDX-License-Identifier: MIT */
/*
 * Swin: a learned number for each offset on a window
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + table[x,h]
 *          x = (dy + rows - 1) * (2 columns - 1) + dx + columns - 1          y = floor(P / columns), x = P mod columns
 *          dy, dx = query less key
 * Learns   table [(2 rows - 1)(2 columns - 1), H]
 * Source   Liu et al. 2021, arXiv:2103.14030, section 3.2; microsoft/Swin-Transformer, swin_transformer.py
 *
 * Attention stays within windows of rows x columns tokens, row by row; a batch item is one window, and its tokens
 * stand at 0 .. rows*columns-1. Both axes keep their direction. A pair further apart than the window is high has
 * no number, and a run that needs one is refused.
 *
 * The mask of shifted windows (-100 in the authors' code) belongs to the caller: an explicit mask. The authors' truncated
 * normal is cut at +-2, a hundred deviations out: it is a normal. A window of one column is a table by signed distance.
 */
#include "encodings/encoding.h"

#include <math.h>

#include "engine/index.h"

enum { WINDOW, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"window", "list", "7x7", "1..1048576", "rows and columns"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "(2*window1-1)*(2*window2-1),H", "normal(0, sigma)",
     "what an offset adds to the scores of a head", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the bias is x * H + h. */
static const posenc_example examples[] = {
    {"H=1 window=2x3", 0, 0, 5, 0, "authors' relative_position_index: first token to last, offset (-1,-2)"},
    {"H=1 window=2x3", 0, 5, 0, 14, "the same, last to first"},
    {"H=2 window=2x3", 1, 3, 2, 21, "row 1 left to row 0 right: offset (1,-2), x = 10"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[WINDOW].count == 2)
        return POSENC_OK;
    return pe_fail(err, POSENC_SETTING, "swin: window has %d numbers; give rows and columns, such as 7x7",
                   p->set[WINDOW].count);
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    (void)index, (void)i;
    return p->set[SIGMA].real * pe_normal(rng);
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const int64_t rows = p->set[WINDOW].items[0], columns = p->set[WINDOW].items[1];
    const int64_t down = pe_index_row(span->q_high, columns) - pe_index_row(span->k_low, columns);
    const int64_t up   = pe_index_row(span->k_high, columns) - pe_index_row(span->q_low, columns);
    if (span->whole && down < rows && up < rows)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_RANGE,
        "swin: positions must be whole and within a window of %lldx%lld tokens, 0 to %lld; set window",
        (long long)rows, (long long)columns, (long long)(rows * columns - 1));
}

/* Where on the table the pair (r,c) of a tile is read. */
static int64_t pair_at(const pe_problem *p, const pe_tile *tile, int64_t r, int64_t c)
{
    const int64_t rows = p->set[WINDOW].items[0], columns = p->set[WINDOW].items[1];
    const double  P = tile->q_pos[r], Q = tile->k_pos[c];
    const int64_t dy = pe_index_clip(pe_index_row(P, columns) - pe_index_row(Q, columns), 1 - rows, rows - 1);
    const int64_t dx = pe_index_column(P, columns) - pe_index_column(Q, columns);
    return ((dy + rows - 1) * (2 * columns - 1) + dx + columns - 1) * p->H + tile->h;
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++)
            x[r * tile->stride + c] = par[TABLE][pair_at(p, tile, r, c)];
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    (void)par;
    for (int64_t r = 0; dpar[TABLE] && r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++)
            dpar[TABLE][pair_at(p, tile, r, c)] += dx[r * tile->stride + c];
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale = 1.0 / sqrt((double)p->D);
    s->hook  = (pe_tile_hook){.visit = visit, .visit_back = visit_back};
}

const pe_encoding pe_swin = {
    .info =
        {
            .name          = "swin",
            .place         = POSENC_SCORE,
            .title         = "a learned bias per offset on a window",
            .paper         = "arXiv:2103.14030",
            .models        = "Swin Transformer, BEiT",
            .pictures      = "bias",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .params        = params,
            .param_count   = PE_ROWS(params),
            .row_limit     = "window",
        },
    .model    = "window=4*Lx2 sigma=0.1",
    .examples = examples,
    .check    = check,
    .init     = init,
    .terms    = terms,
    .reach    = reach,
};
