/* SPDX-License-Identifier: MIT */
/*
 * cmd_explain.c: posenc explain SPEC: the formula of an encoding, its letters, and both with numbers in place
 *
 * For whoever works an example by hand: a vector goes in on the command line, and every step to the result
 * comes out. The numbers are the library's own (posenc_rows, posenc_rotate, posenc_bias, ...); where
 * a formula can be evaluated in a second way, that stands beside them with the difference. Here the options
 * are read and the encoding is made; explain.h says who answers.
 */
#include "base/shared/pi.h"
#include "cli/commands/explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 1000000000000      /* of a number in a vector */
#define MOST    (INT64_C(1) << 40) /* of a position */

/* What their options must be. */
#define NUMBERS "up to 32 numbers such as 1,2,3,4, none above 1e12"
#define PLACE   "a position such as 2 (two coordinates: 3,5), below 2^40"

enum { MOST_HEADS = 32, LONGEST = 256, MOST_DIGITS = 15 };

static const cli_option options[] = {
    CLI_CONFIG_OPTIONS,
    {0, "set", "K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "vector", "LIST",
     "what is encoded: a query, or the vector of a word: 1,2,3,4 (default: 1, 2, 3, ...)", CLI_REALS,
     offsetof(cli_explanation, vector), -LARGEST, LARGEST, .must = NUMBERS},
    {0, "position", "P", "where the vector stands (default: 2), or the first of --words (default: 0)",
     CLI_REALS, offsetof(cli_explanation, position), -MOST, MOST, .must = PLACE},
    {0, "key", "LIST", "a key, for its score with the vector as the query", CLI_REALS,
     offsetof(cli_explanation, key), -LARGEST, LARGEST, .must = NUMBERS},
    {0, "key-position", "P", "where the key stands (default: 0)", CLI_REALS,
     offsetof(cli_explanation, key_position), -MOST, MOST, .must = PLACE},
    {0, "step", "S", "how far the matrix of a step goes (default: 1)", CLI_WHOLE,
     offsetof(cli_explanation, step), 1, 1 << 20},
    {0, "dim", "D", "width of the vector (default: as long as --vector, else that of the model, else 4)",
     CLI_WHOLE, offsetof(cli_explanation, dim), 1, CLI_EXPLAIN_WIDEST},
    {0, "heads", "H", "heads of scores (default: 4, of --words 1)", CLI_WHOLE,
     offsetof(cli_explanation, heads), 1, MOST_HEADS},
    {0, "length", "L", "positions 0 .. L-1: of tables of rows, and of keys (default: 8 keys)", CLI_WHOLE,
     offsetof(cli_explanation, length), 1, LONGEST},
    {0, "theta", "LIST",
     "frequencies of a rotation in radians per position, one for all pairs or one each: pi/4, or 1,0.01"},
    {0, "words", "TEXT",
     "a sentence, words separated by spaces (Chinese: characters): its words in two orders through "
     "attention, "
     "with "
     "the encoding and without; the other order follows after /",
     CLI_TEXT, offsetof(cli_explanation, words)},
    {0, "permute", "LIST",
     "the other order of --words, by the numbers of its words from 1 on: 3,2,1 (default: reversed)",
     CLI_WHOLES, offsetof(cli_explanation, permute), 1, 1 << 20},
    {0, "identity", "NAME",
     "a statement of the introductions as two sides and a residual: taylor (attention expanded in its "
     "positions), "
     "one-hot (adding a row is embedding a one-hot), row-sums (of the weights), orthogonality (of random "
     "vectors)",
     CLI_WORD, offsetof(cli_explanation, identity), .words = CLI_EXPLAIN_IDENTITIES},
    {0, "seed", "N", "seed of parameters that are drawn (default: 0)", CLI_WHOLE,
     offsetof(cli_explanation, seed), 0, INT64_MAX},
    {0, "digits", "N", "digits after the point (default: 5; --words 3, --identity 4)", CLI_WHOLE,
     offsetof(cli_explanation, digits), 1, MOST_DIGITS},
    {0, "json", NULL, "print the numbers as JSON, with all their digits"},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

/* "0.5", "pi/4", "2pi": a number, pi times it, and divided by another. 0: it is none. */
static int read_angle(const char **text, double *value)
{
    char *end;
    *value              = strtod(*text, &end);
    const int is_number = end != *text;
    const int is_pi     = !strncmp(end, "pi", 2);
    if (is_pi) {
        *value = (is_number ? *value : 1) * PE_PI;
        end += 2;
    }
    if (is_pi && *end == '/') {
        *text = end + 1;
        *value /= strtod(*text, &end);
    }
    const int is_read = end != *text && isfinite(*value) && fabs(*value) <= LARGEST;
    *text             = end;
    return is_read && (is_number || is_pi);
}

static int read_theta(cli_explanation *x)
{
    const char *given = cli_value(x->args, "theta"), *text = given;
    while (text && x->theta.count < CLI_LIST_MOST && read_angle(&text, &x->theta.real[x->theta.count])) {
        x->theta.count++;
        if (!*text)
            return CLI_DONE;
        text += *text == ',' || *text == ':';
    }
    return !given
               ? CLI_DONE
               : cli_usage("explain: --theta is \"%s\"; it must be up to %d numbers or multiples of pi, such "
                           "as pi/4 or 1,0.01",
                           given, CLI_LIST_MOST);
}

/* A sentence brings vectors and positions of its own. */
static int check_words(const cli_explanation *x)
{
    static const char *const others[] = {"config",       "layer", "vector", "key",
                                         "key-position", "step",  "length", "theta"};
    for (size_t i = 0; x->words && i < sizeof others / sizeof *others; i++)
        if (cli_value(x->args, others[i]))
            return cli_usage("explain: --words has vectors of its own; leave out --%s", others[i]);
    if (cli_value(x->args, "identity") && (x->words || cli_value(x->args, "config")))
        return cli_usage("explain: --identity stands alone; leave out --%s", x->words ? "words" : "config");
    if (x->words && x->position.count > 1)
        return cli_usage("explain: words stand in a line; --position must be one number, not %d",
                         x->position.count);
    if (x->permute.count && !x->words)
        return cli_usage(
            "explain: --permute is another order of the words of --words TEXT, which is missing");
    return CLI_DONE;
}

static int read_arguments(cli_explanation *x)
{
    const cli_args *args = x->args;
    if (args->count > 1)
        return cli_usage("explain: unexpected argument \"%s\"; give one encoding, parts joined by +",
                         cli_at(args, 1));
    if (args->count && cli_value(args, "config"))
        return cli_usage("explain: %s and --config both say what to explain; give only one", cli_at(args, 0));
    if (!args->count && !cli_value(args, "config") && !cli_value(args, "layer"))
        return cli_usage("explain: what should be explained? Name an encoding (posenc list shows them), or a "
                         "model's file with --config F");
    if (cli_read(args, x) || read_theta(x))
        return CLI_USAGE;
    if (check_words(x))
        return CLI_USAGE;
    if (cli_value(args, "key-position") && !x->key.count)
        return cli_usage(
            "explain: --key-position says where a key stands, which is missing; give it with --key");
    if (x->dim && x->vector.count && x->dim != x->vector.count)
        return cli_usage("explain: --vector has %d numbers and --dim is %lld; leave one of them out",
                         x->vector.count, (long long)x->dim);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the command --------------- */

/* --theta replaces the frequencies of the rotation, if the encoding is one that takes them. */
static int use_theta(cli_explanation *x)
{
    pe_calc                    *p    = &x->subject.p;
    const posenc_encoding_info *part = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY);
    if (x->theta.count && (!part || !pe_calc_setting(part, "schedule")))
        pe_calc_refuse(p, "--theta gives the frequencies of rope; %s takes none", posenc_encoding_spec(p->e));
    else if (x->theta.count)
        pe_calc_encoding(p, pe_calc_text(p, "%s", posenc_encoding_spec(p->e)),
                         pe_calc_text(p, "%s.schedule=explicit", part->name));
    return cli_calc_status(p);
}

static int make_encoding(cli_explanation *x)
{
    const int is_model = cli_value(x->args, "config") || cli_value(x->args, "layer");
    const int status   = is_model ? cli_subject_config(&x->subject, x->args)
                                  : cli_subject_encoding(&x->subject, x->args, cli_at(x->args, 0), "");
    return status ? status : use_theta(x);
}

static void explain_part(cli_explanation *x, posenc_place place, const posenc_encoding_info *part)
{
    static void (*const answers[POSENC_PLACE_COUNT])(cli_explanation *) = {
        [POSENC_PLACE_INPUT]  = cli_explain_rows,
        [POSENC_PLACE_ROTARY] = cli_explain_rotary,
        [POSENC_PLACE_SCORE]  = cli_explain_scores,
        [POSENC_PLACE_WEIGHT] = cli_explain_weights,
    };
    json_t *all = x->sheet.json, *own = all ? json_object() : NULL;
    if (all)
        cli_sheet_put(&x->sheet, posenc_place_name(place), own);
    x->sheet.json = own;
    cli_explain_formula(x, part);
    answers[place](x);
    if (*x->subject.origin)
        cli_sheet_text(&x->sheet, "(%s)", x->subject.origin);
    x->sheet.json = all;
}

/* A model's file says so much already that the numbers of a position follow only where one is asked for. */
static int is_asked_for_numbers(const cli_explanation *x)
{
    static const char *const asking[] = {"vector", "position", "dim", "theta", "json", "key"};
    int                      is_asked = !x->subject.config.group;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        is_asked |= cli_value(x->args, asking[i]) != NULL;
    return is_asked;
}

static int explain(cli_explanation *x)
{
    pe_calc *p = &x->subject.p;
    if (x->words || cli_value(x->args, "identity")) {
        (x->words ? cli_explain_words : cli_explain_identity)(x);
        return cli_calc_status(p);
    }
    if (x->subject.config.group && !x->sheet.json)
        cli_explain_model(x);
    if (x->sheet.json)
        cli_sheet_words(&x->sheet, "spec", "", posenc_encoding_spec(p->e));
    for (int place = 0; place < POSENC_PLACE_COUNT && is_asked_for_numbers(x); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part && !pe_calc_failed(p))
            explain_part(x, (posenc_place)place, part);
    }
    return cli_calc_status(p);
}

