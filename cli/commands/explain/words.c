/* SPDX-License-Identifier: MIT */
/*
 * words.c: a sentence, and its words in another order, through one layer of attention
 *
 * What every introduction begins with: attention sees which words there are, not where they stand. Here it is
 * worked out on words of the reader's own. A word's vector is drawn from N(0,1) by its letters and the seed,
 * so that it is the same wherever the word stands; Wq, Wk and Wv are drawn from N(0, 1/d). Scores and outputs
 * are those of posenc_scores and posenc_attend, a weight is exp(S - lse) with the lse of posenc_attend. Then
 * each word is compared with itself in the other sentence.
 *
 * Parameters that are initialised with one number everywhere would show nothing; N(0,1) is added to them.
 */
#include "cli/commands/explain/words.h"

#include "files/arrays/text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---------------------------------------------------------------- sentences ----------------- */

/* Words are separated by spaces. Chinese has none, so there each character is a word. */
static int64_t split(pe_calc *p, const char *text, size_t n, const char *words[CLI_WORDS_MOST + 1])
{
    const char *end   = text + n;
    int64_t     count = 0;
    while (n && end[-1] == ' ')
        end--, n--;
    const int is_spaced = memchr(text, ' ', n) != NULL;
    while (text < end && count <= CLI_WORDS_MOST) {
        int    columns;
        size_t step = cli_columns_next(text, &columns);
        if (is_spaced || columns < 2)
            step = strcspn(text, " /");
        words[count++] = pe_calc_text(p, "%.*s", (int)step, text);
        text += step;
        text += strspn(text, " ");
    }
    return count;
}

/* The first place of the second sentence that is free for word i of the first; -1: none. */
static int64_t find_place(const cli_words *w, const char *word, const int taken[])
{
    for (int64_t i = 0; i < w->L; i++)
        if (!taken[i] && !strcasecmp(w->said[0][i], word))
            return i;
    return -1;
}

/* A second sentence must have the words of the first. */
static void match(cli_words *w, const char *const *words, int64_t count)
{
    int taken[CLI_WORDS_MOST] = {0};
    if (count != w->L)
        pe_calc_refuse(w->p,
                       "the sentences of --words have %lld and %lld words; they must have the same words",
                       (long long)w->L, (long long)count);
    for (int64_t i = 0; i < w->L && !pe_calc_failed(w->p); i++) {
        w->order[i] = find_place(w, words[i], taken);
        if (w->order[i] < 0)
            pe_calc_refuse(w->p,
                           "\"%s\" of the second sentence of --words has no match in the first; both must "
                           "have the same words",
                           words[i]);
        else
            taken[w->order[i]] = 1;
        w->said[1][i] = words[i];
    }
}

/* --permute 3,2,1: which words of the first sentence, counted from 1, the second one has in turn. */
static void permute(cli_words *w)
{
    const cli_numbers *given                 = &w->x->permute;
    int                taken[CLI_WORDS_MOST] = {0};
    int                is_good               = given->count == w->L;
    for (int64_t i = 0; i < w->L && is_good; i++) {
        w->order[i] = given->whole[i] - 1;
        is_good     = w->order[i] < w->L && !taken[w->order[i]];
        if (is_good)
            taken[w->order[i]] = 1;
    }
    if (!is_good)
        pe_calc_refuse(w->p,
                       "--permute is \"%s\"; it must be the numbers 1 to %lld in another order, such as "
                       "2,1 for two words",
                       cli_value(w->x->args, "permute"), (long long)w->L);
}

static void read_order(cli_words *w, const char *second)
{
    const char *words[CLI_WORDS_MOST + 1];
    int         is_moved = 0;
    if (second && w->x->permute.count)
        pe_calc_refuse(w->p,
                       "both --permute and the second sentence of --words say the other order; give one");
    else if (second)
        match(w, words, split(w->p, second, strlen(second), words));
    else if (w->x->permute.count)
        permute(w);
    else
        for (int64_t i = 0; i < w->L; i++)
            w->order[i] = w->L - 1 - i;
    for (int64_t i = 0; i < w->L && !pe_calc_failed(w->p); i++) {
        w->place[w->order[i]] = i;
        w->said[1][i]         = second ? w->said[1][i] : w->said[0][w->order[i]];
        is_moved |= w->order[i] != i;
    }
    if (!is_moved)
        pe_calc_refuse(w->p,
                       "both sentences have the same order; say another one with --permute, such as 2,1");
}

/* The caller's own words, as they can be shown: JSON and screens take UTF-8 only. */
static const char *clean_words(cli_words *w)
{
    const size_t size = strlen(w->x->words) + 1;
    char        *copy = pe_calc_block(w->p, size);
    return copy ? pe_text_clean(memcpy(copy, w->x->words, size)) : "";
}

