/* SPDX-License-Identifier: MIT */
/*
 * Sinusoidal in two dimensions: row and column of an image patch, each as sines and cosines
 *
 * Place    input: y = x + p(h, w)
 * Formula  omega_k = base^(-k/N), k = 0 .. f-1, f = dim/4 cut to an integer; each coordinate gives f sines,
 *          f cosines
 * Learns   nothing
 * Source   tutorials and released code, by preset: wzlxjtu/PositionalEncoding2D, facebookresearch/mae
 *          (util/pos_embed.py), moco-v3 (vits.py), timm (layers/pos_embed_sincos.py), big_vision
 *          (models/vit.py), detr (models/position_encoding.py; Carion et al. 2020, arXiv:2005.12872)
 *
 * Incompatible tables go by this one name:
 *   preset            channels, f of each                 N      tokens of the grid
 *   hw_interleaved    (sin cos)(h), (sin cos)(w)          f      row by row
 *   wh_interleaved    (sin cos)(w), (sin cos)(h)          f      row by row
 *   mae               sin w, cos w, sin h, cos h          f      row by row
 *   mocov3            sin w, cos w, sin h, cos h          f      column by column
 *   timm              sin h, sin w, cos h, cos w          f      row by row (timm_default is the same)
 *   timm_interleaved  sin h, cos h, sin w, cos w          f      row by row; blocks, in spite of its name
 *   big_vision        sin w, cos w, sin h, cos h          f - 1  row by row; N = 0 leaves the frequency 1
 *   detr              as hw_interleaved; coordinates count pixels from 1, see normalize and
 *                     posenc_positions_detr
 * In (sin cos) sine and cosine of a frequency stand side by side. Sources refuse a dim that 4 does not
 * divide; here the dim mod 4 channels at the end are zero.
 *
 * Positions are coordinates (h, w), any real numbers, in an array [L,2]; height and width are then not asked.
 * A range numbers the tokens of the grid height x width, after prefix_rows zero rows (class tokens: MAE and
 * MoCo v3 have 1).
 */
#include "encodings/encoding.h"

#include "base/positions.h"

enum { PRESET, HEIGHT, WIDTH, DIM, BASE, PREFIX_ROWS, NORMALIZE, EPS }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"preset", "word", "hw_interleaved",
     "hw_interleaved|wh_interleaved|mae|mocov3|timm|timm_default|timm_interleaved|big_vision|detr",
     "whose table: order of channels, frequencies, order of tokens"},
    {"height", "integer", "L", "1..16777216", "rows of the grid that a range of positions numbers"},
    {"width", "integer", "1", "1..16777216", "its columns"},
    {"dim", "integer", "d_model", "1..", "width of a row of the table"},
    {"base", "real", "10000", "1<..",
     "ratio of the longest to the shortest wavelength, nearly; detr: temperature"},
    {"prefix_rows", "integer", "0", "0..16777216", "zero rows before the grid (class tokens), for a range"},
    {"normalize", "flag", "no", "yes|no", "detr, for a range: coordinates as shares of 2 pi"},
    {"eps", "real", "1e-6", "0<..", "detr: added to what normalize divides by"},
    {0},
};
static_assert(PE_ROWS(settings) == EPS + 1, "ORDER settings");

enum {
    HW,
    WH,
    MAE,
    MOCOV3,
    TIMM,
    TIMM_DEFAULT,
    TIMM_INTERLEAVED,
    BIG_VISION,
    DETR
}; /* ORDER range of preset */

/* What a preset means: in units of f channels, where the sines and cosines of h and of w begin. Where they
   begin together they stand side by side. */
static const struct {
    int sine[2], cosine[2];
    int one_less; /* N = f - 1 */
    int columns;  /* tokens go down the columns */
} forms[] = {
    {{0, 2}, {0, 2}, 0, 0}, {{2, 0}, {2, 0}, 0, 0}, {{2, 0}, {3, 1}, 0, 0},
    {{2, 0}, {3, 1}, 0, 1}, {{0, 1}, {2, 3}, 0, 0}, {{0, 1}, {2, 3}, 0, 0},
    {{0, 2}, {1, 3}, 0, 0}, {{2, 0}, {3, 1}, 1, 0}, {{0, 2}, {0, 2}, 0, 0},
};
static_assert(sizeof forms / sizeof *forms == DETR + 1, "ORDER the range of `preset`");

