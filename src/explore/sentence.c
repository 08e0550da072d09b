/* SPDX-License-Identifier: MIT */
/*
 * sentence.c: scores and weights of the words of a sentence. Contract: explore.h.
 *
 * A word's query and key are drawn by the word itself, so that it is the same wherever it stands and in every
 * head, or typed. What an encoding learns and would start at one number everywhere is varied, as in pictures:
 * otherwise nothing would depend on positions, which says nothing of the encoding. The weights are the output
 * of attention whose values are the unit vectors.
 */
#include "explore/explore.h"

#include "measure/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 2048 };

/* One encoding's run: q, k [H, n, D], unit vectors, scores and weights [H, n, n], weights at position 0. */
typedef struct run {
    const pe_explore_part  *p;
    posenc_dims             dims;
    posenc_plan            *plan;
    posenc_workspace        work;
    posenc_tensor          *tokens;
    double                 *q, *k, *v, *S, *W, *W0;
    const pe_explore_words *words;
    const char             *request;
    posenc_error           *err;
} run;

/* ---------------------------------------------------------------- what is typed ------------- */

/* Numbers separated by spaces or commas up to ';' or the end: *at goes behind it. How many, or -1: one is
 * none.
 */
static int read_numbers(const char **at, double *to, int most)
{
    int n = 0;
    for (;;) {
        *at += strspn(*at, " ,\t");
        if (!**at || **at == ';')
            break;
        char        *end;
        const double x = strtod(*at, &end);
        if (end == *at || !isfinite(x) || n >= most)
            return -1;
        to[n++] = x;
        *at     = end;
    }
    *at += **at == ';';
    return n;
}

/* Typed vectors: `x` [n, D] is written where there are any. */
static posenc_status type_vectors(const run *r, const char *name, double *x, int *is_typed)
{
    char        text[LONGEST];
    const char *at = pe_explore_value(r->request, name, text, sizeof text);
    const int   D = (int)r->dims.D, own = r->words->count;
    double     *all   = calloc((size_t)own * (size_t)D, sizeof *all);
    int         lines = 0, n = 0;
    *is_typed = at[strspn(at, " ,;\t")] != '\0';
    for (; all && *at && lines < own && n >= 0; lines++)
        n = read_numbers(&at, all + lines * D, D);
    const int wrong = *is_typed && (n < 0 || *at || (lines != 1 && lines != own));
    for (int64_t i = 0; all && *is_typed && !wrong && i < r->dims.Lq; i++)
        memcpy(x + i * D, all + (lines > 1 ? i % own : 0) * D, (size_t)D * sizeof *x);
    free(all);
    if (!all)
        return pe_draw_fail(r->err, POSENC_ERROR_MEMORY, "not enough memory");
    return wrong ? pe_draw_fail(
                       r->err, POSENC_ERROR_ARGUMENT,
                       "%s is \"%.60s\"; it must be numbers, at most %d, separated by spaces; one vector, or "
                       "one for each of the %d words, separated by ;",
                       name, text, D, own)
                 : POSENC_OK;
}

