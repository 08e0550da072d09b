/* SPDX-License-Identifier: MIT */
/*
 * test_figures: every figure that docs/properties.md states, measured again
 *
 * Two tables. What is deterministic must print as the figure does, digit for digit; what is round-off must
 * stay below its bound. What is drawn: the mean of 200 draws lies within 3 of its standard errors of the
 * figure, which is itself rounded (half a unit of its last digit), for three seeds. A figure that was one
 * draw is compared with the spread of single draws.
 *
 * Figures about encodings ask the encodings. Tables that are no encodings (the position as a number, a binary
 * counter, a linear system) go through `learned`, whose rows they become.
 */
#include "measure/measure.h"

#include <math.h>
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/subject.h"

enum { N = 512, WIDTH = 64, DRAWS = 200, SEEDS = 3, TEXT = 32 };

typedef posenc_status property(pe_subject *s, pe_findings *to, posenc_error *err);

/* cmocka's assert_float_equal compares floats: too coarse here. */
static void near(double x, double wanted, double error)
{
    if (!(fabs(x - wanted) <= error))
        fail_msg("%.17g is not %.17g within %g", x, wanted, error);
}

static posenc_encoding *encoding(const char *spec)
{
    posenc_encoding *e;
    posenc_error     err;
    if (pe_survey_encoding(&e, spec, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    return e;
}

static pe_subject *subject(const posenc_encoding *e, pe_subject_sizes sizes)
{
    pe_subject  *s;
    posenc_error err;
    if (pe_subject_create(&s, e, &sizes, &err))
        fail_msg("%s: %s", posenc_encoding_spec(e), err.message);
    return s;
}

static pe_finding find(const pe_findings *f, pe_measure m, const char *of)
{
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].measure == m && !strncmp(f->rows[i].detail, of, strlen(of)))
            return f->rows[i];
    fail_msg("there is no finding \"%s\" of \"%s\"", pe_findings_title(m), of);
    return (pe_finding){0};
}

/* All that a property says of an encoding. */
static pe_findings ask_all(const char *spec, pe_subject_sizes sizes, property *of)
{
    posenc_encoding *e = encoding(spec);
    pe_subject      *s = subject(e, sizes);
    pe_findings      f = {.count = 0};
    posenc_error     err;
    if (of(s, &f, &err))
        fail_msg("%s: %s", spec, err.message);
    pe_subject_free(s);
    posenc_encoding_free(e);
    return f;
}

static pe_finding ask(const char *spec, pe_subject_sizes sizes, property *of, pe_measure m,
                      const char *detail)
{
    const pe_findings f = ask_all(spec, sizes, of);
    return find(&f, m, detail);
}

/* ---------------------------------------------------------------- tables that are made ------ */

static void integer_position(double *table, int64_t d)
{
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < d; c++)
            table[i * d + c] = c ? 1 : (double)i;
}

static void binary_counter(double *table, int64_t d)
{
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < d; c++)
            table[i * d + c] = c < 9 ? (double)(i >> c & 1) : 0;
}

/* p(i+1) = exp(A) p(i), A skew: exp(A) is a product of rotations in random planes. */
static void skew_system(double *table, int64_t d)
{
    for (int64_t c = 0; c < d; c++)
        table[c] = posenc_random_normal(5, "start", (uint64_t)c);
    for (int64_t i = 1; i < N; i++) {
        memcpy(table + i * d, table + (i - 1) * d, (size_t)d * sizeof *table);
        for (int64_t k = 0; k < 4 * d; k++) {
            const int64_t a = (int64_t)(posenc_random_uniform(5, "a", (uint64_t)k) * (double)d);
            const int64_t b =
                (a + 1 + (int64_t)(posenc_random_uniform(5, "b", (uint64_t)k) * (double)(d - 1))) % d;
            const double angle = posenc_random_normal(5, "angle", (uint64_t)k);
            const double x = table[i * d + a], y = table[i * d + b];
            table[i * d + a] = cos(angle) * x - sin(angle) * y;
            table[i * d + b] = sin(angle) * x + cos(angle) * y;
        }
    }
}

