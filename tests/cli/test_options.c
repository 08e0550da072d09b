/* SPDX-License-Identifier: MIT */
/*
 * From the words of a call to the values of its options: what is read, what is refused, and in which words
 *
 * The command here is the test's own, with an option of every type. The transcripts beside this file show
 * the same on the tool's commands.
 */
#include "files/calls.h"

typedef struct values {
    int         flag, word;
    const char *text, *scale;
    int64_t     whole;
    double      real;
    cli_numbers wholes, reals, points, grid;
} values;

static values got;

static int run(const cli_args *args)
{
    return cli_read(args, &got);
}

#define AT(member) .at = offsetof(values, member)
static const cli_option options[] = {
    {'f', "flag", NULL, "a flag", CLI_FLAG, AT(flag)},
    {'t', "text", "T", "any text", CLI_TEXT, AT(text)},
    {0, "word", "W", "one of three", CLI_WORD, AT(word), .words = "one|two|twofold"},
    {'n', "whole", "N", "a whole number", CLI_WHOLE, AT(whole), -5, 4096},
    {0, "real", "X", "a number", CLI_REAL, AT(real), 0, 10},
    {0, "scale", "X", "any number, as text", CLI_REAL_TEXT, AT(scale)},
    {0, "wholes", "N:...", "whole numbers", CLI_WHOLES, AT(wholes), 0, 99},
    {0, "reals", "X:...", "numbers", CLI_REALS, AT(reals), 1, 1000000},
    {0, "points", "YxX:...", "points", CLI_POINTS, AT(points), 0, 99},
    {0, "grid", "HxW", "a grid", CLI_GRID, AT(grid), 1, 512},
    {'a', "asked", "A", "not stored", .type = CLI_ASKED},
    {0},
};
static const cli_command command = {
    .name = "try", .summary = "tries options", .synopsis = "[OPTION]...", .options = options, .run = run};

/* What one option with this value is read as. */
static const values *read_of(const char *option, const char *value)
{
    got = (values){0};
    if (call(&command, (const char *const[]){option, value, NULL}) != CLI_DONE)
        fail_msg("%s %s is refused", option, value ? value : "");
    return &got;
}

static void refused(const char *const *list, const char *sentence)
{
    char line[400];
    snprintf(line, sizeof line, "posenc: error: try: %s\n", sentence);
    assert_int_equal(call(&command, list), CLI_USAGE);
    said(line);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_is_not_given_stays_as_it_was(void **state)
{
    const values before = {.whole = 7, .real = 0.5, .word = 2, .wholes = {.count = 3}};
    (void)state;
    got = before;
    assert_int_equal(call(&command, (const char *const[]){NULL}), CLI_DONE);
    assert_memory_equal(&got, &before, sizeof before);
}

static void a_value_of_each_type_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_of("--flag", NULL)->flag, 1);
    assert_string_equal(read_of("--text", "-")->text, "-");
    assert_string_equal(read_of("--text", "")->text, "");
    assert_int_equal(read_of("--word", "one")->word, 0);
    assert_int_equal(read_of("--word", "two")->word, 1);
    assert_int_equal(read_of("--word", "twofold")->word, 2);
    assert_int_equal(read_of("--whole", "-5")->whole, -5);
    assert_int_equal(read_of("--whole", "4096")->whole, 4096);
    assert_true(read_of("--real", "0")->real == 0);
    assert_true(read_of("--real", "1e1")->real == 10);
    assert_string_equal(read_of("--scale", "-1e300")->scale, "-1e300");
}

static void lists_are_read_number_by_number(void **state)
{
    (void)state;
    const cli_numbers *wholes = &read_of("--wholes", "4:0,99")->wholes;
    assert_int_equal(wholes->count, 3);
    assert_true(wholes->whole[0] == 4 && wholes->whole[1] == 0 && wholes->whole[2] == 99);
    const cli_numbers *reals = &read_of("--reals", "1e4:2.5")->reals;
    assert_int_equal(reals->count, 2);
    assert_true(reals->real[0] == 1e4 && reals->real[1] == 2.5);
    const cli_numbers *points = &read_of("--points", "4x6:8x16")->points;
    assert_int_equal(points->count, 4);
    assert_true(points->whole[0] == 4 && points->whole[1] == 6 && points->whole[2] == 8 &&
                points->whole[3] == 16);
    const cli_numbers *grid = &read_of("--grid", "1x512")->grid;
    assert_int_equal(grid->count, 2);
    assert_true(grid->whole[0] == 1 && grid->whole[1] == 512);
}

/* "1:1: ... :1" of n numbers; with `pair` each is 1x1. */
static void fill_list(char *text, int n, int paired)
{
    for (int i = 0; i < n; i++)
        text += sprintf(text, "%s%s", i ? ":" : "", paired ? "1x1" : "1");
}

