/* SPDX-License-Identifier: MIT */
/*
 * cmd_explore.c: posenc explore: a page in which the library itself runs
 *
 * The page (src/explore) and the module, the library compiled to WebAssembly, are part of the tool; here they
 * become one file. Where the tool was built without the module there is nothing to write.
 */
#include "cli/frame/cli.h"
#include "files/arrays/text.h"

#include <posenc/files.h>
#include <stddef.h>
#include <string.h>

enum { MOST_SPECS = 2 };

static const unsigned char page[] = {
#include "explore/page.inc"
    0};
static const unsigned char style[] = {
#include "explore/style.inc"
    0};
static const unsigned char script[] = {
#include "explore/script.inc"
    0};
static const unsigned char module[] = {
#ifdef CLI_WASM
#include "explore/module.inc"
#endif
    0};

/* The Chinese of what the registry says, and of what pictures say, with places: {English, Chinese}. */
static const char *const words[][2] = {
#include "explore/zh.inc"
#include "train/zh.inc"
};

typedef struct explore_request {
    const char *output;
} explore_request;

static const cli_option options[] = {
    {'o', "output", "F.html", "the page", CLI_TEXT, offsetof(explore_request, output), .words = ".html"},
    {0},
};

static void put_base64(FILE *to, const unsigned char *x, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned three =
            (unsigned)x[i] << 16 | (i + 1 < n ? (unsigned)x[i + 1] : 0) << 8 | (i + 2 < n ? x[i + 2] : 0);
        fputc(digits[three >> 18], to);
        fputc(digits[three >> 12 & 63], to);
        fputc(i + 1 < n ? digits[three >> 6 & 63] : '=', to);
        fputc(i + 2 < n ? digits[three & 63] : '=', to);
    }
}

/* "...", for a script in a page. */
static void put_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", to);
        else
            fprintf(to, strchr("\"\\/", *text) ? "\\%c" : "%c", *text);
    fputc('"', to);
}

/* SPECs are checked before: there is nothing in them that could end a string of the script. */
static void put_value(FILE *to, const char *name, size_t n, const cli_args *args)
{
    if (!strncmp(name, "css", n))
        fputs((const char *)style, to);
    else if (!strncmp(name, "js", n))
        fputs((const char *)script, to);
    else if (!strncmp(name, "module", n))
        put_base64(to, module, sizeof module - 1);
    else if (!strncmp(name, "words", n))
        for (size_t i = 0, shown = 0; i < sizeof words / sizeof *words; i++) {
            if (!*words[i][0]) /* the catalogue's head */
                continue;
            fputs(shown++ ? ",\n[" : "[", to);
            put_string(to, words[i][0]);
            fputc(',', to);
            put_string(to, words[i][1]);
            fputc(']', to);
        }
    else
        for (int i = 0; i < args->count; i++)
            fprintf(to, "%s%s", i ? " " : "", cli_at(args, i));
}

static void put_page(FILE *to, const cli_args *args)
{
    for (const char *at = (const char *)page;;) {
        const char *mark = strstr(at, "{{"), *end = mark ? strstr(mark, "}}") : NULL;
        if (!end) {
            fputs(at, to);
            return;
        }
        fwrite(at, 1, (size_t)(mark - at), to);
        put_value(to, mark + 2, (size_t)(end - mark - 2), args);
        at = end + 2;
    }
}

static int check(const cli_args *args, explore_request *r)
{
    posenc_error err;
    if (cli_read(args, r))
        return CLI_USAGE;
    if (args->count > MOST_SPECS)
        return cli_usage("explore: %d encodings are given; the page begins with at most %d", args->count,
                         MOST_SPECS);
    for (int i = 0; i < args->count; i++) {
        posenc_encoding *e;
        if (posenc_encoding_create(&e, cli_at(args, i), NULL, &err))
            return cli_error(&err);
        posenc_encoding_free(e);
        if (strpbrk(cli_at(args, i), "\"\\<>&\n ")) /* no SPEC of the registry needs them */
            return cli_usage("explore: \"%s\" has a character that the page does not take", cli_at(args, i));
    }
    if (!r->output)
        return cli_usage("explore: the output is missing: -o page.html");
    if (cli_check_page(args))
        return CLI_USAGE;
    if (sizeof module == 1)
        return cli_usage(
            "explore: this posenc was built without the page's module; install clang, lld, wasi-libc and "
            "libclang-rt-14-dev-wasm32, and build it again");
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    explore_request   r = {0};
    posenc_whole_file file;
    posenc_error      err;
    const int         status = check(args, &r);
    if (status)
        return status;
    if (posenc_whole_file_open(&file, r.output, &err))
        return cli_error(&err);
    put_page(file.stream, args);
    return posenc_whole_file_commit(&file, &err) ? cli_error(&err) : CLI_DONE;
}

const cli_command cli_explore = {
    .name     = "explore",
    .summary  = "write a page to play with, in which the library itself runs",
    .synopsis = "[SPEC [SPEC]] -o F.html",
    .details =
        "The page needs no network and opens from a file. Choose one or two encodings, change their "
        "settings and "
        "sizes, and every picture of posenc plot follows at once; type a sentence, or its q, k and token "
        "inputs, and see scores and weights; shift it, or make it twice as long as tables were made for. "
        "A model's config.json, dropped on the page, is read as posenc inspect reads it. What is seen "
        "can be saved as SVG, PNG or CSV. All numbers come from the library, compiled to WebAssembly: "
        "they are those of posenc plot.\n\n"
        "The encodings given are those it begins with. A link with # and a SPEC, as the page makes "
        "it, opens on "
        "others.",
    .options = options,
    .run     = run,
    .takes   = "* SPEC...",
};
