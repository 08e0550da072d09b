/* SPDX-License-Identifier: MIT */
/*
 * expression.h: small arithmetic in text, "8*L", "1/sqrt(D)", "rows"
 *
 * Shapes of parameters, defaults of settings and the settings for a small model are text in a room, because
 * the tool prints them; this evaluates them. Numbers, names, + - * /, parentheses, unary minus, sqrt(),
 * floor(), min(,), and first(,): the first that is not infinite.
 */
#ifndef PE_BASE_EXPRESSION_H
#define PE_BASE_EXPRESSION_H

#include <stddef.h>

/* Value of the name text[0..length-1]: returns 1 and sets *value, or 0 if there is no such name. */
typedef int pe_expression_lookup(void *context, const char *name, size_t length, double *value);

/* 1 and *value, or 0 if text is no expression or holds an unknown name. `text` ends at a NUL. */
int pe_expression_evaluate(const char *text, pe_expression_lookup *lookup, void *context, double *value);

#endif
