/* SPDX-License-Identifier: MIT */
/* mathml.c: a formula as MathML. Contract: formula.h. */
#include "show/formula.h"
#include "show/page.h"

#include <string.h>

/* As high as a letter: what is tall in these formulas stands in a fraction of its own. */
#define BRACKET "mo stretchy=\"false\" lspace=\"0\" rspace=\"0\""

static void write_list(FILE *to, const pe_formula *list, const char *tag);

/* <tag>text</tag> */
static void write_leaf(FILE *to, const pe_formula *f, const char *tag)
{
    fprintf(to, "<%s>", tag);
    pe_page_escape(to, f->text, f->size);
    fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

static void write_matrix(FILE *to, const pe_formula *f)
{
    int column = 0;
    fputs("<mrow><mo>[</mo><mtable>", to);
    for (const pe_formula *cell = f->parts; cell; cell = cell->next) {
        fputs(column == 0 ? "<mtr>" : "", to);
        write_list(to, cell, "mtd");
        column = (column + 1) % f->columns;
        fputs(column == 0 ? "</mtr>\n" : "", to);
    }
    fputs("</mtable><mo>]</mo></mrow>", to);
}

static void write_atom(FILE *to, const pe_formula *f)
{
    static const char *const tags[] = {"mi", "mn", "mtext", BRACKET, "mo"}; /* ORDER pe_formula_kind */
    switch (f->kind) {
    case PE_LIST: write_list(to, f, "mrow"); return;
    case PE_ROOT: write_list(to, f->parts, "msqrt"); return;
    case PE_MATRIX: write_matrix(to, f); return;
    case PE_FRACTION:
        fputs("<mfrac>", to);
        write_list(to, f->parts, "mrow");
        write_list(to, f->parts->next, "mrow");
        fputs("</mfrac>", to);
        return;
    default: write_leaf(to, f, tags[f->kind]);
    }
}

/* The element that holds an atom with what is below and above it; NULL: it has neither. */
static const char *element_of(const pe_formula *f)
{
    static const char *const elements[2][4] = {{NULL, "msub", "msup", "msubsup"},
                                               {NULL, "munder", "mover", "munderover"}};
    return elements[pe_formula_is(f, "∑")][(f->below != NULL) + 2 * (f->above != NULL)];
}

static void write_item(FILE *to, const pe_formula *f)
{
    const char *element = element_of(f);
    if (element)
        fprintf(to, "<%s>", element);
    write_atom(to, f);
    if (f->below)
        write_atom(to, f->below);
    if (f->above)
        write_atom(to, f->above);
    if (element)
        fprintf(to, "</%s>", element);
}

static void write_list(FILE *to, const pe_formula *list, const char *tag)
{
    fprintf(to, "<%s>", tag);
    for (const pe_formula *f = list->parts; f; f = f->next)
        write_item(to, f);
    fprintf(to, "</%.*s>", (int)strcspn(tag, " "), tag);
}

int pe_mathml_write(FILE *to, const char *formula)
{
    while (*formula) {
        pe_formula *list = pe_formula_read(formula, &formula);
        if (!list)
            return 0;
        write_list(to, list, "math display=\"block\"");
        fputc('\n', to);
        pe_formula_free(list);
    }
    return 1;
}
