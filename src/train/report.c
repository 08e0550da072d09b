/* SPDX-License-Identifier: MIT */
/*
 * report.c: the comparison as one self-contained page
 *
 * Order of a reader's questions: the answer, what was run, the table, the pictures, whether to believe it
 * (checks), the encodings one by one, what papers found, how to read it, how to repeat it. Everything is in
 * the file: style, drawings, text. Whoever has JavaScript gets coordinates and curves that can be switched
 * off; whoever has not, or prints, loses nothing else.
 *
 * Surprises  Text of the user is escaped at one place, pe_html_text.
 */
#include "train/report.h"

#include "train/claims.h"
#include "train/extension.h"
#include "train/html.h"
#include "train/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- tables -------------------- */

static void meanings(FILE *to, const pe_table *t)
{
    fputs("<dl>\n", to);
    for (int k = 0; k < t->column_count; k++) {
        pe_html_element(to, "dt", "%s", t->columns[k].head);
        pe_html_element(to, "dd", "%s", t->columns[k].meaning);
    }
    fputs("</dl>", to);
}

static void legend(FILE *to, const pe_table *t)
{
    fputs("<details><summary>More columns, and what they mean</summary>\n", to);
    pe_html_table(to, t, 1);
    meanings(to, t);
    fputs("</details>\n", to);
}

/* "1 seed", "3 seeds" */
static const char *many(char text[48], int64_t n, const char *what)
{
    snprintf(text, 48, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
    return text;
}

/* ---------------------------------------------------------------- sections ------------------ */

static void head(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n",
          to);
    pe_html_element(to, "title", "Positional encodings compared on %s", c->config.text_name);
    pe_report_style(to);
    pe_report_script(to, g);
    fputs("</head>\n<body><main>\n", to);
}

static int always(const pe_compare *c)
{
    return c != NULL;
}

static int has_tasks(const pe_compare *c)
{
    return c->suite->task_count > 0;
}

static int is_causal(const pe_compare *c)
{
    return !c->config.bidirectional;
}

static int has_extension(const pe_compare *c)
{
    return c->extension && c->extension->count && c->extension->means;
}

static int has_claims(const pe_compare *c)
{
    return c->properties != NULL;
}

/* Sections that a reader may jump to, and whether there is one. */
static const struct {
    const char *id, *words;
    int (*has)(const pe_compare *c);
} links[] = {{"results", "Results", always},
             {"length", "Loss against length", always},
             {"properties", "Properties", is_causal},
             {"tasks", "Tasks", has_tasks},
             {"extension", "Extension", has_extension},
             {"checks", "Checks", always},
             {"encodings", "Encodings", always},
             {"papers", "Papers", is_causal},
             {"claims", "Claims", has_claims},
             {"reading", "How to read it", always},
             {"repeat", "Repeat it", always}};

static void answer(FILE *to, const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    pe_html_element(to, "h1", "Which positional encoding for %s?", c->config.text_name);
    pe_html_element(to, "p class=answer", "%s", c->answer);
    pe_html_element(
        to, "p",
        "What would change the answer: another text; more than %lld training steps, because encodings "
        "that learn "
        "their positions start behind those that are given them; a larger model; %s.",
        (long long)p->steps,
        p->seeds > 1 ? "and differences smaller than the intervals, which are not findings"
                     : "and another seed: with one seed the intervals hold for other windows of this text, "
                       "not for other initial weights (--seeds 3 does both)");
    fputs("<nav>", to);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (links[i].has(c))
            fprintf(to, "<a href=\"#%s\">%s</a>", links[i].id, links[i].words);
    fputs("</nav>\n", to);
}

static void what_was_run(FILE *to, const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    char             seeds[48];
    fputs("<h2>What was run</h2>\n", to);
    pe_html_element(
        to, "p",
        "For each of %d encodings the same small Transformer (%lld layers, width %lld, %lld heads, "
        "%s) was trained on the first nine tenths of %s (%lld bytes) for %lld steps of %lld windows "
        "of "
        "L = %lld bytes, from the same initial weights and on the same batches, with %s and no tuning for "
        "any encoding. Then each read %lld windows of %lld bytes, 8 times as long as anything it was trained "
        "on, "
        "from the last tenth. %s",
        c->count, (long long)p->layers, (long long)p->d_model, (long long)p->heads,
        pe_objective_text(c->config.bidirectional), c->config.text_name, (long long)c->text.size,
        (long long)p->steps, (long long)p->batch, (long long)p->L, many(seeds, p->seeds, "seed"),
        (long long)c->windows, (long long)(PE_REACH * p->L),
        c->config.bidirectional ? "It read each window five times, in pieces of L/2, L, 2 L, 4 L and 8 L, "
                                  "with the same bytes hidden: "
                                  "only how much stands around them differs."
                                : "Since no byte sees what follows it, one such pass gives the loss at every "
                                  "shorter length too.");
    pe_html_element(
        to, "p",
        "These are models of some %lld thousand numbers, not language models. What carries over to large "
        "ones is "
        "the order of the encodings and where each of them breaks, not the losses%s.",
        (long long)(c->reference >= 0 ? c->outcomes[c->reference].runs[0].parameters / 1000 : 0),
        c->config.bidirectional ? "" : ": see what papers found");
    if (c->warning[0])
        pe_html_element(to, "p class=FAILED", "Warning: %s.", c->warning);
}

