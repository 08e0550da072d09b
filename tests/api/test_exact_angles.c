/* SPDX-License-Identifier: MIT */
/*
 * test_exact_angles: cosines and sines as a caller gets them, against MPFR
 *
 * posenc_rotate turns the pair (1, 0) into (cosine, sine), in float and in double; a sinusoidal table holds
 * both. As float32 they must be within 0.501 ulp of the true value for the exact product of position and
 * frequency (both doubles: the oracle multiplies them without rounding) - at a million random positions below
 * 2^31, forward and back, for the bases of published models, and where an error would show first: at the
 * denominators of the continued fraction of 2w/pi, where the angle comes as near to a whole quarter turn as
 * any position below does. Sums of several coordinates (a matrix) are exact sums of exact products.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <mpfr.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

enum { D = 128, M = D / 2, BLOCK = 2048, BITS = 64, MOST_CONVERGENTS = 40 };

static const char *const bases[] = {
    "rope[base=100]",
    "rope",
    "rope[base=5e5:layout=half]",
    "rope[base=1e6]",
    "rope[base=1e7:layout=half]",
    "rope[base=11158840]",
    "rope[base=5e5:schedule=llama3:factor=8:low_freq_factor=1:high_freq_factor=4:"
    "original_length=8192]",
    "rope[schedule=yarn:factor=40:original_length=4096:magnitude_rule=none]"};

enum { BASES = sizeof bases / sizeof *bases };

typedef struct subject {
    posenc_encoding   *e;
    posenc_plan       *plan;
    posenc_workspace   work;
    posenc_rotary_pair pairs[M];
    float              narrow[BLOCK * D];
    double             wide[BLOCK * D];
} subject;

static subject *make(const char *spec)
{
    subject          *s    = calloc(1, sizeof *s);
    posenc_error      err  = {POSENC_OK, ""};
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = BLOCK, .Lk = BLOCK, .D = D};
    if (posenc_encoding_create(&s->e, spec, NULL, &err) ||
        posenc_plan_create(&s->plan, s->e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    s->work = workspace_for(s->plan, POSENC_RUN_FORWARD);
    if (posenc_rotary_pairs(s->plan, NULL, 0, s->pairs, &s->work, &err))
        fail_msg("%s", err.message);
    return s;
}

static void drop(subject *s)
{
    posenc_workspace_free(&s->work);
    posenc_plan_free(s->plan);
    posenc_encoding_free(s->e);
    free(s);
}

/* Every pair (1, 0) at n <= BLOCK positions, in float and in double. */
static void turn(subject *s, double *positions, int64_t n)
{
    posenc_error  err;
    const int64_t shape[4] = {1, 1, n, D};
    for (int64_t i = 0; i < n; i++)
        for (int m = 0; m < M; m++)
            for (int c = 0; c < 2; c++)
                s->narrow[i * D + s->pairs[m].from[c]] =
                    (float)(s->wide[i * D + s->pairs[m].from[c]] = c == 0);
    for (int wide = 0; wide < 2; wide++) {
        const posenc_tensor x =
            posenc_tensor_contiguous(wide ? (void *)s->wide : (void *)s->narrow,
                                     wide ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32, 4, shape);
        const posenc_rotate_io io = {.size      = sizeof io,
                                     .q         = x,
                                     .to_q      = x,
                                     .direction = 1,
                                     .q_pos     = posenc_positions_array(posenc_tensor_contiguous(
                                             positions, POSENC_DTYPE_F64, 1, (const int64_t[]){n}))};
        if (posenc_rotate(s->plan, &io, &s->work, &err))
            fail_msg("%s", err.message);
    }
}

