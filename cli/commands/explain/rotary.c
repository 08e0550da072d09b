/* SPDX-License-Identifier: MIT */
/*
 * rotary.c: a rotation by hand: angles, the matrix, a vector rotated in four ways, what the score depends on
 *
 * The matrix is what posenc_rotate makes of the unit vectors, and the result what it makes of the vector.
 * Beside it the vector is multiplied by the matrix; element by element by the cosines and sines of the
 * angles; and pair by pair as complex numbers, as the two usual listings do it. What is said of the
 * matrix - orthogonal, by the step alone - is measured at several positions, not concluded.
 */
#include "base/shared/pi.h"
#include "cli/commands/explain/explain.h"

#include <complex.h>
#include <math.h>
#include <posenc/rotary.h>
#include <string.h>

/* From where a step is taken, and by how much both tokens are moved. */
static const double places[] = {0, 1, 10, 100, 1000};
enum { PLACES = sizeof places / sizeof *places, TEXT = 160 };

typedef struct rotation {
    cli_explanation    *x;
    pe_calc            *p;
    int64_t             D, M;
    int                 coordinates;
    int                 is_in_place; /* results stand where their channels were */
    int                 is_plain;    /* no pair grows */
    posenc_rotary_pair *pairs;
    const double       *vector;
    double             *angle, *magnitude;                 /* [M] */
    double             *matrix, *result;                   /* [D,D], [D]: the library's */
    double             *product, *elements, *complex_ways; /* [D]: the others */
    double             *cosines, *partner, *sines;         /* [D]: the parts of `elements` */
} rotation;

/* ---------------------------------------------------------------- the library's ------------- */

/* to [n,D] = the rows of from, all at one place, as queries or keys. */
static void rotate(rotation *r, double *to, const double *from, int64_t n, posenc_positions pos, int is_key)
{
    const int64_t       shape[] = {1, 1, n, r->D};
    const posenc_tensor a       = posenc_tensor_contiguous((double *)from, POSENC_DTYPE_F64, 4, shape),
                        b       = posenc_tensor_contiguous(to, POSENC_DTYPE_F64, 4, shape);
    posenc_rotate_io io         = {.size = sizeof io, .direction = 1, .params = r->p->params};
    if (is_key)
        io.k = a, io.to_k = b, io.k_pos = pos;
    else
        io.q = a, io.to_q = b, io.q_pos = pos;
    if (!pe_calc_failed(r->p))
        posenc_rotate(r->p->plan, &io, &r->p->work, &r->p->err);
}

/* The matrix of queries `moved` positions from --position: column c is what becomes of unit vector c. */
static void find_matrix(rotation *r, double *matrix, const cli_numbers *where, double moved)
{
    const int64_t D     = r->D;
    double       *units = cli_explain_numbers(r->p, D * D), *rows = cli_explain_numbers(r->p, D * D);
    for (int64_t c = 0; c < D && units; c++)
        units[c * D + c] = 1;
    rotate(r, rows, units, D, cli_explain_at(r->x, where, r->coordinates, moved, D), 0);
    for (int64_t i = 0; i < D * D && !pe_calc_failed(r->p); i++)
        matrix[i % D * D + i / D] = rows[i];
}

static void find_angles(rotation *r)
{
    const int64_t          shape[] = {1, 1, r->M};
    const posenc_tensor    angle   = posenc_tensor_contiguous(r->angle, POSENC_DTYPE_F64, 3, shape);
    const posenc_rotary_in in      = {sizeof in, cli_explain_at(r->x, &r->x->position, r->coordinates, 0, 1),
                                      r->p->params};
    if (!pe_calc_failed(r->p) &&
        !posenc_rotary_pairs(r->p->plan, r->p->params, fabs(r->x->position.real[0]) + 1, r->pairs,
                             &r->p->work, &r->p->err))
        posenc_rotary_angles(r->p->plan, &in, &angle, NULL, &r->p->work, &r->p->err);
}