/* "f: 1 -2 0.5; g: 3" over the drawn ones: n numbers of each token, or of all. */
static posenc_status type_tokens(const run *r)
{
    char          text[LONGEST];
    const char   *at  = pe_explore_value(r->request, "tokens", text, sizeof text);
    const int64_t own = r->words->count;
    static double given[LONGEST];
    while (at[strspn(at, " ;\t")]) {
        at += strspn(at, " ;\t");
        const size_t name = strcspn(at, ":;");
        int          i    = posenc_token_count(r->p->e) == 1 && at[name] != ':' ? 0 : -1;
        for (int k = 0; i < 0 && k < posenc_token_count(r->p->e); k++)
            i = strlen(posenc_token_name(r->p->e, k)) == name &&
                        !strncmp(at, posenc_token_name(r->p->e, k), name)
                    ? k
                    : -1;
        at += at[name] == ':' ? name + 1 : 0;
        const int n = i < 0 ? -1 : read_numbers(&at, given, LONGEST);
        if (i < 0)
            return pe_draw_fail(
                r->err, POSENC_ERROR_ARGUMENT,
                "token inputs are \"%.60s\"; write a name, a colon and numbers: \"%s: 1 -2 0.5\"", text,
                posenc_token_count(r->p->e) ? posenc_token_name(r->p->e, 0) : "f");
        const int64_t *shape = r->tokens[i].shape, row = shape[3];
        if (n != row && n != own * row)
            return pe_draw_fail(
                r->err, POSENC_ERROR_ARGUMENT,
                "token input %s has %d numbers; it must have %lld, or %lld for each of the %lld words",
                posenc_token_name(r->p->e, i), n, (long long)row, (long long)row, (long long)own);
        for (int64_t t = 0; t < shape[1] * shape[2]; t++)
            for (int64_t c = 0; c < row; c++)
                ((double *)r->tokens[i].data)[t * row + c] =
                    given[n == row ? c : t % shape[2] % own * row + c];
    }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- one encoding -------------- */

/* x [H, n, D]: drawn by the word, or typed; at the input, the row of its position is added. */
static posenc_status make_vectors(const run *r, const char *name, double *x, uint64_t seed, double shift)
{
    const int64_t n = r->dims.Lq, D = r->dims.D, shape[] = {1, n, D};
    int           is_typed;
    posenc_status status = type_vectors(r, name, x, &is_typed);
    for (int64_t i = 0; !is_typed && i < n; i++)
        for (int64_t d = 0; d < D; d++)
            x[i * D + d] = posenc_random_normal(seed, r->words->word[i % r->words->count], (uint64_t)d);
    if (!status && posenc_encoding_part(r->p->e, POSENC_PLACE_INPUT)) {
        posenc_tensor        t  = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 3, shape);
        const posenc_rows_in in = {
            .size = sizeof in, .x = t, .pos = posenc_positions_range(shift, 1), .params = r->p->params};
        status = posenc_rows(r->plan, &in, &t, &r->work, r->err);
    }
    for (int64_t h = 1; h < r->dims.H; h++)
        memcpy(x + h * n * D, x, (size_t)(n * D) * sizeof *x);
    return status;
}

static posenc_status attend(const run *r, int64_t seed, double shift, double *S, double *W)
{
    const int64_t n = r->dims.Lq, D = r->dims.D, H = r->dims.H, qk[] = {1, H, n, D}, square[] = {1, H, n, n};
    posenc_status status = make_vectors(r, "q", r->q, (uint64_t)(2 * seed), shift);
    if (status || (status = make_vectors(r, "k", r->k, (uint64_t)(2 * seed + 1), shift)))
        return status;
    const posenc_positions  at   = posenc_positions_range(shift, 1);
    posenc_tensor           to   = posenc_tensor_contiguous(S, POSENC_DTYPE_F64, 4, square);
    const posenc_attend_in  in   = {.size   = sizeof in,
                                    .q      = posenc_tensor_contiguous(r->q, POSENC_DTYPE_F64, 4, qk),
                                    .k      = posenc_tensor_contiguous(r->k, POSENC_DTYPE_F64, 4, qk),
                                    .v      = posenc_tensor_contiguous(r->v, POSENC_DTYPE_F64, 4, square),
                                    .q_pos  = at,
                                    .k_pos  = at,
                                    .params = r->p->params,
                                    .tokens = posenc_token_count(r->p->e) ? r->tokens : NULL};
    const posenc_attend_out out  = {.size = sizeof out,
                                    .o    = posenc_tensor_contiguous(W, POSENC_DTYPE_F64, 4, square)};
    const posenc_status     done = posenc_scores(r->plan, &in, &to, &r->work, r->err);
    return done ? done : posenc_attend(r->plan, &in, &out, &r->work, r->err);
}

static int is_causal(const run *r)
{
    int causal = (int)pe_explore_whole(r->request, "causal", 0);
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *info = posenc_encoding_part(r->p->e, (posenc_place)place);
        causal |= info && info->causal_only;
    }
    return causal;
}

