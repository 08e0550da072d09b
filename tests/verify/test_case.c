/* SPDX-License-Identifier: MIT */
/*
 * The harness itself: it must fail where something is wrong
 *
 * Every reference case of the tree is taken, one number of one array changed by a millionth, and
 * must fail; then cases that lack something, claim something or are for something unknown. The
 * command is called as the tool calls it.
 */
#include "cli/frame/cli.h"
#include "verify/trial.h"

#include <math.h>

#include "files/scratch.h"

#define GOLDEN POSENC_SOURCE_DIR "/tests/golden"

extern const cli_command cli_verify;

static const pe_case_options reference_alone = {.executors = 1}, both = {.executors = 3};

/* ---------------------------------------------------------------- a case and its copy ------- */

static posenc_cases cases_of(const char *folder)
{
    posenc_cases cases = {0};
    posenc_error err;
    if (posenc_cases_read(&cases, folder, &err))
        fail_msg("%s", err.message);
    return cases;
}

static posenc_arrays arrays_of(const char *folder, const posenc_case *c)
{
    posenc_arrays set = {0};
    posenc_error  err;
    char          path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, c->file);
    if (posenc_arrays_read(&set, path, &err))
        fail_msg("%s", err.message);
    return set;
}

static const posenc_case *find_case(const posenc_cases *cases, const char *file)
{
    for (int i = 0; i < cases->count; i++)
        if (!strcmp(cases->items[i].file, file))
            return &cases->items[i];
    fail_msg("there is no case %s", file);
    return NULL;
}

/* Moves the number in the middle of an array by a millionth of it, at least by 1e-6; a whole number
   by 1. */
static void change(posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    if (t->dtype == POSENC_DTYPE_I64)
        ((int64_t *)t->data)[n / 2]++;
    else
        ((double *)t->data)[n / 2] += 1e-6 * fmax(1, fabs(((double *)t->data)[n / 2]));
}

static int is_compared(const char *name)
{
    return !strncmp(name, "out_", 4) || !strncmp(name, "g_", 2);
}

/* Each compared array of a case in turn. */
static void every_change_fails(const char *folder, const posenc_case *c)
{
    posenc_arrays set = arrays_of(folder, c);
    for (int i = 0; i < set.count; i++) {
        if (!is_compared(set.items[i].name))
            continue;
        posenc_arrays changed = arrays_of(folder, c);
        change(&changed.items[i].tensor);
        pe_case_result r;
        pe_case_run(&r, NULL, &changed, c, &reference_alone);
        const int is_named = r.passed && strstr(r.unused, set.items[i].name); /* the command's line says so */
        if (!is_named && (r.passed || strcmp(r.array, set.items[i].name)))
            fail_msg("%s: a change of %s is %s: %s", c->file, set.items[i].name,
                     r.passed ? "not seen" : "seen elsewhere", r.problem);
        posenc_arrays_free(&changed);
    }
    posenc_arrays_free(&set);
}

static void a_case_changed_by_a_millionth_in_one_number_fails(void **state)
{
    static const char *const folders[] = {GOLDEN, GOLDEN "/rope"};
    (void)state;
    for (int f = 0; f < 2; f++) {
        posenc_cases cases = cases_of(folders[f]);
        for (int i = 0; i < cases.count; i++)
            every_change_fails(folders[f], &cases.items[i]);
        posenc_cases_free(&cases);
    }
}

/* ---------------------------------------------------------------- cases that are not whole -- */

typedef void spoil(posenc_case *c, posenc_arrays *set);

static void remove_array(posenc_arrays *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->items[i].name, name))
            snprintf(set->items[i].name, strlen(name) + 1, "%.*s", (int)strlen(name),
                     "x_______________________");
}

static void lose_an_output(posenc_case *c, posenc_arrays *set)
{
    (void)c;
    remove_array(set, "out_lse");
}

/* The manifest lists nothing: the harness itself must miss what is gone. */
static void list_nothing(posenc_case *c)
{
    for (char **name = c->arrays; *name; name++) {
        free(*name);
        *name = NULL;
    }
}