static void read_sentences(cli_words *w)
{
    const char *clean = clean_words(w), *text = clean + strspn(clean, " ");
    const char *slash = strchr(text, '/'), *second = slash ? slash + 1 + strspn(slash + 1, " ") : NULL;
    const char *words[CLI_WORDS_MOST + 1];
    w->L = split(w->p, text, slash ? (size_t)(slash - text) : strlen(text), words);
    if (w->L < 2 || w->L > CLI_WORDS_MOST) {
        pe_calc_refuse(w->p,
                       "--words is \"%.60s\"; it must be 2 to %d words separated by spaces, such as \"dog "
                       "bites man\"",
                       w->x->words, CLI_WORDS_MOST);
        return;
    }
    for (int64_t i = 0; i < w->L; i++) {
        w->said[0][i] = words[i];
        w->id[i]      = w->V;
        for (int64_t k = i - 1; k >= 0; k--)
            w->id[i] = strcasecmp(words[k], words[i]) ? w->id[i] : w->id[k];
        w->V += w->id[i] == w->V;
    }
    read_order(w, second);
}

/* ---------------------------------------------------------------- vectors ------------------- */

/* to [m,c] = a [m,n] b [n,c] */
static void multiply(double *to, const double *a, const double *b, int64_t m, int64_t n, int64_t c)
{
    for (int64_t i = 0; i < m * c; i++) {
        to[i] = 0;
        for (int64_t k = 0; k < n; k++)
            to[i] += a[i / c * n + k] * b[k * c + i % c];
    }
}

/* Letters in lower case, so that a word is itself at the beginning of a sentence. */
static const char *stream_of(cli_words *w, const char *word)
{
    char *name = pe_calc_block(w->p, strlen(word) + sizeof "word ");
    if (!name)
        return "";
    strcpy(name, "word ");
    for (size_t i = 0; word[i]; i++)
        name[5 + i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 'a' - 'A') : word[i];
    return name;
}

static void draw_words(cli_words *w)
{
    static const char *const names[] = {"Wq", "Wk", "Wv"};
    for (int i = 0; i < 3; i++)
        w->W[i] = cli_explain_draw(w->x, names[i], w->d * w->H * w->D, 1 / sqrt((double)w->d));
    w->table = cli_explain_numbers(w->p, w->V * w->d);
    for (int64_t i = 0; i < w->L && w->table; i++) {
        const double *row = cli_explain_draw(w->x, stream_of(w, w->said[0][i]), w->d, 1);
        if (row)
            memcpy(w->table + w->id[i] * w->d, row, (size_t)w->d * sizeof *row);
    }
}

/* x [L,d]: the words of a sentence, each its one-hot times the table, which is the row that it looks up. */
static double *embed(cli_words *w, int sentence)
{
    double *one_hot = cli_explain_numbers(w->p, w->L * w->V), *x = cli_explain_numbers(w->p, w->L * w->d);
    if (!one_hot || !x)
        return NULL;
    for (int64_t i = 0; i < w->L; i++)
        one_hot[i * w->V + w->id[sentence ? w->order[i] : i]] = 1;
    multiply(x, one_hot, w->table, w->L, w->V, w->d);
    for (int64_t i = 0; i < w->L; i++) {
        const double *row = w->table + w->id[sentence ? w->order[i] : i] * w->d;
        for (int64_t c = 0; c < w->d; c++)
            w->by_one_hot = fmax(w->by_one_hot, fabs(x[i * w->d + c] - row[c]));
    }
    return x;
}

/* ---------------------------------------------------------------- one layer ----------------- */

static posenc_tensor tensor(double *data, int32_t ndim, const int64_t *shape)
{
    return posenc_tensor_contiguous(data, POSENC_DTYPE_F64, ndim, shape);
}

/* Words stand in a line, from --position on. */
static posenc_positions positions(const cli_words *w)
{
    return posenc_positions_range(w->start, 1);
}

/* (id, position) of each word, for an encoding whose rows belong to words too. */
static posenc_positions places(cli_words *w, int sentence)
{
    const int64_t shape[] = {w->L, 2};
    double       *list    = cli_explain_numbers(w->p, 2 * w->L);
    for (int64_t i = 0; list && i < w->L; i++) {
        list[2 * i]     = (double)w->id[sentence ? w->order[i] : i];
        list[2 * i + 1] = w->start + (double)i;
    }
    return posenc_positions_array(tensor(list, 2, shape));
}

