/* SPDX-License-Identifier: MIT */
/*
 * formulas.h: the score of one pair as the papers write it, in double
 *
 * An oracle for both executors that shares no line with them: each function is the formula of a paper, for
 * one pair of a query and a key, with no table, no tile and no order of summation chosen for speed. Indices
 * are those of the papers' released code, in floating point where that code uses it. Everything is read from
 * an attention_case, in double, so that finite differences of these formulas are gradients of the paper. A
 * setting stands beside a formula that holds for it alone; sizes of tables are those of the parameters.
 */
#ifndef TESTS_ENCODINGS_FORMULAS_H
#define TESTS_ENCODINGS_FORMULAS_H

#include "attention_case.h"

enum { WIDEST = 128 }; /* of a head, and of d_model */

/* One pair: head h of item b, query i at P, key j at R, t = P - R tokens back. */
typedef struct pair {
    const attention_case *c;
    int64_t               b, h, i, j;
    double                P, R, t;
    const double         *q, *k; /* [D] */
} pair;

typedef double formula(const pair *x);

static inline double place_at(const posenc_positions *pos, int64_t b, int64_t s)
{
    const posenc_tensor *a = &pos->array;
    if (!a->data)
        return pos->start + pos->step * (double)s;
    return (double)((const int64_t *)a->data)[(a->ndim == 2 ? b * a->shape[1] : 0) + s];
}

static inline pair pair_at(const attention_case *c, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const posenc_dims *d = &c->dims;
    const int64_t      g = h / (d->H / d->G);
    pair               x = {c, b, h, i, j, place_at(&c->q_pos, b, i), place_at(&c->k_pos, b, j), 0, 0, 0};
    x.t                  = x.P - x.R;
    x.q                  = c->q.wide + ((b * d->H + h) * d->Lq + i) * d->D;
    x.k                  = c->k.wide + ((b * d->G + g) * d->Lk + j) * d->D;
    return x;
}

/* The parameter of that name, of whichever part. */
static inline const array *parameter(const pair *x, const char *name)
{
    for (int i = 0; i < x->c->param_count; i++) {
        const char *full = posenc_param_name(x->c->e, i), *dot = strrchr(full, '.');
        if (!strcmp(dot ? dot + 1 : full, name))
            return &x->c->params[i];
    }
    fprintf(stderr, "%s has no parameter %s\n", posenc_encoding_spec(x->c->e), name);
    abort();
}

static inline const double *numbers(const pair *x, const char *name)
{
    return parameter(x, name)->wide;
}

