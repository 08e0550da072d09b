/* SPDX-License-Identifier: MIT */
/*
 * compare.c: from a configuration to outcomes: check, train on workers, measure
 *
 * A job is one encoding with one seed; workers take whole jobs, each single-threaded, so the results do not depend
 * on how many there are. Whatever can be wrong is found before the work begins: each encoding is tried out on one
 * window of the length that evaluation needs, the directory is tried, gnuplot is asked.
 *
 * A finished run is kept at once, and one under way now and then (resume.c). Several processes share the runs by messages
 * (crew.c): each trains with its own workers, number 0 keeps and measures.
 *
 * An interruption cancels the runs that are under way and keeps what is finished; an encoding counts when all its
 * seeds are. A run that fails (no memory) stops all the others: a table with a hole that nobody asked for would be
 * read as a finding.
 */
#include "train/outcome.h"

#include "plot/plot.h"
#include "train/claims.h"
#include "train/crew.h"
#include "train/directory.h"
#include "train/extension.h"
#include "train/fail.h"
#include "train/model.h"
#include "train/pool.h"
#include "train/record.h"
#include "train/resume.h"
#include "train/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RESAMPLES = 2000, HELD_OUT_PART = 10, PROBE_STEPS = 4, MOST_WORKERS = 1024 };
#define BOOTSTRAP_SEED 1

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_numbers(const pe_compare_config *config, posenc_error *err)
{
    const pe_preset *p = &config->preset;
    const struct {
        const char *name;
        int64_t     value, low, high;
    } rows[] = {{"the number of steps", p->steps, 1, 100000000},
                {"the number of seeds", p->seeds, 1, 1000},
                {"the number of threads", config->workers, 0, MOST_WORKERS},
                {"L", p->L, PE_SHORTEST_L, 65536},
                {"the width", p->d_model, 1, 65536},
                {"the number of heads", p->heads, 1, p->d_model},
                {"the number of windows", p->windows, 1, 1000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].low || rows[i].value > rows[i].high)
            return pe_train_fail(err, POSENC_ARGUMENT, "compare: %s is %lld; it must be %lld to %lld",
                                 rows[i].name, (long long)rows[i].value, (long long)rows[i].low,
                                 (long long)rows[i].high);
    if (p->L % 2 || p->d_model % p->heads)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "compare: L must be even and the heads must divide the width");
    return POSENC_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static posenc_status set_text(pe_compare *c, posenc_error *err)
{
    const pe_compare_config *config = &c->config;
    const int64_t            window = PE_REACH * config->preset.L;
    c->text =
        (pe_text){config->text, config->text_size, config->text_size - config->text_size / HELD_OUT_PART};
    c->fingerprint       = pe_fingerprint(config->text, (size_t)config->text_size);
    c->windows           = smaller(pe_text_windows(&c->text, config->preset.L), config->preset.windows);
    const int64_t enough = HELD_OUT_PART * (PE_FEWEST_WINDOWS * window + 1);
    if (c->windows < 1)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "the text has %lld bytes; its last tenth must hold one window of %lld bytes, so at least "
            "%lld bytes are needed (%lld for all checks): give a longer text, or several",
            (long long)config->text_size, (long long)window + 1, (long long)(HELD_OUT_PART * (window + 1)),
            (long long)enough);
    if (c->windows < PE_FEWEST_WINDOWS)
        snprintf(c->warning, sizeof c->warning,
                 "the last tenth of the text holds %lld windows of %lld bytes and %d are needed for reliable "
                 "numbers (a "
                 "text of %lld bytes); checks 10-13 do not apply",
                 (long long)c->windows, (long long)window, PE_FEWEST_WINDOWS, (long long)enough);
    return POSENC_OK;
}

posenc_dims pe_compare_dims(const pe_preset *p)
{
    return (posenc_dims){.B       = 1,
                         .H       = p->heads,
                         .G       = p->heads,
                         .Lq      = PE_REACH * p->L,
                         .Lk      = PE_REACH * p->L,
                         .D       = p->d_model / p->heads,
                         .Dv      = p->d_model / p->heads,
                         .d_model = p->d_model,
                         .L       = p->L};
}

