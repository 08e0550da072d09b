/* SPDX-License-Identifier: MIT */
/*
 * modelfile.c: a model's file by its first bytes: GGUF, safetensors, or JSON
 *
 * GGUF is read where it lies, whatever its size; of a .safetensors only the header is looked at, since its
 * tensors do not say how they are rotated: the config.json in its folder does. A configuration is small, so
 * anything larger is refused. Standard input cannot be sought and is read whole.
 */
#include "files/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/arrays/formats.h"
#include "files/config/config.h"
#include "files/gguf/gguf.h"

enum { LONGEST_CONFIG = 8 << 20, LONGEST_INPUT = 1 << 28, MAGIC = 16 };

/* ---------------------------------------------------------------- sources ------------------- */

static int64_t read_bytes_at(const void *from, void *to, int64_t n, int64_t at)
{
    memcpy(to, (const char *)from + at, (size_t)n);
    return n;
}

static int64_t read_file_at(const void *from, void *to, int64_t n, int64_t at)
{
    int64_t done = 0;
    while (done < n) {
        const ssize_t got =
            pread(*(const int *)from, (char *)to + done, (size_t)(n - done), (off_t)(at + done));
        if (got <= 0)
            return got < 0 ? -1 : done;
        done += got;
    }
    return done;
}

/* ---------------------------------------------------------------- what it is ---------------- */

static int is_gguf(const char *bytes, size_t n)
{
    return n >= 4 && !memcmp(bytes, "GGUF", 4);
}

static int is_safetensors(const char *bytes, size_t n)
{
    return n >= PE_SAFETENSORS_MAGIC && pe_safetensors_begins((const unsigned char *)bytes);
}

static posenc_status refuse_torch(const char *path, posenc_error *err)
{
    return pe_file_fail(
        err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL},
        "it is a checkpoint of PyTorch (.pt, .bin), which is not read; give the config.json of "
        "the model, or a .safetensors");
}

posenc_status pe_modelfile_parse(posenc_model **model, const void *bytes, size_t n, const char *path,
                                 posenc_error *err)
{
    const pe_source source = {bytes, read_bytes_at, (int64_t)n, path};
    pe_file_begin();
    if (is_gguf(bytes, n))
        return pe_gguf_model(model, &source, err);
    if (is_safetensors(bytes, n))
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL},
                            "a .safetensors needs the config.json in its folder; give the path of the file");
    if (pe_file_is_torch(bytes, n))
        return refuse_torch(path, err);
    if (n > LONGEST_CONFIG)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL},
                            "it has %zu bytes; a config.json of more than %d is not accepted", n,
                            LONGEST_CONFIG);
    return pe_config_parse(model, bytes, n, path, "config", err);
}

/* ---------------------------------------------------------------- from a file --------------- */

static posenc_status read_whole(posenc_model **model, FILE *stream, int64_t limit, const char *path,
                                const char *format, posenc_error *err)
{
    pe_bytes            bytes;
    const posenc_status status = pe_file_read(&bytes, stream, limit, path, err);
    if (status)
        return status;
    const posenc_status parsed = format ? pe_config_parse(model, bytes.data, bytes.size, path, format, err)
                                        : pe_modelfile_parse(model, bytes.data, bytes.size, path, err);
    free(bytes.data);
    return parsed;
}

static posenc_status read_beside(posenc_model **model, const char *path, posenc_error *err)
{
    FILE        *stream;
    int64_t      size;
    posenc_error why;
    const char  *slash  = strrchr(path, '/');
    const int    folder = slash ? (int)(slash - path) + 1 : 0;
    char        *name   = malloc((size_t)folder + sizeof "config.json");
    if (!name)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){path, NULL},
                            "not enough memory for a name");
    sprintf(name, "%.*sconfig.json", folder, path);
    posenc_status status = pe_file_open_found(&stream, &size, name, &why);
    if (status)
        pe_file_fail(err, status, (pe_origin){path, NULL},
                     "its rotation is read from the config.json in its folder: %.120s", why.message);
    else {
        status = read_whole(model, stream, LONGEST_CONFIG, name, "safetensors", err);
        pe_file_close(stream);
    }
    free(name);
    return status;
}

static posenc_status read_regular(posenc_model **model, FILE *stream, int64_t size, const char *path,
                                  posenc_error *err)
{
    char            first[MAGIC];
    const int       fd     = fileno(stream);
    const pe_source source = {&fd, read_file_at, size, path};
    const int64_t   n      = read_file_at(&fd, first, MAGIC, 0);
    if (n < 0)
        return pe_file_fail(err, POSENC_ERROR_FILE, (pe_origin){path, NULL}, "it cannot be read: %s",
                            pe_file_reason(errno));
    /* a file that calls itself one of the two is read as such, so that the sentence speaks of what it should
     * be */
    if (is_gguf(first, (size_t)n) || pe_text_ends_with(path, ".gguf"))
        return pe_gguf_model(model, &source, err);
    if (is_safetensors(first, (size_t)n) || pe_text_ends_with(path, ".safetensors")) {
        const pe_stream     whole  = pe_file_stream(stream, size, path);
        const posenc_status status = pe_safetensors_check(&whole, err);
        return status ? status : read_beside(model, path, err);
    }
    if (pe_file_is_torch(first, (size_t)n))
        return refuse_torch(path, err);
    return read_whole(model, stream, LONGEST_CONFIG, path, "config", err);
}

posenc_status posenc_model_read_memory(posenc_model **model, const void *bytes, size_t n, const char *name,
                                       posenc_error *err)
{
    pe_file_begin();
    const char *said = name ? name : "memory";
    if (!model)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){said, NULL}, "model must not be NULL");
    *model = NULL;
    if (!bytes && n > 0)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){said, NULL}, "bytes must not be NULL");
    if (n == 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){said, NULL}, "it is empty");
    return pe_modelfile_parse(model, bytes, n, said, err);
}

posenc_status posenc_model_read(posenc_model **model, const char *path, posenc_error *err)
{
    pe_file_begin();
    FILE   *stream;
    int64_t size;
    if (!model || !path)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"model", NULL},
                            "model and path must not be NULL");
    posenc_status status = pe_file_open(&stream, &size, path, err);
    if (status)
        return status;
    status = size >= 0 ? read_regular(model, stream, size, path, err)
                       : read_whole(model, stream, LONGEST_INPUT, path, NULL, err);
    pe_file_close(stream);
    return status;
}
