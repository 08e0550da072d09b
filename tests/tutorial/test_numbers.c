/* SPDX-License-Identifier: MIT */
/*
 * test_numbers.c: each number and each claim of the five tutorials is a test of its own
 *
 * The tests are made from the tables of docs/tutorials: the commands are run as `posenc tutorial` runs them,
 * and each number must be as printed, or, where the table has the right one, equal to that.
 */
#include "cli/tutorial/tour.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

enum { NAME = 160, SCREEN = 80 };

typedef struct one_check {
    const json_t     *check;
    int               index;
    const cli_output *output;
    int               status; /* that the command must end with */
    char              name[NAME];
} one_check;

typedef struct list {
    struct CMUnitTest *tests;
    size_t             count;
    cli_tour           tour;
} list;

static void *must(void *p)
{
    if (!p)
        exit(2);
    return p;
}

/* ---------------------------------------------------------------- the tests ----------------- */

static void the_command_ends_as_it_must(void **state)
{
    const one_check *c = *state;
    assert_int_equal(c->output->status, c->status);
}

static void the_number_is_the_one_that_must_stand_there(void **state)
{
    const one_check  *c = *state;
    const cli_verdict v = cli_judge(c->check, c->index, c->output->text);
    if (v.finding > CLI_HOLDS)
        fail_msg("%s: the tutorial has \"%s\" (right \"%s\"), the output \"%s\"; finding %d in:\n%.2000s",
                 c->name, v.printed, v.right, v.found, (int)v.finding, c->output->text);
}

/* ---------------------------------------------------------------- made from the tables ------ */

static void add(list *l, CMUnitTestFunction test, one_check check)
{
    one_check *kept      = must(malloc(sizeof *kept));
    *kept                = check;
    l->tests             = must(realloc(l->tests, (l->count + 1) * sizeof *l->tests));
    l->tests[l->count++] = (struct CMUnitTest){.name = kept->name, .test_func = test, .initial_state = kept};
}

static void add_checks(list *l, const char *id, const json_t *checks, const cli_output *o)
{
    size_t  i;
    json_t *check;
    json_array_foreach(checks, i, check) for (int k = 0; k < cli_judge_count(check); k++)
    {
        one_check c = {.check = check, .index = k, .output = o};
        snprintf(c.name, NAME, "%s: number %d of check %d", id, k + 1, (int)i + 1);
        add(l, the_number_is_the_one_that_must_stand_there, c);
    }
}

/* The output stays where it is: only the list of outputs moves as it grows. */
static void add_run(list *l, const char *id, json_t *from)
{
    char              fault[160];
    const char       *measured_on;
    cli_row_run       run;
    const char       *wrong = cli_lesson_run(&run, from, fault);
    const cli_output *o     = wrong ? NULL : cli_tour_output(&l->tour, run.command, &measured_on);
    if (!o) {
        fprintf(stderr, "%s: %s\n", id, wrong ? wrong : "the command cannot be run");
        exit(2);
    }
    cli_output *kept = must(malloc(sizeof *kept));
    *kept            = *o;
    one_check ends   = {.output = kept, .status = run.status};
    snprintf(ends.name, NAME, "%s: the end of `%.100s`", id, run.command);
    add(l, the_command_ends_as_it_must, ends);
    add_checks(l, id, run.numbers, kept);
    add_checks(l, id, run.measured, kept);
}

static void add_row(list *l, json_t *from)
{
    char        fault[160];
    cli_row     row;
    size_t      i;
    json_t     *run;
    const char *wrong = cli_lesson_row(&row, from, fault);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        exit(2);
    }
    json_array_foreach(row.runs, i, run) add_run(l, row.id, run);
}

int main(void)
{
    static list       l; /* both are needed until the end */
    static cli_lesson lessons[CLI_LESSONS];
    l.tour.view.width = SCREEN;
    for (int n = 0; n < CLI_LESSONS; n++) {
        size_t  s, i;
        json_t *part, *row;
        if (cli_lesson_open(&lessons[n], n))
            exit(2);
        json_array_foreach(lessons[n].sections, s, part) json_array_foreach(cli_lesson_rows(part), i, row)
            add_row(&l, row);
    }
    return _cmocka_run_group_tests("numbers", l.tests, l.count, NULL, NULL);
}
