/* SPDX-License-Identifier: MIT */
/*
 * permute.c: contract in permute.h
 *
 * Rows   half -> interleaved: new row 2i + c is old row c M + i of the rotary block of M pairs; interleaved
 * -> half the other way. Twice in one direction is not the identity (its order is 7 for 128 channels).
 *
 * Memory A rotary block of up to BUFFER bytes is read whole, its rows put in order and written; of a wider
 * one each row is copied by itself. What lies between is copied. A block that is a hole stays one.
 *
 * Sets   A sharded checkpoint is written file by file beside where it shall stand, then all are renamed, the
 * index last: until then the old one is whole. Only the checkpoint itself may stand there already, to be
 * replaced. Between its renames a crash leaves files of both layouts; each says in its header which it is, so
 * the same command once more does the rest.
 */
#include "convert/permute.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/shared/compiler.h"
#include "convert/index.h"
#include "convert/marker.h"
#include "files/arrays/file.h"
#include "files/arrays/json.h"
#include "files/arrays/text.h"

enum { BUFFER = 1 << 20 };

static posenc_status fail(posenc_error *err, posenc_status status, const char *path, const char *format, ...)
    PE_PRINTF(4, 5);

static posenc_status fail(posenc_error *err, posenc_status status, const char *path, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const posenc_status told = pe_file_fail_list(err, status, (pe_origin){path, NULL}, format, values);
    va_end(values);
    return told;
}

static posenc_status no_memory(posenc_error *err, const char *path)
{
    return fail(err, POSENC_ERROR_MEMORY, path, "not enough memory");
}

/* ---------------------------------------------------------------- the plan: files ----------- */

static posenc_status open_file(pe_permute *p, const char *path, const char *name)
{
    pe_permute_file *more = realloc(p->files, (size_t)(p->file_count + 1) * sizeof *more);
    if (!more)
        return no_memory(p->err, p->path);
    p->files           = more;
    pe_permute_file *f = &more[p->file_count++];
    *f                 = (pe_permute_file){.path = pe_file_beside(path, name), .name = strdup(name)};
    if (!f->path || !f->name)
        return no_memory(p->err, p->path);
    const posenc_status status = pe_checkpoint_open(&f->c, f->path, p->err);
    if (!status)
        p->bytes += f->c.size;
    pe_marker_read(&f->now, &f->was, &f->c);
    return status;
}

/* Each file of weight_map once; a name with a folder in it is not followed. */
static posenc_status open_parts(pe_permute *p, const json_t *map)
{
    const char   *name;
    json_t       *value;
    posenc_status status = POSENC_OK;
    json_object_foreach((json_t *)(uintptr_t)map, name, value)
    {
        const char *file  = json_string_value(value);
        int         known = 0;
        if (status)
            break;
        for (int i = 0; file && i < p->file_count; i++)
            known |= !strcmp(p->files[i].name, file);
        if (!file || !*file || strchr(file, '/'))
            status = fail(p->err, POSENC_ERROR_FORMAT, p->path,
                          "weight_map names no file of its folder for %.60s", name);
        else if (!known)
            status = open_file(p, p->path, file);
    }
    return status;
}

static posenc_status open_index(pe_permute *p)
{
    json_t       *index;
    const json_t *map;
    posenc_status status = pe_index_open(&index, &map, p->path, p->err);
    if (status)
        return status;
    p->is_sharded = 1;
    status        = open_parts(p, map);
    json_decref(index);
    return status;
}

/* ---------------------------------------------------------------- the plan: changes --------- */

static posenc_status list_changes(pe_permute *p, pe_permute_file *f, const pe_permute_wish *wish)
{
    pe_rows_source source = wish->source;
    int            found;
    f->changes = calloc((size_t)f->c.count + 1, sizeof *f->changes);
    if (!f->changes)
        return no_memory(p->err, f->path);
    for (int i = 0; i < f->c.count; i++) {
        const posenc_status status = pe_rows_find(&f->changes[f->count], &found, &f->c, i, &source, p->err);
        if (status)
            return status;
        f->count += found;
    }
    p->changes += f->count;
    return POSENC_OK;
}

/* What a file is: what its header says; where that says nothing, what the others were. */
static pe_layout state_of(const pe_permute *p, const pe_permute_file *f)
{
    pe_layout state = f->now;
    for (int i = 0; i < p->file_count && state == PE_LAYOUT_UNTOLD; i++)
        state = p->files[i].was;
    return state;
}

