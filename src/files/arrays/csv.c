/* SPDX-License-Identifier: MIT */
/*
 * csv: named arrays as text, to be written and read by hand
 *
 *     # q 2x3x4          two heads, three positions, four channels: six lines of four numbers
 *     1,2,3,4
 *     ...
 *     # pos              without a shape one line is a list; several are [lines,numbers of a line]
 *     0,1,2
 *
 * The idea  A line that begins with # names the array of the lines below, and may say its shape; each line of
 *           numbers is a row of the last axis. Lines before any name are an array named like the file.
 *           numpy.loadtxt and gnuplot pass over a line with #.
 * Types     Text has none: every array is F64 and is_text, so that masks and positions, which must be whole,
 *           can be told from real numbers by their values. Written numbers have the fewest digits that read
 *           back as the same number of their type.
 * Lenient   Blanks around numbers, empty lines, the mark of UTF-8 at the beginning, carriage returns, and the
 *           empty cells that a spreadsheet puts behind a short line with #.
 * Strict    Every line of an array has as many numbers as its first, and all together as many as its shape.
 */
#include "base/shared/decimal.h"
#include "base/half.h"
#include "files/arrays/formats.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 64, NAME_SHOWN = 40 };

/* Where the reader is, and the array that it is reading. */
typedef struct csv_reader {
    posenc_arrays *set;
    const char    *at, *end;
    int64_t        line;
    pe_origin      origin;
    posenc_error  *err;

    const char *name; /* NULL: no array has begun */
    size_t      length;
    int         is_unnamed; /* no line with # said it */
    int64_t     shape[POSENC_MAX_DIMS], named_at;
    int32_t     ndim; /* 0: the lines tell */
    double     *numbers;
    int64_t     count, room, rows, columns;
} csv_reader;

/* ---------------------------------------------------------------- one line ------------------ */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next line, without its end and the blanks around it. */
static void next_line(csv_reader *r, const char **from, const char **to)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *from           = r->at;
    *to             = end ? end : r->end;
    r->at           = end ? end + 1 : r->end;
    r->line++;
    while (*from < *to && is_blank(**from))
        ++*from;
    while (*from < *to && is_blank((*to)[-1]))
        --*to;
}

/* "2x3x4", all of it. */
static int read_shape(csv_reader *r, const char *from, const char *to)
{
    int64_t total = 1;
    for (r->ndim = 0; from < to && r->ndim < POSENC_MAX_DIMS; from++) {
        int64_t n = 0, digits = 0;
        for (; from < to && *from >= '0' && *from <= '9' && n < PE_MAX_BYTES; from++, digits++)
            n = 10 * n + (*from - '0');
        if (!digits || (from < to && *from != 'x') || n > PE_MAX_BYTES / 8 / (total ? total : 1))
            return 0;
        total *= n;
        r->shape[r->ndim++] = n;
        if (from == to)
            return 1;
    }
    return 0;
}

static int has_name(const posenc_arrays *set, const char *name, size_t length)
{
    for (int i = 0; i < set->count; i++)
        if (strlen(set->items[i].name) == length && !memcmp(set->items[i].name, name, length))
            return 1;
    return 0;
}

/* "# q 2x3x4" */
static posenc_status begin_array(csv_reader *r, const char *from, const char *to)
{
    while (to > from && (to[-1] == ',' || is_blank(to[-1])))
        to--;
    for (from++; from < to && is_blank(*from);)
        from++;
    r->name     = from;
    r->named_at = r->line;
    for (r->ndim = 0; from < to && !is_blank(*from);)
        from++;
    r->length = (size_t)(from - r->name);
    while (from < to && is_blank(*from))
        from++;
    r->is_unnamed = 0;
    if (has_name(r->set, r->name, r->length))
        return pe_file_fail(r->err, POSENC_ERROR_FORMAT, r->origin,
                            "line %lld: %.*s is a name that an array above it has; give it another",
                            (long long)r->line, (int)(r->length < NAME_SHOWN ? r->length : NAME_SHOWN),
                            r->name);
    if (!r->length || memchr(r->name, '\0', r->length) || (from < to && !read_shape(r, from, to)))
        return pe_file_fail(r->err, POSENC_ERROR_FORMAT, r->origin,
                            "line %lld: a line with # must be the name of the array below it, and its shape "
                            "if it has one, such as # q 2x3x4",
                            (long long)r->line);
    return POSENC_OK;
}

