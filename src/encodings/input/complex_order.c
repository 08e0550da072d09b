/* SPDX-License-Identifier: MIT */
/*
 * Complex order: a word is a wave, its position the phase
 *
 * Place    input: a row [re | im] of 2 dim numbers, in place of the word's embedding (give posenc_rows no x)
 * Formula  f(w, P)[m] = r[w,m] exp(i phi),   phi = omega[w,m] (position_start + P) + theta[w,m]
 *          re = r cos phi, im = r sin phi
 * Learns   r [vocab, dim], omega, theta [vocab, dim]
 * Source   Wang et al. 2020, arXiv:1912.12333, equation 6; iclr-complex-order/complex-order
 *
 * The only form in which moving a word by n multiplies it by a bounded factor that depends only on n. A
 * position has two coordinates, (id of the word, P); a plain range has no words and shows only word `word`.
 * omega may be shared by all words, by all channels of a word, or be a single number, which are three other
 * models: with one omega per channel and theta = 0 this is RoPE's rotation, applied to the embedding.
 * theta=zero was the authors' best.
 *
 * The released programs differ from the paper and from each other: positions run backwards in text
 * classification and from 1 in language modelling (position_start=1), omega starts as 10000^(-2
 * floor(m/2)/dim) for all words in PyTorch, as used here, and as id * 10000^(-2m/dim) in TensorFlow. Omega
 * without channels starts as that of channel 0, which is 1.
 */
#include "encodings/encoding.h"

enum {
    VOCAB,
    DIM,
    POSITION_START,
    OMEGA_PER_WORD,
    OMEGA_PER_DIM,
    THETA,
    BASE,
    SIGMA,
    WORD
}; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"vocab", "integer", "256", "1..", "words"},
    {"dim", "integer", "d_model/2", "1..",
     "complex numbers per word; a row has twice as many numbers, so an odd d_model is refused"},
    {"position_start", "real", "0", "", "what is added to positions"},
    {"omega_per_word", "flag", "yes", "yes|no", "every word has frequencies of its own"},
    {"omega_per_dim", "flag", "yes", "yes|no", "every channel has a frequency of its own"},
    {"theta", "word", "learned", "learned|zero", "the phase at position 0"},
    {"base", "real", "10000", "1<..", "of the frequencies that omega starts with"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial r"},
    {"word", "integer", "0", "0..", "the word whose row a range of positions shows"},
    {0},
};
static_assert(PE_ROWS(settings) == WORD + 1, "ORDER settings");

enum { LEARNED, ZERO }; /* ORDER the range of `theta` */

enum { R, OMEGA, PHASE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"r", "vocab,dim", "normal(0, sigma)", "amplitudes: the embedding itself", 1},
    {"omega", "vocab if omega_per_word,dim if omega_per_dim", "base^(-2 floor(m/2)/dim)",
     "frequencies, radians per position", 1},
    {"theta", "vocab,dim", "zeros", "phases at position 0", 1},
    {0},
};
static_assert(PE_ROWS(params) == PHASE + 1, "ORDER params");

/* r, omega and theta are 0, 1, 2, ... in memory order. */
static const posenc_example examples[] = {
    {"vocab=3 dim=2 word=1 theta=zero", 0, 0, 0, 2, "r of word 1, channel 0: all real at position 0"},
    {"vocab=3 dim=2 word=1 theta=zero", 1, 2, 0, 1.8185948536513634,
     "2 sin 2: the imaginary half comes second"},
    {"vocab=3 dim=2 word=1", 1, 3, 0, -0.8382464945967776, "3 sin(3 + 3)"},
    {"vocab=3 dim=2 word=2 theta=zero omega_per_word=no position_start=1", 2, 1, 0, -4.9499624830022270,
     "5 cos(1 * (1 + 2))"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[WORD].integer >= p->set[VOCAB].integer)
        return pe_fail(err, POSENC_ERROR_SETTING, "complex_order: word=%lld must be below vocab=%lld",
                       (long long)p->set[WORD].integer, (long long)p->set[VOCAB].integer);
    return POSENC_OK;
}

static int has(const pe_value *set, int index)
{
    return index != PHASE || set[THETA].integer == LEARNED;
}

static int coordinates(const pe_value *set)
{
    return 2;
}

static void locate(const pe_problem *p, int64_t s, double at[])
{
    at[0] = (double)p->set[WORD].integer;
    at[1] = (double)s;
}

/* Where omega of a word's channel m is stored. */
static int64_t omega_at(const pe_problem *p, int64_t word, int64_t m)
{
    const int64_t across = p->set[OMEGA_PER_DIM].integer ? p->set[DIM].integer : 1;
    return (p->set[OMEGA_PER_WORD].integer ? word * across : 0) + (across > 1 ? m : 0);
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const int64_t dim = p->set[DIM].integer, m = p->set[OMEGA_PER_DIM].integer ? i % dim : 0;
    if (index == R)
        return p->set[SIGMA].real * pe_random_normal(rng);
    return index == OMEGA ? pow(p->set[BASE].real, -2.0 * (double)(m / 2) / (double)dim) : 0;
}

/* Channels of a word at a time. */
enum { CHANNELS = 64 };