/* Files that a run which was cut short has done are as wanted already. Where all are, none is left out. */
static void leave_out_done(pe_permute *p, pe_layout to)
{
    int done = 0, all = 0;
    for (int i = 0; i < p->file_count; i++) {
        all += p->files[i].count > 0;
        done += p->files[i].count > 0 && state_of(p, &p->files[i]) == to;
    }
    for (int i = 0; i < p->file_count && done < all; i++)
        if (state_of(p, &p->files[i]) == to) {
            p->changes -= p->files[i].count;
            p->files[i].count = 0;
        }
}

/* What the header of a file that changes says. */
static pe_layout read_mark(const pe_permute *p)
{
    for (int i = 0; i < p->file_count; i++)
        if (p->files[i].count)
            return p->files[i].now;
    return PE_LAYOUT_UNTOLD;
}

/* From which layout: the caller's word, the header's, the type's, the other one. */
static posenc_status choose_layouts(pe_permute *p, const pe_permute_wish *wish)
{
    pe_heads heads;
    leave_out_done(p, wish->to);
    const pe_layout now     = read_mark(p);
    const int       rotates = wish->source.model && pe_rows_heads(&heads, &wish->source, -1);
    const char     *type    = rotates ? heads.layout : NULL;
    p->to                   = wish->to;
    if (now != PE_LAYOUT_UNTOLD && wish->from != PE_LAYOUT_UNTOLD && wish->from != now)
        return fail(p->err, POSENC_ERROR_ARGUMENT, p->path,
                    "--from says %s but its header says that posenc has made it %s; leave out --from",
                    pe_layout_name(wish->from), pe_layout_name(now));
    p->from = now != PE_LAYOUT_UNTOLD ? now : wish->from;
    if (p->from == PE_LAYOUT_UNTOLD && type)
        p->from = !strcmp(type, "half") ? PE_LAYOUT_HALF : PE_LAYOUT_INTERLEAVED;
    if (p->from == PE_LAYOUT_UNTOLD)
        p->from = (pe_layout)!p->to;
    if (p->from != p->to)
        return POSENC_OK;
    if (wish->from != PE_LAYOUT_UNTOLD)
        return fail(p->err, POSENC_ERROR_ARGUMENT, p->path,
                    "--from and --to are both %s: nothing would change", pe_layout_name(p->to));
    return fail(p->err, POSENC_ERROR_ARGUMENT, p->path,
                now != PE_LAYOUT_UNTOLD
                    ? "it is %s already: its header says that posenc has made it so"
                    : "it is %s already, as all files of its model type are; if this one is "
                      "not, say so with --from",
                pe_layout_name(p->to));
}

/* Without a config a latent key is what tells MLA: the last channels of a head rotate, not the first. */
static void find_latent(const pe_permute *p, pe_permute_wish *wish)
{
    pe_heads *h = &wish->source.sizes;
    for (int i = 0; !wish->source.model && i < p->file_count; i++)
        if (pe_rows_is_latent(&p->files[i].c))
            h->offset = h->D - h->dim;
}

posenc_status pe_permute_plan(pe_permute *p, const char *path, const pe_permute_wish *wish, posenc_error *err)
{
    const char     *slash = strrchr(path, '/');
    pe_permute_wish full  = *wish;
    *p                    = (pe_permute){.path = path, .err = err};
    pe_file_begin();
    posenc_status status =
        pe_text_ends_with(path, ".json") ? open_index(p) : open_file(p, path, slash ? slash + 1 : path);
    find_latent(p, &full);
    for (int i = 0; !status && i < p->file_count; i++)
        status = list_changes(p, &p->files[i], &full);
    if (!status && !p->changes)
        status = fail(err, POSENC_ERROR_FORMAT, path,
                      "it has no projection of queries or keys that rotates (such as q_proj, k_proj, "
                      "query_key_value): nothing would change");
    if (!status && pe_file_lost_memory())
        status = no_memory(err, path);
    return status ? status : choose_layouts(p, wish);
}

void pe_permute_free(pe_permute *p)
{
    for (int i = 0; i < p->file_count; i++) {
        pe_permute_file *f = &p->files[i];
        if (f->c.path)
            pe_checkpoint_close(&f->c);
        free(f->changes);
        free(f->path);
        free(f->name);
    }
    free(p->files);
    *p = (pe_permute){0};
}

