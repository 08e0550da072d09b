/* SPDX-License-Identifier: MIT */
/*
 * diagrams.c: pictures that explain a formula on a few numbers
 *
 *   hierarchy  hierarchical positions: row i and column j of the map are the digits of position n i + j to
 * base n. The title says how far its vector is from alpha u_i + (1 - alpha) u_j, where u_k = (p_k - alpha
 * p_0) / (1 - alpha) onehot  adding a position's vector is the same as writing its one-hot vector below the
 * token's and multiplying both by W = [W_I, W_P], whose columns W_P are the vectors of the positions words
 * the figure of RoFormer: the channels of each word before and after its rotation, and the angle that each
 * pair is rotated by
 *
 * All numbers but those drawn for words come from the library; the same word has the same vector, the last
 * position of a one-hot that of the picture's length.
 *
 * Source  Su 2020, kexue.fm/archives/7947; Su et al. 2021, arXiv:2104.09864, figure 1
 */
#include "plot/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 32, TOKEN_WIDTH = 3, MOST_WORDS = 32, DECIMALS = 2 };

#define ROUNDING 1e-14 /* of sums of a few products of numbers near 1 */

/* A grid with numbers, and decimals where the caller of the picture says none. */
static void set_numbers(pe_sketch *s, pe_figure *f, int decimals)
{
    pe_sketch_table(s, f);
    f->decimals     = f->with_numbers ? f->decimals : decimals;
    f->with_numbers = 1;
}

/* "u0", "u1", ... */
static const char **numbered(pe_sketch *s, const char *name, int64_t n)
{
    const char **names = pe_sketch_take(s, n, sizeof *names);
    for (int64_t i = 0; names && i < n; i++)
        names[i] = pe_sketch_text(s, "%s%lld", name, (long long)i);
    return names;
}

/* ---------------------------------------------------------------- digits -------------------- */

/* The largest |q - (alpha u_i + (1 - alpha) u_j)| over the positions. */
static double digits_apart(const pe_row_set *set, int64_t n, double alpha)
{
    double most = 0;
    for (int64_t k = 0; k < set->n * set->width; k++) {
        const int64_t c = k % set->width, i = k / set->width / n, j = k / set->width % n;
        const double  p0 = set->rows[c];
        const double  ui = (set->rows[i * set->width + c] - alpha * p0) / (1 - alpha),
                     uj  = (set->rows[j * set->width + c] - alpha * p0) / (1 - alpha);
        most             = fmax(most, fabs(set->rows[k] - alpha * ui - (1 - alpha) * uj));
    }
    return most;
}

/* The setting rows, or the root of the length where that follows from the length. */
static int64_t digit_base(pe_sketch *s)
{
    char text[PE_SETTING_LENGTH];
    pe_sketch_setting(s, "rows", text);
    const int64_t said = strtoll(text, NULL, 10), n = said ? said : s->data->length;
    if (n < 2 || n > MOST_DIGITS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: rows is %lld; digits are drawn for 2 to %d rows; set rows", (long long)n,
                         MOST_DIGITS);
    return n;
}

void pe_diagrams_hierarchy(pe_sketch *s)
{
    char                  text[PE_SETTING_LENGTH];
    const int64_t         n    = digit_base(s);
    const pe_picture_data was  = *s->data;
    pe_picture_data       data = was;
    data.length                = n * n;
    s->data                    = &data; /* every position that two digits reach */
    const pe_row_set set       = s->status ? (pe_row_set){0} : pe_sketch_rows(s);
    double          *values    = pe_sketch_range(s, 0, 1, n * n);
    pe_sketch_setting(s, "alpha", text);
    if (!values)
        return;
    pe_sketch_grid(s->figure, values, n, n);
    pe_sketch_labels(s->figure, "last digit j", "leading digit i", "position");
    s->figure->square_cells = 1;
    s->figure->row_names    = numbered(s, "u", n);
    s->figure->col_names    = s->figure->row_names;
    set_numbers(s, s->figure, 0);
    s->what =
        pe_sketch_text(s, "position %lldi + j: q = %s u_i + %.3g u_j, within %.0e", (long long)n, text,
                       1 - strtod(text, NULL), fmax(digits_apart(&set, n, strtod(text, NULL)), ROUNDING));
}

/* ---------------------------------------------------------------- one-hot ------------------- */

/* [W_I, W_P], [d, TOKEN_WIDTH + n], row-major; and the token above the one-hot of position k. */
static void fill_matrix(const pe_sketch *s, const pe_row_set *set, double *W, double *x)
{
    const int64_t all = TOKEN_WIDTH + set->n;
    for (int64_t i = 0; i < set->width * all; i++) {
        const int64_t row = i / all, column = i % all;
        W[i] = column < TOKEN_WIDTH
                   ? posenc_random_normal(s->data->seed, "plot W", (uint64_t)(row * TOKEN_WIDTH + column))
                   : set->rows[(column - TOKEN_WIDTH) * set->width + row];
    }
    for (int64_t i = 0; i < TOKEN_WIDTH; i++)
        x[i] = posenc_random_normal(s->data->seed, "plot x", (uint64_t)i);
    x[all - 1] = 1;
}

/* Columns: a = W_I x, e = W_P p, their sum, and W times both at once. Returns how far the last two are apart.
 */