/* A rotation by -a is said to be one. */
static void turn_back(rotation *r)
{
    for (int64_t m = 0; m < r->M && strstr(posenc_encoding_spec(r->p->e), "direction=inverse"); m++)
        r->angle[m] = -r->angle[m];
}

/* How much each pair grows: the length of one of its columns, but for rounding. */
static void find_magnitudes(rotation *r)
{
    r->is_in_place = r->is_plain = 1;
    for (int64_t m = 0; m < r->M && !pe_calc_failed(r->p); m++) {
        const posenc_rotary_pair *pair   = &r->pairs[m];
        const double              length = hypot(r->matrix[pair->to[0] * r->D + pair->from[0]],
                                                 r->matrix[pair->to[1] * r->D + pair->from[0]]);
        const int                 is_one = fabs(length - 1) < 1e-14;
        r->magnitude[m]                  = is_one ? 1 : length;
        r->is_plain &= is_one;
        r->is_in_place &= pair->to[0] == pair->from[0] && pair->to[1] == pair->from[1];
    }
}

/* ---------------------------------------------------------------- the other ways ------------ */

static void multiply(double *y, const double *matrix, const double *x, int64_t D)
{
    for (int64_t i = 0; i < D; i++) {
        double sum = 0;
        for (int64_t c = 0; c < D; c++)
            sum += matrix[i * D + c] * x[c];
        y[i] = sum;
    }
}

/* x * cos + (-x1, x0, ...) * sin; channels that are not rotated have cosine 1 and sine 0. */
static void multiply_elements(rotation *r)
{
    for (int64_t c = 0; c < r->D; c++) {
        r->cosines[c] = 1;
        r->partner[c] = r->elements[c] = r->vector[c];
    }
    for (int64_t m = 0; m < r->M; m++)
        for (int s = 0; s < 2; s++) {
            const posenc_rotary_pair *pair = &r->pairs[m];
            const int64_t             from = pair->from[s], to = pair->to[s];
            r->cosines[to]  = r->magnitude[m] * cos(r->angle[m]);
            r->sines[to]    = r->magnitude[m] * sin(r->angle[m]);
            r->partner[to]  = s ? r->vector[pair->from[0]] : -r->vector[pair->from[1]];
            r->elements[to] = r->vector[from] * r->cosines[to] + r->partner[to] * r->sines[to];
        }
}

static void multiply_complex(rotation *r)
{
    memcpy(r->complex_ways, r->vector, (size_t)r->D * sizeof *r->vector);
    for (int64_t m = 0; m < r->M; m++) {
        const posenc_rotary_pair *pair = &r->pairs[m];
        const double complex z = (r->vector[pair->from[0]] + r->vector[pair->from[1]] * I) * r->magnitude[m] *
                                 cexp(I * r->angle[m]);
        r->complex_ways[pair->to[0]] = creal(z);
        r->complex_ways[pair->to[1]] = cimag(z);
    }
}

/* ---------------------------------------------------------------- shown: the numbers -------- */

/* "w_1 = 10000^(-2 * 1 / 4) = 0.01", where that is the rule. */
static void show_frequency(rotation *r)
{
    const posenc_encoding_info *info = posenc_encoding_part(r->p->e, POSENC_PLACE_ROTARY);
    const double                base = cli_explain_setting(r->x, info, "base");
    const int64_t               m = r->M > 1, dim = 2 * r->M;
    const double                w = pow(base, -2 * (double)m / (double)dim);
    if (fabs(r->pairs[m].w - w) <= 1e-12 * w)
        cli_sheet_text(&r->x->sheet, "w_%lld = %.12g^(-2 * %lld / %lld) = %.*g", (long long)m, base,
                       (long long)m, (long long)dim, r->x->sheet.digits + 1, w);
}

