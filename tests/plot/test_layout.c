/* SPDX-License-Identifier: MIT */
/*
 * Pages: what a reader must be able to see. Grids of every shape, alone and as panels, with short and long
 * titles: cells are whole pixels, numbers at axes are whole and do not touch, nothing leaves the page, and
 * nothing lies on its neighbour.
 */
#include "plot/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PANELS = 8, MOST_VALUES = 4200 * 280 };

#define LONG_TITLE                                                                                       \
    "sinusoidal2d[preset=timm_interleaved:base=123456:dim=512]: similarity to chosen points of a grid\n" \
    "without the 97 rows before the grid"

static double *values;

static int make_values(void **state)
{
    (void)state;
    values = malloc(MOST_VALUES * sizeof *values);
    for (int i = 0; values && i < MOST_VALUES; i++)
        values[i] = i % 7 - 3;
    return values ? 0 : -1;
}

static int free_values(void **state)
{
    (void)state;
    free(values);
    return 0;
}

static pe_figure a_map(int64_t rows, int64_t cols, const char *title)
{
    assert_true(rows * cols <= MOST_VALUES);
    return (pe_figure){.kind         = PE_GRID,
                       .title        = title,
                       .x_label      = "columns from key to query",
                       .y_label      = "rows from key to query",
                       .value_label  = "cosine",
                       .values       = values,
                       .rows         = rows,
                       .cols         = cols,
                       .dx           = 1,
                       .dy           = 1,
                       .signed_scale = 1,
                       .square_cells = 1};
}

/* A grid of grids, as similarity.c makes it. */
static pe_figure a_mosaic(int64_t rows, int64_t cols, const char *title)
{
    pe_figure f   = a_map(rows * (rows + 1) - 1, cols * (cols + 1) - 1, title);
    f.whole_cells = 1;
    f.dx          = 1.0 / (double)(cols + 1);
    f.dy          = 1.0 / (double)(rows + 1);
    f.x0          = -(double)(cols - 1) / 2 * f.dx;
    f.y0          = -(double)(rows - 1) / 2 * f.dy;
    return f;
}

static pe_figure panels_of(const pe_figure *panels, int count, int columns, const char *title)
{
    return (pe_figure){
        .kind = PE_PANELS, .title = title, .panels = panels, .panel_count = count, .panel_columns = columns};
}

/* ---------------------------------------------------------------- what must hold ------------ */

static int is_whole(double x)
{
    return fabs(x - nearbyint(x)) < 1e-9;
}

/* Pixels per cell: whole, and the same along both axes unless one is too thin for that. */
static void check_cells(const pe_pane *p, const pe_figure *f)
{
    const double across = (p->frame.right - p->frame.left) / (double)f->cols,
                 down   = (p->frame.bottom - p->frame.top) / (double)f->rows;
    assert_true(is_whole(across) && is_whole(down) && across >= 1 && down >= 1);
    assert_true(is_whole(p->frame.left) && is_whole(p->frame.top));
    if (fmin((double)f->rows, (double)f->cols) * 20 > fmax((double)f->rows, (double)f->cols))
        assert_true(across == down);
}

static void check_ticks(const pe_ticks *t, double low, double high, double length, int side_by_side)
{
    char   text[PE_TICK_TEXT];
    double before = -INFINITY;
    assert_true(t->count >= 1);
    for (int i = 0; i < t->count; i++) {
        const double x = t->first + i * t->step, at = (x - low) / (high - low) * length;
        const double half = (side_by_side ? PE_EM * pe_layout_tick_text(t, i, text) : 0.8 * PE_EM) / 2;
        assert_true(is_whole(x) && x >= low && x <= high);
        assert_true(at - half > before); /* its number does not touch the one before */
        before = at + half;
    }
}

static void check_inside(const pe_box *inner, const pe_box *outer)
{
    assert_true(inner->left >= outer->left && inner->right <= outer->right && inner->top >= outer->top &&
                inner->bottom <= outer->bottom);
}

