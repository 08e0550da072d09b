/* SPDX-License-Identifier: MIT */
/* Recursive descent over +-, * /, and factors. Contract: expression.h. */
#include "base/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/decimal.h"

enum { MAX_DEPTH = 32 }; /* of parentheses: the text may come from a stranger */

typedef struct expression_reader {
    const char           *at;
    pe_expression_lookup *lookup;
    void                 *context;
    int                   depth, failed;
} expression_reader;

static double sum(expression_reader *r);

static void skip_space(expression_reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static int accept_char(expression_reader *r, char c)
{
    skip_space(r);
    if (*r->at != c)
        return 0;
    r->at++;
    return 1;
}

static double fail(expression_reader *r)
{
    r->failed = 1;
    return 0;
}

/* The first that is given: an absent one counts as infinite (settings.h). */
static double first_given(double a, double b)
{
    return isinf(a) ? b : a;
}

static double root(double a, double b)
{
    return sqrt(a);
}

static double whole(double a, double b)
{
    return floor(a);
}

static const struct {
    const char *name;
    int         arguments;
    double (*apply)(double a, double b);
} functions[] = {{"min", 2, fmin}, {"first", 2, first_given}, {"sqrt", 1, root}, {"floor", 1, whole}};

/* After "name(". */
static double call(expression_reader *r, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strlen(functions[i].name) != length || strncmp(functions[i].name, name, length) != 0)
            continue;
        const double a   = sum(r);
        const int    two = functions[i].arguments == 2;
        if (two && !accept_char(r, ','))
            return fail(r);
        const double b = two ? sum(r) : 0;
        return accept_char(r, ')') ? functions[i].apply(a, b) : fail(r);
    }
    return fail(r);
}

static double name_or_call(expression_reader *r)
{
    const char *name = r->at;
    double      value;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    const size_t length = (size_t)(r->at - name);
    if (accept_char(r, '('))
        return call(r, name, length);
    if (!r->lookup || !r->lookup(r->context, name, length, &value))
        return fail(r);
    return value;
}

static double factor(expression_reader *r)
{
    double value = 0;
    if (r->failed || ++r->depth > MAX_DEPTH)
        return fail(r);
    skip_space(r);
    if (accept_char(r, '-'))
        value = -factor(r);
    else if (accept_char(r, '(')) {
        value = sum(r);
        if (!accept_char(r, ')'))
            fail(r);
    } else if (isdigit((unsigned char)*r->at) || *r->at == '.') {
        char *end;
        value = pe_decimal_read(r->at, &end);
        r->at = end;
    } else if (isalpha((unsigned char)*r->at))
        value = name_or_call(r);
    else
        fail(r);
    r->depth--;
    return value;
}

static double product(expression_reader *r)
{
    double value = factor(r);
    for (;;) {
        if (accept_char(r, '*'))
            value *= factor(r);
        else if (accept_char(r, '/'))
            value /= factor(r);
        else
            return value;
        if (r->failed)
            return 0;
    }
}

static double sum(expression_reader *r)
{
    double value = product(r);
    for (;;) {
        if (accept_char(r, '+'))
            value += product(r);
        else if (accept_char(r, '-'))
            value -= product(r);
        else
            return value;
        if (r->failed)
            return 0;
    }
}

int pe_expression_evaluate(const char *text, pe_expression_lookup *lookup, void *context, double *value)
{
    expression_reader r     = {text, lookup, context, 0, 0};
    double            found = sum(&r);
    skip_space(&r);
    if (r.failed || *r.at)
        return 0;
    *value = found;
    return 1;
}