static void a_list_is_as_long_as_it_may_be_and_no_longer(void **state)
{
    char text[4 * CLI_LIST_MOST + 8];
    (void)state;
    fill_list(text, CLI_LIST_MOST, 0);
    assert_int_equal(read_of("--wholes", text)->wholes.count, CLI_LIST_MOST);
    fill_list(text, CLI_LIST_MOST / 2, 1);
    assert_int_equal(read_of("--points", text)->points.count, CLI_LIST_MOST);
    fill_list(text, CLI_LIST_MOST + 1, 0);
    assert_int_equal(call(&command, WORDS("--wholes", text)), CLI_USAGE);
    said("it must be up to 32 whole numbers from 0 to 99, such as 4:8");
    fill_list(text, CLI_LIST_MOST / 2 + 1, 1);
    assert_int_equal(call(&command, WORDS("--points", text)), CLI_USAGE);
    said("it must be up to 16 points ROWxCOLUMN, such as 4x6:8x16");
}

static void what_is_no_such_value_is_refused_with_what_would_be(void **state)
{
    static const struct {
        const char *option, *values[8], *must;
    } rows[] = {
        {"whole",
         {"", "x", "5x", "1.5", "4097", "-6", "99999999999999999999", "1 2"},
         "a whole number from -5 to 4096"},
        {"real", {"", "x", "-0.1", "10.1", "nan", "inf", "1,2", "1e400"}, "a number from 0 to 10"},
        {"scale", {"", "x", "1:2", "nan", "0.5f"}, "a number from -inf to inf"},
        {"word", {"", "o", "ones", "one|two", "ONE", "|"}, "one, two or twofold"},
        {"wholes",
         {"", ":", "1:", ":1", "1::2", "1;2", "100", "1:-1"},
         "up to 32 whole numbers from 0 to 99, such as 4:8"},
        {"reals", {"", "1:", "0.5", "1:2e6", "x"}, "up to 32 numbers from 1 to 1e+06, such as 1e4:5e5"},
        {"points",
         {"", "4", "4x", "x4", "4x5x6", "4x5:6", "4:5", "4x100"},
         "up to 16 points ROWxCOLUMN, such as 4x6:8x16"},
        {"grid",
         {"", "4", "4x", "0x4", "4x513", "4x5:6x7", "4:5", "4x5x6"},
         "ROWSxCOLUMNS, each from 1 to 512, such as 16x32"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < 8 && rows[r].values[i]; i++) {
            char word[100], sentence[300];
            snprintf(word, sizeof word, "--%s=%s", rows[r].option, rows[r].values[i]);
            snprintf(sentence, sizeof sentence, "--%s is \"%s\"; it must be %s", rows[r].option,
                     rows[r].values[i], rows[r].must);
            refused(WORDS(word), sentence);
        }
}

static void the_last_value_counts_and_all_can_be_asked_for(void **state)
{
    static const char *const list[] = {"-n", "1", "--whole=2", "-n3", "-a", "x", "-ay", "--asked=z", "-ff"};
    cli_args                 args;
    char                    *argv[11] = {(char *)(uintptr_t) "try"};
    (void)state;
    for (int i = 0; i < 9; i++)
        argv[i + 1] = (char *)(uintptr_t)list[i];
    optind = 0;
    assert_int_equal(cli_options_parse(&args, &command, 10, argv), CLI_DONE);
    assert_string_equal(cli_value(&args, "whole"), "3");
    assert_int_equal(cli_value_count(&args, "asked"), 3);
    assert_string_equal(cli_value_at(&args, "asked", 0), "x");
    assert_string_equal(cli_value_at(&args, "asked", 2), "z");
    assert_null(cli_value_at(&args, "asked", 3));
    assert_int_equal(cli_value_count(&args, "flag"), 2);
    assert_string_equal(cli_value(&args, "flag"), "");
    assert_null(cli_value(&args, "text"));
    assert_int_equal(args.count, 0);
    free(args.given);
}

static void options_and_arguments_mix_until_two_dashes(void **state)
{
    static const char *const list[] = {"one", "-f", "-", "--whole", "-4", "--", "-n", "--flag"};
    static const char *const left[] = {"one", "-", "-n", "--flag"};
    cli_args                 args;
    char                    *argv[10] = {(char *)(uintptr_t) "try"};
    int64_t                  x        = 0;
    (void)state;
    for (int i = 0; i < 8; i++)
        argv[i + 1] = (char *)(uintptr_t)list[i];
    optind = 0;
    assert_int_equal(cli_options_parse(&args, &command, 9, argv), CLI_DONE);
    assert_int_equal(args.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(cli_at(&args, i), left[i]);
    assert_null(cli_at(&args, 4));
    assert_null(cli_at(&args, -1));
    assert_int_equal(cli_integer(&args, "whole", -9, 9, &x), 1);
    assert_int_equal(x, -4); /* a value may begin with a dash */
    assert_int_equal(cli_integer(&args, "asked", -9, 9, &x), 0);
    assert_int_equal(x, -4);
    free(args.given);
}

static void what_is_no_option_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refused(WORDS("--flga"), "there is no option --flga (did you mean --flag?); try posenc try --help");
    refused(WORDS("--wholess=4"),
            "there is no option --wholess (did you mean --wholes?); try posenc try --help");
    refused(WORDS("--frobnicate"), "there is no option --frobnicate; try posenc try --help");
    refused(WORDS("-x"), "there is no option -x; try posenc try --help");
    refused(WORDS("-fx"), "there is no option -x; try posenc try --help");
    refused(WORDS("--flag=yes"), "option --flag takes no value; leave it out");
    refused(WORDS("--text"), "option --text needs a value: --text T");
    refused(WORDS("-f", "-t"), "option --text needs a value: --text T");
}

static void a_long_option_is_never_shortened(void **state)
{
    (void)state;
    assert_int_equal(read_of("--whole", "2")->whole, 2); /* wholes begins so too */
    refused(WORDS("--sc", "2"), "there is no option --sc; try posenc try --help");
    refused(WORDS("--rea=2"), "there is no option --rea (did you mean --real?); try posenc try --help");
    refused(WORDS("-f", "x", "--fla"),
            "there is no option --fla (did you mean --flag?); try posenc try --help");
}

static void a_long_option_has_two_dashes(void **state)
{
    (void)state;
    refused(WORDS("-text", "x"), "there is no option -text; write it with two dashes: --text");
    refused(WORDS("-help"), "there is no option -help; write it with two dashes: --help");
    refused(WORDS("-real=2"), "there is no option -real; write it with two dashes: --real");
    assert_string_equal(read_of("-texts", NULL)->text, "exts");
}

static void an_option_is_no_value(void **state)
{
    (void)state;
    refused(WORDS("-t", "--flag"), "option --text needs a value: --text T");
    refused(WORDS("--text", "--help"), "option --text needs a value: --text T");
    assert_string_equal(read_of("--text=--flag", NULL)->text, "--flag");
}

static void an_option_of_other_commands_is_refused_with_their_names(void **state)
{
    (void)state;
    refused(WORDS("--checkpoint", "1"),
            "there is no option --checkpoint here, only in inspect, compare; try posenc try --help");
}

static void help_and_version_are_everywhere(void **state)
{
    cli_args args;
    char    *argv[] = {(char *)(uintptr_t) "try", (char *)(uintptr_t) "-h", (char *)(uintptr_t) "--version",
                       NULL};
    (void)state;
    optind = 0;
    assert_int_equal(cli_options_parse(&args, &command, 3, argv), CLI_DONE);
    assert_true(args.help && args.version);
    free(args.given);
}

static void a_place_is_that_of_the_whole_word(void **state)
{
    (void)state;
    assert_int_equal(cli_options_word("bhld|blhd", '|', "bhld"), 0);
    assert_int_equal(cli_options_word("bhld|blhd", '|', "blhd"), 1);
    assert_int_equal(cli_options_word("bhld|blhd", '|', "bhl"), -1);
    assert_int_equal(cli_options_word("bhld|blhd", '|', "bhld|"), -1);
    assert_int_equal(cli_options_word("table length dim", ' ', "dim"), 2);
    assert_int_equal(cli_options_word("table length dim", ' ', "table length"), -1);
    assert_int_equal(cli_options_word(NULL, '|', "dim"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_stays_as_it_was),
        cmocka_unit_test(a_value_of_each_type_is_read),
        cmocka_unit_test(lists_are_read_number_by_number),
        cmocka_unit_test(a_list_is_as_long_as_it_may_be_and_no_longer),
        cmocka_unit_test(what_is_no_such_value_is_refused_with_what_would_be),
        cmocka_unit_test(the_last_value_counts_and_all_can_be_asked_for),
        cmocka_unit_test(options_and_arguments_mix_until_two_dashes),
        cmocka_unit_test(what_is_no_option_is_refused_with_the_nearest),
        cmocka_unit_test(a_long_option_is_never_shortened),
        cmocka_unit_test(a_long_option_has_two_dashes),
        cmocka_unit_test(an_option_is_no_value),
        cmocka_unit_test(an_option_of_other_commands_is_refused_with_their_names),
        cmocka_unit_test(help_and_version_are_everywhere),
        cmocka_unit_test(a_place_is_that_of_the_whole_word),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
