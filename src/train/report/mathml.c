/* SPDX-License-Identifier: MIT */
/*
 * mathml.c: formulas that are written in a line, as MathML
 *
 * MathML is what browsers draw without a script, and nobody can read or write it. So the rooms have their
 * formulas (posenc_encoding_info) in a notation that can be read, in UTF-8:
 *
 *     abc, ω, 0.5      a name, upright if it has several letters; a number
 *     x_{h,i}^2        below and above; braces hold more than one thing, and are not shown
 *     frac{a}{b}       a fraction
 *     sqrt{a}          a root
 *     "if"             words
 *     anything else    an operator, a bracket
 *
 * Spaces separate; `q k` is two names. Under a sum sign what is below it stands below it.
 *
 * The reader descends: a list is items up to a closing brace, an item an atom with what is below and above,
 * an atom one of the lines above. MathML wants the atom inside the element of its indices, so an item is read
 * twice: first to see where its atom ends, with nowhere to write to.
 */
#include "train/report/report.h"

#include <string.h>

typedef struct formula_reader {
    FILE       *to; /* NULL: only look */
    const char *at;
    int         is_broken;
} formula_reader;

static void list(formula_reader *r, const char *tag);

static void put(formula_reader *r, const char *markup)
{
    if (r->to)
        fputs(markup, r->to);
}

/* <tag>the next n bytes</tag> */
static void leaf(formula_reader *r, const char *tag, size_t n)
{
    if (r->to) {
        fprintf(r->to, "<%s>", tag);
        pe_words_escape(r->to, r->at, n);
        fprintf(r->to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
    }
    r->at += n;
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                  digits[]  = "0123456789.";

/* Bytes of the UTF-8 character at s. */
static size_t width_of(const char *s)
{
    size_t n = 1;
    while (((unsigned char)s[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* Greek: U+0370 to U+03FF. */
static int is_greek(const char *s)
{
    const unsigned char lead = (unsigned char)*s;
    return lead >= 0xCD && lead <= 0xCF;
}

/* As high as a letter: what is tall in these formulas stands in a fraction of its own. */
#define BRACKET "mo stretchy=\"false\" lspace=\"0\" rspace=\"0\""

static int is_bracket(const char *s)
{
    static const char *const all[] = {"(", ")", "[", "]", "|", "⌊", "⌋", "⌈", "⌉"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strncmp(s, all[i], strlen(all[i])))
            return 1;
    return 0;
}

static int starts(const formula_reader *r, const char *word)
{
    return !strncmp(r->at, word, strlen(word));
}

static void words(formula_reader *r)
{
    const size_t n = strcspn(++r->at, "\"");
    if (r->at[n] != '"')
        r->is_broken = 1;
    else {
        leaf(r, "mtext", n);
        r->at++;
    }
}

static void atom(formula_reader *r)
{
    if (*r->at == '{')
        list(r, "mrow");
    else if (*r->at == '"')
        words(r);
    else if (starts(r, "frac{")) {
        r->at += strlen("frac");
        put(r, "<mfrac>");
        list(r, "mrow");
        list(r, "mrow");
        put(r, "</mfrac>");
    } else if (starts(r, "sqrt{")) {
        r->at += strlen("sqrt");
        list(r, "msqrt");
    } else if (strspn(r->at, letters))
        leaf(r, "mi", strspn(r->at, letters));
    else if (strspn(r->at, digits))
        leaf(r, "mn", strspn(r->at, digits));
    else if (!*r->at || strchr("}_^\n", *r->at))
        r->is_broken = 1;
    else
        leaf(r, is_greek(r->at) ? "mi" : is_bracket(r->at) ? BRACKET : "mo", width_of(r->at));
}

/* What follows the atom at r: "_", "^", "_^" or "". */
static const char *indices(const formula_reader *r)
{
    formula_reader look = {NULL, r->at, 0};
    atom(&look);
    const int below = *look.at == '_';
    if (below) {
        look.at++;
        atom(&look);
    }
    return *look.at == '^' ? below ? "_^" : "^" : below ? "_" : "";
}

static const char *element_of(const char *indices, int is_sum)
{
    static const struct {
        const char *indices, *at_side, *under;
    } elements[] = {{"_", "msub", "munder"}, {"^", "msup", "mover"}, {"_^", "msubsup", "munderover"}};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (!strcmp(indices, elements[i].indices))
            return is_sum ? elements[i].under : elements[i].at_side;
    return "mrow";
}

static void item(formula_reader *r)
{
    const char *wanted = indices(r), *element = element_of(wanted, starts(r, "∑"));
    if (r->to && *wanted)
        fprintf(r->to, "<%s>", element);
    atom(r);
    for (; *wanted && !r->is_broken; wanted++) {
        r->at++;
        atom(r);
    }
    if (r->to && strcmp(element, "mrow") != 0)
        fprintf(r->to, "</%s>", element);
}

static void items(formula_reader *r, const char *end)
{
    r->at += strspn(r->at, " ");
    while (*r->at && !strchr(end, *r->at) && !r->is_broken) {
        item(r);
        r->at += strspn(r->at, " ");
    }
}

static void list(formula_reader *r, const char *tag)
{
    if (*r->at++ != '{') {
        r->at--;
        r->is_broken = 1;
        return;
    }
    if (r->to)
        fprintf(r->to, "<%s>", tag);
    items(r, "}\n");
    if (r->to)
        fprintf(r->to, "</%s>", tag);
    r->is_broken |= *r->at != '}';
    r->at += *r->at == '}';
}

int pe_mathml_write(FILE *to, const char *formula)
{
    formula_reader r = {to, formula, 0};
    while (*r.at && !r.is_broken) {
        fputs("<math display=\"block\">", to);
        items(&r, "\n");
        fputs("</math>\n", to);
        r.at += *r.at == '\n';
    }
    return !r.is_broken;
}
