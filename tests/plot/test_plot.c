/* SPDX-License-Identifier: MIT */
/*
 * Figures: that files are what their ending says, that nothing in a text can harm, that the terminal's
 * picture fits.
 */
#include "plot/draw.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
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

static pe_figure some_panels(const pe_figure panels[2])
{
    return (
        pe_figure){.kind = PE_PANELS, .title = NASTY, .panels = panels, .panel_count = 2, .panel_columns = 2};
}

/* Arrow k ends at (k, k*k) of the data. */
static pe_figure some_arrows(void)
{
    static pe_curve arrows[3];
    for (int k = 0; k < 3; k++)
        arrows[k] = (pe_curve){.name = "arrow", .x = xs + k, .y = ys[0] + k, .n = 1};
    return (pe_figure){
        .kind = PE_ARROWS, .title = "arrows", .curves = arrows, .curve_count = 3, .low = -5, .high = 5};
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
    const pe_figure both[]    = {some_curves(), a_grid()};
    const pe_figure figures[] = {some_curves(), a_grid(), some_panels(both), some_arrows()};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 4; k++) {
            size_t       size;
            posenc_error err;
            if (pe_gnuplot_file(&figures[k], rows[i].path, &err))
                fail_msg("%s", err.message);
            char *data = read_whole(rows[i].path, &size);
            assert_true(size > 500 && !strncmp(data, rows[i].start, strlen(rows[i].start)));
            free(data);
            assert_int_equal(unlink(rows[i].path), 0);
        }
    assert_int_not_equal(access("harmed", F_OK), 0);
}

/* Numbers that gnuplot refuses, or has no axis for: whatever a table holds, there is a picture. */
static void any_numbers_are_drawn(void **state)
{
    static const double values[][2] = {
        {0, 0},   {1, 1 + 1e-12},   {5e-324, 0},        {-1e308, 1e308},
        {7, 7},   {1e300, -1e300},  {1e20, 1e20 + 1e5}, {(double)NAN, (double)NAN},
        {0, NAN}, {INFINITY, 1e308}};
    double   x[4]  = {1, 2, 3, 4}, y[4];
    pe_curve curve = {.name = "curve", .x = x, .y = y, .n = 4};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (int kind = 0; kind < 6; kind++) {
            pe_figure    f = kind < 3 ? some_curves() : a_grid();
            posenc_error err;
            for (int k = 0; k < 4; k++)
                y[k] = values[i][k % 2];
            f.curves      = &curve;
            f.curve_count = 1;
            f.log_y       = kind == 1;
            curve.low     = kind == 2 ? y : NULL;
            curve.high    = kind == 2 ? y : NULL;
            f.values      = y;
            f.rows = f.cols = 2;
            f.signed_scale  = kind == 3;
            f.with_numbers  = kind == 5;
            if (pe_gnuplot_file(&f, "a.svg", &err))
                fail_msg("%g and %g, %d: %s", values[i][0], values[i][1], kind, err.message);
            assert_int_equal(unlink("a.svg"), 0);
        }
}

