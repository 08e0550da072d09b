/* SPDX-License-Identifier: MIT */
/*
 * arrays_file.c: sets of named arrays, from and to files
 *
 * What a file is, its first bytes say: "\x93NUMPY" is one array, "PK" an archive, a length and '{' are
 * .safetensors, a number or '#' is CSV. Its name decides only when it is written, the name of a single array,
 * and which reader says what is wrong with a damaged .safetensors or .csv. A regular file is read where it
 * lies; standard input and pipes cannot be sought, which an archive needs, so they are read into memory
 * first, as CSV is.
 */
#include "files/arrays/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- reading ------------------- */

static posenc_status read_npy(posenc_arrays *set, const pe_stream *stream, posenc_error *err)
{
    posenc_array        array;
    size_t              length;
    const char         *name   = pe_file_stem(stream->origin.path, &length);
    const posenc_status status = pe_npy_read(&array, stream, err);
    if (status)
        return status;
    array.is_unnamed = 1;
    if (!pe_arrays_take(set, name, length, &array))
        return pe_file_fail(err, POSENC_ERROR_MEMORY, stream->origin, "not enough memory for its name");
    return POSENC_OK;
}

enum { MAGIC = PE_SAFETENSORS_MAGIC };

/* What a name ends in keeps damaged bytes with the reader that can say what is wrong. */
static int is_csv(const unsigned char magic[MAGIC], size_t n, const char *path)
{
    const int is_binary =
        !memcmp(magic, "\x93NUMPY", 6) || !memcmp(magic, "PK", 2) || pe_safetensors_begins(magic);
    return !is_binary && !pe_text_ends_with(path, ".safetensors") &&
           (pe_text_ends_with(path, ".csv") || pe_csv_begins((const char *)magic, n));
}

static int is_archive(const unsigned char magic[MAGIC])
{
    return !memcmp(magic, "PK", 2) && !pe_safetensors_begins(magic); /* a header of 0x...4b50 bytes is none */
}

/* What is no archive, from front to back. */
static posenc_status read_front(posenc_arrays *set, const pe_stream *stream, const unsigned char magic[MAGIC],
                                posenc_error *err)
{
    if (!memcmp(magic, "\x93NUMPY", 6))
        return read_npy(set, stream, err);
    if (pe_safetensors_begins(magic) || pe_text_ends_with(stream->origin.path, ".safetensors"))
        return pe_safetensors_read(set, stream, err);
    return pe_file_fail(err, POSENC_ERROR_FORMAT, stream->origin,
                        "it is neither an .npy array, an .npz archive, a .safetensors file nor CSV");
}

/* On failure *set is as it was. */
static posenc_status finish(posenc_arrays *set, posenc_arrays *read, posenc_status status, const char *path,
                            posenc_error *err)
{
    if (!status && pe_file_lost_memory())
        status = pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){path, NULL}, "not enough memory");
    if (status)
        posenc_arrays_free(read);
    else
        *set = *read;
    return status;
}

posenc_status pe_arrays_parse(posenc_arrays *set, const void *bytes, size_t n, const char *path,
                              posenc_error *err)
{
    unsigned char   magic[MAGIC] = {0};
    const size_t    got          = n < sizeof magic ? n : sizeof magic;
    pe_memory       memory       = {bytes, n};
    const pe_stream stream       = pe_memory_stream(&memory, path);
    posenc_arrays   read         = {0};
    pe_file_begin();
    memcpy(magic, bytes, got);
    if (is_csv(magic, got, path))
        return finish(set, &read, pe_csv_read(&read, bytes, n, path, err), path, err);
    return finish(set, &read,
                  is_archive(magic) ? pe_npz_read(&read, NULL, bytes, (int64_t)n, path, err)
                                    : read_front(&read, &stream, magic, err),
                  path, err);
}

/* A stream to its end, in memory. */
static posenc_status read_all(posenc_arrays *set, FILE *stream, const char *path, posenc_error *err)
{
    pe_bytes      bytes;
    posenc_status status = pe_file_read(&bytes, stream, PE_MAX_BYTES, path, err);
    pe_file_close(stream);
    if (status)
        return status;
    status = pe_arrays_parse(set, bytes.data, bytes.size, path, err);
    free(bytes.data);
    return status;
}