/* ---------------------------------------------------------------- outcomes ------------------ */

/* Does training change a parameter of this part? */
static int learns(const posenc_encoding *e, const posenc_encoding_info *part)
{
    for (int i = 0; i < posenc_param_count(e); i++)
        for (int k = 0; k < part->param_count; k++)
            if (posenc_param_describe(e, i) == &part->params[k] && posenc_param_trainable(e, i))
                return 1;
    return 0;
}

/* A learned row per position: those beyond L are read in evaluation though no training step ever reached them. */
static int has_untrained_rows(const posenc_encoding *e)
{
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && part->row_limit && learns(e, part))
            return 1;
    }
    return 0;
}

pe_run_config pe_compare_run_config(const pe_compare *c, const posenc_encoding *e, const pe_entry *entry)
{
    const pe_preset *p = &c->config.preset;
    return (pe_run_config){.spec          = posenc_encoding_spec(e),
                           .L             = p->L,
                           .d_model       = p->d_model,
                           .layers        = p->layers,
                           .heads         = p->heads,
                           .batch         = p->batch,
                           .steps         = p->steps,
                           .warmup        = p->warmup,
                           .learning_rate = p->learning_rate,
                           .weight_decay  = p->weight_decay,
                           .clip          = p->clip,
                           .windows       = c->windows,
                           .bidirectional = c->config.bidirectional,
                           .entry         = *entry,
                           .text          = &c->text,
                           .fingerprint   = c->fingerprint,
                           .measures      = 1};
}

static posenc_status check_new(const pe_compare *c, const pe_outcome *o, posenc_error *err)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(posenc_encoding_spec(c->outcomes[i].e), posenc_encoding_spec(o->e)) &&
            c->outcomes[i].config.entry.combine == o->config.entry.combine &&
            c->outcomes[i].config.entry.inject == o->config.entry.inject)
            return pe_train_fail(err, POSENC_ARGUMENT, "%.60s and %.60s are the same encoding; give it once",
                                 c->outcomes[i].label, o->label);
    return POSENC_OK;
}

/* One step of one window, and one window of evaluation: finds what a plan alone cannot, such as a table that ends
   before 8 L, in some hundredths of a second. */
static posenc_status try_out(const pe_outcome *o, posenc_error *err)
{
    pe_run_result result;
    pe_run_config config = o->config;
    config.steps = config.windows = config.batch = 1;
    config.seed                                  = 1;
    config.measures                              = 0;
    const posenc_status status                   = pe_run(&config, NULL, &result, err);
    pe_run_result_free(&result);
    return status;
}

/* pe_entry_give in place. */
static posenc_status give(char spec[PE_LONGEST_SPEC], const char *name, int64_t value, posenc_error *err)
{
    char                given[PE_LONGEST_SPEC];
    const posenc_status status = pe_entry_give(given, sizeof given, spec, name, value, err);
    if (!status)
        strcpy(spec, given);
    return status;
}

/* A SPEC as it was asked for, divided: for the library with the settings of its room, and how rows enter. */
static posenc_status read_spec(pe_outcome *o, char complete[PE_LONGEST_SPEC], pe_entry *entry,
                               const pe_compare *c, posenc_error *err)
{
    char              plain[PE_LONGEST_SPEC];
    const posenc_dims dims   = pe_compare_dims(&c->config.preset);
    const int         mask   = c->config.bidirectional ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL;
    posenc_status     status = pe_entry_take(plain, sizeof plain, entry, o->label, err);
    o->is_plain              = posenc_encoding_find(o->label) != NULL;
    o->is_bare               = !status && posenc_encoding_find(plain) != NULL;
    if (!status && entry->inject == PE_IN_BLOCKS)
        status = give(plain, "states", c->config.preset.layers, err);
    if (!status && c->config.bidirectional)
        status = give(plain, "vocab", PE_BYTES + 1, err);
    return status ? status : pe_spec_complete(complete, PE_LONGEST_SPEC, plain, &dims, mask, err);
}

