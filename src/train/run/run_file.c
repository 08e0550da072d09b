/* SPDX-License-Identifier: MIT */
/*
 * run_file.c: a run as an .npz
 *
 * The file is an ordinary archive of arrays, so NumPy can look into it, its members carry checksums, and the
 * writer of libposenc_files makes it appear whole: a temporary file, fsync, rename. Whoever is killed while
 * writing leaves what was there before. Beside the arrays stand the identity of the run as text ("run") and
 * whether it is finished; everything is compared before the first number is taken over.
 *
 * Of the identity   17 digits give a double back exactly. The definition of a task is not part of it: that
 *                   changes with the version of the program, which is.
 */
#include "files/arrays/json.h"
#include "train/run/run.h"

#include "base/status.h"
#include "base/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define IDENTITY "run"
#define FINISHED "finished"

enum { LONGEST_NAME = 96, DIGITS = 17, IDENTITY_FORMAT = 1 };

void pe_run_file_list(pe_run_file *k, const char *name, void *data, posenc_dtype dtype, int64_t rows,
                      int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    k->arrays[k->count++] =
        (posenc_array){.name   = (char *)name,
                       .tensor = posenc_tensor_contiguous(data, dtype, columns ? 2 : 1, shape)};
}

size_t pe_run_file_bytes(const posenc_array *a)
{
    return (size_t)pe_tensor_elements(&a->tensor) * posenc_dtype_size(a->tensor.dtype);
}

static int add_array(posenc_arrays *set, const char *prefix, const posenc_array *a)
{
    char name[LONGEST_NAME];
    snprintf(name, sizeof name, "%s%s", prefix, a->name);
    posenc_tensor *t = posenc_arrays_add(set, name, a->tensor.dtype, a->tensor.ndim, a->tensor.shape);
    if (t)
        memcpy(t->data, a->tensor.data, pe_run_file_bytes(a));
    return t != NULL;
}

int pe_run_file_add(posenc_arrays *set, const char *prefix, const pe_run_file *k)
{
    uint8_t     finished = k->is_finished != 0;
    pe_run_file head     = {0};
    pe_run_file_list(&head, IDENTITY, k->identity, POSENC_DTYPE_U8, (int64_t)strlen(k->identity), 0);
    pe_run_file_list(&head, FINISHED, &finished, POSENC_DTYPE_U8, 1, 0);
    int enough = add_array(set, prefix, &head.arrays[0]) && add_array(set, prefix, &head.arrays[1]);
    for (int i = 0; i < k->count && enough; i++)
        enough = add_array(set, prefix, &k->arrays[i]);
    return enough;
}

posenc_status pe_run_file_write(const char *path, const pe_run_file *k, posenc_error *err)
{
    posenc_arrays set    = {0};
    posenc_error  why    = {0};
    const int     enough = pe_run_file_add(&set, "", k);
    posenc_status status = enough ? posenc_arrays_write(&set, path, &why) : POSENC_ERROR_MEMORY;
    posenc_arrays_free(&set);
    if (!enough)
        return pe_fail(err, POSENC_ERROR_MEMORY, "%.120s: not enough memory to save a run", path);
    if (status)
        return pe_fail(
            err, status,
            "%.180s; free some space and start again with --resume: what was saved before is still there",
            why.message);
    return POSENC_OK;
}

static const posenc_tensor *find_array(const posenc_arrays *set, const char *prefix, const char *name)
{
    char whole[LONGEST_NAME];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return posenc_arrays_find(set, whole);
}

static int is_like(const posenc_tensor *t, const posenc_tensor *wanted)
{
    int same = t && t->dtype == wanted->dtype && t->ndim == wanted->ndim;
    for (int32_t a = 0; same && a < t->ndim; a++)
        same = t->shape[a] == wanted->shape[a];
    return same;
}

char *pe_run_file_identity(const posenc_arrays *set, const char *prefix, int *is_finished)
{
    const posenc_tensor *who      = find_array(set, prefix, IDENTITY),
                        *finished = find_array(set, prefix, FINISHED);
    const int is_mark =
        finished && finished->dtype == POSENC_DTYPE_U8 && finished->ndim == 1 && finished->shape[0] == 1;
    *is_finished = is_mark && *(const uint8_t *)finished->data;
    return who && who->dtype == POSENC_DTYPE_U8 && who->ndim == 1 ? strndup(who->data, (size_t)who->shape[0])
                                                                  : NULL;
}

