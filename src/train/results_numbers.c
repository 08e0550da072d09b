/* SPDX-License-Identifier: MIT */
/* results_numbers.c: numbers as JSON and CSV have them: null, or an empty field, for what is no number.
   Contract: results.h. */
#include "train/results.h"

#include <math.h>

json_t *pe_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *pe_json_interval(pe_interval d)
{
    return json_pack("{s:o, s:o, s:o}", "value", pe_json_number(d.value), "low", pe_json_number(d.low),
                     "high", pe_json_number(d.high));
}

void pe_csv_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

void pe_csv_value(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, ",%.9g", x);
    else
        fputc(',', to);
}
