/* SPDX-License-Identifier: MIT */
/*
 * directory.c: a result directory appears whole, or not at all
 *
 * The idea   Everything is written into DIR.tmp.PID, which is then renamed to DIR. An older result is first
 *            renamed to DIR.tmp.PID.old and removed last, so that whoever looks sees the old result or the
 *            new one, and never a mixture.
 * Safety     Replacing a directory must not destroy anything else: it is replaced only if it is empty, or if
 *            its results.json says that `compare` wrote it and lists every file in it. One file more, and it
 *            is refused.
 * Surprise   "." cannot be renamed and is somebody's working directory: it is refused, with what to do.
 * Remains    DIR.tmp.PID if the process is killed while writing, DIR.tmp.PID.old if that falls between two
 *            renames. The next comparison that goes there removes them; an older result without a newer one
 *            goes back to DIR.
 */
#define _XOPEN_SOURCE 700 /* realpath, which glibc hides from plain POSIX */

#include "train/jobs/directory.h"

#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL = 32 };
#define TEMPORARY  ".tmp."
#define OLD_ENDING ".old"

static posenc_status refuse(posenc_error *err, const char *path, const char *why)
{
    return pe_fail(err, POSENC_ERROR_ARGUMENT, "%.120s: %s", path, why);
}

static int is_dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

char *pe_directory_join(const char *a, const char *between, const char *b)
{
    char *text = malloc(strlen(a) + strlen(between) + strlen(b) + 1);
    if (text)
        sprintf(text, "%s%s%s", a, between, b);
    return text;
}

/* "files" of the results.json in that directory, or NULL if there is none that compare wrote. A pipe of that
   name is not waited for. */
static json_t *read_list(const char *path)
{
    char       *name = pe_directory_join(path, "/", PE_RESULTS_NAME);
    struct stat about;
    const int   is_file = name && !stat(name, &about) && S_ISREG(about.st_mode);
    json_t     *json    = is_file ? json_load_file(name, 0, NULL) : NULL;
    json_t     *files   = json_incref(json_object_get(json, "files"));
    const char *format  = json_string_value(json_object_get(json, "format"));
    const int   ours    = format && !strcmp(format, PE_RESULTS_FORMAT) && json_is_array(files);
    json_decref(json);
    free(name);
    if (ours)
        return files;
    json_decref(files);
    return NULL;
}

/* Where ".tmp." and a process number, and then `ending`, end the name; NULL if they do not. */
static const char *temporary_tail(const char *name, const char *ending)
{
    const char  *tail   = strstr(name, TEMPORARY);
    const char  *number = tail ? tail + strlen(TEMPORARY) : "";
    const size_t digits = strspn(number, "0123456789");
    return digits && !strcmp(number + digits, ending) ? tail : NULL;
}

/* Also what a kill leaves of such a file: NAME.tmp.PID. The list itself is written first, so of it that may
   be all. */
static int is_listed(const json_t *files, const char *name)
{
    const char  *tail   = temporary_tail(name, "");
    const size_t length = tail ? (size_t)(tail - name) : strlen(name);
    if (tail && length == strlen(PE_RESULTS_NAME) && !strncmp(name, PE_RESULTS_NAME, length))
        return 1;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *known = json_string_value(json_array_get(files, i));
        if (known && strlen(known) == length && !strncmp(known, name, length))
            return 1;
    }
    return 0;
}

static posenc_status check_existing(const char *path, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    DIR          *dir    = opendir(path);
    if (!dir && errno == ENOTDIR)
        return refuse(err, path, "it exists and is no directory; name another one with -o");
    if (!dir)
        return pe_fail(err, POSENC_ERROR_FILE, "%.100s: it cannot be read: %s", path, strerror(errno));
    json_t *files = read_list(path);
    for (const struct dirent *entry; !status && (entry = readdir(dir));)
        if (!is_dot(entry->d_name) && !is_listed(files, entry->d_name))
            status = pe_fail(err, POSENC_ERROR_ARGUMENT,
                             "%.100s: it holds \"%.60s\", which compare did not write and will not replace; "
                             "name another directory with -o",
                             path, entry->d_name);
    closedir(dir);
    json_decref(files);
    return status;
}

char *pe_directory_trimmed(const char *path)
{
    char *real = realpath(path, NULL);
    char *text = real ? real : strdup(path);
    for (size_t n = text ? strlen(text) : 0; n > 1 && text[n - 1] == '/'; n--)
        text[n - 1] = 0;
    return text;
}

static void release(pe_directory *d)
{
    free(d->path);
    free(d->temporary);
    *d = (pe_directory){0};
}

