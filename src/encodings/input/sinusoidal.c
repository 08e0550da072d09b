/* SPDX-License-Identifier: MIT */
/*
 * Sinusoidal: sines and cosines of the position
 *
 * Place    input: y = x + p(P)
 * Formula  omega_k = base^(-k/N), k = 0 .. n-1; every frequency gives sin(P*omega_k) and cos(P*omega_k)
 * Learns   nothing
 * Source   Vaswani et al. 2017, arXiv:1706.03762, section 3.5; the presets name whose code
 *
 * One formula, four tables that are no copies of each other:
 *   preset          N          channels                          odd dim
 *   vaswani         dim/2      sin cos sin cos ... (the paper)   the last frequency gives its sine alone
 *   t2t             dim/2 - 1  all sines, then all cosines       a zero channel at the end
 *   transformer_xl  dim/2      all sines, then all cosines       refused
 *   fairseq         as t2t; a range starts at row padding_idx + 1, and row padding_idx is zero
 * The last frequencies of N = dim/2 and N = dim/2 - 1 differ by 3.5 % at dim = 512. Where N would be 0 the only
 * frequency is 1. Angles are exact for positions up to 2^31 and for real positions (base/angle.h).
 */
#include "encodings/encoding.h"

#include <math.h>
#include <string.h>

#include "base/angle.h"

enum { PRESET, DIM, BASE, PADDING_IDX }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"preset", "word", "vaswani", "vaswani|t2t|transformer_xl|fairseq",
     "whose table: frequencies, order of channels"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"base", "real", "10000", "1<..", "ratio of the slowest to the fastest wavelength, nearly"},
    {"padding_idx", "integer", "", "0..", "position whose row is zero; fairseq: 1 if absent, others: none"},
    {0},
};
static_assert(PE_ROWS(settings) == PADDING_IDX + 1, "ORDER settings");

enum { VASWANI, T2T, TRANSFORMER_XL, FAIRSEQ }; /* ORDER the range of `preset` */

/* What a preset means. */
static const struct {
    int halves;   /* all sines, then all cosines */
    int one_less; /* N = n - 1 */
} forms[] = {{0, 0}, {1, 1}, {1, 0}, {1, 1}};
static_assert(sizeof forms / sizeof *forms == FAIRSEQ + 1, "ORDER the range of `preset`");

static const posenc_example examples[] = {
    {"dim=4", 1, 0, 0, 0.8414709848078965, "sin 1"},
    {"dim=4", 1, 1, 0, 0.5403023058681398, "cos 1"},
    {"dim=4", 3, 2, 0, 0.02999550020249566, "sin 0.03: the second pair turns 100 times slower"},
    {"dim=4 preset=t2t", 1, 2, 0, 0.5403023058681398, "cos 1 comes after both sines"},
    {"dim=4 preset=t2t", 1, 1, 0, 9.999999983333334e-05, "sin 1e-4: one pair fewer between 1 and 1/base"},
    {"dim=4 preset=fairseq", 1, 0, 0, 0, "the row of padding_idx is zero"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t dim = p->set[DIM].integer;
    if (p->set[PRESET].integer == TRANSFORMER_XL && dim % 2)
        return pe_fail(err, POSENC_SETTING, "sinusoidal: preset=transformer_xl needs an even dim, not %lld",
                       (long long)dim);
    return POSENC_OK;
}

static int64_t width(const pe_problem *p)
{
    return p->set[DIM].integer;
}

static int has_padding(const pe_problem *p)
{
    return p->set[PADDING_IDX].given || p->set[PRESET].integer == FAIRSEQ;
}

static double padding(const pe_problem *p)
{
    return p->set[PADDING_IDX].given ? (double)p->set[PADDING_IDX].integer : 1.0;
}

static double first(const pe_problem *p)
{
    return p->set[PRESET].integer == FAIRSEQ ? padding(p) + 1 : 0;
}

static pe_frequency frequency(const pe_problem *p, int64_t k)
{
    const int64_t dim = p->set[DIM].integer;
    const double  N   = forms[p->set[PRESET].integer].one_less ? (double)(dim / 2 - 1) : (double)dim / 2;
    return pe_frequency_of(N > 0 ? pow(p->set[BASE].real, -(double)k / N) : 1.0);
}

/* One frequency for all rows at a time: pow is paid once. */
static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer, halves = forms[p->set[PRESET].integer].halves;
    const int64_t count = halves ? dim / 2 : (dim + 1) / 2;
    (void)par;
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int64_t k = 0; k < count; k++) {
        const pe_frequency w  = frequency(p, k);
        const int64_t      at = halves ? k : 2 * k, beside = halves ? k + dim / 2 : 2 * k + 1;
        for (int64_t s = 0; s < n; s++) {
            double c, sine;
            if (has_padding(p) && pos[s] == padding(p))
                continue;
            pe_cos_sin(pos[s], w, &c, &sine);
            out[s * dim + at] = sine;
            if (beside < dim)
                out[s * dim + beside] = c;
        }
    }
}

const pe_encoding pe_sinusoidal = {
    .info =
        {
            .name          = "sinusoidal",
            .place         = POSENC_INPUT,
            .title         = "sines and cosines of absolute positions",
            .paper         = "arXiv:1706.03762",
            .models        = "Transformer, fairseq, Marian, Whisper's encoder",
            .pictures      = "heatmap,similarity",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
        },
    .examples = examples,
    .check    = check,
    .width    = width,
    .first    = first,
    .rows     = rows,
};
