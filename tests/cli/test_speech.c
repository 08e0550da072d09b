/* SPDX-License-Identifier: MIT */
/*
 * How the tool speaks: words as a shell reads them back, wrapped text, the nearest word, JSON, the help of
 * every command
 */
#include "cli/print/print.h"
#include "files/calls.h"

/* What `print` writes to standard output; to be freed. */
static char *printed_by(void (*print)(const void *), const void *what)
{
    size_t n;
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    assert_non_null(freopen(scratch("printed"), "w", stdout));
    print(what);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    return scratch_read(scratch("printed"), &n);
}

/* ---------------------------------------------------------------- columns ------------------- */

static void chinese_is_two_columns_wide(void **state)
{
    int columns;
    (void)state;
    assert_int_equal(cli_columns_of("robot", 5), 5);
    assert_int_equal(cli_columns_of("robot", 3), 3);
    assert_int_equal(cli_columns_of("\xe7\x8b\x97 \xe5\x92\xac", 7), 5);            /* 狗 咬 */
    assert_int_equal(cli_columns_of("\xcf\x89\xce\xb8 \xc3\xa9", 7), 4);            /* ωθ é */
    assert_int_equal(cli_columns_of("\xed\x95\x9c\xe3\x81\x82\xef\xbc\x8c", 9), 6); /* 한あ， */
    assert_int_equal(cli_columns_of("", 0), 0);
    assert_int_equal(cli_columns_next("\xe7\x8b\x97!", &columns), 3);
    assert_int_equal(columns, 2);
}

/* ---------------------------------------------------------------- words of a call ----------- */

/* The oracle is sh itself. */
static void a_shell_reads_back_what_was_called(void **state)
{
    static const char *const list[] = {
        "plain",
        "",
        "two words",
        "it's",
        "''",
        "$HOME",
        "`id`",
        "a\"b",
        "\\",
        "*",
        "t5[max_distance=64]+rope",
        "a\nb",
        "~",
        "#x",
        "!",
        "{a,b}",
        "a;b",
        "&",
        "-o",
        "1e4:5e5",
        "\xc3\xa4",
        "a\\'b",
        "<>",
        "(x)",
    };
    char call_text[2000];
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t n;
        FILE  *script = fopen(scratch("script"), "w");
        fprintf(script, "printf %%s ");
        cli_print_word(script, list[i]);
        fclose(script);
        snprintf(call_text, sizeof call_text, "sh '%s' > '%s'", scratch("script"), scratch("out"));
        assert_int_equal(system(call_text), 0);
        char *out = scratch_read(scratch("out"), &n);
        assert_string_equal(out, list[i]);
        free(out);
    }
}

static void the_call_is_remembered_whole(void **state)
{
    char *argv[] = {(char *)(uintptr_t) "/usr/bin/posenc",
                    (char *)(uintptr_t) "verify",
                    (char *)(uintptr_t) "my folder",
                    (char *)(uintptr_t) "-e",
                    (char *)(uintptr_t) "t5",
                    NULL};
    (void)state;
    assert_string_equal(cli_call(), "posenc");
    assert_int_equal(cli_remember_call(5, argv), 0);
    assert_string_equal(cli_call(), "posenc verify 'my folder' -e t5");
}

