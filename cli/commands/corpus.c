/* SPDX-License-Identifier: MIT */
/* Texts and tokens to train on. Contract: corpus.h. */
#include "cli/commands/corpus.h"

#include "files/arrays/text.h"

#include <errno.h>
#include <inttypes.h>
#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, MOST_KINDS = 1 << 16, MOST_BYTES = 1 << 20, MOST_TEXT = 1 << 30 };

/* ---------------------------------------------------------------- texts --------------------- */

typedef struct reading {
    corpus *c;
    size_t  capacity;
} reading;

static int append(reading *t, FILE *from, const char *name)
{
    corpus *c = t->c;
    for (;;) {
        if (t->capacity - c->size < CHUNK) {
            const size_t   capacity = 2 * t->capacity + CHUNK;
            unsigned char *more     = realloc(c->bytes, capacity);
            if (!more)
                return cli_failed("%s: not enough memory for a text of more than %zu bytes", name, c->size);
            c->bytes    = more;
            t->capacity = capacity;
        }
        errno          = 0;
        const size_t n = fread(c->bytes + c->size, 1, CHUNK, from);
        c->size += n;
        if (ferror(from))
            return cli_usage("%s: it cannot be read: %s", name, strerror(errno));
        if (n == 0)
            return CLI_DONE;
        if (c->size > MOST_TEXT)
            return cli_usage("%s: the text is longer than %d bytes, the most that is read", name, MOST_TEXT);
    }
}

static int read_one(reading *t, const char *path)
{
    if (!strcmp(path, "-"))
        return append(t, stdin, "standard input");
    if (!*path)
        return cli_usage("\"\": the name is empty; name a text, or - for standard input");
    FILE *from = fopen(path, "rb");
    if (!from)
        return cli_usage("%s: it cannot be opened: %s%s", path, strerror(errno),
                         posenc_encoding_find(path) ? "; several encodings are joined by commas: -e NAME,NAME"
                                                    : "");
    const int status = append(t, from, path);
    fclose(from);
    return status;
}

static int read_texts(corpus *c, const cli_args *args)
{
    reading t      = {c, 0};
    int     status = CLI_DONE;
    if (args->count == 0)
        return cli_usage(
            "compare: a text is missing; name one or more files, or - for standard input, or give "
            "--tokens");
    for (int i = 0; i < args->count && !status; i++)
        status = read_one(&t, cli_at(args, i));
    if (!status && c->size && memchr(c->bytes, 0, c->size))
        cli_warn("the text has NUL bytes, as no text has; is it another kind of file?");
    return status;
}

/* "kjv.txt", "standard input", "a.txt and 2 more": for titles, without folders. */
static void name_it(corpus *c, const cli_args *args)
{
    const char *tokens = cli_value(args, "tokens"), *path = tokens ? tokens : cli_at(args, 0);
    const char *slash = strrchr(path, '/');
    const char *first = !strcmp(path, "-") ? "standard input" : slash && slash[1] ? slash + 1 : path;
    char        shown[111];
    snprintf(shown, args->count > 1 ? 91 : sizeof shown, "%s", first);
    pe_text_clean(shown);
    if (args->count > 1)
        snprintf(c->name, sizeof c->name, "%.90s and %d more", shown, args->count - 1);
    else
        snprintf(c->name, sizeof c->name, "%s", shown);
}

/* ---------------------------------------------------------------- tokens -------------------- */

