/* SPDX-License-Identifier: MIT */
/*
 * beside.h: whose the config.json is that lies where a new one would go
 *
 * The output is named, its config.json is not. One that says something else belongs to another model, or to
 * another table of the same one, and stays.
 */
#ifndef PE_CONVERT_BESIDE_H
#define PE_CONVERT_BESIDE_H

/* The keys under which a configuration says how many positions a learned table has; NULL behind the last. */
extern const char *const pe_beside_lengths[];

/* May `text` take the place of the file `path`? Yes where nothing lies there, or what is no regular file
   (whose refusal is the caller's), or the file says the same as `text` or as the file `source`, or is_again
   (the output was there before) and it says the same but for sizes. */
int pe_beside_may_go(const char *path, const char *text, const char *source, int is_again);

#endif