static void results(FILE *to, const pe_compare *c)
{
    pe_table t;
    fputs("<h2 id=results>Results</h2>\n", to);
    if (pe_compare_table(c, &t, NULL))
        return;
    pe_html_table(to, &t, 0);
    pe_html_notes(to, t.notes);
    legend(to, &t);
    pe_table_free(&t);
}

/* Adding against concatenating, with the argument that adding is defended by. */
static void entries(FILE *to, const pe_compare *c)
{
    pe_table t;
    int      is_plain;
    if (pe_compare_entries(c, &t, &is_plain, NULL))
        return;
    if (t.row_count > 0) {
        fputs("<h2 id=entries>Token and position vectors</h2>\n", to);
        pe_html_element(
            to, "p",
            "Adding a position's vector to a token's is defended with high dimensions: random vectors are "
            "nearly orthogonal there, so that a sum keeps both apart. How nearly depends on the width: the "
            "mean |cos| of two random directions is %.3f at this model's width of %lld, and %.3f at 512. The "
            "last columns give it for the two vectors whose sum enters the first block, over the bytes of "
            "the "
            "text and the positions below L: before the first step, and after the last.",
            pe_random_cosine(c->config.preset.d_model), (long long)c->config.preset.d_model,
            pe_random_cosine(512));
        pe_html_table(to, &t, 1);
        pe_html_element(
            to, "p",
            "combine=concat stands for x = [e; p] W with a learned W, that is e W_e + p W_p: it contains the "
            "sum, from which it starts, and may leave it. What it costs is W, in every step. %s",
            is_plain ? "Here every encoding was added; --combine add,concat trains both side by side."
                     : "Where its interval contains zero, the freedom to leave the sum was not needed.");
        fputs("<details><summary>What the columns mean</summary>\n", to);
        meanings(to, &t);
        fputs("</details>\n", to);
    }
    pe_table_free(&t);
}

/* A figure of all encodings under its own heading; nothing where it was not measured. */
static void show(FILE *to, const pe_gallery *g, const char *name, const char *heading, const char *caption)
{
    const pe_exhibit *x = pe_gallery_find(g, name);
    if (!x)
        return;
    fprintf(to, "<h2 id=\"%s\">%s</h2>\n", name, heading);
    pe_report_figure(to, x, caption);
}

static void by_position(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    const pe_preset *p = &c->config.preset;
    char             caption[512], smoothed[128];
    if (c->config.bidirectional)
        snprintf(smoothed, sizeof smoothed,
                 "measured at five lengths, each of which stands for those below it");
    else
        snprintf(smoothed, sizeof smoothed,
                 "smoothed over %lld bytes, and over an eighth of the position beyond L",
                 (long long)(p->L / 8));
    snprintf(caption, sizeof caption,
             "Mean over %lld windows, %s%s. Left of the line: lengths that were trained. All numbers stand "
             "in curves.csv, by position. Click into the drawing for coordinates, on a name to hide its "
             "curve.",
             (long long)c->windows, smoothed, p->seeds > 1 ? "; the band is the range over seeds" : "");
    show(to, g, "loss", "Loss at every position", caption);
}

static void curves(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    show(to, g, "length", "Loss against length",
         "The columns of the table as curves. Texts differ, encodings on the same text far less: so the band "
         "is the interval of the paired difference to the encoding that is best at L, drawn around each "
         "mean.");
    by_position(to, c, g);
    show(to, g, "training", "Training",
         "Loss of the training batches, smoothed over a twentieth of the steps. A curve that still falls "
         "steeply at its end belongs to an encoding that more steps would help.");
}

static void check_counts(FILE *to, const pe_check_result *all, int checks)
{
    int count[PE_NOT_APPLICABLE + 1] = {0};
    for (int i = 0; i < checks; i++)
        count[all[i].verdict]++;
    pe_html_element(to, "p", "%d passed, %d failed, %d not applicable.", count[PE_PASSED], count[PE_FAILED],
                    count[PE_NOT_APPLICABLE]);
}

static void check_row(FILE *to, const pe_check_result *r)
{
    fprintf(to, "<tr><th scope=row>%d</th><td class=w>", r->number);
    pe_html_text(to, r->claim);
    fprintf(to, "</td><td class=\"t %s\">%s</td><td class=w>", pe_verdict_name(r->verdict),
            pe_verdict_name(r->verdict));
    pe_html_text(to, r->found);
    fputs("</td></tr>\n", to);
}

