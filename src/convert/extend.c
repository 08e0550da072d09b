/* SPDX-License-Identifier: MIT */
/*
 * extend.c: contract in extend.h
 *
 * Which table   tensors.def knows what checkpoints call it; of several the caller chooses.
 * Which rows    What of it are positions, the config.json in its folder says (rows before them, the old
 * grid). Without one, a line begins with row 0, and a grid is the square that is left of 0, 1 or 2 rows.
 * Order         Everything is written beside; then the checkpoint is renamed, then its configuration. Between
 * the two a reader finds a table longer than was said, which it refuses.
 */
#include "convert/extend.h"

#include <errno.h>
#include <math.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/shared/compiler.h"
#include "convert/beside.h"
#include "convert/edit.h"
#include "convert/index.h"
#include "convert/table.h"
#include "files/arrays/file.h"
#include "files/arrays/json.h"
#include "files/arrays/text.h"

enum { LONGEST_CONFIG = 8 << 20, MOST_ROWS = 1 << 24, MOST_PREFIX = 2, WIDEST_PATCH = 1 << 20 };

static posenc_status fail(const pe_extend *x, posenc_error *err, posenc_status status, const char *format,
                          ...) PE_PRINTF(4, 5);

static posenc_status fail(const pe_extend *x, posenc_error *err, posenc_status status, const char *format,
                          ...)
{
    va_list values;
    va_start(values, format);
    const posenc_status told = pe_file_fail_list(
        err, status, (pe_origin){x->path, x->table < 0 ? NULL : x->c.tensors[x->table].name}, format, values);
    va_end(values);
    return told;
}

/* ---------------------------------------------------------------- the table ----------------- */

typedef struct table_name {
    const char *encoding, *names;
} table_name;

#define TENSOR(encoding, param, stack, types, names) {encoding, names},
static const table_name table_names[] = {
#include "files/model/tensors.def"
};

static int ends_in(const char *full, const char *name, size_t n)
{
    const size_t m = strlen(full);
    return m >= n && !strncmp(full + m - n, name, n) && (m == n || full[m - n - 1] == '.');
}

static int is_table(const char *name)
{
    for (size_t i = 0; i < sizeof table_names / sizeof *table_names; i++) {
        const char *list = table_names[i].names;
        for (size_t n; *list && pe_text_is(table_names[i].encoding, "learned"); list += n + (list[n] == ' '))
            if (n = strcspn(list, " "), ends_in(name, list, n))
                return 1;
    }
    return 0;
}

static int is_wanted(const pe_extend *x, const char *name)
{
    return x->wish.tensor ? !strcmp(name, x->wish.tensor) : is_table(name);
}

/* A sharded checkpoint: the file with the table is the one to be extended, and the others stay. */
static posenc_status name_part(const pe_extend *x, posenc_error *err)
{
    json_t       *index, *file;
    const json_t *map;
    const char   *name;
    posenc_status status = pe_index_open(&index, &map, x->path, err);
    if (status)
        return status;
    json_object_foreach((json_t *)(uintptr_t)map, name, file)
    {
        if (!status && is_wanted(x, name) && json_is_string(file))
            status = fail(x, err, POSENC_ERROR_ARGUMENT,
                          "it is the index of a sharded checkpoint; extend its file %.120s, which has %.80s",
                          json_string_value(file), name);
    }
    json_decref(index);
    return status ? status
                  : fail(x, err, POSENC_ERROR_ARGUMENT,
                         "it is the index of a sharded checkpoint; extend the file that has the table");
}

static posenc_status find_table(pe_extend *x, posenc_error *err)
{
    int found = -1;
    for (int i = 0; i < x->c.count; i++) {
        const char *name = x->c.tensors[i].name;
        if (!is_wanted(x, name))
            continue;
        if (found >= 0)
            return fail(x, err, POSENC_ERROR_ARGUMENT, "it has %.80s and %.80s; choose one with --tensor",
                        x->c.tensors[found].name, name);
        found = i;
    }
    if (found < 0 && x->wish.tensor)
        return fail(x, err, POSENC_ERROR_ARGUMENT, "it has no tensor %.120s (--tensor)", x->wish.tensor);
    if (found < 0)
        return fail(x, err, POSENC_ERROR_FORMAT,
                    "it has no learned table of positions under a name that is known; name it with --tensor");
    x->table = found;
    return POSENC_OK;
}

