/* SPDX-License-Identifier: MIT */
/* calls.h: a command of the tool called as the tool calls it, with files of made arrays in a scratch
   folder. */
#ifndef TESTS_FILES_CALLS_H
#define TESTS_FILES_CALLS_H

#include "cli/frame/cli.h"
#include "verify/calc.h"
#include "verify/trial.h"

#include <getopt.h>
#include <math.h>
#include <posenc/files.h>
#include <posenc/registry.h>

#include "scratch.h"

enum { MOST_WORDS = 64 };

/* A call's words; text behind them belongs to somebody who outlives the call. */
typedef struct words {
    const char *list[MOST_WORDS];
    int         count;
} words;

static inline void say(words *w, const char *word)
{
    assert_true(w->count < MOST_WORDS - 1);
    w->list[w->count++] = word;
}

static inline words call_of(const cli_command *command, const char *const *list)
{
    words w = {{command->name}, 1};
    for (; *list; list++)
        say(&w, *list);
    return w;
}

/* Exit status; what it says goes to the file `said` of the scratch folder. */
static inline int call_words(const cli_command *command, words *w)
{
    cli_args args;
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    assert_non_null(freopen(scratch("said"), "w", stderr));
    optind     = 0; /* getopt begins anew */
    int status = cli_options_parse(&args, command, w->count, (char **)(uintptr_t)w->list);
    if (status == CLI_DONE)
        status = command->run(&args);
    free(args.given);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    return status;
}

static inline int call(const cli_command *command, const char *const *list)
{
    words w = call_of(command, list);
    return call_words(command, &w);
}

static inline void said(const char *part)
{
    size_t n;
    char  *text = scratch_read(scratch("said"), &n);
    if (part ? !strstr(text, part) : n > 0)
        fail_msg("\"%s\" is not what it says: %s", part ? part : "", text);
    free(text);
}

static inline posenc_arrays arrays_at(const char *path)
{
    posenc_arrays set = {0};
    posenc_error  err;
    if (posenc_arrays_read(&set, path, &err))
        fail_msg("%s", err.message);
    return set;
}

static inline const posenc_tensor *array_of(const posenc_arrays *set, const char *name)
{
    const posenc_tensor *t = posenc_arrays_find(set, name);
    if (!t)
        fail_msg("there is no array %s", name);
    return t;
}

static inline void same_array(const posenc_tensor *a, const posenc_tensor *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(pe_tensor_elements(a), pe_tensor_elements(b));
    assert_memory_equal(a->data, b->data, (size_t)pe_tensor_elements(a) * posenc_dtype_size(a->dtype));
}

/* Eighths below 2: exact in every storage type. */
static inline double eighth(const char *name, int64_t i)
{
    return floor(16 * posenc_random_uniform(7, name, (uint64_t)i)) / 8 - 1;
}

static inline posenc_tensor *add_filled(posenc_arrays *set, const char *name, posenc_dtype dtype,
                                        const int64_t *shape)
{
    posenc_tensor *t = posenc_arrays_add(set, name, dtype, 4, shape);
    assert_non_null(t);
    for (int64_t i = 0; i < pe_tensor_elements(t); i++)
        if (dtype == POSENC_DTYPE_F64)
            ((double *)t->data)[i] = eighth(name, i);
        else
            ((float *)t->data)[i] = (float)eighth(name, i);
    return t;
}

static inline void add_whole(posenc_arrays *set, const char *name, int32_t ndim, const int64_t *shape,
                             const int64_t *numbers)
{
    posenc_tensor *t = posenc_arrays_add(set, name, POSENC_DTYPE_I64, ndim, shape);
    assert_non_null(t);
    memcpy(t->data, numbers, (size_t)pe_tensor_elements(t) * sizeof *numbers);
}

static inline void write_arrays(posenc_arrays *set, const char *name)
{
    posenc_error err;
    if (posenc_arrays_write(set, scratch(name), &err))
        fail_msg("%s", err.message);
}

static inline posenc_arrays call_done(const cli_command *command, const char *const *list, const char *output)
{
    if (call(command, list) != CLI_DONE) {
        size_t n;
        fail_msg("%s", scratch_read(scratch("said"), &n));
    }
    return arrays_at(output);
}

static inline void same_sets(posenc_arrays *a, posenc_arrays *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].name, b->items[i].name);
        same_array(&a->items[i].tensor, &b->items[i].tensor);
    }
    posenc_arrays_free(a);
    posenc_arrays_free(b);
}

