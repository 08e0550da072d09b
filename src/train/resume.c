/* SPDX-License-Identifier: MIT */
/*
 * resume.c: what an earlier start of the same comparison has left
 *
 * A run is found again by its identity (record.h): the very same run, or none. So the same command goes on
 * where it was, and a command that asks for more - further seeds, another encoding - takes over what it
 * shares with the one before.
 *
 * Nothing is thrown away for lack of a word. Without --resume a directory that keeps something is refused,
 * and with it one that keeps runs of another comparison; both sentences say what to do. What cannot be read
 * (a line or a checkpoint that was cut short) is left aside with a note, and its run trained again.
 *
 * Where DIR.partial keeps no run, those of the finished result DIR are looked at: a comparison may grow.
 */
#include "train/resume.h"

#include "train/checkpoint.h"
#include "train/directory.h"
#include "train/fail.h"
#include "train/ranks.h"
#include "train/record.h"
#include "train/store.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NOTE = 640, LONGEST_DIFFERENCE = 240 };

/* ---------------------------------------------------------------- runs by number ------------ */

static const char *name_of(const pe_compare *c, int64_t job)
{
    return c->names + job * PE_RUN_NAME;
}

static char *identity_of(const pe_compare *c, int64_t job)
{
    const pe_job j = pe_job_at(c, job);
    return pe_job_identity(&j);
}

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory to look for what was kept");
}

static posenc_status name_runs(pe_compare *c, posenc_error *err)
{
    const int64_t count = pe_job_count(c);
    c->names            = malloc((size_t)count * PE_RUN_NAME);
    for (int64_t job = 0; c->names && job < count; job++) {
        char *identity = identity_of(c, job);
        if (!identity)
            return no_memory(err);
        pe_run_name(c->names + job * PE_RUN_NAME, identity);
        free(identity);
    }
    return c->names ? POSENC_OK : no_memory(err);
}

static int has_identity(const pe_compare *c, int64_t job, const char *identity)
{
    char     *mine = identity_of(c, job);
    const int same = mine && !strcmp(mine, identity);
    free(mine);
    return same;
}

/* The run of that identity, or -1. Two SPECs may mean the same on a task, where sizes are others than on the
   text: of two runs the one without a result. */
static int64_t find(const pe_compare *c, const char *identity)
{
    char    name[PE_RUN_NAME];
    int64_t found = -1;
    pe_run_name(name, identity);
    for (int64_t job = 0; job < pe_job_count(c); job++)
        if (!strcmp(name_of(c, job), name) && has_identity(c, job, identity)) {
            found = job;
            if (!pe_job_has_ended(c, job))
                break;
        }
    return found;
}

/* ---------------------------------------------------------------- words --------------------- */

