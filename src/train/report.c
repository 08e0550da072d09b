/* SPDX-License-Identifier: MIT */
/*
 * report.c: the comparison as one self-contained page
 *
 * Order of a reader's questions: the answer, what was run, the table, the pictures, whether to believe it (checks),
 * the encodings one by one, what papers found, how to read it, how to repeat it. Everything is in the file: style,
 * drawings, text. Whoever has JavaScript gets coordinates and curves that can be switched off; whoever has not, or
 * prints, loses nothing else.
 *
 * Surprises  Each drawing of gnuplot carries the same script of 30 KB. It is written once, and an empty element stands
 *            where it was, because that script counts the elements. It also takes the mouse wheel and the arrow keys,
 *            with which people scroll: a listener before it hands them back.
 *            Text of the user is escaped at one place, pe_html_text.
 */
#include "train/report.h"

#include "train/claims.h"
#include "train/extension.h"
#include "train/html.h"

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

/* ---------------------------------------------------------------- drawings ------------------ */

static const char script_open[] = "<script", script_close[] = "</script>", title_open[] = "<title>",
                  title_close[] = "</title>";

/* The first script element of a drawing: from its '<' to behind its end. NULL if there is none. */
static const char *find_script(const char *svg, const char **end)
{
    const char *start = strstr(svg, script_open), *close = start ? strstr(start, script_close) : NULL;
    *end = close ? close + sizeof script_close - 1 : NULL;
    return close ? start : NULL;
}

static void write_range(FILE *to, const char *from, const char *end)
{
    fwrite(from, 1, (size_t)(end - from), to);
}

/* A figure's title may have two lines. */
static void line_of(FILE *to, const char *title)
{
    for (; title && *title; title++) {
        const char one[2] = {*title == '\n' ? ' ' : *title, 0};
        pe_html_text(to, one);
    }
}

/* The drawing without XML's first line, with the figure's title for those who cannot see it, and without the script. */
static void drawing(FILE *to, const pe_exhibit *x)
{
    const char *at = strstr(x->svg, "<svg"), *title = at ? strstr(at, title_open) : NULL;
    const char *title_end = title ? strstr(title, title_close) : NULL, *script_end;
    if (!title_end)
        return;
    write_range(to, at, title + sizeof title_open - 1);
    line_of(to, x->figure->title);
    const char *script = find_script(title_end, &script_end);
    if (script) {
        write_range(to, title_end, script);
        fputs("<script></script>", to);
    }
    fputs(script ? script_end : title_end, to);
}

static void figure(FILE *to, const pe_exhibit *x, const char *caption)
{
    fputs("<figure>\n", to);
    drawing(to, x);
    pe_html_element(to, "figcaption", "%s", caption);
    fputs("</figure>\n", to);
}

/* gnuplot's script, once for all drawings and before them, out of its CDATA. */
static void script(FILE *to, const pe_gallery *g)
{
    static const char opening[] = "<![CDATA[", closing[] = "]]>";
    const char       *end, *start = g->count ? find_script(g->items[0].svg, &end) : NULL;
    const char *code = start ? strstr(start, opening) : NULL, *code_end = code ? strstr(code, closing) : NULL;
    if (!code_end || code_end > end)
        return;
    fputs("<script>\n"
          "for (const kind of ['wheel', 'keydown'])\n"
          "    window.addEventListener(kind, e => { if (!e.ctrlKey) e.stopPropagation(); }, true);\n",
          to);
    write_range(to, code + sizeof opening - 1, code_end);
    fputs("</script>\n", to);
}

/* ---------------------------------------------------------------- sections ------------------ */

