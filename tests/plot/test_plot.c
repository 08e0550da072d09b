/* SPDX-License-Identifier: MIT */
/*
 * Pictures: that files are what their ending says, that nothing in a text can harm, that the terminal's picture fits,
 * and that every picture which the registry promises can be drawn.
 */
#include "plot/colours.h"
#include "plot/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NASTY "it's <b> & \"5\" `touch harmed` $(touch harmed) ^_{x}\nsecond line"

enum { N = 12, COLUMNS = 60 };

static double        xs[N], ys[2][N], grid[N * N];
static char          folder[] = "/tmp/posenc-plot-XXXXXX";
static pe_curve      curves[2];
static const pe_mark mark = {4, "L = 4"};

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        xs[i]    = i + 1;
        ys[0][i] = i * i;
        ys[1][i] = i == 5 ? (double)NAN : -i;
    }
    for (int i = 0; i < N * N; i++)
        grid[i] = i - N * N / 2;
    for (int k = 0; k < 2; k++)
        curves[k] = (pe_curve){.name = k ? NASTY : "plain", .x = xs, .y = ys[k], .n = N};
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_data(void **state)
{
    (void)state;
    return chdir("/") || rmdir(folder);
}

static pe_figure some_curves(void)
{
    return (pe_figure){.kind        = PE_CURVES,
                       .title       = NASTY,
                       .x_label     = "x (tokens)",
                       .y_label     = "y",
                       .log_x       = 1,
                       .curves      = curves,
                       .curve_count = 2,
                       .marks       = &mark,
                       .mark_count  = 1};
}

static pe_figure a_grid(void)
{
    return (pe_figure){.kind         = PE_GRID,
                       .title        = "grid",
                       .x_label      = "x",
                       .y_label      = "y",
                       .value_label  = "value",
                       .values       = grid,
                       .rows         = N,
                       .cols         = N,
                       .dx           = 1,
                       .dy           = 1,
                       .signed_scale = 1};
}

/* ---------------------------------------------------------------- files --------------------- */

static char *read_whole(const char *path, size_t *size)
{
    FILE *from = fopen(path, "rb");
    char *data = malloc(1 << 20);
    assert_non_null(from);
    assert_non_null(data);
    *size       = fread(data, 1, (1 << 20) - 1, from);
    data[*size] = 0;
    fclose(from);
    return data;
}

static void a_file_is_what_its_ending_says(void **state)
{
    static const struct {
        const char *path, *start;
    } rows[] = {{"a.png", "\x89PNG"}, {"a.svg", "<?xml"}, {"a.pdf", "%PDF"}, {"A.PNG", "\x89PNG"}};
    const pe_figure figures[] = {some_curves(), a_grid()};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 2; k++) {
            size_t       size;
            posenc_error err;
            if (pe_plot_file(&figures[k], rows[i].path, &err))
                fail_msg("%s", err.message);
            char *data = read_whole(rows[i].path, &size);
            assert_true(size > 500 && !strncmp(data, rows[i].start, strlen(rows[i].start)));
            free(data);
            assert_int_equal(unlink(rows[i].path), 0);
        }
    assert_int_not_equal(access("harmed", F_OK), 0);
}

static void other_endings_and_places_are_refused_and_leave_nothing(void **state)
{
    const pe_figure f = a_grid();
    posenc_error    err;
    (void)state;
    assert_int_equal(pe_plot_file(&f, "a.gif", &err), POSENC_ARGUMENT);
    assert_non_null(strstr(err.message, "a.gif"));
    assert_int_equal(pe_plot_file(&f, "png", &err), POSENC_ARGUMENT);
    assert_int_equal(pe_plot_file(&f, "no/such/folder/a.png", &err), POSENC_FILE);
    assert_non_null(strstr(err.message, "no/such/folder/a.png"));
    assert_int_not_equal(access("a.gif", F_OK), 0);
}

static void without_gnuplot_the_sentence_names_the_package(void **state)
{
    const pe_figure f    = a_grid();
    char           *path = strdup(getenv("PATH"));
    posenc_error    err;
    (void)state;
    setenv("PATH", folder, 1);
    assert_int_equal(pe_plot_ready(&err), POSENC_FILE);
    assert_non_null(strstr(err.message, "gnuplot-nox"));
    assert_int_equal(pe_plot_file(&f, "a.png", NULL), POSENC_FILE);
    setenv("PATH", path, 1);
    free(path);
    assert_int_not_equal(access("a.png", F_OK), 0);
    assert_int_equal(pe_plot_ready(&err), POSENC_OK);
}

/* ---------------------------------------------------------------- svg ----------------------- */

