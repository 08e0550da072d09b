/* SPDX-License-Identifier: MIT */
/*
 * trained.c: what a trained model does with positions. Contract: trained.h.
 *
 * Shift      Relativity as it arrives at the loss. Windows of R L/2, so that a table of R L rows has them at
 *            R L/2 too; the first 16 of them are enough, since a difference is either rounding or plain to
 * see. An encoding that refuses such positions (a grid's) has no number there. Attention  The weights after
 * the softmax and before any gate, from posenc_scores and the logarithm of each row's denominator, which has
 * the sinks in it: only the last queries of a window are asked, which have (nearly) all distances before
 * them, so that one mean over them adds up to 1, less what sinks take. Truncated  Bytes [R L/2,
 * R L) once more, a quarter of L at a time, each quarter read at the end of a window of L that starts at
 * position 0: what training looked like. The loss of the same bytes in one pass over R L is the other term of
 * the gain. Who is better there uses what lies further back; who only tolerates it is not.
 *
 * Source     Press et al. 2022, arXiv:2108.12409, appendix B (why a gain at long inputs need not be a longer
 *            memory); Chi et al. 2022, arXiv:2205.09921, section 5.5 (the control with a truncated context).
 */
#include "train/run/trained.h"

#include "base/status.h"
#include "train/run/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_WINDOWS = 16, MASS_WINDOWS = 2, ALIGNMENT = 64 };

#define ROUNDING 1e-4 /* of a mean of weights in float */

/* Half of what is read. */
static int64_t half_of(const pe_run_config *c)
{
    return c->reach / 2 * c->L;
}

int64_t pe_trained_shift_at(const pe_run_config *c, int i)
{
    const int64_t at[PE_SHIFTS] = {1, 16, c->L / 2, c->L, half_of(c)};
    return at[i];
}

