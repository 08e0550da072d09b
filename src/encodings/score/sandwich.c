/* SPDX-License-Identifier: MIT */
/*
 * Sandwich: what two sinusoids say to each other, as a bias
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b_h(t)                                     t = P(i) - P(j)
 *          b_h(t)   = ( sum_{i=1..d/2} cos(t * 10000^(-2i/d)) - d/2 ) / (8h/H)       d = d_bar, h = 1..H
 * Learns   nothing
 * Source   Chi, Fan, Rudnicky, Ramadge 2023, arXiv:2212.10356; NVIDIA/NeMo, sandwich_relative_position_embedding.py
 *
 * The product of the sinusoids of two positions is a sum of cosines of their distance: large where they are near, in
 * waves that fall off like a logarithm. Sandwich keeps that sum alone, less its value at t = 0, so that the bias is
 * never above 0, and divides it by a compression ratio that rises with the head.
 *
 * The sum begins at i = 1, not at 0: its fastest wave is 10000^(-2/d), its slowest exactly 1/10000. The paper keeps d_bar
 * apart from the width of a head; NeMo passes the width of a head: d_bar=D.
 */
#include "encodings/encoding.h"

#include <math.h>

#include "base/angle.h"

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
        return pe_fail(err, POSENC_SETTING,
                       "sandwich: d_bar=%lld must be even: it is twice the number of waves",
                       (long long)p->set[D_BAR].integer);
    return POSENC_OK;
}

/* Wave by wave for all n distances: a frequency is found once. */
static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n, double b[])
{
    const int64_t waves = p->set[D_BAR].integer / 2;
    const double  ratio = 8 * (double)(h + 1) / (double)p->H;
    (void)par;
    for (int64_t i = 0; i < n; i++)
        b[i] = -(double)waves;
    for (int64_t w = 1; w <= waves; w++) {
        const pe_frequency omega = pe_frequency_of(pow(10000.0, -(double)w / (double)waves));
        for (int64_t i = 0; i < n; i++) {
            double c, s;
            pe_cos_sin((double)(t0 + i), omega, &c, &s);
            b[i] += c;
        }
    }
    for (int64_t i = 0; i < n; i++)
        b[i] /= ratio;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale = 1.0 / sqrt((double)p->D);
    s->bias  = (pe_by_distance){.fill = fill};
}

/* For each distance the sum of cosines, three for each wave, which all heads share; each divides it. */
static double operations(const pe_problem *p)
{
    const double waves = (double)(p->set[D_BAR].integer / 2);
    return (double)(p->Lq + p->Lk - 1) * (3 * waves + 1 + (double)p->H);
}

const pe_encoding pe_sandwich = {
    .info =
        {
            .name          = "sandwich",
            .place         = POSENC_SCORE,
            .title         = "bias from the inner products of sinusoids",
            .paper         = "arXiv:2212.10356",
            .models        = "",
            .pictures      = "bias,mass",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .by_distance   = 1,
        },
    .examples   = examples,
    .operations = operations,
    .check      = check,
    .terms      = terms,
};
