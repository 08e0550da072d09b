/* SPDX-License-Identifier: MIT */
/*
 * positions.h: the positions of queries and keys
 *
 * A run has positions as a range or as an array; here they become numbers, and here it is decided whether
 * distances follow the diagonals (then a bias by distance is one vector) or must be looked up one by one.
 */
#ifndef PE_BASE_POSITIONS_H
#define PE_BASE_POSITIONS_H

#include <posenc/positions.h>

/* Checks an argument against B, L and N coordinates; `who` is "attend: q_pos". A range has one coordinate:
   the caller must know whether that is enough. */
posenc_status pe_positions_check(const posenc_positions *p, const char *who, int64_t B, int64_t L, int64_t N,
                                 posenc_error *err);
/* Of them only the first n are read. */
posenc_status pe_positions_check_some(const posenc_positions *p, const char *who, int64_t B, int64_t L,
                                      int64_t N, int64_t n, posenc_error *err);

/* The same positions with an array of three axes where there are several coordinates: [L,N] becomes [1,L,N],
   because functions that read positions cannot tell [L,N] from [B,L]. */
posenc_positions pe_positions_view(const posenc_positions *p, int64_t N);

/* A range means start 0 and step 1 where nothing is set. */
posenc_positions pe_positions_with_defaults(const posenc_positions *p);

/* Coordinate c, and the first one, of element s of batch item b. */
double pe_positions_coordinate(const posenc_positions *p, int64_t b, int64_t s, int64_t c);
double pe_positions_at(const posenc_positions *p, int64_t b, int64_t s);

/* Batch items that differ: 1 for a range or an array [1,L]. */
int64_t pe_positions_batches(const posenc_positions *p);

/* Batch items in which positions of queries or keys differ: 1, or B. */
int64_t pe_positions_pair_batches(const posenc_positions *q_pos, const posenc_positions *k_pos, int64_t B);

/* The smallest and largest position of the L elements of item b, all coordinates together; of a range only
   the ends are read. `whole`: all are whole numbers. */
typedef struct pe_extent {
    double low, high;
    int    whole;
} pe_extent;

pe_extent pe_positions_extent(const posenc_positions *p, int64_t b, int64_t L);

/* The distances that the masks allow: t in [low, high]. */
typedef struct pe_reach {
    int64_t low, high;
} pe_reach;

pe_reach pe_positions_reach(int mask, int64_t window);

/* The distances of one run. */
typedef struct pe_distances {
    int      skewed; /* t = t00 + step * (i - j) everywhere: distances follow the diagonals */
    int64_t  t00, step;
    int64_t  low, count; /* whole distances low .. low + count - 1 cover all that the masks allow */
    int      whole;      /* all positions are whole numbers */
    pe_reach reach;
} pe_distances;

void pe_positions_distances(pe_distances *d, const posenc_positions *q_pos, const posenc_positions *k_pos,
                            int64_t B, int64_t Lq, int64_t Lk, pe_reach reach);

/* Coordinate of a pixel by DETR's rule, which counts valid pixels (posenc_positions_detr): the `count`-th of
   a line that has `last` of them. `normalize` makes it a share of 2 pi; `eps` makes a line without any 0. */
double pe_positions_detr_coordinate(double count, double last, int normalize, double eps);

#endif
