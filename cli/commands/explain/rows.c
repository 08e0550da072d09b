/* SPDX-License-Identifier: MIT */
/*
 * rows.c: a row of an input encoding by hand; of one that is made of waves its frequencies and its steps
 *
 * Which channels are the sine and the cosine of one frequency is found in the rows themselves (posenc_rows):
 * neighbours, or the halves of a row, that go around a circle evenly. So it holds for every setting, and an
 * encoding that has no such pairs says nothing of them. The step of s positions is found in the rows as well,
 * from several positions, and compared with its formula and with the rotation of rope by as much.
 */
#include "base/shared/pi.h"
#include "cli/commands/explain/explain.h"

#include <math.h>
#include <string.h>

static const double places[] = {0, 3, 10, 100, 1000}; /* from where a step is taken; 1 may be padding */
enum { PLACES = sizeof places / sizeof *places, MOST_SHOWN = 32, TEXT = 160 };

typedef struct table_row {
    cli_explanation *x;
    pe_calc         *p;
    int64_t          d, M; /* width, waves */
    int              coordinates;
    int64_t         *sine, *cosine; /* [M]: their channels */
    double          *w;             /* [M] radians per position */
    double          *row, *sum, *vector;
    double          *cells;                            /* [length, d]: positions 0 .. length-1 */
    double          *step;                             /* [d,d]: from a row to that s positions on */
    double           moved, formula, reached, rotated; /* what is wrong with it */
} table_row;

/* ---------------------------------------------------------------- the library's ------------- */

/* y [n,d] = from (NULL: nothing) plus the rows of these positions. */
static posenc_status read_rows(table_row *r, double *y, const double *from, posenc_positions pos, int64_t n,
                               posenc_error *err)
{
    const int64_t  shape[] = {1, n, r->d};
    posenc_tensor  to      = posenc_tensor_contiguous(y, POSENC_DTYPE_F64, 3, shape);
    posenc_rows_in in      = {.size = sizeof in, .pos = pos, .params = r->p->params};
    if (from)
        in.x = posenc_tensor_contiguous((double *)from, POSENC_DTYPE_F64, 3, shape);
    return posenc_rows(r->p->plan, &in, &to, &r->p->work, err);
}

/* The row of one position on a line, real or not, as far as there is one. */
static int find_row(table_row *r, double *y, double position)
{
    const cli_numbers at = {1, {0}, {position}};
    return !pe_calc_failed(r->p) && !read_rows(r, y, NULL, cli_explain_at(r->x, &at, 1, 0, 1), 1, NULL);
}

/* ---------------------------------------------------------------- waves --------------------- */

/* Do both channels go around the unit circle by w per position, from (0, 1) on? rows [4,d]. */
static int is_wave(const table_row *r, const double *rows, const double *at, int64_t s, int64_t c, double *w)
{
    *w = atan2(rows[r->d + s], rows[r->d + c]) / at[1];
    for (int n = 0; n < 4; n++)
        if (fabs(rows[n * r->d + s] - sin(at[n] * *w)) > 1e-9 ||
            fabs(rows[n * r->d + c] - cos(at[n] * *w)) > 1e-9)
            return 0;
    return *w > 0;
}

/* The channels of wave k in an order of channels: neighbours or halves, the sine or the cosine first. */
static void channels_of(const table_row *r, int order, int64_t k, int64_t *s, int64_t *c)
{
    const int64_t half = r->d / 2, first = order & 1 ? k : 2 * k, second = order & 1 ? k + half : 2 * k + 1;
    *s = order & 2 ? second : first;
    *c = order & 2 ? first : second;
}

static void find_waves(table_row *r)
{
    static const double at[]  = {0, 0.25, 2.5, 20.5}; /* no whole number but 0: those may be padding */
    double             *rows  = cli_explain_numbers(r->p, 4 * r->d);
    const int64_t       half  = r->d / 2;
    int                 found = r->coordinates == 1;
    for (int n = 0; n < 4 && found; n++)
        found = find_row(r, rows + n * r->d, at[n]);
    for (int order = 0; order < 4 && found && r->M < half; order++)
        for (r->M = 0; r->M < half; r->M++) {
            channels_of(r, order, r->M, &r->sine[r->M], &r->cosine[r->M]);
            if (!is_wave(r, rows, at, r->sine[r->M], r->cosine[r->M], &r->w[r->M]))
                break;
        }
    r->M = r->M < half || !found ? 0 : half;
}

/* ---------------------------------------------------------------- steps --------------------- */

