/* SPDX-License-Identifier: MIT */
/*
 * report.c: the comparison as one self-contained page
 *
 * Order of a reader's questions: the answer, what was run, the table, the pictures, whether to believe it
 * (checks), the encodings one by one, what papers found, how to read it, how to repeat it. Everything is in
 * the file: style, drawings, text. Whoever has JavaScript gets coordinates and curves that can be switched
 * off; whoever has not, or prints, loses nothing else. Prose and style stand in report.html.
 *
 * Colours are those of Okabe and Ito (src/plot/colours.c) or one hue from light to dark, and never the only
 * sign: curves differ in dashes too, cells have numbers, verdicts words. On paper everything is black on
 * white and what was folded up is open; on a phone wide tables scroll by themselves and the page does not.
 *
 * Surprises  Each drawing of gnuplot carries the same script of 30 KB. It is written once, and an empty
 *            element stands where it was, because that script counts the elements. It also takes the mouse
 *            wheel and the arrow keys, with which people scroll: a listener before it hands them back.
 */
#include "train/report/report.h"

#include "train/jobs/extension.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A part of a drawing, its texts translated: what stands between two tags. */
static void write_range(FILE *to, const char *from, const char *end)
{
    for (char before = 0; from < end;) {
        const size_t left = (size_t)(end - from), to_mark = strcspn(from, "<>&\"");
        const size_t n = to_mark < left ? to_mark : left;
        if (before == '>' && n < left && from[n] == '<')
            pe_words_write(to, from, n);
        else
            fwrite(from, 1, n, to);
        from += n;
        if (from < end)
            fputc(before = *from++, to);
    }
}

/* The drawing without XML's first line, with the figure's title for those who cannot see it, and without the
   script. */
static void drawing(FILE *to, const pe_exhibit *x)
{
    const char *at = strstr(x->svg, "<svg"), *title = at ? strstr(at, title_open) : NULL;
    const char *title_end = title ? strstr(title, title_close) : NULL, *script_end;
    if (!title_end)
        return;
    fwrite(at, 1, (size_t)(title + sizeof title_open - 1 - at), to);
    char line[256]; /* a figure's title may have two */
    snprintf(line, sizeof line, "%s", x->figure->title ? x->figure->title : "");
    for (char *newline = line; (newline = strchr(newline, '\n'));)
        *newline = ' ';
    pe_html_text(to, line);
    const char *script = find_script(title_end, &script_end);
    if (script) {
        write_range(to, title_end, script);
        fputs("<script></script>", to);
    }
    const char *rest = script ? script_end : title_end;
    write_range(to, rest, rest + strlen(rest));
}

void pe_report_figure(FILE *to, const pe_exhibit *x, const char *caption)
{
    fputs("<figure>\n", to);
    drawing(to, x);
    pe_html_element(to, "figcaption", "%s", caption);
    fputs("</figure>\n", to);
}

/* gnuplot's script, once for all drawings and before them, out of its CDATA. */
static void write_script(FILE *to, const pe_gallery *g)
{
    static const char opening[] = "<![CDATA[", closing[] = "]]>";
    const char       *end, *start = g->count ? find_script(g->items[0].svg, &end) : NULL;
    const char *code = start ? strstr(start, opening) : NULL, *code_end = code ? strstr(code, closing) : NULL;
    if (!code_end || code_end > end)
        return;
    fputs("<script>\n"
          "for (const kind of ['wheel', 'keydown'])\n"
          "    window.addEventListener(kind, e => { if (!e.ctrlKey) e.stopPropagation(); }, true);\n"
          "addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => d.open = "
          "true));\n",
          to);
    fwrite(code + sizeof opening - 1, 1, (size_t)(code_end - code) - sizeof opening + 1, to);
    fputs("</script>\n", to);
}

/* ---------------------------------------------------------------- papers -------------------- */

void pe_report_paper(FILE *to, const char *source)
{
    const char *number = strstr(source, "arXiv:"), *rest = source;
    fputs("<cite translate=\"no\">", to);
    if (number) {
        const char  *id = number + strlen("arXiv:");
        const size_t n  = strspn(id, "0123456789.");
        pe_html_escape(to, source, (size_t)(number - source));
        fprintf(to, "<a href=\"https://arxiv.org/abs/%.*s\">arXiv:%.*s</a>", (int)n, id, (int)n, id);
        rest = id + n;
    }
    pe_html_escape(to, rest, strlen(rest));
    fputs("</cite>", to);
}

/* ---------------------------------------------------------------- sections ------------------ */