static pe_finding ask_made(void (*make)(double *, int64_t), int64_t d, property *of, pe_measure m,
                           const char *detail)
{
    posenc_encoding *e = encoding("learned");
    pe_subject      *s = subject(e, (pe_subject_sizes){N, d, 1, 1, 1});
    pe_findings      f = {.count = 0};
    posenc_error     err;
    make(s->params[0].data, d);
    if (of(s, &f, &err))
        fail_msg("%s", err.message);
    pe_subject_free(s);
    posenc_encoding_free(e);
    return find(&f, m, detail);
}

/* ---------------------------------------------------------------- deterministic figures ----- */

#define U           pe_uniqueness_measure, PE_NEAREST, "positions"
#define R(k)        pe_relativity_measure, PE_SHIFT, "k = " #k
#define TAU         pe_relativity_measure, PE_OFFSET_SHARE, ""
#define COST(m)     pe_cost_measure, m, ""
#define ETA         pe_scores_measure, PE_SCORES, ""
#define DIRECTION   pe_scores_measure, PE_DIRECTION, ""
#define AT(t)       pe_decay_measure, PE_AT_DISTANCE, "ones, t = " #t
#define TREND(of)   pe_decay_measure, PE_TREND, of
#define FALLING(of) pe_decay_measure, PE_FALLING, of
#define GRID(m)     pe_grid_measure, m, ""

