/* SPDX-License-Identifier: MIT */
/*
 * Sinusoidal in N dimensions: each axis of a grid has its own channels
 *
 * Place    input: y = x + p(P_1, .., P_N)
 * Formula  omega_k = base^(-k/D);
 *          axis a gives sin(P_a*omega_k) and cos(P_a*omega_k) to its own block of channels
 * Learns   nothing
 * Source   tatp22/multidim-positional-encoding (torch_encodings.py); tensor2tensor:
 *          layers/common_attention.py, add_timing_signal_nd
 *
 * Two rules for dividing dim channels among N axes:
 *   preset  frequencies m per axis  D      block of an axis             the rest
 *   tatp22  ceil(dim/(2N))          m      sin cos sin cos ...          cut off at the end of the last axis
 *   t2t     dim/(2N), an integer    m - 1  all sines, then all cosines  channels that remain are zero
 * With one frequency t2t divides by 0; the frequency is then 1. Positions are coordinates, any real numbers,
 * in an array [L,N]; a range numbers the tokens of the grid `shape`, the last axis fastest.
 */
#include "encodings/encoding.h"

enum { PRESET, SHAPE, DIM, BASE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"preset", "word", "tatp22", "tatp22|t2t", "whose rule for dividing the channels"},
    {"shape", "list", "L", "1..", "sizes of the grid, one per axis: 2x3x4"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"base", "real", "10000", "1<..", "ratio of the slowest to the fastest wavelength, nearly"},
    {0},
};
static_assert(PE_ROWS(settings) == BASE + 1, "ORDER settings");

enum { TATP22, T2T }; /* ORDER the range of `preset` */

/* Token 23 of a grid of 2 x 3 x 4 is (1,2,3). */
static const posenc_example examples[] = {
    {"dim=12 shape=2x3x4", 23, 0, 0, 0.8414709848078965, "sin 1: the first axis"},
    {"dim=12 shape=2x3x4", 23, 4, 0, 0.9092974268256817, "sin 2: the second"},
    {"dim=12 shape=2x3x4", 23, 8, 0, 0.1411200080598672, "sin 3: the third"},
    {"dim=12 shape=2x3x4", 23, 10, 0, 0.02999550020249566, "sin 0.03: D = 2"},
    {"dim=10 shape=2x3x4", 23, 9, 0, -0.9899924966004454,
     "cos 3: two channels of the third axis are cut off"},
    {"dim=13 shape=2x3x4 preset=t2t", 23, 2, 0, 0.5403023058681398, "cos 1 after both sines"},
    {"dim=13 shape=2x3x4 preset=t2t", 23, 9, 0, 0.0002999999955, "sin 3e-4: D = 1"},
    {"dim=13 shape=2x3x4 preset=t2t", 23, 12, 0, 0, "a channel remains"},
    {"dim=6 shape=2x3x4 preset=t2t", 23, 4, 0, 0.1411200080598672, "D = 0 leaves the frequency 1"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[SHAPE].real <= 0x1p48)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING, "sinusoidal_nd: shape has %.3g places; a grid has at most 2^48",
                   p->set[SHAPE].real);
}

static int coordinates(const pe_value *set)
{
    return set[SHAPE].count;
}

static void locate(const pe_problem *p, int64_t s, double at[])
{
    const pe_value *shape = &p->set[SHAPE];
    for (int axis = shape->count - 1; axis >= 0; axis--) {
        at[axis] = (double)(s % shape->items[axis]);
        s /= shape->items[axis];
    }
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer, N = p->set[SHAPE].count, t2t = p->set[PRESET].integer == T2T;
    const int64_t m = t2t ? dim / (2 * N) : (dim + 2 * N - 1) / (2 * N), step = t2t ? 1 : 2;
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int64_t axis = 0; axis < N; axis++) {
        const pe_waves x = {pos + axis, n, N, dim, NAN};
        for (int64_t k = 0; k < m; k++) {
            const int64_t sine = axis * 2 * m + k * step;
            pe_angle_wave_fill(
                &x, pe_angle_base_frequency(p->set[BASE].real, (double)k, (double)(t2t ? m - 1 : m)), sine,
                sine + (t2t ? m : 1), 1, out);
        }
    }
}

const pe_encoding pe_sinusoidal_nd = {
    .info.name    = "sinusoidal_nd",
    .info.place   = POSENC_PLACE_INPUT,
    .info.title   = "sines and cosines of every axis of a grid",
    .info.formula = "ω_k = base^{−k / N}\n"
                    "p = [ sin(P_1 ω) , cos(P_1 ω) , … , sin(P_n ω) , cos(P_n ω) ]",
    .info.symbols =
        "ω_k: frequency k, radians per position\n"
        "k: a frequency, counted from 0\n"
        "N: how many frequencies a coordinate has, or that number less one (setting last_exponent)\n"
        "P_1: coordinate 1 of a position; P_n the last of them\n"
        "n: how many coordinates a position has",
    .info.paper    = "arXiv:1802.05751",
    .info.models   = "Image Transformer",
    .info.beyond   = "Computed on any grid, but a model knows only grids of the sizes it was trained on.",
    .info.pictures = "heatmap,curves,similarity,similarity2d",
    .model         = "shape=Lx8",
    .examples      = examples,
    .operations    = "1.5*Lq*dim",
    .check         = check,
    .input.width   = "dim",
    .coordinates   = coordinates,
    .input.tokens  = "shape",
    .input.locate  = locate,
    .input.rows    = rows,
    PE_SETTINGS(settings),
};
