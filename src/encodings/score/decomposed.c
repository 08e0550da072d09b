/* SPDX-License-Identifier: MIT */
/*
 * decomposed: a vector for the rows between two tokens of a grid, and one for the columns
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + q_i . Rh[y] + q_i . Rw[x]
 *          y = row_i max(1, rows_k / rows_q) - row_j max(1, rows_q / rows_k)
 *              + (rows_k - 1) max(1, rows_q / rows_k), without its fraction; x the same along columns
 * Learns   Rh [2 max(rows_q, rows_k) - 1, D], Rw [2 max(columns_q, columns_k) - 1, D], shared by the heads
 * Source   Li et al. 2022, arXiv:2112.01526 (MViTv2), section 4.1; SAM, ViTDet, GOT-OCR;
 *          facebookresearch/mvit, attention.py; transformers, modeling_sam.py
 *
 * A grid of r x c cells needs r + c vectors for a query, not r c, and tables of 2r - 1 and 2c - 1 rows. The
 * query is the one before the factor: `scale` does not act on these products.
 *
 * Tokens stand row by row. `prefix` tokens before the grid (MViTv2's class token) have no place on it: pairs
 * with one of them have q.k alone. Where keys are pooled more than queries, or less, key_grid is their grid,
 * and distances are counted in cells of the finer one. A table of another size than the grid's belongs to the
 * caller: the code of SAM resizes it along its rows, linearly, before it is used.
 */
#include "encodings/encoding.h"

enum { GRID, KEY_GRID, PREFIX, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"grid", "list", "14x14", "1..1048576", "rows and columns of the queries"},
    {"key_grid", "list", "0x0", "0..1048576", "rows and columns of the keys; 0x0: those of the queries"},
    {"prefix", "integer", "0", "0..1048576", "tokens before the grid, which have no place on it"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial tables"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { ROWS, COLUMNS }; /* ORDER params; axes of a grid */
/* 2 max(a, b) - 1, of a grid's rows or columns; 0 of the keys gives 2 a - 1. */
#define BOTH(axis)                                                                                           \
    "grid" axis "+key_grid" axis "+sqrt((grid" axis "-key_grid" axis ")*(grid" axis "-key_grid" axis "))-1," \
    "D"
static const posenc_param_info params[] = {
    {"Rh", BOTH("1"), "normal(0, sigma)", "multiplied with queries, by rows between", 1},
    {"Rw", BOTH("2"), "normal(0, sigma)", "multiplied with queries, by columns between", 1},
    {0},
};
static_assert(PE_ROWS(params) == COLUMNS + 1, "ORDER params");

static const posenc_example examples[] = {
    {"grid=2x3", 0, 5, 0, 0, "without content the place adds nothing"},
    {0},
};

static int64_t cells(const pe_problem *p, int axis, int of_keys)
{
    const pe_value *keys = &p->set[KEY_GRID];
    return of_keys && keys->items[axis] ? keys->items[axis] : p->set[GRID].items[axis];
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[GRID].count == 2 && p->set[KEY_GRID].count == 2)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_SETTING,
        "decomposed: grid and key_grid have %d and %d numbers; give rows and columns, such as 14x14",
        p->set[GRID].count, p->set[KEY_GRID].count);
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const double prefix = (double)p->set[PREFIX].integer;
    const double q_end  = prefix + (double)cells(p, ROWS, 0) * (double)cells(p, COLUMNS, 0),
                 k_end  = prefix + (double)cells(p, ROWS, 1) * (double)cells(p, COLUMNS, 1);
    if (span->whole && span->q_low >= 0 && span->k_low >= 0 && span->q_high < q_end && span->k_high < k_end)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "decomposed: positions must be tokens of the grid after the prefix, whole numbers 0 to %.0f "
        "for queries and %.0f for keys; set grid",
        q_end - 1, k_end - 1);
}

/* The row of an axis's table for a query and a key at these cells. */
static int64_t row_of(const pe_problem *p, int axis, int64_t query, int64_t key)
{
    const double q = (double)cells(p, axis, 0), k = (double)cells(p, axis, 1);
    const double of_q = k > q ? k / q : 1, of_k = q > k ? q / k : 1;
    const double last = 2 * (q > k ? q : k) - 2,
                 at   = (double)query * of_q - (double)key * of_k + (k - 1) * of_k;
    return (int64_t)(at < 0 ? 0 : at > last ? last : at);
}

static int64_t cell_of(const pe_problem *p, double position, int axis, int of_keys)
{
    const double at = position - (double)p->set[PREFIX].integer;
    return axis == ROWS ? pe_index_row(at, cells(p, COLUMNS, of_keys))
                        : pe_index_column(at, cells(p, COLUMNS, of_keys));
}

enum {
    TOGETHER = 64
}; /* channels of a row that are read at once where the table is not copied: few queries */

