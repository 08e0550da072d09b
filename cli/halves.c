/* SPDX-License-Identifier: MIT */
/* Two arrays as one and back: contract in halves.h. */
#include "halves.h"

#include <string.h>

int cli_are_halves(const posenc_tensor *re, const posenc_tensor *im)
{
    return re->ndim == im->ndim && re->ndim > 0 && re->dtype == im->dtype &&
           !memcmp(re->shape, im->shape, (size_t)re->ndim * sizeof *re->shape);
}

void cli_whole_shape(int64_t shape[POSENC_MAX_DIMS], const posenc_tensor *half)
{
    memcpy(shape, half->shape, sizeof half->shape);
    shape[half->ndim - 1] *= 2;
}

/* Rows of a half, and bytes of each. */
static void measure(const posenc_tensor *half, size_t *rows, size_t *bytes)
{
    *rows  = 1;
    *bytes = (size_t)half->shape[half->ndim - 1] * posenc_dtype_size(half->dtype);
    for (int32_t a = 0; a < half->ndim - 1; a++)
        *rows *= (size_t)half->shape[a];
}

void cli_join_halves(posenc_tensor *whole, const posenc_tensor *re, const posenc_tensor *im)
{
    size_t rows, bytes;
    measure(re, &rows, &bytes);
    for (size_t r = 0; r < rows; r++) {
        memcpy((char *)whole->data + 2 * r * bytes, (const char *)re->data + r * bytes, bytes);
        memcpy((char *)whole->data + (2 * r + 1) * bytes, (const char *)im->data + r * bytes, bytes);
    }
}

void cli_split_halves(const posenc_tensor *whole, posenc_tensor *re, posenc_tensor *im)
{
    size_t rows, bytes;
    measure(re, &rows, &bytes);
    for (size_t r = 0; r < rows; r++) {
        memcpy((char *)re->data + r * bytes, (const char *)whole->data + 2 * r * bytes, bytes);
        memcpy((char *)im->data + r * bytes, (const char *)whole->data + (2 * r + 1) * bytes, bytes);
    }
}
