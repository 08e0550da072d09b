/* SPDX-License-Identifier: MIT */
/*
 * Sinusoidal in N dimensions: each axis of a grid has its own channels
 *
 * Place    input: y = x + p(P_1, .., P_N)
 * Formula  omega_k = base^(-k/D);
 *          axis a gives sin(P_a*omega_k) and cos(P_a*omega_k) to its own block of channels
 * Learns   nothing
 * Source   tatp22/multidim-positional-encoding (torch_encodings.py); tensor2tensor:
 *          layers/common_attention.py, add_timing_signal_nd; CogVideoX-2B: diffusers, models/embeddings.py,
 *          get_3d_sincos_pos_embed
 *
 * Three rules for dividing dim channels among N axes:
 *   preset     frequencies m per axis  D      block of an axis             the rest
 *   tatp22     ceil(dim/(2N))          m      sin cos sin cos ...          cut off at the end of the last
 * axis t2t        dim/(2N), an integer    m - 1  all sines, then all cosines  channels that remain are zero
 *   cogvideox  dim/8 of time, 3dim/16  m      all sines, then all cosines  there is none
 *              of row and of column           time, column, row
 * With one frequency t2t divides by 0; the frequency is then 1. Positions are coordinates, any real numbers,
 * in an array [L,N]; a range numbers the tokens of the grid `shape`, the last axis fastest. CogVideoX divides
 * row and column by spatial_scale (1.875), time by temporal_scale, as floats.
 */
#include "encodings/encoding.h"

enum { PRESET, SHAPE, DIM, BASE, SPATIAL_SCALE, TEMPORAL_SCALE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"preset", "word", "tatp22", "tatp22|t2t|cogvideox", "whose rule for dividing the channels"},
    {"shape", "list", "L", "1..", "sizes of the grid, one per axis: 2x3x4"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"base", "real", "10000", "1<..", "ratio of the longest to the shortest wavelength, nearly"},
    {"spatial_scale", "real", "1", "0<..", "cogvideox: what row and column are divided by"},
    {"temporal_scale", "real", "1", "0<..", "cogvideox: what time is divided by"},
    {0},
};
static_assert(PE_ROWS(settings) == TEMPORAL_SCALE + 1, "ORDER settings");

enum { TATP22, T2T, COGVIDEOX }; /* ORDER the range of `preset` */

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
    {"dim=16 shape=2x3x4 preset=cogvideox", 23, 1, 0, 0.009999833334166664,
     "time 1: sin 1, sin 0.01, then cosines"},
    {"dim=16 shape=2x3x4 preset=cogvideox", 23, 4, 0, 0.1411200080598672, "column 3 is next: sin 3"},
    {"dim=16 shape=2x3x4 preset=cogvideox", 23, 10, 0, 0.9092974268256817, "row 2 is last: sin 2"},
    {"dim=16 shape=2x3x4 preset=cogvideox spatial_scale=2", 23, 10, 0, 0.8414709848078965, "sin 2/2"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int is_video = p->set[PRESET].integer == COGVIDEOX;
    if (is_video && (p->set[SHAPE].count != 3 || p->set[DIM].integer % 16))
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "sinusoidal_nd: preset=cogvideox has %d axes and dim=%lld; it needs three (time, row, "
                       "column) and a multiple of 16",
                       p->set[SHAPE].count, (long long)p->set[DIM].integer);
    if (!is_video && (p->set[SPATIAL_SCALE].real != 1 || p->set[TEMPORAL_SCALE].real != 1))
        return pe_fail(
            err, POSENC_ERROR_SETTING,
            "sinusoidal_nd: spatial_scale and temporal_scale are of preset=cogvideox; leave them out, "
            "or divide the positions");
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

/* The channels of an axis: m sines from `first` on, `step` apart, each cosine `later` channels after. */
typedef struct axis_part {
    int64_t first, m, step, later;
    double  D, divisor;
} axis_part;

static axis_part part_of(const pe_problem *p, int64_t axis)
{
    const int64_t dim = p->set[DIM].integer, N = p->set[SHAPE].count, halves = dim / (2 * N),
                  pairs = (dim + 2 * N - 1) / (2 * N), page = 3 * dim / 16;
    switch ((int)p->set[PRESET].integer) {
    case TATP22: return (axis_part){axis * 2 * pairs, pairs, 2, 1, (double)pairs, 0};
    case T2T: return (axis_part){axis * 2 * halves, halves, 1, halves, (double)(halves - 1), 0};
    default:
        return axis == 0 ? (axis_part){0, dim / 8, 1, dim / 8, (double)dim / 8, p->set[TEMPORAL_SCALE].real}
                         : (axis_part){dim / 4 + (2 - axis) * 2 * page, page, 1, page, (double)page,
                                       p->set[SPATIAL_SCALE].real};
    }
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer, N = p->set[SHAPE].count;
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int64_t axis = 0; axis < N; axis++) {
        const axis_part b = part_of(p, axis);
        const pe_waves  x = {
             .pos = pos + axis, .n = n, .step = N, .width = dim, .blank = NAN, .divisor = b.divisor};
        for (int64_t k = 0; k < b.m; k++) {
            const int64_t sine = b.first + k * b.step;
            pe_angle_wave_fill(&x, pe_angle_base_frequency(p->set[BASE].real, (double)k, b.D), sine,
                               sine + b.later, 1, out);
        }
    }
}

const pe_encoding pe_sinusoidal_nd = {
    .info.name     = "sinusoidal_nd",
    .info.place    = POSENC_PLACE_INPUT,
    .info.title    = "sines and cosines of every axis of a grid",
    .info.formula  = "ω_k = base^{−k / N}\n"
                     "p = [ sin(P_1 ω) , cos(P_1 ω) , … , sin(P_n ω) , cos(P_n ω) ]",
    .info.symbols  = "ω_k: frequency k, radians per position\n"
                     "k: a frequency, counted from 0\n"
                     "N: how many frequencies a coordinate has, or that number less one (setting preset)\n"
                     "P_1: coordinate 1 of a position; P_n the last of them\n"
                     "n: how many coordinates a position has",
    .info.paper    = "arXiv:1802.05751",
    .info.models   = "Image Transformer, CogVideoX-2B",
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