/* |got - x| in units of the last place that float32 has at x. */
static double ulps(float got, const mpfr_t x)
{
    mpfr_t difference;
    int    exponent;
    mpfr_init2(difference, BITS);
    mpfr_sub_d(difference, x, (double)got, MPFR_RNDN);
    frexp(mpfr_get_d(x, MPFR_RNDN), &exponent);
    const double off = fabs(mpfr_get_d(difference, MPFR_RNDN));
    mpfr_clear(difference);
    return off / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

/* The worst of cosine and sine of sum p[i]*w[i]. */
static double worst_of(int n, const double p[], const double w[], float cosine, float sine)
{
    mpfr_t angle, term, c, s;
    mpfr_init2(angle, 256), mpfr_init2(term, 106);
    mpfr_inits2(BITS, c, s, (mpfr_ptr)0);
    mpfr_set_zero(angle, 1);
    for (int i = 0; i < n; i++) {
        mpfr_set_d(term, p[i], MPFR_RNDN);
        mpfr_mul_d(term, term, w[i], MPFR_RNDN); /* exact */
        mpfr_add(angle, angle, term, MPFR_RNDN);
    }
    mpfr_sin_cos(s, c, angle, MPFR_RNDN);
    const double worst = fmax(ulps(cosine, c), ulps(sine, s));
    mpfr_clears(angle, term, c, s, (mpfr_ptr)0);
    return worst;
}

/* Pair m of element i, in both types. */
static double worst_pair(const subject *s, int64_t i, int m, double p)
{
    const int64_t a = i * D + s->pairs[m].to[0], b = i * D + s->pairs[m].to[1];
    const double  narrow = worst_of(1, &p, &s->pairs[m].w, s->narrow[a], s->narrow[b]);
    return fmax(narrow,
                s->narrow[a] == (float)s->wide[a] && s->narrow[b] == (float)s->wide[b] ? 0 : INFINITY);
}

static void assert_exact(double worst, const char *spec)
{
    if (!(worst <= 0.501))
        fail_msg("%s: off by %.6f ulp", spec, worst);
}

static void a_million_random_positions_are_exact(void **state)
{
    enum { BLOCKS = 62 }; /* of 2048, for each of 8 bases: 1 015 808 */
    static double p[BLOCK];
    double        worst = 0;
    int64_t       tried = 0;
    (void)state;
    for (int base = 0; base < BASES; base++) {
        subject *s = make(bases[base]);
        for (uint64_t block = 0; block < BLOCKS; block++) {
            for (uint64_t i = 0; i < BLOCK; i++) {
                const uint64_t n = ((uint64_t)base * BLOCKS + block) * BLOCK + i;
                const double   u = posenc_random_uniform(3, "positions", n);
                p[i] = (n % 2 ? 1 : -1) * floor(n % 4 < 2 ? u * 0x1p31 : exp2(31 * u)); /* all sizes alike */
            }
            turn(s, p, BLOCK);
            for (int i = 0; i < BLOCK; i++, tried++)
                worst = fmax(worst, worst_pair(s, i, (int)((tried * 29 + (int)block) % M), p[i]));
        }
        assert_exact(worst, bases[base]);
        drop(s);
    }
    assert_true(tried >= 1000000);
}

/* Ranges, which are made by adding angles: two pairs of each row, all pairs in turn. */
static void rows_of_a_range_are_exact(void **state)
{
    enum { STARTS = 12 };
    double worst = 0;
    (void)state;
    for (int base = 0; base < BASES; base++) {
        subject *s = make(bases[base]);
        for (int start = 0; start < STARTS; start++) {
            posenc_error           err;
            const double           u = posenc_random_uniform(5, "starts", (uint64_t)(base * STARTS + start));
            const double           first = start == 0 ? 0 : (start % 2 ? 1 : -1) * floor(exp2(30.9 * u));
            const posenc_positions pos   = posenc_positions_range(first, 1);
            posenc_tensor          table =
                posenc_tensor_contiguous(s->narrow, POSENC_DTYPE_F32, 3, (const int64_t[]){1, BLOCK, D});
            if (posenc_rotary_table(s->plan, POSENC_SIDE_QUERIES,
                                    &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = pos}, &table,
                                    &s->work, &err))
                fail_msg("%s", err.message);
            for (int i = 0; i < 2 * BLOCK; i++) {
                const int    r = i / 2, m = (i * 29 + start) % M;
                const double p   = first + r;
                const float *row = s->narrow + r * D;
                worst            = fmax(worst, worst_of(1, &p, &s->pairs[m].w, row[m], row[M + m]));
            }
        }
        assert_exact(worst, bases[base]);
        drop(s);
    }
}

