/* SPDX-License-Identifier: MIT */
/*
 * words_shown.c: the tables and sentences of explain --words
 *
 * First what the words become, then one block of tables without the encoding and one with it, at last what
 * changed. A word's rows of both sentences stand below each other, because they are what is compared; squares
 * of scores and weights stand beside each other, each in the order of its own sentence.
 */
#include "cli/commands/explain/words.h"

#include <math.h>
#include <string.h>

enum { INDENT = 2, MOST_COLUMNS = 64 };

/* A table in the making; its texts live as long as the calculation. */
typedef struct shown {
    const cli_words *w;
    pe_table         table;
    pe_column        columns[MOST_COLUMNS];
    int              count, is_made;
} shown;

static const char *const sentence_names[] = {"first", "second"};

/* ---------------------------------------------------------------- cells --------------------- */

static void add_column(shown *t, const char *head, int kind)
{
    if (t->count < MOST_COLUMNS)
        t->columns[t->count++] = (pe_column){.head = head, .is_text = kind};
}

static void open_table(shown *t, int64_t rows)
{
    t->is_made = !pe_table_open(&t->table, t->columns, t->count, (int)rows, NULL);
}

static void put(shown *t, int64_t row, int column, const char *text)
{
    if (column < t->count)
        t->is_made = t->is_made && pe_table_text(&t->table, (int)row, column, text);
}

static void put_number(shown *t, int64_t row, int column, cli_sheet_kind kind, double x)
{
    char text[CLI_SHEET_CELL];
    put(t, row, column, cli_sheet_digits(text, &t->w->x->sheet, kind, x));
}

/* A difference of numbers of size 1: what round-off makes is no difference. */
static void put_difference(shown *t, int64_t row, int column, double x)
{
    char text[CLI_SHEET_CELL];
    snprintf(text, sizeof text, x == 0 ? "0" : x < 1e-12 ? "<1e-12" : "%.2g", x);
    put(t, row, column, text);
}

static void print_table(shown *t)
{
    if (t->is_made)
        cli_print_indented(&t->table, INDENT);
    else
        pe_table_free(&t->table);
    if (!t->is_made)
        pe_calc_refuse_memory(t->w->p, "a table");
}

/* ---------------------------------------------------------------- words --------------------- */

static const char *sentence_text(const cli_words *w, int sentence)
{
    const char *text = "";
    for (int64_t i = 0; i < w->L; i++)
        text = pe_calc_text(w->p, "%s%s%s", text, i ? " " : "", w->said[sentence][i]);
    return text;
}

/* The first word that has an id. */
static int64_t first_of(const cli_words *w, int64_t id)
{
    int64_t i = 0;
    while (w->id[i] != id)
        i++;
    return i;
}

static void channel_columns(shown *t, const char *letter, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        add_column(t, pe_calc_text(t->w->p, "%s%lld", letter, (long long)c), 0);
}

static void print_words(const cli_words *w)
{
    shown t = {.w = w};
    cli_sheet_title(&w->x->sheet, "Words, and the row of the table that each looks up");
    add_column(&t, "word", PE_TEXT);
    add_column(&t, "id", 0);
    add_column(&t, "one-hot", 0);
    channel_columns(&t, "x", w->d);
    open_table(&t, w->V);
    for (int64_t id = 0; id < w->V; id++) {
        const char *one_hot = "";
        for (int64_t k = 0; k < w->V; k++)
            one_hot = pe_calc_text(w->p, "%s%d", one_hot, k == id);
        put(&t, id, 0, w->said[0][first_of(w, id)]);
        put_number(&t, id, 1, CLI_SHEET_PLAIN, (double)id);
        put(&t, id, 2, one_hot);
        for (int64_t c = 0; c < w->d; c++)
            put_number(&t, id, 3 + (int)c, CLI_SHEET_FIXED, w->table[id * w->d + c]);
    }
    print_table(&t);
    cli_sheet_residual(&w->x->sheet, "", "one-hot table - row", w->by_one_hot);
}

/* ---------------------------------------------------------------- rows of words ------------- */

/* A line above a table. */
static void head(const cli_words *w, const char *title)
{
    putchar('\n');
    cli_sheet_text(&w->x->sheet, "%s", title);
}

