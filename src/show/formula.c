/* SPDX-License-Identifier: MIT */
/*
 * formula.c: the reader of formulas. Contract: formula.h.
 *
 * It descends: a list is items up to what ends it, an item an atom with what is below and above, an atom a
 * leaf, a list in braces, or a word with braces behind it. Inside round brackets the commas of a matrix do
 * not end its cells.
 */
#include "show/formula.h"

#include <stdlib.h>
#include <string.h>

typedef struct formula_reader {
    const char *at;
    int         is_broken; /* or there is no memory */
} formula_reader;

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                  digits[] = "0123456789.", blanks[] = " ";

static pe_formula *read_list(formula_reader *r, const char *end);

size_t pe_formula_letter(const char *s)
{
    size_t n = 1;
    while (((unsigned char)s[n] & 0xC0) == 0x80)
        n++;
    return n;
}

void pe_formula_free(pe_formula *f)
{
    while (f) {
        pe_formula *next = f->next;
        pe_formula_free(f->parts);
        pe_formula_free(f->below);
        pe_formula_free(f->above);
        free(f);
        f = next;
    }
}

int pe_formula_is(const pe_formula *f, const char *text)
{
    return f && f->text && f->size == strlen(text) && !strncmp(f->text, text, f->size);
}

/* A node of that kind, its text the next n bytes. */
static pe_formula *add(formula_reader *r, pe_formula_kind kind, size_t n)
{
    pe_formula *f = calloc(1, sizeof *f);
    if (f)
        *f = (pe_formula){.kind = kind, .text = r->at, .size = n};
    r->is_broken |= !f;
    r->at += n;
    return f;
}

/* Greek: U+0370 to U+03FF. */
static int is_greek(const char *s)
{
    const unsigned char lead = (unsigned char)*s;
    return lead >= 0xCD && lead <= 0xCF;
}

static int is_bracket(const char *s)
{
    static const char *const all[] = {"(", ")", "[", "]", "|", "⌊", "⌋", "⌈", "⌉"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strncmp(s, all[i], strlen(all[i])))
            return 1;
    return 0;
}

static int skip(formula_reader *r, char c)
{
    const int is_there = *r->at == c;
    r->at += is_there;
    return is_there;
}

/* ---------------------------------------------------------------- atoms --------------------- */

static pe_formula *read_braces(formula_reader *r)
{
    if (!skip(r, '{')) {
        r->is_broken = 1;
        return NULL;
    }
    pe_formula *list = read_list(r, "}");
    r->is_broken |= !skip(r, '}');
    return list;
}

static pe_formula *read_words(formula_reader *r)
{
    r->at++;
    pe_formula *f = add(r, PE_WORDS, strcspn(r->at, "\"\n"));
    r->is_broken |= !skip(r, '"');
    return f;
}

/* frac{a}{b} or sqrt{a}. */
static pe_formula *read_parts(formula_reader *r, pe_formula_kind kind, int count)
{
    pe_formula  *f    = add(r, kind, strcspn(r->at, "{"));
    pe_formula **next = f ? &f->parts : NULL;
    for (int i = 0; i < count && next && !r->is_broken; i++) {
        *next = read_braces(r);
        next  = *next ? &(*next)->next : NULL;
    }
    return f;
}

static pe_formula *read_matrix(formula_reader *r)
{
    pe_formula  *f       = add(r, PE_MATRIX, strlen("matrix{"));
    pe_formula **next    = f ? &f->parts : NULL;
    int          columns = 0;
    for (char end = 0; next && end != '}' && !r->is_broken;) {
        *next = read_list(r, ",;}");
        next  = *next ? &(*next)->next : NULL;
        columns++;
        end = *r->at;
        r->at += end != 0;
        r->is_broken |= !end || end == '\n' || (end != ',' && f->columns && columns != f->columns);
        if (end != ',') {
            f->columns = columns;
            columns    = 0;
        }
    }
    return f;
}

static int starts(const formula_reader *r, const char *word)
{
    return !strncmp(r->at, word, strlen(word));
}

static pe_formula *read_atom(formula_reader *r)
{
    if (*r->at == '{')
        return read_braces(r);
    if (*r->at == '"')
        return read_words(r);
    if (starts(r, "frac{"))
        return read_parts(r, PE_FRACTION, 2);
    if (starts(r, "sqrt{"))
        return read_parts(r, PE_ROOT, 1);
    if (starts(r, "matrix{"))
        return read_matrix(r);
    if (strspn(r->at, letters))
        return add(r, PE_NAME, strspn(r->at, letters));
    if (strspn(r->at, digits))
        return add(r, PE_NUMBER, strspn(r->at, digits));
    if (*r->at && !strchr("}_^\n", *r->at))
        return add(r,
                   is_greek(r->at)     ? PE_NAME
                   : is_bracket(r->at) ? PE_BRACKET
                                       : PE_SIGN,
                   pe_formula_letter(r->at));
    r->is_broken = 1;
    return NULL;
}

/* ---------------------------------------------------------------- lists --------------------- */

static pe_formula *read_item(formula_reader *r)
{
    pe_formula *f = read_atom(r);
    if (f && !r->is_broken && skip(r, '_'))
        f->below = read_atom(r);
    if (f && !r->is_broken && skip(r, '^'))
        f->above = read_atom(r);
    return f;
}

static pe_formula *read_list(formula_reader *r, const char *end)
{
    pe_formula  *list = add(r, PE_LIST, 0), **next = list ? &list->parts : NULL;
    int          depth = 0;
    const size_t first = strspn(r->at, blanks);
    for (r->at += first; next && *r->at && *r->at != '\n' && !r->is_broken; next = &(*next)->next) {
        if (strchr(end, *r->at) && (!depth || *r->at == '}'))
            break;
        const int spaced = list->parts && r->at[-1] == ' ';
        if (!(*next = read_item(r)))
            break;
        (*next)->spaced = spaced;
        depth += pe_formula_is(*next, "(") - pe_formula_is(*next, ")");
        r->at += strspn(r->at, blanks);
    }
    return list;
}

pe_formula *pe_formula_read(const char *text, const char **rest)
{
    formula_reader r    = {text, 0};
    pe_formula    *list = read_list(&r, "");
    *rest               = r.at + (*r.at == '\n');
    if (!r.is_broken)
        return list;
    pe_formula_free(list);
    return NULL;
}
