/* SPDX-License-Identifier: MIT */
/*
 * settings.h: "name=value" text, by a room's table of settings
 *
 * A table row has name, type, default, range and meaning; everything else - parsing, defaults, range
 * checks, printing, help - follows from it. Types: "integer" and "real" (expressions over the sizes are
 * allowed: "8*L"), "word" (one of range, separated by |), "flag" (yes|no), "list" (1 to 8 integers joined by
 * ':', or by 'x' for a grid: "24:20:20", "7x7"; the range is that of each; as a number it is their product),
 * "map" (names of range with an integer each, "a=8:b=4"; items in the order of range, those that are not
 * named as in the default). A default of "" means absent: value.given is 0. A default may also name
 * settings that precede it in the table: "-max_relative"; an absent one counts as infinity, which
 * "first(buckets,length)" skips.
 */
#ifndef PE_BASE_SETTINGS_H
#define PE_BASE_SETTINGS_H

#include <posenc/registry.h>

enum { PE_MAX_SETTINGS = 64, PE_MAX_TEXT = 64, PE_MAX_ITEMS = 8 };

/* A resolved setting. */
typedef struct pe_value {
    int     given;   /* 0: absent */
    int64_t integer; /* integer; index of the word in `range`; 0/1 of a flag */
    double  real;
    int     count; /* of a list */
    int64_t items[PE_MAX_ITEMS];
} pe_value;

/* One setting as the user wrote it ("" = default). */
typedef struct pe_setting_text {
    char text[PE_MAX_TEXT];
} pe_setting_text;

int pe_settings_index(const posenc_setting_info *table, const char *name, size_t length); /* -1: none */

/* The next "name=value" of a text, up to one of the separators or the end; *at moves past it and the
   separators that follow. Returns 0 at the end. Without "=" there is no value, and all is the name. */
typedef struct pe_setting_pair {
    const char *name, *value; /* not terminated: see the lengths */
    size_t      name_length, value_length;
} pe_setting_pair;

int pe_settings_next(pe_setting_pair *pair, const char **at, const char *separators);

/* Index of word in "a|b|c", or -1. */
int pe_settings_word_index(const char *range, const char *word, size_t length);

/* Value of the text for a row, or of its default if text is "". Sizes may be NULL: then expressions over
   sizes are accepted unchecked. `who` is the encoding's name in an error. */
posenc_status pe_settings_resolve(pe_value *value, const posenc_setting_info *row, const char *text,
                                  const posenc_dims *sizes, const char *who, posenc_error *err);

/* What names in a setting's text may mean: sizes (NULL: not known yet), and the settings 0 .. known-1 of a
   table. */
typedef struct pe_scope {
    const posenc_dims         *sizes;
    const posenc_setting_info *table;
    const pe_value            *set;
    int                        known;
} pe_scope;

/* A setting of the table as a number: a word as its index in the range, absent ones infinite; "window1" is
   the first number of the list `window`. */
int pe_settings_number(const posenc_setting_info *table, const pe_value *set, const char *name, size_t length,
                       double *value);

posenc_status pe_settings_resolve_in(pe_value *value, const posenc_setting_info *row, const char *text,
                                     const pe_scope *scope, const char *who, posenc_error *err);

/* B H G Lq Lk D Dv d_model L of a problem by name, for expressions. */
int pe_settings_size(const posenc_dims *sizes, const char *name, size_t length, double *value);

/* What was typed against what there is, without regard to case: does a text begin with the first n letters,
   does one of its words, and how many single edits (insert, delete, replace, swap of neighbours) lie
   between two words. */
int pe_settings_begins(const char *text, const char *typed, size_t n);
int pe_settings_has_word(const char *text, const char *typed);
int pe_settings_edit_distance(const char *typed, const char *name);

/* How far a name is from what was typed, for "did you mean": twice the edits; a name that begins with it is
   nearer than one edit ("sinus"), one that has a word that does ("buckets" for num_buckets) than two. */
enum { PE_SETTINGS_BEGINS = 1, PE_SETTINGS_HAS_WORD = 3 };
int pe_settings_distance(const char *typed, const char *name);

#endif