static void check_texts(const pe_pane *p, const pe_page_layout *l, const pe_figure *f)
{
    const double middle = (p->frame.left + p->frame.right) / 2,
                 half   = PE_EM * pe_layout_text_width(f->x_label, 200) / 2;
    const double centre = (p->frame.top + p->frame.bottom) / 2,
                 up     = PE_EM * pe_layout_text_width(f->y_label, 200) / 2;
    assert_true(middle - half >= 0 && middle + half <= l->width);
    if (centre - up < p->all.top || centre + up > p->all.bottom) /* not on the pane above or below */
        fail_msg("%lldx%lld: the text beside it runs from %g to %g, the pane from %g to %g",
                 (long long)f->rows, (long long)f->cols, centre - up, centre + up, p->all.top, p->all.bottom);
    assert_true(p->bar_label + PE_TEXT_LINE / 2 <= p->all.right);
    assert_true(p->bar.left > p->frame.right && p->bar.right - p->bar.left >= 10);
    for (const char *line = p->title; *line; line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(PE_EM * pe_layout_text_width(line, strcspn(line, "\n")) <= p->all.right - p->all.left);
}

static void check_title(const pe_page_layout *l)
{
    int lines = 0;
    for (const char *line = l->title; *line; line += strcspn(line, "\n"), line += *line == '\n', lines++)
        assert_true(PE_TITLE_EM * pe_layout_text_width(line, strcspn(line, "\n")) <= l->width);
    assert_int_equal(lines, l->title_lines);
    assert_true(!l->has_strip || l->first.top >= lines * PE_TITLE_LINE);
}

static void check_page(const pe_figure *page)
{
    const int      count = page->kind == PE_PANELS ? page->panel_count : 1;
    pe_page_layout l;
    pe_layout_page(&l, page);
    check_title(&l);
    for (int i = 0; i < count; i++) {
        const pe_figure *f     = page->kind == PE_PANELS ? &page->panels[i] : page;
        const pe_box     paper = {0, 0, l.width, l.height};
        pe_pane          p;
        pe_layout_pane(&p, &l, page, i);
        check_inside(&p.all, &paper);
        check_inside(&p.frame, &p.all);
        check_inside(&p.bar, &p.all);
        check_texts(&p, &l, f);
        if (f->square_cells)
            check_cells(&p, f);
        check_ticks(&p.x, f->x0 - f->dx / 2, f->x0 + f->dx * ((double)f->cols - 0.5),
                    p.frame.right - p.frame.left, 1);
        check_ticks(&p.y, f->y0 - f->dy / 2, f->y0 + f->dy * ((double)f->rows - 0.5),
                    p.frame.bottom - p.frame.top, 0);
        assert_true(p.values.count >= 2 && p.values.count < 20);
    }
}

/* ---------------------------------------------------------------- shapes -------------------- */

static const int64_t shapes[][2] = {{16, 32}, {8, 24}, {7, 28}, {28, 7}, {14, 14}, {5, 9},
                                    {4, 60},  {60, 4}, {1, 2},  {1, 40}, {40, 1},  {2, 2}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void maps_of_every_shape_can_be_read(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int count = 1; count <= MOST_PANELS; count++) {
            pe_figure panels[MOST_PANELS];
            for (int k = 0; k < count; k++)
                panels[k] = a_map(shapes[i][0], shapes[i][1],
                                  k % 2 ? "to row 4, column 6" : "pair 3\n0.292 rad/position");
            const pe_figure one = a_map(shapes[i][0], shapes[i][1], LONG_TITLE);
            const pe_figure page =
                panels_of(panels, count, count < 4 ? count : 4, count % 2 ? "tupe" : LONG_TITLE);
            check_page(&one);
            check_page(&page);
        }
}

static void grids_of_grids_show_every_cell_and_every_line(void **state)
{
    static const int64_t sizes[][2] = {{16, 32}, {8, 24}, {7, 28},  {28, 7},
                                       {14, 14}, {5, 4},  {32, 32}, {16, 64}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const pe_figure f = a_mosaic(sizes[i][0], sizes[i][1], LONG_TITLE);
        check_page(&f);
    }
}

/* Tutorial 000's own grid: 16 x 32 small maps of 16 x 32, a line between two. */
static void the_tutorials_grid_has_a_pixel_per_cell_at_least(void **state)
{
    const pe_figure f = a_mosaic(16, 32, "sinusoidal2d: similarity of positions");
    pe_page_layout  l;
    pe_pane         p;
    (void)state;
    pe_layout_page(&l, &f);
    pe_layout_pane(&p, &l, &f, 0);
    assert_true(p.frame.bottom - p.frame.top >= 271 && p.frame.right - p.frame.left >= 1055);
    assert_true(p.x.step == 1 && p.x.first == 0 && p.x.count == 32);
}

static void rows_and_columns_are_numbered_whole(void **state)
{
    const pe_figure panels[3] = {a_map(5, 9, "a"), a_map(5, 9, "b"), a_map(5, 9, "c")};
    const pe_figure page      = panels_of(panels, 3, 3, "5 x 9");
    pe_page_layout  l;
    pe_pane         p;
    (void)state;
    pe_layout_page(&l, &page);
    pe_layout_pane(&p, &l, &page, 2);
    assert_true(p.y.first == 0 && p.y.step == 1 && p.y.count == 5);
    assert_true(p.x.first == 0 && p.x.step == 1 && p.x.count == 9);
}

/* As tupe has it: 128 positions at eight heads. */
static void numbers_of_small_panels_do_not_run_together(void **state)
{
    pe_figure panels[MOST_PANELS];
    (void)state;
    for (int k = 0; k < MOST_PANELS; k++)
        panels[k] = a_map(128, 128, "head");
    const pe_figure page = panels_of(panels, MOST_PANELS, 4, "tupe");
    check_page(&page);
}

static void a_matrix_of_a_thousand_positions_fits_a_page(void **state)
{
    pe_figure      panels[MOST_PANELS];
    pe_page_layout l;
    (void)state;
    for (int k = 0; k < MOST_PANELS; k++)
        panels[k] = a_map(1024, 1024, "head");
    const pe_figure page = panels_of(panels, MOST_PANELS, 4, "tupe");
    pe_layout_page(&l, &page);
    assert_true(l.width <= 2000 && l.height <= 2000);
}

static void panels_of_maps_stand_below_each_other_where_they_are_too_wide(void **state)
{
    const pe_figure panels[3] = {a_map(4, 60, "a"), a_map(4, 60, "b"), a_map(4, 60, "c")};
    const pe_figure page      = panels_of(panels, 3, 3, "4 x 60");
    pe_page_layout  l;
    (void)state;
    pe_layout_page(&l, &page);
    assert_int_equal(l.columns, 1);
}

/* Beside the plot stands the key, so that the middle of the plot is not the page's. */
static void the_title_of_curves_leaves_room_for_the_key(void **state)
{
    const pe_curve  curves[2] = {{.name = "head 1"}, {.name = "head 2"}};
    const pe_figure f         = {.kind = PE_CURVES, .title = LONG_TITLE, .curves = curves, .curve_count = 2};
    pe_page_layout  l;
    (void)state;
    pe_layout_page(&l, &f);
    for (const char *line = l.title; *line; line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(PE_TITLE_EM * pe_layout_text_width(line, strcspn(line, "\n")) <= 0.78 * l.width);
    assert_true(l.title_lines >= 3 && l.height >= 600 + 27);
}

static void the_second_axis_has_room_before_the_scale(void **state)
{
    static const pe_tick ticks[] = {{0, "6.28"}, {63, "47117"}};
    pe_figure            f       = a_map(64, 128, "heat map");
    pe_page_layout       l;
    pe_pane              p;
    (void)state;
    f.square_cells = 0;
    f.second_label = "wavelength of the channel (tokens)";
    f.ticks        = ticks;
    f.tick_count   = 2;
    check_page(&f);
    pe_layout_page(&l, &f);
    pe_layout_pane(&p, &l, &f, 0);
    assert_true(p.second_label - PE_TEXT_LINE / 2 > p.frame.right + PE_EM * pe_layout_text_width("47117", 5));
    assert_true(p.second_label + PE_TEXT_LINE / 2 < p.bar.left);
}

static void ticks_of_values_are_round_and_within(void **state)
{
    const double ends[][2] = {{-1, 1}, {0.4467, 1}, {0, 31}, {-0.66, 0.66}, {1e-6, 3e-6}, {-3e5, 7e5}};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (double length = 60; length < 1700; length *= 1.7) {
            const double   low = ends[i][0], high = ends[i][1];
            const pe_ticks t    = pe_layout_ticks(low, high, length, 34, 0, 0);
            const double   last = t.first + (t.count - 1) * t.step;
            assert_true(t.count == 0 || (t.first >= low - 1e-9 * t.step && last <= high + 1e-9 * t.step));
            assert_true(length * t.step / (high - low) >= 34);
            const double lead = t.step / pow(10, floor(log10(t.step) + 1e-9));
            assert_true(fabs(lead - 1) < 1e-9 || fabs(lead - 2) < 1e-9 || fabs(lead - 5) < 1e-9);
        }
}

/* ---------------------------------------------------------------- arrows -------------------- */

/* Positions and sizes of the numbers as the script has them, in data units. */
static int read_numbers(const pe_figure *page, double at[][2], int *index)
{
    char  *text;
    size_t size;
    int    count = 0, tag;
    FILE  *to    = open_memstream(&text, &size);
    pe_script_write(to, page, "");
    fclose(to);
    for (const char *line = text; (line = strstr(line, "set label ")); line++)
        count += sscanf(line, "set label %d '%d' at %lf,%lf", &tag, &index[count], &at[count][0],
                        &at[count][1]) == 4;
    free(text);
    return count;
}

/* Arrows of one length and of many (xPos): no number's box touches an arrow or another number. */
static void numbers_touch_no_arrow(void **state)
{
    enum { N = 32 };
    double   x[N], y[N], at[N][2];
    int      index[N];
    pe_curve arrows[N];
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < N; i++) {
            const double r = kind % 2 ? 1 - 0.01 * i : 1, a = kind < 2 ? i : 0.1 * i;
            x[i]      = r * cos(a);
            y[i]      = r * sin(a);
            arrows[i] = (pe_curve){.name = "", .x = x + i, .y = y + i, .n = 1};
        }
        const pe_figure f         = {.kind        = PE_ARROWS,
                                     .title       = "pair",
                                     .curves      = arrows,
                                     .curve_count = N,
                                     .low         = -1.25,
                                     .high        = 1.25};
        const pe_figure panels[3] = {f, f, f}, page = panels_of(panels, 1, 3, "pairs");
        pe_page_layout  l;
        pe_pane         p;
        pe_layout_page(&l, &page);
        pe_layout_pane(&p, &l, &page, 0);
        const double pixel = 2.5 / (p.frame.right - p.frame.left);
        const int    count = read_numbers(&page, at, index);
        assert_true(count >= 10);
        for (int k = 0; k < count; k++) {
            const double wide = (index[k] < 10 ? 9.4 : 18.7) / 2 * pixel, high = 10.7 / 2 * pixel;
            const double left = fmax(fabs(at[k][0]) - wide, 0), low = fmax(fabs(at[k][1]) - high, 0);
            assert_true(hypot(left, low) > 1); /* the nearest corner lies outside of all arrows */
            assert_true(fabs(at[k][0]) + wide < 1.25 && fabs(at[k][1]) + high < 1.25);
            for (int j = 0; j < k; j++)
                assert_true(fabs(at[k][0] - at[j][0]) > 9.4 * pixel ||
                            fabs(at[k][1] - at[j][1]) > 10.7 * pixel);
        }
    }
}

