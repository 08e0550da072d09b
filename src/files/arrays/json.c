/* SPDX-License-Identifier: MIT */
/*
 * json.c: JSON from a stranger, read whole or not at all. Contract: json.h.
 *
 * jansson's lexer ignores that its buffer could not grow and goes on with the characters that fitted, so that
 * "num_attention_heads" becomes a name that nobody asks for and the heads a default. It then clears errno,
 * when it reads the next number. So it gets one character at a time, and before each of them errno is asked.
 *
 * On this way the three words that are Python's alone get their quotes, which the column of an error does not
 * count.
 */
#include "files/arrays/json.h"

#include <errno.h>
#include <string.h>

typedef struct characters {
    const char *at, *end;
    int         is_python, is_text, is_escaped;
    int         left, added; /* characters of a word, its last quote included; quotes in this line */
} characters;

/* How long the word is that begins here, 0 where it is none of Python's or the name of a member. */
static int word_length(const characters *c)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(c->end - c->at) < n || memcmp(c->at, words[i], n) != 0)
            continue;
        const char *after = c->at + n;
        while (after < c->end && strchr(" \t\r\n", *after) && *after)
            after++;
        return after < c->end && *after == ':' ? 0 : (int)n;
    }
    return 0;
}

/* The next of the text, which is not at its end. */
static char plain(characters *c)
{
    const char x  = *c->at++;
    c->added      = x == '\n' ? 0 : c->added;
    c->is_text    = c->is_text != (x == '"' && !c->is_escaped);
    c->is_escaped = c->is_text && x == '\\' && !c->is_escaped;
    return x;
}

/* A word of Python's goes out with a quote before it and one behind. */
static char next_of(characters *c)
{
    const int n = c->is_python && !c->is_text && !c->left ? word_length(c) : 0;
    if (n || c->left == 1) {
        c->left = n ? n + 1 : 0;
        c->added++;
        return '"';
    }
    if (!c->left)
        return plain(c);
    c->left--;
    return *c->at++;
}

static size_t next_character(void *buffer, size_t room, void *from)
{
    characters *c = from;
    if (errno == ENOMEM)
        return (size_t)-1;
    if (!room || (c->at == c->end && !c->left))
        return 0;
    *(char *)buffer = next_of(c);
    return 1;
}

static json_t *load(characters c, json_error_t *why)
{
    json_t *whole = json_load_callback(next_character, &c, JSON_REJECT_DUPLICATES, why);
    if (errno == ENOMEM)
        pe_json_lose(&whole);
    if (!whole)
        why->column -= c.added < why->column ? c.added : why->column;
    return whole;
}

json_t *pe_json_load(const char *text, size_t n, json_error_t *why)
{
    return load((characters){text, text + n, .is_python = 0}, why);
}

json_t *pe_json_load_python(const char *text, size_t n, json_error_t *why)
{
    return load((characters){text, text + n, .is_python = 1}, why);
}