/* [rows,dim], with axes of length 1 before it, or a grid [1,h,w,dim]. */
static posenc_status read_shape(pe_extend *x, posenc_error *err)
{
    static const struct {
        const char  *name;
        posenc_dtype dtype;
    } types[]                         = {{"F64", POSENC_DTYPE_F64},
                                         {"F32", POSENC_DTYPE_F32},
                                         {"F16", POSENC_DTYPE_F16},
                                         {"BF16", POSENC_DTYPE_BF16}};
    const pe_checkpoint_tensor *t     = &x->c.tensors[x->table];
    int                         first = 0, known = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(t->type, types[i].name))
            x->dtype = types[i].dtype, known = 1;
    if (!known)
        return fail(x, err, POSENC_ERROR_FORMAT,
                    "its type is %.20s; a table of F64, F32, F16 or BF16 is needed", t->type);
    while (first < t->ndim - 2 && first < POSENC_MAX_DIMS && t->shape[first] == 1)
        first++;
    const int axes = t->ndim - first;
    if (t->ndim > POSENC_MAX_DIMS || axes < 2 || axes > 3 || (axes == 3 && !first))
        return fail(x, err, POSENC_ERROR_FORMAT,
                    "it has %d axes; a table must be [rows,dim], [1,rows,dim] or [1,h,w,dim]", t->ndim);
    if (!t->bytes)
        return fail(x, err, POSENC_ERROR_FORMAT,
                    "it is empty: a size of its shape is 0; a table must have a row and a channel");
    x->dim      = t->shape[t->ndim - 1];
    x->old_rows = t->shape[first] * (axes == 3 ? t->shape[first + 1] : 1);
    if (axes == 3)
        memcpy(x->old_grid, t->shape + first, 2 * sizeof *x->old_grid);
    return POSENC_OK;
}

/* A stored list 0, 1, 2, ... as long as the table. */
static void find_ids(pe_extend *x)
{
    int64_t id;
    for (int i = 0; i < x->c.count && x->ids < 0; i++) {
        const pe_checkpoint_tensor *t = &x->c.tensors[i];
        if (!ends_in(t->name, "position_ids", 12) || strcmp(t->type, "I64") != 0 ||
            t->bytes != 8 * x->old_rows)
            continue;
        int64_t n = 0;
        while (n < x->old_rows && !pe_checkpoint_read(&x->c, &id, 8, t->begin + 8 * n, NULL) && id == n)
            n++;
        x->ids = n == x->old_rows ? i : -1;
    }
}

/* ---------------------------------------------------------------- the configuration --------- */

/* The text of the config.json beside the file, if there is one. */
static posenc_status read_config(pe_extend *x, posenc_error *err)
{
    FILE       *stream;
    int64_t     size;
    pe_bytes    bytes;
    struct stat about;
    x->config = pe_file_beside(x->path, "config.json");
    if (!x->config)
        return fail(x, err, POSENC_ERROR_MEMORY, "not enough memory");
    if (stat(x->config, &about) && errno == ENOENT)
        return POSENC_OK;
    posenc_status status = pe_file_open_found(&stream, &size, x->config, err);
    if (status)
        return status;
    status = pe_file_read(&bytes, stream, LONGEST_CONFIG, x->config, err);
    pe_file_close(stream);
    if (status)
        return status;
    if (bytes.size && memchr(bytes.data, 0, bytes.size)) { /* what follows it would be lost */
        free(bytes.data);
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){x->config, NULL},
                            "it has a NUL byte, as no JSON has; fix it, or take it out of the folder");
    }
    x->config_text = malloc(bytes.size + 1);
    if (x->config_text) {
        memcpy(x->config_text, bytes.data, bytes.size);
        x->config_text[bytes.size] = '\0';
    }
    free(bytes.data);
    return x->config_text ? POSENC_OK : fail(x, err, POSENC_ERROR_MEMORY, "not enough memory");
}

static int64_t fact(const posenc_model_group *g, const char *name)
{
    const posenc_fact *f = posenc_model_fact(g, name);
    return f && f->kind == POSENC_FACT_INTEGER ? f->integer : 0;
}