/* Numbers of four digits keep apart; whole ones stay whole. */
static void numbers_along_curves_keep_apart(void **state)
{
    (void)state;
    for (int most = 3; most <= 3000; most = most * 3 + 1) {
        const double    x[] = {1, most}, y[] = {0, 1};
        const pe_curve  curve = {.name = "loss", .x = x, .y = y, .n = 2};
        const pe_figure f     = {.kind = PE_CURVES, .title = "training", .curves = &curve, .curve_count = 1};
        pe_page_layout  l;
        char           *text, digits[16];
        size_t          size;
        double          step = 0;
        FILE           *to   = open_memstream(&text, &size);
        pe_script_write(to, &f, "");
        fclose(to);
        const char *at = strstr(text, "set xtics ");
        assert_true(at && sscanf(at, "set xtics %lf", &step) == 1 && step == floor(step));
        pe_layout_page(&l, &f);
        snprintf(digits, sizeof digits, "%d", most);
        const double wide = PE_EM * pe_layout_text_width(digits, strlen(digits));
        assert_true(most <= 3 || l.width / 2 * step / (most - 1) > wide);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_of_every_shape_can_be_read),
        cmocka_unit_test(grids_of_grids_show_every_cell_and_every_line),
        cmocka_unit_test(the_tutorials_grid_has_a_pixel_per_cell_at_least),
        cmocka_unit_test(rows_and_columns_are_numbered_whole),
        cmocka_unit_test(numbers_of_small_panels_do_not_run_together),
        cmocka_unit_test(a_matrix_of_a_thousand_positions_fits_a_page),
        cmocka_unit_test(panels_of_maps_stand_below_each_other_where_they_are_too_wide),
        cmocka_unit_test(the_title_of_curves_leaves_room_for_the_key),
        cmocka_unit_test(the_second_axis_has_room_before_the_scale),
        cmocka_unit_test(ticks_of_values_are_round_and_within),
        cmocka_unit_test(numbers_touch_no_arrow),
        cmocka_unit_test(numbers_along_curves_keep_apart),
    };
    return cmocka_run_group_tests(tests, make_values, free_values);
}
