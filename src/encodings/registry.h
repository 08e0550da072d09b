/* SPDX-License-Identifier: MIT */
/* registry.h: the rows of encodings.def as an array. */
#ifndef PE_ENCODINGS_REGISTRY_H
#define PE_ENCODINGS_REGISTRY_H

#include "encodings/encoding.h"

int                pe_encoding_count(void);
const pe_encoding *pe_encoding_at(int index);                         /* NULL outside */
const pe_encoding *pe_encoding_find(const char *name, size_t length); /* NULL if unknown */

#endif