static void the_nearest_word_is_named_only_if_it_is_near(void **state)
{
    static const char *const names[] = {"json", "layer", "length", "list"};
    static const struct {
        const char *word, *nearest;
    } rows[] = {{"jsno", "json"}, {"JSON", "json"}, {"lenght", "length"}, {"layers", "layer"},
                {"list", "list"}, {"lst", "list"},  {"frobnicate", NULL}, {"zz", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *near = cli_options_nearest(rows[i].word, names, 4);
        if (near != rows[i].nearest && !(near && rows[i].nearest && !strcmp(near, rows[i].nearest)))
            fail_msg("nearest to %s is %s", rows[i].word, near ? near : "none");
    }
    assert_null(cli_options_nearest("json", names, 0));
}

/* ---------------------------------------------------------------- wrapped text --------------- */

typedef struct paragraph {
    const char *text;
    size_t      length;
    int         at, indent, width;
} paragraph;

static void wrap(const void *what)
{
    const paragraph *p = what;
    cli_wrap(p->text, p->length, p->at, p->indent, p->width);
}

/* Lines of the printed text are as wide as said, begin as said, and hold the same words. */
static void check_wrapped(const paragraph *p)
{
    char  copy[400], *save, *printed = printed_by(wrap, p);
    char *end = printed + strlen(printed) - 1, *at = printed;
    assert_int_equal(*end, '\n');
    for (int line = 0; at < end; line++) {
        const size_t n = strcspn(at, "\n"), blanks = strspn(at, " ");
        const int    begin = line ? 0 : p->at, only_word = !memchr(at + blanks, ' ', n - blanks);
        if (begin + (int)n > p->width && !only_word)
            fail_msg("\"%.*s\" is wider than %d", (int)n, at, p->width);
        assert_int_equal(blanks, line ? p->indent : 0);
        assert_true(n == 0 || at[n - 1] != ' ');
        at += n + 1;
    }
    snprintf(copy, sizeof copy, "%.*s", (int)p->length, p->text);
    at = strtok_r(printed, " \n", &end);
    for (char *word = strtok_r(copy, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        assert_non_null(at);
        assert_string_equal(at, word);
        at = strtok_r(NULL, " \n", &end);
    }
    assert_null(at);
    free(printed);
}

static void wrapped_text_keeps_its_words_and_its_width(void **state)
{
    static const char text[] =
        "One two  three,\nfour five sixteen-letters-and-more six. Seven eight nine ten ";
    (void)state;
    for (int width = 1; width < 90; width += 1 + width / 3)
        for (size_t length = 0; length < sizeof text; length += 13)
            check_wrapped(&(paragraph){text, length, width % 5, width % 5, width});
    check_wrapped(&(paragraph){text, sizeof text - 1, 20, 4, 40});
}

static void help(const void *what)
{
    cli_pages_help(what);
}

static void the_help_of_every_command_fits_eighty_columns(void **state)
{
    (void)state;
    for (const cli_command *const *c = cli_commands; *c; c++) {
        char *text = printed_by(help, *c);
        for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            if (end - line > 80)
                fail_msg("%s --help: %.*s", (*c)->name, (int)(end - line), line);
        for (const cli_option *row = (*c)->options; row && row->name; row++) {
            char label[80];
            snprintf(label, sizeof label, "--%s", row->name);
            if (!strstr(text, label))
                fail_msg("%s --help does not name %s", (*c)->name, label);
        }
        free(text);
    }
}

static void a_command_is_found_by_its_whole_name(void **state)
{
    (void)state;
    for (const cli_command *const *c = cli_commands; *c; c++)
        assert_ptr_equal(cli_pages_find((*c)->name), *c);
    assert_null(cli_pages_find("verif"));
    assert_null(cli_pages_find(""));
}

/* ---------------------------------------------------------------- JSON ---------------------- */

static void what_is_no_number_or_no_text_is_null(void **state)
{
    json_t *all[] = {cli_json_real((double)NAN), cli_json_text(NULL), cli_json_text("")};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(json_is_null(all[i]));
        json_decref(all[i]);
    }
    json_t *x = cli_json_real(-0.5), *text = cli_json_text("a \"b\"");
    assert_true(json_real_value(x) == -0.5);
    assert_string_equal(json_string_value(text), "a \"b\"");
    json_decref(x);
    json_decref(text);
}

static void words_become_a_list_without_empty_ones(void **state)
{
    static const struct {
        const char *text, *separators, *words[4];
    } rows[] = {{"a bc d", " ", {"a", "bc", "d"}},
                {"  a  b ", " ", {"a", "b"}},
                {"a,b|c", ",|", {"a", "b", "c"}},
                {"", " ", {NULL}},
                {" , ", " ,", {NULL}}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        json_t *list = cli_json_words(rows[r].text, rows[r].separators);
        size_t  n    = 0;
        for (; rows[r].words[n]; n++)
            assert_string_equal(json_string_value(json_array_get(list, n)), rows[r].words[n]);
        assert_int_equal(json_array_size(list), n);
        json_decref(list);
    }
}

static void print_json(const void *what)
{
    cli_print_json(json_pack("{s:f}", "x", *(const double *)what), 0);
}

/* With 0 digits a real is written with as many as it takes to read it back. */
static void printed_reals_are_read_back_to_the_bit(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        const double x       = posenc_random_normal(3, "real", i) * pow(10, (double)i - 25);
        char        *printed = printed_by(print_json, &x);
        json_t      *read    = json_loads(printed, 0, NULL);
        assert_true(json_real_value(json_object_get(read, "x")) == x);
        json_decref(read);
        free(printed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chinese_is_two_columns_wide),
        cmocka_unit_test(a_shell_reads_back_what_was_called),
        cmocka_unit_test(the_call_is_remembered_whole),
        cmocka_unit_test(the_nearest_word_is_named_only_if_it_is_near),
        cmocka_unit_test(wrapped_text_keeps_its_words_and_its_width),
        cmocka_unit_test(the_help_of_every_command_fits_eighty_columns),
        cmocka_unit_test(a_command_is_found_by_its_whole_name),
        cmocka_unit_test(what_is_no_number_or_no_text_is_null),
        cmocka_unit_test(words_become_a_list_without_empty_ones),
        cmocka_unit_test(printed_reals_are_read_back_to_the_bit),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
