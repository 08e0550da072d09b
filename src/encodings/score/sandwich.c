/* SPDX-License-Identifier: MIT */
/*
 * Sandwich: the product of two sinusoids, as a bias
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b_h(t)                                     t = P(i) - P(j)
 *          b_h(t)   = ( sum_{i=1..d/2} cos(t * 10000^(-2i/d)) - d/2 ) / (8(h+1)/H)   d = d_bar
 * Learns   nothing
 * Source   Chi, Fan, Rudnicky, Ramadge 2023, arXiv:2212.10356; NVIDIA/NeMo,
 *          sandwich_relative_position_embedding.py
 *
 * The product of the sinusoids of two positions is a sum of cosines of their distance: large where they are
 * near, in waves that fall off like a logarithm. Sandwich is only that sum, minus its value at t = 0, so that
 * the bias is never above 0, divided by a compression ratio that rises with the head.
 *
 * The sum begins at i = 1, not at 0: its fastest wave is 10000^(-2/d), its slowest exactly 1/10000. In the
 * paper d_bar is independent of the width of a head; NeMo passes the width of a head: d_bar=D.
 */
#include "encodings/encoding.h"

enum { D_BAR }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"d_bar", "integer", "128", "2..65536", "twice the number of waves; even"},
    {0},
};
static_assert(PE_ROWS(settings) == D_BAR + 1, "ORDER settings");

static const posenc_example examples[] = {
    {"H=2 d_bar=2", 0, 10000, 0, -0.11492442353296507, "(cos 1 - 1) / 4"},
    {"H=2 d_bar=2", 1, 0, 10000, -0.057462211766482535, "(cos 1 - 1) / 8: the last head, ahead"},
    {"H=8", 3, 5, 5, 0, "no distance, no bias"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[D_BAR].integer % 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "sandwich: d_bar=%lld must be even: it is twice the number of waves",
                       (long long)p->set[D_BAR].integer);
    return POSENC_OK;
}

/*
 * cos(a + b) = cos a cos b - sin a sin b: runs of FINE distances, each from its start a by the same steps b.
 * Summed over the waves that is a product of matrices, starts by waves times waves by steps, and of exact
 * angles a run and a wave need one each; an exact angle for each distance and wave took longer than attention
 * itself. A cosine is off by less than 1e-15. (rotation/ladder.h would make each cosine by itself, in float,
 * and leave the sum over the waves to be done.)
 */
enum { FINE = 64, RUNS = 16, WAVES = 32 };

typedef struct wave_sums {
    int64_t count;
    double  k[WAVES][2];
    double  cosines[WAVES][FINE], sines[WAVES][FINE]; /* of the steps */
    double  at_cosine[WAVES][RUNS],
        at_sine[WAVES][RUNS]; /* of the starts; sines with the sign of the formula */
} wave_sums;

static void start_waves(const pe_problem *p, wave_sums *w, int64_t first, int with_steps)
{
    const int64_t rest = p->set[D_BAR].integer / 2 - first + 1;
    double        steps[FINE];
    for (int64_t i = 0; i < FINE; i++)
        steps[i] = (double)i;
    w->count = rest < WAVES ? rest : WAVES;
    for (int64_t k = 0; k < w->count; k++) {
        const pe_frequency omega =
            pe_angle_frequency(pow(10000.0, -2 * (double)(first + k) / (double)p->set[D_BAR].integer));
        w->k[k][0] = omega.k_hi;
        w->k[k][1] = omega.k_lo;
        if (with_steps)
            p->kernels->cosines(steps, w->k[k], 0, w->cosines[k], w->sines[k], FINE);
    }
}

/* b += the waves at `runs` runs of distances from t0 on. */
static void add_runs(const pe_problem *p, wave_sums *w, int64_t t0, int64_t runs, double b[])
{
    double at[RUNS];
    for (int64_t r = 0; r < runs; r++)
        at[r] = (double)(t0 + r * FINE);
    for (int64_t k = 0; k < w->count; k++) {
        p->kernels->cosines(at, w->k[k], 0, w->at_cosine[k], w->at_sine[k], runs);
        for (int64_t r = 0; r < runs; r++)
            w->at_sine[k][r] = -w->at_sine[k][r];
    }
    p->kernels->product64(b, FINE, w->at_cosine[0], 1, RUNS, w->cosines[0], FINE, runs, FINE, w->count, 1);
    p->kernels->product64(b, FINE, w->at_sine[0], 1, RUNS, w->sines[0], FINE, runs, FINE, w->count, 1);
}

/* The same at n single distances, less than a run: exactly. */
static void add_each(const pe_problem *p, const wave_sums *w, int64_t t0, int64_t n, double b[])
{
    double at[FINE], cosine[FINE], sine[FINE];
    for (int64_t i = 0; i < n; i++)
        at[i] = (double)(t0 + i);
    for (int64_t k = 0; k < w->count; k++) {
        p->kernels->cosines(at, w->k[k], 0, cosine, sine, n);
        for (int64_t i = 0; i < n; i++)
            b[i] += cosine[i];
    }
}

static void add_waves(const pe_problem *p, wave_sums *w, int64_t t0, int64_t n, double b[])
{
    int64_t i = 0;
    while (n - i >= FINE) {
        const int64_t rest = (n - i) / FINE, runs = rest < RUNS ? rest : RUNS;
        add_runs(p, w, t0 + i, runs, b + i);
        i += runs * FINE;
    }
    add_each(p, w, t0 + i, n - i, b + i);
}

static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n, double b[])
{
    const int64_t count = p->set[D_BAR].integer / 2;
    const double  ratio = 8 * (double)(h + 1) / (double)p->H;
    wave_sums     w;
    for (int64_t i = 0; i < n; i++)
        b[i] = -(double)count;
    for (int64_t first = 1; first <= count; first += w.count) {
        start_waves(p, &w, first, n >= FINE);
        add_waves(p, &w, t0, n, b);
    }
    for (int64_t i = 0; i < n; i++)
        b[i] /= ratio;
}

const pe_encoding pe_sandwich = {
    .info.name        = "sandwich",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "bias from the inner products of sinusoids",
    .info.formula     = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + "
                        "frac{H}{8 (h + 1)} (∑_{k=1}^{d/2} cos(t 10000^{−2 k / d}) − d / 2)",
    .info.symbols     = "k: a frequency, counted from 1\n"
                        "d: setting d_bar: as many frequencies as half of it",
    .info.paper       = "arXiv:2212.10356",
    .info.models      = "",
    .info.beyond      = "The curve goes on at any distance: in its paper the loss is kept.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .examples         = examples,
    /* For each distance the sum of cosines, three for each pair, which all heads share; each divides it. */
    .operations     = "(Lq+Lk-1)*(1.5*d_bar+1+H)",
    .check          = check,
    .attention.bias = {.fill = fill},
    PE_SETTINGS(settings),
};