pe_trained_layout pe_trained_lay_out(const pe_run_config *config)
{
    pe_trained_layout at = {.near = PE_SHIFTS};
    at.far               = at.near + config->L;
    at.truncated         = at.far + config->reach * config->L;
    at.count             = at.truncated + config->windows;
    return at;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the measures need in addition to the model. */
typedef struct buffers {
    const pe_run_config *config;
    const uint16_t     **windows; /* [most] */
    double              *losses;  /* [most tokens of one pass] */
    float               *scores;  /* [H, L, R L] */
    float               *tokens;  /* of the queries that are asked: [columns, L] */
    posenc_workspace     workspace;
} buffers;

/* What the scores of any layer ask for, and its token inputs. */
static posenc_status workspace_create(buffers *r, const pe_model *m, int64_t *columns, posenc_error *err)
{
    const posenc_plan *plan = NULL;
    size_t             most = 0;
    for (int k = 0; k < m->kind_count; k++) {
        const size_t bytes = posenc_plan_workspace(m->kinds[k].long_plan, POSENC_RUN_SCORES, NULL);
        plan               = !plan || bytes > most ? m->kinds[k].long_plan : plan;
        most               = bytes > most ? bytes : most;
        *columns           = m->kinds[k].columns > *columns ? m->kinds[k].columns : *columns;
    }
    return posenc_workspace_create(&r->workspace, plan, POSENC_RUN_SCORES, NULL, err);
}

static posenc_status buffers_create(buffers *r, const pe_model *m, const pe_run_config *c, posenc_error *err)
{
    const size_t scores        = (size_t)(c->heads * c->L * c->reach * c->L) * sizeof(float);
    int64_t      columns       = 0;
    *r                         = (buffers){.config = c};
    const posenc_status status = workspace_create(r, m, &columns, err);
    if (status)
        return status;
    r->windows = malloc((size_t)pe_model_rows(m) * sizeof *r->windows);
    r->losses  = malloc((size_t)pe_model_tokens(m) * sizeof *r->losses);
    r->scores  = aligned_alloc(ALIGNMENT, (scores + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    r->tokens  = malloc((size_t)(columns * c->L + 1) * sizeof *r->tokens);
    if (r->windows && r->losses && r->scores && r->tokens)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory to measure a trained model");
}

static const uint16_t *window_of(const pe_run_config *c, int64_t w)
{
    return pe_text_window(c->text, c->reach * c->L, c->windows, w);
}

/* ---------------------------------------------------------------- shift --------------------- */

/* Mean loss of the first windows, R L/2 bytes each, the first of which stands at `first`. */
static posenc_status loss_at(double *mean, buffers *r, pe_model *m, int64_t first, posenc_error *err)
{
    const int64_t length = half_of(r->config), all = smaller(SHIFT_WINDOWS, r->config->windows);
    double        sum = 0;
    m->first          = first;
    for (int64_t w = 0; w < all; w += m->long_batch) {
        const pe_batch batch = {.windows = r->windows,
                                .B       = smaller(m->long_batch, all - w),
                                .length  = length};
        for (int64_t b = 0; b < batch.B; b++)
            r->windows[b] = window_of(r->config, w + b);
        const posenc_status status = pe_model_losses(m, r->losses, &batch, err);
        if (status)
            return status;
        for (int64_t i = 0; i < batch.B * length; i++)
            sum += r->losses[i];
    }
    *mean = sum / (double)(all * length);
    return POSENC_OK;
}

/* A refusal of positions is a finding about the encoding, anything else an error. */
static posenc_status measure_shift(float *shift, buffers *r, pe_model *m, posenc_error *err)
{
    double        here, there;
    posenc_status status = loss_at(&here, r, m, 0, err);
    for (int i = 0; i < PE_SHIFTS && !status; i++) {
        status   = loss_at(&there, r, m, pe_trained_shift_at(r->config, i), err);
        shift[i] = status ? NAN : (float)(there - here);
        if (status == POSENC_ERROR_RANGE || status == POSENC_ERROR_UNSUPPORTED)
            status = POSENC_OK;
    }
    m->first = 0;
    return status;
}

/* ---------------------------------------------------------------- attention ----------------- */

/* q (0) or k (1) of window 0 in layer l, rows `first` to before `end`: a view of [B,L,3,H,D] as
   [1,H,rows,D]. */
static posenc_tensor part_of(const pe_model *m, int64_t l, int which, int64_t first, int64_t end)
{
    const int64_t d = m->config.d_model, H = m->config.heads, D = d / H;
    float        *data = (float *)m->layers[l].qkv + (first * 3 + which) * d;
    posenc_tensor t =
        posenc_tensor_contiguous(data, POSENC_DTYPE_F32, 4, (const int64_t[]){1, H, end - first, D});
    t.stride[0] = 3 * (end - first) * d;
    t.stride[1] = D;
    t.stride[2] = 3 * d;
    return t;
}

/* The token inputs of window 0 in layer l, as they stand; those of queries are copied, rows `first` to before
   `end` of the `end` that were read. */
static void take_tokens(posenc_tensor *to, buffers *r, const pe_model *m, int64_t l, int64_t first,
                        int64_t end)
{
    const posenc_encoding *e    = m->stack[l].kind->encoding;
    const int64_t          H    = m->config.heads;
    const float           *from = m->layers[l].tokens;
    float                 *copy = r->tokens;
    for (int i = 0; i < m->stack[l].kind->token_count; i++) {
        const int64_t columns = pe_model_token_columns(m, l, i), channels = columns / H,
                      kept = posenc_token_describe(e, i)->of_keys ? end : end - first, part = kept * channels;
        to[i] = posenc_tensor_contiguous(kept == end ? (float *)from : copy, POSENC_DTYPE_F32, 4,
                                         (const int64_t[]){1, H, kept, channels});
        for (int64_t h = 0; h < H && kept < end; h++, copy += part)
            memcpy(copy, from + (h * end + first) * channels, (size_t)part * sizeof *copy);
        from += columns * end;
    }
}

/* Weights in place of a softmax's (a stick that is broken) do not follow from scores and a denominator. */
static int has_softmaxes(const pe_model *m)
{
    int all = 1;
    for (int k = 0; k < m->kind_count; k++) {
        const posenc_encoding_info *part = posenc_encoding_part(m->kinds[k].encoding, POSENC_PLACE_WEIGHT);
        all &= !part || !part->replaces_softmax;
    }
    return all;
}

/* mass[t] += weight / parts of key q - t, for one query's scores of the keys from .. q; lse: the logarithm of
   its denominator. */
static void add_weights(double *mass, const float *scores, int64_t from, int64_t q, double lse, double parts)
{
    for (int64_t k = from; k <= q; k++)
        mass[q - k] += exp((double)scores[k] - lse) / parts;
}

/* Adds layer l's share of the queries first .. end - 1 of the pass that the model has just made. */
static posenc_status add_layer(double *mass, buffers *r, pe_model *m, int64_t l, int64_t first, int64_t end,
                               double parts, posenc_error *err)
{
    const pe_layer_kind *kind = m->stack[l].kind;
    const int64_t        H = m->config.heads, asked = end - first, shape[4] = {1, H, asked, end};
    const float         *lse = m->layers[l].lse;
    posenc_tensor        tokens[PE_MOST_TOKENS];
    posenc_tensor        S = posenc_tensor_contiguous(r->scores, POSENC_DTYPE_F32, 4, shape);
    take_tokens(tokens, r, m, l, first, end);
    const posenc_attend_in in     = {.size   = sizeof in,
                                     .q      = part_of(m, l, 0, first, end),
                                     .k      = part_of(m, l, 1, 0, end),
                                     .q_pos  = posenc_positions_range((double)first, 1),
                                     .params = pe_model_params(m, l),
                                     .tokens = tokens};
    const posenc_status    status = posenc_scores(kind->long_plan, &in, &S, &r->workspace, err);
    for (int64_t i = 0; i < H * asked && !status; i++) {
        const int64_t q = first + i % asked, window = kind->read.window;
        add_weights(mass, r->scores + i * end, window && window <= q ? q - window + 1 : 0, q,
                    (double)lse[i / asked * end + q], parts);
    }
    return status;
}

/* mass [end]: mean weight by distance, over windows, layers, heads and the queries first .. end - 1; NaN
   where some layer's weights are no softmax. */
static posenc_status measure_mass(float *mass, buffers *r, pe_model *m, int64_t first, int64_t end,
                                  posenc_error *err)
{
    const int64_t all = smaller(MASS_WINDOWS, r->config->windows), layers = m->config.layers;
    const double  parts = (double)(all * layers * m->config.heads * (end - first));
    double       *sums  = calloc((size_t)end, sizeof *sums);
    posenc_status status =
        sums ? POSENC_OK : pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory for the weights");
    for (int64_t w = 0; w < all && !status; w++) {
        const pe_batch batch = {.windows = r->windows, .B = 1, .length = end};
        r->windows[0]        = window_of(r->config, w);
        status               = pe_model_losses(m, r->losses, &batch, err);
        for (int64_t l = 0; l < layers && !status; l++)
            status = add_layer(sums, r, m, l, first, end, parts, err);
    }
    for (int64_t t = 0; t < end && !status; t++)
        mass[t] = has_softmaxes(m) ? (float)sums[t] : NAN;
    free(sums);
    return status;
}

static double sum_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

int64_t pe_trained_distance(const double *mass, int64_t n, double share)
{
    const double all = sum_of(mass, n);
    double       sum = 0;
    for (int64_t t = 0; t < n; t++) {
        sum += mass[t];
        if (sum >= share * all)
            return t;
    }
    return -1;
}

double pe_trained_sunk(const double *mass, int64_t n)
{
    const double missing = mass ? 1 - sum_of(mass, n) : NAN;
    return fabs(missing) < ROUNDING ? 0 : missing;
}

/* ---------------------------------------------------------------- truncated context --------- */

/* A quarter of L, or half of it where that is no whole number: pieces end where a window does. */
static int64_t stride_of(const pe_run_config *c)
{
    return c->L % 4 ? c->L / 2 : c->L / 4;
}

/* Pieces first .. first + count - 1 of all windows: piece i of a window ends i + 1 strides after R L/2. */
static posenc_status read_pieces(double *sums, buffers *r, pe_model *m, int64_t per_window, int64_t first,
                                 int64_t count, posenc_error *err)
{
    const int64_t  L = r->config->L, stride = stride_of(r->config);
    const pe_batch batch = {.windows = r->windows, .B = count, .length = L};
    for (int64_t b = 0; b < count; b++)
        r->windows[b] = window_of(r->config, (first + b) / per_window) + half_of(r->config) +
                        ((first + b) % per_window + 1) * stride - L;
    const posenc_status status = pe_model_losses(m, r->losses, &batch, err);
    for (int64_t b = 0; b < count && !status; b++)
        for (int64_t p = L - stride; p < L; p++)
            sums[(first + b) / per_window] += r->losses[b * L + p];
    return status;
}

static posenc_status measure_truncated(float *truncated, buffers *r, pe_model *m, posenc_error *err)
{
    const pe_run_config *c = r->config;
    const int64_t stride = stride_of(c), per_window = half_of(c) / stride, all = c->windows * per_window;
    double       *sums = calloc((size_t)c->windows, sizeof *sums);
    posenc_status status =
        sums ? POSENC_OK : pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory for the losses");
    for (int64_t first = 0; first < all && !status; first += c->batch)
        status = read_pieces(sums, r, m, per_window, first, smaller(c->batch, all - first), err);
    for (int64_t w = 0; w < c->windows && !status; w++)
        truncated[w] = (float)(sums[w] / (double)(per_window * stride));
    free(sums);
    return status;
}

posenc_status pe_trained_measure(float *numbers, pe_model *model, const pe_run_config *config,
                                 posenc_error *err)
{
    const pe_trained_layout at = pe_trained_lay_out(config);
    const int64_t           L  = config->L;
    buffers                 r;
    posenc_status           status = buffers_create(&r, model, config, err);
    if (!status)
        status = measure_shift(numbers + at.shift, &r, model, err);
    if (!status)
        status = measure_mass(numbers + at.near, &r, model, L / 2, L, err);
    if (!status)
        status = measure_mass(numbers + at.far, &r, model, (config->reach - 1) * L, config->reach * L, err);
    if (!status)
        status = measure_truncated(numbers + at.truncated, &r, model, err);
    free(r.windows);
    free(r.losses);
    free(r.scores);
    free(r.tokens);
    posenc_workspace_free(&r.workspace);
    return status;
}
