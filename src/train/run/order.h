/* SPDX-License-Identifier: MIT */
/*
 * order.h: would the order of several encodings hold, had they learned longer?
 *
 * Each item has a loss at several levels of training, such as a quarter, a half and all of the steps; the
 * last level is the comparison itself. Of each pair these losses say whether its order is settled, and of
 * each level how much its order is like that of the last one. Nothing here knows an encoding. Definitions:
 * docs/experiments.md, section 19.
 */
#ifndef PE_TRAIN_ORDER_H
#define PE_TRAIN_ORDER_H

#include <posenc/posenc.h>

enum { PE_MOST_LEVELS = 8 };

/* The losses, and how large a difference must be to count. */
typedef struct pe_order_losses {
    int           items, levels;
    const double *losses; /* [levels, items]; NaN: not measured */
    /* The smallest difference of two items at a level that can be told from none. */
    double (*resolution)(const void *self, int level, int a, int b);
    const void *self;
} pe_order_losses;

typedef enum pe_pair_state {
    PE_PAIR_SETTLED, /* one order at every level, and beyond the resolution at the two last */
    PE_PAIR_TIED,    /* within the resolution at the two last */
    PE_PAIR_MOVING,  /* none of these; its reason says why */
    PE_PAIR_CROSSED, /* beyond the resolution, both at the last level and, the other way round, at an earlier
                        one */
    PE_PAIR_UNMEASURED /* there is no earlier level */
} pe_pair_state;

typedef struct pe_order_pair {
    int           better, worse; /* at the last level */
    pe_pair_state state;
    const char   *reason;                     /* why it is not settled; NULL where it is, or is tied */
    double        difference[PE_MOST_LEVELS]; /* worse - better; NaN: not measured */
} pe_order_pair;

typedef struct pe_order {
    int            items, levels;
    int            ranked; /* items that have a loss at the last level */
    int           *sorted; /* [ranked] these, the lowest loss first */
    int           *group;  /* [items] from 0; -1: not ranked. Every pair of two groups is settled */
    int            groups;
    pe_order_pair *pairs; /* [pair_count] of ranked items */
    int            pair_count;
    double tau[PE_MOST_LEVELS]; /* Kendall's tau-b of each level's order and the last one's; NaN: unknown */
} pe_order;

posenc_status pe_order_create(pe_order **order, const pe_order_losses *losses, posenc_error *err);
void          pe_order_free(pe_order *order); /* NULL is fine */

const char *pe_order_state_name(pe_pair_state state); /* "settled", "tied", ... */
/* "{a, b} < c"; labels [items]. */
void pe_order_write_groups(char *text, size_t n, const pe_order *order, const char *const *labels);
/* "{a, b} < c; not settled: a, b (crossed)". What does not fit is counted. */
void pe_order_write(char *text, size_t n, const pe_order *order, const char *const *labels);

#endif