static void lose_an_input(posenc_case *c, posenc_arrays *set)
{
    list_nothing(c);
    remove_array(set, "in_k");
}

static void lose_all_that_is_compared(posenc_case *c, posenc_arrays *set)
{
    list_nothing(c);
    for (int i = 0; i < set->count; i++)
        if (is_compared(set->items[i].name))
            set->items[i].name[0] = 'x';
}

static void add_a_gradient(posenc_case *c, posenc_arrays *set)
{
    const int64_t one = 1;
    (void)c;
    assert_non_null(posenc_arrays_add(set, "g_nothing", POSENC_DTYPE_F64, 1, &one));
}

static void add_a_parameter(posenc_case *c, posenc_arrays *set)
{
    const int64_t one = 1;
    (void)c;
    assert_non_null(posenc_arrays_add(set, "par_nothing", POSENC_DTYPE_F64, 1, &one));
}

static void turn_an_output(posenc_case *c, posenc_arrays *set)
{
    posenc_tensor *t = posenc_arrays_find(set, "out_score");
    (void)c;
    *t = posenc_tensor_contiguous(t->data, t->dtype, 4, (const int64_t[4]){1, 3, 14, 7});
}

static void shorten_a_parameter(posenc_case *c, posenc_arrays *set)
{
    posenc_tensor *t = posenc_arrays_find(set, "par_table");
    (void)c;
    t->shape[0]--;
}

static void flatten_an_input(posenc_case *c, posenc_arrays *set)
{
    posenc_tensor *t = posenc_arrays_find(set, "in_v");
    (void)c;
    *t = posenc_tensor_contiguous(t->data, t->dtype, 3, t->shape + 1);
}

static void replace(char **text, const char *by)
{
    free(*text);
    *text = strdup(by);
}

static void set_something_unknown(posenc_case *c, posenc_arrays *set)
{
    (void)set;
    replace(&c->settings, "num_buckets=8 no_such_setting=1");
}

static void name_something_unknown(posenc_case *c, posenc_arrays *set)
{
    (void)set;
    replace(&c->encoding, "t55");
}

/* Of parameters whose numbers the file does not have. */
static void ask_for_much(posenc_case *c, posenc_arrays *set)
{
    (void)set;
    replace(&c->encoding, "cope");
    replace(&c->settings, "npos=16777216");
}

static void leave_the_folder(posenc_case *c, posenc_arrays *set)
{
    (void)set;
    replace(&c->file, "../t5__bidir.npz");
}

static void forget_the_file(posenc_case *c, posenc_arrays *set)
{
    (void)set;
    replace(&c->file, "nowhere.npz");
}

