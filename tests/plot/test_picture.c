/* SPDX-License-Identifier: MIT */
/*
 * Pictures of encodings: the numbers behind each kind against what they should be by formula or through the
 * public door, and that every picture which the registry promises can be drawn.
 */
#include "plot/plot.h"

#include <math.h>
#include <posenc/positions.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workspace.h"

#define TWO_PI 6.283185307179586
#define CLOSE  1e-12

/* ---------------------------------------------------------------- making one ---------------- */

typedef struct made {
    posenc_encoding *e;
    posenc_tensor   *params;
    pe_picture      *picture;
    const pe_figure *f;
} made;

static posenc_tensor *params_create(const posenc_encoding *e, const posenc_dims *dims)
{
    const int      n      = posenc_param_count(e);
    posenc_tensor *params = calloc((size_t)n + 1, sizeof *params);
    assert_non_null(params);
    for (int i = 0; i < n; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], size = 1;
        assert_int_equal(posenc_param_shape(e, dims, i, &ndim, shape, NULL), POSENC_OK);
        for (int32_t a = 0; a < ndim; a++)
            size *= shape[a];
        params[i] =
            posenc_tensor_contiguous(calloc((size_t)size, sizeof(double)), POSENC_DTYPE_F64, ndim, shape);
    }
    assert_int_equal(posenc_param_init(e, dims, params, 1, NULL), POSENC_OK);
    return params;
}

/* With data's params, or the initial ones if it has none. */
static posenc_status try(made *m, const char *spec, posenc_place place, const char *kind,
                         pe_picture_data data, posenc_error *err)
{
    pe_offer offer = {.place = place};
    *m             = (made){0};
    snprintf(offer.kind, sizeof offer.kind, "%s", kind);
    if (posenc_encoding_create(&m->e, spec, NULL, err))
        fail_msg("%s: %s", spec, err->message);
    m->params = params_create(m->e, &data.dims);
    if (!data.params)
        data.params = m->params;
    const posenc_status status = pe_picture_create(&m->picture, m->e, &offer, &data, err);
    m->f                       = status ? NULL : pe_picture_figure(m->picture);
    return status;
}

static made make(const char *spec, posenc_place place, const char *kind, pe_picture_data data)
{
    made         m;
    posenc_error err;
    if (try(&m, spec, place, kind, data, &err))
        fail_msg("%s %s: %s", kind, spec, err.message);
    return m;
}

static void drop(made *m)
{
    pe_picture_free(m->picture);
    for (int i = 0; i < posenc_param_count(m->e); i++)
        free(m->params[i].data);
    free(m->params);
    posenc_encoding_free(m->e);
}

static pe_picture_data sized(int64_t length, int64_t H, int64_t D)
{
    return (pe_picture_data){
        .length = length,
        .seed   = 1,
        .dims = {.B = 1, .H = H, .D = D, .Lq = 2 * length, .Lk = 2 * length, .d_model = H * D, .L = length}};
}

static pe_picture_data on_grid(int64_t rows, int64_t cols, int64_t width)
{
    pe_picture_data data = sized(rows * cols, 1, width);
    data.rows            = rows;
    data.cols            = cols;
    return data;
}

static double omega(double base, int64_t k, int64_t width)
{
    return pow(base, -2.0 * (double)k / (double)width);
}

/* What the registry's sinusoid is: channel c of position i. */
static double sinusoid(int64_t i, int64_t c, int64_t width)
{
    const double a = (double)i * omega(1e4, c / 2, width);
    return c % 2 ? cos(a) : sin(a);
}

/* ---------------------------------------------------------------- heat map, curves ---------- */

static void a_heatmap_shows_channel_by_position_and_measures_wavelengths(void **state)
{
    enum { L = 40, WIDTH = 16 };
    made m = make("sinusoidal", POSENC_PLACE_INPUT, "heatmap", sized(L, 1, WIDTH));
    (void)state;
    assert_true(m.f->kind == PE_GRID && m.f->rows == WIDTH && m.f->cols == L && m.f->signed_scale);
    for (int c = 0; c < WIDTH; c++)
        for (int i = 0; i < L; i++)
            assert_true(fabs(m.f->values[c * L + i] - sinusoid(i, c, WIDTH)) < CLOSE);
    assert_true(m.f->tick_count == 9 && m.f->ticks[0].y == 0 && m.f->ticks[8].y == WIDTH - 1);
    for (int k = 0; k < 9; k++) {
        const double length = TWO_PI / omega(1e4, (int64_t)m.f->ticks[k].y / 2, WIDTH);
        assert_true(fabs(strtod(m.f->ticks[k].label, NULL) / length - 1) < 6e-3); /* three digits */
    }
    drop(&m);
}

static void what_is_no_sine_has_no_wavelength(void **state)
{
    made m = make("learned", POSENC_PLACE_INPUT, "heatmap", sized(40, 1, 16));
    (void)state;
    assert_int_equal(m.f->tick_count, 0);
    drop(&m);
}

static void the_slowest_channel_is_measured_as_well(void **state)
{
    made m = make("sinusoidal[base=1e6]", POSENC_PLACE_INPUT, "heatmap", sized(64, 1, 64));
    (void)state;
    const pe_tick *last   = &m.f->ticks[m.f->tick_count - 1];
    const double   length = TWO_PI / omega(1e6, 31, 64);
    assert_true(last->y == 63 && fabs(strtod(last->label, NULL) / length - 1) < 6e-3);
    drop(&m);
}

static void the_binary_counter_beside_it_counts(void **state)
{
    enum { L = 37, DIGITS = 6 };
    pe_picture_data data = sized(L, 1, 8);
    data.binary_counter  = 1;
    made m               = make("sinusoidal", POSENC_PLACE_INPUT, "heatmap", data);
    (void)state;
    assert_true(m.f->kind == PE_PANELS && m.f->panel_count == 2);
    const pe_figure *b = &m.f->panels[1];
    assert_true(b->rows == DIGITS && b->cols == L);
    for (int i = 0; i < L; i++) {
        int number = 0;
        for (int r = 0; r < DIGITS; r++)
            number += (int)b->values[r * L + i] << r;
        assert_int_equal(number, i);
    }
    assert_string_equal(b->ticks[DIGITS - 1].label, "64");
    drop(&m);
    m = make("sinusoidal", POSENC_PLACE_INPUT, "curves", data);
    assert_true(m.f->panel_count == 2 && m.f->panels[0].kind == PE_CURVES && m.f->panels[1].rows == DIGITS);
    assert_true(fabs(m.f->panels[0].curves[0].y[3] - sin(3)) < CLOSE);
    drop(&m);
}

