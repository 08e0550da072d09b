/* SPDX-License-Identifier: MIT */
/*
 * cmd_compare.c: posenc compare TEXT...: which positional encoding for this text
 *
 * Reads the texts, lets train/compare.h do the work, and shows how far it is and what came out. Everything
 * is checked before the first training step. Each finished run is one line; on a terminal one
 * more is rewritten with the time left. Ctrl-C (SIGINT, SIGTERM or SIGUSR1, which batch systems send) saves
 * and prints what is finished (status 130); a second one ends at once.
 *
 * Under mpirun every process comes here. Process 0 reads the text and prints; the others print nothing and
 * train.
 */
#include "cli/commands/corpus.h"
#include "cli/print/print.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PRESET    "default"
#define DEFAULT_DIRECTORY "posenc-compare"

#define CHECKPOINT_SECONDS 10

#define INTERRUPTION "posenc: interrupted: keeping what is finished; once more ends at once\n"

enum { MOST_STEPS = 100000000, MOST_SEEDS = 1000, MOST_THREADS = 1024, MOST_SECONDS = 86400 };
enum { MOST_SIZE = 65536 };

static const cli_option options[] = {
    {'e', "encodings", "SPEC,...", "the encodings to compare instead of the preset's"},
    {0, "preset", "NAME", "quick, default, full or huge (default), or a preset of your own: F.json",
     .words = "*|.json"},
    {0, "tasks", "NAME,...", "the synthetic tasks to train on as well, or none, instead of the preset's",
     CLI_TEXT, offsetof(pe_compare_config, tasks), .words = "*,...|none"},
    {0, "combine", "WAYS",
     "for encodings at the input: add, concat, or add,concat for both side by side (add)", CLI_TEXT,
     offsetof(pe_compare_config, combine), .words = "add,...|concat,..."},
    {0, "extension", "HOW",
     "read models at up to 16 times their training length: none, brief (tuned at twice that length) or "
     "full, instead of the preset's",
     CLI_TEXT, offsetof(pe_compare_config, extension), .words = "none|brief|full"},
    {'o', "output", "DIR", "directory for the report and all numbers (" DEFAULT_DIRECTORY ")", CLI_TEXT,
     offsetof(pe_compare_config, directory)},
    {0, "bidirectional", NULL, "predict hidden bytes from both sides instead of the next byte", CLI_FLAG,
     offsetof(pe_compare_config, bidirectional)},
    {0, "seeds", "N", "number of seeds from which every encoding is trained: 1, or at least 3", CLI_WHOLE,
     offsetof(pe_compare_config, preset.seeds), 1, MOST_SEEDS},
    {0, "steps", "N", "training steps on the text and on every task, instead of the preset's", CLI_WHOLE,
     offsetof(pe_compare_config, preset.steps), 1, MOST_STEPS},
    {0, "task-steps", "N", "training steps on every task, independent of those on the text", CLI_WHOLE,
     offsetof(pe_compare_config, task_steps), 1, MOST_STEPS},
    {0, "tune-steps", "N", "training steps of each tuning of --extension (100)", CLI_WHOLE,
     offsetof(pe_compare_config, tune_steps), 1, MOST_STEPS},
    {0, "length", "L", "training length, in bytes or tokens, instead of the preset's", CLI_WHOLE,
     offsetof(pe_compare_config, preset.L), PE_SHORTEST_L, MOST_SIZE},
    {0, "reach", "R", "read inputs of up to R times that length: 2, 4, 8, 16 ... (8)", CLI_WHOLE,
     offsetof(pe_compare_config, preset.reach), 2, MOST_SIZE},
    {0, "width", "N", "width of the model, which --heads divides", CLI_WHOLE,
     offsetof(pe_compare_config, preset.d_model), 1, MOST_SIZE},
    {0, "layers", "N", "layers of the model on the text", CLI_WHOLE,
     offsetof(pe_compare_config, preset.layers), 1, MOST_SIZE},
    {0, "heads", "N", "attention heads of each layer", CLI_WHOLE, offsetof(pe_compare_config, preset.heads),
     1, MOST_SIZE},
    {0, "batch", "N",
     "windows of each training step on the text; without it, at another --length as many as keep the bytes "
     "per step",
     CLI_WHOLE, offsetof(pe_compare_config, preset.batch), 1, MOST_SIZE},
    {0, "learning-rate", "X", "learning rate at its peak", CLI_REAL,
     offsetof(pe_compare_config, preset.learning_rate), 0, MOST_STEPS},
    {0, "tokens", "F.npy", "train on these ids of tokens (whole numbers in one dimension) instead of a text"},
    {0, "token-bytes", "F.npy", "how many bytes each id stands for: losses per byte are shown too"},
    {0, "lang", "CODE", "language of report.html: en or zh (en)", .words = "en|zh"},
    {0, "threads", "N", "runs at the same time (one per processor); does not change the results", CLI_WHOLE,
     offsetof(pe_compare_config, workers), 1, MOST_THREADS},
    {0, "resume", NULL, "continue what an interrupted or killed call left in DIR.partial", CLI_FLAG,
     offsetof(pe_compare_config, resume)},
    {0, "checkpoint", "S", "seconds between two checkpoints of a run (10)", CLI_REAL,
     offsetof(pe_compare_config, checkpoint_seconds), 0, MOST_SECONDS},
    {0, "dry-run", NULL, "print what would be trained and about how long it takes here, then stop"},
    {0, "json", NULL, "print the results, or what --dry-run finds, as JSON instead of tables"},
    {0, "rates", "X,...",
     "learning rates tried on the text for each encoding, which is compared at its best; instead of the "
     "preset's",
     CLI_TEXT, offsetof(pe_compare_config, preset.rates)},
    {0, "positions", "RULE",
     "where training windows stand, each window by a draw of its own, to be read in order afterwards: "
     "random:N (L "
     "of the N positions, sorted), pose:N (two halves apart) or shift:N (all further on)",
     CLI_TEXT, offsetof(pe_compare_config, preset.positions)},
    {0, "stability", "HOW",
     "train less as well, to see whether the order would hold: none, brief (a quarter of the steps) or full "
     "(also a half of them, and half of the width); instead of the preset's",
     CLI_TEXT, offsetof(pe_compare_config, preset.stability), .words = "none|brief|full"},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- what is asked ------------- */

/* Before any text is read: a misspelt name should not wait for standard input. */
static int check_list(const char *list)
{
    char          spec[1024], plain[1024];
    posenc_error  err;
    pe_entry      entry;
    posenc_status status = POSENC_OK;
    while (list) {
        list = pe_spec_next(spec, sizeof spec, list, &status, &err);
        if (status || pe_spec_split(plain, sizeof plain, &entry, spec, &err) || pe_spec_check(plain, &err))
            return cli_error(&err);
    }
    return CLI_DONE;
}

/* A preset of that name or file; *memory is the file's. */
static int read_preset(pe_preset *preset, void **memory, const char *name)
{
    posenc_error     err;
    const pe_preset *found      = pe_preset_find(name);
    char             known[256] = "";
    if (found)
        *preset = *found;
    if (found)
        return CLI_DONE;
    if (pe_preset_is_path(name))
        return pe_preset_read(preset, memory, name, &err) ? cli_usage("--preset: %s", err.message) : CLI_DONE;
    for (int i = 0; i < PE_PRESETS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s, ", pe_presets[i].name);
    return cli_usage("--preset: there is no preset \"%s\"; there are: %sor a file whose name ends in .json",
                     name, known);
}

static int read_config(const cli_args *args, pe_compare_config *config, void **memory)
{
    const char      *name = cli_value(args, "preset"), *list = cli_value(args, "encodings");
    const char      *language = cli_value(args, "lang");
    int              ways, count;
    pe_preset_extent extent;
    const pe_task   *tasks[PE_MOST_TASKS];
    double           rates[PE_MOST_RATES];
    posenc_error     err;
    if (read_preset(&config->preset, memory, name ? name : DEFAULT_PRESET))
        return CLI_USAGE;
    config->directory          = DEFAULT_DIRECTORY;
    config->call               = cli_call();
    config->checkpoint_seconds = CHECKPOINT_SECONDS;
    const int64_t L            = config->preset.L; /* of the preset */
    if (cli_read(args, config))
        return CLI_USAGE;
    if (!cli_value(args, "batch"))
        config->preset.batch = pe_preset_batch(config->preset.batch, L, config->preset.L);
    if (list) {
        config->preset.extension      = NULL;
        config->preset.encodings      = list;
        config->preset.grid_encodings = NULL;
    }
    if (cli_value(args, "learning-rate") && cli_value(args, "rates"))
        return cli_usage("compare: --learning-rate and --rates exclude each other; give one of them");
    if (cli_value(args, "learning-rate")) /* one for all, instead of those that the preset tries */
        config->preset.rates = NULL;
    if (!config->task_steps && cli_value(args, "steps"))
        config->task_steps = config->preset.steps;
    if (cli_value(args, "seeds"))
        config->task_seeds = config->preset.seeds;
    if ((config->combine && pe_spec_read_combine(&ways, config->combine, &err)) ||
        (config->tasks && pe_preset_read_tasks(tasks, &count, config->tasks, &err)) ||
        (config->extension && pe_preset_read_extent(&extent, config->extension, &err)) ||
        (config->preset.rates && pe_preset_read_rates(rates, &count, config->preset.rates, &err)) ||
        (config->preset.stability && pe_preset_read_stability(&extent, config->preset.stability, &err)) ||
        (language && pe_preset_read_language(&config->language, language, &err)))
        return cli_usage("--%s", err.message);
    if (pe_preset_check(&config->preset, &err))
        return cli_error(&err);
    return check_list(config->preset.encodings);
}

/* ---------------------------------------------------------------- while it runs ------------- */

static int interrupted(void *self)
{
    return cli_interrupted;
}

/* "1:05", "2:03:00" */
static void write_duration(char *to, size_t n, double seconds)
{
    const long s = lround(seconds);
    if (s < 3600)
        snprintf(to, n, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(to, n, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

static void show_progress(void *self, const pe_compare_state *state)
{
    char text[80], remaining[32] = "?";
    if (!isnan(state->remaining))
        write_duration(remaining, sizeof remaining, state->remaining);
    const int said = snprintf(text, sizeof text, "%3.0f %%, %d of %d run%s, %s left", 100 * state->fraction,
                              state->finished, state->runs, state->runs == 1 ? "" : "s", remaining);
    const int bar = cli_width() - said - (int)strlen("compare []  "), done = (int)(bar * state->fraction);
    fputs("\r\033[Kcompare ", stderr);
    if (bar > 0) {
        fputc('[', stderr);
        for (int i = 0; i < bar; i++)
            fputc(i < done ? '#' : '.', stderr);
        fputs("] ", stderr);
    }
    fputs(text, stderr);
    fflush(stderr);
}

/* On a terminal in lines that fit, further ones indented. */
static void print_line(const char *text)
{
    const int on_terminal = cli_is_terminal(STDERR_FILENO);
    size_t    room        = on_terminal ? (size_t)cli_width() : SIZE_MAX;
    if (on_terminal)
        fputs("\r\033[K", stderr);
    while (strlen(text) > room) {
        size_t n = room;
        while (n > 1 && text[n] != ' ')
            n--;
        fprintf(stderr, "%.*s\n   ", (int)n, text);
        text += n;
        room = (size_t)cli_width() - 3;
    }
    fprintf(stderr, "%s\n", text);
}

static void show_finished(void *self, const pe_compare_run *run, const pe_compare_state *state)
{
    const pe_compare_config *shown     = self;
    char                     what[128] = "diverged", more[32] = "", text[PE_LONGEST_SPEC + 256];
    if (!run->diverged && run->task && !isnan(run->accuracy_at_2L))
        snprintf(more, sizeof more, ", %.2f at 2 L", run->accuracy_at_2L);
    if (!run->diverged && run->task)
        snprintf(what, sizeof what, "%.2f right at L%s", run->accuracy_at_L, more);
    else if (!run->diverged)
        snprintf(what, sizeof what, "%.3f nats per %s at L, %.3f at %" PRId64 " L", run->loss_at_L,
                 shown->tokens ? "token" : "byte", run->loss_beyond, shown->preset.reach);
    snprintf(text, sizeof text, "compare: %d of %d: %s%s%s, seed %" PRId64 ": %s, %.0f s", state->finished,
             state->runs, run->label, run->task ? " on " : "", run->task ? run->task : "", run->seed, what,
             run->seconds);
    print_line(text);
}

/* ---------------------------------------------------------------- what came out ------------- */

/* Its notes speak of tokens where the text is tokens. */
static void print_part(const pe_compare *c, pe_table *part, int is_wanted)
{
    char *notes = is_wanted ? pe_words_retell(c, part->notes) : NULL;
    if (notes) {
        free(part->notes);
        part->notes = notes;
    }
    if (!is_wanted) {
        pe_table_free(part);
        return;
    }
    cli_print_table(part);
    putchar('\n');
}

/* Nothing where it has no rows. */
static int print_made(const pe_compare *c,
                      posenc_status (*make)(const pe_compare *c, pe_table *t, posenc_error *err))
{
    posenc_error err;
    pe_table     made;
    if (make(c, &made, &err))
        return cli_error(&err);
    print_part(c, &made, made.row_count > 0);
    return CLI_DONE;
}

/* A paragraph per need. */
static int print_answer(const pe_compare *c)
{
    enum { INDENT = 4 };
    posenc_error err;
    pe_table     answer;
    if (pe_answer_table(c, &answer, &err))
        return cli_error(&err);
    puts("Which to choose, for");
    for (int row = 0; row < answer.row_count; row++) {
        char        text[1024];
        const char *because = pe_table_cell(&answer, row, 3);
        snprintf(text, sizeof text, "%s: %s (%s)", pe_table_cell(&answer, row, 0),
                 pe_table_cell(&answer, row, 1), pe_table_cell(&answer, row, 2));
        cli_wrap(text, strlen(text), 0, INDENT, cli_width());
        printf("%*s", INDENT, "");
        cli_wrap(because, strlen(because), INDENT, INDENT, cli_width());
    }
    pe_table_free(&answer);
    return CLI_DONE;
}

/* What of the order is settled, and what is doubtful about learning rates. */
static int print_orders(pe_compare_words says)
{
    if (says.orders)
        cli_wrap(says.orders, strlen(says.orders), 0, 0, cli_width());
    if (says.rates)
        cli_wrap(says.rates, strlen(says.rates), 0, 0, cli_width());
    return CLI_DONE;
}

static void print_interruption(pe_compare_words says)
{
    char text[160];
    snprintf(text, sizeof text,
             "Interrupted: %d of %d runs are missing, and this is what the others say. The same call with "
             "--resume "
             "goes on.",
             says.missing, says.runs);
    if (says.missing)
        cli_wrap(text, strlen(text), 0, 0, cli_width());
    if (says.missing)
        putchar('\n');
}

static int print_results(const pe_compare *c)
{
    posenc_error err;
    pe_table     results, checks, entries;
    int          is_plain;
    print_interruption(pe_compare_says(c));
    if (pe_summary_table(c, &results, &err))
        return cli_error(&err);
    print_part(c, &results, 1);
    /* how rows of input encodings enter, if some do otherwise than usual */
    if (pe_summary_entries(c, &entries, &is_plain, &err))
        return cli_error(&err);
    print_part(c, &entries, !is_plain);
    if (print_made(c, pe_report_tasks_table) || print_made(c, pe_report_extension_table) ||
        print_made(c, pe_answer_costs))
        return CLI_FAILED;
    if (pe_summary_checks(c, &checks, 0, &err))
        return cli_error(&err);
    print_part(c, &checks, 1);
    if (print_answer(c))
        return CLI_FAILED;
    return print_orders(pe_compare_says(c));
}

static int print_json(const pe_compare *c)
{
    posenc_error err;
    char        *json;
    if (pe_results_json(c, &json, &err))
        return cli_error(&err);
    puts(json);
    free(json);
    return CLI_DONE;
}

/* "4 minutes 10 seconds" */
static void write_words(char *to, size_t n, double seconds)
{
    const long s = lround(fmax(seconds, 1));
    if (s < 60)
        snprintf(to, n, "%ld second%s", s, s == 1 ? "" : "s");
    else if (s < 7200)
        snprintf(to, n, "%ld minute%s %ld second%s", s / 60, s / 60 == 1 ? "" : "s", s % 60,
                 s % 60 == 1 ? "" : "s");
    else
        snprintf(to, n, "%ld hours %ld minutes", s / 3600, s / 60 % 60);
}

static int print_plan_json(const pe_compare *c, const pe_compare_cost *cost)
{
    posenc_error err;
    char        *json;
    if (pe_results_plan_json(c, cost, &json, &err))
        return cli_error(&err);
    puts(json);
    free(json);
    return CLI_DONE;
}

static int print_plan(const cli_args *args, pe_compare *c)
{
    posenc_error    err;
    pe_table        plan;
    pe_compare_cost cost;
    char            wall[64], processor[64];
    if (pe_compare_estimate(c, &cost, &err))
        return cli_error(&err);
    if (cli_value(args, "json"))
        return print_plan_json(c, &cost);
    if (pe_summary_plan(c, &plan, &err))
        return cli_error(&err);
    print_part(c, &plan, 1);
    if (print_made(c, pe_report_tasks_plan))
        return CLI_FAILED;
    write_words(wall, sizeof wall, cost.seconds);
    write_words(processor, sizeof processor, cost.processor_seconds);
    printf("Estimated time if nothing else runs: %s\n"
           "Estimated processor time: %s, %" PRId64 " at a time\n",
           wall, processor, cost.workers);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- all ----------------------- */

static int train(const cli_args *args, pe_compare *c, pe_compare_config *config)
{
    posenc_error           err;
    int                    was_interrupted;
    const int              on_terminal = cli_is_terminal(STDERR_FILENO);
    const pe_compare_watch watch       = {.self        = config,
                                          .interrupted = interrupted,
                                          .progress    = on_terminal ? show_progress : NULL,
                                          .finished    = show_finished};
    const char *line = pe_ranks_here() ? NULL : on_terminal ? "\r\033[K" INTERRUPTION : INTERRUPTION;
    cli_catch(SIGINT, line);
    cli_catch(SIGTERM, line);
    cli_catch(SIGUSR1, line);
    const posenc_status status = pe_compare_train(c, &watch, &was_interrupted, &err);
    if (on_terminal)
        fputs("\r\033[K", stderr);
    if (status)
        return cli_error(&err);
    if (pe_ranks_here())
        return CLI_DONE;
    if (was_interrupted && pe_compare_says(c).finished == 0) {
        cli_warn("interrupted before an encoding was finished, so there is no result; --resume continues "
                 "from here");
        return CLI_INTERRUPTED;
    }
    if (was_interrupted)
        cli_warn("interrupted: %d of %d runs are missing; --resume continues from here",
                 pe_compare_says(c).missing, pe_compare_says(c).runs);
    const int printed = cli_value(args, "json") ? print_json(c) : print_results(c);
    if (printed)
        return printed;
    cli_flush();
    if (pe_results_write(c, &err))
        return cli_error(&err);
    fputs("compare: wrote ", stderr);
    pe_text_put(stderr, config->directory, strlen(config->directory));
    fputs("/report.html\n", stderr);
    return was_interrupted ? CLI_INTERRUPTED : CLI_DONE;
}

static int compare(const cli_args *args, pe_compare_config *config)
{
    posenc_error err;
    pe_compare  *c;
    int          status;
    if (pe_compare_create(&c, config, &err))
        return cli_error(&err);
    if (pe_compare_says(c).warning)
        cli_warn("%s", pe_compare_says(c).warning);
    if (pe_compare_says(c).advice)
        cli_warn("%s", pe_compare_says(c).advice);
    /* what was found of an earlier start, a line each */
    for (const char *line = pe_compare_says(c).notes; line && *line;) {
        const int n = (int)strcspn(line, "\n");
        fputs("compare: ", stderr);
        pe_text_put(stderr, line, (size_t)n);
        fputc('\n', stderr);
        line += n + (line[n] == '\n');
    }
    if (cli_value(args, "dry-run"))
        status = pe_ranks_here() ? CLI_DONE : print_plan(args, c);
    else
        status = train(args, c, config);
    pe_compare_free(c);
    return status;
}

static int run(const cli_args *args)
{
    corpus            texts  = {0};
    pe_compare_config config = {0};
    void             *preset = NULL;
    if (pe_ranks_begin() > 0 && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        return CLI_FAILED;
    int status = read_config(args, &config, &preset);
    if (!status)
        status = corpus_read(&texts, args);
    if (!status) {
        corpus_put(&config, &texts);
        status = compare(args, &config);
    }
    corpus_free(&texts);
    pe_preset_forget(preset);
    pe_ranks_end();
    return status;
}

/* A line per preset, below the details. */
static void print_presets(void (*line)(const char *text))
{
    for (int i = 0; i < PE_PRESETS; i++) {
        char what[128], text[160];
        pe_preset_describe(what, sizeof what, &pe_presets[i]);
        snprintf(text, sizeof text, "  %-9s%s", pe_presets[i].name, what);
        line(text);
    }
}

static void call_out(const char *option, void (*word)(const char *word))
{
    const int presets = option && !strcmp(option, "preset");
    for (int i = 0; presets && i < PE_PRESETS; i++)
        word(pe_presets[i].name);
    for (int i = 0; option && !presets && i < PE_TASKS; i++)
        word(pe_tasks[i].name);
}

const cli_command cli_compare = {
    .name     = "compare",
    .summary  = "train a small model per encoding on your text and report which to choose",
    .synopsis = "TEXT... | --tokens F.npy [-e SPEC,...] [--tasks NAME,...|none] [--combine WAYS] "
                "[--extension HOW] [-o DIR] [--preset NAME|F.json] [--length L] [--reach R] [--width N] "
                "[--seeds N] [--steps N] [--bidirectional] [--resume]",
    .details =
        "Trains the same small Transformer once per encoding on the first nine tenths of the text (-: "
        "standard input) and measures the loss per byte on the rest, up to eight times the trained length "
        "(--reach). Prints a table and what to choose for which need, and writes a directory with "
        "report.html, results.json, CSV files and pictures. An older result in DIR is replaced.\n\n"
        "Besides the text it uses synthetic tasks, whose right answers are known: posid (where am I?), "
        "order (which is first?), shift (an exact distance back), needle (one thing far away), copy, "
        "reverse, sort, count, parity, grid (rows and columns), addition, summation, lego, fflm (the bit "
        "written last; fflm_sparse, fflm_dense: more or less between), indirect (so far from a given "
        "symbol), mqrar_1 to mqrar_4 (a key's value so many times back). A model of two layers is trained "
        "on short sequences and asked about longer ones; the table gives the share of right answers, and "
        "ranks the encodings beyond the trained length.\n\n"
        "With --extension a model with rope and one with learned rows are trained as well and read at two "
        "to sixteen times their length in every way that needs no new model: other frequencies (linear, "
        "ntk, dynamic, yarn, another base), other distances (rerope, leaky_rerope, self_extend, dca; "
        "untuned), no rotation any more (drope, tuned at the trained length, beside the same tuning with "
        "the rotation kept), more rows (random, interpolated, hierarchical). brief tunes each for a hundred "
        "steps at twice the length, full at all four. default does brief, full and huge full; with -e none "
        "is done unless asked for.\n\n"
        "With several --rates every encoding is trained at each of them first, on a quarter of the steps, "
        "and then compared at its best. --stability trains each for fewer steps too, and in full also at "
        "half of the width: the line \"Order at L\" separates by < only encodings whose order was the same "
        "each time.\n\n"
        "With --bidirectional the models see both sides; 15 % of the bytes are hidden, and predicted. The "
        "windows are then read in pieces of several lengths. An encoding that has no meaning in a model or "
        "a task is listed with the reason.\n\n"
        "Each finished run is saved at once in DIR.partial; each run in progress writes a checkpoint every "
        "S seconds. Ctrl-C prints and writes what is finished. However the call ends, the same call with "
        "--resume continues and ends with the same numbers, to the bit; without it DIR.partial must be "
        "empty. With --resume, a call for more seeds or encodings reuses what an older result in DIR has in "
        "common with it. A build with MPI (docs/slurm.md) shares the runs among the processes of mpirun or "
        "srun.\n\n"
        "A SPEC is NAME, NAME[setting=value,...] or several joined by +. Settings that are not given suit a "
        "model of this size. Threads do not change the results.\n\n"
        "A SPEC per layer has entries in the order of the layers: rope[window=32]:3/nope is three layers "
        "with rope, whose queries see the 32 nearest keys, then one without positions, and so on to the "
        "last layer. What an encoding wants of each token besides q, k and v (fox's gates, inkling's r, a "
        "sink) is projected from the hidden states, by a trained matrix that counts as the "
        "encoding's.\n\n"
        "Rows of an encoding at the input are added to the token's vector before the first block. Its SPEC "
        "may say otherwise: combine=concat for [token; row] times a learned matrix, which is initialised to "
        "give the sum (sinusoidal[combine=concat]), and inject=blocks for rows that are added before every "
        "block. --combine applies to the SPECs that do not say; "
        "--combine add,concat trains each of them both ways.\n\n"
        "With --tokens the text is what your tokenizer made of it: ids from 0 to 65535, as NumPy saves "
        "them. Losses are per token, and with --token-bytes per byte too.\n\n"
        "A preset of your own is a JSON object whose members are named as these options, as in {\"length\": "
        "128, \"steps\": 1000}; what it leaves out is as in the preset default.\n\n"
        "default has fox, full also inkling; huge has what full has no time for: pope, fox+rope, RoPE++, "
        "ssmax, sinks, windows with nope, and the tasks from addition on. The presets, and how long each "
        "takes on two cores:",
    .lines   = print_presets,
    .options = options,
    .run     = run,
    .takes   = "F...",
    .words   = call_out,
};
