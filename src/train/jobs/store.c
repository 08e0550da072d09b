/* SPDX-License-Identifier: MIT */
/*
 * store.c: what a comparison has done, saved while it goes on and afterwards
 *
 * Why next to DIR  DIR appears whole and holds the older result until then; what is unfinished has a place of
 *                  its own, so that nobody takes it for a result.
 * A run            is found again by its identity (run.h): the very same run, or none. So the same command
 *                  goes on where it was, and a command that asks for more - further seeds, another encoding -
 *                  takes over what it shares with the one before. Its file is there whole or not at all; the
 *                  finished run takes the place of its checkpoint.
 * Nothing          is thrown away unasked. Without --resume a directory that holds something is refused, and
 *                  with it one that holds runs of another comparison; both sentences say what to do. What
 *                  cannot be read is ignored with a note, and its run trained again.
 * The lock         is fcntl's: it goes with the process, however that ends. On file systems without locks
 *                  there is none.
 * Links            are not followed: where DIR.partial or a run in it is one, or anything but a folder and
 *                  files, it is refused before it is read.
 * Removing         takes runs, lock and temporary files, and nothing else.
 */
#define _XOPEN_SOURCE 700 /* fcntl's locks */

#include "train/jobs/store.h"

#include "base/shared/compiler.h"
#include "train/jobs/directory.h"
#include "base/status.h"
#include "train/jobs/job.h"
#include "train/jobs/ranks.h"
#include "train/jobs/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NONE = -1, LONGEST_NOTE = 640, LONGEST_DIFFERENCE = 240, DIGITS = PE_RUN_NAME - 1 };
/* What an entry of DIR.partial is. */
enum { FOREIGN, RUN = 1, TEMPORARY = 2, LOCK = 4 };

struct pe_store {
    char *path;                 /* DIR.partial */
    char *older;                /* DIR/runs.npz */
    int   lock;                 /* a descriptor, or NONE */
    char (*names)[PE_RUN_NAME]; /* [rates, runs] for each learning rate that a run may have */
    int64_t runs;
};

static posenc_status no_memory(posenc_error *err)
{
    return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory to look for saved runs");
}

static posenc_status refuse_file(const pe_store *s, const char *what, posenc_error *err)
{
    return pe_fail(
        err, POSENC_ERROR_FILE,
        "%.150s: %s: %s; fix that and start again with --resume: what was saved before is still there",
        s->path, what, strerror(errno));
}

/* The names of all runs, where each that waits for its rate has that number; 0 without memory. */
static int name_at_rate(pe_compare *c, int rate)
{
    pe_store *s      = c->store;
    int       enough = 1;
    pe_job_set_rates(c, rate);
    for (int64_t job = 0; job < s->runs && enough; job++) {
        const pe_job j        = pe_job_at(c, job);
        char        *identity = pe_run_identity(&j.config);
        enough                = identity != NULL;
        if (enough)
            pe_run_name(s->names[rate * s->runs + job], identity);
        free(identity);
    }
    return enough;
}

static posenc_status name_runs(pe_compare *c, posenc_error *err)
{
    const int rates  = c->trials->rate_count;
    pe_store *s      = calloc(1, sizeof *s);
    char     *result = pe_directory_trimmed(c->config.directory);
    c->store         = s;
    if (s && result) {
        s->lock  = NONE;
        s->path  = pe_directory_join(result, ".partial", "");
        s->older = pe_directory_join(result, "/", PE_RUNS_NAME);
        s->runs  = pe_job_count(c);
        s->names = malloc((size_t)(rates * s->runs) * sizeof *s->names);
    }
    free(result);
    int enough = s && s->path && s->older && s->names;
    for (int rate = rates - 1; rate >= 0 && enough; rate--) /* ends with the first */
        enough = name_at_rate(c, rate);
    return enough ? POSENC_OK : no_memory(err);
}

