/* SPDX-License-Identifier: MIT */
/*
 * test_ladder: rows made by adding angles are those of exact angles, on every instruction set
 *
 * Against pe_cos_sin, which test_angle holds against MPFR: as floats within 0.501 ulp of its double, whose own error is less
 * than 1e-3 of that thousandth. Positions where a step begins and ends, negative ones, the last below 2^31, any number of rows
 * and pairs; zeros of cosine and sine, which is where a sum of angles would fail first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/posenc.h>
#include <string.h>

#include "engine/ladder.h"

enum { MOST = 70, ROWS = 300, WIDTH = 2 * MOST + 5 };

static _Alignas(64) char memory[1 << 20];
static _Alignas(64) float rows_of[ROWS * WIDTH];

typedef struct subject {
    pe_ladder    ladder;
    pe_rung      rung;
    pe_frequency k[MOST];
} subject;

static void make(subject *s, int64_t M, double base, double factor, double sense, const pe_kernels *kernels)
{
    pe_arena arena = {memory, 0};
    for (int64_t m = 0; m < M; m++)
        s->k[m] = pe_frequency_of(m == 3 ? 0 : pow(base, -(double)m / (double)M));
    s->ladder = pe_ladder_lay_out(M, &arena);
    s->rung   = pe_rung_lay_out(M, &arena);
    assert_true(arena.used <= sizeof memory);
    pe_ladder_make(&s->ladder, s->k, factor, sense, kernels);
}

static double ulps(float got, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

typedef struct form {
    int64_t cosine, sine, step;
} form;

static void assert_rows(subject *s, int64_t M, double position, int64_t n, const form *f)
{
    const int64_t      width = 2 * M;
    const pe_wave_rows to    = {.to     = rows_of,
                                .stride = WIDTH,
                                .rows   = n,
                                .width  = width,
                                .cosine = f->cosine,
                                .sine   = f->sine,
                                .step   = f->step};
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        rows_of[i] = 77;
    pe_ladder_rows(&s->ladder, &s->rung, to, position);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t m = 0; m < M; m++) {
            double c, v;
            pe_cos_sin(position + (double)r, s->k[m], &c, &v);
            const double off = fmax(ulps(rows_of[r * WIDTH + f->cosine + m * f->step], c * s->ladder.factor),
                                    ulps(rows_of[r * WIDTH + f->sine + m * f->step],
                                         v * s->ladder.factor * s->ladder.sense));
            if (!(off <= 0.501))
                fail_msg("%s: pair %d of %d at %.0f is off by %.6f ulp", s->ladder.kernels->isa, (int)m,
                         (int)M, position + (double)r, off);
        }
        for (int64_t i = width; i < WIDTH; i++)
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
            make(&s, 64, (const double[]){1e2, 1e4, 1e7}[b], b == 1 ? 1 : 1.37, b == 2 ? -1 : 1,
                 pe_kernels_at(isa));
            for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
                assert_rows(&s, 64, starts[i], ROWS, &(form){0, 64, 1});
        }
}

static void every_number_of_pairs_and_rows_fills_its_own_floats(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t M = 1; M <= MOST; M += M < 20 ? 1 : 7) {
            subject s;
            make(&s, M, 1e4, 1, 1, pe_kernels_at(isa));
            for (int64_t n = 1; n <= 70; n += 23) {
                assert_rows(&s, M, 29, n, &(form){0, M, 1});
                assert_rows(&s, M, 4711, n, &(form){M, 0, 1});
                assert_rows(&s, M, 2000, n, &(form){1, 0, 2});
            }
        }
}

/* Whole numbers near multiples of pi and of pi/2: denominators of the continued fraction of pi/2 and their multiples. */
static void positions_next_to_a_zero_are_exact(void **state)
{
    static const double near[] = {7,       11,       22,        33,        44,        344,
                                  355,     710,      51819,     52174,     103993,    104348,
                                  208341,  312689,   573204,    833719,    1146408,   4272943,
                                  5419351, 80143857, 165707065, 411557987, 1068966896};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        subject s;
        make(&s, 20, 1e4, 1, 1, pe_kernels_at(isa));
        for (size_t i = 0; i < sizeof near / sizeof *near; i++)
            for (int sign = -1; sign <= 1; sign += 2)
                assert_rows(&s, 20, sign * near[i], 1, &(form){0, 20, 1});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_exact_wherever_they_begin),
        cmocka_unit_test(every_number_of_pairs_and_rows_fills_its_own_floats),
        cmocka_unit_test(positions_next_to_a_zero_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
