/* SPDX-License-Identifier: MIT */
/*
 * map.h: distances other than those at which tokens stand
 *
 * A map of distances says at which distance T a pair of tokens is turned: ReRoPE, Leaky ReRoPE, Self-Extend,
 * DCA. Each has two or three classes of pairs, and each class a place x for the query and a place y for the
 * key with T = x - y. A query has a form for each class, rotated at its place; a key has one or two, as some
 * classes share a place. Formulas: map.c.
 */
#ifndef PE_ENGINE_MAP_H
#define PE_ENGINE_MAP_H

#include <stdint.h>

typedef enum pe_map_kind { PE_MAP_NONE, PE_REROPE, PE_LEAKY_REROPE, PE_SELF_EXTEND, PE_DCA } pe_map_kind;

enum { PE_MAP_FORMS = 3 };

typedef struct pe_map {
    pe_map_kind kind;
    double      window, factor, offset; /* w; f or G; o of Self-Extend */
    double      chunk, local;           /* of DCA */
} pe_map;

/* Forms of a query (keys: of a key); 1 without a map. */
int pe_map_forms(const pe_map *map, int keys);

/* The class of a pair at positions q and k, which is the number of the query's form; the key's form in it. */
int pe_map_class(const pe_map *map, double q, double k);
int pe_map_key_form(const pe_map *map, int class_of_pair);

/* Where a form of a token at position P is rotated. */
double pe_map_place(const pe_map *map, int keys, int form, double P);

/* The same as steps / divisor: neighbours are whole steps apart where their places are not. */
double pe_map_divisor(const pe_map *map, int form);
double pe_map_steps(const pe_map *map, int keys, int form, double P);

/* Bits 1 << class of the classes that pairs of queries q_low .. q_high and keys k_low .. k_high may have, of
   which only distances t_low .. t_high matter; at least one bit. */
unsigned pe_map_met(const pe_map *map, const double q[2], const double k[2], double t_low, double t_high);

#endif
