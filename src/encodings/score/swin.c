/* SPDX-License-Identifier: MIT */
/*
 * Swin: a number for each offset on a window; learned one by one (swin), or by a small network, on unit
 * vectors (swin_v2)
 *
 * Place    score; swin_v2 also makes unit vectors of queries and keys
 * Formula  swin     S[h,i,j] = scale * q_i . k_j + table[x,h]
 *          swin_v2  S[h,i,j] = scale * exp(min(logit_scale[h], max)) * cos(q_i, k_j) + 16 sigmoid(B[x,h])
 *                   B[x,h] = sum_m W2[h,m] max(0, W1[m,0] cy + W1[m,1] cx + b1[m])
 *                   c = sign(a) log2(1 + |a|)/3, a = 8 d/(w - 1) on each axis; w: pretrained_window
 *          x = (dy + rows - 1) * (2 columns - 1) + dx + columns - 1
 *          y = floor(P / columns), x = P mod columns
 *          dy, dx = query minus key
 *          with table_window the table is of that window, and what stands here is a resized one
 *          with class_token the numbers after the last offset's are: from the class token to any other, from
 *          any other to it, and its own
 * Learns   swin     table [(2 rows - 1)(2 columns - 1), H] of table_window or, without one, of the window;
 *                   three more rows with class_token
 *          swin_v2  W1 [mlp_width,2], b1 [mlp_width], W2 [H,mlp_width], logit_scale [H]
 * Source   Liu et al. 2021, arXiv:2103.14030, section 3.2; Liu et al. 2022, arXiv:2111.09883, sections 3.2
 *          and 3.3; microsoft/Swin-Transformer, swin_transformer.py and swin_transformer_v2.py; class_token:
 *          Bao et al. 2021, arXiv:2106.08254; microsoft/unilm, beit/modeling_finetune.py; data2vec, timm;
 *          resize: transformers, BeitRelativePositionBias (linear); timm, resize_rel_pos_bias_table
 * (geometric)
 *
 * Attention stays within windows of rows x columns tokens, row by row; a batch item is one window, and its
 * tokens stand at 0 .. rows*columns-1, with a class token at 0 at 1 .. rows*columns. Both axes keep their
 * direction. A pair further apart than the window is high has no number, and a run that needs one is refused.
 *
 * The mask of shifted windows (-100 in the authors' code) belongs to the caller: an explicit mask. The
 * authors' truncated normal is cut at +-2, a hundred deviations out: it is a normal. A window of one column
 * is a table by signed distance.
 *
 * A table that was trained on another window is resized along both axes, two numbers of the old one to each
 * of the new: linear as torch's interpolate does; geometric puts the old offsets at 0, 1, 1 + q, 1 + q + q^2
 * ... with q such that the last falls on the new window's last, so that near tokens keep their numbers. Rows
 * of a class token are copied. Gradients flow back to the table as it is.
 *
 * swin_v2's network sees offsets as shares of the window that it was trained with, so another window at the
 * same model asks it for numbers nearby: name the old one in pretrained_window (0x0, or absent: it is this
 * window). An axis of one token has no share; its offset counts as 0. The network is run once per run, for
 * each offset on the window. The factor of the cosine is limited as the authors do it: beyond the limit it
 * learns nothing.
 */
#include "encodings/encoding.h"

#include <float.h>

/* ---- what both share: where on a window the pair of a query and a key is ---- */

enum { WINDOW }; /* the first setting of both */

/* The smallest square window that holds Lk tokens. */
#define A_SQUARE "window=floor(sqrt(Lk-1))+1xfloor(sqrt(Lk-1))+1"

static posenc_status check_pair_of_numbers(const char *name, const char *setting, const pe_value *value,
                                           posenc_error *err)
{
    if (value->count == 2)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s has %d numbers; give rows and columns, such as 7x7",
                   name, setting, value->count);
}

/* The row of a token. A window without a class token begins anywhere; one with it at 1, and the class token
   stands where the first one does. */