/* Follows elements, comments and CDATA; every element that is opened must be closed in order. */
static int is_well_formed(const char *at)
{
    char        stack[64][32];
    int         depth      = 0;
    const char *skips[][2] = {{"<?", "?>"}, {"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<!", ">"}};
    while ((at = strchr(at, '<'))) {
        size_t s = 0;
        while (s < 4 && strncmp(at, skips[s][0], strlen(skips[s][0])) != 0)
            s++;
        const char *end = strstr(at, s < 4 ? skips[s][1] : ">");
        if (!end)
            return 0;
        const int    closes = at[1] == '/';
        const size_t n      = strcspn(at + 1 + closes, " \t\n/>");
        if (s < 4)
            ;
        else if (closes) {
            if (--depth < 0 || strlen(stack[depth]) != n || strncmp(stack[depth], at + 2, n) != 0)
                return 0;
        } else if (end[-1] != '/') {
            if (depth == 64 || n >= 32)
                return 0;
            snprintf(stack[depth++], 32, "%.*s", (int)n, at + 1);
        }
        at = end;
    }
    return depth == 0;
}

static void an_svg_is_well_formed_and_carries_its_name(void **state)
{
    const pe_figure figures[] = {some_curves(), a_grid()};
    (void)state;
    for (int k = 0; k < 2; k++) {
        char        *svg;
        posenc_error err;
        if (pe_plot_svg(&figures[k], "loss_7", &svg, &err))
            fail_msg("%s", err.message);
        assert_true(is_well_formed(svg));
        assert_non_null(strstr(svg, "loss_7"));
        assert_non_null(strstr(svg, "</svg>"));
        free(svg);
    }
    assert_true(is_well_formed("<a><b/><c>x</c></a>"));
    assert_false(is_well_formed("<a><b></a></b>"));
    assert_int_not_equal(access("harmed", F_OK), 0);
}

static void a_text_is_shown_as_it_is(void **state)
{
    const pe_figure f = some_curves();
    char           *svg;
    (void)state;
    assert_int_equal(pe_plot_svg(&f, "x", &svg, NULL), POSENC_OK);
    assert_non_null(strstr(svg, "it's &lt;b> &amp;"));
    assert_non_null(strstr(svg, "`touch harmed`"));
    assert_non_null(strstr(svg, "^_{x}"));
    free(svg);
    assert_int_equal(pe_plot_svg(&f, "bad name'", &svg, NULL), POSENC_ARGUMENT);
    assert_null(svg);
}

/* ---------------------------------------------------------------- terminal ------------------ */

static char *draw(const pe_figure *f, int columns, int colour)
{
    char  *text;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_int_equal(pe_plot_terminal(f, to, columns, colour, NULL), POSENC_OK);
    fclose(to);
    return text;
}

static void no_line_is_wider_than_the_terminal(void **state)
{
    pe_figure figures[] = {some_curves(), a_grid()};
    (void)state;
    figures[0].title = "short";
    for (int k = 0; k < 2; k++) {
        char *text = draw(&figures[k], COLUMNS, 0);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            assert_true(k == 0 && strstr(line, "touch") ? 1 : strcspn(line, "\n") <= COLUMNS);
        free(text);
    }
}

static void without_colour_there_is_no_escape_and_with_it_there_are_half_blocks(void **state)
{
    const pe_figure f     = a_grid();
    char           *plain = draw(&f, COLUMNS, 0), *coloured = draw(&f, COLUMNS, 1);
    (void)state;
    assert_null(strchr(plain, '\033'));
    assert_non_null(strchr(plain, '@')); /* the largest value */
    assert_non_null(strstr(coloured, "\033[38;2;"));
    assert_non_null(strstr(coloured, "\u2580"));
    free(plain);
    free(coloured);
}

static void a_terminal_too_narrow_is_refused(void **state)
{
    const pe_figure f = a_grid();
    posenc_error    err;
    (void)state;
    assert_int_equal(pe_plot_terminal(&f, stdout, 5, 0, &err), POSENC_ARGUMENT);
    assert_non_null(strstr(err.message, "5 columns"));
}

static void scales_end_where_they_should(void **state)
{
    const pe_rgb first = pe_scale_colour(0, 0), last = pe_scale_colour(0, 2),
                 middle = pe_scale_colour(1, 0.5);
    double    low, high;
    pe_figure f = a_grid();
    (void)state;
    assert_true(first.r == 68 && first.g == 1 && first.b == 84);
    assert_true(last.r == 253 && last.g == 231 && last.b == 37);
    assert_true(middle.r == 247 && middle.g == 247 && middle.b == 247);
    pe_value_range(&f, &low, &high);
    assert_true(low == -high && high == N * N / 2);
    f.rows = f.cols = 1;
    f.values        = &xs[0];
    f.signed_scale  = 0;
    pe_value_range(&f, &low, &high);
    assert_true(low < high); /* a scale of no width would divide by zero */
}

/* ---------------------------------------------------------------- pictures of encodings ----- */

