/* SPDX-License-Identifier: MIT */
/*
 * fuzz_expression: any text as the value of a setting
 *
 * A text that is an expression must be one in brackets too, with the same value. Names are sizes.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look_up(void *context, const char *name, size_t length, double *value)
{
    *value = (double)length;
    return length == 1 && strchr(context, *name) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char  *text = malloc(size + 1), *inside = malloc(size + 3), names[] = "BHGLDx";
    double x = 0, y = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    snprintf(inside, size + 3, "(%s)", text);
    const int is_one = pe_expression_evaluate(text, look_up, names, &x);
    if (is_one && pe_expression_evaluate(inside, look_up, names, &y) && !(x == y || (isnan(x) && isnan(y))))
        abort();
    free(text);
    free(inside);
    return 0;
}
