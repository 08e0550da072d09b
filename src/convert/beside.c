/* SPDX-License-Identifier: MIT */
/*
 * beside.c: contract in beside.h
 *
 * Two texts say the same when their JSON is equal: order, blanks and line breaks do not count. Whoever
 * extends twice to one output has a configuration there that differs from the new one in its sizes alone.
 * What cannot be read is not known to be ours, and stays.
 */
#include "convert/beside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/arrays/file.h"
#include "files/arrays/json.h"

enum { LONGEST = 8 << 20 };

static json_t *load(const char *path)
{
    FILE        *stream;
    int64_t      size;
    pe_bytes     bytes = {0};
    json_error_t why;
    json_t      *whole = NULL;
    if (pe_file_open_found(&stream, &size, path, NULL))
        return NULL;
    if (!pe_file_read(&bytes, stream, LONGEST, path, NULL)) {
        whole = pe_json_load_python(bytes.data, bytes.size, &why);
        free(bytes.data);
    }
    pe_file_close(stream);
    return whole;
}

const char *const pe_beside_lengths[] = {"max_position_embeddings", "n_positions",          "n_ctx",
                                         "max_target_positions",    "max_source_positions", NULL};

/* What extend sets. */
static void drop_sizes(json_t *config)
{
    json_t *const objects[] = {config, json_object_get(config, "text_config"),
                               json_object_get(config, "vision_config")};
    for (size_t o = 0; o < sizeof objects / sizeof *objects; o++) {
        json_object_del(objects[o], "image_size");
        for (size_t i = 0; pe_beside_lengths[i]; i++)
            json_object_del(objects[o], pe_beside_lengths[i]);
    }
}

static int is_same_but_for_sizes(json_t *there, json_t *made)
{
    drop_sizes(there);
    drop_sizes(made);
    return json_equal(there, made);
}

int pe_beside_may_go(const char *path, const char *text, const char *source, int is_again)
{
    struct stat  about;
    json_error_t why;
    if (lstat(path, &about) || !S_ISREG(about.st_mode))
        return 1;
    json_t *there = load(path), *made = there ? pe_json_load_python(text, strlen(text), &why) : NULL,
           *old   = made ? load(source) : NULL; /* where memory ends, errno still says so */
    const int may = old && (json_equal(there, made) || json_equal(there, old) ||
                            (is_again && is_same_but_for_sizes(there, made)));
    json_decref(there);
    json_decref(made);
    json_decref(old);
    return may;
}
