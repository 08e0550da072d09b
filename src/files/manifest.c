/* SPDX-License-Identifier: MIT */
/*
 * manifest: the list of reference cases of a folder
 *
 * The idea  manifest.json holds `entries`; each names a file, an encoding and its settings.
 *           Settings become the text that posenc_encoding_create reads, so nothing here knows an
 *           encoding or a setting; only what belongs to the run (causal, q_offset) and to subjects
 *           that are no encodings (table, maps, heads) is taken out.
 * Safety    Text becomes settings, and settings text has separators: a string "half dim=4" must not
 *           become two settings. Whatever is not a plain word stays JSON, in quotes, and every room
 *           refuses it by name.
 * Strict    Duplicate keys, a wrong type, a missing name: the manifest is refused with line and
 *           column (syntax) or with the entry's number (content). Unknown keys beside these are
 *           documentation and are passed over.
 */
#include "files/arrays.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/bytes.h"

enum { LONGEST = 64 << 20 };

/* ---------------------------------------------------------------- settings as text ---------- */

static int is_plain(const char *word)
{
    return *word &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") == strlen(word);
}

static void put_real(FILE *to, double x)
{
    char text[PE_REAL_TEXT];
    pe_real_text(text, x);
    fputs(text, to);
}

static void put_json(FILE *to, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    fputs(text ? text : "\"\"", to);
    free(text);
}

static void put_scalar(FILE *to, const json_t *value)
{
    if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", to);
    else if (json_is_integer(value))
        fprintf(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        put_real(to, json_real_value(value));
    else if (json_is_string(value) && is_plain(json_string_value(value)))
        fputs(json_string_value(value), to);
    else
        put_json(to, value);
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

static int is_listed(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (!strcmp(*names, name))
            return 1;
    return 0;
}

/* "name=value name=value ..." of an object but for some names; NULL without memory. */
static char *settings_text(const json_t *object, const char *const *without)
{
    char       *text = NULL;
    size_t      size;
    const char *key, *between = "";
    json_t     *value;
    FILE       *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (json_is_null(value) || is_listed(without, key))
            continue;
        fputs(between, to);
        if (is_plain(key))
            fputs(key, to);
        else
            fputs("\"\"", to);
        fputc('=', to);
        put_value(to, value);
        between = " ";
    }
    const int failed = ferror(to);
    if (!fclose(to) && !failed)
        return text;
    free(text);
    return NULL;
}

/* ---------------------------------------------------------------- entries ------------------- */

typedef struct place {
    const char   *path;
    size_t        entry;
    posenc_error *err;
} place;

static posenc_status wrong(const place *at, const char *what, const char *must)
{
    return pe_file_fail(at->err, POSENC_FORMAT, (pe_origin){at->path, NULL}, "entry %zu: %s must be %s",
                        at->entry, what, must);
}

static posenc_status no_memory(const place *at)
{
    return pe_file_fail(at->err, POSENC_MEMORY, (pe_origin){at->path, NULL}, "no memory for its entries");
}

static posenc_status take_text(char **text, const json_t *object, const char *name, const place *at)
{
    const char *found = json_string_value(json_object_get(object, name));
    if (!found)
        return wrong(at, name, "a text");
    *text = strdup(found);
    return *text ? POSENC_OK : no_memory(at);
}

static posenc_status take_maps(posenc_case *c, const json_t *list, const place *at)
{
    static const char *const apart[] = {"out", "map", NULL};
    const size_t             n       = json_array_size(list);
    c->maps                          = calloc(n + 1, sizeof *c->maps);
    if (!c->maps)
        return no_memory(at);
    for (size_t i = 0; i < n; i++) {
        const json_t    *item = json_array_get(list, i);
        posenc_case_map *map  = &c->maps[c->map_count++];
        posenc_status    status;
        if ((status = take_text(&map->out, item, "out", at)) ||
            (status = take_text(&map->map, item, "map", at)))
            return status;
        map->settings = settings_text(item, apart);
        if (!map->settings)
            return no_memory(at);
    }
    return POSENC_OK;
}

static posenc_status take_heads(posenc_case *c, const json_t *list, const place *at)
{
    const size_t n = json_array_size(list);
    c->heads       = calloc(n + 1, sizeof *c->heads);
    if (!c->heads)
        return no_memory(at);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 1)
            return wrong(at, "heads", "a list of whole numbers from 1");
        c->heads[c->head_count++] = json_integer_value(item);
    }
    return POSENC_OK;
}