static const char style[] =
    ":root{color-scheme:light "
    "dark;--ink:#1c1c1c;--paper:#fff;--faint:#666;--line:#ccc;--soft:#f4f4f1;--good:#00693e;"
    "--bad:#b3261e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--faint:#a0a0a0;--line:#444;--"
    "soft:#222;"
    "--good:#6fcf97;--bad:#ff8a80}}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:64rem;margin:0 auto;padding:1.5rem}\n"
    "h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid "
    "var(--line)}h3{margin-top:2rem}\n"
    ".answer{font-size:1.15rem;background:var(--soft);border-left:4px solid #0072b2;padding:.8rem 1rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}"
    "\n"
    "th,td{padding:.25rem .55rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;"
    "font-weight:400}\n"
    "thead th{font-weight:600}tbody th{font-weight:600}.t{text-align:left}tbody "
    "tr:hover{background:var(--soft)}\n"
    ".note,figcaption{color:var(--faint);font-size:.88rem;margin:.3rem 0}\n"
    ".heat td{text-align:center;border:1px solid var(--line);print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}.heat thead th:not(.t){text-align:center}\n"
    ".w{text-align:left;white-space:normal;min-width:18rem}"
    "figure{margin:1rem 0}figure svg>rect{stroke:none}figure image{image-rendering:pixelated}figure "
    "svg{display:block;width:100%;height:auto;background:#fff;border-radius:4px}\n"
    "code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{background:var(--soft);padding:.8rem;"
    "overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "code{overflow-wrap:anywhere}.passed{color:var(--good)}.FAILED{color:var(--bad);font-weight:700}\n"
    "dt{font-weight:600}dd{margin:0 0 .4rem 1.2rem}nav a{margin-right:1rem}\n"
    "@media print{nav{display:none}figure,tr{break-inside:avoid}}\n";

static void head(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n",
          to);
    pe_html_element(to, "title", "Positional encodings compared on %s", c->config.text_name);
    fprintf(to, "<style>\n%s</style>\n", style);
    script(to, g);
    fputs("</head>\n<body><main>\n", to);
}

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
    fprintf(
        to,
        "<nav><a href=#results>Results</a><a href=#length>Loss against length</a>%s<a href=#checks>Checks</a>"
        "<a href=#encodings>Encodings</a>%s<a href=#reading>How to read it</a>"
        "<a href=#repeat>Repeat it</a></nav>\n",
        c->suite->task_count ? "<a href=#tasks>Tasks</a>" : "",
        c->config.bidirectional ? "" : "<a href=#papers>Papers</a>");
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

static void curves(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    const pe_preset *p = &c->config.preset;
    char             caption[512];
    char             smoothed[128];
    if (c->config.bidirectional)
        snprintf(smoothed, sizeof smoothed,
                 "measured at five lengths, each of which stands for those below it");
    else
        snprintf(smoothed, sizeof smoothed,
                 "smoothed over %lld bytes, and over an eighth of the position beyond L",
                 (long long)(p->L / 8));
    snprintf(caption, sizeof caption,
             "Mean over %lld windows, %s%s. Left of the line: lengths that were trained. The "
             "numbers stand in the table above, by bucket, and in curves.csv, by position. Click into the "
             "drawing for "
             "coordinates, on a name to hide its curve.",
             (long long)c->windows, smoothed, p->seeds > 1 ? "; the band is the range over seeds" : "");
    fputs("<h2 id=length>Loss against length</h2>\n", to);
    figure(to, &g->items[0], caption);
    fputs("<h2 id=training>Training</h2>\n", to);
    figure(to, &g->items[1],
           "Loss of the training batches, smoothed over a twentieth of the steps. A curve that still falls "
           "steeply at "
           "its end belongs to an encoding that more steps would help.");
}

