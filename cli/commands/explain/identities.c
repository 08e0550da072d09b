/* SPDX-License-Identifier: MIT */
/*
 * identities.c: posenc explain SPEC --identity NAME: statements of introductions as two sides and a residual
 *
 *     taylor         attention with positions expanded to second order, whose terms are absolute and relative
 *     one-hot        adding a row is embedding a one-hot of the position beside that of the word
 *     row-sums       the weights of a row sum to 1, but not where they are multiplied after the softmax
 *     orthogonality  random vectors are nearly orthogonal; what concatenating would cost
 *
 * Rows, scores and sums are posenc_rows', posenc_scores' and posenc_attend's; the other side is computed
 * here, from the statement.
 */
#include "base/shared/pi.h"
#include "cli/commands/explain/explain.h"

#include <math.h>

enum { WORDS = 3, ROWS = 8, HEADS = 4 };

static posenc_tensor tensor(double *data, int32_t ndim, const int64_t *shape)
{
    return posenc_tensor_contiguous(data, POSENC_DTYPE_F64, ndim, shape);
}

static int64_t width_of(const cli_explanation *x, int64_t otherwise)
{
    return x->dim ? x->dim : x->vector.count ? x->vector.count : otherwise;
}

/* Identities of rows need an encoding that has them. */
static void need_place(cli_explanation *x, posenc_place place, const char *what)
{
    pe_calc                    *p    = &x->subject.p;
    const posenc_encoding_info *part = posenc_encoding_part(p->e, place);
    if (!part)
        pe_calc_refuse(p, "%s has no %s; give an encoding at place %s", posenc_encoding_spec(p->e), what,
                       posenc_place_name(place));
    else if (place == POSENC_PLACE_INPUT && (part->by_word || posenc_rows_coordinates(p->e) > 1))
        pe_calc_refuse(p,
                       "the rows of %s belong to more than a position on a line; give another encoding, such "
                       "as learned",
                       part->name);
}

/* rows [n,d] of positions 0 .. n-1, added to words [n,d] if there are any. */
static double *rows_of(cli_explanation *x, double *words, int64_t n, int64_t d)
{
    pe_calc             *p       = &x->subject.p;
    const int64_t        shape[] = {1, n, d};
    double              *to      = cli_explain_numbers(&x->subject.p, n * d);
    posenc_tensor        y       = tensor(to, 3, shape);
    const posenc_rows_in in      = {.size   = sizeof in,
                                    .x      = words ? tensor(words, 3, shape) : (posenc_tensor){0},
                                    .pos    = posenc_positions_range(0, 1),
                                    .params = p->params};
    if (!pe_calc_failed(p))
        posenc_rows(p->plan, &in, &y, &p->work, &p->err);
    return to;
}

/* A plan for n positions and rows as wide as d; nothing else is allowed at place input. */
static void plan_rows(cli_explanation *x, int64_t n, int64_t d)
{
    pe_calc *p = &x->subject.p;
    need_place(x, POSENC_PLACE_INPUT, "rows");
    if (pe_calc_failed(p))
        return;
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = n, .Lk = n, .D = d, .d_model = d, .L = n};
    cli_explain_plan(x, &dims, POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    if (!pe_calc_failed(p) && posenc_rows_width(p->plan) != d)
        pe_calc_refuse(p, "the rows of %s are %lld wide, not %lld", posenc_encoding_spec(p->e),
                       (long long)posenc_rows_width(p->plan), (long long)d);
}

/* ---------------------------------------------------------------- taylor -------------------- */

