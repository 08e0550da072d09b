/* SPDX-License-Identifier: MIT */
/* The registry: the only place that knows every room. Names are found without regard to case: "RoPE" is how
   papers write rope. */
#include "encodings/encoding.h"

#define ENCODING(place, room, name) extern const pe_encoding pe_##name;
#include "encodings/encodings.def"
#undef ENCODING

static const pe_encoding *const rooms[] = {
#define ENCODING(place, room, name) &pe_##name,
#include "encodings/encodings.def"
#undef ENCODING
};

enum { COUNT = sizeof rooms / sizeof *rooms };

int pe_encoding_count(void)
{
    return COUNT;
}

const pe_encoding *pe_encoding_at(int index)
{
    return index >= 0 && index < COUNT ? rooms[index] : NULL;
}

const pe_encoding *pe_encoding_find(const char *name, size_t length)
{
    for (int i = 0; i < COUNT; i++)
        if (strlen(rooms[i]->info.name) == length && pe_settings_begins(rooms[i]->info.name, name, length))
            return rooms[i];
    return NULL;
}