static int64_t row_after(double P, int64_t columns, int first)
{
    return pe_index_row(!first ? P : P < first ? 0 : P - first, columns);
}

/* Where a window may begin, at most: its tokens' places are products with this. */
#define FAR 0x1p31

static posenc_status reach_after(const pe_problem *p, const pe_span *span, int first, posenc_error *err)
{
    const int64_t rows = p->set[WINDOW].items[0], columns = p->set[WINDOW].items[1];
    const int64_t down   = row_after(span->q_high, columns, first) - row_after(span->k_low, columns, first);
    const int64_t up     = row_after(span->k_high, columns, first) - row_after(span->q_low, columns, first);
    const int     before = first && (span->q_low < 0 || span->k_low < 0); /* the class token is at 0 alone */
    if (span->whole && !before && down < rows && up < rows && fabs(span->q_low) <= FAR &&
        fabs(span->k_low) <= FAR)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "window: positions must be tokens of one window of %lldx%lld, whole numbers 0 to %lld; set window",
        (long long)rows, (long long)columns, (long long)(rows * columns - 1 + first));
}

static posenc_status reach(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    return reach_after(p, span, 0, err);
}

/* Some keys of a tile: what each takes from where a query reads the table, and the least and the most of it.
   A pair beyond the window is one that no mask allows: its number is ignored, so that any will do. */
enum { TOGETHER = 64 };
typedef struct window_keys {
    int64_t first, count, step[TOGETHER], least, most;
    int     has_class;
} window_keys;

static int64_t steps(const pe_problem *p, double position, int first)
{
    const int64_t columns = p->set[WINDOW].items[1];
    const double  P       = !first ? position : position < first ? 0 : position - first;
    return (pe_index_row(P, columns) * (2 * columns - 1) + pe_index_column(P, columns)) * p->H;
}

static window_keys keys_from(const pe_problem *p, const pe_tile *tile, int64_t first, int has_class)
{
    const int64_t rest = tile->cols - first;
    window_keys   y    = {.first = first, .count = rest < TOGETHER ? rest : TOGETHER, .has_class = has_class};
    y.least = y.most = steps(p, tile->k_pos[first], has_class);
    for (int64_t c = 0; c < y.count; c++) {
        y.step[c] = steps(p, tile->k_pos[first + c], has_class);
        y.least   = y.step[c] < y.least ? y.step[c] : y.least;
        y.most    = y.step[c] > y.most ? y.step[c] : y.most;
    }
    return y;
}

/* Which numbers of the table query r of the tile has with these keys. */
static void find_numbers(const pe_problem *p, const pe_tile *tile, int64_t r, const window_keys *keys,
                         int64_t at[])
{
    const int64_t rows = p->set[WINDOW].items[0], columns = p->set[WINDOW].items[1],
                  from = pe_index_window(0, 0, rows, columns) * p->H +
                         steps(p, tile->q_pos[r], keys->has_class) + tile->h,
                  last = (2 * rows - 1) * (2 * columns - 1) * p->H - 1;
    for (int64_t c = 0; c < keys->count; c++)
        at[c] = from - keys->step[c];
    for (int64_t c = 0; (from - keys->most < 0 || from - keys->least > last) && c < keys->count; c++)
        at[c] = pe_index_clip(at[c], 0, last);
    for (int64_t c = 0; keys->has_class && c < keys->count; c++) {
        const int q_is_class = tile->q_pos[r] < 1, k_is_class = tile->k_pos[keys->first + c] < 1;
        if (q_is_class || k_is_class)
            at[c] = last + 1 + (k_is_class ? q_is_class ? 2 : 1 : 0) * p->H + tile->h;
    }
}

/* Both read a table [offsets, H]: swin its parameter, or what resizing made of that; swin_v2 what its network
   gave. */
enum { TABLE = 0, RESIZED = 1, BIAS = 4 };

