/* SPDX-License-Identifier: MIT */
/*
 * A figure in gnuplot's language: the numbers arrive, texts cannot leave their quotes, and the colours are
 * those of the figure
 */
#include "plot/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <posenc/registry.h>

enum { N = 7 };

static double   xs[N], ys[3][N];
static pe_curve curves[3];

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        xs[i] = i - 2;
        for (int k = 0; k < 3; k++)
            ys[k][i] = posenc_random_normal(6, "y", (uint64_t)(k * N + i)) * 1e3;
    }
    for (int k = 0; k < 3; k++)
        curves[k] = (pe_curve){.name = "curve", .x = xs, .y = ys[k], .n = N};
    return 0;
}

static pe_figure some_curves(int count)
{
    return (pe_figure){.kind = PE_CURVES, .title = "t", .curves = curves, .curve_count = count};
}

static pe_figure a_grid(const double *values, int64_t rows, int64_t cols)
{
    return (pe_figure){
        .kind = PE_GRID, .title = "t", .values = values, .rows = rows, .cols = cols, .dx = 1, .dy = 1};
}

static char  *script_text;
static size_t script_size;

/* The script, to be freed. */
static char *script_of(const pe_figure *figure)
{
    FILE *to = open_memstream(&script_text, &script_size);
    assert_non_null(to);
    pe_script_write(to, figure, "set terminal svg");
    assert_int_equal(fclose(to), 0);
    return script_text;
}

/* What stands behind `name`, which the script must have. */
static const char *after(const char *script, const char *name)
{
    const char *at = strstr(script, name);
    if (!at)
        fail_msg("there is no %s in the script", name);
    return at + strlen(name);
}