/* Adds the rows of the places to y [L,d]; rows of words replace it. */
static void add_rows(cli_words *w, const posenc_plan *plan, double *y, int sentence,
                     const posenc_workspace *work)
{
    const posenc_encoding_info *info    = posenc_encoding_part(w->p->e, POSENC_PLACE_INPUT);
    const int64_t               shape[] = {1, w->L, w->d};
    posenc_tensor               to      = tensor(y, 3, shape);
    posenc_rows_in in = {.size = sizeof in, .x = to, .pos = positions(w), .params = w->p->params};
    if (info->by_word) {
        in.x.data = NULL;
        in.pos    = places(w, sentence);
    }
    if (posenc_rows_width(plan) != w->d)
        pe_calc_refuse(w->p, "the rows of %s are %lld wide but the words' vectors %lld; they must be equal",
                       info->name, (long long)posenc_rows_width(plan), (long long)w->d);
    if (!pe_calc_failed(w->p))
        posenc_rows(plan, &in, &to, work, &w->p->err);
}

/* [H,L,D] of y [L,d] */
static double *project(cli_words *w, const double *y, const double *W)
{
    const int64_t all  = w->H * w->D;
    double       *flat = cli_explain_numbers(w->p, w->L * all), *to = cli_explain_numbers(w->p, w->L * all);
    if (!flat || !to)
        return NULL;
    multiply(flat, y, W, w->L, w->d, all);
    for (int64_t i = 0; i < w->L * all; i++) {
        const int64_t h = i / w->D % w->H, row = i / all;
        to[(h * w->L + row) * w->D + i % w->D] = flat[i];
    }
    return to;
}

static void find_weights(const cli_words *w, const cli_words_layer *l, const double *lse, int is_causal)
{
    for (int64_t n = 0; n < w->H * w->L * w->L; n++) {
        const int64_t i = n / w->L % w->L, j = n % w->L;
        l->W[n] = is_causal && j > i ? 0 : exp(l->S[n] - lse[n / w->L]);
    }
}

/* Scores, weights and outputs of the queries in l; the queries are left as the scores see them. */
static void attend(cli_words *w, const posenc_plan *plan, cli_words_layer *l, int is_causal,
                   const posenc_workspace *work)
{
    const int64_t heads[] = {1, w->H, w->L, w->D}, square[] = {1, w->H, w->L, w->L};
    double       *k = project(w, l->y, w->W[1]), *v = project(w, l->y, w->W[2]),
           *lse                 = cli_explain_numbers(w->p, w->H * w->L);
    posenc_attend_in        in  = {.size   = sizeof in,
                                   .q      = tensor(l->q, 4, heads),
                                   .k      = tensor(k, 4, heads),
                                   .v      = tensor(v, 4, heads),
                                   .q_pos  = positions(w),
                                   .k_pos  = positions(w),
                                   .params = w->p->params};
    posenc_tensor           S   = tensor(l->S, 4, square);
    const posenc_attend_out out = {sizeof out, tensor(l->o, 4, heads), tensor(lse, 3, heads)};
    if (pe_calc_failed(w->p) || posenc_scores(plan, &in, &S, work, &w->p->err) ||
        posenc_attend(plan, &in, &out, work, &w->p->err))
        return;
    find_weights(w, l, lse, is_causal);
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = in.q,
                                 .q_pos     = in.q_pos,
                                 .k_pos     = in.k_pos,
                                 .to_q      = in.q,
                                 .direction = 1,
                                 .params    = in.params};
    if (l->is_rotated)
        posenc_rotate(plan, &io, work, &w->p->err);
}

static void run_sentence(cli_words *w, const posenc_plan *plan, cli_words_run *run, int sentence,
                         const posenc_workspace *work)
{
    cli_words_layer *l = &run->layers[sentence];
    l->y               = embed(w, sentence);
    if (!pe_calc_failed(w->p) && run->is_coded && posenc_encoding_part(w->p->e, POSENC_PLACE_INPUT))
        add_rows(w, plan, l->y, sentence, work);
    l->is_rotated = run->is_coded && posenc_encoding_part(w->p->e, POSENC_PLACE_ROTARY);
    l->S          = cli_explain_numbers(w->p, w->H * w->L * w->L);
    l->W          = cli_explain_numbers(w->p, w->H * w->L * w->L);
    l->o          = cli_explain_numbers(w->p, w->H * w->L * w->D);
    l->q          = pe_calc_failed(w->p) ? NULL : project(w, l->y, w->W[0]);
    if (!pe_calc_failed(w->p))
        attend(w, plan, l, run->is_causal, work);
}

/* ---------------------------------------------------------------- what differs -------------- */