static posenc_status append(csv_reader *r, double x)
{
    if (r->count == r->room) {
        const int64_t room = r->room ? 2 * r->room : 64;
        double       *more = (uint64_t)room > SIZE_MAX / sizeof *more
                                 ? NULL
                                 : realloc(r->numbers, (size_t)room * sizeof *more);
        if (!more)
            return pe_file_fail(r->err, POSENC_ERROR_MEMORY, r->origin, "not enough memory for its numbers");
        r->numbers = more;
        r->room    = room;
    }
    r->numbers[r->count++] = x;
    return POSENC_OK;
}

/* The number between two commas, which must end with a zero. */
static posenc_status read_number(csv_reader *r, const char *from, const char *to, int64_t column)
{
    char         text[LONGEST_NUMBER + 1] = "";
    const size_t n                        = (size_t)(to - from);
    char        *end                      = text;
    double       x                        = 0;
    if (n && n <= LONGEST_NUMBER) {
        memcpy(text, from, n);
        x = pe_decimal_read(text, &end);
        end += strspn(end, " \t\r");
    }
    if (end == text || *end || end < text + n)
        return pe_file_fail(r->err, POSENC_ERROR_FORMAT, r->origin,
                            "line %lld: number %lld is \"%.*s\"; it must be a number such as 0.5, and commas "
                            "separate the numbers of a line",
                            (long long)r->line, (long long)column, (int)(n < NAME_SHOWN ? n : NAME_SHOWN),
                            from);
    return append(r, x);
}

static posenc_status read_row(csv_reader *r, const char *from, const char *to)
{
    posenc_status status  = POSENC_OK;
    int64_t       columns = 0;
    for (const char *comma; from <= to && !status; from = comma + 1) {
        comma  = memchr(from, ',', (size_t)(to - from));
        comma  = comma ? comma : to;
        status = read_number(r, from, comma, ++columns);
    }
    r->columns = r->rows++ ? r->columns : columns;
    if (!status && columns != r->columns)
        return pe_file_fail(r->err, POSENC_ERROR_FORMAT, r->origin,
                            "line %lld: it has %lld numbers, but the lines above it have %lld",
                            (long long)r->line, (long long)columns, (long long)r->columns);
    return status;
}

/* ---------------------------------------------------------------- one array ----------------- */

/* The shape that the lines tell, where the line with # does not. */
static posenc_status find_shape(csv_reader *r)
{
    if (!r->ndim && !r->rows)
        return pe_file_fail(r->err, POSENC_ERROR_FORMAT, r->origin,
                            "line %lld: there are no numbers below it", (long long)r->named_at);
    if (!r->ndim) {
        r->ndim               = r->rows > 1 ? 2 : 1;
        r->shape[0]           = r->rows > 1 ? r->rows : r->columns;
        r->shape[r->ndim - 1] = r->columns;
        return POSENC_OK;
    }
    int64_t total = 1;
    for (int32_t a = 0; a < r->ndim; a++)
        total *= r->shape[a];
    if (total == r->count && (!r->count || r->columns == r->shape[r->ndim - 1]))
        return POSENC_OK;
    return pe_file_fail(
        r->err, POSENC_ERROR_FORMAT, r->origin,
        "line %lld: its shape asks for %lld lines of %lld numbers, but there are %lld of %lld",
        (long long)r->named_at, (long long)(r->shape[r->ndim - 1] ? total / r->shape[r->ndim - 1] : 0),
        (long long)r->shape[r->ndim - 1], (long long)r->rows, (long long)r->columns);
}

/* Takes what was read into the set; nothing if no array has begun. */
static posenc_status end_array(csv_reader *r)
{
    posenc_array  array  = {.is_text = 1, .is_unnamed = r->is_unnamed};
    posenc_status status = r->name ? find_shape(r) : POSENC_OK;
    if (!r->name || status)
        return status;
    array.tensor      = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, r->ndim, r->shape);
    array.tensor.data = pe_file_alloc(r->count, sizeof(double));
    if (array.tensor.data && r->count)
        memcpy(array.tensor.data, r->numbers, (size_t)r->count * sizeof(double));
    if (!array.tensor.data || !pe_arrays_take(r->set, r->name, r->length, &array))
        return pe_file_fail(r->err, POSENC_ERROR_MEMORY, r->origin, "not enough memory for its numbers");
    r->name  = NULL;
    r->count = r->rows = r->columns = 0;
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the file ------------------ */