static void show_pairs(rotation *r)
{
    static const cli_sheet_column columns[] = {{"pair", "m", CLI_SHEET_PLAIN},
                                               {"x", "x", CLI_SHEET_PLAIN},
                                               {"y", "y", CLI_SHEET_PLAIN},
                                               {"frequency", "w_m", CLI_SHEET_SIGNIFICANT},
                                               {"period", "2pi/w", CLI_SHEET_SIGNIFICANT},
                                               {"angle", "P w_m", CLI_SHEET_SIGNIFICANT},
                                               {"cos", "cos", CLI_SHEET_FIXED},
                                               {"sin", "sin", CLI_SHEET_FIXED},
                                               {"magnitude", "length", CLI_SHEET_SIGNIFICANT}};
    enum { COUNT = sizeof columns / sizeof *columns };
    const int count = COUNT - r->is_plain;
    double   *table = cli_explain_numbers(r->p, r->M * COUNT);
    int64_t   rows  = 0;
    for (int64_t m = 0; m < r->M && table; m++) {
        const posenc_rotary_pair *pair  = &r->pairs[m];
        const double              row[] = {(double)m,
                                           (double)pair->from[0],
                                           (double)pair->from[1],
                                           pair->w,
                              pair->w != 0 ? PE_TWO_PI / fabs(pair->w) : NAN,
                                           r->angle[m],
                                           cos(r->angle[m]),
                                           sin(r->angle[m]),
                                           r->magnitude[m]};
        if (r->x->sheet.json || cli_explain_is_shown(m, r->M))
            memcpy(&table[rows++ * count], row, (size_t)count * sizeof *row);
    }
    cli_sheet_title(&r->x->sheet, "The pairs at position P = %s", cli_explain_place(r->x, r->coordinates));
    show_frequency(r);
    cli_sheet_text(&r->x->sheet,
                   "Pair m is channels x and y; it turns by w_m at each position, once around in "
                   "2 pi / w_m positions, and is at the angle P w_m (radians):");
    if (table)
        cli_calc_said(r->p, cli_sheet_table(&r->x->sheet, "pairs", columns, count, table, rows));
    if (rows < r->M)
        cli_sheet_text(&r->x->sheet, "%lld of %lld pairs; --json has all", (long long)rows, (long long)r->M);
}

/* "(1 + 2i) e^(2i) = -2.23474 + 0.07700i" */
static void show_complex_pair(rotation *r, int64_t m)
{
    const posenc_rotary_pair *pair   = &r->pairs[m];
    const int                 digits = r->x->sheet.digits;
    const double x = r->vector[pair->from[0]], y = r->vector[pair->from[1]], a = r->complex_ways[pair->to[0]],
                 b = r->complex_ways[pair->to[1]];
    char grow[32]  = "", text[TEXT];
    if (r->magnitude[m] != 1)
        snprintf(grow, sizeof grow, "%.*g ", digits, r->magnitude[m]);
    snprintf(text, sizeof text, "(%.*g %c %.*gi) %se^(%.*gi) = %.*f %c %.*fi", digits, x, y < 0 ? '-' : '+',
             digits, fabs(y), grow, digits + 1, r->angle[m], digits, a, b < 0 ? '-' : '+', digits, fabs(b));
    cli_sheet_words(&r->x->sheet, "", m ? "" : "complex numbers", text);
}

static void show_complex(rotation *r)
{
    if (r->x->sheet.json)
        cli_sheet_vector(&r->x->sheet, "complex", "", r->complex_ways, r->D);
    else
        for (int64_t m = 0; m < r->M; m++)
            if (r->x->sheet.json || cli_explain_is_shown(m, r->M))
                show_complex_pair(r, m);
}

static void show_matrix(rotation *r)
{
    cli_sheet *s = &r->x->sheet;
    cli_sheet_title(s, "The matrix R of position P = %s", cli_explain_place(r->x, r->coordinates));
    if (!cli_sheet_matrix(s, "matrix", "", r->matrix, r->D, r->D))
        cli_sheet_text(
            s,
            "R has %lld x %lld numbers, more than a line takes: for each pair of the table the block "
            "(cos, -sin; sin, cos) at its channels x and y, 0 everywhere else; --json has all",
            (long long)r->D, (long long)r->D);
}

