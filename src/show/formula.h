/* SPDX-License-Identifier: MIT */
/*
 * formula.h: formulas that are written in a line, as MathML for pages and as text for terminals
 *
 * MathML is what browsers draw without a script, and nobody can read or write it. So rooms and tutorials have
 * their formulas in a notation that can be read, in UTF-8:
 *
 *     abc, ω, 0.5            a name, upright if it has several letters; a number
 *     x_{h,i}^2              below and above; braces hold more than one thing, and are not shown
 *     frac{a}{b}             a fraction
 *     sqrt{a}                a root
 *     matrix{a, b; c, d}     a matrix by rows; matrix{a; b} is a vector
 *     "if"                   words
 *     anything else          an operator, a bracket
 *
 * Spaces separate; `q k` is two names. Under a sum sign what is below it stands below it. Lines of a text are
 * formulas of their own.
 */
#ifndef PE_SHOW_FORMULA_H
#define PE_SHOW_FORMULA_H

#include <stdio.h>

/* Each line of the text as a <math> element. 0, and what was written is of no use, where it is not well
   formed or there is no memory. */
int pe_mathml_write(FILE *to, const char *formula);

/* As text, indices and fractions in lines of their own; what is wider than `width` goes on below, before an
   operator. Every line is indented. The same result. */
int pe_plain_write(FILE *to, const char *formula, int indent, int width);

/* ---------------------------------------------------------------- read ---------------------- */

/* NAME to SIGN are text; LIST has parts, FRACTION two lists, ROOT one, MATRIX its cells by rows. */
typedef enum pe_formula_kind {
    PE_NAME,
    PE_NUMBER,
    PE_WORDS,
    PE_BRACKET,
    PE_SIGN,
    PE_LIST,
    PE_FRACTION,
    PE_ROOT,
    PE_MATRIX
} pe_formula_kind;

typedef struct pe_formula {
    pe_formula_kind    kind;
    const char        *text; /* of the notation, not ended */
    size_t             size;
    int                spaced;  /* a blank stands before it */
    int                columns; /* of a matrix */
    struct pe_formula *parts, *next, *below, *above;
} pe_formula;

/* The first line of a text as a list; *rest: where the next line begins. NULL: not well formed, or no memory.
 */
pe_formula *pe_formula_read(const char *text, const char **rest);
void        pe_formula_free(pe_formula *f); /* NULL is fine */
/* Is f, a text, this one? */
int pe_formula_is(const pe_formula *f, const char *text);
/* Bytes of the UTF-8 character at s. */
size_t pe_formula_letter(const char *s);

#endif
