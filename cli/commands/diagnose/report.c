/* SPDX-License-Identifier: MIT */
/* What both reports of posenc diagnose say alike. */
#include "cli/commands/diagnose/diagnose.h"

#include <math.h>
#include <string.h>

const char *const cli_diagnose_verdicts[] = {"same", "different", "unexplained", "found"};

json_t *cli_diagnose_names(unsigned departs)
{
    json_t *list = json_array();
    for (int i = 0; i < PE_DEPARTURES; i++)
        if (departs >> i & 1)
            pe_json_add(&list, json_string(pe_departures[i]));
    return list;
}

/* "half" of "rope[layout=half:base=5e5]", or what is meant where it is not said. */
const char *cli_diagnose_setting(pe_calc *p, const char *spec, const char *name, const char *otherwise)
{
    const char *key = pe_calc_text(p, "%s=", name);
    for (const char *at = spec; (at = strstr(at, key)) != NULL; at++)
        if (at > spec && strchr("[:, ", at[-1]))
            return pe_calc_text(p, "%.*s", (int)strcspn(at + strlen(key), ":], "), at + strlen(key));
    return otherwise;
}

/* Six digits: the rest is another processor's order of summation. */
json_t *cli_diagnose_six_digits(double x)
{
    if (!isfinite(x) || x == 0)
        return isfinite(x) ? json_real(0) : json_null();
    const int    power = (int)floor(log10(fabs(x))) - 5;
    const double step  = pow(10, abs(power));
    return json_real(power > 0 ? round(x / step) * step : round(x * step) / step);
}

json_t *cli_diagnose_fixes(const pe_fixes *m)
{
    json_t *list = json_array();
    for (int i = 0; i < m->count; i++)
        pe_json_add(&list, json_string(m->words[i]));
    return list;
}

void cli_diagnose_print_fixes(const pe_fixes *m)
{
    for (int i = 0; i < m->count; i++)
        printf("%-10s %s\n", i ? "" : "fix", m->words[i]);
}

void cli_diagnose_print_names(unsigned departs)
{
    for (int i = 0, n = 0; i < PE_DEPARTURES; i++)
        if (departs >> i & 1)
            printf("%s%s", n++ ? ", " : "", pe_departures[i]);
}

int cli_diagnose_status(pe_verdict verdict)
{
    return verdict == PE_SAME || verdict == PE_FOUND ? CLI_DONE : CLI_FAILED;
}

void cli_diagnose_print_verdict(pe_verdict verdict, unsigned departs)
{
    printf("%s%s", cli_diagnose_verdicts[verdict], departs ? ": " : "");
    cli_diagnose_print_names(departs);
    printf("\n");
}