static double fill_products(const pe_row_set *set, const double *W, const double *x, double *to)
{
    const int64_t all  = TOKEN_WIDTH + set->n;
    double        most = 0;
    for (int64_t i = 0; i < set->width; i++) {
        double *row = to + 4 * i;
        row[0]      = pe_sketch_dot(W + i * all, x, TOKEN_WIDTH);
        row[1]      = set->rows[(set->n - 1) * set->width + i];
        row[2]      = row[0] + row[1];
        row[3]      = pe_sketch_dot(W + i * all, x, all);
        most        = fmax(most, fabs(row[3] - row[2]));
    }
    return most;
}

static void set_matrix(pe_sketch *s, pe_figure *f, const double *values, int64_t rows, int64_t cols,
                       const char *title)
{
    pe_sketch_grid(f, values, rows, cols);
    f->title        = title;
    f->signed_scale = 1;
    set_numbers(s, f, DECIMALS);
}

void pe_diagrams_onehot(pe_sketch *s)
{
    static const char *const products[] = {"a", "e", "a + e", "W [x; p]"};
    static const char *const one[]      = {"[x; p]"};
    const pe_row_set         set        = pe_sketch_rows(s);
    const int64_t            all        = TOKEN_WIDTH + set.n;
    double                  *W = pe_sketch_numbers(s, set.width * all), *x = pe_sketch_numbers(s, all);
    double                  *to     = pe_sketch_numbers(s, 4 * set.width);
    pe_figure               *panels = pe_sketch_panels(s, s->figure, 3, 3);
    const char             **names  = pe_sketch_take(s, all, sizeof *names);
    if (!names)
        return;
    fill_matrix(s, &set, W, x);
    const double apart = fill_products(&set, W, x, to);
    for (int64_t i = 0; i < all; i++)
        names[i] = i < TOKEN_WIDTH ? pe_sketch_text(s, "x%lld", (long long)i)
                                   : pe_sketch_text(s, "p%lld", (long long)i - TOKEN_WIDTH);
    set_matrix(s, &panels[0], W, set.width, all, "W = [W_I, W_P]; W_P has a column per position");
    set_matrix(s, &panels[1], x, all, 1, "token x above the one-hot p");
    set_matrix(s, &panels[2], to, set.width, 4, "a = W_I x, e = W_P p");
    panels[0].col_names = panels[1].row_names = names;
    panels[1].col_names                       = one;
    panels[2].col_names                       = products;
    pe_sketch_labels(&panels[0], "input", "channel", NULL);
    pe_sketch_labels(&panels[1], NULL, "input", NULL);
    pe_sketch_labels(&panels[2], NULL, "channel", NULL);
    s->what = pe_sketch_text(
        s, "position %lld added, or as a one-hot beside the token\nthe two differ by less than %.0e",
        (long long)set.n - 1, fmax(apart, ROUNDING));
}

/* ---------------------------------------------------------------- words --------------------- */

/* Words [n, D]: from N(0,1), the same for the same word. */
static double *draw_words(pe_sketch *s)
{
    const int64_t D = s->data->dims.D, n = s->data->length;
    double       *x = pe_sketch_numbers(s, n * D);
    for (int64_t i = 0; x && i < n * D; i++)
        x[i] = posenc_random_normal(s->data->seed, s->data->words[i / D], (uint64_t)(i % D));
    return x;
}

/* The angle of each pair at positions 1 .. n, [n, M]. */
static double *read_angles(pe_sketch *s, int64_t *M)
{
    const double *w      = pe_rotated_frequencies(s, s->e, M, NULL);
    double       *angles = pe_sketch_numbers(s, s->data->length * *M);
    for (int64_t i = 0; w && angles && i < s->data->length * *M; i++)
        angles[i] = (double)(1 + i / *M) * w[i % *M];
    return angles;
}

void pe_diagrams_words(pe_sketch *s)
{
    const int64_t D = s->data->dims.D, n = s->data->length;
    int64_t       M = 0;
    if (!s->data->words || n > MOST_WORDS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT, "picture: words needs 2 to %d words", MOST_WORDS);
    const double *angles = s->status ? NULL : read_angles(s, &M);
    double       *before = s->status ? NULL : draw_words(s), *after = pe_sketch_numbers(s, n * D);
    pe_figure    *panels = pe_sketch_panels(s, s->figure, 3, 1);
    const char  **names  = pe_sketch_take(s, n, sizeof *names);
    if (!names || !before || !after)
        return;
    memcpy(after, before, (size_t)(n * D) * sizeof *after);
    pe_rotated_vectors(s, after, 1, n, 1);
    for (int64_t i = 0; i < n; i++)
        names[i] = pe_sketch_text(s, "%lld %s", (long long)i + 1, s->data->words[i]);
    set_matrix(s, &panels[0], before, n, D, "query or key of each word");
    set_matrix(s, &panels[1], angles, n, M, "angle m theta_i of each pair (radians)");
    set_matrix(s, &panels[2], after, n, D, "rotated by its position m");
    panels[1].signed_scale = 0;
    for (int k = 0; k < 3; k++) {
        panels[k].row_names = names;
        pe_sketch_labels(&panels[k], k == 1 ? "pair i" : "channel", "position and word", NULL);
    }
    s->what = "words rotated by their positions 1, 2, ... (arXiv:2104.09864, figure 1)";
}