/* The group of the model, or of one of its towers, whose table this is. */
static const posenc_model_group *group_of(const posenc_model *m, const pe_extend *x)
{
    const posenc_model_group *g, *found = NULL;
    for (int i = 0; m && !found && (g = posenc_model_group_at(m, i)); i++)
        if (pe_text_is(g->encoding, "learned") && fact(g, "rows") == x->old_rows && fact(g, "dim") == x->dim)
            found = g;
    for (int i = 0; m && !found && i < posenc_model_describe(m)->tower_count; i++)
        found = group_of(posenc_model_tower(m, i), x);
    return found;
}

/* Rows before the positions and the old grid, as the model has them. 1: it says so. */
static int ask_model(pe_extend *x)
{
    posenc_model             *m = NULL;
    posenc_error              why;
    const posenc_model_group *g = NULL;
    if (x->config_text)
        (void)!posenc_model_read_memory(&m, x->config_text, strlen(x->config_text), x->config, &why);
    if (m)
        g = group_of(m, x);
    const posenc_fact *grid = g ? posenc_model_fact(g, "grid") : NULL;
    if (g)
        x->prefix = grid ? fact(g, "prefix_rows") : fact(g, "offset");
    if (grid && grid->count == 2 && !x->old_grid[0]) {
        x->old_grid[0] = (int64_t)grid->list[0];
        x->old_grid[1] = (int64_t)grid->list[1];
    }
    posenc_model_free(m);
    return g != NULL;
}

/* ---------------------------------------------------------------- sizes --------------------- */

static int64_t root_of(int64_t n)
{
    const int64_t r = (int64_t)llround(sqrt((double)n));
    return n > 0 && r * r == n ? r : 0;
}

/* The square that is left of 0, 1 or 2 rows. */
static posenc_status guess_grid(pe_extend *x, posenc_error *err)
{
    int found = 0;
    for (int64_t p = 0; p <= MOST_PREFIX; p++) {
        const int64_t r = root_of(x->old_rows - p);
        if (!r)
            continue;
        x->prefix      = p;
        x->old_grid[0] = x->old_grid[1] = r;
        found++;
    }
    return found == 1
               ? POSENC_OK
               : fail(x, err, POSENC_ERROR_FORMAT,
                      "its %lld rows are %s square after 0 to %d rows of class tokens; put the model's "
                      "config.json in its folder, which says which grid they are",
                      (long long)x->old_rows, found ? "more than one" : "no", MOST_PREFIX);
}

static posenc_status check_line(pe_extend *x, posenc_error *err)
{
    const int64_t n = x->old_rows - x->prefix, N = x->wish.length;
    if (x->old_grid[0])
        return fail(x, err, POSENC_ERROR_ARGUMENT, "it is the table of a grid; say which with --grid HxW");
    if (N <= n)
        return fail(x, err, POSENC_ERROR_ARGUMENT, "it has %lld positions already; --length must be more",
                    (long long)n);
    if (!strcmp(x->wish.how, "hierarchical") && N > n * n)
        return fail(x, err, POSENC_ERROR_ARGUMENT,
                    "%lld positions make at most %lld hierarchical ones; --length is %lld", (long long)n,
                    (long long)(n * n), (long long)N);
    return POSENC_OK;
}

static posenc_status check_grid(pe_extend *x, posenc_error *err)
{
    const int64_t *to = x->wish.grid, *is = x->old_grid;
    if (!strcmp(x->wish.how, "repeat") || !strcmp(x->wish.how, "hierarchical"))
        return fail(x, err, POSENC_ERROR_ARGUMENT,
                    "--how %s makes a longer line, no grid; choose an interpolation", x->wish.how);
    if (is[0] == to[0] && is[1] == to[1])
        return fail(x, err, POSENC_ERROR_ARGUMENT, "its grid is %lldx%lld already", (long long)is[0],
                    (long long)is[1]);
    return POSENC_OK;
}

