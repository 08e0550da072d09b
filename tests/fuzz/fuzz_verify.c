/* SPDX-License-Identifier: MIT */
/*
 * fuzz_verify: a reference case of tests/golden, changed as a stranger could change it
 *
 * The bytes choose a case, and what happens to it: arrays that are missing, have another name, type, shape or
 * a number from the edge; settings more or other than it had; an offset, a scale and an error of angles of
 * any size. It passes or fails; a failure has a sentence of one line.
 */
#include <posenc/registry.h>

#include "base/tensor.h"
#include "fuzz/draw.h"
#include "verify/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { CASES = 400, LARGEST = 1 << 12, TEXT = 512 };

typedef struct known {
    const posenc_case *c;
    posenc_arrays      file;
} known;

static posenc_cases cases;
static known        all[CASES];
static int          count;

/* ---- the cases as they are ---- */

static int64_t elements(const posenc_arrays *file)
{
    int64_t n = 0;
    for (int i = 0; i < file->count; i++)
        n += pe_tensor_elements(&file->items[i].tensor);
    return n;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = elements(&((const known *)a)->file), y = elements(&((const known *)b)->file);
    return x < y ? -1 : x > y;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    posenc_error err;
    char         path[1024];
    if (posenc_cases_read(&cases, POSENC_SOURCE_DIR "/tests/golden", &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    for (int i = 0; i < cases.count && count < CASES; i++) {
        snprintf(path, sizeof path, "%s/tests/golden/%s", POSENC_SOURCE_DIR, cases.items[i].file);
        all[count].c = &cases.items[i];
        if (!posenc_arrays_read(&all[count].file, path, &err) && elements(&all[count].file) <= LARGEST)
            count++;
        else
            posenc_arrays_free(&all[count].file);
    }
    qsort(all, (size_t)count, sizeof *all, by_size);
    return count ? 0 : 1;
}

/* ---- changed ---- */

/* The small ones more often: a case takes as long as it is large. */
static const known *any_case(draw_source *s)
{
    const int64_t high = draw_below(s, 256), at = high * 256 + draw_below(s, 256);
    return &all[at * at / 65536 * count / 65536];
}

static const char *any_name(draw_source *s)
{
    const posenc_arrays *file = &all[draw_below(s, count)].file;
    return file->items[draw_below(s, file->count)].name;
}

/* Another shape of at most as many elements. */
static void change_shape(draw_source *s, posenc_tensor *t)
{
    const int64_t most = pe_tensor_elements(t);
    const int     axis = (int)draw_below(s, POSENC_MAX_DIMS);
    switch (draw_below(s, 4)) {
    case 0:
        t->ndim     = 1;
        t->shape[0] = most;
        break;
    case 1: t->ndim = t->ndim > 0 ? t->ndim - 1 : 0; break;
    case 2:
        if (t->ndim < POSENC_MAX_DIMS)
            t->shape[t->ndim++] = 1;
        break;
    default:
        if (axis < t->ndim && t->shape[axis] > 0)
            t->shape[axis] = draw_below(s, t->shape[axis] + 1);
    }
}

static double number_at(const posenc_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case POSENC_DTYPE_I64: return (double)((const int64_t *)t->data)[i];
    case POSENC_DTYPE_U8: return ((const uint8_t *)t->data)[i];
    default: return draw_get(t->data, t->dtype, i);
    }
}

static void add_array(draw_source *s, posenc_arrays *to, const posenc_array *from, int changes)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F64,  POSENC_DTYPE_I64,
                                         POSENC_DTYPE_U8,  POSENC_DTYPE_BF16, POSENC_DTYPE_F16};
    posenc_tensor             t       = from->tensor;
    const char               *name    = from->name;
    const int                 change  = changes ? (int)draw_below(s, 6) : -1;
    if (change == 0)
        return;
    if (change == 1)
        name = any_name(s);
    if (change == 2)
        t.dtype = types[draw_below(s, 6)];
    if (change == 3)
        change_shape(s, &t);
    const posenc_tensor *made = posenc_arrays_add(to, name, t.dtype, t.ndim, t.shape);
    const int64_t        n    = made ? pe_tensor_elements(made) : 0;
    for (int64_t i = 0; i < n; i++)
        draw_put(made->data, made->dtype, i, number_at(&from->tensor, i));
    if (change == 4 && n)
        draw_put(made->data, made->dtype, draw_below(s, n), draw_real(s));
}

/* One more setting, or one of any encoding. */
static void add_setting(draw_source *s, char *text, const char *encoding)
{
    const posenc_encoding_info *info = posenc_encoding_find(encoding);
    const size_t                used = strlen(text);
    if (!info || !info->setting_count)
        return;
    const posenc_setting_info *row  = &info->settings[draw_below(s, info->setting_count)];
    const size_t               word = strcspn(row->range, "|");
    if (strchr("wf", row->type[0]))
        snprintf(text + used, TEXT - used, " %s=%.*s", row->name, (int)word, row->range);
    else
        snprintf(text + used, TEXT - used, " %s=%g", row->name, (double)draw_below(s, 24) - 1);
}

static posenc_case change_case(draw_source *s, const posenc_case *from, char *settings)
{
    posenc_case c = *from;
    snprintf(settings, TEXT, "%s", from->settings);
    for (int64_t n = draw_below(s, 3); n > 0; n--)
        add_setting(s, settings, from->encoding);
    c.settings = settings;
    if (draw_chance(s, 8))
        c.encoding = all[draw_below(s, count)].c->encoding;
    if (draw_chance(s, 8))
        c.settings = all[draw_below(s, count)].c->settings;
    if (draw_chance(s, 4))
        c.q_offset = draw_integer(s);
    if (draw_chance(s, 4))
        c.scale = draw_real(s);
    if (draw_chance(s, 4))
        c.angle_ulp = draw_real(s);
    c.causal ^= draw_chance(s, 8);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    draw_source           s       = {.at = data, .left = size};
    const known          *k       = any_case(&s);
    const pe_case_options options = {.executors = 3,
                                     .tile_q    = draw_below(&s, 9),
                                     .tile_k    = draw_below(&s, 9)};
    char                  settings[TEXT];
    pe_case_result        result;
    posenc_arrays         file    = {0};
    const int64_t         changes = draw_below(&s, 4);
    const posenc_case     c       = change_case(&s, k->c, settings);
    const int64_t         at[3]   = {draw_below(&s, 16), draw_below(&s, 16), draw_below(&s, 16)};
    for (int i = 0; i < k->file.count; i++) {
        int is_changed = 0;
        for (int64_t n = 0; n < changes; n++)
            is_changed |= at[n] % k->file.count == i;
        add_array(&s, &file, &k->file.items[i], is_changed);
    }
    pe_case_run(&result, NULL, &file, &c, &options);
    if (result.passed == (result.problem[0] != '\0') || strchr(result.problem, '\n'))
        abort();
    posenc_arrays_free(&file);
    return 0;
}