void pe_store_free(pe_store *store)
{
    if (!store)
        return;
    if (store->lock != NONE)
        close(store->lock);
    free(store->path);
    free(store->older);
    free(store->names);
    free(store);
}

static const char *name_of(const pe_store *s, int64_t job, int rate)
{
    return s->names[rate * s->runs + job];
}

char *pe_store_file(const pe_compare *c, int64_t job)
{
    char name[DIGITS + sizeof ".npz"];
    snprintf(name, sizeof name, "%s.npz", name_of(c->store, job, pe_job_at(c, job).rate));
    return pe_directory_join(c->store->path, "/", name);
}

/* ---------------------------------------------------------------- entries ------------------- */

static int kind_of(const char *entry)
{
    if (!strcmp(entry, "lock"))
        return LOCK;
    if (strspn(entry, "0123456789abcdef") != DIGITS || strncmp(entry + DIGITS, ".npz", 4))
        return FOREIGN;
    entry += DIGITS + 4;
    return !*entry ? RUN : !strncmp(entry, ".tmp.", 5) ? TEMPORARY : FOREIGN;
}

static void remove_those(const pe_store *s, int kinds)
{
    for (int tries = 2; tries > 0; tries--) { /* the system may fail in the middle of a folder */
        DIR *dir = opendir(s->path);
        for (const struct dirent *entry; dir && (entry = readdir(dir));)
            if (kind_of(entry->d_name) & kinds)
                unlinkat(dirfd(dir), entry->d_name, 0);
        if (dir)
            closedir(dir);
    }
}

/* What is looked at, and what was found in it. */
typedef struct search {
    pe_compare *c;
    int         is_early; /* for trials, of runs whose rate is not known yet: nothing is refused or noted */
    int         is_older; /* a result, of which nothing is refused */
    const char *file;     /* its name, for sentences */
    int         finished, begun, older;       /* older: how many of the finished are from a result */
    int         strangers;                    /* runs of a result that are none of ours */
    char        stranger[LONGEST_DIFFERENCE]; /* how one differs */
} search;

/* ---------------------------------------------------------------- words --------------------- */

PE_PRINTF(2, 3) static void note(pe_compare *c, const char *format, ...)
{
    char    text[LONGEST_NOTE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    char *longer = pe_directory_join(c->notes ? c->notes : "", text, "\n");
    if (longer) {
        free(c->notes);
        c->notes = longer;
    }
}

/* How the run of that identity differs from the most similar one of ours on the same, the text or that
   task. */
static void describe_difference(char *text, size_t n, const pe_compare *c, const char *identity)
{
    int least = -1;
    snprintf(text, n, "an encoding, task or seed not asked for");
    for (int64_t job = 0; job < pe_job_count(c); job++) {
        const pe_job j = pe_job_at(c, job);
        char         task[64], difference[LONGEST_DIFFERENCE];
        snprintf(task, sizeof task, "\"task\":\"%.40s\"", j.cell ? j.cell->task->name : "");
        if (j.cell ? !strstr(identity, task) : strstr(identity, "\"task\":") != NULL)
            continue;
        char     *mine = pe_run_identity(&j.config);
        const int count =
            mine ? pe_run_identity_difference(difference, sizeof difference, identity, mine) : -1;
        if (count > 0 && (least < 0 || count < least)) {
            least = count;
            snprintf(text, n, "%s", difference);
        }
        free(mine);
    }
}

/* A file was saved by a comparison that is not this one. */
static posenc_status refuse_foreign_run(const search *s, const char *identity, posenc_error *err)
{
    char difference[LONGEST_DIFFERENCE];
    describe_difference(difference, sizeof difference, s->c, identity);
    return pe_fail(
        err, POSENC_ERROR_ARGUMENT,
        "%.120s: %.120s is a run of another comparison (%s); give the same command, another -o, or remove it",
        s->c->store->path, s->file, difference);
}

/* ---------------------------------------------------------------- the lock ------------------ */

static int open_lock(const pe_store *s, int flags)
{
    char     *path = pe_directory_join(s->path, "/lock", "");
    const int lock = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0666) : NONE;
    free(path);
    return lock;
}

