/* SPDX-License-Identifier: MIT */
/*
 * Transformer-XL and XLNet: scores from distance vectors and learned query vectors
 *
 * Place    score
 * Formula  S[h,i,j] = scale * [ (q_i + u_h) . k_j + (q_i + w_h) . r_h(t) ]      t = P(i) - P(j)
 *          xlnet:   + scale * (q_i + us_h) . g_h[z]      z = 0 where i and j are of one segment, else 1
 *          r_h(t)   = sum_m R(t)[m] * Wr[m,h,:]
 *          R(t)     = [sin(t*omega_k) | cos(t*omega_k)], omega_k = 10000^(-2k/d_model), k < d_model/2
 * Learns   u_bias = u [H,D], v_bias = w [H,D], Wr [d_model,H,D]; xlnet also s_bias = us [H,D], seg_embed = g
 *          [2,H,D]
 * Source   Dai et al. 2019, arXiv:1901.02860, section 3.3; kimiyoung/transformer-xl,
 *          pytorch/mem_transformer.py
 *          Yang et al. 2019, arXiv:1906.08237, section 2.5; zihangdai/xlnet, modeling.py
 *
 * u is r_w_bias in the authors' code ("content"), w is r_r_bias ("position"). Wr is separate from the
 * content's W_k. clamp_len limits t from above only (distances in the future keep their own vectors); XLNet's
 * limits both sides. XLNet's segments are those of the run (q_segments, k_segments); without any, all tokens
 * are of one. There is no gradient into R, and r_h(t) does not depend on the content, so its gradient is
 * summed over the batch before Wr sees it.
 */
#include "encodings/encoding.h"

