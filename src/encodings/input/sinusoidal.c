/* SPDX-License-Identifier: MIT */
/*
 * Sinusoidal: sines and cosines of the position
 *
 * Place    input: y = x + a * p(P)
 * Formula  omega_k = base^(-k/N), k = 0 .. n-1; every frequency gives sin(P*omega_k) and cos(P*omega_k)
 * Learns   nothing; with scaled=yes the amplitude a, one number, at first dim^(-1/2) (x-transformers, whose
 *          table is that of preset=transformer_xl)
 * Source   Vaswani et al. 2017, arXiv:1706.03762, section 3.5; the presets name whose code
 *
 * One formula, six tables that are no copies of each other:
 *   preset          N          channels                         odd dim
 *   vaswani         dim/2      sin cos sin cos ... (the paper)  the last frequency gives only its sine
 *   t2t             dim/2 - 1  all sines, then all cosines      a zero channel at the end
 *   transformer_xl  dim/2      all sines, then all cosines      refused
 *   fairseq         as t2t; a range starts at row padding_idx + 1, and row padding_idx is zero
 *   marian          dim/2 - 1  all sines, then all cosines      the cosine of omega_0 again; N is no integer
 *   tutorial003     dim/2      channel c: sine of omega_c (c even) or cosine (c odd); row 0 is zero
 * The last is a program in a tutorial, fault included: the exponent counts channels where the paper
 * counts pairs, so no sine has a cosine of its own frequency and no linear map takes row P to row P + t any
 * more; frequencies fall to base^-2 nearly. In the others the last frequencies of N = dim/2 and N = dim/2 - 1
 * differ by 3.5 % at dim = 512. Where N is 0 the only frequency is 1. Angles are exact for positions up to
 * 2^31 and for real positions (base/angle.h).
 *
 * Models were trained with rougher angles: angles=float32 makes frequencies and products as the presets'
 * Python code does, exp(k * -(ln base / N)) rounded at each step, 1 / base^(k/N) of transformer_xl
 * (base^-(k/N) where scaled). At position 1000 the two differ by up to 1e-4. The tables of marian and
 * tutorial003 are made in double.
 *
 * Why geometric, why sine and cosine? `spacing` keeps the first and the last frequency and spreads the others
 * by omega_last + (1 - omega_last) * (1 - k/(n-1))^e, e = 1 linear, 2 quadratic; channels=sin leaves the
 * cosine channels zero, channels=cos the sine ones, with the same frequencies in the same places.
 */
#include "encodings/encoding.h"

enum { PRESET, DIM, BASE, PADDING_IDX, SPACING, CHANNELS, SCALED, ANGLES }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"preset", "word", "vaswani", "vaswani|t2t|transformer_xl|fairseq|marian|tutorial003",
     "whose table: frequencies, order of channels"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"base", "real", "10000", "1<..", "ratio of the longest to the shortest wavelength, nearly"},
    {"padding_idx", "integer", "", "0..",
     "position whose row is zero; if absent fairseq has 1, tutorial003 0, the others none"},
    {"spacing", "word", "geometric", "geometric|linear|quadratic",
     "how the frequencies lie between the first and the last"},
    {"channels", "word", "both", "both|sin|cos",
     "sin leaves the channels of the cosines zero, cos those of the sines"},
    {"scaled", "flag", "no", "yes|no", "all rows times one learned number (x-transformers)"},
    {"angles", "word", "exact", "exact|float32",
     "exact products, or frequencies and products rounded as the preset's Python code does"},
    {0},
};
static_assert(PE_ROWS(settings) == ANGLES + 1, "ORDER settings");

enum { VASWANI, T2T, TRANSFORMER_XL, FAIRSEQ, MARIAN, TUTORIAL003 }; /* ORDER the range of `preset` */
enum { GEOMETRIC, LINEAR, QUADRATIC };                               /* ORDER the range of `spacing` */
enum { BOTH, SINES, COSINES };                                       /* ORDER the range of `channels` */
enum { EXACT, FLOAT32 };                                             /* ORDER the range of `angles` */

/* What a preset means. */
static const struct {
    enum { PAIRS, HALVES, COLUMNS } layout;
    int whole;    /* dim/2 is cut to an integer */
    int one_less; /* N is one less than dim/2 */
    int blank;    /* position of the zero row; -1: none */
} forms[] = {{PAIRS, 0, 0, -1}, {HALVES, 1, 1, -1}, {HALVES, 1, 0, -1},
             {HALVES, 1, 1, 1}, {HALVES, 0, 1, -1}, {COLUMNS, 0, 0, 0}};
static_assert(sizeof forms / sizeof *forms == TUTORIAL003 + 1, "ORDER the range of `preset`");

enum { AMPLITUDE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"amplitude", "", "dim^(-1/2)", "factor of every row; only with scaled=yes", 1},
    {0},
};
static_assert(PE_ROWS(params) == AMPLITUDE + 1, "ORDER params");