static void show_ways(rotation *r)
{
    cli_sheet *s = &r->x->sheet;
    cli_sheet_title(s, "The vector rotated");
    cli_sheet_vector(s, "vector", "x", r->vector, r->D);
    cli_sheet_vector(s, "result", "R x, posenc_rotate", r->result, r->D);
    cli_sheet_vector(s, "by_matrix", "matrix times x", r->product, r->D);
    if (r->is_in_place) {
        cli_sheet_vector(s, "cosines", "cosines", r->cosines, r->D);
        cli_sheet_vector(s, "partner", "-y, x of each pair", r->partner, r->D);
        cli_sheet_vector(s, "sines", "sines", r->sines, r->D);
    }
    cli_sheet_vector(s, "by_elements", "element by element", r->elements, r->D);
    show_complex(r);
    const double furthest = fmax(cli_explain_difference(r->result, r->product, r->D),
                                 fmax(cli_explain_difference(r->result, r->elements, r->D),
                                      cli_explain_difference(r->result, r->complex_ways, r->D)));
    cli_sheet_residual(s, "ways_differ", "they differ by", furthest);
}

/* ---------------------------------------------------------------- shown: what holds --------- */

/* C = A B^T, of an A whose rows are nearly empty. */
static void multiply_transposed(double *C, const double *A, const double *B, int64_t D)
{
    memset(C, 0, (size_t)(D * D) * sizeof *C);
    for (int64_t i = 0; i < D * D; i++)
        for (int64_t j = 0; j < D && A[i] != 0; j++)
            C[i / D * D + j] += A[i] * B[j * D + i % D];
}

/* The step of s positions, R(n + s) R(n)^T, from several n, against R(s). */
static void show_step(rotation *r)
{
    const int64_t     D = r->D, step = r->x->step;
    const cli_numbers zero = {.count = 1};
    double           *from = cli_explain_numbers(r->p, D * D), *to = cli_explain_numbers(r->p, D * D),
           *moved = cli_explain_numbers(r->p, D * D), *by = cli_explain_numbers(r->p, D * D), furthest = 0;
    find_matrix(r, by, &zero, (double)step);
    for (int n = 0; n < PLACES; n++) {
        find_matrix(r, from, &zero, places[n]);
        find_matrix(r, to, &zero, places[n] + (double)step);
        if (pe_calc_failed(r->p))
            return;
        multiply_transposed(moved, to, from, D);
        furthest = fmax(furthest, cli_explain_difference(moved, by, D * D));
    }
    cli_sheet_text(
        &r->x->sheet,
        "A step of s = %lld from several places, R(n + s) R(n)^T with n = 0, 1, 10, 100, 1000, less R(s):",
        (long long)step);
    cli_sheet_residual(&r->x->sheet, "step_differs", "they differ by", furthest);
}

static void show_properties(rotation *r)
{
    cli_sheet *s = &r->x->sheet;
    cli_sheet_title(s, "What holds of it");
    cli_sheet_number(s, "length_before", "length of x", sqrt(cli_explain_dot(r->vector, r->vector, r->D)));
    cli_sheet_number(s, "length_after", "length of R x", sqrt(cli_explain_dot(r->result, r->result, r->D)));
    if (r->is_plain)
        cli_sheet_residual(s, "orthogonality", "R^T R less I", cli_explain_orthogonality(r->matrix, r->D));
    else
        cli_sheet_text(s, "It is no rotation alone: each pair is also scaled by its length in the table.");
    if (r->is_plain && r->is_in_place)
        show_step(r);
    const long long D = r->D, M = r->M;
    if (s->json)
        cli_sheet_put(s, "operations",
                      json_pack("{s:[I,I], s:[I,I]}", "matrix", D * D, D * (D - 1), "elements", 4 * M,
                                2 * M));
    cli_sheet_text(s,
                   "Cost, once the cosines and sines are known: the matrix takes d^2 = %lld products and "
                   "%lld sums; element by element it is %lld and %lld.",
                   D * D, D * (D - 1), 4 * M, 2 * M);
}