posenc_status pe_directory_open(pe_directory *d, const char *path, posenc_error *err)
{
    char          tail[TAIL];
    posenc_status status = POSENC_OK;
    snprintf(tail, sizeof tail, TEMPORARY "%ld", (long)getpid());
    *d           = (pe_directory){.path = pe_directory_trimmed(path)};
    d->temporary = d->path ? pe_directory_join(d->path, tail, "") : NULL;
    if (!d->temporary)
        status = pe_fail(err, POSENC_ERROR_MEMORY, "%.100s: not enough memory for its name", path);
    else if (mkdir(d->temporary, 0777))
        status = errno == ENOENT ? refuse(err, path, "its parent directory does not exist; create that first")
                                 : pe_fail(err, POSENC_ERROR_FILE, "%.100s: it cannot be created: %s", path,
                                           strerror(errno));
    if (status)
        release(d);
    return status;
}

posenc_status pe_directory_check(const char *path, posenc_error *err)
{
    struct stat   about;
    pe_directory  d;
    const char   *slash = strrchr(path, '/');
    posenc_status status;
    if (!*path || is_dot(slash && slash[1] ? slash + 1 : path))
        return refuse(err, *path ? path : "-o",
                      "compare replaces the whole directory; name a new one with -o");
    status = lstat(path, &about) ? POSENC_OK : check_existing(path, err);
    if (!status)
        status = pe_directory_open(&d, path, err);
    if (!status)
        pe_directory_discard(&d);
    return status;
}

/* Removes a flat directory; what is not a file in it stays, and so does the directory then. */
static void remove_flat(const char *path)
{
    for (int tries = 2; tries > 0; tries--) { /* the system may fail in the middle of a folder */
        DIR *dir = opendir(path);
        for (const struct dirent *entry; dir && (entry = readdir(dir));) {
            char *name = is_dot(entry->d_name) ? NULL : pe_directory_join(path, "/", entry->d_name);
            if (name)
                unlink(name);
            free(name);
        }
        if (dir)
            closedir(dir);
        if (!rmdir(path))
            return;
    }
}

/* Is `name` that of a half-written result of `base`, or with OLD_ENDING that of an older one renamed for it?
 */
static int is_remainder(const char *name, const char *base, const char *ending)
{
    const size_t n = strlen(base);
    return !strncmp(name, base, n) && temporary_tail(name + n, ending) == name + n;
}

/* In its folder, what remained and holds nothing that compare has not written; what had been renamed goes
   back where nothing came in its place. */
void pe_directory_sweep(const char *path)
{
    char       *whole = pe_directory_trimmed(path);
    const char *slash = whole ? strrchr(whole, '/') : NULL, *base = slash ? slash + 1 : whole;
    char       *folder = slash ? strndup(whole, (size_t)(base - whole)) : strdup("./");
    DIR        *dir    = whole && folder ? opendir(folder) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const int   old   = is_remainder(entry->d_name, base, OLD_ENDING);
        char       *found = old || is_remainder(entry->d_name, base, "")
                                ? pe_directory_join(folder, entry->d_name, "")
                                : NULL;
        struct stat about; /* what is behind a link is somebody else's */
        if (found && (lstat(found, &about) || !S_ISDIR(about.st_mode))) {
            free(found);
            continue;
        }
        const int goes_back = found && old && access(whole, F_OK) && !rename(found, whole);
        if (found && !goes_back && !check_existing(found, NULL))
            remove_flat(found);
        free(found);
    }
    if (dir)
        closedir(dir);
    free(folder);
    free(whole);
}

void pe_directory_discard(pe_directory *d)
{
    if (d->temporary)
        remove_flat(d->temporary);
    release(d);
}

/* rename() itself replaces an empty directory; a full one is renamed first and back if that fails. */
static int replace(const pe_directory *d, const char *old)
{
    if (!rename(d->temporary, d->path))
        return 0;
    if ((errno != ENOTEMPTY && errno != EEXIST) || rename(d->path, old))
        return -1;
    if (rename(d->temporary, d->path)) {
        const int reason = errno;
        (void)!rename(old, d->path);
        errno = reason;
        return -1;
    }
    remove_flat(old);
    return 0;
}

posenc_status pe_directory_commit(pe_directory *d, posenc_error *err)
{
    char         *old    = pe_directory_join(d->temporary, "", OLD_ENDING);
    posenc_status status = POSENC_OK;
    if (!old)
        status = pe_fail(err, POSENC_ERROR_MEMORY, "%.100s: not enough memory for its name", d->path);
    else if (access(d->path, F_OK) == 0 &&
             check_existing(d->path, err)) /* somebody may have written there since */
        status = POSENC_ERROR_FILE;
    else if (replace(d, old))
        status = pe_fail(err, POSENC_ERROR_FILE, "%.100s: it cannot be put in place: %s", d->path,
                         strerror(errno));
    free(old);
    if (status)
        pe_directory_discard(d);
    else
        release(d);
    return status;
}
