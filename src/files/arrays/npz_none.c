/* SPDX-License-Identifier: MIT */
/* npz_none.c: in the place of npz_zip.c where the library is built without libzip (-DPOSENC_ZIP=OFF):
   archives are refused, in one sentence. */
#include "files/arrays/formats.h"

static posenc_status refuse(const char *path, posenc_error *err)
{
    return pe_file_fail(
        err, POSENC_ERROR_UNSUPPORTED, (pe_origin){path, NULL},
        "it is an .npz, which this build does not know, for it was made without libzip; use .npy or "
        ".safetensors, or build with -DPOSENC_ZIP=ON");
}

posenc_status pe_npz_read(posenc_arrays *set, FILE *stream, const void *bytes, int64_t size, const char *path,
                          posenc_error *err)
{
    (void)set, (void)bytes, (void)size;
    pe_file_close(stream);
    return refuse(path, err);
}

posenc_status pe_npz_write(const posenc_arrays *set, FILE *stream, const char *path, posenc_error *err)
{
    (void)set, (void)stream;
    return refuse(path, err);
}