/* Numbers `at` of the table. */
typedef void look_up(const pe_problem *p, const double *const par[], const int64_t at[], int64_t n,
                     double x[]);

static void read_from(int table, const pe_problem *p, const double *const par[], const int64_t at[],
                      int64_t n, double x[])
{
    for (int64_t c = 0; par[table] && c < n; c++)
        x[c] = par[table][at[c]];
    for (int64_t c = 0; !par[table] && c < n; c++)
        pe_read(p, par, table, at[c], 1, x + c);
}

static void read_table(const pe_problem *p, const double *const par[], const int64_t at[], int64_t n,
                       double x[])
{
    read_from(TABLE, p, par, at, n, x);
}

static void read_resized(const pe_problem *p, const double *const par[], const int64_t at[], int64_t n,
                         double x[])
{
    read_from(RESIZED, p, par, at, n, x);
}

static void read_bias(const pe_problem *p, const double *const par[], const int64_t at[], int64_t n,
                      double x[])
{
    read_from(BIAS, p, par, at, n, x);
}

static void visit_by(look_up *read, int has_class, const pe_problem *p, const double *const par[],
                     const pe_tile *tile, double x[])
{
    int64_t at[TOGETHER];
    for (int64_t first = 0; first < tile->cols; first += TOGETHER) {
        const window_keys keys = keys_from(p, tile, first, has_class);
        for (int64_t r = 0; r < tile->rows; r++) {
            find_numbers(p, tile, r, &keys, at);
            read(p, par, at, keys.count, x + r * tile->stride + first);
        }
    }
}

static void add_to_table(int table, int has_class, const pe_problem *p, const pe_tile *tile,
                         const double dx[], double *const dpar[])
{
    double *dtable = dpar[table];
    int64_t at[TOGETHER];
    for (int64_t first = 0; dtable && first < tile->cols; first += TOGETHER) {
        const window_keys keys = keys_from(p, tile, first, has_class);
        for (int64_t r = 0; r < tile->rows; r++) {
            find_numbers(p, tile, r, &keys, at);
            for (int64_t c = 0; c < keys.count; c++)
                dtable[at[c]] += dx[r * tile->stride + first + c];
        }
    }
}

/* ---- swin ---- */

enum { SIGMA = WINDOW + 1, CLASS_TOKEN, TABLE_WINDOW, RESIZE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"window", "list", "7x7", "1..1048576", "rows and columns"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {"class_token", "flag", "no", "yes|no", "position 0 is a class token, and the window begins at 1 (BEiT)"},
    {"table_window", "list", "window1xwindow2", "1..1048576",
     "rows and columns that the table was trained with, which is resized"},
    {"resize", "word", "linear", "linear|geometric",
     "how: between neighbours (transformers), or with old offsets ever farther apart (timm)"},
    {0},
};
static_assert(PE_ROWS(settings) == RESIZE + 1, "ORDER settings");

enum { LINEAR, GEOMETRIC }; /* ORDER the range of `resize` */

static int has_class_token(const pe_problem *p)
{
    return (int)p->set[CLASS_TOKEN].integer;
}

static int is_resized(const pe_problem *p)
{
    const pe_value *old = &p->set[TABLE_WINDOW], *new = &p->set[WINDOW];
    return old->items[0] != new->items[0] || old->items[1] != new->items[1];
}

/* ---- swin: a table of another window ---- */

/* An axis: offsets of the old window and of the new one, and q. */
typedef struct resizing {
    int64_t old, new;
    double  q;
    int     geometric;
} resizing;

/* The two old numbers that a new one is made of. */
typedef struct taps {
    int64_t at[2];
    double  weight[2];
} taps;

/* q as timm finds it: by halving, until 1 + q + ... + q^(n-1) ends where the new offsets do. */
static double find_q(int64_t n, double end)
{
    double left = 1.01, right = 1.5, q = left;
    while (right - left > 1e-6) {
        q = (left + right) / 2;
        if ((1 - pow(q, (double)n)) / (1 - q) > end)
            right = q;
        else
            left = q;
    }
    return q;
}