static posenc_status refuse_in_use(const pe_store *s, posenc_error *err)
{
    return pe_fail(
        err, POSENC_ERROR_ARGUMENT,
        "%.150s: another posenc compare is working there; wait for it or name another directory with -o",
        s->path);
}

/* Who looks only must not take it, nor make it. */
static posenc_status check_lock(const pe_store *s, posenc_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int    lock  = open_lock(s, 0);
    const int    taken = lock != NONE && !fcntl(lock, F_GETLK, &whole) && whole.l_type != F_UNLCK;
    if (lock != NONE)
        close(lock);
    return taken ? refuse_in_use(s, err) : POSENC_OK;
}

/* ---------------------------------------------------------------- looking ------------------- */

/* Is it that of a run with another rate than it has, or than it has so far? */
static int may_be_ours(const pe_compare *c, int64_t job, const char *name)
{
    for (int rate = 0; rate < c->trials->rate_count; rate++)
        if (!strcmp(name_of(c->store, job, rate), name))
            return 1;
    return 0;
}

static int has_identity(const pe_compare *c, int64_t job, const char *name, const char *identity)
{
    const pe_job j = pe_job_at(c, job);
    if (j.waits || strcmp(name_of(c->store, job, j.rate), name) != 0)
        return 0;
    char     *mine = pe_run_identity(&j.config);
    const int same = mine && !strcmp(mine, identity);
    free(mine);
    return same;
}

/* Takes one run over. Two SPECs may mean the same on a task, where sizes are others than on the text: then it
   is the result of both. */
static posenc_status take_run(search *s, const posenc_arrays *set, const char *prefix, const char *path,
                              posenc_error *err)
{
    char         name[PE_RUN_NAME];
    int          is_finished, is_ours = 0;
    char        *identity = pe_run_file_identity(set, prefix, &is_finished);
    posenc_error why;
    if (!identity && s->is_early)
        return POSENC_OK;
    if (!identity) {
        note(s->c, "%.120s: %s is damaged and is ignored; its run is trained from the beginning",
             s->c->store->path, s->file);
        return POSENC_OK;
    }
    pe_run_name(name, identity);
    for (int64_t job = 0; job < pe_job_count(s->c); job++) {
        const pe_job j = pe_job_at(s->c, job);
        is_ours |= may_be_ours(s->c, job, name);
        if (atomic_load(j.ended) || !has_identity(s->c, job, name, identity))
            continue;
        if (!is_finished)
            s->begun += !s->is_early;
        else if (!pe_job_take(&j, set, prefix, path, &why)) {
            s->finished++;
            s->older += s->is_older;
        } else if (!s->is_early)
            note(s->c, "%.200s; its run is trained again", why.message);
    }
    if (!is_ours && s->is_older && !s->is_early && !s->strangers++)
        describe_difference(s->stranger, sizeof s->stranger, s->c, identity);
    const posenc_status status =
        is_ours || s->is_older || s->is_early ? POSENC_OK : refuse_foreign_run(s, identity, err);
    free(identity);
    return status;
}

/* What is done with the file of a run. */
enum { COUNT, TAKE, CLEAN };

/* With the arrays of one run; a file that is damaged has none. */
static posenc_status look_into(search *s, int purpose, const posenc_arrays *set, const char *path,
                               posenc_error *err)
{
    int is_finished;
    if (purpose == TAKE)
        return take_run(s, set, "", path, err);
    char *identity = pe_run_file_identity(set, "", &is_finished);
    s->finished += is_finished;
    s->begun += !is_finished;
    if (purpose == CLEAN && !identity)
        unlink(path);
    free(identity);
    return POSENC_OK;
}

/* What we have put into `folder` ourselves is a regular file. A link would lead to somebody else's, a pipe
   nowhere. */
