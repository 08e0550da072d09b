/* SPDX-License-Identifier: MIT */
/*
 * test_ladder: rows made by adding angles are those of exact angles, on every instruction set
 *
 * Against pe_angle_cos_sin, which test_angle holds against MPFR: as floats within 0.501 ulp of its double,
 * whose own error is less than 1e-3 of that thousandth. Positions where a step begins and ends, negative
 * ones, the last below 2^31, any number of rows and pairs; zeros of cosine and sine, which is where a sum of
 * angles would fail first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/posenc.h>
#include <string.h>

#include "engine/rotation/ladder.h"

enum { MOST = 70, ROWS = 300, WIDTH = 2 * MOST + 5 };

static _Alignas(64) char memory[1 << 20];
static _Alignas(64) float rows_of[ROWS * WIDTH];

typedef struct subject {
    pe_ladder    ladder;
    pe_rung      rung;
    pe_frequency k[MOST];
} subject;

static pe_columns halves(int64_t M)
{
    return (pe_columns){.M = M, .width = 2 * M, .cosine = 0, .sine = M, .step = 1};
}

static void make_wide(subject *s, pe_columns columns, int64_t rows, double base, double factor, double sense,
                      const pe_kernels *kernels)
{
    const int64_t M     = columns.M;
    pe_arena      arena = {memory, 0};
    for (int64_t m = 0; m < M; m++)
        s->k[m] = pe_angle_frequency(m == 3 ? 0 : pow(base, -(double)m / (double)M));
    s->ladder = pe_ladder_lay_out(columns.width, rows, &arena);
    s->rung   = pe_ladder_lay_out_rung(columns.width, &arena);
    assert_true(arena.used <= sizeof memory);
    pe_ladder_make(&s->ladder, &columns, s->k, factor, sense, kernels);
}

static void make(subject *s, pe_columns columns, double base, double factor, double sense,
                 const pe_kernels *kernels)
{
    make_wide(s, columns, PE_MIDDLE, base, factor, sense, kernels);
}

static double ulps(float got, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static double off_by(const subject *s, const float *row, double position, int64_t m)
{
    const pe_columns *c = &s->ladder.columns;
    double            cosine, sine, off = 0;
    pe_angle_cos_sin(position, s->k[m], &cosine, &sine);
    if (c->cosine + m * c->step < c->width)
        off = ulps(row[c->cosine + m * c->step], cosine * s->ladder.factor);
    if (c->sine + m * c->step < c->width)
        off = fmax(off, ulps(row[c->sine + m * c->step], sine * s->ladder.factor * s->ladder.sense));
    return off;
}

static void assert_rows(subject *s, double position, int64_t n)
{
    const int64_t M = s->ladder.columns.M;
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        rows_of[i] = 77;
    pe_ladder_rows(&s->ladder, &s->rung, rows_of, WIDTH, n, position, 0);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t m = 0; m < M; m++) {
            const double off = off_by(s, rows_of + r * WIDTH, position + (double)r, m);
            if (!(off <= 0.501))
                fail_msg("%s: pair %d of %d at %.0f is off by %.6f ulp", s->ladder.kernels->isa, (int)m,
                         (int)M, position + (double)r, off);
        }
        for (int64_t i = s->ladder.columns.width; i < WIDTH; i++)
            assert_true(rows_of[r * WIDTH + i] == 77);
    }
}

static void rows_are_exact_wherever_they_begin(void **state)
{
    static const double starts[] = {0,  1,     31,     1000, 1023,          4096,
                                    -5, -1024, -40000, 1e6,  0x1p31 - ROWS, -0x1p31};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int b = 0; b < 3; b++) {
            subject s;
            make_wide(&s, halves(64), b == 1 ? PE_MIDDLE : PE_MIDDLE_LEAST,
                      (const double[]){1e2, 1e4, 1e7}[b], b == 1 ? 1 : 1.37, b == 2 ? -1 : 1,
                      pe_kernels_at(isa));
            for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
                assert_rows(&s, starts[i], ROWS);
        }
}

static void every_number_of_pairs_and_rows_fills_its_own_floats(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t M = 1; M <= MOST; M += M < 20 ? 1 : 7) {
            const pe_columns all[] = {
                halves(M), {M, 2 * M, M, 0, 1}, {M, 2 * M, 1, 0, 2}, {M, 2 * M - 1, 1, 0, 2}};
            for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
                subject s;
                make(&s, all[c], 1e4, 1, 1, pe_kernels_at(isa));
                for (int64_t n = 1; n <= 70; n += 23)
                    assert_rows(&s, (const double[]){29, 4711, 2000, 0}[c], n);
            }
        }
}

/* Whole numbers near multiples of pi and of pi/2: denominators of the continued fraction of pi/2 and their
   multiples. */
static void positions_next_to_a_zero_are_exact(void **state)
{
    static const double near[] = {7,       11,       22,        33,        44,        344,
                                  355,     710,      51819,     52174,     103993,    104348,
                                  208341,  312689,   573204,    833719,    1146408,   4272943,
                                  5419351, 80143857, 165707065, 411557987, 1068966896};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        subject s;
        make(&s, halves(20), 1e4, 1, 1, pe_kernels_at(isa));
        for (size_t i = 0; i < sizeof near / sizeof *near; i++)
            for (int sign = -1; sign <= 1; sign += 2)
                assert_rows(&s, sign * near[i], 1);
    }
}

/* Steps of any width, half turns and whole ones among them, where errors of row after row add up as with slow
   pairs. */
static void steps_near_half_turns_are_exact(void **state)
{
    const double half_turn = 3.14159265358979323846;
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int b = 0; b < 4; b++) {
            subject      s;
            const double factor = b % 2 ? 1.99 : 1; /* where a last place is finest for its magnitude */
            make(&s, halves(64), 2, factor, 1, pe_kernels_at(isa));
            for (int m = 0; m < 64; m++)
                s.k[m] =
                    pe_angle_frequency(half_turn / 16 * (m - 16) + ldexp(m % 2 ? 1 : -1, -4 - m / 2 - 8 * b));
            const pe_columns columns = s.ladder.columns;
            pe_ladder_make(&s.ladder, &columns, s.k, factor, 1, pe_kernels_at(isa));
            for (int i = 0; i < 6; i++)
                assert_rows(&s, (const double[]){0, 16, 4711, -4000, 1e6, 0x1p30}[i], ROWS);
        }
}

/* Whole blocks and the parts before and behind them, some of whose numbers are made again. */
static void rows_that_pass_by_the_caches_are_the_same(void **state)
{
    enum { LINES = 2 * MOST / 16 * 16 + 16 };
    static _Alignas(64) float plain[ROWS * LINES], past[ROWS * LINES];
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t M = 56; M <= 64; M += 4) {
            subject s;
            make(&s, halves(M), 3, 1, 1, pe_kernels_at(isa));
            memset(plain, 0, sizeof plain);
            memset(past, 0, sizeof past);
            pe_ladder_rows(&s.ladder, &s.rung, plain, LINES, ROWS, 339, 0);
            pe_ladder_rows(&s.ladder, &s.rung, past, LINES, ROWS, 339, 1);
            assert_memory_equal(plain, past, sizeof plain);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_exact_wherever_they_begin),
        cmocka_unit_test(every_number_of_pairs_and_rows_fills_its_own_floats),
        cmocka_unit_test(positions_next_to_a_zero_are_exact),
        cmocka_unit_test(steps_near_half_turns_are_exact),
        cmocka_unit_test(rows_that_pass_by_the_caches_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