/* What the run and the subjects need apart from the settings text. */
static posenc_status take_apart(posenc_case *c, const json_t *settings, const place *at)
{
    const json_t *causal = json_object_get(settings, "causal"),
                 *offset = json_object_get(settings, "q_offset");
    const json_t *scale = json_object_get(settings, "scale"), *table = json_object_get(settings, "table");
    posenc_status status;
    if (causal && !json_is_boolean(causal) && !json_is_null(causal))
        return wrong(at, "causal", "true or false");
    if (offset && !json_is_integer(offset) && !json_is_null(offset))
        return wrong(at, "q_offset", "a whole number");
    c->causal   = json_is_true(causal);
    c->q_offset = json_integer_value(offset);
    c->scale    = json_is_number(scale) ? json_number_value(scale) : (double)NAN;
    if (json_is_string(table) && (status = take_text(&c->table, settings, "table", at)))
        return status;
    if ((status = take_maps(c, json_object_get(settings, "maps"), at)))
        return status;
    return take_heads(c, json_object_get(settings, "heads"), at);
}

static posenc_status take_arrays(posenc_case *c, const json_t *arrays, const place *at)
{
    const char *name;
    json_t     *unused;
    int         n = 0;
    if (arrays && !json_is_object(arrays))
        return wrong(at, "arrays", "an object, by name");
    c->arrays = calloc(json_object_size(arrays) + 1, sizeof *c->arrays);
    if (!c->arrays)
        return no_memory(at);
    json_object_foreach((json_t *)(uintptr_t)arrays, name, unused)
    {
        c->arrays[n] = strdup(name);
        if (!c->arrays[n++])
            return no_memory(at);
    }
    return POSENC_OK;
}

static posenc_status take_entry(posenc_case *c, const json_t *entry, const place *at)
{
    static const char *const of_the_run[] = {"causal", "q_offset", NULL};
    const json_t            *settings     = json_object_get(entry, "settings");
    posenc_status            status;
    if ((status = take_text(&c->file, entry, "file", at)) ||
        (status = take_text(&c->encoding, entry, "encoding", at)))
        return status;
    if (!json_is_object(settings))
        return wrong(at, "settings", "an object, {} where there are none");
    c->settings  = settings_text(settings, of_the_run);
    c->raw       = json_dumps(settings, JSON_COMPACT);
    c->angle_ulp = json_number_value(
        json_object_get(json_object_get(entry, "details"), "angle_change_per_frequency_ulp"));
    if (!c->settings || !c->raw)
        return no_memory(at);
    if ((status = take_arrays(c, json_object_get(entry, "arrays"), at)))
        return status;
    return take_apart(c, settings, at);
}

static posenc_status take_entries(posenc_cases *cases, const json_t *root, place *at)
{
    const json_t *entries = json_object_get(root, "entries");
    const size_t  n       = json_array_size(entries);
    if (!json_is_array(entries))
        return pe_file_fail(at->err, POSENC_FORMAT, (pe_origin){at->path, NULL}, "it has no list `entries`");
    cases->items = calloc(n + 1, sizeof *cases->items);
    if (!cases->items)
        return no_memory(at);
    for (size_t i = 0; i < n; i++) {
        at->entry = i + 1;
        const posenc_status status =
            take_entry(&cases->items[cases->count++], json_array_get(entries, i), at);
        if (status)
            return status;
    }
    return POSENC_OK;
}

posenc_status pe_cases_parse(posenc_cases *cases, const char *text, size_t n, const char *path,
                             posenc_error *err)
{
    place        at   = {path, 0, err};
    posenc_cases read = {0};
    json_error_t trouble;
    json_t      *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &trouble);
    if (!root)
        return pe_file_fail(err, POSENC_FORMAT, (pe_origin){path, NULL}, "line %d, column %d: %.80s",
                            trouble.line, trouble.column, trouble.text);
    const posenc_status status = take_entries(&read, root, &at);
    json_decref(root);
    if (status)
        posenc_cases_free(&read);
    else
        *cases = read;
    return status;
}

posenc_status posenc_cases_read(posenc_cases *cases, const char *dir, posenc_error *err)
{
    FILE         *stream;
    int           is_regular;
    int64_t       size;
    pe_bytes      bytes;
    posenc_status status;
    const size_t  room = strlen(dir) + sizeof "/manifest.json";
    char         *path = malloc(room);
    if (!path)
        return pe_file_fail(err, POSENC_MEMORY, (pe_origin){dir, NULL}, "no memory for its name");
    snprintf(path, room, "%s/manifest.json", dir);
    if ((status = pe_open_input(&stream, &is_regular, &size, path, err)))
        goto done;
    status = pe_read_bytes(&bytes, stream, LONGEST, path, err);
    pe_close_input(stream);
    if (status)
        goto done;
    status = pe_cases_parse(cases, bytes.data, bytes.size, path, err);
    free(bytes.data);
    if (!status)
        pe_file_done(err);
done:
    free(path);
    return status;
}

void posenc_cases_free(posenc_cases *cases)
{
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