static void checks(FILE *to, const pe_compare *c)
{
    fputs("<h2 id=checks>Checks</h2>\n"
          "<p>What must come out on an ordinary text. A failed check means that this text, the budget or the "
          "program "
          "is not what the thresholds were set for: look before you believe the table.</p>\n"
          "<div class=wide><table><thead><tr><th scope=col>check</th><th scope=col class=t>expected</th>"
          "<th scope=col class=t>result</th><th scope=col class=t>found</th></tr></thead><tbody>\n",
          to);
    for (int i = 0; i < pe_check_count(); i++) {
        pe_check_result r;
        pe_check_judge(&r, c, i);
        fprintf(to, "<tr><th scope=row>%d</th><td class=t>", r.number);
        pe_html_text(to, r.claim);
        fprintf(to, "</td><td class=\"t %s\">%s</td><td class=t>", pe_verdict_name(r.verdict),
                pe_verdict_name(r.verdict));
        pe_html_text(to, r.found);
        fputs("</td></tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

/* "arXiv:1706.03762, section 3.5" becomes a link on its number. */
static void paper(FILE *to, const char *source)
{
    static const char mark[] = "arXiv:";
    const char       *at     = strstr(source, mark);
    if (!at) {
        pe_html_text(to, source);
        return;
    }
    const char  *id = at + sizeof mark - 1;
    const size_t n  = strspn(id, "0123456789.");
    char         before[256];
    snprintf(before, sizeof before, "%.*s", (int)(at - source), source);
    pe_html_text(to, before);
    fprintf(to, "<a href=\"https://arxiv.org/abs/%.*s\">arXiv:%.*s</a>", (int)n, id, (int)n, id);
    pe_html_text(to, id + n);
}

static void part(FILE *to, const posenc_encoding_info *info)
{
    fputs("<p><b>", to);
    pe_html_text(to, info->title);
    fprintf(to, "</b>, place <b>%s</b>", posenc_place_name(info->place));
    if (info->paper && *info->paper) {
        fputs("; ", to);
        paper(to, info->paper);
    }
    if (info->models && *info->models) {
        fputs("; in use: ", to);
        pe_html_text(to, info->models);
    }
    fputs(".</p>\n", to);
}

static void encoding(FILE *to, const pe_compare *c, const pe_gallery *g, int index)
{
    const pe_outcome *o     = &c->outcomes[index];
    int               drawn = 0;
    pe_html_element(to, "h3", "%s", o->label);
    for (int place = 0; place < POSENC_PLACES; place++)
        if (posenc_encoding_part(o->e, (posenc_place)place))
            part(to, posenc_encoding_part(o->e, (posenc_place)place));
    char settings[PE_LONGEST_SPEC + 64];
    pe_outcome_settings(settings, o);
    fputs("<p>Settings: <code>", to);
    pe_html_text(to, settings);
    if (o->runs[0].encoding_parameters)
        fprintf(to, "</code>. It learns %lld numbers of its own.", (long long)o->runs[0].encoding_parameters);
    else
        fputs("</code>. It learns nothing of its own.", to);
    if (o->diverged)
        fputs(" <span class=FAILED>Its training diverged: a loss was no longer a finite number.</span>", to);
    fputs("</p>\n", to);
    for (int i = 0; i < g->count; i++)
        if (g->items[i].outcome == index) {
            figure(to, &g->items[i],
                   o->untrained_beyond ? "Beyond the line at L are rows that no training step ever reached."
                                       : "");
            drawn = 1;
        }
    if (!drawn && !o->diverged)
        fputs("<p class=note>Nothing about positions enters this model, so there is nothing to draw.</p>\n",
              to);
}

static void encodings(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    int *order = malloc((size_t)c->count * sizeof *order);
    fputs("<h2 id=encodings>The encodings, as they came out of training</h2>\n", to);
    for (int i = 0, n = order ? pe_outcomes_order(c, order) : 0; i < n; i++)
        encoding(to, c, g, order[i]);
    free(order);
    for (int i = 0; i < c->absent_count; i++) {
        pe_html_element(to, "h3", "%s", c->absent[i].label);
        pe_html_element(to, "p", "It does not apply to these models: %s.", c->absent[i].reason);
    }
}

/* ---------------------------------------------------------------- papers, reading, repeating  */

static const struct anchor {
    const char *encoding, *source, *model, *unit, *at[4];
} anchors[] = {
#define ANCHOR(encoding, ...)                                 ANCHOR_ROW(encoding, __VA_ARGS__)
#define ANCHOR_ROW(encoding, source, model, unit, a, b, c, d) {encoding, source, model, unit, {a, b, c, d}},
#include "train/anchors.def"
#undef ANCHOR
#undef ANCHOR_ROW
};

enum { ANCHORS = sizeof anchors / sizeof *anchors };

/* The outcome that a paper's row is to be read beside; NULL if it was not compared. */
static const pe_outcome *ours(const pe_compare *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (c->outcomes[i].is_complete && c->outcomes[i].is_plain && !strcmp(c->outcomes[i].label, name))
            return &c->outcomes[i];
    return NULL;
}

static void anchor_row(FILE *to, const struct anchor *a, const pe_outcome *o)
{
    fputs("<tr><th scope=row class=t>", to);
    pe_html_text(to, a->encoding);
    fputs("</th>", to);
    for (int k = 0; k < 4; k++)
        fprintf(to, "<td>%s</td>", a->at[k]);
    for (int b = PE_AT_L; b < PE_BUCKETS; b++)
        if (isfinite(o->loss[b]))
            fprintf(to, "<td>%.2f</td>", o->loss[b]);
        else
            fputs("<td>-</td>", to);
    fputs("<td class=w>", to);
    pe_html_text(to, a->model);
    fputs("; ", to);
    paper(to, a->source);
    fputs("</td></tr>\n", to);
}

/* The papers measured the next token, so beside hidden bytes there is nothing to read. */
static void papers(FILE *to, const pe_compare *c)
{
    if (c->config.bidirectional)
        return;
    fputs("<h2 id=papers>What papers found</h2>\n"
          "<p>Large models, perplexity per token (lower is better), beside the small ones of this page, nats "
          "per byte. "
          "The two units cannot be compared with each other; what to compare is how each row goes on beyond "
          "L.</p>\n"
          "<div class=wide><table><thead><tr><th rowspan=2 class=t>encoding</th><th colspan=4>paper: "
          "perplexity at</th>"
          "<th colspan=4>this page: nats per byte at</th><th rowspan=2 class=w>the paper's model and "
          "text</th></tr>\n"
          "<tr><th>L</th><th>x2</th><th>x4</th><th>x8</th><th>L</th><th>x2</th><th>x4</th><th>x8</th></tr></"
          "thead>"
          "<tbody>\n",
          to);
    for (int i = 0; i < ANCHORS; i++)
        if (ours(c, anchors[i].encoding))
            anchor_row(to, &anchors[i], ours(c, anchors[i].encoding));
    fputs("</tbody></table></div>\n", to);
}

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

static void repeating(FILE *to, const pe_compare *c)
{
    char workers[48], last[32] = "";
    if (c->config.preset.seeds > 1)
        snprintf(last, sizeof last, " to %lld", (long long)c->config.preset.seeds);
    fputs("<h2 id=repeat>Repeat it</h2>\n", to);
    if (c->config.call)
        pe_html_element(to, "pre", "%s", c->config.call);
    pe_html_element(
        to, "p",
        "posenc %s; seed 1%s; %s on %s, instruction set %s; %.0f seconds of training and "
        "evaluation. Results do not depend on the number of workers. On another instruction set the last "
        "digits of "
        "sums may differ, and training carries that on into the losses.",
        posenc_version(), last, many(workers, c->workers, "worker"), c->machine, posenc_isa(),
        c->wall_seconds);
    fputs("<p>All numbers are in <code>results.json</code> beside this page, the buckets in "
          "<code>results.csv</code>, "
          "the loss at every position in <code>curves.csv</code>, the tasks in <code>tasks.csv</code>, the "
          "pictures as SVG and PNG.</p>\n",
          to);
}

void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    head(to, c, g);
    answer(to, c);
    what_was_run(to, c);
    results(to, c);
    entries(to, c);
    curves(to, c, g);
    pe_report_trained(to, c);
    pe_report_tasks(to, c->suite);
    pe_report_extension(to, c);
    checks(to, c);
    encodings(to, c, g);
    papers(to, c);
    pe_report_claims(to, c);
    reading(to, c);
    repeating(to, c);
    fputs("</main></body></html>\n", to);
}
