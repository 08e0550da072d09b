/* SPDX-License-Identifier: MIT */
/*
 * json.c: JSON from a stranger, read whole or not at all. Contract: json.h.
 *
 * jansson's lexer ignores that its buffer could not grow and goes on with the characters that fitted, so that
 * "num_attention_heads" becomes a name that nobody asks for and the heads a default. It then clears errno,
 * when it reads the next number. So it gets one character at a time, and before each of them errno is asked.
 */
#include "files/arrays/json.h"

#include <errno.h>

typedef struct characters {
    const char *at, *end;
} characters;

static size_t next_character(void *buffer, size_t room, void *from)
{
    characters *c = from;
    if (errno == ENOMEM)
        return (size_t)-1;
    if (!room || c->at == c->end)
        return 0;
    *(char *)buffer = *c->at++;
    return 1;
}

json_t *pe_json_load(const char *text, size_t n, json_error_t *why)
{
    characters c     = {text, text + n};
    json_t    *whole = json_load_callback(next_character, &c, JSON_REJECT_DUPLICATES, why);
    if (errno == ENOMEM)
        pe_json_lose(&whole);
    return whole;
}
