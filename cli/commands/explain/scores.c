/* SPDX-License-Identifier: MIT */
/*
 * scores.c: what an encoding adds to the scores of one query, key by key and head by head, and what becomes
 * of its weights
 *
 * What is added whatever the content is posenc_bias's. Some encodings add products of the content as well:
 * then the scores of one query and the same key at every position differ by more than that, and they are
 * shown too. A factor on weights is an output (posenc_attend) whose values are unit vectors, divided by the
 * softmax of the scores; weights that are no softmax's are that output. Parameters that all start as one
 * number tell nothing, so N(0,1) is added to them.
 */
#include "cli/commands/explain/explain.h"
#include "measure/measure.h"

#include <math.h>
#include <posenc/rotary.h>
#include <string.h>

enum { HEADS = 4, KEYS = 8, MOST_KEYS = 256, MOST_PARAMS = 32 };

typedef struct score_rows {
    cli_explanation *x;
    pe_calc         *p;
    int64_t          H, D, L; /* L keys */
    const double    *vector, *key;
    double          *bias, *scores, *softmax, *weights; /* [H,L] */
    posenc_tensor   *tokens;                            /* drawn */
    int              sees_content;
} score_rows;

/* ---------------------------------------------------------------- the library's ------------- */

/* [1,H,rows,D] of the same vector. */
static posenc_tensor repeat(score_rows *r, const double *vector, int64_t rows)
{
    posenc_tensor t = pe_calc_make(r->p, POSENC_DTYPE_F64, 4, (const int64_t[4]){1, r->H, rows, r->D});
    for (int64_t i = 0; i < r->H * rows * r->D && t.data; i++)
        pe_calc_put(&t, i, vector[i % r->D]);
    return t;
}

/* [1,H,L,L]: value j is unit vector j. */
static posenc_tensor unit_values(score_rows *r)
{
    const int64_t L = r->L;
    posenc_tensor t = pe_calc_make(r->p, POSENC_DTYPE_F64, 4, (const int64_t[4]){1, r->H, L, L});
    for (int64_t i = 0; i < r->H * L && t.data; i++)
        pe_calc_put(&t, i * L + i % L, 1);
    return t;
}

static posenc_attend_in inputs(score_rows *r)
{
    const posenc_attend_in in = {.size   = sizeof in,
                                 .q      = repeat(r, r->vector, 1),
                                 .k      = repeat(r, r->key, r->L),
                                 .v      = unit_values(r),
                                 .q_pos  = cli_explain_at(r->x, &r->x->position,
                                                          posenc_rotary_coordinates(r->p->plan), 0, 1),
                                 .k_pos  = posenc_positions_range(0, 1),
                                 .params = r->p->params,
                                 .tokens = r->tokens};
    return in;
}

static void find_scores(score_rows *r, const posenc_attend_in *in)
{
    posenc_tensor bias =
        posenc_tensor_contiguous(r->bias, POSENC_DTYPE_F64, 3, (const int64_t[3]){r->H, 1, r->L});
    posenc_tensor S =
        posenc_tensor_contiguous(r->scores, POSENC_DTYPE_F64, 4, (const int64_t[4]){1, r->H, 1, r->L});
    const posenc_dims dims = {.H = r->H, .D = r->D};
    if (pe_calc_failed(r->p) || pe_tokens_bias(r->p->plan, in, &dims, &bias, &r->p->work, &r->p->err))
        return;
    posenc_scores(r->p->plan, in, &S, &r->p->work, &r->p->err);
}

static void find_weights(score_rows *r, const posenc_attend_in *in)
{
    const int64_t           shape[] = {1, r->H, 1, r->L};
    const posenc_tensor     o       = posenc_tensor_contiguous(r->weights, POSENC_DTYPE_F64, 4, shape);
    const posenc_attend_out out     = {.size = sizeof out, .o = o};
    if (!pe_calc_failed(r->p))
        posenc_attend(r->p->plan, in, &out, &r->p->work, &r->p->err);
}

/* ---------------------------------------------------------------- what follows -------------- */

/* The same key everywhere: what the bias does not explain must be the same everywhere too. */
static int sees_content(const score_rows *r)
{
    double most = 0;
    for (int64_t i = 0; i < r->H * r->L; i++) {
        const int64_t first = i - i % r->L;
        most                = fmax(most, fabs(r->scores[i] - r->bias[i] - r->scores[first] + r->bias[first]));
    }
    return most > 1e-9;
}