/* Number i of a tensor of whole numbers. */
static int64_t whole_at(const posenc_tensor *t, int64_t i)
{
    return t->dtype == POSENC_DTYPE_U8 ? ((const uint8_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* The one array of an .npy: whole numbers from 0 to below `end`, in one row. */
static int read_wholes(posenc_arrays *set, const char *option, const char *path, int64_t end)
{
    posenc_error err;
    if (posenc_arrays_read(set, path, &err))
        return cli_usage("--%s: %s", option, err.message);
    const posenc_tensor *t = set->count == 1 ? &set->items[0].tensor : NULL;
    if (!t || t->ndim != 1 || (t->dtype != POSENC_DTYPE_I64 && t->dtype != POSENC_DTYPE_U8))
        return cli_usage("--%s: %s must hold one array of whole numbers in one dimension (.npy)", option,
                         path);
    for (int64_t i = 0; i < t->shape[0]; i++)
        if (whole_at(t, i) < 0 || whole_at(t, i) >= end)
            return cli_usage("--%s: number %" PRId64 " of %s is %" PRId64 "; it must be 0 to %" PRId64,
                             option, i, path, whole_at(t, i), end - 1);
    return CLI_DONE;
}

static int read_tokens(corpus *c, const char *path)
{
    posenc_arrays set    = {0};
    int           status = read_wholes(&set, "tokens", path, MOST_KINDS);
    const int64_t n      = status ? 0 : set.items[0].tensor.shape[0];
    c->tokens            = status ? NULL : malloc(((size_t)n + 1) * sizeof *c->tokens);
    if (!status && !c->tokens)
        status = cli_failed("--tokens: not enough memory for %" PRId64 " ids", n);
    for (int64_t i = 0; i < n && !status; i++)
        c->tokens[i] = (uint16_t)whole_at(&set.items[0].tensor, i);
    c->size = (size_t)n;
    posenc_arrays_free(&set);
    return status;
}

static int read_token_bytes(corpus *c, const char *path)
{
    posenc_arrays set    = {0};
    int           status = read_wholes(&set, "token-bytes", path, MOST_BYTES);
    const int64_t n      = status ? 0 : set.items[0].tensor.shape[0];
    c->token_bytes       = status ? NULL : malloc(((size_t)n + 1) * sizeof *c->token_bytes);
    if (!status && !c->token_bytes)
        status = cli_failed("--token-bytes: not enough memory for %" PRId64 " numbers", n);
    for (int64_t i = 0; i < n && !status; i++)
        c->token_bytes[i] = (int32_t)whole_at(&set.items[0].tensor, i);
    c->kinds = (size_t)n;
    posenc_arrays_free(&set);
    return status;
}

static int read_here(corpus *c, const cli_args *args)
{
    const char *tokens = cli_value(args, "tokens"), *bytes = cli_value(args, "token-bytes");
    if (bytes && !tokens)
        return cli_usage("--token-bytes: it says how long the tokens of --tokens are; give --tokens too");
    if (!tokens)
        return read_texts(c, args);
    if (args->count)
        return cli_usage("--tokens: %s takes the place of a text; leave out \"%s\"", tokens, cli_at(args, 0));
    const int status = read_tokens(c, tokens);
    return status || !bytes ? status : read_token_bytes(c, bytes);
}

/* ---------------------------------------------------------------- every process ------------- */

/* Number 0's array of so many bytes, for everybody. */
static void *share(void *array, size_t bytes, int *status)
{
    if (pe_ranks_here())
        array = malloc(bytes + 1);
    posenc_error err = {.status = array ? POSENC_OK : POSENC_ERROR_MEMORY};
    snprintf(err.message, sizeof err.message, "compare: not enough memory for the text");
    if (pe_ranks_agree(err.status, &err))
        *status = cli_error(&err);
    else
        pe_ranks_share(array, bytes);
    return array;
}

int corpus_read(corpus *c, const cli_args *args)
{
    const int tokens  = cli_value(args, "tokens") != NULL;
    int       status  = pe_ranks_here() == 0 ? read_here(c, args) : CLI_DONE;
    int64_t   news[3] = {status, (int64_t)c->size, (int64_t)c->kinds};
    pe_ranks_share(news, sizeof news);
    c->size  = (size_t)news[1];
    c->kinds = (size_t)news[2];
    status   = (int)news[0];
    if (!status && tokens)
        c->tokens = share(c->tokens, c->size * sizeof *c->tokens, &status);
    else if (!status)
        c->bytes = share(c->bytes, c->size, &status);
    if (!status && c->kinds)
        c->token_bytes = share(c->token_bytes, c->kinds * sizeof *c->token_bytes, &status);
    if (!status)
        name_it(c, args);
    return status;
}

void corpus_put(pe_compare_config *config, const corpus *c)
{
    config->text        = c->bytes;
    config->tokens      = c->tokens;
    config->text_size   = (int64_t)c->size;
    config->text_name   = c->name;
    config->token_bytes = c->token_bytes;
    config->token_kinds = (int64_t)c->kinds;
}

void corpus_free(corpus *c)
{
    free(c->bytes);
    free(c->tokens);
    free(c->token_bytes);
}
