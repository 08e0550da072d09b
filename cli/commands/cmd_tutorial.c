/* SPDX-License-Identifier: MIT */
/*
 * cmd_tutorial.c: posenc tutorial: every figure, formula, number, listing and claim of a tutorial, by
 * commands
 *
 * The tables and how they are shown are in cli/tutorial. This file chooses: which tutorial, which part of it,
 * in which language, and where to: the terminal (through a pager), a pipe, a page.
 */
#include "cli/frame/cli.h"
#include "cli/tutorial/tour.h"

#include <posenc/files.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDEST = 100 };

typedef struct request {
    int64_t     section;
    const char *only, *text, *output;
    int         tongue;
} request;

static const cli_option options[] = {
    {0, "section", "N", "only section N", CLI_WHOLE, offsetof(request, section), 1, 99},
    {0, "only", "ID", "only this row, such as 004-N6", CLI_TEXT, offsetof(request, only)},
    {'o', "output", "F.html", "write one HTML page, with typeset formulas and pictures, to F.html", CLI_TEXT,
     offsetof(request, output), .words = ".html"},
    {0, "lang", "L", "en (default) or zh", CLI_WORD, offsetof(request, tongue), .words = "en|zh"},
    {0, "run", "TEXT", "run the commands that train too, on this text file; they take minutes", CLI_TEXT,
     offsetof(request, text)},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- which --------------------- */

/* "004" or "4": 4; -1: no tutorial has this number. */
static int read_number(const char *word)
{
    char      *end;
    const long n = strtol(word, &end, 10);
    return isdigit((unsigned char)*word) && !*end && n < CLI_LESSONS ? (int)n : -1;
}

/* The tutorial that is meant, by its number or by the row; -1 after printing why none. */
static int choose(const cli_args *args, const request *r)
{
    const char *word = cli_at(args, 0);
    char        from_id[4];
    snprintf(from_id, sizeof from_id, "%s", r->only ? r->only : "");
    const int n = read_number(word ? word : from_id), other = r->only ? read_number(from_id) : n;
    if (args->count > 1)
        return cli_usage("tutorial: unexpected argument \"%s\"; one tutorial at a time", cli_at(args, 1)), -1;
    if (word && n < 0)
        return cli_usage("tutorial: there is no tutorial \"%s\"; they are 000 to 00%d", word,
                         CLI_LESSONS - 1),
               -1;
    if (other != n || other < 0)
        return cli_usage("tutorial: --only is \"%s\"; it must be a row of the tutorial, such as 00%d-N1",
                         r->only, n < 0 ? 0 : n),
               -1;
    return n;
}

static int check_parts(const cli_lesson *l, const request *r)
{
    const int sections = (int)json_array_size(l->sections);
    if (r->section > sections)
        return cli_usage("tutorial: --section is %lld; tutorial %s has sections 1 to %d",
                         (long long)r->section, l->number, sections);
    if (r->only && !cli_tour_find(l, r->only))
        return cli_usage(
            "tutorial: --only is \"%s\", which tutorial %s does not have; try posenc tutorial %s", r->only,
            l->number, l->number);
    if (r->text && access(r->text, R_OK))
        return cli_usage("tutorial: --run is \"%s\", which cannot be read; it must be a text file", r->text);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- where to ------------------ */

/* On a terminal a pager, or NULL. */
static FILE *open_pager(void)
{
    const char *pager = getenv("PAGER");
    if (!cli_is_terminal(STDOUT_FILENO))
        return NULL;
    setenv("LESS", "FRX", 0);
    return popen(pager && *pager ? pager : "less -R", "w");
}

/* The exit status of a tour that found so many faults. */
static int status_of(int faults, int says)
{
    if (faults > 0 && says)
        return cli_failed("tutorial: %d numbers or commands are not as they must be; the page marks them",
                          faults);
    return faults ? CLI_FAILED : CLI_DONE;
}

static int show_on_page(cli_tour *t, const cli_lesson *l, const char *path)
{
    posenc_error      err;
    posenc_whole_file file;
    if (posenc_whole_file_open(&file, path, &err))
        return cli_error(&err);
    t->view.to    = file.stream;
    t->view.width = WIDEST;
    cli_page_view(&t->view);
    const int faults = cli_tour_show(t, l);
    if (faults < 0)
        posenc_whole_file_discard(&file);
    else if (posenc_whole_file_commit(&file, &err))
        return cli_error(&err);
    return status_of(faults, 1);
}

static int show_on_screen(cli_tour *t, const cli_lesson *l)
{
    FILE *pager    = t->only ? NULL : open_pager();
    t->view.to     = pager ? pager : stdout;
    t->view.width  = cli_width() < WIDEST ? cli_width() : WIDEST;
    t->view.colour = cli_colour(STDOUT_FILENO);
    cli_screen_view(&t->view);
    const int faults = cli_tour_show(t, l);
    if (pager)
        pclose(pager);
    return status_of(faults, 0);
}

static int show(const cli_lesson *l, const request *r)
{
    cli_tour  t      = {.view    = {.tongue = (cli_tongue)r->tongue},
                        .only    = r->only,
                        .section = r->only ? cli_tour_find(l, r->only) : (int)r->section,
                        .text    = r->text};
    const int status = r->output ? show_on_page(&t, l, r->output) : show_on_screen(&t, l);
    cli_tour_free(&t);
    return status;
}

static void list_sections(const cli_lesson *l, cli_tongue tongue)
{
    size_t  i;
    json_t *part;
    printf("\n%s  %s\n", l->number, l->title[tongue]);
    json_array_foreach(l->sections, i, part)
        printf("  %2d  %s\n", (int)i + 1, cli_lesson_heading(part, tongue));
}

/* The five, or that one: -1, or an exit status. */
static int with_lesson(int index, const request *r)
{
    cli_lesson l;
    int        status = CLI_DONE;
    if (cli_lesson_open(&l, index))
        return cli_failed("tutorial: not enough memory for the table");
    if (r)
        status = check_parts(&l, r) ? CLI_USAGE : show(&l, r);
    else
        list_sections(&l, CLI_ENGLISH);
    cli_lesson_free(&l);
    return status;
}

static int run(const cli_args *args)
{
    request r = {0};
    if (cli_read(args, &r) || cli_check_page(args))
        return CLI_USAGE;
    if (args->count || r.only) {
        const int n = choose(args, &r);
        return n < 0 ? CLI_USAGE : with_lesson(n, &r);
    }
    int status = CLI_DONE;
    for (int i = 0; i < CLI_LESSONS && !status; i++)
        status = with_lesson(i, NULL);
    return status;
}

const cli_command cli_tutorial = {
    .name     = "tutorial",
    .summary  = "five tutorials of other authors, each figure, formula, number and claim by a command",
    .synopsis = "[000|001|002|003|004] [--section N] [--only ID] [--lang en|zh] [--run TEXT] [-o page.html]",
    .details =
        "The tutorials are five published introductions by other authors, and are checked here: posenc "
        "tutorial walks through one in its own order. Each row has what the text says, the formula, the "
        "command "
        "that shows it, what that prints, and a verdict: a number is as printed if it rounds to the printed "
        "one; where the tutorial is wrong, the right value stands with its entry of docs/errata.md. Without "
        "a number, lists the tutorials and their sections.\n\n"
        "Commands that train models take minutes: stored results are shown, unless --run names a text. Then "
        "each of them leaves its results in a folder posenc-tutorial-X of the current one, and the same call "
        "goes on where it was interrupted.\n\n"
        "On a terminal the output goes through $PAGER (less -R). Exit status 1: a number is neither as "
        "printed "
        "nor in the errata.",
    .options = options,
    .run     = run,
    .takes   = "000|001|002|003|004",
};
