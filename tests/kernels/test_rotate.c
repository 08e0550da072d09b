/* SPDX-License-Identifier: MIT */
/*
 * test_rotate: pairs of channels turned in place, on every instruction set
 *
 * Against a plain double loop over the table as given, for pair counts with every tail and strides wider than
 * the rows. Tolerance: the Error line of kernels.h, 2^-22 * hypot(x_a, x_b). There and back costs it twice,
 * plus what the table's rounded cosine and sine miss of length 1: |c^2 + s^2 - 1| <= 2^-23.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/half.h"
#include "guarded.h"

enum { ROWS = 4, MOST = 40 };

typedef struct layout {
    const char *name;
    int         half;
} layout;

static const layout layouts[] = {{"interleaved", 0}, {"half", 1}};

static pe_rotate_fn *kernel_of(const pe_kernels *kernels, const layout *l)
{
    return kernels->rotate[PE_STORED_F32][l->half];
}

static void rotate_rows(pe_rotate_fn *rotate, float *x, int64_t x_stride, const float *table,
                        int64_t t_stride, int64_t R, int64_t M, float sign)
{
    const pe_rotate_args rotation = {.to           = x,
                                     .from         = x,
                                     .to_token     = x_stride,
                                     .from_token   = x_stride,
                                     .table        = table,
                                     .table_stride = t_stride,
                                     .tokens       = R,
                                     .heads        = 1,
                                     .M            = M,
                                     .sign         = sign};
    rotate(&rotation);
}

static int64_t first_of(const layout *l, int64_t m)
{
    return l->half ? m : 2 * m;
}

static int64_t second_of(const layout *l, int64_t m, int64_t M)
{
    return l->half ? m + M : 2 * m + 1;
}

typedef struct problem {
    int64_t M, x_stride, t_stride;
    guarded x, table;
} problem;

static problem make(int64_t M)
{
    problem p = {.M = M, .x_stride = 2 * M + 3, .t_stride = 2 * M + 1};
    p.x       = guarded_make((ROWS + 1) * p.x_stride);
    p.table   = guarded_make((ROWS + 1) * p.t_stride);
    fill_random(p.x.at, p.x_stride, ROWS, 2 * M, "x", 1);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t m = 0; m < M; m++) {
            const double angle                 = posenc_random_normal(4, "angle", (uint64_t)(r * MOST + m));
            p.table.at[r * p.t_stride + m]     = (float)cos(angle);
            p.table.at[r * p.t_stride + M + m] = (float)sin(angle);
        }
    guarded_remember(&p.x);
    guarded_remember(&p.table);
    return p;
}

static void free_problem(problem *p)
{
    guarded_free(&p->x);
    guarded_free(&p->table);
}

/* Largest error as a fraction of hypot(x_a, x_b). */
static double error_of(const problem *p, const layout *l, double sign)
{
    double worst = 0;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t m = 0; m < p->M; m++) {
            const float *before = p->x.before + GUARD + r * p->x_stride, *now = p->x.at + r * p->x_stride;
            const double a = (double)before[first_of(l, m)], b = (double)before[second_of(l, m, p->M)];
            const double c  = (double)p->table.at[r * p->t_stride + m],
                         n  = sign * (double)p->table.at[r * p->t_stride + p->M + m];
            const double ya = (double)now[first_of(l, m)] - (a * c - b * n),
                         yb = (double)now[second_of(l, m, p->M)] - (b * c + a * n);
            worst           = fmax(worst, fmax(fabs(ya), fabs(yb)) / hypot(a, b));
            if (isnan(ya) || isnan(yb))
                return INFINITY;
        }
    return worst;
}

static void turning_is_its_formula_for_every_number_of_pairs(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t M = 1; M <= MOST; M++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    problem p = make(M);
                    rotate_rows(kernel_of(pe_kernels_at(isa), &layouts[k]), p.x.at, p.x_stride, p.table.at,
                                p.t_stride, ROWS, M, (float)sign);
                    if (guarded_changed(&p.x, p.x_stride, ROWS, 2 * M) >= 0 ||
                        guarded_changed(&p.table, 1, 0, 0) >= 0)
                        fail_msg("%s, %s, M=%d: wrote outside", pe_kernels_at(isa)->isa, layouts[k].name,
                                 (int)M);
                    const double error = error_of(&p, &layouts[k], sign);
                    if (!(error <= 0x1p-22))
                        fail_msg("%s, %s, M=%d: off by %.3g", pe_kernels_at(isa)->isa, layouts[k].name,
                                 (int)M, error);
                    free_problem(&p);
                }
}