/* Token 5 of a grid of 2 x 3 is (1,2); down the columns it is the same, and token 1 is (1,0). */
static const posenc_example examples[] = {
    {"dim=8 height=2 width=3", 5, 0, 0, 0.8414709848078965, "sin 1: h first"},
    {"dim=8 height=2 width=3", 5, 4, 0, 0.9092974268256817, "sin 2: then w"},
    {"dim=8 height=2 width=3", 5, 2, 0, 0.009999833334166664, "sin 0.01 of h: N = f = 2"},
    {"dim=8 height=2 width=3 preset=wh_interleaved", 5, 0, 0, 0.9092974268256817, "sin 2: w first"},
    {"dim=8 height=2 width=3 preset=mae", 1, 0, 0, 0.8414709848078965, "token 1 is (0,1): sin 1 of w"},
    {"dim=8 height=2 width=3 preset=mocov3", 1, 4, 0, 0.8414709848078965, "token 1 is (1,0): sin 1 of h"},
    {"dim=8 height=2 width=3 preset=mocov3", 1, 0, 0, 0, "and sin 0 of w"},
    {"dim=8 height=2 width=3 preset=timm", 5, 2, 0, 0.9092974268256817, "sin of w after sin of h"},
    {"dim=8 height=2 width=3 preset=timm_interleaved", 5, 2, 0, 0.5403023058681398,
     "cos of h after sin of h"},
    {"dim=8 height=2 width=3 preset=big_vision", 5, 1, 0, 0.00019999999866666668, "sin 2e-4: N = 1"},
    {"dim=4 height=2 width=3 preset=big_vision", 5, 0, 0, 0.9092974268256817, "N = 0 leaves the frequency 1"},
    {"dim=8 height=2 width=3 preset=detr", 5, 0, 0, 0.9092974268256817, "sin 2: rows count from 1"},
    {"dim=8 height=2 width=3 preset=mae prefix_rows=2", 1, 2, 0, 0,
     "class tokens have no place: cos is 0 too"},
    {"dim=8 height=2 width=3 preset=mae prefix_rows=2", 3, 0, 0, 0.8414709848078965,
     "the grid begins after them"},
    {"dim=7 height=2 width=3 preset=mae", 5, 6, 0, 0, "f = 1, and 3 channels remain"},
    {0},
};

static int coordinates(const pe_value *set)
{
    return 2;
}

/* Row or column `index` of `size`, as the preset counts it. */
static double coordinate(const pe_problem *p, int64_t index, int64_t size)
{
    if (p->set[PRESET].integer != DETR)
        return (double)index;
    return pe_positions_detr_coordinate((double)index + 1, (double)size, (int)p->set[NORMALIZE].integer,
                                        p->set[EPS].real);
}

static void locate(const pe_problem *p, int64_t s, double at[])
{
    const int64_t height = p->set[HEIGHT].integer, across = p->set[WIDTH].integer,
                  n   = s - p->set[PREFIX_ROWS].integer;
    const int columns = forms[p->set[PRESET].integer].columns;
    at[0] = at[1] = NAN;
    if (n < 0)
        return;
    at[0] = coordinate(p, columns ? n % height : n / across, height);
    at[1] = coordinate(p, columns ? n / height : n % across, across);
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer, f = dim / 4, preset = p->set[PRESET].integer;
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int axis = 0; axis < 2; axis++) {
        const int      sine = forms[preset].sine[axis], cosine = forms[preset].cosine[axis];
        const int64_t  step = sine == cosine ? 2 : 1;
        const pe_waves x    = {.pos = pos + axis, .n = n, .step = 2, .width = dim, .blank = NAN};
        for (int64_t k = 0; k < f; k++)
            pe_angle_wave_fill(&x,
                               pe_angle_base_frequency(p->set[BASE].real, (double)k,
                                                       (double)(f - forms[preset].one_less)),
                               sine * f + k * step, cosine * f + k * step + (sine == cosine), 1, out);
    }
}

const pe_encoding pe_sinusoidal2d = {
    .info.name     = "sinusoidal2d",
    .info.place    = POSENC_PLACE_INPUT,
    .info.title    = "sines and cosines of the row and the column of an image patch",
    .info.formula  = "ω_k = base^{−k / N} , k < ⌊ d / 4 ⌋\n"
                     "p = [ sin(a ω) , cos(a ω) , sin(b ω) , cos(b ω) ]",
    .info.symbols  = "ω_k: frequency k, radians per row or column\n"
                     "k: a frequency, counted from 0\n"
                     "N: the divisor of the exponents, setting preset\n"
                     "a: the row of a cell, but its column where preset is wh_interleaved, mae, mocov3 or "
                     "big_vision\n"
                     "b: the other of the two\n"
                     "p: d numbers for position P = (row, column); preset says in which order these four "
                     "parts stand, and whether sines and cosines alternate",
    .info.paper    = "arXiv:2005.12872",
    .info.models   = "MAE, MoCo v3, SimpleViT, DETR",
    .info.beyond   = "Computed on any grid, but a model knows only grids of the sizes it was trained on.",
    .info.pictures = "heatmap,curves,similarity,similarity2d",
    .model         = "height=L width=8",
    .examples      = examples,
    .operations    = "1.5*Lq*dim",
    .input.width   = "dim",
    .coordinates   = coordinates,
    .input.tokens  = "prefix_rows+height*width",
    .input.locate  = locate,
    .input.rows    = rows,
    PE_SETTINGS(settings),
};