static void a_case_that_is_not_whole_fails_with_its_reason(void **state)
{
    static const struct {
        spoil      *spoil;
        const char *part;
    } rows[] = {
        {lose_an_output, "lacks the array out_lse"},
        {lose_an_input, "no array in_k"},
        {lose_all_that_is_compared, "none of its arrays"},
        {add_a_gradient, "no gradient for the array g_nothing"},
        {add_a_parameter, "no parameter for the array par_nothing"},
        {turn_an_output, "out_score has the shape [1,3,14,7] but the encoding gives [2,3,7,7]"},
        {shorten_a_parameter, "par_table has the shape [7,3]; the settings ask for [8,3]"},
        {flatten_an_input, "in_q, in_k, in_v have 4, 4, 3 axes"},
        {set_something_unknown, "no_such_setting"},
        {name_something_unknown, "the encoding t55 is unknown; the nearest is t5"},
        {ask_for_much, "its settings ask for more than"},
        {leave_the_folder, "leaves the folder"},
        {forget_the_file, "nowhere.npz: it cannot be opened"},
    };
    static const char file[] = "t5__bidir.npz";
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_cases  cases = cases_of(GOLDEN);
        posenc_case  *c     = (posenc_case *)(uintptr_t)find_case(&cases, file);
        posenc_arrays set   = arrays_of(GOLDEN, c);
        rows[i].spoil(c, &set);
        pe_case_result r;
        posenc_error   err;
        if (posenc_arrays_write(&set, scratch(file), &err))
            fail_msg("%s", err.message);
        pe_case_run(&r, scratch_folder, NULL, c, &both);
        if (r.passed)
            fail_msg("it passed though \"%s\"", rows[i].part);
        if (!strstr(r.problem, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", r.problem, rows[i].part);
        posenc_arrays_free(&set);
        posenc_cases_free(&cases);
    }
}

static void an_array_that_nothing_looked_at_is_named(void **state)
{
    const int64_t      one   = 1;
    posenc_cases       cases = cases_of(GOLDEN);
    const posenc_case *c     = find_case(&cases, "nope__causal.npz");
    posenc_arrays      set   = arrays_of(GOLDEN, c);
    (void)state;
    assert_non_null(posenc_arrays_add(&set, "out_extra", POSENC_DTYPE_F64, 1, &one));
    pe_case_result r;
    pe_case_run(&r, NULL, &set, c, &both);
    assert_true(r.passed);
    assert_string_equal(r.unused, "out_extra");
    posenc_arrays_free(&set);
    posenc_cases_free(&cases);
}

/* ---------------------------------------------------------------- cases that the set lacks -- */

static void passes(const posenc_case *c, const posenc_arrays *set)
{
    pe_case_result r;
    pe_case_run(&r, NULL, set, c, &both);
    if (!r.passed)
        fail_msg("%s: %s", c->file, r.problem);
}

/* The array gets `more` rows of zeros behind its own. */
static void lengthen(posenc_arrays *set, const char *name, int64_t more)
{
    const posenc_tensor  old   = *posenc_arrays_find(set, name);
    const int64_t        n     = old.shape[0] * old.shape[1];
    const posenc_tensor *added = NULL;
    remove_array(set, name);
    added = posenc_arrays_add(set, name, POSENC_DTYPE_F64, 2,
                              (const int64_t[]){old.shape[0] + more, old.shape[1]});
    assert_non_null(added);
    memcpy(added->data, old.data, (size_t)n * sizeof(double));
}

/* A line of 7 keys with a table of 10 rows: nothing but the array says how many. */
static void the_rows_of_a_grid_that_nobody_gave_are_those_of_its_table(void **state)
{
    posenc_cases       cases = cases_of(GOLDEN);
    const posenc_case *c     = find_case(&cases, "tutorial003_absdist__1d.npz");
    posenc_arrays      set   = arrays_of(GOLDEN, c);
    (void)state;
    assert_null(strstr(c->settings, "grid"));
    lengthen(&set, "par_table", 3);
    lengthen(&set, "g_table", 3);
    passes(c, &set);
    posenc_arrays_free(&set);
    posenc_cases_free(&cases);
}

/* The same keys allowed one by one as the causal mask allows them, in one matrix or one for each head of each
   item: counted positions must be the same. */
static void positions_are_counted_among_the_keys_of_an_explicit_mask(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        posenc_cases         cases    = cases_of(GOLDEN);
        posenc_case         *c        = (posenc_case *)(uintptr_t)find_case(&cases, "cope__paper_causal.npz");
        posenc_arrays        set      = arrays_of(GOLDEN, c);
        const int64_t       *all      = posenc_arrays_find(&set, "out_positions")->shape;
        const int64_t        shape[4] = {own ? all[0] : 1, own ? all[1] : 1, all[2], all[3]};
        const posenc_tensor *allow    = posenc_arrays_add(&set, "in_allow", POSENC_DTYPE_U8, 4, shape);
        for (int64_t x = 0; x < shape[0] * shape[1] * shape[2] * shape[3]; x++)
            ((unsigned char *)allow->data)[x] = x % shape[3] <= x / shape[3] % shape[2];
        c->causal = 0;
        passes(c, &set);
        posenc_arrays_free(&set);
        posenc_cases_free(&cases);
    }
}

/* ---------------------------------------------------------------- the command --------------- */