static posenc_tensor *params_create(const posenc_encoding *e, const posenc_dims *dims)
{
    const int      n      = posenc_param_count(e);
    posenc_tensor *params = calloc((size_t)n + 1, sizeof *params);
    assert_non_null(params);
    for (int i = 0; i < n; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], size = 1;
        assert_int_equal(posenc_param_shape(e, dims, i, &ndim, shape, NULL), POSENC_OK);
        for (int32_t a = 0; a < ndim; a++)
            size *= shape[a];
        params[i] = posenc_tensor_contiguous(calloc((size_t)size, sizeof(double)), POSENC_F64, ndim, shape);
    }
    assert_int_equal(posenc_param_init(e, dims, params, 1, NULL), POSENC_OK);
    return params;
}

static void check_figure(const pe_figure *f)
{
    assert_non_null(f->title);
    if (f->kind == PE_GRID)
        for (int64_t i = 0; i < f->rows * f->cols; i++)
            assert_true(isfinite(f->values[i]));
    for (int k = 0; k < f->curve_count; k++)
        for (int64_t i = 0; i < f->curves[k].n; i++)
            assert_true(isfinite(f->curves[k].x[i]) && isfinite(f->curves[k].y[i]));
}

static void draw_all_of(const char *name)
{
    const posenc_dims dims = {.B = 1, .H = 4, .D = 16, .Lq = 32, .Lk = 32, .d_model = 64, .L = 32};
    posenc_encoding  *e;
    pe_offer          offers[PE_MOST_OFFERS];
    assert_int_equal(posenc_encoding_create(&e, name, NULL, NULL), POSENC_OK);
    posenc_tensor  *params = params_create(e, &dims);
    pe_picture_data data   = {.dims = dims, .length = 32, .causal = 1, .params = params};
    const int       count  = pe_picture_offers(e, offers);
    for (int i = 0; i < count; i++) {
        pe_picture  *picture;
        posenc_error err;
        if (pe_picture_create(&picture, e, &offers[i], &data, &err))
            fail_msg("%s: %s: %s", name, offers[i].kind, err.message);
        check_figure(pe_picture_figure(picture));
        pe_picture_free(picture);
    }
    for (int i = 0; i < posenc_param_count(e); i++)
        free(params[i].data);
    free(params);
    posenc_encoding_free(e);
}

/* Commas + 1, or 0 for an empty list. */
static int length_of_list(const char *list)
{
    int n = list && *list;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

static void every_picture_that_the_registry_promises_can_be_drawn(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        pe_offer                    offers[PE_MOST_OFFERS];
        posenc_encoding            *e;
        assert_int_equal(posenc_encoding_create(&e, info->name, NULL, NULL), POSENC_OK);
        assert_int_equal(pe_picture_offers(e, offers), length_of_list(info->pictures));
        posenc_encoding_free(e);
        draw_all_of(info->name);
    }
}

/* What a rotation makes of equal vectors is 1 at distance 0 and never more; what a table makes of itself is 1. */
static void similarity_is_one_with_itself_and_never_more(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        const posenc_dims dims  = {.B = 1, .H = 4, .D = 16, .Lq = 32, .Lk = 32, .d_model = 64, .L = 32};
        const pe_offer    offer = {info->place, "similarity"};
        posenc_encoding  *e;
        pe_picture       *picture;
        assert_int_equal(posenc_encoding_create(&e, info->name, NULL, NULL), POSENC_OK);
        posenc_tensor  *params = params_create(e, &dims);
        pe_picture_data data   = {.dims = dims, .length = 32, .params = params};
        if (!pe_picture_create(&picture, e, &offer, &data, NULL)) {
            const pe_figure *f = pe_picture_figure(picture);
            const double    *v = f->kind == PE_GRID ? f->values : f->curves[0].y;
            const int64_t    n = f->kind == PE_GRID ? f->rows * f->cols : f->curves[0].n;
            assert_true(fabs(v[0] - 1) < 1e-12);
            for (int64_t k = 0; k < n; k++)
                assert_true(v[k] <= 1 + 1e-12);
            pe_picture_free(picture);
        }
        for (int k = 0; k < posenc_param_count(e); k++)
            free(params[k].data);
        free(params);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_what_its_ending_says),
        cmocka_unit_test(other_endings_and_places_are_refused_and_leave_nothing),
        cmocka_unit_test(without_gnuplot_the_sentence_names_the_package),
        cmocka_unit_test(an_svg_is_well_formed_and_carries_its_name),
        cmocka_unit_test(a_text_is_shown_as_it_is),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(without_colour_there_is_no_escape_and_with_it_there_are_half_blocks),
        cmocka_unit_test(a_terminal_too_narrow_is_refused),
        cmocka_unit_test(scales_end_where_they_should),
        cmocka_unit_test(every_picture_that_the_registry_promises_can_be_drawn),
        cmocka_unit_test(similarity_is_one_with_itself_and_never_more),
    };
    return cmocka_run_group_tests(tests, make_data, remove_data);
}