/* Of every preset whose rows are made so; the frequencies are those of the paper: base^(-k/N) in double. */
static void rows_of_sines_are_exact(void **state)
{
    static const struct {
        const char *spec;
        double      N;
        int         sine, cosine, step;
    } tables[] = {{"sinusoidal", M, 0, 1, 2},
                  {"sinusoidal[preset=t2t]", M - 1, 0, M, 1},
                  {"sinusoidal[preset=transformer_xl]", M, 0, M, 1}};
    static float x[BLOCK * D];
    (void)state;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        posenc_encoding     *e;
        posenc_plan         *plan;
        posenc_error         err;
        double               worst = 0;
        const posenc_dims    dims  = {.B = 1, .Lq = BLOCK, .Lk = BLOCK, .d_model = D};
        const posenc_rows_in in    = {.size = sizeof in, .pos = posenc_positions_range(70000, 1)};
        posenc_tensor y = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 3, (const int64_t[]){1, BLOCK, D});
        if (posenc_encoding_create(&e, tables[t].spec, NULL, &err) ||
            posenc_plan_create(&plan, e, &dims, NULL, &err))
            fail_msg("%s", err.message);
        posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
        if (posenc_rows(plan, &in, &y, &work, &err))
            fail_msg("%s", err.message);
        for (int i = 0; i < 4 * BLOCK; i++) {
            const int    r = i / 4, k = (i * 29) % M;
            const double p = 70000 + r, w = k == 0 ? 1 : pow(10000, -k / tables[t].N);
            worst = fmax(worst, worst_of(1, &p, &w, x[r * D + tables[t].cosine + k * tables[t].step],
                                         x[r * D + tables[t].sine + k * tables[t].step]));
        }
        assert_exact(worst, tables[t].spec);
        posenc_workspace_free(&work);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
    }
}

/* Denominators below 2^31 of the continued fraction of 2w/pi; returns their count. */
static int convergents(double w, double denominators[MOST_CONVERGENTS])
{
    mpfr_t x, whole;
    double before = 0, now = 1;
    int    n = 0;
    mpfr_inits2(400, x, whole, (mpfr_ptr)0);
    mpfr_const_pi(x, MPFR_RNDN);
    mpfr_d_div(x, 2 * w, x, MPFR_RNDN);
    while (n < MOST_CONVERGENTS && now < 0x1p31) {
        denominators[n++] = now;
        mpfr_floor(whole, x);
        mpfr_sub(x, x, whole, MPFR_RNDN);
        mpfr_ui_div(x, 1, x, MPFR_RNDN);
        const double next = floor(mpfr_get_d(x, MPFR_RNDD)) * now + before;
        before            = now;
        now               = next;
    }
    mpfr_clears(x, whole, (mpfr_ptr)0);
    return n;
}

static void positions_that_nearly_hit_a_quarter_turn_are_exact(void **state)
{
    double  worst = 0;
    int64_t tried = 0;
    (void)state;
    for (int base = 0; base < BASES; base++) {
        subject *s = make(bases[base]);
        for (int m = 0; m < M; m++) {
            double    p[4 * MOST_CONVERGENTS], found[MOST_CONVERGENTS];
            const int n = convergents(s->pairs[m].w, found);
            for (int i = 0; i < n; i++) {
                p[4 * i]     = found[i];
                p[4 * i + 1] = -found[i];
                p[4 * i + 2] = fmin(3 * found[i], 0x1p31 - 1); /* near an odd quarter turn still */
                p[4 * i + 3] = -fmin(2 * found[i], 0x1p31 - 1);
            }
            turn(s, p, 4 * n);
            for (int i = 0; i < 4 * n; i++, tried++)
                worst = fmax(worst, worst_pair(s, i, m, p[i]));
        }
        assert_exact(worst, bases[base]);
        drop(s);
    }
    assert_true(tried > 20000);
}