/* x^3 at 1, moved by 0.1: what the half before the second derivative is worth. */
static void expand_cube(cli_explanation *x)
{
    const double at = 1, p = 0.1, f = at * at * at, slope = 3 * at * at, curvature = 6 * at;
    const double exact = pow(at + p, 3) - f, printed = p * slope + p * curvature * p,
                 right = p * slope + p * curvature * p / 2;
    cli_sheet *s       = &x->sheet;
    cli_sheet_title(s, "f(x) = x^3 at x = 1, moved by p = 0.1");
    cli_sheet_number(s, "cube_exact", "f(x+p) - f(x)", exact);
    cli_sheet_number(s, "cube_printed", "p f' + p f'' p", printed);
    cli_sheet_number(s, "cube_right", "p f' + p f'' p / 2", right);
    cli_sheet_text(
        s,
        "Before the pure second derivatives stands 1/2, which tutorial 003 leaves out (erratum 20): with it "
        "the error is %.3g, without it %.3g.",
        fabs(exact - right), fabs(exact - printed));
}

/* S [n,n] = the scores of queries a [n,d] with keys b [n,d] where nothing else is added. */
static double *plain_scores(cli_explanation *x, double *a, double *b, int64_t n, int64_t d)
{
    pe_calc               *p       = &x->subject.p;
    const int64_t          shape[] = {1, 1, n, d}, square[] = {1, 1, n, n};
    const posenc_dims      dims  = {.B = 1, .H = 1, .Lq = n, .Lk = n, .D = d};
    const posenc_attend_in in    = {.size = sizeof in, .q = tensor(a, 4, shape), .k = tensor(b, 4, shape)};
    posenc_tensor          S     = tensor(cli_explain_numbers(&x->subject.p, n * n), 4, square);
    posenc_encoding       *plain = NULL;
    posenc_plan           *plan  = NULL;
    if (!pe_calc_failed(p) && !posenc_encoding_create(&plain, "nope", NULL, &p->err))
        posenc_plan_create(&plan, plain, &dims, NULL, &p->err);
    const posenc_workspace work = pe_calc_workspace(p, plan, POSENC_RUN_SCORES);
    if (!pe_calc_failed(p))
        posenc_scores(plan, &in, &S, &work, &p->err);
    posenc_plan_free(plan);
    posenc_encoding_free(plain);
    return S.data;
}

/* What a score is expanded in: a word, the rows of a place and of one further on, and the sums. */
enum { WORD, ROW, SUM, LATER_ROW, LATER_SUM, PARTS };
enum { M = 5, N = 2, SHIFT = 7, LAST = M + SHIFT + 1 };

static double *parts_of(cli_explanation *x, const char *name, const double *rows, int64_t place, int64_t d)
{
    double *word = cli_explain_draw(x, name, d, 1), *parts = cli_explain_numbers(&x->subject.p, PARTS * d);
    for (int64_t c = 0; word && parts && c < d; c++) {
        parts[WORD * d + c]      = word[c];
        parts[ROW * d + c]       = rows[place * d + c];
        parts[SUM * d + c]       = word[c] + rows[place * d + c];
        parts[LATER_ROW * d + c] = rows[(place + SHIFT) * d + c];
        parts[LATER_SUM * d + c] = word[c] + rows[(place + SHIFT) * d + c];
    }
    return parts;
}

/* The terms of (x_m + p_m) . (x_n + p_n) / sqrt(d): it is linear in both, so its pure second derivatives are
   0 and the expansion ends. */