/* Largest |a - b| of the rows [count,L,n] of each word in both sentences. */
static double of_rows(const cli_words *w, const double *a, const double *b, int64_t count, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < count * w->L * n; i++) {
        const int64_t h = i / (w->L * n), row = i / n % w->L;
        most = fmax(most, fabs(a[i] - b[(h * w->L + w->place[row]) * n + i % n]));
    }
    return most;
}

/* The same of squares [H,L,L]: a pair of words and the same pair. */
static double of_pairs(const cli_words *w, const double *a, const double *b)
{
    double most = 0;
    for (int64_t n = 0; n < w->H * w->L * w->L; n++) {
        const int64_t h = n / (w->L * w->L), i = n / w->L % w->L, j = n % w->L;
        most = fmax(most, fabs(a[n] - b[(h * w->L + w->place[i]) * w->L + w->place[j]]));
    }
    return most;
}

/* The same of the sums of all words' outputs. */
static double of_sums(const cli_words *w, const double *a, const double *b)
{
    double most = 0;
    for (int64_t h = 0; h < w->H; h++)
        for (int64_t c = 0; c < w->D; c++) {
            double sum = 0;
            for (int64_t i = 0; i < w->L; i++)
                sum += a[(h * w->L + i) * w->D + c] - b[(h * w->L + i) * w->D + c];
            most = fmax(most, fabs(sum));
        }
    return most;
}

static void compare(const cli_words *w, cli_words_run *run)
{
    const cli_words_layer *a = &run->layers[0], *b = &run->layers[1];
    run->y   = of_rows(w, a->y, b->y, 1, w->d);
    run->q   = of_rows(w, a->q, b->q, w->H, w->D);
    run->S   = of_pairs(w, a->S, b->S);
    run->W   = of_pairs(w, a->W, b->W);
    run->o   = of_rows(w, a->o, b->o, w->H, w->D);
    run->sum = of_sums(w, a->o, b->o);
}

/* ---------------------------------------------------------------- the four runs ------------- */

static void run_both(cli_words *w, int coding, int mask)
{
    pe_calc               *p       = w->p;
    const posenc_encoding *e       = coding ? p->e : w->plain;
    cli_words_run         *run     = &w->runs[coding][mask];
    posenc_options         options = p->options;
    posenc_plan           *plan    = NULL;
    if (pe_calc_failed(p) || (!mask && cli_explain_needs_mask(e)) ||
        (coding && !strcmp(posenc_encoding_spec(e), posenc_encoding_spec(w->plain))))
        return;
    *run             = (cli_words_run){.is_made = 1, .is_coded = coding, .is_causal = mask};
    options.mask     = mask ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    options.executor = POSENC_EXECUTOR_REFERENCE;
    if (posenc_plan_create(&plan, e, &p->dims, &options, &p->err))
        return;
    const posenc_workspace work = pe_calc_workspace(p, plan, POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    for (int sentence = 0; sentence < CLI_WORDS_SENTENCES && !pe_calc_failed(p); sentence++)
        run_sentence(w, plan, run, sentence, &work);
    if (!pe_calc_failed(p))
        compare(w, run);
    posenc_plan_free(plan);
}

/* ---------------------------------------------------------------- the whole ----------------- */

static void find_sizes(cli_words *w)
{
    const cli_explanation *x = w->x;
    w->d                     = x->dim ? x->dim : 4;
    w->H                     = x->heads ? x->heads : 1;
    w->D                     = w->d / w->H;
    if (w->D * w->H != w->d)
        pe_calc_refuse(w->p, "--heads is %lld, which does not divide --dim, %lld", (long long)w->H,
                       (long long)w->d);
    const posenc_dims dims = {.B       = 1,
                              .H       = w->H,
                              .Lq      = w->L,
                              .Lk      = w->L,
                              .D       = w->D,
                              .d_model = w->d,
                              .L       = w->L + (int64_t)fmax(0, w->start)};
    if (!pe_calc_failed(w->p) && !cli_subject_params(&w->x->subject, &dims, x->seed))
        cli_subject_vary(&w->x->subject, x->seed);
}

void cli_words_make(cli_words *w, cli_explanation *x)
{
    *w = (cli_words){.x     = x,
                     .p     = &x->subject.p,
                     .start = cli_value(x->args, "position") ? x->position.real[0] : 0};
    read_sentences(w);
    if (!pe_calc_failed(w->p))
        find_sizes(w);
    draw_words(w);
    if (!pe_calc_failed(w->p))
        posenc_encoding_create(&w->plain, "nope", NULL, &w->p->err);
    for (int coding = 0; coding < CLI_WORDS_ENCODINGS; coding++)
        for (int mask = 0; mask < CLI_WORDS_MASKS; mask++)
            run_both(w, coding, mask);
}