/* clang-format off */
static const struct figure {
    const char *what;
    void (*make)(double *, int64_t); /* instead of an encoding */
    pe_subject_sizes sizes;
    property   *of;
    pe_measure  measure;
    const char *detail, *format, *printed; /* "<" bounds it */
    double      factor;
} figures[] = {
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.260", 1},
    {"sinusoidal[base=100]",          NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.345", 1},
    {"sinusoidal2d",                  NULL, {N, 64, 1, 1, 1},    GRID(PE_ROW_SHARE), "%.3f", "0.428", 1},
    {"sinusoidal2d",                  NULL, {N, 64, 1, 1, 1},    GRID(PE_COLUMN_SHARE), "%.3f", "0.572", 1},
    {"sinusoidal2d",                  NULL, {N, 64, 1, 1, 1},    GRID(PE_BEYOND_CHANCE), "%.3f", "1.000", 1},
    {"sinusoidal2d",                  NULL, {N, 64, 1, 1, 1},    GRID(PE_TREND), "%.2f", "-0.72", 1},
    {"sinusoidal[base=1e6]",          NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.226", 1},
    {"sinusoidal[preset=tutorial003]",NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.083", 1},
    {"sinusoidal[channels=sin]",      NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.127", 1},
    {"sinusoidal[channels=cos]",      NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.096", 1},
    {"sinusoidal[spacing=linear]",    NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.136", 1},
    {"sinusoidal[spacing=quadratic]", NULL, {N, 64, 1, 1, 1},    U, "%.3f", "0.447", 1},
    {"integer position", integer_position,   {N, 1, 1, 1, 1},     U, "%.3f", "0.003", 1},
    {"binary counter", binary_counter,       {N, 64, 1, 1, 1},    U, "%.3f", "0.471", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    R(1),  "<", "1e-25", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    R(7),  "<", "1e-25", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    R(64), "<", "1e-25", 1},
    {"sinusoidal[base=10]",           NULL, {N, 64, 1, 1, 1},    R(7),  "<", "1e-25", 1},
    {"sinusoidal[base=1e6]",          NULL, {N, 64, 1, 1, 1},    R(64), "<", "1e-25", 1},
    {"sinusoidal[base=5e5]",          NULL, {1024, 128, 1, 1, 1}, R(1), "<", "1e-25", 1},
    {"sinusoidal",                    NULL, {N, 8, 1, 1, 1},     R(64), "<", "1e-25", 1},
    {"skew linear system", skew_system,      {N, 64, 1, 1, 1},    R(1),  "<", "1e-25", 1},
    {"skew linear system", skew_system,      {N, 64, 1, 1, 1},    R(64), "<", "1e-25", 1},
    {"sinusoidal[preset=tutorial003]",NULL, {N, 64, 1, 1, 1},    R(1),  "%.2f", "0.10", 1},
    {"sinusoidal[preset=tutorial003]",NULL, {N, 64, 1, 1, 1},    R(7),  "%.2f", "0.27", 1},
    {"sinusoidal[preset=tutorial003]",NULL, {N, 64, 1, 1, 1},    R(64), "%.2f", "0.32", 1},
    {"sinusoidal[channels=sin]",      NULL, {N, 64, 1, 1, 1},    R(1),  "%.2f", "0.10", 1},
    {"sinusoidal[channels=sin]",      NULL, {N, 64, 1, 1, 1},    R(7),  "%.2f", "0.29", 1},
    {"sinusoidal[channels=sin]",      NULL, {N, 64, 1, 1, 1},    R(64), "%.2f", "0.37", 1},
    {"sinusoidal[channels=sin]",      NULL, {N, 64, 1, 1, 1},    TAU, "%.2f", "0.38", 1},
    {"sinusoidal[channels=cos]",      NULL, {N, 64, 1, 1, 1},    R(1),  "%.2f", "0.09", 1},
    {"sinusoidal[channels=cos]",      NULL, {N, 64, 1, 1, 1},    R(7),  "%.2f", "0.27", 1},
    {"sinusoidal[channels=cos]",      NULL, {N, 64, 1, 1, 1},    R(64), "%.2f", "0.35", 1},
    {"sinusoidal[channels=cos]",      NULL, {N, 64, 1, 1, 1},    TAU, "%.2f", "0.33", 1},
    {"binary counter", binary_counter,       {N, 64, 1, 1, 1},    R(1),  "%.2f", "1.42", 1},
    {"binary counter", binary_counter,       {N, 64, 1, 1, 1},    R(7),  "%.2f", "1.40", 1},
    {"binary counter", binary_counter,       {N, 64, 1, 1, 1},    R(64), "%.2f", "0.70", 1},
    {"integer position", integer_position,   {N, 1, 1, 1, 1},     R(1),  "%.0e", "1e-05", 1},
    {"integer position", integer_position,   {N, 1, 1, 1, 1},     R(7),  "%.0e", "6e-04", 1},
    {"integer position", integer_position,   {N, 1, 1, 1, 1},     R(64), "%.0e", "6e-02", 1},
    {"integer and a constant", integer_position, {N, 2, 1, 1, 1}, R(64), "<", "1e-25", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    TAU, "<", "1e-25", 1},
    {"sinusoidal[preset=tutorial003]",NULL, {N, 64, 1, 1, 1},    TAU, "%.2f", "0.46", 1},
    {"rope",                          NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"alibi",                         NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"t5",                            NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"kerple_log",                    NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"kerple_power",                  NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"transformer_xl",                NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"shaw[values=no]",               NULL, {64, 16, 4, 20, 1},  ETA, "%.4f", "0.0000", 1},
    {"nope",                          NULL, {64, 16, 4, 20, 1},  ETA, "%f", "nan", 1},
    {"sinusoidal",                    NULL, {N, 64, 4, 1, 1},    COST(PE_OPERATIONS), "%.0f", "160", 1},
    {"floater",                       NULL, {N, 64, 4, 1, 1},    COST(PE_OPERATIONS), "%.0f", "339879", 1},
    {"fire",                          NULL, {N, 64, 4, 1, 1},    COST(PE_OPERATIONS), "%.0f", "184325", 1},
    {"tupe",                          NULL, {N, 64, 4, 1, 1},    COST(PE_OPERATIONS), "%.0f", "526338", 1},
    {"hierarchical",                  NULL, {N, 64, 4, 1, 1},    COST(PE_PARAMETERS), "%.0f", "23", 1 / 64.0},
    {"shaw",                          NULL, {N, 64, 4, 1, 1},    COST(PE_PARAMETERS), "%.0f", "4224", 1},
    {"shaw[per_head=yes]",            NULL, {N, 64, 4, 1, 1},    COST(PE_PARAMETERS), "%.0f", "16896", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, AT(1), "%.2f", "0.97", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, AT(16), "%.2f", "0.62", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, AT(64), "%.2f", "0.48", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, AT(256), "%.2f", "0.32", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, AT(1023), "%.2f", "0.19", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, TREND("q = k = ones"), "%.2f", "-0.81", 1},
    {"rope",                          NULL, {1024, 128, 1, 1, 1}, FALLING("q = k = ones"), "%.0f", "52", 100},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, AT(1), "%.2f", "0.98", 1},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, AT(16), "%.2f", "0.73", 1},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, AT(64), "%.2f", "0.60", 1},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, AT(256), "%.2f", "0.56", 1},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, AT(1023), "%.2f", "0.45", 1},
    {"rope[base=1e6]",                NULL, {1024, 128, 1, 1, 1}, AT(1023), "%.2f", "0.49", 1},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, FALLING("q = k = ones"), "%.0f", "51", 100},
    {"rope[base=5e5]",                NULL, {1024, 128, 1, 1, 1}, TREND("q = k = ones"), "%.2f", "-0.75", 1},
    {"rope",                          NULL, {1024, 2, 1, 1, 1},  TREND("q = k = ones"), "%.2f", "0.00", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    TREND("p_i . p_j"), "%.2f", "-0.73", 1},
    {"sinusoidal",                    NULL, {N, 64, 1, 1, 1},    FALLING("p_i . p_j"), "%.0f", "56", 100},
    {"alibi",                         NULL, {N, 16, 4, 1, 1},    TREND("bias"), "%.2f", "-1.00", 1},
    {"alibi",                         NULL, {N, 16, 4, 1, 1},    FALLING("bias"), "%.0f", "100", 100},
    {"kerple_log",                    NULL, {N, 16, 4, 1, 1},    TREND("bias"), "%.2f", "-1.00", 1},
    {"kerple_log",                    NULL, {N, 16, 4, 1, 1},    FALLING("bias"), "%.0f", "100", 100},
};
/* clang-format on */