static resizing resizing_of(const pe_problem *p, int axis)
{
    resizing z = {.old       = 2 * p->set[TABLE_WINDOW].items[axis] - 1,
                  .new       = 2 * p->set[WINDOW].items[axis] - 1,
                  .geometric = p->set[RESIZE].integer == GEOMETRIC};
    z.q        = z.geometric ? find_q(z.old / 2, (double)(z.new / 2)) : 0;
    return z;
}

/* Between which old offsets, on either side of 0, lies the distance x? */
static taps geometric_taps(const resizing *z, int64_t offset)
{
    const int64_t middle = z->old / 2, sign = offset < 0 ? -1 : 1, x = offset < 0 ? -offset : offset;
    double        below = 0, here = 0, step = 1;
    int64_t       n = 0;
    while (n < middle && here < (double)x) {
        below = here;
        here += step;
        step *= z->q;
        n++;
    }
    const double share = n && here > (double)x ? (here - (double)x) / (here - below) : 0;
    return (taps){{middle + sign * (n ? n - 1 : 0), middle + sign * n}, {share, 1 - share}};
}

static taps taps_of(const resizing *z, int64_t o)
{
    if (z->geometric)
        return geometric_taps(z, o - z->new / 2);
    const double  from = fmax(((double)o + 0.5) * ((double)z->old / (double)z->new) - 0.5, 0);
    const int64_t low  = (int64_t)from;
    return (taps){{low, low + 1 < z->old ? low + 1 : low}, {1 - (from - (double)low), from - (double)low}};
}

static int64_t resized_count(const pe_problem *p)
{
    const pe_value *new = &p->set[WINDOW];
    return is_resized(p) ? ((2 * new->items[0] - 1) * (2 * new->items[1] - 1) + 3 * has_class_token(p)) * p->H
                         : 0;
}

/* Each number of the new table, by the old ones; forward, or (dmade given) its cotangents to theirs. */
static void resize_table(const pe_problem *p, const double *const par[], double made[], const double dmade[],
                         double *const dpar[])
{
    const resizing rows = resizing_of(p, 0), columns = resizing_of(p, 1);
    int64_t        to = 0;
    for (int64_t y = 0; y < rows.new; y++)
        for (int64_t x = 0; x < columns.new; x++, to += p->H) {
            const taps ty = taps_of(&rows, y), tx = taps_of(&columns, x);
            for (int i = 0; i < 4; i++) {
                const double  weight = ty.weight[i / 2] * tx.weight[i % 2];
                const int64_t from   = (ty.at[i / 2] * columns.old + tx.at[i % 2]) * p->H;
                for (int64_t h = 0; h < p->H; h++) {
                    double number;
                    if (dmade) {
                        pe_add(dpar, TABLE, from + h, weight * dmade[to + h]);
                        continue;
                    }
                    pe_read(p, par, TABLE, from + h, 1, &number);
                    made[to + h] = (i ? made[to + h] : 0) + weight * number;
                }
            }
        }
    const int64_t extra = rows.old * columns.old * p->H;
    for (int64_t i = 0; i < 3 * p->H * has_class_token(p); i++)
        if (dmade)
            pe_add(dpar, TABLE, extra + i, dmade[to + i]);
        else
            pe_read(p, par, TABLE, extra + i, 1, made + to + i);
}

static void make_resized(const pe_problem *p, const double *const par[], double made[])
{
    resize_table(p, par, made, NULL, NULL);
}

static void make_resized_back(const pe_problem *p, const double *const par[], const double made[],
                              double dmade[], double *const dpar[])
{
    resize_table(p, par, NULL, dmade, dpar);
}

/* ---- swin ---- */

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    visit_by(is_resized(p) ? read_resized : read_table, has_class_token(p), p, par, tile, x);
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    add_to_table(is_resized(p) ? RESIZED : TABLE, has_class_token(p), p, tile, dx, dpar);
}

