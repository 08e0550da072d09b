/* SPDX-License-Identifier: MIT */
/* A figure as CSV: its numbers read back, its names are quoted, what is missing is an empty field. */
#include "plot/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void is_written_as(const pe_figure *figure, const char *wanted)
{
    char  *text;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    assert_non_null(to);
    pe_numbers_write(to, figure);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static const double      values[] = {1, -0.5, NAN, 1.0 / 3, 1e-9, 2};
static const double      xs[]     = {0, 1, 2};
static const char *const names[]  = {"a \"b\"", "c"};

static pe_figure a_grid(void)
{
    return (pe_figure){.kind    = PE_GRID,
                       .x_label = "key",
                       .y_label = "query",
                       .values  = values,
                       .rows    = 2,
                       .cols    = 3,
                       .x0      = -1,
                       .dx      = 1,
                       .y0      = 4,
                       .dy      = 2};
}

static void a_grid_has_a_line_for_each_row(void **state)
{
    const pe_figure f = a_grid();
    (void)state;
    is_written_as(&f, "\"query \\ key\",-1,0,1\n4,1,-0.5,\n6,0.3333333333333333,1e-09,2\n");
}

static void a_table_is_rounded_as_it_shows_its_numbers(void **state)
{
    pe_figure f = a_grid();
    (void)state;
    f.row_names    = names;
    f.with_numbers = 1;
    f.decimals     = 2;
    is_written_as(&f, "\"query \\ key\",-1,0,1\n\"a \"\"b\"\"\",1.00,-0.50,\n\"c\",0.33,0.00,2.00\n");
}

static void curves_over_one_x_share_its_lines(void **state)
{
    const pe_curve  curves[] = {{.name = "one", .x = xs, .y = values, .n = 3},
                                {.name = "two", .x = xs, .y = values + 3, .low = xs, .high = values, .n = 3}};
    const pe_figure f        = {.kind = PE_CURVES, .x_label = "t", .curves = curves, .curve_count = 2};
    (void)state;
    is_written_as(&f, "\"t\",\"one\",\"two\",\"two: low\",\"two: high\"\n0,1,0.3333333333333333,0,1\n"
                      "1,-0.5,1e-09,1,-0.5\n2,,2,2,\n");
}

static void curves_over_several_x_have_a_line_for_each_point(void **state)
{
    const pe_curve  curves[] = {{.name = "one", .x = xs, .y = values, .n = 2},
                                {.name = "two", .x = xs + 1, .y = values + 3, .n = 1}};
    const pe_figure f        = {
               .kind = PE_CURVES, .x_label = "t", .y_label = "y", .curves = curves, .curve_count = 2};
    (void)state;
    is_written_as(&f, "\"curve\",\"t\",\"y\"\n\"one\",0,1\n\"one\",1,-0.5\n\"two\",1,0.3333333333333333\n");
}

static void panels_follow_each_other_after_their_titles(void **state)
{
    pe_figure panels[2] = {a_grid(), a_grid()};
    (void)state;
    panels[0].rows = panels[1].rows = 1;
    panels[0].title                 = "head 1";
    panels[1].title                 = "head 2";
    const pe_figure f               = {.kind = PE_PANELS, .panels = panels, .panel_count = 2};
    is_written_as(&f, "\"head 1\"\n\"query \\ key\",-1,0,1\n4,1,-0.5,\n\n"
                      "\"head 2\"\n\"query \\ key\",-1,0,1\n4,1,-0.5,\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_has_a_line_for_each_row),
        cmocka_unit_test(a_table_is_rounded_as_it_shows_its_numbers),
        cmocka_unit_test(curves_over_one_x_share_its_lines),
        cmocka_unit_test(curves_over_several_x_have_a_line_for_each_point),
        cmocka_unit_test(panels_follow_each_other_after_their_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