/* q . row `at` of an axis's table */
static double product(const pe_problem *p, const double *const par[], int axis, int64_t at, const double q[])
{
    double sum = 0, piece[TOGETHER];
    for (int64_t d = 0; d < p->D; d += TOGETHER) {
        const int64_t n   = p->D - d < TOGETHER ? p->D - d : TOGETHER;
        const double *row = par[axis] ? par[axis] + at * p->D + d : piece;
        if (!par[axis])
            pe_read(p, par, axis, at * p->D + d, n, piece);
        for (int64_t i = 0; i < n; i++)
            sum += q[d + i] * row[i];
    }
    return sum;
}

/* The keys of a tile, beginning with c, that have row `at` of an axis's table for this query: one after the
   other in a row of the grid. */
static int64_t run_of(const pe_problem *p, const pe_tile *tile, int axis, int64_t query, int64_t c,
                      int64_t *at)
{
    const double first = (double)p->set[PREFIX].integer;
    int64_t      end   = c + 1;
    *at                = row_of(p, axis, query, cell_of(p, tile->k_pos[c], axis, 1));
    while (axis == ROWS && end < tile->cols && tile->k_pos[end] >= first &&
           row_of(p, axis, query, cell_of(p, tile->k_pos[end], axis, 1)) == *at)
        end++;
    return end;
}

static int stands_before(const pe_problem *p, double position)
{
    return position < (double)p->set[PREFIX].integer;
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    for (int64_t r = 0; r < tile->rows; r++) {
        double *to = x + r * tile->stride;
        memset(to, 0, (size_t)tile->cols * sizeof *to);
        for (int axis = ROWS; axis <= COLUMNS && !stands_before(p, tile->q_pos[r]); axis++) {
            const int64_t query = cell_of(p, tile->q_pos[r], axis, 0);
            for (int64_t c = 0, end, at; c < tile->cols; c = end) {
                if (stands_before(p, tile->k_pos[c])) {
                    end = c + 1;
                    continue;
                }
                end              = run_of(p, tile, axis, query, c, &at);
                const double sum = product(p, par, axis, at, tile->q + r * p->D);
                for (int64_t i = c; i < end; i++)
                    to[i] += sum;
            }
        }
    }
}

/* What one row of a table, times the query, has given to some keys goes back to both. */
static void give_back(const pe_problem *p, const double *const par[], const pe_tile *tile, int64_t r,
                      int axis, int64_t at, double dsum, double *const dpar[])
{
    const double *q = tile->q + r * p->D, *row = par[axis] + at * p->D;
    double *dq = tile->dq ? tile->dq + r * p->D : NULL, *drow = dpar[axis] ? dpar[axis] + at * p->D : NULL;
    for (int64_t d = 0; dq && d < p->D; d++)
        dq[d] += dsum * row[d];
    for (int64_t d = 0; drow && d < p->D; d++)
        drow[d] += dsum * q[d];
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    for (int64_t r = 0; r < tile->rows; r++) {
        const double *from = dx + r * tile->stride;
        for (int axis = ROWS; axis <= COLUMNS && !stands_before(p, tile->q_pos[r]); axis++) {
            const int64_t query = cell_of(p, tile->q_pos[r], axis, 0);
            for (int64_t c = 0, end, at; c < tile->cols; c = end) {
                end = c + 1;
                if (stands_before(p, tile->k_pos[c]))
                    continue;
                end         = run_of(p, tile, axis, query, c, &at);
                double dsum = 0;
                for (int64_t i = c; i < end; i++)
                    dsum += from[i];
                give_back(p, par, tile, r, axis, at, dsum, dpar);
            }
        }
    }
}

const pe_encoding pe_decomposed = {
    .info.name          = "decomposed",
    .info.place         = POSENC_PLACE_SCORE,
    .info.title         = "a vector for rows and one for columns between tokens of a grid",
    .info.formula       = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + q_i · H_y + q_i · W_x",
    .info.symbols       = "H_y: the learned vector of y rows between query and key\n"
                          "W_x: the learned vector of x columns between them\n"
                          "y: rows between query and key, counted from the most negative\n"
                          "x: columns between them, counted the same",
    .info.paper         = "arXiv:2112.01526",
    .info.models        = "MViTv2, ViTDet, SAM, GOT-OCR",
    .info.beyond        = "Each table ends with its grid: another grid needs resized tables and tuning.",
    .info.pictures      = "",
    .info.row_limit     = "grid",
    .info.at_length     = "grid=floor(sqrt(Lk-1))+1xfloor(sqrt(Lk-1))+1",
    .model              = "grid=4*Lx2 sigma=1/sqrt(D)",
    .check              = check,
    .attention.hook     = {.visit      = visit,
                           .visit_back = visit_back,
                           .content    = 1,
                           .learns     = 1 << ROWS | 1 << COLUMNS},
    .attention.in_place = 1 << ROWS | 1 << COLUMNS,
    .attention.reach    = reach,
    PE_TABLES(settings, params, examples),
};
