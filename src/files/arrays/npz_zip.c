/* SPDX-License-Identifier: MIT */
/*
 * npz: NumPy's archive of named arrays
 *
 * The idea  A zip file whose members are "<name>.npy". libzip reads and writes the container; what
 *           is ours is distrust. An archive may lie about every number in it, so before a member is
 *           read its size is checked against three limits: what deflate can make of its compressed
 *           bytes at most (1032 : 1), what the whole archive may inflate to, and - in npy.c - what
 *           the header of the array says.
 * Refused   Encrypted members, other compressions, names that leave the archive ("/x", "../x"),
 *           names given twice, members that are no .npy, more than a million members, a wrong
 *           checksum.
 * Writing   Members are stored, dated 1980-01-01 and in the order of the set, so equal arrays give
 *           equal files. libzip builds the archive in memory and the bytes go to the caller's
 *           stream: that stream is a whole file or standard output, and a full disk is noticed in
 *           one place for every format.
 * Source    PKWARE APPNOTE 6.3.10; numpy/lib/npyio.py; Deutsch 1996, RFC 1951
 */
#include "files/arrays/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MAX_MEMBERS = 1000000, DEFLATE_AT_MOST = 1032, SMALLEST_BLOCK = 1024 };

/* ---------------------------------------------------------------- names --------------------- */

static const char suffix[] = ".npy";

static int leaves_archive(const char *name)
{
    if (*name == '/' || *name == '\\' || strchr(name, ':'))
        return 1;
    for (const char *part = name; *part;) {
        const size_t n = strcspn(part, "/\\");
        if (n == 2 && !memcmp(part, "..", 2))
            return 1;
        part += part[n] ? n + 1 : n;
    }
    return 0;
}

/* ---------------------------------------------------------------- reading ------------------- */

static int64_t member_read(void *from, void *to, uint64_t n)
{
    return zip_fread(from, to, n);
}

static const char *member_reason(void *from)
{
    return zip_file_strerror(from);
}

static posenc_status check_member(const zip_stat_t *s, int64_t file_size, int64_t budget, pe_origin origin,
                                  posenc_error *err)
{
    const zip_uint64_t needed =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((s->valid & needed) != needed)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "the archive does not say how it is stored");
    if (s->encryption_method != ZIP_EM_NONE)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "it is encrypted; write the archive without a password");
    if (s->comp_method != ZIP_CM_STORE && s->comp_method != ZIP_CM_DEFLATE)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "its compression is %d; stored (0) and deflated (8) are read", s->comp_method);
    if (s->comp_size > (zip_uint64_t)file_size)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "it claims %llu bytes of a file of %lld",
                            (unsigned long long)s->comp_size, (long long)file_size);
    if (s->size > (zip_uint64_t)budget)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "with this member the archive inflates to more than %lld bytes",
                            (long long)PE_MAX_BYTES);
    if (s->size / DEFLATE_AT_MOST > s->comp_size + SMALLEST_BLOCK)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "its %llu compressed bytes cannot inflate to the %llu it claims",
                            (unsigned long long)s->comp_size, (unsigned long long)s->size);
    return POSENC_OK;
}

static posenc_status check_name(const char *name, pe_origin origin, posenc_error *err)
{
    if (leaves_archive(name))
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "its name points outside the archive; use plain names");
    const size_t n = strlen(name), end = sizeof suffix - 1;
    if (n <= end || strcmp(name + n - end, suffix) != 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            strstr(name, ".pkl")
                                ? "it is part of a checkpoint of PyTorch (.pt, .bin), which is "
                                  "not read; save its tensors as .safetensors or .npz"
                                : "it is not named NAME.npy, as members of an .npz are");
    return POSENC_OK;
}

static posenc_status read_member(posenc_arrays *set, zip_t *archive, const zip_stat_t *s, pe_origin origin,
                                 posenc_error *err)
{
    posenc_array array;
    zip_file_t  *member = zip_fopen_index(archive, s->index, 0);
    if (!member)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "it cannot be opened: %s",
                            zip_strerror(archive));
    const pe_stream     stream = {member, member_read, member_reason, (int64_t)s->size, origin};
    const posenc_status status = pe_npy_read(&array, &stream, err);
    zip_fclose(member);
    if (status)
        return status;
    if (!pe_arrays_take(set, s->name, strlen(s->name) - (sizeof suffix - 1), &array))
        return pe_file_fail(err, POSENC_ERROR_MEMORY, origin, "not enough memory for one more array");
    return POSENC_OK;
}

static posenc_status read_members(posenc_arrays *set, zip_t *archive, int64_t size, const char *path,
                                  posenc_error *err)
{
    const zip_int64_t n      = zip_get_num_entries(archive, 0);
    const pe_origin   whole  = {path, NULL};
    int64_t           budget = PE_MAX_BYTES;
    if (n > MAX_MEMBERS)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, whole, "it has %lld members; at most %d are read",
                            (long long)n, MAX_MEMBERS);
    for (zip_int64_t i = 0; i < n; i++) {
        zip_stat_t s;
        if (zip_stat_index(archive, (zip_uint64_t)i, 0, &s) || !(s.valid & ZIP_STAT_NAME))
            return pe_file_fail(err, POSENC_ERROR_FORMAT, whole, "member %lld has no name", (long long)i);
        const pe_origin origin = {path, s.name};
        posenc_status   status = check_name(s.name, origin, err);
        if (status || (status = check_member(&s, size, budget, origin, err)) ||
            (status = read_member(set, archive, &s, origin, err)))
            return status;
        budget -= (int64_t)s.size;
    }
    return POSENC_OK;
}