enum { D_MODEL, CLAMP_LEN, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"d_model", "integer", "d_model", "2..65536", "channels of the sinusoid R(t); even"},
    {"clamp_len", "integer", "", "0..", "distances beyond use the vector of this one; absent: no limit"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial Wr"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { U_BIAS, V_BIAS, WR, S_BIAS, SEG_EMBED }; /* ORDER params, xlnet_params */
static const posenc_param_info params[] = {
    {"u_bias", "H,D", "zeros", "u: added to the query before the content product", 1},
    {"v_bias", "H,D", "zeros", "w: added to the query before the distance product", 1},
    {"Wr", "d_model,H,D", "normal(0, sigma)", "projects the sinusoid of a distance to the heads", 1},
    {0},
};
static_assert(PE_ROWS(params) == WR + 1, "ORDER params");

static const posenc_param_info xlnet_params[] = {
    {"u_bias", "H,D", "zeros", "u: added to the query before the content product", 1},
    {"v_bias", "H,D", "zeros", "w: added to the query before the distance product", 1},
    {"Wr", "d_model,H,D", "normal(0, sigma)", "projects the sinusoid of a distance to the heads", 1},
    {"s_bias", "H,D", "zeros", "us: added to the query before the segment product", 1},
    {"seg_embed", "2,H,D", "normal(0, sigma)", "g: multiplied with the query, [0] same segment, [1] another",
     1},
    {0},
};
static_assert(PE_ROWS(xlnet_params) == SEG_EMBED + 1, "ORDER xlnet_params");

/* The examples' parameter values are 0, 1, 2, ... in memory order. */
static const posenc_example examples[] = {
    {"H=1 D=1 d_model=2 scale=1", 0, 3, 3, 0, "w = 0: no bias whatever the distance"},
    {"H=2 D=1 d_model=2 scale=1", 1, 5, 5, 3, "t = 0: R = [0 | 1], w_1 = 1, Wr[1,1] = 3"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->set[D_MODEL].integer % 2)
        return pe_fail(err, POSENC_ERROR_SETTING, "d_model=%lld must be even: half sines, half cosines",
                       (long long)p->set[D_MODEL].integer);
    return POSENC_OK;
}

static int64_t most_of(const pe_problem *p)
{
    return p->set[CLAMP_LEN].given ? p->set[CLAMP_LEN].integer : INT64_MAX;
}

static pe_frequency omega(const pe_problem *p, int64_t k)
{
    return pe_angle_frequency(pow(10000.0, -2.0 * (double)k / (double)p->set[D_MODEL].integer));
}

/* Sines and cosines of some channels at one distance after the other: exact at multiples of EXACT, continued
   from there by angle addition (EXACT roundings at most, far below one of a float), so that they do not
   depend on the distances before. The 12 KiB of rows are multiplied with as many rows of Wr, which is read in
   place, COLUMNS at a time. This is for the tables in double; those in float are made by the engine, see
   frequencies(). */
enum { EXACT = 64, DISTANCES = 24, CHANNELS = 32, COLUMNS = 64 };

typedef struct wave_rows {
    int64_t      count; /* channels; those beyond are zero */
    int64_t      at;    /* the distance that c and s are of */
    int          known; /* is there anything yet? */
    pe_frequency frequency[CHANNELS];
    double       c[CHANNELS], s[CHANNELS], step_c[CHANNELS], step_s[CHANNELS];
    double       rows[2][DISTANCES][CHANNELS]; /* sines, cosines */
} wave_rows;

static void start_waves(const pe_problem *p, wave_rows *w, int64_t first)
{
    const int64_t rest = p->set[D_MODEL].integer / 2 - first;
    memset(w, 0, sizeof *w);
    w->count = rest < CHANNELS ? rest : CHANNELS;
    for (int64_t k = 0; k < w->count; k++) {
        w->frequency[k] = omega(p, first + k);
        pe_angle_cos_sin(1, w->frequency[k], &w->step_c[k], &w->step_s[k]);
    }
}

/* One distance on: all channels, whose number the compiler knows. */
static void step(wave_rows *w)
{
    for (int k = 0; k < CHANNELS; k++) {
        const double c = w->c[k] * w->step_c[k] - w->s[k] * w->step_s[k];
        w->s[k]        = w->s[k] * w->step_c[k] + w->c[k] * w->step_s[k];
        w->c[k]        = c;
    }
    w->at++;
}

static void follow(wave_rows *w, int64_t t)
{
    const int64_t start = t - (t % EXACT + EXACT) % EXACT;
    if (!w->known || w->at > t || w->at < start) {
        for (int64_t k = 0; k < w->count; k++)
            pe_angle_cos_sin((double)start, w->frequency[k], &w->c[k], &w->s[k]);
        w->at    = start;
        w->known = 1;
    }
    while (w->at < t)
        step(w);
}

/* The next of n distances from t0 + i on; returns how many. XLNet, which has segments, limits both sides. */
static int64_t next_rows(const pe_problem *p, const double *const par[], wave_rows *w, int64_t t0, int64_t i,
                         int64_t n)
{
    const int64_t rows = n - i < DISTANCES ? n - i : DISTANCES, most = most_of(p),
                  least = par[SEG_EMBED] ? -most : INT64_MIN;
    for (int64_t r = 0; r < rows; r++) {
        follow(w, pe_index_clip(t0 + i + r, least, most));
        memcpy(w->rows[0][r], w->s, sizeof w->s);
        memcpy(w->rows[1][r], w->c, sizeof w->c);
    }
    return rows;
}

/* Some columns of what Wr has for the channels of w: for sines, for cosines. */
static void read_projection(const pe_problem *p, const double *const par[], const wave_rows *w, int64_t first,
                            int64_t h, int64_t d, int64_t columns, double to[2][CHANNELS][COLUMNS])
{
    const int64_t half = p->set[D_MODEL].integer / 2;
    for (int64_t half_of = 0; half_of < 2; half_of++)
        for (int64_t k = 0; k < w->count; k++)
            pe_read(p, par, WR, ((half_of * half + first + k) * p->H + h) * p->D + d, columns,
                    to[half_of][k]);
}

/* rows[i,:] = r_h(t0 + i) */
static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 double rows[])
{
    const int64_t half = p->set[D_MODEL].integer / 2, D = p->D;
    double        W[2][CHANNELS][COLUMNS];
    wave_rows     w;
    memset(rows, 0, (size_t)(n * D) * sizeof *rows);
    for (int64_t k = 0; k < half; k += CHANNELS)
        for (int64_t d = 0; d < D; d += COLUMNS) {
            const int64_t columns = D - d < COLUMNS ? D - d : COLUMNS;
            start_waves(p, &w, k);
            read_projection(p, par, &w, k, h, d, columns, W);
            for (int64_t i = 0, m; i < n; i += m) {
                m = next_rows(p, par, &w, t0, i, n);
                for (int half_of = 0; half_of < 2; half_of++)
                    pe_multiply64(p, rows + i * D + d, D, w.rows[half_of][0], CHANNELS, 1, W[half_of][0],
                                  COLUMNS, m, columns, w.count);
            }
        }
}

/* dWr[m,h,:] += sum_i R(t0 + i)[m] * drows[i,:] */
static void fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double drows[], double *const dpar[])
{
    const int64_t half = p->set[D_MODEL].integer / 2, D = p->D, row = p->H * D;
    wave_rows     w;
    for (int64_t k = 0; dpar[WR] && k < half; k += CHANNELS) {
        start_waves(p, &w, k);
        for (int64_t i = 0, m; i < n; i += m) {
            m = next_rows(p, par, &w, t0, i, n);
            for (int half_of = 0; half_of < 2; half_of++)
                pe_multiply64(p, dpar[WR] + (k + half_of * half) * row + h * D, row, w.rows[half_of][0], 1,
                              CHANNELS, drows + i * D, D, w.count, D, m);
        }
    }
}

