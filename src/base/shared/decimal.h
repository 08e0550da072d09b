/* SPDX-License-Identifier: MIT */
/*
 * decimal.h: numbers as text with a point, whatever locale the program has set
 *
 * strtod and printf write 0,5 where a program has asked for the habits of German, and then read 0.5 as 0. So
 * they are called here alone, with the locale "C" for the calling thread, which its own is given back
 * afterwards. Where the C library cannot make that locale, the program's stays. glibc's takes no memory.
 */
#ifndef PE_BASE_DECIMAL_H
#define PE_BASE_DECIMAL_H

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What was set before; pe_decimal_end puts it back. */
#ifdef _WIN32
typedef struct pe_locale {
    int  scope; /* of what setlocale sets: the thread, or the program */
    char numbers[96];
} pe_locale;

static inline pe_locale pe_decimal_begin(void)
{
    pe_locale before = {.scope = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE)};
    snprintf(before.numbers, sizeof before.numbers, "%s", setlocale(LC_NUMERIC, NULL));
    setlocale(LC_NUMERIC, "C");
    return before;
}

static inline void pe_decimal_end(pe_locale before)
{
    setlocale(LC_NUMERIC, before.numbers);
    _configthreadlocale(before.scope);
}
#else
typedef locale_t pe_locale;

static inline pe_locale pe_decimal_begin(void)
{
    const pe_locale point = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return point ? uselocale(point) : (locale_t)0;
}

static inline void pe_decimal_end(pe_locale before)
{
    if (before)
        freelocale(uselocale(before));
}
#endif

/* strtod. */
static inline double pe_decimal_read(const char *text, char **end)
{
    const pe_locale before = pe_decimal_begin();
    const double    x      = strtod(text, end);
    pe_decimal_end(before);
    return x;
}

/* vsnprintf. */
static inline int pe_decimal_print(char *text, size_t n, const char *format, va_list values)
{
    const pe_locale before = pe_decimal_begin();
    const int       length = vsnprintf(text, n, format, values);
    pe_decimal_end(before);
    return length;
}

/* The fewest of `least` to `most` digits that read back as the same double, or as the same float. */
static inline void pe_decimal_shortest(char *text, size_t n, double x, int least, int most, int is_float)
{
    const pe_locale before = pe_decimal_begin();
    for (int digits = least; digits <= most; digits++) {
        snprintf(text, n, "%.*g", digits, x);
        if (is_float ? (double)strtof(text, NULL) == x : strtod(text, NULL) == x)
            break;
    }
    pe_decimal_end(before);
}

#endif