/* Rows a, b [count,L,n] of both sentences, a word's two below each other. */
static void print_rows(const cli_words *w, const char *title, const char *letter, const double *a,
                       const double *b, int64_t count, int64_t n)
{
    shown t = {.w = w};
    head(w, title);
    add_column(&t, "word", PE_TEXT);
    if (count > 1)
        add_column(&t, "head", PE_TEXT | PE_KEY);
    add_column(&t, "sentence", PE_TEXT | PE_KEY);
    add_column(&t, "position", 0);
    channel_columns(&t, letter, n);
    add_column(&t, "difference", 0);
    open_table(&t, 2 * count * w->L);
    for (int64_t at = 0; at < 2 * count * w->L; at++) {
        const int64_t i = at / 2 / count, h = at / 2 % count;
        const double *first = a + (h * w->L + i) * n, *second = b + (h * w->L + w->place[i]) * n;
        double        most   = 0;
        int           column = 0;
        put(&t, at, column++, at % (2 * count) ? "" : w->said[0][i]);
        if (count > 1)
            put_number(&t, at, column++, CLI_SHEET_PLAIN, (double)h);
        put(&t, at, column++, sentence_names[at % 2]);
        put_number(&t, at, column++, CLI_SHEET_PLAIN, w->start + (double)(at % 2 ? w->place[i] : i));
        for (int64_t c = 0; c < n; c++) {
            put_number(&t, at, column++, CLI_SHEET_FIXED, at % 2 ? second[c] : first[c]);
            most = fmax(most, fabs(first[c] - second[c]));
        }
        if (at % 2)
            put_difference(&t, at, column, most);
    }
    print_table(&t);
}

/* ---------------------------------------------------------------- squares ------------------- */

/* Do the squares of both sentences stand beside each other? */
static int fit_beside(const cli_words *w)
{
    int widest = w->x->sheet.digits + 3; /* "-0.123" */
    for (int64_t i = 0; i < w->L; i++) {
        const int width = cli_columns_of(w->said[0][i], strlen(w->said[0][i]));
        widest          = width > widest ? width : widest;
    }
    return INDENT + 2 * (w->L + 1) * (widest + 2) <= cli_width();
}

static void square_columns(shown *t, int sentence)
{
    add_column(t, "query", PE_TEXT);
    for (int64_t j = 0; j < t->w->L; j++)
        add_column(t, t->w->said[sentence][j], 0);
}

static void put_square(shown *t, int sentence, const double *square, int column)
{
    for (int64_t i = 0; i < t->w->L; i++) {
        put(t, i, column, t->w->said[sentence][i]);
        for (int64_t j = 0; j < t->w->L; j++)
            put_number(t, i, column + 1 + (int)j, CLI_SHEET_FIXED, square[i * t->w->L + j]);
    }
}

/* Squares [L,L] of both sentences, in one table or two. */
static void print_pair(const cli_words *w, const double *const squares[CLI_WORDS_SENTENCES])
{
    const int is_beside = fit_beside(w);
    for (int sentence = 0; sentence < CLI_WORDS_SENTENCES; sentence += 1 + is_beside) {
        shown t = {.w = w};
        if (sentence)
            putchar('\n');
        square_columns(&t, sentence);
        if (is_beside)
            square_columns(&t, 1);
        open_table(&t, w->L);
        put_square(&t, sentence, squares[sentence], 0);
        if (is_beside)
            put_square(&t, 1, squares[1], (int)w->L + 1);
        print_table(&t);
    }
}

/* Squares [H,L,L] of both sentences. */
static void print_squares(const cli_words *w, const char *title, const double *a, const double *b)
{
    for (int64_t h = 0; h < w->H; h++) {
        const double *const squares[] = {a + h * w->L * w->L, b + h * w->L * w->L};
        head(w, w->H > 1 ? pe_calc_text(w->p, "%s, head %lld", title, (long long)h) : title);
        print_pair(w, squares);
    }
}

/* ---------------------------------------------------------------- one encoding -------------- */

static const char *spec_of(const cli_words *w, int coding)
{
    return posenc_encoding_spec(coding ? w->p->e : w->plain);
}

