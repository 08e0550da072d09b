/* SPDX-License-Identifier: MIT */
/* Reals as text: contract in number.h. */
#include "files/number.h"

#include <stdio.h>
#include <stdlib.h>

void pe_real_text(char text[PE_REAL_TEXT], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PE_REAL_TEXT, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            return;
    }
}