/* The worst of two pairs of a matrix of N columns at the BLOCK places p. */
static double worst_sum(const char *spec, int N, double *p, double *F)
{
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = BLOCK, .Lk = BLOCK, .D = 4};
    static float      x[BLOCK * 4];
    double            worst = 0;
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    posenc_workspace    work   = workspace_for(plan, POSENC_RUN_FORWARD);
    const posenc_tensor params = posenc_tensor_contiguous(F, POSENC_DTYPE_F64, 2, (const int64_t[]){2, N});
    for (int i = 0; i < BLOCK; i++)
        memcpy(x + 4 * i, (const float[]){1, 0, 1, 0}, 4 * sizeof *x);
    const posenc_tensor q =
        posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){1, 1, BLOCK, 4});
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = q,
                                 .to_q      = q,
                                 .direction = 1,
                                 .params    = &params,
                                 .q_pos     = posenc_positions_array(posenc_tensor_contiguous(
                                         p, POSENC_DTYPE_F64, 2, (const int64_t[]){BLOCK, N}))};
    if (posenc_rotate(plan, &io, &work, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < BLOCK; i++)
        for (int m = 0; m < 2; m++)
            worst = fmax(worst, worst_of(N, p + N * i, F + N * m, x[4 * i + 2 * m], x[4 * i + 2 * m + 1]));
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return worst;
}

/* Two coordinates that cancel but for the last bits of their frequencies; three of which the third takes back
   what the first two add up to, but for what their sum in double would have lost. */
static void sums_over_coordinates_are_exact(void **state)
{
    static double p[BLOCK * 3];
    double        two[4]   = {0.8659643233600653, 0.8659643233600653 * (1 + 0x1p-50), 1.4826, -0.031};
    double        three[6] = {0.8659643233600653, 0.0312345678901234567, 0, 0.3, 0.7, -1.1};
    (void)state;
    for (uint64_t i = 0; i < BLOCK; i++) {
        p[2 * i]     = floor(posenc_random_uniform(5, "x", i) * 0x1p31);
        p[2 * i + 1] = i % 2 ? -p[2 * i] : floor(posenc_random_uniform(5, "y", i) * 0x1p31);
    }
    assert_exact(worst_sum("rope[axes=2:axis_rule=matrix]", 2, p, two), "two coordinates");
    three[2] = -(three[0] + three[1]);
    assert_true(three[1] != -three[2] - three[0]); /* something is lost */
    for (uint64_t i = 0; i < BLOCK; i++)
        p[3 * i] = p[3 * i + 1] = p[3 * i + 2] = floor(exp2(31 * posenc_random_uniform(6, "x", i)));
    assert_exact(worst_sum("rope[axes=3:axis_rule=matrix]", 3, p, three), "three coordinates");
}

/* A sinusoidal table in float32: channels 2m and 2m + 1 are sine and cosine of p * 10000^(-2m/D). */
static void sinusoidal_tables_are_exact_too(void **state)
{
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    const posenc_dims dims = {.B = 1, .Lq = BLOCK, .Lk = BLOCK, .d_model = D};
    static double     p[BLOCK];
    static float      table[BLOCK * D];
    double            worst = 0;
    (void)state;
    if (posenc_encoding_create(&e, "sinusoidal", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
    for (uint64_t i = 0; i < BLOCK; i++)
        p[i] = (i % 2 ? 1 : -1) * floor(posenc_random_uniform(7, "positions", i) * 0x1p31);
    posenc_tensor y = posenc_tensor_contiguous(table, POSENC_DTYPE_F32, 3, (const int64_t[]){1, BLOCK, D});
    const posenc_rows_in in = {.size = sizeof in,
                               .pos  = posenc_positions_array(posenc_tensor_contiguous(
                                    p, POSENC_DTYPE_F64, 1, (const int64_t[]){BLOCK}))};
    if (posenc_rows(plan, &in, &y, &work, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < BLOCK; i++)
        for (int m = i % 8; m < M; m += 8) {
            const double w = m == 0 ? 1 : pow(10000, -2.0 * m / D);
            worst = fmax(worst, worst_of(1, &p[i], &w, table[i * D + 2 * m + 1], table[i * D + 2 * m]));
        }
    assert_exact(worst, "sinusoidal");
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_random_positions_are_exact),
        cmocka_unit_test(rows_of_a_range_are_exact),
        cmocka_unit_test(rows_of_sines_are_exact),
        cmocka_unit_test(positions_that_nearly_hit_a_quarter_turn_are_exact),
        cmocka_unit_test(sums_over_coordinates_are_exact),
        cmocka_unit_test(sinusoidal_tables_are_exact_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
