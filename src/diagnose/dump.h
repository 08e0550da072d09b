/* SPDX-License-Identifier: MIT */
/*
 * dump.h: what tensors before and after a rotation say by themselves, whatever rotated them
 *
 * Channels (a, b) of a row before and (a', b') after it are a complex number each. A rotation of the pair by
 * an angle, times a magnitude, is one complex gain for all heads of a token: so the gain that least squares
 * over heads gives is the rotation, and what is left tells whether these channels are a pair at all. All
 * numbers of a verdict come from such gains.
 */
#ifndef PE_DIAGNOSE_DUMP_H
#define PE_DIAGNOSE_DUMP_H

#include "base/shared/compiler.h"
#include "diagnose/diagnose.h"

#include <complex.h>

/* Which channels are pairs, by the settings of the encoding rope. */
typedef struct pe_pairing {
    int     in, out; /* 0 neighbours, 1 halves */
    int     blocks;  /* halves within so many parts of the block each (axis_rule=halves) */
    int64_t offset, dim;
} pe_pairing;

/* Tokens of q and k one after the other: row = (side, b, l). */
typedef struct pe_rows {
    const pe_rotation *in;
    int64_t            count, D;
    int64_t            heads[2]; /* of each side that are looked at */
    double            *noise;    /* [count,D] what rounding of `after` makes of a square, summed over heads */
    double             total;    /* the sum of that */
    double             bits;     /* of a number's fraction: 8 bfloat16, 11 float16, 24 float32, 53 float64 */
    double            *scale;    /* [count] temperature of the row */
} pe_rows;

/* Gains of the pairs of a pairing. */
typedef struct pe_gains {
    pe_pairing      pairing;
    int64_t         M;
    double complex *z;       /* [rows,M] */
    double         *angle;   /* [rows,M] of z */
    double         *power;   /* [rows,M] sum of |x|^2 */
    double         *noise;   /* [rows,M] of both channels */
    double          rest;    /* squares that no gain explains, and those of passing channels */
    double          floor;   /* what is left where gains are free: rest, for as many numbers as there are */
    double          size[2]; /* |z| of each side */
} pe_gains;

/* Element `at` of the data of real numbers; the mean square of rounding x to so many bits of fraction; and
   how many bits the numbers of some arrays have. */
double pe_dump_element(const posenc_tensor *t, int64_t at);
double pe_dump_rounding(double x, double bits);
double pe_dump_bits(const posenc_tensor *const *list, int count);

posenc_status pe_rows_create(pe_rows **rows, const pe_rotation *in, posenc_error *err);
void          pe_rows_free(pe_rows *rows);

int64_t       pe_pairing_channel(const pe_pairing *p, int is_out, int64_t m, int second);
posenc_status pe_gains_create(pe_gains **gains, const pe_rows *rows, const pe_pairing *p, posenc_error *err);
void          pe_gains_free(pe_gains *gains);

/* Squares left, in units of rounding, of some tokens and heads: about 1 where the pairing is right. */
double pe_pairing_misfit(const pe_rows *rows, const pe_pairing *p);

/* Per channel [D]: squares of what differs between before and after, in units of rounding. */
void pe_channels_changed(double *changed, const pe_rows *rows);

int64_t       pe_row_side(const pe_rows *rows, int64_t row, int64_t *b, int64_t *l);
const double *pe_row_position(const pe_rows *rows, int64_t row);

/* Radians per step of the expected positions of each pair, [M], their error, and the longest distance that
   was compared; the share of neighbours that agree. One coordinate. */
double pe_speeds(double *w, double *error, double *reach, const pe_rows *rows, const pe_gains *g);

/* The same of each pair as if it followed one of several coordinates; returns how far that reaches. order [M]
   is 1 where the angles are those of one speed from any start, and 0 where they are any. */
double pe_speeds_of_axis(double *w, double *error, double *order, const pe_rows *rows, const pe_gains *g,
                         int axis);

/* What a theory says of the pairs of a pairing. */
typedef struct pe_course {
    double  *w;
    double  *blur; /* relative error of an angle that was computed in float32 */
    int     *coordinate;
    int64_t *order; /* of pairs, the slowest first */
    double   size;
} pe_course;

/* The coordinate at which these speeds give the gains of a row best. */
double pe_place(const pe_gains *g, int64_t row, const pe_course *c, int axis, double expected);

/* One more, as printf writes it; what there is no room for is left out. */
void pe_fixes_add(pe_fixes *to, const char *format, ...) PE_PRINTF(2, 3);

#endif
