/* SPDX-License-Identifier: MIT */
/* index.h: the list of a sharded checkpoint (model.safetensors.index.json): which tensor lies in which file
 */
#ifndef PE_CONVERT_INDEX_H
#define PE_CONVERT_INDEX_H

#include <jansson.h>

#include "files/arrays/file.h"

/* Its bytes as they are, malloc'd. Errors: FILE, FORMAT (64 MiB at most), MEMORY. */
posenc_status pe_index_read(pe_bytes *bytes, const char *path, posenc_error *err);

/* The list, the caller's to release, and its weight_map: names of tensors to names of files, at least one.
   Errors: the same, and FORMAT where it has none. */
posenc_status pe_index_open(json_t **index, const json_t **map, const char *path, posenc_error *err);

#endif