static void other_endings_and_places_are_refused_and_leave_nothing(void **state)
{
    const pe_figure f = a_grid();
    posenc_error    err;
    (void)state;
    assert_int_equal(pe_gnuplot_file(&f, "a.gif", &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "a.gif"));
    assert_int_equal(pe_gnuplot_file(&f, "png", &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(pe_gnuplot_file(&f, "no/such/folder/a.png", &err), POSENC_ERROR_FILE);
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
    assert_int_equal(pe_gnuplot_ready(&err), POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, "gnuplot-nox"));
    assert_int_equal(pe_gnuplot_file(&f, "a.png", NULL), POSENC_ERROR_FILE);
    setenv("PATH", path, 1);
    free(path);
    assert_int_not_equal(access("a.png", F_OK), 0);
    assert_int_equal(pe_gnuplot_ready(&err), POSENC_OK);
}

/* ---------------------------------------------------------------- another gnuplot ----------- */

/* A program of that name stands before gnuplot, and a picture is asked for: what the sentence says. */
static void with_another(const char *script, const char *path, const char *says, int patience)
{
    const pe_figure f     = a_grid();
    char           *known = strdup(getenv("PATH")), search[4096];
    posenc_error    err;
    FILE           *to = fopen("gnuplot", "w");
    assert_non_null(to);
    fprintf(to, "#!/bin/sh\n%s\n", script);
    fclose(to);
    assert_int_equal(chmod("gnuplot", 0700), 0);
    snprintf(search, sizeof search, "%s:%s", folder, known);
    setenv("PATH", search, 1);
    pe_gnuplot_patience(patience, 1);
    const posenc_status status = path ? pe_gnuplot_file(&f, path, &err) : pe_gnuplot_ready(&err);
    pe_gnuplot_patience(300, 10);
    setenv("PATH", known, 1);
    free(known);
    unlink("gnuplot");
    assert_int_equal(status, POSENC_ERROR_FILE);
    if (!strstr(err.message, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", script, err.message, says);
    assert_true(!path || access(path, F_OK));
}

static void what_is_no_picture_is_not_written(void **state)
{
    (void)state;
    with_another("cat >/dev/null; echo hello", "a.png", "no .png", 2);
    with_another("cat >/dev/null; echo hello", "a.svg", "no .svg", 2);
    with_another("cat >/dev/null; echo hello", "a.pdf", "no .pdf", 2);
    with_another("cat >/dev/null; echo '<?xml version=\"1.0\"?><svg><g>'", "a.svg", "no .svg",
                 2); /* cut off */
    with_another("PATH=${PATH#*:} gnuplot \"$@\" | grep -v '<title>'", "a.svg", "no .svg", 100);
    with_another("PATH=${PATH#*:} gnuplot \"$@\" | grep -v '^</g>'", "a.svg", "no .svg", 100);
    with_another("cat >/dev/null; echo hello", NULL, "another program", 2);
}

static void a_gnuplot_that_says_nothing_is_ended(void **state)
{
    (void)state;
    with_another("exec sleep 1000", "a.png", "does not answer", 2);
    with_another("cat >/dev/null; exec <&- >&-; exec sleep 1000", "a.png", "could not draw", 2);
}

/* Its loader ends with the status of a shell that finds no program. */
static void a_gnuplot_that_cannot_be_loaded_is_quoted(void **state)
{
    (void)state;
    with_another("echo 'gnuplot: libgd.so.3: failed to map segment' >&2; exit 127", "a.png",
                 "could not draw the picture: gnuplot: libgd.so.3: failed to map segment", 2);
    with_another("exit 127", "a.png", "gnuplot-nox", 2);
}

static void a_gnuplot_that_dies_is_noticed_though_its_child_holds_the_line(void **state)
{
    (void)state;
    with_another("sleep 5 & exit 3", "a.png", "could not draw", 2);
}

static void nothing(int number)
{
}

static void after_a_signal_there_is_less_patience(void **state)
{
    const struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    const struct itimerval soon   = {.it_value = {.tv_usec = 300000}};
    const time_t           start  = time(NULL);
    (void)state;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    with_another("exec sleep 1000", "a.png", "does not answer", 100);
    assert_true(time(NULL) - start < 60);
}

/* Both directions of the conversation are far beyond what a socket holds: the first panel is drawn, at
   length, while most of the script is still to be read. */
static void many_large_panels_do_not_wait_for_each_other(void **state)
{
    enum { MANY = 20000, PANELS = 6 };
    double   *x = malloc(2 * MANY * sizeof *x);
    pe_curve  curve;
    pe_figure panels[PANELS];
    size_t    size;
    (void)state;
    assert_non_null(x);
    for (int i = 0; i < MANY; i++) {
        x[i]        = i;
        x[MANY + i] = (i * 7919) % 1000;
    }
    curve = (pe_curve){.name = "", .x = x, .y = x + MANY, .n = MANY};
    for (int k = 0; k < PANELS; k++)
        panels[k] = (pe_figure){.kind = PE_CURVES, .curves = &curve, .curve_count = 1};
    const pe_figure f = {
        .kind = PE_PANELS, .title = "many", .panels = panels, .panel_count = PANELS, .panel_columns = 2};
    alarm(120); /* a stand-still is a failure, not a pause */
    assert_int_equal(pe_gnuplot_file(&f, "many.svg", NULL), POSENC_OK);
    alarm(0);
    free(read_whole("many.svg", &size));
    assert_true(size > PANELS * 100000);
    assert_int_equal(unlink("many.svg"), 0);
    free(x);
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
    const pe_figure both[]    = {some_curves(), a_grid()};
    const pe_figure figures[] = {some_curves(), a_grid(), some_panels(both), some_arrows()};
    (void)state;
    for (int k = 0; k < 4; k++) {
        char        *svg;
        posenc_error err;
        if (pe_gnuplot_svg(&figures[k], "loss_7", &svg, &err))
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
    assert_int_equal(pe_gnuplot_svg(&f, "x", &svg, NULL), POSENC_OK);
    assert_non_null(strstr(svg, "it's &lt;b> &amp;"));
    assert_non_null(strstr(svg, "`touch harmed`"));
    assert_non_null(strstr(svg, "^_{x}"));
    free(svg);
    assert_int_equal(pe_gnuplot_svg(&f, "bad name'", &svg, NULL), POSENC_ERROR_ARGUMENT);
    assert_null(svg);
}

/* ---------------------------------------------------------------- terminal ------------------ */

/* Not inlined: gcc 12 would then take what is found in the text for pointers into this frame. */
__attribute__((noinline)) static char *draw(const pe_figure *f, int columns, int colour)
{
    char  *text;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_int_equal(pe_terminal_print(f, to, columns, colour, NULL), POSENC_OK);
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

/* Rows of 0 and of 1 in turn: their mean, '+', is in no row. In colour a line has two of them. */
static void rows_apart_are_drawn_or_left_out_but_not_averaged(void **state)
{
    double    values[100];
    pe_figure f = {
        .kind = PE_GRID, .rows = 50, .cols = 2, .values = values, .dx = 1, .dy = 1, .apart_rows = 1};
    (void)state;
    f.y_label = "channel";
    for (int i = 0; i < 100; i++)
        values[i] = i / 2 % 2 ? 1 - i % 2 : i % 2;
    char *text = draw(&f, COLUMNS, 0);
    for (const char *line = strchr(text, '|'); line; line = strchr(line + 1, '|'))
        assert_int_equal(strspn(line + 1, " @"), strcspn(line + 1, "\n"));
    assert_non_null(strstr(text, "one channel of every 4 is drawn, and the last"));
    free(text);
    char *coloured = draw(&f, COLUMNS, 1);
    assert_non_null(strstr(coloured, "one channel of every 2 is drawn, and the last"));
    free(coloured);
}

static void panels_stand_below_each_other(void **state)
{
    const pe_figure both[] = {a_grid(), some_arrows()};
    pe_figure       f      = some_panels(both);
    (void)state;
    f.title    = "two of them";
    char *text = draw(&f, COLUMNS, 0);
    assert_true(!strncmp(text, "two of them\n", 12) && strstr(text, "\ngrid\n"));
    assert_non_null(strstr(strstr(text, "\ngrid\n"), "\narrows\n"));
    free(text);
}

/* The one to (1, 0) goes to the right from the middle and nowhere else. */
static void arrows_start_at_the_origin(void **state)
{
    pe_figure f = some_arrows();
    (void)state;
    f.title       = NULL;
    f.curve_count = 1;
    char  *text   = draw(&f, COLUMNS, 0);
    size_t column = 0, first = strcspn(text, "a");
    while (column < first && text[first - column - 1] != '\n')
        column++;
    assert_true(column > COLUMNS / 3 && strspn(text + first, "a") >= 4);
    free(text);
}

static int count_of(const char *text, char c)
{
    int n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

/* Two far points: joined they fill columns between, as dots they do not. */
static void dots_are_not_joined_and_hues_are_kept(void **state)
{
    static const double x[] = {0, 1}, y[] = {0, 1};
    pe_curve            one = {.name = "", .x = x, .y = y, .n = 2, .style = PE_DOTS, .hue = 2};
    pe_figure           f   = {.kind = PE_CURVES, .curves = &one, .curve_count = 1};
    (void)state;
    char *text = draw(&f, COLUMNS, 0);
    assert_int_equal(count_of(text, 'a'), 2);
    free(text);
    const pe_rgb orange = pe_colours_of_curve(&f, 0);
    one.style           = PE_LINE;
    text                = draw(&f, COLUMNS, 0);
    assert_true(count_of(text, 'a') > 10);
    free(text);
    one.hue           = 0;
    const pe_rgb blue = pe_colours_of_curve(&f, 0);
    one.style         = PE_RULE;
    const pe_rgb grey = pe_colours_of_curve(&f, 0);
    assert_true(orange.r > orange.b && blue.b > blue.r && grey.r == grey.g && grey.g == grey.b);
}

/* Both without a name: dots and bars come from nowhere else. */
static void a_band_is_dots_and_a_hole_is_a_bar(void **state)
{
    static double  low[N], high[N], holed[N * N];
    const pe_curve banded = {.name = "", .x = xs, .y = ys[0], .low = low, .high = high, .n = N};
    pe_figure      f      = {.kind = PE_CURVES, .curves = &banded, .curve_count = 1},
              g           = {.kind = PE_GRID, .values = grid};
    (void)state;
    for (int i = 0; i < N; i++) {
        low[i]  = ys[0][i] - 20;
        high[i] = ys[0][i] + 20;
    }
    char *text = draw(&f, COLUMNS, 0);
    assert_non_null(strstr(text, "..."));
    free(text);
    g.rows = g.cols = N;
    g.dx = g.dy    = 1;
    text           = draw(&g, COLUMNS, 0);
    const int bars = count_of(text, '|');
    free(text);
    for (int i = 0; i < N * N; i++)
        holed[i] = i % N == 5 ? (double)NAN : grid[i];
    g.values = holed;
    text     = draw(&g, COLUMNS, 0);
    assert_true(count_of(text, '|') > bars);
    free(text);
}

/* To the right of the line of its row, and its name above; no line is wider for it. */
static void the_second_axis_stands_at_its_rows(void **state)
{
    static const pe_tick ticks[] = {{0, "fast"}, {11, "slow-67"}};
    pe_figure            f       = a_grid();
    (void)state;
    f.second_label    = "wavelength (tokens)";
    f.ticks           = ticks;
    f.tick_count      = 2;
    char       *text  = draw(&f, COLUMNS, 0);
    const char *first = strstr(text, "- fast\n"), *last = strstr(text, "- slow-67\n");
    assert_true(first && last && strstr(text, "wavelength (tokens)\n") < first);
    assert_true(strstr(text, "11 |") < last && strstr(text, "11 |") > first);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= COLUMNS);
    free(text);
}

/* gnuplot refuses an image of a single row; ours is drawn. */
static void a_grid_of_one_row_or_column_is_drawn(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        pe_figure f   = a_grid();
        char     *svg = NULL, *at;
        int       n   = 0;
        f.rows        = k ? 1 : N;
        f.cols        = k ? N : 1;
        assert_int_equal(pe_gnuplot_svg(&f, "thin", &svg, NULL), POSENC_OK);
        for (at = svg; (at = strstr(at, "<polygon fill = 'rgb(")); at++)
            n++;
        assert_true(n >= N); /* a rectangle per cell at least */
        free(svg);
    }
}

static void a_terminal_too_narrow_is_refused(void **state)
{
    const pe_figure f = a_grid();
    posenc_error    err;
    (void)state;
    assert_int_equal(pe_terminal_print(&f, stdout, 5, 0, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "5 columns"));
}

static void scales_end_where_they_should(void **state)
{
    const pe_rgb first = pe_colours_on_scale(0, 0), last = pe_colours_on_scale(0, 2),
                 middle = pe_colours_on_scale(1, 0.5);
    double    low, high;
    pe_figure f = a_grid();
    (void)state;
    assert_true(first.r == 68 && first.g == 1 && first.b == 84);
    assert_true(last.r == 253 && last.g == 231 && last.b == 37);
    assert_true(middle.r == 247 && middle.g == 247 && middle.b == 247);
    pe_colours_range(&f, &low, &high);
    assert_true(low == -high && high == N * N / 2);
    f.rows = f.cols = 1;
    f.values        = &xs[0];
    f.signed_scale  = 0;
    pe_colours_range(&f, &low, &high);
    assert_true(low < high); /* a scale of no width would divide by zero */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_what_its_ending_says),
        cmocka_unit_test(any_numbers_are_drawn),
        cmocka_unit_test(other_endings_and_places_are_refused_and_leave_nothing),
        cmocka_unit_test(without_gnuplot_the_sentence_names_the_package),
        cmocka_unit_test(what_is_no_picture_is_not_written),
        cmocka_unit_test(a_gnuplot_that_says_nothing_is_ended),
        cmocka_unit_test(a_gnuplot_that_cannot_be_loaded_is_quoted),
        cmocka_unit_test(a_gnuplot_that_dies_is_noticed_though_its_child_holds_the_line),
        cmocka_unit_test(after_a_signal_there_is_less_patience),
        cmocka_unit_test(many_large_panels_do_not_wait_for_each_other),
        cmocka_unit_test(an_svg_is_well_formed_and_carries_its_name),
        cmocka_unit_test(a_text_is_shown_as_it_is),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(without_colour_there_is_no_escape_and_with_it_there_are_half_blocks),
        cmocka_unit_test(the_second_axis_stands_at_its_rows),
        cmocka_unit_test(a_grid_of_one_row_or_column_is_drawn),
        cmocka_unit_test(a_terminal_too_narrow_is_refused),
        cmocka_unit_test(scales_end_where_they_should),
        cmocka_unit_test(rows_apart_are_drawn_or_left_out_but_not_averaged),
        cmocka_unit_test(panels_stand_below_each_other),
        cmocka_unit_test(arrows_start_at_the_origin),
        cmocka_unit_test(dots_are_not_joined_and_hues_are_kept),
        cmocka_unit_test(a_band_is_dots_and_a_hole_is_a_bar),
    };
    return cmocka_run_group_tests(tests, make_data, remove_data);
}