static void expand_score(cli_explanation *x)
{
    static const cli_sheet_column columns[] = {{"term", "term", CLI_SHEET_PLAIN},
                                               {"near", "(5,2)", CLI_SHEET_SIGNIFICANT},
                                               {"far", "(12,9)", CLI_SHEET_SIGNIFICANT}};
    const int64_t                 d         = width_of(x, 64);
    cli_sheet                    *s         = &x->sheet;
    plan_rows(x, LAST, d);
    const double *rows = rows_of(x, NULL, LAST, d);
    double       *q    = pe_calc_failed(&x->subject.p) ? NULL : parts_of(x, "query", rows, M, d);
    double       *k    = pe_calc_failed(&x->subject.p) ? NULL : parts_of(x, "key", rows, N, d);
    const double *S    = plain_scores(x, q, k, PARTS, d);
    if (pe_calc_failed(&x->subject.p))
        return;
#define AT(a, b) S[(a)*PARTS + (b)]
    const double terms[6][3] = {{1, AT(WORD, WORD), AT(WORD, WORD)},
                                {2, AT(ROW, WORD), AT(LATER_ROW, WORD)},
                                {3, AT(WORD, ROW), AT(WORD, LATER_ROW)},
                                {4, 0, 0},
                                {5, 0, 0},
                                {6, AT(ROW, ROW), AT(LATER_ROW, LATER_ROW)}};
    const double exact = AT(SUM, SUM), far = AT(LATER_SUM, LATER_SUM);
#undef AT
    double sums[2] = {0};
    for (int i = 0; i < 6; i++) {
        sums[0] += terms[i][1];
        sums[1] += terms[i][2];
    }
    cli_sheet_title(s, "f(x_m, x_n) = x_m . x_n / sqrt(d), each moved by its row of %s, d = %lld",
                    posenc_encoding_spec(x->subject.p.e), (long long)d);
    cli_sheet_text(
        s, "1: f. 2: p_m f_m. 3: p_n f_n. 4: p_m f_mm p_m / 2. 5: p_n f_nn p_n / 2. 6: p_m f_mn p_n. At "
           "the positions (m,n) = (5,2), and 7 further on:");
    cli_sheet_table(s, "terms", columns, 3, terms[0], 6);
    cli_sheet_number(s, "sum", "their sum", sums[0]);
    cli_sheet_number(s, "score", "f(x_m+p_m, x_n+p_n)", exact);
    cli_sheet_residual(s, "residual", "difference", fmax(fabs(sums[0] - exact), fabs(sums[1] - far)));
    cli_sheet_residual(s, "shifted", "term 6, moved", fabs(terms[5][1] - terms[5][2]));
    cli_sheet_text(s, "Terms 2 to 5 know one position each (absolute), term 6 knows both; here it %s.",
                   fabs(terms[5][1] - terms[5][2]) < 1e-9 ? "depends on m - n alone (relative)"
                                                          : "changes when both move: it is not relative");
}

static void explain_taylor(cli_explanation *x)
{
    expand_cube(x);
    expand_score(x);
}

/* ---------------------------------------------------------------- one-hot ------------------- */

/* to [d, words + rows]: the table of words and that of positions side by side, each as columns. */
static double *side_by_side(cli_explanation *x, const double *words, const double *rows, int64_t n, int64_t d)
{
    double *to = cli_explain_numbers(&x->subject.p, d * (WORDS + n));
    for (int64_t c = 0; to && c < d; c++)
        for (int64_t k = 0; k < WORDS + n; k++)
            to[c * (WORDS + n) + k] = k < WORDS ? words[k * d + c] : rows[(k - WORDS) * d + c];
    return to;
}

/* W [x; onehot] = W_x x + W_p: word 1 at --position. */
static void explain_one_hot(cli_explanation *x)
{
    pe_calc      *p = &x->subject.p;
    cli_sheet    *s = &x->sheet;
    const int64_t d = width_of(x, 4), at = (int64_t)x->position.real[0], word = 1;
    const int64_t n = at < 4 ? 5 : at + 1;
    if (x->position.count != 1 || x->position.real[0] != (double)at || at < 0 || at > 100)
        pe_calc_refuse(p, "--position must be a whole number from 0 to 100 here: its one-hot is as long");
    plan_rows(x, n, d);
    double *words = cli_explain_draw(x, "words", WORDS * d, 1), *rows = rows_of(x, NULL, n, d),
           *placed  = cli_explain_numbers(&x->subject.p, n * d);
    double *u       = cli_explain_numbers(&x->subject.p, WORDS + n),
           *product = cli_explain_numbers(&x->subject.p, d), *W = NULL;
    if (pe_calc_failed(p))
        return;
    for (int64_t i = 0; i < n * d; i++)
        placed[i] = words[word * d + i % d];
    const double *added = rows_of(x, placed, n, d);
    u[word] = u[WORDS + at] = 1;
    W                       = side_by_side(x, words, rows, n, d);
    for (int64_t c = 0; c < d && W; c++)
        product[c] = cli_explain_dot(W + c * (WORDS + n), u, WORDS + n);
    if (pe_calc_failed(p))
        return;
    cli_sheet_title(s, "Adding the row of position %lld = embedding its one-hot beside that of the word",
                    (long long)at);
    cli_sheet_vector(s, "input", "u = [word; position]", u, WORDS + n);
    cli_sheet_matrix(s, "matrix", "W = [W_x, W_p]: vectors of 3 words, then rows of the positions from 0 on",
                     W, d, WORDS + n);
    cli_sheet_vector(s, "product", "W u", product, d);
    cli_sheet_vector(s, "word", "word: W_x x", words + word * d, d);
    cli_sheet_vector(s, "row", "position: W_p", rows + at * d, d);
    cli_sheet_vector(s, "sum", "word + position", added + at * d, d);
    cli_sheet_residual(s, "residual", "difference", cli_explain_difference(product, added + at * d, d));
}