static posenc_status outcome_create(pe_compare *c, pe_outcome *o, posenc_error *err)
{
    char          complete[PE_LONGEST_SPEC];
    pe_entry      entry;
    const size_t  seeds  = (size_t)c->config.preset.seeds;
    posenc_status status = read_spec(o, complete, &entry, c, err);
    if (!status)
        status = posenc_encoding_create(&o->e, complete, NULL, err);
    if (status)
        return status;
    o->config = pe_compare_run_config(c, o->e, &entry);
    status    = check_new(c, o, err);
    if (status)
        return status;
    o->untrained_beyond = has_untrained_rows(o->e);
    o->runs             = calloc(seeds, sizeof *o->runs);
    o->progress         = calloc(seeds, sizeof *o->progress);
    o->ended            = calloc(seeds, sizeof *o->ended);
    if (!o->runs || !o->progress || !o->ended)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for %s", o->label);
    return try_out(o, err);
}

/* Is a refusal the encoding's own, and not something that the caller could mend? With the settings of its room
   whatever its plan or run refuses is; with settings of the caller's only what has no meaning at all. */
static int has_no_meaning(const pe_outcome *o, posenc_status status)
{
    const int of_sizes = status == POSENC_SHAPE || status == POSENC_SETTING || status == POSENC_RANGE;
    return o->e && (status == POSENC_UNSUPPORTED || (o->is_bare && of_sizes));
}

/* Moves the outcome that was begun last to those that do not apply. */
static posenc_status set_aside(pe_compare *c, const posenc_error *why, posenc_error *err)
{
    pe_outcome *o    = &c->outcomes[c->count];
    pe_absent  *more = realloc(c->absent, (size_t)(c->absent_count + 1) * sizeof *more);
    if (!more)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for %s", o->label);
    c->absent    = more;
    pe_absent *a = &more[c->absent_count++];
    snprintf(a->label, sizeof a->label, "%s", o->label);
    pe_reason_copy(a->reason, sizeof a->reason, why);
    pe_outcome_free(o, c->config.preset.seeds);
    return POSENC_OK;
}

/* An encoding without a meaning in these models is named in the results. */
static posenc_status add_outcome(pe_compare *c, posenc_error *err)
{
    posenc_error        why    = {0};
    pe_outcome         *o      = &c->outcomes[c->count];
    const posenc_status status = outcome_create(c, o, &why);
    if (status && has_no_meaning(o, status))
        return set_aside(c, &why, err);
    c->count++; /* what was begun is freed with the rest */
    if (status && err)
        *err = why;
    return status;
}

/* An outcome at the end of the array, empty but for its label. */
static posenc_status begin_outcome(pe_compare *c, const char *label, posenc_error *err)
{
    pe_outcome *more = realloc(c->outcomes, (size_t)(c->count + 1) * sizeof *more);
    if (!more)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for %d encodings", c->count + 1);
    c->outcomes = more;
    memset(&more[c->count], 0, sizeof *more);
    snprintf(more[c->count].label, sizeof more[c->count].label, "%s", label);
    return add_outcome(c, err);
}

/* Does a part of this SPEC act at the input, and does the SPEC leave open how its rows are combined? */
static posenc_status is_open(int *open, const char *spec, posenc_error *err)
{
    char             plain[PE_LONGEST_SPEC];
    pe_entry         entry;
    posenc_encoding *e      = NULL;
    posenc_status    status = pe_entry_take(plain, sizeof plain, &entry, spec, err);
    if (!status)
        status = posenc_encoding_create(&e, plain, NULL, err);
    *open = !status && posenc_encoding_part(e, POSENC_INPUT) &&
            !posenc_encoding_part(e, POSENC_INPUT)->by_word && !entry.names_combine &&
            entry.inject == PE_AT_INPUT;
    posenc_encoding_free(e);
    return status;
}