static inline double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static inline double limit(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static inline double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

/* Width of a head, and 1/sqrt of some number of them. */
static inline int64_t width(const pair *x)
{
    return x->c->dims.D;
}

static inline double plain(const pair *x)
{
    return dot(x->q, x->k, width(x)) / sqrt((double)width(x));
}

static inline double plain_by_three_tenths(const pair *x)
{
    return dot(x->q, x->k, width(x)) * 0.3;
}

/* ---- a number for each distance ---- */

/* Number s of a token input of one channel, as the head of a pair reads it. */
static inline const double *token_row(const pair *x, const char *name, int64_t s)
{
    const attention_case *c = x->c;
    for (int i = 0; i < c->token_count; i++)
        if (!strcmp(posenc_token_name(c->e, i), name)) {
            const array *t = &c->tokens[i];
            return t->wide +
                   ((x->b * t->shape[1] + x->h / (c->dims.H / t->shape[1])) * t->shape[2] + s) * t->shape[3];
        }
    fprintf(stderr, "%s has no token input %s\n", posenc_encoding_spec(c->e), name);
    abort();
}

static inline double token_at(const pair *x, const char *name, int64_t s)
{
    return *token_row(x, name, s);
}

/* ln of the gates of tokens first .. last; of hidden ones it is 0. */
static inline double log_gates(const pair *x, const char *name, int64_t first, int64_t last)
{
    const attention_case *c   = x->c;
    double                sum = 0;
    for (int64_t s = first; s <= last; s++)
        if (!(c->options.mask & POSENC_MASK_KEY_PADDING) || c->key_allowed[x->b * c->dims.Lk + s])
            sum -= log1p(exp(-token_at(x, name, s)));
    return sum;
}

/* One more than the last key of the query's segment that stands before it, or (with) not beyond it. */
static inline int64_t keys_before(const pair *x, int with)
{
    const attention_case *c  = x->c;
    const int64_t         Lk = c->dims.Lk;
    int64_t               n = 0, has_begun = 0;
    for (int64_t j = 0; j < Lk; j++) {
        const double R   = place_at(&c->k_pos, x->b, j);
        const int    own = !(c->options.mask & POSENC_MASK_SEGMENTS) ||
                        c->k_segments[x->b * Lk + j] == c->q_segments[x->b * c->dims.Lq + x->i];
        if (own && !has_begun++)
            n = j;
        if (own && (R < x->P || (with && R == x->P)))
            n = j + 1;
    }
    return n;
}

/* The difference of two sums of gates, the first n and the first m. */
static inline double gates_between(const pair *x, const char *name, int64_t n, int64_t m)
{
    return n >= m ? log_gates(x, name, m, n - 1) : -log_gates(x, name, n, m - 1);
}

static inline double fox(const pair *x)
{
    return plain(x) + gates_between(x, "f", keys_before(x, 1), x->j + 1);
}

/* q^T H_i ... H_{j+1} k, H = I - beta w w^T; what padding hides changes nothing */
static inline double path(const pair *x)
{
    const int64_t D = width(x), Lk = x->c->dims.Lk;
    const double *W = token_row(x, "w", 0), *beta = token_row(x, "beta", 0); /* looked up once */
    double        q[WIDEST] = {0};
    memcpy(q, x->q, (size_t)D * sizeof *q);
    for (int64_t l = keys_before(x, 1) - 1; l > x->j; l--) {
        const double *w = W + l * D;
        const int seen  = !(x->c->options.mask & POSENC_MASK_KEY_PADDING) || x->c->key_allowed[x->b * Lk + l];
        const double f  = seen ? beta[l] * dot(w, q, D) : 0;
        for (int64_t d = 0; d < D; d++)
            q[d] -= f * w[d];
    }
    return dot(q, x->k, D) / sqrt((double)D);
}

static inline double path_with_gates(const pair *x)
{
    return path(x) + gates_between(x, "f", keys_before(x, 1), x->j + 1);
}

static inline double path_with_scaled_gates(const pair *x)
{
    return path(x) + gates_between(x, "f", keys_before(x, 1), x->j + 1) / sqrt((double)width(x));
}

/* Each channel by its own gates of the tokens between, until next to nothing is left; ahead of the query
 * by 1.
 */
static inline double wall(const pair *x)
{
    const attention_case *c   = x->c;
    const int64_t         own = keys_before(x, 1) - 1;
    double                sum = 0;
    for (int64_t n = 0; n < width(x); n++) {
        double decay = 0;
        for (int64_t l = x->j + 1; l <= own && decay > -60; l++)
            if (!(c->options.mask & POSENC_MASK_KEY_PADDING) || c->key_allowed[x->b * c->dims.Lk + l])
                decay -= log1p(exp(-token_row(x, "g", l)[n]));
        sum += x->q[n] * x->k[n] * exp(decay);
    }
    return sum / sqrt((double)width(x));
}

static inline double wall_with_gates(const pair *x)
{
    return wall(x) + gates_between(x, "f", keys_before(x, 1), x->j + 1);
}

static inline double fox_of_keys(const pair *x)
{
    return plain(x) + gates_between(x, "f", keys_before(x, 0), x->j);
}

static inline double fox_both(const pair *x)
{
    const int64_t n = keys_before(x, 1);
    return plain(x) +
           (x->t >= 0 ? gates_between(x, "f", n, x->j + 1) : gates_between(x, "f_ahead", x->j + 1, n));
}

static inline double fox_constant(const pair *x)
{
    return plain(x) + x->t * -log1p(exp(-numbers(x, "b")[x->h]));
}

/* q.k / D, and r times a column of the bank: of all heads, or (first: the head's) of one */
static inline double with_profile(const pair *x, int64_t width, int64_t extent, int64_t first)
{
    const double *bank = numbers(x, "bank") + first * width * extent, *r = token_row(x, "r", x->i);
    double        sum = plain(x) / sqrt((double)x->c->dims.D);
    for (int64_t n = 0; x->t >= 0 && x->t < (double)extent && n < width; n++)
        sum += r[n] * bank[n * extent + (int64_t)x->t];
    return sum;
}

static inline double inkling(const pair *x)
{
    return with_profile(x, 3, 40, 0);
}

static inline double inkling_heads(const pair *x)
{
    return with_profile(x, 18, 5, x->h);
}

/* mu(x) = ln(1 + e^x) */
static inline double softplus(double x)
{
    return log1p(exp(x));
}

static inline double pope(const pair *x)
{
    const int64_t D     = x->c->dims.D;
    const double *delta = numbers(x, "delta") + x->h * D;
    double        sum   = 0;
    for (int64_t c = 0; c < D; c++)
        sum += softplus(x->q[c]) * softplus(x->k[c]) *
               cos(-x->t * pow(10000, -(double)c / (double)D) + fmin(fmax(delta[c], -2 * acos(-1)), 0));
    return sum / sqrt((double)D);
}

static inline double alibi(const pair *x)
{
    return plain(x) - numbers(x, "slopes")[x->h] * fabs(x->t);
}

static inline double alibi_shifted(const pair *x)
{
    return plain(x) + numbers(x, "slopes")[x->h] * x->R;
}

/* The authors' code moves both parameters to 0.01 at least, and the power to 2 at most. */
static inline double kerple_log(const pair *x)
{
    const double p = fmax(numbers(x, "p")[x->h], 0.01), a = fmax(numbers(x, "a")[x->h], 0.01);
    return plain(x) - p * log(1 + a * fabs(x->t));
}

static inline double kerple_power(const pair *x)
{
    const double p = limit(numbers(x, "p")[x->h], 0.01, 2), a = fmax(numbers(x, "a")[x->h], 0.01);
    return plain(x) - (x->t == 0 ? 0 : a * pow(fabs(x->t), p));
}

/* mesh-tensorflow's _relative_position_bucket of rel = P(j) - P(i); the distances asked here lie on no
   boundary but exact ones, which a millionth of a millionth decides. */
static inline int64_t bucket_of(double rel, int64_t buckets, double most, int both)
{
    const int64_t count = both ? buckets / 2 : buckets, exact = count / 2,
                  first = both && rel > 0 ? count : 0;
    const double n = both ? fabs(rel) : fmax(-rel, 0), m = (double)exact;
    if (n < m)
        return first + (int64_t)n;
    return first + (int64_t)fmin((double)count - 1,
                                 m + floor(log(n / m) / log(most / m) * (double)(count - exact) + 1e-12));
}

static inline double t5_both(const pair *x) /* num_buckets=8:max_distance=20 */
{
    return dot(x->q, x->k, width(x)) + numbers(x, "table")[bucket_of(-x->t, 8, 20, 1) * x->c->dims.H + x->h];
}

static inline double t5_past(const pair *x) /* num_buckets=7:max_distance=30:bidirectional=no */
{
    return dot(x->q, x->k, width(x)) + numbers(x, "table")[bucket_of(-x->t, 7, 30, 0) * x->c->dims.H + x->h];
}

static inline double sandwich(const pair *x) /* d_bar=10 */
{
    double sum = -5;
    for (int m = 1; m <= 5; m++)
        sum += cos(x->t * pow(10000, -2 * m / 10.0));
    return plain(x) + sum / (8 * (double)(x->h + 1) / (double)x->c->dims.H);
}

static inline double table_by_distance(const pair *x, double low, double high)
{
    const int64_t R = (int64_t)(high - low) + 1;
    return plain(x) + numbers(x, "table")[x->h * R + (int64_t)(limit(x->t, low, high) - low)];
}

static inline double relative_table(const pair *x) /* max_relative=3 */
{
    return table_by_distance(x, -3, 3);
}

static inline double relative_table_ends(const pair *x) /* min_distance=-2:max_distance=5 */
{
    return table_by_distance(x, -2, 5);
}

static inline double toeplitz(const pair *x) /* first=-90:count=200 */
{
    return plain(x) + numbers(x, "b")[x->h * 200 + (int64_t)x->t + 90];
}

static inline double toeplitz_past(const pair *x) /* first=0 */
{
    const array *b = parameter(x, "b");
    return plain(x) + b->wide[x->h * b->shape[1] + (int64_t)x->t];
}

/* ---- a number for each pair of positions ---- */

static inline double dense_own(const pair *x)
{
    const posenc_dims *d = &x->c->dims;
    return plain(x) + numbers(x, "b")[(x->h * d->Lq + x->i) * d->Lk + x->j];
}

static inline double dense_shared(const pair *x)
{
    return plain(x) + numbers(x, "shared_b")[x->i * x->c->dims.Lk + x->j];
}

static inline double by_grid(const pair *x, int64_t columns)
{
    const int64_t p = (int64_t)x->P, r = (int64_t)x->R;
    const int64_t at = llabs(p / columns - r / columns) * columns + llabs(p % columns - r % columns);
    return numbers(x, "table")[at * x->c->dims.H + x->h];
}

static inline double absolute_line(const pair *x) /* grid=80x1 */
{
    return plain(x) + by_grid(x, 1) * sqrt((double)width(x));
}

static inline double absolute_grid(const pair *x) /* grid=9x8 */
{
    return plain(x) + by_grid(x, 8) * sqrt((double)width(x));
}

static inline double absolute_grid_plain(const pair *x) /* grid=9x8:divide=no */
{
    return plain(x) + by_grid(x, 8);
}

enum { COLUMNS = 8 }; /* of Swin's window */

static inline void offset(const pair *x, int64_t to[2])
{
    const int64_t p = (int64_t)x->P, r = (int64_t)x->R;
    to[0] = p / COLUMNS - r / COLUMNS;
    to[1] = p % COLUMNS - r % COLUMNS;
}

static inline double swin(const pair *x) /* window=?x8 */
{
    const array  *table  = parameter(x, "table");
    const int64_t across = 2 * COLUMNS - 1, most = table->shape[0] / across / 2; /* rows - 1 */
    int64_t       o[2];
    offset(x, o);
    return plain(x) + table->wide[((o[0] + most) * across + o[1] + COLUMNS - 1) * x->c->dims.H + x->h];
}

static inline double decomposed(const pair *x) /* grid=?x8 */
{
    const array  *Rh = parameter(x, "Rh"), *Rw = parameter(x, "Rw");
    const int64_t D = x->c->dims.D, most = Rh->shape[0] / 2; /* rows - 1 */
    int64_t       o[2];
    offset(x, o);
    return plain(x) + dot(x->q, Rh->wide + (o[0] + most) * D, D) +
           dot(x->q, Rw->wide + (o[1] + COLUMNS - 1) * D, D);
}

/* The network of Swin v2, trained on a window of those sides. */
static inline double swin_v2_of(const pair *x, double rows, double columns)
{
    const double *W1 = numbers(x, "W1"), *W2 = numbers(x, "W2"), *b1 = numbers(x, "b1");
    const int64_t n = parameter(x, "b1")->shape[0], D = width(x);
    double        sum = 0, y[2], side[2] = {rows, columns};
    int64_t       o[2];
    offset(x, o);
    for (int a = 0; a < 2; a++) {
        const double share = 8 * (double)o[a] / (side[a] - 1);
        y[a]               = copysign(log2(1 + fabs(share)) / 3, share);
    }
    for (int64_t m = 0; m < n; m++)
        sum += W2[x->h * n + m] * fmax(0, W1[2 * m] * y[0] + W1[2 * m + 1] * y[1] + b1[m]);
    const double cosine = dot(x->q, x->k, D) / sqrt(dot(x->q, x->q, D) * dot(x->k, x->k, D));
    return exp(fmin(numbers(x, "logit_scale")[x->h], log(100))) * cosine + 16 * sigmoid_of(sum);
}

static inline double swin_v2(const pair *x) /* window=9x8 */
{
    return swin_v2_of(x, 9, COLUMNS);
}

static inline double swin_v2_long(const pair *x) /* window=512x8 */
{
    return swin_v2_of(x, 512, COLUMNS);
}

static inline double swin_v2_larger(const pair *x) /* pretrained_window=4x5 */
{
    return swin_v2_of(x, 4, 5);
}

static inline double fire(const pair *x) /* init_L=4 */
{
    const double *W1 = numbers(x, "W1"), *b1 = numbers(x, "b1"), *W2 = numbers(x, "W2");
    const int64_t n = parameter(x, "b1")->shape[0];
    const double  c = *numbers(x, "c"), start = fabs(*numbers(x, "L_mult") * 4);
    const double  share = log(fabs(c * x->t) + 1) / (log(fabs(c * fmax(x->P, start)) + 1) + 1e-6);
    double        sum   = numbers(x, "b2")[x->h];
    for (int64_t m = 0; m < n; m++)
        sum += W2[x->h * n + m] * fmax(0, W1[m] * share + b1[m]);
    return plain(x) + sum;
}

/* ---- a vector for each distance ---- */

/* Row x of a table of vectors; of each head its own, or one for all. */
static inline const double *vector_at(const pair *x, const char *name, int64_t row)
{
    const array  *a = parameter(x, name);
    const int64_t n = a->shape[a->ndim - 1], R = a->shape[a->ndim - 2];
    return a->wide + ((a->ndim == 3 ? x->h * R : 0) + row) * n;
}

static inline double shaw_of(const pair *x, double low, double high, int zero)
{
    const double at = limit(-x->t, low, high);
    if (zero && at != -x->t)
        return plain(x);
    return plain(x) + dot(x->q, vector_at(x, "rk", (int64_t)(at - low)), width(x)) / sqrt((double)width(x));
}

static inline double shaw(const pair *x) /* max_relative=3 */
{
    return shaw_of(x, -3, 3, 0);
}

static inline double shaw_zero(const pair *x) /* min_distance=-4:max_distance=2:beyond=zero */
{
    return shaw_of(x, -4, 2, 1);
}

static inline double shaw_value_row(const pair *x) /* max_relative=3 */
{
    return limit(-x->t, -3, 3) + 3;
}

static inline double huang_with(const pair *x, const double *vector)
{
    const int64_t most = parameter(x, "dist")->shape[0] / 2;
    return dot(vector, vector_at(x, "dist", (int64_t)x->t + most), width(x)) / sqrt((double)width(x));
}

static inline double huang_query(const pair *x)
{
    return plain(x) + huang_with(x, x->q);
}

static inline double huang(const pair *x)
{
    return huang_query(x) + huang_with(x, x->k);
}

/* (q + bias of the head) . vector */
static inline double product_with(const pair *x, const char *bias, const double *vector)
{
    return dot(x->q, vector, width(x)) + dot(numbers(x, bias) + x->h * width(x), vector, width(x));
}

static inline double transformer_xl_at(const pair *x, double t)
{
    const int64_t D = width(x), n = x->c->dims.d_model, H = x->c->dims.H;
    const double *Wr        = numbers(x, "Wr");
    double        r[WIDEST] = {0};
    for (int64_t m = 0; m < n; m++) {
        const int64_t k     = m % (n / 2);
        const double  angle = t * pow(10000, -2 * (double)k / (double)n);
        for (int64_t d = 0; d < D; d++)
            r[d] += (m < n / 2 ? sin(angle) : cos(angle)) * Wr[(m * H + x->h) * D + d];
    }
    return (product_with(x, "u_bias", x->k) + product_with(x, "v_bias", r)) / sqrt((double)D);
}

static inline double transformer_xl(const pair *x)
{
    return transformer_xl_at(x, x->t);
}

static inline double transformer_xl_clamped(const pair *x) /* clamp_len=3 */
{
    return transformer_xl_at(x, fmin(x->t, 3));
}

static inline double xlnet(const pair *x) /* clamp_len=3 */
{
    const posenc_dims *d     = &x->c->dims;
    const int          other = x->c->q_segments[x->b * d->Lq + x->i] != x->c->k_segments[x->b * d->Lk + x->j];
    const double      *g     = numbers(x, "seg_embed") + (other * d->H + x->h) * d->D;
    return transformer_xl_at(x, limit(x->t, -3, 3)) + product_with(x, "s_bias", g) / sqrt((double)d->D);
}

/* make_log_bucket_position of microsoft/DeBERTa. */
static inline double log_bucket(double t, double buckets, double most)
{
    const double middle = buckets / 2, n = fabs(t) < middle ? middle - 1 : fabs(t);
    if (n <= middle)
        return t;
    return copysign(ceil(log(n / middle) / log((most - 1) / middle) * (middle - 1) - 1e-12) + middle, t);
}

/* LayerNorm(row) into `to`, with weight and bias. */
static inline void normalise(const double *row, const double *weight, const double *bias, int64_t n,
                             double eps, double *to)
{
    double mean = 0, variance = 0;
    for (int64_t m = 0; m < n; m++)
        mean += row[m] / (double)n;
    for (int64_t m = 0; m < n; m++)
        variance += (row[m] - mean) * (row[m] - mean) / (double)n;
    for (int64_t m = 0; m < n; m++)
        to[m] = (row[m] - mean) / sqrt(variance + eps) * weight[m] + bias[m];
}

/* Row `row` of a table of DeBERTa as head h sees it: given, or projected from P. */
static inline void deberta_row(const pair *x, int is_key, int64_t row, double to[WIDEST])
{
    const int64_t D = width(x), n = x->c->dims.d_model;
    double        seen[WIDEST];
    if (!strstr(posenc_encoding_spec(x->c->e), "projected=no")) {
        memcpy(to, vector_at(x, is_key ? "pos_k" : "pos_q", row), (size_t)D * sizeof *to);
        return;
    }
    const double *W = numbers(x, is_key ? "W_kr" : "W_qr") + x->h * D * n;
    const double *b = numbers(x, is_key ? "b_kr" : "b_qr") + x->h * D;
    normalise(numbers(x, "P") + row * n, numbers(x, "ln_w"), numbers(x, "ln_b"), n, 1e-7, seen);
    for (int64_t d = 0; d < D; d++)
        to[d] = dot(W + d * n, seen, n) + b[d];
}

/* delta is what distances t and -t are made into; terms: 1 content to position, 2 the other, 3 both. */
static inline double deberta_of(const pair *x, const double delta[2], double span, int terms)
{
    double pos[WIDEST], sum = dot(x->q, x->k, width(x));
    deberta_row(x, terms != 2, (int64_t)limit(delta[0] + span, 0, 2 * span - 1), pos);
    sum += terms & 1 ? dot(x->q, pos, width(x)) : 0;
    if (terms == 3)
        deberta_row(x, 0, (int64_t)limit(delta[1] + span, 0, 2 * span - 1), pos);
    sum += terms & 2 ? dot(x->k, pos, width(x)) : 0;
    return sum / sqrt((double)width(x) * (terms == 3 ? 3 : 2));
}

static inline double deberta(const pair *x) /* span=4 */
{
    return deberta_of(x, (double[]){x->t, x->t}, 4, 3);
}

static inline double deberta_paper(const pair *x) /* span=4:p2c_index=paper */
{
    return deberta_of(x, (double[]){x->t, -x->t}, 4, 3);
}

static inline double deberta_c2p(const pair *x) /* span=4:terms=c2p */
{
    return deberta_of(x, (double[]){x->t, x->t}, 4, 1);
}

static inline double deberta_p2c(const pair *x) /* span=4:terms=p2c */
{
    return deberta_of(x, (double[]){x->t, x->t}, 4, 2);
}

static inline double deberta_v3(const pair *x) /* position_buckets=6:max_relative_positions=20 */
{
    const double at = log_bucket(x->t, 6, 20);
    return deberta_of(x, (double[]){at, at}, 6, 3);
}

/* ---- products of positions, gates, complex numbers, rotations ---- */

/* Projected position of row `row` in head h of the keys or queries. */
static inline void tupe_row(const pair *x, int64_t row, int is_key, double to[WIDEST])
{
    const posenc_dims *d = &x->c->dims;
    const int64_t      n = d->d_model, head = is_key ? x->h / (d->H / d->G) : x->h;
    const double      *U    = numbers(x, is_key ? "Uk" : "Uq") + head * d->D * n;
    const double      *bias = numbers(x, is_key ? "bk" : "bq") + head * d->D;
    double             seen[WIDEST];
    normalise(numbers(x, "pos") + row * n, numbers(x, "ln_w"), numbers(x, "ln_b"), n, 1e-5, seen);
    for (int64_t c = 0; c < d->D; c++)
        to[c] = dot(U + c * n, seen, n) + bias[c];
}

static inline double tupe_of(const pair *x, int has_cls)
{
    const int     cls   = has_cls && (x->P == 0 || x->R == 0);
    const int64_t theta = cls ? x->P != 0 : 0; /* row 0 with itself, or row 1 */
    double        p[WIDEST], r[WIDEST];
    tupe_row(x, cls ? theta : (int64_t)x->P + 1, 0, p);
    tupe_row(x, cls ? theta : (int64_t)x->R + 1, 1, r);
    return (dot(x->q, x->k, width(x)) + dot(p, r, width(x))) / sqrt(2 * (double)width(x));
}

static inline double tupe(const pair *x)
{
    return tupe_of(x, 1);
}

static inline double tupe_without_cls(const pair *x) /* cls=no */
{
    return tupe_of(x, 0);
}

static inline double tupe_relative(const pair *x) /* relative=yes:num_buckets=8:max_distance=20 */
{
    const int64_t bin = x->P == 0 ? 4 : x->R == 0 ? 8 : bucket_of(-x->t, 8, 20, 1);
    return tupe_of(x, 1) + numbers(x, "table")[bin * x->c->dims.H + x->h];
}

static inline int is_seen(const pair *x);

/* q . e(p) without its scale, 8 vectors; p is the sum of the gates from the key on. */
static inline double cope_at(const pair *x, double gates)
{
    const double p = fmin(gates, 7), below = floor(p);
    const double low = dot(x->q, vector_at(x, "E", (int64_t)below), width(x));
    return low + (p - below) * (dot(x->q, vector_at(x, "E", (int64_t)ceil(p)), width(x)) - low);
}

static inline double cope_term(const pair *x)
{
    double gates = 0;
    for (int64_t j = x->j; j < x->c->dims.Lk; j++) {
        const pair later = pair_at(x->c, x->b, x->h, x->i, j);
        gates += is_seen(&later) ? sigmoid_of(plain(&later)) : 0;
    }
    return cope_at(x, gates);
}

static inline double cope(const pair *x) /* npos=8 */
{
    return plain(x) + cope_term(x) / sqrt((double)width(x));
}

static inline double cope_paper(const pair *x) /* npos=8:scaling=paper */
{
    return plain(x) + cope_term(x);
}

static inline double modulus(const pair *x, double sign)
{
    const int64_t n  = width(x) / 2;
    const double  re = dot(x->q, x->k, n) + sign * dot(x->q + n, x->k + n, n);
    const double  im = dot(x->q + n, x->k, n) - sign * dot(x->q, x->k + n, n);
    return sqrt((re * re + im * im) / (double)n);
}

static inline double complex_plain(const pair *x)
{
    return modulus(x, -1);
}

static inline double complex_conjugate(const pair *x) /* conjugate=yes */
{
    return modulus(x, 1);
}

/* Rotated q . k: pair m of `dim` channels by its angle, times growth[m]^t; the rest as it is. */
static inline double rotated(const pair *x, int64_t dim, int is_half, double zeta_per)
{
    double sum = dot(x->q + dim, x->k + dim, width(x) - dim);
    for (int64_t m = 0; m < dim / 2; m++) {
        const int64_t a = is_half ? m : 2 * m, b = is_half ? m + dim / 2 : 2 * m + 1;
        const double  angle = x->t * pow(10000, -2 * (double)m / (double)dim);
        const double  zeta  = (2 * (double)m / (double)dim + 0.4) / 1.4;
        const double  decay = zeta_per > 0 ? pow(zeta, x->t / zeta_per) : 1;
        sum += decay * (cos(angle) * (x->q[a] * x->k[a] + x->q[b] * x->k[b]) +
                        sin(angle) * (x->q[a] * x->k[b] - x->q[b] * x->k[a]));
    }
    return sum / sqrt((double)width(x));
}

/* The same of all channels, turned as from a distance T and by a phase. */
static inline double turned(const pair *x, double T, double phase)
{
    const int64_t D   = width(x);
    double        sum = 0;
    for (int64_t a = 0; a < D; a += 2) {
        const double angle = T * pow(10000, -(double)a / (double)D) + phase;
        sum += cos(angle) * (x->q[a] * x->k[a] + x->q[a + 1] * x->k[a + 1]) +
               sin(angle) * (x->q[a] * x->k[a + 1] - x->q[a + 1] * x->k[a]);
    }
    return sum / sqrt((double)D);
}

static inline double rope_odd_phase(const pair *x) /* q_phase=0.7:phase_heads=odd */
{
    return turned(x, x->t, x->h % 2 ? 0.7 : 0);
}

static inline double rope_rerope(const pair *x) /* map_window=3 */
{
    return turned(x, fmax(-3, fmin(3, x->t)), 0);
}

static inline double rope_leaky(const pair *x) /* map_window=3:map_factor=4 */
{
    const double far = fabs(x->t);
    return turned(x, far < 3 ? x->t : copysign(3 + (far - 3) / 4, x->t), 0);
}

static inline double rope_self_extend(const pair *x) /* map_window=5:map_factor=2 */
{
    const double key = x->P - x->t;
    return turned(x, x->t < 5 ? x->t : floor(x->P / 2) - floor(key / 2) + 5 - 2, 0);
}

static inline double rope_dca(const pair *x) /* map_chunk=5:map_local=1 */
{
    const double key = x->P - x->t, n = floor(x->P / 4) - floor(key / 4), m = x->P - 4 * floor(x->P / 4),
                 far = n <= 0   ? m
                       : n == 1 ? fmin(m + 4, 5)
                                : fmin(2 * 4 - 1, 5);
    return turned(x, far - (key - 4 * floor(key / 4)), 0);
}

/* The angle of pair m of token l: phi of it, or summed from its segment's first token on. Hidden steps are 0.
 */
static inline double angle_of_token(const pair *x, int64_t l, int64_t m, int sums)
{
    const attention_case *c  = x->c;
    const int64_t        *in = c->k_segments + x->b * c->dims.Lk, own = l < 0 ? 0 : in[l];
    const int             by_segment = (c->options.mask & POSENC_MASK_SEGMENTS) != 0;
    double                sum        = 0;
    if (!sums)
        return l < 0 ? 0 : token_row(x, "phi", l)[m];
    for (int64_t u = l; u >= 0 && (!by_segment || in[u] == own); u--)
        if (!(c->options.mask & POSENC_MASK_KEY_PADDING) || c->key_allowed[x->b * c->dims.Lk + u])
            sum += token_row(x, "phi", u)[m];
    return sum;
}

/* The key that is the query itself; -1: it stands before the first. */
static inline int64_t own_key(const pair *x)
{
    const int64_t n     = keys_before(x, 1);
    pair          early = *x;
    early.P             = -1e9;
    return n > keys_before(&early, 1) ? n - 1 : -1;
}

/* turned(), by a difference of angles for each pair. */
static inline double turned_by_content(const pair *x, int kind) /* 0: z, 1: phi, 2: sums of phi */
{
    const int64_t D = width(x), i = own_key(x);
    double        sum = 0;
    for (int64_t m = 0; m < D / 2; m++) {
        const int64_t a = 2 * m, b = a + 1;
        const double  w    = kind == 1 ? 1 : pow(10000, -2 * (double)m / (double)D),
                     angle = w * (kind == 0 ? (i < 0 ? 0 : token_at(x, "z", i)) - token_at(x, "z", x->j)
                                            : angle_of_token(x, i, m, kind == 2) -
                                                  angle_of_token(x, x->j, m, kind == 2));
        sum += cos(angle) * (x->q[a] * x->k[a] + x->q[b] * x->k[b]) +
               sin(angle) * (x->q[a] * x->k[b] - x->q[b] * x->k[a]);
    }
    return sum / sqrt((double)D);
}

static inline double rope_by_position(const pair *x) /* content=position */
{
    return turned_by_content(x, 0);
}

static inline double rope_by_angle(const pair *x) /* content=angle */
{
    return turned_by_content(x, 1);
}

static inline double rope_by_step(const pair *x) /* content=step */
{
    return turned_by_content(x, 2);
}

static inline double rope(const pair *x)
{
    return rotated(x, width(x), 0, 0);
}

static inline double rope_half(const pair *x) /* layout=half:dim=4 */
{
    return rotated(x, 4, 1, 0);
}

static inline double rope_alibi(const pair *x)
{
    return rotated(x, width(x), 0, 0) + alibi(x) - plain(x);
}

static inline double xpos(const pair *x) /* scale_base=20 */
{
    return rotated(x, width(x), 0, 20);
}

/* ---- the weight part ---- */

static inline double urpe_row(const pair *x, const char *name) /* rows = 2 (index_offset + 1) */
{
    const array *table = parameter(x, name);
    return table->wide[(table->shape[0] / 2 - 1 - (int64_t)x->t) * x->c->dims.H + x->h];
}

static inline double urpe(const pair *x)
{
    return plain(x) + urpe_row(x, "table");
}

static inline double urpe_gate(const pair *x)
{
    return urpe_row(x, "c");
}

/* ---- masks, softmax, output ---- */

static inline int is_seen(const pair *x)
{
    const posenc_dims *d    = &x->c->dims;
    const int          mask = x->c->options.mask;
    return (!(mask & POSENC_MASK_CAUSAL) || x->t >= 0) &&
           (!(mask & POSENC_MASK_WINDOW) || fabs(x->t) < (double)x->c->options.window) &&
           (!(mask & POSENC_MASK_KEY_PADDING) || x->c->key_allowed[x->b * d->Lk + x->j]) &&
           (!(mask & POSENC_MASK_EXPLICIT) || x->c->allowed[(x->b * d->Lq + x->i) * d->Lk + x->j]) &&
           (!(mask & POSENC_MASK_SEGMENTS) ||
            x->c->q_segments[x->b * d->Lq + x->i] == x->c->k_segments[x->b * d->Lk + x->j]);
}

/* What an encoding is here: SPEC, the score of a pair, a factor of its weight and the table of vectors that
   is added to the values (NULL: none), whether it needs a causal mask or positions that none is below 0. */
typedef struct told {
    const char *spec;
    formula    *score, *gate;
    const char *values;
    formula    *value_row; /* which row of that table; below 0: none */
    int         is_causal, from_zero;
} told;

/* The same where weights break a stick; s[j] scores, -infinity where a pair is not seen. */
static inline double stick_row(const told *f, const attention_case *c, const pair *x, const double *s,
                               double *o)
{
    const posenc_dims *d    = &c->dims;
    const int64_t      g    = x->h / (d->H / d->G);
    double             left = 0;
    for (int64_t j = d->Lk - 1; j >= -1; j--) {
        const int     rest = j < 0; /* what is left, to the query's own value */
        const int64_t at   = rest ? own_key(x) : j;
        if (rest && (!strstr(f->spec, "remainder=self") || at < 0 ||
                     ((c->options.mask & POSENC_MASK_KEY_PADDING) && !c->key_allowed[x->b * d->Lk + at])))
            continue;
        const pair key = pair_at(c, x->b, x->h, x->i, at);
        if (!rest && (s[j] == -INFINITY || (key.t == 0 && !strstr(f->spec, "attend_current=yes"))))
            continue;
        const double  weight = rest ? exp(left) : sigmoid_of(s[j]) * exp(left);
        const double *v      = c->v.wide + ((x->b * d->G + g) * d->Lk + at) * d->Dv;
        for (int64_t e = 0; e < d->Dv; e++)
            o[e] += weight * v[e];
        left -= rest ? 0 : log1p(exp(s[j]));
    }
    return left;
}

/* Output row [Dv] of head h of item b at query i, and its lse. */
static inline double formula_row(const told *f, const attention_case *c, int64_t bhi, double *o)
{
    const posenc_dims *d = &c->dims;
    const int64_t      i = bhi % d->Lq, h = bhi / d->Lq % d->H, b = bhi / d->Lq / d->H;
    const int64_t      g = h / (d->H / d->G);
    double            *s = malloc((size_t)d->Lk * sizeof *s), most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < d->Lk; j++) {
        const pair x = pair_at(c, b, h, i, j);
        s[j]         = is_seen(&x) ? f->score(&x) : -INFINITY;
        most         = fmax(most, s[j]);
    }
    memset(o, 0, (size_t)d->Dv * sizeof *o);
    if (strstr(f->spec, "stick_breaking")) {
        const pair   first = pair_at(c, b, h, i, 0);
        const double left  = stick_row(f, c, &first, s, o);
        free(s);
        return left;
    }
    for (int64_t j = 0; most > -INFINITY && j < d->Lk; j++)
        sum += exp(s[j] - most);
    for (int64_t j = 0; most > -INFINITY && j < d->Lk; j++) {
        const pair    x      = pair_at(c, b, h, i, j);
        const double  weight = s[j] == -INFINITY ? 0 : exp(s[j] - most) / sum * (f->gate ? f->gate(&x) : 1);
        const double *v      = c->v.wide + ((b * d->G + g) * d->Lk + j) * d->Dv;
        const double  row    = f->values ? f->value_row(&x) : -1;
        for (int64_t e = 0; e < d->Dv; e++)
            o[e] += weight * (v[e] + (row < 0 ? 0 : vector_at(&x, f->values, (int64_t)row)[e]));
    }
    free(s);
    return most == -INFINITY ? -INFINITY : most + log(sum);
}

#endif
