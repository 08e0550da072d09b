/* SPDX-License-Identifier: MIT */
/*
 * report_page.c: what the whole page shares: its style, drawings, their script, links to papers
 *
 * Colours are those of Okabe and Ito (src/plot/colours.c) or one hue from light to dark, and never the only
 * sign: curves differ in dashes too, cells have numbers, verdicts words. On paper everything is black on
 * white and what was folded up is open; on a phone wide tables scroll by themselves and the page does not.
 *
 * Surprises  Each drawing of gnuplot carries the same script of 30 KB. It is written once, and an empty
 *            element stands where it was, because that script counts the elements. It also takes the mouse
 *            wheel and the arrow keys, with which people scroll: a listener before it hands them back.
 */
#include "train/report.h"

#include "train/html.h"

#include <string.h>

/* ---------------------------------------------------------------- style --------------------- */

/* clang-format off */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c1c1c;--paper:#fff;--faint:#595959;--line:#ccc;--soft:#f4f4f1;"
    "--good:#00693e;--bad:#b3261e;--blue:#0072b2}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--faint:#a8a8a8;--line:#444;"
    "--soft:#222;--good:#6fcf97;--bad:#ff8a80;--blue:#7cc4ec}}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,\"Noto Sans CJK SC\","
    "\"PingFang SC\",\"Microsoft YaHei\",\"WenQuanYi Micro Hei\",sans-serif}\n"
    "main{max-width:72rem;margin:0 auto;padding:1.5rem}p,ul,dl,nav{max-width:64rem}a{color:var(--blue)}\n"
    "h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}"
    "h3{margin:2rem 0 .3rem}h4{margin:.6rem 0 .2rem;font-weight:500}cite{font-style:normal}\n"
    ".answer{font-size:1.15rem;background:var(--soft);border-left:4px solid var(--blue);padding:.8rem 1rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25rem .55rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;"
    "font-weight:400;vertical-align:top}\n"
    "thead th{font-weight:600;vertical-align:bottom;white-space:normal;word-break:keep-all}tbody th{font-weight:600}.t,.w{text-align:left}"
    "tbody tr:hover{background:var(--soft)}.w{white-space:normal;min-width:16rem;overflow-wrap:anywhere}"
    ".ours{border-left:2px solid var(--line)}\n"
    ".note,figcaption,small{color:var(--faint)}.note,figcaption{font-size:.88rem;margin:.3rem 0}td.note,b.note{font-size:inherit}\n"
    ".heat td{text-align:center;border:1px solid var(--line);print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}.heat td small{color:inherit}.heat thead th:not(.t){text-align:center}\n"
    "figure{margin:1rem 0;overflow-x:auto}figure svg>rect{stroke:none}figure image{image-rendering:pixelated}"
    "figure svg{display:block;width:100%;min-width:34rem;max-width:64rem;height:auto;background:#fff;border-radius:4px}\n"
    "code,pre{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}"
    "pre{background:var(--soft);padding:.8rem;white-space:pre-wrap}\n"
    ".passed{color:var(--good)}.FAILED{color:var(--bad);font-weight:700}\n"
    "dt{font-weight:600}dd{margin:0 0 .4rem 1.2rem}nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem}\n"
    "article.card{border:1px solid var(--line);border-radius:6px;padding:.2rem 1rem 1rem;margin:1.5rem 0}"
    "article.card>h3{margin-top:.8rem}.formula{overflow-x:auto;padding:.4rem 0}math{font-size:1.15em;margin:.5rem 0}\n"
    "dl.card{display:grid;grid-template-columns:minmax(6.5rem,max-content) 1fr;gap:.1rem 1rem;margin:.4rem 0}"
    "dl.card dt{font-weight:400;color:var(--faint)}dl.card dd{margin:0;min-width:0;overflow-wrap:anywhere}\n"
    "@media(max-width:40rem){main{padding:.8rem}h1{font-size:1.35rem}.w{min-width:11rem}"
    "table{font-size:.8rem}th,td{padding:.2rem .4rem}tbody th{white-space:normal;overflow-wrap:anywhere}"
    "tbody th.t{min-width:7.1rem}tbody th:first-child{position:sticky;left:0;background:var(--paper);"
    "box-shadow:0 1px var(--line)}"
    ".stack thead{display:none}.stack tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--line)}"
    ".stack td,.stack th{border:0;white-space:normal;text-align:left}.stack tbody th:first-child{box-shadow:none}"
    ".stack .w{flex:1 0 75%;min-width:0}}\n"
    "@media print{:root{color-scheme:light;--ink:#000;--paper:#fff;--faint:#444;--line:#bbb;--soft:#fff;"
    "--good:#000;--bad:#000;--blue:#000}body{font-size:10pt}main{max-width:none;padding:0}nav{display:none}"
    ".wide,figure{overflow:visible}table{font-size:7pt}th,td{padding:.1rem .25rem;white-space:normal;word-break:keep-all}"
    "details table:not(.heat){font-size:5.7pt}details table:not(.heat) td{white-space:nowrap}p,ul,dl{max-width:none}"
    ".w{min-width:8rem}figure svg{min-width:0;width:auto;max-width:100%;max-height:3.4in}"
    ".stack td:not(.w){white-space:nowrap}p:has(+.wide),h2,h3,h4,summary,thead{break-after:avoid}"
    "figure,tr,.formula,.heat{break-inside:avoid}"
    "details::details-content{content-visibility:visible;display:block;block-size:auto}}\n";
/* clang-format on */

void pe_report_style(FILE *to)
{
    fprintf(to, "<style>\n%s</style>\n", style);
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

/* The drawing without XML's first line, with the figure's title for those who cannot see it, and without the
   script. */
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

void pe_report_figure(FILE *to, const pe_exhibit *x, const char *caption)
{
    fputs("<figure>\n", to);
    drawing(to, x);
    pe_html_element(to, "figcaption", "%s", caption);
    fputs("</figure>\n", to);
}

/* gnuplot's script, once for all drawings and before them, out of its CDATA. */
void pe_report_script(FILE *to, const pe_gallery *g)
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
    write_range(to, code + sizeof opening - 1, code_end);
    fputs("</script>\n", to);
}

/* ---------------------------------------------------------------- papers -------------------- */

/* Up to the number, the number as a link, what follows it. */
static void link_number(FILE *to, const char *source, const char *id)
{
    const size_t n = strspn(id, "0123456789.");
    char         before[256];
    snprintf(before, sizeof before, "%.*s", (int)(id - strlen("arXiv:") - source), source);
    pe_html_text(to, before);
    fprintf(to, "<a href=\"https://arxiv.org/abs/%.*s\">arXiv:%.*s</a>", (int)n, id, (int)n, id);
    pe_html_text(to, id + n);
}

void pe_report_paper(FILE *to, const char *source)
{
    const char *number = strstr(source, "arXiv:");
    fputs("<cite translate=\"no\">", to);
    if (number)
        link_number(to, source, number + strlen("arXiv:"));
    else
        pe_html_text(to, source);
    fputs("</cite>", to);
}