static int count_of(const char *script, const char *word)
{
    int n = 0;
    for (const char *at = script; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

/* Two numbers of "set NAME [low:high]". */
static void range_is(const char *script, const char *name, double low, double high)
{
    double a, b;
    char   before[40];
    snprintf(before, sizeof before, "set %s [", name);
    assert_int_equal(sscanf(after(script, before), "%lf:%lf", &a, &b), 2);
    if (fabs(a - low) > 1e-8 * fabs(low) || fabs(b - high) > 1e-8 * fabs(high))
        fail_msg("%s is [%g:%g], not [%g:%g]", name, a, b, low, high);
}

/* ---------------------------------------------------------------- numbers ------------------- */

static void block_is(const char *script, const char *name, const double *wanted, int count)
{
    char head[40], *end;
    snprintf(head, sizeof head, "$%s << END_OF_DATA\n", name);
    const char *at = after(script, head);
    for (int i = 0; i < count; i++) {
        const double x = strtod(at, &end);
        assert_ptr_not_equal(at, end);
        if (isfinite(wanted[i]) ? !(fabs(x - wanted[i]) <= 1e-8 * fabs(wanted[i])) : !isnan(x))
            fail_msg("number %d of %s is %g, not %g", i, name, x, wanted[i]);
        at = end;
    }
    assert_memory_equal(at, "\nEND_OF_DATA", 12);
}

static void a_grid_arrives_row_by_row(void **state)
{
    const double values[6] = {1, -2.5, (double)NAN, 1e-300, (double)INFINITY, 123456789};
    pe_figure    f         = a_grid(values, 2, 3);
    f.x0                   = 10;
    f.dx                   = 0.5;
    f.y0                   = -4;
    f.dy                   = 2;
    char *script           = script_of(&f);
    (void)state;
    block_is(script, "grid", values, 6);
    range_is(script, "xrange", 9.75, 11.25); /* half a cell beyond the outermost centres */
    range_is(script, "yrange", -1, -5);      /* downwards, as a matrix is read */
    range_is(script, "cbrange", -2.5, 123456789);
    free(script);
}

/* gnuplot draws no image of a single row: it is written twice. */
static void a_single_row_is_written_twice(void **state)
{
    const double row[2] = {3, 4}, twice[4] = {3, 4, 3, 4}, one[4] = {3, 3, 3, 3}, column[4] = {3, 3, 4, 4};
    pe_figure    flat = a_grid(row, 1, 2), upright = a_grid(row, 2, 1), dot = a_grid(row, 1, 1);
    char        *a = script_of(&flat), *b = script_of(&upright), *c = script_of(&dot);
    (void)state;
    block_is(a, "grid", twice, 4);
    block_is(b, "grid", column, 4);
    block_is(c, "grid", one, 4);
    free(a);
    free(b);
    free(c);
}

static void curves_arrive_with_their_bands_below_them(void **state)
{
    pe_figure f = some_curves(3);
    double    wanted[4 * N];
    (void)state;
    curves[1].low  = ys[0];
    curves[1].high = ys[2];
    ys[1][3]       = (double)NAN;
    for (int i = 0; i < N; i++) {
        wanted[4 * i]     = xs[i];
        wanted[4 * i + 1] = ys[1][i];
        wanted[4 * i + 2] = ys[0][i];
        wanted[4 * i + 3] = ys[2][i];
    }
    f.low        = -3;
    f.high       = 5;
    char *script = script_of(&f);
    block_is(script, "curve1", wanted, 4 * N);
    range_is(script, "yrange", -3, 5);
    assert_int_equal(count_of(script, "filledcurves"), 1);
    assert_true(strstr(script, "filledcurves") < strstr(script, "with lines"));
    assert_int_equal(count_of(script, "with lines"), 3);
    curves[1].low = curves[1].high = NULL;
    ys[1][3]                       = 0;
    free(script);
}

static void panels_are_figures_of_one_page(void **state)
{
    const double    values[4] = {1, 2, 3, 4};
    const pe_figure two[2]    = {a_grid(values, 2, 2), some_curves(2)};
    const pe_figure page      = {
             .kind = PE_PANELS, .title = "page", .panels = two, .panel_count = 2, .panel_columns = 2};
    char *script = script_of(&page);
    (void)state;
    assert_int_equal(count_of(script, "\nset multiplot\n"), 1);
    assert_int_equal(count_of(script, "\nunset multiplot\n"), 1);
    assert_int_equal(count_of(script, "\nreset\n"), 1);
    assert_int_equal(count_of(script, "\nplot "), 2);
    assert_int_equal(count_of(script, "'page'"), 1);
    free(script);
}

/* gnuplot is told nine digits, and refuses an empty range. */
static void a_range_is_one_in_nine_digits_too(void **state)
{
    static const double bounds[][4] = {
        {1, 1 + 1e-12, 0.99, 1.01},      {0, 5e-324, -1, 1},       {-3, -3 - 1e-15, -3.03, -2.97},
        {1e20, 1e20 * (1 + 1e-9), 0, 0}, {-1e308, 1e308, 0, 0},    {0, (double)INFINITY, 0, 0},
        {2, 2 + 1e-6, 2, 2 + 1e-6},      {-1e-200, 0, -1e-200, 0}, {7, 7, 6.93, 7.07},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const double *b   = bounds[i];
        double        low = fmin(b[0], b[1]), high = fmax(b[0], b[1]), told[2];
        char          text[60];
        pe_colours_widen(&low, &high);
        snprintf(text, sizeof text, "%.9g:%.9g", low, high);
        assert_int_equal(sscanf(text, "%lf:%lf", &told[0], &told[1]), 2);
        assert_true(told[0] < told[1] && isfinite(1 / (told[1] - told[0])));
        if (b[2] < b[3])
            assert_true(fabs(low - b[2]) <= 1e-9 && fabs(high - b[3]) <= 1e-9);
    }
}

static void curves_that_are_almost_level_have_a_frame(void **state)
{
    pe_figure f = some_curves(1);
    (void)state;
    f.low        = 5;
    f.high       = 5 + 1e-12;
    char *script = script_of(&f);
    range_is(script, "yrange", 4.95, 5.05);
    free(script);
}

/* One number is enough for gnuplot; without any the frame says so. */
static void a_frame_without_numbers_says_so(void **state)
{
    const double none[N] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e308, (double)NAN, -1e308,
                            -1e301};
    double       one[N]  = {-5, -4, -3, (double)NAN, 0, -1, -2};
    pe_figure    f       = some_curves(2);
    (void)state;
    curves[0].y = curves[1].y = none;
    for (int log_x = 0; log_x < 2; log_x++) {
        f.log_x      = log_x;
        char *script = script_of(&f);
        assert_int_equal(count_of(script, "'no finite numbers'"), 1);
        range_is(script, "xrange", log_x ? 1 : -2, 4);
        free(script);
    }
    curves[1].y = one;
    for (int log_y = 0; log_y < 2; log_y++) {
        f.log_y      = log_y; /* which has no place for numbers below 0 */
        char *script = script_of(&f);
        assert_int_equal(count_of(script, "'no finite numbers'"), log_y);
        free(script);
    }
    curves[0].y = ys[0];
    curves[1].y = ys[1];
}

/* ---------------------------------------------------------------- texts --------------------- */

/* Is the script free of `word` outside of '...'? Between two of these a quote may stand as "'". */
static int is_quoted_everywhere(const char *script, const char *word)
{
    int inside = 0;
    for (const char *at = script; *at; at++) {
        if (!inside && !strncmp(at, "\"'\"", 3))
            at += 2;
        else if (*at == '\'')
            inside = !inside;
        if (!inside && !strncmp(at, word, strlen(word)))
            return 0;
    }
    return !inside;
}

static void no_text_leaves_its_quotes(void **state)
{
    static const char *const texts[] = {
        "HARM",    "it's HARM", "'HARM",   "''HARM''", "\"HARM\"", "`HARM`",
        "a\nHARM", "a'\nHARM",  "\\'HARM", "HARM'",    "\tHARM\r", "HARM \\",
    };
    const double values[4] = {1, 2, 3, 4};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const pe_mark mark = {2, texts[i]};
        const pe_tick tick = {1, texts[i]};
        pe_figure     grid = a_grid(values, 2, 2), lines = some_curves(2);
        const char   *named[] = {curves[0].name, curves[1].name};
        grid.title = grid.x_label = grid.y_label = grid.value_label = grid.second_label = texts[i];
        grid.ticks                                                                      = &tick;
        grid.tick_count                                                                 = 1;
        lines.title = lines.x_label = texts[i];
        lines.marks                 = &mark;
        lines.mark_count            = 1;
        curves[0].name = curves[1].name = texts[i];
        char *a = script_of(&grid), *b = script_of(&lines);
        if (!is_quoted_everywhere(a, "HARM") || !is_quoted_everywhere(b, "HARM"))
            fail_msg("\"%s\" leaves its quotes", texts[i]);
        assert_true(count_of(a, "HARM") >= 5 && count_of(b, "HARM") >= 5);
        assert_null(strchr(a, '\t'));
        free(a);
        free(b);
        curves[0].name = named[0];
        curves[1].name = named[1];
    }
}

