/* SPDX-License-Identifier: MIT */
/* index.c: contract in index.h */
#include "convert/index.h"

#include <stdlib.h>

#include "files/arrays/json.h"

enum { LONGEST = 64 << 20 };

posenc_status pe_index_read(pe_bytes *bytes, const char *path, posenc_error *err)
{
    FILE         *stream;
    int64_t       size;
    posenc_status status = pe_file_open(&stream, &size, path, err);
    if (status)
        return status;
    status = pe_file_read(bytes, stream, LONGEST, path, err);
    pe_file_close(stream);
    return status;
}

posenc_status pe_index_open(json_t **index, const json_t **map, const char *path, posenc_error *err)
{
    pe_bytes            bytes;
    json_error_t        why;
    const posenc_status status = pe_index_read(&bytes, path, err);
    if (status)
        return status;
    *index = pe_json_load(bytes.data, bytes.size, &why);
    *map   = json_object_get(*index, "weight_map");
    free(bytes.data);
    if (!*index)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL},
                            "it is not valid JSON: line %d, column %d: %.80s", why.line, why.column,
                            why.text);
    if (json_object_size(*map))
        return POSENC_OK;
    json_decref(*index);
    return pe_file_fail(err, POSENC_ERROR_FORMAT, (pe_origin){path, NULL},
                        "it has no object weight_map, as the index of a sharded checkpoint has");
}