/* ---------------------------------------------------------------- the run ------------------- */

typedef struct permute_run {
    const pe_permute    *p;
    const pe_checkpoint *c;
    pe_writer           *w;
    char                *block, *ordered; /* BUFFER bytes each */
    posenc_error        *err;
} permute_run;

/* The old row whose numbers new row r gets. */
static int64_t old_row(const permute_run *r, int64_t dim, int64_t row)
{
    const int64_t M = dim / 2;
    return r->p->to == PE_LAYOUT_INTERLEAVED ? row % 2 * M + row / 2 : row % M * 2 + row / M;
}

/* dim rows from byte `at` on, in the new order. */
static posenc_status permute_block(const permute_run *r, int64_t dim, int64_t row_bytes, int64_t at)
{
    const int64_t n      = dim * row_bytes;
    posenc_status status = POSENC_OK;
    if (pe_checkpoint_is_hole(r->c, n, at))
        return pe_writer_copy(r->w, r->c, n, at, r->err);
    if (n > BUFFER) {
        for (int64_t i = 0; !status && i < dim; i++)
            status = pe_writer_copy(r->w, r->c, row_bytes, at + old_row(r, dim, i) * row_bytes, r->err);
        return status;
    }
    if ((status = pe_checkpoint_read(r->c, r->block, n, at, r->err)))
        return status;
    for (int64_t i = 0; i < dim; i++)
        memcpy(r->ordered + i * row_bytes, r->block + old_row(r, dim, i) * row_bytes, (size_t)row_bytes);
    return pe_writer_put(r->w, r->ordered, n, r->err);
}

static posenc_status permute_tensor(const permute_run *r, const pe_rows_change *c)
{
    const pe_checkpoint_tensor *t     = &r->c->tensors[c->tensor];
    const int64_t               slots = c->rows / c->slot, dim = c->heads.dim;
    int64_t                     done   = 0; /* rows */
    posenc_status               status = POSENC_OK;
    for (int64_t i = 0; !status && i < slots; i++) {
        if (!pe_rows_rotates(c, i))
            continue;
        const int64_t first = i * c->slot + c->heads.offset;
        status =
            pe_writer_copy(r->w, r->c, (first - done) * c->row_bytes, t->begin + done * c->row_bytes, r->err);
        if (!status)
            status = permute_block(r, dim, c->row_bytes, t->begin + first * c->row_bytes);
        done = first + dim;
    }
    return status ? status
                  : pe_writer_copy(r->w, r->c, (c->rows - done) * c->row_bytes,
                                   t->begin + done * c->row_bytes, r->err);
}

static posenc_status put_header(const permute_run *r, const pe_permute_file *f)
{
    const pe_permute *p    = r->p;
    const int         back = f->now != PE_LAYOUT_UNTOLD && f->was == p->to;
    const pe_layout   now  = !f->count ? f->now : back ? PE_LAYOUT_UNTOLD : p->to;
    int64_t           n    = 0;
    char             *text = pe_marker_write(&n, r->c, now, p->from);
    if (!text)
        return no_memory(r->err, f->path);
    const posenc_status status = pe_writer_header(r->w, text, n, r->err);
    free(text);
    return status;
}

static posenc_status write_file(permute_run *r, const pe_permute_file *f)
{
    int64_t       done   = f->c.data;
    posenc_status status = put_header(r, f);
    for (int i = 0; !status && i < f->count; i++) {
        const pe_rows_change       *c = &f->changes[i];
        const pe_checkpoint_tensor *t = &f->c.tensors[c->tensor];
        status                        = pe_writer_copy(r->w, r->c, t->begin - done, done, r->err);
        if (!status)
            status = permute_tensor(r, c);
        done = t->begin + t->bytes;
    }
    return status ? status : pe_writer_copy(r->w, r->c, f->c.size - done, done, r->err);
}

/* What is told of one file is told of all. */
typedef struct permute_told {
    pe_progress all;
    int64_t     before;
} permute_told;

static void tell(void *self, int64_t done)
{
    const permute_told *t = self;
    t->all.tell(t->all.self, t->before + done);
}

