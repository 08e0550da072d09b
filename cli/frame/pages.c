/* SPDX-License-Identifier: MIT */
/*
 * pages.c: the table of commands, and what the tool says about itself: --help, the man page, the version
 *
 * The pages are printed from the same tables that options.c parses by, so none can fall behind. The build
 * calls `posenc help --man` and installs what it prints.
 *
 * Text of commands (`details`) is paragraphs, separated by empty lines; a paragraph that begins with a blank
 * is printed unchanged.
 */
#include "cli/frame/cli.h"

#include "files/arrays/text.h"

#include <string.h>

enum { WIDEST = 80, LONGEST_LABEL = 26 };

/* ---------------------------------------------------------------- the commands -------------- */

#define COMMAND(name) extern const cli_command cli_##name;
#include "cli/frame/commands.def"
#undef COMMAND

#define COMMAND(name) &cli_##name,
const cli_command *const cli_commands[] = {
#include "cli/frame/commands.def"
    NULL,
};
#undef COMMAND

const cli_command *cli_pages_find(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name))
            return cli_commands[i];
    return NULL;
}

int cli_pages_unknown(const char *word)
{
    const char *names[sizeof cli_commands / sizeof *cli_commands];
    int         count = 0;
    for (; cli_commands[count]; count++)
        names[count] = cli_commands[count]->name;
    const char *near = cli_options_nearest(word, names, count);
    if (!near && posenc_encoding_find(word))
        return cli_usage("\"%s\" is an encoding, not a command; try posenc list %s", word, word);
    return cli_usage("there is no command \"%s\"%s%s%s; try posenc --help", word,
                     near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* ---------------------------------------------------------------- paragraphs ---------------- */

void cli_wrap(const char *text, size_t length, int at, int indent, int width)
{
    int column = at, is_first = 1;
    for (;;) {
        const size_t blanks = strspn(text, " \n");
        if (blanks >= length)
            break;
        text += blanks;
        length -= blanks;
        size_t word       = strcspn(text, " \n");
        word              = word < length ? word : length;
        const int columns = cli_columns_of(text, word);
        if (!is_first && column + 1 + columns > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!is_first)
            column += printf(" ");
        pe_text_put(stdout, text, word);
        column += columns;
        is_first = 0;
        text += word;
        length -= word;
    }
    putchar('\n');
}

typedef void paragraph_fn(const char *text, size_t length);

/* Calls `each` for every paragraph of text. */
static void for_paragraphs(const char *text, paragraph_fn *each)
{
    while (text && *text) {
        const char  *end    = strstr(text, "\n\n");
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        if (length)
            each(text, length);
        text += length;
        text += strspn(text, "\n");
    }
}

/* ---------------------------------------------------------------- --help --------------------- */

/* Long lines are hard to read, on the widest terminal too. */
static int width(void)
{
    const int columns = cli_width();
    return columns < WIDEST ? columns : WIDEST;
}

static void help_paragraph(const char *text, size_t length)
{
    putchar('\n');
    if (*text == ' ')
        printf("%.*s\n", (int)length, text);
    else
        cli_wrap(text, length, 0, 0, width());
}

/* "  -o, --output F  " and the meaning next to it, or below where the label is long. */
static void help_row(const char *label, const char *meaning)
{
    const int used = printf("  %s", label);
    if (used + 2 > LONGEST_LABEL)
        printf("\n%*s", LONGEST_LABEL, "");
    else
        printf("%*s", LONGEST_LABEL - used, "");
    cli_wrap(meaning, strlen(meaning), LONGEST_LABEL, LONGEST_LABEL, width());
}

static void help_options(const cli_option *row)
{
    for (; row && row->name; row++) {
        char label[128];
        char letter[8] = "    ";
        if (row->letter)
            snprintf(letter, sizeof letter, "-%c, ", row->letter);
        snprintf(label, sizeof label, "%s--%s%s%s", letter, row->name, row->value ? " " : "",
                 row->value ? row->value : "");
        help_row(label, row->meaning);
    }
}

/* What is too long goes on below where its words begin. */
static void help_line(const char *text)
{
    const char *words = text + strspn(text, " "), *gap = strstr(words, "  ");
    if (gap)
        words = gap + strspn(gap, " ");
    const int at = (int)(words - text);
    printf("%.*s", at, text);
    if (cli_columns_of(text, strlen(text)) > width())
        cli_wrap(words, strlen(words), at, at, width());
    else
        puts(words);
}

/* Where the next piece of a synopsis ends: before a bracket, bar or dash, outside of brackets, so that
   "[-e NAME,...]" and "--dim D" stay in one line. */
static int piece_of(const char *synopsis)
{
    int n = 1;
    for (int depth = *synopsis == '['; synopsis[n]; n++) {
        const int is_edge = synopsis[n] == ' ' && strchr("[|-", synopsis[n + 1]) && synopsis[n - 1] != '|';
        if (!depth && is_edge)
            break;
        depth += (synopsis[n] == '[') - (synopsis[n] == ']');
    }
    return n;
}

static void help_usage(const cli_command *c)
{
    enum { INDENT = 7 };
    int column = printf("Usage: posenc %s", c->name);
    for (const char *at = c->synopsis ? c->synopsis : ""; *at;) {
        const int n = piece_of(at);
        if (column + 1 + n > width())
            column = printf("\n%*s", INDENT, "") - 1;
        column += printf(" %.*s", n, at);
        at += n + (at[n] == ' ');
    }
    puts("\n");
}

static void help_command(const cli_command *c)
{
    help_usage(c);
    cli_wrap(c->summary, strlen(c->summary), 0, 0, width());
    for_paragraphs(c->details, help_paragraph);
    if (c->lines) {
        putchar('\n');
        c->lines(help_line);
    }
    puts("\nOptions:");
    help_options(c->options);
    help_options(cli_common_options);
}

static const char introduction[] =
    "posenc knows the positional encodings of Transformers. It draws and measures them, computes with them "
    "on "
    "your arrays, says which one a model's file has and what another program does differently, and trains "
    "the "
    "same small model with each to compare them on your own text.";

static const char conventions[] =
    "Data goes to standard output or to the file given by -o; messages go to standard error. `-` as a file "
    "is standard input or output, `--` ends the options. An output file is written whole or not at all.";

void cli_pages_help(const cli_command *command)
{
    if (command && *command->name) {
        help_command(command);
        return;
    }
    puts("Usage: posenc COMMAND [OPTION]... [ARGUMENT]...\n");
    cli_wrap(introduction, strlen(introduction), 0, 0, width());
    puts("\nCommands (posenc COMMAND --help says more):");
    for (int i = 0; cli_commands[i]; i++)
        help_row(cli_commands[i]->name, cli_commands[i]->summary);
    puts("\nOptions:");
    help_options(cli_common_options);
    putchar('\n');
    cli_wrap(conventions, strlen(conventions), 0, 0, width());
}

/* ---------------------------------------------------------------- the man page --------------- */

/* roff reads a dot or quote at the start of a line as a request, a backslash as an escape, and a plain minus
   as a hyphen that a terminal cannot search for. */
static void roff(const char *text, size_t length)
{
    if (length && (*text == '.' || *text == '\''))
        printf("\\&");
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '-')
            printf("\\-");
        else
            putchar(text[i]);
}

static void roff_line(const char *text)
{
    roff(text, strlen(text));
    putchar('\n');
}

static void man_paragraph(const char *text, size_t length)
{
    puts(*text == ' ' ? ".PP\n.nf" : ".PP");
    roff(text, length);
    puts(*text == ' ' ? "\n.fi" : "");
}

static void man_option(const cli_option *row)
{
    printf(".TP\n");
    if (row->letter)
        printf("\\fB\\-%c\\fR, ", row->letter);
    printf("\\fB\\-\\-");
    roff(row->name, strlen(row->name));
    printf("\\fR");
    if (row->value) {
        printf(" \\fI");
        roff(row->value, strlen(row->value));
        printf("\\fR");
    }
    putchar('\n');
    roff_line(row->meaning);
}

static void man_command(const cli_command *c)
{
    printf(".SS \"posenc %s", c->name);
    if (c->synopsis && *c->synopsis) {
        putchar(' ');
        roff(c->synopsis, strlen(c->synopsis));
    }
    puts("\"");
    roff_line(c->summary);
    for_paragraphs(c->details, man_paragraph);
    if (c->lines) {
        puts(".PP\n.nf");
        c->lines(roff_line);
        puts(".fi");
    }
    for (const cli_option *row = c->options; row && row->name; row++)
        man_option(row);
}

static const struct {
    const char *name, *text;
} man_tail[] = {
    {"EXIT STATUS",
     "0 success; 1 failure, or verify, diagnose or tutorial found a difference; 2 the arguments or the input "
     "are unusable; 130 interrupted, and what was finished is saved and printed."},
    {"ENVIRONMENT",
     "NO_COLOR, if not empty, and TERM=dumb switch colours off. POSENC_ISA (plain, avx2, "
     "avx512, avx512bf16, neon) selects an instruction set, for tests; one that the processor "
     "lacks is refused. OMP_NUM_THREADS limits the threads of one run. COLUMNS is how wide text "
     "is printed, PAGER what shows a tutorial on a terminal (less -R)."},
    {"EXAMPLES", "posenc list alibi\n.br\nposenc compare \\-o report book.txt\n.br\nposenc plot bias alibi "
                 "\\-o alibi.svg"},
    {"SEE ALSO", "The documents that are named here, such as docs/experiments.md: share/doc/posenc of the "
                 "installation, and the sources."},
};

static void print_man(void)
{
    printf(".TH POSENC 1 \"\" \"posenc %s\" \"User Commands\"\n", posenc_version());
    puts(".SH NAME\nposenc \\- see, check, measure and compare the positional encodings of Transformers");
    puts(".SH SYNOPSIS\n.B posenc\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n.SH "
         "DESCRIPTION");
    roff_line(introduction);
    puts(".PP");
    roff_line(conventions);
    puts(".SH COMMANDS");
    for (int i = 0; cli_commands[i]; i++)
        man_command(cli_commands[i]);
    puts(".SS \"Every command\"");
    for (const cli_option *row = cli_common_options; row->name; row++)
        man_option(row);
    for (size_t i = 0; i < sizeof man_tail / sizeof *man_tail; i++)
        printf(".SH %s\n%s\n", man_tail[i].name, man_tail[i].text);
}

/* ---------------------------------------------------------------- the two commands ----------- */

static int run_help(const cli_args *args)
{
    const char *name = cli_at(args, 0);
    if (cli_value(args, "man"))
        return print_man(), CLI_DONE;
    if (args->count > 1)
        return cli_usage("help: \"%s\" is one argument too many; give one command", cli_at(args, 1));
    const cli_command *command = name ? cli_pages_find(name) : NULL;
    if (name && !command)
        return cli_pages_unknown(name);
    cli_pages_help(command);
    return CLI_DONE;
}

void cli_pages_version(void)
{
    printf("posenc %s (%s)\n", posenc_version(), posenc_isa());
}

static int run_version(const cli_args *args)
{
    if (args->count)
        return cli_usage("version: unexpected argument \"%s\"; leave it out", cli_at(args, 0));
    if (!cli_value(args, "json"))
        return cli_pages_version(), CLI_DONE;
    printf("{\"version\": \"%s\", \"isa\": \"%s\", \"isas\": [", posenc_version(), posenc_isa());
    for (int i = 0; posenc_isa_at(i); i++)
        printf("%s\"%s\"", i ? ", " : "", posenc_isa_at(i));
    puts("],");
    printf(" \"features\": {\"threads\": \"%s\", \"npz\": %s, \"mpi\": %s},\n", CLI_OPENMP ? "OpenMP" : "own",
           CLI_NPZ ? "true" : "false", CLI_MPI ? "true" : "false");
    printf(" \"encodings\": %d,\n", posenc_encoding_count());
    printf(" \"limits\": {\"parts\": %d, \"axes\": %d, \"decode_queries\": %d, \"run_bytes\": %lld}}\n",
           (int)POSENC_PLACE_COUNT, (int)POSENC_MAX_DIMS, (int)POSENC_DECODE_QUERIES,
           (long long)1 << (sizeof(size_t) < 8 ? 29 : 47));
    return CLI_DONE;
}

static const cli_option help_rows[] = {
    {0, "man", NULL, "print the man page (roff)"},
    {0, NULL, NULL, NULL},
};

static void call_out(const char *option, void (*word)(const char *word))
{
    for (int i = 0; cli_commands[i]; i++)
        word(cli_commands[i]->name);
}

const cli_command cli_help = {
    .name     = "help",
    .summary  = "print the help of a command, or of the tool",
    .synopsis = "[COMMAND] [--man]",
    .options  = help_rows,
    .run      = run_help,
    .takes    = "*",
    .words    = call_out,
};

static const cli_option version_rows[] = {
    {0, "json", NULL,
     "print as JSON, with the instruction sets of this processor, what was built in, and limits"},
    {0, NULL, NULL, NULL},
};

const cli_command cli_version = {
    .name     = "version",
    .summary  = "print the version, and the instruction set in use",
    .synopsis = "[--json]",
    .options  = version_rows,
    .run      = run_version,
};