/* Scores are those before the mask, so one run of the two has them all. */
static void print_encoding(const cli_words *w, int coding)
{
    static const char *const mask_names[] = {"no mask", "causal mask"};
    const cli_words_run     *runs = w->runs[coding], *any = &runs[!runs[CLI_WORDS_OPEN].is_made];
    const cli_words_layer   *a = &any->layers[0], *b = &any->layers[1];
    cli_sheet_title(&w->x->sheet, coding ? "With %s" : "Without an encoding (%s)", spec_of(w, coding));
    if (any->y > 0)
        print_rows(w, "Words at their positions", "x", a->y, b->y, 1, w->d);
    print_rows(w, a->is_rotated ? "Queries x Wq, rotated by their positions" : "Queries x Wq", "q", a->q,
               b->q, w->H, w->D);
    print_squares(w, "Scores: queries down, keys across, each sentence in its own order", a->S, b->S);
    for (int mask = 0; mask < CLI_WORDS_MASKS; mask++) {
        a = &runs[mask].layers[0];
        b = &runs[mask].layers[1];
        if (!runs[mask].is_made)
            continue;
        print_squares(w, pe_calc_text(w->p, "Weights, %s: softmax of each row of scores", mask_names[mask]),
                      a->W, b->W);
        print_rows(w, pe_calc_text(w->p, "Outputs, %s: sums of values by these weights", mask_names[mask]),
                   "o", a->o, b->o, w->H, w->D);
    }
}

/* ---------------------------------------------------------------- what changes -------------- */

static void print_differences(const cli_words *w)
{
    static const char *const heads[] = {"encoding", "mask",    "order",   "queries",
                                        "scores",   "weights", "outputs", "sum"};
    shown                    t       = {.w = w};
    int64_t                  rows    = 0;
    for (int k = 0; k < 8; k++)
        add_column(&t, heads[k], k < 3 ? PE_TEXT : 0);
    for (int n = 0; n < CLI_WORDS_ENCODINGS * CLI_WORDS_MASKS; n++)
        rows += w->runs[n / 2][n % 2].is_made;
    open_table(&t, rows);
    for (int n = 0, row = 0; n < CLI_WORDS_ENCODINGS * CLI_WORDS_MASKS; n++) {
        const cli_words_run *run      = &w->runs[n / 2][n % 2];
        const double         values[] = {run->q, run->S, run->W, run->o, run->sum};
        if (!run->is_made)
            continue;
        put(&t, row, 0, spec_of(w, run->is_coded));
        put(&t, row, 1, run->is_causal ? "causal" : "none");
        put(&t, row, 2, cli_words_differ(run) ? "seen" : "not seen");
        for (int k = 0; k < 5; k++)
            put_difference(&t, row, 3 + k, values[k]);
        row++;
    }
    print_table(&t);
}

/* What a run without a mask means. */
static void say_open(const cli_words *w, const cli_words_run *run)
{
    const char *who         = run->is_coded ? spec_of(w, 1) : "attention without an encoding";
    int         is_reversed = 1;
    for (int64_t i = 0; i < w->L; i++)
        is_reversed &= w->order[i] == w->L - 1 - i;
    if (cli_words_differ(run))
        cli_sheet_text(
            &w->x->sheet,
            "Without a mask %s tells the two orders apart: outputs of the same word differ by up to %.2g.",
            who, run->o);
    else
        cli_sheet_text(
            &w->x->sheet,
            "Without a mask %s gives every word the same output in both sentences: the same rows in "
            "another order (equivariance), so the two are one bag of words to it, and the sum of all "
            "outputs does not change at all.%s",
            who,
            run->is_coded && is_reversed
                ? " Reversing keeps every distance |t|; try another order, such as --permute with its "
                  "first two words exchanged."
                : "");
}

/* What a causal mask means. */
static void say_causal(const cli_words *w, const cli_words_run *run)
{
    if (cli_words_differ(run))
        cli_sheet_text(&w->x->sheet,
                       "Under a causal mask %s tells them apart%s: outputs differ by up to %.2g.",
                       run->is_coded ? spec_of(w, 1) : "attention without an encoding",
                       run->is_coded ? ""
                                     : " too, because a word then attends to itself and the words before it",
                       run->o);
    else
        cli_sheet_text(&w->x->sheet, "Under a causal mask the outputs of %s are the same as well.",
                       spec_of(w, run->is_coded));
}

static void print_verdicts(const cli_words *w)
{
    cli_sheet_title(&w->x->sheet,
                    "What changes: the largest difference between the numbers of the same words");
    print_differences(w);
    for (int coding = 0; coding < CLI_WORDS_ENCODINGS; coding++) {
        if (w->runs[coding][CLI_WORDS_OPEN].is_made)
            say_open(w, &w->runs[coding][CLI_WORDS_OPEN]);
        if (w->runs[coding][CLI_WORDS_CAUSAL].is_made)
            say_causal(w, &w->runs[coding][CLI_WORDS_CAUSAL]);
    }
    if (*w->x->subject.origin)
        cli_sheet_text(&w->x->sheet, "Parameters of %s: %s.", spec_of(w, 1), w->x->subject.origin);
}

