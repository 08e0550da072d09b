/* SPDX-License-Identifier: MIT */
/*
 * json.h: what could not be made is not left out in silence
 *
 * json_object_set_new(object, name, NULL) does nothing, and neither does appending NULL: a text that is no
 * UTF-8 or a number that is none would be missing from the object, and nobody would know. Here the whole
 * becomes NULL, so that the last one who holds it says that there is none.
 */
#ifndef PE_FILES_JSON_H
#define PE_FILES_JSON_H

#include <jansson.h>

/* The value of n bytes of JSON whose names differ, or NULL: it is none, or memory has ended (errno: ENOMEM).
 */
json_t *pe_json_load(const char *text, size_t n, json_error_t *why);

/* The same of what Python's json may have written: NaN, Infinity and -Infinity are read as texts, which
   nobody takes for numbers. */
json_t *pe_json_load_python(const char *text, size_t n, json_error_t *why);

static inline void pe_json_lose(json_t **whole)
{
    json_decref(*whole);
    *whole = NULL;
}

static inline void pe_json_set(json_t **object, const char *name, json_t *value)
{
    if (json_object_set_new(*object, name, value))
        pe_json_lose(object);
}

static inline void pe_json_add(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value))
        pe_json_lose(array);
}

#endif
