/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.c: the state of a run as an .npz
 *
 * The file is an ordinary archive of arrays, so NumPy can look into it, its members carry checksums, and the
 * writer of libposenc_files makes it appear whole: a temporary file, fsync, rename. Whoever is killed while
 * writing leaves the checkpoint before this one. Beside the state stands the identity of the run as text;
 * everything is compared before the first number is taken over.
 */
#include "train/checkpoint.h"

#include "train/fail.h"

#include <posenc/files.h>
#include <string.h>
#include <unistd.h>

#define IDENTITY "run"

static size_t bytes_of(const pe_stretch *s)
{
    return (size_t)s->count * posenc_dtype_size(s->dtype);
}

/* 0 without memory. */
static int add(posenc_arrays *set, const pe_stretch *s)
{
    posenc_tensor *t = posenc_arrays_add(set, s->name, s->dtype, 1, &s->count);
    if (t)
        memcpy(t->data, s->data, bytes_of(s));
    return t != NULL;
}

posenc_status pe_checkpoint_write(const char *path, const char *identity, const pe_stretch *stretches,
                                  int count, posenc_error *err)
{
    posenc_arrays    set    = {0};
    const pe_stretch who    = {IDENTITY, (void *)identity, (int64_t)strlen(identity), POSENC_U8};
    int              enough = add(&set, &who);
    for (int i = 0; i < count && enough; i++)
        enough = add(&set, &stretches[i]);
    posenc_error  why    = {0};
    posenc_status status = enough ? posenc_arrays_write(&set, path, &why) : POSENC_MEMORY;
    posenc_arrays_free(&set);
    if (!enough)
        return pe_train_fail(err, POSENC_MEMORY, "%.120s: no memory to write a checkpoint", path);
    if (status)
        return pe_train_fail(err, status,
                             "%.180s; free some space and start again with --resume: what was kept "
                             "before is still there",
                             why.message);
    return POSENC_OK;
}

/* The array of that stretch, or NULL if the file has none of its type and length. */
static const posenc_tensor *find(const posenc_arrays *set, const pe_stretch *s)
{
    const posenc_tensor *t = posenc_arrays_find(set, s->name);
    return t && t->dtype == s->dtype && t->ndim == 1 && t->shape[0] == s->count ? t : NULL;
}

char *pe_checkpoint_identity(const char *path)
{
    posenc_arrays set  = {0};
    char         *text = NULL;
    if (!posenc_arrays_read(&set, path, NULL)) {
        const posenc_tensor *who = posenc_arrays_find(&set, IDENTITY);
        if (who && who->dtype == POSENC_U8 && who->ndim == 1)
            text = strndup(who->data, (size_t)who->shape[0]);
    }
    posenc_arrays_free(&set);
    return text;
}

static posenc_status check(const posenc_arrays *set, const char *path, const char *identity,
                           const pe_stretch *stretches, int count, posenc_error *err)
{
    const size_t         length = strlen(identity);
    const posenc_tensor *who    = posenc_arrays_find(set, IDENTITY);
    if (!who || who->dtype != POSENC_U8 || who->ndim != 1)
        return pe_train_fail(err, POSENC_FORMAT, "%.150s: it is no checkpoint of compare; remove it", path);
    if ((size_t)who->shape[0] != length || memcmp(who->data, identity, length))
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "%.150s: it is a checkpoint of another run; remove it or name another directory",
                             path);
    for (int i = 0; i < count; i++)
        if (!find(set, &stretches[i]))
            return pe_train_fail(err, POSENC_FORMAT,
                                 "%.150s: \"%s\" is missing or has another size; remove it", path,
                                 stretches[i].name);
    return POSENC_OK;
}

posenc_status pe_checkpoint_read(const char *path, const char *identity, const pe_stretch *stretches,
                                 int count, int *found, posenc_error *err)
{
    posenc_arrays set = {0};
    *found            = 0;
    if (access(path, F_OK))
        return POSENC_OK;
    posenc_status status = posenc_arrays_read(&set, path, err);
    if (!status)
        status = check(&set, path, identity, stretches, count, err);
    for (int i = 0; i < count && !status; i++)
        memcpy(stretches[i].data, find(&set, &stretches[i])->data, bytes_of(&stretches[i]));
    posenc_arrays_free(&set);
    *found = !status;
    return status;
}