/* in.npz and out.npz of the scratch folder: paths that live as long as the program. */
static char input[SCRATCH_PATH], output[SCRATCH_PATH], other[SCRATCH_PATH];

/* A call on damaged arrays, and a part of the sentence that refuses it. */
typedef struct refusal {
    void (*spoil)(posenc_arrays *set); /* NULL: the arrays are good */
    const char *words[4];
    const char *part;
} refusal;

/* Each is refused with status 2 and its sentence, and nothing is written beside in.npz and `said`. */
static inline void all_are_refused(const cli_command *command, const refusal *rows, size_t count,
                                   posenc_arrays (*make)(posenc_dtype dtype))
{
    for (size_t i = 0; i < count; i++) {
        posenc_arrays set = make(POSENC_DTYPE_F64);
        words         w   = call_of(command, (const char *const[]){"-i", input, "-o", output, NULL});
        if (rows[i].spoil)
            rows[i].spoil(&set);
        for (int n = 0; n < 4 && rows[i].words[n]; n++)
            say(&w, rows[i].words[n]);
        write_arrays(&set, "in.npz");
        const int status = call_words(command, &w);
        said(rows[i].part);
        assert_int_equal(status, CLI_USAGE);
        assert_int_equal(scratch_count(), 2);
        posenc_arrays_free(&set);
    }
}

static inline int name_files(void **state)
{
    if (scratch_open(state))
        return -1;
    snprintf(input, sizeof input, "%s", scratch("in.npz"));
    snprintf(output, sizeof output, "%s", scratch("out.npz"));
    snprintf(other, sizeof other, "%s", scratch("other.npz"));
    return 0;
}

/* [B,L,H,D] of [B,H,L,D] */
static inline void swap_axes(posenc_tensor *t)
{
    const int64_t b = t->shape[0], h = t->shape[1], l = t->shape[2], d = t->shape[3];
    const size_t  size = posenc_dtype_size(t->dtype), row = (size_t)d * size;
    char         *from = t->data, *to = malloc((size_t)(b * h * l) * row);
    assert_non_null(to);
    for (int64_t i = 0; i < b * h * l; i++) {
        const int64_t at = (i / (h * l) * l + i % l) * h + i / l % h;
        memcpy(to + (size_t)at * row, from + (size_t)i * row, row);
    }
    free(from);
    *t = posenc_tensor_contiguous(to, t->dtype, 4, (const int64_t[]){b, l, h, d});
}

/* A .safetensors file of the set, its floats as half (upper half of the float for BF16). */
static inline void write_halves(const posenc_arrays *set, const char *name, const char *type)
{
    char     header[600] = "{";
    size_t   used = 1, n = 0;
    uint16_t halves[800];
    for (int i = 0; i < set->count; i++) {
        const posenc_tensor *t     = &set->items[i].tensor;
        const int64_t        count = pe_tensor_elements(t);
        assert_true(n + (size_t)count <= sizeof halves / sizeof *halves);
        used +=
            (size_t)snprintf(header + used, sizeof header - used,
                             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld,%lld,%lld,%lld],\"data_offsets\":"
                             "[%zu,%zu]}",
                             i ? "," : "", set->items[i].name, type, (long long)t->shape[0],
                             (long long)t->shape[1], (long long)t->shape[2], (long long)t->shape[3], 2 * n,
                             2 * (n + (size_t)count));
        for (int64_t x = 0; x < count; x++, n++) {
            uint32_t bits;
            memcpy(&bits, (const float *)t->data + x, sizeof bits);
            /* eighths are normal numbers in both: binary16 has 5 bits of exponent, biased by 15 */
            halves[n] =
                (uint16_t)(type[0] == 'B'
                               ? bits >> 16
                               : (bits >> 16 & 0x8000) |
                                     (bits << 1 ? (bits >> 13 & 0x3ff) | ((bits >> 23 & 0xff) - 112) << 10
                                                : 0));
        }
    }
    header[used++]                                        = '}';
    unsigned char file[8 + sizeof header + sizeof halves] = {(unsigned char)used, (unsigned char)(used >> 8)};
    memcpy(file + 8, header, used);
    memcpy(file + 8 + used, halves, 2 * n);
    scratch_write(name, file, 8 + used + 2 * n);
}

#endif