/* ---------------------------------------------------------------- shown: a score ------------ */

/* q.k with both tokens moved by the same distance. */
static double score(rotation *r, const double *k, double moved)
{
    double *q_to = cli_explain_numbers(r->p, r->D), *k_to = cli_explain_numbers(r->p, r->D);
    rotate(r, q_to, r->vector, 1, cli_explain_at(r->x, &r->x->position, r->coordinates, moved, 1), 0);
    rotate(r, k_to, k, 1, cli_explain_at(r->x, &r->x->key_position, r->coordinates, moved, 1), 1);
    return pe_calc_failed(r->p) ? NAN : cli_explain_dot(q_to, k_to, r->D);
}

/* q R(n - m) k: the key alone is rotated, by the distance. */
static double score_by_distance(rotation *r, const double *k)
{
    double           *q_to = cli_explain_numbers(r->p, r->D), *k_to = cli_explain_numbers(r->p, r->D);
    const cli_numbers zero     = {.count = 1};
    cli_numbers       distance = {.count = r->coordinates}; /* on each axis its own */
    for (int c = 0; c < r->coordinates; c++)
        distance.real[c] =
            cli_explain_coordinate(&r->x->key_position, c) - cli_explain_coordinate(&r->x->position, c);
    rotate(r, q_to, r->vector, 1, cli_explain_at(r->x, &zero, r->coordinates, 0, 1), 0);
    rotate(r, k_to, k, 1, cli_explain_at(r->x, &distance, r->coordinates, 0, 1), 1);
    return pe_calc_failed(r->p) ? NAN : cli_explain_dot(q_to, k_to, r->D);
}

/* Columns of the coordinates of a query or a key; with several each has its number. */
static void place_columns(rotation *r, cli_sheet_column *columns, const char *key, const char *head)
{
    for (int c = 0; c < r->coordinates; c++) {
        columns[c] = (cli_sheet_column){key, pe_calc_text(r->p, "%s AT", head), CLI_SHEET_PLAIN};
        if (r->coordinates > 1)
            columns[c] = (cli_sheet_column){pe_calc_text(r->p, "%s_%d", key, c),
                                            pe_calc_text(r->p, "%s AT [%d]", head, c), CLI_SHEET_PLAIN};
    }
}

static void show_scores(rotation *r, const double scores[PLACES])
{
    cli_sheet_column columns[2 * CLI_LIST_MOST + 1];
    const int        n = r->coordinates, width = 2 * n + 1;
    double          *table = cli_explain_numbers(r->p, PLACES * width);
    place_columns(r, columns, "query", "QUERY");
    place_columns(r, columns + n, "key", "KEY");
    columns[2 * n] = (cli_sheet_column){"score", "q.k", CLI_SHEET_FIXED};
    for (int i = 0; i < PLACES && table; i++) {
        for (int c = 0; c < n; c++) {
            table[i * width + c]     = cli_explain_coordinate(&r->x->position, c) + places[i];
            table[i * width + n + c] = cli_explain_coordinate(&r->x->key_position, c) + places[i];
        }
        table[i * width + 2 * n] = scores[i];
    }
    if (table)
        cli_calc_said(r->p, cli_sheet_table(&r->x->sheet, "scores", columns, width, table, PLACES));
}

static void show_score(rotation *r)
{
    cli_explanation *x              = r->x;
    double           scores[PLACES] = {0}, furthest = 0;
    for (int n = 0; n < PLACES && x->key.count; n++) {
        scores[n] = score(r, x->key.real, places[n]);
        furthest  = fmax(furthest, cli_explain_difference(&scores[0], &scores[n], 1));
    }
    const double alone = x->key.count ? score_by_distance(r, x->key.real) : NAN;
    if (pe_calc_failed(r->p) || !x->key.count)
        return;
    cli_sheet_title(&x->sheet, "The score of x as a query with a key, both moved on by the same distance");
    cli_sheet_vector(&x->sheet, "key", "k", x->key.real, r->D);
    show_scores(r, scores);
    cli_sheet_residual(&x->sheet, "scores_differ", "they differ by", furthest);
    cli_sheet_number(&x->sheet, "score_by_distance", "q^T R(n - m) k", alone);
}