static posenc_status check_file(const char *folder, const char *name, posenc_error *err)
{
    struct stat about;
    char       *path   = pe_directory_join(folder, "/", name);
    const int   is_odd = path && !lstat(path, &about) && !S_ISREG(about.st_mode);
    if (!path)
        return no_memory(err);
    free(path);
    if (!is_odd)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_ARGUMENT,
        "%.120s: %.60s is %s, which compare did not put there; remove it, or name another directory "
        "with -o",
        folder, name, S_ISLNK(about.st_mode) ? "a symbolic link" : "no regular file");
}

static posenc_status check_folder(const pe_store *s, posenc_error *err)
{
    struct stat about;
    if (lstat(s->path, &about) || S_ISDIR(about.st_mode))
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_ARGUMENT,
        "%.120s: it is %s, and compare keeps its runs in a directory of its own; remove it, or name "
        "another directory with -o",
        s->path, S_ISLNK(about.st_mode) ? "a symbolic link" : "no directory");
}

static posenc_status for_files(search *s, int purpose, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    DIR          *dir    = opendir(s->c->store->path);
    for (const struct dirent *entry; dir && !status && (entry = readdir(dir));) {
        posenc_arrays set = {0};
        char         *path =
            kind_of(entry->d_name) == RUN ? pe_directory_join(s->c->store->path, "/", entry->d_name) : NULL;
        s->file = entry->d_name;
        if (kind_of(entry->d_name) != FOREIGN)
            status = check_file(s->c->store->path, entry->d_name, err);
        if (path && !status && posenc_arrays_read(&set, path, NULL) != POSENC_ERROR_MEMORY)
            status = look_into(s, purpose, &set, path, err);
        posenc_arrays_free(&set);
        free(path);
    }
    if (dir)
        closedir(dir);
    return status;
}

/* The runs of a finished result: those that an array NAME/run stands for. */
static posenc_status take_older(search *s, posenc_error *err)
{
    posenc_arrays set    = {0};
    const char   *path   = s->c->store->older;
    posenc_status status = check_file(s->c->config.directory, PE_RUNS_NAME, err);
    if (!status && !access(path, F_OK))
        status = posenc_arrays_read(&set, path, err);
    s->is_older = 1;
    if (status == POSENC_ERROR_FORMAT && s->is_early)
        status = POSENC_OK;
    if (status == POSENC_ERROR_FORMAT) {
        note(s->c, "%.150s is damaged and is ignored; its runs are trained again", path);
        status = POSENC_OK;
    }
    for (int i = 0; i < set.count && !status; i++) {
        const char *slash = strchr(set.items[i].name, '/');
        char        prefix[PE_RUN_NAME + 1];
        if (!slash || strcmp(slash, "/run") != 0 || slash - set.items[i].name != DIGITS)
            continue;
        snprintf(prefix, sizeof prefix, "%.*s/", DIGITS, set.items[i].name);
        status = take_run(s, &set, prefix, path, err);
    }
    posenc_arrays_free(&set);
    s->is_older = 0;
    if (!status && s->strangers && !s->older && !s->finished)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "%.120s: it holds a result with nothing of this comparison (%s); name another -o, or leave out "
            "--resume to replace it",
            s->c->config.directory, s->stranger);
    return status;
}

/* Everything that is finished, from an older result only where DIR.partial has nothing. */
static posenc_status take_all(search *s, int is_early, posenc_error *err)
{
    s->is_early          = is_early;
    posenc_status status = for_files(s, TAKE, err);
    if (!status && s->finished == s->older)
        status = take_older(s, err);
    return status;
}

posenc_status pe_store_take(pe_compare *c, posenc_error *err)
{
    search s = {.c = c};
    return c->config.resume && c->store ? take_all(&s, 1, err) : POSENC_OK;
}

/* The trials first, as their outcome decides what the others are. */
static posenc_status take_with_rates(search *s, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (s->c->trials->rate_count > 1) {
        status = take_all(s, 1, err);
        pe_job_choose_rates(s->c);
    }
    return status ? status : take_all(s, 0, err);
}