/* Every file, each into its writer, which stays open. */
static posenc_status write_files(const pe_permute *p, pe_writer *writers, const char *output,
                                 pe_progress progress, posenc_error *err)
{
    char         *buffers = malloc(2 * BUFFER);
    permute_told  told    = {progress, 0};
    posenc_status status  = buffers ? POSENC_OK : no_memory(err, p->path);
    for (int i = 0; !status && i < p->file_count; i++) {
        const pe_permute_file *f    = &p->files[i];
        char                  *path = p->is_sharded ? pe_file_beside(output, f->name) : strdup(output);
        permute_run            r    = {p, &f->c, &writers[i], buffers, buffers + BUFFER, err};
        status =
            path ? pe_writer_open(&writers[i], path, (pe_progress){progress.tell ? tell : NULL, &told}, err)
                 : no_memory(err, p->path);
        free(path);
        if (!status)
            status = write_file(&r, f);
        told.before += f->c.size;
    }
    free(buffers);
    return status;
}

/* The index is as it was. */
static posenc_status write_index(const pe_permute *p, const char *output, posenc_error *err)
{
    pe_bytes          bytes;
    posenc_whole_file file;
    posenc_status     status = pe_index_read(&bytes, p->path, err);
    if (status)
        return status;
    if (!(status = posenc_whole_file_open(&file, output, err))) {
        fwrite(bytes.data, 1, bytes.size, file.stream); /* whether all arrived, commit says */
        status = posenc_whole_file_commit(&file, err);
    }
    free(bytes.data);
    return status;
}

/* Only the index names its files: what a link in the place of one points to is left alone. `old`: the file
   that may be replaced there, NULL: none. */
static posenc_status check_place(const char *path, const char *old, posenc_error *err)
{
    struct stat about;
    if (lstat(path, &about)) /* a link to nowhere is something too */
        return POSENC_OK;
    if (old && S_ISLNK(about.st_mode))
        return fail(err, POSENC_ERROR_ARGUMENT, path,
                    "it is a symbolic link, which only the index names; put the file itself in its place, or "
                    "name another folder");
    return old && pe_file_is_same(path, old)
               ? POSENC_OK
               : fail(err, POSENC_ERROR_ARGUMENT, path,
                      "it exists; name a folder without files of a sharded checkpoint, or the index itself, "
                      "to replace them");
}

static posenc_status check_file(const pe_permute *p, int i, const char *output, posenc_error *err)
{
    const char *slash = strrchr(output, '/'), *name = p->files[i].name;
    if (!strcmp(slash ? slash + 1 : output, name))
        return fail(err, POSENC_ERROR_ARGUMENT, output,
                    "the index lists a file of that very name; name the output otherwise");
    char *path = pe_file_beside(output, name);
    if (!path)
        return no_memory(err, output);
    const posenc_status status =
        check_place(path, pe_file_is_same(p->path, output) ? p->files[i].path : NULL, err);
    free(path);
    return status;
}

/* Where a sharded checkpoint may go: in its own place, or where nothing is. */
static posenc_status check_output(const pe_permute *p, const char *output, posenc_error *err)
{
    const int is_same = pe_file_is_same(p->path, output);
    if (!p->is_sharded)
        return POSENC_OK;
    if (!is_same && !pe_text_ends_with(output, ".json"))
        return fail(
            err, POSENC_ERROR_ARGUMENT, output,
            "the output of a sharded checkpoint is its index too: name it as %.200s, in another folder",
            p->path);
    posenc_status status = POSENC_OK;
    for (int i = 0; !status && i < p->file_count; i++)
        status = check_file(p, i, output, err);
    return status || is_same ? status : check_place(output, NULL, err);
}

posenc_status pe_permute_run(const pe_permute *p, const char *output, pe_progress progress, posenc_error *err)
{
    pe_file_begin();
    posenc_status status = check_output(p, output, err);
    if (status)
        return status;
    pe_writer *writers = calloc((size_t)p->file_count, sizeof *writers);
    status             = writers ? write_files(p, writers, output, progress, err) : no_memory(err, p->path);
    for (int i = 0; !status && i < p->file_count; i++)
        status = pe_writer_commit(&writers[i], err);
    if (!status && p->is_sharded && !pe_file_is_same(p->path, output))
        status = write_index(p, output, err);
    for (int i = 0; writers && i < p->file_count; i++)
        pe_writer_discard(&writers[i]);
    free(writers);
    return status ? status : pe_file_done(err);
}
