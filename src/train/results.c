/* SPDX-License-Identifier: MIT */
/*
 * results.c: the directory of a comparison: numbers as JSON and CSV, pictures, the report
 *
 * results.json holds everything that was measured, with the settings that reproduce it; what was not measured is
 * null. Times, machine and the words of the call stand apart under "time", because they are all that two runs may differ in
 * that ask for the same, whatever their threads, interruptions and directories.
 * results.csv has one row per encoding, seed and bucket; curves.csv the loss at every position; tasks.csv one row per
 * task, encoding, seed and length. The report comes last, and the directory is renamed into place when all is there.
 */
#include "train/outcome.h"

#include "train/claims.h"
#include "train/directory.h"
#include "train/extension.h"
#include "train/fail.h"
#include "train/gallery.h"
#include "train/report.h"
#include "train/results.h"
#include "train/resume.h"
#include "train/store.h"

#include <math.h>
#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9, FIXED_FILES = 6 };

/* ---------------------------------------------------------------- JSON ---------------------- */

json_t *pe_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *numbers(const double *x, int64_t n)
{
    json_t *array = json_array();
    for (int64_t i = 0; x && i < n; i++)
        json_array_append_new(array, pe_json_number(x[i]));
    return array;
}

json_t *pe_json_interval(pe_interval d)
{
    return json_pack("{s:o, s:o, s:o}", "value", pe_json_number(d.value), "low", pe_json_number(d.low),
                     "high", pe_json_number(d.high));
}

static json_t *settings_json(const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "preset", p->name,
                     "objective", pe_objective_name(c->config.bidirectional), "steps", (json_int_t)p->steps,
                     "seeds", (json_int_t)p->seeds, "L", (json_int_t)p->L, "d_model", (json_int_t)p->d_model,
                     "layers", (json_int_t)p->layers, "heads", (json_int_t)p->heads, "batch",
                     (json_int_t)p->batch, "warmup", (json_int_t)p->warmup, "learning_rate", p->learning_rate,
                     "weight_decay", p->weight_decay, "clip", p->clip);
}

static json_t *buckets_json(const pe_compare *c, const pe_outcome *o)
{
    json_t       *array = json_array();
    const int64_t L     = c->config.preset.L;
    for (int b = 0; b < PE_BUCKETS; b++) {
        int64_t     first;
        const char *name = pe_outcome_bucket(o, b, &first);
        json_array_append_new(
            array, json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:i, s:b}", "name", name, "first",
                             (json_int_t)first, "end", (json_int_t)pe_bucket_edge(L, b + 1), "loss",
                             pe_json_number(o->loss[b]), "ratio", pe_json_number(o->ratio[b]), "to_reference",
                             pe_json_interval(o->difference[b]), "rank", o->rank[b], "untrained_rows",
                             o->untrained_beyond && b > PE_AT_L));
    }
    return array;
}

static json_t *runs_json(const pe_compare *c, const pe_outcome *o)
{
    json_t       *array   = json_array();
    const int64_t windows = o->config.windows;
    for (int64_t s = 0; s < c->config.preset.seeds; s++) {
        json_t *loss = json_array();
        for (int b = 0; b < PE_BUCKETS; b++)
            json_array_append_new(loss, pe_json_number(pe_mean(o->window_means[b] + s * windows, windows)));
        json_array_append_new(array, json_pack("{s:I, s:b, s:o, s:{s:f, s:f, s:f}}", "seed",
                                               (json_int_t)(s + 1), "diverged", o->runs[s].diverged, "loss",
                                               loss, "time", "train_seconds", o->runs[s].train_seconds,
                                               "eval_seconds", o->runs[s].eval_seconds, "bytes_per_second",
                                               o->runs[s].tokens_per_second));
    }
    return array;
}

/* How rows enter, and how the vectors that meet stand to each other; null where no rows meet them. */
static json_t *entry_json(const pe_outcome *o)
{
    if (!pe_outcome_meets(o))
        return json_null();
    return json_pack("{s:s, s:s, s:{s:o, s:o, s:o}}", "combine", pe_combine_name(o->config.entry.combine),
                     "inject", pe_inject_name(o->config.entry.inject), "token_position_cosine", "random",
                     pe_json_number(pe_random_cosine(o->config.d_model)), "before",
                     pe_json_number(o->cosine_before), "after", pe_json_number(o->cosine_after));
}