/* One outcome for a SPEC, or one for each way of combining its rows that was asked for. */
static posenc_status add_spec(pe_compare *c, const char *spec, int *opened, posenc_error *err)
{
    char          named[PE_LONGEST_SPEC];
    int           open;
    posenc_status status = is_open(&open, spec, err);
    *opened += open;
    if (!status && (!open || c->ways & 1 << PE_ADD))
        status = begin_outcome(c, spec, err);
    if (!status && open && c->ways & 1 << PE_CONCAT) {
        status = pe_entry_name_combine(named, sizeof named, spec, PE_CONCAT, err);
        if (!status)
            status = begin_outcome(c, named, err);
    }
    return status;
}

static posenc_status set_outcomes(pe_compare *c, posenc_error *err)
{
    char          spec[PE_LONGEST_SPEC];
    const char   *list   = c->config.preset.encodings;
    int           opened = 0;
    posenc_status status = pe_combine_read(&c->ways, c->config.combine ? c->config.combine : "add", err);
    while (list && !status) {
        list = pe_spec_next(spec, sizeof spec, list, &status, err);
        if (!status)
            status = add_spec(c, spec, &opened, err);
    }
    if (!status && c->config.combine && opened == 0)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "combine: %s has nothing to act on: no encoding acts at the input without saying for "
            "itself how it is combined; add one, such as sinusoidal",
            c->config.combine);
    if (!status && c->count == 0)
        return pe_train_fail(err, POSENC_UNSUPPORTED, "%.60s cannot be compared %s: %s; give other encodings",
                             c->absent[0].label,
                             c->config.bidirectional ? "in a bidirectional model" : "in a causal model",
                             c->absent[0].reason);
    return status;
}

/* The tasks, for every encoding that was asked for, also one that has no meaning on text. */
static posenc_status set_suite(pe_compare *c, posenc_error *err)
{
    const int    count  = c->count + c->absent_count;
    const char **labels = malloc((size_t)count * sizeof *labels);
    if (!labels)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the tasks");
    for (int i = 0; i < count; i++)
        labels[i] = i < c->count ? c->outcomes[i].label : c->absent[i - c->count].label;
    const pe_suite_config config = {.preset      = &c->config.preset,
                                    .tasks       = c->config.tasks,
                                    .steps       = c->config.task_steps,
                                    .seeds       = c->config.task_seeds,
                                    .labels      = labels,
                                    .label_count = count};
    const posenc_status   status = pe_suite_create(&c->suite, &config, err);
    free(labels);
    return status;
}

/* "model name : ..." of the first processor, where the system tells. */
static void name_machine(char *name, size_t n)
{
    char  line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(name, n, "unknown processor");
    while (info && fgets(line, sizeof line, info)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, n, "%.100s", value + 2);
        break;
    }
    if (info)
        fclose(info);
}

static void set_workers(pe_compare *c)
{
    const long    processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t usual      = processors > 0 && pe_ranks_count() == 1 ? processors : 1;
    const int64_t wanted     = c->config.workers ? c->config.workers : usual;
    c->workers               = smaller(wanted, pe_job_count(c));
}

static posenc_status check_and_set(pe_compare *c, posenc_error *err)
{
    posenc_status status = check_numbers(&c->config, err);
    if (!status)
        status = set_text(c, err);
    if (!status)
        status = set_outcomes(c, err);
    if (!status)
        status = set_suite(c, err);
    if (!status)
        status = pe_extension_create(&c->extension, c, err);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_directory_check(c->config.directory, err);
    if (!status && c->config.directory && pe_ranks_here() == 0)
        status = pe_plot_ready(err);
    if (!status && c->config.directory)
        status = pe_resume_read(c, err);
    if (!status)
        status = pe_bootstrap_create(&c->bootstrap, c->config.preset.seeds, c->windows, RESAMPLES,
                                     BOOTSTRAP_SEED, err);
    if (!status)
        set_workers(c);
    return status;
}