/* Parameters, token inputs, plan; in `names` the parameters that were varied. */
static posenc_status prepare(run *r, pe_explore_part *p, int64_t seed, char *names, size_t size)
{
    const posenc_options options  = {.size     = sizeof options,
                                     .executor = POSENC_EXECUTOR_REFERENCE,
                                     .mask     = is_causal(r) ? POSENC_MASK_CAUSAL : 0};
    const int            is_input = posenc_encoding_part(p->e, POSENC_PLACE_INPUT) != NULL;
    const posenc_run     runs     = POSENC_RUN_SCORES | POSENC_RUN_ATTEND | (is_input ? POSENC_RUN_ROWS : 0);
    posenc_status        status   = pe_explore_part_params(p, &r->dims, seed, r->err);
    if (status)
        return status;
    pe_picture_vary(p->e, p->params, p->varied, seed, names, size);
    if ((status = pe_tokens_draw(p->e, &r->dims, (uint64_t)seed, &r->tokens, r->err)) ||
        (status = type_tokens(r)) ||
        (status = posenc_plan_create(&r->plan, p->e, &r->dims, &options, r->err)))
        return status;
    return posenc_workspace_create(&r->work, r->plan, runs, NULL, r->err);
}

/* Scores and weights of one encoding, [H, n, n] each; the largest change of a weight. */
static posenc_status run_one(run *r, pe_explore_part *p, double *change, char *names, size_t size)
{
    const int64_t seed = pe_explore_whole(r->request, "seed", 1), all = r->dims.H * r->dims.Lq * r->dims.Lq;
    const double  shift  = pe_explore_number(r->request, "shift", 0);
    posenc_status status = prepare(r, p, seed, names, size);
    for (int64_t i = 0; i < all; i++)
        r->v[i] = i / r->dims.Lq % r->dims.Lq == i % r->dims.Lq;
    if (!status && shift != 0)
        status = attend(r, seed, 0, r->S, r->W0);
    if (!status)
        status = attend(r, seed, shift, r->S, r->W);
    *change = 0;
    for (int64_t i = 0; i < all; i++) {
        const int64_t query = i / r->dims.Lq % r->dims.Lq, key = i % r->dims.Lq;
        *change = shift != 0 ? fmax(*change, fabs(r->W[i] - r->W0[i])) : 0;
        r->S[i] = isinf(r->S[i]) || (is_causal(r) && key > query) ? NAN : r->S[i]; /* it is not looked at */
    }
    posenc_workspace_free(&r->work);
    posenc_plan_free(r->plan);
    pe_tokens_free(p->e, r->tokens);
    return status;
}

/* ---------------------------------------------------------------- the figure ---------------- */

static pe_figure grid_of(const char *title, const double *values, int64_t rows, int64_t n,
                         const char *const *words)
{
    pe_figure f = {.kind      = PE_GRID,
                   .title     = title,
                   .x_label   = "key",
                   .values    = values,
                   .rows      = rows,
                   .cols      = n,
                   .dx        = 1,
                   .dy        = 1,
                   .col_names = words};
    for (int64_t i = 0; i < rows * n; i++)
        f.signed_scale |= values[i] < 0;
    return f;
}

/* Scores and weights of each, then those of one query, a line for each encoding. */
static void lay_out(pe_explore_sentence *s, const run *runs, int count, int64_t head, int64_t query,
                    const char *const *words, const char **specs)
{
    const int64_t n = runs[0].dims.Lq, H = runs[0].dims.H;
    double       *line = s->numbers;
    int           k    = 0;
    for (int i = 0; i < count; i++)
        for (int w = 0; w < 2; w++, k++) {
            const double *all = (w ? runs[i].W : runs[i].S) + head * n * n;
            snprintf(s->titles[k], PE_EXPLORE_TEXT, "%s%s%s", count > 1 ? specs[i] : "",
                     count > 1 ? ": " : "", w ? "weights" : "scores");
            s->panels[k]              = grid_of(s->titles[k], all, n, n, words);
            s->panels[k].y_label      = "query";
            s->panels[k].row_names    = words;
            s->panels[k].square_cells = 1;
            memcpy(line + (w * count + i) * n, all + query * n, (size_t)n * sizeof *line);
        }
    for (int w = 0; w < 2; w++, k++) {
        snprintf(s->titles[k], PE_EXPLORE_TEXT, "%s of the query \"%s\"", w ? "weights" : "scores",
                 words[query]);
        s->panels[k]              = grid_of(s->titles[k], line + w * count * n, count, n, words);
        s->panels[k].row_names    = specs;
        s->panels[k].with_numbers = 1;
        s->panels[k].decimals     = 2;
    }
    snprintf(s->titles[k], PE_EXPLORE_TEXT, "%.70s%s%.60s%s", specs[0], count > 1 ? ", " : "",
             count > 1 ? specs[1] : "", "");
    if (H > 1)
        snprintf(s->titles[k] + strlen(s->titles[k]), PE_EXPLORE_TEXT - strlen(s->titles[k]),
                 ", head %lld of %lld", (long long)head + 1, (long long)H);
    s->figure = (pe_figure){
        .kind = PE_PANELS, .title = s->titles[k], .panels = s->panels, .panel_count = k, .panel_columns = 2};
}

