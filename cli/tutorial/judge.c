/* SPDX-License-Identifier: MIT */
/*
 * judge.c: numbers in the output of a command, against those of a tutorial. Contract: judge.h.
 *
 * A number is as printed if it rounds to it: 0.0998 stands for all from 0.09975 to 0.09985. In the output a
 * number begins where no letter or digit stands before it, so that `x2` has none and `16x32` one.
 */
#include "cli/tutorial/judge.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

/* ---------------------------------------------------------------- numbers of a text --------- */

/* Characters of the number that stands here, 0: none. */
static size_t number_at(const char *s)
{
    size_t n = strspn(s, "+-") <= 1 ? strspn(s, "+-") : 0, whole = strspn(s + n, digits), part = 0;
    if (s[n + whole] == '.')
        part = 1 + strspn(s + n + whole + 1, digits);
    if (whole + part == 0 || (!whole && part == 1)) /* nothing, or a point alone */
        return 0;
    n += whole + part;
    if (s[n] == 'e' || s[n] == 'E') {
        const size_t sign = s[n + 1] == '-' || s[n + 1] == '+', power = strspn(s + n + 1 + sign, digits);
        n += power ? 1 + sign + power : 0;
    }
    return n;
}

/* The next number at or after s, and its length; NULL: none. */
static const char *next_number(const char *text, const char *s, size_t *n)
{
    for (; *s; s++) {
        const char before = s > text ? s[-1] : ' ';
        if (!isalnum((unsigned char)before) && before != '_' && before != '.' && (*n = number_at(s)) > 0)
            return s;
    }
    return NULL;
}

/* ---------------------------------------------------------------- places -------------------- */

/* Behind text's line number `line` minus one, and behind each text of `after` in turn. NULL: not there. */
static const char *place_of(const json_t *check, const char *text)
{
    const json_t *after = json_object_get(check, "after");
    json_int_t    line  = json_integer_value(json_object_get(check, "line"));
    for (; text && line > 1; line--)
        text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    const size_t count = json_is_string(after) ? 1 : json_array_size(after);
    for (size_t i = 0; text && i < count; i++) {
        const char *mark = json_string_value(json_is_string(after) ? after : json_array_get(after, i));
        text             = (text = strstr(text, mark)) ? text + strlen(mark) : NULL;
    }
    return text;
}

static json_int_t whole(const json_t *check, const char *key, json_int_t otherwise)
{
    const json_t *x = json_object_get(check, key);
    return x ? json_integer_value(x) : otherwise;
}

/* Does "<" stand before the number at s? */
static int is_bound(const char *text, const char *s)
{
    s -= s > text && s[-1] == ' ';
    return s > text && s[-1] == '<';
}

/* The text of number `index` of a check; 0: it is not there. */
static int find_number(char to[CLI_NUMBER], const json_t *check, int index, const char *output)
{
    json_int_t  skip = whole(check, "skip", 0) + index * whole(check, "step", 1);
    const char *at   = place_of(check, output);
    size_t      n    = 0;
    while (at && (at = next_number(output, at, &n)) && skip-- > 0)
        at += n;
    if (at)
        snprintf(to, CLI_NUMBER, "%s%.*s", is_bound(output, at) ? "<" : "", (int)n, at);
    return at != NULL;
}

/* What "<1e-12" says of a number is at most that. */
static double value_of(const char *found)
{
    return atof(found + (*found == '<'));
}

/* ---------------------------------------------------------------- verdicts ------------------ */

/* Word `index` of a list with blanks between them; 0: there is none. */
static int word_of(char to[CLI_NUMBER], const char *list, int index)
{
    for (list += strspn(list, " "); index > 0 && *list; index--) {
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    snprintf(to, CLI_NUMBER, "%.*s", (int)strcspn(list, " "), list);
    return *to != 0;
}

/* Half a unit of the last digit of a number as it is written. */
static double half_unit(const char *number)
{
    const char  *point = strchr(number, '.'), *power = strpbrk(number, "eE");
    const double decimals = point ? (double)strspn(point + 1, digits) : 0;
    return 0.5 * pow(10, (power ? atof(power + 1) : 0) - decimals);
}

static int rounds_to(const char *found, const char *number, const json_t *within)
{
    const double wide = within ? json_number_value(within) : half_unit(number) * (1 + 1e-9);
    return fabs(value_of(found) - atof(number)) <= wide;
}

static cli_verdict judge_number(const json_t *check, int index, const char *output)
{
    const char *right = json_string_value(json_object_get(check, "right"));
    cli_verdict v     = {.finding = CLI_FAULTY};
    if (!word_of(v.printed, json_string_value(json_object_get(check, "printed")), index) ||
        (right && !word_of(v.right, right, index)))
        return v;
    if (!strcmp(v.printed, v.right))
        *v.right = 0;
    if (!find_number(v.found, check, index, output))
        v.finding = CLI_MISSING;
    else if (!rounds_to(v.found, *v.right ? v.right : v.printed, json_object_get(check, "within")))
        v.finding = CLI_FAILS;
    else
        v.finding = *v.right ? CLI_DIFFERS : CLI_AS_PRINTED;
    return v;
}

/* "< 0.5", ">= 2", "= 51", "0.4 .. 0.5": -1 where the condition is none of these. */
static int fulfils(double x, const char *condition)
{
    char   sign[3];
    double low, high;
    if (sscanf(condition, "%lf .. %lf", &low, &high) == 2)
        return x >= low && x <= high;
    if (sscanf(condition, "%2[<>=] %lf", sign, &high) != 2)
        return -1;
    const int or_equal = strchr(sign, '=') && x == high;
    return *sign == '<' ? x < high || or_equal : *sign == '>' ? x > high || or_equal : or_equal;
}

static cli_verdict judge_measured(const json_t *check, const char *output)
{
    const char *says = json_string_value(json_object_get(check, "says")),
               *is   = json_string_value(json_object_get(check, "is")), *at;
    cli_verdict v    = {.finding = CLI_FAULTY};
    if (says)
        v.finding = (at = place_of(check, output)) && strstr(at, says) ? CLI_HOLDS : CLI_FAILS;
    else if (is && !find_number(v.found, check, 0, output))
        v.finding = CLI_MISSING;
    else if (is && fulfils(value_of(v.found), is) >= 0)
        v.finding = fulfils(value_of(v.found), is) ? CLI_HOLDS : CLI_FAILS;
    return v;
}

int cli_judge_count(const json_t *check)
{
    const char *printed = json_string_value(json_object_get(check, "printed"));
    char        word[CLI_NUMBER];
    int         n = printed ? 0 : 1;
    while (printed && word_of(word, printed, n))
        n++;
    return n;
}

cli_verdict cli_judge(const json_t *check, int index, const char *output)
{
    return json_object_get(check, "printed") ? judge_number(check, index, output)
                                             : judge_measured(check, output);
}