/* ---------------------------------------------------------------- colours ------------------- */

static int same_colour(pe_rgb a, pe_rgb b)
{
    return a.r == b.r && a.g == b.g && a.b == b.b;
}

/* Relative luminance, which a reader without colours sees. */
static double luminance(pe_rgb c)
{
    return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
}

static void a_scale_of_sizes_gets_lighter_and_a_signed_one_is_lightest_at_zero(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        const pe_rgb a = pe_colours_on_scale(0, i / 100.0), b = pe_colours_on_scale(0, (i + 1) / 100.0);
        assert_true(luminance(b) >= luminance(a) - 1e-9);
        const pe_rgb c = pe_colours_on_scale(1, i / 100.0), d = pe_colours_on_scale(1, (i + 1) / 100.0);
        assert_true(i < 50 ? luminance(d) >= luminance(c) : luminance(d) <= luminance(c));
    }
    assert_true(same_colour(pe_colours_on_scale(0, -3), pe_colours_on_scale(0, 0)));
    assert_true(same_colour(pe_colours_on_scale(1, 9), pe_colours_on_scale(1, 1)));
    const pe_rgb missing = pe_colours_on_scale(0, (double)NAN);
    assert_true(missing.r == missing.g && missing.g == missing.b);
}

static void a_stop_has_its_own_colour(void **state)
{
    (void)state;
    for (int is_signed = 0; is_signed <= 1; is_signed++) {
        const pe_rgb *stops;
        const int     n = pe_colours_stops(is_signed, &stops);
        for (int i = 0; i < n; i++)
            assert_true(same_colour(pe_colours_on_scale(is_signed, (double)i / (n - 1)), stops[i]));
    }
}

