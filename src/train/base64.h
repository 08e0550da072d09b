/* SPDX-License-Identifier: MIT */
/*
 * base64.h: arrays of float32 as text, bit for bit
 */
#ifndef PE_TRAIN_BASE64_H
#define PE_TRAIN_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* The n numbers as little-endian float32 in base64 (RFC 4648, with padding); malloc'd, NULL without memory.
   In Python: numpy.frombuffer(base64.b64decode(text), "<f4"). */
char *pe_base64_write(const float *x, int64_t n);
/* Reads exactly n numbers back; 0, and x may be half written, if text is anything else. */
int pe_base64_read(float *x, int64_t n, const char *text, size_t length);

#endif
