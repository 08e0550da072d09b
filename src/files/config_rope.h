/* SPDX-License-Identifier: MIT */
/*
 * config_rope.h: what the parts of reading a rotation share
 *
 * config_dictionary.c finds where the numbers of a rotation stand, config_width.c how much of a head turns,
 * config_schedule.c how its frequencies follow, config_rope.c puts a rotation together. All fill one
 * pe_rotation (rotation.h).
 */
#ifndef PE_FILES_CONFIG_ROPE_H
#define PE_FILES_CONFIG_ROPE_H

#include "files/config.h"
#include "files/rotation.h"

/* Of the layers that are alike there are two kinds at most: full and sliding, or main and compressed. */
enum { PE_SOURCE_FULL, PE_SOURCE_LOCAL, PE_SOURCES };

/* Where the numbers of one rotation stand. */
typedef struct pe_rope_source {
    json_t     *words;     /* owned; may be empty */
    const char *name;      /* of the dictionary, for sentences and rules */
    int         has_base;  /* the file itself gives this dictionary's rope_theta */
    const char *base_key;  /* at top level */
    double      base, old; /* of the class, now and in 4.57 */
} pe_rope_source;

typedef struct pe_rope_sources {
    pe_rope_source from[PE_SOURCES];
    int            is_class; /* the class's own: the file has none */
} pe_rope_sources;

/* Keys that a schedule reads of its dictionary; those in `needs` must be there. */
typedef struct pe_rope_schedule {
    const char *name, *needs, *reads;
    int         has_length; /* it has an original length */
} pe_rope_schedule;

/* Is word one of the blank-separated words of list (NULL: none)? */
int pe_is_among(const char *list, const char *word);
/* Does the type have a dictionary per layer type? */
int pe_rope_takes_layers(const pe_config *c);
int pe_rope_is_scaled(const pe_rotation *r);

/* The dictionaries, whose words the caller gives back; the base of one of them; what the file does not say of
   bases. */
void pe_rope_find_sources(pe_config *c, pe_rope_sources *d);
void pe_rope_find_base(pe_config *c, const pe_rope_source *s, pe_rotation *r);
void pe_rope_warn_of_base(pe_config *c, const pe_rope_sources *d);

/* head_dim; then dim and offset, which follow the schedule as well. */
void pe_rope_find_width(pe_config *c, pe_rotation *r, int is_full);
void pe_rope_find_dim(pe_config *c, const pe_rope_source *s, pe_rotation *r);

/* Which schedule; its lengths, factors and further numbers; keys that it does not read. */
const pe_rope_schedule *pe_rope_choose_schedule(pe_config *c, const pe_rope_source *s, pe_rotation *r);
void pe_rope_read_schedule(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen,
                           pe_rotation *r);
void pe_rope_warn_of_unused_keys(pe_config *c, const pe_rope_source *s, const pe_rope_schedule *chosen);

#endif
