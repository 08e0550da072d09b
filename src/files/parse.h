/* SPDX-License-Identifier: MIT */
/* parse.h: the readers of posenc/files.h on bytes in memory; `path` names them in sentences. */
#ifndef PE_FILES_PARSE_H
#define PE_FILES_PARSE_H

#include <posenc/files.h>

/* As posenc_model_read; a .safetensors is refused, for it has no folder. */
posenc_status pe_modelfile_parse(posenc_model **model, const void *bytes, size_t n, const char *path,
                                 posenc_error *err);

/* As posenc_cases_read. */
posenc_status pe_cases_parse(posenc_cases *cases, const char *text, size_t n, const char *path,
                             posenc_error *err);

#endif