static posenc_status reach_with_class(const pe_problem *p, const pe_span *span, posenc_error *err)
{
    return reach_after(p, span, has_class_token(p), err);
}

static const posenc_param_info params[] = {
    {"table", "(2*table_window1-1)*(2*table_window2-1)+3*class_token,H", "normal(0, sigma)",
     "what an offset adds to the scores of a head", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: the bias is x * H + h. */
static const posenc_example examples[] = {
    {"H=1 window=2x3", 0, 0, 5, 0, "authors' relative_position_index: first token to last, offset (-1,-2)"},
    {"H=1 window=2x3", 0, 5, 0, 14, "the same, last to first"},
    {"H=1 window=2x3 class_token=yes", 0, 0, 4, 15,
     "BEiT: the class token to another, the first row after 15"},
    {"H=1 window=2x3 class_token=yes", 0, 4, 0, 16, "another to the class token"},
    {"H=1 window=2x3 class_token=yes", 0, 1, 6, 0, "first token to last, as without"},
    {"H=1 window=3x1 table_window=2x1", 0, 0, 1, 0.4, "a table 0 1 2, read at 1.5 * 3/5 - 1/2"},
    {"H=1 window=3x1 table_window=2x1 resize=geometric", 0, 0, 1, 0, "near tokens keep their numbers"},
    {"H=2 window=2x3", 1, 3, 2, 21, "row 1 left to row 0 right: offset (1,-2), x = 10"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const posenc_status status = check_pair_of_numbers("swin", "window", &p->set[WINDOW], err);
    return status ? status : check_pair_of_numbers("swin", "table_window", &p->set[TABLE_WINDOW], err);
}

const pe_encoding pe_swin = {
    .info.name          = "swin",
    .info.place         = POSENC_PLACE_SCORE,
    .info.title         = "a learned bias per offset on a window",
    .info.formula       = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + T_{x,h}\n"
                          "x = (dy + rows − 1) (2 columns − 1) + dx + columns − 1",
    .info.symbols       = "T_{x,h}: the learned number of offset x in head h\n"
                          "x: the offset of the two tokens on the window, as one number\n"
                          "dy: row of the query less that of the key\n"
                          "dx: column of the query less that of the key\n"
                          "rows: rows of the window, setting window\n"
                          "columns: columns of the window",
    .info.paper         = "arXiv:2103.14030",
    .info.models        = "Swin Transformer, BEiT",
    .info.beyond        = "The table ends with its window: another window needs a resized table and tuning.",
    .info.pictures      = "bias",
    .info.row_limit     = "window",
    .info.at_length     = A_SQUARE,
    .model              = "window=4*Lx2 sigma=0.1",
    .check              = check,
    .attention.hook     = {.visit = visit, .visit_back = visit_back},
    .attention.in_place = 1 << TABLE,
    .attention.reach    = reach_with_class,
    .attention.derived  = resized_count,
    .attention.derive   = make_resized,
    .attention.derive_back = make_resized_back,
    PE_TABLES(settings, params, examples),
};

/* ---- swin_v2 ---- */

enum { PRETRAINED = WINDOW + 1, MLP_WIDTH, MOST, EPS, SIGMA_V2 }; /* ORDER settings_v2 */
static const posenc_setting_info settings_v2[] = {
    {"window", "list", "8x8", "1..1048576", "rows and columns"},
    {"pretrained_window", "list", "", "0..1048576",
     "rows and columns that the network was trained with; absent or 0x0: the window"},
    {"mlp_width", "integer", "512", "1..65536", "width of the network's hidden layer"},
    {"logit_scale_max", "real", "4.605170185988092", "", "the factor of the cosine is at most exp of this"},
    {"normalize_eps", "real", "1e-12", "0..", "shorter vectors are divided by this instead of their length"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the network's initial weights"},
    {0},
};
static_assert(PE_ROWS(settings_v2) == SIGMA_V2 + 1, "ORDER settings_v2");

/* BIAS is made of the others: what an offset adds to the scores of a head [offsets, H]. */
enum { W1, B1, W2, LOGIT_SCALE }; /* ORDER params_v2 */
static const posenc_param_info params_v2[] = {
    {"W1", "mlp_width,2", "normal(0, sigma)", "first layer, of the offset along rows and columns", 1},
    {"b1", "mlp_width", "zeros", "its bias", 1},
    {"W2", "H,mlp_width", "normal(0, sigma)", "second layer, one row per head", 1},
    {"logit_scale", "H", "ln(10)", "logarithm of the factor of the cosine", 1},
    {0},
};
static_assert(PE_ROWS(params_v2) == LOGIT_SCALE + 1 && BIAS == LOGIT_SCALE + 1, "ORDER params_v2");

/* The examples' parameter values are 0, 1, 2, ... in memory order. On a window of 1x2, W1 = [0,1], b1 = 0 and
   W2 = 0. */
static const posenc_example examples_v2[] = {
    {"H=1 window=1x2 mlp_width=1", 0, 1, 0, 8, "16 sigmoid(0)"},
    {"H=2 window=1x2 mlp_width=1", 1, 1, 0, 11.872771850141358, "offset (0,1): c = log2(9)/3, B = max(0, c)"},
    {"H=2 window=1x2 mlp_width=1", 1, 0, 1, 8, "offset (0,-1): the hidden unit gives 0"},
    {0},
};

static posenc_status check_v2(const pe_problem *p, posenc_error *err)
{
    const pe_value *window = &p->set[WINDOW], *before = &p->set[PRETRAINED];
    posenc_status   status = check_pair_of_numbers("swin_v2", "window", window, err);
    if (!status && before->given)
        status = check_pair_of_numbers("swin_v2", "pretrained_window", before, err);
    for (int axis = 0; !status && before->given && axis < 2; axis++)
        if (before->items[axis] == 1 && window->items[axis] > 1)
            status = pe_fail(err, POSENC_ERROR_SETTING,
                             "swin_v2: pretrained_window is 1 along an axis where window is %lld; it must be "
                             "at least 2 there",
                             (long long)window->items[axis]);
    return status;
}

static double init_v2(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    return index == LOGIT_SCALE ? log(10) : index == B1 ? 0 : p->set[SIGMA_V2].real * pe_random_normal(rng);
}

/* ---- swin_v2: the network, once per run ---- */

static int64_t offsets(const pe_problem *p, int axis)
{
    return 2 * p->set[WINDOW].items[axis] - 1;
}

enum { MANY = 1 << 14 }; /* numbers of BIAS: 128 KiB */

static int64_t bias_count(const pe_problem *p)
{
    return offsets(p, 0) * offsets(p, 1) * p->H;
}

/* What the network sees of row `offset` of an axis. */
static double coordinate(const pe_problem *p, int axis, int64_t offset)
{
    const pe_value *before = &p->set[PRETRAINED];
    const int64_t   window = p->set[WINDOW].items[axis];
    return pe_window_coordinate(offset - (window - 1), window, before->given ? before->items[axis] : 0);
}

static double hidden(const double *const par[], int64_t m, double cy, double cx)
{
    return par[W1][2 * m] * cy + par[W1][2 * m + 1] * cx + par[B1][m];
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Few queries need few of a long table's numbers: each asks the network, and gets what make_bias gives. */
static void ask_network(const pe_problem *p, const double *const par[], const int64_t at[], int64_t n,
                        double x[])
{
    const int64_t width = p->set[MLP_WIDTH].integer, columns = offsets(p, 1);
    for (int64_t c = 0; c < n; c++) {
        const int64_t offset = at[c] / p->H, h = at[c] % p->H;
        const double  cy = coordinate(p, 0, offset / columns), cx = coordinate(p, 1, offset % columns);
        double        sum = 0;
        for (int64_t m = 0; m < width; m++)
            sum += par[W2][h * width + m] * fmax(0, hidden(par, m, cy, cx));
        x[c] = 16 * sigmoid(sum);
    }
}

static void visit_v2(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    visit_by(par[BIAS] ? read_bias : ask_network, 0, p, par, tile, x);
}

static void visit_back_v2(const pe_problem *p, const double *const par[], const pe_tile *tile,
                          const double dx[], double *const dpar[])
{
    add_to_table(BIAS, 0, p, tile, dx, dpar);
}

static void make_bias(const pe_problem *p, const double *const par[], double bias[])
{
    const int64_t width = p->set[MLP_WIDTH].integer, columns = offsets(p, 1), n = offsets(p, 0) * columns;
    for (int64_t x = 0; x < n; x++) {
        const double cy = coordinate(p, 0, x / columns), cx = coordinate(p, 1, x % columns);
        double      *to = bias + x * p->H;
        for (int64_t h = 0; h < p->H; h++)
            to[h] = 0;
        for (int64_t m = 0; m < width; m++) {
            const double a = fmax(0, hidden(par, m, cy, cx));
            for (int64_t h = 0; h < p->H; h++)
                to[h] += par[W2][h * width + m] * a;
        }
        for (int64_t h = 0; h < p->H; h++)
            to[h] = 16 * sigmoid(to[h]);
    }
}

/* One offset: dB [H] through both layers. */
static void network_back(const pe_problem *p, const double *const par[], double cy, double cx,
                         const double dB[], double *const dpar[])
{
    const int64_t width = p->set[MLP_WIDTH].integer;
    for (int64_t m = 0; m < width; m++) {
        const double a  = hidden(par, m, cy, cx);
        double       da = 0;
        if (a <= 0)
            continue;
        for (int64_t h = 0; h < p->H; h++) {
            da += par[W2][h * width + m] * dB[h];
            pe_add(dpar, W2, h * width + m, a * dB[h]);
        }
        if (dpar[W1]) {
            dpar[W1][2 * m] += da * cy;
            dpar[W1][2 * m + 1] += da * cx;
        }
        pe_add(dpar, B1, m, da);
    }
}

/* dbias becomes dB on the way. */
static void make_bias_back(const pe_problem *p, const double *const par[], const double bias[],
                           double dbias[], double *const dpar[])
{
    const int64_t columns = offsets(p, 1), n = offsets(p, 0) * columns;
    for (int64_t x = 0; x < n; x++) {
        double *dB = dbias + x * p->H;
        for (int64_t h = 0; h < p->H; h++)
            dB[h] *= bias[x * p->H + h] * (1 - bias[x * p->H + h] / 16);
        network_back(p, par, coordinate(p, 0, x / columns), coordinate(p, 1, x % columns), dB, dpar);
    }
}

/* ---- swin_v2: unit vectors; the queries carry the factor ---- */

static double factor(const pe_problem *p, const double *const par[], pe_side side, int64_t h)
{
    return side == PE_KEYS ? 1 : exp(fmin(par[LOGIT_SCALE][h], p->set[MOST].real));
}

static double length(const pe_problem *p, const double x[])
{
    double sum = 0;
    for (int64_t d = 0; d < p->D; d++)
        sum += x[d] * x[d];
    return sqrt(sum);
}

/* 1/|x|, or 1/eps of a shorter x; 0 of one so short that it has no direction: a row of zeros stays one. */
static double inverse_length(const pe_problem *p, const double x[])
{
    const double by = fmax(length(p, x), p->set[EPS].real);
    return by >= DBL_MIN ? 1 / by : 0;
}

static void unit_rows(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                      const double pos[], int64_t n, const double x[], double y[])
{
    const double f = factor(p, par, side, h);
    for (int64_t s = 0; s < n; s++) {
        const double inverse = f * inverse_length(p, x + s * p->D);
        for (int64_t d = 0; d < p->D; d++)
            y[s * p->D + d] = x[s * p->D + d] * inverse;
    }
}

/* y = f x/|x|: dx = f (dy - (dy.x) x/|x|^2) / |x|; below eps the length is not divided by, and y is f
   x/eps. */
static void unit_row_back(const pe_problem *p, double f, const double x[], const double dy[], double dx[],
                          double *dfactor)
{
    const double r = length(p, x), eps = p->set[EPS].real, inverse = inverse_length(p, x);
    double       along = 0;
    for (int64_t d = 0; d < p->D; d++)
        along += dy[d] * x[d];
    *dfactor += along * inverse;
    const double straight = r > eps ? along * inverse * inverse : 0;
    for (int64_t d = 0; d < p->D; d++)
        dx[d] = f * inverse * (dy[d] - straight * x[d]);
}

static void unit_rows_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                           const double pos[], int64_t n, const double x[], const double dy[], double dx[],
                           double *const dpar[])
{
    const double f       = factor(p, par, side, h);
    double       dfactor = 0;
    for (int64_t s = 0; s < n; s++)
        unit_row_back(p, f, x + s * p->D, dy + s * p->D, dx + s * p->D, &dfactor);
    if (side == PE_QUERIES && dpar[LOGIT_SCALE] && par[LOGIT_SCALE][h] <= p->set[MOST].real)
        dpar[LOGIT_SCALE][h] += f * dfactor;
}

static void terms_v2(const pe_problem *p, pe_terms *s)
{
    s->scale   = 1;
    s->hook    = (pe_tile_hook){.visit = visit_v2, .visit_back = visit_back_v2, .learns = 1 << BIAS};
    s->prepare = (pe_preparation){.fill = unit_rows, .fold = unit_rows_back, .width = p->D, .products64 = 1};
}

const pe_encoding pe_swin_v2 = {
    .info.name    = "swin_v2",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "cosine attention with a bias per offset from a network",
    .info.formula = "S_{h,i,j} = e^{min(τ_h , max)} cos(q_i , k_j) + 16 σ(B_{x,h})\n"
                    "B_{x,h} = W_2 max(W_1 c + b_1 , 0) , c = sign(a) log_2(1 + | a |) / 3",
    .info.symbols = "τ_h: the learned logarithm of the factor of head h\n"
                    "B_{x,h}: what the network says of offset x in head h\n"
                    "x: the offset of the two tokens on the window\n"
                    "W_1: learned matrices of the network; W_2 is the other\n"
                    "b_1: learned numbers of the network\n"
                    "c: the offset on an axis, its logarithm\n"
                    "a: the offset on an axis: 8 at the end of the window\n"
                    "max: the largest τ_h that counts, setting logit_scale_max",
    .info.paper   = "arXiv:2111.09883",
    .info.models  = "Swin Transformer V2",
    .info.beyond  = "Ends with its window; for another one a network computes the biases, which want tuning.",
    .info.pictures  = "bias",
    .info.row_limit = "window",
    .info.at_length = A_SQUARE,
    .info.scale     = "1, on unit vectors",
    .model          = "window=4*Lx2 pretrained_window=floor(L/2)x2 mlp_width=32 sigma=0.5",
    /* The network for each offset of the window, and what it sees of an axis (five each); unit rows of
       queries and keys. */
    .operations = "(2*window1-1)*(2*window2-1)*(5*mlp_width+H*(2*mlp_width+4))+10*(window1+window2-1)+(H*Lq+"
                  "G*Lk)*(3*D+2)",
    .check      = check_v2,
    .init       = init_v2,
    .attention.terms            = terms_v2,
    .attention.reach            = reach,
    .attention.derived          = bias_count,
    .attention.derived_for_many = MANY,
    .attention.derive           = make_bias,
    .attention.derive_back      = make_bias_back,
    PE_TABLES(settings_v2, params_v2, examples_v2),
};
