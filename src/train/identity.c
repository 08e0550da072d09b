/* SPDX-License-Identifier: MIT */
/*
 * identity.c: what decides the numbers of a run. Contract: identity.h.
 *
 * Precision  17 digits give a double back exactly.
 * Tasks      The definition of a task is not part of the identity: it changes with the version of the
 * program, which is.
 */
#include "train/identity.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 17, IDENTITY_FORMAT = 1 };

/* Fowler, Noll and Vo: offset basis and prime of 64 bits. */
uint64_t pe_fingerprint(const void *bytes, size_t n)
{
    const unsigned char *at   = bytes;
    uint64_t             hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static void add_text(json_t *json, const pe_run_config *c)
{
    const pe_text *t     = c->text;
    const uint64_t print = c->fingerprint ? c->fingerprint : pe_fingerprint(t->bytes, (size_t)t->size);
    json_object_set_new(json, "trains", json_string(c->bidirectional ? "masked bytes" : "next byte"));
    json_object_set_new(json, "L", json_integer(c->L));
    json_object_set_new(json, "windows", json_integer(c->windows));
    json_object_set_new(json, "text",
                        json_pack("{s:I, s:I, s:o}", "bytes", (json_int_t)t->size, "train_bytes",
                                  (json_int_t)t->train_size, "fingerprint",
                                  json_sprintf("%016" PRIx64, print)));
    if (c->sequel)
        json_object_set_new(json, "sequel", json_string(c->sequel->name));
}

static void add_task(json_t *json, const pe_run_config *c)
{
    json_object_set_new(json, "task", json_string(c->task->name));
    json_object_set_new(json, "sequences", json_integer(c->sequences));
    json_object_set_new(json, "longest", json_string(pe_task_length_name(c->longest)));
}

char *pe_run_identity(const pe_run_config *c)
{
    json_t *json =
        json_pack("{s:i, s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "identity",
                  IDENTITY_FORMAT, "version", posenc_version(), "encoding", c->spec, "seed",
                  (json_int_t)c->seed, "combine", pe_combine_name(c->entry.combine), "inject",
                  pe_inject_name(c->entry.inject), "d_model", (json_int_t)c->d_model, "layers",
                  (json_int_t)c->layers, "heads", (json_int_t)c->heads, "batch", (json_int_t)c->batch,
                  "steps", (json_int_t)c->steps, "warmup", (json_int_t)c->warmup, "learning_rate",
                  c->learning_rate, "weight_decay", c->weight_decay, "clip", c->clip);
    (c->task ? add_task : add_text)(json, c);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(json);
    return text;
}

void pe_run_name(char name[PE_RUN_NAME], const char *identity)
{
    snprintf(name, PE_RUN_NAME, "%016" PRIx64, pe_fingerprint(identity, strlen(identity)));
}

void pe_identity_difference(char *text, size_t n, const char *there, const char *here)
{
    json_t     *a = json_loads(there, 0, NULL), *b = json_loads(here, 0, NULL);
    const char *key;
    json_t     *mine;
    text[0] = 0;
    json_object_foreach(b, key, mine)
    {
        json_t *other = json_object_get(a, key);
        if (json_equal(mine, other) || !strcmp(key, "encoding") || !strcmp(key, "seed") || text[0])
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
}