static void turning_back_undoes_turning_forward(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t M = 1; M <= MOST; M += 3) {
                problem       p    = make(M);
                pe_rotate_fn *turn = kernel_of(pe_kernels_at(isa), &layouts[k]);
                rotate_rows(turn, p.x.at, p.x_stride, p.table.at, p.t_stride, ROWS, M, 1);
                rotate_rows(turn, p.x.at, p.x_stride, p.table.at, p.t_stride, ROWS, M, -1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const float *before = p.x.before + GUARD + r * p.x_stride,
                                    *now    = p.x.at + r * p.x_stride;
                        const int64_t a = first_of(&layouts[k], m), b = second_of(&layouts[k], m, M);
                        const double  size = hypot((double)before[a], (double)before[b]);
                        assert_true(fabs((double)now[a] - (double)before[a]) <=
                                    (2 * 0x1p-22 + 0x1p-23) * size);
                        assert_true(fabs((double)now[b] - (double)before[b]) <=
                                    (2 * 0x1p-22 + 0x1p-23) * size);
                    }
                free_problem(&p);
            }
}

static void a_nan_spreads_to_its_own_pair_only(void **state)
{
    enum { M = 19 };
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t bad = 0; bad < M; bad++) {
                problem p                                       = make(M);
                p.x.at[p.x_stride + first_of(&layouts[k], bad)] = NAN;
                rotate_rows(kernel_of(pe_kernels_at(isa), &layouts[k]), p.x.at, p.x_stride, p.table.at,
                            p.t_stride, ROWS, M, 1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const int is_bad = r == 1 && m == bad;
                        assert_int_equal(isnan(p.x.at[r * p.x_stride + first_of(&layouts[k], m)]) != 0,
                                         is_bad);
                        assert_int_equal(isnan(p.x.at[r * p.x_stride + second_of(&layouts[k], m, M)]) != 0,
                                         is_bad);
                    }
                free_problem(&p);
            }
}

/* ---- storage types, heads, places: every way through the kernels ---- */

enum { TOKENS = 3, HEADS = 3, GAP = 16, WIDEST = 288, ALL = TOKENS * HEADS * WIDEST + 64 };

static const pe_stored types[] = {PE_STORED_F32, PE_STORED_F16, PE_STORED_BF16};

static size_t size_of(pe_stored type)
{
    return type == PE_STORED_F32 ? 4 : 2;
}

static float number_at(const void *x, pe_stored type, int64_t i)
{
    return type == PE_STORED_F32   ? ((const float *)x)[i]
           : type == PE_STORED_F16 ? pe_half_f16_to_float(((const uint16_t *)x)[i])
                                   : pe_half_bf16_to_float(((const uint16_t *)x)[i]);
}

static void put_number(void *x, pe_stored type, int64_t i, float y)
{
    if (type == PE_STORED_F32)
        ((float *)x)[i] = y;
    else
        ((uint16_t *)x)[i] = type == PE_STORED_F16 ? pe_half_float_to_f16(y) : pe_half_float_to_bf16(y);
}

/* A number of the type may be off by half its last place beside what float arithmetic is off by. */
static double allowed(pe_stored type, double y, double size)
{
    static const double half_place[] = {0, 0x1p-11, 0x1p-8}; /* ORDER pe_stored */
    return 0x1p-22 * size + half_place[type] * fabs(y) + (type == PE_STORED_F16 ? 0x1p-25 : 0);
}

typedef struct way {
    pe_stored type;
    int       half, far, stream, in_place; /* far: bytes, and of the table as well */
    int64_t   M;
} way;

