/* SPDX-License-Identifier: MIT */
/*
 * cmd_verify.c: posenc verify: run the reference cases of a folder
 *
 * A case is an .npz computed by the code of an encoding's authors; DIR/manifest.json says which
 * encoding and settings it is for. The harness (verify/case.c) does the work; this file chooses the
 * cases, prints one line for each and says how to repeat what failed. The number in a line is the
 * largest error as a fraction of what is allowed, so 1 is the limit whatever the array;
 * docs/reference-cases.md has the table.
 *
 * Exit status: 0 every case passes; 1 a case fails, also because its encoding, a setting or its
 * file is not there; 2 the folder has no readable manifest, or no case was selected.
 */
#include "cli/commands/calc.h"
#include "cli/print/print.h"
#include "verify/case.h"

#include <math.h>
#include <string.h>

typedef struct verify_request {
    const cli_args *args;
    const char     *dir, *file, *names; /* "a,b,c" of every -e; NULL: all */
    int             json, executor;
    cli_numbers     tile;
    pe_case_options run;
} verify_request;

static const cli_option options[] = {
    {'e', "encodings", "NAME,...", "run only the cases of these encodings"},
    {0, "executor", "NAME", "reference (float64), tiled (float32) or both (the default)", CLI_WORD,
     offsetof(verify_request, executor), .words = "both|reference|tiled"},
    {0, "tile", "QxK",
     "queries and keys of a tile of the tiled executor, e.g. 1x1; 0 is the library's choice", CLI_GRID,
     offsetof(verify_request, tile), 0, 9999},
    {0, "case", "FILE", "run only the case in this file", CLI_TEXT, offsetof(verify_request, file)},
    {0, "json", NULL, "print one JSON object instead of lines", CLI_FLAG, offsetof(verify_request, json)},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

/* Each word must be something that a case can be for: an encoding, another subject, or a name of the
 * manifest. */
static int check_names(verify_request *r, const posenc_cases *cases, pe_calc *p)
{
    const int lists = cli_value_count(r->args, "encodings");
    for (int v = 0; v < lists; v++)
        r->names =
            pe_calc_text(p, "%s%s%s", v ? r->names : "", v ? "," : "", cli_value_at(r->args, "encodings", v));
    for (const char *at = r->names; at;) {
        const int   n     = (int)strcspn(at, ",");
        const char *word  = pe_calc_text(p, "%.*s", n, at);
        int         known = posenc_encoding_find(word) || pe_case_is_subject(word);
        for (int i = 0; !known && i < cases->count; i++)
            known = !strcmp(word, cases->items[i].encoding);
        if (!known)
            return cli_usage("-e: there is no encoding %s; the nearest is %s", word,
                             posenc_encoding_nearest(word));
        at = at[n] ? at + n + 1 : NULL;
    }
    return CLI_DONE;
}

/* ---------------------------------------------------------------- lines --------------------- */

static void print_option(const char *option, const char *value)
{
    if (!value)
        return;
    printf(" %s ", option);
    cli_print_word(stdout, value);
}

static void print_again(const verify_request *r, const posenc_case *c)
{
    fputs("      again: posenc verify ", stdout);
    cli_print_word(stdout, r->dir);
    print_option("-e", c->encoding);
    print_option("--case", c->file);
    print_option("--executor", cli_value(r->args, "executor"));
    print_option("--tile", cli_value(r->args, "tile"));
    putchar('\n');
}

static void print_case(const verify_request *r, const posenc_case *c, const pe_case_result *x)
{
    printf("%-4s  ", x->passed ? "ok" : "FAIL");
    cli_print_text(c->encoding, 18);
    putchar(' ');
    cli_print_text(c->file, 44);
    putchar(' ');
    if (x->compared) {
        printf("%9.3g  ", x->worst);
        cli_print_text(x->array, 0);
        printf("%s%s", x->executor ? " " : "", x->executor ? x->executor : "");
    }
    if (x->problem[0]) {
        fputs(x->compared ? ": " : "", stdout);
        cli_print_text(x->problem, 0);
    }
    if (x->unused[0]) {
        fputs(" (not compared: ", stdout);
        cli_print_text(x->unused, 0);
        putchar(')');
    }
    putchar('\n');
    if (!x->passed)
        print_again(r, c);
    cli_flush();
}

/* ---------------------------------------------------------------- JSON ---------------------- */

static json_t *case_object(const posenc_case *c, const pe_case_result *x)
{
    /* JSON has no infinity: an error without measure (NaN, an allowance of 0) is null, and `pass`
       says the rest. */
    json_t *worst = cli_json_real(x->compared && isfinite(x->worst) ? x->worst : (double)NAN);
    return json_pack("{s:o, s:o, s:o, s:b, s:i, s:o, s:o*, s:s*, s:o*, s:o}", "file", cli_json_text(c->file),
                     "encoding", cli_json_text(c->encoding), "settings", json_loads(c->raw, 0, NULL), "pass",
                     x->passed, "compared", x->compared, "largest_error_over_allowed", worst, "array",
                     x->array[0] ? cli_json_text(x->array) : NULL, "executor", x->executor, "problem",
                     x->problem[0] ? cli_json_text(x->problem) : NULL, "not_compared",
                     cli_json_words(x->unused, " "));
}

/* ---------------------------------------------------------------- the command --------------- */

static int run_cases(const verify_request *r, const posenc_cases *cases)
{
    json_t *list   = r->json ? json_array() : NULL;
    int     passed = 0, total = 0;
    for (int i = 0; i < cases->count; i++) {
        const posenc_case *c = &cases->items[i];
        pe_case_result     x;
        if ((r->names && cli_options_word(r->names, ',', c->encoding) < 0) ||
            (r->file && strcmp(r->file, c->file)))
            continue;
        pe_case_run(&x, r->dir, NULL, c, &r->run);
        total++;
        passed += x.passed;
        if (r->json)
            pe_json_add(&list, case_object(c, &x));
        else
            print_case(r, c, &x);
    }
    if (total == 0) {
        const char *names = cli_value(r->args, "encodings"), *file = r->file;
        json_decref(list);
        if (!r->json)
            puts("0 of 0 cases pass");
        return cli_usage("%s has no case%s%s%s%s; nothing was verified", r->dir, names ? " of " : "",
                         names ? names : "", file ? " in the file " : "", file ? file : "");
    }
    if (r->json && cli_print_json(json_pack("{s:o, s:i, s:i, s:o}", "directory", cli_json_text(r->dir),
                                            "passed", passed, "total", total, "cases", list),
                                  0))
        return CLI_FAILED;
    if (!r->json)
        printf("%d of %d cases pass\n", passed, total);
    return passed == total ? CLI_DONE : CLI_FAILED;
}

static int run(const cli_args *args)
{
    verify_request r     = {.args = args};
    posenc_cases   cases = {0};
    posenc_error   err;
    if (args->count != 1)
        return cli_usage("verify: give one folder with a manifest.json, not %d arguments", args->count);
    r.dir = cli_at(args, 0);
    if (cli_read(args, &r))
        return CLI_USAGE;
    r.run =
        (pe_case_options){.executors = r.executor ? 1u << (r.executor - 1) : (1u << PE_CASE_EXECUTORS) - 1,
                          .tile_q    = r.tile.whole[0],
                          .tile_k    = r.tile.whole[1]};
    if (posenc_cases_read(&cases, r.dir, &err))
        return cli_usage("%s",
                         err.message); /* the folder is an argument: 2 even where the disk is at fault */
    pe_calc p = pe_calc_new("verify");
    cli_calc_said(&p, check_names(&r, &cases, &p));
    if (!pe_calc_failed(&p))
        cli_calc_said(&p, run_cases(&r, &cases));
    posenc_cases_free(&cases);
    return cli_calc_end(&p);
}

const cli_command cli_verify = {
    .name     = "verify",
    .summary  = "run the reference cases of a folder",
    .synopsis = "DIR [-e NAME,...] [--executor reference|tiled|both] [--tile QxK] [--case FILE] [--json]",
    .details =
        "Runs every case that DIR/manifest.json lists (not those of its subfolders): the library computes "
        "what the case's arrays ask for, forward and backward, and each result is compared with the "
        "reference.\n\n"
        "Each line shows the largest error of its case as a fraction of what is allowed (1 is the limit), "
        "its array and the executor. The allowed error in float64 is 1e-12 * max(1, |reference|), "
        "1e-11 for gradients, and 1e-10 for the solution of an equation; in float32 it is 2e-6 of the "
        "largest number in the row, and 2e-5 for gradients; whole numbers must be equal.\n\n"
        "The last line is \"N of M cases pass\". Exit status 1 if one fails: an unknown encoding or setting "
        "and a missing file fail that case. Exit status 2 if DIR has no readable manifest or no case was "
        "selected.",
    .options = options,
    .run     = run,
    .takes   = "DIR",
};