/* Concatenated against added, in each bucket; null where the sum was not trained beside it. */
static json_t *to_sum_json(const pe_compare *c, const pe_outcome *o)
{
    const int i = (int)(o - c->outcomes), sum = pe_outcome_sum_of(c, i);
    if (sum < 0 || o->diverged || c->outcomes[sum].diverged)
        return json_null();
    json_t *array = json_array();
    for (int b = 0; b < PE_BUCKETS; b++)
        json_array_append_new(array, pe_json_interval(pe_outcomes_difference(c, i, sum, b)));
    return array;
}

static json_t *outcome_json(const pe_compare *c, const pe_outcome *o)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:b, s:I}", "encoding", o->label, "spec",
                  posenc_encoding_spec(o->e), "parameters", (json_int_t)o->runs[0].parameters,
                  "encoding_parameters", (json_int_t)o->runs[0].encoding_parameters, "class", o->verdict,
                  "diverged", o->diverged, "breaks_at", (json_int_t)(o->break_position + 1));
    json_object_set_new(json, "entry", entry_json(o));
    json_object_set_new(json, "to_sum", to_sum_json(c, o));
    json_object_set_new(json, "buckets", buckets_json(c, o));
    json_object_set_new(json, "runs", runs_json(c, o));
    json_object_set_new(json, "trained", c->config.bidirectional ? json_null() : pe_json_trained(o));
    json_object_set_new(json, "curve", numbers(o->curve, PE_REACH * o->config.L));
    json_object_set_new(json, "training", numbers(o->training, o->config.steps));
    return json;
}

static json_t *checks_json(const pe_compare *c)
{
    pe_check_result all[PE_MOST_CHECKS];
    json_t         *array = json_array();
    const int       count = pe_checks_judge(all, c);
    for (const pe_check_result *r = all; r < all + count; r++)
        json_array_append_new(array,
                              json_pack("{s:i, s:b, s:b, s:s, s:s}", "id", r->number, "applicable",
                                        r->verdict != PE_NOT_APPLICABLE, "passed", r->verdict == PE_PASSED,
                                        "expected", r->claim, "found", r->found));
    return array;
}

/* The files of the directory: what a later call may replace. */
static json_t *files_json(const pe_gallery *g)
{
    static const char *const fixed[FIXED_FILES] = {PE_RESULTS_NAME, "results.csv", "curves.csv",
                                                   "tasks.csv",     PE_RUNS_NAME,  "report.html"};
    json_t                  *files              = json_array();
    for (int i = 0; i < FIXED_FILES; i++)
        json_array_append_new(files, json_string(fixed[i]));
    for (int i = 0; g && i < g->count; i++) {
        json_array_append_new(files, json_sprintf("%s.svg", g->items[i].name));
        json_array_append_new(files, json_sprintf("%s.png", g->items[i].name));
    }
    return files;
}

static json_t *encodings_json(const pe_compare *c)
{
    json_t *array = json_array();
    int    *order = malloc((size_t)c->count * sizeof *order);
    for (int i = 0, n = order ? pe_outcomes_order(c, order) : 0; i < n; i++)
        json_array_append_new(array, outcome_json(c, &c->outcomes[order[i]]));
    free(order);
    return array;
}

static json_t *absent_json(const pe_compare *c)
{
    json_t *array = json_array();
    for (int i = 0; i < c->absent_count; i++)
        json_array_append_new(array, json_pack("{s:s, s:s}", "encoding", c->absent[i].label, "reason",
                                               c->absent[i].reason));
    return array;
}