static void checks(FILE *to, const pe_compare *c)
{
    pe_check_result all[PE_MOST_CHECKS];
    const int       count = pe_checks_judge(all, c);
    fputs("<h2 id=checks>Checks</h2>\n"
          "<p>What must come out on an ordinary text. A failed check means that this text, the budget or the "
          "program "
          "is not what the thresholds were set for: look before you believe the table.</p>\n",
          to);
    check_counts(to, all, count);
    fputs("<div class=wide><table class=stack><thead><tr><th scope=col>check</th><th scope=col "
          "class=w>expected</th>"
          "<th scope=col class=t>result</th><th scope=col class=w>found</th></tr></thead><tbody>\n",
          to);
    for (int i = 0; i < count; i++)
        check_row(to, &all[i]);
    fputs("</tbody></table></div>\n", to);
}

/* ---------------------------------------------------------------- reading, repeating -------- */

/* The first trap is another for each objective; the rest is the same. */
static const char *const column_traps[] = {
    "Compare encodings within a column. Columns differ in difficulty: what stands far into a window is other "
    "text than "
    "what stands at its front.",
    "All columns are about the same hidden bytes: from left to right only the length changes that is read at "
    "once. A byte near the end of a piece has one side only, so short pieces are a little harder for "
    "everybody.",
};
static const char *const traps[] = {
    "The intervals are of paired differences over the same windows. Two losses whose difference is small may "
    "still be "
    "told apart, and a difference whose interval contains zero is no finding.",
    "An encoding that must learn what distances mean starts behind one that is given it. Every statement is "
    "about this "
    "number of steps.",
    "A loss that falls with length is not yet use of a longer context: bytes with little around them are "
    "hard for "
    "everybody, and an encoding may do no more than tolerate the rest.",
    "A learned table beyond L acts with the random rows that it was born with: their size is a setting, and "
    "decides "
    "how much they hurt.",
    "Nothing was tuned for any encoding: all have the same learning rate, and settings that their rooms in "
    "the library "
    "recommend for a model of this size.",
};

static void reading(FILE *to, const pe_compare *c)
{
    fputs("<h2 id=reading>How to read it</h2>\n<ul>\n", to);
    pe_html_element(to, "li", "%s", column_traps[c->config.bidirectional]);
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        pe_html_element(to, "li", "%s", traps[i]);
    fputs("</ul>\n", to);
}

static const char *const files[][2] = {
    {"results.json", "all numbers"},
    {"results.csv", "the buckets"},
    {"curves.csv", "the loss at every position"},
    {"tasks.csv", "the tasks"},
    {"*.svg, *.png", "the pictures"},
};

static void repeating(FILE *to, const pe_compare *c)
{
    char workers[48], last[32] = "";
    if (c->config.preset.seeds > 1)
        snprintf(last, sizeof last, " to %lld", (long long)c->config.preset.seeds);
    fputs("<h2 id=repeat>Repeat it</h2>\n", to);
    if (c->config.call)
        pe_html_element(to, "pre", "%s", c->config.call);
    pe_html_element(to, "p",
                    "posenc %s; seed 1%s; %s on %s, instruction set %s; %.0f seconds of training and "
                    "evaluation in the last call. Results do not depend on the number of workers. On another "
                    "instruction set the last "
                    "digits of "
                    "sums may differ, and training carries that on into the losses.",
                    posenc_version(), last, many(workers, c->workers, "worker"), c->machine, posenc_isa(),
                    c->wall_seconds);
    fputs("<dl class=\"card\">\n", to);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        pe_html_element(to, "dt translate=\"no\"", "%s", files[i][0]);
        pe_html_element(to, "dd", "%s", files[i][1]);
    }
    fputs("</dl>\n", to);
}

static void write_page(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    head(to, c, g);
    answer(to, c);
    what_was_run(to, c);
    results(to, c);
    entries(to, c);
    curves(to, c, g);
    pe_report_trained(to, c, g);
    pe_report_tasks(to, c->suite);
    pe_report_extension(to, c);
    checks(to, c);
    pe_report_cards(to, c, g);
    pe_report_papers(to, c);
    pe_report_claims(to, c);
    reading(to, c);
    repeating(to, c);
    fputs("</main></body></html>\n", to);
}

/* The page in English first, then its texts. Without memory for that it stays in English rather than being
   lost. */
static void write_translated(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    char  *page = NULL;
    size_t n;
    FILE  *memory = open_memstream(&page, &n);
    if (memory)
        write_page(memory, c, g);
    if (memory && !fclose(memory))
        pe_words_page(to, page, c->config.language);
    else
        write_page(to, c, g);
    free(page);
}

void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    if (c->config.language == PE_ENGLISH)
        write_page(to, c, g);
    else
        write_translated(to, c, g);
}