/* Over the keys that the query sees. */
static void find_softmax(score_rows *r)
{
    const int    causal = (r->p->options.mask & POSENC_MASK_CAUSAL) != 0;
    const double P      = r->x->position.real[0];
    for (int64_t h = 0; h < r->H; h++) {
        const double *S = r->scores + h * r->L;
        double       *w = r->softmax + h * r->L, largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < r->L; j++)
            largest = fmax(largest, S[j]);
        for (int64_t j = 0; j < r->L; j++)
            sum += w[j] = causal && (double)j > P ? 0 : exp(S[j] - largest);
        for (int64_t j = 0; j < r->L; j++)
            w[j] /= sum;
    }
}

/* ---------------------------------------------------------------- shown --------------------- */

/* A row per key: its position, its distance, a number of each head. */
static void show_table(score_rows *r, const char *key, const double *values)
{
    enum { MOST = 40 };
    char             names[MOST][32], heads[MOST][32];
    cli_sheet_column columns[MOST] = {{"key", "KEY AT", CLI_SHEET_PLAIN}, {"distance", "t", CLI_SHEET_PLAIN}};
    const int64_t    width         = r->H + 2;
    double          *table         = cli_explain_numbers(r->p, r->L * width);
    for (int64_t h = 0; h < r->H; h++) {
        snprintf(names[h], sizeof names[h], "head_%lld", (long long)h);
        snprintf(heads[h], sizeof heads[h], "HEAD %lld", (long long)h);
        columns[h + 2] = (cli_sheet_column){names[h], heads[h], CLI_SHEET_FIXED};
    }
    for (int64_t i = 0; i < r->L * width && table; i++) {
        const int64_t j = i / width, k = i % width;
        table[i] = k == 0   ? (double)j
                   : k == 1 ? r->x->position.real[0] - (double)j
                            : values[(k - 2) * r->L + j];
    }
    if (table)
        cli_calc_said(r->p, cli_sheet_table(&r->x->sheet, key, columns, (int)width, table, r->L));
}

/* Those that have a number for each head, or few in all. */
static void show_params(score_rows *r)
{
    double values[MOST_PARAMS];
    for (int i = 0; i < r->p->count; i++) {
        const posenc_tensor *t = &r->p->params[i];
        const int64_t        n = pe_tensor_elements(t);
        for (int64_t k = 0; k < n && n <= MOST_PARAMS; k++)
            values[k] = pe_calc_element(t, k);
        if (n <= MOST_PARAMS && t->ndim <= 1)
            cli_sheet_vector(&r->x->sheet, posenc_param_name(r->p->e, i), posenc_param_name(r->p->e, i),
                             values, n);
    }
}

static int is_zero(const double *values, int64_t n)
{
    while (n > 0 && values[n - 1] == 0)
        n--;
    return n == 0;
}

static void show_bias(score_rows *r)
{
    cli_sheet *s     = &r->x->sheet;
    const int  drawn = posenc_token_count(r->p->e) > 0;
    cli_sheet_title(s, "Added to the scores of a query at position %g, %s", r->x->position.real[0],
                    drawn ? "by token inputs drawn from N(0,1)" : "whatever the content");
    show_params(r);
    if (is_zero(r->bias, r->H * r->L))
        cli_sheet_text(s, "nothing");
    else
        show_table(r, "bias", r->bias);
    const posenc_encoding_info *part = posenc_encoding_part(r->p->e, POSENC_PLACE_SCORE);
    if (part->pictures && strstr(part->pictures, "buckets"))
        cli_sheet_text(s, "Which distances share a number: posenc plot buckets %s", part->name);
    if (!r->sees_content && !r->x->vector.count)
        return;
    cli_sheet_title(s, "The scores of q with the same key k everywhere");
    cli_sheet_vector(s, "query", "q", r->vector, r->D);
    cli_sheet_vector(s, "key", "k", r->key, r->D);
    cli_sheet_number(s, "product", "q.k", cli_explain_dot(r->vector, r->key, r->D));
    show_table(r, "scores", r->scores);
}

/* Weights that are made in place of the softmax, whose quotient would say nothing. */
static void show_own_weights(score_rows *r)
{
    cli_sheet *s    = &r->x->sheet;
    double    *sums = cli_explain_numbers(r->p, r->H);
    for (int64_t i = 0; i < r->H * r->L && sums; i++)
        sums[i / r->L] += r->weights[i];
    if (!sums)
        return;
    cli_sheet_title(s, "The scores of q with the same key k everywhere");
    cli_sheet_vector(s, "query", "q", r->vector, r->D);
    cli_sheet_vector(s, "key", "k", r->key, r->D);
    show_table(r, "scores", r->scores);
    cli_sheet_title(s, "The weights, query at position %g", r->x->position.real[0]);
    show_table(r, "weights", r->weights);
    cli_sheet_vector(s, "sums", "their sum, by head", sums, r->H);
    cli_sheet_text(s, "A softmax has the sum 1; what is missing here no key has taken.");
}