static const char *worst_of_way(const pe_kernels *kernels, const way *w, int sign)
{
    static _Alignas(64) char from[4 * ALL], to[4 * ALL], before[4 * ALL];
    static float             table[TOKENS * 2 * 130];
    const int64_t            width = (2 * w->M + GAP + 31) / 32 * 32;
    for (int64_t i = 0; i < ALL; i++) {
        put_number(from, w->type, i, (float)posenc_random_normal(7, "x", (uint64_t)i));
        put_number(to, w->type, i, 77);
    }
    memcpy(before, w->in_place ? from : to, sizeof before);
    for (int64_t i = 0; i < TOKENS * 2 * w->M; i++)
        table[i] = (float)posenc_random_normal(8, "table", (uint64_t)i);
    static char start[4 * ALL];
    memcpy(start, from, sizeof start);
    void                *result = w->in_place ? from : to;
    const pe_rotate_args r      = {result, from,        HEADS * width, width,     HEADS * width,
                                   width,  table,       2 * w->M,      TOKENS,    HEADS,
                                   w->M,   (float)sign, w->far,        w->stream, w->far};
    kernels->rotate[w->type][w->half](&r);
    for (int64_t t = 0; t < TOKENS * HEADS; t++) {
        const float *row = table + t / HEADS * 2 * w->M;
        for (int64_t m = 0; m < w->M; m++) {
            const int64_t a = t * width + (w->half ? m : 2 * m),
                          b = t * width + (w->half ? m + w->M : 2 * m + 1);
            const double x = (double)number_at(start, w->type, a), y = (double)number_at(start, w->type, b),
                         c = (double)row[m], n = sign * (double)row[w->M + m],
                         size = hypot(x, y) * hypot(c, n);
            if (!(fabs((double)number_at(result, w->type, a) - (x * c - y * n)) <=
                  allowed(w->type, x * c - y * n, size)) ||
                !(fabs((double)number_at(result, w->type, b) - (y * c + x * n)) <=
                  allowed(w->type, y * c + x * n, size)))
                return "off";
        }
        const size_t end  = (size_t)(t * width + 2 * w->M) * size_of(w->type),
                     next = (size_t)(t + 1) * (size_t)width * size_of(w->type);
        if (memcmp((char *)result + end, before + end, next - end) != 0)
            return "wrote beside the rows";
    }
    return NULL;
}

static void every_type_size_and_place_is_turned_by_the_formula(void **state)
{
    static const int64_t sizes[] = {1, 7, 8, 15, 16, 32, 40, 48, 64, 96, 127, 128};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int i = 0; i < 3 * 2 * 5 * 12; i++) {
            const int flow =
                i / 6 % 5; /* near in place, elsewhere, far in place, far and streamed, streamed */
            const way w = {types[i % 3],           i / 3 % 2,    flow == 2 || flow == 3, flow >= 3,
                           flow == 0 || flow == 2, sizes[i / 30]};
            if (w.stream && w.M * (int64_t)size_of(w.type) % 64 != 0)
                continue;
            for (int sign = -1; sign <= 1; sign += 2) {
                const char *fault = worst_of_way(pe_kernels_at(isa), &w, sign);
                if (fault)
                    fail_msg("%s, type %d, half %d, M=%d, flow %d: %s", pe_kernels_at(isa)->isa, (int)w.type,
                             w.half, (int)w.M, flow, fault);
            }
        }
}

/* NaN, infinities, the largest number, the smallest: as base/half.h has them, wherever in a vector they
   stand. */
static void sixteen_bit_numbers_are_rounded_as_one_at_a_time(void **state)
{
    enum { PAIRS = 64, COUNT = 2 * PAIRS };
    float table[COUNT] = {0};
    (void)state;
    for (int m = 0; m < PAIRS; m++)
        table[m] = 1.0009765625f;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int t = 1; t < 3; t++)
            for (int half = 0; half < 2; half++)
                for (uint32_t bits = 0; bits < 0x10000; bits += COUNT) {
                    uint16_t x[COUNT], y[COUNT];
                    for (uint32_t i = 0; i < COUNT; i++)
                        x[i] = (uint16_t)(bits + i);
                    const pe_rotate_args r = {y, x, COUNT, COUNT, COUNT, COUNT, table, COUNT,
                                              1, 1, PAIRS, 1,     0,     0,     0};
                    pe_kernels_at(isa)->rotate[types[t]][half](&r);
                    for (int i = 0; i < COUNT; i++) {
                        const float was = number_at(x, types[t], i);
                        const int   b =
                            half ? (i + PAIRS) % COUNT : i ^ 1; /* its partner: 0 * infinity is NaN */
                        const float other = number_at(x, types[t], b);
                        uint16_t    want, room[2];
                        put_number(room, types[t], 0, was * table[0]);
                        want = room[0];
                        if (isnan(was) || !isfinite(other))
                            assert_true(isnan(number_at(y, types[t], i)));
                        else if ((want & 0x7fff) != 0 ||
                                 (y[i] & 0x7fff) != 0) /* the sign of a zero is the sum's */
                            assert_int_equal(y[i], want);
                    }
                }
}

/* Subnormal numbers and zeros amid others, which some processors round otherwise by themselves: one and the
   same bits wherever sums of products are rounded once, which is at every level but that of portable C. */