/* The step of s positions from n on: of each wave the turn that takes (sine, cosine) to the later ones. */
static void find_step(table_row *r, double *step, double n)
{
    const int64_t d    = r->d;
    double       *from = cli_explain_numbers(r->p, d), *to = cli_explain_numbers(r->p, d);
    if (!find_row(r, from, n) || !find_row(r, to, n + (double)r->x->step))
        return;
    for (int64_t k = 0; k < r->M; k++) {
        const int64_t s = r->sine[k], c = r->cosine[k];
        const double  a = to[c] * from[c] + to[s] * from[s], b = to[s] * from[c] - to[c] * from[s];
        step[s * d + s] = step[c * d + c] = a;
        step[s * d + c]                   = b;
        step[c * d + s]                   = -b;
    }
}

/* step[sine or cosine of wave k][sine or cosine] by its formula. */
static void write_formula(const table_row *r, double *step)
{
    for (int64_t k = 0; k < r->M; k++) {
        const int64_t s = r->sine[k], c = r->cosine[k];
        const double  angle = (double)r->x->step * r->w[k];
        step[s * r->d + s] = step[c * r->d + c] = cos(angle);
        step[s * r->d + c]                      = sin(angle);
        step[c * r->d + s]                      = -sin(angle);
    }
}

/* The transposed rotation of rope at position k, with these frequencies: its pairs are (sine, cosine). */
static void write_rotation(table_row *r, double *step)
{
    pe_calc       rope = pe_calc_new("explain");
    const int64_t D = 2 * r->M, shape[] = {1, 1, D, D};
    double       *units = cli_explain_numbers(r->p, D * D), *turned = cli_explain_numbers(r->p, D * D);
    rope.dims = (posenc_dims){.B = 1, .H = 1, .G = 1, .Lq = D, .Lk = D, .D = D, .Dv = D};
    pe_calc_encoding(&rope, "rope[schedule=explicit]", NULL);
    pe_calc_params(&rope, POSENC_DTYPE_F64);
    pe_calc_plan(&rope, POSENC_RUN_FORWARD);
    for (int64_t k = 0; k < r->M && !pe_calc_failed(&rope); k++)
        pe_calc_put(&rope.params[0], k, r->w[k]);
    for (int64_t i = 0; i < D && units; i++)
        units[i * D + i] = 1;
    const cli_numbers      at = {1, {0}, {(double)r->x->step}};
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = posenc_tensor_contiguous(units, POSENC_DTYPE_F64, 4, shape),
                                 .to_q      = posenc_tensor_contiguous(turned, POSENC_DTYPE_F64, 4, shape),
                                 .q_pos     = cli_explain_at(r->x, &at, 1, 0, D),
                                 .direction = 1,
                                 .params    = rope.params};
    if (!pe_calc_failed(r->p) && !pe_calc_failed(&rope))
        posenc_rotate(rope.plan, &io, &rope.work, &rope.err);
    for (int64_t i = 0; i < D * D && !pe_calc_failed(&rope); i++) {
        const int64_t *row = i / D % 2 ? r->cosine : r->sine, *column = i % D % 2 ? r->cosine : r->sine;
        step[row[i / D / 2] * r->d + column[i % D / 2]] = turned[i]; /* row i of `turned` is R e_i: R^T */
    }
    cli_calc_said(r->p, cli_calc_end(&rope));
}

static void find_steps(table_row *r)
{
    const int64_t n     = r->d * r->d;
    double       *other = cli_explain_numbers(r->p, n), *formula = cli_explain_numbers(r->p, n),
           *rotation = cli_explain_numbers(r->p, n), *next = cli_explain_numbers(r->p, r->d),
           *by = cli_explain_numbers(r->p, r->d);
    r->step    = cli_explain_numbers(r->p, n);
    if (pe_calc_failed(r->p))
        return;
    find_step(r, r->step, places[0]);
    for (int k = 1; k < PLACES; k++) {
        find_step(r, other, places[k]);
        r->moved = fmax(r->moved, cli_explain_difference(r->step, other, n));
    }
    write_formula(r, formula);
    write_rotation(r, rotation);
    r->formula = cli_explain_difference(r->step, formula, n);
    r->rotated = cli_explain_difference(r->step, rotation, n);
    for (int64_t i = 0; i < r->d; i++)
        by[i] = cli_explain_dot(r->step + i * r->d, r->row, r->d);
    if (find_row(r, next, r->x->position.real[0] + (double)r->x->step))
        r->reached = cli_explain_difference(next, by, r->d);
}

/* ---------------------------------------------------------------- shown --------------------- */

static void show_frequency(const table_row *r)
{
    const posenc_encoding_info *info = posenc_encoding_part(r->p->e, POSENC_PLACE_INPUT);
    const double                base = cli_explain_setting(r->x, info, "base");
    const int64_t               k    = r->M > 1;
    const double                w    = pow(base, -2 * (double)k / (double)r->d);
    if (fabs(r->w[k] - w) <= 1e-12 * w)
        cli_sheet_text(&r->x->sheet, "ω_%lld = %.12g^(-2 * %lld / %lld) = %.*g", (long long)k, base,
                       (long long)k, (long long)r->d, r->x->sheet.digits + 1, w);
}

