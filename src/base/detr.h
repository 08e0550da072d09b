/* SPDX-License-Identifier: MIT */
/*
 * detr.h: where a pixel stands by DETR's rule, which counts the pixels that are there
 *
 * posenc_positions_detr (posenc.h) counts in a mask; a grid without a mask needs the same rule for one
 * number.
 */
#ifndef PE_BASE_DETR_H
#define PE_BASE_DETR_H

/* Coordinate of the pixel with `count` valid ones up to it, itself counted, in a line that has `last` of
   them: `normalize` makes it a share of 2 pi; `eps` keeps a line without any at 0. */
double pe_detr_coordinate(double count, double last, int normalize, double eps);

#endif