static posenc_status choose_sizes(pe_extend *x, posenc_error *err)
{
    const int     had_grid = x->old_grid[0] > 0, is_known = ask_model(x);
    posenc_status status = POSENC_OK;
    if (had_grid)
        x->prefix = 0;
    if (!x->wish.length && !x->old_grid[0])
        status = guess_grid(x, err);
    if (!is_known && x->wish.length)
        snprintf(x->note, sizeof x->note, "%s: row 0 is taken for that of the first position: %s",
                 x->c.tensors[x->table].name,
                 x->config_text ? "the config.json beside the file tells of no such table"
                                : "no config.json lies beside the file");
    if (status || (status = x->wish.length ? check_line(x, err) : check_grid(x, err)))
        return status;
    const int64_t body = x->wish.length ? x->wish.length : x->wish.grid[0] * x->wish.grid[1];
    x->rows            = x->prefix + body;
    return x->rows > MOST_ROWS
               ? fail(x, err, POSENC_ERROR_ARGUMENT, "it would have %lld rows; at most %d are made",
                      (long long)x->rows, MOST_ROWS)
               : POSENC_OK;
}

/* ---------------------------------------------------------------- what the config shall say - */

static const char *const objects[] = {NULL, "text_config", "vision_config"};

/* The config's text, member by member. A name may be written with escapes, which JSON's reader knows and the
   text does not show: then nothing of it is changed. */
typedef struct config_edit {
    pe_extend    *x;
    const json_t *config;
    int           is_set, is_hidden;
    posenc_error *err;
} config_edit;

static const json_t *object_of(const config_edit *e, const char *object)
{
    return object ? json_object_get(e->config, object) : e->config;
}

static posenc_status replace(config_edit *e, const char *object, const char *key, const char *value)
{
    pe_extend *x        = e->x;
    const int  is_there = json_object_get(object_of(e, object), key) != NULL;
    if (!pe_edit_finds(x->config_text, object, is_there ? key : NULL)) {
        e->is_hidden = 1;
        return POSENC_OK;
    }
    char *text = pe_edit_set(x->config_text, object, key, value);
    if (!text)
        return fail(x, e->err, POSENC_ERROR_MEMORY, "not enough memory");
    free(x->config_text);
    x->config_text = text;
    e->is_set      = 1;
    return POSENC_OK;
}

/* Every count of positions that is this table's, rows before them included or not. */
static posenc_status set_length(config_edit *e)
{
    const char *const *keys   = pe_beside_lengths;
    const pe_extend   *x      = e->x;
    posenc_status      status = POSENC_OK;
    char               value[24];
    for (size_t o = 0; o < 2 && !status; o++)
        for (size_t i = 0; keys[i] && !status; i++) {
            const json_t *old = json_object_get(object_of(e, objects[o]), keys[i]);
            const int64_t n   = (int64_t)json_integer_value(old);
            if (!json_is_integer(old) || (n != x->old_rows && n != x->old_rows - x->prefix))
                continue;
            snprintf(value, sizeof value, "%lld", (long long)(n + x->rows - x->old_rows));
            status = replace(e, objects[o], keys[i], value);
        }
    return status;
}

/* Pixels of n patches; 0: it is no patch, or wider than any. */
static int64_t pixels(const json_t *patch, int64_t n)
{
    const int64_t wide = (int64_t)json_integer_value(patch);
    return wide > 0 && wide <= WIDEST_PATCH ? wide * n : 0;
}

/* image_size = grid times patch_size, where the object has a patch. */
static posenc_status set_grid(config_edit *e)
{
    posenc_status status = POSENC_OK;
    char          value[60];
    for (size_t o = 0; o < 3 && !status; o += 2) {
        const json_t *in    = object_of(e, objects[o]);
        const json_t *patch = json_object_get(in, "patch_size"), *high = patch, *wide = patch;
        if (json_array_size(patch) == 2)
            high = json_array_get(patch, 0), wide = json_array_get(patch, 1);
        const int64_t h = pixels(high, e->x->wish.grid[0]), w = pixels(wide, e->x->wish.grid[1]);
        if (!h || !w)
            continue;
        snprintf(value, sizeof value,
                 h == w && !json_is_array(json_object_get(in, "image_size")) ? "%lld" : "[%lld, %lld]",
                 (long long)h, (long long)w);
        status = replace(e, objects[o], "image_size", value);
    }
    return status;
}