/* The first axis has the first channels, whose sine stands still while the others count. */
static void a_grid_of_three_axes_is_shown_row_by_row(void **state)
{
    enum { A = 2, B = 3, C = 4, WIDTH = 12 };
    static const int64_t sizes[] = {A, B, C};
    pe_picture_data      data    = on_grid(A * B, C, WIDTH);
    data.sizes                   = sizes;
    data.axes                    = 3;
    made m                       = make("sinusoidal_nd[shape=2x3x4]", POSENC_PLACE_INPUT, "heatmap", data);
    (void)state;
    assert_true(m.f->rows == WIDTH && m.f->cols == A * B * C);
    for (int i = 0; i < A * B * C; i++) {
        const int place[] = {i / (B * C), i / C % B, i % C};
        for (int a = 0; a < 3; a++)
            assert_true(fabs(m.f->values[4 * a * A * B * C + i] - sin(place[a])) < CLOSE);
    }
    drop(&m);
}

static void curves_are_the_chosen_channels(void **state)
{
    enum { L = 30, WIDTH = 20 };
    static const int64_t chosen[] = {4, 7, 19};
    pe_picture_data      data     = sized(L, 1, WIDTH);
    data.chosen                   = chosen;
    data.chosen_count             = 3;
    made m                        = make("sinusoidal", POSENC_PLACE_INPUT, "curves", data);
    (void)state;
    assert_int_equal(m.f->curve_count, 3);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < L; i++)
            assert_true(m.f->curves[k].x[i] == i &&
                        fabs(m.f->curves[k].y[i] - sinusoid(i, chosen[k], WIDTH)) < CLOSE);
    drop(&m);
}

/* ---------------------------------------------------------------- similarity ---------------- */

/* mean of cos(t w) over the pairs: what the dot product of a sinusoid is */
static double mean_cosine(double t, int64_t pairs, int64_t width, double base)
{
    double sum = 0;
    for (int64_t k = 0; k < pairs; k++)
        sum += cos(t * omega(base, k, width));
    return sum / (double)pairs;
}

static void similarity_and_profile_are_mean_cosines_of_a_sinusoid(void **state)
{
    enum { L = 50, WIDTH = 32 };
    made m = make("sinusoidal", POSENC_PLACE_INPUT, "similarity", sized(L, 1, WIDTH));
    (void)state;
    const pe_figure *matrix = &m.f->panels[0], *profile = &m.f->panels[1];
    for (int i = 0; i < L; i++)
        for (int j = 0; j < L; j++)
            assert_true(fabs(matrix->values[i * L + j] - mean_cosine(i - j, WIDTH / 2, WIDTH, 1e4)) < CLOSE);
    for (int t = 0; t < L; t++) {
        const double want = mean_cosine(t, WIDTH / 2, WIDTH, 1e4);
        assert_true(fabs(profile->curves[0].y[t] - want) < CLOSE);
        assert_true(fabs(profile->curves[0].low[t] - want) < CLOSE &&
                    fabs(profile->curves[0].high[t] - want) < CLOSE);
    }
    drop(&m);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double cosine(const double *table, int64_t width, int64_t i, int64_t j)
{
    const double *a = table + i * width, *b = table + j * width;
    return dot(a, b, width) / sqrt(dot(a, a, width) * dot(b, b, width));
}

static void the_profile_of_a_learned_table_has_mean_least_and_largest(void **state)
{
    enum { L = 12, WIDTH = 6 };
    made m = make("learned", POSENC_PLACE_INPUT, "similarity", sized(L, 1, WIDTH));
    (void)state;
    const double   *table   = m.params[0].data;
    const pe_curve *profile = &m.f->panels[1].curves[0];
    for (int t = 0; t < L; t++) {
        double sum = 0, low = 2, high = -2;
        for (int i = t; i < L; i++) {
            const double v = cosine(table, WIDTH, i, i - t);
            sum += v;
            low  = fmin(low, v);
            high = fmax(high, v);
        }
        assert_true(fabs(profile->y[t] - sum / (L - t)) < CLOSE && fabs(profile->low[t] - low) < CLOSE &&
                    fabs(profile->high[t] - high) < CLOSE);
    }
    drop(&m);
}

static void a_vector_that_is_zero_is_a_hole_and_no_part_of_the_profile(void **state)
{
    enum { L = 6, HOLE = 2 };
    made m = make("sinusoidal[padding_idx=2]", POSENC_PLACE_INPUT, "similarity", sized(L, 1, 8));
    (void)state;
    const pe_figure *matrix = &m.f->panels[0], *profile = &m.f->panels[1];
    for (int i = 0; i < L; i++)
        for (int j = 0; j < L; j++)
            assert_int_equal(isnan(matrix->values[i * L + j]) != 0, i == HOLE || j == HOLE);
    for (int t = 0; t < L; t++)
        assert_true(isfinite(profile->curves[0].y[t]));
    drop(&m);
}

static void a_grid_of_grids_has_the_similarity_to_each_position(void **state)
{
    enum { ROWS = 3, COLS = 4, FIRST = 2, WIDTH = 5, WIDE = COLS * (COLS + 1) - 1 };
    pe_picture_data data = on_grid(ROWS, COLS, WIDTH);
    data.first           = FIRST;
    made m               = make("learned[rows=14]", POSENC_PLACE_INPUT, "similarity", data);
    (void)state;
    const double *table = m.params[0].data;
    assert_true(m.f->kind == PE_GRID && m.f->rows == ROWS * (ROWS + 1) - 1 && m.f->cols == WIDE);
    for (int Y = 0; Y < m.f->rows; Y++)
        for (int X = 0; X < WIDE; X++) {
            const double v = m.f->values[Y * WIDE + X];
            const int    y = Y % (ROWS + 1), x = X % (COLS + 1);
            if (y == ROWS || x == COLS) {
                assert_true(isnan(v));
                continue;
            }
            const int of = FIRST + Y / (ROWS + 1) * COLS + X / (COLS + 1), to = FIRST + y * COLS + x;
            assert_true(fabs(v - cosine(table, WIDTH, of, to)) < CLOSE);
        }
    /* the middle of the small map of (1, 2) is labelled (1, 2) */
    assert_true(fabs(m.f->x0 + m.f->dx * (2 * (COLS + 1) + (COLS - 1) / 2.0) - 2) < CLOSE);
    assert_true(fabs(m.f->y0 + m.f->dy * (1 * (ROWS + 1) + (ROWS - 1) / 2.0) - 1) < CLOSE);
    drop(&m);
}

/* Tutorial 000: 16 x 32, three points. A pair of coordinates is as alike as its rows and its columns are. */
static void similarity_on_a_grid_is_the_mean_of_both_axes(void **state)
{
    enum { ROWS = 16, COLS = 32, WIDTH = 128, F = WIDTH / 4 };
    static const int64_t chosen[] = {3, 6, 8, 16, 15, 0};
    pe_picture_data      data     = on_grid(ROWS, COLS, WIDTH);
    data.chosen                   = chosen;
    data.chosen_count             = 6;
    made m                        = make("sinusoidal2d", POSENC_PLACE_INPUT, "similarity2d", data);
    (void)state;
    assert_int_equal(m.f->panel_count, 3);
    for (int p = 0; p < 3; p++) {
        const pe_figure *f = &m.f->panels[p];
        assert_true(f->rows == ROWS && f->cols == COLS && f->low == m.f->panels[0].low);
        assert_true(f->points[0].y == (double)chosen[2 * p] && f->points[0].x == (double)chosen[2 * p + 1]);
        for (int i = 0; i < ROWS * COLS; i++) {
            const double dy = (double)(i / COLS - chosen[2 * p]), dx = (double)(i % COLS - chosen[2 * p + 1]);
            const double want = (mean_cosine(dy, F, 2 * F, 1e4) + mean_cosine(dx, F, 2 * F, 1e4)) / 2;
            assert_true(fabs(f->values[i] - want) < CLOSE);
        }
    }
    drop(&m);
}

/* Its layouts order channels differently and its cosine not at all; DETR's pixels count from 1, a shift. */
static void every_layout_of_a_grid_has_the_same_similarity(void **state)
{
    static const char *const specs[] = {"sinusoidal2d[preset=mae]", "sinusoidal2d[preset=mocov3]",
                                        "sinusoidal2d[preset=timm]", "sinusoidal2d[preset=detr]"};
    made first = make("sinusoidal2d", POSENC_PLACE_INPUT, "similarity2d", on_grid(5, 7, 32));
    (void)state;
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        made m = make(specs[k], POSENC_PLACE_INPUT, "similarity2d", on_grid(5, 7, 32));
        for (int i = 0; i < 35; i++)
            assert_true(fabs(m.f->panels[1].values[i] - first.f->panels[1].values[i]) < CLOSE);
        drop(&m);
    }
    /* but not where coordinates are shares of 2 pi */
    made m = make("sinusoidal2d[preset=detr:normalize=yes]", POSENC_PLACE_INPUT, "similarity2d",
                  on_grid(5, 7, 32));
    assert_true(fabs(m.f->panels[1].values[0] - first.f->panels[1].values[0]) > 1e-3);
    drop(&m);
    drop(&first);
}

