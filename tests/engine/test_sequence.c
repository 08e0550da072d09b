/* SPDX-License-Identifier: MIT */
/*
 * test_sequence: rows that follow from each other, with a room made for this
 *
 * Lane l of WIDE numbers starts at its number and is multiplied by a at each step; so row i of lane l is a^i
 * * start, and the gradient to a is known. Rows are made once each, no further than the run reaches; the sums
 * of groups of lanes are added in their order whatever the threads, which numbers of very different sizes
 * would show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rows/rows.h"

enum { B = 2, L = 70, LANES = 5, WIDE = 2, WIDTH = LANES * WIDE, LONGEST = 100, PARAMS = 2 };

static int64_t made[LANES]; /* rows, by lane */

static int64_t longest(const pe_problem *p)
{
    (void)p;
    return LONGEST;
}

static int64_t lanes(const pe_problem *p)
{
    (void)p;
    return LANES;
}

static int64_t scratch(const pe_problem *p, int64_t together)
{
    (void)p;
    return together * WIDE;
}

/* par[0] is a, par[1] the starts of all lanes. */
static void make(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                 double table[], double memory[])
{
    const int64_t from = group->first * WIDE, wide = group->count * WIDE;
    (void)p;
    memcpy(memory, par[1] + from, (size_t)wide * sizeof *memory);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < wide; c++) {
            made[group->first + c / WIDE] += c % WIDE == 0;
            table[i * WIDTH + from + c] = memory[c];
            memory[c] *= par[0][0];
        }
}

static void make_back(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                      const double table[], const double drows[], double memory[], double *const dpar[])
{
    const int64_t from = group->first * WIDE, wide = group->count * WIDE;
    (void)p;
    memset(memory, 0, (size_t)wide * sizeof *memory);
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t c = 0; c < wide; c++) {
            memory[c] = par[0][0] * memory[c] + drows[i * WIDTH + from + c];
            if (dpar[0] && i > 0)
                dpar[0][0] += memory[c] * table[(i - 1) * WIDTH + from + c];
            if (dpar[1] && i == 0)
                dpar[1][from + c] += memory[c];
        }
}

static const pe_sequence room = {longest, lanes, scratch, make, make_back};

typedef struct setup {
    double        a, starts[WIDTH], da, dstarts[WIDTH];
    double        y[B * L * WIDTH];
    const double *par[PARAMS];
    double       *dpar[PARAMS];
    int64_t       sizes[PARAMS];
    pe_problem    p;
} setup;

static void set_up(setup *s)
{
    *s         = (setup){.a = 0.99, .sizes = {1, WIDTH}};
    s->par[0]  = &s->a;
    s->par[1]  = s->starts;
    s->dpar[0] = &s->da;
    s->dpar[1] = s->dstarts;
    for (int i = 0; i < WIDTH; i++)
        s->starts[i] = pow(1000, i / WIDE - 2) * (i + 1);
    for (int i = 0; i < B * L * WIDTH; i++)
        s->y[i] = sin(i);
    memset(made, 0, sizeof made);
}

static pe_rows_run run_of(setup *s, posenc_positions pos, int threads)
{
    const posenc_tensor y = posenc_tensor_contiguous(s->y, POSENC_DTYPE_F64, 3, (int64_t[]){B, L, WIDTH});
    return (
        pe_rows_run){.part = {.p = &s->p, .par = s->par, .dpar = s->dpar, .count = PARAMS, .sizes = s->sizes},
                     .width    = WIDTH,
                     .N        = 1,
                     .sequence = room,
                     .B        = B,
                     .L        = L,
                     .pos      = pos,
                     .x        = y,
                     .y        = y,
                     .team     = {.threads = threads},
                     .kernels  = pe_kernels_choose()};
}

typedef void rows_pass(const pe_rows_run *r, pe_arena *arena);

static void carry_out(const pe_rows_run *r, rows_pass *lay_out, rows_pass *compute)
{
    pe_arena arena = {0};
    lay_out(r, &arena);
    const size_t counted = arena.used;
    arena.memory         = aligned_alloc(PE_ALIGN, counted);
    arena.used           = 0;
    compute(r, &arena);
    assert_true(arena.used <= counted);
    free(arena.memory);
}

