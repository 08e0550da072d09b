/* SPDX-License-Identifier: MIT */
/*
 * npz.h: a zip archive of .npy members, as NumPy writes it
 *
 * Stored or deflated, ZIP64 where needed. Contract of both: `path` only names the file in
 * sentences.
 */
#ifndef PE_FILES_NPZ_H
#define PE_FILES_NPZ_H

#include <posenc/files.h>
#include <zip.h>

/* Reads every member of an archive of `size` bytes. Takes `source` over, whatever the status; on
   failure *set is as it was. */
posenc_status pe_npz_read(posenc_arrays *set, zip_source_t *source, int64_t size, const char *path,
                          posenc_error *err);

/* The bytes of an archive, stored, with one fixed date: the same arrays give the same bytes. */
posenc_status pe_npz_write(const posenc_arrays *set, FILE *stream, const char *path, posenc_error *err);

#endif