/* ---------------------------------------------------------------- decay --------------------- */

/* The figures of the literature's curve for D = 128: 1, .97, .62, .48, .32, .19; base 5e5 .45, base 1e6 .49
   at 1023. */
static void scores_of_ones_are_mean_cosines_at_every_base(void **state)
{
    enum { N = 1024, D = 128 };
    static const double bases[] = {1e4, 5e5, 1e6}, printed[] = {0.19, 0.45, 0.49};
    pe_picture_data     data = sized(N, 1, D);
    data.bases               = bases;
    data.base_count          = 3;
    data.contents            = PE_VECTORS_ONES;
    made m                   = make("rope", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    assert_int_equal(m.f->panel_count, 4);
    for (int b = 0; b < 3; b++) {
        const pe_curve *c = &m.f->panels[b].curves[0];
        assert_true(m.f->panels[b].curve_count == 1 && c->n == N && !c->low);
        for (int t = 0; t < N; t++)
            assert_true(c->x[t] == t && fabs(c->y[t] - mean_cosine(t, D / 2, D, bases[b])) < CLOSE);
        assert_true(fabs(c->y[N - 1] - printed[b]) < 0.005);
    }
    const double *y = m.f->panels[0].curves[0].y;
    assert_true(y[0] == 1 && fabs(y[1] - 0.97) < 0.005 && fabs(y[16] - 0.62) < 0.005 &&
                fabs(y[64] - 0.48) < 0.005 && fabs(y[256] - 0.32) < 0.005);
    drop(&m);
}

/* q.k / D at distance t of draw r, computed from the numbers of the generator. `theta` 0: many. */
static double direct_score(double (*draw)(uint64_t, const char *, uint64_t), int64_t r, int64_t D, double t,
                           double theta)
{
    double sum = 0;
    for (int64_t m = 0; m < D / 2; m++) {
        const uint64_t at = (uint64_t)(r * D + 2 * m);
        const double   x = draw(7, "plot q", at), y = draw(7, "plot q", at + 1),
                     a = t * (theta != 0 ? theta : omega(1e4, m, D));
        const double u = draw(7, "plot k", at), v = draw(7, "plot k", at + 1);
        sum += (x * cos(a) - y * sin(a)) * u + (x * sin(a) + y * cos(a)) * v;
    }
    return sum / (double)D;
}

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_draws(const pe_curve *c, double (*draw)(uint64_t, const char *, uint64_t), int64_t D,
                        double theta)
{
    enum { DRAWS = 21 };
    for (int t = 0; t < c->n; t++) {
        double s[DRAWS], mean = 0;
        for (int r = 0; r < DRAWS; r++) {
            s[r] = direct_score(draw, r, D, t, theta);
            mean += s[r] / DRAWS;
        }
        qsort(s, DRAWS, sizeof *s, smaller_first);
        assert_true(fabs(c->y[t] - mean) < CLOSE);
        assert_true(fabs(c->low[t] - s[2]) < CLOSE && fabs(c->high[t] - s[18]) < CLOSE);
    }
}

static void scores_of_random_vectors_are_direct_sums_with_quantiles(void **state)
{
    enum { N = 40, D = 16 };
    pe_picture_data data = sized(N, 1, D);
    data.draws           = 21;
    data.seed            = 7;
    made m               = make("rope", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    assert_true(m.f->panel_count == 2 && m.f->panels[0].curve_count == 4 && m.f->panels[1].curve_count == 3);
    check_draws(&m.f->panels[0].curves[1], posenc_random_uniform, D, 0);
    check_draws(&m.f->panels[0].curves[2], posenc_random_normal, D, 0);
    const double theta = omega(1e4, D / 4, D);
    check_draws(&m.f->panels[1].curves[1], posenc_random_uniform, D, theta);
    check_draws(&m.f->panels[1].curves[2], posenc_random_normal, D, theta);
    for (int t = 0; t < N; t++)
        assert_true(fabs(m.f->panels[1].curves[0].y[t] - cos(t * theta)) < CLOSE);
    drop(&m);
}

/* Two waves of 1 and 0.01 rad: |exp(it) + exp(0.01 it)| / 2 = |cos(0.99 t / 2)|; of six channels two stand.
 */
static void the_envelope_of_ones_has_no_phase(void **state)
{
    enum { N = 400, D = 6 };
    pe_picture_data data = sized(N, 1, D);
    data.contents        = PE_VECTORS_ONES | PE_VECTORS_NORMAL;
    made m               = make("rope[dim=4]", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    assert_int_equal(m.f->panels[0].curve_count, 3);
    const pe_curve *ones = &m.f->panels[0].curves[0], *envelope = &m.f->panels[0].curves[2];
    assert_string_equal(envelope->name, "envelope of ones");
    for (int t = 0; t < N; t++)
        assert_true(fabs(envelope->y[t] - (4 * fabs(cos(0.99 * t / 2)) + 2) / 6) < CLOSE &&
                    envelope->y[t] >= ones->y[t] - CLOSE);
    drop(&m);
}

static void a_seed_decides_the_draws(void **state)
{
    pe_picture_data data = sized(20, 1, 8);
    data.contents        = PE_VECTORS_NORMAL;
    made a               = make("rope", POSENC_PLACE_ROTARY, "decay", data),
         b               = make("rope", POSENC_PLACE_ROTARY, "decay", data);
    data.seed            = 2;
    made c               = make("rope", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    assert_memory_equal(a.f->panels[0].curves[0].y, b.f->panels[0].curves[0].y, 20 * sizeof(double));
    assert_memory_not_equal(a.f->panels[0].curves[0].y, c.f->panels[0].curves[0].y, 20 * sizeof(double));
    drop(&a);
    drop(&b);
    drop(&c);
}

/* xPos makes vectors longer and shorter: many thetas alone are drawn, and the title says what is missing. */
static void a_factor_by_position_has_no_panel_with_one_theta(void **state)
{
    pe_picture_data data = sized(20, 1, 8);
    posenc_error    err;
    made            m = make("xpos", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    assert_int_equal(m.f->panel_count, 1);
    assert_non_null(strstr(m.f->title, "one theta is left out"));
    drop(&m);
    data.thetas = PE_ONE_THETA;
    assert_int_equal(try(&m, "xpos", POSENC_PLACE_ROTARY, "decay", data, &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "xpos"));
    drop(&m);
}

/* A picture rotates its draws as heads, which must be alike; a score part's numbers by head are none of its
   business. */
static void heads_that_turn_differently_have_no_picture(void **state)
{
    pe_picture_data data = sized(20, 2, 8);
    posenc_error    err;
    made            m;
    (void)state;
    assert_int_equal(try(&m, "rope[axis_rule=matrix:per_head=yes]", POSENC_PLACE_ROTARY, "similarity", data,
                         &err),
                     POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "leave out per_head=yes"));
    drop(&m);
    m = make("alibi+rope", POSENC_PLACE_ROTARY, "similarity", data);
    drop(&m);
}

/* Channels that are not rotated keep their product at every distance. */
static void one_theta_rotates_what_the_encoding_rotates(void **state)
{
    enum { N = 12, D = 8, TURNED = 4 };
    pe_picture_data data = sized(N, 1, D);
    data.thetas          = PE_ONE_THETA;
    data.contents        = PE_VECTORS_ONES;
    made m               = make("rope[dim=4]", POSENC_PLACE_ROTARY, "decay", data);
    (void)state;
    for (int t = 0; t < N; t++) {
        const double want = (TURNED * cos(t * omega(1e4, 1, TURNED)) + (D - TURNED)) / D;
        assert_true(fabs(m.f->panels[0].curves[0].y[t] - want) < CLOSE);
    }
    drop(&m);
}

static void another_base_needs_an_encoding_that_has_one(void **state)
{
    static const double base = 0.5;
    pe_picture_data     data = sized(20, 1, 8);
    posenc_error        err;
    made                m;
    data.bases      = &base;
    data.base_count = 1;
    (void)state;
    assert_int_equal(try(&m, "rope", POSENC_PLACE_ROTARY, "decay", data, &err), POSENC_ERROR_SETTING);
    assert_non_null(strstr(err.message, "base"));
    drop(&m);
}

/* ---------------------------------------------------------------- mass ---------------------- */

/* ALiBi's weights are a geometric series. */
static void the_mass_of_alibi_is_a_geometric_series(void **state)
{
    enum { N = 100, H = 8 };
    made m = make("alibi", POSENC_PLACE_SCORE, "mass", sized(N, H, 4));
    (void)state;
    assert_int_equal(m.f->curve_count, H);
    for (int h = 0; h < H; h++) {
        const double ratio  = exp(-exp2(-(h + 1)));
        const int    within = (int)ceil(log(1 - 0.9 * (1 - pow(ratio, N))) / log(ratio));
        char         name[64];
        for (int n = 1; n <= N; n++)
            assert_true(m.f->curves[h].x[n - 1] == n &&
                        fabs(m.f->curves[h].y[n - 1] - (1 - pow(ratio, n)) / (1 - pow(ratio, N))) < CLOSE);
        snprintf(name, sizeof name, "head %d: 90 %% on %d keys", h, within);
        assert_string_equal(m.f->curves[h].name, name);
    }
    drop(&m);
}

static void the_mass_of_a_rotation_is_a_softmax_of_its_scores(void **state)
{
    enum { N = 50, D = 16 };
    pe_picture_data data = sized(N, 1, D);
    data.contents        = PE_VECTORS_ONES;
    made   m             = make("rope", POSENC_PLACE_ROTARY, "mass", data);
    double all = 0, sum = 0;
    (void)state;
    for (int t = 0; t < N; t++)
        all += exp(sqrt(D) * mean_cosine(t, D / 2, D, 1e4));
    for (int t = 0; t < N; t++) {
        sum += exp(sqrt(D) * mean_cosine(t, D / 2, D, 1e4));
        assert_true(fabs(m.f->curves[0].y[t] - sum / all) < CLOSE);
    }
    drop(&m);
}

/* ---------------------------------------------------------------- pair ---------------------- */

static void check_arrows(const char *spec, const char *x_label, const char *y_label)
{
    enum { N = 8, D = 8 };
    static const int64_t chosen = 1;
    pe_picture_data      data   = sized(N, 1, D);
    data.chosen                 = &chosen;
    data.chosen_count           = 1;
    made             m          = make(spec, POSENC_PLACE_ROTARY, "pair", data);
    const pe_figure *f          = &m.f->panels[0];
    assert_true(f->kind == PE_ARROWS && f->curve_count == N);
    assert_string_equal(f->x_label, x_label);
    assert_string_equal(f->y_label, y_label);
    for (int i = 0; i < N; i++)
        assert_true(fabs(f->curves[i].x[0] - cos(i * omega(1e4, 1, D))) < CLOSE &&
                    fabs(f->curves[i].y[0] - sin(i * omega(1e4, 1, D))) < CLOSE);
    drop(&m);
}

static void arrows_turn_in_the_channels_that_the_layout_pairs(void **state)
{
    (void)state;
    check_arrows("rope", "channel 2", "channel 3");
    check_arrows("rope[layout=half]", "channel 1", "channel 5");
}

/* ---------------------------------------------------------------- wavelengths --------------- */

/* Every pair stands once, at 2 pi / w, in the curve of its rotations within the context; then the context's
   own line. */
static void wavelengths_are_grouped_by_their_rotations_within_the_context(void **state)
{
    enum { D = 128, CONTEXT = 4096 };
    static const double least[] = {32, 1, 0}, below[] = {INFINITY, 32, 1};
    made                m       = make("rope", POSENC_PLACE_ROTARY, "wavelengths", sized(CONTEXT, 1, D));
    const pe_curve     *context = &m.f->curves[0];
    int64_t             seen    = 0;
    (void)state;
    assert_true(m.f->log_y && m.f->curve_count == 4);
    for (int r = 0; r < 3; r++)
        for (int64_t i = 0; i < m.f->curves[r + 1].n; i++, seen++) {
            const double length = m.f->curves[r + 1].y[i], rotations = CONTEXT / length;
            assert_true(m.f->curves[r + 1].x[i] == (double)seen); /* fast pairs first, in order */
            assert_true(fabs(length - TWO_PI / omega(1e4, seen, D)) < CLOSE * length);
            assert_true(rotations >= least[r] && rotations < below[r]);
        }
    assert_int_equal(seen, D / 2);
    assert_true(context->style == PE_RULE && context->y[0] == CONTEXT && context->x[1] == D / 2 - 1);
    assert_non_null(strstr(m.f->title, "18 of 64 wavelengths are longer than the context"));
    drop(&m);
}

/* Llama 3.1: 29 pairs as they were, 6 between, 29 slowed by 8, in the regimes of the first 8192 tokens; four
   rules. */
static void scaled_wavelengths_are_drawn_beside_those_before(void **state)
{
    enum { D = 128, CONTEXT = 131072 };
    made m = make(
        "rope[base=5e5:schedule=llama3:factor=8:low_freq_factor=1:high_freq_factor=4:original_length=8192]",
        POSENC_PLACE_ROTARY, "wavelengths", sized(CONTEXT, 1, D));
    int kept = 0, slowed = 0;
    (void)state;
    assert_int_equal(m.f->curve_count, 6);
    assert_string_equal(m.f->curves[0].name, "before scaling");
    assert_string_equal(m.f->curves[1].name, "first context 8192");
    assert_string_equal(m.f->curves[2].name, "context 131072");
    for (int r = 3; r < 6; r++)
        for (int64_t i = 0; i < m.f->curves[r].n; i++) {
            const double *x = &m.f->curves[r].x[i], before = m.f->curves[0].y[(int64_t)*x],
                         ratio = m.f->curves[r].y[i] / before;
            assert_true(fabs(before - TWO_PI / omega(5e5, (int64_t)*x, D)) < CLOSE * before);
            kept += fabs(ratio - 1) < CLOSE;
            slowed += fabs(ratio - 8) < 8 * CLOSE;
        }
    assert_true(kept == 29 && slowed == 29);
    assert_non_null(strstr(m.f->title, "llama3: 25 of 64 wavelengths"));
    drop(&m);
}

/* ---------------------------------------------------------------- bias, buckets ------------- */

static void a_bias_is_drawn_against_the_signed_distance(void **state)
{
    enum { N = 20, H = 4 };
    made m = make("alibi", POSENC_PLACE_SCORE, "bias", sized(N, H, 4));
    (void)state;
    assert_true(m.f->curve_count == H && m.f->curves[0].n == 2 * N - 1);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < 2 * N - 1; i++) {
            const double t = m.f->curves[h].x[i];
            assert_true(t == N - 1 - i && fabs(m.f->curves[h].y[i] + fabs(t) * exp2(-2 * (h + 1))) < CLOSE);
        }
    drop(&m);
}

/* Positions that end: the future is seen from 0, the past from the last one. The table has a number per
   |t|. */
static void a_bias_of_bounded_positions_stays_within_them(void **state)
{
    enum { N = 10, H = 3 };
    pe_picture_data data = sized(N, H, 4);
    made            m    = make("absolute_distance[grid=10x1:divide=no]", POSENC_PLACE_SCORE, "bias", data);
    (void)state;
    const double *table = m.params[0].data;
    for (int h = 0; h < H; h++)
        for (int i = 0; i < 2 * N - 1; i++) {
            const int t = N - 1 - i;
            assert_true(m.f->curves[h].x[i] == t && m.f->curves[h].y[i] == table[abs(t) * H + h]);
        }
    drop(&m);
}

static void a_bias_of_absolute_positions_is_a_matrix_per_head(void **state)
{
    enum { N = 6, H = 2, D = 4 };
    static double     want[H * N * N];
    const int64_t     shape[3] = {H, N, N};
    made              m        = make("tupe", POSENC_PLACE_SCORE, "bias", sized(N, H, D));
    posenc_plan      *plan;
    posenc_tensor     out  = posenc_tensor_contiguous(want, POSENC_DTYPE_F64, 3, shape);
    posenc_attend_in  in   = {.size = sizeof in, .params = m.params};
    const posenc_dims dims = sized(N, H, D).dims;
    (void)state;
    assert_int_equal(posenc_plan_create(&plan, m.e, &dims, NULL, NULL), POSENC_OK);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_SCORES);
    assert_int_equal(posenc_bias(plan, &in, &out, &work, NULL), POSENC_OK);
    posenc_workspace_free(&work);
    assert_int_equal(m.f->panel_count, H);
    for (int h = 0; h < H; h++)
        assert_memory_equal(m.f->panels[h].values, want + h * N * N, N * N * sizeof *want);
    posenc_plan_free(plan);
    drop(&m);
}

/* The authors' index of an offset is its place in the map, row by row. */
static void a_window_is_a_map_of_offsets(void **state)
{
    enum { ROWS = 3, COLS = 4, H = 2, OFFSETS = (2 * ROWS - 1) * (2 * COLS - 1) };
    made m = make("swin[window=3x4]", POSENC_PLACE_SCORE, "bias", sized(ROWS * COLS, H, 4));
    (void)state;
    assert_int_equal(m.f->panel_count, H);
    const double *table = m.params[0].data;
    for (int h = 0; h < H; h++) {
        const pe_figure *f = &m.f->panels[h];
        assert_true(f->rows * f->cols == OFFSETS && f->x0 == 1 - COLS && f->y0 == 1 - ROWS);
        for (int x = 0; x < OFFSETS; x++)
            assert_true(f->values[x] == table[x * H + h]);
    }
    drop(&m);
}

static void check_buckets(const char *spec, const char *map, const char *settings, int sign, int64_t n)
{
    made     m   = make(spec, POSENC_PLACE_SCORE, "buckets", sized(n, 1, 8));
    int64_t *rel = calloc((size_t)(4 * n), sizeof *rel), *want = rel + 2 * n;
    for (int64_t i = 0; i < 2 * n - 1; i++)
        rel[i] = sign * (i - n + 1);
    assert_int_equal(posenc_index_map(map, settings, rel, 2 * n - 1, want, NULL), POSENC_OK);
    for (int64_t i = 0; i < 2 * n - 1; i++)
        assert_true(m.f->panels[0].curves[0].x[i] == (double)(i - n + 1) &&
                    m.f->panels[0].curves[0].y[i] == (double)want[i]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            assert_true(m.f->panels[1].values[i * n + j] == (double)want[i - j + n - 1]);
    free(rel);
    drop(&m);
}

static void buckets_are_those_of_the_index_map_with_the_settings_of_the_encoding(void **state)
{
    (void)state;
    check_buckets("t5", "t5", "", -1, 200);
    check_buckets("t5[num_buckets=16:max_distance=40:sigma=0.5]", "t5", "num_buckets=16 max_distance=40", -1,
                  60);
    check_buckets("t5[bidirectional=no]+rope", "t5", "bidirectional=no", -1, 60);
    check_buckets("deberta[position_buckets=32:max_relative_positions=100]", "deberta",
                  "position_buckets=32 max_relative_positions=100", 1, 150);
}

/* Each bucket's number is its own name: so the bias that the scores see must be the bucket that the picture
   shows. */
static void the_bucket_of_a_distance_is_the_one_that_the_scores_see(void **state)
{
    enum { N = 50, R = 32 };
    double          names[R];
    const int64_t   shape[2] = {R, 1};
    posenc_tensor   table    = posenc_tensor_contiguous(names, POSENC_DTYPE_F64, 2, shape);
    pe_picture_data data     = sized(N, 1, 8);
    (void)state;
    for (int r = 0; r < R; r++)
        names[r] = r;
    data.params       = &table;
    made bias         = make("t5", POSENC_PLACE_SCORE, "bias", data),
         buckets      = make("t5", POSENC_PLACE_SCORE, "buckets", data);
    const pe_curve *b = &bias.f->curves[0], *c = &buckets.f->panels[0].curves[0];
    for (int i = 0; i < 2 * N - 1; i++)
        assert_true(b->x[i] == c->x[2 * N - 2 - i] && b->y[i] == c->y[2 * N - 2 - i]);
    drop(&bias);
    drop(&buckets);
}

/* The value of distance t = -(N-1) .. N-1. */
static double bucket_of(const made *m, int64_t t)
{
    const pe_curve *c = &m->f->panels[0].curves[0];
    return c->y[t + c->n / 2];
}

static void each_distance_has_a_row_of_its_own_where_deberta_has_no_buckets(void **state)
{
    enum { N = 20 };
    made m = make("deberta[max_relative_positions=12]", POSENC_PLACE_SCORE, "buckets", sized(N, 1, 8));
    (void)state;
    for (int64_t t = 1 - N; t < N; t++)
        assert_true(bucket_of(&m, t) == (t < -12 ? 0 : t > 11 ? 23 : (double)(12 + t)));
    drop(&m);
}

static void shaw_draws_the_distance_of_the_key_clipped_on_both_sides(void **state)
{
    enum { N = 9 };
    made m = make("shaw[max_relative=3:min_distance=-5]", POSENC_PLACE_SCORE, "buckets", sized(N, 1, 8));
    (void)state;
    for (int64_t t = 1 - N; t < N; t++)
        assert_true(bucket_of(&m, t) == fmin(fmax((double)-t, -5), 3));
    const pe_figure *pairs = &m.f->panels[1];
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++)
            assert_true(pairs->values[i * N + j] == fmin(fmax((double)(j - i), -5), 3));
    drop(&m);
}

/* ---------------------------------------------------------------- factors, diagrams --------- */

static void the_factors_of_urpe_are_the_rows_of_its_table(void **state)
{
    enum { N = 12, H = 2 };
    const pe_picture_data data = sized(N, H, 8);
    made                  m    = make("urpe[init=normal]", POSENC_PLACE_WEIGHT, "factors", data);
    const double         *c    = m.params[1].data; /* [rows, H]; row of distance 0: L - 1 */
    (void)state;
    assert_int_equal(m.f->curve_count, H);
    for (int h = 0; h < H; h++)
        for (int64_t i = 0; i < m.f->curves[h].n; i++) {
            const int64_t t = (int64_t)m.f->curves[h].x[i];
            assert_true(fabs(m.f->curves[h].y[i] - (c[(data.dims.L - 1 - t) * H + h])) < CLOSE);
        }
    drop(&m);
}

static void the_digits_of_a_position_are_its_row_and_its_column(void **state)
{
    made m = make("hierarchical[rows=3:alpha=0.7]", POSENC_PLACE_INPUT, "hierarchy", sized(4, 1, 8));
    (void)state;
    assert_true(m.f->rows == 3 && m.f->cols == 3 && m.f->with_numbers);
    for (int k = 0; k < 9; k++)
        assert_true(m.f->values[k] == k);
    assert_non_null(strstr(m.f->title, "q = 0.7 u_i + 0.3 u_j"));
    drop(&m);
}

static void a_one_hot_beside_the_token_gives_what_adding_gives(void **state)
{
    enum { N = 5, WIDTH = 6 };
    made m = make("sinusoidal", POSENC_PLACE_INPUT, "onehot", sized(N, 1, WIDTH));
    (void)state;
    const pe_figure *W = &m.f->panels[0], *x = &m.f->panels[1], *to = &m.f->panels[2];
    assert_true(W->rows == WIDTH && W->cols == x->rows && to->rows == WIDTH);
    for (int c = 0; c < WIDTH; c++) {
        double all = 0;
        for (int64_t k = 0; k < W->cols; k++)
            all += W->values[c * W->cols + k] * x->values[k];
        assert_true(fabs(to->values[4 * c + 1] - (sinusoid(N - 1, c, WIDTH))) < CLOSE);
        assert_true(fabs(to->values[4 * c + 2] - all) < CLOSE);
        assert_true(fabs(to->values[4 * c + 3] - all) < CLOSE);
    }
    drop(&m);
}

static void a_word_is_rotated_by_its_position_counted_from_1(void **state)
{
    enum { N = 3, D = 4 };
    static const char *const words[N] = {"to", "be", "to"};
    pe_picture_data          data     = sized(N, 1, D);
    (void)state;
    data.words              = words;
    made             m      = make("rope", POSENC_PLACE_ROTARY, "words", data);
    const pe_figure *before = &m.f->panels[0], *angles = &m.f->panels[1], *after = &m.f->panels[2];
    assert_memory_equal(before->values, before->values + 2 * D, D * sizeof(double)); /* the same word */
    for (int k = 0; k < N * D / 2; k++) {
        const double *q = before->values + 2 * k, a = angles->values[k];
        assert_true(fabs(a - ((1 + k / 2) * omega(1e4, k % 2, D))) < CLOSE);
        assert_true(fabs(after->values[2 * k] - (q[0] * cos(a) - q[1] * sin(a))) < CLOSE);
        assert_true(fabs(after->values[2 * k + 1] - (q[0] * sin(a) + q[1] * cos(a))) < CLOSE);
    }
    drop(&m);
}

/* ---------------------------------------------------------------- tables, several ----------- */

static void a_transposed_table_has_positions_down_and_chosen_channels_across(void **state)
{
    static const int64_t chosen[] = {5, 0};
    pe_picture_data      data     = sized(7, 1, 8);
    (void)state;
    data.chosen       = chosen;
    data.chosen_count = 2;
    data.transposed = data.with_numbers = 1;
    data.decimals                       = 3;
    made m                              = make("sinusoidal", POSENC_PLACE_INPUT, "heatmap", data);
    assert_true(m.f->rows == 7 && m.f->cols == 2 && m.f->with_numbers && m.f->decimals == 3);
    assert_string_equal(m.f->y_label, "position (tokens)");
    for (int k = 0; k < 14; k++) {
        char name[4];
        snprintf(name, sizeof name, "%d", (int)chosen[k % 2]);
        assert_string_equal(m.f->col_names[k % 2], name);
        assert_true(fabs(m.f->values[k] - (sinusoid(k / 2, chosen[k % 2], 8))) < CLOSE);
    }
    drop(&m);
}

static void a_table_of_too_many_numbers_is_refused(void **state)
{
    made            m;
    posenc_error    err;
    pe_picture_data data = sized(128, 1, 64);
    (void)state;
    data.with_numbers = 1;
    assert_int_equal(try(&m, "sinusoidal", POSENC_PLACE_INPUT, "heatmap", data, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "64x128"));
    drop(&m);
}

static void dot_products_are_cosines_times_the_lengths(void **state)
{
    pe_picture_data data = on_grid(3, 4, 16);
    (void)state;
    made cosines  = make("sinusoidal2d", POSENC_PLACE_INPUT, "similarity2d", data);
    data.products = 1;
    made products = make("sinusoidal2d", POSENC_PLACE_INPUT, "similarity2d", data);
    for (int i = 0; i < 12; i++) /* 8 pairs: each vector has the squared length 8 */
        assert_true(fabs(products.f->panels[1].values[i] - (8 * cosines.f->panels[1].values[i])) < CLOSE);
    assert_string_equal(products.f->panels[1].value_label, "dot product");
    drop(&cosines);
    drop(&products);
}

static void one_draw_is_titled_as_one_draw(void **state)
{
    pe_picture_data data = sized(16, 1, 8);
    (void)state;
    data.contents = PE_VECTORS_NORMAL;
    data.thetas   = PE_ONE_THETA;
    data.theta    = 0.25;
    data.draws    = 1;
    made m        = make("rope", POSENC_PLACE_ROTARY, "decay", data);
    assert_non_null(strstr(m.f->title, "one draw"));
    assert_null(strstr(m.f->title, "80 %"));
    const pe_curve *c = &m.f->panels[0].curves[0];
    assert_null(c->low);
    /* with one frequency it is a sinusoid: y(t+1) + y(t-1) = 2 cos(theta) y(t) */
    for (int t = 1; t < 15; t++)
        assert_true(fabs(c->y[t + 1] + c->y[t - 1] - (2 * cos(0.25) * c->y[t])) < CLOSE);
    drop(&m);
}

static void single_curves_share_a_frame_and_others_stand_side_by_side(void **state)
{
    pe_picture  *joint;
    posenc_error err;
    (void)state;
    for (int64_t H = 1; H < 3; H++) {
        made        a          = make("alibi", POSENC_PLACE_SCORE, "bias", sized(16, H, 8));
        made        b          = make("kerple_log", POSENC_PLACE_SCORE, "bias", sized(16, H, 8));
        pe_picture *pictures[] = {a.picture, b.picture};
        assert_int_equal(pe_picture_join(&joint, pictures, 2, &err), POSENC_OK);
        const pe_figure *f = pe_picture_figure(joint);
        assert_true(f->kind == (H == 1 ? PE_CURVES : PE_PANELS));
        assert_string_equal(H == 1 ? f->curves[0].name : f->panels[0].title, "alibi");
        assert_true(H == 1 ? f->curves[1].y == b.f->curves[0].y
                           : f->panels[1].curves[1].y == b.f->curves[1].y);
        pe_picture_free(joint);
        drop(&a);
        drop(&b);
    }
}

static void pictures_of_different_things_are_named_one_by_one(void **state)
{
    pe_picture  *joint;
    posenc_error err;
    made         a          = make("rope", POSENC_PLACE_ROTARY, "wavelengths", sized(64, 1, 16));
    made         b          = make("rope[base=5e5]", POSENC_PLACE_ROTARY, "wavelengths", sized(64, 1, 16));
    pe_picture  *pictures[] = {a.picture, b.picture};
    (void)state;
    assert_int_equal(pe_picture_join(&joint, pictures, 2, &err), POSENC_OK);
    assert_string_equal(pe_picture_figure(joint)->title, "rope, rope[base=5e5]");
    assert_string_equal(pe_picture_figure(joint)->panels[1].title, b.f->title);
    pe_picture_free(joint);
    drop(&a);
    drop(&b);
}

static void a_bias_that_starts_at_zero_is_flat(void **state)
{
    made zero = make("transformer_xl", POSENC_PLACE_SCORE, "bias", sized(16, 2, 8));
    made some = make("alibi", POSENC_PLACE_SCORE, "bias", sized(16, 2, 8));
    (void)state;
    assert_true(pe_picture_is_flat(zero.picture) && !pe_picture_is_flat(some.picture));
    drop(&zero);
    drop(&some);
}

/* ---------------------------------------------------------------- all of the registry -------- */

static void check_figure(const pe_figure *f)
{
    assert_true(f->kind == PE_PANELS ? f->panel_count > 0 : f->with_numbers || (f->x_label && f->y_label));
    if (f->kind == PE_GRID)
        for (int64_t i = 0; i < f->rows * f->cols; i++)
            assert_true(isfinite(f->values[i]));
    for (int k = 0; k < f->curve_count; k++)
        for (int64_t i = 0; i < f->curves[k].n; i++)
            assert_true(isfinite(f->curves[k].x[i]) && isfinite(f->curves[k].y[i]));
    for (int k = 0; k < f->panel_count; k++)
        check_figure(&f->panels[k]);
}

static void draw_all_of(const posenc_encoding_info *info)
{
    enum { L = 32 };
    const char      *words[L];
    pe_picture_data  line = sized(L, 4, 16);
    posenc_encoding *e;
    pe_offer         offers[PE_MOST_OFFERS];
    for (int i = 0; i < L; i++)
        words[i] = "word";
    line.words = words;
    assert_int_equal(posenc_encoding_create(&e, info->name, NULL, NULL), POSENC_OK);
    const int count = pe_picture_offers(e, offers), axes = pe_picture_axes(e, &line.dims);
    for (int i = 0; i < count; i++) {
        const int grid = axes == 2 || !strcmp(offers[i].kind, "similarity2d");
        made      m = make(info->name, offers[i].place, offers[i].kind, grid ? on_grid(4, L / 4, 16) : line);
        assert_non_null(m.f->title);
        if (!grid || strcmp(offers[i].kind, "similarity") != 0) /* a grid of grids has gaps */
            check_figure(m.f);
        drop(&m);
    }
    posenc_encoding_free(e);
}

/* Commas + 1, or 0 for an empty list. */
static int length_of_list(const char *list)
{
    int n = list && *list;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

static void every_picture_that_the_registry_promises_can_be_drawn(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        pe_offer                    offers[PE_MOST_OFFERS];
        posenc_encoding            *e;
        assert_int_equal(posenc_encoding_create(&e, info->name, NULL, NULL), POSENC_OK);
        assert_int_equal(pe_picture_offers(e, offers), length_of_list(info->pictures));
        posenc_encoding_free(e);
        draw_all_of(info);
    }
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    static const int64_t far[] = {9, 9};
    static const struct {
        const char  *spec, *kind, *word;
        posenc_place place;
        int64_t      length, rows, cols;
        int          chosen;
    } rows[] = {
        {"sinusoidal", "similarity", "1024", POSENC_PLACE_INPUT, 2000, 0, 0, 0},
        {"sinusoidal", "heatmap", "at least 2", POSENC_PLACE_INPUT, 1, 0, 0, 0},
        {"sinusoidal2d", "heatmap", "grid", POSENC_PLACE_INPUT, 16, 0, 0, 0},
        {"sinusoidal", "similarity2d", "grid", POSENC_PLACE_INPUT, 16, 0, 0, 0},
        {"sinusoidal_nd[shape=2x3x4]", "heatmap", "3 coordinates", POSENC_PLACE_INPUT, 0, 6, 4, 0},
        {"sinusoidal2d", "similarity2d", "9x9", POSENC_PLACE_INPUT, 0, 4, 4, 2},
        {"sinusoidal2d", "similarity", "10099 cells", POSENC_PLACE_INPUT, 0, 4, 100, 0},
        {"sinusoidal", "curves", "channel 9", POSENC_PLACE_INPUT, 16, 0, 0, 1},
        {"rope", "pair", "pair 9", POSENC_PLACE_ROTARY, 8, 0, 0, 1},
        {"rope", "pair", "32", POSENC_PLACE_ROTARY, 100, 0, 0, 0},
        {"alibi", "heatmap", "no heatmap", POSENC_PLACE_SCORE, 16, 0, 0, 0},
        {"xpos[center=16777216]", "pair", "longer than any number", POSENC_PLACE_ROTARY, 8, 0, 0, 0},
        {"sinusoidal[dim=1048576]", "heatmap", "at most 65536", POSENC_PLACE_INPUT, 16, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pe_picture_data data = sized(rows[i].length ? rows[i].length : 16, 1, 8);
        posenc_error    err;
        made            m;
        data.length       = rows[i].length;
        data.rows         = rows[i].rows;
        data.cols         = rows[i].cols;
        data.chosen       = far;
        data.chosen_count = rows[i].chosen;
        if (!try(&m, rows[i].spec, rows[i].place, rows[i].kind, data, &err))
            fail_msg("%s %s was drawn", rows[i].kind, rows[i].spec);
        if (!strstr(err.message, rows[i].word))
            fail_msg("%s %s: %s", rows[i].kind, rows[i].spec, err.message);
        drop(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heatmap_shows_channel_by_position_and_measures_wavelengths),
        cmocka_unit_test(what_is_no_sine_has_no_wavelength),
        cmocka_unit_test(the_slowest_channel_is_measured_as_well),
        cmocka_unit_test(the_binary_counter_beside_it_counts),
        cmocka_unit_test(a_grid_of_three_axes_is_shown_row_by_row),
        cmocka_unit_test(curves_are_the_chosen_channels),
        cmocka_unit_test(similarity_and_profile_are_mean_cosines_of_a_sinusoid),
        cmocka_unit_test(the_profile_of_a_learned_table_has_mean_least_and_largest),
        cmocka_unit_test(a_vector_that_is_zero_is_a_hole_and_no_part_of_the_profile),
        cmocka_unit_test(a_grid_of_grids_has_the_similarity_to_each_position),
        cmocka_unit_test(similarity_on_a_grid_is_the_mean_of_both_axes),
        cmocka_unit_test(every_layout_of_a_grid_has_the_same_similarity),
        cmocka_unit_test(scores_of_ones_are_mean_cosines_at_every_base),
        cmocka_unit_test(scores_of_random_vectors_are_direct_sums_with_quantiles),
        cmocka_unit_test(the_envelope_of_ones_has_no_phase),
        cmocka_unit_test(a_seed_decides_the_draws),
        cmocka_unit_test(a_factor_by_position_has_no_panel_with_one_theta),
        cmocka_unit_test(heads_that_turn_differently_have_no_picture),
        cmocka_unit_test(one_theta_rotates_what_the_encoding_rotates),
        cmocka_unit_test(another_base_needs_an_encoding_that_has_one),
        cmocka_unit_test(the_mass_of_alibi_is_a_geometric_series),
        cmocka_unit_test(the_mass_of_a_rotation_is_a_softmax_of_its_scores),
        cmocka_unit_test(arrows_turn_in_the_channels_that_the_layout_pairs),
        cmocka_unit_test(wavelengths_are_grouped_by_their_rotations_within_the_context),
        cmocka_unit_test(scaled_wavelengths_are_drawn_beside_those_before),
        cmocka_unit_test(a_bias_is_drawn_against_the_signed_distance),
        cmocka_unit_test(a_bias_of_bounded_positions_stays_within_them),
        cmocka_unit_test(a_bias_of_absolute_positions_is_a_matrix_per_head),
        cmocka_unit_test(a_window_is_a_map_of_offsets),
        cmocka_unit_test(buckets_are_those_of_the_index_map_with_the_settings_of_the_encoding),
        cmocka_unit_test(the_bucket_of_a_distance_is_the_one_that_the_scores_see),
        cmocka_unit_test(each_distance_has_a_row_of_its_own_where_deberta_has_no_buckets),
        cmocka_unit_test(shaw_draws_the_distance_of_the_key_clipped_on_both_sides),
        cmocka_unit_test(the_factors_of_urpe_are_the_rows_of_its_table),
        cmocka_unit_test(the_digits_of_a_position_are_its_row_and_its_column),
        cmocka_unit_test(a_one_hot_beside_the_token_gives_what_adding_gives),
        cmocka_unit_test(a_word_is_rotated_by_its_position_counted_from_1),
        cmocka_unit_test(a_transposed_table_has_positions_down_and_chosen_channels_across),
        cmocka_unit_test(a_table_of_too_many_numbers_is_refused),
        cmocka_unit_test(dot_products_are_cosines_times_the_lengths),
        cmocka_unit_test(one_draw_is_titled_as_one_draw),
        cmocka_unit_test(single_curves_share_a_frame_and_others_stand_side_by_side),
        cmocka_unit_test(pictures_of_different_things_are_named_one_by_one),
        cmocka_unit_test(a_bias_that_starts_at_zero_is_flat),
        cmocka_unit_test(every_picture_that_the_registry_promises_can_be_drawn),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