static void small_16_bit_numbers_have_the_same_bits_at_every_level_that_fuses(void **state)
{
    enum { PAIRS = 128, TWO = 2, ALL_NUMBERS = 2 * PAIRS * TWO };
    static const int64_t sizes[] = {16, 32, 40, 48, 64, 128};
    (void)state;
    for (int i = 0; i < 6 * 2 * 2 * 4 * 16; i++) {
        const int       rarity = 1 << i / 24 % 4 * 2, half = i / 6 % 2;
        const pe_stored type = types[1 + i / 12 % 2];
        const int64_t   M    = sizes[i % 6];
        uint16_t        x[ALL_NUMBERS], want[ALL_NUMBERS], y[ALL_NUMBERS];
        float           table[2 * PAIRS];
        for (int j = 0; j < ALL_NUMBERS; j++) {
            const float r = (float)posenc_random_normal((uint64_t)i, "x", (uint64_t)j);
            const int   k = (int)(fabsf(r) * 1000);
            put_number((char *)x, type, j,
                       k % rarity ? r
                       : k % 3    ? 0
                                  : ldexpf(r, type == PE_STORED_F16 ? -20 : -130));
        }
        for (int m = 0; m < 2 * M; m++)
            table[m] = m == 3 ? 0 : (float)posenc_random_normal((uint64_t)i, "table", (uint64_t)m);
        pe_rotate_args r = {want, x, 2 * M, 2 * M, 2 * M, 2 * M, table, 0, 1, TWO, M, 1, 0, 0, 0};
        if (pe_kernels_at(1))
            pe_kernels_at(1)->rotate[type][half](&r);
        for (int isa = 2; pe_kernels_at(1) && pe_kernels_at(isa); isa++) {
            r.to = y;
            if (i % 5 == 0) { /* in place */
                memcpy(y, x, sizeof y);
                r.from = y;
            }
            pe_kernels_at(isa)->rotate[type][half](&r);
            if (memcmp(y, want, (size_t)(2 * M * TWO) * sizeof *y) != 0)
                fail_msg("%s, type %d, half %d, M=%d, one of %d", pe_kernels_at(isa)->isa, (int)type, half,
                         (int)M, rarity);
        }
    }
}

/* Whatever a NaN of the table carries: rounding to 16 bits must neither end it nor let it reach other
   pairs. */
static void a_nan_of_the_table_stays_one_in_every_type(void **state)
{
    enum { PAIRS = 64, COUNT = 2 * PAIRS };
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0x7fffffff, 0xffffffff, 0xff80ffff};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int i = 0; i < 3 * 2 * 5 * COUNT; i++) {
            const pe_stored type = types[i % 3];
            const int       half = i / 3 % 2, bad = i / 30;
            float           table[COUNT], x[COUNT];
            for (int m = 0; m < COUNT; m++) {
                table[m] = 0.5f;
                put_number(x, type, m, 1);
            }
            memcpy(&table[bad], &nans[i / 6 % 5], sizeof *table);
            const pe_rotate_args r = {x, x, COUNT, COUNT, COUNT, COUNT, table, COUNT,
                                      1, 1, PAIRS, 1,     0,     0,     0};
            pe_kernels_at(isa)->rotate[type][half](&r);
            for (int m = 0; m < COUNT; m++)
                assert_int_equal(isnan(number_at(x, type, m)) != 0,
                                 (half ? m % PAIRS : m / 2) == bad % PAIRS);
        }
}

static void no_rows_mean_no_writes(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++) {
            problem p = make(8);
            rotate_rows(kernel_of(pe_kernels_at(isa), &layouts[k]), p.x.at, p.x_stride, p.table.at,
                        p.t_stride, 0, 8, 1);
            assert_int_equal(guarded_changed(&p.x, 1, 0, 0), -1);
            free_problem(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turning_is_its_formula_for_every_number_of_pairs),
        cmocka_unit_test(turning_back_undoes_turning_forward),
        cmocka_unit_test(a_nan_spreads_to_its_own_pair_only),
        cmocka_unit_test(every_type_size_and_place_is_turned_by_the_formula),
        cmocka_unit_test(sixteen_bit_numbers_are_rounded_as_one_at_a_time),
        cmocka_unit_test(small_16_bit_numbers_have_the_same_bits_at_every_level_that_fuses),
        cmocka_unit_test(a_nan_of_the_table_stays_one_in_every_type),
        cmocka_unit_test(no_rows_mean_no_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