posenc_status pe_compare_create(pe_compare **compare, const pe_compare_config *config, posenc_error *err)
{
    pe_compare *c = calloc(1, sizeof *c);
    *compare      = NULL;
    if (!c)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory");
    c->config    = *config;
    c->reference = -1;
    name_machine(c->machine, sizeof c->machine);
    const posenc_status status = pe_ranks_agree(check_and_set(c, err), err);
    if (status) {
        pe_compare_free(c);
        return status;
    }
    *compare = c;
    return POSENC_OK;
}

void pe_compare_free(pe_compare *compare)
{
    if (!compare)
        return;
    for (int i = 0; i < compare->count; i++)
        pe_outcome_free(&compare->outcomes[i], compare->config.preset.seeds);
    free(compare->outcomes);
    free(compare->absent);
    pe_suite_free(compare->suite);
    pe_extension_free(compare->extension);
    free(compare->properties);
    pe_store_free(compare->store);
    free(compare->names);
    free(compare->notes);
    pe_bootstrap_free(compare->bootstrap);
    free(compare);
}

const char *pe_compare_warning(const pe_compare *compare)
{
    return compare->warning[0] ? compare->warning : NULL;
}

const char *pe_compare_notes(const pe_compare *compare)
{
    return compare->notes;
}

int pe_compare_finished(const pe_compare *compare)
{
    int count = 0;
    for (int i = 0; i < compare->count; i++)
        count += compare->outcomes[i].is_complete;
    return count;
}

/* ---------------------------------------------------------------- training ------------------ */

typedef struct training {
    pe_compare             *c;
    const pe_compare_watch *watch;
    pe_crew                *crew;     /* the other processes */
    posenc_error           *errors;   /* [jobs] */
    int                    *reported; /* [jobs] */
    atomic_llong            next;     /* number 0: the job to take, if it has not ended */
    double start, told, before;       /* clock; when progress was told; the fraction done at the start */
    int    interrupted, failed;       /* a job's number + 1 */
    int    stopped;                   /* 1: everybody has been told */
} training;

/* Units of progress of a run, and the cost of one (pe_model_cost). */
static int64_t work_of(const pe_job *j)
{
    return j->cell ? pe_task_work(&j->cell->config) : pe_run_work(&j->outcome->config);
}

static double unit_of(const pe_compare *c, const pe_job *j)
{
    const pe_preset *p = &c->config.preset;
    return j->cell ? pe_cell_unit(j->cell) : pe_model_cost(p->d_model, p->layers, PE_BYTES, p->batch * p->L);
}

static posenc_status train_on_text(const training *t, int64_t job, posenc_error *err)
{
    const pe_job  j           = pe_job_at(t->c, job);
    pe_run_config config      = pe_job_config(&j);
    char         *checkpoint  = t->c->store ? pe_resume_checkpoint(t->c, job) : NULL;
    config.checkpoint         = checkpoint;
    config.checkpoint_seconds = t->c->config.checkpoint_seconds;
    if (t->c->store && !checkpoint)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for a run of %.60s", j.outcome->label);
    const posenc_status status = pe_run(&config, j.progress, &j.outcome->runs[j.seed], err);
    free(checkpoint);
    return status;
}

static void work(void *self, int64_t job)
{
    training    *t = self;
    const pe_job j = pe_job_at(t->c, job);
    if (j.cell)
        pe_cell_train(j.cell, j.seed, &t->errors[job]);
    else
        atomic_store(j.ended, 1 + (int)train_on_text(t, job, &t->errors[job]));
}

/* Number 0: the next job that nobody has. */
static int64_t take_next(void *self)
{
    training     *t     = self;
    const int64_t count = pe_job_count(t->c);
    int64_t       job   = atomic_fetch_add(&t->next, 1);
    while (job < count && pe_job_has_ended(t->c, job))
        job = atomic_fetch_add(&t->next, 1);
    return job < count ? job : -1;
}

static int64_t take(void *self)
{
    training *t = self;
    return pe_ranks_here() ? pe_crew_take(t->crew) : take_next(t);
}

