/* SPDX-License-Identifier: MIT */
/* edit.c: contract in edit.h */
#include "convert/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Behind the quotation mark that ends a string. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        at += *at == '\\' && at[1];
    return *at ? at + 1 : at;
}

/* Behind a value. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    if (*at != '{' && *at != '[')
        return *at == '"' ? skip_string(at) : at + strcspn(at, ",]} \t\r\n");
    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    } while (*at && depth);
    return at;
}

/* The value of a member of the object at `at`; NULL: it has none. */
static const char *find(const char *at, const char *key)
{
    const size_t n = strlen(key);
    for (at = skip_blanks(at + 1); *at == '"'; at = skip_blanks(at + (*at == ','))) {
        const char *name = at + 1, *end = skip_string(at);
        at = skip_blanks(end);
        at = skip_blanks(at + (*at == ':'));
        if ((size_t)(end - 1 - name) == n && !strncmp(name, key, n))
            return at;
        at = skip_blanks(skip_value(at));
    }
    return NULL;
}

static const char *find_object(const char *text, const char *object)
{
    const char *root = skip_blanks(text), *in = object ? find(root, object) : root;
    return in && *in == '{' ? in : NULL;
}

int pe_edit_finds(const char *text, const char *object, const char *key)
{
    const char *in = find_object(text, object);
    return in && (!key || find(in, key));
}

char *pe_edit_set(const char *text, const char *object, const char *key, const char *value)
{
    const char *in = find_object(text, object);
    if (!in)
        return NULL;
    const char  *old = find(in, key), *from = old ? old : in + 1, *rest = old ? skip_value(old) : from;
    const size_t room = strlen(text) + strlen(key) + strlen(value) + 16;
    char        *to   = malloc(room);
    if (!to)
        return NULL;
    const int before = (int)(from - text);
    if (old)
        snprintf(to, room, "%.*s%s%s", before, text, value, rest);
    else
        snprintf(to, room, "%.*s\n  \"%s\": %s%s%s", before, text, key, value,
                 *skip_blanks(rest) == '}' ? "" : ",", rest);
    return to;
}