static json_t *results_json(const pe_compare *c, const pe_gallery *g)
{
    json_t *json = json_pack("{s:s, s:s, s:s}", "format", PE_RESULTS_FORMAT, "version", posenc_version(),
                             "answer", c->answer);
    json_object_set_new(json, "text",
                        json_pack("{s:s, s:I, s:I, s:I}", "name", c->config.text_name, "bytes",
                                  (json_int_t)c->text.size, "train_bytes", (json_int_t)c->text.train_size,
                                  "windows", (json_int_t)c->windows));
    json_object_set_new(json, "settings", settings_json(c));
    json_object_set_new(json, "reference",
                        c->reference >= 0 ? json_string(c->outcomes[c->reference].label) : json_null());
    json_object_set_new(json, "encodings", encodings_json(c));
    json_object_set_new(json, "does_not_apply", absent_json(c));
    json_object_set_new(json, "tasks", pe_json_tasks(c->suite));
    json_object_set_new(json, "extension", pe_json_extension(c->extension));
    json_object_set_new(json, "claims", pe_json_claims(c));
    json_object_set_new(json, "checks", checks_json(c));
    json_object_set_new(json, "time",
                        json_pack("{s:s, s:s, s:s, s:I, s:f}", "call", c->config.call ? c->config.call : "",
                                  "processor", c->machine, "instructions", posenc_isa(), "threads",
                                  (json_int_t)c->workers, "seconds", c->wall_seconds));
    json_object_set_new(json, "files", files_json(g));
    return json;
}

static posenc_status dump(const pe_compare *c, const pe_gallery *g, char **text, posenc_error *err)
{
    json_t *json = results_json(c, g);
    *text        = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(json);
    return *text ? POSENC_OK
                 : pe_train_fail(err, POSENC_MEMORY,
                                 "compare: the results cannot be written as JSON; is a name not UTF-8?");
}

posenc_status pe_compare_json(const pe_compare *compare, char **json, posenc_error *err)
{
    return dump(compare, NULL, json, err);
}

/* ---------------------------------------------------------------- CSV ----------------------- */

void pe_csv_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

void pe_csv_value(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, ",%.9g", x);
    else
        fputc(',', to);
}

/* For each run of each finished encoding. */
static void for_runs(FILE *to, const pe_compare *c,
                     void (*write)(FILE *to, const pe_outcome *o, int64_t seed))
{
    for (int i = 0; i < c->count; i++)
        for (int64_t s = 0; c->outcomes[i].is_complete && s < c->config.preset.seeds; s++)
            write(to, &c->outcomes[i], s);
}

static void write_buckets(FILE *to, const pe_outcome *o, int64_t s)
{
    for (int b = 0; b < PE_BUCKETS; b++) {
        int64_t     first;
        const char *name = pe_outcome_bucket(o, b, &first);
        pe_csv_field(to, o->label);
        fprintf(to, ",%lld,%s,%lld,%lld", (long long)s + 1, name, (long long)first,
                (long long)pe_bucket_edge(o->config.L, b + 1));
        pe_csv_value(to, pe_mean(o->window_means[b] + s * o->config.windows, o->config.windows));
        fprintf(to, ",%d\n", o->untrained_beyond && b > PE_AT_L);
    }
}

static void write_curve(FILE *to, const pe_outcome *o, int64_t s)
{
    const int64_t length = PE_REACH * o->config.L;
    for (int64_t p = 0; p < length; p++) {
        double sum = 0;
        for (int64_t w = 0; w < o->config.windows; w++)
            sum += (double)o->runs[s].window_loss[w * length + p];
        pe_csv_field(to, o->label);
        fprintf(to, ",%lld,%lld", (long long)s + 1, (long long)p);
        pe_csv_value(to, sum / (double)o->config.windows);
        fputc('\n', to);
    }
}

static void write_bucket_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    (void)g;
    fputs("encoding,seed,bucket,first,end,loss,untrained_rows\n", to);
    for_runs(to, c, write_buckets);
}

static void write_curve_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    (void)g;
    fputs("encoding,seed,position,loss\n", to);
    for_runs(to, c, write_curve);
}

static void write_task_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    (void)g;
    pe_csv_tasks(to, c->suite);
}

/* ---------------------------------------------------------------- runs ---------------------- */

/* One line per finished run, as DIR.partial had them. */
static void write_runs(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    (void)g;
    for (int64_t job = 0; job < pe_job_count(c); job++) {
        char        *line;
        const pe_job j = pe_job_at(c, job);
        if (atomic_load(j.ended) != 1 + POSENC_OK)
            continue;
        if (!pe_job_write(&line, &j, NULL))
            fprintf(to, "%s\n", line);
        free(line);
    }
}

/* ---------------------------------------------------------------- the directory ------------- */