static posenc_status edit_config(pe_extend *x, posenc_error *err)
{
    json_error_t why;
    json_t      *config =
        x->config_text ? pe_json_load_python(x->config_text, strlen(x->config_text), &why) : NULL;
    config_edit   e      = {.x = x, .config = config, .err = err};
    posenc_status status = POSENC_OK;
    if (json_is_object(config))
        status = x->wish.length ? set_length(&e) : set_grid(&e);
    json_decref(config);
    if (!status && (!e.is_set || e.is_hidden)) {
        snprintf(x->note, sizeof x->note, "%s: %s; set %s in it yourself", x->c.tensors[x->table].name,
                 e.is_hidden      ? "the config.json beside the file writes the name of its size with escapes"
                 : x->config_text ? "the config.json beside the file does not say its size"
                                  : "no config.json lies beside the file",
                 x->wish.length ? "max_position_embeddings" : "image_size");
        free(x->config_text);
        x->config_text = NULL;
    }
    return status;
}

posenc_status pe_extend_plan(pe_extend *x, const char *path, const pe_extend_wish *wish, posenc_error *err)
{
    *x = (pe_extend){.path = path, .wish = *wish, .table = -1, .ids = -1};
    pe_file_begin();
    posenc_status status =
        pe_text_ends_with(path, ".json") ? name_part(x, err) : pe_checkpoint_open(&x->c, path, err);
    if (status || (status = find_table(x, err)) || (status = read_shape(x, err)) ||
        (status = read_config(x, err)) || (status = choose_sizes(x, err)) ||
        (status = pe_table_rows_check(x, err)) || (status = edit_config(x, err)))
        return status;
    find_ids(x);
    return pe_file_lost_memory() ? fail(x, err, POSENC_ERROR_MEMORY, "not enough memory") : POSENC_OK;
}

void pe_extend_free(pe_extend *x)
{
    if (x->c.path)
        pe_checkpoint_close(&x->c);
    free(x->config);
    free(x->config_text);
    *x = (pe_extend){0};
}

/* ---------------------------------------------------------------- the run ------------------- */

/* Bytes that tensor i has afterwards. */
static int64_t bytes_of(const pe_extend *x, int i)
{
    const pe_checkpoint_tensor *t = &x->c.tensors[i];
    return i == x->table || i == x->ids ? t->bytes / x->old_rows * x->rows : t->bytes;
}

/* The shape with the sizes that change. */
static json_t *new_shape(const pe_extend *x, int i)
{
    const pe_checkpoint_tensor *t     = &x->c.tensors[i];
    json_t                     *shape = json_array();
    for (int32_t a = 0; a < t->ndim; a++) {
        const int is_grid = i == x->table && t->ndim == 4, last = i == x->table ? t->ndim - 2 : t->ndim - 1;
        pe_json_add(&shape, json_integer(is_grid && (a == 1 || a == 2) ? x->wish.grid[a - 1]
                                         : a == last                   ? x->rows
                                                                       : t->shape[a]));
    }
    return shape;
}

static posenc_status put_header(const pe_extend *x, pe_writer *w, posenc_error *err)
{
    json_t *all = json_deep_copy(x->c.json);
    int64_t at  = 0;
    for (int i = 0; all && i < x->c.count; i++) {
        json_t *entry = json_object_get(all, x->c.tensors[i].name), *offsets = json_array();
        pe_json_add(&offsets, json_integer(at));
        pe_json_add(&offsets, json_integer(at += bytes_of(x, i)));
        if (json_object_set_new(entry, "data_offsets", offsets) ||
            ((i == x->table || i == x->ids) && json_object_set_new(entry, "shape", new_shape(x, i))))
            pe_json_lose(&all);
    }
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(all);
    const size_t  n = text ? strlen(text) : 0, padded = (n + 7) / 8 * 8;
    char         *full   = text ? realloc(text, padded + 1) : NULL;
    posenc_status status = POSENC_ERROR_MEMORY;
    if (full) {
        memset(full + n, ' ', padded - n);
        status = pe_writer_header(w, full, (int64_t)padded, err);
    } else
        fail(x, err, status, "not enough memory for its header");
    free(full ? full : text);
    return status;
}

static posenc_status put_ids(const pe_extend *x, pe_writer *w, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int64_t i = 0; !status && i < x->rows; i++)
        status = pe_writer_put(w, &i, sizeof i, err);
    return status;
}

static posenc_status put_table(const pe_extend *x, pe_writer *w, posenc_error *err)
{
    const pe_checkpoint_tensor *t = &x->c.tensors[x->table];
    const posenc_status status = pe_writer_copy(w, &x->c, t->bytes / x->old_rows * x->prefix, t->begin, err);
    return status ? status : pe_table_rows_put(x, w, err);
}