/* For tables in float, whose sinusoids the engine makes (engine/rotation/ladder.h). */
static void frequencies(const pe_problem *p, int64_t first, int64_t n, pe_frequency frequency[])
{
    for (int64_t k = 0; k < n; k++)
        frequency[k] = omega(p, first + k);
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->u = U_BIAS;
    s->w = V_BIAS;
    s->A = (pe_by_distance){.fill  = fill,
                            .fold  = fold,
                            .waves = frequencies,
                            .ranks = p->set[D_MODEL].integer,
                            .least = INT64_MIN,
                            .most  = most_of(p),
                            .param = WR};
}

const pe_encoding pe_transformer_xl = {
    .info.name    = "transformer_xl",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "relative positions by projected sinusoids",
    .info.formula = "S_{h,i,j} = frac{(q_i + u_h) · k_j + (q_i + w_h) · r_h(t)}{sqrt{D}}\n"
                    "r_h(t) = W_h [ sin(t ω) , cos(t ω) ] , ω_k = 10000^{−2 k / d}",
    .info.symbols = "u_h: a learned vector of head h that is added to queries for contents\n"
                    "w_h: a learned vector of head h that is added to queries for distances\n"
                    "r_h: the vector of a distance in head h\n"
                    "W_h: the learned projection of head h\n"
                    "ω_k: frequency k, radians per token\n"
                    "ω: all frequencies\n"
                    "k: a frequency, counted from 0",
    .info.paper   = "arXiv:1901.02860",
    .info.models  = "Transformer-XL",
    .info.beyond =
        "Vectors of distances are computed from sinusoids, so that none is missing: the loss is kept.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .model            = "sigma=1/sqrt(d_model)",
    /* For each distance its sinusoid, three for each pair of channels, and its projection to all heads. */
    .operations         = "(Lq+Lk-1)*(1.5*d_model+2*d_model*H*D)",
    .check              = check,
    .attention.terms    = terms,
    .attention.in_place = 1 << WR,
    PE_TABLES(settings, params, examples),
};

static void xlnet_terms(const pe_problem *p, pe_terms *s)
{
    terms(p, s);
    s->us      = S_BIAS;
    s->G       = SEG_EMBED;
    s->A.least = p->set[CLAMP_LEN].given ? -s->A.most : INT64_MIN;
}

/* The examples' parameter values are 0, 1, 2, ... in memory order; one segment. */
static const posenc_example xlnet_examples[] = {
    {"H=1 D=1 d_model=2 scale=1 clamp_len=4", 0, 3, 3, 0, "w = us = 0: no bias whatever the distance"},
    {"H=2 D=1 d_model=2 scale=1", 1, 5, 5, 4,
     "t = 0: w_1 * Wr[1,1] = 1 * 3, and us_1 * seg_embed[0,1] = 1 * 1"},
    {0},
};

const pe_encoding pe_xlnet = {
    .info.name    = "xlnet",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "Transformer-XL's terms and segments",
    .info.formula = "S_{h,i,j} = frac{(q_i + u_h) · k_j + (q_i + w_h) · r_h(t) + "
                    "(q_i + s_h) · g_{h,z}}{sqrt{D}}\n"
                    "r_h(t) = W_h [ sin(t ω) , cos(t ω) ] , ω_k = 10000^{−2 k / d}",
    .info.symbols = "u_h: a learned vector of head h that is added to queries for contents\n"
                    "w_h: a learned vector of head h that is added to queries for distances\n"
                    "s_h: a learned vector of head h that is added to queries for segments\n"
                    "g_{h,z}: the learned vector of segments: z = 0 of the same one, z = 1 of another\n"
                    "z: 0 where both tokens are of one segment, else 1\n"
                    "r_h: the vector of a distance in head h\n"
                    "W_h: the learned projection of head h\n"
                    "ω_k: frequency k, radians per token\n"
                    "k: a frequency, counted from 0",
    .info.paper   = "arXiv:1906.08237",
    .info.models  = "XLNet",
    .info.beyond = "Vectors of distances are computed from sinusoids, as in Transformer-XL: none is missing.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .model            = "sigma=1/sqrt(d_model)",
    /* For each distance its sinusoid, three for each pair of channels, and its projection to all heads. */
    .operations         = "(Lq+Lk-1)*(1.5*d_model+2*d_model*H*D)",
    .check              = check,
    .attention.terms    = xlnet_terms,
    .attention.in_place = 1 << WR,
    PE_TABLES(settings, xlnet_params, xlnet_examples),
};