/* ---------------------------------------------------------------- JSON ---------------------- */

/* x [count,rows,n] as lists of lists of lists. */
static json_t *json_heads(const double *x, int64_t count, int64_t rows, int64_t n)
{
    json_t *list = json_array();
    for (int64_t h = 0; h < count; h++) {
        json_t *of_head = json_array();
        for (int64_t i = 0; i < rows; i++)
            pe_json_add(&of_head, cli_sheet_numbers(x + (h * rows + i) * n, n));
        pe_json_add(&list, of_head);
    }
    return list;
}

static json_t *json_words(const cli_words *w)
{
    json_t *list = json_array();
    for (int64_t id = 0; id < w->V; id++)
        pe_json_add(&list,
                    json_pack("{s:s, s:I, s:o}", "word", w->said[0][first_of(w, id)], "id", (json_int_t)id,
                              "vector", cli_sheet_numbers(w->table + id * w->d, w->d)));
    return list;
}

static json_t *json_sentence(const cli_words *w, int sentence)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < w->L; i++)
        pe_json_add(&list, json_string(w->said[sentence][i]));
    return list;
}

static json_t *json_layer(const cli_words *w, const cli_words_layer *l)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "queries", json_heads(l->q, w->H, w->L, w->D), "scores",
                     json_heads(l->S, w->H, w->L, w->L), "weights", json_heads(l->W, w->H, w->L, w->L),
                     "outputs", json_heads(l->o, w->H, w->L, w->D));
}

static json_t *json_run(const cli_words *w, const cli_words_run *run)
{
    return json_pack("{s:s, s:s, s:[o,o], s:{s:f, s:f, s:f, s:f, s:f}, s:b}", "encoding",
                     spec_of(w, run->is_coded), "mask", run->is_causal ? "causal" : "none", "sentences",
                     json_layer(w, &run->layers[0]), json_layer(w, &run->layers[1]), "differences", "queries",
                     run->q, "scores", run->S, "weights", run->W, "outputs", run->o, "sum", run->sum,
                     "order_is_seen", cli_words_differ(run));
}

static void show_json(const cli_words *w)
{
    json_t *runs = json_array(), *order = json_array();
    for (int64_t i = 0; i < w->L; i++)
        pe_json_add(&order, json_integer((json_int_t)w->order[i] + 1));
    for (int n = 0; n < CLI_WORDS_ENCODINGS * CLI_WORDS_MASKS; n++)
        if (w->runs[n / 2][n % 2].is_made)
            pe_json_add(&runs, json_run(w, &w->runs[n / 2][n % 2]));
    cli_sheet_put(&w->x->sheet, "encoding", json_string(spec_of(w, 1)));
    cli_sheet_put(&w->x->sheet, "parameters", cli_json_text(w->x->subject.origin));
    cli_sheet_put(&w->x->sheet, "seed", json_integer((json_int_t)w->x->seed));
    cli_sheet_put(&w->x->sheet, "words", json_words(w));
    cli_sheet_put(&w->x->sheet, "one_hot_residual", json_real(w->by_one_hot));
    cli_sheet_put(&w->x->sheet, "sentences", json_pack("[o,o]", json_sentence(w, 0), json_sentence(w, 1)));
    cli_sheet_put(&w->x->sheet, "order", order);
    cli_sheet_put(&w->x->sheet, "runs", runs);
}

/* ---------------------------------------------------------------- all ----------------------- */

static void show(const cli_words *w)
{
    if (w->x->sheet.json) {
        show_json(w);
        return;
    }
    cli_sheet_title(&w->x->sheet, "The same words in two orders");
    for (int sentence = 0; sentence < CLI_WORDS_SENTENCES; sentence++)
        cli_sheet_words(&w->x->sheet, "", sentence_names[sentence], sentence_text(w, sentence));
    print_words(w);
    for (int coding = 0; coding < CLI_WORDS_ENCODINGS; coding++)
        if (w->runs[coding][CLI_WORDS_CAUSAL].is_made)
            print_encoding(w, coding);
    print_verdicts(w);
}

void cli_explain_words(cli_explanation *x)
{
    cli_words w;
    cli_words_make(&w, x);
    if (!pe_calc_failed(w.p))
        show(&w);
    posenc_encoding_free(w.plain);
}