/* A regular file, which is closed. */
static posenc_status read_file(posenc_arrays *set, FILE *stream, int64_t size, const char *path,
                               posenc_error *err)
{
    unsigned char magic[MAGIC] = {0};
    posenc_arrays read         = {0};
    const size_t  got          = fread(magic, 1, sizeof magic, stream);
    rewind(stream);
    if (got && is_csv(magic, got, path))
        return read_all(set, stream, path, err);
    if (got && is_archive(magic))
        return finish(set, &read, pe_npz_read(&read, stream, NULL, size, path, err), path, err);
    const pe_stream     front = pe_file_stream(stream, size, path);
    const posenc_status status =
        got ? read_front(&read, &front, magic, err)
            : pe_file_fail(err, POSENC_ERROR_FORMAT, front.origin,
                           "it is empty; an .npy, .npz, .safetensors or .csv is needed");
    fclose(stream);
    return finish(set, &read, status, path, err);
}

posenc_status posenc_arrays_read(posenc_arrays *set, const char *path, posenc_error *err)
{
    pe_file_begin();
    FILE   *stream;
    int64_t size;
    if (!set || !path)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"arrays", NULL},
                            "set and path must not be NULL");
    const posenc_status status = pe_file_open(&stream, &size, path, err);
    if (status)
        return status;
    pe_file_done(err);
    return size >= 0 ? read_file(set, stream, size, path, err) : read_all(set, stream, path, err);
}

/* ---------------------------------------------------------------- writing ------------------- */

static posenc_status write_npy(const posenc_arrays *set, FILE *stream, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, NULL};
    char            header[PE_NPY_HEADER];
    size_t          length;
    if (set->count != 1)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin,
                            "an .npy holds one array but there are %d; use .npz", set->count);
    const posenc_tensor *tensor = &set->items[0].tensor;
    const posenc_status  status = pe_npy_header(header, &length, &set->items[0], origin, err);
    if (status)
        return status;
    const size_t bytes = pe_arrays_bytes(tensor);
    if (fwrite(header, 1, length, stream) != length || fwrite(tensor->data, 1, bytes, stream) != bytes)
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be written: %s",
                            pe_file_reason(errno));
    return POSENC_OK;
}

/* A caller may have changed what posenc_arrays_add made. */
static posenc_status check_set(const posenc_arrays *set, const char *path, posenc_error *err)
{
    for (int i = 0; i < set->count; i++)
        if (!pe_arrays_is_sound(&set->items[i]))
            return pe_file_fail(
                err, POSENC_ERROR_ARGUMENT, (pe_origin){path, NULL},
                "array %d is no contiguous array with a name, data, at most %d axes and sizes "
                "that can be; only such ones are written",
                i + 1, POSENC_MAX_DIMS);
    return POSENC_OK;
}

posenc_status posenc_arrays_print(const posenc_arrays *set, FILE *to, posenc_error *err)
{
    pe_file_begin();
    if (!set || !to)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"arrays", NULL},
                            "set and to must not be NULL");
    const posenc_status status = check_set(set, "the output", err);
    return status ? status : pe_csv_write(set, to, "the output", err);
}

posenc_status posenc_arrays_write(const posenc_arrays *set, const char *path, posenc_error *err)
{
    pe_file_begin();
    if (!set || !path)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){"arrays", NULL},
                            "set and path must not be NULL");
    const int         is_npy = pe_text_ends_with(path, ".npy"), is_csv_file = pe_text_ends_with(path, ".csv");
    posenc_whole_file file;
    if (!is_npy && !is_csv_file && !pe_text_ends_with(path, ".npz") && strcmp(path, "-"))
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){path, NULL},
                            "its name must end in .npz, .npy or .csv");
    posenc_status status = check_set(set, path, err);
    if (!status)
        status = posenc_whole_file_open(&file, path, err);
    if (status)
        return status;
    status = (is_npy        ? write_npy
              : is_csv_file ? pe_csv_write
                            : pe_npz_write)(set, file.stream, file.path, err);
    if (!status)
        return posenc_whole_file_commit(&file, err);
    posenc_whole_file_discard(&file);
    return status;
}
