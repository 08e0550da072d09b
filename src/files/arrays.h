/* SPDX-License-Identifier: MIT */
/* arrays.h: sets of named arrays and lists of cases from bytes in memory (public face: posenc/files.h). */
#ifndef PE_FILES_ARRAYS_H
#define PE_FILES_ARRAYS_H

#include <posenc/files.h>

/* Adds an array under the first `length` characters of name, which need not be array->name; its data then
   belong to the set. 0 without memory. */
int pe_arrays_take(posenc_arrays *set, const char *name, size_t length, const posenc_array *array);

/* posenc_arrays_read on bytes in memory; `path` names them in sentences and an .npy's array. */
posenc_status pe_arrays_parse(posenc_arrays *set, const void *bytes, size_t n, const char *path,
                              posenc_error *err);

/* posenc_cases_read on bytes in memory; `path` names them in sentences. */
posenc_status pe_cases_parse(posenc_cases *cases, const char *text, size_t n, const char *path,
                             posenc_error *err);

#endif