posenc_status pe_npz_read(posenc_arrays *set, FILE *stream, const void *bytes, int64_t size, const char *path,
                          posenc_error *err)
{
    const pe_origin whole = {path, NULL};
    zip_error_t     trouble;
    zip_source_t   *source = stream ? zip_source_filep_create(stream, 0, -1, NULL)
                                    : zip_source_buffer_create(bytes, (zip_uint64_t)size, 0, NULL);
    if (!source) {
        pe_file_close(stream);
        return pe_file_fail(err, POSENC_ERROR_MEMORY, whole, "not enough memory to read it");
    }
    zip_error_init(&trouble);
    zip_t        *archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &trouble);
    posenc_status status;
    if (archive) {
        status = read_members(set, archive, size, path, err);
        zip_discard(archive);
    } else {
        const int doubled = zip_error_code_zip(&trouble) == ZIP_ER_EXISTS;
        status            = pe_file_fail(err, POSENC_ERROR_FORMAT, whole, "it is not a valid zip archive: %s",
                              doubled ? "two members have the same name" : zip_error_strerror(&trouble));
        zip_source_free(source);
    }
    zip_error_fini(&trouble);
    return status;
}

/* ---------------------------------------------------------------- writing ------------------- */

enum { DATE_1980_01_01 = 1 << 5 | 1, PIECE = 1 << 16 };

typedef char header_bytes[PE_NPY_HEADER];

/* One member: header and data stay where they are until the archive is closed. */
static posenc_status add_member(zip_t *archive, header_bytes *header, const posenc_array *array,
                                const char *path, posenc_error *err)
{
    const pe_origin origin = {path, array->name};
    char            name[1024];
    size_t          length;
    const int       n      = snprintf(name, sizeof name, "%s%s", array->name, suffix);
    posenc_status   status = pe_npy_header(*header, &length, array, origin, err);
    if (status || (status = check_name(name, origin, err)))
        return status;
    if (n >= (int)sizeof name)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin, "its name is longer than %zu characters",
                            sizeof name - 5);

    const zip_buffer_fragment_t pieces[2] = {{(zip_uint8_t *)*header, length},
                                             {array->tensor.data, pe_arrays_bytes(&array->tensor)}};
    zip_source_t *source = zip_source_buffer_fragment(archive, pieces, pieces[1].length ? 2 : 1, 0);
    if (!source)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, origin, "%s", zip_strerror(archive));
    const zip_int64_t index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin, "it cannot be added: %s",
                            zip_strerror(archive));
    }
    if (zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(archive, (zip_uint64_t)index, 0, DATE_1980_01_01, 0))
        return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be stored: %s", zip_strerror(archive));
    return POSENC_OK;
}

/* Fills `built`, which stays the caller's. */
static posenc_status build(zip_source_t *built, header_bytes *headers, const posenc_arrays *set,
                           const char *path, posenc_error *err)
{
    const pe_origin whole = {path, NULL};
    zip_error_t     trouble;
    zip_error_init(&trouble);
    zip_source_keep(built);
    zip_t        *archive = zip_open_from_source(built, ZIP_CREATE | ZIP_TRUNCATE, &trouble);
    posenc_status status  = POSENC_OK;
    if (!archive) {
        status = pe_file_fail(err, POSENC_ERROR_FILE, whole, "the archive cannot be started: %s",
                              zip_error_strerror(&trouble));
        zip_source_free(built);
    }
    for (int i = 0; i < set->count && !status; i++)
        status = add_member(archive, &headers[i], &set->items[i], path, err);
    if (!status && zip_close(archive) == 0)
        archive = NULL;
    else if (!status)
        status = pe_file_fail(err, POSENC_ERROR_FILE, whole, "the archive cannot be built: %s",
                              zip_strerror(archive));
    if (archive)
        zip_discard(archive);
    zip_error_fini(&trouble);
    return status;
}

static posenc_status copy_out(zip_source_t *built, FILE *stream, const char *path, posenc_error *err)
{
    const pe_origin whole = {path, NULL};
    char           *piece = malloc(PIECE);
    if (!piece || zip_source_open(built)) {
        free(piece);
        return pe_file_fail(err, POSENC_ERROR_MEMORY, whole, "not enough memory to write the archive");
    }
    zip_int64_t n;
    int         refused = 0;
    while ((n = zip_source_read(built, piece, PIECE)) > 0 && !refused)
        refused = fwrite(piece, 1, (size_t)n, stream) != (size_t)n;
    const int reason = errno;
    zip_source_close(built);
    free(piece);
    if (refused)
        return pe_file_fail(err, POSENC_ERROR_FILE, whole, "it cannot be written: %s",
                            pe_file_reason(reason));
    return n < 0 ? pe_file_fail(err, POSENC_ERROR_FILE, whole, "the archive cannot be read back") : POSENC_OK;
}

posenc_status pe_npz_write(const posenc_arrays *set, FILE *stream, const char *path, posenc_error *err)
{
    const pe_origin whole = {path, NULL};
    if (set->count < 1)
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, whole,
                            "there is no array to write; an archive needs at least one");
    header_bytes *headers = malloc((size_t)set->count * sizeof *headers);
    zip_source_t *built   = zip_source_buffer_create(NULL, 0, 0, NULL);
    posenc_status status  = POSENC_OK;
    if (!headers || !built)
        status = pe_file_fail(err, POSENC_ERROR_MEMORY, whole, "not enough memory for the archive");
    else if (!(status = build(built, headers, set, path, err)))
        status = copy_out(built, stream, path, err);
    zip_source_free(built);
    free(headers);
    return status;
}
