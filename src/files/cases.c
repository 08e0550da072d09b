/* SPDX-License-Identifier: MIT */
/*
 * cases.c: the list of reference cases of a folder
 *
 * The idea  manifest.json holds `entries`; each names a file, an encoding and its settings.
 *           Settings become the text that posenc_encoding_create reads, so nothing here knows an
 *           encoding or a setting; only what belongs to the run (causal, q_offset) and to subjects
 *           that are no encodings (table, maps, heads) is taken out.
 * Safety    Text becomes settings, and settings text has separators: a string "half dim=4" must not
 *           become two settings. Whatever is not a plain word stays JSON, in quotes, and every room
 *           refuses it by name.
 * Strict    Duplicate keys, a wrong type, a missing name: the manifest is refused with line and
 *           column (syntax) or with the entry's number (content). Other keys are documentation and ignored.
 */
#include "files/parse.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/arrays/file.h"
#include "files/arrays/json.h"

enum { LONGEST = 64 << 20 };

/* ---------------------------------------------------------------- settings as text ---------- */

static int is_plain(const char *word)
{
    return *word &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") == strlen(word);
}

static void put_scalar(FILE *to, const json_t *value)
{
    char real[PE_TEXT_REAL];
    if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", to);
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fputs(pe_text_real(real, json_real_value(value)), to);
    else if (json_is_string(value) && is_plain(json_string_value(value)))
        fputs(json_string_value(value), to);
    else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        fputs(text ? text : "\"\"", to);
        free(text);
    }
}

static void put_value(FILE *to, const json_t *value)
{
    const char *key, *between = "";
    size_t      i;
    json_t     *item;
    if (json_is_array(value)) {
        json_array_foreach(value, i, item) fputs(between, to), put_scalar(to, item), between = ":";
    } else if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
            fprintf(to, "%s%s=", between, is_plain(key) ? key : "\"\""),
            put_scalar(to, item), between = ":";
    } else {
        put_scalar(to, value);
    }
}

/* ---------------------------------------------------------------- entries ------------------- */

/* The first refusal sticks, and only the end asks. */
typedef struct cases_reader {
    const char   *path;
    size_t        entry;
    posenc_error *err;
    posenc_status status;
    posenc_cases  cases;
} cases_reader;

static void wrong(cases_reader *r, const char *what, const char *must)
{
    if (!r->status)
        r->status = pe_file_fail(r->err, POSENC_ERROR_FORMAT, (pe_origin){r->path, NULL},
                                 "entry %zu: %s must be %s", r->entry, what, must);
}

/* Memory that could not be had is a refusal; returns it all the same. */
static void *had(cases_reader *r, void *memory)
{
    if (!memory && !r->status)
        r->status = pe_file_fail(r->err, POSENC_ERROR_MEMORY, (pe_origin){r->path, NULL},
                                 "not enough memory for its entries");
    return memory;
}

/* "name=value name=value ..." of an object, except two names. */
static char *settings_text(cases_reader *r, const json_t *object, const char *without,
                           const char *and_without)
{
    char       *text = NULL;
    size_t      size;
    const char *key, *between = "";
    json_t     *value;
    FILE       *to = had(r, open_memstream(&text, &size));
    if (!to)
        return NULL;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (json_is_null(value) || !strcmp(key, without) || !strcmp(key, and_without))
            continue;
        fprintf(to, "%s%s=", between, is_plain(key) ? key : "\"\"");
        put_value(to, value);
        between = " ";
    }
    const int failed = ferror(to);
    if (!fclose(to) && !failed)
        return text;
    free(text);
    return had(r, NULL);
}

static char *take_text(cases_reader *r, const json_t *object, const char *name)
{
    const char *found = json_string_value(json_object_get(object, name));
    if (!found)
        wrong(r, name, "a string");
    return found ? had(r, strdup(found)) : NULL;
}

static void take_maps(cases_reader *r, posenc_case *c, const json_t *list)
{
    const size_t n = json_array_size(list);
    c->maps        = had(r, calloc(n + 1, sizeof *c->maps));
    for (size_t i = 0; !r->status && i < n; i++) {
        const json_t    *item = json_array_get(list, i);
        posenc_case_map *map  = &c->maps[c->map_count++];
        map->out              = take_text(r, item, "out");
        map->map              = take_text(r, item, "map");
        map->settings         = settings_text(r, item, "out", "map");
    }
}

static void take_heads(cases_reader *r, posenc_case *c, const json_t *list)
{
    const size_t n = json_array_size(list);
    c->heads       = had(r, calloc(n + 1, sizeof *c->heads));
    for (size_t i = 0; !r->status && i < n; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 1)
            wrong(r, "heads", "a list of whole numbers from 1");
        c->heads[c->head_count++] = json_integer_value(item);
    }
}