static void show_waves(table_row *r)
{
    static const cli_sheet_column columns[] = {{"wave", "k", CLI_SHEET_PLAIN},
                                               {"sine", "SINE", CLI_SHEET_PLAIN},
                                               {"cosine", "COSINE", CLI_SHEET_PLAIN},
                                               {"frequency", "ω_k", CLI_SHEET_SIGNIFICANT},
                                               {"period", "2pi/ω", CLI_SHEET_SIGNIFICANT},
                                               {"angle", "P ω_k", CLI_SHEET_SIGNIFICANT},
                                               {"sin", "sin", CLI_SHEET_FIXED},
                                               {"cos", "cos", CLI_SHEET_FIXED}};
    enum { COUNT = sizeof columns / sizeof *columns };
    double *table = cli_explain_numbers(r->p, r->M * COUNT), P = r->x->position.real[0];
    int64_t rows = 0;
    for (int64_t k = 0; k < r->M && table; k++) {
        const double row[] = {
            (double)k,           (double)r->sine[k], (double)r->cosine[k], r->w[k],
            PE_TWO_PI / r->w[k], P * r->w[k],        r->row[r->sine[k]],   r->row[r->cosine[k]]};
        if (r->x->sheet.json || cli_explain_is_shown(k, r->M))
            memcpy(&table[rows++ * COUNT], row, sizeof row);
    }
    cli_sheet_title(&r->x->sheet, "The waves at position P = %g", P);
    show_frequency(r);
    cli_sheet_text(&r->x->sheet,
                   "Two channels are the sine and the cosine of P ω_k; they repeat every 2 pi / ω_k "
                   "positions:");
    if (table)
        cli_calc_said(r->p, cli_sheet_table(&r->x->sheet, "waves", columns, COUNT, table, rows));
    if (rows < r->M)
        cli_sheet_text(&r->x->sheet, "%lld of %lld waves; --json has all", (long long)rows, (long long)r->M);
}

static void show_row(table_row *r)
{
    cli_sheet *s = &r->x->sheet;
    cli_sheet_title(s, "The row at position P = %s", cli_explain_place(r->x, r->coordinates));
    cli_sheet_vector(s, "row", "p, posenc_rows", r->row, r->d);
    if (!r->x->vector.count)
        return;
    cli_sheet_vector(s, "vector", "x", r->vector, r->d);
    cli_sheet_vector(s, "sum", "x + p", r->sum, r->d);
}

/* A column of the cells for each number of a list of channels (NULL: all of them). */
static void show_cells(table_row *r, const char *key, const char *letter, const int64_t *channels,
                       int64_t count)
{
    char             heads[MOST_SHOWN][TEXT / 8];
    cli_sheet_column columns[MOST_SHOWN + 1] = {{"position", "POSITION", CLI_SHEET_PLAIN}};
    const int64_t    width = count + 1, length = r->x->length;
    double          *table = cli_explain_numbers(r->p, length * width);
    for (int64_t k = 0; k < count; k++) {
        snprintf(heads[k], sizeof heads[k], "%s%lld", letter, (long long)k);
        columns[k + 1] = (cli_sheet_column){heads[k], heads[k], CLI_SHEET_FIXED};
    }
    for (int64_t i = 0; i < length * width && table; i++) {
        const int64_t P = i / width, k = i % width - 1;
        table[i] = k < 0 ? (double)P : r->cells[P * r->d + (channels ? channels[k] : k)];
    }
    if (table)
        cli_calc_said(r->p, cli_sheet_table(&r->x->sheet, key, columns, (int)width, table, length));
}

/* Why no step follows: a row of odd width has a channel without a partner, and a wide matrix is not made. */
static void show_rest(table_row *r)
{
    if (r->M && r->d % 2)
        cli_sheet_text(
            &r->x->sheet,
            "Channel %lld is in no pair of sine and cosine, so no matrix takes this row to another; "
            "give an even --dim to see the matrix of a step.",
            (long long)r->d - 1);
    else if (r->M && !r->step)
        cli_sheet_text(&r->x->sheet, "The matrix of a step is shown for --dim up to %d.", CLI_EXPLAIN_WIDEST);
}

static void show_tables(table_row *r)
{
    if (!r->cells)
        return;
    if (r->M) {
        cli_sheet_title(&r->x->sheet, "sin(P ω_k)");
        show_cells(r, "sines", "k=", r->sine, r->M);
        cli_sheet_title(&r->x->sheet, "cos(P ω_k)");
        show_cells(r, "cosines", "k=", r->cosine, r->M);
    }
    cli_sheet_title(&r->x->sheet, "The rows, channel by channel");
    show_cells(r, "rows", "p_", NULL, r->d);
}

