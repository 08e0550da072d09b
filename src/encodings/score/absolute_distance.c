/* SPDX-License-Identifier: MIT */
/*
 * absolute_distance: a learned number for each distance without its sign, along a line or on a grid
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + table[x,h] / scale
 *          x = |dy| * columns + |dx|     on a grid, row by row; dy, dx: rows and columns between the two
 *          x = |t|                       along a line, which is a grid of one column
 * Learns   table [rows*columns, H]
 * Source   Graham et al. 2021, arXiv:2104.01136 (LeViT), section 3.4 "attention bias", and their code:
 * divide=no; lucidrains/vit-pytorch, levit.py: divide=yes
 *
 * The direction is lost, and each distance has its own number: no buckets, nothing beyond the table; a run
 * that goes there is refused. Some tutorials show this code under the name of T5.
 *
 * lucidrains adds the bias before it multiplies by 1/scale once more, so what reaches the softmax is table /
 * scale: sqrt(D) times the table. That changes nothing but what a learning rate and an initial size mean:
 * divide=no adds the table as it is, and as LeViT's authors and transformers do.
 */
#include "encodings/encoding.h"

enum { GRID, DIVIDE, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"grid", "list", "Lx1", "1..1073741824", "rows and columns; one column is a line"},
    {"divide", "flag", "yes", "yes|no",
     "the table is divided by the scale before it is added, as lucidrains has it; no: LeViT itself"},
    {"sigma", "real", "1", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "grid1*grid2,H", "normal(0, sigma)", "b: what a distance adds to the scores of a head", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the number at x is x * H + h. */
static const posenc_example examples[] = {
    {"H=2 grid=9x1 D=4", 1, 5, 2, 14, "a line: 3 apart, (3*2 + 1) * sqrt(4)"},
    {"H=1 grid=3x3 divide=no", 0, 8, 0, 8, "opposite corners: 2 rows and 2 columns apart, 2*3 + 2"},
    {"H=1 grid=3x3 divide=no", 0, 2, 3, 5, "1 row and 2 columns apart, though neighbours in the text"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[GRID].count == 2)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "absolute_distance: grid has %d numbers; give rows and columns, such as 14x14",
                   p->set[GRID].count);
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Along a line masks by distance count; on a grid every pair must be within the table. */
static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    const int64_t rows = p->set[GRID].items[0], columns = p->set[GRID].items[1];
    const int64_t back  = columns == 1
                              ? span->t_high
                              : pe_index_row(span->q_high, columns) - pe_index_row(span->k_low, columns);
    const int64_t ahead = columns == 1
                              ? -span->t_low
                              : pe_index_row(span->k_high, columns) - pe_index_row(span->q_low, columns);
    if (span->whole && back < rows && ahead < rows)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_RANGE,
                   "absolute_distance: positions must be whole numbers less than %lld rows of %lld apart, "
                   "but keys lie up to %lld rows back and %lld ahead; set grid",
                   (long long)rows, (long long)columns, (long long)back, (long long)ahead);
}

static double factor(const pe_problem *p)
{
    return p->set[DIVIDE].integer ? 1 / p->scale : 1;
}

static int64_t number_at(const pe_problem *p, int64_t h, int64_t dy, int64_t dx)
{
    const int64_t x = magnitude(dy) * p->set[GRID].items[1] + magnitude(dx);
    return pe_index_clip(x, 0, p->set[GRID].items[0] * p->set[GRID].items[1] - 1) * p->H + h;
}

static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = number_at(p, h, t0 + i, 0);
}

/* Rows and columns of some keys of a tile, found once for all its queries. */
enum { TOGETHER = 64 };
typedef struct some_keys {
    int64_t count, row[TOGETHER], column[TOGETHER];
} some_keys;

static some_keys keys_from(const pe_problem *p, const pe_tile *tile, int64_t first)
{
    const int64_t columns = p->set[GRID].items[1], rest = tile->cols - first;
    some_keys     y = {.count = rest < TOGETHER ? rest : TOGETHER};
    for (int64_t c = 0; c < y.count; c++) {
        y.row[c]    = pe_index_row(tile->k_pos[first + c], columns);
        y.column[c] = pe_index_column(tile->k_pos[first + c], columns);
    }
    return y;
}

/* Which numbers of the table query r of the tile has with these keys. */
static void find_numbers(const pe_problem *p, const pe_tile *tile, int64_t r, const some_keys *keys,
                         int64_t at[])
{
    const int64_t columns = p->set[GRID].items[1];
    const int64_t row     = pe_index_row(tile->q_pos[r], columns),
                  column  = pe_index_column(tile->q_pos[r], columns);
    for (int64_t c = 0; c < keys->count; c++)
        at[c] = number_at(p, tile->h, row - keys->row[c], column - keys->column[c]);
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    const double by = factor(p);
    int64_t      at[TOGETHER];
    for (int64_t first = 0; first < tile->cols; first += TOGETHER) {
        const some_keys keys = keys_from(p, tile, first);
        for (int64_t r = 0; r < tile->rows; r++) {
            find_numbers(p, tile, r, &keys, at);
            for (int64_t c = 0; c < keys.count; c++)
                x[r * tile->stride + first + c] = par[TABLE][at[c]] * by;
        }
    }
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    const double by = factor(p);
    int64_t      at[TOGETHER];
    for (int64_t first = 0; dpar[TABLE] && first < tile->cols; first += TOGETHER) {
        const some_keys keys = keys_from(p, tile, first);
        for (int64_t r = 0; r < tile->rows; r++) {
            find_numbers(p, tile, r, &keys, at);
            for (int64_t c = 0; c < keys.count; c++)
                dpar[TABLE][at[c]] += dx[r * tile->stride + first + c] * by;
        }
    }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    if (p->set[GRID].items[1] == 1)
        s->bias = (pe_by_distance){.index = index_of, .param = TABLE, .divided = p->set[DIVIDE].integer == 1};
    else
        s->hook = (pe_tile_hook){.visit = visit, .visit_back = visit_back};
}

const pe_encoding pe_absolute_distance = {
    .info.name        = "absolute_distance",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "a learned bias per unsigned distance, 1-D or 2-D",
    .info.formula     = "S_{h,i,j} = s q_i · k_j + frac{1}{s} T_{x,h} , x = columns | dy | + | dx |",
    .info.symbols     = "s: the factor of products, 1 / √D\n"
                        "T_{x,h}: the learned number of class x in head h\n"
                        "x: the class of a pair of cells: how far apart they are\n"
                        "dy: rows between query and key\n"
                        "dx: columns between query and key\n"
                        "columns: columns of the grid, setting grid",
    .info.paper       = "arXiv:2104.01136",
    .info.models      = "LeViT (divide=no), vit-pytorch's LeViT",
    .info.beyond      = "The table ends: a distance beyond it has no number and is refused.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .info.row_limit   = "grid",
    .model            = "grid=8*Lx1 sigma=0.1/sqrt(D)",
    /* The division by the scale, once for each number of the table. */
    .operations      = "divide*H*grid1*grid2",
    .check           = check,
    .attention.terms = terms,
    .attention.reach = reach,
    PE_TABLES(settings, params, examples),
};