static posenc_positions some_positions(int64_t at[L])
{
    for (int i = 0; i < L; i++)
        at[i] = (i * 7) % 40; /* repeated, out of order, to 39 */
    return posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 1, (int64_t[]){L}));
}

static void rows_are_made_once_and_no_further_than_the_run_reaches(void **state)
{
    static setup s;
    int64_t      at[L];
    (void)state;
    set_up(&s);
    pe_rows_run r = run_of(&s, some_positions(at), 3);
    r.x           = (posenc_tensor){0};
    carry_out(&r, pe_rows_forward_lay_out, pe_rows_forward_run);
    for (int l = 0; l < LANES; l++)
        assert_int_equal(made[l], 40);
    for (int i = 0; i < B * L * WIDTH; i++) {
        double want = s.starts[i % WIDTH];
        for (int64_t step = 0; step < at[i / WIDTH % L]; step++)
            want *= s.a;
        assert_true(s.y[i] == want);
    }
}

static void positions_of_a_range_count_from_where_it_starts(void **state)
{
    static setup s;
    (void)state;
    set_up(&s);
    pe_rows_run r = run_of(&s, posenc_positions_range(20, 1), 1);
    r.x           = (posenc_tensor){0};
    carry_out(&r, pe_rows_forward_lay_out, pe_rows_forward_run);
    assert_int_equal(made[0], 20 + L);
    assert_true(fabs(s.y[0] / s.starts[0] - pow(s.a, 20)) < 1e-14);
}

static void the_gradient_is_the_slope_and_knows_no_threads(void **state)
{
    static setup one, more;
    int64_t      at[L];
    double       da = 0, magnitude = 0;
    (void)state;
    set_up(&one);
    for (int i = 0; i < B * L * WIDTH; i++) {
        const int64_t n = (i / WIDTH % L * 7) % 40;
        const double  x = n ? (double)n * pow(one.a, (double)n - 1) * one.starts[i % WIDTH] * one.y[i] : 0;
        da += x;
        magnitude += fabs(x);
    }
    pe_rows_run r = run_of(&one, some_positions(at), 1);
    r.y           = (posenc_tensor){0};
    carry_out(&r, pe_rows_backward_lay_out, pe_rows_backward_run);
    assert_true(fabs(one.da - da) <= 1e-13 * magnitude);
    for (int threads = 2; threads <= LANES + 2; threads++) {
        set_up(&more);
        r   = run_of(&more, some_positions(at), threads);
        r.y = (posenc_tensor){0};
        carry_out(&r, pe_rows_backward_lay_out, pe_rows_backward_run);
        assert_memory_equal(&one.da, &more.da, sizeof one.da);
        assert_memory_equal(one.dstarts, more.dstarts, sizeof one.dstarts);
    }
}

static void a_gradient_that_is_not_wanted_is_not_summed(void **state)
{
    static setup all, some;
    int64_t      at[L];
    (void)state;
    set_up(&all), set_up(&some);
    pe_rows_run r = run_of(&all, some_positions(at), 2);
    r.y           = (posenc_tensor){0};
    carry_out(&r, pe_rows_backward_lay_out, pe_rows_backward_run);
    some.dpar[0] = NULL;
    r            = run_of(&some, some_positions(at), 2);
    r.y          = (posenc_tensor){0};
    carry_out(&r, pe_rows_backward_lay_out, pe_rows_backward_run);
    assert_true(some.da == 0 && all.da != 0);
    assert_memory_equal(all.dstarts, some.dstarts, sizeof all.dstarts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_made_once_and_no_further_than_the_run_reaches),
        cmocka_unit_test(positions_of_a_range_count_from_where_it_starts),
        cmocka_unit_test(the_gradient_is_the_slope_and_knows_no_threads),
        cmocka_unit_test(a_gradient_that_is_not_wanted_is_not_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
