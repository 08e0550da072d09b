/* SPDX-License-Identifier: MIT */
/*
 * Time step: the noise level of a diffusion model as sines and cosines
 *
 * Place    input: y = x + p(t); t may be any real number
 * Formula  p(t)_k = sin(scale*t*omega_k), p(t)_{n+k} = cos(scale*t*omega_k),
 *          omega_k = max_period^(-k/(n - shift)),
 *          n = dim/2 cut to an integer, k = 0 .. n-1; a zero channel at the end where dim is odd
 * Learns   nothing
 * Source   Ho et al. 2020 (DDPM), arXiv:2006.11239; Dhariwal and Nichol 2021 (ADM), arXiv:2105.05233;
 *          diffusers: models/embeddings.py, get_timestep_embedding
 *
 * Two families share this code: DDPM has sines first and shift 1; ADM, GLIDE and Stable Diffusion have
 * cosines first (flip_sin_to_cos) and shift 0. The flip swaps the halves before the zero channel is added,
 * which so stays last. A shift of n makes the denominator 0, where the source gives no number: the first
 * frequency is then 1 and the others 0, which is the limit from below. A shift beyond n would make
 * frequencies grow without a bound and is refused.
 *
 * angles=float32 makes them as diffusers does, each step rounded: exp((k * -ln max_period) / (n - shift)),
 * the product with t, that with scale. At t = 999 angles differ by up to 1e-4 from the exact ones.
 */
#include "encodings/encoding.h"

enum { DIM, FLIP, SHIFT, MAX_PERIOD, SCALE, ANGLES }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"flip_sin_to_cos", "flag", "no", "yes|no", "cosines before sines (ADM, Stable Diffusion)"},
    {"downscale_freq_shift", "real", "1", "0..",
     "what is subtracted from dim/2 in the denominator: 1 in DDPM, 0 in ADM; may be fractional"},
    {"max_period", "real", "10000", "0<..", "ratio of the longest to the shortest wavelength, nearly"},
    {"scale", "real", "1", "", "factor of the time step, here and not of any score"},
    {"angles", "word", "exact", "exact|float32",
     "exact products, or frequencies and products rounded to float as in diffusers"},
    {0},
};
static_assert(PE_ROWS(settings) == ANGLES + 1, "ORDER settings");

static const posenc_example examples[] = {
    {"dim=4", 1, 0, 0, 0.8414709848078965, "sin 1"},
    {"dim=4", 1, 1, 0, 9.999999983333334e-05, "sin 1e-4: shift 1 makes the last frequency 1/max_period"},
    {"dim=4 downscale_freq_shift=0", 1, 1, 0, 0.009999833334166664, "sin 0.01"},
    {"dim=5 flip_sin_to_cos=yes", 1, 0, 0, 0.5403023058681398, "cos 1 comes first"},
    {"dim=5 flip_sin_to_cos=yes", 1, 4, 0, 0, "the odd channel is zero and stays last"},
    {"dim=2", 1, 0, 0, 0.8414709848078965, "a denominator of 0 leaves the frequency 1"},
    {"dim=4 downscale_freq_shift=2", 1, 3, 0, 1, "and the others 0"},
    {"dim=4 downscale_freq_shift=0.5 max_period=8", 1, 1, 0, 0.24740395925452294, "sin 8^(-1/1.5) = sin 1/4"},
    {"dim=2 scale=1000", 1, 0, 0, 0.8268795405320025, "sin 1000"},
    {"dim=4 downscale_freq_shift=0 angles=float32", 59, 1, 0, 0.556361001120497,
     "sin of 59 * 0.01 as a float"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t half = p->set[DIM].integer / 2;
    if (half > 1 && p->set[SHIFT].real > (double)half) /* a single frequency is 1 whatever the shift */
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "timestep: downscale_freq_shift=%g exceeds half of dim=%lld; it must be 0 to %lld",
                       p->set[SHIFT].real, (long long)p->set[DIM].integer, (long long)half);
    return POSENC_OK;
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t  dim = p->set[DIM].integer, half = dim / 2, flip = p->set[FLIP].integer;
    const int      is_single = p->set[ANGLES].integer == 1;
    const pe_waves x         = {.pos       = pos,
                                .n         = n,
                                .step      = 1,
                                .width     = dim,
                                .blank     = NAN,
                                .is_single = is_single,
                                .times     = p->set[SCALE].real};
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int64_t k = 0; k < half; k++) {
        const double period = p->set[MAX_PERIOD].real, N = (double)half - p->set[SHIFT].real;
        const double w = is_single ? pe_angle_base_frequency_single(period, (double)k, N, 1)
                                   : p->set[SCALE].real * pe_angle_base_frequency(period, (double)k, N);
        pe_angle_wave_fill(&x, w, flip ? k + half : k, flip ? k : k + half, 1, out);
    }
}

const pe_encoding pe_timestep = {
    .info.name     = "timestep",
    .info.place    = POSENC_PLACE_INPUT,
    .info.title    = "sines and cosines of a diffusion time step",
    .info.formula  = "ω_k = period^{−k / (n − shift)} , n = ⌊ d / 2 ⌋\n"
                     "p_k = sin(t ω_k) , p_{n + k} = cos(t ω_k)",
    .info.symbols  = "ω_k: frequency k, radians per step\n"
                     "k: a frequency, counted from 0\n"
                     "n: how many frequencies there are\n"
                     "t: the time step, any real number\n"
                     "period: setting max_period\n"
                     "shift: setting downscale_freq_shift: 1 where the last frequency is 1 / period itself",
    .info.paper    = "arXiv:2006.11239",
    .info.models   = "DDPM, ADM, GLIDE, Stable Diffusion",
    .info.beyond   = "Computed at any time, but a model knows only the range of its training.",
    .info.pictures = "heatmap,curves,similarity",
    .examples      = examples,
    .operations    = "1.5*Lq*dim",
    .check         = check,
    .input.width   = "dim",
    .input.rows    = rows,
    PE_SETTINGS(settings),
};
