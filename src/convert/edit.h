/* SPDX-License-Identifier: MIT */
/*
 * edit.h: one number of a JSON text replaced, and every other byte kept
 *
 * A configuration that is read and written anew has other digits and other line breaks. Here the text stays,
 * but for the value. The text must be good JSON, which its reader has said.
 */
#ifndef PE_CONVERT_EDIT_H
#define PE_CONVERT_EDIT_H

/* Has it this object (NULL: itself), and that this member (NULL: any), under names without escapes? */
int pe_edit_finds(const char *text, const char *object, const char *key);

/* The text, malloc'd, with this value of a member of its object (object NULL), or of the object of that name
   in it; where the member is not there it becomes the first. NULL: no memory, or no such object. */
char *pe_edit_set(const char *text, const char *object, const char *key, const char *value);

#endif