/* As the figure is printed; a rounded zero has no sign. */
static void write(char text[TEXT], const struct figure *f, double value)
{
    snprintf(text, TEXT, *f->format == '<' ? "%g" : f->format, f->factor * value);
    if (isnan(value))
        snprintf(text, TEXT, "nan");
    if (!strcmp(text, "-0.00"))
        snprintf(text, TEXT, "0.00");
}

static void figures_print_as_stated(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const struct figure *f     = &figures[i];
        const pe_finding     found = f->make ? ask_made(f->make, f->sizes.width, f->of, f->measure, f->detail)
                                             : ask(f->what, f->sizes, f->of, f->measure, f->detail);
        char                 text[TEXT];
        write(text, f, found.value);
        if (*f->format == '<' ? !(found.value <= atof(f->printed)) : strcmp(text, f->printed)) {
            print_error("%s, %s %s: %s, stated %s\n", f->what, pe_findings_title(f->measure), f->detail, text,
                        f->printed);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---------------------------------------------------------------- distances ----------------- */

/* The last distance whose score differs from the one before it: Shaw's K, all for ALiBi and KERPLE. */
static void scores_tell_distances_apart_as_far_as_stated(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double      last;
    } rows[] = {{"shaw[max_relative=16]", 16},
                {"shaw[max_relative=5]", 5},
                {"alibi", N - 1},
                {"kerple_log", N - 1},
                {"kerple_power", N - 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pe_subject_sizes sizes = {N, 16, 4, 1, 1};
        const double last = ask(rows[i].spec, sizes, pe_uniqueness_measure, PE_LAST_CHANGE, "").value;
        if (last != rows[i].last)
            fail_msg("%s tells distances apart up to %g, not %g", rows[i].spec, last, rows[i].last);
    }
}

/* T5's last bucket begins where m + floor(ln(n/m) / ln(max/m) * (buckets - m)) reaches the last one, before
   max_distance: 16 * 8^(15/16) = 112.4 for one direction, 8 * 16^(7/8) = 90.5 for both. Beyond it nothing
   changes. */
static void t5_tells_no_distance_from_another_beyond_its_largest(void **state)
{
    (void)state;
    const pe_subject_sizes sizes = {N, 16, 4, 1, 1};
    near(ask("t5[bidirectional=no]", sizes, pe_uniqueness_measure, PE_LAST_CHANGE, "").value, 113, 0);
    near(ask("t5", sizes, pe_uniqueness_measure, PE_LAST_CHANGE, "").value, 91, 0);
}

/* Half of the classes have one member each, from 0 to 7 or to 15, and the next begins with the distance after
   those. */
static void t5_tells_apart_the_distances_with_a_class_of_their_own(void **state)
{
    (void)state;
    const pe_subject_sizes sizes = {N, 16, 4, 1, 1};
    assert_string_equal(ask("t5", sizes, pe_uniqueness_measure, PE_DISTANCES, "").detail,
                        "0 to 8 of 0 to 511");
    assert_string_equal(ask("t5[bidirectional=no]", sizes, pe_uniqueness_measure, PE_DISTANCES, "").detail,
                        "0 to 16 of 0 to 511");
}

static int64_t idle(const char *spec, int64_t length, int64_t width)
{
    posenc_encoding *e     = encoding(spec);
    pe_subject      *s     = subject(e, (pe_subject_sizes){length, width, 1, 1, 1});
    double          *table = malloc((size_t)(length * width) * sizeof *table);
    assert_non_null(table);
    assert_int_equal(pe_subject_rows(s, NULL, table, NULL), POSENC_OK);
    const int64_t count = pe_relativity_idle_channels(table, length, width);
    free(table);
    pe_subject_free(s);
    posenc_encoding_free(e);
    return count;
}

static void channels_are_idle_as_stated(void **state)
{
    (void)state;
    assert_int_equal(idle("sinusoidal[base=100]", N, WIDTH), 0);
    assert_int_equal(idle("sinusoidal", N, WIDTH), 9);
    assert_int_equal(idle("sinusoidal[base=1e6]", N, WIDTH), 27);
    assert_int_equal(idle("sinusoidal", 50, 128), 51);
    assert_int_equal(idle("sinusoidal", 512, 128), 19);
    assert_int_equal(idle("sinusoidal", 2048, 128), 5);
}

/* ---------------------------------------------------------------- bf16 ---------------------- */

static void bf16_keeps_all_rows_of_a_long_table_apart(void **state)
{
    (void)state;
    const int64_t    length = 65536;
    posenc_encoding *e      = encoding("sinusoidal");
    pe_subject      *s      = subject(e, (pe_subject_sizes){length, WIDTH, 1, 1, 1});
    double          *table  = malloc((size_t)(length * WIDTH) * sizeof *table);
    assert_non_null(table);
    assert_int_equal(pe_subject_rows(s, NULL, table, NULL), POSENC_OK);
    assert_int_equal(pe_uniqueness_distinct_rows(table, length, WIDTH), length);
    free(table);
    pe_subject_free(s);
    posenc_encoding_free(e);
}

/* Position, frequency and angle rounded to bf16 one after the other, with the frequencies of 64 channels. */
static int64_t distinct_angles(int64_t length)
{
    double           w[WIDTH / 2];
    int64_t          pairs;
    posenc_encoding *e     = encoding("rope");
    pe_subject      *s     = subject(e, (pe_subject_sizes){8, WIDTH, 1, 1, 1});
    double          *table = malloc((size_t)(length * WIDTH) * sizeof *table);
    assert_non_null(table);
    assert_int_equal(posenc_rotary_frequencies(s->plan, w, &pairs, NULL, NULL), POSENC_OK);
    for (int64_t i = 0; i < length; i++)
        for (int64_t k = 0; k < pairs; k++) {
            const double angle           = pe_uniqueness_round_bf16(pe_uniqueness_round_bf16((double)i) *
                                                                    pe_uniqueness_round_bf16(w[k]));
            table[i * WIDTH + 2 * k]     = sin(angle);
            table[i * WIDTH + 2 * k + 1] = cos(angle);
        }
    const int64_t distinct = pe_uniqueness_distinct_rows(table, length, WIDTH);
    free(table);
    pe_subject_free(s);
    posenc_encoding_free(e);
    return distinct;
}

static void angles_in_bf16_make_positions_fall_together(void **state)
{
    (void)state;
    assert_int_equal(distinct_angles(2048), 641);
    assert_int_equal(distinct_angles(8192), 897);
    assert_int_equal(distinct_angles(65536), 1281);
}

/* The tool rounds the positions alone: the fastest frequency is 1, so no more is needed to lose them. */
static void positions_in_bf16_lose_as_many(void **state)
{
    (void)state;
    const pe_finding found = ask("sinusoidal", (pe_subject_sizes){2048, WIDTH, 1, 1, 1},
                                 pe_uniqueness_measure, PE_DISTINCT_BF16, "");
    assert_string_equal(found.detail, "641 of 2048");
}

/* ---------------------------------------------------------------- residuals not to be used -- */

/* The fit tried on the rows it was made from: a random table looks half relative, and wholly so with few
   rows. */
static double in_sample(int64_t rows)
{
    double  M[WIDTH * WIDTH], left = 0, variance = 0;
    double *table = malloc((size_t)(rows + 1) * WIDTH * sizeof *table);
    assert_non_null(table);
    for (int64_t i = 0; i < (rows + 1) * WIDTH; i++)
        table[i] = posenc_random_normal(3, "table", (uint64_t)i);
    assert_int_equal(pe_least_squares_fit(M, table, table + WIDTH, rows, WIDTH, WIDTH, 1e-13, NULL),
                     POSENC_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < WIDTH; c++) {
            double sum = table[(i + 1) * WIDTH + c];
            variance += sum * sum;
            for (int64_t m = 0; m < WIDTH; m++)
                sum -= table[i * WIDTH + m] * M[m * WIDTH + c];
            left += sum * sum;
        }
    free(table);
    return left / variance;
}

static void the_residual_in_the_sample_flatters(void **state)
{
    (void)state;
    char text[TEXT];
    snprintf(text, sizeof text, "%.2f", in_sample(N - 1));
    assert_string_equal(text, "0.88");
    assert_true(in_sample(WIDTH) < 1e-20);
}

/* ---------------------------------------------------------------- drawn figures ------------- */

typedef struct sample {
    double mean, spread;
} sample;

/* 200 subjects, each seeded for itself. One set is kept: rows of a table that ask the same property follow
   each other. */
static const pe_findings *subjects(const char *spec, pe_subject_sizes sizes, property *of, uint64_t seed)
{
    static pe_findings found[DRAWS];
    static const char *of_spec;
    static property   *of_property;
    static uint64_t    of_seed;
    if (of_spec && !strcmp(spec, of_spec) && of == of_property && seed == of_seed)
        return found;
    for (int i = 0; i < DRAWS; i++) {
        sizes.seed = seed * 1000 + (uint64_t)i;
        found[i]   = ask_all(spec, sizes, of);
    }
    of_spec     = spec;
    of_property = of;
    of_seed     = seed;
    return found;
}

static sample draw(const char *spec, pe_subject_sizes sizes, property *of, pe_measure m, const char *detail,
                   uint64_t seed)
{
    const pe_findings *all = subjects(spec, sizes, of, seed);
    double             sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double value = find(&all[i], m, detail).value;
        sum += value;
        squares += value * value;
    }
    const double mean = sum / DRAWS;
    return (sample){mean, sqrt((squares / DRAWS - mean * mean) * DRAWS / (DRAWS - 1))};
}

#define TERM(which) pe_score_terms_measure, which, ""

/* One subject's own draws, of which it says the mean and the spread; or 200 subjects of one draw each. */
#define OF(n)              \
    {                      \
        1024, 128, 1, n, 0 \
    }
#define SCORE               \
    {                       \
        64, 64, 4, DRAWS, 0 \
    }

/* clang-format off */
static const struct drawn {
    const char      *spec;
    pe_subject_sizes sizes; /* draws: of one subject */
    property        *of;
    pe_measure       measure;
    const char      *detail;
    double           stated, unit; /* of its last digit */
    double           spread;       /* stated, to two digits; 0: none is */
    int              is_one_draw;
} drawn[] = {
    {"learned",         {N, 64, 1, 1, 0},  U,      0.911, 0.001, 0,     1}, /* single draws of others */
    {"hierarchical[rows=32:alpha=0.4]", {N, 64, 1, 1, 0}, U, 0.279, 0.001, 0, 1},
    {"learned",         {N, 64, 1, 1, 0},  U,      0.895, 0.001, 0.029, 0},
    {"hierarchical[rows=32:alpha=0.4]", {N, 64, 1, 1, 0}, U, 0.274, 0.001, 0.013, 0},
    {"learned",         {N, 64, 1, 1, 0},  R(1),   1.34,  0.01,  0,     0},
    {"learned",         {N, 64, 1, 1, 0},  R(7),   1.34,  0.01,  0,     0},
    {"learned",         {N, 64, 1, 1, 0},  R(64),  1.41,  0.01,  0,     0},
    {"learned",         {N, 64, 1, 1, 0},  TAU,    0.996, 0.001, 0,     0},
    {"fire[init_L=32]", {64, 16, 4, 1, 0}, ETA,    0.022, 0.001, 0,     0},
    {"fire[init_L=32]", {64, 16, 4, 1, 0}, ETA,    0.021, 0.001, 0,     0},
    {"sinusoidal",      {64, 64, 4, 1, 0}, ETA,    0.85,  0.01,  0,     0},
    {"learned",         {64, 64, 4, 1, 0}, ETA,    0.98,  0.01,  0,     0},
    {"cope",            {64, 64, 4, 1, 0}, ETA,    0.95,  0.01,  0,     0},
    {"t5",              {64, 64, 4, 1, 0}, DIRECTION, 0.56, 0.01, 0,    0},
    {"sinusoidal",      SCORE, TERM(PE_CONTENT_CONTENT),   1.00,   0.01,   0.03,    0},
    {"sinusoidal",      SCORE, TERM(PE_CONTENT_POSITION),  0.70,   0.01,   0.05,    0},
    {"sinusoidal",      SCORE, TERM(PE_POSITION_CONTENT),  0.70,   0.01,   0.05,    0},
    {"sinusoidal",      SCORE, TERM(PE_POSITION_POSITION), 0.49,   0.01,   0.08,    0},
    {"learned",         SCORE, TERM(PE_CONTENT_CONTENT),   1.00,   0.01,   0.03,    0},
    {"learned",         SCORE, TERM(PE_CONTENT_POSITION),  0.0200, 0.0001, 0.0006,  0},
    {"learned",         SCORE, TERM(PE_POSITION_CONTENT),  0.0200, 0.0001, 0.0006,  0},
    {"learned",         SCORE, TERM(PE_POSITION_POSITION), 0.0004, 0.0001, 0.00001, 0},
    {"rope",            OF(DRAWS), TREND("q, k ~ U"), -0.69, 0.01, 0.12, 0},
    {"rope",            OF(DRAWS), TREND("q, k ~ U"), -0.68, 0.01, 0.11, 0},
    {"rope",            OF(DRAWS), TREND("q, k ~ N"),  0.04, 0.01, 0.31, 0},
    {"rope",            OF(DRAWS), TREND("q, k ~ N"), -0.03, 0.01, 0.34, 0},
    {"rope[base=5e5]",  OF(DRAWS), TREND("q, k ~ U"), -0.61, 0.01, 0.12, 0},
    {"rope[base=5e5]",  OF(DRAWS), TREND("q, k ~ U"), -0.62, 0.01, 0.13, 0},
    {"rope[base=5e5]",  OF(DRAWS), TREND("q, k ~ N"),  0.00, 0.01, 0.33, 0},
};
/* clang-format on */

/* What one subject says of its own draws; kept, as above. */
static const pe_findings *one_subject(const struct drawn *d, uint64_t seed)
{
    static pe_findings         found;
    static const struct drawn *of;
    static uint64_t            of_seed;
    pe_subject_sizes           sizes = d->sizes;
    if (of && !strcmp(of->spec, d->spec) && of->of == d->of && of_seed == seed)
        return &found;
    sizes.seed = seed;
    found      = ask_all(d->spec, sizes, d->of);
    of         = d;
    of_seed    = seed;
    return &found;
}

static sample sample_of(const struct drawn *d, uint64_t seed)
{
    if (d->sizes.draws == 1)
        return draw(d->spec, d->sizes, d->of, d->measure, d->detail, seed);
    const pe_finding found = find(one_subject(d, seed), d->measure, d->detail);
    return (sample){found.value, found.spread};
}

/* 0.029 and 0.03: half of 0.001 and of 0.01. */
static double half_a_digit(double stated)
{
    double unit = 1;
    while (fabs(stated / unit - round(stated / unit)) > 1e-6)
        unit /= 10;
    return unit / 2;
}

/* The mean lies within three standard errors. A deviation of 200 draws is known to some 5 %: three times
   that. */
static int is_as_stated(const struct drawn *d, sample got)
{
    const double error = got.spread * sqrt(1.0 / DRAWS + d->is_one_draw), of_spread = 3 / sqrt(2.0 * DRAWS);
    return fabs(got.mean - d->stated) <= 3 * error + d->unit / 2 &&
           (d->spread <= 0 ||
            fabs(got.spread - d->spread) <= of_spread * got.spread + half_a_digit(d->spread));
}

static void drawn_figures_and_their_spreads_are_as_stated(void **state)
{
    (void)state;
    int wrong = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
            const struct drawn *d   = &drawn[i];
            const sample        got = sample_of(d, seed);
            if (is_as_stated(d, got))
                continue;
            print_error("%s, %s %s, seed %d: %.4f, spread %.4g, stated %g, spread %g\n", d->spec,
                        pe_findings_title(d->measure), d->detail, (int)seed, got.mean, got.spread, d->stated,
                        d->spread);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

/* A random table of m rows and d channels leaves 1 + d / (m - d - 1) of the variance about 0, which is m / (m
   - 1) of that about the mean: 1.34 for k = 1 and 1.41 for k = 64, where fewer rows are left to fit. */
static void random_tables_leave_what_regression_theory_says(void **state)
{
    (void)state;
    static const struct {
        const char *detail;
        double      rows;
    } offsets[] = {{"k = 1", 256}, {"k = 64", 224}};
    for (int i = 0; i < 2; i++) {
        const double m      = offsets[i].rows;
        const double theory = (1 + WIDTH / (m - WIDTH - 1)) * m / (m - 1);
        const sample got    = draw("learned", (pe_subject_sizes){N, WIDTH, 1, 1, 0}, pe_relativity_measure,
                                   PE_SHIFT, offsets[i].detail, 1);
        /* the formula is exact for the numerator; the ratio of two estimates adds about 1 / (m d) */
        assert_true(fabs(got.mean - theory) <= 3 * got.spread / sqrt(DRAWS) + 1 / m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_print_as_stated),
        cmocka_unit_test(scores_tell_distances_apart_as_far_as_stated),
        cmocka_unit_test(t5_tells_no_distance_from_another_beyond_its_largest),
        cmocka_unit_test(t5_tells_apart_the_distances_with_a_class_of_their_own),
        cmocka_unit_test(channels_are_idle_as_stated),
        cmocka_unit_test(bf16_keeps_all_rows_of_a_long_table_apart),
        cmocka_unit_test(angles_in_bf16_make_positions_fall_together),
        cmocka_unit_test(positions_in_bf16_lose_as_many),
        cmocka_unit_test(the_residual_in_the_sample_flatters),
        cmocka_unit_test(drawn_figures_and_their_spreads_are_as_stated),
        cmocka_unit_test(random_tables_leave_what_regression_theory_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