static posenc_status write_all(const pe_extend *x, pe_writer *w, posenc_error *err)
{
    posenc_status status = put_header(x, w, err);
    for (int i = 0; !status && i < x->c.count; i++) {
        const pe_checkpoint_tensor *t = &x->c.tensors[i];
        status                        = i == x->table ? put_table(x, w, err)
                                        : i == x->ids ? put_ids(x, w, err)
                                                      : pe_writer_copy(w, &x->c, t->bytes, t->begin, err);
    }
    return status;
}

/* "-", a pipe and a device have no place for a config beside them. */
static int has_config(const pe_extend *x, const char *output)
{
    struct stat about;
    return x->config_text && strcmp(output, "-") && (stat(output, &about) || S_ISREG(about.st_mode));
}

/* NAME.config.json for NAME.safetensors; malloc'd. */
static char *own_config(const char *output)
{
    const int n    = (int)strlen(output) - (pe_text_ends_with(output, ".safetensors") ? 12 : 0);
    char     *path = malloc((size_t)n + sizeof ".config.json");
    if (path)
        sprintf(path, "%.*s.config.json", n, output);
    return path;
}

/* Is the place of config.json free for the new one? */
static int is_free(const pe_extend *x, const char *path, const char *output, const char *own)
{
    struct stat about;
    return !pe_file_is_same(path, x->config) &&
           pe_beside_may_go(path, x->config_text, x->config, !stat(output, &about) && stat(own, &about));
}

char *pe_extend_config(const pe_extend *x, const char *output)
{
    char *path = has_config(x, output) ? pe_file_beside(output, "config.json") : NULL;
    if (!path || pe_file_is_same(output, x->path))
        return path;
    char     *own    = own_config(output);
    const int may_go = own && is_free(x, path, output, own);
    free(may_go ? own : path);
    return may_go ? path : own;
}

/* Nobody named the config: what a link in its place points to, such as a file of a cache, is left alone, and
   a pipe is not waited for. */
static posenc_status check_config(const char *path, posenc_error *err)
{
    struct stat about;
    if (lstat(path, &about) || S_ISREG(about.st_mode))
        return POSENC_OK;
    return pe_file_fail(
        err, POSENC_ERROR_FILE, (pe_origin){path, NULL},
        "it is %s, which the config of the output does not follow; put a file in its place, or "
        "name another folder",
        S_ISLNK(about.st_mode) ? "a symbolic link" : "no regular file");
}

/* The config would be written over the checkpoint, or the checkpoint over the old config. `config`: where the
   new one goes, NULL: there is none. */
static posenc_status check_output(const pe_extend *x, const char *output, const char *config,
                                  posenc_error *err)
{
    const char *slash = strrchr(output, '/');
    if (strcmp(slash ? slash + 1 : output, "config.json") && !pe_file_is_same(output, x->config) &&
        !(config && pe_file_is_same(output, config)))
        return POSENC_OK;
    return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){output, NULL},
                        "that is the place of the config; name the checkpoint otherwise than config.json");
}

static posenc_status write_both(const pe_extend *x, const char *output, const char *path,
                                pe_progress progress, posenc_error *err)
{
    posenc_whole_file config = {0};
    pe_writer         w;
    posenc_status     status = pe_writer_open(&w, output, progress, err);
    if (status)
        return status;
    if (path && !(status = posenc_whole_file_open(&config, path, err)))
        fputs(x->config_text, config.stream); /* whether it arrived, commit says */
    if (!status)
        status = write_all(x, &w, err);
    if (!status)
        status = pe_writer_commit(&w, err);
    if (!status && path)
        status = posenc_whole_file_commit(&config, err);
    else if (config.path)
        posenc_whole_file_discard(&config);
    pe_writer_discard(&w);
    return status;
}

posenc_status pe_extend_run(const pe_extend *x, const char *output, pe_progress progress, posenc_error *err)
{
    pe_file_begin();
    char         *path   = pe_extend_config(x, output);
    posenc_status status = pe_file_lost_memory() ? fail(x, err, POSENC_ERROR_MEMORY, "not enough memory")
                                                 : check_output(x, output, path, err);
    if (!status && path)
        status = check_config(path, err);
    if (!status)
        status = write_both(x, output, path, progress, err);
    free(path);
    return status ? status : pe_file_done(err);
}