posenc_status pe_store_look(pe_compare *c, posenc_error *err)
{
    search        s      = {.c = c};
    posenc_status status = name_runs(c, err);
    if (status || pe_ranks_here())
        return status;
    if (!(status = check_folder(c->store, err)))
        status = check_lock(c->store, err);
    if (status)
        return status;
    if (c->config.resume)
        status = take_with_rates(&s, err);
    else
        status = for_files(&s, COUNT, err);
    if (!status && !c->config.resume && s.finished + s.begun > 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%.120s: it holds %d finished and %d unfinished runs of a comparison that did not "
                       "end; --resume continues it, or remove that directory",
                       c->store->path, s.finished, s.begun);
    if (status || !c->config.resume)
        return status;
    if (!status)
        note(c, "%d of %lld runs are finished already, %d more have begun", s.finished,
             (long long)pe_job_count(c), s.begun);
    return status;
}

/* ---------------------------------------------------------------- writing ------------------- */

static posenc_status take_lock(pe_store *s, posenc_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    s->lock            = open_lock(s, O_CREAT);
    if (s->lock == NONE)
        return refuse_file(s, "it cannot be written", err);
    if (fcntl(s->lock, F_SETLK, &whole) && (errno == EACCES || errno == EAGAIN))
        return refuse_in_use(s, err);
    return POSENC_OK;
}

posenc_status pe_store_open(pe_compare *c, posenc_error *err)
{
    search s = {.c = c};
    if (mkdir(c->store->path, 0777) && errno != EEXIST)
        return refuse_file(c->store, "it cannot be made", err);
    if (pe_ranks_here())
        return POSENC_OK;
    posenc_status status = check_folder(c->store, err);
    if (!status)
        status = take_lock(c->store, err);
    if (status)
        return status;
    remove_those(c->store, TEMPORARY);
    pe_directory_sweep(c->config.directory);
    return for_files(&s, CLEAN, err);
}

posenc_status pe_store_save(const pe_compare *c, int64_t job, posenc_error *err)
{
    pe_run_file   k;
    const pe_job  j      = pe_job_at(c, job);
    char         *path   = pe_store_file(c, job);
    posenc_status status = pe_job_list(&k, &j, err);
    if (!status)
        status = path ? pe_run_file_write(path, &k, err) : no_memory(err);
    free(k.identity);
    free(path);
    return status;
}

/* A run as part of the archive, except a second one of the same name. */
static posenc_status add_run(posenc_arrays *set, const pe_job *job, const char *name, posenc_error *err)
{
    char        prefix[PE_RUN_NAME + 1], first[PE_RUN_NAME + 4];
    pe_run_file k;
    snprintf(prefix, sizeof prefix, "%s/", name);
    snprintf(first, sizeof first, "%srun", prefix);
    if (posenc_arrays_find(set, first))
        return POSENC_OK;
    posenc_status status = pe_job_list(&k, job, err);
    if (!status && !pe_run_file_add(set, prefix, &k))
        status = pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory to write the runs");
    free(k.identity);
    return status;
}

posenc_status pe_store_write(const char *path, const pe_compare *c, posenc_error *err)
{
    posenc_arrays set    = {0};
    posenc_status status = POSENC_OK;
    for (int64_t job = 0; job < pe_job_count(c) && !status; job++) {
        const pe_job j = pe_job_at(c, job);
        if (atomic_load(j.ended) == 1 + POSENC_OK)
            status = add_run(&set, &j, name_of(c->store, job, j.rate), err);
    }
    if (!status)
        status = posenc_arrays_write(&set, path, err);
    posenc_arrays_free(&set);
    return status;
}

void pe_store_remove(pe_store *store)
{
    remove_those(store, RUN | TEMPORARY | LOCK);
    rmdir(store->path);
    close(store->lock);
    store->lock = NONE;
}