/* ---------------------------------------------------------------- all ----------------------- */

/* --theta in the place of the frequencies that the rotation would have. */
static void put_theta(rotation *r)
{
    const cli_numbers *theta = &r->x->theta;
    for (int i = 0; i < r->p->count && theta->count; i++) {
        if (strcmp(posenc_param_name(r->p->e, i), "inv_freq") != 0 &&
            !strstr(posenc_param_name(r->p->e, i), ".inv_freq"))
            continue;
        const int64_t M = r->p->params[i].shape[0];
        if (theta->count != 1 && theta->count != M)
            pe_calc_refuse(r->p, "--theta has %d numbers; give one, or one for each of the %lld pairs",
                           theta->count, (long long)M);
        for (int64_t m = 0; m < M; m++)
            pe_calc_put(&r->p->params[i], m, theta->real[theta->count > 1 ? m : 0]);
    }
}

static void make(rotation *r)
{
    const posenc_dims dims = {.B = 1, .H = 1, .G = 1, .Lq = r->D, .Lk = r->D, .D = r->D, .Dv = r->D};
    cli_explain_plan(r->x, &dims, POSENC_RUN_FORWARD);
    put_theta(r);
    if (pe_calc_failed(r->p) || posenc_rotary_frequencies(r->p->plan, NULL, &r->M, NULL, &r->p->err))
        return;
    r->coordinates = posenc_rotary_coordinates(r->p->plan);
    r->pairs       = pe_calc_block(r->p, (size_t)r->M * sizeof *r->pairs);
    r->vector      = cli_explain_vector(r->x, r->D);
    if (r->x->key.count && r->x->key.count != r->D)
        pe_calc_refuse(r->p, "--key has %d number%s and the vector %lld; give as many", r->x->key.count,
                       r->x->key.count == 1 ? "" : "s", (long long)r->D);
    r->angle  = cli_explain_numbers(r->p, 2 * r->M);
    r->matrix = cli_explain_numbers(r->p, r->D * r->D);
    r->result = cli_explain_numbers(r->p, 7 * r->D);
    if (pe_calc_failed(r->p))
        return;
    r->magnitude           = r->angle + r->M;
    double **const parts[] = {&r->product, &r->elements, &r->complex_ways,
                              &r->cosines, &r->partner,  &r->sines};
    for (int i = 0; i < 6; i++)
        *parts[i] = r->result + (i + 1) * r->D;
}

static void compute(rotation *r)
{
    find_angles(r);
    turn_back(r);
    find_matrix(r, r->matrix, &r->x->position, 0);
    rotate(r, r->result, r->vector, 1, cli_explain_at(r->x, &r->x->position, r->coordinates, 0, 1), 0);
    find_magnitudes(r);
    if (pe_calc_failed(r->p))
        return;
    multiply(r->product, r->matrix, r->vector, r->D);
    multiply_elements(r);
    multiply_complex(r);
}

void cli_explain_rotary(cli_explanation *x)
{
    rotation r = {.x = x, .p = &x->subject.p};
    r.D        = x->dim                    ? x->dim
                 : x->vector.count         ? x->vector.count
                 : x->subject.config.group ? x->subject.config.group->dims.D
                                           : 4;
    make(&r);
    compute(&r);
    static void (*const shows[])(rotation *) = {show_pairs, show_matrix, show_ways, show_properties,
                                                show_score};
    for (size_t i = 0; i < sizeof shows / sizeof *shows && !pe_calc_failed(r.p); i++)
        shows[i](&r);
}
