/* SPDX-License-Identifier: MIT */
/*
 * fuzz_resume: what `compare --resume` takes from a saved run
 *
 * The bytes make the arrays of a file: those of a run, some of them missing, of another name, type or shape,
 * once more, or with another identity. Either all numbers are taken over, or none, and a sentence says why.
 */
#include "fuzz/draw.h"
#include "train/run/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARRAYS = 4 };

static const struct {
    const char  *name;
    posenc_dtype dtype;
    int64_t      rows, columns;
} kinds[ARRAYS] = {{"marks", POSENC_DTYPE_I64, 5, 0},
                   {"theta", POSENC_DTYPE_F32, 7, 0},
                   {"window_loss", POSENC_DTYPE_F32, 2, 3},
                   {"time.instructions", POSENC_DTYPE_U8, 16, 0}};

static void add(draw_source *s, posenc_arrays *set, const char *name, posenc_dtype dtype, int64_t rows,
                int64_t columns)
{
    int64_t shape[POSENC_MAX_DIMS] = {rows, columns};
    int32_t ndim                   = columns ? 2 : 1;
    switch (draw_below(s, 16)) {
    case 1: return;
    case 2: name = kinds[draw_below(s, ARRAYS)].name; break;
    case 3: dtype = (posenc_dtype)draw_below(s, 7); break;
    case 4: ndim = (int32_t)draw_below(s, 4); break;
    case 5: shape[0] = draw_below(s, 20); break;
    default: break;
    }
    for (int a = columns ? 2 : 1; a < ndim; a++)
        shape[a] = 1;
    const posenc_tensor *t = posenc_arrays_add(set, name, dtype, ndim, shape);
    size_t               n = t ? posenc_dtype_size(dtype) : 0;
    for (int a = 0; t && a < ndim; a++)
        n *= (size_t)shape[a];
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)t->data)[i] = (unsigned char)(i + 1);
}

static posenc_arrays draw_file(draw_source *s, const char *identity)
{
    posenc_arrays set    = {0};
    const int64_t length = (int64_t)strlen(identity),
                  taken  = draw_chance(s, 8) ? draw_below(s, length + 1) : length;
    posenc_tensor *who =
        draw_chance(s, 16) ? NULL : posenc_arrays_add(&set, "run", POSENC_DTYPE_U8, 1, &taken);
    if (who)
        memcpy(who->data, identity, (size_t)taken);
    add(s, &set, "finished", POSENC_DTYPE_U8, 1, 0);
    for (int i = 0; i < ARRAYS; i++)
        add(s, &set, kinds[i].name, kinds[i].dtype, kinds[i].rows, kinds[i].columns);
    return set;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char          identity[] = "{\"encoding\":\"rope\",\"seed\":1}";
    draw_source   s          = {.at = data, .left = size};
    pe_run_file   k          = {.identity = identity};
    posenc_arrays set        = draw_file(&s, identity);
    posenc_error  err        = {0};
    int           is_finished;
    void         *blocks[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        const size_t n = (size_t)(kinds[i].rows * (kinds[i].columns ? kinds[i].columns : 1));
        blocks[i]      = calloc(n, posenc_dtype_size(kinds[i].dtype));
        pe_run_file_list(&k, kinds[i].name, blocks[i], kinds[i].dtype, kinds[i].rows, kinds[i].columns);
    }
    const posenc_status status = pe_run_file_take(&k, &set, "", "run.npz", &err);
    if (status && (err.status != status || !err.message[0] || strchr(err.message, '\n')))
        abort();
    for (int i = 0; i < ARRAYS; i++)
        if (!status == (*(unsigned char *)blocks[i] == 0))
            abort(); /* a part was taken, or a part was not */
    free(pe_run_file_identity(&set, "", &is_finished));
    for (int i = 0; i < ARRAYS; i++)
        free(blocks[i]);
    posenc_arrays_free(&set);
    return 0;
}