/* As JSON first, which prints nothing: what cannot be explained is refused before the first line. */
static int write(cli_explanation *x)
{
    x->sheet.json    = json_object();
    x->sheet.is_lost = !x->sheet.json;
    const int status = explain(x);
    if (!status && (x->sheet.is_lost || cli_value(x->args, "json")))
        return cli_sheet_end(&x->sheet);
    json_decref(x->sheet.json);
    x->sheet.json = NULL;
    return status ? status : explain(x);
}

static int run(const cli_args *args)
{
    cli_explanation x = {.args = args, .position = {1, {0}, {2}}, .key_position = {.count = 1}, .step = 1};
    x.digits          = cli_value(args, "words") ? 3 : cli_value(args, "identity") ? 4 : 5;
    x.subject.p       = pe_calc_new("explain");
    int status        = read_arguments(&x);
    x.sheet.digits    = (int)x.digits;
    status            = status ? status : make_encoding(&x);
    status            = status ? status : write(&x);
    if (!status)
        cli_config_warn(&x.subject.config);
    cli_subject_free(&x.subject);
    return status;
}

const cli_command cli_explain = {
    .name     = "explain",
    .summary  = "the formula of an encoding, step by step with numbers",
    .synopsis = "SPEC | --config F [--layer N] [--vector LIST] [--position P] [--set K=V]...",
    .details =
        "Prints the formula of an encoding, what each of its letters means, and its numbers at one "
        "position.\n\n"
        "Rotary: the pairs of channels with frequencies, periods, angles, cosines and sines, the matrix, "
        "and the vector rotated in four ways: by the library, by the matrix, element by element, as "
        "complex numbers. With --key also the score, which stays the same where both tokens move by the same "
        "distance: "
        "explain rope --vector 1,2,3,4 --position 2, explain rope --theta pi/4 --vector 1,0 --position "
        "1.\n\n"
        "Input: the row; of one made of waves their frequencies, with --length the tables of sines, "
        "cosines and rows, and the matrix of a step of --step positions, with what it depends on: "
        "explain sinusoidal --dim 8 --length 11.\n\n"
        "Score and weight: what is added for each key and head, or the factor on its weight: explain "
        "alibi --position 5 --heads 8. Parameters that all start as one number get N(0,1) added.\n\n"
        "With --config, prints every formula of a model's rotation, as papers write it and with the "
        "numbers of the model's own file: channels, coordinates, frequencies, magnitude, scores, and "
        "what follows from them within its context.\n\n"
        "With --words, each word gets a vector that is drawn from its letters and --seed, and one "
        "layer of attention is worked out for both orders of the words: queries, scores, weights and "
        "outputs, and what of them changes with the order.\n\n"
        "With --identity, prints both sides of a statement and their difference: "
        "explain sinusoidal --identity taylor, explain learned --identity one-hot, explain urpe "
        "--identity row-sums, explain sinusoidal --identity orthogonality --dim 512.",
    .options = options,
    .run     = run,
    .takes   = "SPEC",
};