posenc_status pe_explore_sentence_make(pe_explore_sentence *s, pe_explore_part *parts, int count,
                                       pe_explore_words *words, const char *request, posenc_error *err)
{
    static const char *names[PE_EXPLORE_WORDS], *specs[PE_EXPLORE_PARTS];
    static char        varied[PE_EXPLORE_PARTS][80];
    const int64_t      times = pe_explore_whole(request, "times", 1), n = words->count * times,
                  D = pe_explore_whole(request, "dim", 64), H = pe_explore_whole(request, "heads", 1),
                  head  = pe_explore_whole(request, "head", 0),
                  query = pe_explore_whole(request, "query", n - 1);
    const int64_t qk = H * n * D, square = H * n * n, one = 2 * qk + 4 * square;
    run           runs[PE_EXPLORE_PARTS];
    posenc_status status = POSENC_OK;
    if (words->count < 2 || n > PE_EXPLORE_WORDS || times < 1)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT, "type a sentence of 2 to %d words", PE_EXPLORE_WORDS);
    if (D < 1 || H < 1 || head < 0 || head >= H || query < 0 || query >= n)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT, "there is no such head, query or width");
    s->numbers = calloc((size_t)(2 * PE_EXPLORE_PARTS * n + count * one), sizeof *s->numbers);
    if (!s->numbers)
        return pe_draw_fail(err, POSENC_ERROR_MEMORY, "not enough memory");
    for (int64_t i = 0; i < n; i++)
        names[i] = words->word[i % words->count];
    for (int i = 0; i < count && !status; i++) {
        double *at = s->numbers + 2 * PE_EXPLORE_PARTS * n + i * one;
        /* tables are made for the sentence said once: what lies beyond them is refused, and says so */
        const int is_input = posenc_encoding_part(parts[i].e, POSENC_PLACE_INPUT) != NULL;
        runs[i]            = (run){.p       = &parts[i],
                                   .q       = at,
                                   .k       = at + qk,
                                   .v       = at + 2 * qk,
                                   .S       = at + 2 * qk + square,
                                   .W       = at + 2 * qk + 2 * square,
                                   .W0      = at + 2 * qk + 3 * square,
                                   .words   = words,
                                   .request = request,
                                   .err     = err,
                                   .dims    = {.B       = 1,
                                               .H       = H,
                                               .G       = H,
                                               .Lq      = n,
                                               .Lk      = n,
                                               .D       = D,
                                               .Dv      = n,
                                               .d_model = is_input ? D : H * D,
                                               .L       = words->count}};
        specs[i]           = posenc_encoding_spec(parts[i].e);
        status             = run_one(&runs[i], &parts[i], &s->changes[i], varied[i], sizeof varied[i]);
    }
    if (!status)
        lay_out(s, runs, count, head, query, names, specs);
    for (int i = 0; i < count && !status; i++)
        if (*varied[i]) {
            char *title = s->titles[s->figure.panel_count];
            snprintf(title + strlen(title), PE_EXPLORE_TEXT - strlen(title),
                     "\nuntrained, and N(0,1) added to %.40s", varied[i]);
        }
    return status;
}

void pe_explore_sentence_free(pe_explore_sentence *s)
{
    free(s->numbers);
    memset(s, 0, sizeof *s);
}