static const posenc_example examples[] = {
    {"dim=4", 1, 0, 0, 0.8414709848078965, "sin 1"},
    {"dim=4", 1, 1, 0, 0.5403023058681398, "cos 1"},
    {"dim=4", 3, 2, 0, 0.02999550020249566, "sin 0.03: the second pair rotates 100 times slower"},
    {"dim=4 preset=t2t", 1, 2, 0, 0.5403023058681398, "cos 1 comes after both sines"},
    {"dim=4 preset=t2t", 1, 1, 0, 9.999999983333334e-05, "sin 1e-4: one pair fewer between 1 and 1/base"},
    {"dim=4 preset=fairseq", 1, 0, 0, 0, "the row of padding_idx is zero"},
    {"dim=7 preset=marian", 1, 6, 0, 0.5403023058681398, "the odd channel is cos 1 once more"},
    {"dim=2 preset=t2t", 1, 0, 0, 0.8414709848078965, "a denominator of 0 leaves the frequency 1"},
    {"dim=4 preset=tutorial003", 0, 1, 0, 0, "row 0 is zero: its cosines are not 1"},
    {"dim=4 preset=tutorial003", 1, 1, 0, 0.9999500004166653,
     "cos 0.01, not cos 1: channel 1 has exponent 2/4"},
    {"dim=6 spacing=linear base=8", 1, 2, 0, 0.5850972729404622, "sin 0.625, half way between 1 and 1/4"},
    {"dim=6 spacing=quadratic base=8", 1, 2, 0, 0.42367625720393803, "sin 0.4375: 1/4 + 3/4 * (1/2)^2"},
    {"dim=4 channels=sin", 1, 1, 0, 0, "no cosine"},
    {"dim=4 channels=cos", 1, 0, 0, 0, "no sine"},
    {"dim=4 channels=cos", 1, 1, 0, 0.5403023058681398, "cos 1 where it was"},
    {"dim=4 angles=float32", 59, 2, 0, 0.556361001120497, "sin of 59 * 0.01 as a float"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t dim = p->set[DIM].integer, preset = p->set[PRESET].integer;
    if (preset == TRANSFORMER_XL && dim % 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "sinusoidal: preset=transformer_xl needs an even dim, not %lld", (long long)dim);
    if (p->set[ANGLES].integer == FLOAT32 &&
        (preset == MARIAN || preset == TUTORIAL003 || p->set[SPACING].integer != GEOMETRIC))
        return pe_fail(
            err, POSENC_ERROR_SETTING,
            "sinusoidal: angles=float32 is of the presets vaswani, t2t, transformer_xl and fairseq "
            "with spacing=geometric; others are made in double: choose angles=exact");
    return POSENC_OK;
}

static int has(const pe_value *set, int index)
{
    return index != AMPLITUDE || set[SCALED].integer;
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    return 1 / sqrt((double)p->set[DIM].integer);
}

/* The position whose row is zero, NAN if there is none. */
static double blank(const pe_problem *p)
{
    const int of_preset = forms[p->set[PRESET].integer].blank;
    if (p->set[PADDING_IDX].given)
        return (double)p->set[PADDING_IDX].integer;
    return of_preset < 0 ? (double)NAN : (double)of_preset;
}

static double first(const pe_problem *p)
{
    return p->set[PRESET].integer == FAIRSEQ ? blank(p) + 1 : 0;
}

/* How many frequencies there are. */
static int64_t count(const pe_problem *p)
{
    const int64_t dim   = p->set[DIM].integer;
    const int64_t all[] = {(dim + 1) / 2, dim / 2, dim}; /* ORDER layouts */
    return all[forms[p->set[PRESET].integer].layout];
}

/* As Python makes it: transformer_xl by a power of floats, the others by an exponential. */
static double frequency_in_float(const pe_problem *p, int64_t k, double N)
{
    const double base = (float)p->set[BASE].real, exponent = (float)((double)k / N);
    if (p->set[PRESET].integer != TRANSFORMER_XL)
        return pe_angle_base_frequency_single(p->set[BASE].real, (double)k, N, 0);
    return p->set[SCALED].integer ? (float)pow(base, -exponent) : 1 / (float)pow(base, exponent);
}

static double frequency(const pe_problem *p, int64_t k)
{
    const int64_t preset = p->set[PRESET].integer, dim = p->set[DIM].integer, last = count(p) - 1;
    const double  half = forms[preset].whole ? (double)(dim / 2) : (double)dim / 2,
                 N = half - forms[preset].one_less, base = p->set[BASE].real;
    if (p->set[ANGLES].integer == FLOAT32)
        return frequency_in_float(p, k, N);
    if (p->set[SPACING].integer == GEOMETRIC || last < 1)
        return pe_angle_base_frequency(base, (double)k, N);
    const double lowest = pe_angle_base_frequency(base, (double)last, N),
                 share  = (double)(last - k) / (double)last;
    return lowest + (1 - lowest) * (p->set[SPACING].integer == LINEAR ? share : share * share);
}

/* Where frequency k goes. */
typedef struct place {
    int64_t sine, cosine; /* -1: nowhere */
} place;

static place place_of(const pe_problem *p, int64_t k)
{
    const place all[] = {{2 * k, 2 * k + 1},
                         {k, k + p->set[DIM].integer / 2},
                         {k % 2 ? -1 : k, k % 2 ? k : -1}}; /* ORDER layouts */
    place       at    = all[forms[p->set[PRESET].integer].layout];
    if (p->set[CHANNELS].integer == SINES)
        at.cosine = -1;
    if (p->set[CHANNELS].integer == COSINES)
        at.sine = -1;
    return at;
}

/* Marian's odd channel: a cosine more than there are sines. */
static int64_t odd_channel(const pe_problem *p)
{
    const int64_t dim = p->set[DIM].integer;
    return p->set[PRESET].integer == MARIAN && dim % 2 && p->set[CHANNELS].integer != SINES ? dim - 1 : -1;
}

static pe_waves waves(const pe_problem *p, const double pos[], int64_t n)
{
    return (pe_waves){.pos       = pos,
                      .n         = n,
                      .step      = 1,
                      .width     = p->set[DIM].integer,
                      .blank     = blank(p),
                      .is_single = p->set[ANGLES].integer == FLOAT32};
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const pe_waves x    = waves(p, pos, n);
    const double   size = p->set[SCALED].integer ? par[AMPLITUDE][0] : 1;
    memset(out, 0, (size_t)(n * x.width) * sizeof *out);
    for (int64_t k = 0; k < count(p); k++)
        pe_angle_wave_fill(&x, frequency(p, k), place_of(p, k).sine, place_of(p, k).cosine, size, out);
    pe_angle_wave_fill(&x, 1, -1, odd_channel(p), size, out);
}

/* Tables of sines and cosines only; the odd channels of halves have rules of their own. */
static int64_t plain_waves(const pe_problem *p, double w[], pe_wave_form *form)
{
    const int64_t dim = p->set[DIM].integer, layout = forms[p->set[PRESET].integer].layout;
    const int     is_plain = !p->set[SCALED].integer && !p->set[CHANNELS].integer && !p->set[ANGLES].integer;
    if (!is_plain || layout == COLUMNS || (layout == HALVES && dim % 2))
        return 0;
    for (int64_t k = 0; k < count(p); k++)
        w[k] = frequency(p, k);
    *form = (pe_wave_form){place_of(p, 0).sine, place_of(p, 0).cosine, layout == PAIRS ? 2 : 1, blank(p)};
    return count(p);
}

/* y = a * p(P): da is the sum of dy * p */
static void rows_back(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[])
{
    const pe_waves x = waves(p, pos, n);
    if (!p->set[SCALED].integer || !dpar[AMPLITUDE])
        return;
    for (int64_t k = 0; k < count(p); k++)
        dpar[AMPLITUDE][0] +=
            pe_angle_wave_fold(&x, frequency(p, k), place_of(p, k).sine, place_of(p, k).cosine, dout);
    dpar[AMPLITUDE][0] += pe_angle_wave_fold(&x, 1, -1, odd_channel(p), dout);
}

/* An angle for each frequency, and what is made of it. */
static double count_operations(const pe_problem *p)
{
    double all = p->set[SCALED].integer ? (double)p->set[DIM].integer : 0;
    for (int64_t k = 0; k < count(p); k++)
        all += 1 + (place_of(p, k).sine >= 0) + (place_of(p, k).cosine >= 0);
    return (double)p->Lq * all;
}

const pe_encoding pe_sinusoidal = {
    .info.name       = "sinusoidal",
    .info.place      = POSENC_PLACE_INPUT,
    .info.title      = "sines and cosines of absolute positions",
    .info.formula    = "ω_k = base^{−2 k / d}\n"
                       "p_{2 k} = sin(P ω_k) , p_{2 k + 1} = cos(P ω_k)",
    .info.symbols    = "ω_k: frequency k, radians per position\n"
                       "k: a frequency, counted from 0: a pair of channels",
    .info.paper      = "arXiv:1706.03762",
    .info.models     = "Transformer, fairseq, Marian, Whisper's encoder",
    .info.beyond     = "Computed at any position, but a model trained with it breaks beyond its length.",
    .info.pictures   = "heatmap,curves,similarity,similarity2d,onehot",
    .count           = count_operations,
    .check           = check,
    .init            = init,
    .has             = has,
    .input.width     = "dim",
    .input.first     = first,
    .input.rows      = rows,
    .input.waves     = plain_waves,
    .input.rows_back = rows_back,
    PE_TABLES(settings, params, examples),
};