const char *pe_report_many(char text[48], int64_t n, const char *what)
{
    snprintf(text, 48, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
    return text;
}

/* The drawing of that name between two parts of the template, "NAME" and "NAME caption"; nothing where it was
   not measured. */
static void draw(pe_page *page, const pe_gallery *g, const char *name)
{
    const pe_exhibit *x = pe_gallery_find(g, name);
    char              caption[64];
    if (!x)
        return;
    pe_page_part(page, name);
    drawing(page->to, x);
    snprintf(caption, sizeof caption, "%s caption", name);
    pe_page_part(page, caption);
}

static void number(pe_page *page, const char *name, int64_t n)
{
    pe_page_set(page, name, "%lld", (long long)n);
}

/* A value that only says yes, where it is not empty. */
static void flag(pe_page *page, const char *name, int is)
{
    pe_page_set(page, name, "%s", is ? "yes" : "");
}

static void set_flags(pe_page *page, const pe_compare *c)
{
    flag(page, "bidirectional", c->config.bidirectional);
    flag(page, "tasks", c->suite->task_count > 0);
    flag(page, "extension", c->extension && c->extension->count && c->extension->means);
    flag(page, "claims", c->properties != NULL);
}

/* What parts of the template speak of. */
static void set_values(pe_page *page, const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    char             text[48];
    const struct {
        const char *name;
        int64_t     n;
    } numbers[] = {{"steps", p->steps},
                   {"encodings", c->count},
                   {"layers", p->layers},
                   {"width", p->d_model},
                   {"heads", p->heads},
                   {"batch", p->batch},
                   {"L", p->L},
                   {"smooth", p->L / 8},
                   {"windows", c->windows},
                   {"reach", PE_REACH * p->L},
                   {"bytes", c->text.size},
                   {"thousand", c->reference >= 0 ? c->outcomes[c->reference].runs[0].parameters / 1000 : 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        number(page, numbers[i].name, numbers[i].n);
    const struct {
        const char *name, *text;
    } texts[] = {{"lang", pe_language_code(c->config.language)},
                 {"text", c->config.text_name},
                 {"answer", c->answer},
                 {"warning", c->warning},
                 {"objective", pe_objective_text(c->config.bidirectional)},
                 {"call", c->config.call ? c->config.call : ""},
                 {"version", posenc_version()},
                 {"machine", c->machine},
                 {"isa", posenc_isa()}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        pe_page_set(page, texts[i].name, "%s", texts[i].text);
    if (p->seeds > 1)
        number(page, "seeds", p->seeds);
    else
        flag(page, "seeds", 0);
    pe_page_set(page, "trained", "%s", pe_report_many(text, p->seeds, "seed"));
    pe_page_set(page, "workers", "%s", pe_report_many(text, c->workers, "worker"));
    pe_page_set(page, "seconds", "%.0f", c->wall_seconds);
    pe_page_set(page, "cosine", "%.3f", pe_random_cosine(p->d_model));
    pe_page_set(page, "cosine_512", "%.3f", pe_random_cosine(512));
    set_flags(page, c);
}

static void meanings(FILE *to, const pe_table *t)
{
    fputs("<dl>\n", to);
    for (int k = 0; k < t->column_count; k++) {
        pe_html_element(to, "dt", "%s", t->columns[k].head);
        pe_html_element(to, "dd", "%s", t->columns[k].meaning);
    }
    fputs("</dl></details>\n", to);
}

static void results(pe_page *page, const pe_compare *c)
{
    pe_table t;
    pe_page_part(page, "results");
    if (pe_compare_table(c, &t, NULL))
        return;
    pe_html_table(page->to, &t, "", 0);
    pe_html_notes(page->to, t.notes);
    pe_page_part(page, "more");
    pe_html_table(page->to, &t, "", 1);
    meanings(page->to, &t);
    pe_table_free(&t);
}

/* Adding against concatenating, with the argument that adding is defended by. */
static void entries(pe_page *page, const pe_compare *c)
{
    pe_table t;
    int      is_plain;
    if (pe_compare_entries(c, &t, &is_plain, NULL))
        return;
    if (t.row_count > 0) {
        flag(page, "plain", is_plain);
        pe_page_part(page, "entries");
        pe_html_table(page->to, &t, "", 1);
        pe_page_part(page, "sum");
        meanings(page->to, &t);
    }
    pe_table_free(&t);
}

/* ---------------------------------------------------------------- trained models ------------ */

#define LEAST_SHIFT 1e-4 /* nats: what check 14 allows where nothing may change */

enum { RATIOS = 1, CLASS = 4, BREAK, GAIN, NEAR, FAR, SHIFTS, COLUMNS = SHIFTS + PE_SHIFTS };

/* A dash where it was not measured. */
static void distance(pe_table *t, int row, int column, int64_t distance)
{
    pe_table_number(t, row, column, "%.0f", distance < 0 ? NAN : (double)distance);
}

/* Round-off of sums in float is no finding. */
static void shift(pe_table *t, int row, int column, double x)
{
    if (fabs(x) > 0 && fabs(x) < LEAST_SHIFT)
        pe_table_set(t, row, column, "<%g", LEAST_SHIFT);
    else
        pe_table_number(t, row, column, fabs(x) > 0 ? "%+.4f" : "%.0f", isfinite(x) ? x : NAN);
}

static void put_trained(pe_table *t, int row, const pe_outcome *o)
{
    pe_table_text(t, row, 0, o->label);
    for (int b = PE_AT_2L; b < PE_BUCKETS; b++)
        pe_table_number(t, row, RATIOS + b - PE_AT_2L, "%.2f", isfinite(o->ratio[b]) ? o->ratio[b] : NAN);
    pe_table_text(t, row, CLASS, o->verdict);
    distance(t, row, BREAK, o->break_position + 1);
    if (isfinite(o->gain.value))
        pe_table_set(t, row, GAIN, "%+.3f\n%+.3f to %+.3f", o->gain.value, o->gain.low, o->gain.high);
    else
        pe_table_text(t, row, GAIN, "-");
    distance(t, row, NEAR, o->near_90);
    distance(t, row, FAR, o->far_90);
    for (int i = 0; i < PE_SHIFTS; i++)
        shift(t, row, SHIFTS + i, o->shift[i]);
}

/* One row per encoding, best at L first: how far it carries (extrapolation, break), what it makes of more
   context (gain), how far back it looks (attention), and whether it notices where a text begins (shift). */
static void trained(pe_page *page, const pe_compare *c, const pe_gallery *g)
{
    static const pe_group groups[]       = {{RATIOS, 4, "loss beyond L / at L"},
                                            {NEAR, 2, "90 % of the weight within"},
                                            {SHIFTS, PE_SHIFTS, "change of loss from position"}};
    pe_column             heads[COLUMNS] = {{"encoding", NULL, 1, 0},
                                            {"E_2", NULL, 0, 0},
                                            {"E_4", NULL, 0, 0},
                                            {"E_8", NULL, 0, 0},
                                            {"class", NULL, 1, 0},
                                            {"breaks at", NULL, 0, 0},
                                            {"gain of 8 L over L", NULL, 0, 0},
                                            {"at L", NULL, 0, 0},
                                            {"at 8 L", NULL, 0, 0}};
    char                  from[PE_SHIFTS][24];
    pe_table              t;
    int                  *order = c->config.bidirectional ? NULL : malloc((size_t)c->count * sizeof *order);
    const int             n     = order ? pe_outcomes_order(c, order) : 0;
    for (int i = 0; i < PE_SHIFTS; i++) {
        snprintf(from[i], sizeof from[i], "%lld", (long long)pe_shift_at(c->config.preset.L, i));
        heads[SHIFTS + i] = (pe_column){.head = from[i]};
    }
    if (n > 0 && !pe_table_open(&t, heads, COLUMNS, n, NULL)) {
        t.groups      = groups;
        t.group_count = sizeof groups / sizeof *groups;
        for (int i = 0; i < n; i++)
            put_trained(&t, i, &c->outcomes[order[i]]);
        pe_page_part(page, "trained");
        pe_html_table(page->to, &t, "", 1);
        pe_page_part(page, "trained columns");
        draw(page, g, "attention");
        pe_table_free(&t);
    }
    free(order);
}

/* ---------------------------------------------------------------- the page ------------------ */

static void checks(pe_page *page, const pe_compare *c)
{
    static const char *const counted[] = {"passed", "failed", "not_applicable"}; /* ORDER pe_verdict */
    pe_table                 t;
    if (pe_compare_checks(c, &t, 1, NULL))
        return;
    for (pe_verdict v = PE_PASSED; v <= PE_NOT_APPLICABLE; v++) {
        int count = 0;
        for (int row = 0; row < t.row_count; row++)
            count += pe_table_at(&t, row, 2)->kind == pe_verdict_name(v);
        number(page, counted[v], count);
    }
    pe_page_part(page, "checks");
    pe_html_table(page->to, &t, "stack", 1);
    pe_table_free(&t);
}

void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    pe_page page = {.to = to};
    pe_words_speak(c->config.language);
    set_values(&page, c);
    pe_page_part(&page, "head");
    write_script(to, g);
    pe_page_part(&page, "answer");
    pe_page_part(&page, "run");
    results(&page, c);
    entries(&page, c);
    draw(&page, g, "length");
    draw(&page, g, "loss");
    draw(&page, g, "training");
    trained(&page, c, g);
    pe_report_tasks(&page, c->suite);
    pe_report_extension(&page, c);
    checks(&page, c);
    pe_report_cards(&page, c, g);
    pe_report_papers(&page, c);
    pe_report_claims(&page, c);
    pe_page_part(&page, "reading");
    pe_words_speak(PE_ENGLISH);
}
