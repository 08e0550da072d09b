/* SPDX-License-Identifier: MIT */
/* Settings as a SPEC says them, and numbers with few digits: contract in search.h. */
#include "diagnose/search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "half" of "rope[layout=half:base=5e5]"; 0 where it is not said. */
int pe_spec_said(char *value, size_t size, const char *spec, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s=", name);
    for (const char *at = spec; (at = strstr(at, key)) != NULL; at++)
        if (at > spec && strchr("[:, ", at[-1])) {
            at += strlen(key);
            snprintf(value, size, "%.*s", (int)strcspn(at, ":], "), at);
            return 1;
        }
    snprintf(value, size, "%s", "");
    return 0;
}

double pe_spec_number(const char *spec, const char *name, double otherwise)
{
    char text[64];
    return pe_spec_said(text, sizeof text, spec, name) ? strtod(text, NULL) : otherwise;
}

int pe_spec_is_word(const char *spec, const char *name, const char *word, int otherwise)
{
    char text[64];
    return pe_spec_said(text, sizeof text, spec, name) ? !strcmp(text, word) : otherwise;
}

int pe_spec_is_rescaled(const char *spec, const char *expected)
{
    static const char *const words[]   = {"schedule", "truncate"};
    static const char *const numbers[] = {"original_length",  "max_length", "length",    "low_freq_factor",
                                          "high_freq_factor", "beta_fast",  "beta_slow", "alpha"};
    char                     a[64], b[64];
    int                      is_it = pe_spec_said(a, sizeof a, expected, "schedule");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_it &= !strcmp(pe_spec_value(a, spec, words[i], ""), pe_spec_value(b, expected, words[i], ""));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        is_it &= pe_spec_number(spec, numbers[i], -1) == pe_spec_number(expected, numbers[i], -1);
    return is_it && pe_spec_number(spec, "factor", -1) != pe_spec_number(expected, "factor", -1);
}

/* "name=value" out of a SPEC's brackets, and these where nothing else is in them. */
static void take_out(char *spec, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s=", name);
    char *at = spec;
    while ((at = strstr(at, key)) != NULL && !strchr("[:,", at[-(at > spec)]))
        at++;
    if (!at)
        return;
    char       *end     = at + strcspn(at, ":,]");
    const int   is_last = *end == ']', is_only = is_last && at[-1] == '[';
    char       *from = at - is_last;
    const char *to   = end + (is_only || !is_last);
    memmove(from, to, strlen(to) + 1);
}

void pe_spec_strip(char *spec)
{
    static const struct {
        const char *setting, *schedules; /* that read it */
    } readers[] = {
        {"factor", " linear ntk_mixed dynamic yarn longrope llama3 proportional "},
        {"alpha", " ntk "},
        {"mixed_b", " ntk_mixed "},
        {"original_length", " yarn longrope llama3 "},
        {"max_length", " dynamic longrope "},
        {"length", " dynamic longrope "},
        {"beta_fast", " yarn "},
        {"beta_slow", " yarn "},
        {"truncate", " yarn "},
        {"extrapolation_factor", " yarn "},
        {"low_freq_factor", " llama3 "},
        {"high_freq_factor", " llama3 "},
        {"partial_rotary_factor", " proportional "},
        {"min_period", " period "},
        {"max_period", " period "},
        {"max_freq", " pixel "},
        {"linear_bands", " pixel "},
        {"attention_factor", " yarn longrope "},
        {"attention_factor_long", " longrope "},
        {"mscale", " yarn "},
        {"mscale_all_dim", " yarn "},
    };
    char value[64], schedule[68];
    snprintf(schedule, sizeof schedule, " %s ", pe_spec_value(value, spec, "schedule", "default"));
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strstr(readers[i].schedules, schedule))
            take_out(spec, readers[i].setting);
}

const char *pe_spec_fewest_digits(char text[40], double x, int digits)
{
    snprintf(text, 40, "%.*g", digits, x);
    return text;
}

double pe_spec_nearest_round(double x, double slackness, int *digits)
{
    char text[40];
    for (*digits = 1; *digits < 12; ++*digits) {
        const double y = strtod(pe_spec_fewest_digits(text, x, *digits), NULL);
        if (fabs(y - x) <= slackness)
            return y;
    }
    return x;
}

const char *pe_spec_value(char text[64], const char *spec, const char *name, const char *otherwise)
{
    if (!pe_spec_said(text, 64, spec, name))
        snprintf(text, 64, "%s", otherwise);
    return text;
}

void pe_spec_say(char words[PE_WORDS], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(words, PE_WORDS, format, list);
    va_end(list);
}