/* ---------------------------------------------------------------- row sums ------------------ */

/* to [H,L]: the outputs of values that are all `value`, one wide. */
static double *outputs(cli_explanation *x, const posenc_dims *dims, double *q, double *k, double value)
{
    pe_calc      *p       = &x->subject.p;
    const int64_t heads[] = {1, dims->H, dims->Lq, dims->D}, one[] = {1, dims->H, dims->Lq, 1};
    double       *v             = cli_explain_numbers(&x->subject.p, dims->H * dims->Lq),
           *to                  = cli_explain_numbers(&x->subject.p, dims->H * dims->Lq);
    const posenc_attend_in  in  = {.size   = sizeof in,
                                   .q      = tensor(q, 4, heads),
                                   .k      = tensor(k, 4, heads),
                                   .v      = tensor(v, 4, one),
                                   .q_pos  = posenc_positions_range(0, 1),
                                   .k_pos  = posenc_positions_range(0, 1),
                                   .params = p->params};
    const posenc_attend_out out = {.size = sizeof out, .o = tensor(to, 4, one)};
    for (int64_t i = 0; v && i < dims->H * dims->Lq; i++)
        v[i] = value;
    if (!pe_calc_failed(p))
        posenc_attend(p->plan, &in, &out, &p->work, &p->err);
    return to;
}

/* sum_j of what multiplies v_j: the output is linear in v, so it is what values of 1 give more than values of
   0, whatever else is added to them. */
static void explain_row_sums(cli_explanation *x)
{
    pe_calc          *p    = &x->subject.p;
    cli_sheet        *s    = &x->sheet;
    const int64_t     L    = x->length ? x->length : ROWS;
    const posenc_dims dims = {
        .B = 1, .H = x->heads ? x->heads : HEADS, .Lq = L, .Lk = L, .D = width_of(x, 4), .Dv = 1, .L = L};
    const int64_t all = dims.H * L;
    p->options.mask   = cli_explain_needs_mask(p->e) ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    cli_explain_plan(x, &dims, POSENC_RUN_FORWARD);
    if (!pe_calc_failed(p))
        cli_subject_vary(&x->subject, x->seed);
    double *q          = cli_explain_draw(x, "query", all * dims.D, 1),
           *k          = cli_explain_draw(x, "key", all * dims.D, 1);
    const double *zero = outputs(x, &dims, q, k, 0);
    double       *sums = outputs(x, &dims, q, k, 1), most = 0;
    if (pe_calc_failed(p))
        return;
    for (int64_t i = 0; i < all; i++) {
        sums[i] -= zero[i];
        most = fmax(most, fabs(sums[i] - 1));
    }
    cli_sheet_title(s, "Sums of the weights of each query, with %s", posenc_encoding_spec(p->e));
    cli_sheet_matrix(s, "row_sums", "a line for each head, a column for each query", sums, dims.H, L);
    cli_sheet_residual(s, "residual", "largest |sum - 1|", most);
    const posenc_encoding_info *weight = posenc_encoding_part(p->e, POSENC_PLACE_WEIGHT);
    cli_sheet_text(s, most < 1e-12 ? "The weights of every query sum to 1: they are probabilities."
                      : weight && !weight->replaces_softmax
                          ? "The factors come after the softmax, so the weights of a query are no longer "
                            "probabilities."
                          : "Nothing divides the weights by their sum: what a query's keys do not take is "
                            "missing from 1.");
    if (*x->subject.origin)
        cli_sheet_text(s, "Parameters: %s.", x->subject.origin);
}

