/* SPDX-License-Identifier: MIT */
/* manifest.h: posenc_cases_read on bytes in memory; `path` names them in sentences. */
#ifndef PE_FILES_MANIFEST_H
#define PE_FILES_MANIFEST_H

#include <posenc/files.h>

posenc_status pe_cases_parse(posenc_cases *cases, const char *text, size_t n, const char *path,
                             posenc_error *err);

#endif