static pe_compare_state state_of(const training *t)
{
    pe_compare_state state = {.runs = (int)pe_job_count(t->c), .seconds = pe_clock() - t->start, .left = NAN};
    double           done = 0, all = 0;
    for (int64_t job = 0; job < state.runs; job++) {
        const pe_job j     = pe_job_at(t->c, job);
        const double total = (double)work_of(&j), unit = unit_of(t->c, &j);
        const int    ended = atomic_load(j.ended) != 0;
        done += unit * (ended ? total : fmin((double)atomic_load(&j.progress->step), total));
        all += unit * total;
        state.finished += ended;
    }
    state.fraction = done / all;
    if (state.fraction > t->before + 0.01)
        state.left = state.seconds * (1 - state.fraction) / (state.fraction - t->before);
    return state;
}

/* Mean of one run over a bucket. */
static double run_loss(const pe_outcome *o, const pe_run_result *run, int bucket)
{
    const int64_t length = PE_REACH * o->config.L, first = pe_bucket_edge(o->config.L, bucket),
                  end = pe_bucket_edge(o->config.L, bucket + 1);
    double sum        = 0;
    for (int64_t w = 0; w < o->config.windows; w++)
        for (int64_t p = first; p < end; p++)
            sum += (double)run->window_loss[w * length + p];
    return sum / (double)(o->config.windows * (end - first));
}

static pe_compare_run row_of_text(const pe_outcome *o, int64_t s)
{
    const pe_run_result *run = &o->runs[s];
    return (pe_compare_run){.label          = o->label,
                            .seed           = s + 1,
                            .loss_at_L      = run_loss(o, run, PE_AT_L),
                            .loss_at_8L     = run_loss(o, run, PE_AT_8L),
                            .accuracy_at_L  = NAN,
                            .accuracy_at_2L = NAN,
                            .seconds        = run->train_seconds + run->eval_seconds,
                            .diverged       = run->diverged};
}

static pe_compare_run row_of_task(const pe_cell *cell, int64_t s)
{
    const pe_task_result *run = &cell->runs[s];
    return (pe_compare_run){.label          = cell->label,
                            .task           = cell->task->name,
                            .seed           = s + 1,
                            .loss_at_L      = NAN,
                            .loss_at_8L     = NAN,
                            .accuracy_at_L  = pe_cell_accuracy(cell, s, PE_TASK_L),
                            .accuracy_at_2L = pe_cell_accuracy(cell, s, PE_TASK_2),
                            .seconds        = run->train_seconds + run->eval_seconds,
                            .diverged       = run->diverged};
}

static void report_finished(training *t, const pe_job *j, const pe_compare_state *state)
{
    const pe_compare_run row = j->cell ? row_of_task(j->cell, j->seed) : row_of_text(j->outcome, j->seed);
    if (t->watch && t->watch->finished)
        t->watch->finished(t->watch->self, &row, state);
}

/* A job has failed: everything is stopped, and this is why. */
static void fail_with(training *t, int64_t job, const posenc_error *why)
{
    if (t->failed)
        return;
    t->errors[job] = *why;
    t->failed      = (int)job + 1;
    if (pe_ranks_here())
        pe_crew_tell_failed(t->crew, job, why);
}

static posenc_status send_line(const training *t, int64_t job, posenc_error *err)
{
    char               *line;
    const pe_job        j      = pe_job_at(t->c, job);
    const posenc_status status = pe_job_write(&line, &j, err);
    if (!status)
        pe_crew_tell_finished(t->crew, job, line);
    free(line);
    return status;
}

/* A finished run is kept, or sent to the process that keeps. */
static void deliver(training *t, int64_t job, const pe_compare_state *state)
{
    posenc_error  err;
    posenc_status status = POSENC_OK;
    const pe_job  j      = pe_job_at(t->c, job);
    if (pe_ranks_here())
        status = send_line(t, job, &err);
    else if (t->c->store)
        status = pe_resume_keep(t->c, job, &err);
    if (status)
        fail_with(t, job, &err);
    else
        report_finished(t, &j, state);
}

static void cancel_all(const pe_compare *c)
{
    for (int64_t job = 0; job < pe_job_count(c); job++)
        atomic_store(&pe_job_at(c, job).progress->cancel, 1);
}

