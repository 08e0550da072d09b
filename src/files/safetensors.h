/* SPDX-License-Identifier: MIT */
/*
 * safetensors.h: reads a .safetensors file, from any stream of bytes
 *
 * Eight bytes of length, a JSON header, then the tensors end to end. What is read becomes a set of
 * arrays like that of an .npz, in the order of the data. The stream promises its size, as for an
 * .npy (npy.h); it is read once from front to back, so a pipe will do.
 */
#ifndef PE_FILES_SAFETENSORS_H
#define PE_FILES_SAFETENSORS_H

#include <jansson.h>
#include <posenc/files.h>

#include "files/npy.h"

/* How many first bytes pe_is_safetensors looks at. */
enum { PE_SAFETENSORS_MAGIC = 9 };

/* Do these first bytes begin such a file? Neither an .npy nor a zip archive looks like one. */
int pe_is_safetensors(const unsigned char first[PE_SAFETENSORS_MAGIC]);

/* Adds every tensor of the stream to set; F64, F32, F16, BF16, I64 and U8 as they are, I32 as I64, BOOL
   as U8. On failure set is as it was. */
posenc_status pe_safetensors_read(posenc_arrays *set, const pe_stream *stream, posenc_error *err);

/* Refuses what is no such file: the header alone is read, its tensors may have any type and size. */
posenc_status pe_safetensors_check(const pe_stream *stream, posenc_error *err);

#endif