/* Some channels of one word at one position. */
typedef struct waves {
    int64_t n, at, omega[CHANNELS]; /* at: of the first one in r and theta; in omega */
    double  position, cosine[CHANNELS], sine[CHANNELS];
} waves;

/* Cosines and sines of the exact angles position * w. */
static void find_angles(const pe_problem *p, double position, const double w[], int64_t n, double cosine[],
                        double sine[])
{
    double places[CHANNELS], k[2 * CHANNELS];
    for (int64_t i = 0; i < n; i++) {
        const pe_frequency f = pe_angle_frequency(w[i]);
        places[i]            = position;
        k[2 * i]             = f.k_hi;
        k[2 * i + 1]         = f.k_lo;
    }
    p->kernels->cosines(places, k, 1, cosine, sine, n);
}

/* The two angles are added as numbers of length 1. */
static void add_phases(const pe_problem *p, const double theta[], waves *v)
{
    double c[CHANNELS], s[CHANNELS];
    find_angles(p, 1, theta, v->n, c, s);
    for (int64_t i = 0; i < v->n; i++) {
        const double cosine = v->cosine[i];
        v->cosine[i]        = cosine * c[i] - v->sine[i] * s[i];
        v->sine[i]          = v->sine[i] * c[i] + cosine * s[i];
    }
}

static void find_waves(const pe_problem *p, const double *const par[], const double place[2], int64_t m0,
                       waves *v)
{
    const int64_t word = (int64_t)place[0], dim = p->set[DIM].integer;
    double        omega[CHANNELS];
    v->n        = dim - m0 < CHANNELS ? dim - m0 : CHANNELS;
    v->at       = word * dim + m0;
    v->position = place[1] + p->set[POSITION_START].real;
    for (int64_t i = 0; i < v->n; i++) {
        v->omega[i] = omega_at(p, word, m0 + i);
        omega[i]    = par[OMEGA][v->omega[i]];
    }
    find_angles(p, v->position, omega, v->n, v->cosine, v->sine);
    if (p->set[THETA].integer == LEARNED)
        add_phases(p, par[PHASE] + v->at, v);
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer;
    waves         v;
    for (int64_t s = 0; s < n; s++)
        for (int64_t m0 = 0; m0 < dim; m0 += CHANNELS) {
            double *re = out + 2 * s * dim + m0, *im = re + dim;
            find_waves(p, par, pos + 2 * s, m0, &v);
            for (int64_t i = 0; i < v.n; i++) {
                re[i] = par[R][v.at + i] * v.cosine[i];
                im[i] = par[R][v.at + i] * v.sine[i];
            }
        }
}

/* dr += dre cos + dim sin;  dphi = r (dim cos - dre sin);  dtheta += dphi;  domega += (position_start + P)
   dphi */
static void waves_back(const double *const par[], const waves *v, const double dre[], const double dim[],
                       double *const dpar[])
{
    for (int64_t i = 0; i < v->n; i++) {
        const double dphi = par[R][v->at + i] * (dim[i] * v->cosine[i] - dre[i] * v->sine[i]);
        pe_add(dpar, R, v->at + i, dre[i] * v->cosine[i] + dim[i] * v->sine[i]);
        pe_add(dpar, OMEGA, v->omega[i], v->position * dphi);
        pe_add(dpar, PHASE, v->at + i, dphi);
    }
}

static void rows_back(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[])
{
    const int64_t dim = p->set[DIM].integer;
    waves         v;
    for (int64_t s = 0; s < n; s++)
        for (int64_t m0 = 0; m0 < dim; m0 += CHANNELS) {
            const double *dre = dout + 2 * s * dim + m0;
            find_waves(p, par, pos + 2 * s, m0, &v);
            waves_back(par, &v, dre, dre + dim, dpar);
        }
}

const pe_encoding pe_complex_order = {
    .info.name     = "complex_order",
    .info.place    = POSENC_PLACE_INPUT,
    .info.title    = "words as waves: complex-order embedding",
    .info.formula  = "f(w , P)_m = r_{w,m} e^{i (ω_{w,m} P + θ_{w,m})}",
    .info.symbols  = "f: the row of a word at a position, complex numbers\n"
                     "w: the word\n"
                     "m: a complex number of the row, counted from 0\n"
                     "r_{w,m}: its amplitude, learned: the embedding of the word\n"
                     "ω_{w,m}: its frequency, radians per position, learned\n"
                     "θ_{w,m}: its phase at position 0, learned\n"
                     "i: the imaginary unit",
    .info.paper    = "arXiv:1912.12333",
    .info.models   = "research",
    .info.beyond   = "Phases are computed at any position; that a model works there has not been shown.",
    .info.pictures = "heatmap,curves,similarity",
    .info.by_word  = 1,
    .model         = "sigma=0.5",
    /* omega P + theta, its cosine and sine, both times r. */
    .operations      = "Lq*dim*(6-theta)",
    .check           = check,
    .has             = has,
    .init            = init,
    .input.width     = "2*dim",
    .coordinates     = coordinates,
    .input.locate    = locate,
    .input.ids       = "vocab",
    .input.rows      = rows,
    .input.rows_back = rows_back,
    PE_TABLES(settings, params, examples),
};