static int was_cancelled(const pe_job *j)
{
    return j->cell ? j->cell->runs[j->seed].cancelled : j->outcome->runs[j->seed].cancelled;
}

/* Looks for runs that have ended since the last time. */
static void look_for_ended(training *t, const pe_compare_state *state)
{
    for (int64_t job = 0; job < state->runs; job++) {
        const pe_job j     = pe_job_at(t->c, job);
        const int    ended = atomic_load(j.ended);
        if (!ended || t->reported[job])
            continue;
        t->reported[job] = 1;
        if (ended == 1 + POSENC_OK)
            deliver(t, job, state);
        else if (!was_cancelled(&j))
            fail_with(t, job, &t->errors[job]);
    }
}

/* Once a second, how far the runs of this process are. */
static void tell_progress(training *t)
{
    if (!pe_ranks_here() || pe_clock() - t->told < 1)
        return;
    t->told = pe_clock();
    for (int64_t job = 0; job < pe_job_count(t->c); job++) {
        const pe_job  j    = pe_job_at(t->c, job);
        const int64_t step = atomic_load(&j.progress->step);
        if (step && !atomic_load(j.ended))
            pe_crew_tell_advanced(t->crew, job, step);
    }
}

static int watch(void *self)
{
    training *t = self;
    pe_crew_listen(t->crew);
    const pe_compare_state state = state_of(t);
    look_for_ended(t, &state);
    tell_progress(t);
    if (t->watch && t->watch->interrupted && state.finished < state.runs &&
        t->watch->interrupted(t->watch->self))
        t->interrupted = 1;
    if (t->watch && t->watch->progress)
        t->watch->progress(t->watch->self, &state);
    if (t->interrupted || t->failed)
        cancel_all(t->c);
    if ((t->interrupted || t->failed) && !t->stopped) {
        t->stopped = 1;
        pe_crew_tell_stop(t->crew);
    }
    return t->interrupted || t->failed;
}

/* ---------------------------------------------------------------- other processes ----------- */

static void take_over(void *self, int64_t job, const char *line)
{
    training    *t = self;
    posenc_error err;
    if (job < 0 || job >= pe_job_count(t->c))
        return;
    if (pe_resume_take_over(t->c, job, line, &err))
        fail_with(t, job, &err);
}

static void note_progress(void *self, int64_t job, int64_t step)
{
    training *t = self;
    if (job >= 0 && job < pe_job_count(t->c))
        atomic_store(&pe_job_at(t->c, job).progress->step, step);
}

static void note_failure(void *self, int64_t job, const posenc_error *err)
{
    training *t = self;
    if (job >= 0 && job < pe_job_count(t->c))
        fail_with(t, job, err);
}

static void note_stop(void *self)
{
    training *t    = self;
    t->interrupted = 1;
}

/* Number 0 has no work left: it listens until the others have none. */
static void wait_for_others(training *t)
{
    const struct timespec moment = {0, 50000000};
    while (pe_crew_is_waiting(t->crew)) {
        watch(t);
        nanosleep(&moment, NULL);
    }
    watch(t);
}

/* Did every run end, unless somebody stopped them? */
static posenc_status check_all_ended(const training *t, posenc_error *err)
{
    for (int64_t job = 0; !t->interrupted && job < pe_job_count(t->c); job++)
        if (!pe_job_has_ended(t->c, job))
            return pe_train_fail(
                err, POSENC_FILE,
                "compare: a process ended before its run did; start again with --resume: what was "
                "kept before is still there");
    return POSENC_OK;
}

static posenc_status measure_all(pe_compare *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < c->count && !status; i++)
        status = pe_outcome_measure(&c->outcomes[i], c->config.preset.seeds, err);
    if (!status)
        status = pe_outcomes_rank(c, err);
    if (!status)
        status = pe_suite_measure(c->suite, err);
    if (!status)
        status = pe_extension_measure(c->extension, err);
    if (!status)
        status = pe_claims_measure(c, err);
    if (!status)
        pe_compare_answer_write(c);
    return status;
}

