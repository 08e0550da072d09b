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

#include <math.h>
#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- tables -------------------- */

/* Between quotes. */
static void csv_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

/* Behind a comma; nothing for what is no number. */
static void csv_value(FILE *to, double x)
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
        csv_field(to, o->label);
        fprintf(to, ",%lld,%s,%lld,%lld", (long long)s + 1, name, (long long)first,
                (long long)pe_bucket_edge(o->config.L, b + 1));
        csv_value(to, pe_mean(o->window_means[b] + s * o->config.windows, o->config.windows));
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
        csv_field(to, o->label);
        fprintf(to, ",%lld,%lld", (long long)s + 1, (long long)p);
        csv_value(to, sum / (double)o->config.windows);
        fputc('\n', to);
    }
}

static void write_task_run(FILE *to, const pe_cell *cell, int64_t s)
{
    for (int i = 0; i <= cell->config.longest; i++) {
        if (!pe_task_size(cell->task, i))
            continue;
        csv_field(to, cell->task->name);
        fputc(',', to);
        csv_field(to, cell->label);
        fprintf(to, ",%lld,%s,%lld", (long long)s + 1, pe_task_length_name(i),
                (long long)pe_task_size(cell->task, i));
        csv_value(to, pe_cell_accuracy(cell, s, i));
        csv_value(to, pe_cell_exact(cell, s, i));
        csv_value(to, cell->runs[s].loss[i]);
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
    const pe_suite *suite = c->suite;
    (void)g;
    fputs("task,encoding,seed,length,n,accuracy,exact_match,loss\n", to);
    for (int i = 0; i < suite->task_count * suite->label_count; i++)
        for (int64_t s = 0; suite->cells[i].is_complete && s < suite->cells[i].seeds; s++)
            write_task_run(to, &suite->cells[i], s);
}

/* ---------------------------------------------------------------- the directory ------------- */

/* Files that are written into a directory until one fails. */
typedef struct output {
    const pe_directory *d;
    const pe_compare   *c;
    const pe_gallery   *g;
    posenc_status       status;
    posenc_error       *err;
} output;

/* DIR/NAMEENDING, malloc'd; NULL where something has failed. */
static char *path_in(output *o, const char *name, const char *ending)
{
    const size_t size = strlen(o->d->temporary) + strlen(name) + strlen(ending) + 2;
    char        *path = o->status ? NULL : malloc(size);
    if (path)
        snprintf(path, size, "%s/%s%s", o->d->temporary, name, ending);
    else if (!o->status)
        o->status = pe_train_fail(o->err, POSENC_MEMORY, "compare: no memory to write %s%s", name, ending);
    return path;
}

/* A text, or what `write` writes where there is none. */
static void put_file(output *o, const char *name, const char *ending, const char *text,
                     void (*write)(FILE *to, const pe_compare *c, const pe_gallery *g))
{
    posenc_whole_file file;
    char             *path = path_in(o, name, ending);
    if (path)
        o->status = posenc_whole_file_open(&file, path, o->err);
    free(path);
    if (o->status)
        return;
    if (text)
        fputs(text, file.stream);
    else
        write(file.stream, o->c, o->g);
    o->status = posenc_whole_file_commit(&file, o->err);
}

static void put_runs(output *o)
{
    char *path = path_in(o, PE_RUNS_NAME, "");
    if (path)
        o->status = pe_store_write(path, o->c, o->err);
    free(path);
}

/* The SVG is there already; the PNG is drawn. */
static void put_picture(output *o, const pe_exhibit *x)
{
    put_file(o, x->name, ".svg", x->svg, NULL);
    char *path = path_in(o, x->name, ".png");
    if (path)
        o->status = pe_plot_file(x->figure, path, o->err);
    free(path);
}

static posenc_status fill(const pe_directory *d, const pe_compare *c, const pe_gallery *g, posenc_error *err)
{
    output o    = {d, c, g, POSENC_OK, err};
    char  *text = NULL;
    o.status    = pe_results_json(c, g, &text, err);
    put_file(&o, PE_RESULTS_NAME, "", text, NULL);
    free(text);
    put_file(&o, "results.csv", "", NULL, write_bucket_table);
    put_file(&o, "curves.csv", "", NULL, write_curve_table);
    put_file(&o, "tasks.csv", "", NULL, write_task_table);
    put_runs(&o);
    for (int i = 0; i < g->count; i++)
        put_picture(&o, &g->items[i]);
    put_file(&o, "report.html", "", NULL, pe_report_write);
    return o.status;
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