static void eight_curves_have_eight_colours(void **state)
{
    pe_curve  many[9] = {{.name = ""}};
    pe_figure f       = {.kind = PE_CURVES, .curves = many, .curve_count = 9};
    (void)state;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            assert_false(same_colour(pe_colours_of_curve(&f, i), pe_colours_of_curve(&f, k)));
    assert_true(same_colour(pe_colours_of_curve(&f, 8), pe_colours_of_curve(&f, 0)));
    many[3].hue = 1;
    assert_true(same_colour(pe_colours_of_curve(&f, 3), pe_colours_of_curve(&f, 0)));
    many[0].style = PE_RULE; /* grey, whatever its place */
    assert_true(same_colour(pe_colours_of_curve(&f, 0), pe_colours_of_curve(&f, 7)));
    f.ordered     = 1; /* a family runs along the scale, and stays off its lightest end */
    many[0].style = PE_LINE;
    assert_true(same_colour(pe_colours_of_curve(&f, 0), pe_colours_on_scale(0, 0)));
    assert_true(same_colour(pe_colours_of_curve(&f, 8), pe_colours_on_scale(0, 0.88)));
    f.curve_count = 1;
    assert_true(same_colour(pe_colours_of_curve(&f, 0), pe_colours_on_scale(0, 0)));
}

static void a_range_holds_all_that_is_shown_and_is_never_empty(void **state)
{
    const double some[4] = {2, (double)NAN, 7, -(double)INFINITY}, holes[2] = {(double)NAN, (double)NAN},
                 level[2] = {5, 5};
    pe_figure       f = a_grid(some, 2, 2), none = a_grid(holes, 1, 2), flat = a_grid(level, 1, 2);
    const pe_figure both[2] = {f, flat};
    double          low, high;
    (void)state;
    pe_colours_range(&f, &low, &high);
    assert_true(low == 2 && high == 7);
    f.signed_scale = 1;
    pe_colours_range(&f, &low, &high);
    assert_true(low == -7 && high == 7);
    f.low  = 0;
    f.high = 3; /* what the figure says, wins */
    pe_colours_range(&f, &low, &high);
    assert_true(low == 0 && high == 3);
    pe_colours_range(&none, &low, &high);
    assert_true(low == -1 && high == 1);
    pe_colours_range(&flat, &low, &high);
    assert_true(low == 4 && high == 6);
    pe_colours_extremes(both, 2, &low, &high);
    assert_true(low == 2 && high == 7);
    curves[0].low         = ys[1];
    curves[0].high        = ys[2];
    const pe_figure lines = some_curves(1);
    pe_colours_extremes(&lines, 1, &low, &high);
    for (int i = 0; i < N; i++)
        assert_true(low <= ys[1][i] && ys[2][i] <= high);
    curves[0].low = curves[0].high = NULL;
}

/* Black on light cells, white on dark ones; names are texts, whatever is in them. */
static void a_table_has_a_number_in_each_cell_and_names_at_its_axes(void **state)
{
    static const double      values[] = {-1, 0, (double)NAN, 1};
    static const char *const names[]  = {"it's `x`", "b"};
    pe_figure                f        = a_grid(values, 2, 2);
    (void)state;
    f.with_numbers = 1;
    f.decimals     = 1;
    f.signed_scale = 1;
    f.row_names    = names;
    char *script   = script_of(&f);
    assert_non_null(
        strstr(script, "$numbers << END_OF_DATA\n0 0 -1.0 16777215\n1 0 0.0 0\n1 1 1.0 16777215\nEND"));
    assert_non_null(strstr(script, "set ytics noenhanced ('it' .\"'\". 's `x`' 0, 'b' 1)"));
    assert_int_equal(count_of(script, "with labels"), 1);
    free(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_has_a_number_in_each_cell_and_names_at_its_axes),
        cmocka_unit_test(a_grid_arrives_row_by_row),
        cmocka_unit_test(a_single_row_is_written_twice),
        cmocka_unit_test(curves_arrive_with_their_bands_below_them),
        cmocka_unit_test(a_range_is_one_in_nine_digits_too),
        cmocka_unit_test(curves_that_are_almost_level_have_a_frame),
        cmocka_unit_test(a_frame_without_numbers_says_so),
        cmocka_unit_test(panels_are_figures_of_one_page),
        cmocka_unit_test(no_text_leaves_its_quotes),
        cmocka_unit_test(a_scale_of_sizes_gets_lighter_and_a_signed_one_is_lightest_at_zero),
        cmocka_unit_test(a_stop_has_its_own_colour),
        cmocka_unit_test(eight_curves_have_eight_colours),
        cmocka_unit_test(a_range_holds_all_that_is_shown_and_is_never_empty),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