static posenc_status train_all(training *t, posenc_error *err)
{
    const pe_pool pool   = {.self    = t,
                            .jobs    = pe_job_count(t->c),
                            .workers = (int)t->c->workers,
                            .work    = work,
                            .watch   = watch,
                            .take    = take};
    posenc_status status = pe_pool_run(&pool, err);
    if (status && pe_ranks_here() == 0)
        pe_crew_tell_stop(t->crew);
    if (pe_ranks_here())
        pe_crew_leave(t->crew);
    else
        wait_for_others(t);
    if (!status && t->failed) {
        status = t->errors[t->failed - 1].status;
        if (err)
            *err = t->errors[t->failed - 1];
    }
    return status || pe_ranks_here() ? status : check_all_ended(t, err);
}

static posenc_status training_create(training *t, posenc_error *err)
{
    const size_t        jobs  = (size_t)pe_job_count(t->c);
    const pe_crew_calls calls = {t, take_next, take_over, note_progress, note_failure, note_stop};
    t->errors                 = calloc(jobs, sizeof *t->errors);
    t->reported               = calloc(jobs, sizeof *t->reported);
    if (!t->errors || !t->reported)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for %zu runs", jobs);
    for (size_t job = 0; job < jobs; job++)
        t->reported[job] = pe_job_has_ended(t->c, (int64_t)job) != 0;
    t->before            = state_of(t).fraction;
    posenc_status status = pe_crew_create(&t->crew, &calls, err);
    if (!status && t->c->store)
        status = pe_resume_open(t->c, err);
    return status;
}

posenc_status pe_compare_train(pe_compare *compare, const pe_compare_watch *watcher, int *interrupted,
                               posenc_error *err)
{
    training      t      = {.c = compare, .watch = watcher, .start = pe_clock()};
    posenc_status status = pe_ranks_agree(training_create(&t, err), err);
    if (!status)
        status = train_all(&t, err);
    compare->wall_seconds = pe_clock() - t.start;
    *interrupted          = t.interrupted;
    if (!status && pe_ranks_here() == 0)
        status = measure_all(compare, err);
    pe_crew_free(t.crew);
    free(t.errors);
    free(t.reported);
    return status;
}

/* ---------------------------------------------------------------- estimate ------------------ */

/* A few steps and one window, scaled up; a unit of a sequel takes about as long as a step. */
static posenc_status probe(const pe_outcome *o, double *seconds, posenc_error *err)
{
    pe_run_result result;
    pe_run_config config       = o->config;
    const int64_t steps        = smaller(PROBE_STEPS, config.steps);
    config.steps               = steps;
    config.sequel              = NULL;
    config.measures            = 0;
    config.windows             = 1;
    config.seed                = 1;
    const posenc_status status = pe_run(&config, NULL, &result, err);
    config                     = o->config;
    config.sequel              = NULL;
    const int64_t further      = pe_run_work(&o->config) - pe_run_work(&config);
    *seconds                   = result.train_seconds / (double)steps * (double)(o->config.steps + further) +
               result.eval_seconds * (double)o->config.windows;
    pe_run_result_free(&result);
    return status;
}

posenc_status pe_compare_estimate(pe_compare *compare, double *seconds, posenc_error *err)
{
    double      total = 0, longest = 0, one = 0;
    const void *probed = NULL;
    for (int64_t job = 0; job < pe_job_count(compare); job++) {
        const pe_job  j      = pe_job_at(compare, job);
        const void   *what   = j.cell ? (const void *)j.cell : j.outcome;
        posenc_status status = POSENC_OK;
        if (atomic_load(j.ended))
            continue;
        if (what != probed) /* the other seeds take as long */
            status = j.cell ? pe_cell_estimate(j.cell, &one, err) : probe(j.outcome, &one, err);
        if (status)
            return status;
        probed = what;
        total += one;
        longest = fmax(longest, one);
    }
    *seconds = fmax(longest, total / (double)(compare->workers * pe_ranks_count()));
    return POSENC_OK;
}