static void take_arrays(cases_reader *r, posenc_case *c, const json_t *arrays)
{
    const char *name;
    json_t     *unused;
    int         n = 0;
    if (arrays && !json_is_object(arrays))
        wrong(r, "arrays", "an object, by name");
    c->arrays = had(r, calloc(json_object_size(arrays) + 1, sizeof *c->arrays));
    if (c->arrays)
        json_object_foreach((json_t *)(uintptr_t)arrays, name,
                            unused) if ((c->arrays[n] = had(r, strdup(name)))) n++;
}

static void take_entry(cases_reader *r, posenc_case *c, const json_t *entry)
{
    const json_t *settings = json_object_get(entry, "settings"),
                 *causal   = json_object_get(settings, "causal"),
                 *offset = json_object_get(settings, "q_offset"), *scale = json_object_get(settings, "scale");
    c->file     = take_text(r, entry, "file");
    c->encoding = take_text(r, entry, "encoding");
    if (!json_is_object(settings))
        wrong(r, "settings", "an object, {} where there are none");
    c->settings  = settings_text(r, settings, "causal", "q_offset");
    c->raw       = had(r, json_dumps(settings, JSON_COMPACT));
    c->angle_ulp = json_number_value(
        json_object_get(json_object_get(entry, "details"), "angle_change_per_frequency_ulp"));
    take_arrays(r, c, json_object_get(entry, "arrays"));
    if (causal && !json_is_boolean(causal) && !json_is_null(causal))
        wrong(r, "causal", "true or false");
    if (offset && !json_is_integer(offset) && !json_is_null(offset))
        wrong(r, "q_offset", "a whole number");
    c->causal   = json_is_true(causal);
    c->q_offset = json_integer_value(offset);
    c->scale    = json_is_number(scale) ? json_number_value(scale) : (double)NAN;
    if (json_is_string(json_object_get(settings, "table")))
        c->table = take_text(r, settings, "table");
    take_maps(r, c, json_object_get(settings, "maps"));
    take_heads(r, c, json_object_get(settings, "heads"));
}

posenc_status pe_cases_parse(posenc_cases *cases, const char *text, size_t n, const char *path,
                             posenc_error *err)
{
    cases_reader r = {.path = path, .err = err};
    pe_file_begin();
    json_error_t trouble;
    json_t      *root = pe_json_load(text, n, &trouble), *entries = json_object_get(root, "entries"), *entry;
    if (!root)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL}, "line %d, column %d: %.80s",
                            trouble.line, trouble.column, trouble.text);
    if (!json_is_array(entries))
        r.status =
            pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL}, "it has no list `entries`");
    r.cases.items = had(&r, calloc(json_array_size(entries) + 1, sizeof *r.cases.items));
    for (size_t i = 0; !r.status && (entry = json_array_get(entries, i)); i++) {
        r.entry = i + 1;
        take_entry(&r, &r.cases.items[r.cases.count++], entry);
    }
    json_decref(root);
    if (!r.status && pe_file_lost_memory())
        r.status = pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){path, NULL}, "not enough memory");
    if (r.status)
        posenc_cases_free(&r.cases);
    else
        *cases = r.cases;
    return r.status;
}

posenc_status posenc_cases_read(posenc_cases *cases, const char *dir, posenc_error *err)
{
    pe_file_begin();
    FILE         *stream;
    int64_t       size;
    pe_bytes      bytes;
    posenc_status status;
    if (!cases || !dir)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"cases", NULL},
                            "cases and dir must not be NULL");
    if (!*dir)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"\"\"", NULL},
                            "the name is empty; name a folder with a manifest.json");
    const size_t length = strlen(dir) + sizeof "/manifest.json";
    char        *path   = malloc(length);
    if (!path)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){dir, NULL},
                            "not enough memory for its name");
    snprintf(path, length, "%s/manifest.json", dir);
    if (!(status = pe_file_open_found(&stream, &size, path, err))) {
        status = pe_file_read(&bytes, stream, LONGEST, path, err);
        pe_file_close(stream);
    }
    if (!status) {
        status = pe_cases_parse(cases, bytes.data, bytes.size, path, err);
        free(bytes.data);
    }
    free(path);
    return status ? status : pe_file_done(err);
}

void posenc_cases_free(posenc_cases *cases)
{
    if (!cases)
        return;
    for (int i = 0; i < cases->count; i++) {
        posenc_case *c = &cases->items[i];
        for (char **name = c->arrays; name && *name; name++)
            free(*name);
        for (int m = 0; m < c->map_count; m++) {
            free(c->maps[m].out);
            free(c->maps[m].map);
            free(c->maps[m].settings);
        }
        free(c->file), free(c->encoding), free(c->settings), free(c->raw);
        free(c->arrays), free(c->table), free(c->maps), free(c->heads);
    }
    free(cases->items);
    *cases = (posenc_cases){0};
}