/* Exit status of `posenc verify WORDS...`; what it prints goes to the file `printed` of the scratch
   folder. */
static int verify(const char *const *words)
{
    cli_args args;
    char    *argv[16] = {(char *)(uintptr_t) "verify"};
    int      argc     = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    assert_non_null(freopen(scratch("printed"), "w", stdout));
    optind     = 0; /* getopt begins anew */
    int status = cli_options_parse(&args, &cli_verify, argc, argv);
    if (status == CLI_DONE)
        status = cli_verify.run(&args);
    free(args.given);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    clearerr(stdout);
    return status;
}

static void printed(const char *part)
{
    size_t n;
    char  *text = scratch_read(scratch("printed"), &n);
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
    free(text);
}

static void the_last_line_counts_the_cases(void **state)
{
    (void)state;
    assert_int_equal(verify((const char *const[]){GOLDEN, "-e", "nope,index_map", NULL}), CLI_DONE);
    printed("\n9 of 9 cases pass\n");
    assert_int_equal(verify((const char *const[]){"-e", "nope", GOLDEN, "-e", "t5", "--tile=1x1", NULL}),
                     CLI_DONE);
    printed("\n11 of 11 cases pass\n");
    assert_int_equal(verify((const char *const[]){GOLDEN, "--case", "t5__bidir.npz", "--executor",
                                                  "reference", NULL}),
                     CLI_DONE);
    printed("\n1 of 1 cases pass\n");
}

static void a_failing_case_is_said_with_the_command_that_repeats_it(void **state)
{
    static const char manifest[] =
        "{\"entries\": [{\"file\": \"it's.npz\", \"encoding\": \"nope\", \"settings\": {}}]}";
    (void)state;
    scratch_write("manifest.json", manifest, sizeof manifest - 1);
    assert_int_equal(verify((const char *const[]){scratch_folder, "--executor", "tiled", NULL}), CLI_FAILED);
    printed("FAIL  nope");
    printed("again: posenc verify ");
    printed(" -e nope --case 'it'\\''s.npz' --executor tiled\n");
    printed("\n0 of 1 cases pass\n");
    assert_int_equal(verify((const char *const[]){scratch_folder, "--json", NULL}), CLI_FAILED);
    printed("\"pass\": false");
    printed("\"passed\": 0,\n  \"total\": 1");
}

static void what_cannot_be_run_is_refused(void **state)
{
    static const char *const rows[][6] = {
        {NULL},
        {GOLDEN, GOLDEN, NULL},
        {GOLDEN "/none", NULL},
        {GOLDEN, "-e", "rpoe", NULL},
        {GOLDEN, "-e", "nope,,t5", NULL},
        {GOLDEN, "-e", "rope", NULL}, /* known, but not in this folder: no case is no proof */
        {GOLDEN, "--case", "none.npz", NULL},
        {GOLDEN, "--executor", "tile", NULL},
        {GOLDEN, "--tile", "64", NULL},
        {GOLDEN, "--tile", "64x-1", NULL},
        {GOLDEN, "--tile", "64x64x", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (verify(rows[i]) != CLI_USAGE)
            fail_msg("row %zu was not refused", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_case_changed_by_a_millionth_in_one_number_fails, scratch_clear),
        cmocka_unit_test_teardown(a_case_that_is_not_whole_fails_with_its_reason, scratch_clear),
        cmocka_unit_test_teardown(an_array_that_nothing_looked_at_is_named, scratch_clear),
        cmocka_unit_test_teardown(the_rows_of_a_grid_that_nobody_gave_are_those_of_its_table, scratch_clear),
        cmocka_unit_test_teardown(positions_are_counted_among_the_keys_of_an_explicit_mask, scratch_clear),
        cmocka_unit_test_teardown(the_last_line_counts_the_cases, scratch_clear),
        cmocka_unit_test_teardown(a_failing_case_is_said_with_the_command_that_repeats_it, scratch_clear),
        cmocka_unit_test_teardown(what_cannot_be_run_is_refused, scratch_clear),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