posenc_status pe_run_file_take(const pe_run_file *k, const posenc_arrays *set, const char *prefix,
                               const char *path, posenc_error *err)
{
    int       is_finished;
    char     *identity = pe_run_file_identity(set, prefix, &is_finished);
    const int is_run = identity != NULL, is_same = is_run && !strcmp(identity, k->identity);
    free(identity);
    if (!is_run)
        return pe_fail(err, POSENC_ERROR_FORMAT, "%.150s: it is not a checkpoint; remove it", path);
    if (!is_same)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%.150s: it is a checkpoint of another run; remove it or name another directory",
                       path);
    for (const posenc_array *a = k->arrays; a < k->arrays + k->count; a++)
        if (!is_like(find_array(set, prefix, a->name), &a->tensor))
            return pe_fail(err, POSENC_ERROR_FORMAT,
                           "%.150s: \"%s\" is missing or has another size; remove it", path, a->name);
    for (const posenc_array *a = k->arrays; a < k->arrays + k->count; a++)
        memcpy(a->tensor.data, find_array(set, prefix, a->name)->data, pe_run_file_bytes(a));
    return POSENC_OK;
}

/* ---------------------------------------------------------------- identity ------------------ */

/* Fowler, Noll and Vo: offset basis and prime of 64 bits. */
uint64_t pe_run_fingerprint(const void *bytes, size_t n)
{
    const unsigned char *at   = bytes;
    uint64_t             hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

uint64_t pe_run_text_fingerprint(const pe_text *text)
{
    return pe_run_fingerprint(text->ids, (size_t)text->size * sizeof *text->ids);
}

static void add_text(json_t **json, const pe_run_config *c)
{
    const pe_text *t     = c->text;
    const uint64_t print = c->fingerprint ? c->fingerprint : pe_run_text_fingerprint(t);
    pe_json_set(json, "trains", json_string(c->bidirectional ? "masked bytes" : "next byte"));
    pe_json_set(json, "L", json_integer(c->L));
    pe_json_set(json, "reach", json_integer(c->reach));
    pe_json_set(json, "windows", json_integer(c->windows));
    pe_json_set(json, "text",
                json_pack("{s:I, s:I, s:o}", "bytes", (json_int_t)t->size, "train_bytes",
                          (json_int_t)t->train_size, "fingerprint", json_sprintf("%016" PRIx64, print)));
    if (t->spared)
        pe_json_set(json, "spared_bytes", json_integer(t->spared));
    if (t->vocabulary)
        pe_json_set(json, "vocabulary", json_integer(t->vocabulary));
    if (c->followup)
        pe_json_set(json, "followup", json_string(c->followup->name));
}

static void add_task(json_t **json, const pe_run_config *c)
{
    pe_json_set(json, "task", json_string(c->task->name));
    pe_json_set(json, "sequences", json_integer(c->sequences));
    pe_json_set(json, "longest", json_string(pe_task_length_name(c->longest)));
}

char *pe_run_identity(const pe_run_config *c)
{
    json_t *json =
        json_pack("{s:i, s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "identity",
                  IDENTITY_FORMAT, "version", posenc_version(), "encoding", c->spec, "seed",
                  (json_int_t)c->seed, "combine", pe_spec_combine_name(c->entry.combine), "inject",
                  pe_spec_inject_name(c->entry.inject), "d_model", (json_int_t)c->d_model, "layers",
                  (json_int_t)c->layers, "heads", (json_int_t)c->heads, "batch", (json_int_t)c->batch,
                  "steps", (json_int_t)c->steps, "warmup", (json_int_t)c->warmup, "learning_rate",
                  c->learning_rate, "weight_decay", c->weight_decay, "clip", c->clip);
    if (c->places.kind != PE_IN_ORDER)
        pe_json_set(&json, "positions",
                    json_sprintf("%s:%lld", pe_run_positions_name(c->places.kind),
                                 (long long)c->places.count));
    (c->task ? add_task : add_text)(&json, c);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(json);
    return text;
}

void pe_run_name(char name[PE_RUN_NAME], const char *identity)
{
    snprintf(name, PE_RUN_NAME, "%016" PRIx64, pe_run_fingerprint(identity, strlen(identity)));
}

int pe_run_identity_difference(char *text, size_t n, const char *there, const char *here)
{
    json_t     *a = json_loads(there, 0, NULL), *b = json_loads(here, 0, NULL);
    const char *key;
    json_t     *mine;
    int         count = 0;
    text[0]           = 0;
    json_object_foreach(b, key, mine)
    {
        json_t *other = json_object_get(a, key);
        if (json_equal(mine, other) || !strcmp(key, "encoding") || !strcmp(key, "seed") || count++)
            continue;
        if (json_is_object(mine)) {
            snprintf(text, n, "the %s is another", key);
            continue;
        }
        char *x = other ? json_dumps(other, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        char *y = json_dumps(mine, JSON_ENCODE_ANY | JSON_COMPACT);
        snprintf(text, n, "%s is %.80s there and %.80s here", key, x ? x : "missing", y ? y : "?");
        free(x);
        free(y);
    }
    json_decref(a);
    json_decref(b);
    return count;
}