/* DIR/NAMEENDING, malloc'd. */
static char *path_in(const pe_directory *d, const char *name, const char *ending, posenc_error *err)
{
    const size_t size = strlen(d->temporary) + strlen(name) + strlen(ending) + 2;
    char        *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s%s", d->temporary, name, ending);
    else
        pe_train_fail(err, POSENC_MEMORY, "compare: no memory to write %s%s", name, ending);
    return path;
}

static posenc_status open_file(posenc_whole_file *file, const pe_directory *d, const char *name,
                               const char *ending, posenc_error *err)
{
    char *path = path_in(d, name, ending, err);
    if (!path)
        return POSENC_MEMORY;
    const posenc_status status = posenc_whole_file_open(file, path, err);
    free(path);
    return status;
}

static posenc_status write_text(const pe_directory *d, const char *name, const char *ending, const char *text,
                                posenc_error *err)
{
    posenc_whole_file   file;
    const posenc_status status = open_file(&file, d, name, ending, err);
    if (status)
        return status;
    fputs(text, file.stream);
    return posenc_whole_file_commit(&file, err);
}

static posenc_status write_file(const pe_directory *d, const char *name, const pe_compare *c,
                                const pe_gallery *g,
                                void (*write)(FILE *to, const pe_compare *c, const pe_gallery *g),
                                posenc_error *err)
{
    posenc_whole_file   file;
    const posenc_status status = open_file(&file, d, name, "", err);
    if (status)
        return status;
    write(file.stream, c, g);
    return posenc_whole_file_commit(&file, err);
}

static posenc_status write_results(const pe_directory *d, const pe_compare *c, const pe_gallery *g,
                                   posenc_error *err)
{
    char         *text;
    posenc_status status = dump(c, g, &text, err);
    if (!status)
        status = write_text(d, PE_RESULTS_NAME, "", text, err);
    free(text);
    return status;
}

/* The SVG is there already; the PNG is drawn. */
static posenc_status write_picture(const pe_directory *d, const pe_exhibit *x, posenc_error *err)
{
    posenc_status status = write_text(d, x->name, ".svg", x->svg, err);
    char         *path   = status ? NULL : path_in(d, x->name, ".png", err);
    if (!status)
        status = path ? pe_plot_file(x->figure, path, err) : POSENC_MEMORY;
    free(path);
    return status;
}

static posenc_status fill(const pe_directory *d, const pe_compare *c, const pe_gallery *g, posenc_error *err)
{
    posenc_status status = write_results(d, c, g, err);
    if (!status)
        status = write_file(d, "results.csv", c, g, write_bucket_table, err);
    if (!status)
        status = write_file(d, "curves.csv", c, g, write_curve_table, err);
    if (!status)
        status = write_file(d, "tasks.csv", c, g, write_task_table, err);
    if (!status)
        status = write_file(d, PE_RUNS_NAME, c, g, write_runs, err);
    for (int i = 0; i < g->count && !status; i++)
        status = write_picture(d, &g->items[i], err);
    if (!status)
        status = write_file(d, "report.html", c, g, pe_report_write, err);
    return status;
}

/* Has every run ended well? */
static int is_whole(const pe_compare *c)
{
    for (int64_t job = 0; job < pe_job_count(c); job++)
        if (atomic_load(pe_job_at(c, job).ended) != 1 + POSENC_OK)
            return 0;
    return 1;
}

/* A result that cannot be written loses nothing: the runs are in DIR.partial. */
static posenc_status say_what_is_kept(const pe_compare *c, posenc_status status, posenc_error *err)
{
    if (status != POSENC_FILE || !c->store || !err)
        return status;
    const size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; mend that and start again with --resume: every finished run is kept");
    return status;
}

posenc_status pe_compare_write(const pe_compare *compare, posenc_error *err)
{
    pe_directory  d;
    pe_gallery    g;
    posenc_status status = pe_gallery_create(&g, compare, err);
    if (status)
        return status;
    status = pe_directory_open(&d, compare->config.directory, err);
    if (!status) {
        status = fill(&d, compare, &g, err);
        if (status)
            pe_directory_discard(&d);
        else
            status = pe_directory_commit(&d, err);
    }
    pe_gallery_free(&g);
    if (!status && compare->store && is_whole(compare))
        pe_store_remove(compare->store);
    return say_what_is_kept(compare, status, err);
}