/* ---------------------------------------------------------------- orthogonality ------------- */

static double cosine(const double *a, const double *b, int64_t d)
{
    return cli_explain_dot(a, b, d) / sqrt(cli_explain_dot(a, a, d) * cli_explain_dot(b, b, d));
}

/* Mean |cos| of the rows of a with those of b, or among themselves; the largest. */
static double mean_cosine(const double *a, const double *b, int64_t n, int64_t d, double *largest)
{
    double  sum   = 0;
    int64_t count = 0;
    *largest      = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = a == b ? i + 1 : 0; j < n; j++, count++) {
            const double c = fabs(cosine(a + i * d, b + j * d, d));
            sum += c;
            *largest = fmax(*largest, c);
        }
    return sum / (double)count;
}

static void say_cosines(cli_explanation *x, const char *key, const char *name, const double *a,
                        const double *b, int64_t n, int64_t d)
{
    double       largest;
    const double mean = mean_cosine(a, b, n, d, &largest);
    cli_sheet_number(&x->sheet, key, name, mean);
    cli_sheet_number(&x->sheet, pe_calc_text(&x->subject.p, "%s_largest", key), "  the largest of all",
                     largest);
}

static void explain_orthogonality(cli_explanation *x)
{
    enum { VECTORS = 64 };
    pe_calc      *p        = &x->subject.p;
    cli_sheet    *s        = &x->sheet;
    const int64_t d        = width_of(x, 512);
    const int     has_rows = posenc_encoding_part(p->e, POSENC_PLACE_INPUT) != NULL;
    double       *words = cli_explain_draw(x, "words", VECTORS * d, 1), *rows = NULL;
    if (has_rows) {
        plan_rows(x, VECTORS + 1, d);
        rows = rows_of(x, NULL, VECTORS + 1, d);
    }
    if (pe_calc_failed(p))
        return;
    cli_sheet_title(s, "|cos| of two vectors of width %lld, means over %d of them", (long long)d, VECTORS);
    cli_sheet_number(s, "expected", "sqrt(2 / (pi d))", sqrt(2 / (PE_PI * (double)d)));
    say_cosines(x, "random", "random, N(0,1)", words, words, VECTORS, d);
    if (has_rows) { /* the first row may be zero, where a sinusoid has sines alone */
        say_cosines(x, "with_rows", "random, row", words, rows + d, VECTORS, d);
        say_cosines(x, "rows", "row, other row", rows + d, rows + d, VECTORS, d);
        cli_sheet_text(
            s,
            "Rows are those of %s at positions 1 to %d. That two vectors are nearly orthogonal does "
            "not give words and positions a subspace each (erratum 17).",
            posenc_encoding_spec(p->e), VECTORS);
    }
    cli_sheet_title(s, "What concatenating costs");
    cli_sheet_words(s, "weights", "d + d to d channels",
                    pe_calc_text(p, "%lld x %lld = %lld weights", (long long)(2 * d), (long long)d,
                                 (long long)(2 * d * d)));
    cli_sheet_words(s, "weights_of_halves", "d/2 + d/2 channels", "none: they are d together");
    cli_sheet_words(s, "weights_of_adding", "adding", "none");
}

/* ---------------------------------------------------------------- all ----------------------- */

void cli_explain_identity(cli_explanation *x)
{
    static void (*const all[])(
        cli_explanation *) = {explain_taylor, explain_one_hot, explain_row_sums,
                              explain_orthogonality}; /* ORDER CLI_EXPLAIN_IDENTITIES */
    all[x->identity](x);
}