static void show_weights(score_rows *r)
{
    cli_sheet *s       = &r->x->sheet;
    double    *factors = cli_explain_numbers(r->p, r->H * r->L), *sums = cli_explain_numbers(r->p, r->H);
    for (int64_t i = 0; i < r->H * r->L && sums; i++) {
        factors[i] = r->softmax[i] > 0 ? r->weights[i] / r->softmax[i] : 0;
        sums[i / r->L] += r->weights[i];
    }
    if (!sums)
        return;
    cli_sheet_title(s, "The factor on the weight of each key, query at position %g", r->x->position.real[0]);
    show_table(r, "factors", factors);
    cli_sheet_title(s, "The weights: softmax of the scores times the factor");
    show_table(r, "weights", r->weights);
    cli_sheet_vector(s, "sums", "their sum, by head", sums, r->H);
    cli_sheet_text(s, "A softmax alone has the sum 1.");
}

/* ---------------------------------------------------------------- all ----------------------- */

static const double *key_of(score_rows *r)
{
    if (r->x->key.count && r->x->key.count != r->D)
        pe_calc_refuse(r->p, "--key has %d number%s and the vector %lld; give as many", r->x->key.count,
                       r->x->key.count == 1 ? "" : "s", (long long)r->D);
    return r->x->key.count ? r->x->key.real : r->vector;
}

static void make(score_rows *r, const posenc_encoding_info *part)
{
    const cli_explanation *x = r->x;
    const int64_t          P = (int64_t)fmax(x->position.real[0], 0);
    if (x->position.count > 1)
        pe_calc_refuse(r->p, "--position has %d coordinates; scores of %s take one", x->position.count,
                       part->name);
    r->H = x->heads ? x->heads : HEADS;
    r->D = x->dim ? x->dim : x->vector.count ? x->vector.count : 4;
    r->L = x->length ? x->length : P < KEYS ? KEYS : P + 1;
    if (r->L > MOST_KEYS)
        pe_calc_refuse(r->p,
                       "--position %g has more keys before it than a table takes; say how many with --length",
                       x->position.real[0]);
    if (part->at_length && !pe_calc_failed(r->p)) { /* a window as large as the keys need */
        const char *spec = pe_calc_text(r->p, "%s", posenc_encoding_spec(r->p->e));
        posenc_encoding_free(r->p->e);
        r->p->e = NULL;
        pe_survey_encoding(&r->p->e, spec, NULL, &r->p->err);
    }
    const posenc_dims dims = {
        .B = 1, .H = r->H, .G = r->H, .Lq = r->L, .Lk = r->L, .D = r->D, .Dv = r->L, .L = r->L};
    r->p->options.max_distances = 2 * r->L + P;
    r->p->options.mask          = cli_explain_needs_mask(r->p->e) ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    cli_explain_plan(r->x, &dims, POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    cli_subject_vary(&r->x->subject, r->x->seed);
    r->vector              = cli_explain_vector(r->x, r->D);
    r->key                 = key_of(r);
    double **const parts[] = {&r->bias, &r->scores, &r->softmax, &r->weights};
    for (int i = 0; i < 4; i++)
        *parts[i] = cli_explain_numbers(r->p, r->H * r->L);
}

static void compute(score_rows *r)
{
    if (pe_calc_failed(r->p))
        return;
    const posenc_dims dims = {.B = 1, .H = r->H, .G = r->H, .Lq = 1, .Lk = r->L, .D = r->D, .Dv = r->L};
    if (pe_tokens_draw(r->p->e, &dims, (uint64_t)r->x->seed, &r->tokens, &r->p->err) == POSENC_OK) {
        const posenc_attend_in in = inputs(r);
        find_scores(r, &in);
        find_weights(r, &in);
    }
    pe_tokens_free(r->p->e, r->tokens);
    r->tokens = NULL;
    find_softmax(r);
    r->sees_content = sees_content(r);
}

static score_rows rows_of(cli_explanation *x, posenc_place place)
{
    score_rows r = {.x = x, .p = &x->subject.p};
    make(&r, posenc_encoding_part(r.p->e, place));
    compute(&r);
    return r;
}

void cli_explain_scores(cli_explanation *x)
{
    score_rows r = rows_of(x, POSENC_PLACE_SCORE);
    if (!pe_calc_failed(r.p))
        show_bias(&r);
}

void cli_explain_weights(cli_explanation *x)
{
    score_rows                  r    = rows_of(x, POSENC_PLACE_WEIGHT);
    const posenc_encoding_info *part = posenc_encoding_part(r.p->e, POSENC_PLACE_WEIGHT);
    if (pe_calc_failed(r.p))
        return;
    if (part->replaces_softmax)
        show_own_weights(&r);
    else
        show_weights(&r);
}
