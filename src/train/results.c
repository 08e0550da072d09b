/* SPDX-License-Identifier: MIT */
/*
 * results.c: the directory of a comparison: numbers as JSON (results_json.c) and CSV, pictures, the report
 *
 * results.csv has one row per encoding, seed and bucket; curves.csv the loss at every position; tasks.csv one
 * row per task, encoding, seed and length. The report comes last, and the directory is renamed into place
 * when all is there.
 */
#include "train/results.h"

#include "train/directory.h"
#include "train/fail.h"
#include "train/gallery.h"
#include "train/job.h"
#include "train/report.h"
#include "train/store.h"

#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- tables -------------------- */

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
    posenc_status status = pe_results_json(c, g, &text, err);
    if (!status)
        status = write_text(d, PE_RESULTS_NAME, "", text, err);
    free(text);
    return status;
}

static posenc_status write_runs(const pe_directory *d, const pe_compare *c, posenc_error *err)
{
    char               *path   = path_in(d, PE_RUNS_NAME, "", err);
    const posenc_status status = path ? pe_store_write(path, c, err) : POSENC_MEMORY;
    free(path);
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
        status = write_runs(d, c, err);
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