static void show_step(table_row *r)
{
    cli_sheet *s = &r->x->sheet;
    if (!r->step)
        return;
    cli_sheet_title(s, "The step from P to P + s, s = %lld", (long long)r->x->step);
    cli_sheet_text(
        s, "sin((P + s) ω) = cos(s ω) sin(P ω) + sin(s ω) cos(P ω), cos((P + s) ω) = -sin(s ω) sin(P ω) + "
           "cos(s ω) cos(P ω): a matrix M, a block for each wave, found in the rows:");
    if (!cli_sheet_matrix(s, "step", "", r->step, r->d, r->d))
        cli_sheet_text(s, "M has %lld x %lld numbers, more than a line takes; --json has all",
                       (long long)r->d, (long long)r->d);
    cli_sheet_residual(s, "step_reached", "M p(P) less p(P + s)", r->reached);
    cli_sheet_residual(s, "step_formula", "M less its formula", r->formula);
    cli_sheet_residual(s, "orthogonality", "M^T M less I", cli_explain_orthogonality(r->step, r->d));
    cli_sheet_text(s, "Does it depend on s alone? M found at P = 3, 10, 100, 1000 less M found at 0:");
    cli_sheet_residual(s, "step_moved", "they differ by", r->moved);
    cli_sheet_text(
        s, "Its transpose, less the rotation of rope by s positions at these frequencies (posenc_rotate):");
    cli_sheet_residual(s, "step_rotation", "M^T less R(s)", r->rotated);
}

/* ---------------------------------------------------------------- all ----------------------- */

static void make(table_row *r)
{
    const int64_t dim = r->x->dim ? r->x->dim : r->x->vector.count ? r->x->vector.count : 4;
    int64_t       L   = r->x->length;
    for (int i = 0; i < r->x->position.count; i++)
        L = r->x->position.real[i] < (double)L ? L : (int64_t)r->x->position.real[i] + 1;
    const posenc_dims dims = {
        .B = 1, .H = 1, .G = 1, .Lq = L, .Lk = L, .D = dim, .Dv = dim, .d_model = dim, .L = L};
    cli_explain_plan(r->x, &dims, POSENC_RUN_FORWARD);
    if (pe_calc_failed(r->p))
        return;
    r->d           = posenc_rows_width(r->p->plan);
    r->coordinates = posenc_rows_coordinates(r->p->e);
    r->row         = cli_explain_numbers(r->p, 2 * r->d);
    r->sum         = r->row ? r->row + r->d : NULL;
    r->vector      = cli_explain_vector(r->x, r->d);
    r->sine        = pe_calc_block(r->p, 2 * (size_t)r->d * sizeof *r->sine);
    r->cosine      = r->sine ? r->sine + r->d : NULL;
    r->w           = cli_explain_numbers(r->p, r->d);
    if (r->x->length && r->d > MOST_SHOWN)
        pe_calc_refuse(r->p, "a table of %lld channels is for posenc encode; --length is for --dim up to %d",
                       (long long)r->d, MOST_SHOWN);
}

/* Numbers where one is a position: a range may begin at another row (fairseq's). */
static posenc_positions all_positions(table_row *r)
{
    const int64_t L    = r->x->length;
    posenc_tensor list = pe_calc_make(r->p, POSENC_DTYPE_F64, 1, &L);
    for (int64_t i = 0; i < L && list.data; i++)
        pe_calc_put(&list, i, (double)i);
    return r->coordinates == 1 && list.data ? posenc_positions_array(list) : posenc_positions_range(0, 1);
}

static void compute(table_row *r)
{
    const posenc_positions at = cli_explain_at(r->x, &r->x->position, r->coordinates, 0, 1);
    if (pe_calc_failed(r->p) || read_rows(r, r->row, NULL, at, 1, &r->p->err))
        return;
    if (r->x->vector.count && read_rows(r, r->sum, r->vector, at, 1, &r->p->err))
        return;
    if (r->x->length && (r->cells = cli_explain_numbers(r->p, r->x->length * r->d)) != NULL &&
        read_rows(r, r->cells, NULL, all_positions(r), r->x->length, &r->p->err))
        return;
    find_waves(r);
    if (r->M && 2 * r->M == r->d && r->d <= CLI_EXPLAIN_WIDEST)
        find_steps(r);
}

void cli_explain_rows(cli_explanation *x)
{
    static void (*const shows[])(table_row *) = {show_waves, show_row, show_rest, show_tables, show_step};
    table_row r                               = {.x = x, .p = &x->subject.p};
    make(&r);
    compute(&r);
    for (size_t i = !r.M; i < sizeof shows / sizeof *shows && !pe_calc_failed(r.p); i++)
        shows[i](&r);
}