__attribute__((format(printf, 2, 3))) static void note(pe_compare *c, const char *format, ...)
{
    char    text[LONGEST_NOTE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    const size_t used   = c->notes ? strlen(c->notes) : 0;
    char        *longer = realloc(c->notes, used + strlen(text) + 2);
    if (!longer)
        return;
    sprintf(longer + used, "%s\n", text);
    c->notes = longer;
}

/* The identity of a run of ours on the same: the text, or that task. NULL if there is none. */
static char *kin_of(const pe_compare *c, const char *identity)
{
    for (int64_t job = 0; job < pe_job_count(c); job++) {
        const pe_job j = pe_job_at(c, job);
        char         task[64];
        snprintf(task, sizeof task, "\"task\":\"%.40s\"", j.cell ? j.cell->task->name : "");
        if (j.cell ? strstr(identity, task) != NULL : !strstr(identity, "\"task\":"))
            return pe_job_identity(&j);
    }
    return NULL;
}

/* `what` was kept by a comparison that is not this one. */
static posenc_status refuse_stranger(const pe_compare *c, const char *what, const char *identity,
                                     posenc_error *err)
{
    char  difference[LONGEST_DIFFERENCE] = "";
    char *mine                           = kin_of(c, identity);
    if (mine)
        pe_identity_difference(difference, sizeof difference, identity, mine);
    free(mine);
    return pe_train_fail(err, POSENC_ARGUMENT,
                         "%.120s: %.120s is a run of another comparison (%s); give the same command, "
                         "another -o, or remove it",
                         pe_store_path(c->store), what,
                         difference[0] ? difference : "an encoding, task or seed not asked for");
}

/* ---------------------------------------------------------------- finished runs ------------- */

static posenc_status read_run(pe_compare *c, int64_t job, const char *line, posenc_error *err)
{
    const pe_job j = pe_job_at(c, job);
    return pe_job_read(&j, line, err);
}

posenc_status pe_resume_take_over(pe_compare *c, int64_t job, const char *line, posenc_error *err)
{
    pe_record_head      head;
    const posenc_status status = pe_record_head_read(&head, line, err);
    const int           is_his = !status && has_identity(c, job, head.identity);
    pe_record_head_free(&head);
    if (status)
        return status;
    if (!is_his || pe_job_has_ended(c, job))
        return pe_train_fail(
            err, POSENC_FORMAT,
            "compare: another process sent a run that it was not asked for; do all processes run "
            "the same program?");
    return read_run(c, job, line, err);
}

/* What is being read: DIR.partial, or an older result, of which nothing is refused. */
typedef struct reading {
    pe_compare *c;
    int         is_partial, kept;
} reading;

static posenc_status read_line(void *self, const char *line, int64_t number, posenc_error *err)
{
    reading       *r = self;
    posenc_error   why;
    char           where[64];
    pe_record_head head;
    snprintf(where, sizeof where, "line %lld of %s", (long long)number, PE_RUNS_NAME);
    posenc_status status = pe_record_head_read(&head, line, &why);
    const int64_t job    = status ? -1 : find(r->c, head.identity);
    if (!status && job < 0 && r->is_partial)
        status = refuse_stranger(r->c, where, head.identity, err);
    else if (!status && job >= 0 && !pe_job_has_ended(r->c, job)) {
        status = read_run(r->c, job, line, &why);
        r->kept += !status;
    }
    pe_record_head_free(&head);
    if (status == POSENC_ARGUMENT)
        return status;
    if (status && r->is_partial)
        note(r->c, "%.120s: %s is left aside: %.200s; its run is trained again", pe_store_path(r->c->store),
             where, why.message);
    return POSENC_OK;
}

static posenc_status read_finished(pe_compare *c, int *kept, posenc_error *err)
{
    reading       r = {.c = c, .is_partial = 1};
    int           cut;
    posenc_status status = pe_store_lines(c->store, 1, read_line, &r, &cut, err);
    if (!status && cut)
        note(c,
             "%.120s: the last line of %s was cut short and is left aside; its run goes on from its "
             "checkpoint",
             pe_store_path(c->store), PE_RUNS_NAME);
    if (!status && r.kept == 0) {
        r.is_partial = 0;
        status       = pe_store_lines(c->store, 0, read_line, &r, &cut, err);
    }
    *kept = r.kept;
    return status;
}

/* ---------------------------------------------------------------- checkpoints --------------- */

typedef struct search {
    pe_compare *c;
    int         begun;
} search;

/* Is this checkpoint whole and that of a run of ours? */
static posenc_status read_checkpoint(void *self, const char *name, posenc_error *err)
{
    search       *s        = self;
    char         *path     = pe_store_checkpoint(s->c->store, name);
    char         *identity = path ? pe_checkpoint_identity(path) : NULL;
    char          file[64];
    const int64_t job    = identity ? find(s->c, identity) : -1;
    posenc_status status = path ? POSENC_OK : no_memory(err);
    snprintf(file, sizeof file, "%s.npz", name);
    if (!status && !identity)
        note(s->c, "%.120s: %s is damaged and is left aside; its run is trained from the beginning",
             pe_store_path(s->c->store), file);
    else if (!status && job < 0)
        status = refuse_stranger(s->c, file, identity, err);
    else if (!status && !pe_job_has_ended(s->c, job))
        s->begun++;
    free(identity);
    free(path);
    return status;
}

static posenc_status forget_damaged(void *self, const char *name, posenc_error *err)
{
    pe_compare *c        = self;
    char       *path     = pe_store_checkpoint(c->store, name);
    char       *identity = path ? pe_checkpoint_identity(path) : NULL;
    if (path && !identity)
        pe_store_forget(c->store, name);
    free(identity);
    free(path);
    return path ? POSENC_OK : no_memory(err);
}

/* ---------------------------------------------------------------- without --resume ---------- */

static posenc_status count_line(void *self, const char *line, int64_t number, posenc_error *err)
{
    int *count = self;
    (void)line;
    (void)number;
    (void)err;
    ++*count;
    return POSENC_OK;
}

static posenc_status count_name(void *self, const char *name, posenc_error *err)
{
    return count_line(self, name, 0, err);
}

static posenc_status check_empty(const pe_compare *c, posenc_error *err)
{
    int           finished = 0, begun = 0, cut;
    posenc_status status = pe_store_lines(c->store, 1, count_line, &finished, &cut, err);
    if (!status)
        status = pe_store_checkpoints(c->store, count_name, &begun, err);
    if (!status && finished + begun > 0)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "%.120s: it keeps %d finished runs and %d begun ones of a comparison that did not end; "
            "--resume goes on with it, or remove that directory",
            pe_store_path(c->store), finished, begun);
    return status;
}

/* ---------------------------------------------------------------- all ----------------------- */

posenc_status pe_resume_read(pe_compare *c, posenc_error *err)
{
    search        s    = {.c = c};
    int           kept = 0;
    posenc_status status;
    c->store = pe_store_create(c->config.directory);
    if (!c->store)
        return no_memory(err);
    status = name_runs(c, err);
    if (status || pe_ranks_here())
        return status;
    if (!c->config.resume)
        return check_empty(c, err);
    status = read_finished(c, &kept, err);
    if (!status)
        status = pe_store_checkpoints(c->store, read_checkpoint, &s, err);
    if (!status)
        note(c, "%d of %lld runs are finished already, %d more are begun", kept, (long long)pe_job_count(c),
             s.begun);
    return status;
}

posenc_status pe_resume_open(pe_compare *c, posenc_error *err)
{
    if (pe_ranks_here())
        return pe_store_make(c->store, err);
    posenc_status status = pe_store_open(c->store, err);
    if (!status)
        pe_directory_sweep(c->config.directory);
    if (!status)
        status = pe_store_checkpoints(c->store, forget_damaged, c, err);
    return status;
}

char *pe_resume_checkpoint(const pe_compare *c, int64_t job)
{
    return pe_store_checkpoint(c->store, name_of(c, job));
}

posenc_status pe_resume_keep(pe_compare *c, int64_t job, posenc_error *err)
{
    char         *line;
    const pe_job  j      = pe_job_at(c, job);
    posenc_status status = pe_job_write(&line, &j, err);
    if (!status)
        status = pe_store_append(c->store, line, err);
    if (!status)
        pe_store_forget(c->store, name_of(c, job));
    free(line);
    return status;
}