static posenc_status read_line(csv_reader *r, const char *from, const char *to)
{
    if (from == to)
        return POSENC_OK;
    if (*from == '#') {
        const posenc_status status = end_array(r);
        return status ? status : begin_array(r, from, to);
    }
    if (!r->name) {
        r->name       = pe_file_stem(r->origin.path, &r->length);
        r->is_unnamed = 1;
    }
    return read_row(r, from, to);
}

static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */

posenc_status pe_csv_read(posenc_arrays *set, const char *text, size_t n, const char *path, posenc_error *err)
{
    csv_reader    r      = {.set = set, .at = text, .end = text + n, .origin = {path, NULL}, .err = err};
    posenc_status status = POSENC_OK;
    if (n >= 3 && !memcmp(text, mark, 3))
        r.at += 3;
    while (r.at < r.end && !status) {
        const char *from, *to;
        next_line(&r, &from, &to);
        status = read_line(&r, from, to);
    }
    if (!status)
        status = end_array(&r);
    if (!status && !set->count)
        status = pe_file_fail(err, POSENC_ERROR_FORMAT, r.origin, "it has no numbers");
    free(r.numbers);
    return status;
}

int pe_csv_begins(const char *first, size_t n)
{
    const size_t from = n >= 3 && !memcmp(first, mark, 3) ? 3 : 0;
    return n > from && memchr("#+-.0123456789 \t\r\n", first[from], 18) != NULL;
}

/* ---------------------------------------------------------------- writing ------------------- */

/* Numbers of fewer bits than a double have fewer digits. */
static void put_number(FILE *to, const posenc_tensor *t, int64_t i)
{
    const uint16_t *bits = t->data;
    char            text[PE_TEXT_REAL];
    switch (t->dtype) {
    case POSENC_DTYPE_F64: fputs(pe_text_real(text, ((const double *)t->data)[i]), to); break;
    case POSENC_DTYPE_F32: fputs(pe_text_single(text, ((const float *)t->data)[i]), to); break;
    case POSENC_DTYPE_F16: fputs(pe_text_single(text, pe_half_f16_to_float(bits[i])), to); break;
    case POSENC_DTYPE_BF16: fputs(pe_text_single(text, pe_half_bf16_to_float(bits[i])), to); break;
    case POSENC_DTYPE_I64: fprintf(to, "%lld", (long long)((const int64_t *)t->data)[i]); break;
    case POSENC_DTYPE_I32: fprintf(to, "%d", (int)((const int32_t *)t->data)[i]); break;
    case POSENC_DTYPE_U8: fprintf(to, "%d", ((const unsigned char *)t->data)[i]); break;
    default: break; /* posenc_arrays_add makes no others */
    }
}

/* A name that the line with # would not end with, or that would begin lines of its own. */
static int has_gaps(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name <= ' ')
            return 1;
    return 0;
}

static void write_array(FILE *to, const posenc_array *array)
{
    const posenc_tensor *t     = &array->tensor;
    const int64_t        width = t->ndim ? t->shape[t->ndim - 1] : 1;
    int64_t              count = 1;
    fprintf(to, "# %s", array->name);
    for (int32_t a = 0; a < t->ndim; a++) {
        fprintf(to, "%c%lld", a ? 'x' : ' ', (long long)t->shape[a]);
        count *= t->shape[a];
    }
    fputc('\n', to);
    for (int64_t i = 0; i < count; i++) {
        put_number(to, t, i);
        fputc((i + 1) % width ? ',' : '\n', to);
    }
}

posenc_status pe_csv_write(const posenc_arrays *set, FILE *to, const char *path, posenc_error *err)
{
    for (int i = 0; i < set->count; i++)
        if (!*set->items[i].name || has_gaps(set->items[i].name))
            return pe_file_fail(
                err, POSENC_ERROR_ARGUMENT, (pe_origin){path, NULL},
                "array %d has a name without characters, or with blanks among them, which CSV "
                "cannot hold; write an .npz",
                i + 1);
    for (int i = 0; i < set->count; i++)
        if (set->items[i].is_complex)
            return pe_file_fail(err, POSENC_ERROR_ARGUMENT, (pe_origin){path, NULL},
                                "%s holds complex numbers, which CSV has not; write an .npz or .npy",
                                set->items[i].name);
    for (int i = 0; i < set->count; i++)
        write_array(to, &set->items[i]);
    return pe_file_done(err); /* a write that failed shows when the stream is closed */
}
